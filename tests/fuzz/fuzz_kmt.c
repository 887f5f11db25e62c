/* SPDX-License-Identifier: MIT */
/* fuzz_kmt [SECONDS [SEED]]: D3DKMT functions with invalid arguments. */
#include "refusal.h"

#include <d3dkmthk.h>
#include <string.h>

enum { GUARD = 0x5A, COUNT_MAX = 100000, ALLOCATION_FLAGS_BAD = 0x400000 };

/* Any handle that is not that of a device. */
static D3DKMT_HANDLE bad_device(struct refusal *r)
{
	const D3DKMT_HANDLE others[] = {
		0, r->kmt_context, r->kmt_resource, r->kmt_adapter, r->kmt_allocation, r->stale};
	uint32_t which = refusal_draw(r, 8);

	return which < 6 ? others[which] : refusal_draw(r, UINT32_MAX) | 0xE0000000u;
}

static bool wrong_device(struct refusal *r, D3DKMT_HANDLE *device)
{
	bool wrong = refusal_draw(r, 3) == 0;

	*device = wrong ? bad_device(r) : r->kmt_device;
	return wrong;
}

/* Returns a handle list with a fault. With a wrong device handle the list may be valid. */
static uint32_t list_for(struct refusal *r, D3DKMT_HANDLE *list, const D3DKMT_HANDLE **given)
{
	uint32_t count = refusal_bad_list(r, list, r->kmt_allocation);

	*given = list;
	switch (r->detail = refusal_draw(r, 4)) {
	case 0:
		*given = NULL;
		return 1 + (uint32_t)refusal_wide(r) % COUNT_MAX;
	case 1:
		return UINT32_MAX - refusal_draw(r, 100000);
	default:
		return count;
	}
}

static NTSTATUS create_allocation(struct refusal *r)
{
	D3DDDI_ALLOCATIONINFO2 info[3] = {{.hAllocation = 0}};
	D3DKMT_CREATEALLOCATION args = {.NumAllocations = 1 + refusal_draw(r, 3),
					.pAllocationInfo = (D3DDDI_ALLOCATIONINFO *)info};
	uint32_t flags = 0;

	if (!wrong_device(r, &args.hDevice)) {
		switch (r->detail = refusal_draw(r, 6)) {
		case 0:
			args.pAllocationInfo = NULL;
			break;
		case 1:
			args.NumAllocations = UINT32_MAX - refusal_draw(r, 1000000);
			break;
		case 2:
			args.hResource = refusal_draw(r, 2) ? r->kmt_resource : r->stale;
			break;
		case 3:
			flags = (uint32_t)ALLOCATION_FLAGS_BAD << refusal_draw(r, 10);
			break;
		case 4: /* CreateShared without CreateResource */
			flags = 2;
			break;
		default:
			args.PrivateDriverDataSize = 1 + (UINT)refusal_wide(r) % 1000000;
		}
		memcpy(&args.Flags, &flags, sizeof(flags));
	}
	NTSTATUS status =
		refusal_draw(r, 2) ? D3DKMTCreateAllocation2(&args) : D3DKMTCreateAllocation(&args);
	if (args.hGlobalShare || info[0].hAllocation)
		refusal_wrong(r, "a handle came out", info[0].hAllocation);
	return status;
}

