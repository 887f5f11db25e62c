/* SPDX-License-Identifier: MIT */
/* Flips: what a source shows, from when on, and what must not happen to it meanwhile (DMA-32, SUB-11, SUB-17, PRS-02 to PRS-06). */
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

static void dma_32_a_flip_of_the_display_is_no_submission(void **state)
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
static void dma_32_a_flip_in_a_dma_buffer(void **state)
{
	struct show s;

	show_start(&s, state, show_dma);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a); /* the first is told by SetVidPnSourceAddress all the same (PRS-03) */
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

static void prs_02_only_primaries_of_that_source(void **state)
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
	args = show_flip(&s, 2, far); /* made for a source that is not there */
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

static void prs_02_a_miniport_that_cannot_show_has_no_sources(void **state)
{
	struct show s;

	show_start(&s, state, no_display);
	D3DKMT_PRESENT args = show_flip(&s, 0, show_allocate(&s, 0));
	assert_int_equal(show_present(&s, &args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "PRS-02");
	args = show_blt(&s, show_allocate(&s, UINT32_MAX), args.hSource);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS); /* it can copy */
	scripted_vsync(s.w.m, 0, 0); /* of what it says about displays nothing is heard */
	show_stop(&s);
}

/* The first is told at level two, with ModeChange, and then made visible; nobody waits for a vsync. */
static void prs_03_a_dark_source_begins_to_show(void **state)
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

static void prs_03_a_refusal_leaves_the_source_dark(void **state)
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
	show_now(&s, 0, a); /* another try */
	show_destroy(&s, show_allocate(&s, 0));
	show_stop(&s);
}

static void prs_04_at_dirql_when_the_picture_is_complete(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	uint32_t before = addresses(&s);
	/* What draws the next picture takes its time, and the flip is queued behind it. */
	D3DKMT_PRESENT args = show_blt(&s, show_allocate(&s, UINT32_MAX), b);
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	expect_flip(&s, 0, b);
	assert_int_equal(addresses(&s), before);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_int_equal(addresses(&s), before + 1);
	const struct scripted_call *call = last_address(&s);
	assert_true(call->irql > DISPATCH_LEVEL);
	assert_int_equal(call->in.source_address.Flags.Value, 0x4); /* FlipOnNextVSync */
	assert_int_equal(call->in.source_address.VidPnSourceId, 0);
	const DXGK_ALLOCATIONLIST *drawn =
		&world_nth_of(&s.w, VIDMM_DDI_PATCH, false, 0)->allocations[2];
	assert_int_equal(call->in.source_address.PrimarySegment, drawn->SegmentId);
	assert_int_equal(show_address(&s, 0), drawn->PhysicalAddress.QuadPart);
	show_vsync(&s, 0);
	assert_int_equal(show_displayed(&s), 2);
	/* At once, without a vsync. */
	args = show_flip(&s, 0, a);
	args.FlipInterval = D3DDDI_FLIPINTERVAL_IMMEDIATE;
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_int_equal(last_address(&s)->in.source_address.Flags.Value, 0x2);
	assert_int_equal(show_displayed(&s), 3);
	show_stop(&s);
}

static void prs_04_a_refusal_leaves_what_was_shown(void **state)
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
	show_now(&s, 0, b); /* nothing of it is in the way */
	show_stop(&s);
}

/* What another node draws counts as well. */
static void prs_04_another_nodes_picture_is_waited_for(void **state)
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
	scripted_complete(s.w.m, 0, 8); /* its own node has nothing to do */
	vidmm_settle(s.w.client.host);
	assert_int_equal(addresses(&s), before);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	assert_int_equal(addresses(&s), before + 1);
	show_vsync(&s, 0);
	show_stop(&s);
}

/* What another context of the node is at matters only if it draws that picture. */
static void prs_04_sch_05_what_does_not_draw_it_is_not_waited_for(void **state)
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

/* A source shows what was flipped to last, whatever the priorities of those that flip. */
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
	/* Both are in memory, and the miniport has all that it takes. */
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

