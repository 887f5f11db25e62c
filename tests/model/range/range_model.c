/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "model/range/range_model.h"
#include "range/range.h"

#define UNITS_MAX 4096u
#define LIVE_MAX  UNITS_MAX

struct live {
	vmm_range_node node;
	uint32_t start, size;
};

struct model {
	struct vmm_range_heap *heap;
	uint64_t seed, random, granule;
	uint32_t step, units, size_max;
	uint32_t cluster;         /* not 0: most sizes are this or one more, so that bins fill up */
	bool held[UNITS_MAX + 1]; /* the last one stays true, which ends every search */
	struct live live[LIVE_MAX];
	uint32_t live_count;
};

#define CHECK(model, condition)                                       \
	do {                                                          \
		if (!(condition))                                     \
			return differ((model), #condition, __LINE__); \
	} while (0)

static bool differ(const struct model *model, const char *condition, int line)
{
	printf("# range model: seed %llu step %u, line %d: %s\n", (unsigned long long)model->seed,
	       model->step, line, condition);
	return false;
}

static uint32_t draw(struct model *model, uint32_t below)
{
	model->random = model->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((model->random >> 33) % below);
}

/* The longest run of free granules that begins at start, up to high. */
static uint32_t run_at(const struct model *model, uint32_t start, uint32_t high)
{
	uint32_t at = start;

	while (at < high && !model->held[at])
		at++;
	return at - start;
}

/* A request, in granules. */
struct want {
	uint32_t size, alignment, low, high;
	bool from_end;
};

/*
 * Returns the lowest (or, from the end, the highest) offset that serves the request; UNITS_MAX if
 * there is none.
 */
static uint32_t outermost(const struct model *model, const struct want *want)
{
	uint32_t found = UNITS_MAX, run = 0;

	/* run: free granules from `at` on, inside the window */
	for (uint32_t at = want->high; at-- > want->low;) {
		run = model->held[at] ? 0 : run + 1;
		if (run < want->size || at % want->alignment)
			continue;
		found = at;
		if (want->from_end)
			break;
	}
	return found;
}

static uint32_t draw_size(struct model *model)
{
	uint32_t limit = model->size_max >> draw(model, 4) * 2;

	if (model->cluster && draw(model, 8))
		return model->cluster + (model->step / 256 + (draw(model, 8) == 0)) % 2;
	return 1 + draw(model, limit ? limit : 1);
}

static struct want draw_want(struct model *model)
{
	struct want want = {.size = draw_size(model), .alignment = 1, .high = model->units};
	uint32_t kind = draw(model, 10);

	if (kind == 0 || kind == 1)
		want.alignment = 1u << draw(model, 8);
	if (kind == 1 || kind == 2) {
		want.low = draw(model, model->units + 1);
		want.high = want.low + draw(model, model->units + 1 - want.low);
	}
	want.from_end = kind == 3 || (kind == 1 && draw(model, 2));
	return want;
}

static struct vmm_range_request request_of(struct model *model, const struct want *want)
{
	struct vmm_range_request request = {
		.size_bytes = want->size * model->granule,
		.alignment = want->alignment > 1 || draw(model, 2)
				     ? want->alignment * model->granule
				     : 0,
		.low = want->low * model->granule,
		.high = want->high * model->granule,
		.flags = want->from_end ? VMM_RANGE_FROM_END : 0,
	};

	if (want->high == model->units && draw(model, 2))
		request.high =
			draw(model, 2) ? 0 : request.high + model->granule * draw(model, 100);
	/* A window end of 0 would mean the whole heap. */
	if (want->high == 0)
		request.low = request.high = model->granule;
	return request;
}

static bool step_allocate(struct model *model)
{
	struct want want = draw_want(model);
	struct vmm_range_request request = request_of(model, &want);
	uint32_t expected = outermost(model, &want);
	bool anywhere = want.low == 0 && want.high == model->units && !want.from_end;
	bool starve = draw(model, 64) == 0;
	struct live *live = &model->live[model->live_count];
	vmm_range_node node = VMM_RANGE_NONE;
	uint64_t offset = UINT64_MAX;
	vmm_status status;

	request.owner = live; /* any value that distinguishes ranges */
	vmm_calloc_fail_after(starve);
	status = vmm_range_allocate(model->heap, &request, &node, &offset);
	vmm_calloc_fail_after(0);
	if (status != VMM_OK) {
		CHECK(model, node == VMM_RANGE_NONE && offset == UINT64_MAX);
		CHECK(model, status == VMM_NO_MEMORY || expected == UNITS_MAX);
		CHECK(model, status == VMM_NO_VIDEO_MEMORY || (starve && expected != UNITS_MAX));
		return true;
	}
	CHECK(model, offset % model->granule == 0);
	live->start = (uint32_t)(offset / model->granule);
	live->size = want.size;
	live->node = node;
	CHECK(model, live->start % want.alignment == 0);
	CHECK(model, live->start >= want.low && live->start + want.size <= want.high);
	CHECK(model, run_at(model, live->start, live->start + want.size) == want.size);
	CHECK(model, anywhere || live->start == expected);
	memset(model->held + live->start, true, want.size);
	model->live_count++;
	return true;
}

/* Returns the whole units in the holes of the window. */
static uint32_t units_in_holes(const struct model *model, const struct want *want, uint32_t unit)
{
	uint32_t units = 0;

	for (uint32_t at = want->low; at < want->high; at++) {
		uint32_t run = run_at(model, at, want->high), skip;

		if (!run)
			continue;
		skip = (want->alignment - at % want->alignment) % want->alignment;
		units += run > skip ? (run - skip) / unit : 0;
		at += run;
	}
	return units;
}

/* The extents become live ranges, and are freed one by one. */
static bool add_extents(struct model *model, const struct want *want, uint32_t unit,
			const struct vmm_range_extents *extents)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < extents->count; i++) {
		const struct vmm_range_extent *e = &extents->extent[i];
		struct live *live = &model->live[model->live_count++];

		live->node = e->node;
		live->start = (uint32_t)(e->offset / model->granule);
		live->size = (uint32_t)(e->size_bytes / model->granule);
		CHECK(model, e->from == done * model->granule);
		CHECK(model,
		      vmm_range_extent_at(extents, e->from) == e &&
			      vmm_range_extent_at(extents, e->from + e->size_bytes - 1) == e);
		CHECK(model, vmm_range_owner(model->heap, e->node) == model);
		CHECK(model, live->start % want->alignment == 0);
		CHECK(model, live->start >= want->low && live->start + live->size <= want->high);
		CHECK(model, run_at(model, live->start, live->start + live->size) == live->size);
		CHECK(model, live->size % unit == 0 || i + 1 == extents->count);
		memset(model->held + live->start, true, live->size);
		done += live->size;
	}
	CHECK(model, done == want->size);
	return true;
}

