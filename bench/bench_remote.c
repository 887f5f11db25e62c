/* SPDX-License-Identifier: MIT */
/*
 * A submission of an out-of-process client by its socket: a command buffer in the client's memory
 * that references one allocation. Peers are a bare packet there and one back (in bench_serve.c),
 * and the same submission in-process.
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
	/* for the in-process case: the same calls without a connection */
	struct vidmm_process *process;
	struct vidmm_device *device_here;
	HANDLE handle;
	const D3DDDI_DEVICECALLBACKS *cb;
	D3DDDICB_CREATECONTEXT context;
	D3DKMT_HANDLE allocation;
};

/* the in-process case; other values of the parameter are the CPU of the host */
enum { IN_PROCESS = 9 };

static int more(void *context)
{
	struct remote *r = context;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -1;
	return vidmm_server_connect(r->server, fds[1]) ? -1 : fds[0];
}

static bool connect_client(struct remote *r)
{
	struct vidmm_server_options options = {.struct_size = sizeof(options)};

	if (vidmm_server_create(r->host, &options, &r->server) || !bench_pin(0) ||
	    vidmm_connect_fd(more(r), "bench", more, r, &r->connection) ||
	    vidmm_remote_device_create(r->connection, 0, &r->device))
		return false;
	r->cb = vidmm_remote_device_callbacks(r->device);
	r->handle = vidmm_remote_device_handle(r->device);
	return true;
}

static bool open_here(struct remote *r)
{
	if (vidmm_process_open(r->host, "bench", &r->process) ||
	    vidmm_device_create(r->process, r->adapter, &r->device_here))
		return false;
	r->cb = vidmm_device_callbacks(r->device_here);
	r->handle = vidmm_device_handle(r->device_here);
	return true;
}

static bool create_objects(struct remote *r)
{
	struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 65536};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	bool good = r->cb->pfnAllocateCb(r->handle, &args) == S_OK &&
		    r->cb->pfnCreateContextCb(r->handle, &r->context) == S_OK;

	r->allocation = info.hAllocation;
	return good;
}

static void remote_destroy(void *state)
{
	struct remote *r = state;

	if (r->device)
		vidmm_remote_device_destroy(r->device);
	if (r->device_here)
		vidmm_device_destroy(r->device_here);
	if (r->process)
		vidmm_process_close(r->process);
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

	/* Threads of the host and of its GPU stay on the CPU on which they are created. */
	if (!bench_pin(self->parameter == IN_PROCESS ? 0 : (unsigned)self->parameter))
		abort();
	if (!r || vidmm_host_create(&host, &r->host)) {
		free(r);
		return NULL;
	}
	if (!vidmm_adapter_start(r->host, &options, &r->adapter) &&
	    (self->parameter == IN_PROCESS ? open_here(r) : connect_client(r)) && create_objects(r))
		return r;
	remote_destroy(r);
	return NULL;
}

/* Submits a command buffer that references the allocation once. */
static void render_run(void *state, uint64_t steps)
{
	struct remote *r = state;

	for (uint64_t i = 0; i < steps; i++) {
		const struct softgpu_reference command = {
			.command = {SOFTGPU_REFERENCE, 0, sizeof(command)}};
		D3DDDICB_RENDER args = {.CommandLength = sizeof(command),
					.NumAllocations = 1,
					.hContext = r->context.hContext};

		*(struct softgpu_reference *)r->context.pCommandBuffer = command;
		r->context.pAllocationList[0] =
			(D3DDDI_ALLOCATIONLIST){.hAllocation = r->allocation};
		if (r->cb->pfnRenderCb(r->handle, &args) != S_OK)
			abort();
		r->context.pCommandBuffer = args.pNewCommandBuffer;
		r->context.pAllocationList = args.pNewAllocationList;
	}
}

BENCH(.name = "remote.render_here", .setup = remote_create, .run = render_run,
      .teardown = remote_destroy, .parameter = IN_PROCESS);
BENCH(.name = "remote.render", .peer = "remote.bare", .setup = remote_create, .run = render_run,
      .teardown = remote_destroy);
BENCH(.name = "remote.render_2", .peer = "remote.bare_2", .setup = remote_create, .run = render_run,
      .teardown = remote_destroy, .threads = 2, .parameter = 1);
