/* SPDX-License-Identifier: MIT */
/*
 * What a miniport may report of segments and paging buffers, and the DDI calls that follow: pitch
 * (SEG-10), private data of paging buffers (SEG-21), the dummy page behind unmapped aperture pages
 * (PAG-10), a busy allocation (PAG-08), swizzling ranges (SWZ-02, SWZ-28).
 */
#include "sched_world.h"

#include <sched.h>
#include <string.h>

#define PITCH_ALIGNMENT  0x20u
#define ACQUIRE_APERTURE 0x40u
#define SIZE             (1 * MIB)
#define PITCHED          (4 * MIB)

static void pitched(struct scripted_miniport *m)
{
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags |= PITCH_ALIGNMENT;
}

static HRESULT try_allocate(struct world *w, const struct scripted_allocation *spec,
			    D3DKMT_HANDLE *a)
{
	struct scripted_allocation private_data = *spec;
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &private_data,
				      .PrivateDriverDataSize = sizeof(private_data)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	HRESULT result = w->device.cb->pfnAllocateCb(w->device.handle, &args);

	*a = info.hAllocation;
	return result;
}

static struct scripted_allocation wish(uint64_t pitch_aligned_bytes, uint32_t set)
{
	return (struct scripted_allocation){.size_bytes = SIZE,
					    .pitch_aligned_bytes = pitch_aligned_bytes,
					    .flags = WORLD_CPU_VISIBLE,
					    .read_set = set,
					    .write_set = set};
}

/*
 * The n-th operation of that kind (from 0), only out of segments if `out`. Returns NULL if there
 * are fewer.
 */
static const DXGKARG_BUILDPAGINGBUFFER *operation(const struct world *w, uint32_t kind, bool out,
						  uint32_t n)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)) != NULL;
	     i++) {
		const DXGKARG_BUILDPAGINGBUFFER *op = &call->in.paging;

		if ((uint32_t)op->Operation == kind && (!out || op->Transfer.Source.SegmentId) &&
		    n-- == 0)
			return op;
	}
	return NULL;
}

/* 16 MiB hold four allocations of 1 MiB, because each takes 4. Only the content is transferred. */
static void seg_10_takes_pitchalignedsize_in_the_segment_and_size_in_others(void **state)
{
	const struct scripted_allocation spec = wish(PITCHED - 100, WORLD_MEMORY);
	D3DKMT_HANDLE a[5];
	struct world w;

	world_start(&w, state, pitched);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(try_allocate(&w, &spec, &a[i]), S_OK);
		world_submit_write(&w.context, a[i], SIZE - 4, 0x100 + i);
		world_run(&w);
	}
	for (uint32_t i = 0; i < 5; i++) {
		const DXGKARG_BUILDPAGINGBUFFER *fill =
			operation(&w, DXGK_OPERATION_FILL, false, i);

		assert_int_equal(fill->Fill.FillSize, PITCHED); /* no content of a former owner */
		assert_int_equal((fill->Fill.Destination.SegmentAddress.QuadPart -
				  (LONGLONG)SCRIPTED_MEMORY_BASE) %
					 PITCHED,
				 0);
		assert_int_equal(client_residency(&w.device, a[i]) == 1, i != 0);
	}
	const DXGKARG_BUILDPAGINGBUFFER *out = operation(&w, DXGK_OPERATION_TRANSFER, true, 0);
	assert_int_equal(out->Transfer.TransferSize, SIZE);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(world_word(&w, a[i], SIZE - 4), 0x100 + i);
	vidmm_adapter_check(w.client.adapter);
	world_stop(&w);
}

