/* SPDX-License-Identifier: MIT */
/*
 * The miniport's table: the interface versions that exist, how much of the table each of them has,
 * and which entries are required. Bytes behind the end of a version's table are never read.
 */
#include <string.h>
#include "port/port_internal.h"

/* A version's table and services end where the members of the next version begin. */
#define TABLE_BEFORE(member)    offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdi##member)
#define SERVICES_BEFORE(member) offsetof(DXGKRNL_INTERFACE, DxgkCb##member)

#define TABLE_BYTES_1_0 TABLE_BEFORE(DescribePageTable)
#define TABLE_BYTES_1_1 TABLE_BEFORE(SetPowerComponentFState)
#define TABLE_BYTES_1_2 TABLE_BEFORE(GetNodeMetadata)
#define TABLE_BYTES_1_3 TABLE_BEFORE(RenderGdi)
_Static_assert(TABLE_BYTES_1_0 == 496 && TABLE_BYTES_1_1 == 568 && TABLE_BYTES_1_2 == 664 &&
		       TABLE_BYTES_1_3 == 712,
	       "documented sizes of the table");

/* The size of DXGK_DRIVERCAPS is a multiple of its alignment. */
#define CAPS_BEFORE(member) (uint32_t)((offsetof(DXGK_DRIVERCAPS, member) + 7u) / 8u * 8u)

#define CAPS_BYTES_1_0 336u
#define CAPS_BYTES_1_1 528u
#define CAPS_BYTES_1_2 544u
#define CAPS_BYTES_1_3 552u
_Static_assert(offsetof(DXGK_DRIVERCAPS, WDDMVersion) == CAPS_BYTES_1_0 &&
		       offsetof(DXGK_DRIVERCAPS, PreemptionCaps) == CAPS_BYTES_1_1 &&
		       CAPS_BEFORE(HybridDiscrete) == CAPS_BYTES_1_2 &&
		       CAPS_BEFORE(HybridIntegrated) == CAPS_BYTES_1_3,
	       "documented sizes of DXGK_DRIVERCAPS");

#define SERVICES_BYTES_1_0 SERVICES_BEFORE(CreateContextAllocation)
#define SERVICES_BYTES_1_2 SERVICES_BEFORE(CompletePStateTransition)
#define SERVICES_BYTES_1_3 SERVICES_BEFORE(MapContextAllocation)

#define SCHEDULING_1_0 0x03u  /* MultiEngineAware, VSyncPowerSaveAware */
#define SCHEDULING_1_2 0x1Fu  /* and PreemptionAware, NoDmaPatching, CancelCommandAware */
#define SCHEDULING_2_0 0x7FFu /* and No64BitAtomics, LowIrqlPreemptCommand, HwQueuePacketCap */
#define SEGMENT_1_0    0x07Fu
#define SEGMENT_1_2    0x7FFu    /* and the preservation flags, DirectFlip */
#define SEGMENT_2_0    0x1FFFFFu /* and the flags of host apertures, protection, budgets */
#define SEGMENT_2_9    0x3FFFFFu

