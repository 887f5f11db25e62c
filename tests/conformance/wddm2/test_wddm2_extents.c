/* SPDX-License-Identifier: MIT */
/*
 * Placements in several extents (PAG-24, Q-230, Q-231, Q-232): what the GPU reaches by virtual
 * address only needs no contiguous range of a fragmented segment. The scripted GPU reaches every
 * byte through page tables, so a wrong extent shows as wrong bytes.
 */
#include "command_world.h"

#include "base/base.h"

#include <string.h>

#define BLOCKS    14u                                  /* of 1 MiB; every second one leaves */
#define BIG       (6 * (uint64_t)MIB + 5 * PAGE_BYTES) /* larger than any hole, with a rest */
#define PAGES_64K 0x800u                               /* DXGK_SEGMENTFLAGS.Use64KBPages */
#define HOSTED    0x2000u                              /* SupportsCpuHostAperture */
#define UNIT      (64 * (uint64_t)KIB)

/* ---- setups ---- */

static void large_pages(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.segment[0].flags |= PAGES_64K;
}

static void small_buffers(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.paging_bytes = 8 * KIB;
	m->settings.transfer_chunk_bytes = 256 * KIB;
}

/* The CPU reaches the segment through an aperture of pages only, or not at all. */
static void hosted(struct scripted_miniport *m)
{
	va_system(m);
	m->settings.segment[0].flags = HOSTED;
	m->settings.segment[0].host_pages = 2048;
}

static void hidden(struct scripted_miniport *m)
{
	va_system(m);
	m->settings.segment[0].flags = 0;
}

static void pitched(struct scripted_miniport *m)
{
	const DXGK_SEGMENTFLAGS flags = {.PitchAlignment = 1};

	va_system(m);
	m->settings.segment[0].flags |= flags.Value;
}

/* ---- the fragmented segment ---- */

struct extent {
	uint64_t bytes, at, offset;
};

struct fragmented {
	struct stage s;             /* its context, if a test has one */
	struct client_device other; /* has the blocks, on its residency list */
	D3DDDICB_CREATEPAGINGQUEUE queue;
	D3DKMT_HANDLE block[BLOCKS];
	uint32_t subscription;
	struct extent extent[64];
	uint32_t extents; /* since the last forget() */
};

static void on_extent(void *context, const struct vidmm_event *event, const char *text)
{
	struct fragmented *f = context;

	(void)text;
	assert_int_equal(event->arg[2], 1);
	if (f->extents < 64)
		f->extent[f->extents] =
			(struct extent){event->arg[0], event->arg[1], event->arg[3]};
	f->extents++;
}

static void check(const struct fragmented *f)
{
	vidmm_adapter_check(f->s.v.w.client.adapter);
}

static uint32_t visible(world_setup *setup)
{
	return setup == hidden || setup == hosted || setup == pitched ? 0 : WORLD_CPU_VISIBLE;
}

static void make_block(struct fragmented *f, uint32_t i)
{
	wddm2_make(&f->s.v.w, &f->other, &f->queue, &f->block[i], 1);
}

static void evict_block(struct fragmented *f, uint32_t i)
{
	assert_int_equal(wddm2_evict(&f->other, f->block[i], 0), S_OK);
	wddm2_run(&f->s.v.w);
	assert_false(wddm2_is_in_memory(&f->other, f->block[i]));
}

/* Like va_begin, with timeouts. */
static void va_begin_with_timeouts(struct va_world *v, void **state, world_setup *setup)
{
	static const struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};

	world_start_with(&v->w, state, setup, &options);
	world_open(&v->w);
	v->queue = wddm2_queue(&v->w.device);
	v->process = scripted_process(v->w.m, 0);
}

/* Fragments the segment: holes of BLOCK_BYTES between blocks of another device. */
static void break_up(struct fragmented *f, world_setup *setup, uint64_t block_bytes)
{
	const struct scripted_allocation spec = {.size_bytes = block_bytes,
						 .pitch_aligned_bytes = block_bytes,
						 .flags = visible(setup),
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};

	client_open(&f->s.v.w.client, &f->other);
	f->queue = wddm2_queue(&f->other);
	f->extents = 0;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		assert_int_equal(wddm2_try_allocate(&f->other, &spec, &f->block[i]), S_OK);
		make_block(f, i);
	}
	for (uint32_t i = 0; i < BLOCKS; i += 2)
		evict_block(f, i);
	f->subscription =
		vidmm_subscribe(f->s.v.w.client.host, 1ull << VIDMM_EVENT_EXTENT, on_extent, f);
	assert_int_not_equal(f->subscription, 0);
}

