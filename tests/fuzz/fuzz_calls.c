/* SPDX-License-Identifier: MIT */
/* fuzz_calls [SECONDS [SEED]]: device callbacks with invalid arguments. */
#include "refusal.h"

#include <string.h>

enum {
	READ_ONLY = 0x1,
	WRITE_ONLY = 0x2,
	IGNORE_SYNC = 0x8,
	LOCK_ENTIRE = 0x10,
	ACQUIRE_APERTURE = 0x40,
	USE_ALTERNATE_VA = 0x200,
	GUARD = 0x5A5A5A5A,
	COUNT_MAX = 100000
};

static HRESULT bad_lock(struct refusal *r)
{
	static const uint32_t flags[] = {READ_ONLY | WRITE_ONLY, IGNORE_SYNC | ACQUIRE_APERTURE,
					 USE_ALTERNATE_VA, LOCK_ENTIRE};
	UINT pages[2] = {0, WITNESS_BYTES / 4096 + (UINT)refusal_wide(r) % 4000000};
	D3DDDICB_LOCK args = {.hAllocation = r->witness[refusal_draw(r, WITNESSES)],
			      .pData = pages};

	switch (r->detail = refusal_draw(r, 7)) {
	case 0:
		args.hAllocation = refusal_bad_handle(r);
		args.Flags.Value = (UINT)refusal_wide(r);
		break;
	case 1:
		args.Flags.Value = 0x800u << refusal_draw(r, 21);
		break;
	case 2:
		args.Flags.Value = flags[refusal_draw(r, 4)];
		args.NumPages = 1;
		args.pPages = args.Flags.Value == LOCK_ENTIRE ? pages : NULL;
		break;
	case 3: /* no list */
		args.NumPages = 1 + (UINT)refusal_wide(r) % 1000;
		break;
	case 4: /* a page beyond the allocation */
		args.NumPages = 2;
		args.pPages = pages;
		break;
	case 5: /* more pages than any allocation has */
		args.NumPages = UINT32_MAX - refusal_draw(r, 1000);
		args.pPages = pages;
		break;
	default:
		args.hAllocation = r->offered; /* LOCK-25 */
	}
	HRESULT result = r->w.device.cb->pfnLockCb(r->w.device.handle, &args);
	if (args.pData)
		refusal_wrong(r, "a refused lock has an address", (uintptr_t)args.pData);
	return result;
}

/* A list with one bad entry, with none at all, or with too many. */
static uint32_t list_for(struct refusal *r, D3DKMT_HANDLE *list, const D3DKMT_HANDLE **given,
			 D3DKMT_HANDLE good)
{
	uint32_t count = refusal_bad_list(r, list, good);

	*given = list;
	switch (r->detail = refusal_draw(r, 4)) {
	case 0:
		*given = NULL;
		return 1 + (uint32_t)refusal_wide(r) % COUNT_MAX;
	case 1:
		return UINT32_MAX - refusal_draw(r, 100000);
	default:
		return count;
	}
}

static HRESULT bad_unlock(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	D3DDDICB_UNLOCK args = {0};

	args.NumAllocations = list_for(r, list, &args.phAllocations, r->witness[WITNESSES - 1]);
	if (refusal_draw(r, 4) == 0) { /* not locked */
		args.phAllocations = r->witness;
		args.NumAllocations = 1;
	}
	return r->w.device.cb->pfnUnlockCb(r->w.device.handle, &args);
}

static HRESULT bad_deallocate(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	D3DDDICB_DEALLOCATE args = {0};

	args.NumAllocations = list_for(r, list, &args.HandleList, r->witness[0]);
	if (refusal_draw(r, 4) == 0)
		args.hResource = (HANDLE)(uintptr_t)(refusal_wide(r) | 1);
	return r->w.device.cb->pfnDeallocateCb(r->w.device.handle, &args);
}

