/* SPDX-License-Identifier: MIT */
/*
 * The wrong lines of mutant_driver.c by the numbers of the registry value Mutant. Each comment has
 * the verb of vidmm that shows the line, and the rules of all its findings.
 */
#ifndef VMM_TESTS_MUTANTS_MUTANTS_H
#define VMM_TESTS_MUTANTS_MUTANTS_H

enum {
	NOTHING,
	/* the table */
	NO_ADD_DEVICE,          /* caps PNP-01 */
	NO_INTERRUPT_ROUTINE,   /* caps PNP-01 */
	NO_CREATE_DEVICE,       /* caps PNP-01 */
	NO_CLOSE_ALLOCATION,    /* caps PNP-01 */
	NO_BUILD_PAGING_BUFFER, /* caps PNP-01 */
	NO_SUBMIT_COMMAND,      /* caps PNP-01 */
	NO_CURRENT_FENCE,       /* caps PNP-01 */
	NO_RESTART,             /* caps PNP-01 */
	VERSION_UNKNOWN,        /* caps PNP-01 */
	NOT_REGISTERED,         /* caps PNP-01 */
	REGISTERED_TWICE,       /* caps PNP-01 */
	/* capabilities */
	PREEMPTION_ALONE,      /* caps PRE-09 */
	NO_PATCHING_ALONE,     /* caps SPL-15 */
	NO_CONTEXT_ENTRIES,    /* caps DMA-33 */
	NO_NODE,               /* caps SCH-07 */
	PAGING_NODE_MISSING,   /* caps SCH-09 */
	NO_ENGINE_RESET_ENTRY, /* caps TDR-14 */
	NO_SWIZZLING_ENTRY,    /* caps SWZ-01 */
	/* segments */
	NO_SEGMENT,              /* caps SEG-02 */
	SEGMENTS_TOO_MANY,       /* caps DMA-20 */
	SEGMENT_COUNT_CHANGES,   /* caps SEG-02 */
	SEGMENT_ARRAY_CHANGES,   /* caps SEG-02 */
	SEGMENT_IS_AGP,          /* caps SEG-06 */
	SEGMENT_FLAG_OF_2_0,     /* caps SEG-24 */
	HIBERNATE_ALONE,         /* caps SEG-22 */
	SEGMENT_SIZE_ODD,        /* caps SEG-03 */
	COMMIT_LIMIT_LOW,        /* caps SEG-04 */
	SEGMENT_WRAPS,           /* caps SEG-27 */
	SEGMENT_OUTSIDE_BAR,     /* caps SEG-08 */
	SEGMENT_UNALIGNED,       /* caps SEG-08 */
	BANKS_ZERO,              /* caps SEG-12 */
	BANKS_WITHOUT_TABLE,     /* caps SEG-12 */
	BANK_OUTSIDE,            /* caps SEG-12 */
	PAGING_SEGMENT_MEMORY,   /* caps SEG-21 */
	PAGING_SEGMENT_MISSING,  /* caps SEG-21 */
	PAGING_BUFFER_SIZE_ZERO, /* caps SEG-21 */
	/* services, in DxgkDdiStartDevice; and stopping */
	NOTIFY_AT_PASSIVE,   /* caps SUB-10 */
	DPC_AT_PASSIVE,      /* caps SUB-07 */
	HANDLE_IS_ADAPTER,   /* caps NT-07 */
	MAP_OUTSIDE_BAR,     /* caps NT-08 */
	UNMAP_UNKNOWN,       /* caps NT-08 */
	SYNCHRONIZE_MESSAGE, /* caps SUB-13 */
	STOP_STATUS,         /* caps PNP-02 */
	REMOVE_STATUS,       /* caps PNP-01 */
	/* devices and allocations */
	CREATE_DEVICE_STATUS,      /* conform DMA-01 */
	NO_DEVICE_INFO,            /* conform DMA-33 */
	DESTROY_DEVICE_STATUS,     /* replay PNP-03 */
	NO_ALLOCATION_HANDLE,      /* replay ALF-33 */
	ALLOCATION_SIZE_ZERO,      /* replay SEG-11 */
	ALIGNMENT_ODD,             /* replay SEG-11 */
	PRIORITY_ZERO,             /* replay PRI-02 */
	READ_SET_EMPTY,            /* replay SEG-19 */
	WRITE_SET_UNKNOWN,         /* replay SEG-19 */
	EVICTION_SET_MEMORY,       /* replay SEG-20 */
	PREFERRED_UNKNOWN,         /* replay SEG-16 */
	CACHED_ALONE,              /* replay ALF-05 */
	PERMANENT_ALONE,           /* replay ALF-04 */
	PROTECTED_PERMANENT,       /* replay ALF-07 */
	DESTROY_ALLOCATION_STATUS, /* replay ALF-34 */
	OPEN_STATUS,               /* replay ALF-34 */
	CLOSE_STATUS,              /* replay ALF-34 */
	/* commands */
	RENDER_STATUS,        /* replay DMA-31 */
	RENDER_BACKWARDS,     /* replay DMA-28 FATAL */
	RENDER_TOO_FAR,       /* replay DMA-28 FATAL */
	RENDER_PRIVATE_FAR,   /* replay DMA-28 FATAL */
	RENDER_NEVER_FITS,    /* replay DMA-29 */
	RENDER_INERT,         /* check Q-492 */
	PATCH_INDEX_OUTSIDE,  /* replay PAT-02 */
	PATCH_OFFSET_OUTSIDE, /* replay PAT-05 */
	SPLIT_AFTER_PATCH,    /* replay PAT-05 */
	PATCH_STATUS,         /* replay PAT-18 FATAL */
	SUBMIT_STATUS,        /* replay SUB-05 FATAL */
	/* paging buffers */
	PAGING_STATUS,      /* replay PAG-09 FATAL */
	PAGING_BACKWARDS,   /* replay DMA-28 FATAL */
	PAGING_TOO_FAR,     /* replay DMA-28 FATAL */
	PAGING_PRIVATE_FAR, /* replay DMA-28 FATAL */
	PAGING_INERT,       /* check Q-491 */
	/* interrupts */
	NO_DPC,             /* replay SUB-08 */
	NODE_UNKNOWN,       /* replay SCH-07 */
	ENGINE_UNKNOWN,     /* replay SCH-08 */
	NOTIFY_AT_DISPATCH, /* replay SUB-10 */
	/* recovery and power */
	FENCE_STATUS, /* conform SUB-14 */
	RESET_STATUS, /* conform TDR-08 FATAL */
	POWER_STATUS, /* conform PNP-07 */
};

#endif
