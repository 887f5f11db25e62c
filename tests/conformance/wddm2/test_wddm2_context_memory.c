/* SPDX-License-Identifier: MIT */
/* Context allocations at GPU virtual addresses (VA-20, Q-192), and their update (VA-21, Q-220). */
#include "command_world.h"

#include <string.h>

/*
 * What the miniport creates and maps inside DxgkDdiCreateContext of a context with GPU virtual
 * addresses, and the results.
 */
struct maker {
	uint32_t want;
	enum vidmm_ddi map_in; /* the DDI in which it maps; creation is in CreateContext */
	DXGKARGCB_CREATECONTEXTALLOCATION create;
	DXGKARGCB_MAPCONTEXTALLOCATION map;
	NTSTATUS status;
	uint32_t maps; /* calls of DxgkCbMapContextAllocation left */
	D3DGPU_VIRTUAL_ADDRESS address;
	/*
	 * calls of DxgkCbUpdateContextAllocation left, in that DDI; hAllocation 0: the created one
	 */
	uint32_t updates;
	enum vidmm_ddi update_in;
	DXGKARGCB_UPDATECONTEXTALLOCATION update;
	NTSTATUS updated;
	bool refuse; /* BuildPagingBuffer fails the operation */
};

static void hook(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct maker *maker = context;

	if (maker->refuse && call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER &&
	    call->in.paging.Operation == DXGK_OPERATION_UPDATE_CONTEXT_ALLOCATION)
		call->status = STATUS_NOT_SUPPORTED;
	if (maker->want && call->ddi == VIDMM_DDI_CREATE_CONTEXT &&
	    call->in.create_context.Flags.VirtualAddressing) {
		maker->want--;
		maker->create.hAdapter = m->services.DeviceHandle;
		maker->create.hDevice =
			scripted_last(m, VIDMM_DDI_CREATE_DEVICE)->in.create_device.hDevice;
		maker->create.hContext = call->in.create_context.hContext;
		maker->status = m->services.DxgkCbCreateContextAllocation(&maker->create);
		if (!maker->map.hAllocation)
			maker->map.hAllocation = maker->create.hAllocation;
	}
	if (!maker->want && maker->maps && call->ddi == maker->map_in) {
		maker->maps--;
		maker->address = m->services.DxgkCbMapContextAllocation(m->services.DeviceHandle,
									&maker->map);
	}
	if (!maker->want && maker->updates && call->ddi == maker->update_in) {
		DXGKARGCB_UPDATECONTEXTALLOCATION args = maker->update;

		maker->updates--;
		if (!args.hAllocation)
			args.hAllocation = maker->create.hAllocation;
		maker->updated =
			m->services.DxgkCbUpdateContextAllocation(m->services.DeviceHandle, &args);
	}
}

static struct maker maker_of(void)
{
	return (struct maker){.want = 1,
			      .maps = 1,
			      .map_in = VIDMM_DDI_CREATE_CONTEXT,
			      .status = STATUS_PENDING,
			      .address = UINT64_MAX,
			      .create = {.ContextAllocationFlags.MapGpuVirtualAddress = 1,
					 .hDriverAllocation = &world_sim,
					 .Size = 64 * KIB,
					 .SupportedSegmentSet = WORLD_MEMORY},
			      .map = {.SizeInPages = 16, .Protection.Write = 1}};
}

