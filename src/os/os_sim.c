/* SPDX-License-Identifier: MIT */
/*
 * Scheduler of the sim back end: coroutines of one system thread, virtual time, interleavings drawn
 * from a seed.
 *
 * The current coroutine runs until it blocks, ends, or yields by chance (switch_per_1024). The next
 * one is, in this order: a runnable one; one that waits for the others to settle; the owner of the
 * earliest timer, after virtual time has advanced to it. If there is none of these, the world is
 * deadlocked.
 *
 * Nothing here depends on addresses or real time. Wait buckets are chosen by address, but a wake
 * considers equal addresses only, in order of arrival. There are no locks, because there is one
 * system thread.
 */
#include "base/failure.h"
#include "base/mix.h"
#include "os/os_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- runnable ring ---- */

static void push_runnable(struct vmm_os_sim *sim, struct vmm_os_thread *thread)
{
	vmm_assert(sim->runnable_count < sim->capacity);
	sim->runnable[(sim->runnable_head + sim->runnable_count++) & (sim->capacity - 1)] = thread;
	thread->sim.state = SIM_RUNNABLE;
}

static uint32_t draw(struct vmm_os_sim *sim)
{
	sim->random += VMM_MIX64_STEP;
	return (uint32_t)(vmm_mix64(sim->random) >> 32);
}

static struct vmm_os_thread *pop_runnable(struct vmm_os_sim *sim)
{
	struct vmm_os_thread **first = &sim->runnable[sim->runnable_head & (sim->capacity - 1)];
	struct vmm_os_thread *chosen = *first;

	if (sim->switch_per_1024 && sim->runnable_count > 1) {
		uint32_t index = (uint32_t)((uint64_t)draw(sim) * sim->runnable_count >> 32);
		struct vmm_os_thread **other =
			&sim->runnable[(sim->runnable_head + index) & (sim->capacity - 1)];

		chosen = *other;
		*other = *first;
	}
	sim->runnable_head++;
	sim->runnable_count--;
	return chosen;
}

static void make_runnable(struct vmm_os_sim *sim, struct vmm_os_thread *thread, vmm_status result)
{
	if (thread->sim.state == SIM_WAITING)
		vmm_list_remove(&thread->sim.link);
	if (thread->sim.heap_index != SIM_NO_TIMER)
		vmm_os_sim_timer_remove(sim, thread);
	thread->sim.result = result;
	push_runnable(sim, thread);
}

/* ---- choosing the next coroutine ---- */

static void advance_time(struct vmm_os_sim *sim)
{
	sim->now_ns = sim->timers[0]->sim.deadline_ns;
	while (sim->timer_count && sim->timers[0]->sim.deadline_ns <= sim->now_ns) {
		struct vmm_os_thread *thread = sim->timers[0];

		make_runnable(sim, thread, thread->sim.state == SIM_WAITING ? VMM_TIMEOUT : VMM_OK);
	}
}

/* The report if there is no memory for a full one. */
static char unnamed_deadlock[] = "deadlock; no memory to name the blocked threads\n";

/* No coroutine can run. From now on only main does, to report and to end the world. */
static struct vmm_os_thread *declare_dead(struct vmm_os *os)
{
	struct vmm_os_sim *sim = &os->sim;

	sim->report = vmm_os_sim_describe(os);
	if (!sim->report)
		sim->report = unnamed_deadlock;
	sim->dead = true;
	make_runnable(sim, sim->main, VMM_UNSUCCESSFUL);
	sim->runnable_count = 0;
	return sim->main;
}

static struct vmm_os_thread *pick_next(struct vmm_os *os)
{
	struct vmm_os_sim *sim = &os->sim;

	if (!sim->runnable_count && !vmm_list_empty(&sim->settlers)) {
		struct vmm_list *link = sim->settlers.next;

		vmm_list_remove(link);
		return vmm_container_of(link, struct vmm_os_thread, sim.link);
	}
	if (!sim->runnable_count && sim->timer_count)
		advance_time(sim);
	return sim->runnable_count ? pop_runnable(sim) : declare_dead(os);
}

