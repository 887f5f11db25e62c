/* SPDX-License-Identifier: MIT */
/*
 * A DXCore client in C, with our header. Prints what the adapters of its host say, then waits for a
 * line on its standard input and prints what became of the first adapter. dxcore_client.cpp is the
 * same client with the headers of directx-headers; test_dxcore.py compares what they print.
 */
#include <dxcore.h>
#include <inttypes.h>
#include <stdio.h>

static const GUID iid_factory = DXCORE_IID_ADAPTER_FACTORY, iid_list = DXCORE_IID_ADAPTER_LIST,
		  iid_adapter = DXCORE_IID_ADAPTER;
static const GUID attributes[] = {DXCORE_D3D11_GRAPHICS, DXCORE_D3D12_GRAPHICS,
				  DXCORE_D3D12_CORE_COMPUTE};

static uint64_t number(IDXCoreAdapter *a, DXCoreAdapterProperty property)
{
	uint64_t value = 0;

	if (FAILED(a->lpVtbl->GetProperty(a, property, sizeof(value), &value)))
		printf("property %u fails\n", property);
	return value;
}

static void print(IDXCoreAdapter *a)
{
	char description[256] = "";
	DXCoreHardwareID id;
	DXCoreHardwareIDParts parts;
	size_t size = 0;

	a->lpVtbl->GetPropertySize(a, DXCoreAdapterProperty_DriverDescription, &size);
	a->lpVtbl->GetProperty(a, DXCoreAdapterProperty_DriverDescription, size, description);
	a->lpVtbl->GetProperty(a, DXCoreAdapterProperty_HardwareID, sizeof(id), &id);
	a->lpVtbl->GetProperty(a, DXCoreAdapterProperty_HardwareIDParts, sizeof(parts), &parts);
	printf("%s, %04x:%04x, %08x, revision %u\n", description, id.vendorID, id.deviceID,
	       id.subSysID, id.revision);
	printf("parts %04x:%04x, %04x:%04x, %u\n", parts.vendorID, parts.deviceID,
	       parts.subSystemID, parts.subVendorID, parts.revisionID);
	printf("driver %016" PRIx64 ", model %" PRIu64 "\n",
	       number(a, DXCoreAdapterProperty_DriverVersion),
	       number(a, DXCoreAdapterProperty_KmdModelVersion));
	printf("memory %" PRIu64 " %" PRIu64 "\n",
	       number(a, DXCoreAdapterProperty_DedicatedAdapterMemory),
	       number(a, DXCoreAdapterProperty_DedicatedSystemMemory));
	printf("hardware %d, integrated %d, detachable %d, attributes",
	       (int)number(a, DXCoreAdapterProperty_IsHardware),
	       (int)number(a, DXCoreAdapterProperty_IsIntegrated),
	       (int)number(a, DXCoreAdapterProperty_IsDetachable));
	for (int i = 0; i < 3; i++)
		printf(" %d", a->lpVtbl->IsAttributeSupported(a, &attributes[i]));
	printf("\n");
}

/* The same mistakes in both clients; VIDMM_DEBUG=1 prints their findings. */
static void make_mistakes(IDXCoreAdapterFactory *factory, IDXCoreAdapterList *list,
			  IDXCoreAdapter *a)
{
	void *object;
	uint8_t byte;
	uint32_t cookie = 1;
	const LUID luid = {.LowPart = 0xDEAD};

	printf("%08x ", (unsigned)list->lpVtbl->GetAdapter(list, 99, &iid_adapter, &object));
	printf("%08x ",
	       (unsigned)factory->lpVtbl->GetAdapterByLuid(factory, &luid, &iid_adapter, &object));
	printf("%08x ",
	       (unsigned)a->lpVtbl->GetProperty(a, DXCoreAdapterProperty_InstanceLuid, 1, &byte));
	printf("%08x ", (unsigned)a->lpVtbl->QueryState(a, DXCoreAdapterState_AdapterMemoryBudget,
							0, NULL, 1, &byte));
	printf("%08x ", (unsigned)list->lpVtbl->Sort(list, 0, NULL));
	printf("%08x ", (unsigned)factory->lpVtbl->RegisterEventNotification(
				factory, (struct IUnknown *)list,
				DXCoreNotificationType_AdapterListStale, NULL, NULL, &cookie));
	printf("%u\n", cookie);
}

static void ignore(DXCoreNotificationType type, struct IUnknown *object, void *context)
{
	(void)type;
	(void)object;
	(void)context;
}

/* C-243: a client of a host in another process gets no notifications. */
static void ask_for_notifications(IDXCoreAdapterFactory *factory, IDXCoreAdapterList *list)
{
	const DXCoreNotificationType type = DXCoreNotificationType_AdapterListStale;
	uint32_t cookie = 1;
	bool supported = factory->lpVtbl->IsNotificationTypeSupported(factory, type);

	printf("notifications %d %08x ", supported,
	       (unsigned)factory->lpVtbl->RegisterEventNotification(
		       factory, (struct IUnknown *)list, type, ignore, NULL, &cookie));
	printf("%u\n", cookie);
}

int main(void)
{
	IDXCoreAdapterFactory *factory = NULL;
	IDXCoreAdapterList *list = NULL;
	IDXCoreAdapter *first = NULL, *a;
	uint8_t updating;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (FAILED(DXCoreCreateAdapterFactory(&iid_factory, (void **)&factory)))
		return 1;
	HRESULT result = factory->lpVtbl->CreateAdapterList(factory, 1, &attributes[2], &iid_list,
							    (void **)&list);
	if (FAILED(result)) {
		printf("no list: %08x\n", (unsigned)result);
		return 2;
	}
	printf("%u adapters\n", list->lpVtbl->GetAdapterCount(list));
	for (uint32_t i = 0; i < list->lpVtbl->GetAdapterCount(list); i++) {
		if (FAILED(list->lpVtbl->GetAdapter(list, i, &iid_adapter, (void **)&a)))
			return 3;
		print(a);
		if (first)
			a->lpVtbl->Release(a);
		else
			first = a;
	}
	if (!first)
		return 4;
	make_mistakes(factory, list, first);
	ask_for_notifications(factory, list);
	printf("valid %d, stale %d, update %08x\n", first->lpVtbl->IsValid(first),
	       list->lpVtbl->IsStale(list),
	       (unsigned)first->lpVtbl->QueryState(first,
						   DXCoreAdapterState_IsDriverUpdateInProgress, 0,
						   NULL, sizeof(updating), &updating));
	(void)getchar();
	printf("valid %d, stale %d, update %08x\n", first->lpVtbl->IsValid(first),
	       list->lpVtbl->IsStale(list),
	       (unsigned)first->lpVtbl->QueryState(first,
						   DXCoreAdapterState_IsDriverUpdateInProgress, 0,
						   NULL, sizeof(updating), &updating));
	print(first);
	printf("left %u", list->lpVtbl->Release(list));
	printf(" %u", first->lpVtbl->Release(first));
	printf(" %u\n", factory->lpVtbl->Release(factory));
	return 0;
}
