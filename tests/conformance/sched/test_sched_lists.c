/* SPDX-License-Identifier: MIT */
/*
 * The allocation list: which handles a submission may name, what the miniport gets, and the
 * consequences (DMA-14 to DMA-35).
 */
#include "sched_world.h"

#include <string.h>

#define DONOT_WAIT        0x4u
#define IGNORE_READ_SYNC  0x400u
/* DXGK_ALLOCATIONINFOFLAGS */
#define PERMANENT_SYS_MEM 0x2u

#define WRONG_DEVICE ((HRESULT)0xC0262115)

/* Handles that the miniport returned from OpenAllocation, in order. */
struct opens {
	HANDLE handle[8];
	uint32_t count;
};

static void keep_opens(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct opens *opens = context;
	const DXGK_OPENALLOCATIONINFO *info = call->args;

	(void)m;
	for (UINT i = 0;
	     call->ddi == VIDMM_DDI_OPEN_ALLOCATION && i < call->in.open_allocation.NumAllocations;
	     i++)
		opens->handle[opens->count++ % 8] = info[i].hDeviceSpecificAllocation;
}

/* ---- conversion ---- */

struct scribbler {
	struct opens opens;
	D3DDDI_ALLOCATIONLIST *user_list;
	D3DKMT_HANDLE wrong;
};

/* While the miniport translates, the client writes into its own list. */
static void scribble(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct scribbler *s = context;

	keep_opens(&s->opens, m, call);
	if (call->ddi == VIDMM_DDI_RENDER && s->user_list)
		s->user_list[0] = s->user_list[1] =
			(D3DDDI_ALLOCATIONLIST){.hAllocation = s->wrong, .Value = 0x1F};
}

static void dma_14_the_allocation_list_is_captured_and_converted_once(void **state)
{
	struct world w;
	struct scribbler s = {.wrong = 0xDEAD};

	world_start(&w, state, NULL);
	w.m->hook = scribble;
	w.m->hook_context = &s;
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), b = world_allocate(&w, 64 * KIB, 0);
	s.user_list = w.context.c.pAllocationList;
	world_use(&w.context, a);
	world_write(&w.context, b, 0, 0x77);
	client_submit(&w.context);
	world_run(&w);
	const struct scripted_call *seen[] = {scripted_nth(w.m, VIDMM_DDI_RENDER, 0),
					      world_nth_of(&w, VIDMM_DDI_PATCH, false, 0)};
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(seen[i]->allocation_count, 2);
		assert_ptr_equal(seen[i]->allocations[0].hDeviceSpecificAllocation,
				 s.opens.handle[0]);
		assert_ptr_equal(seen[i]->allocations[1].hDeviceSpecificAllocation,
				 s.opens.handle[1]);
		assert_int_equal(seen[i]->allocations[0].WriteOperation, 0);
		assert_int_equal(seen[i]->allocations[1].WriteOperation, 1);
	}
	assert_int_equal(*(uint32_t *)client_lock(&w.device, b, 0), 0x77);
	world_stop(&w);
}

static void dma_15_a_zero_handle_converts_to_a_null_element(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	assert_int_equal(client_use(&w.context, 0, false), 0);
	world_use(&w.context, a);
	client_submit(&w.context);
	world_run(&w);
	const struct scripted_call *render = scripted_nth(w.m, VIDMM_DDI_RENDER, 0);
	assert_int_equal(render->allocation_count, 2);
	assert_null(render->allocations[0].hDeviceSpecificAllocation);
	assert_int_equal(render->allocations[0].SegmentId, 0);
	assert_int_equal(render->allocations[0].PhysicalAddress.QuadPart, 0);
	assert_non_null(render->allocations[1].hDeviceSpecificAllocation);
	world_stop(&w);
}

/* ---- handles ---- */

/*
 * The submission names a valid allocation and `handle`. It fails before the miniport is called and
 * changes nothing.
 */
static void refuse(struct world *w, D3DKMT_HANDLE good, D3DKMT_HANDLE handle, HRESULT expected,
		   const char *rule)
{
	uint32_t renders = scripted_count(w->m, VIDMM_DDI_RENDER);

	world_use(&w->context, good);
	world_use(&w->context, handle);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), expected);
	world_expect_finding(w, rule);
	assert_int_equal(args.QueuedBufferCount, UINT32_MAX);
	assert_int_equal(scripted_count(w->m, VIDMM_DDI_RENDER), renders);
}

static void accept(struct world *w, D3DKMT_HANDLE good, uint32_t queued)
{
	world_use(&w->context, good);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), S_OK);
	assert_int_equal(args.QueuedBufferCount, queued);
	world_run(w);
	world_assert_fences(w);
}

