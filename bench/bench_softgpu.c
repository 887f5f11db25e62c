/* SPDX-License-Identifier: MIT */
/*
 * softgpu in submissions and in paging: the cost of a relocation and a reference in Render and in
 * Patch, with all data in cache; and how close bulk copies and tile conversions come to a plain
 * non-temporal copy of DRAM.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../drivers/softgpu/copy.h"
#include "../drivers/softgpu/softgpu_private.h"
#include "../drivers/softgpu/tile.h"
#include "nt/nt.h"
#include "os/os.h"

enum { ALLOCATIONS = 300, RELOCATIONS = 4096, REFERENCES = 1024 };
#define DMA_BYTES 65536u

/* The inputs of one Render and one Patch, and the objects that they reference. */
struct submission {
	struct softgpu_adapter adapter;
	struct softgpu_context context;
	struct softgpu_driver_allocation driver_allocations[ALLOCATIONS];
	struct softgpu_open_allocation open[ALLOCATIONS];
	DXGK_ALLOCATIONLIST list[ALLOCATIONS];
	D3DDDI_PATCHLOCATIONLIST in[RELOCATIONS], out[RELOCATIONS];
	struct softgpu_dma_private private_data;
	_Alignas(64) char commands[DMA_BYTES];
	_Alignas(64) char dma[DMA_BYTES];
	DXGKARG_RENDER render;
	DXGKARG_PATCH patch;
};

static void put_relocations(struct submission *s)
{
	struct softgpu_relocations *table = (struct softgpu_relocations *)(void *)s->commands;
	unsigned i;

	table->count = RELOCATIONS;
	table->command.opcode = SOFTGPU_RELOCATIONS;
	table->command.size_bytes = sizeof(*table) + 8 * RELOCATIONS;
	for (i = 0; i < RELOCATIONS; i++) {
		s->in[i].AllocationIndex = i * 7919 % ALLOCATIONS;
		s->in[i].AllocationOffset = i * 64;
		s->in[i].PatchOffset = (UINT)sizeof(*table) + 8 * i;
	}
	s->render.CommandLength = table->command.size_bytes;
	s->render.pPatchLocationListIn = s->in;
	s->render.PatchLocationListInSize = RELOCATIONS;
	s->patch.PatchLocationListSubmissionLength = RELOCATIONS;
}

static void put_references(struct submission *s)
{
	struct softgpu_reference *reference = (struct softgpu_reference *)(void *)s->commands;
	unsigned i;

	for (i = 0; i < REFERENCES; i++) {
		reference[i].command.opcode = SOFTGPU_REFERENCE;
		reference[i].command.size_bytes = sizeof(*reference);
		reference[i].operand.allocation = i * 7919 % ALLOCATIONS;
		reference[i].operand.offset = i * 16;
	}
	s->render.CommandLength = REFERENCES * sizeof(*reference);
	s->patch.PatchLocationListSubmissionLength = REFERENCES;
}

/* PARAMETER is the number of entries of one run, which selects the commands. */
static void *submission_create(const struct bench_case *self)
{
	struct submission *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
	unsigned i;

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->adapter.settings.prepatch = 1;
	s->context.adapter = &s->adapter;
	for (i = 0; i < ALLOCATIONS; i++) {
		s->driver_allocations[i].size_bytes = s->open[i].size_bytes = 65536;
		s->open[i].allocation = &s->driver_allocations[i];
		s->list[i].hDeviceSpecificAllocation = &s->open[i];
		s->list[i].SegmentId = SOFTGPU_SEGMENT_VRAM;
		s->list[i].PhysicalAddress.QuadPart = (LONGLONG)i * 65536;
	}
	s->render = (DXGKARG_RENDER){.pCommand = s->commands,
				     .pAllocationList = s->list,
				     .AllocationListSize = ALLOCATIONS,
				     .DmaSize = DMA_BYTES,
				     .DmaBufferPrivateDataSize = sizeof(s->private_data),
				     .PatchLocationListOutSize = RELOCATIONS};
	s->patch = (DXGKARG_PATCH){.pDmaBuffer = s->dma,
				   .DmaBufferSize = DMA_BYTES,
				   .pDmaBufferPrivateData = &s->private_data,
				   .DmaBufferPrivateDataSize = sizeof(s->private_data),
				   .pAllocationList = s->list,
				   .AllocationListSize = ALLOCATIONS,
				   .pPatchLocationList = s->out};
	if (self->parameter == RELOCATIONS)
		put_relocations(s);
	else
		put_references(s);
	return s;
}

static void render_once(struct submission *s)
{
	s->render.pDmaBuffer = s->dma;
	s->render.pDmaBufferPrivateData = &s->private_data;
	s->render.pPatchLocationListOut = s->out;
	s->render.MultipassOffset = 0;
	if (softgpu_render(&s->context, &s->render) != STATUS_SUCCESS)
		abort();
}

static void run_render(void *state, uint64_t steps)
{
	while (steps--)
		render_once(state);
}

static void run_patch(void *state, uint64_t steps)
{
	struct submission *s = state;

	render_once(s);
	while (steps--)
		(void)softgpu_patch(&s->adapter, &s->patch);
}

