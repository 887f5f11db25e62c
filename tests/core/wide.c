/* SPDX-License-Identifier: MIT */
/*
 * Additional actions of wide runs: every kind of lock, offers in lists, priorities, residency,
 * allocations that are never locked.
 */
#include "actor.h"

#include <stdlib.h>

enum { IN_MEMORY = 1, IN_APERTURE = 2, NOT_RESIDENT = 3, TOGETHER = 4 };

void wide_spec(struct buffer *b, struct softgpu_allocation *spec)
{
	static const uint32_t priorities[] = {0,          0x28000000, 0x50000000,
					      0x78000001, 0xA0000000, 0xC8000000};
	uint32_t n = b->number;

	spec->priority = priorities[n % 6];
	if (n % 11 == 3)
		spec->flags |= SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING;
	if (n % 7 != 4 || b->permanent)
		return;
	b->hidden = true;
	spec->flags &= ~(uint32_t)(SOFTGPU_ALLOCATION_CPU_VISIBLE | SOFTGPU_ALLOCATION_CACHED);
	if (n % 2)
		spec->flags |= SOFTGPU_ALLOCATION_PROTECTED;
}

/* ---- allocations that are never locked ---- */

bool wide_compare(struct actor *a, struct buffer *b)
{
	const struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
		.size_bytes = b->bytes,
	};
	struct client_context *c = &a->context[b->home];
	D3DKMT_HANDLE copy;
	void *bytes;

	if (!is_ok(a, client_try_allocate(&a->device, &spec, NULL, &copy, NULL),
		   "allocate for a comparison"))
		return false;
	a->reached[WORKLOAD_UNSEEN]++;
	client_copy(c, b->handle, copy, b->bytes);
	return is_ok(a, client_try_submit(c), "copy for a comparison") &&
	       is_ok(a, client_try_lock(&a->device, &copy, READ_ONLY, &bytes),
		     "lock of a comparison") &&
	       compare(a, b, bytes) &&
	       is_ok(a, client_deallocate(&a->device, copy), "deallocate of a comparison");
}

bool wide_refill(struct actor *a, struct buffer *b)
{
	uint32_t pattern = draw(a, UINT32_MAX);

	client_fill(&a->context[b->home], b->handle, b->bytes, pattern);
	for (uint32_t i = 0; i < b->bytes; i += 4)
		memcpy(b->shadow + i, &pattern, 4);
	return is_ok(a, client_try_submit(&a->context[b->home]), "refill");
}

/* ---- locks ---- */

static struct buffer *choose(struct actor *a, bool to_lock)
{
	uint32_t start = draw(a, BUFFERS);

	for (uint32_t i = 0; i < BUFFERS; i++) {
		struct buffer *b = &a->buffer[(start + i) % BUFFERS];

		if (b->handle && !b->offered && !b->held && !(to_lock && b->hidden))
			return b;
	}
	return NULL;
}

/* LOCK-13 */
static bool needs_no_order(const struct actor *a, const struct buffer *b)
{
	return b->spec.segment_set != 1 &&
	       (a->run->aperture_coherent || !(b->spec.flags & SOFTGPU_ALLOCATION_CACHED));
}

static bool lock_and_compare(struct actor *a, struct buffer *b, uint32_t flags)
{
	void *bytes;
	HRESULT result = client_try_lock(&a->device, &b->handle, flags, &bytes);

	if ((flags & DONOT_WAIT) && result == D3DERR_WASSTILLDRAWING)
		return true;
	if (!is_ok(a, result, "another lock"))
		return false;
	/* Without any order, the bytes are undefined. */
	bool ordered = (flags & (IGNORE_SYNC | DONOT_WAIT)) != (IGNORE_SYNC | DONOT_WAIT);
	if (ordered && !compare(a, b, bytes))
		return false;
	if (!(flags & (READ_ONLY | IGNORE_SYNC | IGNORE_READ_SYNC)) && !b->stamped)
		actor_scribble(a, b, bytes, draw(a, b->bytes), 1);
	return unlock(a, b);
}

static bool lock_pages(struct actor *a, struct buffer *b)
{
	uint32_t count = b->bytes / 4096;
	UINT pages[3] = {draw(a, count), draw(a, count), draw(a, count)};
	D3DDDICB_LOCK args = {.hAllocation = b->handle,
			      .Flags.Value = READ_ONLY,
			      .NumPages = 1 + draw(a, 3),
			      .pPages = pages};

	if (!is_ok(a, a->device.cb->pfnLockCb(a->device.handle, &args), "lock of pages"))
		return false;
	b->handle = args.hAllocation;
	return compare(a, b, (unsigned char *)args.pData - pages[0] * 4096) && unlock(a, b);
}

static bool lock_otherwise(struct actor *a, struct buffer *b)
{
	static const uint32_t kinds[] = {
		LOCK_ENTIRE,
		WRITE_ONLY,
		READ_ONLY | IGNORE_SYNC,
		READ_ONLY | IGNORE_READ_SYNC,
		READ_ONLY | IGNORE_SYNC | DONOT_WAIT,
		READ_ONLY | IGNORE_READ_SYNC | DONOT_WAIT,
		DONOT_EVICT,
	};
	uint32_t kind = draw(a, 8);

	if (kind == 7)
		return lock_pages(a, b);
	uint32_t flags = kinds[kind];
	if ((flags & (IGNORE_SYNC | IGNORE_READ_SYNC)) && !needs_no_order(a, b))
		flags = READ_ONLY;
	if ((flags & DONOT_EVICT) && !a->run->vram_visible) /* LOCK-49 */
		flags = DONOT_WAIT;
	return lock_and_compare(a, b, flags);
}

