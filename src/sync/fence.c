/* SPDX-License-Identifier: MIT */
/*
 * Values of monitored fences (MFN-06, MFN-07, MFN-10). A signal stores the value and then reads the
 * number of waiters. A wait increments that number and then reads the value. All four accesses are
 * sequentially consistent, so at least one of the two threads sees the other. A signal without a
 * waiter costs one locked instruction.
 */
#include "sync/sync_private.h"

#define NARROW_DISTANCE (UINT32_MAX / 2) /* MFN-08 */

/* The lower half of the slot. The upper half does not change. */
static _Atomic uint32_t *narrow_word(const struct vmm_sync_object *object)
{
	return (_Atomic uint32_t *)(void *)object->word;
}

/* Extends the 32-bit word to the value that it stands for. (MFN-06) */
uint64_t vmm_sync_narrow_value(const struct vmm_sync_object *object)
{
	if (vmm_unlikely(atomic_load(&object->at_maximum)))
		return UINT64_MAX;
	uint64_t last = atomic_load(&object->last);
	uint32_t stored = atomic_load(narrow_word(object));

	/*
	 * A thread that sees only one of the two stores of a signal computes the value before or
	 * after it.
	 */
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

/* Stores the lower half of the value in a 32-bit word. (MFN-06) */
static bool raise_narrow(struct vmm_sync_object *object, uint64_t value, bool rewind, bool *lower)
{
	vmm_sync_lock(object->world);
	uint64_t now = vmm_sync_narrow_value(object);
	bool changes = rewind || value > now;

	*lower = !rewind && value < now;
	if (changes) {
		atomic_store(narrow_word(object), (uint32_t)value);
		atomic_store(&object->last, value);
		atomic_store(&object->at_maximum, false);
	}
	vmm_sync_unlock(object->world);
	return changes && atomic_load(&object->waiters) != 0;
}

/* Stores the value if it is higher than the present one, or with `rewind`. (TDRS-12) */
bool vmm_sync_raise_slow(struct vmm_sync_object *object, uint64_t value, bool rewind, bool *lower)
{
	if (vmm_unlikely(object->narrow))
		return raise_narrow(object, value, rewind, lower);
	if (vmm_unlikely(rewind)) {
		atomic_store(object->word, value); /* MFN-24 */
	} else {
		uint64_t now = atomic_load_explicit(object->word, memory_order_relaxed);

		do {
			if (value <= now) {
				*lower = value < now; /* MFN-23 */
				return false;
			}
		} while (!atomic_compare_exchange_weak(object->word, &now, value));
		atomic_store_explicit(&object->step, value - now, memory_order_relaxed);
	}
	return vmm_unlikely(atomic_load(&object->waiters) != 0);
}

void vmm_sync_raise_by_locked(struct vmm_sync_object *object, uint32_t count)
{
	uint64_t value = vmm_sync_value(object) + count;

	vmm_assert_held(&object->world->sync_lock);
	if (object->narrow)
		atomic_store(narrow_word(object), (uint32_t)value);
	else
		atomic_store(object->word, value);
	atomic_store(&object->last, value);
}

void vmm_sync_raise_to_maximum_locked(struct vmm_sync_object *object)
{
	vmm_assert_held(&object->world->sync_lock);
	if (!object->narrow) {
		(void)vmm_sync_raise(object, UINT64_MAX, false);
		return;
	}
	atomic_store(narrow_word(object), UINT32_MAX);
	atomic_store(&object->at_maximum, true);
}
