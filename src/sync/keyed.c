/* SPDX-License-Identifier: MIT */
/*
 * Keyed mutexes (KMX-02, KMX-13, KMX-24): a mutex is released with a key, and acquired by a thread
 * that waits for that key.
 *
 * The process lock guards handles. The shared lock guards the global handle and the number of
 * openings. The sync lock guards the holder and the waiters.
 */
#include "sync/sync_private.h"

#include <string.h>

/* A waiting thread; on its stack. */
struct waiter {
	struct vmm_list link;
	const struct vmm_keyed_opening *opening;
	uint64_t key;
	struct vmm_sleeper sleeper; /* in the list of the opening's device, if that has one */
	vmm_status status;
};

void vmm_keyed_put(struct vmm_keyed *keyed)
{
	vmm_assert(vmm_keyed_is_valid(keyed));
	if (atomic_fetch_sub_explicit(&keyed->references, 1, memory_order_acq_rel) == 1)
		vmm_free(keyed);
}

/* ---- creation, opening ---- */

static void bind_locked(struct vmm_keyed_opening *opening, struct vmm_device *device)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&opening->process->world->sync_lock);
	if (opening->device || !device)
		return;
	opening->device = device;
	vmm_list_push_back(&device->keyed, &opening->device_link);
}

/* Creates the handle. Another thread may destroy it from then on. (KMX-24) */
static uint32_t publish(struct vmm_keyed_opening *opening, struct vmm_device *device)
{
	struct vmm_process *process = opening->process;

	vmm_process_lock(process);
	uint32_t handle = vmm_handle_create(&process->handles, VMM_HANDLE_KEYED, opening);
	opening->handle = handle;
	if (handle) {
		vmm_sync_lock(process->world);
		vmm_list_push_back(&process->keyed, &opening->link);
		bind_locked(opening, device);
		vmm_sync_unlock(process->world);
	}
	vmm_process_unlock(process);
	return handle;
}

static void uncount(struct vmm_keyed *keyed)
{
	struct vmm_world *world = keyed->world;

	vmm_shared_lock(world);
	vmm_assert(keyed->openings > 0);
	if (!--keyed->openings && keyed->global_handle) /* KMX-05 */
		vmm_handle_destroy(&world->shared, keyed->global_handle);
	vmm_shared_unlock(world);
	vmm_keyed_put(keyed);
}

/*
 * Makes an opening and its handle. Takes over a reference and a counted opening. The caller is
 * inside `device`, which may be NULL.
 */
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

	vmm_shared_lock(world);
	keyed->global_handle = vmm_handle_create(&world->shared, VMM_HANDLE_KEYED, keyed);
	vmm_shared_unlock(world);
	return keyed->global_handle;
}

/* Creates a mutex that no thread holds, with the initial key. (KMX-02) */
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
	/* once the handle exists another thread may destroy it */
	uint32_t global = keyed->global_handle;
	vmm_status status = open_it(process, NULL, keyed, &request->handle);
	if (vmm_ok(status))
		request->global_handle = global;
	return status;
}

/* Private data of an open must be absent, empty, or of the mutex's size. (KMX-08) */
static bool data_fits(const struct vmm_keyed *keyed, const struct vmm_keyed_open *open)
{
	return !open->with_data || !open->data_bytes || !keyed->data_bytes ||
	       open->data_bytes == keyed->data_bytes;
}

static vmm_status refuse_data(const struct vmm_process *process, uint32_t object, uint32_t given,
			      uint32_t has)
{
	return vmm_refuse_rule(
		process->world->observe, VMM_INVALID_PARAMETER, "KMX-08", process->id, object,
		"open keyed mutex: private data of %u bytes; 0 or the mutex's %u are valid", given,
		has);
}

static void count_locked(struct vmm_keyed *keyed) VMM_REQUIRES(vmm_shared_lock_class)
{
	vmm_assert_held(&keyed->world->shared_lock);
	vmm_assert(vmm_keyed_is_valid(keyed));
	atomic_fetch_add(&keyed->references, 1);
	keyed->openings++;
}

