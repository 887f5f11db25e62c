/* SPDX-License-Identifier: MIT */
/*
 * WDDM 2.x in the library alone: residency lists, GPU virtual addresses and command submission, on
 * softgpu with Model wddm2. Its paging buffers are empty and a packet is complete when it is
 * submitted, so no case includes work of the miniport or of the GPU.
 */
#include "bare.h"
#include "bench.h"
#include "bench_null.h"

#include <d3dkmthk.h>
#include <d3dumddi.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

#include <dispmprt.h>

#define PAGE_BYTES   4096u
#define VRAM_BYTES   (UINT64_C(2) << 30)
#define LISTED       1000u
#define RANGES       100000u
#define RANGE_BYTES  (UINT64_C(64) << 10)
#define LARGE_BYTES  (UINT64_C(1) << 30)
#define COMMAND_SIZE 64u

/* ---- a miniport with minimal cost ---- */

static struct {
	DXGKDDI_START_DEVICE *start;
	HANDLE started; /* the adapter that was started last */
} null_driver;

static NTSTATUS APIENTRY null_start(IN_CONST_PVOID adapter, PDXGK_START_INFO info,
				    PDXGKRNL_INTERFACE services, PULONG sources, PULONG children)
{
	bench_null_start(adapter, services);
	null_driver.started = (HANDLE)(uintptr_t)adapter;
	return null_driver.start(adapter, info, services, sources, children);
}

static NTSTATUS APIENTRY null_paging(IN_CONST_HANDLE adapter, IN_PDXGKARG_BUILDPAGINGBUFFER args)
{
	(void)adapter;
	(void)args;
	return STATUS_SUCCESS;
}

static NTSTATUS APIENTRY null_submit(IN_CONST_HANDLE adapter,
				     IN_CONST_PDXGKARG_SUBMITCOMMANDVIRTUAL args)
{
	return bench_null_complete(adapter, args->SubmissionFenceId, args->NodeOrdinal);
}

static void null_entries(DRIVER_INITIALIZATION_DATA *table)
{
	null_driver.start = table->DxgkDdiStartDevice;
	table->DxgkDdiStartDevice = null_start;
	table->DxgkDdiBuildPagingBuffer = null_paging;
	table->DxgkDdiSubmitCommandVirtual = null_submit;
}

/* ---- a device ---- */

enum kind { RESIDENT, MAPPED, TABLE, LARGE, COMMAND, QUERY };

struct wddm2 {
	struct bench_null_world world;
	HANDLE handle, context;
	D3DKMT_HANDLE thunk; /* the device, for D3DKMT functions */
	HANDLE kmd_adapter;
	D3DDDICB_CREATEPAGINGQUEUE queue;
	D3DKMT_HANDLE allocation[LISTED];
	uint32_t allocations;
	uint64_t minimum; /* of the addresses that Map chooses */
	uint64_t address; /* of the first allocation */
};

static void wddm2_destroy(void *state)
{
	struct wddm2 *w = state;

	bench_null_world_finish(&w->world);
	free(w);
}

static bool start(struct wddm2 *w)
{
	const struct vidmm_registry_value registry[] = {{"Model", SOFTGPU_MODEL_WDDM2},
							{"EngineBytesPerUs", 0}};
	const struct vidmm_adapter_options options = {.registry = registry, .registry_count = 2};
	D3DDDICB_CREATECONTEXTVIRTUAL context = {0};

	if (!bench_null_world_start(&w->world, null_entries, VRAM_BYTES, &options, 1))
		return false;
	w->kmd_adapter = null_driver.started;
	w->handle = vidmm_device_handle(w->world.device[0]);
	w->thunk = vidmm_device_d3dkmt_handle(w->world.device[0]);
	if (FAILED(w->world.cb->pfnCreatePagingQueueCb(w->handle, &w->queue)) ||
	    FAILED(w->world.cb->pfnCreateContextVirtualCb(w->handle, &context)))
		return false;
	w->context = context.hContext;
	return true;
}

static void make_resident(struct wddm2 *w)
{
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = w->queue.hPagingQueue,
				    .NumAllocations = w->allocations,
				    .AllocationList = w->allocation};
	HRESULT result = w->world.cb->pfnMakeResidentCb(w->handle, &args);

	if (result != S_OK && result != E_PENDING)
		abort();
}

