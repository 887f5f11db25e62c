/* SPDX-License-Identifier: MIT */
/*
 * UseAlternateVA: an address besides that of the CPU mapping. Covers what the miniport may change
 * about it, when it ends, and how content locked by it is evicted and paged in.
 */
#define _DEFAULT_SOURCE /* mincore */
#include <sys/mman.h>

#include "base/base.h"
#include "support/served.h"
#include "world.h"

#include <ntddk.h>

enum {
	ALTERNATE = ACQUIRE_APERTURE | USE_ALTERNATE_VA,
	BYTES = 4 * PAGE,
	WINDOW = 64 * KIB /* at the end of the BAR, outside the segment */
};

static const struct client_options small = {.vram_bytes = 2 * MIB, .aperture_bytes = 4 * MIB};

/*
 * A miniport with its own window: its ranges are twice as large as requested and at another
 * address.
 */
static struct {
	uint64_t bar;      /* CpuTranslatedAddress of the memory segment */
	uint64_t pages;    /* of the pages mapped into the aperture last */
	uint64_t physical; /* the address that it answers */
	uint64_t size;     /* 0: the size requested */
} miniport;

static void reserve_window(void *context, DXGK_QUERYSEGMENTOUT3 *out)
{
	(void)context;
	if (out->pSegmentDescriptor)
		miniport.bar = keep_window(out, WINDOW);
}

static bool answer_settings(void *context, DXGKARG_ACQUIRESWIZZLINGRANGE *args, NTSTATUS *status)
{
	(void)context;
	(void)status;
	args->CPUTranslatedAddress.QuadPart = (LONGLONG)miniport.physical;
	if (miniport.size)
		args->RangeSize = miniport.size;
	args->SegmentId = IN_VRAM; /* softgpu accepts the range there and keeps it */
	return false;
}

/* An eviction under a lock transfers the whole window. A page-in transfers the surface. */
static bool transfer_window(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	DXGK_TRANSFER_END *source = &args->SpecialLockTransfer.Source;

	(void)context;
	(void)status;
	if (args->Operation == DXGK_OPERATION_SPECIAL_LOCK_TRANSFER && source->SegmentId) {
		source->SegmentAddress.QuadPart = 2 * MIB - WINDOW;
		args->SpecialLockTransfer.TransferSize = miniport.size;
	}
	return false;
}

static bool note_mapped_pages(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	(void)context;
	(void)status;
	if (args->Operation == DXGK_OPERATION_MAP_APERTURE_SEGMENT &&
	    args->MapApertureSegment.hAllocation)
		miniport.pages =
			(uint64_t)MmGetMdlPfnArray(
				args->MapApertureSegment.pMdl)[args->MapApertureSegment.MdlOffset]
			<< 12;
	return false;
}

static void start(struct world *w, void **state, uint32_t vram_visible, uint32_t range_count)
{
	struct vidmm_registry_value values[] = {{"VramCpuVisible", vram_visible},
						{"SwizzlingRanges", range_count}};
	struct client_options options = small;

	options.registry = values;
	options.registry_count = 2;
	world_start(w, state, &options);
}

/* softgpu's bytes are the same in both forms. */
static D3DKMT_HANDLE swizzled(struct world *w, uint32_t segment_set)
{
	probe.edit_allocation = flag_swizzled;
	D3DKMT_HANDLE a = allocate_in(&w->device, BYTES, CPU, segment_set);
	probe.edit_allocation = NULL;
	return a;
}

static void fill(uint32_t *words, uint64_t bytes, uint32_t pattern)
{
	for (uint32_t i = 0; i < bytes / 4; i++)
		words[i] = pattern + i;
}

static void expect(const uint32_t *words, uint64_t bytes, uint32_t pattern)
{
	for (uint32_t i = 0; i < bytes / 4; i++)
		if (words[i] != pattern + i)
			fail_msg("word %u is 0x%x, not 0x%x", i, words[i], pattern + i);
}

/* Another mapping may reuse the address at once, so this is checked on the simulator only. */
static bool is_reserved(const struct world *w, void *address)
{
	unsigned char in_core;

	return w->kind != VIDMM_HOST_SIM || mincore(address, PAGE, &in_core) == 0;
}

static bool is_released(const struct world *w, void *address)
{
	unsigned char in_core;

	return w->kind != VIDMM_HOST_SIM || mincore(address, PAGE, &in_core) != 0 ||
	       served_is_free(address);
}

static const struct probe_call *special(HANDLE kmd, uint32_t index)
{
	return probe_find_paging(DXGK_OPERATION_SPECIAL_LOCK_TRANSFER, kmd, index);
}

