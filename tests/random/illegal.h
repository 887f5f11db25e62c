/* SPDX-License-Identifier: MIT */
/*
 * Calls that must be refused, in the middle of what random.h does: flags, values and handles that
 * no rule allows, for whatever state the allocations are in. No other thread runs meanwhile, so
 * nothing at all may be different afterwards.
 */
#ifndef VMM_TESTS_RANDOM_ILLEGAL_H
#define VMM_TESTS_RANDOM_ILLEGAL_H

#include "random.h"

/* Of one such call. */
struct illegal {
	struct random *r;
	struct item *item; /* some allocation */
	bool not_built;    /* E_NOTIMPL and a reason, for it may be right */
	uint32_t flags;    /* that it was made with, for a failure's message */
	char rules[128];   /* one of these is in the finding; empty: any */
};

typedef HRESULT illegal_call(struct illegal *call);
/*
 * E_INVALIDARG and a finding where nothing else is said. S_OK, and NULL in call->r: nothing illegal
 * came to mind.
 */
illegal_call illegal_create, illegal_lock, illegal_unlock, illegal_offer, illegal_reclaim,
	illegal_priority, illegal_make_resident, illegal_evict, illegal_deallocate, illegal_update,
	illegal_render;

static inline HRESULT illegal_none(struct illegal *call)
{
	call->r = NULL;
	return S_OK;
}

#endif
