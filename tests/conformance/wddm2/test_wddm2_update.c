/* SPDX-License-Identifier: MIT */
/* Properties of an allocation that a client changes later (PRI-15). */
#include "wddm2_world.h"

#include <d3dkmthk.h>

#define SET_PHYSICAL   0x1u
#define SET_SEGMENTS   0x2u
#define SET_PREFERRED  0x4u
#define SET_UNMOVEABLE 0x8u

static void at_once(struct scripted_miniport *m)
{
	wddm2_1(m);
	m->settings.complete_at_once = true;
}

static HRESULT update(struct client_device *device, D3DDDI_UPDATEALLOCPROPERTY *args)
{
	args->PagingFenceValue = 77;
	return device->cb->pfnUpdateAllocationPropertyCb(device->handle, args);
}

static D3DDDI_UPDATEALLOCPROPERTY to_segments(const D3DDDICB_CREATEPAGINGQUEUE *queue,
					      D3DKMT_HANDLE a, uint32_t set)
{
	return (D3DDDI_UPDATEALLOCPROPERTY){.hPagingQueue = queue->hPagingQueue,
					    .hAllocation = a,
					    .SupportedSegmentSet = set,
					    .PropertyMaskValue = SET_SEGMENTS};
}

/* To the other segment and back, while listed, with its content. */
static void pri_15_a_resident_allocation_moves_behind_a_fence(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_1);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 4, 0x44);
	world_run(&w);
	for (uint32_t round = 0; round < 4; round++) {
		bool out = round % 2 == 0;
		D3DDDI_UPDATEALLOCPROPERTY args =
			to_segments(&queue, a, out ? WORLD_APERTURE : WORLD_MEMORY);

		assert_int_equal(update(&w.device, &args), E_PENDING);
		assert_true(args.PagingFenceValue != 0 && args.PagingFenceValue != 77);
		wddm2_await(&w, &queue, args.PagingFenceValue);
		assert_int_equal(client_residency(&w.device, a),
				 out ? D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY
				     : D3DDDI_RESIDENCYSTATUS_RESIDENTINGPUMEMORY);
		assert_int_equal(world_word(&w, a, 4), 0x44 + round);
		world_submit_write(&w.context, a, 4, 0x45 + round); /* at its new placement */
		world_run(&w);
	}
	assert_int_equal(w.m->faults, 0);
	wddm2_stop(&w);
}

/* It is moved when the GPU is done with it, and not before. */
static void pri_15_a_move_waits_for_work_queued_before(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_1);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 8, 0x88);
	D3DDDI_UPDATEALLOCPROPERTY args = to_segments(&queue, a, WORLD_APERTURE);
	assert_int_equal(update(&w.device, &args), E_PENDING);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_true(wddm2_fence(&queue) < args.PagingFenceValue);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	assert_false(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(world_word(&w, a, 8), 0x88);
	wddm2_stop(&w);
}

/*
 * Equal values, values whose mask bit is clear, only a preference, an allocation on no list: done
 * at once, and nothing moves.
 */
static void pri_15_an_update_without_a_move_completes_at_once(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_1);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_true(wddm2_is_in_memory(&w.device, a));
	uint32_t operations = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	D3DDDI_UPDATEALLOCPROPERTY each[] = {
		to_segments(&queue, a, WORLD_MEMORY | WORLD_APERTURE),
		{.hPagingQueue = queue.hPagingQueue,
		 .hAllocation = a,
		 .SupportedSegmentSet = 0x80,
		 .PreferredSegment.Value = 0x1F,
		 .PropertyMaskValue = 0},
		{.hPagingQueue = queue.hPagingQueue,
		 .hAllocation = a,
		 .Flags.AccessedPhysically = 1,
		 .PropertyMaskValue = SET_PHYSICAL | SET_UNMOVEABLE},
		{.hPagingQueue = queue.hPagingQueue,
		 .hAllocation = a,
		 .PreferredSegment.SegmentId0 = 2,
		 .PropertyMaskValue = SET_PREFERRED},
		to_segments(&queue, b, WORLD_APERTURE),
	};
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(update(&w.device, &each[i]), S_OK);
		assert_int_equal(each[i].PagingFenceValue, 0);
	}
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), operations);
	assert_true(wddm2_is_in_memory(&w.device, a));
	wddm2_make(&w, &w.device, &queue, &b, 1); /* where it may be placed now */
	assert_int_equal(client_residency(&w.device, b),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	wddm2_stop(&w);
}

