/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of port: the port structure, and the functions to enter and leave the
 * miniport.
 *
 * Every DDI call has these steps: refuse if the port is dead, enter (current world, thread slot,
 * IRQL), call, leave (IRQL checked and restored), emit one event. DDIs at PASSIVE_LEVEL use
 * vmm_port_enter and vmm_port_leave; those at DISPATCH_LEVEL raise the IRQL themselves.
 */
#ifndef VMM_PORT_PORT_INTERNAL_H
#define VMM_PORT_PORT_INTERNAL_H

#include <stdatomic.h>
#include <ntddk.h>
#include "hardware/hardware.h"
#include "port/port.h"

#define VMM_PORT_BARS_MAX           6u
#define VMM_PORT_CONFIG_BYTES       256u
#define VMM_PORT_PATH_CHARS         128u
/* Thread slot that nt reserves for port: the port whose DDI the thread is in. */
#define VMM_PORT_THREAD_SLOT        VMM_NT_SLOT_PLACE
/* Another one: how many DDIs of counted calls the thread is in, one within the other. */
#define VMM_PORT_DEPTH_SLOT         9
/*
 * What the thread executes there, in the upper bits of the slot: an enum vidmm_ddi, or one of
 * these. vidmm_driver_place reads it.
 */
#define VMM_PORT_PLACE_SHIFT        48
#define VMM_PORT_PLACE_DRIVER_ENTRY 0x80u
#define VMM_PORT_PLACE_DPC          0x81u
#define VMM_PORT_PLACE_SYNCHRONIZED 0x82u /* a routine of DxgkCbSynchronizeExecution */
#define VMM_PORT_PLACE_INTERRUPT    0x83u
#define VMM_PORT_PLACES             512u
#define VMM_PORT_PLACE_QUERY        0x100u /* plus the type: DxgkDdiQueryAdapterInfo */
_Static_assert(VIDMM_DDI_LAST < VMM_PORT_PLACE_DRIVER_ENTRY, "DDIs have smaller numbers");
#define VMM_PORT_MAGIC 0x74726F706D647776u

/* SUB-15: the limit for all nodes together, which StartDevice tells the miniport. */
#define VMM_PORT_DMA_QUEUE_ENTRIES 64u

/*
 * Properties of an interface version. Sizes are those of its documented structures on 64-bit
 * targets.
 */
struct vmm_port_version {
	ULONG number;
	const char *name;
	uint32_t table_bytes, caps_bytes, services_bytes;
	/* The bits that exist in SchedulingCaps and in DXGK_SEGMENTFLAGS. */
	uint32_t scheduling_mask, segment_mask;
	DXGK_QUERYADAPTERINFOTYPE segment_query;
	bool engine_reset; /* SupportPerEngineTDR exists */
};

/* The lock class of vmm_port.lock (docs/locking.md). */
extern struct vmm_lock_class vmm_port_lock_class;

struct vmm_port_bar {
	struct vmm_os_memory memory;
	uint64_t physical;
};

/* A miniport's device. Without contexts `info` replaces DXGK_CONTEXTINFO (DMA-33). */
struct vmm_port_device {
	struct vmm_list link;
	HANDLE device;
	DXGK_DEVICEINFO info;
};

/*
 * The physical adapters of one start. port[0] is the lead once vmm_port_chain_agree has succeeded
 * (link.c); before that it is the first one added.
 */
struct vmm_port_chain {
	uint32_t count; /* 1: no link */
	uint32_t added, started;
	struct vmm_port *port[VMM_PORT_LINKS_MAX];
};

struct vmm_port_mapping {
	struct vmm_list link;
	void *address;
	uint64_t size_bytes;
};

