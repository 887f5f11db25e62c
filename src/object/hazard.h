/* SPDX-License-Identifier: MIT */
/*
 * hazard: lifetime of devices and contexts by hazard pointers with an asymmetric barrier
 * (membarrier).
 *
 * A HANDLE is a number: the index of a slot, the kind of object (enum vmm_hazard_kind) and the
 * generation of the slot's use. A dead or invented handle is recognized without touching the object
 * that it once named.
 *
 * A call publishes the handle in the hazard pointer of its thread and then reads the slot again.
 * Leaving is a plain store. Neither is a locked instruction where the system has membarrier
 * (vmm_os_hazard_publish). A thread that ends an object first changes the slot and then waits until
 * no hazard pointer holds the handle. The slots are static: they outlive every world.
 */
#ifndef VMM_OBJECT_HAZARD_H
#define VMM_OBJECT_HAZARD_H

#include <stdatomic.h>
#include "base/base.h"
#include "os/os.h"

enum vmm_hazard_kind { VMM_HAZARD_DEVICE = 1, VMM_HAZARD_CONTEXT };

/*
 * Protects one object while the calling thread is inside a call on it. `before` is the value of the
 * thread's hazard pointer at the entry, which vmm_hazard_leave restores.
 */
struct vmm_hazard_guard {
	struct vmm_os *os;
	_Atomic uint64_t *word;
	uint64_t handle, before;
};

#define VMM_HAZARD_SLOTS      65536u
#define VMM_HAZARD_KIND_SHIFT 16
struct vmm_hazard_slot {
	/* The handle while live; with a flag bit of hazard.c while paused or ending; 0: free. */
	_Atomic uint64_t handle;
	_Atomic(struct vmm_os *) os;
	_Atomic(void *) object;
	/*
	 * Incremented at each change. Futex of threads that wait for callers, a resume or the end.
	 */
	_Atomic uint32_t changes;
	uint32_t generation, next_free;
};
/* Index 0 is never used: it terminates the free list. */
extern struct vmm_hazard_slot vmm_hazard_slots[VMM_HAZARD_SLOTS];

/* Assigns a handle to the object. Returns NULL if all 65535 slots are in use. */
void *vmm_hazard_register(struct vmm_os *os, enum vmm_hazard_kind kind,
			  void *object) VMM_MUST_CHECK;
/*
 * Enters the object: returns it, and it stays valid until vmm_hazard_leave. Returns NULL if the
 * handle is not a live one of that kind. Waits while the object is paused. This is the slow path of
 * vmm_hazard_enter.
 */
void *vmm_hazard_enter_slow(struct vmm_hazard_guard *guard, enum vmm_hazard_kind kind,
			    const void *handle);
/* Wakes threads that wait for callers of the object, after vmm_hazard_leave found it changed. */
void vmm_hazard_notify(const struct vmm_hazard_guard *guard);

/* Leaves the object, which the caller must not use afterwards. */
VMM_ALWAYS_INLINE void vmm_hazard_leave(const struct vmm_hazard_guard *guard)
{
	const struct vmm_hazard_slot *slot =
		&vmm_hazard_slots[guard->handle & (VMM_HAZARD_SLOTS - 1)];

	atomic_store_explicit(guard->word, guard->before, memory_order_release);
	if (vmm_unlikely(atomic_load_explicit(&slot->handle, memory_order_relaxed) !=
			 guard->handle))
		vmm_hazard_notify(guard);
}

/* Like vmm_hazard_enter_slow; inline for live objects that are not paused. */
VMM_ALWAYS_INLINE void *vmm_hazard_enter(struct vmm_hazard_guard *guard, enum vmm_hazard_kind kind,
					 const void *handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	const struct vmm_hazard_slot *slot = &vmm_hazard_slots[number & (VMM_HAZARD_SLOTS - 1)];

	if (vmm_unlikely((number >> VMM_HAZARD_KIND_SHIFT & 0xFFFF) != (uint64_t)kind ||
			 atomic_load_explicit(&slot->handle, memory_order_acquire) != number))
		return vmm_hazard_enter_slow(guard, kind, handle);
	guard->handle = number;
	guard->os = atomic_load_explicit(&slot->os, memory_order_relaxed);
	guard->word = &VMM_OS_OWN(guard->os)->hazard;
	guard->before = vmm_os_hazard_publish(guard->word, number);
	/*
	 * A thread that ends or pauses the object changes the slot before it scans the hazard
	 * pointers. So at least one of the two threads sees the other's store.
	 */
	if (vmm_likely(atomic_load(&slot->handle) == number))
		return atomic_load_explicit(&slot->object, memory_order_relaxed);
	vmm_hazard_leave(guard);
	return vmm_hazard_enter_slow(guard, kind, handle);
}
/*
 * The usual case of vmm_hazard_enter alone. `object` is NULL, and nothing was entered, if the
 * handle is not live, if the object is paused, or if the thread has last used another world. What
 * the caller needs to leave again is in the result, which stays in registers.
 */