vmm_status vmm_keyed_open(struct vmm_process *process, struct vmm_keyed_open *open)
{
	struct vmm_world *world = process->world;
	struct vmm_keyed *keyed;
	uint32_t global = open->global, has;

	vmm_shared_lock(world);
	keyed = vmm_handle_lookup(&world->shared, global, VMM_HANDLE_KEYED);
	bool fits = keyed && data_fits(keyed, open);
	if (fits)
		count_locked(keyed);
	has = keyed ? keyed->data_bytes : 0;
	const char *why = vmm_handle_explain(&world->shared, global, VMM_HANDLE_KEYED);
	vmm_shared_unlock(world);
	if (fits)
		return open_it(process, NULL, keyed, &open->handle);
	if (keyed)
		return refuse_data(process, global, open->data_bytes, has);
	return vmm_refuse_rule(world->observe, VMM_INVALID_PARAMETER, "KMX-03", process->id, global,
			       "open keyed mutex: 0x%08x is not a global handle of one (%s)",
			       global, why);
}

vmm_status vmm_keyed_open_held(struct vmm_device *device, struct vmm_keyed *keyed,
			       struct vmm_keyed_open *open)
{
	struct vmm_process *process = device->process;
	struct vmm_world *world = process->world;

	if (!data_fits(keyed, open))
		return refuse_data(process, 0, open->data_bytes, keyed->data_bytes);
	vmm_shared_lock(world);
	count_locked(keyed);
	vmm_shared_unlock(world);
	return open_it(process, device, keyed, &open->handle);
}

struct vmm_keyed *vmm_keyed_hold(struct vmm_device *device, uint32_t handle)
{
	struct vmm_process *process = device->process;
	struct vmm_keyed *keyed = NULL;

	vmm_process_lock(process);
	struct vmm_keyed_opening *opening =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_KEYED);
	vmm_assert(!opening || vmm_keyed_opening_is_valid(opening));
	if (opening && opening->keyed->nt_security)
		keyed = opening->keyed;
	if (keyed) {
		atomic_fetch_add(&keyed->references, 1);
		vmm_sync_lock(process->world);
		bind_locked(opening, device);
		vmm_sync_unlock(process->world);
	} else {
		vmm_finding(
			process->world->observe, "SHR-07", process->id, handle,
			"share objects: 0x%08x is %s", handle,
			opening ? "a keyed mutex created without NtSecuritySharing"
				: vmm_handle_explain(&process->handles, handle, VMM_HANDLE_KEYED));
	}
	vmm_process_unlock(process);
	return keyed;
}

/* ---- waiting ---- */

/* Ends the wait; returns the futex to wake. Caller holds the sync lock. */
static _Atomic uint32_t *end_wait(struct waiter *waiter, vmm_status status)
{
	vmm_list_remove(&waiter->link);
	vmm_list_remove(&waiter->sleeper.link);
	waiter->status = status;
	atomic_fetch_or(&waiter->sleeper.state, VMM_SLEEPER_DONE);
	return &waiter->sleeper.state;
}

/*
 * Hands the mutex to the oldest waiter for its present key; the others keep waiting. (KMX-13,
 * KMX-16)
 */
static _Atomic uint32_t *hand_over_locked(struct vmm_keyed *keyed) VMM_REQUIRES(vmm_sync_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&keyed->world->sync_lock);
	vmm_assert(vmm_keyed_is_consistent_locked(keyed) && !keyed->holder);
	vmm_list_for_each (link, &keyed->waiters) {
		struct waiter *waiter = vmm_container_of(link, struct waiter, link);

		if (waiter->key != keyed->key)
			continue;
		keyed->holder = waiter->opening;
		return end_wait(waiter, VMM_OK);
	}
	return NULL;
}

