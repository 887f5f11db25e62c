/* SPDX-License-Identifier: MIT */
/*
 * CreateInVpr (ALF-26): the protected range of a segment, its allocations, its victims, and
 * requests that do not fit.
 */
#include "wddm2_world.h"

#define IN_VPR   0x400u
#define OVERLAY  0x100u
#define FROM_END 0x40u

/* 2 of 16 MiB of memory; the first 256 KiB of the range are reserved by the miniport. */
#define START   (4 * MIB)
#define BYTES   (2 * MIB)
#define RESERVE (256 * KIB)
#define UNIT    (64 * KIB)
#define FIRST   (START + RESERVE)
#define END     (START + BYTES)

static void protected_range(struct scripted_miniport *m, uint32_t regions)
{
	const DXGK_SEGMENTFLAGS flags = {.VprSupported = 1};

	wddm2_1(m);
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags |= flags.Value;
	m->settings.segment[0].vpr_offset = START;
	m->settings.segment[0].vpr_bytes = BYTES;
	m->settings.segment[0].vpr_alignment = UNIT;
	m->settings.segment[0].vpr_reserve_bytes = RESERVE;
	m->settings.segment[0].vpr_regions = regions;
}

static void any_number(struct scripted_miniport *m)
{
	protected_range(m, 0);
}

static void one_region(struct scripted_miniport *m)
{
	protected_range(m, 1);
}

static HRESULT try_allocate(struct client_device *device, uint64_t bytes, uint32_t flags,
			    uint32_t set, D3DKMT_HANDLE *a)
{
	const struct scripted_allocation spec = {
		.size_bytes = bytes, .flags = PHYSICAL | flags, .read_set = set, .write_set = set};

	return wddm2_try_allocate(device, &spec, a);
}

static D3DKMT_HANDLE allocate(struct client_device *device, uint64_t bytes, uint32_t flags)
{
	D3DKMT_HANDLE a;

	assert_int_equal(try_allocate(device, bytes, flags, WORLD_MEMORY, &a), S_OK);
	return a;
}

/*
 * Makes a fresh allocation resident. Returns the offset that the Fill was built for.
 */
static uint64_t place(struct world *w, struct client_device *device,
		      const D3DDDICB_CREATEPAGINGQUEUE *queue, D3DKMT_HANDLE a)
{
	wddm2_make(w, device, queue, &a, 1);
	const DXGKARG_BUILDPAGINGBUFFER *op =
		&scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER,
			      scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER) - 1)
			 ->in.paging;

	assert_int_equal(op->Operation, DXGK_OPERATION_FILL);
	assert_int_equal(op->Fill.Destination.SegmentId, 1);
	return (uint64_t)op->Fill.Destination.SegmentAddress.QuadPart - SCRIPTED_MEMORY_BASE;
}

/*
 * At aligned offsets behind the reserve, in whole units; also an allocation that prefers, or
 * supports, other segments.
 */
static void alf_26_a_vpr_allocation_is_placed_in_the_protected_range(void **state)
{
	static const uint64_t sizes[] = {20 * KIB, UNIT, 100 * KIB, 4 * KIB, 512 * KIB};
	struct world w;

	for (uint32_t i = 0; i < 2; i++) {
		bool taken[BYTES / UNIT] = {false};

		world_start(&w, state, i ? one_region : any_number);
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
		for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			const struct scripted_allocation spec = {
				.size_bytes = sizes[s],
				.flags = PHYSICAL | IN_VPR,
				.read_set = WORLD_MEMORY | WORLD_APERTURE,
				.write_set = WORLD_MEMORY | WORLD_APERTURE,
				.preferred = 2};
			D3DKMT_HANDLE a;

			assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
			uint64_t at = place(&w, &w.device, &queue, a);
			assert_true(at >= FIRST && at + sizes[s] <= END);
			assert_int_equal(at % UNIT, 0);
			for (uint64_t u = at; u < at + sizes[s]; u += UNIT) {
				assert_false(taken[(u - START) / UNIT]);
				taken[(u - START) / UNIT] = true;
			}
		}
		vidmm_adapter_check(w.client.adapter);
		wddm2_stop(&w);
	}
}

/*
 * For content that is not protected 14 MiB remain without the range, which is reserved only if
 * NumVprSupported is not 0.
 */
