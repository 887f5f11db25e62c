/* SPDX-License-Identifier: MIT */
/*
 * Determinism: the same seed gives the same event stream, byte for byte, in every build. hashes.tsv
 * holds the hash of the stream for some seeds; each build compares with it. After a deliberate
 * change of behavior it is written anew:
 *     build/gcc/tests/core/test_hashes --write tests/core/hashes.tsv
 */
#include "workload.h"

#include <support/client.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS      12u
#define ACTORS     3u
#define OPERATIONS 60u

static struct workload workload_of(uint32_t row)
{
	static const uint32_t switches[] = {0, 50, 500};

	return (struct workload){.kind = VIDMM_HOST_SIM,
				 .seed = 0x5EED0000u + row * 7,
				 .switch_per_1024 = switches[row % 3],
				 .actors = ACTORS,
				 .operations = OPERATIONS};
}

static uint64_t hash_of(const struct workload *workload)
{
	struct workload_result result;

	workload_run(workload, &result);
	if (result.failure[0])
		fail_msg("seed %" PRIu64 ": %s", workload->seed, result.failure);
	assert_true(result.events > 1000);
	return result.hash;
}

static FILE *open_golden(void)
{
	const char *root = getenv("VIDMM_SOURCE_ROOT");
	char path[1024];

	snprintf(path, sizeof(path), "%s/tests/core/hashes.tsv", root ? root : ".");
	FILE *file = fopen(path, "r");
	if (!file)
		fail_msg("cannot read %s", path);
	return file;
}

static void every_build_gives_the_recorded_hashes(void **state)
{
	FILE *file = open_golden();
	char line[256];
	uint32_t row = 0, wrong = 0;

	(void)state;
	while (fgets(line, sizeof(line), file)) {
		uint64_t seed, golden;
		uint32_t switches;

		if (sscanf(line, "0x%" SCNx64 "\t%" SCNu32 "\t0x%" SCNx64, &seed, &switches,
			   &golden) != 3)
			continue;
		struct workload workload = workload_of(row++);
		assert_int_equal(workload.seed, seed);
		assert_int_equal(workload.switch_per_1024, switches);
		uint64_t hash = hash_of(&workload);
		printf("# seed 0x%08" PRIx64 " switch %3u: 0x%016" PRIx64 "%s\n", seed, switches,
		       hash, hash == golden ? "" : "  differs");
		wrong += hash != golden;
	}
	fclose(file);
	assert_int_equal(row, SEEDS);
	if (wrong)
		fail_msg("%u of %u hashes differ from hashes.tsv; if that is intended: %s", wrong,
			 row, "test_hashes --write tests/core/hashes.tsv");
}

static void a_repeated_run_has_the_same_hash(void **state)
{
	(void)state;
	for (uint32_t row = 0; row < 3; row++) {
		struct workload workload = workload_of(row);
		uint64_t first = hash_of(&workload);

		assert_true(hash_of(&workload) == first);
	}
}

static void another_seed_or_interleaving_gives_another_hash(void **state)
{
	uint64_t seen[SEEDS + 1];

	(void)state;
	for (uint32_t row = 0; row < SEEDS; row++) {
		struct workload workload = workload_of(row);

		seen[row] = hash_of(&workload);
	}
	struct workload other = workload_of(1);
	other.switch_per_1024 = 51;
	seen[SEEDS] = hash_of(&other);
	for (uint32_t a = 0; a <= SEEDS; a++)
		for (uint32_t b = 0; b < a; b++)
			assert_true(seen[a] != seen[b]);
}

static int write_golden(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file) {
		perror(path);
		return 1;
	}
	fprintf(file,
		"# SPDX-License-Identifier: MIT\n"
		"# The event streams of some seeds (test_hashes.c). After a deliberate change of "
		"behavior:\n"
		"# build/gcc/tests/core/test_hashes --write tests/core/hashes.tsv\n"
		"# seed\tswitch_per_1024\thash\n");
	for (uint32_t row = 0; row < SEEDS; row++) {
		struct workload workload = workload_of(row);
		struct workload_result result;

		workload_run(&workload, &result);
		if (result.failure[0])
			fprintf(stderr, "seed %" PRIu64 ": %s\n", workload.seed, result.failure);
		fprintf(file, "0x%" PRIx64 "\t%" PRIu32 "\t0x%016" PRIx64 "\n", workload.seed,
			workload.switch_per_1024, result.hash);
	}
	return fclose(file) != 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_build_gives_the_recorded_hashes),
		cmocka_unit_test(a_repeated_run_has_the_same_hash),
		cmocka_unit_test(another_seed_or_interleaving_gives_another_hash),
	};

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_golden(argv[2]);
	return cmocka_run_group_tests_name("hashes", tests, NULL, NULL);
}
