/* SPDX-License-Identifier: MIT */
/*
 * dxcore_client.c again, as a C++ client writes it: with the headers of directx-headers, and
 * libdxcore.so loaded at run time. Its output is the same.
 */
#include <wsl/winadapter.h>

#include <directx/dxcore.h>
#include <dxguids/dxguids.h>

#include <cinttypes>
#include <cstdio>
#include <dlfcn.h>

static const GUID *const attributes[] = {&DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS,
					 &DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS,
					 &DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE};

static uint64_t number(IDXCoreAdapter *a, DXCoreAdapterProperty property)
{
	uint64_t value = 0;

	if (FAILED(a->GetProperty(property, sizeof(value), &value)))
		printf("property %u fails\n", static_cast<unsigned>(property));
	return value;
}

static void print(IDXCoreAdapter *a)
{
	char description[256] = "";
	DXCoreHardwareID id;
	DXCoreHardwareIDParts parts;
	size_t size = 0;

	a->GetPropertySize(DXCoreAdapterProperty::DriverDescription, &size);
	a->GetProperty(DXCoreAdapterProperty::DriverDescription, size, description);
	a->GetProperty(DXCoreAdapterProperty::HardwareID, &id);
	a->GetProperty(DXCoreAdapterProperty::HardwareIDParts, &parts);
	printf("%s, %04x:%04x, %08x, revision %u\n", description, id.vendorID, id.deviceID,
	       id.subSysID, id.revision);
	printf("parts %04x:%04x, %04x:%04x, %u\n", parts.vendorID, parts.deviceID,
	       parts.subSystemID, parts.subVendorID, parts.revisionID);
	printf("driver %016" PRIx64 ", model %" PRIu64 "\n",
	       number(a, DXCoreAdapterProperty::DriverVersion),
	       number(a, DXCoreAdapterProperty::KmdModelVersion));
	printf("memory %" PRIu64 " %" PRIu64 "\n",
	       number(a, DXCoreAdapterProperty::DedicatedAdapterMemory),
	       number(a, DXCoreAdapterProperty::DedicatedSystemMemory));
	printf("hardware %d, integrated %d, detachable %d, attributes",
	       static_cast<int>(number(a, DXCoreAdapterProperty::IsHardware)),
	       static_cast<int>(number(a, DXCoreAdapterProperty::IsIntegrated)),
	       static_cast<int>(number(a, DXCoreAdapterProperty::IsDetachable)));
	for (const GUID *attribute : attributes)
		printf(" %d", a->IsAttributeSupported(*attribute));
	printf("\n");
}

static void make_mistakes(IDXCoreAdapterFactory *factory, IDXCoreAdapterList *list,
			  IDXCoreAdapter *a)
{
	IDXCoreAdapter *object;
	uint8_t byte;
	uint32_t cookie = 1;
	const LUID luid = {0xDEAD, 0};

	printf("%08x ", static_cast<unsigned>(list->GetAdapter(99, &object)));
	printf("%08x ", static_cast<unsigned>(factory->GetAdapterByLuid(luid, &object)));
	printf("%08x ", static_cast<unsigned>(
				a->GetProperty(DXCoreAdapterProperty::InstanceLuid, &byte)));
	printf("%08x ", static_cast<unsigned>(
				a->QueryState(DXCoreAdapterState::AdapterMemoryBudget, &byte)));
	printf("%08x ", static_cast<unsigned>(list->Sort(0, nullptr)));
	printf("%08x ", static_cast<unsigned>(factory->RegisterEventNotification(
				list, DXCoreNotificationType::AdapterListStale, nullptr, nullptr,
				&cookie)));
	printf("%u\n", cookie);
}

static void STDMETHODCALLTYPE ignore(DXCoreNotificationType, IUnknown *, void *)
{
}

static void ask_for_notifications(IDXCoreAdapterFactory *factory, IDXCoreAdapterList *list)
{
	const auto type = DXCoreNotificationType::AdapterListStale;
	uint32_t cookie = 1;
	bool supported = factory->IsNotificationTypeSupported(type);

	printf("notifications %d %08x ", supported,
	       static_cast<unsigned>(factory->RegisterEventNotification(list, type, ignore, nullptr,
									&cookie)));
	printf("%u\n", cookie);
}

static void print_state(IDXCoreAdapterList *list, IDXCoreAdapter *a)
{
	uint8_t updating;

	printf("valid %d, stale %d, update %08x\n", a->IsValid(), list->IsStale(),
	       static_cast<unsigned>(a->QueryState(DXCoreAdapterState::IsDriverUpdateInProgress,
						   &updating)));
}

int main(int, char **arguments)
{
	using create_fn = HRESULT(REFIID, void **);
	IDXCoreAdapterFactory *factory = nullptr;
	IDXCoreAdapterList *list = nullptr;
	IDXCoreAdapter *first = nullptr, *a;

	setvbuf(stdout, nullptr, _IOLBF, 0);
	void *library = dlopen(arguments[1], RTLD_NOW);
	auto *create = library ? reinterpret_cast<create_fn *>(
					 dlsym(library, "DXCoreCreateAdapterFactory"))
			       : nullptr;
	if (!create || FAILED(create(IID_PPV_ARGS(&factory))))
		return 1;
	HRESULT result = factory->CreateAdapterList(1, attributes[2], &list);
	if (FAILED(result)) {
		printf("no list: %08x\n", static_cast<unsigned>(result));
		return 2;
	}
	printf("%u adapters\n", list->GetAdapterCount());
	for (uint32_t i = 0; i < list->GetAdapterCount(); i++) {
		if (FAILED(list->GetAdapter(i, &a)))
			return 3;
		print(a);
		if (first)
			a->Release();
		else
			first = a;
	}
	if (!first)
		return 4;
	make_mistakes(factory, list, first);
	ask_for_notifications(factory, list);
	print_state(list, first);
	(void)getchar();
	print_state(list, first);
	print(first);
	printf("left %u", list->Release());
	printf(" %u", first->Release());
	printf(" %u\n", factory->Release());
	return 0;
}
