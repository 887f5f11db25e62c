/* SPDX-License-Identifier: MIT */
#ifndef VMM_SYNC_SYNC_PRIVATE_H
#define VMM_SYNC_SYNC_PRIVATE_H

#include "base/fence_word.h"
#include "sync/packet.h"
#include "sync/sync.h"

/* ---- where the values of fences lie (page.c) ---- */

/* Memory that a client reads: a device's private fences share some, a fence that can be shared has its own (MFN-39). */
#define VMM_SYNC_PAGE_BYTES 16384u
#define VMM_SYNC_SLOT_BYTES 64u /* no two of them in one cache line */
#define VMM_SYNC_SLOTS      (VMM_SYNC_PAGE_BYTES / VMM_SYNC_SLOT_BYTES)
struct vmm_sync_page {
	struct vmm_list link; /* in device->sync_pages; guarded by the sync lock, like the rest */
	struct vmm_os_memory memory;
	struct vmm_os_view view; /* of the device's process, read only */
	uint32_t references;     /* slots in use, windows, and one of the device */
	uint64_t gpu_address;    /* of the device's process; 0: its GPU does not see it (MFN-04) */
	uint64_t used[VMM_SYNC_SLOTS / 64];
};
struct vmm_sync_slot {
	struct vmm_sync_page *page;
	uint32_t offset;
};
/* A slot of the device's; reads as 0. for_gpu: where its GPU sees it. */
vmm_status vmm_sync_slot_take(struct vmm_device *device, bool for_gpu,
			      struct vmm_sync_slot *slot) VMM_MUST_CHECK;
/* The GPU of the device sees the page until the device ends. */
vmm_status vmm_sync_page_show(struct vmm_device *device, struct vmm_sync_page *page,
			      uint64_t size_bytes, uint64_t *address) VMM_MUST_CHECK;
/* In memory of its own, of which no client has a view yet. */
vmm_status vmm_sync_slot_take_own(struct vmm_os *os, struct vmm_sync_slot *slot) VMM_MUST_CHECK;
void vmm_sync_slot_give(struct vmm_world *world, const struct vmm_sync_slot *slot);
void vmm_sync_pages_end(struct vmm_device *device);

/* ---- objects ---- */

struct vmm_sync_object {
	struct vmm_world *world;
	uint32_t type, flags; /* of its creation */
	uint32_t luid;        /* of the adapter that it was made on */
	uint64_t number;      /* 1, 2, 3 ... of the world's, in order of creation */
	_Atomic uint32_t references;
	uint32_t
		openings; /* handles of all processes; guarded by the sync lock, like the next one */
	uint32_t global_handle; /* 0: none; it lives as long as there are openings (SHR-03) */
	/* Fences. The word is what clients read. */
	struct vmm_sync_slot slot;
	_Atomic uint64_t *word;
	bool narrow;             /* of 32 bits (MFN-06): the lower half of the word */
	_Atomic uint64_t last;   /* narrow: what was stored, in 64 bits */
	_Atomic uint64_t step;   /* otherwise: by how much a signal raised it; a guess, never 0 */
	_Atomic bool at_maximum; /* narrow: it is larger than all (TDRS-02) */
	_Atomic uint32_t
		waiters; /* nodes in the heap, and who is about to be one; and 1 for clients that have the page */
	struct vmm_sync_node *heap; /* guarded by the sync lock */
	struct vmm_list awaited;    /* in world->sync_awaited while there are any; likewise */
	/* words.c: the page, when clients signal and wait in it (docs/adr/0003-fences-without-a-message.md). Set once, by the sync lock. */
	_Atomic(struct vmm_fence_page *) page;
	struct vmm_epoch_sleepers sleepers;
	bool seen_by_gpu; /* some GPU stores to it, and tells nobody; sync lock */
	/* All other types: vmm_sync_node.link of who waits, oldest first; in the list of its owner (type.h). Sync lock. */
	struct vmm_list queue, held;
	_Atomic uint64_t value; /* the word of a fence that has no page (FEN-04) */
	/* Mutexes, which have one unit, and semaphores; guarded by the sync lock. */
	uint32_t units, units_max;
	struct vmm_sync_owner *owner; /* of a mutex: who has it; NULL: nobody, or whoever made it */
	uint32_t process;             /* id of that whose device it was made on */
	struct vmm_sync_beat *beat;   /* of a periodic fence; guarded by the sync lock */
	int event; /* CPU notifications: our descriptor of the client's event; -1: none */
};

