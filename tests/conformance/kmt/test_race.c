/* SPDX-License-Identifier: MIT */
/*
 * A D3DKMT client destroys its device and contexts, or its adapter stops, while its other threads
 * call with their handles. A call that comes too late is answered as for a dead handle. No freed
 * memory is accessed (the sanitizers check that).
 */
#include "kmt_world.h"

#include "support/softgpu_table.h"

#include <d3dkmddi.h>
#include <dispmprt.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLERS = 3, ROUNDS = 40, STOPS = 12 };

struct race {
	struct kmt_world w;
	uint32_t kind;
	_Atomic uint32_t device, context, allocation;
	_Atomic uint32_t done, late;
	_Atomic bool enough;
};

/* Runs on threads other than cmocka's, where a failed cmocka assertion would not end the test. */
static void note(struct race *r, const char *function, NTSTATUS status)
{
	switch (status) {
	case STATUS_SUCCESS:
		atomic_fetch_add(&r->done, 1);
		return;
	case STATUS_INVALID_PARAMETER:
	case STATUS_INVALID_HANDLE:
	case STATUS_DEVICE_REMOVED:
		atomic_fetch_add(&r->late, 1);
		return;
	default:
		fprintf(stderr, "%s: 0x%08x\n", function, (unsigned)status);
		abort();
	}
}

static void let_others_run(const struct race *r)
{
	struct vidmm_host *host = r->w.client.host;

	if (r->kind == VIDMM_HOST_SIM)
		vidmm_sleep_until_ns(host, vidmm_now_ns(host) + 200);
	else
		sched_yield();
}

static void call_on(void *argument)
{
	struct race *r = argument;

	while (!atomic_load(&r->enough)) {
		D3DKMT_HANDLE device = r->device, allocation = r->allocation;
		D3DKMT_LOCK lock = {.hDevice = device, .hAllocation = allocation};
		D3DKMT_UNLOCK unlock = {
			.hDevice = device, .NumAllocations = 1, .phAllocations = &allocation};
		D3DKMT_RENDER render = {.hContext = r->context};
		D3DKMT_GETDEVICESTATE state = {.hDevice = device,
					       .StateType = D3DKMT_DEVICESTATE_EXECUTION};
		D3DKMT_CREATECONTEXT context = {.hDevice = device};

		note(r, "D3DKMTLock", D3DKMTLock(&lock));
		note(r, "D3DKMTUnlock", D3DKMTUnlock(&unlock));
		note(r, "D3DKMTRender", D3DKMTRender(&render));
		note(r, "D3DKMTGetDeviceState", D3DKMTGetDeviceState(&state));
		NTSTATUS status = D3DKMTCreateContext(&context);
		note(r, "D3DKMTCreateContext", status);
		D3DKMT_DESTROYCONTEXT end = {.hContext =
						     status ? render.hContext : context.hContext};
		note(r, "D3DKMTDestroyContext", D3DKMTDestroyContext(&end));
		let_others_run(r);
	}
}

static void new_device(struct race *r)
{
	r->w.device = kmt_device(&r->w);
	D3DKMT_CREATECONTEXT context = {.hDevice = r->w.device};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	r->allocation = kmt_allocate(&r->w, 4 * KIB);
	r->context = context.hContext;
	r->device = r->w.device;
}

static void hnd_07_a_device_is_destroyed_during_calls_on_it(void **state)
{
	struct race *r = calloc(1, sizeof(*r));
	struct vidmm_thread *thread[CALLERS];

	assert_non_null(r);
	kmt_start(&r->w, state);
	r->kind = *(uint32_t *)*state;
	r->device = r->w.device;
	for (uint32_t i = 0; i < CALLERS; i++)
		assert_int_equal(
			vidmm_thread_create(r->w.client.host, "caller", call_on, r, &thread[i]), 0);
	for (uint32_t round = 0; round < ROUNDS || !atomic_load(&r->done) || !atomic_load(&r->late);
	     round++) {
		D3DKMT_DESTROYDEVICE end = {.hDevice = r->w.device};

		assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
		let_others_run(r);
		new_device(r);
		for (uint32_t i = 0; i < 4; i++)
			let_others_run(r);
	}
	atomic_store(&r->enough, true);
	for (uint32_t i = 0; i < CALLERS; i++)
		vidmm_thread_join(thread[i]);
	printf("# %u calls in time, %u too late\n", r->done, r->late);
	client_forget(&r->w.client);
	kmt_stop(&r->w);
	free(r);
}

