/* SPDX-License-Identifier: MIT */
#include "random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_BYTES   (256u * KIB)
#define HIDDEN_BYTES   (128u * KIB)
#define APERTURE_BYTES (384u * KIB)

static const uint32_t versions[VERSIONS] = {
	DXGKDDI_INTERFACE_VERSION_VISTA,   DXGKDDI_INTERFACE_VERSION_WDDM2_0,
	DXGKDDI_INTERFACE_VERSION_WIN7,    DXGKDDI_INTERFACE_VERSION_WDDM2_1,
	DXGKDDI_INTERFACE_VERSION_WIN8,    DXGKDDI_INTERFACE_VERSION_WDDM2_9,
	DXGKDDI_INTERFACE_VERSION_WDDM1_3, DXGKDDI_INTERFACE_VERSION_WDDM3_0,
};

void random_wrong(const struct random *r, const struct item *item, const char *what, uint64_t got)
{
	fail_msg("seed %" PRIu64 ", step %" PRIu64
		 ", version 0x%x, %s of item %d (handle 0x%x, flags 0x%x, sets 0x%x, %u bytes): %s "
		 "(0x%" PRIx64 "); last finding: %s",
		 r->seed, r->step, r->version, r->what ? r->what : "start",
		 item ? (int)(item - r->item) : -1, item ? item->handle : 0,
		 item ? item->spec.flags : 0, item ? item->spec.read_set : 0,
		 item ? item->bytes : 0, what, got,
		 r->w.client.findings ? r->w.client.finding[0] : "none");
}

bool random_expect(struct random *r, enum random_kind kind, const struct item *item, HRESULT result,
		   const HRESULT *others)
{
	if (result == S_OK) {
		r->done[kind]++;
		return true;
	}
	while (*others != S_OK && *others != result)
		others++;
	if (*others == S_OK)
		random_wrong(r, item, "unexpected result", (uint32_t)result);
	r->refused[kind]++;
	client_forget(&r->w.client);
	return false;
}

struct item *random_item(struct random *r)
{
	uint32_t start = draw(r, ITEMS);

	for (uint32_t i = 0; i < ITEMS; i++)
		if (r->item[(start + i) % ITEMS].handle)
			return &r->item[(start + i) % ITEMS];
	return NULL;
}

struct client_context *random_home(struct random *r, const struct item *item)
{
	return (item - r->item) % 2 ? &r->second : &r->w.context;
}

void random_compare(struct random *r, const struct item *item, const unsigned char *bytes,
		    uint32_t from, uint32_t count)
{
	r->compared_bytes += count;
	if (!memcmp(bytes + from, item->model + from, count))
		return;
	for (uint32_t i = from; i < from + count; i++)
		if (bytes[i] != item->model[i])
			random_wrong(r, item, "content differs from the model, offset << 16 | got",
				     (uint64_t)i << 16 | bytes[i]);
}

void random_scribble(struct random *r, struct item *item, unsigned char *bytes, uint32_t from,
		     uint32_t count)
{
	uint32_t value = draw(r, UINT32_MAX);

	for (uint32_t i = from; i < from + count; i++)
		item->model[i] = (unsigned char)((value >> i % 4 * 8) + i / 256);
	memcpy(bytes + from, item->model + from, count);
	item->written = true;
}

void random_idle(struct random *r)
{
	client_idle(&r->w.client);
}

void random_forget(struct item *item)
{
	free(item->model);
	if (item->spec.flags & EXISTING_KERNEL)
		ExFreePool(item->own);
	else
		free(item->own);
	memset(item, 0, sizeof(*item));
}

/* ---- the GPU ---- */

static void gpu_main(void *argument)
{
	struct random *r = argument;

	while (!atomic_load(&r->over)) {
		uint64_t x = r->gpu_random = r->gpu_random * 6364136223846793005u + 1;

		vidmm_sleep_until_ns(r->w.client.host,
				     vidmm_now_ns(r->w.client.host) + 100 + (x >> 40) % 5000);
		scripted_complete(r->w.m, (x >> 33) % 2, 1 + (x >> 35) % 4);
	}
}

