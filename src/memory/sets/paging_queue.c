/* SPDX-License-Identifier: MIT */
/*
 * Paging queues (RES-04). A queue holds the residency operations of a device that could not be
 * completed at once, in the order of the calls. The value of its monitored fence is the number of
 * the last complete operation. The worker continues the operations whenever the GPU has completed a
 * packet or memory has been freed; queues of a higher priority come first.
 *
 * The fence is set only under the paging lock.
 */
#include "memory/sets/sets.h"
#include "memory/state/state.h"
#include "object/stopped.h"
#include "sync/sync.h"

/*
 * An operation that waits for the GPU is overtaken by this many submissions at most: a client that
 * always has work would use its memory forever.
 */
#define OVERTAKEN_AT_MOST 64u

struct vmm_paging_queue {
	struct vmm_device *device;
	struct vmm_list link;        /* in memory->paging_queues */
	struct vmm_list device_link; /* in device->paging_queues */
	struct vmm_list operations;  /* oldest first */
	int32_t priority;
	uint32_t handle, fence_handle;
	uint64_t last_value;
	struct vmm_paging_operation *spare; /* one without refs, for the next call; or NULL */
	struct vmm_sync *fence; /* clients can wait for it, but not signal it (MFN-35) */
};

/* One call. It is complete when all refs are placed and paging packet `sequence` is complete. */
struct vmm_paging_operation {
	struct vmm_list link;
	uint64_t value;
	uint64_t submission; /* adapter->submissions when it was queued */
	bool placed;
	bool awaits_gpu;        /* the last attempt found memory, or buffers, that the GPU uses */
	uint64_t turn;          /* of those that wait for the GPU the lowest is next */
	bool awaits_buffers;    /* it waits until no DMA buffer is pinned */
	bool holds_back;        /* it has held a packet back */
	uint64_t sequence;      /* valid once placed */
	uint64_t unlock_ticket; /* it waits until other processes unlock; 0: it does not */
	uint32_t count;
	struct vmm_ref *refs[]; /* NULL: the ref has ended */
};

static void free_queue(struct vmm_paging_queue *queue)
{
	if (queue->fence)
		vmm_sync_end_owned(queue->fence);
	vmm_free(queue->spare);
	vmm_free(queue);
}

/* Inserts the queue after the last one with the same or a higher priority. */
static void insert_by_priority(struct vmm_memory *memory, struct vmm_paging_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *at;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (at = memory->paging_queues.prev; at != &memory->paging_queues; at = at->prev)
		if (vmm_container_of(at, struct vmm_paging_queue, link)->priority >=
		    queue->priority)
			break;
	vmm_list_insert_after(at, &queue->link);
}

