/* SPDX-License-Identifier: MIT */
/*
 * Write protection of a client's CPU mappings through its userfaultfd. The kernel takes the lock of
 * the client's address space for that, and the client can hold this lock as long as it likes. So
 * one thread for each client protects ranges, in the order of the requests. The thread that
 * requests it holds locks of the core and waits for a limited time only.
 */
#include "serve/write_protector.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/owner.h"
#include "os/os_own_thread.h"

/* EAGAIN: the client is forking or changing mappings; a hostile one can make that last for ever. */
enum { PROTECT_TRIES = 64 };

/* The class of vmm_write_protector.lock. */
VMM_STATIC_LOCK_CLASS(protector_lock_class);

struct job {
	struct vmm_list link;
	uint64_t address, length;
	bool freezes; /* constant */
	bool done VMM_GUARDED_BY(protector_lock_class);
	bool abandoned VMM_GUARDED_BY(protector_lock_class);
	int error VMM_GUARDED_BY(protector_lock_class);
};

struct vmm_write_protector {
	int userfault;
	_Atomic uint32_t *late;
	pthread_t thread;
	pthread_mutex_t lock;
	struct vmm_owner owner; /* of the lock */
	pthread_cond_t changed;
	/* Guarded by lock. */
	struct vmm_list jobs;
	bool ended VMM_GUARDED_BY(protector_lock_class);
	bool was_late VMM_GUARDED_BY(protector_lock_class);
};

/* clang does not analyze the bodies: a lock class has no state, the mutex has. */
static void lock(struct vmm_write_protector *f)
	VMM_ACQUIRES(protector_lock_class) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	pthread_mutex_lock(&f->lock);
	vmm_owner_set(&f->owner);
}

static void unlock(struct vmm_write_protector *f)
	VMM_RELEASES(protector_lock_class) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	vmm_assert_owned(&f->owner);
	vmm_owner_clear(&f->owner);
	pthread_mutex_unlock(&f->lock);
}

/* Waits for `changed`, until the deadline unless that is NULL. Returns 0 or an errno. */
static int wait_locked(struct vmm_write_protector *f, const struct timespec *deadline)
	VMM_REQUIRES(protector_lock_class)
{
	int error;

	vmm_assert_owned(&f->owner);
	vmm_owner_clear(&f->owner);
	error = deadline ? pthread_cond_timedwait(&f->changed, &f->lock, deadline)
			 : pthread_cond_wait(&f->changed, &f->lock);
	vmm_owner_set(&f->owner);
	return error;
}

static int protect(int fd, const struct job *job, uint64_t mode)
{
	struct uffdio_writeprotect request = {.range = {.start = job->address, .len = job->length},
					      .mode = mode};
	int error = EAGAIN;

	for (uint32_t i = 0; i < PROTECT_TRIES && error == EAGAIN; i++)
		error = ioctl(fd, UFFDIO_WRITEPROTECT, &request) ? errno : 0;
	return error;
}

static void unprotect(int fd, const struct job *job)
{
	struct uffdio_range range = {.start = job->address, .len = job->length};

	/*
	 * What was mapped anew meanwhile is not protected. The client may also have exited; errors
	 * are ignored.
	 */
	(void)protect(fd, job, 0);
	(void)ioctl(fd, UFFDIO_UNREGISTER, &range);
	(void)ioctl(fd, UFFDIO_WAKE, &range);
}

/* Also returns 0 if the client has exited: then no store can come. */
static int freeze(int fd, const struct job *job)
{
	struct uffdio_register request = {.range = {.start = job->address, .len = job->length},
					  .mode = UFFDIO_REGISTER_MODE_WP};
	int error = ioctl(fd, UFFDIO_REGISTER, &request) ? errno : 0;

	if (!error) {
		error = protect(fd, job, UFFDIO_WRITEPROTECT_MODE_WP);
		if (error && error != ESRCH)
			unprotect(fd, job);
	}
	return error == ESRCH ? 0 : error;
}

