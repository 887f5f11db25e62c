/* SPDX-License-Identifier: MIT */
/* Results of DxgkDdiRender and what the port checks of them: DMA-28 to DMA-31, PAT-01 to PAT-10. */
#include "sched_world.h"
#include <support/viewer.h>

#include <string.h>

/* ---- statuses ---- */

/*
 * The miniport fails the call, or the port refuses its output: nothing is queued, no fence id is
 * used, and the next submission succeeds.
 */
static void refused(struct world *w, D3DKMT_HANDLE a, HRESULT expected)
{
	world_use(&w->context, a);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), expected);
	assert_int_equal(args.QueuedBufferCount, UINT32_MAX);
	assert_int_equal(world_render_submits(w), 0);
	assert_int_equal(scripted_count(w->m, VIDMM_DDI_PATCH), 0);
}

static void submission_succeeds(struct world *w, D3DKMT_HANDLE a)
{
	world_use(&w->context, a);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), S_OK);
	assert_int_equal(args.QueuedBufferCount, 1);
	world_run(w);
	assert_int_equal(world_render_submits(w), 1);
	world_assert_fences(w);
}

static void dma_31_a_failed_render_queues_nothing(void **state)
{
	static const struct {
		NTSTATUS status;
		HRESULT result;
	} failures[] = {
		{STATUS_NO_MEMORY, E_OUTOFMEMORY},
		{STATUS_PRIVILEGED_INSTRUCTION, D3DDDIERR_PRIVILEGEDINSTRUCTION},
		{STATUS_ILLEGAL_INSTRUCTION, D3DDDIERR_INVALIDINSTRUCTION},
		{STATUS_INVALID_PARAMETER, E_INVALIDARG},
		{STATUS_INVALID_USER_BUFFER, D3DDDIERR_INVALIDUSERBUFFER},
		{STATUS_INVALID_HANDLE, D3DDDIERR_INVALIDHANDLE},
		{STATUS_GRAPHICS_DRIVER_MISMATCH, (HRESULT)0xC0262009},
	};
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		scripted_fail(w.m, VIDMM_DDI_RENDER, failures[i].status, 1);
		refused(&w, a, failures[i].result);
		assert_int_equal(w.client.findings, 0);
	}
	scripted_fail(w.m, VIDMM_DDI_RENDER, STATUS_UNSUCCESSFUL, 1); /* not a status of this DDI */
	refused(&w, a, E_INVALIDARG);
	world_expect_finding(&w, "DMA-31");
	submission_succeeds(&w, a);
	world_stop(&w);
}

static void dma_31_a_gpu_exception_loses_the_device(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB};
	D3DKMT_HANDLE b = world_allocate_as(&other, &spec);

	scripted_fail(w.m, VIDMM_DDI_RENDER, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, 1);
	refused(&w, a, D3DDDIERR_DEVICEREMOVED);
	refused(&w, a, D3DDDIERR_DEVICEREMOVED); /* and so does every later call */
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 1);
	assert_int_equal(client_try_lock(&w.device, &a, 0, NULL), D3DDDIERR_DEVICEREMOVED);
	world_submit_use(&others, b); /* another device is not affected */
	world_run(&w);
	client_context_end(&others);
	client_close(&other);
	world_stop(&w);
}

/* ---- bounds ---- */

enum {
	COMMANDS_BEHIND,
	COMMANDS_BEFORE,
	PATCHES_BEHIND,
	PATCHES_BETWEEN,
	PRIVATE_BEHIND,
	BAD_BOUNDS
};

static void break_bounds(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARG_RENDER *out = call->args;
	const DXGKARG_RENDER *in = &call->in.render;

	(void)m;
	if (call->ddi != VIDMM_DDI_RENDER)
		return;
	switch (*(uint32_t *)context) {
	case COMMANDS_BEHIND:
		out->pDmaBuffer = (char *)in->pDmaBuffer + in->DmaSize + 1;
		break;
	case COMMANDS_BEFORE:
		out->pDmaBuffer = (char *)in->pDmaBuffer - 8;
		break;
	case PATCHES_BEHIND:
		out->pPatchLocationListOut =
			in->pPatchLocationListOut + in->PatchLocationListOutSize + 1;
		break;
	case PATCHES_BETWEEN:
		out->pPatchLocationListOut =
			(D3DDDI_PATCHLOCATIONLIST *)(void *)((char *)in->pPatchLocationListOut + 4);
		break;
	default:
		out->pDmaBufferPrivateData =
			(char *)in->pDmaBufferPrivateData + in->DmaBufferPrivateDataSize + 1;
		break;
	}
}

