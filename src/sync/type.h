/* SPDX-License-Identifier: MIT */
/*
 * type: what each type of synchronization object does with packets of a context's queue. A type is
 * one table (struct vmm_sync_class) in vmm_sync_classes, by the type's number. NULL: the type is
 * not implemented, and no object of it exists.
 *
 * A new type needs
 * - creation: opening.c makes the object, points it to its table (`type_class`), and initializes
 *   its lists `queue` and `held`;
 * - its table, in a separate file, and its row in type.c;
 * - its state as members of struct vmm_sync_object, guarded by the sync lock.
 *
 * Waits `by_value` are in object->heap, and satisfied when the fence reaches the value. They take
 * nothing. All other waits are in object->queue, oldest first. `take` is called for each object of
 * the packet in turn, under the sync lock. If one refuses, the earlier ones of the packet are put
 * back. So a packet takes everything or nothing (MTX-08). The objects of a packet are either all by
 * value or none (SYN-32).
 *
 * A thread that changes an object so that a wait may be satisfied calls vmm_sync_deliver(object)
 * afterwards, without the sync lock. That tries the waits in order, oldest first.
 */
#ifndef VMM_SYNC_TYPE_H
#define VMM_SYNC_TYPE_H

#include "sync/sync_private.h"

/* One use of an object by a call, for the checks at the call. */
struct vmm_sync_use {
	bool signal;
	enum vmm_sync_form form;
	uint32_t count, flags; /* of the call */
	uint64_t value;
	const char *what; /* "wait" or "signal", for findings */
};

struct vmm_sync_class {
	bool by_value;
	/*
	 * Checks the use. A refusal is a finding and its status: VMM_INVALID_PARAMETER or
	 * VMM_ACCESS_DENIED. The caller holds the process lock and has checked NoSignal, NoWait and
	 * the adapter.
	 */
	vmm_status (*check)(const struct vmm_sync *sync, const struct vmm_sync_use *use);
	/*
	 * Take the object for the packet's owner (vmm_sync_owner_of), and undo that. Caller holds
	 * the sync lock.
	 */
	bool (*take)(struct vmm_sync_node *node);
	void (*put_back)(struct vmm_sync_node *node);
	/* Executes a signal that was reached. No sync lock held. flags: VMM_SYNC_ALLOW_REWIND. */
	void (*signal)(struct vmm_sync_node *node, const struct vmm_sync_queuer *by,
		       uint32_t flags);
	/*
	 * Frees an object whose owner ends, and removes it from owner->held. Caller holds the sync
	 * lock, and delivers afterwards.
	 */
	void (*owner_ends)(struct vmm_sync_object *object);
};
extern const struct vmm_sync_class *const vmm_sync_classes[VMM_SYNC_TYPE_LIMIT];
extern const struct vmm_sync_class vmm_sync_monitored_fence, vmm_sync_fence,
	vmm_sync_notification;                                         /* type.c */
extern const struct vmm_sync_class vmm_sync_mutex, vmm_sync_semaphore; /* units.c */

/* The owner of the packet whose wait the node belongs to. */
static inline struct vmm_sync_owner *vmm_sync_owner_of(const struct vmm_sync_node *node)
{
	return vmm_container_of(node->wait, struct vmm_sync_packet, wait)->owner;
}

#endif