static void prs_05_a_vsync_tells_what_is_shown(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_HANDLE a = show_allocate(&s, 0), b = show_allocate(&s, 0);
	show_now(&s, 0, a);
	uint64_t first = show_address(&s, 0);
	expect_flip(&s, 0, b);
	world_run(&s.w);
	vidmm_settle(s.w.client.host);
	scripted_vsync(s.w.m, 0, first); /* still the old one */
	assert_int_equal(show_displayed(&s), 1);
	assert_int_equal(s.w.client.findings, 0);
	scripted_vsync(s.w.m, 0, first + 0x100000); /* neither */
	vidmm_settle(s.w.client.host);
	world_expect_finding(&s.w, "PRS-05");
	assert_int_equal(show_displayed(&s), 1);
	scripted_vsync(s.w.m, 2, first); /* no such target */
	world_expect_finding(&s.w, "PRS-05");
	show_vsync(&s, 0);
	assert_int_equal(show_displayed(&s), 2);
	show_vsync(&s, 0); /* every frame */
	assert_int_equal(show_displayed(&s), 2);
	assert_int_equal(s.w.client.findings, 0);
	show_stop(&s);
}

/* The hardware may be as quick as that. */
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

static void prs_05_a_vsync_inside_the_call(void **state)
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

/* A display that has died does not hang the program. */
static void prs_05_a_vsync_that_never_comes(void **state)
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
	assert_int_equal(show_present(&s, &args), STATUS_SUCCESS); /* waits for the one before */
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
	show_now(&s, 1, c); /* the other source's are its own */
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

/* ---- what is on the screen stays ---- */

static void prs_06_what_is_shown_is_not_evicted(void **state)
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
	/* Room for exactly that beside it, again and again. */
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
	/* What is not shown any more goes. */
	show_now(&s, 0, b);
	show_stop(&s);
}

static void prs_06_its_destruction_waits_until_another_is_shown(void **state)
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

static void prs_06_a_source_is_dark_before_its_device_ends(void **state)
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

/* A flip whose turn has not come goes with its device, too; nothing of it reaches the display. */
static void prs_06_a_device_ends_with_a_flip_pending(void **state)
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

/* TDR-11: nothing is resident after a reset, so nothing is shown; the next flip begins anew. */
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

/* ---- interrupts told together ---- */

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
		data.DmaCompleted.SubmissionFenceId = b->m->node[0].reported_fence;
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

static void sub_11_dma_comes_before_display(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dma_32_a_flip_of_the_display_is_no_submission),
		ON_BOTH(dma_32_a_flip_in_a_dma_buffer),
		ON_SIM(prs_02_only_primaries_of_that_source),
		ON_SIM(prs_02_a_miniport_that_cannot_show_has_no_sources),
		ON_BOTH(prs_03_a_dark_source_begins_to_show),
		ON_BOTH(prs_03_a_refusal_leaves_the_source_dark),
		ON_BOTH(prs_04_at_dirql_when_the_picture_is_complete),
		ON_BOTH(prs_04_a_refusal_leaves_what_was_shown),
		ON_BOTH(prs_04_another_nodes_picture_is_waited_for),
		ON_BOTH(prs_04_sch_05_what_does_not_draw_it_is_not_waited_for),
		ON_BOTH(prs_04_sch_05_flips_of_a_source_keep_their_order),
		ON_BOTH(prs_05_a_vsync_tells_what_is_shown),
		ON_BOTH(prs_05_a_vsync_inside_the_call),
		ON_SIM(prs_05_a_vsync_that_never_comes),
		ON_BOTH(sub_17_one_flip_may_be_pending),
		ON_BOTH(prs_06_what_is_shown_is_not_evicted),
		ON_BOTH(prs_06_its_destruction_waits_until_another_is_shown),
		ON_BOTH(prs_06_a_source_is_dark_before_its_device_ends),
		ON_BOTH(prs_06_a_device_ends_with_a_flip_pending),
		ON_SIM(prs_03_after_a_reset_the_source_is_dark),
		ON_BOTH(sub_11_dma_comes_before_display),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
