/* SPDX-License-Identifier: MIT */
/*
 * port: the miniport boundary, one choke point. Every DxgkDdi* call and every DxgkCb* callback
 * passes here; the IRQL of each call is set and checked, what the miniport returns is
 * bounds-checked, statuses outside a DDI's documented set become findings, every call is an event.
 * Port knows no policy and no VidMm or VidSch state: it reports upward through struct
 * vmm_port_sink.
 *
 * DDI argument structures are passed through as they are: converting them would cost per-entry work
 * on the hot path and a second set of names for the same thing.
 *
 * Locks: DDIs of the scheduler class (BuildPagingBuffer, Patch, SubmitCommand, PreemptCommand,
 * AcquireSwizzlingRange, ReleaseSwizzlingRange) are serialised by the caller's paging lock; port
 * asserts that they never overlap. No other core lock may be held when calling a miniport: the DDIs
 * that are not hot assert the ranks of the caller's locks. Port's own locks are leaves: the
 * device's services, and the device interrupt, whose holder is at DIRQL.
 */
#ifndef VMM_PORT_PORT_H
#define VMM_PORT_PORT_H

#include "base/base.h"
#include "os/os.h"
#include "nt/nt.h"
#include "observe/observe.h"
#include <d3dkmddi.h>
#include <dispmprt.h>
#include <vidmm/caps.h>

/*
 * The kernel-side headers are compiled with the newest version that this port speaks (see
 * src/port/meson.build); what a miniport of an older version does not have is neither read nor
 * written (sizes by its Version).
 */

struct vmm_port;

/* Codes of vmm_port_fatal and first parameters of VIDSCH (section 0 of the submission rules). */
#define VMM_PORT_FATAL_VIDMM    0x10Eu /* p1: below */
#define VMM_PORT_FATAL_TDR      0x116u /* recovery failed or was not to be tried (TDR-01, 04, 08, 13) */
#define VMM_PORT_FATAL_VIDSCH   0x119u
#define VMM_PORT_VIDSCH_SUBMIT  0x2u /* p2: status, p3: fence */
#define VMM_PORT_VIDSCH_PATCH   0x3u /* p2: status, p3: fence */
#define VMM_PORT_VIDSCH_CANCEL  0x9u /* p2: status */
#define VMM_PORT_VIDSCH_ABORTED 0xAu /* p2: LastAbortedFenceId, p3: last completed */

/* First parameters of VIDMM. Those that the published list of the stop code has bear its numbers; the others are ours. */
#define VMM_PORT_VIDMM_PAGING_STATUS    0xBu  /* p2: operation, p3: status */
#define VMM_PORT_VIDMM_DMA_OVERFLOW     0x12u /* p2: bytes advanced, p3: room */
#define VMM_PORT_VIDMM_PRIVATE_OVERFLOW 0x13u /* likewise */
#define VMM_PORT_VIDMM_CONTRACT         0x16u /* p2: bytes used, p3: room (DMA-30) */
#define VMM_PORT_VIDMM_OTHER(ddi)       (0x1000u + (uint32_t)(ddi))

#define VMM_PORT_REASON_ADAPTER 0x117u /* of CollectDbgInfo (TDR-03) */
#define VMM_PORT_REASON_ENGINE  0x141u
#define VMM_PORT_REASON_BLOCKED 0x142u /* no call: a process that is denied its GPU (TDR-20) */

#define VMM_PORT_SEGMENTS_MAX 31u /* DMA-20: five bits of SegmentId */
#define VMM_PORT_BANKS_MAX    128u
/* More, those of all adapters of a link, are refused with STATUS_NOT_SUPPORTED: VidSch schedules no more. */
#define VMM_PORT_NODES_MAX    4u
#define VMM_PORT_LINKS_MAX    4u /* physical adapters of a link; the same */

/*
 * Ranks (docs/locking.md). The first two are gates, passed but never held: a caller of an object
 * DDI holds the submit lock at most, one of a paging DDI the paging lock at most.
 */
