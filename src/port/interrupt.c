/* SPDX-License-Identifier: MIT */
/*
 * The device's interrupt and its DPC. The interrupt lock implements DIRQL: NotifyInterrupt is
 * accepted only from its holder, which is inside DxgkCbSynchronizeExecution. The DPC is one kernel
 * DPC: it is queued at most once, never re-entered (SUB-09), and run by the thread that lowers its
 * IRQL below DISPATCH_LEVEL. The adapters of a link share the lead's lock and DPC, because their
 * reports concern one adapter.
 */
#include "port/port_internal.h"

static void call_dpc_routine(struct vmm_port *port)
{
	struct vmm_port_call call;

	if (vmm_port_dead(port))
		return;
	call = vmm_port_enter_any(port, VMM_PORT_PLACE_DPC);
	port->ddi.DxgkDdiDpcRoutine(port->adapter);
	vmm_port_leave_any(&call);
}

static VOID dpc_routine(struct _KDPC *dpc, PVOID context, PVOID unused1, PVOID unused2)
{
	struct vmm_port *port = context;

	(void)dpc, (void)unused1, (void)unused2;
	if (port->link_count == 1) {
		call_dpc_routine(port);
		return;
	}
	for (uint32_t i = 0; i < port->link_count; i++)
		if (atomic_exchange(&port->link[i]->dpc_wanted, false))
			call_dpc_routine(port->link[i]);
}

void vmm_port_interrupt_init(struct vmm_port *port)
{
	vmm_nt_interrupt_init(&port->interrupt, port->nt, VMM_PORT_RANK_INTERRUPT,
			      "device interrupt");
	KeInitializeDpc(&port->dpc, dpc_routine, port);
}

void vmm_port_interrupt_listen(struct vmm_port *port, bool listening)
{
	/*
	 * Taking the lock waits for the interrupt routine that is running: after it no thread is on
	 * its way to the sink.
	 */
	uint64_t *slots = VMM_OS_OWN(port->os)->slot;
	uint32_t irql = vmm_nt_interrupt_enter(&port->interrupt, slots);

	atomic_store(&port->listening, listening);
	vmm_nt_interrupt_leave(&port->interrupt, slots, irql);
}

void vmm_port_interrupt_finish(struct vmm_port *port)
{
	struct vmm_os *world = vmm_os_set_current(port->os);

	KeFlushQueuedDpcs();
	atomic_store(&port->connected, false);
	KeRemoveQueueDpc(&port->lead->dpc);
	KeFlushQueuedDpcs();
	vmm_os_set_current(world);
}

/* DxgkCbQueueDpc. FALSE: the DPC is queued already. (SUB-09) */
BOOLEAN vmm_port_cb_queue_dpc(HANDLE handle)
{
	struct vmm_port *port = vmm_port_from_handle(handle, "DxgkCbQueueDpc");
	struct vmm_os_front *world = vmm_os_here.current;
	BOOLEAN queued;

	if (!port || !atomic_load(&port->connected))
		return FALSE;
	vmm_port_callback_event(port, VIDMM_CB_QUEUE_DPC, STATUS_SUCCESS);
	if (vmm_os_mutex_held(&port->lead->interrupt.mutex))
		port->lead->queued = true;
	if (vmm_unlikely(port->lead->link_count > 1))
		atomic_store(&port->dpc_wanted, true);
	vmm_os_here.current = VMM_OS_FRONT(port->os);
	queued = KeInsertQueueDpc(&port->lead->dpc, NULL, NULL);
	vmm_os_here.current = world;
	return queued;
}

/*
 * Leaves the interrupt level after a routine of the miniport. Reports it if the routine notified an
 * interrupt and queued no DPC. (SUB-08)
 */
static void leave(struct vmm_port *port, struct vmm_port_call *call, uint32_t irql)
{
	struct vmm_port *lead = port->lead;
	bool forgotten = lead->notified && !lead->queued;

	vmm_nt_interrupt_leave(&lead->interrupt, call->own->slot, irql);
	vmm_port_leave_any(call);
	if (forgotten)
		vmm_finding(
			port->observe, "SUB-08", 0, 0,
			"DxgkCbNotifyInterrupt was called and no DPC queued before the interrupt "
			"level was left");
}

