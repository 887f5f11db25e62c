/* SPDX-License-Identifier: MIT */
/*
 * the order of eviction inside a class, by policy. What comes before the policy is
 * the same with each of them.
 */
#include "world.h"

#define BUFFERS_MAX 16u
#define ROUNDS      80u
#define NEVER       UINT32_MAX
#define POLICIES    4u

static const char *const names[] = {"lru", "clock", "mru", "predicted"};

/* Only allocations of the test are in video memory, which has space for CAPACITY of 1 MiB. */
struct setting {
	struct vidmm_registry_value registry[3];
	struct client_options options;
};
static const struct client_options *with_policy(struct setting *setting, uint32_t policy,
						uint32_t capacity)
{
	*setting = (struct setting){
		.registry = {{"VidmmEvictionPolicy", policy},
			     {"DmaBufferSegmentSet", 0},
			     {"PagingBufferSegment", 0}},
		.options = {.vram_bytes = (uint64_t)capacity * MIB, .registry_count = 3},
	};
	setting->options.registry = setting->registry;
	return &setting->options;
}

/* ---- frame loops ---- */

/* A frame: buffers, each used by one submission. */
struct frame {
	uint32_t buffers, capacity, count;
	uint8_t use[32];
};

/* Each buffer once a frame; one buffer more than fit. */
static const struct frame textures = {
	.buffers = 11, .capacity = 10, .count = 11, .use = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
/* Buffer 0 in every second submission: a render target. Its intervals are not those of a frame. */
static const struct frame target = {
	.buffers = 10,
	.capacity = 9,
	.count = 18,
	.use = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9},
};

static uint32_t next_use(const struct frame *frame, uint32_t at, uint32_t buffer)
{
	for (uint32_t i = 1; i <= frame->count; i++)
		if (frame->use[(at + i) % frame->count] == buffer)
			return i;
	return NEVER;
}

/* Returns how often a buffer is paged in again if the one with the farthest next use is evicted. */
static uint32_t page_ins_of_reference(const struct frame *frame)
{
	bool resident[BUFFERS_MAX] = {false}, seen[BUFFERS_MAX] = {false};
	uint32_t page_ins = 0, count = 0;

	for (uint32_t at = 0; at < ROUNDS * frame->count; at++) {
		uint32_t buffer = frame->use[at % frame->count], victim = NEVER;

		if (resident[buffer])
			continue;
		for (uint32_t b = 0; b < frame->buffers && count == frame->capacity; b++)
			if (resident[b] && (victim == NEVER ||
					    next_use(frame, at, b) > next_use(frame, at, victim)))
				victim = b;
		if (victim != NEVER)
			resident[victim] = false;
		else
			count++;
		resident[buffer] = true;
		page_ins += seen[buffer];
		seen[buffer] = true;
	}
	return page_ins;
}

/* The same for an adapter. Every buffer has been written, so that a page-in is a transfer. */
static uint32_t page_ins_of(void **state, const struct frame *frame, uint32_t policy)
{
	D3DKMT_HANDLE a[BUFFERS_MAX];
	struct setting setting;
	struct world w;
	uint32_t page_ins;

	world_start(&w, state, with_policy(&setting, policy, frame->capacity));
	allocate_all(&w, a, frame->buffers);
	for (uint32_t i = 0; i < ROUNDS * frame->count; i++)
		use_now(&w, a[frame->use[i % frame->count]], false);
	page_ins = (uint32_t)(world_statistics(&w).bytes_paged_in / MIB);
	world_stop(&w);
	return page_ins;
}

static void expect_close_to_reference(void **state, const struct frame *frame)
{
	uint32_t reference = page_ins_of_reference(frame);

	assert_true(reference > 0);
	assert_true(page_ins_of(state, frame, VIDMM_EVICTION_PREDICTED) * 10 <= reference * 12);
}

static void q_301_a_frame_loop_that_just_does_not_fit_pages_little(void **state)
{
	/* LRU always evicts what is needed next. */
	assert_int_equal(page_ins_of(state, &textures, VIDMM_EVICTION_LRU),
			 (ROUNDS - 1) * textures.count);
	expect_close_to_reference(state, &textures);
}