static void call_on_adapter(void *argument)
{
	struct race *r = argument;
	D3DKMT_PHYSICAL_ADAPTER_COUNT count;

	while (!atomic_load(&r->enough)) {
		D3DKMT_OPENADAPTERFROMLUID open = {.AdapterLuid = r->w.luid};
		D3DKMT_CREATEDEVICE device = {.hAdapter = r->w.adapter};
		D3DKMT_QUERYADAPTERINFO info = {.hAdapter = r->w.adapter,
						.Type = KMTQAITYPE_PHYSICALADAPTERCOUNT,
						.pPrivateDriverData = &count,
						.PrivateDriverDataSize = sizeof(count)};

		NTSTATUS status = D3DKMTOpenAdapterFromLuid(&open);
		note(r, "D3DKMTOpenAdapterFromLuid", status);
		D3DKMT_CLOSEADAPTER close = {.hAdapter = open.hAdapter};
		if (!status)
			note(r, "D3DKMTCloseAdapter", D3DKMTCloseAdapter(&close));
		note(r, "D3DKMTQueryAdapterInfo", D3DKMTQueryAdapterInfo(&info));
		status = D3DKMTCreateDevice(&device);
		note(r, "D3DKMTCreateDevice", status);
		D3DKMT_DESTROYDEVICE end = {.hDevice = device.hDevice};
		if (!status)
			note(r, "D3DKMTDestroyDevice", D3DKMTDestroyDevice(&end));
		let_others_run(r);
	}
}

static void stop_adapter_during_calls(void **state)
{
	struct race *r = calloc(1, sizeof(*r));
	struct vidmm_thread *thread[CALLERS];

	assert_non_null(r);
	kmt_start(&r->w, state);
	r->kind = *(uint32_t *)*state;
	for (uint32_t i = 0; i < CALLERS; i++)
		assert_int_equal(vidmm_thread_create(r->w.client.host, "caller", call_on_adapter, r,
						     &thread[i]),
				 0);
	while (atomic_load(&r->done) < 20)
		let_others_run(r);
	vidmm_adapter_stop(r->w.client.adapter);
	r->w.client.adapter = NULL;
	while (!atomic_load(&r->late))
		let_others_run(r);
	atomic_store(&r->enough, true);
	for (uint32_t i = 0; i < CALLERS; i++)
		vidmm_thread_join(thread[i]);
	client_forget(&r->w.client);
	kmt_stop(&r->w);
	free(r);
}

static void hnd_10_an_adapter_stops_during_calls_on_it(void **state)
{
	for (uint32_t round = 0; round < STOPS; round++)
		stop_adapter_during_calls(state);
}

/* ---- a miniport that is inside a call when its adapter is stopped ---- */

static DRIVER_INITIALIZATION_DATA softgpu;
static struct {
	struct vidmm_host *host; /* NULL: the answer comes at once */
	uint32_t inside, answered, stopped_inside;
} slow;

NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);

static NTSTATUS APIENTRY query_adapter_info(IN_CONST_HANDLE hAdapter,
					    IN_CONST_PDXGKARG_QUERYADAPTERINFO args)
{
	if (slow.host && args->Type == DXGKQAITYPE_UMDRIVERPRIVATE) {
		slow.inside++;
		vidmm_sleep_until_ns(slow.host, vidmm_now_ns(slow.host) + 1000000);
		slow.inside--;
		slow.answered++;
	}
	return softgpu.DxgkDdiQueryAdapterInfo(hAdapter, args);
}

static NTSTATUS stop_device(IN_CONST_PVOID context)
{
	slow.stopped_inside += slow.inside;
	return softgpu.DxgkDdiStopDevice(context);
}

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	softgpu = softgpu_table(data);
	DRIVER_INITIALIZATION_DATA table = softgpu;
	table.DxgkDdiQueryAdapterInfo = query_adapter_info;
	table.DxgkDdiStopDevice = stop_device;
	return __real_DxgkInitialize(driver, path, &table);
}

static void ask_the_miniport(void *argument)
{
	const struct kmt_world *w = argument;
	uint8_t record[64] = {0};
	D3DKMT_QUERYADAPTERINFO info = {.hAdapter = w->adapter,
					.Type = KMTQAITYPE_UMDRIVERPRIVATE,
					.pPrivateDriverData = record,
					.PrivateDriverDataSize = sizeof(record)};

	D3DKMTQueryAdapterInfo(&info); /* the finding of softgpu about that */
}

static void hnd_10_pnp_03_the_stop_waits_for_running_calls(void **state)
{
	struct kmt_world w;
	struct vidmm_thread *thread;

	kmt_start(&w, state);
	memset(&slow, 0, sizeof(slow));
	slow.host = w.client.host;
	assert_int_equal(vidmm_thread_create(slow.host, "caller", ask_the_miniport, &w, &thread),
			 0);
	while (!slow.inside)
		vidmm_sleep_until_ns(slow.host, vidmm_now_ns(slow.host) + 1000);
	vidmm_adapter_stop(w.client.adapter);
	assert_int_equal(slow.answered, 1);
	assert_int_equal(slow.stopped_inside, 0);
	vidmm_thread_join(thread);
	slow.host = NULL;
	w.client.adapter = NULL;
	kmt_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(hnd_07_a_device_is_destroyed_during_calls_on_it),
		ON_BOTH(hnd_10_an_adapter_stops_during_calls_on_it),
		{"hnd_10_pnp_03_the_stop_waits_for_running_calls",
		 hnd_10_pnp_03_the_stop_waits_for_running_calls, NULL, NULL, &kmt_sim},
	};

	return cmocka_run_group_tests_name("kmt race", tests, NULL, NULL);
}
