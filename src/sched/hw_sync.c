/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals in hardware queues (SYN-34, SYN-35): packets in the queue's own order, which never reach the miniport. A wait
 * holds back what is behind it until its values are there; a signal is reached when the queue's commands before it are complete, and one
 * of several queues lands when all of them have reached it. The objects and their checks are those of a context's queue (sync/packet.h).
 */
#include "sched/hw_private.h"

enum { SYNC_NEW, SYNC_BEGUN, SYNC_TOLD, SYNC_ABANDONED };

struct vmm_hw_sync {
	struct vmm_sync_packet packet;
	struct vmm_sched *sched;
	_Atomic uint32_t state; /* of a wait */
	uint32_t left;          /* queues that have not reached a signal; paging lock */
	bool dropped;           /* one of them never will */
};

static void free_sync(struct vmm_hw_sync *sync)
{
	vmm_sync_packet_clear(&sync->packet);
	vmm_sync_packet_free(&sync->packet);
	vmm_free(sync);
}

/* On whatever thread. Whoever dropped it meanwhile left it to us. */
static void told(struct vmm_sync_wait *wait)
{
	struct vmm_hw_sync *sync = vmm_container_of(wait, struct vmm_hw_sync, packet.wait);
	struct vmm_sched *sched = sync->sched;

	if (atomic_exchange(&sync->state, SYNC_TOLD) == SYNC_ABANDONED)
		free_sync(sync);
	else
		vmm_worker_wake(sched);
}

static bool wait_is_over(struct vmm_hw_sync *sync)
{
	uint32_t state = atomic_load(&sync->state);

	if (state != SYNC_NEW)
		return state == SYNC_TOLD;
	atomic_store(&sync->state, SYNC_BEGUN);
	return vmm_sync_packet_begin(&sync->packet, 0);
}

/* One more of its queues is there, or never will be. */
static void leave(struct vmm_hw_sync *sync, bool dropped)
{
	sync->dropped |= dropped;
	if (--sync->left)
		return;
	if (!sync->dropped) /* TDRS-11: what a lost queue was to reach is not signalled */
		vmm_sync_packet_signal(&sync->packet);
	free_sync(sync);
}

bool vmm_hw_sync_passed(struct vmm_hw_packet *packet)
{
	struct vmm_hw_sync *sync = packet->sync;

	if (sync->packet.signal) {
		bool early = sync->packet.flags & VMM_SYNC_SIGNAL_AT_SUBMISSION;

		if (!early && packet->queue->running_count)
			return false;
		leave(sync, false);
	} else {
		if (!wait_is_over(sync))
			return false;
		free_sync(sync);
	}
	packet->sync = NULL;
	return true;
}

bool vmm_hw_sync_holds(const struct vmm_hw_packet *packet)
{
	return packet->sync && !packet->sync->packet.signal &&
	       atomic_load(&packet->sync->state) == SYNC_BEGUN;
}

void vmm_hw_sync_drop(struct vmm_hw_packet *packet)
{
	struct vmm_hw_sync *sync = packet->sync;

	packet->sync = NULL;
	if (sync->packet.signal) {
		leave(sync, true);
		return;
	}
	if (atomic_load(&sync->state) == SYNC_BEGUN && !vmm_sync_packet_withdraw(&sync->packet) &&
	    atomic_exchange(&sync->state, SYNC_ABANDONED) != SYNC_TOLD)
		return; /* `told` is on its way */
	free_sync(sync);
}

/* ---- the calls ---- */

