/* SPDX-License-Identifier: MIT */
/* What the scripted miniport has of later interface versions: the length of its table, and the entries that came with 2.0. */
#include "scripted_miniport.h"

#include <string.h>

void scripted_set_version(struct scripted_miniport *m, ULONG version)
{
	size_t end = sizeof(m->settings.table);

	if (version < DXGKDDI_INTERFACE_VERSION_WDDM3_1)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiCreateNativeFence);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM3_0)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiSetAllocationBackingStore);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_9)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiSetFlipQueueLogBuffer);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_1)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiCheckMultiPlaneOverlaySupport3);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_0)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiRenderGdi);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM1_3)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiGetNodeMetadata);
	if (version < DXGKDDI_INTERFACE_VERSION_WIN8)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiSetPowerComponentFState);
	if (version < DXGKDDI_INTERFACE_VERSION_WIN7)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiDescribePageTable);
	m->settings.table.Version = version;
	memset((char *)&m->settings.table + end, 0xA5, sizeof(m->settings.table) - end);
}

NTSTATUS APIENTRY scripted_set_backing_store(IN_CONST_HANDLE adapter,
					     IN_CONST_PDXGKARG_SETALLOCATIONBACKINGSTORE args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_SET_ALLOCATION_BACKING_STORE, args, sizeof(*args)),
		NULL);
}
