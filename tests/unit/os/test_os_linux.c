/* SPDX-License-Identifier: MIT */
/*
 * What only the linux back end guarantees: real concurrency, foreign threads, views that move while
 * threads write.
 */
#include "os_world.h"

#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/failure.h"
#include "os/os_context.h"
#include "os/os_own_thread.h"

/* ---- foreign threads ---- */

struct foreign {
	struct vmm_os *os;
	struct vmm_os_mutex *mutex;
	uint64_t *counter;
	struct vmm_os_thread *self;
};

static void *foreign_thread(void *arg)
{
	struct foreign *foreign = arg;

	for (int i = 0; i < 1000; i++) {
		vmm_os_mutex_lock(foreign->mutex);
		++*foreign->counter;
		vmm_os_mutex_unlock(foreign->mutex);
	}
	foreign->self = vmm_os_thread_self(foreign->os);
	return NULL;
}

static void foreign_threads_are_adopted_and_forgotten(void **state)
{
	struct vmm_os_thread *self = vmm_os_thread_self(*state);
	struct vmm_os_mutex mutex;
	uint64_t counter = 0;

	vmm_os_mutex_init(&mutex, *state, 1, "shared");
	for (int round = 0; round < 20; round++) {
		struct foreign foreign[4];
		pthread_t thread[4];

		for (int i = 0; i < 4; i++) {
			foreign[i] = (struct foreign){
				.os = *state, .mutex = &mutex, .counter = &counter};
			assert_int_equal(
				pthread_create(&thread[i], NULL, foreign_thread, &foreign[i]), 0);
		}
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
		for (int i = 0; i < 4; i++)
			assert_ptr_not_equal(foreign[i].self, self);
	}
	assert_int_equal(counter, 80000);
	vmm_os_mutex_finish(&mutex);
}

/* ---- adoption without memory ---- */

enum { STARVED = 80 }; /* more threads than the reserve has records */

struct starved {
	struct vmm_os *os;
	_Atomic uint32_t adopted, may_end;
};

/* Every allocation of the thread fails. It is adopted, and stays until it may end. */
static void *starved_thread(void *arg)
{
	struct starved *starved = arg;

	vmm_fail_by_seed(1u << VMM_FAIL_ALLOCATION, 1, 1);
	(void)vmm_os_thread_self(starved->os);
	atomic_fetch_add(&starved->adopted, 1);
	while (!atomic_load(&starved->may_end))
		sched_yield();
	return NULL;
}

static void q_482_adoption_without_memory_waits_for_a_record(void **state)
{
	struct starved starved = {.os = *state};
	pthread_t thread[STARVED];

	for (int i = 0; i < STARVED; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, starved_thread, &starved), 0);
	/* The others wait, until threads end that have a record. */
	while (atomic_load(&starved.adopted) < 64)
		sched_yield();
	assert_int_equal(atomic_load(&starved.adopted), 64);
	atomic_store(&starved.may_end, 1);
	for (int i = 0; i < STARVED; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(atomic_load(&starved.adopted), STARVED);
}

static void q_482_a_thread_of_the_library_brings_its_record(void **state)
{
	struct starved starved = {.os = *state};
	pthread_t thread[STARVED];

	for (uint32_t n = 1; n <= 2; n++) {
		(void)vmm_fail_after(VMM_FAIL_ALLOCATION, n);
		assert_false(
			vmm_os_start_own_thread(&thread[0], starved_thread, &starved, "starved"));
		assert_int_equal(vmm_fail_after(VMM_FAIL_ALLOCATION, 0), 0);
	}
	(void)vmm_fail_after(VMM_FAIL_THREAD, 1);
	assert_false(vmm_os_start_own_thread(&thread[0], starved_thread, &starved, "starved"));
	for (int i = 0; i < STARVED; i++)
		assert_true(
			vmm_os_start_own_thread(&thread[i], starved_thread, &starved, "starved"));
	while (atomic_load(&starved.adopted) < STARVED)
		sched_yield();
	atomic_store(&starved.may_end, 1);
	for (int i = 0; i < STARVED; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

struct two_worlds {
	struct vmm_os *mine, *other;
	struct vmm_os_thread *first, *again, *in_other;
};

static void use_two_worlds(void *arg)
{
	struct two_worlds *w = arg;

	w->first = vmm_os_thread_self(w->mine);
	w->in_other = vmm_os_thread_self(w->other);
	w->again = vmm_os_thread_self(w->mine);
}

static void a_thread_of_one_world_is_a_guest_in_another(void **state)
{
	struct vmm_os *other = world_create(VMM_OS_LINUX);
	struct two_worlds w = {.mine = *state, .other = other};
	struct vmm_os_thread *thread = start(*state, "worker", use_two_worlds, &w);

	vmm_os_thread_join(thread);
	assert_ptr_equal(w.first, w.again);
	assert_ptr_not_equal(w.first, w.in_other);
	vmm_os_destroy(other);
}

static void *guest_until_signaled(void *arg)
{
	struct foreign *foreign = arg;
	_Atomic uint32_t never = 0;

	/* Attaches to a world that ends before this thread does. */
	(void)vmm_os_wait(foreign->os, &never, 0, 1, "test", 0);
	foreign->self = vmm_os_thread_self(foreign->os);
	return NULL;
}

static void worlds_may_end_before_their_guests(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		struct vmm_os *os = world_create(VMM_OS_LINUX);
		struct vmm_os_thread *self = vmm_os_thread_self(os);
		struct foreign foreign = {.os = os};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, guest_until_signaled, &foreign), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_non_null(foreign.self);
		assert_ptr_not_equal(foreign.self, self);
		vmm_os_destroy(os);
	}
}

