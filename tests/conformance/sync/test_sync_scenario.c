/* SPDX-License-Identifier: MIT */
/*
 * Two or three processes share, open, wait, signal, acquire, release and end at random. The random
 * choice covers every way of sharing: NT handles that were sent, names, global handles, bundles. No
 * wait lasts for ever, every event of a wait is set once, a keyed mutex has one holder, and no
 * descriptor or memory mapping leaks.
 *
 * The coordinator, in the thread of the test, creates the shared objects of the round. Then it
 * raises every fence to a value that satisfies all waits, and passes keyed mutexes on until all
 * processes have finished. The number of steps depends on the seed only, not on thread timing. A
 * forgotten waiter is a deadlock report (sim), or a test that does not end.
 */
#include "sync_bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/folder.h"
#include "support/seeds.h"

#if defined(__SANITIZE_THREAD__)
#define SANITIZED 2u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZED 2u
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 1u
#endif

enum {
	WORLDS = 16,  /* in each build */
	ROUNDS = 250, /* of each world */
	SERVED_ROUNDS = 100,
	WARM_UP = 25, /* objects that a world creates once exist by then */
	ACTORS_MAX = 3,
	THINGS_MAX = 2,
	EVENTS_MAX = 8,
	KEYS = 4,
	VALUES = 16,
	PASSES_MAX = 10000,
};
#define LAST_VALUE (UINT64_MAX - 1) /* of a fence: no wait is for a higher value */

enum kind { FENCE_SENT, FENCE_NAMED, OBJECT_GLOBAL, KEYED_GLOBAL, BUNDLE, KIND_COUNT };

/* An object that the round shares. */
struct thing {
	enum kind kind;
	char name[32];
	int nt;                              /* the coordinator's descriptor; -1: none */
	D3DKMT_HANDLE global;                /* of an object or a keyed mutex */
	uint32_t type;                       /* of the object */
	D3DKMT_HANDLE sync, keyed, resource; /* the coordinator's handle; 0: none */
	/* of the keyed mutex: the actor that holds it, from 1 */
	_Atomic uint32_t holder;
};

/* An actor's handles of it. */
struct share {
	int nt;
	D3DKMT_HANDLE sync, keyed, resource;
	bool holding;
};

struct actor {
	struct round *round;
	uint32_t index;
	uint64_t random;
	struct vidmm_process *process;
	D3DKMT_HANDLE device, context; /* the context: 0 until it is needed */
	struct share share[THINGS_MAX];
	int event[EVENTS_MAX];
	uint32_t events;
	struct vidmm_thread *thread, *helper;
	D3DKMT_HANDLE helped; /* the fence that the helper waits for */
	uint64_t helped_value;
	_Atomic uint32_t done;
	const char *failure;
	NTSTATUS status;
	uint32_t step;
};

struct round {
	struct sync_world *s;
	struct thing thing[THINGS_MAX];
	struct actor actor[ACTORS_MAX];
	uint32_t things, actors;
	uint64_t random;
};

/* How often each action happened, over all rounds. */
static _Atomic uint64_t waits, cancelled, signals, acquires, abandoned, openings, crashes, armed,
	queued;

static uint32_t draw(uint64_t *random, uint32_t below)
{
	uint64_t x = *random += 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return (uint32_t)((x ^ x >> 31) >> 32) % below;
}

static bool has_fence(const struct thing *t)
{
	return t->kind == FENCE_SENT || t->kind == FENCE_NAMED || t->kind == BUNDLE;
}

static bool has_keyed(const struct thing *t)
{
	return t->kind == KEYED_GLOBAL || t->kind == BUNDLE;
}

static void record_failure(struct actor *a, const char *what, NTSTATUS status)
{
	if (a->failure)
		return;
	a->failure = what;
	a->status = status;
}

