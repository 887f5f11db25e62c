/* SPDX-License-Identifier: MIT */
/*
 * Contexts whose commands are at GPU virtual addresses: what is submitted, and what the GPU
 * executes.
 */
#include "command_world.h"

#include <string.h>

static void sub_23_commands_run_at_the_clients_virtual_address(void **state)
{
	struct stage s;

	stage_begin(&s, state, va_memory);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	assert_int_equal(stage_submit(&s, &args), S_OK);
	wddm2_run(&s.v.w);
	assert_int_equal(va_word(&s.v, s.target_at + 64), 0x600D);
	const struct scripted_call *call = scripted_last(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL);
	assert_int_equal(call->in.submit_virtual.DmaBufferVirtualAddress, s.commands_at);
	assert_int_equal(call->in.submit_virtual.DmaBufferSize, args.CommandLength);
	assert_int_equal(call->irql, DISPATCH_LEVEL);
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_PATCH),
			 scripted_count(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND));
	/* A virtual context has no Render; a context with patching has no SubmitCommandVirtual. */
	D3DDDICB_RENDER render = {.hContext = s.context};
	assert_int_equal(s.v.w.device.cb->pfnRenderCb(s.v.w.device.handle, &render), E_INVALIDARG);
	world_expect_finding(&s.v.w, "DMA-08");
	args.BroadcastContext[0] = s.v.w.context.c.hContext;
	assert_int_equal(stage_submit(&s, &args), E_INVALIDARG);
	world_expect_finding(&s.v.w, "SUB-23");
	args = stage_command(&s);
	args.Flags.Value = 2;
	assert_int_equal(stage_submit(&s, &args), E_INVALIDARG);
	world_expect_finding(&s.v.w, "SUB-23");
	stage_finish(&s);
}

static void completes_on_request(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.complete_at_once = false;
}

/* RES-08: the command waits until the whole residency list is resident. */
static void sub_23_the_residency_list_is_resident_while_a_command_runs(void **state)
{
	struct stage s;

	stage_begin(&s, state, completes_on_request);
	D3DKMT_HANDLE big = va_allocate(&s.v, 12 * MIB, WORLD_MEMORY);
	struct client_device other;
	client_open(&s.v.w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&other);
	D3DKMT_HANDLE theirs = wddm2_allocate(&other, 12 * MIB, WORLD_MEMORY);
	va_make(&s.v, big);
	uint64_t at = va_map(&s.v, big, 12 * MIB);
	va_store(&s.v, at + 5 * MIB, 0x77);
	wddm2_make(&s.v.w, &other, &queue, &theirs, 1); /* evicts the list of the first device */
	assert_false(wddm2_is_in_memory(&s.v.w.device, big));
	stage_fill(&s, at + 4 * MIB, 0x4444);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	assert_int_equal(stage_submit(&s, &args), S_OK);
	wddm2_run(&s.v.w);
	assert_true(wddm2_is_in_memory(&s.v.w.device, big));
	assert_int_equal(va_word(&s.v, at + 4 * MIB), 0x4444);
	assert_int_equal(va_word(&s.v, at + 5 * MIB), 0x77);
	client_close(&other);
	stage_finish(&s);
}

static void sub_23_invalid_parameter_puts_only_its_device_in_error(void **state)
{
	struct stage s;

	stage_begin(&s, state, completes_on_request);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	assert_int_equal(stage_submit(&s, &args), S_OK);
	scripted_fail(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL, STATUS_INVALID_PARAMETER, 1);
	assert_int_equal(stage_submit(&s, &args), S_OK);
	/* The packet before it is still with the GPU, so its fence is not complete either. */
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL), 2);
	assert_int_equal(scripted_outstanding(s.v.w.m, 0), 1);
	wddm2_run(&s.v.w);
	assert_int_equal(va_word(&s.v, s.target_at + 64), 0x600D);
	assert_true(stage_submit(&s, &args) != S_OK);
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL), 2);
	assert_int_equal(s.v.w.fatals, 0);
	stage_finish(&s); /* waits for queued packets: there are none */
}

static void sub_23_any_other_submit_failure_is_fatal(void **state)
{
	struct stage s;

	stage_begin(&s, state, va_memory);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	scripted_fail(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL, STATUS_UNSUCCESSFUL, 1);
	s.v.w.expected_fatals = 1;
	(void)stage_submit(&s, &args);
	vidmm_settle(s.v.w.client.host);
	assert_int_equal(s.v.w.fatal[0], 0x119);
	assert_int_equal(s.v.w.fatal[1], 0x2);
	world_expect_finding(&s.v.w, "SUB-23");
	world_stop(&s.v.w);
}

