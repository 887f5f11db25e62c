/* SPDX-License-Identifier: MIT */
/* A driver that imports a service which no loader provides. */
#include <ntddk.h>

NTSTATUS vidmm_test_service_that_nobody_has(void);
DRIVER_INITIALIZE DriverEntry __attribute__((visibility("default")));

NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	(void)DriverObject, (void)RegistryPath;
	return vidmm_test_service_that_nobody_has();
}
