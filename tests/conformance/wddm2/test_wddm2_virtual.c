/* SPDX-License-Identifier: MIT */
/*
 * Paging by GPU virtual address: PAG-26, and VA-11 and VA-12 for the system paging process. The
 * scripted GPU executes transfers and fills through the page tables of that process, so a wrong
 * entry or a missing flush shows as wrong bytes. An operation of WDDM 1.x counts as a fault, which
 * va_finish finds.
 */
#include "va_world.h"

#include <string.h>

#define PAGES_64K 0x800u              /* DXGK_SEGMENTFLAGS.Use64KBPages */
#define CHUNK     (8 * (uint64_t)MIB) /* the largest that vidmm makes */

/* ---- setups ---- */

static void tables_in_memory(struct scripted_miniport *m)
{
	va_memory(m);
	for (uint32_t i = 0; i < 8; i++)
		m->settings.mmu.level[i].PagingProcessPageTableSegmentId = 1;
}

static void large_pages(struct scripted_miniport *m)
{
	tables_in_memory(m);
	m->settings.segment[0].flags |= PAGES_64K;
}

static void in_passes(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.transfer_chunk_bytes = 20 * KIB;
}

static void small_buffers(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.paging_bytes = 8 * KIB;
	m->settings.transfer_chunk_bytes = 256 * KIB;
	m->settings.complete_at_once = false;
}

static void cpu_small_buffers(struct scripted_miniport *m)
{
	va_system(m);
	m->settings.paging_bytes = 4 * KIB;
	m->settings.transfer_chunk_bytes = 256 * KIB;
	m->settings.complete_at_once = false;
}

static void cpu_when_idle(struct scripted_miniport *m)
{
	va_system(m);
	m->settings.mmu.caps.PageTableUpdateRequireAddressSpaceIdle = 1;
	m->settings.complete_at_once = false;
}

static void not_cached(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.caps.InvalidTlbEntriesNotCached = 1;
}

static void virtual_two_levels(struct scripted_miniport *m)
{
	va_two_levels(m);
	m->settings.mmu.caps.PageTableUpdateMode = DXGK_PAGETABLEUPDATE_GPU_VIRTUAL;
}

static void virtual_in_memory(struct scripted_miniport *m)
{
	tables_in_memory(m);
	m->settings.mmu.caps.PageTableUpdateMode = DXGK_PAGETABLEUPDATE_GPU_VIRTUAL;
}

static void virtual_small_buffers(struct scripted_miniport *m)
{
	small_buffers(m);
	m->settings.mmu.caps.PageTableUpdateMode = DXGK_PAGETABLEUPDATE_GPU_VIRTUAL;
	m->settings.mmu.caps.InvalidTlbEntriesNotCached = 1;
}

static void names_tables(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.caps.LegacyBehaviors.SourcePageTableVaInTransfer = 1;
}

/* ---- helpers ---- */

static uint32_t *lock2(struct va_world *v, D3DKMT_HANDLE a)
{
	D3DDDICB_LOCK2 args = {.hAllocation = a};

	assert_int_equal(v->w.device.cb->pfnLock2Cb(v->w.device.handle, &args), S_OK);
	return args.pData;
}

static void unlock2(struct va_world *v, D3DKMT_HANDLE a)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = a};

	assert_int_equal(v->w.device.cb->pfnUnlock2Cb(v->w.device.handle, &args), S_OK);
}

/* Each page has other words. */
static void draw(struct va_world *v, D3DKMT_HANDLE a, uint64_t bytes, uint32_t seed)
{
	uint32_t *words = lock2(v, a);

	for (uint64_t i = 0; i < bytes / 4; i += 64)
		words[i] = seed + (uint32_t)i;
	words[bytes / 4 - 1] = ~seed;
	unlock2(v, a);
}

static void expect(struct va_world *v, D3DKMT_HANDLE a, uint64_t bytes, uint32_t seed)
{
	const uint32_t *words = lock2(v, a);

	for (uint64_t i = 0; i < bytes / 4; i += 64)
		assert_int_equal(words[i], seed + (uint32_t)i);
	assert_int_equal(words[bytes / 4 - 1], ~seed);
	unlock2(v, a);
}

