/* SPDX-License-Identifier: MIT */
/*
 * Links: queries to the miniport, valid answers, and the order in which physical adapters start and
 * stop (LNK).
 */
#include "port_fixture.h"

#include <stdio.h>
#include <string.h>

#define QUERIES "query_adapter_info query_adapter_info query_adapter_info"
#define TEST(name)                                                   \
	cmocka_unit_test_setup_teardown(name, set_up, tear_down),    \
	{                                                            \
		"linux: " #name, name, set_up_linux, tear_down, NULL \
	}

/*
 * The second and third adapter; the first is the fixture's. The calls of all of them are recorded
 * in order.
 */
static struct scripted_miniport *all[3];
static char order[1024];

static void note(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	size_t used = strlen(order);
	uint32_t which = 0;

	(void)context;
	while (all[which] != m)
		which++;
	snprintf(order + used, sizeof(order) - used, "%s%s%u", used ? " " : "",
		 vmm_observe_reason_name(VIDMM_EVENT_DDI, call->ddi), which);
}

static int prepare(struct port_fixture *f)
{
	all[0] = f->m;
	for (uint32_t i = 1; i < VMM_ARRAY_LENGTH(all); i++)
		all[i] = scripted_create();
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(all); i++)
		all[i]->hook = note;
	f->options.initialization_data = scripted_table(f->m);
	order[0] = '\0';
	return 0;
}

static int set_up(void **state)
{
	return port_fixture_setup(state) ? -1 : prepare(*state);
}

static int set_up_linux(void **state)
{
	return port_fixture_setup_linux(state) ? -1 : prepare(*state);
}

static int tear_down(void **state)
{
	port_fixture_stop(*state);
	for (uint32_t i = 1; i < VMM_ARRAY_LENGTH(all); i++)
		scripted_destroy(all[i]);
	return port_fixture_teardown(state);
}

/* Creates that many adapters, which agree that they are a link. */
static void link_up(struct port_fixture *f, uint32_t count, uint32_t lead)
{
	scripted_link(all, count, lead);
	for (uint32_t i = 0; i < count; i++) { /* four nodes are scheduled */
		all[i]->settings.caps.GpuEngineTopology.NbAsymetricProcessingNodes =
			count == 2 ? 2 : 1;
		all[i]->settings.caps.MemoryManagementCaps.PagingNode = count == 2;
	}
	f->options.physical_adapters = count;
	order[0] = '\0';
}

static void assert_undone(struct port_fixture *f, uint32_t count)
{
	assert_null(f->port);
	for (uint32_t i = 0; i < count; i++)
		assert_string_equal(scripted_order(all[i]),
				    i ? "add_device link_device remove_device"
				      : "add_device link_device remove_device unload");
}

/* ---- LNK-01: which adapters are queried, and when ---- */

static void lnk_01_each_adapter_is_queried_right_after_adddevice(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 2, 0);
	port_fixture_run(f);
	assert_int_equal(vmm_port_physical_adapters(f->port), 2);
	assert_non_null(strstr(order, "add_device0 link_device0 add_device1 link_device1 "));
	for (uint32_t i = 0; i < 2; i++) {
		const struct scripted_call *asked = scripted_last(all[i], VIDMM_DDI_LINK_DEVICE);

		assert_ptr_equal(asked->handle, all[i]->device_object);
		assert_int_equal(asked->irql, PASSIVE_LEVEL);
	}
	assert_string_equal(scripted_order(all[0]), "add_device link_device start_device " QUERIES);
	assert_string_equal(scripted_order(all[1]), "add_device link_device start_device");
}

static void lnk_01_without_the_entry_there_is_no_link(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 2, 0);
	f->m->settings.table.DxgkDdiLinkDevice = NULL;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_string_equal(scripted_order(f->m), "unload");
	assert_string_equal(scripted_order(all[1]), "");
	assert_non_null(strstr(f->reason, "LNK-01"));
	assert_non_null(strstr(f->reason, "2 physical adapters"));
	assert_int_equal(f->findings, 0);
	/* One adapter needs no entry. */
	scripted_forget(f->m);
	scripted_link(all, 1, 0);
	f->m->settings.table.DxgkDdiLinkDevice = NULL;
	f->options.physical_adapters = 1;
	port_fixture_run(f);
	assert_int_equal(vmm_port_physical_adapters(f->port), 1);
	assert_int_equal(f->reasons, 1);
}

