/* SPDX-License-Identifier: MIT */
/* Submission, order, depth, fences and their reports (SUB), nodes (SCH). */
#include "sched_world.h"

#include <string.h>

#define DONOT_WAIT 0x4u

/* ---- fence ids ---- */

static void fences_wrap(void **state, uint32_t first)
{
	struct client_options options = {.first_fence_id = first};
	struct world w;
	uint32_t last[2] = {0};

	world_start_with(&w, state, NULL, &options);
	world_open(&w);
	for (uint32_t i = 0; i < 12; i++) {
		/* each needs paging, on the other node */
		D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);

		world_submit_write(&w.context, a, 0, i + 1);
		world_run(&w);
		assert_int_equal(world_word(&w, a, 0), i + 1);
	}
	for (uint32_t i = 0; i < scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND); i++) {
		const DXGKARG_SUBMITCOMMAND *submit =
			&scripted_nth(w.m, VIDMM_DDI_SUBMIT_COMMAND, i)->in.submit;
		uint32_t node = submit->Flags.Paging;

		assert_int_not_equal(submit->SubmissionFenceId, 0);
		if (last[node])
			assert_true((int32_t)(submit->SubmissionFenceId - last[node]) > 0);
		last[node] = submit->SubmissionFenceId;
	}
	world_assert_fences(&w);
	world_stop(&w);
}

static void sub_01_fence_ids_wrap_past_32_bits_and_skip_zero(void **state)
{
	fences_wrap(state, 0xFFFFFFF8u);
}

static void sub_01_fence_ids_pass_the_sign_bit(void **state)
{
	fences_wrap(state, 0x7FFFFFF8u);
}

static void sub_01_fence_ids_start_at_the_configured_value(void **state)
{
	struct client_options options = {.first_fence_id = 1};
	struct world w;

	world_start_with(&w, state, NULL, &options);
	world_open(&w);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_int_equal(
		scripted_nth(w.m, VIDMM_DDI_SUBMIT_COMMAND, 0)->in.submit.SubmissionFenceId, 1);
	world_stop(&w);
}

/* ---- order ---- */

static void sub_03_work_on_another_node_waits_until_its_paging_is_complete(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), b = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	assert_int_equal(scripted_outstanding(w.m, 1), 1);
	assert_int_equal(scripted_outstanding(w.m, 0), 0);
	scripted_complete(w.m, 1, 1);
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	scripted_complete(w.m, 0, 1);
	world_submit_use(&w.context, a); /* no paging: at once */
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	world_submit_use(&w.context, b);
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	world_run(&w);
	world_stop(&w);
}

static void paging_on_node_0(struct scripted_miniport *m)
{
	m->settings.caps.MemoryManagementCaps.PagingNode = 0;
}

static void sub_03_sch_09_paging_is_submitted_first_on_its_own_node(void **state)
{
	struct world w;

	world_start(&w, state, paging_on_node_0);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	/* both are in the hardware, which keeps their order */
	assert_int_equal(scripted_outstanding(w.m, 0), 2);
	assert_int_equal(scripted_nth(w.m, VIDMM_DDI_SUBMIT_COMMAND, 0)->in.submit.Flags.Paging, 1);
	assert_int_equal(scripted_nth(w.m, VIDMM_DDI_SUBMIT_COMMAND, 1)->in.submit.Flags.Paging, 0);
	assert_int_equal(scripted_outstanding(w.m, 1), 0);
	world_run(&w);
	world_stop(&w);
}

static void sub_04_one_contexts_work_keeps_its_order(void **state)
{
	struct world w;
	struct client_context other;
	HANDLE first = NULL;
	uint32_t next[2] = {0};

	world_start(&w, state, NULL);
	client_context(&w.device, 0, &other);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < 20; i++) /* each writes its number */
		world_submit_write(i % 3 ? &w.context : &other, a, 4 * i, i + 1);
	world_run(&w);
	for (uint32_t i = 0; i < 20; i++) {
		const struct scripted_call *submit =
			world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, i);
		const struct scripted_call *patch = world_nth_of(&w, VIDMM_DDI_PATCH, false, i);
		uint32_t number = patch->patches[0].AllocationOffset / 4;

		if (!first)
			first = submit->handle;
		uint32_t *expected = &next[submit->handle != first];
		assert_true(number >= *expected);
		*expected = number + 1;
		assert_int_equal(world_word(&w, a, 4 * i), i + 1);
	}
	client_context_end(&other);
	world_stop(&w);
}

