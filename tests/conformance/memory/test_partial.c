/* SPDX-License-Identifier: MIT */
/*
 * LOCK-21: for a lock without a swizzling range, the page list says which pages are unswizzled and
 * copied back. The other pages keep their placement and content.
 */
#include "base/base.h"
#include "world.h"

enum {
	STRIDE = 512,
	BYTES = 64 * 1024,
	PAGES = BYTES / 4096,
	WORDS_OF_PAGE = 4096 / 4,
	ENTIRE = ACQUIRE_APERTURE | LOCK_ENTIRE,
	TO_SYSTEM = 0x18 | 0x2, /* TransferStart, TransferEnd, Unswizzle */
	TO_SEGMENT = 0x18 | 0x1
};

#define TRANSFER DXGK_OPERATION_TRANSFER

static const struct vidmm_registry_value no_ranges = {"SwizzlingRanges", 0};
static const struct client_options small = {.vram_bytes = 4 * MIB,
					    .aperture_bytes = 16 * MIB,
					    .registry = &no_ranges,
					    .registry_count = 1};

static D3DKMT_HANDLE tiled(struct client_device *device, uint32_t more_flags, uint32_t segment_set)
{
	struct softgpu_allocation wish =
		wish_of(BYTES, CPU | SOFTGPU_ALLOCATION_TILED_Y | more_flags, segment_set);

	wish.stride_bytes = STRIDE;
	return allocate_wish(device, &wish);
}

