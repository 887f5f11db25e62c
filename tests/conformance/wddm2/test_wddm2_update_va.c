/* SPDX-License-Identifier: MIT */
/* pfnUpdateGpuVirtualAddressCb: tiles of a reservation, in the order of a fence. */
#include "va_world.h"

#define TILE (64u * KIB)

struct tiles {
	struct va_world v;
	D3DKMT_HANDLE pool; /* of tiles, each with its number in its first word */
	D3DKMT_HANDLE fence;
	const _Atomic uint64_t *value;
	uint64_t at; /* a reservation that reads as zero */
};

static void make_fence(struct tiles *t, uint32_t flags)
{
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.Type = D3DDDI_MONITORED_FENCE};

	args.Info.Flags.Value = flags;
	assert_int_equal(
		t->v.w.device.cb->pfnCreateSynchronizationObject2Cb(t->v.w.device.handle, &args),
		S_OK);
	t->fence = args.hSyncObject;
	t->value = args.Info.MonitoredFence.FenceValueCPUVirtualAddress;
}

static void begin(struct tiles *t, void **state, world_setup *setup)
{
	va_begin(&t->v, state, setup);
	make_fence(t, 0);
	t->pool = va_allocate(&t->v, 8 * TILE, WORLD_MEMORY);
	va_make(&t->v, t->pool);
	uint64_t all = va_map(&t->v, t->pool, 8 * TILE);
	for (uint32_t i = 0; i < 8; i++)
		va_store(&t->v, all + i * TILE, 100 + i);
	assert_int_equal(va_free(&t->v, all, 8 * TILE), S_OK);
	t->at = va_reserve(&t->v, 0, 8 * TILE, 1);
}

static D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION map_of(const struct tiles *t, uint32_t place,
						       uint32_t tile, uint32_t count)
{
	return (D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION){
		.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP,
		.Map = {.BaseAddress = t->at + (uint64_t)place * TILE,
			.SizeInBytes = (uint64_t)count * TILE,
			.hAllocation = t->pool,
			.AllocationOffsetInBytes = (uint64_t)tile * TILE}};
}

static D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION copy_of(const struct tiles *t, uint32_t from,
							uint32_t to, uint32_t count)
{
	return (D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION){
		.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_COPY,
		.Copy = {.SourceAddress = t->at + (uint64_t)from * TILE,
			 .SizeInBytes = (uint64_t)count * TILE,
			 .DestAddress = t->at + (uint64_t)to * TILE}};
}

static HRESULT update(struct tiles *t, D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION *operations,
		      UINT count, uint64_t value, bool wait)
{
	const D3DDDICB_UPDATEGPUVIRTUALADDRESS args = {.hContext = t->v.w.context.c.hContext,
						       .hFenceObject = t->fence,
						       .NumOperations = count,
						       .Operations = operations,
						       .FenceValue = value,
						       .Flags.DoNotWait = !wait};

	return t->v.w.device.cb->pfnUpdateGpuVirtualAddressCb(t->v.w.device.handle, &args);
}

static void signal(struct tiles *t, uint64_t value)
{
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {
		.ObjectCount = 1, .ObjectHandleArray = &t->fence, .FenceValueArray = &value};

	assert_int_equal(t->v.w.device.cb->pfnSignalSynchronizationObjectFromCpuCb(
				 t->v.w.device.handle, &args),
			 S_OK);
}

static uint32_t tile_at(struct tiles *t, uint32_t place)
{
	return va_word(&t->v, t->at + (uint64_t)place * TILE);
}

static void va_10_operations_apply_in_array_order_after_the_fence(void **state)
{
	struct tiles t;

	begin(&t, state, va_memory);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION steps[] = {
		map_of(&t, 0, 3, 2), /* 3 4 . . . . . . */
		copy_of(&t, 1, 4,
			1), /* 3 4 . . 4 . . . : two tiles are swapped by way of a third one */
		copy_of(&t, 0, 1, 1), /* 3 3 . . 4 */
		copy_of(&t, 4, 0, 1), /* 4 3 . . 4 */
	};
	assert_int_equal(update(&t, steps, 4, 5, true), S_OK);
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 0); /* not yet */
	assert_int_equal(atomic_load(t.value), 0);
	signal(&t, 5);
	wddm2_run(&t.v.w);
	assert_int_equal(atomic_load(t.value), 6);
	const uint32_t expected[] = {104, 103, 0, 0, 104};
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(tile_at(&t, i), expected[i]);
	/* Ranges may overlap. */
	steps[0] = copy_of(&t, 0, 1, 2);
	assert_int_equal(update(&t, steps, 1, 10, false), S_OK);
	wddm2_run(&t.v.w);
	assert_int_equal(atomic_load(t.value), 11);
	assert_int_equal(tile_at(&t, 0), 104);
	assert_int_equal(tile_at(&t, 1), 104);
	assert_int_equal(tile_at(&t, 2), 103);
	va_finish(&t.v);
}

