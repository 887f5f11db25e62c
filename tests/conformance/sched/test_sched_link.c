/* SPDX-License-Identifier: MIT */
/*
 * A link of two adapters as its clients see it: one adapter, whose contexts run on either physical
 * adapter (SCH-08). Content is on the lead, except in test_sched_link_paging.c. Features that are
 * not supported on the second adapter are refused with a reason (QAI-07).
 */
#include "timeout_world.h"

#include <d3dkmthk.h>

enum { MIRRORED = 0x1000, INSTANCED = 0x2000, PHYSICAL_ADAPTERS = 2 };

static struct scripted_miniport *second;

static void linked(struct scripted_miniport *m)
{
	struct scripted_miniport *both[PHYSICAL_ADAPTERS] = {m, second = scripted_create()};

	scripted_link(both, PHYSICAL_ADAPTERS, 0);
	m->settings.complete_at_once = true;
}

static void at_once(struct scripted_miniport *m)
{
	m->settings.complete_at_once = true;
}

static void start(struct world *w, void **state)
{
	world_start(w, state, linked);
}

/* The second adapter was started and stopped; in between only its power state changed. */
static void stop(struct world *w, const char *seen)
{
	world_stop(w);
	assert_string_equal(scripted_order(second), seen);
	scripted_destroy(second);
}

#define COME "add_device link_device start_device "
#define GO   "stop_device remove_device"

static HRESULT try_allocate(struct world *w, uint32_t flags, D3DKMT_HANDLE *a)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB,
					   .flags = WORLD_CPU_VISIBLE | flags,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	HRESULT result = w->device.cb->pfnAllocateCb(w->device.handle, &args);

	*a = info.hAllocation;
	return result;
}

static void lnk_04_only_the_lead_adapter_gets_link_wide_ddis(void **state)
{
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	world_submit_write(&w.context, a, 16, 0x51);
	world_run(&w);
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_int_equal(world_word(&w, a, 16), 0x51);
	stop(&w, COME "set_power_state set_power_state " GO);
}

static void sch_08_a_context_runs_on_the_adapter_of_its_engine_affinity(void **state)
{
	static const struct {
		uint32_t node, affinity, seen;
		const char *rule;
	} cases[] = {{0, 0, 1, NULL},     {1, 1, 1, NULL},
		     {0, 2, 2, NULL},     {1, 2, 2, NULL},
		     {2, 2, 0, "SCH-07"}, {0, 3, 0, "SCH-08"},
		     {0, 4, 0, "SCH-08"}, {0, 0x80000000u, 0, "SCH-08"}};
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		D3DDDICB_CREATECONTEXT c = {.NodeOrdinal = cases[i].node,
					    .EngineAffinity = cases[i].affinity};
		uint32_t before = scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT);

		assert_int_equal(w.device.cb->pfnCreateContextCb(w.device.handle, &c),
				 cases[i].rule ? E_INVALIDARG : S_OK);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT) - before,
				 !cases[i].rule);
		if (cases[i].rule) {
			world_expect_finding(&w, cases[i].rule);
			continue;
		}
		const DXGKARG_CREATECONTEXT *seen =
			&scripted_last(w.m, VIDMM_DDI_CREATE_CONTEXT)->in.create_context;

		assert_int_equal(seen->NodeOrdinal, cases[i].node);
		assert_int_equal(seen->EngineAffinity, cases[i].seen);
	}
	stop(&w, COME GO);
}

static void context_on(struct client_device *device, uint32_t engine,
		       struct client_context *context)
{
	*context = (struct client_context){.device = device, .c = {.EngineAffinity = 1u << engine}};
	assert_int_equal(device->cb->pfnCreateContextCb(device->handle, &context->c), S_OK);
}

/* Numbers as the scripted miniport counts them: two nodes per adapter. */
enum { LEADS = 0, SECONDS = 2 };

