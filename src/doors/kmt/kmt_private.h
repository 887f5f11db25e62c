/* SPDX-License-Identifier: MIT */
#ifndef VMM_DOORS_KMT_PRIVATE_H
#define VMM_DOORS_KMT_PRIVATE_H

#include "doors/kmt/kmt.h"
#include "memory/memory.h"
#include "sched/sched.h"
#include "sync/sync.h"

/* The default for everything else is hidden: what clients link against says so. */
#define KMT_API __attribute__((visibility("default")))

/* Bounds on what a caller may make us copy; far above what any client asks for. */
#define VMM_KMT_ALLOCATIONS_MAX   65536u
#define VMM_KMT_PRIVATE_BYTES_MAX (1u << 20)
#define VMM_KMT_PAGES_MAX         (1u << 20)
#define VMM_KMT_HANDLES_MAX       (1u << 20)

struct vmm_kmt_call {
	struct vmm_process *process;
	struct vmm_device *device; /* stays until vmm_kmt_leave */
	struct vmm_visit visit;
	uint64_t began;
	uint32_t door;
};

/* Whose call it is; NULL when nobody is attached (STATUS_UNSUCCESSFUL, as without any device). */
struct vmm_process *vmm_kmt_process(void);

#define VMM_KMT_OWN_PROCESS ((HANDLE)(intptr_t)-1) /* what GetCurrentProcess returns */

/* Begins a call of the calling process, on no device. STATUS_UNSUCCESSFUL: there is no process; nothing is to be left then but by vmm_kmt_leave. */
NTSTATUS vmm_kmt_begin(struct vmm_kmt_call *call, uint32_t door);
/*
 * The call, which has begun, is on the device that live.h knows so: that of an object of it, for calls that name no device.
 * NULL or gone: STATUS_INVALID_PARAMETER. cleaning: as below.
 */
NTSTATUS vmm_kmt_enter_live(struct vmm_kmt_call *call, void *device, bool cleaning);

/*
 * Begins a call on a device of the calling process. STATUS_INVALID_PARAMETER for what is no live device handle (HND-07);
 * STATUS_DEVICE_REMOVED for one that is lost, except when `cleaning`: close, destroy and unlock work on a lost device.
 */
NTSTATUS vmm_kmt_enter_device(struct vmm_kmt_call *call, D3DKMT_HANDLE device, uint32_t door,
			      bool cleaning);
/* The same on a context, with its device. */
NTSTATUS vmm_kmt_enter_context(struct vmm_kmt_call *call, D3DKMT_HANDLE handle, uint32_t door,
			       struct vmm_context **context);
/* On the device whose paging queue that is: some calls name no device. */
NTSTATUS vmm_kmt_enter_queue(struct vmm_kmt_call *call, D3DKMT_HANDLE queue, uint32_t door,
			     bool cleaning);
/*
 * STATUS_DEVICE_REMOVED: it is lost with its adapter or with a reset (TDR-07); STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE: it is in
 * error (PRI-16, TDR-19).
 */
static inline NTSTATUS vmm_kmt_check_alive(const struct vmm_device *device)
{
	return vmm_unlikely(atomic_load_explicit(&device->adapter->closed, memory_order_relaxed))
		       ? STATUS_DEVICE_REMOVED
		       : vmm_device_answer(device);
}
/* What live.h knows a handle by: devices, and contexts with their device. NULL and a finding: not a live one. */
void *vmm_kmt_live_device(struct vmm_process *process, D3DKMT_HANDLE handle);
void *vmm_kmt_live_context(struct vmm_process *process, D3DKMT_HANDLE handle, void **device);
/* Ends it with the door event; returns the status. */
NTSTATUS vmm_kmt_leave(const struct vmm_kmt_call *call, NTSTATUS status, uint32_t object,
		       uint64_t count, uint64_t flags);

