/* SPDX-License-Identifier: MIT */
/*
 * A miniport under a test's control: an ordinary table of DDIs that records every call with its
 * arguments, executes it, and can be made to fail.
 *
 *   struct scripted_miniport *m = scripted_create();    a working 1.3 render adapter
 *   m->settings.caps.NumberOfSwizzlingRanges = 4;       what it reports, until the adapter starts
 *   scripted_fail(m, VIDMM_DDI_PATCH, STATUS_UNSUCCESSFUL, 1);
 *   options.initialization_data = scripted_table(m);    the next AddDevice belongs to m
 *   ... start, use ...
 *   scripted_complete(m, 0, 3);                         the GPU finishes three packets of node 0
 *   scripted_destroy(m);                                after the adapter has stopped
 *
 * Its defaults: segment 1 is 16 MiB of memory at GPU address 256 MiB, CpuVisible at the start of
 * BAR 0 (so BAR 0 needs 16 MiB); segment 2 an aperture of 16 MiB at 1 GiB; two nodes, paging on
 * node 1; DMA and paging buffers in system memory; each packet completes inside SubmitCommand.
 *
 * Its GPU executes commands: paging buffers hold commands that it executes by memcpy when their
 * packet completes, not before; so does a render buffer made of struct scripted_command. An
 * aperture has a page table. A wrong order or address shows as wrong bytes or in `faults`.
 *
 * Threads: any thread may call DDIs; the test calls scripted_* functions. The miniport is compiled
 * into the test program: sources `scripted_miniport` of the root's meson.build, dependency
 * vmm_port_dep.
 */
#ifndef VMM_TESTS_SUPPORT_SCRIPTED_MINIPORT_H
#define VMM_TESTS_SUPPORT_SCRIPTED_MINIPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ntddk.h>
#include <d3dkmddi.h>
#include <dispmprt.h>
#include <vidmm/events.h>

#define SCRIPTED_SEGMENTS_MAX 40u
#define SCRIPTED_NODES_MAX    4u
#define SCRIPTED_QUEUE_MAX    128u

#define SCRIPTED_BAR_BYTES      ((uint64_t)16 << 20)
#define SCRIPTED_MEMORY_BASE    ((uint64_t)256 << 20)
#define SCRIPTED_APERTURE_BASE  ((uint64_t)1 << 30)
#define SCRIPTED_APERTURE_BYTES ((uint64_t)16 << 20)

/* ---- private data and commands of a client ---- */

/*
 * pPrivateDriverData of one allocation; other sizes: 64 KiB in segments 1 and 2. Zero sets mean
 * segments 1 and 2.
 */
struct scripted_allocation {
	uint64_t size_bytes, pitch_aligned_bytes;
	uint32_t alignment;
	uint32_t read_set, write_set, eviction_set;
	uint32_t preferred, banks; /* DXGK_SEGMENTPREFERENCE, DXGK_SEGMENTBANKPREFERENCE */
	uint32_t flags;            /* DXGK_ALLOCATIONINFOFLAGS(_WDDM2_0) */
	uint32_t renaming_limit, priority;
	uint32_t flags2; /* DXGK_ALLOCATIONINFOFLAGS2, whatever the version */
};

enum scripted_op {
	SCRIPTED_USE = 1, /* references the allocation: resolves its address, changes nothing */
	SCRIPTED_WRITE,   /* writes `value` into the 32-bit word there */
	/*
	 * `count` bytes; in a render buffer from source.address of the allocation with index
	 * source.segment in the list, to `offset` of `allocation`
	 */
	SCRIPTED_COPY,
	/* in paging buffers only */
	SCRIPTED_FILL,
	SCRIPTED_MAP, /* followed by `count` physical page addresses */
	SCRIPTED_UNMAP,
	/*
	 * `count` entries of the table at `destination` from `offset` on: the entries that follow,
	 * or each equal to the first
	 */
	SCRIPTED_TABLE,
	/* the process `offset`, for the addresses from source.address to destination.address */
	SCRIPTED_FLUSH,
	/* COPY and FILL of addresses of the system paging process */
	SCRIPTED_VIRTUAL_COPY,
	SCRIPTED_VIRTUAL_FILL
};

