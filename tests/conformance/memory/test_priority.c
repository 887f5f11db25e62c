/* SPDX-License-Identifier: MIT */
/*
 * PRI: priorities decide the order of victims; residency queries; both calls accept two forms of
 * arguments.
 */
#include "world.h"

#define PRIORITY(name) D3DDDI_ALLOCATIONPRIORITY_##name

/* Video memory for four allocations of 1 MiB. */
static const struct client_options small = {.vram_bytes = 4 * MIB};

static int runtime[2];
#define RESOURCE(n) ((HANDLE)&runtime[n])

static HRESULT set_priorities(struct world *w, HANDLE resource, const D3DKMT_HANDLE *list,
			      UINT count, const UINT *values)
{
	D3DDDICB_SETPRIORITY args = {.hResource = resource,
				     .NumAllocations = count,
				     .HandleList = list,
				     .pPriorities = values};

	return w->device.cb->pfnSetPriorityCb(w->device.handle, &args);
}

static HRESULT query(struct world *w, HANDLE resource, const D3DKMT_HANDLE *list, UINT count,
		     D3DDDI_RESIDENCYSTATUS *values)
{
	D3DDDICB_QUERYRESIDENCY args = {.hResource = resource,
					.NumAllocations = count,
					.HandleList = list,
					.pResidencyStatus = values};

	return w->device.cb->pfnQueryResidencyCb(w->device.handle, &args);
}

static D3DKMT_HANDLE resident(struct world *w, UINT priority)
{
	struct softgpu_allocation wish = wish_of(MIB, CPU, VRAM);

	wish.priority = priority;
	D3DKMT_HANDLE a = allocate_wish(&w->device, &wish);
	use_now(w, a, false);
	return a;
}

/* Another allocation needs one MiB more than is free. */
static D3DKMT_HANDLE press_one(struct world *w)
{
	D3DKMT_HANDLE need = allocate_in(&w->device, MIB, 0, VRAM);

	use_now(w, need, false);
	return need;
}

static void pri_01_the_lowest_priority_is_evicted_first(void **state)
{
	static const UINT creation[] = {PRIORITY(NORMAL), PRIORITY(MAXIMUM), PRIORITY(LOW),
					PRIORITY(HIGH)};
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, &small);
	for (int i = 0; i < 4; i++)
		a[i] = resident(&w, creation[i]);
	press_one(&w);
	assert_int_equal(in_vram(&w, a, 4), 0xB); /* the one of low priority was evicted */
	world_stop(&w);
}

static void pri_01_equal_priorities_are_evicted_in_lru_order(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, &small);
	for (int i = 0; i < 4; i++)
		a[i] = resident(&w, 0);
	use_now(&w, a[0], false);
	use_now(&w, a[2], false);
	press_one(&w);
	assert_int_equal(in_vram(&w, a, 4), 0xD);
	world_stop(&w);
}

static void pri_01_values_between_the_named_priorities_are_accepted(void **state)
{
	static const UINT between[] = {PRIORITY(NORMAL) + 1, PRIORITY(MINIMUM),
				       PRIORITY(LOW) + 12345, PRIORITY(MAXIMUM)};
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, &small);
	for (int i = 0; i < 4; i++)
		a[i] = resident(&w, 0);
	assert_int_equal(set_priorities(&w, NULL, a, 4, between), S_OK);
	assert_int_equal(w.client.findings, 0);
	press_one(&w);
	assert_int_equal(in_vram(&w, a, 4), 0xD); /* the one of minimum priority was evicted */
	world_stop(&w);
}

static void pri_03_a_handle_list_takes_one_value_per_entry(void **state)
{
	static const UINT values[] = {PRIORITY(HIGH), PRIORITY(HIGH), PRIORITY(NORMAL),
				      PRIORITY(LOW)};
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, &small);
	for (int i = 0; i < 4; i++)
		a[i] = resident(&w, 0);
	assert_int_equal(set_priorities(&w, NULL, a, 4, values), S_OK);
	D3DKMT_HANDLE need = press_one(&w);
	assert_int_equal(in_vram(&w, a, 4), 0x7);
	assert_int_equal(set_priorities(&w, NULL, &need, 1, values), S_OK);
	press_one(&w);
	assert_int_equal(in_vram(&w, a, 4), 0x3);
	world_stop(&w);
}

