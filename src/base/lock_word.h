/* SPDX-License-Identifier: MIT */
/*
 * lock words: memory shared by the host and one client, in which the client locks and unlocks
 * allocations without a message (docs/adr/0002-locks-without-a-message.md). Each word is the fast
 * lock of one allocation (src/memory/fast_lock.h). The host writes the members of an entry while
 * its word is disabled. While it is enabled the client changes only the number of locks in it. The
 * host does not trust the content: it affects only the client's own allocations.
 */
#ifndef VMM_BASE_LOCK_WORD_H
#define VMM_BASE_LOCK_WORD_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/lock_flags.h"

/*
 * handle << 32 | version << 18 | busy << 17 | enabled << 16 | locks. The version differs each time
 * that the fast lock is enabled.
 */
#define VMM_LOCK_WORD_LOCKS_MAX    0xFFFFu
#define VMM_LOCK_WORD_ENABLED      0x10000u
#define VMM_LOCK_WORD_BUSY         0x20000u
#define VMM_LOCK_WORD_VERSION      0x40000u
#define VMM_LOCK_WORD_HANDLE_SHIFT 32

struct vmm_lock_word {
	_Alignas(64) _Atomic uint64_t word;
	/*
	 * The members below belong to one version of the word, and are written before it is
	 * enabled. epoch: the host's epoch at that time (struct vmm_world); once that has advanced
	 * the word is void.
	 */
	_Atomic uint64_t epoch;
	_Atomic uint64_t address; /* address of the content in the client */
	/* number of the view instruction after which the address is mapped */
	_Atomic uint64_t views;
	_Atomic uint32_t device;  /* handle of the device */
	_Atomic uint32_t wddm2;   /* 1: the rules of WDDM 2.x apply (LOCK-51) */
	_Atomic uint32_t discard; /* enum vmm_lock_discard */
	_Atomic uint32_t pages;   /* WDDM 1.x: pages that a list of pages may name (LOCK-18) */
};

/* What a lock with Discard does to an idle allocation. */
enum vmm_lock_discard {
	VMM_LOCK_DISCARD_RENAMES, /* it may return another instance */
	/*
	 * The allocation has one instance. Once that is not locked, it is the only one that Discard
	 * with NoExistingReference can return. (REN-12)
	 */
	VMM_LOCK_DISCARD_KEEPS,
	VMM_LOCK_DISCARD_IGNORED, /* the allocation is never renamed (REN-14); WDDM 2.x (LOCK-51) */
};

/* The host's page, mapped read-only by all clients. */
struct vmm_lock_epoch {
	_Atomic uint64_t epoch;
	_Atomic uint32_t watchdog; /* VMM_LOCK_HOST_GONE: the host has ended */
};
#define VMM_LOCK_HOST_GONE 0x40000000u

/* Words per client, indexed by the index of the handle. Unused pages are never allocated. */
#define VMM_LOCK_WORDS 16384u

struct vmm_lock_words {
	/* the last view instruction that the client has executed */
	_Alignas(64) _Atomic uint64_t executed;
	struct vmm_lock_word at[VMM_LOCK_WORDS];
};

#define VMM_LOCK_WORD_INDEX_SHIFT 6
static inline uint32_t vmm_lock_word_index(uint32_t handle)
{
	return handle >> VMM_LOCK_WORD_INDEX_SHIFT & (VMM_LOCK_WORDS - 1);
}

static inline bool vmm_lock_word_is_enabled_for(uint64_t word, uint32_t handle)
{
	return word >> VMM_LOCK_WORD_HANDLE_SHIFT == handle && (word & VMM_LOCK_WORD_ENABLED);
}

/*
 * Returns whether a lock with these flags can use the fast path: it asks for nothing that would
 * have to change an idle allocation that is mapped. WDDM 1.x flags: ReadOnly or WriteOnly,
 * DonotWait, LockEntire and DonotEvict; and Discard, if vmm_lock_discards_nothing says so. From 2.0
 * on AcquireAperture, UseAlternateVA and reserved bits are refused, and the rest have no effect
 * (LOCK-51). pages: the lock has a list of pages.
 */
static inline bool vmm_lock_flags_are_plain(bool wddm2, uint32_t flags, bool pages)
{
	uint32_t one_way = VMM_LOCK_READ_ONLY | VMM_LOCK_WRITE_ONLY;
	uint32_t discard = vmm_unlikely(flags & VMM_LOCK_DISCARD)
				   ? VMM_LOCK_DISCARD | VMM_LOCK_NO_EXISTING_REFERENCE
				   : 0;
	uint32_t special =
		vmm_unlikely(wddm2)
			? VMM_LOCK_ACQUIRE_APERTURE | VMM_LOCK_USE_ALTERNATE_VA | VMM_LOCK_RESERVED
			: ~(one_way | VMM_LOCK_DONOT_WAIT | VMM_LOCK_ENTIRE | VMM_LOCK_DONOT_EVICT |
			    discard);

	return !(flags & special) && (flags & one_way) != one_way &&
	       (vmm_unlikely(wddm2) || !pages);
}

/*
 * Returns whether a lock with Discard in its flags returns the instance that it names, and has
 * nothing to do but to count. `word` is enabled; discard: the member of that version of the word.
 */
static inline bool vmm_lock_discards_nothing(uint32_t discard, uint32_t flags, uint64_t word)
{
	return discard == VMM_LOCK_DISCARD_IGNORED ||
	       (discard == VMM_LOCK_DISCARD_KEEPS && (flags & VMM_LOCK_NO_EXISTING_REFERENCE) &&
		!(word & VMM_LOCK_WORD_LOCKS_MAX));
}

#endif
