/* SPDX-License-Identifier: MIT */
/*
 * Standard allocations, which the caller's arguments describe instead of a driver's private data.
 */
#include "doors/kmt/kmt_private.h"

enum {
	EXISTING_SYSMEM = 0x20,
	STANDARD = 0x10000,
	EXISTING_SECTION = 0x20000,
	EXISTING = EXISTING_SYSMEM | EXISTING_SECTION,
};

static NTSTATUS refuse_standard(const struct vmm_door_call *call, const char *rule,
				const char *what, uint64_t value)
{
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, rule, call->process->id,
			       call->device->handle, "create standard allocation: %s (0x%llx)",
			       what, (unsigned long long)value);
}

/* Checks the combination of flags and counts. (ALC-02, ALF-38) */
static NTSTATUS check_arguments(const struct vmm_door_call *call,
				const D3DKMT_CREATEALLOCATION *args, uint32_t flags)
{
	uint32_t existing = flags & EXISTING;

	if (!(flags & STANDARD))
		return refuse_standard(
			call, "ALC-02",
			"ExistingSysMem or ExistingSection without StandardAllocation", flags);
	if (!existing || existing == EXISTING)
		return refuse_standard(
			call, "ALF-38",
			"exactly one of ExistingSysMem and ExistingSection is needed", flags);
	if (args->NumAllocations != 1)
		return refuse_standard(call, "ALC-02", "not exactly one allocation",
				       args->NumAllocations);
	if (args->PrivateDriverDataSize)
		return refuse_standard(call, "ALC-03", "PrivateDriverDataSize is not 0",
				       args->PrivateDriverDataSize);
	return STATUS_SUCCESS;
}

static NTSTATUS check_description(const struct vmm_door_call *call,
				  const D3DKMT_CREATESTANDARDALLOCATION *what)
{
	uint64_t size = what->ExistingHeapData.Size;

	if (what->Type == D3DKMT_STANDARDALLOCATIONTYPE_INTERNALBACKINGSTORE)
		return vmm_refuse_reason(
			call->observe, STATUS_NOT_SUPPORTED, call->process->id, 0,
			"ALC-01: standard allocations of INTERNALBACKINGSTORE are not built");
	if (what->Type != D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP)
		return refuse_standard(call, "ALC-01", "unknown standard allocation Type",
				       (uint32_t)what->Type);
	if (what->Flags.Value)
		return refuse_standard(call, "ALC-01", "reserved standard allocation Flags are set",
				       what->Flags.Value);
	if (!size || size % VMM_PAGE_SIZE)
		return refuse_standard(call, "ALC-01",
				       "ExistingHeapData.Size is not a multiple of pages", size);
	return STATUS_SUCCESS;
}

/* hSection is in the same place as pSystemMem; on Linux it is a descriptor. */
static NTSTATUS open_section(const struct vmm_door_call *call, struct vmm_allocate_request *request)
{
	uintptr_t handle = (uintptr_t)request->items[0].system_memory;
	int descriptor = handle <= INT32_MAX ? (int)handle : -1;
	NTSTATUS status =
		vmm_section_open(call->device->adapter->os, descriptor, request->heap_bytes,
				 call->process->viewer != NULL, &request->section);

	request->items[0].system_memory = NULL;
	if (status == VMM_INVALID_HANDLE) {
		(void)refuse_standard(call, "ALF-38", "hSection is not a descriptor", handle);
	} else if (status == VMM_INVALID_PARAMETER) {
		(void)refuse_standard(
			call, "ALF-38",
			call->process->viewer
				? "hSection is not readable and writable memory sealed "
				  "against shrinking, or is smaller than Size"
				: "hSection is not readable and writable memory, or is smaller "
				  "than Size",
			handle);
	}
	return status;
}

bool vmm_kmt_is_standard(uint32_t flags)
{
	return flags & (STANDARD | EXISTING);
}

NTSTATUS vmm_kmt_standard_check(const struct vmm_door_call *call,
				const D3DKMT_CREATEALLOCATION *args, uint32_t flags,
				uint64_t *heap_bytes)
{
	NTSTATUS status = check_arguments(call, args, flags);

	if (!NT_SUCCESS(status))
		return status;
	if (!args->pStandardAllocation)
		return refuse_standard(call, "ALC-01", "pStandardAllocation is NULL", 0);
	D3DKMT_CREATESTANDARDALLOCATION what = *args->pStandardAllocation; /* read once */
	*heap_bytes = what.ExistingHeapData.Size;
	return check_description(call, &what);
}

void vmm_kmt_standard_drop_data(struct vmm_allocate_request *request, const void *local)
{
	struct vmm_allocate_item *item = &request->items[0];

	vmm_door_copy_done(item->private_data, local);
	item->private_data = NULL;
	item->private_bytes = 0;
}

NTSTATUS vmm_kmt_standard_memory(const struct vmm_door_call *call, uint32_t flags,
				 struct vmm_allocate_request *request)
{
	if (!request->items[0].system_memory)
		return refuse_standard(call, "ALC-01", "pSystemMem or hSection is 0", 0);
	return flags & EXISTING_SECTION ? open_section(call, request) : STATUS_SUCCESS;
}
