/* SPDX-License-Identifier: MIT */
/*
 * memory: VidMm proper. Where each instance of each allocation lives, how it moves, what keeps its content, and
 * what the CPU may see of it. Everything here is guarded by the adapter's paging lock unless a function says that
 * it takes the locks itself. No DDI outside the scheduler class is called with that lock held.
 *
 * memory never schedules: paging work leaves through struct vmm_memory_engine, which sched provides.
 */
#ifndef VMM_MEMORY_MEMORY_H
#define VMM_MEMORY_MEMORY_H

#include "memory/gate.h"
#include "memory/va.h"
#include "object/live.h"
#include "object/object.h"
#include "port/port.h"

/* One run of paging commands in a paging buffer, ready for the GPU (SUB-18, SUB-19). */
struct vmm_paging_portion {
	uint32_t segment; /* of the buffer; 0: system memory */
	uint64_t address; /* in that segment's or the physical address space */
	char *cpu;
	uint32_t size_bytes, start, end;
	void *private_data;
	uint32_t private_bytes, private_start, private_end;
	bool synchronous; /* names a SynchronousPaging allocation: no render packet beside it (PAG-21) */
	uint32_t physical; /* the adapter of a link on which it runs; 0: the lead, or no link */
	uint64_t after;    /* number of the paging timeline that must be complete before; 0: none */
};

#define VMM_ALLOCATION_SYNCHRONOUS_PAGING 0x800u /* DXGK_ALLOCATIONINFOFLAGS.SynchronousPaging */

struct vmm_memory_engine {
	/*
	 * Queues the portions, at most one for each physical adapter, on the paging timeline as one number, which is complete
	 * when all of them are; returns it (previous + 1). Paging lock held. The portions are copied; the buffers behind
	 * them stay until the timeline has completed that number.
	 */
	uint64_t (*submit_paging)(struct vmm_adapter *adapter,
				  const struct vmm_paging_portion *portions, uint32_t count);
	/* Waits with the paging lock held, keeping the hardware fed meanwhile. */
	vmm_status (*wait_locked)(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
				  uint32_t reason);
	/*
	 * SUB-20: nodes that were last given a packet of that context (NULL: of any of the device's) are told to let go of it. The
	 * number of the paging timeline that is complete when they have; 0: there is none such. Paging lock held.
	 */
	uint64_t (*switch_context)(struct vmm_adapter *adapter, const struct vmm_device *device,
				   const void *context);
	/* Called with no lock held after memory dropped the paging lock: hands over what became ready meanwhile. */
	void (*kick)(struct vmm_adapter *adapter);
	/* There is paging work for vmm_paging_work_locked, or what it waited for may have come. Any lock. */
	void (*wake)(struct vmm_adapter *adapter);
};

vmm_status vmm_memory_create(struct vmm_adapter *adapter, const struct vmm_memory_engine *engine,
			     uint64_t system_limit_bytes) VMM_MUST_CHECK;
void vmm_memory_destroy(struct vmm_adapter *adapter);
/* Paging lock: take, and give back after flushing the collected paging commands. */
void vmm_paging_lock(struct vmm_adapter *adapter);
void vmm_paging_unlock(struct vmm_adapter *adapter);