static void begin_with(struct fragmented *f, void **state, world_setup *setup, uint64_t block_bytes)
{
	va_begin_lru(&f->s.v, state, setup);
	break_up(f, setup, block_bytes);
}

static void begin(struct fragmented *f, void **state, world_setup *setup)
{
	begin_with(f, state, setup, MIB);
}

static void finish(struct fragmented *f)
{
	vidmm_unsubscribe(f->s.v.w.client.host, f->subscription);
	check(f);
	client_close(&f->other);
	va_finish(&f->s.v);
}

static uint32_t blocks_in_memory(struct fragmented *f)
{
	uint32_t count = 0;

	for (uint32_t i = 1; i < BLOCKS; i += 2)
		count += wddm2_is_in_memory(&f->other, f->block[i]);
	return count;
}

/* Is the content complete, in order, in extents that do not overlap one another? */
static void expect_extents(const struct fragmented *f, uint64_t bytes, uint64_t unit)
{
	uint64_t done = 0;

	assert_in_range(f->extents, 2, 64);
	for (uint32_t i = 0; i < f->extents; i++) {
		const struct extent *e = &f->extent[i];

		assert_int_equal(e->at, done);
		assert_true(e->bytes % unit == 0 || i + 1 == f->extents);
		for (uint32_t j = 0; j < i; j++)
			assert_true(e->offset + e->bytes <= f->extent[j].offset ||
				    e->offset >= f->extent[j].offset + f->extent[j].bytes);
		done += e->bytes;
	}
	assert_int_equal(done, bytes);
}

static uint32_t transfers(const struct fragmented *f)
{
	return wddm2_operations(&f->s.v.w, DXGK_OPERATION_VIRTUAL_TRANSFER);
}

static D3DKMT_HANDLE allocate_as(struct fragmented *f, const struct scripted_allocation *spec)
{
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(&f->s.v.w.device, spec, &handle), S_OK);
	return handle;
}

static uint32_t *lock2(struct fragmented *f, D3DKMT_HANDLE a)
{
	D3DDDICB_LOCK2 args = {.hAllocation = a};

	assert_int_equal(f->s.v.w.device.cb->pfnLock2Cb(f->s.v.w.device.handle, &args), S_OK);
	return args.pData;
}

static void unlock2(struct fragmented *f, D3DKMT_HANDLE a)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = a};

	assert_int_equal(f->s.v.w.device.cb->pfnUnlock2Cb(f->s.v.w.device.handle, &args), S_OK);
}

/* Each page has another word, at its start and its end. */
static void draw(struct fragmented *f, D3DKMT_HANDLE a, uint64_t bytes, uint32_t seed)
{
	uint32_t *words = lock2(f, a);

	for (uint32_t page = 0; page < bytes / PAGE_BYTES; page++) {
		words[page * 1024] = seed + page;
		words[page * 1024 + 1023] = ~(seed + page);
	}
	unlock2(f, a);
}

static void expect_words(const uint32_t *words, uint64_t bytes, uint32_t seed)
{
	for (uint32_t page = 0; page < bytes / PAGE_BYTES; page++) {
		assert_int_equal(words[page * 1024], seed + page);
		assert_int_equal(words[page * 1024 + 1023], ~(seed + page));
	}
}

static void expect_by_cpu(struct fragmented *f, D3DKMT_HANDLE a, uint64_t bytes, uint32_t seed)
{
	expect_words(lock2(f, a), bytes, seed);
	unlock2(f, a);
}

static void expect_by_gpu(struct fragmented *f, uint64_t at, uint64_t bytes, uint32_t seed)
{
	for (uint32_t page = 0; page < bytes / PAGE_BYTES; page++) {
		assert_int_equal(va_word(&f->s.v, at + page * PAGE_BYTES), seed + page);
		assert_int_equal(va_word(&f->s.v, at + page * PAGE_BYTES + 4092), ~(seed + page));
	}
}

