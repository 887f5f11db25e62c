/* SPDX-License-Identifier: MIT */
/*
 * The miniport boundary: every DxgkDdi* call and every DxgkCb* callback passes through port. Port
 * sets and checks the IRQL of each call and checks the bounds of what the miniport returns. A
 * status outside the documented set of a DDI becomes a finding. Every call is an event. Port has no
 * policy and no VidMm or VidSch state: it reports to the core through struct vmm_port_sink.
 *
 * DDI argument structures are passed through unchanged. A conversion would cost work for each list
 * entry on the hot path, and a second set of names.
 *
 * Locks: the caller's paging lock serializes the DDIs of the scheduler class (BuildPagingBuffer,
 * Patch, SubmitCommand, PreemptCommand, AcquireSwizzlingRange, ReleaseSwizzlingRange); port asserts
 * that they never overlap. A caller of the miniport holds no other lock of the core, except where a
 * function says so. The DDIs that are not hot assert the ranks of the caller's locks. Port's own
 * locks are leaves: the lock of the device services, and the device interrupt, whose holder is at
 * DIRQL.
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
#include <vidmm/device.h>

/*
 * The kernel-side headers are compiled for the newest interface version that port supports
 * (src/port/meson.build). Members that a miniport's older version does not have are neither read
 * nor written: sizes depend on its Version.
 */

struct vmm_port;

/* Codes of vmm_port_fatal, with the parameters of each (docs/rules/submission.tsv). */
#define VMM_PORT_FATAL_VIDMM    0x10Eu /* p1: below */
/* Recovery failed or was not allowed (TDR-01, 04, 08, 13). */
#define VMM_PORT_FATAL_TDR      0x116u
#define VMM_PORT_FATAL_VIDSCH   0x119u
#define VMM_PORT_VIDSCH_SUBMIT  0x2u /* p2: status, p3: fence */
#define VMM_PORT_VIDSCH_PATCH   0x3u /* p2: status, p3: fence */
#define VMM_PORT_VIDSCH_CANCEL  0x9u /* p2: status */
#define VMM_PORT_VIDSCH_ABORTED 0xAu /* p2: LastAbortedFenceId, p3: last completed */

/*
 * First parameters of VIDMM. Those in the published list of the stop code have its numbers; the
 * others are this library's.
 */
#define VMM_PORT_VIDMM_PAGING_STATUS    0xBu  /* p2: operation, p3: status */
#define VMM_PORT_VIDMM_DMA_OVERFLOW     0x12u /* p2: bytes advanced, p3: bytes available */
#define VMM_PORT_VIDMM_PRIVATE_OVERFLOW 0x13u /* likewise */
#define VMM_PORT_VIDMM_CONTRACT         0x16u /* p2: bytes used, p3: bytes available (DMA-30) */
#define VMM_PORT_VIDMM_OTHER(ddi)       (0x1000u + (uint32_t)(ddi))

#define VMM_PORT_REASON_ADAPTER 0x117u /* reason for CollectDbgInfo (TDR-03) */
#define VMM_PORT_REASON_ENGINE  0x141u
/* CollectDbgInfo is not called: a process was denied its GPU (TDR-20) */
#define VMM_PORT_REASON_BLOCKED 0x142u

#define VMM_PORT_SEGMENTS_MAX 31u /* DMA-20: five bits of SegmentId */
#define VMM_PORT_BANKS_MAX    128u
/*
 * Nodes of all adapters of a link together. More are refused with STATUS_NOT_SUPPORTED, because
 * VidSch does not schedule them.
 */
#define VMM_PORT_NODES_MAX    4u
#define VMM_PORT_LINKS_MAX    4u /* physical adapters of a link; more are refused likewise */

/*
 * Lock ranks (docs/locking.md). The first two belong to no lock: they only check the ranks of the
 * caller's locks. The caller of an object DDI holds the submit lock at most, that of a paging DDI
 * the paging lock at most.
 */
#define VMM_PORT_RANK_OBJECT     15u
#define VMM_PORT_RANK_PAGING_DDI 25u
#define VMM_PORT_RANK_DEVICE     60u
#define VMM_PORT_RANK_INTERRUPT  70u

#define VMM_PORT_SOURCES_MAX 16u

struct vmm_port_range {
	uint64_t offset, size_bytes;
};

/* ALF-26: the range of a segment that may hold protected content. */
struct vmm_port_vpr {
	uint64_t offset, size_bytes; /* size 0: no such range */
	uint64_t alignment;          /* VprAlignment, at least a page */
	/* Reserved by the miniport at the start of the range; also an invalid range. */
	uint64_t reserve_bytes;
	uint32_t regions; /* NumVprSupported; 0: any number */
};

