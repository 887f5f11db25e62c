/* SPDX-License-Identifier: MIT */
/*
 * Paging on both adapters of a link: which packet waits for which adapter (SUB-03, PAG-22), DMA and
 * paging buffers per adapter (SEG-21, DMA-05), a miniport that has too little buffer space, is busy
 * or fails on one adapter (PAG-07, PAG-08, PAG-09), and the reset (PAG-27).
 */
#include "link_world.h"

#include <string.h>

/*
 * Numbers as the scripted miniport counts them: two nodes per adapter, the second one for paging.
 */
enum { BYTES = 64 * KIB, LEAD = 0, LEAD_PAGING = 1, SECOND = 2, SECOND_PAGING = 3 };

static void start(struct world *w, void **state)
{
	world_start(w, state, link_setup);
}

static void submit_use(struct world *w, D3DKMT_HANDLE a)
{
	world_submit_use(&w->context, a);
	world_run(w);
}

static void settle(struct world *w)
{
	vidmm_settle(w->client.host);
}

/* ---- order ---- */

static void sub_03_pag_23_a_packet_waits_for_the_paging_of_each_adapter(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	struct client_context contexts[LINK_ADAPTERS];
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < LINK_ADAPTERS; i++)
		link_context(&w.device, 0, i, &contexts[i]);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t last = i % 2 ? LEAD_PAGING : SECOND_PAGING;
		D3DKMT_HANDLE a = link_allocate(&w, flags[i / 2], WORLD_MEMORY);

		w.m->settings.complete_at_once = false;
		world_submit_write(&contexts[i % 2], a, 16, 0x51);
		settle(&w);
		assert_int_equal(scripted_outstanding(w.m, LEAD_PAGING), 1);
		assert_int_equal(scripted_outstanding(w.m, SECOND_PAGING), 1);
		/*
		 * Only its own adapter's paging matters to it. It waits for both, since they are
		 * one step of the timeline.
		 */
		assert_int_equal(scripted_complete(w.m, LEAD_PAGING + SECOND_PAGING - last, 1), 1);
		settle(&w);
		assert_int_equal(
			scripted_outstanding(w.m, LEAD) + scripted_outstanding(w.m, SECOND), 0);
		assert_int_equal(scripted_complete(w.m, last, 1), 1);
		settle(&w);
		assert_int_equal(scripted_outstanding(w.m, i % 2 ? SECOND : LEAD), 1);
		world_run(&w);
		w.m->settings.complete_at_once = true;
		assert_int_equal(link_word(&w, i % 2, 16), 0x51);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
	}
	link_stop(&w);
}

enum { HIDDEN = 0x4, HIDDEN_ID = 3 };

static void two_memories(struct scripted_miniport *m)
{
	link_setup(m);
	m->settings.segment_count = HIDDEN_ID;
	m->settings.segment[HIDDEN_ID - 1] = (struct scripted_segment){
		.base = (uint64_t)512 * MIB, .size_bytes = 4 * MIB, .commit_limit_bytes = 4 * MIB};
}

/*
 * From one memory segment to another: out of the copy on one adapter, then into the copies on both.
 * The second part waits for the first.
 */
static void pag_22_page_in_of_copies_waits_for_the_transfer_out(void **state)
{
	struct client_context other;
	struct world w;

	world_start(&w, state, two_memories);
	link_context(&w.device, 0, 1, &other);
	for (uint32_t writer = 0; writer < LINK_ADAPTERS; writer++) {
		const struct scripted_allocation spec = {.size_bytes = BYTES,
							 .flags = WORLD_CPU_VISIBLE | LINK_MIRRORED,
							 .read_set = HIDDEN,
							 .write_set = WORLD_MEMORY};
		D3DKMT_HANDLE a = world_allocate_as(&w.device, &spec);

		world_submit_write(writer ? &other : &w.context, a, 16, 0x52 + writer);
		world_run(&w);
		w.m->settings.complete_at_once = false;
		world_submit_use(&w.context, a);
		settle(&w);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
			assert_int_equal(scripted_outstanding(w.m, e ? SECOND_PAGING : LEAD_PAGING),
					 e == writer);
		assert_int_equal(scripted_complete(w.m, writer ? SECOND_PAGING : LEAD_PAGING, 1),
				 1);
		settle(&w);
		assert_int_equal(scripted_outstanding(w.m, LEAD_PAGING), 1);
		assert_int_equal(scripted_outstanding(w.m, SECOND_PAGING), 1);
		world_run(&w);
		assert_int_equal(link_place(&w, 0).segment, HIDDEN_ID);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
			assert_int_equal(link_word(&w, e, 16), 0x52 + writer);
		w.m->settings.complete_at_once = true;
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
	}
	link_stop(&w);
}

