/* SPDX-License-Identifier: MIT */
/*
 * Leaving full power and returning (PNP-05 to PNP-07, SEG-22, SEG-23, PAG-28). At D3 the scripted
 * device loses everything that its segment flags do not promise to preserve: memory content and
 * page tables of apertures.
 */
#include "sched_world.h"

#include <string.h>

#include <d3dkmthk.h>

enum {
	STANDBY = VIDMM_SLEEP_STANDBY,
	HIBERNATE = VIDMM_SLEEP_HIBERNATE,
	KEPT_IN_STANDBY = 0x080,
	KEPT_IN_HIBERNATE = 0x100,
	KEPT_IN_PART = 0x200,
	OVERLAY = 0x100,
	PERMANENT = 0x2,
	SYNCHRONOUS = 0x800,
	CPU_VISIBLE_SEGMENT = 0x4
};

static void forget_memory(struct scripted_miniport *m, const struct scripted_segment *s,
			  POWER_ACTION action)
{
	uint64_t from = 0;

	if (action == PowerActionSleep ? s->flags & KEPT_IN_STANDBY : s->flags & KEPT_IN_HIBERNATE)
		return;
	if (action == PowerActionHibernate && (s->flags & KEPT_IN_PART))
		from = s->system_memory_end + 1 - s->base;
	memset(m->bar + s->bar_offset + from, 0xDD, s->size_bytes - from);
}

static void forget(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context;
	if (call->ddi != VIDMM_DDI_SET_POWER_STATE || call->in.power.state == PowerDeviceD0)
		return;
	for (uint32_t i = 0; i < m->settings.segment_count; i++) {
		const struct scripted_segment *s = &m->settings.segment[i];

		if (!(s->flags & 0x1))
			forget_memory(m, s, call->in.power.action);
		else if (!(s->flags & KEPT_IN_STANDBY))
			memset(m->page_table[i], 0,
			       (s->size_bytes >> 12) * sizeof(*m->page_table[i]));
	}
}

static void at_once(struct scripted_miniport *m)
{
	m->settings.complete_at_once = true;
	m->hook = forget;
}

static void under_control(struct scripted_miniport *m)
{
	m->hook = forget;
}

static void set_power(struct world *w, uint32_t state, uint32_t sleep)
{
	assert_int_equal(vidmm_adapter_set_power(w->client.adapter, state, sleep), 0);
	vidmm_adapter_check(w->client.adapter);
}

static void sleep_and_wake(struct world *w, uint32_t sleep)
{
	set_power(w, VIDMM_POWER_D3, sleep);
	set_power(w, VIDMM_POWER_D0, 0);
}

static struct vidmm_adapter_statistics statistics(const struct world *w)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};

	vidmm_adapter_statistics(w->client.adapter, &s);
	return s;
}

/* The index of the last SetPowerState in the log of calls. */
static uint32_t last_power_call(const struct world *w)
{
	const struct scripted_call *call;
	uint32_t last = UINT32_MAX;

	for (uint32_t i = 0; (call = scripted_at(w->m, i)) != NULL; i++)
		if (call->ddi == VIDMM_DDI_SET_POWER_STATE)
			last = i;
	assert_int_not_equal(last, UINT32_MAX);
	return last;
}

static uint32_t paging_ops(const struct world *w, uint32_t operation)
{
	const struct scripted_call *call;
	uint32_t count = 0;

	for (uint32_t i = 0; (call = scripted_at(w->m, i)) != NULL; i++)
		count += call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER &&
			 call->in.paging.Operation == operation;
	return count;
}

static D3DKMT_HANDLE allocate(struct world *w, uint64_t bytes, uint32_t flags, uint32_t set)
{
	const struct scripted_allocation spec = {.size_bytes = bytes,
						 .flags = WORLD_CPU_VISIBLE | flags,
						 .read_set = set,
						 .write_set = set};

	return world_allocate_as(&w->device, &spec);
}

/* The GPU writes a different word into each; then no work is left. */
static void fill_by_gpu(struct world *w, const D3DKMT_HANDLE *a, uint32_t count, uint32_t value)
{
	for (uint32_t i = 0; i < count; i++)
		world_write(&w->context, a[i], 64, value + i);
	client_submit(&w->context);
	world_run(w);
}

