/* SPDX-License-Identifier: MIT */
/* Rendering with allocations that the CPU holds locked (LKR). */
#include "sched_world.h"

#include "os/os.h"

static uint32_t *lock(struct world *w, D3DKMT_HANDLE a)
{
	return client_lock(&w->device, a, 0);
}

static void unlock(struct world *w, D3DKMT_HANDLE a)
{
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

static const DXGK_ALLOCATIONLIST *patched(const struct world *w, uint32_t nth)
{
	return &world_nth_of(w, VIDMM_DDI_PATCH, false, nth)->allocations[0];
}

static uint32_t transfers(const struct world *w)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER); i++)
		count +=
			scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)->in.paging.Operation ==
			DXGK_OPERATION_TRANSFER;
	return count;
}

/*
 * With real threads, moving a locked allocation needs a kernel that can write-protect mappings
 * (PAG-16).
 */
static bool can_move_under_a_lock(uint32_t kind)
{
	const struct vmm_os_config config = {.kind = VMM_OS_LINUX};
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct vmm_os *os;
	bool can;

	if (kind == VIDMM_HOST_SIM)
		return true;
	assert_int_equal(vmm_os_create(&config, &os), VMM_OK);
	assert_int_equal(vmm_os_memory_create(os, "probe", PAGE_BYTES, &memory), VMM_OK);
	assert_int_equal(vmm_os_view_reserve(os, PAGE_BYTES, &view), VMM_OK);
	assert_int_equal(vmm_os_view_map(&view, 0, &memory, 0, PAGE_BYTES), VMM_OK);
	can = vmm_os_view_freeze(&view) == VMM_OK;
	if (can)
		vmm_os_view_thaw(&view);
	vmm_os_view_release(&view);
	vmm_os_memory_destroy(&memory);
	vmm_os_destroy(os);
	return can;
}

static void lkr_01_lkr_04_a_locked_allocation_is_moved_to_an_aperture_for_a_render(void **state)
{
	struct world w;

	if (!can_move_under_a_lock(*(uint32_t *)*state)) {
		print_message("this kernel cannot hold up stores (userfaultfd write protection)\n");
		skip();
	}
	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_write(&w.context, a, 0, 0x10);
	world_run(&w);
	assert_int_equal(patched(&w, 0)->SegmentId, 1);
	uint32_t *words = lock(&w, a);
	words[1] = 0x11;
	world_submit_write(&w.context, a, 8, 0x12);
	words[3] = 0x13;
	world_run(&w);
	assert_int_equal(patched(&w, 1)->SegmentId, 2);
	words[4] = 0x14;
	for (uint32_t i = 0; i < 5; i++) /* the pointer of the lock, the content of all writers */
		assert_int_equal(words[i], 0x10 + i);
	unlock(&w, a);
	assert_ptr_equal(lock(&w, a), words);
	unlock(&w, a);
	world_stop(&w);
}

static void lkr_02_lkr_03_without_an_aperture_the_render_fails_until_the_unlock(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY),
		      b = world_allocate(&w, 64 * KIB, 0);
	lock(&w, a);
	for (uint32_t i = 0; i < 2; i++) {
		world_use(&w.context, b);
		world_write(&w.context, a, 0, 0x77);
		D3DDDICB_RENDER args = world_render_args(&w.context);
		D3DDDICB_RENDER again = args;
		assert_int_equal(world_render(&w.context, &args),
				 D3DDDIERR_CANTRENDERLOCKEDALLOCATION);
		world_expect_finding(&w, "LKR-02");
		assert_int_equal(args.QueuedBufferCount, UINT32_MAX);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 0);
		if (i == 0)
			continue;
		unlock(&w, a);
		assert_int_equal(world_render(&w.context, &again), S_OK); /* the same buffer */
		assert_int_equal(again.QueuedBufferCount, 1);
	}
	world_run(&w);
	assert_int_equal(world_word(&w, a, 0), 0x77);
	world_assert_fences(&w);
	world_stop(&w);
}

static void lkr_05_a_locked_allocation_in_an_aperture_renders_without_a_move(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_APERTURE);
	world_submit_use(&w.context, a);
	world_run(&w);
	uint32_t paging = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	uint32_t *words = lock(&w, a);
	words[0] = 0x21;
	world_submit_write(&w.context, a, 4, 0x22);
	world_run(&w);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), paging);
	assert_int_equal(patched(&w, 1)->PhysicalAddress.QuadPart,
			 patched(&w, 0)->PhysicalAddress.QuadPart);
	assert_int_equal(words[0], 0x21);
	assert_int_equal(words[1], 0x22);
	unlock(&w, a);
	world_stop(&w);
}

static void lkr_08_a_moved_allocation_stays_in_the_aperture_until_the_last_unlock(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	lock(&w, a);
	uint32_t *words = lock(&w, a);
	for (uint32_t i = 0; i < 3; i++) {
		world_submit_write(&w.context, a, 4 * i, 0x30 + i);
		world_run(&w);
		assert_int_equal(patched(&w, i)->SegmentId, 2);
		if (i == 1)
			unlock(&w, a);
	}
	assert_int_equal(transfers(&w), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(words[i], 0x30 + i);
	unlock(&w, a);
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 8), 0x32);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(lkr_01_lkr_04_a_locked_allocation_is_moved_to_an_aperture_for_a_render),
		ON_BOTH(lkr_02_lkr_03_without_an_aperture_the_render_fails_until_the_unlock),
		ON_BOTH(lkr_05_a_locked_allocation_in_an_aperture_renders_without_a_move),
		ON_BOTH(lkr_08_a_moved_allocation_stays_in_the_aperture_until_the_last_unlock),
	};

	return cmocka_run_group_tests_name("sched locked", tests, NULL, NULL);
}