/* What a handle names. */
struct vmm_sync {
	struct vmm_sync_object *object;
	struct vmm_process *process;
	struct vmm_device *device; /* NULL: of no device (SYN-14) */
	uint32_t quick;            /* what quick.c may do with it; constant from its handle on */
	bool shown; /* it was: quick.c may have found it; set when it is out of the table */
	uint32_t handle;
	uint32_t flags;  /* of this opening (SFL-17a), with what is denied to it */
	uint32_t denied; /* by the rights of the NT handle (SHR-10): of NO_WAIT and NO_SIGNAL */
	bool owned;      /* by us: clients can only wait for it (MFN-35) */
	void *address;   /* of the value in the client */
	uint64_t gpu_address;    /* MFN-04; 0: none */
	struct vmm_os_view view; /* of a fence that can be shared; device == NULL: none */
	struct vmm_list link;    /* in device->syncs or process->syncs; sync lock */
	/* Of a notification that the miniport signals: its event, and who is telling the miniport about it. */
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

/* Has it a value that waits compare with theirs? */
static inline bool vmm_sync_is_fence(const struct vmm_sync_object *object)
{
	return object->type == VMM_SYNC_FENCE || vmm_sync_is_monitored(object);
}

static inline void vmm_sync_get(struct vmm_sync_object *object)
{
	atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

/* One opening less. True: it was the last one, with which the global handle went (SHR-03). Sync lock held. */
bool vmm_sync_uncount_locked(struct vmm_sync_object *object);
/* Another opening of the object, published. denied: what the NT handle does not allow, of NO_WAIT and NO_SIGNAL (SHR-10). */
vmm_status vmm_sync_open_object(struct vmm_process *process, struct vmm_sync_object *object,
				struct vmm_sync_open *open, uint32_t flags,
				uint32_t denied) VMM_MUST_CHECK;
/* ---- periodic fences (periodic.c) ---- */

/* PMF-01, PMF-06: a request whose flags are right. */
vmm_status vmm_sync_check_periodic(const struct vmm_device *device,
				   const struct vmm_sync_request *request) VMM_MUST_CHECK;
/* An object that nobody knows yet begins to rise. PMF-02 */
vmm_status vmm_sync_begin_periodic(struct vmm_device *device, struct vmm_sync_object *object,
				   const struct vmm_sync_request *request) VMM_MUST_CHECK;
/* Nobody has it any more. */
void vmm_sync_end_periodic(struct vmm_sync_object *object);
/* Whose rule a signal of an opening with NoSignal breaks, and what it is. */
const char *vmm_sync_no_signal(const struct vmm_sync *sync, const char **what);

/* ---- what the miniport signals (driver.c) ---- */

static inline bool vmm_sync_is_drivers(const struct vmm_sync_object *object)
{
	return vmm_unlikely(object->flags & VMM_SYNC_SIGNAL_BY_KMD);
}
/* CPN-08: an opening that nobody knows yet. The miniport's failure. */
vmm_status vmm_sync_begin_driver(struct vmm_sync *sync) VMM_MUST_CHECK;
/* CPN-06: nobody finds it any more. */
void vmm_sync_end_driver(struct vmm_sync *sync);

/* ---- values (fence.c) ---- */

/* MFN-07: the stored 32 bits as the nearest value to what was stored last. */
uint64_t vmm_sync_narrow_value(const struct vmm_sync_object *object);
static inline uint64_t vmm_sync_value(const struct vmm_sync_object *object)
{
	if (vmm_likely(!object->narrow))
		return atomic_load(object->word); /* in one order with `waiters` */
	return vmm_sync_narrow_value(object);
}
/* MFN-10 */
static inline bool vmm_sync_reached(const struct vmm_sync_object *object, uint64_t value)
{
	return vmm_sync_value(object) >= value;
}
/* MFN-08: is it near enough to what was signalled last? A lower one only matters to who rewinds. */
bool vmm_sync_in_range(const struct vmm_sync_object *object, uint64_t value, bool rewind);
/*
 * Stores it, unless it is lower and rewinding was not asked for (MFN-23). True: somebody may wait, vmm_sync_deliver is
 * called for. One locked instruction and no other lock, but for narrow ones: those take the sync lock.
 */
bool vmm_sync_raise_slowly(struct vmm_sync_object *object, uint64_t value, bool rewind);
static inline bool vmm_sync_raise(struct vmm_sync_object *object, uint64_t value, bool rewind)
{
	/*
	 * A guess at what is there: reading the word right before the locked instruction would nearly double its time, and so
	 * would a note of the value, which had to get to the cache before the next signal's.
	 */
	uint64_t now = value - atomic_load_explicit(&object->step, memory_order_relaxed);

	if (vmm_unlikely(object->narrow | rewind || value <= now ||
			 !atomic_compare_exchange_strong(object->word, &now, value)))
		return vmm_sync_raise_slowly(object, value, rewind);
	return vmm_unlikely(atomic_load(&object->waiters) != 0);
}
/* Whoever waits is to be looked for afterwards. */
void vmm_sync_raise_by_locked(struct vmm_sync_object *object, uint32_t count);
/* TDRS-01, TDRS-02 */
void vmm_sync_raise_to_maximum_locked(struct vmm_sync_object *object);

/* ---- fences in the hands of clients (words.c) ---- */

/* An object that nobody knows yet: may clients have its page? */
void vmm_sync_offer(const struct vmm_sync_object *object);
/* An opening that nobody knows yet, before its client has a view: whoever may not signal must not be able to. */
void vmm_sync_withdraw(const struct vmm_sync *sync);
/* Wakes clients that sleep, to look again. Any lock. */
void vmm_sync_tell_clients(struct vmm_sync_object *object);
/* From now on clients signal it and wait for it by messages. */
void vmm_sync_shut_words(struct vmm_sync_object *object);
/* The end of an opening: ends waits, and does what a client that is no more has left undone. */
void vmm_sync_end_opening_words(const struct vmm_sync *sync, bool unwait);
void vmm_sync_end_words(struct vmm_sync_object *object);
/* One wait in the host more, or less. Sync lock held. */
static inline void vmm_sync_count_waiter(struct vmm_sync_object *object, uint32_t more)
{
	struct vmm_fence_page *page = atomic_load_explicit(&object->page, memory_order_relaxed);

	atomic_fetch_add(&object->waiters, more);
	if (vmm_unlikely(page != NULL))
		atomic_fetch_add(&page->awaited, more);
}

/* ---- what takes no lock (quick.c) ---- */

/* From now on it is found so. Process lock held. */
void vmm_sync_show_locked(const struct vmm_sync *sync);
/* Returns when nobody has it any more who found it so; it is in no table. */
void vmm_sync_await_lookers(const struct vmm_sync *sync);

/* ---- waits (wait.c) ---- */

/* Those whose waits have ended under the lock, to be woken without it. */
#define VMM_SYNC_BATCH 32u
struct vmm_sync_batch {
	struct vmm_os *os;
	_Atomic uint32_t *words[VMM_SYNC_BATCH]; /* NULL: somebody who is told */
	uint32_t count;
	struct vmm_list told;
};
static inline void vmm_sync_batch_init(struct vmm_sync_batch *batch, struct vmm_os *os)
{
	batch->os = os;
	batch->count = 0;
	vmm_list_init(&batch->told);
}
void vmm_sync_batch_flush(struct vmm_sync_batch *batch);

/*
 * The nodes have objects, with a reference each, and values. True: it is satisfied; otherwise it waits until it is done or
 * withdrawn. Sync lock held.
 */
bool vmm_sync_wait_begin_locked(struct vmm_sync_wait *wait);
/* False: it is done. */
bool vmm_sync_wait_withdraw_locked(struct vmm_sync_wait *wait);
/* Ends the waits whose values are there. No sync lock held. */
void vmm_sync_deliver(struct vmm_sync_object *object);
/* The same with the sync lock held, into a batch. False: that is full. */
bool vmm_sync_deliver_locked(struct vmm_sync_object *object, struct vmm_sync_batch *batch);
/* SFL-27: ends the CPU's waits. False: the batch was full, more are left. Sync lock held. */
bool vmm_sync_cancel_locked(struct vmm_sync_object *object, struct vmm_sync_batch *batch);
/* The event waits of a device that ends. */
void vmm_sync_cancel_events(struct vmm_device *device);

/* The next wait that is not by value and can take all it names does so, oldest first (type.c). Sync lock held. */
struct vmm_sync_wait *vmm_sync_queue_next_locked(struct vmm_sync_object *object);
/* Both for waits that are not by value. Sync lock held. */
bool vmm_sync_queue_begin_locked(struct vmm_sync_wait *wait);
void vmm_sync_queue_leave_locked(struct vmm_sync_wait *wait);

/* ---- keyed mutexes (keyed.c) ---- */
void vmm_keyed_end_process(struct vmm_process *process);
void vmm_keyed_end_device(struct vmm_device *device);

/* ---- the heap (heap.c) ---- */
void vmm_sync_heap_insert(struct vmm_sync_node **heap, struct vmm_sync_node *node);
void vmm_sync_heap_remove(struct vmm_sync_node **heap, struct vmm_sync_node *node);

/* ---- look-ups: the process's lock held ---- */

/* NULL and a finding: not a live synchronization object of the process (SYN-22). */
struct vmm_sync *vmm_sync_find_locked(struct vmm_process *process, uint32_t handle,
				      const char *what);
/* *device for a caller that names it by its handle. VMM_PENDING: it is paused. */
vmm_status vmm_sync_find_device_locked(const struct vmm_sync_caller *caller,
				       struct vmm_device **device);
/* Which rule a wait or signal of the CPU breaks on what is no monitored fence. */
const char *vmm_sync_cpu_rule(const struct vmm_sync_object *object, bool wait);
void vmm_sync_refuse(const struct vmm_process *process, const char *rule, uint32_t handle,
		     const char *what);
void vmm_sync_end(struct vmm_sync *sync); /* it is in no table and no list any more */

#endif