static bool step_extents(struct model *model)
{
	struct want want = draw_want(model);
	uint32_t unit = want.alignment << draw(model, 3), wanted = want.size / unit;
	uint32_t units = units_in_holes(model, &want, unit);
	struct vmm_range_request request = request_of(model, &want);
	struct vmm_range_extents *extents = NULL;
	uint32_t starve = draw(model, 16) == 0 ? 1 + draw(model, 3) : 0;

	request.owner = model;
	vmm_calloc_fail_after(starve);
	vmm_status status =
		vmm_range_allocate_extents(model->heap, &request, unit * model->granule, &extents);
	vmm_calloc_fail_after(0);
	if (status != VMM_OK) {
		CHECK(model, !extents);
		CHECK(model, status == VMM_NO_VIDEO_MEMORY || (status == VMM_NO_MEMORY && starve));
		/* A rest of less than a unit fits into a unit that is left. */
		CHECK(model, status == VMM_NO_MEMORY || want.size <= unit ||
				     units < wanted + (want.size % unit != 0));
		return true;
	}
	CHECK(model, units >= wanted && want.size > unit);
	bool same = add_extents(model, &want, unit, extents);
	vmm_free(extents);
	return same;
}

static void step_free(struct model *model)
{
	uint32_t index = draw(model, model->live_count);
	struct live live = model->live[index];

	vmm_range_free(model->heap, live.node);
	memset(model->held + live.start, false, live.size);
	model->live[index] = model->live[--model->live_count];
}

