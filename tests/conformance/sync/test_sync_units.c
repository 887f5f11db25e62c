/* SPDX-License-Identifier: MIT */
/*
 * Effects of queued waits and signals on mutexes, semaphores, fences and CPU notifications (MTX,
 * SEM, FEN, CPN).
 */
#include "queue_world.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define REWIND 0x4u

/* ---- the calls ---- */

static D3DKMT_HANDLE make(struct lane *lane, uint32_t flags,
			  const D3DDDI_SYNCHRONIZATIONOBJECTINFO2 *info)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hDevice = lane->device, .Info = *info};

	args.Info.Flags.Value = flags;
	lane_enter(lane);
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_SUCCESS);
	return args.hSyncObject;
}

static D3DKMT_HANDLE mutex(struct lane *lane, uint32_t flags, BOOL owned)
{
	const D3DDDI_SYNCHRONIZATIONOBJECTINFO2 info = {.Type = D3DDDI_SYNCHRONIZATION_MUTEX,
							.SynchronizationMutex.InitialState = owned};

	return make(lane, flags, &info);
}

static D3DKMT_HANDLE semaphore(struct lane *lane, uint32_t flags, uint32_t max, uint32_t count)
{
	const D3DDDI_SYNCHRONIZATIONOBJECTINFO2 info = {
		.Type = D3DDDI_SEMAPHORE, .Semaphore = {.MaxCount = max, .InitialCount = count}};

	return make(lane, flags, &info);
}

static D3DKMT_HANDLE fence(struct lane *lane, uint64_t value)
{
	const D3DDDI_SYNCHRONIZATIONOBJECTINFO2 info = {.Type = D3DDDI_FENCE,
							.Fence.FenceValue = value};

	return make(lane, 0, &info);
}

static D3DKMT_HANDLE notification(struct lane *lane, uint32_t flags, int event)
{
	const D3DDDI_SYNCHRONIZATIONOBJECTINFO2 info = {
		.Type = D3DDDI_CPU_NOTIFICATION, .CPUNotification.Event = (HANDLE)(uintptr_t)event};

	return make(lane, flags, &info);
}

/* The first forms. */
static NTSTATUS wait_many(struct lane *lane, const D3DKMT_HANDLE *objects, uint32_t count)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT args = {.hContext = lane->context,
						    .ObjectCount = count};

	memcpy(args.ObjectHandleArray, objects, count * sizeof(*objects));
	lane_enter(lane);
	NTSTATUS status = D3DKMTWaitForSynchronizationObject(&args);
	client_settle(&lane->world->w.client);
	return status;
}

static NTSTATUS signal_many(struct lane *lane, const D3DKMT_HANDLE *objects, uint32_t count)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT args = {.hContext = lane->context, .ObjectCount = count};

	memcpy(args.ObjectHandleArray, objects, count * sizeof(*objects));
	lane_enter(lane);
	NTSTATUS status = D3DKMTSignalSynchronizationObject(&args);
	client_settle(&lane->world->w.client);
	return status;
}

static void take(struct lane *lane, D3DKMT_HANDLE object)
{
	assert_int_equal(wait_many(lane, &object, 1), STATUS_SUCCESS);
}

static void give(struct lane *lane, D3DKMT_HANDLE object)
{
	assert_int_equal(signal_many(lane, &object, 1), STATUS_SUCCESS);
}

/* Queues a wait and then a packet that shows when the wait is satisfied. */
static void take_and_render(struct lane *lane, D3DKMT_HANDLE object)
{
	take(lane, object);
	lane_render(lane);
}

/* The second forms. */
static NTSTATUS wait_2(struct lane *lane, const D3DKMT_HANDLE *objects, uint32_t count,
		       uint64_t value)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 args = {
		.hContext = lane->context, .ObjectCount = count, .Fence.FenceValue = value};

	memcpy(args.ObjectHandleArray, objects, count * sizeof(*objects));
	lane_enter(lane);
	NTSTATUS status = D3DKMTWaitForSynchronizationObject2(&args);
	client_settle(&lane->world->w.client);
	return status;
}