static void q_301_short_intervals_of_a_render_target_do_not_hide_the_frame(void **state)
{
	/* The target stays; of nine textures all are paged in every round. */
	assert_int_equal(page_ins_of(state, &target, VIDMM_EVICTION_LRU), (ROUNDS - 1) * 9);
	expect_close_to_reference(state, &target);
}

static void q_301_what_is_idle_longer_than_ever_is_evicted_first(void **state)
{
	struct setting setting;
	D3DKMT_HANDLE a[4];
	struct world w;

	world_start(&w, state, with_policy(&setting, VIDMM_EVICTION_PREDICTED, 3));
	allocate_all(&w, a, 4);
	for (int i = 0; i < 4; i++)
		use_now(&w, a[i % 2], false);
	/* a[1] is used before the space is needed; a[0] has missed its time. */
	for (int i = 0; i < 8; i++)
		use_now(&w, a[2 - i % 2], false);
	use_now(&w, a[3], false);
	assert_int_equal(in_vram(&w, a, 4), 0xE);
	world_stop(&w);
}

static void use_together(struct world *w, const D3DKMT_HANDLE *a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		client_reference(&w->context, a[i], false);
	client_submit(&w->context);
	client_idle(&w->client);
}

/*
 * A submission that needs several victims takes the farthest ones. Some of the next farthest end
 * before the next submission.
 */
static void q_301_victims_of_one_submission_leave_by_their_next_uses(void **state)
{
	struct setting setting;
	D3DKMT_HANDLE a[15];
	struct world w;

	world_start(&w, state, with_policy(&setting, VIDMM_EVICTION_PREDICTED, 8));
	allocate_all(&w, a, 15);
	for (int i = 0; i < 32; i++)
		use_now(&w, a[i % 8], false);
	use_together(&w, &a[8], 3);
	assert_int_equal(in_vram(&w, a, 15), 0x71F);
	assert_int_equal(client_deallocate(&w.device, a[3]), S_OK);
	assert_int_equal(client_deallocate(&w.device, a[4]), S_OK);
	use_together(&w, &a[11], 4);
	a[3] = a[4] = a[0]; /* by now a[0] and a[1] are overdue, and are used longest ago */
	assert_int_equal(in_vram(&w, a, 15), 0x7F04);
	world_stop(&w);
}

/* ---- contiguous placement ---- */

/*
 * Eight allocations of 1 MiB that lie in a row, used in a loop in an order in which neighbors are
 * not used together. Then one of 2 MiB needs space. Returns which of the eight are still resident,
 * and how many bytes were moved inside the segment.
 */
static uint32_t resident_after_large(void **state, uint32_t policy, bool with_ranges,
				     uint64_t *moved)
{
	static const int order[] = {0, 4, 1, 5, 2, 6, 3, 7};
	struct setting setting;
	D3DKMT_HANDLE a[8], large;
	struct world w;
	uint32_t left;

	world_start(&w, state, with_policy(&setting, policy, 8));
	probe.edit_allocation = with_ranges ? flag_swizzled : NULL;
	allocate_all(&w, a, 8);
	probe.edit_allocation = NULL;
	for (uint32_t i = 0; i < 8; i++) {
		client_write(&w.device, a[i], MIB, i << 24);
		use_now(&w, a[i], false);
		if (!with_ranges)
			continue;
		client_lock(&w.device, a[i], ACQUIRE_APERTURE);
		assert_int_equal(client_unlock(&w.device, a[i]), S_OK);
	}
	for (int i = 0; i < 64; i++)
		use_now(&w, a[order[i % 8]], false);
	large = allocate_in(&w.device, 2 * MIB, CPU, VRAM);
	use_now(&w, large, false);
	assert_int_equal(client_residency(&w.device, large), IN_VRAM);
	left = in_vram(&w, a, 8);
	*moved = world_statistics(&w).bytes_moved;
	for (uint32_t i = 0; i < 8; i++)
		client_expect(&w.device, a[i], MIB, i << 24);
	world_stop(&w);
	return left;
}

