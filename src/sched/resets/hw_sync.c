/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals in hardware queues (SYN-34, SYN-35). They are packets of the queue that never
 * reach the miniport. A wait blocks the packets behind it until its fences have their values. A
 * queue reaches a signal when the commands before it are complete, or with SignalAtSubmission when
 * the miniport has them. A signal in several queues is
 * done when all of them have reached it. Objects and checks are the same as in a context's queue
 * (sync/packet.h).
 */
#include "sched/resets/hw_private.h"
#include "sched/resets/resets.h"

enum { SYNC_NEW, SYNC_BEGUN, SYNC_COMPLETED, SYNC_ABANDONED };

struct vmm_hw_sync {
	struct vmm_sync_packet packet;
	struct vmm_sched *sched;
	_Atomic uint32_t state; /* of a wait */
	uint32_t left;          /* queues that have not reached a signal; paging lock */
	bool dropped;           /* one of the queues will never reach it */
};

static void free_sync(struct vmm_hw_sync *sync)
{
	vmm_sync_packet_clear(&sync->packet);
	vmm_sync_packet_free(&sync->packet);
	vmm_free(sync);
}

/* Completion callback of the wait, on any thread. An abandoned wait is freed here. */
static void wait_completed(struct vmm_sync_wait *wait)
{
	struct vmm_hw_sync *sync = vmm_container_of(wait, struct vmm_hw_sync, packet.wait);
	struct vmm_sched *sched = sync->sched;

	if (atomic_exchange(&sync->state, SYNC_COMPLETED) == SYNC_ABANDONED)
		free_sync(sync);
	else
		vmm_worker_wake(sched);
}

static bool wait_is_over(struct vmm_hw_sync *sync)
{
	uint32_t state = atomic_load(&sync->state);

	if (state != SYNC_NEW)
		return state == SYNC_COMPLETED;
	atomic_store(&sync->state, SYNC_BEGUN);
	return vmm_sync_packet_begin(&sync->packet, 0);
}

/*
 * One of the signal's queues has reached it, or (dropped) never will. The last one signals, unless
 * one was dropped.
 */
static void reach(struct vmm_hw_sync *sync, bool dropped)
{
	sync->dropped |= dropped;
	if (--sync->left)
		return;
	if (!sync->dropped) /* TDRS-11: a signal that a lost queue was to reach is dropped */
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
		reach(sync, false);
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
		reach(sync, true);
		return;
	}
	if (atomic_load(&sync->state) == SYNC_BEGUN && !vmm_sync_packet_withdraw(&sync->packet) &&
	    atomic_exchange(&sync->state, SYNC_ABANDONED) != SYNC_COMPLETED)
		return; /* wait_completed is about to run, and frees it */
	free_sync(sync);
}

void vmm_hw_drop_waiting(struct vmm_hw_queue *queue)
{
	struct vmm_sched *sched = queue->context->device->adapter->sched;
	uint32_t presents = 0;

	vmm_assert_held(&queue->context->device->adapter->paging_lock);
	if (sched->hw->starving == queue->context->device)
		sched->hw->starving = NULL;
	while (!vmm_list_empty(&queue->waiting)) {
		struct vmm_hw_packet *packet = vmm_hw_first(&queue->waiting);

		if (packet->sync)
			vmm_hw_sync_drop(packet);
		vmm_state_lock(sched->adapter);
		presents += packet->present;
		vmm_list_remove(&packet->link);
		vmm_hw_put_packet_locked(packet);
		vmm_hw_release_locked(packet);
		vmm_state_unlock(sched->adapter);
		atomic_fetch_sub(&sched->hw->waiting, 1);
	}
	if (presents) /* other presents may wait for the limit (SUB-17) */
		vmm_progress_signal(sched->adapter);
}

/* ---- queueing ---- */

