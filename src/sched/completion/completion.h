/* SPDX-License-Identifier: MIT */
/*
 * One packet: its memory, its patching, its steps and its completion.
 * A tier of sched (README.md): its files, and those of higher tiers, include this header.
 */
#ifndef VMM_SCHED_COMPLETION_H
#define VMM_SCHED_COMPLETION_H

#include "sched/data/data.h"

/* ---- retire.c ---- */
uint32_t vmm_fence_next(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class);
/* The packet is complete. State lock. */
void vmm_packet_retired_locked(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class);
/* Retires that fence and every packet before it. Returns the number of packets. State lock. */
uint32_t vmm_queue_retire_locked(struct vmm_sched *sched, struct vmm_node *node, uint32_t fence)
	VMM_REQUIRES(vmm_state_lock_class);
/* Returns the packet with that id that the miniport has; NULL: it has none. State lock. */
struct vmm_packet *vmm_on_hardware(const struct vmm_node *node, uint32_t fence);
/* SUB-12: the miniport reported an id that the hardware does not have. State lock. */
void vmm_queue_refuse_report(struct vmm_sched *sched, uint32_t index, uint32_t fence);

/* ---- steps.c ---- */
void vmm_steps_init(struct vmm_context *context);
/*
 * Holds a DMA buffer that was queued, and has its number, behind the waits of the context. Returns
 * false if there are none. State lock.
 */
bool vmm_steps_hold_locked(struct vmm_context *context, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_state_lock_class);
/*
 * Does every step that has become possible: after completions, submissions, cancellations, a lost
 * device, or satisfied waits. Returns true if buffers were released to the prepare queue. The
 * caller holds no lock but the paging lock.
 */
bool vmm_steps_advance(struct vmm_sched *sched);
/* The same where the caller may not prepare packets: wakes the worker if buffers were released. */
void vmm_steps_poll(struct vmm_sched *sched);
/*
 * Queues a wait or a signal in its contexts. Sets *released if buffers joined the prepare queue:
 * the caller then prepares packets. No lock held.
 */
NTSTATUS vmm_steps_queue(struct vmm_context *context, const struct vmm_sched_sync *sync,
			 bool *released) VMM_MUST_CHECK;
/* Gives up unsatisfied waits: the context ends or its calls must return. No lock held. */
void vmm_steps_give_up(struct vmm_context *context);
void vmm_steps_destroy(struct vmm_sched *sched);

/* ---- patch.c ---- */
/* Returns DxgkDdiPatch arguments that equal the submission (PAT-15); the lists are empty. */
DXGKARG_PATCH vmm_patch_of(const DXGKARG_SUBMITCOMMAND *submit, void *dma_buffer);
/*
 * Makes one submission of the portion: sets its fence id and the arguments of Submit, and has it
 * patched. `needed`: the paging packet that must complete before it. Paging lock.
 */
NTSTATUS vmm_portion_launch(struct vmm_sched *sched, struct vmm_dma *dma, uint64_t needed)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Gives a ready packet a new id and patches it again (PAT-14). Returns false if its device is lost:
 * then the packet is about to be canceled (TDR-12). Paging lock, PASSIVE_LEVEL.
 */
bool vmm_packet_renew(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- split.c; paging lock ---- */
/*
 * Return the first, and one after the last, of the patch locations that share the SplitOffset of
 * `patch`.
 */
uint32_t vmm_split_group(const struct vmm_dma *dma, uint32_t patch)
	VMM_REQUIRES(vmm_paging_lock_class);
uint32_t vmm_split_group_end(const struct vmm_dma *dma, uint32_t patch)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Ends the portion before `patch`, the first patch location of its group. patch_count: the portion
 * is the whole rest.
 */
void vmm_split_end_at(struct vmm_dma *dma, uint32_t patch) VMM_REQUIRES(vmm_paging_lock_class);
/* The portion has been patched: appends it to its ready queue and begins the next one. */
void vmm_split_send(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Prepares for the next portion. Returns VMM_PENDING while the one before is not complete. */
vmm_status vmm_split_resume(struct vmm_sched *sched, struct vmm_dma *dma) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/* SPL-05: returns true if the resource table holds the instance at the split point. */
static inline bool vmm_split_is_bound(const struct vmm_dma *dma,
				      const struct vmm_instance *instance)
{
	return dma->split && atomic_load_explicit(&instance->active[dma->packet.timeline],
						  memory_order_relaxed) == dma->packet.sequence;
}

/* ---- gather.c; paging lock ---- */
/*
 * Makes the working set of the portion resident, as of sched->preparations, and pins the buffer.
 * Ends the portion earlier if its working set does not fit. Returns VMM_PENDING if the GPU must
 * complete work first.
 */
vmm_status vmm_gather(struct vmm_sched *sched, struct vmm_dma *dma) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns true if every listed allocation was resident at its placement when the list was captured
 * and no placement has changed since. Nothing is then to be made resident, and the addresses in the
 * list are valid.
 */
static inline bool vmm_gather_is_needless(const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	return vmm_likely(dma->in_place &&
			  dma->placements == dma->context->device->adapter->placements &&
			  !dma->split);
}
/* vmm_working_set.gather of WDDM 1.x: what the portion's patch list references. */
vmm_status vmm_gather_references(struct vmm_sched *sched, struct vmm_dma *dma) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- address.c: updates of GPU virtual addresses (VA-10) ---- */
void vmm_address_work(struct vmm_adapter *adapter);
/* Drops the device's queued updates. No thread is inside the device. */
void vmm_address_end_device(struct vmm_device *device);

#endif
