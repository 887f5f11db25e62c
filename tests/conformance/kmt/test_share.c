/* SPDX-License-Identifier: MIT */
/* Resources shared by a global handle between two processes. */
#include "kmt_world.h"

#include <string.h>

enum { CREATE_RESOURCE = 0x1, CREATE_SHARED = 0x2 };

static const char runtime_data[] = "what the runtime wants to remember";

/* A shared resource of two allocations in the attached process. */
struct shared {
	struct kmt_world w;
	D3DKMT_HANDLE resource, global, allocation[2];
	D3DKMT_HANDLE other_device;
};

/* The arguments with which the other process opens it. */
struct opening {
	D3DDDI_OPENALLOCATIONINFO info[2];
	char runtime[sizeof(runtime_data)], total[2 * sizeof(struct softgpu_allocation) + 8];
	D3DKMT_OPENRESOURCE args;
};

static void start(struct shared *s, void **state)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 64 * KIB};
	D3DDDI_ALLOCATIONINFO info[2] = {0};
	D3DKMT_CREATEALLOCATION args = {.pPrivateRuntimeData = runtime_data,
					.PrivateRuntimeDataSize = sizeof(runtime_data),
					.NumAllocations = 2,
					.pAllocationInfo = info,
					.Flags.CreateResource = 1,
					.Flags.CreateShared = 1};
	D3DKMT_OPENADAPTERFROMLUID open;

	kmt_start(&s->w, state);
	for (int i = 0; i < 2; i++) {
		info[i].pPrivateDriverData = &spec;
		info[i].PrivateDriverDataSize = sizeof(spec);
	}
	args.hDevice = s->w.device;
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	s->resource = args.hResource;
	s->global = args.hGlobalShare;
	s->allocation[0] = info[0].hAllocation;
	s->allocation[1] = info[1].hAllocation;
	vidmm_d3dkmt_enter(s->w.other);
	open.AdapterLuid = s->w.luid;
	assert_int_equal(D3DKMTOpenAdapterFromLuid(&open), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = open.hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	s->other_device = device.hDevice;
}

static void stop(struct shared *s)
{
	vidmm_d3dkmt_enter(NULL);
	kmt_stop(&s->w);
}

static void prepare(const struct shared *s, struct opening *o)
{
	memset(o, 0, sizeof(*o));
	o->args = (D3DKMT_OPENRESOURCE){
		.hDevice = s->other_device,
		.hGlobalShare = s->global,
		.NumAllocations = 2,
		.pOpenAllocationInfo = o->info,
		.pPrivateRuntimeData = o->runtime,
		.PrivateRuntimeDataSize = sizeof(o->runtime),
		.pTotalPrivateDriverDataBuffer = o->total,
		.TotalPrivateDriverDataBufferSize = sizeof(o->total),
	};
}

static void queryresourceinfo_returns_the_sizes_given_at_creation(void **state)
{
	struct shared s;
	D3DKMT_QUERYRESOURCEINFO ask;

	start(&s, state);
	ask = (D3DKMT_QUERYRESOURCEINFO){.hDevice = s.other_device, .hGlobalShare = s.global};
	assert_int_equal(D3DKMTQueryResourceInfo(&ask), STATUS_SUCCESS);
	assert_int_equal(ask.NumAllocations, 2);
	assert_int_equal(ask.PrivateRuntimeDataSize, sizeof(runtime_data));
	assert_int_equal(ask.ResourcePrivateDriverDataSize, 0);
	assert_int_equal(ask.TotalPrivateDriverDataSize, 2 * sizeof(struct softgpu_allocation));
	/* A local handle is no global handle. */
	ask.hGlobalShare = s.resource;
	assert_int_equal(D3DKMTQueryResourceInfo(&ask), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-01");
	stop(&s);
}

static void rop_01_sizes_and_count_must_equal_the_stored_ones(void **state)
{
	struct shared s;
	struct opening o;

	start(&s, state);
	prepare(&s, &o);
	o.args.PrivateRuntimeDataSize++;
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-01");
	prepare(&s, &o);
	o.args.pPrivateRuntimeData = NULL;
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-01");
	prepare(&s, &o);
	o.args.ResourcePrivateDriverDataSize = 1;
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-01");
	prepare(&s, &o);
	o.args.NumAllocations = 0;
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-01");
	assert_int_equal(o.args.hResource, 0);
	prepare(&s, &o);
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_SUCCESS);
	stop(&s);
}

