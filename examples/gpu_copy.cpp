// SPDX-License-Identifier: MIT
/*
 * gpu_copy.c in C++17: DXCore as directx/dxcore.h of Debian's directx-headers-dev declares it, and
 * D3DKMT as <d3dkmthk.h> of vidmm does, in one translation unit. Base types (HRESULT, LUID, GUID)
 * are those of wsl/winadapter.h. An object of each class owns what it has created, and destroys it:
 *
 *	vidmm run -- gpu_copy_cpp
 */
#include <wsl/winadapter.h>

#include <directx/dxcore.h>
#include <dxguids/dxguids.h>

#include <d3dkmthk.h>
#include <vidmm/softgpu.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

constexpr uint64_t page_bytes = 4096;
constexpr uint64_t buffer_bytes = uint64_t{1} << 20;
constexpr uint32_t word = 0x600DC0DE;

/* A D3DKMT function or one of DXCore has failed: both kinds of status are negative then. */
void check(int32_t status, const std::string &what)
{
	char code[16];

	if (status >= 0)
		return;
	snprintf(code, sizeof(code), "0x%08" PRIx32, static_cast<uint32_t>(status));
	throw std::runtime_error(what + " failed with " + code);
}

/* A COM interface, with one reference. */
struct release {
	void operator()(IUnknown *object) const
	{
		object->Release();
	}
};
template <class Interface> using com = std::unique_ptr<Interface, release>;

/* libdxcore.so. It stays loaded until the process ends: D3DKMT objects may outlive any scope. */
class library
{
      public:
	explicit library(const char *path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL))
	{
		if (!handle_)
			throw std::runtime_error(dlerror());
	}

	template <class Function> Function *function(const char *name) const
	{
		void *symbol = dlsym(handle_, name);

		if (!symbol)
			throw std::runtime_error(std::string(name) + " is not exported");
		return reinterpret_cast<Function *>(symbol);
	}

      private:
	void *handle_;
};