/* ---- creation and destruction (create.c, destroy.c); take the locks themselves ---- */
#define VMM_ALLOCATE_OVERRIDE_PRIORITY 0x4u /* D3DDDI_ALLOCATIONINFO2.Flags.OverridePriority, 2.2 */
struct vmm_allocate_item {
	void *private_data; /* our copy */
	uint32_t private_bytes;
	const void *system_memory; /* pSystemMem */
	uint32_t flags;            /* D3DDDI_ALLOCATIONINFO Flags.Value */
	uint32_t source_id;        /* VidPnSourceId */
	bool newer;                /* D3DDDI_ALLOCATIONINFO2, which has a Priority (PRI-02) */
	uint32_t priority;         /* with OverridePriority among the flags */
	uint32_t handle;           /* out */
	struct vmm_section *
		adopted; /* what is at system_memory of a process apart; of vmm_memory_allocate's own */
};
struct vmm_allocate_request {
	const void *private_data; /* of the call */
	uint32_t private_bytes;
	void *runtime_resource; /* hResource; NULL: the allocations belong to the device alone (ALF-35) */
	void *runtime_data; /* kept with a shared resource for those who open it (ALC-08) */
	uint32_t runtime_bytes;
	uint32_t count;
	struct vmm_allocate_item *items;
	uint32_t resource_handle; /* out */
	/*
	 * ALF-38: a heap that exists. One item: its system_memory, or that of the section, is what the miniport is to use;
	 * heap_bytes of it. Without private data the miniport is asked for some.
	 */
	uint64_t heap_bytes;
	struct vmm_section *section;
	bool standard; /* out: the private data is the miniport's own */
	/*
	 * ALF-39: one item, whose memory other adapters may have, too. Its section is made here, and the caller puts it; or
	 * it has one: then it is that of another adapter's resource, and the miniport is asked for private data.
	 */
	bool cross_adapter;
	bool nt_security; /* a shared resource has no global handle, only NT handles (ALC-04) */
};
NTSTATUS vmm_memory_allocate(struct vmm_device *device,
			     struct vmm_allocate_request *request) VMM_MUST_CHECK;
/* flags: D3DDDICB_DESTROYALLOCATION2FLAGS (ALF-37), 0 where there are none. */
NTSTATUS vmm_memory_deallocate(struct vmm_device *device, void *runtime_resource,
			       const uint32_t *handles, uint32_t count,
			       uint32_t flags) VMM_MUST_CHECK;
/* Everything the device still holds (LOCK-30, PNP-03); its contexts are gone and all its work is complete. */
void vmm_memory_close_device(struct vmm_device *device);
/*
 * Calls the miniport's Close/Destroy for what the GPU is done with (SUB-29), and tells those who wait for progress.
 * PASSIVE_LEVEL, the submit lock held at most.
 */
void vmm_memory_reap(struct vmm_adapter *adapter);
/* Would that free something? Paging lock held. */
bool vmm_memory_can_reap_locked(struct vmm_adapter *adapter);

/* Its process is at its end, and nobody looks through it any more, whatever is left of what it created. No lock held. */
void vmm_memory_end_viewer(struct vmm_adapter *adapter, struct vmm_os_viewer *viewer);

/* ---- context_allocation.c: what a miniport makes for a context (PRE-11) ---- */
/* context NULL: for all contexts of the device. Takes the locks itself; hAllocation is set on success alone. */
NTSTATUS vmm_context_allocation_create(struct vmm_device *device, const void *context,
				       DXGKARGCB_CREATECONTEXTALLOCATION *args) VMM_MUST_CHECK;
/* Waits for the GPU. */
NTSTATUS vmm_context_allocation_destroy(struct vmm_adapter *adapter,
					const void *handle) VMM_MUST_CHECK;
/*
 * Those of the context, or of the device itself, have no place any more, and the GPU is not on it: before the miniport
 * ends it. Then those that it has not ended. All packets are complete; no lock held.
 */
void vmm_context_allocations_retire(struct vmm_device *device, const void *context);
void vmm_context_allocations_end(struct vmm_device *device, const void *context);
/* The rest with the paging lock held. Are all that a packet of the context needs in memory, and initialized? */
bool vmm_context_allocations_are_in_place(const struct vmm_device *device, const void *context);
/* As vmm_memory_make_resident_locked, all of them. */
vmm_status vmm_context_allocations_gather(struct vmm_device *device, const void *context,
					  uint64_t preparation) VMM_MUST_CHECK;
/* The packet uses them. Returns the paging packet that it has to wait for; 0: none. */
uint64_t vmm_context_allocations_use(struct vmm_device *device, const void *context,
				     uint32_t timeline, uint64_t sequence);

