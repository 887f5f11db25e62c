/* SPDX-License-Identifier: MIT */
/*
 * Renaming (REN). A lock with Discard gets another instance of the allocation (REN-01). The CPU
 * then need not wait for the GPU, which continues to use the old instance (REN-03). Each instance
 * has its own placement (REN-05). All instances share one miniport allocation (REF-09).
 *
 * An instance is in one of three states:
 *   CURRENT   the instance that the last discard lock returned; at first the original one
 *   PREVIOUS  superseded, but an unsubmitted command buffer may still reference it
 *   RETIRED   a submitted buffer has used a newer instance
 *
 * The pool is the set of RETIRED instances that the GPU no longer uses. Each instance keeps its own
 * handle. Every function here runs with the paging lock held.
 */
#include "base/lock_flags.h"
#include "memory/image/image.h"
#include "memory/locks/locks.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "policy/policy.h"

static bool idle(const struct vmm_instance *instance)
{
	return vmm_instance_is_idle(instance) && !vmm_locks(instance);
}

/*
 * Returns the idle instance of the pool with the lowest generation, that is, the one that was
 * CURRENT longest ago: discard locks cycle through the instances (REN-06, REF-07). Sets *busy to
 * the oldest retired instance that the GPU still uses. With any_state, instances of every state
 * qualify (REF-08).
 */
static struct vmm_instance *from_pool(struct vmm_allocation *allocation, bool any_state,
				      struct vmm_instance **busy)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *best = NULL;
	struct vmm_list *link;

	vmm_assert_held(&allocation->adapter->paging_lock);
	*busy = NULL;
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (i->state != VMM_INSTANCE_RETIRED && !any_state)
			continue;
		if (best && best->generation < i->generation)
			continue;
		if (idle(i)) {
			best = i;
		} else if (!vmm_locks(i) && (!*busy || i->generation < (*busy)->generation)) {
			*busy = i;
		}
	}
	return best;
}

/*
 * Fast path of from_pool(): returns the oldest candidate if it is idle and mapped for the CPU, NULL
 * otherwise. Sets *current to the CURRENT instance, which from_pool() would choose last.
 */
struct vmm_instance *vmm_rename_ready(struct vmm_allocation *allocation, uint32_t flags,
				      struct vmm_instance **current)
{
	bool any_state = flags & VMM_LOCK_NO_EXISTING_REFERENCE;
	struct vmm_instance *pick = NULL;
	struct vmm_list *link;

	vmm_assert_held(&allocation->adapter->paging_lock);
	*current = NULL;
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (i->state == VMM_INSTANCE_CURRENT)
			*current = i;
		else if ((i->state == VMM_INSTANCE_RETIRED || any_state) &&
			 (!pick || i->generation < pick->generation))
			pick = i;
	}
	return pick && pick->fast_lock && idle(pick) && vmm_fast_lock_is_mapped(pick) ? pick : NULL;
}

static struct vmm_ref *ref_of(struct vmm_device *device, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&device->adapter->paging_lock);
	if (instance->fast_lock)
		return instance->fast_lock->ref;
	vmm_process_lock(device->process);
	struct vmm_ref *ref = vmm_ref_lookup_locked(device, instance->handle);
	vmm_process_unlock(device->process);
	vmm_assert(ref && ref->instance == instance);
	vmm_fast_lock_bind(ref);
	return ref;
}

/* Destroys an instance that was created for a lock which then failed. */
void vmm_rename_undo_growth(struct vmm_device *device, struct vmm_ref *ref)
{
	struct vmm_instance *instance = ref->instance;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_process_lock(device->process);
	vmm_handle_destroy(&device->process->handles, ref->handle);
	vmm_list_remove(&ref->device_link);
	vmm_list_remove(&ref->resource_link);
	vmm_process_unlock(device->process);
	vmm_instance_finish(device->adapter->memory, instance);
	vmm_free(instance);
	vmm_free(ref);
}

bool vmm_rename_is_growth(const struct vmm_ref *ref)
{
	return ref->extra && ref->instance->generation == 0; /* it has never been CURRENT */
}

