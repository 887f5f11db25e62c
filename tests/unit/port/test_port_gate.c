/* SPDX-License-Identifier: MIT */
/*
 * The call gate under two threads that both want exclusive use of the miniport: the worker for a
 * call of level two, the watchdog for a reset (level three).
 */
#include "port_fixture.h"

#include <stdatomic.h>

#define ROUNDS      200000
#define NO_DEADLINE UINT64_MAX

struct gate {
	struct port_fixture *f;
	_Atomic uint32_t users, overlaps, refused;
	_Atomic bool reset_ended;
};

/* The calling thread has exclusive use. Counts an overlap if another thread has it too. */
static void use(struct gate *g, uint32_t turns)
{
	if (atomic_fetch_add(&g->users, 1))
		atomic_fetch_add(&g->overlaps, 1);
	for (volatile uint32_t i = 0; i < turns; i++)
		;
	atomic_fetch_sub(&g->users, 1);
}

static void worker(void *arg)
{
	struct gate *g = arg;

	while (!atomic_load(&g->reset_ended)) {
		if (!vmm_port_exclude(g->f->port))
			continue;
		use(g, 20);
		vmm_port_admit(g->f->port);
	}
}

static void watchdog(void *arg)
{
	struct gate *g = arg;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (vmm_port_suspend(g->f->port, NO_DEADLINE))
			use(g, i % 64);
		else
			atomic_fetch_add(&g->refused, 1);
		vmm_port_resume(g->f->port);
		for (volatile uint32_t turn = 0; turn < i % 97; turn++)
			;
	}
	atomic_store(&g->reset_ended, true);
}

static void prs_03_tdr_06_a_reset_and_level_two_exclude_each_other(void **state)
{
	struct gate g = {.f = *state};
	struct vmm_os_thread *thread[2];

	port_fixture_run(g.f);
	assert_int_equal(vmm_os_thread_create(g.f->os, "worker", worker, &g, &thread[0]), VMM_OK);
	assert_int_equal(vmm_os_thread_create(g.f->os, "watchdog", watchdog, &g, &thread[1]),
			 VMM_OK);
	for (uint32_t i = 0; i < 2; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(atomic_load(&g.overlaps), 0);
	assert_int_equal(atomic_load(&g.refused), 0);
	/* Afterwards the gate is open: level two begins at once, and ends. */
	assert_true(vmm_port_exclude(g.f->port));
	vmm_port_admit(g.f->port);
	port_fixture_stop(g.f);
	assert_nothing_found(g.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			prs_03_tdr_06_a_reset_and_level_two_exclude_each_other,
			port_fixture_setup_linux, port_fixture_teardown),
	};

	return cmocka_run_group_tests_name("port_gate", tests, NULL, NULL);
}
