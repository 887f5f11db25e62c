/* SPDX-License-Identifier: MIT */
/*
 * The schema of the event stream (vidmm_subscribe). It is stable: types, reasons and arguments are
 * only ever added.
 *
 * Each type lists its members of struct vidmm_event: process, object, reason, and arg[0] to arg[3],
 * which are called a, b, c and d here. A member not described is 0, except process, which is
 * the process concerned. Handles are D3DKMT handles, 0: none. Sizes are bytes; times are ns of the
 * host's clock, which is virtual on a sim host. Statuses are NTSTATUS values as unsigned numbers.
 */
#ifndef VIDMM_EVENTS_H
#define VIDMM_EVENTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vidmm_event_type {
	VIDMM_EVENT_NONE = 0,
	/*
	 * A client's call ended. object: allocation, context or device; reason: enum vidmm_door;
	 * a: status, b: elements handled, c: ns spent, d: flags of the call. On a linux host c is 0
	 * while there is no subscription to this type.
	 */
	VIDMM_EVENT_DOOR = 1,
	/*
	 * A DxgkDdi call returned. object: allocation, or 0; reason: enum vidmm_ddi; a: status,
	 * b, c, d: values of the call, which vidmm_event_format names.
	 */
	VIDMM_EVENT_DDI = 2,
	/* The miniport made a DxgkCb callback. reason: enum vidmm_ddi_callback; a: status. */
	VIDMM_EVENT_CALLBACK = 3,
	/*
	 * An allocation was created. object: allocation; a: bytes, b: supported segments (write
	 * set), c: flags.
	 */
	VIDMM_EVENT_CREATE = 4,
	/*
	 * The client destroyed an allocation; DxgkDdiDestroyAllocation may follow later. object:
	 * allocation; a: bytes.
	 */
	VIDMM_EVENT_DESTROY = 5,
	/*
	 * A paging operation was added to a paging buffer. object: allocation; reason: enum
	 * vidmm_paging_op; a: bytes, b: source segment, c: destination segment, d: GPU address.
	 */
	VIDMM_EVENT_PAGING = 6,
	/*
	 * The placement of an allocation changed. object: allocation; reason: enum
	 * vidmm_residency_reason; a: bytes, b: old segment, c: new segment (0: system memory),
	 * d: offset in the segment.
	 */
	VIDMM_EVENT_RESIDENCY = 7,
	/*
	 * A call waited, or was refused because it would have waited for the GPU. process: the
	 * caller's, 0: a thread of vidmm; object: with VIDMM_WAIT_DECLINED the allocation, with
	 * VIDMM_WAIT_FENCE the first fence, otherwise 0; reason: enum vidmm_wait_reason; a: ns
	 * waited, b: node, c: number of the submission on that node (d of VIDMM_EVENT_SUBMIT).
	 * With c 0 the call waited for no particular submission, and b is 0 too. Paging has the
	 * node number after the miniport's last one.
	 */
	VIDMM_EVENT_WAIT = 8,
	/*
	 * A render submission was accepted. object: context; reason: node; a: references, b: patch
	 * locations, c: bytes of commands, d: its number on the node's timeline.
	 */
	VIDMM_EVENT_SUBMIT = 9,
	/*
	 * A portion of a DMA buffer was submitted to the miniport. object: context or hardware
	 * queue, 0: paging; reason: 0 render, 1 paging; a: fence id, with a hardware queue the
	 * value of its progress fence, b: node, c: start offset, d: end offset.
	 */
	VIDMM_EVENT_QUEUE = 10,
	/*
	 * The DPC read that a fence is complete and retired its packets. process, object: of the
	 * hardware queue, 0: the fence is a node's; a: fence id, with a hardware queue the value
	 * of its progress fence, b: node, c: packets of that node or queue that were retired, d:
	 * of a node that executes submissions: all up to the one with this number (d of
	 * VIDMM_EVENT_SUBMIT) are complete; else 0.
	 */
	VIDMM_EVENT_FENCE = 11,
	/*
	 * A lock succeeded. object: handle returned; a: flags, b: ns waited, c: bytes locked, d:
	 * handle that the call named; differs from object if the lock renamed the allocation.
	 */
	VIDMM_EVENT_LOCK = 12,
	VIDMM_EVENT_UNLOCK = 13, /* An unlock succeeded. object: handle. */
	/*
	 * A lock with Discard renamed an allocation. object: new handle; reason: 0 new instance,
	 * 1 reused instance; a: old handle, b: instances of the allocation, c: bytes, d: 1 if the
	 * GPU still used the old instance, so that a lock without Discard would have waited.
	 */
	VIDMM_EVENT_RENAME = 14,
	VIDMM_EVENT_OFFER = 15, /* object: allocation; a: bytes, b: priority */
	/* object: allocation; a: bytes, b: 0 content kept, 1 content discarded, 2 not committed */
	VIDMM_EVENT_RECLAIM = 16,
	/* Offered content was discarded under memory pressure. object: allocation; a: bytes. */
	VIDMM_EVENT_DISCARD = 17,
	/* A DMA buffer was split. object: context; a: split offset, b: patch index. */
	VIDMM_EVENT_SPLIT = 18,
	/* A contract of the DDI was broken. text: "RULE-nn: ...". */
	VIDMM_EVENT_FINDING = 19,
	/* A call failed although no contract was broken. a: status; text: the reason. */
	VIDMM_EVENT_REASON = 20,
	/* Windows would have made a bug check. a: code, b, c, d: its parameters. */
	VIDMM_EVENT_FATAL = 21,
	/*
	 * CPU caches were flushed for a Cached allocation. object: allocation; reason: enum
	 * vidmm_flush_reason; a: bytes, b: segment of the allocation (0: system memory).
	 */
	VIDMM_EVENT_FLUSH = 22,
	/*
	 * A packet did not complete in time, or the recovery took a step. process, object: process
	 * and context of the packet (0: paging); reason: enum vidmm_recovery; a: reason code as in
	 * DxgkDdiCollectDbgInfo (0x117: adapter; 0x141: engine; 0x142: process blocked), b: node,
	 * c: fence id, d: ns that the packet has had the node (OVERDUE, MISSED, TIMEOUT).
	 */
	VIDMM_EVENT_RECOVERY = 23,
	/*
	 * A swizzling range was assigned, released or refused. object: allocation; reason: enum
	 * vidmm_range_reason; a: RangeId, b: with VIDMM_RANGE_RECLAIMED the allocation that gets
	 * the range, with VIDMM_RANGE_REFUSED the status.
	 */
	VIDMM_EVENT_RANGE = 24,
	/*
	 * A video present source shows another primary. object: the primary; reason: enum
	 * vidmm_display_reason; a: VidPnSourceId, b: segment, c: GPU address, d: number of
	 * primaries that the source has shown before.
	 */
	VIDMM_EVENT_DISPLAY = 25,
	/*
	 * A wait that is not satisfied at once holds the queue of a context, or a signal is queued
	 * behind it; or such a wait or signal ended. Hardware queues have no such events. process,
	 * object: of the context; reason: enum vidmm_sync_reason; a: number of the synchronization
	 * object, the same in all processes, b: value that is waited for or signaled (0: the object
	 * has units, not values), c: its present value or free units, d: its handle in the call.
	 * On a linux host these events are not counted while there is no subscription to them. A
	 * later subscription gets the events from then on.
	 */
	VIDMM_EVENT_SYNC = 26,
	/*
	 * Part of a placement in several extents, which are contiguous each; follows
	 * VIDMM_EVENT_RESIDENCY, which has the offset of the first. object: allocation; a: bytes,
	 * b: offset in the allocation, c: segment, d: offset in the segment.
	 */
	VIDMM_EVENT_EXTENT = 27,
	/*
	 * A process was opened or closed. reason: enum vidmm_process_reason; text, when it was
	 * opened: its name, which the client chose.
	 */
	VIDMM_EVENT_PROCESS = 28,
	/*
	 * An adapter has started; one event for each of its segments. reason: number of the
	 * segment, from 1; a: bytes, b: base address, c: DXGK_SEGMENTFLAGS, d: LUID of the adapter.
	 */
	VIDMM_EVENT_SEGMENT = 29,
	/*
	 * An allocation was evicted from a segment because another one needs the space; follows
	 * VIDMM_EVENT_RESIDENCY of the eviction. process, object: of the victim; reason: enum
	 * vidmm_victim_reason; a: handle of the allocation that needs the space (0: the space is
	 * for page tables or buffers of vidmm), b: the process of that one, c: bytes needed, d:
	 * number of instances that the segment held before, the victim among them.
	 */
	VIDMM_EVENT_VICTIM = 30,
	VIDMM_EVENT_TYPE_COUNT = 31
};