static uint32_t enter(struct vmm_port *port, struct vmm_port_call *call, uint32_t place)
{
	struct vmm_port *lead = port->lead;
	uint32_t irql;

	*call = vmm_port_enter_any(port, place);
	irql = vmm_nt_interrupt_enter(&lead->interrupt, call->own->slot);
	lead->notified = lead->queued = lead->display_notified = false;
	return irql;
}

bool vmm_port_interrupt_routine(struct vmm_port *port, uint32_t message)
{
	struct vmm_port_call call;
	uint32_t irql = enter(port, &call, VMM_PORT_PLACE_INTERRUPT);
	bool claimed = port->ddi.DxgkDdiInterruptRoutine(port->adapter, message);

	leave(port, &call, irql);
	return claimed;
}

NTSTATUS vmm_port_cb_synchronize_execution(HANDLE handle, PKSYNCHRONIZE_ROUTINE routine,
					   PVOID context, ULONG message, PBOOLEAN result)
{
	struct vmm_port *port = vmm_port_from_handle(handle, "DxgkCbSynchronizeExecution");
	struct vmm_port_call call;
	uint32_t irql;

	if (!port)
		return STATUS_INVALID_PARAMETER;
	if (!routine || !result || message >= vmm_port_messages(port))
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SUB-13", 0, 0,
			"DxgkCbSynchronizeExecution with %s%s, message %u: the device has %s",
			routine ? "a routine" : "no routine",
			result ? "" : " and no result pointer", message,
			vmm_port_messages(port) == 1 ? "one interrupt, number 0"
						     : "fewer messages");
	if (!vmm_port_below(port, VMM_NT_DISPATCH, "DxgkCbSynchronizeExecution"))
		return STATUS_INVALID_DEVICE_STATE;
	if (!atomic_load(&port->connected))
		return STATUS_UNSUCCESSFUL;
	irql = enter(port, &call, VMM_PORT_PLACE_SYNCHRONIZED);
	*result = routine(context);
	leave(port, &call, irql);
	vmm_port_callback_event(port, VIDMM_CB_SYNCHRONIZE_EXECUTION, STATUS_SUCCESS);
	return STATUS_SUCCESS;
}

static bool get_ordinals(const struct vmm_port *port, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data,
			 struct vmm_port_ordinals *ordinals)
{
	switch (data->InterruptType) {
	case DXGK_INTERRUPT_DMA_PAGE_FAULTED: /* since 2.0 */
		if (!port->caps.wddm2)
			return false;
		*ordinals = (struct vmm_port_ordinals){data->DmaPageFaulted.NodeOrdinal,
						       data->DmaPageFaulted.EngineOrdinal};
		return true;
	case DXGK_INTERRUPT_DMA_COMPLETED:
		*ordinals = (struct vmm_port_ordinals){data->DmaCompleted.NodeOrdinal,
						       data->DmaCompleted.EngineOrdinal};
		return true;
	case DXGK_INTERRUPT_DMA_PREEMPTED:
		*ordinals = (struct vmm_port_ordinals){data->DmaPreempted.NodeOrdinal,
						       data->DmaPreempted.EngineOrdinal};
		return true;
	case DXGK_INTERRUPT_DMA_FAULTED:
		*ordinals = (struct vmm_port_ordinals){data->DmaFaulted.NodeOrdinal,
						       data->DmaFaulted.EngineOrdinal};
		return true;
	case DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED:
		*ordinals = (struct vmm_port_ordinals){data->MonitoredFenceSignaled.NodeOrdinal,
						       data->MonitoredFenceSignaled.EngineOrdinal};
		return true;
	case DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED:
		*ordinals = (struct vmm_port_ordinals){data->HwQueuePageFaulted.NodeOrdinal,
						       data->HwQueuePageFaulted.EngineOrdinal};
		return true;
	default:
		return false;
	}
}

/*
 * Interrupts of hardware queues. These exist only where the miniport supports them (SCH-10), and
 * never on a link.
 */
static bool is_hw_queue_interrupt(const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	return data->InterruptType == DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED ||
	       data->InterruptType == DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED ||
	       data->InterruptType == DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED;
}

