/* SPDX-License-Identifier: MIT */
/* IRQL, DPCs, spin locks and the interrupt lock. */
#include "nt_world.h"

/* ---- IRQL ---- */

static void raise_and_lower_set_the_irql(void **state)
{
	KIRQL before;

	(void)state;
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	KeRaiseIrql(APC_LEVEL, &before);
	assert_int_equal(before, PASSIVE_LEVEL);
	KeRaiseIrql(DISPATCH_LEVEL, &before);
	assert_int_equal(before, APC_LEVEL);
	assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
	KeLowerIrql(before);
	assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
	KeLowerIrql(PASSIVE_LEVEL);
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static void raising_down_or_lowering_up_changes_nothing(void **state)
{
	struct world *world = *state;
	KIRQL before;

	KeRaiseIrql(DISPATCH_LEVEL, &before);
	KeRaiseIrql(APC_LEVEL, &before);
	expect_violation(world, "NT-02", "KeRaiseIrql", "from IRQL 2 to the lower 1");
	assert_int_equal(world->irql, DISPATCH_LEVEL);
	assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
	KeLowerIrql(PASSIVE_LEVEL);
	KeLowerIrql(DISPATCH_LEVEL);
	expect_violation(world, "NT-02", "KeLowerIrql", "from IRQL 0 to the higher 2");
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static void read_irql(PVOID context)
{
	*(KIRQL *)context = KeGetCurrentIrql();
}

static void every_thread_has_its_own_irql(void **state)
{
	KIRQL before, in_thread = 99;
	PVOID thread = start_thread(read_irql, &in_thread);

	(void)state;
	KeRaiseIrql(APC_LEVEL, &before);
	end_thread(thread);
	KeLowerIrql(before);
	assert_int_equal(in_thread, PASSIVE_LEVEL);
}

static void services_above_their_maximum_irql_are_reported(void **state)
{
	struct world *world = *state;
	LARGE_INTEGER zero = {.QuadPart = 0}, short_time = relative_us(1);
	uint32_t before = vmm_nt_raise(world->nt, DISPATCH_LEVEL);
	HANDLE handle;
	KEVENT event;
	PVOID block;

	assert_int_equal(PsCreateSystemThread(&handle, 0, NULL, NULL, NULL, NULL, NULL),
			 STATUS_INVALID_PARAMETER);
	expect_violation(world, "NT-01", "PsCreateSystemThread",
			 "called at IRQL 2, its limit is 0");
	block = ExAllocatePool2(POOL_FLAG_PAGED, 8, TAG);
	expect_violation(world, "NT-01", "ExAllocatePool2", "called at IRQL 2, its limit is 1");
	ExFreePoolWithTag(block, TAG);
	expect_violation(world, "NT-01", "ExFreePoolWithTag", "limit is 1");
	KeDelayExecutionThread(KernelMode, FALSE, &short_time);
	expect_violation(world, "NT-03", "KeDelayExecutionThread", "waits at IRQL 2");
	KeInitializeEvent(&event, NotificationEvent, TRUE);
	/* Asking is allowed at DISPATCH, waiting is not. */
	assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &zero),
			 STATUS_SUCCESS);
	assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL),
			 STATUS_SUCCESS);
	expect_violation(world, "NT-03", "KeWaitForSingleObject", "waits at IRQL 2");
	PAGED_CODE();
	expect_violation(world, "NT-01", "PAGED_CODE",
			 "services_above_their_maximum_irql_are_reported entered at IRQL 2");
	KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
	vmm_nt_raise(world->nt, VMM_NT_DEVICE);
	KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
	expect_violation(world, "NT-01", "KeSetEvent", "called at IRQL 5, its limit is 2");
	assert_int_equal(world->irql, VMM_NT_DEVICE);
	vmm_nt_lower(world->nt, before);
}

/* ---- DPCs ---- */

struct dpc_log {
	struct world *world;
	KDPC dpc, second;
	uint32_t runs, second_runs;
	KIRQL irql;
	PVOID argument1, argument2;
	bool requeue, free_itself, leave_low;
};

static VOID log_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
	struct dpc_log *log = context;

	log->runs++;
	log->irql = KeGetCurrentIrql();
	log->argument1 = argument1;
	log->argument2 = argument2;
	if (log->requeue) {
		log->requeue = false;
		assert_true(KeInsertQueueDpc(dpc, NULL, NULL));
		assert_int_equal(log->runs, 1); /* not entered again while it runs */
	}
	if (log->leave_low)
		KeLowerIrql(PASSIVE_LEVEL);
}