static void deliver_report(struct vmm_os_sim *sim)
{
	char *report = sim->report;

	sim->report = NULL;
	if (!sim->deadlock) {
		fputs(report, stderr);
		abort();
	}
	sim->deadlock(sim->deadlock_context, report);
	if (report != unnamed_deadlock)
		vmm_free(report);
}

/*
 * Switches to the next coroutine. The current one is queued where it can be found again (ring,
 * bucket, timers, settlers) or has ended.
 */
static void run_next(struct vmm_os *os, bool ends)
{
	struct vmm_os_sim *sim = &os->sim;
	struct vmm_os_thread *self = sim->current;
	struct vmm_os_thread *next = pick_next(os);
	struct vmm_os_front *world = vmm_os_here.current;

	next->sim.state = SIM_RUNNING;
	if (next != self) {
		sim->current = next;
		vmm_os_use_thread(next);
		vmm_os_context_switch(&self->sim.context, &next->sim.context, ends);
		vmm_os_here.current = world;
	}
	if (vmm_unlikely(sim->report))
		deliver_report(sim);
}

void vmm_os_sim_maybe_switch(struct vmm_os *os)
{
	struct vmm_os_sim *sim = &os->sim;

	if (!sim->runnable_count || sim->dead)
		return;
	if ((draw(sim) & 1023) >= sim->switch_per_1024)
		return;
	push_runnable(sim, sim->current);
	run_next(os, false);
}

/* ---- waiting ---- */

/*
 * Blocks the current coroutine on the word. The caller has set `why`, `detail` and the like in its
 * record. Returns VMM_OK, VMM_TIMEOUT or VMM_UNSUCCESSFUL.
 */
static vmm_status block_on(struct vmm_os *os, const _Atomic uint32_t *word, uint64_t deadline_ns)
{
	struct vmm_os_sim *sim = &os->sim;
	struct vmm_os_thread *self = sim->current;

	if (sim->dead)
		return VMM_UNSUCCESSFUL;
	self->sim.word = word;
	self->sim.since_ns = sim->now_ns;
	self->sim.state = SIM_WAITING;
	vmm_list_push_back(&sim->waiters[vmm_os_bucket(word)], &self->sim.link);
	if (deadline_ns != VMM_OS_FOREVER) {
		self->sim.deadline_ns = deadline_ns;
		vmm_os_sim_timer_add(sim, self);
	}
	run_next(os, false);
	self->sim.mutex = NULL;
	self->sim.joining = NULL;
	return self->sim.result;
}

vmm_status vmm_os_sim_wait(struct vmm_os *os, _Atomic uint32_t *word, uint64_t deadline_ns,
			   const char *why, uint64_t detail)
{
	struct vmm_os_thread *self = os->sim.current;

	if (deadline_ns <= os->sim.now_ns)
		return VMM_TIMEOUT;
	self->sim.why = why;
	self->sim.detail = detail;
	return block_on(os, word, deadline_ns);
}

void vmm_os_sim_wake(struct vmm_os_sim *sim, const _Atomic uint32_t *word, uint32_t count)
{
	struct vmm_list *head = &sim->waiters[vmm_os_bucket(word)];
	struct vmm_list *pos, *next;

	if (sim->dead)
		return;
	vmm_list_for_each_safe (pos, next, head) {
		struct vmm_os_thread *thread =
			vmm_container_of(pos, struct vmm_os_thread, sim.link);

		if (!count)
			break;
		if (thread->sim.word != word)
			continue;
		make_runnable(sim, thread, VMM_OK);
		count--;
	}
}