static void evict(struct va_world *v, D3DKMT_HANDLE a)
{
	assert_int_equal(wddm2_evict(&v->w.device, a, 0), S_OK);
	wddm2_run(&v->w);
	assert_false(wddm2_is_in_memory(&v->w.device, a));
}

/* The GPU writes a word, so that the content must be copied out. */
static void evict_written(struct va_world *v, D3DKMT_HANDLE a, uint64_t at, uint32_t word)
{
	va_store(v, at, word);
	evict(v, a);
}

/* The n-th operation of that kind, from 0. */
static const DXGKARG_BUILDPAGINGBUFFER *nth(const struct va_world *v,
					    DXGK_BUILDPAGINGBUFFER_OPERATION operation, uint32_t n)
{
	const struct scripted_call *call;

	for (uint32_t i = 0;
	     (call = scripted_nth(v->w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)) != NULL; i++)
		if (call->in.paging.Operation == operation && !n--)
			return &call->in.paging;
	return NULL;
}

static uint32_t count(const struct va_world *v, DXGK_BUILDPAGINGBUFFER_OPERATION operation)
{
	return wddm2_operations(&v->w, operation);
}

/* ---- the paging process ---- */

/*
 * The miniport creates the paging process first, then the system device in it. Its tables are
 * written without a paging buffer, all invalid at first. Its root is set before the context's first
 * submission.
 */
static void va_11_va_12_the_paging_process_is_set_up_before_its_first_packet(void **state)
{
	const struct scripted_call *call;
	bool root = false;
	uint32_t updates = 0, i;
	struct va_world v;

	va_begin(&v, state, tables_in_memory);
	call = scripted_nth(v.w.m, VIDMM_DDI_CREATE_PROCESS, 0);
	assert_true(call->in.create_process.Flags.SystemProcess);
	assert_ptr_equal(call->handle, &v.w.m->paging_process);
	assert_false(scripted_nth(v.w.m, VIDMM_DDI_CREATE_PROCESS, 1)
			     ->in.create_process.Flags.SystemProcess);
	call = scripted_nth(v.w.m, VIDMM_DDI_CREATE_DEVICE, 0);
	assert_true(call->in.create_device.Flags.SystemDevice);
	assert_ptr_equal(call->in.create_device.hKmdProcess, &v.w.m->paging_process);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	va_make(&v, a);
	for (i = 0; (call = scripted_at(v.w.m, i)) != NULL; i++) {
		const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *u = &call->in.paging.UpdatePageTable;

		if (call->ddi == VIDMM_DDI_SUBMIT_COMMAND)
			break;
		root |= call->ddi == VIDMM_DDI_SET_ROOT_PAGE_TABLE &&
			call->in.root.hContext == v.w.m->paging_context;
		if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER || root)
			continue;
		assert_int_equal(call->in.paging.Operation, DXGK_OPERATION_UPDATE_PAGE_TABLE);
		assert_null(call->in.paging.pDmaBuffer);
		assert_int_equal(u->UpdateMode, DXGK_PAGETABLEUPDATE_CPU_VIRTUAL);
		assert_ptr_equal(u->hProcess, &v.w.m->paging_process);
		assert_true(u->PageTableLevel || u->Flags.InitialUpdate);
		updates++;
	}
	assert_non_null(call);
	assert_true(root && updates > 16);
	va_finish(&v);
}

static void answer_insufficient(void *context, struct scripted_miniport *m,
				struct scripted_call *call)
{
	(void)context;
	(void)m;
	if (call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER && !call->in.paging.pDmaBuffer)
		call->status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
}

/* A miniport that wants a buffer for these tables does not start. */
static void va_11_tables_of_the_paging_process_need_no_paging_buffer(void **state)
{
	struct client client;
	struct scripted_miniport *m = scripted_create();
	const struct client_options options = {.kind = *(const uint32_t *)*state,
					       .driver_entry = scripted_driver_entry};

	va_memory(m);
	m->hook = answer_insufficient;
	assert_int_not_equal(client_try_start(&client, &options), 0);
	assert_true(client_found(&client, "VA-11"));
	client_stop(&client);
	scripted_destroy(m);
}

