/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiQueryAdapterInfo, DxgkDdiGetNodeMetadata and DxgkDdiEscape: describe the adapter.
 * Reentrant; they read only the settings.
 */
#include "softgpu_private.h"

/* Up to this offset DXGK_DRIVERCAPS is the same in every version. */
#define DRIVERCAPS_SIZE_1_0 336u

/* ApertureSize 0: video memory is the only segment. */
UINT softgpu_segment_count(const struct softgpu_adapter *adapter)
{
	return adapter->settings.aperture_bytes ? 2 : 1;
}

static NTSTATUS query_driver_private(const struct softgpu_adapter *adapter,
				     const DXGKARG_QUERYADAPTERINFO *query)
{
	struct softgpu_adapter_info info = {
		.version = SOFTGPU_ADAPTER_INFO_VERSION,
		.node_count = SOFTGPU_NODES,
		.vram_bytes = adapter->memory.vram_bytes,
		.aperture_bytes = adapter->settings.aperture_bytes,
		.paging_node = adapter->settings.paging_node,
		.swizzling_ranges = adapter->settings.swizzling_ranges,
	};

	if (query->OutputDataSize < sizeof(info))
		return STATUS_BUFFER_TOO_SMALL;
	memcpy(query->pOutputData, &info, sizeof(info));
	return STATUS_SUCCESS;
}

static DXGK_WDDMVERSION wddm_version(uint32_t interface_version)
{
	if (interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM2_0)
		return softgpu_wddm_version(interface_version);
	if (interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM1_3)
		return DXGKDDI_WDDMv1_3;
	return interface_version >= DXGKDDI_INTERFACE_VERSION_WIN8 ? DXGKDDI_WDDMv1_2
								   : DXGKDDI_WDDMv1;
}

static NTSTATUS query_driver_caps(const struct softgpu_adapter *adapter,
				  const DXGKARG_QUERYADAPTERINFO *query)
{
	const struct softgpu_settings *settings = &adapter->settings;
	DXGK_DRIVERCAPS caps;

	if (query->OutputDataSize < DRIVERCAPS_SIZE_1_0)
		return STATUS_BUFFER_TOO_SMALL;
	memset(&caps, 0, sizeof(caps));
	caps.HighestAcceptableAddress.QuadPart = -1;
	caps.MaxAllocationListSlotId = SOFTGPU_SLOTS;
	caps.ApertureSegmentCommitLimit = (SIZE_T)settings->aperture_bytes;
	caps.NumberOfSwizzlingRanges = settings->swizzling_ranges;
	if (settings->source_count && settings->flip_mmio) {
		caps.FlipCaps.FlipOnVSyncMmIo = 1;
		caps.FlipCaps.FlipImmediateMmIo = 1;
	}
	caps.SchedulingCaps.MultiEngineAware = 1;
	caps.SchedulingCaps.PreemptionAware = settings->preemption_aware != 0;
	caps.MemoryManagementCaps.PagingNode = settings->paging_node;
	caps.GpuEngineTopology.NbAsymetricProcessingNodes = SOFTGPU_NODES;
	caps.MemoryManagementCaps.VirtualAddressingSupported = softgpu_is_wddm2(settings);
	caps.MemoryManagementCaps.GpuMmuSupported = softgpu_is_wddm2(settings);
	caps.WDDMVersion = wddm_version(settings->interface_version);
	caps.PreemptionCaps.GraphicsPreemptionGranularity =
		settings->preemption_aware ? D3DKMDT_GRAPHICS_PREEMPTION_DMA_BUFFER_BOUNDARY
					   : D3DKMDT_GRAPHICS_PREEMPTION_NONE;
	caps.PreemptionCaps.ComputePreemptionGranularity =
		settings->preemption_aware ? D3DKMDT_COMPUTE_PREEMPTION_DMA_BUFFER_BOUNDARY
					   : D3DKMDT_COMPUTE_PREEMPTION_NONE;
	caps.SupportSurpriseRemovalInHibernation = 1;
	caps.SupportPerEngineTDR = settings->per_engine_tdr != 0;
	/* A caller of an older version provides memory for the members of that version only. */
	memcpy(query->pOutputData, &caps,
	       query->OutputDataSize < sizeof(caps) ? query->OutputDataSize : sizeof(caps));
	return STATUS_SUCCESS;
}

