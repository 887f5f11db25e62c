/* SPDX-License-Identifier: MIT */
/* Creation and end of hardware contexts and queues. */
#include <string.h>
#include "object/stopped.h"
#include "sched/resets/hw_private.h"
#include "sched/calls/calls.h"

/* ---- start and stop ---- */

vmm_status vmm_hw_start(struct vmm_sched *sched)
{
	if (!sched->adapter->hw_queues)
		return VMM_OK;
	sched->hw = vmm_calloc(1, sizeof(*sched->hw));
	if (!sched->hw)
		return VMM_NO_MEMORY;
	vmm_list_init(&sched->hw->contexts);
	return vmm_hw_setup_bands(sched);
}

void vmm_hw_destroy(struct vmm_sched *sched)
{
	vmm_assert(!sched->hw || vmm_list_empty(&sched->hw->contexts));
	vmm_free(sched->hw);
	sched->hw = NULL;
}

/* ---- lookups ---- */

static void *device_of(struct vmm_process *process, uint32_t handle, enum vmm_handle_type type,
		       const char *what)
{
	const struct vmm_hw_context *context;
	const void *object;

	vmm_process_lock(process);
	object = vmm_handle_lookup(&process->handles, handle, type);
	context = !object || type == VMM_HANDLE_HW_CONTEXT
			  ? object
			  : ((const struct vmm_hw_queue *)object)->context;
	void *hazard =
		context ? context->device->hazard : vmm_stopped_device_find_locked(process, handle);
	if (!hazard)
		vmm_finding(process->world->observe, "SYN-23", process->id, handle,
			    "0x%08x is not a live hardware %s of process %u (%s)", handle, what,
			    process->id, vmm_handle_explain(&process->handles, handle, type));
	vmm_process_unlock(process);
	return hazard;
}

bool vmm_hw_is_context(struct vmm_process *process, uint32_t handle)
{
	vmm_process_lock(process);
	bool is = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_HW_CONTEXT) != NULL;
	vmm_process_unlock(process);
	return is;
}

void *vmm_hw_device_of_context(struct vmm_process *process, uint32_t handle)
{
	return device_of(process, handle, VMM_HANDLE_HW_CONTEXT, "context");
}

void *vmm_hw_device_of_queue(struct vmm_process *process, uint32_t handle)
{
	return device_of(process, handle, VMM_HANDLE_HW_QUEUE, "queue");
}

/* ---- contexts ---- */

static NTSTATUS refuse_unsupported(const struct vmm_device *device, const char *what)
{
	return vmm_refuse_reason(
		device->adapter->observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
		"%s: hardware scheduling is not enabled on this adapter, or its miniport does not "
		"support it on that node (SCH-10)",
		what);
}

static NTSTATUS check_context(const struct vmm_device *device,
			      const struct vmm_hw_context_request *request)
{
	const struct vmm_adapter *adapter = device->adapter;

	if (request->node >= adapter->node_count || request->affinity > 1 || request->flags)
		return vmm_refuse_rule(
			adapter->observe, STATUS_INVALID_PARAMETER,
			request->flags ? "Q-60" : "SCH-07", device->process->id, 0,
			"create hardware context: node %u of %u, engine affinity 0x%x, flags "
			"0x%x: a node has one engine, and flags must be 0",
			request->node, adapter->node_count, request->affinity, request->flags);
	if (!adapter->sched->hw || !(adapter->sched->caps->hw_nodes >> request->node & 1))
		return refuse_unsupported(device, "create hardware context");
	return STATUS_SUCCESS;
}

/* Appends to a list of contexts or queues, which are written under both locks. Paging lock held. */
static void append(struct vmm_adapter *adapter, struct vmm_list *list, struct vmm_list *link)
{
	vmm_state_lock(adapter);
	vmm_list_push_back(list, link);
	vmm_state_unlock(adapter);
}

static NTSTATUS publish_context(struct vmm_hw_context *context)
{
	struct vmm_device *device = context->device;

	vmm_paging_lock(device->adapter);
	vmm_process_lock(device->process);
	if (!vmm_device_lost(device)) /* a reset may have lost it since the call began (TDR-07) */
		context->handle = vmm_handle_create(&device->process->handles,
						    VMM_HANDLE_HW_CONTEXT, context);
	vmm_process_unlock(device->process);
	if (context->handle)
		append(device->adapter, &device->adapter->sched->hw->contexts, &context->link);
	vmm_paging_commit(device->adapter);
	if (context->handle)
		return STATUS_SUCCESS;
	return vmm_device_lost(device) ? STATUS_DEVICE_REMOVED : STATUS_NO_MEMORY;
}

