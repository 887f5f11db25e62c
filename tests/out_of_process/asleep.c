/* SPDX-License-Identifier: MIT */
/*
 * asleep: a client with a thread in every place where a thread can be when its host ends. Threads
 * sleep in the page of a fence, take turns with another client by such a page, wait inside calls,
 * or lock by a lock word. Work is queued behind a wait that is never satisfied, and memory is
 * locked. Every operation may end only with the status that the device has been removed, and locked
 * memory stays mapped. Argument: "make" makes the fences. "open" opens those of the other client by
 * name. "sleep" makes a private fence: all threads sleep in its page, or wait in a function that
 * the host has called, so that none is in a call. The client writes a byte to its output when it
 * has its fences, and another when all threads are at their places.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <support/scripted_miniport.h>

#include "base/fence_word.h"
#include "client.h"

enum { SLEEPERS = 12, NEVER = 1000000, HELD_BYTES = 128 << 10, HOARD_BYTES = 7 << 20 };

struct asleep {
	struct remote_device d;
	struct client_context context;
	D3DKMT_HANDLE device, busy, held, counted;
	struct remote_fence fence, turns;
	D3DKMT_HANDLE mutex;
	uint32_t first; /* of the values that it signals */
	int fds[2];     /* of the fences, until the other one has them */
	bool guest;     /* of a separate function */
	_Atomic bool called, all_ended;
	uint32_t *words;
};

struct thread {
	pthread_t thread;
	struct asleep *a;
	const char *what;
	int32_t (*run)(struct asleep *a, struct thread *t);
	int32_t status;
	_Atomic pid_t task;
	_Atomic uint32_t rounds;
	bool is_to_sleep;
};

static int32_t sleep_in_page(struct asleep *a, struct thread *t)
{
	(void)t;
	return remote_kmt_wait(a->device, a->fence.handle, NEVER);
}

static int32_t take_turns(struct asleep *a, struct thread *t)
{
	int32_t status = STATUS_SUCCESS;

	for (uint64_t i = 1; status == STATUS_SUCCESS; i++) {
		status = remote_kmt_wait(a->device, a->turns.handle, 2 * i + a->first - 1);
		if (status == STATUS_SUCCESS)
			status = remote_kmt_signal(a->device, a->turns.handle, 2 * i + a->first);
		atomic_fetch_add(&t->rounds, 1);
	}
	return status;
}

/* Waits a quarter of an hour at most. */
static int32_t acquire(struct asleep *a, struct thread *t)
{
	LARGE_INTEGER timeout = {.QuadPart = -9000000000};
	D3DKMT_ACQUIREKEYEDMUTEX args = {.hKeyedMutex = a->mutex, .Key = 7, .pTimeout = &timeout};

	(void)t;
	return D3DKMTAcquireKeyedMutex(&args);
}

/* Without a host there is no new buffer. */
static HRESULT submit(struct asleep *a)
{
	struct client_context *c = &a->context;
	D3DDDICB_RENDER args = {.CommandLength = c->command_bytes,
				.NumAllocations = c->allocations,
				.NumPatchLocations = c->patches,
				.hContext = c->c.hContext};
	HRESULT status = a->d.device.cb->pfnRenderCb(a->d.device.handle, &args);

	c->c.pCommandBuffer = args.pNewCommandBuffer;
	c->c.pAllocationList = args.pNewAllocationList;
	c->c.pPatchLocationList = args.pNewPatchLocationList;
	c->command_bytes = c->allocations = c->patches = 0;
	return status;
}

/* The lock waits for the GPU. */
static int32_t lock_behind_gpu(struct asleep *a, struct thread *t)
{
	HRESULT status = S_OK;
	void *data;

	while (SUCCEEDED(status)) {
		client_stall(&a->context, 20000000);
		client_fill(&a->context, a->busy, 4096, 7);
		status = submit(a);
		if (SUCCEEDED(status))
			status = client_try_lock(&a->d.device, &a->busy, 0, &data);
		if (SUCCEEDED(status))
			status = client_unlock(&a->d.device, a->busy);
		atomic_fetch_add(&t->rounds, 1);
	}
	return status;
}

/* Locks by the lock word, except for the first lock. */
static int32_t lock_and_count(struct asleep *a, struct thread *t)
{
	HRESULT status = S_OK;
	uint32_t number = 0;
	void *data;

	for (;;) {
		status = client_try_lock(&a->d.device, &a->counted, 0, &data);
		if (FAILED(status))
			return status;
		if (*(uint32_t *)data != number)
			remote_end(REMOTE_WRONG);
		*(uint32_t *)data = ++number;
		status = client_unlock(&a->d.device, a->counted);
		if (FAILED(status))
			return status;
		atomic_fetch_add(&t->rounds, 1);
	}
}

