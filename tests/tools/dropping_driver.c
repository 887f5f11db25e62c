/* SPDX-License-Identifier: MIT */
/* softgpu as a driver file that leaves out every 20th transfer (dropping_miniport.h). */
#include <dispmprt.h>

#include "dropping_miniport.h"

__attribute__((visibility("default"))) NTSTATUS DriverEntry(PDRIVER_OBJECT driver,
							    PUNICODE_STRING registry_path);

NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
	dropping_every = 20;
	return dropping_driver_entry(driver, registry_path);
}
