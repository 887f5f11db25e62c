/* SPDX-License-Identifier: MIT */
/* A driver that asks for a bug check and fails with a status that has no name. */
#include <ntddk.h>

#define CODE    0x10E
#define NO_NAME ((NTSTATUS)0xE0001234)

DRIVER_INITIALIZE DriverEntry __attribute__((visibility("default")));

NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	(void)DriverObject, (void)RegistryPath;
	KeBugCheckEx(CODE, 1, 2, 3, 4);
	return NO_NAME;
}