static void draw(struct world *w, D3DKMT_HANDLE a, uint32_t pattern)
{
	uint32_t *words = client_lock(&w->device, a, ENTIRE);

	for (uint32_t i = 0; i < BYTES / 4; i++)
		words[i] = pattern + i;
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

/* The expected linear image: filled with a pattern, then some pages overwritten. */
struct picture {
	uint32_t pattern;
	uint32_t painted[PAGES]; /* 0: the pattern */
};

static void expect_page(const struct picture *p, uint32_t page, const uint32_t *words)
{
	for (uint32_t i = 0; i < WORDS_OF_PAGE; i++) {
		uint32_t drawn = p->pattern + page * WORDS_OF_PAGE + i;
		uint32_t expected = p->painted[page] ? p->painted[page] : drawn;

		if (words[i] != expected)
			fail_msg("page %u, word %u is 0x%x, not 0x%x", page, i, words[i], expected);
	}
}

static void paint(struct picture *p, uint32_t page, uint32_t *words, uint32_t color)
{
	for (uint32_t i = 0; i < WORDS_OF_PAGE; i++)
		words[i] = color;
	p->painted[page] = color;
}

static void expect_picture(struct world *w, D3DKMT_HANDLE a, const struct picture *p)
{
	const uint32_t *words = client_lock(&w->device, a, ENTIRE);

	for (uint32_t page = 0; page < PAGES; page++)
		expect_page(p, page, words + page * WORDS_OF_PAGE);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

/* Filled, and resident in video memory; the log is empty. */
static D3DKMT_HANDLE resident(struct world *w, struct picture *p, uint32_t segment_set, HANDLE *kmd)
{
	D3DKMT_HANDLE a = tiled(&w->device, 0, segment_set);

	*kmd = probe_last_created();
	*p = (struct picture){.pattern = 0x10000};
	draw(w, a, p->pattern);
	use_now(w, a, true);
	assert_int_equal(client_residency(&w->device, a), IN_VRAM);
	probe_forget();
	return a;
}

/* The pointer is that of the first listed page. */
static uint32_t *lock_list(struct world *w, D3DKMT_HANDLE a, uint32_t flags, const UINT *pages,
			   UINT count)
{
	D3DKMT_HANDLE handle = a;
	void *data;

	assert_int_equal(lock_pages(&w->device, &handle, flags, pages, count, &data), S_OK);
	assert_int_equal(handle, a);
	return data;
}

static void expect_transfer(HANDLE kmd, uint32_t index, uint32_t flags, uint32_t page,
			    uint32_t count)
{
	const struct probe_call *call = probe_find_paging(TRANSFER, kmd, index);

	assert_non_null(call);
	assert_int_equal(call->paging.Transfer.Flags.Value, flags);
	assert_int_equal(call->paging.Transfer.TransferOffset, page * PAGE);
	assert_int_equal(call->paging.Transfer.MdlOffset, page);
	assert_int_equal(call->paging.Transfer.TransferSize, count * PAGE);
	assert_int_equal(call->paging.Transfer.Source.SegmentId, flags == TO_SYSTEM ? IN_VRAM : 0);
	assert_int_equal(call->paging.Transfer.Destination.SegmentId,
			 flags == TO_SYSTEM ? 0 : IN_VRAM);
}

static void lock_21_only_the_listed_pages_are_copied_out_and_back(void **state)
{
	static const UINT list[] = {9, 2, 3};
	struct picture p;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, &p, VRAM, &kmd);
	uint64_t evictions = world_statistics(&w).evictions;
	uint32_t *nine = lock_list(&w, a, ACQUIRE_APERTURE, list, 3);

	/* Adjacent pages are one transfer. */
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	expect_transfer(kmd, 0, TO_SYSTEM, 2, 2);
	expect_transfer(kmd, 1, TO_SYSTEM, 9, 1);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	expect_page(&p, 9, nine);
	expect_page(&p, 2, nine - 7 * WORDS_OF_PAGE);
	expect_page(&p, 3, nine - 6 * WORDS_OF_PAGE);
	paint(&p, 9, nine, 0x99999999);
	paint(&p, 3, nine - 6 * WORDS_OF_PAGE, 0x33333333);

	probe_forget();
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	expect_transfer(kmd, 0, TO_SEGMENT, 2, 2);
	expect_transfer(kmd, 1, TO_SEGMENT, 9, 1);
	/* Nothing else is copied before the GPU's next use. */
	probe_forget();
	use_now(&w, a, true);
	assert_int_equal(probe_paging_count(-1, kmd), 0);
	assert_int_equal(world_statistics(&w).evictions, evictions);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

static void lock_21_lock_06_pages_locked_readonly_are_not_copied_back(void **state)
{
	static const UINT list[] = {5};
	struct picture p;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, &p, VRAM, &kmd);

	expect_page(&p, 5, lock_list(&w, a, ACQUIRE_APERTURE | READ_ONLY, list, 1));
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	expect_transfer(kmd, 0, TO_SYSTEM, 5, 1);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

/* LOCK-08: the copy back does not count as GPU use, but the next lock waits until it is done. */
static void lock_21_lock_08_a_copy_back_in_progress_is_not_busy_for_a_lock(void **state)
{
	static const UINT list[] = {5};
	struct picture p;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, &p, VRAM, &kmd);

	for (uint32_t round = 1; round < 8; round++) {
		uint32_t *five = lock_list(&w, a, ACQUIRE_APERTURE | DONOT_WAIT, list, 1);

		expect_page(&p, 5, five);
		paint(&p, 5, five, round);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
	}
	/*
	 * The raw bytes, through the BAR: a page of the linear image has bytes on each page of its
	 * row of tiles.
	 */
	const uint32_t *raw = client_lock(&w.device, a, DONOT_WAIT | READ_ONLY);
	uint32_t found = 0;

	for (uint32_t i = 0; i < BYTES / 4; i++)
		found += raw[i] == 7;
	assert_int_equal(found, WORDS_OF_PAGE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

static void lock_21_swz_19_an_eviction_under_the_lock_copies_the_other_pages(void **state)
{
	static const UINT list[] = {6, 7};
	struct picture p;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, &p, VRAM, &kmd);
	uint32_t *six = lock_list(&w, a, ACQUIRE_APERTURE, list, 2);

	paint(&p, 6, six, 0x66666666);
	probe_forget();
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	expect_transfer(kmd, 0, TO_SYSTEM, 0, 6);
	expect_transfer(kmd, 1, TO_SYSTEM, 8, PAGES - 8);
	/* The same pointer, the same bytes, and what is written now is copied as well. */
	expect_page(&p, 6, six);
	expect_page(&p, 7, six + WORDS_OF_PAGE);
	paint(&p, 7, six + WORDS_OF_PAGE, 0x77777777);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_picture(&w, a, &p);
	probe_forget();
	use_now(&w, a, true); /* SWZ-20: paged in as one transfer, swizzled */
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	expect_transfer(kmd, 0, TO_SEGMENT, 0, PAGES);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

static void lock_21_pag_17_the_whole_allocation_is_evicted_through_an_aperture(void **state)
{
	static const UINT list[] = {4};
	struct picture p;
	struct world w;

	world_start(&w, state, &small);
	struct softgpu_allocation wish = wish_of(BYTES, CPU | SOFTGPU_ALLOCATION_TILED_Y, VRAM);
	wish.stride_bytes = STRIDE;
	wish.eviction_set = APERTURE;
	D3DKMT_HANDLE a = allocate_wish(&w.device, &wish);
	HANDLE kmd = probe_last_created();

	p = (struct picture){.pattern = 0x20000};
	draw(&w, a, p.pattern);
	use_now(&w, a, true);
	probe_forget();
	expect_page(&p, 4, lock_list(&w, a, ACQUIRE_APERTURE, list, 1));
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	const struct probe_call *call = probe_find_paging(TRANSFER, kmd, 0);
	assert_int_equal(call->paging.Transfer.Destination.SegmentId, IN_APERTURE);
	assert_int_equal(call->paging.Transfer.TransferSize, BYTES);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

/* content without another form is copied without the flags. */
static void lock_21_q_08_linear_content_is_copied_without_swizzle_flags(void **state)
{
	static const UINT list[] = {11};
	struct vidmm_registry_value none = {"SwizzlingRanges", 0};
	struct client_options options = {
		.vram_bytes = 4 * MIB, .registry = &none, .registry_count = 1};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);
	HANDLE kmd = probe_last_created();
	struct picture p = {.pattern = 0x30000};

	client_write(&w.device, a, BYTES, p.pattern);
	use_now(&w, a, true);
	probe_forget();
	uint32_t *eleven = lock_list(&w, a, ACQUIRE_APERTURE, list, 1);
	const DXGKARG_BUILDPAGINGBUFFER *out = &probe_find_paging(TRANSFER, kmd, 0)->paging;
	assert_int_equal(out->Transfer.Flags.Value, 0x18);
	assert_int_equal(out->Transfer.TransferOffset, 11 * PAGE);
	assert_int_equal(out->Transfer.TransferSize, PAGE);
	expect_page(&p, 11, eleven);
	paint(&p, 11, eleven, 0xBBBBBBBB);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_idle(&w.client);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	assert_int_equal(probe_find_paging(TRANSFER, kmd, 1)->paging.Transfer.TransferSize, PAGE);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

/* SWZ-18, SWZ-14, SWZ-15: the rules for AcquireAperture locks apply. */
static void lock_21_swz_15_swz_18_other_locks_and_renders_are_refused(void **state)
{
	static const UINT list[] = {1};
	struct picture p;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, &p, 0, &kmd);

	lock_list(&w, a, ACQUIRE_APERTURE, list, 1);
	expect_lock_refused(&w, a, 0, E_INVALIDARG, "SWZ-15");
	expect_lock_refused(&w, a, ENTIRE, E_INVALIDARG, "SWZ-15");
	client_reference(&w.context, a, false);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_CANTRENDERLOCKEDALLOCATION);
	client_forget(&w.client);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

static void lock_21_swz_24_listed_pages_at_an_alternate_address(void **state)
{
	static const UINT list[] = {12, 13};
	struct picture p;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, &p, VRAM, &kmd);

	const char *plain = client_lock(&w.device, a, READ_ONLY);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	uint32_t *twelve = lock_list(&w, a, ACQUIRE_APERTURE | USE_ALTERNATE_VA, list, 2);

	assert_ptr_not_equal((char *)twelve, plain + 12 * PAGE);
	expect_transfer(kmd, 0, TO_SYSTEM, 12, 2);
	expect_page(&p, 12, twelve);
	paint(&p, 13, twelve + WORDS_OF_PAGE, 0xDDDDDDDD);
	probe_forget();
	evict_by_pressure(&w, a);
	expect_page(&p, 13, twelve + WORDS_OF_PAGE);
	paint(&p, 12, twelve, 0xCCCCCCCC);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	/* SWZ-25 applies to content that was seen through a range. */
	assert_int_equal(probe_paging_count(DXGK_OPERATION_SPECIAL_LOCK_TRANSFER, NULL), 0);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

static void lock_21_lock_30_a_lock_dropped_with_its_device_is_an_unlock(void **state)
{
	static int runtime;
	static const UINT list[] = {8};
	struct softgpu_allocation wish = wish_of(BYTES, CPU | SOFTGPU_ALLOCATION_TILED_Y, VRAM);
	struct client_device creator;
	D3DKMT_HANDLE a, opened, resource, km_resource;
	uint32_t global, count = 1;
	struct picture p = {.pattern = 0x40000};
	struct world w;

	wish.stride_bytes = STRIDE;
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
	draw(&w, opened, p.pattern);
	use_now(&w, opened, true);
	void *data;
	assert_int_equal(lock_pages(&creator, &a, ACQUIRE_APERTURE, list, 1, &data), S_OK);
	paint(&p, 8, data, 0x88888888);
	vidmm_device_destroy(creator.device);
	use_now(&w, opened, true);
	expect_picture(&w, opened, &p);
	/* Destroying it while it is locked frees everything. */
	HANDLE kmd;
	D3DKMT_HANDLE b = resident(&w, &p, VRAM, &kmd);
	lock_list(&w, b, ACQUIRE_APERTURE, list, 1);
	assert_int_equal(client_deallocate(&w.device, b), S_OK);
	world_stop(&w);
}

static void read_here_write_there(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->SupportedReadSegmentSet = VRAM;
	info->SupportedWriteSegmentSet = APERTURE;
}

static void pass_a_second(struct world *w) /* of virtual time */
{
	vidmm_sleep_until_ns(w->client.host, vidmm_now_ns(w->client.host) + 1000000000);
}

/*
 * LOCK-15: a reader that was queued before the lock begins during it. The pages are copied back
 * when it is done.
 */
static void lock_21_lock_15_the_copy_back_waits_for_queued_readers(void **state)
{
	static const UINT list[] = {3};
	struct vidmm_registry_value none = {"SwizzlingRanges", 0};
	struct client_options options = {
		.vram_bytes = 4 * MIB, .registry = &none, .registry_count = 1};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, 0);
	D3DKMT_HANDLE copy = allocate_in(&w.device, BYTES, CPU, 0);
	HANDLE kmd = probe_find(PROBE_CREATE, 0)->object;
	struct picture p = {.pattern = 0x50000};

	client_write(&w.device, a, BYTES, p.pattern);
	use_now(&w, a, true);
	/*
	 * The second packet must wait for the first, because its target has to move; the reader is
	 * queued behind it.
	 */
	probe.edit_allocation = read_here_write_there;
	D3DKMT_HANDLE mover = allocate_in(&w.device, PAGE, 0, 0);
	probe.edit_allocation = NULL;
	gate_close(&w);
	client_reference(&w.context, mover, false);
	client_submit(&w.context);
	uint64_t first = w.gate_value;
	client_reference(&w.context, mover, true);
	client_submit(&w.context);
	gate_close(&w);
	client_copy(&w.context, a, copy, BYTES);
	client_submit(&w.context);
	vidmm_settle(w.client.host);
	probe_forget();
	uint32_t *three =
		lock_list(&w, a, ACQUIRE_APERTURE | IGNORE_READ_SYNC | DONOT_WAIT, list, 1);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	paint(&p, 3, three, 0x33333333);
	atomic_store(w.gate_word, first);
	pass_a_second(&w); /* the reader begins, and waits for its own gate */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	pass_a_second(&w);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1); /* the reader runs */
	gate_open(&w);
	client_idle(&w.client);
	client_expect(&w.device, copy, BYTES, 0x50000); /* the old content */
	use_now(&w, a, true);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 2);
	expect_picture(&w, a, &p);
	world_stop(&w);
}

