/* SPDX-License-Identifier: MIT */
/*
 * Hand-offs between two processes: by monitored fences of a host in a third process; bare, by a
 * futex word in memory that both map; and by packets that a third process forwards. One step is a
 * hand-off there and one back. The two processes are on one CPU, where a thread that goes to sleep
 * frees the CPU for the one it woke, or on two.
 */
#include "bench.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <support/scripted_miniport.h>
#include <d3dkmthk.h>
#include <vidmm/client.h>
#include <vidmm/serve.h>

static pid_t fork_one(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- bare: a futex ---- */

struct bare_turns {
	_Atomic uint32_t *turn; /* even: it is the turn of the first process */
	pid_t partner;
};

static void give(_Atomic uint32_t *turn, uint32_t value)
{
	atomic_store(turn, value);
	syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await(_Atomic uint32_t *turn, uint32_t value)
{
	uint32_t now;

	while ((now = atomic_load(turn)) != value)
		syscall(SYS_futex, turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void *bare_setup(const struct bench_case *self)
{
	struct bare_turns *t = calloc(1, sizeof(*t));

	if (!t || !bench_pin(0))
		abort();
	t->turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t->turn == MAP_FAILED)
		abort();
	t->partner = fork_one();
	if (t->partner == 0) {
		(void)bench_pin((unsigned)self->parameter);
		for (uint32_t n = 0;; n += 2) {
			await(t->turn, n + 1);
			give(t->turn, n + 2);
		}
	}
	return t;
}

static void bare_run(void *state, uint64_t steps)
{
	const struct bare_turns *t = state;

	for (uint64_t i = 0; i < steps; i++) {
		uint32_t n = atomic_load(t->turn);

		give(t->turn, n + 1);
		await(t->turn, n + 2);
	}
}

static void bare_teardown(void *state)
{
	struct bare_turns *t = state;

	end(t->partner);
	munmap((void *)t->turn, 4096);
	free(t);
}

/* ---- relay: packets through a third process ---- */

/*
 * The lower bound of a signal that has to pass through the host: a packet to the host, and one from
 * there.
 */
struct relay_turns {
	int fd; /* the socket of the first process */
	pid_t partner, relay;
};

static void pass_on(int from, int to)
{
	char packet[64];
	ssize_t length;

	while ((length = recv(from, packet, sizeof(packet), 0)) > 0)
		if (send(to, packet, (size_t)length, MSG_NOSIGNAL) < 0)
			break;
}

static void *pass_back(void *argument)
{
	const int *fds = argument;

	pass_on(fds[1], fds[0]);
	return NULL;
}

static void *relay_setup(const struct bench_case *self)
{
	struct relay_turns *t = calloc(1, sizeof(*t));
	int first[2], second[2];
	pthread_t back;

	if (!t || !bench_pin(0) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, first) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, second))
		abort();
	t->fd = first[0];
	t->relay = fork_one();
	if (t->relay == 0) {
		int fds[2] = {first[1], second[1]};

		if (pthread_create(&back, NULL, pass_back, fds))
			abort();
		pass_on(fds[0], fds[1]);
		_exit(0);
	}
	t->partner = fork_one();
	if (t->partner == 0) {
		(void)bench_pin((unsigned)self->parameter);
		pass_on(second[0], second[0]);
		_exit(0);
	}
	close(first[1]);
	close(second[0]);
	close(second[1]);
	return t;
}

static void relay_run(void *state, uint64_t steps)
{
	const struct relay_turns *t = state;
	char packet[64] = {0};

	for (uint64_t i = 0; i < steps; i++)
		if (send(t->fd, packet, sizeof(packet), MSG_NOSIGNAL) < 0 ||
		    recv(t->fd, packet, sizeof(packet), 0) < 0)
			abort();
}

static void relay_teardown(void *state)
{
	struct relay_turns *t = state;

	end(t->partner);
	end(t->relay);
	close(t->fd);
	free(t);
}

/* ---- fences of a host ---- */

struct player {
	struct vidmm_connection *connection;
	D3DKMT_HANDLE device, fences[2];
};

struct fence_turns {
	char folder[64], socket[96];
	pid_t host, partner;
	struct player player;
	uint64_t turn;
};

/* Serves until it is killed. */
static void serve(const char *path, int ready)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	struct scripted_miniport *m = scripted_create();
	const struct vidmm_host_options host_options = {.struct_size = sizeof(host_options),
							.kind = VIDMM_HOST_LINUX};
	const struct vidmm_server_options options = {.struct_size = sizeof(options)};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_server *server;

	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	const struct vidmm_adapter_options adapter_options = {
		.struct_size = sizeof(adapter_options),
		.initialization_data = scripted_table(m),
		.bar_sizes = bars,
		.bar_count = 1};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 8) ||
	    vidmm_host_create(&host_options, &host) < 0 ||
	    vidmm_adapter_start(host, &adapter_options, &adapter) < 0 ||
	    vidmm_server_create(host, &options, &server) < 0 || vidmm_server_listen(server, fd) < 0)
		abort();
	(void)!write(ready, ".", 1);
	for (;;)
		pause();
}