static NTSTATUS signal_2(struct lane *lane, const D3DKMT_HANDLE *objects, uint32_t count,
			 uint64_t value, uint32_t flags, struct lane *other)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 args = {.hContext = lane->context,
						    .ObjectCount = count,
						    .Flags.Value = flags,
						    .BroadcastContextCount = other != NULL,
						    .Fence.FenceValue = value};

	memcpy(args.ObjectHandleArray, objects, count * sizeof(*objects));
	if (other)
		args.BroadcastContext[0] = other->context;
	lane_enter(lane);
	NTSTATUS status = D3DKMTSignalSynchronizationObject2(&args);
	client_settle(&lane->world->w.client);
	return status;
}

/* The same object, in another process. */
static D3DKMT_HANDLE opened(struct lane *lane, D3DKMT_HANDLE object, struct lane *other)
{
	return queue_fence_for(lane, object, other);
}

/* ---- mutexes ---- */

static void mtx_01_mtx_02_one_context_owns_the_mutex_at_a_time(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	D3DKMT_HANDLE m = mutex(a, 0, 0);
	for (uint32_t i = 0; i < 3; i++) {
		take_and_render(a, m);
		give(a, m);
		take_and_render(b, m);
		give(b, m);
		queue_assert_order(&p, "a");
		priority_complete(&p, 1); /* the signal is behind the packet */
		queue_assert_order(&p, "b");
		priority_complete(&p, 1);
	}
	priority_stop(&p);
}

static void mtx_03_release_hands_it_to_the_first_queued_waiter(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b'),
		    *c = queue_lane(&p, 0, 'c'), *d = queue_lane(&p, 1, 'd');
	D3DKMT_HANDLE m = mutex(a, 3, 0), theirs = opened(a, m, b);
	take(a, m);
	take_and_render(b, theirs);
	take_and_render(c, m);
	take_and_render(d, theirs);
	queue_assert_order(&p, "");
	give(a, m);
	queue_assert_order(&p, "b"); /* exactly one waiter */
	priority_complete(&p, 1);
	give(b, theirs);
	queue_assert_order(&p, "c");
	priority_complete(&p, 1);
	give(c, m);
	queue_assert_order(&p, "d");
	priority_complete(&p, 1);
	take(a, m); /* behind d, which still holds it */
	lane_render(a);
	queue_assert_order(&p, "");
	give(d, theirs);
	queue_assert_order(&p, "a");
	priority_stop(&p);
}

static void mtx_04_mtx_05_signals_of_other_contexts_do_not_free_it(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b'),
		    *c = queue_lane(&p, 1, 'c');
	D3DKMT_HANDLE m = mutex(a, 3, 77), theirs = opened(a, m, c); /* 77 is TRUE */
	take_and_render(a, m);
	queue_assert_order(&p, "");
	give(c, theirs); /* another process: it is not the owner */
	queue_found(&p, "MTX-05");
	queue_assert_order(&p, "");
	give(b, m); /* any context of the process that created it owned */
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	take_and_render(c, theirs);
	give(b, m); /* a holds it by now */
	queue_found(&p, "MTX-05");
	queue_assert_order(&p, "");
	give(a, m);
	queue_assert_order(&p, "c");
	priority_complete(&p, 1);
	give(c, theirs);
	give(c, theirs); /* it is free */
	queue_found(&p, "MTX-05");
	take_and_render(a, m);
	take_and_render(b, m); /* the second signal did not free it again */
	queue_assert_order(&p, "a");
	give(a, m);
	priority_complete(&p, 1);
	queue_assert_order(&p, "b");
	priority_stop(&p);
}

