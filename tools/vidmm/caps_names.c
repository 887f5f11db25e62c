/* SPDX-License-Identifier: MIT */
/*
 * Tables of the names of the DDI and look-ups in them. tests/tools/test_caps.py compares them with
 * the headers.
 */
#include <stdio.h>
#include <string.h>
#include <d3dkmddi.h>

#include "caps_names.h"
#include "units.h"

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof((array)[0])))

static const char *const segment_names[] = {
	"Aperture",
	"Agp",
	"CpuVisible",
	"UseBanking",
	"CacheCoherent",
	"PitchAlignment",
	"PopulatedFromSystemMemory",
	"PreservedDuringStandby",
	"PreservedDuringHibernate",
	"PartiallyPreservedDuringHibernate",
	"DirectFlip",
	"Use64KBPages",
	"ReservedSysMem",
	"SupportsCpuHostAperture",
	"SupportsCachedCpuHostAperture",
	"ApplicationTarget",
	"VprSupported",
	"VprPreservedDuringStandby",
	"EncryptedPagingSupported",
	"LocalBudgetGroup",
	"NonLocalBudgetGroup",
	"PopulatedByReservedDDRByFirmware",
};
static const char *const scheduling_names[] = {
	"MultiEngineAware",   "VSyncPowerSaveAware", "PreemptionAware",       "NoDmaPatching",
	"CancelCommandAware", "No64BitAtomics",      "LowIrqlPreemptCommand",
};
static const char *const memory_names[] = {
	"OutOfOrderLock",
	"DedicatedPagingEngine",
	"PagingEngineCanSwizzle",
	"SectionBackedPrimary",
	"CrossAdapterResource",
	"VirtualAddressingSupported",
	"GpuMmuSupported",
	"IoMmuSupported",
	"ReplicateGdiContent",
	"NonCpuVisiblePrimary",
	"ParavirtualizationSupported",
	"IoMmuSecureModeSupported",
	"DisableSelfRefreshVRAMInS3",
	"IoMmuSecureModeRequired",
	"MapAperture2Supported",
	"CrossAdapterResourceTexture",
	"CrossAdapterResourceScanout",
};
const struct flag_names segment_flags = {segment_names, COUNT(segment_names)},
			scheduling_flags = {scheduling_names, COUNT(scheduling_names)},
			memory_flags = {memory_names, COUNT(memory_names)};

const char *flag_name(const struct flag_names *flags, unsigned bit, char reserved[16])
{
	if (bit < flags->count)
		return flags->names[bit];
	snprintf(reserved, 16, "bit%u", bit);
	return reserved;
}

const char *flags_text(const struct flag_names *flags, uint32_t value, char *text, size_t size)
{
	char reserved[16];
	size_t used = 0;
	unsigned bit;

	snprintf(text, size, "-");
	for (bit = 0; bit < 32 && used < size; bit++) {
		if (value & (uint32_t)1 << bit)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "",
						 flag_name(flags, bit, reserved));
	}
	return text;
}

static const struct {
	uint32_t version;
	const char *name;
} interfaces[] = {
	{DXGKDDI_INTERFACE_VERSION_VISTA, "1.0"},
	{DXGKDDI_INTERFACE_VERSION_VISTA_SP1, "1.0-SP1"},
	{DXGKDDI_INTERFACE_VERSION_WIN7, "1.1"},
	{DXGKDDI_INTERFACE_VERSION_WIN8, "1.2"},
	{DXGKDDI_INTERFACE_VERSION_WDDM1_3, "1.3"},
	{DXGKDDI_INTERFACE_VERSION_WDDM1_3_PATH_INDEPENDENT_ROTATION, "1.3-rotation"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_0, "2.0"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_1, "2.1"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_1_5, "2.1.5"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_1_6, "2.1.6"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_2, "2.2"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_3, "2.3"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_4, "2.4"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_5, "2.5"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_6, "2.6"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_7, "2.7"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_8, "2.8"},
	{DXGKDDI_INTERFACE_VERSION_WDDM2_9, "2.9"},
	{DXGKDDI_INTERFACE_VERSION_WDDM3_0, "3.0"},
	{DXGKDDI_INTERFACE_VERSION_WDDM3_1, "3.1"},
	{DXGKDDI_INTERFACE_VERSION_WDDM3_2, "3.2"},
};

const char *interface_name(uint32_t version)
{
	unsigned i;

	for (i = 0; i < COUNT(interfaces); i++) {
		if (interfaces[i].version == version)
			return interfaces[i].name;
	}
	return "unknown";
}

int interface_parse(const char *text, uint64_t *version)
{
	unsigned i;

	for (i = 0; i < COUNT(interfaces); i++) {
		if (strcmp(interfaces[i].name, text) == 0) {
			*version = interfaces[i].version;
			return 1;
		}
	}
	return strncmp(text, "0x", 2) == 0 && units_parse_u64(text, version) &&
	       *version <= UINT32_MAX;
}

