/* SPDX-License-Identifier: MIT */
/*
 * pfnLockCb and pfnUnlockCb of an idle allocation that is resident in CPU-visible video memory. The
 * peer is two uncontended locked instructions, the lower bound of starting and ending a CPU access.
 * `busy` locks with DonotWait while the GPU writes, and is refused. `two_threads` counts the pairs
 * of both threads.
 */
#include "bench.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <d3dkmthk.h>
#include <d3dumddi.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

enum { DONOT_WAIT = 0x4, IGNORE_SYNC = 0x8, DISCARD = 0x80, NO_EXISTING_REFERENCE = 0x100 };
/* Large enough that waking the partner thread is negligible, even on a busy machine. */
enum { PAIRS_A_STEP = 65536 };
enum kind { IDLE, DISCARDING, BUSY, TWO_THREADS, THUNKS };

struct access {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	struct vidmm_device *device;
	const D3DDDI_DEVICECALLBACKS *callbacks;
	HANDLE handle;
	D3DKMT_HANDLE thunk; /* a second device, for the D3DKMT functions */
	D3DDDICB_CREATECONTEXT context;
	D3DKMT_HANDLE gate;
	uint32_t flags;
	_Atomic uint32_t failures;
	/* The output of locks, one for each thread. */
	struct {
		_Alignas(128) D3DKMT_HANDLE handle;
	} allocation[2];
	/* the partner thread, on the second CPU */
	pthread_t partner;
	bool has_partner;
	/* total number of pairs requested of the partner, and done by it */
	_Alignas(128) _Atomic uint32_t begun, done;
	_Atomic bool stop;
};

static D3DKMT_HANDLE allocate(struct access *access)
{
	struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 65536};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	if (access->callbacks->pfnAllocateCb(access->handle, &args) != S_OK)
		access->failures++;
	return info.hAllocation;
}

static void *lock(struct access *access, D3DKMT_HANDLE *allocation, uint32_t flags)
{
	D3DDDICB_LOCK args = {.hAllocation = *allocation, .Flags.Value = flags};
	HRESULT result = access->callbacks->pfnLockCb(access->handle, &args);

	*allocation = args.hAllocation;
	return result == S_OK ? args.pData : NULL;
}

static void unlock(struct access *access, D3DKMT_HANDLE allocation)
{
	D3DDDICB_UNLOCK args = {.NumAllocations = 1, .phAllocations = &allocation};

	if (access->callbacks->pfnUnlockCb(access->handle, &args) != S_OK)
		access->failures++;
}

static void pairs(struct access *access, D3DKMT_HANDLE *allocation, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++) {
		if (!lock(access, allocation, access->flags))
			access->failures++;
		unlock(access, *allocation);
	}
}

/* Lock and unlock by D3DKMTLock and D3DKMTUnlock, on the second device. */
static void thunk_pairs(struct access *access, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++) {
		D3DKMT_HANDLE handle = access->allocation[0].handle;
		D3DKMT_LOCK lock_args = {.hDevice = access->thunk, .hAllocation = handle};
		D3DKMT_UNLOCK unlock_args = {
			.hDevice = access->thunk, .NumAllocations = 1, .phAllocations = &handle};

		if (D3DKMTLock(&lock_args) || D3DKMTUnlock(&unlock_args))
			access->failures++;
	}
}

static bool open_thunk(struct access *access)
{
	struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 65536};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &wish,
				       .PrivateDriverDataSize = sizeof(wish)};
	D3DKMT_ENUMADAPTERS adapters = {0};
	D3DKMT_CREATEDEVICE device = {0};

	vidmm_d3dkmt_attach(access->process);
	if (D3DKMTEnumAdapters(&adapters) || !adapters.NumAdapters)
		return false;
	device.hAdapter = adapters.Adapters[0].hAdapter;
	if (D3DKMTCreateDevice(&device))
		return false;
	access->thunk = device.hDevice;
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = device.hDevice, .NumAllocations = 1, .pAllocationInfo2 = &info};
	if (D3DKMTCreateAllocation(&create))
		return false;
	access->allocation[0].handle = info.hAllocation;
	return true;
}

