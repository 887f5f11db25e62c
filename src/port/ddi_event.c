/* SPDX-License-Identifier: MIT */
/*
 * Client events that the miniport sets (CPN-05 to CPN-08). The miniport knows an event by a
 * number that names a slot and a generation, so stale and invented numbers are recognized.
 *
 * DxgkCbSignalEvent has no DeviceHandle. It may come from any thread, up to DISPATCH_LEVEL and
 * under a spin lock, so it takes no lock. Instead it counts itself in the slot while the number is
 * live. The end of an event waits until that count is zero. The slots are static: they outlive
 * every port.
 */
#include "port/port_internal.h"

#define SLOTS      4096u
/* First bit of the generation; the bits below count threads that are setting the event. */
#define GENERATION 32u

struct vmm_port_cpu_event {
	/* Generation (0: the number is dead) and count of threads that are setting the event. */
	_Atomic uint64_t use;
	_Atomic uint32_t moved; /* futex of the thread that waits for these */
	_Atomic bool taken;
	uint32_t generation; /* of the last use; written by the slot's owner only */
	/* constant while the number is live */
	struct vmm_port *port;
	int event;
	HANDLE driver;
};
static struct vmm_port_cpu_event slots[SLOTS];

static HANDLE number_of(const struct vmm_port_cpu_event *event)
{
	return (HANDLE)(uintptr_t)((uint64_t)event->generation << GENERATION |
				   (uint64_t)(event - slots + 1));
}

/* Returns a free slot, or NULL if all are in use. */
static struct vmm_port_cpu_event *take_slot(void)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		bool taken = atomic_load_explicit(&slots[i].taken, memory_order_relaxed);

		if (!taken && atomic_compare_exchange_strong(&slots[i].taken, &taken, true))
			return &slots[i];
	}
	return NULL;
}

static void free_slot(struct vmm_port_cpu_event *event)
{
	vmm_os_event_close(event->event);
	atomic_store(&event->taken, false);
}

/* ---- setting an event ---- */

/* Returns the slot if the number is live. It stays live until unpin_slot(). */
static struct vmm_port_cpu_event *pin_slot(HANDLE handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle, generation = number >> GENERATION;
	uint64_t index = (uint32_t)number;

	if (!generation || index - 1 >= SLOTS)
		return NULL;
	struct vmm_port_cpu_event *event = &slots[index - 1];
	uint64_t use = atomic_load(&event->use);
	do {
		if (use >> GENERATION != generation)
			return NULL;
	} while (!atomic_compare_exchange_weak(&event->use, &use, use + 1));
	return event;
}

static void unpin_slot(struct vmm_port_cpu_event *event)
{
	struct vmm_os *os = event->port->os;

	if (atomic_fetch_sub(&event->use, 1) != 1)
		return; /* other threads are inside, or no thread waits */
	atomic_fetch_add(&event->moved, 1);
	vmm_os_wake(os, &event->moved, UINT32_MAX);
}

static void retire_number(struct vmm_port_cpu_event *event)
{
	atomic_fetch_and(&event->use, UINT32_MAX);
	for (;;) {
		uint32_t seen = atomic_load(&event->moved);

		if (!atomic_load(&event->use) ||
		    vmm_os_wait(event->port->os, &event->moved, seen, VMM_OS_FOREVER,
				"the miniport to finish setting an event",
				(uint64_t)(event - slots)) == VMM_UNSUCCESSFUL)
			return;
	}
}

/* Reports the error to the miniport of the calling thread, if that is inside a DDI or a DPC. */
static NTSTATUS refuse_signal_event(const DXGKARGCB_SIGNALEVENT *data, const char *why)
{
	struct vmm_port *port = vmm_port_of_thread();

	if (port)
		vmm_finding(port->observe, "CPN-07", 0, 0,
			    "DxgkCbSignalEvent: hDxgkProcess %p, hEvent %p, flags 0x%x: %s",
			    data->hDxgkProcess, data->hEvent, data->Flags, why);
	return STATUS_INVALID_PARAMETER;
}