static void dma_28_output_past_the_end_of_a_buffer_stops_the_adapter(void **state)
{
	for (uint32_t which = 0; which < BAD_BOUNDS; which++) {
		struct world w;

		world_start(&w, state, NULL);
		D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
		w.m->hook = break_bounds;
		w.m->hook_context = &which;
		refused(&w, a, D3DDDIERR_DEVICEREMOVED);
		world_expect_finding(&w, "DMA-28");
		assert_int_equal(w.fatals, 1);
		assert_int_equal(w.fatal[0], 0x10E);
		refused(&w, a, D3DDDIERR_DEVICEREMOVED);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 1);
		w.expected_fatals = 1;
		world_stop(&w);
	}
}

/* Exactly full is within bounds. */
static void fill_it_all(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARG_RENDER *out = call->args;

	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_RENDER) {
		out->pDmaBuffer = (char *)call->in.render.pDmaBuffer + call->in.render.DmaSize;
		out->pDmaBufferPrivateData = (char *)call->in.render.pDmaBufferPrivateData + 64;
	}
}

static void dma_28_an_exactly_full_buffer_is_within_bounds(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = fill_it_all;
	submission_succeeds(&w, a);
	const DXGKARG_SUBMITCOMMAND *submit =
		&world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit;
	assert_int_equal(submit->DmaBufferSubmissionStartOffset, 0);
	assert_int_equal(submit->DmaBufferSubmissionEndOffset, submit->DmaBufferSize);
	assert_int_equal(submit->DmaBufferPrivateDataSubmissionEndOffset, 64);
	w.expected_faults = 1; /* its GPU ignores the zeros behind the command */
	world_stop(&w);
}

/* ---- several passes ---- */

#define COMMANDS 48u

static void short_patch_list(struct scripted_miniport *m)
{
	m->settings.context.PatchLocationListSize = 16;
}

static void one_patch_per_pass(struct scripted_miniport *m)
{
	m->settings.context.PatchLocationListSize = 1;
}

static void put_writes(struct world *w, D3DKMT_HANDLE a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		world_write(&w->context, a, 4 * i, 0x1000 + i);
}

static void expect_writes(struct world *w, D3DKMT_HANDLE a, uint32_t count)
{
	const uint32_t *words = client_lock(&w->device, a, 1);

	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(words[i], 0x1000 + i);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

static void dma_29_several_passes_are_one_submission(void **state)
{
	struct world w;
	uint32_t length = COMMANDS * sizeof(struct scripted_command);

	world_start(&w, state, short_patch_list);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	put_writes(&w, a, COMMANDS);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	const void *commands = w.context.c.pCommandBuffer;
	assert_int_equal(world_render(&w.context, &args), S_OK);
	assert_int_equal(args.QueuedBufferCount, 3);
	world_run(&w);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 3);
	assert_int_equal(world_render_submits(&w), 3);
	/* The commands of an out-of-process client are copied once (DMA-14). */
	if (is_out_of_process(w.device.process))
		commands = scripted_nth(w.m, VIDMM_DDI_RENDER, 0)->in.render.pCommand;
	for (uint32_t pass = 0; pass < 3; pass++) {
		const struct scripted_call *render = scripted_nth(w.m, VIDMM_DDI_RENDER, pass);
		const struct scripted_call *submit =
			world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, pass);

		assert_ptr_equal(render->in.render.pCommand, commands);
		assert_int_equal(render->in.render.CommandLength, length);
		assert_int_equal(render->in.render.MultipassOffset, pass * length / 3);
		assert_int_equal(submit->in.submit.DmaBufferSubmissionEndOffset, length / 3);
		for (uint32_t other = 0; other < pass;
		     other++) /* each with its own buffer, private data and list */
			assert_ptr_not_equal(
				render->in.render.pDmaBuffer,
				scripted_nth(w.m, VIDMM_DDI_RENDER, other)->in.render.pDmaBuffer);
	}
	expect_writes(&w, a, COMMANDS);
	world_assert_fences(&w);
	world_stop(&w);
}