static bool open_device(struct access *access)
{
	static const uint64_t bar_bytes = 64 << 20;
	struct vidmm_host_options host = {.struct_size = sizeof(host), .kind = VIDMM_HOST_LINUX};
	struct vidmm_adapter_options adapter = {.struct_size = sizeof(adapter),
						.driver_entry = softgpu_driver_entry,
						.bar_sizes = &bar_bytes,
						.bar_count = 1};

	if (vidmm_host_create(&host, &access->host) < 0 ||
	    vidmm_adapter_start(access->host, &adapter, &access->adapter) < 0 ||
	    vidmm_process_open(access->host, "bench", &access->process) < 0 ||
	    vidmm_device_create(access->process, access->adapter, &access->device) < 0)
		return false;
	access->callbacks = vidmm_device_callbacks(access->device);
	access->handle = vidmm_device_handle(access->device);
	return access->callbacks->pfnCreateContextCb(access->handle, &access->context) == S_OK;
}

/*
 * Submits one buffer that writes the allocation. With GATE, the GPU completes it only after the
 * first word of that allocation is 1.
 */
static void submit(struct access *access, D3DKMT_HANDLE allocation, D3DKMT_HANDLE gate)
{
	struct softgpu_reference reference = {
		.command = {SOFTGPU_REFERENCE, SOFTGPU_FLAG_WRITE, sizeof(reference)}};
	struct softgpu_sync wait = {.command = {SOFTGPU_WAIT, 0, sizeof(wait)},
				    .operand = {.allocation = 1},
				    .value = 1};
	D3DDDICB_RENDER render = {.hContext = access->context.hContext,
				  .CommandLength = sizeof(reference),
				  .NumAllocations = 1};

	memcpy(access->context.pCommandBuffer, &reference, sizeof(reference));
	access->context.pAllocationList[0] =
		(D3DDDI_ALLOCATIONLIST){.hAllocation = allocation, .WriteOperation = 1};
	if (gate) {
		memcpy((char *)access->context.pCommandBuffer + sizeof(reference), &wait,
		       sizeof(wait));
		access->context.pAllocationList[1] = (D3DDDI_ALLOCATIONLIST){.hAllocation = gate};
		render.CommandLength += sizeof(wait);
		render.NumAllocations = 2;
	}
	if (access->callbacks->pfnRenderCb(access->handle, &render) != S_OK)
		access->failures++;
	access->context.pCommandBuffer = render.pNewCommandBuffer;
	access->context.pAllocationList = render.pNewAllocationList;
}