/* A transfer out on one adapter, and the transfers in that follow it in the same call. */
static void pag_22_a_backing_store_is_read_only_after_it_was_written(void **state)
{
	struct client_context other;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	/*
	 * Content that may be written in segment 1 and read in segment 2 is transferred there
	 * through its backing store.
	 */
	const struct scripted_allocation spec = {.size_bytes = BYTES,
						 .flags = WORLD_CPU_VISIBLE | LINK_MIRRORED,
						 .read_set = WORLD_APERTURE,
						 .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE a = world_allocate_as(&w.device, &spec);
	world_submit_write(&other, a, 16, 0x52);
	world_run(&w);
	w.m->settings.complete_at_once = false;
	world_submit_use(&w.context, a);
	settle(&w);
	/*
	 * The lead's mapping is done, but the other copy is not transferred out: the packet does
	 * not run.
	 */
	scripted_complete(w.m, LEAD_PAGING, UINT32_MAX);
	settle(&w);
	assert_int_equal(scripted_outstanding(w.m, LEAD), 0);
	scripted_complete(w.m, SECOND_PAGING, UINT32_MAX);
	settle(&w);
	assert_int_equal(scripted_outstanding(w.m, LEAD), 1);
	world_run(&w);
	assert_int_equal(link_word(&w, 0, 16), 0x52);
	assert_int_equal(link_word(&w, 1, 16), 0x52);
	/* And back: both copies are transferred in, after unmapping only. */
	world_submit_write(&w.context, a, 20, 0x51);
	settle(&w);
	world_run(&w);
	assert_int_equal(link_word(&w, 0, 16), 0x52);
	assert_int_equal(link_word(&w, 0, 20), 0x51);
	link_stop(&w);
}

/*
 * On a single adapter the paging node keeps the order by itself. A link has more than one paging
 * node.
 */
static void sub_03_pag_22_a_packet_on_the_paging_node_waits_for_both_adapters(void **state)
{
	struct client_context other, beside;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	link_context(&w.device, 1, 0, &beside);
	const struct scripted_allocation spec = {.size_bytes = BYTES,
						 .flags = WORLD_CPU_VISIBLE | LINK_MIRRORED,
						 .read_set = WORLD_APERTURE,
						 .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE a = world_allocate_as(&w.device, &spec);
	world_submit_write(&other, a, 16, 0x52);
	world_run(&w);
	w.m->settings.complete_at_once = false;
	world_submit_use(&beside, a);
	settle(&w);
	assert_int_equal(scripted_complete(w.m, LEAD_PAGING, UINT32_MAX), 1);
	settle(&w);
	assert_int_equal(scripted_outstanding(w.m, LEAD_PAGING), 0);
	scripted_complete(w.m, SECOND_PAGING, UINT32_MAX);
	settle(&w);
	assert_int_equal(scripted_outstanding(w.m, LEAD_PAGING), 1);
	world_run(&w);
	assert_int_equal(link_word(&w, 0, 16), 0x52);
	link_stop(&w);
}

/*
 * The render packet before one adapter's part is submitted first; the other adapter's part alone
 * would block it.
 */
static void pag_21_pag_22_synchronous_paging_begins_on_all_adapters(void **state)
{
	struct client_context beside;
	struct world w;

	start(&w, state);
	link_context(&w.device, 1, 1, &beside);
	D3DKMT_HANDLE a = link_allocate(&w, LINK_MIRRORED, WORLD_MEMORY);
	D3DKMT_HANDLE b = link_allocate(&w, LINK_MIRRORED | 0x800, WORLD_MEMORY);
	w.m->settings.complete_at_once = false;
	world_submit_write(&beside, a, 16, 0x52); /* on the second's paging node */
	world_submit_write(&w.context, b, 16, 0x51);
	settle(&w);
	assert_int_equal(scripted_outstanding(w.m, LEAD_PAGING), 1);
	assert_int_equal(scripted_outstanding(w.m, SECOND_PAGING), 1);
	scripted_complete(w.m, LEAD_PAGING, 1);
	scripted_complete(w.m, SECOND_PAGING, 1);
	settle(&w);
	/* the packet and the part that follows */
	assert_int_equal(scripted_outstanding(w.m, SECOND_PAGING), 2);
	assert_int_equal(scripted_outstanding(w.m, LEAD), 0);
	world_run(&w);
	w.m->settings.complete_at_once = true;
	assert_int_equal(world_word(&w, a, 16), 0x52);
	assert_int_equal(world_word(&w, b, 16), 0x51);
	link_stop(&w);
}

/* ---- buffers ---- */

static void buffers_in_aperture(struct scripted_miniport *m)
{
	link_setup(m);
	m->settings.paging_segment = 2;
	m->settings.context.DmaBufferSegmentSet = WORLD_APERTURE;
}

static void seg_21_dma_05_buffers_are_mapped_on_the_adapter_that_reads_them(void **state)
{
	struct client_context other;
	struct world w;

	world_start(&w, state, buffers_in_aperture);
	for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
		const DXGKARG_BUILDPAGINGBUFFER *b =
			link_nth(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, e, 0);

		assert_int_equal(link_count(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, e), 1);
		assert_null(b->MapApertureSegment.hAllocation);
	}
	link_context(&w.device, 0, 1, &other);
	D3DKMT_HANDLE a = link_allocate(&w, LINK_INSTANCED, WORLD_MEMORY);
	scripted_forget(w.m);
	world_submit_write(&other, a, 16, 0x52);
	world_run(&w);
	assert_int_equal(link_count(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 0), 0);
	assert_int_equal(link_count(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 1), 1);
	world_submit_write(&w.context, a, 16, 0x51);
	world_run(&w);
	assert_int_equal(link_count(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 0), 1);
	assert_int_equal(link_word(&w, 0, 16), 0x51);
	assert_int_equal(link_word(&w, 1, 16), 0x52);
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
	world_submit_write(&other, a, 20, 0x53);
	world_run(&w);
	assert_int_equal(link_word(&w, 1, 16), 0x52);
	assert_int_equal(link_word(&w, 1, 20), 0x53);
	link_stop(&w);
}

/* ---- a miniport that fails on one adapter ---- */

struct difficulty {
	uint32_t engine, times;
	NTSTATUS status;
	uint32_t seen_idle; /* calls with AllocationIsIdle for either adapter */
};

/* Answers half of the first transfer for that adapter, or none of it, as often as `times` says. */
static void fail_paging(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARG_BUILDPAGINGBUFFER *args = call->args;
	const DXGKARG_BUILDPAGINGBUFFER *in = &call->in.paging;
	struct difficulty *d = context;

	(void)m;
	if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER ||
	    in->Operation != DXGK_OPERATION_TRANSFER || scripted_paging_engine(in) != d->engine)
		return;
	d->seen_idle += in->Transfer.Flags.AllocationIsIdle;
	if (!d->times)
		return;
	d->times--;
	call->status = d->status;
	if (d->status == STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER) {
		struct scripted_command *command = in->pDmaBuffer;

		command->count /= 2;
		args->MultipassOffset = (UINT)command->count;
	} else {
		args->pDmaBuffer = in->pDmaBuffer;
		args->MultipassOffset = 0;
	}
}

