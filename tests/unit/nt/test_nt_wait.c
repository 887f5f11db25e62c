/* SPDX-License-Identifier: MIT */
/* Events, waits, timers, threads, time. */
#include "nt_world.h"

static NTSTATUS poll_object(PVOID object)
{
	LARGE_INTEGER zero = {.QuadPart = 0};

	return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &zero);
}

/* ---- events ---- */

static void a_notification_event_stays_signaled(void **state)
{
	KEVENT event;

	(void)state;
	KeInitializeEvent(&event, NotificationEvent, FALSE);
	assert_int_equal(poll_object(&event), STATUS_TIMEOUT);
	assert_int_equal(KeSetEvent(&event, IO_NO_INCREMENT, FALSE), 0);
	assert_int_not_equal(KeSetEvent(&event, IO_NO_INCREMENT, FALSE), 0);
	assert_int_equal(poll_object(&event), STATUS_SUCCESS);
	assert_int_equal(poll_object(&event), STATUS_SUCCESS);
	assert_int_not_equal(KeReadStateEvent(&event), 0);
	assert_int_not_equal(KeResetEvent(&event), 0);
	assert_int_equal(KeResetEvent(&event), 0);
	assert_int_equal(poll_object(&event), STATUS_TIMEOUT);
}

static void a_synchronization_event_satisfies_one_wait(void **state)
{
	KEVENT event;

	(void)state;
	KeInitializeEvent(&event, SynchronizationEvent, TRUE);
	assert_int_equal(poll_object(&event), STATUS_SUCCESS);
	assert_int_equal(poll_object(&event), STATUS_TIMEOUT);
	KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
	KeClearEvent(&event);
	assert_int_equal(poll_object(&event), STATUS_TIMEOUT);
}

struct waiters {
	struct world *world;
	KEVENT event, ready;
	_Atomic uint32_t waiting, through;
};

static void wait_for_event(PVOID context)
{
	struct waiters *w = context;

	if (atomic_fetch_add(&w->waiting, 1) == 2)
		KeSetEvent(&w->ready, IO_NO_INCREMENT, FALSE);
	KeWaitForSingleObject(&w->event, Executive, KernelMode, FALSE, NULL);
	atomic_fetch_add(&w->through, 1);
}

static void a_set_event_wakes_one_waiter_or_all(void **state)
{
	for (int type = NotificationEvent; type <= SynchronizationEvent; type++) {
		struct waiters w = {.world = *state};
		PVOID thread[3];

		KeInitializeEvent(&w.event, (EVENT_TYPE)type, FALSE);
		KeInitializeEvent(&w.ready, NotificationEvent, FALSE);
		for (int i = 0; i < 3; i++)
			thread[i] = start_thread(wait_for_event, &w);
		KeWaitForSingleObject(&w.ready, Executive, KernelMode, FALSE, NULL);
		assert_int_equal(atomic_load(&w.through), 0);
		for (uint32_t i = 0; i < (type == NotificationEvent ? 1 : 3); i++) {
			/*
			 * Each KeSetEvent wakes one thread; that may find the event still set by
			 * the previous call.
			 */
			while (KeReadStateEvent(&w.event))
				YieldProcessor();
			KeSetEvent(&w.event, IO_NO_INCREMENT, FALSE);
		}
		for (int i = 0; i < 3; i++)
			end_thread(thread[i]);
		assert_int_equal(atomic_load(&w.through), 3);
	}
}