static uint32_t specials(void)
{
	return probe_paging_count(DXGK_OPERATION_SPECIAL_LOCK_TRANSFER, NULL);
}

/* ---- primaries ---- */

struct answer {
	UINT flags, read, write;
};

static void set_answer(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	const struct answer *a = context;

	(void)index;
	info->Flags.Value = a->flags;
	info->SupportedReadSegmentSet = a->read;
	info->SupportedWriteSegmentSet = a->write;
}

static HRESULT try_primary(struct world *w, struct answer answer, HANDLE resource, D3DKMT_HANDLE *a)
{
	struct softgpu_allocation wish = wish_of(64 * KIB, 0, 0);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish),
				      .Flags.Value = 1};
	D3DDDICB_ALLOCATE args = {
		.NumAllocations = 1, .pAllocationInfo = &info, .hResource = resource};

	probe.edit_allocation = set_answer;
	probe.context = &answer;
	HRESULT result = w->device.cb->pfnAllocateCb(w->device.handle, &args);
	probe.edit_allocation = NULL;
	*a = info.hAllocation;
	return result;
}

static const struct answer with_range = {0x400, VRAM, VRAM}, without = {0, VRAM, VRAM};

static void alf_22_a_usealternateva_primary_acquires_its_range_at_creation(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	assert_int_equal(try_primary(&w, with_range, NULL, &a), S_OK);
	const struct probe_call *acquire = probe_find(PROBE_ACQUIRE, 0);

	assert_ptr_equal(acquire->object, probe_last_created());
	assert_int_equal(acquire->range.SegmentId, IN_VRAM);
	assert_int_equal(acquire->range.RangeSize, 64 * KIB);
	assert_int_equal(acquire->range.PrivateDriverData, 0);
	assert_true(probe_position(acquire) < probe_position(probe_find(PROBE_OPEN, 0)));
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	/* The first lock uses it. */
	client_lock(&w.device, a, ALTERNATE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 1);
	/* Its range is released like any other (SWZ-13), and a lock acquires one again. */
	evict_by_pressure(&w, a);
	assert_int_equal(probe_count(PROBE_RELEASE), 1);
	use_now(&w, a, false);
	client_lock(&w.device, a, ALTERNATE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 2);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_count(PROBE_RELEASE), 2);
	world_stop(&w);
}

static bool refuse(void *context, DXGKARG_ACQUIRESWIZZLINGRANGE *args, NTSTATUS *status)
{
	(void)context;
	(void)args;
	*status = (NTSTATUS)miniport.physical;
	return true;
}

static void expect_not_created(struct world *w, struct answer answer, HRESULT result,
			       const char *rule)
{
	D3DKMT_HANDLE a;

	client_forget(&w->client);
	probe_forget();
	assert_int_equal(try_primary(w, answer, NULL, &a), result);
	assert_int_equal(a, 0);
	assert_int_equal(w->client.findings, rule != NULL);
	if (rule)
		assert_true(client_found(&w->client, rule));
	assert_int_equal(probe_count(PROBE_DESTROY), 1);
	assert_int_equal(probe_count(PROBE_RELEASE), 0);
	assert_int_equal(world_statistics(w).allocations, 1); /* the gate */
	client_forget(&w->client);
}

static void alf_22_creation_fails_without_a_range_or_a_placement(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	probe.answer_acquire = refuse;
	miniport.physical = (uint32_t)STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
	expect_not_created(&w, with_range, E_INVALIDARG, "ALF-22");
	assert_int_equal(try_primary(&w, without, NULL, &a), S_OK); /* without UseAlternateVA */
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	miniport.physical = (uint32_t)STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE;
	expect_not_created(&w, with_range, D3DERR_OUTOFVIDEOMEMORY, NULL);
	probe.answer_acquire = NULL;
	world_stop(&w);
	start(&w, state, 1, 0);
	expect_not_created(&w, with_range, E_INVALIDARG, "ALF-22");
	world_stop(&w);
}

static void alf_22_creation_evicts_others_and_fails_if_the_range_is_locked(void **state)
{
	struct world w;
	D3DKMT_HANDLE a, other;

	start(&w, state, 1, 1);
	assert_int_equal(try_primary(&w, with_range, NULL, &a), S_OK);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	other = allocate_in(&w.device, 2 * MIB, 0, VRAM);
	use_now(&w, other, true);
	assert_int_equal(try_primary(&w, with_range, NULL, &a), S_OK); /* `other` is evicted */
	assert_int_equal(client_residency(&w.device, other), EVICTED);
	/* The only range belongs to a locked allocation. */
	client_lock(&w.device, a, ALTERNATE);
	w.client.reasons = 0;
	assert_int_equal(try_primary(&w, with_range, NULL, &other), D3DERR_OUTOFVIDEOMEMORY);
	assert_true(client_told(&w.client, STATUS_NO_VIDEO_MEMORY, "ALF-22: create refused"));
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(try_primary(&w, with_range, NULL, &other), S_OK);
	assert_int_equal(w.client.reasons, 0);
	world_stop(&w);
}