/* A request for an existing heap with one fault. */
static NTSTATUS create_heap(struct refusal *r)
{
	static _Alignas(4096) char memory[4096];
	D3DKMT_CREATESTANDARDALLOCATION what = {.Type = D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP,
						.ExistingHeapData.Size = sizeof(memory)};
	D3DDDI_ALLOCATIONINFO2 info = {.pSystemMem = memory};
	D3DKMT_CREATEALLOCATION args = {.hDevice = r->kmt_device,
					.pStandardAllocation = &what,
					.NumAllocations = 1,
					.pAllocationInfo2 = &info,
					.Flags.StandardAllocation = 1,
					.Flags.ExistingSysMem = 1};

	switch (r->detail = refusal_draw(r, 9)) {
	case 0:
		what.Type = (D3DKMT_STANDARDALLOCATIONTYPE)(refusal_draw(r, 2)
								    ? 0
								    : 2 + refusal_draw(r, 1000));
		break;
	case 1:
		what.ExistingHeapData.Size = refusal_draw(r, 2) ? 0 : refusal_wide(r) * 2 + 1;
		break;
	case 2:
		what.Flags.Value = 1u << refusal_draw(r, 32);
		break;
	case 3:
		info.pSystemMem = refusal_draw(r, 2) ? memory + 1 + refusal_draw(r, 4094) : NULL;
		break;
	case 4:
		args.Flags.ExistingSysMem = 0;
		break;
	case 5:
		args.Flags.StandardAllocation = 0;
		break;
	case 6: /* both, or a descriptor that is not open */
		args.Flags.ExistingSysMem = refusal_draw(r, 2);
		args.Flags.ExistingSection = 1;
		info.hSection = (HANDLE)(uintptr_t)(100000 + refusal_wide(r));
		break;
	case 7:
		args.PrivateDriverDataSize = 1 + (UINT)refusal_wide(r);
		break;
	default: /* other processes would still use the memory after its end */
		args.Flags.CreateResource = args.Flags.CreateShared = 1;
	}
	NTSTATUS status = D3DKMTCreateAllocation2(&args);
	if (args.hGlobalShare || args.hResource || info.hAllocation)
		refusal_wrong(r, "a handle came out", info.hAllocation);
	return status;
}

static NTSTATUS destroy_allocation(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	D3DKMT_DESTROYALLOCATION args = {.hDevice = r->kmt_device};

	args.AllocationCount = list_for(r, list, &args.phAllocationList);
	if (refusal_draw(r, 3) == 0)
		args.hDevice = bad_device(r);
	else if (refusal_draw(r, 3) == 0)
		args.hResource = refusal_draw(r, 2) ? r->kmt_allocation : r->stale;
	return D3DKMTDestroyAllocation(&args);
}

static NTSTATUS lock(struct refusal *r)
{
	UINT pages[2] = {0, 1 + (UINT)refusal_wide(r) % 1000000};
	D3DKMT_LOCK args = {.hAllocation = r->kmt_allocation, .pData = pages};

	if (!wrong_device(r, &args.hDevice)) {
		switch (r->detail = refusal_draw(r, 4)) {
		case 0:
			args.hAllocation = refusal_bad_handle(r);
			break;
		case 1:
			args.Flags.Value = 0x800u << refusal_draw(r, 21);
			break;
		case 2:
			args.NumPages = 2;
			args.pPages = pages;
			break;
		default: /* of another device of the process */
			args.hAllocation = r->witness[0];
		}
	}
	NTSTATUS status = D3DKMTLock(&args);
	if (args.pData)
		refusal_wrong(r, "a refused lock has an address", (uintptr_t)args.pData);
	return status;
}

static NTSTATUS unlock(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	D3DKMT_UNLOCK args = {.hDevice = r->kmt_device};

	args.NumAllocations = list_for(r, list, &args.phAllocations);
	if (refusal_draw(r, 3) == 0) {
		args.hDevice = bad_device(r);
	} else if (refusal_draw(r, 3) == 0) { /* not locked */
		args.phAllocations = &r->kmt_allocation;
		args.NumAllocations = 1;
	}
	return D3DKMTUnlock(&args);
}

static NTSTATUS offer(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	D3DKMT_OFFERALLOCATIONS args = {.hDevice = r->kmt_device, .Priority = 1};

	args.NumAllocations = list_for(r, list, &args.HandleList);
	switch (refusal_draw(r, 5)) {
	case 0:
		args.hDevice = bad_device(r);
		break;
	case 1: /* both */
		args.HandleList = list;
		args.pResources = &r->kmt_resource;
		args.NumAllocations = 1;
		break;
	case 2:
		args.pResources = &r->kmt_allocation;
		args.HandleList = NULL;
		args.NumAllocations = 1;
		break;
	case 3:
		args.HandleList = &r->kmt_allocation;
		args.NumAllocations = 1;
		args.Priority = refusal_draw(r, 2) ? 0 : 5 + refusal_draw(r, 1000);
		break;
	default:
		break;
	}
	return D3DKMTOfferAllocations(&args);
}