static void pri_03_a_resource_takes_one_value_for_all_allocations(void **state)
{
	const UINT low = PRIORITY(LOW);
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, &small);
	a[0] = resident(&w, 0);
	for (int i = 1; i < 4; i++) {
		struct softgpu_allocation wish = wish_of(MIB, CPU, VRAM);
		assert_int_equal(
			client_try_allocate(&w.device, &wish, RESOURCE(i == 3), &a[i], NULL), S_OK);
		use_now(&w, a[i], false);
	}
	assert_int_equal(set_priorities(&w, RESOURCE(0), NULL, 0, &low), S_OK);
	D3DKMT_HANDLE two = allocate_in(&w.device, 2 * MIB, 0, VRAM);
	use_now(&w, two, false);
	assert_int_equal(in_vram(&w, a, 4), 0x9);
	world_stop(&w);
}

static void pri_03_mixed_shapes_and_bad_handles_change_nothing(void **state)
{
	const UINT values[] = {PRIORITY(MINIMUM), PRIORITY(MINIMUM)};
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, &small);
	for (int i = 0; i < 4; i++)
		a[i] = resident(&w, i == 3 ? PRIORITY(LOW) : 0);
	const D3DKMT_HANDLE bad[] = {a[0], 0xDEAD};
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DKMT_HANDLE member;
	assert_int_equal(client_try_allocate(&w.device, &wish, RESOURCE(0), &member, NULL), S_OK);
	const struct {
		HANDLE resource;
		const D3DKMT_HANDLE *list;
		UINT count;
		const UINT *values;
	} calls[] = {
		{RESOURCE(0), a, 1, values},
		{RESOURCE(0), a, 0, values},
		{RESOURCE(0), NULL, 1, values},
		{NULL, NULL, 0, values},
		{NULL, a, 0, values},
		{NULL, a, 1, NULL},
		{RESOURCE(0), NULL, 0, NULL},
		{RESOURCE(1), NULL, 0, values} /* no such resource */,
		{NULL, bad, 2, values},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_int_equal(set_priorities(&w, calls[i].resource, calls[i].list,
						calls[i].count, calls[i].values),
				 E_INVALIDARG);
		if (!client_found(&w.client, "PRI-03"))
			fail_msg("call %zu: %s", i,
				 w.client.findings ? w.client.finding[0] : "no finding");
		client_forget(&w.client);
	}
	assert_int_equal(set_priorities(&w, NULL, NULL, UINT32_MAX, values), E_INVALIDARG);
	assert_int_equal(set_priorities(&w, NULL, a, UINT32_MAX, values), E_INVALIDARG);
	client_forget(&w.client);
	press_one(&w);
	assert_int_equal(in_vram(&w, a, 4), 0x7); /* a[0] was not lowered */
	world_stop(&w);
}

static void pri_04_residency_reports_memory_aperture_or_not_resident(void **state)
{
	struct world w;
	D3DDDI_RESIDENCYSTATUS status[3];

	world_start(&w, state, &small);
	const D3DKMT_HANDLE a[] = {resident(&w, 0), allocate_in(&w.device, PAGE, CPU, APERTURE),
				   allocate_in(&w.device, PAGE, CPU, 0)};
	use_now(&w, a[1], false);
	client_write(&w.device, a[2], PAGE, 0);
	assert_int_equal(query(&w, NULL, a, 3, status), S_OK);
	assert_int_equal(status[0], D3DDDI_RESIDENCYSTATUS_RESIDENTINGPUMEMORY);
	assert_int_equal(status[1], D3DDDI_RESIDENCYSTATUS_RESIDENTINSHAREDMEMORY);
	assert_int_equal(status[2], D3DDDI_RESIDENCYSTATUS_NOTRESIDENT);
	world_stop(&w);
}

static void pri_04_a_resource_reports_its_worst_member(void **state)
{
	static const uint32_t sets[] = {VRAM, APERTURE, VRAM};
	struct world w;
	D3DKMT_HANDLE a[3];
	D3DDDI_RESIDENCYSTATUS status;

	world_start(&w, state, &small);
	for (int i = 0; i < 3; i++) {
		struct softgpu_allocation wish = wish_of(PAGE, CPU, sets[i]);
		assert_int_equal(client_try_allocate(&w.device, &wish, RESOURCE(0), &a[i], NULL),
				 S_OK);
	}
	assert_int_equal(query(&w, RESOURCE(0), NULL, 0, &status), S_OK);
	assert_int_equal(status, EVICTED);
	use_now(&w, a[0], false);
	use_now(&w, a[1], false);
	assert_int_equal(query(&w, RESOURCE(0), NULL, 0, &status), S_OK);
	assert_int_equal(status, EVICTED);
	use_now(&w, a[2], false);
	assert_int_equal(query(&w, RESOURCE(0), NULL, 0, &status), S_OK);
	assert_int_equal(status, IN_APERTURE);
	assert_int_equal(client_deallocate(&w.device, a[1]), S_OK);
	assert_int_equal(query(&w, RESOURCE(0), NULL, 0, &status), S_OK);
	assert_int_equal(status, IN_VRAM);
	world_stop(&w);
}

