/* SPDX-License-Identifier: MIT */
/*
 * Idle allocations that move inside a memory segment so that something finds room in one piece (SPL-13): when they do, when
 * they must not, and what the miniport is asked for. Memory is 16 MiB.
 */
#include "sched_world.h"

#define QUARTER (4u * MIB)
#define HALF    (8u * MIB)

static uint64_t bytes_moved(struct world *w)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};

	vidmm_adapter_statistics(w->client.adapter, &s);
	return s.bytes_moved;
}

static bool is_move(const struct scripted_call *call)
{
	return call->in.paging.Operation == DXGK_OPERATION_TRANSFER &&
	       call->in.paging.Transfer.Source.SegmentId &&
	       call->in.paging.Transfer.Source.SegmentId ==
		       call->in.paging.Transfer.Destination.SegmentId;
}

/* The n-th Transfer of which both sides are in the same segment; NULL: there are fewer. */
static const struct scripted_call *nth_move(const struct world *w, uint32_t n)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)) != NULL;
	     i++)
		if (is_move(call) && !n--)
			return call;
	return NULL;
}

struct scattered {
	struct world w;
	D3DKMT_HANDLE quarter[4], half;
};

/* Four quarters that fill memory, all idle; and what needs two of them in one piece. */
static void start(struct scattered *s, void **state)
{
	world_start(&s->w, state, NULL);
	s->w.m->settings.complete_at_once = true;
	for (uint32_t i = 0; i < 4; i++) {
		s->quarter[i] = world_allocate(&s->w, QUARTER, WORLD_MEMORY);
		world_submit_write(&s->w.context, s->quarter[i], 0, 0x60 + i);
	}
	s->half = world_allocate(&s->w, HALF, WORLD_MEMORY);
}

/* Every other quarter, and the half: all of them fit, but not where the quarters are. */
static void submit_scattered(struct scattered *s)
{
	world_use(&s->w.context, s->quarter[0]);
	world_use(&s->w.context, s->quarter[2]);
	world_write(&s->w.context, s->half, 0, 0x64);
	client_submit(&s->w.context);
	world_run(&s->w);
}

static void stop(struct scattered *s)
{
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(world_word(&s->w, s->quarter[i], 0), 0x60 + i);
	assert_int_equal(world_word(&s->w, s->half, 0), 0x64);
	vidmm_adapter_check(s->w.client.adapter);
	world_stop(&s->w);
}

static void spl_13_a_scattered_set_moves_together(void **state)
{
	struct scattered s;

	start(&s, state);
	submit_scattered(&s);
	assert_int_equal(world_render_submits(&s.w), 5);
	assert_int_equal(bytes_moved(&s.w), QUARTER);
	const struct scripted_call *move = nth_move(&s.w, 0);
	assert_non_null(move);
	assert_null(nth_move(&s.w, 1));
	uint64_t from = (uint64_t)move->in.paging.Transfer.Source.SegmentAddress.QuadPart;
	uint64_t to = (uint64_t)move->in.paging.Transfer.Destination.SegmentAddress.QuadPart;
	assert_int_equal(move->in.paging.Transfer.Source.SegmentId, 1);
	assert_int_equal(move->in.paging.Transfer.TransferSize, QUARTER);
	assert_int_equal(move->in.paging.Transfer.TransferOffset, 0);
	assert_int_equal(move->in.paging.Transfer.Flags.TransferStart, 1);
	assert_int_equal(move->in.paging.Transfer.Flags.TransferEnd, 1);
	assert_int_equal((from > to ? from - to : to - from) % QUARTER, 0);
	assert_int_not_equal(from, to);
	/* PAT-02: the packet has the addresses of afterwards. */
	const DXGK_ALLOCATIONLIST *list =
		world_nth_of(&s.w, VIDMM_DDI_PATCH, false, 4)->allocations;
	assert_int_equal(list[0].PhysicalAddress.QuadPart == (LONGLONG)to ||
				 list[1].PhysicalAddress.QuadPart == (LONGLONG)to,
			 1);
	assert_int_not_equal(list[0].PhysicalAddress.QuadPart, (LONGLONG)from);
	assert_int_not_equal(list[1].PhysicalAddress.QuadPart, (LONGLONG)from);
	stop(&s);
}

/* Whoever is not wanted leaves; nothing moves for that. */
static void spl_13_nothing_moves_while_somebody_can_leave(void **state)
{
	struct scattered s;

	start(&s, state);
	world_use(&s.w.context, s.quarter[0]);
	world_write(&s.w.context, s.half, 0, 0x64);
	client_submit(&s.w.context);
	world_run(&s.w);
	assert_int_equal(world_render_submits(&s.w), 5);
	assert_int_equal(bytes_moved(&s.w), 0);
	assert_null(nth_move(&s.w, 0));
	stop(&s);
}

/* PAG-08: the miniport says that the GPU still has it; the second call says that it is idle. */
static void busy_once(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	uint32_t *calls = context;

	(void)m;
	if (call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER && is_move(call) && !(*calls)++)
		call->status = STATUS_GRAPHICS_ALLOCATION_BUSY;
}

