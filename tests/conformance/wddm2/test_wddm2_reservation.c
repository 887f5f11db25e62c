/* SPDX-License-Identifier: MIT */
/* What a process may have of a segment group, and what it has reserved (RES-10, PRI-14). */
#include "wddm2_world.h"

#include <d3dkmthk.h>

struct kmt {
	struct world w;
	struct vidmm_process *process;
	D3DKMT_HANDLE adapter;
};

static void groups(struct scripted_miniport *m)
{
	DXGK_SEGMENTFLAGS local = {.LocalBudgetGroup = 1}, other = {.NonLocalBudgetGroup = 1};

	wddm2_0(m);
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags |= local.Value;
	m->settings.segment[1].flags |= other.Value;
}

/*
 * The D3DKMT client is the fixture's own process, so that its device is counted; `process` is
 * another one.
 */
static void start(struct kmt *k, void **state, world_setup *setup)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	world_start(&k->w, state, setup);
	assert_int_equal(vidmm_process_open(k->w.client.host, "other", &k->process), 0);
	vidmm_d3dkmt_attach(k->w.device.process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	k->adapter = info.hAdapter;
}

static void stop(struct kmt *k)
{
	vidmm_process_close(k->process);
	wddm2_stop(&k->w);
}

static D3DKMT_QUERYVIDEOMEMORYINFO query(D3DKMT_HANDLE adapter, uint32_t group)
{
	D3DKMT_QUERYVIDEOMEMORYINFO args = {
		.hAdapter = adapter, .MemorySegmentGroup = (D3DKMT_MEMORY_SEGMENT_GROUP)group};

	assert_int_equal(D3DKMTQueryVideoMemoryInfo(&args), STATUS_SUCCESS);
	return args;
}

static NTSTATUS reserve(D3DKMT_HANDLE adapter, uint32_t group, uint64_t bytes)
{
	const D3DKMT_CHANGEVIDEOMEMORYRESERVATION args = {
		.hAdapter = adapter,
		.MemorySegmentGroup = (D3DKMT_MEMORY_SEGMENT_GROUP)group,
		.Reservation = bytes};

	return D3DKMTChangeVideoMemoryReservation(&args);
}

/* As the other process, which has its own handle of the adapter. */
static D3DKMT_HANDLE enter_other(struct kmt *k)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	vidmm_d3dkmt_enter(k->process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	return info.hAdapter;
}

static void res_10_current_usage_counts_resident_memory(void **state)
{
	struct kmt k;

	start(&k, state, groups);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&k.w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&k.w.device, 3 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&k.w.device, 2 * MIB, WORLD_APERTURE);
	D3DKMT_QUERYVIDEOMEMORYINFO info = query(k.adapter, 0);
	assert_int_equal(info.Budget, 16 * MIB);
	assert_int_equal(info.CurrentUsage, 0);
	assert_int_equal(info.CurrentReservation, 0);
	assert_int_equal(info.AvailableForReservation, 16 * MIB);
	wddm2_make(&k.w, &k.w.device, &queue, &a, 1);
	wddm2_make(&k.w, &k.w.device, &queue, &b, 1);
	assert_int_equal(query(k.adapter, 0).CurrentUsage, 3 * MIB);
	assert_int_equal(query(k.adapter, 1).CurrentUsage, 2 * MIB);
	assert_int_equal(wddm2_evict(&k.w.device, a, 0), S_OK);
	assert_int_equal(query(k.adapter, 0).CurrentUsage, 0);
	assert_int_equal(
		vidmm_process_set_budget(k.w.device.process, k.w.client.adapter, 0, 5 * MIB), 0);
	info = query(k.adapter, 0);
	assert_int_equal(info.Budget, 5 * MIB);
	assert_int_equal(info.AvailableForReservation, 5 * MIB);
	stop(&k);
}

