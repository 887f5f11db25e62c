/* SPDX-License-Identifier: MIT */
/*
 * Replaces entries of softgpu's DDI table. The linker option --wrap redirects softgpu's call of
 * DxgkInitialize to this file.
 */
#include "bare.h"

#include <d3dkmddi.h>
#include <ntddk.h>
#include <stddef.h>
#include <string.h>
#include <vidmm/softgpu.h>

static enum bench_bare bare;
static bench_bare_edit *entries;
static char object;

void bench_bare(enum bench_bare what)
{
	bare = what;
}

void bench_bare_entries(bench_bare_edit *edit)
{
	entries = edit;
}

static NTSTATUS APIENTRY create_allocation(IN_CONST_HANDLE adapter,
					   INOUT_PDXGKARG_CREATEALLOCATION args)
{
	(void)adapter;
	for (UINT i = 0; i < args->NumAllocations; i++) {
		DXGK_ALLOCATIONINFO *info = &args->pAllocationInfo[i];
		struct softgpu_allocation wish;

		memcpy(&wish, info->pPrivateDriverData, sizeof(wish));
		info->Size = (SIZE_T)wish.size_bytes;
		info->SupportedReadSegmentSet = info->SupportedWriteSegmentSet = 0x3;
		info->AllocationPriority = D3DDDI_ALLOCATIONPRIORITY_NORMAL;
		info->Flags.CpuVisible = 1;
		info->hAllocation = &object;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY destroy_allocation(IN_CONST_HANDLE adapter,
					    IN_CONST_PDXGKARG_DESTROYALLOCATION args)
{
	(void)adapter;
	(void)args;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY open_allocation(IN_CONST_HANDLE device,
					 IN_CONST_PDXGKARG_OPENALLOCATION args)
{
	(void)device;
	for (UINT i = 0; i < args->NumAllocations; i++)
		args->pOpenAllocation[i].hDeviceSpecificAllocation = &object;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY close_allocation(IN_CONST_HANDLE device,
					  IN_CONST_PDXGKARG_CLOSEALLOCATION args)
{
	(void)device;
	(void)args;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY build_paging_buffer(IN_CONST_HANDLE adapter,
					     IN_PDXGKARG_BUILDPAGINGBUFFER args)
{
	(void)adapter;
	(void)args;
	return STATUS_SUCCESS;
}

/* The function that --wrap makes softgpu call, and the one that it replaces. */
NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	DRIVER_INITIALIZATION_DATA table = {0};

	/* softgpu of WDDM 1.x registers the members of 1.3 at most */
	memcpy(&table, data,
	       data->Version < DXGKDDI_INTERFACE_VERSION_WDDM2_0
		       ? offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiRenderGdi)
		       : sizeof(table));
	if (entries)
		entries(&table);
	if (bare == BENCH_NO_OBJECTS) {
		table.DxgkDdiCreateAllocation = create_allocation;
		table.DxgkDdiDestroyAllocation = destroy_allocation;
		table.DxgkDdiOpenAllocation = open_allocation;
		table.DxgkDdiCloseAllocation = close_allocation;
	}
	if (bare == BENCH_NO_PAGING)
		table.DxgkDdiBuildPagingBuffer = build_paging_buffer;
	return __real_DxgkInitialize(driver, path, &table);
}
