/* SPDX-License-Identifier: MIT */
/* Adapters that are opened by other names than a LUID, and the processes that use one. */
#include "kmt_world.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

/* ---- the name of a display ---- */

static NTSTATUS open_display(const char *name, D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME *args)
{
	memset(args, 0xA5, sizeof(*args));
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(args->DeviceName); i++) {
		args->DeviceName[i] = (WCHAR)*name;
		name += *name != 0;
	}
	return D3DKMTOpenAdapterFromGdiDisplayName(args);
}

static void adp_11_what_is_no_display_is_unsuccessful(void **state)
{
	static const char *const names[] = {
		"", "\\\\.\\DISPLAY", "\\\\.\\DISPLAY0", "\\\\.\\DISPLAY01", "\\\\.\\DISPLAYx",
		"\\\\.\\DISPLAY1 ", "\\\\.\\display1", "DISPLAY1", "\\\\.\\DISPLAY-1",
		"\\\\.\\DISPLAY99999999999999", "\\\\.\\DISPLAY4294967297",
		/* no character is left for the end */
		"\\\\.\\DISPLAY1111111111111111111111111111", "\\\\.\\DISPLAY1"};
	D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME args, before;
	struct kmt_world w;

	kmt_start(&w, state);
	assert_int_equal(D3DKMTOpenAdapterFromGdiDisplayName(NULL), STATUS_UNSUCCESSFUL);
	kmt_found(&w, "HND-11");
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(names); i++) { /* softgpu only renders */
		assert_int_equal(open_display(names[i], &args), STATUS_UNSUCCESSFUL);
		kmt_found(&w, "ADP-11");
		memset(&before, 0xA5, sizeof(before));
		memcpy(before.DeviceName, args.DeviceName, sizeof(before.DeviceName));
		assert_memory_equal(&args, &before, sizeof(args));
	}
	kmt_stop(&w);
}

