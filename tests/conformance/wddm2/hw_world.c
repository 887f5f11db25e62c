/* SPDX-License-Identifier: MIT */
#include "hw_world.h"

#include <sys/eventfd.h>
#include <unistd.h>

void hw_setup(struct scripted_miniport *m)
{
	wddm2_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
	scripted_hw(m);
}

void hw_two_in_flight(struct scripted_miniport *m)
{
	hw_setup(m);
	m->settings.hw_node_flags[0] |= 2u << 16; /* MaxInFlightHwQueueBuffers */
}

D3DKMT_HANDLE hw_device(struct hw_world *h)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};

	(void)h;
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	device.hAdapter = info.hAdapter;
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	return device.hDevice;
}

D3DKMT_HANDLE hw_context(D3DKMT_HANDLE device)
{
	D3DKMT_CREATEHWCONTEXT args = {.hDevice = device};

	assert_int_equal(D3DKMTCreateHwContext(&args), STATUS_SUCCESS);
	return args.hHwContext;
}

void hw_start_with(struct hw_world *h, void **state, world_setup *setup,
		   const struct client_options *options)
{
	struct client_options with = *options;

	*h = (struct hw_world){0};
	with.features |= VIDMM_FEATURE_HWSCH;
	world_start_with(&h->w, state, setup ? setup : hw_setup, &with);
	world_open(&h->w);
	assert_true(h->w.m->hw_enabled);
	assert_int_equal(vidmm_process_open(h->w.client.host, "hw", &h->process), 0);
	vidmm_d3dkmt_attach(h->process);
	h->device = hw_device(h);
	h->context = hw_context(h->device);
}

void hw_start(struct hw_world *h, void **state, world_setup *setup)
{
	const struct client_options options = {0};

	hw_start_with(h, state, setup, &options);
}

void hw_stop(struct hw_world *h)
{
	struct scripted_miniport *m = h->w.m;

	hw_run(h);
	m->settings.complete_at_once = true;
	m->settings.hw_by_hand = false;
	m->settings.hw_withhold_suspension = false;
	vidmm_process_close(h->process);
	if (!h->w.fatals)
		assert_int_equal(m->live_hw_queues, 0);
	wddm2_stop(&h->w);
}

void hw_forget(struct hw_world *h)
{
	client_forget(&h->w.client);
}

void hw_settle(struct hw_world *h)
{
	vidmm_settle(h->w.client.host);
}

/* The time in which the GPU can finish its present work. */
static uint32_t work(struct hw_world *h)
{
	struct scripted_miniport *m = h->w.m;
	uint32_t done;

	hw_settle(h);
	done = scripted_complete_all(m);
	for (uint32_t q = 0; q < m->hw_queue_count; q++)
		if (!m->hw_queue[q].context->suspended)
			done += scripted_hw_complete(m, q, UINT32_MAX);
	return done;
}

void hw_run(struct hw_world *h)
{
	do {
		while (work(h) && !h->w.fatals)
			;
		if (!h->w.fatals)
			wddm2_run(&h->w);
	} while (work(h) && !h->w.fatals);
}

struct hw_queue hw_queue(struct hw_world *h, D3DKMT_HANDLE context, uint32_t flags)
{
	D3DKMT_CREATEHWQUEUE args = {.hHwContext = context, .Flags.Value = flags};

	(void)h;
	assert_int_equal(D3DKMTCreateHwQueue(&args), STATUS_SUCCESS);
	return (struct hw_queue){args.hHwQueue, args.hHwQueueProgressFence,
				 args.HwQueueProgressFenceCPUVirtualAddress};
}

void hw_destroy_queue(const struct hw_queue *queue)
{
	const D3DKMT_DESTROYHWQUEUE args = {.hHwQueue = queue->handle};

	assert_int_equal(D3DKMTDestroyHwQueue(&args), STATUS_SUCCESS);
}

uint64_t hw_value(const struct hw_queue *queue)
{
	return atomic_load(queue->value);
}

NTSTATUS hw_submit_with(const struct hw_queue *queue, uint64_t id, const void *private_data,
			uint32_t bytes)
{
	const D3DKMT_SUBMITCOMMANDTOHWQUEUE args = {.hHwQueue = queue->handle,
						    .HwQueueProgressFenceId = id,
						    .CommandBuffer = HW_ADDRESS + id,
						    .CommandLength = HW_BYTES,
						    .PrivateDriverDataSize = bytes,
						    .pPrivateDriverData = (void *)private_data};

	return D3DKMTSubmitCommandToHwQueue(&args);
}

NTSTATUS hw_submit(const struct hw_queue *queue, uint64_t id)
{
	return hw_submit_with(queue, id, NULL, 0);
}

NTSTATUS hw_reached(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value)
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .FenceValueArray = &value,
								 .hAsyncEvent =
									 (HANDLE)(uintptr_t)event};
	uint64_t count = 0;

	assert_true(event > 0);
	NTSTATUS status = D3DKMTWaitForSynchronizationObjectFromCpu(&args);
	if (status == STATUS_SUCCESS && read(event, &count, sizeof(count)) != sizeof(count))
		status = STATUS_TIMEOUT;
	close(event);
	return status;
}