static NTSTATUS check(const struct vmm_device *device, const struct vmm_hw_sync_request *request)
{
	struct vmm_observe *observe = device->adapter->observe;

	if (!request->queue_count || request->queue_count > VMM_HW_BROADCAST_MAX ||
	    !request->count || request->count > VMM_HW_OBJECTS_MAX) {
		vmm_finding(observe, "SYN-34", device->process->id, 0,
			    "%s on hardware queues: %u queues, which must be 1 to %u, %u objects, "
			    "which must be 1 to %u",
			    request->signal ? "signal" : "wait", request->queue_count,
			    VMM_HW_BROADCAST_MAX, request->count, VMM_HW_OBJECTS_MAX);
		return STATUS_INVALID_PARAMETER;
	}
	if (request->flags & VMM_SYNC_ENQUEUE_CPU_EVENT) {
		vmm_finding(observe, "SYN-34", device->process->id, 0,
			    "signal on hardware queues: flags 0x%x: EnqueueCpuEvent has no event "
			    "there",
			    request->flags);
		return STATUS_INVALID_PARAMETER;
	}
	if (vmm_sync_values_of(device->process, request->objects[0]) == VMM_SYNC_VALUES_ARRAY)
		return STATUS_SUCCESS;
	vmm_finding(observe, "SYN-34", device->process->id, request->objects[0],
		    "%s on hardware queues: 0x%08x is not a live monitored fence",
		    request->signal ? "signal" : "wait", request->objects[0]);
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS make(struct vmm_device *device, const struct vmm_hw_sync_request *request,
		     struct vmm_hw_sync **result)
{
	const struct vmm_sync_packet_request fill = {
		.signal = request->signal,
		.form = VMM_SYNC_FORM_GPU_2,
		.handles = request->objects,
		.values = request->values,
		.count = request->count,
		.flags = request->flags,
		.owner_bytes = sizeof(struct vmm_hw_sync),
	};
	struct vmm_hw_sync *sync = vmm_calloc(1, sizeof(*sync));

	if (!sync)
		return STATUS_NO_MEMORY;
	sync->sched = device->adapter->sched;
	vmm_status status = vmm_sync_packet_fill(&sync->packet, device, NULL, &fill);
	if (!vmm_ok(status)) {
		vmm_sync_packet_free(&sync->packet);
		vmm_free(sync);
		return status;
	}
	sync->packet.wait.tell = told;
	sync->packet.wait.tellers = &sync->sched->tellers;
	*result = sync;
	return STATUS_SUCCESS;
}

struct targets {
	struct vmm_hw_queue *queue[VMM_HW_BROADCAST_MAX];
	struct vmm_hw_packet *packet[VMM_HW_BROADCAST_MAX];
	uint32_t count;
};

/* SYN-35: of several, those that take no part are left out. Paging lock held. */
static NTSTATUS find_targets(struct vmm_device *device, const struct vmm_hw_sync_request *request,
			     struct targets *t)
{
	for (uint32_t i = 0; i < request->queue_count; i++) {
		struct vmm_hw_queue *queue = vmm_hw_find_queue_locked(device, request->queues[i]);

		if (!queue)
			return STATUS_INVALID_PARAMETER;
		if (request->queue_count == 1 || !queue->flags.NoBroadcastSignal)
			t->queue[t->count++] = queue;
	}
	return STATUS_SUCCESS;
}

/* All or nothing. */
static NTSTATUS enqueue(struct vmm_hw_sync *sync, struct targets *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		t->packet[i] = vmm_hw_take_packet(t->queue[i]);
		if (t->packet[i])
			continue;
		while (i--)
			vmm_hw_put_packet(t->packet[i]);
		return STATUS_NO_MEMORY;
	}
	sync->left = t->count;
	for (uint32_t i = 0; i < t->count; i++) {
		t->packet[i]->sync = sync;
		vmm_list_push_back(&t->queue[i]->waiting, &t->packet[i]->link);
		atomic_fetch_add(&sync->sched->hw->waiting, 1);
	}
	return STATUS_SUCCESS;
}

NTSTATUS vmm_hw_submit_sync(struct vmm_device *device, const struct vmm_hw_sync_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_hw_sync *sync = NULL;
	struct targets targets = {.count = 0};
	NTSTATUS status = check(device, request);

	if (NT_SUCCESS(status))
		status = make(device, request, &sync);
	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(adapter);
	status = find_targets(device, request, &targets);
	if (NT_SUCCESS(status) && atomic_load(&device->error) != VMM_DEVICE_OK)
		status = STATUS_DEVICE_REMOVED; /* meanwhile (TDR-07) */
	if (NT_SUCCESS(status))
		status = enqueue(sync, &targets);
	if (!NT_SUCCESS(status)) {
		free_sync(sync);
	} else if (!targets.count) { /* nobody has to get there */
		sync->left = 1;
		leave(sync, false);
	} else {
		vmm_hw_pump_locked(adapter->sched);
	}
	bool left = NT_SUCCESS(status) && atomic_load(&adapter->sched->hw->waiting);
	vmm_paging_unlock(adapter);
	if (left)
		vmm_worker_wake(adapter->sched);
	return status;
}