static void expect_words(struct world *w, const D3DKMT_HANDLE *a, uint32_t count, uint32_t value)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(world_word(w, a[i], 64), value + i);
}

static void pnp_05_pag_28_all_memory_is_evicted_before_setpowerstate(void **state)
{
	static const uint32_t states[] = {VIDMM_POWER_D1, VIDMM_POWER_D2, VIDMM_POWER_D3};
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a[] = {world_allocate(&w, MIB, WORLD_MEMORY),
			     world_allocate(&w, MIB, WORLD_MEMORY),
			     world_allocate(&w, MIB, WORLD_APERTURE)};
	for (uint32_t i = 0; i < 3; i++) {
		fill_by_gpu(&w, a, 3, 0x500 + 16 * i);
		assert_int_equal(statistics(&w).segment[0].resident_bytes, 2 * MIB);
		scripted_forget(w.m);
		set_power(&w, states[i], STANDBY);
		assert_int_equal(statistics(&w).segment[0].resident_bytes, 0);
		assert_int_equal(statistics(&w).segment[1].resident_bytes, 0);
		assert_int_equal(statistics(&w).mapped_bytes, 0);
		assert_int_equal(paging_ops(&w, DXGK_OPERATION_TRANSFER), 2);
		assert_int_equal(paging_ops(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT), 1);
		const struct scripted_call *down = scripted_last(w.m, VIDMM_DDI_SET_POWER_STATE);
		assert_null(scripted_at(w.m, last_power_call(&w) + 1)); /* nothing after it */
		assert_int_equal(down->in.power.uid, UINT32_MAX);
		assert_int_equal(down->in.power.state, states[i]);
		assert_int_equal(down->in.power.action, PowerActionSleep);
		assert_int_equal(down->irql, PASSIVE_LEVEL);
		set_power(&w, VIDMM_POWER_D0, 0);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_SET_POWER_STATE), 2);
		assert_int_equal(scripted_last(w.m, VIDMM_DDI_SET_POWER_STATE)->in.power.state,
				 PowerDeviceD0);
		expect_words(&w, a, 3, 0x500 + 16 * i);
	}
	world_stop(&w);
}

static void pnp_05_content_is_paged_in_again_after_power_up(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a[] = {world_allocate(&w, MIB, WORLD_MEMORY),
			     world_allocate(&w, 64 * KIB, WORLD_APERTURE),
			     allocate(&w, 64 * KIB, PERMANENT, WORLD_MEMORY),
			     allocate(&w, 64 * KIB, SYNCHRONOUS, WORLD_MEMORY)};
	fill_by_gpu(&w, a, 4, 7);
	for (uint32_t round = 0; round < 3; round++) {
		sleep_and_wake(&w, round ? HIBERNATE : STANDBY);
		for (uint32_t i = 0; i < 4; i++) /* beside the existing ones */
			world_write(&w.context, a[i], 128 + 4 * round, round);
		client_submit(&w.context);
		world_run(&w);
		expect_words(&w, a, 4, 7);
	}
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t round = 0; round < 3; round++)
			assert_int_equal(world_word(&w, a[i], 128 + 4 * round), round);
	world_stop(&w);
}

static void buffers_in_the_aperture(struct scripted_miniport *m)
{
	at_once(m);
	m->settings.paging_segment = 2;
	m->settings.context.DmaBufferSegmentSet = 0x2;
}

static void pnp_05_dma_05_seg_21_dma_buffers_are_unmapped_and_mapped_again(void **state)
{
	struct world w;

	world_start(&w, state, buffers_in_the_aperture);
	D3DKMT_HANDLE a[] = {world_allocate(&w, MIB, WORLD_MEMORY),
			     world_allocate(&w, 64 * KIB, WORLD_APERTURE)};
	for (uint32_t round = 0; round < 3; round++) {
		fill_by_gpu(&w, a, 2, 30 + round);
		assert_true(statistics(&w).mapped_bytes > 64 * KIB);
		set_power(&w, VIDMM_POWER_D3, STANDBY);
		assert_int_equal(statistics(&w).mapped_bytes, 0);
		set_power(&w, VIDMM_POWER_D0, 0);
		expect_words(&w, a, 2, 30 + round);
	}
	world_stop(&w);
}

