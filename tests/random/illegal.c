/* SPDX-License-Identifier: MIT */
#include "illegal.h"

#include <lock_oracle.h>
#include <stdio.h>
#include <string.h>

static uint32_t any_bits(struct random *r)
{
	switch (draw(r, 4)) {
	case 0:
		return draw(r, UINT32_MAX);
	case 1:
		return 1u << draw(r, 32) | 1u << draw(r, 32);
	default:
		return 1u << draw(r, 32);
	}
}

static void names(struct illegal *call, const char *rules)
{
	snprintf(call->rules, sizeof(call->rules), "%s", rules);
}

/* ---- creation ---- */

static _Alignas(4096) unsigned char memory[PAGES_MAX * PAGE_BYTES];

static void draw_bad(struct random *r, struct item *item, struct flags_case *c)
{
	struct scripted_allocation *s = &item->spec;

	*s = (struct scripted_allocation){
		.size_bytes = (1 + draw(r, PAGES_MAX)) * PAGE_BYTES,
		.read_set = 1 + draw(r, 7),
		.flags = any_bits(r) | (draw(r, 2) ? CPU_VISIBLE : 0) |
			 (draw(r, 2) ? any_bits(r) : 0),
		.flags2 = draw(r, 4) ? 0 : any_bits(r),
	};
	s->write_set = s->read_set;
	item->primary = draw(r, 4) == 0;
	*c = random_case(r, item);
	c->flags2 = s->flags2;
	c->memory = draw(r, 4) == 0; /* for ExistingKernelSysMem this is invalid as well */
	c->kernel_memory = false;
}

HRESULT illegal_create(struct illegal *call)
{
	struct random *r = call->r;
	struct item item;
	struct flags_case c;
	enum flags_verdict verdict;
	D3DDDI_ALLOCATIONINFO info = {0};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	memset(&item, 0, sizeof(item));
	do {
		draw_bad(r, &item, &c);
		verdict = flags_judge(&c, call->rules);
	} while (verdict == FLAGS_GOOD);
	/* Client memory, with a miniport that reports kernel memory. */
	call->not_built = verdict == FLAGS_NOT_BUILT;
	call->flags = c.flags;
	info.pPrivateDriverData = &item.spec;
	info.PrivateDriverDataSize = sizeof(item.spec);
	info.pSystemMem = c.memory ? memory : NULL;
	info.Flags.Primary = item.primary;
	if (draw(r, 16) == 0 && !item.primary) { /* properties of primaries */
		call->not_built = false;
		if (draw(r, 2)) {
			info.VidPnSourceId = 1 + draw(r, 15);
			names(call, "ALF-32");
		} else {
			info.Flags.Stereo = 1;
			names(call, "ALF-31");
		}
	}
	args.hResource = draw(r, 4) ? NULL : memory;
	HRESULT result = r->w.device.cb->pfnAllocateCb(r->w.device.handle, &args);
	if (info.hAllocation || args.hKMResource)
		random_wrong(r, NULL, "a refused create has a handle", info.hAllocation);
	return result;
}

/* ---- locks ---- */

static uint32_t bad_lock_flags(struct random *r)
{
	static const uint32_t pairs[] = {READ_ONLY | WRITE_ONLY,
					 IGNORE_SYNC | ACQUIRE_APERTURE,
					 USE_ALTERNATE_VA,
					 ACQUIRE_APERTURE,
					 IGNORE_SYNC,
					 LOCK_ENTIRE};

	return draw(r, 2) ? pairs[draw(r, 6)] | (draw(r, 2) ? 1u << draw(r, 11) : 0) : any_bits(r);
}

/* Returns whether adapters from 2.0 on refuse the lock. */
static bool is_bad_from_2_0(struct illegal *call, uint32_t flags, bool lock2)
{
	call->rules[0] = '\0';
	if (lock2 && flags)
		names(call, "LOCK-42");
	else if (flags & ~(uint32_t)LOCK_FLAGS)
		names(call, "LOCK-02");
	else if ((flags & (READ_ONLY | WRITE_ONLY)) == (READ_ONLY | WRITE_ONLY))
		names(call, "LOCK-07");
	else if (flags & (ACQUIRE_APERTURE | USE_ALTERNATE_VA))
		names(call, "SWZ-27");
	else if (call->item->spec.flags & PROTECTED)
		names(call, "ALF-08");
	else if (call->item->offered)
		names(call, "LOCK-25 LOCK-23");
	return call->rules[0] != '\0';
}

static HRESULT lock2(struct illegal *call, uint32_t flags)
{
	struct random *r = call->r;
	D3DDDICB_LOCK2 args = {.hAllocation = call->item->handle, .Flags.Value = flags};
	HRESULT result = r->w.device.cb->pfnLock2Cb(r->w.device.handle, &args);

	if (args.pData)
		random_wrong(r, call->item, "a refused lock has an address", flags);
	return result;
}

