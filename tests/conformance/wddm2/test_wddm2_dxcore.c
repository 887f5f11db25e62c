/* SPDX-License-Identifier: MIT */
/* The memory budget of the calling process as DXCore returns it: of miniports of WDDM 2.x. */
#include "wddm2_world.h"

#include <dxcore.h>
#include <d3dkmthk.h>

static const GUID iid_factory = DXCORE_IID_ADAPTER_FACTORY, iid_adapter = DXCORE_IID_ADAPTER1;

static void groups(struct scripted_miniport *m)
{
	DXGK_SEGMENTFLAGS local = {.LocalBudgetGroup = 1}, other = {.NonLocalBudgetGroup = 1};

	wddm2_0(m);
	m->settings.complete_at_once = true;
	m->settings.segment[0].flags |= local.Value;
	m->settings.segment[1].flags |= other.Value;
}

struct budget_world {
	struct world w;
	IDXCoreAdapterFactory *factory;
	IDXCoreAdapter *adapter;
	D3DKMT_HANDLE handle;
};

static void start(struct budget_world *b, void **state)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	world_start(&b->w, state, groups);
	vidmm_d3dkmt_attach(b->w.device.process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	b->handle = info.hAdapter;
	assert_int_equal(DXCoreCreateAdapterFactory(&iid_factory, (void **)&b->factory), S_OK);
	assert_int_equal(b->factory->lpVtbl->GetAdapterByLuid(b->factory, &info.AdapterLuid,
							      &iid_adapter, (void **)&b->adapter),
			 S_OK);
}

static void stop(struct budget_world *b)
{
	assert_int_equal(b->adapter->lpVtbl->Release(b->adapter), 0);
	assert_int_equal(b->factory->lpVtbl->Release(b->factory), 0);
	wddm2_stop(&b->w);
}

static HRESULT query(struct budget_world *b, uint32_t node, uint32_t group,
		     DXCoreAdapterMemoryBudget *budget)
{
	const DXCoreAdapterMemoryBudgetNodeSegmentGroup input = {node, (DXCoreSegmentGroup)group};

	return b->adapter->lpVtbl->QueryState(b->adapter, DXCoreAdapterState_AdapterMemoryBudget,
					      sizeof(input), &input, sizeof(*budget), budget);
}

static void dxc_22_the_budget_is_that_of_the_calling_process(void **state)
{
	struct budget_world b;
	DXCoreAdapterMemoryBudget budget;
	const D3DKMT_CHANGEVIDEOMEMORYRESERVATION reserve = {
		.hAdapter = 0,
		.MemorySegmentGroup = D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL,
		.Reservation = MIB};

	start(&b, state);
	assert_true(b.adapter->lpVtbl->IsQueryStateSupported(
		b.adapter, DXCoreAdapterState_AdapterMemoryBudget));
	for (uint32_t group = 0; group < 2; group++) {
		D3DKMT_QUERYVIDEOMEMORYINFO info = {.hAdapter = b.handle,
						    .MemorySegmentGroup =
							    (D3DKMT_MEMORY_SEGMENT_GROUP)group};

		assert_int_equal(query(&b, 0, group, &budget), S_OK);
		assert_int_equal(D3DKMTQueryVideoMemoryInfo(&info), STATUS_SUCCESS);
		assert_int_equal(budget.budget, info.Budget);
		assert_int_not_equal(budget.budget, 0);
		assert_int_equal(budget.currentUsage, info.CurrentUsage);
		assert_int_equal(budget.availableForReservation, info.AvailableForReservation);
		assert_int_equal(budget.currentReservation, 0);
	}
	D3DKMT_CHANGEVIDEOMEMORYRESERVATION now = reserve;
	now.hAdapter = b.handle;
	assert_int_equal(D3DKMTChangeVideoMemoryReservation(&now), STATUS_SUCCESS);
	assert_int_equal(query(&b, 0, DXCoreSegmentGroup_Local, &budget), S_OK);
	assert_int_equal(budget.currentReservation, MIB);
	assert_int_equal(query(&b, 0, DXCoreSegmentGroup_NonLocal, &budget), S_OK);
	assert_int_equal(budget.currentReservation, 0);
	stop(&b);
}

static void dxc_22_a_segment_group_or_a_node_that_does_not_exist_is_refused(void **state)
{
	struct budget_world b;
	DXCoreAdapterMemoryBudget budget = {.budget = 7};
	const DXCoreAdapterMemoryBudgetNodeSegmentGroup input = {0, DXCoreSegmentGroup_Local};
	const DXCoreAdapterState state_kind = DXCoreAdapterState_AdapterMemoryBudget;

	start(&b, state);
	assert_int_equal(query(&b, 0, 2, &budget), E_INVALIDARG);
	world_expect_finding(&b.w, "RES-10");
	assert_int_equal(query(&b, 1, 0, &budget), E_INVALIDARG);
	world_expect_finding(&b.w, "RES-10");
#define QUERY(input_size, input, size, output) \
	b.adapter->lpVtbl->QueryState(b.adapter, state_kind, input_size, input, size, output)
	assert_int_equal(QUERY(sizeof(input), NULL, sizeof(budget), &budget), E_POINTER);
	world_expect_finding(&b.w, "DXC-19");
	assert_int_equal(QUERY(sizeof(input) - 1, &input, sizeof(budget), &budget), E_INVALIDARG);
	world_expect_finding(&b.w, "DXC-19");
	assert_int_equal(QUERY(sizeof(input), &input, sizeof(budget) - 1, &budget), E_INVALIDARG);
	world_expect_finding(&b.w, "DXC-19");
	assert_int_equal(QUERY(sizeof(input), &input, sizeof(budget), NULL), E_POINTER);
	world_expect_finding(&b.w, "DXC-19");
#undef QUERY
	assert_int_equal(budget.budget, 7);
	stop(&b);
}

