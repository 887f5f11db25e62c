/* SPDX-License-Identifier: MIT */
/*
 * What the files of port share: the port itself, and the way into and out of the miniport.
 *
 * A DDI call is always: refuse when dead, enter (world, thread slot, IRQL), call, leave (IRQL
 * checked and put back), one event. DDIs at PASSIVE_LEVEL use vmm_port_enter and vmm_port_leave;
 * the one at DISPATCH_LEVEL raises itself.
 */
#ifndef VMM_PORT_PORT_INTERNAL_H
#define VMM_PORT_PORT_INTERNAL_H

#include <stdatomic.h>
#include <ntddk.h>
#include "port/port.h"

#define VMM_PORT_BARS_MAX     6u
#define VMM_PORT_CONFIG_BYTES 256u
#define VMM_PORT_PATH_CHARS   128u
#define VMM_PORT_THREAD_SLOT  3u /* nt leaves it to us: the port whose DDI this thread is in */
#define VMM_PORT_MAGIC        0x74726F706D647776u

/* SUB-15: the cap over all nodes that StartDevice tells the miniport. */
#define VMM_PORT_DMA_QUEUE_ENTRIES 64u

/* What an interface version has. Sizes are those of its documented structures on 64-bit targets. */
struct vmm_port_version {
	ULONG number;
	const char *name;
	uint32_t table_bytes, caps_bytes, services_bytes;
	/* Bits that exist in SchedulingCaps and in DXGK_SEGMENTFLAGS. */
	uint32_t scheduling_mask, segment_mask;
	DXGK_QUERYADAPTERINFOTYPE segment_query;
	bool engine_reset; /* SupportPerEngineTDR exists */
};

struct vmm_port_bar {
	struct vmm_os_memory memory;
	uint64_t physical;
};

/* A miniport device without contexts: what stands in for DXGK_CONTEXTINFO (DMA-33). */
struct vmm_port_device {
	struct vmm_list link;
	HANDLE device;
	DXGK_DEVICEINFO info;
};

/* The physical adapters of one start. port[0] leads once they have agreed (link.c); before it is the first added. */
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
	uint64_t magic; /* a miniport may hand us another pointer as DeviceHandle */
	/* constant after vmm_port_start */
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	const struct vmm_port_sink *sink;
	void *sink_context;
	const struct vmm_port_version *version;
	DRIVER_INITIALIZATION_DATA ddi; /* what the version does not have is NULL */
	DXGKRNL_INTERFACE services;
	PVOID adapter; /* the miniport's device context: first argument of the adapter's DDIs */
	struct vmm_port *lead; /* of the link; itself without one */
	LINKED_DEVICE linked;  /* what the miniport said of it */
	uint32_t link_count;   /* of the lead: how many physical adapters it has; 1: no link */
	struct vmm_port *link[VMM_PORT_LINKS_MAX]; /* of the lead: all of them, itself first */
	struct vmm_port_caps caps;
	DRIVER_OBJECT driver;
	DEVICE_OBJECT device; /* the physical device object */
	uint32_t bar_count;
	struct vmm_port_bar bar[VMM_PORT_BARS_MAX];
	uint64_t identity_physical; /* reserved: numbers the device in names */
	uint64_t system_memory_bytes;
	CM_RESOURCE_LIST *resources;
	char device_key[VMM_PORT_PATH_CHARS], service_key[VMM_PORT_PATH_CHARS];
	UNICODE_STRING device_path, service_path;
	uint16_t device_path_text[VMM_PORT_PATH_CHARS], service_path_text[VMM_PORT_PATH_CHARS];
	/* start and stop only, one thread */
	bool registering, registered;
	struct vidmm_adapter_report *report; /* the caller's; NULL once the start is over */

	uint32_t features; /* that are enabled: bit n is DXGK_FEATURE_ID n; the lead's */
	_Atomic uint32_t enabled_features; /* of these, those that the miniport has asked for */
	_Atomic bool dead;
	_Atomic bool connected;      /* the interrupt: from StartDevice to StopDevice */
	_Atomic bool listening;      /* the sink hears it: from the end of start to stop */
	_Atomic bool scheduler_busy; /* somebody is in a DDI of the scheduler class */
	/* Level three (gate.c). */
	_Atomic uint32_t inside; /* threads in DDIs that it excludes */
	_Atomic bool suspended;
	_Atomic bool
		gone; /* the device is: the gate stays shut, but for the end of objects (PNP-08) */
	_Atomic bool excluding; /* level two: who comes waits, instead of being refused */
	_Atomic uint32_t
		gate; /* futex: moves when it opens, and when somebody leaves while it is shut */
	_Atomic(struct vmm_os_thread *) exclusive; /* who shut it */
	/* The lead's are those of the whole link: one line, one DPC, so that nothing of it runs twice at a time. */
	KDPC dpc;
	_Atomic bool dpc_wanted; /* of a link: whose routine it is to call */
	struct vmm_nt_interrupt interrupt;
	/* Since the interrupt lock was taken; guarded by it (SUB-08, SUB-11). */
	bool notified, queued, told_of_display;

	/* Never held: taking one checks the ranks of the caller's locks. */
	struct vmm_os_mutex object_gate, paging_gate;
	struct vmm_os_mutex lock;                /* leaf; guards the rest */
	const struct vmm_port_process *creating; /* in DxgkDdiCreateProcess, on that thread */
	struct vmm_os_thread *creator;
	struct vmm_list devices;
	struct vmm_list mappings;
	uint8_t config[VMM_PORT_CONFIG_BYTES];
};

