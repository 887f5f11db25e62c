/* SPDX-License-Identifier: MIT */
/*
 * DDIs that create and destroy objects: devices, contexts, allocations. PASSIVE_LEVEL; of the
 * core's locks the caller holds the submit lock at most. Arguments that the miniport may change are
 * copied where a failure must leave the caller's unchanged.
 */
#include "port/port_internal.h"

/* An object whose destruction fails counts as destroyed. */
static NTSTATUS finish_destroy(struct vmm_port *port, const char *rule, enum vidmm_ddi ddi,
			       NTSTATUS status)
{
	if (vmm_unlikely(status != STATUS_SUCCESS))
		vmm_port_wrong_status(port, rule, ddi, status);
	return status;
}

/* ---- devices ---- */

static void remember_device(struct vmm_port *port, struct vmm_port_device *record)
{
	vmm_port_lock(port);
	vmm_list_push_back(&port->devices, &record->link);
	vmm_port_unlock(port);
}

static struct vmm_port_device *find_device_locked(struct vmm_port *port, HANDLE device)
	VMM_REQUIRES(vmm_port_lock_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&port->lock);
	vmm_list_for_each (pos, &port->devices) {
		struct vmm_port_device *record =
			vmm_container_of(pos, struct vmm_port_device, link);

		if (record->device == device)
			return record;
	}
	return NULL;
}

static void forget_device(struct vmm_port *port, HANDLE device)
{
	struct vmm_port_device *record;

	vmm_port_lock(port);
	record = find_device_locked(port, device);
	if (record)
		vmm_list_remove(&record->link);
	vmm_port_unlock(port);
	vmm_free(record);
}

void vmm_port_devices_forget(struct vmm_port *port)
{
	while (!vmm_list_empty(&port->devices)) {
		struct vmm_list *link = port->devices.next;

		vmm_list_remove(link);
		vmm_free(vmm_container_of(link, struct vmm_port_device, link));
	}
}

static NTSTATUS call_create_device(struct vmm_port *port, DXGKARG_CREATEDEVICE *args,
				   uint32_t *suspensions)
{
	UINT flags = args->Flags.Value;
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_begin_waiting(port))
		return STATUS_DEVICE_REMOVED;
	*suspensions = atomic_load(&port->suspensions);
	call = vmm_port_enter(port, VIDMM_DDI_CREATE_DEVICE);
	status = port->ddi.DxgkDdiCreateDevice(port->adapter, args);
	vmm_port_call_end(port, &call, VIDMM_DDI_CREATE_DEVICE, status, flags, 0, 0);
	return vmm_port_finish_create(port, "DMA-01", VIDMM_DDI_CREATE_DEVICE, status,
				      STATUS_SUCCESS);
}