static void pri_04_a_renamed_member_reports_its_newest_instance(void **state)
{
	struct world w;
	struct softgpu_allocation wish = wish_of(PAGE, CPU, VRAM);
	D3DDDI_RESIDENCYSTATUS status;
	D3DKMT_HANDLE a0, a1;

	world_start(&w, state, &small);
	assert_int_equal(client_try_allocate(&w.device, &wish, RESOURCE(0), &a0, NULL), S_OK);
	use_now(&w, a0, false);
	a1 = a0;
	assert_int_equal(client_try_lock(&w.device, &a1, DISCARD, NULL), S_OK);
	assert_int_equal(client_unlock(&w.device, a1), S_OK);
	assert_int_equal(client_residency(&w.device, a0), IN_VRAM);
	assert_int_equal(client_residency(&w.device, a1), EVICTED);
	assert_int_equal(query(&w, RESOURCE(0), NULL, 0, &status), S_OK);
	assert_int_equal(status, EVICTED);
	use_now(&w, a1, false);
	assert_int_equal(query(&w, RESOURCE(0), NULL, 0, &status), S_OK);
	assert_int_equal(status, IN_VRAM);
	world_stop(&w);
}

static void pri_04_a_query_with_invalid_arguments_writes_nothing(void **state)
{
	struct world w;
	D3DDDI_RESIDENCYSTATUS status[2] = {9, 9};

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, 0);
	const D3DKMT_HANDLE bad[] = {a, 0xDEAD};
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DKMT_HANDLE member;
	assert_int_equal(client_try_allocate(&w.device, &wish, RESOURCE(0), &member, NULL), S_OK);
	const struct {
		HANDLE resource;
		const D3DKMT_HANDLE *list;
		UINT count;
		D3DDDI_RESIDENCYSTATUS *values;
	} calls[] = {
		{RESOURCE(0), &a, 1, status},
		{RESOURCE(0), NULL, 1, status},
		{RESOURCE(0), &a, 0, status},
		{NULL, NULL, 0, status},
		{NULL, &a, 0, status},
		{NULL, &a, 1, NULL},
		{RESOURCE(1), NULL, 0, status},
		{NULL, bad, 2, status},
		{NULL, NULL, UINT32_MAX, status},
		{NULL, NULL, UINT32_MAX, NULL},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_int_equal(query(&w, calls[i].resource, calls[i].list, calls[i].count,
				       calls[i].values),
				 E_INVALIDARG);
		if (!client_found(&w.client, "PRI-04"))
			fail_msg("call %zu: %s", i,
				 w.client.findings ? w.client.finding[0] : "no finding");
		client_forget(&w.client);
		assert_int_equal(status[0], 9);
		assert_int_equal(status[1], 9);
	}
	assert_int_equal(query(&w, NULL, &a, UINT32_MAX, status), E_INVALIDARG);
	client_forget(&w.client);
	world_stop(&w);
}

static void pri_04_long_lists_are_answered_in_order(void **state)
{
	enum { COUNT = 200 };
	struct world w;
	D3DKMT_HANDLE a[COUNT];
	D3DDDI_RESIDENCYSTATUS status[COUNT];

	world_start(&w, state, &small);
	for (int i = 0; i < COUNT; i++) {
		a[i] = client_allocate(&w.device, PAGE, CPU);
		if (i % 3 == 0)
			client_reference(&w.context, a[i], false);
	}
	client_submit(&w.context);
	client_idle(&w.client);
	assert_int_equal(query(&w, NULL, a, COUNT, status), S_OK);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(status[i], i % 3 == 0 ? IN_VRAM : EVICTED);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(pri_01_the_lowest_priority_is_evicted_first),
		BOTH(pri_01_equal_priorities_are_evicted_in_lru_order),
		BOTH(pri_01_values_between_the_named_priorities_are_accepted),
		BOTH(pri_03_a_handle_list_takes_one_value_per_entry),
		BOTH(pri_03_a_resource_takes_one_value_for_all_allocations),
		BOTH(pri_03_mixed_shapes_and_bad_handles_change_nothing),
		BOTH(pri_04_residency_reports_memory_aperture_or_not_resident),
		BOTH(pri_04_a_resource_reports_its_worst_member),
		BOTH(pri_04_a_renamed_member_reports_its_newest_instance),
		BOTH(pri_04_a_query_with_invalid_arguments_writes_nothing),
		BOTH(pri_04_long_lists_are_answered_in_order),
	};

	return cmocka_run_group_tests_name("priority", tests, NULL, NULL);
}
