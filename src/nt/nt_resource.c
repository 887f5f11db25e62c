/* SPDX-License-Identifier: MIT */
/*
 * Resources (ERESOURCE): recursive locks with a table of the threads that hold them, guarded by the
 * dispatcher lock. Waiters sleep on a generation that each release increments, and then try again.
 */
#include "nt/nt_internal.h"

#include <string.h>

#define RESOURCE_TYPE 0x53524552u

struct owner {
	uint32_t thread, count;
};

/* Apart from the resource, whose memory a driver may free without ExDeleteResourceLite. */
struct owner_table {
	struct vmm_list link;
	uint32_t capacity;
	struct owner *owners;
};

static struct owner_table *table_of(const ERESOURCE *resource)
{
	return resource->OwnerTable;
}

static _Atomic uint32_t *generation_of(PERESOURCE resource)
{
	return (_Atomic uint32_t *)&resource->Generation;
}

static bool is_valid(struct vmm_nt *nt, const char *service, const ERESOURCE *resource)
{
	if (vmm_likely(resource->Type == RESOURCE_TYPE))
		return true;
	nt_violation(nt, "NT-07", service, "the resource is not initialized");
	return false;
}

/* The entry of the thread; without one a free entry, and NULL if the table is full. */
static struct owner *owner_locked(const struct vmm_nt *nt, const ERESOURCE *resource,
				  uint32_t thread) VMM_REQUIRES(nt_dispatcher_class)
{
	struct owner *table = table_of(resource)->owners, *unused = NULL;

	vmm_assert_held(&nt->dispatcher);
	for (ULONG i = 0; i < table_of(resource)->capacity; i++) {
		if (table[i].count && table[i].thread == thread)
			return &table[i];
		if (!table[i].count && !unused)
			unused = &table[i];
	}
	return unused;
}

static bool grow_locked(const struct vmm_nt *nt, struct owner_table *table)
	VMM_REQUIRES(nt_dispatcher_class)
{
	uint32_t capacity = table->capacity ? table->capacity * 2 : 4;
	struct owner *owners;

	vmm_assert_held(&nt->dispatcher);
	owners = vmm_calloc(capacity, sizeof(*owners));
	if (!owners)
		return false;
	if (table->capacity)
		memcpy(owners, table->owners, table->capacity * sizeof(*owners));
	vmm_free(table->owners);
	table->owners = owners;
	table->capacity = capacity;
	return true;
}

static uint32_t total_locked(const struct vmm_nt *nt, const ERESOURCE *resource)
	VMM_REQUIRES(nt_dispatcher_class)
{
	const struct owner_table *table = table_of(resource);
	uint32_t total = 0;

	vmm_assert_held(&nt->dispatcher);
	for (uint32_t i = 0; i < table->capacity; i++)
		total += table->owners[i].count;
	return total;
}

/* ---- acquire ---- */

enum mode { EXCLUSIVE, SHARED, SHARED_STARVE_EXCLUSIVE, SHARED_WAIT_FOR_EXCLUSIVE };
enum result { GRANTED, MUST_WAIT, DEADLOCK, NO_MEMORY };

static enum result try_locked(const struct vmm_nt *nt, PERESOURCE resource, uint32_t self,
			      enum mode mode) VMM_REQUIRES(nt_dispatcher_class)
{
	struct owner *mine;
	bool held, waiters;

	vmm_assert_held(&nt->dispatcher);
	mine = owner_locked(nt, resource, self);
	if (!mine) {
		if (!grow_locked(nt, table_of(resource)))
			return NO_MEMORY;
		mine = owner_locked(nt, resource, self);
	}
	held = mine->count;
	waiters = resource->NumberOfExclusiveWaiters;
	if (held && resource->Exclusive) {
		mine->count++;
		return GRANTED;
	}
	if (mode == EXCLUSIVE && held)
		return DEADLOCK;
	if (mode == EXCLUSIVE && total_locked(nt, resource))
		return MUST_WAIT;
	if (resource->Exclusive ||
	    (waiters && ((mode == SHARED && !held) || mode == SHARED_WAIT_FOR_EXCLUSIVE)))
		return MUST_WAIT;
	mine->thread = self;
	mine->count++;
	resource->Exclusive = mode == EXCLUSIVE;
	return GRANTED;
}

/* One try, then sleeps until the resource has changed. */
static enum result step(struct vmm_nt *nt, const char *service, PERESOURCE resource, uint32_t self,
			enum mode mode, bool wait)
{
	uint64_t *slots = VMM_OS_OWN(nt->os)->slot;
	ULONG *waiters = mode == EXCLUSIVE ? &resource->NumberOfExclusiveWaiters
					   : &resource->NumberOfSharedWaiters;
	enum result result;
	uint32_t generation;
	vmm_status status;

