/* SPDX-License-Identifier: MIT */
/*
 * Tier 9, calls: the common part of creation, opening, sharing and destruction of allocations.
 * Checks of the miniport's and the client's values, sections, resources, references.
 */
#ifndef VMM_MEMORY_CREATION_H
#define VMM_MEMORY_CREATION_H

#include "memory/placement/placement.h"

/* ---- validate.c ---- */
struct vmm_allocation_requester {
	struct vmm_device *device;
	bool shared;      /* the allocation will be part of a shared resource */
	bool has_section; /* its memory is that of a section that a descriptor names */
};
/* Checks the miniport's answer for one allocation. A finding names the broken rule. (ALF, SEG) */
NTSTATUS vmm_allocation_validate(struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info,
				 const struct vmm_allocate_item *item,
				 const struct vmm_allocation_requester *requester);

/* ---- validate_wddm2.c ---- */
/* Checks DXGK_ALLOCATIONINFOFLAGS_WDDM2_0. (ALF-02, ALF-25, ALF-29) */
struct vmm_flags_verdict vmm_flags_check_wddm2(const struct vmm_memory *memory, uint32_t flags);
/*
 * Checks DXGK_ALLOCATIONINFOFLAGS2. The allocation is part of a shared resource (`shared`), its
 * sets name aperture segments alone (`only_apertures`), its memory is ExistingSysMem or
 * ExistingKernelSysMem (`existing`). (ALF-02, ALF-30)
 */
struct vmm_flags_verdict vmm_flags_check_wddm3(const struct vmm_memory *memory, uint32_t flags2,
					       bool shared, bool only_apertures, bool existing);
/* Are all properties in flags2 implemented? */
bool vmm_flags_are_built_wddm3(uint32_t flags2);
/*
 * Returns the DXGK_ALLOCATIONINFOFLAGS2 value; 0 for a miniport before WDDM 3.0, whose field is not
 * read.
 */
uint32_t vmm_flags2_of(const struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info);

/* ---- existing.c: memory that the caller owns ---- */
/*
 * Checks pSystemMem and Size of an allocation with ExistingSysMem or ExistingKernelSysMem. (ALF-11,
 * ALF-12)
 */
NTSTATUS vmm_existing_check(struct vmm_device *device, const struct vmm_allocate_item *item,
			    const DXGK_ALLOCATIONINFO *info);
/*
 * Out-of-process client: makes a section of the client's memory and stores it in item->adopted.
 * Called after all checks, with no lock held.
 */
NTSTATUS vmm_existing_adopt(struct vmm_device *device, struct vmm_allocate_item *item,
			    const DXGK_ALLOCATIONINFO *info);
/*
 * A shared allocation gets another handle. Returns false if its memory is released: its other
 * handles are closed (ALF-40). The caller holds the paging lock.
 */
bool vmm_existing_open_locked(struct vmm_allocation *allocation) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * A handle of an allocation ends: adds it to the list for vmm_existing_release_next, unless its
 * memory is still in use through another handle. The caller holds the paging lock.
 */
void vmm_existing_queue_release(struct vmm_allocation *allocation, struct vmm_list *departing)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Takes the first allocation off that list and waits until neither the GPU nor vidmm uses its
 * memory any more. Returns the allocation with the list's reference, which the caller puts; NULL if
 * the list is empty. No lock is held.
 */
struct vmm_allocation *vmm_existing_release_next(struct vmm_memory *memory,
						 struct vmm_list *departing);

/* ---- standard.c: allocations that no user-mode driver describes (ALF-38) ---- */
/* Asks the miniport for the private data of the one item. The request then owns the data. */
NTSTATUS vmm_standard_describe(struct vmm_device *device, struct vmm_allocate_request *request);
/* Checks that the miniport's answer is an allocation as it was asked for. */
NTSTATUS vmm_standard_check(struct vmm_device *device, const struct vmm_allocate_request *request,
			    const DXGK_ALLOCATIONINFO *info);
/*
 * Calls DxgkDdiGetStandardAllocationDriverData twice, for the sizes and for the data. The miniport
 * may fill in fields of the surface.
 */
NTSTATUS vmm_standard_ask(struct vmm_device *device, struct vmm_allocate_request *request,
			  const char *rule, D3DKMDT_GDISURFACEDATA *surface);

