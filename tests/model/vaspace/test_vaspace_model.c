/* SPDX-License-Identifier: MIT */
/*
 * The address space against an array with one entry per page: same results and same content after
 * each step.
 */
#include "support/test.h"

#include "vaspace/vaspace.h"

#define PAGE    VMM_PAGE_SIZE
#define LOW     16u /* pages */
#define HIGH    400u
#define OBJECTS 4u

struct page {
	uint32_t range; /* 0: free; else the number of the range, from 1 */
	enum vmm_va_kind kind;
	uint32_t object;
	uint64_t offset;
};

struct model {
	struct vmm_vaspace *space;
	struct page page[HIGH + 1];
	struct vmm_list list[OBJECTS];
	uint32_t ranges;
	uint64_t seed;
};

static uint32_t draw(struct model *m, uint32_t below)
{
	m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m->seed >> 33) % below;
}

static bool is_free(const struct model *m, uint32_t base, uint32_t size)
{
	if (base < LOW || base + size > HIGH)
		return false;
	for (uint32_t i = base; i < base + size; i++)
		if (m->page[i].range)
			return false;
	return true;
}

static uint32_t first_fit(const struct model *m, uint32_t minimum, uint32_t maximum, uint32_t size,
			  uint32_t alignment)
{
	for (uint32_t base = 0; base <= HIGH; base += alignment)
		if (base >= minimum && base + size <= maximum && is_free(m, base, size))
			return base;
	return 0;
}

static struct vmm_va_content some_content(struct model *m)
{
	struct vmm_va_content c = {.kind = (enum vmm_va_kind)draw(m, 3)};

	if (c.kind != VMM_VA_MAPPED)
		return c;
	uint32_t object = draw(m, OBJECTS);
	c.object = &m->list[object];
	c.list = &m->list[object];
	c.offset = draw(m, 64) * PAGE;
	return c;
}

static void fill(struct model *m, uint32_t base, uint32_t size, const struct vmm_va_content *c)
{
	for (uint32_t i = 0; i < size; i++) {
		struct page *p = &m->page[base + i];

		p->kind = c->kind;
		p->object = c->kind == VMM_VA_MAPPED ? (uint32_t)(c->list - m->list) : 0;
		p->offset = c->kind == VMM_VA_MAPPED ? c->offset + i * PAGE : 0;
	}
}

static void take(struct model *m)
{
	const struct vmm_va_content content = some_content(m);
	bool fixed = draw(m, 2);
	uint32_t size = 1 + draw(m, 24), alignment = 1u << draw(m, 5), minimum = draw(m, HIGH),
		 maximum = draw(m, 3) ? 1 + draw(m, HIGH + 40) : 0, base = 1 + draw(m, HIGH + 8);
	const struct vmm_va_request request = {.base = fixed ? base * PAGE : 0,
					       .minimum = minimum * PAGE,
					       .maximum = maximum * PAGE,
					       .size = size * PAGE,
					       .alignment = alignment * PAGE};
	struct vmm_va_range *range = NULL;
	vmm_status status = vmm_vaspace_take(m->space, &request, VMM_VA_BY_MAP, &range);

	if (!fixed)
		base = first_fit(m, minimum, maximum ? maximum : HIGH, size, alignment);
	if (fixed ? !is_free(m, base, size) : !base) {
		assert_int_equal(status, fixed ? VMM_INVALID_PARAMETER : VMM_NO_MEMORY);
		assert_null(range);
		return;
	}
	assert_int_equal(status, VMM_OK);
	assert_int_equal(range->base, base * PAGE);
	assert_int_equal(range->size, size * PAGE);
	vmm_vaspace_fill(m->space, range, &content);
	m->ranges++;
	for (uint32_t i = base; i < base + size; i++)
		m->page[i].range = m->ranges;
	fill(m, base, size, &content);
}

/* A range and a part of it. */
static bool pick(struct model *m, uint32_t *base, uint32_t *size, bool whole)
{
	uint32_t at = draw(m, HIGH), first = at, end = at;

	if (!m->page[at].range)
		return false;
	while (m->page[first - 1].range == m->page[at].range)
		first--;
	while (m->page[end].range == m->page[at].range)
		end++;
	*base = whole ? first : first + draw(m, end - first);
	*size = whole ? end - first : 1 + draw(m, end - *base);
	return true;
}