static void begin(struct stage *s, void **state, struct maker *maker, world_setup *setup)
{
	world_start_adapter(&s->v.w, state, setup);
	s->v.w.m->hook_context = maker;
	s->v.w.m->hook = hook;
	world_open(&s->v.w);
	s->v.queue = wddm2_queue(&s->v.w.device);
	s->v.process = scripted_process(s->v.w.m, 0);
	assert_int_equal(stage_try_context(s, &s->context), S_OK);
	assert_int_equal(maker->status, STATUS_SUCCESS);
	s->commands = va_allocate(&s->v, 64 * KIB, WORLD_APERTURE);
	s->target = va_allocate(&s->v, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	s->commands_at = va_map(&s->v, s->commands, 64 * KIB);
	s->target_at = va_map(&s->v, s->target, 64 * KIB);
	va_make(&s->v, s->commands);
	va_make(&s->v, s->target);
}

static void write_at(struct stage *s, uint64_t address, uint32_t value)
{
	D3DDDICB_SUBMITCOMMAND args = stage_command(s);

	stage_fill(s, address, value);
	assert_int_equal(stage_submit(s, &args), S_OK);
	wddm2_run(&s->v.w);
}

static void va_20_a_context_allocation_is_accessed_at_its_address(void **state)
{
	struct maker maker = maker_of();
	struct stage s;

	begin(&s, state, &maker, va_memory);
	assert_int_not_equal(maker.address, 0);
	assert_int_equal(maker.address % PAGE_BYTES, 0);
	write_at(&s, maker.address + 8, 0x5A5A);
	assert_int_equal(va_word(&s.v, maker.address + 8), 0x5A5A);
	/* Clients neither free nor replace it. */
	assert_int_equal(va_free(&s.v, maker.address, 64 * KIB), E_INVALIDARG);
	world_expect_finding(&s.v.w, "VA-09");
	D3DDDI_MAPGPUVIRTUALADDRESS over = va_mapping(&s.v, s.target, 16);
	over.BaseAddress = maker.address;
	assert_int_equal(va_try_map(&s.v, &over), E_INVALIDARG);
	world_expect_finding(&s.v.w, "VA-03");
	/* It ends with the context. */
	stage_destroy_context(&s, s.context);
	assert_false(va_is_there(&s.v, maker.address));
	va_must_map(&s.v, &over);
	va_finish(&s.v);
}

/* A context allocation of 4 MiB, with 0x1234 at 1 MiB, that one of `other` has evicted. */
static void begin_evicted(struct stage *s, void **state, struct maker *maker,
			  struct client_device *other)
{
	maker->create.Size = 4 * MIB;
	maker->map.SizeInPages = 1024;
	begin(s, state, maker, va_memory);
	write_at(s, maker->address + MIB, 0x1234);
	client_open(&s->v.w.client, other);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(other);
	D3DKMT_HANDLE theirs = wddm2_allocate(other, 14 * MIB, WORLD_MEMORY);
	wddm2_make(&s->v.w, other, &queue, &theirs, 1); /* evicts it */
	assert_int_equal(wddm2_evict(other, theirs, 0), S_OK);
	wddm2_run(&s->v.w);
}

static void va_20_the_mapping_follows_the_allocation_when_it_moves(void **state)
{
	struct maker maker = maker_of();
	struct stage s;
	struct client_device other;

	begin_evicted(&s, state, &maker, &other);
	write_at(&s, maker.address + 8, 0x4321); /* resident again */
	assert_int_equal(va_word(&s.v, maker.address + MIB), 0x1234);
	assert_int_equal(va_word(&s.v, maker.address + 8), 0x4321);
	client_close(&other);
	stage_finish(&s);
}

static void with_reservation(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.reserve_bytes = LEAF_BYTES;
}

static void va_20_a_miniport_maps_into_the_range_that_it_reserved(void **state)
{
	struct maker maker = maker_of();
	struct stage s;

	world_start_adapter(&s.v.w, state, with_reservation);
	s.v.w.m->hook_context = &maker;
	s.v.w.m->hook = hook;
	world_open(&s.v.w);
	s.v.queue = wddm2_queue(&s.v.w.device);
	s.v.process = scripted_process(s.v.w.m, 0);
	maker.map.BaseAddress = s.v.w.m->settings.mmu.reserved_at;
	assert_int_not_equal(maker.map.BaseAddress, 0);
	maker.map.MinimumAddress = 1; /* ignored */
	assert_int_equal(stage_try_context(&s, &s.context), S_OK);
	assert_int_equal(maker.address, maker.map.BaseAddress);
	/* The pages are taken; the next ones are free. */
	maker.maps = 1;
	maker.map_in = VIDMM_DDI_CREATE_CONTEXT;
	stage_destroy_context(&s, stage_context_on(&s, 0));
	assert_int_equal(maker.address, 0);
	world_expect_finding(&s.v.w, "VA-20");
	maker.maps = 1;
	maker.map.BaseAddress += 64 * KIB;
	stage_destroy_context(&s, stage_context_on(&s, 0));
	assert_int_equal(maker.address, maker.map.BaseAddress);
	/* The reservation outlives the mappings. */
	stage_destroy_context(&s, s.context);
	D3DKMT_HANDLE a = va_allocate(&s.v, 64 * KIB, WORLD_MEMORY);
	D3DDDI_MAPGPUVIRTUALADDRESS over = va_mapping(&s.v, a, 16);
	over.BaseAddress = s.v.w.m->settings.mmu.reserved_at;
	assert_int_equal(va_try_map(&s.v, &over), E_INVALIDARG);
	world_expect_finding(&s.v.w, "VA-03");
	va_finish(&s.v);
}

/* Maps again in the next CreateContext, which must fail by that rule. */
static void must_fail(struct stage *s, struct maker *maker,
		      const DXGKARGCB_MAPCONTEXTALLOCATION *map, const char *rule)
{
	maker->maps = 1;
	maker->map = *map;
	maker->address = UINT64_MAX;
	stage_destroy_context(s, stage_context_on(s, 0));
	assert_int_equal(maker->maps, 0);
	assert_int_equal(maker->address, 0);
	world_expect_finding(&s->v.w, rule);
}

static void va_20_wrong_requests_return_0(void **state)
{
	struct maker maker = maker_of();
	struct stage s;

	begin(&s, state, &maker, va_memory);
	const DXGKARGCB_MAPCONTEXTALLOCATION good = maker.map;
	DXGKARGCB_MAPCONTEXTALLOCATION bad = good;
	bad.hAllocation = &maker;
	must_fail(&s, &maker, &bad, "VA-20");
	bad = good;
	bad.SizeInPages = 0;
	must_fail(&s, &maker, &bad, "VA-04");
	bad.SizeInPages = 17;
	must_fail(&s, &maker, &bad, "VA-04");
	bad = good;
	bad.BaseAddress = s.target_at; /* of the client */
	must_fail(&s, &maker, &bad, "VA-20");
	bad.BaseAddress = 4096 + 1;
	must_fail(&s, &maker, &bad, "VA-04");
	bad = good;
	bad.Protection.NoAccess = 1;
	must_fail(&s, &maker, &bad, "VA-03");
	/* A second mapping of the same allocation. */
	maker.maps = 1;
	maker.map = good;
	stage_destroy_context(&s, stage_context_on(&s, 0));
	assert_int_not_equal(maker.address, 0);
	stage_finish(&s);
}

static void va_20_a_ddi_that_pages_cannot_map(void **state)
{
	struct maker maker = maker_of();
	struct stage s;

	maker.map_in = VIDMM_DDI_BUILD_PAGING_BUFFER;
	begin(&s, state, &maker, va_memory);
	assert_int_equal(maker.maps, 0);
	assert_int_equal(maker.address, 0);
	world_expect_finding(&s.v.w, "VA-20");
	stage_finish(&s);
}

static void plain_hook(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct maker *maker = context;

	if (!maker->maps || call->ddi != VIDMM_DDI_CREATE_CONTEXT ||
	    call->in.create_context.Flags.SystemContext)
		return;
	maker->maps--;
	maker->create.hAdapter = m->services.DeviceHandle;
	maker->create.hDevice = scripted_last(m, VIDMM_DDI_CREATE_DEVICE)->in.create_device.hDevice;
	maker->create.hContext = call->in.create_context.hContext;
	maker->status = m->services.DxgkCbCreateContextAllocation(&maker->create);
	maker->create.ContextAllocationFlags.Value = 0;
	maker->status = m->services.DxgkCbCreateContextAllocation(&maker->create);
	maker->map.hAllocation = maker->create.hAllocation;
	maker->address =
		m->services.DxgkCbMapContextAllocation(m->services.DeviceHandle, &maker->map);
}

static void va_20_without_gpu_virtual_addresses_nothing_is_mapped(void **state)
{
	struct maker maker = maker_of();
	struct world w;

	world_start_adapter(&w, state, wddm2_1);
	w.m->hook_context = &maker;
	w.m->hook = plain_hook;
	world_open(&w);
	assert_int_equal(maker.maps, 0);
	assert_int_equal(maker.status, STATUS_SUCCESS);
	assert_int_equal(maker.address, 0);
	wddm2_stop(&w);
}

/* ---- DxgkCbUpdateContextAllocation ---- */

/* Updates the allocation in the next CreateContext. */
static NTSTATUS update(struct stage *s, struct maker *maker)
{
	maker->updates = 1;
	maker->update_in = VIDMM_DDI_CREATE_CONTEXT;
	maker->updated = STATUS_PENDING;
	stage_destroy_context(s, stage_context_on(s, 0));
	assert_int_equal(maker->updates, 0);
	return maker->updated;
}

static const DXGK_BUILDPAGINGBUFFER_UPDATECONTEXTALLOCATION *last_update(const struct world *w)
{
	const struct scripted_call *call;

	for (uint32_t i = scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER); i-- > 0;) {
		call = scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i);
		if (call->in.paging.Operation == DXGK_OPERATION_UPDATE_CONTEXT_ALLOCATION)
			return &call->in.paging.UpdateContextAllocation;
	}
	return NULL;
}

