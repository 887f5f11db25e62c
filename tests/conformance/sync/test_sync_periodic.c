/* SPDX-License-Identifier: MIT */
/* Periodic monitored fences: parameters, rising values, allowed calls, and destruction (PMF). */
#include "sync_world.h"

#include <string.h>
#include <unistd.h>

#define FRAME_100NS 166667u /* of the scripted miniport's targets */

static void with_display(struct scripted_miniport *m)
{
	sync_3_0(m);
	m->settings.source_count = 2;
	m->settings.child_count = 2;
	m->settings.caps.FlipCaps.FlipOnVSyncMmIo = 1;
}

static NTSTATUS try_make(struct sync_world *s, uint32_t target, uint64_t time, uint32_t flags,
			 D3DKMT_CREATESYNCHRONIZATIONOBJECT2 *args)
{
	memset(args, 0xAA, sizeof(*args));
	args->Info.PeriodicMonitoredFence.hAdapter = s->adapter;
	args->Info.PeriodicMonitoredFence.VidPnTargetId = target;
	args->Info.PeriodicMonitoredFence.Time = time;
	args->Info.PeriodicMonitoredFence.EngineAffinity = 0;
	return sync_try_create(s, D3DDDI_PERIODIC_MONITORED_FENCE, flags, args);
}

static struct sync_fence make(struct sync_world *s, uint32_t target, uint64_t time, uint32_t flags)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args;

	assert_int_equal(try_make(s, target, time, flags, &args), STATUS_SUCCESS);
	assert_int_equal(args.Info.PeriodicMonitoredFence.FenceValueGPUVirtualAddress, 0);
	return (struct sync_fence){
		.handle = args.hSyncObject,
		.value = args.Info.PeriodicMonitoredFence.FenceValueCPUVirtualAddress};
}

static const DXGKARG_CREATEPERIODICFRAMENOTIFICATION *created(const struct sync_world *s,
							      uint32_t n)
{
	return &scripted_nth(s->w.m, VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION, n)
			->in.create_periodic;
}

/* Fires the n-th notification and lets other threads run until they wait. */
static void beat(struct sync_world *s, uint32_t n)
{
	scripted_beat(s->w.m, created(s, n)->VidPnTargetId, created(s, n)->NotificationID);
	vidmm_settle(s->w.client.host);
}

static void pmf_03_pmf_07_the_value_rises_by_one_per_notification(void **state)
{
	struct sync_world s;

	sync_start(&s, state, with_display);
	struct sync_fence a = make(&s, 0, 10000, 0), b = make(&s, 1, 0, 0x80);
	const struct scripted_call *call =
		scripted_nth(s.w.m, VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION, 0);
	assert_int_equal(call->irql, 0);
	assert_int_equal(created(&s, 0)->VidPnTargetId, 0);
	assert_int_equal(created(&s, 0)->Time, 10000);
	assert_int_equal(created(&s, 1)->VidPnTargetId, 1);
	assert_int_equal(created(&s, 1)->Time, 0);
	assert_int_not_equal(created(&s, 0)->NotificationID, created(&s, 1)->NotificationID);
	assert_int_equal(*a.value, 0);
	for (uint32_t i = 1; i <= 10; i++) {
		beat(&s, 0);
		assert_int_equal(*a.value, i);
	}
	assert_int_equal(*b.value, 0);
	beat(&s, 1);
	assert_int_equal(*a.value, 10);
	assert_int_equal(*b.value, 1);
	sync_stop(&s);
}

static void pmf_05_cpu_and_gpu_waits_work_as_for_a_monitored_fence(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, with_display);
	struct sync_fence f = make(&s, 0, 0, 0);
	int event = sync_event();
	assert_int_equal(sync_wait(s.device, f.handle, 0), STATUS_SUCCESS);
	assert_int_equal(sync_wait_event(s.device, f.handle, 2, event), STATUS_SUCCESS);
	v.process = s.process;
	sync_waiter_start(&s, &v, f.handle, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(v.done, 0);
		assert_int_equal(sync_events(event), i == 2);
		beat(&s, 0);
	}
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	close(event);
	sync_stop(&s);
}

/*
 * The miniport's 60 Hz clock runs by itself here, in virtual time: three notifications take three
 * frames.
 */
static void clock_main(void *argument)
{
	struct sync_world *s = argument;

	uint64_t began = vidmm_now_ns(s->w.client.host);

	for (uint32_t i = 1; i <= 5; i++) {
		vidmm_sleep_until_ns(s->w.client.host, began + i * FRAME_100NS * 100ull);
		scripted_beat(s->w.m, 0, created(s, 0)->NotificationID);
	}
}

