/* SPDX-License-Identifier: MIT */
/*
 * DMA buffers that are split because their working set does not fit at once (SPL, and PAT about
 * portions).
 */
#include "sched_world.h"

#include <pthread.h>

#define COMMAND ((UINT)sizeof(struct scripted_command))
#define ROOM    2u /* textures that fit together */

/* Video memory for two textures of 64 KiB; a table of four slots. */
static void little_memory(struct scripted_miniport *m)
{
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes =
		(uint64_t)ROOM * 64 * KIB;
	m->settings.caps.MaxAllocationListSlotId = 4;
}

static void little_memory_preemption(struct scripted_miniport *m)
{
	little_memory(m);
	m->settings.caps.SchedulingCaps.MultiEngineAware = 1;
	m->settings.caps.SchedulingCaps.PreemptionAware = 1;
}

static void little_memory_no_patching(struct scripted_miniport *m)
{
	little_memory_preemption(m);
	m->settings.caps.SchedulingCaps.NoDmaPatching = 1;
}

static void little_memory_no_slots(struct scripted_miniport *m)
{
	little_memory(m);
	m->settings.caps.MaxAllocationListSlotId = 0;
}

/* One engine, no preemption, no contexts of the miniport. */
static void little_memory_and_nothing_else(struct scripted_miniport *m)
{
	little_memory(m);
	m->settings.caps.SchedulingCaps.Value = 0;
	m->settings.caps.MemoryManagementCaps.PagingNode = 0;
}

static void textures(struct world *w, D3DKMT_HANDLE *a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		a[i] = world_allocate(w, 64 * KIB, WORLD_MEMORY);
}

/*
 * Appends a command that writes `value` to the start of the allocation in that slot; the buffer may
 * be split before it.
 */
static void draw(struct client_context *context, D3DKMT_HANDLE allocation, uint32_t slot,
		 uint32_t value)
{
	struct scripted_command command = {.op = SCRIPTED_WRITE,
					   .size_bytes = COMMAND,
					   .allocation = client_use(context, allocation, true),
					   .slot = slot,
					   .value = value,
					   .split = 1};

	world_command(context, &command);
}

/* The same, at the split point of the previous command. */
static void draw_with(struct client_context *context, D3DKMT_HANDLE allocation, uint32_t slot,
		      uint32_t value)
{
	struct scripted_command command = {.op = SCRIPTED_WRITE,
					   .size_bytes = COMMAND,
					   .allocation = client_use(context, allocation, true),
					   .slot = slot,
					   .value = value};

	world_command(context, &command);
}

/* PAT-09. The GPU finds no address in it, which it counts as a fault. */
static void unbind(struct world *w, struct client_context *context, uint32_t slot, uint32_t split)
{
	struct scripted_command command = {.op = SCRIPTED_USE,
					   .size_bytes = COMMAND,
					   .allocation = context->allocations,
					   .slot = slot,
					   .split = split};

	context->c.pAllocationList[context->allocations++] = (D3DDDI_ALLOCATIONLIST){0};
	world_command(context, &command);
	w->expected_faults++;
}

static uint64_t splits(const struct world *w)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};

	vidmm_adapter_statistics(w->client.adapter, &s);
	return s.splits;
}

/*
 * Checks SPL-03, SPL-07, PAT-15, PAT-16, SUB-19 over all render portions of the one submitted
 * buffer of `bytes` bytes and `patches` patch locations.
 */