/* One of up to three statuses. */
static bool expect(struct actor *a, NTSTATUS status, const char *what, NTSTATUS second,
		   NTSTATUS third)
{
	if (status != STATUS_SUCCESS && status != second && status != third)
		record_failure(a, what, status);
	return status == STATUS_SUCCESS;
}

/* ---- actions of an actor ---- */

static void open_bundle(struct actor *a, struct share *h)
{
	struct bundle_opening o;

	bundle_prepare(&o, a->device, h->nt);
	if (!expect(a, D3DKMTOpenResourceFromNtHandle(&o.args), "open bundle", 0, 0))
		return;
	h->resource = o.args.hResource;
	h->keyed = o.args.hKeyedMutex;
	h->sync = o.args.hSyncObject;
}

static void open_nt(struct actor *a, struct share *h, int nt)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 second = {.hNtHandle = (HANDLE)(intptr_t)nt,
						     .hDevice = a->device};
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE first = {.hNtHandle = (HANDLE)(intptr_t)nt};

	if (draw(&a->random, 2)) {
		if (expect(a, D3DKMTOpenSyncObjectFromNtHandle2(&second), "open2", 0, 0))
			h->sync = second.hSyncObject;
	} else if (expect(a, D3DKMTOpenSyncObjectFromNtHandle(&first), "open", 0, 0)) {
		h->sync = first.hSyncObject;
	}
}

static void open_named(struct actor *a, const struct thing *t, struct share *h)
{
	int nt;

	if (!expect(a, bundle_by_name(true, t->name, 1, &nt), "by name",
		    STATUS_OBJECT_NAME_NOT_FOUND, 0))
		return;
	open_nt(a, h, nt);
	close(nt);
}

static void open_global(struct actor *a, const struct thing *t, struct share *h)
{
	D3DKMT_OPENSYNCHRONIZATIONOBJECT sync = {.hSharedHandle = t->global};
	D3DKMT_OPENKEYEDMUTEX keyed = {.hSharedHandle = t->global};

	if (t->kind == OBJECT_GLOBAL) {
		if (expect(a, D3DKMTOpenSynchronizationObject(&sync), "open global", 0, 0))
			h->sync = sync.hSyncObject;
	} else if (expect(a, D3DKMTOpenKeyedMutex(&keyed), "open keyed", 0, 0)) {
		h->keyed = keyed.hKeyedMutex;
	}
}

static void open_thing(struct actor *a, const struct thing *t, struct share *h)
{
	if (h->sync || h->keyed || h->resource)
		return;
	atomic_fetch_add(&openings, 1);
	if (t->kind == FENCE_NAMED)
		open_named(a, t, h);
	else if (t->kind == OBJECT_GLOBAL || t->kind == KEYED_GLOBAL)
		open_global(a, t, h);
	else if (h->nt < 0)
		return;
	else if (t->kind == BUNDLE)
		open_bundle(a, h);
	else
		open_nt(a, h, h->nt);
}

/* SFL-27: destroying any handle of the fence ends the wait. */
static void wait_for(struct actor *a, D3DKMT_HANDLE fence, uint64_t value)
{
	NTSTATUS status = sync_wait(a->device, fence, value);

	if (expect(a, status, "wait", STATUS_CANCELLED, 0))
		atomic_fetch_add(&waits, 1);
	else
		atomic_fetch_add(&cancelled, 1);
}

static void help(void *argument)
{
	struct actor *a = argument;

	vidmm_d3dkmt_enter(a->process);
	NTSTATUS status = sync_wait(a->device, a->helped, a->helped_value);
	/* Its actor may have destroyed handle and device before the call. */
	if (status && status != STATUS_CANCELLED && status != STATUS_INVALID_PARAMETER)
		record_failure(a, "helper", status);
	vidmm_d3dkmt_enter(NULL);
}

static void start_helper(struct actor *a, const struct share *h)
{
	if (a->helper)
		return;
	a->helped = h->sync;
	a->helped_value = draw(&a->random, VALUES);
	assert_int_equal(
		vidmm_thread_create(a->round->s->w.client.host, "helper", help, a, &a->helper), 0);
}

