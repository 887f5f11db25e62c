/* SPDX-License-Identifier: MIT */
/* The memory manager in another program: a connection and a device on it for each door. */
#include <d3dkmthk.h>
#include <d3dumddi.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <vidmm/client.h>
#include <vidmm/softgpu.h>

#include "figures.h"
#include "umd.h"

struct door_of_connection {
	struct door door; /* first */
	struct vidmm_connection *connection;
	struct vidmm_remote_device *device;
};

#define ADAPTERS_MAX 34u /* what D3DKMTEnumAdapters2 says to make room for */

static vidmm_status connect_to(struct world *world, const char *name,
			       struct vidmm_connection **connection)
{
	const char *path = world->options->connect;

	return vidmm_connect(path[0] ? path : NULL, name, connection);
}

/* ---- which adapter it is ---- */

static NTSTATUS ask(struct softgpu_adapter_info *info)
{
	/* Of all that a host may have the first; for fewer there is none. */
	D3DKMT_ADAPTERINFO adapters[ADAPTERS_MAX];
	D3DKMT_ENUMADAPTERS2 enumerate = {.NumAdapters = ADAPTERS_MAX, .pAdapters = adapters};
	NTSTATUS status = D3DKMTEnumAdapters2(&enumerate);

	if (status < 0)
		return status;
	if (enumerate.NumAdapters == 0)
		return STATUS_NOT_FOUND;
	D3DKMT_QUERYADAPTERINFO query = {
		.hAdapter = adapters[0].hAdapter,
		.Type = KMTQAITYPE_UMDRIVERPRIVATE,
		.pPrivateDriverData = info,
		.PrivateDriverDataSize = sizeof(*info),
	};
	status = D3DKMTQueryAdapterInfo(&query);
	for (uint32_t i = 0; i < enumerate.NumAdapters; i++) {
		D3DKMT_CLOSEADAPTER close = {.hAdapter = adapters[i].hAdapter};

		(void)D3DKMTCloseAdapter(&close);
	}
	return status;
}

static NTSTATUS ask_both(struct world *world, struct softgpu_adapter_info *info)
{
	struct vidmm_connection *before = vidmm_connection_enter(world->connection);
	NTSTATUS status = ask(info);

	vidmm_connection_enter(before);
	if (status >= 0)
		status = vidmm_remote_adapter_statistics(world->connection, 0, &world->before);
	return status;
}

static enum replay_status start(struct world *world, struct door_adapter *sizes)
{
	struct softgpu_adapter_info info = {0};
	vidmm_status status = connect_to(world, "vidmm replay", &world->connection);

	if (status < 0) {
		world_message(world, "no host answers at %s: 0x%08" PRIX32,
			      world->options->connect[0] ? world->options->connect
							 : "its usual place",
			      (uint32_t)status);
		return REPLAY_ENVIRONMENT;
	}
	world->before.struct_size = sizeof(world->before);
	status = ask_both(world, &info);
	sizes->vram_bytes = info.vram_bytes;
	sizes->aperture_bytes = info.aperture_bytes;
	if (status >= 0 && info.version == SOFTGPU_ADAPTER_INFO_VERSION)
		return REPLAY_CLEAN;
	world_message(world, "the host's first adapter is not softgpu's: 0x%08" PRIX32,
		      (uint32_t)status);
	return REPLAY_ENVIRONMENT;
}

static void stop(struct world *world)
{
	if (world->connection)
		vidmm_disconnect(world->connection);
}

/* ---- time: this machine's ---- */

static uint64_t now_ns(struct world *world)
{
	struct timespec now;

	(void)world;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_until_ns(struct world *world, uint64_t when_ns)
{
	const struct timespec when = {.tv_sec = (time_t)(when_ns / 1000000000u),
				      .tv_nsec = (long)(when_ns % 1000000000u)};

	(void)world;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0)
		;
}

static void wait_idle(struct world *world)
{
	unsigned i;

	for (i = 0; i < world->process_count; i++)
		(void)umd_drain(world->processes[i]);
}

/* What all clients had the host do since `start`; none of it where the host is gone. */
static void collect(struct world *world)
{
	struct vidmm_adapter_statistics after = {.struct_size = sizeof(after)};

	if (vidmm_remote_adapter_statistics(world->connection, 0, &after) >= 0)
		figures_take(&world->before, &after, world->result);
}

static uint64_t event_hash(struct world *world)
{
	(void)world;
	return 0;
}

/* ---- doors ---- */

static vidmm_status open_door(struct world *world, const char *name, struct door **result)
{
	struct door_of_connection *door = calloc(1, sizeof(*door));
	vidmm_status status;

	*result = NULL;
	if (!door)
		return STATUS_NO_MEMORY;
	status = connect_to(world, name, &door->connection);
	if (status >= 0)
		status = vidmm_remote_device_create(door->connection, 0, &door->device);
	if (status < 0) {
		if (door->connection)
			vidmm_disconnect(door->connection);
		free(door);
		return status;
	}
	door->door = (struct door){
		.place = &door_there,
		.callbacks = vidmm_remote_device_callbacks(door->device),
		.device = vidmm_remote_device_handle(door->device),
		.process_id = vidmm_connection_process_id(door->connection),
	};
	*result = &door->door;
	return status;
}

static void close_door(struct door *base)
{
	struct door_of_connection *door = (struct door_of_connection *)base;

	vidmm_remote_device_destroy(door->device);
	vidmm_disconnect(door->connection);
	free(door);
}

static vidmm_status set_shared(struct door *door, void *runtime_resource)
{
	return vidmm_remote_resource_set_shared(((struct door_of_connection *)door)->device,
						runtime_resource);
}

static vidmm_status share(struct door *door, uint32_t km_resource, uint32_t *global_handle)
{
	return vidmm_remote_resource_share(((struct door_of_connection *)door)->device, km_resource,
					   global_handle);
}

static vidmm_status open_shared(struct door *door, uint32_t global_handle, uint32_t *allocation)
{
	uint32_t km_resource, count = 1;

	return vidmm_remote_resource_open(((struct door_of_connection *)door)->device,
					  global_handle, &km_resource, allocation, &count);
}

const struct door_place door_there = {
	.start = start,
	.stop = stop,
	.open = open_door,
	.close = close_door,
	.now_ns = now_ns,
	.wait_until_ns = wait_until_ns,
	.wait_idle = wait_idle,
	.collect = collect,
	.event_hash = event_hash,
	.set_shared = set_shared,
	.share = share,
	.open_shared = open_shared,
};
