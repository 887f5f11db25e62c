/* SPDX-License-Identifier: MIT */
/*
 * From pfnRenderCb to SubmitCommand with everything resident, relative to the lower bound for each
 * reference. The miniport is softgpu with minimal entries: Render emits as many patch locations as
 * the case needs, Patch does nothing, and a packet is complete when it is submitted. The result is
 * therefore the library's cost: door, allocation list, residency, queues, interrupt and DPC.
 */
#include "bare.h"
#include "bench.h"
#include "bench_null.h"

#include <d3dumddi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

#include "memory/memory.h"
#include "object/hazard.h"
#include "object/object.h"

#define LIST_MAX   16384u
#define PAGE_BYTES 4096u
#define VRAM_BYTES (UINT64_C(512) << 20)

/* ---- a world with a given number of allocations ---- */

struct context {
	HANDLE handle, device;
	D3DDDI_ALLOCATIONLIST *list;
	void *commands;
};

struct submit {
	/* A second process, if there is one, has the second context and its allocations. */
	struct bench_null_world world;
	struct context context[2];
	D3DKMT_HANDLE *allocations;
	uint32_t references, patches;
	/* the second thread of two; not in a cache line that both threads read */
	struct partner *partner;
};

struct partner {
	struct submit *submit;
	pthread_t thread;
	sem_t begin;
	/* total number of submissions requested; UINT64_MAX: end of the thread */
	_Alignas(64) _Atomic uint64_t go;
	_Alignas(64) _Atomic uint64_t done;
};

static void submit_destroy(void *state)
{
	struct submit *s = state;

	if (s->partner) {
		atomic_store(&s->partner->go, UINT64_MAX);
		sem_post(&s->partner->begin);
		pthread_join(s->partner->thread, NULL);
		free(s->partner);
	}
	bench_null_world_finish(&s->world);
	free(s->allocations);
	free(s);
}

static bool start(struct submit *s, bool null, uint32_t processes)
{
	const struct vidmm_registry_value registry[] = {{"EngineBytesPerUs", 0},
							{"AllocationListSize", LIST_MAX},
							{"PatchLocationListSize", LIST_MAX},
							{"DmaBufferSegmentSet", 0}};
	const struct vidmm_adapter_options options = {.registry = registry, .registry_count = 4};

	return bench_null_world_start(&s->world, null ? bench_null_entries : NULL, VRAM_BYTES,
				      &options, processes);
}

/* The device of a context and its allocations. */
static HANDLE device_of(const struct submit *s, uint32_t context)
{
	return vidmm_device_handle(s->world.device[context && s->world.device[1]]);
}

static bool create_contexts(struct submit *s)
{
	for (uint32_t i = 0; i < 2; i++) {
		D3DDDICB_CREATECONTEXT create = {.NodeOrdinal = i, .EngineAffinity = 1};

		if (FAILED(s->world.cb->pfnCreateContextCb(device_of(s, i), &create)))
			return false;
		s->context[i] = (struct context){create.hContext, device_of(s, i),
						 create.pAllocationList, create.pCommandBuffer};
	}
	return true;
}

static bool allocate(struct submit *s, uint32_t count)
{
	s->allocations = calloc(count, sizeof(*s->allocations));
	for (uint32_t i = 0; s->allocations && i < count; i++) {
		struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
						  .size_bytes = PAGE_BYTES,
						  .segment_set = 0x1};
		D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
					      .PrivateDriverDataSize = sizeof(wish)};
		D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

		if (FAILED(s->world.cb->pfnAllocateCb(device_of(s, i >= s->references), &args)))
			return false;
		s->allocations[i] = info.hAllocation;
	}
	return s->allocations != NULL;
}

/*
 * Fills the list with the first allocations in an order that a hardware prefetcher cannot predict.
 */
static void fill_list(struct submit *s, struct context *c, uint32_t first)
{
	for (uint32_t i = 0; i < s->references; i++)
		c->list[i] = (D3DDDI_ALLOCATIONLIST){
			.hAllocation = s->allocations[first + (uint64_t)i * 7919 % s->references]};
}

static void submit_once(struct submit *s, struct context *c)
{
	D3DDDICB_RENDER render = {
		.hContext = c->handle, .CommandLength = 8, .NumAllocations = s->references};

	if (FAILED(s->world.cb->pfnRenderCb(c->device, &render)))
		abort();
}

