/* SPDX-License-Identifier: MIT */
/*
 * memory: the video memory manager (VidMm). It decides where each instance of each allocation is
 * placed, moves content between segments and system memory, and maps it for the CPU.
 *
 * The adapter's paging lock guards everything here. The caller of a function with
 * VMM_REQUIRES(vmm_paging_lock_class), or of one whose comment says so, holds it. Every other
 * function takes the mutexes that it needs: its caller holds no mutex of the core, unless the
 * comment of the function or of its section says otherwise. While the paging lock is held, only DDI
 * functions of the scheduler class are called.
 *
 * This module schedules nothing: it submits paging work through struct vmm_memory_engine, which
 * sched provides.
 *
 * Functions for sched take a `preparation`: the number of one try to make a packet's memory
 * resident. In that try, nothing that the packet needs is evicted for another of its needs.
 */
#ifndef VMM_MEMORY_MEMORY_H
#define VMM_MEMORY_MEMORY_H

#include <vidmm/statistics.h>

#include "memory/allocation.h"
#include "memory/fast_lock.h"
#include "memory/model.h"
#include "memory/use.h"
#include "memory/va.h"
#include "object/hazard.h"
#include "object/object.h"
#include "port/port.h"

/*
 * A range of one paging buffer that holds paging commands, ready to be submitted. (SUB-18, SUB-19)
 */
struct vmm_paging_portion {
	uint32_t segment; /* that the buffer is mapped into; 0: system memory */
	uint64_t address; /* of the buffer for the GPU: in that segment, or physical */
	char *cpu;
	uint32_t size_bytes, start, end;
	void *private_data;
	uint32_t private_bytes, private_start, private_end;
	/* concerns a SynchronousPaging allocation: no render packet runs beside it (PAG-21) */
	bool synchronous;
	uint32_t physical; /* physical adapter of a link that it runs on; 0: the lead, or no link */
	uint64_t after;    /* paging packet that must be complete before it runs; 0: none */
};

#define VMM_ALLOCATION_SYNCHRONOUS_PAGING 0x800u /* DXGK_ALLOCATIONINFOFLAGS.SynchronousPaging */

struct vmm_memory_engine {
	/*
	 * Queues the portions, at most one per physical adapter, as one packet of the paging
	 * timeline. Returns its sequence number, which is the previous one + 1; it is complete when
	 * all portions are. The portions are copied. Their buffers stay unchanged until then. The
	 * caller holds the paging lock.
	 */
	uint64_t (*submit_paging)(struct vmm_adapter *adapter,
				  const struct vmm_paging_portion *portions, uint32_t count);
	/*
	 * Waits until packet `sequence` of the timeline and all earlier prepared packets of it, of
	 * any context, are complete. The caller holds the paging lock, which is never released, so
	 * no placement changes meanwhile. The calling thread submits ready packets to the hardware,
	 * because no other thread can. Emits VIDMM_EVENT_WAIT with `reason` (VIDMM_WAIT_*) each
	 * time it has slept.
	 *
	 * VMM_DEVICE_REMOVED: the adapter has been removed or is to be reset, or the client of the
	 * calling process has gone. VMM_UNSUCCESSFUL: on sim no thread can ever run again. After
	 * a failure the GPU may still use what the packets reference.
	 */
	vmm_status (*wait_locked)(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
				  uint32_t reason);
	/*
	 * Makes each node whose last packet was of that context (NULL: of any context of the
	 * device) switch away from it. Returns the paging packet that is complete when they have;
	 * 0: there is no such node. The caller holds the paging lock. (SUB-20)
	 */
	uint64_t (*switch_context)(struct vmm_adapter *adapter, const struct vmm_device *device,
				   const void *context);
	/*
	 * Submits packets that became ready while the paging lock was held. Called after its
	 * release, with no lock held.
	 */
	void (*kick)(struct vmm_adapter *adapter);
	/* The same by way of the worker: the calling thread submits nothing. No lock held. */
	void (*hand_over)(struct vmm_adapter *adapter);
	/* Wakes the worker: vmm_paging_work_locked has new work, or what it waits for. Any lock. */
	void (*wake)(struct vmm_adapter *adapter);
	/* Unmaps DMA buffers that are not pinned: was there one? *left: a pinned one is mapped. */
	bool (*unmap_buffers)(struct vmm_adapter *adapter, bool *left); /* paging lock */
	bool (*pins_buffers)(struct vmm_adapter *adapter); /* is a mapped one pinned? Paging lock */
};

/*
 * Start and end of an adapter's memory, while no other thread uses the adapter. At the end nothing
 * is resident and no allocation exists.
 */
vmm_status vmm_memory_create(struct vmm_adapter *adapter, const struct vmm_memory_engine *engine,
			     uint64_t system_limit_bytes) VMM_MUST_CHECK;
/* After vmm_sched_start: creates what is written by paging operations, or holds them. */
vmm_status vmm_memory_start(struct vmm_adapter *adapter) VMM_MUST_CHECK;
void vmm_memory_destroy(struct vmm_adapter *adapter);
/* Gives the adapter the memory model of its miniport, before all other modules start. */
void vmm_memory_choose_model(struct vmm_adapter *adapter);
/* ---- the paging lock ---- */
/*
 * Takes the paging lock when the reset that is under way, if any, has ended. A thread for which
 * that reset waits takes it at once (vmm_port_blocks_reset).
 */
void vmm_paging_lock(struct vmm_adapter *adapter) VMM_ACQUIRES(vmm_paging_lock_class);
/*
 * Takes the paging lock if it is free, without waiting for anything: for callers at DISPATCH_LEVEL.
 */
bool vmm_paging_trylock(struct vmm_adapter *adapter) VMM_TRY_ACQUIRES(true, vmm_paging_lock_class);
/*
 * Releases the paging lock, and does nothing else. No paging command may be pending. A completion
 * that found the lock taken has left its packets to the holder: the caller feeds the GPU, or has
 * the worker feed it (vmm_paging_unlock_idle).
 */