/* Gives the miniport's context the address space of its process. (VA-12) */
static void begin_addresses(struct vmm_hw_context *context, void *kmd_context)
{
	context->kmd_context = context->va.kmd_context = kmd_context;
	context->va.device = context->device;
	vmm_list_init(&context->va.link);
	if (context->device->va)
		vmm_va_attach(&context->va);
}

static void end_addresses(struct vmm_hw_context *context)
{
	if (context->device->va)
		vmm_va_detach(&context->va);
}

NTSTATUS vmm_hw_create_context(struct vmm_device *device, struct vmm_hw_context_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = check_context(device, request);

	if (!NT_SUCCESS(status))
		return status;
	struct vmm_hw_context *context = vmm_calloc(1, sizeof(*context));
	if (!context)
		return STATUS_NO_MEMORY;
	context->device = device;
	context->node = request->node;
	vmm_list_init(&context->link);
	vmm_list_init(&context->queues);
	DXGKARG_CREATECONTEXT args = {.hContext = context,
				      .NodeOrdinal = request->node,
				      .EngineAffinity = 1,
				      .pPrivateDriverData = request->private_data,
				      .PrivateDriverDataSize = request->private_bytes};
	args.Flags.HwQueueSupported = 1;
	args.Flags.VirtualAddressing = device->va != NULL;
	status = vmm_port_create_hw_context(adapter->port, device->kmd_device, &args);
	if (NT_SUCCESS(status)) {
		context->present_bytes = args.ContextInfo.DmaBufferSize;
		context->present_private_bytes = args.ContextInfo.DmaBufferPrivateDataSize;
		begin_addresses(context, args.hContext);
		status = publish_context(context);
		if (!NT_SUCCESS(status)) {
			end_addresses(context);
			vmm_port_destroy_hw_context(adapter->port, context->kmd_context);
		}
	}
	if (!NT_SUCCESS(status)) {
		vmm_free(context);
		return status;
	}
	request->handle = context->handle;
	return STATUS_SUCCESS;
}

/* ---- queues ---- */

static void free_packets(struct vmm_list *list)
{
	while (!vmm_list_empty(list)) {
		struct vmm_hw_packet *packet = vmm_hw_first(list);

		vmm_list_remove(&packet->link);
		vmm_hw_free_packet(packet);
	}
}

static void free_queue(struct vmm_hw_queue *queue)
{
	if (queue->fence)
		vmm_sync_end_owned(queue->fence);
	free_packets(&queue->unused);
	free_packets(&queue->unused_presents);
	vmm_free(queue);
}

/* Creates the progress fence of a queue, with its handle, which the miniport gets, too. */
static NTSTATUS make_fence(struct vmm_hw_queue *queue)
{
	struct vmm_device *device = queue->context->device;
	NTSTATUS status = vmm_sync_make_owned(device, true, &queue->fence);

	if (!NT_SUCCESS(status))
		return status;
	vmm_process_lock(device->process);
	queue->fence_handle = vmm_sync_publish_owned_locked(queue->fence);
	vmm_process_unlock(device->process);
	return queue->fence_handle ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/*
 * Creates the handle of a queue and links it into its context. Fails if the device has been lost
 * since.
 */
static NTSTATUS publish_queue(struct vmm_hw_queue *queue)
{
	struct vmm_device *device = queue->context->device;
	struct vmm_handle_table *handles = &device->process->handles;
	NTSTATUS status = STATUS_NO_MEMORY;

	vmm_paging_lock(device->adapter);
	if (vmm_device_lost(device))
		status = STATUS_DEVICE_REMOVED;
	vmm_process_lock(device->process);
	if (status == STATUS_NO_MEMORY)
		queue->handle = vmm_handle_create(handles, VMM_HANDLE_HW_QUEUE, queue);
	vmm_process_unlock(device->process);
	if (queue->handle) {
		append(device->adapter, &queue->context->queues, &queue->link);
		status = STATUS_SUCCESS;
	}
	vmm_paging_commit(device->adapter);
	return status;
}

static NTSTATUS make_queue(struct vmm_hw_context *context, struct vmm_hw_queue_request *request)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_hw_queue *queue = vmm_calloc(1, sizeof(*queue));
	DXGKARG_CREATEHWQUEUE args = {.hHwQueue = queue,
				      .Flags = request->flags,
				      .PrivateDriverDataSize = request->private_bytes,
				      .pPrivateDriverData = request->private_data};

	if (!queue)
		return STATUS_NO_MEMORY;
	queue->context = context;
	queue->flags = request->flags;
	vmm_list_init(&queue->waiting);
	vmm_list_init(&queue->unused);
	vmm_list_init(&queue->unused_presents);
	vmm_list_init(&queue->running);
	NTSTATUS status = make_fence(queue);
	if (NT_SUCCESS(status)) {
		args.hHwQueueProgressFence = queue->fence_handle;
		args.HwQueueProgressFenceCPUVirtualAddress = vmm_sync_owned_word(queue->fence);
		args.HwQueueProgressFenceGPUVirtualAddress = vmm_sync_gpu_address(queue->fence);
		status = vmm_port_create_hw_queue(adapter->port, context->kmd_context, &args);
	}
	if (NT_SUCCESS(status)) {
		queue->kmd_queue = args.hHwQueue;
		status = publish_queue(queue);
		if (!NT_SUCCESS(status))
			vmm_port_destroy_hw_queue(adapter->port, queue->kmd_queue);
	}
	if (!NT_SUCCESS(status)) {
		free_queue(queue);
		return status;
	}
	request->handle = queue->handle;
	request->fence = queue->fence_handle;
	request->fence_address = vmm_sync_address(queue->fence);
	request->fence_gpu_address = vmm_sync_gpu_address(queue->fence);
	return STATUS_SUCCESS;
}

