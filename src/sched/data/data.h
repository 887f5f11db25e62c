/* SPDX-License-Identifier: MIT */
/*
 * Ready queues, DMA buffers and their copies, flips, context allocations.
 * A tier of sched (README.md): its files, and those of higher tiers, include this header.
 */
#ifndef VMM_SCHED_DATA_H
#define VMM_SCHED_DATA_H

#include "sched/data/kinds.h"
#include "sched/data/working_set.h"
#include "sched/state/state.h"

extern const struct vmm_sync_driver vmm_sched_sync_driver; /* sync_driver.c */

/* ---- order.c ---- */
void vmm_turn_init(struct vmm_context *context);
/*
 * Returns the number of the newest packet of the node that the buffer must not overtake; 0: none,
 * or the GPU has no outstanding work of other contexts there. Submit lock.
 */
uint64_t vmm_order_after(struct vmm_sched *sched, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class);
/* Notes that the buffer was queued under that number. Submit lock. */
void vmm_order_queued(struct vmm_sched *sched, const struct vmm_dma *dma, uint64_t sequence)
	VMM_REQUIRES(vmm_state_lock_class);
/* Append a packet to its ready queue; put it back at the head; remove it. State lock. */
void vmm_order_ready_locked(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_order_requeue_locked(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_order_take_locked(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Returns the packet that the node runs next, of those that may run; NULL: none. State lock.
 *
 *   *urgent  set if what the node runs now is to be preempted for the packet (SCH-05)
 *   *stale   set to a render packet that was overtaken: the returned one, or the one behind the
 *            returned paging packet. Ids rise on a node (SUB-01), so it needs a new id and must be
 *            patched again (PAT-14).
 */
struct vmm_packet *vmm_order_next_locked(struct vmm_sched *sched, struct vmm_node *node,
					 bool *urgent, struct vmm_packet **stale)
	VMM_REQUIRES(vmm_state_lock_class);
/* Charges `ns` of node time to the context of the packet. State lock. */
void vmm_order_charge_locked(struct vmm_sched *sched, const struct vmm_packet *packet, uint64_t ns)
	VMM_REQUIRES(vmm_state_lock_class);
static inline struct vmm_packet *vmm_order_first(const struct vmm_context *context)
{
	return vmm_container_of(context->turn.ready.next, struct vmm_packet, link);
}

/* Appends a prepared packet to its ready queue, and counts it. Paging lock. */
void vmm_queue_ready(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Returns whether the entry may be written, by the client's list: a miniport may have changed the
 * list that it was given (DMA-22).
 */
static inline bool vmm_dma_writes(const struct vmm_dma *dma, uint32_t entry)
{
	vmm_assert_debug(entry < dma->list_count);
	return dma->uses[entry] & VMM_USES_WRITE;
}
/* ---- which buffer a packet, a copy belongs to ---- */
static inline struct vmm_dma *vmm_dma_of(struct vmm_packet *packet)
{
	return packet->portion ? vmm_container_of(packet, struct vmm_dma, part)
			       : vmm_container_of(packet, struct vmm_dma, packet);
}
static inline struct vmm_dma *vmm_copy_of(struct vmm_list *link)
{
	return vmm_container_of(link, struct vmm_dma, copy);
}
/* Returns the buffer whose memory a buffer or copy uses. */
static inline struct vmm_dma *vmm_dma_buffer(struct vmm_dma *dma)
{
	return vmm_unlikely(dma->owner != NULL) ? dma->owner : dma;
}

/* ---- dma.c: the memory of DMA buffers ---- */
void vmm_dma_init_links(struct vmm_dma *dma);
/* Creates a buffer for the pool of the context. NULL: no memory, or over the process's limit. */
struct vmm_dma *vmm_dma_create(struct vmm_context *context) VMM_MUST_CHECK;
/*
 * While pinned, the buffer's aperture mapping does not change. A thread that unmaps holds the
 * paging lock, and the state lock while it marks one buffer as VMM_DMA_UNMAPPING. vmm_dma_pin swaps
 * VMM_DMA_MOVABLE for VMM_DMA_PINNED and takes the state lock only to wait for such a thread. A
 * thread that holds the paging lock pins by a store. vmm_dma_unpin needs no lock.
 */
void vmm_dma_pin(struct vmm_dma *dma);
void vmm_dma_pin_locked(struct vmm_dma *dma) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_dma_unpin(struct vmm_dma *dma);
/*
 * Maps a pinned buffer into an aperture. Returns VMM_PENDING if no mapping is possible while the
 * GPU uses the aperture (DMA-05). Paging lock.
 */
vmm_status vmm_dma_map(struct vmm_dma *dma) VMM_MUST_CHECK VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Unmaps all buffers that are not pinned; their next use maps them again. Returns true if one was
 * mapped. *left: a pinned buffer stays mapped. Paging lock.
 */
bool vmm_dma_unmap_unpinned(struct vmm_adapter *adapter, bool *left)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Unmaps all buffers after the adapter's reset. Paging lock. */
void vmm_dma_unmap_all(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class);
/* Returns true if another mapped buffer is pinned, and so can be unmapped later. Paging lock. */
bool vmm_dma_another_is_pinned(struct vmm_adapter *adapter, const struct vmm_dma *wanting)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Is a mapped buffer pinned for a submission up to that one? A buffer that is being filled counts
 * for its last submission. Takes the state lock.
 */
bool vmm_dma_pinned_at(struct vmm_adapter *adapter, uint64_t submission)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_dma_destroy_all(struct vmm_context *context);

/* ---- dma_memory.c: memory at GPU virtual addresses ---- */
/*
 * PRS-09: creates memory of a buffer of presents and maps it in the address space of the device's
 * process, if it has none. `object`: the handle of the context or hardware queue, for messages.
 * VMM_PENDING: the caller must retry after progress of the GPU. VMM_NO_MEMORY. The caller holds no
 * lock but the submit lock.
 */
vmm_status vmm_dma_memory_add(struct vmm_device *device, uint32_t object, uint32_t size_bytes,
			      struct vmm_dma_memory *memory) VMM_MUST_CHECK;
/* On return no GPU accesses it. The second also frees it, and refunds the process. */
void vmm_dma_memory_unmap(struct vmm_device *device, struct vmm_dma_memory *memory);
void vmm_dma_memory_destroy(struct vmm_device *device, struct vmm_dma_memory *memory);

/* ---- copies.c ---- */
/*
 * The contexts, of the owner's device, that run a buffer besides its owner. None of them ends
 * during the call.
 */
struct vmm_broadcast {
	uint32_t count;
	struct vmm_context *context[VMM_BROADCAST_MAX];
};
/*
 * Attaches one copy for each context of `b` to a buffer that is about to be queued.
 * STATUS_NO_MEMORY: the caller gives the buffer back.
 */
NTSTATUS vmm_broadcast_add_copies(const struct vmm_broadcast *b,
				  struct vmm_dma *dma) VMM_MUST_CHECK;
/*
 * Returns true, with a reason reported, if one of the contexts has a wait in its queue. The submit
 * lock keeps buffers from being queued behind a wait until the caller has refused.
 */
bool vmm_broadcast_is_held(const struct vmm_context *owner, const struct vmm_broadcast *b) VMM_COLD
	VMM_REQUIRES(vmm_submit_lock_class);
/* Returns the copies of a buffer that was not queued. State lock. */
void vmm_broadcast_release_locked(struct vmm_dma *dma) VMM_REQUIRES(vmm_state_lock_class);
/* The buffer is being queued: its copies share its memory and lists. State lock. */
void vmm_broadcast_share_locked(struct vmm_dma *dma) VMM_REQUIRES(vmm_state_lock_class);
/* Copies the buffer's current portion and placement to its copies. Paging lock. */
void vmm_broadcast_copy_portion(struct vmm_dma *dma) VMM_COLD VMM_REQUIRES(vmm_paging_lock_class);
/* Appends the prepared copies to their ready queues. State lock. */
void vmm_broadcast_ready_locked(struct vmm_sched *sched, struct vmm_dma *dma) VMM_COLD
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * SPL-16, if verification is enabled: checks that all contexts run the same content. Paging lock.
 */
void vmm_broadcast_verify(struct vmm_sched *sched, struct vmm_dma *dma,
			  const DXGKARG_SUBMITCOMMAND *submit) VMM_COLD
	VMM_REQUIRES(vmm_paging_lock_class);
/* The context ends: frees its copies, which no packet uses. No lock held. */
void vmm_broadcast_free_copies(struct vmm_context *context);

/* ---- context_memory.c: context allocations (PRE-11, SUB-20) ---- */
/*
 * A call of DxgkDdiCreateDevice or DxgkDdiCreateContext in progress on a thread. Within it the
 * miniport may create context allocations. context NULL: the device is being created.
 */
struct vmm_ddi_creation {
	struct vmm_list link;
	struct vmm_device *device;
	const struct vmm_context *context;
	const struct vmm_os_thread *thread;
};
void vmm_ddi_creation_begin(struct vmm_ddi_creation *creation, struct vmm_device *device,
			    const struct vmm_context *context);
void vmm_ddi_creation_end(struct vmm_ddi_creation *creation);
NTSTATUS vmm_context_memory_create(struct vmm_sched *sched,
				   DXGKARGCB_CREATECONTEXTALLOCATION *args);
NTSTATUS vmm_context_memory_destroy(struct vmm_sched *sched, HANDLE allocation);
/* VA-20: sets *address on success. */
NTSTATUS vmm_context_memory_map(struct vmm_sched *sched, const DXGKARGCB_MAPCONTEXTALLOCATION *args,
				D3DGPU_VIRTUAL_ADDRESS *address);
/* VA-21 */
NTSTATUS vmm_context_memory_update(struct vmm_sched *sched,
				   const DXGKARGCB_UPDATECONTEXTALLOCATION *args);
/*
 * Makes the context allocations of the context that runs the buffer, and of the contexts of its
 * copies, resident as of that preparation. Paging lock.
 */
vmm_status vmm_context_memory_gather(struct vmm_dma *dma, uint64_t preparation) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
bool vmm_context_memory_is_in_place(const struct vmm_dma *dma) VMM_REQUIRES(vmm_paging_lock_class);
static inline bool vmm_context_memory_is_none(const struct vmm_dma *dma)
{
	return vmm_likely(vmm_list_empty(&dma->context->device->context_allocations) &&
			  !dma->users);
}

/* ---- client_buffers.c: command buffer and lists of an out-of-process client ---- */
/* Sets context->mapped; maps the buffers into an out-of-process client. */
vmm_status vmm_context_map_buffers(struct vmm_context *context) VMM_MUST_CHECK;
void vmm_context_unmap_buffers(struct vmm_context *context);
/*
 * Copies what the request names from the client's buffers. The request's sizes have been checked.
 * Submit lock.
 */
void vmm_context_copy_buffers_slow(struct vmm_context *context,
				   const struct vmm_render_request *request)
	VMM_REQUIRES(vmm_submit_lock_class);
static inline void vmm_context_copy_buffers(struct vmm_context *context,
					    const struct vmm_render_request *request)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&context->device->adapter->submit_lock);
	if (vmm_unlikely(context->client_buffers != NULL))
		vmm_context_copy_buffers_slow(context, request);
}

/* ---- flip.c ---- */
vmm_status vmm_display_create(struct vmm_adapter *adapter) VMM_MUST_CHECK;
void vmm_display_destroy(struct vmm_sched *sched);
/*
 * Returns true if a completion may have made a flip ready to be shown. The caller has found
 * sched->display.
 */
bool vmm_display_waits(const struct vmm_sched *sched);
/*
 * Reserves a flip of the source for the device. Returns NULL if none is free or the device has
 * reached its limit. State lock.
 */
struct vmm_flip *vmm_flip_reserve_locked(struct vmm_device *device, uint32_t source_id)
	VMM_REQUIRES(vmm_state_lock_class);
void vmm_flip_cancel(struct vmm_adapter *adapter, struct vmm_flip *flip);
/* Fills in the primary to be shown, and which packets must be complete before. Submit lock. */
void vmm_flip_queued(const struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class);
/* The packet of the flip is complete. State lock. */
void vmm_flip_due_locked(struct vmm_sched *sched, struct vmm_flip *flip)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Called by a thread that waits for a flip: counts flips as shown whose vsync is overdue. Returns
 * the time of the next deadline in ns; VMM_OS_FOREVER: none.
 */
uint64_t vmm_flip_overdue(struct vmm_adapter *adapter);
/* DIRQL: records a vsync. */
void vmm_display_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/* DISPATCH: applies recorded vsyncs. Returns true if a flip was completed. State lock. */
bool vmm_display_reported_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class);
/*
 * The adapter was reset or lost its power: makes all sources dark and drops the flips that are due.
 * Paging lock.
 */
void vmm_display_forget_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- periodic.c ---- */
vmm_status vmm_periodic_create(struct vmm_sched *sched) VMM_MUST_CHECK;
/* Stops periodic signals. The worker has ended; the miniport still exists. */
void vmm_periodic_stop(struct vmm_sched *sched);
uint32_t vmm_periodic_target_count(const struct vmm_adapter *adapter);
vmm_status vmm_periodic_begin(struct vmm_adapter *adapter, uint32_t target, uint64_t time_100ns,
			      struct vmm_sync_periodic_source **result) VMM_MUST_CHECK;
/* DIRQL: records an interrupt of an existing target. */
void vmm_periodic_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data);
/*
 * DISPATCH: signals the fences of what was recorded. The caller holds no lock but the paging lock,
 * and has found sched->periodic.
 */
void vmm_periodic_dispatch(struct vmm_sched *sched);
/* Called by the worker. No lock held. */
void vmm_periodic_work(struct vmm_adapter *adapter);

/* ---- translate.c ---- */
/*
 * SUB-25: lets the miniport check the private data. `object`: the handle of the context or hardware
 * queue. STATUS_INVALID_USER_BUFFER: the miniport refuses it. The caller holds no lock but the
 * paging lock.
 */
NTSTATUS vmm_command_validate(const struct vmm_device *device, uint32_t object,
			      DXGKARG_VALIDATESUBMITCOMMAND *args) VMM_MUST_CHECK;

#endif