static void qst_08_res_10_statistics_of_a_group_are_those_of_its_budget(void **state)
{
	struct kmt k;
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_QUERYSTATISTICS args = {.Type = D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP};

	start(&k, state, groups);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	args.AdapterLuid = info.AdapterLuid;
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&k.w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&k.w.device, 3 * MIB, WORLD_MEMORY);
	wddm2_make(&k.w, &k.w.device, &queue, &a, 1);
	assert_int_equal(
		vidmm_process_set_budget(k.w.device.process, k.w.client.adapter, 0, 5 * MIB), 0);
	for (uint32_t group = 0; group < 2; group++) {
		const D3DKMT_QUERYVIDEOMEMORYINFO budget = query(k.adapter, group);

		args.QueryProcessSegmentGroup = (D3DKMT_MEMORY_SEGMENT_GROUP)group;
		assert_int_equal(D3DKMTQueryStatistics(&args), STATUS_SUCCESS);
		const D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP_INFORMATION *found =
			&args.QueryResult.ProcessSegmentGroupInformation;
		assert_int_equal(found->Usage, group ? 0 : 3 * MIB);
		assert_int_equal(found->Usage, budget.CurrentUsage);
		assert_int_equal(found->Budget, budget.Budget);
		assert_int_equal(found->Requested, found->Usage);
		assert_int_equal(found->Demoted[0], 0);
	}
	args.QueryProcessSegmentGroup = (D3DKMT_MEMORY_SEGMENT_GROUP)2;
	assert_int_equal(D3DKMTQueryStatistics(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "RES-10");
	stop(&k);
}

static void pri_14_a_reservation_above_the_available_amount_is_refused(void **state)
{
	struct kmt k;

	start(&k, state, groups);
	assert_int_equal(reserve(k.adapter, 0, 16 * MIB + 1), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "PRI-14");
	assert_int_equal(query(k.adapter, 0).CurrentReservation, 0);
	assert_int_equal(reserve(k.adapter, 0, 16 * MIB), STATUS_SUCCESS);
	assert_int_equal(query(k.adapter, 0).CurrentReservation, 16 * MIB);
	/* replaces the first reservation */
	assert_int_equal(reserve(k.adapter, 0, 6 * MIB), STATUS_SUCCESS);
	assert_int_equal(query(k.adapter, 0).CurrentReservation, 6 * MIB);
	assert_int_equal(query(k.adapter, 1).CurrentReservation, 0);
	assert_int_equal(reserve(k.adapter, 0, UINT64_MAX), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "PRI-14");
	assert_int_equal(query(k.adapter, 0).CurrentReservation, 6 * MIB);
	assert_int_equal(reserve(k.adapter, 0, 0), STATUS_SUCCESS);
	assert_int_equal(query(k.adapter, 0).CurrentReservation, 0);
	stop(&k);
}

/*
 * It is unavailable to all others: they may neither exceed it nor reserve it again. It ends with
 * its process.
 */
static void pri_14_reserved_memory_is_unavailable_to_other_processes(void **state)
{
	struct kmt k;
	D3DDDI_MAKERESIDENT args;

	start(&k, state, groups);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&k.w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&k.w.device, 8 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE adapter = enter_other(&k);
	assert_int_equal(reserve(adapter, 0, 10 * MIB), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	D3DKMT_QUERYVIDEOMEMORYINFO mine = query(k.adapter, 0);
	assert_int_equal(mine.Budget, 6 * MIB);
	assert_int_equal(mine.AvailableForReservation, 6 * MIB);
	assert_int_equal(reserve(k.adapter, 0, 7 * MIB), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "PRI-14");
	assert_int_equal(wddm2_try_make_one(&k.w.device, &queue, a, &args), E_OUTOFMEMORY);
	assert_int_equal(args.NumBytesToTrim, 2 * MIB);
	vidmm_process_close(k.process);
	assert_int_equal(query(k.adapter, 0).Budget, 16 * MIB);
	wddm2_make(&k.w, &k.w.device, &queue, &a, 1);
	assert_int_equal(vidmm_process_open(k.w.client.host, "other", &k.process), 0);
	stop(&k);
}

/* A budget that shrinks later never drops below the reservation. */
static void pri_14_a_budget_never_drops_below_the_reservation(void **state)
{
	struct kmt k;
	D3DDDI_MAKERESIDENT args;

	start(&k, state, groups);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&k.w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&k.w.device, 4 * MIB, WORLD_MEMORY),
		      b = wddm2_allocate(&k.w.device, 1 * MIB, WORLD_MEMORY);
	assert_int_equal(reserve(k.adapter, 0, 4 * MIB), STATUS_SUCCESS);
	assert_int_equal(
		vidmm_process_set_budget(k.w.device.process, k.w.client.adapter, 0, 2 * MIB), 0);
	D3DKMT_QUERYVIDEOMEMORYINFO info = query(k.adapter, 0);
	assert_int_equal(info.Budget, 4 * MIB);
	assert_int_equal(info.AvailableForReservation, 2 * MIB);
	wddm2_make(&k.w, &k.w.device, &queue, &a, 1);
	assert_int_equal(wddm2_try_make_one(&k.w.device, &queue, b, &args), E_OUTOFMEMORY);
	assert_int_equal(args.NumBytesToTrim, 1 * MIB);
	stop(&k);
}

