/* SPDX-License-Identifier: MIT */
/*
 * A context's queue when the context, its device or the adapter is destroyed, lost or has no power;
 * and values that the GPU stores itself.
 */
#include "queue_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* a pending wait and all packets behind it are given up; packets before it complete. */
static void q_46_sub_29_destroying_a_context_does_not_wait_for_its_fences(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	struct queue_fence f = queue_fence(a, 0, 0), g = queue_fence(a, 0, 0);
	p.w.m->settings.complete_at_once = true;
	lane_render(a);
	assert_int_equal(lane_signal(a, g.handle, 1), STATUS_SUCCESS);
	assert_int_equal(lane_wait(a, f.handle, 1), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 20; i++)
		lane_render(a);
	assert_int_equal(lane_signal(a, g.handle, 2), STATUS_SUCCESS);
	lane_end(a);
	queue_assert_order(&p, "a");
	assert_int_equal(*g.value, 1);
	assert_int_equal(queue_cpu_signal(b, f.handle, 1), STATUS_SUCCESS);
	lane_render(b);
	queue_assert_order(&p, "b");
	assert_int_equal(*g.value, 1);
	priority_stop(&p);
}

static void sub_29_destroying_a_device_ends_its_contexts_waits(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	struct queue_fence f = queue_fence(b, 3, 0);
	D3DKMT_HANDLE theirs = queue_fence_for(b, f.handle, a);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = a->device};
	p.w.m->settings.complete_at_once = true;
	assert_int_equal(lane_wait(a, theirs, 1), STATUS_SUCCESS);
	lane_render(a);
	lane_enter(a);
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	assert_int_equal(lane_signal(b, f.handle, 1), STATUS_SUCCESS);
	assert_int_equal(*f.value, 1);
	lane_render(b);
	queue_assert_order(&p, "b");
	priority_stop(&p);
}

/* The adapter stops while contexts of a client wait. */
static void pnp_03_an_adapter_stops_although_contexts_wait(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 0);
	p.w.m->settings.complete_at_once = true;
	assert_int_equal(lane_wait(a, f.handle, 1), STATUS_SUCCESS);
	lane_render(a);
	vidmm_adapter_stop(p.w.client.adapter);
	queue_assert_order(&p, "");
	assert_int_equal(p.w.m->live_contexts, 0);
	vidmm_d3dkmt_enter(NULL);
	vidmm_process_close(p.process[0]);
	vidmm_process_close(p.process[1]);
	vidmm_host_destroy(p.w.client.host);
	assert_int_equal(p.w.client.findings, 0);
	scripted_destroy(p.w.m);
}

/* ---- threads that wait for packets behind a wait; WDDM 1.3, whose locks wait for the GPU ---- */

static void queue_1_3(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM1_3);
}

/* A FENCE, and the lane's queue waits for its value 1. */
static D3DKMT_HANDLE hold(struct lane *lane)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {.hDevice = lane->device,
						      .Info.Type = D3DDDI_FENCE};
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 wait = {
		.hContext = lane->context, .ObjectCount = 1, .Fence.FenceValue = 1};

	lane_enter(lane);
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&create), STATUS_SUCCESS);
	wait.ObjectHandleArray[0] = create.hSyncObject;
	assert_int_equal(D3DKMTWaitForSynchronizationObject2(&wait), STATUS_SUCCESS);
	return create.hSyncObject;
}

