/* SPDX-License-Identifier: MIT */
/* What a process may keep resident (RES-05, RES-10), and requests above it. */
#include "wddm2_world.h"

static void groups(struct scripted_miniport *m)
{
	DXGK_SEGMENTFLAGS local = {.LocalBudgetGroup = 1}, other = {.NonLocalBudgetGroup = 1};

	wddm2_0(m);
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags |= local.Value;
	m->settings.segment[1].flags |= other.Value;
}

static void application_target(struct scripted_miniport *m)
{
	DXGK_SEGMENTFLAGS target = {.ApplicationTarget = 1};

	wddm2_0(m);
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags |= target.Value;
}

static HRESULT make(struct world *w, const D3DDDICB_CREATEPAGINGQUEUE *queue,
		    const D3DKMT_HANDLE *list, uint32_t count, uint32_t flags,
		    D3DDDI_MAKERESIDENT *args)
{
	*args = (D3DDDI_MAKERESIDENT){.hPagingQueue = queue->hPagingQueue,
				      .NumAllocations = count,
				      .AllocationList = list,
				      .Flags.Value = flags};
	HRESULT result = wddm2_try_make(&w->device, args);

	if (result == E_PENDING)
		wddm2_await(w, queue, args->PagingFenceValue);
	return result == E_PENDING ? S_OK : result;
}

static uint64_t to_trim_after_evict(struct world *w, D3DKMT_HANDLE a)
{
	D3DDDICB_EVICT args = {
		.NumAllocations = 1, .AllocationList = &a, .NumBytesToTrim = UINT64_MAX};

	assert_int_equal(w->device.cb->pfnEvictCb(w->device.handle, &args), S_OK);
	return args.NumBytesToTrim;
}

static void res_05_pri_07_makeresident_over_budget_changes_no_count(void **state)
{
	D3DDDI_MAKERESIDENT args;
	D3DKMT_HANDLE a[3];
	struct world w;

	world_start(&w, state, groups);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(vidmm_process_set_budget(w.device.process, w.client.adapter, 0, 6 * MIB),
			 0);
	for (uint32_t i = 0; i < 3; i++)
		a[i] = wddm2_allocate(&w.device, 3 * MIB, WORLD_MEMORY);
	assert_int_equal(make(&w, &queue, a, 3, 0, &args), E_OUTOFMEMORY);
	assert_int_equal(args.NumAllocations, 0);
	assert_int_equal(args.NumBytesToTrim, 3 * MIB);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(wddm2_evict(&w.device, a[i], 0), E_INVALIDARG);
		world_expect_finding(&w, "RES-06");
	}
	assert_int_equal(make(&w, &queue, a, 2, 0, &args), S_OK);
	assert_int_equal(args.NumBytesToTrim, 0);
	assert_int_equal(make(&w, &queue, &a[2], 1, 0, &args), E_OUTOFMEMORY);
	assert_int_equal(make(&w, &queue, a, 1, 0, &args), S_OK); /* is resident already */
	world_submit_use(&w.context, a[0]);                       /* the device is not in error */
	wddm2_stop(&w);
}

/* Up to the maximum; MustSucceed above it puts the device in error. */
static void res_05_pri_08_canttrimfurther_and_mustsucceed_in_each_combination(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, groups);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(vidmm_process_set_budget(w.device.process, w.client.adapter, 0, 4 * MIB),
			 0);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 8 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 12 * MIB, WORLD_MEMORY);
	assert_int_equal(make(&w, &queue, &a, 1, MUST_SUCCEED, &args), E_INVALIDARG);
	world_expect_finding(&w, "RES-05");
	assert_int_equal(make(&w, &queue, &a, 1, 0, &args), E_OUTOFMEMORY);
	assert_int_equal(args.NumBytesToTrim, 4 * MIB);
	assert_int_equal(make(&w, &queue, &a, 1, CANT_TRIM_FURTHER | MUST_SUCCEED, &args), S_OK);
	assert_int_equal(to_trim_after_evict(&w, a), 0);
	assert_int_equal(make(&w, &queue, &a, 1, CANT_TRIM_FURTHER, &args), S_OK);
	assert_int_equal(args.NumBytesToTrim, 4 * MIB);
	assert_int_equal(make(&w, &queue, &b, 1, CANT_TRIM_FURTHER, &args), E_OUTOFMEMORY);
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_int_equal(make(&w, &queue, &b, 1, CANT_TRIM_FURTHER | MUST_SUCCEED, &args),
			 E_OUTOFMEMORY);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	wddm2_stop(&w);
}

/* RES-06, PRI-13: Evict reports how far the process is still above a lowered budget. */
static void res_06_pri_13_evict_reports_numbytestotrim(void **state)
{
	D3DDDI_MAKERESIDENT args;
	D3DKMT_HANDLE a[4];
	struct world w;

	world_start(&w, state, groups);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	for (uint32_t i = 0; i < 4; i++)
		a[i] = wddm2_allocate(&w.device, 2 * MIB, WORLD_MEMORY);
	assert_int_equal(make(&w, &queue, a, 4, 0, &args), S_OK);
	assert_int_equal(vidmm_process_set_budget(w.device.process, w.client.adapter, 0, 3 * MIB),
			 0);
	assert_int_equal(to_trim_after_evict(&w, a[0]), 3 * MIB);
	assert_int_equal(to_trim_after_evict(&w, a[1]), 1 * MIB);
	assert_int_equal(to_trim_after_evict(&w, a[2]), 0);
	wddm2_stop(&w);
}

/* Each group has its own budget, and each process its own usage. */
static void res_10_budgets_are_per_process_and_group(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct client_device other;
	struct world w;

	world_start(&w, state, groups);
	client_open(&w.client, &other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), theirs = wddm2_queue(&other);
	assert_int_equal(vidmm_process_set_budget(w.device.process, w.client.adapter, 0, 0), 0);
	assert_int_equal(vidmm_process_set_budget(w.device.process, w.client.adapter, 2, 0),
			 STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "RES-10");
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_APERTURE),
		      c = wddm2_allocate(&other, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(make(&w, &queue, &a, 1, 0, &args), E_OUTOFMEMORY);
	assert_int_equal(args.NumBytesToTrim, 64 * KIB);
	assert_int_equal(make(&w, &queue, &b, 1, 0, &args), S_OK);
	wddm2_make(&w, &other, &theirs, &c, 1);
	client_close(&other);
	wddm2_stop(&w);
}

/* An older miniport reports no groups: only segments marked ApplicationTarget count. */
static void res_10_without_groups_only_applicationtarget_segments_count(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, application_target);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	for (uint32_t group = 0; group < 2; group++)
		assert_int_equal(
			vidmm_process_set_budget(w.device.process, w.client.adapter, group, 0), 0);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_APERTURE);
	assert_int_equal(make(&w, &queue, &a, 1, 0, &args), E_OUTOFMEMORY);
	assert_int_equal(make(&w, &queue, &b, 1, 0, &args), S_OK);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_05_pri_07_makeresident_over_budget_changes_no_count),
		ON_BOTH(res_05_pri_08_canttrimfurther_and_mustsucceed_in_each_combination),
		ON_BOTH(res_06_pri_13_evict_reports_numbytestotrim),
		ON_BOTH(res_10_budgets_are_per_process_and_group),
		ON_BOTH(res_10_without_groups_only_applicationtarget_segments_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