static void mtx_06_destroying_the_holding_context_frees_it(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	D3DKMT_HANDLE m = mutex(a, 3, 0), n = mutex(a, 3, 0);
	D3DKMT_HANDLE theirs[2] = {opened(a, m, b), opened(a, n, b)};
	take(a, m);
	take(a, n);
	assert_int_equal(wait_many(b, theirs, 2), STATUS_SUCCESS);
	lane_render(b);
	/* Its handles may be destroyed: a context that holds the mutex keeps it alive. */
	assert_int_equal(queue_destroy(a, m), STATUS_SUCCESS);
	queue_assert_order(&p, "");
	lane_end(a);
	queue_assert_order(&p, "b");
	priority_complete(&p, 1);
	/* b has both now, and ends with its process. */
	priority_stop(&p);
}

static void mtx_06_a_waiting_context_can_be_destroyed(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b'),
		    *c = queue_lane(&p, 0, 'c');
	D3DKMT_HANDLE m = mutex(a, 0, 0);
	take(a, m);
	take_and_render(b, m);
	take_and_render(c, m);
	lane_end(b);
	give(a, m);
	queue_assert_order(&p, "c");
	priority_complete(&p, 1);
	give(c, m);
	assert_int_equal(queue_destroy(a, m), STATUS_SUCCESS);
	priority_stop(&p);
}

static NTSTATUS wait_from_gpu(const struct lane *lane, const D3DKMT_HANDLE *objects, UINT count)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = {
		.hContext = lane->context, .ObjectCount = count, .ObjectHandleArray = objects};

	return D3DKMTWaitForSynchronizationObjectFromGpu(&args);
}

/*
 * It would wait for ever. For a semaphore, each occurrence takes a unit; a second signal of a free
 * mutex is reported anyway.
 */
static void mtx_08_q_52_the_same_mutex_twice_in_one_wait_is_refused(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	D3DKMT_HANDLE m = mutex(a, 3, 0), n = mutex(a, 0, 0), again = opened(a, m, b),
		      s = semaphore(a, 0, 2, 2);
	const D3DKMT_HANDLE twice[] = {n, m, m}, by_two_handles[] = {m, n, again}, both[] = {m, n},
			    units[] = {s, s};

	assert_int_equal(wait_many(a, twice, 3), STATUS_INVALID_PARAMETER);
	queue_found(&p, "MTX-08");
	assert_int_equal(wait_many(a, by_two_handles, 3), STATUS_INVALID_PARAMETER);
	queue_found(&p, "MTX-08");
	assert_int_equal(wait_2(a, twice + 1, 2, 0), STATUS_INVALID_PARAMETER);
	queue_found(&p, "MTX-08");
	/* The same if there are too many handles to compare pairwise. */
	D3DKMT_HANDLE many[100];
	for (uint32_t i = 0; i < 99; i++)
		many[i] = i < 50 ? mutex(a, 0, 0) : semaphore(a, 0, 9, 9);
	many[99] = many[7];
	assert_int_equal(wait_from_gpu(a, many, 100), STATUS_INVALID_PARAMETER);
	queue_found(&p, "MTX-08");
	many[99] = many[70];
	assert_int_equal(wait_from_gpu(a, many, 100), STATUS_SUCCESS);
	/* Nothing was taken, nothing is queued. */
	assert_int_equal(wait_many(b, both, 2), STATUS_SUCCESS);
	lane_render(b);
	lane_render(a);
	assert_int_equal(wait_many(a, units, 2), STATUS_SUCCESS);
	lane_render(a);
	queue_assert_order(&p, "ba");
	priority_complete(&p, 2);
	queue_assert_order(&p, "a");
	take_and_render(b, s);
	queue_assert_order(&p, ""); /* both of its units are taken */
	priority_stop(&p);
}

/*
 * Its first context is destroyed when the last one arrives, and a new context may have its address.
 */
static void mtx_05_mtx_06_syn_28_a_broadcast_signal_outlives_its_first_context(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	D3DKMT_HANDLE m = mutex(b, 0, 0);
	take(a, m);
	lane_render(b);
	queue_assert_order(&p, "b");
	assert_int_equal(signal_2(a, &m, 1, 0, 0, b), STATUS_SUCCESS);
	lane_end(a);
	struct lane *c = queue_lane(&p, 0, 'c'), *d = queue_lane(&p, 0, 'd');
	take(c, m); /* MTX-06: the mutex was freed */
	take_and_render(d, m);
	priority_complete(&p, 1);
	queue_found(&p, "MTX-05"); /* the signal is a's, which does not hold it */
	queue_assert_order(&p, "");
	give(c, m);
	queue_assert_order(&p, "d");
	priority_stop(&p);
}