void vmm_paging_unlock(struct vmm_adapter *adapter) VMM_RELEASES(vmm_paging_lock_class);
/* Flushes the pending paging commands, releases the lock, and feeds the GPU with ready packets. */
void vmm_paging_commit(struct vmm_adapter *adapter) VMM_RELEASES(vmm_paging_lock_class);
/* Releases the lock for a caller that only read: the worker feeds the GPU with ready packets. */
void vmm_paging_unlock_idle(struct vmm_adapter *adapter) VMM_RELEASES(vmm_paging_lock_class);

/* ---- creation and destruction (create.c, destroy.c) ---- */
#define VMM_ALLOCATE_OVERRIDE_PRIORITY 0x4u /* D3DDDI_ALLOCATIONINFO2.Flags.OverridePriority, 2.2 */
struct vmm_allocate_item {
	void *private_data; /* a copy that vidmm owns */
	uint32_t private_bytes;
	const void *system_memory; /* pSystemMem */
	uint32_t flags;            /* D3DDDI_ALLOCATIONINFO Flags.Value */
	uint32_t source_id;        /* VidPnSourceId */
	bool newer; /* the client passed D3DDDI_ALLOCATIONINFO2, which has a Priority (PRI-02) */
	uint32_t priority; /* valid with OverridePriority in the flags */
	uint32_t handle;   /* out */
	/*
	 * Section of an out-of-process client's memory at system_memory; set and put by
	 * vmm_memory_allocate.
	 */
	struct vmm_section *adopted;
};
struct vmm_allocate_request {
	const void *private_data; /* of the call, not of an item */
	uint32_t private_bytes;
	/* hResource; NULL: the allocations are part of no resource (ALF-35) */
	void *runtime_resource;
	/* stored with a shared resource for the processes that open it (ALC-08) */
	void *runtime_data;
	uint32_t runtime_bytes;
	uint32_t count;
	struct vmm_allocate_item *items;
	uint32_t resource_handle; /* out */
	/*
	 * An existing heap (ALF-38), or 0. There is one item. Its backing store is heap_bytes at
	 * its system_memory, or those of the section. It has no private data: the miniport is asked
	 * for some (ALC-03).
	 */
	uint64_t heap_bytes;
	struct vmm_section *section;
	bool standard; /* out: the miniport supplied the private data */
	/*
	 * A cross-adapter resource (ALF-39). There is one item. Without a section the resource is
	 * new: vmm_memory_allocate creates the section, and the caller puts it. With a section,
	 * another adapter's resource is opened, and the miniport is asked for private data.
	 */
	bool cross_adapter;
	bool nt_security; /* the shared resource gets no global handle, only NT handles (ALC-04) */
};
/* Creates all allocations of the request, or none. */
NTSTATUS vmm_memory_allocate(struct vmm_device *device,
			     struct vmm_allocate_request *request) VMM_MUST_CHECK;
/*
 * Closes the handles at once. The allocations end when the GPU does not use them any more (SUB-29).
 * flags: D3DDDICB_DESTROYALLOCATION2FLAGS (ALF-37); 0 for older calls.
 */
NTSTATUS vmm_memory_deallocate(struct vmm_device *device, void *runtime_resource,
			       const uint32_t *handles, uint32_t count,
			       uint32_t flags) VMM_MUST_CHECK;
/*
 * Ends everything that the device still has. Its contexts are gone and all its work is complete.
 * (LOCK-30, PNP-03)
 */
void vmm_memory_close_device(struct vmm_device *device);
/*
 * Calls the miniport's DxgkDdiCloseAllocation and DxgkDdiDestroyAllocation for closed allocations
 * that the GPU does not use any more (SUB-29), and signals progress. PASSIVE_LEVEL; the caller
 * holds no lock except the submit lock.
 */
void vmm_memory_reap(struct vmm_adapter *adapter);
/* Returns true if vmm_memory_reap would end anything. */
bool vmm_memory_can_reap_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Drops the mappings of an out-of-process client that has ended and so does not use them any more.
 * Its allocations may still exist.
 */
void vmm_memory_end_viewer(struct vmm_adapter *adapter, struct vmm_os_viewer *viewer);

/* ---- context_allocation.c: allocations that a miniport creates for its contexts (PRE-11) ---- */
/*
 * Creates one for `context`; NULL: for all contexts of the device. Called from the miniport, with
 * no mutex above the submit lock held. Sets hAllocation on success only.
 */
NTSTATUS vmm_context_allocation_create(struct vmm_device *device, const void *context,
				       DXGKARGCB_CREATECONTEXTALLOCATION *args) VMM_MUST_CHECK;
/*
 * Destroys a context allocation, after waiting until the GPU does not use it any more. Called from
 * the miniport, with no mutex above the submit lock held. STATUS_INVALID_HANDLE and a finding: the
 * adapter has no such allocation. STATUS_DEVICE_REMOVED: the adapter has been removed or is to be
 * reset; the allocation still exists.
 */
NTSTATUS vmm_context_allocation_destroy(struct vmm_adapter *adapter,
					const void *handle) VMM_MUST_CHECK;
/*
 * DxgkCbUpdateContextAllocation (VA-21): makes the allocation resident, has the miniport write an
 * UpdateContextAllocation and waits until the GPU has executed it. Waits first until the GPU does
 * not use the allocation. Called from the miniport, with no mutex above the submit lock held.
 * STATUS_INVALID_HANDLE, STATUS_INVALID_PARAMETER, STATUS_NOT_SUPPORTED, STATUS_NO_MEMORY.
 */
NTSTATUS vmm_context_allocation_update(
	struct vmm_adapter *adapter, const DXGKARGCB_UPDATECONTEXTALLOCATION *args) VMM_MUST_CHECK;
/*
 * Before the miniport destroys the context (NULL: the device): takes its context allocations out of
 * their segments. The paging commands for that run after the nodes have switched away from the
 * context. Afterwards vmm_context_allocations_end destroys those that the miniport has not
 * destroyed. All packets of the context are complete. The caller holds no mutex above the submit
 * lock.
 */
void vmm_context_allocations_retire(struct vmm_device *device, const void *context);
void vmm_context_allocations_end(struct vmm_device *device, const void *context);
/*
 * Returns true if all context allocations that a packet of the context needs are resident and
 * initialized.
 */
