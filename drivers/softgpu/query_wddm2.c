/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiQueryAdapterInfo, the queries of WDDM 2.x: segments in their form of 2.0, the page tables,
 * and the physical adapter. Reentrant; they read only the settings.
 */
#include "softgpu_private.h"

#define TWO_LEVEL_BITS 40u /* of a virtual address; the root grows up to 2^19 entries */

DXGK_WDDMVERSION softgpu_wddm_version(uint32_t interface_version)
{
	static const struct {
		uint32_t first;
		DXGK_WDDMVERSION version;
	} versions[] = {
		{DXGKDDI_INTERFACE_VERSION_WDDM2_7, DXGKDDI_WDDMv2_7},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_6, DXGKDDI_WDDMv2_6},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_5, DXGKDDI_WDDMv2_5},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_4, DXGKDDI_WDDMv2_4},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_3, DXGKDDI_WDDMv2_3},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_2, DXGKDDI_WDDMv2_2},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_1, DXGKDDI_WDDMv2_1},
	};
	size_t i;

	for (i = 0; i < ARRAYSIZE(versions); i++)
		if (interface_version >= versions[i].first)
			return versions[i].version;
	return DXGKDDI_WDDMv2;
}

/* Two passes as of the older forms; the caller says how far apart the descriptors are (SEG-02). */
static NTSTATUS query_segment4(const struct softgpu_adapter *adapter,
			       const DXGKARG_QUERYADAPTERINFO *query)
{
	DXGK_SEGMENTDESCRIPTOR3 segments[SOFTGPU_SEGMENTS_MAX];
	DXGK_QUERYSEGMENTOUT4 *out = query->pOutputData;
	UINT count = softgpu_segment_count(adapter), i;

	if (query->OutputDataSize < sizeof(*out) ||
	    (out->pSegmentDescriptor &&
	     (out->NbSegment < count ||
	      out->SegmentDescriptorStride < sizeof(DXGK_SEGMENTDESCRIPTOR4))))
		return STATUS_BUFFER_TOO_SMALL;
	out->NbSegment = count;
	if (!out->pSegmentDescriptor)
		return STATUS_SUCCESS;
	softgpu_describe_segments(adapter, segments);
	for (i = 0; i < count; i++) {
		BYTE *at = out->pSegmentDescriptor + i * out->SegmentDescriptorStride;
		DXGK_SEGMENTDESCRIPTOR4 *segment = (void *)at;

		memset(segment, 0, sizeof(*segment));
		segment->Flags = segments[i].Flags;
		segment->BaseAddress = segments[i].BaseAddress;
		segment->Size = segments[i].Size;
		segment->CommitLimit = segments[i].CommitLimit;
		segment->CpuTranslatedAddress = segments[i].CpuTranslatedAddress;
		if (segment->Flags.Aperture) {
			segment->Flags.NonLocalBudgetGroup = 1;
			continue;
		}
		segment->Flags.LocalBudgetGroup = 1;
		segment->Flags.Use64KBPages =
			adapter->settings.vram_page_bytes == SOFTGPU_LARGE_PAGE;
	}
	out->PagingBufferSegmentId = adapter->settings.paging_buffer_segment;
	out->PagingBufferSize = adapter->settings.paging_buffer_bytes;
	out->PagingBufferPrivateDataSize = sizeof(struct softgpu_dma_private);
	return STATUS_SUCCESS;
}

static NTSTATUS query_mmu(const struct softgpu_adapter *adapter,
			  const DXGKARG_QUERYADAPTERINFO *query)
{
	DXGK_GPUMMUCAPS *caps = query->pOutputData;
	uint32_t levels = adapter->settings.page_table_levels;

	if (query->OutputDataSize < sizeof(*caps))
		return STATUS_BUFFER_TOO_SMALL;
	memset(caps, 0, sizeof(*caps));
	caps->ReadOnlyMemorySupported = 1;
	caps->ZeroInPteSupported = 1;
	caps->CacheCoherentMemorySupported = 1;
	caps->InvalidTlbEntriesNotCached =
		adapter->settings.interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM2_6;
	caps->PageTableUpdateMode = DXGK_PAGETABLEUPDATE_GPU_PHYSICAL;
	caps->VirtualAddressBitCount =
		levels == 2 ? TWO_LEVEL_BITS : SOFTGPU_PAGE_SHIFT + levels * SOFTGPU_TABLE_BITS;
	caps->LeafPageTableSizeFor64KPagesInBytes = SOFTGPU_PAGE;
	caps->PageTableLevelCount = levels;
	return STATUS_SUCCESS;
}

/* With two levels the root has no fixed size; DxgkDdiGetRootPageTableSize tells it (VA-11). */
static NTSTATUS query_level(const struct softgpu_adapter *adapter,
			    const DXGKARG_QUERYADAPTERINFO *query)
{
	const DXGK_QUERYPAGETABLELEVELDESCIN *in = query->pInputData;
	DXGK_PAGE_TABLE_LEVEL_DESC *level = query->pOutputData;

	if (query->InputDataSize < sizeof(*in) || query->OutputDataSize < sizeof(*level))
		return STATUS_BUFFER_TOO_SMALL;
	if (in->LevelIndex >= adapter->settings.page_table_levels)
		return STATUS_INVALID_PARAMETER;
	memset(level, 0, sizeof(*level));
	level->PageTableSegmentId = SOFTGPU_SEGMENT_VRAM;
	level->PagingProcessPageTableSegmentId = SOFTGPU_SEGMENT_VRAM;
	level->PageTableAlignmentInBytes = SOFTGPU_PAGE;
	if (adapter->settings.page_table_levels == 2 && in->LevelIndex == 1)
		return STATUS_SUCCESS;
	level->PageTableIndexBitCount = SOFTGPU_TABLE_BITS;
	level->PageTableSizeInBytes = SOFTGPU_TABLE_ENTRIES * sizeof(uint64_t);
	return STATUS_SUCCESS;
}

/* The members that only linked or protected adapters use stay as they are. */
static NTSTATUS query_physical_adapter(const struct softgpu_adapter *adapter,
				       const DXGKARG_QUERYADAPTERINFO *query)
{
	DXGK_PHYSICALADAPTERCAPS *caps = query->pOutputData;

	if (query->OutputDataSize < sizeof(*caps))
		return STATUS_BUFFER_TOO_SMALL;
	caps->NumExecutionNodes = SOFTGPU_NODES;
	caps->PagingNodeIndex = (WORD)adapter->settings.paging_node;
	caps->Flags.Value = 0;
	caps->Flags.GpuMmu = 1;
	return STATUS_SUCCESS;
}

NTSTATUS softgpu_query_wddm2(const struct softgpu_adapter *adapter,
			     const DXGKARG_QUERYADAPTERINFO *query)
{
	switch (query->Type) {
	case DXGKQAITYPE_QUERYSEGMENT4:
		return query_segment4(adapter, query);
	case DXGKQAITYPE_GPUMMUCAPS:
		return query_mmu(adapter, query);
	case DXGKQAITYPE_PAGETABLELEVELDESC:
		return query_level(adapter, query);
	case DXGKQAITYPE_PHYSICALADAPTERCAPS:
		return query_physical_adapter(adapter, query);
	default:
		return STATUS_NOT_SUPPORTED;
	}
}