static void start_failing(struct world *w, void **state, struct difficulty *d)
{
	start(w, state);
	w->m->hook_context = d;
	w->m->hook = fail_paging;
}

static void pag_07_insufficient_paging_buffer_on_one_adapter(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	struct difficulty d = {.status = STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER};
	struct world w;

	start_failing(&w, state, &d);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t seen = i / 2 ? LINK_ADAPTERS * BYTES : BYTES;
		D3DKMT_HANDLE a = link_allocate(&w, flags[i / 2], WORLD_MEMORY);

		client_write(&w.device, a, seen, 0x4000);
		d.engine = i % 2;
		d.times = 1;
		scripted_forget(w.m);
		submit_use(&w, a);
		assert_int_equal(d.times, 0);
		assert_int_equal(link_count(&w, DXGK_OPERATION_TRANSFER, d.engine), 2);
		assert_int_equal(link_count(&w, DXGK_OPERATION_TRANSFER, !d.engine), 1);
		assert_int_equal(
			link_nth(&w, DXGK_OPERATION_TRANSFER, d.engine, 1)->MultipassOffset,
			BYTES / 2);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
			for (uint32_t n = 0; n < BYTES / 4; n += 499)
				assert_int_equal(link_word(&w, e, n * 4),
						 0x4000 + n + (i / 2) * e * BYTES / 4);
		/* And for the transfer out. */
		d.times = 1;
		link_push_out(&w);
		client_expect(&w.device, a, seen, 0x4000);
		d.times = 0;
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
	}
	link_stop(&w);
}