static void arm_event(struct actor *a, const struct share *h)
{
	if (a->events == EVENTS_MAX)
		return;
	int event = sync_event();
	if (expect(a, sync_wait_event(a->device, h->sync, draw(&a->random, VALUES), event),
		   "wait with an event", 0, 0)) {
		a->event[a->events++] = event;
		atomic_fetch_add(&armed, 1);
	} else {
		close(event);
	}
}

static void share_again(struct actor *a, struct share *h)
{
	int nt;

	if (!expect(a, bundle_share_as(&h->sync, 1, NULL, 1, &nt), "share again", 0, 0))
		return;
	if (h->nt >= 0)
		close(h->nt);
	h->nt = nt;
}

static void act_on_fence(struct actor *a, const struct thing *t, struct share *h)
{
	switch (draw(&a->random, 7)) {
	case 0:
	case 1:
		/* another actor may have signaled a higher value (MFN-23) */
		(void)expect(a, sync_signal(a->device, h->sync, draw(&a->random, VALUES)), "signal",
			     STATUS_INVALID_PARAMETER, 0);
		atomic_fetch_add(&signals, 1);
		break;
	case 2:
		wait_for(a, h->sync, draw(&a->random, VALUES));
		break;
	case 3:
		start_helper(a, h);
		break;
	case 4:
		arm_event(a, h);
		break;
	case 5:
		if (t->kind != BUNDLE)
			share_again(a, h);
		break;
	default:
		(void)expect(a, sync_destroy(h->sync), "destroy", 0, 0);
		h->sync = 0;
		break;
	}
}

/* ---- the queue of a context ---- */

/* Packets left in it end with the device. */
static bool want_context(struct actor *a)
{
	D3DKMT_CREATECONTEXT args = {.hDevice = a->device};

	if (a->context)
		return true;
	if (expect(a, D3DKMTCreateContext(&args), "context", 0, 0))
		a->context = args.hContext;
	return a->context;
}

static void queue_fence(struct actor *a, D3DKMT_HANDLE fence)
{
	uint64_t value = draw(&a->random, VALUES);
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {.hContext = a->context,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .MonitoredFenceValueArray =
									 &value};
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {.hContext = a->context,
								  .ObjectCount = 1,
								  .ObjectHandleArray = &fence,
								  .MonitoredFenceValueArray =
									  &value};

	if (draw(&a->random, 2))
		(void)expect(a, D3DKMTWaitForSynchronizationObjectFromGpu(&wait), "queue a wait", 0,
			     0);
	else
		(void)expect(a, D3DKMTSignalSynchronizationObjectFromGpu(&signal), "queue a signal",
			     0, 0);
}

/* Mutexes, semaphores and fences; there may never be a signal for a context's wait. */
static void queue_object(struct actor *a, D3DKMT_HANDLE object)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 wait = {.hContext = a->context,
						     .ObjectCount = 1,
						     .ObjectHandleArray[0] = object,
						     .Fence.FenceValue = draw(&a->random, VALUES)};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 signal = {.hContext = a->context,
						      .ObjectCount = 1,
						      .ObjectHandleArray[0] = object,
						      .Fence.FenceValue = draw(&a->random, VALUES)};

	if (draw(&a->random, 2))
		(void)expect(a, D3DKMTWaitForSynchronizationObject2(&wait), "queue wait 2", 0, 0);
	else
		(void)expect(a, D3DKMTSignalSynchronizationObject2(&signal), "queue signal 2", 0,
			     0);
}

static void act_on_queue(struct actor *a, const struct thing *t, const struct share *h)
{
	if (!want_context(a))
		return;
	atomic_fetch_add(&queued, 1);
	if (t->kind == OBJECT_GLOBAL)
		queue_object(a, h->sync);
	else
		queue_fence(a, h->sync);
}

