/* SPDX-License-Identifier: MIT */
/*
 * The event stream's schema. Stable: types and arguments are only ever added. Handles are D3DKMT handles
 * (0: none); sizes are bytes, times ns of the world's clock (virtual on the simulator).
 */
#ifndef VIDMM_EVENTS_H
#define VIDMM_EVENTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vidmm_event_type {
	VIDMM_EVENT_NONE = 0,
	/* A door call ended. object: allocation/context/device; reason: enum vidmm_door; a: NTSTATUS (as u32),
	 * b: elements handled, c: ns spent (virtual on sim; on threads
	 * measured only where somebody subscribed to this event, else 0), d: flags of the call. */
	VIDMM_EVENT_DOOR = 1,
	/* A DxgkDdi call returned. object: adapter-wide 0 or allocation; reason: enum vidmm_ddi; a: NTSTATUS, b, c, d: of
	 * the call (sizes, fence). */
	VIDMM_EVENT_DDI = 2,
	/* A DxgkCb callback was made by the miniport. reason: enum vidmm_ddi_callback; a: status. */
	VIDMM_EVENT_CALLBACK = 3,
	/* Objects. a: size in bytes (allocation), b: segments supported (write set), c: flags value. */
	VIDMM_EVENT_CREATE = 4,
	VIDMM_EVENT_DESTROY =
		5, /* destroyed by the client; DxgkDdiDestroyAllocation may come later */
	/* A paging operation was built. object: allocation; reason: enum vidmm_paging_op; a: bytes, b: source segment,
	 * c: destination segment, d: GPU address. */
	VIDMM_EVENT_PAGING = 6,
	/* An allocation changed its place. reason: enum vidmm_residency_reason; a: bytes, b: old segment, c: new segment
	 * (0: system memory), d: segment offset. */
	VIDMM_EVENT_RESIDENCY = 7,
	/* A call had to wait for the GPU, or would have had to. process: the caller's, 0: one of vidmm's own threads; reason:
	 * enum vidmm_wait_reason; a: ns waited, b: node (that of paging comes behind the miniport's), c: number of the submission
	 * on it (VIDMM_EVENT_SUBMIT's), 0: whatever came first. */
	VIDMM_EVENT_WAIT = 8,
	/* A render submission was accepted. object: context; reason: node; a: references, b: patch locations, c: bytes of
	 * commands, d: its number on the node's timeline. */
	VIDMM_EVENT_SUBMIT = 9,
	/* A DMA buffer portion was handed to the miniport. object: context (0: paging); reason: 0 render, 1 paging; a: fence
	 * id, b: node, c: start offset, d: end offset. */
	VIDMM_EVENT_QUEUE = 10,
	/* A fence was reported complete and retired in the DPC. a: fence id, b: node, c: packets retired. */
	VIDMM_EVENT_FENCE = 11,
	VIDMM_EVENT_LOCK =
		12, /* object: handle returned; a: flags, b: ns waited, c: bytes locked, d: old handle */
	VIDMM_EVENT_UNLOCK = 13, /* object: handle */
	/* object: new handle; a: old handle, b: instances alive, c: bytes, d: 1 when the GPU had not finished with what was current,
	 * so that a lock without Discard would have waited; reason: 0 new, 1 reused. */
	VIDMM_EVENT_RENAME = 14,
	VIDMM_EVENT_OFFER = 15,   /* object; a: bytes, b: priority */
	VIDMM_EVENT_RECLAIM = 16, /* object; a: bytes, b: 1 when discarded */
	VIDMM_EVENT_DISCARD = 17, /* offered content dropped under pressure; object; a: bytes */
	VIDMM_EVENT_SPLIT =
		18, /* a DMA buffer was split; object: context; a: split offset, b: patch index */
	VIDMM_EVENT_FINDING = 19, /* a contract was broken; text: "RULE-nn: ..." */
	VIDMM_EVENT_REASON =
		20, /* something failed without anyone's fault; a: NTSTATUS; text says why */
	VIDMM_EVENT_FATAL = 21, /* what would be a bug check; a: code, b..d: parameters */
	/* The CPU's caches were flushed for a Cached allocation. object: allocation; reason: enum vidmm_flush_reason; a: bytes,
	 * b: segment of the allocation (0: system memory). */
	VIDMM_EVENT_FLUSH = 22,
	/* A GPU did not answer in time, and what was done about it. reason: enum vidmm_recovery; a: code (0x117 adapter), b: node,
	 * c: fence, d: ns that the packet had the node for (OVERDUE, MISSED, TIMEOUT). process, object: whose packet (0: paging). */
	VIDMM_EVENT_RECOVERY = 23,
	/* A swizzling range changed hands, or could not be had. object: allocation; reason: enum vidmm_range_reason; a: RangeId,
	 * b: VIDMM_RANGE_RECLAIMED: the allocation that gets it, VIDMM_RANGE_REFUSED: status. */
	VIDMM_EVENT_RANGE = 24,
	/* A source shows another primary. object: its handle; reason: enum vidmm_display_reason; a: VidPnSourceId, b: segment,
	 * c: GPU address, d: how many have been shown there before. */
	VIDMM_EVENT_DISPLAY = 25,
	/* A context's queue is held by a wait that is not satisfied at once, or a signal stands behind what holds it; and how that
	 * ended (not of hardware queues). process, object: whose context; reason: enum vidmm_sync_reason; a: number of the
	 * synchronization object, the same in all processes, b: value waited for or to be signalled (0: it has units, not values),
	 * c: its value now, or units that are free, d: handle by which the call named it. With real threads these are not even
	 * counted while nobody subscribes to them; who does later hears of what comes then. */
	VIDMM_EVENT_SYNC = 26,
	VIDMM_EVENT_TYPE_COUNT = 27
};

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
	/* from WDDM 2.0 on */
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
	VIDMM_DOOR_HW_QUEUE, /* hardware contexts and queues: made, ended, submitted to */
	/* in the queue of a context */
	VIDMM_DOOR_WAIT_FROM_GPU,
	VIDMM_DOOR_SIGNAL_FROM_GPU,
	/* GPU virtual addresses: mapped, reserved, freed, updated */
	VIDMM_DOOR_GPU_VIRTUAL_ADDRESS
};

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
	VIDMM_DDI_VALIDATE_SUBMIT_COMMAND
};
#define VIDMM_DDI_LAST VIDMM_DDI_VALIDATE_SUBMIT_COMMAND

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
	VIDMM_PAGING_INIT_CONTEXT_RESOURCE = 10,
	VIDMM_PAGING_UPDATE_PAGE_TABLE = 11, /* 2.x; offset: the first GPU virtual address */
	VIDMM_PAGING_FLUSH_TLB = 12,
	VIDMM_PAGING_NOTIFY_RESIDENCY = 15, /* 2.x */
	VIDMM_PAGING_NOTIFY_ALLOC = 22      /* 3.2 */
};