/* ---- content ---- */

/* A GPU that completes packets a millisecond after they were submitted. */
struct slow_gpu {
	struct va_world *v;
	struct vidmm_thread *thread;
	_Atomic bool stop;
};

static void complete_later(void *context)
{
	struct slow_gpu *gpu = context;
	struct vidmm_host *host = gpu->v->w.client.host;

	while (!atomic_load(&gpu->stop)) {
		vidmm_sleep_until_ns(host, vidmm_now_ns(host) + 1000000);
		scripted_complete_all(gpu->v->w.m);
	}
}

static void start_gpu(struct slow_gpu *gpu, struct va_world *v)
{
	*gpu = (struct slow_gpu){.v = v};
	if (v->w.m->settings.complete_at_once)
		return;
	assert_int_equal(vidmm_thread_create(v->w.client.host, "slow GPU", complete_later, gpu,
					     &gpu->thread),
			 0);
}

static void stop_gpu(struct slow_gpu *gpu)
{
	atomic_store(&gpu->stop, true);
	if (gpu->thread)
		vidmm_thread_join(gpu->thread);
}

static void there_and_back(void **state, world_setup *setup, uint64_t bytes, uint32_t chunks)
{
	struct slow_gpu gpu;
	struct va_world v;

	va_begin(&v, state, setup);
	start_gpu(&gpu, &v);
	D3DKMT_HANDLE a = va_allocate(&v, bytes, WORLD_MEMORY),
		      b = va_allocate(&v, bytes, WORLD_MEMORY);
	uint64_t at = va_map(&v, a, bytes);
	va_make(&v, a);
	assert_int_equal(count(&v, DXGK_OPERATION_VIRTUAL_FILL) >= chunks, 1);
	assert_int_equal(va_word(&v, at + bytes - 4), 0);
	draw(&v, a, bytes, 0x26000000);
	evict_written(&v, a, at, 0x26000000);
	assert_true(count(&v, DXGK_OPERATION_VIRTUAL_TRANSFER) >= chunks);
	va_make(&v, b);
	evict(&v, b);
	expect(&v, a, bytes, 0x26000000);
	va_make(&v, a);
	assert_true(wddm2_is_in_memory(&v.w.device, a));
	expect(&v, a, bytes, 0x26000000);
	assert_int_equal(va_word(&v, at), 0x26000000);
	stop_gpu(&gpu);
	va_finish(&v);
}

static void pag_26_content_survives_eviction_and_return(void **state)
{
	there_and_back(state, va_memory, 64 * KIB, 1);
	there_and_back(state, va_memory, 2 * MIB + PAGE_BYTES, 1);
	there_and_back(state, va_two_levels, 3 * MIB, 1);
	there_and_back(state, va_system, 3 * MIB, 1);
	there_and_back(state, tables_in_memory, 3 * MIB, 1);
	there_and_back(state, large_pages, 3 * MIB, 1);
	there_and_back(state, not_cached, 3 * MIB, 1);
}

static void pag_26_content_larger_than_the_window_moves_in_chunks(void **state)
{
	there_and_back(state, va_memory, 12 * MIB, 2);
	there_and_back(state, va_system, 12 * MIB, 2);
	there_and_back(state, large_pages, 12 * MIB, 2);
	there_and_back(state, cpu_when_idle, 12 * MIB, 2);
}

static void cpu_later(struct scripted_miniport *m)
{
	va_system(m);
	m->settings.complete_at_once = false;
}

/*
 * The CPU writes entries while older commands wait for the GPU. Each chunk has other addresses, so
 * the older commands still find their pages.
 */
static void pag_26_entries_of_waiting_chunks_are_kept(void **state)
{
	D3DKMT_HANDLE a[3];
	D3DDDI_MAKERESIDENT args;
	struct va_world v;

	va_begin(&v, state, cpu_later);
	for (uint32_t i = 0; i < 3; i++) {
		a[i] = va_allocate(&v, 2 * MIB, WORLD_MEMORY);
		draw(&v, a[i], 2 * MIB, i << 24);
	}
	for (uint32_t i = 0; i < 3; i++)
		(void)wddm2_try_make_one(&v.w.device, &v.queue, a[i], &args);
	wddm2_await(&v.w, &v.queue, args.PagingFenceValue);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(wddm2_is_in_memory(&v.w.device, a[i]));
		expect(&v, a[i], 2 * MIB, i << 24);
	}
	assert_int_equal(count(&v, DXGK_OPERATION_VIRTUAL_TRANSFER), 3);
	va_finish(&v);
}