/* Preferred or not. In an aperture its Size counts. */
static void seg_10_pitchalignedsize_zero_is_never_placed_in_the_segment(void **state)
{
	struct scripted_allocation spec = wish(0, WORLD_MEMORY | WORLD_APERTURE);
	D3DKMT_HANDLE a;
	struct world w;

	world_start(&w, state, pitched);
	spec.preferred = 1;
	assert_int_equal(try_allocate(&w, &spec, &a), S_OK);
	world_submit_write(&w.context, a, 0, 0x10);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, a), 2);
	assert_int_equal(operation(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, false, 0)
				 ->MapApertureSegment.NumberOfPages,
			 SIZE / PAGE_BYTES);
	spec.pitch_aligned_bytes = PITCHED;
	assert_int_equal(try_allocate(&w, &spec, &a), S_OK);
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, a), 1);
	world_stop(&w);
}

static void seg_10_pitchalignedsize_below_size_is_refused(void **state)
{
	const struct scripted_allocation bad[] = {
		wish(0, WORLD_MEMORY), wish(SIZE - 1, WORLD_MEMORY),
		wish(PAGE_BYTES, WORLD_MEMORY | WORLD_APERTURE), wish(UINT64_MAX, WORLD_MEMORY)};
	struct scripted_allocation fine = wish(SIZE, WORLD_MEMORY);
	D3DKMT_HANDLE a;
	struct world w;

	world_start(&w, state, pitched);
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(try_allocate(&w, &bad[i], &a), E_INVALIDARG);
		world_expect_finding(&w, "SEG-10");
		assert_int_equal(a, 0);
		assert_int_equal(w.m->live_allocations, 0);
	}
	assert_int_equal(try_allocate(&w, &fine, &a), S_OK); /* no more than Size */
	fine = wish(1, WORLD_APERTURE);                      /* which is ignored there */
	assert_int_equal(try_allocate(&w, &fine, &a), S_OK);
	world_stop(&w);
	world_start(&w, state, NULL); /* nor on an adapter without such a segment */
	assert_int_equal(try_allocate(&w, &bad[2], &a), S_OK);
	world_stop(&w);
}

/* the CPU never sees the GPU's byte order. */
static void seg_10_q_26_a_lock_evicts_content_to_system_memory(void **state)
{
	const struct scripted_allocation spec = wish(PITCHED, WORLD_MEMORY);
	D3DKMT_HANDLE a;
	struct world w;

	world_start(&w, state, pitched);
	assert_int_equal(try_allocate(&w, &spec, &a), S_OK);
	world_submit_write(&w.context, a, 8, 0x24);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, a), 1);
	assert_int_equal(world_word(&w, a, 8), 0x24);
	assert_int_equal(client_residency(&w.device, a), 3);
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 8), 0x24);
	world_stop(&w);
}

/* ---- SEG-21: private data of paging buffers ---- */

enum { PRIVATE_BYTES = 64, NOTE_BYTES = 8, BUFFERS = 40 };

/* What the miniport has written into each buffer's private data; checks that it is unchanged. */
struct notes {
	struct {
		char *start;
		char bytes[PRIVATE_BYTES];
	} buffer[BUFFERS];
	uint32_t buffers, operations, full, submitted;
	const char *wrong;
};

static void note(struct notes *notes, DXGKARG_BUILDPAGINGBUFFER *args)
{
	char *at = args->pDmaBufferPrivateData;
	char *start = at ? at + args->DmaBufferPrivateDataSize - PRIVATE_BYTES : NULL;
	static const char nothing[PRIVATE_BYTES];
	uint32_t i = 0;

	while (i < notes->buffers && notes->buffer[i].start != start)
		i++;
	if (!start || i == BUFFERS) {
		notes->wrong = "no private data, or no end of buffers";
		return;
	}
	if (i == notes->buffers) {
		notes->buffer[notes->buffers++].start = start;
		if (memcmp(start, nothing, PRIVATE_BYTES))
			notes->wrong = "a new buffer's private data is not zero";
	} else if (memcmp(start, notes->buffer[i].bytes, PRIVATE_BYTES)) {
		notes->wrong = "private data was changed by another writer than the miniport";
	}
	notes->operations++;
	if (args->DmaBufferPrivateDataSize < NOTE_BYTES) {
		notes->full++;
		return;
	}
	memset(at, (int)notes->operations, NOTE_BYTES);
	memcpy(notes->buffer[i].bytes, start, PRIVATE_BYTES);
	args->pDmaBufferPrivateData = at + NOTE_BYTES;
}

