/* SPDX-License-Identifier: MIT */
#include "priority_world.h"

#include <pthread.h>
#include <string.h>

#define ORDER_MAX 4096u

/* Events come from several threads at once. */
static pthread_mutex_t ears = PTHREAD_MUTEX_INITIALIZER;
static struct vidmm_event queued[ORDER_MAX];
static uint32_t queued_count;
static char order[ORDER_MAX + 1];

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context, (void)text;
	pthread_mutex_lock(&ears);
	if (queued_count < ORDER_MAX && event->arg[1] == 0)
		queued[queued_count++] = *event;
	pthread_mutex_unlock(&ears);
}

static void open_process(struct priority_world *p, uint32_t index)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	assert_int_equal(vidmm_process_open(p->w.client.host, index ? "second" : "first",
					    &p->process[index]),
			 0);
	vidmm_d3dkmt_attach(p->process[index]);
	vidmm_d3dkmt_enter(p->process[index]);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = info.hAdapter};

	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	p->device[index] = device.hDevice;
}

void priority_start(struct priority_world *p, void **state, world_setup *setup,
		    const struct vidmm_tdr_options *tdr,
		    const struct vidmm_scheduling_options *scheduling)
{
	/* On real threads a busy machine delays packets: no limit expires within a test. */
	static const struct vidmm_scheduling_options patient = {10000, 60000000};
	const struct client_options options = {.tdr = tdr,
					       .scheduling = scheduling ? scheduling : &patient};

	memset(p, 0, sizeof(*p));
	queued_count = 0;
	world_start_with(&p->w, state, setup, &options);
	assert_int_not_equal(
		vidmm_subscribe(p->w.client.host, 1ull << VIDMM_EVENT_QUEUE, on_event, NULL), 0);
	open_process(p, 0);
	open_process(p, 1);
}

void priority_stop(struct priority_world *p)
{
	world_run(&p->w);
	p->w.m->settings.complete_at_once = true;
	vidmm_d3dkmt_enter(NULL);
	vidmm_process_close(p->process[0]);
	vidmm_process_close(p->process[1]);
	world_stop_adapter(&p->w);
}

/* ---- lanes ---- */

void lane_enter(const struct lane *lane)
{
	vidmm_d3dkmt_enter(lane->process);
}

struct lane *priority_open(struct priority_world *p, uint32_t process, char name)
{
	struct lane *lane = &p->lane[p->lanes++];

	assert_true(p->lanes <= LANES_MAX);
	*lane = (struct lane){.world = p,
			      .process = p->process[process],
			      .device = p->device[process],
			      .name = name};
	D3DKMT_CREATECONTEXT args = {.hDevice = lane->device};

	lane_enter(lane);
	assert_int_equal(D3DKMTCreateContext(&args), STATUS_SUCCESS);
	lane->context = args.hContext;
	lane->c.c.pCommandBuffer = args.pCommandBuffer;
	lane->c.c.CommandBufferSize = args.CommandBufferSize;
	lane->c.c.pAllocationList = args.pAllocationList;
	lane->c.c.AllocationListSize = args.AllocationListSize;
	return lane;
}

struct lane *priority_lane(struct priority_world *p, uint32_t process, char name)
{
	struct lane *lane = priority_open(p, process, name);

	lane->own = lane_allocate(lane, 4 * KIB, WORLD_MEMORY);
	lane_submit(lane, 1);
	world_run(&p->w);
	priority_forget(p);
	return lane;
}

void lane_end(struct lane *lane)
{
	const D3DKMT_DESTROYCONTEXT args = {.hContext = lane->context};

	lane_enter(lane);
	assert_int_equal(D3DKMTDestroyContext(&args), STATUS_SUCCESS);
}

NTSTATUS lane_try_priority(struct lane *lane, INT priority)
{
	const D3DKMT_SETCONTEXTSCHEDULINGPRIORITY args = {lane->context, priority};

	lane_enter(lane);
	NTSTATUS status = D3DKMTSetContextSchedulingPriority(&args);
	client_settle(&lane->world->w.client);
	return status;
}

void lane_priority(struct lane *lane, INT priority)
{
	assert_int_equal(lane_try_priority(lane, priority), STATUS_SUCCESS);
}

INT lane_priority_of(struct lane *lane)
{
	D3DKMT_GETCONTEXTSCHEDULINGPRIORITY args = {.hContext = lane->context, .Priority = 99};

	lane_enter(lane);
	assert_int_equal(D3DKMTGetContextSchedulingPriority(&args), STATUS_SUCCESS);
	return args.Priority;
}

void lane_in_process(struct lane *lane, INT priority)
{
	const D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY args = {lane->context, priority};

	lane_enter(lane);
	assert_int_equal(D3DKMTSetContextInProcessSchedulingPriority(&args), STATUS_SUCCESS);
}