/* ---- section.c: memory that several allocations may have, while anybody holds it ---- */
/* The caller's descriptor is no longer needed. `sealed`: it must be, or it counts as no memory (os.h). */
vmm_status vmm_section_open(struct vmm_os *os, int descriptor, uint64_t size_bytes, bool sealed,
			    struct vmm_section **section) VMM_MUST_CHECK;
void vmm_section_put(struct vmm_section *section); /* NULL: nothing */

NTSTATUS vmm_resource_mark_shared(struct vmm_device *device, void *runtime_resource) VMM_MUST_CHECK;
/* By what a shared resource is named: a global handle, or what an NT handle named, of which the caller has a reference. */
struct vmm_bundle;
struct vmm_share_key {
	uint32_t global;
	struct vmm_bundle *bundle; /* NULL: the global handle counts */
};
/* Whose resource it is. STATUS_INVALID_PARAMETER and a finding: nobody's. */
NTSTATUS vmm_share_luid(struct vmm_process *process, const struct vmm_share_key *key,
			uint32_t *luid) VMM_MUST_CHECK;
/* For clients that know resources by handles alone: *key is what runtime_resource is elsewhere. */
NTSTATUS vmm_resource_create(struct vmm_device *device, bool shared, void **key) VMM_MUST_CHECK;
/* The global handle of the source's shared primary; 0: it has none. */
uint32_t vmm_share_primary(const struct vmm_adapter *adapter, uint32_t source_id);
struct vmm_share_sizes {
	uint32_t count, runtime_bytes, private_bytes, total_item_bytes;
};
/* STATUS_INVALID_PARAMETER and a finding: not a resource of the device's adapter. */
NTSTATUS vmm_share_sizes(struct vmm_device *device, const struct vmm_share_key *key,
			 struct vmm_share_sizes *sizes) VMM_MUST_CHECK;
/* The kept data into buffers of those sizes; item_bytes, of count entries, gets the size of each part of items. */
struct vmm_share_data {
	void *runtime_data, *private_data, *items;
	uint32_t *item_bytes;
};
NTSTATUS vmm_share_read(struct vmm_device *device, const struct vmm_share_key *key,
			const struct vmm_share_sizes *sizes,
			const struct vmm_share_data *data) VMM_MUST_CHECK;
NTSTATUS vmm_resource_global_handle(struct vmm_device *device, uint32_t resource,
				    uint32_t *global) VMM_MUST_CHECK;
NTSTATUS vmm_resource_open(struct vmm_device *device, const struct vmm_share_key *key,
			   uint32_t *resource, uint32_t *allocations,
			   uint32_t *count) VMM_MUST_CHECK;

/* ---- NT handles of resources (bundle.c) ---- */

/* 1: a resource; 3: a resource, a keyed mutex and a synchronization object (SHR-07). */
#define VMM_BUNDLE_MAX 3u
struct vmm_nt_target;
struct vmm_keyed_open;
/*
 * What an NT handle of them would name, with a reference that the caller puts. The resource is the device's, whose process's
 * the others are. STATUS_INVALID_PARAMETER and a finding: one of them is none, or not made with NtSecuritySharing (SHR-06,
 * SHR-07).
 */
NTSTATUS vmm_bundle_target(struct vmm_device *device, const uint32_t *handles, uint32_t count,
			   struct vmm_nt_target *target) VMM_MUST_CHECK;
/* What an NT handle names, with a reference: STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH and a finding. */
NTSTATUS vmm_bundle_find(struct vmm_process *process, uint64_t handle,
			 struct vmm_bundle **bundle) VMM_MUST_CHECK;
void vmm_bundle_put(struct vmm_bundle *bundle);
/*
 * Handles for what comes with the resource; 0: nothing does. device: NULL: the keyed mutex alone, tied to no device.
 * STATUS_INVALID_PARAMETER and a finding (KMX-08, SFL-12): there are none.
 */
NTSTATUS vmm_bundle_open(struct vmm_process *process, struct vmm_device *device,
			 struct vmm_bundle *bundle, struct vmm_keyed_open *keyed,
			 uint32_t *sync) VMM_MUST_CHECK;
