/* SPDX-License-Identifier: MIT */
/*
 * Trim notifications: which device is asked to free memory, when, and what its callback may do
 * (RES-09, PRI-13, PRI-14).
 */
#include "base/base.h"
#include "wddm2_world.h"

#include <d3dkmthk.h>

enum { PERIODIC = 0x1, RESTART = 0x2, TO_BUDGET = 0x4 };
#define SECOND UINT64_C(1000000000)
#define CALLS  16u

/*
 * The notifications of a driver, and its list, oldest first, from which it evicts while it is
 * above its budget.
 */
struct driver {
	struct world *w;
	struct vidmm_device *device;
	_Atomic uint32_t calls;
	uint32_t flags[CALLS];
	uint64_t bytes[CALLS];
	D3DKMT_HANDLE list[4];
	uint32_t count, evicted;
	uint64_t still_to_trim;
	void *handle; /* of its registration, which it ends itself */
	bool ends_device;
	uint64_t sleep_ns;
	D3DKMT_HANDLE kmt_device;
	_Atomic bool inside;
};

static void groups(struct scripted_miniport *m)
{
	DXGK_SEGMENTFLAGS local = {.LocalBudgetGroup = 1}, other = {.NonLocalBudgetGroup = 1};

	wddm2_0(m);
	m->settings.caps.SupportSurpriseRemoval = 1;
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags |= local.Value;
	m->settings.segment[1].flags |= other.Value;
}

static void note(struct driver *d, uint32_t flags, uint64_t bytes)
{
	assert_true(d->calls < CALLS);
	assert_int_not_equal(flags & (PERIODIC | RESTART), PERIODIC | RESTART);
	d->flags[d->calls] = flags;
	d->bytes[d->calls] = bytes;
	d->calls++;
}

static int32_t trim(void *umd_device, const D3DDDIARG_TRIMRESIDENCYSET *args)
{
	struct driver *d = umd_device;
	struct client_device *device = &d->w->device;

	note(d, args->TrimFlags.Value, args->NumBytesToTrim);
	d->still_to_trim = args->TrimFlags.TrimToBudget ? args->NumBytesToTrim : 0;
	while (d->still_to_trim && d->evicted < d->count) {
		D3DDDICB_EVICT evict = {.NumAllocations = 1,
					.AllocationList = &d->list[d->evicted++]};

		assert_int_equal(device->cb->pfnEvictCb(device->handle, &evict), S_OK);
		d->still_to_trim = evict.NumBytesToTrim;
	}
	if (d->ends_device)
		vidmm_device_destroy(d->device);
	return S_OK;
}

static void start(struct world *w, void **state, struct driver *d)
{
	world_start(w, state, groups);
	*d = (struct driver){.w = w, .device = w->device.device};
}

static void allocate(struct driver *d, const D3DDDICB_CREATEPAGINGQUEUE *queue, uint32_t count)
{
	for (d->count = 0; d->count < count; d->count++)
		d->list[d->count] = wddm2_allocate(&d->w->device, 2 * MIB, WORLD_MEMORY);
	wddm2_make(d->w, &d->w->device, queue, d->list, count);
}

static void set_budget(struct driver *d, uint64_t bytes)
{
	assert_int_equal(
		vidmm_process_set_budget(d->w->device.process, d->w->client.adapter, 0, bytes), 0);
	wddm2_run(d->w);
}

static void res_09_pri_13_a_lowered_budget_requests_a_trim_of_the_excess(void **state)
{
	struct driver d;
	struct world w;

	start(&w, state, &d);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &d, trim), 0);
	allocate(&d, &queue, 4);
	set_budget(&d, 8 * MIB); /* its present usage */
	assert_int_equal(d.calls, 0);
	set_budget(&d, 5 * MIB);
	assert_int_equal(d.calls, 1);
	assert_int_equal(d.flags[0], TO_BUDGET);
	assert_int_equal(d.bytes[0], 3 * MIB);
	/* Evict inside the callback worked: two are evicted, and that suffices. */
	assert_int_equal(d.evicted, 2);
	assert_int_equal(d.still_to_trim, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(wddm2_is_in_memory(&w.device, d.list[i]), i >= 2);
	set_budget(&d, 16 * MIB); /* a higher budget */
	set_budget(&d, 5 * MIB);  /* a lower one, but still sufficient */
	assert_int_equal(d.calls, 1);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &d, NULL), 0);
	set_budget(&d, 0);
	assert_int_equal(d.calls, 1);
	wddm2_stop(&w);
}