static void alf_26_a_region_limit_reserves_the_protected_range(void **state)
{
	struct world w;

	for (uint32_t limited = 0; limited < 2; limited++) {
		uint32_t inside = 0;

		world_start(&w, state, limited ? one_region : any_number);
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
		for (uint32_t i = 0; i < 14; i++) {
			uint64_t at = place(&w, &w.device, &queue,
					    allocate(&w.device, MIB, i & 1 ? FROM_END : 0));

			inside += at + MIB > FIRST && at < END;
		}
		assert_int_equal(inside != 0, !limited);
		D3DDDI_MAKERESIDENT args;
		D3DKMT_HANDLE more = allocate(&w.device, MIB, 0);
		HRESULT result = wddm2_try_make_one(&w.device, &queue, more, &args);
		if (limited) {
			assert_int_equal(result, E_OUTOFMEMORY);
			assert_int_equal(args.NumBytesToTrim, MIB);
		} else {
			assert_true(result == S_OK || result == E_PENDING);
		}
		wddm2_run(&w);
		wddm2_stop(&w);
	}
}

static void alf_26_a_full_protected_range_is_out_of_memory(void **state)
{
	struct world w;
	D3DDDI_MAKERESIDENT args;
	D3DKMT_HANDLE a;

	world_start(&w, state, any_number);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	(void)place(&w, &w.device, &queue, allocate(&w.device, BYTES - RESERVE - UNIT, IN_VPR));
	/* A page takes one unit; the next unit does not exist. */
	uint64_t at = place(&w, &w.device, &queue, allocate(&w.device, PAGE_BYTES, IN_VPR));
	assert_int_equal(at, END - UNIT);
	D3DKMT_HANDLE more = allocate(&w.device, PAGE_BYTES, IN_VPR);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, more, &args), E_OUTOFMEMORY);
	assert_int_equal(args.NumBytesToTrim, UNIT);
	/* outside the range there is space */
	(void)place(&w, &w.device, &queue, allocate(&w.device, MIB, 0));
	/* An allocation that could never fit is not created. */
	assert_int_equal(try_allocate(&w.device, BYTES - RESERVE + 1, IN_VPR, WORLD_MEMORY, &a),
			 D3DERR_OUTOFVIDEOMEMORY);
	world_expect_finding(&w, "ALF-26");
	assert_int_equal(try_allocate(&w.device, UNIT, IN_VPR, WORLD_APERTURE, &a), E_INVALIDARG);
	world_expect_finding(&w, "ALF-26");
	wddm2_stop(&w);
}

static void alf_26_without_a_protected_range_creation_is_refused(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, wddm2_1);
	assert_int_equal(try_allocate(&w.device, UNIT, IN_VPR, WORLD_MEMORY, &a), E_INVALIDARG);
	world_expect_finding(&w, "ALF-26");
	assert_int_equal(try_allocate(&w.device, UNIT, 0, WORLD_MEMORY, &a), S_OK);
	world_stop(&w);
}

/*
 * Two devices need more of the range together than there is: they take turns, and nothing outside
 * of the range is evicted, not even what begins where the range ends.
 */
static void alf_26_only_allocations_in_the_range_are_evicted_for_it(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;

	world_start(&w, state, one_region);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), second = wddm2_queue(&other);
	D3DKMT_HANDLE below = allocate(&w.device, START, 0),
		      above = allocate(&w.device, 16 * MIB - END, FROM_END),
		      ours = allocate(&w.device, MIB, IN_VPR),
		      theirs = allocate(&other, MIB, IN_VPR);
	assert_int_equal(place(&w, &w.device, &queue, below), 0);
	assert_int_equal(place(&w, &w.device, &queue, above), END);
	(void)place(&w, &w.device, &queue, ours);
	world_submit_write(&w.context, ours, 4, 0x2601);
	world_run(&w);
	vidmm_settle(w.client.host);
	uint64_t at = place(&w, &other, &second, theirs);
	assert_true(at >= FIRST && at + MIB <= END);
	assert_true(wddm2_is_in_memory(&w.device, below));
	assert_true(wddm2_is_in_memory(&w.device, above));
	assert_false(wddm2_is_in_memory(&w.device, ours));
	world_submit_write(&others, theirs, 4, 0x2602);
	world_run(&w);
	world_submit_use(&w.context, ours); /* returns to the same range */
	world_run(&w);
	vidmm_settle(w.client.host);
	assert_true(wddm2_is_in_memory(&w.device, ours));
	assert_false(wddm2_is_in_memory(&other, theirs));
	assert_true(wddm2_is_in_memory(&w.device, below));
	assert_true(wddm2_is_in_memory(&w.device, above));
	vidmm_adapter_check(w.client.adapter);
	assert_int_equal(world_word(&w, ours, 4), 0x2601);
	client_context_end(&others);
	client_close(&other);
	wddm2_stop(&w);
}

