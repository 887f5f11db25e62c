/* SPDX-License-Identifier: MIT */
/*
 * Clients that take as much of one resource as the host gives them, and keep it. Each writes a byte
 * when nothing more is given to it, and ends with its input.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"

#define GRABBED_MAX 600u

static D3DKMT_HANDLE open_device(const char *socket, const char *name)
{
	static struct vidmm_connection *connection;

	if (vidmm_connect(socket, name, &connection) < 0)
		return 0;
	vidmm_connection_attach(connection);
	D3DKMT_ADAPTERINFO infos[REMOTE_SCRIPTED + 1];
	D3DKMT_ENUMADAPTERS2 adapters = {.NumAdapters = REMOTE_SCRIPTED + 1, .pAdapters = infos};
	if (!NT_SUCCESS(D3DKMTEnumAdapters2(&adapters)))
		return 0;
	D3DKMT_CREATEDEVICE device = {.hAdapter = infos[REMOTE_SCRIPTED].hAdapter};
	return NT_SUCCESS(D3DKMTCreateDevice(&device)) ? device.hDevice : 0;
}

static int stay(void)
{
	remote_say();
	remote_wait_for_end();
	remote_end(REMOTE_DONE);
}

/* Creates shared monitored fences, one page for each, and one NT handle of each fence. */
int remote_grab_shared(const char *socket, const char *argument)
{
	D3DKMT_HANDLE device = open_device(socket, "grabs shared objects");
	int nt;

	(void)argument;
	for (uint32_t i = 0; device && i < GRABBED_MAX; i++) {
		D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
			.hDevice = device,
			.Info = {.Type = D3DDDI_MONITORED_FENCE,
				 .Flags.Value = REMOTE_SHARED_BY_NT}};

		if (!NT_SUCCESS(D3DKMTCreateSynchronizationObject2(&create)) ||
		    !NT_SUCCESS(remote_kmt_share(create.hSyncObject, NULL, &nt)))
			break;
	}
	return stay();
}

/* Allocations of memory that the program has already: one memory object each. */
int remote_grab_existing(const char *socket, const char *argument)
{
	static char memory[GRABBED_MAX][4096] __attribute__((aligned(4096)));
	struct remote_device d;

	(void)argument;
	remote_open(&d, socket, "grabs existing memory", REMOTE_SOFTGPU);
	for (uint32_t i = 0; i < GRABBED_MAX; i++) {
		struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
							   SOFTGPU_ALLOCATION_EXISTING_SYSTEM,
						  .size_bytes = sizeof(memory[i])};
		D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
					      .PrivateDriverDataSize = sizeof(spec),
					      .pSystemMem = memory[i]};
		D3DDDICB_ALLOCATE allocate = {.NumAllocations = 1, .pAllocationInfo = &info};

		if (FAILED(d.device.cb->pfnAllocateCb(d.device.handle, &allocate)))
			break;
	}
	return stay();
}

/* Connections that send nothing, as many as this program may have descriptors. */
int remote_grab_sockets(const char *path, const char *count)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (unsigned long i = strtoul(count, NULL, 0); i > 0; i--) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0 ||
		    (connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno != EAGAIN))
			break;
	}
	return stay();
}

/* ---- threads that wait in calls: a channel and a thread of the host each ---- */

static struct {
	D3DKMT_HANDLE device, fence;
} waits;

static void *wait_forever(void *argument)
{
	(void)argument;
	(void)remote_kmt_wait(waits.device, waits.fence, 1000);
	return NULL;
}

int remote_grab_threads(const char *socket, const char *argument)
{
	enum { THREADS = 70 };
	pthread_t thread;

	(void)argument;
	waits.device = open_device(socket, "grabs threads");
	if (waits.device)
		waits.fence = remote_kmt_fence(waits.device, 0).handle;
	for (uint32_t i = 0; waits.fence && i < THREADS; i++)
		(void)!pthread_create(&thread, NULL, wait_forever, NULL);
	/* Each thread waits in the host, or was refused; which of them does not matter. */
	return stay();
}