static void sub_29_allocations_of_packets_behind_a_wait_are_busy(void **state)
{
	struct priority_world p;

	queue_start_with(&p, state, queue_1_3, NULL);
	struct lane *a = priority_lane(&p, 0, 'a'), *b = priority_lane(&p, 1, 'b');
	D3DKMT_HANDLE fence = hold(a), other = lane_allocate(a, 4 * KIB, WORLD_MEMORY);
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 signal = {.hContext = a->context,
							    .ObjectCount = 1,
							    .ObjectHandleArray = {fence},
							    .Fence.FenceValue = 1};
	uint32_t live = p.w.m->live_allocations;
	lane_submit(a, 1);
	lane_submit_use(a, other);
	assert_int_not_equal(lane_try_lock(a, a->own, 0), STATUS_SUCCESS);
	assert_int_equal(lane_destroy(a, other), STATUS_SUCCESS);
	assert_int_equal(p.w.m->live_allocations, live); /* its destruction waits for the packet */
	lane_submit(b, 2);
	queue_assert_order(&p, "bb");
	priority_complete(&p, 2);
	client_idle(&p.w.client); /* packets behind a wait are not waited for */
	/*
	 * Its own queue cannot free it, because the signal is behind the wait. Another context of
	 * the process can.
	 */
	lane_enter(a);
	assert_int_equal(D3DKMTSignalSynchronizationObject2(&signal), STATUS_SUCCESS);
	queue_assert_order(&p, "");
	D3DKMT_CREATECONTEXT create = {.hDevice = a->device};
	assert_int_equal(D3DKMTCreateContext(&create), STATUS_SUCCESS);
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 from_there = signal;
	from_there.hContext = create.hContext;
	assert_int_equal(D3DKMTSignalSynchronizationObject2(&from_there), STATUS_SUCCESS);
	while (strlen(priority_order(&p)) < 2 || p.w.m->live_allocations == live) {
		world_run(&p.w); /* the second packet needs its allocation paged in */
		vidmm_settle(p.w.client.host);
	}
	queue_assert_order(&p, "aa");
	assert_int_equal(lane_try_lock(a, a->own, 0), STATUS_SUCCESS);
	priority_stop(&p);
}

struct locker {
	struct lane *lane;
	_Atomic uint32_t at; /* 1: it is about to lock; 2: it has returned */
	NTSTATUS status;
};

static void lock_main(void *argument)
{
	struct locker *l = argument;
	D3DKMT_LOCK args = {.hDevice = l->lane->device, .hAllocation = l->lane->own};

	vidmm_d3dkmt_enter(l->lane->process);
	atomic_store(&l->at, 1);
	l->status = D3DKMTLock(&args);
	atomic_store(&l->at, 2);
	vidmm_d3dkmt_enter(NULL);
}

/* On return, a thread waits for a packet of its lane that is behind a wait. */
static struct vidmm_thread *start_locker(struct priority_world *p, struct locker *l)
{
	struct vidmm_thread *thread = NULL;

	lane_submit(l->lane, 1);
	p->w.m->settings.complete_at_once = true;
	assert_int_equal(vidmm_thread_create(p->w.client.host, "locker", lock_main, l, &thread), 0);
	while (!atomic_load(&l->at))
		vidmm_settle(p->w.client.host);
	vidmm_settle(p->w.client.host);
	return thread;
}

static void q_46_destroying_a_device_ends_a_lock_that_waits_for_its_packets(void **state)
{
	struct priority_world p;

	queue_start_with(&p, state, queue_1_3, NULL);
	struct locker l = {.lane = priority_lane(&p, 0, 'a')};
	const D3DKMT_DESTROYDEVICE end = {.hDevice = l.lane->device};

	(void)hold(l.lane);
	struct vidmm_thread *thread = start_locker(&p, &l);
	lane_enter(l.lane);
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	vidmm_thread_join(thread);
	assert_int_equal(l.at, 2);  /* any status, but it returned */
	client_forget(&p.w.client); /* if it came after the destruction, its handle is invalid */
	priority_stop(&p);
}

/* ---- two adapters ---- */

static void start_second(struct priority_world *p, struct scripted_miniport *m,
			 struct vidmm_adapter **adapter, D3DKMT_HANDLE *device)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};

	queue_3_0(m);
	m->settings.complete_at_once = true;
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .initialization_data = scripted_table(m),
						      .bar_sizes = bars,
						      .bar_count = 1,
						      .tdr = &client_no_tdr};
	assert_int_equal(vidmm_adapter_start(p->w.client.host, &options, adapter), 0);
	vidmm_d3dkmt_enter(p->process[1]);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 2);
	D3DKMT_CREATEDEVICE create = {.hAdapter = info[1].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&create), STATUS_SUCCESS);
	*device = create.hDevice;
}

