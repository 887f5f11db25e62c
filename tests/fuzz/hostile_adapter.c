/* SPDX-License-Identifier: MIT */
/*
 * Further valid calls of a client of WDDM 2.x: what it asks of adapters, the priorities and
 * limits of its contexts, trim notifications, synchronization objects and keyed mutexes of the
 * older kinds and by global handles. None waits on the CPU for what may not come.
 */
#include <string.h>

#include <vidmm/softgpu.h>

#include "hostile.h"
#include "wire/wire.h"

/* ---- adapters ---- */

static void enumerate(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_ADAPTERINFO adapters[4];
	D3DKMT_ENUMADAPTERS fixed = {.NumAdapters = 0};
	D3DKMT_ENUMADAPTERS3 list = {.NumAdapters = 4, .pAdapters = adapters};
	UINT ids[8];
	D3DKMT_ENUMPROCESSES processes = {
		.AdapterLuid = h->gpu.luid, .pProcessIds = ids, .ProcessCount = 8};

	list.Filter.Value = draw_below(&h->draw, 4);
	(void)hostile_call(h, c, "D3DKMTEnumAdapters", &fixed);
	(void)hostile_call(h, c, "D3DKMTEnumAdapters3", &list);
	(void)hostile_call(h, c, "D3DKMTEnumProcesses", &processes);
}

static void open_adapter(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_OPENADAPTERFROMLUID open = {.AdapterLuid = h->gpu.luid};
	D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME named = {.AdapterLuid = h->gpu.luid};
	D3DKMT_CLOSEADAPTER close = {.hAdapter = 0};
	static const char name[] = "\\\\.\\DISPLAY1";

	for (uint32_t i = 0; i < sizeof(name); i++)
		named.DeviceName[i] = (WCHAR)name[i];
	if (!hostile_call(h, c, "D3DKMTOpenAdapterFromLuid", &open))
		return;
	hostile_learn(h, close.hAdapter = open.hAdapter);
	(void)hostile_call(h, c, "D3DKMTOpenAdapterFromGdiDisplayName", &named);
	if (draw_below(&h->draw, 4))
		(void)hostile_call(h, c, "D3DKMTCloseAdapter", &close);
}

/* Most types have one size. */
static void query_adapter(struct hostile *h, struct hostile_connection *c)
{
	static const struct {
		uint8_t type;
		uint16_t bytes;
	} known[] = {
		{KMTQAITYPE_GETSEGMENTSIZE, sizeof(D3DKMT_SEGMENTSIZEINFO)},
		{KMTQAITYPE_WDDM_1_2_CAPS, sizeof(D3DKMT_WDDM_1_2_CAPS)},
		{KMTQAITYPE_DRIVERVERSION, sizeof(D3DKMT_DRIVERVERSION)},
		{KMTQAITYPE_ADAPTERTYPE, sizeof(D3DKMT_ADAPTERTYPE)},
		{KMTQAITYPE_PHYSICALADAPTERCOUNT, sizeof(D3DKMT_PHYSICAL_ADAPTER_COUNT)},
		{KMTQAITYPE_WDDM_2_7_CAPS, sizeof(D3DKMT_WDDM_2_7_CAPS)},
	};
	uint8_t answer[1024];
	uint32_t which = draw_below(&h->draw, 2 * sizeof(known) / sizeof(known[0]));
	bool valid = which < sizeof(known) / sizeof(known[0]);
	D3DKMT_QUERYADAPTERINFO query = {
		.hAdapter = h->gpu.adapter,
		.Type = (KMTQUERYADAPTERINFOTYPE)(valid ? known[which].type
							: draw_below(&h->draw,
								     KMTQAITYPE_WDDM_3_0_CAPS + 2)),
		.pPrivateDriverData = answer,
		.PrivateDriverDataSize =
			valid ? known[which].bytes : draw_below(&h->draw, sizeof(answer))};

	memset(answer, 0, sizeof(answer));
	(void)hostile_call(h, c, "D3DKMTQueryAdapterInfo", &query);
}

