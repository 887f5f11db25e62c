/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals as packets of a context's queue (SYN-25, SYN-26): what sched keeps in its order, and does when it gets there.
 *
 *   vmm_sync_packet_fill      at the call: handles become objects with a reference each, all checks are made, all is copied
 *   vmm_sync_packet_begin     a wait is reached: satisfied, or `tell` later, from whatever thread
 *   vmm_sync_packet_signal    a signal is reached
 *   vmm_sync_packet_clear     references and event go; the memory can be used again
 *
 * How a type plugs in: type.h.
 */
#ifndef VMM_SYNC_PACKET_H
#define VMM_SYNC_PACKET_H

#include "sync/sync.h"

/* One object and value of a wait, or of a packet. */
struct vmm_sync_node {
	struct vmm_sync_object *object; /* a reference of the wait's */
	struct vmm_sync_wait *wait;
	uint64_t value;
	uint32_t handle;                             /* of a packet: by which the call named it */
	struct vmm_sync_node *left, *right, *parent; /* by value: in object->heap */
	uint32_t rank;                               /* 0: it is not there */
	struct vmm_list link;                        /* not by value: in object->queue */
};

/* Guarded by the sync lock until it is done. */
struct vmm_sync_wait {
	struct vmm_world *world;
	struct vmm_sync_node *nodes;
	uint32_t count, missing; /* nodes in heaps */
	bool any, done;
	bool queued; /* not by value: the nodes are in the queues of their objects */
	bool of_cpu; /* the end of a fence ends it (SFL-27) */
	vmm_status status;
	/* A thread that sleeps, or else who is told, with no sync lock held; others may be. */
	struct vmm_sleeper *sleeper;
	void (*tell)(struct vmm_sync_wait *wait);
	_Atomic uint32_t
		*tellers;     /* counts those between the end and the return of `tell`; or NULL */
	struct vmm_list link; /* with `tell`: in a list of its owner's, or of those to be told */
	int event;
	struct vmm_account *account; /* that the event is charged to; NULL: nobody counts */
	struct vmm_account *payer;   /* of what is kept of it until it is over; likewise */
	uint64_t charged_bytes;
};

/*
 * wait.c: what is kept of a wait or a packet until it is over is its process's to pay for. VMM_NO_MEMORY, with a reason: it has as much as
 * it may. The account stays until the refund, which may be asked for twice.
 */
vmm_status vmm_sync_charge(const struct vmm_process *process, struct vmm_sync_wait *wait,
			   const char *what, uint64_t bytes) VMM_MUST_CHECK;
void vmm_sync_refund(struct vmm_sync_wait *wait);

/* wait.c: an event of the client's that is kept for a wait or a packet, and charged to its process. VMM_NO_MEMORY: it has too many. */
vmm_status vmm_sync_keep_event(const struct vmm_device *device, uint64_t event,
			       struct vmm_sync_wait *wait) VMM_MUST_CHECK;
void vmm_sync_drop_event(const struct vmm_sync_wait *wait);

/* A context, to what it can hold: mutexes. */
struct vmm_sync_owner {
	struct vmm_device *
		device; /* constant, like the number, which no other of the world has or will have */
	uint64_t number;
	/* Guarded by the sync lock: vmm_sync_object.held; in device->sync_owners once it has held something. */
	struct vmm_list held, link;
};
static inline void vmm_sync_owner_init(struct vmm_sync_owner *owner, struct vmm_device *device)
{
	owner->device = device;
	owner->number = atomic_fetch_add(&device->process->world->sync_owner_numbers, 1) + 1;
	vmm_list_init(&owner->held);
	vmm_list_init(&owner->link);
}
/* It ends: what it holds is free (MTX-06). No sync lock held. */
void vmm_sync_owner_end(struct vmm_world *world, struct vmm_sync_owner *owner);

/* Who queued a packet; of several contexts the first. It may have ended when the others get there. */
struct vmm_sync_queuer {
	uint64_t owner; /* its number; 0: a hardware queue */
	uint32_t process, device;
};

#define VMM_SYNC_PACKET_NODES 4u  /* so many need no memory */
#define VMM_SYNC_PACKET_SPARE 64u /* nor so many, where the packet has had them before */
struct vmm_sync_packet {
	struct vmm_sync_wait wait; /* of a signal: nodes and count alone */
	struct vmm_sync_node local[VMM_SYNC_PACKET_NODES];
	struct vmm_sync_node
		*more; /* `capacity` of them; stays when the packet is cleared, if it is not much */
	uint32_t capacity;
	bool signal;
	uint32_t flags;               /* of a signal: D3DDDICB_SIGNALFLAGS */
	struct vmm_sync_owner *owner; /* of a wait: whose queue it is in */
	struct vmm_sync_queuer queuer;
	bool has_event; /* EnqueueCpuEvent: wait.event, our duplicate, instead of objects */
};

