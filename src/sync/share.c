/* SPDX-License-Identifier: MIT */
/*
 * Sharing by NT handles (SHR-16 to SHR-20, SHR-33; opening without a device: SHR-17) and by global
 * handles (SHR-01 to SHR-05, SHR-31): which objects may be shared, and opening them.
 */
#include "object/stopped.h"
#include "sync/sync_private.h"

static void get_object(void *object)
{
	vmm_sync_get(object);
}

static void put_object(void *object)
{
	vmm_sync_put(object);
}

/*
 * Any opening can share the object (SHR-17a, SHR-18, SHR-19) if that was created with
 * NtSecuritySharing (SFL-08).
 */
struct vmm_sync_object *vmm_sync_hold(struct vmm_process *process, uint32_t handle)
{
	struct vmm_sync_object *object = NULL;

	vmm_process_lock(process);
	const struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	vmm_assert(!sync || vmm_sync_is_valid(sync));
	if (sync && (sync->object->flags & VMM_SYNC_NT_SECURITY))
		object = sync->object;
	if (object)
		vmm_sync_get(object);
	else
		vmm_finding(
			process->world->observe, "SHR-06", process->id, handle,
			"share objects: 0x%08x is %s", handle,
			sync ? "a synchronization object created without NtSecuritySharing "
			       "(SFL-01, SFL-04, SYN-19)"
			: vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_KEYED)
				? "a keyed mutex, which is shared with a resource (KMX-11)"
				: vmm_handle_explain(&process->handles, handle, VMM_HANDLE_SYNC));
	vmm_process_unlock(process);
	return object;
}

vmm_status vmm_sync_target(struct vmm_process *process, uint32_t handle,
			   struct vmm_nt_target *target)
{
	vmm_process_lock(process);
	bool stopped = vmm_stopped_device_find_locked(process, handle) != NULL;
	vmm_process_unlock(process);
	struct vmm_sync_object *object = stopped ? NULL : vmm_sync_hold(process, handle);

	if (stopped)
		return VMM_DEVICE_REMOVED;
	*target = (struct vmm_nt_target){VMM_NT_SYNC, object, get_object, put_object};
	return object ? VMM_OK : VMM_INVALID_PARAMETER;
}

/* ---- opening ---- */

enum { GENERIC_ALL = 0x10000000, MAXIMUM_ALLOWED = 0x02000000 };

/* The flags that belong to an opening (SFL-09, SFL-17a, SFL-22, SFL-34). */
#define OPENING_FLAGS                                                       \
	(VMM_SYNC_TOP_OF_PIPELINE | VMM_SYNC_NO_SIGNAL | VMM_SYNC_NO_WAIT | \
	 VMM_SYNC_NO_MAX_ON_TDR | VMM_SYNC_NO_GPU_ACCESS)

/*
 * Without a device there is nothing to check. Only CrossAdapter allows another adapter. (SFL-11,
 * SHR-17)
 */
static vmm_status check_open(struct vmm_process *process, const struct vmm_sync_object *object,
			     const struct vmm_sync_open *open)
{
	struct vmm_observe *observe = process->world->observe;
	const struct vmm_adapter *adapter = open->device ? open->device->adapter : NULL;
	struct vmm_sync_refusal refusal;

	if (!adapter)
		return VMM_OK;
	if (!vmm_sync_may_open(VMM_SYNC_VERSION(adapter->interface_version), object->type,
			       open->flags, &refusal))
		return vmm_refuse_rule(observe, VMM_INVALID_PARAMETER, refusal.rule, process->id, 0,
				       "open synchronization object: flags 0x%x on type %u: %s",
				       open->flags, object->type, refusal.why);
	if (adapter->luid != object->luid && !(object->flags & VMM_SYNC_CROSS_ADAPTER))
		return vmm_refuse_rule(
			observe, VMM_INVALID_PARAMETER, "SFL-12", process->id, 0,
			"open synchronization object: it was created on adapter %u without "
			"CrossAdapter; the device is on adapter %u",
			object->luid, adapter->luid);
	if (vmm_sync_is_monitored(object) && open->affinity >> adapter->physical_adapters)
		return vmm_refuse_rule(
			observe, VMM_INVALID_PARAMETER, "MFN-09", process->id, 0,
			"open fence: EngineAffinity 0x%x names a physical adapter beyond the "
			"%u that exist",
			open->affinity, adapter->physical_adapters);
	return VMM_OK;
}

