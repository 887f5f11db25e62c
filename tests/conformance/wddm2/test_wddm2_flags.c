/* SPDX-License-Identifier: MIT */
/* Allocation flags in WDDM 2.x: the bits, their combinations, and the versions that have them. */
#include "wddm2_world.h"

#include <string.h>

static void wddm2_9(struct scripted_miniport *m)
{
	wddm2_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_9);
}

static void wddm2_9_with_map_aperture2(struct scripted_miniport *m)
{
	wddm2_9(m);
	m->settings.caps.MemoryManagementCaps.MapAperture2Supported = 1;
}

static void wddm3_0(struct scripted_miniport *m)
{
	wddm2_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
}

static void hidden_memory(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.segment[0].flags = 0;
}

static void accept(struct world *w, uint32_t flags)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = flags};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(&w->device, &spec, &handle), S_OK);
	assert_int_not_equal(handle, 0);
}

static void refuse(struct world *w, uint32_t flags, const char *rule)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = flags};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(&w->device, &spec, &handle), E_INVALIDARG);
	world_expect_finding(w, rule);
	assert_int_equal(w->m->live_allocations, 0); /* the miniport's part was undone */
}

/*
 * The same bit: bit 7 is Swizzled, and permits AcquireAperture; from 2.1 on it concerns page
 * tables.
 */
static void alf_01_flag_bits_are_interpreted_by_interface_version(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE | 0x80};
	D3DKMT_HANDLE a;
	void *data;

	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	assert_int_equal(client_try_lock(&w.device, &a, 0x8 | 0x4, &data), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-13"); /* no unsynchronized lock of a swizzled allocation */
	world_stop(&w);
	world_start(&w, state, wddm2_1);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	assert_int_equal(client_try_lock(&w.device, &a, 0x8 | 0x4, &data), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void alf_02_reserved_bits_of_the_version_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	for (uint32_t bit = 0; bit < 32; bit++)
		if ((0xFFF83C80u & 1u << bit))
			refuse(&w, WORLD_CPU_VISIBLE | 1u << bit, "ALF-02");
	world_stop(&w);
	world_start(&w, state, wddm2_1);
	for (uint32_t bit = 0; bit < 32; bit++)
		if ((0xFFF83800u & 1u << bit))
			refuse(&w, WORLD_CPU_VISIBLE | 1u << bit, "ALF-02");
	accept(&w, WORLD_CPU_VISIBLE | 0x80);
	world_stop(&w);
}

/* Flags2 came with 3.0: one bit then, six with 3.2. Before, its place has no meaning. */
static void alf_02_flags2_bits_beyond_the_version_are_refused(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = PHYSICAL};
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, wddm3_0);
	for (uint32_t bit = 1; bit < 32; bit++) {
		spec.flags2 = 1u << bit;
		assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), E_INVALIDARG);
		assert_int_equal(strstr(w.client.finding[0], "3.2") != NULL, bit < 6);
		world_expect_finding(&w, "ALF-02");
	}
	spec.flags2 = 0;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	world_stop(&w);
	world_start(&w, state, wddm2_9);
	spec.flags2 = UINT32_MAX;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	world_stop(&w);
}

/* One allocation for a resource that is shared or not. */
static HRESULT allocate_shared(struct world *w, const struct scripted_allocation *spec, bool shared,
			       const void *memory)
{
	static char resource;
	struct scripted_allocation private_data = *spec;
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = memory,
				      .pPrivateDriverData = &private_data,
				      .PrivateDriverDataSize = sizeof(private_data)};
	D3DDDICB_ALLOCATE args = {
		.hResource = &resource, .NumAllocations = 1, .pAllocationInfo = &info};

	if (shared)
		assert_int_equal(vidmm_resource_set_shared(w->device.device, &resource), 0);
	HRESULT result = w->device.cb->pfnAllocateCb(w->device.handle, &args);

	assert_int_equal(info.hAllocation, 0);
	assert_int_equal(w->m->live_allocations, 0);
	return result;
}

/*
 * The conditions are reported one after the other. With all of them met, the feature is still
 * disabled.
 */
static void alf_30_each_missing_condition_of_sharing_is_refused(void **state)
{
	static _Alignas(4096) char memory[64 * KIB];
	static const struct {
		bool shared;
		uint32_t flags, set;
		const char *said;
	} cases[] = {
		{false, PHYSICAL, WORLD_APERTURE, "not shared"},
		{true, PHYSICAL | 0x10, WORLD_APERTURE, "existing memory"},
		{true, PHYSICAL, WORLD_APERTURE | WORLD_MEMORY, "sets contain a memory segment"},
		{true, PHYSICAL, WORLD_MEMORY, "sets contain a memory segment"},
		{true, PHYSICAL, WORLD_APERTURE, "not enabled"},
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
							 .flags = cases[i].flags,
							 .read_set = cases[i].set,
							 .write_set = cases[i].set,
							 .flags2 = 0x1};
		struct world w;

		world_start(&w, state, wddm3_0);
		assert_int_equal(allocate_shared(&w, &spec, cases[i].shared,
						 cases[i].flags & 0x10 ? memory : NULL),
				 E_INVALIDARG);
		assert_non_null(strstr(w.client.finding[0], cases[i].said));
		world_expect_finding(&w, "ALF-30");
		world_stop(&w);
	}
}

