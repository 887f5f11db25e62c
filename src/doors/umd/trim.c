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
	uint32_t before = (*device)->umd_trim, handle = 0;
	NTSTATUS status = function ? vmm_trim_register(*device, &client, &handle) : STATUS_SUCCESS;

	/* The previous function stays registered if the new one cannot be. */
	if (!NT_SUCCESS(status))
		return status;
	(*device)->umd_trim = handle;
	/* It fails only if the registration has ended already, by its handle in a D3DKMT call. */
	if (before)
		(void)!NT_SUCCESS(vmm_trim_unregister(device, guard, before, NULL));
	/* If the device has ended meanwhile, so has the new registration. */
	return function && !*device ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}