static void swz_26_a_primary_is_locked_by_the_kind_of_address_it_was_created_with(void **state)
{
	struct world w;
	D3DKMT_HANDLE with, none;

	world_start(&w, state, &small);
	assert_int_equal(try_primary(&w, with_range, NULL, &with), S_OK);
	assert_int_equal(try_primary(&w, without, NULL, &none), S_OK);
	expect_lock_refused(&w, none, ALTERNATE, E_INVALIDARG, "SWZ-26");
	expect_lock_refused(&w, with, 0, E_INVALIDARG, "SWZ-26");
	expect_lock_refused(&w, with, ACQUIRE_APERTURE, E_INVALIDARG, "SWZ-26");
	fill(client_lock(&w.device, with, ALTERNATE), 64 * KIB, 0x2600);
	assert_int_equal(client_unlock(&w.device, with), S_OK);
	expect(client_lock(&w.device, with, ALTERNATE | READ_ONLY), 64 * KIB, 0x2600);
	assert_int_equal(client_unlock(&w.device, with), S_OK);
	client_lock(&w.device, none, 0);
	assert_int_equal(client_unlock(&w.device, none), S_OK);
	client_lock(&w.device, none, ACQUIRE_APERTURE);
	assert_int_equal(client_unlock(&w.device, none), S_OK);
	world_stop(&w);
}

/* ---- conditions ---- */

static void swz_23_invalid_requests_for_an_alternate_address_are_refused(void **state)
{
	static int runtime;
	struct world w;
	D3DKMT_HANDLE shared;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);

	expect_lock_refused(&w, a, USE_ALTERNATE_VA, E_INVALIDARG, "SWZ-23");
	client_lock(&w.device, a, ALTERNATE);
	expect_lock_refused(&w, a, ALTERNATE, E_INVALIDARG, "SWZ-15");
	expect_lock_refused(&w, a, 0, E_INVALIDARG, "SWZ-15");
	expect_lock_refused(&w, a, ACQUIRE_APERTURE, E_INVALIDARG, "SWZ-15");
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_lock(&w.device, a, 0);
	expect_lock_refused(&w, a, ALTERNATE, E_INVALIDARG, "SWZ-14");
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_lock(&w.device, a, ALTERNATE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(vidmm_resource_set_shared(w.device.device, &runtime), 0);
	struct softgpu_allocation wish = wish_of(BYTES, CPU, VRAM);
	assert_int_equal(client_try_allocate(&w.device, &wish, &runtime, &shared, NULL), S_OK);
	expect_lock_refused(&w, shared, ALTERNATE, E_INVALIDARG, "SWZ-23");
	/* The same of a primary that was created with the flag. */
	static int other;
	assert_int_equal(vidmm_resource_set_shared(w.device.device, &other), 0);
	assert_int_equal(try_primary(&w, with_range, &other, &shared), S_OK);
	expect_lock_refused(&w, shared, ALTERNATE, E_INVALIDARG, "SWZ-23");
	expect_lock_refused(&w, shared, 0, E_INVALIDARG, "SWZ-26");
	world_stop(&w);
}

static void swz_18_lkr_06_a_render_fails_if_it_references_an_alternate_address_lock(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, 0);

	use_now(&w, a, true);
	client_lock(&w.device, a, ALTERNATE);
	client_reference(&w.context, a, false);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_CANTRENDERLOCKEDALLOCATION);
	assert_int_equal(w.client.findings, 1);
	client_forget(&w.client);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	probe_forget();
	use_now(&w, a, true); /* SWZ-21: no conversion is needed before that */
	assert_int_equal(probe_paging_count(-1, NULL), 0);
	world_stop(&w);
}

