/* SPDX-License-Identifier: MIT */
/* Fences as D3DKMT clients have them. */
#include <stdio.h>

#include <support/named.h>

#include "client.h"

#define ACCESS 0x20000u

struct remote_fence remote_kmt_fence(D3DKMT_HANDLE device, uint32_t flags)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = device, .Info = {.Type = D3DDDI_MONITORED_FENCE, .Flags.Value = flags}};

	NTSTATUS status = D3DKMTCreateSynchronizationObject2(&create);

	if (!NT_SUCCESS(status))
		remote_failed("D3DKMTCreateSynchronizationObject2", status);
	return (struct remote_fence){create.hSyncObject,
				     create.Info.MonitoredFence.FenceValueCPUVirtualAddress};
}

NTSTATUS remote_kmt_signal(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, UINT64 value)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = device,
								.ObjectCount = 1,
								.ObjectHandleArray = &fence,
								.FenceValueArray = &value};

	return D3DKMTSignalSynchronizationObjectFromCpu(&args);
}

NTSTATUS remote_kmt_wait(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, UINT64 value)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .FenceValueArray = &value};

	return D3DKMTWaitForSynchronizationObjectFromCpu(&args);
}

NTSTATUS remote_kmt_open(D3DKMT_HANDLE device, int nt, struct remote_fence *fence)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args = {.hNtHandle = (HANDLE)(intptr_t)nt,
						   .hDevice = device};
	NTSTATUS status = D3DKMTOpenSyncObjectFromNtHandle2(&args);

	*fence = (struct remote_fence){args.hSyncObject,
				       args.MonitoredFence.FenceValueCPUVirtualAddress};
	return status;
}

NTSTATUS remote_kmt_share(D3DKMT_HANDLE object, const char *name, int *nt)
{
	HANDLE handle = NULL;
	struct named n;
	NTSTATUS status =
		D3DKMTShareObjects(1, &object, name ? name_it(&n, name) : NULL, ACCESS, &handle);

	*nt = (int)(intptr_t)handle;
	return status;
}

NTSTATUS remote_kmt_open_name(const char *name, int *nt)
{
	struct named n;
	D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME args = {.dwDesiredAccess = ACCESS,
						      .pObjAttrib = name_it(&n, name)};
	NTSTATUS status = D3DKMTOpenSyncObjectNtHandleFromName(&args);

	*nt = (int)(intptr_t)args.hNtHandle;
	return status;
}

bool remote_sleeps(pid_t task)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)task);
	FILE *file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state == 'S';
}