/*
 * Commands follow each other. Render copies them and emits one patch location for each USE and
 * WRITE.
 */
#define SCRIPTED_INIT_WORD 0x1217C0DEu /* INIT_CONTEXT_RESOURCE writes it to the start */
/* so that a broadcast buffer has the same content for all (SPL-16) */
#define SCRIPTED_EACH      UINT32_MAX
struct scripted_place {
	uint32_t segment; /* 0: `address` is a CPU pointer */
	/*
	 * on a link: the adapter with the segment; SCRIPTED_EACH: the adapter that executes the
	 * command
	 */
	uint32_t engine;
	uint64_t address;
};
struct scripted_command {
	uint32_t op, size_bytes; /* of the whole command */
	uint32_t allocation;     /* index in the allocation list */
	uint32_t slot;
	uint64_t offset; /* in the allocation */
	uint32_t value;
	/* 1: SplitOffset is the start of this command; 0: that of the command before */
	uint32_t split;
	struct scripted_place source, destination; /* destination: patched */
	uint64_t count;                            /* bytes, or pages of MAP and UNMAP */
};

/* ---- what it reports ---- */

struct scripted_segment {
	uint32_t flags; /* DXGK_SEGMENTFLAGS */
	uint32_t bank_count;
	uint64_t base, size_bytes, commit_limit_bytes;
	int64_t bar_offset; /* CpuTranslatedAddress is the start of BAR 0 plus this */
	/*
	 * With CpuVisible, instead of the BAR: memory that the test has given the platform, and
	 * where that is for the miniport.
	 */
	uint64_t cpu_address;
	char *cpu_bytes;
	SIZE_T *bank_table;
	uint64_t system_memory_end; /* SystemMemoryEndAddress */
	/* 2.x: VprRangeStartOffset, VprRangeSize, VprAlignment, NumVprSupported, VprReserveSize */
	uint64_t vpr_offset, vpr_bytes;
	uint32_t vpr_alignment, vpr_regions, vpr_reserve_bytes;
	/*
	 * 2.x, with SupportsCpuHostAperture: its offset in the BAR, and its number of pages of the
	 * segment's page size
	 */
	uint64_t host_offset;
	uint32_t host_pages;
};

/* Page tables of the GPU, after scripted_mmu; an entry in memory is a DXGK_PTE. */
struct scripted_mmu_settings {
	DXGK_GPUMMUCAPS caps;
	DXGK_PAGE_TABLE_LEVEL_DESC level[8];
	UINT root_pages;         /* GetRootPageTableSize rounds up to a multiple of this; 0: 1 */
	uint64_t reserve_bytes;  /* reserved in each process for the miniport */
	NTSTATUS reserve_status; /* the answer to that */
	uint64_t reserved_at;
};