static NTSTATUS publish(struct vmm_paging_queue *queue)
{
	struct vmm_device *device = queue->device;
	struct vmm_handle_table *handles = &device->process->handles;

	vmm_paging_lock(device->adapter);
	if (vmm_device_lost(device)) { /* during the wait for the lock (TDR-07) */
		vmm_paging_commit(device->adapter);
		return STATUS_DEVICE_REMOVED;
	}
	vmm_process_lock(device->process);
	queue->handle = vmm_handle_create(handles, VMM_HANDLE_PAGING_QUEUE, queue);
	if (queue->handle)
		queue->fence_handle = vmm_sync_publish_owned_locked(queue->fence);
	if (queue->handle && !queue->fence_handle)
		vmm_handle_destroy(handles, queue->handle);
	vmm_process_unlock(device->process);
	if (queue->fence_handle) {
		insert_by_priority(device->adapter->memory, queue);
		vmm_list_push_back(&device->paging_queues, &queue->device_link);
	}
	vmm_paging_commit(device->adapter);
	return queue->fence_handle ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS check_request(struct vmm_device *device,
			      const struct vmm_paging_queue_request *request)
{
	NTSTATUS status =
		vmm_model_check_call(device->adapter, device->process, 0, "create paging queue",
				     ", where allocation lists decide residency");

	if (!NT_SUCCESS(status) ||
	    (request->priority >= -1 && request->priority <= 1 && !request->physical_adapter))
		return status;
	return vmm_refuse_rule(
		device->adapter->observe, STATUS_INVALID_PARAMETER, "RES-04", device->process->id,
		0,
		"create paging queue: priority %d, physical adapter %u: the priority must be "
		"-1, 0 or 1, and the physical adapter 0 (the adapter has no link)",
		request->priority, request->physical_adapter);
}

NTSTATUS vmm_paging_queue_create(struct vmm_device *device,
				 struct vmm_paging_queue_request *request)
{
	struct vmm_paging_queue *queue;

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check_request(device, request);
	if (!NT_SUCCESS(status))
		return status;
	queue = vmm_calloc(1, sizeof(*queue));
	if (!queue)
		return STATUS_NO_MEMORY;
	queue->device = device;
	queue->priority = request->priority;
	vmm_list_init(&queue->operations);
	status = vmm_sync_make_owned(device, false, &queue->fence);
	if (NT_SUCCESS(status))
		status = publish(queue);
	if (!NT_SUCCESS(status)) {
		free_queue(queue);
		return status;
	}
	request->queue = queue->handle;
	request->fence = queue->fence_handle;
	request->fence_address = vmm_sync_address(queue->fence);
	return STATUS_SUCCESS;
}

/* ---- operations ---- */

struct vmm_paging_queue *vmm_paging_queue_find_locked(struct vmm_device *device, uint32_t handle)
{
	struct vmm_paging_queue *queue =
		vmm_handle_lookup(&device->process->handles, handle, VMM_HANDLE_PAGING_QUEUE);

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_assert_held(&device->process->lock);
	return queue && queue->device == device ? queue : NULL;
}

void *vmm_paging_queue_device(struct vmm_process *process, uint32_t handle)
{
	void *hazard = NULL;

	vmm_process_lock(process);
	const struct vmm_paging_queue *queue =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_PAGING_QUEUE);
	hazard = queue ? queue->device->hazard : vmm_stopped_device_find_locked(process, handle);
	if (!hazard)
		vmm_finding(process->world->observe, "HND-07", process->id, handle,
			    "0x%08x is not a live paging queue handle of process %u (%s)", handle,
			    process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_PAGING_QUEUE));
	vmm_process_unlock(process);
	return hazard;
}

vmm_status vmm_paging_queue_add(struct vmm_paging_queue *queue, struct vmm_ref *const *refs,
				uint32_t count, uint64_t *value)
{
	struct vmm_paging_operation *operation = vmm_paging_operation_create(count);

	vmm_assert_held(&queue->device->adapter->paging_lock);
	if (!operation)
		return VMM_NO_MEMORY;
	*value = vmm_paging_operation_add(queue, operation, refs, count);
	return VMM_OK;
}

struct vmm_paging_operation *vmm_paging_operation_create(uint32_t count)
{
	return vmm_calloc(1,
			  sizeof(struct vmm_paging_operation) + count * sizeof(struct vmm_ref *));
}

/*
 * Queues the operation. Returns the value of the queue's fence with which it is complete. (MFN-36)
 */
uint64_t vmm_paging_operation_add(struct vmm_paging_queue *queue,
				  struct vmm_paging_operation *operation,
				  struct vmm_ref *const *refs, uint32_t count)
{
	vmm_assert_held(&queue->device->adapter->paging_lock);
	for (uint32_t i = 0; i < count; i++)
		operation->refs[i] = refs[i];
	operation->count = count;
	operation->value = ++queue->last_value;
	operation->submission = atomic_load(&queue->device->adapter->submissions);
	vmm_list_push_back(&queue->operations, &operation->link);
	atomic_fetch_add(&queue->device->adapter->paging_work, 1);
	return operation->value;
}

