/* SPDX-License-Identifier: MIT */
/*
 * The miniport's table: which interface versions exist, how much of the table each of them has,
 * which entries must be there. Nothing behind the end of a version's table is ever read.
 */
#include <string.h>
#include "port/port_internal.h"

#define TABLE_BYTES_1_0 offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiDescribePageTable)
#define TABLE_BYTES_1_1 offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiSetPowerComponentFState)
#define TABLE_BYTES_1_2 offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiGetNodeMetadata)
#define TABLE_BYTES_1_3 sizeof(DRIVER_INITIALIZATION_DATA)
_Static_assert(TABLE_BYTES_1_0 == 496 && TABLE_BYTES_1_1 == 568 && TABLE_BYTES_1_2 == 664 &&
		       TABLE_BYTES_1_3 == 712,
	       "port is compiled for the 1.3 table (meson.build)");

#define CAPS_BYTES_1_0 336u
#define CAPS_BYTES_1_1 528u
#define CAPS_BYTES_1_2 544u
#define CAPS_BYTES_1_3 552u
_Static_assert(offsetof(DXGK_DRIVERCAPS, WDDMVersion) == CAPS_BYTES_1_0 &&
		       offsetof(DXGK_DRIVERCAPS, PreemptionCaps) == CAPS_BYTES_1_1 &&
		       sizeof(DXGK_DRIVERCAPS) == CAPS_BYTES_1_3,
	       "documented sizes of DXGK_DRIVERCAPS");

#define SERVICES_BYTES_1_0 offsetof(DXGKRNL_INTERFACE, DxgkCbCreateContextAllocation)
#define SERVICES_BYTES_1_2 offsetof(DXGKRNL_INTERFACE, DxgkCbCompletePStateTransition)
#define SERVICES_BYTES_1_3 sizeof(DXGKRNL_INTERFACE)

#define SCHEDULING_1_0 0x03u /* MultiEngineAware, VSyncPowerSaveAware */
#define SCHEDULING_1_2 0x1Fu /* and PreemptionAware, NoDmaPatching, CancelCommandAware */
#define SEGMENT_1_0    0x07Fu
#define SEGMENT_1_2    0x7FFu /* and the preservation flags and DirectFlip */

static const struct vmm_port_version versions[] = {
	{DXGKDDI_INTERFACE_VERSION_VISTA, "1.0", TABLE_BYTES_1_0, CAPS_BYTES_1_0,
	 SERVICES_BYTES_1_0, SCHEDULING_1_0, SEGMENT_1_0, DXGKQAITYPE_QUERYSEGMENT, false},
	{DXGKDDI_INTERFACE_VERSION_VISTA_SP1, "1.0 SP1", TABLE_BYTES_1_0, CAPS_BYTES_1_0,
	 SERVICES_BYTES_1_0, SCHEDULING_1_0, SEGMENT_1_0, DXGKQAITYPE_QUERYSEGMENT, false},
	{DXGKDDI_INTERFACE_VERSION_WIN7, "1.1", TABLE_BYTES_1_1, CAPS_BYTES_1_1, SERVICES_BYTES_1_0,
	 SCHEDULING_1_0, SEGMENT_1_0, DXGKQAITYPE_QUERYSEGMENT, false},
	{DXGKDDI_INTERFACE_VERSION_WIN8, "1.2", TABLE_BYTES_1_2, CAPS_BYTES_1_2, SERVICES_BYTES_1_2,
	 SCHEDULING_1_2, SEGMENT_1_2, DXGKQAITYPE_QUERYSEGMENT3, true},
	{DXGKDDI_INTERFACE_VERSION_WDDM1_3, "1.3", TABLE_BYTES_1_3, CAPS_BYTES_1_3,
	 SERVICES_BYTES_1_3, SCHEDULING_1_2, SEGMENT_1_2, DXGKQAITYPE_QUERYSEGMENT3, true},
	{DXGKDDI_INTERFACE_VERSION_WDDM1_3_PATH_INDEPENDENT_ROTATION, "1.3", TABLE_BYTES_1_3,
	 CAPS_BYTES_1_3, SERVICES_BYTES_1_3, SCHEDULING_1_2, SEGMENT_1_2, DXGKQAITYPE_QUERYSEGMENT3,
	 true},
};

struct entry {
	const char *name;
	size_t offset;
};
#define ENTRY(name)                                                                  \
	{                                                                            \
		"DxgkDdi" #name, offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdi##name) \
	}