static NTSTATUS create_device(struct vmm_port *port, HANDLE *handle, bool system,
			      HANDLE kmd_process, DXGK_DEVICEINFO *info, uint32_t *suspensions)
{
	DXGKARG_CREATEDEVICE args = {.hDevice = *handle, .hKmdProcess = kmd_process};
	struct vmm_port_device *record;
	const DXGK_DEVICEINFO *untouched;
	NTSTATUS status;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	record = vmm_calloc(1, sizeof(*record));
	if (!record)
		return STATUS_NO_MEMORY;
	args.pInfo = NULL;
	args.Flags.SystemDevice = system;
	/*
	 * pInfo and Flags share eight bytes. The miniport reads Flags, then may store a pointer
	 * there or leave them unchanged.
	 */
	untouched = args.pInfo;
	status = call_create_device(port, &args, suspensions);
	if (status != STATUS_SUCCESS) {
		vmm_free(record);
		return status;
	}
	record->device = args.hDevice;
	if (args.pInfo != untouched && args.pInfo)
		record->info = *args.pInfo;
	*handle = args.hDevice;
	*info = record->info;
	remember_device(port, record);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_port_create_device(struct vmm_port *port, HANDLE *handle, bool system,
				DXGK_DEVICEINFO *info)
{
	uint32_t suspensions;

	return create_device(port, handle, system, NULL, info, &suspensions);
}

NTSTATUS vmm_port_create_process_device(struct vmm_port *port, HANDLE *handle, HANDLE kmd_process,
					DXGK_DEVICEINFO *info, uint32_t *suspensions)
{
	return create_device(port, handle, false, kmd_process, info, suspensions);
}

NTSTATUS vmm_port_create_system_device(struct vmm_port *port, HANDLE *handle, HANDLE kmd_process,
				       DXGK_DEVICEINFO *info)
{
	uint32_t suspensions;

	return create_device(port, handle, true, kmd_process, info, &suspensions);
}

NTSTATUS vmm_port_destroy_device(struct vmm_port *port, HANDLE device)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	/* Before the call: the miniport may reuse the handle for its next device. */
	forget_device(port, device);
	if (!vmm_port_begin_waiting(port))
		return STATUS_DEVICE_REMOVED;
	call = vmm_port_enter(port, VIDMM_DDI_DESTROY_DEVICE);
	status = port->ddi.DxgkDdiDestroyDevice(device);
	vmm_port_call_end(port, &call, VIDMM_DDI_DESTROY_DEVICE, status, 0, 0, 0);
	return finish_destroy(port, "PNP-03", VIDMM_DDI_DESTROY_DEVICE, status);
}

/* ---- contexts ---- */

/* DMA-33: a miniport without contexts uses its device as the context. */
static NTSTATUS device_as_context(struct vmm_port *port, HANDLE device, DXGKARG_CREATECONTEXT *args)
{
	const struct vmm_port_device *record;
	DXGK_DEVICEINFO info = {0};

	vmm_port_lock(port);
	record = find_device_locked(port, device);
	if (record)
		info = record->info;
	vmm_port_unlock(port);
	vmm_assert(record);
	if (!info.DmaBufferSize)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "DMA-33", 0, 0,
			"a miniport without MultiEngineAware must return a DXGK_DEVICEINFO with a "
			"DmaBufferSize");
	args->hContext = device;
	args->ContextInfo = (DXGK_CONTEXTINFO){
		.DmaBufferSize = info.DmaBufferSize,
		.DmaBufferSegmentSet = info.DmaBufferSegmentSet,
		.DmaBufferPrivateDataSize = info.DmaBufferPrivateDataSize,
		.AllocationListSize = info.AllocationListSize,
		.PatchLocationListSize = info.PatchLocationListSize,
	};
	return STATUS_SUCCESS;
}

static NTSTATUS check_ordinals(struct vmm_port *port, const DXGKARG_CREATECONTEXT *args)
{
	UINT affinity = args->EngineAffinity;

	if (args->NodeOrdinal >= port->caps.nodes_each)
		return vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "SCH-07", 0, 0,
				       "NodeOrdinal is %u, must be 0 to %u", args->NodeOrdinal,
				       port->caps.nodes_each - 1);
	if ((affinity & (affinity - 1)) || affinity >> port->link_count)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SCH-08", 0, 0,
			"EngineAffinity is 0x%x, must have one bit, for one of the node's %u "
			"engines",
			affinity, port->link_count);
	return STATUS_SUCCESS;
}

/* Checks the context capabilities that WDDM 2.0 added. */
static NTSTATUS check_context_caps(struct vmm_port *port, DXGKARG_CREATECONTEXT *args)
{
	const DXGK_CONTEXTINFO_CAPS built = {.NoPatchingRequired = 1}; /* DMA-25 */
	DXGK_CONTEXTINFO_CAPS *caps = &args->ContextInfo.Caps;

	if (!port->caps.wddm2)
		caps->Value = 0;
	if (!(caps->Value & ~built.Value))
		return STATUS_SUCCESS;
	vmm_reason(
		port->observe, STATUS_NOT_SUPPORTED, 0, 0,
		"DxgkDdiCreateContext: DXGK_CONTEXTINFO_CAPS is 0x%x; DriverManagesResidency 0x2 "
		"and UseIoMmu 0x4 are not built",
		caps->Value);
	(void)!vmm_port_destroy_context(port, args->hContext);
	return STATUS_NOT_SUPPORTED;
}

