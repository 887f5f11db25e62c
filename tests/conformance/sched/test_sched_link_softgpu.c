/* SPDX-License-Identifier: MIT */
/*
 * softgpu as a link of two adapters, each with engine threads (LNK-03, PAG-22, PAG-23, SCH-08,
 * TDR-05).
 */
#include "sched_world.h"

#include <string.h>

enum { ADAPTERS = 2, BYTES = 128 * KIB, COUNT = 12, ROUNDS = 60 };

static const struct vidmm_registry_value linked[] = {{"LinkedAdapters", ADAPTERS}};

struct link {
	struct client client;
	struct client_device device;
	struct client_context context[ADAPTERS];
};

static void open_contexts(struct link *l)
{
	client_open(&l->client, &l->device);
	for (uint32_t i = 0; i < ADAPTERS; i++) {
		l->context[i] = (struct client_context){.device = &l->device,
							.c = {.EngineAffinity = 1u << i}};
		assert_int_equal(
			l->device.cb->pfnCreateContextCb(l->device.handle, &l->context[i].c), S_OK);
	}
}

static void start(struct link *l, void **state, uint64_t seed)
{
	const struct client_options options = {.kind = *(uint32_t *)*state,
					       .seed = seed,
					       .vram_bytes = MIB,
					       .aperture_bytes = 4 * MIB,
					       .registry = linked,
					       .registry_count = 1,
					       .physical_adapters = ADAPTERS};

	client_start(&l->client, &options);
	open_contexts(l);
}

static void stop(struct link *l)
{
	client_close(&l->device);
	client_stop(&l->client);
	assert_int_equal(l->client.findings, 0);
	assert_int_equal(l->client.fatals, 0);
}

static D3DKMT_HANDLE allocate(struct link *l, uint32_t flags, uint32_t segments)
{
	const struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE | flags,
						.size_bytes = BYTES,
						.segment_set = segments};
	D3DKMT_HANDLE a;

	assert_int_equal(client_try_allocate(&l->device, &spec, NULL, &a, NULL), S_OK);
	return a;
}

static void fill(struct link *l, uint32_t engine, D3DKMT_HANDLE a, uint32_t value)
{
	client_fill(&l->context[engine], a, BYTES, value);
	client_submit(&l->context[engine]);
}

/* Compares every word of that part of the locked allocation. */
static void expect(struct link *l, D3DKMT_HANDLE a, uint32_t part, uint32_t value)
{
	const uint32_t *words = client_lock(&l->device, a, 0x1);

	for (uint32_t i = 0; i < BYTES / 4; i++)
		if (words[part * (BYTES / 4) + i] != value)
			fail_msg("word %u of part %u: 0x%x, not 0x%x", i, part,
				 words[part * (BYTES / 4) + i], value);
	assert_int_equal(client_unlock(&l->device, a), S_OK);
}

static void lnk_03_softgpu_starts_as_a_link_if_configured(void **state)
{
	struct client_options options = {.kind = *(uint32_t *)*state,
					 .registry = linked,
					 .registry_count = 1,
					 .physical_adapters = 1};
	struct client client;

	assert_int_equal(client_try_start(&client, &options), STATUS_DEVICE_CONFIGURATION_ERROR);
	client_stop(&client);
	options.registry_count = 0;
	options.physical_adapters = ADAPTERS;
	assert_int_equal(client_try_start(&client, &options), STATUS_NOT_SUPPORTED);
	client_stop(&client);
	options.registry_count = 1;
	client_start(&client, &options);
	client_stop(&client);
}

static void sch_08_each_adapter_accesses_memory_of_the_lead(void **state)
{
	struct link l;

	start(&l, state, 1);
	for (uint32_t segments = 1; segments <= 2; segments++) {
		D3DKMT_HANDLE plain = allocate(&l, 0, segments), other = allocate(&l, 0, 1);
		D3DKMT_HANDLE own = allocate(&l, SOFTGPU_ALLOCATION_LINK_INSTANCED, segments);

		fill(&l, 0, own, 0x50);
		fill(&l, 1, own, 0x51);
		for (uint32_t e = ADAPTERS; e-- > 0;) {
			client_copy(&l.context[e], own, e ? plain : other, BYTES);
			client_submit(&l.context[e]);
		}
		expect(&l, plain, 0, 0x51);
		expect(&l, other, 0, 0x50);
		for (uint32_t e = 0; e < ADAPTERS; e++)
			expect(&l, own, e, 0x50 + e);
		assert_int_equal(client_deallocate(&l.device, plain), S_OK);
		assert_int_equal(client_deallocate(&l.device, own), S_OK);
		assert_int_equal(client_deallocate(&l.device, other), S_OK);
	}
	stop(&l);
}

static uint32_t pattern(uint32_t word)
{
	return 0x2100 + word;
}

/* X tiles of 512 bytes x 8 rows, two side by side. */
static uint32_t in_tiles(uint32_t word)
{
	return word / 2048 * 2048 + word % 256 / 128 * 1024 + word / 256 % 8 * 128 + word % 128;
}

/*
 * A swizzling range of content on the lead shows linear bytes to the CPU only. Both adapters see
 * tiles there.
 */