void softgpu_describe_segments(const struct softgpu_adapter *adapter,
			       DXGK_SEGMENTDESCRIPTOR3 *segments)
{
	DXGK_SEGMENTDESCRIPTOR3 *vram = &segments[SOFTGPU_SEGMENT_VRAM - 1];

	memset(segments, 0, softgpu_segment_count(adapter) * sizeof(*segments));
	vram->CpuTranslatedAddress = adapter->vram_address;
	vram->Size = (SIZE_T)adapter->memory.vram_bytes;
	vram->CommitLimit = vram->Size;
	vram->Flags.CpuVisible = adapter->settings.vram_cpu_visible != 0;
	if (adapter->settings.vram_banks) {
		vram->Flags.UseBanking = 1;
		vram->NbOfBanks = adapter->settings.vram_banks;
		vram->pBankRangeTable = (SIZE_T *)adapter->bank_ends;
	}
	if (softgpu_segment_count(adapter) < SOFTGPU_SEGMENT_APERTURE)
		return;
	DXGK_SEGMENTDESCRIPTOR3 *aperture = &segments[SOFTGPU_SEGMENT_APERTURE - 1];
	aperture->BaseAddress.QuadPart = (LONGLONG)SOFTGPU_APERTURE_BASE;
	aperture->Size = (SIZE_T)adapter->settings.aperture_bytes;
	aperture->CommitLimit = aperture->Size;
	aperture->Flags.Aperture = 1;
	aperture->Flags.CacheCoherent = adapter->settings.aperture_coherent != 0;
}

/*
 * The first call asks for the number of segments, the second provides memory for that many
 * descriptors (SEG-02).
 */
static NTSTATUS query_segment3(const struct softgpu_adapter *adapter,
			       const DXGKARG_QUERYADAPTERINFO *query)
{
	DXGK_QUERYSEGMENTOUT3 *out = query->pOutputData;
	UINT count = softgpu_segment_count(adapter);

	if (query->OutputDataSize < sizeof(*out) ||
	    (out->pSegmentDescriptor && out->NbSegment < count))
		return STATUS_BUFFER_TOO_SMALL;
	out->NbSegment = count;
	if (!out->pSegmentDescriptor)
		return STATUS_SUCCESS;
	softgpu_describe_segments(adapter, out->pSegmentDescriptor);
	out->PagingBufferSegmentId = adapter->settings.paging_buffer_segment;
	out->PagingBufferSize = adapter->settings.paging_buffer_bytes;
	out->PagingBufferPrivateDataSize = sizeof(struct softgpu_dma_private);
	return STATUS_SUCCESS;
}

