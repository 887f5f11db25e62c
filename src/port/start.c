/* SPDX-License-Identifier: MIT */
/*
 * Start: from DriverEntry to a checked adapter; and stop. The order is that of PNP-01. A refusal
 * undoes the completed steps in reverse, so every failure of vmm_port_start leaves nothing behind.
 * One thread, PASSIVE_LEVEL, no lock.
 */
#include <string.h>
#include "port/port_internal.h"

struct vmm_lock_class vmm_port_lock_class;

#define ADAPTER_HW_ID 0xFFFFFFFFu /* DeviceUid of the adapter itself (DISPLAY_ADAPTER_HW_ID) */

/* ---- loading: DriverEntry calls DxgkInitialize, which finds its port through the thread ---- */

__attribute__((visibility("default"))) NTSTATUS DxgkInitialize(
	PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath,
	PDRIVER_INITIALIZATION_DATA DriverInitializationData)
{
	struct vmm_port *port = vmm_port_of_thread();
	NTSTATUS status;

	/* The thread is not in a DriverEntry that vmm_port_start called. */
	if (!port)
		return STATUS_INVALID_DEVICE_STATE;
	if (!port->registering || port->registered || DriverObject != &port->driver ||
	    !RegistryPath || !DriverInitializationData)
		return vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "PNP-01", 0, 0,
				       "DxgkInitialize %s: refused",
				       !port->registering ? "outside DriverEntry"
				       : port->registered ? "for the second time"
				       : DriverObject != &port->driver
					       ? "with another driver object"
					       : "without registry path or table");
	status = vmm_port_table_read(port, DriverInitializationData);
	port->registered = status == STATUS_SUCCESS;
	return status;
}

__attribute__((visibility("default"))) NTSTATUS DxgkUnInitialize(PDRIVER_OBJECT DriverObject)
{
	struct vmm_port *port = vmm_port_of_thread();

	if (!port || !port->registered || DriverObject != &port->driver)
		return STATUS_INVALID_PARAMETER;
	port->registered = false;
	return STATUS_SUCCESS;
}

static NTSTATUS run_driver_entry(struct vmm_port *port, const struct vmm_port_options *options)
{
	struct vmm_port_call call = vmm_port_enter(port, VMM_PORT_PLACE_DRIVER_ENTRY);
	NTSTATUS status;

	port->registering = true;
	status = options->driver_entry(&port->driver, &port->service_path);
	port->registering = false;
	if (vmm_nt_irql(port->nt) != VMM_NT_PASSIVE)
		vmm_port_wrong_irql(port, "DriverEntry", VMM_NT_PASSIVE);
	vmm_port_leave_any(&call);
	return status;
}

static NTSTATUS load(struct vmm_port *port, const struct vmm_port_options *options)
{
	NTSTATUS status;

	if (!options->driver_entry) {
		status = vmm_port_table_read(port, options->initialization_data);
		port->registered = status == STATUS_SUCCESS;
		return status;
	}
	status = run_driver_entry(port, options);
	if (status < 0)
		return vmm_refuse_reason(port->observe, status, 0, 0,
					 "DriverEntry failed with 0x%08x", (unsigned)status);
	if (port->registered)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "PNP-01", 0, 0,
		"DriverEntry returned 0x%08x without a successful call of DxgkInitialize",
		(unsigned)status);
}

static void unload(struct vmm_port *port)
{
	struct vmm_port_call call = vmm_port_enter(port, VIDMM_DDI_UNLOAD);

	port->ddi.DxgkDdiUnload();
	vmm_port_leave(port, &call, VIDMM_DDI_UNLOAD);
	vmm_port_ddi_event(port, VIDMM_DDI_UNLOAD, STATUS_SUCCESS, 0, 0, 0);
}

/* ---- add, start, stop, remove ---- */