/*
 * Returns the flags that deny what the NT handle does not grant. Clients ask for odd rights, so
 * this counts only if the host enforces it. (SHR-10)
 */
static uint32_t denied_flags(const struct vmm_world *world, uint32_t access)
{
	uint32_t flags = 0;

	if (!world->sharing_rights || (access & (GENERIC_ALL | MAXIMUM_ALLOWED)))
		return 0;
	if (!(access & VMM_SYNC_ACCESS_WAIT))
		flags |= VMM_SYNC_NO_WAIT;
	if (!(access & VMM_SYNC_ACCESS_SIGNAL))
		flags |= VMM_SYNC_NO_SIGNAL;
	return flags;
}

/*
 * Opens the object of an NT handle, with flags that hold for this opening only. (SFL-09, SFL-17a,
 * SHR-20)
 */
vmm_status vmm_sync_open_shared(struct vmm_process *process, struct vmm_sync_open *open)
{
	uint32_t access;
	void *object;
	vmm_status status = vmm_nt_find(process, open->nt_handle, VMM_NT_SYNC, &object, &access);

	if (!vmm_ok(status))
		return status;
	status = check_open(process, object, open);
	if (vmm_ok(status))
		status = vmm_sync_open_object(process, object, open, open->flags & OPENING_FLAGS,
					      denied_flags(process->world, access));
	vmm_sync_put(object);
	return status;
}

vmm_status vmm_sync_open_held(struct vmm_device *device, struct vmm_sync_object *object,
			      uint32_t *handle)
{
	struct vmm_process *process = device->process;
	struct vmm_sync_open open = {.device = device};
	vmm_status status = check_open(process, object, &open);

	if (vmm_ok(status))
		status = vmm_sync_open_object(process, object, &open, 0, 0);
	*handle = open.handle;
	return status;
}

/* ---- global handles ---- */

/*
 * Returns the object of a global handle, with a reference and one opening more, so that the global
 * handle stays valid meanwhile. NULL with a finding: not one.
 */
static struct vmm_sync_object *hold_global(struct vmm_process *process, uint32_t global)
{
	struct vmm_world *world = process->world;

	vmm_sync_lock(world);
	vmm_shared_lock(world);
	struct vmm_sync_object *object = vmm_handle_lookup(&world->shared, global, VMM_HANDLE_SYNC);
	const char *why = vmm_handle_explain(&world->shared, global, VMM_HANDLE_SYNC);
	vmm_shared_unlock(world);
	vmm_assert(!object || (vmm_sync_object_is_consistent_locked(object) && object->openings));
	if (object) {
		vmm_sync_get(object);
		object->openings++;
	}
	vmm_sync_unlock(world);
	if (!object)
		vmm_finding(world->observe, "SHR-02", process->id, global,
			    "open synchronization object: 0x%08x is not a global handle of one "
			    "(%s; SFL-07)",
			    global, why);
	return object;
}

/*
 * Opens the object of a global handle, which is valid while any opening lives. Any process may do
 * that. (SFL-02, SHR-01, SHR-05)
 */
vmm_status vmm_sync_open_global(struct vmm_process *process, uint32_t global, uint32_t *handle)
{
	struct vmm_sync_object *object = hold_global(process, global);
	struct vmm_sync_open open = {0};

	if (!object)
		return VMM_INVALID_PARAMETER;
	vmm_status status = vmm_sync_open_object(process, object, &open, 0, 0);
	if (vmm_ok(status))
		*handle = open.handle;
	vmm_sync_lock(object->world);
	(void)vmm_sync_uncount_locked(object);
	vmm_sync_unlock(object->world);
	vmm_sync_put(object);
	return status;
}