HRESULT illegal_lock(struct illegal *call)
{
	static UINT page;
	struct random *r = call->r;
	uint32_t flags = bad_lock_flags(r);
	call->flags = flags;
	bool listed = draw(r, 4) == 0, use_lock2 = draw(r, 4) == 0;
	const struct oracle_request asked = {flags, listed ? ORACLE_LIST : ORACLE_NO_LIST};
	struct oracle_allocation state;

	if (use_lock2 && !r->wddm2)
		call->not_built = true;
	else if (r->wddm2 && !is_bad_from_2_0(call, flags, use_lock2))
		return illegal_none(call);
	if (use_lock2)
		return lock2(call, flags);
	if (!r->wddm2) {
		random_lock_state(r, call->item, &state);
		struct oracle_answer answer = oracle_lock(asked, &state);

		if (answer.status != STATUS_INVALID_PARAMETER)
			return illegal_none(call);
		names(call, answer.rules);
	}
	D3DDDICB_LOCK args = {.hAllocation = call->item->handle,
			      .NumPages = listed,
			      .pPages = listed ? &page : NULL,
			      .Flags.Value = flags};
	HRESULT result = r->w.device.cb->pfnLockCb(r->w.device.handle, &args);
	if (args.pData || args.hAllocation != call->item->handle)
		random_wrong(r, call->item, "a refused lock has an address or another handle",
			     args.hAllocation);
	return result;
}

HRESULT illegal_unlock(struct illegal *call)
{
	struct random *r = call->r;
	D3DKMT_HANDLE handles[2] = {call->item->handle, draw(r, UINT32_MAX) | 0xE0000000u};
	D3DDDICB_UNLOCK args = {.NumAllocations = 1 + draw(r, 2), .phAllocations = handles};

	if (call->item->data && args.NumAllocations == 1)
		return illegal_none(call);
	names(call, "LOCK-28 LOCK-29");
	return r->w.device.cb->pfnUnlockCb(r->w.device.handle, &args);
}

/* ---- offers, priorities ---- */

HRESULT illegal_offer(struct illegal *call)
{
	struct random *r = call->r;
	HANDLE resource = memory;
	struct client_device *device = &r->w.device;
	D3DDDICB_OFFERALLOCATIONS2 args = {.HandleList = &call->item->handle,
					   .NumAllocations = 1,
					   .Priority = (D3DDDI_OFFER_PRIORITY)(1 + draw(r, 4))};

	switch (draw(r, 4)) {
	case 0:
		args.Priority =
			(D3DDDI_OFFER_PRIORITY)(draw(r, 2) ? 0 : 5 + draw(r, UINT32_MAX - 5));
		names(call, "OFR-03 OFR-08");
		break;
	case 1:
		args.Flags.Value = any_bits(r);
		if (r->wddm2 && args.Flags.Value == 1)
			return illegal_none(call);
		call->not_built = args.Flags.Value == 1;
		names(call, "OFR-14");
		break;
	case 2:
		args.pResources = &resource; /* both, or an invalid one */
		args.HandleList = draw(r, 2) ? args.HandleList : NULL;
		names(call, "OFR-02");
		break;
	default:
		if (!call->item->data && !(call->item->spec.flags & PINNED))
			return illegal_none(call);
		names(call, "OFR-08");
	}
	return device->cb->pfnOfferAllocations2Cb(device->handle, &args);
}

HRESULT illegal_reclaim(struct illegal *call)
{
	struct random *r = call->r;
	HANDLE resource = memory;
	struct client_device *device = &r->w.device;
	BOOL discarded = 77;
	D3DDDI_RECLAIM_RESULT answer = (D3DDDI_RECLAIM_RESULT)77;
	D3DDDICB_RECLAIMALLOCATIONS3 args = {.PagingQueue = r->queue.hPagingQueue,
					     .HandleList = &call->item->handle,
					     .NumAllocations = 1,
					     .pResults = &answer};
	const D3DDDICB_RECLAIMALLOCATIONS both = {.HandleList = &call->item->handle,
						  .pResources = &resource,
						  .NumAllocations = 1,
						  .pDiscarded = &discarded};
	HRESULT result;

	call->not_built = !r->wddm2;
	switch (draw(r, 3)) {
	case 0:
		call->not_built = false;
		names(call, "OFR-02");
		result = device->cb->pfnReclaimAllocationsCb(device->handle, &both);
		break;
	case 1:
		args.pResults = NULL;
		names(call, "OFR-14");
		result = device->cb->pfnReclaimAllocations3Cb(device->handle, &args);
		break;
	default:
		args.PagingQueue = call->item->handle;
		names(call, "OFR-12");
		result = device->cb->pfnReclaimAllocations3Cb(device->handle, &args);
	}
	if (discarded != 77 || (uint32_t)answer != 77)
		random_wrong(r, call->item, "a refused reclaim says something", (uint32_t)answer);
	return result;
}