struct vmm_port {
	uint64_t magic; /* VMM_PORT_MAGIC: a miniport may pass another pointer as DeviceHandle */
	/* constant after vmm_port_start */
	bool verify; /* VidmmVerifyDriver (verify.c) */
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	const struct vmm_port_sink *sink;
	void *sink_context;
	const struct vmm_port_version *version; /* of the table: the sizes of structures */
	/*
	 * The version of the driver model, `version` or an older one: the capabilities and
	 * flags that exist, the queries, the memory model.
	 */
	const struct vmm_port_version *model;
	DRIVER_INITIALIZATION_DATA ddi; /* entries that the version does not have are NULL */
	DXGKRNL_INTERFACE services;
	PVOID adapter; /* the miniport's device context: the first argument of adapter DDIs */
	struct vmm_port *lead; /* the lead of the link; without a link the port itself */
	LINKED_DEVICE linked;  /* the result of DxgkDdiLinkDevice */
	uint32_t link_count;   /* in the lead: the number of physical adapters; 1: no link */
	/* In the lead: all ports of the link, itself first. */
	struct vmm_port *link[VMM_PORT_LINKS_MAX];
	struct vmm_port_caps caps;
	/* The miniport's memory in which a segment is; NULL: the segment is in a BAR. */
	struct vmm_nt_frames *pinned[VMM_PORT_SEGMENTS_MAX];
	DRIVER_OBJECT driver;
	DEVICE_OBJECT device; /* the physical device object */
	uint32_t bar_count;
	struct vmm_port_bar bar[VMM_PORT_BARS_MAX];
	struct vmm_hardware *hardware; /* the device of a device model; NULL: memory BARs only */
	uint32_t config_bytes;         /* of the configuration space */
	uint64_t identity_physical;    /* a reserved address that numbers the device in names */
	uint64_t system_memory_bytes;
	uint64_t memory_limit_bytes; /* of each memory segment; 0: none */
	_Atomic bool losing;         /* DMA_COMPLETED is lost */
	_Atomic uint32_t lost;       /* how many were */
	CM_RESOURCE_LIST *resources;
	uint32_t resources_bytes;
	char device_key[VMM_PORT_PATH_CHARS], service_key[VMM_PORT_PATH_CHARS];
	UNICODE_STRING device_path, service_path;
	uint16_t device_path_text[VMM_PORT_PATH_CHARS], service_path_text[VMM_PORT_PATH_CHARS];
	/* start and stop only, one thread */
	bool registering, registered;
	struct vidmm_adapter_report *report; /* the caller's; NULL after the start */

	uint32_t features; /* in the lead: the enabled features; bit n is DXGK_FEATURE_ID n */
	/* Of these, the features that the miniport has asked for. */
	_Atomic uint32_t enabled_features;
	/* With VidmmVerifyDriver: places whose stack was reported; references to handle data. */
	_Atomic bool deep[VMM_PORT_PLACES];
	_Atomic uint32_t handle_data;
	_Atomic bool dead;
	_Atomic bool connected; /* interrupts are accepted: from StartDevice to StopDevice */
	_Atomic bool listening; /* interrupts reach the sink: from the end of start to stop */
	/* The call gate (gate.c). */
	_Atomic uint32_t inside; /* DDIs within other DDIs of the same thread (vmm_port_inside) */
	_Atomic bool suspended;
	/*
	 * The device was removed: the gate stays closed, except for the destruction of objects
	 * (PNP-08).
	 */
	_Atomic bool device_removed;
	_Atomic bool excluding; /* level two: callers wait instead of being refused */
	/* Futex: moves when the gate opens, and when a thread leaves while the gate is closed. */
	_Atomic uint32_t gate;
	_Atomic uint32_t suspensions; /* number of times that a reset has emptied the miniport */
	_Atomic(struct vmm_os_thread *) exclusive; /* the thread that closed the gate */
	/*
	 * The lead's interrupt and DPC serve the whole link, so neither runs twice at a time.
	 * What each packet writes is in two cache lines, this and the next.
	 */
	_Alignas(VMM_CACHE_LINE) KDPC dpc;
	struct vmm_nt_interrupt interrupt;
	/* Events since the interrupt lock was taken; guarded by it (SUB-08, SUB-11). */
	bool notified, queued, display_notified;
	_Atomic bool scheduler_busy; /* a thread is in a DDI of the scheduler class */
	_Atomic bool dpc_wanted;     /* on a link: the DPC must call this port's routine */

	/* Never held: vmm_port_check_rank compares their ranks with those of the caller's locks. */
	struct vmm_os_mutex object_rank, paging_rank;
	struct vmm_os_mutex lock; /* leaf lock; guards the members below */
	/* The process that `creator` is creating in DxgkDdiCreateProcess. */
	const struct vmm_port_process *creating VMM_GUARDED_BY(vmm_port_lock_class);
	struct vmm_os_thread *creator VMM_GUARDED_BY(vmm_port_lock_class);
	struct vmm_list devices;
	struct vmm_list mappings;
	uint8_t config[VMM_PORT_CONFIG_BYTES]; /* of a model only the header */
};
_Static_assert(offsetof(struct vmm_port, dpc_wanted) - offsetof(struct vmm_port, dpc) <
		       2 * VMM_CACHE_LINE,
	       "what each packet writes is in two cache lines");

VMM_LOCK_PAIR(vmm_port_lock, vmm_port_unlock, vmm_port_lock_class, vmm_os_mutex, struct vmm_port,
	      lock);

