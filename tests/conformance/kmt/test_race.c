/* SPDX-License-Identifier: MIT */
/*
 * A D3DKMT client that ends its device and contexts while its other threads go on calling with their handles: whoever
 * comes too late is answered as for a dead handle, and nobody touches what is gone (the sanitizers watch).
 */
#include "kmt_world.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLERS = 3, ROUNDS = 40 };

struct race {
	struct kmt_world w;
	uint32_t kind;
	_Atomic uint32_t device, context, allocation;
	_Atomic uint32_t done, late;
	_Atomic bool enough;
};

/* Runs on other threads than cmocka's, so a failure cannot be one of its assertions. */
static void note(struct race *r, const char *function, NTSTATUS status)
{
	switch (status) {
	case STATUS_SUCCESS:
		atomic_fetch_add(&r->done, 1);
		return;
	case STATUS_INVALID_PARAMETER:
	case STATUS_INVALID_HANDLE:
		atomic_fetch_add(&r->late, 1);
		return;
	default:
		fprintf(stderr, "%s: 0x%08x\n", function, (unsigned)status);
		abort();
	}
}

static void breathe(const struct race *r)
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
		breathe(r);
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

static void hnd_07_a_device_ends_under_its_callers(void **state)
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
		breathe(r);
		new_device(r);
		for (uint32_t i = 0; i < 4; i++)
			breathe(r);
	}
	atomic_store(&r->enough, true);
	for (uint32_t i = 0; i < CALLERS; i++)
		vidmm_thread_join(thread[i]);
	printf("# %u calls in time, %u too late\n", r->done, r->late);
	client_forget(&r->w.client);
	kmt_stop(&r->w);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(hnd_07_a_device_ends_under_its_callers),
	};

	return cmocka_run_group_tests_name("kmt race", tests, NULL, NULL);
}
