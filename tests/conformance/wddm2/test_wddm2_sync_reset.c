/* SPDX-License-Identifier: MIT */
/* Monitored fences when the adapter is reset (TDRS). On the simulator, whose time is virtual. */
#include "wddm2_world.h"

#include <sync_world.h>
#include <unistd.h>

static void start(struct sync_world *s, void **state, world_setup *setup)
{
	static const struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};

	sync_start_with(s, state, setup, &options);
}

/* A packet of another program never ends; long enough for a reset, which every device of the adapter is lost with. */
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

static void tdrs_01_tdrs_06_tdrs_12_syn_18_mfn_38_who_waits_comes_back(void **state)
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
	/* TDRS-12: another device of the process survives by being made later; what it signals is lower. */
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

static void tdrs_03_tdrs_04_sfl_18_sfl_19_who_does_not_poison_it(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	start(&s, state, sync_3_0);
	struct sync_fence quiet = sync_fence(&s, 0x40, 3), silent = sync_fence(&s, 0x10, 4),
			  loud = sync_fence(&s, 0x20, 5);
	int event = sync_event();
	assert_int_equal(sync_wait_event(s.device, quiet.handle, 10, event), STATUS_SUCCESS);
	v.process = s.process;
	sync_waiter_start(&s, &v, silent.handle, 10);
	hang(&s);
	assert_int_equal(*quiet.value, 3);
	assert_int_equal(*silent.value, 4);
	assert_true(*loud.value == UINT64_MAX);
	assert_int_equal(sync_events(event), 0);
	assert_int_equal(sync_waiter_join(&v), STATUS_DEVICE_REMOVED); /* TDRS-06 */
	D3DKMT_HANDLE second = sync_open_device(&s);
	assert_int_equal(sync_signal(second, quiet.handle, 10), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 1);
	close(event);
	sync_stop(&s);
}

static void tdrs_02_the_largest_of_thirty_two_bits(void **state)
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

/* LOCK-33: an adapter that is removed under its clients keeps nobody waiting. */
static void mfn_18_lock_33_a_removed_adapter_frees_who_waits(void **state)
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
		ON_SIM(tdrs_01_tdrs_06_tdrs_12_syn_18_mfn_38_who_waits_comes_back),
		ON_SIM(tdrs_03_tdrs_04_sfl_18_sfl_19_who_does_not_poison_it),
		ON_SIM(tdrs_02_the_largest_of_thirty_two_bits),
		ON_BOTH(mfn_18_lock_33_a_removed_adapter_frees_who_waits),
	};

	return cmocka_run_group_tests_name("sync reset", tests, NULL, NULL);
}
