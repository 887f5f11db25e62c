/* SPDX-License-Identifier: MIT */
/*
 * cause_stream SITUATION FILE: plays a situation in which calls fail, and writes its events, a line
 * for each, as input of `vidmm explain`. Without arguments: lists the situations.
 */
#include <stdio.h>
#include <string.h>

#include <timeout_world.h>

#define ALL_EVENTS ((1ull << VIDMM_EVENT_TYPE_COUNT) - 1)

enum { DONOT_WAIT = 0x4, READ_ONLY = 0x1, WRITE_ONLY = 0x2, DISCARD = 0x80, OVERLAY = 0x100 };

struct situation {
	const char *name;
	void (*play)(struct timeout_world *t);
	uint32_t level, fatals;
};

static const char *stream_path;
static const struct situation *situation;

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	char line[1024];

	assert_true(vidmm_event_format(event, text, line, sizeof(line)) > 0);
	fprintf(context, "%s\n", line);
}

static D3DKMT_HANDLE allocate(struct timeout_world *t, uint64_t bytes, uint32_t flags)
{
	const struct scripted_allocation spec = {
		.size_bytes = bytes, .flags = flags, .read_set = 1, .write_set = 1};

	return world_allocate_as(&t->w.device, &spec);
}

static HRESULT try_allocate(struct timeout_world *t, uint64_t bytes, uint32_t set)
{
	struct scripted_allocation spec = {.size_bytes = bytes, .read_set = set, .write_set = set};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	return t->w.device.cb->pfnAllocateCb(t->w.device.handle, &args);
}

static HRESULT try_lock(struct timeout_world *t, D3DKMT_HANDLE allocation, uint32_t flags)
{
	return client_try_lock(&t->w.device, &allocation, flags, NULL);
}

static void expect_failure(HRESULT result)
{
	assert_true(result < 0);
}

/* ---- the device was lost ---- */

static void hang(struct timeout_world *t)
{
	timeout_hang(t);
	world_submit_use(&t->w.context, t->a);
	timeout_await(t, VIDMM_RECOVERY_RESTARTED, 1);
}

static void own_packet_hangs(struct timeout_world *t)
{
	hang(t);
	for (uint32_t i = 0; i < 3; i++)
		expect_failure(try_lock(t, t->a, 0));
	expect_failure(try_allocate(t, 4096, WORLD_MEMORY));
}

static void packet_of_another_process_hangs(struct timeout_world *t)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE};
	struct client_device other;

	client_open(&t->w.client, &other);
	D3DKMT_HANDLE b = world_allocate_as(&other, &spec);
	hang(t);
	expect_failure(client_try_lock(&other, &b, 0, NULL));
	client_close(&other);
}

/* The broken rule of an earlier call does not explain the loss. */
static void hang_after_a_mistake(struct timeout_world *t)
{
	expect_failure(try_lock(t, t->a, READ_ONLY | WRITE_ONLY));
	hang(t);
	expect_failure(try_lock(t, t->a, 0));
}

static void reset_fails(struct timeout_world *t)
{
	scripted_fail(t->w.m, VIDMM_DDI_RESET_FROM_TIMEOUT, STATUS_UNSUCCESSFUL, 1);
	timeout_hang(t);
	world_submit_use(&t->w.context, t->a);
	client_idle(&t->w.client);
	expect_failure(try_lock(t, t->a, 0));
}

static void timeout_is_not_handled(struct timeout_world *t)
{
	timeout_hang(t);
	world_submit_use(&t->w.context, t->a);
	client_idle(&t->w.client);
	expect_failure(try_lock(t, t->a, 0));
}

static void fail_and_submit(struct timeout_world *t, enum vidmm_ddi ddi)
{
	D3DKMT_HANDLE b = allocate(t, 64 * KIB, WORLD_CPU_VISIBLE);

	scripted_fail(t->w.m, ddi, STATUS_UNSUCCESSFUL, 1);
	world_use(&t->w.context, b);
	(void)client_try_submit(&t->w.context);
	client_idle(&t->w.client);
	expect_failure(try_lock(t, t->a, 0));
}