/* What an adapter of WDDM 2.x says in other structures, and what is asked of it besides. */
static inline bool vmm_port_is_wddm2(const struct vmm_port *port)
{
	return port->version->segment_query == DXGKQAITYPE_QUERYSEGMENT4;
}

/* ---- table.c ---- */
/* Copies what the table's version has and checks the entries every adapter needs (spec 1.11). */
NTSTATUS vmm_port_table_read(struct vmm_port *port, const DRIVER_INITIALIZATION_DATA *table);
/* The entries that depend on capabilities. */
NTSTATUS vmm_port_table_check_caps(struct vmm_port *port, const DXGK_DRIVERCAPS *caps);

/* ---- link.c ---- */
/* Can the miniport that was loaded lead these adapters? Otherwise a reason. */
NTSTATUS vmm_port_chain_check(const struct vmm_port_chain *chain);
/* DxgkDdiLinkDevice, where there is one, right after AddDevice (LNK-01). */
NTSTATUS vmm_port_link_device(struct vmm_port *port);
/* Everybody was asked: do they make one link (LNK-02, LNK-03)? The lead becomes the first. */
NTSTATUS vmm_port_chain_agree(struct vmm_port_chain *chain);
/* The capabilities are the lead's: as many nodes has each adapter. */
NTSTATUS vmm_port_link_nodes(struct vmm_port *port);

/* A node as the miniport names it, and as the core does (struct vmm_port_caps). */
struct vmm_port_place {
	UINT node, engine;
};
static inline struct vmm_port_place vmm_port_place_of(const struct vmm_port *port, uint32_t node)
{
	return (struct vmm_port_place){node % port->caps.nodes_each, node / port->caps.nodes_each};
}
static inline uint32_t vmm_port_node_of(const struct vmm_port *port, struct vmm_port_place place)
{
	return place.engine * port->caps.nodes_each + place.node;
}

/* ---- device.c: the device that the miniport finds ---- */
vmm_status vmm_port_device_init(struct vmm_port *port,
				const struct vmm_port_options *options) VMM_MUST_CHECK;
void vmm_port_device_finish(struct vmm_port *port);
/* The BAR that holds [physical, +size_bytes); NULL when none does. */
struct vmm_port_bar *vmm_port_find_bar(struct vmm_port *port, uint64_t physical,
				       uint64_t size_bytes);

/* ---- caps.c, segments.c ---- */
NTSTATUS vmm_port_query_adapter_info(struct vmm_port *port, DXGKARG_QUERYADAPTERINFO *args);
NTSTATUS vmm_port_query_caps(struct vmm_port *port);
NTSTATUS vmm_port_query_segments(struct vmm_port *port);
/* caps_wddm2.c: what MemoryManagementCaps may claim, and where the nodes and the paging node are said. */
NTSTATUS vmm_port_check_addressing(struct vmm_port *port, const DXGK_DRIVERCAPS *caps);
NTSTATUS vmm_port_query_physical_adapter(struct vmm_port *port, DXGK_DRIVERCAPS *caps);
/* caps_hw.c: may it schedule by itself, and on which nodes (SCH-10)? */
NTSTATUS vmm_port_query_hw_scheduling(struct vmm_port *port);
NTSTATUS vmm_port_table_check_hw(struct vmm_port *port);
NTSTATUS vmm_port_table_check_gpummu(struct vmm_port *port, bool resizable_root);
NTSTATUS vmm_port_query_gpummu(struct vmm_port *port);
NTSTATUS vmm_port_cb_reserve(HANDLE handle,
			     DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE *args); /* table.c */
