/* SPDX-License-Identifier: MIT */
/*
 * Creation and end of devices and contexts: the miniport's objects, and the buffers that a UMD
 * writes into. The sizes of a context are what the miniport asked for, and do not change (DMA-01,
 * DMA-02).
 */
#include "object/stopped.h"
#include "sched/calls/calls.h"

static NTSTATUS check_info(struct vmm_adapter *adapter, const struct vmm_context *context)
{
	const struct vmm_port_caps *caps = vmm_port_caps(adapter->port);
	uint32_t apertures = 0;

	for (uint32_t i = 0; i < caps->segment_count; i++)
		if (caps->segment[i].flags.Aperture)
			apertures |= 1u << i;
	if (context->dma_segment_set & ~apertures)
		return vmm_refuse_rule(
			adapter->observe, STATUS_INVALID_PARAMETER, "DMA-03",
			context->device->process->id, 0,
			"DmaBufferSegmentSet 0x%x names a segment that is not an aperture "
			"(apertures 0x%x)",
			context->dma_segment_set, apertures);
	if (!context->dma_bytes || !context->list_size ||
	    (!context->patch_size && !context->no_patching))
		return vmm_refuse_rule(
			adapter->observe, STATUS_INVALID_PARAMETER, "DMA-01",
			context->device->process->id, 0,
			"create context: the miniport asked for a DMA buffer of %u bytes, %u "
			"allocations, %u patch locations: none of them may be 0",
			context->dma_bytes, context->list_size, context->patch_size);
	return STATUS_SUCCESS;
}

enum { GDI_ALLOCATION_LIST = 256, UNPATCHED_ALLOCATION_LIST = 16 };

static NTSTATUS check_gdi(struct vmm_adapter *adapter, const struct vmm_context *context)
{
	if (context->list_size == GDI_ALLOCATION_LIST)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		adapter->observe, STATUS_INVALID_PARAMETER, "DMA-34", context->device->process->id,
		0, "create GDI context: the miniport asked for %u allocations, required are %u",
		context->list_size, GDI_ALLOCATION_LIST);
}

static NTSTATUS make_user_buffers(struct vmm_context *context)
{
	struct vmm_context_buffers *u = &context->user;

	if (context->by_address) /* the client provides the commands */
		return STATUS_SUCCESS;
	u->commands = vmm_calloc(1, context->dma_bytes);
	u->allocations = vmm_calloc(context->list_size, sizeof(*u->allocations));
	if (context->patch_size)
		u->patches = vmm_calloc(context->patch_size, sizeof(*u->patches));
	u->command_bytes = context->dma_bytes;
	u->allocation_count = context->list_size;
	u->patch_count = context->patch_size;
	return u->commands && u->allocations && (u->patches || !context->patch_size)
		       ? vmm_context_map_buffers(context)
		       : STATUS_NO_MEMORY;
}

static void free_context(struct vmm_context *context)
{
	vmm_context_unmap_buffers(context);
	vmm_free(context->user.commands);
	vmm_free(context->user.allocations);
	vmm_free(context->user.patches);
	vmm_free(context);
}

