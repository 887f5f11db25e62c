/* SPDX-License-Identifier: MIT */
#include "queue_world.h"

#include <string.h>
#include <unistd.h>

void queue_3_0(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
}

void queue_start_with(struct priority_world *p, void **state, world_setup *setup,
		      const struct vidmm_tdr_options *tdr)
{
	priority_start(p, state, setup, tdr, NULL);
}

void queue_start(struct priority_world *p, void **state)
{
	queue_start_with(p, state, queue_3_0, NULL);
}

struct lane *queue_lane(struct priority_world *p, uint32_t process, char name)
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

void queue_assert_order(struct priority_world *p, const char *expected)
{
	/* The worker prepares packets that a satisfied wait has released. */
	while (strlen(priority_order(p)) < strlen(expected))
		vidmm_settle(p->w.client.host);
	assert_string_equal(priority_order(p), expected);
	priority_forget(p);
}

void queue_found(struct priority_world *p, const char *rule)
{
	world_expect_finding(&p->w, rule);
}

struct queue_fence queue_fence(struct lane *lane, uint32_t flags, uint64_t value)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {
		.hDevice = lane->device,
		.Info = {.Type = D3DDDI_MONITORED_FENCE,
			 .Flags.Value = flags,
			 .MonitoredFence.InitialFenceValue = value}};

	lane_enter(lane);
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&args), STATUS_SUCCESS);
	return (struct queue_fence){.handle = args.hSyncObject,
				    .value = args.Info.MonitoredFence.FenceValueCPUVirtualAddress};
}

D3DKMT_HANDLE queue_fence_for(struct lane *lane, D3DKMT_HANDLE fence, struct lane *other)
{
	HANDLE shared = NULL;

	lane_enter(lane);
	assert_int_equal(D3DKMTShareObjects(1, &fence, NULL, 0x20000, &shared), STATUS_SUCCESS);
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args = {.hNtHandle = shared, .hDevice = other->device};

	lane_enter(other);
	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle2(&args), STATUS_SUCCESS);
	assert_int_equal(close((int)(intptr_t)shared), 0);
	return args.hSyncObject;
}

NTSTATUS queue_destroy(struct lane *lane, D3DKMT_HANDLE fence)
{
	const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT args = {.hSyncObject = fence};

	lane_enter(lane);
	return D3DKMTDestroySynchronizationObject(&args);
}

NTSTATUS queue_cpu_signal(struct lane *lane, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = lane->device,
								.ObjectCount = 1,
								.ObjectHandleArray = &fence,
								.FenceValueArray = &value};

	lane_enter(lane);
	NTSTATUS status = D3DKMTSignalSynchronizationObjectFromCpu(&args);
	client_settle(&lane->world->w.client);
	return status;
}

NTSTATUS lane_wait(struct lane *lane, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = {.hContext = lane->context,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .MonitoredFenceValueArray =
									 &value};

	lane_enter(lane);
	NTSTATUS status = D3DKMTWaitForSynchronizationObjectFromGpu(&args);
	client_settle(&lane->world->w.client);
	return status;
}

NTSTATUS lane_signal(struct lane *lane, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU args = {.hContext = lane->context,
								.ObjectCount = 1,
								.ObjectHandleArray = &fence,
								.MonitoredFenceValueArray = &value};

	lane_enter(lane);
	NTSTATUS status = D3DKMTSignalSynchronizationObjectFromGpu(&args);
	client_settle(&lane->world->w.client);
	return status;
}

NTSTATUS lane_signal_with(struct lane *lane, D3DKMT_HANDLE fence, uint64_t value, uint32_t flags)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = {
		.ObjectCount = 1,
		.ObjectHandleArray = &fence,
		.Flags.Value = flags,
		.BroadcastContextCount = 1,
		.BroadcastContextArray = &lane->context,
		.MonitoredFenceValueArray = &value};

	lane_enter(lane);
	NTSTATUS status = D3DKMTSignalSynchronizationObjectFromGpu2(&args);
	client_settle(&lane->world->w.client);
	return status;
}