bool vmm_context_allocations_are_resident(const struct vmm_device *device, const void *context)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Makes all of them resident; returns as vmm_memory_make_resident_locked. */
vmm_status vmm_context_allocations_make_resident(struct vmm_device *device, const void *context,
						 uint64_t preparation) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/* Records that the packet uses them. Returns the paging packet that it must wait for; 0: none. */
uint64_t vmm_context_allocations_use(struct vmm_device *device, const void *context,
				     uint32_t timeline, uint64_t sequence)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * ---- section.c: reference-counted memory objects that several allocations may have as backing
 * store ----
 */
/*
 * Opens the memory object of a descriptor, which the caller may close afterwards. `sealed`: the
 * object must be sealed against shrinking; without seals the call returns VMM_INVALID_PARAMETER
 * (os.h). Takes no mutex.
 */
vmm_status vmm_section_open(struct vmm_os *os, int descriptor, uint64_t size_bytes, bool sealed,
			    struct vmm_section **section) VMM_MUST_CHECK;
/* Drops a reference; NULL: does nothing. Takes no mutex. */
void vmm_section_put(struct vmm_section *section);

/*
 * ---- resources and sharing (resource.c): take the process lock, the paging lock or the shared
 * lock themselves; the caller holds none of these and no mutex above them ----
 */
/*
 * Creates the resource of that runtime handle as a shared one, before its first allocation.
 * (ALF-35)
 */
NTSTATUS vmm_resource_mark_shared(struct vmm_device *device, void *runtime_resource) VMM_MUST_CHECK;
/*
 * Names a shared resource: a global handle, or the object of an NT handle, to which the caller has
 * a reference.
 */
struct vmm_bundle;
struct vmm_share_key {
	uint32_t global;
	struct vmm_bundle *bundle; /* NULL: the global handle is valid */
};
/*
 * Stores the LUID of the resource's adapter. STATUS_INVALID_PARAMETER and a finding: the key
 * references no resource. Takes the shared lock only.
 */
NTSTATUS vmm_share_luid(struct vmm_process *process, const struct vmm_share_key *key,
			uint32_t *luid) VMM_MUST_CHECK;
/*
 * Creates a resource for a client that has only handles. *key serves as its runtime_resource in
 * other calls.
 */
NTSTATUS vmm_resource_create(struct vmm_device *device, bool shared, void **key) VMM_MUST_CHECK;
/*
 * Returns the global handle of the source's shared primary; 0: there is none. Takes the shared lock
 * only.
 */
uint32_t vmm_share_primary(const struct vmm_adapter *adapter, uint32_t source_id);
struct vmm_share_sizes {
	uint32_t count, runtime_bytes, private_bytes, total_item_bytes;
};
/*
 * Stores the sizes of the resource's data. STATUS_INVALID_PARAMETER and a finding: the key
 * references no resource, or one of another adapter that is not a cross-adapter resource. Takes the
 * shared lock only.
 */
NTSTATUS vmm_share_sizes(struct vmm_device *device, const struct vmm_share_key *key,
			 struct vmm_share_sizes *sizes) VMM_MUST_CHECK;
/*
 * Buffers of those sizes. item_bytes, of `count` entries that are 0, gets the size of each item's
 * part of `items`. items NULL: the data of the items is not copied.
 */
struct vmm_share_data {
	void *runtime_data, *private_data, *items;
	uint32_t *item_bytes;
};
/*
 * Copies the stored data into the buffers. STATUS_INVALID_PARAMETER: as vmm_share_sizes, or the
 * sizes have changed since. Takes the shared lock only. (ALC-08)
 */
NTSTATUS vmm_share_read(struct vmm_device *device, const struct vmm_share_key *key,
			const struct vmm_share_sizes *sizes,
			const struct vmm_share_data *data) VMM_MUST_CHECK;
/*
 * Stores the global handle of the device's resource. STATUS_INVALID_PARAMETER: the device has no
 * such resource, or it is not shared.
 */
NTSTATUS vmm_resource_global_handle(struct vmm_device *device, uint32_t resource,
				    uint32_t *global) VMM_MUST_CHECK;
/*
 * Opens a shared resource for the device; calls DxgkDdiOpenAllocation. *count: capacity of
 * `allocations` in, number of handles out. After a failure nothing is open and the outputs are
 * unchanged. The caller holds no mutex.
 */
NTSTATUS vmm_resource_open(struct vmm_device *device, const struct vmm_share_key *key,
			   uint32_t *resource, uint32_t *allocations,
			   uint32_t *count) VMM_MUST_CHECK;

/*
 * ---- NT handles of resources (bundle.c): take the process lock and the shared lock themselves;
 * the caller holds no mutex ----
 */

/* 1: a resource; 3: a resource, a keyed mutex and a synchronization object (SHR-07). */
#define VMM_BUNDLE_MAX 3u
struct vmm_nt_target;
struct vmm_keyed_open;
/*
 * Returns the object that an NT handle shared from these handles would name, with a reference that
 * the caller puts. The resource belongs to the device, the others to its process.
 * STATUS_INVALID_PARAMETER and a finding: one of the handles is not such an object, or was created
 * without NtSecuritySharing. (SHR-06, SHR-07)
 */
NTSTATUS vmm_bundle_target(struct vmm_device *device, const uint32_t *handles, uint32_t count,
			   struct vmm_nt_target *target) VMM_MUST_CHECK;
/*
 * Returns the bundle that an NT handle names, with a reference. On failure STATUS_INVALID_HANDLE or
 * STATUS_OBJECT_TYPE_MISMATCH, and a finding.
 */
NTSTATUS vmm_bundle_find(struct vmm_process *process, uint64_t handle,
			 struct vmm_bundle **bundle) VMM_MUST_CHECK;
/*
 * Drops a reference. The last one may end the keyed mutex and the synchronization object; it leaves
 * the end of the resource to the adapter's worker.
 */
void vmm_bundle_put(struct vmm_bundle *bundle);
/*
 * Opens the keyed mutex and the synchronization object that are bundled with the resource, for the
 * device that opens the resource; a handle of 0: there is none. (KMX-08, SFL-12)
 */
NTSTATUS vmm_bundle_open(struct vmm_device *device, struct vmm_bundle *bundle,
			 struct vmm_keyed_open *keyed, uint32_t *sync) VMM_MUST_CHECK;
