/* SPDX-License-Identifier: MIT */
/*
 * A program for a GPU of WDDM 2.x: it loads libdxcore.so and has no line of code about vidmm. It
 * enumerates adapters by DXCore and by D3DKMT, and opens the first one. It maps two buffers at GPU
 * virtual addresses, makes them resident, has the GPU copy one to the other, waits for a monitored
 * fence on the CPU, and reads the copy:
 *
 *	vidmm run -- gpu_copy
 *
 * gpu_copy.cpp is the same program in C++, with directx/dxcore.h of Debian's directx-headers-dev.
 * That header cannot be included in C: it has templates, and dxcore_interface.h declares nothing
 * there. So a C program includes <dxcore.h> of vidmm. Base types (HRESULT, LUID, GUID) are those of
 * wsl/winadapter.h of the same package if it is in the include path, otherwise those of vidmm.
 */
#include <d3dkmthk.h>
#include <dxcore.h>
#include <vidmm/softgpu.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES   4096u
#define BUFFER_BYTES ((uint64_t)1 << 20)
#define WORD         0x600DC0DEu

/* The D3DKMT functions that the program uses. */
#define FUNCTIONS(F)                                                                             \
	F(EnumAdapters2, D3DKMT_ENUMADAPTERS2)                                                   \
	F(OpenAdapterFromLuid, D3DKMT_OPENADAPTERFROMLUID)                                       \
	F(CreateDevice, D3DKMT_CREATEDEVICE)                                                     \
	F(DestroyDevice, const D3DKMT_DESTROYDEVICE)                                             \
	F(CloseAdapter, const D3DKMT_CLOSEADAPTER)                                               \
	F(CreatePagingQueue, D3DKMT_CREATEPAGINGQUEUE)                                           \
	F(CreateContextVirtual, D3DKMT_CREATECONTEXTVIRTUAL)                                     \
	F(CreateSynchronizationObject2, D3DKMT_CREATESYNCHRONIZATIONOBJECT2)                     \
	F(CreateAllocation2, D3DKMT_CREATEALLOCATION)                                            \
	F(MapGpuVirtualAddress, D3DDDI_MAPGPUVIRTUALADDRESS)                                     \
	F(MakeResident, D3DDDI_MAKERESIDENT)                                                     \
	F(SubmitCommand, const D3DKMT_SUBMITCOMMAND)                                             \
	F(WaitForSynchronizationObjectFromCpu, const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU) \
	F(Lock2, D3DKMT_LOCK2)                                                                   \
	F(Unlock2, const D3DKMT_UNLOCK2)

#define DECLARE(name, type) static NTSTATUS(APIENTRY *name)(type *);
FUNCTIONS(DECLARE)
#undef DECLARE

static HRESULT(APIENTRY *CreateAdapterFactory)(const GUID *riid, void **factory);

/* Of a D3DKMT function, or of DXCore: NTSTATUS and HRESULT are negative if the call has failed. */
static void check(int32_t status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "gpu_copy: %s failed with 0x%08" PRIx32 "\n", what, (uint32_t)status);
	exit(1);
}

static void load_symbol(void *library, const char *name, void *function)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		check(STATUS_NOT_SUPPORTED, name);
	memcpy(function, &symbol, sizeof(symbol));
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "gpu_copy: %s\n", dlerror());
		exit(1);
	}
	load_symbol(library, "DXCoreCreateAdapterFactory", &CreateAdapterFactory);
#define LOAD(name, type) load_symbol(library, "D3DKMT" #name, &name);
	FUNCTIONS(LOAD)
#undef LOAD
}

/* A device with what a client of WDDM 2.x needs. */
struct gpu {
	D3DKMT_HANDLE adapter, device, context, fence;
	D3DKMT_CREATEPAGINGQUEUE queue;
	D3DGPU_VIRTUAL_ADDRESS fence_address; /* where the GPU stores the fence's value */
};

struct buffer {
	D3DKMT_HANDLE allocation;
	D3DGPU_VIRTUAL_ADDRESS address;
};

