/* SPDX-License-Identifier: MIT */
/* What destruction waits for, and the flags of pfnDeallocate2Cb (ALF-37). */
#include "wddm2_world.h"

#include <d3dkmthk.h>

#define ASSUME_NOT_IN_USE   0x1u
#define SYNCHRONOUS_DESTROY 0x2u

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static HRESULT deallocate(struct client_device *device, D3DKMT_HANDLE a, uint32_t flags)
{
	const D3DDDICB_DEALLOCATE2 args = {
		.NumAllocations = 1, .HandleList = &a, .Flags.Value = flags};

	return device->cb->pfnDeallocate2Cb(device->handle, &args);
}

static uint32_t destroyed(const struct world *w)
{
	return scripted_count(w->m, VIDMM_DDI_DESTROY_ALLOCATION);
}

/*
 * On the device's residency list, in memory. The GPU has work of the device that references
 * another allocation.
 */
static D3DKMT_HANDLE listed_beside_work(struct world *w, const D3DDDICB_CREATEPAGINGQUEUE *queue)
{
	D3DKMT_HANDLE a = wddm2_allocate(&w->device, 8 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w->device, 64 * KIB, WORLD_MEMORY);

	wddm2_make(w, &w->device, queue, &a, 1);
	wddm2_make(w, &w->device, queue, &b, 1);
	world_submit_use(&w->context, b);
	return a;
}

/* Allocation lists need not reference what a device uses: all work that it queued before counts. */
static void alf_37_destruction_waits_for_commands_queued_before(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = listed_beside_work(&w, &queue);
	assert_int_equal(deallocate(&w.device, a, 0), S_OK); /* does not wait */
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(destroyed(&w), 0);
	assert_int_equal(deallocate(&w.device, a, 0), E_INVALIDARG); /* but the handle is invalid */
	world_expect_finding(&w, "ALF-36");
	world_run(&w);
	world_await(&w, VIDMM_DDI_DESTROY_ALLOCATION, 1);
	wddm2_stop(&w);
}

/* Flags 0 equals pfnDeallocateCb. */
static void alf_37_deallocate2_with_flags_zero_equals_deallocate(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = listed_beside_work(&w, &queue);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(destroyed(&w), 0);
	world_run(&w);
	world_await(&w, VIDMM_DDI_DESTROY_ALLOCATION, 1);
	wddm2_stop(&w);
}

/* Destruction does not wait for work that the device queues later. */
static void alf_37_destruction_does_not_wait_for_commands_queued_later(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	world_submit_use(&w.context, b);
	assert_int_equal(deallocate(&w.device, a, 0), S_OK);
	world_submit_use(&w.context, b);
	assert_int_equal(destroyed(&w), 0);
	scripted_complete(w.m, 0, 1);
	world_await(&w, VIDMM_DDI_DESTROY_ALLOCATION, 1);
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	wddm2_stop(&w);
}

static void alf_37_assumenotinuse_destroys_at_once(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = listed_beside_work(&w, &queue);
	assert_int_equal(deallocate(&w.device, a, ASSUME_NOT_IN_USE), S_OK);
	assert_int_equal(destroyed(&w), 1);
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	wddm2_stop(&w);
}

/*
 * A client breaks its promise: the miniport is called at once, but the memory is not reused while
 * the GPU uses it.
 */
static void destroyed_under_the_gpu(void **state, uint32_t set)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 12 * MIB, set), b;
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_use(&w.context, a);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(deallocate(&w.device, a, ASSUME_NOT_IN_USE), S_OK);
	world_expect_finding(&w, "ALF-37");
	assert_int_equal(destroyed(&w), 1);
	b = wddm2_allocate(&w.device, 12 * MIB, set);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, b, &args), E_PENDING);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(client_residency(&w.device, b), D3DDDI_RESIDENCYSTATUS_NOTRESIDENT);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	assert_int_not_equal(client_residency(&w.device, b), D3DDDI_RESIDENCYSTATUS_NOTRESIDENT);
	wddm2_run(&w);
	assert_int_equal(destroyed(&w), 1); /* it was destroyed once */
	wddm2_stop(&w);
}

static void alf_37_memory_in_use_by_the_gpu_is_not_reused(void **state)
{
	destroyed_under_the_gpu(state, WORLD_MEMORY);
}

static void alf_37_an_aperture_range_in_use_by_the_gpu_is_not_reused(void **state)
{
	destroyed_under_the_gpu(state, WORLD_APERTURE);
}

/* A buffer that is still to be patched keeps its references alive in the miniport. */
static void alf_37_destruction_waits_for_unpatched_buffers(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, wddm2_0);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), theirs = wddm2_queue(&other);
	D3DKMT_HANDLE b = wddm2_allocate(&w.device, 8 * MIB, WORLD_APERTURE),
		      c = wddm2_allocate(&other, 12 * MIB, WORLD_APERTURE);
	wddm2_make(&w, &other, &theirs, &c, 1);
	world_submit_use(&others, c);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, b, &args), E_PENDING);
	world_submit_use(&w.context, b); /* waits for the memory of c */
	assert_int_equal(deallocate(&w.device, b, ASSUME_NOT_IN_USE), S_OK);
	world_expect_finding(&w, "ALF-37");
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(destroyed(&w), 0);
	/* AssumeNotInUse of another call does not apply to it. */
	assert_int_equal(deallocate(&w.device, wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
				    ASSUME_NOT_IN_USE),
			 S_OK);
	assert_int_equal(destroyed(&w), 1);
	wddm2_run(&w);
	world_await(&w, VIDMM_DDI_DESTROY_ALLOCATION, 2);
	client_context_end(&others);
	client_close(&other);
	wddm2_stop(&w);
}

