/* SPDX-License-Identifier: MIT */
/* Monitored fences during an adapter reset (TDRS). On the simulator, with virtual time. */
#include "wddm2_world.h"

#include <sync_bundle.h>
#include <sync_world.h>
#include <unistd.h>

static void start(struct sync_world *s, void **state, world_setup *setup)
{
	static const struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};

	sync_start_with(s, state, setup, &options);
}

/*
 * A packet of another client never ends. The time is long enough for a reset, which loses every
 * device of the adapter.
 */
static void hang(struct sync_world *s)
{
	struct world *w = &s->w;
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w->device);
	D3DKMT_HANDLE a = wddm2_allocate(&w->device, 64 * KIB, WORLD_MEMORY);

	wddm2_make(w, &w->device, &queue, &a, 1);
	w->m->settings.complete_at_once = false;
	world_submit_use(&w->context, a);
	vidmm_sleep_until_ns(w->client.host, vidmm_now_ns(w->client.host) + 10000000000);
	vidmm_settle(w->client.host);
	w->m->settings.complete_at_once = true;
}

static void tdrs_01_tdrs_06_tdrs_12_syn_18_mfn_38_a_reset_releases_fence_waiters(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {0};
	struct sync_waiter v = {0};
	struct sync_world s;

	start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 3);
	int event = sync_event();
	v.process = s.process;
	sync_waiter_start(&s, &v, f.handle, 1000);
	assert_int_equal(sync_wait_event(s.device, f.handle, 1000, event), STATUS_SUCCESS);
	hang(&s);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 1);
	assert_true(*f.value == UINT64_MAX); /* MFN-38 */
	assert_int_equal(sync_signal(s.device, f.handle, 5), STATUS_DEVICE_REMOVED);
	assert_int_equal(sync_wait(s.device, f.handle, 5), STATUS_DEVICE_REMOVED);
	assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 0, &args),
			 STATUS_DEVICE_REMOVED); /* SYN-18 */
	/*
	 * TDRS-12: another device of the process, created later, survives; the value that it
	 * signals is lower.
	 */
	D3DKMT_HANDLE second = sync_open_device(&s);
	assert_int_equal(sync_wait(second, f.handle, 5), STATUS_SUCCESS);
	assert_int_equal(sync_signal(second, f.handle, 5), STATUS_SUCCESS);
	assert_true(*f.value == UINT64_MAX);
	assert_int_equal(sync_signal_with(second, f.handle, 5, 4), STATUS_SUCCESS);
	assert_int_equal(*f.value, 5);
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	close(event);
	sync_stop(&s);
}

static void tdrs_03_tdrs_04_sfl_18_sfl_19_fences_that_keep_their_value_on_reset(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	start(&s, state, sync_3_0);
	struct sync_fence keeps_value = sync_fence(&s, 0x40, 3),
			  no_signal = sync_fence(&s, 0x10, 4), no_wait = sync_fence(&s, 0x20, 5);
	int event = sync_event();
	assert_int_equal(sync_wait_event(s.device, keeps_value.handle, 10, event), STATUS_SUCCESS);
	v.process = s.process;
	sync_waiter_start(&s, &v, no_signal.handle, 10);
	hang(&s);
	assert_int_equal(*keeps_value.value, 3);
	assert_int_equal(*no_signal.value, 4);
	assert_true(*no_wait.value == UINT64_MAX);
	assert_int_equal(sync_events(event), 0);
	assert_int_equal(sync_waiter_join(&v), STATUS_DEVICE_REMOVED); /* TDRS-06 */
	D3DKMT_HANDLE second = sync_open_device(&s);
	assert_int_equal(sync_signal(second, keeps_value.handle, 10), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 1);
	close(event);
	sync_stop(&s);
}