static NTSTATUS create_in_miniport(struct vmm_context *context,
				   const struct vmm_context_request *request, void *private_data)
{
	struct vmm_adapter *adapter = context->device->adapter;
	DXGKARG_CREATECONTEXT args = {
		.hContext = context,
		.NodeOrdinal = context->ordinal,
		.EngineAffinity = 1u << context->engine, /* SCH-08 */
		.pPrivateDriverData = private_data,
		.PrivateDriverDataSize = request->private_bytes,
	};

	args.Flags.VirtualAddressing = context->by_address;
	args.Flags.GdiContext =
		request->gdi && adapter->interface_version >= DXGKDDI_INTERFACE_VERSION_WIN7;
	struct vmm_ddi_creation creation;

	vmm_ddi_creation_begin(&creation, context->device, context);
	NTSTATUS status =
		vmm_port_create_context(adapter->port, context->device->kmd_device, &args);
	vmm_ddi_creation_end(&creation);

	if (!NT_SUCCESS(status))
		return status;
	context->kmd_context = context->va.kmd_context = args.hContext;
	context->dma_bytes = args.ContextInfo.DmaBufferSize;
	context->dma_segment_set = args.ContextInfo.DmaBufferSegmentSet;
	context->dma_private_bytes = args.ContextInfo.DmaBufferPrivateDataSize;
	context->list_size = args.ContextInfo.AllocationListSize;
	context->patch_size = args.ContextInfo.PatchLocationListSize;
	context->no_patching = args.ContextInfo.Caps.NoPatchingRequired;
	/* No DMA buffer; the list holds displayed allocations (SUB-26). */
	if (context->by_address) {
		context->no_patching = true;
		context->present_bytes = context->dma_bytes;
		context->dma_bytes = context->dma_segment_set = 0;
	}
	if (context->no_patching) { /* DMA-25: the miniport's sizes are ignored */
		context->list_size = UNPATCHED_ALLOCATION_LIST;
		context->patch_size = 0;
	}
	status = context->by_address ? STATUS_SUCCESS : check_info(adapter, context);
	if (NT_SUCCESS(status) && args.Flags.GdiContext)
		status = check_gdi(adapter, context);
	if (!NT_SUCCESS(status))
		vmm_port_destroy_context(adapter->port, context->kmd_context);
	return status;
}

/*
 * Links the context into its device, and makes its handles valid last: from then on the client may
 * end it.
 */
static NTSTATUS publish(struct vmm_context *context, struct vmm_context_request *request)
{
	struct vmm_device *device = context->device;
	struct vmm_handle_table *handles = &device->process->handles;

	vmm_process_lock(device->process);
	context->handle = vmm_handle_create(handles, VMM_HANDLE_CONTEXT, context);
	if (context->handle) {
		vmm_list_push_back(&device->contexts, &context->link);
		request->buffers = context->mapped;
		context->hazard =
			vmm_hazard_register(device->adapter->os, VMM_HAZARD_CONTEXT, context);
		request->handle = context->hazard;
		if (!atomic_load(&device->default_context))
			atomic_store(&device->default_context, context->hazard);
		request->number = context->handle;
	}
	if (context->handle && !request->handle) {
		vmm_list_remove(&context->link);
		vmm_handle_destroy(handles, context->handle);
	}
	vmm_process_unlock(device->process);
	return request->handle ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* refuses flags that ask for what is not built. NullRendering is built (SUB-22). */
static NTSTATUS check_flags(const struct vmm_device *device, uint32_t flags)
{
	static const char *const unbuilt[] = {"InitialData", "DisableGpuTimeout",
					      "SynchronizationOnly", "HwQueueSupported",
					      "NoKmdAccess"};
	const D3DDDI_CREATECONTEXTFLAGS f = {.Value = flags};
	struct vmm_observe *observe = device->adapter->observe;

	if (f.Reserved)
		return vmm_refuse_rule(observe, STATUS_INVALID_PARAMETER, "Q-22",
				       device->process->id, 0,
				       "create context: flags 0x%x have reserved bits set", flags);
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(unbuilt); i++) {
		if (!(flags & 2u << i))
			continue;
		return vmm_refuse_reason(observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
					 "Q-22: create context: flags 0x%x: %s is not built", flags,
					 unbuilt[i]);
	}
	return STATUS_SUCCESS;
}

/* SCH-07, SCH-08: bit n of the affinity is adapter n of a link; the lead adapter is 0. */
static NTSTATUS choose_node(struct vmm_context *context, const struct vmm_context_request *request)
{
	const struct vmm_adapter *adapter = context->device->adapter;
	uint32_t affinity = request->affinity ? request->affinity : 1;
	uint32_t each = adapter->node_count / adapter->physical_adapters;
	bool one_of_them =
		!(affinity & (affinity - 1)) && !(affinity >> adapter->physical_adapters);

	if (request->node >= each || !one_of_them)
		return vmm_refuse_rule(
			adapter->observe, STATUS_INVALID_PARAMETER,
			one_of_them ? "SCH-07" : "SCH-08", context->device->process->id, 0,
			"create context: node %u of %u, engine affinity 0x%x, physical "
			"adapters %u: the node must exist, and the affinity name one adapter",
			request->node, each, request->affinity, adapter->physical_adapters);
	context->ordinal = request->node;
	while (affinity >> (context->engine + 1))
		context->engine++;
	context->node = context->engine * each + context->ordinal;
	return STATUS_SUCCESS;
}

