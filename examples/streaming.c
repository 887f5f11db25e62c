/* SPDX-License-Identifier: MIT */
/*
 * How a user-mode driver streams vertices: the code sample of the pfnLockCb page as a program.
 *
 * Each draw locks the vertex buffer with Discard, so that the program can write while the GPU still
 * reads the vertices of the last draw. The video memory manager may return another handle, which
 * names another instance of the allocation; the driver uses that handle from then on. It may also
 * refuse: the miniport allows three instances here, and all of them may be referenced by a command
 * buffer that is not submitted yet. The driver then submits it and locks again with
 * NoExistingReference. A "draw" copies the vertices to its own part of a render target, so that
 * every draw can be verified at the end.
 */
#include <d3dumddi.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERTEX_BYTES 4096u
#define DRAWS        24u
#define INSTANCES    3u
#define HANDLES      64u

struct umd {
	const D3DDDI_DEVICECALLBACKS *runtime;
	HANDLE device; /* the runtime's handle */
	D3DDDICB_CREATECONTEXT context;
	D3DKMT_HANDLE vertices, target;
	/* the command buffer that is being filled */
	uint32_t command_bytes, list_length;
	/* for the output of the program */
	uint32_t flushes;
	D3DKMT_HANDLE handles[HANDLES];
};

static void check(HRESULT result, const char *what)
{
	if (SUCCEEDED(result))
		return;
	fprintf(stderr, "%s failed with 0x%08" PRIx32 "\n", what, (uint32_t)result);
	exit(1);
}

static D3DKMT_HANDLE allocate(const struct umd *umd, uint64_t bytes, uint32_t renaming_limit)
{
	struct softgpu_allocation request = {.version = SOFTGPU_ALLOCATION_VERSION,
					     .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					     .size_bytes = bytes,
					     .renaming_limit = renaming_limit};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &request,
				      .PrivateDriverDataSize = sizeof(request)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	check(umd->runtime->pfnAllocateCb(umd->device, &args), "pfnAllocateCb");
	return info.hAllocation;
}

/* This is FlushAccumulatedCommandBufferToKernel of the page. */
static void flush(struct umd *umd)
{
	D3DDDICB_RENDER render = {.hContext = umd->context.hContext,
				  .CommandLength = umd->command_bytes,
				  .NumAllocations = umd->list_length};

	check(umd->runtime->pfnRenderCb(umd->device, &render), "pfnRenderCb");
	umd->context.pCommandBuffer = render.pNewCommandBuffer;
	umd->context.CommandBufferSize = render.NewCommandBufferSize;
	umd->context.pAllocationList = render.pNewAllocationList;
	umd->context.AllocationListSize = render.NewAllocationListSize;
	umd->command_bytes = umd->list_length = 0;
}

/*
 * This is ProgramSurfaceBaseAddressInCurrentCommandBuffer: the driver names the allocation, and the
 * miniport writes the address.
 */
static uint32_t reference(struct umd *umd, D3DKMT_HANDLE allocation, UINT write)
{
	umd->context.pAllocationList[umd->list_length] =
		(D3DDDI_ALLOCATIONLIST){.hAllocation = allocation, .WriteOperation = write};
	return umd->list_length++;
}

static void draw(struct umd *umd, uint32_t number)
{
	struct softgpu_copy copy = {
		.command = {.opcode = SOFTGPU_COPY, .size_bytes = sizeof(copy)},
		.source = {.allocation = reference(umd, umd->vertices, 0)},
		.destination = {.allocation = reference(umd, umd->target, 1),
				.offset = (uint64_t)number * VERTEX_BYTES},
		.length = VERTEX_BYTES,
	};

	memcpy((char *)umd->context.pCommandBuffer + umd->command_bytes, &copy, sizeof(copy));
	umd->command_bytes += (uint32_t)sizeof(copy);
}

static uint32_t instance_number(struct umd *umd, D3DKMT_HANDLE handle)
{
	uint32_t i = 0;

	while (i < HANDLES - 1 && umd->handles[i] && umd->handles[i] != handle)
		i++;
	umd->handles[i] = handle;
	return i;
}