/* The preference applies at the next placement. */
static void pri_15_a_new_preference_applies_at_the_next_placement(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = queue.hPagingQueue,
					   .hAllocation = a,
					   .PreferredSegment.SegmentId0 = 2,
					   .PropertyMaskValue = SET_PREFERRED};
	assert_int_equal(update(&w.device, &args), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(client_residency(&w.device, a),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	wddm2_stop(&w);
}

/* Without the bit in the mask, the member says nothing. */
static void pri_15_a_preference_that_is_not_set_does_not_apply(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = queue.hPagingQueue,
					   .hAllocation = a,
					   .PreferredSegment.SegmentId0 = 2,
					   .SupportedSegmentSet = WORLD_MEMORY | WORLD_APERTURE,
					   .PropertyMaskValue = SET_SEGMENTS};
	assert_int_equal(update(&w.device, &args), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_true(wddm2_is_in_memory(&w.device, a));
	wddm2_stop(&w);
}

/* Physical access permits patching, and mapping into the aperture (PAG-24). */
static void pri_15_accessedphysically_can_be_set_and_cleared(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_APERTURE,
					   .write_set = WORLD_APERTURE};
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t maps = wddm2_operations(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT),
		 unmaps = wddm2_operations(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), (HRESULT)0xC0262110);
	world_expect_finding(&w, "DMA-27");
	D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = queue.hPagingQueue,
					   .hAllocation = a,
					   .Flags.AccessedPhysically = 1,
					   .PropertyMaskValue = SET_PHYSICAL};
	HRESULT result = update(&w.device, &args);
	assert_true(result == S_OK || result == E_PENDING);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	assert_int_equal(wddm2_operations(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT), maps + 1);
	world_submit_write(&w.context, a, 4, 0x44);
	wddm2_run(&w);
	args.Flags.Value = 0;
	result = update(&w.device, &args);
	assert_true(result == S_OK || result == E_PENDING);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	assert_int_equal(wddm2_operations(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT), unmaps + 1);
	assert_int_equal(world_word(&w, a, 4), 0x44);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), (HRESULT)0xC0262110);
	world_expect_finding(&w, "DMA-27");
	wddm2_stop(&w);
}

/*
 * An update whose list would not fit is refused as a whole: the allocation is not moved, and is
 * counted where it is.
 */
static void pri_15_a_full_segment_is_out_of_memory(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT make;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 6 * MIB, WORLD_APERTURE),
		      b = wddm2_allocate(&w.device, 12 * MIB, WORLD_MEMORY),
		      c = wddm2_allocate(&w.device, 4 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	D3DDDI_UPDATEALLOCPROPERTY args = to_segments(&queue, a, WORLD_MEMORY);
	assert_int_equal(update(&w.device, &args), E_OUTOFMEMORY);
	assert_int_equal(args.PagingFenceValue, 77);
	assert_int_equal(client_residency(&w.device, a),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	wddm2_make(&w, &w.device, &queue, &c, 1); /* 16 MiB, none of them a's */
	assert_int_equal(wddm2_evict(&w.device, b, 0), S_OK);
	HRESULT result = update(&w.device, &args);
	assert_true(result == S_OK || result == E_PENDING);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, b, &make), E_OUTOFMEMORY);
	wddm2_stop(&w);
}