/*
 * Whichever internal allocation fails, the lock reports it. What it may have begun does not block
 * the GPU's next use, even if the same pages are requested afterwards.
 */
static void lock_21_lock_32_a_failed_lock_has_no_later_effect(void **state)
{
	enum { DEPTH = 40 };
	static const UINT list[] = {2};
	uint32_t failures = 0;
	struct world w;

	world_start(&w, state, &small);
	for (uint32_t n = 1; n < DEPTH; n++) {
		struct picture p, q;
		HANDLE kmd;
		void *data = &w;
		D3DKMT_HANDLE a = resident(&w, &p, VRAM, &kmd);
		D3DKMT_HANDLE b = resident(&w, &q, VRAM, &kmd);

		q = (struct picture){.pattern = 0x60000};
		draw(&w, b, q.pattern);
		vmm_calloc_fail_after(n);
		HRESULT result = lock_pages(&w.device, &a, ACQUIRE_APERTURE, list, 1, &data);
		vmm_calloc_fail_after(0);
		if (result == S_OK) {
			expect_page(&p, 2, data);
			assert_int_equal(client_unlock(&w.device, a), S_OK);
		} else {
			assert_int_equal(result, E_OUTOFMEMORY);
			assert_null(data);
			assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
			client_forget(&w.client);
			failures++;
		}
		client_copy(&w.context, b, a, BYTES); /* raw, between two of the same layout */
		client_submit(&w.context);
		client_idle(&w.client);
		expect_page(&q, 2, lock_list(&w, a, ACQUIRE_APERTURE | READ_ONLY, list, 1));
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		expect_picture(&w, a, &q);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		assert_int_equal(client_deallocate(&w.device, b), S_OK);
	}
	assert_true(failures > 0);
	world_stop(&w);
}

