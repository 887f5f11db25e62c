/* SPDX-License-Identifier: MIT */
/*
 * PermanentSysMem (PAG-13 to PAG-15, PAG-31): the system copy is retained while the GPU has its
 * own. And Protected (ALF-08), whose system copy has no CPU address.
 */
#define _GNU_SOURCE /* readlink */
#include "world.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>

#define TRANSFER  DXGK_OPERATION_TRANSFER
#define DROP      DXGK_OPERATION_DISCARD_CONTENT
#define FILL      DXGK_OPERATION_FILL
#define PERMANENT (CPU | SOFTGPU_ALLOCATION_PERMANENT_SYSTEM)
#define PAGES     16u

static const struct client_options small = {.vram_bytes = 4 * MIB, .aperture_bytes = 8 * MIB};

/*
 * A PermanentSysMem allocation with known content, resident in video memory, clean; *kmd is the
 * miniport's handle.
 */
static D3DKMT_HANDLE make_resident(struct world *w, uint32_t segments, HANDLE *kmd)
{
	D3DKMT_HANDLE a = allocate_in(&w->device, PAGES * PAGE, PERMANENT, segments);

	*kmd = probe_last_created();
	client_write(&w->device, a, PAGES * PAGE, 0x100);
	use_now(w, a, false);
	assert_int_equal(client_residency(&w->device, a), IN_VRAM);
	probe_forget();
	return a;
}

static void fill_by_gpu(struct world *w, D3DKMT_HANDLE a, uint32_t pattern)
{
	client_fill(&w->context, a, PAGES * PAGE, pattern);
	client_submit(&w->context);
	client_idle(&w->client);
}

static void expect_words(const void *bytes, uint32_t count, uint32_t pattern)
{
	const uint32_t *word = bytes;

	for (uint32_t i = 0; i < count; i++)
		if (word[i] != pattern)
			fail_msg("word %u is 0x%x, not 0x%x", i, word[i], pattern);
}

/* The GPU's content: copied into another allocation and read there. */
static void expect_by_gpu(struct world *w, D3DKMT_HANDLE a, uint32_t page, uint32_t first_word)
{
	D3DKMT_HANDLE copy = allocate_in(&w->device, PAGES * PAGE, CPU, APERTURE);

	client_copy(&w->context, a, copy, PAGES * PAGE);
	client_submit(&w->context);
	client_idle(&w->client);
	const uint32_t *word = client_lock(&w->device, copy, READ_ONLY);
	assert_int_equal(word[page * PAGE / 4], first_word);
	assert_int_equal(client_unlock(&w->device, copy), S_OK);
	assert_int_equal(client_deallocate(&w->device, copy), S_OK);
}

static void pag_13_clean_content_is_dropped(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	assert_int_equal(probe_paging_count(DROP, kmd), 1);
	const DXGKARG_BUILDPAGINGBUFFER *drop = &probe_find_paging(DROP, kmd, 0)->paging;
	assert_int_equal(drop->DiscardContent.SegmentId, 1);
	client_expect(&w.device, a, PAGES * PAGE, 0x100);
	use_now(&w, a, false); /* and it is paged in */
	expect_by_gpu(&w, a, 3, 0x100 + 3 * PAGE / 4);
	world_stop(&w);
}

static void pag_13_pag_31_gpu_writes_are_copied_back(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	fill_by_gpu(&w, a, 0x7A7A7A7A);
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	assert_int_equal(probe_paging_count(DROP, kmd), 0);
	const DXGKARG_BUILDPAGINGBUFFER *out = &probe_find_paging(TRANSFER, kmd, 0)->paging;
	assert_int_equal(out->Transfer.Source.SegmentId, 1);
	assert_int_equal(out->Transfer.Destination.SegmentId, 0);
	expect_words(client_lock(&w.device, a, READ_ONLY), PAGES * PAGE / 4, 0x7A7A7A7A);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false); /* paged in again: it is clean */
	probe_forget();
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	assert_int_equal(probe_paging_count(DROP, kmd), 1);
	world_stop(&w);
}

/* A list entry without a patch location gives the GPU no address to write to. */
static void pag_31_a_write_entry_without_a_patch_location_is_not_dirty(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGES * PAGE, PERMANENT, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, PAGES * PAGE, 0x100);
	client_use(&w.context, a, true);
	client_stall(&w.context, 1);
	client_submit(&w.context);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	use_now(&w, a, false);
	probe_forget();
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	assert_int_equal(probe_paging_count(DROP, kmd), 1);
	world_stop(&w);
}