struct scripted_settings {
	struct scripted_mmu_settings mmu;
	DRIVER_INITIALIZATION_DATA table; /* Version and entry points */
	DXGK_DRIVERCAPS caps;
	uint32_t segment_count;
	uint32_t second_segment_count; /* count reported by the second pass; 0: the same */
	struct scripted_segment segment[SCRIPTED_SEGMENTS_MAX];
	uint32_t paging_segment, paging_bytes, paging_private_bytes;
	DXGK_DEVICEINFO device;
	bool leave_device_info; /* CreateDevice does not write pInfo */
	DXGK_CONTEXTINFO context;
	LINKED_DEVICE
	link; /* the answer of LinkDevice, which is in the table after scripted_link */
	DXGK_PHYSICALADAPTERCAPS physical;              /* 2.x; zero nodes: those of `caps` */
	uint32_t invalid_counts[SCRIPTED_SEGMENTS_MAX]; /* 2.x: number of these ranges */
	const DXGK_MEMORYRANGE *invalid[SCRIPTED_SEGMENTS_MAX];
	/*
	 * Segment 1 is in contiguous system memory, allocated in StartDevice, instead of the BAR.
	 */
	bool contiguous;
	ULONG source_count, child_count;
	/* may change at any time */
	_Atomic bool complete_at_once;
	_Atomic bool ignore_fences; /* completes without reporting: the interrupt is lost */
	_Atomic bool
		withhold_preemption; /* scripted_preempted answers; otherwise PreemptCommand does */
	/* of each target; a shorter time before a vertical sync is refused */
	uint64_t frame_100ns;
	/*
	 * Hardware scheduling (scripted_hw): whether it asks if that is enabled;
	 * DXGK_NODEMETADATA_FLAGS of each node.
	 */
	bool hw_ask;
	uint32_t hw_node_flags[SCRIPTED_NODES_MAX];
	/* with complete_at_once: commands of hardware queues wait for scripted_hw_complete */
	bool hw_by_hand;
	bool hw_ignore_fences; /* stores the fence without interrupting */
	bool hw_answers;       /* adds 1 to each byte of a new queue's private data */
	/* scripted_hw_suspended answers; otherwise SuspendContext does */
	bool hw_withhold_suspension;
	bool hw_collateral; /* a reset invalidates all contexts of the node that have commands */
	bool hw_spare_all;  /* a reset invalidates no context */
	uint32_t present_passes; /* calls that one Present takes; 0: one */
	/* maximum that one call of a transfer or fill does; 0: all */
	uint64_t transfer_chunk_bytes;
};

/* ---- what it records ---- */

struct scripted_call {
	enum vidmm_ddi ddi;
	NTSTATUS status;
	bool forced; /* failed by scripted_fail: it did nothing */
	uint32_t irql;
	HANDLE handle; /* the DDI's first argument if that is a device or a context */
	void *args;    /* the caller's structure; valid in the hook only */
	union {        /* as it arrived */
		DXGKARG_QUERYADAPTERINFO query;
		DXGKARG_CREATEDEVICE create_device;
		DXGKARG_CREATECONTEXT create_context;
		DXGKARG_CREATEALLOCATION create_allocation;
		DXGKARG_DESTROYALLOCATION destroy_allocation;
		DXGKARG_OPENALLOCATION open_allocation;
		DXGKARG_CLOSEALLOCATION close_allocation;
		DXGKARG_RENDER render;
		DXGKARG_PATCH patch;
		DXGKARG_PRESENT present;
		DXGKARG_SETVIDPNSOURCEADDRESS source_address;
		DXGKARG_SETVIDPNSOURCEVISIBILITY visibility;
		DXGKARG_SUBMITCOMMAND submit;
		DXGKARG_BUILDPAGINGBUFFER paging;
		DXGKARG_ACQUIRESWIZZLINGRANGE acquire;
		DXGKARG_RELEASESWIZZLINGRANGE release;
		DXGKARG_QUERYCURRENTFENCE fence;
		DXGKARG_PREEMPTCOMMAND preempt;
		DXGKARG_CANCELCOMMAND cancel;
		DXGKARG_SETALLOCATIONBACKINGSTORE backing_store;
		DXGKARG_VALIDATEUPDATEALLOCPROPERTY property;
		DXGKARG_CREATEPROCESS create_process;
		DXGKARG_SETROOTPAGETABLE root;
		DXGKARG_GETROOTPAGETABLESIZE root_size;
		DXGKARG_SUBMITCOMMANDVIRTUAL submit_virtual;
		DXGKARG_VALIDATESUBMITCOMMAND validate_command;
		DXGKARG_CREATECPUEVENT cpu_event;
		DXGKARG_CREATEPERIODICFRAMENOTIFICATION create_periodic;
		DXGKARG_DESTROYPERIODICFRAMENOTIFICATION destroy_periodic;
		DXGKARG_ESCAPE escape;
		DXGKARG_MAPCPUHOSTAPERTURE host_map;
		DXGKARG_UNMAPCPUHOSTAPERTURE host_unmap;
		DXGKARG_CREATEHWQUEUE create_hw_queue;
		DXGKARG_SUBMITCOMMANDTOHWQUEUE submit_to_hw_queue;
		DXGKARG_SETUPPRIORITYBANDS bands;
		DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES properties;
		DXGKARG_SUSPENDCONTEXT suspend;
		DXGKARG_RESUMECONTEXT resume;
		DXGKARG_RESETHWENGINE reset_hw_engine;
		DXGKARG_RESUMEHWENGINE resume_hw_engine;
		DXGKARG_COLLECTDBGINFO debug;
		DXGKARG_RESETENGINE reset_engine;
		DXGKARG_QUERYENGINESTATUS engine_status;
		DXGKARG_QUERYDEPENDENTENGINEGROUP engine_group;
		DXGK_START_INFO start;
		UINT removal; /* DXGK_SURPRISE_REMOVAL_TYPE */
		struct {
			ULONG uid;
			DEVICE_POWER_STATE state;
			POWER_ACTION action;
		} power;
	} in;
	/*
	 * Copies that remain valid: the allocation list of Render and Patch, the patch locations
	 * of Patch.
	 */
	DXGK_ALLOCATIONLIST *allocations;
	D3DDDI_PATCHLOCATIONLIST *patches;
	UINT32 *host_pages;                      /* of Map and UnmapCpuHostAperture */
	D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE usage; /* of an Escape */
	UINT64 *segment_pages;
	uint32_t allocation_count, patch_count;
};