/* private_data: a copy of the request's. */
static NTSTATUS create_context(struct vmm_device *device, struct vmm_context_request *request,
			       void *private_data)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_context *context;
	NTSTATUS status;

	vmm_assert(vmm_device_is_valid(device));
	context = vmm_calloc(1, sizeof(*context));
	if (!context)
		return STATUS_NO_MEMORY;
	context->device = device;
	context->flags = request->flags;
	vmm_turn_init(context);
	vmm_list_init(&context->link);
	vmm_list_init(&context->free_dma);
	vmm_list_init(&context->free_copies);
	vmm_list_init(&context->all_dma);
	vmm_steps_init(context);
	status = choose_node(context, request);
	if (NT_SUCCESS(status))
		status = check_flags(device, request->flags);
	if (NT_SUCCESS(status) && request->by_address)
		status = vmm_command_begin(context);
	if (NT_SUCCESS(status))
		status = create_in_miniport(context, request, private_data);
	if (!NT_SUCCESS(status))
		goto out_memory;
	status = make_user_buffers(context);
	if (!NT_SUCCESS(status))
		goto out_miniport;
	request->handle = NULL;
	if (context->by_address) /* VA-12: before its first submission */
		vmm_va_attach(&context->va);
	status = publish(context, request);
	if (NT_SUCCESS(status))
		return status; /* the client may have ended it already */
	if (context->by_address)
		vmm_va_detach(&context->va);
out_miniport:
	vmm_port_destroy_context(adapter->port, context->kmd_context);
out_memory:
	vmm_context_allocations_end(device, context);
	free_context(context);
	return status;
}

NTSTATUS vmm_sched_create_context(struct vmm_device *device, struct vmm_context_request *request)
{
	void *private_data;
	NTSTATUS status = vmm_copy_in(request->private_data, request->private_bytes,
				      VMM_CONTEXT_PRIVATE_BYTES_MAX, 1, &private_data);

	if (NT_SUCCESS(status))
		status = create_context(device, request, private_data);
	vmm_free(private_data);
	return status;
}

struct vmm_context *vmm_sched_enter_context(struct vmm_hazard_guard *guard, const void *device,
					    const void *handle)
{
	struct vmm_context *context = vmm_hazard_enter(guard, VMM_HAZARD_CONTEXT, handle);

	if (!context || vmm_likely(context->device->hazard == device))
		return context;
	vmm_hazard_leave(guard);
	return NULL;
}

uint32_t vmm_sched_context_number(const struct vmm_context *context)
{
	return context->handle;
}

struct vmm_device *vmm_sched_context_device(const struct vmm_context *context)
{
	return context->device;
}

void *vmm_sched_context_live(const struct vmm_context *context)
{
	return context->hazard;
}

const struct vmm_context_buffers *vmm_sched_context_buffers(const struct vmm_context *context)
{
	return &context->mapped;
}

/* No thread is inside the context, and none can enter it. */
static void destroy_context(struct vmm_context *context)
{
	struct vmm_process *process = context->device->process;
	struct vmm_adapter *adapter = context->device->adapter;
	void *handle = context->hazard;

	vmm_process_lock(process);
	vmm_list_remove(&context->link);
	vmm_device_handle_destroy_locked(context->device, context->handle);
	vmm_process_unlock(process);
	vmm_broadcast_await_calls(context);
	vmm_steps_end(context);
	/*
	 * SUB-29: the miniport destroys it after its last packet is complete and other contexts no
	 * longer run its buffers (DMA-10).
	 */
	vmm_sched_wait(adapter, context->node, context->last_sequence, VIDMM_WAIT_DESTROY);
	vmm_broadcast_await_copies(context);
	vmm_display_close_context(context);
	vmm_context_memory_leave(context);
	vmm_context_allocations_retire(context->device, context);
	if (context->by_address)
		vmm_va_detach(&context->va);
	vmm_port_destroy_context(adapter->port, context->kmd_context);
	vmm_context_allocations_end(context->device, context);
	vmm_dma_destroy_all(context);
	vmm_broadcast_free_copies(context);
	free_context(context);
	vmm_hazard_retired(handle);
}

