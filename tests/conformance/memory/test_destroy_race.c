/* SPDX-License-Identifier: MIT */
/*
 * A client destroys a context, a resource or its device while its other threads use it. A call
 * that comes too late is answered as for a dead handle. No freed memory is accessed
 * (AddressSanitizer checks that).
 */
#include <sched.h>
#include <stdio.h>

#include "world.h"

/* Runs on threads other than cmocka's, where a failed cmocka assertion would not end the test. */
#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			fprintf(stderr, "%s:%d: seed %llu: %s\n", __FILE__, __LINE__, \
				(unsigned long long)t->shared->seed, #condition);     \
			abort();                                                      \
		}                                                                     \
	} while (0)

enum { THREADS = 4, ITEMS = 4, PERMANENT_CONTEXTS = 2 };

/* State shared by the threads of one client. Each entry may be dead when it is used. */
struct shared {
	struct world *world;
	struct client_device device;
	uint64_t seed;
	_Atomic(HANDLE) context[ITEMS];
	_Atomic uint32_t allocation[ITEMS];
	uint32_t global; /* a shared resource of another device */
	_Atomic uint32_t steps, refused;
	_Atomic bool gone; /* the device */
	bool stopping;     /* with its adapter */
};

struct thread {
	struct shared *shared;
	struct vidmm_thread *thread;
	uint64_t state;
};

/* Lets other threads run. On the simulator virtual time must pass, or the GPU makes no progress. */
static void let_others_run(struct world *w)
{
	struct vidmm_host *host = w->client.host;

	if (w->kind == VIDMM_HOST_SIM)
		vidmm_sleep_until_ns(host, vidmm_now_ns(host) + 200);
	else
		sched_yield();
}

static uint32_t draw(struct thread *t, uint32_t below)
{
	t->state = t->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(t->state >> 33) % below;
}

/* The permitted results of a call that raced with a destruction. */
static bool note(struct thread *t, HRESULT result)
{
	atomic_fetch_add(&t->shared->steps, 1);
	if (result == S_OK)
		return true;
	CHECK(result == E_INVALIDARG || result == D3DDDIERR_INVALIDHANDLE ||
	      result == D3DERR_WASSTILLDRAWING ||
	      (t->shared->stopping && result == D3DDDIERR_DEVICEREMOVED));
	atomic_fetch_add(&t->shared->refused, 1);
	return false;
}

/*
 * Contexts below PERMANENT_CONTEXTS are created before the race and end with the device: their
 * buffers hold a command that references an allocation. The buffers of the others must not be
 * written, since another thread may destroy them at any time.
 */
static void make_context(struct thread *t, uint32_t index)
{
	struct client_device *d = &t->shared->device;
	D3DDDICB_CREATECONTEXT create = {.NodeOrdinal = index % 2};
	struct softgpu_reference command = {.command = {SOFTGPU_REFERENCE, 0, sizeof(command)},
					    .operand = {.allocation = 0}};

	if (!note(t, d->cb->pfnCreateContextCb(d->handle, &create)))
		return;
	if (index < PERMANENT_CONTEXTS) {
		memcpy(create.pCommandBuffer, &command, sizeof(command));
		create.pAllocationList[0] = (D3DDDI_ALLOCATIONLIST){
			.hAllocation = atomic_load(&t->shared->allocation[index])};
	}
	atomic_store(&t->shared->context[index], create.hContext);
}

static void render(struct thread *t, uint32_t index)
{
	struct client_device *d = &t->shared->device;
	D3DDDICB_RENDER args = {
		.CommandLength = index < PERMANENT_CONTEXTS ? sizeof(struct softgpu_reference) : 0,
		.NumAllocations = 1,
		.hContext = atomic_load(&t->shared->context[index])};

	note(t, d->cb->pfnRenderCb(d->handle, &args));
}

static void end_context(struct thread *t, uint32_t index)
{
	struct client_device *d = &t->shared->device;
	D3DDDICB_DESTROYCONTEXT args = {.hContext = atomic_load(&t->shared->context[index])};

	if (note(t, d->cb->pfnDestroyContextCb(d->handle, &args)))
		make_context(t, index);
}

static void allocate(struct thread *t, uint32_t index, HANDLE resource)
{
	struct softgpu_allocation wish = wish_of((1 + draw(t, 8)) * 16 * KIB, CPU, 0);
	D3DKMT_HANDLE handle;

	wish.renaming_limit = 2;
	if (note(t, client_try_allocate(&t->shared->device, &wish, resource, &handle, NULL)))
		atomic_store(&t->shared->allocation[index], handle);
}

