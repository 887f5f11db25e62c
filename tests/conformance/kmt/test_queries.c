/* SPDX-License-Identifier: MIT */
/* D3DKMTQueryAdapterInfo, and enumeration of adapters. */
#include "kmt_world.h"

#include <string.h>
#include <wchar.h>

enum { DWORD_TYPE = 4, STRING_TYPE = 1, QWORD_TYPE = 11 };
#define HEADER offsetof(D3DDDI_QUERYREGISTRY_INFO, OutputDword)

static NTSTATUS ask(D3DKMT_HANDLE adapter, uint32_t type, void *data, size_t size)
{
	const D3DKMT_QUERYADAPTERINFO args = {.hAdapter = adapter,
					      .Type = (KMTQUERYADAPTERINFOTYPE)type,
					      .pPrivateDriverData = data,
					      .PrivateDriverDataSize = (UINT)size};

	return D3DKMTQueryAdapterInfo(&args);
}

/* A second adapter that describes itself. */
static vidmm_status start_second(struct kmt_world *w, const char *description, const char *store,
				 const struct vidmm_registry_value *values, uint32_t count,
				 struct vidmm_adapter **second)
{
	static const uint64_t bar = 1 * MIB;
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar,
						      .bar_count = 1,
						      .registry = values,
						      .registry_count = count,
						      .description = description,
						      .driver_store = store,
						      .tdr = &client_no_tdr};

	return vidmm_adapter_start(w->client.host, &options, second);
}

static D3DKMT_HANDLE open_second(LUID *luid)
{
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};

	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 2);
	if (luid)
		*luid = info[1].AdapterLuid;
	return info[1].hAdapter;
}

/* ---- enumeration ---- */

static void adp_03_adp_04_every_enumeration_returns_a_render_adapter(void **state)
{
	struct kmt_world w;

	kmt_start(&w, state);
	for (uint64_t filter = 0; filter < 4; filter++) {
		D3DKMT_ADAPTERINFO info[2];
		D3DKMT_ENUMADAPTERS3 some = {
			.Filter.Value = filter, .NumAdapters = 2, .pAdapters = info};

		memset(info, 0xAB, sizeof(info));
		assert_int_equal(D3DKMTEnumAdapters3(&some), STATUS_SUCCESS);
		assert_int_equal(some.NumAdapters, 1);
		assert_int_equal(info[0].AdapterLuid.LowPart, w.luid.LowPart);
		assert_int_equal(info[0].NumOfSources, 0); /* it is render-only */
		assert_int_equal(info[0].bPrecisePresentRegionsPreferred, 0);
	}
	kmt_stop(&w);
}

enum { CROWD = 17 };

