/* SPDX-License-Identifier: MIT */
/*
 * DDIs of displays: Present and PresentToHwQueue, which translate as Render does, and the two that
 * set a source's address and visibility.
 */
#include "port/port_internal.h"

/* The failures that DxgkDdiPresent documents (DMA-37). */
static bool is_present_failure(NTSTATUS status)
{
	switch (status) {
	case STATUS_NO_MEMORY:
	case STATUS_GRAPHICS_CANNOTCOLORCONVERT:
	case STATUS_PRIVILEGED_INSTRUCTION:
	case STATUS_ILLEGAL_INSTRUCTION:
	case STATUS_INVALID_HANDLE:
	case STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE:
		return true;
	default:
		return false;
	}
}

/* The private data of a hardware queue's packet has no bytes behind it. */
VMM_COLD static void verify_outputs(struct vmm_port *port, const struct vmm_port_limits *limits,
				    const struct vmm_port_outputs *before, bool on_context)
{
	struct vmm_port_outputs checked = *before;

	if (!on_context)
		checked.private_data = NULL;
	vmm_port_verify_outputs(port, limits, &checked);
}

/* ddi: of Present and a context, or of PresentToHwQueue and a hardware queue */
static NTSTATUS present(struct vmm_port *port, enum vidmm_ddi ddi, HANDLE object,
			DXGKARG_PRESENT *args)
{
	const DXGKARG_PRESENT before = *args;
	const bool on_context = ddi == VIDMM_DDI_PRESENT;
	const struct vmm_port_limits limits = VMM_PORT_LIMITS(
		on_context ? "DxgkDdiPresent" : "DxgkDdiPresentToHwQueue", ddi, &before);
	const struct vmm_port_outputs from = VMM_PORT_OUTPUTS(&before);
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_unlikely(on_context && !port->ddi.DxgkDdiPresent))
		return vmm_port_lacks(port, "DxgkDdiPresent");
	if (!vmm_port_call_begin(port, &call, ddi))
		return STATUS_DEVICE_REMOVED;
	status = on_context ? port->ddi.DxgkDdiPresent(object, args)
			    : port->ddi.DxgkDdiPresentToHwQueue(object, args);
	if (vmm_unlikely(port->verify))
		verify_outputs(port, &limits, &from, on_context);
	vmm_port_call_end(port, &call, ddi, status, before.Flags.Value,
			  (uintptr_t)args->pDmaBuffer - (uintptr_t)before.pDmaBuffer,
			  args->MultipassOffset);
	if (status == STATUS_INSUFFICIENT_RESOURCES)
		status = STATUS_NO_MEMORY;
	if (vmm_unlikely(status != STATUS_SUCCESS &&
			 status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER))
		return vmm_port_failed(port, "DMA-37", ddi, status, is_present_failure(status));
	const struct vmm_port_outputs to = VMM_PORT_OUTPUTS(args);
	NTSTATUS checked = vmm_port_check_outputs(port, &limits, &from, &to);
	return checked == STATUS_SUCCESS ? status : checked;
}

NTSTATUS vmm_port_present(struct vmm_port *port, HANDLE context, DXGKARG_PRESENT *args)
{
	return present(port, VIDMM_DDI_PRESENT, context, args);
}

bool vmm_port_presents_to_hw_queues(const struct vmm_port *port)
{
	return port->ddi.DxgkDdiPresentToHwQueue != NULL;
}

NTSTATUS vmm_port_present_to_hw_queue(struct vmm_port *port, HANDLE queue, DXGKARG_PRESENT *args)
{
	return present(port, VIDMM_DDI_PRESENT_TO_HW_QUEUE, queue, args);
}

static NTSTATUS set_address(struct vmm_port *port, const DXGKARG_SETVIDPNSOURCEADDRESS *args,
			    NTSTATUS status)
{
	vmm_port_ddi_event(port, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS, status, args->VidPnSourceId,
			   args->PrimarySegment, (uint64_t)args->PrimaryAddress.QuadPart);
	if (status < 0)
		vmm_port_wrong_status(port, "PRS-04", VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS, status);
	return status;
}