/* It shows the system copy, which the CPU uses wherever the instance is resident. */
static void swz_24_pag_14_an_alternate_address_shows_the_retained_system_copy(void **state)
{
	static const UINT list[] = {2};
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a =
		allocate_in(&w.device, BYTES, CPU | SOFTGPU_ALLOCATION_PERMANENT_SYSTEM, VRAM);
	D3DKMT_HANDLE copy = allocate_in(&w.device, BYTES, CPU, 0);
	HANDLE kmd = probe_find(PROBE_CREATE, 0)->object;

	client_write(&w.device, a, BYTES, 0x1400);
	uint32_t *plain = client_lock(&w.device, a, READ_ONLY);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true); /* from here on the GPU's copy is the newer one (PAG-15) */
	uint32_t *other = client_lock(&w.device, a, ALTERNATE);
	assert_ptr_not_equal(other, plain);
	expect(other, BYTES, 0x1400);
	fill(other, BYTES, 0x1401);
	evict_by_pressure(&w, a);
	expect(other, BYTES, 0x1401);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false);
	/* LOCK-22: only the listed pages are copied to the segment. */
	probe_forget();
	D3DKMT_HANDLE handle = a;
	void *page;
	assert_int_equal(lock_pages(&w.device, &handle, ALTERNATE, list, 1, &page), S_OK);
	assert_ptr_equal(page, other + 2 * PAGE / 4);
	memset(page, 0x14, PAGE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_copy(&w.context, a, copy, BYTES);
	client_submit(&w.context);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 1);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_SPECIAL_LOCK_TRANSFER, kmd), 0);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 0);
	const uint32_t *words = client_lock(&w.device, copy, READ_ONLY);
	for (uint32_t i = 0; i < BYTES / 4; i++)
		assert_int_equal(words[i], i / (PAGE / 4) == 2 ? 0x14141414 : 0x1401 + i);
	assert_int_equal(client_unlock(&w.device, copy), S_OK);
	world_stop(&w);
}

/* ---- the address ---- */

static void swz_24_the_alternate_address_differs_and_shows_the_same_bytes(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);
	uint32_t *view = client_lock(&w.device, a, 0);

	fill(view, BYTES, 0x100);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false);
	uint32_t *other = client_lock(&w.device, a, ALTERNATE);

	assert_true((char *)other + BYTES <= (char *)view || (char *)view + BYTES <= (char *)other);
	expect(other, BYTES, 0x100);
	fill(other, BYTES, 0x200);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_ptr_equal(client_lock(&w.device, a, 0), view);
	expect(view, BYTES, 0x200);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	/* The address is unchanged, also after a lock of another kind in between. */
	assert_ptr_equal(client_lock(&w.device, a, ALTERNATE), other);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 1);
	/* SWZ-07: each MIP level has its own range. */
	D3DDDICB_LOCK args = {.hAllocation = a, .PrivateDriverData = 1, .Flags.Value = ALTERNATE};
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &args), S_OK);
	assert_ptr_not_equal(args.pData, other);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_ptr_equal(client_lock(&w.device, a, ALTERNATE), other);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 2);
	world_stop(&w);
}

static void swz_24_lock_18_the_pointer_is_that_of_the_first_listed_page(void **state)
{
	static const UINT page = 2;
	struct world w;
	void *data;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);
	char *whole = client_lock(&w.device, a, ALTERNATE);

	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(lock_pages(&w.device, &a, ALTERNATE, &page, 1, &data), S_OK);
	assert_ptr_equal(data, whole + 2 * PAGE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void swz_24_the_miniport_may_change_range_size_and_address(void **state)
{
	struct world w;

	probe.edit_segments = reserve_window;
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);

	use_now(&w, a, true);
	miniport.physical = miniport.bar + 2 * MIB - WINDOW;
	miniport.size = 2 * BYTES;
	probe.answer_acquire = answer_settings;
	uint32_t *words = client_lock(&w.device, a, ALTERNATE);

	fill(words, 2 * BYTES, 0x300); /* the whole range is mapped */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_ptr_equal(client_lock(&w.device, a, ALTERNATE), words);
	expect(words, 2 * BYTES, 0x300);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	/* SWZ-03: without UseAlternateVA a changed range counts as failed. */
	assert_int_equal(probe_count(PROBE_ACQUIRE), 1);
	expect_lock_refused(&w, a, 0x8 | ACQUIRE_APERTURE, E_INVALIDARG, "LOCK-14");
	probe.answer_acquire = NULL;
	client_lock(&w.device, a, ACQUIRE_APERTURE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_count(PROBE_RELEASE), 1);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 2);
	world_stop(&w);
}