static void query_clock(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_QUERYCLOCKCALIBRATION clock = {.hAdapter = h->gpu.adapter,
					      .NodeOrdinal = draw_below(&h->draw, 3)};
	D3DKMT_SETSTABLEPOWERSTATE stable = {h->gpu.adapter, (BOOL)draw_below(&h->draw, 2)};

	(void)hostile_call(h, c, "D3DKMTQueryClockCalibration", &clock);
	(void)hostile_call(h, c, "D3DKMTSetStablePowerState", &stable);
}

/* Of the source of the adapter, and of one that does not exist. */
static void use_display(struct hostile *h, struct hostile_connection *c)
{
	const D3DKMT_VIDPNSOURCEOWNER_TYPE type =
		(D3DKMT_VIDPNSOURCEOWNER_TYPE)draw_below(&h->draw, 5);
	const UINT source = draw_below(&h->draw, 2);
	D3DKMT_SETVIDPNSOURCEOWNER own = {.hDevice = h->gpu.device,
					  .pType = &type,
					  .pVidPnSourceId = &source,
					  .VidPnSourceCount = draw_below(&h->draw, 2)};
	D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP check = {h->gpu.adapter, source};
	D3DKMT_CHECKOCCLUSION occlusion = {.hWindow = 0};
	D3DKMT_MULTISAMPLEMETHOD methods[4];
	D3DKMT_GETMULTISAMPLEMETHODLIST list = {.hAdapter = h->gpu.adapter,
						.Width = 64,
						.Height = 64,
						.pMethodList = methods,
						.MethodCount = 4};
	D3DKMT_GETSHAREDPRIMARYHANDLE primary = {.hAdapter = h->gpu.adapter};

	(void)hostile_call(h, c, "D3DKMTSetVidPnSourceOwner", &own);
	(void)hostile_call(h, c, "D3DKMTCheckVidPnExclusiveOwnership", &check);
	(void)hostile_call(h, c, "D3DKMTCheckOcclusion", &occlusion);
	(void)hostile_call(h, c, "D3DKMTGetMultisampleMethodList", &list);
	(void)hostile_call(h, c, "D3DKMTGetSharedPrimaryHandle", &primary);
}

/* ---- contexts ---- */

static void set_priorities(struct hostile *h, struct hostile_connection *c)
{
	const D3DKMT_HANDLE context = draw_below(&h->draw, 2) ? h->gpu.context : h->gpu.hw_context;
	const INT priority = (INT)draw_below(&h->draw, 15) - 7;
	D3DKMT_SETCONTEXTSCHEDULINGPRIORITY set = {context, priority};
	D3DKMT_GETCONTEXTSCHEDULINGPRIORITY get = {context, 0};
	D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY set_in = {context, priority};
	D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY get_in = {context, 0};
	struct vmm_wire_priority_class of_process = {.process = (void *)(intptr_t)-1,
						     .priority_class = draw_below(&h->draw, 6)};

	(void)hostile_call(h, c, "D3DKMTSetContextSchedulingPriority", &set);
	(void)hostile_call(h, c, "D3DKMTGetContextSchedulingPriority", &get);
	(void)hostile_call(h, c, "D3DKMTSetContextInProcessSchedulingPriority", &set_in);
	(void)hostile_call(h, c, "D3DKMTGetContextInProcessSchedulingPriority", &get_in);
	(void)hostile_call(h, c, "D3DKMTSetProcessSchedulingPriorityClass", &of_process);
	(void)hostile_call(h, c, "D3DKMTGetProcessSchedulingPriorityClass", &of_process);
}