static void act_gpu(struct random *r)
{
	scripted_complete(r->w.m, draw(r, 2), 1 + draw(r, 4));
	if (draw(r, 4) == 0)
		vidmm_settle(r->w.client.host);
	r->done[RANDOM_GPU]++;
}

/* ---- a step ---- */

static bool is_free(const struct item *item)
{
	return !item->offered && !item->lost;
}

static void act_on(struct random *r, struct item *item, uint32_t what)
{
	if (item->lost && !item->offered)
		random_refill(r, item);
	else if (item->offered)
		what < 60 ? random_reclaim(r, item) : random_destroy(r, item);
	else if (item->data)
		what < 85 ? random_unlock(r, item) : random_destroy(r, item);
	else if (what < 55)
		random_is_visible(r, item) ? random_lock(r, item) : random_compare_by_copy(r, item);
	else if (what < 68)
		random_offer(r, item);
	else if (what < 78 && r->wddm2)
		random_evict(r, item);
	else if (what < 84 && r->wddm2)
		random_update(r, item);
	else if (what < 88)
		random_compare_by_copy(r, item);
	else
		random_destroy(r, item);
}

void random_step(struct random *r)
{
	uint32_t what = draw(r, 100);
	struct item *item = random_item(r);

	r->what = "a step";
	if (what < 24)
		random_render(r);
	else if (what < 30)
		act_gpu(r);
	else if (what < 33)
		random_priorities(r);
	else if (what < 36)
		random_query(r);
	else if (what < 44 && r->wddm2)
		random_make_resident(r);
	else if (what < 60 || !item)
		random_create(r);
	else
		act_on(r, item, draw(r, 100));
	/* A broken invariant stays broken, so every eighth step finds it too. */
	if (r->step % 8 == 0)
		vidmm_adapter_check(r->w.client.adapter);
	if (r->w.client.findings)
		random_wrong(r, item, "a finding about a legal call", r->w.client.findings);
	if (r->w.m->faults)
		random_wrong(r, item, "the GPU met an address that leads nowhere", r->w.m->faults);
	if (r->step++ % 32 == 0)
		scripted_forget(r->w.m);
}

/* ---- a seed ---- */

static uint64_t seed_now; /* world_setup has no parameter for it */

static uint32_t version_of(uint64_t seed)
{
	return versions[seed % VERSIONS];
}

static bool has_ranges(uint64_t seed)
{
	return seed / VERSIONS % 3 != 2;
}

static bool is_coherent(uint64_t seed)
{
	return seed / VERSIONS % 2 == 0;
}

static bool has_lists(uint64_t seed)
{
	return version_of(seed) >= DXGKDDI_INTERFACE_VERSION_WDDM2_9 && seed / VERSIONS % 4 != 3;
}

static void with_protected_range(struct scripted_segment *s)
{
	s->flags |= (DXGK_SEGMENTFLAGS){.VprSupported = 1}.Value;
	s->vpr_offset = 64 * KIB;
	s->vpr_bytes = 128 * KIB;
	s->vpr_alignment = 4 * KIB;
	s->vpr_reserve_bytes = 4 * KIB;
}

static void set_up(struct scripted_miniport *m)
{
	struct scripted_settings *s = &m->settings;
	uint32_t version = version_of(seed_now);
	const DXGK_SEGMENTFLAGS coherent = {.CacheCoherent = 1};

	scripted_set_version(m, version);
	if (flags_is_wddm2(version))
		s->caps.WDDMVersion = DXGKDDI_WDDMv2;
	s->segment[0].size_bytes = s->segment[0].commit_limit_bytes = MEMORY_BYTES;
	s->segment[1].size_bytes = s->segment[1].commit_limit_bytes = APERTURE_BYTES;
	if (!is_coherent(seed_now))
		s->segment[1].flags &= ~coherent.Value;
	s->segment[2] = (struct scripted_segment){.base = (uint64_t)2 << 30,
						  .size_bytes = HIDDEN_BYTES,
						  .commit_limit_bytes = HIDDEN_BYTES};
	s->segment_count = 3;
	if (version >= DXGKDDI_INTERFACE_VERSION_WDDM2_1)
		with_protected_range(&s->segment[0]);
	if (!flags_is_wddm2(version))
		s->caps.NumberOfSwizzlingRanges = has_ranges(seed_now) ? 4 : 0;
	s->caps.MemoryManagementCaps.MapAperture2Supported = has_lists(seed_now);
	s->paging_bytes = seed_now % 3 ? 64 * KIB : 4 * KIB;
	s->transfer_chunk_bytes = seed_now % 5 == 0 ? 8 * KIB : 0;
}

