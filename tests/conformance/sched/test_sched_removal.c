/* SPDX-License-Identifier: MIT */
/*
 * Surprise removal (PNP-08): each type and each answer, also while packets are queued, DDIs run and
 * threads wait.
 */
#include "timeout_world.h"

#include <stdio.h>
#include <string.h>

static void can_be_removed(struct scripted_miniport *m)
{
	m->settings.caps.SupportSurpriseRemovalInHibernation = 1;
}

static void both_capabilities(struct scripted_miniport *m)
{
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	m->settings.caps.SupportSurpriseRemovalInHibernation = 1;
	m->settings.caps.SupportSurpriseRemoval = 1;
	m->settings.complete_at_once = true;
}

static void no_entry(struct scripted_miniport *m)
{
	can_be_removed(m);
	m->settings.table.DxgkDdiNotifySurpriseRemoval = NULL;
}

static vidmm_status remove_adapter(struct world *w)
{
	return vidmm_adapter_remove(w->client.adapter, VIDMM_REMOVAL_PNP);
}

static uint32_t notified(const struct world *w)
{
	return scripted_count(w->m, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL);
}

static bool is_software(enum vidmm_ddi ddi)
{
	switch (ddi) {
	case VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL:
	case VIDMM_DDI_CLOSE_ALLOCATION:
	case VIDMM_DDI_DESTROY_ALLOCATION:
	case VIDMM_DDI_DESTROY_CONTEXT:
	case VIDMM_DDI_DESTROY_DEVICE:
	case VIDMM_DDI_STOP_DEVICE:
	case VIDMM_DDI_REMOVE_DEVICE:
	case VIDMM_DDI_UNLOAD:
		return true;
	default:
		return false;
	}
}

/*
 * Asserts that no DDI that uses hardware was called since the notification. The last calls come
 * with world_stop; see the hook.
 */
static void expect_software_only(const struct world *w)
{
	const struct scripted_call *call;
	bool since = false;

	for (uint32_t i = 0; (call = scripted_at(w->m, i)) != NULL; i++) {
		since |= call->ddi == VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL;
		if (since && !is_software(call->ddi))
			fail_msg("call %u of: %s", i, scripted_order(w->m));
	}
	assert_true(since);
}

/* Every call of a client, and whether it still succeeds. */
static void expect_removed(struct world *w, D3DKMT_HANDLE a)
{
	void *data;

	world_use(&w->context, a);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_try_lock(&w->device, &a, 0, &data), D3DDDIERR_DEVICEREMOVED);
	D3DDDICB_CREATECONTEXT another = {0};
	assert_int_equal(w->device.cb->pfnCreateContextCb(w->device.handle, &another),
			 D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
	client_context_end(&w->context);
}

struct waiter {
	struct world *w;
	D3DKMT_HANDLE a;
	HRESULT result;
	struct vidmm_thread *thread;
};

static void wait_for_lock(void *argument)
{
	struct waiter *v = argument;
	void *data;

	v->result = client_try_lock(&v->w->device, &v->a, 0, &data);
}

static void start_waiter(struct waiter *v)
{
	assert_int_equal(vidmm_thread_create(v->w->client.host, "waits for the GPU", wait_for_lock,
					     v, &v->thread),
			 0);
	vidmm_settle(v->w->client.host);
}

/* ---- in full power ---- */

static void pnp_08_removed_while_packets_are_queued(void **state)
{
	struct world w;

	world_start(&w, state, can_be_removed);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY),
		      b = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < 6; i++)
		world_submit_write(&w.context, i & 1 ? a : b, 0, i);
	struct waiter v = {.w = &w, .a = a};
	start_waiter(&v);
	const uint32_t before = scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND);
	assert_int_equal(remove_adapter(&w), 0);
	vidmm_thread_join(v.thread);
	assert_int_equal(v.result, D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(notified(&w), 1);
	const struct scripted_call *call = scripted_last(w.m, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL);
	assert_int_equal(call->in.removal, DxgkRemovalPnPNotify);
	assert_int_equal(call->irql, PASSIVE_LEVEL);
	expect_removed(&w, a);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND), before);
	/* Late interrupts are ignored. */
	scripted_complete_all(w.m);
	client_close(&w.device);
	expect_software_only(&w);
	assert_int_equal(remove_adapter(&w), STATUS_INVALID_DEVICE_STATE);
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		STATUS_DEVICE_REMOVED);
	assert_int_equal(notified(&w), 1);
	world_stop_adapter(&w);
}

