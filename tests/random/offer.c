/* SPDX-License-Identifier: MIT */
/* Offers and reclaims, priorities; from 2.0 on residency lists and changes of properties. */
#include "random.h"

#include <string.h>

enum { IN_MEMORY = 1, IN_APERTURE = 2, NOT_RESIDENT = 3 };
enum { CANT_TRIM = 1, MUST_SUCCEED = 2, ONLY_IF_NECESSARY = 1, NOT_WRITTEN_TO = 2 };
enum { SET_PHYSICAL = 1, SET_SEGMENTS = 2, SET_PREFERRED = 4 };

static const HRESULT none[] = {S_OK}, queued[] = {E_PENDING, S_OK},
		     no_room[] = {E_PENDING, E_OUTOFMEMORY, S_OK};

/* OFR-11 */
static bool by_resource(struct random *r, const struct item *item)
{
	return item->resource && !item->primary && draw(r, 2);
}

void random_offer(struct random *r, struct item *item)
{
	HANDLE resource = item->resource;
	bool whole = by_resource(r, item);
	D3DDDI_OFFER_PRIORITY priority = (D3DDDI_OFFER_PRIORITY)(1 + draw(r, 4));
	D3DDDICB_OFFERALLOCATIONS args = {.pResources = whole ? &resource : NULL,
					  .HandleList = whole ? NULL : &item->handle,
					  .NumAllocations = 1,
					  .Priority = priority};
	D3DDDICB_OFFERALLOCATIONS2 args2 = {.pResources = args.pResources,
					    .HandleList = args.HandleList,
					    .NumAllocations = 1,
					    .Priority = priority,
					    .Flags.Value = draw(r, 2)};
	struct client_device *device = &r->w.device;

	r->what = "offer";
	if (item->spec.flags & PINNED) /* OFR-08 */
		return;
	random_expect(r, RANDOM_OFFER, item,
		      r->wddm2 && draw(r, 2)
			      ? device->cb->pfnOfferAllocations2Cb(device->handle, &args2)
			      : device->cb->pfnOfferAllocationsCb(device->handle, &args),
		      none);
	item->offered = true;
}

static HRESULT reclaim(struct random *r, const HANDLE *resource, const D3DKMT_HANDLE *handle,
		       bool *lost)
{
	struct client_device *device = &r->w.device;
	BOOL discarded = 0;
	D3DDDI_RECLAIM_RESULT answer = D3DDDI_RECLAIM_RESULT_OK;
	BOOL *tell =
		draw(r, 8)
			? &discarded
			: NULL; /* without a reclaim result the content counts as lost (OFR-06) */
	D3DDDICB_RECLAIMALLOCATIONS args = {.pResources = resource,
					    .HandleList = handle,
					    .NumAllocations = 1,
					    .pDiscarded = tell};
	D3DDDICB_RECLAIMALLOCATIONS2 args2 = {.PagingQueue = r->queue.hPagingQueue,
					      .pResources = resource,
					      .HandleList = handle,
					      .NumAllocations = 1,
					      .pDiscarded = tell};
	D3DDDICB_RECLAIMALLOCATIONS3 args3 = {.PagingQueue = r->queue.hPagingQueue,
					      .pResources = resource,
					      .HandleList = handle,
					      .NumAllocations = 1,
					      .pResults = &answer};
	uint32_t which = r->wddm2 ? draw(r, 3) : 0;
	HRESULT result = which == 0 ? device->cb->pfnReclaimAllocationsCb(device->handle, &args)
			 : which == 1
				 ? device->cb->pfnReclaimAllocations2Cb(device->handle, &args2)
				 : device->cb->pfnReclaimAllocations3Cb(device->handle, &args3);

	*lost = which == 2 ? answer != D3DDDI_RECLAIM_RESULT_OK : !tell || discarded;
	return result;
}

void random_reclaim(struct random *r, struct item *item)
{
	HANDLE resource = item->resource;
	bool whole = by_resource(r, item), lost;

	r->what = "reclaim";
	HRESULT result = reclaim(r, whole ? &resource : NULL, whole ? NULL : &item->handle, &lost);
	if (result == E_PENDING)
		r->done[RANDOM_RECLAIM]++;
	random_expect(r, RANDOM_RECLAIM, item, result, r->wddm2 ? queued : none);
	item->offered = false;
	item->lost |= lost;
}

