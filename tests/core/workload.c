/* SPDX-License-Identifier: MIT */
#include "actor.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VRAM_BYTES    (1024u * KIB)
#define LARGEST_BYTES (128u * KIB)
#define BANKS         4u
#define OVERLAY_BYTES 4096u

/* ---- contexts and devices ---- */

static bool open_context(struct actor *a, uint32_t index)
{
	struct client_context *c = &a->context[index];

	memset(c, 0, sizeof(*c));
	c->device = &a->device;
	c->c.NodeOrdinal = index;
	return is_ok(a, a->device.cb->pfnCreateContextCb(a->device.handle, &c->c),
		     "create context");
}

static bool end_context(struct actor *a, uint32_t index)
{
	D3DDDICB_DESTROYCONTEXT args = {.hContext = a->context[index].c.hContext};

	return is_ok(a, a->device.cb->pfnDestroyContextCb(a->device.handle, &args),
		     "destroy context");
}

static bool open_device(struct actor *a)
{
	struct run *run = a->run;

	memset(&a->device, 0, sizeof(a->device));
	a->device.client = &run->client;
	a->device.process = run->process[a->index % PROCESSES];
	vidmm_status status =
		vidmm_device_create(a->device.process, run->client.adapter, &a->device.device);
	if (status)
		return differs(a, "create device", (uint32_t)status);
	a->device.cb = vidmm_device_callbacks(a->device.device);
	a->device.handle = vidmm_device_handle(a->device.device);
	for (uint32_t i = 0; i < CONTEXTS; i++)
		if (!open_context(a, i))
			return false;
	return true;
}

static void forget_buffer(struct buffer *b)
{
	free(b->shadow);
	free(b->own);
	memset(b, 0, sizeof(*b));
}

/* With all its objects, in use or not. */
static void close_device(struct actor *a)
{
	vidmm_device_destroy(a->device.device);
	a->device.device = NULL;
	for (uint32_t i = 0; i < BUFFERS; i++)
		forget_buffer(&a->buffer[i]);
}

/* ---- buffers ---- */

static bool has_banks(const struct run *run)
{
	return run->workload->seed % 2;
}

/* The banks, the eviction segment set, and whether it is pinned. */
static void choose_segments(const struct actor *a, struct buffer *b,
			    struct softgpu_allocation *spec)
{
	uint32_t n = b->number;

	if (n % 3 == 1)
		spec->eviction_set = 2;
	if (has_banks(a->run) && n % 2)
		spec->hinted_banks =
			(1 + n / 2 % BANKS) | (n % 4 == 1) << 7 | (n / 8 % (BANKS + 1)) << 8;
	b->pinned = n % 10 == 1;
	if (!b->pinned)
		return;
	b->bytes = OVERLAY_BYTES;
	spec->size_bytes = b->bytes;
	spec->flags |= SOFTGPU_ALLOCATION_OVERLAY;
	/* a pinned allocation that is not CPU-visible can never be compared */
	if (!a->run->vram_visible)
		spec->segment_set = 2;
}