/* Makes all allocations resident before the measurement. */
static void warm_up(struct submit *s, uint32_t count)
{
	uint32_t references = s->references;
	uint32_t most = s->world.device[1] ? references : LIST_MAX; /* of one device */

	for (uint32_t done = 0; done < count; done += s->references) {
		struct context *c = &s->context[done && s->world.device[1]];

		s->references = count - done < most ? count - done : most;
		bench_null_patches(s->references);
		for (uint32_t i = 0; i < s->references; i++)
			c->list[i] =
				(D3DDDI_ALLOCATIONLIST){.hAllocation = s->allocations[done + i]};
		submit_once(s, c);
		vidmm_adapter_wait_idle(s->world.adapter);
	}
	s->references = references;
	bench_null_patches(s->patches);
}

#define PARAMETER(references, patches, among) \
	((uint64_t)(references) | (uint64_t)(patches) << 20 | (uint64_t)(among) << 40)
#define TWO_PROCESSES ((uint64_t)1 << 63)

static uint32_t among_of(const struct bench_case *self)
{
	return (uint32_t)(self->parameter >> 40 & 0x7FFFFF);
}

static void *submit_create(const struct bench_case *self)
{
	struct submit *s = calloc(1, sizeof(*s));
	uint32_t among = among_of(self);

	if (!s)
		return NULL;
	s->references = self->parameter & 0xFFFFF;
	s->patches = self->parameter >> 20 & 0xFFFFF;
	if (!start(s, true, self->parameter & TWO_PROCESSES ? 2 : 1) || !create_contexts(s) ||
	    !allocate(s, among)) {
		submit_destroy(s);
		return NULL;
	}
	warm_up(s, among);
	fill_list(s, &s->context[0], 0);
	return s;
}

static void run_submit(void *state, uint64_t steps)
{
	struct submit *s = state;

	bench_null_patches(s->patches);
	while (steps--)
		submit_once(s, &s->context[0]);
}

/* One reference and one patch location: the fixed cost of a submission. */
/* 250 ns where a system call takes 105 */
BENCH(.name = "submit.fixed", .peer = "floor.getpid", .ratio_max = 2.4,
      .parameter = PARAMETER(1, 1, 1), .setup = submit_create, .run = run_submit,
      .teardown = submit_destroy);
#define REFERENCES(text, n, most)                                                   \
	BENCH(.name = "submit.reference_" text, .peer = "floor.reference_" text,    \
	      .ratio_max = (most), .per_run = (n), .parameter = PARAMETER(n, 0, n), \
	      .setup = submit_create, .run = run_submit, .teardown = submit_destroy)
#define PATCHED(text, n)                                                                        \
	BENCH(.name = "submit.patched_" text, .peer = "submit.reference_" text, .per_run = (n), \
	      .parameter = PARAMETER(n, n, n), .setup = submit_create, .run = run_submit,       \
	      .teardown = submit_destroy)
REFERENCES("100", 100, 6);
PATCHED("100", 100);
REFERENCES("1k", 1000, 3);
PATCHED("1k", 1000);
REFERENCES("10k", 10000, 3);
PATCHED("10k", 10000);
/* The number of live allocations must not matter: the same thousand among 100,000. */
BENCH(.name = "submit.patched_1k_of_100k", .peer = "submit.patched_1k", .ratio_max = 1.1,
      .per_run = 1000, .parameter = PARAMETER(1000, 1000, 100000), .setup = submit_create,
      .run = run_submit, .teardown = submit_destroy);

/*
 * ---- the memory manager's part: handle, checks and address; for the patch list, residency and
 * stamps ----
 */

struct memory_part {
	struct vmm_device *device;
	struct vmm_instance *instances[LIST_MAX];
	D3DDDI_PATCHLOCATIONLIST patches[LIST_MAX];
};

/* Captures entries as a render does; `ahead`, a constant, prefetches later ones. */
VMM_ALWAYS_INLINE uint64_t capture_range(const D3DDDI_ALLOCATIONLIST *list, struct memory_part *m,
					 uint32_t first, uint32_t end, bool ahead)
{
	const struct vmm_device *device = m->device;
	const struct vmm_handle_view handles = vmm_handle_view(&device->process->handles);
	uint32_t in_place = 1;
	uint64_t sum = 0;

	for (uint32_t i = first; i < end; i++) {
		if (ahead)
			vmm_ref_prefetch_handle(&handles, list[i + VMM_LIST_AHEAD].hAllocation);
		const struct vmm_ref *ref =
			vmm_handle_find(&handles, list[i].hAllocation, VMM_HANDLE_ALLOCATION);

		if (!ref || ref->device != device ||
		    !vmm_memory_is_plain(ref->allocation, ref->instance))
			abort();
		in_place &= ref->allocation->serving >> ref->instance->segment;
		m->instances[i] = ref->instance;
		sum += ref->instance->address;
	}
	if (!in_place)
		abort();
	return sum;
}

