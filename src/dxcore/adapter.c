/* SPDX-License-Identifier: MIT */
/* IDXCoreAdapter1, without its properties and states. */
#include "dxcore/dxcore_private.h"

static struct vmm_dxcore_adapter *of(IDXCoreAdapter1 *self)
{
	return (struct vmm_dxcore_adapter *)self;
}

static HRESULT query_interface(IDXCoreAdapter1 *self, const GUID *riid, void **object)
{
	static const struct vmm_dxcore_interfaces interfaces = {
		"IDXCoreAdapter::QueryInterface",
		3,
		{DXCORE_IID_IUNKNOWN, DXCORE_IID_ADAPTER, DXCORE_IID_ADAPTER1}};

	return vmm_dxcore_serve(&interfaces, self, &of(self)->references, riid, object);
}

static ULONG add_reference(IDXCoreAdapter1 *self)
{
	return atomic_fetch_add(&of(self)->references, 1) + 1;
}

static ULONG release(IDXCoreAdapter1 *self)
{
	return vmm_dxcore_adapter_release(of(self));
}

HRESULT vmm_dxcore_reach(struct vmm_dxcore_adapter *adapter, struct vmm_dxcore_adapters *adapters,
			 D3DKMT_HANDLE *handle)
{
	if (atomic_load(&adapter->gone))
		return DXGI_ERROR_DEVICE_REMOVED;
	HRESULT result = vmm_dxcore_open(adapters);
	if (SUCCEEDED(result) && adapters->system != adapter->system) {
		vmm_dxcore_close(adapters);
		return E_FAIL;
	}
	*handle = SUCCEEDED(result) ? vmm_dxcore_find(adapters, adapter->facts.luid) : 0;
	if (SUCCEEDED(result) && !*handle) {
		vmm_dxcore_close(adapters);
		result = DXGI_ERROR_DEVICE_REMOVED;
	}
	/* Also if the host itself is gone. The transition is one-way (DXC-09). */
	if (result == DXGI_ERROR_DEVICE_REMOVED)
		atomic_store(&adapter->gone, true);
	return result;
}

static bool is_valid(IDXCoreAdapter1 *self)
{
	struct vmm_dxcore_adapters adapters;
	D3DKMT_HANDLE handle;
	HRESULT result = vmm_dxcore_reach(of(self), &adapters, &handle);

	if (SUCCEEDED(result))
		vmm_dxcore_close(&adapters);
	return result != DXGI_ERROR_DEVICE_REMOVED;
}

static bool is_attribute_supported(IDXCoreAdapter1 *self, const GUID *attribute)
{
	return attribute && (of(self)->facts.attributes & vmm_dxcore_attribute(attribute)) != 0;
}

static HRESULT get_factory(IDXCoreAdapter1 *self, const GUID *riid, void **factory)
{
	HRESULT result = vmm_dxcore_check_out("IDXCoreAdapter::GetFactory", riid, factory);

	(void)self;
	return SUCCEEDED(result) ? vmm_dxcore_factory(riid, factory) : result;
}

const IDXCoreAdapter1Vtbl vmm_dxcore_adapter_functions = {
	.QueryInterface = query_interface,
	.AddRef = add_reference,
	.Release = release,
	.IsValid = is_valid,
	.IsAttributeSupported = is_attribute_supported,
	.IsPropertySupported = vmm_dxcore_has_property,
	.GetProperty = vmm_dxcore_property,
	.GetPropertySize = vmm_dxcore_property_size,
	.IsQueryStateSupported = vmm_dxcore_has_state,
	.QueryState = vmm_dxcore_query_state,
	.IsSetStateSupported = vmm_dxcore_can_set_state,
	.SetState = vmm_dxcore_set_state,
	.GetFactory = get_factory,
	.GetPropertyWithInput = vmm_dxcore_property_with_input,
};

bool vmm_dxcore_is_adapter(const struct IUnknown *object)
{
	return ((const IDXCoreAdapter1 *)(const void *)object)->lpVtbl ==
	       &vmm_dxcore_adapter_functions;
}