static void with_private(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.context.DmaBufferPrivateDataSize = 16;
}

static void sub_24_client_private_data_is_copied_to_the_miniport(void **state)
{
	struct stage s;
	uint64_t data[3] = {0x1111, 0x2222, 0x3333};

	stage_begin(&s, state, with_private);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	args.pPrivateDriverData = data;
	args.PrivateDriverDataSize = 17;
	assert_int_equal(stage_submit(&s, &args), E_INVALIDARG);
	world_expect_finding(&s.v.w, "SUB-24");
	args.PrivateDriverDataSize = 12;
	assert_int_equal(stage_submit(&s, &args), S_OK);
	wddm2_run(&s.v.w);
	const DXGKARG_SUBMITCOMMANDVIRTUAL *got =
		&scripted_last(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL)->in.submit_virtual;
	assert_int_equal(got->DmaBufferPrivateDataSize, 16);
	assert_int_equal(got->DmaBufferUmdPrivateDataSize, 12);
	assert_memory_equal(got->pDmaBufferPrivateData, data, 12);
	args.PrivateDriverDataSize = 16;
	assert_int_equal(stage_submit(&s, &args), S_OK);
	stage_finish(&s);
}

static void with_validation(struct scripted_miniport *m)
{
	with_private(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_5);
	scripted_validate_commands(m);
}

static void sub_25_private_data_is_validated_before_anything_is_queued(void **state)
{
	struct stage s;
	uint64_t data = 0x7766554433221100;

	stage_begin(&s, state, with_validation);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	assert_int_equal(stage_submit(&s, &args), S_OK); /* no private data: nothing to validate */
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND), 0);
	args.pPrivateDriverData = &data;
	args.PrivateDriverDataSize = sizeof(data);
	assert_int_equal(stage_submit(&s, &args), S_OK);
	wddm2_run(&s.v.w);
	const DXGKARG_VALIDATESUBMITCOMMAND *asked =
		&scripted_last(s.v.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND)->in.validate_command;
	const DXGKARG_SUBMITCOMMANDVIRTUAL *got =
		&scripted_last(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL)->in.submit_virtual;
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND), 1);
	assert_int_equal(asked->Commands, s.commands_at);
	assert_int_equal(asked->CommandLength, args.CommandLength);
	assert_int_equal(asked->Flags.Value, 0);
	assert_int_equal(asked->ContextCount, 1);
	assert_ptr_equal(asked->Context[0], got->hContext);
	assert_int_equal(asked->PrivateDriverDataSize, 16);
	assert_int_equal(asked->UmdPrivateDataSize, sizeof(data));
	assert_int_equal(asked->HwQueueProgressFenceId, 0);
	/* What the miniport writes there is submitted. */
	const unsigned char *sent = got->pDmaBufferPrivateData;
	assert_memory_equal(sent, &data, sizeof(data));
	assert_int_equal(sent[sizeof(data)], SCRIPTED_VALIDATED);
	stage_finish(&s);
}

static void sub_25_a_command_that_fails_validation_is_not_queued(void **state)
{
	static const NTSTATUS refusals[] = {STATUS_INVALID_USER_BUFFER, STATUS_NO_MEMORY,
					    STATUS_PENDING};
	struct stage s;
	uint64_t data = 1;

	stage_begin(&s, state, with_validation);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	args.pPrivateDriverData = &data;
	args.PrivateDriverDataSize = sizeof(data);
	for (uint32_t i = 0; i < 3; i++) {
		scripted_fail(s.v.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND, refusals[i], 1);
		assert_int_equal(stage_submit(&s, &args), D3DDDIERR_INVALIDUSERBUFFER);
		world_expect_finding(&s.v.w, "SUB-25");
	}
	wddm2_run(&s.v.w);
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL), 0);
	assert_true(va_word(&s.v, s.target_at + 64) != 0x600D);
	assert_int_equal(stage_submit(&s, &args), S_OK); /* the device is not in error */
	wddm2_run(&s.v.w);
	assert_int_equal(va_word(&s.v, s.target_at + 64), 0x600D);
	stage_finish(&s);
}

static void with_validation_before_2_5(struct scripted_miniport *m)
{
	with_validation(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_4);
}

static void sub_25_before_wddm_2_5_validation_is_not_called(void **state)
{
	struct stage s;
	uint64_t data = 1;

	stage_begin(&s, state, with_validation_before_2_5);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	args.pPrivateDriverData = &data;
	args.PrivateDriverDataSize = sizeof(data);
	assert_int_equal(stage_submit(&s, &args), S_OK);
	wddm2_run(&s.v.w);
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND), 0);
	stage_finish(&s);
}

