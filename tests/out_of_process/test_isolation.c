/* SPDX-License-Identifier: MIT */
/*
 * Programs under load that retain and map every descriptor they are given, and search all mapped
 * memory all the time (look.c). With an intact host they find only their own words, also while
 * others are killed. With a host that is broken on purpose (broken.c) they find words of others.
 */
#include "remote.h"

#include <stdio.h>
#include <stdlib.h>

#define HOARDERS 3u
#define KILLS    4u

static void start(struct remote *remote, struct remote_program *program)
{
	static uint32_t seed;
	char text[16];

	snprintf(text, sizeof(text), "%u", ++seed);
	remote_client(remote, program, "hoard", text);
}

static void a_client_sees_no_memory_of_another(void **state)
{
	struct remote remote;
	struct remote_program programs[HOARDERS];

	(void)state;
	remote_start(&remote, 512, 1024);
	const struct remote_counts first = remote_count(remote.host.pid);
	for (uint32_t i = 0; i < HOARDERS; i++)
		start(&remote, &programs[i]);
	for (uint32_t round = 0; round < KILLS; round++) {
		struct remote_program *killed = &programs[round % HOARDERS];

		for (uint32_t i = 0; i < HOARDERS; i++)
			assert_true(remote_read(&programs[i], 40));
		remote_kill(killed);
		assert_int_equal(remote_wait(killed), 256 + 9);
		start(&remote, killed);
	}
	for (uint32_t i = 0; i < HOARDERS; i++) {
		assert_true(remote_read(&programs[i], 40));
		remote_finish(&programs[i]);
	}
	for (uint32_t i = 0; i < HOARDERS; i++)
		assert_int_equal(remote_wait(&programs[i]), REMOTE_DONE);
	remote_settle_to(&remote, &first);
	remote_stop(&remote);
}

/* Only the search (look.c) detects the broken host. */
static void a_host_that_shares_too_much_is_detected(void **state)
{
	struct remote remote;
	struct remote_program programs[2];

	(void)state;
	assert_int_equal(setenv("REMOTE_BROKEN", "1", 1), 0);
	remote_start(&remote, 4096, 4096);
	unsetenv("REMOTE_BROKEN");
	start(&remote, &programs[0]);
	start(&remote, &programs[1]);
	int code = remote_wait(&programs[0]);
	remote_kill(&programs[1]);
	(void)remote_wait(&programs[1]);
	assert_int_equal(code, REMOTE_FOREIGN);
	remote_kill(&remote.host);
	(void)remote_wait(&remote.host);
	remote_remove(&remote);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_sees_no_memory_of_another),
		cmocka_unit_test(a_host_that_shares_too_much_is_detected),
	};

	remote_init(count, arguments);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
