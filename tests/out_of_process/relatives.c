/* SPDX-License-Identifier: MIT */
/*
 * relatives: D3DKMT clients that share objects. This program and one that it forks, each with its
 * own connection, pass each other handles and descriptors over a socket; then the other is killed.
 * This program checks what must hold: the exit code says whether all checks passed, a line names
 * each that failed.
 */
#include <d3dkmthk.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

struct relative {
	struct vidmm_connection *connection;
	D3DKMT_HANDLE device;
	int other; /* the socket to the other one */
	pid_t child;
};

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "# relatives %d: not so: %s\n", (int)getpid(), what);
	remote_end(1);
}

/* ---- messages between the two programs ---- */

static void tell(struct relative *r, uint64_t number, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {&number, sizeof(number)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.align = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	check(sendmsg(r->other, &message, MSG_NOSIGNAL) == sizeof(number), "the other one listens");
}

static uint64_t hear(struct relative *r, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	uint64_t number = 0;
	struct iovec part = {&number, sizeof(number)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	check(recvmsg(r->other, &message, MSG_CMSG_CLOEXEC) == sizeof(number),
	      "the other one has something to say");
	if (fd) {
		check(message.msg_controllen >= CMSG_LEN(sizeof(int)), "a descriptor comes");
		memcpy(fd, CMSG_DATA(&control.align), sizeof(*fd));
	}
	return number;
}

/* ---- calls ---- */

static void connect_as(struct relative *r, const char *socket, const char *name)
{
	D3DKMT_ADAPTERINFO adapters[4];
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 4, .pAdapters = adapters};

	check(vidmm_connect(socket, name, &r->connection) >= 0, "a host is there");
	vidmm_connection_attach(r->connection);
	check(!D3DKMTEnumAdapters2(&list) && list.NumAdapters == 2, "it has two adapters");
	D3DKMT_CREATEDEVICE create = {.hAdapter = adapters[REMOTE_SCRIPTED].hAdapter};
	check(!D3DKMTCreateDevice(&create), "a device can be made");
	r->device = create.hDevice;
}

/* ---- the two programs ---- */

/* Returns true in the forked program, which ends with this one. */
static bool fork_one(struct relative *r)
{
	int pair[2];

	check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "a socketpair");
	fflush(NULL);
	r->child = fork();
	check(r->child >= 0, "a child");
	close(pair[r->child == 0 ? 0 : 1]);
	r->other = pair[r->child == 0 ? 1 : 0];
	if (r->child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return r->child == 0;
}

static void kill_other(struct relative *r)
{
	check(!kill(r->child, SIGKILL), "it can be killed");
	check(waitpid(r->child, NULL, 0) == r->child, "and has ended");
}

/* ---- keyed: a wait for a keyed mutex ends with STATUS_ABANDONED when its owner is killed ---- */

static void own_keyed(struct relative *r)
{
	D3DKMT_CREATEKEYEDMUTEX create = {.InitialValue = 0};

	check(!D3DKMTCreateKeyedMutex(&create), "a keyed mutex can be made");
	D3DKMT_ACQUIREKEYEDMUTEX acquire = {.hKeyedMutex = create.hKeyedMutex};
	tell(r, create.hSharedHandle, -1);
	(void)hear(r, NULL);
	check(!D3DKMTAcquireKeyedMutex(&acquire), "it can be had");
	tell(r, 1, -1);
	(void)hear(r, NULL);
}

/*
 * The other program creates the object. Returns its handle here. 0: this is the other program, and
 * its part is done.
 */
static D3DKMT_HANDLE have_an_owner(struct relative *r, const char *socket)
{
	if (fork_one(r)) {
		connect_as(r, socket, "owner");
		own_keyed(r);
		return 0;
	}
	connect_as(r, socket, "heir");
	D3DKMT_OPENKEYEDMUTEX open = {.hSharedHandle = (D3DKMT_HANDLE)hear(r, NULL)};
	check(!D3DKMTOpenKeyedMutex(&open) && open.hKeyedMutex, "what was shared can be opened");
	tell(r, 1, -1);
	(void)hear(r, NULL);
	return open.hKeyedMutex;
}

static int keyed(struct relative *r, const char *socket)
{
	LARGE_INTEGER none = {.QuadPart = 0};
	D3DKMT_ACQUIREKEYEDMUTEX acquire = {.hKeyedMutex = have_an_owner(r, socket),
					    .pTimeout = &none};

	if (!acquire.hKeyedMutex)
		return 1;
	check(D3DKMTAcquireKeyedMutex(&acquire) == STATUS_TIMEOUT, "the other one has it");
	kill_other(r);
	acquire.pTimeout = NULL;
	check(D3DKMTAcquireKeyedMutex(&acquire) == STATUS_ABANDONED, "it is abandoned");
	return REMOTE_DONE;
}

/* ---- inside: the same for a call that was made while the owner lived ---- */

struct killer {
	struct relative *r;
	pid_t caller;
	_Atomic bool calls;
};

/* Returns when the call seems to be waiting; a later call gets the same status. */
static void *kill_when_it_sleeps(void *argument)
{
	struct killer *k = argument;

	while (!k->calls || !remote_sleeps(k->caller))
		sched_yield();
	kill_other(k->r);
	return NULL;
}

static int inside(struct relative *r, const char *socket)
{
	struct killer k = {.r = r, .caller = (pid_t)syscall(SYS_gettid)};
	pthread_t thread;

	D3DKMT_ACQUIREKEYEDMUTEX acquire = {.hKeyedMutex = have_an_owner(r, socket)};
	if (!acquire.hKeyedMutex)
		return 1;
	check(!pthread_create(&thread, NULL, kill_when_it_sleeps, &k), "a thread");
	k.calls = true;
	NTSTATUS status = D3DKMTAcquireKeyedMutex(&acquire);
	pthread_join(thread, NULL);
	check(status == STATUS_ABANDONED, "the waiting call returns STATUS_ABANDONED");
	D3DKMT_RELEASEKEYEDMUTEX release = {.hKeyedMutex = acquire.hKeyedMutex};
	check(D3DKMTReleaseKeyedMutex(&release) == STATUS_INVALID_PARAMETER, "and has not got it");
	return REMOTE_DONE;
}

/* ---- mutex: a context that waits for a mutex goes on when the holder's process is killed ---- */

static D3DKMT_HANDLE make_context(struct relative *r)
{
	D3DKMT_CREATECONTEXT create = {.hDevice = r->device, .EngineAffinity = 1};

	check(!D3DKMTCreateContext(&create), "a context can be made");
	return create.hContext;
}

static void take_by_gpu(D3DKMT_HANDLE context, D3DKMT_HANDLE mutex)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECT args = {
		.hContext = context, .ObjectCount = 1, .ObjectHandleArray = {mutex}};

	check(!D3DKMTWaitForSynchronizationObject(&args), "a context can wait for a mutex");
}

