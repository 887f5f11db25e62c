/* SPDX-License-Identifier: MIT */
/*
 * Random use of GPU virtual addresses by two clients with little video memory, compared with a
 * model of what each 1 KiB block contains. Pages are mapped and replaced one by one, or as a whole
 * allocation, in a window of addresses, so the TLBs have translations of both sizes to lose. With
 * hardware queues, a command of one client may run, and be suspended, while the other one works. A
 * third client lists small allocations and takes them off again, which leaves holes between the
 * others: placements have several extents.
 */
#include "gva_client.h"

#include <string.h>

enum { CLIENTS = 2, ALLOCATIONS = 3, PAGES = 128, BLOCKS = PAGES * 4, STEPS = 250, SMALL = 6 };
#define BLOCK KIB

struct model {
	struct gva_client c;
	D3DKMT_HANDLE allocation[ALLOCATIONS];
	uint32_t content[ALLOCATIONS][BLOCKS];
	/* a window of PAGES pages: the allocation of each, -1: none, and the page in it */
	uint64_t window;
	int32_t owner[PAGES];
	uint32_t page[PAGES];
	struct gva_hw hw[2];    /* queue 0: there are none */
	struct gva_hw *running; /* the queue with a command that was not waited for */
};

/* The client with the small allocations. */
struct breaker {
	struct gva_client c;
	D3DKMT_HANDLE allocation[SMALL];
	bool listed[SMALL];
};

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % limit;
}

static void map(struct model *m, uint32_t at, uint32_t allocation, uint32_t page, uint32_t count)
{
	D3DDDI_MAPGPUVIRTUALADDRESS args = {.BaseAddress = m->window + at * PAGE,
					    .hAllocation = m->allocation[allocation],
					    .OffsetInPages = page,
					    .SizeInPages = count,
					    .Protection.Write = 1};

	gva_map_args(&m->c, &args);
	for (uint32_t i = 0; i < count; i++) {
		m->owner[at + i] = (int32_t)allocation;
		m->page[at + i] = page + i;
	}
}

/* Has what was written executed, by a virtual context or a hardware queue. */
static void execute(struct model *m)
{
	struct gva_hw *hw = &m->hw[below(2)];
	uint32_t how = hw->queue ? below(3) : 0;

	if (how == 0) {
		gva_run(&m->c, below(2));
		return;
	}
	if (how == 1)
		gva_stall(&m->c, 1000000 * below(4));
	gva_hw_submit(hw);
	m->running = hw;
}

static void finish(struct model *m)
{
	if (!m->running)
		return;
	gva_hw_wait(m->running);
	m->c.start = m->c.used = 0;
	m->running = NULL;
}

static void open_model(struct client *host, struct model *m, bool hw_queues)
{
	*m = (struct model){0};
	gva_open(host, &m->c);
	for (uint32_t node = 0; hw_queues && node < 2; node++)
		gva_hw_open(&m->c, node, NULL, &m->hw[node]);
	m->window = gva_reserve(&m->c, PAGES * PAGE, D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_ACCESS);
	for (uint32_t a = 0; a < ALLOCATIONS; a++) {
		/* With hardware queues all are in video memory, which has one list at a time. */
		uint32_t segments = a && !hw_queues ? GVA_VRAM | GVA_APERTURE : GVA_VRAM;

		/* Of different sizes, so that none fits exactly where another one was. */
		m->allocation[a] = gva_allocate(&m->c, (PAGES + 24 * a) * PAGE, segments);
		gva_make_resident(&m->c, m->allocation[a]);
		map(m, 0, a, 0, PAGES);
		gva_fill(&m->c, m->window, PAGES * PAGE, a);
		gva_run(&m->c, 0);
		for (uint32_t b = 0; b < BLOCKS; b++)
			m->content[a][b] = a;
	}
}

static uint32_t *block(struct model *m, uint32_t index)
{
	uint32_t page = index / 4;

	return &m->content[m->owner[page]][m->page[page] * 4 + index % 4];
}

static void fill(struct model *m, uint32_t word)
{
	uint32_t first = below(BLOCKS), count = 1 + below(BLOCKS - first);

	gva_fill(&m->c, m->window + first * BLOCK, count * BLOCK, word);
	for (uint32_t i = 0; i < count; i++)
		*block(m, first + i) = word;
	execute(m);
}

/* Block by block, because the ranges of one command must not overlap in memory. */
static void copy(struct model *m)
{
	uint32_t count = 1 + below(16), from = below(BLOCKS - count), to = below(BLOCKS - count);

	for (uint32_t i = 0; i < count; i++) {
		if (block(m, from + i) == block(m, to + i))
			continue;
		gva_copy(&m->c, m->window + (from + i) * BLOCK, m->window + (to + i) * BLOCK,
			 BLOCK);
		*block(m, to + i) = *block(m, from + i);
	}
	execute(m);
}