/* Prints the adapter that DXCore lists at the index, and returns its LUID. */
static LUID describe(IDXCoreAdapterList *list, uint32_t index)
{
	static const GUID iid_adapter = DXCORE_IID_ADAPTER;
	IDXCoreAdapter *adapter;
	char text[256] = "";
	LUID luid;

	check(list->lpVtbl->GetAdapter(list, index, &iid_adapter, (void **)&adapter), "GetAdapter");
	check(adapter->lpVtbl->GetProperty(adapter, DXCoreAdapterProperty_InstanceLuid,
					   sizeof(luid), &luid),
	      "InstanceLuid");
	check(adapter->lpVtbl->GetProperty(adapter, DXCoreAdapterProperty_DriverDescription,
					   sizeof(text), text),
	      "DriverDescription");
	adapter->lpVtbl->Release(adapter);
	printf("adapter %08" PRIx32 ":%08" PRIx32 ": %s\n", (uint32_t)luid.HighPart,
	       (uint32_t)luid.LowPart, text);
	return luid;
}

/* Whether D3DKMT lists an adapter with the LUID. Its enumeration opens each adapter. */
static bool is_listed(LUID luid)
{
	D3DKMT_ADAPTERINFO adapters[16];
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 16, .pAdapters = adapters};
	bool found = false;

	check(EnumAdapters2(&list), "EnumAdapters2");
	for (UINT i = 0; i < list.NumAdapters; i++) {
		const D3DKMT_CLOSEADAPTER close = {.hAdapter = adapters[i].hAdapter};

		found |= adapters[i].AdapterLuid.LowPart == luid.LowPart &&
			 adapters[i].AdapterLuid.HighPart == luid.HighPart;
		check(CloseAdapter(&close), "CloseAdapter");
	}
	return found;
}

/* Lists the adapters that can compute. Returns the LUID of the first one. */
static LUID find_adapter(void)
{
	static const GUID iid_factory = DXCORE_IID_ADAPTER_FACTORY;
	static const GUID iid_list = DXCORE_IID_ADAPTER_LIST;
	static const GUID compute = DXCORE_D3D12_CORE_COMPUTE;
	IDXCoreAdapterFactory *factory;
	IDXCoreAdapterList *list;
	LUID first = {0};

	check(CreateAdapterFactory(&iid_factory, (void **)&factory), "DXCoreCreateAdapterFactory");
	check(factory->lpVtbl->CreateAdapterList(factory, 1, &compute, &iid_list, (void **)&list),
	      "CreateAdapterList");
	uint32_t count = list->lpVtbl->GetAdapterCount(list);
	if (!count)
		check(STATUS_NOT_FOUND, "finding an adapter");
	for (uint32_t i = 0; i < count; i++) {
		const LUID luid = describe(list, i);

		if (!is_listed(luid))
			check(STATUS_NOT_FOUND, "finding DXCore's adapter in D3DKMT's list");
		if (i == 0)
			first = luid;
	}
	list->lpVtbl->Release(list);
	factory->lpVtbl->Release(factory);
	return first;
}

static void open_gpu(struct gpu *gpu)
{
	D3DKMT_OPENADAPTERFROMLUID adapter = {.AdapterLuid = find_adapter()};
	check(OpenAdapterFromLuid(&adapter), "OpenAdapterFromLuid");
	gpu->adapter = adapter.hAdapter;

	D3DKMT_CREATEDEVICE device = {.hAdapter = gpu->adapter};
	check(CreateDevice(&device), "CreateDevice");
	gpu->device = device.hDevice;

	gpu->queue = (D3DKMT_CREATEPAGINGQUEUE){.hDevice = gpu->device};
	check(CreatePagingQueue(&gpu->queue), "CreatePagingQueue");

	D3DKMT_CREATECONTEXTVIRTUAL context = {.hDevice = gpu->device};
	check(CreateContextVirtual(&context), "CreateContextVirtual");
	gpu->context = context.hContext;

	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = {.hDevice = gpu->device,
						     .Info.Type = D3DDDI_MONITORED_FENCE};
	check(CreateSynchronizationObject2(&fence), "CreateSynchronizationObject2");
	gpu->fence = fence.hSyncObject;
	gpu->fence_address = fence.Info.MonitoredFence.FenceValueGPUVirtualAddress;
}

static void close_gpu(const struct gpu *gpu)
{
	const D3DKMT_DESTROYDEVICE device = {.hDevice = gpu->device};
	const D3DKMT_CLOSEADAPTER adapter = {.hAdapter = gpu->adapter};

	check(DestroyDevice(&device), "DestroyDevice");
	check(CloseAdapter(&adapter), "CloseAdapter");
}

static void wait_for(const struct gpu *gpu, D3DKMT_HANDLE fence, UINT64 value)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {.hDevice = gpu->device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .FenceValueArray = &value};

	check(WaitForSynchronizationObjectFromCpu(&wait), "WaitForSynchronizationObjectFromCpu");
}