static void a_timeout_ends_a_wait(void **state)
{
	struct world *world = *state;
	LARGE_INTEGER timeout = relative_us(1500), now;
	uint64_t before = vmm_os_now_ns(world->os);
	KEVENT event;

	KeInitializeEvent(&event, NotificationEvent, FALSE);
	assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &timeout),
			 STATUS_TIMEOUT);
	assert_true(vmm_os_now_ns(world->os) - before >= 1500000);
	if (vmm_os_kind(world->os) == VMM_OS_SIM)
		assert_int_equal(vmm_os_now_ns(world->os) - before, 1500000);

	/* The same as an absolute time, and one far in the past. */
	KeQuerySystemTime(&now);
	timeout.QuadPart = now.QuadPart + 20000;
	before = vmm_os_now_ns(world->os);
	assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &timeout),
			 STATUS_TIMEOUT);
	assert_true(vmm_os_now_ns(world->os) - before >= 1900000);
	timeout.QuadPart = 1;
	assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &timeout),
			 STATUS_TIMEOUT);
	/* The event is in no wait list any more: setting it wakes no thread. */
	KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void invalid_dispatcher_objects_are_refused(void **state)
{
	struct world *world = *state;
	KEVENT event = {{0}};
	KTIMER timer;
	PVOID objects[4] = {&timer, &timer, &timer, &timer};

	assert_int_equal(KeSetEvent(&event, IO_NO_INCREMENT, FALSE), 0);
	expect_violation(world, "NT-07", "KeSetEvent", "not initialized or of another type");
	assert_int_equal(poll_object(&event), STATUS_INVALID_PARAMETER);
	expect_violation(world, "NT-07", "KeWaitForSingleObject", "not initialized");
	KeInitializeTimer(&timer);
	assert_int_equal(KeSetEvent((PRKEVENT)&timer, IO_NO_INCREMENT, FALSE), 0);
	expect_violation(world, "NT-07", "KeSetEvent", "of another type");
	assert_int_equal(KeWaitForMultipleObjects(4, objects, WaitAny, Executive, KernelMode, FALSE,
						  NULL, NULL),
			 STATUS_INVALID_PARAMETER);
	expect_violation(world, "NT-07", "KeWaitForMultipleObjects",
			 "4 objects without a wait block array");
	assert_int_equal(KeWaitForMultipleObjects(0, objects, WaitAny, Executive, KernelMode, FALSE,
						  NULL, NULL),
			 STATUS_INVALID_PARAMETER);
	expect_violation(world, "NT-07", "KeWaitForMultipleObjects", "0 objects");
}

/* ---- several objects ---- */

static void any_of_several_satisfies_the_lowest_index(void **state)
{
	KEVENT event[3];
	PVOID objects[3] = {&event[0], &event[1], &event[2]};
	LARGE_INTEGER zero = {.QuadPart = 0};

	(void)state;
	for (int i = 0; i < 3; i++)
		KeInitializeEvent(&event[i], SynchronizationEvent, i > 0);
	assert_int_equal(KeWaitForMultipleObjects(3, objects, WaitAny, Executive, KernelMode, FALSE,
						  NULL, NULL),
			 STATUS_WAIT_0 + 1);
	assert_int_equal(KeWaitForMultipleObjects(3, objects, WaitAny, Executive, KernelMode, FALSE,
						  NULL, NULL),
			 STATUS_WAIT_0 + 2);
	assert_int_equal(KeWaitForMultipleObjects(3, objects, WaitAny, Executive, KernelMode, FALSE,
						  &zero, NULL),
			 STATUS_TIMEOUT);
}

struct setter {
	KEVENT event[5], seen;
	LARGE_INTEGER delay;
	int first, second;
};

static void set_one_after_another(PVOID context)
{
	struct setter *setter = context;

	KeDelayExecutionThread(KernelMode, FALSE, &setter->delay);
	KeSetEvent(&setter->event[setter->first], IO_NO_INCREMENT, FALSE);
	KeWaitForSingleObject(&setter->seen, Executive, KernelMode, FALSE, NULL);
	KeDelayExecutionThread(KernelMode, FALSE, &setter->delay);
	KeSetEvent(&setter->event[setter->second], IO_NO_INCREMENT, FALSE);
}

