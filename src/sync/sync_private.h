/* SPDX-License-Identifier: MIT */
/*
 * The types that the files of sync share, and the functions that they call in each other: memory of
 * fence values, objects, waits and their heaps, and lookups.
 *
 * The process lock guards handles and openings. The sync lock guards waits, and what a comment says
 * that it guards. A function takes the locks itself unless its name ends in _locked. (SYN, MFN)
 */
#ifndef VMM_SYNC_SYNC_PRIVATE_H
#define VMM_SYNC_SYNC_PRIVATE_H

#include "base/fence_word.h"
#include "sync/packet.h"
#include "sync/sync.h"

/* ---- memory of fence values (page.c) ---- */

/*
 * A page that a client maps read-only. The private fences of a device share pages. A fence that can
 * be shared has its own (MFN-39).
 */
#define VMM_SYNC_PAGE_BYTES 16384u
#define VMM_SYNC_SLOT_BYTES 64u /* one cache line each */
#define VMM_SYNC_SLOTS      (VMM_SYNC_PAGE_BYTES / VMM_SYNC_SLOT_BYTES)
struct vmm_sync_page {
	struct vmm_list link; /* in device->sync_pages. The sync lock guards the whole structure. */
	struct vmm_os_memory memory;
	struct vmm_os_view view; /* read-only, in the device's process */
	uint32_t references;     /* slots in use, windows, and one of the device */
	uint64_t gpu_address;    /* in the device's process; 0: not mapped for the GPU (MFN-04) */
	uint64_t used[VMM_SYNC_SLOTS / 64];
};
struct vmm_sync_slot {
	struct vmm_sync_page *page;
	uint32_t offset;
};
/*
 * Takes a slot in a page of the device. Its value is 0. for_gpu: the page is mapped for the
 * device's GPU.
 */
vmm_status vmm_sync_slot_take(struct vmm_device *device, bool for_gpu,
			      struct vmm_sync_slot *slot) VMM_MUST_CHECK;
/* Maps the page for the device's GPU until the device ends. */
vmm_status vmm_sync_page_show(struct vmm_device *device, struct vmm_sync_page *page,
			      uint64_t size_bytes, uint64_t *address) VMM_MUST_CHECK;
/* Takes a separate page for one slot. No client has a view of it yet. */
vmm_status vmm_sync_slot_take_own(struct vmm_os *os, struct vmm_sync_slot *slot) VMM_MUST_CHECK;
void vmm_sync_slot_give(struct vmm_world *world, const struct vmm_sync_slot *slot);
void vmm_sync_pages_end(struct vmm_device *device);

/* ---- objects ---- */