static void check(struct model *m, uint32_t allocation)
{
	const char *data = gva_lock(&m->c, m->allocation[allocation]);

	for (uint32_t b = 0; b < BLOCKS; b++)
		for (uint32_t i = 0; i < BLOCK; i += 4) {
			uint32_t found;

			memcpy(&found, data + b * BLOCK + i, sizeof(found));
			assert_int_equal(found, m->content[allocation][b]);
		}
	gva_unlock(&m->c, m->allocation[allocation]);
}

static void step(struct model *m, uint32_t word)
{
	uint32_t allocation = below(ALLOCATIONS), at = below(PAGES), count = 1 + below(24);

	finish(m);
	switch (below(8)) {
	case 0:
		map(m, 0, allocation, 0, PAGES);
		break;
	case 1:
		map(m, at, allocation, below(PAGES), 1);
		break;
	case 2:
		count = count < PAGES - at ? count : PAGES - at;
		map(m, at, allocation, below(PAGES - count + 1), count);
		break;
	case 3:
		gva_evict(&m->c, m->allocation[allocation]);
		gva_make_resident(&m->c, m->allocation[allocation]);
		break;
	case 4:
		check(m, allocation);
		break;
	case 5:
		copy(m);
		break;
	default:
		fill(m, word);
	}
}

static void open_breaker(struct client *host, struct breaker *b)
{
	*b = (struct breaker){0};
	gva_open(host, &b->c);
	for (uint32_t i = 0; i < SMALL; i++)
		b->allocation[i] = gva_allocate(&b->c, (1 + below(24)) * PAGE, GVA_VRAM);
}

static void break_up(struct breaker *b)
{
	uint32_t i = below(SMALL);

	if (b->listed[i])
		gva_evict(&b->c, b->allocation[i]);
	else
		gva_make_resident(&b->c, b->allocation[i]);
	b->listed[i] = !b->listed[i];
}

/* Returns the number of extents, of placements that have several. */
static uint64_t run(void **state, uint64_t seed, const struct gva_options *options)
{
	static struct model m[CLIENTS];
	struct vidmm_counter extents;
	struct breaker breaker;
	struct client host;

	random_state = seed;
	gva_start(&host, state, options);
	for (uint32_t i = 0; i < CLIENTS; i++)
		open_model(&host, &m[i], options->hw_queues != 0);
	open_breaker(&host, &breaker);
	for (uint32_t i = 0; i < STEPS; i++) {
		step(&m[below(CLIENTS)], 0x1000 + i);
		if (below(4) == 0)
			break_up(&breaker);
	}
	for (uint32_t i = 0; i < CLIENTS; i++)
		finish(&m[i]);
	vidmm_adapter_check(host.adapter);
	for (uint32_t i = 0; i < CLIENTS; i++)
		for (uint32_t a = 0; a < ALLOCATIONS; a++)
			check(&m[i], a);
	for (uint32_t i = 0; i < CLIENTS; i++)
		gva_close(&m[i].c);
	gva_close(&breaker.c);
	vidmm_event_counter(host.host, VIDMM_EVENT_EXTENT, &extents);
	gva_stop(&host);
	return extents.count;
}

/* Each client has 1.8 MiB, and budgets allow for that; both together do not fit. */
static void va_13_each_address_has_its_content_whatever_moves(void **state)
{
	uint64_t extents = 0;

	for (uint64_t seed = 1; seed <= 6; seed++)
		extents += run(state, seed,
			       &(struct gva_options){.vram_bytes = 2560 * KIB,
						     .levels = seed % 2 ? 4 : 2,
						     .version = seed % 3 ? 0 : 0x6003,
						     .lru = true});
	assert_in_range(extents, 100, UINT64_MAX);
}

static void sch_11_suspended_commands_keep_their_content(void **state)
{
	uint64_t extents = 0;

	for (uint64_t seed = 1; seed <= 6; seed++)
		extents += run(
			state, seed,
			&(struct gva_options){.vram_bytes = 2560 * KIB,
					      .levels = seed % 2 ? 4 : 2,
					      .hw_queues = SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES,
					      .preemption = seed % 3 == 0});
	assert_in_range(extents, 100, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(va_13_each_address_has_its_content_whatever_moves),
		ON_BOTH(sch_11_suspended_commands_keep_their_content),
	};

	return cmocka_run_group_tests_name("softgpu_random", tests, NULL, NULL);
}
