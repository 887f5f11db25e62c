/* SPDX-License-Identifier: MIT */
/*
 * bytes paged in for the first time and again, and why they were paged in again
 * and evicted. The parts add up to the totals.
 */
#include "world.h"

/* Only allocations of the test are in the segments. */
struct setting {
	struct vidmm_registry_value registry[4];
	struct client_options options;
};
static const struct client_options *bare(struct setting *setting, uint32_t vram_mib)
{
	*setting = (struct setting){
		.registry = {{"DmaBufferSegmentSet", 0},
			     {"PagingBufferSegment", 0},
			     {"VramCpuVisible", 1},
			     {"VidmmEvictionPolicy", VIDMM_EVICTION_LRU}},
		.options = {.vram_bytes = (uint64_t)vram_mib * MIB,
			    .aperture_bytes = 2 * MIB,
			    .registry_count = 4},
	};
	setting->options.registry = setting->registry;
	return &setting->options;
}

/* In MiB: paged in, by cause; evictions, by cause. */
struct causes {
	uint64_t first, capacity, fragmentation, lock, trim, other;
	uint64_t out_aperture, out_capacity, out_fragmentation, out_lock, out_trim, out_other;
};

static void expect_causes(const struct world *w, const struct causes *expected)
{
	const struct vidmm_adapter_statistics s = world_statistics(w);
	const struct causes found = {
		.first = s.bytes_paged_in_first / MIB,
		.capacity = s.bytes_paged_in_capacity / MIB,
		.fragmentation = s.bytes_paged_in_fragmentation / MIB,
		.lock = s.bytes_paged_in_lock / MIB,
		.trim = s.bytes_paged_in_trim / MIB,
		.other = s.bytes_paged_in_other / MIB,
		.out_aperture = s.evictions_aperture,
		.out_capacity = s.evictions_capacity,
		.out_fragmentation = s.evictions_fragmentation,
		.out_lock = s.evictions_lock,
		.out_trim = s.evictions_trim,
		.out_other = s.evictions_other,
	};

	assert_true(s.bytes_paged_in == s.bytes_paged_in_first + s.bytes_paged_in_capacity +
						s.bytes_paged_in_fragmentation +
						s.bytes_paged_in_lock + s.bytes_paged_in_trim +
						s.bytes_paged_in_other);
	assert_true(s.evictions == s.evictions_aperture + s.evictions_capacity +
					   s.evictions_fragmentation + s.evictions_lock +
					   s.evictions_trim + s.evictions_other);
	assert_memory_equal(&found, expected, sizeof(found));
}

/* Written in system memory, so that it has to be copied in. */
static D3DKMT_HANDLE written(struct world *w, uint64_t bytes, uint32_t segments)
{
	D3DKMT_HANDLE a = allocate_in(&w->device, bytes, CPU, segments);

	client_write(&w->device, a, bytes, a);
	return a;
}

static void q_320_content_that_was_never_in_video_memory_is_a_first_use(void **state)
{
	struct setting setting;
	struct world w;

	world_start(&w, state, bare(&setting, 4));
	D3DKMT_HANDLE a = written(&w, MIB, VRAM), new = allocate_in(&w.device, MIB, CPU, VRAM);

	expect_causes(&w, &(struct causes){0});
	use_now(&w, a, true);
	expect_causes(&w, &(struct causes){.first = 1});
	/* A new allocation is filled, and nothing is copied in. */
	use_now(&w, new, true);
	expect_causes(&w, &(struct causes){.first = 1});
	/* Both had been in video memory, so neither is a first use any more. */
	evict_by_pressure(&w, a);
	use_now(&w, a, false);
	use_now(&w, new, false);
	expect_causes(&w, &(struct causes){.first = 1, .capacity = 2, .out_capacity = 2});
	/* Nor after the CPU has written it in system memory. */
	evict_by_pressure(&w, a);
	client_write(&w.device, a, MIB, 7);
	use_now(&w, a, false);
	expect_causes(&w, &(struct causes){.first = 1, .capacity = 3, .out_capacity = 4});
	world_stop(&w);
}

static void q_320_what_was_only_in_the_aperture_is_a_first_use(void **state)
{
	struct setting setting;
	struct world w;

	world_start(&w, state, bare(&setting, 2));
	D3DKMT_HANDLE a[3];
	for (int i = 0; i < 3; i++) {
		a[i] = written(&w, MIB, VRAM | APERTURE);
		client_reference(&w.context, a[i], false);
	}
	/* One submission needs all three: one of them is in the aperture. */
	client_submit(&w.context);
	client_idle(&w.client);
	uint32_t in_aperture = 3;
	for (uint32_t i = 0; i < 3; i++)
		if (client_residency(&w.device, a[i]) == IN_APERTURE)
			in_aperture = i;
	assert_in_range(in_aperture, 0, 2);
	expect_causes(&w, &(struct causes){.first = 2});
	/* The aperture is needed, and video memory becomes free. */
	D3DKMT_HANDLE all = allocate_in(&w.device, 2 * MIB, 0, APERTURE);
	use_now(&w, all, false);
	const uint64_t both = 2; /* and the gate */
	expect_causes(&w, &(struct causes){.first = 2, .out_aperture = both});
	assert_int_equal(client_deallocate(&w.device, a[(in_aperture + 1) % 3]), S_OK);
	use_now(&w, a[in_aperture], false);
	assert_int_equal(client_residency(&w.device, a[in_aperture]), IN_VRAM);
	expect_causes(&w, &(struct causes){.first = 3, .out_aperture = both});
	world_stop(&w);
}