enum vidmm_victim_reason {
	VIDMM_VICTIM_CAPACITY = 1, /* the segment had too few free bytes */
	VIDMM_VICTIM_FRAGMENTATION /* it had enough, but not in one range */
};

enum vidmm_process_reason { VIDMM_PROCESS_OPENED = 1, VIDMM_PROCESS_CLOSED };

/* The calls of clients. OTHER: a call that has no other value. */
enum vidmm_door {
	VIDMM_DOOR_ALLOCATE = 1,
	VIDMM_DOOR_DEALLOCATE,
	VIDMM_DOOR_LOCK,
	VIDMM_DOOR_UNLOCK,
	VIDMM_DOOR_RENDER,
	VIDMM_DOOR_CREATE_CONTEXT,
	VIDMM_DOOR_DESTROY_CONTEXT,
	VIDMM_DOOR_SET_PRIORITY,
	VIDMM_DOOR_QUERY_RESIDENCY,
	VIDMM_DOOR_OFFER,
	VIDMM_DOOR_RECLAIM,
	VIDMM_DOOR_OPEN_RESOURCE,
	VIDMM_DOOR_CREATE_DEVICE,
	VIDMM_DOOR_DESTROY_DEVICE,
	VIDMM_DOOR_OTHER,
	/* WDDM 2.0 and later */
	VIDMM_DOOR_CREATE_PAGING_QUEUE,
	VIDMM_DOOR_DESTROY_PAGING_QUEUE,
	VIDMM_DOOR_MAKE_RESIDENT,
	VIDMM_DOOR_EVICT,
	VIDMM_DOOR_WAIT_FROM_CPU,
	VIDMM_DOOR_LOCK2,
	VIDMM_DOOR_UNLOCK2,
	/* synchronization objects */
	VIDMM_DOOR_CREATE_SYNC,
	VIDMM_DOOR_DESTROY_SYNC,
	VIDMM_DOOR_SIGNAL_FROM_CPU,
	VIDMM_DOOR_SHARE_OBJECTS,
	VIDMM_DOOR_OPEN_SYNC,
	VIDMM_DOOR_PRESENT,
	VIDMM_DOOR_KEYED_MUTEX,
	VIDMM_DOOR_ESCAPE,
	VIDMM_DOOR_HW_QUEUE, /* creation and destruction of, submission to hardware queues */
	/* queued in a context */
	VIDMM_DOOR_WAIT_FROM_GPU,
	VIDMM_DOOR_SIGNAL_FROM_GPU,
	/* map, reserve, free and update GPU virtual addresses */
	VIDMM_DOOR_GPU_VIRTUAL_ADDRESS
};