static void sch_08_sub_02_adapters_of_a_link_complete_independently(void **state)
{
	struct client_context other;
	struct world w;

	start(&w, state);
	context_on(&w.device, 1, &other);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	D3DKMT_HANDLE b = world_allocate(&w, 64 * KIB, WORLD_MEMORY);
	world_submit_write(&w.context, a, 0, 1);
	world_submit_write(&other, b, 0, 2);
	world_run(&w);
	vidmm_settle(w.client.host);
	scripted_forget(w.m);
	w.m->settings.complete_at_once = false;
	world_submit_write(&w.context, a, 16, 0x51);
	world_submit_write(&other, b, 16, 0x52);
	vidmm_settle(w.client.host);
	assert_int_equal(scripted_outstanding(w.m, LEADS), 1);
	assert_int_equal(scripted_outstanding(w.m, SECONDS), 1);
	for (uint32_t i = 0; i < 2; i++) {
		const DXGKARG_SUBMITCOMMAND *s =
			&scripted_nth(w.m, VIDMM_DDI_SUBMIT_COMMAND, i)->in.submit;
		const DXGKARG_PATCH *p = &scripted_nth(w.m, VIDMM_DDI_PATCH, i)->in.patch;

		assert_int_equal(s->NodeOrdinal, 0);
		assert_int_equal(s->EngineOrdinal, i);
		assert_int_equal(p->EngineOrdinal, i);
		assert_int_equal(p->SubmissionFenceId, s->SubmissionFenceId);
	}
	/* The second adapter completes first; the lead's packet continues. */
	assert_int_equal(scripted_complete(w.m, SECONDS, 1), 1);
	vidmm_settle(w.client.host);
	assert_int_equal(world_word(&w, b, 16), 0x52);
	assert_int_equal(scripted_outstanding(w.m, LEADS), 1);
	assert_int_equal(scripted_complete(w.m, LEADS, 1), 1);
	assert_int_equal(world_word(&w, a, 16), 0x51);
	stop(&w, COME GO);
}

static void linked_overdue(struct scripted_miniport *m)
{
	linked(m);
	m->settings.caps.SchedulingCaps.PreemptionAware = 1;
	m->settings.caps.SupportPerEngineTDR = 1;
	m->settings.table.DxgkDdiResetEngine = scripted_reset_engine;
	m->settings.table.DxgkDdiQueryEngineStatus = scripted_query_engine_status;
	m->settings.table.DxgkDdiQueryDependentEngineGroup = scripted_query_engine_group;
	m->settings.withhold_preemption = true;
}

static void tdr_14_an_engine_reset_affects_one_adapter_of_a_link(void **state)
{
	struct timeout_world t;
	struct client_device guilty;
	struct client_context other;

	timeout_start(&t, state, linked_overdue, NULL);
	client_open(&t.w.client, &guilty);
	context_on(&guilty, 1, &other);
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE};
	D3DKMT_HANDLE b = world_allocate_as(&guilty, &spec);
	world_submit_use(&other, b);
	timeout_hang(&t);
	world_submit_use(&other, b);
	timeout_await(&t, VIDMM_RECOVERY_ENGINE_RESET, 1);
	const DXGKARG_PREEMPTCOMMAND *preempt =
		&scripted_nth(t.w.m, VIDMM_DDI_PREEMPT_COMMAND, 0)->in.preempt;
	assert_int_equal(preempt->NodeOrdinal, 0);
	assert_int_equal(preempt->EngineOrdinal, 1);
	const DXGKARG_QUERYCURRENTFENCE *fence =
		&scripted_nth(t.w.m, VIDMM_DDI_QUERY_CURRENT_FENCE, 0)->in.fence;
	assert_int_equal(fence->NodeOrdinal, 0);
	assert_int_equal(fence->EngineOrdinal, 1);
	const DXGKARG_RESETENGINE *reset =
		&scripted_nth(t.w.m, VIDMM_DDI_RESET_ENGINE, 0)->in.reset_engine;
	assert_int_equal(reset->NodeOrdinal, 0);
	assert_int_equal(reset->EngineOrdinal, 1);
	assert_int_equal(scripted_count(t.w.m, VIDMM_DDI_RESET_FROM_TIMEOUT), 0);
	assert_true(timeout_is_lost(&guilty, b));
	assert_false(timeout_is_lost(&t.w.device, t.a));
	t.w.m->settings.complete_at_once = true;
	client_close(&guilty);
	timeout_stop(&t);
	scripted_destroy(second);
}

static void pre_02_a_preemption_answer_counts_for_its_own_adapter(void **state)
{
	struct timeout_world t;
	struct client_context other;

	timeout_start(&t, state, linked_overdue, NULL);
	context_on(&t.w.device, 1, &other);
	timeout_hang(&t);
	world_submit_use(&other, t.a);
	timeout_await_preemption(&t);
	const struct scripted_call *call = scripted_nth(t.w.m, VIDMM_DDI_PREEMPT_COMMAND, 0);
	const struct scripted_call *packet = scripted_nth(t.w.m, VIDMM_DDI_SUBMIT_COMMAND, 0);
	t.w.m->settings.withhold_preemption = false;
	scripted_preempted(t.w.m, SECONDS, call->in.preempt.PreemptionFenceId,
			   packet->in.submit.SubmissionFenceId - 1);
	world_await(&t.w, VIDMM_DDI_SUBMIT_COMMAND, 2); /* it is resubmitted to the same adapter */
	packet = scripted_nth(t.w.m, VIDMM_DDI_SUBMIT_COMMAND, 1);
	assert_int_equal(packet->in.submit.EngineOrdinal, 1);
	world_run(&t.w);
	assert_false(timeout_is_lost(&t.w.device, t.a));
	timeout_stop(&t);
	scripted_destroy(second);
}