enum vidmm_residency_reason {
	VIDMM_RESIDENCY_REFERENCED = 1, /* a DMA buffer needs it */
	VIDMM_RESIDENCY_PRESSURE,       /* evicted to make room */
	VIDMM_RESIDENCY_LOCK,           /* evicted because the CPU wants it */
	VIDMM_RESIDENCY_RENDER_LOCKED,  /* LKR-01: referenced while locked */
	VIDMM_RESIDENCY_DESTROYED,
	VIDMM_RESIDENCY_DISCARDED, /* offered, memory taken */
	VIDMM_RESIDENCY_STOP,      /* adapter stops */
	VIDMM_RESIDENCY_TRIM,
	VIDMM_RESIDENCY_PINNED, /* Overlay or Capture, placed when created */
	VIDMM_RESIDENCY_RESET,  /* the adapter was reset (PAG-27) */
	VIDMM_RESIDENCY_POWER,  /* its segment is about to lose power */
	VIDMM_RESIDENCY_MOVED /* inside its segment, so that something else finds room in one piece */
};

enum vidmm_wait_reason {
	VIDMM_WAIT_LOCK = 1,      /* a lock waits for the GPU */
	VIDMM_WAIT_SPACE,         /* nothing idle to evict */
	VIDMM_WAIT_PAGING_BUFFER, /* all paging buffers in flight */
	VIDMM_WAIT_DMA_BUFFER,    /* the context's pool is in flight */
	VIDMM_WAIT_DESTROY,
	VIDMM_WAIT_STOP,
	VIDMM_WAIT_POWER,    /* for the adapter to leave or to enter a state of low power */
	VIDMM_WAIT_DECLINED, /* nobody waited: a lock with DonotWait was turned away */
	VIDMM_WAIT_FENCE,    /* a thread for the values of fences; object: the first of them */
	VIDMM_WAIT_PRESENT   /* too many presents are queued, or flips pending (SUB-17) */
};