static void deallocate(struct thread *t, D3DKMT_HANDLE handle, HANDLE resource)
{
	struct client_device *d = &t->shared->device;
	D3DDDICB_DEALLOCATE args = {
		.hResource = resource, .NumAllocations = 1, .HandleList = &handle};

	note(t, d->cb->pfnDeallocateCb(d->handle, &args));
}

static void lock(struct thread *t, D3DKMT_HANDLE handle)
{
	static const uint32_t flags[] = {0, DISCARD, DISCARD | NO_EXISTING_REFERENCE, DONOT_WAIT};

	if (note(t, client_try_lock(&t->shared->device, &handle, flags[draw(t, 4)], NULL)))
		note(t, client_unlock(&t->shared->device, handle));
}

static void offer(struct thread *t, D3DKMT_HANDLE handle)
{
	struct client_device *d = &t->shared->device;
	D3DDDICB_OFFERALLOCATIONS args = {
		.HandleList = &handle, .NumAllocations = 1, .Priority = 1};
	D3DDDICB_RECLAIMALLOCATIONS back = {.HandleList = &handle, .NumAllocations = 1};

	note(t, d->cb->pfnOfferAllocationsCb(d->handle, &args));
	note(t, d->cb->pfnReclaimAllocationsCb(d->handle, &back));
}

/* Every thread may use its handle at once, also a thread that only guesses it. */
static void open_shared(struct thread *t, uint32_t index)
{
	uint32_t resource, handle = 0, count = 1;
	vidmm_status status = vidmm_resource_open(t->shared->device.device, t->shared->global,
						  &resource, &handle, &count);

	atomic_fetch_add(&t->shared->steps, 1);
	CHECK(status == STATUS_SUCCESS || status == STATUS_INVALID_PARAMETER ||
	      (t->shared->stopping && status == STATUS_DEVICE_REMOVED));
	if (status == STATUS_SUCCESS)
		atomic_store(&t->shared->allocation[index], handle);
}

static void look(struct thread *t, D3DKMT_HANDLE handle)
{
	struct client_device *d = &t->shared->device;
	D3DDDI_RESIDENCYSTATUS status;
	UINT priority = 0x78000000;
	D3DDDICB_QUERYRESIDENCY query = {
		.NumAllocations = 1, .HandleList = &handle, .pResidencyStatus = &status};
	D3DDDICB_SETPRIORITY set = {
		.NumAllocations = 1, .HandleList = &handle, .pPriorities = &priority};

	note(t, d->cb->pfnQueryResidencyCb(d->handle, &query));
	note(t, d->cb->pfnSetPriorityCb(d->handle, &set));
}

static void step(struct thread *t)
{
	uint32_t index = draw(t, ITEMS);
	uint32_t handle = atomic_load(&t->shared->allocation[index]);
	HANDLE resource = &t->shared->allocation[index];

	switch (draw(t, 12)) {
	case 10:
		open_shared(t, index);
		break;
	case 11: /* the slot after the newest one is likely to be used next */
		deallocate(t, handle + draw(t, 4), NULL);
		break;
	case 0:
		end_context(t, PERMANENT_CONTEXTS + index % PERMANENT_CONTEXTS);
		break;
	case 1:
		deallocate(t, handle, NULL);
		allocate(t, index, NULL);
		break;
	case 2: /* two threads may create, extend and destroy one resource at once */
		allocate(t, index, resource);
		break;
	case 3:
		deallocate(t, 0, resource);
		break;
	case 4:
		offer(t, handle);
		break;
	case 5:
		look(t, handle);
		break;
	case 6:
	case 7:
		lock(t, handle);
		break;
	default:
		render(t, index);
	}
}

/*
 * The result of a call once the device has ended. `stopped`: what a call on a device of a stopped
 * adapter returns until one of the threads has destroyed it. (PNP-03)
 */
static void check_gone(const struct thread *t, HRESULT result, HRESULT stopped)
{
	CHECK(result == E_INVALIDARG || (t->shared->stopping && result == stopped));
}