BENCH(.name = "softgpu.render_relocation", .per_run = RELOCATIONS, .parameter = RELOCATIONS,
      .setup = submission_create, .run = run_render, .teardown = free);
BENCH(.name = "softgpu.patch_relocation", .per_run = RELOCATIONS, .parameter = RELOCATIONS,
      .setup = submission_create, .run = run_patch, .teardown = free);
BENCH(.name = "softgpu.render_reference", .per_run = REFERENCES, .parameter = REFERENCES,
      .setup = submission_create, .run = run_render, .teardown = free);

/* ---- hand-over of packets to an engine ---- */

enum { RING = 64 };

struct hand_over {
	struct softgpu_adapter adapter;
	struct softgpu_engine engine;
	struct softgpu_packet ring[2 * RING];
	_Alignas(64) uint32_t head;
	_Alignas(64) uint32_t tail;
	struct vmm_os *os; /* spin locks need a world */
	struct vmm_nt *nt;
};

static void hand_over_destroy(void *state)
{
	struct hand_over *h = state;

	if (h->nt)
		(void)!vmm_ok(vmm_nt_destroy(h->nt));
	if (h->os)
		vmm_os_destroy(h->os);
	free(h);
}

static void *hand_over_create(const struct bench_case *self)
{
	struct hand_over *h = aligned_alloc(64, (sizeof(*h) + 63) / 64 * 64);

	(void)self;
	if (!h)
		return NULL;
	memset(h, 0, sizeof(*h));
	const struct vmm_os_config os = {.kind = VMM_OS_LINUX};
	const struct vmm_nt_config nt = {0};
	if (!vmm_ok(vmm_os_create(&os, &h->os)) || !vmm_ok(vmm_nt_create(h->os, &nt, &h->nt))) {
		hand_over_destroy(h);
		return NULL;
	}
	h->engine.adapter = &h->adapter;
	h->engine.queue = h->ring;
	h->engine.capacity = RING;
	h->engine.mask = 2 * RING - 1;
	h->engine.submitted_fence = 1;
	struct vmm_os *before = vmm_os_set_current(h->os);
	KeInitializeSpinLock(&h->engine.lock);
	vmm_os_set_current(before);
	return h;
}

/* The lower bound for one producer and one consumer: a ring with an index. */
static void run_ring(void *state, uint64_t steps)
{
	struct hand_over *h = state;
	struct softgpu_packet packet = {0};

	for (uint64_t i = 0; i < steps; i++) {
		uint32_t tail = __atomic_load_n(&h->tail, __ATOMIC_RELAXED);

		packet.fence = (uint32_t)i;
		h->ring[tail % RING] = packet;
		__atomic_store_n(&h->tail, tail + 1, __ATOMIC_RELEASE);
		if (__atomic_load_n(&h->tail, __ATOMIC_ACQUIRE) != h->head)
			bench_use(h->ring[h->head % RING].fence);
		__atomic_store_n(&h->head, h->head + 1, __ATOMIC_RELEASE);
	}
}

/* The engine's thread is running, so no thread is woken. The consumed packet is put back here. */
static void run_engine_submit(void *state, uint64_t steps)
{
	struct hand_over *h = state;
	struct softgpu_packet packet = {0};
	struct vmm_os *before = vmm_os_set_current(h->os);

	for (uint64_t i = 0; i < steps; i++) {
		packet.fence = (uint32_t)i | 1;
		(void)softgpu_engine_submit(&h->engine, &packet);
		__atomic_store_n(&h->engine.head, h->engine.tail, __ATOMIC_RELEASE);
	}
	vmm_os_set_current(before);
}

BENCH(.name = "floor.spsc_ring", .setup = hand_over_create, .run = run_ring,
      .teardown = hand_over_destroy);
BENCH(.name = "softgpu.engine_submit", .peer = "floor.spsc_ring", .ratio_max = 2,
      .setup = hand_over_create, .run = run_engine_submit, .teardown = hand_over_destroy);

/* ---- paging ---- */

enum { PIECES = 3 };
#define PIECE_BYTES (UINT64_C(64) << 20)
#define POOL_BYTES  (PIECES * PIECE_BYTES)
#define STRIDE      16384u

static struct pools {
	char *from, *to;
	unsigned next, users;
} pools;

static void pools_put(void *state)
{
	(void)state;
	if (--pools.users)
		return;
	if (pools.from)
		munmap(pools.from, 2 * POOL_BYTES);
	memset(&pools, 0, sizeof(pools));
}

