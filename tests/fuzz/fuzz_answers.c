/* SPDX-License-Identifier: MIT */
/*
 * fuzz_answers [SECONDS [SEED]]: a miniport whose DxgkDdiCreateAllocation gives invalid answers,
 * fails, or leaves the handle out. The creation fails and all its effects are undone; no other
 * process is affected.
 */
#include "refusal.h"

#include <string.h>

enum {
	CPU_VISIBLE = 0x1,
	PERMANENT = 0x2,
	CACHED = 0x4,
	PROTECTED = 0x8,
	EXISTING = 0x10,
	EXISTING_KERNEL = 0x20,
	USE_ALTERNATE_VA = 0x400,
	LINKS = 0x3000,
	HISTORY_BUFFER = 0x4000,
	ITEMS = 4,
	PINNED = 0x300, /* Overlay, Capture: placing such an allocation may evict others */
	LARGER_THAN_ALL = 10,
	FORGOTTEN = 14,
	FAILING = 15,
	ANYTHING = 16
};

struct spoiling {
	struct refusal *r;
	uint32_t index; /* of the entry that gets the invalid answer */
	uint32_t kind;
};

static void spoil_flags(struct refusal *r, uint32_t kind, DXGK_ALLOCATIONINFO *info)
{
	static const uint32_t bad[] = {PERMANENT,
				       CACHED,
				       PROTECTED | PERMANENT | CPU_VISIBLE,
				       PROTECTED | EXISTING,
				       EXISTING | PERMANENT | CPU_VISIBLE,
				       EXISTING | EXISTING_KERNEL,
				       EXISTING_KERNEL | PERMANENT | CPU_VISIBLE,
				       EXISTING, /* although the client passed no pSystemMem */
				       EXISTING_KERNEL, /* likewise */
				       USE_ALTERNATE_VA,
				       LINKS,
				       HISTORY_BUFFER};

	if (kind)
		info->Flags.Value = bad[refusal_draw(r, sizeof(bad) / sizeof(bad[0]))];
	else
		info->Flags.Value |= 0x8000u << refusal_draw(r, 17);
}

static void spoil_segments(struct refusal *r, uint32_t kind, DXGK_ALLOCATIONINFO *info)
{
	switch (kind) {
	case 0:
		info->SupportedReadSegmentSet = 0;
		break;
	case 1:
		info->SupportedWriteSegmentSet = 0;
		break;
	case 2:
		info->SupportedReadSegmentSet |= 4u << refusal_draw(r, 30);
		break;
	case 3:
		info->SupportedWriteSegmentSet |= 4u << refusal_draw(r, 30);
		break;
	case 4:
		info->EvictionSegmentSet = 1u | refusal_draw(r, UINT32_MAX);
		break;
	default: /* a preferred segment that does not exist */
		info->PreferredSegment.Value = (3 + refusal_draw(r, 29)) << 6 * refusal_draw(r, 5);
	}
}

static void spoil_figures(struct refusal *r, uint32_t kind, DXGK_ALLOCATIONINFO *info)
{
	switch (kind) {
	case 0:
		info->Size = 0;
		break;
	case 1:
		info->Size = SIZE_MAX - refusal_draw(r, 4095);
		break;
	case 2: /* larger than all memory, which no rule forbids */
		info->Flags.Value |= CPU_VISIBLE;
		info->Size = (SIZE_T)1 << (40 + refusal_draw(r, 24));
		break;
	case 3:
		info->Alignment = 3 + 4 * refusal_draw(r, 1u << 29);
		break;
	case 4:
		info->AllocationPriority = 0;
		break;
	default:
		info->PreferredSegment.Value = 1;
		info->HintedBank.Value = 1 + REFUSAL_BANKS + refusal_draw(r, 127 - REFUSAL_BANKS);
	}
}

/* The scripted miniport keeps the object, but vidmm never passes it a handle that was left out. */
static void forget_handle(struct refusal *r, DXGK_ALLOCATIONINFO *info)
{
	info->hAllocation = NULL;
	r->w.m->live_allocations--;
}

