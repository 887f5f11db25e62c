/* SPDX-License-Identifier: MIT */
/*
 * Enumerating and opening adapters. A handle names an adapter's LUID, not the adapter object. It
 * may outlive the adapter, and a device made from it outlives the handle (HND-10).
 */
#include "kmt_calls.h"

#include <string.h>

#define DISPLAYS_MAX   9999u
#define PROCESSES_MAX  4096u /* that D3DKMTEnumProcesses lists; operations.tsv has it, too */
/* The count that D3DKMTEnumAdapters2 returns without an array. (ADP-01) */
#define ENUM2_CAPACITY 34u

/*
 * The end of the process frees its adapter handles, so the object of such a handle is a number with
 * nothing to free.
 */
static D3DKMT_HANDLE new_handle(struct vmm_process *process, const struct vmm_adapter *adapter)
{
	vmm_process_lock(process);
	D3DKMT_HANDLE handle = vmm_handle_create(&process->handles, VMM_HANDLE_ADAPTER,
						 (void *)(uintptr_t)adapter->luid);
	vmm_process_unlock(process);
	return handle;
}

static void drop_handle(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	vmm_process_lock(process);
	vmm_handle_destroy(&process->handles, handle);
	vmm_process_unlock(process);
}

struct vmm_adapter *vmm_kmt_adapter(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	vmm_process_lock(process);
	uint32_t luid = (uint32_t)(uintptr_t)vmm_handle_lookup(&process->handles, handle,
							       VMM_HANDLE_ADAPTER);
	if (!luid)
		vmm_finding(process->world->observe, "HND-07", process->id, handle,
			    "0x%08x is not a live adapter handle of process %u (%s)", handle,
			    process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_ADAPTER));
	vmm_process_unlock(process);
	return luid ? vmm_adapter_get(process->world, luid) : NULL;
}

/* Adapters that clients can use: one that was surprise removed is not enumerated. (DXC-09) */
static uint32_t count_usable(struct vmm_world *world)
{
	struct vmm_adapter *adapter;
	uint32_t usable = 0;

	for (uint32_t i = 0; (adapter = vmm_adapter_nth(world, i)) != NULL; i++) {
		usable += !atomic_load(&adapter->closed);
		vmm_adapter_put(adapter);
	}
	return usable;
}

/*
 * Fills at most `capacity` entries. Returns in *count the number of adapters; 0 is valid (ADP-09).
 * Each entry gets a new handle (HND-09); on failure none is left. Each adapter renders and has no
 * source, so every filter includes it (ADP-03, ADP-04).
 */
static NTSTATUS enumerate(struct vmm_process *process, D3DKMT_ADAPTERINFO *info, uint32_t capacity,
			  uint32_t *count)
{
	uint32_t made = 0;
	NTSTATUS status = STATUS_SUCCESS;

	*count = count_usable(process->world);
	if (*count > capacity)
		return STATUS_BUFFER_TOO_SMALL;
	for (uint32_t i = 0; made < *count && NT_SUCCESS(status); i++) {
		struct vmm_adapter *adapter = vmm_adapter_nth(process->world, i);

		if (!adapter)
			break; /* an adapter has stopped meanwhile */
		if (atomic_load(&adapter->closed)) {
			vmm_adapter_put(adapter);
			continue;
		}
		info[made] = (D3DKMT_ADAPTERINFO){.hAdapter = new_handle(process, adapter),
						  .AdapterLuid.LowPart = adapter->luid};
		vmm_adapter_put(adapter);
		if (info[made].hAdapter)
			made++;
		else
			status = STATUS_NO_MEMORY;
	}
	while (!NT_SUCCESS(status) && made)
		drop_handle(process, info[--made].hAdapter);
	*count = made;
	return status;
}

NTSTATUS vmm_kmt_enumerate(const struct vmm_door_call *call, const char *function,
			   D3DKMT_ADAPTERINFO *adapters, uint32_t capacity, ULONG *count)
{
	D3DKMT_ADAPTERINFO local[ENUM2_CAPACITY];
	uint32_t found;
	NTSTATUS status =
		enumerate(call->process, local, vmm_min_u32(capacity, ENUM2_CAPACITY), &found);

	if (status == STATUS_BUFFER_TOO_SMALL)
		vmm_finding(call->observe, "ADP-01", call->process->id, 0,
			    "%s: there are %u adapters, NumAdapters is %u", function, found,
			    capacity);
	if (!NT_SUCCESS(status))
		return status;
	for (uint32_t i = 0; i < found; i++)
		adapters[i] = local[i];
	*count = found;
	return STATUS_SUCCESS;
}

NTSTATUS vmm_kmt_enumerate_2(const struct vmm_door_call *call, const D3DKMT_ENUMADAPTERS2 *args,
			     ULONG *count)
{
	*count = ENUM2_CAPACITY; /* without an array the capacity to allocate, not the number */
	return args->pAdapters ? vmm_kmt_enumerate(call, "D3DKMTEnumAdapters2", args->pAdapters,
						   args->NumAdapters, count)
			       : STATUS_SUCCESS;
}