NTSTATUS vmm_sched_destroy_context(struct vmm_device *device, const void *handle)
{
	struct vmm_context *context = NULL;
	struct vmm_hazard_guard guard;

	vmm_assert(vmm_device_is_valid(device));
	/*
	 * The device of a handle never changes, so the context that is retired below belongs to
	 * this device.
	 */
	if (vmm_sched_enter_context(&guard, device->hazard, handle)) {
		vmm_hazard_leave(&guard);
		context = vmm_hazard_retire(VMM_HAZARD_CONTEXT, handle);
	}
	if (!context)
		return STATUS_INVALID_PARAMETER;
	destroy_context(context);
	return STATUS_SUCCESS;
}

static void unlink_device(struct vmm_device *device)
{
	struct vmm_process *process = device->process;
	struct vmm_adapter *adapter = device->adapter;

	vmm_state_lock(adapter);
	vmm_list_remove(&device->adapter_link);
	vmm_usage_leave_locked(device);
	vmm_owner_leave_locked(device);
	for (uint32_t n = 0; n < adapter->node_count; n++)
		if (adapter->sched->node[n].last_device == device)
			adapter->sched->node[n].last_device = NULL;
	vmm_state_unlock(adapter);
	vmm_process_lock(process);
	vmm_list_remove(&device->process_link);
	vmm_device_cache_drop_locked(process, device->handle);
	vmm_device_handle_destroy_locked(device, device->handle);
	vmm_process_unlock(process);
}

static uint32_t engine_resets_of(const struct vmm_process *process)
{
	vmm_shared_lock(process->world);
	uint32_t count = process->engine_resets;
	vmm_shared_unlock(process->world);
	return count;
}

static void init_lists(struct vmm_device *device)
{
	vmm_list_init(&device->contexts);
	vmm_list_init(&device->resources);
	vmm_list_init(&device->refs);
	vmm_list_init(&device->residency);
	vmm_list_init(&device->leaving);
	vmm_list_init(&device->paging_queues);
	vmm_list_init(&device->context_allocations);
	vmm_list_init(&device->sleepers);
}

static NTSTATUS make_device(struct vmm_process *process, struct vmm_adapter *adapter,
			    struct vmm_device **result)
{
	if (vmm_unlikely(atomic_load(&process->denied)))
		return vmm_refuse_reason(
			adapter->observe, STATUS_DEVICE_REMOVED, process->id, 0,
			"TDR-20: create device: process %u has hung engines too often (%u times) "
			"and may create no more devices",
			process->id, engine_resets_of(process));
	struct vmm_device *device = vmm_calloc(1, sizeof(*device));
	DXGK_DEVICEINFO info = {0};
	struct vmm_ddi_creation creation;
	HANDLE handle = device;
	void *kmd_process = NULL;
	uint32_t suspensions;
	NTSTATUS status;

	if (!device)
		return STATUS_NO_MEMORY;
	device->process = process;
	device->adapter = adapter;
	init_lists(device);
	vmm_sync_begin_device(device);
	status = vmm_va_begin_device(device, &kmd_process);
	if (!NT_SUCCESS(status))
		goto out_free;
	vmm_ddi_creation_begin(&creation, device, NULL);
	status = vmm_port_create_process_device(adapter->port, &handle, kmd_process, &info,
						&suspensions);
	vmm_ddi_creation_end(&creation);
	if (!NT_SUCCESS(status))
		goto out_free;
	device->kmd_device = handle;
	device->one_buffer = info.Flags.GuaranteedDmaBufferContract;
	vmm_process_lock(process);
	device->handle = vmm_handle_create(&process->handles, VMM_HANDLE_DEVICE, device);
	if (device->handle)
		vmm_list_push_back(&process->devices, &device->process_link);
	atomic_store(&device->ending, atomic_load(&process->abandoned));
	vmm_process_unlock(process);
	if (!device->handle) {
		status = STATUS_NO_MEMORY;
		goto out_miniport;
	}
	vmm_state_lock(adapter);
	vmm_list_push_back(&adapter->devices, &device->adapter_link);
	/* TDR-07: the miniport created it before a reset, which did not find it in the list. */
	if (vmm_unlikely((int32_t)(adapter->reset_suspension - suspensions) > 0))
		atomic_store(&device->error, VMM_DEVICE_RESET);
	vmm_state_unlock(adapter);
	device->hazard = vmm_hazard_register(adapter->os, VMM_HAZARD_DEVICE, device);
	if (!device->hazard) {
		unlink_device(device);
		status = STATUS_NO_MEMORY;
		goto out_miniport;
	}
	*result = device;
	return STATUS_SUCCESS;
out_miniport:
	vmm_port_destroy_device(adapter->port, device->kmd_device);
out_free:
	vmm_context_allocations_end(device, NULL);
	vmm_free(device);
	return status;
}