#define VMM_PORT_RANK_OBJECT     15u
#define VMM_PORT_RANK_PAGING_DDI 25u
#define VMM_PORT_RANK_DEVICE     60u
#define VMM_PORT_RANK_INTERRUPT  70u

#define VMM_PORT_SOURCES_MAX 16u

struct vmm_port_range {
	uint64_t offset, size_bytes;
};

/* ALF-26: where in a segment protected content may be, and how. */
struct vmm_port_vpr {
	uint64_t offset, size_bytes; /* size 0: nowhere */
	uint64_t alignment;          /* VprAlignment, at least a page */
	uint64_t reserve_bytes; /* the miniport's own, at the start; also among what is invalid */
	uint32_t regions;       /* NumVprSupported; 0: any number */
};

/* SWZ-29: a window through which the CPU sees pages of a memory segment. */
struct vmm_port_host_aperture {
	uint64_t physical; /* of the CPU's address space */
	uint32_t pages;    /* of the segment's page size; 0: there is none */
};

struct vmm_port_segment {
	uint32_t id; /* 1.. (SEG-01) */
	/* Without what has no meaning: CpuVisible of an aperture, CacheCoherent of memory. */
	DXGK_SEGMENTFLAGS flags;
	uint64_t gpu_base;     /* BaseAddress */
	vmm_physaddr cpu_base; /* CpuTranslatedAddress, with CpuVisible */
	uint64_t told_base;    /* CpuTranslatedAddress, as the miniport gave it */
	uint64_t size_bytes;
	uint64_t commit_limit_bytes;
	uint64_t system_memory_end;            /* SystemMemoryEndAddress (SEG-23) */
	uint32_t bank_count;                   /* 0: not banked */
	uint64_t bank_end[VMM_PORT_BANKS_MAX]; /* SEG-12, ends in rising order, the last = size */
	uint32_t
		invalid_count; /* SEG-26: never to be used; in rising order, apart from each other */
	struct vmm_port_range *invalid;
	struct vmm_port_vpr vpr;
	uint64_t page_bytes; /* 4096, or 65536 with Use64KBPages */
	struct vmm_port_host_aperture host;
};

/* GPU virtual addressing (caps_gpummu.c). */
#define VMM_PORT_PAGE_TABLE_LEVELS_MIN 2u
#define VMM_PORT_PAGE_TABLE_LEVELS_MAX 6u
#define VMM_PORT_ROOT_TABLE_BYTES_MAX  ((uint64_t)1 << 30)
struct vmm_port_gpummu {
	bool supported;
	DXGK_GPUMMUCAPS caps;
	DXGK_PAGE_TABLE_LEVEL_DESC level[VMM_PORT_PAGE_TABLE_LEVELS_MAX]; /* [0] is the leaf's */
};