static bool refuse(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	(void)context;
	(void)args;
	*status = STATUS_UNSUCCESSFUL;
	return true;
}

/*
 * PAG-09: the miniport refuses to take the pages back. The adapter is removed, the pointer stays
 * valid, and all objects can be destroyed.
 */
static void lock_21_lock_33_the_pages_stay_mapped_after_adapter_removal(void **state)
{
	static const UINT list[] = {1};
	struct picture p;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, &p, VRAM, &kmd), b = resident(&w, &p, VRAM, &kmd);
	uint32_t *one = lock_list(&w, a, ACQUIRE_APERTURE, list, 1);
	uint32_t *other = lock_list(&w, b, ACQUIRE_APERTURE, list, 1);

	paint(&p, 1, other, 0x11111111);
	w.expect_fatal = true;
	probe.answer_paging = refuse;
	assert_int_equal(client_unlock(&w.device, b), S_OK);
	assert_int_equal(w.client.fatals, 1);
	assert_true(client_found(&w.client, "PAG-09"));
	client_forget(&w.client);
	expect_page(&(struct picture){.pattern = p.pattern}, 1, one);
	one[0] = 5;
	assert_int_equal(one[0], 5);
	vidmm_adapter_check(w.client.adapter);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_forget(&w.client);
	world_stop(&w);
}