static NTSTATUS add_device(struct vmm_port *port)
{
	struct vmm_port_call call = vmm_port_enter(port, VIDMM_DDI_ADD_DEVICE);
	NTSTATUS status = port->ddi.DxgkDdiAddDevice(&port->device, &port->adapter);

	vmm_port_leave(port, &call, VIDMM_DDI_ADD_DEVICE);
	vmm_port_ddi_event(port, VIDMM_DDI_ADD_DEVICE, status, 0, 0, 0);
	if (status < 0)
		vmm_reason(port->observe, status, 0, 0, "DxgkDdiAddDevice failed with 0x%08x",
			   (unsigned)status);
	return status;
}

static void remove_device(struct vmm_port *port)
{
	struct vmm_port_call call = vmm_port_enter(port, VIDMM_DDI_REMOVE_DEVICE);
	NTSTATUS status = port->ddi.DxgkDdiRemoveDevice(port->adapter);

	vmm_port_leave(port, &call, VIDMM_DDI_REMOVE_DEVICE);
	vmm_port_ddi_event(port, VIDMM_DDI_REMOVE_DEVICE, status, 0, 0, 0);
	if (status != STATUS_SUCCESS)
		vmm_port_wrong_status(port, "PNP-01", VIDMM_DDI_REMOVE_DEVICE, status);
}

/*
 * PRS-02: enables flips to primaries, the only function of displays that is built, if the miniport
 * has the DDIs.
 */
static void store_sources(struct vmm_port *port, uint32_t sources, uint32_t children)
{
	bool shows =
		port->ddi.DxgkDdiSetVidPnSourceAddress && port->ddi.DxgkDdiSetVidPnSourceVisibility;

	port->caps.source_count = shows && sources <= VMM_PORT_SOURCES_MAX ? sources : 0;
	vmm_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
		   "the adapter has %u video present sources and %u children: displays are not "
		   "built, except flips on %u sources (PRS-02)%s",
		   sources, children, port->caps.source_count,
		   shows ? ""
			 : ": the miniport has no DxgkDdiSetVidPnSourceAddress or ...Visibility");
}

/* AdapterLuid is the lead's: clients see the link as one adapter. */
static NTSTATUS start_device(struct vmm_port *port)
{
	DXGK_START_INFO info = {.RequiredDmaQueueEntry = port->caps.dma_queue_entries};
	ULONG sources = 0, children = 0;
	struct vmm_port_call call;
	NTSTATUS status;

	info.AdapterLuid.LowPart = vmm_port_luid(port->lead);
	info.AdapterGuid.Data1 = info.AdapterLuid.LowPart;
	vmm_port_services_init(port);
	/*
	 * A miniport may start its engines during the call, so interrupts are accepted from now on.
	 */
	atomic_store(&port->connected, true);
	vmm_port_model_connect(port);
	call = vmm_port_enter(port, VIDMM_DDI_START_DEVICE);
	status = port->ddi.DxgkDdiStartDevice(port->adapter, &info, &port->services, &sources,
					      &children);
	vmm_port_leave(port, &call, VIDMM_DDI_START_DEVICE);
	vmm_port_ddi_event(port, VIDMM_DDI_START_DEVICE, status, sources, children, 0);
	if (status < 0) {
		vmm_port_model_stop(port);
		vmm_port_interrupt_finish(port);
		vmm_reason(port->observe, status, 0, 0, "DxgkDdiStartDevice failed with 0x%08x",
			   (unsigned)status);
	} else if (sources || children) {
		store_sources(port, sources, children);
	}
	return status;
}

/*
 * PNP-04: a miniport that can release its display is asked to do so, which also stops it. There is
 * no display here. So the target is undefined, and the display information that the miniport
 * returns is ignored. Returns false if StopDevice must follow.
 */
