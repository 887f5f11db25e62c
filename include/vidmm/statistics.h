/* SPDX-License-Identifier: MIT */
/*
 * The statistics of an adapter that vidmm_adapter_statistics (vidmm.h) and
 * vidmm_remote_adapter_statistics (client.h) fill. Sizes are bytes, times are ns.
 */
#ifndef VIDMM_STATISTICS_H
#define VIDMM_STATISTICS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * COUNTER(name) for each member of struct vidmm_adapter_statistics after the segments, in its
 * order. New members are added at the end. Counters of events, of bytes moved and of time only
 * rise: subtract two samples to measure an interval. Peaks are since the adapter started, unless
 * the function says otherwise.
 */
#define VIDMM_ADAPTER_COUNTERS(COUNTER)                                                          \
	COUNTER(peak_resident_bytes) /* of all segments together */                              \
	COUNTER(system_bytes)        /* now in backing stores */                                 \
	COUNTER(peak_system_bytes)                                                               \
	COUNTER(allocations) /* existing; also those whose destruction waits for the GPU */      \
	COUNTER(instances)                                                                       \
	COUNTER(bytes_paged_in)                                                                  \
	COUNTER(bytes_paged_out)                                                                 \
	COUNTER(bytes_filled)                                                                    \
	COUNTER(bytes_discarded)                                                                 \
	COUNTER(evictions)                                                                       \
	COUNTER(renames)                                                                         \
	COUNTER(lock_waits)                                                                      \
	COUNTER(splits)                                                                          \
	/* The adapter's memory segments, without and with PopulatedFromSystemMemory. */         \
	COUNTER(dedicated_video_bytes)                                                           \
	COUNTER(dedicated_system_bytes)                                                          \
	COUNTER(shared_system_bytes) /* system memory that the apertures may map at once */      \
	COUNTER(mapped_bytes)        /* what they map now, DMA and paging buffers included */    \
	COUNTER(bytes_moved)         /* inside memory segments, to get contiguous free space */  \
	COUNTER(patches)             /* patch locations of accepted submissions */               \
	COUNTER(waits_avoided)       /* renames while the GPU used the previous instance */      \
	COUNTER(lock_wait_ns)        /* of locks that waited and succeeded */                    \
	/* Swizzling ranges: acquired; taken from another allocation; locks without one. */      \
	COUNTER(ranges_acquired)                                                                 \
	COUNTER(ranges_reclaimed)                                                                \
	COUNTER(range_fallbacks)                                                                 \
	COUNTER(handles_destroyed_locked) /* allocation handles destroyed while locked (Q-04) */ \
	/* bytes_paged_in in six parts: for the first time in a memory segment (Q-320), */       \
	/* else by the cause for which the content had left its last one (Q-321). */             \
	COUNTER(bytes_paged_in_first)                                                            \
	COUNTER(bytes_paged_in_capacity)      /* to free space: too few bytes were free */       \
	COUNTER(bytes_paged_in_fragmentation) /* to free space: no range was large enough */     \
	COUNTER(bytes_paged_in_lock)          /* for the CPU */                                  \
	COUNTER(bytes_paged_in_trim)          /* on no residency list any more, or misplaced */  \
	COUNTER(bytes_paged_in_other)         /* unsuitable segment, power, reset, stop */       \
	/* evictions in six parts: from apertures, and by cause from memory segments (Q-321) */  \
	COUNTER(evictions_aperture)                                                              \
	COUNTER(evictions_capacity)                                                              \
	COUNTER(evictions_fragmentation)                                                         \
	COUNTER(evictions_lock)                                                                  \
	COUNTER(evictions_trim)                                                                  \
	COUNTER(evictions_other)

#define VIDMM_SEGMENTS_MAX 32
struct vidmm_segment_statistics {
	uint64_t size_bytes, resident_bytes, peak_resident_bytes;
	uint32_t aperture;    /* 1: aperture segment */
	uint32_t allocations; /* instances that are resident now */
};
#define VIDMM_COUNTER_MEMBER(name) uint64_t name;
struct vidmm_adapter_statistics {
	uint32_t struct_size; /* set by the caller: sizeof(struct vidmm_adapter_statistics) */
	uint32_t segment_count;
	struct vidmm_segment_statistics segment[VIDMM_SEGMENTS_MAX]; /* [0]: segment id 1 */
	VIDMM_ADAPTER_COUNTERS(VIDMM_COUNTER_MEMBER)
};

#ifdef __cplusplus
}
#endif
#endif