struct scripted_miniport;
/*
 * Called for each call before it returns; may change what call->args points to, and call->status.
 */
typedef void scripted_hook(void *context, struct scripted_miniport *m, struct scripted_call *call);

struct scripted_failure {
	NTSTATUS status;
	uint32_t times;
};

struct scripted_packet {
	DXGKARG_SUBMITCOMMAND submit;
};

struct scripted_node {
	struct scripted_packet queue[SCRIPTED_QUEUE_MAX];
	uint32_t head, count;
	uint32_t drivers; /* nesting depth of the thread that executes its packets */
	pthread_t driver;
	uint32_t completed_fence, reported_fence;
	uint32_t submitted_fence; /* the last submitted one */
	bool halted;              /* between a reset and its restart: a submission is a fault */
};

/* Hardware scheduling; in order of creation, never reused. */
#define SCRIPTED_HW_MAX  64u
#define SCRIPTED_HW_RING 256u
struct scripted_hw_context {
	struct scripted_miniport *m;
	HANDLE port; /* what DxgkCbInvalidateHwContext takes */
	uint32_t node;
	bool live, suspended;
	bool asked;             /* was asked to suspend it, and has not answered */
	uint64_t suspend_fence; /* the last one requested */
};
struct scripted_hw_queue {
	struct scripted_hw_context *context;
	void *fence; /* address of the progress fence in the last command */
	uint64_t id[SCRIPTED_HW_RING];
	uint32_t head, count;
	_Atomic uint32_t inside; /* threads in SubmitCommandToHwQueue */
	uint64_t last_private;   /* private data of up to 8 bytes, as submitted */
	/* and its address, which is invalid after the call (SUB-27) */
	const uint64_t *kept_private;
};

/* The miniport's record of a process's page tables. */
#define SCRIPTED_PROCESSES_MAX 16u
#define SCRIPTED_ROOTS_MAX     96u /* contexts with GPU virtual addresses, and one */
#define SCRIPTED_TLB           64u
struct scripted_process {
	struct scripted_miniport *m;
	HANDLE port;
	bool live;
	D3DGPU_PHYSICAL_ADDRESS root; /* as it was first written */
	struct scripted_translation {
		uint64_t page; /* + 1; 0: none */
		DXGK_PTE entry;
	} tlb[SCRIPTED_TLB];
};