/* Releases the lock meanwhile. */
static void do_job_locked(struct vmm_write_protector *f, struct job *job)
	VMM_REQUIRES(protector_lock_class)
{
	vmm_assert_owned(&f->owner);
	unlock(f);
	int error = job->freezes ? freeze(f->userfault, job) : 0;
	if (!job->freezes)
		unprotect(f->userfault, job);
	lock(f);
	if (job->freezes && !job->abandoned) {
		job->error = error;
		job->done = true;
		pthread_cond_broadcast(&f->changed);
		return;
	}
	if (job->freezes && !error) { /* the requester has stopped waiting */
		unlock(f);
		unprotect(f->userfault, job);
		lock(f);
	}
	vmm_free(job);
}

static void *protector_thread(void *argument)
{
	struct vmm_write_protector *f = argument;

	lock(f);
	for (;;) {
		while (vmm_list_empty(&f->jobs) && !f->ended)
			(void)wait_locked(f, NULL);
		if (vmm_list_empty(&f->jobs))
			break;
		struct job *job = vmm_container_of(f->jobs.next, struct job, link);
		vmm_list_remove(&job->link);
		do_job_locked(f, job);
	}
	unlock(f);
	return NULL;
}

struct vmm_write_protector *vmm_write_protector_create(int userfault, _Atomic uint32_t *late)
{
	struct vmm_write_protector *f = vmm_calloc(1, sizeof(*f));
	pthread_condattr_t attributes;

	if (!f)
		return NULL;
	f->userfault = userfault;
	f->late = late;
	vmm_list_init(&f->jobs);
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (vmm_os_start_own_thread(&f->thread, protector_thread, f, "vidmm-protect"))
		return f;
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	vmm_free(f);
	return NULL;
}

void vmm_write_protector_destroy(struct vmm_write_protector *f)
{
	if (!f)
		return;
	lock(f);
	f->ended = true;
	pthread_cond_broadcast(&f->changed);
	unlock(f);
	pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	vmm_free(f);
}

static struct job *queue_locked(struct vmm_write_protector *f, uint64_t address, uint64_t length,
				bool freezes) VMM_REQUIRES(protector_lock_class)
{
	struct job *job;

	vmm_assert_owned(&f->owner);
	job = vmm_calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->address = address;
	job->length = length;
	job->freezes = freezes;
	vmm_list_push_back(&f->jobs, &job->link);
	pthread_cond_broadcast(&f->changed);
	return job;
}

struct timespec vmm_write_protector_deadline(uint32_t late)
{
	struct timespec t;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns = (uint64_t)t.tv_nsec +
	     ((uint64_t)VMM_WRITE_PROTECTOR_MS * 1000000u >> (late < 20 ? late : 20));
	t.tv_sec += (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	return t;
}

vmm_status vmm_write_protector_freeze(struct vmm_write_protector *f, uint64_t address,
				      uint64_t length)
{
	const struct timespec deadline = vmm_write_protector_deadline(atomic_load(f->late));
	vmm_status status = VMM_NOT_SUPPORTED;
	int error = 0;

	lock(f);
	struct job *job = f->was_late ? NULL : queue_locked(f, address, length, true);
	while (job && !job->done && error != ETIMEDOUT)
		error = wait_locked(f, &deadline);
	if (job && job->done) {
		status = job->error ? VMM_NOT_SUPPORTED : VMM_OK;
		vmm_free(job);
	} else if (job) {
		job->abandoned = f->was_late = true;
		atomic_fetch_add(f->late, 1);
	}
	unlock(f);
	return status;
}

void vmm_write_protector_thaw(struct vmm_write_protector *f, uint64_t address, uint64_t length)
{
	lock(f);
	bool queued = queue_locked(f, address, length, false);
	unlock(f);
	if (!queued) /* no memory: a store that sleeps there must still be woken */
		unprotect(f->userfault, &(struct job){.address = address, .length = length});
}
