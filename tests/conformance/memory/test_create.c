/* SPDX-License-Identifier: MIT */
/*
 * Answers of a miniport in DxgkDdiCreateAllocation. Each wrong answer fails the call with a
 * finding of its rule, is undone in the miniport, and leaves the caller's structures unchanged
 * (ALF, SEG, PRI-02).
 */
#include "world.h"

enum {
	CPU_VISIBLE = 0x1,
	PERMANENT = 0x2,
	CACHED = 0x4,
	PROTECTED = 0x8,
	EXISTING = 0x10,
	EXISTING_KERNEL = 0x20,
	FROM_END = 0x40,
	SWIZZLED = 0x80,
	OVERLAY = 0x100,
	CAPTURE = 0x200,
	ALTERNATE_VA = 0x400,
	SYNCHRONOUS = 0x800,
	MIRRORED = 0x1000,
	INSTANCED = 0x2000,
	HISTORY = 0x4000
};

static void edit_none(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)info;
	(void)index;
}

static void set_flags(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)index;
	info->Flags.Value = *(const UINT *)context;
}

/* One creation with that edit of the miniport's answer. */
static HRESULT create(struct world *w, void (*edit)(void *, DXGK_ALLOCATIONINFO *, uint32_t),
		      void *context, D3DKMT_HANDLE *a)
{
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);

	client_forget(&w->client);
	probe_forget();
	probe.edit_allocation = edit;
	probe.context = context;
	HRESULT result = client_try_allocate(&w->device, &wish, NULL, a, NULL);
	probe.edit_allocation = NULL;
	return result;
}

static void expect_refused(struct world *w, void (*edit)(void *, DXGK_ALLOCATIONINFO *, uint32_t),
			   void *context, const char *rule)
{
	D3DKMT_HANDLE a;

	assert_int_equal(create(w, edit, context, &a), E_INVALIDARG);
	if (!client_found(&w->client, rule) || w->client.findings != 1)
		fail_msg("expected %s, got %u findings, first: %s", rule, w->client.findings,
			 w->client.finding[0]);
	assert_int_equal(a, 0);
	assert_int_equal(probe_count(PROBE_CREATE), 1);
	assert_int_equal(probe_count(PROBE_OPEN), 0);
	assert_int_equal(probe_count(PROBE_DESTROY), 1);
	assert_int_equal(world_statistics(w).allocations, 1); /* the gate */
	client_forget(&w->client);
}

static void expect_flags_refused(struct world *w, UINT flags, const char *rule)
{
	expect_refused(w, set_flags, &flags, rule);
}

static void expect_flags_accepted(struct world *w, UINT flags)
{
	D3DKMT_HANDLE a;

	assert_int_equal(create(w, set_flags, &flags, &a), S_OK);
	assert_int_equal(w->client.findings, 0);
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
}

static void alf_02_reserved_flags_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t bit = 15; bit < 32; bit++) /* bits 15 to 18 have a meaning from 2.0 on */
		expect_flags_refused(&w, CPU_VISIBLE | 1u << bit, "ALF-02");
	expect_flags_accepted(&w, CPU_VISIBLE);
	expect_flags_accepted(&w, 0);
	world_stop(&w);
}

static void alf_04_alf_05_permanentsysmem_and_cached_require_cpuvisible(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	expect_flags_refused(&w, PERMANENT, "ALF-04");
	expect_flags_accepted(&w, PERMANENT | CPU_VISIBLE);
	expect_flags_refused(&w, CACHED, "ALF-05");
	expect_flags_accepted(&w, CACHED | CPU_VISIBLE);
	world_stop(&w);
}

static void alf_06_a_primary_with_a_system_memory_flag_is_refused(void **state)
{
	static const UINT bad[] = {PERMANENT, CACHED, PROTECTED, EXISTING, EXISTING_KERNEL};
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish),
				      .Flags.Primary = 1};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	struct world w;

	world_start(&w, state, NULL);
	probe.edit_allocation = set_flags;
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		UINT flags = CPU_VISIBLE | bad[i];

		probe.context = &flags;
		assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), E_INVALIDARG);
		if (!client_found(&w.client, "ALF-06") || w.client.findings != 1)
			fail_msg("flags 0x%x: %u findings, first: %s", flags, w.client.findings,
				 w.client.finding[0]);
		client_forget(&w.client);
	}
	UINT plain = CPU_VISIBLE;
	probe.context = &plain;
	(void)w.device.cb->pfnAllocateCb(w.device.handle, &args);
	assert_false(client_found(&w.client, "ALF-06"));
	client_forget(&w.client);
	probe.edit_allocation = NULL;
	world_stop(&w);
}

