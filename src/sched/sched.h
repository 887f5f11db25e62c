/* SPDX-License-Identifier: MIT */
/*
 * sched: VidSch proper. Contexts and their DMA buffers, submissions in order, preparation (residency, patching),
 * fences, completion. It asks memory for residency through memory.h's narrow interface and gives it, as
 * struct vmm_memory_engine, the way to the GPU.
 *
 * A submission's life: vmm_sched_render (client's thread) -> prepare queue -> prepared (resident, patched, fenced)
 * -> ready queue of its node -> SubmitCommand when the hardware has room -> interrupt -> DPC retires it. Preparation
 * runs in the client's thread while nothing must be waited for, otherwise in the worker thread.
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

/* Before the port starts, so that the sink has somewhere to record; then vmm_sched_start once port and memory stand. */
vmm_status vmm_sched_create(struct vmm_adapter *adapter, uint32_t first_fence) VMM_MUST_CHECK;
vmm_status vmm_sched_start(struct vmm_adapter *adapter)
	VMM_MUST_CHECK;                           /* system device and context, worker thread */
void vmm_sched_stop(struct vmm_adapter *adapter); /* worker and system objects gone */
void vmm_sched_destroy(struct vmm_adapter *adapter);
/*
 * Timeouts (watch.c, recover.c), once memory stands. STATUS_INVALID_PARAMETER, STATUS_NOT_SUPPORTED: the options; NULL:
 * the defaults. vmm_sched_stop ends it.
 */
vmm_status vmm_watch_start(struct vmm_adapter *adapter,
			   const struct vidmm_tdr_options *options) VMM_MUST_CHECK;
/* Waits until everything queued so far is complete; on a removed adapter it is abandoned instead. No lock held. */
void vmm_sched_wait_idle(struct vmm_adapter *adapter, uint32_t reason);
/* Since the adapter started: patch locations of accepted submissions, buffers split for want of memory. */
struct vmm_sched_figures {
	uint64_t patches, splits;
};
struct vmm_sched_figures vmm_sched_figures(struct vmm_adapter *adapter);
/* Hands packets that became ready to the hardware; any IRQL up to DISPATCH, no lock held. */
void vmm_sched_kick(struct vmm_adapter *adapter);

NTSTATUS vmm_sched_create_device(struct vmm_process *process, struct vmm_adapter *adapter,
				 struct vmm_device **device) VMM_MUST_CHECK;
/* Contexts, allocations, then the device: one that vmm_live_end gave. */
void vmm_sched_destroy_device(struct vmm_device *device);
/* The adapter stops (PNP-03): nobody is or gets inside a device of it; then, everything idle and evicted, they end. */
void vmm_sched_close_devices(struct vmm_adapter *adapter);
void vmm_sched_destroy_devices(struct vmm_adapter *adapter);
/* In between, the GPU idle: nothing is shown any more (PRS-06). */
void vmm_sched_close_displays(struct vmm_adapter *adapter);

/*
 * PNP-05. Down: nobody is inside a device of the adapter, and whoever comes waits; what was prepared completes, what was not
 * stays queued; memory leaves the segments that lose it; the miniport is told. On failure nothing has changed, but that
 * memory is where it went. Up: the reverse. No lock held; one at a time.
 */
vmm_status vmm_sched_power_down(struct vmm_adapter *adapter, DEVICE_POWER_STATE state,
				POWER_ACTION action) VMM_MUST_CHECK;
void vmm_sched_power_up(struct vmm_adapter *adapter);

/*
 * PNP-08: the device is gone. On return every call on it answers DEVICE_REMOVED, nobody waits for the GPU, and nothing runs on
 * it. As vmm_port_notify_removal. Any thread, no lock held.
 */
vmm_status vmm_sched_remove(struct vmm_adapter *adapter,
			    DXGK_SURPRISE_REMOVAL_TYPE type) VMM_MUST_CHECK;