static void assert_portions(const struct world *w, uint32_t bytes, uint32_t patches)
{
	uint32_t count = world_render_submits(w), offset = 0, patch = 0, fence = 0;

	for (uint32_t i = 0; i < count; i++) {
		const DXGKARG_PATCH *p = &world_nth_of(w, VIDMM_DDI_PATCH, false, i)->in.patch;
		const DXGKARG_SUBMITCOMMAND *s =
			&world_nth_of(w, VIDMM_DDI_SUBMIT_COMMAND, false, i)->in.submit;

		assert_int_equal(p->DmaBufferSubmissionStartOffset, offset);
		assert_int_equal(s->DmaBufferSubmissionStartOffset, offset);
		assert_int_equal(s->DmaBufferSubmissionEndOffset, p->DmaBufferSubmissionEndOffset);
		assert_true(s->DmaBufferSubmissionEndOffset > offset);
		offset = s->DmaBufferSubmissionEndOffset;
		assert_int_equal(p->PatchLocationListSubmissionStart, patch);
		assert_int_equal(p->PatchLocationListSize, patches);
		patch += p->PatchLocationListSubmissionLength;
		assert_int_equal(s->SubmissionFenceId, p->SubmissionFenceId);
		assert_true(!i || (int32_t)(s->SubmissionFenceId - fence) > 0);
		fence = s->SubmissionFenceId;
		assert_int_equal(s->DmaBufferPrivateDataSubmissionStartOffset, 0);
	}
	assert_int_equal(offset, bytes);
	assert_int_equal(patch, patches);
	world_assert_fences(w);
}

static void assert_words(struct world *w, const D3DKMT_HANDLE *a, uint32_t count, uint32_t first)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(world_word(w, a[i], 0), first + i);
}

struct split_seen {
	pthread_mutex_t lock; /* events come from several threads */
	uint64_t offset, patch;
};

static void on_split(void *context, const struct vidmm_event *event, const char *text)
{
	struct split_seen *seen = context;

	(void)text;
	pthread_mutex_lock(&seen->lock);
	seen->offset = event->arg[0];
	seen->patch = event->arg[1];
	pthread_mutex_unlock(&seen->lock);
}

static void spl_02_a_working_set_that_does_not_fit_runs_in_portions(void **state)
{
	struct world w;
	struct split_seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory);
	assert_int_not_equal(
		vidmm_subscribe(w.client.host, 1ull << VIDMM_EVENT_SPLIT, on_split, &seen), 0);
	textures(&w, a, 3);
	for (uint32_t i = 0; i < 3; i++)
		draw(&w.context, a[i], 0, 0x20 + i);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2); /* two fit; the third is the rest */
	assert_int_equal(world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)
				 ->in.submit.DmaBufferSubmissionEndOffset,
			 2 * COMMAND);
	assert_portions(&w, 3 * COMMAND, 3);
	assert_int_equal(splits(&w), 1);
	pthread_mutex_lock(&seen.lock);
	assert_int_equal(seen.offset, 2 * COMMAND);
	assert_int_equal(seen.patch, 2);
	pthread_mutex_unlock(&seen.lock);
	assert_words(&w, a, 3, 0x20);
	world_stop(&w);
}

/*
 * Two of three fit and are used in turns. The third replaces the one that is needed last, although
 * it was used last. Least recently used would page each in twice.
 */
static void spl_02_q_66_the_allocation_needed_last_is_evicted_first(void **state)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory);
	textures(&w, a, 3);
	for (uint32_t i = 0; i < 5; i++) /* 0 1 2 0 1 */
		draw(&w.context, a[i % 3], 0, 0x20 + i);
	client_submit(&w.context);
	world_run(&w);
	assert_portions(&w, 5 * COMMAND, 5);
	assert_int_equal(splits(&w), 2);
	vidmm_adapter_statistics(w.client.adapter, &s);
	assert_int_equal(s.bytes_filled, 3 * 64 * KIB);
	assert_int_equal(s.bytes_paged_in, 64 * KIB); /* the second one is paged in again */
	assert_int_equal(world_word(&w, a[0], 0), 0x23);
	assert_int_equal(world_word(&w, a[1], 0), 0x24);
	assert_int_equal(world_word(&w, a[2], 0), 0x22);
	world_stop(&w);
}

/*
 * Where paging runs on the same node, only submission order puts it before the portion that needs
 * it (SUB-03).
 */