struct vmm_sync_object {
	struct vmm_world *world;
	uint32_t type, flags;                    /* from its creation */
	const struct vmm_sync_class *type_class; /* the table of its type (type.h); constant */
	uint32_t luid;                           /* of the adapter that it was created on */
	uint64_t number; /* 1, 2, 3 ... in the world, in order of creation */
	_Atomic uint32_t references;
	/* Number of openings, of all processes. The next two: guarded by the sync lock. */
	uint32_t openings;
	uint32_t global_handle; /* 0: none; ends with the last opening (SHR-03) */
	/* Fences. Clients read the value from the word. */
	struct vmm_sync_slot slot;
	_Atomic uint64_t *word;
	bool narrow;           /* 32-bit storage (MFN-06): the lower half of the word */
	_Atomic uint64_t last; /* narrow: the value last stored, in 64 bits */
	/* not narrow: the difference of the last signal, a guess at the next; never 0 */
	_Atomic uint64_t step;
	_Atomic bool at_maximum; /* narrow: the value counts as UINT64_MAX (TDRS-02) */
	/* Nodes in the heap or about to be inserted, plus 1 if clients have the page. */
	_Atomic uint32_t waiters;
	struct vmm_sync_node *heap; /* guarded by the sync lock */
	/* in world->sync_awaited while the heap is not empty; sync lock */
	struct vmm_list awaited;
	/*
	 * words.c: the page, once clients signal and wait in it
	 * (docs/adr/0003-fences-without-a-message.md). Set once, under the sync lock.
	 */
	_Atomic(struct vmm_fence_page *) page;
	struct vmm_epoch_sleepers sleepers;
	/* A GPU may store to it without notice. */
	bool seen_by_gpu VMM_GUARDED_BY(vmm_sync_lock_class);
	/*
	 * Types that are not by value, sync lock. queue: vmm_sync_node.link of the waits, oldest
	 * first. held: link in the list of its owner (type.h).
	 */
	struct vmm_list queue, held;
	_Atomic uint64_t value; /* value of a fence without a page (FEN-04) */
	/* Units of a mutex (1) or semaphore, and the owner of a mutex; guarded by the sync lock. */
	uint32_t units, units_max;
	/* mutex: the context that holds it; NULL: none, or held since its creation */
	struct vmm_sync_owner *owner VMM_GUARDED_BY(vmm_sync_lock_class);
	uint32_t process; /* id of the process whose device it was created on */
	/* The source of a periodic fence (sync.h); NULL for other objects. Sync lock. */
	struct vmm_sync_periodic_source *periodic_source VMM_GUARDED_BY(vmm_sync_lock_class);
	int event; /* CPU notifications: duplicate of the client's event; -1: none */
};

/* An opening: what a handle names. */
struct vmm_sync {
	struct vmm_sync_object *object;
	struct vmm_process *process;
	struct vmm_device *device; /* NULL: it belongs to no device (SYN-14) */
	uint32_t quick;            /* VMM_SYNC_QUICK_ bits; constant once the handle exists */
	bool lockless; /* it was visible to lock-free look-ups; set when its handle is destroyed */
	uint32_t handle;
	uint32_t flags; /* of this opening (SFL-17a), including `denied` */
	/* NO_WAIT and NO_SIGNAL, as denied by the rights of the NT handle (SHR-10) */
	uint32_t denied;
	bool owned;              /* a fence of the library: clients can only wait for it (MFN-35) */
	void *address;           /* address of the value in the client */
	uint64_t gpu_address;    /* MFN-04; 0: none */
	struct vmm_os_view view; /* of a fence that can be shared, if it has a device */
	struct vmm_list link;    /* in device->syncs or process->syncs; sync lock */
	/*
	 * Notifications that the miniport signals: its event, and the number of threads inside a
	 * call to the miniport about it.
	 */
	void *driver_event;
	_Atomic uint32_t driver_users;
};

#define VMM_SYNC_QUICK_SIGNAL 1u
#define VMM_SYNC_QUICK_WAIT   2u

static inline bool vmm_sync_is_monitored(const struct vmm_sync_object *object)
{
	return object->type == VMM_SYNC_MONITORED_FENCE ||
	       object->type == VMM_SYNC_PERIODIC_MONITORED_FENCE;
}

/* Returns whether waits compare a value with the object's. */
static inline bool vmm_sync_is_fence(const struct vmm_sync_object *object)
{
	return object->type == VMM_SYNC_FENCE || vmm_sync_is_monitored(object);
}

