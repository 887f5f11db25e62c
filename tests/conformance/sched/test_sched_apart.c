/* SPDX-License-Identifier: MIT */
/* Processes that are in another address space, or gone: what a submission reads of theirs, and locks behind the GPU. */
#include "sched_world.h"

#include <string.h>

#include "support/apart.h"

struct waiter {
	struct client_device *device;
	D3DKMT_HANDLE a;
	HRESULT result;
	struct vidmm_thread *thread;
};

static void wait_for_lock(void *argument)
{
	struct waiter *v = argument;
	void *data;

	v->result = client_try_lock(v->device, &v->a, 0, &data);
}

static void lock_05_a_lock_of_who_is_gone_comes_back(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	struct waiter v = {.device = &w.device, .a = a};

	world_submit_use(&w.context, a);
	assert_int_equal(vidmm_thread_create(w.client.host, "waits for the GPU", wait_for_lock, &v,
					     &v.thread),
			 0);
	vidmm_settle(w.client.host);
	apart_abandon(w.device.process);
	vidmm_thread_join(v.thread);
	assert_int_equal(v.result, D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_try_lock(&w.device, &a, 0, &data), D3DDDIERR_DEVICEREMOVED);
	world_run(&w);
	world_stop(&w);
}

/* it may be written to what others share; nothing says that the miniport can do without it. */
static void q_140_what_who_is_gone_has_queued_is_finished(void **state)
{
	enum { COUNT = 6 }; /* more than the GPU has at once */
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < COUNT; i++)
		world_submit_write(&w.context, a, 4 * i, 0x1000 + i);
	assert_true(world_render_submits(&w) < COUNT);
	apart_abandon(w.device.process);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), COUNT);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(world_word(&w, a, 4 * i), 0x1000 + i);
	world_stop(&w);
}

/* What the miniport reads is not what the client can still write to. */
static void dma_14_the_miniport_gets_a_copy(void **state)
{
	struct apart_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;

	world_start(&w, state, NULL);
	apart_open(&w.client, &viewer, &device);
	client_context(&device, 0, &context);
	D3DKMT_HANDLE a = client_allocate(&device, 64 * KIB, 0);
	world_use(&context, a);
	D3DDDICB_RENDER args = world_render_args(&context);
	assert_int_equal(world_render(&context, &args), S_OK);
	const DXGKARG_RENDER *render = &scripted_last(w.m, VIDMM_DDI_RENDER)->in.render;
	const char *shown = context.c.pCommandBuffer;
	const char *read = render->pCommand;
	assert_true(read < shown || read >= shown + context.c.CommandBufferSize);
	assert_ptr_not_equal(render->pPatchLocationListIn, context.c.pPatchLocationList);
	/* DMA-11: what it may use next is what it sees. */
	assert_ptr_equal(args.pNewCommandBuffer, shown);
	assert_ptr_equal(args.pNewAllocationList, context.c.pAllocationList);
	world_run(&w);
	client_context_end(&context);
	apart_close(&viewer, &device);
	world_stop(&w);
}

struct attacker {
	struct client_context *context;
	_Atomic bool stop;
	struct vidmm_thread *thread;
};

/* Everything that a client can reach, all the time. */
static void scribble(void *argument)
{
	struct attacker *t = argument;
	D3DDDI_ALLOCATIONLIST *list = t->context->c.pAllocationList;
	D3DDDI_PATCHLOCATIONLIST *patches = t->context->c.pPatchLocationList;
	volatile uint32_t *words = t->context->c.pCommandBuffer;

	for (uint32_t n = 0; !atomic_load(&t->stop); n++) {
		((volatile D3DDDI_ALLOCATIONLIST *)list)[n % 4].hAllocation ^= n * 0x9E3779B9u;
		((volatile D3DDDI_PATCHLOCATIONLIST *)patches)[n % 4].AllocationIndex = n;
		((volatile D3DDDI_PATCHLOCATIONLIST *)patches)[n % 4].PatchOffset = n * 77;
		words[n % 64] = n * 0x85EBCA6Bu;
	}
}

static void dma_14_a_client_that_writes_meanwhile_harms_nobody(void **state)
{
	struct apart_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;
	uint32_t refused = 0;

	world_start(&w, state, NULL);
	apart_open(&w.client, &viewer, &device);
	client_context(&device, 0, &context);
	struct attacker t = {.context = &context};
	assert_int_equal(vidmm_thread_create(w.client.host, "attacker", scribble, &t, &t.thread),
			 0);
	for (uint32_t i = 0; i < 3000; i++) {
		D3DDDICB_RENDER args = {.hContext = context.c.hContext,
					.CommandLength = 256,
					.NumAllocations = 4,
					.NumPatchLocations = 4};

		refused += device.cb->pfnRenderCb(device.handle, &args) != S_OK;
		assert_ptr_equal(args.pNewCommandBuffer, context.c.pCommandBuffer);
		w.client.findings = 0;
	}
	assert_true(refused > 0);
	atomic_store(&t.stop, true);
	vidmm_thread_join(t.thread);
	/* Others go on: their handles were never reached. */
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	world_submit_write(&w.context, a, 4, 0x1234);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 4), 0x1234);
	client_context_end(&context);
	apart_close(&viewer, &device);
	client_forget(&w.client);
	world_stop(&w);
}

