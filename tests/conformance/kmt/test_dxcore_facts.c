/* SPDX-License-Identifier: MIT */
/* DXCore: what an adapter object says about its adapter, and where it comes from. */
#define _GNU_SOURCE /* fileno, setenv */

#include "dxcore_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct vmm_property {
	uint32_t property;
	size_t bytes;
} sizes[] = {
	{DXCoreAdapterProperty_InstanceLuid, 8},
	{DXCoreAdapterProperty_DriverVersion, 8},
	{DXCoreAdapterProperty_HardwareID, 16},
	{DXCoreAdapterProperty_KmdModelVersion, 4},
	{DXCoreAdapterProperty_ComputePreemptionGranularity, 2},
	{DXCoreAdapterProperty_GraphicsPreemptionGranularity, 2},
	{DXCoreAdapterProperty_DedicatedAdapterMemory, 8},
	{DXCoreAdapterProperty_DedicatedSystemMemory, 8},
	{DXCoreAdapterProperty_SharedSystemMemory, 8},
	{DXCoreAdapterProperty_AcgCompatible, 1},
	{DXCoreAdapterProperty_IsHardware, 1},
	{DXCoreAdapterProperty_IsIntegrated, 1},
	{DXCoreAdapterProperty_IsDetachable, 1},
	{DXCoreAdapterProperty_HardwareIDParts, 20},
	{DXCoreAdapterProperty_PhysicalAdapterCount, 4},
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static HRESULT get(IDXCoreAdapter1 *adapter, uint32_t property, void *data, size_t size)
{
	return adapter->lpVtbl->GetProperty(adapter, (DXCoreAdapterProperty)property, size, data);
}

static uint64_t number(IDXCoreAdapter1 *adapter, uint32_t property)
{
	uint64_t value = UINT64_MAX;

	assert_int_equal(get(adapter, property, &value, sizeof(value)), S_OK);
	return value; /* little-endian, and the rest of the buffer is zero */
}

static HRESULT query(D3DKMT_HANDLE adapter, uint32_t type, void *data, size_t size)
{
	const D3DKMT_QUERYADAPTERINFO args = {.hAdapter = adapter,
					      .Type = (KMTQUERYADAPTERINFOTYPE)type,
					      .pPrivateDriverData = data,
					      .PrivateDriverDataSize = (UINT)size};

	return D3DKMTQueryAdapterInfo(&args);
}

static void dxc_14_properties_are_what_the_d3dkmt_queries_answer(void **state)
{
	struct dxcore_world w;
	D3DKMT_SEGMENTSIZEINFO memory;
	D3DKMT_WDDM_1_2_CAPS caps;
	char text[64];
	size_t size = 0;

	dxcore_start(&w, state);
	IDXCoreAdapter1 *a = dxcore_first(&w);

	for (uint32_t i = 0; i < SIZES; i++) {
		const DXCoreAdapterProperty property = (DXCoreAdapterProperty)sizes[i].property;

		assert_true(a->lpVtbl->IsPropertySupported(a, property));
		assert_int_equal(a->lpVtbl->GetPropertySize(a, property, &size), S_OK);
		assert_int_equal(size, sizes[i].bytes);
	}
	assert_int_equal(query(w.kmt.adapter, KMTQAITYPE_GETSEGMENTSIZE, &memory, sizeof(memory)),
			 0);
	assert_int_equal(query(w.kmt.adapter, KMTQAITYPE_WDDM_1_2_CAPS, &caps, sizeof(caps)), 0);
	assert_int_equal(number(a, DXCoreAdapterProperty_DedicatedAdapterMemory),
			 memory.DedicatedVideoMemorySize);
	assert_int_not_equal(memory.DedicatedVideoMemorySize, 0);
	assert_int_equal(number(a, DXCoreAdapterProperty_DedicatedSystemMemory),
			 memory.DedicatedSystemMemorySize);
	assert_int_equal(number(a, DXCoreAdapterProperty_SharedSystemMemory),
			 memory.SharedSystemMemorySize);
	assert_int_equal(number(a, DXCoreAdapterProperty_GraphicsPreemptionGranularity),
			 caps.PreemptionCaps.GraphicsPreemptionGranularity);
	assert_int_equal(number(a, DXCoreAdapterProperty_ComputePreemptionGranularity),
			 caps.PreemptionCaps.ComputePreemptionGranularity);
	assert_int_equal(number(a, DXCoreAdapterProperty_KmdModelVersion),
			 KMT_DRIVERVERSION_WDDM_1_3);
	assert_int_equal(number(a, DXCoreAdapterProperty_PhysicalAdapterCount), 1);
	assert_int_equal(number(a, DXCoreAdapterProperty_IsHardware), 0);
	assert_int_equal(number(a, DXCoreAdapterProperty_AcgCompatible), 0);
	const DXCoreAdapterProperty description = DXCoreAdapterProperty_DriverDescription;
	assert_int_equal(a->lpVtbl->GetPropertySize(a, description, &size), S_OK);
	assert_int_equal(size, sizeof("vidmm adapter"));
	assert_int_equal(get(a, description, text, size), S_OK);
	assert_string_equal(text, "vidmm adapter");
	a->lpVtbl->Release(a);
	dxcore_stop(&w);
}

/* Before WDDM 1.2 a miniport reports no granularity. */
static void dxc_14_an_older_miniport_has_no_preemption_granularity(void **state)
{
	static const struct vidmm_registry_value old[] = {
		{"InterfaceVersion", DXGKDDI_INTERFACE_VERSION_WIN7}};
	struct dxcore_world w;
	uint16_t value = 9;

	dxcore_start(&w, state);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, old, 1);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *a = dxcore_adapter(list, 1);

	assert_int_equal(number(a, DXCoreAdapterProperty_KmdModelVersion),
			 KMT_DRIVERVERSION_WDDM_1_1);
	assert_false(a->lpVtbl->IsPropertySupported(
		a, DXCoreAdapterProperty_GraphicsPreemptionGranularity));
	dxcore_told(
		&w,
		get(a, DXCoreAdapterProperty_GraphicsPreemptionGranularity, &value, sizeof(value)),
		DXGI_ERROR_UNSUPPORTED, "DXC-15");
	assert_int_equal(value, 9);
	list->lpVtbl->Release(list);
	a->lpVtbl->Release(a);
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void dxc_15_unknown_properties_and_small_buffers_are_refused(void **state)
{
	struct dxcore_world w;
	uint8_t data[64];
	size_t size = 99;

	dxcore_start(&w, state);
	IDXCoreAdapter1 *a = dxcore_first(&w);

	memset(data, 0xAB, sizeof(data));
	for (uint32_t i = 0; i < SIZES; i++) {
		dxcore_found(&w, get(a, sizes[i].property, data, sizes[i].bytes - 1), E_INVALIDARG,
			     "DXC-15");
		assert_int_equal(data[0], 0xAB);
		assert_int_equal(get(a, sizes[i].property, data, sizes[i].bytes), S_OK);
		assert_int_equal(data[sizes[i].bytes], 0xAB);
		memset(data, 0xAB, sizeof(data));
	}
	dxcore_found(&w, get(a, DXCoreAdapterProperty_InstanceLuid, NULL, 8), E_POINTER, "DXC-15");
	dxcore_found(&w, a->lpVtbl->GetPropertySize(a, DXCoreAdapterProperty_InstanceLuid, NULL),
		     E_POINTER, "DXC-15");
	for (uint32_t property = DXCoreAdapterProperty_AdapterEngineCount; property < 20;
	     property++) {
		const DXCoreAdapterProperty p = (DXCoreAdapterProperty)property;

		assert_false(a->lpVtbl->IsPropertySupported(a, p));
		if (property > DXCoreAdapterProperty_AdapterEngineName) {
			dxcore_found(&w, get(a, p, data, 8), DXGI_ERROR_INVALID_CALL, "DXC-15");
			dxcore_found(&w, a->lpVtbl->GetPropertySize(a, p, &size),
				     DXGI_ERROR_INVALID_CALL, "DXC-15");
		} else {
			dxcore_told(&w, get(a, p, data, 8), DXGI_ERROR_UNSUPPORTED, "DXC-15");
			dxcore_told(&w, a->lpVtbl->GetPropertySize(a, p, &size),
				    DXGI_ERROR_UNSUPPORTED, "DXC-15");
		}
		assert_int_equal(data[0], 0xAB);
		assert_int_equal(size, 99);
	}
	a->lpVtbl->Release(a);
	dxcore_stop(&w);
}

static void dxc_16_properties_can_be_read_after_the_end_of_the_adapter(void **state)
{
	struct dxcore_world w;
	uint8_t data[12];

	dxcore_start(&w, state);
	IDXCoreAdapter1 *a = dxcore_first(&w);

	vidmm_adapter_stop(w.kmt.client.adapter);
	w.kmt.client.adapter = NULL;
	assert_false(a->lpVtbl->IsValid(a));
	memset(data, 0xAB, sizeof(data));
	assert_int_equal(get(a, DXCoreAdapterProperty_InstanceLuid, data, sizeof(data)), S_OK);
	assert_memory_equal(data, &w.kmt.luid, sizeof(w.kmt.luid));
	for (size_t i = sizeof(w.kmt.luid); i < sizeof(data); i++)
		assert_int_equal(data[i], 0); /* the whole buffer is zeroed first */
	assert_true(a->lpVtbl->IsAttributeSupported(a, &d3d12_graphics));
	a->lpVtbl->Release(a);
	dxcore_stop(&w);
}

static void dxc_28_a_property_without_input_refuses_one(void **state)
{
	struct dxcore_world w;
	LUID luid;
	uint32_t input = 0, count;

	dxcore_start(&w, state);
	IDXCoreAdapter1 *a = dxcore_first(&w);
	const DXCoreAdapterProperty property = DXCoreAdapterProperty_InstanceLuid;

	assert_int_equal(a->lpVtbl->GetPropertyWithInput(a, property, 0, NULL, sizeof(luid), &luid),
			 S_OK);
	assert_int_equal(luid.LowPart, w.kmt.luid.LowPart);
	dxcore_found(&w,
		     a->lpVtbl->GetPropertyWithInput(a, property, sizeof(input), &input,
						     sizeof(luid), &luid),
		     E_INVALIDARG, "DXC-28");
	dxcore_told(&w,
		    a->lpVtbl->GetPropertyWithInput(a, DXCoreAdapterProperty_AdapterEngineCount,
						    sizeof(input), &input, sizeof(count), &count),
		    DXGI_ERROR_UNSUPPORTED, "DXC-15");
	a->lpVtbl->Release(a);
	dxcore_stop(&w);
}

/* ---- reports of mistakes ---- */

/*
 * Asks for a list without a place for it, which is a mistake of DXC-02. Stores what the call prints
 * on the standard error stream.
 */
static void make_a_mistake(struct dxcore_world *w, const char *debug, char *text, size_t size)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);

	assert_non_null(file);
	assert_int_equal(debug ? setenv("VIDMM_DEBUG", debug, 1) : unsetenv("VIDMM_DEBUG"), 0);
	(void)fflush(stderr);
	assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
	HRESULT result = w->factory->lpVtbl->CreateAdapterList(w->factory, 1, &d3d12_graphics,
							       &iid_list, NULL);
	(void)fflush(stderr);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(unsetenv("VIDMM_DEBUG"), 0);
	assert_int_equal(result, E_POINTER);
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	(void)fclose(file);
	close(saved);
}

