/* SPDX-License-Identifier: MIT */
/*
 * Several clients at once on one adapter that is too small for them: locks, discards, copies,
 * offers, creation and destruction. Each client checks every byte of its allocations. On sim
 * runs are determined by seeds; on real threads they are not.
 */
#include <stdio.h>

#include "world.h"

/* Runs on threads other than cmocka's, where a failed cmocka assertion would not end the test. */
#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			fprintf(stderr, "%s:%d: seed %llu: %s\n", __FILE__, __LINE__, \
				(unsigned long long)c->seed, #condition);             \
			abort();                                                      \
		}                                                                     \
	} while (0)

enum { ALLOCATIONS = 8 };

struct item {
	D3DKMT_HANDLE handle;
	uint64_t bytes;
	uint32_t pattern; /* word i is pattern + i; 0: all zero */
	bool offered;
	uint32_t lock_flags; /* flags that a lock needs to see it row by row */
	bool in_memory;      /* its segment set contains the memory segment */
};

struct client_thread {
	struct world *world;
	struct vidmm_thread *thread;
	uint64_t seed, state;
	uint32_t steps;
	bool apertures; /* some items are tiled, and locks request the linear image (SWZ) */
	struct client_device device;
	struct client_context context;
	struct item item[ALLOCATIONS];
	uint32_t patterns;
};

static uint32_t draw(struct client_thread *c, uint32_t below)
{
	c->state = c->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(c->state >> 33) % below;
}

static void create_item(struct client_thread *c, struct item *item)
{
	static const uint32_t sets[] = {0, 0, VRAM, APERTURE};
	struct softgpu_allocation wish =
		wish_of((1 + draw(c, 48)) * 16 * KIB, CPU, sets[draw(c, 4)]);

	*item = (struct item){.bytes = wish.size_bytes, .in_memory = wish.segment_set != APERTURE};
	wish.renaming_limit = draw(c, 3);
	if (c->apertures && item->in_memory && draw(c, 2)) {
		wish.flags |= SOFTGPU_ALLOCATION_TILED_Y;
		wish.stride_bytes = 512; /* a row of tiles is 16 KiB */
		item->lock_flags = ACQUIRE_APERTURE | LOCK_ENTIRE;
	}
	CHECK(client_try_allocate(&c->device, &wish, NULL, &item->handle, NULL) == S_OK);
}

static void verify(struct client_thread *c, const struct item *item, const uint32_t *words)
{
	for (uint64_t i = 0; i < item->bytes / 4; i += 251)
		CHECK(words[i] == (item->pattern ? item->pattern + (uint32_t)i : 0));
}

static void write_all(struct client_thread *c, struct item *item, uint32_t *words)
{
	item->pattern = ++c->patterns << 20;
	for (uint64_t i = 0; i < item->bytes / 4; i++)
		words[i] = item->pattern + (uint32_t)i;
}

/* Bytes that are not swizzled look the same through a range. */
static uint32_t view_flags(struct client_thread *c, const struct item *item)
{
	if (c->apertures && item->in_memory && draw(c, 2))
		return ACQUIRE_APERTURE | LOCK_ENTIRE;
	return item->lock_flags;
}

static void lock_and_look(struct client_thread *c, struct item *item)
{
	void *data;

	CHECK(client_try_lock(&c->device, &item->handle, view_flags(c, item), &data) == S_OK);
	verify(c, item, data);
	if (draw(c, 2))
		write_all(c, item, data);
	CHECK(client_unlock(&c->device, item->handle) == S_OK);
}

static void discard(struct client_thread *c, struct item *item)
{
	void *data;
	uint32_t flags = DISCARD | view_flags(c, item);
	HRESULT result = client_try_lock(&c->device, &item->handle, flags, &data);

	if (result ==
	    /* the list is full of instances that were never superseded in use */
	    D3DERR_WASSTILLDRAWING)
		result = client_try_lock(&c->device, &item->handle, flags | NO_EXISTING_REFERENCE,
					 &data);
	CHECK(result == S_OK);
	write_all(c, item, data);
	CHECK(client_unlock(&c->device, item->handle) == S_OK);
}

static void copy(struct client_thread *c, struct item *from, struct item *to)
{
	uint64_t bytes = from->bytes < to->bytes ? from->bytes : to->bytes;

	if (from == to || from->offered || to->offered || bytes != to->bytes ||
	    (from->lock_flags | to->lock_flags)) /* the GPU copies raw bytes */
		return;
	client_copy(&c->context, from->handle, to->handle, bytes);
	CHECK(client_try_submit(&c->context) == S_OK);
	to->pattern = from->pattern;
}