static void set(struct model *m)
{
	const struct vmm_va_content content = some_content(m);
	uint32_t base, size;

	if (!pick(m, &base, &size, false))
		return;
	assert_non_null(vmm_vaspace_range(m->space, base * PAGE, size * PAGE));
	if (!draw(m, 8)) {
		vmm_calloc_fail_after(1 + draw(m, 3));
		assert_int_equal(vmm_vaspace_set(m->space, base * PAGE, size * PAGE, &content),
				 VMM_NO_MEMORY);
		vmm_calloc_fail_after(0);
		return;
	}
	assert_int_equal(vmm_vaspace_set(m->space, base * PAGE, size * PAGE, &content), VMM_OK);
	fill(m, base, size, &content);
}

static void release(struct model *m)
{
	uint32_t base, size;

	if (!pick(m, &base, &size, true))
		return;
	vmm_vaspace_release(m->space, vmm_vaspace_range(m->space, base * PAGE, size * PAGE));
	for (uint32_t i = base; i < base + size; i++)
		m->page[i] = (struct page){0};
}

static void end_object(struct model *m)
{
	uint32_t object = draw(m, OBJECTS);
	struct vmm_list *list = &m->list[object];

	while (!vmm_list_empty(list))
		vmm_vaspace_unmap_piece(m->space,
					vmm_container_of(list->next, struct vmm_va_piece, link));
	for (uint32_t i = 0; i < HIGH; i++)
		if (m->page[i].kind == VMM_VA_MAPPED && m->page[i].object == object)
			m->page[i] = (struct page){.range = m->page[i].range};
}

static void compare(const struct model *m)
{
	vmm_vaspace_check(m->space);
	for (uint32_t i = 0; i < HIGH; i++) {
		const struct page *p = &m->page[i];
		const struct vmm_va_piece *piece = vmm_vaspace_piece(m->space, i * PAGE);
		bool covered = piece && piece->base <= i * PAGE;

		assert_int_equal(covered, p->range != 0);
		assert_int_equal(vmm_vaspace_is_taken(m->space, i * PAGE, PAGE), covered);
		if (!covered)
			continue;
		assert_int_equal(piece->content.kind, p->kind);
		if (p->kind != VMM_VA_MAPPED)
			continue;
		assert_ptr_equal(piece->content.object, &m->list[p->object]);
		assert_int_equal(piece->content.offset + (i * PAGE - piece->base), p->offset);
	}
	/* Two adjacent ranges stay two; an area across both is in neither. */
	for (uint32_t i = LOW; i + 1 < HIGH; i++)
		assert_int_equal(m->page[i].range && m->page[i].range == m->page[i + 1].range,
				 vmm_vaspace_range(m->space, i * PAGE, 2 * PAGE) != NULL);
}

static void run(uint64_t seed)
{
	struct model m = {.seed = seed};

	for (uint32_t i = 0; i < OBJECTS; i++)
		vmm_list_init(&m.list[i]);
	assert_int_equal(vmm_vaspace_create(LOW * PAGE, HIGH * PAGE, &m.space), VMM_OK);
	for (uint32_t step = 0; step < 400; step++) {
		switch (draw(&m, 12)) {
		case 0:
			end_object(&m);
			break;
		case 1:
		case 2:
			release(&m);
			break;
		case 3:
		case 4:
		case 5:
		case 6:
			set(&m);
			break;
		default:
			take(&m);
			break;
		}
		compare(&m);
	}
	vmm_vaspace_destroy(m.space);
}

static void va_02_va_03_va_09_random_operations_match_an_array_of_pages(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++)
		run(seed);
}

/* VA-02: an exactly full window, then one more; the last byte of 64 bits is not passed. */
static void va_02_a_narrow_window_is_filled_exactly(void **state)
{
	struct vmm_va_request request = {
		.minimum = 100 * PAGE, .maximum = 108 * PAGE, .size = 2 * PAGE, .alignment = PAGE};
	struct vmm_vaspace *space;
	struct vmm_va_range *range;

	(void)state;
	assert_int_equal(vmm_vaspace_create(PAGE, (uint64_t)1 << 57, &space), VMM_OK);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(vmm_vaspace_take(space, &request, VMM_VA_BY_RESERVE, &range),
				 VMM_OK);
		assert_int_equal(range->base, (100 + 2 * i) * PAGE);
	}
	assert_int_equal(vmm_vaspace_take(space, &request, VMM_VA_BY_RESERVE, &range),
			 VMM_NO_MEMORY);
	request = (struct vmm_va_request){
		.base = ((uint64_t)1 << 57) - PAGE, .size = 2 * PAGE, .alignment = PAGE};
	assert_int_equal(vmm_vaspace_take(space, &request, VMM_VA_BY_RESERVE, &range),
			 VMM_INVALID_PARAMETER);
	request = (struct vmm_va_request){
		.base = UINT64_MAX - PAGE + 1, .size = 2 * PAGE, .alignment = PAGE};
	assert_int_equal(vmm_vaspace_take(space, &request, VMM_VA_BY_RESERVE, &range),
			 VMM_INVALID_PARAMETER);
	request = (struct vmm_va_request){.size = UINT64_MAX - PAGE + 1, .alignment = PAGE};
	assert_int_equal(vmm_vaspace_take(space, &request, VMM_VA_BY_RESERVE, &range),
			 VMM_NO_MEMORY);
	vmm_vaspace_destroy(space);
	assert_int_equal(vmm_vaspace_create(PAGE, PAGE, &space), VMM_INVALID_PARAMETER);
}