/* A client in the process of its host has events. They are all that it gets from DXCore. */
static void dxc_29_findings_are_events_of_the_calling_process(void **state)
{
	struct dxcore_world w;
	char text[256];

	dxcore_start(&w, state);
	make_a_mistake(&w, "1", text, sizeof(text));
	kmt_found(&w.kmt, "DXC-02");
	assert_string_equal(text, "");
	dxcore_stop(&w);
}

/* Without a subscriber, findings reach a program only as lines of VIDMM_DEBUG=1. */
static void dxc_29_without_events_vidmm_debug_prints_findings(void **state)
{
	struct dxcore_world w;
	char text[256];

	dxcore_start(&w, state);
	vidmm_d3dkmt_attach(NULL);
	make_a_mistake(&w, "1", text, sizeof(text));
	assert_int_equal(strncmp(text, "vidmm: DXC-02: ", 15), 0);
	make_a_mistake(&w, "0", text, sizeof(text));
	assert_string_equal(text, "");
	make_a_mistake(&w, NULL, text, sizeof(text));
	assert_string_equal(text, "");
	vidmm_d3dkmt_attach(w.kmt.process);
	assert_int_equal(w.kmt.client.findings, 0);
	dxcore_stop(&w);
}

/* ---- settings ---- */

static const struct vidmm_registry_value intel[] = {
	{"VidmmVendorId", 0x8086},
	{"VidmmDeviceId", 0x56A0},
	{"VidmmSubsystemVendorId", 0x1849},
	{"VidmmSubsystemId", 0x6004},
	{"VidmmRevisionId", 8},
	{"VidmmDriverVersion", 0x001F000000651C07ull}, /* 31.0.101.7175 */
	{"VidmmHardware", 1},
	{"VidmmDetachable", 1},
	{"VidmmIntegrated", 1},
};
enum { INTEL = sizeof(intel) / sizeof(intel[0]) };