/* segments_host.c */
struct vmm_port_host_aperture vmm_port_host_of(const DXGK_SEGMENTDESCRIPTOR4 *d);
/* SWZ-29, SEG-24 */
NTSTATUS vmm_port_keep_host(struct vmm_port *port, struct vmm_port_segment *segment,
			    const struct vmm_port_host_aperture *host);
/* segments_vpr.c */
struct vmm_port_vpr vmm_port_vpr_of(const DXGK_SEGMENTDESCRIPTOR4 *d);
/* Checks and keeps it, if the segment has one at all. */
NTSTATUS vmm_port_keep_vpr(struct vmm_port *port, struct vmm_port_segment *segment,
			   const struct vmm_port_vpr *vpr);

/* segments_wddm2.c */
DXGK_SEGMENTDESCRIPTOR3 vmm_port_older_form(const DXGK_SEGMENTDESCRIPTOR4 *descriptor);
NTSTATUS vmm_port_check_segment_flags2(struct vmm_port *port, UINT id, DXGK_SEGMENTFLAGS flags);
NTSTATUS vmm_port_check_apertures(struct vmm_port *port, UINT count);
/* Asks for the `count` ranges of a segment that must not be used, and keeps them (SEG-26). */
/* Sorted, with those that touch or overlap made one. */
void vmm_port_merge_invalid_ranges(struct vmm_port_segment *segment, UINT count);
NTSTATUS vmm_port_keep_invalid_ranges(struct vmm_port *port, struct vmm_port_segment *segment,
				      UINT count);
void vmm_port_segments_forget(struct vmm_port *port);
/* Of checks that are all made: what the first one that failed says. */
static inline NTSTATUS vmm_port_first_failure(NTSTATUS first, NTSTATUS next)
{
	return first != STATUS_SUCCESS ? first : next;
}

/* ---- report.c: what the miniport says, for whoever looks on; all do nothing without a report ---- */
void vmm_port_report_step(struct vmm_port *port, enum vidmm_start_step step);
void vmm_port_report_device(struct vmm_port *port);
void vmm_port_report_version(struct vmm_port *port, uint32_t version);
void vmm_port_report_caps(struct vmm_port *port, const DXGK_DRIVERCAPS *caps);
void vmm_port_report_nodes(struct vmm_port *port);
void vmm_port_report_segment_count(struct vmm_port *port, uint32_t count);
void vmm_port_report_segment(struct vmm_port *port, uint32_t index,
			     const DXGK_SEGMENTDESCRIPTOR3 *descriptor);
/* It was found good: its effective flags. */
void vmm_port_report_kept(struct vmm_port *port, uint32_t index);
void vmm_port_report_paging_buffer(struct vmm_port *port, uint32_t segment, uint32_t size_bytes,
				   uint32_t private_bytes);

/* ---- callbacks.c, device_services.c, interrupt.c ---- */
void vmm_port_services_init(struct vmm_port *port);
/* callbacks_wddm2.c: what the interface has from 2.0 on. */
void vmm_port_services_fill_wddm2(DXGKRNL_INTERFACE *services);
/* A reason, and STATUS_NOT_SUPPORTED. Without DeviceHandle it needs a thread that is in a DDI. */
NTSTATUS vmm_port_cb_not_built(HANDLE handle, const char *callback);
VOID *vmm_port_cb_get_handle_data(IN_CONST_PDXGKARGCB_GETHANDLEDATA data);
/* The port that a miniport's first argument means; a finding and NULL when it means none. */
struct vmm_port *vmm_port_from_handle(HANDLE handle, const char *callback);
/* The port whose DDI the calling thread is in; NULL when it is in none. */
struct vmm_port *vmm_port_of_thread(void);
/* NT-01: false, after a finding, when the thread is above the callback's limit. */
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
/* From here on, or from then on, interrupts and DPCs reach the sink. */
void vmm_port_interrupt_listen(struct vmm_port *port, bool listening);
/* No DPC runs or will run. */
void vmm_port_interrupt_finish(struct vmm_port *port);
BOOLEAN vmm_port_cb_queue_dpc(HANDLE handle);
NTSTATUS vmm_port_cb_synchronize_execution(HANDLE handle, PKSYNCHRONIZE_ROUTINE routine,
					   PVOID context, ULONG message, PBOOLEAN result);