static void pag_13_the_system_copy_is_retained_while_resident(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	uint64_t before = world_statistics(&w).system_bytes;
	D3DKMT_HANDLE a = allocate_in(&w.device, MIB, PERMANENT, VRAM);
	HANDLE kmd = probe_last_created();

	/* Nothing was written: the first content is a fill (PAG-05), and both copies are zero. */
	use_now(&w, a, false);
	assert_int_equal(probe_paging_count(FILL, kmd), 1);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	assert_int_equal(client_deallocate(&w.device, client_allocate(&w.device, PAGE, 0)), S_OK);
	assert_true(world_statistics(&w).system_bytes == before + MIB);
	evict_by_pressure(&w, a);
	expect_words(client_lock(&w.device, a, READ_ONLY), MIB / 4, 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_true(world_statistics(&w).system_bytes == before);
	world_stop(&w);
}

static void pag_14_a_lock_always_shows_the_system_copy(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);
	const void *resident = client_lock(&w.device, a, READ_ONLY);

	assert_int_equal(client_unlock(&w.device, a), S_OK);
	evict_by_pressure(&w, a);
	assert_ptr_equal(client_lock(&w.device, a, READ_ONLY), resident);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void pag_14_an_unlock_updates_the_gpus_copy(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);
	uint32_t *word = client_lock(&w.device, a, 0);

	word[5 * PAGE / 4] = 0xCAFE;
	assert_int_equal(probe_paging_count(-1, kmd), 0); /* not before the unlock */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(-1, kmd), 1);
	const DXGKARG_BUILDPAGINGBUFFER *in = &probe_find_paging(TRANSFER, kmd, 0)->paging;
	assert_int_equal(in->Transfer.Source.SegmentId, 0);
	assert_int_equal(in->Transfer.Destination.SegmentId, 1);
	assert_int_equal(in->Transfer.TransferOffset, 0);
	assert_int_equal(in->Transfer.TransferSize, PAGES * PAGE);
	assert_int_equal(in->Transfer.Flags.Value, 0x18);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	expect_by_gpu(&w, a, 5, 0xCAFE);
	probe_forget();
	evict_by_pressure(&w, a); /* CPU writes do not count as GPU writes */
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	world_stop(&w);
}

static void lock_22_only_the_listed_pages_are_copied(void **state)
{
	static const UINT one[] = {3}, several[] = {9, 2, 3, 4};
	struct world w;
	HANDLE kmd;
	void *data;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	assert_int_equal(lock_pages(&w.device, &a, 0, one, 1, &data), S_OK);
	*(uint32_t *)data = 0x3333;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	const DXGKARG_BUILDPAGINGBUFFER *in = &probe_find_paging(TRANSFER, kmd, 0)->paging;
	assert_int_equal(in->Transfer.TransferOffset, 3 * PAGE);
	assert_int_equal(in->Transfer.MdlOffset, 3);
	assert_int_equal(in->Transfer.TransferSize, PAGE);
	expect_by_gpu(&w, a, 3, 0x3333);

	probe_forget(); /* adjacent pages are one transfer */
	assert_int_equal(lock_pages(&w.device, &a, 0, several, 4, &data), S_OK);
	memset((char *)data - 9 * PAGE + 2 * PAGE, 0x22, 3 * PAGE);
	memset(data, 0x99, PAGE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	in = &probe_find_paging(TRANSFER, kmd, 0)->paging;
	assert_int_equal(in->Transfer.TransferOffset, 2 * PAGE);
	assert_int_equal(in->Transfer.TransferSize, 3 * PAGE);
	in = &probe_find_paging(TRANSFER, kmd, 1)->paging;
	assert_int_equal(in->Transfer.TransferOffset, 9 * PAGE);
	assert_int_equal(in->Transfer.TransferSize, PAGE);
	expect_by_gpu(&w, a, 4, 0x22222222);
	expect_by_gpu(&w, a, 9, 0x99999999);
	expect_by_gpu(&w, a, 5, 0x100 + 5 * PAGE / 4);
	world_stop(&w);
}

static void lock_06_a_readonly_lock_copies_nothing(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	client_expect(&w.device, a, PAGES * PAGE, 0x100);
	client_lock(&w.device, a, READ_ONLY);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	uint32_t after_reading = probe_paging_count(-1, kmd);
	client_lock(&w.device, a, WRITE_ONLY);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), after_reading + 1);
	world_stop(&w);
}

