/* SPDX-License-Identifier: MIT */
/*
 * Checks that run only with vidmm_adapter_options.verify, because their time grows with the lengths
 * of the lists. They report findings and change nothing else.
 */
#include "sched/data/submission.h"
#include "sched/data/data.h"

static uint32_t words(const struct vmm_submission *s)
{
	return (s->entry_count + 63) / 64;
}

void vmm_verify_piece(struct vmm_submission *s, const struct vmm_dma *dma)
{
	if (!s->named && s->entry_count)
		s->named = vmm_calloc(words(s), sizeof(*s->named));
	if (!s->named)
		return;
	for (uint32_t p = 0; p < dma->patch_count; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;

		s->named[index / 64] |= 1ull << index % 64;
	}
	s->written = dma;
}

/*
 * PAT-10: an allocation that no patch location names is not made resident. That is no mistake where
 * the allocation list makes nothing resident (DMA-26).
 */
void vmm_verify_end(struct vmm_submission *s)
{
	const struct vmm_dma *dma = s->written;

	for (uint32_t i = 0;
	     s->named && s->adapter->sched->working_set->referenced && i < s->entry_count; i++)
		if (dma->instances[i] && !(s->named[i / 64] >> i % 64 & 1))
			vmm_finding(
				s->adapter->observe, "PAT-10", s->context->device->process->id,
				s->context->handle,
				"%s on context 0x%08x: the miniport emitted no patch location for "
				"allocation list entry %u (handle 0x%08x), which therefore need "
				"not be resident",
				s->kind->words->name, s->context->handle, i,
				dma->instances[i]->handle);
	vmm_free(s->named);
	s->named = NULL;
}
