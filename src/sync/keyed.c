/* SPDX-License-Identifier: MIT */
/*
 * Keyed mutexes (KMX-02, KMX-13, KMX-24): a mutex that is released with a key, and acquired by whoever waits for that key. The process's lock
 * guards handles, the shared lock the global handle and how many openings there are, the sync lock who holds it and who waits.
 */
#include "sync/sync_private.h"

#include <string.h>

struct vmm_keyed {
	struct vmm_world *world;
	_Atomic uint32_t references;
	/* guarded by world->shared_lock */
	uint32_t openings, global_handle;
	/* guarded by the sync lock */
	uint64_t key, fence;
	const struct vmm_keyed_opening *holder; /* NULL: released */
	bool abandoned;                         /* for good (KMX-19) */
	bool nt_security; /* part of bundles, and without a global handle (KMX-06); constant */
	struct vmm_list waiters; /* first come first */
	uint32_t data_bytes;     /* constant */
	uint8_t data[];
};

struct vmm_keyed_opening {
	struct vmm_keyed *keyed;
	struct vmm_process *process;
	uint32_t handle;
	struct vmm_list link; /* in process->keyed; guarded by the sync lock, like the next three */
	struct vmm_device
		*device; /* of whose resource it came, or went, in one bundle; NULL: none */
	struct vmm_list device_link; /* in device->keyed */
	bool lost;                   /* with such a device that is not there any more (KMX-23) */
	_Atomic uint32_t users;      /* calls on it; its end waits for them */
};

/* A thread that waits; on its stack. */
struct waiter {
	struct vmm_list link;
	const struct vmm_keyed_opening *opening;
	uint64_t key;
	struct vmm_sleeper sleeper; /* in the list of the opening's device, if it has one */
	vmm_status status;
};

void vmm_keyed_put(struct vmm_keyed *keyed)
{
	if (atomic_fetch_sub_explicit(&keyed->references, 1, memory_order_acq_rel) == 1)
		vmm_free(keyed);
}

/* ---- creation, opening ---- */

static void bind_locked(struct vmm_keyed_opening *opening, struct vmm_device *device)
{
	if (opening->device || !device)
		return;
	opening->device = device;
	vmm_list_push_back(&device->keyed, &opening->device_link);
}

/* Once it is published anybody may end it. */
static uint32_t publish(struct vmm_keyed_opening *opening, struct vmm_device *device)
{
	struct vmm_process *process = opening->process;

	vmm_os_mutex_lock(&process->lock);
	uint32_t handle = vmm_handle_create(&process->handles, VMM_HANDLE_KEYED, opening);
	opening->handle = handle;
	if (handle) {
		vmm_os_mutex_lock(&process->world->sync_lock);
		vmm_list_push_back(&process->keyed, &opening->link);
		bind_locked(opening, device);
		vmm_os_mutex_unlock(&process->world->sync_lock);
	}
	vmm_os_mutex_unlock(&process->lock);
	return handle;
}

static void uncount(struct vmm_keyed *keyed)
{
	struct vmm_world *world = keyed->world;

	vmm_os_mutex_lock(&world->shared_lock);
	if (!--keyed->openings && keyed->global_handle) /* KMX-05 */
		vmm_handle_destroy(&world->shared, keyed->global_handle);
	vmm_os_mutex_unlock(&world->shared_lock);
	vmm_keyed_put(keyed);
}

/* Takes over a reference and an opening that have been counted. device: NULL, or the caller is inside. */
static vmm_status open_it(struct vmm_process *process, struct vmm_device *device,
			  struct vmm_keyed *keyed, uint32_t *handle)
{
	struct vmm_keyed_opening *opening = vmm_calloc(1, sizeof(*opening));

	if (opening) {
		opening->keyed = keyed;
		opening->process = process;
		vmm_list_init(&opening->link);
		vmm_list_init(&opening->device_link);
		*handle = publish(opening, device);
		if (*handle)
			return VMM_OK;
	}
	vmm_free(opening);
	uncount(keyed);
	return VMM_NO_MEMORY;
}

static bool make_global(struct vmm_keyed *keyed)
{
	struct vmm_world *world = keyed->world;

	vmm_os_mutex_lock(&world->shared_lock);
	keyed->global_handle = vmm_handle_create(&world->shared, VMM_HANDLE_KEYED, keyed);
	vmm_os_mutex_unlock(&world->shared_lock);
	return keyed->global_handle;
}

