/* SPDX-License-Identifier: MIT */
/* Processes that are in another address space, or gone: what a submission reads of theirs, and locks behind the GPU. */
#include "sched_world.h"

#include <string.h>

#include "support/apart.h"

struct waiter {
	struct client_device *device;
	D3DKMT_HANDLE a;
	HRESULT result;
	struct vidmm_thread *thread;
};

static void wait_for_lock(void *argument)
{
	struct waiter *v = argument;
	void *data;

	v->result = client_try_lock(v->device, &v->a, 0, &data);
}

static void lock_05_a_lock_of_who_is_gone_comes_back(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	struct waiter v = {.device = &w.device, .a = a};

	world_submit_use(&w.context, a);
	assert_int_equal(vidmm_thread_create(w.client.host, "waits for the GPU", wait_for_lock, &v,
					     &v.thread),
			 0);
	vidmm_settle(w.client.host);
	apart_abandon(w.device.process);
	vidmm_thread_join(v.thread);
	assert_int_equal(v.result, D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_try_lock(&w.device, &a, 0, &data), D3DDDIERR_DEVICEREMOVED);
	world_run(&w);
	world_stop(&w);
}

/* What the miniport reads is not what the client can still write to. */
static void dma_14_the_miniport_gets_a_copy(void **state)
{
	struct apart_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;

	world_start(&w, state, NULL);
	apart_open(&w.client, &viewer, &device);
	client_context(&device, 0, &context);
	D3DKMT_HANDLE a = client_allocate(&device, 64 * KIB, 0);
	world_use(&context, a);
	D3DDDICB_RENDER args = world_render_args(&context);
	assert_int_equal(world_render(&context, &args), S_OK);
	const DXGKARG_RENDER *render = &scripted_last(w.m, VIDMM_DDI_RENDER)->in.render;
	const char *shown = context.c.pCommandBuffer;
	const char *read = render->pCommand;
	assert_true(read < shown || read >= shown + context.c.CommandBufferSize);
	assert_ptr_not_equal(render->pPatchLocationListIn, context.c.pPatchLocationList);
	/* DMA-11: what it may use next is what it sees. */
	assert_ptr_equal(args.pNewCommandBuffer, shown);
	assert_ptr_equal(args.pNewAllocationList, context.c.pAllocationList);
	world_run(&w);
	client_context_end(&context);
	apart_close(&viewer, &device);
	world_stop(&w);
}

struct attacker {
	struct client_context *context;
	_Atomic bool stop;
	struct vidmm_thread *thread;
};

/* Everything that a client can reach, all the time. */
static void scribble(void *argument)
{
	struct attacker *t = argument;
	D3DDDI_ALLOCATIONLIST *list = t->context->c.pAllocationList;
	D3DDDI_PATCHLOCATIONLIST *patches = t->context->c.pPatchLocationList;
	volatile uint32_t *words = t->context->c.pCommandBuffer;

	for (uint32_t n = 0; !atomic_load(&t->stop); n++) {
		((volatile D3DDDI_ALLOCATIONLIST *)list)[n % 4].hAllocation ^= n * 0x9E3779B9u;
		((volatile D3DDDI_PATCHLOCATIONLIST *)patches)[n % 4].AllocationIndex = n;
		((volatile D3DDDI_PATCHLOCATIONLIST *)patches)[n % 4].PatchOffset = n * 77;
		words[n % 64] = n * 0x85EBCA6Bu;
	}
}

static void dma_14_a_client_that_writes_meanwhile_harms_nobody(void **state)
{
	struct apart_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;
	uint32_t refused = 0;

	world_start(&w, state, NULL);
	apart_open(&w.client, &viewer, &device);
	client_context(&device, 0, &context);
	struct attacker t = {.context = &context};
	assert_int_equal(vidmm_thread_create(w.client.host, "attacker", scribble, &t, &t.thread),
			 0);
	for (uint32_t i = 0; i < 3000; i++) {
		D3DDDICB_RENDER args = {.hContext = context.c.hContext,
					.CommandLength = 256,
					.NumAllocations = 4,
					.NumPatchLocations = 4};

		refused += device.cb->pfnRenderCb(device.handle, &args) != S_OK;
		assert_ptr_equal(args.pNewCommandBuffer, context.c.pCommandBuffer);
		w.client.findings = 0;
	}
	assert_true(refused > 0);
	atomic_store(&t.stop, true);
	vidmm_thread_join(t.thread);
	/* Others go on: their handles were never reached. */
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	world_submit_write(&w.context, a, 4, 0x1234);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 4), 0x1234);
	client_context_end(&context);
	apart_close(&viewer, &device);
	client_forget(&w.client);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(lock_05_a_lock_of_who_is_gone_comes_back),
		ON_BOTH(dma_14_the_miniport_gets_a_copy),
		ON_LINUX(dma_14_a_client_that_writes_meanwhile_harms_nobody),
	};

	return cmocka_run_group_tests_name("sched apart", tests, NULL, NULL);
}