enum vidmm_recovery {
	VIDMM_RECOVERY_OVERDUE =
		1, /* a packet runs for long: the miniport is asked for its fence (SUB-14) */
	VIDMM_RECOVERY_MISSED,      /* that showed a completion whose interrupt was lost */
	VIDMM_RECOVERY_TIMEOUT,     /* the node has timed out (TDR-02) */
	VIDMM_RECOVERY_RESET,       /* DxgkDdiResetFromTimeout has returned */
	VIDMM_RECOVERY_RESTARTED,   /* the adapter goes on (TDR-05) */
	VIDMM_RECOVERY_DEVICE_LOST, /* object: the device; a: its execution state */
	VIDMM_RECOVERY_IGNORED,     /* TdrDebugMode 1 */
	VIDMM_RECOVERY_PREEMPT,     /* DxgkDdiPreemptCommand is called, c: with that id (PRE-01) */
	VIDMM_RECOVERY_PREEMPTED,   /* it was answered; d: packets that are taken back (PRE-04) */
	VIDMM_RECOVERY_ENGINE_RESET, /* a: 0x141, c: LastAbortedFenceId; d: packets behind it, taken back (TDR-15) */
	VIDMM_RECOVERY_DENIED /* a: 0x142, process: it gets no device any more (TDR-20) */
};

enum vidmm_range_reason {
	VIDMM_RANGE_ACQUIRED = 1,
	VIDMM_RANGE_RELEASED,
	VIDMM_RANGE_RECLAIMED, /* another allocation wants one and there was none left */
	VIDMM_RANGE_REFUSED,
	VIDMM_RANGE_FALLBACK /* a lock does without: what it asked for goes to system memory, unswizzled; a: 0 */
};

enum vidmm_display_reason {
	VIDMM_DISPLAY_VSYNC = 1, /* CRTC_VSYNC reported it */
	VIDMM_DISPLAY_IMMEDIATE, /* D3DDDI_FLIPINTERVAL_IMMEDIATE: without waiting for one */
	VIDMM_DISPLAY_FIRST,     /* the source was dark */
	VIDMM_DISPLAY_DARK       /* it is now; object and address are those of what it showed */
};

enum vidmm_sync_reason {
	VIDMM_SYNC_HELD = 1, /* by a wait: one event for each object that is not there */
	VIDMM_SYNC_RELEASED, /* the wait is satisfied: one event, of its first object */
	VIDMM_SYNC_GIVEN_UP, /* the context, its device or adapter ends or is lost: likewise */
	VIDMM_SYNC_QUEUED, /* a signal behind a wait, or behind buffers behind one: one event for each object */
	VIDMM_SYNC_SIGNALED, /* the context has reached it (of several contexts: all must); likewise */
	VIDMM_SYNC_DROPPED /* it never will: as GIVEN_UP */
};

enum vidmm_flush_reason {
	VIDMM_FLUSH_TO_GPU = 1, /* what the CPU wrote, before the GPU reads it */
	VIDMM_FLUSH_TO_CPU      /* what the CPU has of the time before the GPU wrote */
};

struct vidmm_event {
	uint64_t time_ns;
	uint64_t sequence; /* 1, 2, 3 ... */
	uint16_t type;     /* enum vidmm_event_type */
	uint16_t reason;   /* per type */
	uint32_t process;  /* 1, 2, 3 ... in order of opening; 0: the system */
	uint32_t object;   /* a handle, 0: none */
	uint32_t reserved; /* 0 */
	uint64_t arg[4];   /* per type */
};

#ifdef __cplusplus
}
#endif
#endif