static NTSTATUS reclaim(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	BOOL discarded[4];
	D3DKMT_RECLAIMALLOCATIONS args = {.hDevice = r->kmt_device, .pDiscarded = discarded};

	memset(discarded, GUARD, sizeof(discarded));
	args.NumAllocations = list_for(r, list, &args.HandleList);
	if (refusal_draw(r, 3) == 0)
		args.hDevice = bad_device(r);
	NTSTATUS status = D3DKMTReclaimAllocations(&args);
	for (size_t i = 0; i < sizeof(discarded); i++)
		if (((unsigned char *)discarded)[i] != GUARD)
			refusal_wrong(r, "a refused reclaim says something", i);
	return status;
}

static NTSTATUS set_priority(struct refusal *r)
{
	static const UINT values[COUNT_MAX + 1];
	D3DKMT_HANDLE list[4];
	D3DKMT_SETALLOCATIONPRIORITY args = {.hDevice = r->kmt_device, .pPriorities = values};

	args.AllocationCount = list_for(r, list, &args.phAllocationList);
	if (refusal_draw(r, 3) == 0)
		args.hDevice = bad_device(r);
	else if (refusal_draw(r, 3) == 0)
		args.hResource = r->kmt_resource; /* handles and a resource */
	else if (refusal_draw(r, 3) == 0)
		args.pPriorities = NULL;
	return D3DKMTSetAllocationPriority(&args);
}

static NTSTATUS get_priority(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	UINT values[4];
	D3DKMT_GETALLOCATIONPRIORITY args = {.hDevice = r->kmt_device, .pPriorities = values};

	memset(values, GUARD, sizeof(values));
	args.AllocationCount = list_for(r, list, &args.phAllocationList);
	if (refusal_draw(r, 3) == 0)
		args.hDevice = bad_device(r);
	else if (refusal_draw(r, 3) == 0)
		args.hResource = r->kmt_resource;
	else if (refusal_draw(r, 3) == 0)
		args.pPriorities = NULL;
	NTSTATUS result = D3DKMTGetAllocationPriority(&args);
	for (size_t i = 0; i < sizeof(values); i++)
		if (((unsigned char *)values)[i] != GUARD)
			refusal_wrong(r, "a refused query says something", i);
	return result;
}

static NTSTATUS query_residency(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	D3DKMT_ALLOCATIONRESIDENCYSTATUS status[4];
	D3DKMT_QUERYALLOCATIONRESIDENCY args = {.hDevice = r->kmt_device,
						.pResidencyStatus = status};

	memset(status, GUARD, sizeof(status));
	args.AllocationCount = list_for(r, list, &args.phAllocationList);
	if (refusal_draw(r, 3) == 0)
		args.hDevice = bad_device(r);
	else if (refusal_draw(r, 3) == 0)
		args.hResource = r->kmt_resource;
	NTSTATUS result = D3DKMTQueryAllocationResidency(&args);
	for (size_t i = 0; i < sizeof(status); i++)
		if (((unsigned char *)status)[i] != GUARD)
			refusal_wrong(r, "a refused query says something", i);
	return result;
}