static void *run(void *argument)
{
	struct thread *t = argument;

	atomic_store(&t->task, (pid_t)syscall(SYS_gettid));
	t->status = t->run(t->a, t);
	return NULL;
}

/* ---- preparations ---- */

static struct remote_fence fence_of(struct asleep *a, const char *name, bool made, int *fd)
{
	struct remote_fence fence;
	NTSTATUS status;

	if (made) {
		fence = remote_kmt_fence(a->device, REMOTE_SHARED_BY_NT);
		status = remote_kmt_share(fence.handle, name, fd);
	} else {
		status = remote_kmt_open_name(name, fd);
		if (NT_SUCCESS(status))
			status = remote_kmt_open(a->device, *fd, &fence);
	}
	/* The first call gets the page. The maker may be at a higher value already (MFN-23). */
	if (NT_SUCCESS(status))
		status = made ? remote_kmt_signal(a->device, fence.handle, 1)
			      : remote_kmt_wait(a->device, fence.handle, 1);
	if (!NT_SUCCESS(status))
		remote_failed(name, status);
	return fence;
}

/*
 * Queues work that never completes: a context waits for a value that is never signaled, with a
 * signal behind it.
 */
static void queue_work(struct asleep *a)
{
	D3DKMT_CREATECONTEXT create = {.hDevice = a->device, .EngineAffinity = 1};
	const UINT64 value = NEVER;
	NTSTATUS status = D3DKMTCreateContext(&create);
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {
		.hContext = create.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &a->fence.handle,
		.MonitoredFenceValueArray = &value};
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {
		.hContext = create.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &a->turns.handle,
		.MonitoredFenceValueArray = &value};

	if (NT_SUCCESS(status))
		status = D3DKMTWaitForSynchronizationObjectFromGpu(&wait);
	if (NT_SUCCESS(status))
		status = D3DKMTSignalSynchronizationObjectFromGpu(&signal);
	if (!NT_SUCCESS(status))
		remote_failed("work behind a wait", status);
}

static void APIENTRY wait_for_all(D3DKMT_TRIMNOTIFICATION *args)
{
	struct asleep *a = args->Context;

	atomic_store(&a->called, true);
	while (!atomic_load(&a->all_ended))
		sched_yield();
}

/*
 * It uses so much memory that the other client's reservation reduces its budget (PRI-13), so its
 * trim callback is called (RES-09).
 */
static void be_called(struct asleep *a, LUID adapter)
{
	struct scripted_allocation spec = {
		.size_bytes = HOARD_BYTES, .flags = 0x8001, .read_set = 1, .write_set = 1};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = a->device, .NumAllocations = 1, .pAllocationInfo = &info};
	D3DKMT_CREATEPAGINGQUEUE queue = {.hDevice = a->device};
	D3DDDI_MAKERESIDENT make = {.NumAllocations = 1};
	D3DKMT_REGISTERTRIMNOTIFICATION trim = {.AdapterLuid = adapter,
						.hDevice = a->device,
						.Callback = wait_for_all,
						.Context = a};
	NTSTATUS status = D3DKMTCreateAllocation(&create);

	if (NT_SUCCESS(status))
		status = D3DKMTCreatePagingQueue(&queue);
	make.hPagingQueue = queue.hPagingQueue;
	make.AllocationList = &info.hAllocation;
	if (NT_SUCCESS(status))
		status = D3DKMTMakeResident(&make);
	if (NT_SUCCESS(status))
		status = D3DKMTRegisterTrimNotification(&trim);
	if (!NT_SUCCESS(status))
		remote_failed("what is to be trimmed", status);
	while (*(volatile uint64_t *)queue.FenceValueCPUVirtualAddress < make.PagingFenceValue)
		sched_yield();
}

static void have_the_other_called(D3DKMT_HANDLE adapter)
{
	const D3DKMT_CHANGEVIDEOMEMORYRESERVATION args = {
		.hAdapter = adapter, .Reservation = SCRIPTED_BAR_BYTES - HOARD_BYTES / 2};
	NTSTATUS status = D3DKMTChangeVideoMemoryReservation(&args);

	if (!NT_SUCCESS(status))
		remote_failed("a reservation", status);
}