/* Once the device is destroyed, every call reports that. */
static void expect_gone(struct thread *t)
{
	struct client_device *d = &t->shared->device;
	D3DKMT_HANDLE handle = atomic_load(&t->shared->allocation[0]);
	D3DDDICB_CREATECONTEXT create = {0};
	D3DDDICB_RENDER args = {.hContext = atomic_load(&t->shared->context[0])};
	D3DDDICB_DESTROYCONTEXT end = {.hContext = args.hContext};
	uint32_t shared_resource;
	vidmm_status status;

	check_gone(t, d->cb->pfnRenderCb(d->handle, &args), D3DDDIERR_DEVICEREMOVED);
	check_gone(t, d->cb->pfnCreateContextCb(d->handle, &create), D3DDDIERR_DEVICEREMOVED);
	check_gone(t, d->cb->pfnDestroyContextCb(d->handle, &end), S_OK);
	check_gone(t, client_try_lock(d, &handle, 0, NULL), D3DDDIERR_DEVICEREMOVED);
	check_gone(t, client_deallocate(d, handle), S_OK);
	status = vidmm_resource_share(d->device, 1, &shared_resource);
	CHECK(status == STATUS_INVALID_PARAMETER ||
	      (t->shared->stopping && status == STATUS_DEVICE_REMOVED));
	vidmm_device_destroy(d->device);
}

static void thread_main(void *argument)
{
	struct thread *t = argument;

	while (!atomic_load(&t->shared->gone)) {
		step(t);
		let_others_run(t->shared->world);
	}
	expect_gone(t);
}

static void prepare(struct shared *s, struct thread *maker)
{
	static int runtime;
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DKMT_HANDLE shared, resource;

	*maker = (struct thread){.shared = s};
	assert_int_equal(vidmm_resource_set_shared(s->world->device.device, &runtime), 0);
	assert_int_equal(
		client_try_allocate(&s->world->device, &wish, &runtime, &shared, &resource), S_OK);
	assert_int_equal(vidmm_resource_share(s->world->device.device, resource, &s->global), 0);
	client_open(&s->world->client, &s->device);
	for (uint32_t i = 0; i < ITEMS; i++) {
		allocate(maker, i, NULL);
		make_context(maker, i);
	}
}

/* Ends the device, its process, or the adapter with all of them. */
static void end_device(struct shared *s)
{
	if (s->stopping)
		vidmm_adapter_stop(s->world->client.adapter);
	else if (s->seed % 2)
		vidmm_device_destroy(s->device.device);
	else
		vidmm_process_close(s->device.process);
	atomic_store(&s->gone, true);
}

static void end_world(struct shared *s)
{
	struct world *w = s->world;

	assert_true(atomic_load(&s->refused) > 0);
	assert_int_equal(w->client.fatals, 0);
	if (s->stopping || s->seed % 2)
		vidmm_process_close(s->device.process);
	client_forget(&w->client);
	if (!s->stopping) {
		world_stop(w);
		return;
	}
	vidmm_process_close(w->device.process);
	vidmm_host_destroy(w->client.host);
}

/* One thread ends the device after that many steps of the others. */
static void run(void **state, uint64_t seed, uint32_t steps)
{
	struct client_options options = {
		.vram_bytes = MIB, .aperture_bytes = 4 * MIB, .seed = seed, .switch_per_1024 = 400};
	struct thread t[THREADS], maker;
	struct shared s;
	struct world w;

	world_start(&w, state, &options);
	memset(&s, 0, sizeof(s));
	s.world = &w;
	s.seed = seed;
	s.stopping = seed % 3 == 0;
	prepare(&s, &maker);
	for (uint32_t i = 0; i < THREADS; i++) {
		t[i] = (struct thread){.shared = &s, .state = seed * 1000 + i + 1};
		assert_int_equal(vidmm_thread_create(w.client.host, "client", thread_main, &t[i],
						     &t[i].thread),
				 0);
	}
	while (atomic_load(&s.steps) < steps)
		let_others_run(&w);
	end_device(&s);
	for (uint32_t i = 0; i < THREADS; i++)
		vidmm_thread_join(t[i].thread);
	end_world(&s);
}

static void calls_during_destruction_succeed_or_find_a_dead_handle(void **state)
{
	bool sim = *(uint32_t *)*state == VIDMM_HOST_SIM;

	for (uint64_t seed = 1; seed <= (sim ? 60 : 12); seed++)
		run(state, seed, (uint32_t)(40 + seed * 37 % 400));
}

/* ---- what the end waits for ---- */

struct ender {
	struct client_device *device;
	HANDLE context; /* NULL: the device */
	_Atomic bool done;
	HRESULT result;
};

static void destroyer_main(void *argument)
{
	struct ender *e = argument;
	D3DDDICB_DESTROYCONTEXT args = {.hContext = e->context};

	if (e->context)
		e->result = e->device->cb->pfnDestroyContextCb(e->device->handle, &args);
	else
		vidmm_device_destroy(e->device->device);
	atomic_store(&e->done, true);
}

/*
 * A second client whose only allocation is busy until the gate opens, and a lock that waits for
 * it.
 */
struct busy {
	struct world w;
	struct world other; /* for lock_on_thread: the gate's word and the second client's device */
	struct client_context context;
	D3DKMT_HANDLE a;
	struct helper locker;
};