static void signal_by_gpu(D3DKMT_HANDLE context, D3DKMT_HANDLE fence, UINT64 value)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU args = {.hContext = context,
								.ObjectCount = 1,
								.ObjectHandleArray = &fence,
								.MonitoredFenceValueArray = &value};

	check(!D3DKMTSignalSynchronizationObjectFromGpu(&args), "a context can signal");
}

static void own_mutex(struct relative *r)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = r->device,
		.Info = {.Type = D3DDDI_SYNCHRONIZATION_MUTEX, .Flags.Shared = 1}};
	D3DKMT_HANDLE context = make_context(r);
	struct remote_fence fence = remote_kmt_fence(r->device, 0);

	check(!D3DKMTCreateSynchronizationObject2(&create), "a mutex can be made");
	take_by_gpu(context, create.hSyncObject);
	signal_by_gpu(context, fence.handle, 1);
	check(!remote_kmt_wait(r->device, fence.handle, 1), "its context has it");
	tell(r, create.Info.SharedHandle, -1);
	(void)hear(r, NULL);
}

static int mutex(struct relative *r, const char *socket)
{
	if (fork_one(r)) {
		connect_as(r, socket, "holder");
		own_mutex(r);
		return 1;
	}
	connect_as(r, socket, "next");
	D3DKMT_HANDLE context = make_context(r);
	struct remote_fence fence = remote_kmt_fence(r->device, 0);
	D3DKMT_OPENSYNCHRONIZATIONOBJECT open = {.hSharedHandle = (D3DKMT_HANDLE)hear(r, NULL)};
	check(!D3DKMTOpenSynchronizationObject(&open), "what was shared can be opened");
	signal_by_gpu(context, fence.handle, 1);
	take_by_gpu(context, open.hSyncObject);
	signal_by_gpu(context, fence.handle, 2);
	check(!remote_kmt_wait(r->device, fence.handle, 1) && *fence.value == 1,
	      "it waits: the other one has it");
	kill_other(r);
	check(!remote_kmt_wait(r->device, fence.handle, 2) && *fence.value == 2, "it is freed");
	return REMOTE_DONE;
}

/* ---- nt: a descriptor is the object in every process, and outlives its creating process ---- */

static int nt(struct relative *r, const char *socket)
{
	struct remote_fence fence;
	int fd;

	if (fork_one(r)) {
		connect_as(r, socket, "maker");
		fence = remote_kmt_fence(r->device, REMOTE_SHARED_BY_NT);
		check(!remote_kmt_share(fence.handle, NULL, &fd), "it can be shared");
		tell(r, fence.handle, fd);
		close(fd);
		check(!remote_kmt_wait(r->device, fence.handle, 5) && *fence.value == 5, "5 comes");
		check(!remote_kmt_signal(r->device, fence.handle, 6), "6 goes");
		(void)hear(r, NULL);
		return 1;
	}
	connect_as(r, socket, "opener");
	D3DKMT_HANDLE theirs = (D3DKMT_HANDLE)hear(r, &fd);
	/* A handle of the other program is invalid here: this program has created no object yet. */
	check(remote_kmt_signal(r->device, theirs, 3) < 0,
	      "a handle of another process means nothing");
	check(!remote_kmt_open(r->device, fd, &fence) && *fence.value == 0,
	      "the descriptor is the fence");
	check(!remote_kmt_signal(r->device, fence.handle, 5), "5 goes");
	check(!remote_kmt_wait(r->device, fence.handle, 6) && *fence.value == 6, "6 comes");
	kill_other(r);
	check(!remote_kmt_signal(r->device, fence.handle, 9) &&
		      !remote_kmt_wait(r->device, fence.handle, 9) && *fence.value == 9,
	      "it is there without the other one");
	struct remote_fence again;
	check(!remote_kmt_open(r->device, fd, &again) && *again.value == 9,
	      "and can be opened again");
	close(fd);
	return REMOTE_DONE;
}