/* The GPU writes to every page. */
static void draw_by_gpu(struct fragmented *f, uint64_t at, uint64_t bytes, uint32_t seed)
{
	for (uint32_t page = 0; page < bytes / PAGE_BYTES; page++) {
		va_store(&f->s.v, at + page * PAGE_BYTES, seed + page);
		va_store(&f->s.v, at + page * PAGE_BYTES + 4092, ~(seed + page));
	}
}

static void evict(struct fragmented *f, D3DKMT_HANDLE a)
{
	assert_int_equal(wddm2_evict(&f->s.v.w.device, a, 0), S_OK);
	wddm2_run(&f->s.v.w);
	assert_false(wddm2_is_in_memory(&f->s.v.w.device, a));
}

/* ---- when ---- */

static void evicts_nothing(void **state, world_setup *setup, uint32_t rest_pages)
{
	uint64_t bytes = 6 * (uint64_t)MIB + rest_pages * PAGE_BYTES;
	struct fragmented f;

	begin(&f, state, setup);
	uint32_t moved = transfers(&f);
	D3DKMT_HANDLE big =
		allocate_as(&f, &(struct scripted_allocation){.size_bytes = bytes,
							      .flags = visible(setup),
							      .read_set = WORLD_MEMORY,
							      .write_set = WORLD_MEMORY});
	va_make(&f.s.v, big);
	assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
	assert_int_equal(blocks_in_memory(&f), BLOCKS / 2);
	assert_int_equal(transfers(&f), moved);
	expect_extents(&f, bytes, UNIT);
	check(&f);
	finish(&f);
}

static void pag_24_q_230_a_fragmented_segment_needs_no_eviction(void **state)
{
	evicts_nothing(state, va_memory, 0);
	evicts_nothing(state, va_memory, 5);
	evicts_nothing(state, va_two_levels, 1);
	evicts_nothing(state, va_system, 15);
	evicts_nothing(state, va_virtual, 17);
	evicts_nothing(state, large_pages, 16);
	evicts_nothing(state, hidden, 3);
}

/* A hole that is large enough is taken whole. */
static void q_230_one_range_if_there_is_one(void **state)
{
	struct fragmented f;

	begin(&f, state, va_memory);
	for (uint32_t i = 0; i < BLOCKS / 2; i++)
		va_make(&f.s.v, va_allocate(&f.s.v, MIB - PAGE_BYTES * i, WORLD_MEMORY));
	assert_int_equal(f.extents, 0);
	finish(&f);
}

/* Holes of less than 64 KiB are not used: something has to leave. */
static void q_230_extents_are_64_kib_or_more(void **state)
{
	struct fragmented f;

	begin_with(&f, state, va_system, 60 * KIB);
	/* the rest of the segment */
	D3DKMT_HANDLE rest =
		va_allocate(&f.s.v, SCRIPTED_BAR_BYTES - BLOCKS * 60 * KIB, WORLD_MEMORY);
	va_make(&f.s.v, rest);
	assert_int_equal(blocks_in_memory(&f), BLOCKS / 2);
	va_make(&f.s.v, va_allocate(&f.s.v, 120 * KIB, WORLD_MEMORY));
	assert_int_equal(f.extents, 0);
	assert_true(blocks_in_memory(&f) < BLOCKS / 2 ||
		    !wddm2_is_in_memory(&f.s.v.w.device, rest));
	finish(&f);
}

/* Each extent begins at the allocation's alignment, and is a multiple of it. */
static void q_230_each_extent_has_the_alignment_of_the_allocation(void **state)
{
	const struct scripted_allocation spec = {.size_bytes = 5 * MIB,
						 .flags = WORLD_CPU_VISIBLE,
						 .alignment = 256 * KIB,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};
	struct fragmented f;

	begin_with(&f, state, va_system, MIB + 12 * KIB);
	D3DKMT_HANDLE big = allocate_as(&f, &spec);
	va_make(&f.s.v, big);
	assert_int_equal(blocks_in_memory(&f), BLOCKS / 2);
	expect_extents(&f, 5 * MIB, 256 * KIB);
	for (uint32_t i = 0; i < f.extents; i++)
		assert_int_equal(f.extent[i].offset % (256 * KIB), 0);
	finish(&f);
}