static void swz_24_an_acquire_answer_outside_the_bar_counts_as_no_range(void **state)
{
	struct world w;

	probe.edit_segments = reserve_window;
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);
	const struct {
		uint64_t physical, size;
	} bad[] = {
		{miniport.bar + 2 * MIB - PAGE, BYTES}, /* past the end of the BAR */
		{miniport.bar + 8, BYTES},              /* not page-aligned */
		{miniport.bar, BYTES - 1},              /* smaller than the allocation */
		{miniport.bar + 2 * MIB, BYTES},        /* outside the BAR */
		{miniport.bar, UINT64_MAX},             /* invalid size */
		{UINT64_MAX - 2 * PAGE + 1, BYTES},
	};

	use_now(&w, a, true);
	probe.answer_acquire = answer_settings;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		D3DKMT_HANDLE handle = a;
		void *data;

		miniport.physical = bad[i].physical;
		miniport.size = bad[i].size;
		assert_int_equal(client_try_lock(&w.device, &handle, ALTERNATE, &data),
				 D3DERR_NOTAVAILABLE);
		assert_true(client_found(&w.client, "SWZ-24"));
		assert_true(client_found(&w.client, "LOCK-19"));
		/* SWZ-13: the range is released */
		assert_int_equal(probe_count(PROBE_RELEASE), i + 1);
		client_forget(&w.client);
		assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	}
	world_stop(&w);
}

static void swz_24_an_alternate_address_works_in_a_hidden_segment(void **state)
{
	struct world w;

	start(&w, state, 0, 64);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, 0);

	fill(client_lock(&w.device, a, 0), BYTES, 0x400);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	probe_forget();
	uint32_t *words = client_lock(&w.device, a, ALTERNATE | DONOT_EVICT);

	expect(words, BYTES, 0x400);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(probe_paging_count(-1, NULL), 0);
	assert_int_equal(probe_find(PROBE_ACQUIRE, 0)->range.SegmentId, IN_VRAM);
	fill(words, BYTES, 0x500);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	/* A plain lock still evicts it (LOCK-49), and what was written there is copied along. */
	expect(client_lock(&w.device, a, 0), BYTES, 0x500);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	assert_int_equal(probe_count(PROBE_RELEASE), 1);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void swz_24_q_07_an_alternate_address_works_in_an_aperture(void **state)
{
	struct world w;

	probe.edit_segments = reserve_window;
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, APERTURE);

	fill(client_lock(&w.device, a, 0), BYTES, 0x600);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	probe.answer_paging = note_mapped_pages;
	probe.answer_acquire = answer_settings;
	use_now(&w, a, true);
	miniport.physical = miniport.pages; /* the pages that the aperture maps there */
	miniport.size = 0;
	probe_forget();
	expect_lock_refused(&w, a, ACQUIRE_APERTURE, E_INVALIDARG, "SWZ-16");
	uint32_t *words = client_lock(&w.device, a, ALTERNATE);

	assert_int_equal(probe_find(PROBE_ACQUIRE, 0)->range.SegmentId, IN_APERTURE);
	expect(words, BYTES, 0x600);
	fill(words, BYTES, 0x601);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_expect(&w.device, a, BYTES, 0x601);
	/* Pages of other allocations are refused. */
	D3DKMT_HANDLE b = allocate_in(&w.device, BYTES, CPU, APERTURE);
	use_now(&w, b, true);
	miniport.physical += 16 * MIB;
	void *data;
	assert_int_equal(client_try_lock(&w.device, &b, ALTERNATE, &data), D3DERR_NOTAVAILABLE);
	assert_true(client_found(&w.client, "SWZ-24"));
	client_forget(&w.client);
	world_stop(&w);
}

static void swz_24_q_07_without_ranges_an_aperture_only_allocation_is_refused(void **state)
{
	struct world w;

	start(&w, state, 1, 0);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, APERTURE),
		      both = allocate_in(&w.device, BYTES, CPU, 0);

	expect_lock_refused(&w, a, ALTERNATE, E_INVALIDARG, "SWZ-16");
	client_lock(&w.device, both, ALTERNATE | LOCK_ENTIRE);
	assert_int_equal(client_unlock(&w.device, both), S_OK);
	world_stop(&w);
}

static void swz_09_without_a_range_an_alternate_address_shows_unswizzled_copy(void **state)
{
	struct world w;

	start(&w, state, 1, 0);
	D3DKMT_HANDLE a = swizzled(&w, VRAM);
	HANDLE kmd = probe_last_created();
	uint32_t *view = client_lock(&w.device, a, 0);

	fill(view, BYTES, 0x700);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	expect_lock_refused(&w, a, ALTERNATE, D3DERR_NOTAVAILABLE, "LOCK-19");
	expect_lock_refused(&w, a, ALTERNATE | LOCK_ENTIRE | DONOT_EVICT, D3DERR_NOTAVAILABLE,
			    "SWZ-10");
	probe_forget();
	uint32_t *other = client_lock(&w.device, a, ALTERNATE | LOCK_ENTIRE);

	assert_ptr_not_equal(other, view);
	expect(other, BYTES, 0x700);
	fill(other, BYTES, 0x701);
	const struct probe_call *out = probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0);
	assert_int_equal(out->paging.Transfer.Flags.Value, 0x18 | 0x2);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	/*
	 * SWZ-05: the content is linear at that address now; the CPU mapping shows the same
	 * (Q-12).
	 */
	assert_ptr_equal(client_lock(&w.device, a, ALTERNATE | DONOT_EVICT), other);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_ptr_equal(client_lock(&w.device, a, 0), view);
	expect(view, BYTES, 0x701);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	assert_true(is_released(&w, other));
	assert_int_equal(specials(), 0); /* it was not evicted under such a lock */
	world_stop(&w);
}