/*
 * Reports an interrupt with the core's node number (struct vmm_port_caps), for a node of another
 * adapter than the lead. Only the members of this interrupt type are copied: the structure of an
 * older miniport ends there.
 */
static void report_with_core_node(struct vmm_port *port,
				  const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data, uint32_t node)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA copy = {.InterruptType = data->InterruptType};

	if (data->InterruptType == DXGK_INTERRUPT_DMA_COMPLETED) {
		copy.DmaCompleted = data->DmaCompleted;
		copy.DmaCompleted.NodeOrdinal = node;
	} else if (data->InterruptType == DXGK_INTERRUPT_DMA_PREEMPTED) {
		copy.DmaPreempted = data->DmaPreempted;
		copy.DmaPreempted.NodeOrdinal = node;
	} else if (data->InterruptType == DXGK_INTERRUPT_DMA_PAGE_FAULTED) {
		copy.DmaPageFaulted = data->DmaPageFaulted;
		copy.DmaPageFaulted.NodeOrdinal = node;
	} else {
		copy.DmaFaulted = data->DmaFaulted;
		copy.DmaFaulted.NodeOrdinal = node;
	}
	port->sink->interrupt(port->sink_context, &copy);
}

/* PRS-05: target n shows source n. */
static NTSTATUS notify_vsync(struct vmm_port *port, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	if (!port->caps.source_count)
		return STATUS_NOT_SUPPORTED; /* the adapter runs as a render adapter */
	port->display_notified = true;
	if (data->CrtcVsync.VidPnTargetId >= port->caps.source_count)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "PRS-05", 0, 0,
			"CRTC_VSYNC of target %u: must be below the adapter's %u sources",
			data->CrtcVsync.VidPnTargetId, port->caps.source_count);
	port->sink->interrupt(port->sink_context, data);
	return STATUS_SUCCESS;
}

/* A page fault names its packet by the id, or the flag says that the packet is unknown. */
static void check_page_fault(struct vmm_port *port, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	bool invalid = data->DmaPageFaulted.PageFaultFlags & DXGK_PAGE_FAULT_FENCE_INVALID;

	if (invalid != !data->DmaPageFaulted.FaultedFenceId)
		vmm_finding(
			port->observe, "TDR-19", 0, 0,
			"DMA_PAGE_FAULTED of node %u with FaultedFenceId 0x%08x and flags 0x%x: "
			"FENCE_INVALID must be set if and only if the id is 0",
			data->DmaPageFaulted.NodeOrdinal, data->DmaPageFaulted.FaultedFenceId,
			(unsigned)data->DmaPageFaulted.PageFaultFlags);
}

/* PMF-07; the payload exists since 2.2. */
static NTSTATUS notify_periodic(struct vmm_port *port, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	if (!port->caps.source_count || !port->ddi.DxgkDdiCreatePeriodicFrameNotification)
		return STATUS_NOT_SUPPORTED;
	port->display_notified = true;
	if (data->PeriodicMonitoredFenceSignaled.VidPnTargetId >= port->caps.source_count)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "PMF-07", 0, 0,
			"interrupt 14 of target %u: must be below the adapter's %u sources",
			data->PeriodicMonitoredFenceSignaled.VidPnTargetId,
			port->caps.source_count);
	port->sink->interrupt(port->sink_context, data);
	return STATUS_SUCCESS;
}

