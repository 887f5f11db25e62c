/* SPDX-License-Identifier: MIT */
#include "lock_oracle.h"

#include <d3dumddi.h>
#include <stdlib.h>
#include <string.h>

#define HAS(mask) ((r.flags & (mask)) == (mask))

enum {
	RO = 0x1,
	WO = 0x2,
	NOWAIT = 0x4,
	NOSYNC = 0x8,
	ENTIRE = 0x10,
	NOEVICT = 0x20,
	RANGE = 0x40,
	DISCARD = 0x80,
	NOREF = 0x100,
	ALTVA = 0x200,
	NOREADSYNC = 0x400,
	KNOWN = 0x7FF
};

static void breaks(struct oracle_answer *answer, const char *rule, bool broken)
{
	if (!broken)
		return;
	if (*answer->rules)
		strcat(answer->rules, " ");
	strcat(answer->rules, rule);
	answer->status = STATUS_INVALID_PARAMETER;
}

static struct oracle_answer refused(int32_t status, const char *rule, bool waited)
{
	struct oracle_answer answer = {.waits = waited};

	breaks(&answer, rule, true);
	answer.status = status;
	return answer;
}

static struct oracle_answer busy(void)
{
	return (struct oracle_answer){.status = STATUS_GRAPHICS_ALLOCATION_BUSY};
}

/* Group 2 of the order of checks: the request alone. */
static void check_request(struct oracle_answer *answer, struct oracle_request r)
{
	breaks(answer, "LOCK-02", r.flags & ~(uint32_t)KNOWN);
	breaks(answer, "LOCK-07", HAS(RO | WO));
	breaks(answer, "LOCK-14", HAS(NOSYNC | RANGE));
	breaks(answer, "SWZ-23", HAS(ALTVA) && !HAS(RANGE));
	breaks(answer, "LOCK-17", HAS(ENTIRE) && r.list != ORACLE_NO_LIST);
	breaks(answer, "LOCK-18", r.list == ORACLE_PAST_THE_END || r.list == ORACLE_NO_POINTER);
}

/* REN-14 */
static bool is_discard(struct oracle_request r, const struct oracle_allocation *a)
{
	return HAS(DISCARD) && !a->shared && !a->pinned && !a->primary && !a->existing;
}

/* LOCK-13: the allocation permits locks without synchronization. */
static bool may_skip_sync(const struct oracle_allocation *a)
{
	return a->aperture && !a->swizzled && !(a->cached && !a->coherent);
}

/* Group 3: the request with this allocation and this caller. */
static void check_permission(struct oracle_answer *answer, struct oracle_request r,
			     const struct oracle_allocation *a)
{
	breaks(answer, "LOCK-13", /* LOCK-12, LOCK-16: Discard overrides it */
	       (HAS(NOSYNC) || HAS(NOREADSYNC)) && !is_discard(r, a) && !may_skip_sync(a));
	breaks(answer, "ALF-08", a->protected);
	breaks(answer, "LOCK-23", !a->cpu_visible && !a->primary);
	breaks(answer, "LOCK-24", a->foreign);
	breaks(answer, "LOCK-25", a->offered);
	breaks(answer, "LOCK-26", a->retired);
	breaks(answer, "REN-19", a->superseded);
	breaks(answer, "SWZ-26", a->primary && a->for_alternate != HAS(ALTVA));
	breaks(answer, "SWZ-23", a->shared && HAS(ALTVA));
	breaks(answer, "SWZ-16", HAS(RANGE) && !a->memory && !(HAS(ALTVA) && a->ranges)); /* */
}

/* Group 4: locks that are already held. */
static void check_held(struct oracle_answer *answer, struct oracle_request r,
		       const struct oracle_allocation *a)
{
	breaks(answer, "SWZ-14", a->held == ORACLE_PLAIN && HAS(RANGE));
	breaks(answer, "SWZ-15", a->held == ORACLE_RANGE);
}

/*
 * LOCK-10, LOCK-11, LOCK-50: IgnoreSync has an effect only with DonotWait. LOCK-15: GPU readers do
 * not block.
 */
static bool is_blocked(struct oracle_request r, const struct oracle_allocation *a)
{
	if (HAS(NOSYNC | NOWAIT))
		return false;
	return HAS(NOREADSYNC) ? a->writing : a->reading || a->writing;
}

/*
 * Memory in use by the GPU cannot be moved. The flags cannot skip that wait, but DonotWait never
 * waits.
 */
static struct oracle_answer moved(struct oracle_request r, const struct oracle_allocation *a,
				  bool waited, enum oracle_place place)
{
	bool in_use = a->reading || a->writing;

	if (in_use && HAS(NOWAIT) && !waited)
		return busy();
	return (struct oracle_answer){.place = place, .waits = in_use};
}

