/* SPDX-License-Identifier: MIT */
/* What a start records for its caller: the miniport's answers, refused or not. */
#include "port_fixture.h"

#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, port_fixture_teardown)
#define MIB        ((uint64_t)1 << 20)

static struct vidmm_adapter_report report;

static int setup(void **state)
{
	int failed = port_fixture_setup(state);
	struct port_fixture *f = *state;

	memset(&report, 0, sizeof(report));
	report.struct_size = sizeof(report);
	if (!failed)
		f->options.report = &report;
	return failed;
}

static void report_holds_the_miniports_answers(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.caps.MaxAllocationListSlotId = 12;
	f->m->settings.caps.HighestAcceptableAddress.QuadPart = -1;
	f->m->settings.caps.MemoryManagementCaps.OutOfOrderLock = 1;
	f->m->settings.caps.InterruptMessageNumber = 5;
	f->m->settings.paging_private_bytes = 40;
	port_fixture_run(f);
	assert_int_equal(report.step, VIDMM_START_SEGMENTS); /* other fields are not set by port */
	assert_int_equal(report.interface_version, DXGKDDI_INTERFACE_VERSION_WDDM1_3);
	assert_int_equal(report.driver_caps_bytes, 552);
	assert_int_equal(report.max_allocation_list_slot_id, 12);
	assert_int_equal(report.highest_acceptable_address, UINT64_MAX);
	assert_int_equal(report.interrupt_message_number, 5);
	assert_int_equal(report.aperture_segment_commit_limit, SCRIPTED_APERTURE_BYTES);
	assert_int_equal(report.memory_management_caps, 1);
	assert_int_equal(report.scheduling_caps, 1);
	assert_int_equal(report.nb_asymetric_processing_nodes, 2);
	assert_int_equal(report.paging_node, 1);
	assert_int_equal(report.node_count, 2);
	assert_int_equal(report.node_depth, 2);
	assert_int_equal(report.paging_buffer_size, 64 << 10);
	assert_int_equal(report.paging_buffer_private_data_size, 40);
}

static void report_holds_the_device_and_the_segments(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.segment[1].flags |= 0x4; /* CpuVisible: ignored on an aperture */
	port_fixture_run(f);
	assert_int_equal(report.bar_count, 1);
	assert_int_equal(report.bar[0].physical_address, f->m->bar_physical);
	assert_int_equal(report.bar[0].size_bytes, SCRIPTED_BAR_BYTES);
	assert_int_equal(report.segment_count, 2);
	assert_int_equal(report.described_count, 2);
	assert_int_equal(report.segment[0].cpu_translated_address, f->m->bar_physical);
	assert_int_equal(report.segment[0].base_address, SCRIPTED_MEMORY_BASE);
	assert_int_equal(report.segment[0].size_bytes, SCRIPTED_BAR_BYTES);
	assert_int_equal(report.segment[1].flags, 0x15);
	assert_int_equal(report.segment[1].effective_flags, 0x11);
}

/* Also of a refused segment, and of those after it. */
static void report_holds_a_refused_answer(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.segment[0].size_bytes = 4097;
	f->m->settings.segment[1].commit_limit_bytes = 64 * MIB;
	f->m->settings.paging_segment = 7;
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	assert_int_equal(f->findings, 3); /* SEG-03, SEG-04, SEG-21 */
	assert_int_equal(report.step, VIDMM_START_SEGMENTS);
	assert_int_equal(report.described_count, 2);
	assert_int_equal(report.segment[0].size_bytes, 4097);
	assert_int_equal(report.segment[0].effective_flags, 0);
	assert_int_equal(report.segment[1].commit_limit_bytes, 64 * MIB);
	assert_int_equal(report.paging_buffer_segment_id, 7);
	f->findings = 0;
}

static void report_names_the_failed_step(void **state)
{
	static const struct {
		enum vidmm_ddi ddi;
		uint32_t step;
	} cases[] = {
		{VIDMM_DDI_ADD_DEVICE, VIDMM_START_ADD_DEVICE},
		{VIDMM_DDI_START_DEVICE, VIDMM_START_START_DEVICE},
		{VIDMM_DDI_QUERY_ADAPTER_INFO, VIDMM_START_DRIVERCAPS},
	};
	struct port_fixture *f = *state;

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(cases); i++) {
		memset(&report, 0, sizeof(report));
		scripted_fail(f->m, cases[i].ddi, STATUS_UNSUCCESSFUL, 1);
		assert_int_equal(port_fixture_start(f), STATUS_UNSUCCESSFUL);
		assert_int_equal(report.step, cases[i].step);
		assert_int_equal(report.driver_caps_bytes, 0);
	}
	f->m->settings.table.Version = DXGKDDI_INTERFACE_VERSION_WDDM3_2 + 0x1000;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_int_equal(report.step, VIDMM_START_LOAD);
	assert_int_equal(report.interface_version, DXGKDDI_INTERFACE_VERSION_WDDM3_2 + 0x1000);
}

