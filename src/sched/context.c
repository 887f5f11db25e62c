/* SPDX-License-Identifier: MIT */
/*
 * Devices and contexts: the miniport's side of them, the buffers a UMD writes into, their end. A context's sizes are
 * what the miniport asked for and stay so (DMA-01, DMA-02).
 */
#include "sched/sched_private.h"

static NTSTATUS check_info(struct vmm_adapter *adapter, const struct vmm_context *context)
{
	const struct vmm_port_caps *caps = vmm_port_caps(adapter->port);
	uint32_t apertures = 0;

	for (uint32_t i = 0; i < caps->segment_count; i++)
		if (caps->segment[i].flags.Aperture)
			apertures |= 1u << i;
	if (context->dma_segment_set & ~apertures) {
		vmm_finding(
			adapter->observe, "DMA-03", context->device->process->id, 0,
			"DmaBufferSegmentSet 0x%x names a segment that is not an aperture (apertures 0x%x)",
			context->dma_segment_set, apertures);
		return STATUS_INVALID_PARAMETER;
	}
	if (!context->dma_bytes || !context->list_size ||
	    (!context->patch_size && !context->no_patching)) {
		vmm_finding(
			adapter->observe, "DMA-01", context->device->process->id, 0,
			"a context needs a DMA buffer and lists; the miniport asked for %u bytes, %u allocations, %u patch "
			"locations",
			context->dma_bytes, context->list_size, context->patch_size);
		return STATUS_INVALID_PARAMETER;
	}
	return STATUS_SUCCESS;
}

enum { GDI_ALLOCATION_LIST = 256, UNPATCHED_ALLOCATION_LIST = 16 };