static void spl_04_splitting_works_on_the_paging_node(void **state)
{
	struct world w;
	struct client_context copy;
	D3DKMT_HANDLE a[5];

	world_start(&w, state, little_memory);
	client_context(&w.device, 1, &copy);
	textures(&w, a, 5);
	for (uint32_t i = 0; i < 5; i++)
		draw(&copy, a[i], 0, 0x28 + i);
	client_submit(&copy);
	world_run(&w);
	assert_int_equal(splits(&w), 2);
	assert_portions(&w, 5 * COMMAND, 5);
	assert_words(&w, a, 5, 0x28);
	client_context_end(&copy);
	world_stop(&w);
}

static void spl_01_a_buffer_that_fits_is_not_split(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[ROOM];

	world_start(&w, state, little_memory);
	textures(&w, a, ROOM);
	for (uint32_t i = 0; i < 4 * ROOM; i++)
		draw(&w.context, a[i % ROOM], 0, 0x20 + i % ROOM);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	assert_portions(&w, 4 * ROOM * COMMAND, 4 * ROOM);
	assert_int_equal(splits(&w), 0);
	assert_words(&w, a, ROOM, 0x20);
	world_stop(&w);
}

/* SPL-04: between two portions, memory is paged for the next one. */
static void spl_04_paging_runs_between_portions(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];
	uint32_t renders = 0, between = 0;

	world_start(&w, state, little_memory);
	textures(&w, a, 3);
	for (uint32_t i = 0; i < 3; i++)
		draw(&w.context, a[i], 0, i);
	client_submit(&w.context);
	world_run(&w);
	for (uint32_t i = 0; i < scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND); i++) {
		const struct scripted_call *call = scripted_nth(w.m, VIDMM_DDI_SUBMIT_COMMAND, i);

		if (!call->in.submit.Flags.Paging)
			renders++;
		else if (renders == 1)
			between++;
	}
	assert_int_equal(renders, 2);
	assert_true(between > 0);
	world_stop(&w);
}

static void spl_11_a_buffer_may_be_split_many_times(void **state)
{
	enum { COUNT = 32 };
	struct world w;
	D3DKMT_HANDLE a[COUNT];

	world_start(&w, state, little_memory);
	textures(&w, a, COUNT);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < COUNT / 2; i++)
			draw(&w.context, a[COUNT / 2 * round + i], 0, 0x40 + i);
		client_submit(&w.context);
		world_run(&w);
		assert_int_equal(splits(&w), (round + 1) * (COUNT / 2 / ROOM - 1));
		assert_int_equal(world_render_submits(&w), (round + 1) * COUNT / 2 / ROOM);
		if (!round)
			assert_portions(&w, COUNT / 2 * COMMAND, COUNT / 2);
	}
	assert_words(&w, a, COUNT / 2, 0x40);
	assert_words(&w, a + COUNT / 2, COUNT / 2, 0x40);
	world_stop(&w);
}

/* The oldest in memory, and referenced once only; but bound. */
static void spl_05_bound_allocations_keep_their_addresses(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[5];

	world_start(&w, state, little_memory);
	textures(&w, a, 5);
	for (uint32_t i = 0; i < 5; i++)
		draw(&w.context, a[i], i ? 1 : 0, 0x50 + i);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(splits(&w), 3);
	assert_portions(&w, 5 * COMMAND, 5);
	const DXGK_ALLOCATIONLIST *first = world_nth_of(&w, VIDMM_DDI_PATCH, false, 0)->allocations;
	assert_int_equal(first[0].SegmentId, 1);
	for (uint32_t i = 1; i < 4; i++) {
		const DXGK_ALLOCATIONLIST *later =
			world_nth_of(&w, VIDMM_DDI_PATCH, false, i)->allocations;

		assert_int_equal(later[0].SegmentId, 1);
		assert_int_equal(later[0].PhysicalAddress.QuadPart,
				 first[0].PhysicalAddress.QuadPart);
	}
	assert_words(&w, a, 5, 0x50);
	world_stop(&w);
}

/*
 * Memory for two. Three slots of the first buffer hold other allocations than the second buffer's
 * slots. If the second started with those slots, it could not run.
 */
