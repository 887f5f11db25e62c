/* SPDX-License-Identifier: MIT */
/*
 * Valid calls of a client of WDDM 2.x, which has GPU virtual addresses: its own device, paging
 * queue, contexts and buffers on the second adapter. hostile_objects.c has further calls. Its
 * commands may use any address. None of them waits or stalls, because the adapter has no watchdog.
 */
#include <string.h>

#include <vidmm/softgpu.h>

#include "hostile.h"

enum { PAGE_BYTES = 4096, COPY_BYTES_MAX = 64 << 10, ADAPTERS = 4 };

/* ---- objects ---- */

static void open_contexts(struct hostile *h, struct hostile_connection *c)
{
	struct hostile_gpu *gpu = &h->gpu;
	D3DKMT_CREATECONTEXTVIRTUAL context = {.hDevice = gpu->device};
	D3DKMT_CREATEHWCONTEXT hw = {.hDevice = gpu->device};
	D3DKMT_CREATEHWQUEUE queue = {.Flags.Value = 0};

	if (hostile_call(h, c, "D3DKMTCreateContextVirtual", &context))
		hostile_learn(h, gpu->context = context.hContext);
	if (!hostile_call(h, c, "D3DKMTCreateHwContext", &hw))
		return;
	hostile_learn(h, queue.hHwContext = gpu->hw_context = hw.hHwContext);
	if (hostile_call(h, c, "D3DKMTCreateHwQueue", &queue)) {
		hostile_learn(h, gpu->hw_queue = queue.hHwQueue);
		hostile_learn(h, queue.hHwQueueProgressFence);
		gpu->progress = 0;
	}
}

void hostile_create_objects(struct hostile *h, struct hostile_connection *c)
{
	struct hostile_gpu *gpu = &h->gpu;
	D3DKMT_CREATEPAGINGQUEUE queue = {.hDevice = gpu->device};
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = {.hDevice = gpu->device,
						     .Info.Type = D3DDDI_MONITORED_FENCE};

	if (hostile_call(h, c, "D3DKMTCreatePagingQueue", &queue)) {
		hostile_learn(h, gpu->queue = queue.hPagingQueue);
		hostile_learn(h, queue.hSyncObject);
	}
	if (hostile_call(h, c, "D3DKMTCreateSynchronizationObject2", &fence)) {
		hostile_learn(h, gpu->fence = fence.hSyncObject);
		gpu->fence_address = fence.Info.MonitoredFence.FenceValueGPUVirtualAddress;
	}
	open_contexts(h, c);
}

static void open_device(struct hostile *h, struct hostile_connection *c)
{
	struct hostile_gpu *gpu = &h->gpu;
	D3DKMT_ADAPTERINFO adapters[ADAPTERS];
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = ADAPTERS, .pAdapters = adapters};
	D3DKMT_CREATEDEVICE device = {.hAdapter = 0};

	*gpu = (struct hostile_gpu){.device = 0};
	if (!hostile_call(h, c, "D3DKMTEnumAdapters2", &list) || list.NumAdapters < 2)
		return;
	device.hAdapter = gpu->adapter = adapters[list.NumAdapters - 1].hAdapter;
	gpu->luid = adapters[list.NumAdapters - 1].AdapterLuid;
	hostile_learn(h, gpu->adapter);
	if (!hostile_call(h, c, "D3DKMTCreateDevice", &device))
		return;
	hostile_learn(h, gpu->device = device.hDevice);
	hostile_create_objects(h, c);
}

static void close_device(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_DESTROYDEVICE device = {.hDevice = h->gpu.device};

	(void)hostile_call(h, c, "D3DKMTDestroyDevice", &device);
	h->gpu = (struct hostile_gpu){.device = 0};
}

/* Most steps use a buffer of the client. */
static struct hostile_buffer *any_buffer(struct hostile *h)
{
	return &h->gpu.buffers[draw_below(&h->draw, HOSTILE_BUFFERS)];
}

/* The same, but one that has an allocation, if a few draws find one. */
static struct hostile_buffer *any_created(struct hostile *h)
{
	struct hostile_buffer *buffer = any_buffer(h);

	for (uint32_t i = 0; i < HOSTILE_BUFFERS && !buffer->allocation; i++)
		buffer = any_buffer(h);
	return buffer;
}