struct scripted_miniport {
	struct scripted_process process[SCRIPTED_PROCESSES_MAX];
	_Atomic uint32_t live_processes; /* without the system paging process */
	/* the system paging process, and the context that executes its paging buffers */
	struct scripted_process paging_process;
	HANDLE paging_context;
	struct scripted_root { /* the last root that each context was given */
		HANDLE context;
		D3DGPU_PHYSICAL_ADDRESS address;
		UINT entries;
	} root[SCRIPTED_ROOTS_MAX];
	uint32_t stale; /* accesses by a translation that should have been flushed */
	struct scripted_settings settings;
	scripted_hook *hook;
	void *hook_context;
	struct scripted_failure failure[VIDMM_DDI_LAST + 1];
	/*
	 * On real threads: waits until all other threads are blocked. The effects of what the
	 * owner's thread completes are visible when the call returns; other threads are not waited
	 * for.
	 */
	void (*settle)(void *context);
	void *settle_context;
	pthread_t owner;

	struct scripted_miniport *next; /* the miniport that gets the AddDevice after this one's */
	struct scripted_miniport *engine[SCRIPTED_NODES_MAX]; /* of a link, the lead first */

	/* arguments of StartDevice */
	PDEVICE_OBJECT device_object;
	DXGKRNL_INTERFACE services;
	DXGK_DEVICE_INFO device_info;
	uint64_t bar_physical, bar_bytes;
	char *bar;

	/* counters: 0 at StopDevice unless an object was not closed (PNP-03) */
	_Atomic uint32_t live_devices, live_contexts, live_allocations, live_opens, live_resources;
	_Atomic uint32_t live_events, live_periodic;
	uint32_t faults; /* of its GPU: an invalid address or command */
	uint32_t dpcs;   /* calls of DxgkDdiDpcRoutine */

	bool hw_enabled; /* reported by the port */
	struct scripted_hw_context hw_context[SCRIPTED_HW_MAX];
	struct scripted_hw_queue hw_queue[SCRIPTED_HW_MAX];
	uint32_t hw_context_count, hw_queue_count;
	uint32_t hw_resetting; /* bit per node: a submission there is a fault (TDR-21) */
	_Atomic uint32_t live_hw_queues;

	/* guarded by `guard` */
	atomic_flag guard;
	LIST_ENTRY objects;
	struct scripted_call **calls;
	uint32_t call_count, call_capacity;
	struct scripted_node node[SCRIPTED_NODES_MAX];
	_Atomic uint32_t completing; /* calls of scripted_complete in progress */

	uint64_t *page_table
		[SCRIPTED_SEGMENTS_MAX];     /* of aperture segments: physical addresses of pages */
	char *hidden[SCRIPTED_SEGMENTS_MAX]; /* of memory segments that are not CpuVisible */
	/*
	 * Host apertures. A page of a segment that is mapped is in the BAR, for the GPU too.
	 * Indexed by segment page: the aperture's page; by aperture page: the segment's page. Both
	 * + 1; 0: none.
	 */
	uint32_t *shown_at[SCRIPTED_SEGMENTS_MAX], *shows[SCRIPTED_SEGMENTS_MAX];
	_Atomic uint32_t shown; /* mapped pages, of all apertures */
};

struct scripted_miniport *scripted_create(void);
void scripted_destroy(struct scripted_miniport *m);
/*
 * The table, for vmm_port_options.initialization_data; or scripted_driver_entry for .driver_entry.
 */
const DRIVER_INITIALIZATION_DATA *scripted_table(struct scripted_miniport *m);
/* The next scripted_driver_entry and AddDevice are for this miniport. */
void scripted_arm(struct scripted_miniport *m);
NTSTATUS scripted_driver_entry(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *path);
/*
 * Makes the physical adapters of a link: one driver with the first miniport's table, and that many
 * AddDevices, one for each in this order. Each reports that it is in the chain; the one with
 * number `lead` reports that it is the lead.
 */