static void pag_08_spl_13_a_move_may_have_to_wait(void **state)
{
	struct scattered s;
	uint32_t calls = 0;

	start(&s, state);
	s.w.m->hook_context = &calls;
	s.w.m->hook = busy_once;
	submit_scattered(&s);
	s.w.m->hook = NULL;
	assert_int_equal(calls, 2);
	assert_int_equal(nth_move(&s.w, 0)->in.paging.Transfer.Flags.AllocationIsIdle, 0);
	assert_int_equal(nth_move(&s.w, 1)->in.paging.Transfer.Flags.AllocationIsIdle, 1);
	stop(&s);
}

static void fail_moves(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context;
	(void)m;
	if (call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER && is_move(call))
		call->status = STATUS_UNSUCCESSFUL;
}

static void pag_09_spl_13_a_move_that_fails_ends_the_adapter(void **state)
{
	struct scattered s;

	start(&s, state);
	s.w.m->hook = fail_moves;
	world_use(&s.w.context, s.quarter[0]);
	world_use(&s.w.context, s.quarter[2]);
	world_write(&s.w.context, s.half, 0, 0x64);
	(void)client_try_submit(&s.w.context);
	client_idle(&s.w.client);
	assert_int_equal(s.w.fatals, 1);
	s.w.m->hook = NULL;
	s.w.expected_fatals = 1;
	client_forget(&s.w.client);
	world_stop(&s.w);
}

static uint64_t address_of(const struct world *w, uint32_t submission)
{
	const struct scripted_call *patch = world_nth_of(w, VIDMM_DDI_PATCH, false, submission);

	return (uint64_t)patch->allocations[0].PhysicalAddress.QuadPart;
}

/* It would be the cheaper one to move: without the lock it is moved. */
static void move_one_of_two(void **state, bool locked)
{
	struct world w;
	uint32_t *word = NULL;

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE large = world_allocate(&w, QUARTER, WORLD_MEMORY),
		      between = world_allocate(&w, QUARTER, WORLD_MEMORY),
		      small = world_allocate(&w, QUARTER / 2, WORLD_MEMORY),
		      half = world_allocate(&w, HALF, WORLD_MEMORY);
	world_submit_write(&w.context, large, 0, 1);
	world_submit_use(&w.context, between);
	world_submit_write(&w.context, small, 0, 2);
	world_run(&w);
	assert_int_equal(client_deallocate(&w.device, between), S_OK);
	if (locked)
		word = client_lock(&w.device, small, 0);
	world_use(&w.context, large);
	if (!locked)
		world_use(&w.context, small);
	world_write(&w.context, half, 0, 3);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 4);
	assert_non_null(nth_move(&w, 0));
	assert_null(nth_move(&w, 1));
	assert_int_equal(nth_move(&w, 0)->in.paging.Transfer.Source.SegmentAddress.QuadPart,
			 (LONGLONG)address_of(&w, locked ? 0 : 2));
	if (locked) {
		assert_int_equal(*word, 2);
		assert_int_equal(client_unlock(&w.device, small), S_OK);
	}
	assert_int_equal(world_word(&w, large, 0), 1);
	assert_int_equal(world_word(&w, small, 0), 2);
	assert_int_equal(world_word(&w, half, 0), 3);
	world_stop(&w);
}

static void spl_13_the_cheaper_one_moves(void **state)
{
	move_one_of_two(state, false);
}

static void spl_13_what_the_cpu_holds_does_not_move(void **state)
{
	move_one_of_two(state, true);
}

/* The CPU finds what was moved, and waits until it is there. */
static void spl_13_the_cpu_finds_what_has_moved(void **state)
{
	struct scattered s;

	start(&s, state);
	submit_scattered(&s);
	assert_int_equal(bytes_moved(&s.w), QUARTER);
	for (uint32_t i = 0; i < 4; i += 2) {
		uint32_t *word = client_lock(&s.w.device, s.quarter[i], 0);

		assert_int_equal(*word, 0x60 + i);
		word[1] = 0x70 + i;
		assert_int_equal(client_unlock(&s.w.device, s.quarter[i]), S_OK);
		assert_int_equal(client_residency(&s.w.device, s.quarter[i]), 1);
	}
	submit_scattered(&s); /* everything is where it has to be */
	assert_int_equal(bytes_moved(&s.w), QUARTER);
	for (uint32_t i = 0; i < 4; i += 2)
		assert_int_equal(world_word(&s.w, s.quarter[i], 4), 0x70 + i);
	stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(spl_13_a_scattered_set_moves_together),
		ON_BOTH(spl_13_nothing_moves_while_somebody_can_leave),
		ON_BOTH(pag_08_spl_13_a_move_may_have_to_wait),
		ON_BOTH(pag_09_spl_13_a_move_that_fails_ends_the_adapter),
		ON_BOTH(spl_13_the_cheaper_one_moves),
		ON_BOTH(spl_13_what_the_cpu_holds_does_not_move),
		ON_BOTH(spl_13_the_cpu_finds_what_has_moved),
	};

	return cmocka_run_group_tests_name("sched compact", tests, NULL, NULL);
}
