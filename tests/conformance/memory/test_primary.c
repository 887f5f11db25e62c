/* SPDX-License-Identifier: MIT */
/* ALF-06, ALF-31 and related rules: primaries as allocations. Nothing is displayed. */
#include "world.h"

enum { PRIMARY = 0x1, STEREO = 0x2 };

static const struct client_options small = {.vram_bytes = 4 * MIB, .aperture_bytes = 8 * MIB};

struct answer {
	UINT flags, read, write, preferred;
};

static void set_answer(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	const struct answer *a = context;

	(void)index;
	info->Flags.Value = a->flags;
	info->SupportedReadSegmentSet = a->read;
	info->SupportedWriteSegmentSet = a->write;
	info->PreferredSegment.Value = a->preferred;
}

static HRESULT try_client_flags(struct world *w, uint32_t client_flags, struct answer answer,
				HANDLE resource, D3DKMT_HANDLE *a)
{
	struct softgpu_allocation wish = wish_of(64 * KIB, 0, 0);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish),
				      .VidPnSourceId = client_flags & PRIMARY ? 1 : 0,
				      .Flags.Value = client_flags};
	D3DDDICB_ALLOCATE args = {
		.NumAllocations = 1, .pAllocationInfo = &info, .hResource = resource};

	client_forget(&w->client);
	probe_forget();
	probe.edit_allocation = set_answer;
	probe.context = &answer;
	HRESULT result = w->device.cb->pfnAllocateCb(w->device.handle, &args);
	probe.edit_allocation = NULL;
	*a = info.hAllocation;
	return result;
}

static D3DKMT_HANDLE allocate_primary(struct world *w, struct answer answer)
{
	D3DKMT_HANDLE a;

	assert_int_equal(try_client_flags(w, PRIMARY, answer, NULL, &a), S_OK);
	assert_int_equal(w->client.findings, 0);
	return a;
}

static void expect_refused(struct world *w, uint32_t client_flags, struct answer answer,
			   const char *rule)
{
	D3DKMT_HANDLE a;

	assert_int_equal(try_client_flags(w, client_flags, answer, NULL, &a), E_INVALIDARG);
	if (!client_found(&w->client, rule) || w->client.findings != 1)
		fail_msg("expected %s, got %u findings, first: %s", rule, w->client.findings,
			 w->client.finding[0]);
	assert_int_equal(a, 0);
	assert_int_equal(probe_count(PROBE_DESTROY), 1);
	assert_int_equal(world_statistics(w).allocations, 1); /* the gate */
	client_forget(&w->client);
}

static const struct answer anywhere = {0, VRAM | APERTURE, VRAM | APERTURE, 0};

