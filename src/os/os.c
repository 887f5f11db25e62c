/* SPDX-License-Identifier: MIT */
/*
 * Worlds and threads: the part common to both back ends, and the choice between them. The registry
 * lock guards the lists of threads and memory objects; nothing else is locked or called while it is
 * held.
 */
#include "base/mix.h"
#include "os/os_internal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct vmm_lock_class vmm_os_registry_class;

_Thread_local struct vmm_os_here vmm_os_here __attribute__((tls_model("initial-exec")));

uint64_t vmm_os_random(struct vmm_os *os)
{
	return vmm_mix64(
		atomic_fetch_add_explicit(&os->random, VMM_MIX64_STEP, memory_order_relaxed) +
		VMM_MIX64_STEP);
}

static uint64_t system_seed(void)
{
	uint64_t seed;

	/* Randomness of the linux back end decides nothing that must be secret. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = (uint64_t)(uintptr_t)&seed ^ (uint64_t)getpid() << 40;
	return seed;
}

/* ---- world ---- */

vmm_status vmm_os_create(const struct vmm_os_config *config, struct vmm_os **os)
{
	static _Atomic uint64_t last_id;
	struct vmm_os *world = vmm_calloc(1, sizeof(*world));
	vmm_status status;

	if (!world)
		return VMM_NO_MEMORY;
	vmm_os_fence_begin();
	vmm_os_event_begin();
	world->kind = config->kind;
	world->front.id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	world->userfault_fd = USERFAULT_UNTRIED;
	world->cache = vmm_os_cache_find();
	pthread_mutex_init(&world->registry_lock, NULL);
	vmm_list_init(&world->threads);
	vmm_list_init(&world->memories);
	atomic_init(&world->random, config->kind == VMM_OS_SIM ? config->seed : system_seed());
	status = config->kind == VMM_OS_SIM ? vmm_os_sim_init(world, config)
					    : vmm_os_linux_init(world);
	if (!vmm_ok(status)) {
		pthread_mutex_destroy(&world->registry_lock);
		vmm_free(world);
		return status;
	}
	vmm_os_here.current = &world->front;
	*os = world;
	return VMM_OK;
}

/* Reports on stderr what was left behind, because the assert that follows cannot name it. */
static bool report_leaks(struct vmm_os *os)
{
	struct vmm_list *pos;
	bool leaks = false;

	vmm_list_for_each (pos, &os->threads) {
		struct vmm_os_thread *thread = vmm_container_of(pos, struct vmm_os_thread, link);

		if (thread->adopted)
			continue;
		fprintf(stderr, "vidmm: os world ends with thread \"%s\" not joined\n",
			thread->name);
		leaks = true;
	}
	vmm_list_for_each (pos, &os->memories) {
		struct vmm_os_memory_record *record =
			vmm_container_of(pos, struct vmm_os_memory_record, link);

		fprintf(stderr, "vidmm: os world ends with memory object \"%s\" of %llu bytes\n",
			record->name, (unsigned long long)record->size_bytes);
		leaks = true;
	}
	if (atomic_load(&os->view_count)) {
		fprintf(stderr, "vidmm: os world ends with %llu views of %llu bytes in all\n",
			(unsigned long long)atomic_load(&os->view_count),
			(unsigned long long)atomic_load(&os->view_bytes));
		leaks = true;
	}
	return leaks;
}

void vmm_os_destroy(struct vmm_os *os)
{
	/* In a deadlocked world, resources of the stopped threads can never be released. */
	if (!vmm_os_dead(os)) {
		bool os_world_leaks = report_leaks(os);

		vmm_assert(!os_world_leaks);
	}
	if (os->kind == VMM_OS_SIM)
		vmm_os_sim_finish(os);
	else
		vmm_os_linux_finish(os);
	if (os->userfault_fd >= 0)
		close(os->userfault_fd);
	while (!vmm_list_empty(&os->memories)) {
		struct vmm_list *link = os->memories.next;

		vmm_list_remove(link);
		vmm_free(vmm_container_of(link, struct vmm_os_memory_record, link));
	}
	if (vmm_os_here.current == &os->front)
		vmm_os_here.current = NULL;
	if (vmm_os_here.id == os->front.id) {
		vmm_os_here.id = 0;
		vmm_os_here.own = NULL;
	}
	pthread_mutex_destroy(&os->registry_lock);
	vmm_free(os);
}

enum vmm_os_kind vmm_os_kind(const struct vmm_os *os)
{
	return os->kind;
}

bool vmm_os_dead(const struct vmm_os *os)
{
	return os->kind == VMM_OS_SIM && os->sim.dead;
}

struct vmm_os *vmm_os_current(void)
{
	return vmm_os_of_front(vmm_os_here.current);
}

struct vmm_os *vmm_os_set_current(struct vmm_os *os)
{
	struct vmm_os *before = vmm_os_current();

	vmm_os_here.current = os ? &os->front : NULL;
	return before;
}

struct vmm_os_own *vmm_os_find_own(struct vmm_os *os)
{
	vmm_os_use_thread(os->kind == VMM_OS_SIM ? os->sim.current : vmm_os_linux_adopt(os));
	return vmm_os_here.own;
}

void vmm_os_attach(struct vmm_os *os, void *object)
{
	os->front.attached = object;
}

void *vmm_os_attached(const struct vmm_os *os)
{
	return os->front.attached;
}

/* ---- time and waiting ---- */

uint64_t vmm_os_now_ns(struct vmm_os *os)
{
	return os->kind == VMM_OS_SIM ? os->sim.now_ns : vmm_os_linux_now(os);
}

const uint64_t *vmm_os_virtual_time(const struct vmm_os *os)
{
	return os->kind == VMM_OS_SIM ? &os->sim.now_ns : NULL;
}

uint64_t vmm_os_system_time(struct vmm_os *os)
{
	const uint64_t ticks_a_second = 10000000, since_1601 = 11644473600;
	struct timespec now = {0};

	if (os->kind == VMM_OS_SIM)
		return os->sim.now_ns / 100;
	clock_gettime(CLOCK_REALTIME, &now);
	return ((uint64_t)now.tv_sec + since_1601) * ticks_a_second + (uint64_t)now.tv_nsec / 100;
}

void vmm_os_sleep_until(struct vmm_os *os, uint64_t when_ns)
{
	if (os->kind == VMM_OS_SIM)
		vmm_os_sim_sleep_until(os, when_ns);
	else
		vmm_os_linux_sleep_until(os, when_ns);
}

void vmm_os_yield_point(struct vmm_os *os)
{
	if (os->kind != VMM_OS_SIM)
		return;
	vmm_assert(os->sim.current->held_count == 0);
	vmm_os_sim_maybe_switch(os);
}

void vmm_os_settle(struct vmm_os *os)
{
	if (os->kind == VMM_OS_SIM)
		vmm_os_sim_settle(os);
	else
		vmm_os_linux_settle(os);
}

void vmm_os_yield(struct vmm_os *os)
{
	if (os->kind == VMM_OS_SIM)
		vmm_os_sim_settle(os);
	else
		sched_yield();
}

bool vmm_os_is_parallel(const struct vmm_os *os)
{
	return os->kind != VMM_OS_SIM && os->linux_.parallel;
}

vmm_status vmm_os_wait(struct vmm_os *os, _Atomic uint32_t *word, uint32_t expected,
		       uint64_t deadline_ns, const char *why, uint64_t detail)
{
	if (atomic_load_explicit(word, memory_order_acquire) != expected)
		return VMM_OK;
	if (os->kind == VMM_OS_SIM)
		return vmm_os_sim_wait(os, word, deadline_ns, why, detail);
	return vmm_os_linux_wait(os, word, expected, deadline_ns);
}

void vmm_os_wake(struct vmm_os *os, _Atomic uint32_t *word, uint32_t count)
{
	if (os->kind != VMM_OS_SIM) {
		vmm_os_linux_wake(os, word, count);
		return;
	}
	vmm_os_sim_wake(&os->sim, word, count);
	if (os->sim.switch_per_1024)
		vmm_os_sim_maybe_switch(os);
}

/* ---- threads ---- */

void vmm_os_thread_register(struct vmm_os *os, struct vmm_os_thread *thread, const char *name)
{
	thread->os = os;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	vmm_os_registry_lock(os);
	vmm_list_push_back(&os->threads, &thread->link);
	vmm_os_registry_unlock(os);
}

void vmm_os_thread_unregister(struct vmm_os_thread *thread)
{
	vmm_os_registry_lock(thread->os);
	vmm_list_remove(&thread->link);
	vmm_os_registry_unlock(thread->os);
}

vmm_status vmm_os_thread_create(struct vmm_os *os, const char *name, vmm_os_thread_fn *fn,
				void *arg, struct vmm_os_thread **thread)
{
	struct vmm_os_thread *self = vmm_calloc(1, sizeof(*self));
	vmm_status status;

	if (!self)
		return VMM_NO_MEMORY;
	self->fn = fn;
	self->arg = arg;
	vmm_os_thread_register(os, self, name);
	/* The new thread may end before start returns, and its joiner needs the pointer by then. */
	*thread = self;
	status = os->kind == VMM_OS_SIM ? vmm_os_sim_thread_start(self)
					: vmm_os_linux_thread_start(self);
	if (!vmm_ok(status)) {
		*thread = NULL;
		vmm_os_thread_unregister(self);
		vmm_free(self);
	}
	return status;
}

void vmm_os_thread_join(struct vmm_os_thread *thread)
{
	if (thread->os->kind == VMM_OS_SIM)
		vmm_os_sim_thread_join(thread);
	else
		vmm_os_linux_thread_join(thread);
}

struct vmm_os_thread *vmm_os_thread_self(struct vmm_os *os)
{
	return vmm_os_self(os);
}

const char *vmm_os_thread_name(const struct vmm_os_thread *thread)
{
	return thread->name;
}

/* Counts the threads of which the word at this offset of struct vmm_os_thread has the value. */
static uint32_t count_holders(struct vmm_os *os, size_t offset, uint64_t value)
{
	const struct vmm_list *pos;
	uint32_t count = 0;

	if (os->kind != VMM_OS_SIM)
		vmm_os_fence_others();
	vmm_os_registry_lock(os);
	vmm_list_for_each (pos, &os->threads) {
		const char *thread =
			(const char *)vmm_container_of(pos, struct vmm_os_thread, link);

		count += atomic_load((const _Atomic uint64_t *)(thread + offset)) == value;
	}
	vmm_os_registry_unlock(os);
	return count;
}

bool vmm_os_hazard_is_held(struct vmm_os *os, uint64_t value)
{
	return count_holders(os, offsetof(struct vmm_os_thread, own.hazard), value) != 0;
}

uint32_t vmm_os_gate_holders(struct vmm_os *os, uint64_t value)
{
	return count_holders(os, offsetof(struct vmm_os_thread, own.gate), value);
}

uint64_t *vmm_os_thread_slot(struct vmm_os_thread *thread, unsigned index)
{
	vmm_assert(index < VMM_OS_SLOTS);
	return &thread->own.slot[index];
}
