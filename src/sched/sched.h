/* SPDX-License-Identifier: MIT */
/*
 * The GPU scheduler (VidSch): devices, contexts and their DMA buffers, submissions, preparation
 * (residency, patching), fences, completion. sched makes allocations resident through memory.h. The
 * memory module queues paging packets and waits for the GPU through struct vmm_memory_engine.
 *
 * Stages of a submission:
 *
 *   vmm_sched_render, in the client's thread, puts it on the prepare queue
 *   preparation makes it resident, assigns a fence id, has it patched; it joins a ready queue
 *   SubmitCommand is called as soon as the hardware accepts another packet of the node
 *   the interrupt records the completion, and the DPC retires the packet
 *
 * Preparation runs in the client's thread as long as it need not wait, else in the worker thread.
 */
#ifndef VMM_SCHED_SCHED_H
#define VMM_SCHED_SCHED_H

#include "memory/memory.h"
#include "object/object.h"
#include "port/port.h"
#include "sync/packet.h"
#include <vidmm/vidmm.h>

extern const struct vmm_memory_engine vmm_sched_memory_engine;
extern const struct vmm_port_sink vmm_sched_port_sink; /* context: struct vmm_adapter */

struct vmm_context;

/*
 * Creates the scheduler of an adapter before the port starts, so that interrupts can be recorded.
 * first_fence 0: the default id.
 */
vmm_status vmm_sched_create(struct vmm_adapter *adapter, uint32_t first_fence) VMM_MUST_CHECK;
/*
 * Creates the system device, its contexts and the worker thread. The port has started, and the
 * memory is created: vmm_memory_start comes next.
 */
vmm_status vmm_sched_start(struct vmm_adapter *adapter) VMM_MUST_CHECK;
/* Ends the watchdog, the worker and the system objects. */
void vmm_sched_stop(struct vmm_adapter *adapter);
void vmm_sched_destroy(struct vmm_adapter *adapter);
/*
 * Starts the watchdog (watch.c, recover.c) after memory has started. options NULL: the defaults.
 * STATUS_INVALID_PARAMETER, STATUS_NOT_SUPPORTED: wrong options. vmm_sched_stop ends it.
 */
vmm_status vmm_watch_start(struct vmm_adapter *adapter,
			   const struct vidmm_tdr_options *options) VMM_MUST_CHECK;
/*
 * Lets the watchdog find, when it runs next, that the node has timed out: its first packet has run
 * for TdrDelay. A completion before that cancels it. STATUS_INVALID_DEVICE_STATE, with a reason:
 * the GPU has no packet of the node, or timeouts are not detected. Node numbers as in port.h. No
 * lock held. (TDR-02)
 */
vmm_status vmm_watch_expire(struct vmm_adapter *adapter, uint32_t node) VMM_MUST_CHECK;
/*
 * Waits until every packet that is queued now is complete, except packets behind an unsatisfied
 * wait of their context: they stay queued. A wait that fails (the adapter is removed, or no thread
 * can run any more) abandons the adapter: what is queued is dropped, and every later call answers
 * DEVICE_REMOVED. No lock held.
 */
void vmm_sched_wait_idle(struct vmm_adapter *adapter, uint32_t reason);
/*
 * Counters since the adapter started: patch locations of accepted submissions; splits of DMA
 * buffers whose working set did not fit.
 */
struct vmm_sched_statistics {
	uint64_t patches, splits;
};
struct vmm_sched_statistics vmm_sched_statistics(struct vmm_adapter *adapter);
/*
 * Submits packets that have become ready, unless another thread holds the paging lock and will do
 * it. IRQL up to DISPATCH. No lock held.
 */
void vmm_sched_kick(struct vmm_adapter *adapter);
/* Has the worker do what vmm_sched_kick would. No lock held. */
void vmm_sched_hand_over(struct vmm_adapter *adapter);

NTSTATUS vmm_sched_create_device(struct vmm_process *process, struct vmm_adapter *adapter,
				 struct vmm_device **device) VMM_MUST_CHECK;
/*
 * Ends the contexts and allocations of a device, then the device itself. The caller got it from
 * vmm_hazard_retire. No lock held.
 */
void vmm_sched_destroy_device(struct vmm_device *device);
/*
 * The adapter stops (PNP-03). close_devices returns when no thread is inside a device of it, and
 * none can enter. destroy_devices ends the devices after the GPU is idle and memory is evicted.
 */
