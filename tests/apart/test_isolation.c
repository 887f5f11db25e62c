/* SPDX-License-Identifier: MIT */
/*
 * Programs under load that keep every descriptor they are given and map it whole, and look through
 * all that is mapped into them, all the time (look.c). With an intact host they find only their own
 * words, also while others are killed. With a host that is broken on purpose (broken.c) they find
 * others.
 */
#include "apart.h"

#include <stdio.h>
#include <stdlib.h>

#define HOARDERS 3u
#define KILLS    4u

static void start(struct apart *apart, struct apart_program *program)
{
	static uint32_t seed;
	char text[16];

	snprintf(text, sizeof(text), "%u", ++seed);
	apart_client(apart, program, "hoard", text);
}

static void nobody_sees_what_is_anothers(void **state)
{
	struct apart apart;
	struct apart_program programs[HOARDERS];

	(void)state;
	apart_start(&apart, 512, 1024);
	const struct apart_counts first = apart_count(apart.host.pid);
	for (uint32_t i = 0; i < HOARDERS; i++)
		start(&apart, &programs[i]);
	for (uint32_t round = 0; round < KILLS; round++) {
		struct apart_program *killed = &programs[round % HOARDERS];

		for (uint32_t i = 0; i < HOARDERS; i++)
			assert_true(apart_read(&programs[i], 40));
		apart_kill(killed);
		assert_int_equal(apart_wait(killed), 256 + 9);
		start(&apart, killed);
	}
	for (uint32_t i = 0; i < HOARDERS; i++) {
		assert_true(apart_read(&programs[i], 40));
		apart_finish(&programs[i]);
	}
	for (uint32_t i = 0; i < HOARDERS; i++)
		assert_int_equal(apart_wait(&programs[i]), APART_DONE);
	apart_settle_to(&apart, &first);
	apart_stop(&apart);
}

/* Only the search (look.c) detects the broken host. */
static void a_host_that_shows_too_much_is_found_out(void **state)
{
	struct apart apart;
	struct apart_program programs[2];

	(void)state;
	assert_int_equal(setenv("APART_BROKEN", "1", 1), 0);
	apart_start(&apart, 4096, 4096);
	unsetenv("APART_BROKEN");
	start(&apart, &programs[0]);
	start(&apart, &programs[1]);
	int code = apart_wait(&programs[0]);
	apart_kill(&programs[1]);
	(void)apart_wait(&programs[1]);
	assert_int_equal(code, APART_FOREIGN);
	apart_kill(&apart.host);
	(void)apart_wait(&apart.host);
	apart_remove(&apart);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_sees_what_is_anothers),
		cmocka_unit_test(a_host_that_shows_too_much_is_found_out),
	};

	apart_init(count, arguments);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