/* The same with existing memory of the client. */
static bool allocate_over(struct actor *a, struct buffer *b, struct softgpu_allocation *spec)
{
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = spec,
				      .PrivateDriverDataSize = sizeof(*spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	b->own = aligned_alloc(4096, b->bytes);
	if (!b->own)
		return differs(a, "no memory", 0);
	memset(b->own, (int)b->number, b->bytes);
	memset(b->shadow, b->stamped ? 0 : (int)b->number, b->bytes);
	/* never stamped */
	if (b->stamped)
		memset(b->own, 0, b->bytes);
	info.pSystemMem = b->own;
	spec->flags |= SOFTGPU_ALLOCATION_EXISTING_SYSTEM;
	bool good = is_ok(a, a->device.cb->pfnAllocateCb(a->device.handle, &args), "allocate over");
	b->handle = info.hAllocation;
	return good;
}

/* Every tenth is a primary, as far as its segments permit. */
static HRESULT create(struct actor *a, struct buffer *b, struct softgpu_allocation *spec)
{
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = spec,
				      .PrivateDriverDataSize = sizeof(*spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	if (b->number % 10 == 5 && !(spec->flags & SOFTGPU_ALLOCATION_PROTECTED) &&
	    (a->run->vram_visible || spec->segment_set == 2)) {
		info.Flags.Primary = 1;
		spec->flags &= ~(uint32_t)SOFTGPU_ALLOCATION_CACHED;
	}
	HRESULT result = a->device.cb->pfnAllocateCb(a->device.handle, &args);
	if (b->pinned && result == D3DERR_OUTOFVIDEOMEMORY) { /* others use the zone */
		b->pinned = false;
		spec->flags &= ~(uint32_t)SOFTGPU_ALLOCATION_OVERLAY;
		result = a->device.cb->pfnAllocateCb(a->device.handle, &args);
	}
	b->handle = info.hAllocation;
	return result;
}

static bool allocate(struct actor *a, struct buffer *b)
{
	struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
			 (draw(a, 4) ? 0 : SOFTGPU_ALLOCATION_CACHED) |
			 (draw(a, 4) ? 0 : SOFTGPU_ALLOCATION_FROM_END),
		.size_bytes = (1 + draw(a, a->run->largest_bytes / 4096)) * 4096,
		.segment_set = draw(a, 4), /* 0: both */
		.renaming_limit = draw(a, 4),
		.alignment = 4096u << draw(a, 4),
	};

	*b = (struct buffer){.bytes = (uint32_t)spec.size_bytes,
			     .number = ++a->numbers,
			     .home = draw(a, CONTEXTS),
			     .stamped = draw(a, 3) == 0};
	choose_segments(a, b, &spec);
	b->shadow = calloc(1, b->bytes); /* a new allocation reads as zero */
	if (!b->shadow)
		return differs(a, "no memory", 0);
	b->permanent = b->number % 4 == 2;
	if (b->permanent)
		spec.flags |= SOFTGPU_ALLOCATION_PERMANENT_SYSTEM;
	bool over = b->number % 5 == 3 && !b->permanent && !a->run->workload->no_existing_memory;
	if (a->run->workload->wide && !over)
		wide_spec(b, &spec);
	bool good = over ? allocate_over(a, b, &spec) : is_ok(a, create(a, b, &spec), "allocate");
	b->spec = spec;
	return good;
}

/*
 * The client's memory belongs to the client again when the call returns, with everything that the
 * GPU wrote (ALF-13).
 */
static bool deallocate(struct actor *a, struct buffer *b)
{
	bool good = is_ok(a, client_deallocate(&a->device, b->handle), "deallocate");

	if (good && b->own && !b->offered)
		good = compare(a, b, b->own);
	forget_buffer(b);
	return good;
}

void actor_scribble(struct actor *a, struct buffer *b, unsigned char *bytes, uint32_t from,
		    uint32_t count)
{
	unsigned char value = (unsigned char)draw(a, 256);

	for (uint32_t i = from; i < from + count; i++)
		bytes[i] = b->shadow[i] = (unsigned char)(value + i * 13);
}

/* Writes two pages of a permanent buffer and says which. */
static bool touch_pages(struct actor *a, struct buffer *b)
{
	uint32_t pages = b->bytes / 4096, visit = b->visits++;
	UINT list[] = {visit % pages, (visit * 5 + 2) % pages};
	D3DDDICB_LOCK args = {.hAllocation = b->handle, .NumPages = 2, .pPages = list};

	if (!is_ok(a, a->device.cb->pfnLockCb(a->device.handle, &args), "lock of two pages"))
		return false;
	unsigned char *bytes = (unsigned char *)args.pData - list[0] * 4096;
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t at = list[i] * 4096; at < (list[i] + 1) * 4096; at += 100)
			bytes[at] = b->shadow[at] = (unsigned char)(visit + i + at);
	return compare(a, b, bytes) && unlock(a, b);
}