static void pmf_03_pmf_05_three_rises_take_three_frames(void **state)
{
	struct vidmm_thread *thread;
	struct sync_world s;

	sync_start(&s, state, with_display);
	struct sync_fence f = make(&s, 0, 0, 0);
	uint64_t began = vidmm_now_ns(s.w.client.host);
	assert_int_equal(
		vidmm_thread_create(s.w.client.host, "vertical syncs", clock_main, &s, &thread), 0);
	assert_int_equal(sync_wait(s.device, f.handle, 3), STATUS_SUCCESS);
	uint64_t took = vidmm_now_ns(s.w.client.host) - began;
	assert_true(took >= 3 * FRAME_100NS * 100ull && took < 4 * FRAME_100NS * 100ull);
	vidmm_thread_join(thread);
	assert_int_equal(*f.value, 5);
	sync_stop(&s);
}

static void pmf_04_client_signals_are_denied(void **state)
{
	struct sync_world s;

	sync_start(&s, state, with_display);
	struct sync_fence f = make(&s, 0, 0, 0);
	assert_int_equal(sync_signal(s.device, f.handle, 7), STATUS_ACCESS_DENIED);
	sync_found(&s, "PMF-04");
	assert_int_equal(sync_signal_with(s.device, f.handle, 7, 4), STATUS_ACCESS_DENIED);
	sync_found(&s, "PMF-04");
	assert_int_equal(*f.value, 0);
	sync_stop(&s);
}