static void pat_06_a_buffer_begins_with_an_empty_resource_table(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[5];

	world_start(&w, state, little_memory);
	textures(&w, a, 5);
	draw(&w.context, a[0], 2, 0x58);
	draw(&w.context, a[1], 3, 0x59);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(splits(&w), 0);
	draw(&w.context, a[2], 0, 0x5A);
	draw(&w.context, a[3], 1, 0x5B);
	draw(&w.context, a[4], 0, 0x5C);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(splits(&w), 1);
	assert_words(&w, a, 5, 0x58);
	world_stop(&w);
}

static void spl_06_slots_reprogrammed_at_the_split_point_may_move(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, little_memory);
	textures(&w, a, 4);
	draw(&w.context, a[0], 0, 0x60);
	draw_with(&w.context, a[1], 1, 0x61);
	draw(&w.context, a[2], 0, 0x62);
	draw_with(&w.context, a[3], 1, 0x63);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	assert_portions(&w, 4 * COMMAND, 4);
	assert_words(&w, a, 4, 0x60);
	world_stop(&w);
}

/* PAT-09: unbound by a NULL element, before the split point or at it. */
static void pat_09_unbound_allocations_may_be_evicted(void **state)
{
	for (uint32_t at_the_split_point = 0; at_the_split_point < 2; at_the_split_point++) {
		struct world w;
		D3DKMT_HANDLE a[3];

		world_start(&w, state, little_memory);
		textures(&w, a, 3);
		draw(&w.context, a[0], 0, 0x70);
		draw(&w.context, a[1], 1, 0x71);
		unbind(&w, &w.context, 0, 1);
		if (at_the_split_point)
			draw_with(&w.context, a[2], 2, 0x72);
		else
			draw(&w.context, a[2], 2, 0x72);
		client_submit(&w.context);
		world_run(&w);
		assert_int_equal(splits(&w), 1);
		assert_portions(&w, 4 * COMMAND, 4);
		assert_words(&w, a, 3, 0x70);
		world_stop(&w);
	}
}

static void assert_in_error(struct world *w, D3DKMT_HANDLE a)
{
	draw(&w->context, a, 0, 0);
	assert_int_equal(client_try_submit(&w->context), D3DDDIERR_DEVICEREMOVED);
}

/*
 * Two that fill the memory each, in one slot: the second replaces the first, which is evicted. In
 * two slots both would be bound.
 */
static void pat_08_a_later_entry_of_a_slot_frees_the_former_allocation(void **state)
{
	for (uint32_t slots = 1; slots <= 2; slots++) {
		const struct scripted_allocation spec = {.size_bytes = (uint64_t)ROOM * 64 * KIB,
							 .flags = WORLD_CPU_VISIBLE,
							 .read_set = WORLD_MEMORY,
							 .write_set = WORLD_MEMORY};
		struct world w;
		D3DKMT_HANDLE a[2];

		world_start(&w, state, little_memory);
		a[0] = world_allocate_as(&w.device, &spec);
		a[1] = world_allocate_as(&w.device, &spec);
		draw(&w.context, a[0], 0, 0x80);
		draw(&w.context, a[1], slots - 1, 0x81);
		client_submit(&w.context);
		world_run(&w);
		assert_int_equal(splits(&w), 1);
		if (slots == 1) {
			assert_portions(&w, 2 * COMMAND, 2);
			assert_words(&w, a, 2, 0x80);
		} else {
			assert_in_error(&w, a[0]); /* SPL-12 */
		}
		world_stop(&w);
	}
}

/* Both that fit are bound when the third is needed: no portion is small enough. */
static void spl_12_bound_allocations_that_leave_no_space_are_out_of_memory(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory);
	textures(&w, a, 3);
	for (uint32_t i = 0; i < 3; i++)
		draw(&w.context, a[i], i, i);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1); /* its first portion has run */
	assert_int_equal(splits(&w), 1);
	assert_in_error(&w, a[0]);
	world_stop(&w);
}