static void adp_11_hnd_09_a_display_is_a_source_of_an_adapter(void **state)
{
	const struct vidmm_registry_value sources = {.name = "VideoPresentSources", .value = 2};
	const struct client_options options = {.kind = *(uint32_t *)*state,
					       .registry = &sources,
					       .registry_count = 1,
					       .monitor_bytes = 16 * MIB};
	D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME args;
	struct client client;
	struct vidmm_process *process;
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	memset(&client, 0, sizeof(client));
	client_start(&client, &options);
	assert_int_equal(vidmm_process_open(client.host, "kmt", &process), 0);
	vidmm_d3dkmt_attach(process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	for (uint32_t n = 1; n <= 3; n++) {
		char name[20];

		snprintf(name, sizeof(name), "\\\\.\\DISPLAY%u", n);
		NTSTATUS status = open_display(name, &args);
		if (n == 3) { /* there are two */
			assert_int_equal(status, STATUS_UNSUCCESSFUL);
			assert_true(client_found(&client, "ADP-11"));
			client_forget(&client);
			break;
		}
		assert_int_equal(status, STATUS_SUCCESS);
		assert_int_equal(args.VidPnSourceId, n - 1);
		assert_memory_equal(&args.AdapterLuid, &info.AdapterLuid, sizeof(LUID));
		assert_int_not_equal(args.hAdapter, info.hAdapter);
		const D3DKMT_CLOSEADAPTER close = {.hAdapter = args.hAdapter};
		assert_int_equal(D3DKMTCloseAdapter(&close), STATUS_SUCCESS);
	}
	vidmm_process_close(process);
	client_stop(&client);
	assert_int_equal(client.findings, 0);
}

/* ---- names that cannot exist here ---- */

static void adp_12_there_are_no_device_contexts_and_no_device_interfaces(void **state)
{
	static const WCHAR name[] = {'\\', '\\', '?', '\\', 'P', 'C', 'I', 0};
	D3DKMT_OPENADAPTERFROMHDC hdc = {0};
	D3DKMT_OPENADAPTERFROMDEVICENAME device = {0};
	struct kmt_world w;

	kmt_start(&w, state);
	assert_int_equal(D3DKMTOpenAdapterFromHdc(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-11");
	assert_int_equal(D3DKMTOpenAdapterFromDeviceName(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-11");
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(D3DKMTOpenAdapterFromHdc(&hdc), STATUS_INVALID_PARAMETER);
		kmt_told(&w, STATUS_INVALID_PARAMETER, "ADP-12: D3DKMTOpenAdapterFromHdc: GDI");
		assert_int_equal(D3DKMTOpenAdapterFromDeviceName(&device),
				 STATUS_INVALID_PARAMETER);
		kmt_told(&w, STATUS_INVALID_PARAMETER, "ADP-12: D3DKMTOpenAdapterFromDeviceName");
		assert_int_equal(hdc.hAdapter, 0);
		assert_int_equal(device.hAdapter, 0);
		hdc.hDc = (HDC)(uintptr_t)0x01010042;
		device.pDeviceName = name;
	}
	kmt_stop(&w);
}

/* ---- the processes of an adapter ---- */

static void adp_13_a_process_uses_the_adapter_while_it_has_a_device(void **state)
{
	struct kmt_world w;
	UINT ids[4] = {0};

	kmt_start(&w, state);
	D3DKMT_ENUMPROCESSES args = {.AdapterLuid = w.luid};
	assert_int_equal(D3DKMTEnumProcesses(&args), STATUS_SUCCESS); /* the number alone */
	assert_int_equal(args.ProcessCount, 1);
	(void)kmt_device(&w); /* a second one of the same process */
	vidmm_d3dkmt_enter(w.other);
	const D3DKMT_HANDLE own = w.adapter;
	w.adapter = kmt_open_adapter(&w);
	D3DKMT_DESTROYDEVICE destroy = {.hDevice = kmt_device(&w)};
	args.pProcessIds = ids;
	args.ProcessCount = VMM_ARRAY_LENGTH(ids);
	assert_int_equal(D3DKMTEnumProcesses(&args), STATUS_SUCCESS);
	assert_int_equal(args.ProcessCount, 2);
	assert_int_equal(ids[0], vidmm_process_id(w.process));
	assert_int_equal(ids[1], vidmm_process_id(w.other));
	assert_int_equal(ids[2], 0);
	args.ProcessCount = 2; /* just enough */
	assert_int_equal(D3DKMTEnumProcesses(&args), STATUS_SUCCESS);
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(w.process);
	w.adapter = own;
	args.ProcessCount = 1;
	assert_int_equal(D3DKMTEnumProcesses(&args), STATUS_SUCCESS);
	assert_int_equal(args.ProcessCount, 1);
	kmt_stop(&w);
}

static void adp_13_an_array_that_does_not_fit_is_not_written(void **state)
{
	struct kmt_world w;
	UINT ids[2] = {77, 78};

	kmt_start(&w, state);
	D3DKMT_ENUMPROCESSES args = {.AdapterLuid = w.luid, .pProcessIds = ids};
	assert_int_equal(D3DKMTEnumProcesses(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-11");
	assert_int_equal(D3DKMTEnumProcesses(&args), STATUS_BUFFER_TOO_SMALL);
	kmt_found(&w, "ADP-13");
	assert_int_equal(args.ProcessCount, 0);
	static const UINT64 too_many[] = {4097, 1ull << 32, UINT64_MAX};
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(too_many); i++) {
		args.ProcessCount = too_many[i];
		assert_int_equal(D3DKMTEnumProcesses(&args), STATUS_INVALID_PARAMETER);
		kmt_found(&w, "ADP-13");
	}
	args.ProcessCount = 2;
	args.AdapterLuid.LowPart += 100;
	assert_int_equal(D3DKMTEnumProcesses(&args), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ADP-06");
	assert_int_equal(args.ProcessCount, 2);
	assert_int_equal(ids[0], 77);
	assert_int_equal(ids[1], 78);
	kmt_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(adp_11_what_is_no_display_is_unsuccessful),
		ON_BOTH(adp_11_hnd_09_a_display_is_a_source_of_an_adapter),
		ON_BOTH(adp_12_there_are_no_device_contexts_and_no_device_interfaces),
		ON_BOTH(adp_13_a_process_uses_the_adapter_while_it_has_a_device),
		ON_BOTH(adp_13_an_array_that_does_not_fit_is_not_written),
	};

	return cmocka_run_group_tests_name("kmt names", tests, NULL, NULL);
}
