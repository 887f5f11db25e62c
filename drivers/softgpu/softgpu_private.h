/* SPDX-License-Identifier: MIT */
/*
 * The objects of softgpu. An adapter has two engines, each with a queue and a thread. Devices and
 * contexts only carry what the port passes back. An allocation is a size and a layout.
 *
 * Locks: each engine has a spin lock for its state; packets are passed to it through a ring without
 * a lock. While the adapter runs, threads share nothing else but memory, whose meaning changes only
 * while the bus is held (bus.h).
 */
#ifndef SOFTGPU_PRIVATE_H
#define SOFTGPU_PRIVATE_H

/*
 * Compiled for 2.7. A smaller version may be registered; its structures are prefixes of these. An
 * adapter of WDDM 1.x must not access the members that came later.
 */
#define SOFTGPU_INTERFACE_VERSION_LAST 0xC004
#ifndef DXGKDDI_INTERFACE_VERSION
#define DXGKDDI_INTERFACE_VERSION SOFTGPU_INTERFACE_VERSION_LAST
#endif
#define SOFTGPU_INTERFACE_VERSION_WDDM1 0x4002 /* 1.3 */
#define SOFTGPU_INTERFACE_VERSION_WDDM2 0xB004 /* 2.6 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ntddk.h>

#include <d3dkmddi.h>
#include <dispmprt.h>

#include "bus.h"
#include "display.h"
#include "memory.h"
#include "mmu.h"
#include "softgpu_hw.h"
#include "window.h"

#define SOFTGPU_POOL_TAG  0x75677073u /* 'spgu' */
#define SOFTGPU_BANKS_MAX 127u        /* as many as HintedBank can name */
#define SOFTGPU_LINKS     2u          /* number of adapters in a link */

struct softgpu_settings {
	uint64_t aperture_bytes;
	uint64_t engine_bytes_per_us, host_link_bytes_per_us, host_link_latency_ns;
	uint32_t host_link_passes, move_content;
	uint32_t aperture_coherent, vram_cpu_visible, vram_banks;
	uint32_t swizzling_ranges;
	uint32_t dma_buffer_bytes, dma_buffer_segment_set;
	uint32_t allocation_list_size, patch_location_list_size;
	uint32_t paging_buffer_bytes, paging_buffer_segment, paging_node;
	uint32_t prepatch, per_engine_tdr, preemption_aware;
	uint32_t source_count, refresh_hz, flip_mmio;
	uint32_t linked_adapters;
	uint32_t interface_version;
	uint32_t model;
	uint32_t page_table_levels, vram_page_bytes; /* wddm2 */
	uint32_t hardware_queues;                    /* wddm2: enum softgpu_hardware_queues */
};

static inline int softgpu_is_wddm2(const struct softgpu_settings *settings)
{
	return settings->model == SOFTGPU_MODEL_WDDM2;
}

struct softgpu_packet {
	/* commands at a kernel address; or at a GPU virtual address, if there is a space */
	const char *commands;
	const struct softgpu_space *space;
	uint64_t address;
	uint32_t length; /* bytes */
	uint32_t fence;
	uint32_t is_paging;     /* 1: privileged commands are legal */
	uint32_t source;        /* source of a flip */
	uint32_t is_preemption; /* 1: no commands; answers the preemption request `fence` */
	/*
	 * The hardware queue that the commands are from; NULL: a DMA buffer. `address` and `length`
	 * then advance with execution.
	 */
	struct softgpu_hw_queue *hw;
	uint64_t report; /* the address that the last executed REPORT named; 0: none */
	uint64_t progress_address, progress_id;
};

struct softgpu_adapter;
struct softgpu_context;

/* As many as MaxInFlightHwQueueBuffers announces. A power of two. */
#define SOFTGPU_HW_QUEUE_DEPTH 32u

struct softgpu_hw_command {
	uint64_t address; /* of the commands that are left, at a GPU virtual address */
	uint32_t length;  /* bytes */
	uint64_t report;  /* of the commands that were executed before a suspension */
	/* GPU virtual address of the progress fence, and its value at the end; 0: not stored */
	uint64_t progress_address, progress_id;
};

