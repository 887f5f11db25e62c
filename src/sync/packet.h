/* SPDX-License-Identifier: MIT */
/*
 * packet: waits and signals as packets of a context's queue (SYN-25, SYN-26). sched keeps them in
 * order and calls these functions:
 *
 * - vmm_sync_packet_fill, at the call: looks up the objects, takes references, checks and copies
 *   everything;
 * - vmm_sync_packet_begin, when a wait is reached: it is satisfied, or `on_end` is called later,
 *   from any thread;
 * - vmm_sync_packet_signal, when a signal is reached;
 * - vmm_sync_packet_clear: drops references and event; the memory can be used again.
 *
 * type.h has what each type of object does with a packet.
 */
#ifndef VMM_SYNC_PACKET_H
#define VMM_SYNC_PACKET_H

#include "sync/sync.h"

/* One object and value of a wait or a packet. */
struct vmm_sync_node {
	struct vmm_sync_object *object; /* the wait holds a reference */
	struct vmm_sync_wait *wait;
	uint64_t value;
	uint32_t handle;                             /* packets: the handle in the call */
	struct vmm_sync_node *left, *right, *parent; /* by value: links in object->heap */
	uint32_t rank;                               /* 0: not in the heap */
	struct vmm_list link;                        /* not by value: in object->queue */
};

/*
 * A wait. Guarded by the sync lock until it is done; the nodes and `missing` of a sleeper's until
 * that has withdrawn it.
 */
struct vmm_sync_wait {
	struct vmm_world *world;
	struct vmm_sync_node *nodes;
	uint32_t count, missing; /* missing: nodes in heaps */
	bool any, done;
	bool queued; /* not by value: the nodes are in the queues of their objects */
	bool of_cpu; /* a wait of the CPU: the end of a fence ends it (SFL-27) */
	vmm_status status;
	/*
	 * How the end is announced: to a sleeping thread, or by a call of `on_end`. That is called
	 * without the sync lock; other locks may be held.
	 */
	struct vmm_sleeper *sleeper;
	void (*on_end)(struct vmm_sync_wait *wait);
	/*
	 * Counts the threads between the end of the wait and the return of `on_end`; may be NULL.
	 */
	_Atomic uint32_t *running_callbacks;
	/* with `on_end`: in a list of its owner, or in the completion list of a batch */
	struct vmm_list link;
	int event;
	struct vmm_account *account; /* charged for the event; NULL: not limited */
	struct vmm_account *payer;   /* charged for the memory of the wait; NULL: not limited */
	uint64_t charged_bytes;
};

/*
 * wait.c: charges `bytes` that the wait or packet occupies to its process. VMM_NO_MEMORY,
 * with a reason: over the limit. The wait keeps a reference to the account until vmm_sync_refund,
 * which may be called twice.
 */
vmm_status vmm_sync_charge(const struct vmm_process *process, struct vmm_sync_wait *wait,
			   const char *what, uint64_t bytes) VMM_MUST_CHECK;
void vmm_sync_refund(struct vmm_sync_wait *wait);

/*
 * wait.c: duplicates an event of the client for a wait or packet, and charges it to the process.
 * VMM_NO_MEMORY: over the limit of events.
 */
vmm_status vmm_sync_keep_event(const struct vmm_device *device, uint64_t event,
			       struct vmm_sync_wait *wait) VMM_MUST_CHECK;
void vmm_sync_drop_event(const struct vmm_sync_wait *wait);

/* A context, as the owner of mutexes. */
struct vmm_sync_owner {
	/* Constant, like `number`, which is unique in the world and never reused. */
	struct vmm_device *device;
	uint64_t number;
	/*
	 * Guarded by the sync lock. held: its objects, by vmm_sync_object.held. link: in
	 * device->sync_owners once it has held an object.
	 */
	struct vmm_list held, link;
};
static inline void vmm_sync_owner_init(struct vmm_sync_owner *owner, struct vmm_device *device)
{
	owner->device = device;
	owner->number = atomic_fetch_add(&device->process->world->sync_owner_numbers, 1) + 1;
	vmm_list_init(&owner->held);
	vmm_list_init(&owner->link);
}
/* Frees the mutexes of an owner that ends (MTX-06). No sync lock held. */
void vmm_sync_owner_end(struct vmm_world *world, struct vmm_sync_owner *owner);

/*
 * The context that queued a packet; with a broadcast, the first. It may have ended when the packet
 * is reached.
 */
struct vmm_sync_queuer {
	uint64_t owner; /* number of the owner; 0: a hardware queue */
	uint32_t process, device;
};

#define VMM_SYNC_PACKET_NODES 4u  /* nodes inside the packet */
#define VMM_SYNC_PACKET_SPARE 64u /* nodes that a cleared packet may keep allocated */
struct vmm_sync_packet {
	struct vmm_sync_wait wait; /* a signal uses only nodes and count */
	struct vmm_sync_node local[VMM_SYNC_PACKET_NODES];
	/*
	 * `capacity` nodes; stays allocated when the packet is cleared, up to
	 * VMM_SYNC_PACKET_SPARE.
	 */
	struct vmm_sync_node *more;
	uint32_t capacity;
	bool signal;
	uint32_t flags;               /* signals: D3DDDICB_SIGNALFLAGS */
	struct vmm_sync_owner *owner; /* waits: the context of the queue */
	struct vmm_sync_queuer queuer;
	bool has_event; /* EnqueueCpuEvent: wait.event is set, and there are no objects */
};

