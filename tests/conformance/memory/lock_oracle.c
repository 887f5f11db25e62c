/* SPDX-License-Identifier: MIT */
#include "lock_oracle.h"

#include <d3dumddi.h>

#define HAS(mask) ((flags & (mask)) == (mask))

enum {
	RO = 0x1,
	WO = 0x2,
	NOWAIT = 0x4,
	NOSYNC = 0x8,
	NOEVICT = 0x20,
	RANGE = 0x40,
	DISCARD = 0x80,
	NOREF = 0x100,
	ALTVA = 0x200,
	NOREADSYNC = 0x400,
	KNOWN = 0x7FF
};

static struct oracle_answer refused(const char *rules)
{
	return (struct oracle_answer){.result = E_INVALIDARG, .rules = rules};
}

/* Group 2 of the order of checks: the flags by themselves. */
static const char *bad_flags(uint32_t flags)
{
	bool ro_wo = HAS(RO | WO), sync_range = HAS(NOSYNC | RANGE),
	     alone = HAS(ALTVA) && !HAS(RANGE);

	if (flags & ~(uint32_t)KNOWN)
		return "LOCK-02";
	if (ro_wo)
		return sync_range ? "LOCK-07 LOCK-14" : alone ? "LOCK-07 SWZ-23" : "LOCK-07";
	if (sync_range)
		return "LOCK-14";
	return alone ? "SWZ-23" : NULL;
}

/* LOCK-13: the allocation on which synchronization may be given up. */
static bool may_skip_sync(const struct oracle_allocation *a)
{
	return a->aperture && !a->swizzled && !(a->cached && !a->coherent);
}

static struct oracle_answer synchronized(uint32_t flags, const struct oracle_allocation *a)
{
	/* LOCK-10, LOCK-11, LOCK-50: IgnoreSync counts only together with DonotWait. LOCK-15: readers do not. */
	bool blocked = HAS(NOSYNC | NOWAIT) ? false
		       : HAS(NOREADSYNC)    ? a->writing
					    : a->reading || a->writing;
	struct oracle_answer answer = {.result = S_OK};

	if (blocked && HAS(NOWAIT)) /* LOCK-08, LOCK-16 */
		return (struct oracle_answer){.result = D3DERR_WASSTILLDRAWING};
	answer.waits = blocked; /* LOCK-05 */
	if (!a->hidden)
		return answer;
	if (HAS(NOEVICT)) /* LOCK-49, after the wait */
		return (struct oracle_answer){
			.result = D3DERR_NOTAVAILABLE, .rules = "LOCK-49", .waits = blocked};
	/* What the GPU uses cannot be moved: that wait is not the flags' to skip, but DonotWait never waits. */
	if ((a->reading || a->writing) && !blocked) {
		if (HAS(NOWAIT))
			return (struct oracle_answer){.result = D3DERR_WASSTILLDRAWING};
		answer.waits = true;
	}
	answer.evicts = true;
	return answer;
}

struct oracle_answer oracle_lock(uint32_t flags, const struct oracle_allocation *a)
{
	bool discard = HAS(DISCARD) && !a->shared; /* REN-14 */
	const char *bad = bad_flags(flags);

	if (bad)
		return refused(bad);
	if ((HAS(NOSYNC) || HAS(NOREADSYNC)) && !discard &&
	    !may_skip_sync(a)) /* LOCK-12 voids it */
		return refused(a->cpu_visible ? "LOCK-13" : "LOCK-13 LOCK-23");
	if (!a->cpu_visible)
		return refused("LOCK-23");
	if (HAS(RANGE)) /* legal, and not built in this version */
		return (struct oracle_answer){.result = E_NOTIMPL};
	if (!discard)
		return synchronized(flags, a);
	/* REN-03: no wait; REN-02: never the current instance, unless (REN-12) the caller vouches for it. */
	return (struct oracle_answer){
		.result = S_OK, .renames = !HAS(NOREF), .may_rename = HAS(NOREF)};
}
