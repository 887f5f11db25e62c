/* SPDX-License-Identifier: MIT */
/*
 * Identifiers of DxgkDdiPowerRuntimeControlRequest, and of methods of DxgkCbEvalAcpiMethod. vidmm
 * makes no such request. It chose the values, which no page has.
 */
#include "guiddef.h"

DEFINE_GUID(GUID_DXGKDDI_POWER_MANAGEMENT_PREPARE_TO_START, 0x76696d6d, 0x0001, 0x4b50, 0x8f, 0x01,
	    0x57, 0x44, 0x44, 0x4d, 0x50, 0x01);
DEFINE_GUID(GUID_DXGKDDI_POWER_MANAGEMENT_STARTED, 0x76696d6d, 0x0002, 0x4b50, 0x8f, 0x01, 0x57,
	    0x44, 0x44, 0x4d, 0x50, 0x02);
DEFINE_GUID(GUID_DXGKDDI_POWER_MANAGEMENT_STOPPED, 0x76696d6d, 0x0003, 0x4b50, 0x8f, 0x01, 0x57,
	    0x44, 0x44, 0x4d, 0x50, 0x03);

#ifndef WDDM_DXGKPOWER_H
#define WDDM_DXGKPOWER_H

#ifndef STATUS_ACPI_INVALID_DATA
#define STATUS_ACPI_INVALID_DATA ((NTSTATUS)0xC014000F)
#endif
/* For DxgkCbEvalAcpiMethod: the method of the adapter, not of a child. */
#define ACPI_METHOD_HARDWARE_ID DISPLAY_ADAPTER_HW_ID

#endif