static void alf_07_alf_09_alf_10_system_memory_flags_exclude_each_other(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	expect_flags_refused(&w, PROTECTED | PERMANENT | CPU_VISIBLE, "ALF-07");
	expect_flags_refused(&w, PROTECTED | EXISTING, "ALF-07");
	expect_flags_refused(&w, PROTECTED | EXISTING_KERNEL, "ALF-07");
	expect_flags_accepted(&w, PROTECTED);
	expect_flags_refused(&w, EXISTING | PERMANENT | CPU_VISIBLE, "ALF-09");
	expect_flags_refused(&w, EXISTING | EXISTING_KERNEL, "ALF-09");
	expect_flags_refused(&w, EXISTING, "ALF-11"); /* no existing memory is given */
	expect_flags_refused(&w, EXISTING_KERNEL | PERMANENT | CPU_VISIBLE, "ALF-10");
	expect_flags_refused(&w, EXISTING_KERNEL, "ALF-12");
	world_stop(&w);
}

static void alf_16_cached_is_never_rejected_for_write_only_use(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU | SOFTGPU_ALLOCATION_CACHED);

	client_lock(&w.device, a, WRITE_ONLY);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void alf_17_fromendofsegment_places_at_the_end(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	uint64_t vram = world_statistics(&w).segment[0].size_bytes;
	D3DKMT_HANDLE low = allocate_in(&w.device, PAGE, CPU, VRAM);
	D3DKMT_HANDLE high = allocate_in(&w.device, PAGE, CPU | SOFTGPU_ALLOCATION_FROM_END, VRAM);

	use_now(&w, low, false);
	use_now(&w, high, false);
	const struct probe_call *first = probe_find_paging(DXGK_OPERATION_FILL, NULL, 0);
	const struct probe_call *second = probe_find_paging(DXGK_OPERATION_FILL, NULL, 1);
	assert_true(first->paging.Fill.Destination.SegmentAddress.QuadPart < (LONGLONG)vram / 2);
	assert_true(second->paging.Fill.Destination.SegmentAddress.QuadPart ==
		    (LONGLONG)(vram - PAGE));
	world_stop(&w);
}

static void alf_21_alf_23_flags_for_primaries_and_links(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	expect_flags_refused(&w, CPU_VISIBLE | ALTERNATE_VA, "ALF-21");
	expect_flags_refused(&w, MIRRORED | INSTANCED, "ALF-23");
	expect_flags_accepted(&w, MIRRORED); /* softgpu is no link: PAG-22, PAG-23 */
	expect_flags_accepted(&w, INSTANCED);
	expect_flags_accepted(&w, SYNCHRONOUS);
	expect_flags_accepted(&w, OVERLAY);
	expect_flags_accepted(&w, CAPTURE);
	world_stop(&w);
}

static void alf_24_a_history_buffer_allows_cpuvisible_and_cached_only(void **state)
{
	static const struct vidmm_registry_value incoherent = {"ApertureCoherent", 0};
	struct client_options options = {.registry = &incoherent, .registry_count = 1};
	struct world w;

	world_start(&w, state, NULL);
	expect_flags_refused(&w, HISTORY, "ALF-24");
	expect_flags_refused(&w, HISTORY | CPU_VISIBLE,
			     "ALF-24"); /* the aperture is coherent: Cached too */
	expect_flags_refused(&w, HISTORY | CPU_VISIBLE | CACHED | FROM_END, "ALF-24");
	expect_flags_accepted(&w, HISTORY | CPU_VISIBLE | CACHED);
	world_stop(&w);
	world_start(&w, state, &options);
	expect_flags_refused(&w, HISTORY | CPU_VISIBLE | FROM_END, "ALF-24");
	expect_flags_accepted(&w, HISTORY | CPU_VISIBLE);
	world_stop(&w);
}