static bool check_figures(const struct model *model)
{
	struct vmm_range_statistics figures;
	uint32_t free_units = 0, largest = 0, holes = 0;

	for (uint32_t at = 0; at < model->units; at++) {
		uint32_t run = run_at(model, at, model->units);

		if (!run)
			continue;
		holes++;
		free_units += run;
		largest = run > largest ? run : largest;
		at += run;
	}
	vmm_range_statistics(model->heap, &figures);
	CHECK(model, figures.size_bytes == model->units * model->granule);
	CHECK(model, figures.free_bytes == free_units * model->granule);
	CHECK(model, figures.largest_free_bytes == largest * model->granule);
	CHECK(model, figures.free_ranges == holes);
	CHECK(model, figures.live_ranges == model->live_count);
	return true;
}

static bool check_ranges(const struct model *model)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < model->live_count; i++) {
		const struct live *live = &model->live[i];

		CHECK(model,
		      vmm_range_offset(model->heap, live->node) == live->start * model->granule);
		CHECK(model,
		      vmm_range_size(model->heap, live->node) == live->size * model->granule);
	}
	for (vmm_range_node node = vmm_range_next(model->heap, VMM_RANGE_NONE);
	     node != VMM_RANGE_NONE; node = vmm_range_next(model->heap, node)) {
		uint64_t size = vmm_range_size(model->heap, node) / model->granule;

		CHECK(model, vmm_range_offset(model->heap, node) == at * model->granule);
		CHECK(model, vmm_range_is_free(model->heap, node) == !model->held[at]);
		CHECK(model,
		      vmm_range_is_free(model->heap, node) == !vmm_range_owner(model->heap, node));
		at += (uint32_t)size;
	}
	CHECK(model, at == model->units);
	return true;
}

static void begin(struct model *model, uint64_t seed)
{
	static const uint32_t units[] = {1, 7, 64, 300, 700, 1500, UNITS_MAX};

	*model = (struct model){.seed = seed, .random = seed * 2 + 1};
	draw(model, 2);
	model->units = units[draw(model, VMM_ARRAY_LENGTH(units))];
	model->size_max = 1 + model->units / (1 + draw(model, 12));
	if (model->units == UNITS_MAX && draw(model, 2)) {
		model->size_max = 8;
		model->cluster = 64 + 2 * draw(model, 4);
	}
	model->granule = draw(model, 2) ? 4096 : 65536;
	model->held[model->units] = true;
}

bool range_model_run(uint64_t seed, uint32_t steps)
{
	static struct model model;
	uint32_t share = 0;
	bool same = true;

	begin(&model, seed);
	if (vmm_range_heap_create(model.units * model.granule, model.granule, &model.heap) !=
	    VMM_OK)
		return differ(&model, "the heap is created", __LINE__);
	for (model.step = 0; same && model.step < steps; model.step++) {
		/* Phases that fill, drain and churn the heap. */
		if (model.step % 128 == 0)
			share = 35 + draw(&model, 4) * 15;
		if (model.live_count == 0 ||
		    (draw(&model, 100) < share && model.live_count < LIVE_MAX))
			same = draw(&model, 8) ? step_allocate(&model) : step_extents(&model);
		else
			step_free(&model);
		vmm_range_check(model.heap);
		same = same && check_figures(&model) && (model.step % 32 || check_ranges(&model));
	}
	while (model.live_count)
		step_free(&model);
	same = same && check_figures(&model);
	vmm_range_heap_destroy(model.heap);
	return same;
}