static void dxc_17_dxc_18_dxc_26_settings_give_an_adapter_its_identity(void **state)
{
	struct dxcore_world w;
	DXCoreHardwareID id;
	DXCoreHardwareIDParts parts;
	D3DKMT_KMD_DRIVER_VERSION version;

	dxcore_start(&w, state);
	struct vidmm_adapter *second = dxcore_add(&w, "Arc", intel, INTEL);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *a = dxcore_adapter(list, 1), *plain = dxcore_adapter(list, 0);
	D3DKMT_OPENADAPTERFROMLUID open = {.AdapterLuid = dxcore_luid(a)};

	assert_int_equal(get(a, DXCoreAdapterProperty_HardwareID, &id, sizeof(id)), S_OK);
	assert_int_equal(id.vendorID, 0x8086);
	assert_int_equal(id.deviceID, 0x56A0);
	assert_int_equal(id.subSysID, 0x60041849);
	assert_int_equal(id.revision, 8);
	assert_int_equal(get(a, DXCoreAdapterProperty_HardwareIDParts, &parts, sizeof(parts)),
			 S_OK);
	assert_int_equal(parts.vendorID, 0x8086);
	assert_int_equal(parts.deviceID, 0x56A0);
	assert_int_equal(parts.subSystemID, 0x6004);
	assert_int_equal(parts.subVendorID, 0x1849);
	assert_int_equal(parts.revisionID, 8);
	assert_int_equal(number(a, DXCoreAdapterProperty_DriverVersion), 0x001F000000651C07ull);
	assert_int_equal(number(a, DXCoreAdapterProperty_IsHardware), 1);
	assert_int_equal(number(a, DXCoreAdapterProperty_IsDetachable), 1);
	assert_int_equal(number(a, DXCoreAdapterProperty_IsIntegrated), 1);
	assert_int_equal(D3DKMTOpenAdapterFromLuid(&open), STATUS_SUCCESS);
	assert_int_equal(
		query(open.hAdapter, KMTQAITYPE_KMD_DRIVER_VERSION, &version, sizeof(version)),
		STATUS_SUCCESS);
	assert_int_equal(version.DriverVersion.QuadPart, 0x001F000000651C07ull);
	/* Without settings: ids that no hardware has, and the version of the library. */
	assert_int_equal(get(plain, DXCoreAdapterProperty_HardwareID, &id, sizeof(id)), S_OK);
	assert_int_equal(id.vendorID, 0x1D4D);
	assert_int_equal(number(plain, DXCoreAdapterProperty_DriverVersion),
			 (uint64_t)VIDMM_VERSION_MAJOR << 48 | (uint64_t)VIDMM_VERSION_MINOR << 32 |
				 (uint64_t)VIDMM_VERSION_PATCH << 16);
	a->lpVtbl->Release(a);
	plain->lpVtbl->Release(plain);
	list->lpVtbl->Release(list);
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void dxc_26_a_setting_that_is_unknown_or_out_of_range_is_refused(void **state)
{
	static const struct vidmm_registry_value wrong[] = {
		{"VidmmVendorID", 1},
		{"VidmmVendorId", 0xFFFF},
		{"VidmmRevisionId", 256},
		{"VidmmHardware", 2},
		{"VidmmHardwareType", 3},
		{"VidmmHardwareType", 0},
		{"VidmmHardwareType", 0x100000001ull},
		{"VidmmAttributes", 0x20},
	};
	static const uint64_t bar = 1 * MIB;
	struct dxcore_world w;

	dxcore_start(&w, state);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
							      .driver_entry = softgpu_driver_entry,
							      .bar_sizes = &bar,
							      .bar_count = 1,
							      .registry = &wrong[i],
							      .registry_count = 1};
		struct vidmm_adapter *adapter = NULL;

		assert_int_equal(vidmm_adapter_start(w.kmt.client.host, &options, &adapter),
				 STATUS_INVALID_PARAMETER);
		assert_null(adapter);
		kmt_told(&w.kmt, STATUS_INVALID_PARAMETER, "DXC-26");
	}
	dxcore_stop(&w);
}

