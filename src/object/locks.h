/* SPDX-License-Identifier: MIT */
/*
 * locks: the lock classes of the core, and, except for the paging lock, the only functions that
 * take and release them. A class stands for the locks of one rank: clang checks that a function
 * which requires a class is called with a lock of that class held, and vmm_assert_held checks the
 * object at run time.
 * docs/locking.md has the ranks, the order, and what each lock protects.
 *
 * Included by object.h, which defines the structures. The functions of the paging lock are in
 * memory/memory.h.
 */
#ifndef VMM_OBJECT_LOCKS_H
#define VMM_OBJECT_LOCKS_H

#include "base/base.h"

extern struct vmm_lock_class vmm_submit_lock_class;
extern struct vmm_lock_class vmm_paging_lock_class;
extern struct vmm_lock_class vmm_process_lock_class;
extern struct vmm_lock_class vmm_state_lock_class;
extern struct vmm_lock_class vmm_sync_lock_class;
extern struct vmm_lock_class vmm_shared_lock_class;

#endif