/* The adapter's devices are gone: what NT handles still keep of its resources goes with the next vmm_memory_reap. */
void vmm_bundles_end_adapter(struct vmm_adapter *adapter);

/* ---- CPU access (lock.c, rename.c); take the locks themselves ---- */
struct vmm_lock_request {
	uint32_t handle; /* in/out */
	uint32_t flags;  /* D3DDDICB_LOCKFLAGS.Value */
	uint32_t private_data;
	uint32_t page_count;
	const uint32_t *pages; /* our copy */
	bool page_list_given;  /* pPages was not NULL */
	uint64_t waited_ns;    /* before it had to leave the device; 0 at first */
	void *data;            /* out */
};
/*
 * A lock that waits for the GPU does not keep an adapter from losing power, or a packet behind a wait of its context could keep it for
 * ever: when the device is paused the lock, of either version, answers STATUS_PENDING, having changed nothing, and the door passes it on
 * to vmm_memory_lock_outside, which waits for the end of the pause outside the device and tries again. Device NULL afterwards: it has
 * ended (STATUS_INVALID_PARAMETER), and nobody is inside.
 */
NTSTATUS vmm_memory_lock_outside(
	struct vmm_device **device, struct vmm_visit *visit, struct vmm_lock_request *request,
	NTSTATUS (*lock)(struct vmm_device *, struct vmm_lock_request *)) VMM_MUST_CHECK VMM_COLD;
NTSTATUS vmm_memory_lock_in_full(struct vmm_device *device,
				 struct vmm_lock_request *request) VMM_MUST_CHECK;
NTSTATUS vmm_memory_unlock_in_full(struct vmm_device *device, const uint32_t *handles,
				   uint32_t count) VMM_MUST_CHECK;

static inline bool vmm_lock_is_plain(const struct vmm_adapter *adapter, uint32_t flags,
				     const struct vmm_lock_request *request)
{
	return vmm_lock_flags_are_plain(adapter->wddm2, flags,
					request->page_count | request->page_list_given);
}

/* Was there nothing to do but to count? Then that is done, by either version's rules. */
static inline bool vmm_lock_at_gate(struct vmm_device *device, struct vmm_lock_request *request)
{
	const struct vmm_adapter *adapter = device->adapter;
	uint64_t bytes;
	char *address;

	/* LOCK-33: who comes while the adapter is reset waits for the end of that. */
	if (vmm_unlikely(atomic_load_explicit(&adapter->recovering, memory_order_relaxed)))
		return false;
	address = vmm_gate_lock(device, request->handle, &bytes);
	if (vmm_unlikely(!address))
		return false;
	request->data = address;
	vmm_event_often(adapter->observe, VIDMM_EVENT_LOCK, device->process->id, request->handle, 0,
			request->flags, 0, bytes, request->handle);
	return true;
}

VMM_MUST_CHECK static inline NTSTATUS vmm_memory_lock(struct vmm_device *device,
						      struct vmm_lock_request *request)
{
	if (vmm_likely(vmm_lock_is_plain(device->adapter, request->flags, request) &&
		       vmm_lock_at_gate(device, request)))
		return STATUS_SUCCESS;
	return vmm_memory_lock_in_full(device, request);
}
/* From 2.0 on (lock2.c); of the request handle and flags, whose place must be empty. */
NTSTATUS vmm_memory_lock2(struct vmm_device *device,
			  struct vmm_lock_request *request) VMM_MUST_CHECK;
VMM_MUST_CHECK static inline NTSTATUS vmm_memory_unlock(struct vmm_device *device,
							const uint32_t *handles, uint32_t count)
{
	if (vmm_unlikely(count != 1 || !vmm_gate_unlock(device, handles[0])))
		return vmm_memory_unlock_in_full(device, handles, count);
	vmm_event_often(device->adapter->observe, VIDMM_EVENT_UNLOCK, device->process->id,
			handles[0], 0, 0, 0, 0, 0);
	return STATUS_SUCCESS;
}