static void pri_15_bad_requests_change_nothing(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY), handle = a;
	const D3DDDI_UPDATEALLOCPROPERTY good = to_segments(&queue, a, WORLD_APERTURE);
	D3DDDI_UPDATEALLOCPROPERTY bad[9];
	for (uint32_t i = 0; i < 9; i++)
		bad[i] = good;
	bad[0].SupportedSegmentSet = 0;
	bad[1].SupportedSegmentSet = 0x3 | 1u << 20;
	bad[2].PropertyMaskValue |= 0x10;
	bad[3].Flags.Value = 0x4;
	bad[4].PropertyMaskValue |= SET_PREFERRED;
	bad[4].PreferredSegment.SegmentId0 = 1; /* it would not be in the set */
	bad[5].PropertyMaskValue |= SET_PREFERRED;
	bad[5].PreferredSegment.Value = 0x40000000;
	bad[6].hPagingQueue = queue.hSyncObject;
	bad[7].hAllocation = 0x4242;
	bad[8].hPagingQueue = 0;
	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(update(&w.device, &bad[i]), E_INVALIDARG);
		world_expect_finding(&w, "PRI-15");
		assert_int_equal(bad[i].PagingFenceValue, 77);
	}
	D3DDDI_UPDATEALLOCPROPERTY fixed = good;
	fixed.PropertyMaskValue = SET_UNMOVEABLE;
	fixed.Flags.Unmoveable = 1;
	assert_int_equal(update(&w.device, &fixed), E_NOTIMPL);
	D3DDDI_UPDATEALLOCPROPERTY args = good;
	(void)client_lock(&w.device, handle, 0);
	assert_int_equal(update(&w.device, &args), E_INVALIDARG);
	world_expect_finding(&w, "PRI-15");
	assert_int_equal(client_unlock(&w.device, handle), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_true(wddm2_is_in_memory(&w.device, a)); /* as it was created */
	wddm2_stop(&w);
}

static void old_interface(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static void pri_15_before_wddm_2_1_updates_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, old_interface);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	D3DDDI_UPDATEALLOCPROPERTY args = to_segments(&queue, a, WORLD_APERTURE);
	assert_int_equal(update(&w.device, &args), E_NOTIMPL);
	wddm2_stop(&w);
}

static void without_validation(struct scripted_miniport *m)
{
	at_once(m);
	m->settings.table.DxgkDdiValidateUpdateAllocationProperty = NULL;
}

/* The miniport sees the requested values, and is called only if they would change something. */
static void pri_15_the_miniport_validates_an_update_first(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	D3DDDI_UPDATEALLOCPROPERTY args = to_segments(&queue, a, WORLD_MEMORY);
	assert_int_equal(update(&w.device, &args), S_OK); /* its present value */
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY), 0);
	args = to_segments(&queue, a, WORLD_APERTURE);
	scripted_fail(w.m, VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(update(&w.device, &args), E_INVALIDARG);
	assert_true(wddm2_is_in_memory(&w.device, a));
	const DXGKARG_VALIDATEUPDATEALLOCPROPERTY *asked =
		&scripted_last(w.m, VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY)->in.property;
	assert_non_null(asked->hAllocation);
	assert_int_equal(asked->SupportedSegmentSet, WORLD_APERTURE);
	assert_int_equal(asked->PropertyMaskValue, SET_SEGMENTS);
	HRESULT result = update(&w.device, &args);
	assert_true(result == S_OK || result == E_PENDING);
	wddm2_run(&w);
	assert_false(wddm2_is_in_memory(&w.device, a));
	wddm2_stop(&w);
	world_start(&w, state, without_validation);
	queue = wddm2_queue(&w.device);
	a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	args = to_segments(&queue, a, WORLD_APERTURE);
	assert_int_equal(update(&w.device, &args), E_NOTIMPL);
	wddm2_stop(&w);
}