/* ---- many ranges: a tree of several levels, against an array with the range of each page ---- */

enum { MANY_HIGH = 8192, MANY_STEPS = 12000 }; /* pages */

struct many {
	struct vmm_vaspace *space;
	struct vmm_va_range *range[MANY_HIGH]; /* of the page; NULL: free */
	uint64_t seed;
};

static uint32_t draw_many(struct many *m, uint32_t below)
{
	struct model random = {.seed = m->seed};
	uint32_t result = draw(&random, below);

	m->seed = random.seed;
	return result;
}

/* The lowest free place; 0: there is none. */
static uint32_t lowest_of_many(const struct many *m, uint32_t minimum, uint32_t size)
{
	uint32_t free = 0;

	for (uint32_t i = vmm_max_u64(minimum, LOW); i < MANY_HIGH; i++) {
		free = m->range[i] ? 0 : free + 1;
		if (free == size)
			return i + 1 - size;
	}
	return 0;
}

static void take_of_many(struct many *m)
{
	uint32_t size = 1 + draw_many(m, 4),
		 minimum = draw_many(m, 4) ? 0 : draw_many(m, MANY_HIGH);
	const struct vmm_va_request request = {
		.minimum = minimum * PAGE, .size = size * PAGE, .alignment = PAGE};
	bool fails = !draw_many(m, 16);
	struct vmm_va_range *range = NULL;

	vmm_calloc_fail_after(fails ? 1 + draw_many(m, 2) : 0);
	vmm_status status = vmm_vaspace_take(m->space, &request, VMM_VA_BY_RESERVE, &range);
	vmm_calloc_fail_after(0);
	uint32_t base = fails ? 0 : lowest_of_many(m, minimum, size);
	assert_int_equal(status, base ? VMM_OK : VMM_NO_MEMORY);
	if (!base)
		return;
	assert_int_equal(range->base, base * PAGE);
	for (uint32_t i = base; i < base + size; i++)
		m->range[i] = range;
}

static void release_of_many(struct many *m)
{
	uint32_t at = draw_many(m, MANY_HIGH);
	struct vmm_va_range *range = m->range[at];

	assert_ptr_equal(vmm_vaspace_range(m->space, at * PAGE, PAGE), range);
	if (!range)
		return;
	uint64_t base = range->base / PAGE, end = base + range->size / PAGE;
	vmm_vaspace_release(m->space, range);
	for (uint64_t i = base; i < end; i++)
		m->range[i] = NULL;
}

/* The number of ranges rises and falls, so that nodes of each level split and merge. */
static void va_02_va_09_the_lowest_free_place_among_thousands_of_ranges(void **state)
{
	static struct many m;

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		m = (struct many){.seed = seed};
		assert_int_equal(vmm_vaspace_create(LOW * PAGE, MANY_HIGH * PAGE, &m.space),
				 VMM_OK);
		for (uint32_t step = 0; step < MANY_STEPS; step++) {
			bool rising = step / (MANY_STEPS / 4) % 2 == 0;

			if (draw_many(&m, 8) < (rising ? 7u : 1u))
				take_of_many(&m);
			else
				release_of_many(&m);
			if (step % 100 == 0)
				vmm_vaspace_check(m.space);
		}
		for (uint32_t i = 0; i < MANY_HIGH; i++) {
			const struct vmm_va_range *next = vmm_vaspace_next_range(m.space, i * PAGE);

			assert_true(next == m.range[i] || (next && !m.range[i]));
		}
		vmm_vaspace_destroy(m.space);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(va_02_va_03_va_09_random_operations_match_an_array_of_pages),
		cmocka_unit_test(va_02_a_narrow_window_is_filled_exactly),
		cmocka_unit_test(va_02_va_09_the_lowest_free_place_among_thousands_of_ranges),
	};

	return cmocka_run_group_tests_name("vaspace_model", tests, NULL, NULL);
}
