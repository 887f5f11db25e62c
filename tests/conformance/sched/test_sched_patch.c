/* SPDX-License-Identifier: MIT */
/*
 * From the emitted patch list to final addresses: page-in order, DxgkDdiPatch, and what holds until
 * the fence (PAT).
 */
#include "sched_world.h"

#include <string.h>

/* ---- page-in order ---- */

struct created {
	HANDLE allocation[4];
	uint32_t count;
};

static void keep_created(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct created *created = context;
	const DXGKARG_CREATEALLOCATION *args = call->args;

	(void)m;
	if (call->ddi == VIDMM_DDI_CREATE_ALLOCATION)
		created->allocation[created->count++ % 4] = args->pAllocationInfo[0].hAllocation;
}

static void pat_03_allocations_are_paged_in_in_patch_list_order(void **state)
{
	struct world w;
	struct created created = {0};
	D3DKMT_HANDLE a[4];

	world_start(&w, state, NULL);
	w.m->hook = keep_created;
	w.m->hook_context = &created;
	for (uint32_t i = 0; i < 4; i++) {
		a[i] = world_allocate(&w, 64 * KIB, 0);
		/* the allocation list has them in order of creation */
		client_use(&w.context, a[i], false);
	}
	static const uint32_t order[] = {2, 0, 3, 2, 1};
	for (uint32_t i = 0; i < 5; i++)
		world_use(&w.context, a[order[i]]);
	client_submit(&w.context);
	world_run(&w);
	static const uint32_t expected[] = {2, 0, 3, 1};
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), 4);
	for (uint32_t i = 0; i < 4; i++) {
		const DXGKARG_BUILDPAGINGBUFFER *build =
			&scripted_nth(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)->in.paging;

		assert_int_equal(build->Operation, DXGK_OPERATION_FILL);
		assert_ptr_equal(build->Fill.hAllocation, created.allocation[expected[i]]);
	}
	world_stop(&w);
}

/* ---- the arguments of Patch ---- */

static void pat_11_patch_gets_the_final_addresses(void **state)
{
	struct world w;

	world_start_lru(&w, state, NULL);
	D3DKMT_HANDLE first = world_allocate(&w, 1 * MIB, WORLD_MEMORY),
		      a = world_allocate(&w, 1 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE most = world_allocate(&w, 15 * MIB, WORLD_MEMORY);
	uint64_t address[2];

	world_use(&w.context, first);
	world_write(&w.context, a, 128, 0x11);
	client_submit(&w.context);
	world_run(&w);
	world_submit_use(&w.context, most); /* evicts both */
	world_run(&w);
	world_write(&w.context, a, 256, 0x22); /* paged in again at another address */
	client_submit(&w.context);
	world_run(&w);
	for (uint32_t i = 0; i < 2; i++) {
		const struct scripted_call *render = scripted_nth(w.m, VIDMM_DDI_RENDER, 2 * i);
		const struct scripted_call *patch = world_nth_of(&w, VIDMM_DDI_PATCH, false, 2 * i);

		/* its address is not known then */
		assert_int_equal(render->allocations[1 - i].SegmentId, 0);
		assert_int_equal(patch->allocations[1 - i].SegmentId, 1);
		address[i] = (uint64_t)patch->allocations[1 - i].PhysicalAddress.QuadPart;
	}
	assert_int_not_equal(address[0], address[1]);
	/*
	 * Both writes reached the addresses that Patch had, and the content moved along in between.
	 */
	assert_int_equal(world_word(&w, a, 128), 0x11);
	assert_int_equal(world_word(&w, a, 256), 0x22);
	world_stop(&w);
}

static void pat_12_sub_02_allocations_of_a_submitted_buffer_stay_resident(void **state)
{
	struct world w;
	struct client_context second;

	world_start(&w, state, NULL);
	client_context(&w.device, 0, &second);
	D3DKMT_HANDLE a = world_allocate(&w, 1 * MIB, WORLD_MEMORY),
		      all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	world_submit_use(&w.context, a);
	scripted_complete(w.m, 1, 1); /* its fill; the packet itself is in the hardware now */
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	uint32_t paging = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	world_submit_use(&second, all); /* needs the placement */
	for (uint32_t i = 0; i < 100; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), paging);
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	assert_int_equal(client_residency(&w.device, a), 1);
	scripted_complete(w.m, 0, 1);
	/* A is paged out, the other one in */
	world_await(&w, VIDMM_DDI_BUILD_PAGING_BUFFER, paging + 2);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	assert_int_not_equal(client_residency(&w.device, a), 1);
	client_context_end(&second);
	world_stop(&w);
}

/* The last chance to change the buffer. */
static void change_value(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_PATCH && !call->in.patch.Flags.Paging)
		((struct scripted_command *)call->in.patch.pDmaBuffer)->value = 0x7E57;
}