static void pag_26_pag_07_one_operation_may_take_several_calls_and_buffers(void **state)
{
	there_and_back(state, in_passes, MIB, 1);
	there_and_back(state, small_buffers, 10 * MIB, 2);
	there_and_back(state, cpu_small_buffers, 10 * MIB, 2);
}

/* Each chunk: its pages are mapped, the flush covers them, then the operation has its addresses. */
static void pag_26_each_chunk_follows_its_mapping_and_a_flush(void **state)
{
	static const DXGK_BUILDPAGINGBUFFER_OPERATION first[] = {DXGK_OPERATION_UPDATE_PAGE_TABLE,
								 DXGK_OPERATION_FLUSH_TLB,
								 DXGK_OPERATION_VIRTUAL_FILL};
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 12 * MIB, WORLD_MEMORY);
	scripted_forget(v.w.m);
	va_make(&v, a);
	const DXGKARG_BUILDPAGINGBUFFER *fill[2] = {nth(&v, DXGK_OPERATION_VIRTUAL_FILL, 0),
						    nth(&v, DXGK_OPERATION_VIRTUAL_FILL, 1)};
	assert_null(nth(&v, DXGK_OPERATION_VIRTUAL_FILL, 2));
	assert_int_equal(fill[0]->FillVirtual.AllocationOffsetInBytes, 0);
	assert_int_equal(fill[0]->FillVirtual.FillSizeInBytes, CHUNK);
	assert_int_equal(fill[1]->FillVirtual.AllocationOffsetInBytes, CHUNK);
	assert_int_equal(fill[1]->FillVirtual.FillSizeInBytes, 4 * MIB);
	const DXGKARG_BUILDPAGINGBUFFER *update = nth(&v, DXGK_OPERATION_UPDATE_PAGE_TABLE, 0),
					*flush = nth(&v, DXGK_OPERATION_FLUSH_TLB, 0);
	uint64_t at = fill[0]->FillVirtual.DestinationVirtualAddress;
	assert_int_equal(update->UpdatePageTable.FirstPteVirtualAddress, at);
	assert_ptr_equal(update->UpdatePageTable.hProcess, &v.w.m->paging_process);
	assert_int_equal(update->UpdatePageTable.AllocationOffsetInBytes, 0);
	assert_ptr_equal(update->UpdatePageTable.hAllocation, fill[0]->FillVirtual.hAllocation);
	assert_ptr_equal(flush->FlushTlb.hProcess, &v.w.m->paging_process);
	assert_true(flush->FlushTlb.StartVirtualAddress <= at);
	assert_true(flush->FlushTlb.EndVirtualAddress >= at + CHUNK);
	for (uint32_t i = 0, kinds = 0; kinds < 3; i++) {
		const struct scripted_call *call =
			scripted_nth(v.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i);

		if (call->in.paging.Operation != first[kinds])
			assert_int_equal(call->in.paging.Operation, first[++kinds]);
		if (call->in.paging.Operation == first[2])
			break;
	}
	va_finish(&v);
}

static void pag_26_transfers_name_their_direction_and_offset(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 12 * MIB, WORLD_MEMORY);
	uint64_t at = va_map(&v, a, 12 * MIB);
	va_make(&v, a);
	scripted_forget(v.w.m);
	evict_written(&v, a, at, 1);
	va_make(&v, a);
	for (uint32_t i = 0; i < 4; i++) {
		const DXGK_BUILDPAGINGBUFFER_TRANSFERVIRTUAL *t =
			&nth(&v, DXGK_OPERATION_VIRTUAL_TRANSFER, i)->TransferVirtual;

		assert_int_equal(t->TransferDirection,
				 i < 2 ? DXGK_MEMORY_TRANSFER_LOCAL_TO_SYSTEM
				       : DXGK_MEMORY_TRANSFER_SYSTEM_TO_LOCAL);
		assert_int_equal(t->AllocationOffsetInBytes, i % 2 * CHUNK);
		assert_int_equal(t->TransferSizeInBytes, i % 2 ? 4 * MIB : CHUNK);
		assert_int_equal(t->Flags.Src64KBPages | t->Flags.Dst64KBPages, 0);
		assert_int_not_equal(t->SourceVirtualAddress, t->DestinationVirtualAddress);
	}
	assert_null(nth(&v, DXGK_OPERATION_VIRTUAL_TRANSFER, 4));
	va_finish(&v);
}