/* A present may wait for the limit, so it asks not to. */
static void present(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_SETQUEUEDLIMIT limit = {.hDevice = h->gpu.device,
				       .Type = draw_below(&h->draw, 2)
						       ? D3DKMT_SET_QUEUEDLIMIT_PRESENT
						       : D3DKMT_GET_QUEUEDLIMIT_PRESENT,
				       .QueuedPresentLimit = draw_below(&h->draw, 4)};
	D3DKMT_PRESENT args;

	memset(&args, 0, sizeof(args));
	args.hContext = h->gpu.context;
	args.hSource = hostile_allocation(h);
	args.hDestination = hostile_allocation(h);
	if (draw_below(&h->draw, 4) == 0) {
		args.hSource = 0;
		args.Flags.ColorFill = 1;
		args.Color = draw_below(&h->draw, UINT32_MAX);
	} else {
		args.Flags.Blt = 1;
	}
	args.Flags.FlipDoNotWait = 1;
	(void)hostile_call(h, c, "D3DKMTSetQueuedLimit", &limit);
	(void)hostile_call(h, c, "D3DKMTPresent", &args);
	hostile_drain(h, c);
}

static void query_residency(struct hostile *h, struct hostile_connection *c)
{
	const D3DKMT_HANDLE allocation = hostile_allocation(h);
	D3DKMT_ALLOCATIONRESIDENCYSTATUS status = 0;
	BOOL discarded = 0;
	D3DKMT_QUERYALLOCATIONRESIDENCY query = {.hDevice = h->gpu.device,
						 .phAllocationList = &allocation,
						 .AllocationCount = 1,
						 .pResidencyStatus = &status};
	D3DKMT_RECLAIMALLOCATIONS reclaim = {.hDevice = h->gpu.device,
					     .HandleList = &allocation,
					     .pDiscarded = &discarded,
					     .NumAllocations = 1};

	(void)hostile_call(h, c, "D3DKMTQueryAllocationResidency", &query);
	(void)hostile_call(h, c, "D3DKMTReclaimAllocations", &reclaim);
}

/* The notifications themselves arrive on the view socket. */
static void use_trims(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_REGISTERTRIMNOTIFICATION begin = {
		.AdapterLuid = h->gpu.luid,
		.hDevice = h->gpu.device,
		.Callback = (PFND3DKMT_TRIMNOTIFICATIONCALLBACK)(uintptr_t)0x1000};
	D3DKMT_UNREGISTERTRIMNOTIFICATION end = {.Callback = begin.Callback};

	if (!hostile_call(h, c, "D3DKMTRegisterTrimNotification", &begin))
		return;
	end.Handle = begin.Handle;
	if (draw_below(&h->draw, 3))
		(void)hostile_call(h, c, "D3DKMTUnregisterTrimNotification", &end);
	hostile_drain(h, c);
}

/* ---- synchronization ---- */

/* Waits on the CPU for a value that the fence has reached, or has the wait set an event. */
static void wait_on_cpu(struct hostile *h, struct hostile_connection *c)
{
	UINT64 value = h->gpu.value / 2;
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = h->gpu.device,
							   .ObjectCount = 1,
							   .ObjectHandleArray = &h->gpu.fence,
							   .FenceValueArray = &value};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.hDevice = h->gpu.device,
							    .ObjectCount = 1,
							    .ObjectHandleArray = &h->gpu.fence,
							    .FenceValueArray = &value};

	if (hostile_call(h, c, "D3DKMTSignalSynchronizationObjectFromCpu", &signal))
		(void)hostile_call(h, c, "D3DKMTWaitForSynchronizationObjectFromCpu", &args);
}

/* A fence of WDDM 1.x, in the queue of the context; it is signaled before it is waited for. */
static void use_fence(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {.hDevice = h->gpu.device,
						      .Info.Type = D3DDDI_FENCE};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 signal = {.hContext = h->gpu.context, .ObjectCount = 1};
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 wait = {.hContext = h->gpu.context, .ObjectCount = 1};
	D3DKMT_OPENSYNCHRONIZATIONOBJECT open = {0};
	D3DKMT_SHAREOBJECTWITHHOST host = {.hDevice = h->gpu.device};

	create.Info.Flags.Shared = draw_below(&h->draw, 2) != 0;
	if (!hostile_call(h, c, "D3DKMTCreateSynchronizationObject2", &create))
		return;
	hostile_learn(h, create.hSyncObject);
	signal.ObjectHandleArray[0] = wait.ObjectHandleArray[0] = create.hSyncObject;
	signal.Fence.FenceValue = wait.Fence.FenceValue = 1 + draw_below(&h->draw, 4);
	if (hostile_call(h, c, "D3DKMTSignalSynchronizationObject2", &signal))
		(void)hostile_call(h, c, "D3DKMTWaitForSynchronizationObject2", &wait);
	host.hObject = create.hSyncObject;
	(void)hostile_call(h, c, "D3DKMTShareObjectWithHost", &host);
	open.hSharedHandle = create.Info.SharedHandle;
	if (open.hSharedHandle && hostile_call(h, c, "D3DKMTOpenSynchronizationObject", &open))
		hostile_learn(h, open.hSyncObject);
}