/* SWZ-29: a window in a BAR through which the CPU sees pages of a memory segment. */
struct vmm_port_host_aperture {
	uint64_t physical; /* address in the CPU's physical address space */
	uint32_t pages;    /* in pages of the segment's page size; 0: no window */
};

struct vmm_port_segment {
	uint32_t id; /* 1 to segment_count (SEG-01) */
	/*
	 * Without the flags that mean nothing here: CpuVisible of an aperture, CacheCoherent of
	 * memory.
	 */
	DXGK_SEGMENTFLAGS flags;
	uint64_t gpu_base;      /* BaseAddress */
	vmm_physaddr cpu_base;  /* CpuTranslatedAddress, with CpuVisible */
	uint64_t reported_base; /* CpuTranslatedAddress as the miniport reported it */
	uint64_t size_bytes;
	uint64_t commit_limit_bytes;
	uint64_t system_memory_end; /* SystemMemoryEndAddress (SEG-23) */
	uint32_t bank_count;        /* 0: not banked */
	/* SEG-12: ends in rising order, the last equals the size. */
	uint64_t bank_end[VMM_PORT_BANKS_MAX];
	/*
	 * SEG-26: the ranges of `invalid`, which must never be used. In rising order, not adjacent.
	 */
	uint32_t invalid_count;
	struct vmm_port_range *invalid;
	struct vmm_port_vpr vpr;
	uint64_t page_bytes; /* 4096, or 65536 with Use64KBPages */
	struct vmm_port_host_aperture host;
	bool unpitched; /* an aperture with PitchAlignment, which is not built (SEG-10) */
};

/* GPU virtual addressing (caps_gpummu.c). */
#define VMM_PORT_PAGE_TABLE_LEVELS_MIN 2u
#define VMM_PORT_PAGE_TABLE_LEVELS_MAX 6u
#define VMM_PORT_ROOT_TABLE_BYTES_MAX  ((uint64_t)1 << 30)
struct vmm_port_gpummu {
	bool supported;
	DXGK_GPUMMUCAPS caps;
	/* [0] is the leaf level. */
	DXGK_PAGE_TABLE_LEVEL_DESC level[VMM_PORT_PAGE_TABLE_LEVELS_MAX];
};

struct vmm_port_caps {
	/* of the driver model: the Version that the miniport registered, or an older one */
	uint32_t interface_version;
	bool wddm2;         /* interface_version is 2.0 or later */
	bool map_aperture2; /* MapAperture2Supported (ALF-29) */
	/* The table has DxgkDdiValidateUpdateAllocationProperty (PRI-15) */
	bool validate_property;
	bool set_backing_store; /* the table has DxgkDdiSetAllocationBackingStore (ALF-30) */
	bool non_cpu_visible_primary;
	bool multi_engine_aware, preemption_aware, no_dma_patching;
	bool cancel_command_aware, per_engine_tdr, out_of_order_lock;
	bool cross_adapter_resource;        /* since 1.3 */
	bool no_64bit_atomics;              /* since 2.0 (MFN-06) */
	bool resubmission;                  /* since 2.0: a flag of SubmitCommand (SUB-21) */
	bool absolute_priorities;           /* since 2.0 (SCH-02) */
	bool non_vga, smooth_rotation;      /* since 1.2 */
	bool surprise_removal_hibernation;  /* since 1.2 (PNP-08) */
	bool surprise_removal;              /* since 2.0 */
	D3DKMDT_PREEMPTION_CAPS preemption; /* since 1.2 */
	/*
	 * Nodes as the core counts them: first those of the link's lead, then those of the next
	 * adapter, and so on. Node n is NodeOrdinal n % nodes_each on EngineOrdinal n / nodes_each
	 * (SCH-08).
	 */
	uint32_t node_count, nodes_each, paging_node;
	/* MaxAllocationListSlotId; 0: each allocation index is its own slot (PAT-07). */
	uint32_t slot_count;
	uint32_t swizzling_range_count;
	uint64_t aperture_commit_limit_bytes; /* ApertureSegmentCommitLimit */
	uint32_t dma_queue_entries;           /* DXGK_START_INFO.RequiredDmaQueueEntry (SUB-15) */
	/* Packets that may be outstanding on a node: HwQueuePacketCap or 2 (SUB-16). */
	uint32_t node_depth;
	uint32_t paging_buffer_segment, paging_buffer_bytes, paging_private_bytes; /* SEG-21 */
	/*
	 * Hardware scheduling (caps_hw.c): the nodes that take hardware queues. 0: none, or the
	 * feature is disabled.
	 */
	uint32_t hw_nodes;                         /* one bit for each node */
	uint32_t hw_in_flight[VMM_PORT_NODES_MAX]; /* MaxInFlightHwQueueBuffers; 0: any number */
	struct vmm_port_gpummu gpummu;
	DXGK_FLIPCAPS flip;
	/*
	 * NumberOfVideoPresentSources of the lead. Also 0 if the miniport cannot show anything
	 * (PRS-02). Target n shows source n.
	 */
	uint32_t source_count;
	uint32_t segment_count;
	struct vmm_port_segment segment[VMM_PORT_SEGMENTS_MAX]; /* [0] = id 1 */
};

