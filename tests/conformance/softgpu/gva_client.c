/* SPDX-License-Identifier: MIT */
#include "gva_client.h"

#include <stdatomic.h>
#include <string.h>

#define COMMAND_BYTES (64 * KIB)

uint32_t gva_sim = VIDMM_HOST_SIM, gva_linux = VIDMM_HOST_LINUX;

void gva_start(struct client *host, void **state, const struct gva_options *options)
{
	struct vidmm_registry_value values[12] = {{"Model", SOFTGPU_MODEL_WDDM2}};
	uint32_t count = 1;
	const struct {
		const char *name;
		uint64_t value;
	} wanted[] = {{"PageTableLevels", options->levels},
		      {"VramPageSize", options->page_bytes},
		      {"VideoPresentSources", options->sources},
		      {"InterfaceVersion", options->version},
		      {"EngineBytesPerUs", options->rate},
		      {"HostLinkBytesPerUs", options->link_rate},
		      {"PagingBufferSize", options->paging_bytes},
		      {"PreemptionAware", options->preemption},
		      {"HardwareQueues", options->hw_queues}};

	for (uint32_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (wanted[i].value)
			values[count++] =
				(struct vidmm_registry_value){wanted[i].name, wanted[i].value};
	if (options->adapter_reset)
		values[count++] = (struct vidmm_registry_value){"PerEngineTdr", 0};
	if (options->lru)
		values[count++] =
			(struct vidmm_registry_value){"VidmmEvictionPolicy", VIDMM_EVICTION_LRU};
	const struct client_options o = {.kind = *(uint32_t *)*state,
					 .vram_bytes = options->vram_bytes,
					 .monitor_bytes = options->sources ? 4 * MIB : 0,
					 .registry = values,
					 .registry_count = count,
					 .features = options->hw_queues ? VIDMM_FEATURE_HWSCH : 0};

	client_start(host, &o);
}

void gva_stop(struct client *host)
{
	if (host->findings)
		fail_msg("%u findings, first: %s", host->findings, host->finding[0]);
	client_stop(host);
	assert_int_equal(host->findings, 0);
}

void gva_found(struct client *host, const char *rule)
{
	if (!client_found(host, rule))
		fail_msg("no finding of %s, the first of %u is: %s", rule, host->findings,
			 host->finding[0]);
	client_forget(host);
}

/* ---- clients ---- */

void gva_enter(struct gva_client *c)
{
	vidmm_d3dkmt_attach(c->process);
}

static void create_fence(struct gva_client *c)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hDevice = c->device};

	args.Info.Type = D3DDDI_MONITORED_FENCE;
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_SUCCESS);
	c->fence = args.hSyncObject;
	c->fence_at = args.Info.MonitoredFence.FenceValueGPUVirtualAddress;
	c->fence_word = args.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	assert_int_not_equal(c->fence_at, 0);
}

void gva_open(struct client *host, struct gva_client *c)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	*c = (struct gva_client){.host = host};
	assert_int_equal(vidmm_process_open(host->host, "gva", &c->process), 0);
	gva_enter(c);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	c->adapter = info.hAdapter;
	D3DKMT_CREATEDEVICE device = {.hAdapter = c->adapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	c->device = device.hDevice;
	c->queue = (D3DKMT_CREATEPAGINGQUEUE){.hDevice = c->device};
	assert_int_equal(D3DKMTCreatePagingQueue(&c->queue), STATUS_SUCCESS);
	for (uint32_t node = 0; node < 2; node++) {
		D3DKMT_CREATECONTEXTVIRTUAL context = {.hDevice = c->device, .NodeOrdinal = node};

		assert_int_equal(D3DKMTCreateContextVirtual(&context), STATUS_SUCCESS);
		c->context[node] = context.hContext;
	}
	create_fence(c);
	struct gva_memory commands = gva_memory(c, COMMAND_BYTES, GVA_APERTURE);
	c->commands = commands.handle;
	c->commands_at = commands.at;
	c->commands_data = gva_lock(c, c->commands);
}

void gva_close(struct gva_client *c)
{
	vidmm_process_close(c->process);
}

/* ---- memory ---- */

NTSTATUS gva_try_allocate(struct gva_client *c, const struct softgpu_allocation *spec,
			  D3DKMT_HANDLE *allocation)
{
	struct softgpu_allocation private_data = *spec;
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &private_data,
				      .PrivateDriverDataSize = sizeof(private_data)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = c->device, .NumAllocations = 1, .pAllocationInfo = &info};

	gva_enter(c);
	NTSTATUS status = D3DKMTCreateAllocation(&args);
	*allocation = info.hAllocation;
	return status;
}

D3DKMT_HANDLE gva_allocate(struct gva_client *c, uint64_t bytes, uint32_t segment_set)
{
	const struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						.size_bytes = bytes,
						.segment_set = segment_set};
	D3DKMT_HANDLE allocation;

	assert_int_equal(gva_try_allocate(c, &spec, &allocation), STATUS_SUCCESS);
	return allocation;
}