static void use_mutex(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT create = {.hDevice = h->gpu.device,
						     .Info.Type = D3DDDI_SYNCHRONIZATION_MUTEX};
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT wait = {.hContext = h->gpu.context, .ObjectCount = 1};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT signal = {.hContext = h->gpu.context, .ObjectCount = 1};

	if (!hostile_call(h, c, "D3DKMTCreateSynchronizationObject", &create))
		return;
	hostile_learn(h, create.hSyncObject);
	wait.ObjectHandleArray[0] = signal.ObjectHandleArray[0] = create.hSyncObject;
	if (hostile_call(h, c, "D3DKMTWaitForSynchronizationObject", &wait) &&
	    draw_below(&h->draw, 4))
		(void)hostile_call(h, c, "D3DKMTSignalSynchronizationObject", &signal);
}

/* A keyed mutex with a global handle, opened a second time. */
static void share_mutex(struct hostile *h, struct hostile_connection *c)
{
	LARGE_INTEGER now = {.QuadPart = 0};
	uint8_t data[16] = {0};
	D3DKMT_CREATEKEYEDMUTEX create = {.InitialValue = 0};
	D3DKMT_OPENKEYEDMUTEX open = {0};
	D3DKMT_OPENKEYEDMUTEX2 open_2 = {.pPrivateRuntimeData = data,
					 .PrivateRuntimeDataSize = draw_below(&h->draw, 2) * 16};
	D3DKMT_ACQUIREKEYEDMUTEX2 acquire = {.pTimeout = &now};
	D3DKMT_RELEASEKEYEDMUTEX2 release = {.FenceValue = 1};

	if (!hostile_call(h, c, "D3DKMTCreateKeyedMutex", &create))
		return;
	hostile_learn(h, create.hKeyedMutex);
	open.hSharedHandle = open_2.hSharedHandle = create.hSharedHandle;
	if (hostile_call(h, c, "D3DKMTOpenKeyedMutex", &open))
		hostile_learn(h, open.hKeyedMutex);
	if (hostile_call(h, c, "D3DKMTOpenKeyedMutex2", &open_2))
		hostile_learn(h, open_2.hKeyedMutex);
	acquire.hKeyedMutex = create.hKeyedMutex;
	release.hKeyedMutex = draw_below(&h->draw, 4) ? create.hKeyedMutex : open.hKeyedMutex;
	(void)hostile_call(h, c, "D3DKMTAcquireKeyedMutex2", &acquire);
	(void)hostile_call(h, c, "D3DKMTReleaseKeyedMutex2", &release);
}

/* ---- sharing ---- */