VOID vmm_port_cb_notify_interrupt(IN_CONST_HANDLE handle,
				  IN_CONST_PDXGKARGCB_NOTIFY_INTERRUPT_DATA data);
VOID vmm_port_cb_notify_dpc(IN_CONST_HANDLE handle);

/* ---- ddi_event.c ---- */
NTSTATUS vmm_port_cb_signal_event(IN_CONST_PDXGKARGCB_SIGNALEVENT data);

/* ---- ddi_object.c ---- */
void vmm_port_devices_forget(struct vmm_port *port);

/* ---- gate.c: who is inside, and level three, where nobody else is ---- */
/* Not now: false, unless the caller is the one whom the gate is shut for, or `waiting` and it has opened again. */
bool vmm_port_begin_slow(struct vmm_port *port, bool waiting) VMM_COLD;
void vmm_port_end_slow(struct vmm_port *port) VMM_COLD;
void vmm_port_gone(struct vmm_port *port); /* PNP-08 */
/* Before a DDI; false: it may not be made, STATUS_DEVICE_REMOVED. Otherwise vmm_port_end afterwards. */
static inline bool vmm_port_begin(struct vmm_port *port)
{
	atomic_fetch_add(&port->inside, 1);
	if (vmm_likely(!atomic_load(&port->suspended)))
		return true;
	return vmm_port_begin_slow(port, false);
}
/* The same of what must not get lost: it waits until the gate opens. False: the adapter is dead. */
static inline bool vmm_port_begin_waiting(struct vmm_port *port)
{
	atomic_fetch_add(&port->inside, 1);
	if (vmm_likely(!atomic_load(&port->suspended)))
		return true;
	return vmm_port_begin_slow(port, true);
}
static inline void vmm_port_end(struct vmm_port *port)
{
	if (atomic_fetch_sub(&port->inside, 1) == 1 && vmm_unlikely(atomic_load(&port->suspended)))
		vmm_port_end_slow(port);
}
void vmm_port_gate_wake(struct vmm_port *port);

/* ---- fatal.c ---- */
/* The miniport came back at another IRQL: says so and puts the thread back to `level`. */
void vmm_port_wrong_irql(struct vmm_port *port, const char *routine, uint32_t level) VMM_COLD;
/* A status that is not in the DDI's documented set. */
void vmm_port_wrong_status(struct vmm_port *port, const char *rule, enum vidmm_ddi ddi,
			   NTSTATUS status) VMM_COLD;

/* ---- ddi_submit.c, ddi_present.c ---- */
/* DMA-28: whether `now` is a place inside [start, start + room_bytes], whole elements after its start. */
static inline bool vmm_port_advanced(const void *start, const void *now, uint64_t room_bytes,
				     uint64_t element_bytes)
{
	uintptr_t distance = (uintptr_t)now - (uintptr_t)start;

	return distance <= room_bytes && distance % element_bytes == 0;
}

/* DMA-28: one of them is out of bounds, or if neither is a list. */
void vmm_port_overflow(struct vmm_port *port, enum vidmm_ddi ddi, uint64_t commands,
		       uint64_t command_room, uint64_t private_data,
		       uint64_t private_room) VMM_COLD;

/* What DxgkDdiRender and DxgkDdiPresent were given to write into, and how far they said they came. */
struct vmm_port_room {
	const char *function;
	enum vidmm_ddi ddi;
	uint32_t command_bytes, private_bytes;
	uint64_t patch_bytes;
};
struct vmm_port_outputs {
	const void *commands, *private_data, *patches;
};
/* Their arguments have members of the same names. */
#define VMM_PORT_ROOM(function, ddi, args)                                        \
	{                                                                         \
		function, ddi, (args)->DmaSize, (args)->DmaBufferPrivateDataSize, \
			(uint64_t)(args)->PatchLocationListOutSize *              \
				sizeof(D3DDDI_PATCHLOCATIONLIST)                  \
	}
