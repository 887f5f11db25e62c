/* SPDX-License-Identifier: MIT */
/*
 * Periodic fences: the miniport's notifications before each vertical sync of a target (PMF-03,
 * PMF-07). The interrupt counts the notifications, the DPC signals the fences. A notification
 * whose fence has ended is destroyed on the worker: the DDI call needs PASSIVE_LEVEL, and the
 * last reference to a fence may be dropped at any IRQL.
 */
#include "sched/data/data.h"

#define NOTIFICATIONS_MAX 64u /* notifications of an adapter at once */

struct notification {
	struct vmm_sync_periodic_source sync;
	struct vmm_sched *sched;
	/* NotificationID: use count of the slot * NOTIFICATIONS_MAX + index; 0: free */
	_Atomic uint32_t id;
	uint32_t uses; /* how often the slot was used; written by its owner only */
	/* compared by the interrupt: a late one may belong to the slot's last target */
	_Atomic uint32_t target;
	_Atomic uint32_t counted; /* interrupts that the DPC has not handled yet */
	_Atomic bool fence_ended; /* the fence has ended: the worker destroys the notification */
	HANDLE handle;
};

struct vmm_periodic {
	_Atomic uint32_t ended_count; /* number of notifications to be destroyed by the worker */
	_Atomic bool pending;         /* an interrupt counted since the DPC last looked */
	_Atomic bool taken[NOTIFICATIONS_MAX];
	struct notification notification[NOTIFICATIONS_MAX];
};

vmm_status vmm_periodic_create(struct vmm_sched *sched)
{
	if (!sched->caps->source_count)
		return VMM_OK;
	sched->periodic = vmm_calloc(1, sizeof(*sched->periodic));
	return sched->periodic ? VMM_OK : VMM_NO_MEMORY;
}

uint32_t vmm_periodic_target_count(const struct vmm_adapter *adapter)
{
	return adapter->sched->caps->source_count;
}

/* The fence has ended. Sync lock held. */
static void on_fence_ended(struct vmm_sync_periodic_source *sync)
{
	struct notification *notification = vmm_container_of(sync, struct notification, sync);

	atomic_store(&notification->fence_ended, true);
	atomic_fetch_add(&notification->sched->periodic->ended_count, 1);
	vmm_worker_wake(notification->sched);
}

static struct notification *take_slot(struct vmm_sched *sched)
{
	struct vmm_periodic *periodic = sched->periodic;

	for (uint32_t i = 0; i < NOTIFICATIONS_MAX; i++) {
		bool taken = false;

		if (!atomic_compare_exchange_strong(&periodic->taken[i], &taken, true))
			continue;
		struct notification *notification = &periodic->notification[i];
		notification->sched = sched;
		/*
		 * Interrupt counts of the last owner may still be on their way
		 * (vmm_periodic_dispatch).
		 */
		vmm_sync_lock(sched->adapter->world);
		notification->sync = (struct vmm_sync_periodic_source){.ended = on_fence_ended};
		vmm_sync_unlock(sched->adapter->world);
		atomic_store(&notification->counted, 0);
		atomic_store(&notification->fence_ended, false);
		return notification;
	}
	return NULL;
}

static void free_slot(struct notification *notification)
{
	struct vmm_periodic *periodic = notification->sched->periodic;

	atomic_store(&notification->id, 0);
	atomic_store(&periodic->taken[notification - periodic->notification], false);
}

vmm_status vmm_periodic_begin(struct vmm_adapter *adapter, uint32_t target, uint64_t time_100ns,
			      struct vmm_sync_periodic_source **result)
{
	struct vmm_sched *sched = adapter->sched;
	struct notification *notification = take_slot(sched);

	if (vmm_unlikely(!notification)) {
		/* The worker may not have destroyed the ended ones yet. */
		vmm_periodic_work(adapter);
		notification = take_slot(sched);
	}
	if (!notification)
		return VMM_NO_MEMORY;
	uint32_t id = ++notification->uses * NOTIFICATIONS_MAX +
		      (uint32_t)(notification - sched->periodic->notification);
	atomic_store(&notification->target, target);
	atomic_store(&notification->id, id); /* the first interrupt may come during the DDI call */
	NTSTATUS status = vmm_port_create_periodic(adapter->port, target, time_100ns, id,
						   &notification->handle);
	if (NT_SUCCESS(status))
		*result = &notification->sync;
	else
		free_slot(notification);
	return status;
}

/* ---- interrupt and DPC ---- */

void vmm_periodic_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	uint32_t id = data->PeriodicMonitoredFenceSignaled.NotificationID;
	uint32_t target = data->PeriodicMonitoredFenceSignaled.VidPnTargetId;
	struct notification *notification = &sched->periodic->notification[id % NOTIFICATIONS_MAX];

	if (id && atomic_load(&notification->id) == id &&
	    atomic_load(&notification->target) == target) {
		atomic_fetch_add(&notification->counted, 1);
		atomic_store(&sched->periodic->pending, true);
		return;
	}
	vmm_finding(sched->adapter->observe, "PMF-07", 0, 0,
		    "interrupt 14 of target %u with NotificationID 0x%x: there is no such "
		    "notification",
		    target, id);
}

void vmm_periodic_dispatch(struct vmm_sched *sched)
{
	struct vmm_periodic *periodic = sched->periodic;

	vmm_assert(periodic);
	if (vmm_likely(!atomic_load(&periodic->pending)))
		return;
	/* cleared before the scan: a later interrupt sets it again */
	atomic_store(&periodic->pending, false);
	for (uint32_t i = 0; i < NOTIFICATIONS_MAX; i++) {
		struct notification *notification = &periodic->notification[i];

		if (!atomic_load_explicit(&notification->counted, memory_order_relaxed))
			continue;
		uint32_t count = atomic_exchange(&notification->counted, 0);
		if (count)
			vmm_sync_signal_periodic(sched->adapter->world, &notification->sync, count);
	}
}

/* ---- the end ---- */

/*
 * Takes the submit lock: halt_preparation (power.c) waits for that lock to know that the worker
 * makes no more of these calls.
 */
void vmm_periodic_work(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	struct vmm_periodic *periodic = sched->periodic;

	if (vmm_likely(!periodic || !atomic_load(&periodic->ended_count)))
		return;
	vmm_submit_lock(adapter);
	for (uint32_t i = 0; i < NOTIFICATIONS_MAX && !atomic_load(&sched->halted); i++) {
		struct notification *notification = &periodic->notification[i];

		if (!atomic_exchange(&notification->fence_ended, false))
			continue;
		atomic_fetch_sub(&periodic->ended_count, 1);
		vmm_port_destroy_periodic(adapter->port, notification->handle);
		free_slot(notification);
	}
	vmm_submit_unlock(adapter);
}

void vmm_periodic_stop(struct vmm_sched *sched)
{
	struct vmm_periodic *periodic = sched->periodic;

	for (uint32_t i = 0; periodic && i < NOTIFICATIONS_MAX; i++) {
		struct notification *notification = &periodic->notification[i];

		if (!atomic_load(&notification->id))
			continue;
		vmm_sync_end_periodic_source(sched->adapter->world, &notification->sync);
		vmm_port_destroy_periodic(sched->adapter->port, notification->handle);
		free_slot(notification);
	}
}
