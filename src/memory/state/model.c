/* SPDX-License-Identifier: MIT */
/* The one refusal of calls that only the memory model of WDDM 2.x has. (RES, OFR-14, ALF-37) */
#include "memory/model.h"

NTSTATUS vmm_model_check_call(const struct vmm_adapter *adapter, const struct vmm_process *process,
			      uint32_t handle, const char *call, const char *why)
{
	if (adapter->residency_lists)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(adapter->observe, STATUS_NOT_SUPPORTED, process->id, handle,
				 "%s: the adapter's miniport is of WDDM 1.x%s", call, why);
}