static const struct entry always[] = {
	ENTRY(AddDevice),
	ENTRY(StartDevice),
	ENTRY(StopDevice),
	ENTRY(RemoveDevice),
	ENTRY(InterruptRoutine),
	ENTRY(DpcRoutine),
	ENTRY(Unload),
	ENTRY(SetPowerState),
	ENTRY(QueryAdapterInfo),
	ENTRY(CreateDevice),
	ENTRY(DestroyDevice),
	ENTRY(CreateAllocation),
	ENTRY(DestroyAllocation),
	ENTRY(OpenAllocation),
	ENTRY(CloseAllocation),
	ENTRY(DescribeAllocation),
	ENTRY(Patch),
	ENTRY(SubmitCommand),
	ENTRY(PreemptCommand),
	ENTRY(BuildPagingBuffer),
	ENTRY(ResetFromTimeout),
	ENTRY(RestartFromTimeout),
	ENTRY(CollectDbgInfo),
	ENTRY(QueryCurrentFence),
	ENTRY(Render),
	ENTRY(Present),
};
static const struct entry for_contexts[] = {ENTRY(CreateContext), ENTRY(DestroyContext)};
static const struct entry for_engine_reset[] = {ENTRY(QueryDependentEngineGroup),
						ENTRY(QueryEngineStatus), ENTRY(ResetEngine)};
static const struct entry for_cancel[] = {ENTRY(CancelCommand)};
static const struct entry for_swizzling[] = {ENTRY(AcquireSwizzlingRange),
					     ENTRY(ReleaseSwizzlingRange)};

static NTSTATUS check_entries(struct vmm_port *port, const struct entry *entries, size_t count,
			      const char *rule, const char *because)
{
	NTSTATUS status = STATUS_SUCCESS;

	for (size_t i = 0; i < count; i++) {
		void *pointer;

		memcpy(&pointer, (const char *)&port->ddi + entries[i].offset, sizeof(pointer));
		if (pointer)
			continue;
		vmm_finding(port->observe, rule, 0, 0,
			    "the table of this %s miniport has no %s: %s needs it",
			    port->version->name, entries[i].name, because);
		status = STATUS_INVALID_PARAMETER;
	}
	return status;
}

NTSTATUS vmm_port_table_read(struct vmm_port *port, const DRIVER_INITIALIZATION_DATA *table)
{
	ULONG version = table->Version;

	vmm_port_report_version(port, version);
	port->version = NULL;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(versions); i++) {
		if (versions[i].number == version)
			port->version = &versions[i];
	}
	if (!port->version && version >= DXGKDDI_INTERFACE_VERSION_WDDM2_0) {
		vmm_reason(
			port->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"the miniport registers interface version 0x%x: WDDM 2.0 and later are not "
			"built, 1.0 to 1.3 are (0x%x to 0x%x)",
			version, versions[0].number,
			versions[VMM_ARRAY_LENGTH(versions) - 1].number);
		return STATUS_NOT_SUPPORTED;
	}
	if (!port->version) {
		vmm_finding(port->observe, "PNP-01", 0, 0,
			    "the miniport registers 0x%x, which is no interface version", version);
		return STATUS_INVALID_PARAMETER;
	}
	memset(&port->ddi, 0, sizeof(port->ddi));
	memcpy(&port->ddi, table, port->version->table_bytes);
	return check_entries(port, always, VMM_ARRAY_LENGTH(always), "PNP-01",
			     "every render adapter");
}

NTSTATUS vmm_port_table_check_caps(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	const struct {
		bool needed;
		const struct entry *entries;
		size_t count;
		const char *rule, *because;
	} groups[] = {
		{caps->SchedulingCaps.MultiEngineAware, for_contexts,
		 VMM_ARRAY_LENGTH(for_contexts), "DMA-33", "MultiEngineAware"},
		{caps->SchedulingCaps.CancelCommandAware, for_cancel, VMM_ARRAY_LENGTH(for_cancel),
		 "TDR-12", "CancelCommandAware"},
		{port->version->engine_reset && caps->SupportPerEngineTDR, for_engine_reset,
		 VMM_ARRAY_LENGTH(for_engine_reset), "TDR-14", "SupportPerEngineTDR"},
		{caps->NumberOfSwizzlingRanges != 0, for_swizzling, VMM_ARRAY_LENGTH(for_swizzling),
		 "SWZ-01", "NumberOfSwizzlingRanges"},
	};
	NTSTATUS first = STATUS_SUCCESS;

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(groups); i++) {
		if (groups[i].needed)
			first = vmm_port_first_failure(
				first, check_entries(port, groups[i].entries, groups[i].count,
						     groups[i].rule, groups[i].because));
	}
	return first;
}
