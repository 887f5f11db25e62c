/* SPDX-License-Identifier: MIT */
/* A driver that fails with a status that has no name. */
#include <ntddk.h>

#define NO_NAME ((NTSTATUS)0xE0001234)

DRIVER_INITIALIZE DriverEntry __attribute__((visibility("default")));

NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	(void)DriverObject, (void)RegistryPath;
	return NO_NAME;
}
