/* SPDX-License-Identifier: MIT */
/*
 * Signals and waits of the CPU that name one fence of a device by its handle, and have nothing to wait for: what nearly all of them are.
 * They take no lock. The thread announces the address that it found and looks again: whoever ends the opening has
 * taken it out of the table before, and then waits for those who announced it (docs/locking.md). Between the two the
 * thread waits for nothing. An opening of a device keeps that, because the end of a device ends its openings first.
 */
#include "sync/sync_private.h"

struct look {
	_Atomic uint64_t *word;
};

static inline void leave(const struct look *look)
{
	atomic_store_explicit(look->word, 0, memory_order_release);
}

/* What the long way would refuse, or wait for. */
static inline bool is_plain(const struct vmm_sync *sync, uint32_t device_handle, uint32_t use)
{
	const struct vmm_device *device = sync->device;

	return (sync->quick & use) && device->handle == device_handle &&
	       vmm_live_is_open(device->live) &&
	       !atomic_load_explicit(&device->adapter->closed, memory_order_relaxed) &&
	       atomic_load_explicit(&device->error, memory_order_relaxed) == VMM_DEVICE_OK;
}

/* It stays until the caller leaves; NULL: it takes the long way. */
static inline const struct vmm_sync *find(struct look *look, const struct vmm_process *process,
					  const struct vmm_sync_one *one, uint32_t use)
{
	const struct vmm_sync *sync =
		vmm_handle_peek(&process->handles, one->handle, VMM_HANDLE_SYNC);

	if (vmm_unlikely(!sync))
		return NULL;
	look->word = vmm_os_thread_using(process->world->os);
	/* One thing at a time: it may be called from inside a call on something else. */
	if (vmm_unlikely(atomic_load_explicit(look->word, memory_order_relaxed)))
		return NULL;
	(void)vmm_os_announce(look->word, (uint64_t)(uintptr_t)sync);
	if (vmm_likely(vmm_handle_peek(&process->handles, one->handle, VMM_HANDLE_SYNC) == sync &&
		       is_plain(sync, one->device, use)))
		return sync;
	leave(look);
	return NULL;
}

vmm_status vmm_sync_signal_one(const struct vmm_process *process, const struct vmm_sync_one *one)
{
	struct look look;
	const struct vmm_sync *sync = find(&look, process, one, VMM_SYNC_QUICK_SIGNAL);

	if (vmm_unlikely(!sync))
		return VMM_PENDING;
	struct vmm_sync_object *object = sync->object;
	bool awaited = vmm_sync_raise(object, one->value, false);
	if (vmm_unlikely(awaited))
		vmm_sync_get(object); /* its handle may be destroyed once we have left */
	leave(&look);
	if (vmm_unlikely(awaited)) {
		vmm_sync_deliver(object);
		vmm_sync_put(object);
	}
	return VMM_OK;
}

vmm_status vmm_sync_poll_one(const struct vmm_process *process, const struct vmm_sync_one *one)
{
	struct look look;
	const struct vmm_sync *sync = find(&look, process, one, VMM_SYNC_QUICK_WAIT);

	if (vmm_unlikely(!sync))
		return VMM_PENDING;
	bool reached = vmm_sync_reached(sync->object, one->value);
	leave(&look);
	return reached ? VMM_OK : VMM_PENDING;
}

void vmm_sync_show_locked(const struct vmm_sync *sync)
{
	if (sync->quick)
		vmm_handle_show(&sync->process->handles, sync->handle);
}

void vmm_sync_await_lookers(const struct vmm_sync *sync)
{
	struct vmm_os *os = sync->process->world->os;

	while (vmm_os_any_thread_using(os, (uint64_t)(uintptr_t)sync))
		vmm_os_yield(os);
}
