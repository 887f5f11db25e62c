/* SPDX-License-Identifier: MIT */
/*
 * What only the sim back end guarantees: virtual time, interleavings determined by a seed, deadlock
 * detection.
 */
#include "os_world.h"

#include <stdio.h>

#define US 1000u
#define MS 1000000u

static struct vmm_os *sim(uint64_t seed, uint32_t switch_per_1024)
{
	struct vmm_os_config config = {
		.kind = VMM_OS_SIM, .seed = seed, .switch_per_1024 = switch_per_1024};
	struct vmm_os *os = NULL;

	assert_int_equal(vmm_os_create(&config, &os), VMM_OK);
	return os;
}

/* ---- time ---- */

struct log {
	struct vmm_os *os;
	struct vmm_os_mutex mutex;
	_Atomic uint32_t word;
	uint32_t next_id;
	uint32_t count;
	struct {
		uint32_t id;
		uint64_t time_ns;
	} entry[4096];
};

static void note(struct log *log, uint32_t id)
{
	if (log->count < VMM_ARRAY_LENGTH(log->entry)) {
		log->entry[log->count].id = id;
		log->entry[log->count++].time_ns = vmm_os_now_ns(log->os);
	}
}

static void sleep_by_id(void *arg)
{
	struct log *log = arg;
	uint32_t id = log->next_id++;

	/* 5 and 4 have the same deadline as 1 and 2. */
	vmm_os_sleep_until(log->os, (id % 3 + 1) * MS);
	note(log, id);
}

static void sleepers_wake_in_the_order_of_their_deadlines(void **state)
{
	struct log log = {.os = sim(1, 0)};
	struct vmm_os_thread *thread[6];
	static const uint32_t expected[] = {0, 3, 1, 4, 2, 5};

	(void)state;
	for (int i = 0; i < 6; i++)
		thread[i] = start(log.os, "sleeper", sleep_by_id, &log);
	for (int i = 0; i < 6; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(log.count, 6);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(log.entry[i].id, expected[i]);
		assert_int_equal(log.entry[i].time_ns, (i / 2 + 1) * MS);
	}
	assert_int_equal(vmm_os_now_ns(log.os), 3 * MS);
	vmm_os_destroy(log.os);
}

static void virtual_time_advances_only_when_every_thread_waits(void **state)
{
	struct vmm_os *os = sim(1, 0);

	(void)state;
	assert_int_equal(vmm_os_now_ns(os), 0);
	for (volatile int i = 0; i < 100000; i++)
		;
	assert_int_equal(vmm_os_now_ns(os), 0);
	/* An hour of virtual time takes no real time. */
	vmm_os_sleep_until(os, 3600ull * 1000 * MS);
	assert_int_equal(vmm_os_now_ns(os), 3600ull * 1000 * MS);
	vmm_os_destroy(os);
}

static void work_then_note(void *arg)
{
	struct log *log = arg;

	vmm_os_wait(log->os, &log->word, 0, VMM_OS_FOREVER, "word", 0);
	note(log, 1);
	vmm_os_sleep_until(log->os, 10 * US);
	note(log, 2);
}

static void settle_runs_other_threads_without_advancing_the_clock(void **state)
{
	struct log log = {.os = sim(1, 0)};
	struct vmm_os_thread *thread = start(log.os, "worker", work_then_note, &log);

	(void)state;
	vmm_os_settle(log.os);
	assert_int_equal(log.count, 0);
	atomic_store(&log.word, 1);
	vmm_os_wake(log.os, &log.word, 1);
	assert_int_equal(log.count, 0);
	vmm_os_settle(log.os);
	assert_int_equal(log.count, 1);
	assert_int_equal(vmm_os_now_ns(log.os), 0);
	vmm_os_thread_join(thread);
	assert_int_equal(log.count, 2);
	assert_int_equal(vmm_os_now_ns(log.os), 10 * US);
	vmm_os_destroy(log.os);
}

/* Random waits with deadlines and wakes, compared with a model: each ends at the right time. */
struct alarm {
	struct vmm_os *os;
	_Atomic uint32_t *word;
	uint64_t deadline_ns, ended_ns;
	vmm_status status;
};

