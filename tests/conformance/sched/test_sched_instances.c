/* SPDX-License-Identifier: MIT */
/* Which instance of a renamed allocation a submission may reference (REF). */
#include "sched_world.h"

#define DISCARD               0x80u
#define NO_EXISTING_REFERENCE 0x100u
#define DONOT_WAIT            0x4u

#define WRONG_INSTANCE ((HRESULT)0xC0262113)

static D3DKMT_HANDLE renamable(struct world *w, uint32_t limit)
{
	const struct scripted_allocation spec = {
		.size_bytes = 64 * KIB, .flags = WORLD_CPU_VISIBLE, .renaming_limit = limit};

	return world_allocate_as(&w->device, &spec);
}

/* A lock with Discard writes `value` and gives the handle of the instance that it got. */
static D3DKMT_HANDLE discard(struct world *w, D3DKMT_HANDLE a, uint32_t flags, uint32_t value)
{
	void *data;

	assert_int_equal(client_try_lock(&w->device, &a, DISCARD | flags, &data), S_OK);
	*(uint32_t *)data = value;
	assert_int_equal(client_unlock(&w->device, a), S_OK);
	return a;
}

/* One buffer whose patch list references these instances in this order. */
static HRESULT render(struct client_context *context, const D3DKMT_HANDLE *order, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		world_use(context, order[i]);
	D3DDDICB_RENDER args = world_render_args(context);
	HRESULT result = world_render(context, &args);

	if (result != S_OK)
		assert_int_equal(args.QueuedBufferCount, UINT32_MAX);
	return result;
}

static void accepted(struct world *w, const D3DKMT_HANDLE *order, uint32_t count)
{
	assert_int_equal(render(&w->context, order, count), S_OK);
}

static void rejected(struct world *w, const D3DKMT_HANDLE *order, uint32_t count)
{
	uint32_t patched = scripted_count(w->m, VIDMM_DDI_PATCH);

	assert_int_equal(render(&w->context, order, count), WRONG_INSTANCE);
	assert_true(client_found(&w->client, "REN-16") || client_found(&w->client, "REF-03"));
	client_forget(&w->client);
	if (w->kind == VIDMM_HOST_SIM) /* on threads earlier buffers may still run */
		assert_int_equal(scripted_count(w->m, VIDMM_DDI_PATCH), patched);
}

static void ref_01_the_old_instance_lives_until_the_new_one_is_used(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = renamable(&w, 0);
	accepted(&w, &a0, 1);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
	assert_int_not_equal(a1, a0);
	accepted(&w, &a0, 1);
	accepted(&w, &a0, 1);
	accepted(&w, &a1, 1);
	world_run(&w);
	world_stop(&w);
}

static void ref_02_a_use_of_the_new_instance_retires_the_old_one(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = renamable(&w, 0);
	accepted(&w, &a0, 1);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
	accepted(&w, &a1, 1);
	rejected(&w, &a0, 1);
	accepted(&w, &a1, 1);
	world_run(&w);
	rejected(&w, &a0, 1); /* complete or not makes no difference */
	world_assert_fences(&w);
	world_stop(&w);
}

/* Only patched references are uses: the allocation list alone retires nothing. */
static void ref_02_an_allocation_list_entry_alone_retires_nothing(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = renamable(&w, 0), b = world_allocate(&w, 64 * KIB, 0);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
	client_use(&w.context, a1, false);
	accepted(&w, &b, 1);
	accepted(&w, &a0, 1);
	accepted(&w, &a1, 1);
	client_use(&w.context, a0, false); /* and the list may contain a retired one */
	accepted(&w, &b, 1);
	rejected(&w, &a0, 1);
	world_run(&w);
	world_stop(&w);
}

static void ref_03_ref_04_instances_out_of_order_in_a_buffer_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = renamable(&w, 0);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1), a2 = discard(&w, a1, 0, 2);
	rejected(&w, (D3DKMT_HANDLE[]){a1, a0}, 2);
	rejected(&w, (D3DKMT_HANDLE[]){a0, a1, a0}, 3);
	rejected(&w, (D3DKMT_HANDLE[]){a0, a2, a1}, 3);
	accepted(&w, (D3DKMT_HANDLE[]){a0}, 1); /* the rejected buffer has retired nothing */
	accepted(&w, (D3DKMT_HANDLE[]){a0, a0, a1, a1, a2}, 5);
	rejected(&w, (D3DKMT_HANDLE[]){a1, a2}, 2);
	accepted(&w, (D3DKMT_HANDLE[]){a2}, 1);
	world_run(&w);
	world_assert_fences(&w);
	world_stop(&w);
}