/* ---- which allocations ---- */

static void stays_contiguous(void **state, world_setup *setup,
			     const struct scripted_allocation *spec)
{
	struct fragmented f;

	begin(&f, state, setup);
	D3DKMT_HANDLE big = allocate_as(&f, spec);
	va_make(&f.s.v, big);
	assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
	assert_int_equal(f.extents, 0);
	assert_true(blocks_in_memory(&f) < BLOCKS / 2);
	finish(&f);
}

static void pag_24_accessed_physically_stays_contiguous(void **state)
{
	stays_contiguous(state, va_memory,
			 &(struct scripted_allocation){.size_bytes = BIG,
						       .flags = PHYSICAL,
						       .read_set = WORLD_MEMORY,
						       .write_set = WORLD_MEMORY});
}

/* Without GPU virtual addresses there is one address for all of the allocation. */
static void pag_24_without_virtual_addresses_all_stay_contiguous(void **state)
{
	stays_contiguous(state, wddm2_1,
			 &(struct scripted_allocation){.size_bytes = BIG,
						       .flags = WORLD_CPU_VISIBLE,
						       .read_set = WORLD_MEMORY,
						       .write_set = WORLD_MEMORY});
}

static void vpr(struct scripted_miniport *m)
{
	const DXGK_SEGMENTFLAGS flags = {.VprSupported = 1};

	va_system(m);
	m->settings.segment[0].flags |= flags.Value;
	m->settings.segment[0].vpr_offset = 0;
	m->settings.segment[0].vpr_bytes = SCRIPTED_BAR_BYTES;
	m->settings.segment[0].vpr_alignment = PAGE_BYTES;
}

static void q_231_protected_ranges_stay_contiguous(void **state)
{
	stays_contiguous(state, vpr,
			 &(struct scripted_allocation){.size_bytes = BIG,
						       .flags = 0x400, /* CreateInVpr */
						       .read_set = WORLD_MEMORY,
						       .write_set = WORLD_MEMORY});
}

static void q_231_allocations_in_a_pitchalignment_segment_stay_contiguous(void **state)
{
	stays_contiguous(state, pitched,
			 &(struct scripted_allocation){.size_bytes = BIG,
						       .pitch_aligned_bytes = BIG,
						       .read_set = WORLD_MEMORY,
						       .write_set = WORLD_MEMORY});
}

static void create_context_memory(void *context, struct scripted_miniport *m,
				  struct scripted_call *call)
{
	DXGKARGCB_CREATECONTEXTALLOCATION args = {.ContextAllocationFlags.MapGpuVirtualAddress = 1,
						  .hAdapter = m->services.DeviceHandle,
						  .hDriverAllocation = &world_sim,
						  .Size = BIG,
						  .SupportedSegmentSet = WORLD_MEMORY};

	if (call->ddi != VIDMM_DDI_CREATE_CONTEXT ||
	    !call->in.create_context.Flags.VirtualAddressing)
		return;
	args.hDevice = *(HANDLE *)context;
	args.hContext = call->in.create_context.hContext;
	assert_int_equal(m->services.DxgkCbCreateContextAllocation(&args), STATUS_SUCCESS);
}

/* Memory that the miniport has created for a context is placed before the context's packet. */
static void q_231_va_20_memory_of_a_context_stays_contiguous(void **state)
{
	HANDLE device;
	struct fragmented f;

	begin(&f, state, va_memory);
	device = scripted_nth(f.s.v.w.m, VIDMM_DDI_CREATE_DEVICE, 1)->in.create_device.hDevice;
	f.s.v.w.m->hook_context = &device;
	f.s.v.w.m->hook = create_context_memory;
	assert_int_equal(stage_try_context(&f.s, &f.s.context), S_OK);
	f.s.v.w.m->hook = NULL;
	f.s.commands = va_allocate(&f.s.v, 64 * KIB, WORLD_APERTURE);
	f.s.commands_at = va_map(&f.s.v, f.s.commands, 64 * KIB);
	va_make(&f.s.v, f.s.commands);
	stage_fill(&f.s, f.s.commands_at + 32 * KIB, 1);
	D3DDDICB_SUBMITCOMMAND args = stage_command(&f.s);
	assert_int_equal(stage_submit(&f.s, &args), S_OK);
	wddm2_run(&f.s.v.w);
	assert_int_equal(f.extents, 0);
	assert_true(blocks_in_memory(&f) < BLOCKS / 2);
	stage_destroy_context(&f.s, f.s.context);
	finish(&f);
}