static void sch_07_nodes_complete_work_independently(void **state)
{
	struct world w;
	struct client_context copy;
	D3DKMT_HANDLE b;

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &copy);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	b = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	world_submit_use(&copy, b);
	scripted_complete(w.m, 1, UINT32_MAX); /* both fills, and the copy node's packet */
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	assert_int_equal(client_try_lock(&w.device, &b, DONOT_WAIT, NULL), S_OK);
	assert_int_equal(client_try_lock(&w.device, &a, DONOT_WAIT, NULL), D3DERR_WASSTILLDRAWING);
	client_context_end(&copy); /* nor does it wait for node 0 */
	world_stop(&w);
}

static void sch_07_a_device_is_destroyed_while_another_node_is_busy(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context copy;
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB};

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	client_context(&other, 1, &copy);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), b = world_allocate_as(&other, &spec);
	world_submit_use(&w.context, a);
	world_submit_use(&copy, b);
	scripted_complete(w.m, 1, UINT32_MAX);
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	client_close(&other); /* it waits for its own packets only */
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	world_stop(&w);
}

static void sch_07_sch_08_only_existing_nodes_and_engines_are_accepted(void **state)
{
	static const struct {
		uint32_t node, affinity;
		const char *rule;
	} cases[] = {{0, 0, NULL},     {1, 1, NULL},    {2, 0, "SCH-07"}, {UINT32_MAX, 0, "SCH-07"},
		     {0, 2, "SCH-08"}, {0, 3, "SCH-08"}};
	struct world w;

	world_start(&w, state, NULL);
	scripted_forget(w.m);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		D3DDDICB_CREATECONTEXT c = {.NodeOrdinal = cases[i].node,
					    .EngineAffinity = cases[i].affinity};
		HRESULT result = w.device.cb->pfnCreateContextCb(w.device.handle, &c);

		assert_int_equal(result, cases[i].rule ? E_INVALIDARG : S_OK);
		if (cases[i].rule) {
			world_expect_finding(&w, cases[i].rule);
			assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT), 2);
		} else {
			const DXGKARG_CREATECONTEXT *seen =
				&scripted_last(w.m, VIDMM_DDI_CREATE_CONTEXT)->in.create_context;

			assert_int_equal(seen->NodeOrdinal, cases[i].node);
			/* one bit, whatever the client said */
			assert_int_equal(seen->EngineAffinity, 1);
		}
	}
	world_stop(&w);
}

static void sch_09_paging_has_a_system_device_and_context(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	uint32_t devices = 0, contexts = 0;
	for (uint32_t i = 0; i < scripted_count(w.m, VIDMM_DDI_CREATE_DEVICE); i++)
		devices += scripted_nth(w.m, VIDMM_DDI_CREATE_DEVICE, i)
				   ->in.create_device.Flags.SystemDevice;
	for (uint32_t i = 0; i < scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT); i++) {
		const DXGKARG_CREATECONTEXT *c =
			&scripted_nth(w.m, VIDMM_DDI_CREATE_CONTEXT, i)->in.create_context;

		contexts += c->Flags.SystemContext;
		assert_int_equal(c->NodeOrdinal, c->Flags.SystemContext ? 1 : 0);
	}
	assert_int_equal(devices, 1);
	assert_int_equal(contexts, 1);
	world_stop(&w);
}

/* ---- depth ---- */