struct vmm_port_caps {
	uint32_t interface_version; /* the Version the miniport registered */
	bool wddm2;                 /* that is 2.0 or later */
	bool map_aperture2;         /* MapAperture2Supported (ALF-29) */
	bool validate_property;     /* it has DxgkDdiValidateUpdateAllocationProperty (PRI-15) */
	bool set_backing_store;     /* it has DxgkDdiSetAllocationBackingStore (ALF-30) */
	bool non_cpu_visible_primary;
	bool multi_engine_aware, preemption_aware, no_dma_patching;
	bool cancel_command_aware, per_engine_tdr, out_of_order_lock;
	bool cross_adapter_resource;        /* since 1.3 */
	bool no_64bit_atomics;              /* since 2.0 (MFN-06) */
	bool non_vga, smooth_rotation;      /* since 1.2 */
	bool surprise_removal_hibernation;  /* since 1.2 (PNP-08) */
	bool surprise_removal;              /* since 2.0 */
	D3DKMDT_PREEMPTION_CAPS preemption; /* since 1.2 */
	/*
	 * Nodes as the core counts them: those of a link's lead, then those of the next adapter, and so on. Node n of
	 * them is NodeOrdinal n % nodes_each on EngineOrdinal n / nodes_each (SCH-08).
	 */
	uint32_t node_count, nodes_each, paging_node;
	/* MaxAllocationListSlotId; 0: each allocation index is its own slot (PAT-07). */
	uint32_t slot_count;
	uint32_t swizzling_range_count;
	uint64_t aperture_commit_limit_bytes; /* ApertureSegmentCommitLimit */
	uint32_t dma_queue_entries;           /* DXGK_START_INFO.RequiredDmaQueueEntry (SUB-15) */
	uint32_t node_depth; /* packets outstanding per node: HwQueuePacketCap or 2 (SUB-16) */
	uint32_t paging_buffer_segment, paging_buffer_bytes, paging_private_bytes; /* SEG-21 */
	/* Hardware scheduling (caps_hw.c). Nodes that take hardware queues; 0: none, or it is not enabled. */
	uint32_t hw_nodes;                         /* bit per node */
	uint32_t hw_in_flight[VMM_PORT_NODES_MAX]; /* MaxInFlightHwQueueBuffers; 0: any number */
	struct vmm_port_gpummu gpummu;
	DXGK_FLIPCAPS flip;
	/*
	 * NumberOfVideoPresentSources of the lead; 0 also where the miniport cannot show anything (PRS-02). Target n shows
	 * source n.
	 */
	uint32_t source_count;
	uint32_t segment_count;
	struct vmm_port_segment segment[VMM_PORT_SEGMENTS_MAX]; /* [0] = id 1 */
};

/*
 * What port tells the core. Called at the IRQL given; context is vmm_port_options.sink_context.
 * Interrupts and DPCs are told between the end of vmm_port_start and the beginning of
 * vmm_port_stop.
 */