/* A hardware queue. Guarded by the lock of its context's engine. */
struct softgpu_hw_queue {
	struct softgpu_context *context;
	struct softgpu_hw_queue *next; /* in engine->hw_queues */
	struct softgpu_hw_command ring[SOFTGPU_HW_QUEUE_DEPTH];
	uint32_t head, count;
	int is_blocked;   /* its first command waits for a value */
	int is_ending;    /* its command must leave the engine, for good */
	uint64_t turn;    /* when the engine took it last */
	uint64_t poll_ns; /* the interval after which a blocked command looks again */
};

struct softgpu_engine {
	/* constant after start */
	struct softgpu_adapter *adapter;
	uint32_t node;
	/* ring of mask + 1 elements, at least twice the number of packets that may be queued */
	struct softgpu_packet *queue;
	uint32_t mask, capacity;
	PVOID thread;
	/* Wakes the engine's thread from any wait; the thread then checks its state. Auto-reset. */
	KEVENT kick;
	/* Set when the thread has dropped everything for a reset. Auto-reset. */
	KEVENT reset_done;

	/*
	 * State of the ring: numbers of packets, modulo 2^32. Single words that any thread may
	 * read. Only the submitting thread writes `tail`; SubmitCommand and PreemptCommand are of
	 * the scheduler class, so there is one at a time. Only the engine's thread writes `head`.
	 * Packets before `dropped` are not executed; `dropped` is written under the lock.
	 */
	char padding_before_tail[64];
	uint32_t tail, submitted_fence;
	char padding_before_head[64];
	uint32_t head, dropped;
	uint32_t is_asleep;  /* the thread waits for work: a submission must kick */
	uint32_t is_halted;  /* between a reset and its restart: submissions are refused */
	uint32_t is_removed; /* the device is gone: packets are accepted and lost */

	/* Guarded by lock. */
	KSPIN_LOCK lock;
	uint32_t completed_fence;
	uint32_t lost_fence;    /* complete, but its interrupt was lost (LOSE_INTERRUPT); 0: none */
	uint32_t running_fence; /* of the packet being executed, if is_running */
	uint32_t aborted_fence; /* of the packet that a reset dropped, if did_abort */
	int is_running, did_abort;
	int is_hung; /* executing HANG */
	int is_stopping, is_resetting;
	/* hw_queue.c, hw_engine.c */
	struct softgpu_hw_queue *hw_queues;
	struct softgpu_hw_queue *hw_running; /* whose command is being executed */
	uint64_t hw_turn;
	int hw_goes_first; /* the last packet was a DMA buffer */
	int is_hw_stopped; /* from a fault or a reset to DxgkDdiResumeHwEngine */
	int is_hw_leaving; /* hw_running is lost: hw_left is set when it has left the engine */
	/* Auto-reset. */
	KEVENT hw_left;

	/* used by the engine's thread only */
	uint64_t busy_until_ns;
	uint32_t interrupts; /* number of interrupts that the end of the running packet raises */
	uint32_t hw_polls;   /* of the running packet */
	struct softgpu_mmu mmu;
};

struct softgpu_range {
	HANDLE allocation; /* NULL: free */
	uint32_t private_data;
	int is_tiled;
	uint64_t first; /* of a tiled surface in video memory, which has a window */
};

struct softgpu_adapter {
	/* link.c: constant once all adapters of the link have been added */
	struct _DRIVER_OBJECT *driver;
	struct softgpu_adapter *next_known;
	/* the lead first; without a link the adapter itself */
	struct softgpu_adapter *link[SOFTGPU_LINKS];
	uint32_t link_count, link_index;

	/* constant after StartDevice */
	DXGKRNL_INTERFACE dxgk;
	DXGK_START_INFO start_info;
	struct softgpu_settings settings;
	PHYSICAL_ADDRESS vram_address; /* BAR 0 */
	SIZE_T bank_ends[SOFTGPU_BANKS_MAX];
	struct softgpu_memory memory;
	struct softgpu_engine engines[SOFTGPU_NODES];

