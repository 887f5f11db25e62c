/* SPDX-License-Identifier: MIT */
/*
 * fence words: the page of a monitored fence that can be shared, as clients see it who may signal it and wait for it without a message
 * (docs/adr/0003-fences-without-a-message.md). All of it may be anything at any time: whoever has the page may store to it, which
 * is what a signal that may rewind can do, too.
 *
 * A signal raises the value; then it looks whether anybody waits. A wait says that it waits; then it looks at the value. All in one total
 * order, so one of the two sees the other.
 */
#ifndef VMM_BASE_FENCE_WORD_H
#define VMM_BASE_FENCE_WORD_H

#include <stdatomic.h>

#include "base/base.h"

struct vmm_fence_page {
	_Alignas(64) _Atomic uint64_t value; /* what programs read (MFN-03) */
	_Alignas(64) _Atomic uint32_t
		turns; /* sleepers sleep on it; whoever wakes them has raised it before */
	_Atomic uint32_t sleepers; /* threads of clients that sleep, or are about to */
	_Atomic uint32_t awaited;  /* waits in the host: it is to be told of a signal */
	_Atomic uint32_t cancels;  /* ends of openings, which end the waits (SFL-27) */
	_Atomic uint32_t
		removed; /* luid of the adapter with which the last of those openings went; 0: none */
	_Atomic uint32_t shut; /* 1: from now on by messages alone */
};

#endif