/* ---- stress ---- */

enum { STRESS_THREADS = 6, STRESS_ROUNDS = 4000, STRESS_MUTEXES = 3 };

struct stress {
	struct vmm_os *os;
	struct vmm_os_mutex mutex[STRESS_MUTEXES];
	uint64_t guarded[STRESS_MUTEXES];
	_Atomic uint32_t tokens;
	_Atomic uint64_t taken;
};

/* Takes tokens that the main thread provides, some of them under two mutexes. */
static void stress_worker(void *arg)
{
	struct stress *stress = arg;

	for (;;) {
		uint32_t tokens = atomic_load(&stress->tokens);
		uint64_t n;

		if (tokens == UINT32_MAX)
			return;
		if (!tokens) {
			vmm_os_wait(stress->os, &stress->tokens, 0, VMM_OS_FOREVER, "tokens", 0);
			continue;
		}
		if (!atomic_compare_exchange_weak(&stress->tokens, &tokens, tokens - 1))
			continue;
		n = atomic_fetch_add(&stress->taken, 1);
		vmm_os_mutex_lock(&stress->mutex[n % 2]);
		vmm_os_mutex_lock(&stress->mutex[2]);
		stress->guarded[n % 2]++;
		stress->guarded[2]++;
		vmm_os_mutex_unlock(&stress->mutex[2]);
		vmm_os_mutex_unlock(&stress->mutex[n % 2]);
	}
}