struct vmm_port_sink {
	/*
	 * DIRQL, interrupt lock held, never re-entered: record only (SUB-07). Completed, preempted
	 * or faulted DMA, whose NodeOrdinal counts as struct vmm_port_caps does; CRTC_VSYNC and
	 * PERIODIC_MONITORED_FENCE_SIGNALED of a target that is there; with hardware queues MONITORED_FENCE_SIGNALED,
	 * HWQUEUE_PAGE_FAULTED and SUSPEND_CONTEXT_COMPLETED.
	 */
	void (*interrupt)(void *context, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
	/* DISPATCH: the miniport's DPC called DxgkCbNotifyDpc; effects become visible here. */
	void (*dpc)(void *context);
	/*
	 * DxgkCbGetHandleData / GetHandleParent / EnumHandleChildren: the miniport's private data
	 * of a handle, or NULL.
	 */
	void *(*handle_data)(void *context, uint32_t handle, uint32_t type, bool device_specific);
	uint32_t (*handle_parent)(void *context, uint32_t allocation);
	/* May be NULL: then it is not built. */
	uint32_t (*handle_child)(void *context, uint32_t resource, uint32_t index);
	/* DxgkCbCreate- and DestroyContextAllocation (PRE-11). PASSIVE_LEVEL, in whatever DDI. Likewise may be NULL. */
	NTSTATUS(*create_context_allocation)
	(void *context, DXGKARGCB_CREATECONTEXTALLOCATION *args);
	NTSTATUS (*destroy_context_allocation)(void *context, HANDLE allocation);
	/* DxgkCbInvalidateHwContext: `context` is what DxgkDdiCreateHwContext was given. PASSIVE_LEVEL, in ResetHwEngine. */
	NTSTATUS (*invalidate_hw_context)(void *context, HANDLE hw_context, bool collateral);
	/*
	 * What would be a bug check: emitted as VIDMM_EVENT_FATAL by port before this call; the
	 * adapter must stop.
	 */
	void (*fatal)(void *context, uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3);
};

struct vmm_port_registry_value {
	const char *name;
	uint64_t value;
};

struct vmm_port_options {
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	NTSTATUS (*driver_entry)(struct _DRIVER_OBJECT *, struct _UNICODE_STRING *); /* or: */
	const DRIVER_INITIALIZATION_DATA *initialization_data;
	uint32_t physical_adapters; /* that are to be one link; 0 and 1: no link */
	const uint64_t *bar_sizes;  /* of each */
	uint32_t bar_count, registry_count;
	const struct vmm_port_registry_value *registry;
	uint64_t system_memory_bytes; /* DXGK_DEVICE_INFO.SystemMemorySize; 0: 64 GiB */
	uint32_t features;            /* bit n: DXGK_FEATURE_ID n is enabled */
	const struct vmm_port_sink *sink;
	void *sink_context;
	/* What the miniport says is kept here while it starts, for whoever wants to see it; or NULL. */
	struct vidmm_adapter_report *report;
};

/*
 * DriverEntry (or the table) -> table check for its version (which DDIs must be there: spec 1.11)
 * -> AddDevice, LinkDevice (link.c) -> StartDevice -> caps -> segments (both passes) -> validation (SEG-02..06, 12, 21,
 * 22, DMA-20, PRE-09, SPL-15, TDR-14, SCH-07, PNP-06 ...). A refusal emits the finding that says
 * why, undoes what was done (PNP-01: no StopDevice after a failed StartDevice) and returns the
 * documented status. What of GPU virtual addressing (2.x) is not built: STATUS_NOT_SUPPORTED with a reason.
 */
vmm_status vmm_port_start(const struct vmm_port_options *options,
			  struct vmm_port **port) VMM_MUST_CHECK;
/*
 * StopDevice, RemoveDevice, Unload; the core has closed everything before (PNP-03). A dead port's
 * miniport is called here once more, because only it can end its threads.
 */
void vmm_port_stop(struct vmm_port *port);
/*
 * DxgkDdiSetPowerState for the adapter, PASSIVE_LEVEL, level 3: the caller saw to it that the GPU is idle, that nothing
 * is left to lose, and that nobody else is in the miniport (PAG-28). A failure is said and changes nothing (PNP-07).
 */
void vmm_port_set_power_state(struct vmm_port *port, DEVICE_POWER_STATE state, POWER_ACTION action);
/*
 * PNP-08: the device is gone. DxgkDdiNotifySurpriseRemoval, PASSIVE_LEVEL, whoever is inside the miniport. From then on only
 * the end of objects, StopDevice and what follows reach it. VMM_NOT_SUPPORTED: it has not said that it can be told, and
 * not even those do; VMM_DEVICE_REMOVED: the same, and fatal, because it failed.
 */
vmm_status vmm_port_notify_removal(struct vmm_port *port,
				   DXGK_SURPRISE_REMOVAL_TYPE type) VMM_MUST_CHECK;
const struct vmm_port_caps *vmm_port_caps(const struct vmm_port *port);
/* Has the miniport asked whether that feature is enabled, and been told so? */
bool vmm_port_feature_is_enabled(const struct vmm_port *port, DXGK_FEATURE_ID id);
/* How many physical adapters it is; 1: no link. */
uint32_t vmm_port_physical_adapters(const struct vmm_port *port);
/* What the device looks like from outside: its configuration space, and where in the machine it is. */
struct vmm_port_identity {
	uint16_t vendor, device, subsystem_vendor, subsystem;
	uint8_t revision;
	uint32_t bus_type, bus, slot;
};
void vmm_port_identity(const struct vmm_port *port, struct vmm_port_identity *identity);
/*
 * DxgkDdiQueryAdapterInfo(UMDRIVERPRIVATE), PASSIVE_LEVEL, level 0, in every power state (PNP-07): what the miniport tells its
 * user-mode driver. Its status, whatever it is.
 */
NTSTATUS vmm_port_driver_private(struct vmm_port *port, void *data, uint32_t size_bytes);
/* AdapterLuid.LowPart, as the miniport was told it; HighPart is 0. Never 0, another one for every adapter of a world. */
uint32_t vmm_port_luid(const struct vmm_port *port);
/* Our mapping of a BAR of the device; NULL: there are fewer. */
const void *vmm_port_bar_memory(const struct vmm_port *port, uint32_t index, uint64_t *size_bytes);
/*
 * The BAR memory behind a CPU-visible memory segment: the object and the offset of the segment's
 * first byte. NULL if none.
 */
struct vmm_os_memory *vmm_port_segment_memory(struct vmm_port *port, uint32_t segment_id,
					      uint64_t *offset);
/*
 * The same of one that the CPU does not see, where its CpuTranslatedAddress says where in a BAR the bytes are all the same, and
 * no other segment is there. Ranges may show them (SWZ-24). NULL: not known.
 */
struct vmm_os_memory *vmm_port_hidden_memory(struct vmm_port *port, uint32_t segment_id,
					     uint64_t *offset);
/* Is any of that a memory segment's, or a CPU host aperture's? */
bool vmm_port_is_of_segment(const struct vmm_port *port, uint64_t physical, uint64_t size_bytes);
/* The BAR memory that lies in [physical, +size_bytes) of the CPU's address space. NULL: no BAR does. */
struct vmm_os_memory *vmm_port_cpu_memory(struct vmm_port *port, uint64_t physical,
					  uint64_t size_bytes, uint64_t *offset);
/*
 * After a fatal violation every other vmm_port_* call returns STATUS_DEVICE_REMOVED without
 * entering the miniport.
 */
bool vmm_port_dead(const struct vmm_port *port);
void vmm_port_fatal(struct vmm_port *port, uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3);

/* ---- PASSIVE_LEVEL, level 0 or 1: object DDIs ---- */
/* *handle in: our handle, out: the miniport's. */
NTSTATUS vmm_port_create_device(struct vmm_port *port, HANDLE *handle, bool system,
				DXGK_DEVICEINFO *info);
/* The same for a client's, of that miniport process where there are any (VA-01). */
NTSTATUS vmm_port_create_device_in(struct vmm_port *port, HANDLE *handle, HANDLE kmd_process,
				   DXGK_DEVICEINFO *info);
NTSTATUS vmm_port_destroy_device(struct vmm_port *port, HANDLE device);
/*
 * Not MultiEngineAware: never enters the miniport, yields the device's handle and DEVICEINFO's
 * figures (DMA-33).
 */
NTSTATUS vmm_port_create_context(struct vmm_port *port, HANDLE device, DXGKARG_CREATECONTEXT *args);
NTSTATUS vmm_port_destroy_context(struct vmm_port *port, HANDLE context);
NTSTATUS vmm_port_create_allocation(struct vmm_port *port, DXGKARG_CREATEALLOCATION *args);
/* PRI-15; in the table (caps.validate_property). STATUS_INVALID_PARAMETER: it is refused. */
NTSTATUS vmm_port_validate_property(struct vmm_port *port,
				    const DXGKARG_VALIDATEUPDATEALLOCPROPERTY *args);
/* ALF-30; in the table (caps.set_backing_store). */
NTSTATUS vmm_port_set_backing_store(struct vmm_port *port, HANDLE allocation, void *address);
NTSTATUS vmm_port_destroy_allocation(struct vmm_port *port, HANDLE resource,
				     const HANDLE *allocations, UINT count, bool destroy_resource);
/* ALF-38. STATUS_NOT_SUPPORTED also where the miniport has no such entry. */
NTSTATUS vmm_port_standard_allocation(struct vmm_port *port,
				      DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA *args);
/* ALF-39 */
NTSTATUS vmm_port_describe_allocation(struct vmm_port *port, DXGKARG_DESCRIBEALLOCATION *args);
NTSTATUS vmm_port_open_allocation(struct vmm_port *port, HANDLE device,
				  DXGKARG_OPENALLOCATION *args);
NTSTATUS vmm_port_close_allocation(struct vmm_port *port, HANDLE device,
				   const HANDLE *open_allocations, UINT count);

/* ---- events of clients that the miniport sets (ddi_event.c); PASSIVE_LEVEL ---- */

struct vmm_port_cpu_event;
/*
 * DxgkDdiCreateCpuEvent; keeps a duplicate of the event. STATUS_NOT_SUPPORTED: the miniport has no such entry; otherwise its
 * failure, whatever it is (CPN-08).
 */
NTSTATUS vmm_port_create_cpu_event(struct vmm_port *port, HANDLE device, int event,
				   struct vmm_port_cpu_event **result);
/* DxgkDdiDestroyCpuEvent (CPN-06). Once it is back nothing sets the event any more. */
void vmm_port_destroy_cpu_event(struct vmm_port *port, struct vmm_port_cpu_event *event);
/* DxgkDdiEscape with a record about such an event, in which the miniport finds its own handle (CPN-10). */
NTSTATUS vmm_port_escape_cpu_event(struct vmm_port *port, HANDLE device, uint32_t flags,
				   const struct vmm_port_cpu_event *event,
				   D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE *record);

/*
 * DxgkDdiRender. Bounds of pDmaBuffer, pPatchLocationListOut and private data are checked after it
 * (DMA-28: fatal 0x10E); the status is one of DMA-29/31 or becomes STATUS_INVALID_PARAMETER with a
 * finding.
 */
NTSTATUS vmm_port_render(struct vmm_port *port, HANDLE context, DXGKARG_RENDER *args);

/* DxgkDdiPresent, likewise (DMA-37). With pDmaBuffer NULL there is nothing whose bounds could be left (DMA-32). */
NTSTATUS vmm_port_present(struct vmm_port *port, HANDLE context, DXGKARG_PRESENT *args);
/*
 * DxgkDdiSetVidPnSourceAddress of a flip at DIRQL, under the paging lock at most (PRS-04). STATUS_DEVICE_REMOVED: the
 * miniport is somebody else's at the moment, or dead.
 */
NTSTATUS vmm_port_flip(struct vmm_port *port, const DXGKARG_SETVIDPNSOURCEADDRESS *args);
/*
 * Level two (section 4): the miniport is the calling thread's alone; who would enter waits. The caller saw to it that
 * the GPU is idle, and holds the submit and the paging lock. False: the adapter is being reset, or dead.
 */
bool vmm_port_exclude(struct vmm_port *port);
void vmm_port_admit(struct vmm_port *port);
/* PASSIVE_LEVEL, excluded: a source begins to show something, or nothing any more. */
NTSTATUS vmm_port_set_source_address(struct vmm_port *port,
				     const DXGKARG_SETVIDPNSOURCEADDRESS *args);
NTSTATUS vmm_port_set_source_visibility(struct vmm_port *port, uint32_t source, bool visible);

/*
 * DxgkDdiCreatePeriodicFrameNotification (PMF): interrupt 14 with that id so long before each vertical sync of the target.
 * STATUS_NOT_SUPPORTED: the miniport has no such entry; STATUS_INVALID_PARAMETER also for a time longer than a frame.
 */
NTSTATUS vmm_port_create_periodic(struct vmm_port *port, uint32_t target, uint64_t time_100ns,
				  uint32_t id, HANDLE *notification);
void vmm_port_destroy_periodic(struct vmm_port *port, HANDLE notification);

/* ---- scheduler class, serialised by the paging lock ---- */
/* PASSIVE_LEVEL; failure is fatal (PAT-18). */
NTSTATUS vmm_port_patch(struct vmm_port *port, const DXGKARG_PATCH *args);
/*
 * DISPATCH_LEVEL; failure is fatal (SUB-05). Queued DPCs run before it returns: sink->dpc may be
 * called with the caller's locks held.
 */
NTSTATUS vmm_port_submit(struct vmm_port *port, const DXGKARG_SUBMITCOMMAND *args);
/*
 * STATUS_SUCCESS, STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER or STATUS_GRAPHICS_ALLOCATION_BUSY;
 * anything else is fatal (PAG-09). pDmaBuffer and private data must have advanced inside their
 * bounds.
 */
NTSTATUS vmm_port_build_paging_buffer(struct vmm_port *port, DXGKARG_BUILDPAGINGBUFFER *args);
/* The pages of an MDL as a list of their numbers, which stays the MDL's; or as one run. */
void vmm_port_describe_pages(const void *mdl, DXGK_ADL *adl);
/*
 * may_change: RangeSize and CPUTranslatedAddress in args are what the miniport made of them (SWZ-24); otherwise a change is
 * a refusal (SWZ-03).
 */
NTSTATUS vmm_port_acquire_swizzling_range(struct vmm_port *port,
					  DXGKARG_ACQUIRESWIZZLINGRANGE *args, bool may_change);
/*
 * SWZ-29; segments with a host aperture have both in their table. The miniport's failure is its status, and nothing is mapped;
 * one of Unmap is a finding, and counts as done.
 */
NTSTATUS vmm_port_map_host_aperture(struct vmm_port *port, const DXGKARG_MAPCPUHOSTAPERTURE *args);
NTSTATUS vmm_port_unmap_host_aperture(struct vmm_port *port,
				      const DXGKARG_UNMAPCPUHOSTAPERTURE *args);
NTSTATUS vmm_port_release_swizzling_range(struct vmm_port *port,
					  const DXGKARG_RELEASESWIZZLINGRANGE *args);

/* ---- GPU virtual addressing (ddi_gpummu.c): PASSIVE_LEVEL, only with caps.gpummu.supported ---- */
struct vmm_port_process {
	HANDLE handle; /* hDxgkProcess */
	/* DxgkCbReserveGpuVirtualAddressRange, called inside vmm_port_create_process alone (VA-15). */
	NTSTATUS(*reserve)
	(const struct vmm_port_process *process, DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE *args);
};
/* Object DDIs; one process of a port at a time is created. */
NTSTATUS vmm_port_create_process(struct vmm_port *port, const struct vmm_port_process *process,
				 HANDLE *kmd_process);
void vmm_port_destroy_process(struct vmm_port *port, HANDLE kmd_process);
/* The paging lock is held. *entries: wanted, then had. Only where there are two levels. */
NTSTATUS vmm_port_root_table_size(struct vmm_port *port, uint32_t *entries, uint64_t *bytes);
/* VA-12: the context is not on the GPU. The paging lock is held. */
void vmm_port_set_root(struct vmm_port *port, const DXGKARG_SETROOTPAGETABLE *args);
/* As vmm_port_submit; STATUS_INVALID_PARAMETER: the miniport refuses it, which is not fatal (SUB-23). */
NTSTATUS vmm_port_submit_virtual(struct vmm_port *port, const DXGKARG_SUBMITCOMMANDVIRTUAL *args);

/* SUB-25, since 2.5: before a command with private data is queued; the miniport need not have it. PASSIVE_LEVEL, the paging lock at most. */
NTSTATUS vmm_port_validate_command(struct vmm_port *port, DXGKARG_VALIDATESUBMITCOMMAND *args);

/* ---- hardware scheduling (ddi_hw.c): PASSIVE_LEVEL, only with caps.hw_nodes ---- */
/* Objects: the submit lock at most. As the calls for contexts; of a queue hHwQueue is ours in, the miniport's out. */
NTSTATUS vmm_port_create_hw_context(struct vmm_port *port, HANDLE device,
				    DXGKARG_CREATECONTEXT *args);
NTSTATUS vmm_port_destroy_hw_context(struct vmm_port *port, HANDLE context);
NTSTATUS vmm_port_create_hw_queue(struct vmm_port *port, HANDLE context,
				  DXGKARG_CREATEHWQUEUE *args);
NTSTATUS vmm_port_destroy_hw_queue(struct vmm_port *port, HANDLE queue);
NTSTATUS vmm_port_setup_priority_bands(struct vmm_port *port,
				       const DXGKARG_SETUPPRIORITYBANDS *args);
/*
 * The paging lock at most; the caller lets nobody else into a call for the same queue or context (SUB-27). Failures are
 * the caller's to deal with.
 */
NTSTATUS vmm_port_submit_to_hw_queue(struct vmm_port *port,
				     const DXGKARG_SUBMITCOMMANDTOHWQUEUE *args);
NTSTATUS vmm_port_set_context_scheduling(struct vmm_port *port,
					 const DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES *args);
/* STATUS_SUCCESS: it is off the GPU; STATUS_PENDING: its interrupt will say so (SCH-11). Anything else is a failure. */
NTSTATUS vmm_port_suspend_context(struct vmm_port *port, const DXGKARG_SUSPENDCONTEXT *args);
NTSTATUS vmm_port_resume_context(struct vmm_port *port, HANDLE context);
/* TDR-21 */
NTSTATUS vmm_port_reset_hw_engine(struct vmm_port *port, uint32_t node);
NTSTATUS vmm_port_resume_hw_engine(struct vmm_port *port, uint32_t node);

/* PASSIVE_LEVEL, no lock; the interrupt that it may have missed comes during the call (SUB-14). */
NTSTATUS vmm_port_query_current_fence(struct vmm_port *port, uint32_t node, UINT *fence);

/* May the calling thread make DDIs of PASSIVE_LEVEL? */
bool vmm_port_at_passive(const struct vmm_port *port);

/* ---- timeouts (ddi_reset.c, gate.c) ---- */
/* DISPATCH_LEVEL, scheduler class; failure is fatal (PRE-01). The answer may come before it returns (PRE-05). */
NTSTATUS vmm_port_preempt(struct vmm_port *port, uint32_t node, UINT fence);
/* PASSIVE_LEVEL, scheduler class; failure is fatal (TDR-12). Only of a CancelCommandAware miniport. */
NTSTATUS vmm_port_cancel(struct vmm_port *port, const DXGKARG_CANCELCOMMAND *args);
/*
 * Level three: from now on the miniport is the calling thread's alone. False: somebody has not left it by then (TDR-04);
 * who waits for him after that waits on. vmm_port_resume either way.
 */
bool vmm_port_suspend(struct vmm_port *port, uint64_t deadline_ns);
void vmm_port_resume(struct vmm_port *port);
uint32_t vmm_port_inside(const struct vmm_port *port);
/* PASSIVE_LEVEL, scheduler class; only where the miniport supports resets of engines (TDR-14). Failure is not fatal. */
NTSTATUS vmm_port_query_dependent_engines(struct vmm_port *port, uint32_t node, ULONGLONG *mask);
NTSTATUS vmm_port_reset_engine(struct vmm_port *port, uint32_t node, UINT *last_aborted);
/* PASSIVE_LEVEL, suspended (CollectDbgInfo: or not). What CollectDbgInfo answers stops nothing (TDR-03); of the others anything but success is fatal. */
void vmm_port_collect_dbg_info(struct vmm_port *port, UINT reason);
NTSTATUS vmm_port_reset_from_timeout(struct vmm_port *port);
NTSTATUS vmm_port_restart_from_timeout(struct vmm_port *port);
/* The routine runs at DIRQL, so no interrupt is being reported meanwhile. Below DISPATCH_LEVEL. */
void vmm_port_at_interrupt(struct vmm_port *port, void (*routine)(void *context), void *context);

#endif