NTSTATUS vmm_port_cb_signal_event(IN_CONST_PDXGKARGCB_SIGNALEVENT data)
{
	if (!data)
		return STATUS_INVALID_PARAMETER;
	if (data->Reserved)
		return refuse_signal_event(data, "reserved bits are set");
	if (!data->CpuEventObject)
		return vmm_port_cb_not_built(
			NULL, "DxgkCbSignalEvent for the process of a virtual machine");
	if (data->hDxgkProcess)
		return refuse_signal_event(data, "with CpuEventObject hDxgkProcess must be 0");
	struct vmm_port_cpu_event *event = pin_slot(data->hEvent);
	if (!event)
		return refuse_signal_event(data, "hEvent is not the hDxgCpuEvent of a live event");
	NTSTATUS status = STATUS_INVALID_DEVICE_STATE;
	if (vmm_port_below(event->port, VMM_NT_DISPATCH, "DxgkCbSignalEvent")) {
		vmm_os_event_set(event->event);
		status = STATUS_SUCCESS;
	}
	vmm_port_callback_event(event->port, VIDMM_CB_OTHER, status);
	unpin_slot(event);
	return status;
}

/* ---- creation and end ---- */

static NTSTATUS call_create(struct vmm_port *port, struct vmm_port_cpu_event *event, HANDLE device)
{
	DXGKARG_CREATECPUEVENT args = {.hKmdDevice = device, .hDxgCpuEvent = number_of(event)};
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	call = vmm_port_enter(port, VIDMM_DDI_CREATE_CPU_EVENT);
	status = port->ddi.DxgkDdiCreateCpuEvent(port->adapter, &args);
	vmm_port_call_end(port, &call, VIDMM_DDI_CREATE_CPU_EVENT, status, 0, 0, 0);
	event->driver = args.hKmdCpuEvent;
	if (status == STATUS_SUCCESS)
		return status;
	/* any failure is passed on to the client */
	return vmm_port_failed(port, "CPN-08", VIDMM_DDI_CREATE_CPU_EVENT, status, status < 0);
}

NTSTATUS vmm_port_create_cpu_event(struct vmm_port *port, HANDLE device, int event,
				   struct vmm_port_cpu_event **result)
{
	int own;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	if (!port->ddi.DxgkDdiCreateCpuEvent || !port->ddi.DxgkDdiDestroyCpuEvent)
		return vmm_refuse_reason(
			port->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"CPN-08: SignalByKmd needs a miniport with DxgkDdiCreateCpuEvent and "
			"DxgkDdiDestroyCpuEvent");
	if (!vmm_ok(vmm_os_event_open((uint64_t)event, &own)))
		return STATUS_NO_MEMORY;
	struct vmm_port_cpu_event *slot = take_slot();
	if (!slot) {
		vmm_os_event_close(own);
		return STATUS_NO_MEMORY;
	}
	slot->port = port;
	slot->event = own;
	if (!++slot->generation)
		slot->generation = 1;
	/* The miniport may set the event during the call. */
	atomic_store(&slot->use, (uint64_t)slot->generation << GENERATION);
	NTSTATUS status = call_create(port, slot, device);
	if (status == STATUS_SUCCESS) {
		*result = slot;
		return status;
	}
	retire_number(slot);
	free_slot(slot);
	return status;
}

static void call_destroy(struct vmm_port *port, HANDLE driver)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port) || !vmm_port_begin_waiting(port))
		return;
	call = vmm_port_enter(port, VIDMM_DDI_DESTROY_CPU_EVENT);
	status = port->ddi.DxgkDdiDestroyCpuEvent(port->adapter, driver);
	vmm_port_call_end(port, &call, VIDMM_DDI_DESTROY_CPU_EVENT, status, 0, 0, 0);
	if (status != STATUS_SUCCESS) /* the event counts as destroyed nevertheless */
		vmm_port_wrong_status(port, "CPN-06", VIDMM_DDI_DESTROY_CPU_EVENT, status);
}

HANDLE vmm_port_cpu_event_driver(const struct vmm_port_cpu_event *event)
{
	return event->driver;
}

void vmm_port_destroy_cpu_event(struct vmm_port *port, struct vmm_port_cpu_event *event)
{
	vmm_port_check_rank(&port->object_rank);
	call_destroy(port, event->driver);
	retire_number(event);
	free_slot(event);
}