static void sfl_11_syn_23_a_context_waits_for_a_context_of_another_adapter(void **state)
{
	struct vidmm_adapter *adapter;
	struct priority_world p;

	queue_start(&p, state);
	struct scripted_miniport *m = scripted_create();
	start_second(&p, m, &adapter, &p.device[1]);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	struct queue_fence both = queue_fence(a, 7, 0), back = queue_fence(b, 7, 0);
	D3DKMT_HANDLE theirs = queue_fence_for(a, both.handle, b),
		      ours = queue_fence_for(b, back.handle, a);
	assert_int_equal(lane_wait(b, theirs, 1), STATUS_SUCCESS);
	lane_render(b);
	assert_int_equal(lane_signal(b, back.handle, 1), STATUS_SUCCESS);
	lane_render(a);
	assert_int_equal(lane_signal(a, both.handle, 1), STATUS_SUCCESS);
	assert_int_equal(lane_wait(a, ours, 1), STATUS_SUCCESS);
	lane_render(a);
	queue_assert_order(&p, "a");
	priority_complete(&p, 1); /* the other adapter gets its packet, and then this one */
	queue_assert_order(&p, "ba");
	assert_int_equal(*back.value, 1);
	/* A fence without CrossAdapter belongs to one adapter (SYN-23). */
	struct queue_fence own = queue_fence(b, 0, 0);
	p.device[1] = b->device;
	struct lane first = *b;
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = info[0].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	D3DKMT_CREATECONTEXT context = {.hDevice = device.hDevice};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	first.context = context.hContext;
	assert_int_equal(lane_wait(&first, own.handle, 1), STATUS_INVALID_PARAMETER);
	queue_found(&p, "SYN-23");
	assert_int_equal(lane_signal(&first, own.handle, 1), STATUS_INVALID_PARAMETER);
	queue_found(&p, "SYN-23");
	vidmm_adapter_stop(adapter);
	priority_stop(&p);
	scripted_destroy(m);
}

/* ---- a reset ---- */

static void tdrs_11_signals_of_lost_contexts_are_never_executed(void **state)
{
	struct vidmm_tdr_options tdr = timeout_defaults(VIDMM_HOST_SIM);
	struct priority_world p;

	queue_start_with(&p, state, queue_3_0, &tdr);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	struct queue_fence f = queue_fence(a, 0, 0), kept = queue_fence(a, 0x40, 1),
			   theirs = queue_fence(b, 0x40, 1), held = queue_fence(b, 0x40, 1);
	lane_render(a); /* this one hangs */
	assert_int_equal(lane_signal(a, f.handle, 7), STATUS_SUCCESS);
	assert_int_equal(lane_signal(a, kept.handle, 7), STATUS_SUCCESS);
	assert_int_equal(lane_wait(b, held.handle, 100), STATUS_SUCCESS);
	lane_render(b);
	assert_int_equal(lane_signal_with(b, theirs.handle, 0, 4), STATUS_SUCCESS);
	vidmm_sleep_until_ns(p.w.client.host, vidmm_now_ns(p.w.client.host) + 10 * NS_PER_S);
	vidmm_settle(p.w.client.host);
	assert_true(*f.value == UINT64_MAX); /* and no lower value came after it */
	assert_int_equal(*kept.value, 1);
	assert_int_equal(*theirs.value, 1);
	queue_assert_order(&p, "a");
	assert_int_equal(lane_wait(a, f.handle, 1), STATUS_DEVICE_REMOVED);
	assert_int_equal(lane_signal(a, f.handle, 1), STATUS_DEVICE_REMOVED);
	lane_end(a);
	lane_end(b);
	priority_stop(&p);
}

/* Waits of surviving contexts are satisfied by the maximum value. */
static void per_engine(struct scripted_miniport *m)
{
	queue_3_0(m);
	m->settings.caps.SupportPerEngineTDR = 1;
	m->settings.table.DxgkDdiResetEngine = scripted_reset_engine;
	m->settings.table.DxgkDdiQueryEngineStatus = scripted_query_engine_status;
	m->settings.table.DxgkDdiQueryDependentEngineGroup = scripted_query_engine_group;
}

