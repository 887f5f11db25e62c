/* SPDX-License-Identifier: MIT */
/*
 * Creating and opening allocations: flags that exist from a version on (ALF-02, ALF-24), private
 * data (ALF-34).
 */
#include "sched_world.h"

#include <string.h>

#define CACHED         0x4u
#define HISTORY_BUFFER 0x4000u

static void version_1_2_starts(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WIN8);
}

static HRESULT try_flags(struct world *w, uint32_t flags)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = flags};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	HRESULT result = w->device.cb->pfnAllocateCb(w->device.handle, &args);

	if (result != S_OK) {
		assert_int_equal(info.hAllocation, 0);
		assert_int_equal(w->m->live_allocations, 0);
	}
	return result;
}

/* Before 1.3 the bit is reserved; from 1.3 on it has its meaning. */
static void alf_02_alf_24_historybuffer_is_reserved_before_1_3(void **state)
{
	struct world w;

	world_start(&w, state, version_1_2_starts);
	assert_int_equal(try_flags(&w, WORLD_CPU_VISIBLE | CACHED | HISTORY_BUFFER), E_INVALIDARG);
	world_expect_finding(&w, "ALF-02");
	assert_int_equal(try_flags(&w, WORLD_CPU_VISIBLE), S_OK);
	world_stop(&w);
	world_start(&w, state, NULL);
	assert_int_equal(try_flags(&w, WORLD_CPU_VISIBLE | CACHED | HISTORY_BUFFER), S_OK);
	assert_int_equal(w.client.findings, 0);
	world_stop(&w);
}

static void alf_24_historybuffer_excludes_other_flags(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t bit = 0; bit < 14; bit++) {
		uint32_t flags = HISTORY_BUFFER | WORLD_CPU_VISIBLE | 1u << bit;

		if ((1u << bit) & (WORLD_CPU_VISIBLE | CACHED))
			continue;
		assert_int_equal(try_flags(&w, flags), E_INVALIDARG);
		/* Several of them violate another rule too, which is checked first. */
		assert_true(w.client.findings == 1);
		if (!client_found(&w.client, "ALF-24"))
			assert_true((1u << bit) & (0x10u | 0x20u | 0x400u));
		client_forget(&w.client);
	}
	world_stop(&w);
}

/* ---- ALF-34 ---- */

enum { MARK = 0x0A1F0034 };

struct scribbler {
	bool when_created, when_opened;
	uint32_t seen; /* by the last open other than the creation */
};

/*
 * The word at the end of a client's description, which the miniport itself ignores (flags2 below
 * 3.0).
 */
static void scribble(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct scribbler *s = context;
	const DXGKARG_OPENALLOCATION *open = &call->in.open_allocation;
	struct scripted_allocation *data;

	(void)m;
	if (call->ddi != VIDMM_DDI_OPEN_ALLOCATION)
		return;
	data = (struct scripted_allocation *)(uintptr_t)open->pOpenAllocation[0].pPrivateDriverData;
	assert_int_equal(open->pOpenAllocation[0].PrivateDriverDataSize, sizeof(*data));
	if (!open->Flags.Create)
		s->seen = data->flags2;
	if (open->Flags.Create ? s->when_created : s->when_opened)
		data->flags2 = open->Flags.Create ? MARK : 0xBAD;
}

static uint32_t share_one(struct world *w, struct scripted_allocation *spec)
{
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = spec,
				      .PrivateDriverDataSize = sizeof(*spec)};
	D3DDDICB_ALLOCATE args = {.hResource = spec, .NumAllocations = 1, .pAllocationInfo = &info};
	uint32_t global;

	assert_int_equal(vidmm_resource_set_shared(w->device.device, spec), 0);
	assert_int_equal(w->device.cb->pfnAllocateCb(w->device.handle, &args), S_OK);
	assert_int_equal(vidmm_resource_share(w->device.device, args.hKMResource, &global), 0);
	return global;
}

