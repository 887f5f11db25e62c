/* SPDX-License-Identifier: MIT */
/* What Render and Present have in common: from a list of allocations to packets in the prepare queue (render.c). */
#ifndef VMM_SCHED_SUBMISSION_H
#define VMM_SCHED_SUBMISSION_H

#include "sched/sched_private.h"

struct vmm_submission {
	struct vmm_context *context;
	struct vmm_adapter *adapter;
	const char *what;                          /* "render" or "present" */
	struct vmm_render_request *request;        /* NULL of a present */
	struct vmm_present *present;               /* NULL of a render */
	const struct vmm_command_request *command; /* NULL but on contexts by address */
	const struct vmm_broadcast *broadcast;     /* who else runs it; NULL: nobody */
	/* Read once, each: for a render it is the client's memory (DMA-14). */
	const D3DDDI_ALLOCATIONLIST *entries;
	uint32_t entry_count;
	uint64_t serial;
	uint64_t sequence; /* of the newest that was queued */
	struct vmm_dma *piece[VMM_DMA_BUFFERS_PER_CONTEXT];
	uint32_t pieces;
	uint32_t patches, queued;
	uint32_t reserved; /* bits of an allocation list entry */
	uint32_t suspect;  /* those, and what few entries have */
	bool all_special;  /* every reference is to be looked at (DMA-26) */
	/* verify.c: the entries that some patch location names, and the newest piece. */
	uint64_t *named;
	const struct vmm_dma *written;
};

/* A present under way. */
struct vmm_present {
	const struct vmm_present_request *request;
	DXGK_PRESENTFLAGS flags;
	RECT source, destination;
	RECT *sub_rects; /* in the destination, at least one */
	RECT one;        /* the usual case: nothing is allocated */
	uint32_t sub_rect_count;
	uint32_t submit_flags; /* VMM_PRESENT_... of its packets */
	struct vmm_flip *flip; /* NULL: it is none */
	bool mmio;             /* the flip goes past the DMA buffer (DMA-32) */
};

/* Where the miniport's pointers are after one call. */
struct vmm_translated {
	char *commands, *private_data;
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t multipass;
};

/* The list, and all that is translated, into pieces that are queued (DMA-29). No lock held. */
NTSTATUS vmm_submission_run(struct vmm_submission *s) VMM_MUST_CHECK;
/* virtual.c: nothing is translated. */
NTSTATUS vmm_command_describe(const struct vmm_submission *s, struct vmm_dma *dma) VMM_MUST_CHECK;
/* verify.c: one piece has been translated; all have been. */
void vmm_verify_piece(struct vmm_submission *s, const struct vmm_dma *dma) VMM_COLD;
void vmm_verify_end(struct vmm_submission *s) VMM_COLD;
/* present.c: one call of DxgkDdiPresent into one DMA buffer. */
NTSTATUS vmm_present_translate(const struct vmm_submission *s, struct vmm_dma *dma,
			       struct vmm_translated *t) VMM_MUST_CHECK;

#endif
