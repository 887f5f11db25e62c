/* SPDX-License-Identifier: MIT */
/* OFR: offering memory, losing it under pressure only and in order, and the report at reclaim. */
#include "world.h"

#define LOW    D3DDDI_OFFER_PRIORITY_LOW
#define NORMAL D3DDDI_OFFER_PRIORITY_NORMAL
#define HIGH   D3DDDI_OFFER_PRIORITY_HIGH
#define AUTO   D3DDDI_OFFER_PRIORITY_AUTO

/* Video memory for four allocations of this size. */
static const struct client_options small = {.vram_bytes = 4 * MIB};

static HRESULT offer(struct world *w, const D3DKMT_HANDLE *list, uint32_t count,
		     D3DDDI_OFFER_PRIORITY priority)
{
	D3DDDICB_OFFERALLOCATIONS args = {
		.HandleList = list, .NumAllocations = count, .Priority = priority};

	return w->device.cb->pfnOfferAllocationsCb(w->device.handle, &args);
}

static void offer_one(struct world *w, D3DKMT_HANDLE a, D3DDDI_OFFER_PRIORITY priority)
{
	assert_int_equal(offer(w, &a, 1, priority), S_OK);
}

static BOOL reclaim(struct world *w, D3DKMT_HANDLE a)
{
	BOOL discarded = 7;
	D3DDDICB_RECLAIMALLOCATIONS args = {
		.HandleList = &a, .NumAllocations = 1, .pDiscarded = &discarded};

	assert_int_equal(w->device.cb->pfnReclaimAllocationsCb(w->device.handle, &args), S_OK);
	assert_true(discarded == 0 || discarded == 1);
	return discarded;
}

/* Written, in video memory, idle. */
static D3DKMT_HANDLE filled(struct world *w, uint32_t pattern)
{
	D3DKMT_HANDLE a = allocate_in(&w->device, MIB, CPU, VRAM);

	client_write(&w->device, a, MIB, pattern);
	use_now(w, a, true);
	assert_int_equal(client_residency(&w->device, a), IN_VRAM);
	return a;
}

/* Another allocation needs that many MiB for one submission. */
static void apply_pressure(struct world *w, uint32_t mib)
{
	D3DKMT_HANDLE need = allocate_in(&w->device, mib * MIB, 0, VRAM);

	use_now(w, need, false);
	assert_int_equal(client_deallocate(&w->device, need), S_OK);
}

static void expect_zero(struct world *w, D3DKMT_HANDLE a)
{
	const uint32_t *words = client_lock(&w->device, a, READ_ONLY);

	for (uint32_t i = 0; i < MIB / 4; i++)
		assert_int_equal(words[i], 0);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

static void ofr_01_offered_memory_is_discarded_after_earlier_work_completes(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = filled(&w, 1), need = allocate_in(&w.device, 4 * MIB, 0, VRAM);

	gate_close(&w);
	client_reference(&w.context, a, true);
	client_submit(&w.context);
	offer_one(&w, a, LOW); /* returns while the GPU works */
	client_reference(&w.context, need, false);
	client_submit(&w.context);
	for (int i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_true(client_events(&w.client, VIDMM_EVENT_DISCARD) == 0);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	gate_open(&w);
	client_idle(&w.client);
	assert_true(client_events(&w.client, VIDMM_EVENT_DISCARD) == 1);
	assert_int_equal(reclaim(&w, a), TRUE);
	world_stop(&w);
}

/*
 * The head of the queue needs space in the aperture, while the packet behind it needs an offered
 * allocation there.
 */
static void ofr_01_earlier_submissions_keep_the_content_if_not_yet_prepared(void **state)
{
	struct client_options options = {.vram_bytes = 4 * MIB, .aperture_bytes = 3 * MIB};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = allocate_in(&w.device, MIB, CPU, APERTURE);
	D3DKMT_HANDLE idle = allocate_in(&w.device, MIB, CPU, APERTURE);
	D3DKMT_HANDLE third = allocate_in(&w.device, MIB, CPU, APERTURE);
	D3DKMT_HANDLE busy = allocate_in(&w.device, 3 * MIB, 0, VRAM);
	D3DKMT_HANDLE next = allocate_in(&w.device, 3 * MIB, 0, VRAM);
	D3DKMT_HANDLE out = allocate_in(&w.device, MIB, CPU, VRAM);
	client_write(&w.device, a, MIB, 0x0FF00000);
	use_now(&w, a, false);
	use_now(&w, idle, false);
	use_now(&w, busy, false);
	gate_close(&w);
	client_reference(&w.context, busy, false);
	client_submit(&w.context);
	client_reference(&w.context, next, false); /* waits for the first one's memory */
	client_reference(&w.context, third, false);
	client_submit(&w.context);
	client_copy(&w.context, a, out, MIB); /* waits behind it */
	client_submit(&w.context);
	offer_one(&w, a, LOW);
	uint64_t before = world_statistics(&w).evictions;
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, idle), EVICTED);
	assert_int_equal(world_statistics(&w).evictions, before + 2); /* busy and idle */
	assert_true(client_events(&w.client, VIDMM_EVENT_DISCARD) == 0);
	client_expect(&w.device, out, MIB, 0x0FF00000);
	world_stop(&w);
}

