/* SPDX-License-Identifier: MIT */
/*
 * Implements NT handles (nt_handle.h): a list of entries per world, one for each handle, with the
 * descriptor's token, the access and an optional name. The shared lock guards the list. An entry
 * whose last descriptor was closed is found, and its reference dropped, only when the list is
 * searched (vmm_nt_collect). (SHR-08 to SHR-15, SHR-21 to SHR-27, SHR-37)
 */
#include "object/nt_handle.h"

#include <string.h>

/* Names of the descriptors' files, visible in /proc (SHR-08). */
static const char *const token_name[VMM_NT_KIND_COUNT] = {
	[VMM_NT_SYNC] = "DxgkSharedSyncObject",
	[VMM_NT_RESOURCE] = "DxgkSharedResource",
};

/* One handle. All copies of its descriptor share it. */
struct entry {
	struct vmm_list link; /* in world->nt_handles; guarded by world->shared_lock */
	struct vmm_nt_target target;
	struct vmm_os_token token;
	uint32_t access;
	uint32_t length; /* of the name, in UTF-16 units; 0: no name */
	uint16_t name[];
};

static void free_entry(struct entry *entry)
{
	vmm_os_token_destroy(&entry->token);
	entry->target.put(entry->target.object);
	vmm_free(entry);
}

static void free_all(struct vmm_list *gone)
{
	while (!vmm_list_empty(gone)) {
		struct vmm_list *link = gone->next;

		vmm_list_remove(link);
		free_entry(vmm_container_of(link, struct entry, link));
	}
}

/* Moves the entries without an open descriptor to `gone`. (SHR-12, SHR-23) */
static void collect_locked(struct vmm_world *world, struct vmm_list *gone)
	VMM_REQUIRES(vmm_shared_lock_class)
{
	struct vmm_list *link, *next;

	vmm_assert_held(&world->shared_lock);
	vmm_list_for_each_safe (link, next, &world->nt_handles) {
		if (vmm_os_token_is_open(&vmm_container_of(link, struct entry, link)->token))
			continue;
		vmm_list_remove(link);
		vmm_list_push_back(gone, link);
		atomic_fetch_sub_explicit(&world->nt_handle_count, 1, memory_order_relaxed);
	}
}

void vmm_nt_collect(struct vmm_world *world)
{
	struct vmm_list gone;

	if (atomic_load_explicit(&world->nt_handle_count, memory_order_relaxed) == 0)
		return;
	vmm_list_init(&gone);
	vmm_shared_lock(world);
	collect_locked(world, &gone);
	vmm_shared_unlock(world);
	free_all(&gone);
}

void vmm_nt_end_world(struct vmm_world *world)
{
	free_all(&world->nt_handles);
}

/*
 * Maps a letter to upper case: names are compared without case. Letters of ASCII, Latin-1, Greek
 * and Cyrillic. (SHR-22)
 */
static uint16_t fold(uint16_t unit)
{
	bool small = (unit >= 'a' && unit <= 'z') ||
		     (unit >= 0xE0 && unit <= 0xFE && unit != 0xF7) ||
		     (unit >= 0x3B1 && unit <= 0x3C9 && unit != 0x3C2) ||
		     (unit >= 0x430 && unit <= 0x44F);

	if (small)
		return (uint16_t)(unit - 0x20);
	return unit >= 0x450 && unit <= 0x45F ? (uint16_t)(unit - 0x50) : unit;
}

static bool matches_name(const struct entry *entry, const struct vmm_nt_name *name)
{
	if (entry->length != name->length)
		return false;
	for (uint32_t i = 0; i < name->length; i++)
		if (fold(entry->name[i]) != fold(name->text[i]))
			return false;
	return true;
}

static struct entry *find_name_locked(struct vmm_world *world, const struct vmm_nt_name *name)
	VMM_REQUIRES(vmm_shared_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&world->shared_lock);
	vmm_list_for_each (link, &world->nt_handles)
		if (matches_name(vmm_container_of(link, struct entry, link), name))
			return vmm_container_of(link, struct entry, link);
	return NULL;
}