static void await_alarm(void *arg)
{
	struct alarm *alarm = arg;

	alarm->status = vmm_os_wait(alarm->os, alarm->word, 0, alarm->deadline_ns, "alarm", 0);
	alarm->ended_ns = vmm_os_now_ns(alarm->os);
}

static void waits_end_by_wake_or_deadline_whichever_is_first(void **state)
{
	enum { ALARMS = 100 };
	struct vmm_os *os = sim(7, 0);
	struct alarm alarm[ALARMS];
	struct vmm_os_thread *thread[ALARMS];
	_Atomic uint32_t words[ALARMS];

	(void)state;
	for (int i = 0; i < ALARMS; i++) {
		atomic_init(&words[i], 0);
		alarm[i] = (struct alarm){.os = os, .word = &words[i]};
		alarm[i].deadline_ns = 1 + vmm_os_random(os) % 1000;
		thread[i] = start(os, "alarm", await_alarm, &alarm[i]);
	}
	/* At time 10 * i, alarm i is woken. */
	for (uint32_t i = 0; i < ALARMS; i++) {
		vmm_os_sleep_until(os, 10 * i);
		atomic_store(&words[i], 1);
		vmm_os_wake(os, &words[i], 1);
	}
	for (uint32_t i = 0; i < ALARMS; i++) {
		uint64_t woken_ns = 10 * i;

		vmm_os_thread_join(thread[i]);
		/* At exactly the same time either may come first. */
		if (alarm[i].deadline_ns == woken_ns)
			continue;
		assert_int_equal(alarm[i].ended_ns, vmm_min_u64(woken_ns, alarm[i].deadline_ns));
		assert_int_equal(alarm[i].status,
				 woken_ns < alarm[i].deadline_ns ? VMM_OK : VMM_TIMEOUT);
	}
	vmm_os_destroy(os);
}

/* ---- determinism ---- */

static void scramble(void *arg)
{
	struct log *log = arg;
	uint32_t id = log->next_id++;

	for (uint32_t i = 0; i < 40; i++) {
		vmm_os_mutex_lock(&log->mutex);
		note(log, id);
		vmm_os_mutex_unlock(&log->mutex);
		vmm_os_yield_point(log->os);
		if (i % 8 == id % 8)
			vmm_os_sleep_until(log->os, vmm_os_now_ns(log->os) + id * 100);
	}
}

static void run_scramble(struct log *log, uint64_t seed, uint32_t switch_per_1024)
{
	struct vmm_os_thread *thread[8];

	memset(log, 0, sizeof(*log));
	log->os = sim(seed, switch_per_1024);
	vmm_os_mutex_init(&log->mutex, log->os, 1, "log");
	for (int i = 0; i < 8; i++)
		thread[i] = start(log->os, "scrambler", scramble, log);
	for (int i = 0; i < 8; i++)
		vmm_os_thread_join(thread[i]);
	note(log, (uint32_t)vmm_os_random(log->os));
	vmm_os_mutex_finish(&log->mutex);
	vmm_os_destroy(log->os);
}

static void the_same_seed_gives_the_same_interleaving(void **state)
{
	static struct log first, second;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		run_scramble(&first, seed, 300);
		/* Other addresses must not matter. */
		void *shift = vmm_calloc(1, 1000 + 64 * seed);

		run_scramble(&second, seed, 300);
		vmm_free(shift);
		assert_int_equal(first.count, 8 * 40 + 1);
		assert_int_equal(second.count, first.count);
		assert_memory_equal(first.entry, second.entry, sizeof(first.entry));
	}
}

static bool differ(const struct log *a, const struct log *b)
{
	for (uint32_t i = 0; i < a->count && i < b->count; i++)
		if (a->entry[i].id != b->entry[i].id || a->entry[i].time_ns != b->entry[i].time_ns)
			return true;
	return a->count != b->count;
}

