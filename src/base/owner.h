/* SPDX-License-Identifier: MIT */
/*
 * owner: which thread holds a mutex that does not say so itself, such as a pthread mutex. For
 * asserts only. The functions that take and release the mutex also set and clear the owner, both
 * while they hold the mutex.
 */
#ifndef VMM_BASE_OWNER_H
#define VMM_BASE_OWNER_H

#include <stdatomic.h>

#include "base/base.h"

struct vmm_owner {
	_Atomic(const void *) thread; /* address of the thread's vmm_owner_mark; NULL: free */
};

/* Its address identifies the thread. It stays the same in the child of fork(). */
extern _Thread_local char vmm_owner_mark __attribute__((tls_model("initial-exec")));

static inline void vmm_owner_set(struct vmm_owner *owner)
{
	atomic_store_explicit(&owner->thread, &vmm_owner_mark, memory_order_relaxed);
}
static inline void vmm_owner_clear(struct vmm_owner *owner)
{
	atomic_store_explicit(&owner->thread, NULL, memory_order_relaxed);
}
static inline bool vmm_owner_is_caller(const struct vmm_owner *owner)
{
	return atomic_load_explicit(&owner->thread, memory_order_relaxed) == &vmm_owner_mark;
}
/*
 * First statement of each function that needs the mutex of OWNER: asserts that the calling thread
 * holds it. Release builds leave it out, like vmm_assert_held (os/os.h).
 */
#define vmm_assert_owned(owner) vmm_assert_debug(vmm_owner_is_caller(owner))

#endif
