/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiPresent: one command for each sub rectangle, or one flip command. A flip outside the DMA
 * buffer needs no translation. Allocations that are not pictures cannot be presented; colors are
 * not converted.
 */
#include "softgpu_private.h"

struct presenting {
	DXGKARG_PRESENT *args;
	char *start;
	const struct softgpu_driver_allocation *source, *destination;
};

static const struct softgpu_driver_allocation *picture_of(const DXGKARG_PRESENT *args,
							  uint32_t index)
{
	const struct softgpu_open_allocation *open =
		args->pAllocationList[index].hDeviceSpecificAllocation;

	return open && open->allocation->picture.width ? open->allocation : NULL;
}

static int is_inside(const RECT *r, const struct softgpu_driver_allocation *allocation)
{
	return r->left >= 0 && r->top >= 0 && r->right > r->left && r->bottom > r->top &&
	       (uint32_t)r->right <= allocation->picture.width &&
	       (uint32_t)r->bottom <= allocation->picture.height;
}

static uint32_t out_bytes(const struct presenting *p)
{
	return (uint32_t)((char *)p->args->pDmaBuffer - p->start);
}

/*
 * Writes the address of an operand: a GPU virtual address (PRS-09), or as in render.c with its
 * patch location, and the address if it is known.
 */
static void put_address(struct presenting *p, uint32_t index, uint32_t opcode, uint64_t *field)
{
	const DXGK_ALLOCATIONLIST *entry = &p->args->pAllocationList[index];
	D3DDDI_PATCHLOCATIONLIST *patch;

	if (p->args->DmaBufferGpuVirtualAddress) {
		*field = entry->VirtualAddress;
		return;
	}
	patch = p->args->pPatchLocationListOut++;
	patch->AllocationIndex = index;
	patch->Value = index - DXGK_PRESENT_SOURCE_INDEX; /* slots 0 and 1 */
	patch->DriverId = opcode;
	patch->AllocationOffset = 0;
	patch->PatchOffset = (uint32_t)((char *)field - p->start);
	patch->SplitOffset = out_bytes(p);
	*field = entry->SegmentId ? (uint64_t)entry->PhysicalAddress.QuadPart : SOFTGPU_NOWHERE;
}

static struct softgpu_rect rect_of(const RECT *r)
{
	return (struct softgpu_rect){(uint32_t)r->left, (uint32_t)r->top,
				     (uint32_t)(r->right - r->left),
				     (uint32_t)(r->bottom - r->top)};
}

static int has_room(const struct presenting *p, uint32_t used_patches, uint32_t bytes)
{
	return out_bytes(p) + bytes <= p->args->DmaSize &&
	       (p->args->DmaBufferGpuVirtualAddress ||
		used_patches + 2 <= p->args->PatchLocationListOutSize);
}

static void put_blit(struct presenting *p, const RECT *clip)
{
	const DXGKARG_PRESENT *args = p->args;
	struct softgpu_hw_blit *blit = p->args->pDmaBuffer;

	memset(blit, 0, sizeof(*blit));
	blit->command.opcode = SOFTGPU_HW_BLIT;
	blit->command.flags = p->source ? 0 : SOFTGPU_HW_BLIT_FILL;
	blit->command.size_bytes = sizeof(*blit);
	blit->color = args->Color;
	blit->to = rect_of(&args->DstRect);
	blit->clip = rect_of(clip);
	blit->destination_pitch = p->destination->picture.pitch_bytes;
	if (p->source) {
		blit->from = rect_of(&args->SrcRect);
		blit->source_pitch = p->source->picture.pitch_bytes;
		put_address(p, DXGK_PRESENT_SOURCE_INDEX, SOFTGPU_HW_BLIT, &blit->source);
	}
	put_address(p, DXGK_PRESENT_DESTINATION_INDEX, SOFTGPU_HW_BLIT, &blit->destination);
	p->args->pDmaBuffer = blit + 1;
}

static NTSTATUS put_blits(struct presenting *p)
{
	DXGKARG_PRESENT *args = p->args;
	uint32_t patches = 0;

	if (!p->destination || (args->Flags.Blt && !p->source))
		return STATUS_INVALID_HANDLE; /* not pictures */
	if (args->Flags.SrcColorKey || args->Flags.DstColorKey || args->Flags.LinearToSrgb ||
	    args->Flags.Rotate)
		return STATUS_GRAPHICS_CANNOTCOLORCONVERT;
	if (!is_inside(&args->DstRect, p->destination) ||
	    (p->source && !is_inside(&args->SrcRect, p->source)))
		return STATUS_ILLEGAL_INSTRUCTION;
	for (; args->MultipassOffset < args->SubRectCnt; args->MultipassOffset++) {
		const RECT *clip = &args->pDstSubRects[args->MultipassOffset];

		if (!has_room(p, patches, sizeof(struct softgpu_hw_blit)))
			return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
		/* When scaled down, a sub rectangle may become empty. */
		if (clip->right > clip->left && clip->bottom > clip->top) {
			if (!is_inside(clip, p->destination))
				return STATUS_ILLEGAL_INSTRUCTION;
			put_blit(p, clip);
			patches += 2;
		}
	}
	return STATUS_SUCCESS;
}

static NTSTATUS put_flip(struct presenting *p)
{
	struct softgpu_hw_flip *flip = p->args->pDmaBuffer;

	if (!p->source)
		return STATUS_INVALID_HANDLE;
	if (!flip) /* softgpu_set_vidpn_source_address does it */
		return STATUS_SUCCESS;
	if (p->args->DmaBufferGpuVirtualAddress)
		return STATUS_ILLEGAL_INSTRUCTION; /* the display needs an address of the GPU */
	if (!has_room(p, 0, sizeof(*flip)))
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	memset(flip, 0, sizeof(*flip));
	flip->command.opcode = SOFTGPU_HW_FLIP;
	flip->command.size_bytes = sizeof(*flip);
	flip->width = p->source->picture.width;
	flip->height = p->source->picture.height;
	flip->pitch_bytes = p->source->picture.pitch_bytes;
	put_address(p, DXGK_PRESENT_SOURCE_INDEX, SOFTGPU_HW_FLIP, &flip->address);
	p->args->pDmaBuffer = flip + 1;
	return STATUS_SUCCESS;
}

static NTSTATUS present(DXGKARG_PRESENT *pPresent)
{
	struct softgpu_dma_private *private_data = pPresent->pDmaBufferPrivateData;
	struct presenting p = {
		.args = pPresent,
		.start = pPresent->pDmaBuffer,
		.source = picture_of(pPresent, DXGK_PRESENT_SOURCE_INDEX),
		.destination = picture_of(pPresent, DXGK_PRESENT_DESTINATION_INDEX),
	};
	NTSTATUS status = pPresent->Flags.Flip ? put_flip(&p) : put_blits(&p);

	if (!p.start || (!NT_SUCCESS(status) && status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER))
		return status;
	if (pPresent->DmaBufferPrivateDataSize < sizeof(*private_data))
		return STATUS_INSUFFICIENT_RESOURCES;
	private_data->kernel_address = (uintptr_t)p.start;
	pPresent->pDmaBufferPrivateData = private_data + 1;
	return status;
}

NTSTATUS APIENTRY softgpu_present(IN_CONST_HANDLE hContext, INOUT_PDXGKARG_PRESENT pPresent)
{
	(void)hContext;
	return present(pPresent);
}

NTSTATUS APIENTRY softgpu_present_to_hw_queue(IN_CONST_HANDLE hHwQueue,
					      INOUT_PDXGKARG_PRESENT pPresent)
{
	(void)hHwQueue;
	return present(pPresent);
}