/* SWZ-09: no swizzling range can be acquired. */
static struct oracle_answer copied(struct oracle_request r, const struct oracle_allocation *a,
				   bool waited)
{
	bool has_region = HAS(ENTIRE) || r.list == ORACLE_LIST;

	if (HAS(NOEVICT)) /* SWZ-10 */
		return refused(STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE, "SWZ-10", waited);
	if (!has_region)
		return refused(STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE, "LOCK-19", waited);
	if (a->pinned)
		return refused(STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION, "SWZ-11", waited);
	/* LOCK-21: with a list only its pages are copied, unless they pass through an aperture */
	if (r.list == ORACLE_LIST && a->memory && !a->through)
		return moved(r, a, waited, ORACLE_COMES_IN);
	return moved(r, a, waited, ORACLE_LEAVES);
}

/* AcquireAperture: the linear image of an instance whose state `a` describes. */
static struct oracle_answer unswizzled(struct oracle_request r, const struct oracle_allocation *a)
{
	bool waits = is_blocked(r, a);

	if (waits && HAS(NOWAIT))
		return busy();
	if (a->permanent) /* PAG-14; PAG-15: GPU writes are copied back first */
		return a->gpu_newer ? moved(r, a, waits, ORACLE_STAYS)
				    : (struct oracle_answer){.waits = waits};
	if (a->away && !a->swizzled) /* SWZ-05, SWZ-22 */
		return (struct oracle_answer){.waits = waits};
	if (HAS(ALTVA) ? a->alternates : a->unswizzles) /* SWZ-01, SWZ-04, SWZ-24 */
		return (struct oracle_answer){.waits = waits, .place = ORACLE_COMES_IN};
	return copied(r, a, waits);
}

/*
 * REN: a discard gets an instance that is not in use. With NoExistingReference that may be the
 * current one.
 */
static struct oracle_answer discarded(struct oracle_request r, const struct oracle_allocation *a)
{
	struct oracle_allocation instance = *a;
	struct oracle_answer answer = {.status = STATUS_SUCCESS};
	bool same = HAS(NOREF) && !a->reading && !a->writing && !a->held;

	instance.reading = instance.writing = instance.gpu_newer = false; /* REN-03, REN-15 */
	instance.away &= same;
	if (HAS(RANGE))
		answer = unswizzled(r, &instance);
	/* Another instance is requested, or permitted. */
	answer.place = HAS(NOREF) ? ORACLE_ANYWHERE : ORACLE_STAYS;
	if (answer.status != STATUS_SUCCESS)
		answer.place = ORACLE_STAYS;
	answer.renames = answer.status == STATUS_SUCCESS && !HAS(NOREF);   /* REN-02 */
	answer.may_rename = answer.status == STATUS_SUCCESS && HAS(NOREF); /* REN-12 */
	return answer;
}

static struct oracle_answer plain(struct oracle_request r, const struct oracle_allocation *a)
{
	bool blocked = is_blocked(r, a);

	if (blocked && HAS(NOWAIT)) /* LOCK-08, LOCK-16 */
		return busy();
	if (a->permanent && a->gpu_newer) /* PAG-15 */
		return moved(r, a, blocked, ORACLE_STAYS);
	/* LOCK-05; LOCK-20: without a list the whole allocation is locked */
	if (!a->hidden || a->permanent)
		return (struct oracle_answer){.waits = blocked};
	if (HAS(NOEVICT)) /* LOCK-49, after the wait */
		return refused(STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE, "LOCK-49",
			       blocked);
	if (a->pinned)
		return refused(STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION, "LOCK-49", blocked);
	return moved(r, a, blocked, ORACLE_LEAVES);
}

struct oracle_answer oracle_lock(struct oracle_request r, const struct oracle_allocation *a)
{
	struct oracle_answer answer = {.status = STATUS_SUCCESS};

	check_request(&answer, r);
	if (!*answer.rules)
		check_permission(&answer, r, a);
	if (!*answer.rules)
		check_held(&answer, r, a);
	if (*answer.rules)
		return answer;
	if (HAS(ALTVA) && a->existing) { /* existing memory gets no alternate address */
		answer.status = STATUS_NOT_SUPPORTED;
		return answer;
	}
	if (is_discard(r, a))
		return discarded(r, a);
	return HAS(RANGE) ? unswizzled(r, a) : plain(r, a);
}

int32_t oracle_hresult(int32_t status)
{
	switch (status) {
	case STATUS_SUCCESS:
		return S_OK;
	case STATUS_INVALID_PARAMETER:
		return E_INVALIDARG;
	case STATUS_NOT_SUPPORTED:
		return E_NOTIMPL;
	case STATUS_GRAPHICS_ALLOCATION_BUSY:
		return D3DERR_WASSTILLDRAWING;
	case STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE:
		return D3DERR_NOTAVAILABLE;
	case STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION:
		return D3DDDIERR_CANTEVICTPINNEDALLOCATION;
	default:
		abort();
	}
}
