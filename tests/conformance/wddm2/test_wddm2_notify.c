/* SPDX-License-Identifier: MIT */
/*
 * NOTIFY_ALLOC of WDDM 3.2 (PAG-29). The miniport of these tests uses the operation as intended:
 * its GPU writes to the content, at the last mapped address, before it is unmapped.
 */
#include "wddm2_world.h"

#include <stdio.h>
#include <string.h>

#define NOTIFY_EVICTION    0x10u
#define NOTIFY_IOMMU_UNMAP 0x20u
#define PATTERN            0x5EED0000u

static void wddm3_1(struct scripted_miniport *m)
{
	wddm2_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_1);
	m->settings.complete_at_once = true;
}

static void wddm3_2(struct scripted_miniport *m)
{
	wddm3_1(m);
	m->settings.table.Version = DXGKDDI_INTERFACE_VERSION_WDDM3_2;
}

static D3DKMT_HANDLE allocate(struct client_device *device, uint64_t bytes, uint32_t flags,
			      uint32_t set, uint32_t flags2)
{
	const struct scripted_allocation spec = {.size_bytes = bytes,
						 .flags = flags,
						 .read_set = set,
						 .write_set = set,
						 .flags2 = flags2};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(device, &spec, &handle), S_OK);
	return handle;
}

/* The address of the allocation of the last MAP. */
struct decompressor {
	UINT segment;
	uint64_t address, pages;
	bool refuse;
};

static uint64_t base_of(const struct scripted_miniport *m, UINT segment)
{
	return m->settings.segment[segment - 1].base;
}

static void decompress(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct decompressor *d = context;
	DXGKARG_BUILDPAGINGBUFFER *args = call->args, fill;

	if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER)
		return;
	if (args->Operation == DXGK_OPERATION_MAP_APERTURE_SEGMENT) {
		d->segment = args->MapApertureSegment.SegmentId;
		d->address = args->MapApertureSegment.OffsetInPages * PAGE_BYTES;
		d->pages = args->MapApertureSegment.NumberOfPages;
	}
	if (args->Operation != DXGK_OPERATION_NOTIFY_ALLOC)
		return;
	if (d->refuse) {
		call->status = STATUS_UNSUCCESSFUL;
		return;
	}
	assert_int_equal(args->NotifyAlloc.SizeInBytes, d->pages * PAGE_BYTES);
	fill = *args;
	memset(&fill.Reserved, 0, sizeof(fill.Reserved));
	fill.Operation = DXGK_OPERATION_FILL;
	fill.Fill.FillSize = args->NotifyAlloc.SizeInBytes;
	fill.Fill.FillPattern = PATTERN + (UINT)(args->NotifyAlloc.OffsetInBytes / PAGE_BYTES);
	fill.Fill.Destination.SegmentId = d->segment;
	fill.Fill.Destination.SegmentAddress.QuadPart =
		(LONGLONG)(base_of(m, d->segment) + d->address);
	call->status = scripted_gpu_paging(m, &fill);
	if (call->status == STATUS_SUCCESS)
		args->pDmaBuffer = fill.pDmaBuffer;
}

/*
 * Operations from that one on, a letter each: Fill, transfer In, transfer Out, Map, Unmap, Notify.
 */
static const char *operations(const struct world *w, uint32_t from)
{
	static char text[64];
	static const char letter[] = {
		[DXGK_OPERATION_TRANSFER] = 'T',
		[DXGK_OPERATION_FILL] = 'F',
		[DXGK_OPERATION_MAP_APERTURE_SEGMENT] = 'M',
		[DXGK_OPERATION_UNMAP_APERTURE_SEGMENT] = 'U',
		[DXGK_OPERATION_NOTIFY_ALLOC] = 'N',
	};
	const struct scripted_call *call;
	uint32_t at = 0;

	for (uint32_t i = from;
	     (call = scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)) != NULL &&
	     at + 1 < sizeof(text);
	     i++)
		text[at++] = letter[call->in.paging.Operation];
	text[at] = 0;
	return text;
}

static uint32_t operation_count(const struct world *w)
{
	return scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER);
}

