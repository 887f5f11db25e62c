/* SPDX-License-Identifier: MIT */
#include "lock_race.h"

#include <stdio.h>

#include "world.h"

/* Runs on threads other than cmocka's, where a failed cmocka assertion would not end the test. */
#define CHECK(condition)                                                                         \
	do {                                                                                     \
		if (!(condition)) {                                                              \
			fprintf(stderr, "%s:%d: seed %llu, thread %u, operation %llu: %s\n",     \
				__FILE__, __LINE__, (unsigned long long)r->race->seed, r->index, \
				(unsigned long long)r->done, #condition);                        \
			abort();                                                                 \
		}                                                                                \
	} while (0)

enum {
	THREADS = 8,
	ITEMS = 5,
	PAGES_MAX = 12,
	WORDS_OF_PAGE = 4096 / 4,
	STRIPE_WORDS = 64,
	RANGE_ENTIRE = ACQUIRE_APERTURE | LOCK_ENTIRE
};

/* What a page should hold: word i is first + i * step. */
struct page {
	uint32_t first, step;
};

struct item {
	D3DKMT_HANDLE handle;
	uint32_t pages;
	bool tiled;     /* rows are seen only in the linear image */
	bool in_memory; /* its segment set contains the memory segment, so it may get ranges */
	struct page page[PAGES_MAX];
	/* the lock that is held, if any */
	uint32_t *words; /* of page `first_listed` */
	uint32_t flags, listed;
	UINT list[3];
};

struct runner {
	struct race *race;
	struct vidmm_thread *thread;
	uint32_t index;
	uint64_t state, operations, done;
	struct client_device device;
	struct client_context context;
	struct item item[ITEMS];
	/* as large as video memory: while it is resident, every other allocation is evicted */
	D3DKMT_HANDLE hog;
	uint32_t patterns, stripe;
};

/* One allocation that all threads lock at once, each for its own stripe of every page. */
struct race {
	struct world w;
	uint64_t seed, vram_bytes;
	bool hidden; /* video memory is not CPU-visible */
	D3DKMT_HANDLE common;
	struct runner runner[THREADS];
};

static uint32_t draw(struct runner *r, uint32_t below)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->state >> 33) % below;
}

static void create_item(struct runner *r, struct item *item, uint32_t sort)
{
	struct softgpu_allocation wish = wish_of(0, CPU, 0);

	*item = (struct item){.pages = 4 + 4 * draw(r, 3), .in_memory = true};
	wish.size_bytes = item->pages * PAGE;
	wish.renaming_limit = draw(r, 4);
	switch (sort) {
	case 0:
		break;
	case 1:
		item->tiled = true;
		wish.flags |= SOFTGPU_ALLOCATION_TILED_Y;
		wish.stride_bytes = 512;
		break;
	case 2:
		wish.segment_set = APERTURE;
		item->in_memory = false;
		break;
	case 3:
		wish.flags |= SOFTGPU_ALLOCATION_PERMANENT_SYSTEM;
		break;
	default:
		wish.segment_set = VRAM;
	}
	CHECK(client_try_allocate(&r->device, &wish, NULL, &item->handle, NULL) == S_OK);
}

/* ---- the CPU ---- */

static uint32_t *page_of(const struct item *item, uint32_t page)
{
	uint32_t first = item->listed ? item->list[0] : 0;

	return item->words + ((int64_t)page - first) * WORDS_OF_PAGE;
}

/* The pages that the lock covers. */
static uint32_t expected_page(const struct item *item, uint32_t i)
{
	return item->listed ? item->list[i] : i;
}

static uint32_t expected_page_count(const struct item *item)
{
	return item->listed ? item->listed : item->pages;
}

static void verify(struct runner *r, const struct item *item)
{
	for (uint32_t i = 0; i < expected_page_count(item); i++) {
		uint32_t p = expected_page(item, i);
		const uint32_t *words = page_of(item, p);

		for (uint32_t n = draw(r, 61); n < WORDS_OF_PAGE; n += 61)
			CHECK(words[n] == item->page[p].first + n * item->page[p].step);
	}
}