void vmm_paging_operation_free(struct vmm_paging_operation *operation)
{
	vmm_free(operation);
}

struct vmm_paging_operation *vmm_paging_operation_take(struct vmm_paging_queue *queue)
{
	struct vmm_paging_operation *spare = queue->spare;

	vmm_assert_held(&queue->device->adapter->paging_lock);
	if (!spare)
		return vmm_paging_operation_create(0);
	queue->spare = NULL;
	return spare;
}

void vmm_paging_operation_give_back(struct vmm_paging_queue *queue,
				    struct vmm_paging_operation *operation)
{
	vmm_assert_held(&queue->device->adapter->paging_lock);
	if (queue->spare)
		vmm_free(operation);
	else
		queue->spare = operation;
}

uint64_t vmm_paging_operation_add_paged(struct vmm_paging_queue *queue,
					struct vmm_paging_operation *operation, uint64_t sequence)
{
	vmm_assert_held(&queue->device->adapter->paging_lock);
	operation->placed = true;
	operation->sequence = sequence;
	return vmm_paging_operation_add(queue, operation, NULL, 0);
}

/* The queue's first operation that is not placed yet, or NULL. */
static struct vmm_paging_operation *first_unplaced(const struct vmm_paging_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_list *link;

	vmm_assert_held(&queue->device->adapter->paging_lock);
	vmm_list_for_each (link, &queue->operations) {
		struct vmm_paging_operation *operation =
			vmm_container_of(link, struct vmm_paging_operation, link);

		if (!operation->placed)
			return operation;
	}
	return NULL;
}

/* Is the allocation still on the list? The client may have evicted it since the call. */
static bool is_wanted(const struct vmm_ref *ref)
{
	return ref && ref->residency_count;
}

static bool is_held_up(const struct vmm_paging_operation *operation)
{
	for (uint32_t i = 0; i < operation->count; i++)
		if (is_wanted(operation->refs[i]) && operation->refs[i]->instance->held)
			return true;
	return false;
}

VMM_COLD static void report_hold(const struct vmm_paging_queue *queue,
				 struct vmm_paging_operation *operation)
{
	if (operation->holds_back)
		return;
	operation->holds_back = true;
	vmm_reason(queue->device->adapter->observe, VMM_PENDING, queue->device->process->id,
		   queue->handle,
		   "Q-495: operation %llu of paging queue 0x%08x waits for memory that the GPU "
		   "uses, and %u later submissions have overtaken it: further ones wait until its "
		   "allocations are placed",
		   (unsigned long long)operation->value, queue->handle, OVERTAKEN_AT_MOST);
}

/*
 * The operation waits only for packets that are prepared, and these complete whatever else happens.
 * So the wait of the packet that is held back ends. An operation that waits for an unlock holds
 * back no packet: the thread that will unlock may wait for that packet.
 */
bool vmm_paging_holds_back(const struct vmm_adapter *adapter, uint64_t submission)
{
	const struct vmm_list *link;

	vmm_assert_held(&adapter->paging_lock);
	if (atomic_load(&adapter->closed) || atomic_load(&adapter->removed))
		return false;
	vmm_list_for_each (link, &adapter->memory->paging_queues) {
		const struct vmm_paging_queue *queue =
			vmm_container_of(link, struct vmm_paging_queue, link);
		struct vmm_paging_operation *operation = first_unplaced(queue);

		if (!operation || !operation->awaits_gpu || is_held_up(operation) ||
		    submission <= operation->submission + OVERTAKEN_AT_MOST)
			continue;
		report_hold(queue, operation);
		return true;
	}
	return false;
}

void vmm_paging_packet_waits(struct vmm_adapter *adapter, bool waits)
{
	vmm_assert_held(&adapter->paging_lock);
	/* Each submission comes here twice: only a change is written. */
	if (vmm_unlikely(adapter->memory->packet_waits != waits))
		adapter->memory->packet_waits = waits;
}