NTSTATUS vmm_port_create_context(struct vmm_port *port, HANDLE device, DXGKARG_CREATECONTEXT *args)
{
	DXGKARG_CREATECONTEXT copy = *args;
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	status = check_ordinals(port, args);
	if (status != STATUS_SUCCESS)
		return status;
	if (!port->caps.multi_engine_aware)
		return device_as_context(port, device, args);
	copy.EngineAffinity = args->EngineAffinity ? args->EngineAffinity : 1; /* SCH-08 */
	if (!vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	call = vmm_port_enter(port, VIDMM_DDI_CREATE_CONTEXT);
	status = port->ddi.DxgkDdiCreateContext(device, &copy);
	vmm_port_call_end(port, &call, VIDMM_DDI_CREATE_CONTEXT, status, args->NodeOrdinal,
			  args->Flags.Value, 0);
	status = vmm_port_finish_create(port, "DMA-01", VIDMM_DDI_CREATE_CONTEXT, status,
					STATUS_GRAPHICS_DRIVER_MISMATCH);
	if (status == STATUS_SUCCESS)
		status = check_context_caps(port, &copy);
	if (status == STATUS_SUCCESS)
		*args = copy;
	return status;
}

NTSTATUS vmm_port_destroy_context(struct vmm_port *port, HANDLE context)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	/* DMA-33: the context is the device, which is destroyed separately. */
	if (!port->caps.multi_engine_aware)
		return STATUS_SUCCESS;
	if (!vmm_port_begin_waiting(port))
		return STATUS_DEVICE_REMOVED;
	call = vmm_port_enter(port, VIDMM_DDI_DESTROY_CONTEXT);
	status = port->ddi.DxgkDdiDestroyContext(context);
	vmm_port_call_end(port, &call, VIDMM_DDI_DESTROY_CONTEXT, status, 0, 0, 0);
	return finish_destroy(port, "PNP-03", VIDMM_DDI_DESTROY_CONTEXT, status);
}

/* ---- allocations ---- */

NTSTATUS vmm_port_create_allocation(struct vmm_port *port, DXGKARG_CREATEALLOCATION *args)
{
	struct vmm_port_call call;
	HANDLE resource = args->hResource;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_CREATE_ALLOCATION))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiCreateAllocation(port->adapter, args);
	vmm_port_call_end(port, &call, VIDMM_DDI_CREATE_ALLOCATION, status, args->NumAllocations,
			  args->Flags.Value, 0);
	status = vmm_port_finish_create(port, "ALF-33", VIDMM_DDI_CREATE_ALLOCATION, status,
					STATUS_GRAPHICS_DRIVER_MISMATCH);
	if (status != STATUS_SUCCESS)
		args->hResource = resource;
	return status;
}

NTSTATUS vmm_port_validate_property(struct vmm_port *port,
				    const DXGKARG_VALIDATEUPDATEALLOCPROPERTY *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, false,
					VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiValidateUpdateAllocationProperty(port->adapter, args);
	vmm_port_call_end(port, &call, VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY, status,
			  args->PropertyMaskValue, args->SupportedSegmentSet,
			  args->PreferredSegment.Value);
	return status < 0 ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}

NTSTATUS vmm_port_set_backing_store(struct vmm_port *port, HANDLE allocation, void *address)
{
	DXGKARG_SETALLOCATIONBACKINGSTORE args = {allocation, address};
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_SET_ALLOCATION_BACKING_STORE))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiSetAllocationBackingStore(port->adapter, &args);
	vmm_port_call_end(port, &call, VIDMM_DDI_SET_ALLOCATION_BACKING_STORE, status, 0, 0, 0);
	return vmm_port_finish_create(port, "ALF-30", VIDMM_DDI_SET_ALLOCATION_BACKING_STORE,
				      status, STATUS_SUCCESS);
}