static void tdrs_01_tdrs_11_waits_on_a_max_valued_fence_complete(void **state)
{
	struct vidmm_tdr_options tdr = timeout_defaults(VIDMM_HOST_SIM);
	struct priority_world p;

	queue_start_with(&p, state, per_engine, &tdr);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	struct queue_fence f = queue_fence(a, 3, 0), g = queue_fence(b, 0, 0);
	D3DKMT_HANDLE theirs = queue_fence_for(a, f.handle, b);
	assert_int_equal(lane_wait(b, theirs, 7), STATUS_SUCCESS);
	lane_render(b);
	assert_int_equal(lane_signal(b, g.handle, 1), STATUS_SUCCESS);
	lane_render(a);
	assert_int_equal(lane_signal(a, f.handle, 7), STATUS_SUCCESS);
	vidmm_sleep_until_ns(p.w.client.host, vidmm_now_ns(p.w.client.host) + 5 * NS_PER_S);
	vidmm_settle(p.w.client.host);
	assert_true(*f.value == UINT64_MAX);
	assert_int_equal(lane_wait(a, f.handle, 1), STATUS_DEVICE_REMOVED);
	queue_assert_order(&p, "ab");
	priority_complete(&p, 1);
	assert_int_equal(*g.value, 1);
	priority_stop(&p);
}

/* SYN-28: a context of another device of the process, which a reset has lost. */
static void tdrs_01_syn_28_a_lost_context_cannot_take_part_in_a_broadcast_signal(void **state)
{
	struct vidmm_tdr_options tdr = timeout_defaults(VIDMM_HOST_SIM);
	struct priority_world p;

	queue_start_with(&p, state, per_engine, &tdr);
	struct lane *lost = queue_lane(&p, 0, 'a');
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	lane_enter(lost);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE another = {.hAdapter = info.hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&another), STATUS_SUCCESS);
	p.device[0] = another.hDevice;
	struct lane *b = queue_lane(&p, 0, 'b');
	struct queue_fence f = queue_fence(b, 0, 0);
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 args = {.hContext = b->context,
						    .ObjectCount = 1,
						    .ObjectHandleArray = {f.handle},
						    .BroadcastContextCount = 1,
						    .BroadcastContext = {lost->context},
						    .Fence.FenceValue = 1};
	lane_render(lost); /* this one hangs */
	vidmm_sleep_until_ns(p.w.client.host, vidmm_now_ns(p.w.client.host) + 5 * NS_PER_S);
	vidmm_settle(p.w.client.host);
	lane_enter(b);
	assert_int_equal(D3DKMTSignalSynchronizationObject2(&args), STATUS_DEVICE_REMOVED);
	client_settle(&p.w.client);
	assert_int_equal(*f.value, 0);
	assert_int_equal(lane_signal(b, f.handle, 2), STATUS_SUCCESS);
	assert_int_equal(*f.value, 2);
	priority_stop(&p);
}

/* ---- power ---- */