/* The budget is raised to the usage again before the notification: there is nothing to trim. */
static void res_09_pri_13_no_trim_if_the_usage_fits_by_the_time_of_the_call(void **state)
{
	struct vidmm_process *process;
	struct driver d;
	struct world w;

	start(&w, state, &d);
	process = w.device.process;
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &d, trim), 0);
	allocate(&d, &queue, 4);
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, 5 * MIB), 0);
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, 8 * MIB), 0);
	wddm2_run(&w);
	assert_int_equal(d.calls, 0);
	set_budget(&d, 7 * MIB);
	assert_int_equal(d.calls, 1);
	assert_int_equal(d.bytes[0], MIB);
	wddm2_stop(&w);
}

/*
 * A device without a callback, of a process with a device that has one; and budgets lowered by
 * other processes.
 */
static void pri_13_reservations_of_others_lower_a_budget(void **state)
{
	struct vidmm_process *other;
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	struct driver d;
	struct world w;

	start(&w, state, &d);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &d, trim), 0);
	allocate(&d, &queue, 4);
	assert_int_equal(vidmm_process_open(w.client.host, "other", &other), 0);
	vidmm_d3dkmt_attach(other);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CHANGEVIDEOMEMORYRESERVATION args = {.hAdapter = info.hAdapter,
						    .Reservation = 8 * MIB};
	assert_int_equal(D3DKMTChangeVideoMemoryReservation(&args), STATUS_SUCCESS);
	wddm2_run(&w);
	assert_int_equal(d.calls, 0); /* 16 MiB less 8: it uses no more */
	args.Reservation = 9 * MIB;
	assert_int_equal(D3DKMTChangeVideoMemoryReservation(&args), STATUS_SUCCESS);
	wddm2_run(&w);
	assert_int_equal(d.calls, 1);
	assert_int_equal(d.bytes[0], 1 * MIB);
	assert_int_equal(d.evicted, 1);
	vidmm_process_close(other);
	wddm2_stop(&w);
}

static void next_second(struct world *w)
{
	vidmm_sleep_until_ns(w->client.host, vidmm_now_ns(w->client.host) + SECOND);
	vidmm_settle(w->client.host);
}

/*
 * Virtual time: a period in which the device worked, one in which it was idle, and the
 * notification when it works again.
 */
static void pri_14_res_09_periodictrim_and_restart_follow_device_activity(void **state)
{
	static const struct {
		bool works;
		uint32_t expected_flags;
	} seconds[] = {
		{true, PERIODIC}, {true, PERIODIC}, {false, 0},       {false, 0},
		{true, RESTART},  {true, PERIODIC}, {true, PERIODIC},
	};
	struct driver d;
	struct world w;

	start(&w, state, &d);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &d, trim), 0);
	vidmm_settle(w.client.host);
	for (uint32_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		uint32_t before = d.calls;

		if (seconds[i].works) {
			world_submit_use(&w.context, a);
			wddm2_run(&w);
		}
		next_second(&w);
		assert_int_equal(d.calls - before, seconds[i].expected_flags != 0);
		if (seconds[i].expected_flags)
			assert_int_equal(d.flags[before], seconds[i].expected_flags);
	}
	wddm2_stop(&w);
}

/* The last call: the callback destroys the device, and with it its own registration. */
static void res_09_a_trim_callback_may_destroy_its_device(void **state)
{
	struct client_device second;
	struct driver d;
	struct world w;

	start(&w, state, &d);
	client_open(&w.client, &second);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&second);
	D3DKMT_HANDLE a = wddm2_allocate(&second, 2 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &second, &queue, &a, 1);
	d.ends_device = true;
	d.device = second.device;
	assert_int_equal(vidmm_device_set_trim(second.device, &d, trim), 0);
	assert_int_equal(vidmm_process_set_budget(second.process, w.client.adapter, 0, MIB), 0);
	wddm2_run(&w);
	assert_int_equal(d.calls, 1);
	assert_int_equal(d.bytes[0], MIB);
	assert_int_equal(vidmm_device_set_trim(second.device, &d, NULL), STATUS_INVALID_PARAMETER);
	vidmm_process_close(second.process);
	wddm2_stop(&w);
}

static void res_09_before_wddm_2_0_there_are_no_trim_notifications(void **state)
{
	struct driver d = {0};
	struct world w;

	world_start(&w, state, NULL);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &d, trim), STATUS_NOT_SUPPORTED);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &d, NULL), 0);
	world_stop(&w);
}

