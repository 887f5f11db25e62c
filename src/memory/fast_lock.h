/* SPDX-License-Identifier: MIT */
/*
 * Fast lock: the lock-free fast path of CPU locks (D3DKMTLock, D3DKMTUnlock and their WDDM 2.x
 * forms).
 *
 * Each lockable instance has a *lock word*, a versioned lock count in one 64-bit atomic:
 *
 *	handle << 32 | version << 18 | busy << 17 | enabled << 16 | locks
 *
 * Enabled: a lock has nothing to do but to count. The instance is idle (WDDM 1.x), or no
 * incomplete paging operation writes it (2.x); it is mapped for the CPU where it is, and not
 * offered. Lock and unlock are each one compare-and-swap of the word (count + 1,
 * count - 1), without the paging lock.
 *
 * Disabled: the count is in `lock_count` of instance and ref, guarded by the paging lock. Callers
 * take the slow path.
 *
 * Busy (and disabled): the GPU uses the instance until a packet is complete. `packet`, beside the
 * word, names that packet. A lock with DonotWait is refused after two loads of the word.
 *
 * Disabling is one atomic exchange of the word under the paging lock. The old value holds the final
 * count. A thread that holds the paging lock disables the word before it reads the count or changes
 * anything that a lock depends on. A slow-path lock enables the word again when it finds that the
 * next lock would have nothing to do.
 *
 * The race with a thread that disables the word is an ABA problem. A locking thread loads the word,
 * then the address that it will return, and then swaps. In between the word may have been disabled
 * and enabled again, for another address, with the same handle and count. Each enabling, and each
 * publication of a busy packet, therefore adds 1 to the version; the swap compares it and fails.
 * The version has 14 bits: only a thread that is delayed between load and swap for an exact
 * multiple of 16384 publications could be deceived. The handle in the word protects against reuse
 * of the table entry by another allocation in the same way.
 *
 * The tables of a device live as long as the device. A thread with a stale handle thus always reads
 * valid memory, and finds a word that is disabled or has another handle.
 *
 * An out-of-process client has a second lock word per instance, in memory shared with the host.
 * Then that word is enabled and the host's own stays disabled
 * (docs/adr/0002-locks-without-a-message.md). docs/locking.md has the whole protocol.
 */
#ifndef VMM_MEMORY_FAST_LOCK_H
#define VMM_MEMORY_FAST_LOCK_H

#include "base/lock_word.h"
#include "memory/allocation.h"

#define VMM_FAST_LOCK_LOCKS_MAX    VMM_LOCK_WORD_LOCKS_MAX
#define VMM_FAST_LOCK_ENABLED      VMM_LOCK_WORD_ENABLED
#define VMM_FAST_LOCK_BUSY         VMM_LOCK_WORD_BUSY
#define VMM_FAST_LOCK_VERSION      VMM_LOCK_WORD_VERSION
#define VMM_FAST_LOCK_VERSION_MASK 0xFFFC0000u
#define VMM_FAST_LOCK_HANDLE_SHIFT VMM_LOCK_WORD_HANDLE_SHIFT

struct vmm_fast_lock {
	/*
	 * The lock word. Any thread may change the count while it is enabled; all else needs the
	 * paging lock.
	 */
	_Alignas(128) _Atomic uint64_t word;
	/* What a lock returns. Written under the paging lock before the word is enabled. */
	_Atomic(char *) address;
	_Atomic uint64_t size_bytes;
	_Atomic uint32_t discard; /* enum vmm_lock_discard; written likewise */
	/* While busy: the packet that a lock would wait for, as timeline << 56 | sequence. */
	_Atomic uint64_t packet;
	/* Guarded by the paging lock. */
	struct vmm_ref *ref; /* NULL: the entry is unused */
	struct vmm_instance *instance;
	bool enabled, busy; /* copies of the word's bits; enabled also where the client's word is */
	bool out_of_process;               /* enabled is the client's word, not this one */
	struct vmm_lock_word *client_word; /* of an out-of-process client; NULL: none */
};

/* The fast locks of one device, indexed by the low bits of the handle's index. */
struct vmm_fast_lock_table {
	/*
	 * The smaller table that this one replaced. It stays, because other threads may still read
	 * it.
	 */
	struct vmm_fast_lock_table *previous;
	void *memory;
	uint32_t mask, bound;
	struct vmm_fast_lock *fast_lock;
};

static inline struct vmm_fast_lock *vmm_fast_lock_of(const struct vmm_device *device,
						     uint32_t handle)
{
	const struct vmm_fast_lock_table *table =
		atomic_load_explicit(&device->fast_locks, memory_order_acquire);

	return vmm_likely(table != NULL)
		       ? &table->fast_lock[handle >> VMM_HANDLE_INDEX_SHIFT & table->mask]
		       : NULL;
}

/*
 * Fast path of a CPU lock: adds one to the count if the word of HANDLE is enabled. Returns the CPU
 * address and sets *size_bytes. Returns NULL if the word is disabled or the count is at its
 * maximum, or if Discard in the flags may rename; then the caller takes the slow path. Needs no
 * lock.
 */