static void count(DXCoreNotificationType type, struct IUnknown *object, void *context)
{
	_Atomic uint32_t *calls = context;

	(void)object;
	assert_int_equal(type, DXCoreNotificationType_AdapterBudgetChange);
	atomic_fetch_add(calls, 1);
}

static void expect_calls(struct budget_world *b, _Atomic uint32_t *calls, uint32_t expected)
{
	do {
		vidmm_settle(b->w.client.host);
	} while (atomic_load(calls) < expected);
	assert_int_equal(atomic_load(calls), expected);
}

static void dxc_24_c_242_a_change_of_the_budget_calls_back(void **state)
{
	struct budget_world b;
	struct vidmm_process *other;
	_Atomic uint32_t calls = 0;
	uint32_t cookie = 0;

	start(&b, state);
	struct vidmm_process *own = b.w.device.process;
	IDXCoreAdapterFactory1 *f = (IDXCoreAdapterFactory1 *)b.factory;

	assert_int_equal(vidmm_process_open(b.w.client.host, "other", &other), 0);
	assert_int_equal(
		f->lpVtbl->RegisterEventNotification(f, (struct IUnknown *)b.adapter,
						     DXCoreNotificationType_AdapterBudgetChange,
						     count, &calls, &cookie),
		S_OK);
	expect_calls(&b, &calls, 1); /* the initial one */
	assert_int_equal(vidmm_process_set_budget(own, b.w.client.adapter, 0, MIB), 0);
	expect_calls(&b, &calls, 2);
	assert_int_equal(vidmm_process_set_budget(own, b.w.client.adapter, 1, MIB), 0);
	expect_calls(&b, &calls, 3);
	/* No change; the budget of another process. */
	assert_int_equal(vidmm_process_set_budget(own, b.w.client.adapter, 0, MIB), 0);
	assert_int_equal(vidmm_process_set_budget(other, b.w.client.adapter, 0, MIB), 0);
	expect_calls(&b, &calls, 3);
	assert_int_equal(f->lpVtbl->UnregisterEventNotification(f, cookie), S_OK);
	assert_int_equal(vidmm_process_set_budget(own, b.w.client.adapter, 0, 2 * MIB), 0);
	expect_calls(&b, &calls, 3);
	vidmm_process_close(other);
	stop(&b);
}

static void reserve_in(struct vidmm_process *process, uint64_t bytes)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	vidmm_d3dkmt_enter(process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CHANGEVIDEOMEMORYRESERVATION args = {.hAdapter = info.hAdapter,
						    .MemorySegmentGroup =
							    D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL,
						    .Reservation = bytes};
	assert_int_equal(D3DKMTChangeVideoMemoryReservation(&args), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
}

static void dxc_24_c_242_reservations_of_other_processes_call_back(void **state)
{
	struct budget_world b;
	struct vidmm_process *other;
	_Atomic uint32_t calls = 0;
	uint32_t cookie = 0;

	start(&b, state);
	IDXCoreAdapterFactory1 *f = (IDXCoreAdapterFactory1 *)b.factory;

	assert_int_equal(vidmm_process_open(b.w.client.host, "other", &other), 0);
	assert_int_equal(
		f->lpVtbl->RegisterEventNotification(f, (struct IUnknown *)b.adapter,
						     DXCoreNotificationType_AdapterBudgetChange,
						     count, &calls, &cookie),
		S_OK);
	expect_calls(&b, &calls, 1);
	reserve_in(other, MIB);
	expect_calls(&b, &calls, 2);
	/* The process's own reservation does not change its budget. */
	reserve_in(b.w.device.process, MIB);
	expect_calls(&b, &calls, 2);
	vidmm_process_close(other); /* ends its reservation */
	expect_calls(&b, &calls, 3);
	assert_int_equal(f->lpVtbl->UnregisterEventNotification(f, cookie), S_OK);
	stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dxc_22_the_budget_is_that_of_the_calling_process),
		ON_BOTH(dxc_22_a_segment_group_or_a_node_that_does_not_exist_is_refused),
		ON_BOTH(dxc_24_c_242_a_change_of_the_budget_calls_back),
		ON_BOTH(dxc_24_c_242_reservations_of_other_processes_call_back),
	};

	return cmocka_run_group_tests_name("wddm2_dxcore", tests, NULL, NULL);
}
