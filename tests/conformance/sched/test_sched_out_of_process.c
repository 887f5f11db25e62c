/* SPDX-License-Identifier: MIT */
/*
 * Out-of-process clients, alive or dead: which of their memory a submission reads, and locks that
 * wait for the GPU.
 */
#include "sched_world.h"

#include <string.h>

#include "support/viewer.h"

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

static void lock_05_a_waiting_lock_returns_when_its_client_process_dies(void **state)
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
	abandon_process(w.device.process);
	vidmm_thread_join(v.thread);
	assert_int_equal(v.result, D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_try_lock(&w.device, &a, 0, &data), D3DDDIERR_DEVICEREMOVED);
	world_run(&w);
	world_stop(&w);
}

/*
 * a packet of a dead client may write to shared allocations, and the miniport might not
 * tolerate its absence. So it completes.
 */
static void q_140_packets_queued_by_a_dead_client_process_complete(void **state)
{
	enum { COUNT = 6 }; /* more than the GPU has at once */
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < COUNT; i++)
		world_submit_write(&w.context, a, 4 * i, 0x1000 + i);
	assert_true(world_render_submits(&w) < COUNT);
	abandon_process(w.device.process);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), COUNT);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(world_word(&w, a, 4 * i), 0x1000 + i);
	world_stop(&w);
}

/* The miniport reads a copy that the client can no longer change. */
static void dma_14_render_reads_a_copy_of_an_out_of_process_command_buffer(void **state)
{
	struct test_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;

	world_start(&w, state, NULL);
	client_open_out_of_process(&w.client, &viewer, &device);
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
	/* DMA-11: the buffer returned for the next call is the one that the client sees. */
	assert_ptr_equal(args.pNewCommandBuffer, shown);
	assert_ptr_equal(args.pNewAllocationList, context.c.pAllocationList);
	world_run(&w);
	client_context_end(&context);
	client_close_out_of_process(&viewer, &device);
	world_stop(&w);
}

struct attacker {
	struct client_context *context;
	_Atomic bool stop;
	struct vidmm_thread *thread;
};

/* Writes to everything that a client can reach, all the time. */
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

static void dma_14_client_writes_during_render_do_not_affect_other_clients(void **state)
{
	struct test_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;
	uint32_t refused = 0;

	world_start(&w, state, NULL);
	client_open_out_of_process(&w.client, &viewer, &device);
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
	/* Other clients continue: their handles were never reached. */
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	world_submit_write(&w.context, a, 4, 0x1234);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 4), 0x1234);
	client_context_end(&context);
	client_close_out_of_process(&viewer, &device);
	client_forget(&w.client);
	world_stop(&w);
}

/*
 * Allocations that take turns in memory for a few of them; counts how often each had to be evicted.
 */
static uint64_t run_under_pressure(void **state, bool out_of_process)
{
	enum { COUNT = 10, ROUNDS = 40 };
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};
	struct test_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;
	D3DKMT_HANDLE a[COUNT];
	uint32_t draw = 7;

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	if (out_of_process)
		client_open_out_of_process(&w.client, &viewer, &device);
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
	if (out_of_process)
		client_close_out_of_process(&viewer, &device);
	else
		client_close(&device);
	world_stop(&w);
	return figures.evictions;
}

/*
 * An instance keeps its placement while paging still reads the content of the former owner there.
 * Meanwhile, no instance that was evicted for it is paged in again and evicted a second time.
 */
static void spl_13_placement_waits_until_paging_has_read_the_old_content(void **state)
{
	uint64_t here = run_under_pressure(state, false);

	assert_true(here > 40);
	assert_int_equal(run_under_pressure(state, true), here);
}

struct neighbour {
	struct test_viewer viewer;
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

/* Resident, with words written by the GPU at its start and end. */
static void move_in(struct world *w, struct neighbour *n, uint64_t size_bytes, uint32_t value)
{
	client_open_out_of_process(&w->client, &n->viewer, &n->device);
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
	client_close_out_of_process(&n->viewer, &n->device);
}

/*
 * Part of the placement still holds the newcomer's own content and needs no wait. The rest holds
 * another process's content, which paging has yet to read; the packet waits for that. Neither
 * process sees or loses the other's content.
 */
static void spl_13_placement_waits_for_the_overlapping_eviction_only(void **state)
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
	world_await(&w, VIDMM_DDI_BUILD_PAGING_BUFFER, paging + 2); /* both are evicted */
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

/* ---- evictions for a packet whose victims come back ---- */

static void middle_bank(struct scripted_miniport *m)
{
	static SIZE_T ends[] = {7 * MIB, 9 * MIB, SCRIPTED_BAR_BYTES};

	m->settings.segment[0].flags |= 0x8; /* UseBanking */
	m->settings.segment[0].bank_count = 3;
	m->settings.segment[0].bank_table = ends;
}

/* Of the world's own device, on behalf of another one. */
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

/* How many packets the GPU had to complete until the next packet was submitted. */
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
 * One packet with two allocations that fit together in one arrangement only. In list order (PAT-03)
 * the small one is placed in its bank in the middle, where the large one does not fit beside it. So
 * the small one is evicted again for the large one (SPL-13). Its placement then holds content of
 * another process, which paging still reads. Each retry of the packet pages the small one in again.
 */
static void spl_13_repeated_page_in_on_retry_does_not_delay_the_packet(void **state)
{
	const struct scripted_allocation small = {.size_bytes = 1 * MIB,
						  .flags = WORLD_CPU_VISIBLE,
						  .read_set = WORLD_MEMORY,
						  .write_set = WORLD_MEMORY,
						  .preferred = 1,
						  .banks = 2};
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};
	struct test_viewer viewer;
	struct client_context context;
	struct client_device device;
	struct world w;

	world_start_lru(&w, state, middle_bank);
	client_open_out_of_process(&w.client, &viewer, &device);
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
	/*
	 * Each retry evicts the small one in vain. After the limit the large one waits at its
	 * placement.
	 */
	assert_in_range(figures.evictions - before, 2, 40);
	world_run(&w);
	client_context_end(&context);
	client_close_out_of_process(&viewer, &device);
	world_stop(&w);
}

/*
 * Clients whose only allocation is as large as memory take turns. Each placement holds the content
 * of the previous one, which paging has yet to read. Each packet causes exactly one eviction, and
 * none is in vain.
 */
static void spl_13_allocations_as_large_as_memory_take_turns_without_starvation(void **state)
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
		ON_BOTH(lock_05_a_waiting_lock_returns_when_its_client_process_dies),
		ON_BOTH(q_140_packets_queued_by_a_dead_client_process_complete),
		ON_BOTH(dma_14_render_reads_a_copy_of_an_out_of_process_command_buffer),
		ON_SIM(spl_13_placement_waits_until_paging_has_read_the_old_content),
		ON_SIM(spl_13_repeated_page_in_on_retry_does_not_delay_the_packet),
		ON_SIM(spl_13_allocations_as_large_as_memory_take_turns_without_starvation),
		ON_BOTH(spl_13_placement_waits_for_the_overlapping_eviction_only),
		ON_LINUX(dma_14_client_writes_during_render_do_not_affect_other_clients),
	};

	return cmocka_run_group_tests_name("sched out-of-process", tests, NULL, NULL);
}
