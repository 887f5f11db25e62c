/* SPDX-License-Identifier: MIT */
/*
 * softgpu of WDDM 2.x beside its virtual contexts: contexts with patching, displays, the power
 * state, and paging buffers that hold a part of an operation.
 */
#include "gva_client.h"

#include <string.h>

struct world {
	struct client host;
	struct gva_client c;
};

static void begin(struct world *w, void **state, const struct gva_options *options)
{
	gva_start(&w->host, state, options);
	gva_open(&w->host, &w->c);
}

static void finish(struct world *w)
{
	gva_close(&w->c);
	gva_stop(&w->host);
}

/* Accessed physically, and mapped. With a width: a picture. */
static struct gva_memory physical(struct world *w, uint64_t bytes, uint32_t width, uint32_t height)
{
	const struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
			 (width ? 0 : SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY),
		.size_bytes = bytes,
		.width = width,
		.height = height};
	struct gva_memory memory = {.bytes = bytes};

	assert_int_equal(gva_try_allocate(&w->c, &spec, &memory.handle), STATUS_SUCCESS);
	gva_make_resident(&w->c, memory.handle);
	memory.at = gva_map(&w->c, memory.handle, bytes, 0);
	return memory;
}

/* ---- contexts with patching ---- */

static D3DKMT_CREATECONTEXT patching_context(struct world *w)
{
	D3DKMT_CREATECONTEXT args = {.hDevice = w->c.device};

	assert_int_equal(D3DKMTCreateContext(&args), STATUS_SUCCESS);
	return args;
}

static NTSTATUS render_fill(const D3DKMT_CREATECONTEXT *context, D3DKMT_HANDLE to, uint64_t bytes,
			    uint32_t pattern)
{
	const struct softgpu_fill fill = {
		.command = {SOFTGPU_FILL, 0, sizeof(fill)}, .length = bytes, .pattern = pattern};
	D3DKMT_RENDER args = {
		.hContext = context->hContext, .CommandLength = sizeof(fill), .AllocationCount = 1};

	memcpy(context->pCommandBuffer, &fill, sizeof(fill));
	context->pAllocationList[0] =
		(D3DDDI_ALLOCATIONLIST){.hAllocation = to, .WriteOperation = 1};
	return D3DKMTRender(&args);
}

static void pag_24_contexts_with_patching_need_accessedphysically(void **state)
{
	struct world w;

	begin(&w, state, &(struct gva_options){0});
	struct gva_memory memory = physical(&w, 64 * KIB, 0, 0),
			  copy = gva_memory(&w.c, 64 * KIB, GVA_VRAM);
	D3DKMT_CREATECONTEXT context = patching_context(&w);
	assert_int_equal(render_fill(&context, memory.handle, 64 * KIB, 0xF1F1), STATUS_SUCCESS);
	client_idle(&w.host);
	gva_expect(&w.c, memory.handle, 0, 64 * KIB, 0xF1F1);
	gva_copy(&w.c, memory.at, copy.at, 64 * KIB);
	gva_run(&w.c, 1);
	gva_expect(&w.c, copy.handle, 0, 64 * KIB, 0xF1F1);
	context = patching_context(&w);
	assert_int_not_equal(render_fill(&context, copy.handle, 64 * KIB, 0), STATUS_SUCCESS);
	gva_found(&w.host, "DMA-27");
	gva_expect(&w.c, copy.handle, 0, 64 * KIB, 0xF1F1);
	finish(&w);
}

/* ---- displays ---- */

enum { WIDTH = 64, HEIGHT = 16, FRAME_NS = 20000000 };

