/* SPDX-License-Identifier: MIT */
/*
 * wait_stream ring|chain FILE: writes the events of three contexts of two adapters that wait for
 * each other's fences, a line for each event, as input of `vidmm explain`. Each would signal,
 * behind its wait, the fence that the next one waits for. In a chain the last signals no fence of
 * the others, and the first waits for the CPU. A fourth context, which continues, shares the node
 * and the GPU.
 */
#include <queue_world.h>

#include <stdio.h>
#include <string.h>

#define ALL_EVENTS ((1ull << VIDMM_EVENT_TYPE_COUNT) - 1)

static const char *stream_path;
static bool is_ring;

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	char line[1024];

	assert_true(vidmm_event_format(event, text, line, sizeof(line)) > 0);
	fprintf(context, "%s\n", line);
}

/* Process 1 has its device on the second adapter. */
static struct vidmm_adapter *start_second(struct priority_world *p, struct scripted_miniport *m)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};
	struct vidmm_adapter *adapter = NULL;

	queue_3_0(m);
	m->settings.complete_at_once = true;
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .initialization_data = scripted_table(m),
						      .bar_sizes = bars,
						      .bar_count = 1,
						      .tdr = &client_no_tdr};
	assert_int_equal(vidmm_adapter_start(p->w.client.host, &options, &adapter), 0);
	vidmm_d3dkmt_enter(p->process[1]);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 2);
	D3DKMT_CREATEDEVICE create = {.hAdapter = info[1].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&create), STATUS_SUCCESS);
	p->device[1] = create.hDevice;
	return adapter;
}

static void hold(struct lane *lane, D3DKMT_HANDLE waited, D3DKMT_HANDLE signaled)
{
	assert_int_equal(lane_wait(lane, waited, 1), STATUS_SUCCESS);
	lane_render(lane);
	assert_int_equal(lane_signal(lane, signaled, 1), STATUS_SUCCESS);
}

static void record(void **state)
{
	struct scripted_miniport *m = scripted_create();
	struct priority_world p;
	FILE *out = fopen(stream_path, "w");

	assert_non_null(out);
	queue_start(&p, state);
	struct vidmm_adapter *adapter = start_second(&p, m);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b'),
		    *c = queue_lane(&p, 0, 'c'), *d = queue_lane(&p, 0, 'd');
	/* Shared and CrossAdapter. */
	D3DKMT_HANDLE f = queue_fence(a, 7, 0).handle, g = queue_fence(a, 7, 0).handle,
		      h = queue_fence(a, 7, 0).handle, i = queue_fence(a, 0, 0).handle;
	D3DKMT_HANDLE g_of_b = queue_fence_for(a, g, b), h_of_b = queue_fence_for(a, h, b);
	uint32_t id = vidmm_subscribe(p.w.client.host, ALL_EVENTS, on_event, out);

	p.w.m->settings.complete_at_once = true;
	hold(a, f, g);
	hold(b, g_of_b, h_of_b);
	lane_render(d);
	hold(c, h, is_ring ? f : i);
	lane_render(d);
	queue_assert_order(&p, "dd");
	vidmm_unsubscribe(p.w.client.host, id);
	assert_int_equal(fclose(out), 0);
	vidmm_adapter_stop(adapter);
	priority_stop(&p);
	scripted_destroy(m);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {ON_SIM(record)};

	if (argc != 3 || (strcmp(argv[1], "ring") != 0 && strcmp(argv[1], "chain") != 0)) {
		fprintf(stderr, "usage: wait_stream ring|chain FILE\n");
		return 2;
	}
	is_ring = strcmp(argv[1], "ring") == 0;
	stream_path = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
