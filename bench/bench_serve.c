/* SPDX-License-Identifier: MIT */
/*
 * Calls of an out-of-process client. A lock and unlock by the client's word, against the same
 * in-process. An empty D3DKMT call, and a lock by a message, against their lower bound: a packet
 * there and one back between two threads on the same kind of socket. Client and host are threads of
 * this process, which makes no difference for the socket between them. The client is on the first
 * CPU. The host, like the other thread of the bare round trip, is on the same CPU, where wake-ups
 * are cheap, or on the second.
 */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <support/scripted_miniport.h>
#include <d3dkmthk.h>
#include <vidmm/client.h>
#include <vidmm/serve.h>

/* ---- a bare round trip ---- */

enum { PACKET_BYTES = 64 };

struct echo {
	int fd[2];
	pthread_t thread;
};

static void *give_back(void *argument)
{
	const struct echo *echo = argument;
	char packet[PACKET_BYTES];
	ssize_t length;

	while ((length = recv(echo->fd[1], packet, sizeof(packet), 0)) > 0)
		if (send(echo->fd[1], packet, (size_t)length, MSG_NOSIGNAL) < 0)
			break;
	return NULL;
}

static void *echo_setup(const struct bench_case *self)
{
	struct echo *echo = calloc(1, sizeof(*echo));

	if (!echo || !bench_pin((unsigned)self->parameter) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, echo->fd) ||
	    pthread_create(&echo->thread, NULL, give_back, echo) || !bench_pin(0))
		abort();
	return echo;
}

static void echo_run(void *state, uint64_t steps)
{
	const struct echo *echo = state;
	char packet[PACKET_BYTES] = {0};

	for (uint64_t i = 0; i < steps; i++)
		if (send(echo->fd[0], packet, sizeof(packet), MSG_NOSIGNAL) < 0 ||
		    recv(echo->fd[0], packet, sizeof(packet), 0) < 0)
			abort();
}

static void echo_teardown(void *state)
{
	struct echo *echo = state;

	shutdown(echo->fd[0], SHUT_RDWR);
	pthread_join(echo->thread, NULL);
	close(echo->fd[0]);
	close(echo->fd[1]);
	free(echo);
}

/* ---- a host and its client ---- */

struct pair {
	struct scripted_miniport *miniport;
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_server *server;
	struct vidmm_connection *connection;
	D3DKMT_HANDLE device, allocation;
};

static bool start_host(struct pair *p)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_LINUX};
	const struct vidmm_server_options server = {.struct_size = sizeof(server)};

	p->miniport = scripted_create();
	const struct vidmm_adapter_options adapter = {.struct_size = sizeof(adapter),
						      .initialization_data =
							      scripted_table(p->miniport),
						      .bar_sizes = bars,
						      .bar_count = 1};
	return vidmm_host_create(&host, &p->host) >= 0 &&
	       vidmm_adapter_start(p->host, &adapter, &p->adapter) >= 0 &&
	       vidmm_server_create(p->host, &server, &p->server) >= 0;
}

static bool connect_client(struct pair *p)
{
	int fd[2];

	return !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) &&
	       vidmm_server_connect(p->server, fd[1]) >= 0 &&
	       vidmm_connect_fd(fd[0], "bench", NULL, NULL, &p->connection) >= 0;
}

static bool make_objects(struct pair *p)
{
	D3DKMT_ADAPTERINFO info = {0};
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};
	struct scripted_allocation private = {.size_bytes = 64 << 10, .flags = 1}; /* CpuVisible */
	D3DDDI_ALLOCATIONINFO what = {.pPrivateDriverData = &private,
				      .PrivateDriverDataSize = sizeof(private)};
	D3DKMT_CREATEALLOCATION create = {.NumAllocations = 1, .pAllocationInfo = &what};

	if (D3DKMTEnumAdapters2(&all))
		return false;
	device.hAdapter = info.hAdapter;
	if (D3DKMTCreateDevice(&device))
		return false;
	p->device = create.hDevice = device.hDevice;
	if (D3DKMTCreateAllocation(&create))
		return false;
	p->allocation = what.hAllocation;
	return true;
}

