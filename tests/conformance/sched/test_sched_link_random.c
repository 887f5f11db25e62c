/* SPDX-License-Identifier: MIT */
/*
 * Content on the adapters of a link against a model, under memory pressure, with clients on
 * threads. The CPU must see what a GPU or the CPU wrote last, in each copy that holds it (PAG-22,
 * PAG-23, PAG-12, PAG-17, LOCK-05).
 */
#include "link_world.h"

#include <string.h>

enum { CLIENTS = 3, ALLOCATIONS = 10, WORDS = 24, ROUNDS = 400, NODES = 4 };
enum { PERMANENT = 0x2, SYNCHRONOUS = 0x800, READ_ONLY = 0x1 };
enum { HIDDEN = 0x4, HIDDEN_ID = 3 };

struct thing {
	D3DKMT_HANDLE handle;
	uint32_t flags, pages;
	/* the expected bytes; one row unless it is LinkInstanced */
	uint32_t word[LINK_ADAPTERS][WORDS];
	/*
	 * Packets of several contexts have no order: until the CPU has waited for them, only one of
	 * them may write.
	 */
	uint32_t writer; /* LINK_ADAPTERS: no context yet; + 1: all of them, with the same value */
};

struct racer {
	struct world *w;
	struct client_device device;
	struct client_context context[LINK_ADAPTERS];
	struct thing things[ALLOCATIONS];
	uint64_t random;
	uint32_t locks, writes;
	_Atomic bool done;
};

static uint32_t pick(struct racer *r, uint32_t count)
{
	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->random >> 33) % count;
}

/* Little memory, small buffers of different sizes, transfers in pieces. */
static void little_memory(struct scripted_miniport *m)
{
	link_setup(m);
	m->settings.complete_at_once = false;
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes = 256 * KIB;
	m->settings.segment[1].size_bytes = m->settings.segment[1].commit_limit_bytes = 256 * KIB;
	m->settings.segment_count = HIDDEN_ID;
	m->settings.segment[HIDDEN_ID - 1] =
		(struct scripted_segment){.base = (uint64_t)512 * MIB,
					  .size_bytes = 128 * KIB,
					  .commit_limit_bytes = 128 * KIB};
	m->settings.paging_bytes = 2048;
	m->settings.transfer_chunk_bytes = 10000;
}

static uint32_t parts_of(const struct thing *t)
{
	return t->flags & LINK_INSTANCED ? LINK_ADAPTERS : 1;
}

static uint64_t offset_of(const struct thing *t, uint32_t word)
{
	return ((uint64_t)word * t->pages * PAGE_BYTES / WORDS) & ~(uint64_t)3;
}

static void make(struct racer *r, struct thing *t)
{
	static const uint32_t flags[] = {0,
					 LINK_MIRRORED,
					 LINK_INSTANCED,
					 LINK_MIRRORED,
					 LINK_INSTANCED,
					 LINK_MIRRORED | PERMANENT,
					 LINK_INSTANCED | PERMANENT,
					 LINK_MIRRORED | SYNCHRONOUS,
					 LINK_INSTANCED | SYNCHRONOUS};
	static const uint32_t sets[] = {WORLD_MEMORY, HIDDEN, WORLD_MEMORY | HIDDEN,
					WORLD_MEMORY | WORLD_APERTURE, WORLD_APERTURE};
	uint32_t read = sets[pick(r, 5)], write = pick(r, 2) ? read : sets[pick(r, 5)];

	*t = (struct thing){
		.flags = flags[pick(r, 9)], .pages = 1 + pick(r, 12), .writer = LINK_ADAPTERS};
	const struct scripted_allocation spec = {
		.size_bytes = t->pages * PAGE_BYTES,
		.flags = WORLD_CPU_VISIBLE | t->flags,
		.read_set = read,
		.write_set = write,
		.eviction_set = pick(r, 4) ? 0 : WORLD_APERTURE,
	};
	t->handle = world_allocate_as(&r->device, &spec);
}

static void submit_write(struct racer *r, struct thing *t, uint32_t engine, uint32_t word,
			 uint32_t value)
{
	struct client_context *context = &r->context[engine];

	world_write(context, t->handle, offset_of(t, word), value);
	client_submit(context);
	r->writes++;
}

static void gpu_writes(struct racer *r, struct thing *t)
{
	uint32_t word = pick(r, WORDS), value = pick(r, UINT32_MAX),
		 engine = pick(r, LINK_ADAPTERS);

	if (t->flags & LINK_INSTANCED) {
		submit_write(r, t, engine, word, value);
		t->word[engine][word] = value;
		return;
	}
	if (t->writer == LINK_ADAPTERS)
		t->writer = (t->flags & LINK_MIRRORED) ? pick(r, LINK_ADAPTERS + 2) : engine;
	if (t->writer < LINK_ADAPTERS) {
		submit_write(r, t, t->writer, word, value);
	} else {
		t->writer = LINK_ADAPTERS + 1;
		for (engine = 0; engine < LINK_ADAPTERS; engine++)
			submit_write(r, t, engine, word, value);
	}
	t->word[0][word] = value;
}