/* ---- fork: what is forked has no connection, and takes none away ---- */

static int forked(struct relative *r, const char *socket)
{
	connect_as(r, socket, "parent");
	struct remote_fence fence = remote_kmt_fence(r->device, 0);
	D3DKMT_HANDLE mine = r->device;

	if (fork_one(r)) {
		check(remote_kmt_signal(r->device, fence.handle, 1) < 0,
		      "the connection was the parent's");
		connect_as(r, socket, "child");
		struct remote_fence own = remote_kmt_fence(r->device, 0);
		check(!remote_kmt_signal(r->device, own.handle, 4) && *own.value == 4,
		      "its own is its own");
		tell(r, 1, -1);
		(void)hear(r, NULL);
		return 1;
	}
	(void)hear(r, NULL);
	check(r->device == mine && !remote_kmt_signal(r->device, fence.handle, 2) &&
		      *fence.value == 2,
	      "the parent's is as it was");
	kill_other(r);
	check(!remote_kmt_signal(r->device, fence.handle, 3) && *fence.value == 3, "and stays so");
	return REMOTE_DONE;
}

/* ---- exec: a descriptor that is left open goes along ---- */

static int exec_other(struct relative *r, const char *socket)
{
	char number[16], program[4096];
	int fd, status;

	connect_as(r, socket, "parent");
	struct remote_fence fence = remote_kmt_fence(r->device, REMOTE_SHARED_BY_NT);
	check(!remote_kmt_share(fence.handle, NULL, &fd), "it can be shared");
	check(!remote_kmt_signal(r->device, fence.handle, 17), "17 goes");
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	check(length > 0, "this program has a file");
	program[length] = 0;
	if (fork_one(r)) {
		fd = dup(fd); /* without the flag that closes it */
		snprintf(number, sizeof(number), "%d", fd);
		execl(program, program, "inherit", socket, number, (char *)NULL);
		return 1;
	}
	check(waitpid(r->child, &status, 0) == r->child && status == 0, "the other found 17");
	check(!remote_kmt_wait(r->device, fence.handle, 18) && *fence.value == 18, "18 comes");
	/*
	 * A host looks for the last descriptor when a process ends, and cannot know of one that is
	 * closed later.
	 */
	close(fd);
	return REMOTE_DONE;
}

int remote_inherit(const char *socket, const char *number)
{
	struct relative r = {0};
	struct remote_fence fence;

	connect_as(&r, socket, "heir");
	check(!remote_kmt_open(r.device, atoi(number), &fence) && *fence.value == 17,
	      "17 is there");
	check(!remote_kmt_signal(r.device, fence.handle, 18), "18 goes");
	return REMOTE_DONE;
}

/* ---- name: the host has the names: any client can open one while the object is held ---- */

static int named(struct relative *r, const char *socket)
{
	struct remote_fence fence;
	int fd;

	if (fork_one(r)) {
		(void)hear(r, NULL);
		connect_as(r, socket, "namer");
		fence = remote_kmt_fence(r->device, REMOTE_SHARED_BY_NT);
		check(!remote_kmt_share(fence.handle, "storm", &fd), "it can be named");
		check(!remote_kmt_signal(r->device, fence.handle, 11), "11 goes");
		tell(r, 1, -1);
		(void)hear(r, NULL);
		return 1;
	}
	connect_as(r, socket, "finder");
	check(remote_kmt_open_name("storm", &fd) < 0, "no program has named it yet");
	tell(r, 1, -1);
	(void)hear(r, NULL);
	check(!remote_kmt_open_name("storm", &fd) && !remote_kmt_open(r->device, fd, &fence) &&
		      *fence.value == 11,
	      "it is found by its name");
	kill_other(r);
	check(!remote_kmt_signal(r->device, fence.handle, 12) && *fence.value == 12,
	      "it is still there");
	close(fd);
	return REMOTE_DONE;
}

int remote_relatives(const char *socket, const char *what)
{
	static const struct {
		const char *name;
		int (*run)(struct relative *r, const char *socket);
	} all[] = {{"keyed", keyed}, {"inside", inside},   {"mutex", mutex}, {"nt", nt},
		   {"fork", forked}, {"exec", exec_other}, {"name", named}};
	struct relative r = {.other = -1};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i].name, what) != 0)
			continue;
		int code = all[i].run(&r, socket);
		/* The forked program ends by _exit. */
		if (r.child == 0 && r.other >= 0)
			_exit(code);
		vidmm_disconnect(r.connection);
		return code;
	}
	return 2;
}
