/* SPDX-License-Identifier: MIT */
/*
 * All 2048 combinations of lock flags, with and without a page list, on allocations of every kind
 * in every state, through pfnLockCb and D3DKMTLock. Each is compared with an oracle derived from
 * the rules: status, finding, handle, waiting, and what must be unchanged.
 */
#include <stdio.h>

#include <d3dkmthk.h>

#include "lock_oracle.h"
#include "support/seeds.h"
#include "world.h"

enum state {
	FRESH,
	RESIDENT,
	READING,
	WRITING,
	AWAY,
	OFFERED,
	SUPERSEDED,
	RETIRED,
	HELD_PLAIN,
	HELD_RANGE,
	HELD_ALTERNATE,
	STATES
};

enum door { BY_CALLBACK, BY_THUNK, DOORS };

enum { ENTIRE_RANGE = LOCK_ENTIRE | ACQUIRE_APERTURE, EVERY_FLAG = 0x800 };

struct kind {
	uint32_t flags, segment_set, stride, eviction_set;
	bool hidden_vram, incoherent, no_ranges;
	bool shared, primary, for_alternate;
};

#define TILED     SOFTGPU_ALLOCATION_TILED_Y
#define PINNED    SOFTGPU_ALLOCATION_OVERLAY
#define PERMANENT SOFTGPU_ALLOCATION_PERMANENT_SYSTEM
#define EXISTING  SOFTGPU_ALLOCATION_EXISTING_SYSTEM
static const struct kind kinds[] = {
	{.flags = CPU},
	{.flags = CPU, .segment_set = VRAM},
	{.flags = CPU, .segment_set = APERTURE},
	{.flags = CPU | SOFTGPU_ALLOCATION_CACHED, .segment_set = APERTURE},
	{.flags = CPU | SOFTGPU_ALLOCATION_CACHED, .segment_set = APERTURE, .incoherent = true},
	{.flags = CPU | TILED, .stride = 512},
	{.flags = CPU | TILED, .stride = 512, .no_ranges = true},
	{.flags = CPU | TILED, .stride = 512, .eviction_set = APERTURE, .no_ranges = true},
	{.flags = 0},
	{.flags = CPU, .hidden_vram = true},
	{.flags = CPU, .segment_set = VRAM, .no_ranges = true},
	{.flags = CPU | SOFTGPU_ALLOCATION_PROTECTED},
	{.flags = CPU | PINNED, .segment_set = VRAM},
	{.flags = CPU | PINNED, .segment_set = VRAM, .hidden_vram = true},
	{.flags = CPU | PINNED, .segment_set = VRAM, .no_ranges = true},
	{.flags = CPU | PERMANENT},
	{.flags = CPU | EXISTING, .segment_set = APERTURE},
	{.flags = CPU, .shared = true},
	{.flags = 0, .primary = true},
	{.flags = 0, .primary = true, .for_alternate = true},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* A device that both doors know, and its process. */
struct door_device {
	struct client_device *device;
	D3DKMT_HANDLE kmt;
};

struct fixture {
	struct world w;
	const struct kind *kind;
	struct door_device self;
};

struct request {
	enum door door;
	enum state state;
	struct oracle_request lock;
};

/* ---- two doors ---- */

static void note_handle(void *context, const struct vidmm_event *event, const char *text)
{
	(void)text;
	if (event->reason == VIDMM_DOOR_CREATE_DEVICE)
		*(D3DKMT_HANDLE *)context = event->object;
}

/* The runtime on Windows knows a device's D3DKMT handle; here the event stream reports it. */
static void make_device(struct world *w, struct door_device *door_device,
			struct client_device *device)
{
	uint32_t subscription = vidmm_subscribe(w->client.host, 1ull << VIDMM_EVENT_DOOR,
						note_handle, &door_device->kmt);

	assert_int_not_equal(subscription, 0);
	assert_int_equal(vidmm_device_create(device->process, w->client.adapter, &device->device),
			 0);
	vidmm_unsubscribe(w->client.host, subscription);
	assert_int_not_equal(door_device->kmt, 0);
	device->cb = vidmm_device_callbacks(device->device);
	device->handle = vidmm_device_handle(device->device);
	door_device->device = device;
}

/* The fixture's device again, with its context and its gate. */
static void fixture_start(struct fixture *b, void **state, const struct kind *k)
{
	struct vidmm_registry_value values[] = {{"VramCpuVisible", !k->hidden_vram},
						{"ApertureCoherent", !k->incoherent},
						{"SwizzlingRanges", k->no_ranges ? 0 : 64}};
	struct client_options options = {.registry = values, .registry_count = 3};
	struct world *w = &b->w;

	memset(b, 0, sizeof(*b));
	b->kind = k;
	world_start(w, state, &options);
	client_context_end(&w->context);
	vidmm_device_destroy(w->device.device);
	make_device(w, &b->self, &w->device);
	client_context(&w->device, 0, &w->context);
	w->gate = allocate_in(&w->device, PAGE, CPU, APERTURE);
	w->gate_word = client_lock(&w->device, w->gate, 0);
	use_now(w, w->gate, false);
	vidmm_d3dkmt_attach(w->device.process);
}

struct answer {
	int32_t result;
	D3DKMT_HANDLE handle;
	void *data;
};

static struct answer call(const struct door_device *door_device, const struct request *r,
			  D3DKMT_HANDLE handle)
{
	static const UINT good[] = {0}, bad[] = {0, 0x7FFFFFFF};
	enum oracle_list list = r->lock.list;
	const UINT *pages = list == ORACLE_PAST_THE_END                        ? bad
			    : list == ORACLE_LIST || list == ORACLE_NO_ENTRIES ? good
									       : NULL;
	UINT count = list == ORACLE_PAST_THE_END                        ? 2
		     : list == ORACLE_LIST || list == ORACLE_NO_POINTER ? 1
									: 0;
	D3DKMT_LOCK thunk = {.hDevice = door_device->kmt,
			     .hAllocation = handle,
			     .NumPages = count,
			     .pPages = pages,
			     .pData = &handle,
			     .Flags.Value = r->lock.flags};
	D3DDDICB_LOCK callback = {.hAllocation = handle,
				  .NumPages = count,
				  .pPages = pages,
				  .pData = &handle,
				  .Flags.Value = r->lock.flags};
	struct answer answer;

	if (r->door == BY_THUNK) {
		answer.result = D3DKMTLock(&thunk);
		answer.handle = thunk.hAllocation;
		answer.data = thunk.pData;
	} else {
		answer.result =
			door_device->device->cb->pfnLockCb(door_device->device->handle, &callback);
		answer.handle = callback.hAllocation;
		answer.data = callback.pData;
	}
	return answer;
}

static bool unlock_succeeds(const struct door_device *door_device, enum door door,
			    D3DKMT_HANDLE handle)
{
	D3DKMT_UNLOCK args = {
		.hDevice = door_device->kmt, .NumAllocations = 1, .phAllocations = &handle};
	int32_t result =
		door == BY_THUNK ? D3DKMTUnlock(&args) : client_unlock(door_device->device, handle);

	if (result)
		assert_int_equal(result,
				 door == BY_THUNK ? STATUS_INVALID_PARAMETER : E_INVALIDARG);
	return result == 0;
}

/* ---- what is locked ---- */

struct subject {
	D3DKMT_HANDLE handle, newest, resource;
	uint32_t residency;
	int runtime; /* its address is the runtime's resource handle */
};

static bool lockable(const struct kind *k)
{
	return ((k->flags & CPU) || k->primary) && !(k->flags & SOFTGPU_ALLOCATION_PROTECTED);
}

/* A pinned allocation in a hidden segment has no CPU address without a range. */
static bool has_plain_address(const struct kind *k)
{
	return lockable(k) && !k->for_alternate && !((k->flags & PINNED) && k->hidden_vram);
}

static bool has_memory(const struct kind *k)
{
	return !k->segment_set || (k->segment_set & VRAM);
}

static bool state_exists(const struct kind *k, enum state s)
{
	bool renamed =
		lockable(k) && !k->shared && !k->primary && !(k->flags & (PINNED | EXISTING));
	bool stuck = (k->flags & PINNED) && (k->no_ranges || k->hidden_vram);

	switch (s) {
	case OFFERED:
		return !(k->flags & PINNED); /* OFR-08 */
	case SUPERSEDED:
	case RETIRED:
		return renamed;
	case HELD_PLAIN:
		return has_plain_address(k);
	case HELD_RANGE:
		return lockable(k) && has_memory(k) && !k->for_alternate && !stuck;
	case HELD_ALTERNATE:
		return lockable(k) && has_memory(k) && !k->shared &&
		       k->primary == k->for_alternate && !(stuck && k->no_ranges);
	default:
		return true;
	}
}

static void ask_for_alternate(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->Flags.UseAlternateVA = 1;
}

static void create(struct fixture *b, struct subject *s)
{
	const struct kind *k = b->kind;
	struct softgpu_allocation wish = wish_of(PAGE, k->flags, k->segment_set);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish),
				      .VidPnSourceId = k->primary,
				      .Flags.Value = k->primary};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1,
				  .pAllocationInfo = &info,
				  .hResource = k->shared ? &s->runtime : NULL};
	struct client_device *device = b->self.device;

	static _Alignas(4096) char existing[PAGE]; /* one at a time */

	info.pSystemMem = k->flags & EXISTING ? existing : NULL;
	wish.stride_bytes = k->stride;
	wish.eviction_set = k->eviction_set;
	if (k->shared)
		assert_int_equal(vidmm_resource_set_shared(device->device, &s->runtime), 0);
	probe.edit_allocation = k->for_alternate ? ask_for_alternate : NULL;
	assert_int_equal(device->cb->pfnAllocateCb(device->handle, &args), S_OK);
	probe.edit_allocation = NULL;
	s->handle = s->newest = info.hAllocation;
	s->resource = args.hKMResource;
}