/* Without memory for a new registration the earlier function is still called. */
static void res_09_a_function_that_cannot_be_set_replaces_none(void **state)
{
	struct driver d, other;
	struct world w;

	start(&w, state, &d);
	other = d;
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &d, trim), 0);
	allocate(&d, &queue, 2);
	vmm_calloc_fail_after(1);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &other, trim), STATUS_NO_MEMORY);
	vmm_calloc_fail_after(0);
	set_budget(&d, 2 * MIB);
	assert_int_equal(d.calls, 1);
	assert_int_equal(other.calls, 0);
	assert_int_equal(vidmm_device_set_trim(w.device.device, &other, trim), 0);
	set_budget(&d, 0);
	assert_int_equal(d.calls, 1);
	assert_int_equal(other.calls, 1);
	wddm2_stop(&w);
}

/* ---- D3DKMT clients ---- */

static VOID APIENTRY kmt_trim(D3DKMT_TRIMNOTIFICATION *data)
{
	struct driver *d = data->Context;

	d->inside = true;
	note(d, data->Flags.Value, data->NumBytesToTrim);
	d->still_to_trim = data->NumBytesToTrim;
	while (d->still_to_trim && d->evicted < d->count) {
		D3DKMT_EVICT evict = {.hDevice = d->kmt_device,
				      .NumAllocations = 1,
				      .AllocationList = &d->list[d->evicted++]};

		assert_int_equal(D3DKMTEvict(&evict), STATUS_SUCCESS);
		d->still_to_trim = evict.NumBytesToTrim;
	}
	if (d->handle) {
		D3DKMT_UNREGISTERTRIMNOTIFICATION end = {.Handle = d->handle};

		assert_int_equal(D3DKMTUnregisterTrimNotification(&end), STATUS_SUCCESS);
	}
	if (d->sleep_ns)
		vidmm_sleep_until_ns(d->w->client.host,
				     vidmm_now_ns(d->w->client.host) + d->sleep_ns);
	d->inside = false;
}

static VOID APIENTRY another_callback(D3DKMT_TRIMNOTIFICATION *data)
{
	(void)data;
}

/* Another process than the one that is attached during the callback. */
static void start_kmt(struct world *w, void **state, struct driver *d,
		      struct vidmm_process **process, LUID *luid)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};

	start(w, state, d);
	assert_int_equal(vidmm_process_open(w->client.host, "kmt", process), 0);
	vidmm_d3dkmt_attach(*process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	*luid = info.AdapterLuid;
	device.hAdapter = info.hAdapter;
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	d->kmt_device = device.hDevice;
}

static void kmt_resident(struct driver *d)
{
	struct scripted_allocation spec = {.size_bytes = 2 * MIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = d->kmt_device, .NumAllocations = 1, .pAllocationInfo = &info};
	D3DKMT_CREATEPAGINGQUEUE queue = {.hDevice = d->kmt_device};

	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_SUCCESS);
	assert_int_equal(D3DKMTCreatePagingQueue(&queue), STATUS_SUCCESS);
	D3DDDI_MAKERESIDENT make = {.hPagingQueue = queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &info.hAllocation};
	assert_true(NT_SUCCESS(D3DKMTMakeResident(&make)));
	wddm2_run(d->w);
	d->list[0] = info.hAllocation;
	d->count = 1;
}

static void res_09_a_d3dkmt_client_gets_its_registered_callback(void **state)
{
	struct vidmm_process *process;
	struct driver d;
	struct world w;
	LUID luid;

	start_kmt(&w, state, &d, &process, &luid);
	kmt_resident(&d);
	D3DKMT_REGISTERTRIMNOTIFICATION args = {
		.AdapterLuid = luid, .hDevice = d.kmt_device, .Callback = kmt_trim, .Context = &d};
	D3DKMT_REGISTERTRIMNOTIFICATION bad = args;
	bad.Callback = NULL;
	assert_int_equal(D3DKMTRegisterTrimNotification(&bad), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "RES-09");
	bad = args;
	bad.AdapterLuid.LowPart++;
	assert_int_equal(D3DKMTRegisterTrimNotification(&bad), STATUS_INVALID_PARAMETER);
	assert_null(bad.Handle);
	world_expect_finding(&w, "RES-09");
	bad = args;
	bad.hDevice = d.list[0];
	assert_int_equal(D3DKMTRegisterTrimNotification(&bad), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "HND-07");
	assert_int_equal(D3DKMTRegisterTrimNotification(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "HND-11");

	assert_int_equal(D3DKMTRegisterTrimNotification(&args), STATUS_SUCCESS);
	assert_non_null(args.Handle);
	/* It is called for the process that registered it, whichever is attached then. */
	vidmm_d3dkmt_attach(w.device.process);
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, 0), 0);
	wddm2_run(&w);
	assert_int_equal(d.calls, 1);
	assert_int_equal(d.flags[0], TO_BUDGET);
	assert_int_equal(d.bytes[0], 2 * MIB);
	assert_int_equal(d.evicted, 1);
	vidmm_d3dkmt_attach(process);
	D3DKMT_UNREGISTERTRIMNOTIFICATION end = {.Handle = args.Handle,
						 .Callback = another_callback};
	assert_int_equal(D3DKMTUnregisterTrimNotification(&end), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "RES-09");
	end.Callback = kmt_trim;
	assert_int_equal(D3DKMTUnregisterTrimNotification(&end), STATUS_SUCCESS);
	assert_int_equal(D3DKMTUnregisterTrimNotification(&end), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "RES-09");
	vidmm_process_close(process);
	wddm2_stop(&w);
}