static inline void vmm_sync_get(struct vmm_sync_object *object)
{
	atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

/*
 * Decrements the number of openings. Returns true for the last one, whose end also ended the global
 * handle (SHR-03). Caller holds the sync lock.
 */
bool vmm_sync_uncount_locked(struct vmm_sync_object *object) VMM_REQUIRES(vmm_sync_lock_class);
/*
 * Creates another opening of the object and its handle. denied: NO_WAIT and NO_SIGNAL, as the NT
 * handle does not grant them (SHR-10).
 */
vmm_status vmm_sync_open_object(struct vmm_process *process, struct vmm_sync_object *object,
				struct vmm_sync_open *open, uint32_t flags,
				uint32_t denied) VMM_MUST_CHECK;
/* ---- periodic fences (periodic.c) ---- */

/* Checks the periodic part of a request whose flags are valid. (PMF-01, PMF-06) */
vmm_status vmm_sync_check_periodic(const struct vmm_device *device,
				   const struct vmm_sync_request *request) VMM_MUST_CHECK;
/* Starts the source of an object that has no handle yet. (PMF-02) */
vmm_status vmm_sync_begin_periodic(struct vmm_device *device, struct vmm_sync_object *object,
				   const struct vmm_sync_request *request) VMM_MUST_CHECK;
/*
 * Returns the rule that a signal through an opening with NoSignal breaks. *what: the reason in
 * words.
 */
const char *vmm_sync_no_signal(const struct vmm_sync *sync, const char **what)
	VMM_REQUIRES(vmm_process_lock_class);

/* ---- what the miniport signals (driver.c) ---- */

static inline bool vmm_sync_is_drivers(const struct vmm_sync_object *object)
{
	return vmm_unlikely(object->flags & VMM_SYNC_SIGNAL_BY_KMD);
}
/*
 * Creates the miniport's event for an opening without a handle yet. Returns the miniport's failure.
 * (CPN-08)
 */
vmm_status vmm_sync_begin_driver(struct vmm_sync *sync) VMM_MUST_CHECK;
/* Destroys the miniport's event. The opening is in no table anymore. (CPN-06) */
void vmm_sync_end_driver(struct vmm_sync *sync);

/* ---- values (fence.c) ---- */

/* Returns the value nearest to the last stored one that has the 32 bits in the word. (MFN-07) */
uint64_t vmm_sync_narrow_value(const struct vmm_sync_object *object);
static inline uint64_t vmm_sync_value(const struct vmm_sync_object *object)
{
	if (vmm_likely(!object->narrow))
		return atomic_load(object->word); /* sequentially consistent with `waiters` */
	return vmm_sync_narrow_value(object);
}
/* Returns whether the fence has reached the value. (MFN-10) */
static inline bool vmm_sync_reached(const struct vmm_sync_object *object, uint64_t value)
{
	return vmm_sync_value(object) >= value;
}
/*
 * Returns whether the value is within 32-bit distance of the fence's. A lower value matters only if
 * the signal may rewind. (MFN-08)
 */
bool vmm_sync_in_range(const struct vmm_sync_object *object, uint64_t value, bool rewind);
/*
 * Raises the fence to the value. A lower value is stored only with `rewind`. Without it *lower is
 * true and nothing changes (MFN-23). Returns true if there may be waiters: the caller then calls
 * vmm_sync_deliver. Costs one locked instruction and no lock; narrow fences take the sync lock.
 */
bool vmm_sync_raise_slow(struct vmm_sync_object *object, uint64_t value, bool rewind, bool *lower);
static inline bool vmm_sync_raise_checked(struct vmm_sync_object *object, uint64_t value,
					  bool rewind, bool *lower)
{
	/*
	 * Guesses the present value from the step of the last signal. To read the word just before
	 * the locked instruction would nearly double its time. To store the last value would, too:
	 * that store had to reach the cache before the next signal.
	 */
	uint64_t now = value - atomic_load_explicit(&object->step, memory_order_relaxed);

	*lower = false;
	if (vmm_unlikely(object->narrow | rewind || value <= now ||
			 !atomic_compare_exchange_strong(object->word, &now, value)))
		return vmm_sync_raise_slow(object, value, rewind, lower);
	return vmm_unlikely(atomic_load(&object->waiters) != 0);
}
/* The same for signals of a queue and of the library, for which a lower value is no error. */
static inline bool vmm_sync_raise(struct vmm_sync_object *object, uint64_t value, bool rewind)
{
	bool lower;

	return vmm_sync_raise_checked(object, value, rewind, &lower);
}
/* Raises the fence by count. Caller holds the sync lock and delivers afterwards. */
void vmm_sync_raise_by_locked(struct vmm_sync_object *object, uint32_t count)
	VMM_REQUIRES(vmm_sync_lock_class);
/* Raises the fence to its largest value. Caller holds the sync lock. (TDRS-01, TDRS-02) */
void vmm_sync_raise_to_maximum_locked(struct vmm_sync_object *object)
	VMM_REQUIRES(vmm_sync_lock_class);

/* ---- fences in the hands of clients (words.c) ---- */

/* Decides whether clients may have the page of an object that has no handle yet. */
void vmm_sync_offer(const struct vmm_sync_object *object);
/*
 * Makes the page unavailable to clients for an opening with NoSignal, before its client has a view:
 * such a client must not be able to store to the page.
 */
void vmm_sync_withdraw(const struct vmm_sync *sync);
/* Ends the use of the page: from now on clients signal and wait by messages. */
void vmm_sync_disable_words(struct vmm_sync_object *object);
/*
 * Ends the waits of clients through an opening that ends (if unwait), and delivers a signal that a
 * client stored but did not announce before it ended.
 */
void vmm_sync_end_opening_words(const struct vmm_sync *sync, bool unwait);
/* Adds `more` (UINT32_MAX: -1) to the number of waits in the host. Caller holds the sync lock. */
static inline void vmm_sync_count_waiter(struct vmm_sync_object *object, uint32_t more)
{
	struct vmm_fence_page *page = atomic_load_explicit(&object->page, memory_order_relaxed);

	atomic_fetch_add(&object->waiters, more);
	if (vmm_unlikely(page != NULL))
		atomic_fetch_add(&page->awaited, more);
}

/* ---- lock-free signals and waits (quick.c) ---- */

/* Makes the opening visible to lock-free look-ups. Caller holds the process lock. */
void vmm_sync_enable_lockless_locked(const struct vmm_sync *sync)
	VMM_REQUIRES(vmm_process_lock_class);
/* Waits until no thread has a hazard pointer to the opening, which is in no table anymore. */
void vmm_sync_await_hazards(const struct vmm_sync *sync);

/* ---- waits (wait.c) ---- */

/* Waits that ended under the sync lock and are woken or notified after its release. */
#define VMM_SYNC_BATCH 32u
struct vmm_sync_batch {
	struct vmm_os *os;
	_Atomic uint32_t *words[VMM_SYNC_BATCH]; /* NULL: a wait in the list `completed` */
	uint32_t count;
	struct vmm_list completed;
};
static inline void vmm_sync_batch_init(struct vmm_sync_batch *batch, struct vmm_os *os)
{
	batch->os = os;
	batch->count = 0;
	vmm_list_init(&batch->completed);
}
void vmm_sync_batch_flush(struct vmm_sync_batch *batch);

/*
 * Starts the wait, whose nodes have objects, with a reference each, and values. Returns true if it
 * is satisfied at once. Otherwise it waits until it is done or withdrawn. Caller holds the sync
 * lock.
 */
bool vmm_sync_wait_begin_locked(struct vmm_sync_wait *wait) VMM_REQUIRES(vmm_sync_lock_class);
/* Withdraws the wait. Returns false if it is already done. Caller holds the sync lock. */
bool vmm_sync_wait_withdraw_locked(struct vmm_sync_wait *wait) VMM_REQUIRES(vmm_sync_lock_class);
/* Wakes the clients that sleep on the fence's page (words.c). The caller may hold any lock. */
void vmm_sync_wake_clients(struct vmm_sync_object *object);
/* Ends the waits whose values are reached. No sync lock held. */
void vmm_sync_deliver(struct vmm_sync_object *object);
/* The same, into a batch; the caller holds the sync lock. Returns false if the batch is full. */
bool vmm_sync_deliver_locked(struct vmm_sync_object *object, struct vmm_sync_batch *batch)
	VMM_REQUIRES(vmm_sync_lock_class);
/*
 * Ends the waits of the CPU. Returns false if the batch is full and waits are left. Caller holds
 * the sync lock. (SFL-27)
 */
bool vmm_sync_cancel_locked(struct vmm_sync_object *object, struct vmm_sync_batch *batch)
	VMM_REQUIRES(vmm_sync_lock_class);
/* Ends the waits with events (cpu_wait.c) of a device that ends. */
void vmm_sync_cancel_events(struct vmm_device *device);

/*
 * Finds the oldest wait in the object's queue that can take all its objects, and takes them for it
 * (queue.c). Returns NULL if there is none. Caller holds the sync lock.
 */
struct vmm_sync_wait *vmm_sync_queue_next_locked(struct vmm_sync_object *object)
	VMM_REQUIRES(vmm_sync_lock_class);
/* Start and withdraw a wait that is not by value. Caller holds the sync lock. */
bool vmm_sync_queue_begin_locked(struct vmm_sync_wait *wait) VMM_REQUIRES(vmm_sync_lock_class);
void vmm_sync_queue_leave_locked(struct vmm_sync_wait *wait) VMM_REQUIRES(vmm_sync_lock_class);

/* ---- keyed mutexes (keyed.c) ---- */

struct vmm_keyed {
	struct vmm_world *world;
	_Atomic uint32_t references;
	/* guarded by world->shared_lock */
	uint32_t openings, global_handle;
	/* guarded by the sync lock */
	uint64_t key;
	uint64_t fence VMM_GUARDED_BY(vmm_sync_lock_class);
	/* NULL: released. */
	const struct vmm_keyed_opening *holder VMM_GUARDED_BY(vmm_sync_lock_class);
	/* Never cleared (KMX-19). */
	bool abandoned VMM_GUARDED_BY(vmm_sync_lock_class);
	/* it may be part of bundles and has no global handle (KMX-06); constant */
	bool nt_security;
	struct vmm_list waiters; /* oldest first */
	uint32_t data_bytes;     /* constant */
	uint8_t data[];
};

struct vmm_keyed_opening {
	struct vmm_keyed *keyed;
	struct vmm_process *process;
	uint32_t handle;
	struct vmm_list link; /* in process->keyed. The next four: guarded by the sync lock. */
	/* The device of the resource in the same bundle; NULL: none. */
	struct vmm_device *device VMM_GUARDED_BY(vmm_sync_lock_class);
	struct vmm_list device_link; /* in device->keyed */
	/* `device` was lost or its adapter was closed (KMX-23). */
	bool lost VMM_GUARDED_BY(vmm_sync_lock_class);
	_Atomic uint32_t users; /* calls on it; its end waits for them */
};

void vmm_keyed_end_process(struct vmm_process *process);
void vmm_keyed_end_device(struct vmm_device *device);

/* ---- the heap (heap.c) ---- */
void vmm_sync_heap_insert(struct vmm_sync_node **heap, struct vmm_sync_node *node);
void vmm_sync_heap_remove(struct vmm_sync_node **heap, struct vmm_sync_node *node);

/* ---- look-ups; the caller holds the process lock ---- */

/*
 * Returns the opening of the handle. NULL with a finding: not a live one of the process (SYN-22).
 */
struct vmm_sync *vmm_sync_find_locked(struct vmm_process *process, uint32_t handle,
				      const char *what) VMM_REQUIRES(vmm_process_lock_class);
/* Looks up the device of a caller that names it by its handle. VMM_PENDING: it is paused. */
vmm_status vmm_sync_find_device_locked(const struct vmm_sync_caller *caller,
				       struct vmm_device **device)
	VMM_REQUIRES(vmm_process_lock_class);
/*
 * Returns the rule that a wait or signal from the CPU breaks on an object that is not a monitored
 * fence.
 */
const char *vmm_sync_cpu_rule(const struct vmm_sync_object *object, bool wait);
void vmm_sync_end(struct vmm_sync *sync); /* The opening is in no table and no list anymore. */

/*
 * ---- validity (valid.c) ----
 * Each function of the module asserts the predicates of the structures that it is given or has
 * looked up. A false one is a bug of the library: every mistake of a client gets a finding before.
 */

/* A slot is a cache line of a page. */
bool vmm_sync_slot_is_valid(const struct vmm_sync_slot *slot);
/*
 * The type is one of enum vmm_sync_type, and there is a reference. Fences, and no others, have a
 * word, whose step is not 0. Monitored fences, and no others, have a slot, and may be narrow. CPU
 * notifications, and no others, have an event.
 */
bool vmm_sync_object_is_valid(const struct vmm_sync_object *object);
/*
 * The object is valid, and:
 * - waits are in the heap of a type by value, otherwise in the queue, and never in both;
 * - an object with a heap is in world->sync_awaited, and counts waiters;
 * - the units are at most units_max, and a mutex with an owner has none left and is in the owner's
 *   list; no other type has an owner;
 * - only an object with openings has a global handle;
 * - its periodic source points back to it.
 */
bool vmm_sync_object_is_consistent_locked(const struct vmm_sync_object *object)
	VMM_REQUIRES(vmm_sync_lock_class);
/*
 * The opening's object is valid and of the same world as its process. Only openings of monitored
 * fences and of the miniport's notifications have a device, which is one of that process. `denied`
 * is part of `flags`. A fence of the library is monitored and has NoSignal. Addresses exist only
 * for an object with a page, GPU addresses only with a device.
 */
bool vmm_sync_is_valid(const struct vmm_sync *sync);
/*
 * What the lock-free path relies on: the opening has a device, its object is a fence with a 64-bit
 * word, and the flags permit what `quick` does. Reads only what that path reads anyway.
 */
static inline bool vmm_sync_quick_is_valid(const struct vmm_sync *sync)
{
	return sync->device && sync->object->word && !sync->object->narrow &&
	       !(sync->quick & VMM_SYNC_QUICK_SIGNAL && sync->flags & VMM_SYNC_NO_SIGNAL) &&
	       !(sync->quick & VMM_SYNC_QUICK_WAIT && sync->flags & VMM_SYNC_NO_WAIT);
}
/*
 * The wait has nodes; `missing` of them, at most all, are in heaps, or they are in queues. A wait
 * that is done is in neither, unless its sleeper has yet to withdraw it from the heaps. Only waits
 * of the CPU are for any of their objects. The end is announced in one way.
 */
bool vmm_sync_wait_is_valid_locked(const struct vmm_sync_wait *wait)
	VMM_REQUIRES(vmm_sync_lock_class);
/*
 * A filled packet: its nodes are those inside it or the allocated ones, and as many as fit. It is
 * for all of its objects, and no thread sleeps for it. With an event it has no objects.
 */
bool vmm_sync_packet_is_valid(const struct vmm_sync_packet *packet);
/* An owner that holds objects is in the list of its device. */
bool vmm_sync_owner_is_valid_locked(const struct vmm_sync_owner *owner)
	VMM_REQUIRES(vmm_sync_lock_class);
/* A batch has at most VMM_SYNC_BATCH ended waits, and an empty one has no list of them. */
bool vmm_sync_batch_is_valid(const struct vmm_sync_batch *batch);
/* The device that the caller is inside, if any, is valid and one of its process. */
bool vmm_sync_caller_is_valid(const struct vmm_sync_caller *caller);
/* A list with objects has both arrays, which the entry-point module has copied. */
bool vmm_sync_list_is_valid(const struct vmm_sync_list *list);
/* There is a reference to the keyed mutex. */
bool vmm_keyed_is_valid(const struct vmm_keyed *keyed);
/* The holder is one of the mutex's openings, and an abandoned mutex has none. */
bool vmm_keyed_is_consistent_locked(const struct vmm_keyed *keyed)
	VMM_REQUIRES(vmm_sync_lock_class);
/* The opening's mutex is valid and of the same world as its process. */
bool vmm_keyed_opening_is_valid(const struct vmm_keyed_opening *opening);

#endif