static inline char *vmm_fast_lock_acquire(const struct vmm_device *device, uint32_t handle,
					  uint32_t flags, uint64_t *size_bytes)
{
	struct vmm_fast_lock *fast_lock = vmm_fast_lock_of(device, handle);

	if (vmm_unlikely(!fast_lock))
		return NULL;
	uint64_t word = atomic_load_explicit(&fast_lock->word, memory_order_acquire);
	while (vmm_likely(vmm_lock_word_is_enabled_for(word, handle) &&
			  (word & VMM_FAST_LOCK_LOCKS_MAX) != VMM_FAST_LOCK_LOCKS_MAX)) {
		/* Belongs to this version of the word, or the swap fails (ABA, see above). */
		char *address = atomic_load_explicit(&fast_lock->address, memory_order_relaxed);

		*size_bytes = atomic_load_explicit(&fast_lock->size_bytes, memory_order_relaxed);
		if (vmm_unlikely(flags & VMM_LOCK_DISCARD) &&
		    !vmm_lock_discards_nothing(
			    atomic_load_explicit(&fast_lock->discard, memory_order_relaxed), flags,
			    word))
			return NULL;
		if (vmm_likely(atomic_compare_exchange_weak_explicit(&fast_lock->word, &word,
								     word + 1, memory_order_acq_rel,
								     memory_order_acquire)))
			return address;
	}
	return NULL;
}

/*
 * Fast path of a CPU unlock: subtracts one from the count if the word of HANDLE is enabled and
 * counts a lock. Returns false otherwise; then the caller takes the slow path. Needs no lock.
 */
static inline bool vmm_fast_lock_release(const struct vmm_device *device, uint32_t handle)
{
	struct vmm_fast_lock *fast_lock = vmm_fast_lock_of(device, handle);

	if (vmm_unlikely(!fast_lock))
		return false;
	uint64_t word = atomic_load_explicit(&fast_lock->word, memory_order_relaxed);
	while (vmm_likely(vmm_lock_word_is_enabled_for(word, handle) &&
			  (word & VMM_FAST_LOCK_LOCKS_MAX)))
		if (vmm_likely(atomic_compare_exchange_weak_explicit(&fast_lock->word, &word,
								     word - 1, memory_order_acq_rel,
								     memory_order_relaxed)))
			return true;
	return false;
}

/*
 * Returns true if the word of HANDLE is busy and its packet is not complete. Then *timeline and
 * *sequence are the packet that a lock would wait for. Needs no lock.
 */
bool vmm_fast_lock_is_busy(const struct vmm_device *device, uint32_t handle, uint32_t *timeline,
			   uint64_t *sequence);

/* ---- The caller of everything below holds the paging lock. ---- */

/* Disables the fast path and brings lock_count of instance and ref up to date. */
void vmm_fast_lock_disable_slow(struct vmm_fast_lock *fast_lock);
static inline void vmm_fast_lock_disable(const struct vmm_instance *instance)
{
	if (vmm_unlikely(instance->has_fast_lock))
		vmm_fast_lock_disable_slow(instance->fast_lock);
}
/*
 * Returns the number of locks. Disables the fast path, so the number stays valid while the paging
 * lock is held.
 */
static inline uint32_t vmm_locks(const struct vmm_instance *instance)
{
	vmm_fast_lock_disable(instance);
	return instance->lock_count;
}
/*
 * Returns the number of locks without disabling the fast path. The number may be out of date on
 * return.
 */
static inline uint32_t vmm_locks_snapshot(const struct vmm_instance *instance)
{
	if (vmm_likely(!instance->has_fast_lock || !instance->fast_lock->enabled))
		return instance->lock_count;
	return atomic_load_explicit(vmm_unlikely(instance->fast_lock->out_of_process)
					    ? &instance->fast_lock->client_word->word
					    : &instance->fast_lock->word,
				    memory_order_relaxed) &
	       VMM_FAST_LOCK_LOCKS_MAX;
}
/*
 * Returns the ref of HANDLE if a fast lock is bound to it, else NULL. Saves a handle table lookup.
 */
static inline struct vmm_ref *vmm_fast_lock_find(const struct vmm_device *device, uint32_t handle)
{
	const struct vmm_fast_lock *fast_lock = vmm_fast_lock_of(device, handle);

	return vmm_likely(fast_lock && fast_lock->ref && fast_lock->ref->handle == handle)
		       ? fast_lock->ref
		       : NULL;
}
/*
 * Returns true if the instance's current view maps its placement and a lock would have no content
 * to move or flush.
 */
bool vmm_fast_lock_is_mapped(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Binds a fast lock to the ref's instance, unless its allocation is of a kind for which none is
 * ever enabled.
 */
void vmm_fast_lock_bind(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/* Enables the fast path of the ref's instance if a lock would have nothing to do but to count. */
void vmm_fast_lock_enable(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * As vmm_fast_lock_enable, for a caller that has made all its checks since it took the paging lock.
 * The instance has a fast lock, which is disabled. A WDDM 1.x caller called
 * vmm_fast_lock_may_enable before the other checks.
 */
void vmm_fast_lock_enable_checked(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Returns true if no submission is between lookup and use: every allocation that a submission
 * references is marked as used. Otherwise an instance that looks idle may not be
 * (vmm_sched_render).
 */
static inline bool vmm_fast_lock_may_enable(const struct vmm_adapter *adapter)
{
	return atomic_load(&adapter->submissions) ==
	       atomic_load_explicit(&adapter->captured, memory_order_acquire);
}
/*
 * Publishes that packet as busy: a lock with DonotWait was refused because of it, and for no other
 * reason (LOCK-08).
 */
void vmm_fast_lock_note_busy(struct vmm_ref *ref, uint32_t timeline, uint64_t sequence)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Disables and unbinds the instance's fast lock, if any. Called before the instance or its handle
 * ends.
 */
void vmm_fast_lock_unbind(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);
/* Asserts that all that an enabled or busy word claims is true of the instance. */
void vmm_fast_lock_check(const struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class);
/* Frees all tables of the device. It has no refs any more, and no thread is inside a call on it. */
void vmm_fast_lock_table_free(struct vmm_device *device);

#endif
