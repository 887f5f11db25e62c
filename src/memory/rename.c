/* SPDX-License-Identifier: MIT */
/*
 * Renaming (REN): a lock with Discard gets another instance of the allocation (REN-01), so that it need not wait for
 * the GPU, which goes on using the old one (REN-03). Each has its own place in memory (REN-05); the miniport's
 * allocation is one and the same (REF-09).
 *
 * An instance is CURRENT, PREVIOUS (superseded; an unsubmitted command buffer may still name it) or RETIRED (a
 * submitted buffer used a newer one). A retired instance that the GPU is done with is the pool. Each instance keeps
 * its own handle. Everything here runs under the paging lock.
 */
#include "memory/memory_private.h"

enum { NO_EXISTING_REFERENCE = 0x100 };

static bool idle(const struct vmm_instance *instance)
{
	return vmm_instance_is_idle(instance) && !vmm_locks(instance);
}

/*
 * The pool's least recently current member (REN-06, REF-07: the list is cycled through); `busy` gets a retired one that
 * is not idle. any_state: REF-08.
 */
static struct vmm_instance *from_pool(struct vmm_allocation *allocation, bool any_state,
				      struct vmm_instance **busy)
{
	struct vmm_instance *best = NULL;
	struct vmm_list *link;

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
 * What from_pool() would come to where the one that it would like best is idle: the current one, which *current is as well, is
 * the last that it would take.
 */
struct vmm_instance *vmm_rename_ready(struct vmm_allocation *allocation, uint32_t flags,
				      struct vmm_instance **current)
{
	bool any_state = flags & NO_EXISTING_REFERENCE;
	struct vmm_instance *pick = NULL;
	struct vmm_list *link;

	*current = NULL;
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (i->state == VMM_INSTANCE_CURRENT)
			*current = i;
		else if ((i->state == VMM_INSTANCE_RETIRED || any_state) &&
			 (!pick || i->generation < pick->generation))
			pick = i;
	}
	return pick && pick->gate && idle(pick) && vmm_gate_is_in_view(pick) ? pick : NULL;
}

static struct vmm_ref *ref_of(struct vmm_device *device, const struct vmm_instance *instance)
{
	if (instance->gate)
		return instance->gate->ref;
	vmm_os_mutex_lock(&device->process->lock);
	struct vmm_ref *ref = vmm_ref_lookup_locked(device, instance->handle);
	vmm_os_mutex_unlock(&device->process->lock);
	vmm_assert(ref && ref->instance == instance);
	vmm_gate_bind(ref);
	return ref;
}

/* An instance that was made for a lock which then failed: as if it had never been. */
void vmm_rename_undo_growth(struct vmm_device *device, struct vmm_ref *ref)
{
	struct vmm_instance *instance = ref->instance;

	vmm_os_mutex_lock(&device->process->lock);
	vmm_handle_destroy(&device->process->handles, ref->handle);
	vmm_list_remove(&ref->device_link);
	vmm_list_remove(&ref->resource_link);
	vmm_os_mutex_unlock(&device->process->lock);
	vmm_instance_finish(device->adapter->memory, instance);
	vmm_free(instance);
	vmm_free(ref);
}

bool vmm_rename_is_growth(const struct vmm_ref *ref)
{
	return ref->extra && ref->instance->generation == 0; /* it has not been current yet */
}

static struct vmm_ref *extra_ref(struct vmm_device *device, const struct vmm_ref *like,
				 struct vmm_instance *instance)
{
	struct vmm_ref *ref = vmm_calloc(1, sizeof(*ref));

	if (!ref)
		return NULL;
	/* What the two share, and no more: the rest of the first one is other threads' to write. */
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
	vmm_list_init(&ref->departure_link);
	vmm_os_mutex_lock(&device->process->lock);
	ref->handle = vmm_handle_create(&device->process->handles, VMM_HANDLE_ALLOCATION, ref);
	if (ref->handle) {
		vmm_list_push_back(&device->refs, &ref->device_link);
		if (ref->resource)
			vmm_list_push_back(&ref->resource->refs, &ref->resource_link);
	}
	vmm_os_mutex_unlock(&device->process->lock);
	if (ref->handle)
		return ref;
	vmm_free(ref);
	return NULL;
}

/*
 * REN-04: a new instance has the creation parameters of the first; the miniport is not asked. It comes with its
 * memory, or not at all.
 */
static struct vmm_ref *grow(struct vmm_device *device, const struct vmm_ref *like)
{
	struct vmm_instance *instance = vmm_calloc(1, sizeof(*instance));
	struct vmm_ref *ref = instance ? extra_ref(device, like, instance) : NULL;

	if (!ref) {
		vmm_free(instance);
		return NULL;
	}
	vmm_instance_init(instance, like->allocation);
	instance->handle = ref->handle;
	instance->state = VMM_INSTANCE_RETIRED; /* in the pool until a lock really takes it */
	if (vmm_ok(vmm_kept_create(device->adapter->memory, instance, NULL, NULL)) &&
	    vmm_ok(vmm_residency_give_backing(device->adapter->memory, instance)))
		return ref;
	vmm_rename_undo_growth(device, ref);
	return NULL;
}

