/* SPDX-License-Identifier: MIT */
/*
 * D3DKMTInvalidateCache and D3DKMTFlushHeapTransitions (CCH), and requests that need no work here
 * or cannot be answered (CLK-05, OWN-06, OWN-07).
 */
#include "kmt_world.h"

#include "base/base.h"

#include <stdatomic.h>
#include <string.h>

enum { BYTES = 64 * 1024 };

struct flushes {
	_Atomic uint32_t count;
	_Atomic uint64_t bytes;
	_Atomic uint32_t waits;
};

static void on_flush(void *context, const struct vidmm_event *event, const char *text)
{
	struct flushes *f = context;

	(void)text;
	if (event->type == VIDMM_EVENT_WAIT) {
		f->waits += event->reason == VIDMM_WAIT_HEAP;
		return;
	}
	if (event->reason != VIDMM_FLUSH_REQUESTED)
		return;
	f->count++;
	f->bytes += event->arg[0];
}

static void start(struct kmt_world *w, struct flushes *f, void **state, bool coherent)
{
	const struct vidmm_registry_value value = {"ApertureCoherent", coherent};
	const struct client_options options = {.kind = *(uint32_t *)*state,
					       .vram_bytes = 4 * MIB,
					       .registry = &value,
					       .registry_count = 1};

	memset(f, 0, sizeof(*f));
	kmt_start_with(w, &options);
	assert_int_not_equal(vidmm_subscribe(w->client.host,
					     1ull << VIDMM_EVENT_FLUSH | 1ull << VIDMM_EVENT_WAIT,
					     on_flush, f),
			     0);
	w->client.reasons = 0;
}

static D3DKMT_HANDLE allocate(struct kmt_world *w, uint32_t flags)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE | flags,
					  .size_bytes = BYTES,
					  .segment_set = 2};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = w->device, .NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

/* Has the GPU use the allocation, which is in the aperture then. */
static void use(struct kmt_world *w, D3DKMT_HANDLE allocation)
{
	struct client_context c;
	D3DKMT_RENDER render = {0};
	void *data;

	assert_int_equal(kmt_lock(w, &allocation, 0, &data), STATUS_SUCCESS);
	memset(data, 1, BYTES);
	assert_int_equal(kmt_unlock(w, allocation), STATUS_SUCCESS);
	kmt_context(w, &c);
	client_fill(&c, allocation, BYTES, 2);
	assert_int_equal(kmt_render(&c, &render), STATUS_SUCCESS);
	client_idle(&w->client);
}

static NTSTATUS invalidate(const struct kmt_world *w, D3DKMT_HANDLE allocation, uint64_t offset,
			   uint64_t length)
{
	const D3DKMT_INVALIDATECACHE args = {.hDevice = w->device,
					     .hAllocation = allocation,
					     .Offset = offset,
					     .Length = length};

	return D3DKMTInvalidateCache(&args);
}

/* ---- the tests ---- */

static void cch_01_a_range_of_a_cached_allocation_is_flushed(void **state)
{
	for (uint32_t coherent = 0; coherent < 2; coherent++) {
		struct kmt_world w;
		struct flushes f;

		start(&w, &f, state, coherent);
		D3DKMT_HANDLE cached = allocate(&w, SOFTGPU_ALLOCATION_CACHED);
		D3DKMT_HANDLE combined = allocate(&w, 0);
		use(&w, cached);
		use(&w, combined);
		assert_int_equal(f.count, 0);
		assert_int_equal(invalidate(&w, cached, 4096, 8192), STATUS_SUCCESS);
		assert_int_equal(f.count, coherent ? 0 : 1);
		assert_int_equal(f.bytes, coherent ? 0 : 8192);
		/* the whole, nothing at its end, and what no cache holds */
		assert_int_equal(invalidate(&w, cached, 0, BYTES), STATUS_SUCCESS);
		assert_int_equal(invalidate(&w, cached, BYTES, 0), STATUS_SUCCESS);
		assert_int_equal(invalidate(&w, combined, 0, BYTES), STATUS_SUCCESS);
		assert_int_equal(f.count, coherent ? 0 : 2);
		kmt_stop(&w);
	}
}

static void cch_01_an_allocation_that_was_never_used_has_nothing_to_flush(void **state)
{
	struct kmt_world w;
	struct flushes f;

	start(&w, &f, state, false);
	assert_int_equal(invalidate(&w, allocate(&w, SOFTGPU_ALLOCATION_CACHED), 0, BYTES),
			 STATUS_SUCCESS);
	assert_int_equal(f.count, 0);
	kmt_stop(&w);
}