/* The GPU wrote the content that the CPU reads. */
static void alf_24_the_cpu_reads_what_the_gpu_wrote_to_a_history_buffer(void **state)
{
	uint32_t flags = HISTORY | CPU_VISIBLE | CACHED;
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, NULL);
	assert_int_equal(create(&w, set_flags, &flags, &a), S_OK);
	client_fill(&w.context, a, PAGE, 0x24240000);
	client_submit(&w.context);
	client_idle(&w.client);
	const uint32_t *words = client_lock(&w.device, a, 0);
	assert_int_equal(words[0], 0x24240000);
	assert_int_equal(words[PAGE / 4 - 1], 0x24240000);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void alf_32_a_source_id_is_refused_unless_the_allocation_is_a_primary(void **state)
{
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish),
				      .VidPnSourceId = 1};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	struct world w;

	world_start(&w, state, NULL);
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), E_INVALIDARG);
	assert_true(client_found(&w.client, "ALF-32"));
	client_forget(&w.client);
	assert_int_equal(info.hAllocation, 0);
	assert_int_equal(probe_count(PROBE_CREATE), probe_count(PROBE_DESTROY));
	info.VidPnSourceId = 0;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), S_OK);
	info.Flags.Primary = 1;
	info.VidPnSourceId = 1;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), S_OK);
	assert_int_equal(w.client.findings, 0);
	world_stop(&w);
}

static void clear_handle(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	if (index == *(const UINT *)context)
		info->hAllocation = NULL;
}

static void alf_33_the_miniports_refusals_reach_the_caller(void **state)
{
	static const struct {
		NTSTATUS status;
		HRESULT result;
	} answers[] = {
		{STATUS_INVALID_PARAMETER, E_INVALIDARG},
		{STATUS_NO_MEMORY, E_OUTOFMEMORY},
		{STATUS_GRAPHICS_DRIVER_MISMATCH, (HRESULT)0xC0262009},
	};
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, NULL);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		/*
		 * The failing miniport does not clear its handles; the test must not destroy them.
		 */
		probe.create_status = answers[i].status;
		assert_int_equal(create(&w, edit_none, NULL, &a), answers[i].result);
		assert_int_equal(a, 0);
		assert_int_equal(w.client.findings, 0);
		assert_int_equal(probe_count(PROBE_DESTROY), 0);
	}
	assert_int_equal(create(&w, edit_none, NULL, &a), S_OK);
	world_stop(&w);
}

static void alf_33_an_undocumented_create_status_is_a_miniport_violation(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, NULL);
	probe.create_status = STATUS_UNSUCCESSFUL;
	assert_int_equal(create(&w, edit_none, NULL, &a), E_INVALIDARG);
	assert_true(client_found(&w.client, "ALF-33"));
	assert_int_equal(a, 0);
	assert_int_equal(probe_count(PROBE_DESTROY), 0);
	client_forget(&w.client);
	world_stop(&w);
}

static void alf_33_a_missing_miniport_handle_undoes_the_whole_call(void **state)
{
	struct softgpu_allocation wish[3];
	D3DDDI_ALLOCATIONINFO info[3] = {{0}};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 3, .pAllocationInfo = info};
	struct world w;

	world_start(&w, state, NULL);
	for (int i = 0; i < 3; i++) {
		wish[i] = wish_of(PAGE, CPU, 0);
		info[i].pPrivateDriverData = &wish[i];
		info[i].PrivateDriverDataSize = sizeof(wish[i]);
		info[i].hAllocation = 0x77;
	}
	for (UINT bad = 0; bad < 3; bad++) {
		probe_forget();
		probe.edit_allocation = clear_handle;
		probe.context = &bad;
		assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), E_INVALIDARG);
		assert_true(client_found(&w.client, "ALF-33"));
		client_forget(&w.client);
		assert_int_equal(probe_count(PROBE_DESTROY), 2);
		for (int i = 0; i < 3; i++)
			assert_int_equal(info[i].hAllocation, 0x77);
		assert_int_equal(args.hKMResource, 0);
	}
	probe.edit_allocation = NULL;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), S_OK);
	world_stop(&w);
}

/* ---- sizes, sets, preferences ---- */

struct answer_values {
	SIZE_T size;
	UINT alignment, read, write, eviction, preferred, priority;
};

static const struct answer_values good = {PAGE, PAGE, 3, 3, 0, 1, D3DDDI_ALLOCATIONPRIORITY_NORMAL};

static void set_answer_values(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	const struct answer_values *f = context;

	(void)index;
	info->Size = f->size;
	info->Alignment = f->alignment;
	info->SupportedReadSegmentSet = f->read;
	info->SupportedWriteSegmentSet = f->write;
	info->EvictionSegmentSet = f->eviction;
	info->PreferredSegment.Value = f->preferred;
	info->AllocationPriority = f->priority;
}

