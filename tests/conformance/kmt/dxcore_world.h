/* SPDX-License-Identifier: MIT */
/* The world of a D3DKMT client (kmt_world.h) with a DXCore factory, and adapters with settings. */
#ifndef VMM_TESTS_DXCORE_WORLD_H
#define VMM_TESTS_DXCORE_WORLD_H

#include "kmt_world.h"

#include <dxcore.h>

struct dxcore_world {
	struct kmt_world kmt;
	IDXCoreAdapterFactory1 *factory;
};

extern const GUID iid_unknown, iid_factory, iid_factory1, iid_list, iid_adapter, iid_adapter1;
extern const GUID d3d11_graphics, d3d12_graphics, d3d12_compute, d3d12_ml, d3d12_media;
extern const GUID type_gpu, type_compute, type_npu, type_media, nothing;

void dxcore_start(struct dxcore_world *w, void **state);
void dxcore_stop(struct dxcore_world *w);
/* Asserts the result, and that it came with a finding of that rule. */
void dxcore_found(struct dxcore_world *w, HRESULT result, HRESULT expected, const char *rule);
/* Asserts the result, and that it came with a reason that contains the text. */
void dxcore_told(struct dxcore_world *w, HRESULT result, HRESULT expected, const char *text);

/* One more adapter on softgpu, with these registry values besides those that it needs. */
struct vidmm_adapter *dxcore_add(struct dxcore_world *w, const char *description,
				 const struct vidmm_registry_value *values, uint32_t count);
/* The list of all adapters that support an attribute. */
IDXCoreAdapterList *dxcore_list(struct dxcore_world *w, const GUID *attribute);
IDXCoreAdapter1 *dxcore_adapter(IDXCoreAdapterList *list, uint32_t index);
/* The first adapter, without a list. */
IDXCoreAdapter1 *dxcore_first(struct dxcore_world *w);
LUID dxcore_luid(IDXCoreAdapter1 *adapter);

#endif