/* A refused segment is not compared with others; its kind still counts for the paging buffer. */
static void refused_segments_cause_no_further_findings(void **state)
{
	struct port_fixture *f = *state;

	f->m->settings.segment[0].size_bytes = 4097;
	f->m->settings.segment[1].base = 0;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-03", "segment 1");
	f->m->settings.segment[0].size_bytes = SCRIPTED_BAR_BYTES;
	f->m->settings.segment[1].size_bytes = 4097;
	f->m->settings.paging_segment = 2;
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	assert_int_equal(f->findings, 1);
	assert_finding(f, "SEG-03", "segment 2");
	f->findings = 0;
}

static void fill_the_newest_caps(void *context, struct scripted_miniport *m,
				 struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_QUERY_ADAPTER_INFO &&
	    call->in.query.Type == DXGKQAITYPE_DRIVERCAPS) {
		DXGK_DRIVERCAPS *caps = call->args;

		caps->WDDMVersion = DXGKDDI_WDDMv1_3;
		caps->SupportPerEngineTDR = TRUE;
	}
}

/*
 * Fields that the version's structure does not have are not reported, whatever their memory
 * contains.
 */
static void report_contains_only_fields_of_the_version(void **state)
{
	struct port_fixture *f = *state;

	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_VISTA);
	f->m->hook = fill_the_newest_caps;
	assert_refused(f, STATUS_INVALID_PARAMETER, "PNP-01", "was written");
	assert_int_equal(report.driver_caps_bytes, 336);
	assert_int_equal(report.wddm_version, 0);
	assert_int_equal(report.support_per_engine_tdr, 0);
	assert_int_equal(report.number_of_swizzling_ranges, 0);
}

/* SEG-12: a table is not read without the flag, nor if its length is impossible. */
static void report_does_not_read_an_invalid_bank_table(void **state)
{
	static SIZE_T table[] = {4 << 20};
	struct port_fixture *f = *state;

	f->m->settings.segment[0].bank_count = 2;
	f->m->settings.segment[0].bank_table = (SIZE_T *)(uintptr_t)0x10;
	port_fixture_run(f);
	assert_int_equal(report.segment[0].bank_count, 2);
	assert_int_equal(report.segment[0].bank_end_count, 0);
	port_fixture_stop(f);
	f->m->settings.segment[0].flags |= 0x8;
	f->m->settings.segment[0].bank_count = 1000;
	assert_refused(f, STATUS_INVALID_PARAMETER, "SEG-12", "1000 banks");
	assert_int_equal(report.segment[0].bank_end_count, 0);
	f->m->settings.segment[0].bank_count = 2;
	f->m->settings.segment[0].bank_table = table;
	port_fixture_run(f);
	assert_int_equal(report.segment[0].bank_end_count, 1);
	assert_int_equal(report.segment[0].bank_end[0], 4 * MIB);
}

/* The registry values of the options are under both keys that a miniport is given. */
static uint32_t service_value;

static NTSTATUS entry_that_reads(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *path)
{
	static const uint16_t text[] = {'A', 'n', 's', 'w', 'e', 'r'};
	struct {
		ULONG title_index, type, length;
		uint32_t data[2];
	} value;
	UNICODE_STRING name = {sizeof(text), sizeof(text), (PWSTR)(uintptr_t)text};
	OBJECT_ATTRIBUTES attributes;
	HANDLE key;
	ULONG length;

	InitializeObjectAttributes(&attributes, path, OBJ_KERNEL_HANDLE, NULL, NULL);
	assert_int_equal(ZwOpenKey(&key, KEY_READ, &attributes), STATUS_SUCCESS);
	assert_int_equal(ZwQueryValueKey(key, &name, KeyValuePartialInformation, &value,
					 sizeof(value), &length),
			 STATUS_SUCCESS);
	service_value = value.data[0];
	ZwClose(key);
	return scripted_driver_entry(driver, path);
}

static void driver_entry_finds_the_registry_values(void **state)
{
	static const struct vmm_port_registry_value values[] = {{"Answer", 42}};
	struct port_fixture *f = *state;

	f->options.initialization_data = NULL;
	f->options.driver_entry = entry_that_reads;
	f->options.registry = values;
	f->options.registry_count = 1;
	scripted_arm(f->m);
	port_fixture_run(f);
	assert_int_equal(service_value, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(report_holds_the_miniports_answers),
		TEST(report_holds_the_device_and_the_segments),
		TEST(report_holds_a_refused_answer),
		TEST(report_names_the_failed_step),
		TEST(refused_segments_cause_no_further_findings),
		TEST(report_contains_only_fields_of_the_version),
		TEST(report_does_not_read_an_invalid_bank_table),
		TEST(driver_entry_finds_the_registry_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