/* ---- which calls wait ---- */

struct caller {
	struct world *w;
	struct vidmm_thread *thread;
	D3DKMT_HANDLE allocation;
	void (*call)(struct caller *caller);
	struct client_device other;
	_Atomic bool done;
};

static void caller_main(void *argument)
{
	struct caller *c = argument;

	c->call(c);
	atomic_store(&c->done, true);
}

static void call_on_thread(struct caller *c, struct world *w, void (*call)(struct caller *),
			   D3DKMT_HANDLE allocation)
{
	c->w = w;
	c->call = call;
	c->allocation = allocation;
	atomic_store(&c->done, false);
	assert_int_equal(vidmm_thread_create(w->client.host, "caller", caller_main, c, &c->thread),
			 0);
}

static void settle_repeatedly(struct world *w)
{
	for (uint32_t i = 0; i < 200; i++)
		vidmm_settle(w->client.host);
}

static void call_lock(struct caller *c)
{
	assert_int_equal(world_word(c->w, c->allocation, 64), 0x77);
}

static void call_render(struct caller *c)
{
	world_submit_write(&c->w->context, c->allocation, 68, 0x78);
}

static void call_allocate(struct caller *c)
{
	world_allocate(c->w, 64 * KIB, WORLD_MEMORY);
}

static void call_create_and_destroy(struct caller *c)
{
	client_open(&c->w->client, &c->other);
	client_close(&c->other);
}

static void call_destroy(struct caller *c)
{
	client_close(&c->other);
}

static void pnp_05_pag_28_every_call_waits_for_power(void **state)
{
	static void (*const calls[])(struct caller *) = {call_lock, call_render, call_allocate,
							 call_create_and_destroy, call_destroy};
	struct caller caller[5] = {0};
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY),
		      b = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	world_submit_write(&w.context, a, 64, 0x77);
	world_run(&w);
	client_open(&w.client, &caller[4].other);
	set_power(&w, VIDMM_POWER_D3, STANDBY);
	/* LKR-02: the render must not use the allocation that call_lock locks. */
	for (uint32_t i = 0; i < 5; i++)
		call_on_thread(&caller[i], &w, calls[i], i == 1 ? b : a);
	settle_repeatedly(&w);
	for (uint32_t i = 0; i < 5; i++)
		assert_false(atomic_load(&caller[i].done));
	assert_null(scripted_at(w.m, last_power_call(&w) + 1));
	set_power(&w, VIDMM_POWER_D0, 0);
	for (uint32_t i = 0; i < 5; i++)
		vidmm_thread_join(caller[i].thread);
	world_run(&w);
	assert_int_equal(world_word(&w, b, 68), 0x78);
	world_stop(&w);
}

struct switcher {
	struct world *w;
	struct vidmm_thread *thread;
	uint32_t state;
	vidmm_status status;
	_Atomic bool done;
};

static void switcher_main(void *argument)
{
	struct switcher *s = argument;

	s->status = vidmm_adapter_set_power(s->w->client.adapter, s->state, STANDBY);
	atomic_store(&s->done, true);
}

static void switch_on_thread(struct switcher *s, struct world *w, uint32_t state)
{
	*s = (struct switcher){.w = w, .state = state};
	assert_int_equal(
		vidmm_thread_create(w->client.host, "power manager", switcher_main, s, &s->thread),
		0);
}

static void join_switcher(struct switcher *s)
{
	while (!atomic_load(&s->done)) {
		scripted_complete_all(s->w->m);
		vidmm_settle(s->w->client.host);
	}
	vidmm_thread_join(s->thread);
	assert_int_equal(s->status, 0);
}