vmm_status vmm_keyed_create(struct vmm_process *process, struct vmm_keyed_request *request)
{
	struct vmm_keyed *keyed = vmm_calloc(1, sizeof(*keyed) + request->data_bytes);

	if (!keyed)
		return VMM_NO_MEMORY;
	keyed->world = process->world;
	atomic_init(&keyed->references, 1);
	keyed->openings = 1;
	keyed->key = request->key;
	keyed->data_bytes = request->data_bytes;
	keyed->nt_security = request->nt_security;
	vmm_list_init(&keyed->waiters);
	if (request->data_bytes)
		memcpy(keyed->data, request->data, request->data_bytes);
	if (!request->nt_security && !make_global(keyed)) {
		vmm_free(keyed);
		return VMM_NO_MEMORY;
	}
	uint32_t global = keyed->global_handle; /* once it is published anybody may end it */
	vmm_status status = open_it(process, NULL, keyed, &request->handle);
	if (vmm_ok(status))
		request->global_handle = global;
	return status;
}

/* KMX-08. */
static bool data_fits(const struct vmm_keyed *keyed, const struct vmm_keyed_open *open)
{
	return !open->with_data || !open->data_bytes || !keyed->data_bytes ||
	       open->data_bytes == keyed->data_bytes;
}

static vmm_status refuse_data(const struct vmm_process *process, uint32_t object, uint32_t given,
			      uint32_t has)
{
	vmm_finding(process->world->observe, "KMX-08", process->id, object,
		    "open keyed mutex: private data of %u bytes, and it has %u: 0 or all of them",
		    given, has);
	return VMM_INVALID_PARAMETER;
}

static void count_locked(struct vmm_keyed *keyed)
{
	atomic_fetch_add(&keyed->references, 1);
	keyed->openings++;
}

vmm_status vmm_keyed_open(struct vmm_process *process, struct vmm_keyed_open *open)
{
	struct vmm_world *world = process->world;
	struct vmm_keyed *keyed;
	uint32_t global = open->global, has;

	vmm_os_mutex_lock(&world->shared_lock);
	keyed = vmm_handle_lookup(&world->shared, global, VMM_HANDLE_KEYED);
	bool fits = keyed && data_fits(keyed, open);
	if (fits)
		count_locked(keyed);
	has = keyed ? keyed->data_bytes : 0;
	const char *why = vmm_handle_explain(&world->shared, global, VMM_HANDLE_KEYED);
	vmm_os_mutex_unlock(&world->shared_lock);
	if (fits)
		return open_it(process, NULL, keyed, &open->handle);
	if (keyed)
		return refuse_data(process, global, open->data_bytes, has);
	vmm_finding(world->observe, "KMX-03", process->id, global,
		    "open keyed mutex: 0x%08x is not the global handle of one (%s)", global, why);
	return VMM_INVALID_PARAMETER;
}

vmm_status vmm_keyed_open_held(struct vmm_process *process, struct vmm_device *device,
			       struct vmm_keyed *keyed, struct vmm_keyed_open *open)
{
	struct vmm_world *world = process->world;

	if (!data_fits(keyed, open))
		return refuse_data(process, 0, open->data_bytes, keyed->data_bytes);
	vmm_os_mutex_lock(&world->shared_lock);
	count_locked(keyed);
	vmm_os_mutex_unlock(&world->shared_lock);
	return open_it(process, device, keyed, &open->handle);
}

struct vmm_keyed *vmm_keyed_hold(struct vmm_device *device, uint32_t handle)
{
	struct vmm_process *process = device->process;
	struct vmm_keyed *keyed = NULL;

	vmm_os_mutex_lock(&process->lock);
	struct vmm_keyed_opening *opening =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_KEYED);
	if (opening && opening->keyed->nt_security)
		keyed = opening->keyed;
	if (keyed) {
		atomic_fetch_add(&keyed->references, 1);
		vmm_os_mutex_lock(&process->world->sync_lock);
		bind_locked(opening, device);
		vmm_os_mutex_unlock(&process->world->sync_lock);
	} else {
		vmm_finding(
			process->world->observe, "SHR-07", process->id, handle,
			"share objects: 0x%08x is %s", handle,
			opening ? "a keyed mutex made without NtSecuritySharing"
				: vmm_handle_explain(&process->handles, handle, VMM_HANDLE_KEYED));
	}
	vmm_os_mutex_unlock(&process->lock);
	return keyed;
}