static uint32_t usual_flags(const struct kind *k)
{
	return k->for_alternate ? ACQUIRE_APERTURE | USE_ALTERNATE_VA : 0;
}

/* Another instance has become the current one, and the GPU has used it. */
static void supersede(struct fixture *b, struct subject *s, bool used)
{
	assert_int_equal(client_try_lock(b->self.device, &s->newest, DISCARD, NULL), S_OK);
	assert_int_not_equal(s->newest, s->handle);
	assert_int_equal(client_unlock(b->self.device, s->newest), S_OK);
	if (used)
		use_now(&b->w, s->newest, true);
}

static void offer(struct fixture *b, struct subject *s)
{
	D3DDDICB_OFFERALLOCATIONS args = {.HandleList = &s->handle,
					  .NumAllocations = 1,
					  .Priority = D3DDDI_OFFER_PRIORITY_LOW};

	assert_int_equal(b->self.device->cb->pfnOfferAllocationsCb(b->self.device->handle, &args),
			 S_OK);
}

static void reclaim(struct fixture *b, struct subject *s)
{
	BOOL discarded = 1;
	D3DDDICB_RECLAIMALLOCATIONS args = {
		.HandleList = &s->handle, .NumAllocations = 1, .pDiscarded = &discarded};

	assert_int_equal(b->self.device->cb->pfnReclaimAllocationsCb(b->self.device->handle, &args),
			 S_OK);
	assert_false(discarded);
}