static void expect_values_refused(struct world *w, struct answer_values f, const char *rule)
{
	expect_refused(w, set_answer_values, &f, rule);
}

static void expect_values_accepted(struct world *w, struct answer_values f)
{
	D3DKMT_HANDLE a;

	assert_int_equal(create(w, set_answer_values, &f, &a), S_OK);
	assert_int_equal(w->client.findings, 0);
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
}

static void seg_11_invalid_size_or_alignment_is_refused(void **state)
{
	struct answer_values f = good;
	struct world w;

	world_start(&w, state, NULL);
	expect_values_accepted(&w, f);
	f.size = 0;
	expect_values_refused(&w, f, "SEG-11");
	f.size = SIZE_MAX;
	expect_values_refused(&w, f, "SEG-11");
	f = good;
	f.alignment = 3 * PAGE;
	expect_values_refused(&w, f, "SEG-11");
	f.alignment = 0; /* a page */
	expect_values_accepted(&w, f);
	f.alignment = 16;
	expect_values_accepted(&w, f);
	world_stop(&w);
}

static void seg_11_addresses_are_multiples_of_the_alignment_and_sizes_whole_pages(void **state)
{
	struct softgpu_allocation wish = wish_of(PAGE + 1, CPU, VRAM);
	struct world w;

	world_start(&w, state, NULL);
	use_now(&w, allocate_in(&w.device, PAGE, 0, VRAM), false);
	for (uint32_t shift = 13; shift < 22; shift++) {
		wish.alignment = 1u << shift;
		D3DKMT_HANDLE a = allocate_wish(&w.device, &wish);
		probe_forget();
		client_reference(&w.context, a, false);
		client_submit(&w.context);
		client_idle(&w.client);
		const struct probe_call *fill = probe_find_paging(DXGK_OPERATION_FILL, NULL, 0);
		assert_non_null(fill);
		assert_true(fill->paging.Fill.Destination.SegmentAddress.QuadPart %
				    wish.alignment ==
			    0);
		assert_int_equal(fill->paging.Fill.FillSize, 2 * PAGE);
	}
	world_stop(&w);
}

static void seg_16_a_preference_outside_the_supported_sets_is_refused(void **state)
{
	struct answer_values f = good;
	struct world w;

	world_start(&w, state, NULL);
	f.read = f.write = VRAM;
	f.preferred = 2;
	expect_values_refused(&w, f, "SEG-16");
	f.preferred = 3; /* no such segment */
	expect_values_refused(&w, f, "SEG-16");
	f.preferred = 1 | 2 << 6; /* the second preference counts as well */
	expect_values_refused(&w, f, "SEG-16");
	f.preferred = 31 << 24;
	expect_values_refused(&w, f, "SEG-16");
	f.preferred = 0;
	expect_values_accepted(&w, f);
	f.read = APERTURE; /* read or write set is enough on 1.x */
	f.preferred = 1 | 2 << 6;
	expect_values_accepted(&w, f);
	world_stop(&w);
}

static void seg_19_segment_sets_that_are_empty_or_name_no_segment_are_refused(void **state)
{
	struct answer_values f = good;
	struct world w;

	world_start(&w, state, NULL);
	f.preferred = 0;
	f.read = 0;
	expect_values_refused(&w, f, "SEG-19");
	f = good;
	f.preferred = 0;
	f.write = 0;
	expect_values_refused(&w, f, "SEG-19");
	f.write = 4;
	expect_values_refused(&w, f, "SEG-19");
	f.write = 3;
	f.read = 0x80000001;
	expect_values_refused(&w, f, "SEG-19");
	world_stop(&w);
}

static void seg_20_an_eviction_set_may_name_apertures_only(void **state)
{
	struct answer_values f = good;
	struct world w;

	world_start(&w, state, NULL);
	f.eviction = VRAM;
	expect_values_refused(&w, f, "SEG-20");
	f.eviction = VRAM | APERTURE;
	expect_values_refused(&w, f, "SEG-20");
	f.eviction = 4;
	expect_values_refused(&w, f, "SEG-20");
	f.eviction = APERTURE;
	expect_values_accepted(&w, f);
	world_stop(&w);
}

static void pri_02_allocation_priority_zero_is_refused(void **state)
{
	struct answer_values f = good;
	struct world w;

	world_start(&w, state, NULL);
	f.priority = 0;
	expect_values_refused(&w, f, "PRI-02");
	f.priority = D3DDDI_ALLOCATIONPRIORITY_NORMAL + 1;
	expect_values_accepted(&w, f);
	world_stop(&w);
}

