/* SPDX-License-Identifier: MIT */
/*
 * The predicates of contexts (sched/state/valid.c): true for a valid context, and false when one
 * member is broken.
 */
#include "unit/breaks.h"

#include "sched/state/state.h"

static struct vmm_adapter adapter = {.node_count = 2, .physical_adapters = 1};
static struct vmm_device device = {.adapter = &adapter};

static void sched_valid_a_contexts_sizes_match_its_kind(void **state)
{
	struct vmm_context c = {
		.device = &device, .node = 1, .list_size = 8, .patch_size = 16, .dma_bytes = 4096};

	(void)state;
	BREAKS(vmm_context_is_valid(&c), c.device, NULL);
	BREAKS(vmm_context_is_valid(&c), c.node, 2);
	BREAKS(vmm_context_is_valid(&c), c.engine, 1);
	BREAKS(vmm_context_is_valid(&c), c.turn.priority, 8);
	BREAKS(vmm_context_is_valid(&c), c.turn.priority, -8);
	BREAKS(vmm_context_is_valid(&c), c.turn.priority, 0x40000020);
	BREAKS(vmm_context_is_valid(&c), c.turn.in_process, 2);
	BREAKS(vmm_context_is_valid(&c), c.list_size, 0);
	BREAKS(vmm_context_is_valid(&c), c.patch_size, 0);
	BREAKS(vmm_context_is_valid(&c), c.no_patching, true);
	BREAKS(vmm_context_is_valid(&c), c.dma_bytes, 0);
	c.no_patching = c.by_address = true;
	c.patch_size = c.dma_bytes = 0;
	BREAKS(vmm_context_is_valid(&c), c.dma_bytes, 4096);
	BREAKS(vmm_context_is_valid(&c), c.no_patching, false);
	c.turn.priority = 0x4000001F;
	assert_true(vmm_context_is_valid(&c));
}

static void sched_valid_a_contexts_buffers_are_counted(void **state)
{
	const struct vmm_os_config config = {.kind = VMM_OS_SIM};
	struct vmm_context c = {.device = &device, .list_size = 8, .patch_size = 16};
	struct vmm_list free_buffer;
	struct vmm_os *os;

	(void)state;
	assert_int_equal(vmm_os_create(&config, &os), VMM_OK);
	vmm_os_mutex_init(&adapter.state_lock, os, VMM_RANK_STATE, "state");
	c.dma_bytes = 4096;
	vmm_list_init(&c.free_dma);
	vmm_state_lock(&adapter);
	c.dma_count = c.dma_taken = 1;
	BREAKS(vmm_context_is_consistent_locked(&c), c.dma_taken, 2);
	BREAKS(vmm_context_is_consistent_locked(&c), c.list_size, 0);
	c.dma_count = 2;
	vmm_list_push_back(&c.free_dma, &free_buffer);
	BREAKS(vmm_context_is_consistent_locked(&c), c.dma_taken, 2);
	vmm_state_unlock(&adapter);
	vmm_os_mutex_finish(&adapter.state_lock);
	vmm_os_destroy(os);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sched_valid_a_contexts_sizes_match_its_kind),
		cmocka_unit_test(sched_valid_a_contexts_buffers_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