struct ending {
	D3DKMT_HANDLE queue;
	struct vidmm_process *process;
	NTSTATUS status;
};

static void end_queue(void *context)
{
	struct ending *e = context;
	const D3DKMT_DESTROYHWQUEUE args = {.hHwQueue = e->queue};
	struct vidmm_process *before = vidmm_d3dkmt_enter(e->process);

	e->status = D3DKMTDestroyHwQueue(&args);
	vidmm_d3dkmt_enter(before);
}

void hw_destroy_and_complete(struct hw_world *h, const struct hw_queue *queue, uint32_t index)
{
	struct ending e = {queue->handle, h->process, -1};
	struct vidmm_thread *thread;

	assert_int_equal(
		vidmm_thread_create(h->w.client.host, "ends a queue", end_queue, &e, &thread), 0);
	hw_settle(h);
	assert_int_equal(scripted_count(h->w.m, VIDMM_DDI_DESTROY_HW_QUEUE), 0);
	while (scripted_hw_complete(h->w.m, index, 1))
		hw_settle(h);
	vidmm_thread_join(thread);
	assert_int_equal(e.status, STATUS_SUCCESS);
}

/* ---- memory ---- */

D3DKMT_HANDLE hw_paging_queue(D3DKMT_HANDLE device)
{
	D3DKMT_CREATEPAGINGQUEUE args = {.hDevice = device};

	assert_int_equal(D3DKMTCreatePagingQueue(&args), STATUS_SUCCESS);
	return args.hPagingQueue;
}

D3DKMT_HANDLE hw_allocate_in(D3DKMT_HANDLE device, uint64_t bytes, uint32_t segment_set)
{
	struct scripted_allocation spec = {.size_bytes = bytes,
					   .flags = PHYSICAL,
					   .read_set = segment_set,
					   .write_set = segment_set};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

D3DKMT_HANDLE hw_allocate(D3DKMT_HANDLE device, uint64_t bytes)
{
	return hw_allocate_in(device, bytes, WORLD_MEMORY);
}

NTSTATUS hw_make(D3DKMT_HANDLE queue, D3DKMT_HANDLE allocation, uint64_t *value)
{
	D3DDDI_MAKERESIDENT args = {
		.hPagingQueue = queue, .NumAllocations = 1, .AllocationList = &allocation};
	NTSTATUS status = D3DKMTMakeResident(&args);

	*value = args.PagingFenceValue;
	return status;
}

static void begin_to_make_resident(D3DKMT_HANDLE device, D3DKMT_HANDLE allocation)
{
	uint64_t value;
	NTSTATUS status = hw_make(hw_paging_queue(device), allocation, &value);

	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
}

void hw_make_resident(struct hw_world *h, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation)
{
	begin_to_make_resident(device, allocation);
	hw_run(h);
}

D3DKMT_HANDLE hw_listing(D3DKMT_HANDLE device, uint64_t bytes)
{
	D3DKMT_HANDLE allocation = hw_allocate(device, bytes);

	begin_to_make_resident(device, allocation);
	return allocation;
}

D3DKMT_HANDLE hw_listed(struct hw_world *h, D3DKMT_HANDLE device, uint64_t bytes)
{
	D3DKMT_HANDLE allocation = hw_listing(device, bytes);

	hw_run(h);
	return allocation;
}

D3DKMT_DEVICEEXECUTION_STATE hw_state_of(D3DKMT_HANDLE device)
{
	D3DKMT_GETDEVICESTATE args = {.hDevice = device, .StateType = D3DKMT_DEVICESTATE_EXECUTION};

	assert_int_equal(D3DKMTGetDeviceState(&args), STATUS_SUCCESS);
	return args.ExecutionState;
}

D3DKMT_HANDLE hw_theirs_in_memory(struct hw_world *h, uint64_t bytes, uint32_t flags)
{
	const struct scripted_allocation spec = {.size_bytes = bytes,
						 .flags = PHYSICAL | flags,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE allocation;

	assert_int_equal(wddm2_try_allocate(&h->w.device, &spec, &allocation), S_OK);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&h->w.device);
	wddm2_make(&h->w, &h->w.device, &queue, &allocation, 1);
	return allocation;
}

void hw_use_theirs(struct hw_world *h, D3DKMT_HANDLE theirs)
{
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&h->w.device);
	uint64_t before = world_render_submits(&h->w);
	D3DDDI_MAKERESIDENT args;

	assert_int_equal(wddm2_try_make_one(&h->w.device, &queue, theirs, &args), E_PENDING);
	world_submit_use(&h->w.context, theirs);
	hw_settle(h);
	while (world_render_submits(&h->w) == before) {
		assert_int_not_equal(scripted_complete(h->w.m, 1, 1), 0); /* paging */
		hw_settle(h);
	}
}
