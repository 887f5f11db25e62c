/* SPDX-License-Identifier: MIT */
/*
 * Waits and heaps without clients: many waiters on one fence, waits on many fences, in any order.
 */
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sync/sync_private.h"

enum { MANY = 10000 };

struct world {
	struct vmm_os *os;
	struct vmm_world world;
};

static void start_on(struct world *w, const struct vmm_os_config *config)
{
	memset(w, 0, sizeof(*w));
	assert_int_equal(vmm_os_create(config, &w->os), VMM_OK);
	w->world.os = w->os;
	vmm_list_init(&w->world.sync_awaited);
	vmm_os_mutex_init(&w->world.sync_lock, w->os, VMM_RANK_SYNC, "sync");
}

static void start(struct world *w)
{
	const struct vmm_os_config config = {.kind = VMM_OS_SIM};

	start_on(w, &config);
}

static void stop(struct world *w)
{
	vmm_os_mutex_finish(&w->world.sync_lock);
	vmm_os_destroy(w->os);
}

struct fence {
	struct vmm_sync_object object;
	_Atomic uint64_t word;
};

static void make(struct world *w, struct fence *f, uint64_t value)
{
	static struct vmm_sync_page page;

	memset(f, 0, sizeof(*f));
	f->object.world = &w->world;
	f->object.type = VMM_SYNC_MONITORED_FENCE;
	f->object.word = &f->word;
	f->object.slot.page = &page;
	f->object.event = -1;
	atomic_store(&f->object.references, 1);
	atomic_store(&f->object.step, 1);
	vmm_list_init(&f->object.awaited);
	vmm_list_init(&f->object.queue);
	vmm_list_init(&f->object.held);
	atomic_store(&f->word, value);
}

struct wait {
	struct vmm_sync_wait wait;
	struct vmm_sync_node nodes[4];
	uint32_t notified;
};

static uint32_t notified_count;
static uint64_t notified_last;

static void notify(struct vmm_sync_wait *wait)
{
	struct wait *t = vmm_container_of(wait, struct wait, wait);

	t->notified++;
	notified_count++;
	assert_true(t->nodes[0].value >= notified_last);
	notified_last = t->nodes[0].value;
}

static bool begin(struct world *w, struct wait *t, struct fence *const *fences,
		  const uint64_t *values, uint32_t count, bool any)
{
	memset(t, 0, sizeof(*t));
	t->wait = (struct vmm_sync_wait){.world = &w->world,
					 .nodes = t->nodes,
					 .count = count,
					 .any = any,
					 .of_cpu = true,
					 .on_end = notify};
	vmm_list_init(&t->wait.link);
	for (uint32_t i = 0; i < count; i++)
		t->nodes[i] = (struct vmm_sync_node){
			.object = &fences[i]->object, .wait = &t->wait, .value = values[i]};
	vmm_sync_lock(&w->world);
	bool done = vmm_sync_wait_begin_locked(&t->wait);
	vmm_sync_unlock(&w->world);
	return done;
}

static void signal(struct fence *f, uint64_t value, bool rewind)
{
	notified_last = 0;
	if (vmm_sync_raise(&f->object, value, rewind))
		vmm_sync_deliver(&f->object);
}