/* Locks, compares all of it, perhaps writes; sometimes with DonotWait, which may fail. */
static bool visit(struct actor *a, struct buffer *b)
{
	if (b->hidden)
		return wide_compare(a, b);
	uint32_t flags = (draw(a, 3) ? 0 : READ_ONLY) | (draw(a, 3) ? 0 : DONOT_WAIT);
	void *bytes;
	HRESULT result = client_try_lock(&a->device, &b->handle, flags, &bytes);

	if ((flags & DONOT_WAIT) && result == D3DERR_WASSTILLDRAWING)
		return true;
	if (!is_ok(a, result, "lock") || !compare(a, b, bytes))
		return false;
	if (b->own && bytes != b->own)
		return differs(a, "the lock does not show our own memory", (uintptr_t)bytes);
	if (!(flags & READ_ONLY) && !b->stamped) {
		uint32_t from = draw(a, b->bytes);

		actor_scribble(a, b, bytes, from, 1 + draw(a, b->bytes - from));
	}
	b->home = draw(a, CONTEXTS); /* it was idle: another context may use it next */
	return unlock(a, b) && (!b->permanent || b->stamped || touch_pages(a, b));
}

/*
 * A lock with Discard returns another instance, or the same one after a wait; the caller writes all
 * content.
 */
static bool discard(struct actor *a, struct buffer *b)
{
	void *bytes;
	HRESULT result = client_try_lock(&a->device, &b->handle, DISCARD, &bytes);

	/* Queued buffers could reference every instance; here no buffer does. */
	if (result == D3DERR_WASSTILLDRAWING)
		result = client_try_lock(&a->device, &b->handle, DISCARD | NO_EXISTING_REFERENCE,
					 &bytes);
	if (!is_ok(a, result, "discarding lock"))
		return false;
	actor_scribble(a, b, bytes, 0, b->bytes);
	return unlock(a, b);
}

static bool offer(struct actor *a, struct buffer *b)
{
	if (b->pinned) /* OFR-08 */
		return visit(a, b);
	D3DDDICB_OFFERALLOCATIONS args = {.NumAllocations = 1,
					  .HandleList = &b->handle,
					  .Priority = (D3DDDI_OFFER_PRIORITY)(1 + draw(a, 3))};

	b->offered = true;
	return is_ok(a, a->device.cb->pfnOfferAllocationsCb(a->device.handle, &args), "offer");
}

static bool reclaim(struct actor *a, struct buffer *b)
{
	BOOL discarded = 0;
	D3DDDICB_RECLAIMALLOCATIONS args = {
		.NumAllocations = 1, .HandleList = &b->handle, .pDiscarded = &discarded};
	void *bytes;

	b->offered = false;
	if (!is_ok(a, a->device.cb->pfnReclaimAllocationsCb(a->device.handle, &args), "reclaim"))
		return false;
	if (!discarded)
		return true;
	a->discards++;
	b->stamped = false; /* the discard lost its stamps */
	if (b->hidden)
		return wide_refill(a, b);
	if (!is_ok(a, client_try_lock(&a->device, &b->handle, 0, &bytes),
		   "lock of what was discarded"))
		return false;
	actor_scribble(a, b, bytes, 0, b->bytes);
	return unlock(a, b);
}

/* ---- the GPU's work ---- */

/* A buffer of that context and kind that is not offered; NULL if there is none. */
static struct buffer *choose(struct actor *a, uint32_t home, bool stamped)
{
	uint32_t start = draw(a, BUFFERS);

	for (uint32_t i = 0; i < BUFFERS; i++) {
		struct buffer *b = &a->buffer[(start + i) % BUFFERS];

		if (b->handle && !b->offered && !b->held && b->home == home &&
		    b->stamped == stamped)
			return b;
	}
	return NULL;
}

