/* SPDX-License-Identifier: MIT */
/* PAG: the paging operations that the miniport gets, their arguments and their order. */
#include "world.h"

#define TRANSFER      DXGK_OPERATION_TRANSFER
#define FILL          DXGK_OPERATION_FILL
#define MAP           DXGK_OPERATION_MAP_APERTURE_SEGMENT
#define UNMAP         DXGK_OPERATION_UNMAP_APERTURE_SEGMENT
#define APERTURE_BASE ((LONGLONG)1 << 40)

static const struct client_options small = {.vram_bytes = 4 * MIB, .aperture_bytes = 8 * MIB};

static void pag_02_allocations_in_use_by_the_gpu_are_not_evicted(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE busy = allocate_in(&w.device, 3 * MIB, CPU, VRAM),
		      next = allocate_in(&w.device, 2 * MIB, 0, VRAM);

	client_write(&w.device, busy, 3 * MIB, 0x20);
	use_now(&w, busy, false);
	gate_close(&w);
	client_reference(&w.context, busy, true);
	client_submit(&w.context);
	client_reference(&w.context, next, false);
	client_submit(&w.context); /* accepted; its packet must wait for the fence */
	for (int i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(client_residency(&w.device, busy), IN_VRAM);
	assert_int_equal(client_residency(&w.device, next), EVICTED);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, busy), EVICTED);
	assert_int_equal(client_residency(&w.device, next), IN_VRAM);
	client_expect(&w.device, busy, 3 * MIB, 0x20);
	world_stop(&w);
}

static void pag_02_all_allocations_a_buffer_references_are_resident_together(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[8];

	world_start(&w, state, &small);
	for (int i = 0; i < 8; i++)
		a[i] = allocate_in(&w.device, MIB, CPU, VRAM);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 4; i++)
			client_reference(&w.context, a[(round * 3 + i) % 8], true);
		client_submit(&w.context);
		client_idle(&w.client);
		for (int i = 0; i < 4; i++)
			assert_int_equal(client_residency(&w.device, a[(round * 3 + i) % 8]),
					 IN_VRAM);
	}
	world_stop(&w);
}

static void pag_03_pag_04_pag_05_a_move_is_one_transfer_of_the_whole_allocation(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, 64 * KIB, CPU, VRAM);
	HANDLE kmd = probe_last_created();

	use_now(&w, a, true); /* no content yet */
	assert_int_equal(probe_paging_count(-1, kmd), 1);
	const DXGKARG_BUILDPAGINGBUFFER *fill = &probe_find_paging(FILL, kmd, 0)->paging;
	assert_int_equal(fill->Fill.FillSize, 64 * KIB);
	assert_int_equal(fill->Fill.FillPattern, 0);
	assert_int_equal(fill->Fill.Destination.SegmentId, 1);
	evict_by_pressure(&w, a);
	const DXGKARG_BUILDPAGINGBUFFER *out = &probe_find_paging(TRANSFER, kmd, 0)->paging;
	assert_int_equal(out->Transfer.Source.SegmentId, 1);
	assert_true(out->Transfer.Source.SegmentAddress.QuadPart ==
		    fill->Fill.Destination.SegmentAddress.QuadPart);
	assert_int_equal(out->Transfer.Destination.SegmentId, 0);
	assert_non_null(out->Transfer.Destination.pMdl);
	assert_int_equal(out->Transfer.TransferOffset, 0);
	assert_int_equal(out->Transfer.MdlOffset, 0);
	assert_int_equal(out->Transfer.TransferSize, 64 * KIB);
	assert_int_equal(out->Transfer.Flags.Value,
			 0x18); /* TransferStart and TransferEnd, linear */
	use_now(&w, a, false);
	const DXGKARG_BUILDPAGINGBUFFER *in = &probe_find_paging(TRANSFER, kmd, 1)->paging;
	assert_int_equal(in->Transfer.Source.SegmentId, 0);
	assert_non_null(in->Transfer.Source.pMdl);
	assert_int_equal(in->Transfer.Destination.SegmentId, 1);
	assert_int_equal(in->Transfer.Flags.Value, 0x18);
	assert_int_equal(in->MultipassOffset, 0);
	assert_int_equal(probe_paging_count(-1, kmd), 3);
	world_stop(&w);
}