static void ofr_02_exactly_one_of_presources_and_handlelist_is_accepted(void **state)
{
	struct world w;
	HANDLE resource = &w;
	BOOL discarded[2];

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = filled(&w, 1);
	D3DDDICB_OFFERALLOCATIONS both = {
		.pResources = &resource, .HandleList = &a, .NumAllocations = 1, .Priority = LOW};
	D3DDDICB_RECLAIMALLOCATIONS back = {.pResources = &resource,
					    .HandleList = &a,
					    .NumAllocations = 1,
					    .pDiscarded = discarded};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &both),
				 E_INVALIDARG);
		assert_true(client_found(&w.client, "OFR-02"));
		client_forget(&w.client);
		assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &back),
				 E_INVALIDARG);
		assert_true(client_found(&w.client, "OFR-02"));
		client_forget(&w.client);
		both.pResources = NULL; /* and neither of the two arrays */
		both.HandleList = NULL;
		back.pResources = NULL;
		back.HandleList = NULL;
	}
	client_expect(&w.device, a, MIB, 1); /* not offered */
	world_stop(&w);
}

static void ofr_02_a_list_with_one_bad_entry_changes_nothing(void **state)
{
	struct world w;
	BOOL discarded[2] = {5, 5};

	world_start(&w, state, &small);
	const D3DKMT_HANDLE list[] = {filled(&w, 1), 0xDEAD};
	D3DDDICB_RECLAIMALLOCATIONS back = {
		.HandleList = list, .NumAllocations = 2, .pDiscarded = discarded};

	assert_int_equal(offer(&w, list, 2, LOW), E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-02"));
	client_forget(&w.client);
	client_lock(&w.device, list[0], 0);
	assert_int_equal(client_unlock(&w.device, list[0]), S_OK);
	offer_one(&w, list[0], LOW);
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &back),
			 E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-02"));
	client_forget(&w.client);
	assert_int_equal(discarded[0], 5);                            /* outputs untouched */
	expect_lock_refused(&w, list[0], 0, E_INVALIDARG, "LOCK-25"); /* still offered */
	world_stop(&w);
}

static void ofr_03_an_unknown_offer_priority_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = filled(&w, 1);

	for (uint32_t p = 0; p < 8; p++) {
		bool good = p >= 1 && p <= 4;

		assert_int_equal(offer(&w, &a, 1, (D3DDDI_OFFER_PRIORITY)p),
				 good ? S_OK : E_INVALIDARG);
		assert_int_equal(client_found(&w.client, "OFR-03"), !good);
		client_forget(&w.client);
		if (good)
			assert_int_equal(reclaim(&w, a), FALSE);
		else
			client_expect(&w.device, a, MIB, 1);
	}
	assert_int_equal(offer(&w, &a, 1, (D3DDDI_OFFER_PRIORITY)UINT32_MAX), E_INVALIDARG);
	client_forget(&w.client);
	world_stop(&w);
}

static void ofr_04_low_is_discarded_first_then_normal_high_and_not_offered(void **state)
{
	static const D3DDDI_OFFER_PRIORITY order[] = {HIGH, LOW, NORMAL};
	struct world w;
	D3DKMT_HANDLE a[3];

	for (uint32_t taken = 1; taken <= 3; taken++) {
		world_start(&w, state, &small);
		D3DKMT_HANDLE kept =
			filled(&w, 9); /* least recently used of all, but not offered */
		for (int i = 0; i < 3; i++)
			a[i] = filled(&w, (uint32_t)i);
		for (int i = 0; i < 3; i++)
			offer_one(&w, a[i], order[i]);
		apply_pressure(&w, taken);
		assert_int_equal(reclaim(&w, a[1]), TRUE);
		assert_int_equal(reclaim(&w, a[2]), taken > 1);
		assert_int_equal(reclaim(&w, a[0]), taken > 2);
		assert_int_equal(client_residency(&w.device, kept), IN_VRAM);
		client_expect(&w.device, kept, MIB, 9);
		if (taken < 3)
			client_expect(&w.device, a[0], MIB, 0);
		world_stop(&w);
	}
}