static bool is_written(const struct kind *k, enum state s)
{
	return s != FRESH && (has_plain_address(k) || k->for_alternate);
}

static void bring_to_state(struct fixture *b, struct subject *s, enum state state)
{
	static const uint32_t held[STATES] = {
		[HELD_RANGE] = ENTIRE_RANGE, [HELD_ALTERNATE] = ENTIRE_RANGE | USE_ALTERNATE_VA};

	use_now(&b->w, s->handle, true);
	switch (state) {
	case READING:
	case WRITING:
		gate_close(&b->w);
		client_reference(&b->w.context, s->handle, state == WRITING);
		client_submit(&b->w.context);
		vidmm_settle(b->w.client.host); /* the GPU owns it */
		break;
	case OFFERED:
		offer(b, s);
		break;
	case SUPERSEDED:
	case RETIRED:
		supersede(b, s, state == RETIRED);
		break;
	case HELD_PLAIN:
	case HELD_RANGE:
	case HELD_ALTERNATE:
		client_lock(b->self.device, s->handle, held[state]);
		break;
	default:
		break;
	}
}

static void prepare(struct fixture *b, struct subject *s, enum state state)
{
	create(b, s);
	client_idle(&b->w.client); /* a pinned allocation is placed, and zeroed there */
	if (is_written(b->kind, state)) {
		*(uint32_t *)client_lock(b->self.device, s->handle, usual_flags(b->kind)) =
			0x12345678;
		assert_int_equal(client_unlock(b->self.device, s->handle), S_OK);
	}
	if (state != FRESH && state != AWAY)
		bring_to_state(b, s, state);
	s->residency = client_residency(b->self.device, s->handle);
}