/* Content that need not be kept leaves without an operation. */
static void pag_26_content_is_dropped_silently(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	va_make(&v, a);
	scripted_forget(v.w.m);
	assert_int_equal(wddm2_evict(&v.w.device, a, NOT_WRITTEN_TO), S_OK);
	wddm2_run(&v.w);
	assert_false(wddm2_is_in_memory(&v.w.device, a));
	assert_int_equal(scripted_count(v.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), 0);
	va_finish(&v);
}

/* The pages are mapped in the window, so an eviction segment set is not needed. */
static void pag_26_eviction_maps_no_aperture(void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY,
						 .eviction_set = WORLD_APERTURE};
	D3DKMT_HANDLE a;
	struct va_world v;

	va_begin(&v, state, va_memory);
	assert_int_equal(wddm2_try_allocate(&v.w.device, &spec, &a), S_OK);
	uint64_t at = va_map(&v, a, 64 * KIB);
	va_make(&v, a);
	draw(&v, a, 64 * KIB, 7);
	evict_written(&v, a, at, 7);
	assert_int_equal(count(&v, DXGK_OPERATION_VIRTUAL_TRANSFER), 1);
	assert_int_equal(count(&v, DXGK_OPERATION_MAP_APERTURE_SEGMENT), 0);
	expect(&v, a, 64 * KIB, 7);
	va_finish(&v);
}

/* ---- page tables at GPU virtual addresses ---- */

static void q_166_page_tables_are_updated_at_gpu_virtual_addresses(void **state)
{
	there_and_back(state, va_virtual, 3 * MIB, 1);
	there_and_back(state, virtual_two_levels, 3 * MIB, 1);
	there_and_back(state, virtual_in_memory, 12 * MIB, 2);
	there_and_back(state, virtual_small_buffers, 10 * MIB, 2);
}

/*
 * The entries of a client's table follow entries of the window, which map it, and a flush. All
 * addresses of tables are those of the paging process.
 */
static void q_166_a_table_is_mapped_before_its_entries_are_written(void **state)
{
	const struct scripted_call *call;
	uint32_t clients = 0, window = 0, flushes = 0;
	struct va_world v;

	va_begin(&v, state, va_virtual);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	scripted_forget(v.w.m);
	va_map(&v, a, 64 * KIB);
	for (uint32_t i = 0; (call = scripted_nth(v.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)) != NULL;
	     i++) {
		const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *u = &call->in.paging.UpdatePageTable;
		DXGK_PTE entry;

		if (call->in.paging.Operation != DXGK_OPERATION_UPDATE_PAGE_TABLE) {
			flushes += window != 0;
			continue;
		}
		assert_int_equal(u->UpdateMode, DXGK_PAGETABLEUPDATE_GPU_VIRTUAL);
		assert_true(scripted_walk(&v.w.m->paging_process, u->PageTableAddress.GpuVirtual,
					  &entry));
		if (u->hProcess == &v.w.m->paging_process) {
			assert_int_equal(u->PageTableLevel, 0);
			window++;
		} else {
			assert_true(window && flushes);
			clients++;
		}
	}
	/* a leaf, its parent, and the entries that refer to them */
	assert_true(clients >= 4 && window >= 2);
	va_finish(&v);
}