/* TDRS-15: it is lost, and nothing is done to the hardware; one that already is, or is in error, stays as it is. No lock held. */
NTSTATUS vmm_sched_mark_device(struct vmm_device *device, uint32_t reason) VMM_MUST_CHECK;
/* TDR-19: of the page fault that it was lost with; zeros: of none. */
void vmm_sched_page_fault(const struct vmm_device *device, struct vmm_page_fault_record *record);

/* What the UMD writes its next submission into; the same memory for every submission of the context. */
struct vmm_context_buffers {
	void *commands;
	D3DDDI_ALLOCATIONLIST *allocations;
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t command_bytes, allocation_count, patch_count;
};
struct vmm_context_request {
	uint32_t node, affinity, flags;
	bool gdi;           /* of the display driver that draws for GDI (DMA-34) */
	bool by_address;    /* its commands are at GPU virtual addresses (SUB-23) */
	void *private_data; /* our copy */
	uint32_t private_bytes;
	void *handle;                       /* out; from now on anybody may end it */
	uint32_t number;                    /* out: what D3DKMT clients know it by */
	struct vmm_context_buffers buffers; /* out */
};
NTSTATUS vmm_sched_create_context(struct vmm_device *device,
				  struct vmm_context_request *request) VMM_MUST_CHECK;
/*
 * Commands at a GPU virtual address, on a context made for that (virtual.c): the client's own, run as they are while all of the
 * device's residency list is in memory.
 */
#define VMM_PRIMARIES_MAX 16u
struct vmm_command_request {
	uint64_t commands; /* their address */
	uint32_t length, flags;
	const void *private_data; /* our copy */
	uint32_t private_bytes;
	uint32_t primaries[VMM_PRIMARIES_MAX]; /* handles of what is displayed and written */
	uint32_t primary_count;
};
/* SUB-26; and of that what is built: one context. */
NTSTATUS vmm_sched_check_command_contexts(struct vmm_observe *observe, uint32_t process,
					  uint32_t object, uint32_t count) VMM_MUST_CHECK;
NTSTATUS vmm_sched_submit_command(struct vmm_context *context,
				  const struct vmm_command_request *request) VMM_MUST_CHECK;
/* VA-10, address.c: beside the context; it may wait for room in the queue. */
struct vmm_address_request {
	struct vmm_va_operation *operations; /* our copy; the callee's, whatever it answers */
	uint32_t count, flags;
	uint32_t fence; /* handle */
	uint64_t value;
};
NTSTATUS vmm_sched_update_addresses(struct vmm_context *context,
				    struct vmm_address_request *request) VMM_MUST_CHECK;
/* STATUS_INVALID_PARAMETER unless the handle is a live context of the device. */
NTSTATUS vmm_sched_destroy_context(struct vmm_device *device, const void *handle) VMM_MUST_CHECK;
/* As vmm_live_enter: the context, and with it its device, stays until vmm_live_leave. NULL: not a live one of the device. */
struct vmm_context *vmm_sched_enter_context(struct vmm_visit *visit, const void *device,
					    const void *handle);
struct vmm_device *vmm_sched_context_device(const struct vmm_context *context);
/* Its handle by live.h. */
void *vmm_sched_context_live(const struct vmm_context *context);
const struct vmm_context_buffers *vmm_sched_context_buffers(const struct vmm_context *context);

/*
 * Priorities (priority.c); each takes effect with the next packet that is chosen, and a higher one preempts what runs, where
 * the miniport can (SCH-05). Set: STATUS_INVALID_PARAMETER outside the range, STATUS_ACCESS_DENIED without the privilege;
 * nothing changes then.
 */
NTSTATUS vmm_sched_set_priority(struct vmm_context *context, int32_t priority) VMM_MUST_CHECK;
int32_t vmm_sched_priority(const struct vmm_context *context);
NTSTATUS vmm_sched_set_in_process_priority(struct vmm_context *context,
					   int32_t priority) VMM_MUST_CHECK;