/* Random answers, some of which are valid. */
static void say_anything(struct refusal *r, DXGK_ALLOCATIONINFO *info)
{
	info->Alignment = (UINT)refusal_wide(r);
	info->Size = (SIZE_T)refusal_wide(r);
	info->PitchAlignedSize = (SIZE_T)refusal_wide(r);
	info->HintedBank.Value = (UINT)refusal_wide(r);
	info->PreferredSegment.Value = (UINT)refusal_wide(r);
	info->SupportedReadSegmentSet = (UINT)refusal_wide(r) % 5;
	info->SupportedWriteSegmentSet = (UINT)refusal_wide(r) % 5;
	info->EvictionSegmentSet = (UINT)refusal_wide(r) % 4;
	info->MaximumRenamingListLength = (UINT)refusal_wide(r);
	info->AllocationPriority = (UINT)refusal_wide(r);
	info->Flags.Value = (UINT)refusal_wide(r) & ~(UINT)PINNED;
}

static void answer(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	const struct spoiling *s = context;
	DXGKARG_CREATEALLOCATION *args = call->args;

	(void)m;
	if (call->ddi != VIDMM_DDI_CREATE_ALLOCATION || call->forced)
		return;
	DXGK_ALLOCATIONINFO *info = &args->pAllocationInfo[s->index];

	if (s->kind < 2)
		spoil_flags(s->r, s->kind, info);
	else if (s->kind < 8)
		spoil_segments(s->r, s->kind - 2, info);
	else if (s->kind < 14)
		spoil_figures(s->r, s->kind - 8, info);
	else if (s->kind == FORGOTTEN)
		forget_handle(s->r, info);
	else if (s->kind == ANYTHING)
		say_anything(s->r, info);
}

static void fail_a_call(struct refusal *r)
{
	static const NTSTATUS statuses[] = {STATUS_UNSUCCESSFUL, STATUS_NO_MEMORY,
					    STATUS_INVALID_PARAMETER, (NTSTATUS)0xC01E0113,
					    (NTSTATUS)0x80000005};
	enum vidmm_ddi ddi =
		refusal_draw(r, 2) ? VIDMM_DDI_CREATE_ALLOCATION : VIDMM_DDI_OPEN_ALLOCATION;

	scripted_fail(r->w.m, ddi, statuses[refusal_draw(r, 5)], 1);
}

/* The creation succeeded. Missing memory shows only when the allocation is placed. */
static void end_again(struct refusal *r, D3DDDICB_ALLOCATE *args, uint32_t index, bool too_large)
{
	D3DKMT_HANDLE handles[ITEMS], handle = args->pAllocationInfo[index].hAllocation;
	struct client_device *device = &r->w.device;
	D3DDDICB_DEALLOCATE end = {.NumAllocations = args->NumAllocations, .HandleList = handles};

	if (too_large && client_try_lock(device, &handle, 0, NULL) != E_OUTOFMEMORY)
		refusal_wrong(r, "a lock of more than there is", index);
	if (args->hResource)
		end = (D3DDDICB_DEALLOCATE){.hResource = args->hResource};
	for (uint32_t i = 0; i < args->NumAllocations; i++)
		handles[i] = args->pAllocationInfo[i].hAllocation;
	if (device->cb->pfnDeallocateCb(device->handle, &end) != S_OK)
		refusal_wrong(r, "cannot deallocate it", index);
}

static void create(struct refusal *r)
{
	struct spoiling s = {.r = r, .kind = refusal_draw(r, ANYTHING + 1)};
	D3DDDI_ALLOCATIONINFO info[ITEMS] = {{0}};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1 + refusal_draw(r, ITEMS),
				  .pAllocationInfo = info,
				  .hResource = refusal_draw(r, 2) ? r : NULL};

	s.index = refusal_draw(r, args.NumAllocations);
	r->what = "create";
	r->detail = s.kind;
	if (s.kind == FAILING)
		fail_a_call(r);
	r->w.m->hook_context = &s;
	r->w.m->hook = answer;
	HRESULT result = r->w.device.cb->pfnAllocateCb(r->w.device.handle, &args);
	r->w.m->hook = NULL;
	if (result == S_OK && (s.kind == LARGER_THAN_ALL || s.kind == ANYTHING)) {
		end_again(r, &args, s.index, s.kind == LARGER_THAN_ALL);
		return;
	}
	if (result >= 0)
		refusal_wrong(r, "the miniport's answer was taken", s.index);
	if (s.kind != FAILING)
		refusal_expect(r, result);
	if (result == E_INVALIDARG && s.kind != FAILING && !r->w.client.findings)
		refusal_wrong(r, "refused without a finding", s.index);
	for (uint32_t i = 0; i < ITEMS; i++)
		if (info[i].hAllocation)
			refusal_wrong(r, "a handle came out", i);
}

const struct refusal_program refusal_program = {"fuzz_answers", create};