/* Returns whether the miniport uses WDDM 2.x, which has other structures and more queries. */
static inline bool vmm_port_is_wddm2(const struct vmm_port *port)
{
	return port->model->segment_query == DXGKQAITYPE_QUERYSEGMENT4;
}

/* ---- table.c ---- */
/*
 * Copies the part of the table that its version has, and checks the entries that every adapter
 * needs (spec 1.11).
 */
NTSTATUS vmm_port_table_read(struct vmm_port *port, const DRIVER_INITIALIZATION_DATA *table);
/* Chooses the version of the driver model by WDDMVersion. */
void vmm_port_choose_model(struct vmm_port *port, const DXGK_DRIVERCAPS *caps);
/*
 * Checks the entries that depend on capabilities: those of the miniport's kind, and those of single
 * capabilities. After vmm_port_check_addressing. (PNP-01)
 */
NTSTATUS vmm_port_table_check_caps(struct vmm_port *port, const DXGK_DRIVERCAPS *caps);
/*
 * A call needs an entry that the miniport's kind may lack: a reason names it, and the result is
 * STATUS_NOT_SUPPORTED. (PNP-01)
 */
VMM_COLD NTSTATUS vmm_port_lacks(struct vmm_port *port, const char *entry);

/* ---- link.c ---- */
/* Returns whether the miniport supports a link of these adapters. If not, emits a reason. */
NTSTATUS vmm_port_chain_check(const struct vmm_port_chain *chain);
/* Calls DxgkDdiLinkDevice, if the miniport has it, right after AddDevice (LNK-01). */
NTSTATUS vmm_port_link_device(struct vmm_port *port);
/*
 * After DxgkDdiLinkDevice of all adapters: checks that they form one link (LNK-02, LNK-03), and
 * makes the lead port[0].
 */
NTSTATUS vmm_port_chain_agree(struct vmm_port_chain *chain);
/* Multiplies the lead's node count by the number of adapters: each has as many nodes. */
NTSTATUS vmm_port_link_nodes(struct vmm_port *port);

/* A node as the miniport names it. The core numbers all nodes of a link (struct vmm_port_caps). */
struct vmm_port_ordinals {
	UINT node, engine;
};
static inline struct vmm_port_ordinals vmm_port_ordinals_of(const struct vmm_port *port,
							    uint32_t node)
{
	return (struct vmm_port_ordinals){node % port->caps.nodes_each,
					  node / port->caps.nodes_each};
}
static inline uint32_t vmm_port_node_of(const struct vmm_port *port,
					struct vmm_port_ordinals ordinals)
{
	return ordinals.engine * port->caps.nodes_each + ordinals.node;
}

/* ---- device.c: the emulated device ---- */
vmm_status vmm_port_device_init(struct vmm_port *port,
				const struct vmm_port_options *options) VMM_MUST_CHECK;
void vmm_port_device_finish(struct vmm_port *port);
/*
 * Returns the memory at [physical, +size_bytes): of a BAR, or another that the platform knows, for
 * example memory that the miniport has allocated contiguously. NULL if there is none. (SEG-08)
 */
const struct vmm_os_memory *vmm_port_visible_memory(struct vmm_port *port, uint64_t physical,
						    uint64_t size_bytes, uint64_t *offset);
/* Returns the BAR that contains [physical, +size_bytes), or NULL. */
struct vmm_port_bar *vmm_port_find_bar(struct vmm_port *port, uint64_t physical,
				       uint64_t size_bytes);

/* ---- device_model.c: a device that a device model describes; Q-420 ---- */
vmm_status vmm_port_model_init(struct vmm_port *port,
			       const struct vmm_port_options *options) VMM_MUST_CHECK;
void vmm_port_model_finish(struct vmm_port *port);
vmm_status vmm_port_model_resources(struct vmm_port *port) VMM_MUST_CHECK;
void vmm_port_model_config(struct vmm_port *port, const struct vmm_port_identity *ids);
/* Without a model these two do nothing. Connect: its interrupts are delivered from now on. */
void vmm_port_model_connect(struct vmm_port *port);
/* After StopDevice: no interrupt is delivered any more, and the device is reset. */
void vmm_port_model_stop(struct vmm_port *port);
/* Number of interrupts of the device: messages, or 1 for a line. */
uint32_t vmm_port_messages(const struct vmm_port *port);

