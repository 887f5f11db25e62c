/* SPDX-License-Identifier: MIT */
/*
 * Kinds of miniports beside the full ones of WDDM 2.x: ComputeOnly without GPU virtual addresses
 * and without an aperture, and render-only with a table of 2.0 and the driver model 1.3. Both
 * start, and render more than fits into their memory.
 */
#include "wddm2_world.h"

#include <string.h>

#define COUNT 5u /* of 4 MiB each, in 16 MiB of memory */

static void refuse_physical_caps(void *context, struct scripted_miniport *m,
				 struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_QUERY_ADAPTER_INFO &&
	    call->in.query.Type == DXGKQAITYPE_PHYSICALADAPTERCAPS)
		call->status = STATUS_NOT_SUPPORTED;
}

/* One memory segment in system memory, without a commit limit, and no aperture. */
static void compute_only(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_6);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2_6;
	m->settings.caps.MiscCaps.ComputeOnly = 1;
	m->settings.caps.ApertureSegmentCommitLimit = 0;
	m->settings.caps.MemoryManagementCaps.PagingNode = 0;
	m->settings.table.DxgkDdiPresent = NULL;
	m->settings.table.DxgkDdiQueryCurrentFence = NULL;
	m->settings.table.DxgkDdiSetVidPnSourceAddress = NULL;
	m->settings.table.DxgkDdiSetVidPnSourceVisibility = NULL;
	m->settings.segment_count = 1;
	m->settings.segment[0].commit_limit_bytes = 0;
	m->settings.contiguous = true;
	m->settings.complete_at_once = true;
	m->hook = refuse_physical_caps;
}

/* The structures of 2.0, the model and the queries of 1.3; memory in system memory, no limit. */
static void render_only(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv1_3;
	m->settings.segment[0].commit_limit_bytes = 0;
	m->settings.contiguous = true;
	m->settings.complete_at_once = true;
}

/* Without AccessedPhysically: every allocation has a physical address. */
static void q_410_a_compute_only_miniport_renders_under_pressure(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 4 * MIB,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE a[COUNT];
	struct world w;

	world_start(&w, state, compute_only);
	world_expect_finding(&w, "SEG-25");
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a[i]), S_OK);
		wddm2_make(&w, &w.device, &queue, &a[i], 1);
		world_submit_write(&w.context, a[i], 8, 0x100 + i);
		wddm2_run(&w);
		assert_int_equal(wddm2_evict(&w.device, a[i], EVICT_ONLY_IF_NECESSARY), S_OK);
	}
	assert_true(wddm2_transfers(&w, false) > 0);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(world_word(&w, a[i], 8), 0x100 + i);
	wddm2_stop(&w);
}

/* Built is an aperture in which an allocation has as many pages as its backing store. */
static void pitched_aperture(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.segment[1].flags |= 0x20; /* PitchAlignment */
	m->settings.complete_at_once = true;
}

static void seg_10_a_larger_pitch_size_in_an_aperture_is_not_built(void **state)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .pitch_aligned_bytes = 64 * KIB,
					   .flags = PHYSICAL,
					   .read_set = WORLD_APERTURE,
					   .write_set = WORLD_APERTURE};
	D3DKMT_HANDLE a, b;
	struct world w;

	world_start(&w, state, pitched_aperture);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &a), S_OK);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 8, 0x77);
	spec.pitch_aligned_bytes = 68 * KIB;
	assert_int_equal(wddm2_try_allocate(&w.device, &spec, &b), E_NOTIMPL);
	assert_non_null(strstr(w.client.reason, "SEG-10: create refused: PitchAlignedSize 69632"));
	wddm2_run(&w);
	assert_int_equal(world_word(&w, a, 8), 0x77);
	wddm2_stop(&w);
}

/* What the CPU writes while it is locked in such memory, the GPU finds there, and back. */
static void seg_08_locks_map_contiguous_system_memory(void **state)
{
	struct world w;

	world_start(&w, state, compute_only);
	world_expect_finding(&w, "SEG-25");
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_true(wddm2_is_in_memory(&w.device, a));
	uint32_t *words = client_lock(&w.device, a, 0);
	words[5] = 0x55;
	world_submit_write(&w.context, a, 8, 0x88);
	wddm2_run(&w);
	assert_int_equal(words[2], 0x88); /* the same memory, while it is locked */
	assert_int_equal(world_gpu_word(&w, 20), 0x55);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	wddm2_stop(&w);
}

static void pnp_01_a_present_needs_the_entry(void **state)
{
	struct world w;

	world_start(&w, state, compute_only);
	world_expect_finding(&w, "SEG-25");
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	const D3DKMT_HANDLE both[] = {a, b};
	D3DDDICB_PRESENT args = {
		.hSrcAllocation = a, .hDstAllocation = b, .hContext = w.context.c.hContext};
	wddm2_make(&w, &w.device, &queue, both, 2);
	assert_int_equal(w.device.cb->pfnPresentCb(w.device.handle, &args), E_NOTIMPL);
	assert_non_null(strstr(w.client.reason, "PNP-01: the call needs DxgkDdiPresent"));
	world_submit_use(&w.context, a); /* there was no other effect */
	wddm2_stop(&w);
}

static void q_164_a_render_only_miniport_of_1_3_renders_under_pressure(void **state)
{
	D3DKMT_HANDLE a[COUNT];
	struct world w;

	world_start(&w, state, render_only);
	world_expect_finding(&w, "SEG-04");
	for (uint32_t i = 0; i < COUNT; i++) {
		a[i] = world_allocate(&w, 4 * MIB, WORLD_MEMORY);
		world_submit_write(&w.context, a[i], 8, 0x100 + i);
		world_run(&w);
	}
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(world_word(&w, a[i], 8), 0x100 + i);
	D3DDDICB_CREATEPAGINGQUEUE queue = {.Priority = D3DDDI_PAGINGQUEUE_PRIORITY_NORMAL};
	assert_true(w.device.cb->pfnCreatePagingQueueCb(w.device.handle, &queue) < 0); /* 1.x */
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(q_410_a_compute_only_miniport_renders_under_pressure),
		ON_BOTH(seg_10_a_larger_pitch_size_in_an_aperture_is_not_built),
		ON_BOTH(seg_08_locks_map_contiguous_system_memory),
		ON_BOTH(pnp_01_a_present_needs_the_entry),
		ON_BOTH(q_164_a_render_only_miniport_of_1_3_renders_under_pressure),
	};

	return cmocka_run_group_tests_name("wddm2_kinds", tests, NULL, NULL);
}