struct destruction {
	struct client_device *device;
	D3DKMT_HANDLE allocation;
	HRESULT result;
	_Atomic bool back;
};

static void destroy(void *argument)
{
	struct destruction *d = argument;

	d->result = deallocate(d->device, d->allocation, SYNCHRONOUS_DESTROY);
	atomic_store(&d->back, true);
}

static void alf_37_synchronousdestroy_returns_when_memory_is_reclaimed(void **state)
{
	struct world w;
	struct vidmm_thread *thread;
	D3DDDI_MAKERESIDENT args;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	struct destruction d = {.device = &w.device, .allocation = listed_beside_work(&w, &queue)};
	D3DKMT_HANDLE b = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY);
	assert_int_equal(vidmm_thread_create(w.client.host, "destroys", destroy, &d, &thread), 0);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_false(atomic_load(&d.back));
	assert_int_equal(destroyed(&w), 0);
	while (!atomic_load(&d.back)) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	vidmm_thread_join(thread);
	assert_int_equal(d.result, S_OK);
	assert_int_equal(destroyed(&w), 1);
	/* 8 MiB are contiguous only there: only the fill is waited for. */
	HRESULT result = wddm2_try_make_one(&w.device, &queue, b, &args);
	assert_true(result == S_OK || result == E_PENDING);
	assert_true(wddm2_is_in_memory(&w.device, b));
	wddm2_stop(&w);
}

static void alf_37_other_flags_are_refused(void **state)
{
	static const uint32_t bad[] = {0x4, 0x40000000, 0x80000000, 0x80000001};
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(deallocate(&w.device, a, bad[i]), E_INVALIDARG);
		world_expect_finding(&w, "ALF-37");
	}
	assert_int_equal(destroyed(&w), 0);
	client_write(&w.device, a, 64 * KIB, 1); /* all its memory is available */
	assert_int_equal(deallocate(&w.device, a, ASSUME_NOT_IN_USE | SYNCHRONOUS_DESTROY), S_OK);
	assert_int_equal(destroyed(&w), 1);
	wddm2_stop(&w);
}

/* A 1.x adapter tracks uses itself and has no such flags. */
static void alf_37_before_wddm_2_0_destroy_flags_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(deallocate(&w.device, a, SYNCHRONOUS_DESTROY), E_NOTIMPL);
	assert_int_equal(destroyed(&w), 0);
	assert_int_equal(deallocate(&w.device, a, 0), S_OK);
	wddm2_stop(&w);
}

static D3DKMT_HANDLE allocate_kmt(D3DKMT_HANDLE device)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

static void alf_37_d3dkmtdestroyallocation2_follows_the_same_rules(void **state)
{
	struct world w;
	struct vidmm_process *process;
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};

	world_start(&w, state, at_once);
	assert_int_equal(vidmm_process_open(w.client.host, "kmt", &process), 0);
	vidmm_d3dkmt_attach(process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	device.hAdapter = info.hAdapter;
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	D3DKMT_HANDLE a = allocate_kmt(device.hDevice);
	D3DKMT_DESTROYALLOCATION2 args = {.hDevice = device.hDevice,
					  .phAllocationList = &a,
					  .AllocationCount = 1,
					  .Flags.SystemUseOnly = 1};
	assert_int_equal(D3DKMTDestroyAllocation2(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "ALF-37");
	assert_int_equal(destroyed(&w), 0);
	args.Flags.Value = SYNCHRONOUS_DESTROY;
	assert_int_equal(D3DKMTDestroyAllocation2(&args), STATUS_SUCCESS);
	assert_int_equal(destroyed(&w), 1);
	assert_int_equal(D3DKMTDestroyAllocation2(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "HND-11");
	vidmm_process_close(process);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(alf_37_destruction_waits_for_commands_queued_before),
		ON_BOTH(alf_37_deallocate2_with_flags_zero_equals_deallocate),
		ON_BOTH(alf_37_destruction_does_not_wait_for_commands_queued_later),
		ON_BOTH(alf_37_assumenotinuse_destroys_at_once),
		ON_BOTH(alf_37_memory_in_use_by_the_gpu_is_not_reused),
		ON_BOTH(alf_37_an_aperture_range_in_use_by_the_gpu_is_not_reused),
		ON_BOTH(alf_37_destruction_waits_for_unpatched_buffers),
		ON_BOTH(alf_37_synchronousdestroy_returns_when_memory_is_reclaimed),
		ON_BOTH(alf_37_other_flags_are_refused),
		ON_BOTH(alf_37_before_wddm_2_0_destroy_flags_are_refused),
		ON_BOTH(alf_37_d3dkmtdestroyallocation2_follows_the_same_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
