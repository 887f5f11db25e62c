/* SPDX-License-Identifier: MIT */
/*
 * Common steps of CPU locks (lock_attempt.h): the refusals, each with its finding or reason, and
 * the wait for the GPU. A lock waits with no mutex held, checks everything again afterwards, and
 * leaves its device for the wait if the device is paused meanwhile. (LOCK, ALF-08, TDR-11, Q-93)
 */
#include "memory/locks/lock_attempt.h"

#include "base/lock_flags.h"

NTSTATUS vmm_lock_refuse(const struct vmm_lock_attempt *a, const char *rule, NTSTATUS status,
			 const char *what)
{
	vmm_assert_held(&a->device->adapter->paging_lock);
	return vmm_refuse_rule(a->memory->adapter->observe, status, rule, a->device->process->id,
			       a->request->handle, "%s of 0x%08x with flags 0x%03x refused: %s",
			       a->call, a->request->handle, a->request->flags, what);
}

NTSTATUS vmm_lock_check_flags(const struct vmm_lock_attempt *a)
{
	uint32_t f = a->request->flags;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (f & VMM_LOCK_RESERVED)
		return vmm_lock_refuse(a, "LOCK-02", STATUS_INVALID_PARAMETER,
				       "reserved flag bits are set");
	if ((f & VMM_LOCK_READ_ONLY) && (f & VMM_LOCK_WRITE_ONLY))
		return vmm_lock_refuse(a, "LOCK-07", STATUS_INVALID_PARAMETER,
				       "ReadOnly with WriteOnly");
	return STATUS_SUCCESS;
}

NTSTATUS vmm_lock_refuse_protected(const struct vmm_lock_attempt *a)
{
	vmm_assert_held(&a->device->adapter->paging_lock);
	return vmm_lock_refuse(a, "ALF-08", STATUS_INVALID_PARAMETER,
			       "the allocation is Protected: the CPU never gets an address of it");
}

NTSTATUS vmm_lock_refuse_unmappable(const struct vmm_lock_attempt *a)
{
	return vmm_refuse_reason(
		a->memory->adapter->observe, STATUS_NOT_SUPPORTED, a->device->process->id,
		a->request->handle,
		"Q-93: %s of 0x%08x: HardwareProtected content is never mapped into an "
		"out-of-process client",
		a->call, a->request->handle);
}

NTSTATUS vmm_lock_refuse_content_lost(const struct vmm_lock_attempt *a)
{
	return vmm_refuse_reason(
		a->memory->adapter->observe, STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST,
		a->device->process->id, a->request->handle,
		"TDR-11: lock of 0x%08x: its content was lost when the adapter was reset",
		a->request->handle);
}

NTSTATUS vmm_lock_refuse_obstacle(const struct vmm_lock_attempt *a, uint32_t obstacles)
{
	vmm_assert_held(&a->device->adapter->paging_lock);
	if (obstacles & VMM_OBSTACLE_UNCOMMITTED)
		return vmm_refuse_reason(a->memory->adapter->observe, STATUS_NO_MEMORY,
					 a->device->process->id, a->request->handle,
					 "OFR-14: %s of 0x%08x: the last reclaim found no system "
					 "memory for it; it must be reclaimed again",
					 a->call, a->request->handle);
	if ((obstacles & VMM_OBSTACLE_OFFERED) && vmm_is_offered_locked(a->ref->allocation))
		return vmm_lock_refuse(a, "LOCK-25", STATUS_INVALID_PARAMETER,
				       "the allocation is offered and not reclaimed");
	if (a->instance->state == VMM_INSTANCE_RETIRED)
		return vmm_lock_refuse(a, "LOCK-26", STATUS_INVALID_PARAMETER,
				       "the handle names a retired instance");
	if (a->instance->state == VMM_INSTANCE_PREVIOUS && !a->memory->caps->out_of_order_lock)
		return vmm_lock_refuse(a, "REN-19", STATUS_INVALID_PARAMETER,
				       "the handle does not name the newest instance (REF-12)");
	return STATUS_SUCCESS;
}

void vmm_lock_report_no_memory(const struct vmm_lock_attempt *a)
{
	uint64_t bytes = a->instance->allocation->size_bytes;

	vmm_assert_held(&a->device->adapter->paging_lock);
	if (bytes > UINT32_MAX) /* a store of this size was refused, and reported, before */
		return;
	vmm_reason(
		a->memory->adapter->observe, STATUS_NO_MEMORY, a->device->process->id,
		a->request->handle,
		"LOCK-32: %s of 0x%08x: no system memory, address space or free space for its %llu "
		"bytes; nothing has changed (ALF-27)",
		a->call, a->request->handle, (unsigned long long)bytes);
}

void vmm_lock_keep_arrival(struct vmm_lock_attempt *a, bool from_all)
{
	vmm_assert_held(&a->device->adapter->paging_lock);
	a->arrival.instance = a->instance;
	a->arrival.kept_from_all = from_all;
	vmm_list_push_back(&a->memory->arrivals, &a->arrival.link);
}

/* What found no space because of it tries again. */
void vmm_lock_end_arrival(struct vmm_lock_attempt *a)
{
	vmm_assert_held(&a->device->adapter->paging_lock);
	if (vmm_likely(!a->arrival.instance))
		return;
	a->arrival.instance = NULL;
	vmm_list_remove(&a->arrival.link);
	vmm_progress_signal(a->memory->adapter);
	if (atomic_load(&a->memory->adapter->paging_work)) /* the worker may have nothing else */
		a->memory->engine->wake(a->memory->adapter);
}

void vmm_lock_give_up_arrival(struct vmm_lock_attempt *a)
{
	if (!a->arrival.instance)
		return;
	vmm_paging_lock(a->memory->adapter);
	vmm_lock_end_arrival(a);
	vmm_paging_commit(a->memory->adapter);
}

vmm_status vmm_lock_wait(const struct vmm_lock_attempt *a, uint64_t *waited_ns)
{
	struct vmm_adapter *adapter = a->device->adapter;
	struct vmm_process *before = vmm_calling_process_set(adapter->os, a->device->process);
	vmm_status status;

	if (vmm_unlikely(a->wait_for_progress)) /* no free space yet */
		/*
		 * A pause is set before progress is signaled, so a pause after this check ends the
		 * wait below.
		 */
		status = vmm_hazard_is_paused(a->device->hazard)
				 ? VMM_PENDING
				 : vmm_wait_progress(adapter, a->progress_seen, VIDMM_WAIT_SPACE);
	else
		status = vmm_wait_for_lock(a->device, a->timeline, a->sequence, waited_ns);
	vmm_calling_process_set(adapter->os, before);
	return status;
}

NTSTATUS vmm_memory_lock_outside(struct vmm_device **device, struct vmm_hazard_guard *guard,
				 struct vmm_lock_request *request,
				 NTSTATUS (*lock)(struct vmm_device *, struct vmm_lock_request *))
{
	NTSTATUS status = STATUS_PENDING;

	while (status == STATUS_PENDING) {
		const void *hazard = (*device)->hazard;

		vmm_hazard_leave(guard);
		*device = vmm_hazard_enter(guard, VMM_HAZARD_DEVICE, hazard);
		if (!*device) /* it has ended meanwhile */
			return STATUS_INVALID_PARAMETER;
		status = lock(*device, request);
	}
	return status;
}