	nt_dispatcher_lock(nt);
	result = try_locked(nt, resource, self, mode);
	generation = atomic_load_explicit(generation_of(resource), memory_order_relaxed);
	if (result == MUST_WAIT && wait)
		++*waiters;
	nt_dispatcher_unlock(nt);
	if (result != MUST_WAIT || !wait)
		return result;
	slots[VMM_NT_SLOT_WAIT] = (uintptr_t)service;
	status = vmm_os_wait(nt->os, generation_of(resource), generation, VMM_OS_FOREVER,
			     "kernel resource", 0);
	slots[VMM_NT_SLOT_WAIT] = 0;
	nt_dispatcher_lock(nt);
	--*waiters;
	nt_dispatcher_unlock(nt);
	return status == VMM_UNSUCCESSFUL ? NO_MEMORY : MUST_WAIT; /* a dead world */
}

static BOOLEAN acquire(const char *service, PERESOURCE resource, bool wait, enum mode mode)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t self = nt_identity(nt, slots);
	enum result result;

	nt_limit(nt, service, wait ? APC_LEVEL : DISPATCH_LEVEL);
	if (!is_valid(nt, service, resource))
		return FALSE;
	nt_require_apcs_disabled(nt, service);
	do {
		result = step(nt, service, resource, self, mode, wait);
	} while (result == MUST_WAIT && wait);
	if (result == DEADLOCK && wait)
		nt_violation(nt, "NT-14", service,
			     "thread %u shares the resource and would wait for itself", self);
	if (result != GRANTED)
		nt_polled(nt);
	return (BOOLEAN)(result == GRANTED);
}

BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE Resource, BOOLEAN Wait)
{
	return acquire("ExAcquireResourceExclusiveLite", Resource, Wait, EXCLUSIVE);
}

BOOLEAN ExAcquireResourceSharedLite(PERESOURCE Resource, BOOLEAN Wait)
{
	return acquire("ExAcquireResourceSharedLite", Resource, Wait, SHARED);
}

BOOLEAN ExAcquireSharedStarveExclusive(PERESOURCE Resource, BOOLEAN Wait)
{
	return acquire("ExAcquireSharedStarveExclusive", Resource, Wait, SHARED_STARVE_EXCLUSIVE);
}

BOOLEAN ExAcquireSharedWaitForExclusive(PERESOURCE Resource, BOOLEAN Wait)
{
	return acquire("ExAcquireSharedWaitForExclusive", Resource, Wait,
		       SHARED_WAIT_FOR_EXCLUSIVE);
}

PVOID ExEnterCriticalRegionAndAcquireResourceExclusive(PERESOURCE Resource)
{
	KeEnterCriticalRegion();
	ExAcquireResourceExclusiveLite(Resource, TRUE);
	return NULL;
}

PVOID ExEnterCriticalRegionAndAcquireResourceShared(PERESOURCE Resource)
{
	KeEnterCriticalRegion();
	ExAcquireResourceSharedLite(Resource, TRUE);
	return NULL;
}

/* ---- release ---- */

static void wake_all(struct vmm_nt *nt, PERESOURCE resource)
{
	vmm_os_wake(nt->os, generation_of(resource), UINT32_MAX);
}

static void release(const char *service, PERESOURCE resource, uint32_t thread)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct owner *mine;
	bool held, wake = false;

	nt_limit(nt, service, DISPATCH_LEVEL);
	if (!is_valid(nt, service, resource))
		return;
	nt_dispatcher_lock(nt);
	mine = owner_locked(nt, resource, thread);
	held = mine && mine->count;
	if (held && --mine->count == 0) {
		resource->Exclusive = FALSE;
		wake = resource->NumberOfExclusiveWaiters || resource->NumberOfSharedWaiters;
		atomic_fetch_add_explicit(generation_of(resource), 1, memory_order_relaxed);
	}
	nt_dispatcher_unlock(nt);
	if (wake)
		wake_all(nt, resource);
	if (!held)
		nt_violation(nt, "NT-14", service,
			     "thread %u releases a resource that it does not hold", thread);
}

VOID ExReleaseResourceForThreadLite(PERESOURCE Resource, ERESOURCE_THREAD ResourceThreadId)
{
	release("ExReleaseResourceForThreadLite", Resource, (uint32_t)ResourceThreadId);
}

VOID ExReleaseResourceLite(PERESOURCE Resource)
{
	release("ExReleaseResourceLite", Resource, (uint32_t)ExGetCurrentResourceThread());
}

VOID ExReleaseResourceAndLeaveCriticalRegion(PERESOURCE Resource)
{
	ExReleaseResourceLite(Resource);
	KeLeaveCriticalRegion();
}

VOID ExConvertExclusiveToSharedLite(PERESOURCE Resource)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint32_t self = (uint32_t)ExGetCurrentResourceThread();
	const struct owner *mine;
	bool held;

	nt_limit(nt, "ExConvertExclusiveToSharedLite", APC_LEVEL);
	if (!is_valid(nt, "ExConvertExclusiveToSharedLite", Resource))
		return;
	nt_dispatcher_lock(nt);
	mine = owner_locked(nt, Resource, self);
	held = mine && mine->count && Resource->Exclusive;
	if (held) {
		Resource->Exclusive = FALSE;
		atomic_fetch_add_explicit(generation_of(Resource), 1, memory_order_relaxed);
	}
	nt_dispatcher_unlock(nt);
	if (held)
		wake_all(nt, Resource);
	else
		nt_violation(nt, "NT-14", "ExConvertExclusiveToSharedLite",
			     "thread %u does not hold the resource exclusively", self);
}

