/* SPDX-License-Identifier: MIT */
/*
 * A submission of a program that is not the host, over its socket: a command buffer in the client's memory that references one
 * allocation, against a packet there and one back (bench_serve.c has both, and locks).
 */
#include "bench.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <d3dumddi.h>
#include <vidmm/client.h>
#include <vidmm/serve.h>
#include <vidmm/softgpu.h>

struct remote {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_server *server;
	struct vidmm_connection *connection;
	struct vidmm_remote_device *device;
	const D3DDDI_DEVICECALLBACKS *cb;
	D3DDDICB_CREATECONTEXT context;
	D3DKMT_HANDLE allocation;
};

static int more(void *context)
{
	struct remote *r = context;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -1;
	return vidmm_server_connect(r->server, fds[1]) ? -1 : fds[0];
}

static bool connect_and_create(struct remote *r)
{
	struct vidmm_server_options options = {.struct_size = sizeof(options)};
	struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 65536};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	if (vidmm_server_create(r->host, &options, &r->server) ||
	    vidmm_connect_fd(more(r), "bench", more, r, &r->connection) ||
	    vidmm_remote_device_create(r->connection, 0, &r->device))
		return false;
	r->cb = vidmm_remote_device_callbacks(r->device);
	HANDLE handle = vidmm_remote_device_handle(r->device);
	bool good = r->cb->pfnAllocateCb(handle, &args) == S_OK &&
		    r->cb->pfnCreateContextCb(handle, &r->context) == S_OK;
	r->allocation = info.hAllocation;
	return good;
}

static void remote_destroy(void *state)
{
	struct remote *r = state;

	if (r->device)
		vidmm_remote_device_destroy(r->device);
	vidmm_disconnect(r->connection);
	vidmm_server_destroy(r->server);
	vidmm_adapter_stop(r->adapter);
	vidmm_host_destroy(r->host);
	free(r);
}

static void *remote_create(const struct bench_case *self)
{
	struct remote *r = calloc(1, sizeof(*r));
	struct vidmm_host_options host = {.struct_size = sizeof(host), .kind = VIDMM_HOST_LINUX};
	const uint64_t bars[] = {16u << 20};
	struct vidmm_adapter_options options = {
		.struct_size = sizeof(options),
		.driver_entry = softgpu_driver_entry,
		.bar_sizes = bars,
		.bar_count = 1,
	};

	(void)self;
	if (!r || vidmm_host_create(&host, &r->host)) {
		free(r);
		return NULL;
	}
	if (!vidmm_adapter_start(r->host, &options, &r->adapter) && connect_and_create(r))
		return r;
	remote_destroy(r);
	return NULL;
}

/* A command buffer that references the allocation once. */
static void render_run(void *state, uint64_t steps)
{
	struct remote *r = state;
	HANDLE handle = vidmm_remote_device_handle(r->device);

	for (uint64_t i = 0; i < steps; i++) {
		const struct softgpu_reference command = {
			.command = {SOFTGPU_REFERENCE, 0, sizeof(command)}};
		D3DDDICB_RENDER args = {.CommandLength = sizeof(command),
					.NumAllocations = 1,
					.hContext = r->context.hContext};

		*(struct softgpu_reference *)r->context.pCommandBuffer = command;
		r->context.pAllocationList[0] =
			(D3DDDI_ALLOCATIONLIST){.hAllocation = r->allocation};
		if (r->cb->pfnRenderCb(handle, &args) != S_OK)
			abort();
		r->context.pCommandBuffer = args.pNewCommandBuffer;
		r->context.pAllocationList = args.pNewAllocationList;
	}
}

BENCH(.name = "remote.render", .peer = "remote.bare", .setup = remote_create, .run = render_run,
      .teardown = remote_destroy);