static void swz_26_usealternateva_needs_a_primary_created_with_that_flag(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_primary(&w, anywhere);

	expect_lock_refused(&w, a, ACQUIRE_APERTURE | USE_ALTERNATE_VA, E_INVALIDARG, "SWZ-26");
	client_lock(&w.device, a, ACQUIRE_APERTURE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void alf_31_a_primary_is_implicitly_cpu_accessible(void **state)
{
	struct world w;
	D3DKMT_HANDLE plain;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_primary(&w, anywhere);
	client_write(&w.device, a, 64 * KIB, 0x3100);
	use_now(&w, a, true);
	client_expect(&w.device, a, 64 * KIB, 0x3100);
	assert_int_equal(try_client_flags(&w, 0, anywhere, NULL, &plain), S_OK);
	expect_lock_refused(&w, plain, 0, E_INVALIDARG, "LOCK-23");
	world_stop(&w);
}

static void alf_31_a_write_set_with_a_hidden_segment_is_refused(void **state)
{
	static const struct vidmm_registry_value hidden[] = {{"VramCpuVisible", 0}};
	struct client_options options = small;
	struct world w;

	options.registry = hidden;
	options.registry_count = 1;
	world_start(&w, state, &options);
	expect_refused(&w, PRIMARY, anywhere, "ALF-31");
	expect_refused(&w, PRIMARY, (struct answer){0, APERTURE, VRAM, 0}, "ALF-31");
	/* Only the write set counts, and the CPU reaches content of an aperture (C-18). */
	D3DKMT_HANDLE a = allocate_primary(&w, (struct answer){0, VRAM, APERTURE, 0});
	client_write(&w.device, a, 64 * KIB, 0x3101);
	use_now(&w, a, false);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	client_expect(&w.device, a, 64 * KIB, 0x3101);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	assert_int_equal(try_client_flags(&w, 0, anywhere, NULL, &a), S_OK); /* no primary */
	world_stop(&w);
}

static void alf_31_a_primary_follows_preferences_then_its_write_set(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE prefers = allocate_primary(&w, (struct answer){0, 3, 3, 2});
	D3DKMT_HANDLE first = allocate_primary(&w, anywhere);
	D3DKMT_HANDLE read_elsewhere = allocate_primary(&w, (struct answer){0, VRAM, APERTURE, 1});

	use_now(&w, prefers, true);
	use_now(&w, first, false);
	use_now(&w, read_elsewhere, false);
	assert_int_equal(client_residency(&w.device, prefers), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, first), IN_VRAM);
	assert_int_equal(client_residency(&w.device, read_elsewhere), IN_APERTURE);
	world_stop(&w);
}

static void alf_31_stereo_needs_a_primary(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	expect_refused(&w, STEREO, anywhere, "ALF-31");
	assert_int_equal(try_client_flags(&w, PRIMARY | STEREO, anywhere, NULL, &a), S_OK);
	assert_int_equal(w.client.findings, 0);
	/* The bits behind them have a meaning from 2.2 on. */
	assert_int_equal(try_client_flags(&w, PRIMARY | 0x4, anywhere, NULL, &a), E_NOTIMPL);
	world_stop(&w);
}

static void alf_06_forbidden_flags_on_a_primary_are_refused(void **state)
{
	static const UINT flags[] = {0x1 | 0x2, 0x1 | 0x4, 0x8, 0x10, 0x20};
	struct answer answer = anywhere;
	struct world w;

	world_start(&w, state, &small);
	for (uint32_t i = 0; i < 5; i++) {
		answer.flags = flags[i];
		expect_refused(&w, PRIMARY, answer, "ALF-06");
	}
	answer.flags = 0x1000; /* LinkMirrored: legal on a primary */
	allocate_primary(&w, answer);
	answer.flags = 0x1 | 0x40;
	allocate_primary(&w, answer);
	world_stop(&w);
}

static void pag_10_the_aperture_mapping_of_a_primary_has_a_null_device(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_primary(&w, (struct answer){0, APERTURE, APERTURE, 0});
	HANDLE kmd = probe_last_created();
	D3DKMT_HANDLE plain = allocate_in(&w.device, PAGE, CPU, APERTURE);
	HANDLE plain_kmd = probe_last_created();

	use_now(&w, a, true);
	use_now(&w, plain, true);
	const struct probe_call *map =
		probe_find_paging(DXGK_OPERATION_MAP_APERTURE_SEGMENT, kmd, 0);
	const struct probe_call *other =
		probe_find_paging(DXGK_OPERATION_MAP_APERTURE_SEGMENT, plain_kmd, 0);
	assert_null(map->paging.MapApertureSegment.hDevice);
	assert_non_null(other->paging.MapApertureSegment.hDevice);
	world_stop(&w);
}

static void ren_14_ref_11_a_primary_is_not_renamed(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_primary(&w, anywhere), handle = a;
	client_write(&w.device, a, 64 * KIB, 0x1415);
	gate_close(&w);
	client_reference(&w.context, a, false);
	client_submit(&w.context);
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD | DONOT_WAIT, &data),
			 D3DERR_WASSTILLDRAWING);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD, &data), S_OK);
	assert_int_equal(handle, a);
	assert_int_equal(((uint32_t *)data)[9], 0x1415 + 9);
	assert_int_equal(client_unlock(&w.device, handle), S_OK);
	assert_int_equal(world_statistics(&w).renames, 0);
	world_stop(&w);
}

