/* SPDX-License-Identifier: MIT */
/*
 * The end of a client or of its host, one case at a time: what the client, the host and others have
 * afterwards.
 */
#include "remote.h"

#include <stdio.h>

#define MIB 1024u

static void locked_memory_of_a_client_outlives_the_host(void **state)
{
	struct remote remote;
	struct remote_program holder;

	(void)state;
	remote_start(&remote, 4 * MIB, 4 * MIB);
	remote_client(&remote, &holder, "hold", "0x12345678");
	assert_true(remote_read(&holder, 1));
	remote_kill(&remote.host);
	assert_int_equal(remote_wait(&remote.host), 256 + 9);
	remote_finish(&holder);
	assert_int_equal(remote_wait(&holder), REMOTE_REMOVED);
	remote_remove(&remote);
}

static void the_host_frees_the_memory_of_a_killed_client(void **state)
{
	struct remote remote;
	struct remote_program holder;

	(void)state;
	remote_start(&remote, 4 * MIB, 4 * MIB);
	const struct remote_counts before = remote_count(remote.host.pid);
	remote_client(&remote, &holder, "hold", "2");
	assert_true(remote_read(&holder, 1));
	const struct remote_counts held = remote_count(remote.host.pid);
	assert_true(held.descriptors > before.descriptors);
	remote_kill(&holder);
	assert_int_equal(remote_wait(&holder), 256 + 9);
	remote_settle_to(&remote, &before);
	remote_stop(&remote);
}

static void a_wait_ends_with_the_host(void **state)
{
	struct remote remote;
	struct remote_program waiter;

	(void)state;
	remote_start(&remote, 4 * MIB, 4 * MIB);
	remote_client(&remote, &waiter, "wait", "");
	assert_true(remote_read(&waiter, 1));
	remote_kill(&remote.host);
	assert_int_equal(remote_wait(&remote.host), 256 + 9);
	assert_int_equal(remote_wait(&waiter), REMOTE_REMOVED);
	remote_remove(&remote);
}

enum { SLEEPERS = 3 };

/*
 * Programs with threads in every place where a thread can wait, most of them in the page of a
 * shared fence (docs/adr/0003).
 */
static void fall_asleep(struct remote *remote, struct remote_program programs[SLEEPERS])
{
	remote_client(remote, &programs[0], "asleep", "make");
	assert_true(remote_read(&programs[0], 1));
	remote_client(remote, &programs[1], "asleep", "sleep");
	assert_true(remote_read(&programs[1], 1));
	remote_client(remote, &programs[2], "asleep", "open");
	assert_true(remote_read(&programs[0], 1));
	assert_true(remote_read(&programs[1], 1));
	assert_true(remote_read(&programs[2], 2));
}

static void wake_up(struct remote_program programs[SLEEPERS])
{
	for (uint32_t i = 0; i < SLEEPERS; i++)
		assert_int_equal(remote_wait(&programs[i]), REMOTE_REMOVED);
}

static void all_sleepers_wake_when_the_host_is_killed(void **state)
{
	struct remote_program programs[SLEEPERS];
	struct remote remote;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		remote_start(&remote, 4 * MIB, 4 * MIB);
		fall_asleep(&remote, programs);
		remote_kill(&remote.host);
		assert_int_equal(remote_wait(&remote.host), 256 + 9);
		wake_up(programs);
		remote_remove(&remote);
	}
}

/*
 * Exactly this status: a wait must not have been cancelled because another program's opening of the
 * fence ended just before.
 */
static void all_sleepers_wake_when_the_host_ends(void **state)
{
	struct remote_program programs[SLEEPERS];
	struct remote remote;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		remote_start(&remote, 4 * MIB, 4 * MIB);
		fall_asleep(&remote, programs);
		remote_stop(&remote);
		wake_up(programs);
	}
}

static void a_waiter_that_is_killed_leaves_nothing_behind(void **state)
{
	struct remote remote;
	struct remote_program waiter;

	(void)state;
	remote_start(&remote, 4 * MIB, 4 * MIB);
	remote_client(&remote, &waiter, "wait", "");
	assert_true(remote_read(&waiter, 1));
	remote_kill(&waiter);
	assert_int_equal(remote_wait(&waiter), 256 + 9);
	remote_settle(&remote);
	remote_stop(&remote);
}

/* Runs a client that checks everything itself. */
static void run_one(const char *mode)
{
	struct remote remote;
	struct remote_program program;

	remote_start(&remote, 4 * MIB, 4 * MIB);
	remote_client(&remote, &program, mode, "");
	assert_int_equal(remote_wait(&program), REMOTE_DONE);
	remote_stop(&remote);
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

static void many_short_connections_leave_nothing_in_client_or_host(void **state)
{
	struct remote remote;
	struct remote_program program;

	(void)state;
	remote_start(&remote, 4 * MIB, 4 * MIB);
	const struct remote_counts before = remote_count(remote.host.pid);
	remote_client(&remote, &program, "cycle", "200");
	assert_int_equal(remote_wait(&program), REMOTE_DONE);
	remote_settle_to(&remote, &before);
	remote_stop(&remote);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locked_memory_of_a_client_outlives_the_host),
		cmocka_unit_test(the_host_frees_the_memory_of_a_killed_client),
		cmocka_unit_test(a_wait_ends_with_the_host),
		cmocka_unit_test(all_sleepers_wake_when_the_host_is_killed),
		cmocka_unit_test(all_sleepers_wake_when_the_host_ends),
		cmocka_unit_test(a_waiter_that_is_killed_leaves_nothing_behind),
		cmocka_unit_test(a_fence_cannot_be_written_to),
		cmocka_unit_test(a_protected_allocation_is_never_mapped),
		cmocka_unit_test(many_short_connections_leave_nothing_in_client_or_host),
	};

	remote_init(count, arguments);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
