/* SPDX-License-Identifier: MIT */
/*
 * Sharing by NT handles (SHR-16 to SHR-20, SHR-33): descriptors, with or without a name, that keep the object as long as one of them is open anywhere.
 * Nobody tells us when the last one is closed, so it is asked whenever that could matter: at a look-up by name, when something
 * is shared, and when a handle of a shared object ends.
 */
#include "sync/sync_private.h"

#include <string.h>

#define TOKEN_NAME "DxgkSharedSyncObject" /* SHR-08: /proc shows it */

struct vmm_sync_share {
	struct vmm_list link; /* in world->sync_shares; guarded by world->shared_lock */
	struct vmm_sync_object *object;
	struct vmm_os_token token;
	uint32_t length; /* of the name, in units; 0: none */
	uint16_t name[];
};

static void free_share(struct vmm_sync_share *share)
{
	vmm_os_token_destroy(&share->token);
	vmm_sync_put(share->object);
	vmm_free(share);
}

static void free_all(struct vmm_list *gone)
{
	while (!vmm_list_empty(gone)) {
		struct vmm_list *link = gone->next;

		vmm_list_remove(link);
		free_share(vmm_container_of(link, struct vmm_sync_share, link));
	}
}

/* SHR-12, SHR-23: those of which no handle is left. */
static void collect_locked(struct vmm_world *world, struct vmm_list *gone)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &world->sync_shares) {
		if (vmm_os_token_is_out(
			    &vmm_container_of(link, struct vmm_sync_share, link)->token))
			continue;
		vmm_list_remove(link);
		vmm_list_push_back(gone, link);
	}
}

void vmm_sync_shares_collect(struct vmm_world *world)
{
	struct vmm_list gone;

	vmm_list_init(&gone);
	vmm_os_mutex_lock(&world->shared_lock);
	collect_locked(world, &gone);
	vmm_os_mutex_unlock(&world->shared_lock);
	free_all(&gone);
}

void vmm_sync_end_world(struct vmm_world *world)
{
	free_all(&world->sync_shares);
}

/* SHR-22: names differ by more than their case. Letters of ASCII, Latin-1, Greek and Cyrillic. */
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

static bool same_name(const struct vmm_sync_share *share, const struct vmm_sync_name *name)
{
	if (share->length != name->length)
		return false;
	for (uint32_t i = 0; i < name->length; i++)
		if (fold(share->name[i]) != fold(name->text[i]))
			return false;
	return true;
}

static struct vmm_sync_share *find_name_locked(struct vmm_world *world,
					       const struct vmm_sync_name *name)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &world->sync_shares)
		if (same_name(vmm_container_of(link, struct vmm_sync_share, link), name))
			return vmm_container_of(link, struct vmm_sync_share, link);
	return NULL;
}

/* The object of a handle that may be shared so, with a reference: of any opening (SHR-17a, SHR-18, SHR-19), of what was made so (SFL-08). */
static vmm_status find_shareable(struct vmm_process *process, uint32_t handle,
				 struct vmm_sync_object **object)
{
	vmm_os_mutex_lock(&process->lock);
	const struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	*object = sync && (sync->object->flags & VMM_SYNC_NT_SECURITY) ? sync->object : NULL;
	if (*object)
		vmm_sync_get(*object);
	else
		vmm_finding(process->world->observe, "SHR-06", process->id, handle,
			    "share objects: 0x%08x is %s", handle,
			    sync ? "a synchronization object made without NtSecuritySharing "
				   "(SFL-01, SFL-04, SYN-19)"
				 : vmm_handle_explain(&process->handles, handle, VMM_HANDLE_SYNC));
	vmm_os_mutex_unlock(&process->lock);
	return *object ? VMM_OK : VMM_INVALID_PARAMETER;
}

static struct vmm_sync_share *make_share(struct vmm_sync_object *object,
					 const struct vmm_sync_name *name)
{
	struct vmm_sync_share *share =
		vmm_calloc(1, sizeof(*share) + name->length * sizeof(share->name[0]));

	if (!share)
		return NULL;
	if (!vmm_ok(vmm_os_token_create(TOKEN_NAME, &share->token))) {
		vmm_free(share);
		return NULL;
	}
	vmm_list_init(&share->link);
	vmm_sync_get(object);
	share->object = object;
	share->length = name->length;
	if (name->length)
		memcpy(share->name, name->text, name->length * sizeof(share->name[0]));
	return share;
}

/* SHR-37: a name is taken together with the handle, or not at all. */
static vmm_status publish(struct vmm_process *process, struct vmm_sync_share *share,
			  const struct vmm_sync_name *name, uint64_t *handle)
{
	struct vmm_world *world = process->world;
	struct vmm_list gone;
	vmm_status status = VMM_OK;

	vmm_list_init(&gone);
	vmm_os_mutex_lock(&world->shared_lock);
	collect_locked(world, &gone);
	if (name->length && find_name_locked(world, name))
		status = VMM_OBJECT_NAME_COLLISION;
	if (vmm_ok(status))
		status = vmm_os_token_hand_out(&share->token, handle);
	if (vmm_ok(status))
		vmm_list_push_back(&world->sync_shares, &share->link);
	vmm_os_mutex_unlock(&world->shared_lock);
	free_all(&gone);
	if (status == VMM_OBJECT_NAME_COLLISION)
		vmm_sync_refuse(process, "SHR-24", 0, "share objects: the name is in use");
	return status;
}

