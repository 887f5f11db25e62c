/* SPDX-License-Identifier: MIT */
/*
 * Valid calls of a client of WDDM 2.x about its objects (hostile_virtual.c creates them):
 * synchronization in hardware queues, queries, properties, sharing, destruction. None waits on the
 * CPU.
 */
#include <string.h>

#include <vidmm/softgpu.h>

#include "hostile.h"

/* ---- hardware queues, and fences of several contexts ---- */

/*
 * A present may wait for the limit, and the queue may be behind a wait that only this client could
 * end, so it asks not to.
 */
static void present_to_queue(struct hostile *h, struct hostile_connection *c)
{
	RECT rects[4];
	D3DKMT_SUBMITPRESENTBLTTOHWQUEUE blt = {.hHwQueue = h->gpu.hw_queue,
						.HwQueueProgressFenceId = ++h->gpu.progress};
	D3DKMT_SUBMITPRESENTTOHWQUEUE next = {.hHwQueues = &h->gpu.hw_queue};
	D3DKMT_PRESENT *present = &blt.PrivatePresentData;

	for (uint32_t i = 0; i < 4; i++)
		rects[i] = (RECT){(LONG)draw_below(&h->draw, 99), 0, (LONG)draw_below(&h->draw, 99),
				  8};
	present->hSource = hostile_allocation(h);
	present->hDestination = hostile_allocation(h);
	present->Flags.Blt = 1;
	if (draw_below(&h->draw, 2)) {
		present->Flags.Value = 1u << draw_below(&h->draw, 32) | !draw_below(&h->draw, 2);
		present->SubRectCnt = (UINT)draw_below(&h->draw, 5);
		present->pSrcSubRects = rects;
		present->BroadcastContextCount = !draw_below(&h->draw, 8);
	}
	present->Flags.FlipDoNotWait = 1;
	next.PrivatePresentData = *present;
	if (draw_below(&h->draw, 2))
		(void)hostile_call(h, c, "D3DKMTSubmitPresentBltToHwQueue", &blt);
	else
		(void)hostile_call(h, c, "D3DKMTSubmitPresentToHwQueue", &next);
	hostile_drain(h, c);
}

static void wait_in_queue(struct hostile *h, struct hostile_connection *c)
{
	UINT64 value = h->gpu.value + draw_below(&h->draw, 2);
	D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE args = {.hHwQueue = h->gpu.hw_queue,
							 .ObjectCount = 1,
							 .ObjectHandleArray = &h->gpu.fence,
							 .FenceValueArray = &value};

	(void)hostile_call(h, c, "D3DKMTSubmitWaitForSyncObjectsToHwQueue", &args);
}

static void signal_in_queues(struct hostile *h, struct hostile_connection *c)
{
	const D3DKMT_HANDLE queues[2] = {h->gpu.hw_queue, h->gpu.hw_queue};
	UINT64 value = h->gpu.value + draw_below(&h->draw, 3);
	D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE args = {.BroadcastHwQueueCount =
								1 + (draw_below(&h->draw, 4) == 0),
							.BroadcastHwQueueArray = queues,
							.ObjectCount = 1,
							.ObjectHandleArray = &h->gpu.fence,
							.FenceValueArray = &value};

	(void)hostile_call(h, c, "D3DKMTSubmitSignalSyncObjectsToHwQueue", &args);
}

static void signal_in_contexts(struct hostile *h, struct hostile_connection *c)
{
	const D3DKMT_HANDLE contexts[2] = {h->gpu.context, h->gpu.context};
	UINT64 value = h->gpu.value + draw_below(&h->draw, 3);
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = {
		.ObjectCount = 1,
		.ObjectHandleArray = &h->gpu.fence,
		.BroadcastContextCount = 1 + (draw_below(&h->draw, 4) == 0),
		.BroadcastContextArray = contexts,
		.MonitoredFenceValueArray = &value};

	(void)hostile_call(h, c, "D3DKMTSignalSynchronizationObjectFromGpu2", &args);
}

/* The file descriptor arrives with the answer, and is one of the client's from then on. */
static void make_sync_file(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_CREATESYNCFILE args = {.hDevice = h->gpu.device,
				      .hMonitoredFence = h->gpu.fence,
				      .FenceValue = h->gpu.value + draw_below(&h->draw, 3)};

	(void)hostile_call(h, c, "D3DKMTCreateSyncFile", &args);
}

/* ---- queries ---- */

static void query_memory(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_QUERYVIDEOMEMORYINFO query = {
		.hAdapter = h->gpu.adapter,
		.MemorySegmentGroup = (D3DKMT_MEMORY_SEGMENT_GROUP)draw_below(&h->draw, 2)};
	D3DKMT_CHANGEVIDEOMEMORYRESERVATION change = {
		.hAdapter = h->gpu.adapter, .MemorySegmentGroup = query.MemorySegmentGroup};

	if (!hostile_call(h, c, "D3DKMTQueryVideoMemoryInfo", &query))
		return;
	change.Reservation = query.AvailableForReservation >> draw_below(&h->draw, 3);
	(void)hostile_call(h, c, "D3DKMTChangeVideoMemoryReservation", &change);
}