static bool insufficient_once(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	uint32_t *calls = context;

	if (args->Operation != TRANSFER || (*calls)++)
		return false;
	args->MultipassOffset = 77;
	*status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	return true;
}

static void pag_07_an_operation_is_continued_in_a_new_paging_buffer(void **state)
{
	struct world w;
	uint32_t calls = 0;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, PAGE, 0x70);
	probe.context = &calls;
	probe.answer_paging = insufficient_once;
	use_now(&w, a, false);
	probe.answer_paging = NULL;
	const DXGKARG_BUILDPAGINGBUFFER *first = &probe_find_paging(TRANSFER, kmd, 0)->paging;
	const struct probe_call *again = probe_find_paging(TRANSFER, kmd, 1);
	assert_int_equal(first->MultipassOffset, 0);
	assert_int_equal(again->paging.MultipassOffset, 77);
	assert_true((uintptr_t)again->paging.pDmaBuffer % PAGE == 0);
	assert_true(again->paging.DmaSize >= first->DmaSize);
	assert_int_equal(again->status, STATUS_SUCCESS);
	client_expect(&w.device, a, PAGE, 0x70);
	world_stop(&w);
}

/* One page at a time, each in its own buffer; MultipassOffset counts the pages done. */
static bool page_by_page(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	DXGKARG_BUILDPAGINGBUFFER piece = *args;
	UINT page = args->MultipassOffset;

	(void)context;
	if (args->Operation != TRANSFER)
		return false;
	piece.Transfer.TransferOffset = page * PAGE;
	piece.Transfer.MdlOffset = page;
	piece.Transfer.TransferSize = PAGE;
	*status = probe_softgpu_paging(&piece);
	args->pDmaBuffer = piece.pDmaBuffer;
	args->pDmaBufferPrivateData = piece.pDmaBufferPrivateData;
	if (*status != STATUS_SUCCESS)
		return true; /* does not fit: softgpu wrote nothing */
	args->MultipassOffset = page + 1;
	if ((page + 1) * (SIZE_T)PAGE < args->Transfer.TransferSize)
		*status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	return true;
}

static void pag_07_a_transfer_of_many_passes_copies_every_byte(void **state)
{
	enum { PAGES = 100 };
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGES * PAGE, CPU, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, PAGES * PAGE, 0x77000000);
	probe.answer_paging = page_by_page;
	use_now(&w, a, false);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), PAGES);
	for (uint32_t i = 0; i < PAGES; i++) {
		const DXGKARG_BUILDPAGINGBUFFER *in = &probe_find_paging(TRANSFER, kmd, i)->paging;

		assert_int_equal(in->MultipassOffset, i);
		assert_int_equal(in->Transfer.TransferOffset, 0); /* PAG-04: constant */
		assert_int_equal(in->Transfer.TransferSize, PAGES * PAGE);
	}
	client_expect(&w.device, a, PAGES * PAGE, 0x77000000);
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2 * PAGES);
	client_expect(&w.device, a, PAGES * PAGE, 0x77000000);
	world_stop(&w);
}

static void pag_07_operations_are_packed_into_one_paging_buffer(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	for (int i = 0; i < 3; i++)
		client_reference(&w.context, allocate_in(&w.device, PAGE, CPU, VRAM), true);
	probe_forget();
	client_submit(&w.context);
	client_idle(&w.client);
	for (uint32_t i = 0; i + 1 < 3; i++) {
		const struct probe_call *one = probe_find(PROBE_PAGING, i),
					*next = probe_find(PROBE_PAGING, i + 1);
		assert_ptr_equal((char *)one->paging.pDmaBuffer + one->written_bytes,
				 next->paging.pDmaBuffer);
		assert_int_equal(next->paging.DmaSize, one->paging.DmaSize - one->written_bytes);
	}
	world_stop(&w);
}

