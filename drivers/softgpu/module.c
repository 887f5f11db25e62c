/* SPDX-License-Identifier: MIT */
/* softgpu as a shared object: the entry point that a loader looks for. */
#include "softgpu_private.h"

DRIVER_INITIALIZE DriverEntry __attribute__((visibility("default")));

NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	return softgpu_driver_entry(DriverObject, RegistryPath);
}