NTSTATUS vmm_kmt_enumerate_3(const struct vmm_door_call *call, const D3DKMT_ENUMADAPTERS3 *args,
			     ULONG *count)
{
	if (args->Filter.Reserved)
		return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "ADP-02",
				       call->process->id, 0,
				       "D3DKMTEnumAdapters3: Filter 0x%llx has reserved bits",
				       (unsigned long long)args->Filter.Value);
	*count = count_usable(call->process->world); /* without an array the number */
	return args->pAdapters ? vmm_kmt_enumerate(call, "D3DKMTEnumAdapters3", args->pAdapters,
						   args->NumAdapters, count)
			       : STATUS_SUCCESS;
}

NTSTATUS vmm_kmt_find_adapter(const struct vmm_door_call *call, const char *function, LUID luid,
			      struct vmm_adapter **adapter)
{
	*adapter = luid.HighPart ? NULL : vmm_adapter_get(call->process->world, luid.LowPart);
	if (*adapter)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "ADP-06", call->process->id,
			       0, "%s: no adapter has the LUID 0x%x:0x%x", function,
			       (unsigned)luid.HighPart, luid.LowPart);
}

NTSTATUS vmm_kmt_open_adapter(const struct vmm_door_call *call, LUID luid, D3DKMT_HANDLE *handle)
{
	struct vmm_adapter *adapter;
	NTSTATUS status = vmm_kmt_find_adapter(call, "D3DKMTOpenAdapterFromLuid", luid, &adapter);

	if (!NT_SUCCESS(status))
		return status;
	*handle = new_handle(call->process, adapter);
	vmm_adapter_put(adapter);
	return *handle ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/*
 * Returns n of the name \\.\DISPLAYn, whose n has no leading zero; 0: it is not such a name. Reads
 * no further than the first character that does not fit. (ADP-11)
 */
static uint32_t display_of(const WCHAR *name)
{
	static const char prefix[] = "\\\\.\\DISPLAY";
	uint32_t at = 0, number = 0;

	for (; prefix[at]; at++)
		if (name[at] != (WCHAR)prefix[at])
			return 0;
	for (; name[at] >= (WCHAR)(number ? '0' : '1') && name[at] <= '9'; at++) {
		if (number > DISPLAYS_MAX)
			return 0;
		number = number * 10 + (uint32_t)(name[at] - '0');
	}
	return name[at] ? 0 : number;
}

NTSTATUS vmm_kmt_open_display(const struct vmm_door_call *call,
			      D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME *args)
{
	uint32_t display = display_of(args->DeviceName), sources = 0;
	struct vmm_adapter *adapter;

	for (uint32_t i = 0;
	     display && (adapter = vmm_adapter_nth(call->process->world, i)) != NULL; i++) {
		uint32_t before = sources;

		sources += vmm_sched_source_count(adapter);
		if (display <= sources) {
			args->hAdapter = new_handle(call->process, adapter);
			args->AdapterLuid = (LUID){.LowPart = adapter->luid};
			args->VidPnSourceId = display - 1 - before;
			vmm_adapter_put(adapter);
			return args->hAdapter ? STATUS_SUCCESS : STATUS_NO_MEMORY;
		}
		vmm_adapter_put(adapter);
	}
	return vmm_refuse_rule(
		call->observe, STATUS_UNSUCCESSFUL, "ADP-11", call->process->id, 0,
		"D3DKMTOpenAdapterFromGdiDisplayName: %s%u (the adapters have %u "
		"video present sources)",
		display ? "there is no display " : "not the name of a display: ", display, sources);
}

NTSTATUS vmm_kmt_enum_processes(const struct vmm_door_call *call, struct vmm_adapter *adapter,
				const D3DKMT_ENUMPROCESSES *args, UINT64 *count)
{
	uint32_t room =
		args->pProcessIds ? (uint32_t)vmm_min_u64(args->ProcessCount, UINT32_MAX) : 0;
	uint32_t *ids = room <= PROCESSES_MAX ? vmm_calloc(room + 1, sizeof(*ids)) : NULL;
	NTSTATUS status = STATUS_SUCCESS;

	if (room > PROCESSES_MAX)
		return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "ADP-13",
				       call->process->id, 0,
				       "D3DKMTEnumProcesses: an array of %u elements, at most %u",
				       room, PROCESSES_MAX);
	if (!ids)
		return STATUS_NO_MEMORY;
	*count = vmm_sched_processes(adapter, ids, room);
	if (args->pProcessIds && *count > room)
		status = vmm_refuse_rule(call->observe, STATUS_BUFFER_TOO_SMALL, "ADP-13",
					 call->process->id, 0,
					 "D3DKMTEnumProcesses: %llu processes use the adapter, "
					 "ProcessCount is %u",
					 (unsigned long long)*count, room);
	else if (args->pProcessIds)
		memcpy(args->pProcessIds, ids, *count * sizeof(*ids));
	vmm_free(ids);
	return status;
}

/* Ends the handle only: devices made from it stay usable. (HND-10) */
NTSTATUS vmm_kmt_close_adapter(struct vmm_door_call *call, const D3DKMT_CLOSEADAPTER *args)
{
	struct vmm_process *process = call->process;
	D3DKMT_HANDLE handle = args->hAdapter;

	vmm_process_lock(process);
	bool is_live = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_ADAPTER);
	if (is_live)
		vmm_handle_destroy(&process->handles, handle);
	else
		vmm_finding(call->observe, "ADP-07", process->id, handle,
			    "D3DKMTCloseAdapter: 0x%08x is not a live adapter handle (%s)", handle,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_ADAPTER));
	vmm_process_unlock(process);
	return is_live ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}