static void pnp_08_removed_while_idle(void **state)
{
	struct world w;

	world_start(&w, state, can_be_removed);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	world_submit_use(&w.context, a);
	world_run(&w);
	const char *bytes = client_lock(&w.device, a, 0);
	assert_int_equal(remove_adapter(&w), 0);
	assert_int_equal(bytes[0], bytes[1]); /* pointers stay_inside (LOCK-33) */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_removed(&w, a);
	client_close(&w.device);
	expect_software_only(&w);
	world_stop_adapter(&w);
}

static void pnp_08_a_failed_notification_is_fatal(void **state)
{
	struct world w;

	world_start(&w, state, can_be_removed);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < 4; i++)
		world_submit_use(&w.context, a);
	scripted_fail(w.m, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(remove_adapter(&w), STATUS_DEVICE_REMOVED);
	world_expect_finding(&w, "PNP-08");
	const uint64_t expected[4] = {0x10E, 0x1000u + VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL,
				      (uint32_t)STATUS_UNSUCCESSFUL, DxgkRemovalPnPNotify};
	for (uint32_t i = 0; i < 4; i++)
		assert_true(w.fatal[i] == expected[i]);
	const uint32_t calls = w.m->call_count;
	expect_removed(&w, a);
	assert_int_equal(w.m->call_count, calls); /* not even close and destroy DDIs */
	w.expected_fatals = 1;
	world_stop(&w);
}

/* The miniport is not notified, and only the DDIs of its stop are called; that is no violation. */
static void forsaken(void **state, world_setup *setup)
{
	struct world w;

	world_start(&w, state, setup);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < 4; i++)
		world_submit_use(&w.context, a);
	struct waiter v = {.w = &w, .a = a};
	start_waiter(&v);
	const uint32_t calls = w.m->call_count;
	assert_int_equal(remove_adapter(&w), STATUS_NOT_SUPPORTED);
	vidmm_thread_join(v.thread);
	assert_int_equal(v.result, D3DDDIERR_DEVICEREMOVED);
	expect_removed(&w, a);
	client_close(&w.device);
	assert_int_equal(w.m->call_count, calls);
	w.m->live_devices = w.m->live_contexts = w.m->live_allocations = w.m->live_opens = 0;
	world_stop_adapter(&w);
}

static void pnp_08_without_the_capability_the_miniport_is_not_notified(void **state)
{
	forsaken(state, NULL);
}

static void pnp_08_without_the_entry_the_miniport_is_not_notified(void **state)
{
	forsaken(state, no_entry);
}

/* ---- in low power ---- */

static void submit_later(void *argument)
{
	struct waiter *v = argument;

	world_use(&v->w->context, v->a);
	D3DDDICB_RENDER args = world_render_args(&v->w->context);
	v->result = v->w->device.cb->pfnRenderCb(v->w->device.handle, &args);
}

static void start_sleeping(struct world *w, struct waiter *v, void **state, world_setup *setup)
{
	world_start(w, state, setup);
	*v = (struct waiter){.w = w};
	w->m->settings.complete_at_once = true;
	if (setup != both_capabilities) {
		v->a = world_allocate(w, 64 * KIB, WORLD_MEMORY);
		world_submit_use(&w->context, v->a);
	}
	client_idle(&w->client);
	assert_int_equal(
		vidmm_adapter_set_power(w->client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_HIBERNATE),
		0);
	assert_int_equal(vidmm_thread_create(w->client.host, "waits for the power", submit_later, v,
					     &v->thread),
			 0);
	vidmm_settle(w->client.host);
}

static void expect_released(struct world *w, struct waiter *v)
{
	vidmm_thread_join(v->thread);
	assert_int_equal(v->result, D3DDDIERR_DEVICEREMOVED);
	w->context.command_bytes = w->context.allocations = 0;
	if (v->a)
		expect_removed(w, v->a);
}