void gva_destroy(struct gva_client *c, D3DKMT_HANDLE allocation)
{
	const D3DKMT_DESTROYALLOCATION2 args = {
		.hDevice = c->device, .phAllocationList = &allocation, .AllocationCount = 1};

	gva_enter(c);
	assert_int_equal(D3DKMTDestroyAllocation2(&args), STATUS_SUCCESS);
}

static void await(struct gva_client *c, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = c->device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .FenceValueArray = &value};

	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromCpu(&args), STATUS_SUCCESS);
}

void gva_make_resident(struct gva_client *c, D3DKMT_HANDLE allocation)
{
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = c->queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &allocation};

	gva_enter(c);
	NTSTATUS status = D3DKMTMakeResident(&args);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	await(c, c->queue.hSyncObject, args.PagingFenceValue);
}

void gva_evict(struct gva_client *c, D3DKMT_HANDLE allocation)
{
	D3DKMT_EVICT args = {
		.hDevice = c->device, .NumAllocations = 1, .AllocationList = &allocation};

	gva_enter(c);
	assert_int_equal(D3DKMTEvict(&args), STATUS_SUCCESS);
}

uint64_t gva_map_args(struct gva_client *c, D3DDDI_MAPGPUVIRTUALADDRESS *args)
{
	args->hPagingQueue = c->queue.hPagingQueue;
	gva_enter(c);
	NTSTATUS status = D3DKMTMapGpuVirtualAddress(args);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	await(c, c->queue.hSyncObject, args->PagingFenceValue);
	return args->VirtualAddress;
}

uint64_t gva_map(struct gva_client *c, D3DKMT_HANDLE allocation, uint64_t bytes, uint64_t base)
{
	D3DDDI_MAPGPUVIRTUALADDRESS args = {.BaseAddress = base,
					    .hAllocation = allocation,
					    .SizeInPages = bytes / PAGE,
					    .Protection.Write = 1};

	return gva_map_args(c, &args);
}

uint64_t gva_reserve(struct gva_client *c, uint64_t bytes, uint32_t type)
{
	D3DDDI_RESERVEGPUVIRTUALADDRESS args = {
		.hPagingQueue = c->queue.hPagingQueue,
		.Size = bytes,
		.ReservationType = (D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE)type};

	gva_enter(c);
	NTSTATUS status = D3DKMTReserveGpuVirtualAddress(&args);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	await(c, c->queue.hSyncObject, args.PagingFenceValue);
	return args.VirtualAddress;
}

struct gva_memory gva_memory(struct gva_client *c, uint64_t bytes, uint32_t segment_set)
{
	struct gva_memory memory = {gva_allocate(c, bytes, segment_set), bytes, 0};

	memory.at = gva_map(c, memory.handle, bytes, 0);
	gva_make_resident(c, memory.handle);
	return memory;
}

void *gva_lock(struct gva_client *c, D3DKMT_HANDLE allocation)
{
	D3DKMT_LOCK2 args = {.hDevice = c->device, .hAllocation = allocation};

	gva_enter(c);
	assert_int_equal(D3DKMTLock2(&args), STATUS_SUCCESS);
	return args.pData;
}

void gva_unlock(struct gva_client *c, D3DKMT_HANDLE allocation)
{
	const D3DKMT_UNLOCK2 args = {c->device, allocation};

	assert_int_equal(D3DKMTUnlock2(&args), STATUS_SUCCESS);
}

void gva_expect(struct gva_client *c, D3DKMT_HANDLE allocation, uint64_t offset, uint64_t bytes,
		uint32_t word)
{
	const char *data = gva_lock(c, allocation);

	for (uint64_t i = offset; i < offset + bytes; i += sizeof(word)) {
		uint32_t found;

		memcpy(&found, data + i, sizeof(found));
		if (found != word)
			fail_msg("offset 0x%llx: 0x%08x, expected 0x%08x", (unsigned long long)i,
				 found, word);
	}
	gva_unlock(c, allocation);
}

/* ---- commands ---- */

void gva_command(struct gva_client *c, const void *command, uint32_t bytes)
{
	assert_true(c->used + bytes <= COMMAND_BYTES);
	memcpy(c->commands_data + c->used, command, bytes);
	c->used += bytes;
}

void gva_fill(struct gva_client *c, uint64_t to, uint64_t bytes, uint32_t pattern)
{
	const struct softgpu_fill fill = {.command = {SOFTGPU_FILL, 0, sizeof(fill)},
					  .operand.address = to,
					  .length = bytes,
					  .pattern = pattern};

	gva_command(c, &fill, sizeof(fill));
}

void gva_copy(struct gva_client *c, uint64_t from, uint64_t to, uint64_t bytes)
{
	const struct softgpu_copy copy = {.command = {SOFTGPU_COPY, 0, sizeof(copy)},
					  .source.address = from,
					  .destination.address = to,
					  .length = bytes};

	gva_command(c, &copy, sizeof(copy));
}