/* The code sample. Returns the address for the program's writes. */
static void *lock_for_new_content(struct umd *umd, uint32_t number)
{
	D3DDDICB_LOCK lock = {.hAllocation = umd->vertices, .Flags.Discard = 1};
	HRESULT result = umd->runtime->pfnLockCb(umd->device, &lock);
	const char *how = "";

	if (FAILED(result)) {
		flush(umd);
		umd->flushes++;
		how = ", after a flush";
		lock.hAllocation = umd->vertices;
		lock.Flags.Value = 0;
		lock.Flags.Discard = 1;
		lock.Flags.NoExistingReference = 1;
		check(umd->runtime->pfnLockCb(umd->device, &lock), "pfnLockCb");
	}
	printf("draw %2" PRIu32 ": 0x%08" PRIx32 " (instance %" PRIu32 ")%s\n", number,
	       lock.hAllocation, instance_number(umd, lock.hAllocation), how);
	umd->vertices = lock.hAllocation;
	return lock.pData;
}

static void unlock(struct umd *umd, D3DKMT_HANDLE allocation)
{
	D3DDDICB_UNLOCK args = {.NumAllocations = 1, .phAllocations = &allocation};

	check(umd->runtime->pfnUnlockCb(umd->device, &args), "pfnUnlockCb");
}

static uint32_t stream(struct umd *umd)
{
	D3DDDICB_LOCK lock;
	uint32_t wrong = 0;

	for (uint32_t number = 0; number < DRAWS; number++) {
		memset(lock_for_new_content(umd, number), (int)number + 1, VERTEX_BYTES);
		unlock(umd, umd->vertices);
		draw(umd, number);
	}
	flush(umd);
	lock = (D3DDDICB_LOCK){.hAllocation = umd->target, .Flags.ReadOnly = 1};
	check(umd->runtime->pfnLockCb(umd->device, &lock), "pfnLockCb"); /* waits for the GPU */
	for (uint32_t i = 0; i < DRAWS * VERTEX_BYTES; i++)
		wrong += ((const uint8_t *)lock.pData)[i] != i / VERTEX_BYTES + 1;
	unlock(umd, umd->target);
	return wrong;
}

static uint32_t run(struct vidmm_adapter *adapter, struct vidmm_process *process)
{
	struct vidmm_device *device;
	struct umd umd = {0};
	uint32_t wrong, instances = 0;

	check(vidmm_device_create(process, adapter, &device), "vidmm_device_create");
	umd.runtime = vidmm_device_callbacks(device);
	umd.device = vidmm_device_handle(device);
	check(umd.runtime->pfnCreateContextCb(umd.device, &umd.context), "pfnCreateContextCb");
	umd.vertices = allocate(&umd, VERTEX_BYTES, INSTANCES);
	umd.target = allocate(&umd, (uint64_t)DRAWS * VERTEX_BYTES, 0);
	wrong = stream(&umd);
	while (umd.handles[instances])
		instances++;
	printf("%u draws, %" PRIu32 " instances, %" PRIu32
	       " flushes because no instance was free, %" PRIu32 " bytes wrong\n",
	       DRAWS, instances, umd.flushes, wrong);
	vidmm_device_destroy(device);
	return wrong || instances > INSTANCES || !umd.flushes;
}

int main(void)
{
	const uint64_t vram_bytes = 1024 * 1024;
	const struct vidmm_host_options host_options = {.struct_size = sizeof(host_options),
							.kind = VIDMM_HOST_LINUX};
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &vram_bytes,
						      .bar_count = 1};
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	uint32_t bad;

	check(vidmm_host_create(&host_options, &host), "vidmm_host_create");
	check(vidmm_adapter_start(host, &options, &adapter), "vidmm_adapter_start");
	check(vidmm_process_open(host, "streaming", &process), "vidmm_process_open");
	bad = run(adapter, process);
	vidmm_process_close(process);
	vidmm_adapter_stop(adapter);
	vidmm_host_destroy(host);
	return bad ? 1 : 0;
}
