/* SPDX-License-Identifier: MIT */
/*
 * What a miniport reported while its adapter started. vidmm_adapter_start fills the structure that
 * vidmm_adapter_options.report points to. It is filled for a refused start, too, up to the refusal,
 * and does not change after vidmm_adapter_start has returned.
 *
 * A member with the name of a DDI member holds the value that the miniport wrote there,
 * uncorrected; a union of flags is one value. The comments name the structures, whose pages define
 * the values. Addresses are physical addresses; sizes are bytes.
 */
#ifndef VIDMM_CAPS_H
#define VIDMM_CAPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The step in which a start ended, successfully or not. */
enum vidmm_start_step {
	VIDMM_START_OPTIONS = 0,      /* checking the caller's options; no call of the miniport */
	VIDMM_START_LOAD = 1,         /* DriverEntry, DxgkInitialize, its table */
	VIDMM_START_ADD_DEVICE = 2,   /* DxgkDdiAddDevice */
	VIDMM_START_START_DEVICE = 3, /* DxgkDdiStartDevice */
	VIDMM_START_DRIVERCAPS = 4,   /* DxgkDdiQueryAdapterInfo: DXGK_DRIVERCAPS */
	VIDMM_START_SEGMENTS = 5,     /* DxgkDdiQueryAdapterInfo: the segments, both passes */
	VIDMM_START_CORE = 6,         /* vidmm's memory manager and scheduler */
	VIDMM_START_RUNNING = 7       /* the adapter runs */
};

#define VIDMM_REPORT_SEGMENTS_MAX 31
#define VIDMM_REPORT_BANKS_MAX    128
#define VIDMM_REPORT_BARS_MAX     6

/* One DXGK_SEGMENTDESCRIPTOR or one of its later forms. */
struct vidmm_segment_report {
	uint32_t flags; /* DXGK_SEGMENTFLAGS */
	/* flags without those that have no meaning for this kind; 0 for a refused segment */
	uint32_t effective_flags;
	uint32_t bank_count;     /* NbOfBanks */
	uint32_t bank_end_count; /* entries of bank_end; 0 without UseBanking */
	uint64_t base_address, cpu_translated_address;
	uint64_t size_bytes, commit_limit_bytes;
	uint64_t system_memory_end_address; /* since 1.2 */
	/* pBankRangeTable without the last bank: end offsets in the segment */
	uint64_t bank_end[VIDMM_REPORT_BANKS_MAX];
};

struct vidmm_bar_report {
	uint64_t physical_address, size_bytes;
};

struct vidmm_adapter_report {
	uint32_t struct_size; /* sizeof(struct vidmm_adapter_report) */
	uint32_t step;        /* enum vidmm_start_step: the last step that began */

	/* the memory BARs of the device that vidmm gave the miniport */
	uint32_t bar_count;
	struct vidmm_bar_report bar[VIDMM_REPORT_BARS_MAX];

	/* DRIVER_INITIALIZATION_DATA.Version; 0: the miniport registered no table */
	uint32_t interface_version;

	/*
	 * DXGK_DRIVERCAPS: its size in bytes in this interface version. 0: the query failed, and
	 * the members below are 0.
	 */
	uint32_t driver_caps_bytes;
	uint64_t highest_acceptable_address, aperture_segment_commit_limit;
	uint32_t max_allocation_list_slot_id, interrupt_message_number, number_of_swizzling_ranges;
	uint32_t scheduling_caps;               /* DXGK_VIDSCHCAPS */
	uint32_t memory_management_caps;        /* DXGK_VIDMMCAPS */
	uint32_t paging_node;                   /* DXGK_VIDMMCAPS.PagingNode */
	uint32_t nb_asymetric_processing_nodes; /* DXGK_GPUENGINETOPOLOGY */
	uint32_t wddm_version;                  /* since 1.1 */
	uint32_t graphics_preemption;           /* D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY, 1.2 */
	uint32_t compute_preemption;            /* D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY, 1.2 */
	uint32_t support_per_engine_tdr;        /* since 1.2 */
	/* What vidmm derives from these capabilities; 0: vidmm refused them. */
	uint32_t node_count; /* 1 without MultiEngineAware (SCH-07) */
	uint32_t node_depth; /* most packets outstanding on a node (SUB-16) */

	/*
	 * segment_count: NbSegment of the first query. described_count: entries of `segment`, which
	 * the second query filled; fewer after a refusal.
	 */
	uint32_t segment_count, described_count;
	struct vidmm_segment_report segment[VIDMM_REPORT_SEGMENTS_MAX]; /* [0]: segment id 1 */
	uint32_t paging_buffer_segment_id, paging_buffer_size, paging_buffer_private_data_size;
};

#ifdef __cplusplus
}
#endif
#endif
