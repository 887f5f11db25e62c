/* SPDX-License-Identifier: MIT */
/*
 * What is left of a client, for itself and for others, when it or its host ends; one case at a
 * time.
 */
#include "apart.h"

#include <stdio.h>

#define MIB 1024u

static void what_a_client_has_locked_outlives_the_host(void **state)
{
	struct apart apart;
	struct apart_program holder;

	(void)state;
	apart_start(&apart, 4 * MIB, 4 * MIB);
	apart_client(&apart, &holder, "hold", "0x12345678");
	assert_true(apart_read(&holder, 1));
	apart_kill(&apart.host);
	assert_int_equal(apart_wait(&apart.host), 256 + 9);
	apart_finish(&holder);
	assert_int_equal(apart_wait(&holder), APART_REMOVED);
	apart_remove(&apart);
}

static void what_a_killed_client_had_locked_is_gone_from_the_host(void **state)
{
	struct apart apart;
	struct apart_program holder;

	(void)state;
	apart_start(&apart, 4 * MIB, 4 * MIB);
	const struct apart_counts before = apart_count(apart.host.pid);
	apart_client(&apart, &holder, "hold", "2");
	assert_true(apart_read(&holder, 1));
	const struct apart_counts held = apart_count(apart.host.pid);
	assert_true(held.descriptors > before.descriptors);
	apart_kill(&holder);
	assert_int_equal(apart_wait(&holder), 256 + 9);
	apart_settle_to(&apart, &before);
	apart_stop(&apart);
}

static void a_wait_ends_with_the_host(void **state)
{
	struct apart apart;
	struct apart_program waiter;

	(void)state;
	apart_start(&apart, 4 * MIB, 4 * MIB);
	apart_client(&apart, &waiter, "wait", "");
	assert_true(apart_read(&waiter, 1));
	apart_kill(&apart.host);
	assert_int_equal(apart_wait(&apart.host), 256 + 9);
	assert_int_equal(apart_wait(&waiter), APART_REMOVED);
	apart_remove(&apart);
}

enum { SLEEPERS = 3 };

/*
 * Programs whose threads are in all places where one can be, most of them in the page of a fence
 * that all have (docs/adr/0003).
 */
static void fall_asleep(struct apart *apart, struct apart_program programs[SLEEPERS])
{
	apart_client(apart, &programs[0], "asleep", "make");
	assert_true(apart_read(&programs[0], 1));
	apart_client(apart, &programs[1], "asleep", "sleep");
	assert_true(apart_read(&programs[1], 1));
	apart_client(apart, &programs[2], "asleep", "open");
	assert_true(apart_read(&programs[0], 1));
	assert_true(apart_read(&programs[1], 1));
	assert_true(apart_read(&programs[2], 2));
}

static void wake_up(struct apart_program programs[SLEEPERS])
{
	for (uint32_t i = 0; i < SLEEPERS; i++)
		assert_int_equal(apart_wait(&programs[i]), APART_REMOVED);
}

static void nobody_sleeps_on_when_the_host_is_killed(void **state)
{
	struct apart_program programs[SLEEPERS];
	struct apart apart;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		apart_start(&apart, 4 * MIB, 4 * MIB);
		fall_asleep(&apart, programs);
		apart_kill(&apart.host);
		assert_int_equal(apart_wait(&apart.host), 256 + 9);
		wake_up(programs);
		apart_remove(&apart);
	}
}

/*
 * Nothing but that: not that a wait was cancelled because another program's opening of the fence
 * has ended a moment before.
 */
static void nobody_sleeps_on_when_the_host_ends(void **state)
{
	struct apart_program programs[SLEEPERS];
	struct apart apart;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		apart_start(&apart, 4 * MIB, 4 * MIB);
		fall_asleep(&apart, programs);
		apart_stop(&apart);
		wake_up(programs);
	}
}

static void a_waiter_that_is_killed_leaves_nothing_behind(void **state)
{
	struct apart apart;
	struct apart_program waiter;

	(void)state;
	apart_start(&apart, 4 * MIB, 4 * MIB);
	apart_client(&apart, &waiter, "wait", "");
	assert_true(apart_read(&waiter, 1));
	apart_kill(&waiter);
	assert_int_equal(apart_wait(&waiter), 256 + 9);
	apart_settle(&apart);
	apart_stop(&apart);
}

/* A client that finds out by itself whether all is well. */
static void run_one(const char *mode)
{
	struct apart apart;
	struct apart_program program;

	apart_start(&apart, 4 * MIB, 4 * MIB);
	apart_client(&apart, &program, mode, "");
	assert_int_equal(apart_wait(&program), APART_DONE);
	apart_stop(&apart);
}

static void a_fence_cannot_be_written_to(void **state)
{
	(void)state;
	run_one("fences");
}

static void a_protected_allocation_is_never_mapped(void **state)
{
	(void)state;
	run_one("protected");
}

static void many_short_lives_leave_nothing_in_either(void **state)
{
	struct apart apart;
	struct apart_program program;

	(void)state;
	apart_start(&apart, 4 * MIB, 4 * MIB);
	const struct apart_counts before = apart_count(apart.host.pid);
	apart_client(&apart, &program, "cycle", "200");
	assert_int_equal(apart_wait(&program), APART_DONE);
	apart_settle_to(&apart, &before);
	apart_stop(&apart);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_client_has_locked_outlives_the_host),
		cmocka_unit_test(what_a_killed_client_had_locked_is_gone_from_the_host),
		cmocka_unit_test(a_wait_ends_with_the_host),
		cmocka_unit_test(nobody_sleeps_on_when_the_host_is_killed),
		cmocka_unit_test(nobody_sleeps_on_when_the_host_ends),
		cmocka_unit_test(a_waiter_that_is_killed_leaves_nothing_behind),
		cmocka_unit_test(a_fence_cannot_be_written_to),
		cmocka_unit_test(a_protected_allocation_is_never_mapped),
		cmocka_unit_test(many_short_lives_leave_nothing_in_either),
	};

	apart_init(count, arguments);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