static void pnp_05_a_queued_wait_survives_a_power_change(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 0);
	p.w.m->settings.complete_at_once = true;
	assert_int_equal(lane_wait(a, f.handle, 1), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 40; i++)
		lane_render(a);
	assert_int_equal(
		vidmm_adapter_set_power(p.w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		0);
	queue_assert_order(&p, "");
	assert_int_equal(
		vidmm_adapter_set_power(p.w.client.adapter, VIDMM_POWER_D0, VIDMM_SLEEP_STANDBY),
		0);
	queue_assert_order(&p, "");
	assert_int_equal(queue_cpu_signal(a, f.handle, 1), STATUS_SUCCESS);
	queue_assert_order(&p, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	priority_stop(&p);
}

static void set_power(struct priority_world *p, enum vidmm_power power)
{
	assert_int_equal(vidmm_adapter_set_power(p->w.client.adapter, power, VIDMM_SLEEP_STANDBY),
			 0);
}

/*
 * The awaited value may never come. The thread leaves the device until power returns, and then
 * waits again.
 */
static void pnp_05_q_71_a_lock_behind_a_wait_does_not_block_power_down(void **state)
{
	struct priority_world p;

	queue_start_with(&p, state, queue_1_3, NULL);
	struct locker l = {.lane = priority_lane(&p, 0, 'a')};
	D3DKMT_HANDLE fence = hold(l.lane);
	struct vidmm_thread *thread = start_locker(&p, &l);

	for (uint32_t i = 0; i < 2; i++) {
		set_power(&p, VIDMM_POWER_D3);
		vidmm_settle(p.w.client.host);
		assert_int_equal(l.at, 1);
		set_power(&p, VIDMM_POWER_D0);
		vidmm_settle(p.w.client.host);
		assert_int_equal(l.at, 1);
	}
	queue_assert_order(&p, "");
	D3DKMT_CREATECONTEXT create = {.hDevice = l.lane->device};
	lane_enter(l.lane);
	assert_int_equal(D3DKMTCreateContext(&create), STATUS_SUCCESS);
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 signal = {.hContext = create.hContext,
							    .ObjectCount = 1,
							    .ObjectHandleArray = {fence},
							    .Fence.FenceValue = 1};
	assert_int_equal(D3DKMTSignalSynchronizationObject2(&signal), STATUS_SUCCESS);
	vidmm_thread_join(thread);
	assert_int_equal(l.status, STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	priority_stop(&p);
}

/* While it has left the device, the device may be destroyed. */
static void pnp_05_q_71_a_lock_returns_when_its_device_ended_meanwhile(void **state)
{
	struct priority_world p;

	queue_start_with(&p, state, queue_1_3, NULL);
	struct locker l = {.lane = priority_lane(&p, 0, 'a')};
	const D3DKMT_DESTROYDEVICE end = {.hDevice = l.lane->device};

	(void)hold(l.lane);
	struct vidmm_thread *thread = start_locker(&p, &l);
	set_power(&p, VIDMM_POWER_D3);
	set_power(&p, VIDMM_POWER_D0);
	lane_enter(l.lane);
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	vidmm_thread_join(thread);
	assert_int_equal(l.at, 2);
	client_forget(&p.w.client);
	priority_stop(&p);
}

/* ---- values that a GPU stores ---- */

/*
 * The GPU's access to the fence word: the same memory through another mapping of the process, which
 * is writable. No adapter here has GPU virtual addresses, so there is no GPU address. How a store
 * is made does not matter to the core.
 */
static _Atomic uint64_t *gpu_path(const _Atomic uint64_t *value)
{
	uintptr_t first, end, at = (uintptr_t)value, found = 0;
	uint64_t offset, inode, page = 0, file = 0;
	char line[256], access[5];

	for (uint32_t pass = 0; pass < 2; pass++) {
		FILE *maps = fopen("/proc/self/maps", "r");

		assert_non_null(maps);
		while (fgets(line, sizeof(line), maps)) {
			if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %*s %" SCNu64,
				   &first, &end, access, &offset, &inode) != 5)
				continue;
			if (!pass && at >= first && at < end) {
				file = inode;
				page = offset + (at - first);
			} else if (pass && inode == file && access[1] == 'w' && page >= offset &&
				   page - offset < end - first) {
				found = first + (uintptr_t)(page - offset);
			}
		}
		assert_int_equal(fclose(maps), 0);
	}
	assert_true(found != 0);
	return (_Atomic uint64_t *)found;
}

struct interrupt {
	struct scripted_miniport *m;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;
};

static BOOLEAN at_device_irql(PVOID context)
{
	struct interrupt *i = context;

	i->m->services.DxgkCbNotifyInterrupt(i->m->services.DeviceHandle, &i->data);
	return i->m->services.DxgkCbQueueDpc(i->m->services.DeviceHandle);
}

static void fence_interrupt(struct scripted_miniport *m)
{
	struct interrupt i = {.m = m,
			      .data.InterruptType = DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED};
	BOOLEAN result;

	m->services.DxgkCbSynchronizeExecution(m->services.DeviceHandle, at_device_irql, &i, 0,
					       &result);
}