static void pnp_05_queued_packets_run_after_power_up(void **state)
{
	struct switcher down;
	struct world w;

	world_start(&w, state, under_control);
	D3DKMT_HANDLE busy = world_allocate(&w, 12 * MIB, WORLD_MEMORY),
		      next = world_allocate(&w, 12 * MIB, WORLD_MEMORY);
	world_submit_write(&w.context, busy, 64, 1);
	/* Patch of its paging, and of the packet itself */
	world_await(&w, VIDMM_DDI_PATCH, 2);
	world_submit_write(&w.context, next, 64, 2); /* no free space beside it */
	switch_on_thread(&down, &w, VIDMM_POWER_D3);
	settle_repeatedly(&w);
	assert_false(atomic_load(&down.done)); /* the GPU has not completed it */
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SET_POWER_STATE), 0);
	join_switcher(&down);
	assert_int_equal(statistics(&w).segment[0].resident_bytes, 0);
	if (w.kind == VIDMM_HOST_SIM) /* the second was not prepared: it has no fence id yet */
		assert_int_equal(world_render_submits(&w), 1);
	switch_on_thread(&down, &w, VIDMM_POWER_D0);
	join_switcher(&down);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	assert_int_equal(world_word(&w, next, 64), 2);
	assert_int_equal(world_word(&w, busy, 64), 1);
	world_assert_fences(&w);
	world_stop(&w);
}

static void memory_for_two(struct scripted_miniport *m)
{
	under_control(m);
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes = 128 * KIB;
	m->settings.caps.MaxAllocationListSlotId = 2;
}

/*
 * Allocations bound at a split must not move (SPL-05), so the whole buffer runs before memory is
 * evicted.
 */
static void pnp_05_spl_05_a_split_buffer_completes_before_power_down(void **state)
{
	struct switcher down;
	struct world w;
	D3DKMT_HANDLE a[6];

	world_start(&w, state, memory_for_two);
	for (uint32_t i = 0; i < 6; i++) {
		a[i] = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
		const struct scripted_command draw = {.op = SCRIPTED_WRITE,
						      .size_bytes = sizeof(draw),
						      .allocation =
							      client_use(&w.context, a[i], true),
						      .slot = i % 2,
						      .offset = 64,
						      .value = 90 + i,
						      .split = 1};

		world_command(&w.context, &draw);
	}
	client_submit(&w.context);
	while (!world_render_submits(&w)) {
		scripted_complete_all(w.m); /* its paging */
		vidmm_settle(w.client.host);
	}
	switch_on_thread(&down, &w, VIDMM_POWER_D3);
	settle_repeatedly(&w);
	join_switcher(&down);
	assert_true(world_render_submits(&w) >= 3); /* two fit at once */
	assert_null(scripted_at(w.m, last_power_call(&w) + 1));
	switch_on_thread(&down, &w, VIDMM_POWER_D0);
	join_switcher(&down);
	expect_words(&w, a, 6, 90);
	world_stop(&w);
}

static uint64_t placed_at(const struct world *w, uint32_t nth_render, uint32_t index)
{
	return (uint64_t)world_nth_of(w, VIDMM_DDI_PATCH, false, nth_render)
		->allocations[index]
		.PhysicalAddress.QuadPart;
}

/*
 * On real threads that needs a kernel that can write-protect mappings; see the tests without write
 * protection.
 */
static void pag_16_pnp_05_locked_pointers_stay_valid_without_power(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a[] = {world_allocate(&w, 64 * KIB, WORLD_MEMORY),
			     allocate(&w, 64 * KIB, OVERLAY, WORLD_MEMORY),
			     world_allocate(&w, 64 * KIB, WORLD_APERTURE)};
	uint32_t *words[3];

	fill_by_gpu(&w, a, 3, 200);
	for (uint32_t i = 0; i < 3; i++)
		words[i] = client_lock(&w.device, a[i], 0);
	set_power(&w, VIDMM_POWER_D3, STANDBY);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(words[i][16], 200 + i);
		words[i][17] = 300 + i;
	}
	set_power(&w, VIDMM_POWER_D0, 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(words[i][16], 200 + i);
		assert_int_equal(words[i][17], 300 + i);
		assert_int_equal(client_unlock(&w.device, a[i]), S_OK);
	}
	fill_by_gpu(&w, a, 3, 400); /* the pinned one is in its zone again */
	assert_true(placed_at(&w, 1, 1) >= SCRIPTED_MEMORY_BASE + SCRIPTED_BAR_BYTES / 5 * 4);
	assert_int_equal(placed_at(&w, 1, 1), placed_at(&w, 0, 1));
	expect_words(&w, a, 3, 400);
	world_stop(&w);
}