static void pnp_08_removed_in_low_power(void **state)
{
	struct waiter v;
	struct world w;

	start_sleeping(&w, &v, state, can_be_removed);
	assert_int_equal(remove_adapter(&w), STATUS_INVALID_DEVICE_STATE);
	const uint32_t power = scripted_count(w.m, VIDMM_DDI_SET_POWER_STATE);
	assert_int_equal(vidmm_adapter_remove(w.client.adapter, VIDMM_REMOVAL_HIBERNATION), 0);
	assert_int_equal(scripted_last(w.m, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL)->in.removal,
			 DxgkRemovalHibernation);
	expect_released(&w, &v);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SET_POWER_STATE), power);
	client_close(&w.device);
	expect_software_only(&w);
	world_stop_adapter(&w);
}

static void pnp_08_in_low_power_a_failed_notification_is_fatal(void **state)
{
	struct waiter v;
	struct world w;

	start_sleeping(&w, &v, state, can_be_removed);
	scripted_fail(w.m, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(vidmm_adapter_remove(w.client.adapter, VIDMM_REMOVAL_HIBERNATION),
			 STATUS_DEVICE_REMOVED);
	world_expect_finding(&w, "PNP-08");
	assert_int_equal(w.fatal[0], 0x10E);
	assert_int_equal(w.fatal[3], DxgkRemovalHibernation);
	expect_released(&w, &v);
	w.expected_fatals = 1;
	world_stop(&w);
}

/* SupportSurpriseRemoval: the stop continues whatever it answers. */
static void pnp_08_in_low_power_a_failure_is_ignored_with_support_surprise_removal(void **state)
{
	struct waiter v;
	struct world w;

	start_sleeping(&w, &v, state, both_capabilities);
	scripted_fail(w.m, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(vidmm_adapter_remove(w.client.adapter, VIDMM_REMOVAL_HIBERNATION), 0);
	world_expect_finding(&w, "PNP-08");
	assert_int_equal(w.fatals, 0);
	expect_released(&w, &v);
	client_close(&w.device);
	expect_software_only(&w);
	world_stop_adapter(&w);
}

static void pnp_08_invalid_removals_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, can_be_removed);
	assert_int_equal(vidmm_adapter_remove(NULL, VIDMM_REMOVAL_PNP), STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_adapter_remove(w.client.adapter, 2), STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_adapter_remove(w.client.adapter, VIDMM_REMOVAL_HIBERNATION),
			 STATUS_INVALID_DEVICE_STATE);
	assert_int_equal(notified(&w), 0);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	world_stop(&w);
}

/* ---- while others are inside the miniport ---- */

struct inside {
	struct world *w;
	enum vidmm_ddi ddi;
	bool notification_settles; /* it returns once all other threads wait */
	_Atomic bool in, go;
};

static void stay_inside(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct inside *i = context;

	(void)m;
	if (i->notification_settles && call->ddi == VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL)
		vidmm_settle(i->w->client.host);
	if (call->ddi != i->ddi || atomic_exchange(&i->in, true))
		return;
	while (!atomic_load(&i->go))
		vidmm_settle(i->w->client.host);
}

static void pnp_08_the_notification_may_overlap_a_running_ddi(void **state)
{
	struct inside i = {.ddi = VIDMM_DDI_RENDER};
	struct waiter v;
	struct world w;

	world_start(&w, state, can_be_removed);
	i.w = &w;
	v = (struct waiter){.w = &w, .a = world_allocate(&w, 64 * KIB, 0)};
	w.m->hook = stay_inside;
	w.m->hook_context = &i;
	assert_int_equal(vidmm_thread_create(w.client.host, "renders", submit_later, &v, &v.thread),
			 0);
	while (!atomic_load(&i.in))
		vidmm_settle(w.client.host);
	assert_int_equal(remove_adapter(&w), 0);
	assert_int_equal(notified(&w), 1);
	atomic_store(&i.go, true);
	vidmm_thread_join(v.thread);
	w.m->hook = NULL;
	/* The only packets are the paging of its start. */
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_SUBMIT_COMMAND),
			 scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER));
	w.context.command_bytes = w.context.allocations = 0;
	expect_removed(&w, v.a);
	client_close(&w.device);
	world_stop_adapter(&w);
}

struct power_change {
	struct world *w;
	vidmm_status status;
};

static void power_down(void *argument)
{
	struct power_change *p = argument;

	p->status = vidmm_adapter_set_power(p->w->client.adapter, VIDMM_POWER_D3,
					    VIDMM_SLEEP_HIBERNATE);
}

static void keep_text(void *context, const struct vidmm_event *event, const char *text)
{
	(void)event;
	snprintf(context, 200, "%s", text);
}