static void mfn_05_mfn_25_mfn_26_mfn_27_a_gpu_store_is_seen_when_its_buffer_ends(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 0, 'b');
	struct queue_fence f = queue_fence(a, 0, 10);
	_Atomic uint64_t *gpu = gpu_path(f.value);
	lane_render(a);
	assert_int_equal(lane_wait(b, f.handle, 20), STATUS_SUCCESS);
	lane_render(b);
	atomic_store(gpu, 20);
	assert_int_equal(*f.value, 20);
	queue_assert_order(&p, "a"); /* no notification was sent */
	priority_complete(&p, 1);
	queue_assert_order(&p, "b");
	/* In the middle of a buffer, reported by an interrupt (MFN-27). */
	assert_int_equal(lane_wait(a, f.handle, 30), STATUS_SUCCESS);
	lane_render(a);
	atomic_store(gpu, 30);
	queue_assert_order(&p, "");
	fence_interrupt(p.w.m);
	queue_assert_order(&p, "a");
	priority_complete(&p, 2);
	/* The store is literal: the value decreases, and signals compare with it (MFN-25). */
	atomic_store(gpu, 3);
	assert_int_equal(*f.value, 3);
	assert_int_equal(lane_wait(b, f.handle, 5), STATUS_SUCCESS);
	lane_render(b);
	queue_assert_order(&p, "");
	assert_int_equal(queue_cpu_signal(a, f.handle, 5), STATUS_SUCCESS);
	assert_int_equal(*f.value, 5);
	queue_assert_order(&p, "b");
	priority_stop(&p);
}

/* ---- paging queues ---- */

static void umd(struct scripted_miniport *m)
{
	queue_3_0(m);
}

static void mfn_35_mfn_36_a_context_waits_for_a_paging_queue_fence(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = 0x8001,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDICB_CREATEPAGINGQUEUE queue = {0};
	struct world w;

	world_start(&w, state, umd);
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	HANDLE device = w.device.handle;
	assert_int_equal(cb->pfnCreatePagingQueueCb(device, &queue), S_OK);
	D3DKMT_HANDLE a = world_allocate_as(&w.device, &spec);
	D3DDDI_MAKERESIDENT make = {
		.hPagingQueue = queue.hPagingQueue, .NumAllocations = 1, .AllocationList = &a};
	assert_int_equal(cb->pfnMakeResidentCb(device, &make), E_PENDING);
	assert_true(make.PagingFenceValue != 0); /* MFN-36 */
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {
		.hContext = w.context.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &queue.hSyncObject,
		.MonitoredFenceValueArray = &make.PagingFenceValue};
	assert_int_equal(cb->pfnWaitForSynchronizationObjectFromGpuCb(device, &wait), S_OK);
	world_submit_use(&w.context, a);
	assert_int_equal(world_render_submits(&w), 0);
	world_run(&w);
	while (!world_render_submits(&w))
		vidmm_settle(w.client.host);
	world_run(&w);
	const UINT64 more = make.PagingFenceValue + 1;
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {.hContext = wait.hContext,
							      .ObjectCount = 1,
							      .ObjectHandleArray =
								      &queue.hSyncObject,
							      .MonitoredFenceValueArray = &more};
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromGpuCb(device, &signal),
			 E_ACCESSDENIED);
	world_expect_finding(&w, "MFN-35");
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(q_46_sub_29_destroying_a_context_does_not_wait_for_its_fences),
		ON_BOTH(sub_29_destroying_a_device_ends_its_contexts_waits),
		ON_BOTH(pnp_03_an_adapter_stops_although_contexts_wait),
		ON_BOTH(sub_29_allocations_of_packets_behind_a_wait_are_busy),
		ON_BOTH(q_46_destroying_a_device_ends_a_lock_that_waits_for_its_packets),
		ON_BOTH(sfl_11_syn_23_a_context_waits_for_a_context_of_another_adapter),
		ON_SIM(tdrs_11_signals_of_lost_contexts_are_never_executed),
		ON_SIM(tdrs_01_syn_28_a_lost_context_cannot_take_part_in_a_broadcast_signal),
		ON_SIM(tdrs_01_tdrs_11_waits_on_a_max_valued_fence_complete),
		ON_BOTH(pnp_05_a_queued_wait_survives_a_power_change),
		ON_BOTH(pnp_05_q_71_a_lock_behind_a_wait_does_not_block_power_down),
		ON_BOTH(pnp_05_q_71_a_lock_returns_when_its_device_ended_meanwhile),
		ON_BOTH(mfn_05_mfn_25_mfn_26_mfn_27_a_gpu_store_is_seen_when_its_buffer_ends),
		ON_BOTH(mfn_35_mfn_36_a_context_waits_for_a_paging_queue_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