static void a_wait_for_any_returns_the_index_of_the_set_object(void **state)
{
	struct setter setter = {.delay = relative_us(100), .first = 4, .second = 1};
	PVOID objects[5], thread;
	KWAIT_BLOCK blocks[5];

	(void)state;
	KeInitializeEvent(&setter.seen, NotificationEvent, FALSE);
	for (int i = 0; i < 5; i++) {
		KeInitializeEvent(&setter.event[i], SynchronizationEvent, FALSE);
		objects[i] = &setter.event[i];
	}
	thread = start_thread(set_one_after_another, &setter);
	assert_int_equal(KeWaitForMultipleObjects(5, objects, WaitAny, Executive, KernelMode, FALSE,
						  NULL, blocks),
			 STATUS_WAIT_0 + 4);
	assert_int_equal(KeReadStateEvent(&setter.event[4]), 0);
	KeSetEvent(&setter.seen, IO_NO_INCREMENT, FALSE);
	assert_int_equal(KeWaitForMultipleObjects(5, objects, WaitAny, Executive, KernelMode, FALSE,
						  NULL, blocks),
			 STATUS_WAIT_0 + 1);
	end_thread(thread);
}

static void a_wait_for_all_takes_all_or_none(void **state)
{
	struct setter setter = {.delay = relative_us(100), .first = 0, .second = 1};
	PVOID objects[2] = {&setter.event[0], &setter.event[1]}, thread;
	LARGE_INTEGER timeout = relative_us(10);

	(void)state;
	KeInitializeEvent(&setter.seen, NotificationEvent, TRUE);
	KeInitializeEvent(&setter.event[0], SynchronizationEvent, TRUE);
	KeInitializeEvent(&setter.event[1], SynchronizationEvent, FALSE);
	assert_int_equal(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE,
						  &timeout, NULL),
			 STATUS_TIMEOUT);
	assert_int_not_equal(KeReadStateEvent(&setter.event[0]), 0);
	KeResetEvent(&setter.event[0]);
	thread = start_thread(set_one_after_another, &setter);
	assert_int_equal(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE,
						  NULL, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(KeReadStateEvent(&setter.event[0]), 0);
	assert_int_equal(KeReadStateEvent(&setter.event[1]), 0);
	end_thread(thread);
}

/* A hand-over between producer and consumer through two synchronization events. */
struct exchange {
	KEVENT full, empty;
	uint32_t value, sum;
};

enum { EXCHANGES = 500 };

static void consume(PVOID context)
{
	struct exchange *x = context;

	for (uint32_t i = 0; i < EXCHANGES; i++) {
		KeWaitForSingleObject(&x->full, Executive, KernelMode, FALSE, NULL);
		x->sum += x->value;
		KeSetEvent(&x->empty, IO_NO_INCREMENT, FALSE);
	}
}

static void synchronization_events_order_two_threads(void **state)
{
	struct exchange x = {.sum = 0};
	PVOID thread;

	(void)state;
	KeInitializeEvent(&x.full, SynchronizationEvent, FALSE);
	KeInitializeEvent(&x.empty, SynchronizationEvent, TRUE);
	thread = start_thread(consume, &x);
	for (uint32_t i = 0; i < EXCHANGES; i++) {
		KeWaitForSingleObject(&x.empty, Executive, KernelMode, FALSE, NULL);
		x.value = i;
		KeSetEvent(&x.full, IO_NO_INCREMENT, FALSE);
	}
	end_thread(thread);
	assert_int_equal(x.sum, EXCHANGES * (EXCHANGES - 1) / 2);
}

struct request {
	KEVENT done;
};

struct server {
	KEVENT wanted;
	struct request *volatile request;
	_Atomic bool stop;
};

static void serve(PVOID context)
{
	struct server *server = context;

	for (;;) {
		KeWaitForSingleObject(&server->wanted, Executive, KernelMode, FALSE, NULL);
		if (atomic_load(&server->stop))
			return;
		KeSetEvent(&server->request->done, IO_NO_INCREMENT, FALSE);
	}
}