static NTSTATUS adapters(struct refusal *r)
{
	D3DKMT_ADAPTERINFO info;
	uint32_t word;

	switch (r->detail = refusal_draw(r, 6)) {
	case 0: {
		D3DKMT_ENUMADAPTERS2 args = {.NumAdapters = 0, .pAdapters = &info};
		return D3DKMTEnumAdapters2(&args);
	}
	case 1: {
		D3DKMT_ENUMADAPTERS3 args = {.NumAdapters = 1, .pAdapters = &info};
		args.Filter.Value = (ULONGLONG)8 << refusal_draw(r, 61);
		return D3DKMTEnumAdapters3(&args);
	}
	case 2: {
		D3DKMT_OPENADAPTERFROMLUID args = {
			.AdapterLuid = {.LowPart = (ULONG)refusal_wide(r), .HighPart = 1}};
		return D3DKMTOpenAdapterFromLuid(&args);
	}
	case 3: {
		D3DKMT_CLOSEADAPTER args = {.hAdapter =
						    refusal_draw(r, 2) ? r->kmt_device : r->stale};
		return D3DKMTCloseAdapter(&args);
	}
	case 4: {
		D3DKMT_QUERYADAPTERINFO args = {.hAdapter = r->kmt_device,
						.Type = KMTQAITYPE_DRIVERVERSION,
						.pPrivateDriverData = &word,
						.PrivateDriverDataSize = sizeof(word)};
		return D3DKMTQueryAdapterInfo(&args);
	}
	default: {
		D3DKMT_QUERYADAPTERINFO args = {.hAdapter = r->kmt_adapter,
						.Type = KMTQAITYPE_DRIVERVERSION,
						.pPrivateDriverData =
							refusal_draw(r, 2) ? &word : NULL,
						.PrivateDriverDataSize = refusal_draw(r, 4)};
		return D3DKMTQueryAdapterInfo(&args);
	}
	}
}

static NTSTATUS devices(struct refusal *r)
{
	switch (r->detail = refusal_draw(r, 6)) {
	case 0: {
		D3DKMT_CREATEDEVICE args = {.hAdapter =
						    refusal_draw(r, 2) ? r->kmt_device : r->stale};
		return D3DKMTCreateDevice(&args);
	}
	case 1: {
		D3DKMT_CREATEDEVICE args = {.hAdapter = r->kmt_adapter};
		args.Flags.Reserved = 1u + refusal_draw(r, 1000);
		return D3DKMTCreateDevice(&args);
	}
	case 2: {
		D3DKMT_DESTROYDEVICE args = {.hDevice = bad_device(r)};
		return D3DKMTDestroyDevice(&args);
	}
	case 3: {
		D3DKMT_GETDEVICESTATE args = {.hDevice = bad_device(r)};
		return D3DKMTGetDeviceState(&args);
	}
	case 4: {
		D3DKMT_CREATECONTEXT args = {.hDevice = r->kmt_device};
		if (refusal_draw(r, 2))
			args.hDevice = bad_device(r);
		else
			args.NodeOrdinal = 2 + (UINT)refusal_wide(r) % 1000000;
		return D3DKMTCreateContext(&args);
	}
	default: {
		D3DKMT_DESTROYCONTEXT args = {.hContext = refusal_draw(r, 2) ? r->kmt_device
									     : r->stale};
		return D3DKMTDestroyContext(&args);
	}
	}
}

static NTSTATUS render(struct refusal *r)
{
	D3DKMT_RENDER args = {.hContext = r->kmt_context};

	switch (r->detail = refusal_draw(r, 5)) {
	case 0:
		args.hContext = refusal_draw(r, 2) ? r->kmt_device : r->stale;
		break;
	case 1:
		args.CommandLength = UINT32_MAX - refusal_draw(r, 1000000);
		break;
	case 2:
		args.AllocationCount = UINT32_MAX - refusal_draw(r, 1000000);
		break;
	case 3:
		args.PatchLocationCount = UINT32_MAX - refusal_draw(r, 1000000);
		break;
	default:
		args.BroadcastContextCount = 1 + (ULONG)refusal_wide(r) % 1000000;
	}
	return D3DKMTRender(&args);
}