static void cch_02_hnd_07_other_ranges_and_handles_are_refused(void **state)
{
	static const struct {
		uint64_t offset, length;
	} outside[] = {{0, BYTES + 1}, {BYTES, 1},      {BYTES + 1, 0},
		       {4096, BYTES},  {UINT64_MAX, 1}, {1, UINT64_MAX}};
	struct kmt_world w;
	struct flushes f;

	start(&w, &f, state, false);
	D3DKMT_HANDLE a = allocate(&w, SOFTGPU_ALLOCATION_CACHED);
	use(&w, a);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(outside); i++) {
		assert_int_equal(invalidate(&w, a, outside[i].offset, outside[i].length),
				 STATUS_INVALID_PARAMETER);
		kmt_found(&w, "CCH-02");
	}
	const D3DKMT_HANDLE bad[] = {0, w.device, w.adapter, a + 64};
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(bad); i++) {
		assert_int_equal(invalidate(&w, bad[i], 0, 1), STATUS_INVALID_PARAMETER);
		kmt_found(&w, "CCH-02");
	}
	const D3DKMT_HANDLE device = w.device;
	const D3DKMT_HANDLE none[] = {0, a, w.adapter, device + 6400};
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(none); i++) {
		w.device = none[i];
		assert_int_equal(invalidate(&w, a, 0, 1), STATUS_INVALID_PARAMETER);
		kmt_found(&w, "HND-07");
	}
	w.device = device;
	assert_int_equal(D3DKMTInvalidateCache(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-11");
	assert_int_equal(f.count, 0);
	kmt_stop(&w);
}

static void cch_03_a_flush_waits_for_the_moves_under_way(void **state)
{
	struct kmt_world w;
	struct flushes f;
	D3DKMT_RENDER render = {0};
	struct client_context c;
	D3DKMT_FLUSHHEAPTRANSITIONS args;
	D3DKMT_QUERYSTATISTICS node = {.Type = D3DKMT_QUERYSTATISTICS_NODE, .QueryNode.NodeId = 1};

	start(&w, &f, state, true);
	kmt_context(&w, &c);
	for (uint32_t i = 0; i < 6; i++) { /* video memory has 4 MiB */
		client_fill(&c, kmt_allocate(&w, MIB), MIB, i);
		assert_int_equal(kmt_render(&c, &render), STATUS_SUCCESS);
	}
	args.hAdapter = w.adapter;
	assert_int_equal(D3DKMTFlushHeapTransitions(&args), STATUS_SUCCESS);
	const uint32_t waits = f.waits;
	if (*(uint32_t *)*state == VIDMM_HOST_SIM) /* no other thread has run meanwhile */
		assert_true(waits > 0);
	client_idle(&w.client);
	assert_int_equal(D3DKMTFlushHeapTransitions(&args), STATUS_SUCCESS);
	assert_int_equal(f.waits, waits); /* there was nothing to wait for */
	node.AdapterLuid = w.luid;
	assert_int_equal(D3DKMTQueryStatistics(&node), STATUS_SUCCESS);
	const D3DKMT_QUERYSTATISTICS_DMA_PACKET_TYPE_INFORMATION *paging =
		&node.QueryResult.NodeInformation.SystemInformation.PacketStatistics
			 .DmaPacket[D3DKMT_SystemPagingBuffer];
	assert_int_equal(paging->PacketCompleted, paging->PacketSubmited);
	assert_int_equal(D3DKMTFlushHeapTransitions(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-11");
	const D3DKMT_HANDLE bad[] = {0, w.device, w.adapter + 6400};
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(bad); i++) {
		args.hAdapter = bad[i];
		assert_int_equal(D3DKMTFlushHeapTransitions(&args), STATUS_INVALID_PARAMETER);
		kmt_found(&w, "HND-07");
	}
	kmt_stop(&w);
}

static void cch_03_clk_05_a_removed_adapter_answers_nothing(void **state)
{
	struct kmt_world w;
	struct flushes f;

	start(&w, &f, state, true);
	D3DKMT_FLUSHHEAPTRANSITIONS flush = {.hAdapter = w.adapter};
	const D3DKMT_SETSTABLEPOWERSTATE stable = {.hAdapter = w.adapter, .Enabled = TRUE};
	assert_int_equal(vidmm_adapter_remove(w.client.adapter, VIDMM_REMOVAL_PNP), 0);
	assert_int_equal(D3DKMTFlushHeapTransitions(&flush), STATUS_DEVICE_REMOVED);
	assert_int_equal(D3DKMTSetStablePowerState(&stable), STATUS_DEVICE_REMOVED);
	kmt_stop(&w);
}

static void clk_05_clocks_that_no_ddi_changes_are_fixed(void **state)
{
	struct kmt_world w;
	struct flushes f;

	start(&w, &f, state, true);
	for (uint32_t enabled = 0; enabled < 2; enabled++) {
		const D3DKMT_SETSTABLEPOWERSTATE args = {.hAdapter = w.adapter, .Enabled = enabled};

		assert_int_equal(D3DKMTSetStablePowerState(&args), STATUS_SUCCESS);
	}
	const D3DKMT_SETSTABLEPOWERSTATE bad = {.hAdapter = w.device};
	assert_int_equal(D3DKMTSetStablePowerState(&bad), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	assert_int_equal(D3DKMTSetStablePowerState(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-11");
	kmt_stop(&w);
}

static void own_06_there_are_no_windows(void **state)
{
	struct kmt_world w;
	struct flushes f;
	D3DKMT_CHECKOCCLUSION args = {0};

	start(&w, &f, state, true);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(D3DKMTCheckOcclusion(&args), STATUS_INVALID_PARAMETER);
		kmt_told(&w, STATUS_INVALID_PARAMETER, "OWN-06: D3DKMTCheckOcclusion: windows");
		args.hWindow = (HWND)(uintptr_t)0x10042;
	}
	assert_int_equal(D3DKMTCheckOcclusion(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-11");
	kmt_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(cch_01_a_range_of_a_cached_allocation_is_flushed),
		ON_BOTH(cch_01_an_allocation_that_was_never_used_has_nothing_to_flush),
		ON_BOTH(cch_02_hnd_07_other_ranges_and_handles_are_refused),
		ON_BOTH(cch_03_a_flush_waits_for_the_moves_under_way),
		ON_BOTH(cch_03_clk_05_a_removed_adapter_answers_nothing),
		ON_BOTH(clk_05_clocks_that_no_ddi_changes_are_fixed),
		ON_BOTH(own_06_there_are_no_windows),
	};

	return cmocka_run_group_tests_name("kmt flush", tests, NULL, NULL);
}