HRESULT illegal_priority(struct illegal *call)
{
	struct random *r = call->r;
	D3DKMT_HANDLE handles[2] = {call->item->handle, draw(r, UINT32_MAX) | 0xE0000000u};
	UINT values[2] = {draw(r, UINT32_MAX), draw(r, UINT32_MAX)};
	D3DDDICB_SETPRIORITY args = {
		.HandleList = handles, .NumAllocations = 1, .pPriorities = values};

	names(call, "PRI-03");
	switch (draw(r, 4)) {
	case 0:
		args.pPriorities = NULL;
		break;
	case 1:
		args.hResource = memory; /* handles and a resource */
		break;
	case 2:
		args.NumAllocations = 0;
		break;
	default:
		args.NumAllocations = 2; /* one handle is no allocation */
	}
	return r->w.device.cb->pfnSetPriorityCb(r->w.device.handle, &args);
}

/* ---- 2.x ---- */

HRESULT illegal_make_resident(struct illegal *call)
{
	struct random *r = call->r;
	D3DKMT_HANDLE handles[2] = {call->item->handle, draw(r, UINT32_MAX) | 0xE0000000u};
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = r->queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = handles};

	call->not_built = !r->wddm2;
	switch (draw(r, 3)) {
	case 0: /* MustSucceed needs CantTrimFurther; the others are reserved */
		args.Flags.Value = draw(r, 2) ? 2 : any_bits(r) | 4;
		names(call, "PRI-09 RES-05");
		break;
	case 1:
		args.hPagingQueue = handles[draw(r, 2)];
		names(call, "RES-02");
		break;
	default:
		args.NumAllocations = 2;
		names(call, "PRI-09");
	}
	HRESULT result = r->w.device.cb->pfnMakeResidentCb(r->w.device.handle, &args);
	if (args.NumAllocations || args.PagingFenceValue) /* RES-02 */
		random_wrong(r, call->item, "a refused make resident says something",
			     args.NumAllocations);
	return result;
}

HRESULT illegal_evict(struct illegal *call)
{
	struct random *r = call->r;
	D3DKMT_HANDLE handles[32];
	D3DDDICB_EVICT args = {.NumAllocations = 1, .AllocationList = handles};
	uint32_t listed = call->item->listed;

	call->not_built = !r->wddm2;
	for (uint32_t i = 0; i < 32; i++)
		handles[i] = call->item->handle;
	if (draw(r, 2) || listed >= 32) {
		args.Flags.Value = any_bits(r) | 4;
		names(call, "PRI-09");
	} else { /* once more than it was made resident */
		args.NumAllocations = listed + 1;
		args.Flags.Value = draw(r, 4);
		names(call, "RES-06");
	}
	return r->w.device.cb->pfnEvictCb(r->w.device.handle, &args);
}

HRESULT illegal_deallocate(struct illegal *call)
{
	struct random *r = call->r;
	D3DKMT_HANDLE handles[2] = {call->item->handle,
				    draw(r, 2) ? call->item->handle : 0xE0000000u};
	D3DDDICB_DEALLOCATE2 args = {.NumAllocations = 1, .HandleList = handles};

	if (draw(r, 2)) {
		args.Flags.Value = any_bits(r);
		call->not_built = !r->wddm2 && !(args.Flags.Value & ~3u);
		if (r->wddm2 && !(args.Flags.Value & ~3u))
			return illegal_none(call);
		names(call, "ALF-37");
	} else {
		args.NumAllocations = 2;
		names(call, "ALF-36");
	}
	return r->w.device.cb->pfnDeallocate2Cb(r->w.device.handle, &args);
}

HRESULT illegal_update(struct illegal *call)
{
	struct random *r = call->r;
	D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = r->queue.hPagingQueue,
					   .hAllocation = call->item->handle,
					   .SupportedSegmentSet = MEMORY | APERTURE,
					   .PropertyMaskValue = draw(r, 8)};

	call->not_built = r->version < DXGKDDI_INTERFACE_VERSION_WDDM2_1;
	names(call, "PRI-15");
	switch (draw(r, 4)) {
	case 0:
		args.PropertyMaskValue |= 0x10u << draw(r, 28);
		break;
	case 1:
		args.Flags.Value = 4u << draw(r, 30);
		break;
	case 2:
		args.hPagingQueue = call->item->handle;
		break;
	default:
		args.hAllocation = 0xE0000000u;
	}
	return r->w.device.cb->pfnUpdateAllocationPropertyCb(r->w.device.handle, &args);
}

/* ---- allocation lists ---- */

HRESULT illegal_render(struct illegal *call)
{
	struct random *r = call->r;
	struct client_context *context = random_home(r, call->item);
	bool offers = !r->wddm2 && r->version >= DXGKDDI_INTERFACE_VERSION_WIN8;
	/* OFR-10: the priority of an offer is a flag of 1.2 and 1.3. */
	uint32_t reserved = offers ? 0xFFFFFFE0u : 0xFFFFFFFCu, flags = any_bits(r) & reserved;

	if (!flags || (!offers && !r->wddm2 && !(flags & 0xFFFFFFE0u)))
		return illegal_none(call);
	world_use(context, call->item->handle);
	context->c.pAllocationList[0].Value |= flags;
	D3DDDICB_RENDER args = world_render_args(context);
	return world_render(context, &args);
}