/*
 * Calls from port to the core, at the IRQL given. `context` is vmm_port_options.sink_context.
 * Interrupts and DPCs are reported from the end of vmm_port_start to the beginning of
 * vmm_port_stop.
 */
struct vmm_port_sink {
	/*
	 * DIRQL, interrupt lock held, never re-entered: must only record (SUB-07). Reports
	 * completed, preempted or faulted DMA, whose NodeOrdinal counts as struct vmm_port_caps
	 * does. Also CRTC_VSYNC and PERIODIC_MONITORED_FENCE_SIGNALED of an existing target.
	 * MONITORED_FENCE_SIGNALED is reported from WDDM 2.0 on. With hardware queues also
	 * HWQUEUE_PAGE_FAULTED and SUSPEND_CONTEXT_COMPLETED.
	 */
	void (*interrupt)(void *context, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
	/*
	 * DISPATCH_LEVEL: the miniport's DPC called DxgkCbNotifyDpc. Recorded reports take effect
	 * here.
	 */
	void (*dpc)(void *context);
	/*
	 * DxgkCbGetHandleData, GetHandleParent, EnumHandleChildren: returns the miniport's private
	 * data of a handle, or NULL.
	 */
	void *(*handle_data)(void *context, uint32_t handle, uint32_t type, bool device_specific);
	uint32_t (*handle_parent)(void *context, uint32_t allocation);
	/* May be NULL: then the callback is not supported. */
	uint32_t (*handle_child)(void *context, uint32_t resource, uint32_t index);
	/*
	 * DxgkCbCreateContextAllocation and DxgkCbDestroyContextAllocation (PRE-11). PASSIVE_LEVEL,
	 * inside any DDI. May be NULL, likewise.
	 */
	NTSTATUS(*create_context_allocation)
	(void *context, DXGKARGCB_CREATECONTEXTALLOCATION *args);
	NTSTATUS (*destroy_context_allocation)(void *context, HANDLE allocation);
	/* DxgkCbMapContextAllocation (VA-20): the same. Sets *address on success. */
	NTSTATUS(*map_context_allocation)
	(void *context, const DXGKARGCB_MAPCONTEXTALLOCATION *args,
	 D3DGPU_VIRTUAL_ADDRESS *address);
	/* DxgkCbUpdateContextAllocation (VA-21): the same. */
	NTSTATUS(*update_context_allocation)
	(void *context, const DXGKARGCB_UPDATECONTEXTALLOCATION *args);
	/*
	 * DxgkCbInvalidateHwContext, inside ResetHwEngine at PASSIVE_LEVEL. `hw_context` is the
	 * handle that DxgkDdiCreateHwContext was given.
	 */
	NTSTATUS (*invalidate_hw_context)(void *context, HANDLE hw_context, bool collateral);
	/*
	 * A violation that would be a bug check. Port has emitted VIDMM_EVENT_FATAL before this
	 * call. The adapter must stop.
	 */
	void (*fatal)(void *context, uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3);
};

struct vmm_port_registry_value {
	const char *name;
	uint64_t value;
};

/* Identification of the device: ids of its configuration space, and its location in the machine. */
struct vmm_port_identity {
	uint16_t vendor, device, subsystem_vendor, subsystem;
	uint8_t revision;
	uint32_t bus_type, bus, slot;
};

struct vmm_port_options {
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	/* The entry point, or the table: */
	NTSTATUS (*driver_entry)(struct _DRIVER_OBJECT *, struct _UNICODE_STRING *);
	const DRIVER_INITIALIZATION_DATA *initialization_data;
	uint32_t physical_adapters; /* number of adapters to be linked; 0 and 1: no link */
	const uint64_t *bar_sizes;  /* of each */
	const int *bar_memory;      /* descriptors, -1: new memory; NULL: -1 for all */
	uint32_t bar_count, registry_count;
	/* The device as a model instead of BARs; NULL: BARs. */
	const struct vidmm_device_model *device_model;
	const struct vmm_port_registry_value *registry;
	uint64_t system_memory_bytes; /* DXGK_DEVICE_INFO.SystemMemorySize; 0: 64 GiB */
	uint64_t memory_limit_bytes;  /* of each memory segment; 0: none */
	bool verify;                  /* VidmmVerifyDriver */
	uint32_t features;            /* bit n: DXGK_FEATURE_ID n is enabled */
	/* The ids of the device; vendor 0: a vendor and a device that no hardware has. (DXC-26) */
	struct vmm_port_identity ids;
	const struct vmm_port_sink *sink;
	void *sink_context;
	/* Gets what the miniport reports while it starts; or NULL. */
	struct vidmm_adapter_report *report;
};

/*
 * Starts a miniport. The steps: DriverEntry (or the table), check of the table for its version
 * (required DDIs: spec 1.11), AddDevice, LinkDevice (link.c), StartDevice, capabilities, segments
 * in two passes, validation (SEG-02..06, 12, 21, 22, DMA-20, PRE-09, SPL-15, TDR-14, SCH-07, PNP-06
 * ...). A refusal emits a finding with the reason, undoes the completed steps (PNP-01: no
 * StopDevice after a failed StartDevice) and returns the documented status. Kinds of GPU virtual
 * addressing (2.x) that are not built: STATUS_NOT_SUPPORTED with a reason.
 */
vmm_status vmm_port_start(const struct vmm_port_options *options,
			  struct vmm_port **port) VMM_MUST_CHECK;
/*
 * while LOSE is true, the port ignores DMA_COMPLETED interrupts of the miniport. Returns how
 * many it has ignored so far.
 */
uint32_t vmm_port_lose_completions(struct vmm_port *port, bool lose);
/*
 * Stops a miniport: StopDevice, RemoveDevice, Unload. The core has closed all its objects before
 * (PNP-03). The miniport of a dead port is called here too, because only it can end its threads.
 */
void vmm_port_stop(struct vmm_port *port);
/*
 * Calls DxgkDdiSetPowerState for the adapter. PASSIVE_LEVEL, level three: the caller has ensured
 * that the GPU is idle, that no content can be lost, and that no other thread is in the miniport
 * (PAG-28). A failure is reported and changes nothing else (PNP-07).
 */
void vmm_port_set_power_state(struct vmm_port *port, DEVICE_POWER_STATE state, POWER_ACTION action);
/*
 * Tells the miniport that the device is gone: DxgkDdiNotifySurpriseRemoval, PASSIVE_LEVEL, even
 * while other threads are in the miniport. From then on only the destruction of objects, StopDevice
 * and later calls reach it. Returns VMM_NOT_SUPPORTED if the miniport does not support the
 * notification: then not even destruction reaches it. Returns VMM_DEVICE_REMOVED if the call
 * failed, which is also fatal. (PNP-08)
 */
vmm_status vmm_port_notify_removal(struct vmm_port *port,
				   DXGK_SURPRISE_REMOVAL_TYPE type) VMM_MUST_CHECK;
const struct vmm_port_caps *vmm_port_caps(const struct vmm_port *port);
/* For vmm_nt_config.place. */
void vmm_port_place_name(uint64_t value, char *name, size_t size);
/* Returns whether the miniport asked for the feature and got the answer that it is enabled. */
bool vmm_port_feature_is_enabled(const struct vmm_port *port, DXGK_FEATURE_ID id);
/* Returns the number of physical adapters of the link; 1: no link. */
uint32_t vmm_port_physical_adapters(const struct vmm_port *port);
void vmm_port_identity(const struct vmm_port *port, struct vmm_port_identity *identity);
/*
 * Calls DxgkDdiQueryAdapterInfo(UMDRIVERPRIVATE), PASSIVE_LEVEL, level zero, in every power state
 * (PNP-07): the data that the miniport returns to its user-mode driver. Returns the miniport's
 * status unchanged.
 */
NTSTATUS vmm_port_driver_private(struct vmm_port *port, void *data, uint32_t size_bytes);
/*
 * Returns AdapterLuid.LowPart as the miniport got it; HighPart is 0. Never 0, and unique among the
 * adapters of a world.
 */
uint32_t vmm_port_luid(const struct vmm_port *port);
/* Returns the library's mapping of a BAR of the device; NULL if there are fewer BARs. */
const void *vmm_port_bar_memory(const struct vmm_port *port, uint32_t index, uint64_t *size_bytes);
/*
 * Returns the memory behind a CPU-visible memory segment, of a BAR or allocated by the miniport,
 * and the offset of the segment's first byte. NULL if the segment is not CPU-visible. (SEG-08)
 */
const struct vmm_os_memory *vmm_port_segment_memory(struct vmm_port *port, uint32_t segment_id,
						    uint64_t *offset);
/*
 * Does the same for a segment that is not CPU-visible (SWZ-24). NULL if the location of its bytes
 * is not known: its CpuTranslatedAddress must lie in a BAR, and no other segment may be there.
 * Swizzling ranges may show this memory.
 */
const struct vmm_os_memory *vmm_port_hidden_memory(struct vmm_port *port, uint32_t segment_id,
						   uint64_t *offset);
/* Returns whether the range overlaps a memory segment, or a CPU host aperture. */
bool vmm_port_is_segment_memory(const struct vmm_port *port, uint64_t physical,
				uint64_t size_bytes);
/*
 * Returns the BAR memory at [physical, +size_bytes) of the CPU's address space. NULL if the range
 * is not inside one BAR.
 */
const struct vmm_os_memory *vmm_port_cpu_memory(struct vmm_port *port, uint64_t physical,
						uint64_t size_bytes, uint64_t *offset);
/*
 * Returns whether a fatal violation has occurred. From then on every other vmm_port_* call returns
 * STATUS_DEVICE_REMOVED without entering the miniport.
 */
bool vmm_port_dead(const struct vmm_port *port);
void vmm_port_fatal(struct vmm_port *port, uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3);

/* ---- PASSIVE_LEVEL, level zero or one: object DDIs ---- */
/* *handle: in the core's handle, out the miniport's. */
NTSTATUS vmm_port_create_device(struct vmm_port *port, HANDLE *handle, bool system,
				DXGK_DEVICEINFO *info);
/*
 * Does the same for a client's device. kmd_process: its process in the miniport, if it has
 * processes (VA-01). *suspensions: vmm_port_suspensions during the DDI; while a reset has the
 * miniport, the DDI waits.
 */
NTSTATUS vmm_port_create_process_device(struct vmm_port *port, HANDLE *handle, HANDLE kmd_process,
					DXGK_DEVICEINFO *info, uint32_t *suspensions);
/* Does the same for the system device. kmd_process: the system paging process, or NULL (PAG-26). */
NTSTATUS vmm_port_create_system_device(struct vmm_port *port, HANDLE *handle, HANDLE kmd_process,
				       DXGK_DEVICEINFO *info);
NTSTATUS vmm_port_destroy_device(struct vmm_port *port, HANDLE device);
/*
 * A miniport that is not MultiEngineAware is not called: the result is the device's handle and the
 * sizes of its DEVICEINFO (DMA-33).
 */
NTSTATUS vmm_port_create_context(struct vmm_port *port, HANDLE device, DXGKARG_CREATECONTEXT *args);
NTSTATUS vmm_port_destroy_context(struct vmm_port *port, HANDLE context);
NTSTATUS vmm_port_create_allocation(struct vmm_port *port, DXGKARG_CREATEALLOCATION *args);
/*
 * Only with caps.validate_property. STATUS_INVALID_PARAMETER: the miniport refuses the change.
 * (PRI-15)
 */
NTSTATUS vmm_port_validate_property(struct vmm_port *port,
				    const DXGKARG_VALIDATEUPDATEALLOCPROPERTY *args);
/* Only with caps.set_backing_store. (ALF-30) */
NTSTATUS vmm_port_set_backing_store(struct vmm_port *port, HANDLE allocation, void *address);
NTSTATUS vmm_port_destroy_allocation(struct vmm_port *port, HANDLE resource,
				     const HANDLE *allocations, UINT count, bool destroy_resource);
/* STATUS_NOT_SUPPORTED also if the miniport has no such DDI. (ALF-38) */
NTSTATUS vmm_port_standard_allocation(struct vmm_port *port,
				      DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA *args);
/* ALF-39 */
NTSTATUS vmm_port_describe_allocation(struct vmm_port *port, DXGKARG_DESCRIBEALLOCATION *args);
NTSTATUS vmm_port_open_allocation(struct vmm_port *port, HANDLE device,
				  DXGKARG_OPENALLOCATION *args);
NTSTATUS vmm_port_close_allocation(struct vmm_port *port, HANDLE device,
				   const HANDLE *open_allocations, UINT count);

/* ---- client events that the miniport sets (ddi_event.c); PASSIVE_LEVEL ---- */

struct vmm_port_cpu_event;
/*
 * Calls DxgkDdiCreateCpuEvent and keeps a duplicate of the event. STATUS_NOT_SUPPORTED: the
 * miniport has no such DDI. Otherwise a failure of the miniport is returned unchanged (CPN-08).
 */
NTSTATUS vmm_port_create_cpu_event(struct vmm_port *port, HANDLE device, int event,
				   struct vmm_port_cpu_event **result);
/*
 * Calls DxgkDdiDestroyCpuEvent (CPN-06). After its return the miniport cannot set the event any
 * more.
 */
void vmm_port_destroy_cpu_event(struct vmm_port *port, struct vmm_port_cpu_event *event);
/*
 * Calls DxgkDdiEscape (ESC-02). STATUS_NOT_SUPPORTED: the miniport has no such DDI. Otherwise a
 * failure of the miniport is returned unchanged, after a reason.
 */
NTSTATUS vmm_port_escape(struct vmm_port *port, DXGKARG_ESCAPE *args);
/* Returns whether the miniport can hold its clocks: it has DxgkDdiSetStablePowerState. (CLK-05) */
bool vmm_port_sets_stable_power(const struct vmm_port *port);
/*
 * Calls DxgkDdiCalibrateGpuClock for a node, DISPATCH_LEVEL. Stores the clocks of one instant; on
 * failure nothing. STATUS_NOT_SUPPORTED: the miniport has no such DDI. Otherwise a failure of the
 * miniport is returned unchanged, after a reason. The caller holds the submit lock at most.
 * (CLK-01, CLK-03, CLK-04)
 */
NTSTATUS vmm_port_calibrate_clock(struct vmm_port *port, uint32_t node, DXGK_GPUCLOCKDATA *clock);
/*
 * Calls DxgkDdiEscape with a record about such an event. Stores the miniport's handle of the event
 * in the record (CPN-10).
 */
NTSTATUS vmm_port_escape_cpu_event(struct vmm_port *port, HANDLE device, uint32_t flags,
				   const struct vmm_port_cpu_event *event,
				   D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE *record);

/*
 * Calls DxgkDdiRender, then checks the bounds of pDmaBuffer, pPatchLocationListOut and private data
 * (DMA-28: fatal 0x10E). Returns a status of DMA-29 or DMA-31; any other becomes
 * STATUS_INVALID_PARAMETER with a finding.
 */
/*
 * With VidmmVerifyDriver the core has this many bytes behind each DMA buffer and paging buffer, its
 * private data and its patch location list, filled by vmm_port_canary_fill. The functions that pass
 * these to the miniport then find what it writes there. Private data of presents on hardware queues
 * has none. (NT-23)
 */
#define VMM_PORT_CANARY_BYTES 64u
void vmm_port_canary_fill(void *canary);
/* Returns zeroed memory for an output of the miniport, with these bytes behind it if VERIFY. */
void *vmm_port_output_memory(size_t size_bytes, bool verify);
NTSTATUS vmm_port_render(struct vmm_port *port, HANDLE context, DXGKARG_RENDER *args);

/*
 * Calls DxgkDdiPresent likewise (DMA-37). With pDmaBuffer NULL there are no bounds to check
 * (DMA-32).
 */
NTSTATUS vmm_port_present(struct vmm_port *port, HANDLE context, DXGKARG_PRESENT *args);
/* The same for a hardware queue, if the miniport has DxgkDdiPresentToHwQueue (PRS-10). */
bool vmm_port_presents_to_hw_queues(const struct vmm_port *port);
NTSTATUS vmm_port_present_to_hw_queue(struct vmm_port *port, HANDLE queue, DXGKARG_PRESENT *args);
/*
 * Calls DxgkDdiSetVidPnSourceAddress for a flip, at DIRQL. The caller holds the paging lock at most
 * (PRS-04). Returns STATUS_DEVICE_REMOVED if the call gate is closed, or the port is dead.
 */
NTSTATUS vmm_port_flip(struct vmm_port *port, const DXGKARG_SETVIDPNSOURCEADDRESS *args);
/*
 * Begins level two (section 4): the calling thread gets exclusive use of the miniport; other
 * callers wait. The caller has ensured that the GPU is idle, and holds the submit and the paging
 * lock. Returns false if the adapter is being reset, or is dead. vmm_port_admit ends level two.
 */
bool vmm_port_exclude(struct vmm_port *port);
void vmm_port_admit(struct vmm_port *port);
/* PASSIVE_LEVEL, in level two: a source begins to show a primary, or stops showing one. */
NTSTATUS vmm_port_set_source_address(struct vmm_port *port,
				     const DXGKARG_SETVIDPNSOURCEADDRESS *args);
NTSTATUS vmm_port_set_source_visibility(struct vmm_port *port, uint32_t source, bool visible);

/*
 * Calls DxgkDdiCreatePeriodicFrameNotification (PMF): requests interrupt 14 with that id,
 * time_100ns before each vertical sync of the target. STATUS_NOT_SUPPORTED: the miniport has no
 * such DDI. STATUS_INVALID_PARAMETER also for a time longer than a frame.
 */
NTSTATUS vmm_port_create_periodic(struct vmm_port *port, uint32_t target, uint64_t time_100ns,
				  uint32_t id, HANDLE *notification);
void vmm_port_destroy_periodic(struct vmm_port *port, HANDLE notification);

/* ---- scheduler class, serialized by the paging lock ---- */
/* PASSIVE_LEVEL. A failure is fatal (PAT-18). */
NTSTATUS vmm_port_patch(struct vmm_port *port, const DXGKARG_PATCH *args);
/*
 * DISPATCH_LEVEL. A failure is fatal (SUB-05). Queued DPCs run before it returns, so sink->dpc may
 * be called with the caller's locks held.
 */
NTSTATUS vmm_port_submit(struct vmm_port *port, const DXGKARG_SUBMITCOMMAND *args);
/*
 * Returns STATUS_SUCCESS, STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER or
 * STATUS_GRAPHICS_ALLOCATION_BUSY; any other status is fatal (PAG-09). pDmaBuffer and the private
 * data must have advanced inside their bounds.
 */
NTSTATUS vmm_port_build_paging_buffer(struct vmm_port *port, DXGKARG_BUILDPAGINGBUFFER *args);
/* Describes the pages of an MDL: as the MDL's array of page numbers, or as one contiguous run. */
void vmm_port_describe_pages(const void *mdl, DXGK_ADL *adl);
/*
 * may_change: the miniport may change RangeSize and CPUTranslatedAddress in args (SWZ-24);
 * otherwise a change counts as a refusal (SWZ-03).
 */
NTSTATUS vmm_port_acquire_swizzling_range(struct vmm_port *port,
					  DXGKARG_ACQUIRESWIZZLINGRANGE *args, bool may_change);
/*
 * SWZ-29: a table with such segments has both DDIs. A failure of Map is returned, and nothing is
 * mapped. A failure of Unmap is a finding, and the range counts as unmapped.
 */
NTSTATUS vmm_port_map_host_aperture(struct vmm_port *port, const DXGKARG_MAPCPUHOSTAPERTURE *args);
NTSTATUS vmm_port_unmap_host_aperture(struct vmm_port *port,
				      const DXGKARG_UNMAPCPUHOSTAPERTURE *args);
NTSTATUS vmm_port_release_swizzling_range(struct vmm_port *port,
					  const DXGKARG_RELEASESWIZZLINGRANGE *args);

/* ---- GPU virtual addressing (ddi_gpummu.c): PASSIVE_LEVEL, needs caps.gpummu.supported ---- */
struct vmm_port_process {
	HANDLE handle; /* hDxgkProcess */
	bool system;   /* the system paging process (PAG-26) */
	/*
	 * DxgkCbReserveGpuVirtualAddressRange; called only inside vmm_port_create_process (VA-15).
	 */
	NTSTATUS(*reserve)
	(const struct vmm_port_process *process, DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE *args);
};
/* Object DDIs. Only one process of a port is created at a time. */
NTSTATUS vmm_port_create_process(struct vmm_port *port, const struct vmm_port_process *process,
				 HANDLE *kmd_process);
void vmm_port_destroy_process(struct vmm_port *port, HANDLE kmd_process);
/*
 * *entries: in the number needed, out the number provided. Only with two page table levels. The
 * caller holds the paging lock.
 */
NTSTATUS vmm_port_root_table_size(struct vmm_port *port, uint32_t *entries, uint64_t *bytes);
/* VA-12: the context is not running on the GPU. The caller holds the paging lock. */
void vmm_port_set_root(struct vmm_port *port, const DXGKARG_SETROOTPAGETABLE *args);
/*
 * Like vmm_port_submit. STATUS_INVALID_PARAMETER: the miniport refuses the command, which is not
 * fatal (SUB-23).
 */
NTSTATUS vmm_port_submit_virtual(struct vmm_port *port, const DXGKARG_SUBMITCOMMANDVIRTUAL *args);

/*
 * SUB-25, since 2.5: called before a command with private data is queued. Does nothing if the
 * miniport lacks the DDI. PASSIVE_LEVEL; the caller holds the paging lock at most.
 */
NTSTATUS vmm_port_validate_command(struct vmm_port *port, DXGKARG_VALIDATESUBMITCOMMAND *args);

/* ---- hardware scheduling (ddi_hw.c): PASSIVE_LEVEL, only with caps.hw_nodes ---- */
/*
 * Object DDIs: the caller holds the submit lock at most. Like the calls for contexts. hHwQueue: in
 * the core's handle, out the miniport's. A hardware context's ContextInfo has the sizes of DMA
 * buffers for presents (PRS-10).
 */
NTSTATUS vmm_port_create_hw_context(struct vmm_port *port, HANDLE device,
				    DXGKARG_CREATECONTEXT *args);
NTSTATUS vmm_port_destroy_hw_context(struct vmm_port *port, HANDLE context);
NTSTATUS vmm_port_create_hw_queue(struct vmm_port *port, HANDLE context,
				  DXGKARG_CREATEHWQUEUE *args);
NTSTATUS vmm_port_destroy_hw_queue(struct vmm_port *port, HANDLE queue);
NTSTATUS vmm_port_setup_priority_bands(struct vmm_port *port,
				       const DXGKARG_SETUPPRIORITYBANDS *args);
/*
 * The caller holds the paging lock at most, and ensures that no other thread is in a call for the
 * same queue or context (SUB-27). Failures are returned; the caller handles them.
 */
NTSTATUS vmm_port_submit_to_hw_queue(struct vmm_port *port,
				     const DXGKARG_SUBMITCOMMANDTOHWQUEUE *args);
NTSTATUS vmm_port_set_context_scheduling(struct vmm_port *port,
					 const DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES *args);
/*
 * STATUS_SUCCESS: the context is off the GPU. STATUS_PENDING: an interrupt will report that
 * (SCH-11). Any other status is a failure.
 */
NTSTATUS vmm_port_suspend_context(struct vmm_port *port, const DXGKARG_SUSPENDCONTEXT *args);
NTSTATUS vmm_port_resume_context(struct vmm_port *port, HANDLE context);
/* TDR-21 */
NTSTATUS vmm_port_reset_hw_engine(struct vmm_port *port, uint32_t node);
NTSTATUS vmm_port_resume_hw_engine(struct vmm_port *port, uint32_t node);

/*
 * PASSIVE_LEVEL, no lock held. The miniport reports a missed completion by an interrupt during the
 * call (SUB-14). STATUS_NOT_SUPPORTED: it has no such DDI (PNP-01).
 */
NTSTATUS vmm_port_query_current_fence(struct vmm_port *port, uint32_t node, UINT *fence);

/* Returns whether the calling thread may make DDI calls that require PASSIVE_LEVEL. */
bool vmm_port_at_passive(const struct vmm_port *port);

/* ---- timeouts (ddi_reset.c, gate.c) ---- */
/*
 * DISPATCH_LEVEL, scheduler class. A failure is fatal (PRE-01). The answer may come before the call
 * returns (PRE-05).
 */
NTSTATUS vmm_port_preempt(struct vmm_port *port, uint32_t node, UINT fence);
/*
 * PASSIVE_LEVEL, scheduler class. A failure is fatal (TDR-12). Only for a CancelCommandAware
 * miniport.
 */
NTSTATUS vmm_port_cancel(struct vmm_port *port, const DXGKARG_CANCELCOMMAND *args);
/*
 * Begins level three: closes the call gate and waits until no other thread is in the miniport.
 * Returns false if a thread is still inside at the deadline (TDR-04). The gate stays closed in both
 * cases until vmm_port_resume, which the caller must call.
 */
bool vmm_port_suspend(struct vmm_port *port, uint64_t deadline_ns);
void vmm_port_resume(struct vmm_port *port);
/* Returns how often vmm_port_suspend has returned true. */
uint32_t vmm_port_suspensions(const struct vmm_port *port);
/* Is the device gone: has the notification of the miniport begun? (PNP-08) */
bool vmm_port_removed(const struct vmm_port *port);
/* Returns the number of threads that are inside the miniport. */
uint32_t vmm_port_inside(const struct vmm_port *port);
/*
 * True if a reset of the adapter waits for the calling thread: the thread is inside the miniport,
 * or has exclusive use of it. Such a thread must not wait for the reset.
 */
bool vmm_port_blocks_reset(const struct vmm_port *port);
/*
 * PASSIVE_LEVEL, scheduler class. Only if the miniport supports resets of engines (TDR-14). A
 * failure is not fatal.
 */
NTSTATUS vmm_port_query_dependent_engines(struct vmm_port *port, uint32_t node, ULONGLONG *mask);
NTSTATUS vmm_port_reset_engine(struct vmm_port *port, uint32_t node, UINT *last_aborted);
/*
 * PASSIVE_LEVEL, in level three; CollectDbgInfo also outside. A failure of CollectDbgInfo is
 * ignored (TDR-03). A failure of the others is fatal.
 */
void vmm_port_collect_dbg_info(struct vmm_port *port, UINT reason);
NTSTATUS vmm_port_reset_from_timeout(struct vmm_port *port);
NTSTATUS vmm_port_restart_from_timeout(struct vmm_port *port);
/*
 * Runs the routine at DIRQL, so no interrupt is reported meanwhile. The caller is below
 * DISPATCH_LEVEL.
 */
void vmm_port_at_interrupt(struct vmm_port *port, void (*routine)(void *context), void *context);

#endif
