/* SPDX-License-Identifier: MIT */
/*
 * Flips: which primary a source shows, from when on, and what must not happen to it meanwhile
 * (DMA-32, SUB-11, SUB-17, PRS-02 to PRS-06).
 */
#include "show_world.h"

#include <string.h>

static const struct scripted_call *last_address(const struct show *s)
{
	return scripted_last(s->w.m, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS);
}

static uint32_t addresses(const struct show *s)
{
	return scripted_count(s->w.m, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS);
}

static void expect_flip(struct show *s, uint32_t source, D3DKMT_HANDLE primary)
{
	const D3DKMT_PRESENT args = show_flip(s, source, primary);

	assert_int_equal(show_present(s, &args), STATUS_SUCCESS);
}

static void dma_32_an_mmio_flip_produces_no_submission(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	show_now(&s, 0, b);
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_PRESENT), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct scripted_call *call = scripted_nth(s.w.m, VIDMM_DDI_PRESENT, i);
		const DXGKARG_PRESENT *in = &call->in.present;

		assert_null(in->pDmaBuffer);
		assert_null(in->pPatchLocationListOut);
		assert_int_equal(in->DmaSize, 0);
		assert_int_equal(in->Flags.Value, 0x4);
		assert_non_null(call->allocations[1].hDeviceSpecificAllocation);
		assert_null(call->allocations[2].hDeviceSpecificAllocation);
	}
	assert_int_equal(world_render_submits(&s.w), 0);
	assert_null(world_nth_of(&s.w, VIDMM_DDI_PATCH, false, 0));
	show_stop(&s);
}

/* Without FlipOnVSyncMmIo it is a packet with Flip. */
static void dma_32_without_mmio_flips_a_flip_is_a_dma_packet(void **state)
{
	struct show s;

	show_start(&s, state, show_dma);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a); /* the first flip uses SetVidPnSourceAddress nevertheless (PRS-03) */
	expect_flip(&s, 0, b);
	world_run(&s.w);
	const DXGKARG_SUBMITCOMMAND *submit =
		&world_nth_of(&s.w, VIDMM_DDI_SUBMIT_COMMAND, false, 1)->in.submit;
	assert_int_equal(submit->Flags.Present, 1);
	assert_int_equal(submit->Flags.Flip, 1);
	assert_int_equal(submit->Flags.FlipWithNoWait, 0);
	assert_int_equal(submit->VidPnSourceId, 0);
	assert_int_equal(submit->FlipInterval, D3DDDI_FLIPINTERVAL_ONE);
	assert_int_equal(addresses(&s), 1);
	assert_int_equal(show_displayed(&s), 1);
	const DXGK_ALLOCATIONLIST *entry =
		&world_nth_of(&s.w, VIDMM_DDI_PATCH, false, 1)->allocations[1];
	scripted_vsync(s.w.m, 0, (uint64_t)entry->PhysicalAddress.QuadPart);
	vidmm_settle(s.w.client.host);
	assert_int_equal(show_displayed(&s), 2);
	show_stop(&s);
}

static void prs_02_a_flip_needs_a_primary_of_the_source(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 1), plain = show_allocate(&s, UINT32_MAX),
		      far = show_allocate(&s, 2);
	D3DKMT_PRESENT args = show_flip(&s, 0, a);

	assert_int_equal(show_present(&s, &args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "PRS-02");
	args = show_flip(&s, 0, plain);
	assert_int_equal(show_present(&s, &args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "PRS-02");
	args = show_flip(&s, 2, far); /* created for a source that does not exist */
	assert_int_equal(show_present(&s, &args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "PRS-02");
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_PRESENT), 0);
	expect_flip(&s, 1, a);
	show_stop(&s);
}

static void no_display(struct scripted_miniport *m)
{
	show_mmio(m);
	m->settings.table.DxgkDdiSetVidPnSourceVisibility = NULL;
}