static void an_event_may_be_freed_as_soon_as_its_wait_is_over(void **state)
{
	struct server server = {.request = NULL};
	PVOID thread;

	(void)state;
	KeInitializeEvent(&server.wanted, SynchronizationEvent, FALSE);
	thread = start_thread(serve, &server);
	for (int i = 0; i < 2000; i++) {
		struct request *request = vmm_calloc(1, sizeof(*request));

		KeInitializeEvent(&request->done, i % 2 ? NotificationEvent : SynchronizationEvent,
				  FALSE);
		server.request = request;
		KeSetEvent(&server.wanted, IO_NO_INCREMENT, FALSE);
		KeWaitForSingleObject(&request->done, Executive, KernelMode, FALSE, NULL);
		memset(request, 0xEE, sizeof(*request));
		vmm_free(request);
	}
	atomic_store(&server.stop, true);
	KeSetEvent(&server.wanted, IO_NO_INCREMENT, FALSE);
	end_thread(thread);
}

/* ---- timers ---- */

struct ticker {
	struct world *world;
	KDPC dpc;
	KEVENT done;
	_Atomic uint32_t ticks;
	uint32_t wanted;
	uint64_t last_ns;
	KIRQL irql;
};

static VOID tick(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
	struct ticker *ticker = context;

	(void)dpc, (void)argument1, (void)argument2;
	ticker->irql = KeGetCurrentIrql();
	ticker->last_ns = vmm_os_now_ns(ticker->world->os);
	if (atomic_fetch_add(&ticker->ticks, 1) + 1 == ticker->wanted)
		KeSetEvent(&ticker->done, IO_NO_INCREMENT, FALSE);
}

static void ticker_init(struct ticker *ticker, struct world *world, uint32_t wanted)
{
	*ticker = (struct ticker){.world = world, .wanted = wanted};
	KeInitializeDpc(&ticker->dpc, tick, ticker);
	KeInitializeEvent(&ticker->done, NotificationEvent, FALSE);
}

static void a_timer_signals_and_runs_its_dpc(void **state)
{
	struct world *world = *state;
	uint64_t before = vmm_os_now_ns(world->os);
	struct ticker ticker;
	KTIMER timer;

	ticker_init(&ticker, world, 1);
	KeInitializeTimer(&timer);
	assert_false(KeSetTimer(&timer, relative_us(2000), &ticker.dpc));
	if (vmm_os_kind(world->os) == VMM_OS_SIM)
		assert_false(KeReadStateTimer(&timer));
	assert_int_equal(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(poll_object(&timer), STATUS_SUCCESS);
	KeWaitForSingleObject(&ticker.done, Executive, KernelMode, FALSE, NULL);
	assert_int_equal(ticker.irql, DISPATCH_LEVEL);
	assert_true(ticker.last_ns - before >= 2000000);
	if (vmm_os_kind(world->os) == VMM_OS_SIM)
		assert_int_equal(ticker.last_ns - before, 2000000);
	assert_false(KeCancelTimer(&timer));
	/* Setting it again clears the signal. */
	assert_false(KeSetTimer(&timer, relative_us(1000000000), NULL));
	assert_int_equal(poll_object(&timer), STATUS_TIMEOUT);
	assert_true(KeCancelTimer(&timer));
}

static void a_periodic_timer_goes_on_until_cancelled(void **state)
{
	struct world *world = *state;
	struct ticker ticker;
	KTIMER timer;
	uint32_t ticks;

	ticker_init(&ticker, world, 5);
	KeInitializeTimerEx(&timer, SynchronizationTimer);
	assert_false(KeSetTimerEx(&timer, relative_us(1000), 1, &ticker.dpc));
	KeWaitForSingleObject(&ticker.done, Executive, KernelMode, FALSE, NULL);
	if (vmm_os_kind(world->os) == VMM_OS_SIM)
		assert_int_equal(ticker.last_ns, 5000000);
	assert_int_equal(poll_object(&timer), STATUS_SUCCESS);
	assert_true(KeCancelTimer(&timer));
	assert_false(KeCancelTimer(&timer));
	KeFlushQueuedDpcs();
	ticks = atomic_load(&ticker.ticks);
	LARGE_INTEGER delay = relative_us(5000);
	KeDelayExecutionThread(KernelMode, FALSE, &delay);
	assert_int_equal(atomic_load(&ticker.ticks), ticks);
}

static void setting_a_running_timer_again_moves_it(void **state)
{
	struct world *world = *state;
	uint64_t before = vmm_os_now_ns(world->os);
	KTIMER early, timer;

	KeInitializeTimer(&early);
	KeInitializeTimer(&timer);
	assert_false(KeSetTimer(&timer, relative_us(60000000), NULL));
	assert_false(KeSetTimer(&early, relative_us(1000), NULL));
	assert_true(KeSetTimer(&timer, relative_us(3000), NULL));
	KeWaitForSingleObject(&early, Executive, KernelMode, FALSE, NULL);
	KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL);
	assert_true(vmm_os_now_ns(world->os) - before >= 3000000);
	assert_true(vmm_os_now_ns(world->os) - before < 60000000000);
	assert_false(KeSetTimerEx(&timer, relative_us(1), -1, NULL));
	expect_violation(world, "NT-07", "KeSetTimer", "period is -1 ms");
}