vmm_status vmm_sync_share(struct vmm_process *process, uint32_t object_handle,
			  const struct vmm_sync_name *name, uint64_t *handle)
{
	struct vmm_sync_object *object;
	vmm_status status = find_shareable(process, object_handle, &object);

	if (!vmm_ok(status))
		return status;
	struct vmm_sync_share *share = make_share(object, name);
	status = share ? publish(process, share, name, handle) : VMM_NO_MEMORY;
	if (share && !vmm_ok(status))
		free_share(share);
	vmm_sync_put(object);
	return status;
}

vmm_status vmm_sync_handle_of_name(struct vmm_process *process, const struct vmm_sync_name *name,
				   uint32_t access, uint64_t *handle)
{
	struct vmm_world *world = process->world;
	struct vmm_list gone;
	vmm_status status = VMM_OBJECT_NAME_NOT_FOUND;

	vmm_list_init(&gone);
	vmm_os_mutex_lock(&world->shared_lock);
	collect_locked(world, &gone);
	const struct vmm_sync_share *share = find_name_locked(world, name);
	if (share)
		status = access ? vmm_os_token_hand_out(&share->token, handle) : VMM_ACCESS_DENIED;
	vmm_os_mutex_unlock(&world->shared_lock);
	free_all(&gone);
	if (status == VMM_OBJECT_NAME_NOT_FOUND || status == VMM_ACCESS_DENIED)
		vmm_finding(world->observe, "SHR-21", process->id, 0,
			    "open NT handle from name: %s",
			    share ? "the object is there, and no access was asked for"
				  : "no object has that name");
	return status;
}

/* ---- opening ---- */

/* With a reference; NULL: it is none of ours. */
static struct vmm_sync_object *object_of(struct vmm_world *world, const struct vmm_os_token *token)
{
	struct vmm_sync_object *object = NULL;
	struct vmm_list *link;

	vmm_os_mutex_lock(&world->shared_lock);
	vmm_list_for_each (link, &world->sync_shares) {
		const struct vmm_sync_share *share =
			vmm_container_of(link, struct vmm_sync_share, link);

		if (share->token.inode == token->inode && share->token.device == token->device)
			object = share->object;
	}
	if (object)
		vmm_sync_get(object);
	vmm_os_mutex_unlock(&world->shared_lock);
	return object;
}

/* SFL-34: what of the flags is about this opening (SFL-09, SFL-17a, SFL-22). */
#define OPENING_FLAGS                                                       \
	(VMM_SYNC_TOP_OF_PIPELINE | VMM_SYNC_NO_SIGNAL | VMM_SYNC_NO_WAIT | \
	 VMM_SYNC_NO_MAX_ON_TDR | VMM_SYNC_NO_GPU_ACCESS)

static vmm_status check_open(struct vmm_process *process, const struct vmm_sync_object *object,
			     const struct vmm_sync_open *open)
{
	struct vmm_observe *observe = process->world->observe;
	const struct vmm_adapter *adapter = open->device ? open->device->adapter : NULL;
	struct vmm_sync_refusal refusal;

	if (!adapter)
		return VMM_OK;
	if (!vmm_sync_may_open(VMM_SYNC_VERSION(adapter->interface_version), object->type,
			       open->flags, &refusal)) {
		vmm_finding(observe, refusal.rule, process->id, 0,
			    "open synchronization object: flags 0x%x on type %u: %s", open->flags,
			    object->type, refusal.why);
		return VMM_INVALID_PARAMETER;
	}
	if (adapter->luid != object->luid && !(object->flags & VMM_SYNC_CROSS_ADAPTER)) {
		vmm_finding(observe, "SFL-12", process->id, 0,
			    "open synchronization object: it is adapter %u's and was made without "
			    "CrossAdapter; the device is on adapter %u",
			    object->luid, adapter->luid);
		return VMM_INVALID_PARAMETER;
	}
	if (vmm_sync_is_monitored(object) && open->affinity >> adapter->physical_adapters) {
		vmm_finding(observe, "MFN-09", process->id, 0,
			    "open fence: EngineAffinity 0x%x names an adapter beyond the %u that "
			    "there are",
			    open->affinity, adapter->physical_adapters);
		return VMM_INVALID_PARAMETER;
	}
	if (!(open->flags & VMM_SYNC_TOP_OF_PIPELINE))
		return VMM_OK;
	vmm_reason(observe, VMM_NOT_SUPPORTED, process->id, 0,
		   "open monitored fence: TopOfPipeline is not built");
	return VMM_NOT_SUPPORTED;
}

vmm_status vmm_sync_open_shared(struct vmm_process *process, struct vmm_sync_open *open)
{
	struct vmm_sync_object *object = NULL;
	struct vmm_os_token token;

	if (vmm_ok(vmm_os_token_identify(open->nt_handle, &token)))
		object = object_of(process->world, &token);
	if (!object) {
		vmm_finding(process->world->observe, "SHR-13", process->id, 0,
			    "open synchronization object: %llu is not an NT handle of one (SHR-15)",
			    (unsigned long long)open->nt_handle);
		return VMM_INVALID_HANDLE;
	}
	vmm_status status = check_open(process, object, open);
	if (vmm_ok(status))
		status = vmm_sync_open_object(process, object, open, open->flags & OPENING_FLAGS);
	vmm_sync_put(object);
	return status;
}