static void dma_16_a_foreign_handle_fails_before_render(void **state)
{
	struct world w;
	struct client_device stranger, sister = {0};

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), dead = world_allocate(&w, 64 * KIB, 0);
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB};

	client_open(&w.client, &stranger); /* another process */
	sister = w.device;                 /* another device of this process */
	assert_int_equal(vidmm_device_create(w.device.process, w.client.adapter, &sister.device),
			 0);
	sister.handle = vidmm_device_handle(sister.device);
	D3DKMT_HANDLE sisters = world_allocate_as(&sister, &spec);
	/* The same number is valid in the other process only. */
	D3DKMT_HANDLE strangers = 0;
	for (uint32_t i = 0; i < 20; i++)
		strangers = world_allocate_as(&stranger, &spec);
	assert_int_equal(client_deallocate(&w.device, dead), S_OK);

	refuse(&w, a, dead, D3DDDIERR_INVALIDHANDLE, "DMA-16");
	refuse(&w, a, 0xDEADBEEF, D3DDDIERR_INVALIDHANDLE, "DMA-16");
	refuse(&w, a, strangers, D3DDDIERR_INVALIDHANDLE, "DMA-16");
	refuse(&w, a, sisters, WRONG_DEVICE, "DMA-16");
	accept(&w, a, 1);
	vidmm_device_destroy(sister.device);
	client_close(&stranger);
	world_stop(&w);
}

static void dma_19_reserved_bits_are_zero(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t bit = 5; bit < 32; bit += 13) {
		world_use(&w.context, a);
		w.context.c.pAllocationList[0].Value |= 1u << bit;
		D3DDDICB_RENDER args = world_render_args(&w.context);
		assert_int_equal(world_render(&w.context, &args), E_INVALIDARG);
		world_expect_finding(&w, "DMA-19");
	}
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 0);
	accept(&w, a, 1);
	assert_int_equal(scripted_nth(w.m, VIDMM_DDI_RENDER, 0)->allocations[0].Reserved, 0);
	assert_int_equal(world_nth_of(&w, VIDMM_DDI_PATCH, false, 0)->allocations[0].Reserved, 0);
	world_stop(&w);
}

/* ---- locations ---- */

static void assert_place(const struct scripted_call *call, uint32_t segment, uint64_t base,
			 uint64_t bytes)
{
	assert_int_equal(call->allocations[0].SegmentId, segment);
	if (segment)
		assert_in_range(call->allocations[0].PhysicalAddress.QuadPart, base,
				base + bytes - 1);
	else
		assert_int_equal(call->allocations[0].PhysicalAddress.QuadPart, 0);
}

static void dma_17_dma_18_entries_hold_the_last_known_segment_and_address(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 1 * MIB, WORLD_MEMORY),
		      all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE system = world_allocate(&w, 1 * MIB, WORLD_APERTURE);
	for (uint32_t i = 0; i < 3; i++) {
		world_submit_use(&w.context, i < 2 ? a : all);
		world_run(&w);
	}
	world_submit_use(&w.context, a); /* evicted by `all` */
	world_run(&w);
	world_submit_use(&w.context, system);
	world_run(&w);
	world_submit_use(&w.context, system);
	world_run(&w);
	static const uint32_t hint[] = {0, 1, 0, 0, 0, 2};
	for (uint32_t i = 0; i < 6; i++) {
		uint64_t base = i < 4 ? SCRIPTED_MEMORY_BASE : SCRIPTED_APERTURE_BASE;

		assert_place(scripted_nth(w.m, VIDMM_DDI_RENDER, i), hint[i], base, 16 * MIB);
		assert_place(world_nth_of(&w, VIDMM_DDI_PATCH, false, i), i < 4 ? 1 : 2, base,
			     16 * MIB);
	}
	world_stop(&w);
}

static void dma_35_patch_list_decides_residency_allocation_list_decides_busy(void **state)
{
	struct world w;
	D3DKMT_HANDLE b;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	b = world_allocate(&w, 64 * KIB, 0);
	world_use(&w.context, a);
	client_use(&w.context, b, false);
	client_submit(&w.context);
	assert_int_equal(client_try_lock(&w.device, &b, DONOT_WAIT, NULL), D3DERR_WASSTILLDRAWING);
	world_run(&w);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), 1); /* the fill of A */
	assert_int_equal(client_residency(&w.device, a), 1);
	assert_int_not_equal(client_residency(&w.device, b), 1);
	assert_int_equal(client_try_lock(&w.device, &b, DONOT_WAIT, NULL), S_OK);
	world_stop(&w);
}

/* ---- writing ---- */

