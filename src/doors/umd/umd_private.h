/* SPDX-License-Identifier: MIT */
/*
 * The common part of the device callbacks: begin and end of a call, limits of what a driver can
 * have copied, and refusals. Each callback enters the device or context by a protected lookup
 * (object/hazard.h), calls the core, emits one event, and translates NTSTATUS to HRESULT. (LOCK-33,
 * PRI-16)
 */
#ifndef VMM_DOORS_UMD_PRIVATE_H
#define VMM_DOORS_UMD_PRIVATE_H

#include "doors/umd/umd.h"
#include "memory/memory.h"
#include "sched/hw_sched.h"
#include "sched/sched.h"
#include "sync/sync.h"

/* Limits on what a caller can make the library copy; far above what drivers use. */
#define VMM_UMD_ALLOCATIONS_MAX   65536u
#define VMM_UMD_PRIVATE_BYTES_MAX (1u << 20)
#define VMM_UMD_PAGES_MAX         (1u << 20)
#define VMM_UMD_HANDLES_MAX       (1u << 20)

struct vmm_umd_call {
	struct vmm_device *device; /* NULL: none; else protected until vmm_umd_leave */
	struct vmm_hazard_guard guard;
	uint64_t began;
	uint32_t door;
	/* Of a call without a device: it destroys something of a stopped device, so it succeeds. */
	bool on_stopped;
};

/*
 * Begins a call on a live device that is neither removed nor in error (LOCK-33, PRI-16). With
 * `destroying`, a lost device is accepted. Returns STATUS_INVALID_PARAMETER if the HANDLE is not a
 * device.
 */
NTSTATUS vmm_umd_enter(struct vmm_umd_call *call, HANDLE device, uint32_t door, bool destroying);
/*
 * Returns the status of a call on a HANDLE that cannot be entered: STATUS_DEVICE_REMOVED if its
 * adapter has stopped (PNP-03), otherwise STATUS_INVALID_PARAMETER.
 */
NTSTATUS vmm_umd_no_device(struct vmm_umd_call *call, HANDLE handle, bool destroying) VMM_COLD;
NTSTATUS vmm_umd_unusable_status(const struct vmm_device *device) VMM_COLD;
/*
 * Like vmm_umd_enter, by one of the device's contexts, which is then protected as well. *context is
 * NULL if the device has no such context.
 */
NTSTATUS vmm_umd_enter_context(struct vmm_umd_call *call, HANDLE device, HANDLE handle,
			       uint32_t door, struct vmm_context **context);
/* Ends the call with its door event; returns the HRESULT. */
HRESULT vmm_umd_leave(const struct vmm_umd_call *call, NTSTATUS status, uint32_t object,
		      uint64_t count, uint64_t flags);

HRESULT vmm_umd_hresult(NTSTATUS status);

/* vmm_umd_enter and vmm_umd_leave inlined, for calls that are as short as these two: locks. */
static inline NTSTATUS vmm_umd_usable(const struct vmm_device *device)
{
	if (vmm_unlikely(atomic_load_explicit(&device->adapter->closed, memory_order_relaxed) ||
			 atomic_load_explicit(&device->error, memory_order_relaxed) !=
				 VMM_DEVICE_OK))
		return vmm_umd_unusable_status(device);
	return STATUS_SUCCESS;
}

VMM_ALWAYS_INLINE NTSTATUS vmm_umd_enter_inline(struct vmm_umd_call *call, HANDLE handle,
						uint32_t door, bool destroying)
{
	struct vmm_device *device = vmm_hazard_enter(&call->guard, VMM_HAZARD_DEVICE, handle);

	call->device = device;
	call->door = door;
	if (vmm_unlikely(!device))
		return vmm_umd_no_device(call, handle, destroying);
	call->began = vmm_observe_begin(device->adapter->observe, VIDMM_EVENT_DOOR);
	return destroying ? STATUS_SUCCESS : vmm_umd_usable(device);
}

VMM_ALWAYS_INLINE HRESULT vmm_umd_leave_inline(const struct vmm_umd_call *call, NTSTATUS status,
					       uint32_t object, uint64_t count, uint64_t flags)
{
	const struct vmm_device *device = call->device;

	if (vmm_likely(device)) {
		vmm_event_inline(device->adapter->observe, VIDMM_EVENT_DOOR, device->process->id,
				 object, call->door, (uint32_t)status, count,
				 vmm_observe_elapsed(device->adapter->observe, call->began), flags);
		vmm_hazard_leave(&call->guard);
	} else if (call->on_stopped) {
		return S_OK;
	}
	return vmm_likely(status == STATUS_SUCCESS) ? S_OK : vmm_umd_hresult(status);
}