/*
 * The adapter's devices are gone: its resources that NT handles still reference end with the next
 * vmm_memory_reap.
 */
void vmm_bundles_end_adapter(struct vmm_adapter *adapter);

/* ---- CPU access (lock.c, rename.c) ---- */
struct vmm_lock_request {
	uint32_t handle; /* in/out */
	uint32_t flags;  /* D3DDDICB_LOCKFLAGS.Value */
	uint32_t private_data;
	uint32_t page_count;
	const uint32_t *pages; /* a copy that vidmm owns */
	bool page_list_given;  /* pPages was not NULL */
	uint64_t waited_ns;    /* already waited when the device was paused; 0 at first */
	void *data;            /* out */
};
/*
 * Continues a lock, of WDDM 1.x or 2.x, that answered STATUS_PENDING because its device is paused.
 * Such a lock has changed nothing. If it waited inside the device, it could keep the adapter from
 * changing its power state forever.
 *
 * Leaves the device, waits for the end of the pause and calls `lock` again, until the answer is
 * final. *device is NULL afterwards if the device has ended (STATUS_INVALID_PARAMETER); the guard
 * is then not entered.
 */
NTSTATUS vmm_memory_lock_outside(struct vmm_device **device, struct vmm_hazard_guard *guard,
				 struct vmm_lock_request *request,
				 NTSTATUS (*lock)(struct vmm_device *, struct vmm_lock_request *))
	VMM_MUST_CHECK VMM_COLD;
/* The slow paths, which take the paging lock. */
VMM_MUST_CHECK static inline NTSTATUS vmm_memory_lock_in_full(struct vmm_device *device,
							      struct vmm_lock_request *request)
{
	vmm_assert_debug(vmm_device_is_valid(device));
	return device->adapter->model->lock(device, request);
}
NTSTATUS vmm_memory_unlock_in_full(struct vmm_device *device, const uint32_t *handles,
				   uint32_t count) VMM_MUST_CHECK;

/*
 * Fast path of both lock versions: counts the lock in the fast lock's word. Returns false, and has
 * done nothing, if the fast path is disabled for this allocation. Takes no mutex.
 */
static inline bool vmm_lock_fast(struct vmm_device *device, struct vmm_lock_request *request)
{
	const struct vmm_adapter *adapter = device->adapter;
	uint64_t bytes;
	char *address;

	/*
	 * While the adapter is reset a lock takes the slow path, which waits for the end of the
	 * reset. (LOCK-33)
	 */
	if (vmm_unlikely(atomic_load_explicit(&adapter->recovering, memory_order_relaxed)))
		return false;
	address = vmm_fast_lock_acquire(device, request->handle, request->flags, &bytes);
	if (vmm_unlikely(!address))
		return false;
	request->data = address;
	vmm_event_inline(adapter->observe, VIDMM_EVENT_LOCK, device->process->id, request->handle,
			 0, request->flags, 0, bytes, request->handle);
	return true;
}

VMM_MUST_CHECK static inline NTSTATUS vmm_memory_lock(struct vmm_device *device,
						      struct vmm_lock_request *request)
{
	if (vmm_likely(vmm_lock_flags_are_plain(device->adapter->client_synchronizes,
						request->flags,
						request->page_count | request->page_list_given) &&
		       vmm_lock_fast(device, request)))
		return STATUS_SUCCESS;
	return vmm_memory_lock_in_full(device, request);
}
/*
 * Lock2, from WDDM 2.0 on (lock2.c). Reads only the request's handle and flags; flags must be 0.
 * (LOCK-42)
 */
VMM_MUST_CHECK static inline NTSTATUS vmm_memory_lock2(struct vmm_device *device,
						       struct vmm_lock_request *request)
{
	vmm_assert(vmm_device_is_valid(device));
	return device->adapter->model->lock2(device, request);
}
VMM_MUST_CHECK static inline NTSTATUS vmm_memory_unlock(struct vmm_device *device,
							const uint32_t *handles, uint32_t count)
{
	if (vmm_unlikely(count != 1 || !vmm_fast_lock_release(device, handles[0])))
		return vmm_memory_unlock_in_full(device, handles, count);
	vmm_event_inline(device->adapter->observe, VIDMM_EVENT_UNLOCK, device->process->id,
			 handles[0], 0, 0, 0, 0, 0);
	return STATUS_SUCCESS;
}

/* ---- offer, reclaim, priority, residency (offer.c) ---- */
struct vmm_handle_set { /* exactly one of the two arrays (OFR-02) */
	void *const *resources;
	const uint32_t *allocations;
	uint32_t count;
};
struct vmm_offer_request {
	uint32_t priority;
	uint32_t flags;   /* D3DDDI_OFFER_FLAGS (OFR-14), 0 where there are none */
	bool immediately; /* fails if queued work still uses one of them (OFR-16) */
};
NTSTATUS vmm_memory_offer(struct vmm_device *device, const struct vmm_handle_set *set,
			  const struct vmm_offer_request *request) VMM_MUST_CHECK;
/*
 * The result of an entry, worse ones higher: D3DDDI_RECLAIM_RESULT. Older calls only distinguish
 * VMM_RECLAIM_OK from the others.
 */
enum vmm_reclaim_result { VMM_RECLAIM_OK, VMM_RECLAIM_DISCARDED, VMM_RECLAIM_NOT_COMMITTED };
struct vmm_reclaim_request {
	struct vmm_handle_set set;
	uint32_t *results; /* one per entry, or NULL */
	/*
	 * Handle of a paging queue if `queued`. Otherwise allocations on a residency list are
	 * placed before the next submission runs.
	 */
	uint32_t queue;
	bool queued;          /* OFR-12 */
	bool needs_results;   /* `results` must not be NULL (OFR-14) */
	uint64_t fence_value; /* out */
};
/*
 * STATUS_PENDING: the GPU may use the allocations once the queue's fence has reached fence_value.
 * (OFR-12)
 */
NTSTATUS vmm_memory_reclaim(struct vmm_device *device,
			    struct vmm_reclaim_request *request) VMM_MUST_CHECK;
/* Queues an offer that takes effect when the timeline has completed `sequence`. (OFR-10) */
void vmm_offer_after_locked(struct vmm_instance *instance, uint32_t priority, uint32_t timeline,
			    uint64_t sequence) VMM_REQUIRES(vmm_paging_lock_class);
