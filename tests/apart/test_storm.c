/* SPDX-License-Identifier: MIT */
/*
 * test_storm HOST CLIENT [ROUNDS [HOSTS [SEED]]]: programs under load, of which one is killed at a moment that is not chosen, again and again; and hosts,
 * with all their clients connected. Those that are left find what they wrote. What the killed ones had is gone from the host: memory objects,
 * descriptors, allocations, threads. Scripts give more rounds than the suite does.
 */
#include "apart.h"

#include <stdio.h>
#include <stdlib.h>

#define CLIENTS    4u
#define VRAM_KIB   512u /* less than one of them wants: everything moves all the time */
#define APERTURE   1024u
#define WARM       8u
/* What its allocator may keep of the most that it ever had; a thousand rounds that lose a page or two each would be above. */
#define MEMORY_KIB 8192u

static struct {
	uint32_t rounds, hosts;
	uint64_t seed;
} storm = {25, 4, 1};

static uint32_t draw(uint32_t below)
{
	storm.seed = storm.seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(storm.seed >> 33) % below;
}

static void start_client(struct apart *apart, struct apart_program *program)
{
	char seed[32];

	snprintf(seed, sizeof(seed), "%u", draw(UINT32_MAX));
	apart_client(apart, program, "load", seed);
}

/* It has come some way, and is on it. */
static void kill_one(struct apart *apart, struct apart_program *programs)
{
	struct apart_program *program = &programs[draw(CLIENTS)];

	assert_true(apart_read(program, 1 + draw(40)));
	apart_kill(program);
	assert_int_equal(apart_wait(program), 256 + 9);
	start_client(apart, program);
}

/* All end in an orderly way, having found what they wrote. */
static void finish_all(struct apart_program *programs)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		apart_finish(&programs[i]);
	for (uint32_t i = 0; i < CLIENTS; i++)
		assert_int_equal(apart_wait(&programs[i]), APART_DONE);
}

static void clients_die_at_any_moment_and_nobody_notices(void **state)
{
	struct apart apart;
	struct apart_program programs[CLIENTS];

	(void)state;
	apart_start(&apart, VRAM_KIB, APERTURE);
	const struct apart_counts first = apart_count(apart.host.pid);
	for (uint32_t i = 0; i < CLIENTS; i++)
		start_client(&apart, &programs[i]);
	for (uint32_t i = 0; i < WARM; i++)
		kill_one(&apart, programs);
	finish_all(programs);
	apart_settle_to(&apart, &first);
	const struct apart_counts before = apart_count(apart.host.pid);
	for (uint32_t i = 0; i < CLIENTS; i++)
		start_client(&apart, &programs[i]);
	for (uint32_t i = 0; i < storm.rounds; i++)
		kill_one(&apart, programs);
	finish_all(programs);
	apart_settle_to(&apart, &first);
	const struct apart_counts after = apart_count(apart.host.pid);
	print_message(
		"%u kills: descriptors %u and %u, memory objects %u and %u, mappings %u and %u, private KiB %llu and %llu\n",
		storm.rounds, before.descriptors, after.descriptors, before.memory_objects,
		after.memory_objects, before.mappings, after.mappings,
		(unsigned long long)before.private_kib, (unsigned long long)after.private_kib);
	assert_true(APART_SANITIZED || after.private_kib < before.private_kib + MEMORY_KIB);
	apart_stop(&apart);
}

/* Every call comes back and says so; nobody hangs, nobody crashes; a new host serves at the same place. */
static void hosts_die_at_any_moment_and_clients_are_told(void **state)
{
	struct apart apart;
	struct apart_program programs[CLIENTS];

	(void)state;
	apart_start(&apart, VRAM_KIB, APERTURE);
	for (uint32_t round = 0; round < storm.hosts; round++) {
		for (uint32_t i = 0; i < CLIENTS; i++)
			start_client(&apart, &programs[i]);
		for (uint32_t i = 0; i < CLIENTS; i++)
			assert_true(apart_read(&programs[i], 1 + draw(20)));
		apart_kill(&apart.host);
		assert_int_equal(apart_wait(&apart.host), 256 + 9);
		for (uint32_t i = 0; i < CLIENTS; i++)
			assert_int_equal(apart_wait(&programs[i]), APART_REMOVED);
		apart_start_again(&apart, VRAM_KIB, APERTURE);
	}
	apart_stop(&apart);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_die_at_any_moment_and_nobody_notices),
		cmocka_unit_test(hosts_die_at_any_moment_and_clients_are_told),
	};

	apart_init(count, arguments);
	if (count > 3)
		storm.rounds = (uint32_t)strtoul(arguments[3], NULL, 0);
	if (count > 4)
		storm.hosts = (uint32_t)strtoul(arguments[4], NULL, 0);
	if (count > 5)
		storm.seed = strtoull(arguments[5], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