static void pag_07_a_burst_of_operations_uses_several_paging_buffers(void **state)
{
	static const struct vidmm_registry_value one_page = {"PagingBufferSize", 512};
	struct client_options options = {
		.vram_bytes = 4 * MIB, .registry = &one_page, .registry_count = 1};
	struct world w;
	D3DKMT_HANDLE a[64];

	world_start(&w, state, &options);
	for (uint32_t i = 0; i < 64; i++) {
		a[i] = allocate_in(&w.device, PAGE, CPU, VRAM);
		client_write(&w.device, a[i], PAGE, i << 16);
		client_reference(&w.context, a[i], true);
	}
	client_submit(&w.context);
	evict_by_pressure(&w, a[0]);
	for (uint32_t i = 0; i < 64; i++)
		client_expect(&w.device, a[i], PAGE, i << 16);
	world_stop(&w);
}

static bool busy_once(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	uint32_t *calls = context;

	if (args->Operation != TRANSFER || (*calls)++)
		return false;
	*status = STATUS_GRAPHICS_ALLOCATION_BUSY;
	return true;
}

static void pag_08_after_allocation_busy_the_operation_is_reissued_idle(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, VRAM);
	HANDLE kmd = probe_last_created();

	for (uint32_t out = 0; out < 2; out++) {
		uint32_t calls = 0;

		client_write(&w.device, a, PAGE, 0x80 + out);
		if (out)
			use_now(&w, a, false);
		probe_forget();
		probe.context = &calls;
		probe.answer_paging = busy_once;
		if (out)
			evict_by_pressure(&w, a);
		else
			use_now(&w, a, false);
		probe.answer_paging = NULL;
		assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
		assert_int_equal(
			probe_find_paging(TRANSFER, kmd, 0)->paging.Transfer.Flags.AllocationIsIdle,
			0);
		assert_int_equal(
			probe_find_paging(TRANSFER, kmd, 1)->paging.Transfer.Flags.AllocationIsIdle,
			1);
		client_expect(&w.device, a, PAGE, 0x80 + out);
	}
	world_stop(&w);
}

static bool special_busy_once(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	uint32_t *calls = context;

	if (args->Operation != DXGK_OPERATION_SPECIAL_LOCK_TRANSFER || *calls % 2) {
		*calls += args->Operation == DXGK_OPERATION_SPECIAL_LOCK_TRANSFER;
		return false;
	}
	++*calls;
	*status = STATUS_GRAPHICS_ALLOCATION_BUSY;
	return true;
}

static void pag_08_a_busy_special_lock_transfer_is_reissued_idle(void **state)
{
	struct world w;
	uint32_t calls = 0;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, VRAM);
	HANDLE kmd = probe_last_created();
	uint32_t *words = client_lock(&w.device, a, ACQUIRE_APERTURE | USE_ALTERNATE_VA);

	words[3] = 0x0808;
	probe.context = &calls;
	probe.answer_paging = special_busy_once;
	evict_by_pressure(&w, a);
	assert_int_equal(words[3], 0x0808);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false); /* and evicted again */
	probe.answer_paging = NULL;
	assert_int_equal(calls, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(probe_find_paging(DXGK_OPERATION_SPECIAL_LOCK_TRANSFER, kmd, i)
					 ->paging.SpecialLockTransfer.Flags.AllocationIsIdle,
				 i % 2);
	const uint32_t *again = client_lock(&w.device, a, READ_ONLY);
	assert_int_equal(again[3], 0x0808);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void pag_10_map_and_unmap_name_device_range_and_pages(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, 3 * PAGE, CPU, APERTURE);
	HANDLE kmd = probe_last_created(), device = probe_find(PROBE_OPEN, 0)->device;

	use_now(&w, a, true);
	const DXGKARG_BUILDPAGINGBUFFER *map = &probe_find_paging(MAP, kmd, 0)->paging;
	assert_ptr_equal(map->MapApertureSegment.hDevice, device);
	assert_int_equal(map->MapApertureSegment.SegmentId, 2);
	assert_int_equal(map->MapApertureSegment.NumberOfPages, 3);
	assert_non_null(map->MapApertureSegment.pMdl);
	assert_int_equal(map->MapApertureSegment.MdlOffset, 0);
	assert_int_equal(map->MapApertureSegment.Flags.Value, 0); /* not Cached */
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_idle(&w.client);
	const DXGKARG_BUILDPAGINGBUFFER *unmap = &probe_find_paging(UNMAP, kmd, 0)->paging;
	assert_ptr_equal(unmap->UnmapApertureSegment.hDevice, device);
	assert_int_equal(unmap->UnmapApertureSegment.SegmentId, 2);
	assert_int_equal(unmap->UnmapApertureSegment.OffsetInPages,
			 map->MapApertureSegment.OffsetInPages);
	assert_int_equal(unmap->UnmapApertureSegment.NumberOfPages, 3);
	assert_true(unmap->UnmapApertureSegment.DummyPage.QuadPart != 0);
	assert_int_equal(probe_paging_count(-1, kmd), 2);
	world_stop(&w);
}