/* Puts a queued offer into effect if it is due. Returns true if the allocation is offered then. */
bool vmm_offer_apply_due(struct vmm_allocation *allocation) VMM_REQUIRES(vmm_paging_lock_class);
/* Returns true if the allocation is offered, also by a queued offer that is due. */
static inline bool vmm_is_offered_locked(struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	return vmm_unlikely(allocation->offer | allocation->offer_queued) &&
	       vmm_offer_apply_due(allocation);
}
/* the two forms of a call: one resource, or a list of allocations (PRI-03, PRI-04) */
struct vmm_shape {
	void *resource;
	const uint32_t *handles;
	uint32_t count;
};
NTSTATUS vmm_memory_set_priority(struct vmm_device *device, const struct vmm_shape *shape,
				 const uint32_t *priorities) VMM_MUST_CHECK;
/* Returns one priority per handle, or the highest of the resource's allocations. */
NTSTATUS vmm_memory_query_priority(struct vmm_device *device, const struct vmm_shape *shape,
				   uint32_t *priorities) VMM_MUST_CHECK;
/* Returns one status per handle, or the worst of the resource's allocations. (PRI-04) */
NTSTATUS vmm_memory_query_residency(struct vmm_device *device, const struct vmm_shape *shape,
				    uint32_t *status) VMM_MUST_CHECK;

/* ---- paging queues and residency lists of WDDM 2.x (paging_queue.c, make_resident.c) ---- */
struct vmm_paging_queue_request {
	int32_t priority;
	uint32_t physical_adapter;
	uint32_t queue, fence; /* out: handles */
	void *fence_address;   /* out: where the client reads the fence's 64-bit value */
};
NTSTATUS vmm_paging_queue_create(struct vmm_device *device,
				 struct vmm_paging_queue_request *request) VMM_MUST_CHECK;
NTSTATUS vmm_paging_queue_destroy(struct vmm_device *device, uint32_t handle) VMM_MUST_CHECK;
/*
 * Returns the hazard handle of the device that has the queue, or had it when its adapter stopped.
 * NULL and a finding: there is no such queue. Takes the process lock only. (PNP-03)
 */
void *vmm_paging_queue_device(struct vmm_process *process, uint32_t handle);
struct vmm_residency_request {
	uint32_t queue;
	const uint32_t *handles; /* a copy that vidmm owns */
	uint32_t count, flags;
	uint64_t fence_value, bytes_to_trim; /* out */
};
/*
 * STATUS_PENDING: the allocations are on the device's residency list, and the GPU may use them once
 * the queue's fence has reached fence_value. (RES-03)
 */
NTSTATUS vmm_memory_make_resident(struct vmm_device *device,
				  struct vmm_residency_request *request) VMM_MUST_CHECK;
/* UpdateAllocationProperty (PRI-15). A value is used only if its bit in the mask is set. */
struct vmm_property_request {
	uint32_t queue, allocation; /* handles */
	uint32_t set, preferred;    /* DXGK_SEGMENTPREFERENCE.Value */
	uint32_t flags, mask;       /* D3DDDI_UPDATEALLOCPROPERTY: Flags.Value, PropertyMaskValue */
	uint64_t fence_value;       /* out */
};
NTSTATUS vmm_memory_update_property(struct vmm_device *device,
				    struct vmm_property_request *request) VMM_MUST_CHECK;
NTSTATUS vmm_memory_evict(struct vmm_device *device,
			  struct vmm_residency_request *request) VMM_MUST_CHECK;
/*
 * Sets how many bytes the process's residency lists may hold in a segment group of the adapter: 0
 * local, 1 non-local. Evicts nothing; requests trims if the usage exceeds the new budget by more
 * than the old one. STATUS_NOT_SUPPORTED: the miniport is of WDDM 1.x. STATUS_INVALID_PARAMETER and
 * a finding: an unknown group. The same holds for the two functions below. (RES-10, PRI-13)
 */
NTSTATUS vmm_budget_set(struct vmm_adapter *adapter, struct vmm_process *process, uint32_t group,
			uint64_t bytes) VMM_MUST_CHECK;
struct vmm_video_memory {
	uint64_t budget, usage, reserved, available; /* in bytes; available: for a reservation */
};
NTSTATUS vmm_budget_query(struct vmm_adapter *adapter, struct vmm_process *process, uint32_t group,
			  struct vmm_video_memory *info) VMM_MUST_CHECK;
/*
 * Reserves bytes of the group for the process; replaces its earlier reservation.
 * STATUS_INVALID_PARAMETER and a finding: also more bytes than are available. (PRI-14)
 */
NTSTATUS vmm_budget_reserve(struct vmm_adapter *adapter, struct vmm_process *process,
			    uint32_t group, uint64_t bytes) VMM_MUST_CHECK;
/* ---- flush.c ---- */
/*
 * Flushes the CPU caches of a range of an allocation, in bytes, if the GPU does not snoop them.
 * STATUS_INVALID_PARAMETER and a finding: the handle is no allocation of the device, or the range
 * is not inside it. Takes the paging lock and the process lock. (CCH-01, CCH-02)
 */
NTSTATUS vmm_memory_invalidate_cache(struct vmm_device *device, uint32_t handle, uint64_t offset,
				     uint64_t length) VMM_MUST_CHECK;
/*
 * Waits until the moves of allocations that have begun are complete. STATUS_DEVICE_REMOVED: the
 * adapter is removed, or the client has gone. The caller holds no lock. (CCH-03)
 */
NTSTATUS vmm_memory_flush_transitions(struct vmm_adapter *adapter,
				      struct vmm_process *process) VMM_MUST_CHECK;
/* ---- trim notifications (trim.c, RES-09) ---- */
/* D3DDDI_TRIMRESIDENCYSET_FLAGS */
enum { VMM_TRIM_PERIODIC = 0x1, VMM_TRIM_RESTART = 0x2, VMM_TRIM_TO_BUDGET = 0x4 };
struct vmm_trim_client {
	/* Called on a thread of the adapter, with no lock held and a copy of this structure. */
	void (*call)(const struct vmm_trim_client *client, uint32_t flags, uint64_t bytes);
	void (*function)(void); /* the driver's callback, for the caller of vmm_trim_register */
	void *context, *owner;
};
/*
 * Registers a callback for trim notifications. STATUS_NOT_SUPPORTED: the miniport is of WDDM 1.x.
 * Takes the paging lock and the process lock; the caller holds no mutex.
 */