static void offer(struct client_thread *c, struct item *item)
{
	D3DDDICB_OFFERALLOCATIONS args = {.HandleList = &item->handle,
					  .NumAllocations = 1,
					  .Priority = (D3DDDI_OFFER_PRIORITY)(1 + draw(c, 4))};

	CHECK(c->device.cb->pfnOfferAllocationsCb(c->device.handle, &args) == S_OK);
	item->offered = true;
}

static void reclaim(struct client_thread *c, struct item *item)
{
	BOOL discarded;
	D3DDDICB_RECLAIMALLOCATIONS args = {
		.HandleList = &item->handle, .NumAllocations = 1, .pDiscarded = &discarded};

	CHECK(c->device.cb->pfnReclaimAllocationsCb(c->device.handle, &args) == S_OK);
	item->offered = false;
	if (discarded)
		item->pattern = 0;
}

static void step(struct client_thread *c)
{
	struct item *item = &c->item[draw(c, ALLOCATIONS)];

	if (item->offered && draw(c, 3))
		reclaim(c, item);
	if (item->offered)
		return;
	switch (draw(c, 10)) {
	case 0:
		CHECK(client_deallocate(&c->device, item->handle) == S_OK);
		create_item(c, item);
		break;
	case 1:
		offer(c, item);
		break;
	case 2:
	case 3:
		discard(c, item);
		break;
	case 4:
	case 5:
		client_reference(&c->context, item->handle, draw(c, 2));
		CHECK(client_try_submit(&c->context) == S_OK);
		break;
	case 6:
	case 7:
		copy(c, item, &c->item[draw(c, ALLOCATIONS)]);
		break;
	default:
		lock_and_look(c, item);
		break;
	}
}

static void client_main(void *argument)
{
	struct client_thread *c = argument;

	client_open(&c->world->client, &c->device);
	client_context(&c->device, draw(c, 2), &c->context);
	for (int i = 0; i < ALLOCATIONS; i++)
		create_item(c, &c->item[i]);
	for (uint32_t i = 0; i < c->steps; i++)
		step(c);
	for (int i = 0; i < ALLOCATIONS; i++) {
		if (c->item[i].offered)
			reclaim(c, &c->item[i]);
		lock_and_look(c, &c->item[i]);
	}
	client_context_end(&c->context);
	client_close(&c->device);
}