static void updates_are_seen(void **state, world_setup *setup)
{
	struct scripted_word words[] = {{8, 0xAB1E}, {60 * KIB, 0xCAFE}};
	struct maker maker = maker_of();
	struct stage s;

	begin(&s, state, &maker, setup);
	maker.update.pPrivateDriverData = words;
	maker.update.PrivateDriverDataSize = sizeof(words);
	/* Before any packet: it is made resident and initialized first. */
	assert_int_equal(update(&s, &maker), STATUS_SUCCESS);
	assert_int_equal(last_update(&s.v.w)->ContextAllocationSize, 64 * KIB);
	assert_ptr_equal(last_update(&s.v.w)->pDriverPrivateData, words);
	assert_int_equal(last_update(&s.v.w)->DriverPrivateDataSize, sizeof(words));
	assert_int_not_equal(last_update(&s.v.w)->ContextAllocation, maker.address);
	assert_int_equal(va_word(&s.v, maker.address), SCRIPTED_INIT_WORD);
	assert_int_equal(va_word(&s.v, maker.address + 8), 0xAB1E);
	assert_int_equal(va_word(&s.v, maker.address + 60 * KIB), 0xCAFE);
	/* After one, and the rest stays. */
	write_at(&s, maker.address + 16, 0x5A5A);
	words[0].value = 0xF00D;
	assert_int_equal(update(&s, &maker), STATUS_SUCCESS);
	assert_int_equal(va_word(&s.v, maker.address + 8), 0xF00D);
	assert_int_equal(va_word(&s.v, maker.address + 16), 0x5A5A);
	stage_finish(&s);
}