static void prs_02_a_miniport_without_display_ddis_has_no_sources(void **state)
{
	struct show s;

	show_start(&s, state, no_display);
	D3DKMT_PRESENT args = show_flip(&s, 0, show_allocate(&s, 0));
	assert_int_equal(show_present(&s, &args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "PRS-02");
	args = show_blt(&s, show_allocate(&s, UINT32_MAX), args.hSource);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS); /* blits are possible */
	scripted_vsync(s.w.m, 0, 0); /* what it reports about displays is ignored */
	show_stop(&s);
}

/*
 * The first flip is set at level two, with ModeChange, and the source is then made visible. No
 * vsync is awaited.
 */
static void prs_03_the_first_flip_sets_the_address_then_makes_the_source_visible(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	expect_flip(&s, 0, show_allocate(&s, 0));
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_int_equal(show_displayed(&s), 1);
	const struct scripted_call *call = last_address(&s);
	assert_int_equal(call->irql, PASSIVE_LEVEL);
	assert_int_equal(call->in.source_address.Flags.Value, 0x1);
	assert_int_not_equal(call->in.source_address.PrimarySegment, 0);
	assert_non_null(call->in.source_address.hAllocation);
	call = scripted_last(s.w.m, VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY);
	assert_int_equal(call->irql, PASSIVE_LEVEL);
	assert_int_equal(call->in.visibility.Visible, TRUE);
	show_stop(&s);
}

static void prs_03_a_failed_first_flip_leaves_the_source_dark(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0);
	scripted_fail(s.w.m, VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY, STATUS_UNSUCCESSFUL, 1);
	expect_flip(&s, 0, a);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	world_expect_finding(&s.w, "PRS-03");
	assert_int_equal(show_displayed(&s), 0);
	show_now(&s, 0, a); /* a second attempt */
	show_destroy(&s, show_allocate(&s, 0));
	show_stop(&s);
}

static void prs_04_address_is_set_at_dirql_when_drawing_is_complete(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	uint32_t before = addresses(&s);
	/* The packet that draws the next picture is long, and the flip is queued behind it. */
	D3DKMT_PRESENT args = show_blt(&s, show_allocate(&s, UINT32_MAX), b);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	expect_flip(&s, 0, b);
	assert_int_equal(addresses(&s), before);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_int_equal(addresses(&s), before + 1);
	const struct scripted_call *call = last_address(&s);
	assert_true(call->irql > DISPATCH_LEVEL);
	/* Flags.Value 0x4: FlipOnNextVSync */
	assert_int_equal(call->in.source_address.Flags.Value, 0x4);
	assert_int_equal(call->in.source_address.VidPnSourceId, 0);
	const DXGK_ALLOCATIONLIST *drawn =
		&world_nth_of(&s.w, VIDMM_DDI_PATCH, false, 0)->allocations[2];
	assert_int_equal(call->in.source_address.PrimarySegment, drawn->SegmentId);
	assert_int_equal(show_address(&s, 0), drawn->PhysicalAddress.QuadPart);
	show_vsync(&s, 0);
	assert_int_equal(show_displayed(&s), 2);
	/* An immediate flip takes effect without a vsync. */
	args = show_flip(&s, 0, a);
	args.FlipInterval = D3DDDI_FLIPINTERVAL_IMMEDIATE;
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_int_equal(last_address(&s)->in.source_address.Flags.Value, 0x2);
	assert_int_equal(show_displayed(&s), 3);
	show_stop(&s);
}

static void prs_04_a_failed_flip_leaves_the_shown_primary(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	scripted_fail(s.w.m, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS, STATUS_INVALID_PARAMETER, 1);
	expect_flip(&s, 0, b);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	world_expect_finding(&s.w, "PRS-04");
	assert_int_equal(show_displayed(&s), 1);
	show_now(&s, 0, b); /* the failed flip leaves no pending state */
	show_stop(&s);
}