static void ask_partner(struct access *access, uint32_t pairs)
{
	atomic_store(&access->begun, pairs);
	syscall(SYS_futex, &access->begun, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Executes the requested pairs. Between runs it sleeps, so that it does not disturb other cases. */
static void *partner_main(void *context)
{
	struct access *access = context;
	uint32_t done = 0;

	bench_pin(1);
	while (!atomic_load_explicit(&access->stop, memory_order_relaxed)) {
		uint32_t begun = atomic_load_explicit(&access->begun, memory_order_acquire);

		if (begun == done) {
			syscall(SYS_futex, &access->begun, FUTEX_WAIT_PRIVATE, done, NULL, NULL, 0);
			continue;
		}
		pairs(access, &access->allocation[1].handle, begun - done);
		done = begun;
		atomic_store_explicit(&access->done, done, memory_order_release);
	}
	return NULL;
}

/* Creates two instances. The GPU has used the newer one last, so the other is retired and idle. */
static void prepare_renaming(struct access *access)
{
	access->flags = DISCARD;
	pairs(access, &access->allocation[0].handle, 1);
	submit(access, access->allocation[0].handle, 0);
	vidmm_adapter_wait_idle(access->adapter);
	access->flags = DISCARD | NO_EXISTING_REFERENCE;
}

static bool prepare(struct access *access, enum kind kind)
{
	if (!open_device(access))
		return false;
	access->allocation[0].handle = allocate(access);
	access->allocation[1].handle = allocate(access);
	access->gate = allocate(access);
	submit(access, access->allocation[0].handle, 0);
	submit(access, access->allocation[1].handle, 0);
	vidmm_adapter_wait_idle(access->adapter);
	if (kind == THUNKS && !open_thunk(access))
		return false;
	if (kind == DISCARDING)
		prepare_renaming(access);
	if (kind == BUSY)
		submit(access, access->allocation[0].handle, access->gate);
	if (kind == TWO_THREADS)
		access->has_partner = !pthread_create(&access->partner, NULL, partner_main, access);
	return !access->failures && (kind != TWO_THREADS || access->has_partner);
}

static void access_destroy(void *state)
{
	struct access *access = state;

	atomic_store(&access->stop, true);
	ask_partner(access, atomic_load(&access->begun) + 1);
	if (access->has_partner)
		pthread_join(access->partner, NULL);
	uint64_t *word =
		access->gate ? lock(access, &access->gate, IGNORE_SYNC | DONOT_WAIT) : NULL;
	if (word) {
		__atomic_store_n(word, 1, __ATOMIC_RELEASE);
		unlock(access, access->gate);
	}
	if (access->thunk) {
		D3DKMT_DESTROYDEVICE device = {.hDevice = access->thunk};

		D3DKMTDestroyDevice(&device);
	}
	vidmm_device_destroy(access->device);
	vidmm_process_close(access->process);
	vidmm_adapter_stop(access->adapter);
	vidmm_host_destroy(access->host);
	free(access);
}

static void *access_create(const struct bench_case *self)
{
	struct access *access = aligned_alloc(128, sizeof(*access));

	if (!access)
		return NULL;
	memset(access, 0, sizeof(*access));
	if (prepare(access, (enum kind)self->parameter))
		return access;
	access_destroy(access);
	return NULL;
}

static void run_pairs(void *state, uint64_t steps)
{
	struct access *access = state;

	pairs(access, &access->allocation[0].handle, steps);
	bench_require(!access->failures);
}

/* Other cases attach processes of their own to the program, so this thread selects one. */
static void run_thunks(void *state, uint64_t steps)
{
	struct access *access = state;
	struct vidmm_process *before = vidmm_d3dkmt_enter(access->process);

	thunk_pairs(access, steps);
	vidmm_d3dkmt_enter(before);
	bench_require(!access->failures);
}

static void run_busy(void *state, uint64_t steps)
{
	struct access *access = state;

	uint64_t refused = 0;

	for (uint64_t i = 0; i < steps; i++)
		refused += !lock(access, &access->allocation[0].handle, DONOT_WAIT);
	bench_require(refused == steps);
}

static void run_both(void *state, uint64_t steps)
{
	struct access *access = state;
	uint32_t goal = atomic_load(&access->begun) + (uint32_t)(steps * PAIRS_A_STEP);

	ask_partner(access, goal);
	pairs(access, &access->allocation[0].handle, steps * PAIRS_A_STEP);
	while (atomic_load_explicit(&access->done, memory_order_acquire) != goal)
		;
	bench_require(!access->failures);
}

BENCH(.name = "lock.pair", .parameter = IDLE, .setup = access_create, .run = run_pairs,
      .teardown = access_destroy, .peer = "floor.xadd", .ratio_max = 2.8);
BENCH(.name = "lock.pair_d3dkmt", .parameter = THUNKS, .setup = access_create, .run = run_thunks,
      .teardown = access_destroy, .peer = "lock.pair", .ratio_max = 1.2);
BENCH(.name = "lock.pair_discard", .parameter = DISCARDING, .setup = access_create,
      .run = run_pairs, .teardown = access_destroy, .peer = "lock.pair", .ratio_max = 2);
BENCH(.name = "lock.busy_turned_away", .parameter = BUSY, .setup = access_create, .run = run_busy,
      .teardown = access_destroy, .peer = "lock.pair", .ratio_max = 1);
BENCH(.name = "lock.pair_two_threads", .threads = 2, .per_run = 2 * PAIRS_A_STEP,
      .parameter = TWO_THREADS, .setup = access_create, .run = run_both, .teardown = access_destroy,
      .peer = "lock.pair", .ratio_max = 0.56);