static void prs_02_the_monitor_shows_what_a_virtual_context_drew(void **state)
{
	const uint64_t bytes = WIDTH * HEIGHT * SOFTGPU_PIXEL_BYTES;
	struct world w;

	begin(&w, state, &(struct gva_options){.sources = 1});
	struct gva_memory picture = physical(&w, bytes, WIDTH, HEIGHT);
	D3DDDI_ALLOCATIONINFO info = {0};
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = bytes,
					  .width = WIDTH,
					  .height = HEIGHT};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = w.c.device, .NumAllocations = 1, .pAllocationInfo = &info};
	info.pPrivateDriverData = &spec;
	info.PrivateDriverDataSize = sizeof(spec);
	info.Flags.Primary = 1;
	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_SUCCESS);
	gva_make_resident(&w.c, info.hAllocation);
	uint64_t at = gva_map(&w.c, info.hAllocation, bytes, 0);
	gva_fill(&w.c, picture.at, bytes, 0x00C0FFEE);
	gva_copy(&w.c, picture.at, at, bytes);
	gva_run(&w.c, 0);
	D3DKMT_CREATECONTEXT context = patching_context(&w);
	D3DKMT_PRESENT present;
	memset(&present, 0, sizeof(present));
	present.hContext = context.hContext;
	present.hSource = info.hAllocation;
	present.Flags.Flip = 1;
	present.FlipInterval = D3DDDI_FLIPINTERVAL_ONE;
	assert_int_equal(D3DKMTPresent(&present), STATUS_SUCCESS);
	vidmm_sleep_until_ns(w.host.host, vidmm_now_ns(w.host.host) + 3 * FRAME_NS);
	uint64_t size;
	const char *bar = vidmm_adapter_bar(w.host.adapter, 1, &size);
	const struct softgpu_monitor *monitor = (const void *)bar;
	assert_int_equal(monitor->width, WIDTH);
	assert_int_equal(monitor->height, HEIGHT);
	for (uint64_t i = 0; i < bytes; i += 4) {
		uint32_t pixel;

		memcpy(&pixel, bar + SOFTGPU_MONITOR_PIXELS + i, sizeof(pixel));
		assert_int_equal(pixel, 0x00C0FFEE);
	}
	finish(&w);
}

/* ---- power ---- */

static void pnp_05_content_and_addresses_survive_without_power(void **state)
{
	struct world w;

	begin(&w, state, &(struct gva_options){0});
	struct gva_memory vram = gva_memory(&w.c, 256 * KIB, GVA_VRAM),
			  system = gva_memory(&w.c, 256 * KIB, GVA_APERTURE);
	gva_fill(&w.c, vram.at, vram.bytes, 0x1111);
	gva_fill(&w.c, system.at, system.bytes, 0x2222);
	gva_run(&w.c, 0);
	assert_int_equal(
		vidmm_adapter_set_power(w.host.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_int_equal(
		vidmm_adapter_set_power(w.host.adapter, VIDMM_POWER_D0, VIDMM_SLEEP_STANDBY), 0);
	gva_copy(&w.c, vram.at, system.at + 64 * KIB, 64 * KIB);
	gva_copy(&w.c, system.at, vram.at + 64 * KIB, 64 * KIB);
	gva_run(&w.c, 1);
	gva_expect(&w.c, vram.handle, 0, 64 * KIB, 0x1111);
	gva_expect(&w.c, vram.handle, 64 * KIB, 64 * KIB, 0x2222);
	gva_expect(&w.c, vram.handle, 128 * KIB, 128 * KIB, 0x1111);
	gva_expect(&w.c, system.handle, 64 * KIB, 64 * KIB, 0x1111);
	finish(&w);
}

/* ---- paging buffers ---- */

/* 1 KiB holds less than the 256 entries of one operation. */
static void pag_07_updates_of_page_tables_continue_in_the_next_buffer(void **state)
{
	struct world w;

	begin(&w, state, &(struct gva_options){.paging_bytes = 1024});
	struct gva_memory memory = gva_memory(&w.c, 3 * MIB, GVA_VRAM | GVA_APERTURE);
	gva_fill(&w.c, memory.at, memory.bytes, 0x3333);
	gva_run(&w.c, 0);
	gva_expect(&w.c, memory.handle, 0, memory.bytes, 0x3333);
	memory = gva_memory(&w.c, 3 * MIB, GVA_APERTURE);
	gva_fill(&w.c, memory.at, memory.bytes, 0x4444);
	gva_run(&w.c, 0);
	gva_expect(&w.c, memory.handle, 0, memory.bytes, 0x4444);
	finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pag_24_contexts_with_patching_need_accessedphysically),
		ON_SIM(prs_02_the_monitor_shows_what_a_virtual_context_drew),
		ON_BOTH(pnp_05_content_and_addresses_survive_without_power),
		ON_BOTH(pag_07_updates_of_page_tables_continue_in_the_next_buffer),
	};

	return cmocka_run_group_tests_name("softgpu_physical", tests, NULL, NULL);
}