static VOID log_second(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
	struct dpc_log *log = context;

	(void)dpc, (void)argument1, (void)argument2;
	/* Queued behind the first one. */
	assert_int_equal(log->runs, 1);
	log->second_runs++;
}

static void a_dpc_runs_at_once_below_dispatch(void **state)
{
	struct dpc_log log = {.world = *state};

	KeInitializeDpc(&log.dpc, log_dpc, &log);
	assert_true(KeInsertQueueDpc(&log.dpc, &log, state));
	assert_int_equal(log.runs, 1);
	assert_int_equal(log.irql, DISPATCH_LEVEL);
	assert_ptr_equal(log.argument1, &log);
	assert_ptr_equal(log.argument2, state);
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static void dpcs_wait_until_the_irql_drops_and_keep_their_order(void **state)
{
	struct dpc_log log = {.world = *state};
	uint32_t before = vmm_nt_raise(log.world->nt, VMM_NT_DEVICE);

	KeInitializeDpc(&log.dpc, log_dpc, &log);
	KeInitializeDpc(&log.second, log_second, &log);
	assert_true(KeInsertQueueDpc(&log.dpc, (PVOID)1, NULL));
	assert_true(KeInsertQueueDpc(&log.second, NULL, NULL));
	assert_false(KeInsertQueueDpc(&log.dpc, (PVOID)2, NULL));
	assert_int_equal(log.runs, 0);
	vmm_nt_lower(log.world->nt, DISPATCH_LEVEL);
	assert_int_equal(log.runs, 0);
	vmm_nt_lower(log.world->nt, before);
	assert_int_equal(log.runs, 1);
	assert_int_equal(log.second_runs, 1);
	assert_ptr_equal(log.argument1, (PVOID)1);
}

static void a_removed_dpc_does_not_run(void **state)
{
	struct dpc_log log = {.world = *state};
	uint32_t before = vmm_nt_raise(log.world->nt, DISPATCH_LEVEL);

	KeInitializeDpc(&log.dpc, log_dpc, &log);
	assert_false(KeRemoveQueueDpc(&log.dpc));
	assert_true(KeInsertQueueDpc(&log.dpc, NULL, NULL));
	assert_true(KeRemoveQueueDpc(&log.dpc));
	vmm_nt_lower(log.world->nt, before);
	assert_int_equal(log.runs, 0);
}

static void a_running_dpc_can_be_queued_again(void **state)
{
	struct dpc_log log = {.world = *state, .requeue = true};

	KeInitializeDpc(&log.dpc, log_dpc, &log);
	assert_true(KeInsertQueueDpc(&log.dpc, NULL, NULL));
	assert_int_equal(log.runs, 2);
}

static VOID free_own_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
	(void)argument1, (void)argument2;
	++*(uint32_t *)context;
	vmm_free(dpc);
}

static void a_dpc_may_free_itself(void **state)
{
	uint32_t runs = 0;
	KDPC *dpc = vmm_calloc(1, sizeof(*dpc));

	(void)state;
	KeInitializeDpc(dpc, free_own_dpc, &runs);
	assert_true(KeInsertQueueDpc(dpc, NULL, NULL));
	assert_int_equal(runs, 1);
}

