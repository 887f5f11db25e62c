/* SPDX-License-Identifier: MIT */
/*
 * Monitored fences in the core: a signal without waiters and a satisfied wait, relative to the
 * ordered store and the locked instruction that they need at least; signals that satisfy one or a
 * hundred of many waits; the bookkeeping of a wait for any of 64 fences.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "sync/sync_private.h"

enum { FENCES = 64 };

struct core {
	struct vmm_os *os;
	struct vmm_world world;
	struct vmm_sync_object object;
	_Alignas(64) _Atomic uint64_t word;
	uint64_t value, count;
	struct vmm_sync_wait *waits;
	struct vmm_sync_node *nodes;
};

static void core_end(void *state)
{
	struct core *c = state;

	vmm_os_mutex_finish(&c->world.sync_lock);
	vmm_os_destroy(c->os);
	free(c->waits);
	free(c->nodes);
	free(c);
}

static void forget(struct vmm_sync_wait *wait)
{
	bench_use(wait);
}

static void stand_in(struct core *c, uint64_t index, uint64_t value)
{
	struct vmm_sync_wait *wait = &c->waits[index];

	*wait = (struct vmm_sync_wait){
		.world = &c->world, .nodes = &c->nodes[index], .count = 1, .on_end = forget};
	vmm_list_init(&wait->link);
	c->nodes[index] =
		(struct vmm_sync_node){.object = &c->object, .wait = wait, .value = value};
	vmm_sync_lock(&c->world);
	if (vmm_sync_wait_begin_locked(wait))
		abort();
	vmm_sync_unlock(&c->world);
}

static void make_object(struct core *c, struct vmm_sync_object *object, _Atomic uint64_t *word)
{
	static struct vmm_sync_page page; /* a valid fence has one; these signals do not read it */

	*object = (struct vmm_sync_object){
		.world = &c->world,
		.type = VMM_SYNC_MONITORED_FENCE,
		.references = 1,
		.slot.page = &page,
		.word = word,
		.step = 1,
		.event = -1,
	};
	vmm_list_init(&object->awaited);
	vmm_list_init(&object->queue);
	vmm_list_init(&object->held);
	atomic_store(word, 0);
}

static void *core_begin(const struct bench_case *self)
{
	const struct vmm_os_config config = {.kind = VMM_OS_LINUX};
	struct core *c = aligned_alloc(64, sizeof(*c));

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->count = self->parameter;
	c->waits = calloc(c->count + 1, sizeof(*c->waits));
	c->nodes = calloc(c->count + 1, sizeof(*c->nodes));
	if (!c->waits || !c->nodes || vmm_os_create(&config, &c->os) != VMM_OK)
		abort();
	c->world.os = c->os;
	vmm_os_mutex_init(&c->world.sync_lock, c->os, VMM_RANK_SYNC, "sync");
	vmm_list_init(&c->world.sync_awaited);
	make_object(c, &c->object, &c->word);
	for (uint64_t i = 0; i < c->count; i++)
		stand_in(c, i, i + 1);
	return c;
}

static void run_signal(void *state, uint64_t steps)
{
	struct core *c = state;
	uint64_t value = c->value; /* counted in a register, as the floor does */

	for (uint64_t i = 0; i < steps; i++)
		if (vmm_sync_raise(&c->object, ++value, false))
			abort();
	c->value = value;
}
BENCH(.name = "sync.signal", .setup = core_begin, .run = run_signal, .teardown = core_end,
      .peer = "floor.store_seq_cst", .ratio_max = 1.3);

static void run_satisfied(void *state, uint64_t steps)
{
	struct core *c = state;

	for (uint64_t i = 0; i < steps; i++)
		bench_use(vmm_sync_reached(&c->object, 0));
}
BENCH(.name = "sync.wait_satisfied", .setup = core_begin, .run = run_satisfied,
      .teardown = core_end, .peer = "floor.xadd", .ratio_max = 0.4);

/*
 * One signal satisfies the waits for the smallest values, which are then queued again behind all
 * others. The waits that remain cost the logarithm of their number.
 */
static void wake(struct core *c, uint64_t woken)
{
	uint64_t first = c->value;

	c->value += woken;
	if (!vmm_sync_raise(&c->object, c->value, false))
		abort();
	vmm_sync_deliver(&c->object);
	for (uint64_t value = first; value < c->value; value++) {
		if (!c->waits[value % c->count].done)
			abort();
		stand_in(c, value % c->count, value + 1 + c->count);
	}
	if (c->waits[c->value % c->count].done && woken < c->count)
		abort();
}

static void run_wake_one(void *state, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		wake(state, 1);
}

static void run_wake_100(void *state, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		wake(state, 100);
}
BENCH(.name = "sync.wake_1_of_1", .parameter = 1, .setup = core_begin, .run = run_wake_one,
      .teardown = core_end);
BENCH(.name = "sync.wake_1_of_100", .parameter = 100, .setup = core_begin, .run = run_wake_one,
      .teardown = core_end, .peer = "sync.wake_1_of_1", .ratio_max = 4);
BENCH(.name = "sync.wake_1_of_10k", .parameter = 10000, .setup = core_begin, .run = run_wake_one,
      .teardown = core_end, .peer = "sync.wake_1_of_100", .ratio_max = 4);
BENCH(.name = "sync.wake_100_of_10k", .parameter = 10000, .per_run = 100, .setup = core_begin,
      .run = run_wake_100, .teardown = core_end, .peer = "sync.wake_1_of_10k", .ratio_max = 4);

/*
 * A wait for any of 64 fences: insertion into all heaps, a wake-up by one fence, removal from the
 * others.
 */
static void run_wait_any(void *state, uint64_t steps)
{
	struct core *c = state;
	static struct vmm_sync_object objects[FENCES];
	static _Atomic uint64_t words[FENCES];
	struct vmm_sync_node nodes[FENCES];

	for (uint32_t f = 0; f < FENCES; f++)
		make_object(c, &objects[f], &words[f]);
	for (uint64_t i = 1; i <= steps; i++) {
		struct vmm_sync_wait wait = {.world = &c->world,
					     .nodes = nodes,
					     .count = FENCES,
					     .any = true,
					     .of_cpu = true,
					     .on_end = forget};

		vmm_list_init(&wait.link);
		for (uint32_t f = 0; f < FENCES; f++)
			nodes[f] = (struct vmm_sync_node){
				.object = &objects[f], .wait = &wait, .value = i};
		vmm_sync_lock(&c->world);
		if (vmm_sync_wait_begin_locked(&wait))
			abort();
		vmm_sync_unlock(&c->world);
		if (!vmm_sync_raise(&objects[i % FENCES], i, false) || wait.done)
			abort();
		vmm_sync_deliver(&objects[i % FENCES]);
		for (uint32_t f = 0; f < FENCES; f++)
			atomic_store_explicit(&words[f], i, memory_order_relaxed);
	}
}
BENCH(.name = "sync.any_of_64", .setup = core_begin, .run = run_wait_any, .teardown = core_end,
      .peer = "floor.xadd");