/* ---- cross_adapter.c: cross-adapter resources (ALF-39) ---- */
/*
 * Before DxgkDdiCreateAllocation: checks the request and, if it has a section, asks the miniport
 * for private data.
 */
NTSTATUS vmm_cross_adapter_describe(struct vmm_device *device,
				    struct vmm_allocate_request *request);
/* Checks the miniport's answer. For a new resource creates the memory, request->section. */
NTSTATUS vmm_cross_adapter_check(struct vmm_device *device, struct vmm_allocate_request *request,
				 const DXGK_ALLOCATIONINFO *info);
/*
 * Opens the resource on another adapter than its creator's. The caller keeps its reference to the
 * section.
 */
NTSTATUS vmm_cross_adapter_open(struct vmm_device *device, struct vmm_section *section,
				uint32_t *resource, uint32_t *allocation);

/* ---- resource.c ---- */
/*
 * Returns the device's resource with that runtime handle, or NULL. The caller holds the process
 * lock.
 */
struct vmm_resource *vmm_resource_find_locked(struct vmm_device *device,
					      const void *runtime_resource)
	VMM_REQUIRES(vmm_process_lock_class);
/* Finds or creates the resource that `count` allocations will belong to. *created: it is new. */
NTSTATUS vmm_resource_prepare(struct vmm_device *device, void *runtime_resource, uint32_t count,
			      struct vmm_resource **resource, bool *created);
/* Undoes vmm_resource_prepare when the call fails. The resource may be NULL. */
void vmm_resource_unprepare(struct vmm_resource *resource, bool created);
/* Destroys the handle of an empty resource, takes it off the device's list and frees it. */
void vmm_resource_detach(struct vmm_resource *resource);
/* Creates the share of a new shared resource: what the processes that open it have in common. */
NTSTATUS vmm_share_create(struct vmm_resource *resource, const struct vmm_allocate_request *request,
			  struct vmm_allocation *const *allocations);
/* Drops one reference; the last one ends the share. */
void vmm_share_put(struct vmm_world *world, struct vmm_share *share);
/*
 * Drops one reference for a caller that is not inside a device of the share's adapter, and ends
 * nothing. Returns true if it was the last one: the adapter's worker then ends the share, and the
 * caller must wake it. The caller holds the world's shared lock.
 */
bool vmm_share_put_later_locked(struct vmm_share *share) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_shared_lock_class);
/*
 * Ends the shares that vmm_share_put_later_locked left. The caller holds no lock except the submit
 * lock.
 */
void vmm_shares_reap(struct vmm_memory *memory);

/* ---- destroy_flags.c: flags of pfnDeallocate2Cb (ALF-37) ---- */
struct vmm_deallocation {
	struct vmm_list departing; /* see vmm_existing_queue_release */
	struct vmm_list unused;    /* vmm_ref.zombie_link: see destroy.c */
	uint32_t flags;            /* D3DDDICB_DESTROYALLOCATION2FLAGS.Value */
	uint32_t open;             /* handles not closed yet; guarded by the paging lock */
};
NTSTATUS vmm_deallocation_check(struct vmm_device *device, uint32_t flags);
/* Notes in the ref what the flags say about its end. The caller holds the paging lock. */
void vmm_deallocation_note(struct vmm_deallocation *d, struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * AssumeNotInUse: has the miniport destroy the allocations now. The caller holds the submit lock
 * and no other.
 */
void vmm_deallocation_destroy_early(struct vmm_memory *memory, const struct vmm_deallocation *d);
/*
 * SynchronousDestroy: waits until all handles are closed and their memory is free. No lock is held.
 */
void vmm_deallocation_wait(const struct vmm_device *device, struct vmm_deallocation *d);
/* One handle of the call is closed; NULL: the call does not wait. No lock is held. */
void vmm_deallocation_closed(struct vmm_memory *memory, struct vmm_deallocation *deallocation);

/* ---- destroy.c ---- */
/*
 * Drops one reference; the last one destroys the allocation, also in the miniport. The GPU does not
 * use it any more. No lock is held.
 */
void vmm_allocation_put(struct vmm_memory *memory, struct vmm_allocation *allocation);

#endif