static void contract(struct scripted_miniport *m)
{
	short_patch_list(m);
	m->settings.device.Flags.GuaranteedDmaBufferContract = 1;
}

static void dma_30_with_guaranteed_contract_a_second_pass_is_an_error(void **state)
{
	struct world w;

	world_start(&w, state, contract);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	put_writes(&w, a, 16); /* exactly what one buffer holds */
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(w.fatals, 0);
	expect_writes(&w, a, 16);
	put_writes(&w, a, 17);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	assert_int_equal(world_render(&w.context, &args), D3DDDIERR_DEVICEREMOVED);
	world_expect_finding(&w, "DMA-30");
	assert_int_equal(w.fatals, 1);
	assert_int_equal(w.fatal[0], 0x10E);
	assert_int_equal(world_render_submits(&w), 1);
	w.expected_fatals = 1;
	world_stop(&w);
}

/* More passes than a context has DMA buffers. */
static void dma_29_a_submission_may_need_any_number_of_passes(void **state)
{
	struct world w;

	world_start(&w, state, one_patch_per_pass);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->settings.complete_at_once = true;
	put_writes(&w, a, COMMANDS);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), COMMANDS);
	expect_writes(&w, a, COMMANDS);
	world_assert_fences(&w);
	world_stop(&w);
}

/* Lets `good` passes succeed, then answers as for an illegal instruction. */
static void fail_later(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	uint32_t *good = context;

	(void)m;
	if (call->ddi == VIDMM_DDI_RENDER && (*good)-- == 0)
		call->status = STATUS_ILLEGAL_INSTRUCTION;
}