const char *wddm_version_name(uint32_t version)
{
	static const struct {
		uint32_t version;
		const char *name;
	} names[] = {
		{0, "not reported"},       {DXGKDDI_WDDMv1, "1.0"},   {DXGKDDI_WDDMv1_2, "1.2"},
		{DXGKDDI_WDDMv1_3, "1.3"}, {DXGKDDI_WDDMv2, "2.0"},   {DXGKDDI_WDDMv2_1, "2.1"},
		{DXGKDDI_WDDMv2_2, "2.2"}, {DXGKDDI_WDDMv2_3, "2.3"}, {DXGKDDI_WDDMv2_4, "2.4"},
		{DXGKDDI_WDDMv2_5, "2.5"}, {DXGKDDI_WDDMv2_6, "2.6"}, {DXGKDDI_WDDMv2_7, "2.7"},
		{DXGKDDI_WDDMv2_8, "2.8"}, {DXGKDDI_WDDMv2_9, "2.9"}, {DXGKDDI_WDDMv3, "3.0"},
		{DXGKDDI_WDDMv3_1, "3.1"}, {DXGKDDI_WDDMv3_2, "3.2"},
	};
	unsigned i;

	for (i = 0; i < COUNT(names); i++) {
		if (names[i].version == version)
			return names[i].name;
	}
	return "unknown";
}

const char *preemption_name(uint32_t granularity, int compute)
{
	static const char *const graphics[] = {
		"NONE",           "DMA_BUFFER_BOUNDARY", "PRIMITIVE_BOUNDARY", "TRIANGLE_BOUNDARY",
		"PIXEL_BOUNDARY", "SHADER_BOUNDARY"};
	static const char *const computes[] = {"NONE",
					       "DMA_BUFFER_BOUNDARY",
					       "DISPATCH_BOUNDARY",
					       "THREAD_GROUP_BOUNDARY",
					       "THREAD_BOUNDARY",
					       "SHADER_BOUNDARY"};

	if (granularity % 100 || granularity / 100 >= COUNT(graphics))
		return "unknown";
	return compute ? computes[granularity / 100] : graphics[granularity / 100];
}

static const struct {
	const char *key, *name;
} steps[] = {
	[VIDMM_START_OPTIONS] = {"options", "the options"},
	[VIDMM_START_LOAD] = {"load", "DriverEntry"},
	[VIDMM_START_ADD_DEVICE] = {"add_device", "DxgkDdiAddDevice"},
	[VIDMM_START_START_DEVICE] = {"start_device", "DxgkDdiStartDevice"},
	[VIDMM_START_DRIVERCAPS] = {"driver_caps", "DxgkDdiQueryAdapterInfo for DXGK_DRIVERCAPS"},
	[VIDMM_START_SEGMENTS] = {"segments", "DxgkDdiQueryAdapterInfo for the segments"},
	[VIDMM_START_CORE] = {"core", "the setup of VidMm and VidSch"},
	[VIDMM_START_RUNNING] = {"running", "the running adapter"},
};

const char *step_name(uint32_t step)
{
	return step < COUNT(steps) ? steps[step].name : "unknown";
}

const char *step_key(uint32_t step)
{
	return step < COUNT(steps) ? steps[step].key : "unknown";
}

#define CAP(name, kind, member, since_bytes)                                            \
	{                                                                               \
		name, kind, offsetof(struct vidmm_adapter_report, member),              \
			sizeof(((struct vidmm_adapter_report *)0)->member), since_bytes \
	}

const struct cap caps_table[] = {
	CAP("HighestAcceptableAddress", CAP_ADDRESS, highest_acceptable_address, 1),
	CAP("MaxAllocationListSlotId", CAP_COUNT, max_allocation_list_slot_id, 1),
	CAP("ApertureSegmentCommitLimit", CAP_BYTES, aperture_segment_commit_limit, 1),
	CAP("InterruptMessageNumber", CAP_COUNT, interrupt_message_number, 1),
	CAP("NumberOfSwizzlingRanges", CAP_COUNT, number_of_swizzling_ranges, 1),
	CAP("SchedulingCaps", CAP_SCHEDULING, scheduling_caps, 1),
	CAP("MemoryManagementCaps", CAP_MEMORY, memory_management_caps, 1),
	CAP("PagingNode", CAP_COUNT, paging_node, 1),
	CAP("NbAsymetricProcessingNodes", CAP_COUNT, nb_asymetric_processing_nodes, 1),
	CAP("WDDMVersion", CAP_WDDM, wddm_version, 528),
	CAP("GraphicsPreemptionGranularity", CAP_GRAPHICS_PREEMPTION, graphics_preemption, 544),
	CAP("ComputePreemptionGranularity", CAP_COMPUTE_PREEMPTION, compute_preemption, 544),
	CAP("SupportPerEngineTDR", CAP_BOOLEAN, support_per_engine_tdr, 544),
};
const unsigned caps_count = COUNT(caps_table);

uint64_t cap_value(const struct cap *cap, const struct vidmm_adapter_report *report)
{
	uint64_t wide;
	uint32_t narrow;

	if (cap->size == sizeof(wide)) {
		memcpy(&wide, (const char *)report + cap->offset, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, (const char *)report + cap->offset, sizeof(narrow));
	return narrow;
}