uint64_t vmm_paging_blocked_searches(const struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->paging_lock);
	return adapter->memory->blocked_searches;
}

struct placing {
	struct vmm_device *device;
	const struct vmm_paging_operation *operation;
};

/* Places what the operation needs; what else is on the list of the device stays where it is. */
static vmm_status place_missing(void *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct placing *p = context;
	const struct vmm_paging_operation *operation = p->operation;
	struct vmm_memory *memory = p->device->adapter->memory;
	uint64_t round = vmm_residency_list_round(memory);
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_residency_list_want(p->device, round);
	for (uint32_t i = 0; i < operation->count && status == VMM_OK; i++) {
		struct vmm_ref *ref = operation->refs[i];

		if (!is_wanted(ref) || vmm_residency_list_stays_out(ref->instance))
			continue;
		status = vmm_residency_list_make(memory, ref->instance, round);
	}
	return status;
}

static vmm_status place(struct vmm_memory *memory, struct vmm_paging_queue *queue,
			struct vmm_paging_operation *operation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (is_held_up(operation)) /* the whole operation waits for the unlock (LOCK-48) */
		return VMM_PENDING;
	if (vmm_unlock_is_awaited(memory->adapter, operation->unlock_ticket))
		return VMM_PENDING;
	/*
	 * Nothing is moved meanwhile: the end of that paging would be progress, and each progress
	 * is another attempt.
	 */
	if (operation->awaits_buffers && memory->engine->pins_buffers(memory->adapter))
		return VMM_PENDING;
	operation->awaits_buffers = false;
	vmm_unlock_wait_for(memory, queue->device->process->id);
	struct placing placing = {queue->device, operation};
	vmm_status status = place_missing(&placing);
	if (vmm_unlikely(status == VMM_NO_VIDEO_MEMORY))
		status = vmm_residency_list_make_room(queue->device, &operation->awaits_buffers,
						      place_missing, &placing);
	for (uint32_t i = 0; i < operation->count; i++)
		if (is_wanted(operation->refs[i]))
			operation->sequence =
				vmm_max_u64(operation->sequence,
					    vmm_paging_last_of(operation->refs[i]->instance));
	vmm_unlock_wait_for_none(memory);
	operation->unlock_ticket = 0;
	if (status == VMM_NO_VIDEO_MEMORY && vmm_unlock_would_help(memory->adapter)) {
		operation->unlock_ticket = vmm_unlock_await(memory->adapter);
		return VMM_PENDING;
	}
	return status;
}

/*
 * Reports an operation that failed. It was accepted because the list fits into the segments, but
 * there is no system memory, or what must stay where it is fragments the free space. The operation
 * counts as complete. The next packet of the device tries again and reports its own result.
 */
VMM_COLD static void report_failure(const struct vmm_paging_queue *queue,
				    const struct vmm_paging_operation *operation, vmm_status status)
{
	vmm_reason(queue->device->adapter->observe, status, queue->device->process->id,
		   queue->handle,
		   "RES-03: operation %llu of paging queue 0x%08x could not place one of its %u "
		   "allocations (0x%08x); they are placed before the next submission runs",
		   (unsigned long long)operation->value, queue->handle, operation->count,
		   (unsigned)status);
}

static void place_operations(struct vmm_memory *memory, struct vmm_paging_queue *queue, bool again)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_operation *operation;

	vmm_assert_held(&memory->adapter->paging_lock);
	while ((operation = first_unplaced(queue)) != NULL && (again || !operation->awaits_gpu)) {
		again = false;
		vmm_status status = place(memory, queue, operation);
		operation->awaits_gpu = status == VMM_PENDING && !is_held_up(operation) &&
					!operation->unlock_ticket;
		if (operation->awaits_gpu && !operation->turn)
			operation->turn = ++memory->paging_turns;
		if (status == VMM_PENDING || status == VMM_DEVICE_REMOVED)
			return;
		if (status != VMM_OK)
			report_failure(queue, operation, status);
		memory->adapter->placement_retries = 0;
		operation->placed = true;
	}
}