static void pag_14_nested_locks_are_copied_once_at_the_end(void **state)
{
	static const UINT page_1[] = {1}, page_7[] = {7};
	struct world w;
	HANDLE kmd;
	void *data;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	assert_int_equal(lock_pages(&w.device, &a, 0, page_1, 1, &data), S_OK);
	*(uint32_t *)data = 0x1111;
	assert_int_equal(lock_pages(&w.device, &a, 0, page_7, 1, &data), S_OK);
	*(uint32_t *)data = 0x7777;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(-1, kmd), 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	expect_by_gpu(&w, a, 1, 0x1111);
	expect_by_gpu(&w, a, 7, 0x7777);
	world_stop(&w);
}

static void pag_15_a_lock_copies_gpu_writes_to_the_system_copy(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	fill_by_gpu(&w, a, 0x15151515);
	expect_words(client_lock(&w.device, a, READ_ONLY), PAGES * PAGE / 4, 0x15151515);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	expect_words(client_lock(&w.device, a, READ_ONLY), PAGES * PAGE / 4, 0x15151515);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1); /* both copies are equal now */
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(DROP, kmd), 1);
	world_stop(&w);
}

static void pag_15_donotwait_copies_gpu_writes_back_once_idle(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	fill_by_gpu(&w, a, 0x16161616);
	expect_words(client_lock(&w.device, a, DONOT_WAIT), PAGES * PAGE / 4, 0x16161616);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	gate_close(&w);
	client_reference(&w.context, a, true);
	client_submit(&w.context);
	expect_lock_declined(&w, a, 0);
	gate_open(&w);
	client_idle(&w.client);
	world_stop(&w);
}

/* While the GPU writes there, a no-overwrite lock has no current content to return. */
static void pag_15_ignoresync_waits_for_a_writer_in_a_memory_segment(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM | APERTURE, &kmd);

	gate_close(&w);
	client_reference(&w.context, a, false);
	client_submit(&w.context);
	client_lock(&w.device, a, IGNORE_SYNC | DONOT_WAIT); /* pending readers have no effect */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	gate_open(&w);
	client_idle(&w.client);
	gate_close(&w);
	client_reference(&w.context, a, true);
	client_submit(&w.context);
	expect_lock_declined(&w, a, IGNORE_SYNC);
	gate_open(&w);
	client_idle(&w.client);
	world_stop(&w);
}

/*
 * The GPU still reads when the CPU unlocks: the copy waits for it, and later work waits for the
 * copy.
 */
static void pag_14_lock_15_the_segment_update_waits_for_gpu_readers(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM | APERTURE, &kmd),
		      old = allocate_in(&w.device, PAGES * PAGE, CPU, APERTURE),
		      new = allocate_in(&w.device, PAGES * PAGE, CPU, APERTURE);

	gate_close(&w);
	client_copy(&w.context, a, old, PAGES * PAGE);
	client_submit(&w.context);
	uint32_t *word = client_lock(&w.device, a, IGNORE_READ_SYNC);
	for (uint32_t i = 0; i < PAGES * PAGE / 4; i++)
		word[i] = 0xABCD0000;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	client_copy(&w.context, a, new, PAGES * PAGE);
	client_submit(&w.context);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	client_expect(&w.device, old, PAGES * PAGE, 0x100);
	expect_words(client_lock(&w.device, new, READ_ONLY), PAGES * PAGE / 4, 0xABCD0000);
	assert_int_equal(client_unlock(&w.device, new), S_OK);
	world_stop(&w);
}

/*
 * The copy node is blocked, and with it the update. For a lock the allocation is idle all the
 * same.
 */