static void pag_24_a_primary_stays_contiguous(void **state)
{
	struct scripted_allocation spec = {.size_bytes = BIG,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec),
				      .Flags.Primary = 1};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	struct fragmented f;

	begin(&f, state, va_memory);
	args.hResource = f.s.v.w.device.handle;
	assert_int_equal(f.s.v.w.device.cb->pfnAllocateCb(f.s.v.w.device.handle, &args), S_OK);
	va_make(&f.s.v, info.hAllocation);
	assert_int_equal(f.extents, 0);
	assert_true(blocks_in_memory(&f) < BLOCKS / 2);
	finish(&f);
}

/* ---- content ---- */

/* Content goes in and out by GPU, CPU and paging, with other extents each time. */
static void content_survives(void **state, world_setup *setup, uint32_t set)
{
	struct fragmented f;

	begin(&f, state, setup);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, set);
	uint64_t at = va_map(&f.s.v, big, BIG);
	va_make(&f.s.v, big);
	expect_extents(&f, vmm_align_up(BIG, setup == large_pages ? UNIT : PAGE_BYTES), UNIT);
	assert_int_equal(va_word(&f.s.v, at + BIG - 4), 0); /* filled with zero */
	draw(&f, big, BIG, 0x11000000);
	assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
	expect_by_gpu(&f, at, BIG, 0x11000000);
	for (uint32_t round = 2; round < 5; round++) {
		uint32_t seed = round << 24;

		draw_by_gpu(&f, at, BIG, seed);
		evict(&f, big);
		expect_by_cpu(&f, big, BIG, seed);
		evict_block(&f, 4 * round - 5); /* a hole of 3 MiB */
		f.extents = 0;
		va_make(&f.s.v, big);
		assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
		assert_true(f.extents > 1);
		check(&f);
		expect_by_gpu(&f, at, BIG, seed);
		expect_by_cpu(&f, big, BIG, seed);
	}
	finish(&f);
}

static void q_230_content_in_extents_survives_paging(void **state)
{
	content_survives(state, va_memory, WORLD_MEMORY);
	content_survives(state, va_virtual, WORLD_MEMORY);
	content_survives(state, va_system, WORLD_MEMORY | WORLD_APERTURE);
	content_survives(state, large_pages, WORLD_MEMORY);
	content_survives(state, small_buffers, WORLD_MEMORY);
	content_survives(state, hosted, WORLD_MEMORY | WORLD_APERTURE);
}

static void fill_block(struct fragmented *f, uint32_t i)
{
	D3DDDICB_LOCK2 lock = {.hAllocation = f->block[i]};
	const D3DDDICB_UNLOCK2 unlock = {.hAllocation = f->block[i]};

	assert_int_equal(f->other.cb->pfnLock2Cb(f->other.handle, &lock), S_OK);
	memset(lock.pData, 0x77, MIB);
	assert_int_equal(f->other.cb->pfnUnlock2Cb(f->other.handle, &unlock), S_OK);
}

/* The zero of a Fill covers every extent, whatever was there. */
static void q_230_every_extent_is_filled_with_zero(void **state)
{
	struct fragmented f;

	begin(&f, state, va_memory);
	for (uint32_t i = 0; i < BLOCKS; i += 2) {
		make_block(&f, i);
		fill_block(&f, i);
		evict_block(&f, i);
	}
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY);
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	const uint32_t *words = lock2(&f, big);
	for (uint64_t i = 0; i < BIG / 4; i++)
		assert_int_equal(words[i], 0);
	unlock2(&f, big);
	finish(&f);
}