static void ref_05_instance_order_holds_across_contexts_of_a_device(void **state)
{
	struct world w;
	struct client_context second;

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &second);
	D3DKMT_HANDLE a0 = renamable(&w, 0);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
	assert_int_equal(render(&second, &a1, 1), S_OK);
	rejected(&w, &a0, 1);
	world_run(&w);
	client_context_end(&second);
	world_stop(&w);
}

static HRESULT render_keeping(struct world *w, D3DKMT_HANDLE kept, D3DKMT_HANDLE newer)
{
	world_use(&w->context, kept);
	w->context.c.pAllocationList[0].DoNotRetireInstance = 1;
	if (newer)
		world_use(&w->context, newer);
	return client_try_submit(&w->context);
}

static void ref_06_do_not_retire_keeps_an_instance_usable_by_a_later_buffer(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = renamable(&w, 0);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
	assert_int_equal(render_keeping(&w, a0, a1), S_OK);
	assert_int_equal(render_keeping(&w, a0, 0), S_OK); /* as often as the flag is set */
	accepted(&w, &a0, 1);                              /* the last use with the flag */
	rejected(&w, &a0, 1);
	accepted(&w, &a1, 1);
	D3DKMT_HANDLE a2 = discard(&w, a1, 0, 2);
	accepted(&w, (D3DKMT_HANDLE[]){a1, a2}, 2); /* without the flag */
	rejected(&w, &a1, 1);
	world_run(&w);
	world_stop(&w);
}

static void ref_07_instances_are_reused(void **state)
{
	struct world w;
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a = renamable(&w, 0);
	for (uint32_t i = 0; i < 2000; i++) {
		a = discard(&w, a, 0, i);
		accepted(&w, &a, 1);
		if (i % 64 == 0 &&
		    w.kind == VIDMM_HOST_SIM) /* on threads a call may be in progress */
			scripted_forget(w.m);
	}
	vidmm_adapter_statistics(w.client.adapter, &statistics);
	assert_int_equal(statistics.allocations, 1);
	/*
	 * On threads the GPU may be behind by any number of buffers; the first instance that
	 * becomes free is reused.
	 */
	assert_in_range(statistics.instances, 1, w.kind == VIDMM_HOST_SIM ? 8 : 999);
	assert_true(statistics.renames > 1000);
	world_run(&w);
	world_stop(&w);
}

static void ref_08_ref_10_at_the_limit_no_existing_reference_reuses_an_instance(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a0 = renamable(&w, 2), tried;
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
	tried = a1;
	/* Buffers that are not submitted yet may reference both. */
	assert_int_equal(client_try_lock(&w.device, &tried, DISCARD, NULL), D3DERR_WASSTILLDRAWING);
	assert_int_equal(tried, a1);
	accepted(&w, (D3DKMT_HANDLE[]){a0, a1}, 2);
	world_run(&w);
	tried = discard(&w, a1, NO_EXISTING_REFERENCE, 2);
	assert_true(tried == a0 || tried == a1);
	accepted(&w, &tried, 1);
	world_run(&w);
	assert_int_equal(world_word(&w, tried, 0), 2);
	world_stop(&w);
}

static void wait_for_instance(void *argument)
{
	struct world *w = argument;

	w->fatal[0] = discard(w, (D3DKMT_HANDLE)w->fatal[0], 0, 7);
}

static void ref_10_at_the_limit_a_busy_retired_instance_is_waited_for(void **state)
{
	struct world w;
	struct vidmm_thread *thread;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = renamable(&w, 2);
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
	accepted(&w, &a0, 1);
	accepted(&w, &a1, 1); /* A0 is retired, and busy */
	w.fatal[0] = a1;
	assert_int_equal(
		vidmm_thread_create(w.client.host, "discards", wait_for_instance, &w, &thread), 0);
	uint32_t done;
	do { /* another thread may be about to submit it */
		scripted_complete(w.m, 1, UINT32_MAX);
		done = scripted_complete(w.m, 0, 1);
		vidmm_settle(w.client.host);
	} while (!done);
	vidmm_thread_join(thread);
	assert_int_equal(w.fatal[0], a0);
	while (!scripted_outstanding(w.m, 0)) /* A1 is busy as before */
		vidmm_settle(w.client.host);
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	world_run(&w);
	world_stop(&w);
}