static bool allocate(struct wddm2 *w, uint32_t count, uint64_t bytes)
{
	struct softgpu_allocation wish = {
		.version = SOFTGPU_ALLOCATION_VERSION, .size_bytes = bytes, .segment_set = 0x1};

	for (w->allocations = 0; w->allocations < count; w->allocations++) {
		D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
					      .PrivateDriverDataSize = sizeof(wish)};
		D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

		if (FAILED(w->world.cb->pfnAllocateCb(w->handle, &args)))
			return false;
		w->allocation[w->allocations] = info.hAllocation;
	}
	make_resident(w);
	vidmm_adapter_wait_idle(w->world.adapter);
	return true;
}

static uint64_t map(struct wddm2 *w, uint64_t bytes)
{
	D3DDDI_MAPGPUVIRTUALADDRESS args = {.hPagingQueue = w->queue.hPagingQueue,
					    .hAllocation = w->allocation[0],
					    .MinimumAddress = w->minimum,
					    .SizeInPages = bytes / PAGE_BYTES,
					    .Protection.Write = 1};
	HRESULT result = w->world.cb->pfnMapGpuVirtualAddressCb(w->handle, &args);

	if (result != S_OK && result != E_PENDING)
		abort();
	return args.VirtualAddress;
}

static void unmap(struct wddm2 *w, uint64_t address, uint64_t bytes)
{
	const D3DDDICB_FREEGPUVIRTUALADDRESS args = {address, bytes};

	if (FAILED(w->world.cb->pfnFreeGpuVirtualAddressCb(w->handle, &args)))
		abort();
}

/*
 * Ranges of 64 KiB side by side; every second one maps the allocation. One in the middle is freed
 * again: its addresses are those that a Map gets, and their page table exists.
 */
static bool fill_space(struct wddm2 *w)
{
	uint64_t middle = 0;

	for (uint32_t i = 0; i <= RANGES; i++) {
		D3DDDI_RESERVEGPUVIRTUALADDRESS args = {.hPagingQueue = w->queue.hPagingQueue,
							.Size = RANGE_BYTES};
		HRESULT result = S_OK;

		if (i == RANGES / 2)
			middle = map(w, RANGE_BYTES);
		else if (i % 2)
			map(w, RANGE_BYTES);
		else
			result = w->world.cb->pfnReserveGpuVirtualAddressCb(w->handle, &args);
		if (result != S_OK && result != E_PENDING)
			return false;
	}
	unmap(w, middle, RANGE_BYTES);
	return true;
}

static bool prepare(struct wddm2 *w, enum kind kind)
{
	switch (kind) {
	case RESIDENT:
		return allocate(w, LISTED, PAGE_BYTES);
	case MAPPED:
		return allocate(w, 1, RANGE_BYTES) && fill_space(w);
	case TABLE:
		w->minimum = LARGE_BYTES; /* no range is near */
		return allocate(w, 1, RANGE_BYTES);
	case LARGE:
		return allocate(w, 1, LARGE_BYTES);
	default:
		if (!allocate(w, 1, RANGE_BYTES))
			return false;
		w->address = map(w, RANGE_BYTES);
		return true;
	}
}

static void *wddm2_create(const struct bench_case *self)
{
	struct wddm2 *w = calloc(1, sizeof(*w));

	if (w && start(w) && prepare(w, (enum kind)self->parameter))
		return w;
	if (w)
		wddm2_destroy(w);
	return NULL;
}

/* ---- cases ---- */

static void run_resident(void *state, uint64_t steps)
{
	while (steps--)
		make_resident(state);
}

static void run_map(void *state, uint64_t steps)
{
	while (steps--)
		unmap(state, map(state, RANGE_BYTES), RANGE_BYTES);
}

static void run_map_large(void *state, uint64_t steps)
{
	while (steps--)
		unmap(state, map(state, LARGE_BYTES), LARGE_BYTES);
}

static void run_command(void *state, uint64_t steps)
{
	struct wddm2 *w = state;

	while (steps--) {
		D3DDDICB_SUBMITCOMMAND args = {.Commands = w->address,
					       .CommandLength = COMMAND_SIZE,
					       .BroadcastContextCount = 1,
					       .BroadcastContext = {w->context}};

		if (FAILED(w->world.cb->pfnSubmitCommandCb(w->handle, &args)))
			abort();
	}
}