void actor_put_fill(struct actor *a, struct client_context *c, struct buffer *b)
{
	uint32_t from = draw(a, b->bytes / 4) * 4, words = 1 + draw(a, (b->bytes - from) / 4),
		 pattern = draw(a, UINT32_MAX);
	struct softgpu_fill fill = {
		.command = {SOFTGPU_FILL, 0, sizeof(fill)},
		.operand = {.allocation = client_use(c, b->handle, true), .offset = from},
		.length = 4 * words,
		.pattern = pattern,
	};

	client_command(c, &fill, sizeof(fill));
	for (uint32_t i = 0; i < words; i++)
		memcpy(b->shadow + from + 4 * i, &pattern, 4);
}

static void put_copy(struct actor *a, struct client_context *c, struct buffer *to,
		     const struct buffer *from)
{
	uint32_t limit = to->bytes < from->bytes ? to->bytes : from->bytes,
		 length = 1 + draw(a, limit);
	uint32_t source = draw(a, from->bytes - length + 1),
		 destination = draw(a, to->bytes - length + 1);
	struct softgpu_copy copy = {
		.command = {SOFTGPU_COPY, 0, sizeof(copy)},
		.source = {.allocation = client_use(c, from->handle, false), .offset = source},
		.destination = {.allocation = client_use(c, to->handle, true),
				.offset = destination},
		.length = length,
	};

	client_command(c, &copy, sizeof(copy));
	memcpy(to->shadow + destination, from->shadow + source, length);
}

/* A wrong stamp is a fault, and a fault loses the device. */
static void put_stamps(struct client_context *c, struct buffer *b)
{
	struct softgpu_stamps stamps = {
		.command = {SOFTGPU_STAMP, SOFTGPU_FLAG_WRITE | SOFTGPU_FLAG_VERIFY,
			    sizeof(stamps)},
		.operand = {.allocation = client_use(c, b->handle, true)},
		.block_count = b->bytes / BLOCK_BYTES,
		.block_size = BLOCK_BYTES,
		.buffer = b->number,
		.expected_version = b->version,
		.new_version = b->version + 1,
	};

	client_command(c, &stamps, sizeof(stamps));
	b->version++;
	for (uint32_t i = 0; i < stamps.block_count; i++) {
		struct softgpu_stamp stamp = {b->number, b->version, i,
					      softgpu_stamp_check(b->number, b->version, i)};

		memcpy(b->shadow + i * BLOCK_BYTES, &stamp, sizeof(stamp));
	}
}

bool actor_render(struct actor *a)
{
	uint32_t home = draw(a, CONTEXTS), commands = 1 + draw(a, 4);
	struct client_context *c = &a->context[home];

	for (uint32_t i = 0; i < commands; i++) {
		struct buffer *to = choose(a, home, false), *from = choose(a, home, draw(a, 2)),
			      *stamped = choose(a, home, true);
		uint32_t what = draw(a, 8);

		if (what < 4 && to && from && to != from)
			put_copy(a, c, to, from);
		else if (what < 6 && to)
			actor_put_fill(a, c, to);
		else if (what < 7 && stamped)
			put_stamps(c, stamped);
		else
			client_stall(c, draw(a, 20000));
	}
	return is_ok(a, client_try_submit(c), "render");
}

/* ---- actors ---- */

static bool touch_a_buffer(struct actor *a, uint32_t what)
{
	struct buffer *b = &a->buffer[draw(a, BUFFERS)];

	if (!b->handle)
		return allocate(a, b);
	if (b->offered)
		return what < 60 ? reclaim(a, b) : what < 64 ? deallocate(a, b) : true;
	if (what < 55)
		return visit(a, b);
	if (what < 62)
		return b->stamped || b->hidden ? visit(a, b) : discard(a, b);
	return what < 68 ? offer(a, b) : deallocate(a, b);
}