static void submit_command_fails(struct timeout_world *t)
{
	fail_and_submit(t, VIDMM_DDI_SUBMIT_COMMAND);
}

static void patch_fails(struct timeout_world *t)
{
	fail_and_submit(t, VIDMM_DDI_PATCH);
}

static void build_paging_buffer_fails(struct timeout_world *t)
{
	fail_and_submit(t, VIDMM_DDI_BUILD_PAGING_BUFFER);
}

static void wrong_fence_is_reported(struct timeout_world *t)
{
	timeout_hang(t);
	world_submit_use(&t->w.context, t->a);
	scripted_report(t->w.m, 0, 0x12345);
	client_idle(&t->w.client);
	expect_failure(try_lock(t, t->a, 0));
}

static void adapter_is_removed(struct timeout_world *t)
{
	assert_int_equal(vidmm_adapter_remove(t->w.client.adapter, VIDMM_REMOVAL_PNP), 0);
	expect_failure(try_lock(t, t->a, 0));
}

/* ---- a DDI of the miniport failed ---- */

static void create_allocation_fails(struct timeout_world *t)
{
	scripted_fail(t->w.m, VIDMM_DDI_CREATE_ALLOCATION, STATUS_NO_MEMORY, 1);
	expect_failure(try_allocate(t, 4096, WORLD_MEMORY));
}

static void create_allocation_fails_undocumented(struct timeout_world *t)
{
	scripted_fail(t->w.m, VIDMM_DDI_CREATE_ALLOCATION, STATUS_DEVICE_REMOVED, 1);
	expect_failure(try_allocate(t, 4096, WORLD_MEMORY));
}

static void open_allocation_fails(struct timeout_world *t)
{
	scripted_fail(t->w.m, VIDMM_DDI_OPEN_ALLOCATION, STATUS_NO_MEMORY, 1);
	expect_failure(try_allocate(t, 4096, WORLD_MEMORY));
}

static void create_context_fails(struct timeout_world *t)
{
	D3DDDICB_CREATECONTEXT args = {0};

	scripted_fail(t->w.m, VIDMM_DDI_CREATE_CONTEXT, STATUS_NO_MEMORY, 1);
	expect_failure(t->w.device.cb->pfnCreateContextCb(t->w.device.handle, &args));
}

static void create_device_fails(struct timeout_world *t)
{
	struct vidmm_device *device;

	scripted_fail(t->w.m, VIDMM_DDI_CREATE_DEVICE, STATUS_NO_MEMORY, 1);
	assert_true(vidmm_device_create(t->w.device.process, t->w.client.adapter, &device) < 0);
}

static void render_fails(struct timeout_world *t)
{
	scripted_fail(t->w.m, VIDMM_DDI_RENDER, STATUS_INVALID_PARAMETER, 1);
	world_use(&t->w.context, t->a);
	expect_failure(client_try_submit(&t->w.context));
}

/* ---- the caller's mistakes ---- */

static void lock_with_opposite_flags(struct timeout_world *t)
{
	expect_failure(try_lock(t, t->a, READ_ONLY | WRITE_ONLY));
	expect_failure(try_lock(t, t->a, READ_ONLY | WRITE_ONLY));
}

static void lock_of_an_unknown_handle(struct timeout_world *t)
{
	expect_failure(try_lock(t, 0x12345678, 0));
}

static void lock_of_a_destroyed_allocation(struct timeout_world *t)
{
	D3DKMT_HANDLE b = allocate(t, 4096, WORLD_CPU_VISIBLE);

	assert_int_equal(client_deallocate(&t->w.device, b), S_OK);
	expect_failure(try_lock(t, b, 0));
}

static void lock_of_an_invisible_allocation(struct timeout_world *t)
{
	expect_failure(try_lock(t, allocate(t, 4096, 0), 0));
}