/* Calls a D3DKMT function of the library, with the type that <d3dkmthk.h> declares. */
#define CALL(dxcore, name, argument) \
	check((dxcore).function<decltype(name)>(#name)(&(argument)), #name)

/* The same in a destructor, which cannot throw. */
#define END(dxcore, name, argument) \
	report((dxcore).function<decltype(name)>(#name)(&(argument)), #name)

void report(NTSTATUS status, const char *what)
{
	if (!NT_SUCCESS(status))
		fprintf(stderr, "gpu_copy_cpp: %s failed with 0x%08" PRIx32 "\n", what,
			static_cast<uint32_t>(status));
}

/* ---- enumeration ---- */

bool operator==(const LUID &one, const LUID &other)
{
	return one.LowPart == other.LowPart && one.HighPart == other.HighPart;
}

/* The adapters that D3DKMT lists. Its enumeration opens each one. */
std::vector<LUID> list_by_d3dkmt(const library &dxcore)
{
	D3DKMT_ENUMADAPTERS2 list = {};
	std::vector<LUID> luids;

	CALL(dxcore, D3DKMTEnumAdapters2, list); /* how many there can be */
	std::vector<D3DKMT_ADAPTERINFO> adapters(list.NumAdapters);
	list.pAdapters = adapters.data();
	CALL(dxcore, D3DKMTEnumAdapters2, list);
	adapters.resize(list.NumAdapters);
	for (const D3DKMT_ADAPTERINFO &adapter : adapters) {
		const D3DKMT_CLOSEADAPTER close = {adapter.hAdapter};

		luids.push_back(adapter.AdapterLuid);
		CALL(dxcore, D3DKMTCloseAdapter, close);
	}
	return luids;
}

/* Prints an adapter of DXCore's, and returns its LUID. */
LUID describe(IDXCoreAdapter &adapter)
{
	size_t bytes = 0;
	LUID luid = {};

	check(adapter.GetProperty(DXCoreAdapterProperty::InstanceLuid, &luid), "InstanceLuid");
	check(adapter.GetPropertySize(DXCoreAdapterProperty::DriverDescription, &bytes),
	      "the size of DriverDescription");
	std::vector<char> text(bytes);
	check(adapter.GetProperty(DXCoreAdapterProperty::DriverDescription, bytes, text.data()),
	      "DriverDescription");
	printf("adapter %08" PRIx32 ":%08" PRIx32 ": %s\n", static_cast<uint32_t>(luid.HighPart),
	       static_cast<uint32_t>(luid.LowPart), text.data());
	return luid;
}

/* The adapters that can compute, by DXCore. */
std::vector<LUID> list_by_dxcore(const library &dxcore)
{
	auto *create = dxcore.function<HRESULT(REFIID, void **)>("DXCoreCreateAdapterFactory");
	IDXCoreAdapterFactory *new_factory = nullptr;
	IDXCoreAdapterList *new_list = nullptr;
	std::vector<LUID> luids;

	check(create(IID_PPV_ARGS(&new_factory)), "DXCoreCreateAdapterFactory");
	const com<IDXCoreAdapterFactory> factory(new_factory);
	check(factory->CreateAdapterList(1, &DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
					 &new_list),
	      "CreateAdapterList");
	const com<IDXCoreAdapterList> list(new_list);
	for (uint32_t i = 0; i < list->GetAdapterCount(); i++) {
		IDXCoreAdapter *adapter = nullptr;

		check(list->GetAdapter(i, &adapter), "GetAdapter");
		luids.push_back(describe(*com<IDXCoreAdapter>(adapter)));
	}
	return luids;
}

/* Returns the first adapter of DXCore's list. D3DKMT's has all of them. */
LUID find_adapter(const library &dxcore)
{
	const std::vector<LUID> wanted = list_by_dxcore(dxcore), known = list_by_d3dkmt(dxcore);

	if (wanted.empty())
		throw std::runtime_error("there is no adapter");
	for (const LUID &luid : wanted) {
		bool found = false;

		for (const LUID &other : known)
			found |= luid == other;
		if (!found)
			throw std::runtime_error("D3DKMT does not list an adapter of DXCore's");
	}
	return wanted.front();
}

/* ---- objects of D3DKMT ---- */

/* The owner of an object of the adapter, which ends with it. */
class single
{
      public:
	single() = default;
	single(const single &) = delete;
	single &operator=(const single &) = delete;
};

class adapter : single
{
      public:
	adapter(const library &dxcore, const LUID &luid) : dxcore_(dxcore)
	{
		D3DKMT_OPENADAPTERFROMLUID open = {};

		open.AdapterLuid = luid;
		CALL(dxcore, D3DKMTOpenAdapterFromLuid, open);
		handle_ = open.hAdapter;
	}
	~adapter()
	{
		const D3DKMT_CLOSEADAPTER close = {handle_};

		END(dxcore_, D3DKMTCloseAdapter, close);
	}
	D3DKMT_HANDLE handle() const
	{
		return handle_;
	}

      private:
	const library &dxcore_;
	D3DKMT_HANDLE handle_ = 0;
};

class device : single
{
      public:
	device(const library &dxcore, const adapter &on) : dxcore_(dxcore)
	{
		D3DKMT_CREATEDEVICE create = {};

		create.hAdapter = on.handle();
		CALL(dxcore, D3DKMTCreateDevice, create);
		handle_ = create.hDevice;
	}
	~device()
	{
		const D3DKMT_DESTROYDEVICE destroy = {handle_};

		END(dxcore_, D3DKMTDestroyDevice, destroy);
	}
	D3DKMT_HANDLE handle() const
	{
		return handle_;
	}

	/* Waits on the CPU until the fence has the value. */
	void wait_for(D3DKMT_HANDLE fence, UINT64 value) const
	{
		D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {};

		wait.hDevice = handle_;
		wait.ObjectCount = 1;
		wait.ObjectHandleArray = &fence;
		wait.FenceValueArray = &value;
		CALL(dxcore_, D3DKMTWaitForSynchronizationObjectFromCpu, wait);
	}

      private:
	const library &dxcore_;
	D3DKMT_HANDLE handle_ = 0;
};

/* Makes allocations resident, and maps them. Signals its fence when the GPU may use them. */
class paging_queue : single
{
      public:
	paging_queue(const library &dxcore, const device &of) : dxcore_(dxcore), device_(of)
	{
		create_.hDevice = of.handle();
		CALL(dxcore, D3DKMTCreatePagingQueue, create_);
	}
	~paging_queue()
	{
		D3DDDI_DESTROYPAGINGQUEUE destroy = {create_.hPagingQueue};

		END(dxcore_, D3DKMTDestroyPagingQueue, destroy);
	}

	D3DGPU_VIRTUAL_ADDRESS map(D3DKMT_HANDLE allocation, uint64_t bytes) const
	{
		D3DDDI_MAPGPUVIRTUALADDRESS args = {};

		args.hPagingQueue = create_.hPagingQueue;
		args.hAllocation = allocation;
		args.SizeInPages = bytes / page_bytes;
		args.Protection.Write = 1;
		CALL(dxcore_, D3DKMTMapGpuVirtualAddress, args);
		device_.wait_for(create_.hSyncObject, args.PagingFenceValue);
		return args.VirtualAddress;
	}

	void make_resident(D3DKMT_HANDLE allocation) const
	{
		D3DDDI_MAKERESIDENT args = {};

		args.hPagingQueue = create_.hPagingQueue;
		args.NumAllocations = 1;
		args.AllocationList = &allocation;
		CALL(dxcore_, D3DKMTMakeResident, args);
		device_.wait_for(create_.hSyncObject, args.PagingFenceValue);
	}

      private:
	const library &dxcore_;
	const device &device_;
	D3DKMT_CREATEPAGINGQUEUE create_ = {};
};

/* A monitored fence: the GPU stores its value at an address, and the CPU waits for it. */
class monitored_fence : single
{
      public:
	monitored_fence(const library &dxcore, const device &of) : dxcore_(dxcore)
	{
		create_.hDevice = of.handle();
		create_.Info.Type = D3DDDI_MONITORED_FENCE;
		CALL(dxcore, D3DKMTCreateSynchronizationObject2, create_);
	}
	~monitored_fence()
	{
		const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy = {create_.hSyncObject};

		END(dxcore_, D3DKMTDestroySynchronizationObject, destroy);
	}
	D3DKMT_HANDLE handle() const
	{
		return create_.hSyncObject;
	}
	D3DGPU_VIRTUAL_ADDRESS gpu_address() const
	{
		return create_.Info.MonitoredFence.FenceValueGPUVirtualAddress;
	}

      private:
	const library &dxcore_;
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create_ = {};
};

class context : single
{
      public:
	context(const library &dxcore, const device &of) : dxcore_(dxcore)
	{
		D3DKMT_CREATECONTEXTVIRTUAL create = {};

		create.hDevice = of.handle();
		CALL(dxcore, D3DKMTCreateContextVirtual, create);
		handle_ = create.hContext;
	}
	~context()
	{
		const D3DKMT_DESTROYCONTEXT destroy = {handle_};

		END(dxcore_, D3DKMTDestroyContext, destroy);
	}

	void submit(D3DGPU_VIRTUAL_ADDRESS commands, UINT bytes) const
	{
		D3DKMT_SUBMITCOMMAND args = {};

		args.Commands = commands;
		args.CommandLength = bytes;
		args.BroadcastContextCount = 1;
		args.BroadcastContext[0] = handle_;
		CALL(dxcore_, D3DKMTSubmitCommand, args);
	}

      private:
	const library &dxcore_;
	D3DKMT_HANDLE handle_ = 0;
};

/* An allocation that is resident, at a GPU virtual address. */
class buffer : single
{
      public:
	buffer(const library &dxcore, const device &of, const paging_queue &queue, uint64_t bytes)
	    : dxcore_(dxcore), device_(of)
	{
		softgpu_allocation request = {};
		D3DDDI_ALLOCATIONINFO2 info = {};
		D3DKMT_CREATEALLOCATION create = {};

		request.version = SOFTGPU_ALLOCATION_VERSION;
		request.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE;
		request.size_bytes = bytes;
		info.pPrivateDriverData = &request;
		info.PrivateDriverDataSize = sizeof(request);
		create.hDevice = of.handle();
		create.NumAllocations = 1;
		create.pAllocationInfo2 = &info;
		CALL(dxcore, D3DKMTCreateAllocation2, create);
		allocation_ = info.hAllocation;
		address_ = queue.map(allocation_, bytes);
		queue.make_resident(allocation_);
	}
	~buffer()
	{
		D3DKMT_DESTROYALLOCATION2 destroy = {};

		destroy.hDevice = device_.handle();
		destroy.phAllocationList = &allocation_;
		destroy.AllocationCount = 1;
		END(dxcore_, D3DKMTDestroyAllocation2, destroy);
	}
	D3DGPU_VIRTUAL_ADDRESS address() const
	{
		return address_;
	}

	/* Calls use(memory) while the CPU has the buffer locked. */
	template <class Use> void with_lock(Use use) const
	{
		D3DKMT_LOCK2 lock = {};
		const D3DKMT_UNLOCK2 unlock = {device_.handle(), allocation_};

		lock.hDevice = device_.handle();
		lock.hAllocation = allocation_;
		CALL(dxcore_, D3DKMTLock2, lock);
		use(static_cast<uint8_t *>(lock.pData));
		CALL(dxcore_, D3DKMTUnlock2, unlock);
	}

      private:
	const library &dxcore_;
	const device &device_;
	D3DKMT_HANDLE allocation_ = 0;
	D3DGPU_VIRTUAL_ADDRESS address_ = 0;
};

/* ---- the program ---- */

/* What the GPU executes: a copy, and a store of the fence's value behind it. */
struct commands {
	softgpu_copy copy;
	softgpu_sync signal;
};

commands make_commands(const buffer &from, const buffer &to, const monitored_fence &fence,
		       uint64_t value)
{
	commands list = {};

	list.copy.command.opcode = SOFTGPU_COPY;
	list.copy.command.size_bytes = sizeof(list.copy);
	list.copy.source.address = from.address();
	list.copy.destination.address = to.address();
	list.copy.length = buffer_bytes;
	list.signal.command.opcode = SOFTGPU_SIGNAL;
	list.signal.command.size_bytes = sizeof(list.signal);
	list.signal.operand.address = fence.gpu_address();
	list.signal.value = value;
	return list;
}

std::vector<uint32_t> pattern()
{
	std::vector<uint32_t> words(buffer_bytes / sizeof(uint32_t));

	for (size_t i = 0; i < words.size(); i++)
		words[i] = word ^ static_cast<uint32_t>(i);
	return words;
}

uint64_t count_wrong(const buffer &copy, const std::vector<uint32_t> &expected)
{
	std::vector<uint32_t> words(expected.size());
	uint64_t wrong = 0;

	copy.with_lock([&](const uint8_t *memory) { memcpy(words.data(), memory, buffer_bytes); });
	for (size_t i = 0; i < words.size(); i++)
		wrong += words[i] != expected[i];
	return wrong;
}

uint64_t copy_by_gpu(const library &dxcore)
{
	const adapter gpu(dxcore, find_adapter(dxcore));
	const device own(dxcore, gpu);
	const paging_queue queue(dxcore, own);
	const monitored_fence fence(dxcore, own);
	const context engine(dxcore, own);
	const buffer program(dxcore, own, queue, page_bytes),
		from(dxcore, own, queue, buffer_bytes), to(dxcore, own, queue, buffer_bytes);
	const std::vector<uint32_t> words = pattern();
	const commands list = make_commands(from, to, fence, 1);

	from.with_lock([&](uint8_t *memory) { memcpy(memory, words.data(), buffer_bytes); });
	program.with_lock([&](uint8_t *memory) { memcpy(memory, &list, sizeof(list)); });
	engine.submit(program.address(), sizeof(list));
	own.wait_for(fence.handle(), 1);
	return count_wrong(to, words);
}

} // namespace

int main(int argc, char **argv)
{
	try {
		const library dxcore(argc > 1 ? argv[1] : "libdxcore.so");
		const uint64_t wrong = copy_by_gpu(dxcore);

		printf("copied %" PRIu64 " KiB by GPU virtual address, %" PRIu64 " words wrong\n",
		       buffer_bytes >> 10, wrong);
		return wrong != 0;
	} catch (const std::exception &error) {
		fprintf(stderr, "gpu_copy_cpp: %s\n", error.what());
		return 1;
	}
}