void vmm_rename_commit(struct vmm_device *device, struct vmm_ref *ref, uint32_t old_handle)
{
	struct vmm_instance *current = NULL;
	struct vmm_list *link;

	vmm_list_for_each (link, &ref->allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (i->state != VMM_INSTANCE_CURRENT)
			continue;
		current = i;
		break; /* there is one at most */
	}
	vmm_rename_commit_from(device, ref, current, old_handle);
}

void vmm_rename_commit_from(struct vmm_device *device, struct vmm_ref *ref,
			    struct vmm_instance *current, uint32_t old_handle)
{
	struct vmm_allocation *allocation = ref->allocation;
	bool grown = vmm_rename_is_growth(ref), busy = false;

	if (vmm_likely(current != NULL)) {
		vmm_gate_shut(current);
		current->state = VMM_INSTANCE_PREVIOUS;
		busy = !vmm_instance_is_idle(current);
	}
	ref->instance->state = VMM_INSTANCE_CURRENT;
	ref->instance->generation = ++allocation->generation;
	if (ref->handle == old_handle)
		return;
	allocation->adapter->memory->figures.renames++;
	allocation->adapter->memory->figures.waits_avoided += busy;
	vmm_event_often(allocation->adapter->observe, VIDMM_EVENT_RENAME, device->process->id,
			ref->handle, grown ? 0 : 1, old_handle, allocation->instance_count,
			allocation->size_bytes, busy);
}

static bool may_grow(const struct vmm_allocation *allocation)
{
	const struct vmm_memory *memory = allocation->adapter->memory;
	bool pressure =
		memory->system_limit_bytes - memory->system_bytes < memory->system_limit_bytes / 16;

	/* REN-07, REN-08; the current instance counts. */
	return vmm_policy_rename_grow(allocation->instance_count, allocation->renaming_limit,
				      allocation->size_bytes, pressure);
}

/*
 * The instance a discard lock gets; nothing is given out until vmm_rename_commit. *wait_for is set instead when one will
 * do once the GPU is done with it (REN-10, REN-12, REF-10). STATUS_GRAPHICS_TOO_MANY_REFERENCES: nothing can be had until
 * the caller submits (REN-11).
 */
NTSTATUS vmm_rename_select(struct vmm_device *device, struct vmm_ref *ref, uint32_t flags,
			   struct vmm_ref **chosen, struct vmm_instance **wait_for)
{
	bool any_state =
		flags &
		NO_EXISTING_REFERENCE; /* REN-12: no unsubmitted buffer names any instance */
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
	vmm_reason(
		device->adapter->observe, STATUS_GRAPHICS_TOO_MANY_REFERENCES, device->process->id,
		ref->handle,
		"REN-11: discard lock of 0x%08x: no memory or room for more than its %u instances (limit %u), none of "
		"them retired; submit what names them, then lock with NoExistingReference (LOCK-41, REF-10)",
		ref->handle, ref->allocation->instance_count, ref->allocation->renaming_limit);
	return STATUS_GRAPHICS_TOO_MANY_REFERENCES;
}

/*
 * Called for the references of one submission in patch-list order (REN-17), whatever context they come through
 * (REF-05). A refusal changes nothing (REF-04). An older instance is as good as ever until a newer one is used
 * (REF-01, REN-23).
 */
NTSTATUS vmm_rename_check(struct vmm_instance *instance, uint64_t submission, uint32_t process)
{
	struct vmm_allocation *allocation = instance->allocation;

	if (instance->state == VMM_INSTANCE_RETIRED) {
		vmm_finding(
			allocation->adapter->observe, "REN-16", process, instance->handle,
			"submission references instance 0x%08x, retired because a submitted buffer used a newer one "
			"of %u instances, through whatever context, and did not name this one with "
			"DoNotRetireInstance (REF-02, REF-05, REF-06)",
			instance->handle, allocation->instance_count);
		return STATUS_GRAPHICS_INVALID_ALLOCATION_INSTANCE;
	}
	if (allocation->ordered_by == submission &&
	    instance->generation < allocation->ordered_generation) {
		vmm_finding(
			allocation->adapter->observe, "REF-03", process, instance->handle,
			"submission references instance 0x%08x after a newer instance of the same allocation (REN-17)",
			instance->handle);
		return STATUS_GRAPHICS_INVALID_ALLOCATION_INSTANCE;
	}
	allocation->ordered_by = submission;
	allocation->ordered_generation = instance->generation;
	return STATUS_SUCCESS;
}

/*
 * REF-02: a use retires every older instance, except those the same submission named with DoNotRetireInstance
 * (REN-18). A kept one goes at the next use of the allocation that does not name it so again (REF-06).
 */
void vmm_rename_used(struct vmm_instance *instance, uint64_t submission)
{
	struct vmm_allocation *allocation = instance->allocation;
	struct vmm_list *link;

	allocation->used_generation =
		vmm_max_u64(allocation->used_generation, instance->generation);
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (i->state == VMM_INSTANCE_PREVIOUS &&
		    i->generation < allocation->used_generation && i->kept_by != submission)
			i->state = VMM_INSTANCE_RETIRED;
	}
}
