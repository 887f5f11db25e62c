/* SPDX-License-Identifier: MIT */
/*
 * The memory model of WDDM 2.x (model.h). Residency lists make allocations resident (RES-08). The
 * backing store exists while the content is in a memory segment (PRI-10).
 */
#include "memory/calls/creation.h"
#include "memory/locks/locks.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/sets/sets.h"
#include "sync/sync.h"

enum {
	CPU_VISIBLE = 0x1,
	FROM_END_OF_SEGMENT = 0x40,
	DISABLE_LARGE_PAGE_MAPPING = 0x80, /* 2.1 */
	OVERLAY = 0x100,
	CAPTURE = 0x200,
	CREATE_IN_VPR = 0x400, /* 2.1 */
	HISTORY_BUFFER = 0x4000,
};

/* Reads the word FlagsWddm2: the bits of an adapter from 2.0 on. (ALF-01) */
static struct vmm_flags_verdict check_flags(const struct vmm_memory *memory,
					    const struct vmm_flags_case *c)
{
	uint32_t flags = c->info->FlagsWddm2.Value;
	struct vmm_flags_verdict verdict = vmm_flags_check_wddm2(memory, flags);

	return verdict.rule ? verdict
			    : vmm_flags_check_wddm3(memory, c->flags2, c->shared, c->only_apertures,
						    (flags & VMM_ALLOCATION_EXISTING) != 0);
}

/* The next eviction needs a store, whether or not the content was NotWrittenTo. (PRI-10) */
static void keep_store(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	(void)instance;
	vmm_assert_held(&memory->adapter->paging_lock);
}

/* TDRS-01, TDRS-14 */
static void lose_device(struct vmm_device *device)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_state_lock_class)
{
	vmm_assert_held(&device->adapter->paging_lock);
	vmm_paging_queues_lose(device);
	vmm_sync_lose_device(device);
	vmm_residency_list_lose(device);
}

const struct vmm_memory_model vmm_memory_model_wddm2 = {
	.residency_lists = true,
	.client_synchronizes = true,
	.gpu_uses_locked = true,
	.locks_invisible = true,
	.keeps_store = true,
	.reaches_system_memory = true,
	.reclaim_commits = true,
	.one_segment_set = true,
	.visible_in_segments = true,
	.built_flags = CPU_VISIBLE | VMM_ALLOCATION_RETAINED | VMM_ALLOCATION_CACHED |
		       VMM_ALLOCATION_PROTECTED | FROM_END_OF_SEGMENT | DISABLE_LARGE_PAGE_MAPPING |
		       OVERLAY | CAPTURE | VMM_ALLOCATION_ACCESSED_PHYSICALLY |
		       VMM_ALLOCATION_NOTIFY_RESIDENCY | VMM_ALLOCATION_HARDWARE_PROTECTED |
		       VMM_ALLOCATION_CPU_VISIBLE_ON_DEMAND | HISTORY_BUFFER | CREATE_IN_VPR |
		       VMM_ALLOCATION_MAP_CPU_VISIBLE,
	/* Without GPU virtual addresses no page table could have large pages. (ALF-28) */
	.unstored = DISABLE_LARGE_PAGE_MAPPING | CREATE_IN_VPR,
	.in_vpr = CREATE_IN_VPR,
	.slow_to_lock = VMM_ALLOCATION_PROTECTED | VMM_ALLOCATION_RETAINED | VMM_ALLOCATION_CACHED |
			VMM_ALLOCATION_CPU_VISIBLE_ON_DEMAND,
	.check_flags = check_flags,
	.make_resident = vmm_residency_list_place,
	.paged_in = keep_store,
	.page_out = vmm_eviction_to_kept_store,
	.unlocked = vmm_lock_wddm2_released,
	.device_lost = lose_device,
	.lock = vmm_lock_wddm2,
	.lock2 = vmm_lock2_wddm2,
};