#define VERSION_2(number, name, table, caps, services, segment)                      \
	{                                                                            \
		DXGKDDI_INTERFACE_VERSION_WDDM##number, name, table, caps, services, \
			SCHEDULING_2_0, segment, DXGKQAITYPE_QUERYSEGMENT4, true     \
	}

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
	VERSION_2(2_0, "2.0", TABLE_BEFORE(CheckMultiPlaneOverlaySupport3),
		  CAPS_BEFORE(SupportMultiPlaneOverlayImmediateFlip),
		  SERVICES_BEFORE(MultiPlaneOverlayDisabled), SEGMENT_2_0),
	VERSION_2(2_1, "2.1", TABLE_BEFORE(CreateHwContext),
		  CAPS_BEFORE(HybridAcpiChainingRequired), SERVICES_BEFORE(InvalidateHwContext),
		  SEGMENT_2_0),
	VERSION_2(2_1_5, "2.1", TABLE_BEFORE(CreateHwContext),
		  CAPS_BEFORE(HybridAcpiChainingRequired), SERVICES_BEFORE(InvalidateHwContext),
		  SEGMENT_2_0),
	VERSION_2(2_1_6, "2.1", TABLE_BEFORE(CreateHwContext),
		  CAPS_BEFORE(HybridAcpiChainingRequired), SERVICES_BEFORE(InvalidateHwContext),
		  SEGMENT_2_0),
	VERSION_2(2_2, "2.2", TABLE_BEFORE(UpdateHwContextState), CAPS_BEFORE(MiscCaps),
		  SERVICES_BEFORE(SetProtectedSessionStatus), SEGMENT_2_0),
	VERSION_2(2_3, "2.3", TABLE_BEFORE(SetSchedulingLogBuffer), CAPS_BEFORE(MiscCaps),
		  SERVICES_BEFORE(AllocateContiguousMemory), SEGMENT_2_0),
	VERSION_2(2_4, "2.4", TABLE_BEFORE(SignalMonitoredFence), CAPS_BEFORE(MaxHwQueuedFlips),
		  SERVICES_BEFORE(SignalEvent), SEGMENT_2_0),
	VERSION_2(2_5, "2.5", TABLE_BEFORE(SaveMemoryForHotUpdate), CAPS_BEFORE(MaxHwQueuedFlips),
		  SERVICES_BEFORE(IsFeatureEnabled), SEGMENT_2_0),
	VERSION_2(2_6, "2.6", TABLE_BEFORE(ControlInterrupt3), CAPS_BEFORE(MaxHwQueuedFlips),
		  SERVICES_BEFORE(NotifyCursorSupportChange), SEGMENT_2_0),
	VERSION_2(2_7, "2.7", TABLE_BEFORE(SetFlipQueueLogBuffer), CAPS_BEFORE(MaxHwQueuedFlips),
		  SERVICES_BEFORE(NotifyCursorSupportChange), SEGMENT_2_0),
	VERSION_2(2_8, "2.8", TABLE_BEFORE(SetFlipQueueLogBuffer), CAPS_BEFORE(MaxHwQueuedFlips),
		  SERVICES_BEFORE(QueryFeatureSupport), SEGMENT_2_0),
	VERSION_2(2_9, "2.9", TABLE_BEFORE(SetAllocationBackingStore), sizeof(DXGK_DRIVERCAPS),
		  sizeof(DXGKRNL_INTERFACE), SEGMENT_2_9),
	VERSION_2(3_0, "3.0", TABLE_BEFORE(CreateNativeFence), sizeof(DXGK_DRIVERCAPS),
		  sizeof(DXGKRNL_INTERFACE), SEGMENT_2_9),
	VERSION_2(3_1, "3.1", sizeof(DRIVER_INITIALIZATION_DATA), sizeof(DXGK_DRIVERCAPS),
		  sizeof(DXGKRNL_INTERFACE), SEGMENT_2_9),
	VERSION_2(3_2, "3.2", sizeof(DRIVER_INITIALIZATION_DATA), sizeof(DXGK_DRIVERCAPS),
		  sizeof(DXGKRNL_INTERFACE), SEGMENT_2_9),
};
#define NEWEST        versions[VMM_ARRAY_LENGTH(versions) - 1]
/* A version number has the interface in its upper bits and the revision in these lower ones. */
#define REVISION_BITS 12u

struct entry {
	const char *name;
	size_t offset;
};
#define ENTRY(name)                                                                  \
	{                                                                            \
		"DxgkDdi" #name, offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdi##name) \
	}

static const struct entry required_always[] = {
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
	ENTRY(PreemptCommand),
	ENTRY(BuildPagingBuffer),
	ENTRY(ResetFromTimeout),
	ENTRY(RestartFromTimeout),
	ENTRY(CollectDbgInfo),
};
/* GPU virtual addresses replace these three (MCDM guidelines). */
static const struct entry for_physical[] = {ENTRY(Render), ENTRY(Patch), ENTRY(SubmitCommand)};
/* A ComputeOnly miniport must not even have them. */
static const struct entry for_graphics[] = {ENTRY(Present), ENTRY(QueryCurrentFence)};
static const struct entry for_contexts[] = {ENTRY(CreateContext), ENTRY(DestroyContext)};
static const struct entry for_engine_reset[] = {ENTRY(QueryDependentEngineGroup),
						ENTRY(QueryEngineStatus), ENTRY(ResetEngine)};
static const struct entry for_cancel[] = {ENTRY(CancelCommand)};
static const struct entry for_swizzling[] = {ENTRY(AcquireSwizzlingRange),
					     ENTRY(ReleaseSwizzlingRange)};

static const struct entry for_hw_queues[] = {
	ENTRY(CreateHwContext),        ENTRY(DestroyHwContext),
	ENTRY(CreateHwQueue),          ENTRY(DestroyHwQueue),
	ENTRY(SubmitCommandToHwQueue), ENTRY(ResetHwEngine),
	ENTRY(SetupPriorityBands),     ENTRY(SetContextSchedulingProperties),
	ENTRY(SuspendContext),         ENTRY(ResumeContext),
	ENTRY(ResumeHwEngine),
};

static const struct entry for_gpummu[] = {ENTRY(SubmitCommandVirtual), ENTRY(SetRootPageTable),
					  ENTRY(CreateProcess), ENTRY(DestroyProcess),
					  ENTRY(GetRootPageTableSize)};

static NTSTATUS check_entries(struct vmm_port *port, const struct entry *entries, size_t count,
			      const char *rule, const char *because)
{
	NTSTATUS status = STATUS_SUCCESS;

	for (size_t i = 0; i < count; i++) {
		void *pointer;

		memcpy(&pointer, (const char *)&port->ddi + entries[i].offset, sizeof(pointer));
		if (pointer)
			continue;
		status = vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, rule, 0, 0,
					 "the table of this %s miniport has no %s: %s needs it",
					 port->version->name, entries[i].name, because);
	}
	return status;
}