static bool stop_and_release(struct vmm_port *port)
{
	DXGK_DISPLAY_INFORMATION display = {0};

	if (!port->ddi.DxgkDdiStopDeviceAndReleasePostDisplayOwnership)
		return false;
	struct vmm_port_call call =
		vmm_port_enter(port, VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP);
	NTSTATUS status = port->ddi.DxgkDdiStopDeviceAndReleasePostDisplayOwnership(
		port->adapter, D3DDDI_ID_UNINITIALIZED, &display);

	vmm_port_leave(port, &call, VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP);
	vmm_port_ddi_event(port, VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP, status,
			   0, 0, 0);
	return status >= 0;
}

static void stop_device(struct vmm_port *port)
{
	struct vmm_port_call call = vmm_port_enter(port, VIDMM_DDI_STOP_DEVICE);
	NTSTATUS status = port->ddi.DxgkDdiStopDevice(port->adapter);

	vmm_port_leave(port, &call, VIDMM_DDI_STOP_DEVICE);
	vmm_port_ddi_event(port, VIDMM_DDI_STOP_DEVICE, status, 0, 0, 0);
	if (status != STATUS_SUCCESS)
		vmm_port_wrong_status(port, "PNP-02", VIDMM_DDI_STOP_DEVICE, status);
	vmm_port_model_stop(port);
	vmm_port_interrupt_finish(port);
	vmm_port_verify_stopped(port);
}

/* ---- port ---- */

static struct vmm_port *create(const struct vmm_port_options *options)
{
	struct vmm_port *port = vmm_calloc_lines(sizeof(*port));

	if (!port)
		return NULL;
	port->magic = VMM_PORT_MAGIC;
	port->os = options->os;
	port->verify = options->verify;
	port->nt = options->nt;
	port->observe = options->observe;
	port->sink = options->sink;
	port->sink_context = options->sink_context;
	port->lead = port->link[0] = port;
	port->features = options->features;
	port->link_count = 1;
	port->caps.dma_queue_entries = VMM_PORT_DMA_QUEUE_ENTRIES;
	vmm_list_init(&port->devices);
	vmm_list_init(&port->mappings);
	vmm_os_mutex_init(&port->object_rank, port->os, VMM_PORT_RANK_OBJECT, "object DDI");
	vmm_os_mutex_init(&port->paging_rank, port->os, VMM_PORT_RANK_PAGING_DDI, "paging DDI");
	vmm_os_mutex_init(&port->lock, port->os, VMM_PORT_RANK_DEVICE, "device services");
	vmm_port_interrupt_init(port);
	return port;
}

static void destroy(struct vmm_port *port)
{
	uint32_t mappings = 0;

	while (!vmm_list_empty(&port->mappings)) {
		struct vmm_list *link = port->mappings.next;

		vmm_list_remove(link);
		vmm_free(vmm_container_of(link, struct vmm_port_mapping, link));
		mappings++;
	}
	if (mappings)
		vmm_finding(port->observe, "NT-06", 0, 0,
			    "%u mappings of DxgkCbMapMemory were never unmapped", mappings);
	vmm_port_devices_forget(port);
	vmm_port_segments_forget(port);
	vmm_nt_interrupt_finish(&port->interrupt);
	vmm_os_mutex_finish(&port->lock);
	vmm_os_mutex_finish(&port->paging_rank);
	vmm_os_mutex_finish(&port->object_rank);
	port->magic = 0;
	vmm_free(port);
}

static NTSTATUS query(struct vmm_port *port)
{
	NTSTATUS status;

	vmm_port_report_step(port, VIDMM_START_DRIVERCAPS);
	status = vmm_port_query_caps(port);
	if (status >= 0)
		status = vmm_port_link_nodes(port);
	if (status >= 0)
		status = vmm_port_query_hw_scheduling(port);
	if (status < 0)
		return status;
	vmm_port_report_step(port, VIDMM_START_SEGMENTS);
	status = vmm_port_query_segments(port);
	return status < 0 ? status : vmm_port_query_gpummu(port);
}

/* ---- one adapter, or the physical adapters of a link ---- */

