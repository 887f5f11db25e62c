/* SPDX-License-Identifier: MIT */
/*
 * test_storm HOST CLIENT [ROUNDS [HOSTS [SEED [VRAM-MIB APERTURE-MIB VIDMM RECORDING...]]]]: kills
 * clients under load at random moments, again and again, and hosts with all their clients
 * connected. The remaining clients find what they wrote. The host has freed everything of the
 * killed ones: memory objects, descriptors, allocations, threads. Scripts ask for more rounds than
 * the suite.
 *
 * For each recording, one more client plays it (`vidmm replay --verify stamps`), and starts again
 * when it has finished or was killed. It checks its content at every use, and reports a difference
 * at once.
 */
#include "remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOADS        4u
#define PLAYERS_MAX  8u
#define VRAM_KIB     512u /* less than one program needs: everything */
#define APERTURE     1024u
/*
 * Limits of the growth of the host's heap. MEMORY_BYTES: from half of the rounds to all of them;
 * the allocator's per-thread caches may grow, but 500 rounds that leak 1 KiB each exceed the limit.
 * STORE_BYTES: from before the first round, with what the host caches for reuse.
 */
#define MEMORY_BYTES (512u << 10)
#define STORE_BYTES  (4u << 20)

static struct {
	uint32_t rounds, hosts;
	uint64_t seed, vram_kib, aperture_kib;
	const char *vidmm;
	char **recordings;
	uint32_t players;
	int errors;         /* output of the players; a file in memory */
	uint64_t completed; /* recordings that were played to their end */
} storm = {.rounds = 25, .hosts = 4, .seed = 1, .vram_kib = VRAM_KIB, .aperture_kib = APERTURE};

/* The loads, then the players. */
struct programs {
	struct remote_program all[LOADS + PLAYERS_MAX];
};

static uint32_t draw(uint32_t below)
{
	storm.seed = storm.seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(storm.seed >> 33) % below;
}

static void start_one(struct remote *remote, struct programs *programs, uint32_t i)
{
	char seed[32];

	snprintf(seed, sizeof(seed), "%u", draw(UINT32_MAX));
	if (i < LOADS)
		remote_client(remote, &programs->all[i], "load", seed);
	else
		remote_player(remote, &programs->all[i], storm.vidmm, storm.recordings[i - LOADS],
			      storm.errors);
}

static void start_all(struct remote *remote, struct programs *programs)
{
	for (uint32_t i = 0; i < LOADS + storm.players; i++)
		start_one(remote, programs, i);
}

/* ---- players ---- */

/*
 * Is the line a message of LeakSanitizer about a player that was killed? LeakSanitizer inspects the
 * threads of a player that ends, from a separate process.
 */
static bool is_of_killed(const char *line, size_t length)
{
	static const char gone[] = "Unable to get registers from thread";

	return memmem(line, length, gone, sizeof(gone) - 1);
}

static void said_nothing(void)
{
	static char text[64 * 1024];
	ssize_t length = storm.errors < 0 ? 0 : pread(storm.errors, text, sizeof(text) - 1, 0);
	size_t line;

	text[length > 0 ? length : 0] = 0;
	for (const char *at = text; *at; at += line + (at[line] == '\n')) {
		line = strcspn(at, "\n");
		if (!is_of_killed(at, line))
			fail_msg("a player says: %s", at);
	}
}

/* A player that has finished starts again. */
static void play_on(struct remote *remote, struct programs *programs)
{
	for (uint32_t i = LOADS; i < LOADS + storm.players; i++) {
		if (!remote_has_ended(&programs->all[i]))
			continue;
		said_nothing();
		assert_int_equal(remote_wait(&programs->all[i]), 0);
		storm.completed++;
		start_one(remote, programs, i);
	}
}

/* They may run for a long time; errors that they have found so far are in the file. */
static void stop_players(struct programs *programs)
{
	for (uint32_t i = LOADS; i < LOADS + storm.players; i++) {
		remote_kill(&programs->all[i]);
		int code = remote_wait(&programs->all[i]);

		said_nothing();
		assert_true(code == 0 || code == 256 + 9);
	}
}

/* ---- programs are killed ---- */

/* Every program has made progress since the last check. */
static void kill_one(struct remote *remote, struct programs *programs)
{
	struct remote_program *witness = &programs->all[draw(LOADS)];
	uint32_t which = draw(LOADS + storm.players);

	remote_skip(witness);
	assert_true(remote_read(witness, 1 + draw(40)));
	play_on(remote, programs);
	remote_kill(&programs->all[which]);
	int code = remote_wait(&programs->all[which]);
	/* A player may have finished meanwhile. */
	assert_true(code == 256 + 9 || (which >= LOADS && code == 0));
	start_one(remote, programs, which);
}

