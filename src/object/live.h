/* SPDX-License-Identifier: MIT */
/*
 * live: what clients hold of devices and contexts. A HANDLE is a number that names a slot and one use of it, so that
 * a dead or an invented one is recognised without touching what it may once have named; and whoever ends an object
 * first waits until no thread is inside a call on it.
 *
 * A call announces itself in its thread's own word and then looks at the slot; leaving is a plain store. Neither is a
 * locked instruction (vmm_os_announce). The slots are static: they outlive every world.
 */
#ifndef VMM_OBJECT_LIVE_H
#define VMM_OBJECT_LIVE_H

#include <stdatomic.h>
#include "base/base.h"
#include "os/os.h"

enum vmm_live_kind { VMM_LIVE_DEVICE = 1, VMM_LIVE_CONTEXT };

/* A thread inside a call on an object; one at a time. */
struct vmm_visit {
	struct vmm_os *os;
	_Atomic uint64_t *word;
	uint64_t handle, before;
};

#define VMM_LIVE_SLOTS      65536u
#define VMM_LIVE_KIND_SHIFT 16
struct vmm_live_slot {
	/* while live; with a bit of live.c while it is being ended or nobody may enter; 0: free */
	_Atomic uint64_t handle;
	_Atomic(struct vmm_os *) os;
	_Atomic(void *) object;
	_Atomic uint32_t moved; /* futex of those who wait for visitors, or for the end */
	uint32_t generation, next_free;
};
extern struct vmm_live_slot
	vmm_live_slots[VMM_LIVE_SLOTS]; /* index 0 stays free: it ends the list */

/* NULL: more than 65535 at once. */
void *vmm_live_add(struct vmm_os *os, enum vmm_live_kind kind, void *object) VMM_MUST_CHECK;
/* The object, which stays until vmm_live_leave; NULL: not a live one of that kind. */
void *vmm_live_enter_slowly(struct vmm_visit *visit, enum vmm_live_kind kind, const void *handle);
void vmm_live_tell(const struct vmm_visit *visit);

static inline void vmm_live_leave(const struct vmm_visit *visit)
{
	const struct vmm_live_slot *slot = &vmm_live_slots[visit->handle & (VMM_LIVE_SLOTS - 1)];

	atomic_store_explicit(visit->word, visit->before, memory_order_release);
	if (vmm_unlikely(atomic_load_explicit(&slot->handle, memory_order_relaxed) !=
			 visit->handle))
		vmm_live_tell(visit);
}

static inline void *vmm_live_enter(struct vmm_visit *visit, enum vmm_live_kind kind,
				   const void *handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	const struct vmm_live_slot *slot = &vmm_live_slots[number & (VMM_LIVE_SLOTS - 1)];

	if (vmm_unlikely((number >> VMM_LIVE_KIND_SHIFT & 0xFFFF) != (uint64_t)kind ||
			 atomic_load_explicit(&slot->handle, memory_order_acquire) != number))
		return vmm_live_enter_slowly(visit, kind, handle);
	visit->handle = number;
	visit->os = atomic_load_explicit(&slot->os, memory_order_relaxed);
	visit->word = vmm_os_thread_using(visit->os);
	visit->before = vmm_os_announce(visit->word, number);
	/* Whoever ends or pauses it changes the slot before it looks at the words: one of the two sees the other. */
	if (vmm_likely(atomic_load(&slot->handle) == number))
		return atomic_load_explicit(&slot->object, memory_order_relaxed);
	vmm_live_leave(visit);
	return vmm_live_enter_slowly(visit, kind, handle);
}
/*
 * The object, if the caller is the one to end it: nobody enters any more, and nobody is inside. NULL: it was not live,
 * or somebody else is ending it. Not from inside a call on it.
 */
void *vmm_live_end(enum vmm_live_kind kind, const void *handle) VMM_MUST_CHECK;
void vmm_live_ended(const void *handle); /* the object is gone */
/*
 * Whoever enters, or ends it, waits until vmm_live_resume; on return nobody is inside. false: it was not live, or somebody
 * is ending it. Not from inside a call on it.
 */
bool vmm_live_pause(enum vmm_live_kind kind, const void *handle) VMM_MUST_CHECK;
/* The same in two steps: between them who is inside, and may stay for ever, can be told to come out. */
bool vmm_live_pause_begin(enum vmm_live_kind kind, const void *handle) VMM_MUST_CHECK;
void vmm_live_pause_finish(const void *handle);
bool vmm_live_is_paused(const void *handle);
/* Alive, and nobody pauses or ends it: by now it may be otherwise. */
static inline bool vmm_live_is_open(const void *handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;

	return atomic_load_explicit(&vmm_live_slots[number & (VMM_LIVE_SLOTS - 1)].handle,
				    memory_order_relaxed) == number;
}
void vmm_live_resume(const void *handle);
/* Waits for the vmm_live_ended of somebody else's vmm_live_end. */
void vmm_live_await_end(struct vmm_os *os, const void *handle);

#endif