/* The DDI functions of a miniport: VIDMM_DDI_ADD_DEVICE is DxgkDdiAddDevice, and so on. */
enum vidmm_ddi {
	VIDMM_DDI_ADD_DEVICE = 1,
	VIDMM_DDI_START_DEVICE,
	VIDMM_DDI_STOP_DEVICE,
	VIDMM_DDI_REMOVE_DEVICE,
	VIDMM_DDI_QUERY_ADAPTER_INFO,
	VIDMM_DDI_CREATE_DEVICE,
	VIDMM_DDI_DESTROY_DEVICE,
	VIDMM_DDI_CREATE_CONTEXT,
	VIDMM_DDI_DESTROY_CONTEXT,
	VIDMM_DDI_CREATE_ALLOCATION,
	VIDMM_DDI_DESTROY_ALLOCATION,
	VIDMM_DDI_OPEN_ALLOCATION,
	VIDMM_DDI_CLOSE_ALLOCATION,
	VIDMM_DDI_RENDER,
	VIDMM_DDI_PATCH,
	VIDMM_DDI_SUBMIT_COMMAND,
	VIDMM_DDI_BUILD_PAGING_BUFFER,
	VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE,
	VIDMM_DDI_RELEASE_SWIZZLING_RANGE,
	VIDMM_DDI_QUERY_CURRENT_FENCE,
	VIDMM_DDI_UNLOAD,
	VIDMM_DDI_PREEMPT_COMMAND,
	VIDMM_DDI_CANCEL_COMMAND,
	VIDMM_DDI_COLLECT_DBG_INFO,
	VIDMM_DDI_RESET_FROM_TIMEOUT,
	VIDMM_DDI_RESTART_FROM_TIMEOUT,
	VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP,
	VIDMM_DDI_QUERY_ENGINE_STATUS,
	VIDMM_DDI_RESET_ENGINE,
	VIDMM_DDI_SET_POWER_STATE,
	VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP,
	VIDMM_DDI_GET_STANDARD_ALLOCATION_DRIVER_DATA,
	VIDMM_DDI_DESCRIBE_ALLOCATION,
	VIDMM_DDI_LINK_DEVICE,
	VIDMM_DDI_SET_ALLOCATION_BACKING_STORE,
	VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY,
	VIDMM_DDI_MAP_CPU_HOST_APERTURE,
	VIDMM_DDI_UNMAP_CPU_HOST_APERTURE,
	VIDMM_DDI_PRESENT,
	VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS,
	VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY,
	VIDMM_DDI_CREATE_CPU_EVENT,
	VIDMM_DDI_DESTROY_CPU_EVENT,
	VIDMM_DDI_ESCAPE,
	VIDMM_DDI_GET_NODE_METADATA,
	VIDMM_DDI_CREATE_HW_CONTEXT,
	VIDMM_DDI_DESTROY_HW_CONTEXT,
	VIDMM_DDI_CREATE_HW_QUEUE,
	VIDMM_DDI_DESTROY_HW_QUEUE,
	VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE,
	VIDMM_DDI_SETUP_PRIORITY_BANDS,
	VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES,
	VIDMM_DDI_SUSPEND_CONTEXT,
	VIDMM_DDI_RESUME_CONTEXT,
	VIDMM_DDI_RESET_HW_ENGINE,
	VIDMM_DDI_RESUME_HW_ENGINE,
	VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION,
	VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION,
	VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL,
	VIDMM_DDI_CREATE_PROCESS,
	VIDMM_DDI_DESTROY_PROCESS,
	VIDMM_DDI_GET_ROOT_PAGE_TABLE_SIZE,
	VIDMM_DDI_SET_ROOT_PAGE_TABLE,
	VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL,
	VIDMM_DDI_VALIDATE_SUBMIT_COMMAND,
	VIDMM_DDI_CALIBRATE_GPU_CLOCK,
	VIDMM_DDI_PRESENT_TO_HW_QUEUE
};
#define VIDMM_DDI_LAST VIDMM_DDI_PRESENT_TO_HW_QUEUE

