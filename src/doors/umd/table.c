/* SPDX-License-Identifier: MIT */
/*
 * Fills the table of device callbacks (D3DDDI_DEVICECALLBACKS), once per process, at the first
 * request. Entries that are not built come from unbuilt.c.
 */
#include "doors/umd/umd_private.h"

/* The table is filled once and constant from then on. */
const D3DDDI_DEVICECALLBACKS *vmm_umd_callbacks(void)
{
	static D3DDDI_DEVICECALLBACKS table;
	static _Atomic uint32_t state; /* 0: empty, 1: being filled, 2: ready */
	uint32_t empty = 0;

	if (atomic_load(&state) == 2)
		return &table;
	if (!atomic_compare_exchange_strong(&state, &empty, 1)) {
		while (atomic_load(&state) != 2)
			;
		return &table;
	}
	vmm_umd_fill_unbuilt(&table);
	table.pfnAllocateCb = vmm_umd_allocate;
	table.pfnDeallocateCb = vmm_umd_deallocate;
	table.pfnSetPriorityCb = vmm_umd_set_priority;
	table.pfnQueryResidencyCb = vmm_umd_query_residency;
	table.pfnRenderCb = vmm_umd_render;
	table.pfnPresentCb = vmm_umd_present;
	table.pfnLockCb = vmm_umd_lock;
	table.pfnUnlockCb = vmm_umd_unlock;
	table.pfnCreateContextCb = vmm_umd_create_context;
	table.pfnDestroyContextCb = vmm_umd_destroy_context;
	vmm_umd_fill_offer(&table);
	vmm_umd_fill_deallocate2(&table);
	vmm_umd_fill_residency(&table);
	vmm_umd_fill_gpu_address(&table);
	vmm_umd_fill_sync(&table);
	vmm_umd_fill_hw_queue(&table);
	vmm_umd_fill_sync_gpu(&table);
	atomic_store(&state, 2);
	return &table;
}