/* ---- offer, reclaim, priority, residency (offer.c); take the locks themselves ---- */
struct vmm_handle_set { /* exactly one of the two arrays (OFR-02) */
	void *const *resources;
	const uint32_t *allocations;
	uint32_t count;
};
struct vmm_offer_request {
	uint32_t priority;
	uint32_t flags;   /* D3DDDI_OFFER_FLAGS (OFR-14), 0 where there are none */
	bool immediately; /* OFR-16: fails if work that is queued still uses one */
};
NTSTATUS vmm_memory_offer(struct vmm_device *device, const struct vmm_handle_set *set,
			  const struct vmm_offer_request *request) VMM_MUST_CHECK;
/* Per entry, by how bad it is: D3DDDI_RECLAIM_RESULT, of which older calls know only "nothing" and "something". */
enum vmm_reclaim_result { VMM_RECLAIM_OK, VMM_RECLAIM_DISCARDED, VMM_RECLAIM_NOT_COMMITTED };
struct vmm_reclaim_request {
	struct vmm_handle_set set;
	uint32_t *results; /* one per entry, or NULL */
	uint32_t
		queue; /* handle, if it is `queued`; else what is on a list comes in before the next submission runs */
	bool queued;          /* OFR-12 */
	bool needs_results;   /* OFR-14: the caller has no use for the call without them */
	uint64_t fence_value; /* out */
};
/* STATUS_PENDING: usable by the GPU once the queue's fence has reached fence_value (OFR-12). */
NTSTATUS vmm_memory_reclaim(struct vmm_device *device,
			    struct vmm_reclaim_request *request) VMM_MUST_CHECK;
/* Offered as of the packet's completion (OFR-10). Paging lock held. */
void vmm_offer_after_locked(struct vmm_instance *instance, uint32_t priority, uint32_t timeline,
			    uint64_t sequence);
bool vmm_offer_settle(struct vmm_allocation *allocation);
/* Is it offered by now? Paging lock held. */
static inline bool vmm_is_offered_locked(struct vmm_allocation *allocation)
{
	return vmm_unlikely(allocation->offer | allocation->offer_queued) &&
	       vmm_offer_settle(allocation);
}
struct vmm_shape { /* the two shapes of PRI-03, PRI-04: one resource, or a list */
	void *resource;
	const uint32_t *handles;
	uint32_t count;
};
NTSTATUS vmm_memory_set_priority(struct vmm_device *device, const struct vmm_shape *shape,
				 const uint32_t *priorities) VMM_MUST_CHECK;
/* One per handle, or the highest of the resource. */
NTSTATUS vmm_memory_query_priority(struct vmm_device *device, const struct vmm_shape *shape,
				   uint32_t *priorities) VMM_MUST_CHECK;
NTSTATUS vmm_memory_query_residency(struct vmm_device *device, const struct vmm_shape *shape,
				    uint32_t *status) VMM_MUST_CHECK;

/* ---- paging queues and residency lists of WDDM 2.x (paging_queue.c, make_resident.c); take the locks themselves ---- */
struct vmm_paging_queue_request {
	int32_t priority;
	uint32_t physical_adapter;
	uint32_t queue, fence; /* out: handles */
	void *fence_address;   /* out: where the client reads the fence's 64-bit value */
};
NTSTATUS vmm_paging_queue_create(struct vmm_device *device,
				 struct vmm_paging_queue_request *request) VMM_MUST_CHECK;
NTSTATUS vmm_paging_queue_destroy(struct vmm_device *device, uint32_t handle) VMM_MUST_CHECK;
/* The live handle of the device whose queue that is; NULL: none. */
void *vmm_paging_queue_device(struct vmm_process *process, uint32_t handle);
struct vmm_residency_request {
	uint32_t queue;
	const uint32_t *handles; /* our copy */
	uint32_t count, flags;
	uint64_t fence_value, bytes_to_trim; /* out */
};
/* STATUS_PENDING: on the list, and usable once the queue's fence has reached fence_value (RES-03). */
NTSTATUS vmm_memory_make_resident(struct vmm_device *device,
				  struct vmm_residency_request *request) VMM_MUST_CHECK;