/* What takes turns in memory for a few of them; how often one had to leave. */
static uint64_t play_under_pressure(void **state, bool apart)
{
	enum { COUNT = 10, ROUNDS = 40 };
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};
	struct apart_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;
	D3DKMT_HANDLE a[COUNT];
	uint32_t draw = 7;

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	if (apart)
		apart_open(&w.client, &viewer, &device);
	else
		client_open(&w.client, &device);
	client_context(&device, 0, &context);
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct scripted_allocation spec = {.size_bytes = (1 + i % 4) * MIB,
							 .flags = WORLD_CPU_VISIBLE,
							 .read_set = WORLD_MEMORY,
							 .write_set = WORLD_MEMORY};

		a[i] = world_allocate_as(&device, &spec);
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < 4; i++) {
			draw = draw * 1103515245 + 12345;
			world_use(&context, a[draw / 65536 % COUNT]);
		}
		client_submit(&context);
	}
	client_idle(&w.client);
	assert_int_equal(world_render_submits(&w), ROUNDS);
	vidmm_adapter_statistics(w.client.adapter, &figures);
	client_context_end(&context);
	if (apart)
		apart_close(&viewer, &device);
	else
		client_close(&device);
	world_stop(&w);
	return figures.evictions;
}

/*
 * Who was given a place has it while paging reads what its former owner had there: nothing comes back meanwhile that left for it, and
 * has to leave again.
 */
static void spl_13_a_place_that_is_still_read_is_not_given_back(void **state)
{
	uint64_t here = play_under_pressure(state, false);

	assert_true(here > 40);
	assert_int_equal(play_under_pressure(state, true), here);
}

struct neighbour {
	struct apart_viewer viewer;
	struct client_device device;
	struct client_context context;
	D3DKMT_HANDLE a;
	uint64_t size_bytes;
};

static D3DKMT_HANDLE allocate_of(struct neighbour *n, uint64_t size_bytes)
{
	const struct scripted_allocation spec = {.size_bytes = size_bytes,
						 .flags = WORLD_CPU_VISIBLE,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};

	return world_allocate_as(&n->device, &spec);
}

/* In memory, with something of the GPU's in its first and last words. */
static void move_in(struct world *w, struct neighbour *n, uint64_t size_bytes, uint32_t value)
{
	apart_open(&w->client, &n->viewer, &n->device);
	client_context(&n->device, 0, &n->context);
	n->size_bytes = size_bytes;
	n->a = allocate_of(n, size_bytes);
	world_submit_write(&n->context, n->a, 0, value);
	world_submit_write(&n->context, n->a, size_bytes - 4, value);
	world_run(w);
}

static void move_out(struct neighbour *n, uint32_t value)
{
	const char *bytes = client_lock(&n->device, n->a, 0x1);

	assert_memory_equal(bytes, &value, sizeof(value));
	assert_memory_equal(bytes + n->size_bytes - 4, &value, sizeof(value));
	assert_int_equal(client_unlock(&n->device, n->a), S_OK);
	client_context_end(&n->context);
	apart_close(&n->viewer, &n->device);
}

/*
 * Of a place a part is still the newcomer's own, and hides nothing; the rest is another's, whose content paging has yet to read, and
 * is waited for. Neither finds anything of the other's, or loses anything.
 */
static void spl_13_of_a_place_the_part_of_others_is_waited_for(void **state)
{
	const uint64_t all = SCRIPTED_BAR_BYTES, part = 1 * MIB;
	struct neighbour mine, other;
	struct world w;

	world_start(&w, state, NULL);
	move_in(&w, &mine, part, 0x3131);
	move_in(&w, &other, all - part, 0x7272);
	assert_int_equal(client_residency(&mine.device, mine.a), 1);
	assert_int_equal(client_residency(&other.device, other.a), 1);
	uint32_t paging = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	D3DKMT_HANDLE big = allocate_of(&mine, all);
	world_submit_use(&mine.context, big);
	world_await(&w, VIDMM_DDI_BUILD_PAGING_BUFFER, paging + 2); /* out with both */
	for (uint32_t i = 0; i < 100; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), paging + 2);
	world_run(&w); /* and in */
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), paging + 3);
	const char *bytes = client_lock(&mine.device, big, 0x1);
	for (uint64_t i = 0; i < all; i += 512)
		assert_int_equal(bytes[i] | bytes[i + 508], 0);
	assert_int_equal(client_unlock(&mine.device, big), S_OK);
	move_out(&other, 0x7272);
	move_out(&mine, 0x3131);
	world_stop(&w);
}

/* ---- what makes room for a packet, and comes back for it ---- */

static void middle_bank(struct scripted_miniport *m)
{
	static SIZE_T ends[] = {7 * MIB, 9 * MIB, SCRIPTED_BAR_BYTES};

	m->settings.segment[0].flags |= 0x8; /* UseBanking */
	m->settings.segment[0].bank_count = 3;
	m->settings.segment[0].bank_table = ends;
}