static void pat_13_the_buffer_is_patched_in_place(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	w.m->hook = change_value;
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_write(&w.context, a, 0, 1);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 0), 0x7E57);
	const DXGKARG_RENDER *render = &scripted_nth(w.m, VIDMM_DDI_RENDER, 0)->in.render;
	const DXGKARG_PATCH *patch = &world_nth_of(&w, VIDMM_DDI_PATCH, false, 0)->in.patch;
	assert_ptr_equal(patch->pDmaBuffer, render->pDmaBuffer);
	assert_int_equal(patch->DmaBufferSize, render->DmaSize);
	assert_int_equal(
		world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.DmaBufferSize,
		render->DmaSize);
	world_stop(&w);
}

static const struct scripted_call *patch_of(const struct world *w, uint32_t fence)
{
	for (uint32_t i = 0; i < scripted_count(w->m, VIDMM_DDI_PATCH); i++)
		if (scripted_nth(w->m, VIDMM_DDI_PATCH, i)->in.patch.SubmissionFenceId == fence)
			return scripted_nth(w->m, VIDMM_DDI_PATCH, i);
	fail_msg("no Patch for fence 0x%x", fence);
	return NULL;
}

static void assert_same_portion(const DXGKARG_PATCH *p, const DXGKARG_SUBMITCOMMAND *s)
{
	assert_ptr_equal(p->hContext, s->hContext);
	assert_int_equal(p->DmaBufferSegmentId, s->DmaBufferSegmentId);
	assert_int_equal(p->DmaBufferPhysicalAddress.QuadPart,
			 s->DmaBufferPhysicalAddress.QuadPart);
	assert_int_equal(p->DmaBufferSize, s->DmaBufferSize);
	assert_int_equal(p->DmaBufferSubmissionStartOffset, s->DmaBufferSubmissionStartOffset);
	assert_int_equal(p->DmaBufferSubmissionEndOffset, s->DmaBufferSubmissionEndOffset);
	assert_ptr_equal(p->pDmaBufferPrivateData, s->pDmaBufferPrivateData);
	assert_int_equal(p->DmaBufferPrivateDataSize, s->DmaBufferPrivateDataSize);
	assert_int_equal(p->DmaBufferPrivateDataSubmissionStartOffset,
			 s->DmaBufferPrivateDataSubmissionStartOffset);
	assert_int_equal(p->DmaBufferPrivateDataSubmissionEndOffset,
			 s->DmaBufferPrivateDataSubmissionEndOffset);
	assert_int_equal(p->EngineOrdinal, s->EngineOrdinal);
	assert_int_equal(p->Flags.Paging, s->Flags.Paging);
	assert_int_equal(p->Flags.NullRendering, s->Flags.NullRendering);
}

static void pat_15_submit_gets_the_fence_and_offsets_of_the_last_patch(void **state)
{
	struct world w;
	struct client_context copy;

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &copy);
	D3DKMT_HANDLE a[8];
	for (uint32_t i = 0; i < 8; i++) {
		a[i] = world_allocate(&w, 4 * MIB, WORLD_MEMORY);
		world_submit_write(i & 1 ? &copy : &w.context, a[i], 0, i);
		world_run(&w);
	}
	assert_true(scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND) >= 16);
	for (uint32_t i = 0; i < scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND); i++) {
		const struct scripted_call *submit = scripted_nth(w.m, VIDMM_DDI_SUBMIT_COMMAND, i);

		assert_same_portion(&patch_of(&w, submit->in.submit.SubmissionFenceId)->in.patch,
				    &submit->in.submit);
	}
	client_context_end(&copy);
	world_stop(&w);
}

static void pat_16_patch_locations_arrive_as_emitted(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), b = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < 20; i++) {
		struct scripted_command command = {
			.op = SCRIPTED_USE,
			.size_bytes = sizeof(command),
			.allocation = client_use(&w.context, i % 3 ? a : b, false),
			.slot = 0x100000 + i,
			.offset = 8 * i,
			.split = i % 4 == 0};

		world_command(&w.context, &command);
	}
	client_submit(&w.context);
	world_run(&w);
	const struct scripted_call *patch = world_nth_of(&w, VIDMM_DDI_PATCH, false, 0);
	assert_int_equal(patch->in.patch.PatchLocationListSubmissionStart, 0);
	assert_int_equal(patch->in.patch.PatchLocationListSubmissionLength, 20);
	assert_int_equal(patch->patch_count, 20);
	for (uint32_t i = 0; i < 20; i++) {
		const D3DDDI_PATCHLOCATIONLIST *p = &patch->patches[i];
		uint32_t at = i * (uint32_t)sizeof(struct scripted_command);

		assert_int_equal(p->AllocationIndex, i % 3 ? 1 : 0);
		assert_int_equal(p->Value, 0x100000 + i);
		assert_int_equal(p->DriverId, at);
		assert_int_equal(p->AllocationOffset, 8 * i);
		assert_int_equal(p->PatchOffset,
				 at + offsetof(struct scripted_command, destination));
		assert_int_equal(p->SplitOffset, (i & ~3u) * sizeof(struct scripted_command));
	}
	world_stop(&w);
}