static void open_it(struct client_device *device, uint32_t global)
{
	uint32_t resource, allocation, count = 1;

	assert_int_equal(
		vidmm_resource_open(device->device, global, &resource, &allocation, &count), 0);
}

/*
 * What the miniport writes at creation reaches the creator and every process that opens the
 * allocation.
 */
static void alf_34_private_data_is_written_at_creation(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB};
	struct scribbler s = {.when_created = true};
	struct client_device other;
	struct world w;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	w.m->hook_context = &s;
	w.m->hook = scribble;
	uint32_t global = share_one(&w, &spec);
	assert_int_equal(spec.flags2, MARK);
	open_it(&other, global);
	assert_int_equal(s.seen, MARK);
	w.m->hook = NULL;
	client_close(&other);
	world_stop(&w);
}

static void alf_34_changes_by_one_opener_are_not_seen_by_the_next(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags2 = 7};
	struct scribbler s = {.when_opened = true};
	struct client_device other[2];
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < 2; i++)
		client_open(&w.client, &other[i]);
	w.m->hook_context = &s;
	w.m->hook = scribble;
	uint32_t global = share_one(&w, &spec);
	open_it(&other[0], global);
	world_expect_finding(&w, "ALF-34");
	s.when_opened = false;
	open_it(&other[1], global);
	assert_int_equal(s.seen, 7);
	assert_int_equal(w.client.findings, 0);
	w.m->hook = NULL;
	for (uint32_t i = 0; i < 2; i++)
		client_close(&other[i]);
	world_stop(&w);
}

static void fail_the_next_open(void *context, struct scripted_miniport *m,
			       struct scripted_call *call)
{
	bool *armed = context;

	if (call->ddi != VIDMM_DDI_OPEN_ALLOCATION || !*armed)
		return;
	*armed = false;
	scripted_fail(m, VIDMM_DDI_OPEN_ALLOCATION, STATUS_NO_MEMORY, 1);
}

/* The first of two allocations is opened, the second is not. */
static void rop_05_a_failed_open_leaves_the_outputs_unchanged(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB};
	D3DDDI_ALLOCATIONINFO info[2];
	D3DDDICB_ALLOCATE args = {.hResource = &spec, .NumAllocations = 2, .pAllocationInfo = info};
	uint32_t global, resource = 1, opened[2] = {2, 3}, count = 2;
	struct client_device other;
	bool armed = true;
	struct world w;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	for (uint32_t i = 0; i < 2; i++)
		info[i] = (D3DDDI_ALLOCATIONINFO){.pPrivateDriverData = &spec,
						  .PrivateDriverDataSize = sizeof(spec)};
	assert_int_equal(vidmm_resource_set_shared(w.device.device, &spec), 0);
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), S_OK);
	assert_int_equal(vidmm_resource_share(w.device.device, args.hKMResource, &global), 0);
	w.m->hook_context = &armed;
	w.m->hook = fail_the_next_open;
	assert_int_equal(vidmm_resource_open(other.device, global, &resource, opened, &count),
			 STATUS_NO_MEMORY);
	w.m->hook = NULL;
	assert_false(armed);
	assert_int_equal(resource, 1);
	assert_int_equal(opened[0], 2);
	assert_int_equal(opened[1], 3);
	assert_int_equal(count, 2);
	assert_int_equal(vidmm_resource_open(other.device, global, &resource, opened, &count), 0);
	assert_int_equal(count, 2);
	assert_int_not_equal(opened[0], opened[1]);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(client_deallocate(&other, opened[i]), S_OK);
	client_close(&other);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(alf_02_alf_24_historybuffer_is_reserved_before_1_3),
		ON_SIM(alf_24_historybuffer_excludes_other_flags),
		ON_BOTH(alf_34_private_data_is_written_at_creation),
		ON_BOTH(alf_34_changes_by_one_opener_are_not_seen_by_the_next),
		ON_BOTH(rop_05_a_failed_open_leaves_the_outputs_unchanged),
	};

	return cmocka_run_group_tests_name("sched create", tests, NULL, NULL);
}
