/* SPDX-License-Identifier: MIT */
/* Contexts that always have work share node 0 of softgpu: SCH-06. */
#include "sched_world.h"

#include <d3dkmthk.h>
#include <string.h>

#define RUNNERS_MAX 4u
#define NS_PER_US   1000ull
#define NS_PER_MS   (1000 * NS_PER_US)

struct runner {
	struct share *share;
	struct vidmm_process *process;
	uint32_t process_id;
	D3DKMT_HANDLE device, context;
	uint64_t packet_ns;
	uint32_t switches;        /* in favor of it */
	_Atomic uint64_t packets; /* packets that the miniport got */
	struct vidmm_thread *thread;
};

struct share {
	struct client client;
	struct runner runner[RUNNERS_MAX];
	uint32_t runners;
	uint32_t last; /* the context whose packet the miniport got last */
	_Atomic bool over;
};

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct share *s = context;

	(void)text;
	for (uint32_t i = 0; i < s->runners; i++) {
		struct runner *r = &s->runner[i];

		if (r->context != event->object || r->process_id != event->process ||
		    atomic_load(&s->over))
			continue;
		atomic_fetch_add(&r->packets, 1);
		r->switches += s->last != i;
		s->last = i;
	}
}

static void start(struct share *s, void **state, const struct vidmm_scheduling_options *scheduling)
{
	const struct client_options options = {
		.kind = *(uint32_t *)*state, .scheduling = scheduling, .tdr = &client_no_tdr};

	memset(s, 0, sizeof(*s));
	s->last = RUNNERS_MAX;
	client_start(&s->client, &options);
	assert_int_not_equal(
		vidmm_subscribe(s->client.host, 1ull << VIDMM_EVENT_QUEUE, on_event, s), 0);
}

/* In a separate process. */
static struct runner *add(struct share *s, uint64_t packet_ns, INT priority)
{
	struct runner *r = &s->runner[s->runners];
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	*r = (struct runner){.share = s, .packet_ns = packet_ns};
	assert_int_equal(vidmm_process_open(s->client.host, "runs", &r->process), 0);
	r->process_id = vidmm_process_id(r->process);
	vidmm_d3dkmt_attach(r->process);
	vidmm_d3dkmt_enter(r->process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = info.hAdapter};

	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	r->device = device.hDevice;
	D3DKMT_CREATECONTEXT context = {.hDevice = r->device};

	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	r->context = context.hContext;
	const D3DKMT_SETCONTEXTSCHEDULINGPRIORITY args = {r->context, priority};

	assert_int_equal(D3DKMTSetContextSchedulingPriority(&args), STATUS_SUCCESS);
	s->runners++;
	const struct softgpu_stall stall = {.command = {SOFTGPU_STALL, 0, sizeof(stall)},
					    .nanoseconds = packet_ns};

	memcpy(context.pCommandBuffer, &stall, sizeof(stall)); /* the same for every packet */
	return r;
}

static void run_one(void *argument)
{
	struct runner *r = argument;

	vidmm_d3dkmt_enter(r->process);
	while (!atomic_load(&r->share->over)) {
		D3DKMT_RENDER args = {.hContext = r->context,
				      .CommandLength = sizeof(struct softgpu_stall)};

		if (D3DKMTRender(&args) != STATUS_SUCCESS)
			break;
	}
	vidmm_d3dkmt_enter(NULL);
}

static void run(struct share *s, uint64_t nanoseconds)
{
	for (uint32_t i = 0; i < s->runners; i++)
		assert_int_equal(vidmm_thread_create(s->client.host, "runner", run_one,
						     &s->runner[i], &s->runner[i].thread),
				 0);
	vidmm_sleep_until_ns(s->client.host, vidmm_now_ns(s->client.host) + nanoseconds);
	atomic_store(&s->over, true);
	for (uint32_t i = 0; i < s->runners; i++)
		vidmm_thread_join(s->runner[i].thread);
}

static void stop(struct share *s)
{
	vidmm_d3dkmt_enter(NULL);
	for (uint32_t i = 0; i < s->runners; i++)
		vidmm_process_close(s->runner[i].process);
	client_stop(&s->client);
	assert_int_equal(s->client.findings, 0);
}

static uint64_t time_of(const struct runner *r)
{
	return atomic_load(&r->packets) * r->packet_ns;
}

