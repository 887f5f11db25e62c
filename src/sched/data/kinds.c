/* SPDX-License-Identifier: MIT */
/*
 * The kinds of submission in one table, and the operations in which they differ. The calls of the
 * miniport that fill a buffer are in translate.c.
 */
#include "sched/data/submission.h"
#include "sched/data/data.h"

/* ---- render, broadcast ---- */

/* Submit lock held. */
static NTSTATUS begin_render(const struct vmm_submission *s) VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	vmm_context_copy_buffers(s->context, s->request);
	return STATUS_SUCCESS;
}

/* DMA-10: each further context runs a copy of the buffer. */
static NTSTATUS attach_copies(const struct vmm_submission *s, struct vmm_dma *dma)
{
	return vmm_broadcast_add_copies(s->broadcast, dma);
}

static NTSTATUS begin_broadcast(const struct vmm_submission *s) VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	return vmm_broadcast_is_held(s->context, s->broadcast) ? STATUS_NOT_SUPPORTED
							       : begin_render(s);
}

/* ---- command ---- */

static void describe_command(const struct vmm_dma *dma, DXGKARG_SUBMITCOMMAND *submit)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	submit->DmaBufferVirtualAddress = dma->commands;
	submit->DmaBufferSize = dma->end;
}

/* ---- present ---- */

/* SUB-17: a present counts against the limit until its last buffer is complete. */
static void queue_present(const struct vmm_submission *s, struct vmm_dma *last)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	last->counts_as_present = true;
}

static void describe_present(const struct vmm_dma *dma, DXGKARG_SUBMITCOMMAND *submit)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	submit->Flags.Present = 1;
}

/* SUB-24: there is no private data of a user-mode driver. */
static void describe_virtual_present(const struct vmm_dma *dma, DXGKARG_SUBMITCOMMAND *submit)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	vmm_assert(dma->memory.range && dma->commands == vmm_va_range_address(dma->memory.range));
	describe_command(dma, submit);
	describe_present(dma, submit);
	submit->DmaBufferPrivateDataSubmissionEndOffset = 0;
}

static void present_retired_locked(struct vmm_dma *dma) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->state_lock);
	dma->context->device->presents -= dma->counts_as_present;
	dma->counts_as_present = false;
}

/* ---- flip ---- */

/* SUB-17: a flip counts against the limit until it is shown. */
static void queue_flip(const struct vmm_submission *s, struct vmm_dma *last)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	last->flip = s->present->flip;
	vmm_flip_queued(s, last);
}

/* The last portion does the flip. */
static void describe_flip(const struct vmm_dma *dma, DXGKARG_SUBMITCOMMAND *submit)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	describe_present(dma, submit);
	if (!dma->flip || dma->end != dma->used_bytes)
		return;
	submit->Flags.Flip = 1;
	submit->Flags.FlipWithNoWait = dma->flip->no_wait;
	submit->VidPnSourceId = dma->flip->source_id;
	submit->FlipInterval = dma->flip->interval;
}

static void describe_virtual_flip(const struct vmm_dma *dma, DXGKARG_SUBMITCOMMAND *submit)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	describe_virtual_present(dma, submit);
	describe_flip(dma, submit);
}

static void flip_retired_locked(struct vmm_dma *dma) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->state_lock);
	if (dma->flip)
		vmm_flip_due_locked(dma->context->device->adapter->sched, dma->flip);
	dma->flip = NULL;
}

/* ---- the table ---- */

static const struct vmm_submission_words render_words = {
	.name = "render",
	.on = "context",
	.ddi = "DxgkDdiRender",
	.list = "allocation list of a render call",
	.exception_rule = "DMA-31",
	.residency_rule = "DMA-26",
};

static const struct vmm_submission_words command_words = {
	.name = "submit command",
	.on = "context",
	.ddi = "DxgkDdiValidateSubmitCommand",
	.list = "allocation list of a render call",
	.exception_rule = "DMA-31",
	.residency_rule = "SUB-26",
};

static const struct vmm_submission_words present_words = {
	.name = "present",
	.on = "context",
	.ddi = "DxgkDdiPresent",
	.list = "source or destination of a present",
	.exception_rule = "DMA-37",
	.residency_rule = "DMA-26",
};

static const struct vmm_submission_words hw_present_words = {
	.name = "present",
	.on = "hardware queue",
	.ddi = "DxgkDdiPresentToHwQueue",
	.list = "source or destination of a present",
	.exception_rule = "DMA-37",
	.residency_rule = "DMA-26",
};

const struct vmm_submission_kind vmm_render_kind = {
	.words = &render_words,
	.offers = true,
	.patched = true,
	.begin = begin_render,
	.fill = vmm_fill_by_render,
};

/* An offer takes effect when one packet completes; a broadcast has several. */
const struct vmm_submission_kind vmm_broadcast_kind = {
	.words = &render_words,
	.patched = true,
	.attach = attach_copies,
	.begin = begin_broadcast,
	.fill = vmm_fill_by_render,
};

const struct vmm_submission_kind vmm_command_kind = {
	.words = &command_words,
	.offers = true,
	.by_address = true,
	.fill = vmm_fill_for_command,
	.fill_further = vmm_fill_further_for_command,
	.describe = describe_command,
};

const struct vmm_submission_kind vmm_present_kind = {
	.words = &present_words,
	.offers = true,
	.patched = true,
	.fill = vmm_fill_by_present,
	.queue_last = queue_present,
	.describe = describe_present,
	.retired_locked = present_retired_locked,
};

const struct vmm_submission_kind vmm_flip_kind = {
	.words = &present_words,
	.offers = true,
	.patched = true,
	.fill = vmm_fill_by_present,
	.queue_last = queue_flip,
	.describe = describe_flip,
	.retired_locked = flip_retired_locked,
};

const struct vmm_submission_kind vmm_mmio_flip_kind = {
	.words = &present_words,
	.offers = true,
	.in_turn = true,
	.fill = vmm_fill_for_mmio_flip,
	.queue_last = queue_flip,
	.retired_locked = flip_retired_locked,
};

/* ---- on contexts with GPU virtual addresses (PRS-09) ---- */

const struct vmm_submission_kind vmm_virtual_present_kind = {
	.words = &present_words,
	.offers = true,
	.by_address = true,
	.at_address = true,
	.fill = vmm_fill_by_virtual_present,
	.queue_last = queue_present,
	.describe = describe_virtual_present,
	.retired_locked = present_retired_locked,
};

const struct vmm_submission_kind vmm_virtual_flip_kind = {
	.words = &present_words,
	.offers = true,
	.by_address = true,
	.at_address = true,
	.fill = vmm_fill_by_virtual_present,
	.queue_last = queue_flip,
	.describe = describe_virtual_flip,
	.retired_locked = flip_retired_locked,
};

const struct vmm_submission_kind vmm_virtual_mmio_flip_kind = {
	.words = &present_words,
	.offers = true,
	.by_address = true,
	.in_turn = true,
	.fill = vmm_fill_for_mmio_flip,
	.queue_last = queue_flip,
	.retired_locked = flip_retired_locked,
};

/* ---- on hardware queues (PRS-10) ---- */

const struct vmm_submission_kind vmm_hw_present_kind = {
	.words = &hw_present_words,
	.by_address = true,
	.at_address = true,
	.fill = vmm_fill_by_hw_present,
};
