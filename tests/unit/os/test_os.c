/* SPDX-License-Identifier: MIT */
/* What both back ends guarantee: worlds, threads, waiting, mutexes and their ranks. */
#include "os_world.h"

#define MS 1000000u

/* ---- worlds and threads ---- */

static void the_creating_thread_belongs_to_the_newest_world(void **state)
{
	struct vmm_os *os = *state, *second;
	int object;

	assert_ptr_equal(vmm_os_current(), os);
	second = world_create(vmm_os_kind(os));
	assert_ptr_equal(vmm_os_current(), second);
	assert_ptr_equal(vmm_os_set_current(os), second);
	vmm_os_destroy(second);
	assert_ptr_equal(vmm_os_current(), os);
	assert_null(vmm_os_attached(os));
	vmm_os_attach(os, &object);
	assert_ptr_equal(vmm_os_attached(os), &object);
}

struct seen {
	struct vmm_os *os;
	struct vmm_os *current;
	struct vmm_os_thread *self;
	uint64_t slot_before;
	char name[64];
};

static void check_thread_identity(void *arg)
{
	struct seen *seen = arg;

	seen->current = vmm_os_current();
	seen->self = vmm_os_thread_self(seen->os);
	strcpy(seen->name, vmm_os_thread_name(seen->self));
	seen->slot_before = *vmm_os_thread_slot(seen->self, 0);
	*vmm_os_thread_slot(seen->self, 0) = 5;
}

/*
 * The record that a thread keeps at hand is that of the world it used last, never of an ended one.
 */
static void the_own_record_follows_the_world_that_is_asked_for(void **state)
{
	struct vmm_os *os = *state, *second;
	const enum vmm_os_kind kind = vmm_os_kind(os);

	VMM_OS_OWN(os)->slot[0] = 3;
	for (unsigned i = 0; i < 3; i++) { /* a new world may have the address of an ended one */
		second = world_create(kind);
		assert_int_equal(VMM_OS_OWN(second)->slot[0], 0);
		VMM_OS_OWN(second)->slot[0] = 4;
		assert_int_equal(VMM_OS_OWN(os)->slot[0], 3);
		assert_int_equal(VMM_OS_OWN(second)->slot[0], 4);
		assert_int_not_equal(VMM_OS_FRONT(second)->id, VMM_OS_FRONT(os)->id);
		vmm_os_destroy(second);
	}
	assert_int_equal(VMM_OS_OWN(os)->slot[0], 3);
	vmm_os_set_current(os);
}

static void a_thread_has_an_identity_a_world_and_slots(void **state)
{
	struct seen seen = {.os = *state, .slot_before = 99};
	struct vmm_os_thread *self = vmm_os_thread_self(*state);
	struct vmm_os_thread *thread;

	*vmm_os_thread_slot(self, 0) = 3;
	thread = start(*state, "worker", check_thread_identity, &seen);
	vmm_os_thread_join(thread);
	assert_ptr_equal(seen.current, *state);
	assert_ptr_equal(seen.self, thread);
	assert_string_equal(seen.name, "worker");
	assert_int_equal(seen.slot_before, 0);
	assert_int_equal(*vmm_os_thread_slot(self, 0), 3);
	assert_ptr_equal(vmm_os_thread_self(*state), self);
}

static void random_numbers_differ(void **state)
{
	uint64_t a = vmm_os_random(*state), b = vmm_os_random(*state);

	assert_true(a != b);
}

static void out_of_memory_is_a_status(void **state)
{
	struct vmm_os_config config = {.kind = vmm_os_kind(*state)};
	struct vmm_os *os = NULL;
	struct vmm_os_thread *thread;
	struct vmm_os_memory memory = {0};

	for (uint32_t n = 1; n < 10; n++) {
		vmm_calloc_fail_after(n);
		if (vmm_os_create(&config, &os) == VMM_OK) {
			assert_true(n > 1);
			vmm_os_destroy(os);
			break;
		}
		assert_null(os);
	}
	vmm_calloc_fail_after(1);
	assert_int_equal(vmm_os_thread_create(*state, "t", check_thread_identity, NULL, &thread),
			 VMM_NO_MEMORY);
	vmm_calloc_fail_after(1);
	assert_int_equal(vmm_os_memory_create(*state, "m", 4096, &memory), VMM_NO_MEMORY);
	vmm_calloc_fail_after(0);
	assert_null(memory.base);
}