/*
 * Keeps the context while a queue of it is created: a thread that ends the context waits for
 * end_queue_creation.
 */
static struct vmm_hw_context *begin_queue_creation(struct vmm_device *device, uint32_t handle)
{
	vmm_paging_lock(device->adapter);
	struct vmm_hw_context *context = vmm_hw_find_context_locked(device, handle);
	if (context && context->ending)
		context = NULL;
	if (context)
		context->creating_queues++;
	vmm_paging_commit(device->adapter);
	return context;
}

static void end_queue_creation(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	vmm_paging_lock(adapter);
	context->creating_queues--;
	vmm_paging_commit(adapter);
	vmm_progress_signal(adapter);
}

NTSTATUS vmm_hw_create_queue(struct vmm_device *device, struct vmm_hw_queue_request *request)
{
	if (!device->adapter->sched->hw)
		return refuse_unsupported(device, "create hardware queue");
	if (request->flags.Reserved)
		return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, "Q-60",
				       device->process->id, 0,
				       "create hardware queue: flags 0x%x have reserved bits set",
				       request->flags.Value);
	struct vmm_hw_context *context = begin_queue_creation(device, request->context);
	if (!context)
		return STATUS_INVALID_PARAMETER;
	NTSTATUS status = make_queue(context, request);
	end_queue_creation(context);
	return status;
}

/* ---- the end ---- */

/*
 * Destroys the handle of a context or queue that the caller has claimed. The object keeps the
 * number, which never changes: other threads report the object by it until its end. Paging lock
 * held.
 */
static void unpublish(struct vmm_device *device, uint32_t handle)
{
	vmm_process_lock(device->process);
	vmm_device_handle_destroy_locked(device, handle);
	vmm_process_unlock(device->process);
}

/*
 * The memory of the context waits until another process unlocks, which the end of a queue does not
 * wait for. Drops the waiting commands of the queue. Those that a suspended context has on the GPU
 * are not executed: the context does not resume before the queue is gone. Paging lock held.
 */
VMM_COLD static void abandon(struct vmm_hw_queue *queue) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&queue->context->device->adapter->paging_lock);
	vmm_hw_drop_waiting(queue);
	queue->abandoned = queue->context->state == VMM_HW_SUSPENDED;
}

/*
 * Returns true if the queue has no command left that will complete. Submits what may run. If the
 * device is lost, drops waiting commands and takes running ones off the GPU: the context is
 * suspended and never resumes (SCH-11). Paging lock held.
 */
static bool is_queue_idle(struct vmm_sched *sched, struct vmm_hw_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_hw_context *context = queue->context;
	bool dead = atomic_load(&context->device->error) != VMM_DEVICE_OK;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (atomic_load(&sched->adapter->removed))
		return !queue->presenting;
	if (dead)
		vmm_hw_drop_waiting(queue);
	vmm_hw_pump_locked(sched);
	if (!vmm_list_empty(&queue->waiting) && vmm_hw_sync_holds(vmm_hw_first(&queue->waiting)))
		vmm_hw_drop_waiting(queue); /* */
	if (vmm_unlock_is_awaited(sched->adapter, context->unlock_ticket))
		abandon(queue);
	if (dead && queue->running_count && context->state == VMM_HW_RUNNING)
		(void)vmm_hw_suspend(context);
	vmm_state_lock(sched->adapter);
	bool idle = !queue->presenting && vmm_list_empty(&queue->waiting) &&
		    (!queue->running_count || queue->abandoned ||
		     (dead && context->state == VMM_HW_SUSPENDED));
	vmm_state_unlock(sched->adapter);
	return idle;
}

static void await_queue_idle(struct vmm_sched *sched, struct vmm_hw_queue *queue)
{
	struct vmm_adapter *adapter = sched->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_await_recovery(adapter);
		vmm_paging_lock(adapter);
		bool idle = is_queue_idle(sched, queue);
		vmm_paging_commit(adapter);
		if (idle)
			return;
		vmm_worker_wake(sched); /* the worker may have to resume the context */
		if (!vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY)))
			continue; /* the adapter is removed, so the queue is idle */
	}
}

