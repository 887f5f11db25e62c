/* SPDX-License-Identifier: MIT */
/*
 * doors/umd: the runtime's callbacks of a user-mode display driver. Copies arguments in, once; looks handles up;
 * translates NTSTATUS to HRESULT; writes outputs back only on success unless the DDI says otherwise. No policy.
 *
 * hDevice is what vidmm_device_handle gave out (object/live.h). Any thread; no lock is held on entry.
 */
#ifndef VMM_DOORS_UMD_H
#define VMM_DOORS_UMD_H

#include <d3dumddi.h>
#include "object/live.h"
#include "object/object.h"

/* One table serves every device; entries that are not built return E_NOTIMPL and say so in an event. */
const D3DDDI_DEVICECALLBACKS *vmm_umd_callbacks(void);

/*
 * Has the driver's pfnTrimResidencySet called for the device; NULL: no more. *device may be left and entered again
 * meanwhile; NULL: it has ended.
 */
NTSTATUS vmm_umd_set_trim(struct vmm_device **device, struct vmm_visit *visit, HANDLE umd_device,
			  PFND3DDDI_TRIMRESIDENCYSET function);

/* Section 3.2 of the allocation rules: the thunk's NTSTATUS as a callback gives it. */
HRESULT vmm_umd_hresult(NTSTATUS status);

#endif
