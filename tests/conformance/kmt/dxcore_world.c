/* SPDX-License-Identifier: MIT */
#include "dxcore_world.h"

#include <string.h>

const GUID iid_unknown = DXCORE_IID_IUNKNOWN, iid_factory = DXCORE_IID_ADAPTER_FACTORY,
	   iid_factory1 = DXCORE_IID_ADAPTER_FACTORY1, iid_list = DXCORE_IID_ADAPTER_LIST,
	   iid_adapter = DXCORE_IID_ADAPTER, iid_adapter1 = DXCORE_IID_ADAPTER1;
const GUID d3d11_graphics = DXCORE_D3D11_GRAPHICS, d3d12_graphics = DXCORE_D3D12_GRAPHICS,
	   d3d12_compute = DXCORE_D3D12_CORE_COMPUTE, d3d12_ml = DXCORE_D3D12_GENERIC_ML,
	   d3d12_media = DXCORE_D3D12_GENERIC_MEDIA;
const GUID type_gpu = DXCORE_HARDWARE_TYPE_GPU,
	   type_compute = DXCORE_HARDWARE_TYPE_COMPUTE_ACCELERATOR,
	   type_npu = DXCORE_HARDWARE_TYPE_NPU, type_media = DXCORE_HARDWARE_TYPE_MEDIA_ACCELERATOR,
	   nothing = {.Data1 = 1};

void dxcore_start(struct dxcore_world *w, void **state)
{
	kmt_start(&w->kmt, state);
	assert_int_equal(DXCoreCreateAdapterFactory(&iid_factory1, (void **)&w->factory), S_OK);
	assert_non_null(w->factory);
}

/* The test has released all other references to the factory. */
void dxcore_stop(struct dxcore_world *w)
{
	assert_int_equal(w->factory->lpVtbl->Release(w->factory), 0);
	kmt_stop(&w->kmt);
}

void dxcore_found(struct dxcore_world *w, HRESULT result, HRESULT expected, const char *rule)
{
	assert_int_equal(result, expected);
	kmt_found(&w->kmt, rule);
}

void dxcore_told(struct dxcore_world *w, HRESULT result, HRESULT expected, const char *text)
{
	assert_int_equal(result, expected);
	kmt_told(&w->kmt, expected, text);
}

struct vidmm_adapter *dxcore_add(struct dxcore_world *w, const char *description,
				 const struct vidmm_registry_value *values, uint32_t count)
{
	static const uint64_t bar = 1 * MIB;
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar,
						      .bar_count = 1,
						      .registry = values,
						      .registry_count = count,
						      .description = description,
						      .tdr = &client_no_tdr};
	struct vidmm_adapter *added = NULL;

	assert_int_equal(vidmm_adapter_start(w->kmt.client.host, &options, &added), 0);
	return added;
}

IDXCoreAdapterList *dxcore_list(struct dxcore_world *w, const GUID *attribute)
{
	IDXCoreAdapterList *list = NULL;

	assert_int_equal(w->factory->lpVtbl->CreateAdapterList(w->factory, 1, attribute, &iid_list,
							       (void **)&list),
			 S_OK);
	assert_non_null(list);
	return list;
}

IDXCoreAdapter1 *dxcore_adapter(IDXCoreAdapterList *list, uint32_t index)
{
	IDXCoreAdapter1 *adapter = NULL;

	assert_int_equal(list->lpVtbl->GetAdapter(list, index, &iid_adapter, (void **)&adapter),
			 S_OK);
	assert_non_null(adapter);
	return adapter;
}

IDXCoreAdapter1 *dxcore_first(struct dxcore_world *w)
{
	IDXCoreAdapterList *list = dxcore_list(w, &d3d12_graphics);
	IDXCoreAdapter1 *adapter = dxcore_adapter(list, 0);

	assert_int_equal(list->lpVtbl->Release(list), 0);
	return adapter;
}

LUID dxcore_luid(IDXCoreAdapter1 *adapter)
{
	LUID luid;

	assert_int_equal(adapter->lpVtbl->GetProperty(adapter, DXCoreAdapterProperty_InstanceLuid,
						      sizeof(luid), &luid),
			 S_OK);
	return luid;
}