void vmm_sched_close_devices(struct vmm_adapter *adapter);
void vmm_sched_destroy_devices(struct vmm_adapter *adapter);
/* Makes all sources dark (PRS-06). Called between the two, when the GPU is idle. */
void vmm_sched_close_displays(struct vmm_adapter *adapter);

/*
 * Power transitions (PNP-05). Down: blocks calls that enter a device, completes what is prepared,
 * leaves the rest queued, evicts the segments that lose their content, then calls
 * DxgkDdiSetPowerState. On failure the adapter continues at full power; evicted memory is not moved
 * back. Up: the reverse. No lock held. The caller makes one transition at a time.
 */
vmm_status vmm_sched_power_down(struct vmm_adapter *adapter, DEVICE_POWER_STATE state,
				POWER_ACTION action) VMM_MUST_CHECK;
void vmm_sched_power_up(struct vmm_adapter *adapter);

/*
 * PNP-08: surprise removal of the adapter. On return every call on it returns DEVICE_REMOVED, no
 * thread waits for its GPU, and nothing runs on it. Returns what vmm_port_notify_removal returns.
 * Any thread, no lock held.
 */
vmm_status vmm_sched_remove(struct vmm_adapter *adapter,
			    DXGK_SURPRISE_REMOVAL_TYPE type) VMM_MUST_CHECK;
/*
 * TDRS-15: marks a device lost without touching the hardware. A device that is already lost or in
 * error does not change. No lock held.
 */
NTSTATUS vmm_sched_mark_device(struct vmm_device *device, uint32_t reason) VMM_MUST_CHECK;
/* TDR-19: reads the record of the page fault that lost the device; all zeros: there was none. */
void vmm_sched_page_fault(const struct vmm_device *device, struct vmm_page_fault_record *record);

/* Where the UMD writes its next submission. Every submission of a context uses the same memory. */
struct vmm_context_buffers {
	void *commands;
	D3DDDI_ALLOCATIONLIST *allocations;
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t command_bytes, allocation_count, patch_count;
};
/*
 * Stores the buffers in `out`, an output structure of the DDI. The members have the same names in
 * the structures of creations (pCommandBuffer, AllocationListSize, ...), with an empty `infix`, and
 * of render calls, with the infix New (pNewCommandBuffer, NewAllocationListSize, ...).
 */
#define VMM_STORE_CONTEXT_BUFFERS(out, infix, buffers)                         \
	do {                                                                   \
		const struct vmm_context_buffers *buffers_ = (buffers);        \
		(out)->p##infix##CommandBuffer = buffers_->commands;           \
		(out)->infix##CommandBufferSize = buffers_->command_bytes;     \
		(out)->p##infix##AllocationList = buffers_->allocations;       \
		(out)->infix##AllocationListSize = buffers_->allocation_count; \
		(out)->p##infix##PatchLocationList = buffers_->patches;        \
		(out)->infix##PatchLocationListSize = buffers_->patch_count;   \
	} while (0)

#define VMM_CONTEXT_PRIVATE_BYTES_MAX (1u << 20)
struct vmm_context_request {
	uint32_t node, affinity, flags;
	bool gdi;        /* context of the display driver that draws for GDI (DMA-34) */
	bool by_address; /* its commands are at GPU virtual addresses (SUB-23) */
	/* The client's memory, of at most VMM_CONTEXT_PRIVATE_BYTES_MAX bytes; read once. */
	const void *private_data;
	uint32_t private_bytes;
	/*
	 * out: hContext of the callbacks. Once it is set, any thread of the client may end the
	 * context.
	 */
	void *handle;
	uint32_t number;                    /* out: D3DKMT handle */
	struct vmm_context_buffers buffers; /* out */
};
NTSTATUS vmm_sched_create_context(struct vmm_device *device,
				  struct vmm_context_request *request) VMM_MUST_CHECK;
/*
 * A submission of commands at a GPU virtual address, on a context created with by_address
 * (virtual.c). The GPU runs the client's memory unchanged, while all of the device's residency list
 * is resident.
 */