static void start_host(struct fence_turns *t)
{
	int ready[2];
	char byte;

	strcpy(t->folder, "/tmp/vidmm-bench-XXXXXX");
	if (!mkdtemp(t->folder) || pipe(ready))
		abort();
	snprintf(t->socket, sizeof(t->socket), "%s/socket", t->folder);
	t->host = fork_one();
	if (t->host == 0)
		serve(t->socket, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		abort();
	close(ready[0]);
}

static void join(struct player *p, const char *path)
{
	D3DKMT_ADAPTERINFO info = {0};
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};

	if (vidmm_connect(path, "bench", &p->connection) < 0)
		abort();
	(void)vidmm_connection_enter(p->connection);
	if (D3DKMTEnumAdapters2(&all))
		abort();
	device.hAdapter = info.hAdapter;
	if (D3DKMTCreateDevice(&device))
		abort();
	p->device = device.hDevice;
}

static int make_fence(struct player *p, uint32_t which)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = p->device, .Info = {.Type = D3DDDI_MONITORED_FENCE, .Flags.Value = 3}};
	HANDLE nt = NULL;

	if (D3DKMTCreateSynchronizationObject2(&create) ||
	    D3DKMTShareObjects(1, &create.hSyncObject, NULL, 0x20000, &nt))
		abort();
	p->fences[which] = create.hSyncObject;
	return (int)(intptr_t)nt;
}

static void open_fence(struct player *p, uint32_t which, int nt)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 open = {.hNtHandle = (HANDLE)(intptr_t)nt,
						   .hDevice = p->device};

	if (D3DKMTOpenSyncObjectFromNtHandle2(&open))
		abort();
	p->fences[which] = open.hSyncObject;
}

static void signal_fence(const struct player *p, uint32_t which, UINT64 value)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = p->device,
								.ObjectCount = 1,
								.ObjectHandleArray =
									&p->fences[which],
								.FenceValueArray = &value};

	if (D3DKMTSignalSynchronizationObjectFromCpu(&args))
		abort();
}

static void wait_for_fence(const struct player *p, uint32_t which, UINT64 value)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = p->device,
								 .ObjectCount = 1,
								 .ObjectHandleArray =
									 &p->fences[which],
								 .FenceValueArray = &value};

	if (D3DKMTWaitForSynchronizationObjectFromCpu(&args))
		abort();
}

/*
 * The second process. It inherited the descriptors by fork, and opens a separate connection here.
 */
static void play(const char *path, const int *nt)
{
	struct player p;

	join(&p, path);
	for (uint32_t i = 0; i < 2; i++)
		open_fence(&p, i, nt[i]);
	for (UINT64 n = 1;; n++) {
		wait_for_fence(&p, 0, n);
		signal_fence(&p, 1, n);
	}
}

static void fence_run(void *state, uint64_t steps)
{
	struct fence_turns *t = state;

	(void)vidmm_connection_enter(t->player.connection);
	for (uint64_t i = 0; i < steps; i++) {
		signal_fence(&t->player, 0, ++t->turn);
		wait_for_fence(&t->player, 1, t->turn);
	}
	(void)vidmm_connection_enter(NULL);
}

static void *fence_setup(const struct bench_case *self)
{
	struct fence_turns *t = calloc(1, sizeof(*t));
	int nt[2];

	if (!t || !bench_pin(0))
		abort();
	start_host(t);
	join(&t->player, t->socket);
	for (uint32_t i = 0; i < 2; i++)
		nt[i] = make_fence(&t->player, i);
	t->partner = fork_one();
	if (t->partner == 0) {
		(void)bench_pin((unsigned)self->parameter);
		play(t->socket, nt);
	}
	close(nt[0]);
	close(nt[1]);
	(void)vidmm_connection_enter(NULL);
	/*
	 * The first turns wait until the other process has connected and both have mapped the fence
	 * pages. They are not part of the calibration.
	 */
	fence_run(t, 16);
	return t;
}

static void fence_teardown(void *state)
{
	struct fence_turns *t = state;

	end(t->partner);
	vidmm_disconnect(t->player.connection);
	end(t->host);
	unlink(t->socket);
	rmdir(t->folder);
	free(t);
}

BENCH(.name = "processes.bare", .setup = bare_setup, .run = bare_run, .teardown = bare_teardown);
BENCH(.name = "processes.relay", .setup = relay_setup, .run = relay_run, .teardown = relay_teardown,
      .peer = "processes.bare");
BENCH(.name = "processes.relay_2", .setup = relay_setup, .run = relay_run,
      .teardown = relay_teardown, .threads = 2, .parameter = 1, .peer = "processes.bare_2");
BENCH(.name = "processes.fence", .setup = fence_setup, .run = fence_run, .teardown = fence_teardown,
      .peer = "processes.bare", .ratio_max = 1.25);
BENCH(.name = "processes.bare_2", .setup = bare_setup, .run = bare_run, .teardown = bare_teardown,
      .threads = 2, .parameter = 1);
BENCH(.name = "processes.fence_2", .setup = fence_setup, .run = fence_run,
      .teardown = fence_teardown, .threads = 2, .parameter = 1, .peer = "processes.bare_2",
      .ratio_max = 1.25);