static void pag_12_a_primary_not_displayed_is_evicted_normally(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_primary(&w, (struct answer){0, VRAM, VRAM, 0});
	for (uint32_t round = 0; round < 3; round++) {
		client_write(&w.device, a, 64 * KIB, round << 16);
		use_now(&w, a, true);
		evict_by_pressure(&w, a);
		client_expect(&w.device, a, 64 * KIB, round << 16);
	}
	world_stop(&w);
}

static void ofr_11_a_resource_with_a_primary_is_offered_by_handle(void **state)
{
	int with = 0, without = 0; /* two runtime handles */
	HANDLE resources[2] = {&without, &with};
	BOOL discarded[2] = {7, 7};
	struct world w;
	D3DKMT_HANDLE primary, plain;

	world_start(&w, state, &small);
	assert_int_equal(try_client_flags(&w, PRIMARY, anywhere, &with, &primary), S_OK);
	assert_int_equal(try_client_flags(&w, 0, (struct answer){1, 3, 3, 0}, &without, &plain),
			 S_OK);
	D3DDDICB_OFFERALLOCATIONS offer = {.pResources = resources,
					   .NumAllocations = 2,
					   .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.pResources = resources, .NumAllocations = 2, .pDiscarded = discarded};
	PFND3DDDI_OFFERALLOCATIONSCB try_offer = w.device.cb->pfnOfferAllocationsCb;

	assert_int_equal(try_offer(w.device.handle, &offer), E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-11") && w.client.findings == 1);
	client_forget(&w.client);
	client_write(&w.device, plain, PAGE, 1); /* nothing was offered */
	offer.NumAllocations = 1;
	assert_int_equal(try_offer(w.device.handle, &offer), S_OK);
	/* By its handle it works. */
	offer.pResources = NULL;
	offer.HandleList = &primary;
	assert_int_equal(try_offer(w.device.handle, &offer), S_OK);
	expect_lock_refused(&w, primary, 0, E_INVALIDARG, "LOCK-25");
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &reclaim),
			 E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-11") && w.client.findings == 1);
	assert_true(discarded[0] == 7 && discarded[1] == 7);
	client_forget(&w.client);
	expect_lock_refused(&w, plain, 0, E_INVALIDARG, "LOCK-25"); /* nothing was reclaimed */
	reclaim.pResources = NULL;
	reclaim.HandleList = &primary;
	reclaim.NumAllocations = 1;
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &reclaim), S_OK);
	client_write(&w.device, primary, PAGE, 1);
	/* Priorities and residency may be queried for the resource. */
	UINT priority = D3DDDI_ALLOCATIONPRIORITY_HIGH;
	D3DDDICB_SETPRIORITY set = {.hResource = &with, .pPriorities = &priority};
	assert_int_equal(w.device.cb->pfnSetPriorityCb(w.device.handle, &set), S_OK);
	assert_int_equal(w.client.findings, 0);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(swz_26_usealternateva_needs_a_primary_created_with_that_flag),
		BOTH(alf_06_forbidden_flags_on_a_primary_are_refused),
		BOTH(alf_31_a_primary_is_implicitly_cpu_accessible),
		BOTH(alf_31_a_write_set_with_a_hidden_segment_is_refused),
		BOTH(alf_31_a_primary_follows_preferences_then_its_write_set),
		BOTH(alf_31_stereo_needs_a_primary),
		BOTH(pag_10_the_aperture_mapping_of_a_primary_has_a_null_device),
		BOTH(pag_12_a_primary_not_displayed_is_evicted_normally),
		BOTH(ren_14_ref_11_a_primary_is_not_renamed),
		BOTH(ofr_11_a_resource_with_a_primary_is_offered_by_handle),
	};

	return cmocka_run_group_tests_name("primary", tests, NULL, NULL);
}
