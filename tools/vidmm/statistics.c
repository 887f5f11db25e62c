/* SPDX-License-Identifier: MIT */
/* Statistics of a result: the members from `statistics_known` to before `blocks_checked`. */
#include <string.h>

#include "statistics.h"

static void add_causes(const struct vidmm_adapter_statistics *before,
		       const struct vidmm_adapter_statistics *after, struct replay_result *result)
{
	result->paged_in.first = after->bytes_paged_in_first - before->bytes_paged_in_first;
	result->paged_in.again = result->bytes_paged_in - result->paged_in.first;
	result->evicted.aperture = after->evictions_aperture - before->evictions_aperture;
	result->evicted.video = result->evictions - result->evicted.aperture;
#define ADD(cause)                                                                               \
	result->paged_in.cause = after->bytes_paged_in_##cause - before->bytes_paged_in_##cause; \
	result->evicted.cause = after->evictions_##cause - before->evictions_##cause
	ADD(capacity);
	ADD(fragmentation);
	ADD(lock);
	ADD(trim);
	ADD(other);
#undef ADD
}

void statistics_difference(const struct vidmm_adapter_statistics *before,
			   const struct vidmm_adapter_statistics *after,
			   struct replay_result *result)
{
	result->statistics_known = true;
	result->patches = after->patches - before->patches;
	result->bytes_paged_in = after->bytes_paged_in - before->bytes_paged_in;
	result->bytes_paged_out = after->bytes_paged_out - before->bytes_paged_out;
	result->bytes_filled = after->bytes_filled - before->bytes_filled;
	result->bytes_discarded = after->bytes_discarded - before->bytes_discarded;
	result->bytes_moved = after->bytes_moved - before->bytes_moved;
	result->evictions = after->evictions - before->evictions;
	result->renames = after->renames - before->renames;
	result->waits_avoided = after->waits_avoided - before->waits_avoided;
	result->lock_waits = after->lock_waits - before->lock_waits;
	result->lock_wait_ns = after->lock_wait_ns - before->lock_wait_ns;
	result->splits = after->splits - before->splits;
	result->ranges_acquired = after->ranges_acquired - before->ranges_acquired;
	result->ranges_reclaimed = after->ranges_reclaimed - before->ranges_reclaimed;
	result->range_fallbacks = after->range_fallbacks - before->range_fallbacks;
	add_causes(before, after, result);
	result->peak_resident_bytes = after->peak_resident_bytes;
	result->peak_system_bytes = after->peak_system_bytes;
	result->segment_count = after->segment_count;
	memcpy(result->segment, after->segment, sizeof(result->segment));
}

void statistics_copy(const struct replay_result *from, struct replay_result *result)
{
	size_t first = offsetof(struct replay_result, statistics_known);
	size_t behind = offsetof(struct replay_result, blocks_checked);

	memcpy((char *)result + first, (const char *)from + first, behind - first);
}
