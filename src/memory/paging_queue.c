/* SPDX-License-Identifier: MIT */
/*
 * Paging queues: what a device asked to be made resident and could not have at once, in the order in which it asked
 * (RES-04), and the fence that tells how far that has got. The worker goes on with it whenever the GPU has completed
 * something or somebody gave memory back; queues of a higher priority first.
 *
 * Only who holds the paging lock sets the fence.
 */
#include "memory/memory_private.h"
#include "sync/sync.h"

struct vmm_paging_queue {
	struct vmm_device *device;
	struct vmm_list link;        /* in memory->paging_queues */
	struct vmm_list device_link; /* in device->paging_queues */
	struct vmm_list operations;  /* oldest first */
	int32_t priority;
	uint32_t handle, fence_handle;
	uint64_t last_value;
	struct vmm_sync *fence; /* clients can only wait for it (MFN-35) */
};

struct vmm_paging_operation {
	struct vmm_list link;
	uint64_t value;
	bool placed;
	uint64_t sequence; /* placed: the paging packet that must be complete */
	uint32_t count;
	struct vmm_ref *refs[]; /* NULL: it is gone */
};

static void free_queue(struct vmm_paging_queue *queue)
{
	if (queue->fence)
		vmm_sync_end_owned(queue->fence);
	vmm_free(queue);
}

/* Behind the last queue that is not of a lower priority. */
static void insert(struct vmm_memory *memory, struct vmm_paging_queue *queue)
{
	struct vmm_list *at;

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
	if (vmm_device_lost(device)) { /* meanwhile (TDR-07) */
		vmm_paging_unlock(device->adapter);
		return STATUS_DEVICE_REMOVED;
	}
	vmm_os_mutex_lock(&device->process->lock);
	queue->handle = vmm_handle_create(handles, VMM_HANDLE_PAGING_QUEUE, queue);
	if (queue->handle)
		queue->fence_handle = vmm_sync_publish_owned_locked(queue->fence);
	if (queue->handle && !queue->fence_handle)
		vmm_handle_destroy(handles, queue->handle);
	vmm_os_mutex_unlock(&device->process->lock);
	if (queue->fence_handle) {
		insert(device->adapter->memory, queue);
		vmm_list_push_back(&device->paging_queues, &queue->device_link);
	}
	vmm_paging_unlock(device->adapter);
	return queue->fence_handle ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS check_request(struct vmm_device *device,
			      const struct vmm_paging_queue_request *request)
{
	struct vmm_observe *observe = device->adapter->observe;

	if (!device->adapter->wddm2) {
		vmm_reason(observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
			   "create paging queue: the adapter's miniport is of WDDM 1.x, where "
			   "references decide residency");
		return STATUS_NOT_SUPPORTED;
	}
	if (request->priority >= -1 && request->priority <= 1 && !request->physical_adapter)
		return STATUS_SUCCESS;
	vmm_finding(observe, "RES-04", device->process->id, 0,
		    "create paging queue: priority %d, physical adapter %u: a priority is -1, 0 or "
		    "1, and the adapter has no link",
		    request->priority, request->physical_adapter);
	return STATUS_INVALID_PARAMETER;
}

NTSTATUS vmm_paging_queue_create(struct vmm_device *device,
				 struct vmm_paging_queue_request *request)
{
	struct vmm_paging_queue *queue;
	NTSTATUS status = check_request(device, request);

	if (!NT_SUCCESS(status))
		return status;
	queue = vmm_calloc(1, sizeof(*queue));
	if (!queue)
		return STATUS_NO_MEMORY;
	queue->device = device;
	queue->priority = request->priority;
	vmm_list_init(&queue->operations);
	status = vmm_sync_make_owned(device, &queue->fence);
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

	return queue && queue->device == device ? queue : NULL;
}

void *vmm_paging_queue_device(struct vmm_process *process, uint32_t handle)
{
	void *live = NULL;

	vmm_os_mutex_lock(&process->lock);
	const struct vmm_paging_queue *queue =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_PAGING_QUEUE);
	if (queue)
		live = queue->device->live;
	else
		vmm_finding(process->world->observe, "HND-07", process->id, handle,
			    "0x%08x is not a live paging queue handle of process %u (%s)", handle,
			    process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_PAGING_QUEUE));
	vmm_os_mutex_unlock(&process->lock);
	return live;
}

