/* SPDX-License-Identifier: MIT */
/*
 * The clock of a node, which the miniport reads (CLK-01). No lock is held. The adapter keeps its
 * power during the call, which is counted like the creation of a device.
 */
#include "sched/calls/calls.h"

NTSTATUS vmm_sched_calibrate_clock(struct vmm_process *process, struct vmm_adapter *adapter,
				   uint32_t node, uint32_t physical, DXGK_GPUCLOCKDATA *clock)
{
	uint32_t each = adapter->node_count / adapter->physical_adapters;

	if (node >= each || physical >= adapter->physical_adapters)
		return vmm_refuse_rule(
			adapter->observe, STATUS_INVALID_PARAMETER, "CLK-02", process->id, 0,
			"query a clock: node %u of physical adapter %u; the adapter has %u "
			"physical adapters with %u nodes each",
			node, physical, adapter->physical_adapters, each);
	vmm_status status = vmm_power_begin_device(adapter);
	if (!vmm_ok(status))
		return status;
	struct vmm_process *before = vmm_calling_process_set(adapter->os, process);
	status = vmm_port_calibrate_clock(adapter->port, physical * each + node, clock);
	vmm_calling_process_set(adapter->os, before);
	vmm_power_end_device(adapter);
	return status;
}

NTSTATUS vmm_sched_set_stable_power(const struct vmm_process *process, struct vmm_adapter *adapter)
{
	if (atomic_load(&adapter->removed))
		return STATUS_DEVICE_REMOVED;
	if (!vmm_port_sets_stable_power(adapter->port))
		return STATUS_SUCCESS;
	return vmm_refuse_reason(adapter->observe, STATUS_NOT_SUPPORTED, process->id, 0,
				 "CLK-05: the arguments of DxgkDdiSetStablePowerState are not "
				 "public, so it is not called");
}
