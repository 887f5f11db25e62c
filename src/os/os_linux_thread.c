/* SPDX-License-Identifier: MIT */
/*
 * Threads of the linux back end. Each system thread has one record per world that it uses. Thread
 * creation makes the record, or adoption when a foreign thread first calls. An adopted record is
 * freed with the system thread or with the world, whichever ends first; the adoption lock orders
 * the two.
 *
 * Adoption cannot fail, because a mutex lock cannot. A thread that the library starts for itself
 * brings the record of its first adoption along, so its start fails instead. A thread of the
 * application takes one from the heap, else from a reserve, else it waits for either.
 */
#include "base/failure.h"
#include "base/owner.h"
#include "os/os_internal.h"
#include "os/os_own_thread.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* taken before the registry lock */
static pthread_mutex_t adoption_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vmm_owner adoption_owner;
VMM_STATIC_LOCK_CLASS(adoption_lock_class);
static pthread_once_t adoption_once = PTHREAD_ONCE_INIT;
static pthread_key_t adoption_key;

/*
 * All records of this system thread; guarded by the adoption lock. prev == NULL: not initialized
 * yet.
 */
static _Thread_local struct vmm_list own_records;

/* clang does not analyze the bodies: a lock class has no state, the mutex has. */
static void adoption_lock(void) VMM_ACQUIRES(adoption_lock_class) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	pthread_mutex_lock(&adoption_mutex);
	vmm_owner_set(&adoption_owner);
}

static void adoption_unlock(void) VMM_RELEASES(adoption_lock_class) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	vmm_owner_clear(&adoption_owner);
	pthread_mutex_unlock(&adoption_mutex);
}

/* Brought along by a thread that the library started; used by the thread itself only. */
static _Thread_local struct vmm_os_thread *spare;

/* Records for threads that are adopted while no memory is left. Guarded by the adoption lock. */
enum { EMERGENCY_RECORDS = 64 };
#define EMERGENCY_WAIT_NS 1000000
static struct vmm_os_thread emergency[EMERGENCY_RECORDS];
static bool emergency_taken[EMERGENCY_RECORDS];

static void give_record_locked(struct vmm_os_thread *thread) VMM_REQUIRES(adoption_lock_class)
{
	vmm_assert_owned(&adoption_owner);
	for (size_t i = 0; i < EMERGENCY_RECORDS; i++)
		if (thread == &emergency[i]) {
			emergency_taken[i] = false;
			return;
		}
	free(thread);
}

static void drop_adopted_locked(struct vmm_os_thread *thread) VMM_REQUIRES(adoption_lock_class)
{
	vmm_assert_owned(&adoption_owner);
	vmm_list_remove(&thread->linux_.of_system_thread);
	vmm_os_thread_unregister(thread);
	give_record_locked(thread);
}

static void system_thread_ends(void *records)
{
	struct vmm_list *head = records;

	vmm_os_here.id = 0; /* later destructors of the thread may still call */
	adoption_lock();
	while (head->prev && !vmm_list_empty(head))
		drop_adopted_locked(vmm_container_of(head->next, struct vmm_os_thread,
						     linux_.of_system_thread));
	adoption_unlock();
	free(spare);
	spare = NULL;
}

static void make_key(void)
{
	vmm_assert(pthread_key_create(&adoption_key, system_thread_ends) == 0);
}

static void add_own_record_locked(struct vmm_os_thread *thread) VMM_REQUIRES(adoption_lock_class)
{
	vmm_assert_owned(&adoption_owner);
	if (!own_records.prev)
		vmm_list_init(&own_records);
	vmm_list_push_back(&own_records, &thread->linux_.of_system_thread);
}

static struct vmm_os_thread *find_own_record_locked(const struct vmm_os *os)
	VMM_REQUIRES(adoption_lock_class)
{
	struct vmm_list *pos;

	vmm_assert_owned(&adoption_owner);
	if (!own_records.prev)
		return NULL;
	vmm_list_for_each (pos, &own_records) {
		struct vmm_os_thread *thread =
			vmm_container_of(pos, struct vmm_os_thread, linux_.of_system_thread);

		if (thread->os == os)
			return thread;
	}
	return NULL;
}

/* Not vmm_calloc: a test that counts allocations must not see one per thread. */
static struct vmm_os_thread *new_record(void)
{
	return vmm_fails(VMM_FAIL_ALLOCATION) ? NULL : calloc(1, sizeof(struct vmm_os_thread));
}

static struct vmm_os_thread *take_record_locked(void) VMM_REQUIRES(adoption_lock_class)
{
	vmm_assert_owned(&adoption_owner);
	struct vmm_os_thread *thread = spare;