static void mtx_08_a_wait_for_several_takes_all_or_none(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b'),
		    *c = queue_lane(&p, 0, 'c'), *d = queue_lane(&p, 0, 'd');
	D3DKMT_HANDLE all[3] = {mutex(a, 0, 0), semaphore(a, 0, 5, 2), mutex(a, 0, 0)};
	take(a, all[2]);
	assert_int_equal(wait_many(b, all, 3), STATUS_SUCCESS);
	lane_render(b);
	queue_assert_order(&p, "");
	take_and_render(c, all[0]); /* it stayed free, although b waits for it */
	queue_assert_order(&p, "c");
	priority_complete(&p, 1);
	take_and_render(d, all[1]); /* and so did both units */
	take_and_render(d, all[1]);
	queue_assert_order(&p, "dd");
	priority_complete(&p, 2);
	give(a, all[2]);
	give(d, all[1]);
	queue_assert_order(&p, "");
	give(c, all[0]);
	queue_assert_order(&p, "b");
	priority_complete(&p, 1);
	take_and_render(a, all[2]);
	queue_assert_order(&p, ""); /* b has it */
	assert_int_equal(signal_many(b, all, 3), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_stop(&p);
}

/* TDRS-13: mutexes that a lost context holds are freed; semaphore units stay taken. */
static void per_engine(struct scripted_miniport *m)
{
	queue_3_0(m);
	m->settings.caps.SupportPerEngineTDR = 1;
	m->settings.table.DxgkDdiResetEngine = scripted_reset_engine;
	m->settings.table.DxgkDdiQueryEngineStatus = scripted_query_engine_status;
	m->settings.table.DxgkDdiQueryDependentEngineGroup = scripted_query_engine_group;
}

static void tdrs_13_tdrs_16_mutexes_of_a_lost_context_are_freed(void **state)
{
	struct vidmm_tdr_options tdr = timeout_defaults(VIDMM_HOST_SIM);
	struct priority_world p;
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t count;

	queue_start_with(&p, state, per_engine, &tdr);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b'),
		    *c = queue_lane(&p, 0, 'c'), *d = queue_lane(&p, 1, 'd');
	D3DKMT_HANDLE m = mutex(a, 3, 0), theirs = opened(a, m, b);
	D3DKMT_HANDLE s = semaphore(a, 3, 1, 1), units = opened(a, s, b);
	D3DKMT_HANDLE notified = notification(a, 0, event);
	take(a, m);
	take(a, s);
	take_and_render(c, m); /* of the device that is about to be lost: it gets nothing */
	take_and_render(b, theirs);
	take_and_render(d, units);
	lane_render(a); /* and hangs */
	give(a, notified);
	give(a, s);
	queue_assert_order(&p, "a");
	while (!scripted_count(p.w.m, VIDMM_DDI_RESET_ENGINE))
		vidmm_sleep_until_ns(p.w.client.host,
				     vidmm_now_ns(p.w.client.host) + 100 * NS_PER_MS);
	queue_assert_order(&p, "b");
	assert_true(read(event, &count, sizeof(count)) < 0); /* TDRS-16 */
	priority_complete(&p, 1);
	give(d, units); /* behind its own wait: d is blocked until it is destroyed */
	queue_assert_order(&p, "");
	assert_int_equal(queue_destroy(a, m), STATUS_SUCCESS);
	close(event);
	priority_stop(&p);
}

/* ---- semaphores ---- */

static void sem_01_sem_03_sem_04_waits_take_and_signals_give_one_unit(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	D3DKMT_HANDLE s = semaphore(a, 0, 2, 2), none = semaphore(a, 0, 0, 0);
	for (uint32_t i = 0; i < 3; i++)
		take_and_render(a, s);
	queue_assert_order(&p, "aa"); /* SEM-03 */
	priority_complete(&p, 2);
	give(b, s);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	give(b, s);
	give(b, s);
	give(b, s); /* SEM-04: one too many */
	queue_found(&p, "SEM-04");
	for (uint32_t i = 0; i < 3; i++)
		take_and_render(b, s);
	queue_assert_order(&p, "bb");
	priority_complete(&p, 2);
	give(a, none); /* SEM-01 */
	queue_found(&p, "SEM-04");
	priority_stop(&p);
}

static void sem_05_one_unit_wakes_the_first_queued_waiter(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b'),
		    *c = queue_lane(&p, 0, 'c'), *d = queue_lane(&p, 1, 'd');
	D3DKMT_HANDLE s = semaphore(a, 3, 9, 0), theirs = opened(a, s, b);
	take_and_render(b, theirs);
	take_and_render(c, s);
	take_and_render(d, theirs);
	give(a, s);
	queue_assert_order(&p, "b");
	priority_complete(&p, 1);
	give(b, theirs); /* by a context of the other process */
	queue_assert_order(&p, "c");
	priority_complete(&p, 1);
	give(a, s);
	queue_assert_order(&p, "d");
	priority_complete(&p, 1);
	priority_stop(&p);
}

static void sem_06_a_broadcast_signal_gives_one_unit(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b'),
		    *c = queue_lane(&p, 0, 'c');
	D3DKMT_HANDLE s = semaphore(a, 0, 9, 0);
	take_and_render(c, s);
	take_and_render(c, s);
	lane_render(b);
	assert_int_equal(signal_2(a, &s, 1, 0, 0, b), STATUS_SUCCESS);
	queue_assert_order(&p, "b"); /* SYN-28: b has not arrived yet */
	priority_complete(&p, 1);
	queue_assert_order(&p, "c");
	priority_complete(&p, 1);
	queue_assert_order(&p, "");
	give(a, s);
	queue_assert_order(&p, "c");
	priority_stop(&p);
}

/* SYN-30: the calls of WDDM 2.0, whose value is ignored here; SYN-20: objects of the first form. */
static void syn_20_syn_30_gpu_calls_accept_every_type(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	D3DKMT_CREATESYNCHRONIZATIONOBJECT args = {
		.hDevice = a->device,
		.Info = {.Type = D3DDDI_SEMAPHORE,
			 .Semaphore = {.MaxCount = 3, .InitialCount = 0}}};
	lane_enter(a);
	assert_int_equal(D3DKMTCreateSynchronizationObject(&args), STATUS_SUCCESS);
	D3DKMT_HANDLE s = args.hSyncObject;
	assert_int_equal(wait_2(a, &s, 1, 0), STATUS_SUCCESS);
	lane_render(a);
	assert_int_equal(lane_wait(a, s, 123), STATUS_SUCCESS);
	lane_render(a);
	take_and_render(a, s);
	queue_assert_order(&p, "");
	assert_int_equal(lane_signal(b, s, 9), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	assert_int_equal(lane_signal_with(b, s, 9, 0), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	assert_int_equal(signal_2(b, &s, 1, 0, 0, NULL), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_stop(&p);
}

/* ---- fences of WDDM 1.1 ---- */

static void fen_01_fen_03_fen_06_waits_compare_values_and_lower_ones_are_ignored(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	D3DKMT_HANDLE f = fence(a, 7);
	assert_int_equal(wait_2(a, &f, 1, 7), STATUS_SUCCESS); /* FEN-01 */
	lane_render(a);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	assert_int_equal(wait_2(a, &f, 1, 8), STATUS_SUCCESS);
	lane_render(a);
	queue_assert_order(&p, "");
	assert_int_equal(signal_2(b, &f, 1, 10, 0, NULL), STATUS_SUCCESS); /* FEN-03 */
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	assert_int_equal(signal_2(b, &f, 1, 5, 0, NULL), STATUS_SUCCESS); /* FEN-06 */
	assert_int_equal(wait_2(a, &f, 1, 10), STATUS_SUCCESS);
	lane_render(a);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1);
	assert_int_equal(signal_2(b, &f, 1, 5, REWIND, NULL), STATUS_SUCCESS);
	assert_int_equal(wait_2(a, &f, 1, 6), STATUS_SUCCESS);
	lane_render(a);
	queue_assert_order(&p, "");
	assert_int_equal(signal_2(b, &f, 1, 6, 0, NULL), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_stop(&p);
}

static void fen_02_fen_05_v1_calls_and_counts_other_than_one_are_refused(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	D3DKMT_HANDLE two[2] = {fence(a, 0), fence(a, 0)}, mixed[2] = {mutex(a, 0, 0), two[0]};
	assert_int_equal(wait_2(a, two, 2, 0), STATUS_INVALID_PARAMETER);
	queue_found(&p, "FEN-02");
	assert_int_equal(wait_2(a, mixed, 2, 0), STATUS_INVALID_PARAMETER);
	queue_found(&p, "FEN-02");
	assert_int_equal(signal_2(a, two, 2, 0, 0, NULL), STATUS_INVALID_PARAMETER);
	queue_found(&p, "FEN-02");
	assert_int_equal(wait_many(a, two, 1), STATUS_INVALID_PARAMETER);
	queue_found(&p, "FEN-05");
	assert_int_equal(signal_many(a, two, 1), STATUS_INVALID_PARAMETER);
	queue_found(&p, "FEN-05");
	lane_render(a);
	queue_assert_order(&p, "a"); /* nothing was queued */
	priority_stop(&p);
}

static void fen_07_gpu_calls_of_wddm_2_0_accept_it(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	D3DKMT_HANDLE f = fence(a, 0);
	const UINT64 value = 4;
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {
		.hContext = a->context, .ObjectCount = 1, .ObjectHandleArray = &f, .FenceValue = 4};
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {.hContext = b->context,
								  .ObjectCount = 1,
								  .ObjectHandleArray = &f,
								  .MonitoredFenceValueArray =
									  &value};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 signal_2 = {.ObjectCount = 1,
							       .ObjectHandleArray = &f,
							       .BroadcastContextCount = 1,
							       .BroadcastContextArray = &b->context,
							       .FenceValue = 3};
	lane_enter(a);
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromGpu(&wait), STATUS_SUCCESS);
	lane_render(a);
	lane_enter(b);
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromGpu2(&signal_2), STATUS_SUCCESS);
	queue_assert_order(&p, "");
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromGpu(&signal), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_stop(&p);
}

/* ---- CPU notifications ---- */

static uint64_t events(int event)
{
	uint64_t count = 0;

	return read(event, &count, sizeof(count)) == (ssize_t)sizeof(count) ? count : 0;
}

static void cpn_01_cpn_03_cpn_09_a_queued_signal_sets_the_event_once(void **state)
{
	struct priority_world p;
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), other = dup(event);

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	D3DKMT_HANDLE n = notification(a, 0, event);
	close(event); /* CPN-01 */
	lane_render(a);
	for (uint32_t i = 0; i < 3; i++)
		give(a, n);
	assert_int_equal(events(other), 0);
	priority_complete(&p, 1);
	assert_int_equal(events(other), 3); /* CPN-09 */
	assert_int_equal(signal_2(a, &n, 1, 0, 0, NULL), STATUS_SUCCESS);
	assert_int_equal(lane_signal(a, n, 0), STATUS_SUCCESS);
	assert_int_equal(lane_signal_with(a, n, 0, 0), STATUS_SUCCESS);
	assert_int_equal(events(other), 3);
	close(other);
	priority_stop(&p);
}

static void cpn_04_cpn_05_waits_and_client_signals_of_kmd_events_are_refused(void **state)
{
	struct priority_world p;
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	D3DKMT_HANDLE n[2] = {notification(a, 0, event), notification(a, 0x100, event)};
	for (uint32_t i = 0; i < 2; i++) {
		const char *rule = i ? "CPN-05" : "CPN-04";

		assert_int_equal(wait_many(a, &n[i], 1), STATUS_INVALID_PARAMETER);
		queue_found(&p, rule);
		assert_int_equal(wait_2(a, &n[i], 1, 0), STATUS_INVALID_PARAMETER);
		queue_found(&p, rule);
		assert_int_equal(lane_wait(a, n[i], 0), STATUS_INVALID_PARAMETER);
		queue_found(&p, rule);
	}
	assert_int_equal(signal_many(a, &n[1], 1), STATUS_INVALID_PARAMETER);
	queue_found(&p, "CPN-05");
	assert_int_equal(signal_2(a, &n[1], 1, 0, 0, NULL), STATUS_INVALID_PARAMETER);
	queue_found(&p, "CPN-05");
	assert_int_equal(lane_signal(a, n[1], 0), STATUS_INVALID_PARAMETER);
	queue_found(&p, "CPN-05");
	assert_int_equal(lane_signal_with(a, n[1], 0, 0), STATUS_INVALID_PARAMETER);
	queue_found(&p, "CPN-05");
	assert_int_equal(events(event), 0);
	close(event);
	priority_stop(&p);
}

/* SYN-22: one bad entry, and the call queues nothing. */
static void syn_22_one_bad_entry_queues_nothing(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	D3DKMT_HANDLE s = semaphore(a, 0, 1, 1), three[3] = {s, s + 0x4000, s};
	assert_int_equal(wait_many(a, three, 3), STATUS_INVALID_PARAMETER);
	queue_found(&p, "SYN-22");
	lane_render(a);
	take_and_render(b, s);
	queue_assert_order(&p, "ab");
	priority_complete(&p, 2);
	assert_int_equal(signal_many(a, three, 3), STATUS_INVALID_PARAMETER);
	queue_found(&p, "SYN-22");
	take_and_render(b, s);
	queue_assert_order(&p, "");
	priority_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mtx_01_mtx_02_one_context_owns_the_mutex_at_a_time),
		ON_BOTH(mtx_03_release_hands_it_to_the_first_queued_waiter),
		ON_BOTH(mtx_04_mtx_05_signals_of_other_contexts_do_not_free_it),
		ON_BOTH(mtx_06_destroying_the_holding_context_frees_it),
		ON_BOTH(mtx_06_a_waiting_context_can_be_destroyed),
		ON_BOTH(mtx_05_mtx_06_syn_28_a_broadcast_signal_outlives_its_first_context),
		ON_BOTH(mtx_08_a_wait_for_several_takes_all_or_none),
		ON_BOTH(mtx_08_q_52_the_same_mutex_twice_in_one_wait_is_refused),
		ON_SIM(tdrs_13_tdrs_16_mutexes_of_a_lost_context_are_freed),
		ON_BOTH(sem_01_sem_03_sem_04_waits_take_and_signals_give_one_unit),
		ON_BOTH(sem_05_one_unit_wakes_the_first_queued_waiter),
		ON_BOTH(sem_06_a_broadcast_signal_gives_one_unit),
		ON_BOTH(syn_20_syn_30_gpu_calls_accept_every_type),
		ON_BOTH(fen_01_fen_03_fen_06_waits_compare_values_and_lower_ones_are_ignored),
		ON_BOTH(fen_02_fen_05_v1_calls_and_counts_other_than_one_are_refused),
		ON_BOTH(fen_07_gpu_calls_of_wddm_2_0_accept_it),
		ON_BOTH(cpn_01_cpn_03_cpn_09_a_queued_signal_sets_the_event_once),
		ON_BOTH(cpn_04_cpn_05_waits_and_client_signals_of_kmd_events_are_refused),
		ON_BOTH(syn_22_one_bad_entry_queues_nothing),
	};

	return cmocka_run_group_tests_name("sync units", tests, NULL, NULL);
}