static const DXGK_BUILDPAGINGBUFFER_NOTIFYALLOC *nth_notify_alloc(const struct world *w, uint32_t n)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)) != NULL;
	     i++)
		if (call->in.paging.Operation == DXGK_OPERATION_NOTIFY_ALLOC && !n--)
			return &call->in.paging.NotifyAlloc;
	return NULL;
}

static void start(struct world *w, void **state, struct decompressor *d)
{
	world_start(w, state, wddm3_2);
	w->m->hook = decompress;
	w->m->hook_context = d;
}

static void evict(struct world *w, D3DKMT_HANDLE a)
{
	assert_int_equal(wddm2_evict(&w->device, a, 0), S_OK);
	wddm2_run(w);
}

/* It precedes the unmap, and the CPU finds what the GPU writes then. */
static void pag_29_notify_alloc_precedes_the_aperture_unmap(void **state)
{
	struct decompressor d = {0};
	struct world w;

	start(&w, state, &d);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL, WORLD_APERTURE, NOTIFY_EVICTION);
	client_write(&w.device, a, 64 * KIB, 7);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t from = operation_count(&w);
	evict(&w, a);
	assert_string_equal(operations(&w, from), "NU");
	const DXGK_BUILDPAGINGBUFFER_NOTIFYALLOC *notice = nth_notify_alloc(&w, 0);
	assert_non_null(notice->hAllocation);
	assert_null(notice->hKmdProcessHandle);
	assert_int_equal(notice->Flags.Value, 0x1);
	assert_int_equal(notice->OffsetInBytes, 0);
	assert_int_equal(notice->SizeInBytes, 64 * KIB);
	assert_int_equal(notice->GpuVirtualAddressAtOffset, 0);
	for (uint32_t at = 0; at < 64 * KIB; at += PAGE_BYTES)
		assert_int_equal(world_word(&w, a, at), PATTERN);
	/* The same at every eviction. */
	wddm2_make(&w, &w.device, &queue, &a, 1);
	evict(&w, a);
	assert_string_equal(operations(&w, from), "NUMNU");
	wddm2_stop(&w);
}

/*
 * Its pages are in no aperture, so they are mapped for the operation, all of them if there is
 * space.
 */
static void pag_29_system_memory_is_mapped_for_notify_alloc(void **state)
{
	struct decompressor d = {0};
	struct world w;

	start(&w, state, &d);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a =
		allocate(&w.device, 64 * KIB, WORLD_CPU_VISIBLE, WORLD_APERTURE, NOTIFY_EVICTION);
	client_write(&w.device, a, 64 * KIB, 7);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t from = operation_count(&w);
	evict(&w, a);
	assert_string_equal(operations(&w, from), "MNU");
	assert_int_equal(world_word(&w, a, 0), PATTERN);
	assert_int_equal(world_word(&w, a, 60 * KIB), PATTERN);
	wddm2_stop(&w);
}

/* The aperture has space for a quarter of it: four operations on one part each, with its offset. */
static void pag_29_an_allocation_too_large_is_notified_in_chunks(void **state)
{
	struct decompressor d = {0};
	struct world w;

	start(&w, state, &d);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE both[] = {
		allocate(&w.device, w.m->settings.segment[1].size_bytes - 16 * KIB, PHYSICAL,
			 WORLD_APERTURE, 0),
		allocate(&w.device, 60 * KIB, WORLD_CPU_VISIBLE, WORLD_APERTURE, NOTIFY_EVICTION)};
	client_write(&w.device, both[1], 60 * KIB, 7);
	wddm2_make(&w, &w.device, &queue, both, 2);
	uint32_t from = operation_count(&w);
	evict(&w, both[1]);
	assert_string_equal(operations(&w, from), "MNUMNUMNUMNU");
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(nth_notify_alloc(&w, i)->OffsetInBytes, i * 16 * KIB);
		assert_int_equal(nth_notify_alloc(&w, i)->SizeInBytes, i < 3 ? 16 * KIB : 12 * KIB);
	}
	for (uint32_t at = 0; at < 60 * KIB; at += PAGE_BYTES)
		assert_int_equal(world_word(&w, both[1], at), PATTERN + at / (16 * KIB) * 4);
	wddm2_stop(&w);
}