static bool act(struct actor *a)
{
	bool acted = false;

	if (a->run->workload->wide && !wide_act(a, &acted))
		return false;
	if (acted)
		return true;
	uint32_t what = draw(a, 100), context = draw(a, CONTEXTS);

	if (what < 35)
		return actor_render(a);
	if (what < 72)
		return touch_a_buffer(a, what);
	if (what < 73)
		return end_context(a, context) && open_context(a, context);
	if (what < 74) {
		close_device(a);
		return open_device(a);
	}
	for (uint32_t i = 0; i < BUFFERS; i++) /* all buffers exist most of the time */
		if (!a->buffer[i].handle)
			return allocate(a, &a->buffer[i]);
	return actor_render(a);
}

static bool check_all(struct actor *a)
{
	void *bytes;

	for (uint32_t i = 0; i < BUFFERS; i++) {
		struct buffer *b = &a->buffer[i];

		if (b->handle && b->offered && !reclaim(a, b))
			return false;
		if (b->handle && b->hidden) {
			if (!wide_compare(a, b))
				return false;
			continue;
		}
		if (b->handle &&
		    (!is_ok(a, client_try_lock(&a->device, &b->handle, READ_ONLY, &bytes),
			    "last lock") ||
		     !compare(a, b, bytes) || !unlock(a, b)))
			return false;
	}
	return true;
}

static void run_actor(void *argument)
{
	struct actor *a = argument;
	bool good = open_device(a);

	for (uint32_t i = 0; good && i < a->run->workload->operations; i++) {
		a->operation = i;
		good = act(a);
		/* A broken invariant stays broken, so every eighth operation finds it too. */
		if (i % 8 == 7)
			vidmm_adapter_check(a->run->client.adapter);
	}
	/* a mismatch is recorded in a->failure */
	if (good)
		(void)check_all(a);
	if (a->device.device)
		close_device(a);
}

/* ---- the world ---- */

static void on_deadlock(void *context, const char *report)
{
	const struct run *run = context;

	fprintf(stderr, "seed %" PRIu64 ", %u actors, %u operations, switch %u:\n%s",
		run->workload->seed, run->workload->actors, run->workload->operations,
		run->workload->switch_per_1024, report);
	abort();
}

/* Events come from several threads at once. */
static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct client *client = context;

	pthread_mutex_lock(&event_lock);
	if (event->type == VIDMM_EVENT_FATAL)
		client->fatals++;
	else if (!client->findings++)
		snprintf(client->finding[0], sizeof(client->finding[0]), "%s", text);
	pthread_mutex_unlock(&event_lock);
}

/* For D3DKMT clients, which share. */
static void find_luid(struct run *run)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	vidmm_d3dkmt_attach(run->process[0]);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	run->luid = info.AdapterLuid;
}