/* Returns the queue whose first operation waits for the GPU and is next; NULL: there is none. */
static struct vmm_paging_queue *next_in_turn(const struct vmm_memory *memory)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_queue *next = NULL;
	const struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (link, &memory->paging_queues) {
		struct vmm_paging_queue *queue =
			vmm_container_of(link, struct vmm_paging_queue, link);
		const struct vmm_paging_operation *first = first_unplaced(queue);

		if (!first || !first->awaits_gpu)
			continue;
		if (next &&
		    (queue->priority < next->priority || first->turn > first_unplaced(next)->turn))
			continue;
		next = queue;
	}
	return next;
}

/*
 * Tries the operations again that wait for the GPU, in turn. An attempt that must wait may have
 * evicted what another one that waits has paged in, and the end of that paging is progress. If both
 * were tried again at each progress, they would evict each other until the GPU has completed its
 * packets. So there is one that is tried again: the first packet to prepare if that waits, else the
 * operation whose turn it is.
 */
static void place_in_turn(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_queue *queue;

	vmm_assert_held(&memory->adapter->paging_lock);
	while (!memory->packet_waits && (queue = next_in_turn(memory)) != NULL) {
		const struct vmm_paging_operation *tried = first_unplaced(queue);

		place_operations(memory, queue, true);
		/* One that waits for an unlock from here on has no turn any more. */
		if (first_unplaced(queue) == tried && tried->awaits_gpu)
			return;
	}
}

/* Completes an operation. The fence of a lost device keeps its last value. */
static void finish(struct vmm_paging_queue *queue, struct vmm_paging_operation *operation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&queue->device->adapter->paging_lock);
	if (vmm_likely(!vmm_device_lost(queue->device)))
		vmm_sync_set(queue->fence, operation->value);
	if (vmm_unlikely(operation->awaits_gpu)) {
		/* The packets that it held back go on, and it is the next operation's turn. */
		vmm_progress_signal(queue->device->adapter);
		queue->device->adapter->memory->engine->wake(queue->device->adapter);
	}
	vmm_list_remove(&operation->link);
	if (operation->count)
		vmm_free(operation);
	else
		vmm_paging_operation_give_back(queue, operation);
	atomic_fetch_sub(&queue->device->adapter->paging_work, 1);
}

/* Completes finished operations, in order. Returns true if there were any. (RES-04) */
static bool finish_complete(struct vmm_paging_queue *queue) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = queue->device->adapter;
	bool any = false;

	vmm_assert_held(&queue->device->adapter->paging_lock);
	while (!vmm_list_empty(&queue->operations)) {
		struct vmm_paging_operation *operation =
			vmm_container_of(queue->operations.next, struct vmm_paging_operation, link);

		if (!operation->placed ||
		    !vmm_timeline_done(adapter, adapter->paging_timeline, operation->sequence))
			break;
		finish(queue, operation);
		any = true;
	}
	return any;
}

void vmm_paging_work_locked(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;
	struct vmm_list *link;
	bool any = false;

	vmm_assert_held(&adapter->paging_lock);
	/* The miniport refuses operations while the adapter is reset. */
	if (!atomic_load(&adapter->paging_work) || atomic_load(&adapter->closed) ||
	    atomic_load(&adapter->recovering))
		return;
	vmm_residency_list_departures(memory);
	vmm_list_for_each (link, &memory->paging_queues) {
		struct vmm_paging_queue *queue =
			vmm_container_of(link, struct vmm_paging_queue, link);

		place_operations(memory, queue, false);
	}
	place_in_turn(memory);
	vmm_memory_flush_locked(adapter);
	vmm_list_for_each (link, &memory->paging_queues)
		any |= finish_complete(vmm_container_of(link, struct vmm_paging_queue, link));
	if (any)
		vmm_progress_signal(adapter);
}

