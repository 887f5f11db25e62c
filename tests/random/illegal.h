/* SPDX-License-Identifier: MIT */
/*
 * Calls that must be refused, between the legal calls of random.h: invalid flags, values and
 * handles, in any state of the allocations. No other thread runs meanwhile, so nothing at all may
 * change.
 */
#ifndef VMM_TESTS_RANDOM_ILLEGAL_H
#define VMM_TESTS_RANDOM_ILLEGAL_H

#include "random.h"

/* One such call. */
struct illegal {
	struct random *r;
	struct item *item; /* the allocation that it names */
	bool not_built;    /* it is legal but not built: E_NOTIMPL and a reason */
	uint32_t flags;    /* its flags, for the message of a failure */
	char rules[128];   /* the finding names one of these; empty: any rule */
};

typedef HRESULT illegal_call(struct illegal *call);
/*
 * The calls return E_INVALIDARG with a finding unless stated otherwise. S_OK with call->r NULL: no
 * illegal call was possible.
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