static void res_10_invalid_arguments_are_refused(void **state)
{
	struct kmt k;

	start(&k, state, groups);
	const D3DKMT_QUERYVIDEOMEMORYINFO good = {.hAdapter = k.adapter, .Budget = 7};
	D3DKMT_QUERYVIDEOMEMORYINFO args = good;
	args.MemorySegmentGroup = (D3DKMT_MEMORY_SEGMENT_GROUP)2;
	assert_int_equal(D3DKMTQueryVideoMemoryInfo(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "RES-10");
	assert_int_equal(args.Budget, 7);
	assert_int_equal(reserve(k.adapter, 2, 0), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "RES-10");
	assert_int_equal(vidmm_process_set_budget(k.w.device.process, k.w.client.adapter, 2, MIB),
			 STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "RES-10");
	args = good;
	args.PhysicalAdapterIndex = 1;
	assert_int_equal(D3DKMTQueryVideoMemoryInfo(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "RES-10");
	args = good;
	args.hAdapter = 0x4242;
	assert_int_equal(D3DKMTQueryVideoMemoryInfo(&args), STATUS_INVALID_PARAMETER);
	client_forget(&k.w.client);
	args = good;
	args.hProcess = &k;
	assert_int_equal(D3DKMTQueryVideoMemoryInfo(&args), STATUS_INVALID_HANDLE);
	world_expect_finding(&k.w, "HND-07");
	args = good;
	args.hProcess = (HANDLE)(intptr_t)-1;
	assert_int_equal(D3DKMTQueryVideoMemoryInfo(&args), STATUS_SUCCESS);
	assert_int_equal(args.Budget, 16 * MIB);
	assert_int_equal(D3DKMTQueryVideoMemoryInfo(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	assert_int_equal(D3DKMTChangeVideoMemoryReservation(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&k.w, "HND-11");
	stop(&k);
}

static void res_10_before_wddm_2_0_there_are_no_budgets(void **state)
{
	struct kmt k;

	start(&k, state, NULL);
	D3DKMT_QUERYVIDEOMEMORYINFO args = {.hAdapter = k.adapter};
	assert_int_equal(D3DKMTQueryVideoMemoryInfo(&args), STATUS_NOT_SUPPORTED);
	assert_int_equal(reserve(k.adapter, 0, 0), STATUS_NOT_SUPPORTED);
	stop(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(res_10_current_usage_counts_resident_memory),
		ON_BOTH(qst_08_res_10_statistics_of_a_group_are_those_of_its_budget),
		ON_BOTH(pri_14_a_reservation_above_the_available_amount_is_refused),
		ON_BOTH(pri_14_reserved_memory_is_unavailable_to_other_processes),
		ON_BOTH(pri_14_a_budget_never_drops_below_the_reservation),
		ON_BOTH(res_10_invalid_arguments_are_refused),
		ON_BOTH(res_10_before_wddm_2_0_there_are_no_budgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