/* ---- caps.c, segments.c ---- */
NTSTATUS vmm_port_query_adapter_info(struct vmm_port *port, DXGKARG_QUERYADAPTERINFO *args);
NTSTATUS vmm_port_query_caps(struct vmm_port *port);
NTSTATUS vmm_port_query_segments(struct vmm_port *port);
/* caps_wddm2.c: checks MemoryManagementCaps, and queries the nodes and the paging node. */
NTSTATUS vmm_port_check_addressing(struct vmm_port *port, const DXGK_DRIVERCAPS *caps);
NTSTATUS vmm_port_query_physical_adapter(struct vmm_port *port, DXGK_DRIVERCAPS *caps);
/* caps_hw.c: queries on which nodes hardware scheduling may be used (SCH-10). */
NTSTATUS vmm_port_query_hw_scheduling(struct vmm_port *port);
NTSTATUS vmm_port_table_check_hw(struct vmm_port *port);
NTSTATUS vmm_port_table_check_gpummu(struct vmm_port *port, bool resizable_root);
NTSTATUS vmm_port_query_gpummu(struct vmm_port *port);
NTSTATUS vmm_port_cb_reserve(HANDLE handle,
			     DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE *args); /* table.c */
/* segments_host.c */
struct vmm_port_host_aperture vmm_port_host_of(const DXGK_SEGMENTDESCRIPTOR4 *d);
/* Checks and stores the CPU host aperture of a segment, if it has one (SWZ-29, SEG-24). */
NTSTATUS vmm_port_store_host_aperture(struct vmm_port *port, struct vmm_port_segment *segment,
				      const struct vmm_port_host_aperture *host);
/* segments_vpr.c */
struct vmm_port_vpr vmm_port_vpr_of(const DXGK_SEGMENTDESCRIPTOR4 *d);
/* Checks and stores the protected range of a segment, if it has one. */
NTSTATUS vmm_port_store_vpr(struct vmm_port *port, struct vmm_port_segment *segment,
			    const struct vmm_port_vpr *vpr);

/* segments_wddm2.c */
DXGK_SEGMENTDESCRIPTOR3 vmm_port_descriptor3_of(const DXGK_SEGMENTDESCRIPTOR4 *descriptor);
NTSTATUS vmm_port_check_segment_flags2(struct vmm_port *port, UINT id, DXGK_SEGMENTFLAGS flags);
NTSTATUS vmm_port_check_apertures(struct vmm_port *port, UINT count);
/* Sorts the `count` invalid ranges of a segment and merges those that touch or overlap. */
void vmm_port_merge_invalid_ranges(struct vmm_port_segment *segment, UINT count);
/*
 * Queries the `count` ranges of a segment that must not be used, checks and stores them (SEG-26).
 */
NTSTATUS vmm_port_store_invalid_ranges(struct vmm_port *port, struct vmm_port_segment *segment,
				       UINT count);
void vmm_port_segments_forget(struct vmm_port *port);
/* Keeps the system memory in which segments are until the adapter stops (NT-12). */
void vmm_port_segments_pin(struct vmm_port *port);
void vmm_port_segments_unpin(struct vmm_port *port);
/* Combines the statuses of checks that all run: returns the first failure. */
static inline NTSTATUS vmm_port_first_failure(NTSTATUS first, NTSTATUS next)
{
	return first != STATUS_SUCCESS ? first : next;
}

/* ---- place.c ---- */
/* Writes the name of a DDI as the documentation spells it. */
void vmm_port_ddi_name(char *name, size_t size, uint32_t ddi);

/* ---- report.c: records the miniport's answers; without a report all functions do nothing ---- */
void vmm_port_report_step(struct vmm_port *port, enum vidmm_start_step step);
void vmm_port_report_device(struct vmm_port *port);
void vmm_port_report_version(struct vmm_port *port, uint32_t version);
void vmm_port_report_caps(struct vmm_port *port, const DXGK_DRIVERCAPS *caps);
void vmm_port_report_nodes(struct vmm_port *port);
void vmm_port_report_segment_count(struct vmm_port *port, uint32_t count);
void vmm_port_report_segment(struct vmm_port *port, uint32_t index,
			     const DXGK_SEGMENTDESCRIPTOR3 *descriptor);
/* The segment was accepted: records its effective flags. */
void vmm_port_report_accepted(struct vmm_port *port, uint32_t index);
void vmm_port_report_paging_buffer(struct vmm_port *port, uint32_t segment, uint32_t size_bytes,
				   uint32_t private_bytes);

/* ---- callbacks.c, device_services.c, interrupt.c ---- */
void vmm_port_services_init(struct vmm_port *port);
/* callbacks_wddm2.c: fills in the services since WDDM 2.0. */
void vmm_port_services_fill_wddm2(DXGKRNL_INTERFACE *services);
/*
 * Emits a reason and returns STATUS_NOT_SUPPORTED. Without DeviceHandle the reason needs a thread
 * that is in a DDI.
 */