void vmm_os_sim_mutex_contended(struct vmm_os_mutex *mutex)
{
	struct vmm_os_thread *self = mutex->os->sim.current;

	while (atomic_load_explicit(&mutex->state, memory_order_relaxed) != 0) {
		atomic_store_explicit(&mutex->state, 2, memory_order_relaxed);
		self->sim.mutex = mutex;
		self->sim.why = "mutex";
		/* dead world: the holder never runs again, so main takes the mutex over */
		if (block_on(mutex->os, &mutex->state, VMM_OS_FOREVER) == VMM_UNSUCCESSFUL)
			break;
	}
	/* State 2: other threads may still wait for it. */
	atomic_store_explicit(&mutex->state, 2, memory_order_relaxed);
}

/* ---- time ---- */

static bool others_come_first(const struct vmm_os_sim *sim, uint64_t when_ns)
{
	return sim->runnable_count || !vmm_list_empty(&sim->settlers) ||
	       (sim->timer_count && sim->timers[0]->sim.deadline_ns <= when_ns);
}

void vmm_os_sim_sleep_until(struct vmm_os *os, uint64_t when_ns)
{
	struct vmm_os_sim *sim = &os->sim;
	struct vmm_os_thread *self = sim->current;

	if (when_ns <= sim->now_ns)
		return;
	if (sim->dead || (when_ns != VMM_OS_FOREVER && !others_come_first(sim, when_ns))) {
		sim->now_ns = when_ns;
		return;
	}
	self->sim.state = SIM_SLEEPING;
	self->sim.since_ns = sim->now_ns;
	if (when_ns != VMM_OS_FOREVER) {
		self->sim.deadline_ns = when_ns;
		vmm_os_sim_timer_add(sim, self);
	}
	run_next(os, false);
}

void vmm_os_sim_settle(struct vmm_os *os)
{
	struct vmm_os_sim *sim = &os->sim;

	/* A thread that settles repeatedly also lets other settling threads proceed. */
	if (sim->dead || (!sim->runnable_count && vmm_list_empty(&sim->settlers)))
		return;
	sim->current->sim.state = SIM_SETTLING;
	vmm_list_push_back(&sim->settlers, &sim->current->sim.link);
	run_next(os, false);
}

/* ---- threads ---- */

static void run_thread(void *arg)
{
	struct vmm_os_thread *self = arg;
	struct vmm_os *os = self->os;

	vmm_os_context_entered(&self->sim.context);
	vmm_os_here.current = &os->front;
	self->fn(self->arg);
	vmm_assert(self->held_count == 0);
	atomic_store_explicit(&self->sim.ended, 1, memory_order_release);
	self->sim.state = SIM_ENDED;
	vmm_os_sim_wake(&os->sim, &self->sim.ended, UINT32_MAX);
	run_next(os, true);
	vmm_assert(!"an ended coroutine was continued");
}

static vmm_status grow(struct vmm_os_sim *sim)
{
	uint32_t capacity = sim->capacity ? sim->capacity * 2 : 16;
	struct vmm_os_thread **runnable = vmm_calloc(capacity, sizeof(*runnable));
	struct vmm_os_thread **timers = vmm_calloc(capacity, sizeof(*timers));

	if (!runnable || !timers) {
		vmm_free(runnable);
		vmm_free(timers);
		return VMM_NO_MEMORY;
	}
	for (uint32_t i = 0; i < sim->runnable_count; i++)
		runnable[i] = sim->runnable[(sim->runnable_head + i) & (sim->capacity - 1)];
	for (uint32_t i = 0; i < sim->timer_count; i++)
		timers[i] = sim->timers[i];
	vmm_free(sim->runnable);
	vmm_free(sim->timers);
	sim->runnable = runnable;
	sim->runnable_head = 0;
	sim->timers = timers;
	sim->capacity = capacity;
	return VMM_OK;
}