/* Adapters with one setting, and the attributes that each then has, as bits in this order. */
static void dxc_20_dxc_21_attributes_follow_the_hardware_type_and_the_settings(void **state)
{
	const GUID *const all[] = {&d3d11_graphics, &d3d12_graphics, &d3d12_compute,
				   &d3d12_ml,       &d3d12_media,    &type_gpu,
				   &type_compute,   &type_npu,       &type_media};
	static const struct {
		struct vidmm_registry_value setting[2];
		uint32_t attributes;
	} cases[] = {
		{{{"VidmmHardwareType", 1}, {"VidmmHardware", 0}}, 0x27},
		{{{"VidmmHardwareType", 2}, {"VidmmHardware", 0}}, 0x44},
		{{{"VidmmHardwareType", 4}, {"VidmmHardware", 0}}, 0x84},
		{{{"VidmmHardwareType", 8}, {"VidmmHardware", 0}}, 0x110},
		{{{"VidmmHardwareType", 4}, {"VidmmAttributes", 0x0C}}, 0x8C},
		{{{"VidmmAttributes", 0}, {"VidmmHardware", 0}}, 0x20},
	};
	struct dxcore_world w;

	dxcore_start(&w, state);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vidmm_adapter *added = dxcore_add(&w, NULL, cases[i].setting, 2);
		D3DKMT_ADAPTERINFO info[2];
		D3DKMT_ENUMADAPTERS2 every = {.NumAdapters = 2, .pAdapters = info};
		IDXCoreAdapter1 *a = NULL;
		uint32_t found = 0;

		assert_int_equal(D3DKMTEnumAdapters2(&every), STATUS_SUCCESS);
		assert_int_equal(w.factory->lpVtbl->GetAdapterByLuid(w.factory,
								     &info[1].AdapterLuid,
								     &iid_adapter, (void **)&a),
				 S_OK);
		for (uint32_t b = 0; b < sizeof(all) / sizeof(all[0]); b++)
			found |= (uint32_t)a->lpVtbl->IsAttributeSupported(a, all[b]) << b;
		assert_int_equal(found, cases[i].attributes);
		assert_false(a->lpVtbl->IsAttributeSupported(a, &nothing));
		assert_false(a->lpVtbl->IsAttributeSupported(a, NULL));
		assert_int_equal(a->lpVtbl->Release(a), 0);
		vidmm_adapter_stop(added);
	}
	dxcore_stop(&w);
}

