/* SPDX-License-Identifier: MIT */
/* Presents on contexts with GPU virtual addresses (PRS-09, Q-191). */
#include "command_world.h"

/* A source and a destination of blits on the residency list, and two primaries of source 0. */
struct show {
	struct stage s;
	D3DKMT_HANDLE from, to, primary[2];
	uint64_t to_at; /* a mapping by the client */
};

static void by_mmio(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.source_count = m->settings.child_count = 1;
	m->settings.caps.FlipCaps.FlipOnVSyncMmIo = 1;
	m->settings.caps.FlipCaps.FlipImmediateMmIo = 1;
}

static void by_dma(struct scripted_miniport *m)
{
	by_mmio(m);
	m->settings.caps.FlipCaps.Value = 0;
}

static D3DKMT_HANDLE primary(struct show *b, uint32_t flags)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = flags,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec),
				      .Flags.Primary = 1};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(b->s.v.w.device.cb->pfnAllocateCb(b->s.v.w.device.handle, &args), S_OK);
	va_make(&b->s.v, info.hAllocation);
	return info.hAllocation;
}

static void begin(struct show *b, void **state, world_setup *setup)
{
	stage_begin(&b->s, state, setup);
	b->from = va_allocate(&b->s.v, 64 * KIB, WORLD_MEMORY);
	b->to = va_allocate(&b->s.v, 64 * KIB, WORLD_MEMORY);
	b->to_at = va_map(&b->s.v, b->to, 64 * KIB);
	va_make(&b->s.v, b->from);
	va_make(&b->s.v, b->to);
}

static HRESULT present(struct show *b, D3DKMT_HANDLE from, D3DKMT_HANDLE to)
{
	D3DDDICB_PRESENT args = {
		.hSrcAllocation = from, .hDstAllocation = to, .hContext = b->s.context};

	return b->s.v.w.device.cb->pfnPresentCb(b->s.v.w.device.handle, &args);
}

static const struct scripted_call *last(const struct show *b, enum vidmm_ddi ddi)
{
	return scripted_last(b->s.v.w.m, ddi);
}

static void prs_09_a_blt_names_source_and_destination_by_virtual_address(void **state)
{
	struct show b;

	begin(&b, state, va_memory);
	va_store(&b.s.v, b.to_at, 0xAA);
	assert_int_equal(present(&b, b.from, b.to), S_OK);
	wddm2_run(&b.s.v.w);
	const struct scripted_call *call = last(&b, VIDMM_DDI_PRESENT);
	const DXGKARG_PRESENT *got = &call->in.present;
	assert_non_null(got->pDmaBuffer);
	assert_int_not_equal(got->DmaBufferGpuVirtualAddress, 0);
	assert_int_equal(got->DmaSize, b.s.v.w.m->settings.context.DmaBufferSize);
	assert_int_equal(got->PatchLocationListOutSize, 0);
	assert_int_equal(got->DmaBufferSegmentId, 0);
	assert_int_equal(got->NumSrcAllocations, 1);
	assert_int_equal(got->NumDstAllocations, 1);
	assert_null(call->allocations[0].hDeviceSpecificAllocation);
	for (uint32_t i = 1; i < 3; i++) {
		assert_int_equal(call->allocations[i].SegmentId, 0);
		assert_true(va_is_there(&b.s.v, call->allocations[i].VirtualAddress));
		assert_int_equal(call->allocations[i].WriteOperation, i == 2);
	}
	/* The GPU wrote the destination, which the client sees at the address of its mapping. */
	assert_int_not_equal(va_word(&b.s.v, b.to_at), 0xAA);
	const DXGKARG_SUBMITCOMMANDVIRTUAL *submit =
		&last(&b, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL)->in.submit_virtual;
	assert_int_equal(submit->DmaBufferVirtualAddress, got->DmaBufferGpuVirtualAddress);
	assert_int_equal(submit->DmaBufferSize, 2 * sizeof(struct scripted_command));
	assert_int_equal(submit->Flags.Present, 1);
	assert_int_equal(submit->Flags.Flip, 0);
	assert_int_equal(submit->DmaBufferUmdPrivateDataSize, 0);
	stage_finish(&b.s);
}

