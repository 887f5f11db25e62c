/* SPDX-License-Identifier: MIT */
/*
 * quick: signals and polls of the CPU for one fence of a device, named by its handle. They are
 * lock-free, except for a signal of a fence that has waiters, which is rare.
 *
 * A look-up races with the destruction of the opening. It is protected by a hazard pointer: the
 * thread publishes the address that it found and looks the handle up again. A thread that ends an
 * opening first removes its handle from the table. It then waits until no hazard pointer holds the
 * address (docs/locking.md). While it holds the hazard pointer a thread takes no lock and does not
 * wait. A protected opening also keeps its device: a device's end first ends its openings, which
 * waits.
 *
 * A signal that finds waiters first replaces the hazard pointer by a reference to the object. Then
 * it takes the sync lock to end their waits (vmm_sync_deliver).
 */
#include "sync/sync_private.h"

struct guard {
	_Atomic uint64_t *word;
};

static inline void leave(const struct guard *guard)
{
	atomic_store_explicit(guard->word, 0, memory_order_release);
}

/* Returns false if the locked path would refuse the call or make it wait. */
static inline bool is_plain(const struct vmm_sync *sync, uint32_t device_handle, uint32_t use)
{
	const struct vmm_device *device = sync->device;

	return (sync->quick & use) && device->handle == device_handle &&
	       vmm_hazard_is_open(device->hazard) &&
	       !atomic_load_explicit(&device->adapter->closed, memory_order_relaxed) &&
	       atomic_load_explicit(&device->error, memory_order_relaxed) == VMM_DEVICE_OK;
}

/* Returns the opening, protected until leave(). NULL: the caller takes the locked path. */
static inline const struct vmm_sync *find(struct guard *guard, const struct vmm_process *process,
					  const struct vmm_sync_one *one, uint32_t use)
{
	const struct vmm_sync *sync =
		vmm_handle_lookup_lockless(&process->handles, one->handle, VMM_HANDLE_SYNC);

	if (vmm_unlikely(!sync))
		return NULL;
	guard->word = &VMM_OS_OWN(process->world->os)->hazard;
	/* The thread's hazard pointer is in use if this runs inside a call on another object. */
	if (vmm_unlikely(atomic_load_explicit(guard->word, memory_order_relaxed)))
		return NULL;
	(void)vmm_os_hazard_publish(guard->word, (uint64_t)(uintptr_t)sync);
	if (vmm_likely(vmm_handle_lookup_lockless(&process->handles, one->handle,
						  VMM_HANDLE_SYNC) == sync &&
		       is_plain(sync, one->device, use)))
		return sync;
	leave(guard);
	return NULL;
}

/* In release it would make a signal 15 % slower, and a satisfied wait 10 %. */
static inline void assert_valid(const struct vmm_sync *sync)
{
	vmm_assert_debug(vmm_sync_quick_is_valid(sync));
}

vmm_status vmm_sync_signal_one(const struct vmm_process *process, const struct vmm_sync_one *one)
{
	struct guard guard;
	const struct vmm_sync *sync = find(&guard, process, one, VMM_SYNC_QUICK_SIGNAL);

	if (vmm_unlikely(!sync))
		return VMM_PENDING;
	assert_valid(sync);
	struct vmm_sync_object *object = sync->object;
	bool lower, awaited = vmm_sync_raise_checked(object, one->value, false, &lower);
	if (vmm_unlikely(awaited))
		vmm_sync_get(object); /* the handle may be destroyed after leave() */
	leave(&guard);
	if (vmm_unlikely(lower))
		return VMM_PENDING; /* The locked path refuses it. (MFN-23) */
	if (vmm_unlikely(awaited)) {
		vmm_sync_deliver(object);
		vmm_sync_put(object);
	}
	return VMM_OK;
}

vmm_status vmm_sync_poll_one(const struct vmm_process *process, const struct vmm_sync_one *one)
{
	struct guard guard;
	const struct vmm_sync *sync = find(&guard, process, one, VMM_SYNC_QUICK_WAIT);

	if (vmm_unlikely(!sync))
		return VMM_PENDING;
	assert_valid(sync);
	bool reached = vmm_sync_reached(sync->object, one->value);
	leave(&guard);
	return reached ? VMM_OK : VMM_PENDING;
}

void vmm_sync_enable_lockless_locked(const struct vmm_sync *sync)
{
	vmm_assert_held(&sync->process->lock);
	if (sync->quick)
		vmm_handle_enable_lockless(&sync->process->handles, sync->handle);
}

void vmm_sync_await_hazards(const struct vmm_sync *sync)
{
	struct vmm_os *os = sync->process->world->os;

	while (vmm_os_hazard_is_held(os, (uint64_t)(uintptr_t)sync))
		vmm_os_yield(os);
}