static void q_304_scattered_victims_make_a_contiguous_range(void **state)
{
	uint64_t moved;

	/* The loop goes on with 0; 7 and 3 are used last. */
	assert_int_equal(resident_after_large(state, VIDMM_EVICTION_PREDICTED, false, &moved),
			 0x77);
	assert_true(moved > 0);
}

/* Ranges that unlocked content still has are released when it moves, as before an eviction. */
static void q_304_swz_13_content_with_idle_swizzling_ranges_moves(void **state)
{
	uint64_t moved;

	assert_int_equal(resident_after_large(state, VIDMM_EVICTION_PREDICTED, true, &moved), 0x77);
	assert_true(moved > 0);
	/* those of the two victims, and of what moved */
	assert_int_equal(probe_count(PROBE_ACQUIRE), 8);
	assert_true(probe_count(PROBE_RELEASE) > 2);
}

static void q_304_other_policies_evict_until_a_range_fits(void **state)
{
	uint64_t moved;

	/* By last use: 0, 4 and then 1, which is beside 0. */
	assert_int_equal(resident_after_large(state, VIDMM_EVICTION_LRU, false, &moved), 0xEC);
	assert_true(moved == 0);
}

/* ---- the other policies ---- */

static void q_302_the_clock_spares_once_what_was_used_since_it_arrived(void **state)
{
	struct setting setting;
	D3DKMT_HANDLE a[6];
	struct world w;

	world_start(&w, state, with_policy(&setting, VIDMM_EVICTION_CLOCK, 4));
	allocate_all(&w, a, 6);
	for (int i = 0; i < 4; i++)
		use_now(&w, a[i], false);
	/* Used again in an order that is not that of arrival. */
	use_now(&w, a[1], false);
	use_now(&w, a[0], false);
	use_now(&w, a[4], false);
	assert_int_equal(in_vram(&w, a, 6), 0x1B); /* a[2]: 0 and 1 were spared */
	use_now(&w, a[5], false);
	assert_int_equal(in_vram(&w, a, 6), 0x33); /* a[3] */
	use_now(&w, a[2], false);
	assert_int_equal(in_vram(&w, a, 6), 0x36); /* a[0]: not spared twice */
	world_stop(&w);
}

static void q_302_the_clock_evicts_though_all_were_used(void **state)
{
	struct setting setting;
	D3DKMT_HANDLE a[4];
	struct world w;

	world_start(&w, state, with_policy(&setting, VIDMM_EVICTION_CLOCK, 3));
	allocate_all(&w, a, 4);
	for (int i = 0; i < 6; i++)
		use_now(&w, a[i % 3], false);
	use_now(&w, a[3], false);
	assert_int_equal(in_vram(&w, a, 4), 0xE);
	world_stop(&w);
}

static void q_302_mru_evicts_the_most_recently_used(void **state)
{
	struct setting setting;
	D3DKMT_HANDLE a[5];
	struct world w;

	world_start(&w, state, with_policy(&setting, VIDMM_EVICTION_MRU, 4));
	allocate_all(&w, a, 5);
	for (int i = 0; i < 4; i++)
		use_now(&w, a[i], false);
	use_now(&w, a[1], false);
	use_now(&w, a[4], false);
	assert_int_equal(in_vram(&w, a, 5), 0x1D);
	world_stop(&w);
}

/* ---- what comes before every policy ---- */

static void q_300_the_lowest_priority_is_evicted_first_with_every_policy(void **state)
{
	for (uint32_t policy = 0; policy < POLICIES; policy++) {
		static const UINT order[] = {
			D3DDDI_ALLOCATIONPRIORITY_NORMAL, D3DDDI_ALLOCATIONPRIORITY_MAXIMUM,
			D3DDDI_ALLOCATIONPRIORITY_MINIMUM, D3DDDI_ALLOCATIONPRIORITY_HIGH};
		struct setting setting;
		D3DKMT_HANDLE a[6];
		struct world w;

		world_start(&w, state, with_policy(&setting, policy, 4));
		for (int i = 0; i < 6; i++) {
			struct softgpu_allocation wish = wish_of(MIB, CPU, VRAM);

			wish.priority = order[i % 4];
			a[i] = allocate_wish(&w.device, &wish);
		}
		for (int round = 0; round < 5; round++)
			for (int i = 0; i < 4; i++)
				use_now(&w, a[i], false);
		use_now(&w, a[5], false); /* of maximum priority */
		assert_int_equal(in_vram(&w, a, 6), 0x2B);
		use_now(&w, a[4], false);
		assert_int_equal(in_vram(&w, a, 6), 0x3A);
		world_stop(&w);
	}
}