	spare = NULL;
	if (!thread)
		thread = new_record();
	for (size_t i = 0; !thread && i < EMERGENCY_RECORDS; i++) {
		if (emergency_taken[i])
			continue;
		emergency_taken[i] = true;
		thread = &emergency[i];
		*thread = (struct vmm_os_thread){0};
	}
	return thread;
}

struct vmm_os_thread *vmm_os_linux_adopt(struct vmm_os *os)
{
	struct vmm_os_thread *thread;

	pthread_once(&adoption_once, make_key);
	adoption_lock();
	thread = find_own_record_locked(os);
	if (!thread) {
		while (!(thread = take_record_locked())) {
			const struct timespec delay = {.tv_nsec = EMERGENCY_WAIT_NS};

			/* Until memory is there, or a thread gives its record back. */
			adoption_unlock();
			(void)nanosleep(&delay, NULL);
			adoption_lock();
		}
		thread->adopted = true;
		add_own_record_locked(thread);
		vmm_os_thread_register(os, thread, "adopted");
		pthread_setspecific(adoption_key, &own_records);
	}
	adoption_unlock();
	return thread;
}

void vmm_os_linux_finish(struct vmm_os *os)
{
	adoption_lock();
	while (!vmm_list_empty(&os->threads))
		drop_adopted_locked(vmm_container_of(os->threads.next, struct vmm_os_thread, link));
	adoption_unlock();
	vmm_os_linux_wait_finish(os);
}

static void *run(void *arg)
{
	struct vmm_os_thread *self = arg;
	char system_name[16];

	adoption_lock();
	add_own_record_locked(self);
	adoption_unlock();
	vmm_os_use_thread(self);
	vmm_os_here.current = &self->os->front;
	/* The kernel stores at most 15 characters of a thread name. */
	snprintf(system_name, sizeof(system_name), "%.15s", self->name);
	pthread_setname_np(pthread_self(), system_name);
	self->fn(self->arg);
	vmm_assert(self->held_count == 0);
	adoption_lock();
	vmm_list_remove(&self->linux_.of_system_thread);
	adoption_unlock();
	/* The wake marks joiners as busy before this thread becomes idle (vmm_os_settle). */
	atomic_store(&self->linux_.ended, 1);
	vmm_os_linux_wake(self->os, &self->linux_.ended, UINT32_MAX);
	vmm_os_linux_becomes_idle(self);
	return NULL;
}

static bool start_thread(pthread_t *thread, void *(*start)(void *argument), void *argument)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
	sigset_t blocked, before;

	sigfillset(&blocked);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	bool started =
		!vmm_fails(VMM_FAIL_THREAD) && !pthread_create(thread, NULL, start, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* What a thread of vmm_os_start_own_thread begins with. */
struct beginning {
	void *(*start)(void *argument);
	void *argument;
	struct vmm_os_thread *record;
};

static void *begin_own_thread(void *argument)
{
	struct beginning *b = argument, beginning = *b;

	free(b);
	pthread_once(&adoption_once, make_key);
	spare = beginning.record;
	/* The destructor of the key frees the record if no world adopts the thread. */
	pthread_setspecific(adoption_key, &own_records);
	return beginning.start(beginning.argument);
}

/* */
bool vmm_os_start_own_thread(pthread_t *thread, void *(*start)(void *argument), void *argument,
			     const char *name)
{
	struct beginning *b = vmm_fails(VMM_FAIL_ALLOCATION) ? NULL : malloc(sizeof(*b));
	struct vmm_os_thread *record = b ? new_record() : NULL;

	if (b)
		*b = (struct beginning){start, argument, record};
	if (!record || !start_thread(thread, begin_own_thread, b)) {
		free(record);
		free(b);
		return false;
	}
	if (name)
		pthread_setname_np(*thread, name);
	return true;
}

vmm_status vmm_os_linux_thread_start(struct vmm_os_thread *thread)
{
	atomic_fetch_add(&thread->os->linux_.busy, 1);
	if (start_thread(&thread->linux_.handle, run, thread))
		return VMM_OK;
	atomic_fetch_sub(&thread->os->linux_.busy, 1);
	return VMM_NO_MEMORY;
}

void vmm_os_linux_thread_join(struct vmm_os_thread *thread)
{
	struct vmm_os *os = thread->os;

	while (!atomic_load(&thread->linux_.ended))
		(void)!vmm_os_linux_wait(os, &thread->linux_.ended, 0, VMM_OS_FOREVER);
	vmm_assert(pthread_join(thread->linux_.handle, NULL) == 0);
	vmm_os_thread_unregister(thread);
	vmm_free(thread);
}
