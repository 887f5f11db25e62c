/* SPDX-License-Identifier: MIT */
/*
 * What the types of synchronization objects do with packets of a context's queue. A type is one table, in vmm_sync_classes by its
 * number; NULL: the type is not built, and there are no objects of it.
 *
 * A new type has
 *   - creation: object.c makes the object; vmm_list_init(&object->queue) and (&object->held), whoever makes it;
 *   - its table, in a file of its own, and its row in type.c;
 *   - its state as members of struct vmm_sync_object, guarded by the sync lock.
 *
 * Waits `by_value` are in object->heap and satisfied when the value is reached: nothing is taken. All others stand in
 * object->queue, oldest first: `take` is asked for each object of the packet in turn, and what earlier ones of the same packet gave
 * is put back when a later one refuses, all under the sync lock, so that a packet takes everything or nothing (MTX-08). A
 * packet's objects are all by value or all not (SYN-32).
 *
 * Whoever changes an object so that a wait may be satisfied calls vmm_sync_deliver(object) afterwards, with no sync lock
 * held: it asks the waits in order, oldest first.
 */
#ifndef VMM_SYNC_TYPE_H
#define VMM_SYNC_TYPE_H

#include "sync/sync_private.h"

/* A use of an object by a call, for the checks at the call. */
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
	 * May the opening be used so? Otherwise a finding and its status: VMM_INVALID_PARAMETER, VMM_ACCESS_DENIED. Process lock
	 * held. NoSignal, NoWait and the adapter have been looked at.
	 */
	vmm_status (*check)(const struct vmm_sync *sync, const struct vmm_sync_use *use);
	/* Sync lock held. node->wait->owner is who takes it: vmm_sync_owner_of(node). */
	bool (*take)(struct vmm_sync_node *node);
	void (*put_back)(struct vmm_sync_node *node);
	/* The signal is reached. No sync lock held. flags: VMM_SYNC_ALLOW_REWIND. */
	void (*signal)(struct vmm_sync_node *node, const struct vmm_sync_queuer *by,
		       uint32_t flags);
	/* The owner ends: takes the object out of owner->held and frees it. Sync lock held; delivered afterwards. */
	void (*owner_ends)(struct vmm_sync_object *object);
};
extern const struct vmm_sync_class *const vmm_sync_classes[VMM_SYNC_TYPE_LIMIT];
extern const struct vmm_sync_class vmm_sync_monitored_fence, vmm_sync_fence,
	vmm_sync_notification;                                         /* type.c */
extern const struct vmm_sync_class vmm_sync_mutex, vmm_sync_semaphore; /* units.c */

/* Of a node of a packet's wait. */
static inline struct vmm_sync_owner *vmm_sync_owner_of(const struct vmm_sync_node *node)
{
	return vmm_container_of(node->wait, struct vmm_sync_packet, wait)->owner;
}
static inline const struct vmm_sync_class *vmm_sync_class_of(const struct vmm_sync_object *object)
{
	return vmm_sync_classes[object->type];
}

#endif