/* The 1.0 form of the same query. */
static NTSTATUS query_segment(const struct softgpu_adapter *adapter,
			      const DXGKARG_QUERYADAPTERINFO *query)
{
	DXGK_QUERYSEGMENTOUT *out = query->pOutputData;
	DXGK_SEGMENTDESCRIPTOR3 segments[SOFTGPU_SEGMENTS_MAX];
	UINT count = softgpu_segment_count(adapter), i;

	if (query->OutputDataSize < sizeof(*out) ||
	    (out->pSegmentDescriptor && out->NbSegment < count))
		return STATUS_BUFFER_TOO_SMALL;
	out->NbSegment = count;
	if (!out->pSegmentDescriptor)
		return STATUS_SUCCESS;
	softgpu_describe_segments(adapter, segments);
	for (i = 0; i < count; i++) {
		DXGK_SEGMENTDESCRIPTOR *segment = &out->pSegmentDescriptor[i];

		memset(segment, 0, sizeof(*segment));
		segment->BaseAddress = segments[i].BaseAddress;
		segment->CpuTranslatedAddress = segments[i].CpuTranslatedAddress;
		segment->Size = segments[i].Size;
		segment->NbOfBanks = segments[i].NbOfBanks;
		segment->pBankRangeTable = segments[i].pBankRangeTable;
		segment->CommitLimit = segments[i].CommitLimit;
		segment->Flags = segments[i].Flags;
	}
	out->PagingBufferSegmentId = adapter->settings.paging_buffer_segment;
	out->PagingBufferSize = adapter->settings.paging_buffer_bytes;
	out->PagingBufferPrivateDataSize = sizeof(struct softgpu_dma_private);
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_query_adapter_info(IN_CONST_HANDLE hAdapter,
					     IN_CONST_PDXGKARG_QUERYADAPTERINFO pQueryAdapterInfo)
{
	const struct softgpu_adapter *adapter = hAdapter;

	if (!pQueryAdapterInfo->pOutputData)
		return STATUS_INVALID_PARAMETER;
	switch (pQueryAdapterInfo->Type) {
	case DXGKQAITYPE_UMDRIVERPRIVATE:
		return query_driver_private(adapter, pQueryAdapterInfo);
	case DXGKQAITYPE_DRIVERCAPS:
		return query_driver_caps(adapter, pQueryAdapterInfo);
	case DXGKQAITYPE_QUERYSEGMENT:
		return query_segment(adapter, pQueryAdapterInfo);
	case DXGKQAITYPE_QUERYSEGMENT3:
		return query_segment3(adapter, pQueryAdapterInfo);
	default:
		return softgpu_is_wddm2(&adapter->settings)
			       ? softgpu_query_wddm2(adapter, pQueryAdapterInfo)
			       : STATUS_NOT_SUPPORTED;
	}
}

NTSTATUS APIENTRY softgpu_get_node_metadata(IN_CONST_HANDLE hAdapter,
					    UINT NodeOrdinalAndAdapterIndex,
					    OUT_PDXGKARG_GETNODEMETADATA pGetNodeMetadata)
{
	static const WCHAR names[SOFTGPU_NODES][8] = {{'3', 'D'}, {'C', 'o', 'p', 'y'}};
	UINT node = NodeOrdinalAndAdapterIndex & 0xFFFF, link = NodeOrdinalAndAdapterIndex >> 16;

	if (node >= SOFTGPU_NODES || link >= ((struct softgpu_adapter *)hAdapter)->link_count)
		return STATUS_INVALID_PARAMETER;
	memset(pGetNodeMetadata, 0, sizeof(*pGetNodeMetadata));
	pGetNodeMetadata->EngineType =
		node == SOFTGPU_NODE_3D ? DXGK_ENGINE_TYPE_3D : DXGK_ENGINE_TYPE_COPY;
	memcpy(pGetNodeMetadata->FriendlyName, names[node], sizeof(names[node]));
	if (((struct softgpu_adapter *)hAdapter)->takes_hw_queues) {
		pGetNodeMetadata->Flags.ContextSchedulingSupported = 1;
		pGetNodeMetadata->Flags.RingBufferFenceRelease =
			((struct softgpu_adapter *)hAdapter)->settings.hardware_queues ==
			SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES;
		pGetNodeMetadata->Flags.MaxInFlightHwQueueBuffers = SOFTGPU_HW_QUEUE_DEPTH;
	}
	return STATUS_SUCCESS;
}

/* Reentrant: level zero, because no caller may set HardwareAccess. */
NTSTATUS APIENTRY softgpu_escape(IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_ESCAPE pEscape)
{
	const struct softgpu_adapter *adapter = hAdapter;
	struct softgpu_escape escape;

	if (pEscape->PrivateDriverDataSize != sizeof(escape))
		return STATUS_INVALID_PARAMETER;
	memcpy(&escape, pEscape->pPrivateDriverData, sizeof(escape));
	if (escape.version != SOFTGPU_ESCAPE_VERSION || escape.command != SOFTGPU_ESCAPE_QUERY)
		return STATUS_INVALID_PARAMETER;
	escape.interface_version = adapter->settings.interface_version;
	escape.node_count = SOFTGPU_NODES;
	escape.vram_bytes = adapter->memory.vram_bytes;
	escape.aperture_bytes = adapter->settings.aperture_bytes;
	memcpy(pEscape->pPrivateDriverData, &escape, sizeof(escape));
	return STATUS_SUCCESS;
}

/*
 * All engines have one clock, which counts nanoseconds of the performance counter: one reading of
 * the counter gives both values. Reentrant, any IRQL.
 */
NTSTATUS APIENTRY softgpu_calibrate_gpu_clock(IN_CONST_HANDLE hAdapter, UINT32 NodeOrdinal,
					      UINT32 EngineOrdinal,
					      OUT_PDXGKARG_CALIBRATEGPUCLOCK pClockCalibration)
{
	const struct softgpu_adapter *adapter = hAdapter;
	LARGE_INTEGER frequency, now = KeQueryPerformanceCounter(&frequency);

	if (NodeOrdinal >= SOFTGPU_NODES || EngineOrdinal >= adapter->link_count)
		return STATUS_INVALID_PARAMETER;
	memset(pClockCalibration, 0, sizeof(*pClockCalibration));
	pClockCalibration->GpuFrequency = SOFTGPU_CLOCK_HZ;
	pClockCalibration->GpuClockCounter = softgpu_clock(now, frequency);
	pClockCalibration->CpuClockCounter = (ULONGLONG)now.QuadPart;
	return STATUS_SUCCESS;
}