NTSTATUS vmm_port_cb_not_built(HANDLE handle, const char *callback);
VOID *vmm_port_cb_get_handle_data(IN_CONST_PDXGKARGCB_GETHANDLEDATA data);
/*
 * Returns the port of a callback's DeviceHandle. NULL, after a finding, if the handle is invalid.
 */
struct vmm_port *vmm_port_from_handle(HANDLE handle, const char *callback);
/* Returns the port whose DDI the calling thread is in; NULL if it is in none. */
struct vmm_port *vmm_port_of_thread(void);
/* NT-01: returns false, after a finding, if the thread's IRQL is above the callback's limit. */
bool vmm_port_below(struct vmm_port *port, uint32_t limit, const char *callback);

NTSTATUS vmm_port_cb_get_device_information(HANDLE handle, PDXGK_DEVICE_INFO info);
NTSTATUS vmm_port_cb_map_memory(HANDLE handle, PHYSICAL_ADDRESS address, ULONG length,
				BOOLEAN io_space, BOOLEAN user, MEMORY_CACHING_TYPE cache,
				PVOID *pointer);
NTSTATUS vmm_port_cb_unmap_memory(HANDLE handle, PVOID pointer);
NTSTATUS vmm_port_cb_read_device_space(HANDLE handle, ULONG type, PVOID buffer, ULONG offset,
				       ULONG length, PULONG done);
NTSTATUS vmm_port_cb_write_device_space(HANDLE handle, ULONG type, PVOID buffer, ULONG offset,
					ULONG length, PULONG done);
NTSTATUS vmm_port_cb_is_device_present(HANDLE handle, PPCI_DEVICE_PRESENCE_PARAMETERS parameters,
				       PBOOLEAN present);

void vmm_port_interrupt_init(struct vmm_port *port);
/*
 * Sets whether interrupts and DPCs reach the sink. On return no thread is on its way to the sink
 * with the old setting.
 */
void vmm_port_interrupt_listen(struct vmm_port *port, bool listening);
/*
 * Calls DxgkDdiInterruptRoutine at device IRQL with the interrupt lock held; returns its result.
 * Caller: a thread of the device at PASSIVE_LEVEL.
 */
bool vmm_port_interrupt_routine(struct vmm_port *port, uint32_t message);
/* On return no DPC is running or queued. */
void vmm_port_interrupt_finish(struct vmm_port *port);
BOOLEAN vmm_port_cb_queue_dpc(HANDLE handle);
NTSTATUS vmm_port_cb_synchronize_execution(HANDLE handle, PKSYNCHRONIZE_ROUTINE routine,
					   PVOID context, ULONG message, PBOOLEAN result);
VOID vmm_port_cb_notify_interrupt(IN_CONST_HANDLE handle,
				  IN_CONST_PDXGKARGCB_NOTIFY_INTERRUPT_DATA data);
VOID vmm_port_cb_notify_dpc(IN_CONST_HANDLE handle);

/* ---- ddi_event.c ---- */
NTSTATUS vmm_port_cb_signal_event(IN_CONST_PDXGKARGCB_SIGNALEVENT data);
/* Returns the miniport's handle of the event. */
HANDLE vmm_port_cpu_event_driver(const struct vmm_port_cpu_event *event);

/* ---- ddi_object.c ---- */
void vmm_port_devices_forget(struct vmm_port *port);

/* ---- gate.c: the call gate, levels two and three ---- */
/*
 * The gate is closed. Returns true if the caller closed it, or if `waiting` and the gate has opened
 * again. In level two every call waits.
 */
bool vmm_port_begin_slow(struct vmm_port *port, bool waiting) VMM_COLD;
void vmm_port_end_slow(struct vmm_port *port) VMM_COLD;
/* PNP-08: closes the gate for good, except for the destruction of objects. */
void vmm_port_gate_set_removed(struct vmm_port *port);
/*
 * Makes the calling thread one that vmm_port_inside counts, and the other way round. Of a thread's
 * nested calls, through callbacks, the outermost is counted by the thread's hazard pointer and the
 * others by `inside`.
 */
