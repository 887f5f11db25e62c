/* SPDX-License-Identifier: MIT */
/*
 * Objects that programs share: by handles, by names, by descriptors over a socket, through fork and
 * through exec; and their state after one program is killed.
 */
#include "remote.h"

static void run(const char *what)
{
	struct remote remote;
	struct remote_program program;

	remote_start(&remote, 4096, 4096);
	remote_client(&remote, &program, "relatives", what);
	int code = remote_wait(&program);
	remote_stop(&remote);
	if (code == REMOTE_SKIPPED) /* the program has said why */
		skip();
	assert_int_equal(code, REMOTE_DONE);
}

static void kmx_19_a_keyed_mutex_whose_owner_is_killed_is_abandoned(void **state)
{
	(void)state;
	run("keyed");
}

static void kmx_19_a_call_that_waits_for_a_keyed_mutex_comes_back_abandoned(void **state)
{
	(void)state;
	run("inside");
}

static void mtx_06_a_mutex_whose_holder_is_killed_is_free(void **state)
{
	(void)state;
	run("mutex");
}

static void shr_26_a_descriptor_is_the_same_object_in_every_program(void **state)
{
	(void)state;
	run("nt");
}

#if !REMOTE_THREADS_SANITIZED
static void a_forked_program_has_no_connection(void **state)
{
	(void)state;
	run("fork");
}
#endif

static void a_descriptor_goes_through_exec(void **state)
{
	(void)state;
	run("exec");
}

static void a_name_is_found_by_another_program(void **state)
{
	(void)state;
	run("name");
}

static void sfl_27_shr_33_the_death_of_a_process_ends_waits_of_the_cpu_only(void **state)
{
	(void)state;
	run("cancelled");
}

static void rop_06_a_shared_allocation_outlives_its_killed_creator(void **state)
{
	(void)state;
	run("content");
}

/* Process ids are for the log only. */
static void kmx_19_a_process_with_the_id_of_a_killed_one_inherits_nothing(void **state)
{
	(void)state;
	run("reuse");
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kmx_19_a_keyed_mutex_whose_owner_is_killed_is_abandoned),
		cmocka_unit_test(kmx_19_a_call_that_waits_for_a_keyed_mutex_comes_back_abandoned),
		cmocka_unit_test(mtx_06_a_mutex_whose_holder_is_killed_is_free),
		cmocka_unit_test(shr_26_a_descriptor_is_the_same_object_in_every_program),
#if !REMOTE_THREADS_SANITIZED
		cmocka_unit_test(a_forked_program_has_no_connection),
#endif
		cmocka_unit_test(a_descriptor_goes_through_exec),
		cmocka_unit_test(a_name_is_found_by_another_program),
		cmocka_unit_test(sfl_27_shr_33_the_death_of_a_process_ends_waits_of_the_cpu_only),
		cmocka_unit_test(kmx_19_a_process_with_the_id_of_a_killed_one_inherits_nothing),
		cmocka_unit_test(rop_06_a_shared_allocation_outlives_its_killed_creator),
	};

	remote_init(count, arguments);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
