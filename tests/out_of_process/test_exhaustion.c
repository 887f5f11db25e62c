/* SPDX-License-Identifier: MIT */
/*
 * A client that takes all that it may have of the host, beside honest ones: whatever limit of
 * descriptors the host has, every call of the honest clients succeeds, and their content is what
 * they wrote.
 */
#include "remote.h"

#include <stdio.h>
#include <sys/resource.h>

#define MIB 1024u

enum { HONEST = 3, STEPS = 40 };

static void attack(rlim_t files, const char *connections)
{
	struct remote_program honest[HONEST], hostile;
	struct rlimit before, limit;
	struct remote remote;
	char seed[16];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	if (files)
		limit.rlim_cur = files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	/* Less video memory than the clients together use: content is evicted all the time. */
	remote_start(&remote, MIB, 4 * MIB);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (uint32_t i = 0; i < HONEST; i++) {
		snprintf(seed, sizeof(seed), "%u", i + 1);
		remote_client(&remote, &honest[i], "load", seed);
		assert_true(remote_read(&honest[i], STEPS));
	}
	remote_client(&remote, &hostile, "exhaust", connections);
	assert_true(remote_read(&hostile, 1));
	/* It has taken all that it may have. The rest is set aside or kept back. */
	if (files)
		assert_true(remote_count(remote.host.pid).descriptors >= files / 3);
	for (uint32_t i = 0; i < HONEST; i++) {
		remote_skip(&honest[i]);
		assert_true(remote_read(&honest[i], STEPS));
	}
	for (uint32_t i = 0; i < HONEST; i++) {
		remote_finish(&honest[i]);
		assert_int_equal(remote_wait(&honest[i]), REMOTE_DONE);
	}
	remote_finish(&hostile);
	(void)remote_wait(&hostile);
	remote_settle(&remote);
	remote_stop(&remote);
}

static void q_455_no_client_loses_anything_with_300_descriptors(void **state)
{
	(void)state;
	attack(300, "64");
}

static void q_455_no_client_loses_anything_with_400_descriptors(void **state)
{
	(void)state;
	attack(400, "64");
}

static void q_455_no_client_loses_anything_with_700_descriptors(void **state)
{
	(void)state;
	attack(700, "64");
}

static void q_455_no_client_loses_anything_with_the_default_limit(void **state)
{
	(void)state;
	attack(0, "2");
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_455_no_client_loses_anything_with_300_descriptors),
		cmocka_unit_test(q_455_no_client_loses_anything_with_400_descriptors),
		cmocka_unit_test(q_455_no_client_loses_anything_with_700_descriptors),
		cmocka_unit_test(q_455_no_client_loses_anything_with_the_default_limit),
	};

	remote_init(count, arguments);
	return cmocka_run_group_tests_name("out of process: exhaustion", tests, NULL, NULL);
}