VMM_ALWAYS_INLINE void vmm_port_gate_enter(struct vmm_port *port, struct vmm_os_own *own)
{
	if (vmm_likely(own->slot[VMM_PORT_DEPTH_SLOT]++ == 0))
		(void)vmm_os_hazard_publish(&own->gate, (uintptr_t)port);
	else
		atomic_fetch_add(&port->inside, 1);
}
VMM_ALWAYS_INLINE void vmm_port_gate_leave(struct vmm_port *port, struct vmm_os_own *own)
{
	if (vmm_likely(--own->slot[VMM_PORT_DEPTH_SLOT] == 0))
		vmm_os_hazard_clear(&own->gate);
	else
		atomic_fetch_sub(&port->inside, 1);
}
/* vmm_port_begin or vmm_port_begin_waiting, and vmm_port_end, for the calling thread OWN. */
VMM_ALWAYS_INLINE bool vmm_port_begin_of(struct vmm_port *port, struct vmm_os_own *own,
					 bool waiting)
{
	vmm_port_gate_enter(port, own);
	if (vmm_likely(!atomic_load(&port->suspended)))
		return true;
	return vmm_port_begin_slow(port, waiting);
}
VMM_ALWAYS_INLINE void vmm_port_end_of(struct vmm_port *port, struct vmm_os_own *own)
{
	vmm_port_gate_leave(port, own);
	if (vmm_unlikely(atomic_load(&port->suspended)))
		vmm_port_end_slow(port);
}
/*
 * Passes the gate before a DDI. Returns false if the call is refused (STATUS_DEVICE_REMOVED). After
 * true the caller calls vmm_port_end.
 */
static inline bool vmm_port_begin(struct vmm_port *port)
{
	return vmm_port_begin_of(port, VMM_OS_OWN(port->os), false);
}
/*
 * Does the same for a call that must not get lost: waits until the gate opens. Returns false if the
 * port is dead.
 */
static inline bool vmm_port_begin_waiting(struct vmm_port *port)
{
	return vmm_port_begin_of(port, VMM_OS_OWN(port->os), true);
}
static inline void vmm_port_end(struct vmm_port *port)
{
	vmm_port_end_of(port, VMM_OS_OWN(port->os));
}
void vmm_port_gate_wake(struct vmm_port *port);

/* ---- fatal.c ---- */
/* The miniport returned at another IRQL: emits a finding and restores `level`. */
void vmm_port_wrong_irql(struct vmm_port *port, const char *routine, uint32_t level) VMM_COLD;
/* Emits a finding for a status outside the documented set of the DDI. */
void vmm_port_wrong_status(struct vmm_port *port, const char *rule, enum vidmm_ddi ddi,
			   NTSTATUS status) VMM_COLD;
/*
 * The miniport failed a DDI, and with it the call of a client. A documented status is returned,
 * after a reason with the rule, the DDI's name and the status. Any other gives a finding and
 * returns STATUS_INVALID_PARAMETER.
 */
NTSTATUS vmm_port_failed(struct vmm_port *port, const char *rule, enum vidmm_ddi ddi,
			 NTSTATUS status, bool documented) VMM_COLD;
/*
 * Checks the status of a DDI that creates or describes an object for a client. It may fail with
 * STATUS_INVALID_PARAMETER, STATUS_NO_MEMORY and `also` (STATUS_SUCCESS: with nothing more).
 */
static inline NTSTATUS vmm_port_finish_create(struct vmm_port *port, const char *rule,
					      enum vidmm_ddi ddi, NTSTATUS status, NTSTATUS also)
{
	if (vmm_likely(status == STATUS_SUCCESS))
		return status;
	return vmm_port_failed(port, rule, ddi, status,
			       status == STATUS_INVALID_PARAMETER || status == STATUS_NO_MEMORY ||
				       status == also);
}

/* ---- ddi_submit.c, ddi_present.c ---- */
/*
 * DMA-28: returns whether `now` is inside [start, start + room_bytes], a whole number of elements
 * after the start.
 */
static inline bool vmm_port_advanced(const void *start, const void *now, uint64_t room_bytes,
				     uint64_t element_bytes)
{
	uintptr_t distance = (uintptr_t)now - (uintptr_t)start;

	return distance <= room_bytes && distance % element_bytes == 0;
}

/*
 * DMA-28, fatal: reports the output that exceeds its size; if neither does, the patch location list
 * did.
 */
void vmm_port_overflow(struct vmm_port *port, enum vidmm_ddi ddi, uint64_t commands,
		       uint64_t command_room, uint64_t private_data,
		       uint64_t private_room) VMM_COLD;

/*
 * The sizes of the outputs of DxgkDdiRender and DxgkDdiPresent, and how far the miniport advanced
 * in them.
 */