static void destroy_chain(struct vmm_port_chain *chain)
{
	/* The lead is destroyed last: its interrupt serves the others. */
	while (chain->count) {
		vmm_port_device_finish(chain->port[--chain->count]);
		destroy(chain->port[chain->count]);
	}
}

/* Creates a device for each physical adapter, with one driver. On failure none is left. */
static vmm_status create_chain(struct vmm_port_chain *chain, const struct vmm_port_options *options)
{
	uint32_t wanted = options->physical_adapters ? options->physical_adapters : 1;

	if (wanted > VMM_PORT_LINKS_MAX)
		return vmm_refuse_reason(
			options->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"a link of %u physical adapters is not built: at most %u are", wanted,
			VMM_PORT_LINKS_MAX);
	while (chain->count < wanted) {
		struct vmm_port *port = create(options);
		vmm_status status = port ? vmm_port_device_init(port, options) : VMM_NO_MEMORY;

		if (!vmm_ok(status)) {
			if (port)
				destroy(port);
			destroy_chain(chain);
			return status;
		}
		chain->port[chain->count++] = port;
		port->device.DriverObject = &chain->port[0]->driver;
	}
	chain->port[0]->report = options->report;
	vmm_port_report_device(chain->port[0]);
	return VMM_OK;
}

static NTSTATUS load_chain(struct vmm_port_chain *chain, const struct vmm_port_options *options)
{
	const struct vmm_port *first = chain->port[0];
	NTSTATUS status = load(chain->port[0], options);

	for (uint32_t i = 1; i < chain->count && status >= 0; i++) {
		chain->port[i]->version = first->version;
		chain->port[i]->model = first->model;
		chain->port[i]->ddi = first->ddi;
	}
	return status;
}

static NTSTATUS add_devices(struct vmm_port_chain *chain)
{
	NTSTATUS status = vmm_port_chain_check(chain);

	while (status >= 0 && chain->added < chain->count) {
		status = add_device(chain->port[chain->added]);
		if (status < 0)
			return status;
		status = vmm_port_link_device(chain->port[chain->added++]);
		/* LNK-01: a miniport that fails here does not link the device. */
		if (chain->count == 1)
			status = STATUS_SUCCESS;
	}
	return status < 0 ? status : vmm_port_chain_agree(chain);
}

/* LNK-04: the lead starts last and stops first. */
static NTSTATUS start_devices(struct vmm_port_chain *chain)
{
	NTSTATUS status = STATUS_SUCCESS;

	while (chain->started < chain->count) {
		status = start_device(chain->port[chain->count - 1 - chain->started]);
		if (status < 0)
			break;
		chain->started++;
	}
	return status;
}

static void stop_devices(struct vmm_port_chain *chain)
{
	for (uint32_t i = chain->count - chain->started; i < chain->count; i++)
		stop_device(chain->port[i]);
}

static void remove_devices(struct vmm_port_chain *chain)
{
	for (uint32_t i = 0; i < chain->added; i++)
		remove_device(chain->port[i]);
}

static NTSTATUS bring_up(struct vmm_port_chain *chain)
{
	NTSTATUS status;

	vmm_port_report_step(chain->port[0], VIDMM_START_ADD_DEVICE);
	status = add_devices(chain);
	if (status < 0)
		return status;
	vmm_port_report_step(chain->port[0], VIDMM_START_START_DEVICE);
	status = start_devices(chain);
	if (status < 0)
		return status;
	return query(chain->port[0]);
}

vmm_status vmm_port_start(const struct vmm_port_options *options, struct vmm_port **port)
{
	struct vmm_port_chain chain = {0};
	vmm_status status;

	vmm_assert(options->os && options->nt && options->observe && options->sink);
	vmm_assert(!options->driver_entry != !options->initialization_data);
	if (options->verify)
		vmm_nt_verify_drivers(options->nt);
	status = create_chain(&chain, options);
	if (!vmm_ok(status))
		return status;
	vmm_port_report_step(chain.port[0], VIDMM_START_LOAD);
	status = load_chain(&chain, options);
	if (!vmm_ok(status))
		goto out_chain;
	status = bring_up(&chain);
	if (!vmm_ok(status))
		goto out_unload;
	chain.port[0]->report = NULL; /* from now on only the caller uses the report */
	*port = chain.port[0];
	vmm_port_interrupt_listen(*port, true);
	return VMM_OK;

out_unload:
	vmm_port_segments_unpin(chain.port[0]);
	stop_devices(&chain);
	remove_devices(&chain);
	unload(chain.port[0]);
out_chain:
	destroy_chain(&chain);
	return status;
}

