/* SPDX-License-Identifier: MIT */
/* Enumerating, opening and querying adapters, and the process for which a call is made. */
#include "kmt_world.h"

#include <string.h>

static void calls_without_an_attached_process_are_unsuccessful(void **state)
{
	struct kmt_world w;
	D3DKMT_ENUMADAPTERS2 all = {0};
	D3DKMT_CREATEDEVICE device = {0};

	kmt_start(&w, state);
	vidmm_d3dkmt_attach(NULL);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_UNSUCCESSFUL);
	assert_int_equal(D3DKMTEnumAdapters2(NULL), STATUS_UNSUCCESSFUL);
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_UNSUCCESSFUL);
	vidmm_d3dkmt_attach(w.process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	kmt_stop(&w);
	/* Closing the process detaches it. */
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_UNSUCCESSFUL);
}

static void adp_01_enumadapters2_without_an_array_returns_the_capacity(void **state)
{
	struct kmt_world w;
	D3DKMT_ADAPTERINFO info[4];
	D3DKMT_ENUMADAPTERS2 all = {0};

	kmt_start(&w, state);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 34);
	memset(info, 0xAB, sizeof(info));
	all = (D3DKMT_ENUMADAPTERS2){.NumAdapters = 4, .pAdapters = info};
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 1);
	assert_int_equal(info[0].NumOfSources, 0); /* ADP-04: render only */
	assert_int_equal(info[0].bPrecisePresentRegionsPreferred, 0);
	assert_int_equal(info[1].hAdapter, 0xABABABAB);
	all = (D3DKMT_ENUMADAPTERS2){.NumAdapters = 0, .pAdapters = info};
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_BUFFER_TOO_SMALL);
	kmt_found(&w, "ADP-01");
	kmt_stop(&w);
}