/* vmm_kmt_enter_device and vmm_kmt_leave in line, for calls that take no longer than that: locks. */
static inline NTSTATUS vmm_kmt_enter_device_often(struct vmm_kmt_call *call, D3DKMT_HANDLE handle,
						  uint32_t door, bool cleaning)
{
	struct vmm_process *process = vmm_kmt_process();

	call->process = process;
	call->device = NULL;
	call->door = door;
	if (vmm_unlikely(!process))
		return STATUS_UNSUCCESSFUL;
	call->began = vmm_observe_begin(process->world->observe, VIDMM_EVENT_DOOR);
	void *live = vmm_device_by_name(process, handle);
	if (vmm_unlikely(!live))
		live = vmm_kmt_live_device(process, handle);
	call->device = vmm_live_enter(&call->visit, VMM_LIVE_DEVICE, live);
	if (vmm_unlikely(!call->device))
		return STATUS_INVALID_PARAMETER;
	return cleaning ? STATUS_SUCCESS : vmm_kmt_check_alive(call->device);
}

static inline NTSTATUS vmm_kmt_leave_often(const struct vmm_kmt_call *call, NTSTATUS status,
					   uint32_t object, uint64_t count, uint64_t flags)
{
	if (vmm_likely(call->process)) {
		const struct vmm_world *world = call->process->world;

		vmm_event_often(world->observe, VIDMM_EVENT_DOOR, call->process->id, object,
				call->door, (uint32_t)status, count,
				vmm_observe_elapsed(world->observe, call->began), flags);
	}
	if (vmm_likely(call->device))
		vmm_live_leave(&call->visit);
	return status;
}

/* For calls whose argument pointer is NULL: STATUS_INVALID_PARAMETER, and an event (HND-11). */
NTSTATUS vmm_kmt_refuse(const char *function, const char *why);

/* The adapter that a handle of the process stands for, kept until vmm_adapter_put; NULL: none, or it has stopped. */
struct vmm_adapter *vmm_kmt_adapter(struct vmm_process *process, D3DKMT_HANDLE handle);

/*
 * The key by which memory.h knows the resource of a handle. STATUS_INVALID_PARAMETER unless it is a resource of the
 * device; `zero` tells what handle 0 is: the key NULL.
 */
NTSTATUS vmm_kmt_resource_key(const struct vmm_kmt_call *call, D3DKMT_HANDLE handle, void **key);

/* ---- standard.c ---- */
/* Do the flags of D3DKMT_CREATEALLOCATION say that the caller describes what is to be created? */
bool vmm_kmt_is_standard(uint32_t flags);
/* What it says, before anything is copied in: private data of its own it has none (ALC-03). */
NTSTATUS vmm_kmt_standard_check(const struct vmm_kmt_call *call,
				const D3DKMT_CREATEALLOCATION *args, uint32_t flags,
				uint64_t *heap_bytes);
/* The memory of the request's one item; whoever frees the request puts its section. */
NTSTATUS vmm_kmt_standard_memory(const struct vmm_kmt_call *call, uint32_t flags,
				 struct vmm_allocate_request *request);

/* ---- keyed.c ---- */
/* Private data comes with a pointer, or has no bytes (KMX-07, KMX-09): STATUS_INVALID_PARAMETER and a finding of that rule. */
NTSTATUS vmm_kmt_check_keyed_data(const struct vmm_process *process, const char *rule,
				  const void *data, uint32_t bytes);

/* ---- query.c ---- */
/* QAI-07: does a query that names a physical adapter name one that can be asked? */
NTSTATUS vmm_kmt_check_physical_adapter(const struct vmm_process *process,
					const struct vmm_adapter *adapter, uint32_t index);

/* ---- registry.c: D3DKMTQueryAdapterInfo with type QUERYREGISTRY ---- */
NTSTATUS vmm_kmt_query_registry(const struct vmm_process *process,
				const struct vmm_adapter *adapter,
				const D3DKMT_QUERYADAPTERINFO *args);

#endif