/* ---- states ---- */

static HRESULT query_state(IDXCoreAdapter1 *a, uint32_t state, void *data, size_t size)
{
	return a->lpVtbl->QueryState(a, (DXCoreAdapterState)state, 0, NULL, size, data);
}

static void dxc_19_states_that_are_unknown_or_not_supported_are_refused(void **state)
{
	struct dxcore_world w;
	uint8_t data[64];

	dxcore_start(&w, state);
	IDXCoreAdapter1 *a = dxcore_first(&w);
	const uint32_t update = DXCoreAdapterState_IsDriverUpdateInProgress;

	memset(data, 0xAB, sizeof(data));
	assert_true(a->lpVtbl->IsQueryStateSupported(a, (DXCoreAdapterState)update));
	assert_int_equal(query_state(a, update, data, 2), S_OK);
	assert_int_equal(data[0], 0);
	assert_int_equal(data[1], 0);
	assert_int_equal(data[2], 0xAB);
	dxcore_found(&w, query_state(a, update, data, 0), E_INVALIDARG, "DXC-19");
	dxcore_found(&w, query_state(a, update, NULL, 1), E_POINTER, "DXC-19");
	/* softgpu is of WDDM 1.x and has no budgets; D3DKMT functions count no usage. */
	for (uint32_t s = DXCoreAdapterState_AdapterMemoryBudget; s < 13; s++) {
		assert_false(a->lpVtbl->IsQueryStateSupported(a, (DXCoreAdapterState)s));
		if (s > DXCoreAdapterState_AdapterMemoryFrequencyHertz)
			dxcore_found(&w, query_state(a, s, data, sizeof(data)),
				     DXGI_ERROR_INVALID_CALL, "DXC-19");
		else
			dxcore_told(&w, query_state(a, s, data, sizeof(data)),
				    DXGI_ERROR_UNSUPPORTED, "DXC-19");
		assert_int_equal(data[2], 0xAB);
	}
	vidmm_adapter_stop(w.kmt.client.adapter);
	w.kmt.client.adapter = NULL;
	data[0] = 0xAB;
	dxcore_told(&w, query_state(a, update, data, 2), DXGI_ERROR_DEVICE_REMOVED, "DXC-19");
	assert_int_equal(data[0], 0xAB);
	a->lpVtbl->Release(a);
	dxcore_stop(&w);
}

