/* SPDX-License-Identifier: MIT */
/*
 * The scheduling parameters that the miniport gets (SCH-10): the priority bands, once; and for each
 * context its band, its level in the real time band, and its in-process priority, whenever one of
 * them changes. The process's priority class and the context's priority select the band:
 *
 *   idle       the process has the idle class, or the context priority -7
 *   normal     all others, and processes that may not raise their priority
 *   focus      the process has the high class and may raise its priority
 *   real time  the process has the real time class and may raise its priority, or the context has
 *              an absolute priority of 16 or more
 */
#include "sched/resets/hw_private.h"
#include "sched/state/levels.h"
#include "sched/resets/resets.h"

#define UNITS_PER_US 10u /* of the interface: 100 ns */
#define NORMAL_SHARE 10u /* percent, the documented default */
#define GRACE_US     1000u

enum { CLASS_IDLE = 0, CLASS_HIGH = 4 }; /* D3DKMT_SCHEDULINGPRIORITYCLASS */
enum { BAND_IDLE, BAND_NORMAL, BAND_FOCUS, BAND_REAL_TIME };

#define IN_PROCESS_MAX 7

/* SCH-10: sets up the bands before the first submission. */
NTSTATUS vmm_hw_setup_bands(struct vmm_sched *sched)
{
	DXGKARG_SETUPPRIORITYBANDS args = {.targetNormalBandPercentage = NORMAL_SHARE};

	for (uint32_t band = BAND_IDLE; band <= BAND_REAL_TIME; band++) {
		args.gracePeriodForBand[band] =
			band == BAND_NORMAL || band == BAND_FOCUS ? GRACE_US * UNITS_PER_US : 0;
		args.processQuantumForBand[band] = sched->slice_ns / 100;
		args.processGracePeriodForBand[band] = GRACE_US * UNITS_PER_US;
	}
	NTSTATUS status = vmm_port_setup_priority_bands(sched->adapter->port, &args);

	if (NT_SUCCESS(status))
		return status;
	return vmm_refuse_rule(
		sched->adapter->observe, STATUS_INVALID_PARAMETER, "SCH-10", 0, 0,
		"DxgkDdiSetupPriorityBands returned 0x%08x for the defaults: the adapter does not "
		"start, as it cannot schedule",
		(unsigned)status);
}

/*
 * Focus and real time need the right to raise priorities. An absolute priority was refused without
 * it when it was set, so it is not checked again.
 */
static uint32_t priority_band(const struct vmm_hw_context *context)
{
	const struct vmm_process *process = context->device->process;
	uint32_t class = atomic_load(&process->priority_class);

	if (context->priority > 0 && context->priority & VMM_PRIORITY_ABSOLUTE &&
	    (context->priority & VMM_PRIORITY_ABSOLUTE_MASK) >= VMM_PRIORITY_SOFT_LEAST)
		return BAND_REAL_TIME;
	if (class == CLASS_IDLE || context->priority == -7)
		return BAND_IDLE;
	if (!atomic_load(&process->may_raise) || class < CLASS_HIGH)
		return BAND_NORMAL;
	return class == CLASS_HIGH ? BAND_FOCUS : BAND_REAL_TIME;
}

static DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES current_properties(
	const struct vmm_hw_context *context)
{
	const struct vmm_sched *sched = context->device->adapter->sched;
	bool absolute = context->priority > 0 && context->priority & VMM_PRIORITY_ABSOLUTE;

	return (DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES){
		.hContext = context->kmd_context,
		.priorityBand = priority_band(context),
		.realtimeBandPriorityLevel =
			absolute ? (UINT)(context->priority & VMM_PRIORITY_ABSOLUTE_MASK) : 0,
		.inProcessPriority = context->in_process,
		.quantum = sched->slice_ns / 100,
		.gracePeriodSamePriority = GRACE_US * UNITS_PER_US,
		.gracePeriodLowerPriority = GRACE_US / 2 * UNITS_PER_US,
	};
}