/* The properties of the adapter depend on the seed too. */
static void start(struct run *run, struct actor *dice)
{
	uint32_t dma_segment_set = draw(dice, 2) * 2;
	struct vidmm_registry_value values[] = {
		{"ApertureSize", run->workload->wide ? 256 * KIB : 1024 * KIB},
		{"ApertureCoherent", run->workload->seed % 3 != 0},
		{"DmaBufferSize", 4096u << draw(dice, 3)},
		{"AllocationListSize", 16},
		{"PatchLocationListSize", 4u << draw(dice, 4)},
		{"DmaBufferSegmentSet", dma_segment_set},
		{"PagingBufferSize", 4096u << draw(dice, 3)},
		{"PagingBufferSegment", draw(dice, 2) * 2},
		{"PagingNode", draw(dice, 2)},
		{"VramCpuVisible", run->vram_visible = draw(dice, 4) != 0},
		{"PrePatch", draw(dice, 2)},
		{"EngineBytesPerUs", draw(dice, 2) * 20000},
		{"VramBanks", has_banks(run) ? BANKS : 0},
	};
	const uint64_t bar = run->workload->wide ? VRAM_BYTES / 4 : VRAM_BYTES;
	const struct vidmm_adapter_options adapter = {
		.struct_size = sizeof(adapter),
		.driver_entry = softgpu_driver_entry,
		.bar_sizes = &bar,
		.bar_count = 1,
		.registry = values,
		.registry_count = sizeof(values) / sizeof(values[0]),
		.first_fence_id = 0xFFFFFFF0u, /* every run passes the wrap of fence ids */
		.tdr = run->workload->kind == VIDMM_HOST_LINUX ? &client_no_tdr : NULL,
	};
	const struct vidmm_host_options host = {
		.struct_size = sizeof(host),
		.kind = run->workload->kind,
		.seed = run->workload->seed,
		.switch_per_1024 = run->workload->switch_per_1024,
		.hash_events = run->workload->kind == VIDMM_HOST_SIM,
		.deadlock = on_deadlock,
		.deadlock_context = run,
	};

	run->aperture_coherent = run->workload->seed % 3 != 0;
	run->largest_bytes = run->workload->wide ? LARGEST_BYTES / 4 : LARGEST_BYTES;
	assert_int_equal(vidmm_host_create(&host, &run->client.host), 0);
	assert_int_not_equal(
		vidmm_subscribe(run->client.host,
				1ull << VIDMM_EVENT_FINDING | 1ull << VIDMM_EVENT_FATAL, on_event,
				&run->client),
		0);
	assert_int_equal(vidmm_adapter_start(run->client.host, &adapter, &run->client.adapter), 0);
	for (uint32_t i = 0; i < PROCESSES; i++)
		assert_int_equal(vidmm_process_open(run->client.host, "actor", &run->process[i]),
				 0);
	if (run->workload->wide)
		find_luid(run);
}

static void note_result(struct run *run, struct workload_result *result)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};
	struct client *client = &run->client;

	for (uint32_t i = 0; i < run->workload->actors; i++) {
		result->discards += run->actor[i].discards;
		for (uint32_t k = 0; k < WORKLOAD_KINDS; k++)
			result->reached[k] += run->actor[i].reached[k];
		if (run->actor[i].failure[0] && !result->failure[0])
			snprintf(result->failure, sizeof(result->failure), "%s",
				 run->actor[i].failure);
	}
	if (client->findings || client->fatals)
		snprintf(result->failure + strlen(result->failure),
			 sizeof(result->failure) - strlen(result->failure),
			 "; %u findings, %u fatals: %.200s", client->findings, client->fatals,
			 client->finding[0]);
	vidmm_adapter_statistics(client->adapter, &statistics);
	result->evictions = statistics.evictions;
	result->renames = statistics.renames;
	result->waits = client_events(client, VIDMM_EVENT_WAIT);
	for (uint32_t type = 1; type < VIDMM_EVENT_TYPE_COUNT; type++)
		result->events += client_events(client, type);
}

void workload_run(const struct workload *workload, struct workload_result *result)
{
	struct run run = {.workload = workload};
	struct actor dice = {.random = workload->seed * 31 + 1};

	memset(result, 0, sizeof(*result));
	run.actor = calloc(workload->actors, sizeof(*run.actor));
	assert_non_null(run.actor);
	start(&run, &dice);
	for (uint32_t i = 0; i < workload->actors; i++) {
		struct actor *a = &run.actor[i];

		*a = (struct actor){.run = &run,
				    .index = i,
				    .random = workload->seed ^ (uint64_t)(i + 1) << 32};
		assert_int_equal(
			vidmm_thread_create(run.client.host, "actor", run_actor, a, &a->thread), 0);
	}
	for (uint32_t i = 0; i < workload->actors; i++)
		vidmm_thread_join(run.actor[i].thread);
	client_idle(&run.client);
	note_result(&run, result);
	for (uint32_t i = 0; i < PROCESSES; i++)
		vidmm_process_close(run.process[i]);
	vidmm_adapter_stop(run.client.adapter);
	result->hash = vidmm_event_hash(run.client.host);
	vidmm_host_destroy(run.client.host);
	free(run.actor);
}