/* Ends all waits through that opening (NULL: through any). */
static void end_waits(struct vmm_keyed *keyed, const struct vmm_keyed_opening *opening,
		      vmm_status status)
{
	struct vmm_world *world = keyed->world;
	_Atomic uint32_t *word;

	do {
		struct vmm_list *link;

		word = NULL;
		vmm_sync_lock(world);
		vmm_list_for_each (link, &keyed->waiters) {
			struct waiter *waiter = vmm_container_of(link, struct waiter, link);

			if (opening && waiter->opening != opening)
				continue;
			word = end_wait(waiter, status);
			break;
		}
		vmm_sync_unlock(world);
		if (word)
			vmm_os_wake(world->os, word, UINT32_MAX);
	} while (word);
}

/* Returns the opening, which stays until leave(). NULL with a finding: not a live one (KMX-21). */
static struct vmm_keyed_opening *enter(struct vmm_process *process, uint32_t handle,
				       const char *what)
{
	vmm_process_lock(process);
	struct vmm_keyed_opening *opening =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_KEYED);
	vmm_assert(!opening || vmm_keyed_opening_is_valid(opening));
	if (opening)
		atomic_fetch_add(&opening->users, 1);
	else
		vmm_finding(process->world->observe, "KMX-21", process->id, handle,
			    "%s: 0x%08x is not a live keyed mutex of process %u (%s)", what, handle,
			    process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_KEYED));
	vmm_process_unlock(process);
	return opening;
}

static void leave(struct vmm_keyed_opening *opening)
{
	struct vmm_os *os = opening->process->world->os;
	_Atomic uint32_t *users = &opening->users;

	/* Only the address is used after the decrement: the opening may be freed already. */
	if (atomic_fetch_sub(users, 1) == 1)
		vmm_os_wake(os, users, UINT32_MAX);
}

/*
 * Returns whether the device of the opening or its adapter is lost. Caller holds the sync lock.
 * (KMX-23)
 */
static bool is_lost_locked(struct vmm_keyed_opening *opening) VMM_REQUIRES(vmm_sync_lock_class)
{
	const struct vmm_device *device = opening->device;

	vmm_assert_held(&opening->keyed->world->sync_lock);
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
			vmm_sync_lock(world);
			status = is_lost_locked(opening) ? VMM_DEVICE_REMOVED : VMM_OK;
			vmm_sync_unlock(world);
			continue;
		}
		status = vmm_os_wait(world->os, word, 0, deadline_ns, "the key of a keyed mutex",
				     waiter->key);
	}
	vmm_sync_lock(world);
	if (!(atomic_load(word) & VMM_SLEEPER_DONE))
		/* timeout (KMX-15), loss (KMX-23), or no thread can run anymore */
		(void)end_wait(waiter, status);
	vmm_sync_unlock(world);
	return waiter->status;
}

static vmm_status acquire(struct vmm_keyed_opening *opening, const struct vmm_keyed_access *access)
{
	struct vmm_keyed *keyed = opening->keyed;
	struct waiter waiter = {.opening = opening, .key = access->key};
	vmm_status status = VMM_PENDING;

	vmm_list_init(&waiter.sleeper.link);
	vmm_sync_lock(keyed->world);
	vmm_assert(vmm_keyed_is_consistent_locked(keyed));
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
	vmm_sync_unlock(keyed->world);
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
			    "acquire keyed mutex: private data of %u bytes exceed the mutex's %u",
			    access->data_bytes, keyed->data_bytes);
	else
		status = acquire(opening, access);
	if (status == VMM_OK) {
		vmm_sync_lock(keyed->world);
		access->fence = keyed->fence; /* KMX-25 */
		if (access->data_bytes)
			memcpy(access->data, keyed->data, access->data_bytes);
		vmm_sync_unlock(keyed->world);
	}
	leave(opening);
	return status;
}