static void pag_26_sourcepagetablevaintransfer_gives_addresses_of_tables(void **state)
{
	const DXGK_BUILDPAGINGBUFFER_TRANSFERVIRTUAL *t;
	struct va_world v;
	DXGK_PTE entry;

	va_begin(&v, state, names_tables);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	uint64_t at = va_map(&v, a, 64 * KIB);
	va_make(&v, a);
	evict_written(&v, a, at, 1);
	t = &nth(&v, DXGK_OPERATION_VIRTUAL_TRANSFER, 0)->TransferVirtual;
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t page = i ? t->DestinationVirtualAddress : t->SourceVirtualAddress;
		uint64_t table = i ? t->DestinationPageTable : t->SourcePageTable;
		DXGK_PTE found;

		/* the table has the entry of the page */
		table += (page >> 12 & 255) * sizeof(entry);
		assert_true(scripted_walk(&v.w.m->paging_process, page, &entry));
		assert_true(scripted_virtual_access(&v.w.m->paging_process, table, &found,
						    sizeof(found), false));
		assert_memory_equal(&found, &entry, sizeof(entry));
	}
	va_finish(&v);
}

/* ---- failures, reset, power ---- */

static void does_not_know(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	const DXGK_BUILDPAGINGBUFFER_OPERATION *operation = context;

	(void)m;
	if (call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER && call->in.paging.Operation == *operation)
		call->status = STATUS_NOT_SUPPORTED;
}

static void without(void **state, DXGK_BUILDPAGINGBUFFER_OPERATION operation)
{
	D3DDDI_MAKERESIDENT args;
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	v.w.m->hook = does_not_know;
	v.w.m->hook_context = &operation;
	v.w.expected_fatals = 1;
	(void)wddm2_try_make_one(&v.w.device, &v.queue, a, &args);
	wddm2_run(&v.w);
	if (operation == DXGK_OPERATION_VIRTUAL_TRANSFER) {
		(void)wddm2_evict(&v.w.device, a, 0);
		wddm2_run(&v.w);
	}
	world_expect_finding(&v.w, "PAG-26");
	assert_int_equal(v.w.fatals, 1);
	assert_int_equal(v.w.fatal[2], operation);
	world_stop(&v.w);
}

static void pag_26_a_miniport_without_the_virtual_operations_stops_the_adapter(void **state)
{
	without(state, DXGK_OPERATION_VIRTUAL_FILL);
	without(state, DXGK_OPERATION_VIRTUAL_TRANSFER);
}

static void set_power(struct va_world *v, uint32_t power)
{
	assert_int_equal(vidmm_adapter_set_power(v->w.client.adapter, power, VIDMM_SLEEP_STANDBY),
			 0);
}

/* The tables of the paging process are written again before anything uses them. */
static void lose_power(void **state, world_setup *setup)
{
	struct va_world v;

	va_begin(&v, state, setup);
	D3DKMT_HANDLE a = va_allocate(&v, 3 * MIB, WORLD_MEMORY);
	va_map(&v, a, 3 * MIB);
	va_make(&v, a);
	draw(&v, a, 3 * MIB, 11);
	for (uint32_t i = 0; i < 2; i++) {
		set_power(&v, VIDMM_POWER_D3);
		memset(v.w.m->bar, 0xEE, SCRIPTED_BAR_BYTES);
		scripted_forget(v.w.m);
		set_power(&v, VIDMM_POWER_D0);
		wddm2_run(&v.w);
		const DXGKARG_BUILDPAGINGBUFFER *op =
			&scripted_nth(v.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, 0)->in.paging;
		assert_null(op->pDmaBuffer);
		assert_int_equal(op->Operation, DXGK_OPERATION_UPDATE_PAGE_TABLE);
		va_make(&v, a);
		expect(&v, a, 3 * MIB, 11);
	}
	va_finish(&v);
}

static void pag_26_paging_works_after_a_loss_of_power(void **state)
{
	lose_power(state, tables_in_memory);
	lose_power(state, virtual_in_memory);
	lose_power(state, va_system);
}