static void pmf_01_pmf_02_invalid_adapter_target_or_time_is_refused(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args;
	struct sync_world s;

	sync_start(&s, state, with_display);
	assert_int_equal(try_make(&s, 2, 0, 0, &args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "PMF-01");
	assert_int_equal(try_make(&s, 99, 0, 0, &args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "PMF-01");
	assert_int_equal(try_make(&s, 0, FRAME_100NS + 1, 0, &args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "PMF-02");
	assert_int_equal(args.hSyncObject, 0xAAAAAAAA);
	D3DKMT_HANDLE adapter = s.adapter;
	s.adapter = 0;
	assert_int_equal(try_make(&s, 0, 0, 0, &args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "PMF-01");
	s.adapter = adapter;
	assert_int_equal(s.w.m->live_periodic, 0);
	(void)make(&s, 1, FRAME_100NS, 0);
	sync_stop(&s);
}

static void without_periodic(struct scripted_miniport *m)
{
	with_display(m);
	m->settings.table.DxgkDdiCreatePeriodicFrameNotification = NULL;
}

static void pmf_07_miniport_failures_fail_the_creation(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args;
	struct sync_world s;

	sync_start(&s, state, without_periodic);
	assert_int_equal(try_make(&s, 0, 0, 0, &args), STATUS_NOT_SUPPORTED);
	sync_stop(&s);
	sync_start(&s, state, with_display);
	scripted_fail(s.w.m, VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION, STATUS_NO_MEMORY, 1);
	assert_int_equal(try_make(&s, 0, 0, 0, &args), STATUS_NO_MEMORY);
	scripted_fail(s.w.m, VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION, STATUS_TIMEOUT, 1);
	assert_int_equal(try_make(&s, 0, 0, 0, &args), STATUS_INVALID_PARAMETER);
	assert_true(client_found(&s.w.client, "PMF-07"));
	client_forget(&s.w.client);
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION), 0);
	(void)make(&s, 0, 0, 0);
	sync_stop(&s);
}

static void pmf_07_interrupts_for_unknown_notifications_are_errors(void **state)
{
	struct sync_world s;

	sync_start(&s, state, with_display);
	struct sync_fence f = make(&s, 0, 0, 0);
	uint32_t id = created(&s, 0)->NotificationID;
	scripted_beat(s.w.m, 2, id); /* no such target */
	sync_found(&s, "PMF-07");
	scripted_beat(s.w.m, 1, id); /* it belongs to target 0 */
	sync_found(&s, "PMF-07");
	scripted_beat(s.w.m, 0, id + 1);
	sync_found(&s, "PMF-07");
	scripted_beat(s.w.m, 0, 0);
	sync_found(&s, "PMF-07");
	assert_int_equal(*f.value, 0);
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	vidmm_settle(s.w.client.host);
	assert_int_equal(s.w.m->live_periodic, 0);
	(void)make(&s, 0, 0, 0); /* the same slot under another id */
	scripted_beat(s.w.m, 0, id);
	sync_found(&s, "PMF-07");
	sync_stop(&s);
}

/* SHR-04, SHR-12: it rises as long as any handle is open, an NT handle included. */
static void pmf_03_shr_12_it_rises_until_the_last_handle_is_closed(void **state)
{
	struct sync_world s;
	HANDLE nt = NULL;

	sync_start(&s, state, with_display);
	struct sync_fence f = make(&s, 0, 0, 3);
	assert_int_equal(D3DKMTShareObjects(1, &f.handle, NULL, 0x20000, &nt), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	vidmm_settle(s.w.client.host);
	assert_int_equal(s.w.m->live_periodic, 1);
	beat(&s, 0);
	vidmm_d3dkmt_enter(s.other);
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 open = {.hNtHandle = nt, .hDevice = s.other_device};
	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle2(&open), STATUS_SUCCESS);
	const _Atomic uint64_t *value = open.MonitoredFence.FenceValueCPUVirtualAddress;
	assert_int_equal(*value, 1);
	assert_int_equal(sync_signal(s.other_device, open.hSyncObject, 9), STATUS_ACCESS_DENIED);
	sync_found(&s, "PMF-04");
	close((int)(uintptr_t)nt);
	beat(&s, 0);
	assert_int_equal(*value, 2);
	assert_int_equal(sync_destroy(open.hSyncObject), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	vidmm_settle(s.w.client.host);
	assert_int_equal(s.w.m->live_periodic, 0);
	assert_ptr_equal(
		scripted_last(s.w.m, VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION)->handle,
		scripted_nth(s.w.m, VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION, 0)->handle);
	sync_stop(&s);
}

/* The adapter stops while only an NT handle is open. */
static void pnp_03_notifications_end_before_the_miniport_stops(void **state)
{
	struct sync_world s;
	HANDLE nt = NULL;

	sync_start(&s, state, with_display);
	struct sync_fence f = make(&s, 0, 0, 3);
	(void)make(&s, 1, 0, 0);
	assert_int_equal(D3DKMTShareObjects(1, &f.handle, NULL, 0x20000, &nt), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	sync_stop(&s);
	close((int)(uintptr_t)nt);
}

/*
 * A miniport thread fires all notifications that ever existed, while fences are created and
 * destroyed.
 */
enum { FENCES = 200 };
struct beater {
	struct sync_world *s;
	_Atomic uint32_t made, quit;
};

static void beat_main(void *argument)
{
	struct beater *x = argument;

	while (!atomic_load(&x->quit)) {
		uint32_t made = atomic_load(&x->made);

		if (made)
			scripted_beat(x->s->w.m, 0, created(x->s, made - 1)->NotificationID);
	}
}

static void pmf_07_notifications_race_with_destruction(void **state)
{
	struct vidmm_thread *thread;
	struct sync_world s;
	struct beater x = {.s = &s};

	sync_start(&s, state, with_display);
	assert_int_equal(vidmm_thread_create(s.w.client.host, "beats", beat_main, &x, &thread), 0);
	for (uint32_t i = 1; i <= FENCES; i++) {
		struct sync_fence f = make(&s, 0, 0, 0);

		atomic_store(&x.made, i);
		if (i % 8 == 0)
			assert_int_equal(sync_wait(s.device, f.handle, 2), STATUS_SUCCESS);
		assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	}
	atomic_store(&x.quit, 1);
	vidmm_thread_join(thread);
	vidmm_settle(s.w.client.host);
	assert_int_equal(s.w.m->live_periodic, 0);
	client_forget(&s.w.client); /* PMF-07, of notifications fired after destruction */
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pmf_03_pmf_07_the_value_rises_by_one_per_notification),
		ON_BOTH(pmf_05_cpu_and_gpu_waits_work_as_for_a_monitored_fence),
		ON_SIM(pmf_03_pmf_05_three_rises_take_three_frames),
		ON_BOTH(pmf_04_client_signals_are_denied),
		ON_BOTH(pmf_01_pmf_02_invalid_adapter_target_or_time_is_refused),
		ON_BOTH(pmf_07_miniport_failures_fail_the_creation),
		ON_BOTH(pmf_07_interrupts_for_unknown_notifications_are_errors),
		ON_BOTH(pmf_03_shr_12_it_rises_until_the_last_handle_is_closed),
		ON_BOTH(pnp_03_notifications_end_before_the_miniport_stops),
		ON_LINUX(pmf_07_notifications_race_with_destruction),
	};

	return cmocka_run_group_tests_name("sync periodic", tests, NULL, NULL);
}