static void rop_02_the_total_buffer_may_be_larger(void **state)
{
	struct shared s;
	struct opening o;

	start(&s, state);
	prepare(&s, &o);
	o.args.TotalPrivateDriverDataBufferSize = 2 * sizeof(struct softgpu_allocation) - 1;
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_NO_MEMORY);
	kmt_found(&s.w, "ROP-02");
	prepare(&s, &o);
	o.args.pTotalPrivateDriverDataBuffer = NULL;
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-02");
	prepare(&s, &o);
	memset(o.total, 0x3C, sizeof(o.total));
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_SUCCESS);
	assert_int_equal(o.args.TotalPrivateDriverDataBufferSize,
			 2 * sizeof(struct softgpu_allocation));
	assert_int_equal(o.total[sizeof(o.total) - 1], 0x3C);
	stop(&s);
}

static void rop_03_an_open_with_total_size_0_returns_no_private_data(void **state)
{
	struct shared s;
	struct opening o;

	start(&s, state);
	for (uint32_t i = 0; i < 2; i++) {
		prepare(&s, &o);
		memset(o.total, 0x3C, sizeof(o.total));
		if (i) /* or a pointer that is not used */
			o.args.pTotalPrivateDriverDataBuffer = NULL;
		o.args.TotalPrivateDriverDataBufferSize = 0;
		assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_SUCCESS);
		assert_int_equal(o.args.TotalPrivateDriverDataBufferSize, 0);
		assert_string_equal(o.runtime, runtime_data);
		for (uint32_t k = 0; k < 2; k++) {
			assert_int_not_equal(o.info[k].hAllocation, 0);
			assert_int_equal(o.info[k].PrivateDriverDataSize, 0);
			assert_null(o.info[k].pPrivateDriverData);
		}
		assert_int_equal(o.total[0], 0x3C);
	}
	stop(&s);
}

static void rop_04_alc_08_an_open_returns_runtime_and_private_data(void **state)
{
	struct shared s;
	struct opening o;

	start(&s, state);
	prepare(&s, &o);
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_SUCCESS);
	assert_string_equal(o.runtime, runtime_data);
	for (size_t i = 0; i < 2; i++) {
		struct softgpu_allocation spec;

		assert_ptr_equal(o.info[i].pPrivateDriverData, o.total + i * sizeof(spec));
		assert_int_equal(o.info[i].PrivateDriverDataSize, sizeof(spec));
		memcpy(&spec, o.info[i].pPrivateDriverData, sizeof(spec));
		assert_int_equal(spec.size_bytes, 64 * KIB);
	}
	stop(&s);
}

static void rop_05_every_open_makes_new_handles(void **state)
{
	struct shared s;
	struct opening first, second;

	start(&s, state);
	prepare(&s, &first);
	prepare(&s, &second);
	assert_int_equal(D3DKMTOpenResource(&first.args), STATUS_SUCCESS);
	assert_int_equal(D3DKMTOpenResource(&second.args), STATUS_SUCCESS);
	assert_int_not_equal(first.args.hResource, second.args.hResource);
	assert_int_not_equal(first.info[0].hAllocation, second.info[0].hAllocation);
	/* HND-08 applies to opening, too. */
	assert_true(first.args.hResource < first.info[0].hAllocation);
	stop(&s);
}

static void rop_06_a_resource_lives_until_its_last_reference_ends(void **state)
{
	struct shared s;
	struct opening o;
	struct vidmm_adapter_statistics now = {.struct_size = sizeof(now)};

	start(&s, state);
	prepare(&s, &o);
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(kmt_destroy(&s.w, s.resource, NULL, 0), STATUS_SUCCESS);
	vidmm_adapter_statistics(s.w.client.adapter, &now);
	assert_int_equal(now.allocations, 2);
	vidmm_d3dkmt_enter(s.w.other);
	const D3DKMT_DESTROYALLOCATION last = {.hDevice = s.other_device,
					       .hResource = o.args.hResource};
	assert_int_equal(D3DKMTDestroyAllocation(&last), STATUS_SUCCESS);
	vidmm_adapter_statistics(s.w.client.adapter, &now);
	assert_int_equal(now.allocations, 0);
	prepare(&s, &o);
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-01");
	stop(&s);
}