static HRESULT bad_offer(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	HANDLE resources[] = {r, list};
	D3DDDICB_OFFERALLOCATIONS args = {.Priority = 1 + refusal_draw(r, 4)};

	args.NumAllocations = list_for(r, list, &args.HandleList, r->witness[0]);
	switch (refusal_draw(r, 5)) {
	case 0:
		args.pResources = resources; /* both, or an invalid one */
		args.NumAllocations = 1 + args.NumAllocations % 2;
		break;
	case 1:
		args.HandleList = NULL;
		args.pResources = resources; /* none of them is a resource */
		args.NumAllocations = 1 + refusal_draw(r, 2);
		break;
	case 2:
		args.HandleList = &r->witness[WITNESSES - 1]; /* it is locked (OFR-08) */
		args.NumAllocations = 1;
		break;
	case 3:
		args.HandleList = r->witness;
		args.NumAllocations = 1;
		args.Priority = refusal_draw(r, 2) ? 0 : 5 + refusal_draw(r, UINT32_MAX - 5);
		break;
	default:
		break;
	}
	return r->w.device.cb->pfnOfferAllocationsCb(r->w.device.handle, &args);
}

static HRESULT bad_reclaim(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	HANDLE resources[] = {r, list};
	BOOL discarded[4] = {GUARD, GUARD, GUARD, GUARD};
	D3DDDICB_RECLAIMALLOCATIONS args = {.pDiscarded = refusal_draw(r, 2) ? discarded : NULL};

	args.NumAllocations = list_for(r, list, &args.HandleList, r->offered);
	if (refusal_draw(r, 4) == 0) {
		args.pResources = resources;
		args.NumAllocations = 1 + args.NumAllocations % 2;
	}
	HRESULT result = r->w.device.cb->pfnReclaimAllocationsCb(r->w.device.handle, &args);
	for (uint32_t i = 0; i < 4; i++)
		if (discarded[i] != GUARD)
			refusal_wrong(r, "a refused reclaim says something", i);
	return result;
}

static HRESULT bad_priority(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	static const UINT values[COUNT_MAX + 1];
	D3DDDICB_SETPRIORITY args = {.pPriorities = values};

	args.NumAllocations = list_for(r, list, &args.HandleList, r->witness[0]);
	if (refusal_draw(r, 4) == 0)
		args.hResource = r; /* handles and a resource, which is invalid */
	if (refusal_draw(r, 4) == 0)
		args.pPriorities = NULL;
	return r->w.device.cb->pfnSetPriorityCb(r->w.device.handle, &args);
}

static HRESULT bad_query(struct refusal *r)
{
	D3DKMT_HANDLE list[4];
	D3DDDI_RESIDENCYSTATUS status[4];
	D3DDDICB_QUERYRESIDENCY args = {.pResidencyStatus = status};

	memset(status, GUARD & 0xFF, sizeof(status));
	args.NumAllocations = list_for(r, list, &args.HandleList, r->witness[0]);
	if (refusal_draw(r, 4) == 0)
		args.hResource = r;
	if (refusal_draw(r, 4) == 0)
		args.pResidencyStatus = NULL;
	HRESULT result = r->w.device.cb->pfnQueryResidencyCb(r->w.device.handle, &args);
	for (uint32_t i = 0; i < 4; i++)
		if ((uint32_t)status[i] != GUARD)
			refusal_wrong(r, "a refused query says something", i);
	return result;
}

static HRESULT bad_allocate(struct refusal *r)
{
	D3DDDI_ALLOCATIONINFO info[3] = {{0}};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1 + refusal_draw(r, 3),
				  .pAllocationInfo = info};
	uint32_t index = refusal_draw(r, args.NumAllocations);

	switch (r->detail = refusal_draw(r, 5)) {
	case 0:
		args.pAllocationInfo = NULL;
		args.NumAllocations = 1 + (UINT)refusal_wide(r) % 1000000;
		break;
	case 1:
		args.NumAllocations = UINT32_MAX - refusal_draw(r, 1000000);
		break;
	case 2: /* private data without a pointer */
		info[index].PrivateDriverDataSize = 1 + (UINT)refusal_wide(r) % 100000;
		break;
	case 3:
		info[index].pPrivateDriverData = info;
		info[index].PrivateDriverDataSize = UINT32_MAX - refusal_draw(r, 1000000);
		break;
	default:
		info[index].Flags.Value = 2u << refusal_draw(r, 31);
	}
	HRESULT result = r->w.device.cb->pfnAllocateCb(r->w.device.handle, &args);
	for (uint32_t i = 0; i < 3; i++)
		if (info[i].hAllocation)
			refusal_wrong(r, "a refused create has a handle", i);
	return result;
}