static void unlock_without_a_lock(struct timeout_world *t)
{
	expect_failure(client_unlock(&t->w.device, t->a));
}

static void allocation_in_no_segment(struct timeout_world *t)
{
	expect_failure(try_allocate(t, 4096, 0x8));
}

static void allocation_of_no_bytes(struct timeout_world *t)
{
	expect_failure(try_allocate(t, 0, WORLD_MEMORY));
}

static void offer_of_a_pinned_allocation(struct timeout_world *t)
{
	D3DKMT_HANDLE b = allocate(t, 64 * KIB, OVERLAY);
	D3DDDICB_OFFERALLOCATIONS args = {
		.HandleList = &b, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};

	expect_failure(t->w.device.cb->pfnOfferAllocationsCb(t->w.device.handle, &args));
}

static void reclaim_of_an_unknown_handle(struct timeout_world *t)
{
	D3DKMT_HANDLE unknown = 0x7654;
	D3DDDICB_RECLAIMALLOCATIONS args = {.HandleList = &unknown, .NumAllocations = 1};

	expect_failure(t->w.device.cb->pfnReclaimAllocationsCb(t->w.device.handle, &args));
}

static void lock_with_reserved_flags(struct timeout_world *t)
{
	expect_failure(try_lock(t, t->a, 0x80000000));
}

static void render_without_a_context(struct timeout_world *t)
{
	D3DDDICB_RENDER args = world_render_args(&t->w.context);

	args.hContext = (HANDLE)(uintptr_t)0x7654;
	expect_failure(t->w.device.cb->pfnRenderCb(t->w.device.handle, &args));
}

static void context_on_a_missing_node(struct timeout_world *t)
{
	D3DDDICB_CREATECONTEXT args = {.NodeOrdinal = 60};

	expect_failure(t->w.device.cb->pfnCreateContextCb(t->w.device.handle, &args));
}

/* ---- no mistake ---- */

static void lock_that_does_not_wait(struct timeout_world *t)
{
	timeout_hang(t);
	world_submit_use(&t->w.context, t->a);
	expect_failure(try_lock(t, t->a, DONOT_WAIT));
	world_run(&t->w);
}

static void allocation_larger_than_its_segments(struct timeout_world *t)
{
	D3DKMT_HANDLE b = allocate(t, 1ull << 30, 0);

	world_submit_use(&t->w.context, b);
	client_idle(&t->w.client);
	expect_failure(try_lock(t, t->a, 0));
}

