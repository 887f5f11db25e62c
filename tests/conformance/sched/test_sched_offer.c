/* SPDX-License-Identifier: MIT */
/*
 * Offers through the allocation list (OFR-10, DMA-24): they take effect when the DMA buffer has
 * been processed.
 */
#include "sched_world.h"

#include <string.h>

enum { LOW = 1, HIGH = 3, READ_ONLY = 0x1, DONOT_WAIT = 0x4, IGNORE_SYNC = 0x8 };

static D3DDDICB_RENDER use_and_offer(struct client_context *context, D3DKMT_HANDLE a,
				     uint32_t value, uint32_t priority)
{
	uint32_t index = client_use(context, a, true);

	world_write(context, a, 0, value);
	context->c.pAllocationList[index].Value |= priority << 2;
	return world_render_args(context);
}

static void submit_offer(struct client_context *context, D3DKMT_HANDLE a, uint32_t value,
			 uint32_t priority)
{
	D3DDDICB_RENDER args = use_and_offer(context, a, value, priority);

	assert_int_equal(world_render(context, &args), S_OK);
}

static BOOL reclaim(struct world *w, D3DKMT_HANDLE a)
{
	BOOL discarded = 7;
	D3DDDICB_RECLAIMALLOCATIONS args = {
		.HandleList = &a, .NumAllocations = 1, .pDiscarded = &discarded};

	assert_int_equal(w->device.cb->pfnReclaimAllocationsCb(w->device.handle, &args), S_OK);
	return discarded;
}

static HRESULT try_lock(struct world *w, D3DKMT_HANDLE a, uint32_t flags)
{
	return client_try_lock(&w->device, &a, flags, NULL);
}

static void expect_offered(struct world *w, D3DKMT_HANDLE a)
{
	assert_int_equal(try_lock(w, a, 0), E_INVALIDARG);
	world_expect_finding(w, "LOCK-25");
	world_use(&w->context, a);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), E_INVALIDARG);
	world_expect_finding(w, "OFR-05");
}

static void ofr_10_dma_24_the_offer_takes_effect_when_the_buffer_completes(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	submit_offer(&w.context, a, 0x10, LOW);
	/* Busy, not offered; other buffers may use it until then. */
	assert_int_equal(try_lock(&w, a, DONOT_WAIT), D3DERR_WASSTILLDRAWING);
	world_submit_write(&w.context, a, 4, 0x11);
	assert_int_equal(client_events(&w.client, VIDMM_EVENT_OFFER), 0);
	world_run(&w);
	expect_offered(&w, a);
	assert_int_equal(client_events(&w.client, VIDMM_EVENT_OFFER), 1);
	/* No other allocation needed the memory. */
	assert_false(reclaim(&w, a));
	assert_int_equal(world_word(&w, a, 0), 0x10);
	assert_int_equal(world_word(&w, a, 4), 0x11);
	world_submit_use(&w.context, a);
	world_stop(&w);
}

static void ofr_10_offered_memory_is_discarded_and_reclaim_reports_it(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE kept = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE need = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	world_submit_write(&w.context, kept, 0, 0x21);
	submit_offer(&w.context, a, 0x20, HIGH);
	world_run(&w);
	/*
	 * No call has asked whether it is offered. Memory pressure alone applies the offer, before
	 * an allocation that is not offered is evicted.
	 */
	world_submit_use(&w.context, need);
	world_run(&w);
	assert_int_equal(client_events(&w.client, VIDMM_EVENT_DISCARD), 1);
	assert_int_equal(client_residency(&w.device, kept), 1);
	assert_true(reclaim(&w, a));
	assert_int_equal(world_word(&w, a, 0), 0);
	assert_int_equal(world_word(&w, kept, 0), 0x21);
	world_stop(&w);
}

/* Packets submitted before the offer takes effect keep the content, as with the call (OFR-01). */
static void ofr_10_packets_queued_before_the_offer_takes_effect_keep_the_content(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	submit_offer(&w.context, a, 0x30, LOW);
	world_submit_use(&w.context, all);
	world_submit_write(&w.context, a, 4, 0x31);
	world_run(&w);
	assert_false(reclaim(&w, a));
	assert_int_equal(world_word(&w, a, 0), 0x30);
	assert_int_equal(world_word(&w, a, 4), 0x31);
	world_stop(&w);
}

static void ofr_10_a_reclaim_before_completion_cancels_the_offer(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), b = world_allocate(&w, 64 * KIB, 0);
	submit_offer(&w.context, a, 0x40, LOW);
	submit_offer(&w.context, b, 0x41, LOW);
	assert_false(reclaim(&w, a)); /* OFR-07 */
	/* Once more, by a later buffer. */
	assert_false(reclaim(&w, b));
	submit_offer(&w.context, b, 0x42, LOW);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 0), 0x40);
	expect_offered(&w, b);
	assert_false(reclaim(&w, b));
	assert_int_equal(world_word(&w, b, 0), 0x42);
	world_stop(&w);
}