static void tdrs_02_a_32_bit_fence_is_set_to_0xffffffff(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	start(&s, state, sync_narrow);
	struct sync_fence f = sync_fence(&s, 0, 0xFFFFFFF0), low = sync_fence(&s, 0, 1);
	v.process = s.process;
	sync_waiter_start(&s, &v, f.handle, 0x100000010);
	hang(&s);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	assert_int_equal(*f.value, 0xFFFFFFFF);
	assert_int_equal(*low.value, 0xFFFFFFFF);
	D3DKMT_HANDLE second = sync_open_device(&s);
	assert_int_equal(sync_wait(second, low.handle, UINT64_MAX), STATUS_SUCCESS);
	assert_int_equal(sync_signal(second, low.handle, 7), STATUS_SUCCESS);
	assert_int_equal(*low.value, 0xFFFFFFFF);
	assert_int_equal(sync_signal_with(second, low.handle, 7, 4), STATUS_SUCCESS);
	assert_int_equal(*low.value, 7);
	assert_int_equal(sync_wait(second, low.handle, 7), STATUS_SUCCESS);
	sync_stop(&s);
}

static struct sync_fence open_fence(D3DKMT_HANDLE device, int nt, uint32_t flags)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args = {
		.hNtHandle = (HANDLE)(intptr_t)nt, .hDevice = device, .Flags.Value = flags};

	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle2(&args), STATUS_SUCCESS);
	return (struct sync_fence){.handle = args.hSyncObject,
				   .value = args.MonitoredFence.FenceValueCPUVirtualAddress};
}

/* Another adapter with a device of the second process, which loses nothing. */
static D3DKMT_HANDLE open_on_second_adapter(struct sync_world *s, struct scripted_miniport *m,
					    struct vidmm_adapter **adapter)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .initialization_data = scripted_table(m),
						      .bar_sizes = bars,
						      .bar_count = 1,
						      .tdr = &client_no_tdr};

	assert_int_equal(vidmm_adapter_start(s->w.client.host, &options, adapter), 0);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = info[1].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	return device.hDevice;
}

/*
 * The second process is innocent: it cannot signal the first fence, and has the second one on
 * another adapter.
 */
static void tdrs_05_tdrs_01_an_innocent_process_reads_the_maximum(void **state)
{
	struct vidmm_adapter *second_adapter;
	struct sync_waiter v = {0};
	struct sync_world s;

	start(&s, state, sync_3_0);
	struct scripted_miniport *m = scripted_create();
	sync_3_0(m);
	struct sync_fence near = sync_fence(&s, 3, 1), far = sync_fence(&s, 3 | 4, 2);
	int nt_near = bundle_share_one(near.handle), nt_far = bundle_share_one(far.handle);
	vidmm_d3dkmt_enter(s.other);
	D3DKMT_HANDLE device = open_on_second_adapter(&s, m, &second_adapter);
	struct sync_fence one = open_fence(s.other_device, nt_near, 0x10),
			  two = open_fence(device, nt_far, 0);
	v.process = s.other;
	v.device = device;
	sync_waiter_start(&s, &v, two.handle, 1000);
	hang(&s);
	assert_true(*one.value == UINT64_MAX);
	assert_true(*two.value == UINT64_MAX);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	assert_int_equal(sync_signal(device, two.handle, 7), STATUS_SUCCESS);
	assert_true(*two.value == UINT64_MAX); /* TDRS-12 */
	assert_int_equal(sync_signal_with(device, two.handle, 7, 4), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(*far.value, 7);
	assert_true(*near.value == UINT64_MAX);
	close(nt_near);
	close(nt_far);
	vidmm_adapter_stop(second_adapter);
	sync_stop(&s);
	scripted_destroy(m);
}

struct acquirer {
	struct vidmm_process *process;
	D3DKMT_HANDLE keyed;
	NTSTATUS result;
	struct vidmm_thread *thread;
};

static void acquire(void *argument)
{
	struct acquirer *a = argument;

	vidmm_d3dkmt_enter(a->process);
	a->result = bundle_await(a->keyed, 99);
	vidmm_d3dkmt_enter(NULL);
}

static void start_acquirer(struct sync_world *s, struct acquirer *a)
{
	assert_int_equal(vidmm_thread_create(s->w.client.host, "acquires", acquire, a, &a->thread),
			 0);
}

static void at_1_3(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM1_3);
}