static void pag_14_lock_08_an_update_in_progress_is_not_busy_for_a_lock(void **state)
{
	struct client_context second;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	client_context(&w.device, 1, &second);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd),
		      copy = allocate_in(&w.device, PAGES * PAGE, CPU, APERTURE);
	struct softgpu_sync wait = {
		.command = {SOFTGPU_WAIT, 0, sizeof(wait)},
		.operand = {.allocation = client_use(&second, w.gate, false)},
		.value = ++w.gate_value,
	};

	use_now(&w, copy, false);
	client_command(&second, &wait, sizeof(wait));
	client_submit(&second);
	for (uint32_t i = 0; i < 100; i++)
		vidmm_settle(w.client.host);
	*(uint32_t *)client_lock(&w.device, a, 0) = 0x8888;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_copy(&w.context, a, copy, PAGES * PAGE); /* this waits for the update */
	uint32_t *word = client_lock(&w.device, a, DONOT_WAIT);
	assert_int_equal(word[0], 0x8888);
	word[1] = 0x8889;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_submit(&w.context);
	for (uint32_t i = 0; i < 100; i++)
		vidmm_settle(w.client.host);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	word = client_lock(&w.device, copy, READ_ONLY);
	assert_int_equal(word[0], 0x8888);
	assert_int_equal(word[1], 0x8889);
	assert_int_equal(client_unlock(&w.device, copy), S_OK);
	client_context_end(&second);
	world_stop(&w);
}

/*
 * LOCK-35: it is evicted from the memory segment without a copy; the GPU uses the locked pages
 * now, too.
 */
static void pag_13_lock_35_rendering_while_locked_moves_without_a_copy(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM | APERTURE, &kmd);
	uint32_t *word = client_lock(&w.device, a, 0);

	word[2 * PAGE / 4] = 0x2222;
	expect_by_gpu(&w, a, 2, 0x2222);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	assert_int_equal(probe_paging_count(DROP, kmd), 1);
	word[2 * PAGE / 4] = 0x2223;
	expect_by_gpu(&w, a, 2, 0x2223);
	fill_by_gpu(&w, a, 0x35353535);
	expect_words(word, PAGES * PAGE / 4, 0x35353535);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	world_stop(&w);
}

static void pag_13_pag_16_a_locked_clean_segment_copy_is_dropped(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM | APERTURE, &kmd);
	uint32_t *word = client_lock(&w.device, a, 0);

	word[0] = 0x1600;
	/* a list entry of a locked allocation does not make it dirty, either */
	client_use(&w.context, a, true);
	client_stall(&w.context, 1);
	client_submit(&w.context);
	client_idle(&w.client);
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	assert_int_equal(word[0], 0x1600);
	word[1] = 0x1601;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
	expect_by_gpu(&w, a, 0, 0x1600);
	world_stop(&w);
}

static void lock_49_a_retained_copy_is_locked_without_eviction(void **state)
{
	static const struct vidmm_registry_value hidden = {"VramCpuVisible", 0};
	const struct client_options options = {.vram_bytes = 4 * MIB,
					       .aperture_bytes = 8 * MIB,
					       .registry = &hidden,
					       .registry_count = 1};
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);
	uint32_t *word = client_lock(&w.device, a, DONOT_EVICT);

	word[0] = 0x4949;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_by_gpu(&w, a, 0, 0x4949);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	world_stop(&w);
}

static HRESULT offer(struct world *w, D3DKMT_HANDLE a)
{
	D3DDDICB_OFFERALLOCATIONS args = {
		.NumAllocations = 1, .HandleList = &a, .Priority = D3DDDI_OFFER_PRIORITY_LOW};

	return w->device.cb->pfnOfferAllocationsCb(w->device.handle, &args);
}

static BOOL reclaim(struct world *w, D3DKMT_HANDLE a)
{
	BOOL discarded = -1;
	D3DDDICB_RECLAIMALLOCATIONS args = {
		.NumAllocations = 1, .HandleList = &a, .pDiscarded = &discarded};

	assert_int_equal(w->device.cb->pfnReclaimAllocationsCb(w->device.handle, &args), S_OK);
	return discarded;
}

static void ofr_04_an_offer_of_clean_content_loses_nothing(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	assert_int_equal(offer(&w, a), S_OK);
	evict_by_pressure(&w, a);
	assert_false(reclaim(&w, a));
	client_expect(&w.device, a, PAGES * PAGE, 0x100);
	use_now(&w, a, true);
	assert_int_equal(offer(&w, a), S_OK);
	probe_forget();
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 0); /* OFR-09 */
	assert_true(reclaim(&w, a));
	client_write(&w.device, a, PAGES * PAGE, 0x400);
	use_now(&w, a, false);
	expect_by_gpu(&w, a, 1, 0x400 + PAGE / 4);
	world_stop(&w);
}

