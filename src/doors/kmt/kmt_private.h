/* SPDX-License-Identifier: MIT */
/*
 * The common part of the D3DKMT functions: begin and end of a call, lookups, and refusals. Each
 * function copies its arguments in once, enters the device or context by a protected lookup
 * (object/hazard.h), calls the core, and emits one event. (HND, LOCK-33)
 */
#ifndef VMM_DOORS_KMT_PRIVATE_H
#define VMM_DOORS_KMT_PRIVATE_H

#include <string.h>
#include "doors/common/allocations.h"
#include "doors/common/quick_lock.h"
#include "doors/common/sync.h"
#include "doors/kmt/kmt.h"
#include "sched/hw_sched.h"

/* Exported; all other symbols are hidden by default. */
#define KMT_API __attribute__((visibility("default")))

#define VMM_KMT_OWN_PROCESS ((HANDLE)(intptr_t)-1) /* the value of GetCurrentProcess() */

/*
 * Begins a call of the calling process without a device. Returns STATUS_UNSUCCESSFUL if there is no
 * process. The caller may then return at once; vmm_kmt_leave has no effect.
 */
NTSTATUS vmm_kmt_begin(struct vmm_door_call *call, uint32_t door);
/*
 * Enters a device in a call that has begun, by its HANDLE of hazard.h: for calls that name an
 * object of a device only. Returns STATUS_INVALID_PARAMETER if the HANDLE is NULL or dead.
 * `cleaning`: see below.
 */
NTSTATUS vmm_kmt_enter_hazard(struct vmm_door_call *call, void *device, bool cleaning);

/*
 * Begins a call on a device of the calling process. Returns STATUS_INVALID_PARAMETER if the handle
 * is no live device (HND-07), and STATUS_DEVICE_REMOVED if the device is lost, except when
 * `cleaning`: close, destroy and unlock work on a lost device.
 */
NTSTATUS vmm_kmt_enter_device(struct vmm_door_call *call, D3DKMT_HANDLE device, uint32_t door,
			      bool cleaning);
/* Like vmm_kmt_enter_device, for a context and its device. */
NTSTATUS vmm_kmt_enter_context(struct vmm_door_call *call, D3DKMT_HANDLE handle, uint32_t door,
			       struct vmm_context **context);
/*
 * Like vmm_kmt_enter_device, for the device of a paging queue, hardware context or hardware queue:
 * some calls name no device. If device_of returns NULL, it has reported a finding.
 */
NTSTATUS vmm_kmt_enter_object(struct vmm_door_call *call, D3DKMT_HANDLE handle, uint32_t door,
			      void *device_of(struct vmm_process *process, uint32_t handle),
			      bool cleaning);
/*
 * Begins a call on an adapter of the process. On failure, too, the caller releases *adapter by
 * vmm_adapter_put.
 */
NTSTATUS vmm_kmt_enter_adapter(struct vmm_door_call *call, D3DKMT_HANDLE handle, uint32_t door,
			       struct vmm_adapter **adapter);
/*
 * Look up the HANDLE of hazard.h for a handle: of a device, or of a context with its device. Return
 * NULL, with a finding, if there is no live object.
 */
void *vmm_kmt_live_device(struct vmm_process *process, D3DKMT_HANDLE handle);
void *vmm_kmt_live_context(struct vmm_process *process, D3DKMT_HANDLE handle, void **device);
/* Ends the call with its door event; returns the status. */
NTSTATUS vmm_kmt_leave(const struct vmm_door_call *call, NTSTATUS status, uint32_t object,
		       uint64_t count, uint64_t flags);
/* Ends a call that uses no device and has an event only if it fails; returns the status. */
static inline NTSTATUS vmm_kmt_leave_query(const struct vmm_door_call *call, NTSTATUS status)
{
	return NT_SUCCESS(status) ? status : vmm_kmt_leave(call, status, 0, 0, 0);
}

/*
 * vmm_kmt_enter_device inlined, for calls that are as short as entering and leaving: locks.
 */
VMM_ALWAYS_INLINE NTSTATUS vmm_kmt_enter_device_inline(struct vmm_door_call *call,
						       D3DKMT_HANDLE handle, uint32_t door,
						       bool cleaning)
{
	struct vmm_process *process = vmm_kmt_process();

	call->process = process;
	call->device = NULL;
	call->on_stopped = false;
	call->door = door;
	if (vmm_unlikely(!process))
		return STATUS_UNSUCCESSFUL;
	call->observe = process->world->observe;
	call->began = vmm_observe_begin(call->observe, VIDMM_EVENT_DOOR);
	void *hazard = vmm_device_cache_find(process, handle);
	if (vmm_unlikely(!hazard))
		hazard = vmm_kmt_live_device(process, handle);
	call->device = vmm_hazard_enter(&call->guard, VMM_HAZARD_DEVICE, hazard);
	if (vmm_unlikely(!call->device))
		return vmm_door_no_device(call, hazard, cleaning);
	return cleaning ? STATUS_SUCCESS : vmm_door_check_alive(call->device);
}