static void va_10_a_smaller_allocation_size_repeats_over_the_range(void **state)
{
	struct tiles t;

	begin(&t, state, va_two_levels);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION o = map_of(&t, 0, 2, 6);
	o.Map.AllocationSizeInBytes = 2 * TILE;
	assert_int_equal(update(&t, &o, 1, 1, false), S_OK);
	wddm2_run(&t.v.w);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(tile_at(&t, i), 102 + i % 2);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION unmap[] = {
		{.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP,
		 .Unmap = {t.at + TILE, TILE, {.Zero = 1}}},
		{.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP,
		 .Unmap = {t.at + 2 * TILE, TILE, {.NoAccess = 1}}}};
	assert_int_equal(update(&t, unmap, 2, 3, false), S_OK);
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 102);
	assert_int_equal(tile_at(&t, 1), 0);
	assert_false(va_is_there(&t.v, t.at + 2 * TILE));
	assert_int_equal(tile_at(&t, 3), 103);
	o = map_of(&t, 7, 1, 1);
	o.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP_PROTECT;
	o.MapProtect.Protection.Value = 0; /* read-only */
	assert_int_equal(update(&t, &o, 1, 5, false), S_OK);
	wddm2_run(&t.v.w);
	DXGK_PTE entry;
	assert_true(scripted_walk(t.v.process, t.at + 7 * TILE, &entry));
	assert_true(entry.ReadOnly);
	va_finish(&t.v);
}

static void va_10_invalid_update_operations_are_refused(void **state)
{
	struct tiles t;

	begin(&t, state, va_memory);
	uint64_t other = va_reserve(&t.v, 0, 2 * TILE, 0);
	uint64_t mapped = va_map(&t.v, t.pool, 2 * TILE);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION good = map_of(&t, 0, 0, 1), bad[12];
	const char *rule[12];
	uint32_t n = 0;
#define BAD(which, change)                    \
	do {                                  \
		bad[n] = map_of(&t, 1, 1, 2); \
		bad[n].change;                \
		rule[n++] = which;            \
	} while (0)
	BAD("VA-10", OperationType = 4);
	BAD("VA-10", Map.BaseAddress = other);  /* not the range of the first */
	BAD("VA-10", Map.BaseAddress = mapped); /* from no Reserve */
	BAD("VA-10", Map.SizeInBytes = 8 * TILE);
	BAD("VA-04", Map.SizeInBytes = 4097);
	BAD("VA-04", Map.SizeInBytes = 0);
	BAD("VA-04", Map.AllocationOffsetInBytes = 7 * TILE);
	BAD("VA-10", Map.AllocationSizeInBytes = 3 * 4096);
	BAD("VA-10", Map.hAllocation = 0x4242);
	bad[n] = copy_of(&t, 0, 1, 1);
	bad[n].Copy.SourceAddress = mapped;
	rule[n++] = "VA-10";
	bad[n] = (D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION){
		.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP,
		.Unmap = {t.at, TILE, {.Value = 0}}};
	rule[n++] = "VA-10";
	bad[n] = bad[n - 1];
	bad[n].Unmap.Protection.Value = 0x14;
	rule[n++] = "VA-06";
	for (uint32_t i = 0; i < n; i++) {
		D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION both[] = {good, bad[i]};

		assert_int_equal(update(&t, both, 2, 5, false), E_INVALIDARG);
		world_expect_finding(&t.v.w, rule[i]);
	}
	assert_int_equal(update(&t, &good, 0, 5, false), E_INVALIDARG);
	world_expect_finding(&t.v.w, "VA-10");
	assert_int_equal(update(&t, &good, 1, UINT64_MAX, false), E_INVALIDARG);
	world_expect_finding(&t.v.w, "VA-10");
	D3DKMT_HANDLE fence = t.fence;
	t.fence = t.v.queue.hPagingQueue;
	assert_int_equal(update(&t, &good, 1, 5, false), E_INVALIDARG);
	world_expect_finding(&t.v.w, "VA-10");
	t.fence = fence;
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 0); /* no operation was applied */
	assert_int_equal(atomic_load(t.value), 0);
	va_finish(&t.v);
}

/* The update signals its fence, and waits for it unless DoNotWait is set. */
static void va_10_sfl_15_sfl_16_the_fence_must_allow_the_signal_and_the_wait(void **state)
{
	struct tiles t;

	begin(&t, state, va_memory);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION o = map_of(&t, 0, 3, 1);
	make_fence(&t, 0x10); /* NoSignal */
	assert_int_equal(update(&t, &o, 1, 0, false), E_ACCESSDENIED);
	world_expect_finding(&t.v.w, "SFL-15");
	make_fence(&t, 0x20); /* NoWait */
	assert_int_equal(update(&t, &o, 1, 0, true), E_ACCESSDENIED);
	world_expect_finding(&t.v.w, "SFL-16");
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 0);
	assert_int_equal(update(&t, &o, 1, 0, false), S_OK);
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 103);
	va_finish(&t.v);
}

