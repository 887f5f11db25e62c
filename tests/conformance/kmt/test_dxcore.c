/* SPDX-License-Identifier: MIT */
/* DXCore: the factory, lists and adapter objects, their references and their ends. */
#include "dxcore_world.h"

#include <string.h>

#include "base/base.h"

static IDXCoreAdapterFactory1 *create(void)
{
	IDXCoreAdapterFactory1 *factory = NULL;

	assert_int_equal(DXCoreCreateAdapterFactory(&iid_factory, (void **)&factory), S_OK);
	return factory;
}

/* ---- references ---- */

static void dxc_01_every_call_returns_the_same_factory(void **state)
{
	struct dxcore_world w;
	IDXCoreAdapterFactory1 *again = NULL;

	dxcore_start(&w, state);
	assert_ptr_equal(create(), w.factory);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *adapter = dxcore_adapter(list, 0);
	assert_int_equal(list->lpVtbl->GetFactory(list, &iid_factory, (void **)&again), S_OK);
	assert_ptr_equal(again, w.factory);
	assert_int_equal(adapter->lpVtbl->GetFactory(adapter, &iid_factory1, (void **)&again),
			 S_OK);
	assert_ptr_equal(again, w.factory);
	/* Three references more than that of the test; without any it still is the same. */
	for (uint32_t left = 4; left--;)
		assert_int_equal(again->lpVtbl->Release(again), left);
	assert_int_equal(adapter->lpVtbl->GetFactory(adapter, &iid_factory, (void **)&again), S_OK);
	assert_ptr_equal(again, w.factory);
	list->lpVtbl->Release(list);
	adapter->lpVtbl->Release(adapter);
	dxcore_stop(&w);
}

