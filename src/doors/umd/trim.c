/* SPDX-License-Identifier: MIT */
/*
 * pfnTrimResidencySet, the function of a user-mode driver for trim notifications (RES-09). The
 * runtime's part is here: it knows the function and the driver's handle of the device.
 */
#include "memory/memory.h"
#include "umd.h"

static void call_driver(const struct vmm_trim_client *client, uint32_t flags, uint64_t bytes)
{
	const D3DDDIARG_TRIMRESIDENCYSET args = {.TrimFlags.Value = flags, .NumBytesToTrim = bytes};

	/* The result is ignored: the memory manager cannot force a driver to trim. */
	(void)((PFND3DDDI_TRIMRESIDENCYSET)client->function)(client->context, &args);
}

NTSTATUS vmm_umd_set_trim(struct vmm_device **device, struct vmm_hazard_guard *guard,
			  HANDLE umd_device, PFND3DDDI_TRIMRESIDENCYSET function)
{
	const struct vmm_trim_client client = {
		.call = call_driver, .function = (void (*)(void))function, .context = umd_device};
	uint32_t handle = (*device)->umd_trim;

	if (handle) {
		(*device)->umd_trim = 0;
		NTSTATUS status = vmm_trim_unregister(device, guard, handle, NULL);
		if (!NT_SUCCESS(status) || !*device)
			return status;
	}
	return function ? vmm_trim_register(*device, &client, &(*device)->umd_trim)
			: STATUS_SUCCESS;
}