static void q_300_offered_memory_is_evicted_first_with_every_policy(void **state)
{
	for (uint32_t policy = 0; policy < POLICIES; policy++) {
		struct setting setting;
		D3DKMT_HANDLE a[5];
		struct world w;

		world_start(&w, state, with_policy(&setting, policy, 4));
		allocate_all(&w, a, 5);
		for (int i = 0; i < 20; i++)
			use_now(&w, a[i % 4], false);
		D3DDDICB_OFFERALLOCATIONS offer = {
			.HandleList = &a[1],
			.NumAllocations = 1,
			.Priority = D3DDDI_OFFER_PRIORITY_HIGH,
		};
		assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
		use_now(&w, a[4], false);
		assert_int_equal(in_vram(&w, a, 5), 0x1D);
		world_stop(&w);
	}
}

/* ---- the setting ---- */

static void q_300_an_unknown_policy_refuses_the_start_with_the_names(void **state)
{
	for (uint32_t policy = POLICIES; policy < 100; policy += 47) {
		struct setting setting;
		struct client_options options = *with_policy(&setting, policy, 4);
		struct client client;

		options.kind = *(const uint32_t *)*state;
		assert_int_equal(client_try_start(&client, &options), STATUS_INVALID_PARAMETER);
		assert_true(client_told(&client, (uint32_t)STATUS_INVALID_PARAMETER,
					"Q-300: registry value VidmmEvictionPolicy is"));
		for (uint32_t i = 0; i < POLICIES; i++)
			assert_non_null(strstr(client.reason, names[i]));
		client_stop(&client);
	}
}

/* ---- a function of the embedder ---- */

struct wishes {
	D3DKMT_HANDLE first; /* to be evicted */
	uint32_t calls;
	struct vidmm_eviction_candidate last_of_first;
};

static uint64_t rank(void *context, const struct vidmm_eviction_candidate *candidate)
{
	struct wishes *wishes = context;

	wishes->calls++;
	assert_true(candidate->interval_count <= VIDMM_EVICTION_INTERVALS);
	assert_int_equal(candidate->size_bytes, MIB);
	if (candidate->allocation != wishes->first)
		return candidate->allocation & 7;
	wishes->last_of_first = *candidate;
	return 1000;
}

static void q_303_a_function_of_the_embedder_chooses_the_victim(void **state)
{
	struct wishes wishes = {0};
	const struct client_options options = {
		.vram_bytes = 4 * MIB, .eviction_rank = rank, .eviction_context = &wishes};
	D3DKMT_HANDLE a[6];
	struct world w;

	world_start(&w, state, &options);
	allocate_all(&w, a, 6);
	for (int i = 0; i < 12; i++)
		use_now(&w, a[i % 4], false);
	assert_int_equal(wishes.calls, 0); /* everything fits */
	wishes.first = a[2];
	use_now(&w, a[4], false);
	assert_int_equal(in_vram(&w, a, 6), 0x1B);
	assert_true(wishes.calls >= 4);
	/* Used in submissions 3, 7 and 11; the eviction is for 13. */
	assert_int_equal(wishes.last_of_first.idle, 2);
	assert_int_equal(wishes.last_of_first.interval_count, 2);
	assert_int_equal(wishes.last_of_first.intervals[0], 4);
	assert_int_equal(wishes.last_of_first.intervals[1], 4);
	wishes.first = a[4];
	use_now(&w, a[5], false);
	assert_int_equal(in_vram(&w, a, 6), 0x2B);
	world_stop(&w);
}

/* Remembers the longest interval of all candidates, and the longest idle time. */
struct longest {
	uint64_t interval, idle;
	uint32_t calls;
};