/* ---- what is preserved ---- */

struct kind {
	uint32_t flags;
	bool in_standby, in_hibernate;
};
static struct kind kind;
static uint64_t kept_end;

static void of_kind(struct scripted_miniport *m)
{
	at_once(m);
	m->settings.segment[0].flags = CPU_VISIBLE_SEGMENT | kind.flags;
	m->settings.segment[0].system_memory_end = kept_end;
}

static void pnp_06_seg_22_segments_are_preserved_according_to_their_flags(void **state)
{
	static const struct kind kinds[] = {
		{0, false, false},
		{KEPT_IN_STANDBY, true, false},
		{KEPT_IN_STANDBY | KEPT_IN_HIBERNATE, true, true},
		/* here all of it is below SystemMemoryEndAddress */
		{KEPT_IN_STANDBY | KEPT_IN_PART, true, true},
	};

	kept_end = SCRIPTED_MEMORY_BASE + SCRIPTED_BAR_BYTES - 1;
	for (uint32_t k = 0; k < 4; k++) {
		struct world w;

		kind = kinds[k];
		world_start(&w, state, of_kind);
		D3DKMT_HANDLE a = world_allocate(&w, MIB, WORLD_MEMORY);
		fill_by_gpu(&w, &a, 1, 9 + k);
		set_power(&w, VIDMM_POWER_D3, STANDBY);
		assert_int_equal(statistics(&w).segment[0].resident_bytes,
				 kind.in_standby ? MIB : 0);
		set_power(&w, VIDMM_POWER_D0, 0);
		expect_words(&w, &a, 1, 9 + k);
		fill_by_gpu(&w, &a, 1, 19 + k);
		set_power(&w, VIDMM_POWER_D3, HIBERNATE);
		assert_int_equal(scripted_last(w.m, VIDMM_DDI_SET_POWER_STATE)->in.power.action,
				 PowerActionHibernate);
		assert_int_equal(statistics(&w).segment[0].resident_bytes,
				 kind.in_hibernate ? MIB : 0);
		set_power(&w, VIDMM_POWER_D0, 0);
		expect_words(&w, &a, 1, 19 + k);
		world_stop(&w);
	}
}

/*
 * Three of 1 MiB at 0, 1 and 2 MiB; the preserved part ends in the middle of the second, or at its
 * end.
 */
static void seg_23_allocations_that_end_above_the_preserved_part_are_evicted(void **state)
{
	static const struct {
		uint64_t end;
		uint32_t left_mib;
	} cases[] = {{MIB + MIB / 2, 1}, {2 * MIB - 1, 2}, {2 * MIB, 2}, {3 * MIB - 1, 3}};

	kind = (struct kind){KEPT_IN_STANDBY | KEPT_IN_PART, true, true};
	for (uint32_t c = 0; c < 4; c++) {
		struct world w;

		kept_end = SCRIPTED_MEMORY_BASE + cases[c].end;
		world_start(&w, state, of_kind);
		D3DKMT_HANDLE a[] = {world_allocate(&w, MIB, WORLD_MEMORY),
				     world_allocate(&w, MIB, WORLD_MEMORY),
				     world_allocate(&w, MIB, WORLD_MEMORY)};
		fill_by_gpu(&w, a, 3, 40);
		set_power(&w, VIDMM_POWER_D3, HIBERNATE);
		assert_int_equal(statistics(&w).segment[0].resident_bytes, cases[c].left_mib * MIB);
		set_power(&w, VIDMM_POWER_D0, 0);
		expect_words(&w, a, 3, 40);
		set_power(&w, VIDMM_POWER_D3, STANDBY);
		assert_int_equal(statistics(&w).segment[0].resident_bytes, cases[c].left_mib * MIB);
		set_power(&w, VIDMM_POWER_D0, 0);
		expect_words(&w, a, 3, 40);
		world_stop(&w);
	}
}