static void lnk_01_a_failed_chain_query_ends_the_link(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 2, 0);
	scripted_fail(all[1], VIDMM_DDI_LINK_DEVICE, STATUS_NO_MEMORY, 1);
	assert_int_equal(port_fixture_start(f), STATUS_NO_MEMORY);
	assert_undone(f, 2);
	assert_non_null(strstr(f->reason, "LNK-01: DxgkDdiLinkDevice failed with 0xc0000017"));
	assert_int_equal(f->findings, 0);
	/* No state remains that affects the next start. */
	scripted_arm(f->m);
	port_fixture_run(f);
}

static void lnk_01_a_single_adapter_is_queried_and_runs(void **state)
{
	struct port_fixture *f = *state;

	for (ULONG number = 0; number < 2; number++) {
		link_up(f, 1, 0);
		f->m->settings.link.NumberOfLinksInChain = number;
		scripted_forget(f->m);
		port_fixture_run(f);
		assert_string_equal(scripted_order(f->m),
				    "add_device link_device start_device " QUERIES);
		assert_int_equal(vmm_port_physical_adapters(f->port), 1);
		port_fixture_stop(f);
	}
	assert_int_equal(f->reasons, 0);
	scripted_fail(f->m, VIDMM_DDI_LINK_DEVICE, STATUS_UNSUCCESSFUL, 1);
	port_fixture_run(f);
	assert_int_equal(f->reasons, 1);
	assert_non_null(strstr(f->reason, "the adapter is linked is unknown"));
}

/* ---- LNK-02: they must name one chain ---- */

static void expect_no_chain(struct port_fixture *f, const char *text)
{
	for (uint32_t i = 0; i < 3; i++)
		scripted_forget(all[i]);
	scripted_arm(f->m);
	assert_refused(f, STATUS_INVALID_PARAMETER, "LNK-02", text);
	assert_undone(f, 3);
}

static void lnk_02_adapters_of_a_link_must_name_one_chain_and_one_lead(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 3, 1);
	all[2]->settings.link.ChainUid = 9;
	expect_no_chain(f, "chain 7 of 3 adapters, but adapter number 3 in chain 9 of 3");
	link_up(f, 3, 1);
	all[1]->settings.link.NumberOfLinksInChain = 2;
	expect_no_chain(f, "chain 7 of 3 adapters, but adapter number 2 in chain 7 of 2");
	link_up(f, 3, 1);
	all[1]->settings.link.LeadLink = FALSE;
	expect_no_chain(f, "0 of the 3 adapters of chain 7 have LeadLink");
	link_up(f, 3, 1);
	all[2]->settings.link.LeadLink = TRUE;
	expect_no_chain(f, "2 of the 3 adapters of chain 7 have LeadLink");
	link_up(f, 3, 1);
	for (uint32_t i = 0; i < 3; i++)
		scripted_forget(all[i]);
	port_fixture_run(f);
}

/* ---- LNK-03: the number of adapters ---- */

static void lnk_03_an_incomplete_chain_does_not_start(void **state)
{
	static const struct {
		uint32_t there;
		ULONG expected;
		const char *text;
	} cases[] = {{2, 3, "to have 3 physical adapters, 2 are there"},
		     {3, 2, "to have 2 physical adapters, 3 are there"},
		     {2, 0, "to have 0 physical adapters, 2 are there"},
		     {1, 2, "to have 2 physical adapters, 1 is there"}};
	struct port_fixture *f = *state;

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(cases); i++) {
		link_up(f, cases[i].there, 0);
		for (uint32_t k = 0; k < 3; k++) {
			all[k]->settings.link.NumberOfLinksInChain = cases[i].expected;
			scripted_forget(all[k]);
		}
		assert_int_equal(port_fixture_start(f), STATUS_DEVICE_CONFIGURATION_ERROR);
		assert_undone(f, cases[i].there);
		assert_non_null(strstr(f->reason, "LNK-03"));
		assert_non_null(strstr(f->reason, cases[i].text));
		assert_int_equal(f->findings, 0);
	}
}

/* ---- LNK-04: the lead is started last and stopped first ---- */

