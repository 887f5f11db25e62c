/* SPDX-License-Identifier: MIT */
/*
 * Slots, handles and the slow paths of hazard.h. A slot holds the handle while the object is live;
 * a flag bit in it (PAUSED_BIT, ENDING_BIT, STOPPED_BIT) makes the fast path of vmm_hazard_enter
 * fail.
 */
#include "object/hazard.h"

#define SLOTS            VMM_HAZARD_SLOTS
#define HANDLE_BIT       ((uint64_t)1 << 63) /* in every handle; in no pointer of a client */
#define ENDING_BIT       ((uint64_t)1 << 31)
#define PAUSED_BIT       ((uint64_t)1 << 30) /* higher than the bits of every kind */
#define STOPPED_BIT      ((uint64_t)1 << 29) /* likewise */
#define GENERATION_SHIFT 32
#define KIND_SHIFT       VMM_HAZARD_KIND_SHIFT
#define RESCAN_NS        1000000u

struct vmm_hazard_slot vmm_hazard_slots[VMM_HAZARD_SLOTS];
static atomic_flag list_busy = ATOMIC_FLAG_INIT;
static uint32_t first_free, never_used = 1; /* guarded by list_busy */

static uint64_t number(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static struct vmm_hazard_slot *slot_of(uint64_t handle)
{
	return &vmm_hazard_slots[handle & (SLOTS - 1)];
}

static bool is_handle_of(enum vmm_hazard_kind kind, uint64_t handle)
{
	return (handle & HANDLE_BIT) && !(handle & ENDING_BIT) &&
	       (handle >> KIND_SHIFT & 0x7FFF) == (uint64_t)kind;
}

static void list_lock(void)
{
	while (atomic_flag_test_and_set_explicit(&list_busy, memory_order_acquire))
		;
}

static void list_unlock(void)
{
	atomic_flag_clear_explicit(&list_busy, memory_order_release);
}

static struct vmm_hazard_slot *take_slot(void)
{
	uint32_t index;

	list_lock();
	index = first_free;
	if (index)
		first_free = vmm_hazard_slots[index].next_free;
	else if (never_used < SLOTS)
		index = never_used++;
	list_unlock();
	return index ? &vmm_hazard_slots[index] : NULL;
}

static void give_slot(struct vmm_hazard_slot *slot)
{
	list_lock();
	slot->next_free = first_free;
	first_free = (uint32_t)(slot - vmm_hazard_slots);
	list_unlock();
}

void *vmm_hazard_register(struct vmm_os *os, enum vmm_hazard_kind kind, void *object)
{
	struct vmm_hazard_slot *slot = take_slot();
	uint64_t handle;

	if (!slot)
		return NULL;
	slot->generation = (slot->generation + 1) & 0x7FFFFFFF;
	handle = HANDLE_BIT | (uint64_t)slot->generation << GENERATION_SHIFT |
		 (uint64_t)kind << KIND_SHIFT | (uint64_t)(slot - vmm_hazard_slots);
	atomic_store_explicit(&slot->os, os, memory_order_relaxed);
	atomic_store_explicit(&slot->object, object, memory_order_relaxed);
	atomic_store(&slot->handle, handle);
	return (void *)(uintptr_t)handle;
}

static void wake_waiters(struct vmm_hazard_slot *slot, struct vmm_os *os)
{
	atomic_fetch_add(&slot->changes, 1);
	vmm_os_wake(os, &slot->changes, UINT32_MAX);
}

/* Returns false if no thread can run anymore that could resume it. */
static bool await_resume(struct vmm_hazard_slot *slot, struct vmm_os *os, uint64_t handle)
{
	for (;;) {
		uint32_t seen = atomic_load(&slot->changes);

		if (atomic_load(&slot->handle) != (handle | PAUSED_BIT))
			return true;
		if (vmm_os_wait(os, &slot->changes, seen, VMM_OS_FOREVER,
				"the return of an adapter to full power", 0) == VMM_UNSUCCESSFUL)
			return false;
	}
}

void *vmm_hazard_enter_slow(struct vmm_hazard_guard *guard, enum vmm_hazard_kind kind,
			    const void *handle)
{
	struct vmm_hazard_slot *slot = slot_of(number(handle));

	guard->handle = number(handle);
	while (vmm_likely(is_handle_of(kind, guard->handle))) {
		uint64_t held = atomic_load_explicit(&slot->handle, memory_order_acquire);

		guard->os = atomic_load_explicit(&slot->os, memory_order_relaxed);
		if (vmm_unlikely(held != guard->handle)) {
			if (held != (guard->handle | PAUSED_BIT) ||
			    !await_resume(slot, guard->os, guard->handle))
				return NULL;
			continue;
		}
		guard->word = &VMM_OS_OWN(guard->os)->hazard;
		guard->before = vmm_os_hazard_publish(guard->word, guard->handle);
		/* See vmm_hazard_enter for the order of these accesses. */
		if (vmm_likely(atomic_load(&slot->handle) == guard->handle))
			return atomic_load_explicit(&slot->object, memory_order_relaxed);
		vmm_hazard_leave(guard);
	}
	return NULL;
}

void vmm_hazard_notify(const struct vmm_hazard_guard *guard)
{
	wake_waiters(slot_of(guard->handle), guard->os);
}

/*
 * Waits until no hazard pointer holds the handle. On real threads a leaving call may read the slot
 * before its own store is visible, and then wakes no waiter. Therefore the scan is repeated after
 * RESCAN_NS at the latest. An error of the wait means that no thread can run anymore.
 */
static void await_callers(struct vmm_hazard_slot *slot, struct vmm_os *os, uint64_t handle)
{
	for (;;) {
		uint32_t seen = atomic_load(&slot->changes);
		uint64_t deadline_ns = vmm_os_kind(os) == VMM_OS_SIM
					       ? VMM_OS_FOREVER
					       : vmm_os_now_ns(os) + RESCAN_NS;

		if (!vmm_os_hazard_is_held(os, handle) ||
		    vmm_os_wait(os, &slot->changes, seen, deadline_ns,
				"calls inside a device or context that ends",
				0) == VMM_UNSUCCESSFUL)
			return;
	}
}

/*
 * Sets these bits in a slot that holds the handle `live`, after the end of a pause. Returns false
 * if that is not live.
 */
static bool set_bit(struct vmm_hazard_slot *slot, uint64_t live, uint64_t bit)
{
	for (;;) {
		uint64_t expected = live;

		if (atomic_compare_exchange_strong(&slot->handle, &expected, live | bit))
			return true;
		if (expected != (live | PAUSED_BIT) ||
		    !await_resume(slot, atomic_load_explicit(&slot->os, memory_order_relaxed),
				  live))
			return false;
	}
}

static void *retire(enum vmm_hazard_kind kind, const void *handle, uint64_t bits)
{
	struct vmm_hazard_slot *slot = slot_of(number(handle));

	if (!is_handle_of(kind, number(handle)) || !set_bit(slot, number(handle), bits))
		return NULL;
	await_callers(slot, atomic_load_explicit(&slot->os, memory_order_relaxed), number(handle));
	return atomic_load_explicit(&slot->object, memory_order_relaxed);
}

void *vmm_hazard_retire(enum vmm_hazard_kind kind, const void *handle)
{
	return retire(kind, handle, ENDING_BIT);
}

void *vmm_hazard_retire_stopped(enum vmm_hazard_kind kind, const void *handle)
{
	return retire(kind, handle, ENDING_BIT | STOPPED_BIT);
}

bool vmm_hazard_pause_begin(enum vmm_hazard_kind kind, const void *handle)
{
	return is_handle_of(kind, number(handle)) &&
	       set_bit(slot_of(number(handle)), number(handle), PAUSED_BIT);
}

void vmm_hazard_pause_finish(const void *handle)
{
	struct vmm_hazard_slot *slot = slot_of(number(handle));

	await_callers(slot, atomic_load_explicit(&slot->os, memory_order_relaxed), number(handle));
}

bool vmm_hazard_pause(enum vmm_hazard_kind kind, const void *handle)
{
	if (!vmm_hazard_pause_begin(kind, handle))
		return false;
	vmm_hazard_pause_finish(handle);
	return true;
}

bool vmm_hazard_is_paused(const void *handle)
{
	return atomic_load(&slot_of(number(handle))->handle) == (number(handle) | PAUSED_BIT);
}

void vmm_hazard_resume(const void *handle)
{
	struct vmm_hazard_slot *slot = slot_of(number(handle));

	vmm_assert(atomic_load(&slot->handle) == (number(handle) | PAUSED_BIT));
	atomic_store(&slot->handle, number(handle));
	wake_waiters(slot, atomic_load_explicit(&slot->os, memory_order_relaxed));
}

void vmm_hazard_retired(const void *handle)
{
	struct vmm_hazard_slot *slot = slot_of(number(handle));
	struct vmm_os *os = atomic_load_explicit(&slot->os, memory_order_relaxed);

	vmm_assert(atomic_load(&slot->handle) == (number(handle) | ENDING_BIT));
	atomic_store(&slot->handle, 0);
	wake_waiters(slot, os);
	give_slot(slot);
}

void vmm_hazard_retired_stopped(const void *handle)
{
	struct vmm_hazard_slot *slot = slot_of(number(handle));
	struct vmm_os *os = atomic_load_explicit(&slot->os, memory_order_relaxed);

	vmm_assert(atomic_load(&slot->handle) == (number(handle) | ENDING_BIT | STOPPED_BIT));
	atomic_store(&slot->handle, number(handle) | STOPPED_BIT);
	wake_waiters(slot, os);
}

bool vmm_hazard_is_stopped(const void *handle)
{
	uint64_t held = atomic_load(&slot_of(number(handle))->handle);

	return handle && (held & ~ENDING_BIT) == (number(handle) | STOPPED_BIT);
}

void *vmm_hazard_end_stopped(enum vmm_hazard_kind kind, const void *handle)
{
	struct vmm_hazard_slot *slot = slot_of(number(handle));
	uint64_t held = number(handle) | STOPPED_BIT;

	if (!is_handle_of(kind, number(handle)) || !vmm_hazard_is_stopped(handle))
		return NULL;
	vmm_hazard_await_retired(atomic_load_explicit(&slot->os, memory_order_relaxed), handle);
	void *object = atomic_load_explicit(&slot->object, memory_order_relaxed);
	if (!atomic_compare_exchange_strong(&slot->handle, &held, 0))
		return NULL;
	give_slot(slot);
	return object;
}

void vmm_hazard_await_retired(struct vmm_os *os, const void *handle)
{
	struct vmm_hazard_slot *slot = slot_of(number(handle));

	for (;;) {
		uint32_t seen = atomic_load(&slot->changes);

		uint64_t held = atomic_load(&slot->handle);

		if ((held & ~STOPPED_BIT) != (number(handle) | ENDING_BIT) ||
		    vmm_os_wait(os, &slot->changes, seen, VMM_OS_FOREVER,
				"the end of a device in another thread", 0) == VMM_UNSUCCESSFUL)
			return;
	}
}
