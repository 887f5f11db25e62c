/* SPDX-License-Identifier: MIT */
/*
 * Clients that mean harm by messages which are well-formed, one by one: what changes between two looks of the host's, and what does not
 * come back when the host closes, writes or waits. Another client never notices.
 */
#include "raw_client.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

/* ---- what one channel says is not what another makes of it ---- */

static D3DKMT_HANDLE device_on(struct raw *raw, uint32_t which)
{
	D3DKMT_ADAPTERINFO info[2] = {0};
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};

	assert_int_equal(raw_call(raw, "D3DKMTEnumAdapters2", &all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 2);
	D3DKMT_CREATEDEVICE args = {.hAdapter = info[which].hAdapter};
	assert_int_equal(raw_call(raw, "D3DKMTCreateDevice", &args), STATUS_SUCCESS);
	return args.hDevice;
}

static NTSTATUS make_fence(struct raw *raw, int channel, D3DKMT_HANDLE device, D3DKMT_HANDLE *fence)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {.hDevice = device,
						      .Info = {.Type = D3DDDI_FENCE}};
	NTSTATUS status = raw_call_on(raw, channel, "D3DKMTCreateSynchronizationObject2", &create);

	*fence = create.hSyncObject;
	return status;
}

static void set_power(struct vidmm_adapter *adapter, uint32_t state)
{
	assert_int_equal(vidmm_adapter_set_power(adapter, state, VIDMM_SLEEP_STANDBY), 0);
}

/*
 * SYN-32: the first object says what the union of a call is. While the call waits for power, what was no object becomes one by another
 * channel: the number that was in the union is no address for that.
 */
static void a_union_is_what_it_was_when_it_came(void **state)
{
	struct vidmm_adapter *second;
	struct client_context c;
	struct served served;
	struct raw raw;
	D3DKMT_HANDLE fence, later;
	int32_t status;

	(void)state;
	served_start(&served, NULL, 0);
	const uint64_t bar = 4 * MIB;
	const struct vidmm_registry_value aperture = {"ApertureSize", 4 * MIB};
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar,
						      .bar_count = 1,
						      .registry = &aperture,
						      .registry_count = 1,
						      .tdr = &client_no_tdr};
	assert_int_equal(vidmm_adapter_start(served.client.host, &options, &second), 0);
	raw_open(&raw, &served, "quick");
	int channel = raw_join(&raw, &status);
	raw_context(&raw, device_on(&raw, 0), &c);
	D3DKMT_HANDLE device = device_on(&raw, 1);
	assert_int_equal(make_fence(&raw, channel, device, &fence), STATUS_SUCCESS);

	set_power(served.client.adapter, VIDMM_POWER_D3);
	later = fence + 0x40; /* HND-03: the next one's */
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {
		.hContext = (D3DKMT_HANDLE)(uintptr_t)c.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &later,
		.MonitoredFenceValueArray = (const UINT64 *)(uintptr_t)0xDEAD0000BEEF0000};
	raw_ask(&raw, raw.channel, "D3DKMTSignalSynchronizationObjectFromGpu", &signal);
	served_await_inside(&served, 1);
	assert_int_equal(make_fence(&raw, channel, device, &fence), STATUS_SUCCESS);
	assert_int_equal(fence, later);
	set_power(served.client.adapter, VIDMM_POWER_D0);
	assert_int_equal(raw_await(raw.channel), STATUS_SUCCESS); /* a number it was */
	raw_farewell(&raw);
	close(channel);
	served_await_clients(&served, 0);
	vidmm_adapter_stop(second);
	served_stop(&served);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_union_is_what_it_was_when_it_came),
	};

	return cmocka_run_group_tests_name("serve: hostile", tests, NULL, NULL);
}