static void ofr_04_auto_ranks_by_the_allocations_eviction_priority(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE important = filled(&w, 1), minor = filled(&w, 2), normal = filled(&w, 3);

	set_priority(&w, important, D3DDDI_ALLOCATIONPRIORITY_HIGH);
	set_priority(&w, minor, D3DDDI_ALLOCATIONPRIORITY_LOW);
	offer_one(&w, important, AUTO);
	offer_one(&w, minor, AUTO);
	offer_one(&w, normal, NORMAL);
	apply_pressure(&w, 2); /* one MiB is free */
	apply_pressure(&w, 3);
	assert_int_equal(reclaim(&w, important), FALSE);
	assert_int_equal(reclaim(&w, normal), TRUE);
	assert_int_equal(reclaim(&w, minor), TRUE);
	world_stop(&w);
}

static void ofr_05_lock_25_an_offered_allocation_cannot_be_locked_or_rendered(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = filled(&w, 5);

	offer_one(&w, a, HIGH);
	expect_lock_refused(&w, a, 0, E_INVALIDARG, "LOCK-25");
	expect_lock_refused(&w, a, DISCARD, E_INVALIDARG, "LOCK-25");
	probe_forget();
	client_reference(&w.context, a, false);
	assert_int_equal(client_try_submit(&w.context), E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-05"));
	assert_int_equal(probe_count(PROBE_RENDER), 0);
	client_forget(&w.client);
	assert_int_equal(reclaim(&w, a), FALSE);
	client_expect(&w.device, a, MIB, 5);
	use_now(&w, a, false);
	world_stop(&w);
}

static void ofr_06_reclaim_reports_discarded_exactly_if_content_was_lost(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE b = filled(&w, 7), a = filled(&w, 6); /* a is adjacent to the free space */
	const D3DKMT_HANDLE list[] = {a, b};
	BOOL discarded[2];
	D3DDDICB_RECLAIMALLOCATIONS back = {
		.HandleList = list, .NumAllocations = 2, .pDiscarded = discarded};

	assert_int_equal(offer(&w, list, 2, NORMAL), S_OK);
	apply_pressure(&w, 2); /* two MiB are free */
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &back), S_OK);
	assert_int_equal(discarded[0], FALSE);
	assert_int_equal(discarded[1], FALSE);
	client_expect(&w.device, a, MIB, 6);
	client_expect(&w.device, b, MIB, 7);
	offer_one(&w, a, LOW);
	apply_pressure(&w, 3);
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &back), S_OK);
	assert_int_equal(discarded[0], TRUE);
	assert_int_equal(discarded[1], FALSE);
	expect_zero(&w, a); /* and no bytes of another allocation */
	client_expect(&w.device, b, MIB, 7);
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &back), S_OK);
	assert_int_equal(discarded[0], FALSE); /* it was reported once */
	offer_one(&w, b, LOW);
	apply_pressure(&w, 4);
	back.pDiscarded = NULL; /* pDiscarded is optional */
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &back), S_OK);
	use_now(&w, b, false); /* PAG-05: without content, as after creation */
	expect_zero(&w, b);
	world_stop(&w);
}

static void ofr_06_an_offer_does_not_discard_evicted_content(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = filled(&w, 8);

	evict_by_pressure(&w, a);
	offer_one(&w, a, LOW);
	apply_pressure(&w, 4);
	assert_int_equal(reclaim(&w, a), FALSE);
	client_expect(&w.device, a, MIB, 8);
	world_stop(&w);
}