static void adp_09_zero_adapters_succeed_and_seventeen_are_refused(void **state)
{
	struct kmt_world w;
	struct vidmm_adapter *more[CROWD - 1];
	D3DKMT_ADAPTERINFO info[CROWD];
	D3DKMT_ENUMADAPTERS3 all = {.NumAdapters = 16, .pAdapters = info};

	kmt_start(&w, state);
	for (uint32_t i = 0; i < CROWD - 1; i++)
		assert_int_equal(start_second(&w, NULL, NULL, NULL, 0, &more[i]), 0);
	assert_int_equal(D3DKMTEnumAdapters3(&all), STATUS_BUFFER_TOO_SMALL);
	kmt_found(&w, "ADP-01");
	all.NumAdapters = CROWD;
	assert_int_equal(D3DKMTEnumAdapters3(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, CROWD);
	for (uint32_t i = 0; i < CROWD - 1; i++)
		vidmm_adapter_stop(more[i]);
	/* No adapters: the only adapter of the host has stopped. */
	struct vidmm_host *host;
	struct vidmm_process *process;
	const struct vidmm_host_options options = {.struct_size = sizeof(options),
						   .kind = VIDMM_HOST_SIM};
	assert_int_equal(vidmm_host_create(&options, &host), 0);
	assert_int_equal(vidmm_process_open(host, "alone", &process), 0);
	vidmm_d3dkmt_attach(process);
	all.NumAdapters = 16;
	assert_int_equal(D3DKMTEnumAdapters3(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 0);
	vidmm_process_close(process);
	vidmm_host_destroy(host);
	kmt_stop(&w);
}

/* ---- records ---- */

static const struct {
	uint32_t type;
	size_t bytes;
} built[] = {
	{KMTQAITYPE_GETSEGMENTSIZE, 24},
	{KMTQAITYPE_ADAPTERADDRESS, 12},
	{KMTQAITYPE_ADAPTERADDRESS_RENDER, 12},
	{KMTQAITYPE_CHECKDRIVERUPDATESTATUS, 4},
	{KMTQAITYPE_CHECKDRIVERUPDATESTATUS_RENDER, 4},
	{KMTQAITYPE_DRIVERVERSION, 4},
	{KMTQAITYPE_DRIVERVERSION_RENDER, 4},
	{KMTQAITYPE_ADAPTERTYPE, 4},
	{KMTQAITYPE_ADAPTERTYPE_RENDER, 4},
	{KMTQAITYPE_UMD_DRIVER_VERSION, 8},
	{KMTQAITYPE_KMD_DRIVER_VERSION, 8},
	{KMTQAITYPE_WDDM_1_2_CAPS, 12},
	{KMTQAITYPE_WDDM_1_2_CAPS_RENDER, 12},
	{KMTQAITYPE_WDDM_1_3_CAPS, 4},
	{KMTQAITYPE_WDDM_1_3_CAPS_RENDER, 4},
	{KMTQAITYPE_PHYSICALADAPTERCOUNT, 4},
	{KMTQAITYPE_PHYSICALADAPTERDEVICEIDS, 28},
	{KMTQAITYPE_GETSEGMENTGROUPSIZE, 56},
	{KMTQAITYPE_QUERY_ADAPTER_UNIQUE_GUID, 160},
	{KMTQAITYPE_DRIVER_DESCRIPTION, 16384},
	{KMTQAITYPE_DRIVER_DESCRIPTION_RENDER, 16384},
	{KMTQAITYPE_PARAVIRTUALIZATION_RENDER, 1},
	{KMTQAITYPE_CROSSADAPTERRESOURCE_SUPPORT, 4},
};

static void qai_01_qai_05_every_record_is_written_whole_or_not_at_all(void **state)
{
	static uint8_t record[16384 + 8];
	struct kmt_world w;

	kmt_start(&w, state);
	for (size_t i = 0; i < sizeof(built) / sizeof(built[0]); i++) {
		memset(record, 0, built[i].bytes);
		memset(record + built[i].bytes, 0x5A, 8);
		assert_int_equal(ask(w.adapter, built[i].type, record, built[i].bytes - 1),
				 STATUS_INVALID_PARAMETER);
		kmt_found(&w, "QAI-01");
		assert_int_equal(ask(w.adapter, built[i].type, NULL, built[i].bytes),
				 STATUS_INVALID_PARAMETER);
		kmt_found(&w, "QAI-01");
		for (size_t byte = 0; byte < built[i].bytes; byte++)
			assert_int_equal(record[byte], 0);
		assert_int_equal(ask(w.adapter, built[i].type, record, built[i].bytes + 8), 0);
		assert_int_equal(record[built[i].bytes], 0x5A); /* QAI-02 */
	}
	kmt_stop(&w);
}

static void qai_07_adp_10_queries_that_clients_ask_of_every_adapter_succeed(void **state)
{
	D3DKMT_QUERY_DEVICE_IDS ids = {0};
	D3DKMT_DRIVER_DESCRIPTION text;
	uint32_t kind;
	struct kmt_world w;

	kmt_start(&w, state);
	memset(&ids.DeviceIds, 0xAB, sizeof(ids.DeviceIds));
	assert_int_equal(ask(w.adapter, KMTQAITYPE_PHYSICALADAPTERDEVICEIDS, &ids, sizeof(ids)), 0);
	/*
	 * No vendor for which a client would load a driver: 0x1414 is the software GPU, the others
	 * are hardware.
	 */
	assert_int_not_equal(ids.DeviceIds.VendorID, 0);
	assert_int_not_equal(ids.DeviceIds.VendorID, 0x1414);
	assert_int_not_equal(ids.DeviceIds.VendorID, 0x1002);
	assert_int_not_equal(ids.DeviceIds.VendorID, 0x8086);
	assert_int_equal(ids.DeviceIds.BusType, 5); /* PCIBus */
	assert_int_equal(ask(w.adapter, KMTQAITYPE_ADAPTERTYPE_RENDER, &kind, 4), 0);
	assert_int_equal(kind & 1, 1);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_DRIVER_DESCRIPTION, &text, sizeof(text)), 0);
	/* There is one physical adapter. */
	ids.PhysicalAdapterIndex = 1;
	assert_int_equal(ask(w.adapter, KMTQAITYPE_PHYSICALADAPTERDEVICEIDS, &ids, sizeof(ids)),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-07");
	D3DKMT_SEGMENTGROUPSIZEINFO groups = {.PhysicalAdapterIndex = 1};
	assert_int_equal(ask(w.adapter, KMTQAITYPE_GETSEGMENTGROUPSIZE, &groups, sizeof(groups)),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-07");
	kmt_stop(&w);
}

static void seg_05_group_sizes_add_up_to_the_segment_sizes(void **state)
{
	D3DKMT_SEGMENTGROUPSIZEINFO groups = {0};
	D3DKMT_SEGMENTSIZEINFO sizes;
	struct kmt_world w;

	kmt_start(&w, state);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_GETSEGMENTSIZE, &sizes, sizeof(sizes)), 0);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_GETSEGMENTGROUPSIZE, &groups, sizeof(groups)),
			 0);
	assert_memory_equal(&groups.LegacyInfo, &sizes, sizeof(sizes));
	assert_true(groups.LocalMemory == 4 * MIB);
	assert_true(groups.NonLocalMemory ==
		    sizes.DedicatedSystemMemorySize + sizes.SharedSystemMemorySize);
	assert_true(groups.NonBudgetMemory == 0);
	kmt_stop(&w);
}