/* Of the adapter, one of its segments or nodes, and of the client's use of them. */
static void query_statistics(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_QUERYSTATISTICS args = {
		.Type = (D3DKMT_QUERYSTATISTICS_TYPE)draw_below(
			&h->draw, D3DKMT_QUERYSTATISTICS_PHYSICAL_ADAPTER + 1),
		.AdapterLuid = h->gpu.luid,
		.QuerySegment.SegmentId = draw_below(&h->draw, 2)};

	(void)hostile_call(h, c, "D3DKMTQueryStatistics", &args);
}

static void query_device(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_GETDEVICESTATE args = {
		.hDevice = h->gpu.device,
		.StateType = (D3DKMT_DEVICESTATE_TYPE)(1 + draw_below(&h->draw, 6))};

	(void)hostile_call(h, c, "D3DKMTGetDeviceState", &args);
}

static void escape(struct hostile *h, struct hostile_connection *c)
{
	struct softgpu_escape query = {.version = SOFTGPU_ESCAPE_VERSION,
				       .command = SOFTGPU_ESCAPE_QUERY +
						  (draw_below(&h->draw, 4) == 0)};
	D3DKMT_ESCAPE args = {.hAdapter = h->gpu.adapter,
			      .hDevice = draw_below(&h->draw, 2) ? h->gpu.device : 0,
			      .Type = D3DKMT_ESCAPE_DRIVERPRIVATE,
			      .pPrivateDriverData = &query,
			      .PrivateDriverDataSize = sizeof(query)};

	(void)hostile_call(h, c, "D3DKMTEscape", &args);
}

/* ---- properties of allocations ---- */

static void update_property(struct hostile *h, struct hostile_connection *c)
{
	D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = h->gpu.queue,
					   .hAllocation = hostile_allocation(h),
					   .SupportedSegmentSet = 1 + draw_below(&h->draw, 3),
					   .PreferredSegment.Value = draw_below(&h->draw, 3),
					   .Flags.Value = draw_below(&h->draw, 4)};

	if (draw_below(&h->draw, 2))
		args.PropertyMaskValue = draw_below(&h->draw, 16);
	else
		args.Flags.Value = 0;

	(void)hostile_call(h, c, "D3DKMTUpdateAllocationProperty", &args);
}

static void change_priority(struct hostile *h, struct hostile_connection *c)
{
	const D3DKMT_HANDLE allocation = hostile_allocation(h);
	const UINT priority = 0x28000000u << draw_below(&h->draw, 3);
	UINT now = 0;
	D3DKMT_SETALLOCATIONPRIORITY set = {.hDevice = h->gpu.device,
					    .phAllocationList = &allocation,
					    .AllocationCount = 1,
					    .pPriorities = &priority};
	D3DKMT_GETALLOCATIONPRIORITY get = {.hDevice = h->gpu.device,
					    .phAllocationList = &allocation,
					    .AllocationCount = 1,
					    .pPriorities = &now};

	(void)hostile_call(h, c, "D3DKMTSetAllocationPriority", &set);
	(void)hostile_call(h, c, "D3DKMTGetAllocationPriority", &get);
}

static void flush(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_INVALIDATECACHE invalidate = {.hDevice = h->gpu.device,
					     .hAllocation = hostile_allocation(h),
					     .Offset = draw_below(&h->draw, 2) * 4096u,
					     .Length = draw_below(&h->draw, 3) * 4096u};
	D3DKMT_FLUSHHEAPTRANSITIONS transitions = {.hAdapter = h->gpu.adapter};

	(void)hostile_call(h, c, "D3DKMTInvalidateCache", &invalidate);
	(void)hostile_call(h, c, "D3DKMTFlushHeapTransitions", &transitions);
}

/* ---- sharing ---- */

/* A resource that is shared by an NT handle: its file descriptor is one of the client's. */
static void share_resource(struct hostile *h, struct hostile_connection *c)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = (1 + draw_below(&h->draw, 8)) * 4096u};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &spec,
				       .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION create = {.hDevice = h->gpu.device,
					  .NumAllocations = 1,
					  .pAllocationInfo2 = &info,
					  .Flags.CreateResource = 1,
					  .Flags.CreateShared = 1,
					  .Flags.NtSecuritySharing = 1};
	HANDLE nt = NULL;
	D3DKMT_SHAREOBJECTS share = {
		.ObjectCount = 1, .DesiredAccess = 0x20000, .pSharedNtHandle = &nt};

	if (!hostile_call(h, c, "D3DKMTCreateAllocation2", &create))
		return;
	hostile_learn(h, info.hAllocation);
	hostile_learn(h, create.hResource);
	share.ObjectHandleArray = &create.hResource;
	(void)hostile_call(h, c, "D3DKMTShareObjects", &share);
}

