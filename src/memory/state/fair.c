/* SPDX-License-Identifier: MIT */
/*
 * Fair shares: how many bytes of a segment each process has. Among candidates of equal priority the
 * eviction victim belongs to the process with the most bytes (SEG-27, Q-20). A process that streams
 * through video memory thus does not evict those that need little.
 *
 * The table has VMM_SHARES entries. A process that finds it full is not counted, so it is never the
 * process with the most bytes.
 */
#include "memory/state/state.h"

static struct vmm_fair_share *share_of(struct vmm_segment *segment, uint32_t owner)
{
	for (uint32_t i = 0; i < segment->share_count; i++)
		if (segment->share[i].owner == owner)
			return &segment->share[i];
	return NULL;
}

void vmm_fair_enter(struct vmm_segment *segment, const struct vmm_allocation *allocation)
{
	struct vmm_fair_share *share = share_of(segment, allocation->owner);

	vmm_assert_held(&allocation->adapter->paging_lock);
	if (!share && segment->share_count < VMM_SHARES) {
		share = &segment->share[segment->share_count++];
		*share = (struct vmm_fair_share){.owner = allocation->owner};
	}
	if (share)
		share->bytes += allocation->size_bytes;
}

void vmm_fair_leave(struct vmm_segment *segment, const struct vmm_allocation *allocation)
{
	struct vmm_fair_share *share = share_of(segment, allocation->owner);

	vmm_assert_held(&allocation->adapter->paging_lock);
	if (!share)
		return;
	share->bytes -= vmm_min_u64(share->bytes, allocation->size_bytes);
	if (!share->bytes)
		*share = segment->share[--segment->share_count];
}

uint32_t vmm_fair_largest(const struct vmm_segment *segment)
{
	const struct vmm_fair_share *most = segment->share;

	if (vmm_likely(segment->share_count < 2))
		return 0;
	for (uint32_t i = 1; i < segment->share_count; i++)
		if (segment->share[i].bytes > most->bytes)
			most = &segment->share[i];
	return most->owner;
}