static void *pools_get(const struct bench_case *self)
{
	(void)self;
	if (pools.users++)
		return &pools;
	pools.from = mmap(NULL, 2 * POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (pools.from == MAP_FAILED) {
		pools.from = NULL;
		pools_put(NULL);
		return NULL;
	}
	madvise(pools.from, 2 * POOL_BYTES, MADV_HUGEPAGE);
	memset(pools.from, 1, 2 * POOL_BYTES);
	pools.to = pools.from + POOL_BYTES;
	return &pools;
}

static uint64_t next_piece(void)
{
	pools.next = (pools.next + 1) % PIECES;
	return pools.next * PIECE_BYTES;
}

static void run_copy(void *state, uint64_t steps)
{
	(void)state;
	while (steps--) {
		uint64_t at = next_piece();

		softgpu_copy(pools.to + at, pools.from + at, PIECE_BYTES);
	}
}

static void run_pack(void *state, uint64_t steps)
{
	(void)state;
	while (steps--) {
		uint64_t at = next_piece();

		softgpu_tile_pack(SOFTGPU_TILE_Y, STRIDE, pools.to + at, pools.from + at,
				  PIECE_BYTES);
	}
}

static void run_unpack(void *state, uint64_t steps)
{
	(void)state;
	while (steps--) {
		uint64_t at = next_piece();

		softgpu_tile_unpack(SOFTGPU_TILE_Y, STRIDE, pools.to + at, pools.from + at,
				    PIECE_BYTES);
	}
}

BENCH(.name = "softgpu.copy_64m", .bytes = PIECE_BYTES, .peer = "floor.stream_copy_64m",
      .ratio_max = 1.05, .setup = pools_get, .run = run_copy, .teardown = pools_put);
BENCH(.name = "softgpu.linear_to_y_64m", .bytes = PIECE_BYTES, .peer = "floor.stream_copy_64m",
      .ratio_max = 1.25, .setup = pools_get, .run = run_pack, .teardown = pools_put);
BENCH(.name = "softgpu.y_to_linear_64m", .bytes = PIECE_BYTES, .peer = "floor.stream_copy_64m",
      .ratio_max = 1.08, .setup = pools_get, .run = run_unpack, .teardown = pools_put);

/*
 * ---- conversions in place, as when a swizzling range is acquired and released ---- Two
 * conversions; the goal for each is the time of a memcpy between two buffers.
 */

struct windows {
	struct softgpu_window table[2];
	struct softgpu_memory memory;
	char *scratch;
};

static void *windows_get(const struct bench_case *self)
{
	struct windows *windows = calloc(1, sizeof(*windows));

	if (!windows || !pools_get(self))
		return NULL;
	windows->memory.windows = windows->table;
	windows->memory.vram_bytes = PIECE_BYTES;
	windows->scratch = aligned_alloc(4096, STRIDE * 32);
	return windows;
}

static void windows_put(void *state)
{
	struct windows *windows = state;

	free(windows->scratch);
	free(windows);
	pools_put(NULL);
}

static void run_window(void *state, uint64_t steps)
{
	const struct softgpu_surface surface = {
		.bytes = PIECE_BYTES, .mode = SOFTGPU_TILE_Y, .stride_bytes = STRIDE};
	struct windows *windows = state;

	while (steps--) {
		windows->memory.vram = pools.to + next_piece();
		softgpu_window_close(
			&windows->memory,
			softgpu_window_open(&windows->memory, &surface, windows->scratch),
			windows->scratch);
	}
}

BENCH(.name = "softgpu.range_64m", .bytes = 2 * PIECE_BYTES, .peer = "floor.memcpy_64m",
      .ratio_max = 2.0, .setup = windows_get, .run = run_window, .teardown = windows_put);

/*
 * ---- conversions in the second-level cache: a surface of 1024 x 64 pixels; the peer is memcpy
 * ----
 */

#define WARM_BYTES  (UINT64_C(256) << 10)
#define WARM_STRIDE 4096u

static void *warm_create(const struct bench_case *self)
{
	char *surfaces = aligned_alloc(4096, 2 * WARM_BYTES);

	(void)self;
	if (surfaces)
		memset(surfaces, 1, 2 * WARM_BYTES);
	return surfaces;
}

static void run_warm_memcpy(void *state, uint64_t steps)
{
	char *surfaces = state;

	while (steps--) {
		memcpy(surfaces + WARM_BYTES, surfaces, WARM_BYTES);
		bench_barrier();
	}
}

static void run_warm_pack(void *state, uint64_t steps)
{
	char *surfaces = state;

	while (steps--)
		softgpu_tile_pack(SOFTGPU_TILE_Y, WARM_STRIDE, surfaces + WARM_BYTES, surfaces,
				  WARM_BYTES);
}

static void run_warm_unpack(void *state, uint64_t steps)
{
	char *surfaces = state;

	while (steps--)
		softgpu_tile_unpack(SOFTGPU_TILE_Y, WARM_STRIDE, surfaces + WARM_BYTES, surfaces,
				    WARM_BYTES);
}

BENCH(.name = "floor.memcpy_256k", .bytes = WARM_BYTES, .setup = warm_create,
      .run = run_warm_memcpy, .teardown = free);
BENCH(.name = "softgpu.linear_to_y_256k", .bytes = WARM_BYTES, .peer = "floor.memcpy_256k",
      .ratio_max = 1.82, .setup = warm_create, .run = run_warm_pack, .teardown = free);
BENCH(.name = "softgpu.y_to_linear_256k", .bytes = WARM_BYTES, .peer = "floor.memcpy_256k",
      .ratio_max = 1.82, .setup = warm_create, .run = run_warm_unpack, .teardown = free);
