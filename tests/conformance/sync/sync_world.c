/* SPDX-License-Identifier: MIT */
#include "sync_world.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void at(struct scripted_miniport *m, ULONG version)
{
	scripted_set_version(m, version);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	m->settings.complete_at_once = true;
}

void sync_3_0(struct scripted_miniport *m)
{
	at(m, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
}

void sync_2_0(struct scripted_miniport *m)
{
	at(m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
}

void sync_narrow(struct scripted_miniport *m)
{
	sync_3_0(m);
	m->settings.caps.SchedulingCaps.No64BitAtomics = 1;
}

D3DKMT_HANDLE sync_open_device(struct sync_world *s)
{
	D3DKMT_CREATEDEVICE device = {.hAdapter = s->adapter};

	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	return device.hDevice;
}

void sync_start_with(struct sync_world *s, void **state, world_setup *setup,
		     const struct client_options *options)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	memset(s, 0, sizeof(*s));
	world_start_with(&s->w, state, setup, options);
	world_open(&s->w);
	assert_int_equal(vidmm_process_open(s->w.client.host, "one", &s->process), 0);
	assert_int_equal(vidmm_process_open(s->w.client.host, "two", &s->other), 0);
	vidmm_d3dkmt_attach(s->process);
	vidmm_d3dkmt_enter(s->other);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	s->adapter = info.hAdapter;
	s->other_device = sync_open_device(s);
	vidmm_d3dkmt_enter(NULL);
	all = (D3DKMT_ENUMADAPTERS2){.NumAdapters = 1, .pAdapters = &info};
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	s->adapter = info.hAdapter;
	s->device = sync_open_device(s);
}

void sync_start(struct sync_world *s, void **state, world_setup *setup)
{
	const struct client_options options = {0};

	sync_start_with(s, state, setup, &options);
}

void sync_stop(struct sync_world *s)
{
	vidmm_process_close(s->process);
	vidmm_process_close(s->other);
	world_stop(&s->w);
}

void sync_found(struct sync_world *s, const char *rule)
{
	world_expect_finding(&s->w, rule);
}

NTSTATUS sync_try_create(struct sync_world *s, uint32_t type, uint32_t flags,
			 D3DKMT_CREATESYNCHRONIZATIONOBJECT2 *args)
{
	args->hDevice = s->device;
	args->Info.Type = (D3DDDI_SYNCHRONIZATIONOBJECT_TYPE)type;
	args->Info.Flags.Value = flags;
	return D3DKMTCreateSynchronizationObject2(args);
}

struct sync_fence sync_fence(struct sync_world *s, uint32_t flags, uint64_t value)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.MonitoredFence.InitialFenceValue = value};

	assert_int_equal(sync_try_create(s, D3DDDI_MONITORED_FENCE, flags, &args), STATUS_SUCCESS);
	return (struct sync_fence){.handle = args.hSyncObject,
				   .value = args.Info.MonitoredFence.FenceValueCPUVirtualAddress};
}

NTSTATUS sync_destroy(D3DKMT_HANDLE handle)
{
	const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT args = {.hSyncObject = handle};

	return D3DKMTDestroySynchronizationObject(&args);
}

NTSTATUS sync_signal_with(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value, uint32_t flags)
{
	const UINT64 values[1] = {value};
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = device,
								.ObjectCount = 1,
								.ObjectHandleArray = &fence,
								.FenceValueArray = values,
								.Flags.Value = flags};

	return D3DKMTSignalSynchronizationObjectFromCpu(&args);
}

NTSTATUS sync_signal(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value)
{
	return sync_signal_with(device, fence, value, 0);
}

NTSTATUS sync_wait_all(D3DKMT_HANDLE device, const D3DKMT_HANDLE *fences, const uint64_t *values,
		       uint32_t count, uint32_t flags)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = device,
								 .ObjectCount = count,
								 .ObjectHandleArray = fences,
								 .FenceValueArray = values,
								 .Flags.Value = flags};

	return D3DKMTWaitForSynchronizationObjectFromCpu(&args);
}

NTSTATUS sync_wait(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value)
{
	return sync_wait_all(device, &fence, &value, 1, 0);
}

NTSTATUS sync_wait_event(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value, int event)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .FenceValueArray = &value,
								 .hAsyncEvent =
									 (HANDLE)(uintptr_t)event};

	return D3DKMTWaitForSynchronizationObjectFromCpu(&args);
}

int sync_event(void)
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	assert_true(event > 0);
	return event;
}

uint64_t sync_events(int event)
{
	uint64_t count = 0;

	return read(event, &count, sizeof(count)) == (ssize_t)sizeof(count) ? count : 0;
}

static void wait_in_thread(void *argument)
{
	struct sync_waiter *v = argument;

	vidmm_d3dkmt_enter(v->process);
	v->result = sync_wait(v->device, v->fence, v->value);
	atomic_store(&v->done, 1);
	vidmm_d3dkmt_enter(NULL);
}

void sync_waiter_start(struct sync_world *s, struct sync_waiter *v, D3DKMT_HANDLE fence,
		       uint64_t value)
{
	v->fence = fence;
	v->value = value;
	if (!v->device)
		v->device = s->device;
	atomic_store(&v->done, 0);
	assert_int_equal(vidmm_thread_create(s->w.client.host, "waits for a fence", wait_in_thread,
					     v, &v->thread),
			 0);
	vidmm_settle(s->w.client.host);
}

NTSTATUS sync_waiter_join(struct sync_waiter *v)
{
	vidmm_thread_join(v->thread);
	return v->result;
}
