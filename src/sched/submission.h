/* SPDX-License-Identifier: MIT */
/*
 * The common part of renders and presents (render.c): a captured list of allocations becomes
 * packets in the prepare queue.
 */
#ifndef VMM_SCHED_SUBMISSION_H
#define VMM_SCHED_SUBMISSION_H

#include "sched/sched_private.h"

struct vmm_submission {
	struct vmm_context *context;
	struct vmm_adapter *adapter;
	const char *what;                   /* for messages: "render" or "present" */
	struct vmm_render_request *request; /* NULL for a present */
	struct vmm_present *present;        /* NULL for a render */
	/* NULL unless the context's commands are at GPU virtual addresses. */
	const struct vmm_command_request *command;
	const struct vmm_broadcast *broadcast; /* other contexts that run it; NULL: none */
	/* For a render this is the client's memory, so each entry is read once (DMA-14). */
	const D3DDDI_ALLOCATIONLIST *entries;
	uint32_t entry_count;
	uint64_t serial;
	uint64_t sequence; /* of the newest buffer that was queued */
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
	DXGK_PRESENTFLAGS flags;
	RECT source, destination;
	RECT *sub_rects; /* in the destination, at least one */
	RECT one;        /* storage of a single rectangle, which saves an allocation */
	uint32_t sub_rect_count;
	uint32_t submit_flags; /* VMM_PRESENT_* of its packets */
	struct vmm_flip *flip; /* NULL: not a flip */
	/* The flip is programmed by a DDI call, not by the DMA buffer (DMA-32). */
	bool mmio;
};

/* The miniport's output pointers after one call. */
struct vmm_translated {
	char *commands, *private_data;
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t multipass;
};

/*
 * Captures the list, has the commands translated into pieces, and queues them (DMA-29). No lock
 * held.
 */
NTSTATUS vmm_submission_run(struct vmm_submission *s) VMM_MUST_CHECK;
/* Reports what is wrong with an entry of the allocation list; returns `status`. */
NTSTATUS vmm_submission_refuse_entry(const struct vmm_submission *s, const char *rule,
				     NTSTATUS status, uint32_t index, const char *what);
/*
 * translate.c: has the miniport fill one DMA buffer, with DxgkDdiRender or DxgkDdiPresent; fills in
 * a packet without commands whose patch list names the primary of a flip, so that preparation makes
 * it resident; fills in a packet whose commands are run without translation.
 */
NTSTATUS vmm_submission_translate(const struct vmm_submission *s, struct vmm_dma *dma,
				  struct vmm_translated *t) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
void vmm_flip_describe(struct vmm_dma *dma, struct vmm_translated *t)
	VMM_REQUIRES(vmm_submit_lock_class);
NTSTATUS vmm_command_describe(const struct vmm_submission *s, struct vmm_dma *dma) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_submit_lock_class);
/* verify.c: checks one translated piece; checks the submission after the last piece. */
void vmm_verify_piece(struct vmm_submission *s, const struct vmm_dma *dma) VMM_COLD;
void vmm_verify_end(struct vmm_submission *s) VMM_COLD;

#endif