NTSTATUS vmm_trim_register(struct vmm_device *device, const struct vmm_trim_client *client,
			   uint32_t *handle) VMM_MUST_CHECK;
/*
 * Returns the hazard handle of the device that has the registration, or had it when its adapter
 * stopped (PNP-03). NULL: there is no such registration. Takes the process lock only.
 */
void *vmm_trim_device(struct vmm_process *process, uint32_t handle);
/*
 * Ends a registration. On return its callback does not run, unless the caller is that callback. The
 * caller holds no mutex and uses the device by `guard`. While the device is paused the guard does
 * not protect it; *device is NULL afterwards if the device has ended. `function`: NULL, or the
 * callback that must be registered. STATUS_INVALID_PARAMETER: the device has no such registration.
 */
NTSTATUS vmm_trim_unregister(struct vmm_device **device, struct vmm_hazard_guard *guard,
			     uint32_t handle, void (*function)(void)) VMM_MUST_CHECK;
/* Wakes the thread of trim notifications. Any mutex may be held. */
void vmm_trims_wake(struct vmm_adapter *adapter);
/* Called at each submission of a device, with any mutex held. */
static inline void vmm_trims_submitted(struct vmm_adapter *adapter)
{
	if (vmm_unlikely(atomic_load_explicit(&adapter->trims_asleep, memory_order_relaxed)))
		vmm_trims_wake(adapter);
}
/* Ends the reservations of a process that ends. Takes the paging lock. */
void vmm_budget_release(struct vmm_adapter *adapter, const struct vmm_process *process);

/* ---- WDDM 2.x residency, for sched ---- */
/* Continues the operations of paging queues and the queued evictions. */
void vmm_paging_work_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns whether a packet with that number (see adapter->submissions) is not to be prepared yet:
 * an operation of a paging queue waits for the GPU, and many later packets have overtaken the
 * operation.
 */
bool vmm_paging_holds_back(const struct vmm_adapter *adapter, uint64_t submission)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Sets whether the first packet to prepare waits for memory that the GPU uses. While it does,
 * operations that wait for such memory, too, are not tried again.
 */
void vmm_paging_packet_waits(struct vmm_adapter *adapter, bool waits)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns how many searches for space have had to wait for the GPU. */
uint64_t vmm_paging_blocked_searches(const struct vmm_adapter *adapter)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * What a submission needs: the device's list as it was before the submission, and what the
 * submission references.
 */
struct vmm_residency_set {
	struct vmm_device *device;
	uint64_t submission;
	struct vmm_instance *const *listed; /* what the submission references; may hold NULL */
	uint32_t listed_count;
	uint64_t preparation;
	bool writes; /* the submission does not say what it writes: treat all of it as written */
	/* The submission may wait until other processes unlock. */
	bool awaits_unlocks;
};
/* The rounds in which a set is placed: each after VMM_NO_VIDEO_MEMORY from the one before. */
enum vmm_residency_round {
	VMM_ROUND_IN_ORDER,      /* in list order; what is resident stays where it is */
	VMM_ROUND_LARGEST_FIRST, /* may evict parts of the set that are not placed again yet */
	VMM_ROUND_ANEW,          /* evicts the set first, the idle part that may move (SPL-13) */
	VMM_ROUND_COUNT
};
/*
 * Makes the whole set resident at once, and brings back the device's page tables if they were
 * evicted (VA-22); returns as vmm_memory_make_resident_locked. (RES-08, PRI-12)
 */
vmm_status vmm_residency_gather(const struct vmm_residency_set *set,
				enum vmm_residency_round round) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * After VMM_NO_VIDEO_MEMORY for a set that awaits unlocks: would it fit, or might it, if other
 * processes unlocked what they have locked?
 */
