/* SPDX-License-Identifier: MIT */
/*
 * Allocation flags of WDDM 2.x miniports (DXGK_ALLOCATIONINFOFLAGS_WDDM2_0): the new meaning of
 * bits that renaming, swizzling ranges and links used before (ALF-01), and the bits added in 2.0,
 * 2.1 and 2.9. Also the second flag word of 3.0 (DXGK_ALLOCATIONINFOFLAGS2). validate.c has what
 * all versions have in common.
 */
#include "memory/calls/creation.h"
#include "memory/placement/placement.h"

enum {
	DISABLE_LARGE_PAGE_MAPPING = 0x80, /* 2.1 */
	CREATE_IN_VPR = 0x400,             /* 2.1 */
	RESERVED_ALWAYS = (int)0xFFF81800,
	/* DXGK_ALLOCATIONINFOFLAGS2 */
	SINCE_3_0 = VMM_ALLOCATION2_SHARE_BACKING,
	SINCE_3_2 = 0x3E,
	BUILT_3 = SINCE_3_0 | VMM_ALLOCATION2_NOTIFY_EVICTION | VMM_ALLOCATION2_NOTIFY_IOMMU_UNMAP,
};

static uint32_t reserved_bits(uint32_t version)
{
	uint32_t reserved = (uint32_t)RESERVED_ALWAYS;

	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_1)
		reserved |= CREATE_IN_VPR | DISABLE_LARGE_PAGE_MAPPING;
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_9)
		reserved |= VMM_ALLOCATION_MAP_CPU_VISIBLE;
	return reserved;
}

struct vmm_flags_verdict vmm_flags_check_wddm2(const struct vmm_memory *memory, uint32_t flags)
{
	if (flags & reserved_bits(memory->caps->interface_version))
		return (struct vmm_flags_verdict){"ALF-02", "reserved flag bits are set"};
	if ((flags & VMM_ALLOCATION_NOTIFY_RESIDENCY) &&
	    !(flags & VMM_ALLOCATION_ACCESSED_PHYSICALLY))
		return (struct vmm_flags_verdict){
			/* VA-14 */
			"ALF-25", "ExplicitResidencyNotification without AccessedPhysically"};
	if ((flags & VMM_ALLOCATION_MAP_CPU_VISIBLE) && !memory->caps->map_aperture2)
		return (struct vmm_flags_verdict){
			"ALF-29",
			"MapApertureCpuVisible on an adapter without MapAperture2Supported"};
	return (struct vmm_flags_verdict){NULL, NULL};
}

/* Preconditions are checked before support, so that a miniport's author learns of both (ALF-30). */
struct vmm_flags_verdict vmm_flags_check_wddm3(const struct vmm_memory *memory, uint32_t flags2,
					       bool shared, bool only_apertures, bool existing)
{
	const char *wrong = NULL;

	if (flags2 & SINCE_3_2 &&
	    memory->caps->interface_version < DXGKDDI_INTERFACE_VERSION_WDDM3_2)
		return (struct vmm_flags_verdict){
			"ALF-02", "a bit of Flags2 is set that exists only from 3.2 on "
				  "(NoImplicitSynchronization to NotifyIoMmuUnmap)"};
	if (flags2 & ~(uint32_t)(SINCE_3_0 | SINCE_3_2))
		return (struct vmm_flags_verdict){"ALF-02", "reserved bits of Flags2 are set"};
	if (!(flags2 & VMM_ALLOCATION2_SHARE_BACKING))
		return (struct vmm_flags_verdict){NULL, NULL};
	if (!shared)
		wrong = "ShareBackingStoreWithKmd on an allocation that is not shared";
	else if (existing)
		wrong = "ShareBackingStoreWithKmd with existing memory";
	else if (!only_apertures)
		wrong = "ShareBackingStoreWithKmd on an allocation whose sets contain a memory "
			"segment";
	else if (!vmm_port_feature_is_enabled(memory->adapter->port,
					      DXGK_FEATURE_SHARE_BACKING_STORE_WITH_KMD))
		wrong = "ShareBackingStoreWithKmd, but that feature is not enabled, or the "
			"miniport has not queried it (C-36)";
	else if (!memory->caps->set_backing_store)
		wrong = "ShareBackingStoreWithKmd, but the miniport has no "
			"DxgkDdiSetAllocationBackingStore";
	if (!wrong)
		return (struct vmm_flags_verdict){NULL, NULL};
	return (struct vmm_flags_verdict){"ALF-30", wrong};
}

uint32_t vmm_flags2_of(const struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info)
{
	return memory->caps->interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM3_0
		       ? info->Flags2.Value
		       : 0;
}

bool vmm_flags_are_built_wddm3(uint32_t flags2)
{
	return !(flags2 & ~(uint32_t)BUILT_3);
}