/* The form of the call. Some forms take fewer objects, or have no values. */
enum vmm_sync_form { VMM_SYNC_FORM_1, VMM_SYNC_FORM_2, VMM_SYNC_FORM_GPU, VMM_SYNC_FORM_GPU_2 };

#define VMM_SYNC_SIGNAL_AT_SUBMISSION 0x1u
#define VMM_SYNC_BROADCAST_MAX        64u /* in addition to the owning context (SYN-29) */

struct vmm_sync_packet_request {
	bool signal;
	enum vmm_sync_form form;
	const uint32_t *handles; /* copied from the caller */
	const uint64_t *values;  /* one per object; with `scalar`: one for all */
	uint32_t count, flags;
	bool scalar;
	uint64_t event; /* EnqueueCpuEvent: the client's handle */
	/* bytes that the caller itself keeps for the packet, to be charged with it */
	uint64_t owner_bytes;
};
/*
 * Makes a packet from the request: looks up the objects, checks everything, and copies. owner: the
 * context; NULL: a hardware queue. device: the one of the context. Takes the process lock. Returns
 * VMM_INVALID_PARAMETER (also for an invalid event) or VMM_ACCESS_DENIED, with a finding each, or
 * VMM_NO_MEMORY. After a failure there is nothing to clear.
 */
vmm_status vmm_sync_packet_fill(struct vmm_sync_packet *packet, const struct vmm_device *device,
				struct vmm_sync_owner *owner,
				const struct vmm_sync_packet_request *request) VMM_MUST_CHECK;
/*
 * Returns how the union of a call with that first object is read (SYN-30, SYN-32).
 * VMM_SYNC_VALUES_NONE: not a live object.
 */
enum vmm_sync_values { VMM_SYNC_VALUES_NONE, VMM_SYNC_VALUES_SCALAR, VMM_SYNC_VALUES_ARRAY };
enum vmm_sync_values vmm_sync_values_of(struct vmm_process *process, uint32_t handle);
/*
 * Sets, for the calling thread, how the union of an out-of-process client's call was read when its
 * bytes were decoded. The call then reads it the same way, whatever the handle names by then. Must
 * be set before each such call. A thread that never set it looks at the object.
 */
void vmm_sync_set_union_values(struct vmm_os *os, enum vmm_sync_values values);
/*
 * words.c: returns whether the client may signal and wait for the device's opening in the fence's
 * page (base/fence_word.h). epoch: the answer holds until the epoch changes. true: fd is a writable
 * descriptor of the page, which the caller closes.
 */
struct vmm_sync_words {
	uint64_t epoch;
	uint32_t adapter; /* luid of the device's adapter */
	int fd;
};
bool vmm_sync_share_words(struct vmm_process *process, uint32_t device, uint32_t handle,
			  struct vmm_sync_words *words);
/*
 * Handles the message of a client that raised the value in the page while the host has waits:
 * delivers them.
 */
void vmm_sync_client_signaled(struct vmm_process *process, uint32_t handle);
/*
 * Returns whether the union of the call, whose handles and count are known, points to one value for
 * each object.
 */
bool vmm_sync_union_is_array(struct vmm_process *process,
			     const struct vmm_sync_packet_request *request);
/*
 * Checks the number of contexts in addition to the owning one. VMM_INVALID_PARAMETER with a
 * finding. (SYN-29)
 */
vmm_status vmm_sync_check_broadcast(const struct vmm_process *process,
				    uint32_t count) VMM_MUST_CHECK;

/*
 * Starts the wait of a packet. Returns true if it is satisfied; the owner then has what it takes.
 * Otherwise wait.on_end is called once, unless the packet is withdrawn before. holds: the context
 * for which the held state is reported (MFN-31); 0: not reported. The caller may hold the state
 * lock or an outer one.
 */
bool vmm_sync_packet_begin(struct vmm_sync_packet *packet, uint32_t holds) VMM_MUST_CHECK;
/*
 * Emits VIDMM_EVENT_SYNC of a context with that reason (enum vidmm_sync_reason): for each object of
 * a signal, for the first one of a wait. The caller may hold the state lock or an outer one.
 * (MFN-31)
 */
void vmm_sync_packet_report(const struct vmm_sync_packet *packet, uint32_t reason,
			    uint32_t context);
/*
 * Withdraws a wait. Returns false if it is satisfied: wait.on_end has been or will be called. The
 * caller may hold the state lock or an outer one.
 */
bool vmm_sync_packet_withdraw(struct vmm_sync_packet *packet);
/*
 * Executes a signal that the queue has reached (of a broadcast: all queues). The caller may hold
 * the state lock or an outer one.
 */
void vmm_sync_packet_signal(struct vmm_sync_packet *packet);
void vmm_sync_packet_clear(struct vmm_sync_packet *packet);
/* Frees the memory of the packet's nodes. */
void vmm_sync_packet_free(struct vmm_sync_packet *packet);

/* ---- values stored by a GPU ---- */

/*
 * Looks again at the fences that have waiters, because a GPU may have stored to them (MFN-26,
 * MFN-27). The caller holds no lock of a rank above the paging lock's.
 */
void vmm_sync_reread(struct vmm_world *world);

#endif
