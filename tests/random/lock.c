/* SPDX-License-Identifier: MIT */
/*
 * CPU accesses: every flag of a lock that the oracle calls legal for the allocation, with and
 * without a page list.
 */
#include "random.h"

#include <lock_oracle.h>
#include <string.h>

#define PAGES_LISTED 3u
/* Larger allocations are not held locked with a range: they could not be evicted. */
#define RANGE_MAX    (16u * KIB)
#define TRIES        16u

struct request {
	uint32_t flags, count;
	UINT page[PAGES_LISTED];
};

static bool is_existing(const struct item *item)
{
	return item->spec.flags & (EXISTING | EXISTING_KERNEL);
}

static uint32_t sets_of(const struct item *item)
{
	return item->spec.read_set & item->spec.write_set;
}

bool random_is_visible(const struct random *r, const struct item *item)
{
	uint32_t flags = CPU_VISIBLE | (r->wddm2 ? ON_DEMAND : 0u);

	return (item->primary || (item->spec.flags & flags)) && !(item->spec.flags & PROTECTED);
}

/* Returns whether a lock with Discard may rename. (REN-14) */
static bool is_renamed(const struct random *r, const struct item *item, uint32_t flags)
{
	return !r->wddm2 && (flags & DISCARD) && !item->primary && !is_existing(item) &&
	       !(item->spec.flags & PINNED);
}

void random_lock_state(const struct random *r, const struct item *item,
		       struct oracle_allocation *state)
{
	const struct scripted_allocation *s = &item->spec;

	*state = (struct oracle_allocation){
		.cpu_visible = s->flags & CPU_VISIBLE,
		.protected = s->flags & PROTECTED,
		.aperture = sets_of(item) & APERTURE,
		.swizzled = s->flags & SWIZZLED,
		.cached = s->flags & CACHED,
		.pinned = (s->flags & PINNED) ||
			  is_existing(item), /* existing memory is never renamed either */
		.primary = item->primary,
		.for_alternate = s->flags & ALTERNATE,
		.memory = (s->read_set | s->write_set) & (MEMORY | HIDDEN),
		.through = s->eviction_set,
		.permanent = s->flags & KEPT,
		.unswizzles = r->ranges,
		.alternates = r->ranges,
		.ranges = r->ranges,
		.coherent = r->coherent,
		.offered = item->offered,
		.held = !item->data                           ? ORACLE_UNLOCKED
			: item->lock_flags & ACQUIRE_APERTURE ? ORACLE_RANGE
							      : ORACLE_PLAIN,
	};
}

static void draw_request(struct random *r, const struct item *item, struct request *request)
{
	*request = (struct request){.flags = draw(r, 3) ? 1u << draw(r, 12) : 0};
	for (uint32_t i = draw(r, 3); i; i--)
		request->flags |= 1u << draw(r, 11);
	request->flags &= LOCK_FLAGS;
	if (!r->wddm2 && (item->spec.flags & ALTERNATE))
		request->flags |= ACQUIRE_APERTURE | USE_ALTERNATE_VA;
	if (draw(r, 4))
		return;
	request->count = 1 + draw(r, PAGES_LISTED);
	for (uint32_t i = 0; i < request->count; i++)
		request->page[i] = draw(r, item->bytes / PAGE_BYTES);
}

static bool is_legal(const struct random *r, const struct item *item, const struct request *request)
{
	struct oracle_allocation state;
	const struct oracle_request asked = {request->flags,
					     request->count ? ORACLE_LIST : ORACLE_NO_LIST};

	random_lock_state(r, item, &state);
	if (!r->wddm2)
		return oracle_lock(asked, &state).status != STATUS_INVALID_PARAMETER;
	return !(request->flags & (ACQUIRE_APERTURE | USE_ALTERNATE_VA)) &&
	       (request->flags & (READ_ONLY | WRITE_ONLY)) != (READ_ONLY | WRITE_ONLY);
}