static void other_seeds_give_other_interleavings(void **state)
{
	static struct log logs[8];
	uint32_t different = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		run_scramble(&logs[seed], seed, 300);
		for (uint64_t other = 0; other < seed; other++)
			different += differ(&logs[seed], &logs[other]);
	}
	assert_int_equal(different, 8 * 7 / 2);
}

static void without_switching_the_order_is_fixed_for_all_seeds(void **state)
{
	static struct log first, second;

	(void)state;
	run_scramble(&first, 1, 0);
	run_scramble(&second, 2, 0);
	/* All but the last entry, which is a random number. */
	assert_memory_equal(first.entry, second.entry, (first.count - 1) * sizeof(first.entry[0]));
}

/* ---- many threads ---- */

static uint32_t recurse(uint32_t depth)
{
	volatile char frame[512];

	frame[depth % sizeof(frame)] = (char)depth;
	return depth ? recurse(depth - 1) + (uint32_t)(frame[depth % sizeof(frame)] == (char)depth)
		     : 0;
}

static void use_stack_and_floats(void *arg)
{
	struct log *log = arg;
	double x = 1.0;

	for (uint32_t i = 0; i < 10; i++) {
		x = x * 1.5 + 0.25;
		vmm_os_sleep_until(log->os, vmm_os_now_ns(log->os) + 1 + i);
	}
	if (recurse(100) == 100 && x > 85.99 && x < 86.00)
		log->count++;
}

static void stacks_are_reused_and_large_enough(void **state)
{
	struct log log = {.os = sim(3, 100)};
	struct vmm_os_thread *thread[50];

	(void)state;
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 50; i++)
			thread[i] = start(log.os, "digger", use_stack_and_floats, &log);
		for (int i = 0; i < 50; i++)
			vmm_os_thread_join(thread[i]);
	}
	assert_int_equal(log.count, 500);
	vmm_os_destroy(log.os);
}

static void overrun_the_stack(void *arg)
{
	(void)arg;
	recurse(1u << 20);
}

static void run_over_the_stack(void)
{
	struct vmm_os *os = sim(1, 0);

	vmm_os_thread_join(start(os, "digger", overrun_the_stack, NULL));
}

