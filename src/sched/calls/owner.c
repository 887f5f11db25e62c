/* SPDX-License-Identifier: MIT */
/*
 * Which device owns a video present source (OWN). Ownership is a record that clients set and query:
 * modes are not built, and presents do not depend on it. State lock.
 */
#include "sched/calls/calls.h"
#include "sched/data/flip.h"

/* D3DKMT_VIDPNSOURCEOWNER_TYPE; the exclusive owner with a shared GDI primary is not for us. */
enum { UNOWNED, SHARED, EXCLUSIVE, TYPES };

NTSTATUS vmm_sched_check_source(const struct vmm_adapter *adapter,
				const struct vmm_process *process, uint32_t source)
{
	uint32_t count = vmm_sched_source_count(adapter);

	if (source < count)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(adapter->observe, STATUS_GRAPHICS_INVALID_VIDEO_PRESENT_SOURCE,
			       "OWN-02", process->id, 0,
			       "VidPnSourceId %u: the adapter has %u video present sources", source,
			       count);
}

NTSTATUS vmm_sched_check_owner_count(const struct vmm_device *device, uint32_t count, bool given)
{
	if (!count || (given && count <= VMM_SOURCES_MAX))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, "OWN-01",
			       device->process->id, device->handle,
			       "set the owner of %u sources: %s", count,
			       given ? "an adapter has 16 at most"
				     : "pType and pVidPnSourceId must both be given");
}

static NTSTATUS check_one(const struct vmm_device *device, uint32_t type, uint32_t source)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = vmm_sched_check_source(adapter, device->process, source);

	vmm_assert_held(&adapter->state_lock);
	if (!NT_SUCCESS(status))
		return status;
	if (type >= TYPES)
		return vmm_refuse_rule(adapter->observe, STATUS_INVALID_PARAMETER, "OWN-04",
				       device->process->id, device->handle,
				       "owner type %u of source %u: must be unowned (0), shared "
				       "(1) or exclusive (2)",
				       type, source);
	const struct vmm_source *of = &adapter->sched->display->source[source];
	if (!of->owner || of->owner == device || type == UNOWNED ||
	    (type == EXCLUSIVE && of->owner_type == SHARED))
		return STATUS_SUCCESS;
	return vmm_refuse_reason(adapter->observe, STATUS_GRAPHICS_VIDPN_SOURCE_IN_USE,
				 device->process->id, device->handle,
				 "OWN-03: device 0x%08x of process %u owns source %u, type %u",
				 of->owner->handle, of->owner->process->id, source, of->owner_type);
}

static void set_one(struct vmm_device *device, uint32_t type, struct vmm_source *source)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&device->adapter->state_lock);
	if (type != UNOWNED)
		source->owner = device;
	else if (source->owner == device)
		source->owner = NULL;
	if (source->owner == device)
		source->owner_type = type;
}

void vmm_owner_leave_locked(struct vmm_device *device)
{
	struct vmm_display *display = device->adapter->sched->display;

	vmm_assert_held(&device->adapter->state_lock);
	for (uint32_t i = 0; display && i < display->source_count; i++)
		set_one(device, UNOWNED, &display->source[i]);
}

NTSTATUS vmm_sched_own_sources(struct vmm_device *device, const struct vmm_owner_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert(request->count <= VMM_SOURCES_MAX);
	vmm_state_lock(adapter);
	for (uint32_t i = 0; i < request->count && NT_SUCCESS(status); i++)
		status = check_one(device, request->types[i], request->sources[i]);
	for (uint32_t i = 0; i < request->count && NT_SUCCESS(status); i++)
		set_one(device, request->types[i],
			&adapter->sched->display->source[request->sources[i]]);
	if (!request->count)
		vmm_owner_leave_locked(device);
	vmm_state_unlock(adapter);
	return status;
}

NTSTATUS vmm_sched_check_ownership(struct vmm_adapter *adapter, const struct vmm_process *process,
				   uint32_t source)
{
	NTSTATUS status = vmm_sched_check_source(adapter, process, source);

	if (!NT_SUCCESS(status))
		return status;
	vmm_state_lock(adapter);
	const struct vmm_source *of = &adapter->sched->display->source[source];
	if (of->owner && of->owner_type == EXCLUSIVE)
		status = STATUS_GRAPHICS_PRESENT_OCCLUDED;
	vmm_state_unlock(adapter);
	return status;
}
