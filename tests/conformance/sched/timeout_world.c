/* SPDX-License-Identifier: MIT */
#include "timeout_world.h"

#include <pthread.h>
#include <string.h>

#define EVENTS_MAX 1024u
#define STEP_NS    (50 * NS_PER_MS) /* of virtual time */
#define POLL_NS    NS_PER_MS        /* of real time */

/* Events come from several threads at once. */
static pthread_mutex_t ears = PTHREAD_MUTEX_INITIALIZER;
static struct vidmm_event recorded[EVENTS_MAX];
static uint32_t recorded_count;

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context, (void)text;
	pthread_mutex_lock(&ears);
	if (recorded_count < EVENTS_MAX)
		recorded[recorded_count++] = *event;
	pthread_mutex_unlock(&ears);
}

uint32_t timeout_count(uint32_t what)
{
	uint32_t count = 0;

	pthread_mutex_lock(&ears);
	for (uint32_t i = 0; i < recorded_count; i++)
		count += recorded[i].reason == what;
	pthread_mutex_unlock(&ears);
	return count;
}

struct vidmm_event timeout_event(uint32_t what, uint32_t n)
{
	struct vidmm_event event = {0};

	pthread_mutex_lock(&ears);
	for (uint32_t i = 0; i < recorded_count; i++)
		if (recorded[i].reason == what && n-- == 0)
			event = recorded[i];
	pthread_mutex_unlock(&ears);
	assert_int_equal(event.type, VIDMM_EVENT_RECOVERY);
	return event;
}

struct vidmm_tdr_options timeout_defaults(uint32_t kind)
{
	struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;

	if (kind == VIDMM_HOST_LINUX)
		tdr.delay_ms = 1000;
	return tdr;
}

void timeout_start(struct timeout_world *t, void **state, world_setup *setup,
		   const struct vidmm_tdr_options *tdr)
{
	t->tdr = tdr ? *tdr : timeout_defaults(*(uint32_t *)*state);
	const struct client_options options = {.tdr = &t->tdr};

	recorded_count = 0;
	world_start_with(&t->w, state, setup, &options);
	assert_int_not_equal(
		vidmm_subscribe(t->w.client.host, 1ull << VIDMM_EVENT_RECOVERY, on_event, NULL), 0);
	t->w.m->settings.complete_at_once = true;
	world_open(&t->w);
	t->a = world_allocate(&t->w, 64 * KIB, 0);
	world_submit_use(&t->w.context, t->a);
	client_idle(&t->w.client);
}

void timeout_hang(struct timeout_world *t)
{
	client_idle(&t->w.client);
	t->w.m->settings.complete_at_once = false;
	scripted_forget(t->w.m);
}

void timeout_work(struct timeout_world *t)
{
	t->w.m->settings.complete_at_once = true;
	client_idle(&t->w.client);
}

void timeout_reopen(struct timeout_world *t)
{
	client_close(&t->w.device);
	t->w.m->settings.complete_at_once = true;
	world_open(&t->w);
	t->a = world_allocate(&t->w, 64 * KIB, 0);
	world_submit_use(&t->w.context, t->a);
	client_idle(&t->w.client);
}

void timeout_stop(struct timeout_world *t)
{
	client_idle(&t->w.client);
	t->w.m->settings.complete_at_once = true;
	client_close(&t->w.device);
	world_stop_adapter(&t->w);
}

void timeout_pass(struct timeout_world *t, uint64_t nanoseconds)
{
	struct vidmm_host *host = t->w.client.host;

	assert_int_equal(t->w.kind, VIDMM_HOST_SIM);
	vidmm_sleep_until_ns(host, vidmm_now_ns(host) + nanoseconds);
	vidmm_settle(host);
}

void timeout_await(struct timeout_world *t, uint32_t what, uint32_t count)
{
	struct vidmm_host *host = t->w.client.host;

	while (timeout_count(what) < count) {
		if (t->w.kind == VIDMM_HOST_SIM)
			timeout_pass(t, STEP_NS);
		else /* settling would take a processor until the timeout */
			vidmm_sleep_until_ns(host, vidmm_now_ns(host) + POLL_NS);
	}
}

void timeout_await_preemption(struct timeout_world *t)
{
	timeout_await(t, VIDMM_RECOVERY_PREEMPT, 1);
	world_await(&t->w, VIDMM_DDI_PREEMPT_COMMAND, 1);
}

bool timeout_is_lost(struct client_device *device, D3DKMT_HANDLE allocation)
{
	HRESULT result = client_try_lock(device, &allocation, 0x4, NULL);

	if (result == S_OK)
		assert_int_equal(client_unlock(device, allocation), S_OK);
	return result == D3DDDIERR_DEVICEREMOVED;
}