static void pag_18_pnp_09_pinned_allocations_return_to_their_addresses_after_power_up(void **state)
{
	struct world w;
	uint64_t before[3];

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a[] = {allocate(&w, MIB, OVERLAY, WORLD_MEMORY),
			     allocate(&w, MIB, OVERLAY, WORLD_MEMORY),
			     allocate(&w, MIB, OVERLAY, WORLD_APERTURE)};
	/* a hole at the end of the segment */
	assert_int_equal(client_deallocate(&w.device, a[0]), S_OK);
	a[0] = a[2];
	fill_by_gpu(&w, a, 2, 50);
	for (uint32_t i = 0; i < 2; i++)
		before[i] = placed_at(&w, 0, i);
	assert_int_equal(before[1], SCRIPTED_MEMORY_BASE + SCRIPTED_BAR_BYTES - 2 * MIB);
	set_power(&w, VIDMM_POWER_D3, STANDBY);
	assert_int_equal(statistics(&w).segment[0].resident_bytes, 0);
	assert_int_equal(statistics(&w).segment[1].resident_bytes, 0);
	set_power(&w, VIDMM_POWER_D0, 0);
	assert_int_equal(statistics(&w).segment[0].resident_bytes, MIB);
	assert_int_equal(statistics(&w).segment[1].resident_bytes, MIB);
	expect_words(&w, a, 2, 50);
	fill_by_gpu(&w, a, 2, 60);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(placed_at(&w, 1, i), before[i]);
	expect_words(&w, a, 2, 60);
	world_stop(&w);
}

/* ---- refused transitions, and failures ---- */

static void pnp_05_invalid_power_transitions_are_refused(void **state)
{
	static const struct {
		uint32_t state, sleep;
	} wrong[] = {{0, STANDBY},
		     {5, STANDBY},
		     {VIDMM_POWER_D3, 0},
		     {VIDMM_POWER_D3, 1},
		     {VIDMM_POWER_D3, 4}};
	struct world w;

	world_start(&w, state, at_once);
	struct vidmm_adapter *adapter = w.client.adapter;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(vidmm_adapter_set_power(adapter, wrong[i].state, wrong[i].sleep),
				 STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_adapter_set_power(NULL, VIDMM_POWER_D3, STANDBY),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_adapter_set_power(adapter, VIDMM_POWER_D0, STANDBY),
			 STATUS_INVALID_DEVICE_STATE);
	set_power(&w, VIDMM_POWER_D2, STANDBY);
	assert_int_equal(vidmm_adapter_set_power(adapter, VIDMM_POWER_D3, STANDBY),
			 STATUS_INVALID_DEVICE_STATE);
	assert_int_equal(vidmm_adapter_set_power(adapter, VIDMM_POWER_D2, STANDBY),
			 STATUS_INVALID_DEVICE_STATE);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SET_POWER_STATE), 1);
	set_power(&w, VIDMM_POWER_D0, 0);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SET_POWER_STATE), 2);
	world_stop(&w);
}

static void pnp_07_a_setpowerstate_failure_is_reported_and_ignored(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a = world_allocate(&w, MIB, WORLD_MEMORY);
	fill_by_gpu(&w, &a, 1, 3);
	scripted_fail(w.m, VIDMM_DDI_SET_POWER_STATE, STATUS_UNSUCCESSFUL, 1);
	set_power(&w, VIDMM_POWER_D3, STANDBY);
	world_expect_finding(&w, "PNP-07");
	scripted_fail(w.m, VIDMM_DDI_SET_POWER_STATE, STATUS_UNSUCCESSFUL, 1);
	set_power(&w, VIDMM_POWER_D0, 0);
	world_expect_finding(&w, "PNP-07");
	expect_words(&w, &a, 1, 3);
	scripted_fail(w.m, VIDMM_DDI_SET_POWER_STATE, STATUS_PENDING, 1); /* a success code */
	sleep_and_wake(&w, STANDBY);
	world_stop(&w);
}

