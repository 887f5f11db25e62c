/* SPDX-License-Identifier: MIT */
/*
 * Allocations in system memory, with a miniport that uses page frames, splits its transfers and may
 * be busy (ALF-12, ALF-13, PAG-07, PAG-08, PAG-13, PAG-14).
 */
#include "sched_world.h"
#include <support/viewer.h>

#include <string.h>

enum { PERMANENT = 0x2, EXISTING = 0x10, EXISTING_KERNEL = 0x20, PAGES = 5 };
#define BYTES (PAGES * PAGE_BYTES)
#define TAG   0x74736554u

static void in_pieces(struct scripted_miniport *m)
{
	m->settings.complete_at_once = true;
	m->settings.transfer_chunk_bytes = 3000;
}

static D3DKMT_HANDLE allocate(struct world *w, uint32_t flags, uint32_t segments,
			      const void *memory)
{
	struct scripted_allocation wish = {.size_bytes = BYTES,
					   .flags = WORLD_CPU_VISIBLE | flags,
					   .read_set = segments,
					   .write_set = segments};
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = memory,
				      .pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(w->device.cb->pfnAllocateCb(w->device.handle, &args), S_OK);
	return info.hAllocation;
}

static uint32_t word_at(const char *memory, uint32_t offset)
{
	uint32_t word;

	memcpy(&word, memory + offset, sizeof(word));
	return word;
}

static void push_out(struct world *w)
{
	D3DKMT_HANDLE all = world_allocate(w, SCRIPTED_BAR_BYTES, WORLD_MEMORY);

	world_submit_use(&w->context, all);
	world_run(w);
	assert_int_equal(client_deallocate(&w->device, all), S_OK);
}

static void reach(struct world *w, char *memory, uint32_t flags, uint32_t segments)
{
	memset(memory, 0x5C, BYTES);
	D3DKMT_HANDLE a = allocate(w, flags, segments, memory);

	world_submit_use(&w->context, a);
	world_run(w);
	assert_int_equal(world_gpu_word(w, 0), 0x5C5C5C5C);
	assert_int_equal(world_gpu_word(w, BYTES - 4), 0x5C5C5C5C);
	world_submit_write(&w->context, a, 2 * PAGE_BYTES, 0x13131313);
	world_run(w);
	if (segments == WORLD_APERTURE)
		assert_int_equal(word_at(memory, 2 * PAGE_BYTES), 0x13131313);
	else
		assert_int_equal(word_at(memory, 2 * PAGE_BYTES), 0x5C5C5C5C);
	assert_ptr_equal(client_lock(&w->device, a, 0x1), memory);
	assert_int_equal(word_at(memory, 2 * PAGE_BYTES), 0x13131313);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
	world_submit_write(&w->context, a, 3 * PAGE_BYTES, 0x14141414);
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
	assert_int_equal(word_at(memory, 3 * PAGE_BYTES), 0x14141414);
}

static void alf_13_page_frames_of_existing_memory_are_passed(void **state)
{
	static char own[BYTES] __attribute__((aligned(4096)));
	struct world w;

	world_start(&w, state, in_pieces);
	reach(&w, own, EXISTING, WORLD_MEMORY);
	reach(&w, own, EXISTING, WORLD_APERTURE);
	world_stop(&w);
}

/*
 * Kernel memory is provided in the host's process, also if other clients are out-of-process
 * (Q-120).
 */
static void alf_12_alf_13_page_frames_of_kernel_memory_are_passed(void **state)
{
	struct world w;

	open_in_process(true);
	world_start(&w, state, in_pieces);
	open_in_process(false);
	char *pool = ExAllocatePool2(POOL_FLAG_NON_PAGED, BYTES, TAG);

	assert_non_null(pool);
	reach(&w, pool, EXISTING_KERNEL, WORLD_MEMORY);
	reach(&w, pool, EXISTING_KERNEL, WORLD_APERTURE);
	ExFreePoolWithTag(pool, TAG);
	world_stop(&w);
}

static void pag_07_pag_14_an_update_in_pieces_is_complete(void **state)
{
	static const UINT pages[] = {1, 2, 4};
	struct world w;

	world_start(&w, state, in_pieces);
	D3DKMT_HANDLE a = allocate(&w, PERMANENT, WORLD_MEMORY, NULL);
	char *bytes = client_lock(&w.device, a, 0);

	memset(bytes, 0x41, BYTES);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_submit_use(&w.context, a);
	world_run(&w);
	D3DDDICB_LOCK args = {.hAllocation = a, .NumPages = 3, .pPages = pages};
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &args), S_OK);
	assert_ptr_equal(args.pData, bytes + PAGE_BYTES);
	/* pages 0 and 3, which were not requested, keep their content */
	memset(bytes, 0x42, BYTES);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_submit_use(&w.context, a);
	world_run(&w);
	for (uint32_t page = 0; page < PAGES; page++) {
		uint32_t expected = page == 0 || page == 3 ? 0x41414141 : 0x42424242;

		assert_int_equal(world_gpu_word(&w, page * PAGE_BYTES), expected);
		assert_int_equal(world_gpu_word(&w, page * PAGE_BYTES + PAGE_BYTES - 4), expected);
	}
	world_stop(&w);
}

/* The first call returns busy. The second must have AllocationIsIdle set. */
struct busy {
	uint32_t operation, calls, idle;
};

static void answer_busy(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct busy *busy = context;
	const DXGKARG_BUILDPAGINGBUFFER *build = &call->in.paging;

	(void)m;
	if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER ||
	    (uint32_t)build->Operation != busy->operation)
		return;
	bool idle = busy->operation == DXGK_OPERATION_TRANSFER
			    ? build->Transfer.Flags.AllocationIsIdle
			    : build->DiscardContent.Flags.AllocationIsIdle;
	busy->calls++;
	busy->idle += idle;
	if (!idle) {
		DXGKARG_BUILDPAGINGBUFFER *out = call->args;

		*out = *build; /* nothing is written */
		call->status = STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
}

static void pag_08_pag_13_a_busy_transfer_is_retried_with_allocationisidle(void **state)
{
	struct busy busy = {.operation = DXGK_OPERATION_DISCARD_CONTENT};
	struct world w;

	world_start(&w, state, in_pieces);
	w.m->settings.transfer_chunk_bytes = 0;
	D3DKMT_HANDLE a = allocate(&w, PERMANENT, WORLD_MEMORY, NULL);

	world_submit_use(&w.context, a);
	world_run(&w);
	w.m->hook_context = &busy;
	w.m->hook = answer_busy;
	push_out(&w);
	assert_int_equal(busy.calls, 2);
	assert_int_equal(busy.idle, 1);
	world_submit_use(&w.context, a);
	world_run(&w);
	busy = (struct busy){.operation = DXGK_OPERATION_TRANSFER};
	*(uint32_t *)client_lock(&w.device, a, 0) = 0x88;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(busy.calls, 2);
	assert_int_equal(busy.idle, 1);
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_int_equal(world_gpu_word(&w, 0), 0x88);
	w.m->hook = NULL;
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(alf_13_page_frames_of_existing_memory_are_passed),
		ON_BOTH(alf_12_alf_13_page_frames_of_kernel_memory_are_passed),
		ON_BOTH(pag_07_pag_14_an_update_in_pieces_is_complete),
		ON_BOTH(pag_08_pag_13_a_busy_transfer_is_retried_with_allocationisidle),
	};

	return cmocka_run_group_tests_name("sched_sysmem", tests, NULL, NULL);
}