/* Lists the results that are legal besides S_OK. */
static void may_answer(const struct random *r, const struct item *item, uint32_t flags,
		       HRESULT answers[6])
{
	uint32_t count = 0;

	if (!r->wddm2 && (flags & (DONOT_WAIT | DISCARD)))
		answers[count++] = D3DERR_WASSTILLDRAWING;
	if (!r->wddm2 && (flags & (ACQUIRE_APERTURE | DONOT_EVICT)))
		answers[count++] = D3DERR_NOTAVAILABLE;
	if (item->spec.flags & PINNED)
		answers[count++] = D3DDDIERR_CANTEVICTPINNEDALLOCATION;
	if (!r->wddm2 && (flags & ACQUIRE_APERTURE) && (item->spec.flags & KEPT))
		answers[count++] = E_NOTIMPL;
	/* on a residency list it must be in memory that the CPU cannot access (LOCK-44) */
	if (r->wddm2 && (item->spec.flags & CACHED) && item->listed &&
	    (!(sets_of(item) & APERTURE) || (item->spec.flags & IN_VPR)))
		answers[count++] = E_INVALIDARG;
	answers[count] = S_OK;
}

static HRESULT call(struct random *r, struct item *item, const struct request *request,
		    unsigned char **data)
{
	struct client_device *device = &r->w.device;
	HRESULT result;

	if (r->wddm2 && !request->flags && !request->count && draw(r, 2)) {
		D3DDDICB_LOCK2 args = {.hAllocation = item->handle};

		result = device->cb->pfnLock2Cb(device->handle, &args);
		*data = args.pData;
		return result;
	}
	D3DDDICB_LOCK args = {.hAllocation = item->handle,
			      .NumPages = request->count,
			      .pPages = request->count ? request->page : NULL,
			      .Flags.Value = request->flags};
	result = device->cb->pfnLockCb(device->handle, &args);
	*data = args.pData;
	if (result == S_OK && args.hAllocation != item->handle &&
	    !is_renamed(r, item, args.Flags.Value))
		random_wrong(r, item, "renamed without Discard", args.hAllocation);
	item->handle = args.hAllocation;
	return result;
}

static HRESULT unlock(struct random *r, const struct item *item)
{
	const D3DDDICB_UNLOCK2 args2 = {.hAllocation = item->handle};

	return r->wddm2 && draw(r, 2) ? r->w.device.cb->pfnUnlock2Cb(r->w.device.handle, &args2)
				      : client_unlock(&r->w.device, item->handle);
}

/* Returns whether a lock with FLAGS must show the content of the model. */
static bool is_promised(const struct random *r, const struct item *item, uint32_t flags)
{
	if (r->wddm2)
		return random_is_kept(r, item);
	return (flags & (IGNORE_SYNC | DONOT_WAIT)) != (IGNORE_SYNC | DONOT_WAIT);
}

static bool may_write(const struct random *r, uint32_t flags)
{
	return !(flags & READ_ONLY) && (r->wddm2 || !(flags & (IGNORE_SYNC | IGNORE_READ_SYNC)));
}

/* Accesses only the listed pages; `data` is the address of the first. */
static void use_pages(struct random *r, struct item *item, const struct request *request,
		      unsigned char *data, bool renamed)
{
	unsigned char *bytes = data - (size_t)request->page[0] * PAGE_BYTES;

	for (uint32_t i = 0; i < request->count; i++) {
		uint32_t from = request->page[i] * PAGE_BYTES;

		if (!renamed && is_promised(r, item, request->flags))
			random_compare(r, item, bytes, from, PAGE_BYTES);
		if (!renamed && may_write(r, request->flags) && draw(r, 2))
			random_scribble(r, item, bytes, from + draw(r, PAGE_BYTES / 2),
					1 + draw(r, PAGE_BYTES / 2));
	}
	item->lost |= renamed;
}

static void use_all(struct random *r, struct item *item, uint32_t flags, unsigned char *data,
		    bool renamed)
{
	if (item->own && data != item->own)
		random_wrong(r, item, "the lock does not show our own memory", (uintptr_t)data);
	if (renamed) {
		item->lost = !may_write(r, flags);
		if (!item->lost)
			random_scribble(r, item, data, 0, item->bytes);
		return;
	}
	if (is_promised(r, item, flags))
		random_compare(r, item, data, 0, item->bytes);
	if (may_write(r, flags) && draw(r, 3)) {
		uint32_t from = draw(r, item->bytes);

		random_scribble(r, item, data, from, 1 + draw(r, item->bytes - from));
	}
}