D3DKMT_HANDLE hostile_allocation(struct hostile *h)
{
	if (draw_below(&h->draw, 8) == 0 && h->pool_count)
		return h->pool[draw_below(&h->draw, h->pool_count)];
	return any_created(h)->allocation;
}

static uint64_t any_address(struct hostile *h)
{
	const struct hostile_buffer *buffer = any_created(h);

	switch (draw_below(&h->draw, 8)) {
	case 0:
		return h->gpu.fence_address;
	case 1:
		return (uint64_t)draw_below(&h->draw, UINT32_MAX) << draw_below(&h->draw, 16);
	case 2:
		return buffer->address + draw_below(&h->draw, 2 * COPY_BYTES_MAX);
	default:
		return buffer->address;
	}
}

static void create_buffer(struct hostile *h, struct hostile_connection *c)
{
	struct hostile_buffer *buffer = any_buffer(h);
	uint64_t pages = 1 + draw_below(&h->draw, 32);
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = pages * PAGE_BYTES,
					  .width = 32, /* a picture, for presents */
					  .height = (uint32_t)pages * PAGE_BYTES / 128};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &spec,
				       .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = h->gpu.device, .NumAllocations = 1, .pAllocationInfo2 = &info};
	D3DDDI_MAPGPUVIRTUALADDRESS map = {
		.hPagingQueue = h->gpu.queue, .SizeInPages = pages, .Protection.Write = 1};

	if (!hostile_call(h, c, "D3DKMTCreateAllocation2", &create))
		return;
	hostile_learn(h, map.hAllocation = info.hAllocation);
	if (hostile_call(h, c, "D3DKMTMapGpuVirtualAddress", &map))
		*buffer = (struct hostile_buffer){info.hAllocation, map.VirtualAddress};
}

static void destroy_buffer(struct hostile *h, struct hostile_connection *c)
{
	struct hostile_buffer *buffer = any_buffer(h);
	D3DKMT_DESTROYALLOCATION2 args = {.hDevice = h->gpu.device,
					  .phAllocationList = &buffer->allocation,
					  .AllocationCount = 1,
					  .Flags.Value = draw_below(&h->draw, 4)};

	(void)hostile_call(h, c, "D3DKMTDestroyAllocation2", &args);
	buffer->allocation = 0;
}

/* ---- residency ---- */

static void make_resident(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_HANDLE list[4];
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = h->gpu.queue,
				    .NumAllocations = 1 + draw_below(&h->draw, 4),
				    .AllocationList = list,
				    .Flags.Value =
					    draw_below(&h->draw, 4) ? 0 : draw_below(&h->draw, 4)};

	for (uint32_t i = 0; i < 4; i++)
		list[i] = hostile_allocation(h);
	(void)hostile_call(h, c, "D3DKMTMakeResident", &args);
}

static void evict(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_HANDLE allocation = hostile_allocation(h);
	D3DKMT_EVICT args = {.hDevice = h->gpu.device,
			     .NumAllocations = 1,
			     .AllocationList = &allocation,
			     .Flags.Value = draw_below(&h->draw, 4)};

	(void)hostile_call(h, c, "D3DKMTEvict", &args);
}

static void offer(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_HANDLE allocation = hostile_allocation(h);
	D3DKMT_OFFERALLOCATIONS args = {.hDevice = h->gpu.device,
					.HandleList = &allocation,
					.NumAllocations = 1,
					.Priority = D3DKMT_OFFER_PRIORITY_LOW};

	(void)hostile_call(h, c, "D3DKMTOfferAllocations", &args);
}

static void reclaim(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_HANDLE allocation = hostile_allocation(h);
	D3DDDI_RECLAIM_RESULT result;
	D3DKMT_RECLAIMALLOCATIONS2 args = {.hPagingQueue = h->gpu.queue,
					   .NumAllocations = 1,
					   .HandleList = &allocation,
					   .pResults = &result};

	(void)hostile_call(h, c, "D3DKMTReclaimAllocations2", &args);
}

/* ---- addresses ---- */

static void map_again(struct hostile *h, struct hostile_connection *c)
{
	struct hostile_buffer *buffer = any_buffer(h);
	D3DDDI_MAPGPUVIRTUALADDRESS args = {.hPagingQueue = h->gpu.queue,
					    .BaseAddress = any_address(h),
					    .hAllocation = hostile_allocation(h),
					    .OffsetInPages = draw_below(&h->draw, 4),
					    .SizeInPages = 1 + draw_below(&h->draw, 40),
					    .Protection.Value = draw_below(&h->draw, 64)};

	if (hostile_call(h, c, "D3DKMTMapGpuVirtualAddress", &args))
		buffer->address = args.VirtualAddress;
}