/* A mapping of a part begins and ends inside extents. */
static void va_06_q_230_a_mapping_of_a_part_finds_its_pages(void **state)
{
	struct fragmented f;

	begin(&f, state, va_memory);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY);
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	draw(&f, big, BIG, 0x22000000);
	for (uint64_t first = 0; first < BIG / PAGE_BYTES - 40; first += 129) {
		D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&f.s.v, big, 40);

		args.OffsetInPages = first;
		va_must_map(&f.s.v, &args);
		for (uint32_t page = 0; page < 40; page++)
			assert_int_equal(va_word(&f.s.v, args.VirtualAddress + page * PAGE_BYTES),
					 0x22000000 + first + page);
		assert_int_equal(va_free(&f.s.v, args.VirtualAddress, 40 * PAGE_BYTES), S_OK);
	}
	finish(&f);
}

/* The address of a lock shows the content in memory and, from its eviction on, in the store. */
static void lock_04_q_230_a_locked_allocation_leaves_its_extents(void **state)
{
	struct fragmented f;

	begin(&f, state, va_memory);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY | WORLD_APERTURE);
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	draw(&f, big, BIG, 0x33000000);
	uint32_t *words = lock2(&f, big);
	expect_words(words, BIG, 0x33000000);
	/* Nearly all of the segment is wanted. */
	for (uint32_t i = 1; i < BLOCKS; i += 2)
		evict_block(&f, i);
	D3DKMT_HANDLE all = wddm2_allocate(&f.other, 14 * MIB, WORLD_MEMORY);
	wddm2_make(&f.s.v.w, &f.other, &f.queue, &all, 1);
	assert_false(wddm2_is_in_memory(&f.s.v.w.device, big));
	expect_words(words, BIG, 0x33000000);
	words[0] = 0x44;
	unlock2(&f, big);
	assert_int_equal(wddm2_evict(&f.other, all, 0), S_OK);
	for (uint32_t i = 1; i < BLOCKS; i += 2)
		make_block(&f, i);
	va_make(&f.s.v, big);
	assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
	words = lock2(&f, big);
	assert_int_equal(words[0], 0x44);
	words[0] = 0x33000000;
	expect_words(words, BIG, 0x33000000);
	unlock2(&f, big);
	finish(&f);
}

/* ---- offers, updates, power, resets, destruction ---- */

static void ofr_09_q_230_an_offered_allocation_in_extents_is_discarded(void **state)
{
	struct fragmented f;
	BOOL discarded = 77;

	begin(&f, state, va_memory);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY);
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	const D3DDDICB_OFFERALLOCATIONS2 offer = {
		.HandleList = &big, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	assert_int_equal(f.s.v.w.device.cb->pfnOfferAllocations2Cb(f.s.v.w.device.handle, &offer),
			 S_OK);
	uint32_t moved = transfers(&f);
	/* Another allocation gets what it had, in extents as well. */
	f.extents = 0;
	va_make(&f.s.v, va_allocate(&f.s.v, BIG, WORLD_MEMORY));
	expect_extents(&f, BIG, UNIT);
	assert_int_equal(transfers(&f), moved);
	assert_int_equal(blocks_in_memory(&f), BLOCKS / 2);
	D3DDDICB_RECLAIMALLOCATIONS2 reclaim = {.PagingQueue = f.s.v.queue.hPagingQueue,
						.NumAllocations = 1,
						.HandleList = &big,
						.pDiscarded = &discarded};
	f.s.v.w.device.cb->pfnReclaimAllocations2Cb(f.s.v.w.device.handle, &reclaim);
	assert_int_equal(discarded, TRUE);
	wddm2_run(&f.s.v.w);
	finish(&f);
}

/* An update to AccessedPhysically makes it contiguous before its fence is signaled. */
static void pri_15_pag_24_an_update_to_physical_access_makes_it_contiguous(void **state)
{
	struct fragmented f;

	begin(&f, state, va_memory);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY);
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	draw(&f, big, BIG, 0x55000000);
	D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = f.s.v.queue.hPagingQueue,
					   .hAllocation = big,
					   .Flags.AccessedPhysically = 1,
					   .PropertyMaskValue = 1};
	f.extents = 0;
	HRESULT result =
		f.s.v.w.device.cb->pfnUpdateAllocationPropertyCb(f.s.v.w.device.handle, &args);
	assert_true(result == S_OK || result == E_PENDING);
	wddm2_await(&f.s.v.w, &f.s.v.queue, args.PagingFenceValue);
	assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
	assert_int_equal(f.extents, 0);
	assert_true(blocks_in_memory(&f) < BLOCKS / 2);
	check(&f);
	expect_by_cpu(&f, big, BIG, 0x55000000);
	finish(&f);
}