/* PRI-15; of the values only those count whose bits in the mask are set. */
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
/* What the process may keep resident in a budget group of the adapter (RES-10): 0 local, 1 non-local. */
NTSTATUS vmm_budget_set(struct vmm_adapter *adapter, struct vmm_process *process, uint32_t group,
			uint64_t bytes) VMM_MUST_CHECK;
struct vmm_video_memory {
	uint64_t budget, usage, reserved, available; /* bytes; available: for a reservation */
};
NTSTATUS vmm_budget_query(struct vmm_adapter *adapter, struct vmm_process *process, uint32_t group,
			  struct vmm_video_memory *info) VMM_MUST_CHECK;
/* What of the group no other process may have (PRI-14); takes the place of an earlier one. */
NTSTATUS vmm_budget_reserve(struct vmm_adapter *adapter, struct vmm_process *process,
			    uint32_t group, uint64_t bytes) VMM_MUST_CHECK;
/* Trim notifications (RES-09): trim.c. D3DDDI_TRIMRESIDENCYSET_FLAGS. */
enum { VMM_TRIM_PERIODIC = 0x1, VMM_TRIM_RESTART = 0x2, VMM_TRIM_TO_BUDGET = 0x4 };
struct vmm_trim_client {
	/* On a thread of the adapter's, no lock held. Gets a copy of this. */
	void (*call)(const struct vmm_trim_client *client, uint32_t flags, uint64_t bytes);
	void (*function)(void); /* the driver's own, for whoever called vmm_trim_register */
	void *context, *owner;
};
NTSTATUS vmm_trim_register(struct vmm_device *device, const struct vmm_trim_client *client,
			   uint32_t *handle) VMM_MUST_CHECK;
/* The live handle of the device whose registration that is; NULL: none. */
void *vmm_trim_device(struct vmm_process *process, uint32_t handle);
/*
 * When it returns its callback does not run, unless the caller is in it. Comes out of the device while that is paused; *device
 * NULL: it has ended meanwhile. function: NULL, or whose registration it must be.
 */
NTSTATUS vmm_trim_unregister(struct vmm_device **device, struct vmm_visit *visit, uint32_t handle,
			     void (*function)(void)) VMM_MUST_CHECK;
/* A device has submitted. */
void vmm_trims_wake(struct vmm_adapter *adapter);
static inline void vmm_trims_submitted(struct vmm_adapter *adapter)
{
	if (vmm_unlikely(atomic_load_explicit(&adapter->trims_asleep, memory_order_relaxed)))
		vmm_trims_wake(adapter);
}
/* The process ends: its reservations do. */
void vmm_budget_release(struct vmm_adapter *adapter, const struct vmm_process *process);

/* The same for sched; paging lock held. */
/* Goes on with what waits: places it, completes it, evicts what is due. */
void vmm_paging_work_locked(struct vmm_adapter *adapter);
/*
 * Everything on the device's list that was there before that submission, and what the submission names, together in
 * memory (RES-08, PRI-12). As vmm_memory_make_resident_locked. `anew`: the largest first, and what has no place of this
 * round yet may leave for it.
 */
struct vmm_residency_set {
	struct vmm_device *device;
	uint64_t submission;
	struct vmm_instance *const *named;
	uint32_t named_count;
	uint64_t preparation;
	bool writes; /* nobody says what it writes: all of it may be */
};
vmm_status vmm_residency_gather(const struct vmm_residency_set *set, bool anew) VMM_MUST_CHECK;
/* The packet of that timeline uses all of it. Returns the paging packet that must be complete before it runs. */
uint64_t vmm_residency_use(const struct vmm_residency_set *set, uint32_t timeline,
			   uint64_t sequence);