NTSTATUS vmm_port_flip(struct vmm_port *port, const DXGKARG_SETVIDPNSOURCEADDRESS *args)
{
	struct vmm_port_call call;
	NTSTATUS status;
	uint32_t irql;

	if (vmm_port_dead(port) || !vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	call = vmm_port_enter_any(port, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS);
	irql = vmm_nt_interrupt_enter(&port->interrupt, call.own->slot);
	status = port->ddi.DxgkDdiSetVidPnSourceAddress(port->adapter, args);
	vmm_nt_interrupt_leave(&port->interrupt, call.own->slot, irql);
	vmm_port_leave_any(&call);
	vmm_port_end(port);
	return set_address(port, args, status);
}

NTSTATUS vmm_port_set_source_address(struct vmm_port *port,
				     const DXGKARG_SETVIDPNSOURCEADDRESS *args)
{
	struct vmm_port_call call = vmm_port_enter(port, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS);
	NTSTATUS status = port->ddi.DxgkDdiSetVidPnSourceAddress(port->adapter, args);

	vmm_port_leave(port, &call, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS);
	return set_address(port, args, status);
}

NTSTATUS vmm_port_set_source_visibility(struct vmm_port *port, uint32_t source, bool visible)
{
	const DXGKARG_SETVIDPNSOURCEVISIBILITY args = {.VidPnSourceId = source, .Visible = visible};
	struct vmm_port_call call = vmm_port_enter(port, VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY);
	NTSTATUS status = port->ddi.DxgkDdiSetVidPnSourceVisibility(port->adapter, &args);

	vmm_port_leave(port, &call, VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY);
	vmm_port_ddi_event(port, VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY, status, source, visible, 0);
	if (status < 0)
		vmm_port_wrong_status(port, "PRS-03", VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY,
				      status);
	return status;
}

/* ---- notifications before vertical syncs ---- */

NTSTATUS vmm_port_create_periodic(struct vmm_port *port, uint32_t target, uint64_t time_100ns,
				  uint32_t id, HANDLE *notification)
{
	DXGKARG_CREATEPERIODICFRAMENOTIFICATION args = {.hAdapter = port->adapter,
							.VidPnTargetId = target,
							.Time = time_100ns,
							.NotificationID = id};
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	if (!port->ddi.DxgkDdiCreatePeriodicFrameNotification ||
	    !port->ddi.DxgkDdiDestroyPeriodicFrameNotification)
		return vmm_refuse_reason(
			port->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"PMF-07: a periodic fence needs a miniport with "
			"DxgkDdiCreatePeriodicFrameNotification and its counterpart");
	if (!vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	call = vmm_port_enter(port, VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION);
	status = port->ddi.DxgkDdiCreatePeriodicFrameNotification(&args);
	vmm_port_call_end(port, &call, VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION, status, target,
			  time_100ns, id);
	*notification = args.hNotification;
	return vmm_port_finish_create(port, "PMF-07", VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION,
				      status, STATUS_UNSUCCESSFUL);
}

void vmm_port_destroy_periodic(struct vmm_port *port, HANDLE notification)
{
	const DXGKARG_DESTROYPERIODICFRAMENOTIFICATION args = {.hNotification = notification,
							       .hAdapter = port->adapter};
	struct vmm_port_call call;
	NTSTATUS status;

	vmm_port_check_rank(&port->object_rank);
	if (vmm_port_dead(port) || !vmm_port_begin_waiting(port))
		return;
	call = vmm_port_enter(port, VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION);
	status = port->ddi.DxgkDdiDestroyPeriodicFrameNotification(&args);
	vmm_port_call_end(port, &call, VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION, status, 0, 0,
			  0);
	if (status != STATUS_SUCCESS) /* the notification counts as destroyed nevertheless */
		vmm_port_wrong_status(port, "PMF-07", VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION,
				      status);
}