/* Three references at one split point. */
static void spl_12_one_split_point_that_cannot_fit_is_out_of_memory(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, little_memory);
	textures(&w, a, 4);
	draw(&w.context, a[0], 0, 0);
	draw(&w.context, a[1], 0, 0);
	draw_with(&w.context, a[2], 1, 0);
	draw_with(&w.context, a[3], 2, 0);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)
				 ->in.submit.DmaBufferSubmissionEndOffset,
			 COMMAND);
	assert_in_error(&w, a[0]);
	world_stop(&w);
}

/* PAT-07: with MaxAllocationListSlotId 0 nothing is ever unbound. */
static void pat_07_with_maximum_zero_nothing_is_unbound(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory_no_slots);
	textures(&w, a, 3);
	for (uint32_t i = 0; i < 3; i++)
		draw(&w.context, a[i], 0, i);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	assert_in_error(&w, a[0]);
	world_stop(&w);
}

/* SPL-07: an allocation that only the first portion used is busy until the last one completes. */
static void spl_07_the_last_portion_completes_the_buffer(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory);
	textures(&w, a, 3);
	D3DKMT_HANDLE locked = a[0];
	for (uint32_t i = 0; i < 3; i++)
		draw(&w.context, a[i], 0, 0x80 + i);
	client_submit(&w.context);
	while (world_render_submits(&w) < 2) { /* paging, on node 1, and the first portion */
		scripted_complete(w.m, 1, UINT32_MAX);
		if (world_render_submits(&w) == 1)
			scripted_complete(w.m, 0, 1);
		vidmm_settle(w.client.host);
	}
	assert_int_equal(client_try_lock(&w.device, &locked, 0x4, NULL), D3DERR_WASSTILLDRAWING);
	world_run(&w);
	assert_int_equal(world_word(&w, a[0], 0), 0x80);
	world_stop(&w);
}

/*
 * SPL-09: no packet of another context comes between, although it would fit and its node is free.
 */
static void spl_09_portions_run_back_to_back(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;
	const struct scripted_allocation spec = {
		.size_bytes = 64 * KIB, .read_set = WORLD_APERTURE, .write_set = WORLD_APERTURE};
	D3DKMT_HANDLE a[6];

	world_start(&w, state, little_memory);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DKMT_HANDLE b = world_allocate_as(&other, &spec);
	textures(&w, a, 6);
	for (uint32_t i = 0; i < 6; i++)
		draw(&w.context, a[i], 0, 0x90 + i);
	client_submit(&w.context);
	world_submit_use(&others, b);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 4);
	HANDLE mine = world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.hContext;
	for (uint32_t i = 1; i < 4; i++) {
		const DXGKARG_SUBMITCOMMAND *s =
			&world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, i)->in.submit;

		assert_true((s->hContext == mine) == (i < 3));
	}
	assert_words(&w, a, 6, 0x90);
	w.m->settings.complete_at_once = true;
	client_context_end(&others);
	client_close(&other);
	world_stop(&w);
}

/* A packet behind a split buffer that uses the same memory finds what the last portion wrote. */
static void spl_07_a_later_packet_sees_the_writes_of_all_portions(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[6];

	world_start(&w, state, little_memory);
	textures(&w, a, 6);
	w.m->settings.complete_at_once = true;
	for (uint32_t round = 0; round < 6; round++) {
		for (uint32_t i = 0; i < 6; i++)
			draw(&w.context, a[(round + i) % 6], 0, 0x100 * round + (round + i) % 6);
		client_submit(&w.context);
	}
	world_run(&w);
	assert_words(&w, a, 6, 0x500);
	world_assert_fences(&w);
	world_stop(&w);
}

static void spl_14_a_slot_left_bound_is_reported_as_a_leak(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory_preemption);
	textures(&w, a, 3);
	draw(&w.context, a[0], 0, 0);
	draw(&w.context, a[1], 1, 0);
	draw(&w.context, a[2], 1, 0);
	client_submit(&w.context);
	world_run(&w);
	world_expect_finding(&w, "SPL-14");
	assert_int_equal(world_render_submits(&w), 1);
	assert_in_error(&w, a[0]);
	world_stop(&w);
}