static uint32_t list_all(const struct random *r, D3DKMT_HANDLE *handles, uint32_t *index)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ITEMS; i++) {
		if (!r->item[i].handle)
			continue;
		index[count] = i;
		handles[count++] = r->item[i].handle;
	}
	return count;
}

void random_priorities(struct random *r)
{
	D3DKMT_HANDLE handles[ITEMS];
	UINT values[ITEMS];
	uint32_t index[ITEMS], count = list_all(r, handles, index);
	D3DDDICB_SETPRIORITY args = {
		.HandleList = handles, .NumAllocations = count, .pPriorities = values};
	const struct item *item = count ? &r->item[index[draw(r, count)]] : NULL;

	r->what = "set priority";
	if (!count)
		return;
	for (uint32_t i = 0; i < ITEMS; i++)
		values[i] = 0x28000000u + draw(r, 0xA0000001u);
	if (item->resource && draw(r, 2)) {
		args = (D3DDDICB_SETPRIORITY){.hResource = item->resource, .pPriorities = values};
	}
	random_expect(r, RANDOM_PRIORITY, item,
		      r->w.device.cb->pfnSetPriorityCb(r->w.device.handle, &args), none);
}

/*
 * Checks that the reported place is legal. A written allocation in no segment has no transfer
 * pending.
 */
static void look_at(struct random *r, struct item *item, uint32_t status)
{
	/* After a change of its sets it stays where it is until that space is needed. (PRI-15) */
	uint32_t sets =
		item->updated ? MEMORY | APERTURE : item->spec.read_set | item->spec.write_set;

	if (status < IN_MEMORY || status > NOT_RESIDENT ||
	    (status == IN_MEMORY && !(sets & (MEMORY | HIDDEN))) ||
	    (status == IN_APERTURE && !(sets & APERTURE)) ||
	    (status == NOT_RESIDENT && (item->spec.flags & PINNED)))
		random_wrong(r, item, "an impossible residency", status);
	if (status == NOT_RESIDENT && !item->listed)
		item->written = false;
}

void random_query(struct random *r)
{
	D3DKMT_HANDLE handles[ITEMS];
	uint32_t index[ITEMS];
	D3DDDI_RESIDENCYSTATUS status[ITEMS];
	D3DDDICB_QUERYRESIDENCY args = {.HandleList = handles,
					.NumAllocations = list_all(r, handles, index),
					.pResidencyStatus = status};

	r->what = "query residency";
	if (!args.NumAllocations)
		return;
	random_expect(r, RANDOM_QUERY, NULL,
		      r->w.device.cb->pfnQueryResidencyCb(r->w.device.handle, &args), none);
	for (uint32_t i = 0; i < args.NumAllocations; i++)
		look_at(r, &r->item[index[i]], (uint32_t)status[i]);
}

/* ---- 2.x ---- */

static HRESULT make(struct random *r, struct item *const *items, uint32_t count, uint32_t flags)
{
	D3DKMT_HANDLE handles[LISTED_MAX];
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = r->queue.hPagingQueue,
				    .NumAllocations = count,
				    .AllocationList = handles,
				    .Flags.Value = flags};

	for (uint32_t i = 0; i < count; i++)
		handles[i] = items[i]->handle;
	HRESULT result = r->w.device.cb->pfnMakeResidentCb(r->w.device.handle, &args);
	bool good = result == S_OK || result == E_PENDING;
	if (args.NumAllocations != (good ? count : 0)) /* RES-02 */
		random_wrong(r, items[0], "make resident says that it did", args.NumAllocations);
	for (uint32_t i = 0; good && i < count; i++)
		items[i]->listed++;
	r->done[RANDOM_MAKE_RESIDENT] += result == E_PENDING;
	return result;
}