/* There is none for a memory segment, for destruction, or without the flag. */
static void pag_29_no_notify_alloc_from_memory_at_destruction_or_without_flag(void **state)
{
	struct decompressor d = {0};
	struct world w;

	start(&w, state, &d);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE list[] = {
		allocate(&w.device, 64 * KIB, PHYSICAL, WORLD_MEMORY, NOTIFY_EVICTION),
		allocate(&w.device, 64 * KIB, PHYSICAL, WORLD_APERTURE, 0),
		allocate(&w.device, 64 * KIB, PHYSICAL, WORLD_APERTURE, NOTIFY_EVICTION),
		allocate(&w.device, 64 * KIB, PHYSICAL, WORLD_APERTURE, NOTIFY_IOMMU_UNMAP)};
	wddm2_make(&w, &w.device, &queue, list, 4);
	assert_int_equal(client_deallocate(&w.device, list[2]), S_OK);
	wddm2_run(&w);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			evict(&w, list[i]);
	assert_int_equal(wddm2_operations(&w, DXGK_OPERATION_NOTIFY_ALLOC), 0);
	wddm2_stop(&w);
}

/* The GPU's writes would be lost: the adapter is removed, as with every refused operation. */
static void pag_29_a_refused_notify_alloc_removes_the_adapter(void **state)
{
	struct decompressor d = {.refuse = true};
	struct world w;

	start(&w, state, &d);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL, WORLD_APERTURE, NOTIFY_EVICTION);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t from = operation_count(&w);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	vidmm_settle(w.client.host);
	assert_string_equal(operations(&w, from), "N"); /* and no U */
	world_expect_finding(&w, "PAG-09");
	assert_int_equal(w.fatal[0], 0x10E);
	w.expected_fatals = 1;
	world_stop(&w);
}

/* ---- with GPU virtual addresses ---- */

static void wddm3_2_virtual(struct scripted_miniport *m, DXGK_PAGETABLEUPDATEMODE mode)
{
	wddm3_2(m);
	scripted_mmu(m, 3, mode == DXGK_PAGETABLEUPDATE_CPU_VIRTUAL ? 0 : 1);
	m->settings.mmu.caps.PageTableUpdateMode = mode;
}

static void physical_updates(struct scripted_miniport *m)
{
	wddm3_2_virtual(m, DXGK_PAGETABLEUPDATE_GPU_PHYSICAL);
}

static void virtual_updates(struct scripted_miniport *m)
{
	wddm3_2_virtual(m, DXGK_PAGETABLEUPDATE_GPU_VIRTUAL);
}

static void cpu_updates(struct scripted_miniport *m)
{
	wddm3_2_virtual(m, DXGK_PAGETABLEUPDATE_CPU_VIRTUAL);
}

/* Its GPU writes to the content at the address in the paging process. */
static void decompress_virtual(void *context, struct scripted_miniport *m,
			       struct scripted_call *call)
{
	DXGKARG_BUILDPAGINGBUFFER *args = call->args, fill;

	(void)context;
	if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER ||
	    args->Operation != DXGK_OPERATION_NOTIFY_ALLOC)
		return;
	fill = *args;
	memset(&fill.Reserved, 0, sizeof(fill.Reserved));
	fill.Operation = DXGK_OPERATION_VIRTUAL_FILL;
	fill.FillVirtual.FillSizeInBytes = args->NotifyAlloc.SizeInBytes;
	fill.FillVirtual.FillPattern =
		PATTERN + (UINT)(args->NotifyAlloc.OffsetInBytes / PAGE_BYTES);
	fill.FillVirtual.DestinationVirtualAddress = args->NotifyAlloc.GpuVirtualAddressAtOffset;
	call->status = scripted_gpu_paging(m, &fill);
	args->pDmaBuffer = fill.pDmaBuffer;
	args->MultipassOffset = fill.MultipassOffset;
}