/* Asserts that no node is above its parent in order, and that ranks match their definition. */
static uint32_t check_heap(const struct vmm_sync_node *node, const struct vmm_sync_node *parent)
{
	if (!node)
		return 0;
	uint32_t left = node->left ? node->left->rank : 0,
		 right = node->right ? node->right->rank : 0;

	assert_ptr_equal(node->parent, parent);
	assert_true(!parent || parent->value <= node->value);
	assert_true(left >= right);
	assert_int_equal(node->rank, right + 1);
	return 1 + check_heap(node->left, node) + check_heap(node->right, node);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

static void the_wait_heap_stays_ordered_after_any_removal(void **state)
{
	enum { NODES = 300, STEPS = 20000 };
	static struct vmm_sync_node nodes[NODES];
	struct vmm_sync_node *heap = NULL;
	uint64_t seed = 7;
	uint32_t inside = 0;

	(void)state;
	memset(nodes, 0, sizeof(nodes));
	for (uint32_t step = 0; step < STEPS; step++) {
		struct vmm_sync_node *node = &nodes[next_random(&seed) % NODES];

		if (node->rank) {
			vmm_sync_heap_remove(&heap, node);
			inside--;
		} else {
			node->value = next_random(&seed) % 50;
			vmm_sync_heap_insert(&heap, node);
			inside++;
		}
		if (step % 64 == 0)
			assert_int_equal(check_heap(heap, NULL), inside);
	}
	uint64_t last = 0;
	for (; heap; inside--) {
		struct vmm_sync_node *least = heap;

		assert_true(least->value >= last);
		last = least->value;
		vmm_sync_heap_remove(&heap, least);
	}
	assert_int_equal(inside, 0);
}

static void mfn_16_one_signal_frees_only_satisfied_waits_of_ten_thousand(void **state)
{
	struct world w;
	struct fence f;
	struct fence *const fence = &f;
	struct wait *waits = calloc(MANY, sizeof(*waits));

	(void)state;
	assert_non_null(waits);
	start(&w);
	make(&w, &f, 0);
	for (uint64_t i = 0; i < MANY; i++) {
		uint64_t value = (i * 7919) % MANY + 1; /* each of 1 to MANY once */

		assert_false(begin(&w, &waits[i], &fence, &value, 1, false));
	}
	notified_count = 0;
	signal(&f, 1, false);
	assert_int_equal(notified_count, 1);
	signal(&f, 1234, false);
	assert_int_equal(notified_count, 1234);
	signal(&f, 100, false); /* MFN-23 */
	assert_int_equal(notified_count, 1234);
	assert_int_equal(f.word, 1234);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(waits[i].notified, waits[i].nodes[0].value <= 1234);
	assert_int_equal(f.object.waiters, MANY - 1234);
	assert_int_equal(check_heap(f.object.heap, NULL), MANY - 1234);
	signal(&f, UINT64_MAX, false);
	assert_int_equal(notified_count, MANY);
	assert_null(f.object.heap);
	assert_int_equal(f.object.waiters, 0);
	stop(&w);
	free(waits);
}

static void mfn_14_mfn_15_waits_for_all_and_any_of_several_values(void **state)
{
	struct world w;
	struct fence f[3];
	struct fence *const both[] = {&f[0], &f[1], &f[2]}, *const twice[] = {&f[0], &f[0]};
	const uint64_t values[] = {3, 5, 7}, steps[] = {3, 5};
	struct wait all, any, same;

	(void)state;
	start(&w);
	for (uint32_t i = 0; i < 3; i++)
		make(&w, &f[i], 0);
	notified_count = 0;
	assert_false(begin(&w, &all, both, values, 3, false));
	assert_false(begin(&w, &any, both, values, 3, true));
	assert_false(begin(&w, &same, twice, steps, 2, false));
	signal(&f[1], 5, false);
	assert_int_equal(any.notified, 1);
	assert_int_equal(all.notified, 0);
	signal(&f[0], 4, false);
	assert_int_equal(same.notified, 0);
	signal(&f[2], 9, false);
	assert_int_equal(all.notified, 1);
	signal(&f[0], 5, false);
	assert_int_equal(same.notified, 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_null(f[i].object.heap);
		assert_int_equal(f[i].object.waiters, 0);
	}
	assert_true(begin(&w, &all, both, values, 3, false)); /* all values are reached */
	assert_true(begin(&w, &any, both, values, 3, true));
	stop(&w);
}

/* A value that was reached and rewound before the last one is reached does not count. */
static void mfn_14_mfn_24_a_wait_for_all_needs_all_values_at_the_same_time(void **state)
{
	struct world w;
	struct fence f[2];
	struct fence *const both[] = {&f[0], &f[1]};
	const uint64_t values[] = {3, 3};
	struct wait all;

	(void)state;
	start(&w);
	make(&w, &f[0], 0);
	make(&w, &f[1], 0);
	assert_false(begin(&w, &all, both, values, 2, false));
	signal(&f[0], 3, false);
	signal(&f[0], 1, true);
	signal(&f[1], 3, false);
	assert_int_equal(all.notified, 0);
	signal(&f[0], 3, false);
	assert_int_equal(all.notified, 1);
	assert_int_equal(all.wait.status, VMM_OK);
	stop(&w);
}

static void mfn_17_destroying_a_fence_frees_its_cpu_waits(void **state)
{
	enum { WAITS = 100 };
	static struct wait waits[WAITS];
	struct world w;
	struct fence f;
	struct fence *const fence = &f;
	struct vmm_sync_batch batch;
	uint32_t cancelled = 0;
	bool all;

	(void)state;
	start(&w);
	make(&w, &f, 0);
	for (uint64_t i = 0; i < WAITS; i++) {
		uint64_t value = i + 1;

		assert_false(begin(&w, &waits[i], &fence, &value, 1, false));
		waits[i].wait.of_cpu = i % 3 != 0;
		cancelled += waits[i].wait.of_cpu;
	}
	notified_count = 0;
	vmm_sync_batch_init(&batch, w.os);
	do {
		notified_last = 0;
		vmm_sync_lock(&w.world);
		all = vmm_sync_cancel_locked(&f.object, &batch);
		vmm_sync_unlock(&w.world);
		vmm_sync_batch_flush(&batch);
	} while (!all);
	assert_int_equal(notified_count, cancelled);
	for (uint32_t i = 0; i < WAITS; i++)
		if (waits[i].notified)
			assert_int_equal(waits[i].wait.status, VMM_CANCELLED);
	assert_int_equal(check_heap(f.object.heap, NULL), WAITS - cancelled);
	signal(&f, WAITS, false); /* waits of contexts remain (MFN-33) */
	assert_int_equal(notified_count, WAITS);
	stop(&w);
}

/* A wait for any of three fences that a thread sleeps in. */
static void begin_asleep(struct world *w, struct wait *t, struct vmm_sleeper *sleeper,
			 struct fence *f)
{
	struct fence *const all[] = {&f[0], &f[1], &f[2]};
	const uint64_t values[] = {3, 5, 7};

	for (uint32_t i = 0; i < 3; i++)
		make(w, &f[i], 0);
	memset(sleeper, 0, sizeof(*sleeper));
	assert_false(begin(w, t, all, values, 3, true));
	t->wait.on_end = NULL;
	t->wait.sleeper = sleeper;
}

static void cancel(struct world *w, struct fence *f)
{
	struct vmm_sync_batch batch;

	vmm_sync_batch_init(&batch, w->os);
	vmm_sync_lock(&w->world);
	assert_true(vmm_sync_cancel_locked(&f->object, &batch));
	vmm_sync_unlock(&w->world);
	vmm_sync_batch_flush(&batch);
}

/* Returns whether the wait was not done. After this no fence may have a node of the wait. */
static bool withdraw(struct world *w, struct wait *t, const struct fence *f)
{
	vmm_sync_lock(&w->world);
	bool withdrawn = vmm_sync_wait_withdraw_locked(&t->wait);
	vmm_sync_unlock(&w->world);
	for (uint32_t i = 0; i < 3; i++) {
		assert_null(f[i].object.heap);
		assert_int_equal(f[i].object.waiters, 0);
	}
	assert_int_equal(t->wait.missing, 0);
	assert_int_equal(w->world.sync_awaited_count, 0);
	assert_true(vmm_list_empty(&w->world.sync_awaited));
	return withdrawn;
}

/*
 * Until the thread runs, the wait has nodes in the heaps of the other fences. A signal or the end
 * of one of those removes the node there, and ends the wait no second time.
 */
static void mfn_15_a_sleeper_whose_wait_is_over_withdraws_it_from_the_other_fences(void **state)
{
	struct world w;
	struct fence f[3];
	struct wait t;
	struct vmm_sleeper sleeper;

	(void)state;
	start(&w);
	begin_asleep(&w, &t, &sleeper, f);
	signal(&f[1], 5, false);
	assert_int_equal(sleeper.state, VMM_SLEEPER_DONE);
	assert_false(withdraw(&w, &t, f));
	assert_int_equal(t.wait.status, VMM_OK);

	begin_asleep(&w, &t, &sleeper, f);
	signal(&f[1], 5, false);
	atomic_store(&sleeper.state, 0);
	signal(&f[0], 3, false);
	assert_null(f[0].object.heap);
	cancel(&w, &f[2]);
	assert_null(f[2].object.heap);
	assert_int_equal(sleeper.state, 0);
	assert_int_equal(t.wait.status, VMM_OK);
	assert_false(withdraw(&w, &t, f));

	begin_asleep(&w, &t, &sleeper, f);
	cancel(&w, &f[2]); /* SFL-30 */
	assert_int_equal(sleeper.state, VMM_SLEEPER_DONE);
	signal(&f[1], 5, false);
	assert_int_equal(t.wait.status, VMM_CANCELLED);
	assert_false(withdraw(&w, &t, f));

	begin_asleep(&w, &t, &sleeper, f);
	assert_true(withdraw(&w, &t, f));
	assert_int_equal(sleeper.state, 0);
	stop(&w);
}

/* Two openings of one object, as two processes have them. */
static void end_opening(struct vmm_sync_object *object)
{
	struct vmm_process process = {.world = object->world};
	struct vmm_sync *sync = vmm_calloc(1, sizeof(*sync));

	assert_non_null(sync);
	sync->object = object;
	sync->process = &process;
	notified_last = 0;
	vmm_sync_end(sync);
}

static void sfl_27_sfl_28_sfl_29_the_flag_decides_which_destroy_frees_waiters(void **state)
{
	struct world w;

	(void)state;
	start(&w);
	for (uint32_t flags = 0; flags <= VMM_SYNC_UNWAIT_ON_LAST;
	     flags += VMM_SYNC_UNWAIT_ON_LAST) {
		for (uint32_t openings = 1; openings <= 2; openings++) {
			struct vmm_sync_object *object = vmm_calloc(1, sizeof(*object));
			struct fence *fence = vmm_container_of(object, struct fence, object);
			const uint64_t one = 1;
			struct wait wait;

			assert_non_null(object);
			object->world = &w.world;
			object->type = VMM_SYNC_MONITORED_FENCE;
			object->flags = flags;
			object->event = -1;
			assert_int_equal(vmm_sync_slot_take_own(w.os, &object->slot), VMM_OK);
			object->word = (void *)object->slot.page->memory.base;
			atomic_init(&object->step, 1);
			vmm_list_init(&object->awaited);
			vmm_list_init(&object->queue);
			vmm_list_init(&object->held);
			object->openings = openings;
			atomic_init(&object->references, openings);
			assert_false(begin(&w, &wait, &fence, &one, 1, false));
			end_opening(object);
			assert_int_equal(wait.notified, !flags || openings == 1);
			if (openings == 2)
				end_opening(object);
			assert_int_equal(wait.notified, 1);
			assert_int_equal(wait.wait.status, VMM_CANCELLED);
		}
	}
	stop(&w);
}

/*
 * A GPU stores values without a notification; its interrupt has all waits checked. That races with
 * a wait that begins at the same moment. Each round is one store and one wait; the end of the last
 * wait shows that none was missed.
 */
/* Few under the thread sanitizer, which is slow. */
#define STORES_MANY 20000
#define STORES_FEW  2000
#if defined(__SANITIZE_THREAD__)
#define STORES STORES_FEW
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STORES STORES_FEW
#endif
#endif
#ifndef STORES
#define STORES STORES_MANY
#endif
enum { LOOKS = 1000000 };

struct stores {
	struct world w;
	struct fence f;
	_Atomic uint64_t begun; /* rounds */
	_Atomic bool over;
	uint64_t met;
};

static _Atomic uint64_t stores_notified;

static void notify_of_store(struct vmm_sync_wait *wait)
{
	atomic_store(&stores_notified, wait->nodes[0].value);
}

static void *store_values(void *context)
{
	struct stores *s = context;
	uint32_t drawn = 1;

	vmm_os_set_current(s->w.os);
	for (uint64_t round = 1; round <= STORES; round++) {
		for (uint32_t looks = 0; atomic_load(&s->begun) < round; looks++) {
			if (atomic_load(&s->over))
				return NULL;
			if (looks > LOOKS)
				sched_yield();
		}
		drawn = drawn * 1664525 + 1013904223;
		for (uint32_t looks = drawn >> 24; looks; looks--)
			(void)atomic_load(&s->begun);
		atomic_store(&s->f.word, round);
		vmm_sync_reread(&s->w.world);
	}
	return NULL;
}

/* Twenty seconds of processor time for an action of a microsecond: the store was missed. */
static bool await_notified(uint64_t round)
{
	clock_t end = clock() + 20 * CLOCKS_PER_SEC;

	for (uint32_t looks = 0; atomic_load(&stores_notified) < round; looks++) {
		if (looks < LOOKS)
			continue;
		sched_yield();
		if (clock() > end)
			return false;
	}
	return true;
}

static void mfn_26_a_starting_wait_does_not_miss_a_gpu_store(void **state)
{
	const struct vmm_os_config config = {.kind = VMM_OS_LINUX};
	struct stores *s = calloc(1, sizeof(*s));
	pthread_t gpu;
	bool missed = false;

	(void)state;
	assert_non_null(s);
	start_on(&s->w, &config);
	make(&s->w, &s->f, 0);
	assert_int_equal(pthread_create(&gpu, NULL, store_values, s), 0);
	for (uint64_t round = 1; round <= STORES && !missed; round++) {
		struct vmm_sync_node node = {.object = &s->f.object, .value = round};
		struct vmm_sync_wait wait = {.world = &s->w.world,
					     .nodes = &node,
					     .count = 1,
					     .on_end = notify_of_store};

		node.wait = &wait;
		vmm_list_init(&wait.link);
		atomic_store(&s->begun, round);
		vmm_sync_lock(&s->w.world);
		bool there = vmm_sync_wait_begin_locked(&wait);
		vmm_sync_unlock(&s->w.world);
		if (there)
			s->met++;
		else
			missed = !await_notified(round);
	}
	atomic_store(&s->over, true);
	pthread_join(gpu, NULL);
	printf("# %u stores, %llu of them before the wait\n", STORES, (unsigned long long)s->met);
	assert_false(missed);
	stop(&s->w);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wait_heap_stays_ordered_after_any_removal),
		cmocka_unit_test(mfn_16_one_signal_frees_only_satisfied_waits_of_ten_thousand),
		cmocka_unit_test(mfn_14_mfn_15_waits_for_all_and_any_of_several_values),
		cmocka_unit_test(mfn_14_mfn_24_a_wait_for_all_needs_all_values_at_the_same_time),
		cmocka_unit_test(
			mfn_15_a_sleeper_whose_wait_is_over_withdraws_it_from_the_other_fences),
		cmocka_unit_test(mfn_17_destroying_a_fence_frees_its_cpu_waits),
		cmocka_unit_test(mfn_26_a_starting_wait_does_not_miss_a_gpu_store),
		cmocka_unit_test(sfl_27_sfl_28_sfl_29_the_flag_decides_which_destroy_frees_waiters),
	};

	return cmocka_run_group_tests_name("sync waits", tests, NULL, NULL);
}