static void adp_02_enumadapters3_without_an_array_returns_the_count(void **state)
{
	struct kmt_world w;
	D3DKMT_ADAPTERINFO info[16];
	D3DKMT_ENUMADAPTERS3 all = {0};

	kmt_start(&w, state);
	assert_int_equal(D3DKMTEnumAdapters3(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 1);
	for (uint64_t filter = 0; filter < 4; filter++) {
		all = (D3DKMT_ENUMADAPTERS3){
			.Filter.Value = filter, .NumAdapters = 16, .pAdapters = info};
		assert_int_equal(D3DKMTEnumAdapters3(&all), STATUS_SUCCESS);
		assert_int_equal(all.NumAdapters, 1);
	}
	all = (D3DKMT_ENUMADAPTERS3){.Filter.Value = 4, .NumAdapters = 16, .pAdapters = info};
	assert_int_equal(D3DKMTEnumAdapters3(&all), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ADP-02");
	kmt_stop(&w);
}

static void adp_08_enumadapters_fills_its_fixed_array(void **state)
{
	struct kmt_world w;
	D3DKMT_ENUMADAPTERS all = {0};

	kmt_start(&w, state);
	assert_int_equal(D3DKMTEnumAdapters(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 1);
	assert_int_equal(all.Adapters[0].AdapterLuid.LowPart, w.luid.LowPart);
	kmt_stop(&w);
}

static void adp_05_adapters_have_different_luids(void **state)
{
	struct kmt_world w;
	const uint64_t bar = 1 * MIB;
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar,
						      .bar_count = 1,
						      .tdr = &client_no_tdr};
	struct vidmm_adapter *second;
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};
	D3DKMT_OPENADAPTERFROMLUID open = {0};

	kmt_start(&w, state);
	assert_int_equal(vidmm_adapter_start(w.client.host, &options, &second), 0);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 2);
	assert_int_equal(info[0].AdapterLuid.LowPart, w.luid.LowPart);
	assert_int_not_equal(info[1].AdapterLuid.LowPart, w.luid.LowPart);
	assert_int_not_equal(info[1].AdapterLuid.LowPart, 0);
	/* The LUIDs are the same in every process. */
	vidmm_d3dkmt_enter(w.other);
	open.AdapterLuid = info[1].AdapterLuid;
	assert_int_equal(D3DKMTOpenAdapterFromLuid(&open), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	vidmm_adapter_stop(second);
	/* ADP-06: the LUID is unknown after the stop, and the handle is dead. */
	assert_int_equal(D3DKMTOpenAdapterFromLuid(&open), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ADP-06");
	D3DKMT_CREATEDEVICE device = {.hAdapter = info[1].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_INVALID_PARAMETER);
	const D3DKMT_CLOSEADAPTER close = {.hAdapter = info[1].hAdapter};
	assert_int_equal(D3DKMTCloseAdapter(&close), STATUS_SUCCESS);
	kmt_stop(&w);
}

/* Calls with the handle of the device, or of its context. */
static void pnp_03_a_device_of_a_stopped_adapter_is_removed_until_it_is_destroyed(void **state)
{
	struct kmt_world w;
	struct client_context c;
	D3DKMT_RENDER render = {0};
	void *data;

	kmt_start(&w, state);
	kmt_context(&w, &c);
	D3DKMT_HANDLE a = kmt_allocate(&w, 64 * KIB), second = kmt_device(&w);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = w.device}, end_second = {.hDevice = second};
	const D3DKMT_DESTROYCONTEXT end_context = {.hContext =
							   (D3DKMT_HANDLE)(uintptr_t)c.c.hContext};
	D3DKMT_GETDEVICESTATE get = {.hDevice = w.device,
				     .StateType = D3DKMT_DEVICESTATE_EXECUTION};
	D3DKMT_CREATECONTEXT create = {.hDevice = w.device};
	UINT64 value = 1;
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.hDevice = w.device,
							    .ObjectCount = 1,
							    .ObjectHandleArray = &a,
							    .FenceValueArray = &value};
	render.hContext = end_context.hContext;
	vidmm_adapter_stop(w.client.adapter);
	w.client.adapter = NULL;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(kmt_lock(&w, &a, 0, &data), STATUS_DEVICE_REMOVED);
		assert_int_equal(D3DKMTRender(&render), STATUS_DEVICE_REMOVED);
		assert_int_equal(D3DKMTGetDeviceState(&get), STATUS_DEVICE_REMOVED);
		assert_int_equal(D3DKMTCreateContext(&create), STATUS_DEVICE_REMOVED);
		assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&signal),
				 STATUS_DEVICE_REMOVED);
		assert_int_equal(kmt_destroy(&w, 0, &a, 1), STATUS_SUCCESS);
		assert_int_equal(D3DKMTDestroyContext(&end_context), STATUS_SUCCESS);
	}
	assert_int_equal(w.client.findings, 0);
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	/* From here on the handles of that device are dead; the other device's are not. */
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	assert_int_equal(D3DKMTRender(&render), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	assert_int_equal(kmt_lock(&w, &a, 0, &data), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	create.hDevice = second;
	assert_int_equal(D3DKMTCreateContext(&create), STATUS_DEVICE_REMOVED);
	if (*(uint32_t *)*state ==
	    VIDMM_HOST_SIM) /* on real threads closing the process destroys it */
		assert_int_equal(D3DKMTDestroyDevice(&end_second), STATUS_SUCCESS);
	kmt_stop(&w);
}

static void adp_06_an_unknown_luid_is_refused(void **state)
{
	struct kmt_world w;
	D3DKMT_OPENADAPTERFROMLUID open = {0};

	kmt_start(&w, state);
	open.AdapterLuid = w.luid;
	assert_int_equal(D3DKMTOpenAdapterFromLuid(&open), STATUS_SUCCESS);
	open.AdapterLuid.HighPart = 1;
	open.hAdapter = 0x1234;
	assert_int_equal(D3DKMTOpenAdapterFromLuid(&open), STATUS_INVALID_PARAMETER);
	assert_int_equal(open.hAdapter, 0x1234);
	kmt_found(&w, "ADP-06");
	kmt_stop(&w);
}

static void adp_07_closing_an_adapter_handle_twice_is_refused(void **state)
{
	struct kmt_world w;
	D3DKMT_CLOSEADAPTER close = {0};

	kmt_start(&w, state);
	assert_int_equal(D3DKMTCloseAdapter(&close), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ADP-07");
	close.hAdapter = kmt_open_adapter(&w);
	assert_int_equal(D3DKMTCloseAdapter(&close), STATUS_SUCCESS);
	assert_int_equal(D3DKMTCloseAdapter(&close), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ADP-07");
	close.hAdapter = w.device; /* a handle of another kind */
	assert_int_equal(D3DKMTCloseAdapter(&close), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ADP-07");
	kmt_stop(&w);
}

static void hnd_09_every_open_returns_a_new_adapter_handle(void **state)
{
	struct kmt_world w;
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	kmt_start(&w, state);
	D3DKMT_HANDLE second = kmt_open_adapter(&w);
	assert_int_not_equal(second, w.adapter);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_not_equal(info.hAdapter, w.adapter);
	assert_int_not_equal(info.hAdapter, second);
	kmt_stop(&w);
}

static void hnd_10_a_device_outlives_its_adapter_handle(void **state)
{
	struct kmt_world w;

	kmt_start(&w, state);
	const D3DKMT_CLOSEADAPTER close = {.hAdapter = w.adapter};
	assert_int_equal(D3DKMTCloseAdapter(&close), STATUS_SUCCESS);
	D3DKMT_HANDLE a = kmt_allocate(&w, 64 * KIB);
	assert_int_equal(kmt_destroy(&w, 0, &a, 1), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE more = {.hAdapter = w.adapter};
	assert_int_equal(D3DKMTCreateDevice(&more), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	kmt_stop(&w);
}

static void hnd_01_hnd_03_handles_start_at_0x40000000_in_steps_of_0x40(void **state)
{
	struct kmt_world w;

	kmt_start(&w, state);
	assert_int_equal(w.adapter, 0x40000000);
	assert_int_equal(w.device, 0x40000040);
	D3DKMT_HANDLE a = kmt_allocate(&w, 64 * KIB);
	assert_int_equal(a, 0x40000080);
	/* A failed creation uses up no handle value. */
	D3DKMT_CREATEALLOCATION bad = {0};
	D3DKMT_HANDLE none = 0;
	assert_int_not_equal(kmt_try_allocate(&w, 0, 0, &bad, &none), STATUS_SUCCESS);
	assert_int_equal(none, 0);
	client_forget(&w.client); /* the finding of softgpu about an allocation of size 0 */
	assert_int_equal(kmt_open_adapter(&w), 0x400000C0);
	kmt_stop(&w);
}

/* ---- D3DKMTQueryAdapterInfo ---- */

static NTSTATUS ask(D3DKMT_HANDLE adapter, uint32_t type, void *data, uint32_t size)
{
	const D3DKMT_QUERYADAPTERINFO args = {.hAdapter = adapter,
					      .Type = (KMTQUERYADAPTERINFOTYPE)type,
					      .pPrivateDriverData = data,
					      .PrivateDriverDataSize = size};

	return D3DKMTQueryAdapterInfo(&args);
}

static void qai_01_a_buffer_smaller_than_the_record_is_refused(void **state)
{
	struct kmt_world w;
	uint32_t words[2] = {0x55555555, 0x55555555};

	kmt_start(&w, state);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_DRIVERVERSION, NULL, 4),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-01");
	assert_int_equal(ask(w.adapter, KMTQAITYPE_DRIVERVERSION, words, 3),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-01");
	assert_int_equal(words[0], 0x55555555);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_DRIVERVERSION, words, 4), STATUS_SUCCESS);
	assert_int_equal(words[0], KMT_DRIVERVERSION_WDDM_1_3);
	kmt_stop(&w);
}

static void qai_02_bytes_beyond_the_record_are_unchanged(void **state)
{
	struct kmt_world w;
	uint32_t words[2] = {0x55555555, 0x55555555};

	kmt_start(&w, state);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_ADAPTERTYPE, words, 8), STATUS_SUCCESS);
	assert_int_equal(words[0], 0x5); /* RenderSupported, SoftwareDevice */
	assert_int_equal(words[1], 0x55555555);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_ADAPTERTYPE_RENDER, words, 4), STATUS_SUCCESS);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_PHYSICALADAPTERCOUNT, words, 4), STATUS_SUCCESS);
	assert_int_equal(words[0], 1);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_CHECKDRIVERUPDATESTATUS, words, 4),
			 STATUS_SUCCESS);
	assert_int_equal(words[0], 0);
	kmt_stop(&w);
}

