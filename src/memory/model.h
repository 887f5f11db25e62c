/* SPDX-License-Identifier: MIT */
/*
 * The memory model of an adapter: what the memory manager does differently for miniports of WDDM
 * 1.x and of WDDM 2.x. An adapter gets its model when it starts. All other code is the same for
 * both, and asks the model's properties or calls its operations instead of testing the version.
 *
 * WDDM 1.x (model_wddm1.c): a packet needs what its allocation list references, and preparing the
 * packet pages that in. The GPU's copy replaces the system copy. A CPU lock waits for the GPU.
 *
 * WDDM 2.x (model_wddm2.c): a packet needs what is on the residency list of its device
 * (MakeResident). The backing store remains beside the GPU's copy. The client synchronizes CPU
 * locks with the GPU, so the GPU may use what the CPU has locked.
 */
#ifndef VMM_MEMORY_MODEL_H
#define VMM_MEMORY_MODEL_H

#include "object/object.h"
#include "observe/observe.h"
#include "port/port.h"

struct vmm_flags_verdict;
struct vmm_lock_request;

/* A miniport's answer for one allocation, as far as its flags depend on it. */
struct vmm_flags_case {
	const DXGK_ALLOCATIONINFO *info;
	uint32_t flags2;
	bool primary, shared;
	bool only_apertures; /* its sets name aperture segments alone */
};

struct vmm_memory_model {
	/* ---- properties ---- */
	/* Packets need what is on their device's residency list. (RES-08) */
	bool residency_lists;
	/* The client synchronizes CPU locks with the GPU: locks do not wait. (LOCK-43, LOCK-51) */
	bool client_synchronizes;
	/*
	 * The GPU may use what the CPU has locked. If the CPU could not access it elsewhere, the
	 * lock keeps it where it is. (LKR-09, LOCK-48)
	 */
	bool gpu_uses_locked;
	/* Allocations that are not CPU-visible may be locked in system memory. (LOCK-47) */
	bool locks_invisible;
	/* The backing store remains while the content is in a memory segment. (PRI-10) */
	bool keeps_store;
	/* Without AccessedPhysically the GPU reads system memory by virtual address. (PAG-24) */
	bool reaches_system_memory;
	/* Reclaim commits the pages of content that was lost. (OFR-13) */
	bool reclaim_commits;
	/* A lock with Discard may rename: the miniport gives the length of the list. (C-10) */
	bool renames;
	/* SupportedWriteSegmentSet applies to reads, too. (SEG-19) */
	bool one_segment_set;
	/* The CPU must be able to access a CPU-visible allocation in its segments. (SEG-25) */
	bool visible_in_segments;

	/* ---- DXGK_ALLOCATIONINFOFLAGS ---- */
	uint32_t built_flags;  /* that are implemented */
	uint32_t unstored;     /* not stored with the allocation: they mean something else in 1.x */
	uint32_t in_vpr;       /* CreateInVpr; 0: no such flag */
	uint32_t linked;       /* content on several adapters of a link; 0: no such flags */
	uint32_t slow_to_lock; /* with one of them each lock takes the slow path */
	/* Checks the flags whose meaning depends on the model. (ALF-01) */
	struct vmm_flags_verdict (*check_flags)(const struct vmm_memory *memory,
						const struct vmm_flags_case *c);

	/* ---- operations; the caller holds the paging lock ---- */
	/* Makes an instance resident for a packet that needs it, but does not reference it. */
	vmm_status (*make_resident)(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint64_t preparation);
	/* The content has been copied from the backing store to a memory segment. */
	void (*paged_in)(struct vmm_memory *memory, struct vmm_instance *instance);
	/* Copies the content from a memory segment to a backing store, if that is necessary. */
	vmm_status (*page_out)(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint64_t preparation);
	/* A lock of the instance has ended. */
	void (*unlocked)(struct vmm_instance *instance);
	/* The device has been lost with a reset of its adapter. The caller holds the state lock. */
	void (*device_lost)(struct vmm_device *device);

	/* ---- CPU locks on their slow path; no lock of vidmm is held ---- */
	NTSTATUS (*lock)(struct vmm_device *device, struct vmm_lock_request *request);
	NTSTATUS (*lock2)(struct vmm_device *device, struct vmm_lock_request *request);
};

/*
 * Refuses a call that needs residency lists on an adapter whose model has none:
 * STATUS_NOT_SUPPORTED, with a reason. handle: the object of the call, or 0. why: how WDDM 1.x does
 * without such a call.
 */
NTSTATUS vmm_model_check_call(const struct vmm_adapter *adapter, const struct vmm_process *process,
			      uint32_t handle, const char *call, const char *why) VMM_MUST_CHECK;

extern const struct vmm_memory_model vmm_memory_model_wddm1, vmm_memory_model_wddm2;

#endif
