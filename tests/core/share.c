/* SPDX-License-Identifier: MIT */
/*
 * Sharing in wide runs, through D3DKMT functions: one process creates and locks, the other opens
 * and copies.
 */
#include "actor.h"

#define SHARED_BYTES 8192u

struct side {
	struct vidmm_process *process;
	D3DKMT_HANDLE adapter, device;
	D3DKMT_CREATECONTEXT context;
	D3DKMT_HANDLE allocation[3]; /* two shared allocations, one private */
	D3DKMT_HANDLE global;
};

static bool did(struct actor *a, NTSTATUS status, const char *what)
{
	return status == STATUS_SUCCESS ? true : differs(a, what, (uint32_t)status);
}

static bool open_side(struct actor *a, struct side *s)
{
	D3DKMT_OPENADAPTERFROMLUID open = {.AdapterLuid = a->run->luid};

	vidmm_d3dkmt_enter(s->process);
	if (!did(a, D3DKMTOpenAdapterFromLuid(&open), "open adapter"))
		return false;
	D3DKMT_CREATEDEVICE device = {.hAdapter = s->adapter = open.hAdapter};
	if (!did(a, D3DKMTCreateDevice(&device), "create D3DKMT device"))
		return false;
	s->device = device.hDevice;
	s->context = (D3DKMT_CREATECONTEXT){.hDevice = s->device, .NodeOrdinal = draw(a, 2)};
	return did(a, D3DKMTCreateContext(&s->context), "create D3DKMT context");
}

static bool close_side(struct actor *a, struct side *s)
{
	const D3DKMT_DESTROYCONTEXT context = {.hContext = s->context.hContext};
	const D3DKMT_DESTROYDEVICE device = {.hDevice = s->device};
	const D3DKMT_CLOSEADAPTER adapter = {.hAdapter = s->adapter};

	vidmm_d3dkmt_enter(s->process);
	return (draw(a, 2) || did(a, D3DKMTDestroyContext(&context), "destroy D3DKMT context")) &&
	       did(a, D3DKMTDestroyDevice(&device), "destroy D3DKMT device") &&
	       did(a, D3DKMTCloseAdapter(&adapter), "close adapter");
}

static bool allocate(struct actor *a, struct side *s, uint32_t count, bool shared)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = SHARED_BYTES,
					  .segment_set = draw(a, 4)};
	D3DDDI_ALLOCATIONINFO info[2] = {
		{.pPrivateDriverData = &spec, .PrivateDriverDataSize = sizeof(spec)},
		{.pPrivateDriverData = &spec, .PrivateDriverDataSize = sizeof(spec)}};
	D3DKMT_CREATEALLOCATION args = {.hDevice = s->device,
					.NumAllocations = count,
					.pAllocationInfo = info,
					.Flags.CreateResource = shared,
					.Flags.CreateShared = shared};

	if (!did(a, D3DKMTCreateAllocation(&args), "create D3DKMT allocation"))
		return false;
	s->global = args.hGlobalShare;
	for (uint32_t i = 0; i < count; i++)
		s->allocation[shared ? i : 2] = info[i].hAllocation;
	return true;
}

static bool open_resource(struct actor *a, struct side *s, D3DKMT_HANDLE global)
{
	D3DDDI_OPENALLOCATIONINFO info[2] = {0};
	char total[2 * sizeof(struct softgpu_allocation)];
	D3DKMT_OPENRESOURCE args = {.hDevice = s->device,
				    .hGlobalShare = global,
				    .NumAllocations = 2,
				    .pOpenAllocationInfo = info,
				    .pTotalPrivateDriverDataBuffer = total,
				    .TotalPrivateDriverDataBufferSize = sizeof(total)};

	if (!did(a, D3DKMTOpenResource(&args), "open resource"))
		return false;
	s->allocation[0] = info[0].hAllocation;
	s->allocation[1] = info[1].hAllocation;
	return true;
}

static bool copy(struct actor *a, struct side *s, uint32_t from, uint32_t to)
{
	struct softgpu_copy command = {
		.command = {SOFTGPU_COPY, 0, sizeof(command)},
		.source.allocation = 0,
		.destination.allocation = 1,
		.length = SHARED_BYTES,
	};
	D3DKMT_CREATECONTEXT *c = &s->context;
	D3DKMT_RENDER args = {
		.hContext = c->hContext, .CommandLength = sizeof(command), .AllocationCount = 2};

	vidmm_d3dkmt_enter(s->process);
	memcpy(c->pCommandBuffer, &command, sizeof(command));
	c->pAllocationList[0] = (D3DDDI_ALLOCATIONLIST){.hAllocation = s->allocation[from]};
	c->pAllocationList[1] =
		(D3DDDI_ALLOCATIONLIST){.hAllocation = s->allocation[to], .WriteOperation = 1};
	NTSTATUS status = D3DKMTRender(&args);
	c->pCommandBuffer = args.pNewCommandBuffer;
	c->pAllocationList = args.pNewAllocationList;
	return did(a, status, "D3DKMT render");
}

/* Writes the bytes, or compares them. */
static bool look(struct actor *a, struct side *s, uint32_t index, unsigned char first, bool write)
{
	D3DKMT_LOCK args = {.hDevice = s->device, .hAllocation = s->allocation[index]};
	const D3DKMT_UNLOCK end = {
		.hDevice = s->device, .NumAllocations = 1, .phAllocations = &s->allocation[index]};

	vidmm_d3dkmt_enter(s->process);
	if (!did(a, D3DKMTLock(&args), "D3DKMT lock"))
		return false;
	unsigned char *bytes = args.pData;
	for (uint32_t i = 0; i < SHARED_BYTES; i += 16) {
		if (write)
			bytes[i] = (unsigned char)(first + i / 16);
		else if (bytes[i] != (unsigned char)(first + i / 16))
			return differs(a, "a shared byte differs, allocation << 32 | offset",
				       (uint64_t)index << 32 | i);
	}
	return did(a, D3DKMTUnlock(&end), "D3DKMT unlock");
}

static bool use_both(struct actor *a, struct side *owner, struct side *other)
{
	unsigned char first = (unsigned char)draw(a, 256);

	if (!open_side(a, owner) || !allocate(a, owner, 2, true) ||
	    !look(a, owner, 0, first, true) || !open_side(a, other) ||
	    !allocate(a, other, 1, false) || !open_resource(a, other, owner->global))
		return false;
	/* A packet of the opening process copies between the owner's allocation and its own. */
	return copy(a, other, 0, 1) && look(a, owner, 1, first, false) && copy(a, other, 1, 2) &&
	       look(a, other, 2, first, false) &&
	       /*
	        * The owner destroys its handles; the shared allocation stays for the process that
	        * has it open.
	        */
	       close_side(a, owner) && copy(a, other, 0, 2) && look(a, other, 2, first, false) &&
	       close_side(a, other);
}

bool wide_share(struct actor *a)
{
	struct side owner = {.process = a->run->process[draw(a, PROCESSES)]};
	struct side other = {.process = a->run->process[draw(a, PROCESSES)]};
	bool good = use_both(a, &owner, &other);

	vidmm_d3dkmt_enter(NULL);
	return good;
}