bool vmm_unlock_would_help(const struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The caller's work waits. Wakes the worker when the work should be tried again. Returns a ticket:
 * vmm_unlock_is_awaited says whether that time has not come yet; ticket 0 awaits nothing.
 */
uint64_t vmm_unlock_await(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
bool vmm_unlock_is_awaited(const struct vmm_adapter *adapter, uint64_t ticket)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Records that the packet uses the set. Returns the paging packet that must be complete before the
 * packet runs.
 */
uint64_t vmm_residency_use(const struct vmm_residency_set *set, uint32_t timeline,
			   uint64_t sequence) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns whether the allocation has one physical address while it is resident: it is
 * AccessedPhysically, or the adapter has no GPU virtual addresses, and the allocation can only be
 * in memory segments.
 */
bool vmm_allocation_has_address(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
static inline bool vmm_allocation_is_physical(const struct vmm_allocation *allocation)
{
	return (allocation->flags & 0x8000u) != 0; /* AccessedPhysically */
}

/* ---- residency for sched; the caller of each function holds the paging lock ---- */
/*
 * Makes the instance resident in a segment of its write set (`write`) or read set. (SPL-12, SPL-13)
 * - VMM_OK: it is resident. Its content is there once the paging packets queued so far are
 *   complete.
 * - VMM_PENDING: the GPU still uses the instance, or every instance that could make free space.
 *   Victims that were idle may be evicted already, and the instance itself if its segment cannot
 *   serve this use; their paging commands are collected. No content is lost. The caller waits for
 *   progress and calls again, which continues from there.
 * - VMM_NO_VIDEO_MEMORY: it does not fit although the GPU uses no instance that could be evicted.
 *   Victims may be evicted, as above.
 * - STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST: its content was lost after the reference was accepted.
 *   (PAG-20)
 * - Any other failure: no system memory, or an adapter that has been removed or is to be reset.
 */
vmm_status vmm_memory_make_resident_locked(struct vmm_adapter *adapter,
					   struct vmm_instance *instance, bool write,
					   uint64_t preparation) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Evicts an instance that lies in the way of the rest of the set that it is in, so that the set
 * can be placed anew (SPL-13). Does nothing for one that is not in a memory segment, or that must
 * stay there. VMM_PENDING: the GPU still uses it, and vmm_memory_place_is_in_use returns true.
 */
vmm_status vmm_memory_give_up_place(struct vmm_adapter *adapter, struct vmm_instance *instance,
				    uint64_t preparation) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
bool vmm_memory_place_is_in_use(struct vmm_adapter *adapter, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns the segment id and the GPU address (segment base + offset, DMA-18); both 0 if paged out
 * (DMA-17).
 */
static inline void vmm_memory_location(const struct vmm_instance *instance, uint32_t *segment,
				       uint64_t *address)
{
	*segment = instance->segment;
	*address = instance->address;
}
/*
 * Returns true if the instance is in a segment that serves reads and writes, with nothing to do
 * before the GPU uses it. Making it resident would then change nothing. The answer for a whole list
 * stays valid as long as adapter->placements does not change.
 */
static inline bool vmm_memory_is_in_place(const struct vmm_allocation *allocation,
					  const struct vmm_instance *instance)
{
	return (allocation->serving >> instance->segment & 1) &&
	       !(instance->handover | instance->lock_count |
		 (allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING));
}
/*
 * WDDM 1.x: returns true if there is no reason to refuse a reference to the instance, and nothing
 * to do or to record for one. Only its placement then decides whether it is in place.
 */
static inline bool vmm_memory_is_plain(const struct vmm_allocation *allocation,
				       const struct vmm_instance *instance)
{
	return !(atomic_load_explicit(&allocation->marks, memory_order_relaxed) |
		 (instance->head & VMM_HEAD_SPECIAL));
}
/*
 * A packet and the patch locations [first, end) that it uses; all instances that they reference are
 * in place.
 */
struct vmm_use_in_place {
	struct vmm_instance *const *instances; /* of the allocation list; an element may be NULL */
	uint32_t instance_count;
	const D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t first, end;
	uint32_t timeline;
	uint64_t sequence, preparation;
};
/*
 * Records that the packet uses those instances, with the same effect as making each of them
 * resident in that order. Returns the paging packet that the packet must wait for; 0: all of them
 * are complete.
 */
uint64_t vmm_memory_use_in_place(struct vmm_adapter *adapter, const struct vmm_use_in_place *use)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * A submission, or a portion of one, has been prepared: later uses belong to the next one. Policies
 * that predict uses count in these.
 */
void vmm_memory_end_submission(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Makes instances with that vmm_instance.rest the last victims, the highest needed_at first: the
 * rest of a split DMA buffer needs them. 0: there is no such buffer.
 */
void vmm_memory_set_split_rest(struct vmm_adapter *adapter, uint64_t rest)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the capacity of the largest segment of the set, in bytes. */
uint64_t vmm_memory_largest_segment(const struct vmm_adapter *adapter, uint32_t segment_set)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the capacity of the segments of the set together, in bytes. */
uint64_t vmm_memory_capacity(const struct vmm_adapter *adapter, uint32_t segment_set)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Submits pending paging commands. Returns the sequence number of the last paging packet, complete
 * or not.
 */
uint64_t vmm_memory_flush_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns true if a submission may reference the instance while the CPU has it locked. (LKR-02,
 * LKR-06)
 */
bool vmm_memory_can_render_under_lock(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Returns true if the instance is locked with AcquireAperture, so that the CPU sees its linear
 * image. No packet may reference it then. (SWZ-18, LKR-06)
 */
static inline bool vmm_memory_has_aperture_lock(const struct vmm_instance *instance)
{
	return vmm_locks(instance) && (instance->lock_flags & VMM_LOCK_ACQUIRE_APERTURE);
}

/*
 * At submission: returns STATUS_SUCCESS if the DMA buffer may reference this instance of a renamed
 * allocation. (REN-16)
 */
NTSTATUS vmm_rename_check(struct vmm_instance *instance, uint64_t submission,
			  uint32_t process) VMM_MUST_CHECK VMM_REQUIRES(vmm_paging_lock_class);
/* Records that the submission uses the instance, which retires older ones. (REF-02) */
void vmm_rename_used(struct vmm_instance *instance, uint64_t submission)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Allocates zeroed, page-aligned system memory for a DMA buffer; returns its kernel pointer and bus
 * address.
 */
vmm_status vmm_memory_dma_create_locked(struct vmm_adapter *adapter, uint64_t size_bytes,
					struct vmm_backing *backing,
					uint64_t *bus_address) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_memory_dma_destroy_locked(struct vmm_adapter *adapter, struct vmm_backing *backing)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Where a DMA buffer is mapped for the GPU. */
struct vmm_dma_mapping {
	/* physical adapter of a link that has the aperture; 0: the lead, or no link */
	uint32_t physical;
	uint32_t segment, range;
	uint64_t address;
};
/*
 * Maps a DMA buffer into the first aperture segment of the set with free space, evicting
 * allocations if there is none. Reads mapping->physical and writes the rest. Returns VMM_PENDING as
 * vmm_memory_make_resident_locked. (DMA-05)
 */
vmm_status vmm_memory_dma_map_locked(struct vmm_adapter *adapter, struct vmm_backing *backing,
				     uint32_t segment_set,
				     struct vmm_dma_mapping *mapping) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_memory_dma_unmap_locked(struct vmm_adapter *adapter, const struct vmm_dma_mapping *mapping)
	VMM_REQUIRES(vmm_paging_lock_class);

/* Asserts the invariants of all segments, lists and arenas. Takes the paging lock. */
void vmm_memory_check(struct vmm_adapter *adapter);

/*
 * Reset of the adapter (PAG-27, TDR-05, TDR-06, TDR-11). The caller holds the paging lock, and no
 * other thread is in the miniport.
 *
 * - vmm_memory_hide_locked is called before the reset. No CPU address maps a memory segment
 *   afterwards; locked addresses map system memory.
 * - vmm_memory_reset_locked is called before the restart, with the paging timeline as it was. It
 *   reports all lost content to the miniport, leaves nothing resident and drops pending paging
 *   commands.
 */
void vmm_memory_hide_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_memory_reset_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/* After the restart: makes paging buffers usable again. */
void vmm_memory_restart_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/* Empties the residency lists and paging queues of lost devices. (TDR-07) */
void vmm_memory_devices_lost_locked(struct vmm_adapter *adapter)
	VMM_REQUIRES(vmm_paging_lock_class);

/* Evicts all instances, waiting for the GPU. Takes the paging lock. For adapter stop. (PNP-02) */
void vmm_memory_evict_all(struct vmm_adapter *adapter);

/*
 * Before a loss of power: evicts content from the segments that will lose it. The GPU is idle, no
 * thread uses a device of the adapter, no packet is prepared. Takes the paging lock; the caller
 * holds no mutex. If it fails, a reason is reported, no content is lost, and the power must stay
 * on. (PNP-06)
 */
enum vmm_power_loss { VMM_POWER_STANDBY, VMM_POWER_HIBERNATE };
vmm_status vmm_memory_power_down(struct vmm_adapter *adapter,
				 enum vmm_power_loss loss) VMM_MUST_CHECK;
/*
 * After power is back: restores pinned allocations to their placement. All others are paged in on
 * use. Takes the paging lock; the caller holds no mutex. (PAG-18)
 */
void vmm_memory_power_up(struct vmm_adapter *adapter);

/* How often something happened, and to how many bytes of allocations. */
struct vmm_tally {
	uint64_t count, bytes;
};
/* Classes of allocation priorities: minimum, low, normal, high, maximum. */
#define VMM_ALLOCATION_CLASSES 5u
/*
 * Why bytes are copied from system memory into a memory segment. FIRST: the instance has not been
 * in one before. While it is in one, LOCK: a CPU lock copied content out. Else the reason
 * for which it left its last one; also the cause of that eviction.
 */
enum vmm_paging_cause {
	VMM_CAUSE_FIRST = 0,
	VMM_CAUSE_CAPACITY,      /* for free space: too few bytes were free in the segment */
	VMM_CAUSE_FRAGMENTATION, /* for free space: enough bytes were free, but no range was */
	VMM_CAUSE_LOCK,          /* for the CPU, which had locked it */
	VMM_CAUSE_TRIM,          /* 2.x: it is on no residency list any more, or misplaced */
	VMM_CAUSE_OTHER,         /* a segment that does not serve the use; power, reset, stop */
	VMM_CAUSE_COUNT
};
/*
 * Counted for D3DKMTQueryStatistics since the adapter started (QST-03, QST-04); by cause, for
 * vidmm_adapter_statistics.
 */
struct vmm_memory_tallies {
	uint64_t paged_in_bytes[VMM_CAUSE_COUNT];
	uint64_t memory_evictions[VMM_CAUSE_COUNT]; /* from memory segments */
	uint64_t aperture_evictions;
	struct vmm_tally created, destroyed; /* CREATE and DESTROY events */
	struct vmm_tally page_ins;           /* RESIDENCY events into a segment, REFERENCED */
	/* All evictions; those to free space in a segment; those for a CPU lock. */
	struct vmm_tally evictions, pressure, locks;
	uint64_t bytes_mapped, bytes_unmapped; /* of apertures: MAP and UNMAP operations */
	uint64_t ranges_released;              /* swizzling ranges, reclaimed ones included */
	/* Bytes evicted from each segment, by the class of the allocation's priority. */
	uint64_t evicted_bytes[VMM_PORT_SEGMENTS_MAX][VMM_ALLOCATION_CLASSES];
};
struct vmm_memory_statistics {
	uint32_t segment_count;
	struct vmm_memory_tallies tallies;
	uint64_t resident_bytes[VMM_PORT_SEGMENTS_MAX], peak_bytes[VMM_PORT_SEGMENTS_MAX];
	uint32_t residents[VMM_PORT_SEGMENTS_MAX];
	/* Those of other modules, as the scheduler's splits, stay 0. */
	VIDMM_ADAPTER_COUNTERS(VIDMM_COUNTER_MEMBER)
};
/*
 * Stores the adapter's memory statistics. Peaks cover the time since the adapter started. This and
 * the next two functions take the paging lock; the caller holds no mutex.
 */
void vmm_memory_statistics(struct vmm_adapter *adapter, struct vmm_memory_statistics *statistics);
/*
 * The same for a process that reads them repeatedly: peaks cover the time since its previous call,
 * the first time since the adapter started. Other readers' peaks are not affected. VMM_NO_MEMORY is
 * possible at the first call only.
 */
vmm_status vmm_memory_statistics_of(struct vmm_adapter *adapter, uint32_t process,
				    struct vmm_memory_statistics *statistics) VMM_MUST_CHECK;
/*
 * One segment, by its index (segment id - 1). STATUS_INVALID_PARAMETER and a finding: there is no
 * such segment (QST-04). This and the next function take the paging lock.
 */
struct vmm_segment_usage {
	uint64_t commit_limit_bytes, resident_bytes, evicted_bytes;
	uint64_t evicted_by_class[VMM_ALLOCATION_CLASSES];
	uint32_t residents;
	DXGK_SEGMENTFLAGS flags;
};
NTSTATUS vmm_memory_segment_usage(struct vmm_adapter *adapter, const struct vmm_process *process,
				  uint32_t index, struct vmm_segment_usage *usage) VMM_MUST_CHECK;
/*
 * The allocations that the process has created, as far as they are resident: in the segment with
 * index *index, or in all segments (NULL). preferred: by the position of the segment in
 * the allocation's preferences; elsewhere: in no preferred segment. The last three are bytes of
 * backing stores, also of allocations that are not resident. STATUS_INVALID_PARAMETER and a
 * finding: there is no such segment. (QST-05)
 */
#define VMM_SEGMENT_PREFERENCES 5u
struct vmm_process_memory {
	uint64_t resident_bytes;
	uint32_t residents;
	struct vmm_tally preferred[VMM_SEGMENT_PREFERENCES], elsewhere;
	uint64_t system_bytes, cached_bytes, section_bytes;
};
NTSTATUS vmm_memory_of_process(struct vmm_adapter *adapter, const struct vmm_process *process,
			       const uint32_t *index,
			       struct vmm_process_memory *usage) VMM_MUST_CHECK;
/* Frees the peaks of a process that reads no more statistics. */
void vmm_memory_forget_peak_reader(struct vmm_adapter *adapter, uint32_t process);

#endif