static void va_21_the_gpu_updates_a_context_allocation(void **state)
{
	updates_are_seen(state, va_memory);
	updates_are_seen(state, va_system);
	updates_are_seen(state, va_virtual);
}

static void va_21_an_evicted_allocation_returns_for_its_update(void **state)
{
	struct scripted_word word = {8, 0xAB1E};
	struct maker maker = maker_of();
	struct client_device other;
	struct stage s;

	begin_evicted(&s, state, &maker, &other);
	maker.update.pPrivateDriverData = &word;
	maker.update.PrivateDriverDataSize = sizeof(word);
	assert_int_equal(update(&s, &maker), STATUS_SUCCESS);
	assert_int_equal(va_word(&s.v, maker.address + MIB), 0x1234);
	assert_int_equal(va_word(&s.v, maker.address + 8), 0xAB1E);
	client_close(&other);
	stage_finish(&s);
}

static void va_21_wrong_updates_change_nothing(void **state)
{
	struct scripted_word word = {8, 0xAB1E};
	struct maker maker = maker_of();
	struct stage s;

	begin(&s, state, &maker, va_memory);
	maker.update = (DXGKARGCB_UPDATECONTEXTALLOCATION){
		.hAllocation = &maker, .pPrivateDriverData = &word, .PrivateDriverDataSize = 8};
	assert_int_equal(update(&s, &maker), STATUS_INVALID_HANDLE);
	world_expect_finding(&s.v.w, "VA-21");
	maker.update.hAllocation = NULL;
	maker.update.pPrivateDriverData = NULL;
	assert_int_equal(update(&s, &maker), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.v.w, "VA-21");
	assert_null(last_update(&s.v.w));
	/* In a DDI that pages. */
	maker.update.pPrivateDriverData = &word;
	maker.update_in = VIDMM_DDI_BUILD_PAGING_BUFFER;
	maker.updates = 1;
	write_at(&s, maker.address + 16, 0x5A5A);
	assert_int_equal(maker.updates, 0);
	assert_int_equal(maker.updated, STATUS_INVALID_DEVICE_REQUEST);
	world_expect_finding(&s.v.w, "VA-21");
	assert_null(last_update(&s.v.w));
	/* Without private data it is an update nevertheless. */
	maker.update = (DXGKARGCB_UPDATECONTEXTALLOCATION){0};
	assert_int_equal(update(&s, &maker), STATUS_SUCCESS);
	assert_non_null(last_update(&s.v.w));
	stage_finish(&s);
}

static void va_21_an_allocation_larger_than_the_window_is_refused(void **state)
{
	struct maker maker = maker_of();
	struct stage s;

	maker.create.Size = 9 * MIB;
	begin(&s, state, &maker, va_memory);
	assert_int_equal(update(&s, &maker), STATUS_NO_MEMORY);
	assert_null(last_update(&s.v.w));
	stage_finish(&s);
}