static void the_adapter_of_a_global_handle_can_be_queried(void **state)
{
	D3DKMT_GETSHAREDRESOURCEADAPTERLUID ask = {0};
	struct shared s;

	start(&s, state);
	ask.hGlobalShare = s.global;
	assert_int_equal(D3DKMTGetSharedResourceAdapterLuid(&ask), STATUS_SUCCESS);
	assert_int_equal(ask.AdapterLuid.LowPart, s.w.luid.LowPart);
	assert_int_equal(ask.AdapterLuid.HighPart, 0);
	ask = (D3DKMT_GETSHAREDRESOURCEADAPTERLUID){.hGlobalShare = s.resource};
	assert_int_equal(D3DKMTGetSharedResourceAdapterLuid(&ask), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-01");
	assert_int_equal(ask.AdapterLuid.LowPart, 0);
	ask.hNtHandle = (HANDLE)(uintptr_t)9999;
	assert_int_equal(D3DKMTGetSharedResourceAdapterLuid(&ask), STATUS_INVALID_HANDLE);
	kmt_found(&s.w, "SHR-13");
	assert_int_equal(ask.AdapterLuid.LowPart, 0);
	stop(&s);
}

static void rop_07_opening_on_another_adapter_is_refused(void **state)
{
	static const uint64_t bar = 1 * MIB;
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar,
						      .bar_count = 1,
						      .tdr = &client_no_tdr};
	struct vidmm_adapter *second;
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};
	struct shared s;
	struct opening o;

	start(&s, state);
	assert_int_equal(vidmm_adapter_start(s.w.client.host, &options, &second), 0);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE second_device = {.hAdapter = info[1].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&second_device), STATUS_SUCCESS);
	prepare(&s, &o);
	o.args.hDevice = second_device.hDevice;
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-07");
	D3DKMT_QUERYRESOURCEINFO ask = {.hDevice = second_device.hDevice, .hGlobalShare = s.global};
	assert_int_equal(D3DKMTQueryResourceInfo(&ask), STATUS_INVALID_PARAMETER);
	kmt_found(&s.w, "ROP-07");
	/* Another device of the same adapter can open it. */
	D3DKMT_CREATEDEVICE here = {.hAdapter = info[0].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&here), STATUS_SUCCESS);
	prepare(&s, &o);
	o.args.hDevice = here.hDevice;
	assert_int_equal(D3DKMTOpenResource(&o.args), STATUS_SUCCESS);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = second_device.hDevice};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	vidmm_adapter_stop(second);
	stop(&s);
}

static void rop_08_runtime_data_is_opaque(void **state)
{
	static const uint32_t sizes[] = {0x38, 0x58, 1, 4097};
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .size_bytes = 4 * KIB};
	static uint8_t given[4097], got[4098];
	struct kmt_world w;

	kmt_start(&w, state);
	for (uint32_t i = 0; i < sizeof(given); i++)
		given[i] = (uint8_t)(i * 31 + 7);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
					      .PrivateDriverDataSize = sizeof(spec)};
		D3DKMT_CREATEALLOCATION args = {.hDevice = w.device,
						.pPrivateRuntimeData = given,
						.PrivateRuntimeDataSize = sizes[i],
						.NumAllocations = 1,
						.pAllocationInfo = &info,
						.Flags.CreateResource = 1,
						.Flags.CreateShared = 1};
		D3DDDI_OPENALLOCATIONINFO opened;
		struct softgpu_allocation total;

		assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
		memset(got, 0x5A, sizeof(got));
		D3DKMT_OPENRESOURCE open = {.hDevice = w.device,
					    .hGlobalShare = args.hGlobalShare,
					    .NumAllocations = 1,
					    .pOpenAllocationInfo = &opened,
					    .pPrivateRuntimeData = got,
					    .PrivateRuntimeDataSize = sizes[i],
					    .pTotalPrivateDriverDataBuffer = &total,
					    .TotalPrivateDriverDataBufferSize = sizeof(total)};
		assert_int_equal(D3DKMTOpenResource(&open), STATUS_SUCCESS);
		assert_memory_equal(got, given, sizes[i]);
		assert_int_equal(got[sizes[i]], 0x5A);
	}
	kmt_stop(&w);
}

static void openresource2_fills_an_array_of_openallocationinfo2(void **state)
{
	struct shared s;
	struct opening o;
	D3DDDI_OPENALLOCATIONINFO2 info[2] = {0};

	start(&s, state);
	prepare(&s, &o);
	o.args.pOpenAllocationInfo2 = info;
	assert_int_equal(D3DKMTOpenResource2(&o.args), STATUS_SUCCESS);
	assert_int_equal(info[1].hAllocation, info[0].hAllocation + 0x40);
	assert_int_equal(info[1].PrivateDriverDataSize, sizeof(struct softgpu_allocation));
	stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(queryresourceinfo_returns_the_sizes_given_at_creation),
		ON_BOTH(rop_01_sizes_and_count_must_equal_the_stored_ones),
		ON_BOTH(rop_02_the_total_buffer_may_be_larger),
		ON_BOTH(rop_03_an_open_with_total_size_0_returns_no_private_data),
		ON_BOTH(rop_04_alc_08_an_open_returns_runtime_and_private_data),
		ON_BOTH(rop_05_every_open_makes_new_handles),
		ON_BOTH(rop_06_a_resource_lives_until_its_last_reference_ends),
		ON_BOTH(the_adapter_of_a_global_handle_can_be_queried),
		ON_BOTH(rop_07_opening_on_another_adapter_is_refused),
		ON_BOTH(rop_08_runtime_data_is_opaque),
		ON_BOTH(openresource2_fills_an_array_of_openallocationinfo2),
	};

	return cmocka_run_group_tests_name("kmt_share", tests, NULL, NULL);
}
