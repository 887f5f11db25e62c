/* SPDX-License-Identifier: MIT */
/* Allocation properties as WDDM 2.x reads them: which bits there are, which combinations, for which version. */
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

/* The same word: bit 7 is Swizzled, and there is an aperture lock for it; from 2.1 on it is about page tables. */
static void alf_01_the_same_bits_are_read_by_version(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE | 0x80};
	D3DKMT_HANDLE a;
	void *data;

	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	assert_int_equal(client_try_lock(&w.device, &a, 0x8 | 0x4, &data), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-13"); /* no unsynchronized lock of what is swizzled */
	world_stop(&w);
	world_start(&w, state, wddm2_1);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	assert_int_equal(client_try_lock(&w.device, &a, 0x8 | 0x4, &data), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void alf_02_reserved_bits_are_those_of_the_version(void **state)
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

/* The word that came with 3.0: of one bit then, of six with 3.2. Before, what stands there is nobody's. */
static void alf_02_flags2_has_the_bits_of_the_version(void **state)
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

/* One for a resource that is shared, or is not. */
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

/* What is wrong with it is said one after the other; when nothing is, the feature is still off. */
static void alf_30_sharing_with_the_miniport_has_its_conditions(void **state)
{
	static _Alignas(4096) char memory[64 * KIB];
	static const struct {
		bool shared;
		uint32_t flags, set;
		const char *said;
	} cases[] = {
		{false, PHYSICAL, WORLD_APERTURE, "not shared"},
		{true, PHYSICAL | 0x10, WORLD_APERTURE, "existing memory"},
		{true, PHYSICAL, WORLD_APERTURE | WORLD_MEMORY, "more than the aperture"},
		{true, PHYSICAL, WORLD_MEMORY, "more than the aperture"},
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

static void alf_25_explicit_notification_needs_physical_access(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_0);
	refuse(&w, NOTIFY_RESIDENCY, "ALF-25");
	accept(&w, NOTIFY_RESIDENCY | ACCESSED_PHYSICALLY);
	accept(&w, ACCESSED_PHYSICALLY);
	world_stop(&w);
}

/* Without GPU virtual addresses there are no page tables that it could concern: it is accepted and changes nothing. */
static void alf_28_large_pages_do_not_matter_without_page_tables(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_1);
	accept(&w, PHYSICAL | 0x80);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), 0);
	world_stop(&w);
}

static void alf_29_cpu_visible_maps_need_the_capability(void **state)
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

/* What the CPU wrote is what the GPU finds behind the pages of the list; nobody is asked to map an MDL any more. */
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

static void alf_29_pag_06_apertures_are_mapped_by_lists_of_pages(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_9_with_map_aperture2);
	map_and_look(&w, 0x2000, 0x29000000);
	map_and_look(&w, 0, 0x29000001);
	world_stop(&w);
}

/* What a miniport says of a context and is not built is refused, and the context ended again. */
static void capabilities_of_contexts_are_not_built(void **state)
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

/* Whatever the miniport says of lists: one has 16 entries, the other is not there, and nobody patches. */
static void dma_25_a_context_that_needs_no_patching(void **state)
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
	/* Longer lists are none. */
	assert_int_equal(render_lists(&context, 17, 0), E_INVALIDARG);
	assert_int_equal(render_lists(&context, 1, 1), E_INVALIDARG);
	client_forget(&w.client);
	client_context_end(&context);
	wddm2_stop(&w);
}

/* Before 2.0 the member is not there: what lies in its place means nothing. */
static void dma_25_contexts_of_1_x_have_patch_lists(void **state)
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

static void seg_25_hidden_memory_needs_the_aperture_for_the_cpu(void **state)
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
	spec.flags = ACCESSED_PHYSICALLY; /* not for the CPU: it may */
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &handle), S_OK);
	/* To be read in the aperture is not enough: written, it is in the memory. */
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
		ON_BOTH(alf_01_the_same_bits_are_read_by_version),
		ON_BOTH(alf_02_reserved_bits_are_those_of_the_version),
		ON_BOTH(alf_02_flags2_has_the_bits_of_the_version),
		ON_BOTH(alf_30_sharing_with_the_miniport_has_its_conditions),
		ON_BOTH(alf_25_explicit_notification_needs_physical_access),
		ON_BOTH(alf_28_large_pages_do_not_matter_without_page_tables),
		ON_BOTH(alf_29_cpu_visible_maps_need_the_capability),
		ON_BOTH(alf_29_pag_06_apertures_are_mapped_by_lists_of_pages),
		ON_BOTH(capabilities_of_contexts_are_not_built),
		ON_BOTH(dma_25_a_context_that_needs_no_patching),
		ON_BOTH(dma_25_contexts_of_1_x_have_patch_lists),
		ON_BOTH(seg_25_hidden_memory_needs_the_aperture_for_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
