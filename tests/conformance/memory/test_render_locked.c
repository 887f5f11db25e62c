/* SPDX-License-Identifier: MIT */
/*
 * Rendering with locked allocations: they are evicted from video memory under an unchanged
 * pointer, lose no store, and are paged in only after the unlock (LOCK-35 to LOCK-37, LKR,
 * PAG-16).
 */
#include "world.h"

#include <sched.h>

#define LOCKED_RENDER ((HRESULT)0xC0262111)

static const struct client_options small = {.vram_bytes = 4 * MIB};

static uint32_t *lock_in_vram(struct world *w, D3DKMT_HANDLE *a, uint64_t bytes, uint32_t set)
{
	*a = allocate_in(&w->device, bytes, CPU, set);
	client_write(&w->device, *a, bytes, 0x100);
	use_now(w, *a, true);
	assert_int_equal(client_residency(&w->device, *a), IN_VRAM);
	probe_forget();
	return client_lock(&w->device, *a, 0);
}

static void lock_35_lkr_01_lkr_04_a_locked_allocation_is_evicted_under_its_pointer(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	D3DKMT_HANDLE out = allocate_in(&w.device, 64 * KIB, CPU, VRAM);
	uint32_t *words = lock_in_vram(&w, &a, 64 * KIB, 0);

	words[1] = 0xBEF0;
	client_copy(&w.context, a, out, 64 * KIB);
	assert_int_equal(client_try_submit(&w.context), S_OK);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, NULL), 1);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_MAP_APERTURE_SEGMENT, NULL), 1);
	for (uint32_t i = 0; i < 16 * KIB; i++)
		assert_int_equal(words[i], i == 1 ? 0xBEF0 : 0x100 + i);
	words[2] = 0xAF7E4;
	client_copy(&w.context, a, out, 64 * KIB);
	client_submit(&w.context);
	const uint32_t *copy = client_lock(&w.device, out, 0);
	assert_int_equal(copy[1], 0xBEF0);
	assert_int_equal(copy[2], 0xAF7E4);
	assert_ptr_equal(client_lock(&w.device, a, 0), words);
	client_unlock(&w.device, a);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lkr_04_what_the_gpu_writes_shows_through_the_locked_pointer(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	uint32_t *words = lock_in_vram(&w, &a, 64 * KIB, 0);

	client_fill(&w.context, a, 64 * KIB, 0x6F6F6F6F);
	client_submit(&w.context);
	client_idle(&w.client);
	for (uint32_t i = 0; i < 16 * KIB; i++)
		assert_int_equal(words[i], 0x6F6F6F6F);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lkr_08_it_is_not_paged_in_to_memory_before_the_unlock(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	lock_in_vram(&w, &a, 64 * KIB, 0);
	client_lock(&w.device, a, 0);
	for (int i = 0; i < 3; i++) {
		use_now(&w, a, true);
		assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
		if (i == 1)
			assert_int_equal(client_unlock(&w.device, a), S_OK);
	}
	assert_int_equal(probe_paging_count(-1, NULL), 2);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	world_stop(&w);
}

static void lkr_08_a_locked_allocation_not_resident_is_placed_in_an_aperture(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, 64 * KIB, CPU, 0);
	uint32_t *words = client_lock(&w.device, a, 0);

	words[0] = 0x80;
	use_now(&w, a, true); /* it prefers video memory */
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	words[1] = 0x81;
	D3DKMT_HANDLE out = allocate_in(&w.device, 64 * KIB, CPU, 0);
	client_copy(&w.context, a, out, 64 * KIB);
	client_submit(&w.context);
	const uint32_t *copy = client_lock(&w.device, out, 0);
	assert_int_equal(copy[0], 0x80);
	assert_int_equal(copy[1], 0x81);
	world_stop(&w);
}

static void lock_36_lkr_02_lkr_03_without_an_aperture_the_render_queues_nothing(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	uint32_t *words = lock_in_vram(&w, &a, 64 * KIB, VRAM);
	D3DKMT_HANDLE other = allocate_in(&w.device, PAGE, CPU, 0);

	words[0] = 0x36;
	for (int i = 0; i < 2; i++) {
		client_reference(&w.context, other, true);
		client_reference(&w.context, a, false);
		assert_int_equal(client_try_submit(&w.context), i ? S_OK : LOCKED_RENDER);
		assert_int_equal(client_found(&w.client, "LKR-02"), !i);
		if (i)
			break;
		client_forget(&w.client);
		assert_int_equal(probe_count(PROBE_RENDER), 0);
		assert_int_equal(client_residency(&w.device, a), IN_VRAM);
		assert_int_equal(client_residency(&w.device, other), EVICTED);
		client_lock(&w.device, other, DONOT_WAIT); /* not busy */
		assert_int_equal(client_unlock(&w.device, other), S_OK);
		assert_int_equal(words[0], 0x36);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
	}
	world_stop(&w);
}