/*
 * The GPU uses it when the update comes, and the CPU has locked it when the GPU is done. It leaves
 * its extents after the unlock.
 */
static void pri_15_q_231_a_lock_delays_the_update_to_physical_access(void **state)
{
	struct fragmented f;

	begin(&f, state, va_memory);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY),
		      small = wddm2_allocate(&f.s.v.w.device, PAGE_BYTES, WORLD_MEMORY);
	va_make(&f.s.v, small);
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	draw(&f, big, BIG, 0x56000000);
	f.s.v.w.m->settings.complete_at_once = false;
	world_submit_use(&f.s.v.w.context, small); /* uses all of the residency list */
	D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = f.s.v.queue.hPagingQueue,
					   .hAllocation = big,
					   .Flags.AccessedPhysically = 1,
					   .PropertyMaskValue = 1};
	assert_int_equal(
		f.s.v.w.device.cb->pfnUpdateAllocationPropertyCb(f.s.v.w.device.handle, &args),
		E_PENDING);
	const uint32_t *words = lock2(&f, big);
	wddm2_run(&f.s.v.w);
	f.s.v.w.m->settings.complete_at_once = true;
	assert_true(wddm2_fence(&f.s.v.queue) < args.PagingFenceValue);
	assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
	expect_words(words, BIG, 0x56000000);
	check(&f);
	f.extents = 0;
	unlock2(&f, big);
	wddm2_await(&f.s.v.w, &f.s.v.queue, args.PagingFenceValue);
	assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
	assert_int_equal(f.extents, 0);
	expect_by_cpu(&f, big, BIG, 0x56000000);
	finish(&f);
}

/* A reset loses what is in memory. All extents are free then. */
static void tdr_05_q_230_a_reset_frees_extents(void **state)
{
	D3DDDICB_CREATEPAGINGQUEUE queue;
	struct client_device later;
	struct fragmented f;

	va_begin_with_timeouts(&f.s.v, state, va_memory);
	break_up(&f, va_memory, MIB);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY),
		      small = wddm2_allocate(&f.s.v.w.device, PAGE_BYTES, WORLD_MEMORY);
	va_make(&f.s.v, small);
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	f.s.v.w.m->settings.complete_at_once = false;
	world_submit_use(&f.s.v.w.context, small);
	f.s.v.w.m->settings.complete_at_once = true;
	vidmm_sleep_until_ns(f.s.v.w.client.host, vidmm_now_ns(f.s.v.w.client.host) + 10000000000);
	vidmm_settle(f.s.v.w.client.host);
	assert_int_equal(scripted_count(f.s.v.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 1);
	check(&f);
	client_open(&f.s.v.w.client, &later);
	queue = wddm2_queue(&later);
	D3DKMT_HANDLE all = wddm2_allocate(&later, 15 * MIB, WORLD_MEMORY);
	wddm2_make(&f.s.v.w, &later, &queue, &all, 1);
	assert_true(wddm2_is_in_memory(&later, all));
	check(&f);
	client_close(&later);
	finish(&f);
}

/* Without host memory nothing changes; the next call places it. */
static void q_230_without_host_memory_nothing_changes(void **state)
{
	struct fragmented f;

	begin(&f, state, va_memory);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY);
	for (uint32_t n = 1; n < 12; n++) {
		D3DDDI_MAKERESIDENT args;

		f.extents = 0;
		vmm_calloc_fail_after(n);
		HRESULT result = wddm2_try_make_one(&f.s.v.w.device, &f.s.v.queue, big, &args);
		vmm_calloc_fail_after(0);
		check(&f);
		assert_int_equal(blocks_in_memory(&f), BLOCKS / 2);
		if (result == S_OK || result == E_PENDING) {
			wddm2_await(&f.s.v.w, &f.s.v.queue, args.PagingFenceValue);
			assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
			assert_true(f.extents > 1);
			evict(&f, big);
		} else {
			assert_int_equal(f.extents, 0);
			assert_false(wddm2_is_in_memory(&f.s.v.w.device, big));
		}
	}
	f.extents = 0;
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	finish(&f);
}