static NTSTATUS priorities(struct refusal *r)
{
	const D3DKMT_HANDLE bad = refusal_bad_handle(r), context = bad == r->kmt_context ? 0 : bad;
	const INT priority = (INT)refusal_wide(r);
	D3DKMT_SETCONTEXTSCHEDULINGPRIORITY set = {context, priority};
	D3DKMT_GETCONTEXTSCHEDULINGPRIORITY get = {context, priority};
	D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY set_in = {context, priority};
	D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY get_in = {context, priority};

	switch (r->detail = refusal_draw(r, 5)) {
	case 0:
		return D3DKMTSetContextSchedulingPriority(&set);
	case 1:
		return D3DKMTGetContextSchedulingPriority(&get);
	case 2:
		return D3DKMTSetContextInProcessSchedulingPriority(&set_in);
	case 3:
		return D3DKMTGetContextInProcessSchedulingPriority(&get_in);
	default:
		return D3DKMTSetProcessSchedulingPriorityClass(
			NULL, (D3DKMT_SCHEDULINGPRIORITYCLASS)priority);
	}
}

/* Without sources every flip is invalid. So is a present without the allocations that it needs. */
static NTSTATUS present(struct refusal *r)
{
	static RECT parts[3];
	D3DKMT_PRESENT args;

	memset(&args, 0, sizeof(args));
	args.hContext = r->kmt_context;
	args.hSource = args.hDestination = r->kmt_allocation;
	args.Flags.Blt = 1;
	switch (r->detail = refusal_draw(r, 9)) {
	case 0:
		args.hContext = refusal_draw(r, 2) ? r->kmt_device : r->stale;
		break;
	case 1:
		args.hSource = refusal_bad_handle(r);
		break;
	case 2:
		args.hDestination = refusal_bad_handle(r);
		break;
	case 3:
		args.Flags.Value = 0x6 | (UINT)refusal_wide(r);
		break;
	case 4:
		args.Flags.Value = 0x4;
		args.hDestination = 0;
		args.VidPnSourceId = refusal_draw(r, UINT32_MAX);
		break;
	case 5:
		args.Flags.SrcRectValid = 1;
		args.SrcRect = (RECT){(LONG)refusal_wide(r), 0, (LONG)refusal_wide(r) % 8, -1};
		break;
	case 6:
		args.SubRectCnt = UINT32_MAX - refusal_draw(r, 1000000);
		args.pSrcSubRects = parts;
		break;
	case 7: /* with empty rectangles */
		args.SubRectCnt = 3;
		args.pSrcSubRects = parts;
		break;
	default:
		args.BroadcastContextCount = 1 + (ULONG)refusal_wide(r) % 1000000;
	}
	return D3DKMTPresent(&args);
}

static NTSTATUS limits(struct refusal *r)
{
	D3DKMT_SETQUEUEDLIMIT limit = {
		.hDevice = r->kmt_device,
		.Type = (D3DKMT_QUEUEDLIMIT_TYPE)(3 + refusal_draw(r, 1000))};
	D3DKMT_GETSHAREDPRIMARYHANDLE primary = {.hAdapter = r->kmt_adapter,
						 .VidPnSourceId = refusal_draw(r, UINT32_MAX)};

	switch (r->detail = refusal_draw(r, 3)) {
	case 0:
		limit.hDevice = bad_device(r);
		limit.Type = D3DKMT_SET_QUEUEDLIMIT_PRESENT;
		return D3DKMTSetQueuedLimit(&limit);
	case 1:
		return D3DKMTSetQueuedLimit(&limit);
	default:
		return D3DKMTGetSharedPrimaryHandle(&primary);
	}
}

static NTSTATUS shares(struct refusal *r)
{
	D3DKMT_HANDLE global = refusal_draw(r, 2) ? r->kmt_resource : refusal_bad_handle(r);
	D3DKMT_QUERYRESOURCEINFO query = {.hDevice = r->kmt_device, .hGlobalShare = global};
	D3DKMT_OPENRESOURCE open = {.hDevice = r->kmt_device,
				    .hGlobalShare = global,
				    .NumAllocations = (UINT)refusal_wide(r)};

	switch (r->detail = refusal_draw(r, 3)) {
	case 0:
		return D3DKMTQueryResourceInfo(&query);
	case 1:
		return D3DKMTOpenResource(&open);
	default:
		return D3DKMTOpenResource2(&open);
	}
}