NTSTATUS vmm_hw_send_properties(struct vmm_hw_context *context)
{
	struct vmm_device *device = context->device;
	DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES now = current_properties(context);

	vmm_assert_held(&context->device->adapter->paging_lock);
	if (vmm_likely(context->properties_sent &&
		       now.priorityBand == context->properties.priorityBand &&
		       now.realtimeBandPriorityLevel ==
			       context->properties.realtimeBandPriorityLevel &&
		       now.inProcessPriority == context->properties.inProcessPriority))
		return STATUS_SUCCESS;
	NTSTATUS status = vmm_port_set_context_scheduling(device->adapter->port, &now);
	if (status == STATUS_DEVICE_REMOVED) /* a reset, or removal */
		return status;
	/* Sent once, even if the miniport refuses: the context keeps its previous properties. */
	context->properties_sent = true;
	context->properties = now;
	if (!NT_SUCCESS(status))
		vmm_finding(device->adapter->observe, "SCH-10", device->process->id,
			    context->handle,
			    "DxgkDdiSetContextSchedulingProperties returned 0x%08x for band %u, "
			    "in-process priority %d: the context keeps its previous properties",
			    (unsigned)status, now.priorityBand, now.inProcessPriority);
	return STATUS_SUCCESS;
}

void vmm_hw_send_all_properties_locked(struct vmm_sched *sched)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (context->properties_sent) /* else its first submission sends them */
			(void)!NT_SUCCESS(vmm_hw_send_properties(context));
	}
}

void vmm_hw_class_changed(struct vmm_sched *sched)
{
	if (vmm_likely(!sched->hw))
		return;
	atomic_store(&sched->hw->changed, true);
	vmm_worker_wake(sched);
}

static NTSTATUS refuse_priority(const struct vmm_hw_context *context, NTSTATUS status,
				int32_t priority, const char *why)
{
	return vmm_refuse_rule(context->device->adapter->observe, status, "SCH-10",
			       context->device->process->id, context->handle,
			       "priority %d (0x%x) for hardware context 0x%08x refused: %s",
			       priority, (unsigned)priority, context->handle, why);
}

/* Accepts priorities -7 to 7 and the absolute levels that SCH-02 does not reserve. */
static NTSTATUS check_priority(const struct vmm_hw_context *context, int32_t priority)
{
	int32_t level = priority & VMM_PRIORITY_ABSOLUTE_MASK;

	if (!(priority > 0 && priority & VMM_PRIORITY_ABSOLUTE))
		return priority >= -7 && priority <= 7
			       ? STATUS_SUCCESS
			       : refuse_priority(context, STATUS_INVALID_PARAMETER, priority,
						 "relative priorities are -7 to 7");
	if (priority & ~(VMM_PRIORITY_ABSOLUTE | VMM_PRIORITY_ABSOLUTE_MASK) ||
	    (level > 1 && level < VMM_PRIORITY_SOFT_LEAST) || level > 30)
		return refuse_priority(context, STATUS_INVALID_PARAMETER, priority,
				       "absolute levels are 0, 1 and 16 to 30");
	if (level >= VMM_PRIORITY_SOFT_LEAST && !atomic_load(&context->device->process->may_raise))
		return refuse_priority(context, STATUS_ACCESS_DENIED, priority,
				       "the real time band needs the increase-priority privilege");
	return STATUS_SUCCESS;
}

static NTSTATUS set_priority(struct vmm_device *device, uint32_t handle, int32_t priority,
			     bool in_process)
{
	struct vmm_adapter *adapter = device->adapter;

	vmm_paging_lock(adapter);
	struct vmm_hw_context *context = vmm_hw_find_context_locked(device, handle);
	NTSTATUS status = STATUS_INVALID_PARAMETER;

	if (context && in_process)
		status = priority >= -IN_PROCESS_MAX && priority <= IN_PROCESS_MAX
				 ? STATUS_SUCCESS
				 : refuse_priority(context, status, priority,
						   "in-process priorities are -7 to 7");
	else if (context)
		status = check_priority(context, priority);
	if (NT_SUCCESS(status)) {
		*(in_process ? &context->in_process : &context->priority) = priority;
		if (context->properties_sent)
			(void)!NT_SUCCESS(vmm_hw_send_properties(context));
	}
	vmm_paging_commit(adapter);
	return status;
}

NTSTATUS vmm_hw_set_priority(struct vmm_device *device, uint32_t context, int32_t priority)
{
	return set_priority(device, context, priority, false);
}

NTSTATUS vmm_hw_set_in_process_priority(struct vmm_device *device, uint32_t context,
					int32_t priority)
{
	return set_priority(device, context, priority, true);
}

NTSTATUS vmm_hw_priority(struct vmm_device *device, uint32_t handle, bool in_process,
			 int32_t *priority)
{
	vmm_paging_lock(device->adapter);
	const struct vmm_hw_context *context = vmm_hw_find_context_locked(device, handle);

	if (context)
		*priority = in_process ? context->in_process : context->priority;
	vmm_paging_commit(device->adapter);
	return context ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}