static void a_timer_running_at_the_end_is_reported(void **state)
{
	struct world *world = *state;
	KTIMER timer;

	KeInitializeTimer(&timer);
	KeSetTimer(&timer, relative_us(1000000000), NULL);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	expect_violation(world, "NT-06", "KeSetTimer", "never canceled");
	assert_int_equal(vmm_nt_create(world->os, NULL, &world->nt), VMM_OK);
}

/* ---- threads ---- */

static void end_early(PVOID context)
{
	uint32_t *steps = context;

	*steps = 1;
	PsTerminateSystemThread(STATUS_SUCCESS);
	*steps = 2;
}

static void terminating_a_thread_does_not_return(void **state)
{
	struct world *world = *state;
	uint32_t steps = 0;

	end_thread(start_thread(end_early, &steps));
	assert_int_equal(steps, 1);
	/* A thread that was not created by PsCreateSystemThread gets an error. */
	assert_int_equal(PsTerminateSystemThread(STATUS_SUCCESS), STATUS_INVALID_PARAMETER);
	(void)world;
}

static void leave_raised(PVOID context)
{
	KIRQL before;

	(void)context;
	KeRaiseIrql(DISPATCH_LEVEL, &before);
}

static void a_thread_that_ends_at_raised_irql_is_reported(void **state)
{
	end_thread(start_thread(leave_raised, NULL));
	expect_violation((struct world *)*state, "NT-02", "system thread", "ended at IRQL 2");
}

static void handles_and_references_are_checked(void **state)
{
	struct world *world = *state;
	uint32_t steps = 0;
	HANDLE handle;
	PVOID object = NULL;
	int other;

	assert_int_equal(PsCreateSystemThread(&handle, 0, NULL, NULL, NULL, end_early, &steps),
			 STATUS_SUCCESS);
	assert_int_equal(ObReferenceObjectByHandle((HANDLE)(ULONG_PTR)0x1234, 0, NULL, KernelMode,
						   &object, NULL),
			 STATUS_INVALID_HANDLE);
	assert_int_equal(ObReferenceObjectByHandle(handle, 0, (POBJECT_TYPE)&other, KernelMode,
						   &object, NULL),
			 STATUS_OBJECT_TYPE_MISMATCH);
	assert_null(object);
	assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &object, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL),
			 STATUS_SUCCESS);
	ObDereferenceObject(object);
	/* The handle keeps it alive, but this reference was released already. */
	ObDereferenceObject(object);
	expect_violation(world, "NT-07", "ObDereferenceObject", "has no reference left");
	assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &object, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
	assert_int_equal(ZwClose(handle), STATUS_INVALID_HANDLE);
	expect_violation(world, "NT-07", "ZwClose", "0x4 is not an open handle");
	assert_int_equal(ObDereferenceObject(object), 0);
	assert_int_equal(ObDereferenceObject(object), 0);
	expect_violation(world, "NT-07", "ObDereferenceObject", "unknown or has no reference left");
}