NTSTATUS vmm_port_table_read(struct vmm_port *port, const DRIVER_INITIALIZATION_DATA *table)
{
	ULONG version = table->Version;

	vmm_port_report_version(port, version);
	port->version = port->model = NULL;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(versions); i++) {
		if (versions[i].number == version)
			port->version = &versions[i];
	}
	/* C-40: any revision of the newest interface. */
	if (version >> REVISION_BITS == NEWEST.number >> REVISION_BITS)
		port->version = &NEWEST;
	if (!port->version && version > NEWEST.number)
		return vmm_refuse_reason(
			port->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"the miniport registers interface version 0x%x: versions after %s are not "
			"built, only 1.0 to %s (0x%x to 0x%x)",
			version, NEWEST.name, NEWEST.name, versions[0].number, NEWEST.number);
	if (!port->version)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "PNP-01", 0, 0,
			"the miniport registers 0x%x, which is not an interface version", version);
	port->model = port->version;
	memset(&port->ddi, 0, sizeof(port->ddi));
	memcpy(&port->ddi, table, port->version->table_bytes);
	return check_entries(port, required_always, VMM_ARRAY_LENGTH(required_always), "PNP-01",
			     "every adapter");
}

static const struct vmm_port_version *version_of(ULONG number)
{
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(versions); i++)
		if (versions[i].number == number)
			return &versions[i];
	return NULL;
}

/*
 * A miniport may be built with the headers of WDDM 2.x and be one of WDDM 1.x: it fills in the
 * structures of its headers, and answers as the older model does.
 */
void vmm_port_choose_model(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	uint32_t reported = (uint32_t)caps->WDDMVersion;

	if (!vmm_port_is_wddm2(port) || !reported || reported >= DXGKDDI_WDDMv2)
		return;
	port->model = version_of(reported >= DXGKDDI_WDDMv1_3   ? DXGKDDI_INTERFACE_VERSION_WDDM1_3
				 : reported >= DXGKDDI_WDDMv1_2 ? DXGKDDI_INTERFACE_VERSION_WIN8
				 : reported > DXGKDDI_WDDMv1    ? DXGKDDI_INTERFACE_VERSION_WIN7
							     : DXGKDDI_INTERFACE_VERSION_VISTA_SP1);
	vmm_reason(port->observe, STATUS_SUCCESS, 0, 0,
		   "Q-164: WDDMVersion of DXGK_DRIVERCAPS is 0x%x, so the driver model is WDDM %s; "
		   "structures have the sizes of the table's Version 0x%x, WDDM %s",
		   reported, port->model->name, (unsigned)port->version->number,
		   port->version->name);
}

NTSTATUS vmm_port_lacks(struct vmm_port *port, const char *entry)
{
	return vmm_refuse_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
				 "PNP-01: the call needs %s, which the table of this %s miniport "
				 "does not have",
				 entry, port->version->name);
}

/* PNP-01: the entries of the miniport's kind. */
static NTSTATUS check_kind(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	NTSTATUS first = STATUS_SUCCESS;

	if (!port->caps.gpummu.supported)
		first = check_entries(port, for_physical, VMM_ARRAY_LENGTH(for_physical), "PNP-01",
				      "an adapter without GpuMmuSupported");
	else if (!port->ddi.DxgkDdiSubmitCommand)
		first = vmm_refuse_reason(
			port->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"PNP-01: the table has no DxgkDdiSubmitCommand: the submission of paging "
			"buffers with DxgkDdiSubmitCommandVirtual is not built");
	if (!caps->MiscCaps.ComputeOnly)
		first = vmm_port_first_failure(
			first, check_entries(port, for_graphics, VMM_ARRAY_LENGTH(for_graphics),
					     "PNP-01", "an adapter that is not ComputeOnly"));
	return first;
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
		{port->model->engine_reset && caps->SupportPerEngineTDR, for_engine_reset,
		 VMM_ARRAY_LENGTH(for_engine_reset), "TDR-14", "SupportPerEngineTDR"},
		/* SWZ-27: from WDDM 2.0 on no swizzling range is requested. */
		{caps->NumberOfSwizzlingRanges && !vmm_port_is_wddm2(port), for_swizzling,
		 VMM_ARRAY_LENGTH(for_swizzling), "SWZ-01", "NumberOfSwizzlingRanges"},
	};
	NTSTATUS first = check_kind(port, caps);

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(groups); i++) {
		if (groups[i].needed)
			first = vmm_port_first_failure(
				first, check_entries(port, groups[i].entries, groups[i].count,
						     groups[i].rule, groups[i].because));
	}
	return first;
}

NTSTATUS vmm_port_table_check_gpummu(struct vmm_port *port, bool resizable_root)
{
	return check_entries(port, for_gpummu,
			     VMM_ARRAY_LENGTH(for_gpummu) - (resizable_root ? 0 : 1), "VA-11",
			     "GpuMmuSupported");
}

NTSTATUS vmm_port_table_check_hw(struct vmm_port *port)
{
	return check_entries(port, for_hw_queues, VMM_ARRAY_LENGTH(for_hw_queues), "SCH-10",
			     "ContextSchedulingSupported");
}