static void mutexes_and_waits_under_load(void **state)
{
	struct stress stress = {.os = *state};
	struct vmm_os_thread *thread[STRESS_THREADS];

	for (uint32_t i = 0; i < STRESS_MUTEXES; i++)
		vmm_os_mutex_init(&stress.mutex[i], *state, i + 1, "stress");
	for (int i = 0; i < STRESS_THREADS; i++)
		thread[i] = start(*state, "stress", stress_worker, &stress);
	for (int i = 0; i < STRESS_ROUNDS; i++) {
		atomic_fetch_add(&stress.tokens, 1);
		vmm_os_wake(*state, &stress.tokens, 1);
	}
	while (atomic_load(&stress.tokens))
		vmm_os_settle(*state);
	atomic_store(&stress.tokens, UINT32_MAX);
	vmm_os_wake(*state, &stress.tokens, UINT32_MAX);
	for (int i = 0; i < STRESS_THREADS; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(atomic_load(&stress.taken), STRESS_ROUNDS);
	assert_int_equal(stress.guarded[2], STRESS_ROUNDS);
	assert_int_equal(stress.guarded[0] + stress.guarded[1], STRESS_ROUNDS);
}

/* ---- PAG-16: content moves under running writers ---- */

enum { WRITERS = 4, SLOTS = 64, MOVES = 1500, VIEW_BYTES = 64 * 1024 };

struct moving {
	struct vmm_os *os;
	char *address;
	_Atomic bool stop;
	_Atomic uint32_t ready;
	struct writer {
		struct moving *moving;
		uint32_t index;
		uint64_t last;
		uint64_t went_back; /* slots that showed an older value than the stored one */
	} writer[WRITERS];
};

/*
 * The slots of each writer are spread over all pages, so that each page is written by all of them.
 */
static _Atomic uint64_t *slot_of(char *base, uint32_t writer, uint64_t number)
{
	uint64_t slot = number % SLOTS;

	return (_Atomic uint64_t *)(void *)(base + slot * (VIEW_BYTES / SLOTS) +
					    writer * sizeof(uint64_t));
}

static void write_on(void *arg)
{
	struct writer *writer = arg;
	struct moving *moving = writer->moving;
	uint64_t n = 0;

	atomic_fetch_add(&moving->ready, 1);
	vmm_os_wake(moving->os, &moving->ready, 1);
	while (!atomic_load_explicit(&moving->stop, memory_order_relaxed)) {
		_Atomic uint64_t *slot;

		n++;
		slot = slot_of(moving->address, writer->index, n);
		/*
		 * The value that this thread stored there in the previous round must still be
		 * there.
		 */
		if (n > SLOTS && atomic_load_explicit(slot, memory_order_relaxed) != n - SLOTS)
			writer->went_back++;
		atomic_store_explicit(slot, n, memory_order_relaxed);
	}
	writer->last = n;
}

static void check_last_values(struct moving *moving, const struct vmm_os_memory *where)
{
	for (uint32_t i = 0; i < WRITERS; i++) {
		const struct writer *writer = &moving->writer[i];

		assert_int_equal(writer->went_back, 0);
		assert_true(writer->last > SLOTS);
		for (uint64_t n = writer->last - SLOTS + 1; n <= writer->last; n++)
			assert_int_equal(atomic_load(slot_of(where->base, i, n)), n);
	}
}

static void pag_16_no_store_is_lost_when_content_moves(void **state)
{
	struct vmm_os_memory memory[2];
	struct moving moving = {.os = *state};
	struct vmm_os_thread *thread[WRITERS];
	struct vmm_os_view view;
	int at = 0;

	assert_int_equal(vmm_os_memory_create(*state, "a", VIEW_BYTES, &memory[0]), VMM_OK);
	assert_int_equal(vmm_os_memory_create(*state, "b", VIEW_BYTES, &memory[1]), VMM_OK);
	assert_int_equal(vmm_os_view_reserve(*state, VIEW_BYTES, &view), VMM_OK);
	assert_int_equal(vmm_os_view_map(&view, 0, &memory[0], 0, VIEW_BYTES), VMM_OK);
	if (vmm_os_view_freeze(&view) == VMM_NOT_SUPPORTED) {
		vmm_os_view_release(&view);
		vmm_os_memory_destroy(&memory[0]);
		vmm_os_memory_destroy(&memory[1]);
		skip();
	}
	vmm_os_view_thaw(&view);
	moving.address = view.address;
	for (uint32_t i = 0; i < WRITERS; i++) {
		moving.writer[i] = (struct writer){.moving = &moving, .index = i};
		thread[i] = start(*state, "writer", write_on, &moving.writer[i]);
	}
	for (uint32_t seen; (seen = atomic_load(&moving.ready)) < WRITERS;)
		vmm_os_wait(*state, &moving.ready, seen, VMM_OS_FOREVER, "writers", seen);
	for (int i = 0; i < MOVES; i++) {
		assert_int_equal(vmm_os_view_freeze(&view), VMM_OK);
		vmm_os_copy(memory[!at].base, memory[at].base, VIEW_BYTES);
		assert_int_equal(vmm_os_view_map(&view, 0, &memory[!at], 0, VIEW_BYTES), VMM_OK);
		/* The old placement is cleared: a store that still went there would be lost. */
		memset(memory[at].base, 0xEE, VIEW_BYTES);
		at = !at;
	}
	atomic_store(&moving.stop, true);
	for (int i = 0; i < WRITERS; i++)
		vmm_os_thread_join(thread[i]);
	check_last_values(&moving, &memory[at]);
	vmm_os_view_release(&view);
	vmm_os_memory_destroy(&memory[0]);
	vmm_os_memory_destroy(&memory[1]);
}

/* ---- settling ---- */

struct late {
	struct vmm_os *os;
	_Atomic bool done, stop;
};

static void run_slowly(void *arg)
{
	struct late *late = arg;

	for (uint64_t until = vmm_os_now_ns(late->os) + 200000000; vmm_os_now_ns(late->os) < until;)
		sched_yield();
	atomic_store(&late->done, true);
}

static void settling_waits_for_a_slow_thread(void **state)
{
	struct late late = {.os = *state};
	struct vmm_os_thread *thread = start(*state, "slow", run_slowly, &late);

	vmm_os_settle(*state);
	assert_true(atomic_load(&late.done));
	vmm_os_thread_join(thread);
}

static void run_until_stopped(void *arg)
{
	struct late *late = arg;

	while (!atomic_load(&late->stop))
		;
}

/* It would never end otherwise. */
static void settling_gives_up_on_a_thread_that_never_blocks(void **state)
{
	struct late late = {.os = *state};
	struct vmm_os_thread *thread = start(*state, "runs", run_until_stopped, &late);

	vmm_os_settle(*state);
	vmm_os_yield(*state); /* a polling call is not delayed at all */
	atomic_store(&late.stop, true);
	vmm_os_thread_join(thread);
}

static void count_calls(void *context)
{
	atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

/*
 * Marking the word when the process is killed is tested in tests/out_of_process, by a lock after
 * the host's death.
 */
static void a_stopping_watchdog_marks_its_word(void **state)
{
	_Atomic uint32_t word = 0, calls = 0;
	struct vmm_os_watchdog *watchdog;

	assert_int_equal(vmm_os_watchdog_start(*state, &word, count_calls, &calls, &watchdog),
			 VMM_OK);
	assert_true(atomic_load(&word) && !(atomic_load(&word) & VMM_OS_WATCHDOG_GONE));
	vmm_os_settle(*state); /* the watchdog only waits */
	uint32_t before = atomic_load(&calls);
	vmm_os_watchdog_notify(watchdog);
	vmm_os_settle(*state);
	assert_true(atomic_load(&calls) > before);
	vmm_os_watchdog_stop(watchdog);
	assert_true(atomic_load(&word) & VMM_OS_WATCHDOG_GONE);
}

/* ---- events whose owner fills them ---- */

static int to_be_filled = -1;

/*
 * Replaces a function for the whole program, the library included: after each poll of the event its
 * owner fills it, as if it had waited for that moment.
 */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	const struct timespec timeout = {.tv_sec = timeout_ms / 1000,
					 .tv_nsec = timeout_ms % 1000 * 1000000L};
	const uint64_t all = UINT64_MAX - 1;
	int ready = ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);

	if (to_be_filled >= 0) {
		assert_int_equal(write(to_be_filled, &all, sizeof(all)), sizeof(all));
		to_be_filled = -1;
	}
	return ready;
}