static void pag_10_cachecoherent_is_set_for_cached_in_a_coherent_aperture_only(void **state)
{
	for (uint64_t coherent = 0; coherent < 2; coherent++) {
		const struct vidmm_registry_value value = {"ApertureCoherent", coherent};
		const struct client_options options = {.registry = &value, .registry_count = 1};
		struct world w;

		world_start(&w, state, &options);
		for (uint32_t cached = 0; cached < 2; cached++) {
			D3DKMT_HANDLE a = allocate_in(
				&w.device, PAGE, CPU | (cached ? SOFTGPU_ALLOCATION_CACHED : 0),
				APERTURE);
			HANDLE kmd = probe_last_created();
			use_now(&w, a, false);
			assert_int_equal(probe_find_paging(MAP, kmd, 0)
						 ->paging.MapApertureSegment.Flags.CacheCoherent,
					 cached && coherent);
		}
		world_stop(&w);
	}
}

static void pag_12_the_backing_store_is_freed_while_resident_in_memory(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, 2 * MIB, CPU, VRAM);
	HANDLE kmd = probe_last_created();
	uint64_t before = world_statistics(&w).system_bytes;

	client_write(&w.device, a, 2 * MIB, 0x12);
	assert_true(world_statistics(&w).system_bytes == before + 2 * MIB);
	use_now(&w, a, false);
	/* Freed when something is destroyed or memory is requested. */
	assert_int_equal(client_deallocate(&w.device, client_allocate(&w.device, PAGE, 0)), S_OK);
	assert_true(world_statistics(&w).system_bytes == before);
	evict_by_pressure(&w, a); /* so content that was only read is copied back as well */
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	client_expect(&w.device, a, 2 * MIB, 0x12);
	world_stop(&w);
}

static void pag_17_seg_07_an_aperture_maps_and_unmaps_and_copies_nothing(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, 4 * MIB, CPU, APERTURE),
		      b = allocate_in(&w.device, 5 * MIB, CPU, APERTURE);

	client_write(&w.device, a, 4 * MIB, 0x17000000);
	client_write(&w.device, b, 5 * MIB, 0x71000000);
	probe_forget();
	use_now(&w, a, false);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	use_now(&w, b, false);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	use_now(&w, a, false);
	assert_int_equal(probe_paging_count(MAP, NULL), 3);
	assert_int_equal(probe_paging_count(UNMAP, NULL), 2);
	assert_int_equal(probe_paging_count(-1, NULL), 5);
	client_expect(&w.device, a, 4 * MIB, 0x17000000);
	client_expect(&w.device, b, 5 * MIB, 0x71000000);
	world_stop(&w);
}

/* The entry of the only allocation that the last render call referenced. */
static DXGK_ALLOCATIONLIST rendered(const struct world *w)
{
	const struct probe_call *call = probe_find(PROBE_RENDER, 0), *last = call;

	(void)w;
	for (uint32_t i = 1; call; i++) {
		last = call;
		call = probe_find(PROBE_RENDER, i);
	}
	assert_non_null(last);
	assert_int_equal(last ? last->count : 0, 1);
	return last ? last->list[0] : (DXGK_ALLOCATIONLIST){0};
}