static void write_page(struct runner *r, struct item *item, uint32_t p)
{
	uint32_t *words = page_of(item, p);

	item->page[p] = (struct page){++r->patterns << 12, 1};
	for (uint32_t n = 0; n < WORDS_OF_PAGE; n++)
		words[n] = item->page[p].first + n;
}

static void write_some(struct runner *r, struct item *item)
{
	if (item->flags & READ_ONLY)
		return;
	write_page(r, item, expected_page(item, draw(r, expected_page_count(item))));
}

static uint32_t choose_flags(struct runner *r, const struct item *item)
{
	/* Content in memory without CpuVisible must be evicted for the lock (LOCK-49). */
	const uint32_t more[] = {0, 0, READ_ONLY, r->race->hidden ? 0 : DONOT_EVICT};
	uint32_t flags = 0;

	if (item->tiled || (item->in_memory && draw(r, 3) == 0))
		flags = ACQUIRE_APERTURE;
	if (flags && draw(r, 3) == 0)
		flags |= USE_ALTERNATE_VA;
	return flags ? flags : more[draw(r, 4)];
}

static void choose_list(struct runner *r, struct item *item)
{
	item->listed = draw(r, 2) ? 1 + draw(r, 3) : 0;
	for (uint32_t i = 0; i < item->listed; i++)
		item->list[i] = draw(r, item->pages);
}

static void lock_item(struct runner *r, struct item *item, uint32_t more)
{
	void *data;

	item->flags = choose_flags(r, item) | more;
	choose_list(r, item);
	/* The lock may need a copy, so the request must list the pages. */
	if ((item->flags & ACQUIRE_APERTURE) && !item->listed)
		item->flags |= LOCK_ENTIRE;
	CHECK(lock_pages(&r->device, &item->handle, item->flags, item->listed ? item->list : NULL,
			 item->listed, &data) == S_OK);
	item->words = data;
	verify(r, item);
}

static void unlock_item(struct runner *r, struct item *item)
{
	verify(r, item);
	item->words = NULL;
	CHECK(client_unlock(&r->device, item->handle) == S_OK);
}

/* The whole allocation is written, because the old content is not expected to survive. */
static void discard(struct runner *r, struct item *item)
{
	uint32_t flags = DISCARD | (item->tiled ? RANGE_ENTIRE : 0);
	void *data;
	HRESULT result = client_try_lock(&r->device, &item->handle, flags, &data);

	if (result == D3DERR_WASSTILLDRAWING) /* the list is full */
		result = client_try_lock(&r->device, &item->handle, flags | NO_EXISTING_REFERENCE,
					 &data);
	CHECK(result == S_OK);
	item->words = data;
	item->flags = flags;
	item->listed = 0;
	for (uint32_t p = 0; p < item->pages; p++)
		write_page(r, item, p);
}

/* Plain locks nest, also those of other threads. Each thread writes to its own words. */
static void share(struct runner *r)
{
	D3DKMT_HANDLE handle = r->race->common;
	struct client_device *device = &r->race->w.device;
	void *data;

	CHECK(client_try_lock(device, &handle, draw(r, 2) || r->race->hidden ? 0 : DONOT_EVICT,
			      &data) == S_OK);
	CHECK(handle == r->race->common);
	for (uint32_t p = 0; p < PAGES_MAX; p++) {
		uint32_t *words = (uint32_t *)data + p * WORDS_OF_PAGE + r->index * STRIPE_WORDS;

		for (uint32_t n = 0; n < STRIPE_WORDS; n++) {
			CHECK(words[n] == r->stripe);
			words[n] = r->stripe + 1;
		}
	}
	r->stripe++;
	CHECK(client_unlock(device, handle) == S_OK);
}

/* ---- the GPU ---- */

static void submit(struct runner *r)
{
	CHECK(client_try_submit(&r->context) == S_OK);
}

/*
 * A locked allocation may be rendered with if it was locked without a range and can be evicted
 * (LKR-01).
 */
static void use(struct runner *r, struct item *item)
{
	if (item->words && ((item->flags & ACQUIRE_APERTURE) || item == &r->item[4]))
		return;
	client_reference(&r->context, item->handle, !item->words && draw(r, 2));
	submit(r);
}