/* Calls of lock and unlock that only count; see doors/common/quick_lock.h. */
static inline void *vmm_kmt_quick_device(D3DKMT_HANDLE handle)
{
	const struct vmm_process *process = vmm_kmt_process();

	return vmm_likely(process) ? vmm_device_cache_find(process, handle) : NULL;
}
static inline bool vmm_kmt_quick_lock(D3DKMT_LOCK *data)
{
	return vmm_likely(data && !data->pPages && !data->NumPages) &&
	       vmm_quick_lock(vmm_kmt_quick_device(data->hDevice), data->hAllocation,
			      data->Flags.Value, false, &data->pData);
}
static inline bool vmm_kmt_quick_unlock(const D3DKMT_UNLOCK *data)
{
	return vmm_likely(data) &&
	       vmm_quick_unlock_list(vmm_kmt_quick_device(data->hDevice), &data->phAllocations,
				     &data->NumAllocations);
}
static inline bool vmm_kmt_quick_lock2(D3DKMT_LOCK2 *data)
{
	return vmm_likely(data && !data->Flags.Value) &&
	       vmm_quick_lock(vmm_kmt_quick_device(data->hDevice), data->hAllocation, 0, true,
			      &data->pData);
}
static inline bool vmm_kmt_quick_unlock2(const D3DKMT_UNLOCK2 *data)
{
	return vmm_likely(data) &&
	       vmm_quick_unlock(vmm_kmt_quick_device(data->hDevice), data->hAllocation);
}

/*
 * For calls that lack a required part: a finding, the door event and STATUS_INVALID_PARAMETER, or
 * `status`. (HND-11)
 */
NTSTATUS vmm_kmt_refuse_as(uint32_t door, NTSTATUS status, const char *function, const char *why);
static inline NTSTATUS vmm_kmt_refuse(uint32_t door, const char *function, const char *why)
{
	return vmm_kmt_refuse_as(door, STATUS_INVALID_PARAMETER, function, why);
}
static inline NTSTATUS vmm_kmt_no_argument(uint32_t door, const char *function)
{
	return vmm_kmt_refuse(door, function, "the argument pointer is NULL");
}
/* present.c: presents in the context, or in the hardware queue that `hw` names (PRS-10). */
NTSTATUS vmm_kmt_present_in(const struct vmm_door_call *call, const char *function,
			    const D3DKMT_PRESENT *args, struct vmm_context *context,
			    struct vmm_hw_present_request *hw);

/*
 * Returns the adapter of a handle of the process, kept until vmm_adapter_put. NULL: the handle is
 * not live, or the adapter has stopped.
 */
struct vmm_adapter *vmm_kmt_adapter(struct vmm_process *process, D3DKMT_HANDLE handle);

/*
 * Returns in *key the key by which memory.h knows the resource of a handle; NULL for handle 0.
 * Returns STATUS_INVALID_PARAMETER unless it is a resource of the call's device.
 */
NTSTATUS vmm_kmt_resource_key(const struct vmm_door_call *call, D3DKMT_HANDLE handle, void **key);

/* ---- standard.c ---- */
/* Returns whether the flags of D3DKMT_CREATEALLOCATION ask for a standard allocation. */
bool vmm_kmt_is_standard(uint32_t flags);
/*
 * Checks the description of a standard allocation before anything is copied in; it has no private
 * driver data. (ALC-03)
 */
NTSTATUS vmm_kmt_standard_check(const struct vmm_door_call *call,
				const D3DKMT_CREATEALLOCATION *args, uint32_t flags,
				uint64_t *heap_bytes);
/*
 * Drops the caller's private data of the request's only item, which may be any bytes. `local`: the
 * buffer that vmm_door_copy_infos may have used for it. (ALC-03)
 */
void vmm_kmt_standard_drop_data(struct vmm_allocate_request *request, const void *local);
/* Sets the memory of the request's only item. Freeing the request releases its section. */
NTSTATUS vmm_kmt_standard_memory(const struct vmm_door_call *call, uint32_t flags,
				 struct vmm_allocate_request *request);

/* ---- keyed.c ---- */
/*
 * Checks that private data has a pointer, or no bytes. Otherwise a finding of that rule and
 * STATUS_INVALID_PARAMETER. (KMX-07, KMX-09)
 */
NTSTATUS vmm_kmt_check_keyed_data(const struct vmm_process *process, const char *rule,
				  const void *data, uint32_t bytes);