static void ren_01_each_instance_has_a_separate_system_copy(void **state)
{
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd), first = a;
	void *before = client_lock(&w.device, a, 0), *data;

	assert_int_equal(client_unlock(&w.device, a), S_OK);
	for (uint32_t round = 1; round <= 6; round++) {
		fill_by_gpu(&w, a, 0xD0D0D0D0 + round); /* GPU writes that are never read */
		probe_forget();
		assert_int_equal(client_try_lock(&w.device, &a, DISCARD, &data), S_OK);
		assert_int_equal(probe_paging_count(TRANSFER, kmd), 0);
		for (uint32_t i = 0; i < PAGES * PAGE / 4; i++)
			((uint32_t *)data)[i] = round;
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		expect_by_gpu(&w, a, 6, round);
		expect_words(client_lock(&w.device, a, READ_ONLY), PAGES * PAGE / 4, round);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		if (round == 1) {
			assert_int_not_equal(a, first);
			assert_ptr_not_equal(data, before);
		}
	}
	world_stop(&w);
}

/* LOCK-30: the device that holds the lock is destroyed; other devices use what it wrote. */
static void pag_14_lock_30_a_lock_dropped_with_its_device_is_an_unlock(void **state)
{
	static int runtime;
	struct softgpu_allocation wish = wish_of(PAGES * PAGE, PERMANENT, VRAM);
	struct client_device creator;
	D3DKMT_HANDLE a, opened, resource, km_resource;
	uint32_t global, count = 1;
	struct world w;

	world_start(&w, state, &small);
	creator = w.device;
	assert_int_equal(vidmm_device_create(w.device.process, w.client.adapter, &creator.device),
			 0);
	creator.handle = vidmm_device_handle(creator.device);
	assert_int_equal(vidmm_resource_set_shared(creator.device, &runtime), 0);
	assert_int_equal(client_try_allocate(&creator, &wish, &runtime, &a, &resource), S_OK);
	assert_int_equal(vidmm_resource_share(creator.device, resource, &global), 0);
	assert_int_equal(
		vidmm_resource_open(w.device.device, global, &km_resource, &opened, &count), 0);
	use_now(&w, opened, false);
	*(uint32_t *)client_lock(&creator, a, 0) = 0x3030;
	vidmm_device_destroy(creator.device);
	expect_by_gpu(&w, opened, 0, 0x3030);
	assert_int_equal(client_residency(&w.device, opened), IN_VRAM);
	world_stop(&w);
}

/* REN-15 leaves the rest of the content undefined; the two copies are equal all the same. */
static void ren_15_pag_14_a_discarded_copy_is_replaced_as_a_whole(void **state)
{
	static const UINT page_1[] = {1};
	struct world w;
	HANDLE kmd;
	void *data;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = make_resident(&w, VRAM, &kmd);

	fill_by_gpu(&w, a, 0x6B6B6B6B);
	assert_int_equal(
		lock_pages(&w.device, &a, DISCARD | NO_EXISTING_REFERENCE, page_1, 1, &data), S_OK);
	*(uint32_t *)data = 0x1111;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	const uint32_t *word = client_lock(&w.device, a, READ_ONLY);
	uint32_t elsewhere = word[5 * PAGE / 4];
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_by_gpu(&w, a, 1, 0x1111);
	expect_by_gpu(&w, a, 5, elsewhere);
	world_stop(&w);
}

static void alf_08_a_lock_of_protected_memory_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU | SOFTGPU_ALLOCATION_PROTECTED, 0),
		      copy = allocate_in(&w.device, PAGE, CPU, APERTURE);

	expect_lock_refused(&w, a, 0, E_INVALIDARG, "ALF-08");
	expect_lock_refused(&w, a, DISCARD, E_INVALIDARG, "ALF-08");
	client_fill(&w.context, a, PAGE, 0x08080808); /* the GPU uses it like any other */
	client_submit(&w.context);
	client_idle(&w.client);
	evict_by_pressure(&w, a);
	expect_lock_refused(&w, a, READ_ONLY, E_INVALIDARG, "ALF-08");
	client_copy(&w.context, a, copy, PAGE);
	client_submit(&w.context);
	client_idle(&w.client);
	expect_words(client_lock(&w.device, copy, READ_ONLY), PAGE / 4, 0x08080808);
	assert_int_equal(client_unlock(&w.device, copy), S_OK);
	world_stop(&w);
}