static bool holds_any(const struct actor *a)
{
	bool any = false;

	for (uint32_t i = 0; i < THINGS_MAX; i++)
		any |= a->share[i].holding;
	return any;
}

/*
 * Without a time limit only if it holds no other mutex: a deadlock of two actors would not be an
 * error of the library.
 */
static void acquire(struct actor *a, struct thing *t, struct share *h)
{
	LARGE_INTEGER limit = {.QuadPart = -(int64_t)draw(&a->random, 1000)};
	bool for_ever = !holds_any(a) && draw(&a->random, 2);
	D3DKMT_ACQUIREKEYEDMUTEX args = {.hKeyedMutex = h->keyed,
					 .Key = draw(&a->random, KEYS),
					 .pTimeout = for_ever ? NULL : &limit};
	NTSTATUS status = D3DKMTAcquireKeyedMutex(&args);

	atomic_fetch_add(status == STATUS_ABANDONED ? &abandoned : &acquires, 1);
	if (!expect(a, status, "acquire", STATUS_ABANDONED,
		    for_ever ? STATUS_ABANDONED : STATUS_TIMEOUT))
		return;
	if (h->holding || atomic_exchange(&t->holder, a->index + 1))
		record_failure(a, "two hold it", status);
	h->holding = true;
}

static void release(struct actor *a, struct thing *t, struct share *h)
{
	if (!h->holding)
		return;
	if (atomic_exchange(&t->holder, 0) != a->index + 1)
		record_failure(a, "another has held it as well", 0);
	h->holding = false;
	(void)expect(a, bundle_release(h->keyed, draw(&a->random, KEYS)), "release", 0, 0);
}

static void destroy_keyed(struct actor *a, struct thing *t, struct share *h)
{
	if (h->holding) /* it is abandoned by that */
		atomic_store(&t->holder, 0);
	h->holding = false;
	(void)expect(a, bundle_destroy_keyed(h->keyed), "destroy keyed", 0, 0);
	h->keyed = 0;
}

static void act_on_keyed(struct actor *a, struct thing *t, struct share *h)
{
	switch (draw(&a->random, 6)) {
	case 0:
	case 1:
		acquire(a, t, h);
		break;
	case 2:
	case 3:
	case 4:
		release(a, t, h);
		break;
	default:
		destroy_keyed(a, t, h);
		break;
	}
}

static void act(struct actor *a)
{
	uint32_t which = draw(&a->random, a->round->things);
	struct thing *t = &a->round->thing[which];
	struct share *h = &a->share[which];
	uint32_t dice = draw(&a->random, 8);

	if (dice == 0 && h->nt >= 0) {
		close(h->nt);
		h->nt = -1;
	} else if (dice == 1 && h->resource) {
		(void)expect(a, bundle_destroy_resource(a->device, h->resource), "destroy resource",
			     0, 0);
		h->resource = 0;
	} else if (dice == 2 && h->sync && t->kind == OBJECT_GLOBAL) {
		(void)expect(a, sync_destroy(h->sync), "destroy object", 0, 0);
		h->sync = 0;
	} else if (h->sync && dice < 5 && draw(&a->random, 2)) {
		act_on_queue(a, t, h);
	} else if (h->keyed && draw(&a->random, 2)) {
		act_on_keyed(a, t, h);
	} else if (h->sync && has_fence(t)) {
		act_on_fence(a, t, h);
	} else {
		open_thing(a, t, h);
	}
}

/* ---- the life of an actor ---- */

static void begin(struct actor *a)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	(void)expect(a, D3DKMTEnumAdapters2(&all), "adapters", 0, 0);
	D3DKMT_CREATEDEVICE device = {.hAdapter = info.hAdapter};
	(void)expect(a, D3DKMTCreateDevice(&device), "device", 0, 0);
	a->device = device.hDevice;
}

/*
 * The helper returns at the latest when the device is destroyed. All other open objects end with
 * the process.
 */