static void seg_05_segment_sizes_equal_the_statistics(void **state)
{
	struct kmt_world w;
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};
	D3DKMT_SEGMENTSIZEINFO sizes = {0};

	kmt_start(&w, state);
	vidmm_adapter_statistics(w.client.adapter, &s);
	assert_int_equal(ask(w.adapter, KMTQAITYPE_GETSEGMENTSIZE, &sizes, sizeof(sizes) - 1),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-01");
	assert_int_equal(ask(w.adapter, KMTQAITYPE_GETSEGMENTSIZE, &sizes, sizeof(sizes)),
			 STATUS_SUCCESS);
	assert_true(sizes.DedicatedVideoMemorySize == 4 * MIB);
	assert_true(sizes.DedicatedVideoMemorySize == s.dedicated_video_bytes);
	assert_true(sizes.DedicatedSystemMemorySize == s.dedicated_system_bytes);
	assert_true(sizes.SharedSystemMemorySize == s.shared_system_bytes);
	assert_true(sizes.SharedSystemMemorySize > 0);
	kmt_stop(&w);
}

static void qai_03_unknown_and_unsupported_types_are_refused(void **state)
{
	struct kmt_world w;
	uint8_t record[64];

	kmt_start(&w, state);
	assert_int_equal(ask(w.adapter, 78, record, sizeof(record)), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "QAI-03");
	assert_int_equal(ask(w.adapter, KMTQAITYPE_MODELIST, record, sizeof(record)),
			 STATUS_NOT_SUPPORTED);
	kmt_stop(&w);
}