void scripted_link(struct scripted_miniport *const *all, uint32_t count, uint32_t lead);
/*
 * Registers with another interface version: entries that it does not have become pointers that
 * crash when called. From 2.0 on it answers the queries of 2.x as well.
 */
void scripted_set_version(struct scripted_miniport *m, ULONG version);

/*
 * DxgkDdiStopDeviceAndReleasePostDisplayOwnership, which is in the table only if a test puts it
 * there.
 */
NTSTATUS scripted_stop_and_release(PVOID adapter, D3DDDI_VIDEO_PRESENT_TARGET_ID target,
				   PDXGK_DISPLAY_INFORMATION display);

/* The next calls of the DDI do nothing and return this. */
void scripted_fail(struct scripted_miniport *m, enum vidmm_ddi ddi, NTSTATUS status,
		   uint32_t times);

/* The call with that number in the log, also while calls are made; NULL: there are fewer. */
const struct scripted_call *scripted_at(const struct scripted_miniport *log, uint32_t index);
uint32_t scripted_count(const struct scripted_miniport *m, enum vidmm_ddi ddi);
/* The n-th recorded call of the DDI, from 0; NULL if there are fewer. */
const struct scripted_call *scripted_nth(const struct scripted_miniport *m, enum vidmm_ddi ddi,
					 uint32_t n);
const struct scripted_call *scripted_last(const struct scripted_miniport *m, enum vidmm_ddi ddi);
/* The DDIs in order, as text: "add_device start_device ..." (static buffer). */
const char *scripted_order(const struct scripted_miniport *m);
void scripted_forget(struct scripted_miniport *m);

/* ---- its GPU (scripted_gpu.c) ---- */

/*
 * On a link node n of adapter e is e * NbAsymetricProcessingNodes + n here, because the lead's
 * miniport gets all submissions. Each adapter has its own segments, as the lead describes them, in
 * its own BAR and page tables. Its GPU finds LinkMirrored and LinkInstanced content and its
 * buffers there; all other content is in the lead's segments.
 */

/*
 * Executes and reports up to `count` packets of a node, oldest first. Returns how many. Any IRQL
 * up to DISPATCH.
 */
uint32_t scripted_complete(struct scripted_miniport *m, uint32_t node, uint32_t count);
/* All nodes, until nothing is outstanding. */
uint32_t scripted_complete_all(struct scripted_miniport *m);
void scripted_settle(struct scripted_miniport *m);
extern _Thread_local uint32_t scripted_in_hook; /* this thread is inside the miniport */
uint32_t scripted_outstanding(struct scripted_miniport *m, uint32_t node);
/*
 * Reports this fence whatever was submitted: DxgkCbSynchronizeExecution, DxgkCbNotifyInterrupt,
 * DxgkCbQueueDpc.
 */
void scripted_report(struct scripted_miniport *m, uint32_t node, uint32_t fence);
/* Reports the last completed fence if it was not reported. Several threads may call at once. */
void scripted_report_progress(struct scripted_miniport *m, uint32_t node);
uint32_t scripted_completed_fence(struct scripted_miniport *m, uint32_t node);
/* Answers a preemption request: drops packets that are not complete and reports both fences. */
void scripted_preempted(struct scripted_miniport *m, uint32_t node, uint32_t fence, uint32_t last);
/*
 * Reports a page fault: DXGK_PAGE_FAULT_FLAGS, id 0 with FENCE_INVALID. If the packet is the
 * oldest one and no reset is requested, the packet counts as complete.
 */
void scripted_page_fault(struct scripted_miniport *m, uint32_t node, uint32_t fence,
			 uint32_t flags);
/*
 * Reads or writes what the GPU sees at an address of a segment. Returns false if nothing is there.
 */
bool scripted_gpu_access(struct scripted_miniport *m, uint32_t segment, uint64_t address,
			 void *bytes, size_t length, bool write);
/* The same for one adapter of a link. */
bool scripted_engine_access(struct scripted_miniport *m, struct scripted_place place, void *bytes,
			    size_t length, bool write);