static void begin(struct asleep *a, const char *socket, bool made, bool sleeps)
{
	D3DKMT_ADAPTERINFO adapters[4];
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 4, .pAdapters = adapters};
	D3DKMT_CREATEDEVICE device = {0};
	D3DKMT_CREATEKEYEDMUTEX mutex = {.InitialValue = 0};

	remote_open(&a->d, socket, made ? "asleep" : "asleep, too", REMOTE_SOFTGPU);
	vidmm_connection_attach(a->d.connection);
	NTSTATUS status = D3DKMTEnumAdapters2(&list);
	device.hAdapter = adapters[REMOTE_SCRIPTED].hAdapter;
	if (NT_SUCCESS(status))
		status = D3DKMTCreateDevice(&device);
	if (NT_SUCCESS(status))
		status = D3DKMTCreateKeyedMutex(&mutex);
	if (!NT_SUCCESS(status))
		remote_failed("a device", status);
	a->device = device.hDevice;
	a->mutex = mutex.hKeyedMutex;
	a->first = made ? 0 : 1;
	/* A client that wakes its own sleeping threads wakes all that sleep on that fence. */
	a->fence = fence_of(a, sleeps ? "alone" : "asleep", made || sleeps, &a->fds[0]);
	a->turns = fence_of(a, "turns", made, &a->fds[1]);
	queue_work(a);
	if (sleeps)
		be_called(a, adapters[REMOTE_SCRIPTED].AdapterLuid);
	else if (!made)
		have_the_other_called(device.hAdapter);
	a->busy = client_allocate(&a->d.device, 4096, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	a->counted = client_allocate(&a->d.device, 4096, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	a->held = client_allocate(&a->d.device, HELD_BYTES, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	client_context(&a->d.device, 0, &a->context);
	/* The first lock is a message, later locks use the word. */
	for (uint32_t i = 0; i < 3; i++)
		a->words = client_lock(&a->d.device, a->held, 0);
	for (uint32_t i = 0; i < HELD_BYTES / 4; i++)
		a->words[i] = i ^ (uint32_t)getpid();
}

/* Returns when the threads seem to sleep; a thread that does not sleep yet ends in the same way. */
static void await_all(const struct asleep *a, struct thread *threads, uint32_t count)
{
	const struct vmm_fence_page *page = (const void *)(uintptr_t)a->fence.value;

	while (atomic_load(&page->sleepers) < SLEEPERS || (a->guest && !atomic_load(&a->called)))
		sched_yield();
	for (uint32_t i = 0; i < count; i++)
		if (threads[i].is_to_sleep)
			while (!atomic_load(&threads[i].task) || !remote_sleeps(threads[i].task))
				sched_yield();
		else
			while (atomic_load(&threads[i].rounds) < 3)
				sched_yield();
}

int remote_asleep(const char *socket, const char *argument)
{
	static struct asleep a;
	static struct thread threads[SLEEPERS + 4] = {
		{.what = "a wait for a keyed mutex", .run = acquire, .is_to_sleep = true},
		{.what = "turns", .run = take_turns},
		{.what = "a lock behind the GPU", .run = lock_behind_gpu},
		{.what = "locks by a word", .run = lock_and_count}};
	const uint32_t count = sizeof(threads) / sizeof(threads[0]);
	const bool sleeps = !strcmp(argument, "sleep");
	int code = REMOTE_REMOVED;

	begin(&a, socket, !strcmp(argument, "make"), sleeps);
	a.guest = sleeps;
	for (uint32_t i = 0; i < count; i++) {
		if (!threads[i].run || sleeps) {
			threads[i].what = "a wait in a fence's page";
			threads[i].run = sleep_in_page;
			threads[i].is_to_sleep = true;
		}
		threads[i].a = &a;
		if (pthread_create(&threads[i].thread, NULL, run, &threads[i]))
			remote_end(1);
	}
	remote_say();
	await_all(&a, threads, count);
	/* A host cannot know of a descriptor that is closed after its end. */
	close(a.fds[0]);
	close(a.fds[1]);
	remote_say();
	for (uint32_t i = 0; i < count; i++) {
		pthread_join(threads[i].thread, NULL);
		if (threads[i].status == D3DDDIERR_DEVICEREMOVED ||
		    threads[i].status == (int32_t)STATUS_DEVICE_REMOVED)
			continue;
		fprintf(stderr, "# asleep %d: %s ends with 0x%08x\n", (int)getpid(),
			threads[i].what, (unsigned)threads[i].status);
		code = 1;
	}
	atomic_store(&a.all_ended, true);
	for (uint32_t i = 0; i < HELD_BYTES / 4; i++)
		if (a.words[i] != (i ^ (uint32_t)getpid()))
			return REMOTE_WRONG;
	vidmm_disconnect(a.d.connection);
	return code;
}