static void dma_29_dma_31_a_failure_in_a_later_pass_queues_nothing(void **state)
{
	struct world w;
	uint32_t good = 2;

	world_start(&w, state, short_patch_list);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = fail_later;
	w.m->hook_context = &good;
	put_writes(&w, a, COMMANDS);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	assert_int_equal(world_render(&w.context, &args), D3DDDIERR_INVALIDINSTRUCTION);
	assert_int_equal(args.QueuedBufferCount, UINT32_MAX);
	w.m->hook = NULL;
	/* DonotWait: it is idle */
	assert_int_equal(*(uint32_t *)client_lock(&w.device, a, 0x4), 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	submission_succeeds(&w, a);
	world_stop(&w);
}

/* With more passes than can be held back, the first ones are already submitted and complete. */
static void dma_29_after_a_late_failure_submitted_passes_complete(void **state)
{
	struct world w;
	uint32_t good = 30;

	world_start(&w, state, one_patch_per_pass);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->settings.complete_at_once = true;
	w.m->hook = fail_later;
	w.m->hook_context = &good;
	put_writes(&w, a, COMMANDS);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	assert_int_equal(world_render(&w.context, &args), D3DDDIERR_INVALIDINSTRUCTION);
	w.m->hook = NULL;
	client_idle(&w.client);
	assert_in_range(world_render_submits(&w), 1, 30);
	world_use(&w.context, a);
	args = world_render_args(&w.context);
	assert_int_equal(world_render(&w.context, &args), S_OK);
	world_run(&w);
	world_assert_fences(&w);
	world_stop(&w);
}

static void produce_nothing(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARG_RENDER *out = call->args;

	(void)context, (void)m;
	if (call->ddi != VIDMM_DDI_RENDER)
		return;
	out->pDmaBuffer = call->in.render.pDmaBuffer;
	out->pPatchLocationListOut = call->in.render.pPatchLocationListOut;
	call->status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
}

static void dma_29_a_pass_without_output_is_an_error(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = produce_nothing;
	refused(&w, a, E_INVALIDARG);
	world_expect_finding(&w, "DMA-29");
	w.m->hook = NULL;
	submission_succeeds(&w, a);
	world_stop(&w);
}

/* ---- the emitted patch list ---- */

static bool is_garbage(const D3DDDI_PATCHLOCATIONLIST *list, uint32_t count)
{
	const unsigned char *bytes = (const void *)list;

	for (size_t i = 0; i < count * sizeof(*list); i++)
		if (bytes[i] != (unsigned char)(i * 7))
			return false;
	return true;
}

static void check_user_patches(void *context, struct scripted_miniport *m,
			       struct scripted_call *call)
{
	(void)m;
	if (call->ddi == VIDMM_DDI_RENDER)
		*(bool *)context = call->in.render.PatchLocationListInSize == 10 &&
				   is_garbage(call->in.render.pPatchLocationListIn, 10);
}

static void pat_01_the_clients_patch_list_is_passed_to_the_miniport_untouched(void **state)
{
	struct world w;
	bool untouched = false;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = check_user_patches;
	w.m->hook_context = &untouched;
	for (size_t i = 0; i < 10 * sizeof(D3DDDI_PATCHLOCATIONLIST); i++)
		((unsigned char *)w.context.c.pPatchLocationList)[i] = (unsigned char)(i * 7);
	w.context.patches = 10;
	submission_succeeds(&w, a);
	assert_true(untouched);
	assert_int_equal(world_nth_of(&w, VIDMM_DDI_PATCH, false, 0)->patch_count, 1);
	world_stop(&w);
}

/* Emits these patch locations, behind a command that occupies 72 bytes. */
struct emission {
	D3DDDI_PATCHLOCATIONLIST patch[3];
	uint32_t count;
};

static void emit(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	const struct emission *e = context;
	DXGKARG_RENDER *out = call->args;

	(void)m;
	if (call->ddi != VIDMM_DDI_RENDER)
		return;
	memcpy(call->in.render.pPatchLocationListOut, e->patch, e->count * sizeof(e->patch[0]));
	out->pPatchLocationListOut = call->in.render.pPatchLocationListOut + e->count;
}

static void four_slots(struct scripted_miniport *m)
{
	m->settings.caps.MaxAllocationListSlotId = 4;
}

#define AT  offsetof(struct scripted_command, destination)
#define END ((UINT)sizeof(struct scripted_command))

/* Each emission is refused with its rule; then the same buffer with a valid one is accepted. */
static void refuse_emissions(void **state, const struct emission *bad, uint32_t count,
			     const char *rule)
{
	struct world w;
	struct emission good = {.patch = {{.SlotId = 3, .PatchOffset = AT}}, .count = 1};

	world_start(&w, state, four_slots);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = emit;
	for (uint32_t i = 0; i < count; i++) {
		w.m->hook_context = (void *)(uintptr_t)&bad[i];
		refused(&w, a, E_INVALIDARG);
		world_expect_finding(&w, rule);
	}
	w.m->hook_context = &good;
	submission_succeeds(&w, a);
	world_stop(&w);
}

static void pat_02_an_index_beyond_the_list_is_refused(void **state)
{
	static const struct emission bad[] = {
		{.patch = {{.AllocationIndex = 1, .PatchOffset = AT}}, .count = 1},
		{.patch = {{.PatchOffset = AT}, {.AllocationIndex = UINT32_MAX, .PatchOffset = AT}},
		 .count = 2},
	};

	refuse_emissions(state, bad, 2, "PAT-02");
}

static void pat_04_decreasing_split_offsets_are_refused(void **state)
{
	static const struct emission bad[] = {
		{.patch = {{.PatchOffset = AT},
			   {.SplitOffset = 24, .PatchOffset = AT},
			   {.SplitOffset = 16, .PatchOffset = AT}},
		 .count = 3},
		{.patch = {{.SplitOffset = 8, .PatchOffset = AT}, {.PatchOffset = AT}}, .count = 2},
	};

	refuse_emissions(state, bad, 2, "PAT-04");
}

static void pat_04_equal_split_offsets_are_one_split_point(void **state)
{
	struct world w;
	struct emission good = {.patch = {{.SplitOffset = 8, .PatchOffset = AT},
					  {.SplitOffset = 8, .PatchOffset = AT},
					  {.SplitOffset = 16, .PatchOffset = AT}},
				.count = 3};

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = emit;
	w.m->hook_context = &good;
	submission_succeeds(&w, a);
	world_stop(&w);
}

static void pat_05_a_patch_offset_before_its_split_or_past_the_end_is_refused(void **state)
{
	static const struct emission bad[] = {
		{.patch = {{.PatchOffset = END}}, .count = 1},
		{.patch = {{.PatchOffset = UINT32_MAX}}, .count = 1},
		{.patch = {{.SplitOffset = 40, .PatchOffset = 39}}, .count = 1},
	};

	refuse_emissions(state, bad, 3, "PAT-05");
}

static void pat_07_a_slot_id_at_or_above_the_maximum_is_refused(void **state)
{
	static const struct emission bad[] = {
		{.patch = {{.SlotId = 4, .PatchOffset = AT}}, .count = 1},
		{.patch = {{.SlotId = 0xFFFFFF, .PatchOffset = AT}}, .count = 1},
	};

	refuse_emissions(state, bad, 2, "PAT-07");
}

static void pat_07_with_maximum_zero_every_slot_id_is_accepted(void **state)
{
	struct world w;
	struct emission good = {.patch = {{.SlotId = 0xFFFFFF, .PatchOffset = AT}}, .count = 1};

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = emit;
	w.m->hook_context = &good;
	submission_succeeds(&w, a);
	world_stop(&w);
}

/* PatchOffset of such an entry is ignored (PAT-05 is about the others). */
static void pat_09_a_null_element_unbinds_and_is_not_patched(void **state)
{
	struct world w;
	struct emission e = {
		.patch = {{.SplitOffset = 8, .PatchOffset = AT},
			  {.AllocationIndex = 1, .SplitOffset = 8, .PatchOffset = 0},
			  {.AllocationIndex = 1, .SplitOffset = 16, .PatchOffset = 1u << 30}},
		.count = 3};

	world_start(&w, state, four_slots);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = emit;
	w.m->hook_context = &e;
	world_write(&w.context, a, 0, 0x99);
	assert_int_equal(client_use(&w.context, 0, false), 1);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(*(uint32_t *)client_lock(&w.device, a, 0), 0x99);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dma_28_output_past_the_end_of_a_buffer_stops_the_adapter),
		ON_SIM(dma_28_an_exactly_full_buffer_is_within_bounds),
		ON_BOTH(dma_29_several_passes_are_one_submission),
		ON_BOTH(dma_30_with_guaranteed_contract_a_second_pass_is_an_error),
		ON_BOTH(dma_29_a_submission_may_need_any_number_of_passes),
		ON_BOTH(dma_29_dma_31_a_failure_in_a_later_pass_queues_nothing),
		ON_BOTH(dma_29_after_a_late_failure_submitted_passes_complete),
		ON_SIM(dma_29_a_pass_without_output_is_an_error),
		ON_BOTH(dma_31_a_failed_render_queues_nothing),
		ON_BOTH(dma_31_a_gpu_exception_loses_the_device),
		ON_SIM(pat_01_the_clients_patch_list_is_passed_to_the_miniport_untouched),
		ON_BOTH(pat_02_an_index_beyond_the_list_is_refused),
		ON_SIM(pat_04_decreasing_split_offsets_are_refused),
		ON_SIM(pat_04_equal_split_offsets_are_one_split_point),
		ON_SIM(pat_05_a_patch_offset_before_its_split_or_past_the_end_is_refused),
		ON_SIM(pat_07_a_slot_id_at_or_above_the_maximum_is_refused),
		ON_SIM(pat_07_with_maximum_zero_every_slot_id_is_accepted),
		ON_SIM(pat_09_a_null_element_unbinds_and_is_not_patched),
	};

	return cmocka_run_group_tests_name("sched render", tests, NULL, NULL);
}
