/* SPDX-License-Identifier: MIT */
/*
 * Thirty clients, six of them hostile: they take whatever the host gives, some never answer it.
 * Whatever limit of descriptors the host has, an honest client that it has accepted loses nothing:
 * every call succeeds, and every byte is the one it wrote. One that it does not accept gets the
 * documented status.
 */
#include "remote.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#define MIB 1024u

enum { BEFORE = 12, AFTER = 12, HONEST = BEFORE + AFTER, STEPS = 6 };

static const struct {
	const char *mode, *argument;
	bool stopped; /* it never answers from then on */
} hostile_kinds[] = {
	{"grab-existing", "", false}, {"grab-shared", "", true}, {"exhaust", "3", false},
	{"grab-threads", "", false},  {"exhaust", "2", true},    {"grab-sockets", "400", false},
};
#define HOSTILE (sizeof(hostile_kinds) / sizeof(hostile_kinds[0]))

static void host_with(struct remote *remote, rlim_t files)
{
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	if (files)
		limit.rlim_cur = files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	/* Less video memory than the clients together use: content is evicted all the time. */
	remote_start(remote, MIB, 4 * MIB);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Starts honest clients and returns how many the host accepted, in the order of `honest`. */
static uint32_t add_honest(struct remote *remote, struct remote_program *honest, uint32_t count,
			   uint32_t first_seed)
{
	uint32_t accepted = 0;
	char seed[16];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(seed, sizeof(seed), "%u", first_seed + i);
		remote_client(remote, &honest[accepted], "load", seed);
		if (remote_read(&honest[accepted], 1))
			accepted++;
		else
			assert_int_equal(remote_wait(&honest[accepted]), REMOTE_REFUSED);
	}
	return accepted;
}

static void attack(rlim_t files, uint32_t least)
{
	struct remote_program honest[HONEST], hostile[HOSTILE];
	struct remote remote;

	host_with(&remote, files);
	uint32_t count = add_honest(&remote, honest, BEFORE, 1);
	for (uint32_t i = 0; i < HOSTILE; i++) {
		remote_client(&remote, &hostile[i], hostile_kinds[i].mode,
			      hostile_kinds[i].argument);
		(void)remote_read(&hostile[i], 1); /* one that is refused has ended */
		if (hostile_kinds[i].stopped)
			(void)kill(hostile[i].pid, SIGSTOP);
	}
	assert_true(count >= least);
	count += add_honest(&remote, &honest[count], AFTER, 100);
	print_message("%u of %u honest clients are accepted, the host has %u descriptors\n", count,
		      HONEST, remote_count(remote.host.pid).descriptors);
	for (uint32_t i = 0; i < count; i++) {
		remote_skip(&honest[i]);
		assert_true(remote_read(&honest[i], STEPS));
	}
	for (uint32_t i = 0; i < count; i++) {
		remote_finish(&honest[i]);
		assert_int_equal(remote_wait(&honest[i]), REMOTE_DONE);
	}
	for (uint32_t i = 0; i < HOSTILE; i++) {
		remote_kill(&hostile[i]);
		(void)remote_wait(&hostile[i]);
	}
	remote_settle(&remote);
	remote_stop(&remote);
}

static void q_486_a_client_pays_for_its_own_exhaustion_with_300_descriptors(void **state)
{
	(void)state;
	attack(300, 4);
}

static void q_486_a_client_pays_for_its_own_exhaustion_with_400_descriptors(void **state)
{
	(void)state;
	attack(400, 8);
}

static void q_486_a_client_pays_for_its_own_exhaustion_with_700_descriptors(void **state)
{
	(void)state;
	attack(700, BEFORE);
}

static void q_486_a_client_pays_for_its_own_exhaustion_with_the_default_limit(void **state)
{
	(void)state;
	attack(0, BEFORE);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_486_a_client_pays_for_its_own_exhaustion_with_300_descriptors),
		cmocka_unit_test(q_486_a_client_pays_for_its_own_exhaustion_with_400_descriptors),
		cmocka_unit_test(q_486_a_client_pays_for_its_own_exhaustion_with_700_descriptors),
		cmocka_unit_test(q_486_a_client_pays_for_its_own_exhaustion_with_the_default_limit),
	};

	remote_init(count, arguments);
	return cmocka_run_group_tests_name("out of process: neighbors", tests, NULL, NULL);
}