	/*
	 * The dummy page of UNMAP that the port named last. Used by BuildPagingBuffer only; its
	 * calls are serialized.
	 */
	PHYSICAL_ADDRESS dummy_address;
	PVOID dummy;
	PMDL dummy_mdl; /* for its mapping: BuildPagingBuffer allocates nothing (PAG-09) */

	/* Calls of Acquire and Release are serialized (SWZ-28). */
	struct softgpu_range *ranges;
	/* large enough for the widest surface that has had a window; NULL: no surface has */
	char *scratch;
	uint64_t scratch_bytes;
	struct softgpu_bus bus; /* the lead's bus is used by the whole link */

	struct softgpu_display display;
	int takes_hw_queues; /* constant after StartDevice */

	KSPIN_LOCK report_lock; /* held to append to a REPORT, by any engine */
};

struct softgpu_device {
	struct softgpu_adapter *adapter;
	DXGK_DEVICEINFO info;
};

enum softgpu_damage { SOFTGPU_UNHARMED, SOFTGPU_GUILTY, SOFTGPU_COLLATERAL };

struct softgpu_context {
	struct softgpu_adapter *adapter;
	uint32_t node;
	struct softgpu_space space; /* of a context with GPU virtual addresses */

	/* A hardware context; guarded by the engine's lock. */
	HANDLE port;                    /* the port's handle */
	uint32_t band;                  /* of SetContextSchedulingProperties */
	int32_t in_process_priority;    /* of SetContextSchedulingProperties */
	int is_suspending;              /* leaves the engine; then suspend_fence is reported */
	int is_suspended;               /* is not executed */
	int is_lost;                    /* is never executed again */
	enum softgpu_damage invalidate; /* what ResetHwEngine has to report */
	uint64_t suspend_fence;
};

/* A process with an address space. Its page tables belong to the memory manager. */
struct softgpu_process {
	struct softgpu_adapter *adapter;
};

struct softgpu_driver_allocation {
	uint64_t size_bytes; /* whole pages */
	enum softgpu_tile_mode tile_mode;
	uint32_t stride_bytes;
	struct softgpu_picture picture;
	int is_on_each; /* 1: on each adapter of the link, at the same address */
};

/* One allocation as opened by one device. Render uses the first member most. */
struct softgpu_open_allocation {
	uint64_t size_bytes;
	uint64_t base; /* added to its addresses: 0, or the base of the lead's memory */
	const struct softgpu_driver_allocation *allocation;
};

/* settings.c */
NTSTATUS softgpu_settings_read(PUNICODE_STRING registry_path, struct softgpu_settings *settings);
NTSTATUS softgpu_settings_check(const struct softgpu_settings *settings);
/* Is InterfaceVersion one that the model has, and not newer than the structures of this driver? */
int softgpu_settings_version_is_valid(const struct softgpu_settings *settings);

/* link.c */
void softgpu_link_add(struct softgpu_adapter *adapter, PDEVICE_OBJECT device);
void softgpu_link_remove(struct softgpu_adapter *adapter);
DXGKDDI_LINK_DEVICE softgpu_link_device;
static inline struct softgpu_bus *softgpu_bus_of(struct softgpu_adapter *adapter)
{
	return &adapter->link[0]->bus;
}
/* Returns the engine of a NodeOrdinal and EngineOrdinal; NULL: none. */
struct softgpu_engine *softgpu_engine_of(struct softgpu_adapter *adapter, uint32_t node,
					 uint32_t engine);

/* engine.c: the queue, its thread, time and interrupts */
NTSTATUS softgpu_engine_start(struct softgpu_engine *engine, struct softgpu_adapter *adapter,
			      uint32_t node);
void softgpu_engine_stop(struct softgpu_engine *engine);
/* number of packets neither executed nor dropped */
uint32_t softgpu_engine_queued(const struct softgpu_engine *engine);
NTSTATUS softgpu_engine_submit(struct softgpu_engine *engine, const struct softgpu_packet *packet);
/*
 * Drops the queue and the running packet. Returns when the thread accesses no memory any more. At
 * PASSIVE.
 */