void vmm_port_stop(struct vmm_port *port)
{
	struct vmm_port_chain chain = {port->link_count, port->link_count, port->link_count, {0}};

	memcpy(chain.port, port->link, sizeof(chain.port));
	/*
	 * A dead port is stopped like any other: only its miniport can free its threads and memory.
	 * Objects of the miniport still exist, because it was not entered after the violation.
	 */
	vmm_port_interrupt_listen(port, false);
	vmm_port_segments_unpin(port); /* StopDevice may free them */
	if (stop_and_release(port)) {
		vmm_port_model_stop(port);
		vmm_port_interrupt_finish(port);
		chain.started--;
	}
	stop_devices(&chain);
	remove_devices(&chain);
	unload(port);
	destroy_chain(&chain);
}

static void set_power_state(struct vmm_port *port, DEVICE_POWER_STATE state, POWER_ACTION action)
{
	struct vmm_port_call call;
	NTSTATUS status;

	/* As the bus driver does: the device has power before the miniport uses it. */
	if (port->hardware && state == PowerDeviceD0)
		vmm_hardware_set_power(port->hardware, (uint32_t)state);
	call = vmm_port_enter(port, VIDMM_DDI_SET_POWER_STATE);
	status = port->ddi.DxgkDdiSetPowerState(port->adapter, ADAPTER_HW_ID, state, action);
	vmm_port_leave(port, &call, VIDMM_DDI_SET_POWER_STATE);
	if (port->hardware && state != PowerDeviceD0)
		vmm_hardware_set_power(port->hardware, (uint32_t)state);
	vmm_port_ddi_event(port, VIDMM_DDI_SET_POWER_STATE, status, (uint64_t)state,
			   (uint64_t)action, 0);
	if (status < 0)
		vmm_port_wrong_status(port, "PNP-07", VIDMM_DDI_SET_POWER_STATE, status);
}

void vmm_port_set_power_state(struct vmm_port *port, DEVICE_POWER_STATE state, POWER_ACTION action)
{
	uint32_t count = port->link_count;

	if (vmm_port_dead(port) || atomic_load(&port->device_removed)) /* PNP-08 */
		return;
	vmm_port_check_rank(&port->object_rank);
	/* LNK-04: the lead powers down first and powers up last. */
	for (uint32_t i = 0; i < count; i++)
		set_power_state(port->link[state == PowerDeviceD0 ? count - 1 - i : i], state,
				action);
}

uint32_t vmm_port_physical_adapters(const struct vmm_port *port)
{
	return port->link_count;
}

/* Derived from an address that is reserved for this adapter, so no other has the LUID. (ADP-05) */
uint32_t vmm_port_luid(const struct vmm_port *port)
{
	return (uint32_t)(port->identity_physical >> VMM_PAGE_SHIFT);
}

bool vmm_port_feature_is_enabled(const struct vmm_port *port, DXGK_FEATURE_ID id)
{
	return atomic_load(&port->lead->enabled_features) & 1u << id;
}

const struct vmm_port_caps *vmm_port_caps(const struct vmm_port *port)
{
	return &port->caps;
}

const void *vmm_port_bar_memory(const struct vmm_port *port, uint32_t index, uint64_t *size_bytes)
{
	if (index >= port->bar_count)
		return NULL;
	*size_bytes = port->bar[index].memory.size_bytes;
	return port->bar[index].memory.base;
}