static struct oracle_allocation describe(const struct kind *k, enum state s, uint32_t residency)
{
	bool permanent = k->flags & PERMANENT, vram = has_memory(k);

	return (struct oracle_allocation){
		.cpu_visible = k->flags & CPU,
		.protected = k->flags & SOFTGPU_ALLOCATION_PROTECTED,
		.aperture = !k->segment_set || (k->segment_set & APERTURE),
		.swizzled = k->stride != 0,
		.cached = k->flags & SOFTGPU_ALLOCATION_CACHED,
		.shared = k->shared,
		.pinned = k->flags & PINNED,
		.existing = k->flags & EXISTING,
		.primary = k->primary,
		.for_alternate = k->for_alternate,
		.memory = vram,
		.through = k->eviction_set != 0,
		.permanent = permanent,
		.unswizzles = !k->hidden_vram && !k->no_ranges, /* softgpu's ranges */
		.alternates = !k->no_ranges && vram,
		.ranges = !k->no_ranges,
		.coherent = !k->incoherent,
		.offered = s == OFFERED,
		.superseded = s == SUPERSEDED,
		.retired = s == RETIRED,
		.held = s == HELD_PLAIN                          ? ORACLE_PLAIN
			: s == HELD_RANGE || s == HELD_ALTERNATE ? ORACLE_RANGE
								 : ORACLE_UNLOCKED,
		.away = s == AWAY && residency == EVICTED && is_written(k, s),
		.hidden = k->hidden_vram && residency == IN_VRAM,
		.gpu_newer = permanent && (s == RESIDENT || s == READING || s == WRITING),
		.reading = s == READING || s == WRITING,
		.writing = s == WRITING,
	};
}

/* ---- one combination ---- */

static bool has_finding_of(const struct client *client, const char *rules)
{
	for (const char *rule = rules; *rule; rule += strcspn(rule, " "), rule += *rule == ' ') {
		char id[16];

		snprintf(id, sizeof(id), "%.*s", (int)strcspn(rule, " "), rule);
		if (client_found(client, id))
			return true;
	}
	return false;
}

static void report_difference(const struct fixture *b, const struct request *r, const char *what)
{
	fail_msg("kind %d, state %d, list %d, door %d, flags 0x%03x: %s; %u findings, first: %s",
		 (int)(b->kind - kinds), r->state, r->lock.list, r->door, r->lock.flags, what,
		 b->w.client.findings, b->w.client.findings ? b->w.client.finding[0] : "");
}

/* How often it was locked before; a missing or extra unlock would be noticed. */
static void expect_locks(const struct fixture *b, const struct request *r, D3DKMT_HANDLE handle,
			 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!unlock_succeeds(&b->self, r->door, handle))
			report_difference(b, r, "a lock is missing");
	if (unlock_succeeds(&b->self, r->door, handle))
		report_difference(b, r, "a lock is left");
}