static void sub_26_context_and_primary_counts_out_of_range_are_refused(void **state)
{
	struct stage s;

	stage_begin(&s, state, va_memory);
	const UINT contexts[] = {0, 65};
	for (uint32_t i = 0; i < 2; i++) {
		D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
		args.BroadcastContextCount = contexts[i];
		assert_int_equal(stage_submit(&s, &args), E_INVALIDARG);
		world_expect_finding(&s.v.w, "SUB-26");
	}
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	args.NumPrimaries = 17;
	assert_int_equal(stage_submit(&s, &args), E_INVALIDARG);
	world_expect_finding(&s.v.w, "SUB-26");
	args = stage_command(&s);
	args.BroadcastContext[0] = (HANDLE)0x1234;
	assert_int_equal(stage_submit(&s, &args), E_INVALIDARG);
	world_expect_finding(&s.v.w, "SUB-26");
	args = stage_command(&s);
	args.NumPrimaries = 1;
	args.WrittenPrimaries[0] = s.target;
	assert_int_equal(stage_submit(&s, &args), S_OK);
	wddm2_run(&s.v.w);
	assert_int_equal(va_word(&s.v, s.target_at + 64), 0x600D);
	/* A primary that is not on the residency list. */
	args.WrittenPrimaries[0] = va_allocate(&s.v, 64 * KIB, WORLD_MEMORY);
	assert_true(stage_submit(&s, &args) != S_OK);
	world_expect_finding(&s.v.w, "SUB-26");
	args.NumPrimaries = 0;
	assert_true(stage_submit(&s, &args) != S_OK); /* the device is in error */
	stage_finish(&s);
}

static void va_12_setrootpagetable_precedes_the_first_submission(void **state)
{
	struct stage s;

	stage_begin(&s, state, va_two_levels);
	const struct scripted_call *root = scripted_last(s.v.w.m, VIDMM_DDI_SET_ROOT_PAGE_TABLE);
	/* the paging context's comes first */
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_SET_ROOT_PAGE_TABLE), 2);
	UINT entries = root->in.root.NumEntries;
	assert_int_equal(entries, 256); /* one page of entries */
	D3DDDICB_SUBMITCOMMAND args = stage_command(&s);
	assert_int_equal(stage_submit(&s, &args), S_OK);
	wddm2_run(&s.v.w);
	assert_int_equal(va_word(&s.v, s.target_at + 64), 0x600D);
	/* Beyond the root's size: a new root, with all entries of the old one. */
	D3DDDI_MAPGPUVIRTUALADDRESS far = va_mapping(&s.v, s.target, 16);
	far.BaseAddress = ((uint64_t)1 << 32) - 64 * KIB;
	va_must_map(&s.v, &far);
	assert_int_equal(scripted_count(s.v.w.m, VIDMM_DDI_SET_ROOT_PAGE_TABLE), 3);
	root = scripted_last(s.v.w.m, VIDMM_DDI_SET_ROOT_PAGE_TABLE);
	assert_int_equal(root->in.root.NumEntries, 4096);
	assert_int_equal(va_word(&s.v, far.VirtualAddress + 64), 0x600D);
	stage_fill(&s, far.VirtualAddress + 128, 0xFA2);
	assert_int_equal(stage_submit(&s, &args), S_OK);
	wddm2_run(&s.v.w);
	assert_int_equal(va_word(&s.v, s.target_at + 128), 0xFA2);
	stage_finish(&s);
}

static void sub_23_without_page_tables_virtual_contexts_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_1);
	D3DDDICB_CREATECONTEXTVIRTUAL args = {0};
	assert_int_equal(w.device.cb->pfnCreateContextVirtualCb(w.device.handle, &args), E_NOTIMPL);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_23_commands_run_at_the_clients_virtual_address),
		ON_BOTH(sub_23_the_residency_list_is_resident_while_a_command_runs),
		ON_SIM(sub_23_invalid_parameter_puts_only_its_device_in_error),
		ON_SIM(sub_23_any_other_submit_failure_is_fatal),
		ON_SIM(sub_24_client_private_data_is_copied_to_the_miniport),
		ON_BOTH(sub_25_private_data_is_validated_before_anything_is_queued),
		ON_SIM(sub_25_a_command_that_fails_validation_is_not_queued),
		ON_SIM(sub_25_before_wddm_2_5_validation_is_not_called),
		ON_SIM(sub_26_context_and_primary_counts_out_of_range_are_refused),
		ON_BOTH(va_12_setrootpagetable_precedes_the_first_submission),
		ON_SIM(sub_23_without_page_tables_virtual_contexts_are_refused),
	};

	return cmocka_run_group_tests_name("wddm2_command", tests, NULL, NULL);
}