void process_class(struct priority_world *p, uint32_t process, uint32_t class)
{
	vidmm_d3dkmt_enter(p->process[process]);
	assert_int_equal(D3DKMTSetProcessSchedulingPriorityClass(
				 (HANDLE)(intptr_t)-1, (D3DKMT_SCHEDULINGPRIORITYCLASS) class),
			 STATUS_SUCCESS);
	client_settle(&p->w.client);
}

D3DKMT_HANDLE lane_allocate(struct lane *lane, uint64_t bytes, uint32_t segment_set)
{
	struct scripted_allocation spec = {.size_bytes = bytes,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = segment_set,
					   .write_set = segment_set};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = lane->device, .NumAllocations = 1, .pAllocationInfo = &info};

	lane_enter(lane);
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

NTSTATUS lane_destroy(struct lane *lane, D3DKMT_HANDLE allocation)
{
	const D3DKMT_DESTROYALLOCATION args = {
		.hDevice = lane->device, .phAllocationList = &allocation, .AllocationCount = 1};

	lane_enter(lane);
	NTSTATUS status = D3DKMTDestroyAllocation(&args);
	client_settle(&lane->world->w.client);
	return status;
}

static NTSTATUS lock(struct lane *lane, D3DKMT_HANDLE allocation, uint32_t flags, uint32_t *word)
{
	D3DKMT_LOCK args = {.hDevice = lane->device, .hAllocation = allocation};

	lane_enter(lane);
	args.Flags.Value = flags;
	NTSTATUS status = D3DKMTLock(&args);
	if (status != STATUS_SUCCESS)
		return status;
	*word = *(const volatile uint32_t *)args.pData;
	const D3DKMT_UNLOCK unlock = {
		.hDevice = lane->device, .NumAllocations = 1, .phAllocations = &args.hAllocation};

	assert_int_equal(D3DKMTUnlock(&unlock), STATUS_SUCCESS);
	return status;
}

NTSTATUS lane_try_lock(struct lane *lane, D3DKMT_HANDLE allocation, uint32_t flags)
{
	uint32_t word;

	return lock(lane, allocation, 0x4 | flags, &word); /* DonotWait */
}

uint32_t lane_word(struct lane *lane, D3DKMT_HANDLE allocation)
{
	uint32_t word = 0;

	assert_int_equal(lock(lane, allocation, 0x1, &word), STATUS_SUCCESS);
	return word;
}

void lane_render(struct lane *lane)
{
	D3DKMT_RENDER args = {.hContext = lane->context,
			      .CommandLength = lane->c.command_bytes,
			      .AllocationCount = lane->c.allocations};

	lane_enter(lane);
	assert_int_equal(D3DKMTRender(&args), STATUS_SUCCESS);
	lane->c.c.pCommandBuffer = args.pNewCommandBuffer;
	lane->c.c.pAllocationList = args.pNewAllocationList;
	lane->c.command_bytes = lane->c.allocations = 0;
	client_settle(&lane->world->w.client);
}

void lane_submit(struct lane *lane, uint32_t count)
{
	while (count--)
		lane_submit_use(lane, lane->own);
}

void lane_submit_use(struct lane *lane, D3DKMT_HANDLE allocation)
{
	world_use(&lane->c, allocation);
	lane_render(lane);
}

void lane_submit_write(struct lane *lane, D3DKMT_HANDLE allocation, uint32_t value)
{
	world_write(&lane->c, allocation, 0, value);
	lane_render(lane);
}

/* ---- what the miniport received ---- */

static char name_of(const struct priority_world *p, const struct vidmm_event *event)
{
	for (uint32_t i = 0; i < p->lanes; i++)
		if (p->lane[i].context == event->object &&
		    vidmm_process_id(p->lane[i].process) == event->process)
			return p->lane[i].name;
	return '.';
}

const char *priority_order(struct priority_world *p)
{
	client_settle(&p->w.client);
	pthread_mutex_lock(&ears);
	for (uint32_t i = 0; i < queued_count; i++)
		order[i] = name_of(p, &queued[i]);
	order[queued_count] = 0;
	pthread_mutex_unlock(&ears);
	return order;
}

void priority_forget(struct priority_world *p)
{
	client_settle(&p->w.client);
	pthread_mutex_lock(&ears);
	queued_count = 0;
	pthread_mutex_unlock(&ears);
}

void priority_complete(struct priority_world *p, uint32_t count)
{
	while (count--) {
		/* The worker patches an overtaken packet again before it is submitted (PAT-14). */
		while (!scripted_complete(p->w.m, 0, 1))
			vidmm_settle(p->w.client.host);
		vidmm_settle(p->w.client.host);
	}
}

void priority_complete_all(struct priority_world *p)
{
	world_run(&p->w);
}

void priority_assert_rising(struct priority_world *p)
{
	client_settle(&p->w.client);
	pthread_mutex_lock(&ears);
	for (uint32_t i = 1; i < queued_count; i++)
		assert_true((int32_t)((uint32_t)queued[i].arg[0] - (uint32_t)queued[i - 1].arg[0]) >
			    0);
	pthread_mutex_unlock(&ears);
}