static void lnk_04_the_lead_starts_last_and_stops_first(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 3, 1);
	port_fixture_run(f);
	assert_string_equal(order, "add_device0 link_device0 add_device1 link_device1 add_device2 "
				   "link_device2 start_device2 start_device0 start_device1 "
				   "query_adapter_info1 query_adapter_info1 query_adapter_info1");
	order[0] = '\0';
	vmm_port_set_power_state(f->port, PowerDeviceD3, PowerActionSleep);
	vmm_port_set_power_state(f->port, PowerDeviceD0, PowerActionNone);
	assert_string_equal(order, "set_power_state1 set_power_state0 set_power_state2 "
				   "set_power_state2 set_power_state0 set_power_state1");
	order[0] = '\0';
	scripted_arm(f->m);
	port_fixture_stop(f);
	assert_string_equal(order, "stop_device1 stop_device0 stop_device2 remove_device1 "
				   "remove_device0 remove_device2 unload0");
	assert_nothing_found(f);
}

static void lnk_04_a_failed_start_of_the_lead_stops_the_others(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 3, 0);
	scripted_fail(f->m, VIDMM_DDI_START_DEVICE, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(port_fixture_start(f), STATUS_UNSUCCESSFUL);
	assert_non_null(strstr(order, "start_device2 start_device1 start_device0 stop_device1 "
				      "stop_device2 remove_device0 remove_device1 remove_device2 "
				      "unload"));
	/* If an adapter before it fails, only those that started are stopped. */
	link_up(f, 3, 0);
	scripted_fail(all[1], VIDMM_DDI_START_DEVICE, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(port_fixture_start(f), STATUS_UNSUCCESSFUL);
	assert_non_null(strstr(order, "start_device2 start_device1 stop_device2 remove_device0 "));
	link_up(f, 3, 0);
	port_fixture_run(f);
}

static void lnk_04_only_the_lead_releases_a_display(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 2, 1);
	f->m->settings.table.DxgkDdiStopDeviceAndReleasePostDisplayOwnership =
		scripted_stop_and_release;
	port_fixture_run(f);
	order[0] = '\0';
	scripted_arm(f->m);
	port_fixture_stop(f);
	assert_string_equal(order, "stop_device_and_release_post_display_ownership1 stop_device0 "
				   "remove_device1 remove_device0 unload0");
}

/* ---- each adapter ---- */

static void each_adapter_of_a_link_has_its_own_device(void **state)
{
	struct port_fixture *f = *state;
	struct vidmm_adapter_report report = {.struct_size = sizeof(report)};

	link_up(f, 2, 1);
	f->options.report = &report;
	port_fixture_run(f);
	assert_ptr_not_equal(all[0]->device_object, all[1]->device_object);
	assert_ptr_equal(all[0]->device_object->DriverObject, all[1]->device_object->DriverObject);
	assert_ptr_not_equal(all[0]->services.DeviceHandle, all[1]->services.DeviceHandle);
	assert_ptr_not_equal(all[0]->bar, all[1]->bar);
	assert_int_not_equal(all[0]->bar_physical, all[1]->bar_physical);
	memset(all[0]->bar, 0x11, 64);
	memset(all[1]->bar, 0x22, 64);
	assert_int_equal(all[0]->bar[63], 0x11);
	/* To clients they are one adapter: the lead. */
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(
			scripted_last(all[i], VIDMM_DDI_START_DEVICE)->in.start.AdapterLuid.LowPart,
			vmm_port_luid(f->port));
	assert_ptr_equal(f->port, all[1]->services.DeviceHandle);
	assert_int_equal(report.bar[0].physical_address, all[1]->bar_physical);
	assert_int_equal(report.segment_count, 2);
}

struct telling {
	struct scripted_miniport *m;
	UINT engine;
	bool quiet; /* queues no DPC */
};

static BOOLEAN tell(PVOID context)
{
	const struct telling *t = context;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED};

	data.DmaCompleted.SubmissionFenceId = 77;
	data.DmaCompleted.EngineOrdinal = t->engine;
	t->m->services.DxgkCbNotifyInterrupt(t->m->services.DeviceHandle, &data);
	if (!t->quiet)
		t->m->services.DxgkCbQueueDpc(t->m->services.DeviceHandle);
	return TRUE;
}