static void reserve(struct hostile *h, struct hostile_connection *c)
{
	D3DDDI_RESERVEGPUVIRTUALADDRESS args = {
		.hAdapter = draw_below(&h->draw, 2) ? h->gpu.adapter : h->gpu.queue,
		.BaseAddress = draw_below(&h->draw, 2) ? any_address(h) : 0,
		.Size = (uint64_t)(1 + draw_below(&h->draw, 64)) << 16,
		.ReservationType =
			(D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE)draw_below(&h->draw, 4)};

	if (!hostile_call(h, c, "D3DKMTReserveGpuVirtualAddress", &args))
		return;
	any_buffer(h)->address = h->gpu.reserved = args.VirtualAddress;
	h->gpu.reserved_bytes = args.Size;
}

static void free_addresses(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_FREEGPUVIRTUALADDRESS args = {.hAdapter = h->gpu.adapter,
					     .BaseAddress = any_address(h),
					     .Size = (uint64_t)(1 + draw_below(&h->draw, 64)) *
						     PAGE_BYTES};

	if (h->gpu.reserved && draw_below(&h->draw, 2)) {
		args.BaseAddress = h->gpu.reserved;
		args.Size = h->gpu.reserved_bytes;
	}
	(void)hostile_call(h, c, "D3DKMTFreeGpuVirtualAddress", &args);
}

static void update_addresses(struct hostile *h, struct hostile_connection *c)
{
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION operations[4];
	D3DKMT_UPDATEGPUVIRTUALADDRESS args = {.hDevice = h->gpu.device,
					       .hContext = h->gpu.context,
					       .hFenceObject = h->gpu.fence,
					       .NumOperations = 1 + draw_below(&h->draw, 4),
					       .Operations = operations,
					       .FenceValue = ++h->gpu.value};

	memset(operations, 0, sizeof(operations));
	for (uint32_t i = 0; i < 4; i++) {
		operations[i].OperationType =
			(D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_TYPE)draw_below(&h->draw, 5);
		operations[i].Map.BaseAddress = any_address(h);
		operations[i].Map.SizeInBytes = (1 + draw_below(&h->draw, 16)) * PAGE_BYTES;
		operations[i].Map.hAllocation = hostile_allocation(h);
		operations[i].Map.AllocationOffsetInBytes = draw_below(&h->draw, 4) * PAGE_BYTES;
	}
	if (draw_below(&h->draw, 2)) { /* one page of a buffer, where addresses are reserved */
		const struct hostile_buffer *buffer = any_created(h);

		args.NumOperations = 1;
		operations[0].OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP;
		operations[0].Map.BaseAddress = h->gpu.reserved;
		operations[0].Map.SizeInBytes = PAGE_BYTES;
		operations[0].Map.hAllocation = buffer->allocation;
		operations[0].Map.AllocationOffsetInBytes = 0;
		operations[0].Map.AllocationSizeInBytes = PAGE_BYTES;
	}
	(void)hostile_call(h, c, "D3DKMTUpdateGpuVirtualAddress", &args);
}

/* ---- commands ---- */

static void write_one(struct hostile *h, uint8_t *at)
{
	const struct softgpu_copy copy = {
		.command = {.opcode = SOFTGPU_COPY, .size_bytes = sizeof(copy)},
		.source.address = any_address(h),
		.destination.address = any_address(h),
		.length = draw_below(&h->draw, COPY_BYTES_MAX) & ~7u};
	const struct softgpu_fill fill = {
		.command = {.opcode = SOFTGPU_FILL, .size_bytes = sizeof(fill)},
		.operand.address = any_address(h),
		.length = draw_below(&h->draw, COPY_BYTES_MAX) & ~7u,
		.pattern = draw_below(&h->draw, UINT32_MAX)};
	const struct softgpu_sync signal = {
		.command = {.opcode = SOFTGPU_SIGNAL, .size_bytes = sizeof(signal)},
		.operand.address = any_address(h),
		.value = ++h->gpu.value};

	memset(at, 0, sizeof(copy)); /* the rest is SOFTGPU_NOP without a size */
	switch (draw_below(&h->draw, 3)) {
	case 0:
		memcpy(at, &copy, sizeof(copy));
		break;
	case 1:
		memcpy(at, &fill, sizeof(fill));
		break;
	default:
		memcpy(at, &signal, sizeof(signal));
		break;
	}
}