/* ---- waiting ---- */

static void a_wait_on_another_value_returns_at_once(void **state)
{
	_Atomic uint32_t word = 7;

	assert_int_equal(vmm_os_wait(*state, &word, 8, VMM_OS_FOREVER, "test", 0), VMM_OK);
}

static void a_wait_ends_at_its_deadline(void **state)
{
	uint64_t until = vmm_os_now_ns(*state) + 5 * MS;
	_Atomic uint32_t word = 0;
	vmm_status status;

	do
		status = vmm_os_wait(*state, &word, 0, until, "test", 0);
	while (status == VMM_OK);
	assert_int_equal(status, VMM_TIMEOUT);
	assert_true(vmm_os_now_ns(*state) >= until);
	assert_int_equal(vmm_os_wait(*state, &word, 0, until, "test", 0), VMM_TIMEOUT);
}

static void a_sleep_lasts_until_its_time(void **state)
{
	uint64_t until = vmm_os_now_ns(*state) + 2 * MS;

	vmm_os_sleep_until(*state, until);
	assert_true(vmm_os_now_ns(*state) >= until);
	vmm_os_sleep_until(*state, 0);
}

struct relay {
	struct vmm_os *os;
	_Atomic uint32_t turn;
	uint32_t rounds, me[2];
	bool failed;
};

static void relay_runner(struct relay *relay, uint32_t me)
{
	for (uint32_t i = 0; i < relay->rounds; i++) {
		while (atomic_load(&relay->turn) != 2 * i + me) {
			uint32_t seen = atomic_load(&relay->turn);

			if (seen == 2 * i + me)
				break;
			if (vmm_os_wait(relay->os, &relay->turn, seen, VMM_OS_FOREVER, "turn",
					me) != VMM_OK)
				relay->failed = true;
		}
		atomic_store(&relay->turn, 2 * i + me + 1);
		vmm_os_wake(relay->os, &relay->turn, UINT32_MAX);
	}
}

static void relay_first(void *arg)
{
	relay_runner(arg, 0);
}

static void relay_second(void *arg)
{
	relay_runner(arg, 1);
}

static void no_wake_up_is_lost(void **state)
{
	struct relay relay = {.os = *state, .rounds = 2000};
	struct vmm_os_thread *first = start(*state, "first", relay_first, &relay);
	struct vmm_os_thread *second = start(*state, "second", relay_second, &relay);

	vmm_os_thread_join(first);
	vmm_os_thread_join(second);
	assert_false(relay.failed);
	assert_int_equal(atomic_load(&relay.turn), 4000);
}

struct sleepers {
	struct vmm_os *os;
	_Atomic uint32_t word, asleep, woken;
};

static void sleeper(void *arg)
{
	struct sleepers *s = arg;

	atomic_fetch_add(&s->asleep, 1);
	vmm_os_wake(s->os, &s->asleep, 1);
	while (atomic_load(&s->word) == 0)
		vmm_os_wait(s->os, &s->word, 0, VMM_OS_FOREVER, "word", 0);
	atomic_fetch_add(&s->woken, 1);
}