static NTSTATUS check(const struct vmm_device *device, const struct vmm_hw_sync_request *request)
{
	struct vmm_observe *observe = device->adapter->observe;

	if (!request->queue_count || request->queue_count > VMM_HW_BROADCAST_MAX ||
	    !request->count || request->count > VMM_HW_OBJECTS_MAX)
		return vmm_refuse_rule(
			observe, STATUS_INVALID_PARAMETER, "SYN-34", device->process->id, 0,
			"%s on hardware queues: %u queues, which must be 1 to %u, %u objects, "
			"which must be 1 to %u",
			request->signal ? "signal" : "wait", request->queue_count,
			VMM_HW_BROADCAST_MAX, request->count, VMM_HW_OBJECTS_MAX);
	if (request->flags & VMM_SYNC_ENQUEUE_CPU_EVENT)
		return vmm_refuse_rule(
			observe, STATUS_INVALID_PARAMETER, "SYN-34", device->process->id, 0,
			"signal on hardware queues: flags 0x%x: EnqueueCpuEvent is not allowed "
			"here",
			request->flags);
	if (vmm_sync_values_of(device->process, request->objects[0]) == VMM_SYNC_VALUES_ARRAY)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(observe, STATUS_INVALID_PARAMETER, "SYN-34", device->process->id,
			       request->objects[0],
			       "%s on hardware queues: 0x%08x is not a live monitored fence",
			       request->signal ? "signal" : "wait", request->objects[0]);
}

static NTSTATUS create_sync(struct vmm_device *device, const struct vmm_hw_sync_request *request,
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
	sync->packet.wait.on_end = wait_completed;
	sync->packet.wait.running_callbacks = &sync->sched->callbacks;
	*result = sync;
	return STATUS_SUCCESS;
}

struct targets {
	struct vmm_hw_queue *queue[VMM_HW_BROADCAST_MAX];
	struct vmm_hw_packet *packet[VMM_HW_BROADCAST_MAX];
	uint32_t count;
};

/* SYN-35: of several queues, those with NoBroadcastSignal are left out. Paging lock held. */
static NTSTATUS find_targets(struct vmm_device *device, const struct vmm_hw_sync_request *request,
			     struct targets *t) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&device->adapter->paging_lock);
	for (uint32_t i = 0; i < request->queue_count; i++) {
		struct vmm_hw_queue *queue = vmm_hw_find_queue_locked(device, request->queues[i]);

		if (!queue)
			return STATUS_INVALID_PARAMETER;
		if (request->queue_count == 1 || !queue->flags.NoBroadcastSignal)
			t->queue[t->count++] = queue;
	}
	return STATUS_SUCCESS;
}

/* Queues the wait or signal in all target queues or, without memory, in none. */
static NTSTATUS enqueue(struct vmm_hw_sync *sync, struct targets *t)
	VMM_REQUIRES(vmm_paging_lock_class)
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

NTSTATUS vmm_hw_sync_create(struct vmm_device *device, const struct vmm_hw_sync_request *request,
			    struct vmm_hw_sync **sync)
{
	NTSTATUS status = check(device, request);

	return NT_SUCCESS(status) ? create_sync(device, request, sync) : status;
}

NTSTATUS vmm_hw_sync_enqueue_locked(struct vmm_device *device,
				    const struct vmm_hw_sync_request *request,
				    struct vmm_hw_sync *sync, bool *queued)
{
	struct targets targets = {.count = 0};

	vmm_assert_held(&device->adapter->paging_lock);
	NTSTATUS status = find_targets(device, request, &targets);
	*queued = false;
	if (NT_SUCCESS(status) && atomic_load(&device->error) != VMM_DEVICE_OK)
		status = STATUS_DEVICE_REMOVED; /* lost since the call began (TDR-07) */
	if (NT_SUCCESS(status))
		status = enqueue(sync, &targets);
	if (!NT_SUCCESS(status)) {
		free_sync(sync);
	} else if (!targets.count) { /* no queue has to reach it */
		sync->left = 1;
		reach(sync, false);
	} else {
		*queued = true;
	}
	return status;
}
