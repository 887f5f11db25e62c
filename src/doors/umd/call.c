/* SPDX-License-Identifier: MIT */
/*
 * Common begin and end of every callback: the device or context, whether it is usable, the status
 * and its HRESULT.
 */
#include "doors/umd/umd_private.h"

static const struct {
	NTSTATUS status;
	HRESULT result;
} translations[] = {
	{STATUS_SUCCESS, S_OK},
	{STATUS_PENDING, E_PENDING},
	{STATUS_INVALID_PARAMETER, E_INVALIDARG},
	{STATUS_ACCESS_DENIED, E_ACCESSDENIED},
	{STATUS_NO_MEMORY, E_OUTOFMEMORY},
	{STATUS_NOT_SUPPORTED, E_NOTIMPL},
	{STATUS_NO_VIDEO_MEMORY, D3DERR_OUTOFVIDEOMEMORY},
	{STATUS_INVALID_HANDLE, D3DDDIERR_INVALIDHANDLE},
	{STATUS_PRIVILEGED_INSTRUCTION, D3DDDIERR_PRIVILEGEDINSTRUCTION},
	{STATUS_ILLEGAL_INSTRUCTION, D3DDDIERR_INVALIDINSTRUCTION},
	{STATUS_INVALID_USER_BUFFER, D3DDDIERR_INVALIDUSERBUFFER},
	{STATUS_DEVICE_REMOVED, D3DDDIERR_DEVICEREMOVED},
	{STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, D3DDDIERR_DEVICEREMOVED},
	{STATUS_GRAPHICS_ALLOCATION_BUSY, D3DERR_WASSTILLDRAWING},
	{STATUS_GRAPHICS_TOO_MANY_REFERENCES, D3DERR_WASSTILLDRAWING},
	{STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE, D3DERR_NOTAVAILABLE},
	{STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED, D3DERR_NOTAVAILABLE},
	{STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION, D3DDDIERR_CANTEVICTPINNEDALLOCATION},
	{STATUS_GRAPHICS_CANT_RENDER_LOCKED_ALLOCATION, D3DDDIERR_CANTRENDERLOCKEDALLOCATION},
};

HRESULT vmm_umd_hresult(NTSTATUS status)
{
	if (vmm_likely(status == STATUS_SUCCESS))
		return S_OK;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(translations); i++)
		if (translations[i].status == status)
			return translations[i].result;
	/* Any other graphics status keeps its low 12 bits: 0xC01E0113 becomes 0xC0262113. */
	if (((uint32_t)status & 0xFFFF0000u) == 0xC01E0000u)
		return (HRESULT)(0xC0262000u | ((uint32_t)status & 0xFFFu));
	return NT_SUCCESS(status) ? S_OK : E_FAIL;
}

NTSTATUS vmm_umd_enter(struct vmm_door_call *call, HANDLE handle, uint32_t door, bool destroying)
{
	return vmm_umd_enter_inline(call, handle, door, destroying);
}

/*
 * Returns the context that a NULL hContext stands for: the one that the driver created first. NULL
 * if there is none. (DMA-09, Q-23)
 */
VMM_COLD static HANDLE default_context(HANDLE handle)
{
	struct vmm_hazard_guard guard;
	struct vmm_device *device = vmm_hazard_enter(&guard, VMM_HAZARD_DEVICE, handle);

	if (!device)
		return NULL;
	HANDLE context = atomic_load(&device->default_context);
	vmm_hazard_leave(&guard);
	return context;
}

NTSTATUS vmm_umd_enter_context(struct vmm_door_call *call, HANDLE device, HANDLE handle,
			       uint32_t door, struct vmm_context **context)
{
	*context = vmm_sched_enter_context(&call->guard, device,
					   vmm_likely(handle) ? handle : default_context(device));
	if (vmm_unlikely(!*context))
		return vmm_umd_enter(call, device, door, false);
	call->device = vmm_sched_context_device(*context);
	call->process = call->device->process;
	call->observe = call->device->adapter->observe;
	call->door = door;
	call->on_stopped = false;
	call->began = vmm_observe_begin(call->observe, VIDMM_EVENT_DOOR);
	return vmm_door_check_alive(call->device);
}

HRESULT vmm_umd_leave(const struct vmm_door_call *call, NTSTATUS status, uint32_t object,
		      uint64_t count, uint64_t flags)
{
	return vmm_umd_leave_inline(call, status, object, count, flags);
}

NTSTATUS vmm_umd_no_argument(const struct vmm_door_call *call, NTSTATUS status,
			     const char *callback)
{
	if (!call->device || !NT_SUCCESS(status))
		return status;
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "HND-11", call->process->id,
			       0, "%s: the argument pointer is NULL", callback);
}

HRESULT vmm_umd_not_built(HANDLE device, const char *name)
{
	struct vmm_door_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_OTHER, true);

	if (NT_SUCCESS(status))
		status = vmm_refuse_reason(call.observe, STATUS_NOT_SUPPORTED, call.process->id, 0,
					   "%s is not built", name);
	return vmm_umd_leave(&call, status, 0, 0, 0);
}