static NTSTATUS notify(struct vmm_port *port, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	uint32_t irql = vmm_nt_irql(port->nt);
	struct vmm_port_ordinals ordinals;

	if (irql != VMM_NT_DEVICE || !vmm_os_mutex_held(&port->interrupt.mutex))
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_DEVICE_STATE, "SUB-10", 0, 0,
			"DxgkCbNotifyInterrupt at IRQL %u, outside the interrupt routine and "
			"DxgkCbSynchronizeExecution: ignored",
			irql);
	if (!data || vmm_port_dead(port))
		return STATUS_INVALID_PARAMETER;
	port->notified = true;
	if (!atomic_load(&port->listening))
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_DEVICE_STATE, "SUB-12", 0, 0,
			"interrupt type %d before the adapter has started or after it stops: "
			"nothing was submitted",
			(int)data->InterruptType);
	if (data->InterruptType == DXGK_INTERRUPT_CRTC_VSYNC)
		return notify_vsync(port, data);
	/*
	 * From WDDM 2.0 on the miniport may signal this for fences that its GPU writes, with
	 * hardware queues or without (MFN-27).
	 */
	bool of_fences =
		data->InterruptType == DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED && port->caps.wddm2;
	if (is_hw_queue_interrupt(data) && !port->caps.hw_nodes && !of_fences)
		return STATUS_NOT_SUPPORTED;
	if (data->InterruptType == DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED) {
		port->sink->interrupt(port->sink_context, data);
		return STATUS_SUCCESS;
	}
	if (data->InterruptType == DXGK_INTERRUPT_PERIODIC_MONITORED_FENCE_SIGNALED)
		return notify_periodic(port, data);
	/* Interrupts of displays or of WDDM 2.x that are not built. */
	if (!get_ordinals(port, data, &ordinals))
		return STATUS_NOT_SUPPORTED;
	if (vmm_unlikely(port->display_notified))
		vmm_finding(port->observe, "SUB-11", 0, 0,
			    "interrupt type %d was reported after a CRTC_VSYNC in one call of the "
			    "interrupt routine: DMA interrupts must come first",
			    (int)data->InterruptType);
	if (ordinals.node >= port->caps.nodes_each || ordinals.engine >= port->link_count)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER,
			ordinals.engine >= port->link_count ? "SCH-08" : "SCH-07", 0, 0,
			"interrupt type %d of node %u, engine %u: the adapter has only %u nodes "
			"of %u engines",
			(int)data->InterruptType, ordinals.node, ordinals.engine,
			port->caps.nodes_each, port->link_count);
	if (vmm_unlikely(data->InterruptType == DXGK_INTERRUPT_DMA_PAGE_FAULTED))
		check_page_fault(port, data);
	if (vmm_unlikely(atomic_load(&port->losing)) &&
	    data->InterruptType == DXGK_INTERRUPT_DMA_COMPLETED) {
		/* the miniport does not learn of it. */
		atomic_fetch_add(&port->lost, 1);
		return STATUS_SUCCESS;
	}
	if (vmm_unlikely(ordinals.engine))
		report_with_core_node(port, data, vmm_port_node_of(port, ordinals));
	else
		port->sink->interrupt(port->sink_context, data);
	return STATUS_SUCCESS;
}

uint32_t vmm_port_lose_completions(struct vmm_port *port, bool lose)
{
	atomic_store(&port->lead->losing, lose);
	return atomic_load(&port->lead->lost);
}

VOID vmm_port_cb_notify_interrupt(IN_CONST_HANDLE handle,
				  IN_CONST_PDXGKARGCB_NOTIFY_INTERRUPT_DATA data)
{
	struct vmm_port *port = vmm_port_from_handle(handle, "DxgkCbNotifyInterrupt");

	if (port)
		vmm_port_callback_event(port, VIDMM_CB_NOTIFY_INTERRUPT, notify(port->lead, data));
}

VOID vmm_port_cb_notify_dpc(IN_CONST_HANDLE handle)
{
	struct vmm_port *port = vmm_port_from_handle(handle, "DxgkCbNotifyDpc");
	uint32_t irql;

	if (!port || vmm_port_dead(port))
		return;
	irql = vmm_nt_irql(port->nt);
	if (irql != VMM_NT_DISPATCH) {
		vmm_finding(port->observe, "SUB-07", 0, 0,
			    "DxgkCbNotifyDpc at IRQL %u: must be called in the DPC, at "
			    "DISPATCH_LEVEL; ignored",
			    irql);
		vmm_port_callback_event(port, VIDMM_CB_NOTIFY_DPC, STATUS_INVALID_DEVICE_STATE);
		return;
	}
	vmm_port_callback_event(port, VIDMM_CB_NOTIFY_DPC, STATUS_SUCCESS);
	if (!atomic_load(&port->lead->listening))
		return; /* no packet is outstanding: there is nothing to report */
	port->sink->dpc(port->sink_context);
}