/*
 * Everything on a residency list is in memory at the same time, each in one piece, beside pinned
 * allocations. A list that fits in bytes and cannot be placed loses the device (PRI-16), which this
 * test avoids.
 */
bool random_may_list(const struct random *r, uint32_t bytes)
{
	for (uint32_t i = 0; i < ITEMS; i++)
		bytes += r->item[i].listed ? r->item[i].bytes : 0;
	return bytes <= LISTED_BYTES;
}

void random_make_resident(struct random *r)
{
	struct item *items[LISTED_MAX];
	uint32_t count = 0, bytes = 0;

	r->what = "make resident";
	for (uint32_t wish = 1 + draw(r, LISTED_MAX); count < wish; count++) {
		if (!(items[count] = random_item(r)))
			return;
		bytes += items[count]->listed ? 0 : items[count]->bytes;
	}
	if (!random_may_list(r, bytes)) {
		random_evict(r, items[0]);
		return;
	}
	HRESULT result = make(r, items, count, draw(r, 2) ? CANT_TRIM : 0);
	random_expect(r, RANDOM_MAKE_RESIDENT, items[0], result, no_room);
	/*
	 * Allocations on the list need no further space, so the call must succeed; otherwise the
	 * device would be lost.
	 */
	if ((result == S_OK || result == E_PENDING) && draw(r, 4) == 0)
		random_expect(r, RANDOM_MAKE_RESIDENT, items[0],
			      make(r, items, count, CANT_TRIM | MUST_SUCCEED), queued);
}

void random_evict(struct random *r, struct item *item)
{
	D3DKMT_HANDLE handles[LISTED_MAX];
	uint32_t count = 0;

	r->what = "evict";
	while (count < item->listed && count < LISTED_MAX && (!count || draw(r, 3)))
		handles[count++] = item->handle;
	if (!count)
		return;
	D3DDDICB_EVICT args = {
		.NumAllocations = count, .AllocationList = handles, .Flags.Value = draw(r, 4)};
	if (item->written) /* NotWrittenTo would be false */
		args.Flags.Value &= ~(UINT)NOT_WRITTEN_TO;
	item->listed -= count;
	random_expect(r, RANDOM_EVICT, item, r->w.device.cb->pfnEvictCb(r->w.device.handle, &args),
		      none);
}

static bool may_update(const struct random *r, const struct item *item)
{
	return r->version >= DXGKDDI_INTERFACE_VERSION_WDDM2_1 && !item->primary && !item->own &&
	       !(item->spec.flags & (PINNED | IN_VPR));
}

void random_update(struct random *r, struct item *item)
{
	uint32_t set = 1 + draw(r, 7), flags = draw(r, 2);
	D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = r->queue.hPagingQueue,
					   .hAllocation = item->handle,
					   .SupportedSegmentSet = set,
					   .Flags.Value = flags,
					   .PropertyMaskValue = draw(r, 8)};

	r->what = "update property";
	if (!may_update(r, item))
		return;
	if ((set & HIDDEN) && !(set & APERTURE)) /* SEG-25 */
		set = args.SupportedSegmentSet = set & MEMORY ? MEMORY : APERTURE;
	if (item->spec.flags & NOTIFY)
		args.Flags.Value = flags = 1;
	if ((args.PropertyMaskValue & SET_PHYSICAL) && !flags) /* DMA-27 */
		random_idle(r);
	if (!(args.PropertyMaskValue & SET_SEGMENTS))
		set = item->spec.write_set;
	args.PreferredSegment.Value = (uint32_t)__builtin_ctz(set) + 1;
	HRESULT result = r->w.device.cb->pfnUpdateAllocationPropertyCb(r->w.device.handle, &args);
	random_expect(r, RANDOM_UPDATE, item, result, no_room);
	if (result == E_OUTOFMEMORY)
		return;
	item->updated = true;
	if (args.PropertyMaskValue & SET_SEGMENTS)
		item->spec.read_set = item->spec.write_set = set;
	if (args.PropertyMaskValue & SET_PHYSICAL)
		item->spec.flags =
			(item->spec.flags & ~(uint32_t)PHYSICAL) | (flags ? (uint32_t)PHYSICAL : 0);
}