/* Random numbers and descriptors of other objects: nothing is shared here. */
static HANDLE bad_nt_handle(struct refusal *r)
{
	return (HANDLE)(uintptr_t)(refusal_draw(r, 2) ? refusal_draw(r, 64) : refusal_wide(r));
}

static NTSTATUS share_objects(struct refusal *r)
{
	D3DKMT_HANDLE objects[4];
	HANDLE handle = NULL;

	for (uint32_t i = 0; i < 4; i++)
		objects[i] = refusal_draw(r, 2) ? r->kmt_resource : refusal_bad_handle(r);
	NTSTATUS status = D3DKMTShareObjects(refusal_draw(r, 8) ? refusal_draw(r, 5)
								: (UINT)refusal_wide(r) | 4u,
					     objects, NULL, refusal_draw(r, UINT32_MAX), &handle);
	if (handle)
		refusal_wrong(r, "a handle came out", (uintptr_t)handle);
	return status;
}

static NTSTATUS open_nt_resource(struct refusal *r)
{
	D3DDDI_OPENALLOCATIONINFO2 info = {0};
	D3DKMT_OPENRESOURCEFROMNTHANDLE args = {.hNtHandle = bad_nt_handle(r),
						.NumAllocations = (UINT)refusal_wide(r),
						.pOpenAllocationInfo2 = &info,
						.PrivateRuntimeDataSize = (UINT)refusal_wide(r),
						.TotalPrivateDriverDataBufferSize =
							(UINT)refusal_wide(r)};

	(void)wrong_device(r, &args.hDevice);
	NTSTATUS status = D3DKMTOpenResourceFromNtHandle(&args);
	if (args.hResource || args.hKeyedMutex || args.hSyncObject || info.hAllocation)
		refusal_wrong(r, "a handle came out", info.hAllocation);
	return status;
}

static NTSTATUS nt_handles(struct refusal *r)
{
	HANDLE nt = bad_nt_handle(r);
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE first = {.hNtHandle = nt};
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 second = {.hNtHandle = nt,
						     .Flags.Value = refusal_draw(r, UINT32_MAX)};
	D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE query = {.hNtHandle = nt};
	D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE keyed = {.hNtHandle = nt,
						   .PrivateRuntimeDataSize = (UINT)refusal_wide(r)};
	D3DKMT_GETSHAREDRESOURCEADAPTERLUID luid = {.hGlobalShare = r->stale, .hNtHandle = nt};
	D3DKMT_OPENSYNCHRONIZATIONOBJECT global = {.hSharedHandle = refusal_draw(r, UINT32_MAX)};
	D3DKMT_SHAREOBJECTWITHHOST host = {.hObject = r->kmt_resource};

	(void)wrong_device(r, &second.hDevice);
	(void)wrong_device(r, &query.hDevice);
	switch (r->detail = refusal_draw(r, 9)) {
	case 0:
		return D3DKMTOpenSyncObjectFromNtHandle(&first);
	case 1:
		return D3DKMTOpenSyncObjectFromNtHandle2(&second);
	case 2:
		return D3DKMTQueryResourceInfoFromNtHandle(&query);
	case 3:
		return D3DKMTOpenKeyedMutexFromNtHandle(&keyed);
	case 4:
		return D3DKMTGetSharedResourceAdapterLuid(&luid);
	case 5:
		return D3DKMTOpenSynchronizationObject(&global);
	case 6:
		return D3DKMTShareObjectWithHost(&host);
	case 7:
		return open_nt_resource(r);
	default:
		return share_objects(r);
	}
}

/* ---- WDDM 2.x, which the adapter is not of: refused, with valid handles as well ---- */

static D3DKMT_HANDLE any_handle(struct refusal *r)
{
	const D3DKMT_HANDLE valid[] = {r->kmt_device, r->kmt_context, r->kmt_allocation,
				       r->kmt_adapter};

	return refusal_draw(r, 2) ? valid[refusal_draw(r, 4)] : refusal_bad_handle(r);
}