/* The callbacks of a miniport: VIDMM_CB_QUEUE_DPC is DxgkCbQueueDpc, and so on. */
enum vidmm_ddi_callback {
	VIDMM_CB_NOTIFY_INTERRUPT = 1,
	VIDMM_CB_QUEUE_DPC,
	VIDMM_CB_NOTIFY_DPC,
	VIDMM_CB_SYNCHRONIZE_EXECUTION,
	VIDMM_CB_GET_DEVICE_INFORMATION,
	VIDMM_CB_GET_HANDLE_DATA,
	VIDMM_CB_OTHER
};

/* The values of DXGK_BUILDPAGINGBUFFER_OPERATION. */
enum vidmm_paging_op {
	VIDMM_PAGING_TRANSFER = 0,
	VIDMM_PAGING_FILL = 1,
	VIDMM_PAGING_DISCARD_CONTENT = 2,
	VIDMM_PAGING_MAP_APERTURE = 5,
	VIDMM_PAGING_UNMAP_APERTURE = 6,
	VIDMM_PAGING_SPECIAL_LOCK_TRANSFER = 7,
	VIDMM_PAGING_VIRTUAL_TRANSFER = 8, /* 2.x with GPU virtual addresses; one for each chunk */
	VIDMM_PAGING_VIRTUAL_FILL = 9,     /* the same */
	VIDMM_PAGING_INIT_CONTEXT_RESOURCE = 10,
	VIDMM_PAGING_UPDATE_PAGE_TABLE = 11, /* 2.x; d: the first GPU virtual address */
	VIDMM_PAGING_FLUSH_TLB = 12,
	VIDMM_PAGING_UPDATE_CONTEXT_ALLOCATION = 13, /* 2.x; d: address in the paging process */
	VIDMM_PAGING_NOTIFY_RESIDENCY = 15,          /* 2.x */
	VIDMM_PAGING_NOTIFY_ALLOC = 22               /* 3.2 */
};