static void pag_08_allocation_busy_on_one_adapter(void **state)
{
	struct difficulty d = {.status = STATUS_GRAPHICS_ALLOCATION_BUSY};
	struct world w;

	start_failing(&w, state, &d);
	for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
		D3DKMT_HANDLE a = link_allocate(&w, LINK_MIRRORED, WORLD_MEMORY);

		client_write(&w.device, a, BYTES, 0x4000);
		d = (struct difficulty){e, 1, d.status, 0};
		submit_use(&w, a);
		assert_int_equal(d.seen_idle, 1);
		for (uint32_t i = 0; i < LINK_ADAPTERS; i++)
			assert_int_equal(link_word(&w, i, 400), 0x4000 + 100);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
	}
	link_stop(&w);
}

/* The lead's half was built. Neither half runs, and the link is stopped. */
static void pag_09_failed_paging_on_one_adapter_stops_the_link(void **state)
{
	struct difficulty d = {.engine = 1, .status = STATUS_UNSUCCESSFUL};
	struct world w;

	start_failing(&w, state, &d);
	D3DKMT_HANDLE a = link_allocate(&w, LINK_MIRRORED, WORLD_MEMORY), plain = a;
	client_write(&w.device, a, BYTES, 0x4000);
	scripted_forget(w.m);
	d.times = 1;
	world_use(&w.context, a);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	(void)world_render(&w.context, &args); /* queued, or removed already */
	settle(&w);
	assert_int_equal(d.times, 0);
	world_expect_finding(&w, "PAG-09");
	assert_int_equal(w.fatals, 1);
	assert_int_equal(w.fatal[0], 0x10E);
	assert_null(world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, true, 0));
	void *data;
	assert_int_equal(client_try_lock(&w.device, &plain, 0, &data), D3DDDIERR_DEVICEREMOVED);
	w.expected_fatals = 1;
	link_stop(&w);
}

/* ---- the reset ---- */