/* The flip waits for drawing on another node as well. */
static void prs_04_a_flip_waits_for_drawing_on_another_node(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	uint32_t before = addresses(&s);
	D3DKMT_CREATECONTEXT context = {.hDevice = s.device, .NodeOrdinal = 1};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	D3DKMT_PRESENT args = show_blt(&s, show_allocate(&s, UINT32_MAX), b);
	args.hContext = context.hContext;
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	expect_flip(&s, 0, b);
	scripted_complete(s.w.m, 0, 8); /* its own node is idle */
	vidmm_settle(s.w.client.host);
	assert_int_equal(addresses(&s), before);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_int_equal(addresses(&s), before + 1);
	show_vsync(&s, 0);
	show_stop(&s);
}

/* The state of another context of the node matters only if it draws that picture. */
static void prs_04_sch_05_a_flip_does_not_wait_for_unrelated_contexts(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE shown[] = {show_allocate(&s, 0), show_allocate(&s, 0)};
	D3DKMT_HANDLE from = show_allocate(&s, UINT32_MAX), to = show_allocate(&s, UINT32_MAX);
	D3DKMT_CREATECONTEXT context = {.hDevice = s.device};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	D3DKMT_PRESENT args = show_blt(&s, from, to);
	args.hContext = context.hContext;
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	world_run(&s.w);
	show_now(&s, 0, shown[0]);
	show_now(&s, 0, shown[1]);
	for (uint32_t draws = 0; draws < 2; draws++) {
		uint32_t before = addresses(&s);

		args.hDestination = draws ? shown[draws] : to;
		assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
		assert_int_equal(scripted_outstanding(s.w.m, 0), 1);
		expect_flip(&s, 0, shown[draws]);
		assert_int_equal(scripted_outstanding(s.w.m, 0), 1);
		assert_int_equal(addresses(&s), before + !draws);
		world_run(&s.w);
		vidmm_settle(s.w.client.host);
		assert_int_equal(addresses(&s), before + 1);
		show_vsync(&s, 0);
	}
	show_stop(&s);
}