void softgpu_engine_reset(struct softgpu_engine *engine);
#define SOFTGPU_CLOCK_HZ 1000000000ull /* the clock of the engines */
/* The engines' clock at the instant of a reading of the performance counter. */
uint64_t softgpu_clock(LARGE_INTEGER counter, LARGE_INTEGER frequency);
uint64_t softgpu_now_ns(void);
/*
 * STALL: waits, outside the bus. Caller is inside the bus. Returns 0 if a reset or stop came: drop
 * the packet.
 */
int softgpu_engine_stall(struct softgpu_engine *engine, uint64_t nanoseconds);
/*
 * The same for a long command: lets the time pass that was charged. Returns 0 also if a reset or
 * stop comes while no time has to pass.
 */
int softgpu_engine_breathe(struct softgpu_engine *engine);
/* The same, but does nothing, and returns 1, if no time has to pass. For SIGNAL. */
int softgpu_engine_catch_up(struct softgpu_engine *engine);
/* HANG: returns 0, and only when a reset or stop comes. */
int softgpu_engine_hang(struct softgpu_engine *engine);
/*
 * WAIT: waits until the value may have changed; *interval_ns is 0 in the first call. Returns 0 as
 * above, or because another packet can be executed instead of this one, which is from a hardware
 * queue. The second function wakes the engines that wait; called after a SIGNAL.
 */
int softgpu_engine_poll(struct softgpu_engine *engine, uint64_t *interval_ns);
void softgpu_engine_signalled(struct softgpu_engine *engine);

/*
 * timing.c: the time of an engine that copied or filled bytes take, a paging operation besides, and
 * a TRAFFIC whose operand is at `host`.
 */
void softgpu_charge_bytes(struct softgpu_engine *engine, uint64_t bytes, int in_video_memory);
void softgpu_charge_operation(struct softgpu_engine *engine);
void softgpu_charge_traffic(struct softgpu_engine *engine, const struct softgpu_traffic *command,
			    const char *host);

/*
 * hw_engine.c: which command of a hardware queue is next, and its end. The caller of the first
 * three holds the engine's lock.
 */
int softgpu_hw_take(struct softgpu_engine *engine, int can_be_blocked,
		    struct softgpu_packet *packet);
int softgpu_hw_must_leave(const struct softgpu_engine *engine);
void softgpu_hw_lose_all(struct softgpu_engine *engine);
void softgpu_hw_run(struct softgpu_engine *engine, struct softgpu_packet *packet);
/* Should the running command, which waits for a value, let others be executed? */
int softgpu_hw_yields(struct softgpu_engine *engine);
/* Takes a lost context's command off the engine. On return the engine does not use it. */
void softgpu_hw_await_left(struct softgpu_engine *engine);
/* engine.c: lets the time pass that was charged; at the end of a packet. */
int softgpu_engine_finish_time(struct softgpu_engine *engine);
void softgpu_engine_kick(struct softgpu_engine *engine);

/* interrupt.c */
void softgpu_raise_hw_page_faulted(struct softgpu_engine *engine,
				   const struct softgpu_packet *packet,
				   const struct softgpu_fault *fault);
void softgpu_raise_suspended(struct softgpu_engine *engine, struct softgpu_context *context,
			     uint64_t fence);
void softgpu_raise_completed(struct softgpu_engine *engine, uint32_t fence);
void softgpu_raise_faulted(struct softgpu_engine *engine, uint32_t fence, NTSTATUS status);
void softgpu_raise_page_faulted(struct softgpu_engine *engine, uint32_t fence,
				const struct softgpu_fault *fault);
void softgpu_raise_fence_signaled(struct softgpu_engine *engine);
void softgpu_raise_preempted(struct softgpu_engine *engine, uint32_t preemption_fence,
			     uint32_t last_completed);