static vmm_status release(const struct vmm_keyed_opening *opening,
			  const struct vmm_keyed_access *access)
{
	struct vmm_keyed *keyed = opening->keyed;
	_Atomic uint32_t *word = NULL;

	vmm_sync_lock(keyed->world);
	vmm_assert(vmm_keyed_is_consistent_locked(keyed));
	bool is_holder = keyed->holder == opening;
	if (is_holder) {
		keyed->key = access->key;
		keyed->fence = access->fence;
		if (access->data_bytes)
			memcpy(keyed->data, access->data, access->data_bytes);
		keyed->holder = NULL;
		word = hand_over_locked(keyed);
	}
	vmm_sync_unlock(keyed->world);
	if (word)
		vmm_os_wake(keyed->world->os, word, UINT32_MAX);
	return is_holder ? VMM_OK : VMM_INVALID_PARAMETER;
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
			    "release keyed mutex: private data of %u bytes exceed the mutex's %u",
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

/* Ends an opening that is in no table anymore, so no further call enters. */
static void end(struct vmm_keyed_opening *opening)
{
	struct vmm_keyed *keyed = opening->keyed;
	struct vmm_world *world = keyed->world;
	uint32_t users;

	do { /* KMX-22; repeated, because a call inside may begin a wait after the first pass */
		end_waits(keyed, opening, VMM_CANCELLED);
		users = atomic_load(&opening->users);
		if (users)
			(void)!vmm_ok(vmm_os_wait(world->os, &opening->users, users,
						  vmm_os_now_ns(world->os) + 1000000,
						  "calls on a keyed mutex that ends", users));
	} while (atomic_load(&opening->users) && !vmm_os_dead(world->os));
	vmm_sync_lock(world);
	bool held = keyed->holder == opening;
	if (held) { /* KMX-19 */
		keyed->holder = NULL;
		keyed->abandoned = true;
	}
	vmm_sync_unlock(world);
	if (held)
		end_waits(keyed, NULL, VMM_ABANDONED);
	uncount(keyed);
	vmm_free(opening);
}

static void unlink_locked(struct vmm_keyed_opening *opening) VMM_REQUIRES(vmm_process_lock_class)
{
	struct vmm_process *process = opening->process;

	vmm_assert_held(&process->lock);
	vmm_handle_destroy(&process->handles, opening->handle);
	vmm_sync_lock(process->world);
	vmm_list_remove(&opening->link);
	vmm_list_remove(&opening->device_link);
	opening->device = NULL;
	vmm_sync_unlock(process->world);
}

vmm_status vmm_keyed_destroy(struct vmm_process *process, uint32_t handle)
{
	vmm_process_lock(process);
	struct vmm_keyed_opening *opening =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_KEYED);
	if (opening)
		unlink_locked(opening);
	else
		vmm_finding(process->world->observe, "KMX-04", process->id, handle,
			    "destroy keyed mutex: 0x%08x is not a live one of process %u (%s)",
			    handle, process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_KEYED));
	vmm_process_unlock(process);
	if (!opening)
		return VMM_INVALID_PARAMETER;
	end(opening);
	return VMM_OK;
}

/*
 * Unties the openings of a device that ends. Keyed mutexes belong to the process (SYN-14): they
 * outlive the device, and waits go on.
 */
void vmm_keyed_end_device(struct vmm_device *device)
{
	struct vmm_list *link;

	vmm_sync_lock(device->process->world);
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
	vmm_sync_unlock(device->process->world);
}

void vmm_keyed_disturb(struct vmm_process *process)
{
	struct vmm_list *link;

	vmm_process_lock(process);
	vmm_list_for_each (link, &process->keyed) {
		const struct vmm_keyed_opening *opening =
			vmm_container_of(link, struct vmm_keyed_opening, link);

		end_waits(opening->keyed, opening, VMM_CANCELLED);
	}
	vmm_process_unlock(process);
}

void vmm_keyed_end_process(struct vmm_process *process)
{
	for (;;) {
		struct vmm_keyed_opening *opening = NULL;

		vmm_process_lock(process);
		if (!vmm_list_empty(&process->keyed)) {
			opening = vmm_container_of(process->keyed.next, struct vmm_keyed_opening,
						   link);
			unlink_locked(opening);
		}
		vmm_process_unlock(process);
		if (!opening)
			return;
		end(opening);
	}
}