static void keep_notes(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct notes *notes = context;
	const DXGKARG_SUBMITCOMMAND *s = &call->in.submit;

	(void)m;
	if (call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER && call->status == STATUS_SUCCESS)
		note(notes, call->args);
	if (call->ddi != VIDMM_DDI_SUBMIT_COMMAND || !s->Flags.Paging)
		return;
	uint32_t i = 0;
	while (i < notes->buffers && notes->buffer[i].start != s->pDmaBufferPrivateData)
		i++;
	if (i == notes->buffers || s->DmaBufferPrivateDataSize != PRIVATE_BYTES ||
	    s->DmaBufferPrivateDataSubmissionEndOffset <
		    s->DmaBufferPrivateDataSubmissionStartOffset ||
	    memcmp(s->pDmaBufferPrivateData, notes->buffer[i].bytes, PRIVATE_BYTES))
		notes->wrong = "a packet does not come with what was written for it";
	notes->submitted++;
}

static void with_private_data(struct scripted_miniport *m)
{
	m->settings.complete_at_once = true;
	m->settings.paging_private_bytes = PRIVATE_BYTES;
}

static void seg_21_paging_private_data_is_written_by_the_miniport_only(void **state)
{
	struct notes notes = {.buffers = 0};
	D3DKMT_HANDLE a[6];
	struct world w;

	world_start(&w, state, with_private_data);
	w.m->hook_context = &notes;
	w.m->hook = keep_notes;
	for (uint32_t i = 0; i < 6; i++)
		a[i] = world_allocate(&w, 4 * MIB, WORLD_MEMORY);
	for (uint32_t round = 0; round < 24; round++) {
		world_submit_write(&w.context, a[round * 5 % 6], 0, round);
		world_run(&w);
	}
	assert_true(notes.operations > 20 && notes.submitted > 10);
	if (notes.wrong)
		fail_msg("%s", notes.wrong);
	w.m->hook = NULL;
	world_stop(&w);
}

/* ---- PAG-10 ---- */

static void pag_10_unmapped_aperture_pages_lead_to_a_readable_dummy_page(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a = world_allocate(&w, 3 * PAGE_BYTES, WORLD_APERTURE);
	world_submit_write(&w.context, a, 0, 0x5EC4E7);
	world_run(&w);
	const DXGKARG_BUILDPAGINGBUFFER *map =
		operation(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, false, 0);
	uint64_t at = SCRIPTED_APERTURE_BASE + map->MapApertureSegment.OffsetInPages * PAGE_BYTES;
	uint32_t word = 0;
	assert_true(scripted_gpu_access(w.m, 2, at, &word, sizeof(word), false));
	assert_int_equal(word, 0x5EC4E7);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_run(&w);
	while (!operation(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, false, 0))
		vidmm_settle(w.client.host);
	world_run(&w);
	for (uint32_t page = 0; page < 3; page++) {
		assert_true(scripted_gpu_access(w.m, 2, at + page * PAGE_BYTES, &word, sizeof(word),
						false));
		assert_int_equal(word, 0); /* and shows no content of any allocation */
	}
	world_stop(&w);
}

/* ---- PAG-08 ---- */

struct busy {
	uint32_t operation, node;
	_Atomic uint32_t refused, accepted;
	bool in_use; /* when the miniport was called again */
};

static bool is_said_to_be_idle(const DXGKARG_BUILDPAGINGBUFFER *build)
{
	switch (build->Operation) {
	case DXGK_OPERATION_TRANSFER:
		return build->Transfer.Flags.AllocationIsIdle;
	case DXGK_OPERATION_SPECIAL_LOCK_TRANSFER:
		return build->SpecialLockTransfer.Flags.AllocationIsIdle;
	default:
		return build->DiscardContent.Flags.AllocationIsIdle;
	}
}

