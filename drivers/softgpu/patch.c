/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiPatch: writes final addresses into a DMA buffer. Owns no state, takes no lock; the port calls it from one
 * thread at a time, possibly several times for one buffer.
 */
#include "softgpu_private.h"

/* Of a buffer that is broadcast another engine may be reading what it has been patched with: that stays. */
static void put(uint64_t *where, uint64_t value)
{
	if (*where != value)
		*where = value;
}

/*
 * The patch locations are the ones Render emitted and the port has bounds-checked (PAT-02, PAT-05); the allocation
 * list holds the address of everything this portion needs (PAT-11). What is not resident after all gets an
 * address that faults rather than one that belongs to somebody else.
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
			continue; /* it unbinds its slot (PAT-09) */
		put((uint64_t *)(void *)(dma + patch->PatchOffset),
		    entry->SegmentId ? open->base + address : SOFTGPU_NOWHERE);
	}
}

NTSTATUS APIENTRY softgpu_patch(IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_PATCH pPatch)
{
	struct softgpu_dma_private *private_data = pPatch->pDmaBufferPrivateData;

	(void)hAdapter;
	if (private_data && pPatch->DmaBufferPrivateDataSize >= sizeof(*private_data))
		put(&private_data->kernel_address, (uintptr_t)pPatch->pDmaBuffer);
	/* PAT-17: a paging buffer has addresses already and comes without lists. */
	if (!pPatch->Flags.Paging)
		patch_addresses(pPatch->pDmaBuffer,
				pPatch->pPatchLocationList +
					pPatch->PatchLocationListSubmissionStart,
				pPatch->PatchLocationListSubmissionLength, pPatch->pAllocationList);
	return STATUS_SUCCESS;
}
