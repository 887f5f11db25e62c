/* SPDX-License-Identifier: MIT */
/*
 * A D3DKMT program as one is written for Linux: it loads libdxcore.so, takes the first adapter, and
 * has no line of code about vidmm. It fills buffers with the GPU and reads them with the CPU. With
 * less video memory than buffers, each use of a buffer evicts another one:
 *
 *	vidmm run --set Model=wddm1 --bar 16M -- pressure 16 4
 *
 * The memory manager decides what is resident, so the adapter must be one of WDDM 1.x. Further
 * rounds fill and read every buffer again; `vidmm run --policy` decides which ones that evicts.
 */
#include <d3dkmthk.h>
#include <vidmm/softgpu.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS_MAX 256u
#define PATTERN     0x5EED0000u

/* The D3DKMT functions that the program uses. */
#define FUNCTIONS(F)                                 \
	F(EnumAdapters2, D3DKMT_ENUMADAPTERS2)       \
	F(CreateDevice, D3DKMT_CREATEDEVICE)         \
	F(DestroyDevice, const D3DKMT_DESTROYDEVICE) \
	F(CreateContext, D3DKMT_CREATECONTEXT)       \
	F(CreateAllocation, D3DKMT_CREATEALLOCATION) \
	F(Render, D3DKMT_RENDER)                     \
	F(Lock, D3DKMT_LOCK)                         \
	F(Unlock, const D3DKMT_UNLOCK)               \
	F(CloseAdapter, const D3DKMT_CLOSEADAPTER)

#define DECLARE(name, type) static NTSTATUS(APIENTRY *name)(type *);
FUNCTIONS(DECLARE)
#undef DECLARE

static void check(NTSTATUS status, const char *what)
{
	if (NT_SUCCESS(status))
		return;
	fprintf(stderr, "pressure: %s failed with 0x%08" PRIx32 "\n", what, (uint32_t)status);
	exit(1);
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "pressure: %s\n", dlerror());
		exit(1);
	}
#define LOAD(name, type)                                       \
	{                                                      \
		void *symbol = dlsym(library, "D3DKMT" #name); \
                                                               \
		if (!symbol)                                   \
			check(STATUS_NOT_SUPPORTED, #name);    \
		memcpy(&name, &symbol, sizeof(symbol));        \
	}
	FUNCTIONS(LOAD)
#undef LOAD
}

static D3DKMT_HANDLE open_adapter(void)
{
	D3DKMT_ADAPTERINFO adapters[16] = {0};
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 16, .pAdapters = adapters};

	check(EnumAdapters2(&list), "EnumAdapters2");
	if (!list.NumAdapters)
		check(STATUS_NOT_FOUND, "finding an adapter");
	return adapters[0].hAdapter;
}

static D3DKMT_HANDLE allocate(D3DKMT_HANDLE device, uint64_t bytes)
{
	struct softgpu_allocation request = {.version = SOFTGPU_ALLOCATION_VERSION,
					     .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					     .segment_set = 1,
					     .size_bytes = bytes};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &request,
				      .PrivateDriverDataSize = sizeof(request)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo = &info};

	check(CreateAllocation(&args), "CreateAllocation");
	return info.hAllocation;
}

/* Has the GPU fill the buffer with a pattern. */
static void fill(D3DKMT_CREATECONTEXT *context, D3DKMT_HANDLE buffer, uint64_t bytes,
		 uint32_t pattern)
{
	const struct softgpu_fill command = {
		.command = {.opcode = SOFTGPU_FILL, .size_bytes = sizeof(command)},
		.length = bytes,
		.pattern = pattern,
	};
	D3DKMT_RENDER args = {.hContext = context->hContext,
			      .CommandLength = sizeof(command),
			      .AllocationCount = 1};

	memcpy(context->pCommandBuffer, &command, sizeof(command));
	context->pAllocationList[0] =
		(D3DDDI_ALLOCATIONLIST){.hAllocation = buffer, .WriteOperation = 1};
	check(Render(&args), "Render");
	context->pCommandBuffer = args.pNewCommandBuffer;
	context->pAllocationList = args.pNewAllocationList;
}

/* Returns the number of wrong words. */
static uint64_t verify(D3DKMT_HANDLE device, D3DKMT_HANDLE buffer, uint64_t bytes, uint32_t pattern)
{
	D3DKMT_LOCK lock = {.hDevice = device, .hAllocation = buffer, .Flags.ReadOnly = 1};
	uint64_t wrong = 0;

	check(Lock(&lock), "Lock");
	for (uint64_t i = 0; i < bytes / sizeof(uint32_t); i++)
		wrong += ((const uint32_t *)lock.pData)[i] != pattern;
	const D3DKMT_UNLOCK unlock = {
		.hDevice = device, .NumAllocations = 1, .phAllocations = &lock.hAllocation};

	check(Unlock(&unlock), "Unlock");
	return wrong;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 16;
	uint64_t bytes = (argc > 2 ? (uint64_t)atoi(argv[2]) : 4) << 20, wrong = 0;
	uint32_t rounds = argc > 4 ? (uint32_t)atoi(argv[4]) : 1;
	D3DKMT_HANDLE buffers[BUFFERS_MAX];

	if (!count || count > BUFFERS_MAX || !bytes || !rounds || rounds > UINT32_MAX / count) {
		fprintf(stderr, "usage: pressure [BUFFERS [MIB [LIBRARY [ROUNDS]]]]\n");
		return 2;
	}
	load(argc > 3 ? argv[3] : "libdxcore.so");
	D3DKMT_HANDLE adapter = open_adapter();
	D3DKMT_CREATEDEVICE device = {.hAdapter = adapter};

	check(CreateDevice(&device), "CreateDevice");
	D3DKMT_CREATECONTEXT context = {.hDevice = device.hDevice};

	check(CreateContext(&context), "CreateContext");
	for (uint32_t i = 0; i < count; i++) {
		buffers[i] = allocate(device.hDevice, bytes);
		fill(&context, buffers[i], bytes, PATTERN + i);
	}
	for (uint32_t i = 0; i < count; i++)
		wrong += verify(device.hDevice, buffers[i], bytes, PATTERN + i);
	for (uint32_t i = count; i < rounds * count; i++) {
		fill(&context, buffers[i % count], bytes, PATTERN + i);
		wrong += verify(device.hDevice, buffers[i % count], bytes, PATTERN + i);
	}
	printf("%u buffers of %" PRIu64 " MiB, %" PRIu64 " words wrong\n", count, bytes >> 20,
	       wrong);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = device.hDevice};
	const D3DKMT_CLOSEADAPTER close = {.hAdapter = adapter};

	check(DestroyDevice(&end), "DestroyDevice");
	check(CloseAdapter(&close), "CloseAdapter");
	return wrong != 0;
}