static void lock_32_a_failed_alternate_lock_changes_nothing(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);

	use_now(&w, a, true);
	for (uint32_t n = 1;; n++) {
		D3DKMT_HANDLE handle = a;
		void *data;

		probe_forget();
		vmm_calloc_fail_after(n);
		HRESULT result = client_try_lock(&w.device, &handle, ALTERNATE, &data);
		vmm_calloc_fail_after(0);
		if (result == S_OK) {
			assert_true(n > 1); /* something did fail */
			break;
		}
		assert_int_equal(result, E_OUTOFMEMORY);
		assert_null(data);
		assert_int_equal(probe_count(PROBE_ACQUIRE), probe_count(PROBE_RELEASE));
		assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	}
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

/* ---- its end ---- */

static void swz_24_the_alternate_address_ends_with_its_range(void **state)
{
	struct world w;

	start(&w, state, 1, 1);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM),
		      b = allocate_in(&w.device, BYTES, CPU, VRAM);

	client_write(&w.device, b, BYTES, 0); /* it has a CPU mapping before */
	use_now(&w, b, false);
	void *address = client_lock(&w.device, a, ALTERNATE);

	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_true(is_reserved(&w, address));
	/* Another allocation takes the range. */
	client_lock(&w.device, b, ACQUIRE_APERTURE);
	assert_true(is_released(&w, address));
	assert_int_equal(client_unlock(&w.device, b), S_OK);
	/* Eviction while it is not locked uses an ordinary transfer. */
	address = client_lock(&w.device, a, ALTERNATE);
	fill(address, BYTES, 0x800);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	probe_forget();
	evict_by_pressure(&w, a);
	assert_true(is_released(&w, address));
	assert_int_equal(specials(), 0);
	/* Destruction while it is locked (LOCK-30). */
	address = client_lock(&w.device, a, ALTERNATE);
	expect(address, BYTES, 0x800);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_true(is_released(&w, address));
	world_stop(&w);
}

/* ---- out and back ---- */

static void swz_25_lkr_07_eviction_and_page_in_use_special_lock_transfer(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = swizzled(&w, VRAM);
	HANDLE kmd = probe_last_created();
	D3DDDICB_LOCK args = {.hAllocation = a, .PrivateDriverData = 7, .Flags.Value = ALTERNATE};

	client_write(&w.device, a, BYTES, 0x900);
	use_now(&w, a, true);
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &args), S_OK);
	uint32_t *words = args.pData;
	fill(words, BYTES / 2, 0x1900);
	probe_forget();
	evict_by_pressure(&w, a);
	const struct probe_call *out = special(kmd, 0);

	assert_int_equal(specials(), 1);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 0);
	assert_int_equal(out->paging.SpecialLockTransfer.SwizzlingRangeId, 0);
	assert_int_equal(out->paging.SpecialLockTransfer.SwizzlingRangeData, 7);
	assert_int_equal(out->paging.SpecialLockTransfer.TransferSize, BYTES);
	assert_int_equal(out->paging.SpecialLockTransfer.Flags.Value, 0x18 | 0x2);
	assert_int_equal(out->paging.SpecialLockTransfer.Source.SegmentId, IN_VRAM);
	assert_int_equal(out->paging.SpecialLockTransfer.Destination.SegmentId, 0);
	/* SWZ-13: the range is released after the eviction through it. */
	assert_true(probe_position(out) < probe_position(probe_find(PROBE_RELEASE, 0)));
	/* LOCK-04: the pointer is still valid. */
	expect(words, BYTES / 2, 0x1900);
	expect(words + BYTES / 8, BYTES / 2, 0x900 + BYTES / 8);
	fill(words + BYTES / 8, BYTES / 2, 0x2900);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_true(is_reserved(&w, words));
	/* SWZ-05: still the same, without a call. */
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &args), S_OK);
	assert_ptr_equal(args.pData, words);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	const struct probe_call *in = special(kmd, 1);

	assert_int_equal(specials(), 2);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 0);
	assert_int_equal(in->paging.SpecialLockTransfer.SwizzlingRangeId, 0);
	assert_int_equal(in->paging.SpecialLockTransfer.SwizzlingRangeData, 7);
	assert_int_equal(in->paging.SpecialLockTransfer.Flags.Value, 0x18 | 0x1);
	assert_int_equal(in->paging.SpecialLockTransfer.Source.SegmentId, 0);
	assert_int_equal(in->paging.SpecialLockTransfer.Destination.SegmentId, IN_VRAM);
	assert_true(is_released(&w, words));
	/* From here on its range is released like any other. */
	evict_by_pressure(&w, a);
	assert_int_equal(specials(), 2);
	words = client_lock(&w.device, a, 0);
	expect(words, BYTES / 2, 0x1900);
	expect(words + BYTES / 8, BYTES / 2, 0x2900);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lkr_07_a_plain_lock_sees_what_special_lock_transfer_evicted(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);
	uint32_t *words = client_lock(&w.device, a, ALTERNATE);

	fill(words, BYTES, 0xA00);
	evict_by_pressure(&w, a);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_expect(&w.device, a, BYTES, 0xA00);
	client_write(&w.device, a, BYTES, 0xA01);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	expect(client_lock(&w.device, a, ALTERNATE), BYTES, 0xA01);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false);
	client_expect(&w.device, a, BYTES, 0xA01);
	world_stop(&w);
}