/* ---- waiting ---- */

/* Sync lock held; returns what to wake. */
static _Atomic uint32_t *end_wait(struct waiter *waiter, vmm_status status)
{
	vmm_list_remove(&waiter->link);
	vmm_list_remove(&waiter->sleeper.link);
	waiter->status = status;
	atomic_fetch_or(&waiter->sleeper.state, VMM_SLEEPER_DONE);
	return &waiter->sleeper.state;
}

/* KMX-16: the first that waits for the key of now has it; the others go on waiting. */
static _Atomic uint32_t *hand_over_locked(struct vmm_keyed *keyed)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &keyed->waiters) {
		struct waiter *waiter = vmm_container_of(link, struct waiter, link);

		if (waiter->key != keyed->key)
			continue;
		keyed->holder = waiter->opening;
		return end_wait(waiter, VMM_OK);
	}
	return NULL;
}

/* Whoever waits through that opening (NULL: through any) comes back. */
static void end_waits(struct vmm_keyed *keyed, const struct vmm_keyed_opening *opening,
		      vmm_status status)
{
	struct vmm_world *world = keyed->world;
	_Atomic uint32_t *word;

	do {
		struct vmm_list *link;

		word = NULL;
		vmm_os_mutex_lock(&world->sync_lock);
		vmm_list_for_each (link, &keyed->waiters) {
			struct waiter *waiter = vmm_container_of(link, struct waiter, link);

			if (opening && waiter->opening != opening)
				continue;
			word = end_wait(waiter, status);
			break;
		}
		vmm_os_mutex_unlock(&world->sync_lock);
		if (word)
			vmm_os_wake(world->os, word, UINT32_MAX);
	} while (word);
}

/* Stays until leave(); NULL and a finding: no live one (KMX-21). */
static struct vmm_keyed_opening *enter(struct vmm_process *process, uint32_t handle,
				       const char *what)
{
	vmm_os_mutex_lock(&process->lock);
	struct vmm_keyed_opening *opening =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_KEYED);
	if (opening)
		atomic_fetch_add(&opening->users, 1);
	else
		vmm_finding(process->world->observe, "KMX-21", process->id, handle,
			    "%s: 0x%08x is not a live keyed mutex of process %u (%s)", what, handle,
			    process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_KEYED));
	vmm_os_mutex_unlock(&process->lock);
	return opening;
}

static void leave(struct vmm_keyed_opening *opening)
{
	struct vmm_os *os = opening->process->world->os;
	_Atomic uint32_t *users = &opening->users;

	if (atomic_fetch_sub(users, 1) == 1)
		vmm_os_wake(os, users,
			    UINT32_MAX); /* an address; whoever ends it may have it already */
}

/* KMX-23: is the device of its bundle gone, or its adapter? Sync lock held. */
static bool is_lost_locked(struct vmm_keyed_opening *opening)
{
	const struct vmm_device *device = opening->device;

	if (device && (atomic_load(&device->adapter->closed) || vmm_device_lost(device)))
		opening->lost = true;
	return opening->lost;
}

static vmm_status sleep_on(struct vmm_keyed_opening *opening, struct waiter *waiter,
			   uint64_t deadline_ns)
{
	struct vmm_world *world = opening->keyed->world;
	_Atomic uint32_t *word = &waiter->sleeper.state;
	vmm_status status = VMM_OK;

	while (status == VMM_OK) {
		uint32_t state = atomic_fetch_and(word, ~(uint32_t)VMM_SLEEPER_DISTURBED);

		if (state & VMM_SLEEPER_DONE)
			break;
		if (state) {
			vmm_os_mutex_lock(&world->sync_lock);
			status = is_lost_locked(opening) ? VMM_DEVICE_REMOVED : VMM_OK;
			vmm_os_mutex_unlock(&world->sync_lock);
			continue;
		}
		status = vmm_os_wait(world->os, word, 0, deadline_ns, "the key of a keyed mutex",
				     waiter->key);
	}
	vmm_os_mutex_lock(&world->sync_lock);
	if (!(atomic_load(word) & VMM_SLEEPER_DONE))
		(void)end_wait(waiter, status); /* KMX-15, KMX-23, or nothing runs any more */
	vmm_os_mutex_unlock(&world->sync_lock);
	return waiter->status;
}