static void check(struct fixture *b, const struct request *r, const struct subject *s,
		  const struct oracle_answer *expected, const struct answer *got)
{
	uint32_t held = r->state >= HELD_PLAIN;
	int32_t result = expected->status;

	if (r->door == BY_CALLBACK)
		result = oracle_hresult(result);
	if (got->result != result)
		report_difference(b, r, "the status");
	if ((got->data != NULL) != (result == 0))
		report_difference(b, r, "the pointer");
	if (b->w.client.findings != (*expected->rules != 0) ||
	    (*expected->rules && !has_finding_of(&b->w.client, expected->rules)))
		report_difference(b, r, *expected->rules ? expected->rules : "no finding is due");
	if (result != 0 || !expected->may_rename) {
		if ((got->handle != s->handle) != expected->renames)
			report_difference(b, r, "the handle");
	}
	if (got->handle == s->handle) {
		expect_locks(b, r, s->handle, held + (result == 0));
	} else {
		expect_locks(b, r, got->handle, 1);
		expect_locks(b, r, s->handle, held);
	}
}

static void check_place(struct fixture *b, const struct request *r, const struct subject *s,
			enum oracle_place place)
{
	static const uint32_t where[] = {
		[ORACLE_LEAVES] = EVICTED, [ORACLE_COMES_IN] = IN_VRAM, [ORACLE_ANYWHERE] = 0};
	uint32_t expected = place == ORACLE_STAYS ? s->residency : where[place];

	if (expected && client_residency(b->self.device, s->handle) != expected)
		report_difference(b, r, "the place");
}

/*
 * Whatever the result, the content is what was written. An honored Discard may leave any content
 * (REN-15).
 */
static void check_content(struct fixture *b, const struct request *r, const struct subject *s)
{
	const uint32_t *word =
		client_lock(b->self.device, s->handle, usual_flags(b->kind) | READ_ONLY);

	if (*word != 0x12345678)
		report_difference(b, r, "the content");
	assert_int_equal(client_unlock(b->self.device, s->handle), S_OK);
}

struct caller {
	struct fixture *fixture;
	const struct request *request;
	D3DKMT_HANDLE handle;
	struct answer answer;
	bool gate_was_open;
	_Atomic bool called;
};

static void caller_main(void *argument)
{
	struct caller *c = argument;
	const struct world *w = &c->fixture->w;

	atomic_store(&c->called, true);
	c->answer = call(&c->fixture->self, c->request, c->handle);
	c->gate_was_open = atomic_load(w->gate_word) == w->gate_value;
}

/*
 * A lock that waits must return with the gate open; a lock that does not must return with it
 * closed.
 */
static struct answer call_and_wait(struct fixture *b, const struct request *r, D3DKMT_HANDLE handle)
{
	struct caller c = {.fixture = b, .request = r, .handle = handle};
	struct vidmm_thread *thread;

	assert_int_equal(vidmm_thread_create(b->w.client.host, "locker", caller_main, &c, &thread),
			 0);
	while (!atomic_load(&c.called))
		vidmm_settle(b->w.client.host);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(b->w.client.host);
	gate_open(&b->w);
	vidmm_thread_join(thread);
	if (!c.gate_was_open)
		report_difference(b, r, "it did not wait");
	return c.answer;
}

static void end(struct fixture *b, struct subject *s)
{
	D3DDDICB_DEALLOCATE resource = {.hResource = &s->runtime};
	struct client_device *device = b->self.device;

	if (b->kind->shared)
		assert_int_equal(device->cb->pfnDeallocateCb(device->handle, &resource), S_OK);
	else
		assert_int_equal(client_deallocate(device, s->newest), S_OK);
	client_idle(&b->w.client);
	client_forget(&b->w.client);
}

static struct oracle_answer expect(const struct fixture *b, const struct request *r,
				   const struct subject *s)
{
	const struct oracle_allocation allocation = describe(b->kind, r->state, s->residency);

	return oracle_lock(r->lock, &allocation);
}

static uint32_t cells;

