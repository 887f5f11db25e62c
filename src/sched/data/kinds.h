/* SPDX-License-Identifier: MIT */
/*
 * The kinds of submission: what differs between a render, a present, a flip and a command. One
 * table in kinds.c has them all; submission.c and the files that handle packets have what is common
 * and branch on no kind.
 */
#ifndef VMM_SCHED_KINDS_H
#define VMM_SCHED_KINDS_H

#include "sched/state/types.h"

struct vmm_submission;
/* What findings and reasons about a submission say. */
struct vmm_submission_words {
	const char *name; /* of the call */
	const char *on;   /* what it is submitted to */
	const char *ddi;  /* the miniport's function that fills a buffer */
	const char *list; /* where the client names the allocations */
	/* Rules: that function returned a GPU exception; an allocation was not resident (2.x). */
	const char *exception_rule, *residency_rule;
};

/*
 * An operation that is NULL does nothing. While the submission is made, `attach` is called with no
 * lock held on the first buffer, then `begin` to `queue_last` with the submit lock held. The last
 * two operations are called for the packets of its buffers.
 */
struct vmm_submission_kind {
	const struct vmm_submission_words *words;
	bool offers;  /* an entry of the list may offer its allocation (DMA-24) */
	bool patched; /* the miniport emits commands and patch locations, which are checked */
	/*
	 * Commands are at GPU virtual addresses: entries need no physical address (DMA-27), and
	 * packets go to DxgkDdiSubmitCommandVirtual (SUB-23).
	 */
	bool by_address;
	/*
	 * The miniport fills a buffer that has memory at a GPU virtual address (PRS-09). Other
	 * kinds with by_address have the client's memory.
	 */
	bool at_address;
	/*
	 * The packet only keeps its turn: it never reaches the hardware, and is complete when all
	 * earlier packets of its context are (DMA-32).
	 */
	bool in_turn;
	/* Adds to a buffer what the kind needs before it is filled. */
	NTSTATUS (*attach)(const struct vmm_submission *s, struct vmm_dma *dma);
	/* Copies what the client may still change, before it is read; may refuse the call. */
	NTSTATUS (*begin)(const struct vmm_submission *s);
	/*
	 * Has the miniport fill a buffer. STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER: it has more to
	 * emit, and *multipass is what it wants to be told in the next call.
	 */
	NTSTATUS (*fill)(const struct vmm_submission *s, struct vmm_dma *dma, uint32_t *multipass);
	/*
	 * Fills the buffer of a further context like `from`, which is filled. With this operation
	 * each further context of a broadcast gets a separate buffer, and so an independent packet
	 * (SUB-26). Without it the contexts run copies of one buffer (DMA-10).
	 */
	void (*fill_further)(const struct vmm_submission *s, const struct vmm_dma *from,
			     struct vmm_dma *to);
	/* The last buffer of the submission is about to be queued. */
	void (*queue_last)(const struct vmm_submission *s, struct vmm_dma *last);
	/* Adds to the arguments of Submit. Paging lock. */
	void (*describe)(const struct vmm_dma *dma, DXGKARG_SUBMITCOMMAND *submit);
	/* A buffer is complete. State lock. */
	void (*retired_locked)(struct vmm_dma *dma);
};

extern const struct vmm_submission_kind vmm_render_kind;    /* pfnRenderCb */
extern const struct vmm_submission_kind vmm_broadcast_kind; /* for several contexts (DMA-10) */
extern const struct vmm_submission_kind vmm_command_kind;   /* pfnSubmitCommandCb (SUB-23) */
extern const struct vmm_submission_kind vmm_present_kind;   /* a Blt or a ColorFill */
extern const struct vmm_submission_kind vmm_flip_kind;      /* by the DMA buffer */
extern const struct vmm_submission_kind vmm_mmio_flip_kind; /* by a DDI call (DMA-32) */
/* The last three on a context with GPU virtual addresses (PRS-09). */
extern const struct vmm_submission_kind vmm_virtual_present_kind, vmm_virtual_flip_kind,
	vmm_virtual_mmio_flip_kind;
/*
 * A Blt on a hardware queue (PRS-10). It has no packet in the prepare queue: its buffer becomes a
 * command of the queue (hw_present.c).
 */
extern const struct vmm_submission_kind vmm_hw_present_kind;

#endif