static void answer_busy(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct busy *busy = context;
	const DXGKARG_BUILDPAGINGBUFFER *build = &call->in.paging;

	if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER ||
	    (uint32_t)build->Operation != busy->operation ||
	    (build->Operation == DXGK_OPERATION_TRANSFER && !build->Transfer.Source.SegmentId))
		return;
	if (is_said_to_be_idle(build)) {
		busy->in_use |= scripted_outstanding(m, busy->node) != 0;
		atomic_fetch_add(&busy->accepted, 1);
		return;
	}
	*(DXGKARG_BUILDPAGINGBUFFER *)call->args = *build; /* nothing is written */
	call->status = STATUS_GRAPHICS_ALLOCATION_BUSY;
	atomic_fetch_add(&busy->refused, 1);
}

struct submitter {
	struct world *w;
	D3DKMT_HANDLE allocation;
};

static void submit_use(void *argument)
{
	struct submitter *s = argument;

	world_submit_use(&s->w->context, s->allocation);
}

/*
 * DMA-35: a running buffer has the allocation in its list without a patch location, so it may be
 * paged. The miniport answers that its GPU uses it. The operation is retried when that buffer is
 * complete.
 */
static void pag_08_busy_paging_is_retried_after_listing_buffers_complete(void **state)
{
	struct busy busy = {.operation = DXGK_OPERATION_TRANSFER};
	struct vidmm_thread *thread;
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE listed = world_allocate(&w, 8 * MIB, WORLD_MEMORY),
		      other = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	struct submitter s = {.w = &w, .allocation = world_allocate(&w, 12 * MIB, WORLD_MEMORY)};
	world_submit_use(&w.context, other); /* at one end of the segment */
	world_submit_write(&w.context, listed, 0, 0x8008);
	world_run(&w);
	client_use(&w.context, listed, false);
	world_submit_use(&w.context, other);
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	w.m->hook_context = &busy;
	w.m->hook = answer_busy;
	assert_int_equal(vidmm_thread_create(w.client.host, "submits", submit_use, &s, &thread), 0);
	while (!atomic_load(&busy.refused))
		vidmm_settle(w.client.host);
	vidmm_settle(w.client.host);
	assert_int_equal(busy.accepted, 0); /* the GPU still uses it */
	assert_int_equal(scripted_complete(w.m, 0, 1), 1);
	while (!atomic_load(&busy.accepted)) {
		scripted_complete(w.m, 1, UINT32_MAX);
		vidmm_settle(w.client.host);
	}
	assert_false(busy.in_use);
	w.m->settings.complete_at_once = true;
	scripted_complete_all(w.m);
	vidmm_thread_join(thread);
	world_run(&w);
	assert_int_equal(busy.refused, 1);
	assert_int_equal(world_word(&w, listed, 0), 0x8008);
	w.m->hook = NULL;
	world_stop(&w);
}

/* ---- swizzling ranges ---- */

static void three_ranges(struct scripted_miniport *m)
{
	m->settings.complete_at_once = true;
	m->settings.caps.NumberOfSwizzlingRanges = 3;
}

static void swz_02_range_address_is_segment_base_plus_offset(void **state)
{
	struct world w;

	world_start(&w, state, three_ranges);
	D3DKMT_HANDLE a[3];
	for (uint32_t i = 0; i < 3; i++) {
		a[i] = world_allocate(&w, (i + 1) * PAGE_BYTES, WORLD_MEMORY);
		world_submit_use(&w.context, a[i]);
		world_run(&w);
	}
	for (uint32_t i = 0; i < 3; i++) {
		client_lock(&w.device, a[i], ACQUIRE_APERTURE);
		assert_int_equal(client_unlock(&w.device, a[i]), S_OK);
		const DXGKARG_ACQUIRESWIZZLINGRANGE *range =
			&scripted_nth(w.m, VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE, i)->in.acquire;
		uint64_t offset = (uint64_t)operation(&w, DXGK_OPERATION_FILL, false, i)
					  ->Fill.Destination.SegmentAddress.QuadPart -
				  SCRIPTED_MEMORY_BASE;

		assert_int_equal(range->RangeId, i);
		assert_int_equal(range->RangeSize, (i + 1) * PAGE_BYTES);
		assert_int_equal(range->SegmentId, 1);
		assert_int_equal((uint64_t)range->CPUTranslatedAddress.QuadPart,
				 w.m->bar_physical + offset);
	}
	world_stop(&w);
}