/* Locks a buffer, whose memory then is one of the views, and writes commands into a view. */
static void write_commands(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_LOCK2 lock = {.hDevice = h->gpu.device, .hAllocation = hostile_allocation(h)};
	D3DKMT_UNLOCK2 unlock = {lock.hDevice, lock.hAllocation};

	if (!hostile_call(h, c, "D3DKMTLock2", &lock))
		return;
	hostile_drain(h, c);
	if (h->view_count) {
		const struct hostile_view *view = &h->views[draw_below(&h->draw, h->view_count)];

		if (view->bytes >= PAGE_BYTES)
			write_one(h, view->memory);
	}
	if (draw_below(&h->draw, 8))
		(void)hostile_call(h, c, "D3DKMTUnlock2", &unlock);
}

static uint32_t command_length(struct hostile *h)
{
	static const uint32_t lengths[] = {sizeof(struct softgpu_copy), sizeof(struct softgpu_fill),
					   sizeof(struct softgpu_sync)};

	return draw_below(&h->draw, 8) ? lengths[draw_below(&h->draw, 3)]
				       : draw_below(&h->draw, 512);
}

static void submit(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_SUBMITCOMMAND args = {.Commands = any_address(h),
				     .CommandLength = command_length(h),
				     .BroadcastContextCount = 1,
				     .BroadcastContext = {h->gpu.context}};

	(void)hostile_call(h, c, "D3DKMTSubmitCommand", &args);
	hostile_drain(h, c);
}

static void submit_to_queue(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_SUBMITCOMMANDTOHWQUEUE args = {.hHwQueue = h->gpu.hw_queue,
					      .HwQueueProgressFenceId = ++h->gpu.progress,
					      .CommandBuffer = any_address(h),
					      .CommandLength = command_length(h)};

	(void)hostile_call(h, c, "D3DKMTSubmitCommandToHwQueue", &args);
	hostile_drain(h, c);
}

/* ---- fences ---- */

static void signal_fence(struct hostile *h, struct hostile_connection *c)
{
	UINT64 value = h->gpu.value + draw_below(&h->draw, 3);
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU cpu = {.hDevice = h->gpu.device,
							 .ObjectCount = 1,
							 .ObjectHandleArray = &h->gpu.fence,
							 .FenceValueArray = &value};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU gpu = {.hContext = h->gpu.context,
							 .ObjectCount = 1,
							 .ObjectHandleArray = &h->gpu.fence,
							 .MonitoredFenceValueArray = &value};

	if (draw_below(&h->draw, 2))
		(void)hostile_call(h, c, "D3DKMTSignalSynchronizationObjectFromCpu", &cpu);
	else
		(void)hostile_call(h, c, "D3DKMTSignalSynchronizationObjectFromGpu", &gpu);
}

static void wait_on_gpu(struct hostile *h, struct hostile_connection *c)
{
	UINT64 value = h->gpu.value + draw_below(&h->draw, 2);
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = {.hContext = h->gpu.context,
							   .ObjectCount = 1,
							   .ObjectHandleArray = &h->gpu.fence,
							   .MonitoredFenceValueArray = &value};

	(void)hostile_call(h, c, "D3DKMTWaitForSynchronizationObjectFromGpu", &args);
}

void hostile_virtual(struct hostile *h, struct hostile_connection *c, uint32_t what)
{
	enum { OBJECTS = 16 }; /* the first step of hostile_objects.c */
	static void (*const steps[OBJECTS])(struct hostile *, struct hostile_connection *) = {
		create_buffer,   make_resident, write_commands, submit,
		submit_to_queue, evict,         offer,          reclaim,
		map_again,       reserve,       free_addresses, update_addresses,
		signal_fence,    wait_on_gpu,   destroy_buffer, close_device,
	};

	if (!c->welcome || !hostile_is_free(h, c))
		return;
	if (!h->gpu.device)
		open_device(h, c);
	else if (what % (2 * OBJECTS) < OBJECTS)
		steps[what % OBJECTS](h, c);
	else
		hostile_objects(h, c, what - OBJECTS);
}