/* The adapter of a link that a paging operation is for: that of its hSystemContext. */
uint32_t scripted_paging_engine(const DXGKARG_BUILDPAGINGBUFFER *args);

/* Entries that are in the table only if a test puts them there. */
DXGKDDI_CANCELCOMMAND scripted_cancel_command;
DXGKDDI_SETALLOCATIONBACKINGSTORE scripted_set_backing_store;
DXGKDDI_MAPCPUHOSTAPERTURE scripted_map_host; /* adds these two entries */
DXGKDDI_UNMAPCPUHOSTAPERTURE scripted_unmap_host;
/* Address of the bytes at that offset while they are mapped, or NULL. *run: how many. */
char *scripted_host_bytes(const struct scripted_miniport *m, uint32_t segment, uint64_t offset,
			  uint64_t *run);
void scripted_host_start(struct scripted_miniport *m);
void scripted_host_stop(struct scripted_miniport *m);
DXGKDDI_VALIDATEUPDATEALLOCPROPERTY scripted_validate_property; /* adds that entry */
/* From 3.0 on. The miniport's handle of an event is an address; it records an escape as it came. */
DXGKDDI_CREATECPUEVENT scripted_create_cpu_event;
DXGKDDI_DESTROYCPUEVENT scripted_destroy_cpu_event;
DXGKDDI_ESCAPE scripted_escape;
DXGKDDI_RESETENGINE scripted_reset_engine;
DXGKDDI_QUERYENGINESTATUS scripted_query_engine_status;
DXGKDDI_QUERYDEPENDENTENGINEGROUP scripted_query_engine_group;

/* ---- GPU virtual addresses (scripted_mmu.c) ---- */

/*
 * Adds GPU virtual addresses to the table and the capabilities of a miniport of 2.0 or later: that
 * many levels of 256 entries, tables in that segment (0: system memory). With two levels addresses
 * have 32 bits, and the root is as large as needed. Transfers and fills must then be by virtual
 * address: its GPU walks the tables of the system paging process, which are in system memory. Other
 * operations on content count as faults.
 */
void scripted_mmu(struct scripted_miniport *m, uint32_t levels, uint32_t segment);
/*
 * Adds DxgkDdiValidateSubmitCommand to the table; it writes SCRIPTED_VALIDATED into private data
 * behind the client's.
 */
#define SCRIPTED_VALIDATED 0x56
void scripted_validate_commands(struct scripted_miniport *m);
/* What its GPU stores for an UpdateContextAllocation: the private data are an array of these. */
struct scripted_word {
	UINT offset, value;
};
/* The process with that number. */
struct scripted_process *scripted_process(struct scripted_miniport *m, uint32_t number);
/*
 * Reads or writes what the GPU finds at an address of the process. Returns false after a fault;
 * nothing behind the fault was moved.
 */
bool scripted_virtual_access(struct scripted_process *process, uint64_t address, void *bytes,
			     size_t length, bool write);
/* The entry of that page, without the TLB. Returns false if an entry on the way is invalid. */
bool scripted_walk(struct scripted_process *process, uint64_t address, DXGK_PTE *entry);
bool scripted_mmu_query(struct scripted_miniport *m, const DXGKARG_QUERYADAPTERINFO *args);
/* Executes or writes an operation of a miniport with page tables. Returns false for all others. */
bool scripted_mmu_paging(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args,
			 NTSTATUS *status);
/*
 * Bytes [done, +*step) of an operation of `total` bytes; INSUFFICIENT if a rest remains (PAG-07).
 */
NTSTATUS scripted_portion(const struct scripted_miniport *m, const DXGKARG_BUILDPAGINGBUFFER *args,
			  uint64_t total, uint64_t *step);
void scripted_mmu_run(struct scripted_miniport *m, const struct scripted_command *command);
/* For a virtual context: reads its commands USE, WRITE and COPY, which have virtual addresses. */
void scripted_mmu_packet(struct scripted_miniport *m, const DXGKARG_SUBMITCOMMAND *submit);
struct scripted_command *scripted_put(DXGKARG_BUILDPAGINGBUFFER *args, enum scripted_op op,
				      size_t more_bytes);