static HRESULT bad_context(struct refusal *r)
{
	D3DDDICB_CREATECONTEXT args = {.NodeOrdinal = refusal_draw(r, 2)};
	D3DDDICB_DESTROYCONTEXT end = {.hContext = (HANDLE)(uintptr_t)refusal_wide(r)};

	switch (r->detail = refusal_draw(r, 4)) {
	case 0:
		args.NodeOrdinal = 2 + (UINT)refusal_wide(r) % 1000000;
		break;
	case 1:
		args.PrivateDriverDataSize = 1 + (UINT)refusal_wide(r) % 1000000;
		break;
	case 2: /* an engine affinity beyond the adapters of the link */
		args.EngineAffinity = 2u << refusal_draw(r, 31);
		break;
	default:
		return r->w.device.cb->pfnDestroyContextCb(r->w.device.handle, &end);
	}
	return r->w.device.cb->pfnCreateContextCb(r->w.device.handle, &args);
}

static HRESULT bad_render(struct refusal *r)
{
	struct client_context *c = &r->w.context;

	world_use(c, r->witness[0]);
	world_use(c, r->witness[1]);
	D3DDDICB_RENDER args = world_render_args(c);
	D3DDDI_ALLOCATIONLIST *entry = &c->c.pAllocationList[refusal_draw(r, 2)];
	switch (r->detail = refusal_draw(r, 8)) {
	case 0:
		args.CommandLength = c->c.CommandBufferSize + 1 + (UINT)refusal_wide(r) % 1000000;
		break;
	case 1:
		args.CommandOffset = c->c.CommandBufferSize + 1 + (UINT)refusal_wide(r) % 1000000;
		break;
	case 2:
		args.NumAllocations = c->c.AllocationListSize + 1 + (UINT)refusal_wide(r) % 1000000;
		break;
	case 3:
		args.NumPatchLocations =
			c->c.PatchLocationListSize + 1 + (UINT)refusal_wide(r) % 1000000;
		break;
	case 4:
		entry->hAllocation = refusal_bad_handle(r);
		if (!entry->hAllocation) /* a NULL entry, which the list may contain */
			entry->hAllocation = r->stale;
		break;
	case 5:
		entry->hAllocation = r->offered;
		break;
	case 6:
		entry->Value |= 0x20u << refusal_draw(r, 27);
		break;
	default: /* NULL would name the first context (DMA-09) */
		args.hContext = (HANDLE)(uintptr_t)(refusal_wide(r) | 1);
	}
	return world_render(c, &args);
}

static HRESULT no_arguments(struct refusal *r)
{
	const D3DDDI_DEVICECALLBACKS *cb = r->w.device.cb;
	HANDLE device = r->w.device.handle;
	uint64_t nothing[64] = {0};
	D3DDDICB_LOCK lock = {.hAllocation = r->witness[0]};

	switch (r->detail = refusal_draw(r, 6)) {
	case 0:
		return cb->pfnAllocateCb(device, NULL);
	case 1:
		return cb->pfnRenderCb(device, NULL);
	case 2:
		return cb->pfnSetPriorityCb(device, NULL);
	case 3:
		return cb->pfnLockCb(NULL, &lock);
	case 4:
		return cb->pfnLockCb(nothing, &lock);
	default:
		return cb->pfnLockCb((HANDLE)(uintptr_t)refusal_wide(r), &lock);
	}
}

static void step(struct refusal *r)
{
	static const struct {
		const char *name;
		HRESULT (*call)(struct refusal *r);
	} calls[] = {
		{"lock", bad_lock},
		{"unlock", bad_unlock},
		{"deallocate", bad_deallocate},
		{"offer", bad_offer},
		{"reclaim", bad_reclaim},
		{"set priority", bad_priority},
		{"query residency", bad_query},
		{"allocate", bad_allocate},
		{"context", bad_context},
		{"render", bad_render},
		{"no arguments", no_arguments},
	};
	uint32_t which = refusal_draw(r, sizeof(calls) / sizeof(calls[0]));

	r->what = calls[which].name;
	refusal_expect(r, calls[which].call(r));
}

const struct refusal_program refusal_program = {"fuzz_calls", step};
