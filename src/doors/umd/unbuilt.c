/* SPDX-License-Identifier: MIT */
/*
 * Callbacks that are not built. Each entry exists, returns E_NOTIMPL and emits an event with its
 * name, so that a driver which calls one learns at once that nothing was done.
 */
#include "doors/umd/umd_private.h"

static HRESULT not_built(HANDLE device, const char *name)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_OTHER, true);

	if (NT_SUCCESS(status))
		status = vmm_refuse_reason(call.device->adapter->observe, STATUS_NOT_SUPPORTED,
					   call.device->process->id, 0, "%s is not built", name);
	return vmm_umd_leave(&call, status, 0, 0, 0);
}

#define NOT_BUILT(member, argument)                                       \
	static HRESULT APIENTRY unbuilt_##member(HANDLE device, argument) \
	{                                                                 \
		(void)value;                                              \
		return not_built(device, #member);                        \
	}

NOT_BUILT(pfnSetDisplayModeCb, const D3DDDICB_SETDISPLAYMODE *value)
NOT_BUILT(pfnEscapeCb, const D3DDDICB_ESCAPE *value)
NOT_BUILT(pfnCreateOverlayCb, D3DDDICB_CREATEOVERLAY *value)
NOT_BUILT(pfnUpdateOverlayCb, const D3DDDICB_UPDATEOVERLAY *value)
NOT_BUILT(pfnFlipOverlayCb, const D3DDDICB_FLIPOVERLAY *value)
NOT_BUILT(pfnDestroyOverlayCb, const D3DDDICB_DESTROYOVERLAY *value)
NOT_BUILT(pfnSetAsyncCallbacksCb, BOOL value)
NOT_BUILT(pfnSetDisplayPrivateDriverFormatCb, const D3DDDICB_SETDISPLAYPRIVATEDRIVERFORMAT *value)
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WIN8
NOT_BUILT(pfnPresentMultiPlaneOverlayCb, const struct D3DDDICB_PRESENTMULTIPLANEOVERLAY *value)
#endif
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM1_3
NOT_BUILT(pfnLogUMDMarkerCb, const struct D3DDDICB_LOGUMDMARKER *value)
#endif
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_0
NOT_BUILT(pfnInvalidateCacheCb, const D3DDDICB_INVALIDATECACHE *value)
NOT_BUILT(pfnGetResourcePresentPrivateDriverDataCb,
	  D3DDDI_GETRESOURCEPRESENTPRIVATEDRIVERDATA *value)
#endif
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_1_3
NOT_BUILT(pfnAcquireResourceCb, const struct D3DDDICB_ACQUIRERESOURCE *value)
NOT_BUILT(pfnReleaseResourceCb, const struct D3DDDICB_RELEASERESOURCE *value)
#endif
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_5_1
NOT_BUILT(pfnSubmitPresentBltToHwQueueCb, const struct D3DDDICB_SUBMITPRESENTBLTTOHWQUEUE *value)
NOT_BUILT(pfnSubmitPresentToHwQueueCb, const struct D3DDDICB_SUBMITPRESENTTOHWQUEUE *value)
#endif

/* Callbacks of WDDM 2.0 and later. */
static void fill_wddm2(D3DDDI_DEVICECALLBACKS *table)
{
	(void)table;
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_0
	table->pfnInvalidateCacheCb = unbuilt_pfnInvalidateCacheCb;
	table->pfnGetResourcePresentPrivateDriverDataCb =
		unbuilt_pfnGetResourcePresentPrivateDriverDataCb;
#endif
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_1_3
	table->pfnAcquireResourceCb = unbuilt_pfnAcquireResourceCb;
	table->pfnReleaseResourceCb = unbuilt_pfnReleaseResourceCb;
#endif
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_5_1
	table->pfnSubmitPresentBltToHwQueueCb = unbuilt_pfnSubmitPresentBltToHwQueueCb;
	table->pfnSubmitPresentToHwQueueCb = unbuilt_pfnSubmitPresentToHwQueueCb;
#endif
}

void vmm_umd_fill_unbuilt(D3DDDI_DEVICECALLBACKS *table)
{
	table->pfnSetDisplayModeCb = unbuilt_pfnSetDisplayModeCb;
	table->pfnEscapeCb = unbuilt_pfnEscapeCb;
	table->pfnCreateOverlayCb = unbuilt_pfnCreateOverlayCb;
	table->pfnUpdateOverlayCb = unbuilt_pfnUpdateOverlayCb;
	table->pfnFlipOverlayCb = unbuilt_pfnFlipOverlayCb;
	table->pfnDestroyOverlayCb = unbuilt_pfnDestroyOverlayCb;
	table->pfnSetAsyncCallbacksCb = unbuilt_pfnSetAsyncCallbacksCb;
	table->pfnSetDisplayPrivateDriverFormatCb = unbuilt_pfnSetDisplayPrivateDriverFormatCb;
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WIN8
	table->pfnPresentMultiPlaneOverlayCb = unbuilt_pfnPresentMultiPlaneOverlayCb;
#endif
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM1_3
	table->pfnLogUMDMarkerCb = unbuilt_pfnLogUMDMarkerCb;
#endif
	fill_wddm2(table);
}