void gva_stall(struct gva_client *c, uint64_t nanoseconds)
{
	const struct softgpu_stall stall = {{SOFTGPU_STALL, 0, sizeof(stall)}, nanoseconds};

	gva_command(c, &stall, sizeof(stall));
}

void gva_sync(struct gva_client *c, uint32_t opcode, uint32_t flags, uint64_t at, uint64_t value)
{
	const struct softgpu_sync sync = {
		.command = {(uint16_t)opcode, (uint16_t)flags, sizeof(sync)},
		.operand.address = at,
		.value = value};

	gva_command(c, &sync, sizeof(sync));
}

NTSTATUS gva_try_submit(struct gva_client *c, uint32_t node)
{
	const D3DKMT_SUBMITCOMMAND args = {.Commands = c->commands_at + c->start,
					   .CommandLength = c->used - c->start,
					   .BroadcastContextCount = 1,
					   .BroadcastContext = {c->context[node]}};

	gva_enter(c);
	c->start = c->used;
	NTSTATUS status = D3DKMTSubmitCommand(&args);
	client_settle(c->host);
	return status;
}

void gva_submit(struct gva_client *c, uint32_t node)
{
	gva_sync(c, SOFTGPU_SIGNAL, 0, c->fence_at, ++c->signaled);
	assert_int_equal(gva_try_submit(c, node), STATUS_SUCCESS);
}

NTSTATUS gva_try_wait(struct gva_client *c)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = c->device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &c->fence,
								 .FenceValueArray = &c->signaled};

	gva_enter(c);
	return D3DKMTWaitForSynchronizationObjectFromCpu(&args);
}

/* Then all commands are executed, and their memory is used again. */
void gva_wait(struct gva_client *c)
{
	assert_int_equal(gva_try_wait(c), STATUS_SUCCESS);
	assert_int_equal(atomic_load(c->fence_word), c->signaled);
	c->start = c->used = 0;
}

void gva_run(struct gva_client *c, uint32_t node)
{
	gva_submit(c, node);
	gva_wait(c);
}

/* ---- hardware queues ---- */

void gva_hw_open(struct gva_client *c, uint32_t node, const struct gva_hw *beside,
		 struct gva_hw *hw)
{
	D3DKMT_CREATEHWCONTEXT context = {.hDevice = c->device, .NodeOrdinal = node};

	*hw = (struct gva_hw){.c = c, .context = beside ? beside->context : 0};
	gva_enter(c);
	if (!beside) {
		assert_int_equal(D3DKMTCreateHwContext(&context), STATUS_SUCCESS);
		hw->context = context.hHwContext;
	}
	D3DKMT_CREATEHWQUEUE queue = {.hHwContext = hw->context};
	assert_int_equal(D3DKMTCreateHwQueue(&queue), STATUS_SUCCESS);
	hw->queue = queue.hHwQueue;
	hw->fence = queue.hHwQueueProgressFence;
	hw->fence_at = queue.HwQueueProgressFenceGPUVirtualAddress;
	hw->fence_word = queue.HwQueueProgressFenceCPUVirtualAddress;
	assert_int_not_equal(hw->fence_at, 0);
	assert_int_equal(atomic_load(hw->fence_word), 0);
}

NTSTATUS gva_hw_try_submit(struct gva_hw *hw, uint64_t id)
{
	struct gva_client *c = hw->c;
	const D3DKMT_SUBMITCOMMANDTOHWQUEUE args = {.hHwQueue = hw->queue,
						    .HwQueueProgressFenceId = id,
						    .CommandBuffer = c->commands_at + c->start,
						    .CommandLength = c->used - c->start};

	gva_enter(c);
	c->start = c->used;
	NTSTATUS status = D3DKMTSubmitCommandToHwQueue(&args);
	client_settle(c->host);
	return status;
}

void gva_hw_submit(struct gva_hw *hw)
{
	assert_int_equal(gva_hw_try_submit(hw, ++hw->submitted), STATUS_SUCCESS);
}

void gva_hw_wait(struct gva_hw *hw)
{
	gva_enter(hw->c);
	await(hw->c, hw->fence, hw->submitted);
	assert_int_equal(atomic_load(hw->fence_word), hw->submitted);
}

void gva_hw_run(struct gva_hw *hw)
{
	gva_hw_submit(hw);
	gva_hw_wait(hw);
}

bool gva_hw_is_done(const struct gva_hw *hw)
{
	return atomic_load(hw->fence_word) >= hw->submitted;
}

D3DKMT_DEVICEEXECUTION_STATE gva_state(struct gva_client *c)
{
	D3DKMT_GETDEVICESTATE args = {.hDevice = c->device,
				      .StateType = D3DKMT_DEVICESTATE_EXECUTION};

	gva_enter(c);
	assert_int_equal(D3DKMTGetDeviceState(&args), STATUS_SUCCESS);
	return args.ExecutionState;
}