static void pag_30_a_list_entry_carries_the_last_placement(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, VRAM),
		      b = allocate_in(&w.device, PAGE, CPU, APERTURE);
	DXGK_ALLOCATIONLIST e;

	use_now(&w, a, true);
	e = rendered(&w);
	assert_int_equal(e.SegmentId, 0);
	assert_true(e.PhysicalAddress.QuadPart == 0);
	assert_int_equal(e.WriteOperation, 1);
	use_now(&w, a, false);
	e = rendered(&w);
	assert_int_equal(e.SegmentId, 1);
	const struct probe_call *fill = probe_find_paging(FILL, NULL, 0);
	assert_true(e.PhysicalAddress.QuadPart ==
		    fill->paging.Fill.Destination.SegmentAddress.QuadPart);
	assert_int_equal(e.WriteOperation, 0);
	assert_int_equal(e.Reserved, 0);
	evict_by_pressure(&w, a);
	use_now(&w, a, false);
	e = rendered(&w);
	assert_int_equal(e.SegmentId, 0);
	assert_true(e.PhysicalAddress.QuadPart == 0);
	use_now(&w, b, false);
	use_now(&w, b, false);
	e = rendered(&w);
	assert_int_equal(e.SegmentId, 2);
	assert_true(e.PhysicalAddress.QuadPart >= APERTURE_BASE);
	world_stop(&w);
}

static void pag_31_writeoperation_marks_the_allocation_dirty(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, APERTURE);

	gate_close(&w);
	client_reference(&w.context, a, false);
	client_submit(&w.context);
	client_lock(&w.device, a, IGNORE_READ_SYNC | DONOT_WAIT);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	/* The list entry decides, whatever the commands do. */
	client_use(&w.context, a, true);
	client_submit(&w.context);
	expect_lock_refused(&w, a, IGNORE_READ_SYNC | DONOT_WAIT, D3DERR_WASSTILLDRAWING, NULL);
	world_stop(&w);
}

static void pag_33_a_paging_buffer_is_patched_without_lists_before_it_is_submitted(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	use_now(&w, allocate_in(&w.device, PAGE, CPU, VRAM), false);
	uint32_t paging = UINT32_MAX, patch = UINT32_MAX, submit = UINT32_MAX;

	for (uint32_t i = 0; i < probe.calls; i++) {
		const struct probe_call *c = &probe.call[i];
		if (c->ddi == PROBE_PAGING && paging == UINT32_MAX)
			paging = i;
		if (c->ddi == PROBE_PATCH && (c->flags & 1) && patch == UINT32_MAX)
			patch = i;
		if (c->ddi == PROBE_SUBMIT && (c->flags & 1) && submit == UINT32_MAX)
			submit = i;
	}
	assert_true(paging < patch && patch < submit && submit < probe.calls);
	assert_int_equal(probe.call[patch].count, 0);
	assert_int_equal(probe.call[patch].fence, probe.call[submit].fence);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(pag_02_allocations_in_use_by_the_gpu_are_not_evicted),
		BOTH(pag_02_all_allocations_a_buffer_references_are_resident_together),
		BOTH(pag_03_pag_04_pag_05_a_move_is_one_transfer_of_the_whole_allocation),
		BOTH(pag_07_an_operation_is_continued_in_a_new_paging_buffer),
		BOTH(pag_07_a_transfer_of_many_passes_copies_every_byte),
		BOTH(pag_07_operations_are_packed_into_one_paging_buffer),
		BOTH(pag_07_a_burst_of_operations_uses_several_paging_buffers),
		BOTH(pag_08_after_allocation_busy_the_operation_is_reissued_idle),
		BOTH(pag_08_a_busy_special_lock_transfer_is_reissued_idle),
		BOTH(pag_10_map_and_unmap_name_device_range_and_pages),
		BOTH(pag_10_cachecoherent_is_set_for_cached_in_a_coherent_aperture_only),
		BOTH(pag_12_the_backing_store_is_freed_while_resident_in_memory),
		BOTH(pag_17_seg_07_an_aperture_maps_and_unmaps_and_copies_nothing),
		BOTH(pag_30_a_list_entry_carries_the_last_placement),
		BOTH(pag_31_writeoperation_marks_the_allocation_dirty),
		BOTH(pag_33_a_paging_buffer_is_patched_without_lists_before_it_is_submitted),
	};

	return cmocka_run_group_tests_name("paging", tests, NULL, NULL);
}