enum vidmm_residency_reason {
	VIDMM_RESIDENCY_REFERENCED = 1, /* a DMA buffer references it */
	VIDMM_RESIDENCY_PRESSURE,       /* evicted to free space in the segment */
	VIDMM_RESIDENCY_LOCK,           /* evicted for a lock */
	VIDMM_RESIDENCY_RENDER_LOCKED,  /* referenced while locked (LKR-01) */
	VIDMM_RESIDENCY_DESTROYED,
	VIDMM_RESIDENCY_DISCARDED, /* offered; its memory was needed */
	VIDMM_RESIDENCY_STOP,      /* the adapter stops */
	VIDMM_RESIDENCY_TRIM,      /* evicted: on no residency list any more, or misplaced */
	VIDMM_RESIDENCY_PINNED,    /* Overlay or Capture, placed at creation */
	VIDMM_RESIDENCY_RESET,     /* the adapter was reset (PAG-27) */
	VIDMM_RESIDENCY_POWER,     /* its segment loses its content in a low-power state */
	VIDMM_RESIDENCY_MOVED      /* compaction moved it inside its segment */
};

enum vidmm_wait_reason {
	VIDMM_WAIT_LOCK = 1,      /* a lock waits for the GPU */
	VIDMM_WAIT_SPACE,         /* no idle victim for an eviction */
	VIDMM_WAIT_PAGING_BUFFER, /* all paging buffers are in flight */
	VIDMM_WAIT_DMA_BUFFER,    /* all DMA buffers of the context are in flight */
	VIDMM_WAIT_DESTROY,
	VIDMM_WAIT_STOP,
	VIDMM_WAIT_POWER,    /* for a power transition of the adapter */
	VIDMM_WAIT_DECLINED, /* a lock with DonotWait was refused; no wait */
	VIDMM_WAIT_FENCE,    /* a thread waits for fence values; object: the first fence */
	VIDMM_WAIT_PRESENT,  /* too many presents are queued or flips pending (SUB-17) */
	VIDMM_WAIT_HEAP      /* for the moves that are under way (CCH-03) */
};