/*
 * A call with a NULL argument: enters and leaves the device. Returns E_INVALIDARG, or the error of
 * entering.
 */
HRESULT vmm_umd_no_argument(HANDLE device, uint32_t door);

/*
 * Copies count elements of the caller's array, into `local` if it is large enough. *copy is NULL
 * for an empty array.
 */
NTSTATUS vmm_umd_copy_in(const void *array, uint32_t count, uint32_t limit, size_t element,
			 void *local, size_t local_bytes, void **copy);
void vmm_umd_copy_done(void *copy, const void *local);

/* The number of a HANDLE; 0, which names no object, if it has more than 32 bits. */
static inline uint32_t vmm_umd_number(HANDLE handle)
{
	return (uintptr_t)handle > UINT32_MAX ? 0 : (uint32_t)(uintptr_t)handle;
}

/*
 * A callback that is not built: E_NOTIMPL and an event with its name, so that a driver which calls
 * one learns at once that nothing was done.
 */
HRESULT vmm_umd_not_built(HANDLE device, const char *name);

/*
 * ---- the steps by hand of callbacks that are made from calls.tsv ----
 *
 * More of them, with the call's whole argument, are in umd_calls.h.
 */

/* The caller's two arrays, of which one is used. */
struct vmm_umd_set {
	const HANDLE *resources;
	const D3DKMT_HANDLE *handles;
	uint32_t count;
};

NTSTATUS vmm_umd_allocate(const struct vmm_umd_call *call, const D3DDDICB_ALLOCATE *args,
			  D3DKMT_HANDLE *first, D3DKMT_HANDLE *resource);
NTSTATUS vmm_umd_deallocate(const struct vmm_umd_call *call, HANDLE resource,
			    const D3DKMT_HANDLE *list, uint32_t count, uint32_t flags);
NTSTATUS vmm_umd_offer(const struct vmm_umd_call *call, const struct vmm_umd_set *given,
		       uint32_t priority, uint32_t flags);
/* `answers` is an array of BOOL or D3DDDI_RECLAIM_RESULT, both of 32 bits. */
NTSTATUS vmm_umd_reclaim(const struct vmm_umd_call *call, const struct vmm_umd_set *given,
			 int32_t *answers, bool boolean, struct vmm_reclaim_request *request);
/* Refuses a call because of `member`, which is not a live context of the call's device. */
NTSTATUS vmm_umd_refuse_context(const struct vmm_umd_call *call, const char *rule,
				const char *member);
NTSTATUS vmm_umd_check_present(const struct vmm_umd_call *call, const struct vmm_context *context,
			       NTSTATUS status);

/* Copies of the caller's arrays (MFN-34): short ones are stored here, longer ones are allocated. */
struct vmm_umd_arrays {
	uint32_t local_handles[32];
	uint64_t local_values[32];
	void *handles, *values; /* the copies */
	const void *others[VMM_SYNC_BROADCAST_MAX];
};

/* Makes a request with one value for all objects, without arrays yet. */
struct vmm_sched_sync vmm_umd_sync(struct vmm_umd_arrays *arrays, enum vmm_sync_form form,
				   bool signal, uint32_t count, uint64_t value);
void vmm_umd_arrays_done(const struct vmm_umd_arrays *arrays);
NTSTATUS vmm_umd_refuse_sync(const struct vmm_umd_call *call, const char *what);
NTSTATUS vmm_umd_copy_handles(const struct vmm_umd_call *call, struct vmm_umd_arrays *arrays,
			      struct vmm_sched_sync *sync, const void *handles);
NTSTATUS vmm_umd_copy_fixed(const struct vmm_umd_call *call, struct vmm_umd_arrays *arrays,
			    struct vmm_sched_sync *sync, const D3DKMT_HANDLE *handles);
NTSTATUS vmm_umd_copy_others(const struct vmm_umd_call *call, struct vmm_umd_arrays *arrays,
			     struct vmm_sched_sync *sync, const HANDLE *contexts, uint32_t count);
NTSTATUS vmm_umd_read_union(const struct vmm_umd_call *call, struct vmm_umd_arrays *arrays,
			    struct vmm_sched_sync *sync, uint64_t value);

#endif