static void a_stack_overrun_hits_the_guard_page(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		freopen("/dev/null", "w", stderr);
		run_over_the_stack();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	/* A signal, or the exit of a sanitizer that caught it. */
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

/* ---- two worlds in one system thread ---- */

static void inner_world(void *arg)
{
	struct log *log = arg;
	struct log inner = {.os = sim(5, 0)};

	vmm_os_thread_join(start(inner.os, "inner", sleep_by_id, &inner));
	log->count = inner.count;
	vmm_os_destroy(inner.os);
	vmm_os_set_current(log->os);
	vmm_os_sleep_until(log->os, 1 * MS);
}

static void a_coroutine_may_run_a_second_world(void **state)
{
	struct log log = {.os = sim(1, 0)};

	(void)state;
	vmm_os_thread_join(start(log.os, "outer", inner_world, &log));
	assert_int_equal(log.count, 1);
	assert_int_equal(vmm_os_now_ns(log.os), 1 * MS);
	assert_ptr_equal(vmm_os_current(), log.os);
	vmm_os_destroy(log.os);
}

static void visit_another_world(void *arg)
{
	struct log *log = arg;
	struct vmm_os *other = sim(9, 0);

	vmm_os_sleep_until(log->os, 1 * MS); /* main runs meanwhile, in its own world */
	log->count += vmm_os_current() == other;
	vmm_os_destroy(other);
}

static void every_coroutine_keeps_its_current_world(void **state)
{
	struct log log = {.os = sim(1, 0)};
	struct vmm_os_thread *thread = start(log.os, "visitor", visit_another_world, &log);

	(void)state;
	vmm_os_settle(log.os);
	assert_ptr_equal(vmm_os_current(), log.os);
	vmm_os_thread_join(thread);
	assert_int_equal(log.count, 1);
	assert_ptr_equal(vmm_os_current(), log.os);
	vmm_os_destroy(log.os);
}

/* ---- deadlocks ---- */

struct stuck {
	struct vmm_os *os;
	struct vmm_os_mutex paging, adapter;
	_Atomic uint32_t fence;
	char report[2048];
	uint32_t reports;
	bool on_main;
};

static void take_report(void *context, const char *report)
{
	struct stuck *stuck = context;

	snprintf(stuck->report, sizeof(stuck->report), "%s", report);
	stuck->reports++;
	stuck->on_main = !strcmp(vmm_os_thread_name(vmm_os_thread_self(stuck->os)), "main");
}

static void stuck_init(struct stuck *stuck)
{
	struct vmm_os_config config = {
		.kind = VMM_OS_SIM, .seed = 1, .deadlock = take_report, .deadlock_context = stuck};

	memset(stuck, 0, sizeof(*stuck));
	assert_int_equal(vmm_os_create(&config, &stuck->os), VMM_OK);
	vmm_os_mutex_init(&stuck->paging, stuck->os, 1, "paging");
	vmm_os_mutex_init(&stuck->adapter, stuck->os, 2, "adapter");
}

static void stuck_finish(struct stuck *stuck)
{
	vmm_os_mutex_finish(&stuck->paging);
	vmm_os_mutex_finish(&stuck->adapter);
	vmm_os_destroy(stuck->os);
}

static void wait_for_fence_with_adapter(void *arg)
{
	struct stuck *stuck = arg;

	vmm_os_mutex_lock(&stuck->adapter);
	vmm_os_wait(stuck->os, &stuck->fence, 0, VMM_OS_FOREVER, "fence of node", 17);
	vmm_os_mutex_unlock(&stuck->adapter);
}

static void wait_for_adapter_with_paging(void *arg)
{
	struct stuck *stuck = arg;

	vmm_os_mutex_lock(&stuck->paging);
	vmm_os_sleep_until(stuck->os, 100);
	vmm_os_mutex_lock(&stuck->adapter);
	vmm_os_mutex_unlock(&stuck->adapter);
	vmm_os_mutex_unlock(&stuck->paging);
}

static void a_deadlock_report_names_threads_wait_reasons_and_times(void **state)
{
	struct stuck stuck;
	struct vmm_os_thread *engine, *pager;

	(void)state;
	stuck_init(&stuck);
	engine = start(stuck.os, "engine", wait_for_fence_with_adapter, &stuck);
	pager = start(stuck.os, "pager", wait_for_adapter_with_paging, &stuck);
	vmm_os_thread_join(pager);
	assert_int_equal(stuck.reports, 1);
	assert_true(stuck.on_main);
	assert_string_equal(
		stuck.report,
		"deadlock at 100 ns: 3 threads blocked, none can run, no timer is pending\n"
		"  \"main\" waits for the end of thread \"pager\" since 0 ns\n"
		"  \"engine\" waits for fence of node 17 since 0 ns\n"
		"  \"pager\" waits for mutex \"adapter\" (rank 2) held by \"engine\""
		" since 100 ns\n");
	vmm_os_thread_join(engine);
	assert_int_equal(stuck.reports, 1);
	stuck_finish(&stuck);
}

static void after_a_deadlock_only_the_main_thread_runs(void **state)
{
	struct stuck stuck;
	struct vmm_os_thread *thread, *late;
	_Atomic uint32_t word = 0;

	(void)state;
	stuck_init(&stuck);
	thread = start(stuck.os, "pager", wait_for_fence_with_adapter, &stuck);
	assert_false(vmm_os_dead(stuck.os));
	assert_int_equal(vmm_os_wait(stuck.os, &word, 0, VMM_OS_FOREVER, "word", 1),
			 VMM_UNSUCCESSFUL);
	assert_true(vmm_os_dead(stuck.os));
	assert_int_equal(vmm_os_wait(stuck.os, &word, 0, VMM_OS_FOREVER, "word", 1),
			 VMM_UNSUCCESSFUL);
	assert_int_equal(vmm_os_wait(stuck.os, &word, 1, VMM_OS_FOREVER, "word", 1), VMM_OK);
	vmm_os_sleep_until(stuck.os, 5 * MS);
	assert_int_equal(vmm_os_now_ns(stuck.os), 5 * MS);
	vmm_os_settle(stuck.os);
	vmm_os_yield_point(stuck.os);
	vmm_os_mutex_lock(&stuck.adapter);
	vmm_os_mutex_unlock(&stuck.adapter);
	atomic_store(&stuck.fence, 1);
	vmm_os_wake(stuck.os, &stuck.fence, 1);
	assert_int_equal(
		vmm_os_thread_create(stuck.os, "late", wait_for_fence_with_adapter, &stuck, &late),
		VMM_UNSUCCESSFUL);
	vmm_os_thread_join(thread);
	assert_int_equal(stuck.reports, 1);
	stuck_finish(&stuck);
}

static void deadlock_without_a_hook(void *arg)
{
	_Atomic uint32_t word = 0;

	(void)arg;
	vmm_os_wait(world_create(VMM_OS_SIM), &word, 0, VMM_OS_FOREVER, "rename list entry", 4);
}

static void a_deadlock_without_a_hook_is_printed_and_aborts(void **state)
{
	(void)state;
	assert_true(aborts_saying(deadlock_without_a_hook, NULL,
				  "\"main\" waits for rename list entry 4 since 0 ns"));
}

static void serve_until_signaled(void *arg)
{
	struct stuck *stuck = arg;

	while (!atomic_load(&stuck->fence))
		vmm_os_wait(stuck->os, &stuck->fence, 0, VMM_OS_FOREVER, NULL, 0);
}

static void an_idle_service_is_no_part_of_a_deadlock(void **state)
{
	struct stuck stuck;
	struct vmm_os_thread *thread;

	(void)state;
	stuck_init(&stuck);
	thread = start(stuck.os, "service", serve_until_signaled, &stuck);
	vmm_os_thread_join(thread);
	assert_string_equal(
		stuck.report,
		"deadlock at 0 ns: 1 thread blocked, none can run, no timer is pending\n"
		"  \"main\" waits for the end of thread \"service\" since 0 ns\n");
	stuck_finish(&stuck);
}

static void sleep_for_ever(void *arg)
{
	struct stuck *stuck = arg;

	vmm_os_sleep_until(stuck->os, VMM_OS_FOREVER);
}

static void a_sleep_for_ever_is_part_of_a_deadlock(void **state)
{
	struct stuck stuck;
	struct vmm_os_thread *thread;

	(void)state;
	stuck_init(&stuck);
	thread = start(stuck.os, "idler", sleep_for_ever, &stuck);
	vmm_os_thread_join(thread);
	assert_non_null(strstr(stuck.report, "\"idler\" sleeps for ever since 0 ns"));
	stuck_finish(&stuck);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleepers_wake_in_the_order_of_their_deadlines),
		cmocka_unit_test(virtual_time_advances_only_when_every_thread_waits),
		cmocka_unit_test(settle_runs_other_threads_without_advancing_the_clock),
		cmocka_unit_test(waits_end_by_wake_or_deadline_whichever_is_first),
		cmocka_unit_test(the_same_seed_gives_the_same_interleaving),
		cmocka_unit_test(other_seeds_give_other_interleavings),
		cmocka_unit_test(without_switching_the_order_is_fixed_for_all_seeds),
		cmocka_unit_test(stacks_are_reused_and_large_enough),
		cmocka_unit_test(a_stack_overrun_hits_the_guard_page),
		cmocka_unit_test(a_coroutine_may_run_a_second_world),
		cmocka_unit_test(every_coroutine_keeps_its_current_world),
		cmocka_unit_test(a_deadlock_report_names_threads_wait_reasons_and_times),
		cmocka_unit_test(after_a_deadlock_only_the_main_thread_runs),
		cmocka_unit_test(a_deadlock_without_a_hook_is_printed_and_aborts),
		cmocka_unit_test(an_idle_service_is_no_part_of_a_deadlock),
		cmocka_unit_test(a_sleep_for_ever_is_part_of_a_deadlock),
	};

	(void)on_sim, (void)on_linux, (void)world_setup, (void)world_teardown;
	return cmocka_run_group_tests_name("os_sim", tests, NULL, NULL);
}