static void pnp_07_queries_are_answered_without_power(void **state)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_SEGMENTSIZEINFO sizes = {0};
	struct world w;

	world_start(&w, state, at_once);
	vidmm_d3dkmt_attach(w.device.process);
	set_power(&w, VIDMM_POWER_D3, STANDBY);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_QUERYADAPTERINFO query = {.hAdapter = info.hAdapter,
					 .Type = KMTQAITYPE_GETSEGMENTSIZE,
					 .pPrivateDriverData = &sizes,
					 .PrivateDriverDataSize = sizeof(sizes)};
	assert_int_equal(D3DKMTQueryAdapterInfo(&query), STATUS_SUCCESS);
	assert_int_equal(sizes.DedicatedVideoMemorySize, SCRIPTED_BAR_BYTES);
	assert_null(scripted_at(w.m, last_power_call(&w) + 1));
	set_power(&w, VIDMM_POWER_D0, 0);
	world_stop(&w);
}

static void pnp_05_power_down_fails_without_system_memory_for_the_content(void **state)
{
	struct client_options options = {.system_memory_bytes = 6 * MIB};
	struct world w;

	world_start_with(&w, state, at_once, &options);
	world_open(&w);
	D3DKMT_HANDLE a[] = {world_allocate(&w, 4 * MIB, WORLD_MEMORY),
			     world_allocate(&w, 4 * MIB, WORLD_MEMORY)};
	fill_by_gpu(&w, a, 2, 70);
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, STANDBY),
			 STATUS_NO_MEMORY);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SET_POWER_STATE), 0);
	expect_words(&w, a, 2, 70);
	assert_int_equal(client_deallocate(&w.device, a[1]), S_OK);
	sleep_and_wake(&w, STANDBY);
	expect_words(&w, a, 1, 70);
	world_stop(&w);
}

static void pnp_02_an_adapter_that_stops_returns_to_full_power_first(void **state)
{
	struct world w;

	kind = (struct kind){KEPT_IN_STANDBY, true, false};
	world_start_adapter(&w, state, of_kind);
	world_open(&w);
	D3DKMT_HANDLE a = world_allocate(&w, MIB, WORLD_MEMORY);
	fill_by_gpu(&w, &a, 1, 1);
	set_power(&w, VIDMM_POWER_D3, STANDBY);
	scripted_forget(w.m);
	vidmm_adapter_stop(w.client.adapter);
	assert_memory_equal(scripted_order(w.m), "set_power_state build_paging_buffer",
			    strlen("set_power_state build_paging_buffer"));
	assert_int_equal(scripted_nth(w.m, VIDMM_DDI_SET_POWER_STATE, 0)->in.power.state,
			 PowerDeviceD0);
	assert_int_equal(paging_ops(&w, DXGK_OPERATION_TRANSFER), 1);
	vidmm_process_close(w.device.process);
	vidmm_host_destroy(w.client.host);
	assert_int_equal(w.client.findings, 0);
	assert_int_equal(w.m->live_allocations, 0);
	scripted_destroy(w.m);
}

static void pnp_01_the_same_device_starts_again_after_its_stop(void **state)
{
	const uint64_t bar = SCRIPTED_BAR_BYTES;
	struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						.driver_entry = scripted_driver_entry,
						.bar_sizes = &bar,
						.bar_count = 1,
						.tdr = &client_no_tdr};
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE old = world_allocate(&w, MIB, WORLD_MEMORY);
	fill_by_gpu(&w, &old, 1, 11);
	struct client_device before = w.device;
	vidmm_adapter_stop(w.client.adapter);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(vidmm_adapter_start(w.client.host, &options, &w.client.adapter),
				 0);
		/* The client has not destroyed its device of the stopped adapter. */
		assert_int_equal(client_try_lock(&before, &old, 0, NULL), D3DDDIERR_DEVICEREMOVED);
		assert_int_equal(client_deallocate(&before, old), S_OK);
		/* The process is the same one. */
		assert_int_equal(
			vidmm_device_create(before.process, w.client.adapter, &w.device.device), 0);
		w.device.handle = vidmm_device_handle(w.device.device);
		client_context(&w.device, 0, &w.context);
		D3DKMT_HANDLE a = world_allocate(&w, MIB, WORLD_MEMORY);
		assert_int_equal(world_word(&w, a, 64), 0);
		fill_by_gpu(&w, &a, 1, 12 + i);
		sleep_and_wake(&w, HIBERNATE);
		expect_words(&w, &a, 1, 12 + i);
		if (i < 2)
			vidmm_adapter_stop(w.client.adapter);
	}
	client_forget(&w.client); /* old handles and devices */
	world_stop(&w);
}