static void a_dpc_that_returns_at_another_irql_is_reported(void **state)
{
	struct dpc_log log = {.world = *state, .leave_low = true};

	KeInitializeDpc(&log.dpc, log_dpc, &log);
	KeInsertQueueDpc(&log.dpc, NULL, NULL);
	expect_violation(log.world, "NT-02", "DPC routine", "entered at IRQL 2, returned at 0");
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static void an_uninitialized_dpc_is_reported(void **state)
{
	KDPC dpc = {0};

	assert_false(KeInsertQueueDpc(&dpc, NULL, NULL));
	expect_violation((struct world *)*state, "NT-07", "KeInsertQueueDpc", "not initialized");
}

struct slow_dpc {
	struct world *world;
	KDPC dpc;
	KEVENT entered;
	_Atomic uint32_t go_on;
	_Atomic uint32_t finished;
};

static VOID run_slowly(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
	struct slow_dpc *slow = context;

	(void)dpc, (void)argument1, (void)argument2;
	KeSetEvent(&slow->entered, IO_NO_INCREMENT, FALSE);
	while (!atomic_load(&slow->go_on))
		YieldProcessor();
	atomic_store(&slow->finished, 1);
}

static void queue_slow_dpc(PVOID context)
{
	struct slow_dpc *slow = context;

	KeInsertQueueDpc(&slow->dpc, NULL, NULL);
}

static void let_it_go_on(PVOID context)
{
	struct slow_dpc *slow = context;
	LARGE_INTEGER delay = relative_us(200);

	KeDelayExecutionThread(KernelMode, FALSE, &delay);
	atomic_store(&slow->go_on, 1);
}

static void flush_waits_for_dpcs_on_other_threads(void **state)
{
	struct slow_dpc slow = {.world = *state};
	PVOID runner, helper;

	KeInitializeEvent(&slow.entered, NotificationEvent, FALSE);
	KeInitializeDpc(&slow.dpc, run_slowly, &slow);
	runner = start_thread(queue_slow_dpc, &slow);
	KeWaitForSingleObject(&slow.entered, Executive, KernelMode, FALSE, NULL);
	helper = start_thread(let_it_go_on, &slow);
	KeFlushQueuedDpcs();
	assert_int_equal(atomic_load(&slow.finished), 1);
	end_thread(runner);
	end_thread(helper);
}

struct queueing {
	struct world *world;
	KDPC dpc;
	_Atomic uint32_t inside, entered_twice, runs, queued;
	struct vmm_nt_interrupt interrupt;
	uint64_t counter; /* guarded by interrupt */
};

enum { CROWD = 4, CROWD_ROUNDS = 500 };

static VOID look_for_others(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
	struct queueing *queueing = context;

	(void)dpc, (void)argument1, (void)argument2;
	if (atomic_fetch_add(&queueing->inside, 1))
		atomic_fetch_add(&queueing->entered_twice, 1);
	YieldProcessor();
	atomic_fetch_add(&queueing->runs, 1);
	atomic_fetch_sub(&queueing->inside, 1);
}

static void queue_the_same_dpc(PVOID context)
{
	struct queueing *queueing = context;

	for (int i = 0; i < CROWD_ROUNDS; i++) {
		uint64_t *slots = VMM_OS_OWN(vmm_os_current())->slot;
		uint32_t before = vmm_nt_interrupt_enter(&queueing->interrupt, slots);

		queueing->counter++;
		if (KeInsertQueueDpc(&queueing->dpc, NULL, NULL))
			atomic_fetch_add(&queueing->queued, 1);
		vmm_nt_interrupt_leave(&queueing->interrupt, slots, before);
	}
}

static void a_dpc_runs_on_one_thread_at_a_time_and_once_per_queueing(void **state)
{
	struct queueing queueing = {.world = *state};
	PVOID thread[CROWD];

	KeInitializeDpc(&queueing.dpc, look_for_others, &queueing);
	vmm_nt_interrupt_init(&queueing.interrupt, queueing.world->nt, 100, "interrupt");
	for (int i = 0; i < CROWD; i++)
		thread[i] = start_thread(queue_the_same_dpc, &queueing);
	for (int i = 0; i < CROWD; i++)
		end_thread(thread[i]);
	KeFlushQueuedDpcs();
	assert_int_equal(atomic_load(&queueing.entered_twice), 0);
	assert_int_equal(atomic_load(&queueing.runs), atomic_load(&queueing.queued));
	assert_int_equal(queueing.counter, CROWD * CROWD_ROUNDS);
	vmm_nt_interrupt_finish(&queueing.interrupt);
}

/* ---- spin locks ---- */

static void a_spin_lock_holds_dispatch(void **state)
{
	KSPIN_LOCK lock;
	KIRQL before;

	(void)state;
	KeInitializeSpinLock(&lock);
	assert_true(KeTestSpinLock(&lock));
	KeAcquireSpinLock(&lock, &before);
	assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
	assert_false(KeTestSpinLock(&lock));
	KeReleaseSpinLock(&lock, before);
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	KeRaiseIrql(DISPATCH_LEVEL, &before);
	KeAcquireSpinLockAtDpcLevel(&lock);
	KeReleaseSpinLockFromDpcLevel(&lock);
	assert_true(KeTestSpinLock(&lock));
	KeLowerIrql(before);
}

static void releasing_the_last_spin_lock_runs_dpcs(void **state)
{
	struct dpc_log log = {.world = *state};
	KSPIN_LOCK outer = 0, inner = 0;
	KIRQL irql, inner_irql;

	KeInitializeDpc(&log.dpc, log_dpc, &log);
	KeAcquireSpinLock(&outer, &irql);
	KeAcquireSpinLock(&inner, &inner_irql);
	KeInsertQueueDpc(&log.dpc, NULL, NULL);
	KeReleaseSpinLock(&inner, inner_irql);
	assert_int_equal(log.runs, 0);
	KeReleaseSpinLock(&outer, irql);
	assert_int_equal(log.runs, 1);
}

static void misuse_of_a_spin_lock_is_reported(void **state)
{
	struct world *world = *state;
	KSPIN_LOCK lock = 0;
	KIRQL before, again;

	KeAcquireSpinLockAtDpcLevel(&lock);
	expect_violation(world, "NT-04", "KeAcquireSpinLockAtDpcLevel", "called at IRQL 0");
	KeReleaseSpinLockFromDpcLevel(&lock);
	expect_violation(world, "NT-04", "KeReleaseSpinLockFromDpcLevel", "called at IRQL 0");
	KeAcquireSpinLock(&lock, &before);
	KeAcquireSpinLock(&lock, &again);
	expect_violation(world, "NT-04", "KeAcquireSpinLock", "holds this spin lock already");
	KeReleaseSpinLock(&lock, before);
	KeRaiseIrql(DISPATCH_LEVEL, &before);
	KeReleaseSpinLock(&lock, before);
	expect_violation(world, "NT-04", "KeReleaseSpinLock", "held by 0 (0: no thread)");
	assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
	KeLowerIrql(before);
}

struct spinners {
	struct world *world;
	KSPIN_LOCK lock;
	uint64_t counter;
	uint32_t rounds;
};

static void count_under_spin_lock(PVOID context)
{
	struct spinners *s = context;

	for (uint32_t i = 0; i < s->rounds; i++) {
		uint64_t value;
		KIRQL irql;

		KeAcquireSpinLock(&s->lock, &irql);
		value = s->counter;
		/*
		 * Another thread may run here, as on another processor; on sim, if the seed says
		 * so.
		 */
		if (i % 128 == 0)
			YieldProcessor();
		s->counter = value + 1;
		KeReleaseSpinLock(&s->lock, irql);
	}
}

static void spin_locks_exclude(void **state)
{
	struct spinners s = {.world = *state, .rounds = 3000};
	PVOID thread[4];

	for (int i = 0; i < 4; i++)
		thread[i] = start_thread(count_under_spin_lock, &s);
	for (int i = 0; i < 4; i++)
		end_thread(thread[i]);
	assert_int_equal(s.counter, 12000);
}

/* ---- the interrupt lock ---- */

static void the_interrupt_lock_is_at_device_level(void **state)
{
	struct world *world = *state;
	struct dpc_log log = {.world = world};
	struct vmm_nt_interrupt interrupt;
	uint64_t *slots = VMM_OS_OWN(world->os)->slot;
	uint32_t before;

	vmm_nt_interrupt_init(&interrupt, world->nt, 100, "interrupt");
	KeInitializeDpc(&log.dpc, log_dpc, &log);
	before = vmm_nt_interrupt_enter(&interrupt, slots);
	assert_int_equal(KeGetCurrentIrql(), VMM_NT_DEVICE);
	assert_true(KeInsertQueueDpc(&log.dpc, NULL, NULL));
	assert_int_equal(log.runs, 0);
	vmm_nt_interrupt_leave(&interrupt, slots, before);
	assert_int_equal(log.runs, 1);
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);

	before = vmm_nt_interrupt_enter(&interrupt, slots);
	vmm_nt_lower(world->nt, PASSIVE_LEVEL);
	vmm_nt_interrupt_leave(&interrupt, slots, before);
	expect_violation(world, "NT-02", "interrupt lock", "entered at IRQL 5 returned at 0");
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	vmm_nt_interrupt_finish(&interrupt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(raise_and_lower_set_the_irql),
		BOTH(raising_down_or_lowering_up_changes_nothing),
		BOTH(every_thread_has_its_own_irql),
		BOTH(services_above_their_maximum_irql_are_reported),
		BOTH(a_dpc_runs_at_once_below_dispatch),
		BOTH(dpcs_wait_until_the_irql_drops_and_keep_their_order),
		BOTH(a_removed_dpc_does_not_run),
		BOTH(a_running_dpc_can_be_queued_again),
		BOTH(a_dpc_may_free_itself),
		BOTH(a_dpc_that_returns_at_another_irql_is_reported),
		BOTH(an_uninitialized_dpc_is_reported),
		BOTH(flush_waits_for_dpcs_on_other_threads),
		BOTH(a_dpc_runs_on_one_thread_at_a_time_and_once_per_queueing),
		BOTH(a_spin_lock_holds_dispatch),
		BOTH(releasing_the_last_spin_lock_runs_dpcs),
		BOTH(misuse_of_a_spin_lock_is_reported),
		BOTH(spin_locks_exclude),
		BOTH(the_interrupt_lock_is_at_device_level),
	};

	return cmocka_run_group_tests_name("nt_irql", tests, NULL, NULL);
}