static NTSTATUS residency(struct refusal *r)
{
	const D3DKMT_HANDLE allocation = r->kmt_allocation;
	D3DDDI_RECLAIM_RESULT result = D3DDDI_RECLAIM_RESULT_OK;
	D3DKMT_CREATEPAGINGQUEUE queue = {
		.hDevice = r->kmt_device,
		.Priority = (D3DDDI_PAGINGQUEUE_PRIORITY)((int)refusal_draw(r, 5) - 2)};
	D3DDDI_MAKERESIDENT make = {.hPagingQueue = any_handle(r),
				    .NumAllocations = 1,
				    .AllocationList = &allocation,
				    .Flags.Value = refusal_draw(r, 8)};
	D3DKMT_EVICT evict = {
		.hDevice = r->kmt_device, .NumAllocations = 1, .AllocationList = &allocation};
	D3DKMT_RECLAIMALLOCATIONS2 reclaim = {.hPagingQueue = any_handle(r),
					      .NumAllocations = 1,
					      .HandleList = &allocation,
					      .pResults = &result};
	D3DDDI_UPDATEALLOCPROPERTY update = {.hPagingQueue = any_handle(r),
					     .hAllocation = allocation,
					     .PropertyMaskValue = refusal_draw(r, 16)};
	D3DDDI_DESTROYPAGINGQUEUE destroy = {.hPagingQueue = any_handle(r)};

	switch (r->detail = refusal_draw(r, 6)) {
	case 0:
		return D3DKMTCreatePagingQueue(&queue);
	case 1:
		return D3DKMTMakeResident(&make);
	case 2:
		return D3DKMTEvict(&evict);
	case 3:
		return D3DKMTReclaimAllocations2(&reclaim);
	case 4:
		return D3DKMTUpdateAllocationProperty(&update);
	default:
		return D3DKMTDestroyPagingQueue(&destroy);
	}
}

static NTSTATUS addresses(struct refusal *r)
{
	D3DDDI_MAPGPUVIRTUALADDRESS map = {.hPagingQueue = any_handle(r),
					   .hAllocation = r->kmt_allocation,
					   .SizeInPages = 1 + refusal_wide(r) % 9};
	D3DDDI_RESERVEGPUVIRTUALADDRESS reserve = {.hAdapter = any_handle(r),
						   .Size = refusal_wide(r)};
	D3DKMT_FREEGPUVIRTUALADDRESS end = {
		.hAdapter = any_handle(r), .BaseAddress = refusal_wide(r), .Size = refusal_wide(r)};
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION operation = {.Map.SizeInBytes = 4096};
	D3DKMT_UPDATEGPUVIRTUALADDRESS update = {.hDevice = r->kmt_device,
						 .hContext = r->kmt_context,
						 .hFenceObject = any_handle(r),
						 .NumOperations = 1,
						 .Operations = &operation};

	switch (r->detail = refusal_draw(r, 4)) {
	case 0:
		return D3DKMTMapGpuVirtualAddress(&map);
	case 1:
		return D3DKMTReserveGpuVirtualAddress(&reserve);
	case 2:
		return D3DKMTFreeGpuVirtualAddress(&end);
	default:
		return D3DKMTUpdateGpuVirtualAddress(&update);
	}
}