static void spl_14_reprogrammed_or_unbound_slots_are_no_leak(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory_preemption);
	textures(&w, a, 3);
	draw(&w.context, a[0], 0, 0xA0);
	draw(&w.context, a[1], 1, 0xA1);
	draw(&w.context, a[2], 1, 0xA2);
	unbind(&w, &w.context, 0, 0);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(splits(&w), 1);
	assert_words(&w, a, 3, 0xA0);
	world_stop(&w);
}

static void spl_15_no_dma_patching_disables_leak_detection(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory_no_patching);
	textures(&w, a, 3);
	draw(&w.context, a[0], 0, 0xB0);
	draw(&w.context, a[1], 1, 0xB1);
	draw(&w.context, a[2], 1, 0xB2);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(splits(&w), 1);
	assert_words(&w, a, 3, 0xB0);
	world_stop(&w);
}

/* Three in one slot, where two fit. */
static void submit_three(struct world *w, D3DKMT_HANDLE *a)
{
	textures(w, a, 3);
	for (uint32_t i = 0; i < 3; i++)
		draw(&w->context, a[i], 0, 0xC0 + i);
	client_submit(&w->context);
}

/* Until the miniport has the first portion, which the GPU has not started. */
static void await_first_portion(struct world *w)
{
	while (world_render_submits(w) < 1) {
		scripted_complete(w->m, 1, UINT32_MAX);
		vidmm_settle(w->client.host);
	}
}

static BOOLEAN report_fault(PVOID context)
{
	struct world *w = context;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType = DXGK_INTERRUPT_DMA_FAULTED};

	data.DmaFaulted.FaultedFenceId =
		world_nth_of(w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.SubmissionFenceId;
	data.DmaFaulted.Status = STATUS_ACCESS_VIOLATION;
	w->m->services.DxgkCbNotifyInterrupt(w->m->services.DeviceHandle, &data);
	return w->m->services.DxgkCbQueueDpc(w->m->services.DeviceHandle);
}

/* A fault in a portion loses the buffer's device; no thread waits for the other portions. */
static void spl_07_a_portion_that_faults_loses_the_device(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];
	BOOLEAN result;

	world_start(&w, state, little_memory);
	submit_three(&w, a);
	await_first_portion(&w);
	w.m->settings.ignore_fences = true;
	assert_int_equal(scripted_complete(w.m, 0, 1), 1);
	w.m->settings.ignore_fences = false;
	w.m->services.DxgkCbSynchronizeExecution(w.m->services.DeviceHandle, report_fault, &w, 0,
						 &result);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	assert_in_error(&w, a[0]);
	world_stop(&w);
}

static void fail_later_portions(void *context, struct scripted_miniport *m,
				struct scripted_call *call)
{
	(void)context;
	(void)m;
	if (call->ddi == VIDMM_DDI_PATCH && call->in.patch.DmaBufferSubmissionStartOffset &&
	    !call->in.patch.Flags.Paging)
		call->status = STATUS_UNSUCCESSFUL;
}

static void pat_18_a_failed_patch_of_a_later_portion_stops_the_adapter(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory);
	w.m->hook = fail_later_portions;
	submit_three(&w, a);
	world_run(&w);
	world_expect_finding(&w, "PAT-18");
	assert_int_equal(w.fatals, 1);
	assert_int_equal(world_render_submits(&w), 1);
	w.expected_fatals = 1;
	world_stop(&w);
}

/* The adapter stops while the GPU runs a portion: it is abandoned, and so are the others. */
static void spl_07_portions_are_abandoned_when_the_adapter_stops(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3], b;

	world_start(&w, state, little_memory);
	b = world_allocate(&w, 64 * KIB, WORLD_APERTURE);
	submit_three(&w, a);
	await_first_portion(&w);
	scripted_report(w.m, 0, 0x7); /* SUB-12: an id that was never submitted */
	client_idle(&w.client);
	world_expect_finding(&w, "SUB-12");
	world_use(&w.context, b);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	w.expected_fatals = 1;
	world_stop(&w);
}