/* The call would have to overlap with another DDI of its class. */
static void q_220_not_inside_setrootpagetable_but_after_it(void **state)
{
	struct scripted_word word = {8, 0xAB1E};
	struct maker maker = maker_of();
	struct stage s;

	maker.updates = 1;
	maker.update_in = VIDMM_DDI_SET_ROOT_PAGE_TABLE;
	maker.update.pPrivateDriverData = &word;
	maker.update.PrivateDriverDataSize = sizeof(word);
	begin(&s, state, &maker, va_two_levels);
	assert_int_equal(maker.updates, 0);
	assert_int_equal(maker.updated, STATUS_INVALID_DEVICE_REQUEST);
	world_expect_finding(&s.v.w, "VA-21");
	assert_int_equal(update(&s, &maker), STATUS_SUCCESS);
	assert_int_equal(va_word(&s.v, maker.address + 8), 0xAB1E);
	stage_finish(&s);
}

/* As with every paging operation, a failure removes the adapter. */
static void va_21_a_refused_update_removes_the_adapter(void **state)
{
	struct maker maker = maker_of();
	struct stage s;

	maker.refuse = true;
	begin(&s, state, &maker, va_memory);
	D3DDDICB_CREATECONTEXTVIRTUAL args = {0};
	maker.updates = 1;
	maker.update_in = VIDMM_DDI_CREATE_CONTEXT;
	(void)s.v.w.device.cb->pfnCreateContextVirtualCb(s.v.w.device.handle, &args);
	assert_int_equal(maker.updates, 0);
	assert_int_equal(maker.updated, STATUS_DEVICE_REMOVED);
	world_expect_finding(&s.v.w, "PAG-09");
	assert_int_equal(s.v.w.fatal[0], 0x10E);
	s.v.w.expected_fatals = 1;
	world_stop(&s.v.w);
}

static void plain_update(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct maker *maker = context;

	if (!maker->updates || call->ddi != VIDMM_DDI_CREATE_CONTEXT ||
	    call->in.create_context.Flags.SystemContext)
		return;
	maker->updates--;
	maker->create.hAdapter = m->services.DeviceHandle;
	maker->create.hDevice = scripted_last(m, VIDMM_DDI_CREATE_DEVICE)->in.create_device.hDevice;
	maker->create.hContext = call->in.create_context.hContext;
	maker->create.ContextAllocationFlags.Value = 0;
	maker->status = m->services.DxgkCbCreateContextAllocation(&maker->create);
	maker->update.hAllocation = maker->create.hAllocation;
	maker->updated =
		m->services.DxgkCbUpdateContextAllocation(m->services.DeviceHandle, &maker->update);
}

static void va_21_without_gpu_virtual_addresses_nothing_is_updated(void **state)
{
	struct maker maker = maker_of();
	struct world w;

	maker.updates = 1;
	world_start_adapter(&w, state, wddm2_1);
	w.m->hook_context = &maker;
	w.m->hook = plain_update;
	world_open(&w);
	assert_int_equal(maker.updates, 0);
	assert_int_equal(maker.status, STATUS_SUCCESS);
	assert_int_equal(maker.updated, STATUS_NOT_SUPPORTED);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(va_20_a_context_allocation_is_accessed_at_its_address),
		ON_BOTH(va_20_the_mapping_follows_the_allocation_when_it_moves),
		ON_SIM(va_20_a_miniport_maps_into_the_range_that_it_reserved),
		ON_SIM(va_20_wrong_requests_return_0),
		ON_SIM(va_20_a_ddi_that_pages_cannot_map),
		ON_SIM(va_20_without_gpu_virtual_addresses_nothing_is_mapped),
		ON_BOTH(va_21_the_gpu_updates_a_context_allocation),
		ON_SIM(va_21_an_evicted_allocation_returns_for_its_update),
		ON_SIM(va_21_wrong_updates_change_nothing),
		ON_SIM(va_21_an_allocation_larger_than_the_window_is_refused),
		ON_SIM(q_220_not_inside_setrootpagetable_but_after_it),
		ON_SIM(va_21_a_refused_update_removes_the_adapter),
		ON_SIM(va_21_without_gpu_virtual_addresses_nothing_is_updated),
	};

	return cmocka_run_group_tests_name("wddm2_context_memory", tests, NULL, NULL);
}