static void sub_15_sub_16_packets_in_hardware_never_exceed_the_limits(void **state)
{
	struct world w;
	struct client_context copy;

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &copy);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	world_run(&w);
	uint32_t limit =
		scripted_nth(w.m, VIDMM_DDI_START_DEVICE, 0)->in.start.RequiredDmaQueueEntry;
	for (uint32_t i = 0; i < 15; i++) {
		world_submit_use(&w.context, a);
		world_submit_use(&copy, a);
	}
	for (uint32_t left = 15; left; left--) {
		assert_int_equal(scripted_outstanding(w.m, 0), left < 2 ? left : 2);
		assert_int_equal(scripted_outstanding(w.m, 1), left < 2 ? left : 2);
		assert_true(scripted_outstanding(w.m, 0) + scripted_outstanding(w.m, 1) <= limit);
		assert_int_equal(scripted_complete(w.m, 0, 1), 1);
		assert_int_equal(scripted_complete(w.m, 1, 1), 1);
	}
	client_context_end(&copy);
	world_stop(&w);
}

/* The number of DMA buffers of a context; one more render waits for the oldest. */
static void render_many(void *argument)
{
	struct world *w = argument;
	D3DKMT_HANDLE a = world_allocate(w, 64 * KIB, 0);

	for (uint32_t i = 0; i < 100; i++)
		world_submit_write(&w->context, a, 4 * i, i + 1);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(world_word(w, a, 4 * i), i + 1);
}

static void sub_16_a_client_may_submit_any_number(void **state)
{
	struct world w;
	struct vidmm_thread *thread;

	world_start(&w, state, NULL);
	assert_int_equal(vidmm_thread_create(w.client.host, "client", render_many, &w, &thread), 0);
	for (uint32_t done = 0; done < 101;) { /* and the fill */
		done += scripted_complete(w.m, 1, 1) + scripted_complete(w.m, 0, 1);
		vidmm_settle(w.client.host);
	}
	vidmm_thread_join(thread);
	world_stop(&w);
}

/* ---- offsets and flags ---- */

static void sub_19_paging_offsets_rise_and_rendering_private_data_starts_at_zero(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[12];
	const DXGKARG_SUBMITCOMMAND *last = NULL;
	uint32_t shared = 0;

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < 12; i++) {
		a[i] = world_allocate(&w, 64 * KIB, 0);
		world_submit_use(&w.context, a[i]);
	}
	world_run(&w);
	for (uint32_t i = 0; i < scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND); i++) {
		const DXGKARG_SUBMITCOMMAND *s =
			&scripted_nth(w.m, VIDMM_DDI_SUBMIT_COMMAND, i)->in.submit;

		assert_true(s->DmaBufferSubmissionStartOffset < s->DmaBufferSubmissionEndOffset);
		assert_true(s->DmaBufferSubmissionEndOffset <= s->DmaBufferSize);
		if (!s->Flags.Paging) {
			assert_int_equal(s->DmaBufferSubmissionStartOffset, 0);
			assert_int_equal(s->DmaBufferPrivateDataSubmissionStartOffset, 0);
			continue;
		}
		if (last && last->DmaBufferPhysicalAddress.QuadPart ==
				    s->DmaBufferPhysicalAddress.QuadPart) {
			shared++;
			assert_true(s->DmaBufferSubmissionStartOffset >=
				    last->DmaBufferSubmissionEndOffset);
		}
		last = s;
	}
	assert_true(shared > 5);
	world_stop(&w);
}

static void sub_22_null_rendering_reaches_patch_and_submit(void **state)
{
	struct world w;
	struct client_context null_context = {.device = &w.device};

	world_start(&w, state, NULL);
	null_context.c.Flags.NullRendering = 1;
	assert_int_equal(w.device.cb->pfnCreateContextCb(w.device.handle, &null_context.c), S_OK);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_write(&w.context, a, 0, 0x11);
	world_submit_write(&null_context, a, 0, 0x22);
	world_write(&w.context, a, 0, 0x33);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	args.Flags.NullRendering = 1;
	assert_int_equal(world_render(&w.context, &args), S_OK);
	world_run(&w);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(
			world_nth_of(&w, VIDMM_DDI_PATCH, false, i)->in.patch.Flags.NullRendering,
			i > 0);
		assert_int_equal(
			world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, i)->in.submit.Flags.Value,
			i ? 8 : 0);
	}
	assert_int_equal(world_word(&w, a, 0), 0x11);
	world_stop(&w);
}