/* Of the world's own device, for another one. */
static D3DKMT_HANDLE lend(struct world *w, uint64_t size_bytes, struct client_device *to)
{
	struct scripted_allocation spec = {.size_bytes = size_bytes,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {
		.hResource = &spec, .NumAllocations = 1, .pAllocationInfo = &info};
	uint32_t global, resource, opened, count = 1;

	assert_int_equal(vidmm_resource_set_shared(w->device.device, &spec), 0);
	assert_int_equal(w->device.cb->pfnAllocateCb(w->device.handle, &args), S_OK);
	assert_int_equal(vidmm_resource_share(w->device.device, args.hKMResource, &global), 0);
	assert_int_equal(vidmm_resource_open(to->device, global, &resource, &opened, &count), 0);
	return opened;
}

/* How often the GPU had to get on until the next packet was there. */
static uint32_t steps_to_submit(struct world *w, uint32_t limit)
{
	uint32_t before = world_render_submits(w), steps = 0;

	while (world_render_submits(w) == before && steps < limit) {
		scripted_complete_all(w->m);
		vidmm_settle(w->client.host);
		steps++;
	}
	return steps;
}

/*
 * One packet, of two allocations that fit together in one way only. In list order (PAT-03) the small one goes to its bank, in the middle, where the large one has no room
 * beside it; so it leaves again for that (SPL-13). But the place is another process's afterwards, and paging still reads what is there: each time that the
 * packet is tried again the small one has come back.
 */
static void spl_13_what_comes_back_for_each_try_does_not_hold_it_up(void **state)
{
	const struct scripted_allocation small = {.size_bytes = 1 * MIB,
						  .flags = WORLD_CPU_VISIBLE,
						  .read_set = WORLD_MEMORY,
						  .write_set = WORLD_MEMORY,
						  .preferred = 1,
						  .banks = 2};
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};
	struct apart_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;

	world_start(&w, state, middle_bank);
	apart_open(&w.client, &viewer, &device);
	client_context(&device, 0, &context);
	D3DKMT_HANDLE a = world_allocate_as(&device, &small);
	D3DKMT_HANDLE large = lend(&w, 12 * MIB, &device);
	world_submit_write(&context, a, 0, 0x5151);
	world_run(&w);
	vidmm_adapter_statistics(w.client.adapter, &figures);
	uint64_t before = figures.evictions;
	world_use(&context, a);
	world_use(&context, large);
	client_submit(&context);
	uint32_t steps = steps_to_submit(&w, 1000);
	vidmm_adapter_statistics(w.client.adapter, &figures);
	assert_true(steps < 1000);
	/* The small one leaves in vain as often as the packet is turned away; then the large one waits where it is. */
	assert_in_range(figures.evictions - before, 2, 40);
	world_run(&w);
	client_context_end(&context);
	apart_close(&viewer, &device);
	world_stop(&w);
}

/*
 * Programs whose only allocation is as large as the memory, and packets of all of them in turn: each takes the place of the one before, whose bytes
 * paging has yet to read. For each packet one allocation leaves, and nothing leaves in vain.
 */
static void spl_13_who_takes_turns_in_all_of_memory_gets_through(void **state)
{
	enum { PROGRAMS = 4, ROUNDS = 5 };
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};
	struct neighbour n[PROGRAMS];
	struct world w;
	uint32_t steps = 0;

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		move_in(&w, &n[i], SCRIPTED_BAR_BYTES, 0x4000 + i);
	vidmm_adapter_statistics(w.client.adapter, &figures);
	uint64_t before = figures.evictions;
	uint32_t submits = world_render_submits(&w);
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t i = 0; i < PROGRAMS; i++)
			world_submit_use(&n[i].context, n[i].a);
	while (world_render_submits(&w) < submits + PROGRAMS * ROUNDS && steps < 1000)
		steps += steps_to_submit(&w, 1000);
	assert_true(steps < 1000);
	vidmm_adapter_statistics(w.client.adapter, &figures);
	assert_int_equal(figures.evictions - before, PROGRAMS * ROUNDS);
	world_run(&w);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		move_out(&n[i], 0x4000 + i);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(lock_05_a_lock_of_who_is_gone_comes_back),
		ON_BOTH(q_140_what_who_is_gone_has_queued_is_finished),
		ON_BOTH(dma_14_the_miniport_gets_a_copy),
		ON_SIM(spl_13_a_place_that_is_still_read_is_not_given_back),
		ON_SIM(spl_13_what_comes_back_for_each_try_does_not_hold_it_up),
		ON_SIM(spl_13_who_takes_turns_in_all_of_memory_gets_through),
		ON_BOTH(spl_13_of_a_place_the_part_of_others_is_waited_for),
		ON_LINUX(dma_14_a_client_that_writes_meanwhile_harms_nobody),
	};

	return cmocka_run_group_tests_name("sched apart", tests, NULL, NULL);
}
