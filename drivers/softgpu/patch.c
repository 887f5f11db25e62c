/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiPatch: writes final addresses into a DMA buffer. No state, no locks. The port calls it
 * from one thread at a time, possibly several times for one buffer.
 */
#include "softgpu_private.h"

/*
 * A broadcast buffer may be read by another engine with the same patch: an unchanged address is not
 * stored again.
 */
static void store_if_changed(uint64_t *where, uint64_t value)
{
	if (*where != value)
		*where = value;
}

/*
 * The patch locations are those that Render wrote and the port has bounds-checked (PAT-02, PAT-05).
 * The allocation list holds the address of everything that this portion needs (PAT-11). An
 * allocation that is not resident gets an address that faults, not one that may belong to another
 * allocation.
 */
static void patch_addresses(char *dma, const D3DDDI_PATCHLOCATIONLIST *patch, uint32_t count,
			    const DXGK_ALLOCATIONLIST *allocations)
{
	const D3DDDI_PATCHLOCATIONLIST *end = patch + count;

	for (; patch < end; patch++) {
		const DXGK_ALLOCATIONLIST *entry = &allocations[patch->AllocationIndex];
		uint64_t address =
			(uint64_t)entry->PhysicalAddress.QuadPart + patch->AllocationOffset;

		const struct softgpu_open_allocation *open = entry->hDeviceSpecificAllocation;

		if (!open)
			continue; /* unbinds its slot (PAT-09) */
		store_if_changed((uint64_t *)(void *)(dma + patch->PatchOffset),
				 entry->SegmentId ? open->base + address : SOFTGPU_NOWHERE);
	}
}

NTSTATUS APIENTRY softgpu_patch(IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_PATCH pPatch)
{
	struct softgpu_dma_private *private_data = pPatch->pDmaBufferPrivateData;

	(void)hAdapter;
	if (private_data && pPatch->DmaBufferPrivateDataSize >= sizeof(*private_data))
		store_if_changed(&private_data->kernel_address, (uintptr_t)pPatch->pDmaBuffer);
	/* A paging buffer has its addresses already and no lists (PAT-17). */
	if (!pPatch->Flags.Paging)
		patch_addresses(pPatch->pDmaBuffer,
				pPatch->pPatchLocationList +
					pPatch->PatchLocationListSubmissionStart,
				pPatch->PatchLocationListSubmissionLength, pPatch->pAllocationList);
	return STATUS_SUCCESS;
}