/* A NULL element behind the last command. */
static void append_unbinding(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARG_RENDER *args = call->args;

	(void)context;
	(void)m;
	if (call->ddi == VIDMM_DDI_RENDER)
		*args->pPatchLocationListOut++ = (D3DDDI_PATCHLOCATIONLIST){
			.AllocationIndex = args->AllocationListSize - 1,
			.SplitOffset = 0x10000,
			.PatchOffset = 0x10000,
		};
}

/* LKR-01 would move an allocation that the CPU has locked; a bound one stays. */
static void spl_05_bound_allocations_stay_while_the_cpu_locks_them(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4], locked;

	world_start(&w, state, little_memory);
	textures(&w, a + 1, 3);
	a[0] = world_allocate(&w, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	for (uint32_t i = 0; i < 4; i++)
		draw(&w.context, a[i], i ? 1 : 0, 0xE0 + i);
	client_submit(&w.context);
	await_first_portion(&w);
	locked = a[0];
	/* DonotWait, IgnoreSync */
	assert_int_equal(client_try_lock(&w.device, &locked, 0xC, NULL), S_OK);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(
			world_nth_of(&w, VIDMM_DDI_PATCH, false, i)->allocations[0].SegmentId, 1);
	assert_int_equal(client_unlock(&w.device, a[0]), S_OK);
	assert_words(&w, a, 4, 0xE0);
	world_stop(&w);
}

/* Its commands run; only the end of the list, which unbinds, is no split point. */
static void spl_12_unbinding_behind_the_last_command_is_no_split_point(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory);
	textures(&w, a, 3);
	for (uint32_t i = 0; i < 3; i++)
		draw_with(&w.context, a[i], i, 0);
	w.m->hook = append_unbinding;
	w.context.c.pAllocationList[w.context.allocations++] = (D3DDDI_ALLOCATIONLIST){0};
	client_submit(&w.context);
	w.m->hook = NULL;
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 0);
	assert_in_error(&w, a[0]);
	world_stop(&w);
}

static void little_memory_mapped(struct scripted_miniport *m)
{
	little_memory(m);
	m->settings.context.DmaBufferSegmentSet = WORLD_APERTURE;
}

/* DMA-05: the buffer is mapped into the aperture for each of its portions. */
static void dma_05_a_split_buffer_is_mapped(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, little_memory_mapped);
	submit_three(&w, a);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, i)
					 ->in.submit.DmaBufferSegmentId,
				 2);
	assert_words(&w, a, 3, 0xC0);
	world_stop(&w);
}

/* Destroyed while it runs: what was queued still completes (SUB-29). */
static void spl_07_a_context_is_destroyed_after_all_portions_complete(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];
	struct client_context copy;

	world_start(&w, state, little_memory);
	w.m->settings.complete_at_once = true;
	client_context(&w.device, 0, &copy);
	textures(&w, a, 3);
	for (uint32_t i = 0; i < 3; i++)
		draw(&copy, a[i], 0, 0xD0 + i);
	client_submit(&copy);
	client_context_end(&copy);
	assert_int_equal(world_render_submits(&w), 2);
	assert_words(&w, a, 3, 0xD0);
	world_stop(&w);
}

static void little_memory_for_three(struct scripted_miniport *m)
{
	little_memory(m);
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes =
		(uint64_t)3 * 64 * KIB;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

/*
 * One or two textures of `mine` in each command group, in two slots: with the bound ones never more
 * than three.
 */
static void draw_at_random(struct client_context *context, const D3DKMT_HANDLE *mine,
			   uint32_t *words, uint32_t *seed)
{
	bool may_join = false;

	for (uint32_t count = 1 + next_random(seed) % 24, slot = 0; count; count--) {
		uint32_t which = next_random(seed) % 8, value = next_random(seed);

		if (may_join && next_random(seed) % 2) {
			draw_with(context, mine[which], slot ^ 1, value);
			may_join = false;
		} else {
			slot = next_random(seed) % 2;
			draw(context, mine[which], slot, value);
			may_join = true;
		}
		words[which] = value;
	}
	client_submit(context);
}

/* SPL-03: everything runs once and in order, wherever the buffers are split. */
static void spl_03_every_command_runs_once_and_in_order(void **state)
{
	struct world w;
	struct client_context context[2];
	D3DKMT_HANDLE a[2][8];
	uint32_t words[2][8] = {{0}}, seed = 20;

	world_start(&w, state, little_memory_for_three);
	w.m->settings.complete_at_once = true;
	for (uint32_t c = 0; c < 2; c++) {
		client_context(&w.device, c, &context[c]);
		textures(&w, a[c], 8);
	}
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t c = next_random(&seed) % 2;

		draw_at_random(&context[c], a[c], words[c], &seed);
		if (next_random(&seed) % 16)
			continue;
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(world_word(&w, a[c][i], 0), words[c][i]);
	}
	world_run(&w);
	for (uint32_t c = 0; c < 2; c++)
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(world_word(&w, a[c][i], 0), words[c][i]);
	assert_true(splits(&w) > 100);
	world_assert_fences(&w);
	world_stop(&w);
}