struct inside {
	_Atomic uint32_t acquiring, releasing, acquired, released;
	_Atomic bool twice;
};

static void look_inside(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct inside *inside = context;
	bool acquires = call->ddi == VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE;
	_Atomic uint32_t *in = acquires ? &inside->acquiring : &inside->releasing;

	(void)m;
	if (!acquires && call->ddi != VIDMM_DDI_RELEASE_SWIZZLING_RANGE)
		return;
	if (atomic_fetch_add(in, 1))
		atomic_store(&inside->twice, true);
	for (volatile uint32_t i = 0; i < 200; i++)
		;
	atomic_fetch_add(acquires ? &inside->acquired : &inside->released, 1);
	atomic_fetch_sub(in, 1);
}

struct locker {
	struct world *w;
	struct vidmm_thread *thread;
	D3DKMT_HANDLE allocation;
	uint32_t failures;
	bool sim;
};

static void lock_again_and_again(void *argument)
{
	struct locker *l = argument;

	for (uint32_t locked = 0; locked < 200 && !l->failures;) {
		D3DKMT_HANDLE handle = l->allocation;
		HRESULT result =
			client_try_lock(&l->w->device, &handle, ACQUIRE_APERTURE | 0x20, NULL);

		if (result == S_OK) {
			l->failures += client_unlock(&l->w->device, handle) != S_OK;
			locked++;
		} else { /* the others hold them all */
			l->failures += result != D3DERR_NOTAVAILABLE;
			if (l->sim)
				vidmm_settle(l->w->client.host);
			else
				sched_yield();
		}
	}
}

/* Fewer ranges than threads, so that each lock takes a range from another thread. */
static void swz_28_acquire_and_release_calls_do_not_overlap(void **state)
{
	struct inside inside = {.acquiring = 0};
	struct locker lockers[5];
	struct world w;

	world_start(&w, state, three_ranges);
	for (uint32_t i = 0; i < 5; i++) {
		lockers[i] =
			(struct locker){.w = &w,
					.allocation = world_allocate(&w, 64 * KIB, WORLD_MEMORY),
					.sim = *state == &world_sim};
		world_submit_use(&w.context, lockers[i].allocation);
	}
	world_run(&w);
	w.m->hook_context = &inside;
	w.m->hook = look_inside;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(vidmm_thread_create(w.client.host, "locker", lock_again_and_again,
						     &lockers[i], &lockers[i].thread),
				 0);
	for (uint32_t i = 0; i < 5; i++) {
		vidmm_thread_join(lockers[i].thread);
		assert_int_equal(lockers[i].failures, 0);
	}
	assert_false(inside.twice);
	assert_true(inside.acquired > 3 && inside.released >= inside.acquired - 3);
	w.m->hook = NULL;
	client_forget(&w.client); /* SWZ-10, if none was left */
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(seg_10_takes_pitchalignedsize_in_the_segment_and_size_in_others),
		ON_SIM(seg_10_pitchalignedsize_zero_is_never_placed_in_the_segment),
		ON_SIM(seg_10_pitchalignedsize_below_size_is_refused),
		ON_SIM(seg_10_q_26_a_lock_evicts_content_to_system_memory),
		ON_SIM(seg_21_paging_private_data_is_written_by_the_miniport_only),
		ON_SIM(pag_10_unmapped_aperture_pages_lead_to_a_readable_dummy_page),
		ON_SIM(pag_08_busy_paging_is_retried_after_listing_buffers_complete),
		ON_SIM(swz_02_range_address_is_segment_base_plus_offset),
		ON_BOTH(swz_28_acquire_and_release_calls_do_not_overlap),
	};

	return cmocka_run_group_tests_name("sched segments", tests, NULL, NULL);
}