/* Makes an entry without a reference to the target. hand_out_locked adds that. (SHR-08) */
static struct entry *make_entry(const struct vmm_nt_target *target, const struct vmm_nt_name *name,
				uint32_t access)
{
	struct entry *entry = vmm_calloc(1, sizeof(*entry) + name->length * sizeof(entry->name[0]));

	if (!entry)
		return NULL;
	if (!vmm_ok(vmm_os_token_create(token_name[target->kind], &entry->token))) {
		vmm_free(entry);
		return NULL;
	}
	vmm_list_init(&entry->link);
	entry->target = *target;
	entry->access = access;
	entry->length = name->length;
	if (name->length)
		memcpy(entry->name, name->text, name->length * sizeof(entry->name[0]));
	return entry;
}

static vmm_status hand_out_locked(struct vmm_world *world, struct entry *entry, uint64_t *handle)
	VMM_REQUIRES(vmm_shared_lock_class)
{
	vmm_status status = vmm_os_token_open_handle(&entry->token, handle);

	vmm_assert_held(&world->shared_lock);
	if (!vmm_ok(status))
		return status;
	entry->target.get(entry->target.object);
	vmm_list_push_back(&world->nt_handles, &entry->link);
	atomic_fetch_add_explicit(&world->nt_handle_count, 1, memory_order_relaxed);
	return VMM_OK;
}

static void discard(struct entry *entry)
{
	vmm_os_token_destroy(&entry->token);
	vmm_free(entry);
}

vmm_status vmm_nt_share(struct vmm_process *process, const struct vmm_nt_target *target,
			const struct vmm_nt_name *name, uint32_t access, uint64_t *handle)
{
	struct vmm_world *world = process->world;
	struct entry *entry = make_entry(target, name, access);
	struct vmm_list gone;
	vmm_status status;

	if (!entry)
		return VMM_NO_MEMORY;
	vmm_list_init(&gone);
	vmm_shared_lock(world);
	collect_locked(world, &gone);
	/* The name is reserved together with the handle, or not at all. (SHR-37) */
	if (name->length && find_name_locked(world, name))
		status = VMM_OBJECT_NAME_COLLISION;
	else
		status = hand_out_locked(world, entry, handle);
	vmm_shared_unlock(world);
	free_all(&gone);
	if (!vmm_ok(status))
		discard(entry);
	if (status == VMM_OBJECT_NAME_COLLISION)
		vmm_finding(world->observe, "SHR-24", process->id, 0,
			    "share objects: the name is already in use by another NT handle");
	return status;
}

static vmm_status check_named(const struct entry *named, enum vmm_nt_kind kind, uint32_t access)
{
	if (!named)
		return VMM_OBJECT_NAME_NOT_FOUND;
	if (named->target.kind != kind)
		return VMM_OBJECT_TYPE_MISMATCH;
	return access ? VMM_OK : VMM_ACCESS_DENIED;
}

/* Makes another handle for the object of `named`, with its own access (SHR-10, SHR-21). */
static vmm_status make_handle_locked(struct vmm_world *world, const struct entry *named,
				     const struct vmm_nt_name *name, uint32_t access,
				     uint64_t *handle) VMM_REQUIRES(vmm_shared_lock_class)
{
	struct entry *entry = make_entry(&named->target, name, access);

	vmm_assert_held(&world->shared_lock);
	if (!entry)
		return VMM_NO_MEMORY;
	memcpy(entry->name, named->name, named->length * sizeof(named->name[0]));
	vmm_status status = hand_out_locked(world, entry, handle);
	if (!vmm_ok(status))
		discard(entry);
	return status;
}