/* A source shows the last flip in call order, whatever the priorities of the contexts. */
static void prs_04_sch_05_flips_of_a_source_keep_their_order(void **state)
{
	struct show s;

	show_start(&s, state, show_dma);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	D3DKMT_HANDLE busy = world_allocate(&s.w, 64 * KIB, WORLD_MEMORY);
	show_now(&s, 0, a);
	world_submit_use(&s.w.context, busy);
	world_run(&s.w);
	const void *first =
		world_nth_of(&s.w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.hContext;

	struct show other = s;
	D3DKMT_CREATEDEVICE device = {.hAdapter = s.adapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	other.device = device.hDevice;
	D3DKMT_CREATECONTEXT context = {.hDevice = device.hDevice};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	other.context = context.hContext;
	const D3DKMT_SETCONTEXTSCHEDULINGPRIORITY priority = {context.hContext, 7};
	assert_int_equal(D3DKMTSetContextSchedulingPriority(&priority), STATUS_SUCCESS);
	D3DKMT_HANDLE c = show_allocate(&other, 0);
	/* Both are resident, and the miniport has as many packets as it takes. */
	D3DKMT_PRESENT args = show_blt(&s, show_allocate(&s, UINT32_MAX), b);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	args = show_blt(&other, show_allocate(&other, UINT32_MAX), c);
	assert_int_equal(show_present(&other, &args), STATUS_SUCCESS);
	world_run(&s.w);
	for (uint32_t had = 0; scripted_outstanding(s.w.m, 0) >= had; had++)
		world_submit_use(&s.w.context, busy);
	expect_flip(&s, 0, b);
	expect_flip(&other, 0, c);
	scripted_forget(s.w.m);
	world_run(&s.w);
	const struct scripted_call *call;
	uint32_t flips = 0;
	for (uint32_t i = 0;
	     (call = world_nth_of(&s.w, VIDMM_DDI_SUBMIT_COMMAND, false, i)) != NULL; i++)
		if (call->in.submit.Flags.Flip)
			assert_true((call->in.submit.hContext == first) == (flips++ == 0));
	assert_int_equal(flips, 2);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = other.device};
	s.w.m->settings.complete_at_once = true;
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	show_stop(&s);
}

static void prs_05_a_vsync_with_the_pending_address_completes_the_flip(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	uint64_t first = show_address(&s, 0);
	expect_flip(&s, 0, b);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	scripted_vsync(s.w.m, 0, first); /* the old address */
	assert_int_equal(show_displayed(&s), 1);
	assert_int_equal(s.w.client.findings, 0);
	scripted_vsync(s.w.m, 0, first + 0x100000); /* neither address */
	vidmm_settle(s.w.client.host);
	world_expect_finding(&s.w, "PRS-05");
	assert_int_equal(show_displayed(&s), 1);
	scripted_vsync(s.w.m, 2, first); /* no such target */
	world_expect_finding(&s.w, "PRS-05");
	show_vsync(&s, 0);
	assert_int_equal(show_displayed(&s), 2);
	show_vsync(&s, 0); /* a vsync of every frame */
	assert_int_equal(show_displayed(&s), 2);
	assert_int_equal(s.w.client.findings, 0);
	show_stop(&s);
}

/* The hardware may report a vsync during the call. */
static void vsync_at_once(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;

	(void)context;
	if (call->ddi != VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS || call->irql <= DISPATCH_LEVEL)
		return;
	memset(&data, 0, sizeof(data));
	data.InterruptType = DXGK_INTERRUPT_CRTC_VSYNC;
	data.CrtcVsync.PhysicalAddress = call->in.source_address.PrimaryAddress;
	m->services.DxgkCbNotifyInterrupt(m->services.DeviceHandle, &data);
	m->services.DxgkCbQueueDpc(m->services.DeviceHandle);
}

static void prs_05_a_vsync_during_setvidpnsourceaddress_is_accepted(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE primary[2] = {show_allocate(&s, 0), show_allocate(&s, 0)};
	show_now(&s, 0, primary[0]);
	s.w.m->hook = vsync_at_once;
	for (uint32_t i = 1; i < 7; i++) {
		D3DKMT_PRESENT args = show_flip(&s, 0, primary[i % 2]);

		args.FlipInterval = i < 4 ? D3DDDI_FLIPINTERVAL_ONE : D3DDDI_FLIPINTERVAL_IMMEDIATE;
		assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
		world_run(&s.w);
		vidmm_settle(s.w.client.host);
		assert_int_equal(show_displayed(&s), i + 1);
	}
	s.w.m->hook = NULL;
	show_stop(&s);
}

struct flipper {
	struct show *s;
	D3DKMT_HANDLE primary;
	NTSTATUS status;
	_Atomic bool over;
};

static void flip_in_thread(void *argument)
{
	struct flipper *f = argument;
	D3DKMT_PRESENT args = show_flip(f->s, 0, f->primary);

	f->status = D3DKMTPresent(&args);
	atomic_store(&f->over, true);
}

/* A display without vsyncs does not hang the client. */
static void prs_05_a_flip_without_vsync_counts_as_shown_after_tdrdelay(void **state)
{
	const struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};
	struct show s;

	show_start_with(&s, state, NULL, &options);
	s.w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	expect_flip(&s, 0, b);
	uint64_t began = vidmm_now_ns(s.w.client.host);
	D3DKMT_PRESENT args = show_flip(&s, 0, a);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS); /* waits for the previous one */
	assert_true(vidmm_now_ns(s.w.client.host) - began >= 1900000000u);
	world_expect_finding(&s.w, "PRS-05");
	assert_int_equal(show_displayed(&s), 2);
	show_stop(&s);
}

