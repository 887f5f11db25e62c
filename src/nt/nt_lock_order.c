/* SPDX-License-Identifier: MIT */
/*
 * The order in which threads take spin locks: a directed graph with an edge from each lock that a
 * thread holds to the lock that it takes. Two locks with edges in both directions can deadlock,
 * even if the threads never met (NT-22). Fixed size: what does not fit is not checked. Guarded by
 * the memory lock.
 */
#include "nt/nt_verify.h"

enum { HELD_MAX = 128, EDGES_MAX = 1024 };

struct held {
	uint32_t thread; /* 0: unused */
	const void *lock, *caller;
};

struct edge {
	const void *first, *second; /* NULL: unused */
	const void *first_caller, *second_caller;
	bool reported;
};

struct nt_lock_order {
	struct held held[HELD_MAX];
	struct edge edge[EDGES_MAX];
};

struct nt_lock_order *nt_lock_order_create(void)
{
	return vmm_calloc(1, sizeof(struct nt_lock_order));
}

static struct edge *find(struct nt_lock_order *order, const void *first, const void *second)
{
	for (uint32_t i = 0; i < EDGES_MAX; i++)
		if (order->edge[i].first == first && order->edge[i].second == second)
			return &order->edge[i];
	return NULL;
}

/*
 * Adds an edge, unless it is known. Returns true, with the other direction in *other, if that
 * direction is known and was not reported.
 */
static bool add(struct nt_lock_order *order, const struct held *first, const void *second,
		const void *caller, struct edge *other)
{
	struct edge *edge = find(order, first->lock, second);
	struct edge *reverse = find(order, second, first->lock);

	if (edge)
		return false;
	edge = find(order, NULL, NULL);
	if (edge)
		*edge = (struct edge){first->lock, second, first->caller, caller, false};
	if (!reverse || reverse->reported)
		return false;
	reverse->reported = true;
	*other = *reverse;
	return true;
}

static struct held *find_held(struct nt_lock_order *order, uint32_t thread, const void *lock)
{
	for (uint32_t i = 0; i < HELD_MAX; i++)
		if (order->held[i].thread == thread && order->held[i].lock == lock)
			return &order->held[i];
	return NULL;
}

static void hold_locked(struct vmm_nt *nt, uint32_t thread, const void *lock, const void *caller)
	VMM_REQUIRES(nt_memory_class)
{
	struct held *slot = find_held(nt->lock_order, 0, NULL);

	vmm_assert_held(&nt->memory);
	if (slot)
		*slot = (struct held){thread, lock, caller};
}

void nt_lock_order_hold(struct vmm_nt *nt, uint32_t thread, const void *lock, const void *caller)
{
	nt_memory_lock(nt);
	hold_locked(nt, thread, lock, caller);
	nt_memory_unlock(nt);
}

void nt_lock_order_take(struct vmm_nt *nt, uint32_t thread, const void *lock, const void *caller)
{
	struct nt_lock_order *order = nt->lock_order;
	struct held first;
	struct edge other;
	bool found = false;

	nt_memory_lock(nt);
	for (uint32_t i = 0; i < HELD_MAX && !found; i++) {
		if (order->held[i].thread != thread)
			continue;
		first = order->held[i];
		found = add(order, &first, lock, caller, &other);
	}
	hold_locked(nt, thread, lock, caller);
	nt_memory_unlock(nt);
	if (found)
		nt_violation(nt, "NT-22", "KeAcquireSpinLock",
			     "spin lock %p, taken at %p, was held when %p was taken at %p; "
			     "elsewhere %p, taken at %p, was held when %p was taken at %p: two "
			     "threads can deadlock",
			     first.lock, first.caller, lock, caller, other.first,
			     other.first_caller, other.second, other.second_caller);
}

void nt_lock_order_release(struct vmm_nt *nt, uint32_t thread, const void *lock)
{
	struct held *held;

	nt_memory_lock(nt);
	held = find_held(nt->lock_order, thread, lock);
	if (held)
		*held = (struct held){0};
	nt_memory_unlock(nt);
}

static bool is_in(const void *lock, const void *memory, uint64_t size_bytes)
{
	return lock && (uintptr_t)lock - (uintptr_t)memory < size_bytes;
}

void nt_lock_order_forget(struct vmm_nt *nt, const void *memory, uint64_t size_bytes)
{
	nt_memory_lock(nt);
	for (uint32_t i = 0; i < EDGES_MAX; i++) {
		struct edge *edge = &nt->lock_order->edge[i];

		if (is_in(edge->first, memory, size_bytes) ||
		    is_in(edge->second, memory, size_bytes))
			*edge = (struct edge){0};
	}
	nt_memory_unlock(nt);
}
