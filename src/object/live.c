/* SPDX-License-Identifier: MIT */
#include "object/live.h"

#define SLOTS            VMM_LIVE_SLOTS
#define HANDLE_BIT       ((uint64_t)1 << 63) /* no pointer of a client's has it */
#define ENDING_BIT       ((uint64_t)1 << 31)
#define PAUSED_BIT       ((uint64_t)1 << 30) /* above every kind */
#define GENERATION_SHIFT 32
#define KIND_SHIFT       VMM_LIVE_KIND_SHIFT
#define RESCAN_NS        1000000u

struct vmm_live_slot vmm_live_slots[VMM_LIVE_SLOTS];
static atomic_flag list_busy = ATOMIC_FLAG_INIT;
static uint32_t first_free, never_used = 1; /* guarded by list_busy */

static uint64_t number(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static struct vmm_live_slot *slot_of(uint64_t handle)
{
	return &vmm_live_slots[handle & (SLOTS - 1)];
}

static bool names_a(enum vmm_live_kind kind, uint64_t handle)
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

static struct vmm_live_slot *take_slot(void)
{
	uint32_t index;

	list_lock();
	index = first_free;
	if (index)
		first_free = vmm_live_slots[index].next_free;
	else if (never_used < SLOTS)
		index = never_used++;
	list_unlock();
	return index ? &vmm_live_slots[index] : NULL;
}

void *vmm_live_add(struct vmm_os *os, enum vmm_live_kind kind, void *object)
{
	struct vmm_live_slot *slot = take_slot();
	uint64_t handle;

	if (!slot)
		return NULL;
	slot->generation = (slot->generation + 1) & 0x7FFFFFFF;
	handle = HANDLE_BIT | (uint64_t)slot->generation << GENERATION_SHIFT |
		 (uint64_t)kind << KIND_SHIFT | (uint64_t)(slot - vmm_live_slots);
	atomic_store_explicit(&slot->os, os, memory_order_relaxed);
	atomic_store_explicit(&slot->object, object, memory_order_relaxed);
	atomic_store(&slot->handle, handle);
	return (void *)(uintptr_t)handle;
}

static void tell(struct vmm_live_slot *slot, struct vmm_os *os)
{
	atomic_fetch_add(&slot->moved, 1);
	vmm_os_wake(os, &slot->moved, UINT32_MAX);
}

/* false: nothing will run any more that could resume it. */
static bool await_resume(struct vmm_live_slot *slot, struct vmm_os *os, uint64_t handle)
{
	for (;;) {
		uint32_t seen = atomic_load(&slot->moved);

		if (atomic_load(&slot->handle) != (handle | PAUSED_BIT))
			return true;
		if (vmm_os_wait(os, &slot->moved, seen, VMM_OS_FOREVER,
				"the return of an adapter to full power", 0) == VMM_UNSUCCESSFUL)
			return false;
	}
}

void *vmm_live_enter_slowly(struct vmm_visit *visit, enum vmm_live_kind kind, const void *handle)
{
	struct vmm_live_slot *slot = slot_of(number(handle));

	visit->handle = number(handle);
	while (vmm_likely(names_a(kind, visit->handle))) {
		uint64_t held = atomic_load_explicit(&slot->handle, memory_order_acquire);

		visit->os = atomic_load_explicit(&slot->os, memory_order_relaxed);
		if (vmm_unlikely(held != visit->handle)) {
			if (held != (visit->handle | PAUSED_BIT) ||
			    !await_resume(slot, visit->os, visit->handle))
				return NULL;
			continue;
		}
		visit->word = vmm_os_thread_using(visit->os);
		visit->before = vmm_os_announce(visit->word, visit->handle);
		/* Whoever ends or pauses it changes the slot before it looks at the words: one of the two sees the other. */
		if (vmm_likely(atomic_load(&slot->handle) == visit->handle))
			return atomic_load_explicit(&slot->object, memory_order_relaxed);
		vmm_live_leave(visit);
	}
	return NULL;
}

void vmm_live_tell(const struct vmm_visit *visit)
{
	tell(slot_of(visit->handle), visit->os);
}

/*
 * On threads a leaver may look at the slot before its own store is seen, and tell nobody: hence the second look after a
 * while. An error: nothing runs any more, nobody will come out.
 */
static void await_visitors(struct vmm_live_slot *slot, struct vmm_os *os, uint64_t handle)
{
	for (;;) {
		uint32_t seen = atomic_load(&slot->moved);
		uint64_t deadline_ns = vmm_os_kind(os) == VMM_OS_SIM
					       ? VMM_OS_FOREVER
					       : vmm_os_now_ns(os) + RESCAN_NS;

		if (!vmm_os_any_thread_using(os, handle) ||
		    vmm_os_wait(os, &slot->moved, seen, deadline_ns,
				"calls inside a device or context that ends",
				0) == VMM_UNSUCCESSFUL)
			return;
	}
}

/* From `live` to that with `bit`, waiting for the end of a pause; false: it is not live. */
static bool change(struct vmm_live_slot *slot, uint64_t live, uint64_t bit)
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

void *vmm_live_end(enum vmm_live_kind kind, const void *handle)
{
	struct vmm_live_slot *slot = slot_of(number(handle));

	if (!names_a(kind, number(handle)) || !change(slot, number(handle), ENDING_BIT))
		return NULL;
	await_visitors(slot, atomic_load_explicit(&slot->os, memory_order_relaxed), number(handle));
	return atomic_load_explicit(&slot->object, memory_order_relaxed);
}

bool vmm_live_pause_begin(enum vmm_live_kind kind, const void *handle)
{
	return names_a(kind, number(handle)) &&
	       change(slot_of(number(handle)), number(handle), PAUSED_BIT);
}

void vmm_live_pause_finish(const void *handle)
{
	struct vmm_live_slot *slot = slot_of(number(handle));

	await_visitors(slot, atomic_load_explicit(&slot->os, memory_order_relaxed), number(handle));
}

bool vmm_live_pause(enum vmm_live_kind kind, const void *handle)
{
	if (!vmm_live_pause_begin(kind, handle))
		return false;
	vmm_live_pause_finish(handle);
	return true;
}

bool vmm_live_is_paused(const void *handle)
{
	return atomic_load(&slot_of(number(handle))->handle) == (number(handle) | PAUSED_BIT);
}

void vmm_live_resume(const void *handle)
{
	struct vmm_live_slot *slot = slot_of(number(handle));

	vmm_assert(atomic_load(&slot->handle) == (number(handle) | PAUSED_BIT));
	atomic_store(&slot->handle, number(handle));
	tell(slot, atomic_load_explicit(&slot->os, memory_order_relaxed));
}

void vmm_live_ended(const void *handle)
{
	struct vmm_live_slot *slot = slot_of(number(handle));
	struct vmm_os *os = atomic_load_explicit(&slot->os, memory_order_relaxed);

	vmm_assert(atomic_load(&slot->handle) == (number(handle) | ENDING_BIT));
	atomic_store(&slot->handle, 0);
	tell(slot, os);
	list_lock();
	slot->next_free = first_free;
	first_free = (uint32_t)(slot - vmm_live_slots);
	list_unlock();
}

void vmm_live_await_end(struct vmm_os *os, const void *handle)
{
	struct vmm_live_slot *slot = slot_of(number(handle));

	for (;;) {
		uint32_t seen = atomic_load(&slot->moved);

		if (atomic_load(&slot->handle) != (number(handle) | ENDING_BIT) ||
		    vmm_os_wait(os, &slot->moved, seen, VMM_OS_FOREVER,
				"the end of a device in another thread", 0) == VMM_UNSUCCESSFUL)
			return;
	}
}
