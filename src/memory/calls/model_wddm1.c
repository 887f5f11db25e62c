/* SPDX-License-Identifier: MIT */
/*
 * The memory model of WDDM 1.x (model.h). Allocation lists make allocations resident. The content
 * of an instance is in a memory segment or in its backing store, not in both (PAG-12).
 */
#include "memory/image/image.h"
#include "memory/locks/locks.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

enum {
	CPU_VISIBLE = 0x1,
	FROM_END_OF_SEGMENT = 0x40,
	OVERLAY = 0x100,
	CAPTURE = 0x200,
	HISTORY_BUFFER = 0x4000,
	/* ALF-02: before 2.0 bits 15 to 18 are reserved; bit 14 was added in 1.3 */
	RESERVED = (int)0xFFFF8000,
};

static struct vmm_flags_verdict broken(const char *rule, const char *what)
{
	return (struct vmm_flags_verdict){rule, what};
}

/* Reads the word Flags: the bits of an adapter below 2.0. (ALF-01) */
static struct vmm_flags_verdict check_flags(const struct vmm_memory *memory,
					    const struct vmm_flags_case *c)
{
	uint32_t f = c->info->Flags.Value, reserved = (uint32_t)RESERVED;

	if (memory->caps->interface_version < DXGKDDI_INTERFACE_VERSION_WDDM1_3)
		reserved |= HISTORY_BUFFER;
	if (f & reserved)
		return broken("ALF-02", "reserved flag bits are set");
	if ((f & VMM_ALLOCATION_ALTERNATE) && !c->primary)
		return broken("ALF-21", "UseAlternateVA on an allocation that is not a primary");
	if ((f & VMM_ALLOCATION_ALTERNATE) && !memory->caps->swizzling_range_count)
		return broken("ALF-22", "UseAlternateVA on an adapter without swizzling ranges");
	if ((f & VMM_ALLOCATION_LINKED) == VMM_ALLOCATION_LINKED)
		return broken("ALF-23", "LinkMirrored with LinkInstanced");
	return broken(NULL, NULL);
}

static vmm_status make_resident(struct vmm_memory *memory, struct vmm_instance *instance,
				uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return vmm_memory_make_resident_locked(memory->adapter, instance, true, preparation);
}

/* PAG-12, PAG-13. A retained copy stays. */
static void release_store(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->retained)
		return;
	vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
	vmm_alternate_drop(instance); /* the alternate address mapped the store */
}

static void ignore_unlock(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
}

/* REF-13 */
static NTSTATUS refuse_lock2(struct vmm_device *device, struct vmm_lock_request *request)
{
	return vmm_model_check_call(device->adapter, device->process, request->handle, "lock2",
				    ": use lock, which synchronizes with the GPU");
}

const struct vmm_memory_model vmm_memory_model_wddm1 = {
	.renames = true,
	/* ALF-24: only its creator accesses a HistoryBuffer, like all CPU-visible content. */
	.built_flags = CPU_VISIBLE | VMM_ALLOCATION_RETAINED | VMM_ALLOCATION_CACHED |
		       VMM_ALLOCATION_PROTECTED | FROM_END_OF_SEGMENT | VMM_ALLOCATION_SWIZZLED |
		       OVERLAY | CAPTURE | VMM_ALLOCATION_ALTERNATE |
		       VMM_ALLOCATION_SYNCHRONOUS_PAGING | VMM_ALLOCATION_LINKED | HISTORY_BUFFER,
	.linked = VMM_ALLOCATION_LINKED,
	.slow_to_lock =
		VMM_ALLOCATION_PROTECTED | VMM_ALLOCATION_RETAINED | VMM_ALLOCATION_ALTERNATE,
	.check_flags = check_flags,
	.make_resident = make_resident,
	.paged_in = release_store,
	.page_out = vmm_eviction_to_new_store,
	.unlocked = ignore_unlock,
	.device_lost = vmm_device_disturb, /* KMX-23 */
	.lock = vmm_lock_synchronized,
	.lock2 = refuse_lock2,
};
