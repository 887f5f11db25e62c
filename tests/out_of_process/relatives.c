/* SPDX-License-Identifier: MIT */
/*
 * relatives: D3DKMT clients that share objects. This program and one that it forks, each with its
 * own connection, pass each other handles and descriptors over a socket; then the other is killed.
 * This program checks what must hold: the exit code says whether all checks passed, a line names
 * each that failed.
 */
#include <d3dkmthk.h>
#include <errno.h>
#include <linux/sched.h>
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

static void connect_to(struct relative *r, const char *socket, const char *name, uint32_t adapter)
{
	D3DKMT_ADAPTERINFO adapters[4];
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 4, .pAdapters = adapters};

	check(vidmm_connect(socket, name, &r->connection) >= 0, "a host is there");
	vidmm_connection_attach(r->connection);
	check(!D3DKMTEnumAdapters2(&list) && list.NumAdapters == 2, "it has two adapters");
	D3DKMT_CREATEDEVICE create = {.hAdapter = adapters[adapter].hAdapter};
	check(!D3DKMTCreateDevice(&create), "a device can be made");
	r->device = create.hDevice;
}

static void connect_as(struct relative *r, const char *socket, const char *name)
{
	connect_to(r, socket, name, REMOTE_SCRIPTED);
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

/* Opens the keyed mutex that the other program offers, and returns when that program owns it. */
static D3DKMT_HANDLE open_keyed(struct relative *r)
{
	D3DKMT_OPENKEYEDMUTEX open = {.hSharedHandle = (D3DKMT_HANDLE)hear(r, NULL)};

	check(!D3DKMTOpenKeyedMutex(&open) && open.hKeyedMutex, "what was shared can be opened");
	tell(r, 1, -1);
	(void)hear(r, NULL);
	return open.hKeyedMutex;
}

/*
 * The host ends a killed process after waitpid() has returned, and its keyed mutexes last. Returns
 * when that has happened.
 */
static void await_end(D3DKMT_HANDLE mutex)
{
	D3DKMT_ACQUIREKEYEDMUTEX acquire = {.hKeyedMutex = mutex};

	check(D3DKMTAcquireKeyedMutex(&acquire) == STATUS_ABANDONED, "the mutex is abandoned");
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
	return open_keyed(r);
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
	await_end(acquire.hKeyedMutex);
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

/* The path of this program. */
static void program_path(char path[4096])
{
	ssize_t length = readlink("/proc/self/exe", path, 4095);

	check(length > 0, "this program has a file");
	path[length] = 0;
}

static int exec_other(struct relative *r, const char *socket)
{
	char number[16], program[4096];
	int fd, status;

	connect_as(r, socket, "parent");
	struct remote_fence fence = remote_kmt_fence(r->device, REMOTE_SHARED_BY_NT);
	check(!remote_kmt_share(fence.handle, NULL, &fd), "it can be shared");
	check(!remote_kmt_signal(r->device, fence.handle, 17), "17 goes");
	program_path(program);
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

/* ---- cancelled: waits for a value that the killed process would have signaled ---- */

static void wait_by_gpu(D3DKMT_HANDLE context, D3DKMT_HANDLE fence, UINT64 value)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = {.hContext = context,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .MonitoredFenceValueArray =
									 &value};

	check(!D3DKMTWaitForSynchronizationObjectFromGpu(&args), "a context can wait");
}

static int cancelled(struct relative *r, const char *socket)
{
	struct remote_fence fence;
	pthread_t thread;
	int fd;

	if (fork_one(r)) {
		connect_as(r, socket, "maker");
		fence = remote_kmt_fence(r->device, REMOTE_SHARED_BY_NT);
		check(!remote_kmt_share(fence.handle, NULL, &fd), "it can be shared");
		tell(r, 1, fd);
		(void)hear(r, NULL);
		return 1;
	}
	connect_as(r, socket, "waits");
	(void)hear(r, &fd);
	check(!remote_kmt_open(r->device, fd, &fence), "the descriptor is the fence");
	close(fd);
	struct remote_fence done = remote_kmt_fence(r->device, 0);
	D3DKMT_HANDLE context = make_context(r);
	wait_by_gpu(context, fence.handle, 7);
	signal_by_gpu(context, done.handle, 1);
	/*
	 * The first wait also requests the page of the fence from the host, and sleeps until the
	 * answer. The next one sleeps only when it waits for the value: a wait that began after the
	 * death would never end.
	 */
	check(!remote_kmt_wait(r->device, fence.handle, 0), "0 is there");
	struct killer k = {.r = r, .caller = (pid_t)syscall(SYS_gettid)};
	check(!pthread_create(&thread, NULL, kill_when_it_sleeps, &k), "a thread");
	k.calls = true;
	check(remote_kmt_wait(r->device, fence.handle, 7) == STATUS_CANCELLED && *fence.value == 0,
	      "the call that waits returns STATUS_CANCELLED");
	pthread_join(thread, NULL);
	/* The fence is as it was, and the wait of the context goes on. */
	check(!remote_kmt_signal(r->device, fence.handle, 6) && *fence.value == 6, "6 goes");
	check(*done.value == 0, "the context waits");
	check(!remote_kmt_signal(r->device, fence.handle, 7), "7 goes");
	check(!remote_kmt_wait(r->device, done.handle, 1), "the context goes on");
	return REMOTE_DONE;
}

/* ---- content: a shared allocation whose creator is killed, under memory pressure ---- */

#define SHARED_BYTES (128u << 10)
#define OTHER_BYTES  (1u << 20)
#define OTHERS       6u /* together more than the memory of the adapter */

static struct softgpu_allocation allocation_of(uint64_t bytes)
{
	return (struct softgpu_allocation){.version = SOFTGPU_ALLOCATION_VERSION,
					   .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					   .size_bytes = bytes};
}

/* Returns the allocation. `global` NULL: it is not shared. */
static D3DKMT_HANDLE allocate(struct relative *r, uint64_t bytes, D3DKMT_HANDLE *global)
{
	struct softgpu_allocation spec = allocation_of(bytes);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = r->device, .NumAllocations = 1, .pAllocationInfo = &info};

	args.Flags.CreateResource = args.Flags.CreateShared = global != NULL;
	check(!D3DKMTCreateAllocation(&args), "an allocation can be made");
	if (global)
		*global = args.hGlobalShare;
	return info.hAllocation;
}

/* Returns the words of an allocation, locked; it is unlocked by the next call. */
static uint32_t *lock_words(struct relative *r, D3DKMT_HANDLE allocation)
{
	D3DKMT_LOCK args = {.hDevice = r->device, .hAllocation = allocation};

	check(!D3DKMTLock(&args) && args.pData, "it can be locked");
	return args.pData;
}

static void unlock(struct relative *r, D3DKMT_HANDLE allocation)
{
	const D3DKMT_UNLOCK args = {
		.hDevice = r->device, .NumAllocations = 1, .phAllocations = &allocation};

	check(!D3DKMTUnlock(&args), "it can be unlocked");
}

static struct client_context open_context(struct relative *r)
{
	D3DKMT_CREATECONTEXT args = {.hDevice = r->device};
	struct client_context c = {0};

	check(!D3DKMTCreateContext(&args), "a context can be made");
	c.c.hContext = (HANDLE)(uintptr_t)args.hContext;
	c.c.pCommandBuffer = args.pCommandBuffer;
	c.c.CommandBufferSize = args.CommandBufferSize;
	c.c.pAllocationList = args.pAllocationList;
	c.c.AllocationListSize = args.AllocationListSize;
	return c;
}

static void render(struct client_context *c)
{
	D3DKMT_RENDER args = {.hContext = (D3DKMT_HANDLE)(uintptr_t)c->c.hContext,
			      .CommandLength = c->command_bytes,
			      .AllocationCount = c->allocations};

	check(!D3DKMTRender(&args), "commands can be submitted");
	c->c.pCommandBuffer = args.pNewCommandBuffer;
	c->c.pAllocationList = args.pNewAllocationList;
	c->command_bytes = c->allocations = 0;
}

/* Has the GPU copy the shared allocation, and compares the words. */
static void expect_content(struct relative *r, struct client_context *c, D3DKMT_HANDLE shared,
			   uint32_t first, uint32_t step)
{
	D3DKMT_HANDLE copy = allocate(r, SHARED_BYTES, NULL);
	bool same = true;

	client_copy(c, shared, copy, SHARED_BYTES);
	render(c);
	const uint32_t *words = lock_words(r, copy);
	for (uint32_t i = 0; i < SHARED_BYTES / 4; i++)
		same &= words[i] == first + i * step;
	check(same, "the content is what was written last");
	unlock(r, copy);
	const D3DKMT_DESTROYALLOCATION end = {
		.hDevice = r->device, .phAllocationList = &copy, .AllocationCount = 1};
	check(!D3DKMTDestroyAllocation(&end), "the copy can be destroyed");
}

/* Submits packets that use so much video memory that the shared allocation is evicted. */
static void press(struct relative *r, struct client_context *c, D3DKMT_HANDLE others[OTHERS])
{
	for (uint32_t i = 0; i < OTHERS; i++) {
		others[i] = others[i] ? others[i] : allocate(r, OTHER_BYTES, NULL);
		client_fill(c, others[i], OTHER_BYTES, i);
		render(c);
	}
}

static void share_content(struct relative *r, const char *socket)
{
	D3DKMT_HANDLE global;

	connect_to(r, socket, "maker", REMOTE_SOFTGPU);
	D3DKMT_HANDLE shared = allocate(r, SHARED_BYTES, &global);
	uint32_t *words = lock_words(r, shared);
	for (uint32_t i = 0; i < SHARED_BYTES / 4; i++)
		words[i] = 0x1000 + i;
	unlock(r, shared);
	tell(r, global, -1);
	own_keyed(r);
}

/* Returns the allocation of the resource with that global handle. */
static D3DKMT_HANDLE open_shared(struct relative *r, D3DKMT_HANDLE global, D3DKMT_HANDLE *resource)
{
	struct softgpu_allocation spec;
	D3DDDI_OPENALLOCATIONINFO info = {0};
	D3DKMT_OPENRESOURCE args = {.hDevice = r->device,
				    .hGlobalShare = global,
				    .NumAllocations = 1,
				    .pOpenAllocationInfo = &info,
				    .pTotalPrivateDriverDataBuffer = &spec,
				    .TotalPrivateDriverDataBufferSize = sizeof(spec)};

	check(!D3DKMTOpenResource(&args), "what was shared can be opened");
	*resource = args.hResource;
	return info.hAllocation;
}

static int content(struct relative *r, const char *socket)
{
	D3DKMT_HANDLE resource, others[OTHERS] = {0};

	if (fork_one(r)) {
		share_content(r, socket);
		return 1;
	}
	connect_to(r, socket, "opener", REMOTE_SOFTGPU);
	D3DKMT_HANDLE global = (D3DKMT_HANDLE)hear(r, NULL);
	D3DKMT_HANDLE shared = open_shared(r, global, &resource);
	D3DKMT_HANDLE owned = open_keyed(r);
	struct client_context c = open_context(r);
	press(r, &c, others); /* its content is in the memory of its creator */
	kill_other(r);
	await_end(owned);
	expect_content(r, &c, shared, 0x1000, 1);
	press(r, &c, others);
	expect_content(r, &c, shared, 0x1000, 1);
	client_fill(&c, shared, SHARED_BYTES, 0x77);
	render(&c);
	press(r, &c, others);
	expect_content(r, &c, shared, 0x77, 0);
	D3DKMT_QUERYRESOURCEINFO ask = {.hDevice = r->device, .hGlobalShare = global};
	check(!D3DKMTQueryResourceInfo(&ask), "it can still be opened");
	const D3DKMT_DESTROYALLOCATION end = {.hDevice = r->device, .hResource = resource};
	check(!D3DKMTDestroyAllocation(&end), "the last opening can be closed");
	ask = (D3DKMT_QUERYRESOURCEINFO){.hDevice = r->device, .hGlobalShare = global};
	check(D3DKMTQueryResourceInfo(&ask) == STATUS_INVALID_PARAMETER, "then it is gone");
	return REMOTE_DONE;
}

/* ---- reuse: a program that gets the process id of a killed one inherits nothing ---- */

/* Creates a process with that id. Returns as fork(); the child must call exec. */
static pid_t fork_as(pid_t pid)
{
	const struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void own_and_be_killed(struct relative *r, const char *socket)
{
	connect_as(r, socket, "first");
	struct remote_fence fence = remote_kmt_fence(r->device, 0);
	tell(r, fence.handle, -1);
	own_keyed(r);
}

static int reuse(struct relative *r, const char *socket)
{
	char program[4096], handles[64];
	int status;

	program_path(program);
	if (fork_one(r)) {
		own_and_be_killed(r, socket);
		return 1;
	}
	connect_as(r, socket, "witness");
	D3DKMT_HANDLE fence = (D3DKMT_HANDLE)hear(r, NULL);
	D3DKMT_OPENKEYEDMUTEX open = {.hSharedHandle = (D3DKMT_HANDLE)hear(r, NULL)};
	check(!D3DKMTOpenKeyedMutex(&open), "what was shared can be opened");
	tell(r, 1, -1);
	(void)hear(r, NULL); /* the other one owns the mutex */
	snprintf(handles, sizeof(handles), "%u,%u", fence, open.hSharedHandle);
	pid_t pid = r->child;
	kill_other(r);
	r->child = fork_as(pid);
	if (r->child == 0) {
		execl(program, program, "heir", socket, handles, (char *)NULL);
		_exit(1);
	}
	if (r->child < 0) {
		fprintf(stderr, "# skipped: no process with the id %d: %s\n", (int)pid,
			strerror(errno));
		return REMOTE_SKIPPED;
	}
	check(r->child == pid, "the process id is the same");
	check(waitpid(pid, &status, 0) == pid && status == 0, "the second has inherited nothing");
	return REMOTE_DONE;
}

int remote_heir(const char *socket, const char *handles)
{
	struct relative r = {0};
	D3DKMT_HANDLE fence, shared;

	check(sscanf(handles, "%u,%u", &fence, &shared) == 2, "two handles");
	connect_as(&r, socket, "second");
	/* This program has created no object yet that could have the same handle. */
	check(remote_kmt_signal(r.device, fence, 1) < 0, "a handle of the first means nothing");
	D3DKMT_OPENKEYEDMUTEX open = {.hSharedHandle = shared};
	check(!D3DKMTOpenKeyedMutex(&open), "what was shared can be opened");
	D3DKMT_RELEASEKEYEDMUTEX release = {.hKeyedMutex = open.hKeyedMutex};
	check(D3DKMTReleaseKeyedMutex(&release) == STATUS_INVALID_PARAMETER,
	      "the second does not own what the first owned");
	await_end(open.hKeyedMutex);
	struct remote_fence own = remote_kmt_fence(r.device, 0);
	check(!remote_kmt_signal(r.device, own.handle, 4) && *own.value == 4, "its own is its own");
	vidmm_disconnect(r.connection);
	return REMOTE_DONE;
}

int remote_relatives(const char *socket, const char *what)
{
	static const struct {
		const char *name;
		int (*run)(struct relative *r, const char *socket);
	} all[] = {{"keyed", keyed}, {"inside", inside},       {"mutex", mutex},
		   {"nt", nt},       {"fork", forked},         {"exec", exec_other},
		   {"name", named},  {"cancelled", cancelled}, {"content", content},
		   {"reuse", reuse}};
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
