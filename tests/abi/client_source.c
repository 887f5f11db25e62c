/* SPDX-License-Identifier: MIT */
/*
 * The spellings of a D3DKMT client and of a user-mode driver, compiled as such source is. Only
 * compiled: what it shows is that a client's text needs no change.
 */
#include <string.h>

#include <d3dkmthk.h>
#include <d3dumddi.h>

NTSTATUS test_create_heap(D3DKMT_HANDLE device, void *memory, SIZE_T bytes,
			  D3DKMT_HANDLE *allocation);
HRESULT test_lock(const D3DDDI_DEVICECALLBACKS *callbacks, HANDLE device, D3DKMT_HANDLE *allocation,
		  void **data);

NTSTATUS test_create_heap(D3DKMT_HANDLE device, void *memory, SIZE_T bytes,
			  D3DKMT_HANDLE *allocation)
{
	D3DKMT_CREATESTANDARDALLOCATION standard;
	D3DKMT_CREATEALLOCATION create;
	D3DDDI_ALLOCATIONINFO info;
	NTSTATUS status;

	memset(&standard, 0, sizeof(standard));
	memset(&create, 0, sizeof(create));
	memset(&info, 0, sizeof(info));
	standard.Type = D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP;
	standard.ExistingHeapData.Size = bytes;
	info.pSystemMem = memory;
	create.hDevice = device;
	create.pStandardAllocation = &standard;
	create.NumAllocations = 1;
	create.pAllocationInfo = &info;
	create.Flags.ExistingSysMem = 1;
	create.Flags.StandardAllocation = 1;
	status = D3DKMTCreateAllocation(&create);
	if (NT_SUCCESS(status))
		*allocation = info.hAllocation;
	return status;
}

HRESULT test_lock(const D3DDDI_DEVICECALLBACKS *callbacks, HANDLE device, D3DKMT_HANDLE *allocation,
		  void **data)
{
	D3DDDICB_LOCK lock;
	HRESULT result;

	memset(&lock, 0, sizeof(lock));
	lock.hAllocation = *allocation;
	lock.Flags.Discard = 1;
	lock.Flags.WriteOnly = 1;
	result = callbacks->pfnLockCb(device, &lock);
	if (result == D3DERR_WASSTILLDRAWING)
		return result;
	if (SUCCEEDED(result)) {
		*allocation = lock.hAllocation;
		*data = lock.pData;
	}
	return result;
}