NTSTATUS vmm_sched_create_device(struct vmm_process *process, struct vmm_adapter *adapter,
				 struct vmm_device **result)
{
	NTSTATUS status = vmm_power_begin_device(adapter);

	if (!NT_SUCCESS(status))
		return status;
	status = make_device(process, adapter, result);
	vmm_power_end_device(adapter);
	return status;
}

static void retire_handle(struct vmm_context *context)
{
	const struct vmm_context *ended = vmm_hazard_retire(VMM_HAZARD_CONTEXT, context->hazard);

	vmm_assert(ended == context);
}

void vmm_sched_destroy_device(struct vmm_device *device)
{
	struct vmm_adapter *adapter = device->adapter;
	void *handle = device->hazard;

	vmm_assert(vmm_device_is_valid(device));
	/*
	 * No thread is inside the device, so none creates or ends contexts; but threads may still
	 * be inside its contexts.
	 */
	while (!vmm_list_empty(&device->contexts)) {
		struct vmm_context *context =
			vmm_container_of(device->contexts.next, struct vmm_context, link);

		if (!device->stopped)
			retire_handle(context);
		destroy_context(context);
	}
	vmm_hw_destroy_device(device);
	vmm_address_end_device(device);
	vmm_display_close_device(device);
	/*
	 * Its packets are complete. The paging that was queued for them must be, too. Other
	 * devices' work may continue (SCH-07).
	 */
	vmm_sched_wait(adapter, adapter->paging_timeline,
		       atomic_load(&adapter->timeline[adapter->paging_timeline].queued),
		       VIDMM_WAIT_DESTROY);
	/*
	 * The submit lock keeps other threads, the worker included, from closing allocations of
	 * this device.
	 */
	vmm_submit_lock(adapter);
	vmm_memory_close_device(device);
	vmm_submit_unlock(adapter);
	vmm_sync_end_device(device);
	vmm_context_allocations_retire(device, NULL);
	vmm_port_destroy_device(adapter->port, device->kmd_device);
	vmm_context_allocations_end(device, NULL);
	unlink_device(device);
	if (device->stopped) {
		vmm_stopped_device_keep(device);
		return;
	}
	vmm_free(device);
	vmm_hazard_retired(handle);
}

/* Returns the handle of a device that has not been stopped; NULL: there is none. */
static void *next_to_stop(struct vmm_adapter *adapter)
{
	struct vmm_list *link;
	void *handle = NULL;

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (!device->stopped)
			handle = device->hazard;
	}
	vmm_state_unlock(adapter);
	return handle;
}

void vmm_sched_close_devices(struct vmm_adapter *adapter)
{
	void *handle;

	while ((handle = next_to_stop(adapter)) != NULL) {
		struct vmm_device *device = vmm_device_stop(handle);
		struct vmm_list *link;

		if (!device) {
			vmm_hazard_await_retired(adapter->os, handle); /* its client ends it */
			continue;
		}
		vmm_list_for_each (link, &device->contexts) {
			struct vmm_context *context =
				vmm_container_of(link, struct vmm_context, link);

			retire_handle(context);
			vmm_steps_give_up(context);
		}
		device->stopped = true;
	}
}

void vmm_sched_destroy_devices(struct vmm_adapter *adapter)
{
	while (!vmm_list_empty(&adapter->devices))
		vmm_sched_destroy_device(
			vmm_container_of(adapter->devices.next, struct vmm_device, adapter_link));
}
