/* SPDX-License-Identifier: MIT */
/*
 * Creates every combination of type and flags at every interface version. Each combination that is
 * legal gives an object with its handle and addresses; every other one is refused. The expected
 * results are the second table of the model test (tests/model/sync/flag_cells.h).
 */
#include "sync_world.h"

#include "model/sync/flag_cells.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* By their upper digits, as the table has them. */
static const ULONG versions[FLAG_LAST_VERSION + 1] = {
	0,
	DXGKDDI_INTERFACE_VERSION_VISTA,
	DXGKDDI_INTERFACE_VERSION_WIN7,
	DXGKDDI_INTERFACE_VERSION_WIN8,
	DXGKDDI_INTERFACE_VERSION_WDDM1_3,
	DXGKDDI_INTERFACE_VERSION_WDDM2_0,
	DXGKDDI_INTERFACE_VERSION_WDDM2_1,
	DXGKDDI_INTERFACE_VERSION_WDDM2_2,
	DXGKDDI_INTERFACE_VERSION_WDDM2_3,
	DXGKDDI_INTERFACE_VERSION_WDDM2_4,
	DXGKDDI_INTERFACE_VERSION_WDDM2_5,
	DXGKDDI_INTERFACE_VERSION_WDDM2_6,
	DXGKDDI_INTERFACE_VERSION_WDDM2_7,
	DXGKDDI_INTERFACE_VERSION_WDDM2_8,
	DXGKDDI_INTERFACE_VERSION_WDDM2_9,
	DXGKDDI_INTERFACE_VERSION_WDDM3_0,
	DXGKDDI_INTERFACE_VERSION_WDDM3_1,
	DXGKDDI_INTERFACE_VERSION_WDDM3_2,
};
static uint32_t version;

static void at_version(struct scripted_miniport *m)
{
	scripted_set_version(m, versions[version]);
	if (versions[version] >= DXGKDDI_INTERFACE_VERSION_WDDM2_0)
		m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	m->settings.complete_at_once = true;
	m->settings.source_count = 1;
	m->settings.child_count = 1;
	m->settings.caps.FlipCaps.FlipOnVSyncMmIo = 1;
}

static NTSTATUS create(struct sync_world *s, uint32_t type, uint32_t flags, int event,
		       D3DKMT_CREATESYNCHRONIZATIONOBJECT2 *args)
{
	memset(args, 0, sizeof(*args));
	args->hSyncObject = args->Info.SharedHandle = 0xdead;
	if (type == D3DDDI_CPU_NOTIFICATION)
		args->Info.CPUNotification.Event = (HANDLE)(uintptr_t)event;
	else if (type == D3DDDI_PERIODIC_MONITORED_FENCE)
		args->Info.PeriodicMonitoredFence.hAdapter = s->adapter;
	return sync_try_create(s, type, flags, args);
}

/* The created object has the requested properties. */
static bool is_right(const D3DKMT_CREATESYNCHRONIZATIONOBJECT2 *args, uint32_t type, uint32_t flags)
{
	bool global = (flags & 3) == 1; /* SFL-02 */
	const void *address = NULL;

	if (type == D3DDDI_MONITORED_FENCE)
		address = args->Info.MonitoredFence.FenceValueCPUVirtualAddress;
	else if (type == D3DDDI_PERIODIC_MONITORED_FENCE)
		address = args->Info.PeriodicMonitoredFence.FenceValueCPUVirtualAddress;
	return args->hSyncObject && args->hSyncObject != 0xdead &&
	       (global ? (args->Info.SharedHandle & 0x3F) == 2 : !args->Info.SharedHandle) &&
	       (type >= D3DDDI_MONITORED_FENCE) == (address != NULL);
}

/* 1: accepted. A difference fails. */
static uint32_t try_cell(struct sync_world *s, uint32_t type, uint32_t flags, int event)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args;
	bool legal = flag_expected(version, false, type, flags);
	NTSTATUS status = create(s, type, flags, event, &args);

	if (status != (legal ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER) ||
	    (legal && !is_right(&args, type, flags)) ||
	    (!legal && (args.hSyncObject != 0xdead || s->w.client.findings != 1)))
		fail_msg(
			"version 0x%x type %u flags 0x%x: status 0x%08x, handle 0x%x, shared 0x%x, "
			"%u findings",
			version, type, flags, (unsigned)status, args.hSyncObject,
			args.Info.SharedHandle, s->w.client.findings);
	if (legal)
		assert_int_equal(sync_destroy(args.hSyncObject), STATUS_SUCCESS);
	client_forget(&s->w.client);
	/* the worker destroys it */
	if (legal && type == D3DDDI_PERIODIC_MONITORED_FENCE)
		vidmm_settle(s->w.client.host);
	return legal;
}

static void sfl_31_sfl_32_syn_06_each_legal_combination_creates_an_object(void **state)
{
	uint32_t cells = 0, accepted = 0;
	int event = sync_event();

	for (version = 1; version <= FLAG_LAST_VERSION; version++) {
		struct sync_world s;

		sync_start(&s, state, at_version);
		for (uint32_t type = 0; type < FLAG_TYPES; type++) {
			for (uint32_t low = 0; low < FLAG_LOW; low++, cells++)
				accepted += try_cell(&s, type, low, event);
			for (uint32_t high = 1; high <= FLAG_HIGH; high++, cells++)
				accepted += try_cell(&s, type, flag_high_bits(high), event);
		}
		assert_int_equal(s.w.m->live_events + s.w.m->live_periodic, 0);
		sync_stop(&s);
	}
	close(event);
	printf("# %u cells, %u accepted and made, 0 differences\n", cells, accepted);
	assert_true(accepted > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(sfl_31_sfl_32_syn_06_each_legal_combination_creates_an_object),
	};

	return cmocka_run_group_tests_name("sync cells", tests, NULL, NULL);
}