/* A resource shared by its global handle, opened again in the same device. */
static void share_globally(struct hostile *h, struct hostile_connection *c)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 4096};
	uint8_t bytes[sizeof(spec)];
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &spec,
				       .PrivateDriverDataSize = sizeof(spec)};
	D3DDDI_OPENALLOCATIONINFO2 opened = {.hAllocation = 0};
	D3DKMT_CREATEALLOCATION create = {.hDevice = h->gpu.device,
					  .NumAllocations = 1,
					  .pAllocationInfo2 = &info,
					  .Flags.CreateResource = 1,
					  .Flags.CreateShared = 1};
	D3DKMT_QUERYRESOURCEINFO query = {.hDevice = h->gpu.device};
	D3DKMT_OPENRESOURCE open = {.hDevice = h->gpu.device,
				    .NumAllocations = 1,
				    .pOpenAllocationInfo2 = &opened,
				    .pTotalPrivateDriverDataBuffer = bytes,
				    .TotalPrivateDriverDataBufferSize = sizeof(bytes)};
	D3DKMT_GETSHAREDRESOURCEADAPTERLUID luid = {0};

	if (!hostile_call(h, c, "D3DKMTCreateAllocation2", &create))
		return;
	hostile_learn(h, info.hAllocation);
	hostile_learn(h, create.hResource);
	luid.hGlobalShare = query.hGlobalShare = open.hGlobalShare = create.hGlobalShare;
	(void)hostile_call(h, c, "D3DKMTGetSharedResourceAdapterLuid", &luid);
	(void)hostile_call(h, c, "D3DKMTQueryResourceInfo", &query);
	open.TotalPrivateDriverDataBufferSize = query.TotalPrivateDriverDataSize < sizeof(bytes)
							? query.TotalPrivateDriverDataSize
							: (UINT)sizeof(bytes);
	if (hostile_call(h, c,
			 draw_below(&h->draw, 2) ? "D3DKMTOpenResource2" : "D3DKMTOpenResource",
			 &open)) {
		hostile_learn(h, opened.hAllocation);
		hostile_learn(h, open.hResource);
	}
}

/* A descriptor that the client got from the host, as each kind of object. */
static void open_descriptor(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE fence = {0};
	D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE mutex = {0};
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = h->gpu.device,
		.Info = {.Type = D3DDDI_MONITORED_FENCE, .Flags.Value = 3}};
	D3DKMT_CREATEKEYEDMUTEX2 keyed = {.Flags.NtSecuritySharing = 1};
	HANDLE nt = NULL;
	D3DKMT_SHAREOBJECTS share = {
		.ObjectCount = 1, .DesiredAccess = 0x20000, .pSharedNtHandle = &nt};

	if (draw_below(&h->draw, 2) &&
	    hostile_call(h, c, "D3DKMTCreateSynchronizationObject2", &create)) {
		share.ObjectHandleArray = &create.hSyncObject;
		(void)hostile_call(h, c, "D3DKMTShareObjects", &share);
	} else if (hostile_call(h, c, "D3DKMTCreateKeyedMutex2", &keyed)) {
		share.ObjectHandleArray = &keyed.hKeyedMutex;
		(void)hostile_call(h, c, "D3DKMTShareObjects", &share);
	}
	if (!h->descriptor_count)
		return;
	fence.hNtHandle = mutex.hNtHandle =
		(HANDLE)(intptr_t)
			h->descriptors[draw_below(&h->draw, 2)
					       ? h->descriptor_count - 1
					       : draw_below(&h->draw, h->descriptor_count)];
	if (hostile_call(h, c, "D3DKMTOpenSyncObjectFromNtHandle", &fence))
		hostile_learn(h, fence.hSyncObject);
	else if (hostile_call(h, c, "D3DKMTOpenKeyedMutexFromNtHandle", &mutex))
		hostile_learn(h, mutex.hKeyedMutex);
}