/* From inside the callback, and from outside while it runs: then it returns after the callback. */
static void res_09_no_callback_runs_after_unregistering(void **state)
{
	struct vidmm_process *process;
	struct driver d;
	struct world w;
	LUID luid;

	start_kmt(&w, state, &d, &process, &luid);
	kmt_resident(&d);
	D3DKMT_REGISTERTRIMNOTIFICATION args = {
		.AdapterLuid = luid, .hDevice = d.kmt_device, .Callback = kmt_trim, .Context = &d};
	assert_int_equal(D3DKMTRegisterTrimNotification(&args), STATUS_SUCCESS);
	d.count = 0; /* it does not evict */
	d.handle = args.Handle;
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, MIB), 0);
	wddm2_run(&w);
	assert_int_equal(d.calls, 1);
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, 0), 0);
	wddm2_run(&w);
	assert_int_equal(d.calls, 1);

	d.handle = NULL;
	d.sleep_ns = SECOND / 4;
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, 2 * MIB), 0);
	assert_int_equal(D3DKMTRegisterTrimNotification(&args), STATUS_SUCCESS);
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, MIB), 0);
	vidmm_settle(w.client.host);
	assert_true(d.inside);
	D3DKMT_UNREGISTERTRIMNOTIFICATION end = {.Handle = args.Handle};
	assert_int_equal(D3DKMTUnregisterTrimNotification(&end), STATUS_SUCCESS);
	assert_false(d.inside);
	assert_int_equal(d.calls, 2);
	/* The same for destroying the device. */
	assert_int_equal(D3DKMTRegisterTrimNotification(&args), STATUS_SUCCESS);
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, 0), 0);
	vidmm_settle(w.client.host);
	assert_true(d.inside);
	vidmm_process_close(process);
	assert_false(d.inside);
	assert_int_equal(d.calls, 3);
	wddm2_stop(&w);
}

/* The adapter is removed while the callback runs: no packet completes that would end the wait. */
static void res_09_pnp_08_unregistering_waits_for_the_callback_of_a_removed_adapter(void **state)
{
	struct vidmm_process *process;
	struct driver d;
	struct world w;
	LUID luid;

	start_kmt(&w, state, &d, &process, &luid);
	kmt_resident(&d);
	D3DKMT_REGISTERTRIMNOTIFICATION args = {
		.AdapterLuid = luid, .hDevice = d.kmt_device, .Callback = kmt_trim, .Context = &d};
	assert_int_equal(D3DKMTRegisterTrimNotification(&args), STATUS_SUCCESS);
	d.count = 0;
	d.sleep_ns = SECOND / 4;
	assert_int_equal(vidmm_process_set_budget(process, w.client.adapter, 0, MIB), 0);
	vidmm_settle(w.client.host);
	assert_true(d.inside);
	assert_int_equal(vidmm_adapter_remove(w.client.adapter, VIDMM_REMOVAL_PNP), 0);
	assert_true(d.inside);
	D3DKMT_UNREGISTERTRIMNOTIFICATION end = {.Handle = args.Handle};
	assert_int_equal(D3DKMTUnregisterTrimNotification(&end), STATUS_SUCCESS);
	assert_false(d.inside);
	vidmm_process_close(process);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_09_pri_13_a_lowered_budget_requests_a_trim_of_the_excess),
		/* threads: the notification may come between the two calls */
		ON_SIM(res_09_pri_13_no_trim_if_the_usage_fits_by_the_time_of_the_call),
		ON_BOTH(pri_13_reservations_of_others_lower_a_budget),
		ON_SIM(pri_14_res_09_periodictrim_and_restart_follow_device_activity), /* time */
		ON_BOTH(res_09_a_trim_callback_may_destroy_its_device),
		ON_BOTH(res_09_before_wddm_2_0_there_are_no_trim_notifications),
		ON_BOTH(res_09_a_function_that_cannot_be_set_replaces_none),
		ON_BOTH(res_09_a_d3dkmt_client_gets_its_registered_callback),
		ON_SIM(res_09_no_callback_runs_after_unregistering),
		ON_SIM(res_09_pnp_08_unregistering_waits_for_the_callback_of_a_removed_adapter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