static void range_at_the_end(struct scripted_miniport *m)
{
	one_region(m);
	m->settings.segment[0].vpr_offset = 14 * MIB;
}

/*
 * Pinned as well: it must be in the range and in the last fifth. A second one finds no space, and
 * is not created.
 */
static void alf_26_pag_19_a_pinned_vpr_allocation_is_in_range_and_last_fifth(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, range_at_the_end);
	assert_int_equal(try_allocate(&w.device, MIB, IN_VPR | OVERLAY, WORLD_MEMORY, &a), S_OK);
	const DXGKARG_BUILDPAGINGBUFFER *op =
		&scripted_nth(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, 0)->in.paging;
	assert_int_equal(op->Operation, DXGK_OPERATION_FILL);
	assert_int_equal((uint64_t)op->Fill.Destination.SegmentAddress.QuadPart,
			 SCRIPTED_MEMORY_BASE + 15 * MIB);
	assert_int_equal(try_allocate(&w.device, MIB, IN_VPR | OVERLAY, WORLD_MEMORY, &a),
			 D3DERR_OUTOFVIDEOMEMORY);
	/* Other pinned content is not placed in the range: 1.2 MiB of the last fifth remain. */
	assert_int_equal(try_allocate(&w.device, MIB, OVERLAY, WORLD_MEMORY, &a), S_OK);
	assert_int_equal(w.client.findings, 0);
	assert_int_equal(try_allocate(&w.device, 2 * MIB, OVERLAY, WORLD_MEMORY, &a),
			 D3DERR_OUTOFVIDEOMEMORY);
	world_expect_finding(&w, "PAG-19");
	wddm2_stop(&w);
}

/*
 * After a power cycle pinned content returns to its placement, the rest of the list to the range.
 */
static void alf_26_pnp_05_vpr_allocations_return_to_the_range_after_power_on(void **state)
{
	const DXGKARG_BUILDPAGINGBUFFER *op;
	const struct scripted_call *call;
	struct world w;
	D3DKMT_HANDLE list[2];
	uint32_t from, in = 0;

	world_start(&w, state, range_at_the_end);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	/* A page takes one unit here as well. */
	assert_int_equal(
		try_allocate(&w.device, PAGE_BYTES, IN_VPR | OVERLAY, WORLD_MEMORY, &list[0]),
		S_OK);
	list[1] = allocate(&w.device, 100 * KIB, IN_VPR);
	wddm2_make(&w, &w.device, &queue, list, 2);
	world_submit_write(&w.context, list[0], 4, 0x11);
	world_submit_write(&w.context, list[1], 4, 0x22);
	wddm2_run(&w);
	from = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
	world_submit_use(&w.context, list[0]);
	wddm2_run(&w);
	vidmm_adapter_check(w.client.adapter);
	for (uint32_t i = from;
	     (call = scripted_nth(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)) != NULL; i++) {
		op = &call->in.paging;
		if (op->Operation != DXGK_OPERATION_TRANSFER || op->Transfer.Source.SegmentId)
			continue;
		uint64_t at = (uint64_t)op->Transfer.Destination.SegmentAddress.QuadPart -
			      SCRIPTED_MEMORY_BASE;
		bool overlay = at == 16 * MIB - UNIT;

		assert_true(overlay ||
			    (at >= 14 * MIB + RESERVE && at + 2 * UNIT <= 16 * MIB - UNIT));
		assert_int_equal(at % UNIT, 0);
		in += overlay ? 1 : 0x10;
	}
	assert_int_equal(in, 0x11);
	assert_int_equal(world_word(&w, list[0], 4), 0x11);
	assert_int_equal(world_word(&w, list[1], 4), 0x22);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(alf_26_a_vpr_allocation_is_placed_in_the_protected_range),
		ON_BOTH(alf_26_a_region_limit_reserves_the_protected_range),
		ON_BOTH(alf_26_a_full_protected_range_is_out_of_memory),
		ON_BOTH(alf_26_without_a_protected_range_creation_is_refused),
		ON_BOTH(alf_26_only_allocations_in_the_range_are_evicted_for_it),
		ON_BOTH(alf_26_pag_19_a_pinned_vpr_allocation_is_in_range_and_last_fifth),
		ON_BOTH(alf_26_pnp_05_vpr_allocations_return_to_the_range_after_power_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