static void *pair_setup(const struct bench_case *self)
{
	struct pair *p = calloc(1, sizeof(*p));

	if (!p || !bench_pin((unsigned)self->parameter) || !start_host(p) || !bench_pin(0) ||
	    !connect_client(p))
		abort();
	(void)vidmm_connection_enter(p->connection);
	if (!make_objects(p))
		abort();
	return p;
}

static void pair_teardown(void *state)
{
	struct pair *p = state;

	(void)vidmm_connection_enter(NULL);
	vidmm_disconnect(p->connection);
	vidmm_server_destroy(p->server);
	vidmm_adapter_stop(p->adapter);
	vidmm_host_destroy(p->host);
	scripted_destroy(p->miniport);
	free(p);
}

/* An empty call: the host looks up the device and does nothing else. */
static void state_run(void *state, uint64_t steps)
{
	const struct pair *p = state;

	(void)vidmm_connection_enter(p->connection);
	for (uint64_t i = 0; i < steps; i++) {
		D3DKMT_GETDEVICESTATE args = {.hDevice = p->device,
					      .StateType = D3DKMT_DEVICESTATE_EXECUTION};

		if (D3DKMTGetDeviceState(&args))
			abort();
	}
	(void)vidmm_connection_enter(NULL);
}

static void lock_run(void *state, uint64_t steps)
{
	const struct pair *p = state;

	(void)vidmm_connection_enter(p->connection);
	for (uint64_t i = 0; i < steps; i++) {
		D3DKMT_LOCK lock = {.hDevice = p->device, .hAllocation = p->allocation};
		const D3DKMT_UNLOCK unlock = {
			.hDevice = p->device, .NumAllocations = 1, .phAllocations = &p->allocation};

		if (D3DKMTLock(&lock) || D3DKMTUnlock(&unlock))
			abort();
	}
	(void)vidmm_connection_enter(NULL);
}

BENCH(.name = "remote.bare", .setup = echo_setup, .run = echo_run, .teardown = echo_teardown);
BENCH(.name = "remote.empty_call", .setup = pair_setup, .run = state_run, .teardown = pair_teardown,
      .peer = "remote.bare");
/*
 * A lock that the client's word cannot express: one message there and one back. Its unlock needs no
 * message.
 */
static void message_lock_run(void *state, uint64_t steps)
{
	const struct pair *p = state;
	const UINT page = 0;

	(void)vidmm_connection_enter(p->connection);
	for (uint64_t i = 0; i < steps; i++) {
		D3DKMT_LOCK lock = {.hDevice = p->device,
				    .hAllocation = p->allocation,
				    .NumPages = 1,
				    .pPages = &page};
		const D3DKMT_UNLOCK unlock = {
			.hDevice = p->device, .NumAllocations = 1, .phAllocations = &p->allocation};

		if (D3DKMTLock(&lock) || D3DKMTUnlock(&unlock))
			abort();
	}
	(void)vidmm_connection_enter(NULL);
}

BENCH(.name = "remote.lock_unlock", .setup = pair_setup, .run = lock_run, .teardown = pair_teardown,
      .peer = "lock.pair_d3dkmt", .ratio_max = 2);
BENCH(.name = "remote.lock_message", .setup = pair_setup, .run = message_lock_run,
      .teardown = pair_teardown, .peer = "remote.bare", .ratio_max = 2);
BENCH(.name = "remote.bare_2", .setup = echo_setup, .run = echo_run, .teardown = echo_teardown,
      .threads = 2, .parameter = 1);
BENCH(.name = "remote.empty_call_2", .setup = pair_setup, .run = state_run,
      .teardown = pair_teardown, .peer = "remote.bare_2", .threads = 2, .parameter = 1);
BENCH(.name = "remote.lock_message_2", .setup = pair_setup, .run = message_lock_run,
      .teardown = pair_teardown, .peer = "remote.bare_2", .ratio_max = 2, .threads = 2,
      .parameter = 1);