#define VMM_PRIMARIES_MAX 16u
struct vmm_command_request {
	uint64_t commands;        /* GPU virtual address */
	uint32_t length, flags;   /* length in bytes */
	const void *private_data; /* copied from the client */
	uint32_t private_bytes;
	/* Handles of the displayed allocations that it writes. */
	uint32_t primaries[VMM_PRIMARIES_MAX];
	uint32_t primary_count;
};
/* Checks the number of contexts of a submission, which must be 1 to 64 (SUB-26). */
NTSTATUS vmm_sched_check_command_contexts(struct vmm_observe *observe, uint32_t process,
					  uint32_t object, uint32_t count) VMM_MUST_CHECK;
struct vmm_broadcast_names;
/*
 * Submits the commands to the context, which is BroadcastContext[0], and to the `others`, which are
 * created with by_address, too. Either all of them get a packet, or none (SUB-26).
 */
NTSTATUS vmm_sched_submit_command(struct vmm_context *context,
				  const struct vmm_broadcast_names *others,
				  const struct vmm_command_request *request) VMM_MUST_CHECK;
/*
 * VA-10: queues an update of GPU virtual addresses beside the context (address.c). Waits while the
 * queue of the context is full.
 */
struct vmm_address_request {
	/* Copied from the client. The callee takes ownership, also on failure. */
	struct vmm_va_operation *operations;
	uint32_t count, flags;
	uint32_t fence; /* handle */
	uint64_t value;
};
NTSTATUS vmm_sched_update_addresses(struct vmm_context *context,
				    struct vmm_address_request *request) VMM_MUST_CHECK;
/* Ends a context. STATUS_INVALID_PARAMETER: the handle is not a live context of the device. */
NTSTATUS vmm_sched_destroy_context(struct vmm_device *device, const void *handle) VMM_MUST_CHECK;
/*
 * Protected lookup (vmm_hazard_enter): the context and its device stay until vmm_hazard_leave.
 * NULL: the handle is not a live context of the device.
 */
struct vmm_context *vmm_sched_enter_context(struct vmm_hazard_guard *guard, const void *device,
					    const void *handle);
struct vmm_device *vmm_sched_context_device(const struct vmm_context *context);

/* Private data for the miniport, which may change it. */
struct vmm_escape_request {
	uint32_t flags; /* D3DDDI_ESCAPEFLAGS */
	uint32_t size_bytes;
	void *data;
};
/*
 * Calls DxgkDdiEscape for the process (ESC-02). The device or the context may be NULL; the caller
 * is inside those that it names. Without a device the call waits while the adapter has no power.
 * No lock is held.
 */
vmm_status vmm_sched_escape(struct vmm_process *process, struct vmm_adapter *adapter,
			    const struct vmm_device *device, const struct vmm_context *context,
			    const struct vmm_escape_request *request) VMM_MUST_CHECK;
/*
 * What a node has done since the adapter started: for `process` (its devices, since its first
 * device on the adapter that had no other beside it), or for all clients and for paging. Running
 * time includes that of the packet that runs now. Commands of hardware queues are not counted.
 * STATUS_INVALID_PARAMETER and a finding: there is no such node. (QST-06)
 */
struct vmm_node_usage {
	struct vmm_node_counts process, clients, system;
};
NTSTATUS vmm_sched_node_usage(struct vmm_adapter *adapter, const struct vmm_process *process,
			      uint32_t node, struct vmm_node_usage *usage) VMM_MUST_CHECK;
/*
 * Stores the ids of the processes that have a device on the adapter, each once, in the order of
 * their first devices; at most `capacity`. Returns how many there are. (ADP-13)
 */
uint32_t vmm_sched_processes(struct vmm_adapter *adapter, uint32_t *ids, uint32_t capacity);
/* Returns the number of video present sources; 0: the adapter only renders. */
uint32_t vmm_sched_source_count(const struct vmm_adapter *adapter);
/*
 * Flips of a source: shown since the adapter started; queued and not shown yet, of all processes
 * and of `process`. STATUS_INVALID_PARAMETER and a finding: there is no such source. (QST-07)
 */
struct vmm_source_usage {
	uint64_t frames;
	uint32_t queued, queued_of_process;
};
NTSTATUS vmm_sched_source_usage(struct vmm_adapter *adapter, const struct vmm_process *process,
				uint32_t source, struct vmm_source_usage *usage) VMM_MUST_CHECK;
