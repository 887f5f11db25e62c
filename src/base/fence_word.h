/* SPDX-License-Identifier: MIT */
/*
 * fence words: the page of a monitored fence that can be shared, mapped by clients that signal it
 * and wait for it without a message (docs/adr/0003-fences-without-a-message.md). A client with the
 * page can store any value to any member at any time. That gives it no more than a signal with
 * AllowFenceRewind would.
 *
 * A signal raises the value and then checks for waiters. A wait announces itself and then reads the
 * value. All these accesses are sequentially consistent, so at least one of the two sees the other.
 */
#ifndef VMM_BASE_FENCE_WORD_H
#define VMM_BASE_FENCE_WORD_H

#include <stdatomic.h>

#include "base/base.h"

struct vmm_fence_page {
	_Alignas(64) _Atomic uint64_t value; /* the value that programs read (MFN-03) */
	_Alignas(64) _Atomic uint32_t
		turns;             /* Futex of the sleepers; incremented before they are woken. */
	_Atomic uint32_t sleepers; /* threads of clients that sleep or are about to */
	_Atomic uint32_t awaited;  /* waits in the host, which a signal must then notify */
	/* number of ends of openings, each of which ends the waits (SFL-27) */
	_Atomic uint32_t cancels;
	/* luid of the adapter whose removal ended the last of those openings; 0: none */
	_Atomic uint32_t removed;
	_Atomic uint32_t shut; /* 1: signals and waits by messages only */
};

#endif