struct vmm_port_limits {
	const char *function;
	enum vidmm_ddi ddi;
	uint32_t command_bytes, private_bytes;
	uint64_t patch_bytes;
};
struct vmm_port_outputs {
	const void *commands, *private_data, *patches;
};
/* The arguments of both DDIs have members of the same names. */
#define VMM_PORT_LIMITS(function, ddi, args)                                      \
	{                                                                         \
		function, ddi, (args)->DmaSize, (args)->DmaBufferPrivateDataSize, \
			(uint64_t)(args)->PatchLocationListOutSize *              \
				sizeof(D3DDDI_PATCHLOCATIONLIST)                  \
	}
#define VMM_PORT_OUTPUTS(args)                                                                   \
	{                                                                                        \
		(args)->pDmaBuffer, (args)->pDmaBufferPrivateData, (args)->pPatchLocationListOut \
	}
/*
 * DMA-28: checks the outputs of a pass. Returns STATUS_DEVICE_REMOVED, after a finding, if one is
 * out of bounds.
 */
NTSTATUS vmm_port_check_outputs(struct vmm_port *port, const struct vmm_port_limits *limits,
				const struct vmm_port_outputs *before,
				const struct vmm_port_outputs *after);

/* ---- entering and leaving the miniport ---- */

struct vmm_port_call {
	struct vmm_port *verified;  /* NULL: without VidmmVerifyDriver */
	uintptr_t stack;            /* begin of the filled stack; 0: not measured */
	struct vmm_os_front *world; /* the thread's world before */
	struct vmm_os_own *own;     /* the calling thread */
	uint64_t outer;
};

/* ---- verify.c: with VidmmVerifyDriver ---- */
void vmm_port_verify_enter(struct vmm_port_call *call) VMM_COLD;
/* Before the thread's slot is restored. (NT-21) */
void vmm_port_verify_leave(const struct vmm_port_call *call) VMM_COLD;
/* Calls DxgkDdiQueryAdapterInfo with a buffer behind which writes are found (NT-23). */
NTSTATUS vmm_port_verify_query(struct vmm_port *port, DXGKARG_QUERYADAPTERINFO *args);
/* Checks what is behind the buffers that a routine got (NT-23). NULL: it got none. */
void vmm_port_verify_outputs(struct vmm_port *port, const struct vmm_port_limits *limits,
			     const struct vmm_port_outputs *before) VMM_COLD;
/* NT-24: references to handle data are counted, and must be released when the device stops. */
void vmm_port_verify_acquired(struct vmm_port *port);
void vmm_port_verify_released(struct vmm_port *port);
void vmm_port_verify_stopped(struct vmm_port *port);
/* The routine that a value of the thread slot stands for (place.c). */
struct vidmm_driver_place;
void vmm_port_place_of(struct vidmm_driver_place *place, uint64_t value);

/* From here on kernel services find this world, and callbacks without a handle find this port. */
static inline struct vmm_port_call vmm_port_enter_of(struct vmm_port *port, struct vmm_os_own *own,
						     uint32_t place)
{
	struct vmm_port_call call;

	call.world = vmm_os_here.current;
	call.own = own;
	vmm_os_here.current = VMM_OS_FRONT(port->os);
	call.outer = call.own->slot[VMM_PORT_THREAD_SLOT];
	call.own->slot[VMM_PORT_THREAD_SLOT] = (uintptr_t)port | (uint64_t)place
									 << VMM_PORT_PLACE_SHIFT;
	call.verified = NULL;
	call.stack = 0;
	if (vmm_unlikely(port->verify)) {
		call.verified = port;
		vmm_port_verify_enter(&call);
	}
	return call;
}

static inline struct vmm_port_call vmm_port_enter_any(struct vmm_port *port, uint32_t place)
{
	return vmm_port_enter_of(port, VMM_OS_OWN(port->os), place);
}

static inline void vmm_port_leave_any(const struct vmm_port_call *call)
{
	if (vmm_unlikely(call->verified != NULL))
		vmm_port_verify_leave(call);
	call->own->slot[VMM_PORT_THREAD_SLOT] = call->outer;
	vmm_os_here.current = call->world;
}

static inline struct vmm_port_call vmm_port_enter(struct vmm_port *port, uint32_t place)
{
	struct vmm_port_call call = vmm_port_enter_any(port, place);

	vmm_assert(vmm_nt_irql_of(call.own->slot) == VMM_NT_PASSIVE);
	return call;
}

static inline void vmm_port_leave(struct vmm_port *port, const struct vmm_port_call *call,
				  enum vidmm_ddi ddi)
{
	if (vmm_unlikely(vmm_nt_irql_of(call->own->slot) != VMM_NT_PASSIVE))
		vmm_port_wrong_irql(port, vmm_observe_reason_name(VIDMM_EVENT_DDI, ddi),
				    VMM_NT_PASSIVE);
	vmm_port_leave_any(call);
}