static struct vmm_ref *extra_ref(struct vmm_device *device, const struct vmm_ref *like,
				 struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_ref *ref = vmm_calloc(1, sizeof(*ref));

	vmm_assert_held(&device->adapter->paging_lock);
	if (!ref)
		return NULL;
	/*
	 * Copies only the members that are common to both. Other threads write the rest of *like.
	 */
	*ref = (struct vmm_ref){.resource = like->resource,
				.creator = like->creator,
				.extra = true,
				.allocation = like->allocation,
				.kmd_open = like->kmd_open,
				.instance = instance,
				.device = like->device};
	vmm_list_init(&ref->device_link);
	vmm_list_init(&ref->resource_link);
	vmm_list_init(&ref->zombie_link);
	vmm_list_init(&ref->residency_link);
	vmm_list_init(&ref->leaving_link);
	vmm_list_init(&ref->departure_link);
	vmm_process_lock(device->process);
	ref->handle = vmm_handle_create(&device->process->handles, VMM_HANDLE_ALLOCATION, ref);
	if (ref->handle) {
		vmm_list_push_back(&device->refs, &ref->device_link);
		if (ref->resource)
			vmm_list_push_back(&ref->resource->refs, &ref->resource_link);
	}
	vmm_process_unlock(device->process);
	if (ref->handle)
		return ref;
	vmm_free(ref);
	return NULL;
}

/*
 * Creates an instance with the creation parameters of the first one; the miniport is not called
 * (REN-04). Returns NULL if there is no memory for its backing store. (REF-09, REN-05)
 */
static struct vmm_ref *grow(struct vmm_device *device, const struct vmm_ref *like)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = vmm_calloc(1, sizeof(*instance));
	struct vmm_ref *ref = instance ? extra_ref(device, like, instance) : NULL;

	vmm_assert_held(&device->adapter->paging_lock);
	if (!ref) {
		vmm_free(instance);
		return NULL;
	}
	/* The fast lock of a single instance serves Discard, too (VMM_LOCK_DISCARD_KEEPS). */
	vmm_fast_lock_disable(like->instance);
	vmm_instance_init(instance, like->allocation);
	instance->handle = ref->handle;
	instance->state = VMM_INSTANCE_RETIRED; /* in the pool until a lock takes it */
	if (vmm_ok(vmm_valued_create(device->adapter->memory, instance)) &&
	    vmm_ok(vmm_retained_create(device->adapter->memory, instance, NULL, NULL)) &&
	    vmm_ok(vmm_residency_ensure_backing(device->adapter->memory, instance)))
		return ref;
	vmm_rename_undo_growth(device, ref);
	return NULL;
}

void vmm_rename_commit(struct vmm_device *device, struct vmm_ref *ref, uint32_t old_handle)
{
	struct vmm_instance *current = NULL;
	struct vmm_list *link;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (link, &ref->allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (i->state != VMM_INSTANCE_CURRENT)
			continue;
		current = i;
		break; /* at most one instance is CURRENT */
	}
	vmm_rename_commit_from(device, ref, current, old_handle);
}

void vmm_rename_commit_from(struct vmm_device *device, struct vmm_ref *ref,
			    struct vmm_instance *current, uint32_t old_handle)
{
	struct vmm_allocation *allocation = ref->allocation;
	bool grown = vmm_rename_is_growth(ref);
	bool busy = current && !vmm_instance_is_idle(current);

	vmm_assert_held(&device->adapter->paging_lock);
	if (vmm_likely(current != NULL)) {
		vmm_fast_lock_disable(current);
		current->state = VMM_INSTANCE_PREVIOUS;
	}
	ref->instance->state = VMM_INSTANCE_CURRENT;
	ref->instance->generation = ++allocation->generation;
	if (ref->handle == old_handle)
		return;
	allocation->adapter->memory->statistics.renames++;
	allocation->adapter->memory->statistics.waits_avoided += busy;
	vmm_event_inline(allocation->adapter->observe, VIDMM_EVENT_RENAME, device->process->id,
			 ref->handle, grown ? 0 : 1, old_handle, allocation->instance_count,
			 allocation->size_bytes, busy);
}

