/* SPDX-License-Identifier: MIT */
/*
 * What a miniport reported while its adapter was started, as it stands in its answers: also of a start that was
 * refused, up to the refusal. Members named like one of the interface hold what stood there (words of flags as one
 * value); nothing is corrected. vidmm_adapter_options.report says where to put it.
 */
#ifndef VIDMM_CAPS_H
#define VIDMM_CAPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How far a start came: the step that it ended in, for good or bad. */
enum vidmm_start_step {
	VIDMM_START_OPTIONS = 0,      /* the caller's options; the miniport was not called */
	VIDMM_START_LOAD = 1,         /* DriverEntry, DxgkInitialize and the table */
	VIDMM_START_ADD_DEVICE = 2,   /* DxgkDdiAddDevice */
	VIDMM_START_START_DEVICE = 3, /* DxgkDdiStartDevice */
	VIDMM_START_DRIVERCAPS = 4,   /* DxgkDdiQueryAdapterInfo: DXGK_DRIVERCAPS */
	VIDMM_START_SEGMENTS = 5,     /* the same for the segments, both passes */
	VIDMM_START_CORE = 6,         /* VidMm and VidSch: nothing the miniport has a part in */
	VIDMM_START_RUNNING = 7
};

#define VIDMM_REPORT_SEGMENTS_MAX 31
#define VIDMM_REPORT_BANKS_MAX    128
#define VIDMM_REPORT_BARS_MAX     6

struct vidmm_segment_report {
	uint32_t flags; /* DXGK_SEGMENTFLAGS */
	/* The flags that count: those without a meaning for the kind of segment are gone. 0 when it was refused. */
	uint32_t effective_flags;
	uint32_t bank_count;     /* NbOfBanks */
	uint32_t bank_end_count; /* of bank_end: read with UseBanking only */
	uint64_t base_address, cpu_translated_address;
	uint64_t size_bytes, commit_limit_bytes;
	uint64_t system_memory_end_address;        /* since 1.2 */
	uint64_t bank_end[VIDMM_REPORT_BANKS_MAX]; /* pBankRangeTable, without the last bank's */
};

struct vidmm_bar_report {
	uint64_t physical_address, size_bytes;
};

struct vidmm_adapter_report {
	uint32_t struct_size; /* sizeof(struct vidmm_adapter_report) */
	uint32_t step;        /* enum vidmm_start_step */

	/* The device that the miniport was given. */
	uint32_t bar_count;
	struct vidmm_bar_report bar[VIDMM_REPORT_BARS_MAX];

	/* DRIVER_INITIALIZATION_DATA.Version; 0: no table came. */
	uint32_t interface_version;

	/* DXGK_DRIVERCAPS: how much of it this version has; 0: not answered, and the rest is 0. */
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
	/* What vidmm does with the answer; 0: it was refused. */
	uint32_t node_count; /* without MultiEngineAware there is one (SCH-07) */
	uint32_t node_depth; /* packets outstanding on a node (SUB-16) */

	/* The segments: NbSegment of the first pass, and how many of the second are here. */
	uint32_t segment_count, described_count;
	struct vidmm_segment_report segment[VIDMM_REPORT_SEGMENTS_MAX]; /* [0]: segment id 1 */
	uint32_t paging_buffer_segment_id, paging_buffer_size, paging_buffer_private_data_size;
};

#ifdef __cplusplus
}
#endif
#endif