/* execute.c, execute_virtual.c, execute_paging.c, stamp.c: called on the engine's thread */
#define SOFTGPU_ABORTED    STATUS_CANCELLED
/* A command of a virtual context is wrong, or its access failed; engine->mmu.fault says which. */
#define SOFTGPU_PAGE_FAULT STATUS_ACCESS_VIOLATION
NTSTATUS softgpu_execute_virtual_paging(struct softgpu_engine *engine,
					const struct softgpu_paging_virtual *paging);
/* Of a hardware queue: `address` and `length` of the packet become those of what is left. */
NTSTATUS softgpu_execute_virtual(struct softgpu_engine *engine, struct softgpu_packet *packet);
NTSTATUS softgpu_execute(struct softgpu_engine *engine, const struct softgpu_packet *packet);
NTSTATUS softgpu_execute_paging(struct softgpu_engine *engine,
				const struct softgpu_command *command);
NTSTATUS softgpu_execute_stamps(struct softgpu_engine *engine,
				const struct softgpu_hw_stamps *stamps, uint32_t fence);
/* The stamp of a block, all zero for version 0. */
struct softgpu_stamp softgpu_make_stamp(uint32_t buffer, uint32_t version, uint32_t block);
/* The record of a report about a block in which `found` was read. */
struct softgpu_report_record softgpu_make_record(const struct softgpu_stamps *stamps,
						 uint32_t block, const struct softgpu_stamp *found,
						 uint32_t fence);

/* blit.c */
NTSTATUS softgpu_execute_blit(struct softgpu_engine *engine, const struct softgpu_hw_blit *blit);

/* page_table.c: paging operations of address spaces */
NTSTATUS softgpu_build_table(struct softgpu_adapter *adapter, DXGKARG_BUILDPAGINGBUFFER *build);
NTSTATUS softgpu_build_flush(struct softgpu_adapter *adapter, DXGKARG_BUILDPAGINGBUFFER *build);
NTSTATUS softgpu_build_virtual(const struct softgpu_adapter *adapter,
			       DXGKARG_BUILDPAGINGBUFFER *build);
/* paging.c: appends a command to the paging buffer. */
NTSTATUS softgpu_paging_append(DXGKARG_BUILDPAGINGBUFFER *build, const void *command,
			       uint32_t size);

/* query_wddm2.c */
NTSTATUS softgpu_query_wddm2(const struct softgpu_adapter *adapter,
			     const DXGKARG_QUERYADAPTERINFO *query);
DXGK_WDDMVERSION softgpu_wddm_version(uint32_t interface_version);
/* query.c: the descriptor of segment `index` + 1 */
#define SOFTGPU_SEGMENTS_MAX 2u
UINT softgpu_segment_count(const struct softgpu_adapter *adapter);
void softgpu_describe_segments(const struct softgpu_adapter *adapter,
			       DXGK_SEGMENTDESCRIPTOR3 *segments);

