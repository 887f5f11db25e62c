/* SPDX-License-Identifier: MIT */
/*
 * Address spaces (Model wddm2): processes, root tables of contexts, and the submission of commands
 * at a GPU virtual address. The memory manager owns the page tables; a context only has the
 * location of its root.
 */
#include "softgpu_private.h"

NTSTATUS APIENTRY softgpu_create_process(IN_CONST_HANDLE hAdapter,
					 INOUT_PDXGKARG_CREATEPROCESS pArgs)
{
	struct softgpu_process *process =
		ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*process), SOFTGPU_POOL_TAG);

	if (!process)
		return STATUS_NO_MEMORY;
	process->adapter = hAdapter;
	pArgs->hKmdProcess = process;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_destroy_process(IN_CONST_HANDLE hAdapter, IN_CONST_HANDLE hKmdProcess)
{
	(void)hAdapter;
	ExFreePoolWithTag(hKmdProcess, SOFTGPU_POOL_TAG);
	return STATUS_SUCCESS;
}

/* With two levels the root has whole pages of entries, as many as are needed (VA-11). */
SIZE_T APIENTRY softgpu_get_root_page_table_size(IN_CONST_HANDLE hAdapter,
						 INOUT_PDXGKARG_GETROOTPAGETABLESIZE pArgs)
{
	uint64_t entries = pArgs->NumberOfPte;

	(void)hAdapter;
	entries = (entries + SOFTGPU_TABLE_ENTRIES - 1) & ~(uint64_t)(SOFTGPU_TABLE_ENTRIES - 1);
	pArgs->NumberOfPte = (UINT)entries;
	return (SIZE_T)(entries * sizeof(uint64_t));
}

/* No packet of the context is on the GPU (VA-12). */
VOID APIENTRY softgpu_set_root_page_table(IN_CONST_HANDLE hAdapter,
					  IN_CONST_PDXGKARG_SETROOTPAGETABLE pArgs)
{
	struct softgpu_context *context = pArgs->hContext;

	(void)hAdapter;
	context->space.root = pArgs->Address.SegmentOffset;
	context->space.entries =
		pArgs->Address.SegmentId == SOFTGPU_SEGMENT_VRAM ? pArgs->NumEntries : 0;
}

/*
 * At DISPATCH_LEVEL. The commands are read when the engine executes them: an address without memory
 * is a page fault then.
 */
NTSTATUS APIENTRY softgpu_submit_command_virtual(IN_CONST_HANDLE hAdapter,
						 IN_CONST_PDXGKARG_SUBMITCOMMANDVIRTUAL pArgs)
{
	const struct softgpu_context *context = pArgs->hContext;
	struct softgpu_packet packet = {
		.space = &context->space,
		.address = pArgs->DmaBufferVirtualAddress,
		.length = pArgs->Flags.NullRendering ? 0 : pArgs->DmaBufferSize,
		.fence = pArgs->SubmissionFenceId,
	};

	return softgpu_engine_submit(&((struct softgpu_adapter *)hAdapter)->engines[context->node],
				     &packet);
}