static NTSTATUS check_gdi(struct vmm_adapter *adapter, const struct vmm_context *context)
{
	if (context->list_size == GDI_ALLOCATION_LIST)
		return STATUS_SUCCESS;
	vmm_finding(adapter->observe, "DMA-34", context->device->process->id, 0,
		    "the miniport asked for %u allocations for a GDI context: it has %u",
		    context->list_size, GDI_ALLOCATION_LIST);
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS make_user_buffers(struct vmm_context *context)
{
	struct vmm_context_buffers *u = &context->user;

	if (context->by_address) /* the client has its own */
		return STATUS_SUCCESS;
	u->commands = vmm_calloc(1, context->dma_bytes);
	u->allocations = vmm_calloc(context->list_size, sizeof(*u->allocations));
	if (context->patch_size)
		u->patches = vmm_calloc(context->patch_size, sizeof(*u->patches));
	u->command_bytes = context->dma_bytes;
	u->allocation_count = context->list_size;
	u->patch_count = context->patch_size;
	return u->commands && u->allocations && (u->patches || !context->patch_size)
		       ? vmm_context_show(context)
		       : STATUS_NO_MEMORY;
}

static void free_context(struct vmm_context *context)
{
	vmm_context_hide(context);
	vmm_free(context->user.commands);
	vmm_free(context->user.allocations);
	vmm_free(context->user.patches);
	vmm_free(context);
}

static NTSTATUS create_in_miniport(struct vmm_context *context,
				   const struct vmm_context_request *request)
{
	struct vmm_adapter *adapter = context->device->adapter;
	DXGKARG_CREATECONTEXT args = {
		.hContext = context,
		.NodeOrdinal = context->ordinal,
		.EngineAffinity = 1u << context->engine, /* SCH-08 */
		.pPrivateDriverData = request->private_data,
		.PrivateDriverDataSize = request->private_bytes,
	};

	args.Flags.VirtualAddressing = context->by_address;
	args.Flags.GdiContext =
		request->gdi && adapter->interface_version >= DXGKDDI_INTERFACE_VERSION_WIN7;
	struct vmm_making making;

	vmm_making_begin(&making, context->device, context);
	NTSTATUS status =
		vmm_port_create_context(adapter->port, context->device->kmd_device, &args);
	vmm_making_end(&making);

	if (!NT_SUCCESS(status))
		return status;
	context->kmd_context = context->va.kmd_context = args.hContext;
	context->dma_bytes = args.ContextInfo.DmaBufferSize;
	context->dma_segment_set = args.ContextInfo.DmaBufferSegmentSet;
	context->dma_private_bytes = args.ContextInfo.DmaBufferPrivateDataSize;
	context->list_size = args.ContextInfo.AllocationListSize;
	context->patch_size = args.ContextInfo.PatchLocationListSize;
	context->no_patching = args.ContextInfo.Caps.NoPatchingRequired;
	if (context->by_address) { /* no DMA buffer; of allocations, what is displayed (SUB-26) */
		context->no_patching = true;
		context->dma_bytes = context->dma_segment_set = 0;
	}
	if (context->no_patching) { /* DMA-25: whatever it says of sizes */
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

/* Into its device and, last of all, within reach of its client. */
static NTSTATUS publish(struct vmm_context *context, struct vmm_context_request *request)
{
	struct vmm_device *device = context->device;
	struct vmm_handle_table *handles = &device->process->handles;

	vmm_os_mutex_lock(&device->process->lock);
	context->handle = vmm_handle_create(handles, VMM_HANDLE_CONTEXT, context);
	if (context->handle) {
		vmm_list_push_back(&device->contexts, &context->link);
		request->buffers = context->shown;
		context->live = vmm_live_add(device->adapter->os, VMM_LIVE_CONTEXT, context);
		request->handle = context->live;
		if (!atomic_load(&device->default_context))
			atomic_store(&device->default_context, context->live);
		request->number = context->handle;
	}
	if (context->handle && !request->handle) {
		vmm_list_remove(&context->link);
		vmm_handle_destroy(handles, context->handle);
	}
	vmm_os_mutex_unlock(&device->process->lock);
	return request->handle ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* what a flag would ask for is built, or the context is not made. NullRendering is (SUB-22). */
static NTSTATUS check_flags(const struct vmm_device *device, uint32_t flags)
{
	static const char *const unbuilt[] = {"InitialData", "DisableGpuTimeout",
					      "SynchronizationOnly", "HwQueueSupported",
					      "NoKmdAccess"};
	const D3DDDI_CREATECONTEXTFLAGS f = {.Value = flags};
	struct vmm_observe *observe = device->adapter->observe;

	if (f.Reserved) {
		vmm_finding(observe, "Q-22", device->process->id, 0,
			    "create context: flags 0x%x have reserved bits set", flags);
		return STATUS_INVALID_PARAMETER;
	}
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(unbuilt); i++) {
		if (!(flags & 2u << i))
			continue;
		vmm_reason(observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
			   "Q-22: create context: flags 0x%x: %s is not built", flags, unbuilt[i]);
		return STATUS_NOT_SUPPORTED;
	}
	return STATUS_SUCCESS;
}

/* SCH-07, SCH-08: bit n of the affinity is adapter n of a link, the lead being 0. */
static NTSTATUS choose_node(struct vmm_context *context, const struct vmm_context_request *request)
{
	const struct vmm_adapter *adapter = context->device->adapter;
	uint32_t affinity = request->affinity ? request->affinity : 1;
	uint32_t each = adapter->node_count / adapter->physical_adapters;
	bool one_of_them =
		!(affinity & (affinity - 1)) && !(affinity >> adapter->physical_adapters);

	if (request->node >= each || !one_of_them) {
		vmm_finding(adapter->observe, one_of_them ? "SCH-07" : "SCH-08",
			    context->device->process->id, 0,
			    "create context: node %u of %u, engine affinity 0x%x, physical "
			    "adapters %u",
			    request->node, each, request->affinity, adapter->physical_adapters);
		return STATUS_INVALID_PARAMETER;
	}
	context->ordinal = request->node;
	while (affinity >> (context->engine + 1))
		context->engine++;
	context->node = context->engine * each + context->ordinal;
	return STATUS_SUCCESS;
}

NTSTATUS vmm_sched_create_context(struct vmm_device *device, struct vmm_context_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_context *context;
	NTSTATUS status;

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
		status = create_in_miniport(context, request);
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
		return status; /* its client may have ended it by now */
	if (context->by_address)
		vmm_va_detach(&context->va);
out_miniport:
	vmm_port_destroy_context(adapter->port, context->kmd_context);
out_memory:
	vmm_context_allocations_end(device, context);
	free_context(context);
	return status;
}

struct vmm_context *vmm_sched_enter_context(struct vmm_visit *visit, const void *device,
					    const void *handle)
{
	struct vmm_context *context = vmm_live_enter(visit, VMM_LIVE_CONTEXT, handle);

	if (!context || vmm_likely(context->device->live == device))
		return context;
	vmm_live_leave(visit);
	return NULL;
}

struct vmm_device *vmm_sched_context_device(const struct vmm_context *context)
{
	return context->device;
}

void *vmm_sched_context_live(const struct vmm_context *context)
{
	return context->live;
}

const struct vmm_context_buffers *vmm_sched_context_buffers(const struct vmm_context *context)
{
	return &context->shown;
}

/* Nobody is inside it and nobody can get in. */
static void destroy_context(struct vmm_context *context)
{
	struct vmm_process *process = context->device->process;
	struct vmm_adapter *adapter = context->device->adapter;
	void *handle = context->live;

	vmm_os_mutex_lock(&process->lock);
	vmm_list_remove(&context->link);
	vmm_handle_destroy(&process->handles, context->handle);
	vmm_os_mutex_unlock(&process->lock);
	vmm_broadcast_await_calls(context);
	vmm_steps_end(context);
	/* SUB-29: the miniport hears of it when its last packet is complete, and others are done with its buffers (DMA-10). */
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
	vmm_live_ended(handle);
}

NTSTATUS vmm_sched_destroy_context(struct vmm_device *device, const void *handle)
{
	struct vmm_context *context = NULL;
	struct vmm_visit visit;

	/* Whose it is does not change, so what is ended below is what was looked at here. */
	if (vmm_sched_enter_context(&visit, device->live, handle)) {
		vmm_live_leave(&visit);
		context = vmm_live_end(VMM_LIVE_CONTEXT, handle);
	}
	if (!context)
		return STATUS_INVALID_PARAMETER;
	destroy_context(context);
	return STATUS_SUCCESS;
}

/* TDR-20 */
VMM_COLD static NTSTATUS deny(const struct vmm_process *process, const struct vmm_adapter *adapter)
{
	vmm_reason(adapter->observe, VMM_DEVICE_REMOVED, process->id, 0,
		   "TDR-20: create device: process %u has hung engines too often (%u times)",
		   process->id, process->engine_resets);
	return STATUS_DEVICE_REMOVED;
}

static void unlink_device(struct vmm_device *device)
{
	struct vmm_process *process = device->process;
	struct vmm_adapter *adapter = device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_remove(&device->adapter_link);
	for (uint32_t n = 0; n < adapter->node_count; n++)
		if (adapter->sched->node[n].last_device == device)
			adapter->sched->node[n].last_device = NULL;
	vmm_os_mutex_unlock(&adapter->state_lock);
	vmm_os_mutex_lock(&process->lock);
	vmm_list_remove(&device->process_link);
	vmm_device_drop_name_locked(process, device->handle);
	vmm_handle_destroy(&process->handles, device->handle);
	vmm_os_mutex_unlock(&process->lock);
}

static NTSTATUS make_device(struct vmm_process *process, struct vmm_adapter *adapter,
			    struct vmm_device **result)
{
	if (vmm_unlikely(atomic_load(&process->denied)))
		return deny(process, adapter);
	struct vmm_device *device = vmm_calloc(1, sizeof(*device));
	DXGK_DEVICEINFO info = {0};
	struct vmm_making making;
	HANDLE handle = device;
	void *kmd_process = NULL;
	uint32_t resets = atomic_load(&adapter->resets);
	NTSTATUS status;

	if (!device)
		return STATUS_NO_MEMORY;
	device->process = process;
	device->adapter = adapter;
	vmm_list_init(&device->contexts);
	vmm_list_init(&device->resources);
	vmm_list_init(&device->refs);
	vmm_list_init(&device->residency);
	vmm_list_init(&device->paging_queues);
	vmm_list_init(&device->context_allocations);
	vmm_list_init(&device->sleepers);
	vmm_sync_begin_device(device);
	status = vmm_va_begin_device(device, &kmd_process);
	if (!NT_SUCCESS(status))
		goto out_free;
	vmm_making_begin(&making, device, NULL);
	status = vmm_port_create_device_in(adapter->port, &handle, kmd_process, &info);
	vmm_making_end(&making);
	if (!NT_SUCCESS(status))
		goto out_free;
	device->kmd_device = handle;
	device->one_buffer = info.Flags.GuaranteedDmaBufferContract;
	vmm_os_mutex_lock(&process->lock);
	device->handle = vmm_handle_create(&process->handles, VMM_HANDLE_DEVICE, device);
	if (device->handle)
		vmm_list_push_back(&process->devices, &device->process_link);
	atomic_store(&device->ending, atomic_load(&process->abandoned));
	vmm_os_mutex_unlock(&process->lock);
	if (!device->handle) {
		status = STATUS_NO_MEMORY;
		goto out_miniport;
	}
	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_push_back(&adapter->devices, &device->adapter_link);
	/* TDR-07: the miniport made it before a reset that did not find it in the list. */
	if (vmm_unlikely(atomic_load(&adapter->resets) != resets))
		atomic_store(&device->error, VMM_DEVICE_RESET);
	vmm_os_mutex_unlock(&adapter->state_lock);
	device->live = vmm_live_add(adapter->os, VMM_LIVE_DEVICE, device);
	if (!device->live) {
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

static void end_context(struct vmm_context *context)
{
	const struct vmm_context *ended = vmm_live_end(VMM_LIVE_CONTEXT, context->live);

	vmm_assert(ended == context);
}

void vmm_sched_destroy_device(struct vmm_device *device)
{
	struct vmm_adapter *adapter = device->adapter;
	void *handle = device->live;

	/* Nobody is inside the device, so nobody makes or ends contexts of it; but they may still be rendered on. */
	while (!vmm_list_empty(&device->contexts)) {
		struct vmm_context *context =
			vmm_container_of(device->contexts.next, struct vmm_context, link);

		if (!device->stopped)
			end_context(context);
		destroy_context(context);
	}
	vmm_hw_destroy_device(device);
	vmm_address_end_device(device);
	vmm_display_close_device(device);
	/* Its own packets are complete; what has been paged for them must be, too. Other devices' work may go on (SCH-07). */
	vmm_sched_wait(adapter, adapter->paging_timeline,
		       atomic_load(&adapter->timeline[adapter->paging_timeline].queued),
		       VIDMM_WAIT_DESTROY);
	/* Nobody else is closing allocations of this device then, the worker included. */
	vmm_os_mutex_lock(&adapter->submit_lock);
	vmm_memory_close_device(device);
	vmm_os_mutex_unlock(&adapter->submit_lock);
	vmm_sync_end_device(device);
	vmm_context_allocations_retire(device, NULL);
	vmm_port_destroy_device(adapter->port, device->kmd_device);
	vmm_context_allocations_end(device, NULL);
	unlink_device(device);
	vmm_free(device);
	vmm_live_ended(handle);
}

/* The handle of one that nobody has stopped yet; NULL: none. */
static void *next_to_stop(struct vmm_adapter *adapter)
{
	struct vmm_list *link;
	void *handle = NULL;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (!device->stopped)
			handle = device->live;
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	return handle;
}

void vmm_sched_close_devices(struct vmm_adapter *adapter)
{
	void *handle;

	while ((handle = next_to_stop(adapter)) != NULL) {
		struct vmm_device *device = vmm_device_end(handle);
		struct vmm_list *link;

		if (!device) {
			vmm_live_await_end(adapter->os, handle); /* its client is at it */
			continue;
		}
		vmm_list_for_each (link, &device->contexts) {
			struct vmm_context *context =
				vmm_container_of(link, struct vmm_context, link);

			end_context(context);
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