/* ---- random transitions under load ---- */

enum { WORKERS = 3, ROUNDS = 40, CYCLES = 6 };

struct worker {
	struct world *w;
	struct client_device device;
	struct client_context context;
	struct vidmm_thread *thread;
	uint32_t seed;
};

static void work(void *argument)
{
	struct worker *me = argument;
	struct client_device *d = &me->device;
	const struct scripted_allocation spec = {.size_bytes = MIB, .flags = WORLD_CPU_VISIBLE};
	D3DKMT_HANDLE a = world_allocate_as(d, &spec);

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t *words = client_lock(d, a, 0);

		words[0] = me->seed + round;
		assert_int_equal(client_unlock(d, a), S_OK);
		world_submit_write(&me->context, a, 4, me->seed - round);
		words = client_lock(d, a, 0);
		assert_int_equal(words[0], me->seed + round);
		assert_int_equal(words[1], me->seed - round);
		assert_int_equal(client_unlock(d, a), S_OK);
		if (round % 8 == 7) {
			assert_int_equal(client_deallocate(d, a), S_OK);
			a = world_allocate_as(d, &spec);
		}
		vidmm_settle(me->w->client.host);
	}
}

static void pnp_05_clients_see_no_effect_of_random_power_changes(void **state)
{
	struct worker worker[WORKERS];
	struct world w;

	world_start(&w, state, at_once);
	for (uint32_t i = 0; i < WORKERS; i++) {
		worker[i] = (struct worker){.w = &w, .seed = 1000 * (i + 1)};
		client_open(&w.client, &worker[i].device);
		client_context(&worker[i].device, i % 2, &worker[i].context);
		assert_int_equal(vidmm_thread_create(w.client.host, "worker", work, &worker[i],
						     &worker[i].thread),
				 0);
	}
	for (uint32_t cycle = 0; cycle < CYCLES; cycle++) {
		set_power(&w, cycle % 2 ? VIDMM_POWER_D3 : VIDMM_POWER_D1,
			  cycle % 3 ? STANDBY : HIBERNATE);
		assert_null(scripted_at(w.m, last_power_call(&w) + 1));
		vidmm_settle(w.client.host);
		assert_null(scripted_at(w.m, last_power_call(&w) + 1));
		set_power(&w, VIDMM_POWER_D0, 0);
		vidmm_settle(w.client.host);
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		vidmm_thread_join(worker[i].thread);
		client_context_end(&worker[i].context);
		client_close(&worker[i].device);
	}
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pnp_05_pag_28_all_memory_is_evicted_before_setpowerstate),
		ON_BOTH(pnp_05_content_is_paged_in_again_after_power_up),
		ON_BOTH(pnp_05_dma_05_seg_21_dma_buffers_are_unmapped_and_mapped_again),
		ON_BOTH(pnp_05_pag_28_every_call_waits_for_power),
		ON_BOTH(pnp_05_queued_packets_run_after_power_up),
		ON_BOTH(pnp_05_spl_05_a_split_buffer_completes_before_power_down),
		ON_SIM(pag_16_pnp_05_locked_pointers_stay_valid_without_power),
		ON_BOTH(pnp_06_seg_22_segments_are_preserved_according_to_their_flags),
		ON_BOTH(seg_23_allocations_that_end_above_the_preserved_part_are_evicted),
		ON_BOTH(pag_18_pnp_09_pinned_allocations_return_to_their_addresses_after_power_up),
		ON_BOTH(pnp_05_invalid_power_transitions_are_refused),
		ON_BOTH(pnp_07_a_setpowerstate_failure_is_reported_and_ignored),
		ON_BOTH(pnp_07_queries_are_answered_without_power),
		ON_BOTH(pnp_05_power_down_fails_without_system_memory_for_the_content),
		ON_BOTH(pnp_02_an_adapter_that_stops_returns_to_full_power_first),
		ON_BOTH(pnp_01_the_same_device_starts_again_after_its_stop),
		ON_BOTH(pnp_05_clients_see_no_effect_of_random_power_changes),
	};

	return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