static inline bool vmm_allocation_is_physical(const struct vmm_allocation *allocation)
{
	return (allocation->flags & 0x8000u) != 0; /* AccessedPhysically */
}

/* ---- residency: the narrow interface for sched; paging lock held ---- */
/*
 * VMM_OK: resident in a segment of the right set, its content is there once `paging_sequence` of the paging timeline has
 * completed. VMM_PENDING: everything in the way is in use by the GPU; nothing changed; wait for progress and ask
 * again. VMM_NO_VIDEO_MEMORY: does not fit although nothing is in use (SPL-12, SPL-13).
 */
vmm_status vmm_memory_make_resident_locked(struct vmm_adapter *adapter,
					   struct vmm_instance *instance, bool write,
					   uint64_t preparation) VMM_MUST_CHECK;
/* Where the GPU finds it: segment id and address (segment base + offset, DMA-18); 0 and 0 when paged out (DMA-17). */
static inline void vmm_memory_location(const struct vmm_instance *instance, uint32_t *segment,
				       uint64_t *address)
{
	*segment = instance->segment;
	*address = instance->address;
}
/*
 * Is it in a segment that serves every use, and nothing to be done before it is used, so that making it resident would change
 * nothing? And of all of a list it stays so, while adapter->placements does.
 */
static inline bool vmm_memory_is_in_place(const struct vmm_allocation *allocation,
					  const struct vmm_instance *instance)
{
	return (allocation->serving >> instance->segment & 1) &&
	       !(instance->handover | instance->lock_count |
		 (allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING));
}
/*
 * Is there nothing about it that a reference could be refused for, or that has to be done or noted (WDDM 1.x)? Whether it is in
 * place then only depends on where it is.
 */
static inline bool vmm_memory_is_plain(const struct vmm_allocation *allocation,
				       const struct vmm_instance *instance)
{
	return !(atomic_load_explicit(&allocation->marks, memory_order_relaxed) |
		 (instance->head & VMM_HEAD_SPECIAL));
}
/*
 * All that the patch locations name is in its place, and used by that packet: the same as making each of them resident in that
 * order. Returns the paging packet that the packet has to wait for; 0: none that is not complete.
 */
struct vmm_use_in_place {
	struct vmm_instance *const
		*instances; /* of the allocation list; NULL elements name nothing */
	uint32_t instance_count;
	const D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t first, end;
	uint32_t timeline;
	uint64_t sequence, preparation;
};
uint64_t vmm_memory_use_in_place(struct vmm_adapter *adapter, const struct vmm_use_in_place *use);
/* Instances of that `rest` leave after all others, the highest needed_at first; 0: there are none. Paging lock held. */
void vmm_memory_expect(struct vmm_adapter *adapter, uint64_t rest);
/* What the segments of the set hold together. */
uint64_t vmm_memory_capacity(const struct vmm_adapter *adapter, uint32_t segment_set);
/* Submits what was collected; returns the number of the last paging packet (complete or not). */
uint64_t vmm_memory_flush_locked(struct vmm_adapter *adapter);
/* May a submission reference it while the CPU holds it locked (LKR-02, LKR-06)? */
bool vmm_memory_can_render_locked(const struct vmm_instance *instance);

/* SWZ-18, LKR-06: the CPU sees its linear image. It may be referenced when it is unlocked. */
static inline bool vmm_memory_is_aperture_locked(const struct vmm_instance *instance)
{
	return vmm_locks(instance) && (instance->lock_flags & 0x040u); /* AcquireAperture */
}

/* Renaming at submission: may the buffer name this instance (REN-16), and what its use retires (REF-02). Paging lock. */
NTSTATUS vmm_rename_check(struct vmm_instance *instance, uint64_t submission,
			  uint32_t process) VMM_MUST_CHECK;
void vmm_rename_used(struct vmm_instance *instance, uint64_t submission);

/* System memory for DMA buffers: page aligned, zeroed; kernel pointer and bus address. Paging lock held. */
vmm_status vmm_memory_dma_create_locked(struct vmm_adapter *adapter, uint64_t size_bytes,
					struct vmm_backing *backing,
					uint64_t *bus_address) VMM_MUST_CHECK;