static uint32_t count_held(const struct random *r)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ITEMS; i++)
		count += r->item[i].data != NULL;
	return count;
}

/*
 * Returns whether the lock may be held across calls. Then no other work uses the allocation, and
 * what is written during the lock is written last.
 */
static bool may_hold(struct random *r, const struct item *item, uint32_t flags)
{
	if (draw(r, 3) || count_held(r) >= HELD_AT_ONCE || !is_promised(r, item, flags) ||
	    (flags & (IGNORE_SYNC | IGNORE_READ_SYNC)) || item->lost)
		return false;
	if (r->wddm2) /* otherwise an eviction would wait for the unlock (LOCK-48) */
		return (sets_of(item) & APERTURE) && !(item->spec.flags & (IN_VPR | PINNED));
	return !(flags & ACQUIRE_APERTURE) || item->bytes <= RANGE_MAX;
}

void random_lock(struct random *r, struct item *item)
{
	struct request request;
	unsigned char *data;
	HRESULT answers[6];
	uint32_t tries = 0;

	r->what = "lock";
	do {
		if (tries++ == TRIES)
			return;
		draw_request(r, item, &request);
	} while (!is_legal(r, item, &request));
	if (r->wddm2)
		random_idle(r);
	may_answer(r, item, request.flags, answers);
	HRESULT result = call(r, item, &request, &data);
	if (!random_expect(r, RANDOM_LOCK, item, result, answers))
		return;
	r->lock_flags |= request.flags;
	bool renamed = is_renamed(r, item, request.flags);
	if (request.count && !(r->wddm2 || is_existing(item)))
		use_pages(r, item, &request, data, renamed);
	else if (!request.count)
		use_all(r, item, request.flags, data, renamed);
	if (!request.count && may_hold(r, item, request.flags)) {
		item->data = data;
		item->lock_flags = request.flags;
		return;
	}
	if (unlock(r, item) != S_OK)
		random_wrong(r, item, "cannot be unlocked", 0);
}

/* Locks nest, with the same address. (LOCK-27) */
static void lock_again(struct random *r, struct item *item)
{
	D3DKMT_HANDLE handle = item->handle;
	void *again;

	if (client_try_lock(&r->w.device, &handle, READ_ONLY, &again) != S_OK ||
	    again != item->data)
		random_wrong(r, item, "a second lock shows another place", (uintptr_t)again);
	assert_int_equal(client_unlock(&r->w.device, handle), S_OK);
}

void random_unlock(struct random *r, struct item *item)
{
	static const HRESULT none[] = {S_OK};

	r->what = "unlock";
	random_compare(r, item, item->data, 0, item->bytes);
	if (may_write(r, item->lock_flags)) {
		uint32_t from = draw(r, item->bytes);

		random_scribble(r, item, item->data, from, 1 + draw(r, item->bytes - from));
	}
	if (!(item->lock_flags & ACQUIRE_APERTURE) && draw(r, 4) == 0)
		lock_again(r, item);
	random_expect(r, RANDOM_UNLOCK, item, unlock(r, item), none);
	item->data = NULL;
	item->lock_flags = NO_LOCK;
}

void random_refill(struct random *r, struct item *item)
{
	HRESULT answers[6];
	struct request plain = {.flags = 0};
	unsigned char *data;

	r->what = "lock of what is lost";
	if (!random_is_visible(r, item) || (!r->wddm2 && (item->spec.flags & ALTERNATE)) ||
	    !random_is_kept(r, item)) {
		random_destroy(r, item);
		return;
	}
	if (r->wddm2)
		random_idle(r);
	may_answer(r, item, 0, answers);
	HRESULT result = call(r, item, &plain, &data);
	if (!random_expect(r, RANDOM_LOCK, item, result, answers))
		return;
	random_scribble(r, item, data, 0, item->bytes);
	item->lost = false;
	assert_int_equal(client_unlock(&r->w.device, item->handle), S_OK);
}