static void sub_17_one_flip_may_be_pending(void **state)
{
	struct vidmm_thread *thread;
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0), c = show_allocate(&s, 1);
	show_now(&s, 0, a);
	expect_flip(&s, 0, b);
	D3DKMT_PRESENT args = show_flip(&s, 0, a);
	args.Flags.FlipDoNotWait = 1;
	assert_int_equal(show_present(&s, &args), STATUS_GRAPHICS_ALLOCATION_BUSY);
	show_now(&s, 1, c); /* flips of the other source count separately */
	struct flipper f = {.s = &s, .primary = a};
	assert_int_equal(vidmm_thread_create(s.w.client.host, "flips", flip_in_thread, &f, &thread),
			 0);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_false(atomic_load(&f.over));
	show_vsync(&s, 0);
	vidmm_thread_join(thread);
	assert_int_equal(f.status, STATUS_SUCCESS);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	show_vsync(&s, 0);
	show_stop(&s);
}

/* ---- the shown primary stays resident ---- */

static void prs_06_the_shown_primary_is_not_evicted(void **state)
{
	struct scripted_allocation large = {.size_bytes = SCRIPTED_BAR_BYTES - 64 * KIB,
					    .flags = WORLD_CPU_VISIBLE,
					    .read_set = WORLD_MEMORY,
					    .write_set = WORLD_MEMORY};
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	uint64_t address = show_address(&s, 0);
	/* Allocations that need exactly the space beside it, repeatedly. */
	for (uint32_t i = 0; i < 3; i++) {
		D3DKMT_HANDLE big = world_allocate_as(&s.w.device, &large);

		world_submit_use(&s.w.context, big);
		world_run(&s.w);
	}
	D3DKMT_PRESENT args = show_blt(&s, show_allocate(&s, UINT32_MAX), a);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	world_run(&s.w);
	const struct scripted_call *patch = scripted_last(s.w.m, VIDMM_DDI_PATCH);
	assert_int_equal(patch->allocations[2].PhysicalAddress.QuadPart, address);
	/* A primary that is no longer shown can be evicted. */
	show_now(&s, 0, b);
	show_stop(&s);
}

static void prs_06_destruction_waits_until_another_primary_is_shown(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	show_destroy(&s, a);
	world_run(&s.w);
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_DESTROY_ALLOCATION), 0);
	show_now(&s, 0, b);
	vidmm_settle(s.w.client.host);
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_DESTROY_ALLOCATION), 1);
	show_stop(&s);
}

static void prs_06_a_source_is_made_dark_before_its_device_is_destroyed(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	show_now(&s, 0, show_allocate(&s, 0));
	const D3DKMT_DESTROYDEVICE destroy = {.hDevice = s.device};
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
	const struct scripted_call *last =
		scripted_last(s.w.m, VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY);
	assert_int_equal(last->in.visibility.Visible, FALSE);
	uint32_t dark = 0, closed = 0;
	const struct scripted_call *call;
	for (uint32_t i = 0; (call = scripted_at(s.w.m, i)) != NULL; i++) {
		if (call == last)
			dark = i;
		else if (call->ddi == VIDMM_DDI_CLOSE_ALLOCATION)
			closed = i;
	}
	assert_true(dark < closed);
	world_stop(&s.w);
}

/* A flip that is not executed yet ends with its device; the display gets no call for it. */
static void prs_06_a_pending_flip_is_dropped_when_its_device_is_destroyed(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	expect_flip(&s, 0, b); /* set, and no vsync comes */
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	const D3DKMT_DESTROYDEVICE destroy = {.hDevice = s.device};
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
	world_stop(&s.w);
}

/*
 * TDR-11: nothing is resident after a reset, so no source shows anything; the next flip counts as
 * the first.
 */