/* Eight in a row; every second one is destroyed. */
static void q_321_free_bytes_in_holes_make_an_eviction_fragmentation(void **state)
{
	struct setting setting;
	D3DKMT_HANDLE a[8];
	struct world w;

	world_start(&w, state, bare(&setting, 8));
	for (int i = 0; i < 8; i++) {
		a[i] = written(&w, MIB, VRAM);
		use_now(&w, a[i], false);
	}
	for (int i = 1; i < 8; i += 2)
		assert_int_equal(client_deallocate(&w.device, a[i]), S_OK);
	/* It fits into a hole. */
	D3DKMT_HANDLE small = allocate_in(&w.device, MIB, CPU, VRAM);
	use_now(&w, small, false);
	expect_causes(&w, &(struct causes){.first = 8});
	/* 3 MiB are free, in holes of 1 MiB. */
	D3DKMT_HANDLE large = allocate_in(&w.device, 2 * MIB, CPU, VRAM);
	use_now(&w, large, false);
	uint32_t evicted = 0;
	for (int i = 0; i < 8; i += 2)
		evicted += client_residency(&w.device, a[i]) == EVICTED;
	assert_in_range(evicted, 1, 2);
	expect_causes(&w, &(struct causes){.first = 8, .out_fragmentation = evicted});
	for (int i = 0; i < 8; i += 2)
		if (client_residency(&w.device, a[i]) == EVICTED)
			use_now(&w, a[i], false);
	assert_true(world_statistics(&w).bytes_paged_in_fragmentation >= MIB);
	assert_true(world_statistics(&w).bytes_paged_in_capacity == 0);
	world_stop(&w);
}

static void q_321_too_few_free_bytes_make_an_eviction_capacity(void **state)
{
	struct setting setting;
	D3DKMT_HANDLE a[5];
	struct world w;

	world_start(&w, state, bare(&setting, 4));
	for (int i = 0; i < 5; i++) {
		a[i] = written(&w, MIB, VRAM);
		use_now(&w, a[i], false);
	}
	expect_causes(&w, &(struct causes){.first = 5, .out_capacity = 1});
	use_now(&w, a[0], false);
	expect_causes(&w, &(struct causes){.first = 5, .capacity = 1, .out_capacity = 2});
	world_stop(&w);
}

static void q_321_an_eviction_for_the_cpu_is_a_lock(void **state)
{
	struct setting setting;
	const struct client_options *options = bare(&setting, 4);
	struct world w;

	setting.registry[2].value = 0; /* video memory is not CPU-visible */
	world_start(&w, state, options);
	D3DKMT_HANDLE a = written(&w, MIB, VRAM);
	use_now(&w, a, false);
	client_expect(&w.device, a, MIB, a);
	expect_causes(&w, &(struct causes){.first = 1, .out_lock = 1});
	use_now(&w, a, false);
	expect_causes(&w, &(struct causes){.first = 1, .lock = 1, .out_lock = 1});
	world_stop(&w);
}

static void set_power(struct world *w, uint32_t state)
{
	assert_int_equal(vidmm_adapter_set_power(w->client.adapter, state, VIDMM_SLEEP_STANDBY),
			 STATUS_SUCCESS);
}

static void q_321_an_eviction_for_a_change_of_power_is_another_cause(void **state)
{
	struct setting setting;
	struct world w;

	world_start(&w, state, bare(&setting, 4));
	D3DKMT_HANDLE a = written(&w, MIB, VRAM);
	use_now(&w, a, false);
	set_power(&w, VIDMM_POWER_D3);
	set_power(&w, VIDMM_POWER_D0);
	const uint64_t gate = 1; /* is in the aperture, which loses its mappings */
	expect_causes(&w, &(struct causes){.first = 1, .out_aperture = gate, .out_other = 1});
	use_now(&w, a, false);
	expect_causes(
		&w, &(struct causes){.first = 1, .other = 1, .out_aperture = gate, .out_other = 1});
	world_stop(&w);
}

/* Offered content is discarded for space: no eviction, but the reason for what follows. */
static void q_321_a_discarded_offer_is_no_eviction(void **state)
{
	struct setting setting;
	struct world w;

	world_start(&w, state, bare(&setting, 4));
	D3DKMT_HANDLE a = written(&w, MIB, VRAM);
	use_now(&w, a, false);
	D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = &a, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	BOOL discarded = 0;
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = &a, .NumAllocations = 1, .pDiscarded = &discarded};
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
	D3DKMT_HANDLE all = allocate_in(&w.device, 4 * MIB, 0, VRAM);
	use_now(&w, all, false);
	assert_int_equal(client_deallocate(&w.device, all), S_OK);
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &reclaim), S_OK);
	assert_true(discarded);
	expect_causes(&w, &(struct causes){.first = 1});
	client_write(&w.device, a, MIB, 3);
	use_now(&w, a, false);
	expect_causes(&w, &(struct causes){.first = 1, .capacity = 1});
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(q_320_content_that_was_never_in_video_memory_is_a_first_use),
		BOTH(q_320_what_was_only_in_the_aperture_is_a_first_use),
		BOTH(q_321_free_bytes_in_holes_make_an_eviction_fragmentation),
		BOTH(q_321_too_few_free_bytes_make_an_eviction_capacity),
		BOTH(q_321_an_eviction_for_the_cpu_is_a_lock),
		BOTH(q_321_an_eviction_for_a_change_of_power_is_another_cause),
		BOTH(q_321_a_discarded_offer_is_no_eviction),
	};

	return cmocka_run_group_tests_name("paging_causes", tests, NULL, NULL);
}