static void busy_start(struct busy *b, void **state)
{
	world_start(&b->w, state, NULL);
	b->other = b->w;
	client_open(&b->w.client, &b->other.device);
	client_context(&b->other.device, 0, &b->context);
	b->a = client_allocate(&b->other.device, PAGE, CPU);
	gate_close(&b->w);
	b->other.gate_value = b->w.gate_value;
	client_submit(&b->w.context);
	client_reference(&b->context, b->a, true);
	client_submit(&b->context);
	lock_on_thread(&b->locker, &b->other, b->a, 0);
}

static void destroying_a_device_waits_for_its_running_calls(void **state)
{
	struct busy b;
	struct vidmm_thread *thread;
	D3DKMT_HANDLE again;

	busy_start(&b, state);
	struct ender e = {.device = &b.other.device};
	assert_int_equal(vidmm_thread_create(b.w.client.host, "ends the device", destroyer_main, &e,
					     &thread),
			 0);
	/* From now on calls are refused, while the one that is inside waits. */
	while (again = b.a,
	       client_try_lock(&b.other.device, &again, DONOT_WAIT, NULL) != E_INVALIDARG)
		let_others_run(&b.w);
	assert_false(atomic_load(&e.done));
	assert_int_equal(atomic_load(&b.locker.state), 1);
	gate_open(&b.w);
	helper_join(&b.locker);
	vidmm_thread_join(thread);
	assert_int_equal(b.locker.result, S_OK);
	assert_true(b.locker.gate_was_open);
	vidmm_process_close(b.other.device.process);
	client_forget(&b.w.client);
	world_stop(&b.w);
}

/*
 * A call on one context does not use another: a context is destroyed while a lock of the device
 * waits.
 */
static void destroying_a_context_does_not_wait_for_other_calls_of_its_device(void **state)
{
	struct busy b;
	struct client_context idle;

	busy_start(&b, state);
	client_context(&b.other.device, 1, &idle);
	client_context_end(&idle);
	assert_int_equal(atomic_load(&b.locker.state), 1);
	gate_open(&b.w);
	helper_join(&b.locker);
	assert_int_equal(b.locker.result, S_OK);
	client_context_end(&b.context);
	client_close(&b.other.device);
	world_stop(&b.w);
}

/* Two threads destroy one context: one of them succeeds. */
static void only_one_of_two_threads_destroys_a_context(void **state)
{
	struct busy b;
	struct vidmm_thread *thread;
	D3DDDICB_DESTROYCONTEXT args;

	busy_start(&b, state);
	args.hContext = b.context.c.hContext;
	struct ender e = {.device = &b.other.device, .context = b.context.c.hContext};
	assert_int_equal(vidmm_thread_create(b.w.client.host, "ends the context", destroyer_main,
					     &e, &thread),
			 0);
	/*
	 * The destruction waits for the gate (SUB-29), but the handle is dead at once. The thread
	 * that checks this must not queue anything: the buffers of the context return only when
	 * the gate opens, so a call that waited for a buffer would wait for the thread that
	 * destroys the context.
	 */
	D3DDDICB_RENDER too_long = {.hContext = args.hContext, .CommandLength = UINT32_MAX};
	while (!client_found(&b.w.client, "DMA-09")) {
		assert_int_equal(b.other.device.cb->pfnRenderCb(b.other.device.handle, &too_long),
				 E_INVALIDARG);
		let_others_run(&b.w);
	}
	assert_int_equal(b.other.device.cb->pfnDestroyContextCb(b.other.device.handle, &args),
			 E_INVALIDARG);
	assert_false(atomic_load(&e.done));
	gate_open(&b.w);
	helper_join(&b.locker);
	vidmm_thread_join(thread);
	assert_int_equal(e.result, S_OK);
	client_close(&b.other.device);
	client_forget(&b.w.client);
	world_stop(&b.w);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		BOTH(calls_during_destruction_succeed_or_find_a_dead_handle),
		BOTH(destroying_a_device_waits_for_its_running_calls),
		BOTH(destroying_a_context_does_not_wait_for_other_calls_of_its_device),
		BOTH(only_one_of_two_threads_destroys_a_context),
	};

	if (count > 1) { /* repeats one seed of the simulator */
		void *kind = &on_sim;
		uint64_t seed = strtoull(arguments[1], NULL, 0);

		probe_reset();
		run(&kind, seed, (uint32_t)(40 + seed * 37 % 400));
		return 0;
	}
	return cmocka_run_group_tests_name("destroy race", tests, NULL, NULL);
}