static void dxc_23_no_state_can_be_set(void **state)
{
	struct dxcore_world w;
	uint64_t data = 0;

	dxcore_start(&w, state);
	IDXCoreAdapter1 *a = dxcore_first(&w);

	for (uint32_t s = 0; s < 13; s++) {
		const DXCoreAdapterState which = (DXCoreAdapterState)s;

		assert_false(a->lpVtbl->IsSetStateSupported(a, which));
		HRESULT result = a->lpVtbl->SetState(a, which, 0, NULL, sizeof(data), &data);
		if (s > DXCoreAdapterState_AdapterMemoryFrequencyHertz)
			dxcore_found(&w, result, DXGI_ERROR_INVALID_CALL, "DXC-23");
		else
			dxcore_told(&w, result, DXGI_ERROR_UNSUPPORTED, "DXC-23");
	}
	a->lpVtbl->Release(a);
	dxcore_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dxc_14_properties_are_what_the_d3dkmt_queries_answer),
		ON_BOTH(dxc_14_an_older_miniport_has_no_preemption_granularity),
		ON_BOTH(dxc_15_unknown_properties_and_small_buffers_are_refused),
		ON_BOTH(dxc_16_properties_can_be_read_after_the_end_of_the_adapter),
		ON_BOTH(dxc_17_dxc_18_dxc_26_settings_give_an_adapter_its_identity),
		ON_BOTH(dxc_19_states_that_are_unknown_or_not_supported_are_refused),
		ON_BOTH(dxc_20_dxc_21_attributes_follow_the_hardware_type_and_the_settings),
		ON_BOTH(dxc_23_no_state_can_be_set),
		ON_BOTH(dxc_26_a_setting_that_is_unknown_or_out_of_range_is_refused),
		ON_BOTH(dxc_28_a_property_without_input_refuses_one),
		ON_BOTH(dxc_29_findings_are_events_of_the_calling_process),
		ON_BOTH(dxc_29_without_events_vidmm_debug_prints_findings),
	};

	return cmocka_run_group_tests_name("dxcore_facts", tests, NULL, NULL);
}