/* An object with a name, which is looked up while the client holds the descriptor. */
static void share_by_name(struct hostile *h, struct hostile_connection *c)
{
	uint16_t text[2] = {'\\', (uint16_t)('A' + draw_below(&h->draw, 3))};
	UNICODE_STRING string = {.Length = 4, .MaximumLength = 4, .Buffer = (PWSTR)(void *)text};
	OBJECT_ATTRIBUTES attributes = {.Length = sizeof(attributes), .ObjectName = &string};
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 4096};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &spec,
				       .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION create = {.hDevice = h->gpu.device,
					  .NumAllocations = 1,
					  .pAllocationInfo2 = &info,
					  .Flags.CreateResource = 1,
					  .Flags.CreateShared = 1,
					  .Flags.NtSecuritySharing = 1};
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = {
		.hDevice = h->gpu.device,
		.Info = {.Type = D3DDDI_MONITORED_FENCE, .Flags.Value = 3}};
	HANDLE nt = NULL;
	D3DKMT_SHAREOBJECTS share = {.ObjectCount = 1,
				     .pObjectAttributes = &attributes,
				     .DesiredAccess = 0x20000,
				     .pSharedNtHandle = &nt};
	D3DKMT_OPENNTHANDLEFROMNAME of_resource = {.dwDesiredAccess = 0x20000,
						   .pObjAttrib = &attributes};
	D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME of_fence = {.dwDesiredAccess = 0x20000,
							  .pObjAttrib = &attributes};

	if (draw_below(&h->draw, 2)) {
		if (!hostile_call(h, c, "D3DKMTCreateAllocation2", &create))
			return;
		share.ObjectHandleArray = &create.hResource;
	} else {
		if (!hostile_call(h, c, "D3DKMTCreateSynchronizationObject2", &fence))
			return;
		share.ObjectHandleArray = &fence.hSyncObject;
	}
	(void)hostile_call(h, c, "D3DKMTShareObjects", &share);
	(void)hostile_call(h, c, "D3DKMTOpenNtHandleFromName", &of_resource);
	(void)hostile_call(h, c, "D3DKMTOpenSyncObjectNtHandleFromName", &of_fence);
}

/* ---- on the adapter of WDDM 1.x ---- */

static void use_old_adapter(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_ADAPTERINFO adapters[4];
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 4, .pAdapters = adapters};
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 4096};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEDEVICE device = {.hAdapter = 0};
	D3DKMT_CREATECONTEXT context = {.EngineAffinity = 1};
	D3DKMT_CREATEALLOCATION create = {.NumAllocations = 1, .pAllocationInfo = &info};
	D3DKMT_LOCK lock = {.Flags.Value = 0};
	D3DKMT_UNLOCK unlock = {.NumAllocations = 1, .phAllocations = &lock.hAllocation};
	D3DKMT_RENDER render = {.CommandLength = 0};
	D3DKMT_DESTROYALLOCATION end = {.AllocationCount = 1,
					.phAllocationList = &lock.hAllocation};
	D3DKMT_DESTROYDEVICE close = {.hDevice = 0};

	if (!hostile_call(h, c, "D3DKMTEnumAdapters2", &list) || !list.NumAdapters)
		return;
	device.hAdapter = adapters[0].hAdapter;
	if (!hostile_call(h, c, "D3DKMTCreateDevice", &device))
		return;
	context.hDevice = create.hDevice = lock.hDevice = unlock.hDevice = end.hDevice =
		close.hDevice = device.hDevice;
	if (hostile_call(h, c, "D3DKMTCreateAllocation", &create)) {
		lock.hAllocation = info.hAllocation;
		(void)hostile_call(h, c, "D3DKMTLock", &lock);
		hostile_drain(h, c);
		(void)hostile_call(h, c, "D3DKMTUnlock", &unlock);
		(void)hostile_call(h, c, "D3DKMTDestroyAllocation", &end);
	}
	if (hostile_call(h, c, "D3DKMTCreateContext", &context)) {
		render.hContext = context.hContext;
		(void)hostile_call(h, c, "D3DKMTRender", &render);
		hostile_drain(h, c);
	}
	(void)hostile_call(h, c, "D3DKMTDestroyDevice", &close);
}

void hostile_adapter(struct hostile *h, struct hostile_connection *c, uint32_t what)
{
	static void (*const steps[])(struct hostile *, struct hostile_connection *) = {
		enumerate,       open_adapter,  query_adapter,   query_clock,    use_display,
		set_priorities,  present,       query_residency, use_trims,      wait_on_cpu,
		use_fence,       use_mutex,     share_mutex,     share_globally, open_descriptor,
		use_old_adapter, share_by_name,
	};

	if (c->welcome && hostile_is_free(h, c) && h->gpu.device)
		steps[what % VMM_ARRAY_LENGTH(steps)](h, c);
}