static void qai_04_a_bad_adapter_handle_is_refused(void **state)
{
	struct kmt_world w;
	uint32_t word;

	kmt_start(&w, state);
	assert_int_equal(ask(w.device, KMTQAITYPE_DRIVERVERSION, &word, 4),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	kmt_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(calls_without_an_attached_process_are_unsuccessful),
		ON_BOTH(adp_01_enumadapters2_without_an_array_returns_the_capacity),
		ON_BOTH(adp_02_enumadapters3_without_an_array_returns_the_count),
		ON_BOTH(adp_05_adapters_have_different_luids),
		ON_BOTH(pnp_03_a_device_of_a_stopped_adapter_is_removed_until_it_is_destroyed),
		ON_BOTH(adp_06_an_unknown_luid_is_refused),
		ON_BOTH(adp_07_closing_an_adapter_handle_twice_is_refused),
		ON_BOTH(adp_08_enumadapters_fills_its_fixed_array),
		ON_BOTH(hnd_01_hnd_03_handles_start_at_0x40000000_in_steps_of_0x40),
		ON_BOTH(hnd_09_every_open_returns_a_new_adapter_handle),
		ON_BOTH(hnd_10_a_device_outlives_its_adapter_handle),
		ON_BOTH(qai_01_a_buffer_smaller_than_the_record_is_refused),
		ON_BOTH(qai_02_bytes_beyond_the_record_are_unchanged),
		ON_BOTH(seg_05_segment_sizes_equal_the_statistics),
		ON_BOTH(qai_03_unknown_and_unsupported_types_are_refused),
		ON_BOTH(qai_04_a_bad_adapter_handle_is_refused),
	};

	return cmocka_run_group_tests_name("kmt_adapters", tests, NULL, NULL);
}