static void hang_1_3(struct sync_world *s)
{
	world_submit_use(&s->w.context, world_allocate(&s->w, 64 * KIB, WORLD_MEMORY));
	vidmm_sleep_until_ns(s->w.client.host, vidmm_now_ns(s->w.client.host) + 10000000000);
	vidmm_settle(s->w.client.host);
	s->w.m->settings.complete_at_once = true;
}

/* Before WDDM 2.0 there are no monitored fences, and bundles have another third object. */
static void kmx_23_a_reset_ends_keyed_mutex_acquires(void **state)
{
	for (uint32_t older = 0; older < 2; older++) {
		struct acquirer creator = {0}, opener = {0};
		D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {0};
		D3DKMT_CREATEALLOCATION resource;
		struct sync_world s;
		struct bundle b;

		start(&s, state, older ? at_1_3 : sync_3_0);
		assert_int_equal(
			bundle_try_resource(s.device, BUNDLE_NT_RESOURCE, &resource, &b.allocation),
			STATUS_SUCCESS);
		assert_int_equal(sync_try_create(&s, D3DDDI_FENCE, 3, &args), STATUS_SUCCESS);
		b.resource = resource.hResource;
		b.keyed = bundle_keyed(1);
		b.sync = args.hSyncObject;
		int nt = bundle_share(&b);
		creator = (struct acquirer){.process = s.process, .keyed = b.keyed};
		vidmm_d3dkmt_enter(s.other);
		opener = (struct acquirer){.process = s.other,
					   .keyed = bundle_open(s.other_device, nt).keyed};
		vidmm_d3dkmt_enter(NULL);
		start_acquirer(&s, &creator);
		start_acquirer(&s, &opener);
		(older ? hang_1_3 : hang)(&s);
		vidmm_thread_join(creator.thread);
		vidmm_thread_join(opener.thread);
		assert_int_equal(creator.result, STATUS_DEVICE_REMOVED);
		assert_int_equal(opener.result, STATUS_DEVICE_REMOVED);
		assert_int_equal(bundle_acquire(b.keyed, 1), STATUS_DEVICE_REMOVED);
		/* A device that is not lost can open and use it. */
		D3DKMT_HANDLE device = sync_open_device(&s);
		struct bundle o = bundle_open(device, nt);
		assert_int_equal(bundle_acquire(o.keyed, 1), STATUS_SUCCESS);
		assert_int_equal(bundle_release(o.keyed, 1), STATUS_SUCCESS);
		close(nt);
		sync_stop(&s);
	}
}

/* LOCK-33: removing an adapter releases its waiting clients. */
static void mfn_18_lock_33_adapter_removal_releases_waiters(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, 0, 0);
	v.process = s.process;
	sync_waiter_start(&s, &v, f.handle, 1);
	vidmm_adapter_stop(s.w.client.adapter);
	s.w.client.adapter = NULL;
	assert_int_equal(sync_waiter_join(&v), STATUS_DEVICE_REMOVED);
	vidmm_process_close(s.process);
	vidmm_process_close(s.other);
	vidmm_process_close(s.w.device.process);
	client_stop(&s.w.client);
	scripted_destroy(s.w.m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(tdrs_01_tdrs_06_tdrs_12_syn_18_mfn_38_a_reset_releases_fence_waiters),
		ON_SIM(tdrs_03_tdrs_04_sfl_18_sfl_19_fences_that_keep_their_value_on_reset),
		ON_SIM(tdrs_02_a_32_bit_fence_is_set_to_0xffffffff),
		ON_SIM(tdrs_05_tdrs_01_an_innocent_process_reads_the_maximum),
		ON_SIM(kmx_23_a_reset_ends_keyed_mutex_acquires),
		ON_BOTH(mfn_18_lock_33_adapter_removal_releases_waiters),
	};

	return cmocka_run_group_tests_name("sync reset", tests, NULL, NULL);
}