static void one_wake_of_all_wakes_every_waiter(void **state)
{
	struct sleepers s = {.os = *state};
	struct vmm_os_thread *thread[5];
	uint32_t seen;

	for (int i = 0; i < 5; i++)
		thread[i] = start(*state, "sleeper", sleeper, &s);
	while ((seen = atomic_load(&s.asleep)) < 5)
		vmm_os_wait(*state, &s.asleep, seen, VMM_OS_FOREVER, "sleepers", seen);
	atomic_store(&s.word, 1);
	vmm_os_wake(*state, &s.word, UINT32_MAX);
	for (int i = 0; i < 5; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(atomic_load(&s.woken), 5);
}

/* ---- settling ---- */

#define CHAIN 6u

struct chain {
	struct vmm_os *os;
	_Atomic uint32_t word[CHAIN + 1];
};

struct link {
	struct chain *chain;
	uint32_t index;
};

/* Passes on the value that it gets; 0 is the initial value, UINT32_MAX ends it. */
static void hand_on(void *arg)
{
	const struct link *link = arg;
	struct chain *c = link->chain;

	for (uint32_t seen = 0; seen != UINT32_MAX;) {
		vmm_os_wait(c->os, &c->word[link->index], seen, VMM_OS_FOREVER, "link", seen);
		seen = atomic_load(&c->word[link->index]);
		atomic_store(&c->word[link->index + 1], seen);
		vmm_os_wake(c->os, &c->word[link->index + 1], 1);
	}
}

static void settling_waits_for_a_whole_chain_of_wakes(void **state)
{
	struct chain c = {.os = *state};
	struct vmm_os_thread *thread[CHAIN];
	struct link link[CHAIN];

	for (uint32_t i = 0; i < CHAIN; i++) {
		link[i] = (struct link){&c, i};
		thread[i] = start(*state, "link", hand_on, &link[i]);
	}
	for (uint32_t round = 1; round <= 200; round++) {
		atomic_store(&c.word[0], round);
		vmm_os_wake(*state, &c.word[0], 1);
		vmm_os_settle(*state);
		assert_int_equal(atomic_load(&c.word[CHAIN]), round);
	}
	atomic_store(&c.word[0], UINT32_MAX);
	vmm_os_wake(*state, &c.word[0], 1);
	for (uint32_t i = 0; i < CHAIN; i++)
		vmm_os_thread_join(thread[i]);
}

struct turns {
	struct vmm_os *os;
	_Atomic bool enough;
	_Atomic uint32_t taken[3];
	uint32_t left_out; /* how often one of them had run */
};

struct turn {
	struct turns *turns;
	uint32_t index;
};

static void take_turns(void *arg)
{
	const struct turn *turn = arg;

	while (!atomic_load(&turn->turns->enough)) {
		atomic_fetch_add(&turn->turns->taken[turn->index], 1);
		vmm_os_settle(turn->turns->os);
	}
}

/* A thread of the world: the others do not run while it compares. */
static void watch_turns(void *arg)
{
	struct turns *turns = arg;

	vmm_os_settle(turns->os);
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t before[3];

		for (uint32_t i = 0; i < 3; i++)
			before[i] = atomic_load(&turns->taken[i]);
		vmm_os_settle(turns->os);
		for (uint32_t i = 0; i < 3; i++)
			turns->left_out += atomic_load(&turns->taken[i]) == before[i];
	}
	atomic_store(&turns->enough, true);
}

/*
 * Of four settling threads, each of three gets one turn for every turn of the fourth: they continue
 * in the order in which they settled.
 */