static void stay(PVOID context)
{
	KeWaitForSingleObject(context, Executive, KernelMode, FALSE, NULL);
}

static void a_thread_that_never_ends_keeps_the_kernel_alive(void **state)
{
	struct world *world = *state;
	KEVENT event;
	PVOID thread;

	KeInitializeEvent(&event, NotificationEvent, FALSE);
	thread = start_thread(stay, &event);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_UNSUCCESSFUL);
	expect_violation(world, "NT-06", "PsCreateSystemThread", "thread 1 still runs");
	KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
	end_thread(thread);
}

static void leaked_handles_and_references_are_reported(void **state)
{
	struct world *world = *state;
	uint32_t steps = 0;
	HANDLE handle;

	assert_int_equal(PsCreateSystemThread(&handle, 0, NULL, NULL, NULL, end_early, &steps),
			 STATUS_SUCCESS);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	expect_violation(world, "NT-06", "ZwClose", "handle 0x4 of a thread was never closed");
	assert_int_equal(vmm_nt_create(world->os, NULL, &world->nt), VMM_OK);
	vmm_nt_set_violation_hook(world->nt, take_violation, world);
	KeWaitForSingleObject(start_thread(end_early, &steps), Executive, KernelMode, FALSE, NULL);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	expect_violation(world, "NT-06", "ObDereferenceObject",
			 "referenced and never dereferenced");
	assert_int_equal(vmm_nt_create(world->os, NULL, &world->nt), VMM_OK);
}

static void thread_creation_fails_cleanly_without_memory(void **state)
{
	uint32_t steps = 0, failures = 0;
	HANDLE handle = NULL;
	PVOID object;
	NTSTATUS status;

	(void)state;
	for (uint32_t n = 1; n < 20; n++) {
		vmm_calloc_fail_after(n);
		status = PsCreateSystemThread(&handle, 0, NULL, NULL, NULL, end_early, &steps);
		if (status == STATUS_SUCCESS)
			break;
		assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
		assert_null(handle);
		failures++;
	}
	vmm_calloc_fail_after(0);
	assert_true(failures >= 3);
	assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &object, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
	end_thread(object);
	assert_int_equal(steps, 1);
}

/* ---- time ---- */

static void all_clock_services_agree(void **state)
{
	struct world *world = *state;
	LARGE_INTEGER frequency, counter, before, after;
	uint64_t start_ns = vmm_os_now_ns(world->os);
	ULONGLONG interrupt_time;

	counter = KeQueryPerformanceCounter(&frequency);
	interrupt_time = KeQueryInterruptTime();
	KeQuerySystemTimePrecise(&before);
	assert_int_equal(frequency.QuadPart, 10000000);
	assert_true((uint64_t)counter.QuadPart >= start_ns / 100);
	assert_true(interrupt_time >= (ULONGLONG)counter.QuadPart);
	KeStallExecutionProcessor(50);
	KeQuerySystemTimePrecise(&after);
	assert_true(after.QuadPart - before.QuadPart >= 500);
}

static void polling_the_clock_advances_virtual_time(void **state)
{
	struct world *world = *state;
	LARGE_INTEGER until = KeQueryPerformanceCounter(NULL), timeout = {.QuadPart = 0};
	KEVENT event;
	KTIMER timer;

	until.QuadPart += 100; /* 10 us */
	while (KeQueryPerformanceCounter(NULL).QuadPart < until.QuadPart)
		;
	assert_true(vmm_os_now_ns(world->os) >= 10000);
	KeInitializeTimer(&timer);
	KeInitializeEvent(&event, NotificationEvent, FALSE);
	KeSetTimer(&timer, relative_us(5), NULL);
	while (KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, &timeout) ==
	       STATUS_TIMEOUT)
		;
	assert_true(KeReadStateTimer(&timer));
}

/* ---- a driver's thread that belongs to no world ---- */