static void alf_25_explicitresidencynotification_needs_accessedphysically(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	refuse(&w, NOTIFY_RESIDENCY, "ALF-25");
	accept(&w, NOTIFY_RESIDENCY | ACCESSED_PHYSICALLY);
	accept(&w, ACCESSED_PHYSICALLY);
	world_stop(&w);
}

/*
 * Without GPU virtual addresses there are no page tables: the flag is accepted and has no effect.
 */
static void alf_28_without_page_tables_disablelargepagemapping_has_no_effect(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_1);
	accept(&w, PHYSICAL | 0x80);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), 0);
	world_stop(&w);
}

static void alf_29_mapaperturecpuvisible_needs_the_capability(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_9);
	refuse(&w, PHYSICAL | 0x2000, "ALF-29");
	accept(&w, PHYSICAL);
	world_stop(&w);
	world_start(&w, state, wddm2_9_with_map_aperture2);
	accept(&w, PHYSICAL | 0x2000);
	world_stop(&w);
}

/* The GPU finds the CPU's content behind the pages of the list; MDLs are not mapped any more. */
static void map_and_look(struct world *w, uint32_t flags, uint32_t pattern)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = PHYSICAL | WORLD_CPU_VISIBLE | flags,
					   .read_set = WORLD_APERTURE,
					   .write_set = WORLD_APERTURE};
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w->device);
	uint32_t before = wddm2_operations(w, DXGK_OPERATION_MAP_APERTURE_SEGMENT2), word;
	D3DKMT_HANDLE a;

	assert_int_equal(wddm2_try_allocate(&w->device, &spec, &a), S_OK);
	D3DDDICB_LOCK2 lock = {.hAllocation = a};
	assert_int_equal(w->device.cb->pfnLock2Cb(w->device.handle, &lock), S_OK);
	((uint32_t *)lock.pData)[16 * 1024 - 1] = pattern;
	wddm2_make(w, &w->device, &queue, &a, 1);
	assert_int_equal(wddm2_operations(w, DXGK_OPERATION_MAP_APERTURE_SEGMENT2), before + 1);
	assert_int_equal(wddm2_operations(w, DXGK_OPERATION_MAP_APERTURE_SEGMENT), 0);
	const struct scripted_call *call =
		scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER,
			     scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER) - 1);
	const DXGKARG_BUILDPAGINGBUFFER *map = &call->in.paging;
	assert_int_equal(map->Operation, DXGK_OPERATION_MAP_APERTURE_SEGMENT2);
	assert_int_equal(map->MapApertureSegment2.NumberOfPages, 16);
	assert_true(map->MapApertureSegment2.Adl.PageCount >= 16);
	assert_int_equal(map->MapApertureSegment2.CpuVisibleAddress != NULL, flags != 0);
	if (flags) /* the same bytes */
		assert_int_equal(
			((uint32_t *)map->MapApertureSegment2.CpuVisibleAddress)[16 * 1024 - 1],
			pattern);
	assert_true(scripted_gpu_access(
		w->m, 2,
		SCRIPTED_APERTURE_BASE + (map->MapApertureSegment2.OffsetInPages + 16) * 4096 - 4,
		&word, sizeof(word), false));
	assert_int_equal(word, pattern);
	D3DDDICB_UNLOCK2 unlock = {.hAllocation = a};
	assert_int_equal(w->device.cb->pfnUnlock2Cb(w->device.handle, &unlock), S_OK);
}

static void alf_29_pag_06_mapaperture2_maps_by_lists_of_pages(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_9_with_map_aperture2);
	map_and_look(&w, 0x2000, 0x29000000);
	map_and_look(&w, 0, 0x29000001);
	world_stop(&w);
}

/* Context capabilities that are not built are refused, and the context is destroyed again. */
static void unsupported_context_capabilities_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	uint32_t live = w.m->live_contexts;
	for (uint32_t caps = 0x2; caps <= 0x6; caps++) {
		D3DDDICB_CREATECONTEXT args = {0};

		w.m->settings.context.Caps.Value = caps;
		assert_int_equal(w.device.cb->pfnCreateContextCb(w.device.handle, &args),
				 E_NOTIMPL);
		assert_null(args.hContext);
		assert_int_equal(w.m->live_contexts, live);
	}
	w.m->settings.context.Caps.Value = 0;
	D3DDDICB_CREATECONTEXT args = {0};
	assert_int_equal(w.device.cb->pfnCreateContextCb(w.device.handle, &args), S_OK);
	const D3DDDICB_DESTROYCONTEXT end = {.hContext = args.hContext};
	assert_int_equal(w.device.cb->pfnDestroyContextCb(w.device.handle, &end), S_OK);
	world_stop(&w);
}

