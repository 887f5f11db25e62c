/* SPDX-License-Identifier: MIT */
/*
 * lock words: memory that a host shares with one client, so that the client locks and unlocks without a message
 * (docs/adr/0002-locks-without-a-message.md). A word is the gate of one allocation (src/memory/gate.h). The host writes a place
 * while its word is shut; while it is open the client changes the number of locks in it, and nothing else. What the host finds there
 * is the client's word for it, and believed of the client's own allocation alone.
 */
#ifndef VMM_BASE_LOCK_WORD_H
#define VMM_BASE_LOCK_WORD_H

#include <stdatomic.h>

#include "base/base.h"

/* handle << 32 | version << 18 | busy << 17 | open << 16 | locks; the version tells two openings of one gate apart */
#define VMM_LOCK_WORD_LOCKS_MAX    0xFFFFu
#define VMM_LOCK_WORD_OPEN         0x10000u
#define VMM_LOCK_WORD_BUSY         0x20000u
#define VMM_LOCK_WORD_VERSION      0x40000u
#define VMM_LOCK_WORD_HANDLE_SHIFT 32

struct vmm_lock_word {
	_Alignas(64) _Atomic uint64_t word;
	/* Of this opening: written before it. */
	_Atomic uint64_t
		epoch; /* the host's then (struct vmm_world); later it says nothing any more */
	_Atomic uint64_t address; /* the client's */
	_Atomic uint64_t views;   /* the instruction after which something is there */
	_Atomic uint32_t device;  /* handle */
	_Atomic uint32_t wddm2;   /* 1: by the rules of 2.x (LOCK-51) */
};

/* The host's page, which all clients read. */
struct vmm_lock_epoch {
	_Atomic uint64_t epoch;
	_Atomic uint32_t keeper; /* VMM_LOCK_HOST_GONE: there is no host any more */
};
#define VMM_LOCK_HOST_GONE 0x40000000u

/* How many a client has; a handle's is that of its index. Pages that nobody uses are not there. */
#define VMM_LOCK_WORDS 16384u

struct vmm_lock_words {
	_Alignas(64) _Atomic uint64_t executed; /* the client's: view instructions up to this one */
	struct vmm_lock_word at[VMM_LOCK_WORDS];
};

#define VMM_LOCK_WORD_INDEX_SHIFT 6
static inline uint32_t vmm_lock_word_index(uint32_t handle)
{
	return handle >> VMM_LOCK_WORD_INDEX_SHIFT & (VMM_LOCK_WORDS - 1);
}

static inline bool vmm_lock_word_is_open_for(uint64_t word, uint32_t handle)
{
	return word >> VMM_LOCK_WORD_HANDLE_SHIFT == handle && (word & VMM_LOCK_WORD_OPEN);
}

/*
 * May a lock with these flags go through an open gate? It asks for nothing that an idle allocation in view would have to be changed
 * for: of the flags of WDDM 1.x ReadOnly or WriteOnly, DonotWait, LockEntire and DonotEvict; from 2.0 on AcquireAperture,
 * UseAlternateVA and reserved bits are refused, and the rest say nothing (LOCK-51). `pages`: it has a list of them.
 */
static inline bool vmm_lock_flags_are_plain(bool wddm2, uint32_t flags, bool pages)
{
	uint32_t special = vmm_unlikely(wddm2) ? 0xFFFFFA40u : ~0x037u;

	return !(flags & special) && (flags & 0x3) != 0x3 && (vmm_unlikely(wddm2) || !pages);
}

#endif