/*
 * In these configurations events are set by write(2), which may block: builds with ThreadSanitizer,
 * which knows the ordering of a write, and systems without asynchronous I/O.
 */
static bool kernel_sets_events(void)
{
#ifdef VMM_OS_TSAN
	return false;
#else
	aio_context_t context = 0;

	if (syscall(SYS_io_setup, 1, &context))
		return false;
	syscall(SYS_io_destroy, context);
	return true;
#endif
}

/* Setting the event does not block: the test ends. */
static void setting_a_full_event_does_not_block(void **state)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	uint64_t value;
	int own;

	(void)state;
	if (!kernel_sets_events()) {
		printf("# not tested: events are written to here\n");
		close(event);
		return;
	}
	assert_true(vmm_ok(vmm_os_event_open((uint64_t)event, &own)));
	to_be_filled = event;
	vmm_os_event_set(own);
	assert_int_equal(to_be_filled, -1); /* it was polled */
	assert_int_equal(read(event, &value, sizeof(value)), sizeof(value));
	assert_true(value >= UINT64_MAX - 1); /* full nevertheless */
	vmm_os_event_set(own);
	assert_int_equal(read(event, &value, sizeof(value)), sizeof(value));
	assert_int_equal(value, 1);
	vmm_os_event_close(own);
	close(event);
}

#define ON_LINUX(test)                                                                 \
	{                                                                              \
#test, test, world_setup, world_teardown, (void *)(uintptr_t)&on_linux \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LINUX(foreign_threads_are_adopted_and_forgotten),
		ON_LINUX(q_482_adoption_without_memory_waits_for_a_record),
		ON_LINUX(q_482_a_thread_of_the_library_brings_its_record),
		ON_LINUX(a_thread_of_one_world_is_a_guest_in_another),
		ON_LINUX(worlds_may_end_before_their_guests),
		ON_LINUX(mutexes_and_waits_under_load),
		ON_LINUX(pag_16_no_store_is_lost_when_content_moves),
		ON_LINUX(settling_waits_for_a_slow_thread),
		ON_LINUX(settling_gives_up_on_a_thread_that_never_blocks),
		ON_LINUX(a_stopping_watchdog_marks_its_word),
		ON_LINUX(setting_a_full_event_does_not_block),
	};

	(void)on_sim;
	return cmocka_run_group_tests_name("os_linux", tests, NULL, NULL);
}
