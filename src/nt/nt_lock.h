/* SPDX-License-Identifier: MIT */
/*
 * A shared or exclusive lock in one word, under the fast mutexes, push locks and shared spin locks
 * of drivers. Zero is free. SELF: the identity of the calling thread (nt_identity).
 */
#ifndef VMM_NT_NT_LOCK_H
#define VMM_NT_NT_LOCK_H

#include "nt/nt_internal.h"

typedef _Atomic uint32_t nt_lock_word;

bool nt_lock_try_exclusive(nt_lock_word *word, uint32_t self);
bool nt_lock_try_shared(nt_lock_word *word);
/* While the thread sleeps, VMM_NT_SLOT_WAIT names the service. */
void nt_lock_exclusive(struct vmm_nt *nt, const char *service, nt_lock_word *word, uint32_t self);
void nt_lock_shared(struct vmm_nt *nt, const char *service, nt_lock_word *word);
/* Return false, and change nothing, if the caller (or, shared, no thread) holds it so. */
bool nt_unlock_exclusive(struct vmm_nt *nt, nt_lock_word *word, uint32_t self);
bool nt_unlock_shared(struct vmm_nt *nt, nt_lock_word *word);
/* Returns false if other threads share the lock, or none does. */
bool nt_lock_upgrade(nt_lock_word *word, uint32_t self);
/* The thread that holds the lock exclusively; 0: none. */
uint32_t nt_lock_owner(const nt_lock_word *word);

#endif