/* Returns a value that depends on all entries, so that the compiler keeps the work. */
static uint64_t capture(const struct submit *s, struct memory_part *m)
{
	const D3DDDI_ALLOCATIONLIST *list = s->context[0].list;
	uint32_t count = s->references, far = vmm_list_with_prefetch(count);

	vmm_process_lock(m->device->process);
	uint64_t sum =
		capture_range(list, m, 0, far, true) + capture_range(list, m, far, count, false);
	vmm_process_unlock(m->device->process);
	return sum;
}

static void run_memory(void *state, uint64_t steps)
{
	struct submit *s = state;
	struct vmm_hazard_guard visit;
	static struct memory_part m;
	/* a number that no other preparation uses */
	static uint64_t preparation = UINT64_C(1) << 40;

	m.device = vmm_hazard_enter(&visit, VMM_HAZARD_DEVICE, device_of(s, 0));
	for (uint32_t i = 0; i < s->references; i++)
		m.patches[i].AllocationIndex = i;
	while (steps--) {
		/* a number of a completed packet, which no thread waits for */
		const struct vmm_use_in_place use = {.instances = m.instances,
						     .instance_count = s->references,
						     .patches = m.patches,
						     .end = s->references,
						     .sequence = 1,
						     .preparation = ++preparation};

		vmm_paging_lock(m.device->adapter);
		uint64_t sum = capture(s, &m);
		bench_use(sum + vmm_memory_use_in_place(m.device->adapter, &use));
		vmm_paging_unlock(m.device->adapter);
	}
	vmm_hazard_leave(&visit);
}

#define RESIDENCY(text, n)                                                                       \
	BENCH(.name = "submit.residency_" text, .peer = "floor.reference_" text, .ratio_max = 2, \
	      .per_run = (n), .parameter = PARAMETER(n, 0, n), .setup = submit_create,           \
	      .run = run_memory, .teardown = submit_destroy)
RESIDENCY("100", 100);
RESIDENCY("1k", 1000);
RESIDENCY("10k", 10000);

/* ---- two contexts in two threads ---- */

static void *partner_main(void *argument)
{
	struct partner *p = argument;
	uint64_t done = 0, go;

	bench_pin(1);
	while (sem_wait(&p->begin) == 0 && (go = atomic_load(&p->go)) != UINT64_MAX) {
		for (; done < go; done++)
			submit_once(p->submit, &p->submit->context[1]);
		atomic_store(&p->done, done);
	}
	return NULL;
}

/*
 * One step is this many submissions of each thread, so that starting the other thread is
 * negligible.
 */
enum { PAIR_BATCH = 64 };

static void run_pair(void *state, uint64_t steps)
{
	struct submit *s = state;
	uint64_t count = steps * PAIR_BATCH, go = atomic_load(&s->partner->go) + count;

	bench_null_patches(s->patches);
	atomic_store(&s->partner->go, go);
	sem_post(&s->partner->begin);
	for (uint64_t i = 0; i < count; i++)
		submit_once(s, &s->context[0]);
	while (atomic_load(&s->partner->done) < go)
		;
}

static void *pair_create(const struct bench_case *self)
{
	struct submit *s = submit_create(self);
	uint32_t among = among_of(self);

	if (!s)
		return NULL;
	fill_list(s, &s->context[1], among - s->references);
	struct partner *p = aligned_alloc(64, sizeof(*p));
	if (p) {
		memset(p, 0, sizeof(*p));
		p->submit = s;
		sem_init(&p->begin, 0, 0);
		if (pthread_create(&p->thread, NULL, partner_main, p) == 0) {
			s->partner = p;
			/* run once: starting the thread must not be part of the calibration */
			run_pair(s, 1);
			return s;
		}
	}
	free(p);
	submit_destroy(s);
	return NULL;
}

/*
 * The time for a submission of both threads together; the goal is 1 / 1.6 of one thread. Each
 * thread has separate allocations. If they share allocations, the cache lines of each allocation
 * move between the CPUs with every submission.
 */
BENCH(.name = "submit.two_threads_100", .peer = "submit.patched_100", .ratio_max = 0.6,
      .threads = 2, .per_run = 200 * PAIR_BATCH, .parameter = PARAMETER(100, 100, 200),
      .setup = pair_create, .run = run_pair, .teardown = submit_destroy);
/* The same from two processes: the second thread's context and allocations are in the second. */
BENCH(.name = "submit.two_processes_100", .peer = "submit.patched_100", .ratio_max = 0.55,
      .threads = 2, .per_run = 200 * PAIR_BATCH,
      .parameter = PARAMETER(100, 100, 200) | TWO_PROCESSES, .setup = pair_create, .run = run_pair,
      .teardown = submit_destroy);