/*
 * A stopping adapter evicts everything, also what is locked, and then ends the devices that are
 * left.
 */
static void lock_21_pnp_01_an_adapter_stops_while_pages_are_locked(void **state)
{
	static const UINT list[] = {1, 14};
	struct picture p;
	struct world w;
	HANDLE kmd;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = resident(&w, &p, VRAM, &kmd);
	D3DKMT_HANDLE b = resident(&w, &p, VRAM, &kmd);

	paint(&p, 1, lock_list(&w, a, ACQUIRE_APERTURE, list, 2), 0x11111111);
	paint(&p, 1, lock_list(&w, b, ACQUIRE_APERTURE | USE_ALTERNATE_VA, list, 2), 0x22222222);
	vidmm_adapter_stop(w.client.adapter);
	vidmm_process_close(w.device.process);
	vidmm_host_destroy(w.client.host);
	assert_int_equal(w.client.findings, 0);
	assert_int_equal(w.client.fatals, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(lock_21_only_the_listed_pages_are_copied_out_and_back),
		BOTH(lock_21_lock_06_pages_locked_readonly_are_not_copied_back),
		BOTH(lock_21_lock_08_a_copy_back_in_progress_is_not_busy_for_a_lock),
		BOTH(lock_21_swz_19_an_eviction_under_the_lock_copies_the_other_pages),
		BOTH(lock_21_pag_17_the_whole_allocation_is_evicted_through_an_aperture),
		BOTH(lock_21_q_08_linear_content_is_copied_without_swizzle_flags),
		BOTH(lock_21_swz_15_swz_18_other_locks_and_renders_are_refused),
		BOTH(lock_21_swz_24_listed_pages_at_an_alternate_address),
		BOTH(lock_21_lock_30_a_lock_dropped_with_its_device_is_an_unlock),
		BOTH(lock_21_lock_32_a_failed_lock_has_no_later_effect),
		BOTH(lock_21_lock_33_the_pages_stay_mapped_after_adapter_removal),
		BOTH(lock_21_pnp_01_an_adapter_stops_while_pages_are_locked),
		{"sim: lock_21_lock_15_the_copy_back_waits_for_queued_readers",
		 lock_21_lock_15_the_copy_back_waits_for_queued_readers, world_prepare, NULL,
		 &on_sim},
	};

	return cmocka_run_group_tests_name("page lists", tests, NULL, NULL);
}