/* The creator changes it for all openers: it moves, and the other device's list must still fit. */
static void pri_15_only_the_creator_updates_a_shared_allocation(void **state)
{
	static char resource;
	struct client_device second;
	struct world w;
	uint32_t global, km_resource, count = 1;
	D3DKMT_HANDLE opened;

	world_start(&w, state, at_once);
	client_open(&w.client, &second);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), other = wddm2_queue(&second);
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE create = {
		.hResource = &resource, .NumAllocations = 1, .pAllocationInfo = &info};
	assert_int_equal(vidmm_resource_set_shared(w.device.device, &resource), 0);
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &create), S_OK);
	assert_int_equal(vidmm_resource_share(w.device.device, create.hKMResource, &global), 0);
	assert_int_equal(vidmm_resource_open(second.device, global, &km_resource, &opened, &count),
			 0);
	wddm2_make(&w, &second, &other, &opened, 1);
	wddm2_make(&w, &w.device, &queue, &info.hAllocation, 1);
	world_submit_write(&w.context, info.hAllocation, 4, 0x44);
	wddm2_run(&w);
	assert_true(wddm2_is_in_memory(&second, opened));
	D3DDDI_UPDATEALLOCPROPERTY args = to_segments(&other, opened, WORLD_APERTURE);
	assert_int_equal(update(&second, &args), E_INVALIDARG);
	world_expect_finding(&w, "PRI-15");
	/* The second device's list leaves no space for it in the aperture. */
	D3DKMT_HANDLE filler =
		wddm2_allocate(&second, w.m->settings.segment[1].size_bytes, WORLD_APERTURE);
	wddm2_make(&w, &second, &other, &filler, 1);
	args = to_segments(&queue, info.hAllocation, WORLD_APERTURE);
	assert_int_equal(update(&w.device, &args), E_OUTOFMEMORY);
	assert_true(wddm2_is_in_memory(&second, opened));
	assert_int_equal(wddm2_evict(&second, filler, 0), S_OK);
	wddm2_run(&w);
	HRESULT result = update(&w.device, &args);
	assert_true(result == S_OK || result == E_PENDING);
	wddm2_run(&w);
	assert_int_equal(client_residency(&second, opened),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	assert_int_equal(world_word(&w, info.hAllocation, 4), 0x44);
	client_close(&second);
	wddm2_stop(&w);
}

/* Like any other allocation; existing memory is treated differently. */
static void pri_15_a_primary_can_be_moved_by_an_update(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec),
				      .Flags.Primary = 1};
	D3DDDICB_ALLOCATE create = {.NumAllocations = 1, .pAllocationInfo = &info};
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &create), S_OK);
	wddm2_make(&w, &w.device, &queue, &info.hAllocation, 1);
	D3DDDI_UPDATEALLOCPROPERTY args = to_segments(&queue, info.hAllocation, WORLD_APERTURE);
	HRESULT result = update(&w.device, &args);
	assert_true(result == S_OK || result == E_PENDING);
	wddm2_run(&w);
	assert_int_equal(client_residency(&w.device, info.hAllocation),
			 D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	wddm2_stop(&w);
}

static void pri_15_d3dkmtupdateallocationproperty_follows_the_same_rules(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	vidmm_d3dkmt_attach(w.device.process);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	D3DDDI_UPDATEALLOCPROPERTY args = to_segments(&queue, a, 0);
	assert_int_equal(D3DKMTUpdateAllocationProperty(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "PRI-15");
	args.SupportedSegmentSet = WORLD_APERTURE;
	NTSTATUS status = D3DKMTUpdateAllocationProperty(&args);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	wddm2_await(&w, &queue, args.PagingFenceValue);
	assert_false(wddm2_is_in_memory(&w.device, a));
	assert_int_equal(D3DKMTUpdateAllocationProperty(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "HND-11");
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pri_15_a_resident_allocation_moves_behind_a_fence),
		ON_BOTH(pri_15_a_move_waits_for_work_queued_before),
		ON_BOTH(pri_15_an_update_without_a_move_completes_at_once),
		ON_BOTH(pri_15_a_new_preference_applies_at_the_next_placement),
		ON_BOTH(pri_15_a_preference_that_is_not_set_does_not_apply),
		ON_BOTH(pri_15_accessedphysically_can_be_set_and_cleared),
		ON_BOTH(pri_15_a_full_segment_is_out_of_memory),
		ON_BOTH(pri_15_bad_requests_change_nothing),
		ON_BOTH(pri_15_before_wddm_2_1_updates_are_refused),
		ON_BOTH(pri_15_the_miniport_validates_an_update_first),
		ON_BOTH(pri_15_only_the_creator_updates_a_shared_allocation),
		ON_BOTH(pri_15_a_primary_can_be_moved_by_an_update),
		ON_BOTH(pri_15_d3dkmtupdateallocationproperty_follows_the_same_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