static void ref_09_instances_share_one_miniport_allocation(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a0 = renamable(&w, 0);
	for (uint32_t i = 0; i < 2; i++) {
		/* the second time with its location known */
		world_submit_write(&w.context, a0, 4, 0x40);
		world_run(&w);
	}
	D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
	world_submit_write(&w.context, a1, 4, 0x41);
	world_run(&w);
	world_submit_write(&w.context, a1, 8, 0x42);
	world_run(&w);
	const struct scripted_call *of0 = scripted_nth(w.m, VIDMM_DDI_RENDER, 1);
	const struct scripted_call *of1 = scripted_nth(w.m, VIDMM_DDI_RENDER, 3);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_ALLOCATION), 1);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_OPEN_ALLOCATION), 1);
	assert_ptr_equal(of0->allocations[0].hDeviceSpecificAllocation,
			 of1->allocations[0].hDeviceSpecificAllocation);
	assert_int_equal(of0->allocations[0].SegmentId, 1);
	assert_int_equal(of1->allocations[0].SegmentId, 1);
	assert_int_not_equal(of0->allocations[0].PhysicalAddress.QuadPart,
			     of1->allocations[0].PhysicalAddress.QuadPart);
	assert_int_equal(world_word(&w, a1, 0), 1);
	assert_int_equal(world_word(&w, a1, 4), 0x41);
	world_stop(&w);
}

static void ref_11_a_shared_allocation_is_never_renamed(void **state)
{
	struct world w;
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = WORLD_CPU_VISIBLE};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {
		.hResource = &spec, .NumAllocations = 1, .pAllocationInfo = &info};

	world_start(&w, state, NULL);
	assert_int_equal(vidmm_resource_set_shared(w.device.device, &spec), 0);
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), S_OK);
	D3DKMT_HANDLE a = info.hAllocation;
	assert_int_equal(discard(&w, a, 0, 5), a);
	accepted(&w, &a, 1);
	assert_int_equal(client_try_lock(&w.device, &a, DISCARD | DONOT_WAIT, NULL),
			 D3DERR_WASSTILLDRAWING);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 0), 5);
	world_stop(&w);
}

static void out_of_order(struct scripted_miniport *m)
{
	m->settings.caps.MemoryManagementCaps.OutOfOrderLock = 1;
}

static void ref_12_only_the_newest_instance_is_locked(void **state)
{
	for (uint32_t capable = 0; capable < 2; capable++) {
		struct world w;

		world_start(&w, state, capable ? out_of_order : NULL);
		D3DKMT_HANDLE a0 = renamable(&w, 0);
		D3DKMT_HANDLE a1 = discard(&w, a0, 0, 1);
		assert_int_equal(client_try_lock(&w.device, &a0, 0, NULL),
				 capable ? S_OK : E_INVALIDARG);
		if (capable)
			assert_int_equal(client_unlock(&w.device, a0), S_OK);
		else
			world_expect_finding(&w, "REN-19");
		assert_int_equal(client_try_lock(&w.device, &a1, 0, NULL), S_OK);
		world_stop(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(ref_01_the_old_instance_lives_until_the_new_one_is_used),
		ON_BOTH(ref_02_a_use_of_the_new_instance_retires_the_old_one),
		ON_SIM(ref_02_an_allocation_list_entry_alone_retires_nothing),
		ON_BOTH(ref_03_ref_04_instances_out_of_order_in_a_buffer_are_refused),
		ON_BOTH(ref_05_instance_order_holds_across_contexts_of_a_device),
		ON_BOTH(ref_06_do_not_retire_keeps_an_instance_usable_by_a_later_buffer),
		ON_BOTH(ref_07_instances_are_reused),
		ON_BOTH(ref_08_ref_10_at_the_limit_no_existing_reference_reuses_an_instance),
		ON_BOTH(ref_09_instances_share_one_miniport_allocation),
		ON_BOTH(ref_10_at_the_limit_a_busy_retired_instance_is_waited_for),
		ON_SIM(ref_11_a_shared_allocation_is_never_renamed),
		ON_SIM(ref_12_only_the_newest_instance_is_locked),
	};

	return cmocka_run_group_tests_name("sched instances", tests, NULL, NULL);
}