static void pat_17_sub_18_paging_is_patched_without_lists_in_the_system_context(void **state)
{
	struct world w;
	HANDLE system = NULL;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	world_run(&w);
	const DXGKARG_PATCH *patch = &world_nth_of(&w, VIDMM_DDI_PATCH, true, 0)->in.patch;
	assert_int_equal(patch->Flags.Value, 1);
	assert_null(patch->pAllocationList);
	assert_null(patch->pPatchLocationList);
	assert_int_equal(patch->AllocationListSize, 0);
	assert_int_equal(patch->PatchLocationListSize, 0);
	assert_int_equal(patch->PatchLocationListSubmissionLength, 0);
	const DXGKARG_SUBMITCOMMAND *submit =
		&world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, true, 0)->in.submit;
	assert_int_equal(submit->Flags.Value, 1);
	assert_int_equal(submit->NodeOrdinal, 1);
	system = submit->hContext;
	assert_non_null(system);
	assert_ptr_not_equal(
		system, world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.hContext);
	world_stop(&w);
}

/* ---- failure ---- */

static void fail_patch(void **state, bool paging)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, paging ? WORLD_MEMORY : 0);
	if (!paging) { /* already resident, so that the next Patch belongs to the packet */
		world_submit_use(&w.context, a);
		world_run(&w);
	}
	scripted_fail(w.m, VIDMM_DDI_PATCH, STATUS_UNSUCCESSFUL, 1);
	world_submit_use(&w.context, a);
	world_await(&w, VIDMM_DDI_PATCH, paging ? 1 : 3);
	const struct scripted_call *failed = scripted_last(w.m, VIDMM_DDI_PATCH);
	assert_int_equal(failed->in.patch.Flags.Paging, paging);
	world_expect_finding(&w, "PAT-18");
	assert_int_equal(w.fatals, 1);
	assert_int_equal(w.fatal[0], 0x119);
	assert_int_equal(w.fatal[1], 0x3);
	assert_int_equal(w.fatal[2], (uint32_t)STATUS_UNSUCCESSFUL);
	assert_int_equal(w.fatal[3], failed->in.patch.SubmissionFenceId);
	/* The adapter is stopped for its clients, and every wait ends. */
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_try_lock(&w.device, &a, 0, NULL), D3DDDIERR_DEVICEREMOVED);
	client_idle(&w.client);
	w.expected_fatals = 1;
	world_stop(&w);
}

static void pat_18_a_failed_patch_stops_the_adapter(void **state)
{
	fail_patch(state, false);
}

static void pat_18_a_failed_patch_of_paging_stops_the_adapter(void **state)
{
	fail_patch(state, true);
}

/* ---- references that no patch location names ---- */

/* Removes the last patch location. */
static void forget_one(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARG_RENDER *out = call->args;

	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_RENDER)
		out->pPatchLocationListOut--;
}

static void submit_two(struct world *w, D3DKMT_HANDLE a, D3DKMT_HANDLE b)
{
	world_use(&w->context, a);
	world_use(&w->context, b);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), S_OK);
}

static void pat_10_a_reference_without_a_patch_location_is_reported(void **state)
{
	const struct client_options verifying = {.verify = 1};
	struct world w;

	world_start_with(&w, state, NULL, &verifying);
	world_open(&w);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), b = world_allocate(&w, 64 * KIB, 0);
	submit_two(&w, a, b);
	assert_int_equal(w.client.findings, 0);
	world_run(&w);
	w.m->hook = forget_one;
	submit_two(&w, a, b);
	w.m->hook = NULL;
	if (!strstr(w.client.finding[0], "entry 1"))
		fail_msg("%s", w.client.finding[0]);
	world_expect_finding(&w, "PAT-10");
	w.expected_faults = 1; /* a command with an address that was not written */
	world_stop(&w);
}

/* DMA-35: without the verifier this is not checked. */
static void pat_10_unpatched_references_are_not_checked_without_the_verifier(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), b = world_allocate(&w, 64 * KIB, 0);
	w.m->hook = forget_one;
	submit_two(&w, a, b);
	w.m->hook = NULL;
	assert_int_equal(w.client.findings, 0);
	w.expected_faults = 1;
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pat_03_allocations_are_paged_in_in_patch_list_order),
		ON_BOTH(pat_11_patch_gets_the_final_addresses),
		ON_BOTH(pat_12_sub_02_allocations_of_a_submitted_buffer_stay_resident),
		ON_SIM(pat_13_the_buffer_is_patched_in_place),
		ON_BOTH(pat_15_submit_gets_the_fence_and_offsets_of_the_last_patch),
		ON_SIM(pat_16_patch_locations_arrive_as_emitted),
		ON_BOTH(pat_17_sub_18_paging_is_patched_without_lists_in_the_system_context),
		ON_BOTH(pat_18_a_failed_patch_stops_the_adapter),
		ON_BOTH(pat_18_a_failed_patch_of_paging_stops_the_adapter),
		ON_BOTH(pat_10_a_reference_without_a_patch_location_is_reported),
		ON_BOTH(pat_10_unpatched_references_are_not_checked_without_the_verifier),
	};

	return cmocka_run_group_tests_name("sched patch", tests, NULL, NULL);
}