static void private_data_reaches_the_miniport_and_its_changes_are_returned(void **state)
{
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	struct world w;

	world_start(&w, state, NULL);
	info.pPrivateDriverData = NULL; /* a size without a pointer */
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), E_INVALIDARG);
	assert_int_equal(probe_count(PROBE_CREATE), 0);
	info.pPrivateDriverData = &wish;
	info.PrivateDriverDataSize = UINT32_MAX;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), E_INVALIDARG);
	info.PrivateDriverDataSize = sizeof(wish);
	args.PrivateDriverDataSize = 8;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), E_INVALIDARG);
	args.PrivateDriverDataSize = 0;
	args.NumAllocations = UINT32_MAX;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), E_INVALIDARG);
	args.NumAllocations = 1;
	args.pAllocationInfo = NULL;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), E_INVALIDARG);
	assert_int_equal(probe_count(PROBE_CREATE), 0);
	args.pAllocationInfo = &info;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), S_OK);
	world_stop(&w);
}

/*
 * More allocations than one huge page holds are destroyed in another order than they were created
 * in, then created again in the same memory. No placement and no usage counter of the old ones
 * remains.
 */
static void a_new_allocation_inherits_nothing_from_a_destroyed_one(void **state)
{
	enum { COUNT = 2500 };
	static D3DKMT_HANDLE a[COUNT];
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < COUNT; i++)
			a[i] = allocate_in(&w.device, PAGE, CPU, VRAM);
		/* and the gate allocation */
		assert_int_equal(world_statistics(&w).allocations, COUNT + 1);
		for (uint32_t i = 0; i < COUNT; i += 7) {
			assert_int_equal(client_residency(&w.device, a[i]), EVICTED);
			const uint32_t *words = client_lock(&w.device, a[i], READ_ONLY);
			for (uint32_t at = 0; at < PAGE / 4; at++)
				assert_int_equal(words[at], 0);
			assert_int_equal(client_unlock(&w.device, a[i]), S_OK);
			client_write(&w.device, a[i], PAGE, i + 1);
			use_now(&w, a[i], true);
			assert_int_equal(client_residency(&w.device, a[i]), IN_VRAM);
		}
		for (uint32_t i = 0; i < COUNT; i++) {
			uint32_t at = i * 1009 % COUNT;

			assert_int_equal(client_deallocate(&w.device, a[at]), S_OK);
		}
	}
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(alf_02_reserved_flags_are_refused),
		BOTH(alf_04_alf_05_permanentsysmem_and_cached_require_cpuvisible),
		BOTH(alf_06_a_primary_with_a_system_memory_flag_is_refused),
		BOTH(alf_07_alf_09_alf_10_system_memory_flags_exclude_each_other),
		BOTH(alf_16_cached_is_never_rejected_for_write_only_use),
		BOTH(alf_17_fromendofsegment_places_at_the_end),
		BOTH(alf_21_alf_23_flags_for_primaries_and_links),
		BOTH(alf_24_a_history_buffer_allows_cpuvisible_and_cached_only),
		BOTH(alf_24_the_cpu_reads_what_the_gpu_wrote_to_a_history_buffer),
		BOTH(alf_32_a_source_id_is_refused_unless_the_allocation_is_a_primary),
		BOTH(alf_33_the_miniports_refusals_reach_the_caller),
		BOTH(alf_33_an_undocumented_create_status_is_a_miniport_violation),
		BOTH(alf_33_a_missing_miniport_handle_undoes_the_whole_call),
		BOTH(seg_11_invalid_size_or_alignment_is_refused),
		BOTH(seg_11_addresses_are_multiples_of_the_alignment_and_sizes_whole_pages),
		BOTH(seg_16_a_preference_outside_the_supported_sets_is_refused),
		BOTH(seg_19_segment_sets_that_are_empty_or_name_no_segment_are_refused),
		BOTH(seg_20_an_eviction_set_may_name_apertures_only),
		BOTH(pri_02_allocation_priority_zero_is_refused),
		BOTH(private_data_reaches_the_miniport_and_its_changes_are_returned),
		BOTH(a_new_allocation_inherits_nothing_from_a_destroyed_one),
	};

	return cmocka_run_group_tests_name("creation", tests, NULL, NULL);
}