/*
 * The scheduler class admits one thread at a time (section 4 of the submission rules). The caller's
 * lock ensures that; this only asserts it.
 */
static inline void vmm_port_scheduler_enter(struct vmm_port *port)
{
	bool overlap = atomic_load_explicit(&port->scheduler_busy, memory_order_relaxed);

	vmm_assert(!overlap);
	atomic_store_explicit(&port->scheduler_busy, true, memory_order_relaxed);
}

static inline void vmm_port_scheduler_leave(struct vmm_port *port)
{
	atomic_store_explicit(&port->scheduler_busy, false, memory_order_relaxed);
}

/* Asserts that every lock of the calling thread has a smaller rank. */
static inline void vmm_port_check_rank(const struct vmm_os_mutex *rank)
{
	vmm_os_mutex_check_rank(rank);
}

static inline void vmm_port_ddi_event(struct vmm_port *port, enum vidmm_ddi ddi, NTSTATUS status,
				      uint64_t b, uint64_t c, uint64_t d)
{
	vmm_event_inline(port->observe, VIDMM_EVENT_DDI, 0, 0, ddi, (uint32_t)status, b, c, d);
}

/* The two functions below, once the port is known to live. */
VMM_ALWAYS_INLINE bool vmm_port_call_begin_of(struct vmm_port *port, struct vmm_os_own *own,
					      struct vmm_port_call *call, bool waiting,
					      enum vidmm_ddi ddi)
{
	if (!vmm_port_begin_of(port, own, waiting))
		return false;
	*call = vmm_port_enter_of(port, own, ddi);
	vmm_assert(vmm_nt_irql_of(call->own->slot) == VMM_NT_PASSIVE);
	return true;
}

/*
 * Begins one DDI call at PASSIVE_LEVEL. Returns false if it is refused (STATUS_DEVICE_REMOVED).
 * vmm_port_call_end ends it and emits the event. Calls about objects check the caller's lock ranks
 * first.
 */
static inline bool vmm_port_call_begin(struct vmm_port *port, struct vmm_port_call *call,
				       enum vidmm_ddi ddi)
{
	if (vmm_unlikely(vmm_port_dead(port)))
		return false;
	return vmm_port_call_begin_of(port, VMM_OS_OWN(port->os), call, false, ddi);
}

static inline bool vmm_port_call_begin_object(struct vmm_port *port, struct vmm_port_call *call,
					      bool waiting, enum vidmm_ddi ddi)
{
	if (vmm_port_dead(port))
		return false;
	vmm_port_check_rank(&port->object_rank);
	return vmm_port_call_begin_of(port, VMM_OS_OWN(port->os), call, waiting, ddi);
}

static inline NTSTATUS vmm_port_call_end(struct vmm_port *port, const struct vmm_port_call *call,
					 enum vidmm_ddi ddi, NTSTATUS status, uint64_t b,
					 uint64_t c, uint64_t d)
{
	vmm_port_leave(port, call, ddi);
	vmm_port_end_of(port, call->own);
	vmm_port_ddi_event(port, ddi, status, b, c, d);
	return status;
}

/*
 * The same for a call of the scheduler class. The caller's paging lock keeps other threads out.
 */
static inline bool vmm_port_scheduler_call_begin(struct vmm_port *port, struct vmm_port_call *call,
						 enum vidmm_ddi ddi)
{
	if (vmm_unlikely(vmm_port_dead(port)))
		return false;
	vmm_port_check_rank(&port->paging_rank);
	if (!vmm_port_call_begin_of(port, VMM_OS_OWN(port->os), call, false, ddi))
		return false;
	vmm_port_scheduler_enter(port);
	return true;
}

static inline void vmm_port_scheduler_call_end(struct vmm_port *port,
					       const struct vmm_port_call *call, enum vidmm_ddi ddi,
					       NTSTATUS status, uint64_t b, uint64_t c, uint64_t d)
{
	vmm_port_leave(port, call, ddi);
	vmm_port_scheduler_leave(port);
	vmm_port_end_of(port, call->own);
	vmm_port_ddi_event(port, ddi, status, b, c, d);
}

static inline void vmm_port_callback_event(struct vmm_port *port, enum vidmm_ddi_callback callback,
					   NTSTATUS status)
{
	vmm_event_inline(port->observe, VIDMM_EVENT_CALLBACK, 0, 0, callback, (uint32_t)status, 0,
			 0, 0);
}

#endif