static void prs_03_after_a_reset_the_source_is_dark(void **state)
{
	const struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct client_options options = {.tdr = &tdr};
	struct show s;

	show_start_with(&s, state, NULL, &options);
	D3DKMT_HANDLE a = show_allocate(&s, 0);
	s.w.m->settings.complete_at_once = true;
	show_now(&s, 0, a);
	s.w.m->settings.complete_at_once = false;
	D3DKMT_PRESENT args = show_blt(&s, show_allocate(&s, UINT32_MAX), a);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	while (!scripted_count(s.w.m, VIDMM_DDI_RESTART_FROM_TIMEOUT))
		vidmm_sleep_until_ns(s.w.client.host, vidmm_now_ns(s.w.client.host) + 100000000u);
	vidmm_settle(s.w.client.host);
	assert_int_equal(show_present(&s, &args), STATUS_DEVICE_REMOVED);
	const D3DKMT_DESTROYDEVICE destroy = {.hDevice = s.device};
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
	s.w.m->settings.complete_at_once = true;
	D3DKMT_CREATEDEVICE device = {.hAdapter = s.adapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	s.device = device.hDevice;
	D3DKMT_CREATECONTEXT context = {.hDevice = s.device};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	s.context = context.hContext;
	show_now(&s, 0, show_allocate(&s, 0));
	assert_int_equal(last_address(&s)->in.source_address.Flags.ModeChange, 1);
	show_stop(&s);
}

/* ---- interrupts that are reported together ---- */

struct both {
	struct scripted_miniport *m;
	bool display_first;
	uint64_t address;
};

static void tell(struct both *b, bool display)
{
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;

	memset(&data, 0, sizeof(data));
	if (display) {
		data.InterruptType = DXGK_INTERRUPT_CRTC_VSYNC;
		data.CrtcVsync.PhysicalAddress.QuadPart = (LONGLONG)b->address;
	} else {
		data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
		data.DmaCompleted.SubmissionFenceId = scripted_completed_fence(b->m, 0);
	}
	b->m->services.DxgkCbNotifyInterrupt(b->m->services.DeviceHandle, &data);
}

static BOOLEAN tell_both(PVOID context)
{
	struct both *b = context;

	tell(b, b->display_first);
	tell(b, !b->display_first);
	return b->m->services.DxgkCbQueueDpc(b->m->services.DeviceHandle);
}

static void sub_11_dma_interrupts_precede_vsync_interrupts(void **state)
{
	BOOLEAN result;
	struct show s;

	show_start(&s, state, NULL);
	show_now(&s, 0, show_allocate(&s, 0));
	D3DKMT_PRESENT args =
		show_blt(&s, show_allocate(&s, UINT32_MAX), show_allocate(&s, UINT32_MAX));
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	world_run(&s.w); /* so that there is a fence to repeat */
	struct both b = {.m = s.w.m, .address = show_address(&s, 0)};
	const DXGKRNL_INTERFACE *services = &s.w.m->services;
	services->DxgkCbSynchronizeExecution(services->DeviceHandle, tell_both, &b, 0, &result);
	vidmm_settle(s.w.client.host);
	assert_int_equal(s.w.client.findings, 0);
	b.display_first = true;
	services->DxgkCbSynchronizeExecution(services->DeviceHandle, tell_both, &b, 0, &result);
	vidmm_settle(s.w.client.host);
	world_expect_finding(&s.w, "SUB-11");
	show_stop(&s);
}

static D3DKMT_QUERYSTATISTICS source_statistics(uint32_t type, uint32_t source)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_QUERYSTATISTICS args = {.Type = (D3DKMT_QUERYSTATISTICS_TYPE)type,
				       .QueryVidPnSource.VidPnSourceId = source};

	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	args.AdapterLuid = info.AdapterLuid;
	assert_int_equal(D3DKMTQueryStatistics(&args),
			 source < 2 ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
	return args;
}

static void qst_07_a_source_counts_its_flips(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	D3DKMT_QUERYSTATISTICS found = source_statistics(D3DKMT_QUERYSTATISTICS_VIDPNSOURCE, 0);
	assert_int_equal(found.QueryResult.VidPnSourceInformation.GlobalInformation.Frame,
			 show_displayed(&s));
	expect_flip(&s, 0, b); /* it waits for the vsync */
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	found = source_statistics(D3DKMT_QUERYSTATISTICS_VIDPNSOURCE, 0);
	assert_int_equal(found.QueryResult.VidPnSourceInformation.GlobalInformation.Frame, 1);
	assert_int_equal(found.QueryResult.VidPnSourceInformation.GlobalInformation.QueuedPresent,
			 1);
	found = source_statistics(D3DKMT_QUERYSTATISTICS_PROCESS_VIDPNSOURCE, 0);
	assert_int_equal(found.QueryResult.ProcessVidPnSourceInformation.QueuedPresent, 1);
	show_vsync(&s, 0);
	found = source_statistics(D3DKMT_QUERYSTATISTICS_VIDPNSOURCE, 0);
	assert_int_equal(found.QueryResult.VidPnSourceInformation.GlobalInformation.Frame, 2);
	assert_int_equal(found.QueryResult.VidPnSourceInformation.GlobalInformation.QueuedPresent,
			 0);
	/* Both flips were DDI calls, which the node counts apart (QST-06). */
	found = source_statistics(D3DKMT_QUERYSTATISTICS_NODE, 0);
	const D3DKMT_QUERYSTATISTICS_QUEUE_PACKET_TYPE_INFORMATION *flips =
		&found.QueryResult.NodeInformation.GlobalInformation.PacketStatistics
			 .QueuePacket[D3DKMT_MmIoFlipCommandBuffer];
	assert_int_equal(flips->PacketSubmited, 2);
	assert_int_equal(flips->PacketCompleted, 2);
	(void)source_statistics(D3DKMT_QUERYSTATISTICS_VIDPNSOURCE, 2);
	world_expect_finding(&s.w, "QST-07");
	show_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dma_32_an_mmio_flip_produces_no_submission),
		ON_BOTH(qst_07_a_source_counts_its_flips),
		ON_BOTH(dma_32_without_mmio_flips_a_flip_is_a_dma_packet),
		ON_SIM(prs_02_a_flip_needs_a_primary_of_the_source),
		ON_SIM(prs_02_a_miniport_without_display_ddis_has_no_sources),
		ON_BOTH(prs_03_the_first_flip_sets_the_address_then_makes_the_source_visible),
		ON_BOTH(prs_03_a_failed_first_flip_leaves_the_source_dark),
		ON_BOTH(prs_04_address_is_set_at_dirql_when_drawing_is_complete),
		ON_BOTH(prs_04_a_failed_flip_leaves_the_shown_primary),
		ON_BOTH(prs_04_a_flip_waits_for_drawing_on_another_node),
		ON_BOTH(prs_04_sch_05_a_flip_does_not_wait_for_unrelated_contexts),
		ON_BOTH(prs_04_sch_05_flips_of_a_source_keep_their_order),
		ON_BOTH(prs_05_a_vsync_with_the_pending_address_completes_the_flip),
		ON_BOTH(prs_05_a_vsync_during_setvidpnsourceaddress_is_accepted),
		ON_SIM(prs_05_a_flip_without_vsync_counts_as_shown_after_tdrdelay),
		ON_BOTH(sub_17_one_flip_may_be_pending),
		ON_BOTH(prs_06_the_shown_primary_is_not_evicted),
		ON_BOTH(prs_06_destruction_waits_until_another_primary_is_shown),
		ON_BOTH(prs_06_a_source_is_made_dark_before_its_device_is_destroyed),
		ON_BOTH(prs_06_a_pending_flip_is_dropped_when_its_device_is_destroyed),
		ON_SIM(prs_03_after_a_reset_the_source_is_dark),
		ON_BOTH(sub_11_dma_interrupts_precede_vsync_interrupts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