static void dma_22_a_write_makes_ignore_read_sync_wait_and_the_content_dirty(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0),
		      all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	world_submit_use(&w.context, a);
	scripted_complete(w.m, 1, 1); /* the fill */
	assert_int_equal(client_try_lock(&w.device, &a, DONOT_WAIT, NULL), D3DERR_WASSTILLDRAWING);
	assert_int_equal(client_try_lock(&w.device, &a, DONOT_WAIT | IGNORE_READ_SYNC, NULL), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_write(&w.context, a, 4, 0x600D);
	client_submit(&w.context);
	assert_int_equal(client_try_lock(&w.device, &a, DONOT_WAIT | IGNORE_READ_SYNC, NULL),
			 D3DERR_WASSTILLDRAWING);
	world_run(&w);
	world_submit_use(&w.context, all);
	world_run(&w);
	assert_int_not_equal(client_residency(&w.device, a), 1);
	assert_int_equal(((uint32_t *)client_lock(&w.device, a, 0))[1], 0x600D);
	world_stop(&w);
}

/* A bad miniport: it clears WriteOperation in the list that it was given. */
static void clear_writes(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context;
	(void)m;
	if (call->ddi != VIDMM_DDI_RENDER)
		return;
	DXGK_ALLOCATIONLIST *list = ((DXGKARG_RENDER *)call->args)->pAllocationList;

	for (uint32_t i = 0; i < call->allocation_count; i++)
		list[i].WriteOperation = 0;
}

/*
 * Clean content of a PermanentSysMem allocation is dropped when it is evicted (PAG-13): what the
 * GPU wrote must count as written, though the miniport says otherwise.
 */
static void dma_22_a_miniport_that_clears_write_operation_loses_no_content(void **state)
{
	struct world w;
	struct scripted_allocation permanent = {.size_bytes = 64 * KIB,
						.flags = WORLD_CPU_VISIBLE | PERMANENT_SYS_MEM,
						.read_set = WORLD_MEMORY,
						.write_set = WORLD_MEMORY};

	world_start(&w, state, NULL);
	w.m->hook = clear_writes;
	D3DKMT_HANDLE a = world_allocate_as(&w.device, &permanent),
		      all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	world_submit_use(&w.context, a);
	world_run(&w);
	world_submit_use(&w.context, all);
	world_run(&w);
	world_write(&w.context, a, 4, 0x600D); /* not resident: paged in, then written */
	client_submit(&w.context);
	world_run(&w);
	world_submit_use(&w.context, all);
	world_run(&w);
	assert_int_not_equal(client_residency(&w.device, a), 1);
	assert_int_equal(((uint32_t *)client_lock(&w.device, a, 0))[1], 0x600D);
	world_stop(&w);
}

static void dma_23_two_entries_of_one_allocation_combine_write_operation_by_or(void **state)
{
	struct world w;
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_MEMORY | WORLD_APERTURE,
					   .write_set = WORLD_APERTURE};

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate_as(&w.device, &spec);
	for (uint32_t writer = 0; writer < 2; writer++) {
		struct scripted_command read = {
			.op = SCRIPTED_USE, .size_bytes = sizeof(read), .allocation = 1 - writer};
		struct scripted_command write = {.op = SCRIPTED_WRITE,
						 .size_bytes = sizeof(write),
						 .allocation = writer,
						 .value = 0x100 + writer};

		w.context.c.pAllocationList[0] = w.context.c.pAllocationList[1] =
			(D3DDDI_ALLOCATIONLIST){.hAllocation = a};
		w.context.c.pAllocationList[writer].WriteOperation = 1;
		w.context.allocations = 2;
		world_command(&w.context, &read);
		world_command(&w.context, &write);
		client_submit(&w.context);
		assert_int_equal(
			client_try_lock(&w.device, &a, DONOT_WAIT | IGNORE_READ_SYNC, NULL),
			D3DERR_WASSTILLDRAWING);
		world_run(&w);
		const struct scripted_call *patch =
			world_nth_of(&w, VIDMM_DDI_PATCH, false, writer);
		assert_int_equal(patch->allocations[0].SegmentId, 2);
		assert_int_equal(patch->allocations[1].SegmentId, 2);
		assert_int_equal(patch->allocations[0].PhysicalAddress.QuadPart,
				 patch->allocations[1].PhysicalAddress.QuadPart);
		assert_int_equal(*(uint32_t *)client_lock(&w.device, a, 0), 0x100 + writer);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
	}
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dma_14_the_allocation_list_is_captured_and_converted_once),
		ON_BOTH(dma_15_a_zero_handle_converts_to_a_null_element),
		ON_BOTH(dma_16_a_foreign_handle_fails_before_render),
		ON_BOTH(dma_17_dma_18_entries_hold_the_last_known_segment_and_address),
		ON_BOTH(dma_19_reserved_bits_are_zero),
		ON_BOTH(dma_22_a_write_makes_ignore_read_sync_wait_and_the_content_dirty),
		ON_BOTH(dma_22_a_miniport_that_clears_write_operation_loses_no_content),
		ON_BOTH(dma_23_two_entries_of_one_allocation_combine_write_operation_by_or),
		ON_BOTH(dma_35_patch_list_decides_residency_allocation_list_decides_busy),
	};

	return cmocka_run_group_tests_name("sched lists", tests, NULL, NULL);
}