vmm_status vmm_paging_queue_add(struct vmm_paging_queue *queue, struct vmm_ref *const *refs,
				uint32_t count, uint64_t *value)
{
	struct vmm_paging_operation *operation = vmm_paging_operation_create(count);

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

uint64_t vmm_paging_operation_add(struct vmm_paging_queue *queue,
				  struct vmm_paging_operation *operation,
				  struct vmm_ref *const *refs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		operation->refs[i] = refs[i];
	operation->count = count;
	operation->value = ++queue->last_value;
	vmm_list_push_back(&queue->operations, &operation->link);
	atomic_fetch_add(&queue->device->adapter->paging_work, 1);
	return operation->value;
}

void vmm_paging_operation_free(struct vmm_paging_operation *operation)
{
	vmm_free(operation);
}

uint64_t vmm_paging_operation_add_paged(struct vmm_paging_queue *queue,
					struct vmm_paging_operation *operation, uint64_t sequence)
{
	operation->placed = true;
	operation->sequence = sequence;
	return vmm_paging_operation_add(queue, operation, NULL, 0);
}

/* One that the client has evicted meanwhile is no longer asked for. */
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

static vmm_status place(struct vmm_memory *memory, struct vmm_paging_queue *queue,
			struct vmm_paging_operation *operation)
{
	uint64_t round = vmm_resident_round(memory);
	vmm_status status = VMM_OK;

	if (is_held_up(operation)) /* LOCK-48: all of it waits, so that it is done together */
		return VMM_PENDING;
	vmm_resident_want(queue->device, round);
	for (uint32_t i = 0; i < operation->count && status == VMM_OK; i++) {
		struct vmm_ref *ref = operation->refs[i];

		if (!is_wanted(ref) || vmm_resident_stays_out(ref->instance))
			continue;
		status = vmm_resident_place(memory, ref->instance, round);
		operation->sequence =
			vmm_max_u64(operation->sequence, vmm_resident_paged(ref->instance));
	}
	return status;
}

/*
 * It was accepted because the list fits, and cannot be done for another reason: no system memory, or no room in one
 * piece. It counts as done; the next packet of the device tries again, harder, and says what became of it.
 */
VMM_COLD static void say_why(const struct vmm_paging_queue *queue,
			     const struct vmm_paging_operation *operation, vmm_status status)
{
	vmm_reason(queue->device->adapter->observe, status, queue->device->process->id,
		   queue->handle,
		   "RES-03: operation %llu of paging queue 0x%08x found no place for one of its %u "
		   "allocations (0x%08x); they come in before the next submission runs",
		   (unsigned long long)operation->value, queue->handle, operation->count,
		   (unsigned)status);
}

static void place_all(struct vmm_memory *memory, struct vmm_paging_queue *queue)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &queue->operations) {
		struct vmm_paging_operation *operation =
			vmm_container_of(link, struct vmm_paging_operation, link);

		if (operation->placed)
			continue;
		vmm_status status = place(memory, queue, operation);
		if (status == VMM_PENDING || status == VMM_DEVICE_REMOVED)
			return;
		if (status != VMM_OK)
			say_why(queue, operation, status);
		memory->adapter->turned_away = 0;
		operation->placed = true;
	}
}

/* A lost device's fence has its last value. */
static void finish(struct vmm_paging_queue *queue, struct vmm_paging_operation *operation)
{
	if (vmm_likely(!vmm_device_lost(queue->device)))
		vmm_sync_set(queue->fence, operation->value);
	vmm_list_remove(&operation->link);
	vmm_free(operation);
	atomic_fetch_sub(&queue->device->adapter->paging_work, 1);
}