static void one_combination(struct fixture *b, const struct request *r)
{
	struct subject s = {.runtime = 0};

	cells++;

	prepare(b, &s, r->state);
	struct oracle_answer expected = expect(b, r, &s);

	client_forget(&b->w.client);
	struct answer got =
		expected.waits ? call_and_wait(b, r, s.handle) : call(&b->self, r, s.handle);
	check(b, r, &s, &expected, &got);
	if (got.handle != s.handle)
		s.newest = got.handle;
	if (r->state != SUPERSEDED && r->state != RETIRED)
		check_place(b, r, &s, got.handle != s.handle ? ORACLE_STAYS : expected.place);
	gate_open(&b->w);
	if (r->state == OFFERED)
		reclaim(b, &s);
	if (is_written(b->kind, r->state) && r->state != SUPERSEDED && r->state != RETIRED &&
	    got.handle == s.handle && !expected.may_rename)
		check_content(b, r, &s);
	end(b, &s);
}

/* ---- all of them ---- */

/*
 * All combinations take long: the gcc build runs them all once. Other runs take one of so many,
 * each build from another start on.
 */
static const uint32_t one_in_of_build[] = {101, 13, 29, 61};
static uint32_t one_in;

static void every_flag(struct fixture *b, enum state s, enum oracle_list list,
		       bool (*leave_out)(enum state, uint32_t))
{
	static uint32_t turn;
	const uint32_t start = (uint32_t)seeds_build_number();

	for (uint32_t flags = 0; flags < EVERY_FLAG; flags++)
		for (enum door door = BY_CALLBACK; door < DOORS; door++)
			if (!leave_out(s, flags) && turn++ % one_in == start % one_in)
				one_combination(b, &(struct request){door, s, {flags, list}});
}

static bool nothing(enum state s, uint32_t flags)
{
	(void)s;
	(void)flags;
	return false;
}

static bool busy_with_flags_that_are_not_about_waiting(enum state s, uint32_t flags)
{
	return (s == READING || s == WRITING) &&
	       (flags & (READ_ONLY | WRITE_ONLY | LOCK_ENTIRE | USE_ALTERNATE_VA));
}

/*
 * Real threads are slow: there, only a plain allocation and one that must be evicted for the CPU.
 */
static void lock_41_every_flag_combination_matches_the_oracle(void **state)
{
	bool sim = *(uint32_t *)*state == VIDMM_HOST_SIM;

	for (size_t k = 0; k < KINDS; k++) {
		struct fixture b;

		if (!sim && k != 0 && !kinds[k].hidden_vram)
			continue;
		fixture_start(&b, state, &kinds[k]);
		for (enum state s = FRESH; s < STATES; s++)
			if (state_exists(&kinds[k], s))
				every_flag(&b, s, ORACLE_NO_LIST,
					   sim ? nothing
					       : busy_with_flags_that_are_not_about_waiting);
		world_stop(&b.w);
	}
}

static void lock_17_lock_18_lock_21_every_flag_with_a_page_list_matches_the_oracle(void **state)
{
	for (size_t k = 0; k < KINDS; k++) {
		struct fixture b;

		fixture_start(&b, state, &kinds[k]);
		for (enum state s = FRESH; s <= AWAY; s++)
			every_flag(&b, s, ORACLE_LIST, busy_with_flags_that_are_not_about_waiting);
		for (enum oracle_list list = ORACLE_PAST_THE_END; list < ORACLE_LISTS; list++)
			every_flag(&b, RESIDENT, list, nothing);
		world_stop(&b.w);
	}
}

static void lock_02_each_reserved_bit_is_refused(void **state)
{
	static const uint32_t others[] = {0, READ_ONLY | WRITE_ONLY, EVERY_FLAG - 1};
	struct fixture b;

	fixture_start(&b, state, &kinds[0]);
	for (uint32_t bit = EVERY_FLAG; bit; bit <<= 1)
		for (uint32_t i = 0; i < 3; i++)
			for (enum door door = BY_CALLBACK; door < DOORS; door++)
				one_combination(&b, &(struct request){
							    door, RESIDENT, {bit | others[i], 0}});
	world_stop(&b.w);
}