struct vmm_hazard_entry {
	void *object;
	struct vmm_os *os;
	_Atomic uint64_t *word;
	uint64_t handle, before;
};
VMM_ALWAYS_INLINE void vmm_hazard_leave_quick(struct vmm_hazard_entry entry)
{
	const struct vmm_hazard_slot *slot =
		&vmm_hazard_slots[entry.handle & (VMM_HAZARD_SLOTS - 1)];

	atomic_store_explicit(entry.word, entry.before, memory_order_release);
	if (vmm_unlikely(atomic_load_explicit(&slot->handle, memory_order_relaxed) != entry.handle))
		vmm_hazard_notify(
			&(struct vmm_hazard_guard){.os = entry.os, .handle = entry.handle});
}
VMM_ALWAYS_INLINE struct vmm_hazard_entry vmm_hazard_enter_quick(enum vmm_hazard_kind kind,
								 const void *handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	const struct vmm_hazard_slot *slot = &vmm_hazard_slots[number & (VMM_HAZARD_SLOTS - 1)];
	struct vmm_hazard_entry entry = {.handle = number};

	if (vmm_unlikely((number >> VMM_HAZARD_KIND_SHIFT & 0xFFFF) != (uint64_t)kind ||
			 atomic_load_explicit(&slot->handle, memory_order_acquire) != number))
		return entry;
	entry.os = atomic_load_explicit(&slot->os, memory_order_relaxed);
	if (vmm_unlikely(vmm_os_here.id != VMM_OS_FRONT(entry.os)->id))
		return entry;
	entry.word = &vmm_os_here.own->hazard;
	entry.before = vmm_os_hazard_publish(entry.word, number);
	/* As in vmm_hazard_enter: one of the two threads sees the other's store. */
	if (vmm_likely(atomic_load(&slot->handle) == number))
		entry.object = atomic_load_explicit(&slot->object, memory_order_relaxed);
	else
		vmm_hazard_leave_quick(entry);
	return entry;
}
/*
 * Retires the object: later calls cannot enter, and on return no call is inside. Returns the
 * object, which the caller ends. Returns NULL if it was not live or another thread is ending it.
 * Must not be called from inside a call on it.
 */
void *vmm_hazard_retire(enum vmm_hazard_kind kind, const void *handle) VMM_MUST_CHECK;
/* Frees the handle, after the object has been destroyed. */
void vmm_hazard_retired(const void *handle);
/*
 * The same two for an object whose adapter stops: its handle is not freed. It stays one that no
 * call can enter, and vmm_hazard_is_stopped distinguishes it from other dead handles, also while
 * the object is being ended. vmm_hazard_end_stopped frees it; it waits for the stop, and returns
 * the object, or NULL if the handle is not such a one.
 */
void *vmm_hazard_retire_stopped(enum vmm_hazard_kind kind, const void *handle) VMM_MUST_CHECK;
void vmm_hazard_retired_stopped(const void *handle);
bool vmm_hazard_is_stopped(const void *handle);
void *vmm_hazard_end_stopped(enum vmm_hazard_kind kind, const void *handle) VMM_MUST_CHECK;
/*
 * Pauses the object: threads that enter or retire it wait until vmm_hazard_resume. On return no
 * call is inside. Returns false if it was not live or a thread is ending it. Must not be called
 * from inside a call on it.
 */
bool vmm_hazard_pause(enum vmm_hazard_kind kind, const void *handle) VMM_MUST_CHECK;
/*
 * vmm_hazard_pause in two steps. Between them the caller can unblock calls that sleep inside
 * without a limit.
 */
bool vmm_hazard_pause_begin(enum vmm_hazard_kind kind, const void *handle) VMM_MUST_CHECK;
void vmm_hazard_pause_finish(const void *handle);
bool vmm_hazard_is_paused(const void *handle);
/*
 * Returns whether the object is live, and neither paused nor ending. The answer may be outdated on
 * return.
 */
static inline bool vmm_hazard_is_open(const void *handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;

	return atomic_load_explicit(&vmm_hazard_slots[number & (VMM_HAZARD_SLOTS - 1)].handle,
				    memory_order_relaxed) == number;
}
void vmm_hazard_resume(const void *handle);
/* Waits for the vmm_hazard_retired that follows another thread's vmm_hazard_retire. */
void vmm_hazard_await_retired(struct vmm_os *os, const void *handle);

#endif