enum vidmm_recovery {
	/* a packet runs long; the miniport is asked for the current fence (SUB-14) */
	VIDMM_RECOVERY_OVERDUE = 1,
	VIDMM_RECOVERY_MISSED,      /* the answer showed that a completion interrupt was lost */
	VIDMM_RECOVERY_TIMEOUT,     /* the node has timed out (TDR-02) */
	VIDMM_RECOVERY_RESET,       /* DxgkDdiResetFromTimeout has returned */
	VIDMM_RECOVERY_RESTARTED,   /* the adapter runs again (TDR-05) */
	VIDMM_RECOVERY_DEVICE_LOST, /* object: the device; a: its execution state */
	VIDMM_RECOVERY_IGNORED,     /* TdrDebugMode 1 */
	VIDMM_RECOVERY_PREEMPT,     /* DxgkDdiPreemptCommand is called; c: its id (PRE-01) */
	VIDMM_RECOVERY_PREEMPTED,   /* it completed; d: packets returned to the queue (PRE-04) */
	/* a: 0x141, c: LastAbortedFenceId, d: later packets, returned to the queue (TDR-15) */
	VIDMM_RECOVERY_ENGINE_RESET,
	/* the process may create no more devices; a: 0x142 (TDR-20) */
	VIDMM_RECOVERY_DENIED
};

enum vidmm_range_reason {
	VIDMM_RANGE_ACQUIRED = 1,
	VIDMM_RANGE_RELEASED,
	VIDMM_RANGE_RECLAIMED, /* taken for another allocation because no range was free */
	VIDMM_RANGE_REFUSED,   /* the miniport refused the acquisition */
	/* a lock got no range; the locked content is in system memory, unswizzled; a: 0 */
	VIDMM_RANGE_FALLBACK
};

enum vidmm_display_reason {
	VIDMM_DISPLAY_VSYNC = 1, /* reported by CRTC_VSYNC */
	VIDMM_DISPLAY_IMMEDIATE, /* D3DDDI_FLIPINTERVAL_IMMEDIATE, without a vsync */
	VIDMM_DISPLAY_FIRST,     /* the source showed nothing before */
	VIDMM_DISPLAY_DARK       /* the source shows nothing; object, c: the primary before */
};

enum vidmm_sync_reason {
	VIDMM_SYNC_HELD = 1, /* by a wait: one event per object that is not signaled */
	VIDMM_SYNC_RELEASED, /* the wait is satisfied: one event, for its first object */
	/* context, device or adapter ended or is lost: one event, for the wait's first object */
	VIDMM_SYNC_GIVEN_UP,
	/* a signal is queued behind a wait, directly or not: one event per object */
	VIDMM_SYNC_QUEUED,
	/* the context (or all contexts of the signal) reached it: one event per object */
	VIDMM_SYNC_SIGNALED,
	VIDMM_SYNC_DROPPED /* the signal will never happen, as in GIVEN_UP */
};

enum vidmm_flush_reason {
	VIDMM_FLUSH_TO_GPU = 1, /* writes back CPU stores before the GPU reads them */
	VIDMM_FLUSH_TO_CPU,     /* invalidates CPU copies that are older than GPU writes */
	VIDMM_FLUSH_REQUESTED   /* the client asked for a range to be flushed (CCH-01) */
};

struct vidmm_event {
	uint64_t time_ns;
	uint64_t sequence; /* of the host: 1, 2, 3 ... */
	uint16_t type;     /* enum vidmm_event_type */
	uint16_t reason;   /* see the type */
	uint32_t process;  /* vidmm_process_id; 0: the system */
	uint32_t object;   /* a handle; 0: none */
	uint32_t reserved; /* 0 */
	uint64_t arg[4];   /* a, b, c, d of the type */
};

#ifdef __cplusplus
}
#endif
#endif