static vmm_status acquire(struct vmm_keyed_opening *opening, const struct vmm_keyed_access *access)
{
	struct vmm_keyed *keyed = opening->keyed;
	struct waiter waiter = {.opening = opening, .key = access->key};
	vmm_status status = VMM_PENDING;

	vmm_list_init(&waiter.sleeper.link);
	vmm_os_mutex_lock(&keyed->world->sync_lock);
	if (is_lost_locked(opening)) {
		status = VMM_DEVICE_REMOVED;
	} else if (atomic_load(&opening->process->abandoned)) {
		status = VMM_CANCELLED;
	} else if (keyed->abandoned) {
		status = VMM_ABANDONED;
	} else if (!keyed->holder && keyed->key == access->key) { /* KMX-12 */
		keyed->holder = opening;
		status = VMM_OK;
	} else if (access->deadline_ns <= vmm_os_now_ns(keyed->world->os)) {
		status = VMM_TIMEOUT; /* KMX-14, KMX-18 */
	} else {
		vmm_list_push_back(&keyed->waiters, &waiter.link);
		if (opening->device)
			vmm_list_push_back(&opening->device->sleepers, &waiter.sleeper.link);
	}
	vmm_os_mutex_unlock(&keyed->world->sync_lock);
	return status == VMM_PENDING ? sleep_on(opening, &waiter, access->deadline_ns) : status;
}

vmm_status vmm_keyed_acquire(struct vmm_process *process, uint32_t handle,
			     struct vmm_keyed_access *access)
{
	struct vmm_keyed_opening *opening = enter(process, handle, "acquire keyed mutex");

	if (!opening)
		return VMM_INVALID_PARAMETER;
	struct vmm_keyed *keyed = opening->keyed;
	vmm_status status = VMM_INVALID_PARAMETER;
	if (access->data_bytes > keyed->data_bytes)
		vmm_finding(process->world->observe, "KMX-20", process->id, handle,
			    "acquire keyed mutex: private data of %u bytes, and it has %u",
			    access->data_bytes, keyed->data_bytes);
	else
		status = acquire(opening, access);
	if (status == VMM_OK) {
		vmm_os_mutex_lock(&keyed->world->sync_lock);
		access->fence = keyed->fence; /* KMX-25 */
		if (access->data_bytes)
			memcpy(access->data, keyed->data, access->data_bytes);
		vmm_os_mutex_unlock(&keyed->world->sync_lock);
	}
	leave(opening);
	return status;
}

static vmm_status release(const struct vmm_keyed_opening *opening,
			  const struct vmm_keyed_access *access)
{
	struct vmm_keyed *keyed = opening->keyed;
	_Atomic uint32_t *word = NULL;

	vmm_os_mutex_lock(&keyed->world->sync_lock);
	bool ours = keyed->holder == opening;
	if (ours) {
		keyed->key = access->key;
		keyed->fence = access->fence;
		if (access->data_bytes)
			memcpy(keyed->data, access->data, access->data_bytes);
		keyed->holder = NULL;
		word = hand_over_locked(keyed);
	}
	vmm_os_mutex_unlock(&keyed->world->sync_lock);
	if (word)
		vmm_os_wake(keyed->world->os, word, UINT32_MAX);
	return ours ? VMM_OK : VMM_INVALID_PARAMETER;
}

vmm_status vmm_keyed_release(struct vmm_process *process, uint32_t handle,
			     const struct vmm_keyed_access *access)
{
	struct vmm_keyed_opening *opening = enter(process, handle, "release keyed mutex");

	if (!opening)
		return VMM_INVALID_PARAMETER;
	vmm_status status = VMM_INVALID_PARAMETER;
	if (access->data_bytes > opening->keyed->data_bytes) {
		vmm_finding(process->world->observe, "KMX-20", process->id, handle,
			    "release keyed mutex: private data of %u bytes, and it has %u",
			    access->data_bytes, opening->keyed->data_bytes);
	} else {
		status = release(opening, access);
		if (!vmm_ok(status))
			vmm_finding(process->world->observe, "KMX-17", process->id, handle,
				    "release keyed mutex: 0x%08x does not hold it", handle);
	}
	leave(opening);
	return status;
}