static void end(struct actor *a)
{
	const D3DKMT_DESTROYDEVICE device = {.hDevice = a->device};

	atomic_fetch_add(&crashes, 1);
	for (uint32_t i = 0; i < a->round->things; i++)
		if (a->share[i].holding)
			atomic_store(&a->round->thing[i].holder, 0);
	if (a->helper) {
		(void)expect(a, D3DKMTDestroyDevice(&device), "destroy device", 0, 0);
		vidmm_thread_join(a->helper);
	}
	vidmm_d3dkmt_enter(NULL);
	vidmm_process_close(a->process);
	for (uint32_t i = 0; i < a->round->things; i++)
		if (a->share[i].nt >= 0)
			close(a->share[i].nt);
}

static void live(void *argument)
{
	struct actor *a = argument;
	uint32_t steps = draw(&a->random, 14);

	vidmm_d3dkmt_enter(a->process);
	begin(a);
	for (a->step = 0; a->step < steps && !a->failure; a->step++)
		act(a);
	end(a);
	atomic_store(&a->done, 1);
}

/* ---- the coordinator ---- */

static void make_object(struct round *r, struct thing *t)
{
	static const uint32_t types[] = {D3DDDI_SYNCHRONIZATION_MUTEX, D3DDDI_SEMAPHORE,
					 D3DDDI_FENCE};
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {0};

	t->type = types[draw(&r->random, 3)];
	if (t->type == D3DDDI_SEMAPHORE)
		args.Info.Semaphore.MaxCount = args.Info.Semaphore.InitialCount = 2;
	assert_int_equal(sync_try_create(r->s, t->type, 1, &args), 0);
	t->global = args.Info.SharedHandle;
	t->sync = args.hSyncObject;
}

static void make_thing(struct round *r, struct thing *t, uint32_t number)
{
	struct bundle b = {0};

	memset(t, 0, sizeof(*t));
	t->kind = (enum kind)draw(&r->random, KIND_COUNT);
	t->nt = -1;
	if (t->kind == OBJECT_GLOBAL) {
		make_object(r, t);
	} else if (t->kind == KEYED_GLOBAL) {
		D3DKMT_CREATEKEYEDMUTEX args = {.InitialValue = draw(&r->random, KEYS)};

		assert_int_equal(D3DKMTCreateKeyedMutex(&args), 0);
		t->global = args.hSharedHandle;
		t->keyed = args.hKeyedMutex;
	} else if (t->kind == BUNDLE) {
		bundle_make(r->s, &b);
		t->sync = b.sync;
		t->keyed = b.keyed;
		t->resource = b.resource;
		t->nt = bundle_share(&b);
	} else {
		t->sync = sync_fence(r->s, 3, 0).handle;
		snprintf(t->name, sizeof(t->name), "\\scenario\\%u", number);
		assert_int_equal(bundle_share_as(&t->sync, 1,
						 t->kind == FENCE_NAMED ? t->name : NULL, 1,
						 &t->nt),
				 0);
	}
}

static void start_actor(struct round *r, uint32_t index)
{
	struct actor *a = &r->actor[index];

	memset(a, 0, sizeof(*a));
	a->round = r;
	a->index = index;
	a->random = r->random ^ (uint64_t)draw(&r->random, UINT32_MAX) << 32;
	assert_int_equal(vidmm_process_open(r->s->w.client.host, "actor", &a->process), 0);
	for (uint32_t i = 0; i < THINGS_MAX; i++) /* as if it had been sent */
		a->share[i].nt = i < r->things && r->thing[i].nt >= 0
					 ? fcntl(r->thing[i].nt, F_DUPFD_CLOEXEC, 3)
					 : -1;
	assert_int_equal(vidmm_thread_create(r->s->w.client.host, "actor", live, a, &a->thread), 0);
}

/*
 * The creator may destroy its own handle as long as another handle or the NT handle keeps the
 * object (SHR-04, SHR-12).
 */
