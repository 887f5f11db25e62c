/* SPDX-License-Identifier: MIT */
/* Keyed mutexes of a D3DKMT client. They belong to a process, not to a device. */
#include "kmt_calls.h"

#include <string.h>

#define NS_PER_TICK 100u

NTSTATUS vmm_kmt_check_keyed_data(const struct vmm_process *process, const char *rule,
				  const void *data, uint32_t bytes)
{
	if (!bytes || (data && bytes <= VMM_DOOR_PRIVATE_BYTES_MAX))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(process->world->observe, STATUS_INVALID_PARAMETER, rule, process->id,
			       0, "keyed mutex: %u bytes of private runtime data%s", bytes,
			       data ? ", more than the maximum" : " and no pointer");
}

NTSTATUS vmm_kmt_check_keyed_flags(const struct vmm_door_call *call,
				   D3DKMT_CREATEKEYEDMUTEX2_FLAGS flags)
{
	if (!flags.Reserved)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "KMX-06", call->process->id,
			       0, "create keyed mutex: reserved flags 0x%x are set", flags.Value);
}

/*
 * NULL: wait forever. 0 or negative: relative time; positive: absolute system time; both in units
 * of 100 ns. (KMX-14)
 */
static uint64_t deadline_of(struct vmm_os *os, const LARGE_INTEGER *timeout)
{
	uint64_t now = vmm_os_now_ns(os), ticks, ns, deadline;

	if (!timeout)
		return VMM_OS_FOREVER;
	int64_t given = timeout->QuadPart;
	if (given <= 0) {
		ticks = 0 - (uint64_t)given;
	} else {
		uint64_t day = vmm_os_system_time(os);

		ticks = (uint64_t)given > day ? (uint64_t)given - day : 0;
	}
	if (vmm_mul_overflows(ticks, NS_PER_TICK, &ns) || vmm_add_overflows(now, ns, &deadline))
		return VMM_OS_FOREVER;
	return deadline;
}

NTSTATUS vmm_kmt_acquire_keyed(const struct vmm_door_call *call, D3DKMT_HANDLE handle,
			       const LARGE_INTEGER *timeout, struct vmm_keyed_access *access,
			       void *data)
{
	access->deadline_ns = deadline_of(call->process->world->os, timeout);
	NTSTATUS status =
		vmm_kmt_check_keyed_data(call->process, "KMX-20", data, access->data_bytes);
	if (NT_SUCCESS(status) && access->data_bytes) {
		access->data = vmm_calloc(1, access->data_bytes);
		status = access->data ? STATUS_SUCCESS : STATUS_NO_MEMORY;
	}
	if (NT_SUCCESS(status))
		status = vmm_keyed_acquire(call->process, handle, access);
	if (status == STATUS_SUCCESS && data && access->data)
		memcpy(data, access->data, access->data_bytes);
	vmm_free(access->data);
	return status;
}