int32_t vmm_sched_in_process_priority(const struct vmm_context *context);
NTSTATUS vmm_sched_set_priority_class(struct vmm_process *process, uint32_t class) VMM_MUST_CHECK;
/* STATUS_INVALID_PARAMETER: the options. NULL: the defaults. Before vmm_sched_start. */
vmm_status vmm_sched_configure(struct vmm_adapter *adapter,
			       const struct vidmm_scheduling_options *options) VMM_MUST_CHECK;

struct vmm_broadcast;
struct vmm_render_request {
	uint32_t command_length, command_offset, allocation_count, patch_count, flags;
	const struct vmm_broadcast *broadcast; /* sched's own; NULL: to nobody else */
	uint32_t queued; /* out: DMA buffers queued on the context, this one included (DMA-13) */
};
NTSTATUS vmm_sched_render(struct vmm_context *context,
			  struct vmm_render_request *request) VMM_MUST_CHECK;
#define VMM_BROADCAST_MAX 64u
struct vmm_broadcast_names {
	uint32_t count;
	void *const *live;      /* HANDLEs of callbacks, or NULL and: */
	const uint32_t *number; /* D3DKMT handles */
};
/*
 * DMA-10: the same, and the contexts named run the buffer, too. STATUS_INVALID_PARAMETER: too many, one that is no live
 * context of the device, or twice the same; STATUS_NOT_SUPPORTED: see the README.
 */
NTSTATUS vmm_sched_render_to(struct vmm_context *context, const struct vmm_broadcast_names *names,
			     struct vmm_render_request *request) VMM_MUST_CHECK;

/* A wait or signal of a context's queue, or a signal when other contexts have come to it as well (SYN-28). */
struct vmm_sched_sync {
	struct vmm_sync_packet_request request;
	const void *const *others; /* by live.h; may have ended by now */
	uint32_t other_count;
};
/*
 * Queued, and done as soon as it is its turn. What vmm_sync_packet_fill answers; STATUS_NO_MEMORY; STATUS_DEVICE_REMOVED: the device of
 * another context is lost.
 */
NTSTATUS vmm_sched_synchronize(struct vmm_context *context,
			       const struct vmm_sched_sync *sync) VMM_MUST_CHECK;

/* D3DKMTPresent. Rectangles in pixels of their allocations; their edges: left and top inside, right and bottom outside. */
struct vmm_present_request {
	uint32_t source, destination; /* handles; 0: none */
	uint32_t source_id;           /* VidPnSourceId of a flip */
	uint32_t flags;               /* DXGK_PRESENTFLAGS */
	uint32_t color;               /* of a ColorFill */
	bool source_rect_valid,
		destination_rect_valid; /* else all of it, as the miniport describes it */
	RECT source_rect, destination_rect;
	const RECT *sub_rects; /* in the source (of a ColorFill: in the destination); our copy */
	uint32_t sub_rect_count;
	D3DDDI_FLIPINTERVAL_TYPE interval;
	uint32_t broadcast_count; /* further contexts (DMA-10): none is built */
	bool do_not_wait;         /* SUB-17: STATUS_GRAPHICS_ALLOCATION_BUSY instead */
};
/* STATUS_DEVICE_REMOVED, STATUS_GRAPHICS_ALLOCATION_BUSY, what the miniport answers (DMA-37), what DMA-16 and PRS-01 to PRS-02 say. */
NTSTATUS vmm_sched_present(struct vmm_context *context,
			   const struct vmm_present_request *request) VMM_MUST_CHECK;
/* SUB-17: presents that a device may have queued, 0 sets the default; flips that may be pending on a source. */
#define VMM_PRESENT_LIMIT_DEFAULT 3u
#define VMM_FLIP_LIMIT            1u
void vmm_present_set_limit(struct vmm_device *device, uint32_t presents);
uint32_t vmm_present_limit(const struct vmm_device *device);
/* The source that a primary was made for. STATUS_INVALID_HANDLE, STATUS_INVALID_PARAMETER (PRS-02): it is none. */
NTSTATUS vmm_present_source_of(const struct vmm_context *context, uint32_t primary,
			       uint32_t *source_id) VMM_MUST_CHECK;

#endif