static void swz_21_each_adapter_sees_tiles_behind_a_swizzling_range_of_the_lead(void **state)
{
	const struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
							 SOFTGPU_ALLOCATION_TILED_X,
						.size_bytes = BYTES,
						.segment_set = 1,
						.stride_bytes = 1024};
	struct link l;
	D3DKMT_HANDLE surface, copy;
	uint32_t *words;

	start(&l, state, 1);
	assert_int_equal(client_try_allocate(&l.device, &spec, NULL, &surface, NULL), S_OK);
	copy = allocate(&l, 0, 2);
	for (uint32_t e = 0; e < ADAPTERS; e++) {
		words = client_lock(&l.device, surface, 0x40);
		for (uint32_t i = 0; i < BYTES / 4; i++)
			words[i] = pattern(i) << e;
		assert_int_equal(client_unlock(&l.device, surface), S_OK);
		client_copy(&l.context[e], surface, copy, BYTES);
		client_submit(&l.context[e]);
		words = client_lock(&l.device, copy, 0x1);
		for (uint32_t i = 0; i < BYTES / 4; i++)
			if (words[in_tiles(i)] != pattern(i) << e)
				fail_msg("adapter %u, word %u: 0x%x", e, i, words[in_tiles(i)]);
		assert_int_equal(client_unlock(&l.device, copy), S_OK);
	}
	stop(&l);
}

static uint32_t pick(uint64_t *random, uint32_t count)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33) % count;
}

struct thing {
	D3DKMT_HANDLE handle;
	uint32_t flags, value[ADAPTERS];
};

static void touch(struct link *l, struct thing *t, uint64_t *random, uint32_t value)
{
	uint32_t engine = pick(random, ADAPTERS);

	if (t->flags == SOFTGPU_ALLOCATION_LINK_INSTANCED) {
		fill(l, engine, t->handle, t->value[engine] = value);
	} else if (t->flags) { /* the driver keeps its copies equal */
		for (engine = 0; engine < ADAPTERS; engine++)
			fill(l, engine, t->handle, value);
		t->value[0] = value;
	} else {
		expect(l, t->handle, 0, t->value[0]); /* no other client uses it now */
		fill(l, engine, t->handle, t->value[0] = value);
	}
}

static void look(struct link *l, const struct thing *t)
{
	for (uint32_t i = 0; i < (t->flags == SOFTGPU_ALLOCATION_LINK_INSTANCED ? ADAPTERS : 1);
	     i++)
		expect(l, t->handle, i, t->value[i]);
}

static void pag_22_pag_23_content_survives_memory_pressure_on_both_adapters(void **state)
{
	static const uint32_t flags[] = {SOFTGPU_ALLOCATION_LINK_MIRRORED,
					 SOFTGPU_ALLOCATION_LINK_INSTANCED, 0};
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};
	struct thing things[COUNT];

	for (uint64_t seed = 1; seed <= 3; seed++) {
		uint64_t random = seed;
		struct link l;

		start(&l, state, seed);
		for (uint32_t i = 0; i < COUNT; i++)
			things[i] =
				(struct thing){.handle = allocate(&l, flags[i % 3], i % 4 ? 1 : 3),
					       .flags = flags[i % 3]};
		for (uint32_t round = 0; round < ROUNDS; round++) {
			touch(&l, &things[pick(&random, COUNT)], &random, 0x1000 + round);
			if (!pick(&random, 4))
				look(&l, &things[pick(&random, COUNT)]);
			vidmm_adapter_check(l.client.adapter);
		}
		for (uint32_t i = 0; i < COUNT; i++) {
			look(&l, &things[i]);
			assert_int_equal(client_deallocate(&l.device, things[i].handle), S_OK);
		}
		vidmm_adapter_statistics(l.client.adapter, &figures);
		assert_true(figures.evictions > COUNT);
		stop(&l);
	}
}

static void tdr_05_a_hang_on_the_other_adapter_resets_both(void **state)
{
	const struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct link l;

	start(&l, state, 1);
	D3DKMT_HANDLE a = allocate(&l, SOFTGPU_ALLOCATION_LINK_INSTANCED, 1);
	fill(&l, 0, a, 0x50);
	client_command(&l.context[1], &hang, sizeof(hang));
	client_reference(&l.context[1], a, false);
	client_submit(&l.context[1]);
	client_idle(&l.client);
	client_close(&l.device);
	open_contexts(&l);
	a = allocate(&l, SOFTGPU_ALLOCATION_LINK_INSTANCED, 1);
	for (uint32_t e = 0; e < ADAPTERS; e++)
		fill(&l, e, a, 0x60 + e);
	for (uint32_t e = 0; e < ADAPTERS; e++)
		expect(&l, a, e, 0x60 + e);
	stop(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(lnk_03_softgpu_starts_as_a_link_if_configured),
		ON_BOTH(sch_08_each_adapter_accesses_memory_of_the_lead),
		ON_BOTH(swz_21_each_adapter_sees_tiles_behind_a_swizzling_range_of_the_lead),
		ON_BOTH(pag_22_pag_23_content_survives_memory_pressure_on_both_adapters),
		ON_SIM(tdr_05_a_hang_on_the_other_adapter_resets_both),
	};

	return cmocka_run_group_tests_name("sched_link_softgpu", tests, NULL, NULL);
}