static void two_adapters_have_different_addresses_and_guids(void **state)
{
	D3DKMT_ADAPTERADDRESS where[2];
	D3DKMT_QUERY_ADAPTER_UNIQUE_GUID guid[2];
	struct vidmm_adapter *second;
	struct kmt_world w;

	kmt_start(&w, state);
	assert_int_equal(start_second(&w, NULL, NULL, NULL, 0, &second), 0);
	const D3DKMT_HANDLE handle[2] = {w.adapter, open_second(NULL)};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			ask(handle[i], KMTQAITYPE_ADAPTERADDRESS, &where[i], sizeof(where[i])), 0);
		assert_int_equal(ask(handle[i], KMTQAITYPE_QUERY_ADAPTER_UNIQUE_GUID, &guid[i],
				     sizeof(guid[i])),
				 0);
		assert_int_equal(wcslen(guid[i].AdapterUniqueGUID), 38);
		assert_int_equal(guid[i].AdapterUniqueGUID[0], L'{');
		assert_int_equal(guid[i].AdapterUniqueGUID[37], L'}');
	}
	assert_memory_not_equal(&where[0], &where[1], sizeof(where[0]));
	assert_memory_not_equal(&guid[0], &guid[1], sizeof(guid[0]));
	vidmm_adapter_stop(second);
	kmt_stop(&w);
}