void vmm_memory_dma_destroy_locked(struct vmm_adapter *adapter, struct vmm_backing *backing);
/* Maps a DMA buffer into the first aperture of the set that has room (DMA-05). Paging lock held. */
struct vmm_dma_place {
	uint32_t physical; /* the adapter of a link whose aperture it is; 0: the lead, or no link */
	uint32_t segment, range;
	uint64_t address;
};
/* place->physical in, the rest out. */
vmm_status vmm_memory_dma_map_locked(struct vmm_adapter *adapter, struct vmm_backing *backing,
				     uint32_t segment_set,
				     struct vmm_dma_place *place) VMM_MUST_CHECK;
void vmm_memory_dma_unmap_locked(struct vmm_adapter *adapter, const struct vmm_dma_place *place);

/* Walks every invariant and asserts it. Takes the paging lock itself. */
void vmm_memory_check(struct vmm_adapter *adapter);

/*
 * The adapter is reset (PAG-27, TDR-05, TDR-06, TDR-11). Paging lock held, nobody else in the miniport. First, before the
 * reset: no program sees a memory segment any more. Then, before the restart, with the paging timeline where it stood: the
 * miniport hears of everything that is gone, nothing is resident, and what was to be submitted is forgotten.
 */
void vmm_memory_hide_locked(struct vmm_adapter *adapter);
void vmm_memory_reset_locked(struct vmm_adapter *adapter);
/* Paging buffers are usable again. */
void vmm_memory_restart_locked(struct vmm_adapter *adapter);
/* What lost devices kept resident, and waited for: nothing any more (TDR-07). */
void vmm_memory_devices_lost_locked(struct vmm_adapter *adapter);

/* Evicts everything, waiting for the GPU (adapter stop: PNP-02). Takes the locks itself. */
void vmm_memory_evict_all(struct vmm_adapter *adapter);

/*
 * Out of the segments that are about to lose their content, all else stays where it is (PNP-06). The GPU is idle, no
 * client is inside, nothing is prepared. On failure, with a reason, no content is lost and power must stay.
 */
enum vmm_power_loss { VMM_POWER_STANDBY, VMM_POWER_HIBERNATE };
vmm_status vmm_memory_power_down(struct vmm_adapter *adapter,
				 enum vmm_power_loss loss) VMM_MUST_CHECK;
/* What is pinned is back in its place when it returns (PAG-18); the rest comes when it is needed. */
void vmm_memory_power_up(struct vmm_adapter *adapter);

struct vmm_memory_figures {
	uint64_t resident_bytes[VMM_PORT_SEGMENTS_MAX], peak_bytes[VMM_PORT_SEGMENTS_MAX];
	uint32_t residents[VMM_PORT_SEGMENTS_MAX];
	uint64_t dedicated_video_bytes, dedicated_system_bytes, shared_system_bytes, mapped_bytes;
	uint64_t peak_total_bytes, system_bytes, peak_system_bytes, allocations, instances;
	uint64_t paged_in_bytes, paged_out_bytes, filled_bytes, discarded_bytes, moved_bytes,
		evictions, renames, waits_avoided, lock_waits, lock_wait_ns;
	uint64_t ranges_acquired, ranges_reclaimed, range_fallbacks;
};
/* Peaks are since the adapter started. */
void vmm_memory_figures(struct vmm_adapter *adapter, struct vmm_memory_figures *figures);
/*
 * The same for a process that looks again and again: peaks are since it last looked, at first since the adapter started. What others
 * are told stays what it is. VMM_NO_MEMORY, the first time.
 */
vmm_status vmm_memory_figures_of(struct vmm_adapter *adapter, uint32_t process,
				 struct vmm_memory_figures *figures) VMM_MUST_CHECK;
/* It looks no more. */
void vmm_memory_forget_looker(struct vmm_adapter *adapter, uint32_t process);

#endif