/* What the miniport of run_command does: it reports the packet from an interrupt and its DPC. */
static void run_report(void *state, uint64_t steps)
{
	const struct wddm2 *w = state;

	while (steps--)
		bench_null_interrupt(w->kmd_adapter);
}

/* A call that changes nothing, by the D3DKMT door. */
static void run_query(void *state, uint64_t steps)
{
	struct wddm2 *w = state;
	struct vidmm_process *before = vidmm_d3dkmt_enter(w->world.process[0]);

	while (steps--) {
		D3DKMT_GETDEVICESTATE args = {.hDevice = w->thunk,
					      .StateType = D3DKMT_DEVICESTATE_EXECUTION};

		if (D3DKMTGetDeviceState(&args))
			abort();
	}
	vidmm_d3dkmt_enter(before);
}

/* The 16 entries of 64 KiB: written, and made invalid again. */
static void write_entries(void)
{
	static DXGK_PTE table[512];

	for (uint32_t i = 0; i < RANGE_BYTES / PAGE_BYTES; i++) {
		table[i].Valid = 1;
		table[i].PageAddress = i;
	}
	bench_barrier();
	memset(table, 0, RANGE_BYTES / PAGE_BYTES * sizeof(table[0]));
	bench_barrier();
}

static void run_entries_64k_floor(void *state, uint64_t steps)
{
	(void)state;
	while (steps--)
		write_entries();
}

/* What a Map and a Free may cost together: ten malloc pairs, and the entries. */
static void run_map_floor(void *state, uint64_t steps)
{
	(void)state;
	while (steps--) {
		for (uint32_t i = 0; i < 10; i++) {
			void *block = malloc(128);

			bench_use(block);
			free(block);
		}
		write_entries();
	}
}

/* The entries of 1 GiB, in order, as a table in the CPU's memory: written, and made invalid. */
static void run_entries_floor(void *state, uint64_t steps)
{
	static DXGK_PTE table[256];

	(void)state;
	while (steps--)
		for (uint64_t at = 0; at < LARGE_BYTES / PAGE_BYTES; at += 256) {
			for (uint32_t i = 0; i < 256; i++) {
				table[i].Valid = 1;
				table[i].PageAddress = at + i;
			}
			bench_barrier();
			memset(table, 0, sizeof(table));
			bench_barrier();
		}
}

BENCH(.name = "wddm2.make_resident", .peer = "floor.reference_1k", .ratio_max = 2,
      .per_run = LISTED, .parameter = RESIDENT, .setup = wddm2_create, .run = run_resident,
      .teardown = wddm2_destroy);
BENCH(.name = "floor.entries_64k", .run = run_entries_64k_floor);
BENCH(.name = "floor.map_64k", .peer = "floor.malloc_free", .run = run_map_floor);
BENCH(.name = "wddm2.map_among_100k", .peer = "floor.map_64k", .ratio_max = 1, .parameter = MAPPED,
      .setup = wddm2_create, .run = run_map, .teardown = wddm2_destroy);
/* The page table that a Map needs is created, and Free destroys it. */
BENCH(.name = "wddm2.map_new_table", .peer = "wddm2.map_among_100k", .parameter = TABLE,
      .setup = wddm2_create, .run = run_map, .teardown = wddm2_destroy);
BENCH(.name = "floor.entries_1g", .bytes = LARGE_BYTES, .run = run_entries_floor);
BENCH(.name = "wddm2.map_1g", .peer = "floor.entries_1g", .bytes = LARGE_BYTES, .parameter = LARGE,
      .setup = wddm2_create, .run = run_map_large, .teardown = wddm2_destroy);
BENCH(.name = "wddm2.miniport_report", .peer = "floor.mutex", .parameter = COMMAND,
      .setup = wddm2_create, .run = run_report, .teardown = wddm2_destroy);
/* The goal is 400 ns more than the miniport's part. */
BENCH(.name = "wddm2.submit_command", .peer = "wddm2.miniport_report", .parameter = COMMAND,
      .setup = wddm2_create, .run = run_command, .teardown = wddm2_destroy);
BENCH(.name = "wddm2.query_d3dkmt", .peer = "floor.xadd", .parameter = QUERY, .setup = wddm2_create,
      .run = run_query, .teardown = wddm2_destroy);
