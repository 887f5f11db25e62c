/* SPDX-License-Identifier: MIT */
/*
 * exhaust: a client that takes as much of a host as it gets: allocations with locked memory, fences
 * that it waits for with events, and further connections that do the same. It writes a byte when
 * nothing more is given to it, and then it frees and takes again, until its input ends.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client.h"

#define CONNECTIONS_MAX 64u
#define TAKEN_MAX       512u
#define ROUNDS_BETWEEN  8u

struct taken {
	struct remote_device softgpu, scripted;
	D3DKMT_HANDLE allocation[TAKEN_MAX];
	uint32_t allocations;
};

static bool connects(struct remote_device *d, const char *socket, uint32_t adapter)
{
	if (vidmm_connect(socket, "exhaust", &d->connection) < 0)
		return false;
	if (vidmm_remote_device_create(d->connection, adapter, &d->remote) < 0) {
		vidmm_disconnect(d->connection);
		return false;
	}
	d->client.kind = VIDMM_HOST_LINUX;
	d->client.racing = true;
	d->device = (struct client_device){.client = &d->client,
					   .cb = vidmm_remote_device_callbacks(d->remote),
					   .handle = vidmm_remote_device_handle(d->remote)};
	return true;
}

/* Returns whether it got an allocation. It stays locked. */
static bool take_memory(struct taken *t)
{
	const struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						.size_bytes = 8192,
						.renaming_limit = 2};
	D3DKMT_HANDLE *handle = &t->allocation[t->allocations];
	void *data;

	if (t->allocations == TAKEN_MAX ||
	    FAILED(client_try_allocate(&t->softgpu.device, &spec, NULL, handle, NULL)))
		return false;
	t->allocations++;
	(void)client_try_lock(&t->softgpu.device, handle, 0, &data);
	return true;
}

/* Returns whether the host keeps one more event, of a wait that never ends. */
static bool take_event(struct taken *t)
{
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 create = {.Info = {.Type = D3DDDI_MONITORED_FENCE}};
	struct client_device *d = &t->scripted.device;
	UINT64 never = 1000;
	int event;

	if (FAILED(d->cb->pfnCreateSynchronizationObject2Cb(d->handle, &create)))
		return false;
	event = eventfd(0, EFD_CLOEXEC);
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.ObjectCount = 1,
		.ObjectHandleArray = &create.hSyncObject,
		.FenceValueArray = &never,
		.hAsyncEvent = (HANDLE)(intptr_t)event};
	HRESULT status = d->cb->pfnWaitForSynchronizationObjectFromCpuCb(d->handle, &wait);
	close(event);
	return SUCCEEDED(status);
}

static void give_back(struct taken *t)
{
	while (t->allocations)
		(void)client_deallocate(&t->softgpu.device, t->allocation[--t->allocations]);
}

static bool take(struct taken *t)
{
	bool memory = take_memory(t), event = take_event(t);

	return memory || event;
}

int remote_exhaust(const char *socket, const char *count)
{
	struct taken *t = calloc(CONNECTIONS_MAX, sizeof(*t));
	uint32_t wanted = (uint32_t)strtoul(count, NULL, 0), connections = 0;

	while (t && connections < wanted && connections < CONNECTIONS_MAX &&
	       connects(&t[connections].softgpu, socket, REMOTE_SOFTGPU) &&
	       connects(&t[connections].scripted, socket, REMOTE_SCRIPTED)) {
		for (uint32_t i = 0; i < TAKEN_MAX && take(&t[connections]); i++)
			;
		connections++;
	}
	remote_say();
	for (uint32_t round = 0; connections && !remote_told_to_end(); round++) {
		struct taken *one = &t[round / ROUNDS_BETWEEN % connections];

		if (round % ROUNDS_BETWEEN == 0)
			give_back(one);
		for (uint32_t i = 0; i < TAKEN_MAX / ROUNDS_BETWEEN && take(one); i++)
			;
	}
	remote_end(REMOTE_DONE);
}
