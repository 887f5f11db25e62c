/* SPDX-License-Identifier: MIT */
#include "lock_oracle.h"

#include <d3dumddi.h>

#define HAS(mask) ((flags & (mask)) == (mask))

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

/* LOCK-10, LOCK-11, LOCK-50: IgnoreSync counts only together with DonotWait. LOCK-15: readers do not. */
static bool is_blocked(uint32_t flags, const struct oracle_allocation *a)
{
	if (HAS(NOSYNC | NOWAIT))
		return false;
	return HAS(NOREADSYNC) ? a->writing : a->reading || a->writing;
}

static struct oracle_answer unavailable(const char *rule, bool waits)
{
	return (struct oracle_answer){.result = D3DERR_NOTAVAILABLE, .rules = rule, .waits = waits};
}

/* What the GPU uses cannot be moved: that wait is not the flags' to skip, but DonotWait never waits. */
static struct oracle_answer evicted(uint32_t flags, const struct oracle_allocation *a, bool waited)
{
	if (!a->reading && !a->writing)
		return (struct oracle_answer){.result = S_OK, .evicts = true};
	if (HAS(NOWAIT) && !waited)
		return (struct oracle_answer){.result = D3DERR_WASSTILLDRAWING};
	return (struct oracle_answer){.result = S_OK, .evicts = true, .waits = true};
}

/* AcquireAperture: the linear image of an instance that is as `a` says. */
static struct oracle_answer unswizzled(uint32_t flags, const struct oracle_allocation *a)
{
	bool waits = is_blocked(flags, a);

	if (waits && HAS(NOWAIT))
		return (struct oracle_answer){.result = D3DERR_WASSTILLDRAWING};
	if (a->away && !a->swizzled) /* SWZ-05, SWZ-22 */
		return (struct oracle_answer){.result = S_OK, .waits = waits};
	if (HAS(ALTVA) ? a->alternates : a->unswizzles) /* SWZ-01, SWZ-04, SWZ-24 */
		return (struct oracle_answer){.result = S_OK, .waits = waits, .pages_in = true};
	if (HAS(NOEVICT))
		return unavailable("SWZ-10", waits);
	if (!HAS(ENTIRE))
		return unavailable("LOCK-19", waits);
	return evicted(flags, a, waits); /* SWZ-09 */
}

/* REN: what a discard gets is an instance that nobody uses; NoExistingReference may hand back the one it named. */
static struct oracle_answer unswizzled_discard(uint32_t flags, const struct oracle_allocation *a)
{
	struct oracle_allocation instance = *a;
	bool same = HAS(NOREF) && !a->reading && !a->writing;

	instance.reading = instance.writing = false;
	instance.away &= same;
	struct oracle_answer answer = unswizzled(flags, &instance);

	answer.pages_in = answer.evicts = false; /* not the one that was named, or it may be */
	answer.renames = answer.result == S_OK && !HAS(NOREF);
	answer.may_rename = answer.result == S_OK && HAS(NOREF);
	return answer;
}

static struct oracle_answer synchronized(uint32_t flags, const struct oracle_allocation *a)
{
	bool blocked = is_blocked(flags, a);
	struct oracle_answer answer = {.result = S_OK};

	if (blocked && HAS(NOWAIT)) /* LOCK-08, LOCK-16 */
		return (struct oracle_answer){.result = D3DERR_WASSTILLDRAWING};
	answer.waits = blocked; /* LOCK-05 */
	if (!a->hidden)
		return answer;
	if (HAS(NOEVICT)) /* LOCK-49, after the wait */
		return unavailable("LOCK-49", blocked);
	return evicted(flags, a, blocked);
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
	if (HAS(ALTVA) && a->shared)
		return refused("SWZ-23");
	if (HAS(RANGE) && !a->memory && !(HAS(ALTVA) && a->ranges)) /* */
		return refused("SWZ-16");
	if (HAS(RANGE))
		return discard ? unswizzled_discard(flags, a) : unswizzled(flags, a);
	if (!discard)
		return synchronized(flags, a);
	/* REN-03: no wait; REN-02: never the current instance, unless (REN-12) the caller vouches for it. */
	return (struct oracle_answer){
		.result = S_OK, .renames = !HAS(NOREF), .may_rename = HAS(NOREF)};
}