/* After a reset no Transfer of size 0 reports lost content (TDR-05). Paging works as before. */
static void reset(void **state, world_setup *setup)
{
	static const struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};
	struct va_world v = {0};

	world_start_with(&v.w, state, setup, &options);
	world_open(&v.w);
	v.queue = wddm2_queue(&v.w.device);
	D3DKMT_HANDLE a = va_allocate(&v, 3 * MIB, WORLD_MEMORY);
	wddm2_make(&v.w, &v.w.device, &v.queue, &a, 1);
	/* The page-in of another allocation never ends. */
	D3DKMT_HANDLE b = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	D3DDDI_MAKERESIDENT args;
	v.w.m->settings.complete_at_once = false;
	(void)wddm2_try_make_one(&v.w.device, &v.queue, b, &args);
	scripted_forget(v.w.m);
	vidmm_sleep_until_ns(v.w.client.host, vidmm_now_ns(v.w.client.host) + 3000000000);
	vidmm_settle(v.w.client.host);
	assert_int_equal(scripted_count(v.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 1);
	v.w.m->settings.complete_at_once = true;
	wddm2_run(&v.w);
	assert_null(nth(&v, DXGK_OPERATION_TRANSFER, 0));
	assert_int_equal(count(&v, DXGK_OPERATION_VIRTUAL_TRANSFER), 0);

	struct va_world after = {.w = v.w};
	client_open(&v.w.client, &after.w.device);
	after.queue = wddm2_queue(&after.w.device);
	D3DKMT_HANDLE c = va_allocate(&after, 3 * MIB, WORLD_MEMORY);
	va_make(&after, c);
	draw(&after, c, 3 * MIB, 21);
	set_power(&after, VIDMM_POWER_D3);
	set_power(&after, VIDMM_POWER_D0);
	expect(&after, c, 3 * MIB, 21);
	client_close(&after.w.device);
	va_finish(&v);
}

static void pag_26_tdr_05_a_reset_reports_nothing_and_paging_works_after_it(void **state)
{
	reset(state, tables_in_memory);
	reset(state, virtual_in_memory);
	reset(state, va_system);
}

/* ---- translations ---- */

/*
 * Entries that were invalid need no flush with InvalidTlbEntriesNotCached. Those of an older chunk
 * do: `stale` counts translations that were not flushed.
 */
static void va_13_the_window_is_flushed_when_it_is_used_again(void **state)
{
	struct va_world v;

	va_begin(&v, state, not_cached);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY),
		      b = va_allocate(&v, 64 * KIB, WORLD_MEMORY),
		      c = va_allocate(&v, MIB, WORLD_MEMORY);
	va_make(&v, a);
	assert_int_equal(count(&v, DXGK_OPERATION_FLUSH_TLB), 0);
	va_make(&v, b);
	assert_int_equal(count(&v, DXGK_OPERATION_FLUSH_TLB), 1);
	va_make(&v, c);
	assert_int_equal(count(&v, DXGK_OPERATION_FLUSH_TLB), 2);
	va_finish(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(va_11_va_12_the_paging_process_is_set_up_before_its_first_packet),
		ON_SIM(va_11_tables_of_the_paging_process_need_no_paging_buffer),
		ON_BOTH(pag_26_content_survives_eviction_and_return),
		ON_SIM(pag_26_content_larger_than_the_window_moves_in_chunks),
		ON_SIM(pag_26_entries_of_waiting_chunks_are_kept),
		ON_BOTH(pag_26_pag_07_one_operation_may_take_several_calls_and_buffers),
		ON_SIM(pag_26_each_chunk_follows_its_mapping_and_a_flush),
		ON_SIM(pag_26_transfers_name_their_direction_and_offset),
		ON_SIM(pag_26_content_is_dropped_silently),
		ON_SIM(pag_26_eviction_maps_no_aperture),
		ON_BOTH(q_166_page_tables_are_updated_at_gpu_virtual_addresses),
		ON_SIM(q_166_a_table_is_mapped_before_its_entries_are_written),
		ON_SIM(pag_26_sourcepagetablevaintransfer_gives_addresses_of_tables),
		ON_SIM(pag_26_a_miniport_without_the_virtual_operations_stops_the_adapter),
		ON_SIM(pag_26_paging_works_after_a_loss_of_power),
		ON_SIM(pag_26_tdr_05_a_reset_reports_nothing_and_paging_works_after_it),
		ON_SIM(va_13_the_window_is_flushed_when_it_is_used_again),
	};

	return cmocka_run_group_tests_name("wddm2_virtual", tests, NULL, NULL);
}
