/* SPDX-License-Identifier: MIT */
/*
 * The values of monitored fences (MFN-06, MFN-07, MFN-10). A signal stores, then looks whether anybody waits; a wait says that it waits, then looks at
 * the value: both in one total order, so one of the two sees the other, and a signal that nobody waits for is one locked
 * instruction.
 */
#include "sync/sync_private.h"

#define NARROW_DISTANCE (UINT32_MAX / 2) /* MFN-08 */

/* The lower half of the slot; what is above it stays as it is. */
static _Atomic uint32_t *narrow_word(const struct vmm_sync_object *object)
{
	return (_Atomic uint32_t *)(void *)object->word;
}

uint64_t vmm_sync_narrow_value(const struct vmm_sync_object *object)
{
	if (vmm_unlikely(atomic_load(&object->at_maximum)))
		return UINT64_MAX;
	uint64_t last = atomic_load(&object->last);
	uint32_t stored = atomic_load(narrow_word(object));

	/* Whoever sees only one of the two stores of a signal gets the value before it, or after it. */
	return last + (uint64_t)(int64_t)(int32_t)(stored - (uint32_t)last);
}

bool vmm_sync_in_range(const struct vmm_sync_object *object, uint64_t value, bool rewind)
{
	if (!object->narrow || atomic_load(&object->at_maximum))
		return true;
	uint64_t now = vmm_sync_narrow_value(object);

	return value >= now ? value - now <= NARROW_DISTANCE
			    : !rewind || now - value <= NARROW_DISTANCE;
}

static bool raise_narrow(struct vmm_sync_object *object, uint64_t value, bool rewind)
{
	vmm_os_mutex_lock(&object->world->sync_lock);
	bool changes = rewind || value > vmm_sync_narrow_value(object);

	if (changes) {
		atomic_store(narrow_word(object), (uint32_t)value);
		atomic_store(&object->last, value);
		atomic_store(&object->at_maximum, false);
	}
	vmm_os_mutex_unlock(&object->world->sync_lock);
	return changes && atomic_load(&object->waiters) != 0;
}

bool vmm_sync_raise_slowly(struct vmm_sync_object *object, uint64_t value, bool rewind)
{
	if (vmm_unlikely(object->narrow))
		return raise_narrow(object, value, rewind);
	if (vmm_unlikely(rewind)) {
		atomic_store(object->word, value); /* MFN-24 */
	} else {
		uint64_t now = atomic_load_explicit(object->word, memory_order_relaxed);

		do {
			if (value <= now)
				return false; /* MFN-23 */
		} while (!atomic_compare_exchange_weak(object->word, &now, value));
		atomic_store_explicit(&object->step, value - now, memory_order_relaxed);
	}
	return vmm_unlikely(atomic_load(&object->waiters) != 0);
}

void vmm_sync_raise_by_locked(struct vmm_sync_object *object, uint32_t count)
{
	uint64_t value = vmm_sync_value(object) + count;

	if (object->narrow)
		atomic_store(narrow_word(object), (uint32_t)value);
	else
		atomic_store(object->word, value);
	atomic_store(&object->last, value);
}

void vmm_sync_raise_to_maximum_locked(struct vmm_sync_object *object)
{
	if (!object->narrow) {
		(void)vmm_sync_raise(object, UINT64_MAX, false);
		return;
	}
	atomic_store(narrow_word(object), UINT32_MAX);
	atomic_store(&object->at_maximum, true);
}