#define VMM_PORT_OUTPUTS(args)                                                                   \
	{                                                                                        \
		(args)->pDmaBuffer, (args)->pDmaBufferPrivateData, (args)->pPatchLocationListOut \
	}
/* DMA-28, after a pass that produced something. STATUS_DEVICE_REMOVED and a finding: out of bounds. */
NTSTATUS vmm_port_check_outputs(struct vmm_port *port, const struct vmm_port_room *room,
				const struct vmm_port_outputs *before,
				const struct vmm_port_outputs *after);

/* ---- into the miniport and back ---- */

struct vmm_port_call {
	struct vmm_os *world;
	uint64_t *slot;
	uint64_t outer;
};

/* From here on kernel services find this world, and callbacks without a handle this port. */
static inline struct vmm_port_call vmm_port_enter_any(struct vmm_port *port)
{
	uint64_t *slot = vmm_os_thread_slot(vmm_os_thread_self(port->os), VMM_PORT_THREAD_SLOT);
	struct vmm_port_call call = {vmm_os_set_current(port->os), slot, *slot};

	*slot = (uintptr_t)port;
	return call;
}

static inline void vmm_port_leave_any(const struct vmm_port_call *call)
{
	*call->slot = call->outer;
	vmm_os_set_current(call->world);
}

static inline struct vmm_port_call vmm_port_enter(struct vmm_port *port)
{
	vmm_assert(vmm_nt_irql(port->nt) == VMM_NT_PASSIVE);
	return vmm_port_enter_any(port);
}

static inline void vmm_port_leave(struct vmm_port *port, const struct vmm_port_call *call,
				  enum vidmm_ddi ddi)
{
	if (vmm_unlikely(vmm_nt_irql(port->nt) != VMM_NT_PASSIVE))
		vmm_port_wrong_irql(port, vmm_observe_reason_name(VIDMM_EVENT_DDI, ddi),
				    VMM_NT_PASSIVE);
	vmm_port_leave_any(call);
}

/*
 * The scheduler class admits one thread (section 4 of the submission rules); its lock is the
 * caller's.
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

/* Asserts that every lock of the calling thread has a smaller rank than the gate. */
static inline void vmm_port_pass(const struct vmm_os_mutex *gate)
{
	vmm_os_mutex_pass(gate);
}

static inline void vmm_port_ddi_event(struct vmm_port *port, enum vidmm_ddi ddi, NTSTATUS status,
				      uint64_t b, uint64_t c, uint64_t d)
{
	vmm_event(port->observe, VIDMM_EVENT_DDI, 0, 0, ddi, (uint32_t)status, b, c, d);
}

/*
 * One DDI at PASSIVE_LEVEL, from whether it may be made to its event. False: it may not, STATUS_DEVICE_REMOVED. Those about
 * objects pass the object gate on their way.
 */
static inline bool vmm_port_call_begin(struct vmm_port *port, struct vmm_port_call *call)
{
	if (vmm_unlikely(vmm_port_dead(port)) || !vmm_port_begin(port))
		return false;
	*call = vmm_port_enter(port);
	return true;
}

static inline bool vmm_port_call_begin_object(struct vmm_port *port, struct vmm_port_call *call,
					      bool waiting)
{
	if (vmm_port_dead(port))
		return false;
	vmm_port_pass(&port->object_gate);
	if (waiting ? !vmm_port_begin_waiting(port) : !vmm_port_begin(port))
		return false;
	*call = vmm_port_enter(port);
	return true;
}

static inline NTSTATUS vmm_port_call_end(struct vmm_port *port, const struct vmm_port_call *call,
					 enum vidmm_ddi ddi, NTSTATUS status, uint64_t b,
					 uint64_t c, uint64_t d)
{
	vmm_port_leave(port, call, ddi);
	vmm_port_end(port);
	vmm_port_ddi_event(port, ddi, status, b, c, d);
	return status;
}

static inline void vmm_port_callback_event(struct vmm_port *port, enum vidmm_ddi_callback callback,
					   NTSTATUS status)
{
	vmm_event(port->observe, VIDMM_EVENT_CALLBACK, 0, 0, callback, (uint32_t)status, 0, 0, 0);
}

#endif