static void expect_lists(const struct client_context *context)
{
	assert_int_equal(context->c.AllocationListSize, 16);
	assert_null(context->c.pPatchLocationList);
	assert_int_equal(context->c.PatchLocationListSize, 0);
}

static HRESULT render_lists(struct client_context *context, uint32_t allocations, uint32_t patches)
{
	D3DDDICB_RENDER args = {
		.CommandLength = sizeof(struct scripted_command),
		.NumAllocations = allocations,
		.NumPatchLocations = patches,
		.hContext = context->c.hContext,
	};

	return context->device->cb->pfnRenderCb(context->device->handle, &args);
}

/*
 * Whatever the miniport reports: the allocation list has 16 entries, there is no patch list, and
 * nothing is patched.
 */
static void dma_25_with_nopatchingrequired_16_list_entries_and_no_patch_list(void **state)
{
	struct world w;
	struct client_context context;
	void *data;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	w.m->settings.context.Caps.Value = 0x1;
	client_context(&w.device, 0, &context);
	expect_lists(&context);
	uint32_t patched = scripted_count(w.m, VIDMM_DDI_PATCH),
		 submitted = scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND);
	world_submit_write(&context, a, 64, 0x25252525);
	expect_lists(&context);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND), submitted + 1);
	wddm2_run(&w);
	assert_int_equal(client_try_lock(&w.device, &a, 0, &data), S_OK);
	assert_int_equal(((uint32_t *)data)[16], 0x25252525);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_PATCH), patched);
	/* Longer lists are refused. */
	assert_int_equal(render_lists(&context, 17, 0), E_INVALIDARG);
	assert_int_equal(render_lists(&context, 1, 1), E_INVALIDARG);
	client_forget(&w.client);
	client_context_end(&context);
	wddm2_stop(&w);
}

/* Before 2.0 the member does not exist: its place has no meaning. */
static void dma_25_before_wddm_2_0_contexts_have_patch_lists(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	w.m->settings.context.Caps.Value = 0x1;
	D3DDDICB_CREATECONTEXT c = {0};
	assert_int_equal(w.device.cb->pfnCreateContextCb(w.device.handle, &c), S_OK);
	assert_non_null(c.pPatchLocationList);
	assert_int_not_equal(c.PatchLocationListSize, 0);
	const D3DDDICB_DESTROYCONTEXT end = {.hContext = c.hContext};
	assert_int_equal(w.device.cb->pfnDestroyContextCb(w.device.handle, &end), S_OK);
	world_stop(&w);
}

static void seg_25_cpu_visible_in_a_hidden_segment_must_support_the_aperture(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	struct world w;
	D3DKMT_HANDLE handle;

	world_start(&w, state, hidden_memory);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &handle), E_INVALIDARG);
	world_expect_finding(&w, "SEG-25");
	spec.flags = ACCESSED_PHYSICALLY | ON_DEMAND;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &handle), E_INVALIDARG);
	world_expect_finding(&w, "SEG-25");
	spec.flags = ACCESSED_PHYSICALLY; /* without CPU access it is permitted */
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &handle), S_OK);
	/* The aperture in the read set is not enough: written, the allocation is in memory. */
	spec.flags = PHYSICAL;
	spec.read_set = WORLD_MEMORY | WORLD_APERTURE;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &handle), E_INVALIDARG);
	world_expect_finding(&w, "SEG-25");
	spec.write_set = spec.read_set;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &handle), S_OK);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(alf_01_flag_bits_are_interpreted_by_interface_version),
		ON_BOTH(alf_02_reserved_bits_of_the_version_are_refused),
		ON_BOTH(alf_02_flags2_bits_beyond_the_version_are_refused),
		ON_BOTH(alf_30_each_missing_condition_of_sharing_is_refused),
		ON_BOTH(alf_25_explicitresidencynotification_needs_accessedphysically),
		ON_BOTH(alf_28_without_page_tables_disablelargepagemapping_has_no_effect),
		ON_BOTH(alf_29_mapaperturecpuvisible_needs_the_capability),
		ON_BOTH(alf_29_pag_06_mapaperture2_maps_by_lists_of_pages),
		ON_BOTH(unsupported_context_capabilities_are_refused),
		ON_BOTH(dma_25_with_nopatchingrequired_16_list_entries_and_no_patch_list),
		ON_BOTH(dma_25_before_wddm_2_0_contexts_have_patch_lists),
		ON_BOTH(seg_25_cpu_visible_in_a_hidden_segment_must_support_the_aperture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