/* Any descriptor of the client: one of a shared resource, or of something else. */
static void open_resource(struct hostile *h, struct hostile_connection *c)
{
	uint8_t bytes[sizeof(struct softgpu_allocation)];
	D3DDDI_OPENALLOCATIONINFO2 info = {.hAllocation = 0};
	D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE query = {.hDevice = h->gpu.device};
	D3DKMT_OPENRESOURCEFROMNTHANDLE open = {.hDevice = h->gpu.device,
						.NumAllocations = 1,
						.pOpenAllocationInfo2 = &info,
						.pTotalPrivateDriverDataBuffer = bytes};

	if (!h->descriptor_count)
		return;
	open.hNtHandle = query.hNtHandle =
		(HANDLE)(intptr_t)h->descriptors[draw_below(&h->draw, h->descriptor_count)];
	if (!hostile_call(h, c, "D3DKMTQueryResourceInfoFromNtHandle", &query))
		return;
	open.TotalPrivateDriverDataBufferSize = query.TotalPrivateDriverDataSize < sizeof(bytes)
							? query.TotalPrivateDriverDataSize
							: (UINT)sizeof(bytes);
	if (hostile_call(h, c, "D3DKMTOpenResourceFromNtHandle", &open)) {
		hostile_learn(h, info.hAllocation);
		hostile_learn(h, open.hResource);
	}
}

/* Acquired with a timeout of 0, by one key or by another, and released with either. */
static void use_keyed_mutex(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_CREATEKEYEDMUTEX2 create = {.InitialValue = 0};
	LARGE_INTEGER now = {.QuadPart = 0};
	D3DKMT_ACQUIREKEYEDMUTEX acquire = {.Key = draw_below(&h->draw, 2), .pTimeout = &now};
	D3DKMT_RELEASEKEYEDMUTEX release = {.Key = draw_below(&h->draw, 2),
					    .FenceValue = h->gpu.value};
	D3DKMT_DESTROYKEYEDMUTEX destroy = {0};

	if (!h->gpu.keyed_mutex && hostile_call(h, c, "D3DKMTCreateKeyedMutex2", &create))
		hostile_learn(h, h->gpu.keyed_mutex = create.hKeyedMutex);
	acquire.hKeyedMutex = release.hKeyedMutex = destroy.hKeyedMutex = h->gpu.keyed_mutex;
	(void)hostile_call(h, c, "D3DKMTAcquireKeyedMutex", &acquire);
	if (draw_below(&h->draw, 4))
		(void)hostile_call(h, c, "D3DKMTReleaseKeyedMutex", &release);
	if (draw_below(&h->draw, 4) == 0 && hostile_call(h, c, "D3DKMTDestroyKeyedMutex", &destroy))
		h->gpu.keyed_mutex = 0;
}

/* ---- destruction ---- */

/* Later steps use the handle that has ended, or that of the object in its place. */
static void destroy_object(struct hostile *h, struct hostile_connection *c)
{
	struct hostile_gpu *gpu = &h->gpu;
	D3DKMT_DESTROYHWQUEUE queue = {gpu->hw_queue};
	D3DKMT_DESTROYHWCONTEXT hw = {gpu->hw_context};
	D3DKMT_DESTROYCONTEXT context = {gpu->context};
	D3DDDI_DESTROYPAGINGQUEUE paging = {gpu->queue};
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT fence = {gpu->fence};
	const struct {
		const char *name;
		void *argument;
	} calls[] = {{"D3DKMTDestroyHwQueue", &queue},
		     {"D3DKMTDestroyHwContext", &hw},
		     {"D3DKMTDestroyContext", &context},
		     {"D3DKMTDestroyPagingQueue", &paging},
		     {"D3DKMTDestroySynchronizationObject", &fence}};
	uint32_t which = draw_below(&h->draw, VMM_ARRAY_LENGTH(calls));

	(void)hostile_call(h, c, calls[which].name, calls[which].argument);
	if (draw_below(&h->draw, 2))
		hostile_create_objects(h, c);
}

static void mark_device(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_MARKDEVICEASERROR args = {.hDevice = h->gpu.device,
					 .Reason = D3DKMT_DEVICE_ERROR_REASON_GENERIC};

	(void)hostile_call(h, c, "D3DKMTMarkDeviceAsError", &args);
}

void hostile_objects(struct hostile *h, struct hostile_connection *c, uint32_t what)
{
	static void (*const steps[])(struct hostile *, struct hostile_connection *) = {
		wait_in_queue,
		signal_in_queues,
		signal_in_contexts,
		make_sync_file,
		query_memory,
		query_statistics,
		query_device,
		escape,
		update_property,
		change_priority,
		flush,
		share_resource,
		open_resource,
		use_keyed_mutex,
		destroy_object,
		mark_device,
		present_to_queue,
	};

	steps[what % VMM_ARRAY_LENGTH(steps)](h, c);
}