/* The DDI. driver.c */
DXGKDDI_ADD_DEVICE softgpu_add_device;
DXGKDDI_REMOVE_DEVICE softgpu_remove_device;
DXGKDDI_UNLOAD softgpu_unload;
/* adapter.c */
DXGKDDI_START_DEVICE softgpu_start_device;
DXGKDDI_STOP_DEVICE softgpu_stop_device;
DXGKDDI_SET_POWER_STATE softgpu_set_power_state;
DXGKDDI_NOTIFY_SURPRISE_REMOVAL softgpu_notify_surprise_removal;
/* interrupt.c */
DXGKDDI_INTERRUPT_ROUTINE softgpu_interrupt_routine;
DXGKDDI_DPC_ROUTINE softgpu_dpc_routine;
/* query.c */
DXGKDDI_QUERYADAPTERINFO softgpu_query_adapter_info;
DXGKDDI_GETNODEMETADATA softgpu_get_node_metadata;
DXGKDDI_ESCAPE softgpu_escape;
DXGKDDI_CALIBRATEGPUCLOCK softgpu_calibrate_gpu_clock;
/* device.c */
DXGKDDI_CREATEDEVICE softgpu_create_device;
DXGKDDI_DESTROYDEVICE softgpu_destroy_device;
/* The sizes that every context asks for. */
void softgpu_fill_context_info(const struct softgpu_settings *settings, DXGK_CONTEXTINFO *info);
DXGKDDI_CREATECONTEXT softgpu_create_context;
DXGKDDI_DESTROYCONTEXT softgpu_destroy_context;
/* address_space.c */
DXGKDDI_CREATEPROCESS softgpu_create_process;
DXGKDDI_DESTROYPROCESS softgpu_destroy_process;
DXGKDDI_GETROOTPAGETABLESIZE softgpu_get_root_page_table_size;
DXGKDDI_SETROOTPAGETABLE softgpu_set_root_page_table;
DXGKDDI_SUBMITCOMMANDVIRTUAL softgpu_submit_command_virtual;
/* hw_queue.c */
DXGKDDI_CREATECONTEXT softgpu_create_hw_context;
DXGKDDI_DESTROYCONTEXT softgpu_destroy_hw_context;
DXGKDDI_CREATEHWQUEUE softgpu_create_hw_queue;
DXGKDDI_DESTROYHWQUEUE softgpu_destroy_hw_queue;
DXGKDDI_SUBMITCOMMANDTOHWQUEUE softgpu_submit_command_to_hw_queue;
DXGKDDI_SETUPPRIORITYBANDS softgpu_setup_priority_bands;
DXGKDDI_SETCONTEXTSCHEDULINGPROPERTIES softgpu_set_context_scheduling_properties;
DXGKDDI_SUSPENDCONTEXT softgpu_suspend_context;
DXGKDDI_RESUMECONTEXT softgpu_resume_context;
DXGKDDI_RESETHWENGINE softgpu_reset_hw_engine;
DXGKDDI_RESUMEHWENGINE softgpu_resume_hw_engine;
/* allocation.c */
DXGKDDI_CREATEALLOCATION softgpu_create_allocation;
DXGKDDI_DESTROYALLOCATION softgpu_destroy_allocation;
DXGKDDI_DESCRIBEALLOCATION softgpu_describe_allocation;
DXGKDDI_GETSTANDARDALLOCATIONDRIVERDATA softgpu_get_standard_allocation_driver_data;
DXGKDDI_OPENALLOCATIONINFO softgpu_open_allocation_info;
DXGKDDI_CLOSEALLOCATION softgpu_close_allocation;
/* swizzle.c */
DXGKDDI_ACQUIRESWIZZLINGRANGE softgpu_acquire_swizzling_range;
DXGKDDI_RELEASESWIZZLINGRANGE softgpu_release_swizzling_range;
/* render.c, patch.c, paging.c */
DXGKDDI_RENDER softgpu_render;
DXGKDDI_PATCH softgpu_patch;
DXGKDDI_BUILDPAGINGBUFFER softgpu_build_paging_buffer;
/* submit.c */
DXGKDDI_SUBMITCOMMAND softgpu_submit_command;
DXGKDDI_PREEMPTCOMMAND softgpu_preempt_command;
DXGKDDI_QUERYCURRENTFENCE softgpu_query_current_fence;
/* present.c, display.c */
DXGKDDI_PRESENT softgpu_present;
DXGKDDI_PRESENTTOHWQUEUE softgpu_present_to_hw_queue;
DXGKDDI_SETVIDPNSOURCEADDRESS softgpu_set_vidpn_source_address;
DXGKDDI_SETVIDPNSOURCEVISIBILITY softgpu_set_vidpn_source_visibility;
/* reset.c */
DXGKDDI_RESETFROMTIMEOUT softgpu_reset_from_timeout;
DXGKDDI_RESTARTFROMTIMEOUT softgpu_restart_from_timeout;
DXGKDDI_RESETENGINE softgpu_reset_engine;
DXGKDDI_QUERYENGINESTATUS softgpu_query_engine_status;
DXGKDDI_QUERYDEPENDENTENGINEGROUP softgpu_query_dependent_engine_group;
DXGKDDI_COLLECTDBGINFO softgpu_collect_dbg_info;

#endif