static void spl_08_splitting_needs_no_preemption_and_no_contexts(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[6];

	world_start(&w, state, little_memory_and_nothing_else);
	textures(&w, a, 6);
	for (uint32_t i = 0; i < 6; i++)
		draw(&w.context, a[i], 0, 0x800 + i);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(splits(&w), 2);
	assert_portions(&w, 6 * COMMAND, 6);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT), 0);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_PREEMPT_COMMAND), 0);
	assert_words(&w, a, 6, 0x800);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(spl_08_splitting_needs_no_preemption_and_no_contexts),
		ON_BOTH(spl_01_a_buffer_that_fits_is_not_split),
		ON_BOTH(spl_02_a_working_set_that_does_not_fit_runs_in_portions),
		ON_BOTH(spl_02_q_66_the_allocation_needed_last_is_evicted_first),
		ON_BOTH(spl_03_every_command_runs_once_and_in_order),
		ON_BOTH(spl_04_splitting_works_on_the_paging_node),
		ON_BOTH(spl_04_paging_runs_between_portions),
		ON_BOTH(spl_05_bound_allocations_keep_their_addresses),
		ON_BOTH(pat_06_a_buffer_begins_with_an_empty_resource_table),
		ON_BOTH(spl_06_slots_reprogrammed_at_the_split_point_may_move),
		ON_BOTH(pat_09_unbound_allocations_may_be_evicted),
		ON_BOTH(pat_07_with_maximum_zero_nothing_is_unbound),
		ON_BOTH(spl_07_the_last_portion_completes_the_buffer),
		ON_BOTH(spl_07_a_later_packet_sees_the_writes_of_all_portions),
		ON_BOTH(spl_09_portions_run_back_to_back),
		ON_BOTH(spl_11_a_buffer_may_be_split_many_times),
		ON_BOTH(pat_08_a_later_entry_of_a_slot_frees_the_former_allocation),
		ON_BOTH(spl_12_bound_allocations_that_leave_no_space_are_out_of_memory),
		ON_BOTH(spl_12_one_split_point_that_cannot_fit_is_out_of_memory),
		ON_BOTH(spl_14_a_slot_left_bound_is_reported_as_a_leak),
		ON_BOTH(spl_14_reprogrammed_or_unbound_slots_are_no_leak),
		ON_BOTH(spl_07_a_portion_that_faults_loses_the_device),
		ON_BOTH(pat_18_a_failed_patch_of_a_later_portion_stops_the_adapter),
		ON_BOTH(spl_07_portions_are_abandoned_when_the_adapter_stops),
		ON_BOTH(spl_05_bound_allocations_stay_while_the_cpu_locks_them),
		ON_BOTH(spl_12_unbinding_behind_the_last_command_is_no_split_point),
		ON_BOTH(dma_05_a_split_buffer_is_mapped),
		ON_BOTH(spl_07_a_context_is_destroyed_after_all_portions_complete),
		ON_BOTH(spl_15_no_dma_patching_disables_leak_detection),
	};

	return cmocka_run_group_tests_name("sched split", tests, NULL, NULL);
}