/*
 * Asks the miniport for the clocks of a node of a physical adapter at one instant. On failure
 * *clock is unchanged. STATUS_INVALID_PARAMETER: there is no such node or physical adapter
 * (CLK-02). Otherwise what vmm_port_calibrate_clock returns. Waits while the adapter has no power.
 * No lock is held.
 */
NTSTATUS vmm_sched_calibrate_clock(struct vmm_process *process, struct vmm_adapter *adapter,
				   uint32_t node, uint32_t physical,
				   DXGK_GPUCLOCKDATA *clock) VMM_MUST_CHECK;
/*
 * A client wants the clocks of the GPU to be fixed, or not any more. STATUS_SUCCESS: they are fixed
 * anyway, because the miniport has no DDI that changes them. STATUS_NOT_SUPPORTED and a reason: it
 * has one, which is not built. (CLK-05)
 */
NTSTATUS vmm_sched_set_stable_power(const struct vmm_process *process,
				    struct vmm_adapter *adapter) VMM_MUST_CHECK;
/* ---- owner.c: which device owns a video present source (OWN) ---- */
/* Elements are of D3DKMT_VIDPNSOURCEOWNER_TYPE and source ids. No elements: releases all. */
struct vmm_owner_request {
	const uint32_t *types, *sources;
	uint32_t count;
};
/* Checks the number of elements, before they are read. (OWN-01) */
NTSTATUS vmm_sched_check_owner_count(const struct vmm_device *device, uint32_t count,
				     bool given) VMM_MUST_CHECK;
/*
 * Sets or releases the device's ownership of sources: all that the request names, or none. Presents
 * do not depend on it. STATUS_GRAPHICS_INVALID_VIDEO_PRESENT_SOURCE,
 * STATUS_GRAPHICS_VIDPN_SOURCE_IN_USE, STATUS_INVALID_PARAMETER, each with a finding or a reason.
 * Takes the state lock. (OWN-01 to OWN-04)
 */
NTSTATUS vmm_sched_own_sources(struct vmm_device *device,
			       const struct vmm_owner_request *request) VMM_MUST_CHECK;
/* STATUS_GRAPHICS_PRESENT_OCCLUDED: a device owns the source exclusively. (OWN-05) */
NTSTATUS vmm_sched_check_ownership(struct vmm_adapter *adapter, const struct vmm_process *process,
				   uint32_t source) VMM_MUST_CHECK;
/* STATUS_GRAPHICS_INVALID_VIDEO_PRESENT_SOURCE and a finding: there is no such source. (OWN-02) */
NTSTATUS vmm_sched_check_source(const struct vmm_adapter *adapter,
				const struct vmm_process *process, uint32_t source) VMM_MUST_CHECK;
/* Returns the handle for protected lookups (hazard.h). */
void *vmm_sched_context_live(const struct vmm_context *context);
/* Returns its D3DKMT handle, by which events name it. */
uint32_t vmm_sched_context_number(const struct vmm_context *context);
const struct vmm_context_buffers *vmm_sched_context_buffers(const struct vmm_context *context);

/*
 * Priorities (priority.c). A change takes effect when the next packet is chosen. A higher priority
 * preempts what runs, if the miniport supports preemption (SCH-05). The setters change nothing if
 * they return STATUS_INVALID_PARAMETER (out of range) or STATUS_ACCESS_DENIED (the privilege is
 * missing).
 */
NTSTATUS vmm_sched_set_priority(struct vmm_context *context, int32_t priority) VMM_MUST_CHECK;
int32_t vmm_sched_priority(const struct vmm_context *context);
NTSTATUS vmm_sched_set_in_process_priority(struct vmm_context *context,
					   int32_t priority) VMM_MUST_CHECK;
int32_t vmm_sched_in_process_priority(const struct vmm_context *context);
NTSTATUS vmm_sched_set_priority_class(struct vmm_process *process, uint32_t class) VMM_MUST_CHECK;
/*
 * Sets the scheduling options before vmm_sched_start; NULL: the defaults. STATUS_INVALID_PARAMETER:
 * wrong options.
 */
vmm_status vmm_sched_configure(struct vmm_adapter *adapter,
			       const struct vidmm_scheduling_options *options) VMM_MUST_CHECK;