/* The device of another process, to which the resource was shared. */
static void lock_24_every_lock_of_another_process_s_allocation_is_refused(void **state)
{
	static const struct kind kind = {.flags = CPU, .shared = true};
	struct client_device other;
	struct subject s = {.runtime = 0};
	struct fixture b;
	struct door_device them;
	uint32_t global, count = 1, opened_resource;
	D3DKMT_HANDLE opened;

	fixture_start(&b, state, &kind);
	client_open(&b.w.client, &other);
	vidmm_device_destroy(other.device);
	make_device(&b.w, &them, &other);
	create(&b, &s);
	assert_int_equal(vidmm_resource_share(b.self.device->device, s.resource, &global), 0);
	assert_int_equal(
		vidmm_resource_open(other.device, global, &opened_resource, &opened, &count), 0);
	struct oracle_allocation a = describe(&kind, FRESH, EVICTED);
	a.foreign = true;
	vidmm_d3dkmt_attach(other.process);
	for (uint32_t flags = 0; flags < EVERY_FLAG; flags++)
		for (enum door door = BY_CALLBACK; door < DOORS; door++) {
			const struct request r = {door, FRESH, {flags, ORACLE_NO_LIST}};
			struct oracle_answer expected = oracle_lock(r.lock, &a);

			client_forget(&b.w.client);
			struct answer got = call(&them, &r, opened);
			if (got.result != (door == BY_THUNK ? expected.status
							    : oracle_hresult(expected.status)) ||
			    got.handle != opened || got.data || b.w.client.findings != 1 ||
			    !has_finding_of(&b.w.client, expected.rules))
				report_difference(&b, &r, expected.rules);
		}
	vidmm_d3dkmt_attach(b.w.device.process);
	client_close(&other);
	end(&b, &s);
	world_stop(&b.w);
}

/* REN-11: the list is full of instances that an unsubmitted buffer may reference. */
static void lock_41_ren_11_too_many_references_as_hresult_and_ntstatus(void **state)
{
	static const struct kind kind = {.flags = CPU};
	struct fixture b;

	fixture_start(&b, state, &kind);
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	wish.renaming_limit = 1;
	D3DKMT_HANDLE a = allocate_wish(&b.w.device, &wish);
	struct request r = {BY_THUNK, FRESH, {DISCARD, ORACLE_NO_LIST}};
	struct answer got = call(&b.self, &r, a);

	assert_int_equal(got.result, STATUS_GRAPHICS_TOO_MANY_REFERENCES);
	assert_int_equal(got.handle, a);
	assert_null(got.data);
	r.door = BY_CALLBACK;
	got = call(&b.self, &r, a);
	assert_int_equal(got.result, D3DERR_WASSTILLDRAWING);
	assert_int_equal(got.handle, a);
	r.lock.flags |= NO_EXISTING_REFERENCE;
	r.door = BY_THUNK;
	got = call(&b.self, &r, a);
	assert_int_equal(got.result, STATUS_SUCCESS);
	expect_locks(&b, &r, got.handle, 1);
	client_forget(&b.w.client);
	world_stop(&b.w);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		BOTH(lock_41_every_flag_combination_matches_the_oracle),
		{"sim: lock_17_lock_18_lock_21_every_flag_with_a_page_list_matches_the_oracle",
		 lock_17_lock_18_lock_21_every_flag_with_a_page_list_matches_the_oracle,
		 world_prepare, NULL, &on_sim},
		BOTH(lock_02_each_reserved_bit_is_refused),
		BOTH(lock_24_every_lock_of_another_process_s_allocation_is_refused),
		BOTH(lock_41_ren_11_too_many_references_as_hresult_and_ntstatus),
	};

	one_in = count > 1 && strcmp(arguments[1], "all") == 0
			 ? 1
			 : one_in_of_build[seeds_build_number() & 3];
	int failed = cmocka_run_group_tests_name("lock flags", tests, NULL, NULL);

	/* The first difference ends its test. */
	printf("# %u cells: 2048 combinations of flags, one in %u of %d kinds, %d states, "
	       "both doors, with and without lists; %s\n",
	       cells, one_in, KINDS, STATES,
	       failed ? "a difference from the oracle" : "0 differences from the oracle");
	return failed;
}