/* All programs end cleanly and found what they wrote. */
static void finish_all(struct programs *programs)
{
	for (uint32_t i = 0; i < LOADS; i++)
		remote_finish(&programs->all[i]);
	for (uint32_t i = 0; i < LOADS; i++)
		assert_int_equal(remote_wait(&programs->all[i]), REMOTE_DONE);
	stop_players(programs);
}

/*
 * Kills a program ROUNDS times, then ends the others. Returns the bytes that the host has allocated
 * then.
 */
static uint64_t blow(struct remote *remote, uint32_t rounds, const struct remote_counts *first)
{
	struct programs programs;

	start_all(remote, &programs);
	for (uint32_t i = 0; i < rounds; i++)
		kill_one(remote, &programs);
	finish_all(&programs);
	remote_settle_to(remote, first);
	return remote_memory(remote);
}

static void killed_clients_affect_no_other_client(void **state)
{
	struct remote remote;

	(void)state;
	remote_start(&remote, storm.vram_kib, storm.aperture_kib);
	const struct remote_counts first = remote_count(remote.host.pid);
	const uint64_t before = remote_memory(&remote);
	const uint64_t half = blow(&remote, storm.rounds - storm.rounds / 2, &first);
	const uint64_t whole = blow(&remote, storm.rounds / 2, &first);
	const struct remote_counts last = remote_count(remote.host.pid);
	print_message("# %u kills: descriptors %u and %u, memory objects %u and %u, "
		      "mappings %u and %u, KiB allocated %llu, %llu and %llu, "
		      "private %llu and %llu; %llu recordings to their end\n",
		      storm.rounds, first.descriptors, last.descriptors, first.memory_objects,
		      last.memory_objects, first.mappings, last.mappings,
		      (unsigned long long)before >> 10, (unsigned long long)half >> 10,
		      (unsigned long long)whole >> 10, (unsigned long long)first.private_kib,
		      (unsigned long long)last.private_kib, (unsigned long long)storm.completed);
	assert_true(whole < half + MEMORY_BYTES && whole < before + STORE_BYTES);
	remote_stop(&remote);
}

/* ---- hosts are killed ---- */

/*
 * The client reports that the device has been removed and ends, or was not connected yet, or had
 * finished. No signal, no hang.
 */
static void players_are_told(struct programs *programs)
{
	for (uint32_t i = LOADS; i < LOADS + storm.players; i++) {
		int code = remote_wait(&programs->all[i]);

		if (code != 0 && code != 1 && code != 4)
			fail_msg("a player whose host is killed ends with %d", code);
	}
}

/*
 * Every call returns that the device has been removed; no client hangs or crashes. A new host
 * serves at the same path.
 */
static void clients_of_killed_hosts_get_device_removed(void **state)
{
	struct remote remote;
	struct programs programs;

	(void)state;
	remote_start(&remote, storm.vram_kib, storm.aperture_kib);
	for (uint32_t round = 0; round < storm.hosts; round++) {
		start_all(&remote, &programs);
		for (uint32_t i = 0; i < LOADS; i++)
			assert_true(remote_read(&programs.all[i], 1 + draw(20)));
		remote_kill(&remote.host);
		assert_int_equal(remote_wait(&remote.host), 256 + 9);
		for (uint32_t i = 0; i < LOADS; i++)
			assert_int_equal(remote_wait(&programs.all[i]), REMOTE_REMOVED);
		players_are_told(&programs);
		remote_start_again(&remote, storm.vram_kib, storm.aperture_kib);
	}
	remote_stop(&remote);
}

static void read_arguments(int count, char **arguments)
{
	if (count > 3)
		storm.rounds = (uint32_t)strtoul(arguments[3], NULL, 0);
	if (count > 4)
		storm.hosts = (uint32_t)strtoul(arguments[4], NULL, 0);
	if (count > 5)
		storm.seed = strtoull(arguments[5], NULL, 0);
	storm.errors = -1;
	if (count <= 9)
		return;
	storm.vram_kib = strtoull(arguments[6], NULL, 0) << 10;
	storm.aperture_kib = strtoull(arguments[7], NULL, 0) << 10;
	storm.vidmm = arguments[8];
	storm.recordings = arguments + 9;
	storm.players = (uint32_t)count - 9;
	storm.errors = memfd_create("errors", MFD_CLOEXEC);
	if (storm.players > PLAYERS_MAX || storm.errors < 0) {
		fprintf(stderr, "at most %u recordings\n", PLAYERS_MAX);
		exit(2);
	}
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_clients_affect_no_other_client),
		cmocka_unit_test(clients_of_killed_hosts_get_device_removed),
	};

	remote_init(count, arguments);
	read_arguments(count, arguments);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
