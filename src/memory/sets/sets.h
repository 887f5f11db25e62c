/* SPDX-License-Identifier: MIT */
/*
 * Tier 7, sets: what must be resident together (WDDM 2.x). Residency lists, budgets, trim
 * notifications, paging queues.
 */
#ifndef VMM_MEMORY_SETS_H
#define VMM_MEMORY_SETS_H

#include "memory/state/types.h"

/* ---- residency_list.c: residency lists (RES-01) ---- */
/* Returns a new, unique number for a round of placements, to be used as `preparation`. */
uint64_t vmm_residency_list_round(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Is the instance left out although it is on a list? True if a CPU lock holds it out (LOCK-48), if
 * it is offered, or if its content is lost.
 */
bool vmm_residency_list_stays_out(struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Would vmm_residency_list_place have nothing to do but record a use? The answer may be no for such
 * an instance.
 */
bool vmm_residency_list_is_settled(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Makes the instance resident in a segment of its set. Returns VMM_PENDING if a CPU lock holds it
 * out (LOCK-48) or the GPU uses what would have to be evicted; VMM_NO_VIDEO_MEMORY if it does not
 * fit.
 */
vmm_status vmm_residency_list_place(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The same for MakeResident. Moves content from system memory into the preferred memory segment if
 * that has or gets space, as for a new allocation.
 */
vmm_status vmm_residency_list_make(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint64_t round) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * After VMM_NO_VIDEO_MEMORY for a part of the list of the device: places all of it in the rounds
 * that may move it. Returns as vmm_residency_gather. (SPL-13)
 */
vmm_status vmm_residency_list_place_anew(struct vmm_device *device)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * After VMM_NO_VIDEO_MEMORY from `place(context)`, which places a part of the list of the device:
 * the list is placed anew, and then once more without the DMA buffers that are in an aperture and
 * that no packet needs now. *awaits_buffers: there are others, and the call returns VMM_PENDING.
 * The caller tries again when no mapped buffer is pinned any more. (Q-495, SPL-13)
 */
vmm_status vmm_residency_list_make_room(struct vmm_device *device, bool *awaits_buffers,
					vmm_status (*place)(void *context), void *context)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * For an instance that was evicted for a CPU lock and stays on its list: maps it into an aperture
 * segment. If that fails, it is placed before the next packet runs.
 */
void vmm_residency_list_into_aperture(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Marks the device's whole list as wanted by that preparation: none of it is evicted for another
 * part of it.
 */
void vmm_residency_list_want(struct vmm_device *device, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Makes the given allocations resident; they are on the list and not held out. Returns true if all
 * of them are resident now and their paging is complete.
 */
bool vmm_residency_list_bring_in(struct vmm_device *device, struct vmm_ref *const *refs,
				 uint32_t count) VMM_REQUIRES(vmm_paging_lock_class);
/* Adds a listed allocation to the device's sums and the process's budget, or subtracts it. */
void vmm_residency_list_account(struct vmm_ref *ref, bool add) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Raises the ref's residency count; the first time puts it on the device's list. VMM_NO_MEMORY:
 * nothing changed.
 */
vmm_status vmm_residency_list_add(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/* Lowers the ref's residency count; at 0 takes it off the device's list. */
void vmm_residency_list_remove(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Sets instance->held if the CPU has the instance locked and its set names no aperture segment.
 * (LOCK-48)
 */
void vmm_residency_list_hold_out(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Empties the list of a lost device. Its content stays resident until other allocations need the
 * memory.
 */
void vmm_residency_list_lose(struct vmm_device *device) VMM_REQUIRES(vmm_paging_lock_class);
/* The ref ends: removes it from the list and from the pending evictions. */
void vmm_residency_list_forget(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The ref is about to be freed, or no queued packet needs the allocation any more that has left the
 * list. Does nothing for another one. (RES-07)
 */
void vmm_residency_list_left(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/* Frees the device's sums. All its refs are gone. */
void vmm_residency_list_device_end(struct vmm_device *device) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns by how many bytes the list with `added` exceeds what the segments can hold together; 0:
 * it fits.
 */
uint64_t vmm_residency_list_excess(struct vmm_device *device, struct vmm_ref *const *added,
				   uint32_t count) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Queues the eviction of an allocation that has left the list. It is evicted when the GPU work that
 * the device has queued so far is complete. (RES-07)
 */
void vmm_residency_list_depart(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/* Performs the queued evictions that are due. */
void vmm_residency_list_departures(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- budget.c ---- */
/*
 * Returns the budget account of the device's process on this adapter, created on first use. NULL:
 * no memory.
 */
struct vmm_budget *vmm_budget_of(struct vmm_device *device) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Charges a ref to its process's account when it comes onto the list (`listed`), or releases the
 * charge.
 */
void vmm_budget_charge(struct vmm_ref *ref, bool listed) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns by how many bytes the process's usage with `added` would exceed its budget; 0: it fits.
 */
uint64_t vmm_budget_excess(struct vmm_device *device, struct vmm_ref *const *added, uint32_t count)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_budgets_finish(struct vmm_memory *memory);

/* ---- trim.c ---- */
/*
 * Bracket every change that may lower a budget: the second one queues TrimToBudget notifications.
 * (RES-09)
 */
void vmm_trims_before_budget(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_trims_after_budget(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/* Ends the registrations of a device that ends. No lock is held. */
void vmm_trims_end(struct vmm_device *device);
void vmm_trims_finish(struct vmm_memory *memory);

/* ---- paging_queue.c ---- */
struct vmm_paging_queue;
struct vmm_paging_operation;

/* Returns the device's queue with that handle, or NULL. The caller holds the process lock. */
struct vmm_paging_queue *vmm_paging_queue_find_locked(struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class);
/*
 * Queues an operation: it is complete when all the refs are placed and their paging is complete.
 * *value gets the value that the queue's fence then has. VMM_NO_MEMORY: nothing was queued.
 */
vmm_status vmm_paging_queue_add(struct vmm_paging_queue *queue, struct vmm_ref *const *refs,
				uint32_t count, uint64_t *value)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The same in two steps: only the first, which returns NULL without memory, can fail. */
struct vmm_paging_operation *vmm_paging_operation_create(uint32_t count);
uint64_t vmm_paging_operation_add(struct vmm_paging_queue *queue,
				  struct vmm_paging_operation *operation,
				  struct vmm_ref *const *refs, uint32_t count)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Takes an operation without refs: the queue's spare one, or a new one. NULL: no memory. It is
 * added, or given back.
 */
struct vmm_paging_operation *vmm_paging_operation_take(struct vmm_paging_queue *queue)
	VMM_REQUIRES(vmm_paging_lock_class);
void vmm_paging_operation_give_back(struct vmm_paging_queue *queue,
				    struct vmm_paging_operation *operation)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Frees an operation that was not added. */
void vmm_paging_operation_free(struct vmm_paging_operation *operation);
/*
 * Queues an operation whose paging is submitted already: complete with paging packet `sequence`.
 * Returns its value.
 */
uint64_t vmm_paging_operation_add_paged(struct vmm_paging_queue *queue,
					struct vmm_paging_operation *operation, uint64_t sequence)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Removes the retired refs of the device from its operations. A call that retires refs calls it
 * once, after the last, in the same hold of the paging lock: one pass for each ref would be
 * quadratic.
 */
void vmm_paging_queues_forget_retired(struct vmm_device *device)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * A lost device: drops all operations and sets each fence to its last value, UINT64_MAX. (TDRS-01,
 * TDRS-14)
 */
void vmm_paging_queues_lose(struct vmm_device *device) VMM_REQUIRES(vmm_paging_lock_class);
/* Destroys all paging queues of a device that ends. */
void vmm_paging_queues_end(struct vmm_device *device) VMM_REQUIRES(vmm_paging_lock_class);

#endif