void vmm_paging_queues_forget_retired(struct vmm_device *device)
{
	struct vmm_list *at, *in;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (at, &device->paging_queues) {
		struct vmm_paging_queue *queue =
			vmm_container_of(at, struct vmm_paging_queue, device_link);

		vmm_list_for_each (in, &queue->operations) {
			struct vmm_paging_operation *operation =
				vmm_container_of(in, struct vmm_paging_operation, link);

			for (uint32_t i = 0; i < operation->count; i++)
				if (operation->refs[i] && operation->refs[i]->retired)
					operation->refs[i] = NULL;
		}
	}
}

/* ---- the end ---- */

/*
 * No operation will be done. Waiting threads return, and a client that polls the fence sees
 * UINT64_MAX. (TDRS-01, TDRS-14)
 */
void vmm_paging_queues_lose(struct vmm_device *device)
{
	struct vmm_list *link;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (link, &device->paging_queues) {
		struct vmm_paging_queue *queue =
			vmm_container_of(link, struct vmm_paging_queue, device_link);

		while (!vmm_list_empty(&queue->operations))
			finish(queue, vmm_container_of(queue->operations.next,
						       struct vmm_paging_operation, link));
		vmm_sync_set(queue->fence, UINT64_MAX);
	}
}

/* Ends the queue with its handles and its fence. */
static void end(struct vmm_paging_queue *queue) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_device *device = queue->device;

	vmm_assert_held(&device->adapter->paging_lock);
	while (!vmm_list_empty(&queue->operations))
		finish(queue,
		       vmm_container_of(queue->operations.next, struct vmm_paging_operation, link));
	vmm_process_lock(device->process);
	vmm_device_handle_destroy_locked(device, queue->handle);
	vmm_process_unlock(device->process);
	vmm_list_remove(&queue->link);
	vmm_list_remove(&queue->device_link);
	free_queue(queue);
}

void vmm_paging_queues_end(struct vmm_device *device)
{
	vmm_assert_held(&device->adapter->paging_lock);
	while (!vmm_list_empty(&device->paging_queues))
		end(vmm_container_of(device->paging_queues.next, struct vmm_paging_queue,
				     device_link));
}

/*
 * May the queue be destroyed? An operation that a CPU lock holds up, and those after it, are not
 * waited for: the client could not unlock during the wait, and another process may never do it.
 */
static bool may_destroy(struct vmm_paging_queue *queue) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&queue->device->adapter->paging_lock);
	if (vmm_list_empty(&queue->operations))
		return true;
	const struct vmm_paging_operation *first =
		vmm_container_of(queue->operations.next, struct vmm_paging_operation, link);
	return !first->placed && (is_held_up(first) || vmm_unlock_is_awaited(queue->device->adapter,
									     first->unlock_ticket));
}

NTSTATUS vmm_paging_queue_destroy(struct vmm_device *device, uint32_t handle)
{
	struct vmm_adapter *adapter = device->adapter;

	vmm_assert(vmm_device_is_valid(device));
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		vmm_process_lock(device->process);
		struct vmm_paging_queue *queue = vmm_paging_queue_find_locked(device, handle);
		vmm_process_unlock(device->process);
		bool idle = queue && (may_destroy(queue) || atomic_load(&adapter->closed));
		if (idle)
			end(queue);
		vmm_paging_commit(adapter);
		if (idle) {
			vmm_progress_signal(adapter);
			return STATUS_SUCCESS;
		}
		if (!queue)
			return vmm_refuse_rule(
				adapter->observe, STATUS_INVALID_PARAMETER, "RES-11",
				device->process->id, handle,
				"destroy paging queue: 0x%08x is not a live paging queue of "
				"the device",
				handle);
		(void)!vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY);
	}
}
