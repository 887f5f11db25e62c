/* SPDX-License-Identifier: MIT */
/*
 * A submission in progress: a captured list of allocations becomes packets in the prepare queue
 * (submission.c).
 */
#ifndef VMM_SCHED_SUBMISSION_H
#define VMM_SCHED_SUBMISSION_H

#include "sched/data/kinds.h"

struct vmm_submission {
	const struct vmm_submission_kind *kind;
	struct vmm_context *context; /* NULL: for a hardware queue (PRS-10) */
	struct vmm_device *device;
	uint32_t object; /* handle of the context or hardware queue */
	struct vmm_adapter *adapter;
	/* The arguments of the call: one of the three, as the kind says. */
	struct vmm_render_request *request;
	struct vmm_present *present;
	const struct vmm_command_request *command;
	const struct vmm_broadcast *broadcast; /* the other contexts that run a broadcast */
	bool null_rendering;                   /* the GPU skips the commands (SUB-22) */
	uint32_t command_bytes;                /* for the event: of the client's commands */
	/* For a render this is the client's memory, so each entry is read once (DMA-14). */
	const D3DDDI_ALLOCATIONLIST *entries;
	uint32_t entry_count;
	uint64_t serial;
	uint64_t sequence; /* of the newest buffer that was queued */
	/*
	 * SUB-26: for each context of `broadcast` a buffer of that context; NULL: the kind has no
	 * fill_further, or there are no such contexts.
	 */
	struct vmm_dma **further;
	/* The DMA buffers into which the miniport translated the submission, in order. */
	struct vmm_dma *piece[VMM_DMA_BUFFERS_PER_CONTEXT];
	uint32_t pieces;
	uint32_t patches, queued;
	uint32_t reserved; /* bits of an allocation list entry that must be 0 */
	/* Bits that send an entry to the slow path: reserved ones and rare flags. */
	uint32_t suspect;
	/* Every entry takes the slow path: the list does not name the working set (DMA-26). */
	bool all_special;
	/* verify.c: bit map of the entries that a patch location names; the newest piece. */
	uint64_t *named;
	const struct vmm_dma *written;
};

/* A present in progress. */
struct vmm_present {
	const struct vmm_present_request *request;
	struct vmm_device *device;
	uint32_t object; /* as in struct vmm_submission */
	const struct vmm_submission_words *words;
	DXGK_PRESENTFLAGS flags;
	RECT source, destination;
	RECT *sub_rects; /* in the destination, at least one */
	RECT one;        /* storage of a single rectangle, which saves an allocation */
	uint32_t sub_rect_count;
	struct vmm_flip *flip; /* NULL: not a flip */
	/* The flip is programmed by a DDI call, not by the DMA buffer (DMA-32). */
	bool mmio;
	/* PRS-10: the miniport's hardware queue; the sizes of its DMA buffer and private data */
	void *kmd_queue;
	uint32_t dma_bytes, private_bytes;
};

/* capture.c: reports what is wrong with an entry of the allocation list; returns `status`. */
NTSTATUS vmm_submission_refuse_entry(const struct vmm_submission *s, const char *rule,
				     NTSTATUS status, uint32_t index, const char *what);
/*
 * capture.c: reads each entry of the list once, checks it, and stores what it refers to in the
 * buffer.
 */
NTSTATUS vmm_submission_capture(struct vmm_submission *s, struct vmm_dma *dma) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
/*
 * translate.c: the `fill` of the kinds. Each fills one DMA buffer, by one call of the miniport, and
 * sets its used_bytes, private_used and patch_count.
 */
NTSTATUS vmm_fill_by_render(const struct vmm_submission *s, struct vmm_dma *dma,
			    uint32_t *multipass) VMM_MUST_CHECK VMM_REQUIRES(vmm_submit_lock_class);
NTSTATUS vmm_fill_by_present(const struct vmm_submission *s, struct vmm_dma *dma,
			     uint32_t *multipass) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
NTSTATUS vmm_fill_by_virtual_present(const struct vmm_submission *s, struct vmm_dma *dma,
				     uint32_t *multipass) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
NTSTATUS vmm_fill_by_hw_present(const struct vmm_submission *s, struct vmm_dma *dma,
				uint32_t *multipass) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
NTSTATUS vmm_fill_for_mmio_flip(const struct vmm_submission *s, struct vmm_dma *dma,
				uint32_t *multipass) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
NTSTATUS vmm_fill_for_command(const struct vmm_submission *s, struct vmm_dma *dma,
			      uint32_t *multipass) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
void vmm_fill_further_for_command(const struct vmm_submission *s, const struct vmm_dma *from,
				  struct vmm_dma *to) VMM_REQUIRES(vmm_submit_lock_class);
/* verify.c: checks one translated piece; checks the submission after the last piece. */
void vmm_verify_piece(struct vmm_submission *s, const struct vmm_dma *dma) VMM_COLD;
void vmm_verify_end(struct vmm_submission *s) VMM_COLD;

#endif