/* ---- destruction ---- */

static void sub_29_close_and_destroy_ddis_follow_the_fence(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), idle = world_allocate(&w, 64 * KIB, 0);
	world_submit_write(&w.context, a, 0, 1);
	scripted_complete(w.m, 1, 1);
	assert_int_equal(client_deallocate(&w.device, idle), S_OK); /* it is idle: at once */
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CLOSE_ALLOCATION), 1);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_DESTROY_ALLOCATION), 1);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	for (uint32_t i = 0; i < 100; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CLOSE_ALLOCATION), 1);
	scripted_complete(w.m, 0, 1);
	world_await(&w, VIDMM_DDI_DESTROY_ALLOCATION, 2);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CLOSE_ALLOCATION), 2);
	world_stop(&w);
}

static void end_the_context(void *argument)
{
	client_context_end(argument);
}

static void end_the_device(void *argument)
{
	client_close(argument);
}

static void ends_late(void **state, void (*end)(void *), bool device)
{
	struct world w;
	struct vidmm_thread *thread;
	enum vidmm_ddi ddi = device ? VIDMM_DDI_DESTROY_DEVICE : VIDMM_DDI_DESTROY_CONTEXT;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < 3; i++)
		world_submit_use(&w.context, a);
	scripted_complete(w.m, 1, 1);
	assert_int_equal(vidmm_thread_create(w.client.host, "ends", end,
					     device ? (void *)&w.device : (void *)&w.context,
					     &thread),
			 0);
	for (uint32_t done = 0; done < 3; done++) {
		for (uint32_t i = 0; i < 50; i++)
			vidmm_settle(w.client.host);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_DESTROY_CONTEXT), 0);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_CLOSE_ALLOCATION), 0);
		assert_int_equal(scripted_complete(w.m, 0, 1), 1);
	}
	vidmm_thread_join(thread);
	assert_int_equal(scripted_count(w.m, ddi), 1);
	if (device)
		world_stop_adapter(&w);
	else
		world_stop(&w);
}

static void sub_29_a_context_is_destroyed_after_its_last_fence(void **state)
{
	ends_late(state, end_the_context, false);
}

static void sub_29_a_device_is_destroyed_after_its_last_fence(void **state)
{
	ends_late(state, end_the_device, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_01_fence_ids_wrap_past_32_bits_and_skip_zero),
		ON_BOTH(sub_01_fence_ids_pass_the_sign_bit),
		ON_SIM(sub_01_fence_ids_start_at_the_configured_value),
		ON_BOTH(sub_03_work_on_another_node_waits_until_its_paging_is_complete),
		ON_BOTH(sub_03_sch_09_paging_is_submitted_first_on_its_own_node),
		ON_BOTH(sub_04_one_contexts_work_keeps_its_order),
		ON_BOTH(sch_07_nodes_complete_work_independently),
		ON_BOTH(sch_07_a_device_is_destroyed_while_another_node_is_busy),
		ON_SIM(sch_07_sch_08_only_existing_nodes_and_engines_are_accepted),
		ON_SIM(sch_09_paging_has_a_system_device_and_context),
		ON_BOTH(sub_15_sub_16_packets_in_hardware_never_exceed_the_limits),
		ON_BOTH(sub_16_a_client_may_submit_any_number),
		ON_SIM(sub_19_paging_offsets_rise_and_rendering_private_data_starts_at_zero),
		ON_BOTH(sub_22_null_rendering_reaches_patch_and_submit),
		ON_BOTH(sub_29_close_and_destroy_ddis_follow_the_fence),
		ON_BOTH(sub_29_a_context_is_destroyed_after_its_last_fence),
		ON_BOTH(sub_29_a_device_is_destroyed_after_its_last_fence),
	};

	return cmocka_run_group_tests_name("sched submit", tests, NULL, NULL);
}