/* The client frees its mapping; the next present finds the mapping of the first one. */
static void prs_09_a_client_cannot_unmap_what_is_presented(void **state)
{
	struct show b;

	begin(&b, state, va_memory);
	assert_int_equal(present(&b, b.from, b.to), S_OK);
	uint64_t at = last(&b, VIDMM_DDI_PRESENT)->allocations[2].VirtualAddress;
	assert_int_not_equal(at, b.to_at);
	assert_int_equal(va_free(&b.s.v, at, 64 * KIB), E_INVALIDARG);
	world_expect_finding(&b.s.v.w, "VA-09");
	D3DDDI_MAPGPUVIRTUALADDRESS over = va_mapping(&b.s.v, b.from, 16);
	over.BaseAddress = at;
	assert_int_equal(va_try_map(&b.s.v, &over), E_INVALIDARG);
	world_expect_finding(&b.s.v.w, "VA-03");
	assert_int_equal(va_free(&b.s.v, b.to_at, 64 * KIB), S_OK);
	assert_int_equal(present(&b, b.from, b.to), S_OK);
	wddm2_run(&b.s.v.w);
	assert_int_equal(last(&b, VIDMM_DDI_PRESENT)->allocations[2].VirtualAddress, at);
	/* It ends with the handle. */
	const D3DDDICB_DEALLOCATE end = {.NumAllocations = 1, .HandleList = &b.to};
	assert_int_equal(b.s.v.w.device.cb->pfnDeallocateCb(b.s.v.w.device.handle, &end), S_OK);
	wddm2_run(&b.s.v.w);
	assert_false(va_is_there(&b.s.v, at));
	D3DDDI_MAPGPUVIRTUALADDRESS again = va_mapping(&b.s.v, b.from, 16);
	again.BaseAddress = at;
	va_must_map(&b.s.v, &again);
	stage_finish(&b.s);
}

/* DMA-29: each pass has another DMA buffer at another address; they run in order. */
static void prs_09_each_pass_of_a_present_has_a_buffer_with_an_address(void **state)
{
	struct show b;

	begin(&b, state, va_memory);
	b.s.v.w.m->settings.present_passes = 12;
	assert_int_equal(present(&b, b.from, b.to), S_OK);
	wddm2_run(&b.s.v.w);
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_PRESENT), 12);
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL), 12);
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(scripted_nth(b.s.v.w.m, VIDMM_DDI_PRESENT, i)
					 ->in.present.DmaBufferGpuVirtualAddress,
				 scripted_nth(b.s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL, i)
					 ->in.submit_virtual.DmaBufferVirtualAddress);
	/* Commands of the client are submitted as before. */
	D3DDDICB_SUBMITCOMMAND args = stage_command(&b.s);
	assert_int_equal(stage_submit(&b.s, &args), S_OK);
	wddm2_run(&b.s.v.w);
	assert_int_equal(va_word(&b.s.v, b.s.target_at + 64), 0x600D);
	stage_finish(&b.s);
}

static void prs_09_source_and_destination_are_on_the_residency_list(void **state)
{
	struct show b;

	begin(&b, state, va_memory);
	D3DKMT_HANDLE absent = va_allocate(&b.s.v, 64 * KIB, WORLD_MEMORY);
	assert_true(present(&b, absent, b.to) != S_OK);
	world_expect_finding(&b.s.v.w, "DMA-26");
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_PRESENT), 0);
	assert_true(present(&b, b.from, b.to) != S_OK); /* the device is in error */
	stage_finish(&b.s);
}