/* ---- the end ---- */

/* It is in no table any more, so nobody enters. */
static void end(struct vmm_keyed_opening *opening)
{
	struct vmm_keyed *keyed = opening->keyed;
	struct vmm_world *world = keyed->world;
	uint32_t users;

	do { /* KMX-22; one that was about to wait does so now */
		end_waits(keyed, opening, VMM_CANCELLED);
		users = atomic_load(&opening->users);
		if (users)
			(void)!vmm_ok(vmm_os_wait(world->os, &opening->users, users,
						  vmm_os_now_ns(world->os) + 1000000,
						  "calls on a keyed mutex that ends", users));
	} while (atomic_load(&opening->users) && !vmm_os_dead(world->os));
	vmm_os_mutex_lock(&world->sync_lock);
	bool held = keyed->holder == opening;
	if (held) { /* KMX-19 */
		keyed->holder = NULL;
		keyed->abandoned = true;
	}
	vmm_os_mutex_unlock(&world->sync_lock);
	if (held)
		end_waits(keyed, NULL, VMM_ABANDONED);
	uncount(keyed);
	vmm_free(opening);
}

static void unlink_locked(struct vmm_keyed_opening *opening)
{
	struct vmm_process *process = opening->process;

	vmm_handle_destroy(&process->handles, opening->handle);
	vmm_os_mutex_lock(&process->world->sync_lock);
	vmm_list_remove(&opening->link);
	vmm_list_remove(&opening->device_link);
	opening->device = NULL;
	vmm_os_mutex_unlock(&process->world->sync_lock);
}

vmm_status vmm_keyed_destroy(struct vmm_process *process, uint32_t handle)
{
	vmm_os_mutex_lock(&process->lock);
	struct vmm_keyed_opening *opening =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_KEYED);
	if (opening)
		unlink_locked(opening);
	else
		vmm_finding(process->world->observe, "KMX-04", process->id, handle,
			    "destroy keyed mutex: 0x%08x is not a live one of process %u (%s)",
			    handle, process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_KEYED));
	vmm_os_mutex_unlock(&process->lock);
	if (!opening)
		return VMM_INVALID_PARAMETER;
	end(opening);
	return VMM_OK;
}

/* Keyed mutexes are the process's (SYN-14): they go on without the device, and who waits goes on waiting. */
void vmm_keyed_end_device(struct vmm_device *device)
{
	struct vmm_os_mutex *lock = &device->process->world->sync_lock;
	struct vmm_list *link;

	vmm_os_mutex_lock(lock);
	while (!vmm_list_empty(&device->keyed)) {
		struct vmm_keyed_opening *opening =
			vmm_container_of(device->keyed.next, struct vmm_keyed_opening, device_link);

		(void)is_lost_locked(opening);
		vmm_list_remove(&opening->device_link);
		opening->device = NULL;
		vmm_list_for_each (link, &opening->keyed->waiters) {
			struct waiter *waiter = vmm_container_of(link, struct waiter, link);

			if (waiter->opening == opening)
				vmm_list_remove(&waiter->sleeper.link);
		}
	}
	vmm_os_mutex_unlock(lock);
}

void vmm_keyed_disturb(struct vmm_process *process)
{
	struct vmm_list *link;

	vmm_os_mutex_lock(&process->lock);
	vmm_list_for_each (link, &process->keyed) {
		const struct vmm_keyed_opening *opening =
			vmm_container_of(link, struct vmm_keyed_opening, link);

		end_waits(opening->keyed, opening, VMM_CANCELLED);
	}
	vmm_os_mutex_unlock(&process->lock);
}

void vmm_keyed_end_process(struct vmm_process *process)
{
	for (;;) {
		struct vmm_keyed_opening *opening = NULL;

		vmm_os_mutex_lock(&process->lock);
		if (!vmm_list_empty(&process->keyed)) {
			opening = vmm_container_of(process->keyed.next, struct vmm_keyed_opening,
						   link);
			unlink_locked(opening);
		}
		vmm_os_mutex_unlock(&process->lock);
		if (!opening)
			return;
		end(opening);
	}
}