static void ofr_10_an_allocation_may_be_destroyed_before_its_offer_takes_effect(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	submit_offer(&w.context, a, 0x50, LOW);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_run(&w);
	world_submit_use(&w.context, all);
	world_run(&w);
	assert_int_equal(client_events(&w.client, VIDMM_EVENT_DISCARD), 0);
	world_stop(&w);
}

static void ofr_10_ofr_03_ofr_08_bad_entries_offer_nothing(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), good = world_allocate(&w, 64 * KIB, 0);
	D3DDDICB_RENDER args;

	for (uint32_t priority = 5; priority < 8; priority++) {
		client_use(&w.context, good, false);
		w.context.c.pAllocationList[0].OfferPriority = LOW;
		args = use_and_offer(&w.context, a, 0, priority);
		assert_int_equal(world_render(&w.context, &args), E_INVALIDARG);
		world_expect_finding(&w, "OFR-03");
	}
	client_lock(&w.device, a, 0);
	args = use_and_offer(&w.context, a, 0, LOW);
	assert_int_equal(world_render(&w.context, &args), E_INVALIDARG);
	world_expect_finding(&w, "OFR-08");
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 0);
	submit_offer(&w.context, a, 0x60, 4);
	world_run(&w);
	expect_offered(&w, a);
	world_submit_write(&w.context, good, 0, 1); /* was not offered */
	world_stop(&w);
}

/* Offered content may be dropped at a power-down; Reclaim reports which it was. */
static void ofr_09_pnp_05_reclaim_after_power_down_reports_dropped_content(void **state)
{
	static const uint32_t sleeps[] = {VIDMM_SLEEP_STANDBY, VIDMM_SLEEP_HIBERNATE};
	struct world w;

	for (uint32_t i = 0; i < 2; i++) {
		world_start(&w, state, NULL);
		D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
		D3DKMT_HANDLE kept = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
		world_submit_write(&w.context, kept, 0, 0x22);
		submit_offer(&w.context, a, 0x11, LOW);
		world_run(&w);
		w.m->settings.complete_at_once = true;
		assert_int_equal(
			vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, sleeps[i]), 0);
		assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
		expect_offered(&w, a); /* as before */
		BOOL discarded = reclaim(&w, a);
		assert_int_equal(world_word(&w, a, 0), discarded ? 0 : 0x11);
		/* not offered, so it must not be dropped */
		assert_int_equal(world_word(&w, kept, 0), 0x22);
		world_submit_use(&w.context, a);
		world_stop(&w);
	}
}

/* The CPU locks it while it is busy and not yet offered; a locked allocation cannot be offered. */
static void ofr_10_ofr_08_an_allocation_locked_at_completion_is_not_offered(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_APERTURE);
	submit_offer(&w.context, a, 0x70, LOW);
	scripted_complete(w.m, 1, 1); /* mapped */
	assert_int_equal(try_lock(&w, a, IGNORE_SYNC | DONOT_WAIT), S_OK);
	world_run(&w);
	assert_int_equal(try_lock(&w, a, READ_ONLY), S_OK);
	world_expect_finding(&w, "OFR-08");
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_events(&w.client, VIDMM_EVENT_OFFER), 0);
	assert_int_equal(world_word(&w, a, 0), 0x70);
	world_stop(&w);
}

static void windows_7(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WIN7);
}

static void ofr_10_dma_19_offer_priority_is_reserved_before_1_2(void **state)
{
	struct world w;

	world_start(&w, state, windows_7);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	D3DDDICB_RENDER args = use_and_offer(&w.context, a, 0, LOW);
	assert_int_equal(world_render(&w.context, &args), E_INVALIDARG);
	world_expect_finding(&w, "DMA-19");
	world_submit_write(&w.context, a, 0, 1);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 0), 1);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(ofr_10_dma_24_the_offer_takes_effect_when_the_buffer_completes),
		ON_BOTH(ofr_10_offered_memory_is_discarded_and_reclaim_reports_it),
		ON_BOTH(ofr_10_packets_queued_before_the_offer_takes_effect_keep_the_content),
		ON_BOTH(ofr_10_a_reclaim_before_completion_cancels_the_offer),
		ON_BOTH(ofr_10_an_allocation_may_be_destroyed_before_its_offer_takes_effect),
		ON_BOTH(ofr_10_ofr_03_ofr_08_bad_entries_offer_nothing),
		ON_SIM(ofr_09_pnp_05_reclaim_after_power_down_reports_dropped_content),
		ON_BOTH(ofr_10_ofr_08_an_allocation_locked_at_completion_is_not_offered),
		ON_BOTH(ofr_10_dma_19_offer_priority_is_reserved_before_1_2),
	};

	return cmocka_run_group_tests_name("sched offer", tests, NULL, NULL);
}