vmm_status vmm_os_sim_thread_start(struct vmm_os_thread *thread)
{
	struct vmm_os_sim *sim = &thread->os->sim;
	vmm_status status = VMM_OK;

	if (sim->dead)
		return VMM_UNSUCCESSFUL;
	if (vmm_fails(VMM_FAIL_THREAD))
		return VMM_NO_MEMORY;
	if (sim->thread_count == sim->capacity)
		status = grow(sim);
	if (!vmm_ok(status))
		return status;
	if (sim->idle_stack_count) {
		thread->sim.context = sim->idle_stacks[--sim->idle_stack_count];
		vmm_os_context_reinit(&thread->sim.context, run_thread, thread);
	} else {
		status = vmm_os_context_init(&thread->sim.context, run_thread, thread);
		if (!vmm_ok(status))
			return status;
	}
	thread->sim.heap_index = SIM_NO_TIMER;
	vmm_list_init(&thread->sim.link);
	sim->thread_count++;
	push_runnable(sim, thread);
	vmm_os_sim_maybe_switch(thread->os);
	return VMM_OK;
}

static void free_thread(struct vmm_os_thread *thread)
{
	struct vmm_os_sim *sim = &thread->os->sim;

	vmm_os_context_retire(&thread->sim.context);
	if (sim->idle_stack_count < VMM_OS_IDLE_STACKS)
		sim->idle_stacks[sim->idle_stack_count++] = thread->sim.context;
	else
		vmm_os_context_finish(&thread->sim.context);
	sim->thread_count--;
	vmm_os_thread_unregister(thread);
	vmm_free(thread);
}

void vmm_os_sim_thread_join(struct vmm_os_thread *thread)
{
	struct vmm_os_thread *self = thread->os->sim.current;

	while (thread->sim.state != SIM_ENDED) {
		self->sim.why = "end of thread";
		self->sim.joining = thread;
		if (block_on(thread->os, &thread->sim.ended, VMM_OS_FOREVER) == VMM_UNSUCCESSFUL)
			return; /* dead world: vmm_os_destroy drops the thread */
	}
	free_thread(thread);
}

/* ---- world ---- */

vmm_status vmm_os_sim_init(struct vmm_os *os, const struct vmm_os_config *config)
{
	struct vmm_os_sim *sim = &os->sim;
	struct vmm_os_thread *main;

	vmm_list_init(&sim->settlers);
	vmm_list_init(&sim->watched_views);
	for (uint32_t i = 0; i < VMM_OS_WAIT_BUCKETS; i++)
		vmm_list_init(&sim->waiters[i]);
	sim->switch_per_1024 = config->switch_per_1024;
	/* a sequence different from vmm_os_random's */
	sim->random = vmm_mix64(config->seed ^ 0x53494D);
	sim->deadlock = config->deadlock;
	sim->deadlock_context = config->deadlock_context;
	main = vmm_calloc(1, sizeof(*main));
	if (!main || !vmm_ok(grow(sim))) {
		vmm_free(main);
		return VMM_NO_MEMORY;
	}
	vmm_os_context_init_main(&main->sim.context);
	main->adopted = true;
	main->sim.heap_index = SIM_NO_TIMER;
	main->sim.state = SIM_RUNNING;
	vmm_list_init(&main->sim.link);
	vmm_os_thread_register(os, main, "main");
	sim->main = sim->current = main;
	sim->thread_count = 1;
	return VMM_OK;
}

void vmm_os_sim_finish(struct vmm_os *os)
{
	struct vmm_os_sim *sim = &os->sim;

	vmm_assert(sim->current == sim->main);
	vmm_os_thread_unregister(sim->main);
	while (!vmm_list_empty(&os->threads))
		free_thread(vmm_container_of(os->threads.next, struct vmm_os_thread, link));
	vmm_free(sim->main);
	while (sim->idle_stack_count)
		vmm_os_context_finish(&sim->idle_stacks[--sim->idle_stack_count]);
	vmm_free(sim->runnable);
	vmm_free(sim->timers);
}