/* Creates a buffer, gives it a GPU virtual address, and waits until the GPU may use both. */
static struct buffer create_buffer(const struct gpu *gpu, uint64_t bytes)
{
	struct softgpu_allocation request = {.version = SOFTGPU_ALLOCATION_VERSION,
					     .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					     .size_bytes = bytes};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &request,
				       .PrivateDriverDataSize = sizeof(request)};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = gpu->device, .NumAllocations = 1, .pAllocationInfo2 = &info};

	check(CreateAllocation2(&create), "CreateAllocation2");

	D3DDDI_MAPGPUVIRTUALADDRESS map = {.hPagingQueue = gpu->queue.hPagingQueue,
					   .hAllocation = info.hAllocation,
					   .SizeInPages = bytes / PAGE_BYTES,
					   .Protection.Write = 1};
	check(MapGpuVirtualAddress(&map), "MapGpuVirtualAddress");

	D3DDDI_MAKERESIDENT resident = {.hPagingQueue = gpu->queue.hPagingQueue,
					.NumAllocations = 1,
					.AllocationList = &info.hAllocation};
	check(MakeResident(&resident), "MakeResident");

	/* Values of one paging queue rise, so the later call's value covers the earlier one. */
	wait_for(gpu, gpu->queue.hSyncObject, map.PagingFenceValue);
	wait_for(gpu, gpu->queue.hSyncObject, resident.PagingFenceValue);
	return (struct buffer){info.hAllocation, map.VirtualAddress};
}

static void *lock(const struct gpu *gpu, const struct buffer *buffer)
{
	D3DKMT_LOCK2 args = {.hDevice = gpu->device, .hAllocation = buffer->allocation};

	check(Lock2(&args), "Lock2");
	return args.pData;
}

static void unlock(const struct gpu *gpu, const struct buffer *buffer)
{
	const D3DKMT_UNLOCK2 args = {gpu->device, buffer->allocation};

	check(Unlock2(&args), "Unlock2");
}

/* Writes commands, and submits them: a copy, and a store of the fence's value behind it. */
static void copy(const struct gpu *gpu, const struct buffer *commands, const struct buffer *from,
		 const struct buffer *to, uint64_t value)
{
	const struct {
		struct softgpu_copy copy;
		struct softgpu_sync signal;
	} list = {
		.copy = {.command = {.opcode = SOFTGPU_COPY, .size_bytes = sizeof(list.copy)},
			 .source.address = from->address,
			 .destination.address = to->address,
			 .length = BUFFER_BYTES},
		.signal = {.command = {.opcode = SOFTGPU_SIGNAL, .size_bytes = sizeof(list.signal)},
			   .operand.address = gpu->fence_address,
			   .value = value},
	};
	const D3DKMT_SUBMITCOMMAND submit = {.Commands = commands->address,
					     .CommandLength = sizeof(list),
					     .BroadcastContextCount = 1,
					     .BroadcastContext = {gpu->context}};

	memcpy(lock(gpu, commands), &list, sizeof(list));
	unlock(gpu, commands);
	check(SubmitCommand(&submit), "SubmitCommand");
}

int main(int argc, char **argv)
{
	struct gpu gpu;
	uint64_t wrong = 0;

	load(argc > 1 ? argv[1] : "libdxcore.so");
	open_gpu(&gpu);
	const struct buffer commands = create_buffer(&gpu, PAGE_BYTES);
	const struct buffer from = create_buffer(&gpu, BUFFER_BYTES);
	const struct buffer to = create_buffer(&gpu, BUFFER_BYTES);

	uint32_t *words = lock(&gpu, &from);
	for (uint64_t i = 0; i < BUFFER_BYTES / sizeof(*words); i++)
		words[i] = WORD ^ (uint32_t)i;
	unlock(&gpu, &from);

	copy(&gpu, &commands, &from, &to, 1);
	wait_for(&gpu, gpu.fence, 1);

	words = lock(&gpu, &to);
	for (uint64_t i = 0; i < BUFFER_BYTES / sizeof(*words); i++)
		wrong += words[i] != (WORD ^ (uint32_t)i);
	unlock(&gpu, &to);
	printf("copied %" PRIu64 " KiB by GPU virtual address, %" PRIu64 " words wrong\n",
	       BUFFER_BYTES >> 10, wrong);
	close_gpu(&gpu);
	return wrong != 0;
}