static void dxc_02_a_null_pointer_or_an_unknown_interface_is_refused(void **state)
{
	struct dxcore_world w;
	void *object = &w;

	dxcore_start(&w, state);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *adapter = dxcore_adapter(list, 0);
	const LUID luid = dxcore_luid(adapter);

	dxcore_found(&w, DXCoreCreateAdapterFactory(&iid_factory, NULL), E_POINTER, "DXC-02");
	dxcore_found(&w, DXCoreCreateAdapterFactory(NULL, &object), E_POINTER, "DXC-02");
	assert_null(object);
	object = &w;
	assert_int_equal(DXCoreCreateAdapterFactory(&iid_list, &object), E_NOINTERFACE);
	assert_null(object);
#define REFUSED(from, function, iid, ...)                                                          \
	do {                                                                                       \
		dxcore_found(&w, (from)->lpVtbl->function(from, ##__VA_ARGS__, iid, NULL),         \
			     E_POINTER, "DXC-02");                                                 \
		dxcore_found(&w, (from)->lpVtbl->function(from, ##__VA_ARGS__, NULL, &object),     \
			     E_POINTER, "DXC-02");                                                 \
		object = &w;                                                                       \
		assert_int_equal((from)->lpVtbl->function(from, ##__VA_ARGS__, &nothing, &object), \
				 E_NOINTERFACE);                                                   \
		assert_null(object);                                                               \
	} while (0)
	REFUSED(w.factory, QueryInterface, &iid_factory);
	REFUSED(w.factory, CreateAdapterList, &iid_list, 1, &d3d12_graphics);
	REFUSED(w.factory, CreateAdapterListByWorkload, &iid_list, DXCoreWorkload_Graphics,
		DXCoreRuntimeFilterFlags_None, DXCoreHardwareTypeFilterFlags_None);
	REFUSED(w.factory, GetAdapterByLuid, &iid_adapter, &luid);
	REFUSED(list, QueryInterface, &iid_list);
	REFUSED(list, GetAdapter, &iid_adapter, 0);
	REFUSED(list, GetFactory, &iid_factory);
	REFUSED(adapter, QueryInterface, &iid_adapter);
	REFUSED(adapter, GetFactory, &iid_factory);
#undef REFUSED
	dxcore_found(&w,
		     w.factory->lpVtbl->GetAdapterByLuid(w.factory, NULL, &iid_adapter, &object),
		     E_POINTER, "DXC-02");
	assert_int_equal(list->lpVtbl->Release(list), 0);
	assert_int_equal(adapter->lpVtbl->Release(adapter), 0);
	dxcore_stop(&w);
}

static void dxc_03_an_object_has_one_identity_and_counts_its_references(void **state)
{
	struct dxcore_world w;
	struct IUnknown *first, *second;

	dxcore_start(&w, state);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *adapter = dxcore_adapter(list, 0), *same = NULL;

	assert_int_equal(adapter->lpVtbl->QueryInterface(adapter, &iid_adapter1, (void **)&same),
			 S_OK);
	assert_int_equal(adapter->lpVtbl->QueryInterface(adapter, &iid_unknown, (void **)&first),
			 S_OK);
	assert_int_equal(same->lpVtbl->QueryInterface(same, &iid_unknown, (void **)&second), S_OK);
	assert_ptr_equal(first, second);
	/* The references of the list, of `adapter`, `same`, `first` and `second`. */
	assert_int_equal(adapter->lpVtbl->AddRef(adapter), 6);
	assert_int_equal(list->lpVtbl->AddRef(list), 2);
	assert_int_equal(list->lpVtbl->Release(list), 1);
	assert_int_equal(list->lpVtbl->Release(list), 0);
	for (uint32_t left = 5; left--;)
		assert_int_equal(adapter->lpVtbl->Release(adapter), left);
	assert_int_equal(w.factory->lpVtbl->Release(w.factory), 0);
	assert_int_equal(w.factory->lpVtbl->Release(w.factory), 0);
	kmt_found(&w.kmt, "DXC-03");
	assert_int_equal(w.factory->lpVtbl->AddRef(w.factory), 1);
	dxcore_stop(&w);
}

static void dxc_06_an_adapter_has_the_same_pointer_in_every_list(void **state)
{
	struct dxcore_world w;
	IDXCoreAdapter1 *by_luid = NULL;

	dxcore_start(&w, state);
	IDXCoreAdapterList *one = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapterList *two = dxcore_list(&w, &d3d11_graphics);
	IDXCoreAdapter1 *a = dxcore_adapter(one, 0), *b = dxcore_adapter(two, 0);
	const LUID luid = dxcore_luid(a);

	assert_ptr_not_equal(one, two);
	assert_ptr_equal(a, b);
	assert_int_equal(luid.LowPart, w.kmt.luid.LowPart);
	assert_int_equal(w.factory->lpVtbl->GetAdapterByLuid(w.factory, &luid, &iid_adapter1,
							     (void **)&by_luid),
			 S_OK);
	assert_ptr_equal(by_luid, a);
	one->lpVtbl->Release(one);
	two->lpVtbl->Release(two);
	for (uint32_t left = 3; left--;)
		assert_int_equal(a->lpVtbl->Release(a), left);
	dxcore_stop(&w);
}

/* ---- lists ---- */

static void dxc_04_a_list_has_the_adapters_with_all_attributes(void **state)
{
	static const struct vidmm_registry_value npu[] = {{"VidmmHardwareType", 4}};
	struct dxcore_world w;
	IDXCoreAdapterList *list = NULL;
	void *object = &w;
	const GUID both[] = {d3d12_compute, type_npu}, one_unknown[] = {d3d12_compute, nothing};

	dxcore_start(&w, state);
	struct vidmm_adapter *second = dxcore_add(&w, "an NPU", npu, 1);
	list = dxcore_list(&w, &d3d12_compute);
	assert_int_equal(list->lpVtbl->GetAdapterCount(list), 2);
	list->lpVtbl->Release(list);
	list = dxcore_list(&w, &d3d12_graphics);
	assert_int_equal(list->lpVtbl->GetAdapterCount(list), 1);
	list->lpVtbl->Release(list);
	IDXCoreAdapterFactory1 *f = w.factory;
	assert_int_equal(f->lpVtbl->CreateAdapterList(f, 2, both, &iid_list, (void **)&list), S_OK);
	assert_int_equal(list->lpVtbl->GetAdapterCount(list), 1);
	list->lpVtbl->Release(list);
	/* An attribute that no adapter has: an empty list. */
	assert_int_equal(f->lpVtbl->CreateAdapterList(f, 2, one_unknown, &iid_list, (void **)&list),
			 S_OK);
	assert_int_equal(list->lpVtbl->GetAdapterCount(list), 0);
	assert_false(list->lpVtbl->IsStale(list));
	list->lpVtbl->Release(list);
	dxcore_found(&w, f->lpVtbl->CreateAdapterList(f, 0, both, &iid_list, &object), E_INVALIDARG,
		     "DXC-04");
	assert_null(object);
	dxcore_found(&w, f->lpVtbl->CreateAdapterList(f, 1, NULL, &iid_list, &object), E_INVALIDARG,
		     "DXC-04");
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void dxc_05_an_index_out_of_range_and_an_ended_adapter_are_refused(void **state)
{
	struct dxcore_world w;
	void *object = &w;

	dxcore_start(&w, state);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *a = dxcore_adapter(list, 1);

	assert_int_equal(list->lpVtbl->GetAdapterCount(list), 2);
	dxcore_found(&w, list->lpVtbl->GetAdapter(list, 2, &iid_adapter, &object), E_INVALIDARG,
		     "DXC-05");
	assert_null(object);
	vidmm_adapter_stop(second);
	object = &w;
	dxcore_told(&w, list->lpVtbl->GetAdapter(list, 1, &iid_adapter, &object),
		    DXGI_ERROR_DEVICE_REMOVED, "DXC-05");
	assert_null(object);
	assert_int_equal(list->lpVtbl->GetAdapterCount(list), 2);
	assert_int_equal(list->lpVtbl->Release(list), 0);
	assert_int_equal(a->lpVtbl->Release(a), 0);
	dxcore_stop(&w);
}

static void dxc_07_a_luid_is_unknown_or_that_of_an_ended_adapter(void **state)
{
	struct dxcore_world w;
	void *object = &w;
	const LUID unknown = {.LowPart = 0xDEAD}, high = {.LowPart = 1, .HighPart = 1};

	dxcore_start(&w, state);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *a = dxcore_adapter(list, 1);
	const LUID luid = dxcore_luid(a);
	IDXCoreAdapterFactory1 *f = w.factory;

	dxcore_found(&w, f->lpVtbl->GetAdapterByLuid(f, &unknown, &iid_adapter, &object),
		     E_INVALIDARG, "DXC-07");
	assert_null(object);
	dxcore_found(&w, f->lpVtbl->GetAdapterByLuid(f, &high, &iid_adapter, &object), E_INVALIDARG,
		     "DXC-07");
	vidmm_adapter_stop(second);
	dxcore_told(&w, f->lpVtbl->GetAdapterByLuid(f, &luid, &iid_adapter, &object),
		    DXGI_ERROR_DEVICE_REMOVED, "DXC-07");
	/* Without an object, nothing remembers the LUID. */
	list->lpVtbl->Release(list);
	assert_int_equal(a->lpVtbl->Release(a), 0);
	dxcore_found(&w, f->lpVtbl->GetAdapterByLuid(f, &luid, &iid_adapter, &object), E_INVALIDARG,
		     "DXC-07");
	dxcore_stop(&w);
}

static void dxc_08_a_list_is_stale_once_its_adapters_came_or_went(void **state)
{
	static const struct vidmm_registry_value npu[] = {{"VidmmHardwareType", 4}};
	struct dxcore_world w;

	dxcore_start(&w, state);
	IDXCoreAdapterList *graphics = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapterList *compute = dxcore_list(&w, &d3d12_compute);
	assert_false(graphics->lpVtbl->IsStale(graphics));
	assert_false(compute->lpVtbl->IsStale(compute));
	/* An adapter arrives that only one of the filters selects. */
	struct vidmm_adapter *second = dxcore_add(&w, NULL, npu, 1);
	assert_false(graphics->lpVtbl->IsStale(graphics));
	assert_true(compute->lpVtbl->IsStale(compute));
	assert_int_equal(compute->lpVtbl->GetAdapterCount(compute), 1);
	/* It stays stale when the adapters are the same again. */
	vidmm_adapter_stop(second);
	assert_true(compute->lpVtbl->IsStale(compute));
	compute->lpVtbl->Release(compute);
	compute = dxcore_list(&w, &d3d12_compute);
	assert_false(compute->lpVtbl->IsStale(compute));
	/* An adapter of the lists goes. */
	vidmm_adapter_stop(w.kmt.client.adapter);
	w.kmt.client.adapter = NULL;
	assert_true(graphics->lpVtbl->IsStale(graphics));
	assert_true(compute->lpVtbl->IsStale(compute));
	compute->lpVtbl->Release(compute);
	graphics->lpVtbl->Release(graphics);
	graphics = dxcore_list(&w, &d3d12_graphics);
	assert_int_equal(graphics->lpVtbl->GetAdapterCount(graphics), 0);
	graphics->lpVtbl->Release(graphics);
	dxcore_stop(&w);
}

static void dxc_09_an_adapter_becomes_invalid_when_it_stops_or_is_removed(void **state)
{
	struct dxcore_world w;

	dxcore_start(&w, state);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *stopped = dxcore_adapter(list, 1), *removed = dxcore_adapter(list, 0);

	assert_true(stopped->lpVtbl->IsValid(stopped));
	assert_true(removed->lpVtbl->IsValid(removed));
	vidmm_adapter_stop(second);
	assert_false(stopped->lpVtbl->IsValid(stopped));
	assert_false(stopped->lpVtbl->IsValid(stopped));
	assert_true(removed->lpVtbl->IsValid(removed));
	(void)!vidmm_adapter_remove(w.kmt.client.adapter, VIDMM_REMOVAL_PNP);
	assert_false(removed->lpVtbl->IsValid(removed));
	assert_true(list->lpVtbl->IsStale(list));
	list->lpVtbl->Release(list);
	stopped->lpVtbl->Release(stopped);
	removed->lpVtbl->Release(removed);
	dxcore_stop(&w);
}

enum { THREADS = 4, ROUNDS = 60 };

static void *enumerate(void *argument)
{
	struct dxcore_world *w = argument;
	const DXCoreAdapterPreference by[] = {DXCoreAdapterPreference_HighPerformance};
	IDXCoreAdapterFactory1 *f = w->factory;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		IDXCoreAdapterList *list = dxcore_list(w, &d3d12_compute);
		uint32_t count = list->lpVtbl->GetAdapterCount(list);
		IDXCoreAdapter1 *a = dxcore_adapter(list, 0), *b = NULL;
		const LUID luid = dxcore_luid(a);

		assert_in_range(count, 1, 2);
		assert_int_equal(list->lpVtbl->Sort(list, 1, by), S_OK);
		assert_int_equal(f->lpVtbl->GetAdapterByLuid(f, &luid, &iid_adapter, (void **)&b),
				 S_OK);
		assert_ptr_equal(a, b); /* as long as a reference exists */
		(void)list->lpVtbl->IsStale(list);
		list->lpVtbl->Release(list);
		b->lpVtbl->Release(b);
		assert_true(a->lpVtbl->IsValid(a));
		a->lpVtbl->Release(a);
	}
	return NULL;
}

/* The first adapter stays; another one comes and goes. */
static void dxc_03_dxc_06_threads_share_the_objects(void **state)
{
	struct dxcore_world w;
	pthread_t thread[THREADS];

	dxcore_start(&w, state);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, enumerate, &w), 0);
	for (uint32_t i = 0; i < ROUNDS / 4; i++)
		vidmm_adapter_stop(dxcore_add(&w, NULL, NULL, 0));
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	IDXCoreAdapter1 *a = dxcore_first(&w);
	assert_int_equal(a->lpVtbl->Release(a), 0);
	dxcore_stop(&w);
}

/* ---- order ---- */

static void expect_order(IDXCoreAdapterList *list, const char *expected)
{
	assert_int_equal(list->lpVtbl->GetAdapterCount(list), strlen(expected));
	for (uint32_t i = 0; expected[i]; i++) {
		IDXCoreAdapter1 *adapter = dxcore_adapter(list, i);
		char name[32];

		assert_int_equal(adapter->lpVtbl->GetProperty(
					 adapter, DXCoreAdapterProperty_DriverDescription,
					 sizeof(name), name),
				 S_OK);
		adapter->lpVtbl->Release(adapter);
		if (name[0] != expected[i])
			fail_msg("adapter %u is \"%s\", expected %c", i, name, expected[i]);
	}
}

static const struct vidmm_registry_value integrated[] = {{"VidmmIntegrated", 1},
							 {"VidmmHardware", 1}};
static const struct vidmm_registry_value detachable[] = {{"VidmmDetachable", 1},
							 {"VidmmHardware", 1}};

static void dxc_10_dxc_12_sort_puts_the_preferred_adapters_first(void **state)
{
	struct dxcore_world w;
	DXCoreAdapterPreference by[3];

	dxcore_start(&w, state);
	struct vidmm_adapter *i = dxcore_add(&w, "integrated", integrated, 2);
	struct vidmm_adapter *x = dxcore_add(&w, "xternal", detachable, 2);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapterListVtbl f = *list->lpVtbl;

	expect_order(list, "vix"); /* DXC-12: in the order of their start */
	by[0] = DXCoreAdapterPreference_Hardware;
	assert_int_equal(f.Sort(list, 1, by), S_OK);
	expect_order(list, "ixv");
	by[0] = DXCoreAdapterPreference_HighPerformance;
	assert_int_equal(f.Sort(list, 1, by), S_OK);
	expect_order(list, "xvi");
	by[0] = (DXCoreAdapterPreference)77; /* unknown: ignored */
	by[1] = DXCoreAdapterPreference_Hardware;
	by[2] = DXCoreAdapterPreference_MinimumPower;
	assert_int_equal(f.Sort(list, 3, by), S_OK);
	expect_order(list, "ixv");
	by[0] = DXCoreAdapterPreference_MinimumPower;
	assert_int_equal(f.Sort(list, 1, by), S_OK);
	expect_order(list, "ivx");
	dxcore_found(&w, f.Sort(list, 0, by), E_INVALIDARG, "DXC-10");
	dxcore_found(&w, f.Sort(list, 1, NULL), E_INVALIDARG, "DXC-10");
	expect_order(list, "ivx");
	for (uint32_t p = 0; p < 4; p++)
		assert_int_equal(f.IsAdapterPreferenceSupported(list, (DXCoreAdapterPreference)p),
				 p < 3);
	list->lpVtbl->Release(list);
	vidmm_adapter_stop(i);
	vidmm_adapter_stop(x);
	dxcore_stop(&w);
}

static void expect_workload(struct dxcore_world *w, uint32_t workload, uint32_t runtimes,
			    uint32_t hardware, const char *expected)
{
	IDXCoreAdapterList *list = NULL;

	assert_int_equal(
		w->factory->lpVtbl->CreateAdapterListByWorkload(
			w->factory, (DXCoreWorkload)workload, (DXCoreRuntimeFilterFlags)runtimes,
			(DXCoreHardwareTypeFilterFlags)hardware, &iid_list, (void **)&list),
		S_OK);
	expect_order(list, expected);
	assert_false(list->lpVtbl->IsStale(list));
	list->lpVtbl->Release(list);
}

static void dxc_13_the_list_of_a_workload_begins_with_specialized_adapters(void **state)
{
	static const struct vidmm_registry_value types[][1] = {
		{{"VidmmHardwareType", 4}}, {{"VidmmHardwareType", 2}}, {{"VidmmHardwareType", 8}}};
	struct dxcore_world w;
	void *object = &w;

	dxcore_start(&w, state);
	struct vidmm_adapter *n = dxcore_add(&w, "npu", types[0], 1);
	struct vidmm_adapter *c = dxcore_add(&w, "compute", types[1], 1);
	struct vidmm_adapter *m = dxcore_add(&w, "media", types[2], 1);

	expect_workload(&w, DXCoreWorkload_Graphics, 0, 0, "v");
	expect_workload(&w, DXCoreWorkload_Compute, 0, 0, "cnv");
	expect_workload(&w, DXCoreWorkload_Media, 0, 0, "mv");
	expect_workload(&w, DXCoreWorkload_MachineLearning, 0, 0, "ncv");
	expect_workload(&w, DXCoreWorkload_MachineLearning, DXCoreRuntimeFilterFlags_D3D12, 0,
			"ncv");
	expect_workload(&w, DXCoreWorkload_MachineLearning, DXCoreRuntimeFilterFlags_D3D11, 0, "v");
	expect_workload(&w, DXCoreWorkload_Compute, 0,
			DXCoreHardwareTypeFilterFlags_NPU | DXCoreHardwareTypeFilterFlags_GPU,
			"nv");
	expect_workload(&w, DXCoreWorkload_Graphics, 0, DXCoreHardwareTypeFilterFlags_NPU, "");
#define REFUSED(workload, runtimes, hardware)                                                \
	dxcore_found(&w,                                                                     \
		     w.factory->lpVtbl->CreateAdapterListByWorkload(                         \
			     w.factory, (DXCoreWorkload)(workload),                          \
			     (DXCoreRuntimeFilterFlags)(runtimes),                           \
			     (DXCoreHardwareTypeFilterFlags)(hardware), &iid_list, &object), \
		     E_INVALIDARG, "DXC-13");                                                \
	assert_null(object)
	REFUSED(4, 0, 0);
	REFUSED(0, 4, 0);
	REFUSED(0, 0, 0x10);
#undef REFUSED
	vidmm_adapter_stop(n);
	vidmm_adapter_stop(c);
	vidmm_adapter_stop(m);
	dxcore_stop(&w);
}

/* ---- failures ---- */

static void dxc_25_without_memory_a_list_cannot_be_created(void **state)
{
	struct dxcore_world w;
	void *object = NULL;
	uint32_t failures = 0;

	dxcore_start(&w, state);
	IDXCoreAdapterFactory1 *f = w.factory;
	for (uint32_t n = 1; !object; n++) {
		vmm_calloc_fail_after(n);
		HRESULT result =
			f->lpVtbl->CreateAdapterList(f, 1, &d3d12_graphics, &iid_list, &object);
		vmm_calloc_fail_after(0);
		assert_int_equal(result, object ? S_OK : E_OUTOFMEMORY);
		failures += !object;
	}
	/* The list, the description, the adapter; through a host the count begins anew in it. */
	assert_in_range(failures, 1, 100);
	IDXCoreAdapterList *list = object;
	assert_int_equal(list->lpVtbl->GetAdapterCount(list), 1);
	assert_int_equal(list->lpVtbl->Release(list), 0);
	dxcore_stop(&w);
}

/* ---- hosts ---- */

static void dxc_25_without_a_host_a_list_cannot_be_created(void **state)
{
	struct dxcore_world w;
	void *object = &w;

	dxcore_start(&w, state);
	IDXCoreAdapter1 *adapter = dxcore_first(&w);
	IDXCoreAdapterFactory1 *f = w.factory;

	vidmm_d3dkmt_attach(NULL);
	/* STATUS_UNSUCCESSFUL as an HRESULT */
	assert_int_equal(f->lpVtbl->CreateAdapterList(f, 1, &d3d12_graphics, &iid_list, &object),
			 (HRESULT)0xD0000001);
	assert_null(object);
	assert_true(adapter->lpVtbl->IsValid(adapter)); /* nothing says otherwise */
	vidmm_d3dkmt_attach(w.kmt.process);
	assert_true(adapter->lpVtbl->IsValid(adapter));
	assert_int_equal(adapter->lpVtbl->Release(adapter), 0);
	dxcore_stop(&w);
}

static void dxc_27_an_object_belongs_to_the_host_that_it_was_created_from(void **state)
{
	const struct vidmm_host_options options = {.struct_size = sizeof(options),
						   .kind = VIDMM_HOST_SIM};
	struct dxcore_world w;
	struct vidmm_host *host;
	struct vidmm_process *process;
	uint8_t updating = 7;

	dxcore_start(&w, state);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *adapter = dxcore_adapter(list, 0);

	assert_int_equal(vidmm_host_create(&options, &host), 0);
	assert_int_equal(vidmm_process_open(host, "other host", &process), 0);
	vidmm_d3dkmt_attach(process);
	assert_true(adapter->lpVtbl->IsValid(adapter));
	assert_false(list->lpVtbl->IsStale(list));
	assert_int_equal(adapter->lpVtbl->QueryState(adapter,
						     DXCoreAdapterState_IsDriverUpdateInProgress, 0,
						     NULL, sizeof(updating), &updating),
			 E_FAIL);
	assert_int_equal(updating, 7);
	vidmm_d3dkmt_attach(w.kmt.process);
	vidmm_process_close(process);
	vidmm_host_destroy(host);
	assert_int_equal(adapter->lpVtbl->QueryState(adapter,
						     DXCoreAdapterState_IsDriverUpdateInProgress, 0,
						     NULL, sizeof(updating), &updating),
			 S_OK);
	assert_int_equal(updating, 0);
	list->lpVtbl->Release(list);
	adapter->lpVtbl->Release(adapter);
	dxcore_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dxc_01_every_call_returns_the_same_factory),
		ON_BOTH(dxc_02_a_null_pointer_or_an_unknown_interface_is_refused),
		ON_BOTH(dxc_03_an_object_has_one_identity_and_counts_its_references),
		{"linux: dxc_03_dxc_06_threads_share_the_objects",
		 dxc_03_dxc_06_threads_share_the_objects, NULL, NULL, &kmt_linux},
		ON_BOTH(dxc_04_a_list_has_the_adapters_with_all_attributes),
		ON_BOTH(dxc_05_an_index_out_of_range_and_an_ended_adapter_are_refused),
		ON_BOTH(dxc_06_an_adapter_has_the_same_pointer_in_every_list),
		ON_BOTH(dxc_07_a_luid_is_unknown_or_that_of_an_ended_adapter),
		ON_BOTH(dxc_08_a_list_is_stale_once_its_adapters_came_or_went),
		ON_BOTH(dxc_09_an_adapter_becomes_invalid_when_it_stops_or_is_removed),
		ON_BOTH(dxc_10_dxc_12_sort_puts_the_preferred_adapters_first),
		ON_BOTH(dxc_13_the_list_of_a_workload_begins_with_specialized_adapters),
		ON_BOTH(dxc_25_without_memory_a_list_cannot_be_created),
		ON_BOTH(dxc_25_without_a_host_a_list_cannot_be_created),
		ON_BOTH(dxc_27_an_object_belongs_to_the_host_that_it_was_created_from),
	};

	return cmocka_run_group_tests_name("dxcore", tests, NULL, NULL);
}