static void fill(struct runner *r, struct item *item)
{
	uint32_t pattern = ++r->patterns << 12;

	if (item->words)
		return;
	client_fill(&r->context, item->handle, item->pages * PAGE, pattern);
	submit(r);
	for (uint32_t p = 0; p < item->pages; p++)
		item->page[p] = (struct page){pattern, 0};
}

static void evict_all(struct runner *r)
{
	client_reference(&r->context, r->hog, true);
	submit(r);
}

/* ---- the threads ---- */

static void step(struct runner *r)
{
	uint32_t n = draw(r, ITEMS);
	struct item *item = &r->item[n];

	switch (draw(r, 16)) {
	case 0:
		if (draw(r, 4) == 0)
			evict_all(r);
		break;
	case 1:
		if (!item->words)
			discard(r, item);
		break;
	case 2:
		fill(r, item);
		break;
	case 3:
	case 4:
	case 5:
		use(r, item);
		break;
	case 6:
		share(r);
		break;
	case 7:
		if (!item->words && draw(r, 8) == 0) {
			CHECK(client_deallocate(&r->device, item->handle) == S_OK);
			create_item(r, item, n);
		}
		break;
	default:
		if (!item->words)
			lock_item(r, item, 0);
		else if (draw(r, 3))
			write_some(r, item);
		else
			unlock_item(r, item);
	}
}

static void runner_main(void *argument)
{
	struct runner *r = argument;

	client_open(&r->race->w.client, &r->device);
	client_context(&r->device, r->index % 2, &r->context);
	for (uint32_t i = 0; i < ITEMS; i++)
		create_item(r, &r->item[i], i);
	r->hog = allocate_in(&r->device, r->race->vram_bytes, 0, VRAM);
	for (; r->done < r->operations; r->done++)
		step(r);
	for (uint32_t i = 0; i < ITEMS; i++) {
		if (r->item[i].words)
			unlock_item(r, &r->item[i]);
		lock_item(r, &r->item[i], 0);
		if (i % 2) /* the other half is unlocked by destroying the device (LOCK-30) */
			unlock_item(r, &r->item[i]);
	}
	client_context_end(&r->context);
	client_close(&r->device);
}

static void start_runner(struct race *race, uint32_t i, uint64_t operations)
{
	struct runner *r = &race->runner[i];

	r->race = race;
	r->index = i;
	r->state = race->seed * 1000 + i;
	r->operations = operations / THREADS;
	assert_int_equal(
		vidmm_thread_create(race->w.client.host, "runner", runner_main, r, &r->thread), 0);
}

struct race_statistics race_run(uint32_t kind, uint64_t seed, uint64_t operations)
{
	/*
	 * Each run differs: few, no or many swizzling ranges, and video memory that is CPU-visible
	 * or not.
	 */
	static const uint32_t ranges[] = {5, 0, 64};
	struct vidmm_registry_value values[] = {{"SwizzlingRanges", ranges[seed % 3]},
						{"VramCpuVisible", seed % 4 != 3}};
	struct client_options options = {.vram_bytes = MIB,
					 .aperture_bytes = 8 * MIB,
					 .seed = seed,
					 .switch_per_1024 = 200,
					 .registry = values,
					 .registry_count = 2};
	struct race *race = calloc(1, sizeof(*race));
	struct race_statistics figures = {.operations = operations};
	void *state = &kind;

	assert_non_null(race);
	race->seed = seed;
	race->vram_bytes = MIB;
	race->hidden = !values[1].value;
	world_start(&race->w, &state, &options);
	race->common = allocate_in(&race->w.device, PAGES_MAX * PAGE, CPU, 0);
	for (uint32_t i = 0; i < THREADS; i++)
		start_runner(race, i, operations);
	for (uint32_t i = 0; i < THREADS; i++)
		vidmm_thread_join(race->runner[i].thread);
	vidmm_adapter_check(race->w.client.adapter);
	figures.evictions = world_statistics(&race->w).evictions;
	figures.renames = world_statistics(&race->w).renames;
	world_stop(&race->w);
	free(race);
	return figures;
}