/* Whatever the length of their packets, also longer than a slice. */
static void sch_06_four_contexts_share_within_ten_percent(void **state)
{
	static const uint64_t lengths[] = {500 * NS_PER_US, 2 * NS_PER_MS, 7 * NS_PER_MS,
					   31 * NS_PER_MS};
	const uint64_t all = 20000 * NS_PER_MS;
	struct share s;

	start(&s, state, NULL);
	for (uint32_t i = 0; i < 4; i++)
		add(&s, lengths[i], 0);
	run(&s, all);
	for (uint32_t i = 0; i < 4; i++)
		assert_in_range(time_of(&s.runner[i]), all / 4 * 90 / 100, all / 4 * 110 / 100);
	stop(&s);
}

static uint32_t switches_with(void **state, uint32_t slice_us)
{
	const struct vidmm_scheduling_options scheduling = {slice_us, 1000000};
	struct share s;
	uint32_t switches = 0;

	start(&s, state, &scheduling);
	for (uint32_t i = 0; i < 3; i++)
		add(&s, NS_PER_MS, 0);
	run(&s, 3000 * NS_PER_MS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_in_range(time_of(&s.runner[i]), 900 * NS_PER_MS, 1100 * NS_PER_MS);
		switches += s.runner[i].switches;
	}
	stop(&s);
	return switches;
}

/* In three seconds: every millisecond, every twenty, every hundred. */
static void sch_06_a_slice_has_the_configured_length(void **state)
{
	assert_in_range(switches_with(state, 1), 1500, 3100);
	assert_in_range(switches_with(state, 20000), 100, 300);
	assert_in_range(switches_with(state, 100000), 20, 65);
}

static void sch_06_priority_minus_six_makes_progress_beside_seven(void **state)
{
	struct share s;

	start(&s, state, NULL);
	const struct runner *low = add(&s, 2 * NS_PER_MS, -6), *high = add(&s, 2 * NS_PER_MS, 7);
	run(&s, 4000 * NS_PER_MS);
	/* One packet for each 100 ms of the other context. */
	assert_in_range(atomic_load(&low->packets), 35, 45);
	assert_true(atomic_load(&high->packets) > 1900);
	stop(&s);
}

/* On real threads the shares are not exact, but every context makes progress. */
static void sch_06_every_context_above_idle_makes_progress(void **state)
{
	const struct vidmm_scheduling_options scheduling = {1000, 5000};
	struct share s;

	start(&s, state, &scheduling);
	for (INT priority = -6; priority <= 7; priority += 6)
		add(&s, 100 * NS_PER_US, priority);
	run(&s, 500 * NS_PER_MS);
	for (uint32_t i = 0; i < s.runners; i++)
		assert_true(atomic_load(&s.runner[i].packets) > 3);
	stop(&s);
}

/* SCH-01: -7 is idle priority. */
static void sch_01_priority_minus_seven_runs_only_on_an_idle_node(void **state)
{
	struct share s;

	start(&s, state, NULL);
	const struct runner *idle = add(&s, NS_PER_MS, -7), *busy = add(&s, NS_PER_MS, -6);
	run(&s, 10000 * NS_PER_MS);
	/* The first packet, or one that found the node idle. */
	assert_true(atomic_load(&idle->packets) <= 4);
	assert_true(atomic_load(&busy->packets) > 9990);
	stop(&s);
}

/* A context that was alone or idle for long gets neither a smaller nor a larger share later. */
static void sch_06_time_alone_or_idle_changes_no_later_share(void **state)
{
	struct share s;

	start(&s, state, NULL);
	struct runner *first = add(&s, NS_PER_MS, 0), *second = add(&s, NS_PER_MS, 0);

	assert_int_equal(
		vidmm_thread_create(s.client.host, "first", run_one, first, &first->thread), 0);
	vidmm_sleep_until_ns(s.client.host, vidmm_now_ns(s.client.host) + 2000 * NS_PER_MS);
	uint64_t alone = atomic_load(&first->packets);

	assert_true(alone > 1900);
	assert_int_equal(
		vidmm_thread_create(s.client.host, "second", run_one, second, &second->thread), 0);
	vidmm_sleep_until_ns(s.client.host, vidmm_now_ns(s.client.host) + 1000 * NS_PER_MS);
	atomic_store(&s.over, true);
	vidmm_thread_join(first->thread);
	vidmm_thread_join(second->thread);
	assert_in_range(atomic_load(&first->packets) - alone, 450, 550);
	assert_in_range(atomic_load(&second->packets), 450, 550);
	stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(sch_06_four_contexts_share_within_ten_percent),
		ON_SIM(sch_06_a_slice_has_the_configured_length),
		ON_SIM(sch_06_priority_minus_six_makes_progress_beside_seven),
		ON_BOTH(sch_06_every_context_above_idle_makes_progress),
		ON_SIM(sch_01_priority_minus_seven_runs_only_on_an_idle_node),
		ON_SIM(sch_06_time_alone_or_idle_changes_no_later_share),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