static void settling_threads_take_turns(void **state)
{
	struct turns turns = {.os = *state};
	struct turn turn[3];
	struct vmm_os_thread *thread[4];

	for (uint32_t i = 0; i < 3; i++) {
		turn[i] = (struct turn){&turns, i};
		thread[i] = start(*state, "settler", take_turns, &turn[i]);
	}
	thread[3] = start(*state, "watcher", watch_turns, &turns);
	for (uint32_t i = 0; i < 4; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(turns.left_out, 0);
}

/* ---- mutexes ---- */

struct shared {
	struct vmm_os *os;
	struct vmm_os_mutex outer, inner;
	uint64_t counter, rounds;
	_Atomic bool held_wrongly;
	bool trylock_took_it;
};

static void shared_init(struct shared *shared, struct vmm_os *os, uint64_t rounds)
{
	*shared = (struct shared){.os = os, .rounds = rounds};
	vmm_os_mutex_init(&shared->outer, os, 10, "outer");
	vmm_os_mutex_init(&shared->inner, os, 20, "inner");
}

static void shared_finish(struct shared *shared)
{
	vmm_os_mutex_finish(&shared->outer);
	vmm_os_mutex_finish(&shared->inner);
}

static void count_under_mutex(void *arg)
{
	struct shared *shared = arg;

	for (uint64_t i = 0; i < shared->rounds; i++) {
		uint64_t value;

		vmm_os_mutex_lock(&shared->outer);
		value = shared->counter;
		if (i % 64 == 0) {
			vmm_os_mutex_lock(&shared->inner);
			vmm_os_mutex_unlock(&shared->inner);
		}
		shared->counter = value + 1;
		if (!vmm_os_mutex_held(&shared->outer))
			atomic_store(&shared->held_wrongly, true);
		vmm_os_mutex_unlock(&shared->outer);
		if (vmm_os_mutex_held(&shared->outer))
			atomic_store(&shared->held_wrongly, true);
	}
}

static void a_mutex_excludes(void **state)
{
	struct vmm_os_thread *thread[4];
	struct shared shared;

	shared_init(&shared, *state, 20000);
	for (int i = 0; i < 4; i++)
		thread[i] = start(*state, "counter", count_under_mutex, &shared);
	for (int i = 0; i < 4; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(shared.counter, 80000);
	assert_false(shared.held_wrongly);
	shared_finish(&shared);
}

static void hold_briefly(void *arg)
{
	struct shared *shared = arg;

	vmm_os_mutex_lock(&shared->outer);
	vmm_os_sleep_until(shared->os, vmm_os_now_ns(shared->os) + 5 * MS);
	shared->counter++;
	vmm_os_mutex_unlock(&shared->outer);
}

static void contended_waiters_get_the_mutex_in_the_end(void **state)
{
	struct vmm_os_thread *thread[3];
	struct shared shared;

	shared_init(&shared, *state, 0);
	for (int i = 0; i < 3; i++)
		thread[i] = start(*state, "holder", hold_briefly, &shared);
	for (int i = 0; i < 3; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(shared.counter, 3);
	shared_finish(&shared);
}

static void try_the_lock(void *arg)
{
	struct shared *shared = arg;

	shared->trylock_took_it = vmm_os_mutex_trylock(&shared->outer);
	if (shared->trylock_took_it)
		vmm_os_mutex_unlock(&shared->outer);
}

static void trylock_fails_on_a_held_mutex_and_ignores_ranks(void **state)
{
	struct shared shared;

	shared_init(&shared, *state, 0);
	vmm_os_mutex_lock(&shared.outer);
	vmm_os_thread_join(start(*state, "trier", try_the_lock, &shared));
	assert_false(shared.trylock_took_it);
	vmm_os_mutex_unlock(&shared.outer);

	vmm_os_mutex_lock(&shared.inner);
	assert_true(vmm_os_mutex_trylock(&shared.outer));
	vmm_os_mutex_unlock(&shared.inner); /* not in the order taken */
	vmm_os_mutex_unlock(&shared.outer);
	shared_finish(&shared);
}

/* ---- what asserts; each in a child process with a separate world ---- */

static void lock_in_wrong_order(void *kind)
{
	struct shared shared;

	shared_init(&shared, world_create(*(enum vmm_os_kind *)kind), 0);
	vmm_os_mutex_lock(&shared.inner);
	vmm_os_mutex_lock(&shared.outer);
}

static void lock_twice(void *kind)
{
	struct shared shared;

	shared_init(&shared, world_create(*(enum vmm_os_kind *)kind), 0);
	vmm_os_mutex_lock(&shared.outer);
	vmm_os_mutex_lock(&shared.outer);
}

static void pass_in_wrong_order(void *kind)
{
	struct shared shared;

	shared_init(&shared, world_create(*(enum vmm_os_kind *)kind), 0);
	vmm_os_mutex_check_rank(&shared.inner); /* nothing is held, before or after */
	vmm_os_mutex_lock(&shared.inner);
	vmm_os_mutex_check_rank(&shared.outer);
}

static void unlock_what_is_free(void *kind)
{
	struct shared shared;

	shared_init(&shared, world_create(*(enum vmm_os_kind *)kind), 0);
	vmm_os_mutex_unlock(&shared.outer);
}

static void finish_a_held_mutex(void *kind)
{
	struct shared shared;

	shared_init(&shared, world_create(*(enum vmm_os_kind *)kind), 0);
	vmm_os_mutex_lock(&shared.outer);
	shared_finish(&shared);
}

static void misuse_of_a_mutex_asserts(void **state)
{
	enum vmm_os_kind kind = vmm_os_kind(*state);

	assert_true(aborts_saying(lock_in_wrong_order, &kind, "rank_is_greater_than_held"));
	assert_true(aborts_saying(lock_twice, &kind, "rank_is_greater_than_held"));
	assert_true(aborts_saying(pass_in_wrong_order, &kind, "rank_is_greater_than_held"));
	assert_true(aborts_saying(unlock_what_is_free, &kind, "assertion failed"));
	assert_true(aborts_saying(finish_a_held_mutex, &kind, "assertion failed"));
}

static void leave_a_memory_object(void *kind)
{
	struct vmm_os *os = world_create(*(enum vmm_os_kind *)kind);
	struct vmm_os_memory memory;

	if (vmm_os_memory_create(os, "segment 1", 65536, &memory) == VMM_OK)
		vmm_os_destroy(os);
}

static void leave_a_view(void *kind)
{
	struct vmm_os *os = world_create(*(enum vmm_os_kind *)kind);
	struct vmm_os_view view;

	if (vmm_os_view_reserve(os, 8192, &view) == VMM_OK)
		vmm_os_destroy(os);
}

static void nothing_to_do(void *arg)
{
	(void)arg;
}

static void leave_a_thread(void *kind)
{
	struct vmm_os *os = world_create(*(enum vmm_os_kind *)kind);
	struct vmm_os_thread *thread;

	if (vmm_os_thread_create(os, "engine 3", nothing_to_do, NULL, &thread) == VMM_OK)
		vmm_os_destroy(os);
}

static void leaked_objects_are_named_at_the_end(void **state)
{
	enum vmm_os_kind kind = vmm_os_kind(*state);

	assert_true(aborts_saying(leave_a_memory_object, &kind,
				  "memory object \"segment 1\" of 65536 bytes"));
	assert_true(aborts_saying(leave_a_view, &kind, "1 views of 8192 bytes"));
	assert_true(aborts_saying(leave_a_thread, &kind, "thread \"engine 3\" not joined"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(the_creating_thread_belongs_to_the_newest_world),
		BOTH(a_thread_has_an_identity_a_world_and_slots),
		BOTH(the_own_record_follows_the_world_that_is_asked_for),
		BOTH(random_numbers_differ),
		BOTH(out_of_memory_is_a_status),
		BOTH(a_wait_on_another_value_returns_at_once),
		BOTH(a_wait_ends_at_its_deadline),
		BOTH(a_sleep_lasts_until_its_time),
		BOTH(no_wake_up_is_lost),
		BOTH(one_wake_of_all_wakes_every_waiter),
		BOTH(settling_waits_for_a_whole_chain_of_wakes),
		BOTH(settling_threads_take_turns),
		BOTH(a_mutex_excludes),
		BOTH(contended_waiters_get_the_mutex_in_the_end),
		BOTH(trylock_fails_on_a_held_mutex_and_ignores_ranks),
		BOTH(misuse_of_a_mutex_asserts),
		BOTH(leaked_objects_are_named_at_the_end),
	};

	return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