/* ---- hardware scheduling (scripted_hw.c) ---- */

/* Adds the entries to the table of a miniport of 2.6 or later; node 0 takes hardware queues. */
void scripted_hw(struct scripted_miniport *m);
/*
 * The GPU executes up to `count` commands of the queue with that number, oldest first. Returns how
 * many.
 */
uint32_t scripted_hw_complete(struct scripted_miniport *m, uint32_t queue, uint32_t count);
/* Sets its progress fence to that value, whatever was submitted. */
void scripted_hw_store(struct scripted_miniport *m, uint32_t queue, uint64_t value, bool interrupt);
/* Reports SUSPEND_CONTEXT_COMPLETED of the context with that number. */
void scripted_hw_suspended(struct scripted_miniport *m, uint32_t context, uint64_t fence);
void scripted_hw_start(struct scripted_miniport *m);
struct scripted_miniport *scripted_of_device(HANDLE handle);
void scripted_raise(struct scripted_miniport *m, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);

/* ---- its display (scripted_display.c): settings.source_count sources ---- */

/* Every allocation is described with this number of pixels. */
#define SCRIPTED_WIDTH  64u
#define SCRIPTED_HEIGHT 32u
/* Target n has finished a frame that it read from there; */
void scripted_vsync(struct scripted_miniport *m, uint32_t target, uint64_t address);
/* interrupt 14 */
void scripted_beat(struct scripted_miniport *m, uint32_t target, uint32_t id);
DXGKDDI_CREATEPERIODICFRAMENOTIFICATION scripted_create_periodic;
DXGKDDI_DESTROYPERIODICFRAMENOTIFICATION scripted_destroy_periodic;
DXGKDDI_PRESENT scripted_present;
/* What it does for a present of a context or hardware queue. */
NTSTATUS scripted_present_by(struct scripted_miniport *m, enum vidmm_ddi ddi, HANDLE object,
			     DXGKARG_PRESENT *args);
DXGKDDI_DESCRIBEALLOCATION scripted_describe_allocation;
DXGKDDI_SETVIDPNSOURCEADDRESS scripted_set_source_address;
DXGKDDI_SETVIDPNSOURCEVISIBILITY scripted_set_source_visibility;

/* Used between the source files of the scripted miniport. */
struct scripted_call *scripted_begin(struct scripted_miniport *m, enum vidmm_ddi ddi, HANDLE handle,
				     const void *args, size_t size);
NTSTATUS scripted_end(struct scripted_miniport *m, struct scripted_call *call, void *args);
struct scripted_miniport *scripted_of_context(HANDLE handle, uint32_t *node);
uint32_t scripted_index(const struct scripted_miniport *m, uint32_t node, uint32_t engine);
NTSTATUS scripted_query_wddm2(struct scripted_miniport *m, const DXGKARG_QUERYADAPTERINFO *args);
/*
 * All queues are dropped and count as complete, apertures map nothing. Nothing may be submitted
 * until `halted` is cleared.
 */
void scripted_gpu_halt(struct scripted_miniport *m, bool halted);
uint32_t scripted_gpu_abort(struct scripted_miniport *m, uint32_t node);
void scripted_gpu_start(struct scripted_miniport *m);
void scripted_gpu_stop(struct scripted_miniport *m);
void scripted_gpu_submit(struct scripted_miniport *m, uint32_t node,
			 const DXGKARG_SUBMITCOMMAND *submit);
void scripted_gpu_preempt(struct scripted_miniport *m, uint32_t node, uint32_t fence);
NTSTATUS scripted_gpu_translate(DXGKARG_RENDER *args);
NTSTATUS scripted_gpu_paging(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args);
void scripted_guard(struct scripted_miniport *m);
void scripted_unguard(struct scripted_miniport *m);

#endif
