/* SPDX-License-Identifier: MIT */
/*
 * The beats of periodic fences (PMF-03, PMF-07): the miniport's notifications before the vertical syncs of a target. The interrupt counts, the
 * DPC passes on. A beat whose fence has gone is ended by the worker, because the miniport is to be told at PASSIVE_LEVEL and the last
 * reference may go anywhere.
 */
#include "sched/sched_private.h"

#define BEATS 64u /* of an adapter at once */

struct beat {
	struct vmm_sync_beat sync;
	struct vmm_sched *sched;
	_Atomic uint32_t
		id;    /* of the notification: index, and how often the slot was used; 0: free */
	uint32_t uses; /* its owner's */
	_Atomic uint32_t target;  /* an interrupt that comes late looks at whose it is now */
	_Atomic uint32_t counted; /* interrupts that the DPC has not seen */
	_Atomic bool over;        /* the worker ends it */
	HANDLE notification;
};

struct vmm_periodic {
	_Atomic uint32_t due; /* beats that the worker ends */
	_Atomic bool beaten;  /* some have been counted since the DPC looked */
	_Atomic bool taken[BEATS];
	struct beat beat[BEATS];
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

/* Sync lock held. */
static void ended(struct vmm_sync_beat *sync)
{
	struct beat *beat = vmm_container_of(sync, struct beat, sync);

	atomic_store(&beat->over, true);
	atomic_fetch_add(&beat->sched->periodic->due, 1);
	vmm_worker_wake(beat->sched);
}

static struct beat *take(struct vmm_sched *sched)
{
	struct vmm_periodic *periodic = sched->periodic;

	for (uint32_t i = 0; i < BEATS; i++) {
		bool taken = false;

		if (!atomic_compare_exchange_strong(&periodic->taken[i], &taken, true))
			continue;
		struct beat *beat = &periodic->beat[i];
		beat->sched = sched;
		/* Counts of its last owner may still be on their way (pass_on). */
		vmm_os_mutex_lock(&sched->adapter->world->sync_lock);
		beat->sync = (struct vmm_sync_beat){.ended = ended};
		vmm_os_mutex_unlock(&sched->adapter->world->sync_lock);
		atomic_store(&beat->counted, 0);
		atomic_store(&beat->over, false);
		return beat;
	}
	return NULL;
}

static void give(struct beat *beat)
{
	struct vmm_periodic *periodic = beat->sched->periodic;

	atomic_store(&beat->id, 0);
	atomic_store(&periodic->taken[beat - periodic->beat], false);
}

vmm_status vmm_periodic_begin(struct vmm_adapter *adapter, uint32_t target, uint64_t time_100ns,
			      struct vmm_sync_beat **result)
{
	struct vmm_sched *sched = adapter->sched;
	struct beat *beat = take(sched);

	if (vmm_unlikely(!beat)) { /* the worker may not have got to those that are over */
		vmm_periodic_work(adapter);
		beat = take(sched);
	}
	if (!beat)
		return VMM_NO_MEMORY;
	uint32_t id = ++beat->uses * BEATS + (uint32_t)(beat - sched->periodic->beat);
	atomic_store(&beat->target, target);
	atomic_store(&beat->id, id); /* the first may come inside the call */
	NTSTATUS status = vmm_port_create_periodic(adapter->port, target, time_100ns, id,
						   &beat->notification);
	if (NT_SUCCESS(status))
		*result = &beat->sync;
	else
		give(beat);
	return status;
}

/* ---- interrupt and DPC ---- */

void vmm_periodic_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	uint32_t id = data->PeriodicMonitoredFenceSignaled.NotificationID;
	uint32_t target = data->PeriodicMonitoredFenceSignaled.VidPnTargetId;
	struct beat *beat = &sched->periodic->beat[id % BEATS];

	if (id && atomic_load(&beat->id) == id && atomic_load(&beat->target) == target) {
		atomic_fetch_add(&beat->counted, 1);
		atomic_store(&sched->periodic->beaten, true);
		return;
	}
	vmm_finding(sched->adapter->observe, "PMF-07", 0, 0,
		    "interrupt 14 of target %u with NotificationID 0x%x: there is no such "
		    "notification",
		    target, id);
}

void vmm_periodic_pass_on(struct vmm_sched *sched)
{
	struct vmm_periodic *periodic = sched->periodic;

	if (vmm_likely(!periodic || !atomic_load(&periodic->beaten)))
		return;
	atomic_store(&periodic->beaten, false); /* before looking: what comes now says so again */
	for (uint32_t i = 0; i < BEATS; i++) {
		struct beat *beat = &periodic->beat[i];

		if (!atomic_load_explicit(&beat->counted, memory_order_relaxed))
			continue;
		uint32_t count = atomic_exchange(&beat->counted, 0);
		if (count)
			vmm_sync_give_beat(sched->adapter->world, &beat->sync, count);
	}
}

/* ---- the end ---- */

/* With the submit lock, as whoever changes the power state asks for. */
void vmm_periodic_work(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	struct vmm_periodic *periodic = sched->periodic;

	if (vmm_likely(!periodic || !atomic_load(&periodic->due)))
		return;
	vmm_os_mutex_lock(&adapter->submit_lock);
	for (uint32_t i = 0; i < BEATS && !atomic_load(&sched->halted); i++) {
		struct beat *beat = &periodic->beat[i];

		if (!atomic_exchange(&beat->over, false))
			continue;
		atomic_fetch_sub(&periodic->due, 1);
		vmm_port_destroy_periodic(adapter->port, beat->notification);
		give(beat);
	}
	vmm_os_mutex_unlock(&adapter->submit_lock);
}

void vmm_periodic_stop(struct vmm_sched *sched)
{
	struct vmm_periodic *periodic = sched->periodic;

	for (uint32_t i = 0; periodic && i < BEATS; i++) {
		struct beat *beat = &periodic->beat[i];

		if (!atomic_load(&beat->id))
			continue;
		vmm_sync_end_beat(sched->adapter->world, &beat->sync);
		vmm_port_destroy_periodic(sched->adapter->port, beat->notification);
		give(beat);
	}
}