/*
 * ---- the steps by hand of functions that are made from calls.tsv ----
 *
 * More of them, with the call's whole argument, are in kmt_calls.h.
 */

union vmm_kmt_device_state {
	D3DKMT_DEVICEEXECUTION_STATE execution;
	D3DKMT_DEVICEPAGEFAULT_STATE page_fault;
};

/* Names a resource, or `count` allocations whose handles are not set yet. */
NTSTATUS vmm_kmt_shape(const struct vmm_door_call *call, D3DKMT_HANDLE resource, uint32_t count,
		       struct vmm_shape *shape);
NTSTATUS vmm_kmt_deallocate(const struct vmm_door_call *call, D3DKMT_HANDLE resource,
			    const D3DKMT_HANDLE *list, uint32_t count, uint32_t flags);
/*
 * Replaces the handles of resources by the keys by which memory.h knows them. *keys: the caller
 * frees it; NULL without handles.
 */
NTSTATUS vmm_kmt_resource_keys(const struct vmm_door_call *call, const uint32_t *handles,
			       uint32_t count, void ***keys);
/* Translates D3DKMT_OFFER_FLAGS, and refuses reserved ones. (OFR-14, OFR-16) */
NTSTATUS vmm_kmt_offer_flags(const struct vmm_door_call *call, uint32_t given,
			     struct vmm_offer_request *request);
NTSTATUS vmm_kmt_check_budget(const struct vmm_door_call *call, const char *what, HANDLE process,
			      uint32_t physical_adapter);
NTSTATUS vmm_kmt_register_trim(const struct vmm_door_call *call,
			       const D3DKMT_REGISTERTRIMNOTIFICATION *args, uint32_t *handle);
NTSTATUS vmm_kmt_create_device(const struct vmm_door_call *call, struct vmm_adapter *adapter,
			       const D3DKMT_CREATEDEVICE *args, D3DKMT_HANDLE *handle);
/* For calls that a lost device accepts, but not one of a stopped adapter. */
NTSTATUS vmm_kmt_check_running(struct vmm_door_call *call, NTSTATUS status);
NTSTATUS vmm_kmt_device_state(const struct vmm_door_call *call, const D3DKMT_GETDEVICESTATE *args,
			      union vmm_kmt_device_state *state);
NTSTATUS vmm_kmt_check_update(const struct vmm_door_call *call, D3DKMT_HANDLE device,
			      D3DKMT_HANDLE context);
NTSTATUS vmm_kmt_check_submit(const struct vmm_door_call *call, NTSTATUS status, uint32_t contexts);
/*
 * Enters a context or a hardware context (SCH-10), which have different kinds of handles. For the
 * latter *context is NULL.
 */
NTSTATUS vmm_kmt_enter_scheduled(struct vmm_door_call *call, D3DKMT_HANDLE handle,
				 struct vmm_context **context);
NTSTATUS vmm_kmt_set_priority(const struct vmm_door_call *call, struct vmm_context *context,
			      D3DKMT_HANDLE handle, int32_t priority, bool in_process);
NTSTATUS vmm_kmt_get_priority(const struct vmm_door_call *call, const struct vmm_context *context,
			      D3DKMT_HANDLE handle, bool in_process, int32_t *priority);
NTSTATUS vmm_kmt_queued_limit(const struct vmm_door_call *call, const D3DKMT_SETQUEUEDLIMIT *args,
			      UINT *limit);
NTSTATUS vmm_kmt_escape(struct vmm_door_call *call, const D3DKMT_ESCAPE *args, uint32_t *object);

/* Looks up the further contexts of a broadcast. (SYN-28) */
NTSTATUS vmm_kmt_copy_others(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     struct vmm_sched_sync *sync, const D3DKMT_HANDLE *handles,
			     uint32_t count);
/* Refuses a signal that names no context; the whole call. (SYN-31) */
NTSTATUS vmm_kmt_refuse_contexts(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *args);

/* Closes the event on failure. */
NTSTATUS vmm_kmt_wait_file(const struct vmm_door_call *call, const D3DKMT_CREATESYNCFILE *args,
			   int event);
NTSTATUS vmm_kmt_check_keyed_flags(const struct vmm_door_call *call,
				   D3DKMT_CREATEKEYEDMUTEX2_FLAGS flags);
NTSTATUS vmm_kmt_acquire_keyed(const struct vmm_door_call *call, D3DKMT_HANDLE handle,
			       const LARGE_INTEGER *timeout, struct vmm_keyed_access *access,
			       void *data);

/* The bits of flags whose structure has no member for all of them. */
static inline uint32_t vmm_kmt_bits(const void *flags)
{
	uint32_t bits;

	memcpy(&bits, flags, sizeof(bits));
	return bits;
}