static void lock_36_one_remaining_nested_lock_still_fails_the_render(void **state)
{
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	lock_in_vram(&w, &a, PAGE, VRAM);
	client_lock(&w.device, a, 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_reference(&w.context, a, false);
	assert_int_equal(client_try_submit(&w.context), LOCKED_RENDER);
	client_forget(&w.client);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false);
	world_stop(&w);
}

static void lock_37_lkr_05_a_locked_aperture_allocation_renders_in_place(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, 64 * KIB, CPU, APERTURE);
	HANDLE kmd = probe_last_created();

	use_now(&w, a, true);
	uint32_t *words = client_lock(&w.device, a, 0);
	probe_forget();
	for (uint32_t i = 0; i < 4; i++) {
		words[i] = i + 1;
		client_reference(&w.context, a, false);
		client_submit(&w.context);
		client_lock(&w.device, a,
			    IGNORE_SYNC | DONOT_WAIT); /* the cached pointer, and another lock */
		assert_int_equal(client_unlock(&w.device, a), S_OK);
	}
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(-1, kmd), 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

/* ---- a thread that stores continuously; the simulator runs one thread at a time ---- */

struct storer {
	volatile uint32_t *words;
	uint32_t count;
	_Atomic bool stop;
	uint32_t *own; /* the last value stored, word by word */
	_Atomic uint64_t rounds;
};

static void store_all_the_while(void *argument)
{
	struct storer *s = argument;

	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		uint32_t round = (uint32_t)atomic_fetch_add(&s->rounds, 1) + 1;

		for (uint32_t i = 0; i < s->count; i += 61) {
			s->words[i] = round * 65537 + i;
			s->own[i] = round * 65537 + i;
		}
	}
}

/* Moves a locked allocation with `move` while a thread stores to it, several times. */
static void store_through_a_move(void **state, uint32_t set,
				 void (*move)(struct world *, D3DKMT_HANDLE))
{
	enum { ROUNDS = 20, BYTES = 1024 * 1024 };
	struct world w;

	world_start(&w, state, &small);
	w.client.racing = true; /* submissions do not wait for the storing thread */
	for (int round = 0; round < ROUNDS; round++) {
		D3DKMT_HANDLE a;
		struct vidmm_thread *thread;
		struct storer s = {.words = lock_in_vram(&w, &a, BYTES, set), .count = BYTES / 4};

		s.own = calloc(s.count, 4);
		assert_non_null(s.own);
		for (uint32_t i = 0; i < s.count; i++)
			s.own[i] = 0x100 + i;
		assert_int_equal(vidmm_thread_create(w.client.host, "storer", store_all_the_while,
						     &s, &thread),
				 0);
		while (atomic_load(&s.rounds) < 2)
			(void)(w.kind == VIDMM_HOST_SIM ? vidmm_settle(w.client.host),
			       0                        : sched_yield());
		move(&w, a);
		atomic_store(&s.stop, true);
		vidmm_thread_join(thread);
		for (uint32_t i = 0; i < s.count; i++)
			assert_int_equal(s.words[i], s.own[i]);
		free(s.own);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
	}
	world_stop(&w);
}

static void render_it(struct world *w, D3DKMT_HANDLE a)
{
	use_now(w, a, false);
	assert_int_equal(client_residency(&w->device, a), IN_APERTURE);
}

static void pag_16_no_store_is_lost_while_a_locked_allocation_moves_for_the_gpu(void **state)
{
	store_through_a_move(state, 0, render_it);
}

static void pag_16_no_store_is_lost_while_a_locked_allocation_is_evicted(void **state)
{
	store_through_a_move(state, VRAM, evict_by_pressure);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(lock_35_lkr_01_lkr_04_a_locked_allocation_is_evicted_under_its_pointer),
		BOTH(lkr_04_what_the_gpu_writes_shows_through_the_locked_pointer),
		BOTH(lkr_08_it_is_not_paged_in_to_memory_before_the_unlock),
		BOTH(lkr_08_a_locked_allocation_not_resident_is_placed_in_an_aperture),
		BOTH(lock_36_lkr_02_lkr_03_without_an_aperture_the_render_queues_nothing),
		BOTH(lock_36_one_remaining_nested_lock_still_fails_the_render),
		BOTH(lock_37_lkr_05_a_locked_aperture_allocation_renders_in_place),
		ON_LINUX(pag_16_no_store_is_lost_while_a_locked_allocation_moves_for_the_gpu),
		ON_LINUX(pag_16_no_store_is_lost_while_a_locked_allocation_is_evicted),
	};

	return cmocka_run_group_tests_name("rendering while locked", tests, NULL, NULL);
}