/* Which call it came by: some take fewer objects, or have no room for values. */
enum vmm_sync_form { VMM_SYNC_FORM_1, VMM_SYNC_FORM_2, VMM_SYNC_FORM_GPU, VMM_SYNC_FORM_GPU_2 };

#define VMM_SYNC_SIGNAL_AT_SUBMISSION 0x1u
#define VMM_SYNC_BROADCAST_MAX        64u /* besides the owning context (SYN-29) */

struct vmm_sync_packet_request {
	bool signal;
	enum vmm_sync_form form;
	const uint32_t *handles; /* our copies */
	const uint64_t *values;  /* one each; `scalar`: one for all */
	uint32_t count, flags;
	bool scalar;
	uint64_t event;       /* EnqueueCpuEvent: the client's handle */
	uint64_t owner_bytes; /* that whose packet it is keeps of it until it is over */
};
/*
 * VMM_INVALID_PARAMETER, VMM_ACCESS_DENIED, with a finding each; VMM_NO_MEMORY; VMM_INVALID_HANDLE: the event. Nothing to be cleared
 * then. The device is that of the context; owner: the context, NULL of a
 * hardware queue; the process lock is taken.
 */
vmm_status vmm_sync_packet_fill(struct vmm_sync_packet *packet, const struct vmm_device *device,
				struct vmm_sync_owner *owner,
				const struct vmm_sync_packet_request *request) VMM_MUST_CHECK;
/* What the union of a call with that first object is (SYN-30, SYN-32). No live object: VMM_SYNC_VALUES_NONE. */
enum vmm_sync_values { VMM_SYNC_VALUES_NONE, VMM_SYNC_VALUES_SCALAR, VMM_SYNC_VALUES_ARRAY };
enum vmm_sync_values vmm_sync_values_of(struct vmm_process *process, uint32_t handle);
/*
 * The calling thread makes a call of a process apart, in whose bytes the union was taken for that: by this it is read, whatever the
 * handle means by then. To be set before each such call; a thread that never did looks itself.
 */
void vmm_sync_union_taken(struct vmm_os *os, enum vmm_sync_values values);
/*
 * words.c: may the client signal and wait for the device's opening in the fence's own page (base/fence_word.h)? epoch: for how long the answer,
 * whatever it is, holds. True: fd is a descriptor of the page that can be written to, and the caller's.
 */
struct vmm_sync_words {
	uint64_t epoch;
	uint32_t adapter; /* luid of the device's */
	int fd;
};
bool vmm_sync_give_words(struct vmm_process *process, uint32_t device, uint32_t handle,
			 struct vmm_sync_words *words);
/* A client has raised the value of an opening of its in the page, and the host has waits. */
void vmm_sync_told(struct vmm_process *process, uint32_t handle);
/* Does the union of the call, whose handles and count are known, point to a value for each object? */
bool vmm_sync_union_is_array(struct vmm_process *process,
			     const struct vmm_sync_packet_request *request);
/* SYN-29: contexts besides the owning one. VMM_INVALID_PARAMETER and a finding. */
vmm_status vmm_sync_check_broadcast(const struct vmm_process *process,
				    uint32_t count) VMM_MUST_CHECK;

/*
 * True: it is satisfied, and what it takes is the owner's. Otherwise wait.tell is called once, unless the packet is withdrawn
 * before. The state lock held at most. holds: what it holds from now on is said (MFN-31), of this context; 0: it is not.
 */
bool vmm_sync_packet_begin(struct vmm_sync_packet *packet, uint32_t holds) VMM_MUST_CHECK;
/*
 * MFN-31: VIDMM_EVENT_SYNC with that reason (enum vidmm_sync_reason) of a context: for each object of a signal, for the first of a
 * wait. The state lock held at most.
 */
void vmm_sync_packet_say(const struct vmm_sync_packet *packet, uint32_t reason, uint32_t context);
/* False: it is satisfied; wait.tell has been called or is about to be. The state lock held at most. */
bool vmm_sync_packet_withdraw(struct vmm_sync_packet *packet);
/* The owner's queue is there (of a broadcast: all are). The state lock held at most. */
void vmm_sync_packet_signal(struct vmm_sync_packet *packet);
void vmm_sync_packet_clear(struct vmm_sync_packet *packet);
/* With `more`. */
void vmm_sync_packet_free(struct vmm_sync_packet *packet);

/* ---- values that nobody told us of ---- */

/*
 * A GPU may have stored into fences: those that somebody waits for are looked at again (MFN-26, MFN-27). No lock above the
 * paging lock held.
 */
void vmm_sync_reread(struct vmm_world *world);

#endif