/* RES-04: in order. */
static bool finish_done(struct vmm_paging_queue *queue)
{
	struct vmm_adapter *adapter = queue->device->adapter;
	bool any = false;

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

	/* While the adapter is reset the miniport would refuse. */
	if (!atomic_load(&adapter->paging_work) || atomic_load(&adapter->closed) ||
	    atomic_load(&adapter->recovering))
		return;
	vmm_resident_departures(memory);
	vmm_list_for_each (link, &memory->paging_queues) {
		struct vmm_paging_queue *queue =
			vmm_container_of(link, struct vmm_paging_queue, link);

		place_all(memory, queue);
	}
	vmm_memory_flush_locked(adapter);
	vmm_list_for_each (link, &memory->paging_queues)
		any |= finish_done(vmm_container_of(link, struct vmm_paging_queue, link));
	if (any)
		vmm_progress_signal(adapter);
}

void vmm_paging_queues_forget(struct vmm_ref *ref)
{
	struct vmm_list *at, *in;

	vmm_list_for_each (at, &ref->device->paging_queues) {
		struct vmm_paging_queue *queue =
			vmm_container_of(at, struct vmm_paging_queue, device_link);

		vmm_list_for_each (in, &queue->operations) {
			struct vmm_paging_operation *operation =
				vmm_container_of(in, struct vmm_paging_operation, link);

			for (uint32_t i = 0; i < operation->count; i++)
				if (operation->refs[i] == ref)
					operation->refs[i] = NULL;
		}
	}
}

/* ---- the end ---- */

/* TDRS-01, TDRS-14: nothing of it will be done; whoever waits for it comes out, and whoever polls sees why. */
void vmm_paging_queues_lose(struct vmm_device *device)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &device->paging_queues) {
		struct vmm_paging_queue *queue =
			vmm_container_of(link, struct vmm_paging_queue, device_link);

		while (!vmm_list_empty(&queue->operations))
			finish(queue, vmm_container_of(queue->operations.next,
						       struct vmm_paging_operation, link));
		vmm_sync_set(queue->fence, UINT64_MAX);
	}
}

/* Handles and mapping go; paging lock held. */
static void end(struct vmm_paging_queue *queue)
{
	struct vmm_device *device = queue->device;

	while (!vmm_list_empty(&queue->operations))
		finish(queue,
		       vmm_container_of(queue->operations.next, struct vmm_paging_operation, link));
	vmm_os_mutex_lock(&device->process->lock);
	vmm_handle_destroy(&device->process->handles, queue->handle);
	vmm_os_mutex_unlock(&device->process->lock);
	vmm_list_remove(&queue->link);
	vmm_list_remove(&queue->device_link);
	free_queue(queue);
}

void vmm_paging_queues_end(struct vmm_device *device)
{
	while (!vmm_list_empty(&device->paging_queues))
		end(vmm_container_of(device->paging_queues.next, struct vmm_paging_queue,
				     device_link));
}

/*
 * What the client itself holds up by a lock, and with it all that is behind, is not waited for: it could not unlock
 * meanwhile.
 */
static bool is_idle(struct vmm_paging_queue *queue)
{
	if (vmm_list_empty(&queue->operations))
		return true;
	const struct vmm_paging_operation *first =
		vmm_container_of(queue->operations.next, struct vmm_paging_operation, link);
	return !first->placed && is_held_up(first);
}

NTSTATUS vmm_paging_queue_destroy(struct vmm_device *device, uint32_t handle)
{
	struct vmm_adapter *adapter = device->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		vmm_os_mutex_lock(&device->process->lock);
		struct vmm_paging_queue *queue = vmm_paging_queue_find_locked(device, handle);
		vmm_os_mutex_unlock(&device->process->lock);
		bool idle = queue && (is_idle(queue) || atomic_load(&adapter->closed));
		if (idle)
			end(queue);
		vmm_paging_unlock(adapter);
		if (idle) {
			vmm_progress_signal(adapter);
			return STATUS_SUCCESS;
		}
		if (!queue) {
			vmm_finding(adapter->observe, "RES-11", device->process->id, handle,
				    "destroy paging queue: 0x%08x is not a live one of the device",
				    handle);
			return STATUS_INVALID_PARAMETER;
		}
		(void)!vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY);
	}
}
