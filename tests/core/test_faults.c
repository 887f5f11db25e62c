/* SPDX-License-Identifier: MIT */
/* Faults that softgpu makes on command, and that all clients recover. */
#include <support/client.h>

static uint32_t missed, resets;

static void on_recovery(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context, (void)text;
	missed += event->reason == VIDMM_RECOVERY_MISSED;
	resets += event->reason == VIDMM_RECOVERY_RESET ||
		  event->reason == VIDMM_RECOVERY_ENGINE_RESET;
}

struct world {
	struct client client;
	struct client_device device;
	struct client_context context;
	D3DKMT_HANDLE a;
};

static void start(struct world *w, uint64_t preemption)
{
	const struct vidmm_registry_value aware = {"PreemptionAware", preemption};
	const struct client_options options = {
		.kind = VIDMM_HOST_SIM, .registry = &aware, .registry_count = 1};

	client_start(&w->client, &options);
	assert_int_not_equal(
		vidmm_subscribe(w->client.host, 1ull << VIDMM_EVENT_RECOVERY, on_recovery, NULL),
		0);
	client_open(&w->client, &w->device);
	client_context(&w->device, 0, &w->context);
	w->a = client_allocate(&w->device, 65536, 0);
	missed = resets = 0;
}

static void stop(struct world *w)
{
	client_context_end(&w->context);
	client_close(&w->device);
	client_stop(&w->client);
}

/* The words change although no completion was reported in that interval. */
static void fill_with(struct world *w, uint32_t opcode, uint32_t pattern)
{
	const struct softgpu_command fault = {(uint16_t)opcode, 0, sizeof(fault)};

	client_fill(&w->context, w->a, 65536, pattern);
	client_command(&w->context, &fault, sizeof(fault));
	client_submit(&w->context);
}

static void sub_14_a_lost_interrupt_is_found_by_the_query(void **state)
{
	struct world w;

	(void)state;
	for (uint64_t aware = 0; aware < 2; aware++) {
		start(&w, aware);
		for (uint32_t i = 0; i < 5; i++) {
			fill_with(&w, SOFTGPU_LOSE_INTERRUPT, 0x1111 * (i + 1));
			client_idle(&w.client);
		}
		assert_int_equal(missed, 5);
		assert_int_equal(resets, 0);
		/* A later interrupt reports both. */
		fill_with(&w, SOFTGPU_LOSE_INTERRUPT, 1);
		fill_with(&w, SOFTGPU_NOP, 2);
		client_idle(&w.client);
		assert_int_equal(missed, 5);
		assert_int_equal(w.client.findings, 0);
		stop(&w);
	}
}

static void sub_12_a_repeated_interrupt_is_ignored(void **state)
{
	struct world w;

	(void)state;
	start(&w, 0);
	for (uint32_t i = 0; i < 5; i++)
		fill_with(&w, SOFTGPU_REPEAT_INTERRUPT, i);
	client_idle(&w.client);
	assert_int_equal(missed + resets, 0);
	assert_int_equal(w.client.findings, 0);
	stop(&w);
}

static HRESULT answer(struct world *w, NTSTATUS status)
{
	const struct softgpu_answer wanted = {{SOFTGPU_ANSWER, 0, sizeof(wanted)},
					      .status = status};

	client_reference(&w->context, w->a, false);
	client_command(&w->context, &wanted, sizeof(wanted));
	return client_try_submit(&w->context);
}

static void dma_31_commanded_render_statuses_reach_the_client(void **state)
{
	struct world w;

	(void)state;
	start(&w, 0);
	assert_int_equal(answer(&w, STATUS_NO_MEMORY), E_OUTOFMEMORY);
	assert_int_equal(answer(&w, STATUS_INVALID_USER_BUFFER), D3DDDIERR_INVALIDUSERBUFFER);
	assert_int_equal(answer(&w, STATUS_PRIVILEGED_INSTRUCTION),
			 D3DDDIERR_PRIVILEGEDINSTRUCTION);
	assert_int_equal(answer(&w, STATUS_SUCCESS), E_INVALIDARG); /* no status */
	assert_int_equal(w.client.findings, 0);
	/* an undocumented status */
	assert_int_equal(answer(&w, STATUS_UNSUCCESSFUL), E_INVALIDARG);
	assert_true(client_found(&w.client, "DMA-31"));
	assert_int_equal(answer(&w, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE),
			 D3DDDIERR_DEVICEREMOVED);
	stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sub_14_a_lost_interrupt_is_found_by_the_query),
		cmocka_unit_test(sub_12_a_repeated_interrupt_is_ignored),
		cmocka_unit_test(dma_31_commanded_render_statuses_reach_the_client),
	};

	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