/* A locked allocation without an aperture returns to the same extents. */
static void lock_45_q_232_extents_return_with_the_power(void **state)
{
	struct extent before[64];
	struct fragmented f;

	begin(&f, state, va_memory);
	D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY);
	va_make(&f.s.v, big);
	expect_extents(&f, BIG, UNIT);
	draw(&f, big, BIG, 0x66000000);
	memcpy(before, f.extent, sizeof(before));
	uint32_t count = f.extents;
	uint32_t *words = lock2(&f, big);
	for (uint32_t round = 0; round < 2; round++) {
		f.extents = 0;
		assert_int_equal(vidmm_adapter_set_power(f.s.v.w.client.adapter, VIDMM_POWER_D3,
							 VIDMM_SLEEP_STANDBY),
				 0);
		assert_int_equal(vidmm_adapter_set_power(f.s.v.w.client.adapter, VIDMM_POWER_D0, 0),
				 0);
		assert_true(wddm2_is_in_memory(&f.s.v.w.device, big));
		assert_int_equal(f.extents, count);
		assert_memory_equal(f.extent, before, count * sizeof(before[0]));
		expect_words(words, BIG, 0x66000000);
		check(&f);
	}
	unlock2(&f, big);
	finish(&f);
}

static void alf_37_q_230_extents_are_freed_with_the_allocation(void **state)
{
	struct fragmented f;

	begin(&f, state, va_memory);
	for (uint32_t i = 0; i < 3; i++) {
		D3DKMT_HANDLE big = va_allocate(&f.s.v, BIG, WORLD_MEMORY);

		f.extents = 0;
		va_make(&f.s.v, big);
		expect_extents(&f, BIG, UNIT);
		assert_int_equal(client_deallocate(&f.s.v.w.device, big), S_OK);
		wddm2_run(&f.s.v.w);
		check(&f);
	}
	assert_int_equal(blocks_in_memory(&f), BLOCKS / 2);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pag_24_q_230_a_fragmented_segment_needs_no_eviction),
		ON_BOTH(q_230_one_range_if_there_is_one),
		ON_BOTH(q_230_extents_are_64_kib_or_more),
		ON_BOTH(q_230_each_extent_has_the_alignment_of_the_allocation),
		ON_BOTH(pag_24_accessed_physically_stays_contiguous),
		ON_BOTH(pag_24_without_virtual_addresses_all_stay_contiguous),
		ON_BOTH(pag_24_a_primary_stays_contiguous),
		ON_BOTH(q_231_allocations_in_a_pitchalignment_segment_stay_contiguous),
		ON_BOTH(q_231_va_20_memory_of_a_context_stays_contiguous),
		ON_BOTH(q_231_protected_ranges_stay_contiguous),
		ON_BOTH(q_230_content_in_extents_survives_paging),
		ON_BOTH(q_230_every_extent_is_filled_with_zero),
		ON_BOTH(va_06_q_230_a_mapping_of_a_part_finds_its_pages),
		ON_BOTH(lock_04_q_230_a_locked_allocation_leaves_its_extents),
		ON_BOTH(ofr_09_q_230_an_offered_allocation_in_extents_is_discarded),
		ON_BOTH(pri_15_pag_24_an_update_to_physical_access_makes_it_contiguous),
		ON_BOTH(pri_15_q_231_a_lock_delays_the_update_to_physical_access),
		ON_SIM(tdr_05_q_230_a_reset_frees_extents),
		ON_SIM(q_230_without_host_memory_nothing_changes),
		ON_BOTH(lock_45_q_232_extents_return_with_the_power),
		ON_BOTH(alf_37_q_230_extents_are_freed_with_the_allocation),
	};

	return cmocka_run_group_tests_name("wddm2_extents", tests, NULL, NULL);
}