vmm_status vmm_nt_handle_of_name(struct vmm_process *process, enum vmm_nt_kind kind,
				 const struct vmm_nt_name *name, uint32_t access, uint64_t *handle)
{
	static const char *const why[] = {"no object has that name",
					  "the object with that name is of another kind (SHR-15)",
					  "the object exists, but the requested access is 0"};
	struct vmm_world *world = process->world;
	struct vmm_list gone;

	vmm_list_init(&gone);
	vmm_shared_lock(world);
	collect_locked(world, &gone);
	const struct entry *named = find_name_locked(world, name);
	vmm_status status = check_named(named, kind, access);
	uint32_t reason = status == VMM_OBJECT_NAME_NOT_FOUND  ? 0
			  : status == VMM_OBJECT_TYPE_MISMATCH ? 1
							       : 2;
	bool refused = !vmm_ok(status);
	if (!refused)
		status = make_handle_locked(world, named, name, access, handle);
	vmm_shared_unlock(world);
	free_all(&gone);
	if (refused)
		vmm_finding(world->observe, "SHR-21", process->id, 0,
			    "open NT handle from name: %s", why[reason]);
	return status;
}

/* Returns the entry of a descriptor. NULL: not an NT handle of this library. (SHR-20) */
static struct entry *find_locked(struct vmm_world *world, uint64_t handle)
	VMM_REQUIRES(vmm_shared_lock_class)
{
	struct vmm_os_token token;
	struct vmm_list *link;

	vmm_assert_held(&world->shared_lock);
	if (!vmm_ok(vmm_os_token_identify(handle, &token)))
		return NULL;
	vmm_list_for_each (link, &world->nt_handles) {
		struct entry *entry = vmm_container_of(link, struct entry, link);

		if (entry->token.inode == token.inode && entry->token.device == token.device)
			return entry;
	}
	return NULL;
}

vmm_status vmm_nt_find(struct vmm_process *process, uint64_t handle, enum vmm_nt_kind kind,
		       void **object, uint32_t *access)
{
	static const char *const what[] = {[VMM_NT_SYNC] = "a synchronization object",
					   [VMM_NT_RESOURCE] = "a resource",
					   [VMM_NT_KEYED_MUTEX] = "a keyed mutex"};
	struct vmm_world *world = process->world;

	vmm_shared_lock(world);
	const struct entry *entry = find_locked(world, handle);
	bool fits = entry && entry->target.kind == kind;
	if (fits) {
		entry->target.get(entry->target.object);
		*object = entry->target.object;
		*access = entry->access;
	}
	enum vmm_nt_kind found = entry ? entry->target.kind : VMM_NT_KIND_COUNT;
	vmm_shared_unlock(world);
	if (fits)
		return VMM_OK;
	if (found == VMM_NT_KIND_COUNT)
		return vmm_refuse_rule(world->observe, VMM_INVALID_HANDLE, "SHR-13", process->id, 0,
				       "open: %llu is not an NT handle of %s",
				       (unsigned long long)handle, what[kind]);
	return vmm_refuse_rule(world->observe, VMM_OBJECT_TYPE_MISMATCH,
			       kind == VMM_NT_KEYED_MUTEX ? "KMX-10" : "SHR-15", process->id, 0,
			       "open: %llu is an NT handle of %s, not of %s (SHR-27)",
			       (unsigned long long)handle, what[found], what[kind]);
}

/* SHR-25 */
vmm_status vmm_nt_name_of(struct vmm_world *world, uint64_t handle, uint16_t *text,
			  uint32_t *length)
{
	uint32_t capacity = *length;
	vmm_status status = VMM_INVALID_HANDLE;

	vmm_shared_lock(world);
	const struct entry *entry = find_locked(world, handle);
	if (entry) {
		*length = entry->length;
		status = entry->length > capacity ? VMM_BUFFER_TOO_SMALL : VMM_OK;
		if (vmm_ok(status) && entry->length)
			memcpy(text, entry->name, entry->length * sizeof(entry->name[0]));
	}
	vmm_shared_unlock(world);
	return status;
}
