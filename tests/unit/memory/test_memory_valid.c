/* SPDX-License-Identifier: MIT */
/*
 * The predicates of memory/allocation.h (memory/state/valid.c): true for a valid structure, and
 * false when one member is broken.
 */
#include "unit/breaks.h"

#include <string.h>

#include "memory/memory.h"

static struct vmm_adapter adapter;

static struct vmm_os *start(void)
{
	const struct vmm_os_config config = {.kind = VMM_OS_SIM};
	struct vmm_os *os;

	assert_int_equal(vmm_os_create(&config, &os), VMM_OK);
	memset(&adapter, 0, sizeof(adapter));
	vmm_os_mutex_init(&adapter.paging_lock, os, VMM_RANK_PAGING, "paging");
	return os;
}

static void stop(struct vmm_os *os)
{
	vmm_os_mutex_finish(&adapter.paging_lock);
	vmm_os_destroy(os);
}

static void memory_valid_an_allocation_agrees_with_its_marks(void **state)
{
	static struct vmm_allocation a;
	struct vmm_os *os = start();

	(void)state;
	memset(&a, 0, sizeof(a));
	a.adapter = &adapter;
	a.size_bytes = 2 * VMM_PAGE_SIZE;
	a.read_set = 3;
	a.write_set = 2;
	a.serving = 4;
	a.instance_count = 1;
	vmm_list_init(&a.instances);
	vmm_paging_lock(&adapter);
	assert_false(vmm_allocation_is_valid_locked(&a)); /* the list is empty */
	vmm_list_push_back(&a.instances, &a.first.sibling);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.size_bytes, 0);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.size_bytes, VMM_PAGE_SIZE + 1);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.instance_count, 0);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.instance_count, 2);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.serving, 2);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.offer, 1);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.offer_queued, 1);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.marks, VMM_MARK_RENAMED);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.marks, VMM_MARK_OFFERED);
	BREAKS(vmm_allocation_is_valid_locked(&a), a.marks, VMM_MARK_OFFER_QUEUED);
	vmm_paging_unlock(&adapter);
	stop(os);
}

static void memory_valid_an_instance_has_a_segment_where_it_is_resident(void **state)
{
	static struct vmm_allocation a;
	struct vmm_instance *i = &a.first;
	struct vmm_os *os = start();

	(void)state;
	memset(&a, 0, sizeof(a));
	a.adapter = &adapter;
	i->allocation = &a;
	i->place = VMM_PLACEMENT_SYSTEM;
	vmm_paging_lock(&adapter);
	BREAKS(vmm_instance_is_valid_locked(i), i->segment, 1);
	BREAKS(vmm_instance_is_valid_locked(i), i->address, 4096);
	BREAKS(vmm_instance_is_valid_locked(i), i->place, VMM_PLACEMENT_LOST + 1);
	BREAKS(vmm_instance_is_valid_locked(i), i->state, VMM_INSTANCE_RETIRED + 1);
	BREAKS(vmm_instance_is_valid_locked(i), i->cache, VMM_CACHE_GPU + 1);
	BREAKS(vmm_instance_is_valid_locked(i), i->has_fast_lock, true);
	i->place = VMM_PLACEMENT_APERTURE;
	i->segment = 2;
	i->address = 4096;
	BREAKS(vmm_instance_is_valid_locked(i), i->segment, 0);
	BREAKS(vmm_instance_is_valid_locked(i), i->place, VMM_PLACEMENT_FRESH);
	vmm_paging_unlock(&adapter);
	stop(os);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_valid_an_allocation_agrees_with_its_marks),
		cmocka_unit_test(memory_valid_an_instance_has_a_segment_where_it_is_resident),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