static void ofr_02_ofr_06_a_resource_is_offered_and_reported_as_a_whole(void **state)
{
	struct world w;
	int runtime = 0;
	HANDLE resource = &runtime, unknown = &w;
	D3DKMT_HANDLE a[2];
	BOOL discarded = 7;

	world_start(&w, state, &small);
	D3DDDICB_OFFERALLOCATIONS give = {
		.pResources = &resource, .NumAllocations = 1, .Priority = LOW};
	D3DDDICB_RECLAIMALLOCATIONS back = {
		.pResources = &resource, .NumAllocations = 1, .pDiscarded = &discarded};
	for (int i = 0; i < 2; i++) {
		struct softgpu_allocation wish = wish_of(MIB, CPU, VRAM);
		assert_int_equal(client_try_allocate(&w.device, &wish, resource, &a[i], NULL),
				 S_OK);
		client_write(&w.device, a[i], MIB, (uint32_t)i);
		use_now(&w, a[i], false);
	}
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &give), S_OK);
	for (int i = 0; i < 2; i++)
		expect_lock_refused(&w, a[i], 0, E_INVALIDARG, "LOCK-25");
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &back), S_OK);
	assert_int_equal(discarded, FALSE);
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &give), S_OK);
	apply_pressure(&w, 3); /* discards one of the two */
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &back), S_OK);
	assert_int_equal(discarded, TRUE);
	give.pResources = &unknown;
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &give), E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-02"));
	client_forget(&w.client);
	world_stop(&w);
}

static void ofr_07_reclaiming_an_allocation_not_offered_reports_intact(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU), again = filled(&w, 4),
		      other = filled(&w, 3);

	assert_int_equal(reclaim(&w, a), FALSE);
	client_write(&w.device, a, PAGE, 1);
	assert_int_equal(reclaim(&w, a), FALSE);
	client_expect(&w.device, a, PAGE, 1);
	/* Offering again only changes the priority: now it is discarded last. */
	offer_one(&w, again, LOW);
	offer_one(&w, other, NORMAL);
	offer_one(&w, again, HIGH);
	apply_pressure(&w, 3);
	assert_int_equal(reclaim(&w, again), FALSE);
	assert_int_equal(reclaim(&w, other), TRUE);
	world_stop(&w);
}

/* The client is about to use it, so another allocation is the least recently used one. */
static void ofr_06_a_reclaimed_allocation_counts_as_used(void **state)
{
	static const struct vidmm_registry_value lru[] = {
		{"VidmmEvictionPolicy", VIDMM_EVICTION_LRU}};
	const struct client_options options = {
		.vram_bytes = 4 * MIB, .registry = lru, .registry_count = 1};
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, &options);
	for (uint32_t i = 0; i < 3; i++)
		a[i] = filled(&w, i);
	offer_one(&w, a[0], LOW);
	assert_int_equal(reclaim(&w, a[0]), FALSE);
	apply_pressure(&w, 2); /* one MiB is free; a range needs both others */
	assert_int_equal(client_residency(&w.device, a[0]), IN_VRAM);
	assert_int_equal(client_residency(&w.device, a[1]), EVICTED);
	world_stop(&w);
}

static void ofr_08_a_locked_allocation_cannot_be_offered(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = filled(&w, 1), b = filled(&w, 2);
	const D3DKMT_HANDLE list[] = {b, a};
	uint32_t *words = client_lock(&w.device, a, 0);

	assert_int_equal(offer(&w, list, 2, LOW), E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-08"));
	client_forget(&w.client);
	words[0] = 99; /* the lock is still valid */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_expect(&w.device, b, MIB, 2); /* and the other entry was not offered */
	offer_one(&w, a, LOW);
	world_stop(&w);
}

static void ofr_09_pag_06_a_discard_copies_nothing_back(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = filled(&w, 1);
	HANDLE kmd = probe_last_created();

	offer_one(&w, a, LOW);
	probe_forget();
	apply_pressure(&w, 4);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 0);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_DISCARD_CONTENT, kmd), 1);
	const DXGKARG_BUILDPAGINGBUFFER *p =
		&probe_find_paging(DXGK_OPERATION_DISCARD_CONTENT, kmd, 0)->paging;
	assert_int_equal(p->DiscardContent.SegmentId, 1);
	assert_int_equal(reclaim(&w, a), TRUE);
	world_stop(&w);
}