/* VA-09: a range freed meanwhile is not changed, also if another mapping has its address. */
static void va_09_va_10_updates_of_freed_ranges_and_allocations_are_dropped(void **state)
{
	struct tiles t;

	begin(&t, state, va_memory);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION o = map_of(&t, 0, 3, 2);
	assert_int_equal(update(&t, &o, 1, 5, true), S_OK);
	assert_int_equal(va_free(&t.v, t.at, 8 * TILE), S_OK);
	assert_int_equal(va_reserve(&t.v, t.at, 8 * TILE, 1), t.at);
	signal(&t, 5);
	wddm2_run(&t.v.w);
	assert_int_equal(atomic_load(t.value), 6);
	assert_int_equal(tile_at(&t, 0), 0);
	/* The allocation is destroyed first: nothing is mapped. */
	assert_int_equal(update(&t, &o, 1, 7, true), S_OK);
	assert_int_equal(client_deallocate(&t.v.w.device, t.pool), S_OK);
	signal(&t, 7);
	wddm2_run(&t.v.w);
	assert_int_equal(atomic_load(t.value), 8);
	assert_false(va_is_there(&t.v, t.at));
	va_finish(&t.v);
}

/*
 * Updates of one context run in order, whatever their fences. Updates that can never run end with
 * the device.
 */
static void va_10_updates_of_a_context_run_in_order(void **state)
{
	struct tiles t;

	begin(&t, state, va_memory);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION first = map_of(&t, 0, 1, 1),
						 second = map_of(&t, 0, 2, 1);
	assert_int_equal(update(&t, &first, 1, 5, true), S_OK);
	assert_int_equal(update(&t, &second, 1, 20, false), S_OK);
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 0);
	signal(&t, 5);
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 102);
	assert_int_equal(atomic_load(t.value), 21);
	assert_int_equal(update(&t, &first, 1, 1000, true), S_OK);
	va_finish(&t.v);
}

/* Each context has a queue. One update waits for the fence, that of another context does not. */
static void va_10_updates_of_one_context_do_not_hold_up_another(void **state)
{
	struct client_context second;
	struct tiles t;

	begin(&t, state, va_memory);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION waits = map_of(&t, 0, 3, 1),
						 runs = map_of(&t, 2, 5, 1);
	client_context(&t.v.w.device, 0, &second);
	assert_int_equal(update(&t, &waits, 1, 5, true), S_OK);
	const D3DDDICB_UPDATEGPUVIRTUALADDRESS args = {.hContext = second.c.hContext,
						       .hFenceObject = t.fence,
						       .NumOperations = 1,
						       .Operations = &runs,
						       .FenceValue = 1,
						       .Flags.DoNotWait = 1};
	assert_int_equal(t.v.w.device.cb->pfnUpdateGpuVirtualAddressCb(t.v.w.device.handle, &args),
			 S_OK);
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 0);
	assert_int_equal(tile_at(&t, 2), 105);
	signal(&t, 5);
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 0), 103);
	client_context_end(&second);
	va_finish(&t.v);
}

struct caller {
	struct tiles *tiles;
	_Atomic uint32_t state;
};

static void call(void *argument)
{
	struct caller *c = argument;
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION o = map_of(c->tiles, 1, 1, 1);

	atomic_store(&c->state, 1);
	if (update(c->tiles, &o, 1, 5, true) == S_OK)
		atomic_store(&c->state, 2);
}

static void va_10_the_129th_pending_update_waits(void **state)
{
	struct vidmm_thread *thread;
	struct tiles t;
	struct caller caller = {.tiles = &t};

	begin(&t, state, va_memory);
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION o = map_of(&t, 0, 0, 1);
	for (uint32_t i = 0; i < 128; i++)
		assert_int_equal(update(&t, &o, 1, 5, true), S_OK);
	assert_int_equal(vidmm_thread_create(t.v.w.client.host, "updater", call, &caller, &thread),
			 0);
	for (uint32_t i = 0; i < 100; i++)
		vidmm_settle(t.v.w.client.host);
	assert_int_equal(atomic_load(&caller.state), 1);
	signal(&t, 5);
	wddm2_run(&t.v.w);
	vidmm_thread_join(thread);
	assert_int_equal(atomic_load(&caller.state), 2);
	wddm2_run(&t.v.w);
	assert_int_equal(tile_at(&t, 1), 101);
	va_finish(&t.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(va_10_operations_apply_in_array_order_after_the_fence),
		ON_BOTH(va_10_sfl_15_sfl_16_the_fence_must_allow_the_signal_and_the_wait),
		ON_SIM(va_10_a_smaller_allocation_size_repeats_over_the_range),
		ON_SIM(va_10_invalid_update_operations_are_refused),
		ON_SIM(va_09_va_10_updates_of_freed_ranges_and_allocations_are_dropped),
		ON_BOTH(va_10_updates_of_a_context_run_in_order),
		ON_BOTH(va_10_updates_of_one_context_do_not_hold_up_another),
		ON_SIM(va_10_the_129th_pending_update_waits),
	};

	return cmocka_run_group_tests_name("wddm2_update_va", tests, NULL, NULL);
}