struct vmm_broadcast;
struct vmm_render_request {
	uint32_t command_length, command_offset, allocation_count, patch_count, flags;
	const struct vmm_broadcast *broadcast; /* set by sched; NULL: no other context runs it */
	uint32_t queued; /* out: DMA buffers queued on the context, this one included (DMA-13) */
};
NTSTATUS vmm_sched_render(struct vmm_context *context,
			  struct vmm_render_request *request) VMM_MUST_CHECK;
#define VMM_BROADCAST_MAX 64u
/* The further contexts of a broadcast. */
struct vmm_broadcast_names {
	/* Index of the first of them in the client's array: 0; for commands 1 (SUB-26). */
	uint32_t first;
	uint32_t count;
	/* HContext handles of the callbacks; NULL: `number` names the contexts. */
	void *const *hazard;
	const uint32_t *number; /* D3DKMT handles */
};
/*
 * vmm_sched_render for a broadcast (DMA-10): the named contexts run the buffer, too.
 * STATUS_INVALID_PARAMETER: too many contexts, one that is not a live context of the device, the
 * owner itself, or one named twice. STATUS_NOT_SUPPORTED: see the README.
 */
NTSTATUS vmm_sched_render_to(struct vmm_context *context, const struct vmm_broadcast_names *names,
			     struct vmm_render_request *request) VMM_MUST_CHECK;

/*
 * A wait or signal in a context's queue. With `others`, a signal is done when those contexts have
 * reached it, too (SYN-28).
 */
struct vmm_sched_sync {
	struct vmm_sync_packet_request request;
	const void *const *others; /* hContext handles; the contexts may have ended */
	uint32_t other_count;
};
/*
 * Queues a wait or signal. It is done at once if the queue allows. Returns what
 * vmm_sync_packet_fill returns, STATUS_NO_MEMORY, or STATUS_DEVICE_REMOVED if the device of another
 * context is lost.
 */
NTSTATUS vmm_sched_synchronize(struct vmm_context *context,
			       const struct vmm_sched_sync *sync) VMM_MUST_CHECK;

/*
 * D3DKMTPresent. Rectangles are in pixels of their allocations; left and top are inclusive, right
 * and bottom exclusive.
 */
struct vmm_present_request {
	uint32_t source, destination; /* handles; 0: none */
	uint32_t source_id;           /* VidPnSourceId of a flip */
	uint32_t flags;               /* DXGK_PRESENTFLAGS */
	uint32_t color;               /* of a ColorFill */
	/* Not valid: the rectangle is the whole allocation, as the miniport describes it. */
	bool source_rect_valid, destination_rect_valid;
	RECT source_rect, destination_rect;
	/* In the source; of a ColorFill in the destination. Copied from the client. */
	const RECT *sub_rects;
	uint32_t sub_rect_count;
	D3DDDI_FLIPINTERVAL_TYPE interval;
	uint32_t broadcast_count; /* further contexts: not built, refused if not 0 (DMA-10) */
	bool do_not_wait;         /* SUB-17: STATUS_GRAPHICS_ALLOCATION_BUSY instead */
	/* What the miniport gets besides. Copied from the client. */
	const void *private_data;
	uint32_t private_bytes;
};
/*
 * Queues a present. STATUS_DEVICE_REMOVED, STATUS_GRAPHICS_ALLOCATION_BUSY, what the miniport
 * returns (DMA-37), or the errors of DMA-16, PRS-01 and PRS-02.
 */
NTSTATUS vmm_sched_present(struct vmm_context *context,
			   const struct vmm_present_request *request) VMM_MUST_CHECK;
/*
 * SUB-17: limits of the presents that a device may have queued (0 sets the default), and of its
 * flips that may be pending on one source.
 */
#define VMM_PRESENT_LIMIT_DEFAULT 3u
#define VMM_FLIP_LIMIT            1u
void vmm_present_set_limit(struct vmm_device *device, uint32_t presents);
uint32_t vmm_present_limit(const struct vmm_device *device);
/*
 * Finds the source that a primary was created for. STATUS_INVALID_HANDLE, or
 * STATUS_INVALID_PARAMETER (PRS-02): it is not a primary.
 */
NTSTATUS vmm_present_source_of(const struct vmm_context *context, uint32_t primary,
			       uint32_t *source_id) VMM_MUST_CHECK;

#endif