/*
 * The paging of the allocation from its first use over an eviction to the next use: operations,
 * MDLs, bytes.
 */
struct paged {
	uint32_t fills, in, out;
	uint64_t bytes;
};

static struct paged page_around(struct world *w, uint32_t flags)
{
	struct paged paged = {0};
	D3DKMT_HANDLE a;

	assert_int_equal(try_allocate(w, flags, &a), S_OK);
	scripted_forget(w->m);
	world_submit_write(&w->context, a, 16, 0x51);
	world_run(w);
	assert_int_equal(
		vidmm_adapter_set_power(w->client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_int_equal(vidmm_adapter_set_power(w->client.adapter, VIDMM_POWER_D0, 0), 0);
	world_submit_use(&w->context, a);
	world_run(w);
	for (uint32_t i = 0; i < scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER); i++) {
		const DXGKARG_BUILDPAGINGBUFFER *b =
			&scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)->in.paging;

		paged.fills += b->Operation == DXGK_OPERATION_FILL;
		if (b->Operation != DXGK_OPERATION_TRANSFER)
			continue;
		paged.in += b->Transfer.Source.SegmentId == 0;
		paged.out += b->Transfer.Destination.SegmentId == 0;
		paged.bytes += b->Transfer.TransferSize;
	}
	assert_int_equal(world_word(w, a, 16), 0x51);
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
	world_run(w);
	return paged;
}

static void pag_22_pag_23_link_flags_change_nothing_on_a_single_adapter(void **state)
{
	static const uint32_t flags[] = {0, MIRRORED, INSTANCED};
	struct world w;

	world_start(&w, state, at_once);
	for (uint32_t i = 0; i < 3; i++) {
		struct paged paged = page_around(&w, flags[i]);

		assert_int_equal(paged.fills, 1);
		assert_int_equal(paged.out, 1);
		assert_int_equal(paged.in, 1);
		assert_int_equal(paged.bytes, 2 * 64 * KIB);
	}
	world_stop(&w);
}

static NTSTATUS ask(D3DKMT_HANDLE adapter, KMTQUERYADAPTERINFOTYPE type, void *data, UINT bytes)
{
	D3DKMT_QUERYADAPTERINFO args = {.hAdapter = adapter,
					.Type = type,
					.pPrivateDriverData = data,
					.PrivateDriverDataSize = bytes};

	return D3DKMTQueryAdapterInfo(&args);
}

static void qai_07_a_link_is_reported_as_one_adapter_of_two(void **state)
{
	static const NTSTATUS answers[] = {STATUS_SUCCESS, STATUS_NOT_SUPPORTED,
					   STATUS_INVALID_PARAMETER};
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};
	struct world w;
	UINT count = 0;

	start(&w, state);
	vidmm_d3dkmt_attach(w.device.process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 1);
	assert_int_equal(
		ask(info[0].hAdapter, KMTQAITYPE_PHYSICALADAPTERCOUNT, &count, sizeof(count)),
		STATUS_SUCCESS);
	assert_int_equal(count, PHYSICAL_ADAPTERS);
	for (UINT i = 0; i < 3; i++) {
		D3DKMT_QUERY_DEVICE_IDS ids = {.PhysicalAdapterIndex = i};

		assert_int_equal(ask(info[0].hAdapter, KMTQAITYPE_PHYSICALADAPTERDEVICEIDS, &ids,
				     sizeof(ids)),
				 answers[i]);
		assert_int_equal(ids.DeviceIds.BusType != 0, i == 0);
		if (i == 2)
			world_expect_finding(&w, "QAI-07");
		else
			assert_int_equal(w.client.findings, 0);
	}
	vidmm_d3dkmt_attach(NULL);
	stop(&w, COME GO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(lnk_04_only_the_lead_adapter_gets_link_wide_ddis),
		ON_BOTH(sch_08_a_context_runs_on_the_adapter_of_its_engine_affinity),
		ON_BOTH(sch_08_sub_02_adapters_of_a_link_complete_independently),
		ON_BOTH(tdr_14_an_engine_reset_affects_one_adapter_of_a_link),
		ON_BOTH(pre_02_a_preemption_answer_counts_for_its_own_adapter),
		ON_BOTH(pag_22_pag_23_link_flags_change_nothing_on_a_single_adapter),
		ON_BOTH(qai_07_a_link_is_reported_as_one_adapter_of_two),
	};

	return cmocka_run_group_tests_name("sched_link", tests, NULL, NULL);
}
