/* SPDX-License-Identifier: MIT */
/*
 * A link of two adapters as its clients see it: one adapter, which is its lead. What is not built on the other says so
 * (ALF-23, PAG-22, PAG-23, SCH-08, QAI-07).
 */
#include "sched_world.h"

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
	const struct client_options options = {.physical_adapters = PHYSICAL_ADAPTERS};

	world_start_with(w, state, linked, &options);
	world_open(w);
}

/* The other adapter has come and gone, and between that only its power was changed. */
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

static void lnk_04_the_lead_does_the_work_of_a_link(void **state)
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

static void sch_08_contexts_of_a_link_are_on_its_lead(void **state)
{
	static const struct {
		uint32_t affinity;
		HRESULT result;
	} cases[] = {{0, S_OK},         {1, S_OK},         {2, E_NOTIMPL},
		     {3, E_INVALIDARG}, {4, E_INVALIDARG}, {0x80000000u, E_INVALIDARG}};
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		D3DDDICB_CREATECONTEXT c = {.EngineAffinity = cases[i].affinity};
		uint32_t before = scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT);

		assert_int_equal(w.device.cb->pfnCreateContextCb(w.device.handle, &c),
				 cases[i].result);
		assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT) - before,
				 cases[i].result == S_OK);
		if (cases[i].result == E_INVALIDARG)
			world_expect_finding(&w, "SCH-08");
	}
	stop(&w, COME GO);
}

static void alf_23_pag_22_pag_23_content_on_a_link_is_not_built(void **state)
{
	static const uint32_t flags[] = {MIRRORED, INSTANCED};
	D3DKMT_HANDLE a;
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(try_allocate(&w, flags[i], &a), E_NOTIMPL);
		assert_int_equal(a, 0);
		assert_int_equal(w.client.findings, 0);
		assert_int_equal(w.m->live_allocations, 0);
	}
	assert_int_equal(try_allocate(&w, MIRRORED | INSTANCED, &a), E_INVALIDARG);
	world_expect_finding(&w, "ALF-23");
	assert_int_equal(try_allocate(&w, 0, &a), S_OK);
	stop(&w, COME GO);
}

/* What the allocation was paged with, from its first use over an eviction to the next: operations, MDLs, bytes. */
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

static void pag_22_pag_23_an_adapter_alone_is_every_adapter_of_its_link(void **state)
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

static void qai_07_a_link_is_one_adapter_of_two(void **state)
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
		ON_BOTH(lnk_04_the_lead_does_the_work_of_a_link),
		ON_BOTH(sch_08_contexts_of_a_link_are_on_its_lead),
		ON_BOTH(alf_23_pag_22_pag_23_content_on_a_link_is_not_built),
		ON_BOTH(pag_22_pag_23_an_adapter_alone_is_every_adapter_of_its_link),
		ON_BOTH(qai_07_a_link_is_one_adapter_of_two),
	};

	return cmocka_run_group_tests_name("sched_link", tests, NULL, NULL);
}