/* A removal of the hibernation type is noticed outside D0, not on the way there. */
static void pnp_08_a_hibernation_removal_is_refused_during_a_power_change(void **state)
{
	struct inside i = {.ddi = VIDMM_DDI_SET_POWER_STATE};
	struct vidmm_thread *thread;
	char reason[200] = "";
	struct world w;

	world_start(&w, state, can_be_removed);
	struct power_change p = {.w = &w};
	i.w = &w;
	w.m->settings.complete_at_once = true;
	w.m->hook = stay_inside;
	w.m->hook_context = &i;
	assert_int_equal(vidmm_thread_create(w.client.host, "power", power_down, &p, &thread), 0);
	while (!atomic_load(&i.in))
		vidmm_settle(w.client.host);
	uint32_t subscription =
		vidmm_subscribe(w.client.host, 1ull << VIDMM_EVENT_REASON, keep_text, reason);
	assert_int_not_equal(subscription, 0);
	assert_int_equal(vidmm_adapter_remove(w.client.adapter, VIDMM_REMOVAL_HIBERNATION),
			 STATUS_INVALID_DEVICE_STATE);
	vidmm_unsubscribe(w.client.host, subscription);
	assert_non_null(strstr(reason, "is changing its power state"));
	assert_int_equal(notified(&w), 0);
	atomic_store(&i.go, true);
	vidmm_thread_join(thread);
	assert_int_equal(p.status, 0);
	w.m->hook = NULL;
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
	world_stop(&w);
}

/*
 * The reset ends with the device: no RestartFromTimeout, and no wait for threads inside the
 * miniport.
 */
static void remove_in_a_reset(void **state, bool notification_settles)
{
	struct inside i = {.ddi = VIDMM_DDI_COLLECT_DBG_INFO,
			   .notification_settles = notification_settles};
	struct timeout_world t;

	timeout_start(&t, state, can_be_removed, NULL);
	timeout_hang(&t);
	i.w = &t.w;
	t.w.m->hook = stay_inside;
	t.w.m->hook_context = &i;
	world_submit_use(&t.w.context, t.a);
	while (!atomic_load(&i.in)) {
		if (t.w.kind == VIDMM_HOST_SIM)
			vidmm_sleep_until_ns(t.w.client.host,
					     vidmm_now_ns(t.w.client.host) + 100 * NS_PER_MS);
		vidmm_settle(t.w.client.host);
	}
	struct waiter v = {.w = &t.w, .a = t.a};
	start_waiter(&v);
	atomic_store(&i.go, true);
	assert_int_equal(remove_adapter(&t.w), 0);
	vidmm_thread_join(v.thread);
	assert_int_equal(v.result, D3DDDIERR_DEVICEREMOVED);
	t.w.m->hook = NULL;
	assert_int_equal(t.w.fatals, 0);
	assert_true(timeout_is_lost(&t.w.device, t.a));
	client_close(&t.w.device);
	world_stop_adapter(&t.w);
}

static void pnp_08_the_notification_may_overlap_a_reset(void **state)
{
	remove_in_a_reset(state, false);
}

/* The packet that hung is with the GPU until the notification has ended. */
static void pnp_08_no_reset_begins_during_the_notification(void **state)
{
	remove_in_a_reset(state, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pnp_08_removed_while_packets_are_queued),
		ON_BOTH(pnp_08_removed_while_idle),
		ON_BOTH(pnp_08_a_failed_notification_is_fatal),
		ON_BOTH(pnp_08_without_the_capability_the_miniport_is_not_notified),
		ON_BOTH(pnp_08_without_the_entry_the_miniport_is_not_notified),
		ON_BOTH(pnp_08_removed_in_low_power),
		ON_BOTH(pnp_08_in_low_power_a_failed_notification_is_fatal),
		ON_BOTH(pnp_08_in_low_power_a_failure_is_ignored_with_support_surprise_removal),
		ON_BOTH(pnp_08_invalid_removals_are_refused),
		ON_BOTH(pnp_08_the_notification_may_overlap_a_running_ddi),
		ON_BOTH(pnp_08_the_notification_may_overlap_a_reset),
		ON_BOTH(pnp_08_no_reset_begins_during_the_notification),
		ON_BOTH(pnp_08_a_hibernation_removal_is_refused_during_a_power_change),
	};

	return cmocka_run_group_tests_name("surprise removal", tests, NULL, NULL);
}
