/* SPDX-License-Identifier: MIT */
/* Two copies of one content in WDDM 2.x, and which one is newer: cases found by random calls. */
#include "wddm2_world.h"

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

/* The aperture is not cache-coherent. */
static void incoherent(struct scripted_miniport *m)
{
	const DXGK_SEGMENTFLAGS coherent = {.CacheCoherent = 1};

	at_once(m);
	m->settings.segment[1].flags &= ~coherent.Value;
}

static D3DKMT_HANDLE allocate(struct world *w, uint32_t flags, uint32_t set)
{
	const struct scripted_allocation spec = {
		.size_bytes = 64 * KIB, .flags = flags, .read_set = set, .write_set = set};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(&w->device, &spec, &handle), S_OK);
	return handle;
}

/*
 * Without AccessedPhysically it is resident in system memory, in no segment. The aperture's
 * coherence decides what the GPU sees there.
 */
static void alf_15_pag_24_cached_allocations_in_system_memory_are_flushed(void **state)
{
	static world_setup *const setups[] = {incoherent, at_once};

	for (uint32_t i = 0; i < 2; i++) {
		struct world w;

		world_start(&w, state, setups[i]);
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
		D3DKMT_HANDLE a = allocate(&w, WORLD_CPU_VISIBLE | CACHED, WORLD_APERTURE);

		wddm2_make(&w, &w.device, &queue, &a, 1);
		client_write(&w.device, a, 64 * KIB, 5);
		uint64_t flushes = client_events(&w.client, VIDMM_EVENT_FLUSH);
		wddm2_make(&w, &w.device, &queue, &a, 1); /* so that the GPU may use it */
		assert_int_equal(client_events(&w.client, VIDMM_EVENT_FLUSH) - flushes, i == 0);
		client_expect(&w.device, a, 64 * KIB, 5);
		wddm2_stop(&w);
	}
}

/*
 * NotWrittenTo was true when it was passed. Then the CPU wrote, in the segment where the
 * allocation had stayed.
 */
static void pri_10_cpu_writes_after_a_notwrittento_evict_are_copied_out(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w, PHYSICAL, WORLD_MEMORY);

	client_write(&w.device, a, 64 * KIB, 1);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(wddm2_evict(&w.device, a, EVICT_ONLY_IF_NECESSARY | NOT_WRITTEN_TO), S_OK);
	assert_true(wddm2_is_in_memory(&w.device, a));
	client_write(&w.device, a, 64 * KIB, 2);
	D3DKMT_HANDLE all = wddm2_allocate(&w.device, 16 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &all, 1);
	assert_false(wddm2_is_in_memory(&w.device, a));
	client_expect(&w.device, a, 64 * KIB, 2);
	wddm2_stop(&w);
}

/* The same with a write by the GPU, when it is on the list again. */
static void pri_10_notwrittento_does_not_apply_after_a_new_makeresident(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w, PHYSICAL, WORLD_MEMORY);

	client_write(&w.device, a, 64 * KIB, 1);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(wddm2_evict(&w.device, a, EVICT_ONLY_IF_NECESSARY | NOT_WRITTEN_TO), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 8, 0x88);
	world_run(&w);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	while (wddm2_is_in_memory(&w.device, a))
		vidmm_settle(w.client.host);
	assert_int_equal(world_word(&w, a, 8), 0x88);
	wddm2_stop(&w);
}

/*
 * PAG-14: the CPU has the system copy. The GPU's copy was made during the lock, and is updated at
 * the unlock.
 */
static void lkr_09_pag_14_writes_after_gpu_use_under_a_lock_are_not_lost(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w, PHYSICAL | PERMANENT_SYSMEM, WORLD_MEMORY);

	wddm2_make(&w, &w.device, &queue, &a, 1);
	uint32_t *words = client_lock(&w.device, a, 0);
	words[1] = 1;
	world_submit_use(&w.context, a); /* the copies are equal now */
	world_run(&w);
	words[2] = 2;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_submit_write(&w.context, a, 12,
			   3); /* the GPU's copy is the newer one, and is copied back as a whole */
	world_run(&w);
	words = client_lock(&w.device, a, 0);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(words[i], i);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(alf_15_pag_24_cached_allocations_in_system_memory_are_flushed),
		ON_BOTH(pri_10_cpu_writes_after_a_notwrittento_evict_are_copied_out),
		ON_BOTH(pri_10_notwrittento_does_not_apply_after_a_new_makeresident),
		ON_BOTH(lkr_09_pag_14_writes_after_gpu_use_under_a_lock_are_not_lost),
	};

	return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