static void run_clients(void **state, uint64_t seed, bool apertures, uint32_t steps)
{
	enum { THREADS = 3 };
	struct vidmm_registry_value few = {"SwizzlingRanges", 3};
	struct client_options options = {.vram_bytes = 3 * MIB,
					 .aperture_bytes = 16 * MIB,
					 .seed = seed,
					 .switch_per_1024 = 200,
					 .registry = &few,
					 .registry_count = apertures};
	struct client_thread c[THREADS];
	struct world w;

	world_start(&w, state, &options);
	for (uint32_t i = 0; i < THREADS; i++) {
		memset(&c[i], 0, sizeof(c[i]));
		c[i].world = &w;
		c[i].seed = seed;
		c[i].state = seed * 1000 + i;
		c[i].steps = steps;
		c[i].apertures = apertures;
		assert_int_equal(vidmm_thread_create(w.client.host, "client", client_main, &c[i],
						     &c[i].thread),
				 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		vidmm_thread_join(c[i].thread);
	world_stop(&w);
}

static void clients_that_exceed_memory_read_their_own_bytes(void **state)
{
	bool sim = *(uint32_t *)*state == VIDMM_HOST_SIM;

	for (uint64_t seed = 1; seed <= (sim ? 6 : 2); seed++)
		run_clients(state, seed, false, sim ? 250 : 300);
}

/* SWZ-08, SWZ-19, SWZ-20, SWZ-28: fewer ranges than clients that need one. */
static void clients_with_too_few_ranges_read_their_own_bytes(void **state)
{
	bool sim = *(uint32_t *)*state == VIDMM_HOST_SIM;

	for (uint64_t seed = 101; seed <= (sim ? 106 : 102); seed++)
		run_clients(state, seed, true, sim ? 250 : 300);
}

/* ---- a thread that only checks ---- */

struct onlooker {
	struct world *world;
	struct vidmm_thread *thread;
	_Atomic bool enough;
};

static void look_on(void *argument)
{
	struct onlooker *o = argument;
	struct vidmm_host *host = o->world->client.host;

	while (!atomic_load(&o->enough)) {
		vidmm_adapter_check(o->world->client.adapter);
		if (o->world->kind == VIDMM_HOST_SIM)
			vidmm_sleep_until_ns(host, vidmm_now_ns(host) + 200);
	}
}

/*
 * A completion during a check, which holds the lock, makes waiting packets ready. The check must
 * then submit them.
 */
static void sub_16_a_check_submits_packets_that_completion_made_ready(void **state)
{
	struct onlooker o = {.enough = false};
	struct world w;

	world_start(&w, state, NULL);
	o.world = &w;
	w.client.racing = true;
	D3DKMT_HANDLE a = client_allocate(&w.device, 16 * KIB, CPU);
	assert_int_equal(vidmm_thread_create(w.client.host, "onlooker", look_on, &o, &o.thread), 0);
	for (uint32_t round = 0; round < 300; round++) {
		for (uint32_t i = 0; i < 40; i++) { /* more than the node accepts at once */
			client_reference(&w.context, a, true);
			client_submit(&w.context);
		}
		client_lock(&w.device, a, 0);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
	}
	atomic_store(&o.enough, true);
	vidmm_thread_join(o.thread);
	world_stop(&w);
}

/* ---- locks that need each other's space ---- */

struct contender {
	struct world *world;
	struct vidmm_thread *thread;
	_Atomic uint32_t *running;
};

/* A lock finds no space while both other allocations are locked. */
static void contend(void *argument)
{
	struct contender *contender = argument;
	struct client_thread thread = {.world = contender->world}, *c = &thread;
	struct vidmm_host *host = c->world->client.host;
	struct softgpu_allocation wish = wish_of(1280 * KIB, CPU, VRAM);
	D3DKMT_HANDLE handle;

	wish.flags |= SOFTGPU_ALLOCATION_TILED_Y;
	wish.stride_bytes = 512;
	client_open(&c->world->client, &c->device);
	CHECK(client_try_allocate(&c->device, &wish, NULL, &handle, NULL) == S_OK);
	for (uint32_t locks = 0; locks < 20;) {
		void *data;
		HRESULT result =
			client_try_lock(&c->device, &handle, ACQUIRE_APERTURE | LOCK_ENTIRE, &data);

		if (result == S_OK) {
			CHECK(client_unlock(&c->device, handle) == S_OK);
			locks++;
		} else {
			vidmm_sleep_until_ns(host, vidmm_now_ns(host) + 1000);
		}
	}
	client_close(&c->device);
	atomic_fetch_sub(contender->running, 1);
}

/* Virtual time, in which thousands of such allocations can be transferred. */
static void end_in_time(struct world *w, _Atomic uint32_t *running)
{
	struct vidmm_host *host = w->client.host;

	for (uint32_t i = 0; i < 200 && atomic_load(running); i++)
		vidmm_sleep_until_ns(host, vidmm_now_ns(host) + 1000000);
	if (atomic_load(running)) {
		fprintf(stderr, "Q-380: the locks have not ended in 200 ms\n");
		abort();
	}
}

/*
 * Memory for two of three allocations. The policy mru evicts what came last: what another lock has
 * paged in and waits for.
 */
static void q_380_locks_leave_each_other_what_they_have_paged_in(void **state)
{
	enum { THREADS = 3 };
	struct vidmm_registry_value settings[] = {{"SwizzlingRanges", THREADS},
						  {"VidmmEvictionPolicy", VIDMM_EVICTION_MRU}};
	struct client_options options = {.vram_bytes = 3 * MIB,
					 .aperture_bytes = 16 * MIB,
					 .registry = settings,
					 .registry_count = 2};
	struct contender contender[THREADS];
	_Atomic uint32_t running = THREADS;
	struct world w;

	world_start(&w, state, &options);
	for (uint32_t i = 0; i < THREADS; i++) {
		contender[i] = (struct contender){.world = &w, .running = &running};
		assert_int_equal(vidmm_thread_create(w.client.host, "contender", contend,
						     &contender[i], &contender[i].thread),
				 0);
	}
	if (w.kind == VIDMM_HOST_SIM)
		end_in_time(&w, &running);
	for (uint32_t i = 0; i < THREADS; i++)
		vidmm_thread_join(contender[i].thread);
	world_stop(&w);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		BOTH(clients_that_exceed_memory_read_their_own_bytes),
		BOTH(sub_16_a_check_submits_packets_that_completion_made_ready),
		BOTH(clients_with_too_few_ranges_read_their_own_bytes),
		BOTH(q_380_locks_leave_each_other_what_they_have_paged_in),
	};

	if (count > 1) { /* repeats one seed of the simulator */
		void *kind = &on_sim;

		run_clients(&kind, strtoull(arguments[1], NULL, 0), count > 2, 250);
		return 0;
	}
	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
