/* SPDX-License-Identifier: MIT */
#ifndef VMM_DOORS_UMD_PRIVATE_H
#define VMM_DOORS_UMD_PRIVATE_H

#include "doors/umd/umd.h"
#include "memory/memory.h"
#include "sched/sched.h"
#include "sync/sync.h"

/* Bounds on what a caller may make us copy; far above what any driver asks for. */
#define VMM_UMD_ALLOCATIONS_MAX   65536u
#define VMM_UMD_PRIVATE_BYTES_MAX (1u << 20)
#define VMM_UMD_PAGES_MAX         (1u << 20)
#define VMM_UMD_HANDLES_MAX       (1u << 20)

struct vmm_umd_call {
	struct vmm_device *device; /* NULL: none; else it stays until vmm_umd_leave */
	struct vmm_visit visit;
	uint64_t began;
	uint32_t door;
};

/*
 * Begins a call: a live device, not removed, not in error (LOCK-33, PRI-16); `destroying` calls are let through to
 * the end. STATUS_INVALID_PARAMETER for what is not a device.
 */
NTSTATUS vmm_umd_enter(struct vmm_umd_call *call, HANDLE device, uint32_t door, bool destroying);
NTSTATUS vmm_umd_why_unusable(const struct vmm_device *device) VMM_COLD;
/* The same by way of one of its contexts, which then stays as well; *context NULL: the device has no such context. */
NTSTATUS vmm_umd_enter_context(struct vmm_umd_call *call, HANDLE device, HANDLE handle,
			       uint32_t door, struct vmm_context **context);
/* Ends it: the door event, and the HRESULT. */
HRESULT vmm_umd_leave(const struct vmm_umd_call *call, NTSTATUS status, uint32_t object,
		      uint64_t count, uint64_t flags);

HRESULT vmm_umd_hresult(NTSTATUS status);

/* The two in line, for calls that take no longer than that: locks. */
static inline NTSTATUS vmm_umd_usable(const struct vmm_device *device)
{
	if (vmm_unlikely(atomic_load_explicit(&device->adapter->closed, memory_order_relaxed) ||
			 atomic_load_explicit(&device->error, memory_order_relaxed) !=
				 VMM_DEVICE_OK))
		return vmm_umd_why_unusable(device);
	return STATUS_SUCCESS;
}

static inline NTSTATUS vmm_umd_enter_often(struct vmm_umd_call *call, HANDLE handle, uint32_t door,
					   bool destroying)
{
	struct vmm_device *device = vmm_live_enter(&call->visit, VMM_LIVE_DEVICE, handle);

	call->device = device;
	call->door = door;
	if (vmm_unlikely(!device))
		return STATUS_INVALID_PARAMETER;
	call->began = vmm_observe_begin(device->adapter->observe, VIDMM_EVENT_DOOR);
	return destroying ? STATUS_SUCCESS : vmm_umd_usable(device);
}

static inline HRESULT vmm_umd_leave_often(const struct vmm_umd_call *call, NTSTATUS status,
					  uint32_t object, uint64_t count, uint64_t flags)
{
	const struct vmm_device *device = call->device;

	if (vmm_likely(device)) {
		vmm_event_often(device->adapter->observe, VIDMM_EVENT_DOOR, device->process->id,
				object, call->door, (uint32_t)status, count,
				vmm_observe_elapsed(device->adapter->observe, call->began), flags);
		vmm_live_leave(&call->visit);
	}
	return vmm_likely(status == STATUS_SUCCESS) ? S_OK : vmm_umd_hresult(status);
}

/* A call without its argument: entered and left. */
HRESULT vmm_umd_no_argument(HANDLE device, uint32_t door);

/* A copy of count elements of the caller's array, in `local` when it fits. *copy NULL for an empty array. */
NTSTATUS vmm_umd_copy_in(const void *array, uint32_t count, uint32_t limit, size_t element,
			 void *local, size_t local_bytes, void **copy);
void vmm_umd_copy_done(void *copy, const void *local);

HRESULT APIENTRY vmm_umd_allocate(HANDLE device, D3DDDICB_ALLOCATE *data);
HRESULT APIENTRY vmm_umd_deallocate(HANDLE device, const D3DDDICB_DEALLOCATE *data);
HRESULT APIENTRY vmm_umd_set_priority(HANDLE device, const D3DDDICB_SETPRIORITY *data);
HRESULT APIENTRY vmm_umd_query_residency(HANDLE device, const D3DDDICB_QUERYRESIDENCY *data);
HRESULT APIENTRY vmm_umd_present(HANDLE device, const D3DDDICB_PRESENT *data);
HRESULT APIENTRY vmm_umd_render(HANDLE device, D3DDDICB_RENDER *data);
HRESULT APIENTRY vmm_umd_lock(HANDLE device, D3DDDICB_LOCK *data);
HRESULT APIENTRY vmm_umd_unlock(HANDLE device, const D3DDDICB_UNLOCK *data);
HRESULT APIENTRY vmm_umd_create_context(HANDLE device, D3DDDICB_CREATECONTEXT *data);
HRESULT APIENTRY vmm_umd_destroy_context(HANDLE device, const D3DDDICB_DESTROYCONTEXT *data);
void vmm_umd_fill_offer(D3DDDI_DEVICECALLBACKS *table);       /* offer.c */
void vmm_umd_fill_deallocate2(D3DDDI_DEVICECALLBACKS *table); /* allocate.c */
void vmm_umd_fill_residency(D3DDDI_DEVICECALLBACKS *table);   /* residency.c */
void vmm_umd_fill_sync(D3DDDI_DEVICECALLBACKS *table);        /* sync.c */
void vmm_umd_fill_hw_queue(D3DDDI_DEVICECALLBACKS *table);    /* hw_queue.c */
void vmm_umd_fill_gpu_address(D3DDDI_DEVICECALLBACKS *table); /* gpu_address.c */
void vmm_umd_fill_sync_gpu(D3DDDI_DEVICECALLBACKS *table);    /* sync_gpu.c */
void vmm_umd_fill_unbuilt(D3DDDI_DEVICECALLBACKS *table);

#endif