static void replace_creator_handle(struct round *r, struct thing *t)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE again = {.hNtHandle = (HANDLE)(intptr_t)t->nt};

	if (!has_fence(t) || t->kind == BUNDLE || draw(&r->random, 2))
		return;
	assert_int_equal(sync_destroy(t->sync), 0);
	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle(&again), 0);
	t->sync = again.hSyncObject;
}

/* Passes a mutex on to a thread that waits for the key of the release. */
static void pass_on(struct round *r, struct thing *t)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		NTSTATUS status = bundle_acquire(t->keyed, key);

		assert_true(status == 0 || status == STATUS_TIMEOUT || status == STATUS_ABANDONED);
		if (status)
			continue;
		assert_int_equal(atomic_load(&t->holder), 0);
		assert_int_equal(bundle_release(t->keyed, draw(&r->random, KEYS)), 0);
	}
}

static bool all_done(const struct round *r)
{
	for (uint32_t i = 0; i < r->actors; i++)
		if (!atomic_load(&r->actor[i].done))
			return false;
	return true;
}

static void let_actors_run(struct round *r)
{
	struct vidmm_host *host = r->s->w.client.host;

	vidmm_sleep_until_ns(host, vidmm_now_ns(host) + draw(&r->random, 20000));
}

static void keep(struct round *r)
{
	uint32_t passes = 0;

	for (uint32_t i = 0; i < r->things; i++)
		replace_creator_handle(r, &r->thing[i]);
	if (draw(&r->random, 2))
		let_actors_run(r);
	for (uint32_t i = 0; i < r->things; i++)
		if (has_fence(&r->thing[i]))
			assert_int_equal(sync_signal(r->s->device, r->thing[i].sync, LAST_VALUE),
					 0);
	while (!all_done(r)) {
		/*
		 * In virtual time all actors have had many turns by then; real threads may not
		 * have.
		 */
		assert_true(r->s->w.kind != VIDMM_HOST_SIM || passes++ < PASSES_MAX);
		for (uint32_t i = 0; i < r->things; i++)
			if (has_keyed(&r->thing[i]))
				pass_on(r, &r->thing[i]);
		let_actors_run(r);
	}
}

static void end_thing(struct round *r, const struct thing *t)
{
	if (has_fence(t)) /* their signalled value was lower */
		assert_int_equal(sync_wait(r->s->device, t->sync, LAST_VALUE), 0);
	if (t->nt >= 0)
		close(t->nt);
	if (t->sync)
		assert_int_equal(sync_destroy(t->sync), 0);
	if (t->keyed)
		assert_int_equal(bundle_destroy_keyed(t->keyed), 0);
	if (t->resource)
		assert_int_equal(bundle_destroy_resource(r->s->device, t->resource), 0);
}

static void check_actor(const struct round *r, struct actor *a, uint64_t seed, uint32_t number)
{
	if (a->failure)
		fprintf(stderr, "seed 0x%llx, round %u, actor %u of %u, step %u: %s: 0x%08x\n",
			(unsigned long long)seed, number, a->index, r->actors, a->step, a->failure,
			(unsigned)a->status);
	assert_null(a->failure);
	for (uint32_t i = 0; i < a->events; i++) {
		/* SFL-30: by a value, or by a destruction */
		assert_int_equal(sync_events(a->event[i]), 1);
		close(a->event[i]);
	}
}

static void play(struct sync_world *s, uint64_t seed, uint32_t number)
{
	struct round *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->s = s;
	r->random = seed ^ (uint64_t)number << 20;
	r->things = 1 + draw(&r->random, THINGS_MAX);
	r->actors = 2 + draw(&r->random, 2);
	for (uint32_t i = 0; i < r->things; i++)
		make_thing(r, &r->thing[i], i);
	for (uint32_t i = 0; i < r->actors; i++)
		start_actor(r, i);
	keep(r);
	for (uint32_t i = 0; i < r->actors; i++)
		vidmm_thread_join(r->actor[i].thread);
	for (uint32_t i = 0; i < r->things; i++)
		end_thing(r, &r->thing[i]);
	for (uint32_t i = 0; i < r->actors; i++)
		check_actor(r, &r->actor[i], seed, number);
	free(r);
}

