/* SPDX-License-Identifier: MIT */
/*
 * doors/umd: the runtime's callbacks for a user-mode display driver. They copy arguments in once,
 * look handles up, translate NTSTATUS to HRESULT, and write outputs back only on success unless the
 * DDI says otherwise. They contain no policy.
 *
 * hDevice is the value that vidmm_device_handle returns
 * (object/hazard.h). Any thread; no lock is held on entry.
 */
#ifndef VMM_DOORS_UMD_H
#define VMM_DOORS_UMD_H

#include <d3dumddi.h>
#include "object/hazard.h"
#include "object/object.h"

/*
 * One table serves all devices. Entries that are not built return E_NOTIMPL and report that in an
 * event.
 */
const D3DDDI_DEVICECALLBACKS *vmm_umd_callbacks(void);

/*
 * Registers the driver's pfnTrimResidencySet for the device, in place of the one before; NULL: ends
 * the registration. After a failure the earlier function is still registered. The guard may not
 * protect the device for a time; if the device has ended then, *device is NULL and a new
 * registration fails with STATUS_INVALID_PARAMETER.
 */
NTSTATUS vmm_umd_set_trim(struct vmm_device **device, struct vmm_hazard_guard *guard,
			  HANDLE umd_device, PFND3DDDI_TRIMRESIDENCYSET function);

/*
 * Translates a status of the core to the HRESULT of a callback (section 3.2 of the allocation
 * rules).
 */
HRESULT vmm_umd_hresult(NTSTATUS status);

#endif