static uint64_t remember(void *context, const struct vidmm_eviction_candidate *candidate)
{
	struct longest *longest = context;

	for (uint32_t i = 0; i < candidate->interval_count; i++)
		if (candidate->intervals[i] > longest->interval)
			longest->interval = candidate->intervals[i];
	if (candidate->idle > longest->idle)
		longest->idle = candidate->idle;
	longest->calls++;
	return candidate->idle;
}

/*
 * COUNT allocations of which every submission uses all: more uses than the journal has space for.
 */
static void overflow(void **state, uint32_t count, uint32_t submissions)
{
	struct longest longest = {0};
	const uint64_t bytes = MIB / 16;
	const struct client_options options = {.vram_bytes = count * bytes,
					       .eviction_rank = remember,
					       .eviction_context = &longest};
	D3DKMT_HANDLE a[64], more;
	struct world w;

	world_start(&w, state, &options);
	for (uint32_t i = 0; i < count; i++)
		a[i] = allocate_in(&w.device, bytes, CPU, VRAM);
	for (uint32_t s = 0; s < submissions; s++) {
		for (uint32_t i = 0; i < count; i++)
			client_reference(&w.context, a[i], false);
		client_submit(&w.context);
		client_idle(&w.client);
	}
	assert_int_equal(longest.calls, 0);
	/* One that the journal contains ends before the journal is read. */
	assert_int_equal(client_deallocate(&w.device, a[0]), S_OK);
	assert_int_equal(client_deallocate(&w.device, a[1]), S_OK);
	use_now(&w, a[2], false);
	vidmm_adapter_check(w.client.adapter);
	for (uint32_t i = 0; i < 3; i++) {
		more = allocate_in(&w.device, bytes, CPU, VRAM);
		use_now(&w, more, false);
	}
	assert_true(longest.calls >= count - 3);
	/* The uses that the journal had no space for are in no interval, but they are uses. */
	assert_true(longest.interval <= 1);
	assert_true(longest.idle <= 4);
	vidmm_adapter_check(w.client.adapter);
	world_stop(&w);
}

static void q_301_uses_beyond_the_journal_are_in_no_interval(void **state)
{
	overflow(state, 64, 1100); /* 65536 uses */
	overflow(state, 4, 4200);  /* 4096 submissions */
}

static void q_303_a_function_and_a_named_policy_together_are_refused(void **state)
{
	struct setting setting;
	struct client_options options = *with_policy(&setting, VIDMM_EVICTION_LRU, 4);
	struct client client;

	options.kind = *(const uint32_t *)*state;
	options.eviction_rank = rank;
	assert_int_equal(client_try_start(&client, &options), STATUS_INVALID_PARAMETER);
	assert_true(client_told(&client, (uint32_t)STATUS_INVALID_PARAMETER, "Q-303: "));
	client_stop(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(q_301_a_frame_loop_that_just_does_not_fit_pages_little),
		BOTH(q_301_short_intervals_of_a_render_target_do_not_hide_the_frame),
		BOTH(q_301_what_is_idle_longer_than_ever_is_evicted_first),
		BOTH(q_301_victims_of_one_submission_leave_by_their_next_uses),
		BOTH(q_304_scattered_victims_make_a_contiguous_range),
		BOTH(q_304_swz_13_content_with_idle_swizzling_ranges_moves),
		BOTH(q_304_other_policies_evict_until_a_range_fits),
		BOTH(q_302_the_clock_spares_once_what_was_used_since_it_arrived),
		BOTH(q_302_the_clock_evicts_though_all_were_used),
		BOTH(q_302_mru_evicts_the_most_recently_used),
		BOTH(q_300_the_lowest_priority_is_evicted_first_with_every_policy),
		BOTH(q_300_offered_memory_is_evicted_first_with_every_policy),
		BOTH(q_300_an_unknown_policy_refuses_the_start_with_the_names),
		BOTH(q_301_uses_beyond_the_journal_are_in_no_interval),
		BOTH(q_303_a_function_of_the_embedder_chooses_the_victim),
		BOTH(q_303_a_function_and_a_named_policy_together_are_refused),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