BENCH(.name = "submit.two_threads_same_100", .peer = "submit.patched_100", .threads = 2,
      .per_run = 200 * PAIR_BATCH, .parameter = PARAMETER(100, 100, 100), .setup = pair_create,
      .run = run_pair, .teardown = submit_destroy);

/* ---- through softgpu: to its engine and back ---- */

static void *empty_create(const struct bench_case *self)
{
	struct submit *s = calloc(1, sizeof(*s));

	(void)self;
	if (!s)
		return NULL;
	if (!start(s, false, 1) || !create_contexts(s)) {
		submit_destroy(s);
		return NULL;
	}
	return s;
}

static void run_empty(void *state, uint64_t steps)
{
	static const struct softgpu_command nop = {SOFTGPU_NOP, 0, sizeof(nop)};
	struct submit *s = state;

	while (steps--) {
		D3DDDICB_RENDER render = {.hContext = s->context[0].handle,
					  .CommandLength = sizeof(nop)};

		memcpy(s->context[0].commands, &nop, sizeof(nop));

		if (FAILED(s->world.cb->pfnRenderCb(device_of(s, 0), &render)))
			abort();
		vidmm_adapter_wait_idle(s->world.adapter);
	}
}

/* A completion is two hand-offs between threads. */
BENCH(.name = "submit.empty_to_completion", .peer = "floor.futex_hand_off", .ratio_max = 1.5,
      .threads = 2, .per_run = 2, .setup = empty_create, .run = run_empty,
      .teardown = submit_destroy);

/* ---- a context that waits for another context ---- */

struct relay {
	struct submit *submit;
	D3DKMT_HANDLE fence;
	uint64_t value;
	int event;
};

static void relay_destroy(void *state)
{
	struct relay *r = state;

	if (r->submit)
		submit_destroy(r->submit);
	close(r->event);
	free(r);
}

static void *relay_create(const struct bench_case *self)
{
	struct relay *r = calloc(1, sizeof(*r));
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 create = {.Info.Type = D3DDDI_FENCE};

	if (!r)
		return NULL;
	r->event = eventfd(0, EFD_CLOEXEC);
	r->submit = empty_create(self);
	if (r->submit && r->event >= 0 &&
	    SUCCEEDED(r->submit->world.cb->pfnCreateSynchronizationObject2Cb(
		    device_of(r->submit, 0), &create))) {
		r->fence = create.hSyncObject;
		return r;
	}
	relay_destroy(r);
	return NULL;
}

static void render_nop(struct submit *s, const struct context *context)
{
	static const struct softgpu_command nop = {SOFTGPU_NOP, 0, sizeof(nop)};
	D3DDDICB_RENDER render = {.hContext = context->handle, .CommandLength = sizeof(nop)};

	memcpy(context->commands, &nop, sizeof(nop));
	if (FAILED(s->world.cb->pfnRenderCb(device_of(s, 0), &render)))
		abort();
}

/*
 * The second context waits for a signal of the first, each with an empty buffer. An event then
 * reports that the second is complete.
 */
static void run_relay(void *state, uint64_t steps)
{
	struct relay *r = state;
	struct submit *s = r->submit;
	HANDLE device = device_of(s, 0);
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT2 wait = {.hContext = s->context[1].handle,
						       .ObjectCount = 1,
						       .ObjectHandleArray = {r->fence}};
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2 signal = {.hContext = s->context[0].handle,
							.ObjectCount = 1,
							.ObjectHandleArray = {r->fence}},
					      end = {.hContext = s->context[1].handle,
						     .Flags.EnqueueCpuEvent = 1};
	uint64_t count;

	end.CpuEventHandle = (HANDLE)(intptr_t)r->event;
	while (steps--) {
		wait.FenceValue = signal.FenceValue = ++r->value;
		if (FAILED(s->world.cb->pfnWaitForSynchronizationObject2Cb(device, &wait)))
			abort();
		render_nop(s, &s->context[1]);
		if (FAILED(s->world.cb->pfnSignalSynchronizationObject2Cb(device, &end)))
			abort();
		render_nop(s, &s->context[0]);
		if (FAILED(s->world.cb->pfnSignalSynchronizationObject2Cb(device, &signal)) ||
		    read(r->event, &count, sizeof(count)) != (ssize_t)sizeof(count))
			abort();
	}
}

/* Two consecutive round trips; the second one begins without the client. */
BENCH(.name = "submit.signal_to_wait", .peer = "submit.empty_to_completion", .ratio_max = 2,
      .threads = 2, .per_run = 2, .setup = relay_create, .run = run_relay,
      .teardown = relay_destroy);