/* Under memory pressure a locked allocation moves while its address stays (LOCK-04). */
static bool hold(struct actor *a, struct buffer *b)
{
	void *bytes, *again;
	bool twice = draw(a, 2);

	if (!is_ok(a, client_try_lock(&a->device, &b->handle, 0, &bytes), "lock to hold") ||
	    !compare(a, b, bytes))
		return false;
	b->held = true;
	bool good = actor_render(a) && (draw(a, 2) || actor_render(a));
	b->held = false;
	if (!b->stamped)
		actor_scribble(a, b, bytes, draw(a, b->bytes / 2), b->bytes / 2);
	if (good && twice) {
		good = is_ok(a, client_try_lock(&a->device, &b->handle, READ_ONLY, &again),
			     "second lock") &&
		       unlock(a, b);
		if (good && again != bytes)
			return differs(a, "the second lock shows another place, buffer", b->number);
	}
	return good && compare(a, b, bytes) && unlock(a, b);
}

static bool lock_together(struct actor *a)
{
	D3DKMT_HANDLE handles[TOGETHER];
	D3DDDICB_UNLOCK args = {.phAllocations = handles};
	bool good = true;

	for (uint32_t i = 0; i < BUFFERS && good && args.NumAllocations < TOGETHER; i++) {
		struct buffer *b = &a->buffer[i];
		void *bytes;

		if (!b->handle || b->offered || b->hidden)
			continue;
		good = is_ok(a, client_try_lock(&a->device, &b->handle, READ_ONLY, &bytes),
			     "one lock of several") &&
		       compare(a, b, bytes);
		handles[args.NumAllocations++] = b->handle;
	}
	return good &&
	       (!args.NumAllocations ||
		is_ok(a, a->device.cb->pfnUnlockCb(a->device.handle, &args), "unlock of several"));
}

/* ---- offers, priorities, residency ---- */

/*
 * OFR-10: the offer takes effect when the buffer has been processed; after a reclaim before that,
 * never.
 */
static bool offer_in_list(struct actor *a, struct buffer *b)
{
	struct client_context *c = &a->context[b->home];

	if (b->stamped || b->pinned)
		return true;
	actor_put_fill(a, c, b);
	c->c.pAllocationList[client_use(c, b->handle, true)].OfferPriority = 1 + draw(a, 3);
	b->offered = true;
	a->reached[WORKLOAD_OFFER_IN_LIST]++;
	return is_ok(a, client_try_submit(c), "render with an offer");
}

static uint32_t list_all(const struct actor *a, D3DKMT_HANDLE *handles, uint32_t *index)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < BUFFERS; i++) {
		if (!a->buffer[i].handle)
			continue;
		index[count] = i;
		handles[count++] = a->buffer[i].handle;
	}
	return count;
}

static bool set_priorities(struct actor *a)
{
	D3DKMT_HANDLE handles[BUFFERS];
	uint32_t values[BUFFERS], index[BUFFERS];
	D3DDDICB_SETPRIORITY args = {.HandleList = handles,
				     .pPriorities = values,
				     .NumAllocations = list_all(a, handles, index)};

	for (uint32_t i = 0; i < BUFFERS; i++)
		values[i] = 0x28000000u + draw(a, 0xA0000001u);
	return !args.NumAllocations ||
	       is_ok(a, a->device.cb->pfnSetPriorityCb(a->device.handle, &args), "set priorities");
}

static bool query_residency(struct actor *a)
{
	D3DKMT_HANDLE handles[BUFFERS];
	uint32_t index[BUFFERS];
	D3DDDI_RESIDENCYSTATUS status[BUFFERS];
	D3DDDICB_QUERYRESIDENCY args = {.HandleList = handles,
					.pResidencyStatus = status,
					.NumAllocations = list_all(a, handles, index)};

	if (!args.NumAllocations)
		return true;
	if (!is_ok(a, a->device.cb->pfnQueryResidencyCb(a->device.handle, &args),
		   "query residency"))
		return false;
	for (uint32_t i = 0; i < args.NumAllocations; i++) {
		const struct buffer *b = &a->buffer[index[i]];
		uint32_t got = (uint32_t)status[i];

		if (got < IN_MEMORY || got > NOT_RESIDENT ||
		    (got == IN_MEMORY && b->spec.segment_set == 2) ||
		    (got == NOT_RESIDENT && b->pinned))
			return differs(a, "impossible residency, buffer << 32 | status",
				       (uint64_t)b->number << 32 | got);
	}
	return true;
}

static bool reached(struct actor *a, enum workload_kind kind, bool good)
{
	a->reached[kind] += good;
	return good;
}

bool wide_act(struct actor *a, bool *acted)
{
	uint32_t what = draw(a, 200);
	struct buffer *b = choose(a, what < 60);

	*acted = b && what < 100;
	if (!*acted)
		return true;
	if (what < 40)
		return reached(a, WORKLOAD_LOCK_OTHERWISE, lock_otherwise(a, b));
	if (what < 60)
		return reached(a, WORKLOAD_HOLD, hold(a, b));
	if (what < 70)
		return lock_together(a);
	if (what < 80)
		return reached(a, WORKLOAD_PRIORITIES, set_priorities(a));
	if (what < 88)
		return reached(a, WORKLOAD_RESIDENCY, query_residency(a));
	if (what < 99)
		return offer_in_list(a, b);
	return reached(a, WORKLOAD_SHARE, wide_share(a));
}
