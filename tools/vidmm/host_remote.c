/* SPDX-License-Identifier: MIT */
/*
 * host_remote: the memory manager in another process. Each device has its own connection; one more
 * connection asks for the statistics.
 */
#include <d3dkmthk.h>
#include <d3dumddi.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <vidmm/client.h>
#include <vidmm/softgpu.h>

#include "statistics.h"
#include "umd.h"

struct remote_device {
	struct host_device base; /* first */
	struct vidmm_connection *connection;
	struct vidmm_remote_device *handle;
};

#define ADAPTERS_MAX 34u /* the maximum that D3DKMTEnumAdapters2 reports */

static vidmm_status connect_to(struct world *world, const char *name,
			       struct vidmm_connection **connection)
{
	const char *path = world->options->connect;

	return vidmm_connect(path[0] ? path : NULL, name, connection);
}

/* ---- which adapter it is ---- */

static NTSTATUS query(D3DKMT_HANDLE adapter, KMTQUERYADAPTERINFOTYPE type, void *data, UINT bytes)
{
	D3DKMT_QUERYADAPTERINFO args = {.hAdapter = adapter,
					.Type = type,
					.pPrivateDriverData = data,
					.PrivateDriverDataSize = bytes};

	return D3DKMTQueryAdapterInfo(&args);
}

static NTSTATUS ask(struct softgpu_adapter_info *info, D3DKMT_DRIVERVERSION *version)
{
	/*
	 * The first adapter of the host is used. The array holds the maximum, because the call
	 * fails for an array that is too small.
	 */
	D3DKMT_ADAPTERINFO adapters[ADAPTERS_MAX];
	D3DKMT_ENUMADAPTERS2 enumerate = {.NumAdapters = ADAPTERS_MAX, .pAdapters = adapters};
	NTSTATUS status = D3DKMTEnumAdapters2(&enumerate);

	if (status < 0)
		return status;
	if (enumerate.NumAdapters == 0)
		return STATUS_NOT_FOUND;
	status = query(adapters[0].hAdapter, KMTQAITYPE_UMDRIVERPRIVATE, info, sizeof(*info));
	if (status >= 0)
		status = query(adapters[0].hAdapter, KMTQAITYPE_DRIVERVERSION, version,
			       sizeof(*version));
	for (uint32_t i = 0; i < enumerate.NumAdapters; i++) {
		D3DKMT_CLOSEADAPTER close = {.hAdapter = adapters[i].hAdapter};

		(void)D3DKMTCloseAdapter(&close);
	}
	return status;
}

static NTSTATUS ask_both(struct world *world, struct softgpu_adapter_info *info,
			 D3DKMT_DRIVERVERSION *version)
{
	struct vidmm_connection *before = vidmm_connection_enter(world->connection);
	NTSTATUS status = ask(info, version);

	vidmm_connection_enter(before);
	if (status >= 0)
		status = vidmm_remote_adapter_statistics(world->connection, 0, &world->before);
	return status;
}

static enum replay_status start(struct world *world, struct host_adapter_sizes *sizes)
{
	struct softgpu_adapter_info info = {0};
	D3DKMT_DRIVERVERSION version = KMT_DRIVERVERSION_WDDM_1_0;
	vidmm_status status = connect_to(world, "vidmm replay", &world->connection);

	if (status < 0) {
		world_message(world, "no host answers at %s: status 0x%08" PRIX32,
			      world->options->connect[0] ? world->options->connect
							 : "the default socket",
			      (uint32_t)status);
		return REPLAY_ENVIRONMENT;
	}
	world->before.struct_size = sizeof(world->before);
	status = ask_both(world, &info, &version);
	sizes->vram_bytes = info.vram_bytes;
	sizes->aperture_bytes = info.aperture_bytes;
	if (status >= 0 && version >= KMT_DRIVERVERSION_WDDM_2_0) {
		world_message(world,
			      "the first adapter of the host is one of WDDM 2.x, and recordings "
			      "are played on one of 1.x: start the host with `vidmm serve --set "
			      "Model=wddm1`");
		return REPLAY_ENVIRONMENT;
	}
	if (status >= 0 && info.version == SOFTGPU_ADAPTER_INFO_VERSION)
		return REPLAY_CLEAN;
	world_message(world, "the first adapter of the host is not softgpu: status 0x%08" PRIX32,
		      (uint32_t)status);
	return REPLAY_ENVIRONMENT;
}

static void stop(struct world *world)
{
	if (world->connection)
		vidmm_disconnect(world->connection);
}

/* ---- time: the monotonic clock ---- */

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

static enum replay_status wait_idle(struct world *world)
{
	enum replay_status status = REPLAY_CLEAN;
	unsigned i;

	for (i = 0; i < world->process_count && status == REPLAY_CLEAN; i++)
		status = umd_drain(world->processes[i]);
	return status;
}

static uint64_t used_bytes(struct world *world)
{
	(void)world;
	return 0;
}

/*
 * Stores what the adapter did for all its clients since `start`. Without an answer the result keeps
 * statistics_known false.
 */
static void collect(struct world *world)
{
	struct vidmm_adapter_statistics after = {.struct_size = sizeof(after)};

	if (vidmm_remote_adapter_statistics(world->connection, 0, &after) >= 0)
		statistics_difference(&world->before, &after, world->result);
}

static uint64_t event_hash(struct world *world)
{
	(void)world;
	return 0;
}

/* ---- devices ---- */

static vidmm_status open_device(struct world *world, const char *name, struct host_device **result)
{
	struct remote_device *device = calloc(1, sizeof(*device));
	vidmm_status status;

	*result = NULL;
	if (!device)
		return STATUS_NO_MEMORY;
	status = connect_to(world, name, &device->connection);
	if (status >= 0)
		status = vidmm_remote_device_create(device->connection, 0, &device->handle);
	if (status < 0) {
		if (device->connection)
			vidmm_disconnect(device->connection);
		free(device);
		return status;
	}
	device->base = (struct host_device){
		.ops = &host_remote,
		.callbacks = vidmm_remote_device_callbacks(device->handle),
		.device = vidmm_remote_device_handle(device->handle),
		.process_id = vidmm_connection_process_id(device->connection),
	};
	*result = &device->base;
	return status;
}

static void close_device(struct host_device *base)
{
	struct remote_device *device = (struct remote_device *)base;

	vidmm_remote_device_destroy(device->handle);
	vidmm_disconnect(device->connection);
	free(device);
}

static vidmm_status set_shared(struct host_device *base, void *runtime_resource)
{
	return vidmm_remote_resource_set_shared(((struct remote_device *)base)->handle,
						runtime_resource);
}

static vidmm_status share(struct host_device *base, uint32_t km_resource, uint32_t *global_handle)
{
	return vidmm_remote_resource_share(((struct remote_device *)base)->handle, km_resource,
					   global_handle);
}

static vidmm_status open_shared(struct host_device *base, uint32_t global_handle,
				uint32_t *allocation)
{
	uint32_t km_resource, count = 1;

	return vidmm_remote_resource_open(((struct remote_device *)base)->handle, global_handle,
					  &km_resource, allocation, &count);
}

const struct host_ops host_remote = {
	.start = start,
	.stop = stop,
	.open = open_device,
	.close = close_device,
	.now_ns = now_ns,
	.wait_until_ns = wait_until_ns,
	.wait_idle = wait_idle,
	.collect = collect,
	.used_bytes = used_bytes,
	.event_hash = event_hash,
	.set_shared = set_shared,
	.share = share,
	.open_shared = open_shared,
};