/* Ends a queue that the caller has claimed: no lookup finds it any more. */
static void finish_queue(struct vmm_hw_queue *queue)
{
	struct vmm_device *device = queue->context->device;
	struct vmm_adapter *adapter = device->adapter;

	await_queue_idle(adapter->sched, queue);
	vmm_paging_lock(adapter);
	vmm_hw_drop_waiting(queue);
	vmm_state_lock(adapter);
	while (!vmm_list_empty(&queue->running))
		vmm_hw_retire_locked(vmm_hw_first(&queue->running));
	vmm_state_unlock(adapter);
	vmm_paging_commit(adapter);
	vmm_port_destroy_hw_queue(adapter->port, queue->kmd_queue);
	vmm_paging_lock(adapter);
	vmm_state_lock(adapter);
	vmm_list_remove(&queue->link);
	vmm_state_unlock(adapter);
	vmm_paging_commit(adapter);
	bool resumes = queue->abandoned; /* the context may resume now */
	free_queue(queue);
	if (resumes)
		vmm_worker_wake(adapter->sched);
	vmm_progress_signal(adapter);
}

/* Claims the end of a queue. Returns false if another thread has claimed it. Paging lock held. */
static bool claim_queue(struct vmm_hw_queue *queue) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&queue->context->device->adapter->paging_lock);
	if (queue->ending)
		return false;
	queue->ending = true;
	unpublish(queue->context->device, queue->handle);
	return true;
}

NTSTATUS vmm_hw_destroy_queue(struct vmm_device *device, uint32_t handle)
{
	vmm_paging_lock(device->adapter);
	struct vmm_hw_queue *queue = vmm_hw_find_queue_locked(device, handle);
	if (queue && !claim_queue(queue))
		queue = NULL;
	vmm_paging_commit(device->adapter);
	if (!queue)
		return STATUS_INVALID_PARAMETER;
	finish_queue(queue);
	return STATUS_SUCCESS;
}

/*
 * Claims a queue of the context; NULL: there is none left to claim, but other threads may still be
 * ending theirs. Paging lock held.
 */
static struct vmm_hw_queue *next_queue(struct vmm_hw_context *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&context->device->adapter->paging_lock);
	vmm_list_for_each (link, &context->queues) {
		struct vmm_hw_queue *queue = vmm_container_of(link, struct vmm_hw_queue, link);

		if (claim_queue(queue))
			return queue;
	}
	return NULL;
}

static void finish_queues(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		struct vmm_hw_queue *queue = next_queue(context);
		bool none = !queue && vmm_list_empty(&context->queues) && !context->creating_queues;
		vmm_paging_commit(adapter);
		if (none)
			return;
		if (queue)
			finish_queue(queue);
		else if (!vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY)))
			/* The adapter is removed: the other threads finish all the same. */
			continue;
	}
}

static void finish_context(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	finish_queues(context);
	end_addresses(context);
	vmm_port_destroy_hw_context(adapter->port, context->kmd_context);
	vmm_paging_lock(adapter);
	vmm_state_lock(adapter);
	vmm_list_remove(&context->link);
	if (context->state != VMM_HW_RUNNING)
		atomic_fetch_sub(&adapter->sched->hw->waiting, 1);
	vmm_state_unlock(adapter);
	vmm_paging_commit(adapter);
	vmm_free(context);
}

static bool claim_context(struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&context->device->adapter->paging_lock);
	if (context->ending)
		return false;
	context->ending = true;
	unpublish(context->device, context->handle);
	return true;
}

NTSTATUS vmm_hw_destroy_context(struct vmm_device *device, uint32_t handle)
{
	vmm_paging_lock(device->adapter);
	struct vmm_hw_context *context = vmm_hw_find_context_locked(device, handle);
	if (context && !claim_context(context))
		context = NULL;
	vmm_paging_commit(device->adapter);
	if (!context)
		return STATUS_INVALID_PARAMETER;
	finish_context(context);
	return STATUS_SUCCESS;
}

static struct vmm_hw_context *next_context(struct vmm_hw *hw, const struct vmm_device *device)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (link, &hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (context->device == device && claim_context(context))
			return context;
	}
	return NULL;
}

void vmm_hw_destroy_device(struct vmm_device *device)
{
	struct vmm_sched *sched = device->adapter->sched;
	struct vmm_hw_context *context;

	if (!sched->hw)
		return;
	do {
		vmm_paging_lock(device->adapter);
		context = next_context(sched->hw, device);
		if (sched->hw->starving == device)
			sched->hw->starving = NULL;
		vmm_paging_commit(device->adapter);
		if (context)
			finish_context(context);
	} while (context);
}