static void pag_27_every_copy_is_reported_lost(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED, 0};
	struct client_context other;
	struct timeout_world t;
	D3DKMT_HANDLE in_memory[3], mapped[3];

	timeout_start(&t, state, buffers_in_aperture, NULL);
	struct world *w = &t.w;
	link_context(&w->device, 0, 1, &other);
	for (uint32_t i = 0; i < 3; i++) {
		in_memory[i] = link_allocate(w, flags[i], WORLD_MEMORY);
		mapped[i] = link_allocate(w, flags[i], WORLD_APERTURE);
		world_submit_use(&w->context, in_memory[i]);
		world_submit_write(&w->context, mapped[i], 16, 0x70 + i);
	}
	world_submit_use(&other, in_memory[0]);
	world_run(w);
	timeout_hang(&t);
	world_submit_use(&other, in_memory[0]);
	scripted_forget(w->m);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	world_run(w);
	timeout_work(&t);
	/* Two allocations are on both adapters; one more and the world's own are on the lead. */
	assert_int_equal(link_count(w, DXGK_OPERATION_TRANSFER, 0), 4);
	assert_int_equal(link_count(w, DXGK_OPERATION_TRANSFER, 1), 2);
	for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(
				link_nth(w, DXGK_OPERATION_TRANSFER, e, i)->Transfer.TransferSize,
				0);
	/*
	 * Two or three mappings, one or more DMA buffers, and a paging buffer, which is then mapped
	 * again.
	 */
	assert_true(link_count(w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, 0) >= 5);
	assert_true(link_count(w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, 1) >= 4);
	assert_int_equal(link_count(w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 0), 1);
	assert_int_equal(link_count(w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 1), 1);
	timeout_reopen(&t);
	link_context(&w->device, 0, 1, &other);
	D3DKMT_HANDLE a = link_allocate(w, LINK_INSTANCED, WORLD_MEMORY);
	world_submit_write(&other, a, 16, 0x52);
	world_run(w);
	assert_int_equal(link_word(w, 1, 16), 0x52);
	assert_int_equal(world_word(w, a, BYTES + 16), 0x52);
	timeout_stop(&t);
	scripted_destroy(link_second);
}

/* The paging of the second adapter hangs, so the whole link is reset. */
static void tdr_05_hung_paging_of_one_adapter_resets_the_link(void **state)
{
	struct timeout_world t;

	timeout_start(&t, state, link_setup, NULL);
	struct world *w = &t.w;
	D3DKMT_HANDLE a = link_allocate(w, LINK_MIRRORED, WORLD_MEMORY);
	client_write(&w->device, a, BYTES, 0x4000);
	timeout_hang(&t);
	world_submit_use(&w->context, a);
	vidmm_settle(w->client.host);
	scripted_complete(w->m, LEAD_PAGING, UINT32_MAX);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	assert_int_equal(timeout_event(VIDMM_RECOVERY_RESET, 0).arg[1], SECOND_PAGING);
	timeout_work(&t);
	timeout_reopen(&t);
	a = link_allocate(w, LINK_MIRRORED, WORLD_MEMORY);
	client_write(&w->device, a, BYTES, 0x4000);
	submit_use(w, a);
	assert_int_equal(link_word(w, 1, 400), 0x4000 + 100);
	timeout_stop(&t);
	scripted_destroy(link_second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_03_pag_23_a_packet_waits_for_the_paging_of_each_adapter),
		ON_BOTH(pag_22_page_in_of_copies_waits_for_the_transfer_out),
		ON_BOTH(pag_22_a_backing_store_is_read_only_after_it_was_written),
		ON_BOTH(sub_03_pag_22_a_packet_on_the_paging_node_waits_for_both_adapters),
		ON_BOTH(pag_21_pag_22_synchronous_paging_begins_on_all_adapters),
		ON_BOTH(seg_21_dma_05_buffers_are_mapped_on_the_adapter_that_reads_them),
		ON_BOTH(pag_07_insufficient_paging_buffer_on_one_adapter),
		ON_BOTH(pag_08_allocation_busy_on_one_adapter),
		ON_BOTH(pag_09_failed_paging_on_one_adapter_stops_the_link),
		ON_BOTH(pag_27_every_copy_is_reported_lost),
		ON_BOTH(tdr_05_hung_paging_of_one_adapter_resets_the_link),
	};

	return cmocka_run_group_tests_name("sched_link_order", tests, NULL, NULL);
}