static void prs_09_without_a_dma_buffer_size_presents_are_refused(void **state)
{
	struct show b;
	struct world *w = &b.s.v.w;

	world_start_adapter(w, state, va_memory);
	world_open(w);
	w->m->settings.context.DmaBufferSize = 0;
	b.s.v.queue = wddm2_queue(&w->device);
	assert_int_equal(stage_try_context(&b.s, &b.s.context), S_OK);
	b.from = va_allocate(&b.s.v, 64 * KIB, WORLD_MEMORY);
	b.to = va_allocate(&b.s.v, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(present(&b, b.from, b.to), E_INVALIDARG);
	world_expect_finding(w, "PRS-09");
	stage_destroy_context(&b.s, b.s.context);
	wddm2_stop(w);
}

/* An allocation moves: its page table entries follow, its address stays. */
static void prs_09_va_01_the_address_stays_when_memory_moves(void **state)
{
	struct show b;

	begin(&b, state, va_memory);
	assert_int_equal(present(&b, b.from, b.to), S_OK);
	wddm2_run(&b.s.v.w);
	uint64_t at = last(&b, VIDMM_DDI_PRESENT)->allocations[2].VirtualAddress;
	va_store(&b.s.v, b.to_at + 4096, 0x77);
	assert_int_equal(wddm2_evict(&b.s.v.w.device, b.to, 0), S_OK);
	wddm2_run(&b.s.v.w);
	va_make(&b.s.v, b.to);
	assert_int_equal(va_word(&b.s.v, at + 4096), 0x77);
	assert_int_equal(present(&b, b.from, b.to), S_OK);
	wddm2_run(&b.s.v.w);
	assert_int_equal(last(&b, VIDMM_DDI_PRESENT)->allocations[2].VirtualAddress, at);
	stage_finish(&b.s);
}

static void prs_09_a_flip_by_mmio_needs_no_dma_buffer(void **state)
{
	struct show b;

	begin(&b, state, by_mmio);
	b.primary[0] = primary(&b, WORLD_CPU_VISIBLE);
	assert_int_equal(present(&b, b.primary[0], 0), S_OK);
	wddm2_run(&b.s.v.w);
	const struct scripted_call *call = last(&b, VIDMM_DDI_PRESENT);
	assert_null(call->in.present.pDmaBuffer);
	assert_int_equal(call->in.present.Flags.Flip, 1);
	assert_int_equal(call->allocations[1].SegmentId, 0);
	assert_int_not_equal(call->allocations[1].VirtualAddress, 0);
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL), 0);
	vidmm_settle(b.s.v.w.client.host);
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS), 1);
	stage_finish(&b.s);
}

static void prs_09_a_flip_by_dma_is_submitted_with_its_source(void **state)
{
	struct show b;

	begin(&b, state, by_dma);
	b.primary[0] = primary(&b, WORLD_CPU_VISIBLE);
	assert_int_equal(present(&b, b.primary[0], 0), S_OK);
	wddm2_run(&b.s.v.w);
	const DXGKARG_SUBMITCOMMANDVIRTUAL *submit =
		&last(&b, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL)->in.submit_virtual;
	assert_int_equal(submit->Flags.Present, 1);
	assert_int_equal(submit->Flags.Flip, 1);
	assert_int_equal(submit->VidPnSourceId, 0);
	assert_int_equal(submit->FlipInterval, D3DDDI_FLIPINTERVAL_ONE);
	stage_finish(&b.s);
}

static void without_patching(struct scripted_miniport *m)
{
	by_mmio(m);
	m->settings.context.Caps.NoPatchingRequired = 1;
}

/* A context that uses physical addresses, and whose miniport needs no patching. */
static void dma_25_dma_32_a_flip_by_mmio_needs_no_patch_list(void **state)
{
	struct show b;

	begin(&b, state, without_patching);
	b.primary[0] = primary(&b, PHYSICAL);
	D3DDDICB_PRESENT args = {.hSrcAllocation = b.primary[0],
				 .hContext = b.s.v.w.context.c.hContext};
	const D3DDDI_DEVICECALLBACKS *cb = b.s.v.w.device.cb;
	assert_int_equal(cb->pfnPresentCb(b.s.v.w.device.handle, &args), S_OK);
	wddm2_run(&b.s.v.w);
	vidmm_settle(b.s.v.w.client.host);
	assert_int_equal(last(&b, VIDMM_DDI_PRESENT)->allocations[1].SegmentId, 1);
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS), 1);
	stage_finish(&b.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(prs_09_a_blt_names_source_and_destination_by_virtual_address),
		ON_BOTH(prs_09_a_client_cannot_unmap_what_is_presented),
		ON_BOTH(prs_09_each_pass_of_a_present_has_a_buffer_with_an_address),
		ON_SIM(prs_09_source_and_destination_are_on_the_residency_list),
		ON_SIM(prs_09_without_a_dma_buffer_size_presents_are_refused),
		ON_BOTH(prs_09_va_01_the_address_stays_when_memory_moves),
		ON_BOTH(prs_09_a_flip_by_mmio_needs_no_dma_buffer),
		ON_SIM(prs_09_a_flip_by_dma_is_submitted_with_its_source),
		ON_SIM(dma_25_dma_32_a_flip_by_mmio_needs_no_patch_list),
	};

	return cmocka_run_group_tests_name("wddm2_present", tests, NULL, NULL);
}
