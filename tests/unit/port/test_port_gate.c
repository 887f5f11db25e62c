/* SPDX-License-Identifier: MIT */
/*
 * The call gate under threads that want exclusive use of the miniport, the worker for a call of
 * level two and the watchdog for a reset (level three), and under threads in DDI calls.
 */
#include "port_fixture.h"

#include <stdatomic.h>

#define ROUNDS      200000
#define CALLS       4000
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

struct callers {
	struct port_fixture *f;
	_Atomic uint32_t left, passed, refused, overlaps;
	_Atomic bool exclusive;
};

/* Every other DDI call makes a second one from inside. */
static void inside_miniport(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	static _Thread_local uint32_t depth, calls;
	struct callers *c = context;
	DXGKARG_ESCAPE args = {0};

	(void)m;
	if (call->ddi != VIDMM_DDI_ESCAPE)
		return;
	if (atomic_load(&c->exclusive))
		atomic_fetch_add(&c->overlaps, 1);
	if (!depth && ++calls % 2) {
		depth++;
		(void)!vmm_port_escape(c->f->port, &args);
		depth--;
	}
	if (atomic_load(&c->exclusive))
		atomic_fetch_add(&c->overlaps, 1);
}

static void caller(void *arg)
{
	struct callers *c = arg;

	for (uint32_t i = 0; i < CALLS; i++) {
		DXGKARG_ESCAPE args = {0};
		NTSTATUS status = vmm_port_escape(c->f->port, &args);

		atomic_fetch_add(NT_SUCCESS(status) ? &c->passed : &c->refused, 1);
	}
	atomic_fetch_sub(&c->left, 1);
}

/* A call passes the gate or is refused; no thread is in the miniport during a reset. */
static void tdr_06_no_thread_is_inside_the_miniport_during_a_reset(void **state)
{
	struct callers c = {.f = *state, .left = 2};
	struct vmm_os_thread *thread[2];

	port_fixture_run(c.f);
	c.f->m->hook = inside_miniport;
	c.f->m->hook_context = &c;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(vmm_os_thread_create(c.f->os, "caller", caller, &c, &thread[i]),
				 VMM_OK);
	while (atomic_load(&c.left)) {
		assert_true(vmm_port_suspend(c.f->port, NO_DEADLINE));
		atomic_store(&c.exclusive, true);
		for (volatile uint32_t turn = 0; turn < 200; turn++)
			;
		atomic_store(&c.exclusive, false);
		vmm_port_resume(c.f->port);
		vmm_os_yield(c.f->os);
	}
	for (uint32_t i = 0; i < 2; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(atomic_load(&c.overlaps), 0);
	assert_int_equal(atomic_load(&c.passed) + atomic_load(&c.refused), 2 * CALLS);
	assert_int_equal(vmm_port_inside(c.f->port), 0);
	c.f->m->hook = NULL;
	port_fixture_stop(c.f);
	assert_nothing_found(c.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			prs_03_tdr_06_a_reset_and_level_two_exclude_each_other,
			port_fixture_setup_linux, port_fixture_teardown),
		cmocka_unit_test_setup_teardown(
			tdr_06_no_thread_is_inside_the_miniport_during_a_reset,
			port_fixture_setup_linux, port_fixture_teardown),
	};

	return cmocka_run_group_tests_name("port_gate", tests, NULL, NULL);
}