static void notify_by_address(void **state, world_setup *setup, uint32_t flags, bool unmapped)
{
	const uint64_t bytes = 9 * MIB; /* more than a side of the window */
	struct world w;
	DXGK_PTE entry;

	world_start(&w, state, setup);
	w.m->hook = decompress_virtual;
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, bytes, flags, WORLD_APERTURE, NOTIFY_EVICTION);
	client_write(&w.device, a, bytes, 7);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	evict(&w, a);
	assert_int_equal(wddm2_operations(&w, DXGK_OPERATION_NOTIFY_ALLOC), 2);
	const DXGK_BUILDPAGINGBUFFER_NOTIFYALLOC *first = nth_notify_alloc(&w, 0);
	const DXGK_BUILDPAGINGBUFFER_NOTIFYALLOC *second = nth_notify_alloc(&w, 1);
	assert_int_equal(first->Flags.Value, 0x1);
	assert_null(first->hKmdProcessHandle);
	assert_int_equal(first->OffsetInBytes, 0);
	assert_int_equal(second->OffsetInBytes, first->SizeInBytes);
	assert_int_equal(first->SizeInBytes + second->SizeInBytes, bytes);
	assert_int_not_equal(first->GpuVirtualAddressAtOffset, 0);
	assert_int_equal(world_word(&w, a, 0), PATTERN);
	assert_int_equal(world_word(&w, a, (uint32_t)bytes - PAGE_BYTES),
			 PATTERN + (UINT)(second->OffsetInBytes / PAGE_BYTES));
	assert_int_equal(
		scripted_walk(&w.m->paging_process, first->GpuVirtualAddressAtOffset, &entry),
		!unmapped);
	assert_int_equal(w.m->stale, 0);
	w.m->hook = NULL;
	wddm2_stop(&w);
}

static void pag_29_notify_alloc_has_an_address_of_the_paging_process(void **state)
{
	notify_by_address(state, physical_updates, WORLD_CPU_VISIBLE, true);
	notify_by_address(state, physical_updates, PHYSICAL, true); /* also from an aperture */
	notify_by_address(state, virtual_updates, WORLD_CPU_VISIBLE, true);
}

static void q_221_entries_that_the_cpu_writes_stay_until_they_are_replaced(void **state)
{
	notify_by_address(state, cpu_updates, WORLD_CPU_VISIBLE, false);
}

static void alf_02_notifyeviction_is_reserved_before_wddm_3_2(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = PHYSICAL};
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, wddm3_1);
	for (spec.flags2 = NOTIFY_EVICTION; spec.flags2 <= NOTIFY_IOMMU_UNMAP; spec.flags2 *= 2) {
		assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), E_INVALIDARG);
		world_expect_finding(&w, "ALF-02");
	}
	world_stop(&w);
	world_start(&w, state, wddm3_2);
	for (spec.flags2 = 0x2; spec.flags2; spec.flags2 *= 2) {
		HRESULT result = wddm2_try_allocate(&w.device, &spec, &a);

		if (spec.flags2 == NOTIFY_EVICTION || spec.flags2 == NOTIFY_IOMMU_UNMAP) {
			assert_int_equal(result, S_OK);
		} else if (spec.flags2 < NOTIFY_EVICTION) { /* bits without a defined meaning */
			assert_int_equal(result, E_NOTIMPL);
		} else {
			assert_int_equal(result, E_INVALIDARG);
			world_expect_finding(&w, "ALF-02");
		}
	}
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pag_29_notify_alloc_precedes_the_aperture_unmap),
		ON_BOTH(pag_29_system_memory_is_mapped_for_notify_alloc),
		ON_BOTH(pag_29_an_allocation_too_large_is_notified_in_chunks),
		ON_BOTH(pag_29_no_notify_alloc_from_memory_at_destruction_or_without_flag),
		ON_BOTH(pag_29_a_refused_notify_alloc_removes_the_adapter),
		ON_BOTH(pag_29_notify_alloc_has_an_address_of_the_paging_process),
		ON_BOTH(q_221_entries_that_the_cpu_writes_stay_until_they_are_replaced),
		ON_BOTH(alf_02_notifyeviction_is_reserved_before_wddm_3_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