static void ofr_09_a_discard_from_an_aperture_frees_the_backing_store(void **state)
{
	struct client_options options = {.vram_bytes = 4 * MIB, .aperture_bytes = 4 * MIB};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = allocate_in(&w.device, 2 * MIB, CPU, APERTURE);

	client_write(&w.device, a, 2 * MIB, 1);
	use_now(&w, a, false);
	uint64_t before = world_statistics(&w).system_bytes;
	offer_one(&w, a, LOW);
	D3DKMT_HANDLE need = allocate_in(&w.device, 3 * MIB, 0, APERTURE);
	use_now(&w, need, false);
	assert_int_equal(client_deallocate(&w.device, need), S_OK);
	client_idle(&w.client);
	assert_int_equal(client_deallocate(&w.device, client_allocate(&w.device, PAGE, 0)),
			 S_OK); /* frees what is pending */
	assert_true(world_statistics(&w).system_bytes <= before - MIB);
	assert_int_equal(reclaim(&w, a), TRUE);
	const uint32_t *words = client_lock(&w.device, a, 0);
	for (uint32_t i = 0; i < MIB / 2; i++)
		assert_int_equal(words[i], 0);
	world_stop(&w);
}

static void ren_20_an_offer_of_a_renamed_allocation_offers_its_newest_instance(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE first = filled(&w, 0), a0 = filled(&w, 0xA0), a1 = a0;
	void *data;

	assert_int_equal(client_deallocate(&w.device, first),
			 S_OK); /* so that a0 is adjacent to the free space */
	assert_int_equal(client_try_lock(&w.device, &a1, DISCARD, &data), S_OK);
	for (uint32_t i = 0; i < MIB / 4; i++)
		((uint32_t *)data)[i] = 0xA1 + i;
	assert_int_equal(client_unlock(&w.device, a1), S_OK);
	use_now(&w, a1, false); /* a0 is retired now, but still in video memory */
	offer_one(&w, a1, LOW);
	expect_lock_refused(&w, a1, 0, E_INVALIDARG, "LOCK-25");
	apply_pressure(&w, 3); /* discarding the older instance suffices */
	assert_int_equal(reclaim(&w, a1), FALSE);
	client_expect(&w.device, a1, MIB, 0xA1);
	offer_one(&w, a1, LOW);
	apply_pressure(&w, 4);
	assert_int_equal(reclaim(&w, a1), TRUE);
	world_stop(&w);
}

static void ren_20_instances_not_yet_retired_survive_an_offer(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a0 = filled(&w, 0xB0), a1 = a0,
		      out = allocate_in(&w.device, MIB, CPU, APERTURE);

	assert_int_equal(client_try_lock(&w.device, &a1, DISCARD, NULL), S_OK);
	assert_int_equal(client_unlock(&w.device, a1), S_OK);
	offer_one(&w, a1, LOW);
	apply_pressure(&w, 4);
	assert_int_equal(reclaim(&w, a1), FALSE); /* the newest instance is where the CPU left it */
	client_copy(&w.context, a0, out, MIB);
	client_submit(&w.context);
	client_expect(&w.device, out, MIB, 0xB0);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(ofr_01_offered_memory_is_discarded_after_earlier_work_completes),
		BOTH(ofr_01_earlier_submissions_keep_the_content_if_not_yet_prepared),
		BOTH(ofr_02_exactly_one_of_presources_and_handlelist_is_accepted),
		BOTH(ofr_02_a_list_with_one_bad_entry_changes_nothing),
		BOTH(ofr_03_an_unknown_offer_priority_is_refused),
		BOTH(ofr_04_low_is_discarded_first_then_normal_high_and_not_offered),
		BOTH(ofr_04_auto_ranks_by_the_allocations_eviction_priority),
		BOTH(ofr_05_lock_25_an_offered_allocation_cannot_be_locked_or_rendered),
		BOTH(ofr_06_reclaim_reports_discarded_exactly_if_content_was_lost),
		BOTH(ofr_06_an_offer_does_not_discard_evicted_content),
		BOTH(ofr_02_ofr_06_a_resource_is_offered_and_reported_as_a_whole),
		BOTH(ofr_07_reclaiming_an_allocation_not_offered_reports_intact),
		BOTH(ofr_06_a_reclaimed_allocation_counts_as_used),
		BOTH(ofr_08_a_locked_allocation_cannot_be_offered),
		BOTH(ofr_09_pag_06_a_discard_copies_nothing_back),
		BOTH(ofr_09_a_discard_from_an_aperture_frees_the_backing_store),
		BOTH(ren_20_instances_not_yet_retired_survive_an_offer),
		BOTH(ren_20_an_offer_of_a_renamed_allocation_offers_its_newest_instance),
	};

	return cmocka_run_group_tests_name("offer", tests, NULL, NULL);
}