static void lkr_07_a_miniport_chosen_image_is_paged_in_before_a_plain_lock(void **state)
{
	struct world w;

	probe.edit_segments = reserve_window;
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, BYTES, 0); /* it has a CPU mapping before */
	use_now(&w, a, true);
	miniport.physical = miniport.bar + 2 * MIB - WINDOW;
	miniport.size = 2 * BYTES;
	probe.answer_acquire = answer_settings;
	probe.answer_paging = transfer_window;
	uint32_t *words = client_lock(&w.device, a, ALTERNATE);

	fill(words, 2 * BYTES, 0xB00);
	probe_forget();
	evict_by_pressure(&w, a);
	assert_int_equal(specials(), 1);
	assert_true(
		MmGetMdlByteCount(special(kmd, 0)->paging.SpecialLockTransfer.Destination.pMdl) >=
		2 * BYTES);
	expect(words, 2 * BYTES, 0xB00);
	words[0] = 0xB0B;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_ptr_equal(client_lock(&w.device, a, ALTERNATE), words);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	/* The CPU mapping would show the miniport's own format, so the allocation is paged in. */
	const uint32_t *view = client_lock(&w.device, a, 0);

	assert_int_equal(specials(), 2);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(view[0], 0xB0B);
	assert_int_equal(view[BYTES / 4 - 1], 0xB00 + BYTES / 4 - 1);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_true(is_released(&w, words));
	world_stop(&w);
}

static void lkr_07_special_lock_transfer_out_of_and_into_an_aperture(void **state)
{
	enum { LARGE = MIB };
	struct world w;

	probe.edit_segments = reserve_window;
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, LARGE, CPU, APERTURE),
		      all = allocate_in(&w.device, 4 * MIB - LARGE / 2, CPU, APERTURE);

	client_write(&w.device, a, LARGE, 0xC00);
	probe.answer_paging = note_mapped_pages;
	probe.answer_acquire = answer_settings;
	use_now(&w, a, true);
	miniport.physical = miniport.pages;
	miniport.size = 0;
	uint32_t *words = client_lock(&w.device, a, ALTERNATE);

	fill(words, BYTES / 2, 0x1C00);
	probe_forget();
	use_now(&w, all, false); /* evicts everything else there */
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	assert_int_equal(specials(), 1);
	assert_int_equal(probe_count(PROBE_RELEASE), 1);
	expect(words, BYTES / 2, 0x1C00);
	expect(words + BYTES / 8, BYTES / 2, 0xC00 + BYTES / 8);
	fill(words + BYTES / 8, BYTES / 2, 0x2C00);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_deallocate(&w.device, all), S_OK);
	use_now(&w, a, false);
	assert_int_equal(specials(), 2);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	const uint32_t *view = client_lock(&w.device, a, 0);

	expect(view, BYTES / 2, 0x1C00);
	expect(view + BYTES / 8, BYTES / 2, 0x2C00);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lkr_07_lock_30_any_end_of_an_evicted_lock_frees_all_of_it(void **state)
{
	struct client_device other;
	struct world w;

	world_start(&w, state, &small);
	client_open(&w.client, &other);
	for (uint32_t evicted = 0; evicted < 2; evicted++) {
		D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);

		client_lock(&w.device, a, ALTERNATE);
		if (evicted)
			evict_by_pressure(&w, a);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
	}
	client_lock(&other, allocate_in(&other, BYTES, CPU, VRAM), ALTERNATE);
	client_close(&other);
	client_idle(&w.client);
	assert_int_equal(probe_count(PROBE_ACQUIRE), probe_count(PROBE_RELEASE));
	client_lock(&w.device, allocate_in(&w.device, BYTES, CPU, VRAM), ALTERNATE);
	world_stop(&w);
}