static NTSTATUS commands(struct refusal *r)
{
	const D3DKMT_HANDLE queue = any_handle(r);
	D3DKMT_CREATECONTEXTVIRTUAL context = {.hDevice = r->kmt_device};
	D3DKMT_SUBMITCOMMAND submit = {.Commands = refusal_wide(r),
				       .CommandLength = 64,
				       .BroadcastContextCount = 1,
				       .BroadcastContext = {r->kmt_context}};
	D3DKMT_CREATEHWCONTEXT hw = {.hDevice = r->kmt_device};
	D3DKMT_CREATEHWQUEUE hw_queue = {.hHwContext = any_handle(r)};
	D3DKMT_SUBMITCOMMANDTOHWQUEUE to_queue = {.hHwQueue = queue,
						  .HwQueueProgressFenceId = refusal_wide(r)};
	D3DKMT_SUBMITPRESENTBLTTOHWQUEUE blt = {.hHwQueue = queue,
						.HwQueueProgressFenceId = refusal_wide(r)};
	D3DKMT_SUBMITPRESENTTOHWQUEUE next = {.hHwQueues = (D3DKMT_HANDLE *)(uintptr_t)&queue};

	switch (r->detail = refusal_draw(r, 7)) {
	case 0:
		return D3DKMTCreateContextVirtual(&context);
	case 1:
		return D3DKMTSubmitCommand(&submit);
	case 2:
		return D3DKMTCreateHwContext(&hw);
	case 3:
		return D3DKMTCreateHwQueue(&hw_queue);
	case 4:
		return D3DKMTSubmitCommandToHwQueue(&to_queue);
	case 5:
		return D3DKMTSubmitPresentBltToHwQueue(&blt);
	default:
		return D3DKMTSubmitPresentToHwQueue(&next);
	}
}

static NTSTATUS nothing(struct refusal *r)
{
	switch (r->detail = refusal_draw(r, 14)) {
	case 12:
		return D3DKMTPresent(NULL);
	case 13:
		return D3DKMTSetQueuedLimit(NULL);
	case 0:
		return D3DKMTCreateAllocation(NULL);
	case 1:
		return D3DKMTDestroyAllocation(NULL);
	case 2:
		return D3DKMTLock(NULL);
	case 3:
		return D3DKMTUnlock(NULL);
	case 4:
		return D3DKMTRender(NULL);
	case 5:
		return D3DKMTOpenResource(NULL);
	case 6:
		return D3DKMTCreateContext(NULL);
	case 7:
		return D3DKMTDestroyDevice(NULL);
	case 8:
		return D3DKMTQueryAdapterInfo(NULL);
	case 9:
		return D3DKMTOfferAllocations(NULL);
	case 10:
		return D3DKMTReclaimAllocations(NULL);
	default:
		return D3DKMTEnumAdapters3(NULL);
	}
}

static void step(struct refusal *r)
{
	static const struct {
		const char *name;
		NTSTATUS (*call)(struct refusal *r);
	} calls[] = {
		{"D3DKMTCreateAllocation", create_allocation},
		{"D3DKMTDestroyAllocation", destroy_allocation},
		{"D3DKMTLock", lock},
		{"D3DKMTUnlock", unlock},
		{"D3DKMTOfferAllocations", offer},
		{"D3DKMTReclaimAllocations", reclaim},
		{"D3DKMTSetAllocationPriority", set_priority},
		{"D3DKMTGetAllocationPriority", get_priority},
		{"D3DKMTQueryAllocationResidency", query_residency},
		{"standard allocations", create_heap},
		{"adapters", adapters},
		{"devices", devices},
		{"D3DKMTRender", render},
		{"priorities", priorities},
		{"D3DKMTPresent", present},
		{"limits of presents", limits},
		{"shares", shares},
		{"NT and global handles", nt_handles},
		{"residency lists", residency},
		{"GPU virtual addresses", addresses},
		{"commands of WDDM 2.x", commands},
		{"no argument", nothing},
	};
	static const NTSTATUS documented[] = {STATUS_INVALID_PARAMETER, STATUS_INVALID_HANDLE,
					      STATUS_NOT_SUPPORTED, STATUS_NO_MEMORY,
					      STATUS_BUFFER_TOO_SMALL};
	uint32_t which = refusal_draw(r, sizeof(calls) / sizeof(calls[0]));

	r->what = calls[which].name;
	NTSTATUS status = calls[which].call(r);
	for (size_t i = 0; i < sizeof(documented) / sizeof(documented[0]); i++)
		if (status == documented[i])
			return;
	refusal_wrong(r, "not a documented refusal", (uint32_t)status);
}

const struct refusal_program refusal_program = {"fuzz_kmt", step};