NTSTATUS vmm_port_standard_allocation(struct vmm_port *port,
				      DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	if (!port->ddi.DxgkDdiGetStandardAllocationDriverData)
		return STATUS_NOT_SUPPORTED;
	vmm_port_check_rank(&port->object_rank);
	call = vmm_port_enter(port, VIDMM_DDI_GET_STANDARD_ALLOCATION_DRIVER_DATA);
	status = port->ddi.DxgkDdiGetStandardAllocationDriverData(port->adapter, args);
	vmm_port_leave(port, &call, VIDMM_DDI_GET_STANDARD_ALLOCATION_DRIVER_DATA);
	vmm_port_ddi_event(port, VIDMM_DDI_GET_STANDARD_ALLOCATION_DRIVER_DATA, status,
			   (uint64_t)args->StandardAllocationType,
			   args->AllocationPrivateDriverDataSize, 0);
	return vmm_port_finish_create(port, "ALF-38", VIDMM_DDI_GET_STANDARD_ALLOCATION_DRIVER_DATA,
				      status, STATUS_NOT_SUPPORTED);
}

NTSTATUS vmm_port_describe_allocation(struct vmm_port *port, DXGKARG_DESCRIBEALLOCATION *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	call = vmm_port_enter(port, VIDMM_DDI_DESCRIBE_ALLOCATION);
	status = port->ddi.DxgkDdiDescribeAllocation(port->adapter, args);
	vmm_port_leave(port, &call, VIDMM_DDI_DESCRIBE_ALLOCATION);
	vmm_port_ddi_event(port, VIDMM_DDI_DESCRIBE_ALLOCATION, status, args->Width, args->Height,
			   (uint64_t)args->Format);
	return vmm_port_finish_create(port, "ALF-39", VIDMM_DDI_DESCRIBE_ALLOCATION, status,
				      STATUS_NOT_SUPPORTED);
}

NTSTATUS vmm_port_destroy_allocation(struct vmm_port *port, HANDLE resource,
				     const HANDLE *allocations, UINT count, bool destroy_resource)
{
	DXGKARG_DESTROYALLOCATION args = {.NumAllocations = count,
					  .pAllocationList = allocations,
					  .hResource = resource,
					  .Flags.DestroyResource = destroy_resource};
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, true, VIDMM_DDI_DESTROY_ALLOCATION))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiDestroyAllocation(port->adapter, &args);
	vmm_port_call_end(port, &call, VIDMM_DDI_DESTROY_ALLOCATION, status, count,
			  destroy_resource, 0);
	return finish_destroy(port, "ALF-34", VIDMM_DDI_DESTROY_ALLOCATION, status);
}

NTSTATUS vmm_port_open_allocation(struct vmm_port *port, HANDLE device,
				  DXGKARG_OPENALLOCATION *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_OPEN_ALLOCATION))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiOpenAllocation(device, args);
	vmm_port_call_end(port, &call, VIDMM_DDI_OPEN_ALLOCATION, status, args->NumAllocations,
			  args->Flags.Value, 0);
	return vmm_port_finish_create(port, "ALF-34", VIDMM_DDI_OPEN_ALLOCATION, status,
				      STATUS_GRAPHICS_DRIVER_MISMATCH);
}

NTSTATUS vmm_port_close_allocation(struct vmm_port *port, HANDLE device,
				   const HANDLE *open_allocations, UINT count)
{
	DXGKARG_CLOSEALLOCATION args = {.NumAllocations = count,
					.pOpenHandleList = open_allocations};
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, true, VIDMM_DDI_CLOSE_ALLOCATION))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiCloseAllocation(device, &args);
	vmm_port_call_end(port, &call, VIDMM_DDI_CLOSE_ALLOCATION, status, count, 0, 0);
	return finish_destroy(port, "ALF-34", VIDMM_DDI_CLOSE_ALLOCATION, status);
}