/* ---- many at once ---- */

struct reentry {
	_Atomic uint32_t inside;
	_Atomic bool twice;
};

static bool enter(void *context, DXGKARG_ACQUIRESWIZZLINGRANGE *args, NTSTATUS *status)
{
	struct reentry *r = context;

	(void)args;
	(void)status;
	if (atomic_fetch_add(&r->inside, 1))
		atomic_store(&r->twice, true);
	for (volatile uint32_t i = 0; i < 200; i++)
		;
	atomic_fetch_sub(&r->inside, 1);
	return false;
}

struct locker {
	struct world *world;
	struct vidmm_thread *thread;
	D3DKMT_HANDLE allocation;
	_Atomic uint32_t failures;
};

static void lock_again_and_again(void *argument)
{
	struct locker *l = argument;
	void *data;

	for (uint32_t i = 0; i < 200; i++) {
		uint32_t flags = i % 2 ? ALTERNATE : ACQUIRE_APERTURE;
		HRESULT result = client_try_lock(&l->world->device, &l->allocation, flags, &data);

		if (result == S_OK) {
			((volatile char *)data)[0] = (char)i;
			if (client_unlock(&l->world->device, l->allocation) != S_OK)
				l->failures++;
		} else if (result != D3DERR_NOTAVAILABLE) {
			l->failures++; /* NOTAVAILABLE: the three other allocations are locked */
		}
	}
}

static void swz_28_acquire_calls_are_serialized(void **state)
{
	struct reentry r = {0};
	struct locker lockers[4];
	struct world w;

	start(&w, state, 1, 3);
	probe.answer_acquire = enter;
	probe.context = &r;
	for (uint32_t i = 0; i < 4; i++) {
		lockers[i] = (struct locker){
			.world = &w, .allocation = allocate_in(&w.device, BYTES, CPU, VRAM)};
		assert_int_equal(vidmm_thread_create(w.client.host, "locker", lock_again_and_again,
						     &lockers[i], &lockers[i].thread),
				 0);
	}
	for (uint32_t i = 0; i < 4; i++) {
		vidmm_thread_join(lockers[i].thread);
		assert_int_equal(lockers[i].failures, 0);
	}
	assert_false(r.twice);
	client_forget(&w.client); /* LOCK-19: no range was left */
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(alf_22_a_usealternateva_primary_acquires_its_range_at_creation),
		BOTH(alf_22_creation_fails_without_a_range_or_a_placement),
		BOTH(alf_22_creation_evicts_others_and_fails_if_the_range_is_locked),
		BOTH(swz_26_a_primary_is_locked_by_the_kind_of_address_it_was_created_with),
		BOTH(swz_23_invalid_requests_for_an_alternate_address_are_refused),
		BOTH(swz_18_lkr_06_a_render_fails_if_it_references_an_alternate_address_lock),
		BOTH(swz_24_pag_14_an_alternate_address_shows_the_retained_system_copy),
		BOTH(swz_24_the_alternate_address_differs_and_shows_the_same_bytes),
		BOTH(swz_24_lock_18_the_pointer_is_that_of_the_first_listed_page),
		BOTH(swz_24_the_miniport_may_change_range_size_and_address),
		BOTH(swz_24_an_acquire_answer_outside_the_bar_counts_as_no_range),
		BOTH(swz_24_an_alternate_address_works_in_a_hidden_segment),
		BOTH(swz_24_q_07_an_alternate_address_works_in_an_aperture),
		BOTH(swz_24_q_07_without_ranges_an_aperture_only_allocation_is_refused),
		BOTH(swz_09_without_a_range_an_alternate_address_shows_unswizzled_copy),
		BOTH(lock_32_a_failed_alternate_lock_changes_nothing),
		BOTH(swz_24_the_alternate_address_ends_with_its_range),
		BOTH(swz_25_lkr_07_eviction_and_page_in_use_special_lock_transfer),
		BOTH(lkr_07_a_plain_lock_sees_what_special_lock_transfer_evicted),
		BOTH(lkr_07_a_miniport_chosen_image_is_paged_in_before_a_plain_lock),
		BOTH(lkr_07_special_lock_transfer_out_of_and_into_an_aperture),
		BOTH(lkr_07_lock_30_any_end_of_an_evicted_lock_frees_all_of_it),
		BOTH(swz_28_acquire_calls_are_serialized),
	};

	return cmocka_run_group_tests_name("alternate addresses", tests, NULL, NULL);
}