/*
 * Without CPU access the miniport would have to report an alternate address; this one does not.
 * (SWZ-24)
 */
static void answer(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	const DXGKARG_ACQUIRESWIZZLINGRANGE *args = call->args;

	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE && args->SegmentId != 1)
		call->status = STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
}

void random_begin(struct random *r, uint64_t seed)
{
	void *kind = &world_sim;
	const struct client_options options = {.seed = seed};

	memset(r, 0, sizeof(*r));
	r->seed = seed;
	seed_now = r->seed;
	r->random = r->seed;
	r->gpu_random = ~r->seed;
	r->version = version_of(r->seed);
	r->wddm2 = flags_is_wddm2(r->version);
	r->coherent = is_coherent(r->seed);
	r->ranges = !r->wddm2 && has_ranges(r->seed);
	r->vpr = r->version >= DXGKDDI_INTERFACE_VERSION_WDDM2_1;
	r->known = flags_known(r->version);
	r->lists = has_lists(r->seed);
	if (r->wddm2 && !r->lists)
		r->known &= ~(uint32_t)MAP_VISIBLE;
	world_start_with(&r->w, &kind, set_up, &options);
	r->w.m->hook = answer;
	world_open(&r->w);
	client_context(&r->w.device, 1, &r->second);
	if (r->wddm2)
		assert_int_equal(
			r->w.device.cb->pfnCreatePagingQueueCb(r->w.device.handle, &r->queue),
			S_OK);
	assert_int_equal(vidmm_thread_create(r->w.client.host, "gpu", gpu_main, r, &r->gpu), 0);
}

static void compare_all(struct random *r)
{
	for (uint32_t i = 0; i < ITEMS; i++) {
		struct item *item = &r->item[i];

		if (!item->handle)
			continue;
		if (item->data)
			random_unlock(r, item);
		if (item->offered)
			random_reclaim(r, item);
		if (item->handle && is_free(item))
			random_compare_by_copy(r, item);
	}
}

/* Half of them with their device. */
static void end(struct random *r)
{
	for (uint32_t i = 0; i < ITEMS; i++)
		if (r->item[i].handle && draw(r, 2))
			random_destroy(r, &r->item[i]);
	random_idle(r);
	atomic_store(&r->over, true);
	vidmm_thread_join(r->gpu);
	world_run(&r->w);
	r->w.m->settings.complete_at_once = true;
	client_context_end(&r->second);
	client_close(&r->w.device);
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};
	vidmm_adapter_statistics(r->w.client.adapter, &s);
	if (s.allocations || s.instances)
		random_wrong(r, NULL, "allocations are left", s.allocations);
	for (uint32_t i = 0; i < ITEMS; i++)
		random_forget(&r->item[i]);
	world_stop_adapter(&r->w);
}

static void add_up(const struct random *r, struct random_totals *t)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};

	vidmm_adapter_statistics(r->w.client.adapter, &s);
	for (uint32_t k = 0; k < RANDOM_KINDS; k++) {
		t->done[k] += r->done[k];
		t->refused[k] += r->refused[k];
	}
	t->operations += r->step;
	t->evictions += s.evictions;
	t->paged_in += s.bytes_paged_in;
	t->paged_out += s.bytes_paged_out;
	t->discards += s.bytes_discarded;
	t->compared_bytes += r->compared_bytes;
	t->properties[r->wddm2] |= r->properties;
	t->lock_flags[r->wddm2] |= r->lock_flags;
}

void random_end(struct random *r, struct random_totals *totals)
{
	r->what = "the end";
	compare_all(r);
	add_up(r, totals);
	end(r);
}

void random_run(uint64_t seed, uint64_t operations, struct random_totals *totals)
{
	struct random *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	random_begin(r, seed);
	while (r->step < operations)
		random_step(r);
	random_end(r, totals);
	free(r);
}