/* What the creation of allocations returns besides the handles in the caller's array. */
struct vmm_kmt_created {
	uint32_t flags; /* in: D3DKMT_CREATEALLOCATIONFLAGS */
	uint32_t resource, global, first;
};
/* step: bytes of an element of the caller's array, of the older or the newer form */
NTSTATUS vmm_kmt_create_allocation(const struct vmm_door_call *call,
				   const D3DKMT_CREATEALLOCATION *args, size_t step,
				   struct vmm_kmt_created *created);

/* The opening of a resource. vmm_kmt_opening_done ends it. */
struct vmm_kmt_opening {
	struct vmm_door_call *call;
	struct vmm_share_key key;
	struct vmm_share_sizes sizes;
	uint32_t *handles, *item_bytes;
	uint32_t resource;
	struct vmm_keyed_open keyed; /* of a bundle */
	uint32_t sync;
};
NTSTATUS vmm_kmt_open_resource(struct vmm_kmt_opening *o, const D3DKMT_OPENRESOURCE *args,
			       size_t step);
NTSTATUS vmm_kmt_open_bundle(struct vmm_kmt_opening *o,
			     const D3DKMT_OPENRESOURCEFROMNTHANDLE *given);
void vmm_kmt_opening_done(const struct vmm_kmt_opening *o);
/* Opens an NT handle of a named object. (SHR-21) */
NTSTATUS vmm_kmt_open_name(const struct vmm_door_call *call, enum vmm_nt_kind kind,
			   const OBJECT_ATTRIBUTES *attributes, uint32_t access, uint64_t *handle);

/* Copies at most `capacity` adapters to the caller's array, each with a new handle. (HND-09) */
NTSTATUS vmm_kmt_enumerate(const struct vmm_door_call *call, const char *function,
			   D3DKMT_ADAPTERINFO *adapters, uint32_t capacity, ULONG *count);
NTSTATUS vmm_kmt_enumerate_2(const struct vmm_door_call *call, const D3DKMT_ENUMADAPTERS2 *args,
			     ULONG *count);
NTSTATUS vmm_kmt_enumerate_3(const struct vmm_door_call *call, const D3DKMT_ENUMADAPTERS3 *args,
			     ULONG *count);
/* Returns the adapter with that LUID, kept until vmm_adapter_put. (ADP-06) */
NTSTATUS vmm_kmt_find_adapter(const struct vmm_door_call *call, const char *function, LUID luid,
			      struct vmm_adapter **adapter);
NTSTATUS vmm_kmt_open_adapter(const struct vmm_door_call *call, LUID luid, D3DKMT_HANDLE *handle);
/* Fills the outputs, on success only. (ADP-11) */
NTSTATUS vmm_kmt_open_display(const struct vmm_door_call *call,
			      D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME *args);
NTSTATUS vmm_kmt_enum_processes(const struct vmm_door_call *call, struct vmm_adapter *adapter,
				const D3DKMT_ENUMPROCESSES *args, UINT64 *count);
NTSTATUS vmm_kmt_shared_primary(const struct vmm_door_call *call,
				const D3DKMT_GETSHAREDPRIMARYHANDLE *args, uint32_t *handle);

/* ---- statistics.c ---- */
/* What D3DKMTQueryStatistics asks the core for; each type uses a part. */
struct vmm_kmt_statistics {
	uint32_t segments, nodes, sources, resets;
	struct vmm_memory_statistics memory;
	struct vmm_segment_usage segment;
	struct vmm_process_memory process;
	struct vmm_video_memory group;
	struct vmm_node_usage node;
	struct vmm_source_usage source;
};
NTSTATUS vmm_kmt_statistics(const struct vmm_door_call *call, struct vmm_adapter *adapter,
			    const D3DKMT_QUERYSTATISTICS *args, struct vmm_kmt_statistics *found);
/* The record of a node, of the given counters of clients; system: of paging, or NULL. */
D3DKMT_QUERYSTATISTICS_PROCESS_NODE_INFORMATION
vmm_kmt_node_record(const struct vmm_node_counts *clients, const struct vmm_node_counts *system);

/* ---- query.c ---- */
/* Checks the index of a query that names a physical adapter. (QAI-07) */
NTSTATUS vmm_kmt_check_physical_adapter(const struct vmm_process *process,
					const struct vmm_adapter *adapter, uint32_t index);

/* ---- registry.c: D3DKMTQueryAdapterInfo with type QUERYREGISTRY ---- */
NTSTATUS vmm_kmt_query_registry(const struct vmm_process *process,
				const struct vmm_adapter *adapter,
				const D3DKMT_QUERYADAPTERINFO *args);

#endif