/* ---- system memory ---- */

/*
 * Returns the bytes of the pages that the memory objects have. A simulated client has descriptors
 * of the same objects in this process.
 */
static uint64_t bytes_of_objects(void)
{
	char path[300], target[64];
	struct dirent *entry;
	uint64_t bytes = 0;
	ino_t seen[64];
	uint32_t count = 0;
	DIR *folder = opendir("/proc/self/fd");

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		struct stat about;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		if (strncmp(target, "/memfd:system memory", 20) || stat(path, &about))
			continue;
		uint32_t i = 0;
		while (i < count && seen[i] != about.st_ino)
			i++;
		if (i < count)
			continue;
		assert_true(count < 64);
		seen[count++] = about.st_ino;
		bytes += (uint64_t)about.st_blocks * 512;
	}
	closedir(folder);
	return bytes;
}

#define ARENA_KEPT (64 * MIB) /* the first arena is not closed */

/* New memory is zero, also where other allocations were before. */
static void fill_and_free(struct world *w, uint64_t before)
{
	D3DKMT_HANDLE a[3];

	for (uint32_t i = 0; i < 3; i++) {
		a[i] = allocate_in(&w->device, 48 * MIB, CPU, APERTURE);
		const uint32_t *words = client_lock(&w->device, a[i], 0);
		expect_words(words, PAGE / 4, 0);
		assert_int_equal(client_unlock(&w->device, a[i]), S_OK);
		client_write(&w->device, a[i], PAGES * PAGE, i << 16);
	}
	assert_true(bytes_of_objects() - before >= 3 * 48 * MIB);
	for (uint32_t i = 0; i < 3; i++) {
		client_expect(&w->device, a[i], PAGES * PAGE, i << 16);
		assert_int_equal(client_deallocate(&w->device, a[i]), S_OK);
	}
	client_idle(&w->client);
	assert_true(bytes_of_objects() - before <= ARENA_KEPT);
}

static void unused_system_memory_is_returned_to_the_system(void **state)
{
	static const struct client_options large = {.vram_bytes = 4 * MIB,
						    .aperture_bytes = 256 * MIB};
	struct world w;

	world_start(&w, state, &large);
	const uint64_t before = bytes_of_objects();
	for (uint32_t i = 0; i < 3; i++)
		fill_and_free(&w, before);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(pag_13_clean_content_is_dropped),
		BOTH(pag_13_pag_31_gpu_writes_are_copied_back),
		BOTH(pag_31_a_write_entry_without_a_patch_location_is_not_dirty),
		BOTH(pag_13_the_system_copy_is_retained_while_resident),
		BOTH(pag_14_a_lock_always_shows_the_system_copy),
		BOTH(pag_14_an_unlock_updates_the_gpus_copy),
		BOTH(lock_22_only_the_listed_pages_are_copied),
		BOTH(lock_06_a_readonly_lock_copies_nothing),
		BOTH(pag_14_nested_locks_are_copied_once_at_the_end),
		BOTH(pag_15_a_lock_copies_gpu_writes_to_the_system_copy),
		BOTH(pag_15_donotwait_copies_gpu_writes_back_once_idle),
		BOTH(pag_15_ignoresync_waits_for_a_writer_in_a_memory_segment),
		BOTH(pag_14_lock_15_the_segment_update_waits_for_gpu_readers),
		BOTH(pag_14_lock_08_an_update_in_progress_is_not_busy_for_a_lock),
		BOTH(pag_13_lock_35_rendering_while_locked_moves_without_a_copy),
		BOTH(pag_13_pag_16_a_locked_clean_segment_copy_is_dropped),
		BOTH(lock_49_a_retained_copy_is_locked_without_eviction),
		BOTH(ofr_04_an_offer_of_clean_content_loses_nothing),
		BOTH(ren_01_each_instance_has_a_separate_system_copy),
		BOTH(pag_14_lock_30_a_lock_dropped_with_its_device_is_an_unlock),
		BOTH(ren_15_pag_14_a_discarded_copy_is_replaced_as_a_whole),
		BOTH(alf_08_a_lock_of_protected_memory_is_refused),
		BOTH(unused_system_memory_is_returned_to_the_system),
	};

	return cmocka_run_group_tests_name("sysmem", tests, NULL, NULL);
}