static void qai_06_a_description_is_printable_text(void **state)
{
	char longest[130];
	D3DKMT_DRIVER_DESCRIPTION text;
	struct vidmm_adapter *second;
	struct kmt_world w;

	kmt_start(&w, state);
	memset(longest, 'x', sizeof(longest));
	longest[129] = 0;
	assert_int_equal(start_second(&w, longest, NULL, NULL, 0, &second),
			 STATUS_INVALID_PARAMETER);
	longest[128] = 0;
	assert_int_equal(start_second(&w, "100% of it", NULL, NULL, 0, &second),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(start_second(&w, "two\nlines", NULL, NULL, 0, &second),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(start_second(&w, longest, NULL, NULL, 0, &second), 0);
	for (uint32_t type = KMTQAITYPE_DRIVER_DESCRIPTION;
	     type <= KMTQAITYPE_DRIVER_DESCRIPTION_RENDER; type++) {
		memset(&text, 0xFF, sizeof(text));
		assert_int_equal(ask(open_second(NULL), type, &text, sizeof(text)), 0);
		assert_int_equal(wcslen(text.DriverDescription), 128);
		assert_int_equal(text.DriverDescription[127], L'x');
		assert_int_equal(text.DriverDescription[4095], 0);
	}
	assert_int_equal(ask(w.adapter, KMTQAITYPE_DRIVER_DESCRIPTION, &text, sizeof(text)), 0);
	assert_true(wcslen(text.DriverDescription) > 0);
	assert_null(wcschr(text.DriverDescription, L'%'));
	vidmm_adapter_stop(second);
	kmt_stop(&w);
}

static void wddm_1_2_caps_are_those_of_the_miniport(void **state)
{
	static const struct vidmm_registry_value old = {"InterfaceVersion", 0x2005};
	D3DKMT_WDDM_1_2_CAPS caps;
	struct vidmm_adapter *second;
	struct kmt_world w;

	kmt_start(&w, state);
	memset(&caps, 0xFF, sizeof(caps));
	assert_int_equal(ask(w.adapter, KMTQAITYPE_WDDM_1_2_CAPS, &caps, sizeof(caps)), 0);
	/* softgpu's: no preemption, and engine reset. */
	assert_int_equal(caps.PreemptionCaps.GraphicsPreemptionGranularity,
			 D3DKMDT_GRAPHICS_PREEMPTION_NONE);
	assert_int_equal(caps.PreemptionCaps.ComputePreemptionGranularity,
			 D3DKMDT_COMPUTE_PREEMPTION_NONE);
	assert_int_equal(caps.Value & ~4u, 0);
	assert_int_equal(start_second(&w, NULL, NULL, &old, 1, &second), 0);
	assert_int_equal(ask(open_second(NULL), KMTQAITYPE_WDDM_1_2_CAPS, &caps, sizeof(caps)),
			 STATUS_NOT_SUPPORTED); /* an adapter of WDDM 1.1 */
	vidmm_adapter_stop(second);
	kmt_stop(&w);
}

static void qai_01_qai_05_umdriverprivate_is_answered_by_the_miniport(void **state)
{
	struct {
		struct softgpu_adapter_info info;
		uint8_t behind[8];
	} record;
	struct kmt_world w;

	kmt_start(&w, state);
	memset(&record, 0x5A, sizeof(record));
	assert_int_equal(ask(w.adapter, KMTQAITYPE_UMDRIVERPRIVATE, NULL, sizeof(record)),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-01");
	assert_int_equal(ask(w.adapter, KMTQAITYPE_UMDRIVERPRIVATE, &record, 0),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-01");
	assert_int_equal(ask(w.adapter, KMTQAITYPE_UMDRIVERPRIVATE, &record, 1u << 30),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-01");
	/* The miniport's own refusal; nothing is written. */
	assert_int_equal(
		ask(w.adapter, KMTQAITYPE_UMDRIVERPRIVATE, &record, sizeof(record.info) - 1),
		STATUS_BUFFER_TOO_SMALL);
	assert_int_equal(*(uint8_t *)&record, 0x5A);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_UMDRIVERPRIVATE, &record, sizeof(record)), 0);
	assert_int_equal(record.info.version, SOFTGPU_ADAPTER_INFO_VERSION);
	assert_int_equal(record.info.node_count, 2);
	assert_true(record.info.vram_bytes == 4 * MIB);
	assert_int_equal(record.behind[0], 0x5A);
	/* PNP-07: also while the adapter has no power. */
	memset(&record, 0, sizeof(record));
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_UMDRIVERPRIVATE, &record, sizeof(record)), 0);
	assert_true(record.info.vram_bytes == 4 * MIB);
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
	kmt_stop(&w);
}

/* ---- the registry ---- */

struct registry {
	union {
		D3DDDI_QUERYREGISTRY_INFO info;
		uint8_t bytes[4096];
	};
};

static NTSTATUS read_value(D3DKMT_HANDLE adapter, struct registry *r, uint32_t key,
			   const wchar_t *name, size_t buffer_bytes)
{
	memset(r, 0, sizeof(*r));
	r->info.QueryType = (D3DDDI_QUERYREGISTRY_TYPE)key;
	wcscpy(r->info.ValueName, name);
	return ask(adapter, KMTQAITYPE_QUERYREGISTRY, r, buffer_bytes);
}

static const struct vidmm_registry_value numbers[] = {{"Small", 0x1234},
						      {"Large", 0x123456789ABCull}};

static void reg_02_reg_03_values_of_both_registry_keys_are_read(void **state)
{
	struct vidmm_adapter *second;
	struct registry r;
	struct kmt_world w;

	kmt_start(&w, state);
	assert_int_equal(start_second(&w, NULL, NULL, numbers, 2, &second), 0);
	D3DKMT_HANDLE a = open_second(NULL);
	for (uint32_t key = D3DDDI_QUERYREGISTRY_SERVICEKEY; key <= D3DDDI_QUERYREGISTRY_ADAPTERKEY;
	     key++) {
		assert_int_equal(read_value(a, &r, key, L"small", sizeof(r.info)), 0);
		assert_int_equal(r.info.Status, D3DDDI_QUERYREGISTRY_STATUS_SUCCESS);
		assert_int_equal(r.info.ValueType, DWORD_TYPE);
		assert_int_equal(r.info.OutputValueSize, 4);
		assert_int_equal(r.info.OutputDword, 0x1234);
		assert_int_equal(read_value(a, &r, key, L"Large", sizeof(r)), 0);
		assert_int_equal(r.info.ValueType, QWORD_TYPE);
		assert_int_equal(r.info.OutputValueSize, 8);
		assert_true(r.info.OutputQword == 0x123456789ABCull);
		/* REG-03: a missing value; nothing is written. */
		assert_int_equal(read_value(a, &r, key, L"Smal", sizeof(r)),
				 STATUS_OBJECT_NAME_NOT_FOUND);
		assert_int_equal(read_value(a, &r, key, L"Smaller", sizeof(r)),
				 STATUS_OBJECT_NAME_NOT_FOUND);
		assert_int_equal(read_value(a, &r, key, L"Sm\u00e4ll", sizeof(r)),
				 STATUS_OBJECT_NAME_NOT_FOUND);
		assert_int_equal(r.info.OutputValueSize, 0);
	}
	assert_int_equal(read_value(w.adapter, &r, 1, L"Small", sizeof(r)),
			 STATUS_OBJECT_NAME_NOT_FOUND); /* another adapter's */
	assert_int_equal(read_value(a, &r, D3DDDI_QUERYREGISTRY_DRIVERIMAGEPATH, L"", sizeof(r)),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	vidmm_adapter_stop(second);
	kmt_stop(&w);
}

static void reg_01_reg_04_driverstorepath_reports_its_size_then_its_value(void **state)
{
	struct vidmm_adapter *second;
	struct registry r;
	struct kmt_world w;

	kmt_start(&w, state);
	uint32_t key = D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH;
	assert_int_equal(start_second(&w, NULL, "relative", NULL, 0, &second),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(start_second(&w, NULL, "/opt/umd", NULL, 0, &second), 0);
	D3DKMT_HANDLE a = open_second(NULL);
	/* Too small a buffer: success, with the size needed. */
	assert_int_equal(read_value(a, &r, key, L"", sizeof(r.info)), 0);
	assert_int_equal(r.info.Status, D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW);
	assert_int_equal(r.info.OutputValueSize, sizeof(L"/opt/umd"));
	assert_int_equal(r.info.OutputQword, 0);
	/* One byte less than needed, then exactly that. */
	assert_int_equal(read_value(a, &r, key, L"", HEADER + sizeof(L"/opt/umd") - 1), 0);
	assert_int_equal(r.info.Status, D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW);
	assert_int_equal(read_value(a, &r, key, L"", HEADER + sizeof(L"/opt/umd")), 0);
	assert_int_equal(r.info.Status, D3DDDI_QUERYREGISTRY_STATUS_SUCCESS);
	assert_int_equal(r.info.ValueType, STRING_TYPE);
	assert_true(!wcscmp(r.info.OutputString, L"/opt/umd"));
	/* The default is the directory of the Linux library. */
	assert_int_equal(read_value(w.adapter, &r, key, L"", sizeof(r)), 0);
	assert_true(!wcscmp(r.info.OutputString, L"/usr/lib/wsl/drivers"));
	vidmm_adapter_stop(second);
	kmt_stop(&w);
}

static void reg_03_a_malformed_registry_query_is_refused(void **state)
{
	struct registry r;
	struct kmt_world w;

	kmt_start(&w, state);
	assert_int_equal(read_value(w.adapter, &r, 0, L"X", sizeof(r.info) - 1),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-01");
	assert_int_equal(ask(w.adapter, KMTQAITYPE_QUERYREGISTRY, NULL, sizeof(r)),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-01");
	assert_int_equal(read_value(w.adapter, &r, D3DDDI_QUERYREGISTRY_MAX, L"X", sizeof(r)),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "REG-03");
	(void)read_value(w.adapter, &r, 0, L"X", sizeof(r));
	r.info.QueryFlags.Value = 4;
	assert_int_equal(ask(w.adapter, KMTQAITYPE_QUERYREGISTRY, &r, sizeof(r)),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "REG-03");
	r.info.QueryFlags.Value = 0;
	r.info.PhysicalAdapterIndex = 1;
	assert_int_equal(ask(w.adapter, KMTQAITYPE_QUERYREGISTRY, &r, sizeof(r)),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-07");
	r.info.PhysicalAdapterIndex = 0;
	for (int i = 0; i < 260; i++) /* a name without terminator */
		r.info.ValueName[i] = L'x';
	assert_int_equal(ask(w.adapter, KMTQAITYPE_QUERYREGISTRY, &r, sizeof(r)),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	kmt_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(adp_03_adp_04_every_enumeration_returns_a_render_adapter),
		{"sim: adp_09_zero_adapters_succeed_and_seventeen_are_refused",
		 adp_09_zero_adapters_succeed_and_seventeen_are_refused, NULL, NULL, &kmt_sim},
		ON_BOTH(qai_01_qai_05_every_record_is_written_whole_or_not_at_all),
		ON_BOTH(qai_01_qai_05_umdriverprivate_is_answered_by_the_miniport),
		ON_BOTH(qai_06_a_description_is_printable_text),
		ON_BOTH(qai_07_adp_10_queries_that_clients_ask_of_every_adapter_succeed),
		ON_BOTH(seg_05_group_sizes_add_up_to_the_segment_sizes),
		ON_BOTH(two_adapters_have_different_addresses_and_guids),
		ON_BOTH(wddm_1_2_caps_are_those_of_the_miniport),
		ON_BOTH(reg_02_reg_03_values_of_both_registry_keys_are_read),
		ON_BOTH(reg_01_reg_04_driverstorepath_reports_its_size_then_its_value),
		ON_BOTH(reg_03_a_malformed_registry_query_is_refused),
	};

	return cmocka_run_group_tests_name("kmt_queries", tests, NULL, NULL);
}