static void expect_word(const struct thing *t, const char *bytes, uint32_t part, uint32_t word)
{
	uint32_t seen;

	memcpy(&seen, bytes + (uint64_t)part * t->pages * PAGE_BYTES + offset_of(t, word),
	       sizeof(seen));
	if (seen != t->word[part][word])
		fail_msg("flags 0x%x, %u pages, part %u, word %u at 0x%llx: 0x%x, not 0x%x",
			 t->flags, t->pages, part, word, (unsigned long long)offset_of(t, word),
			 seen, t->word[part][word]);
}

static void cpu_compares(struct racer *r, struct thing *t)
{
	bool writes = pick(r, 2);
	D3DKMT_HANDLE handle = t->handle;
	void *data;

	assert_int_equal(client_try_lock(&r->device, &handle, writes ? 0 : READ_ONLY, &data), S_OK);
	for (uint32_t part = 0; part < parts_of(t); part++)
		for (uint32_t word = 0; word < WORDS; word++)
			expect_word(t, data, part, word);
	for (uint32_t i = 0; writes && i < 3; i++) {
		uint32_t part = pick(r, parts_of(t)), word = pick(r, WORDS);

		t->word[part][word] = pick(r, UINT32_MAX);
		memcpy((char *)data + (uint64_t)part * t->pages * PAGE_BYTES + offset_of(t, word),
		       &t->word[part][word], sizeof(uint32_t));
	}
	assert_int_equal(client_unlock(&r->device, handle), S_OK);
	t->writer = LINK_ADAPTERS;
	r->locks++;
}

static void race(void *argument)
{
	struct racer *r = argument;

	for (uint32_t i = 0; i < ALLOCATIONS; i++)
		make(r, &r->things[i]);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct thing *t = &r->things[pick(r, ALLOCATIONS)];
		uint32_t what = pick(r, 20);

		if (what < 8) {
			gpu_writes(r, t);
		} else if (what < 12) {
			/* The segment in which it may be read may be another one. */
			world_submit_use(&r->context[pick(r, LINK_ADAPTERS)], t->handle);
		} else if (what < 19) {
			cpu_compares(r, t);
		} else {
			assert_int_equal(client_deallocate(&r->device, t->handle), S_OK);
			make(r, t);
		}
	}
	for (uint32_t i = 0; i < ALLOCATIONS; i++) {
		cpu_compares(r, &r->things[i]);
		assert_int_equal(client_deallocate(&r->device, r->things[i].handle), S_OK);
	}
	atomic_store(&r->done, true);
}

/* Completes one packet at a time, of any node in any order. */
static void complete_at_random(struct world *w, struct racer *all)
{
	struct racer chance = {.random = 77};
	bool busy = true;

	for (uint32_t round = 0; busy; round++) {
		scripted_complete(w->m, pick(&chance, NODES), 1 + pick(&chance, 3));
		vidmm_settle(w->client.host);
		if (round % 256 == 0)
			vidmm_adapter_check(w->client.adapter);
		busy = false;
		for (uint32_t i = 0; i < CLIENTS; i++)
			busy |= !atomic_load(&all[i].done);
	}
}

static void run(void **state, uint64_t seed, struct vidmm_adapter_statistics *figures)
{
	struct vidmm_thread *thread[CLIENTS];
	static struct racer racer[CLIENTS];
	const struct client_options options = {.seed = seed, .switch_per_1024 = 200};
	struct world w;

	world_start_with(&w, state, little_memory, &options);
	w.client.racing = true;
	for (uint32_t i = 0; i < CLIENTS; i++) {
		racer[i] = (struct racer){.w = &w, .random = seed * 1000 + i};
		client_open(&w.client, &racer[i].device);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
			link_context(&racer[i].device, i % 2, e, &racer[i].context[e]);
	}
	for (uint32_t i = 0; i < CLIENTS; i++)
		assert_int_equal(
			vidmm_thread_create(w.client.host, "racer", race, &racer[i], &thread[i]),
			0);
	complete_at_random(&w, racer);
	for (uint32_t i = 0; i < CLIENTS; i++)
		vidmm_thread_join(thread[i]);
	world_run(&w);
	w.m->settings.complete_at_once = true;
	vidmm_adapter_statistics(w.client.adapter, figures);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		assert_true(racer[i].locks > ROUNDS / 5 && racer[i].writes > ROUNDS / 4);
		client_close(&racer[i].device);
	}
	world_stop_adapter(&w);
	scripted_destroy(link_second);
}

static void pag_22_pag_23_random_content_on_linked_adapters_matches_the_model(void **state)
{
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};
	uint32_t seeds = *(uint32_t *)*state == VIDMM_HOST_SIM ? 6 : 2;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		run(state, seed, &figures);
		/* Memory was short. */
		assert_true(figures.evictions > 100);
		assert_true(figures.bytes_paged_out > MIB);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pag_22_pag_23_random_content_on_linked_adapters_matches_the_model),
	};

	return cmocka_run_group_tests_name("sched_link_random", tests, NULL, NULL);
}