/* ---- leaks ---- */

struct figures {
	uint32_t descriptors, mappings;
	uint64_t allocations;
};

static uint32_t count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	uint32_t count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:") != NULL;
	fclose(maps);
	return count;
}

static struct figures look(struct sync_world *s)
{
	struct vidmm_adapter_statistics adapter = {.struct_size = sizeof(adapter)};
	struct sync_fence f = sync_fence(s, 3, 0);

	close(bundle_share_one(f.handle)); /* sharing looks for closed NT handles */
	assert_int_equal(sync_destroy(f.handle), 0);
	vidmm_settle(s->w.client.host);
	vidmm_adapter_statistics(s->w.client.adapter, &adapter);
	return (struct figures){folder_count("/proc/self/fd"), count_mappings(),
				adapter.allocations};
}

static void play_world(void **state, uint32_t world, uint32_t rounds)
{
	uint64_t seed = 0x5ce7a210u + (seeds_build_number() * WORLDS + world) * 7919u;
	const struct client_options options = {.seed = seed, .switch_per_1024 = 64u << world % 4};
	struct sync_world *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	sync_start_with(s, state, sync_3_0, &options);
	for (uint32_t i = 0; i < WARM_UP && i < rounds; i++)
		play(s, seed, i);
	struct figures before = look(s);
	for (uint32_t i = WARM_UP; i < rounds; i++)
		play(s, seed, i);
	struct figures after = look(s);
	assert_int_equal(after.descriptors, before.descriptors);
	assert_int_equal(after.mappings, before.mappings);
	assert_int_equal(after.allocations, before.allocations);
	/*
	 * A call that came too late, for example for a helper's destroyed fence, was refused with a
	 * finding.
	 */
	client_forget(&s->w.client);
	sync_stop(s);
	free(s);
}

/*
 * Through a server each call is a request, which costs more than the call. A world draws its rounds
 * from its seed: these are the first of the rounds that the test without a server plays.
 */
static uint32_t rounds_wanted(void)
{
	return getenv("VIDMM_SERVED") ? SERVED_ROUNDS : ROUNDS / SANITIZED;
}

static void shr_33_syn_15_mfn_17_kmx_22_processes_start_and_end_at_random(void **state)
{
	uint32_t rounds = rounds_wanted(), descriptors;

	/* The first world probes the system's features and keeps descriptors of that. */
	play_world(state, 0, 1);
	descriptors = folder_count("/proc/self/fd");
	waits = cancelled = signals = acquires = abandoned = openings = crashes = armed = queued =
		0;
	for (uint32_t world = 0; world < WORLDS; world++)
		play_world(state, world, rounds);
	printf("# %u rounds: %llu openings, %llu signals, %llu waits satisfied, %llu cancelled, "
	       "%llu events, %llu in queues, %llu acquires, %llu abandoned, %llu ends of "
	       "processes\n",
	       WORLDS * rounds, (unsigned long long)openings, (unsigned long long)signals,
	       (unsigned long long)waits, (unsigned long long)cancelled, (unsigned long long)armed,
	       (unsigned long long)queued, (unsigned long long)acquires,
	       (unsigned long long)abandoned, (unsigned long long)crashes);
	printf("# descriptors: %u before, %u after\n", descriptors, folder_count("/proc/self/fd"));
	assert_int_equal(folder_count("/proc/self/fd"), descriptors);
	assert_true(waits && cancelled && signals && acquires && abandoned && armed && queued);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(shr_33_syn_15_mfn_17_kmx_22_processes_start_and_end_at_random),
	};

	return cmocka_run_group_tests_name("sync scenario", tests, NULL, NULL);
}
