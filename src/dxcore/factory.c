/* SPDX-License-Identifier: MIT */
/*
 * DXCoreCreateAdapterFactory and IDXCoreAdapterFactory1. The factory is one object that exists as
 * long as the library, so every call returns the same pointer (DXC-01).
 */
#include "dxcore/dxcore_private.h"

static HRESULT query_interface(IDXCoreAdapterFactory1 *self, const GUID *riid, void **object);
static ULONG add_reference(IDXCoreAdapterFactory1 *self);
static ULONG release(IDXCoreAdapterFactory1 *self);

static _Atomic uint32_t references; /* those of clients */

/* DXC-04 */
static HRESULT create_adapter_list(IDXCoreAdapterFactory1 *self, uint32_t count,
				   const GUID *attributes, const GUID *riid, void **object)
{
	struct vmm_dxcore_filter filter = {.all = 0};
	HRESULT result =
		vmm_dxcore_check_out("IDXCoreAdapterFactory::CreateAdapterList", riid, object);

	(void)self;
	if (FAILED(result))
		return result;
	if (!count || !attributes)
		return vmm_dxcore_refuse_rule(
			E_INVALIDARG, "DXC-04",
			"IDXCoreAdapterFactory::CreateAdapterList: %u attributes%s: at least one "
			"is needed",
			count, attributes ? "" : ", the pointer to them is NULL");
	for (uint32_t i = 0; i < count; i++) {
		uint32_t bit = vmm_dxcore_attribute(&attributes[i]);

		filter.all |= bit;
		filter.impossible |= !bit;
	}
	return vmm_dxcore_create_list(&filter, NULL, riid, object);
}

/* DXC-13 */
static HRESULT create_adapter_list_by_workload(IDXCoreAdapterFactory1 *self,
					       DXCoreWorkload workload,
					       DXCoreRuntimeFilterFlags runtimes,
					       DXCoreHardwareTypeFilterFlags hardware,
					       const GUID *riid, void **object)
{
	struct vmm_dxcore_filter filter;
	uint32_t first[VMM_DXCORE_TYPES];
	HRESULT result = vmm_dxcore_check_out("IDXCoreAdapterFactory1::CreateAdapterListByWorkload",
					      riid, object);

	(void)self;
	if (FAILED(result))
		return result;
	if (!vmm_dxcore_workload(workload, runtimes, hardware, &filter, first))
		return vmm_dxcore_refuse_rule(
			E_INVALIDARG, "DXC-13",
			"IDXCoreAdapterFactory1::CreateAdapterListByWorkload: workload %u, "
			"runtimes 0x%x, hardware 0x%x: the most are 3, 0x3 and 0xf",
			workload, runtimes, hardware);
	return vmm_dxcore_create_list(&filter, first, riid, object);
}

static const char by_luid[] = "IDXCoreAdapterFactory::GetAdapterByLuid";

/* DXC-07 */
static HRESULT refuse_luid(const void *system, LUID luid)
{
	struct vmm_dxcore_adapter *known = vmm_dxcore_adapter_get(system, luid, NULL);

	if (!known)
		return vmm_dxcore_refuse_rule(E_INVALIDARG, "DXC-07",
					      "%s: no adapter has the LUID 0x%x:0x%x", by_luid,
					      (unsigned)luid.HighPart, luid.LowPart);
	atomic_store(&known->gone, true);
	(void)vmm_dxcore_adapter_release(known);
	return vmm_dxcore_refuse_reason(DXGI_ERROR_DEVICE_REMOVED, "DXC-07",
					"%s: the adapter with LUID 0x%x:0x%x has ended", by_luid,
					(unsigned)luid.HighPart, luid.LowPart);
}

static HRESULT get_adapter_by_luid(IDXCoreAdapterFactory1 *self, const LUID *luid, const GUID *riid,
				   void **object)
{
	struct vmm_dxcore_adapters adapters;
	struct vmm_dxcore_adapter *adapter = NULL;
	uint32_t at = 0;
	HRESULT result = vmm_dxcore_check_out(by_luid, riid, object);

	(void)self;
	if (SUCCEEDED(result) && !luid)
		result = vmm_dxcore_refuse_rule(E_POINTER, "DXC-02", "%s: adapterLUID is NULL",
						by_luid);
	if (SUCCEEDED(result))
		result = vmm_dxcore_open(&adapters);
	if (FAILED(result))
		return result;
	while (at < adapters.count && !vmm_dxcore_same_luid(adapters.info[at].AdapterLuid, *luid))
		at++;
	if (at < adapters.count)
		adapter = vmm_dxcore_adapter_of(&adapters, at, &result);
	if (!adapter && SUCCEEDED(result))
		result = refuse_luid(adapters.system, *luid);
	vmm_dxcore_close(&adapters);
	if (!adapter)
		return result;
	result = adapter->interface.lpVtbl->QueryInterface(&adapter->interface, riid, object);
	(void)vmm_dxcore_adapter_release(adapter);
	return result;
}

static const IDXCoreAdapterFactory1Vtbl functions = {
	.QueryInterface = query_interface,
	.AddRef = add_reference,
	.Release = release,
	.CreateAdapterList = create_adapter_list,
	.GetAdapterByLuid = get_adapter_by_luid,
	.IsNotificationTypeSupported = vmm_dxcore_notifies,
	.RegisterEventNotification = vmm_dxcore_register,
	.UnregisterEventNotification = vmm_dxcore_unregister,
	.CreateAdapterListByWorkload = create_adapter_list_by_workload,
};
static IDXCoreAdapterFactory1 factory = {&functions};

static HRESULT query_interface(IDXCoreAdapterFactory1 *self, const GUID *riid, void **object)
{
	HRESULT result =
		vmm_dxcore_check_out("IDXCoreAdapterFactory::QueryInterface", riid, object);

	(void)self;
	return SUCCEEDED(result) ? vmm_dxcore_factory(riid, object) : result;
}

static ULONG add_reference(IDXCoreAdapterFactory1 *self)
{
	(void)self;
	return atomic_fetch_add(&references, 1) + 1;
}

static ULONG release(IDXCoreAdapterFactory1 *self)
{
	uint32_t count = atomic_load(&references);

	(void)self;
	while (count && !atomic_compare_exchange_weak(&references, &count, count - 1))
		;
	if (count)
		return count - 1;
	(void)vmm_dxcore_refuse_rule(
		S_OK, "DXC-03", "IDXCoreAdapterFactory::Release: no reference is left to release");
	return 0;
}

HRESULT vmm_dxcore_factory(const GUID *riid, void **object)
{
	static const GUID served[] = {DXCORE_IID_IUNKNOWN, DXCORE_IID_ADAPTER_FACTORY,
				      DXCORE_IID_ADAPTER_FACTORY1};

	for (size_t i = 0; i < sizeof(served) / sizeof(served[0]) && !*object; i++)
		if (vmm_dxcore_is_guid(riid, &served[i]))
			*object = &factory;
	if (!*object)
		return E_NOINTERFACE;
	(void)add_reference(&factory);
	return S_OK;
}

DXCORE_API HRESULT APIENTRY DXCoreCreateAdapterFactory(const GUID *riid, void **object)
{
	HRESULT result = vmm_dxcore_check_out("DXCoreCreateAdapterFactory", riid, object);

	return SUCCEEDED(result) ? vmm_dxcore_factory(riid, object) : result;
}