static void interrupt(struct scripted_miniport *m, UINT engine, bool quiet)
{
	struct telling t = {m, engine, quiet};
	BOOLEAN result;

	assert_int_equal(m->services.DxgkCbSynchronizeExecution(m->services.DeviceHandle, tell, &t,
								0, &result),
			 STATUS_SUCCESS);
	assert_true(result);
}

static void sub_08_adapters_of_a_link_share_one_interrupt_line(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 2, 0);
	port_fixture_run(f);
	interrupt(all[1], 0, false);
	assert_int_equal(f->interrupts, 1);
	assert_int_equal(f->interrupt[0].DmaCompleted.SubmissionFenceId, 77);
	assert_int_equal(f->dpcs, 1);
	assert_int_equal(all[1]->dpcs, 1); /* of the adapter that asked for it */
	assert_int_equal(all[0]->dpcs, 0);
	interrupt(all[0], 0, false);
	assert_int_equal(f->dpcs, 2);
	assert_int_equal(all[0]->dpcs, 1);
	assert_nothing_found(f);
	interrupt(all[1], 0, true);
	assert_finding(f, "SUB-08", "no DPC queued");
	f->findings = 0;
	interrupt(all[1], 2, false);
	assert_finding(f, "SCH-08", "engine 2");
	f->findings = 0;
	/* Nodes of the second adapter follow those of the first. */
	interrupt(all[1], 1, false);
	assert_int_equal(f->interrupts, 4);
	assert_int_equal(f->interrupt[3].DmaCompleted.NodeOrdinal, 2);
	assert_int_equal(f->interrupt[3].DmaCompleted.SubmissionFenceId, 77);
	assert_nothing_found(f);
}

static void a_violation_by_one_adapter_stops_the_link(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 2, 0);
	port_fixture_run(f);
	vmm_port_fatal(all[1]->services.DeviceHandle, VMM_PORT_FATAL_VIDMM, 5, 0, 0);
	assert_fatal(f, VMM_PORT_FATAL_VIDMM, 5);
	assert_true(vmm_port_dead(all[1]->services.DeviceHandle));
	vmm_port_fatal(f->port, VMM_PORT_FATAL_VIDMM, 6, 0, 0);
	assert_fatal(f, VMM_PORT_FATAL_VIDMM, 5); /* reported once */
	scripted_arm(f->m);
	port_fixture_stop(f);
}

/* ---- unsupported links ---- */

static void links_of_wddm_2_x_or_of_too_many_adapters_are_refused(void **state)
{
	struct port_fixture *f = *state;

	link_up(f, 2, 0);
	f->options.physical_adapters = VMM_PORT_LINKS_MAX + 1;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "a link of 5 physical adapters is not built"));
	assert_string_equal(scripted_order(f->m), "");
	f->options.physical_adapters = 2;
	scripted_link(all, 3, 0);
	f->options.physical_adapters = 3; /* of two nodes each */
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "3 adapters of 2 nodes each are linked"));
	assert_string_equal(scripted_order(all[2]),
			    "add_device link_device start_device stop_device remove_device");
	scripted_forget(f->m);
	link_up(f, 2, 0);
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "only for miniports before 2.0"));
	assert_string_equal(scripted_order(f->m), "unload");
	assert_int_equal(f->findings, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lnk_01_each_adapter_is_queried_right_after_adddevice),
		TEST(lnk_01_without_the_entry_there_is_no_link),
		TEST(lnk_01_a_failed_chain_query_ends_the_link),
		TEST(lnk_01_a_single_adapter_is_queried_and_runs),
		TEST(lnk_02_adapters_of_a_link_must_name_one_chain_and_one_lead),
		TEST(lnk_03_an_incomplete_chain_does_not_start),
		TEST(lnk_04_the_lead_starts_last_and_stops_first),
		TEST(lnk_04_a_failed_start_of_the_lead_stops_the_others),
		TEST(lnk_04_only_the_lead_releases_a_display),
		TEST(each_adapter_of_a_link_has_its_own_device),
		TEST(sub_08_adapters_of_a_link_share_one_interrupt_line),
		TEST(a_violation_by_one_adapter_stops_the_link),
		TEST(links_of_wddm_2_x_or_of_too_many_adapters_are_refused),
	};

	return cmocka_run_group_tests_name("port_link", tests, NULL, NULL);
}