/* ---- state ---- */

static uint32_t count_of(struct vmm_nt *nt, PERESOURCE resource, bool *exclusive)
{
	const struct owner *mine;
	uint32_t count;

	nt_dispatcher_lock(nt);
	mine = owner_locked(nt, resource, (uint32_t)ExGetCurrentResourceThread());
	count = mine ? mine->count : 0;
	*exclusive = resource->Exclusive;
	nt_dispatcher_unlock(nt);
	return count;
}

BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE Resource)
{
	struct vmm_nt *nt = vmm_nt_current();
	bool exclusive;

	nt_limit(nt, "ExIsResourceAcquiredExclusiveLite", DISPATCH_LEVEL);
	if (!is_valid(nt, "ExIsResourceAcquiredExclusiveLite", Resource))
		return FALSE;
	return (BOOLEAN)(count_of(nt, Resource, &exclusive) && exclusive);
}

ULONG ExIsResourceAcquiredSharedLite(PERESOURCE Resource)
{
	struct vmm_nt *nt = vmm_nt_current();
	bool exclusive;

	nt_limit(nt, "ExIsResourceAcquiredSharedLite", DISPATCH_LEVEL);
	if (!is_valid(nt, "ExIsResourceAcquiredSharedLite", Resource))
		return 0;
	return count_of(nt, Resource, &exclusive);
}

static ULONG read_count(PERESOURCE resource, const ULONG *count)
{
	struct vmm_nt *nt = vmm_nt_current();
	ULONG value;

	(void)resource;
	nt_dispatcher_lock(nt);
	value = *count;
	nt_dispatcher_unlock(nt);
	nt_polled(nt);
	return value;
}

ULONG ExGetExclusiveWaiterCount(PERESOURCE Resource)
{
	return read_count(Resource, &Resource->NumberOfExclusiveWaiters);
}

ULONG ExGetSharedWaiterCount(PERESOURCE Resource)
{
	return read_count(Resource, &Resource->NumberOfSharedWaiters);
}

ERESOURCE_THREAD ExGetCurrentResourceThread(VOID)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	return nt_identity(nt, slots);
}

/* ---- begin and end ---- */

NTSTATUS ExInitializeResourceLite(PERESOURCE Resource)
{
	struct owner_table *table = vmm_calloc(1, sizeof(*table));
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "ExInitializeResourceLite", DISPATCH_LEVEL);
	if (!table)
		return STATUS_INSUFFICIENT_RESOURCES;
	memset(Resource, 0, sizeof(*Resource));
	Resource->Type = RESOURCE_TYPE;
	Resource->OwnerTable = table;
	nt_dispatcher_lock(nt);
	vmm_list_push_back(&nt->resources, &table->link);
	nt_dispatcher_unlock(nt);
	return STATUS_SUCCESS;
}

/* Reports threads that still hold or wait for the resource, and makes it free. */
static void empty(struct vmm_nt *nt, const char *service, PERESOURCE resource)
{
	uint32_t holds, waits;

	nt_dispatcher_lock(nt);
	holds = total_locked(nt, resource);
	waits = resource->NumberOfExclusiveWaiters + resource->NumberOfSharedWaiters;
	for (uint32_t i = 0; i < table_of(resource)->capacity; i++)
		table_of(resource)->owners[i].count = 0;
	resource->Exclusive = FALSE;
	nt_dispatcher_unlock(nt);
	if (holds || waits)
		nt_violation(nt, "NT-14", service,
			     "the resource is acquired %u times and %u threads wait for it", holds,
			     waits);
}

NTSTATUS ExReinitializeResourceLite(PERESOURCE Resource)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "ExReinitializeResourceLite", APC_LEVEL);
	if (!is_valid(nt, "ExReinitializeResourceLite", Resource))
		return STATUS_INVALID_PARAMETER;
	empty(nt, "ExReinitializeResourceLite", Resource);
	return STATUS_SUCCESS;
}

static void free_table(struct owner_table *table)
{
	vmm_list_remove(&table->link);
	vmm_free(table->owners);
	vmm_free(table);
}

NTSTATUS ExDeleteResourceLite(PERESOURCE Resource)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "ExDeleteResourceLite", APC_LEVEL);
	if (!is_valid(nt, "ExDeleteResourceLite", Resource))
		return STATUS_INVALID_PARAMETER;
	empty(nt, "ExDeleteResourceLite", Resource);
	nt_dispatcher_lock(nt);
	Resource->Type = 0;
	free_table(table_of(Resource));
	Resource->OwnerTable = NULL;
	nt_dispatcher_unlock(nt);
	return STATUS_SUCCESS;
}

void nt_resource_finish(struct vmm_nt *nt)
{
	while (!vmm_list_empty(&nt->resources)) {
		nt_violation(nt, "NT-06", "ExInitializeResourceLite",
			     "a resource was never deleted");
		free_table(vmm_container_of(nt->resources.next, struct owner_table, link));
	}
}