static void a_thread_of_no_world_is_served_by_the_newest_kernel(void **state)
{
	struct world *world = *state;
	KEVENT event;

	vmm_os_set_current(NULL);
	assert_ptr_equal(vmm_nt_current(), world->nt);
	KeInitializeEvent(&event, NotificationEvent, FALSE);
	KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
	assert_int_equal(poll_object(&event), STATUS_SUCCESS);
	vmm_os_set_current(world->os);
}

/* ---- the same seed, the same order ---- */

struct race {
	KSPIN_LOCK lock;
	KEVENT go;
	uint32_t next, order[64], count;
};

static void run_race(PVOID context)
{
	struct race *race = context;
	uint32_t me = (uint32_t)InterlockedIncrement((LONG *)&race->next);

	KeWaitForSingleObject(&race->go, Executive, KernelMode, FALSE, NULL);
	for (int i = 0; i < 8; i++) {
		LARGE_INTEGER delay = relative_us(10);
		KIRQL irql;

		KeAcquireSpinLock(&race->lock, &irql);
		race->order[race->count++] = me;
		KeReleaseSpinLock(&race->lock, irql);
		KeDelayExecutionThread(KernelMode, FALSE, &delay);
	}
}

static void hold_race(struct race *race, uint64_t seed)
{
	struct vmm_os_config config = {.kind = VMM_OS_SIM, .seed = seed, .switch_per_1024 = 200};
	struct world *world = world_create(&config);
	PVOID thread[8];
	void *state = world;

	memset(race, 0, sizeof(*race));
	KeInitializeEvent(&race->go, NotificationEvent, FALSE);
	for (int i = 0; i < 8; i++)
		thread[i] = start_thread(run_race, race);
	KeSetEvent(&race->go, IO_NO_INCREMENT, FALSE);
	for (int i = 0; i < 8; i++)
		end_thread(thread[i]);
	assert_int_equal(nt_teardown(&state), 0);
}

static void kernel_threads_interleave_by_seed(void **state)
{
	static struct race first, second;
	uint32_t different = 0;

	(void)state;
	for (uint64_t seed = 1; seed < 10; seed++) {
		hold_race(&first, seed);
		hold_race(&second, seed);
		assert_memory_equal(first.order, second.order, sizeof(first.order));
		hold_race(&second, seed + 100);
		different += memcmp(first.order, second.order, sizeof(first.order)) != 0;
	}
	assert_true(different >= 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_notification_event_stays_signaled),
		BOTH(a_synchronization_event_satisfies_one_wait),
		BOTH(a_set_event_wakes_one_waiter_or_all),
		BOTH(a_timeout_ends_a_wait),
		BOTH(invalid_dispatcher_objects_are_refused),
		BOTH(any_of_several_satisfies_the_lowest_index),
		BOTH(a_wait_for_any_returns_the_index_of_the_set_object),
		BOTH(a_wait_for_all_takes_all_or_none),
		BOTH(synchronization_events_order_two_threads),
		BOTH(an_event_may_be_freed_as_soon_as_its_wait_is_over),
		BOTH(a_timer_signals_and_runs_its_dpc),
		BOTH(a_periodic_timer_goes_on_until_cancelled),
		BOTH(setting_a_running_timer_again_moves_it),
		BOTH(a_timer_running_at_the_end_is_reported),
		BOTH(terminating_a_thread_does_not_return),
		BOTH(a_thread_that_ends_at_raised_irql_is_reported),
		BOTH(handles_and_references_are_checked),
		ON_SIM(a_thread_that_never_ends_keeps_the_kernel_alive),
		BOTH(leaked_handles_and_references_are_reported),
		BOTH(thread_creation_fails_cleanly_without_memory),
		BOTH(all_clock_services_agree),
		BOTH(polling_the_clock_advances_virtual_time),
		BOTH(a_thread_of_no_world_is_served_by_the_newest_kernel),
		cmocka_unit_test(kernel_threads_interleave_by_seed),
	};

	return cmocka_run_group_tests_name("nt_wait", tests, NULL, NULL);
}
