/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiCalibrateGpuClock, from WDDM 1.3 on: the GPU clock of a node and the CPU's performance
 * counter at one instant (CLK-01). The page of the DDI names DISPATCH_LEVEL.
 */
#include "port/port_internal.h"

static NTSTATUS call_calibrate(struct vmm_port *port, uint32_t node,
			       DXGKARG_CALIBRATEGPUCLOCK *args)
{
	const struct vmm_port_ordinals ordinals = vmm_port_ordinals_of(port, node);
	struct vmm_port_call call;

	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_CALIBRATE_GPU_CLOCK))
		return STATUS_DEVICE_REMOVED;
	uint32_t irql =
		vmm_nt_raise_of(port->nt, call.own->slot, "calibrate_gpu_clock", VMM_NT_DISPATCH);
	NTSTATUS status = port->ddi.DxgkDdiCalibrateGpuClock(port->adapter, ordinals.node,
							     ordinals.engine, args);
	if (vmm_unlikely(vmm_nt_irql_of(call.own->slot) != VMM_NT_DISPATCH))
		vmm_port_wrong_irql(port, "calibrate_gpu_clock", VMM_NT_DISPATCH);
	vmm_nt_lower_of(port->nt, call.own->slot, "calibrate_gpu_clock", irql);
	return vmm_port_call_end(port, &call, VIDMM_DDI_CALIBRATE_GPU_CLOCK, status, ordinals.node,
				 ordinals.engine, args->GpuFrequency);
}

NTSTATUS vmm_port_calibrate_clock(struct vmm_port *port, uint32_t node, DXGK_GPUCLOCKDATA *clock)
{
	DXGKARG_CALIBRATEGPUCLOCK args = {0};

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	if (!port->ddi.DxgkDdiCalibrateGpuClock)
		return vmm_refuse_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
					 "CLK-03: the miniport has no DxgkDdiCalibrateGpuClock");
	NTSTATUS status = call_calibrate(port, node, &args);
	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	if (status != STATUS_SUCCESS)
		return vmm_port_failed(port, "CLK-04", VIDMM_DDI_CALIBRATE_GPU_CLOCK, status,
				       status < 0);
	if (!args.GpuFrequency)
		return vmm_refuse_rule(port->observe, STATUS_UNSUCCESSFUL, "CLK-04", 0, 0,
				       "DxgkDdiCalibrateGpuClock succeeded for node %u with a "
				       "GpuFrequency of 0",
				       node);
	*clock = args;
	return STATUS_SUCCESS;
}

bool vmm_port_sets_stable_power(const struct vmm_port *port)
{
	return port->ddi.DxgkDdiSetStablePowerState != NULL;
}