static void all_segments_are_full(struct timeout_world *t)
{
	const struct scripted_allocation spec = {
		.size_bytes = 10 * MIB, .read_set = WORLD_MEMORY, .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE b = world_allocate_as(&t->w.device, &spec),
		      c = world_allocate_as(&t->w.device, &spec);

	world_use(&t->w.context, b);
	world_use(&t->w.context, c);
	(void)client_try_submit(&t->w.context);
	client_idle(&t->w.client);
	expect_failure(try_lock(t, t->a, 0));
}

/* ---- an eviction ---- */

static void eviction_for_another_process(struct timeout_world *t)
{
	const struct scripted_allocation spec = {
		.size_bytes = 10 * MIB, .read_set = 1, .write_set = 1};
	struct client_device other;
	struct client_context context;

	D3DKMT_HANDLE b = allocate(t, 10 * MIB, 0);
	world_submit_use(&t->w.context, b);
	client_idle(&t->w.client);
	client_open(&t->w.client, &other);
	client_context(&other, 0, &context);
	world_submit_use(&context, world_allocate_as(&other, &spec));
	client_idle(&t->w.client);
	client_close(&other);
}

static const struct situation situations[] = {
	{.name = "own_packet_hangs", .play = own_packet_hangs},
	{.name = "packet_of_another_process_hangs", .play = packet_of_another_process_hangs},
	{.name = "hang_after_a_mistake", .play = hang_after_a_mistake},
	{.name = "reset_fails", .play = reset_fails, .fatals = 1},
	{.name = "timeout_is_not_handled", .play = timeout_is_not_handled, .level = 1, .fatals = 1},
	{.name = "submit_command_fails", .play = submit_command_fails, .fatals = 1},
	{.name = "patch_fails", .play = patch_fails, .fatals = 1},
	{.name = "build_paging_buffer_fails", .play = build_paging_buffer_fails, .fatals = 1},
	{.name = "wrong_fence_is_reported", .play = wrong_fence_is_reported, .fatals = 1},
	{.name = "adapter_is_removed", .play = adapter_is_removed},
	{.name = "create_allocation_fails", .play = create_allocation_fails},
	{.name = "create_allocation_fails_undocumented",
	 .play = create_allocation_fails_undocumented},
	{.name = "open_allocation_fails", .play = open_allocation_fails},
	{.name = "create_context_fails", .play = create_context_fails},
	{.name = "create_device_fails", .play = create_device_fails},
	{.name = "render_fails", .play = render_fails},
	{.name = "lock_with_opposite_flags", .play = lock_with_opposite_flags},
	{.name = "lock_of_an_unknown_handle", .play = lock_of_an_unknown_handle},
	{.name = "lock_of_a_destroyed_allocation", .play = lock_of_a_destroyed_allocation},
	{.name = "lock_of_an_invisible_allocation", .play = lock_of_an_invisible_allocation},
	{.name = "unlock_without_a_lock", .play = unlock_without_a_lock},
	{.name = "allocation_in_no_segment", .play = allocation_in_no_segment},
	{.name = "allocation_of_no_bytes", .play = allocation_of_no_bytes},
	{.name = "offer_of_a_pinned_allocation", .play = offer_of_a_pinned_allocation},
	{.name = "reclaim_of_an_unknown_handle", .play = reclaim_of_an_unknown_handle},
	{.name = "lock_with_reserved_flags", .play = lock_with_reserved_flags},
	{.name = "render_without_a_context", .play = render_without_a_context},
	{.name = "context_on_a_missing_node", .play = context_on_a_missing_node},
	{.name = "lock_that_does_not_wait", .play = lock_that_does_not_wait},
	{.name = "allocation_larger_than_its_segments",
	 .play = allocation_larger_than_its_segments},
	{.name = "all_segments_are_full", .play = all_segments_are_full},
	{.name = "eviction_for_another_process", .play = eviction_for_another_process},
};

static void with_removal(struct scripted_miniport *m)
{
	m->settings.caps.SupportSurpriseRemovalInHibernation = 1;
	m->settings.caps.SupportSurpriseRemoval = 1;
}

static void record(void **state)
{
	struct vidmm_tdr_options tdr = timeout_defaults(*(uint32_t *)*state);
	FILE *out = fopen(stream_path, "w");
	struct timeout_world t;

	assert_non_null(out);
	if (situation->level)
		tdr.level = situation->level;
	timeout_start(&t, state, with_removal, &tdr);
	uint32_t id = vidmm_subscribe(t.w.client.host, ALL_EVENTS, on_event, out);

	situation->play(&t);
	vidmm_unsubscribe(t.w.client.host, id);
	assert_int_equal(fclose(out), 0);
	client_forget(&t.w.client);
	t.w.expected_fatals = situation->fatals;
	timeout_stop(&t);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {ON_SIM(record)};
	size_t count = sizeof(situations) / sizeof(situations[0]);

	for (size_t i = 0; i < count && argc == 1; i++)
		printf("%s\n", situations[i].name);
	if (argc == 1)
		return 0;
	for (size_t i = 0; i < count && argc == 3; i++)
		if (strcmp(argv[1], situations[i].name) == 0)
			situation = &situations[i];
	if (!situation) {
		fprintf(stderr, "usage: cause_stream [SITUATION FILE]\n");
		return 2;
	}
	stream_path = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