static bool may_grow(const struct vmm_allocation *allocation) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_memory *memory = allocation->adapter->memory;
	bool pressure =
		memory->system_limit_bytes - memory->system_bytes < memory->system_limit_bytes / 16;

	vmm_assert_held(&allocation->adapter->paging_lock);
	/* The current instance counts towards the limit (REN-07, REN-08). */
	return vmm_policy_rename_grow(allocation->instance_count, allocation->renaming_limit,
				      allocation->size_bytes, pressure);
}

/*
 * Selects the instance for a discard lock; the selection takes effect in vmm_rename_commit(). If a
 * suitable instance is still in use by the GPU, sets *wait_for to it and *chosen to NULL (REN-10,
 * REN-12, REF-10). Returns STATUS_GRAPHICS_TOO_MANY_REFERENCES if no instance can become available
 * before the caller submits. (REN-02, REN-03, REN-11)
 */
NTSTATUS vmm_rename_select(struct vmm_device *device, struct vmm_ref *ref, uint32_t flags,
			   struct vmm_ref **chosen, struct vmm_instance **wait_for)
{
	vmm_assert_held(&device->adapter->paging_lock);
	/* REN-12: the caller guarantees that no unsubmitted buffer references any instance. */
	bool any_state = flags & VMM_LOCK_NO_EXISTING_REFERENCE;
	struct vmm_instance *busy;
	struct vmm_instance *pick = from_pool(ref->allocation, any_state, &busy);

	*wait_for = NULL;
	*chosen = pick ? ref_of(device, pick) : NULL;
	if (!*chosen && may_grow(ref->allocation))
		*chosen = grow(device, ref);
	if (*chosen)
		return STATUS_SUCCESS;
	*wait_for = busy;
	if (busy)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		device->adapter->observe, STATUS_GRAPHICS_TOO_MANY_REFERENCES, device->process->id,
		ref->handle,
		"REN-11: discard lock of 0x%08x: cannot add an instance to the existing %u "
		"(limit %u), and none of them is retired; submit the buffers that reference "
		"them, then lock with NoExistingReference (LOCK-41, REF-10)",
		ref->handle, ref->allocation->instance_count, ref->allocation->renaming_limit);
}

/*
 * Called for the references of one submission, in the order of the patch list (REN-17), whatever
 * context submits it (REF-05). A refusal changes nothing (REF-04). An older instance remains valid
 * until a submission uses a newer one (REF-01, REN-23).
 */
NTSTATUS vmm_rename_check(struct vmm_instance *instance, uint64_t submission, uint32_t process)
{
	struct vmm_allocation *allocation = instance->allocation;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	vmm_assert(vmm_instance_is_valid_locked(instance));
	if (instance->state == VMM_INSTANCE_RETIRED)
		return vmm_refuse_rule(
			allocation->adapter->observe, STATUS_GRAPHICS_INVALID_ALLOCATION_INSTANCE,
			"REN-16", process, instance->handle,
			"submission references instance 0x%08x, which is retired: a buffer "
			"submitted on some context used a newer one of the %u instances without "
			"naming this one with DoNotRetireInstance (REF-02, REF-05, REF-06)",
			instance->handle, allocation->instance_count);
	if (allocation->ordered_by == submission &&
	    instance->generation < allocation->ordered_generation)
		return vmm_refuse_rule(
			allocation->adapter->observe, STATUS_GRAPHICS_INVALID_ALLOCATION_INSTANCE,
			"REF-03", process, instance->handle,
			"submission references instance 0x%08x after a newer instance of the same "
			"allocation (REN-17)",
			instance->handle);
	allocation->ordered_by = submission;
	allocation->ordered_generation = instance->generation;
	return STATUS_SUCCESS;
}

/*
 * A use retires every older instance, except those that the same submission named with
 * DoNotRetireInstance (REF-02, REN-18). An excepted instance is retired by the next use of the
 * allocation that does not name it with that flag (REF-06).
 */
void vmm_rename_used(struct vmm_instance *instance, uint64_t submission)
{
	struct vmm_allocation *allocation = instance->allocation;
	struct vmm_list *link;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	vmm_assert(vmm_instance_is_valid_locked(instance));
	allocation->used_generation =
		vmm_max_u64(allocation->used_generation, instance->generation);
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (i->state == VMM_INSTANCE_PREVIOUS &&
		    i->generation < allocation->used_generation && i->not_retired_by != submission)
			i->state = VMM_INSTANCE_RETIRED;
	}
}
