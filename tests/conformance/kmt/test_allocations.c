/* SPDX-License-Identifier: MIT */
/* Devices, allocations, CPU access and submissions of a D3DKMT client. */
#include "kmt_world.h"

#include <string.h>

enum { CREATE_RESOURCE = 0x1, CREATE_SHARED = 0x2, PROTECTED = 0x8 };
enum { READ_ONLY = 0x1, WRITE_ONLY = 0x2, DONOT_WAIT = 0x4 };

/* ---- arguments ---- */

static void hnd_11_a_null_argument_is_refused(void **state)
{
	struct kmt_world w;

	kmt_start(&w, state);
#define REFUSED(function)                                                   \
	do {                                                                \
		assert_int_equal(function(NULL), STATUS_INVALID_PARAMETER); \
		kmt_found(&w, "HND-11");                                    \
	} while (0)
	REFUSED(D3DKMTEnumAdapters);
	REFUSED(D3DKMTEnumAdapters2);
	REFUSED(D3DKMTEnumAdapters3);
	REFUSED(D3DKMTOpenAdapterFromLuid);
	REFUSED(D3DKMTCloseAdapter);
	REFUSED(D3DKMTQueryAdapterInfo);
	REFUSED(D3DKMTCreateDevice);
	REFUSED(D3DKMTDestroyDevice);
	REFUSED(D3DKMTGetDeviceState);
	REFUSED(D3DKMTCreateContext);
	REFUSED(D3DKMTDestroyContext);
	REFUSED(D3DKMTRender);
	REFUSED(D3DKMTCreateAllocation);
	REFUSED(D3DKMTCreateAllocation2);
	REFUSED(D3DKMTDestroyAllocation);
	REFUSED(D3DKMTLock);
	REFUSED(D3DKMTUnlock);
	REFUSED(D3DKMTOfferAllocations);
	REFUSED(D3DKMTReclaimAllocations);
	REFUSED(D3DKMTSetAllocationPriority);
	REFUSED(D3DKMTGetAllocationPriority);
	REFUSED(D3DKMTQueryAllocationResidency);
	REFUSED(D3DKMTQueryResourceInfo);
	REFUSED(D3DKMTOpenResource);
	REFUSED(D3DKMTOpenResource2);
	REFUSED(D3DKMTGetSharedResourceAdapterLuid);
#undef REFUSED
	kmt_stop(&w);
}

static void hnd_07_wrong_kind_stale_or_foreign_handles_are_refused(void **state)
{
	struct kmt_world w;
	D3DKMT_HANDLE bad[4];

	kmt_start(&w, state);
	bad[0] = 0;
	bad[1] = w.adapter;
	bad[2] = kmt_device(&w);
	const D3DKMT_DESTROYDEVICE gone = {.hDevice = bad[2]};
	assert_int_equal(D3DKMTDestroyDevice(&gone), STATUS_SUCCESS);
	bad[3] = 0x87654321;
	for (size_t i = 0; i < 4; i++) {
		D3DKMT_CREATECONTEXT context = {.hDevice = bad[i]};
		const D3DKMT_DESTROYCONTEXT end = {.hContext = bad[i]};
		D3DKMT_RENDER render = {.hContext = bad[i]};

		assert_int_equal(D3DKMTCreateContext(&context), STATUS_INVALID_PARAMETER);
		kmt_found(&w, "HND-07");
		assert_int_equal(D3DKMTDestroyContext(&end), STATUS_INVALID_PARAMETER);
		kmt_found(&w, "HND-07");
		assert_int_equal(D3DKMTRender(&render), STATUS_INVALID_PARAMETER);
		kmt_found(&w, "HND-07");
	}
	/* The same number is another handle, or none, in another process. */
	vidmm_d3dkmt_enter(w.other);
	const D3DKMT_DESTROYDEVICE strange = {.hDevice = w.device};
	assert_int_equal(D3DKMTDestroyDevice(&strange), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	vidmm_d3dkmt_enter(NULL);
	kmt_stop(&w);
}

static void hnd_08_a_resource_handle_precedes_its_allocation_handles(void **state)
{
	struct kmt_world w;
	D3DKMT_CREATEALLOCATION args = {0};
	D3DKMT_HANDLE a;

	kmt_start(&w, state);
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_RESOURCE, &args, &a),
			 STATUS_SUCCESS);
	assert_int_equal(args.hResource, w.device + 0x40);
	assert_int_equal(a, w.device + 0x80);
	kmt_stop(&w);
}

/* ---- the miniport fails a call ---- */

static void q_160_an_allocation_that_the_miniport_refuses_gives_a_reason(void **state)
{
	uint32_t strange = 0x5EED; /* not the private data of softgpu */
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &strange,
				      .PrivateDriverDataSize = sizeof(strange)};
	struct kmt_world w;

	kmt_start(&w, state);
	w.client.reasons = 0;
	(void)kmt_allocate(&w, 64 * KIB);
	assert_int_equal(w.client.reasons, 0);
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = w.device, .NumAllocations = 1, .pAllocationInfo = &info};
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_INVALID_PARAMETER);
	kmt_told(&w, STATUS_INVALID_PARAMETER,
		 "ALF-33: the miniport failed DxgkDdiCreateAllocation with 0xc000000d");
	kmt_stop(&w);
}

static void q_160_a_command_that_the_miniport_refuses_gives_a_reason(void **state)
{
	struct kmt_world w;
	struct client_context c;
	D3DKMT_RENDER render = {0};

	kmt_start(&w, state);
	kmt_context(&w, &c);
	w.client.reasons = 0;
	assert_int_equal(kmt_render(&c, &render), STATUS_SUCCESS); /* no command */
	assert_int_equal(w.client.reasons, 0);
	memset(c.c.pCommandBuffer, 0xEE, 64);
	c.command_bytes = 64;
	NTSTATUS status = kmt_render(&c, &render);
	assert_false(NT_SUCCESS(status));
	kmt_told(&w, status, "DMA-31: the miniport failed DxgkDdiRender with 0xc00");
	kmt_stop(&w);
}

static void unsupported_device_flags_and_state_types_are_refused(void **state)
{
	struct kmt_world w;
	D3DKMT_CREATEDEVICE args;

	kmt_start(&w, state);
	args = (D3DKMT_CREATEDEVICE){.hAdapter = w.adapter, .Flags.LegacyMode = 1};
	assert_int_equal(D3DKMTCreateDevice(&args), STATUS_NOT_SUPPORTED);
	args = (D3DKMT_CREATEDEVICE){.hAdapter = w.adapter, .Flags.Reserved = 1};
	assert_int_equal(D3DKMTCreateDevice(&args), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-11");
	args = (D3DKMT_CREATEDEVICE){.hAdapter = w.adapter, .CommandBufferSize = 7};
	assert_int_equal(D3DKMTCreateDevice(&args), STATUS_SUCCESS);
	assert_int_equal(args.CommandBufferSize, 0);
	D3DKMT_GETDEVICESTATE is = {.hDevice = args.hDevice,
				    .StateType = D3DKMT_DEVICESTATE_EXECUTION};
	assert_int_equal(D3DKMTGetDeviceState(&is), STATUS_SUCCESS);
	assert_int_equal(is.ExecutionState, D3DKMT_DEVICEEXECUTION_ACTIVE);
	is.StateType = D3DKMT_DEVICESTATE_PRESENT;
	assert_int_equal(D3DKMTGetDeviceState(&is), STATUS_NOT_SUPPORTED);
	kmt_stop(&w);
}

/* ---- allocations ---- */

static void alc_01_a_creation_request_without_content_is_refused(void **state)
{
	struct kmt_world w;
	D3DKMT_CREATEALLOCATION args = {0};
	D3DKMT_HANDLE a;

	kmt_start(&w, state);
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_INVALID_PARAMETER); /* no device */
	kmt_found(&w, "HND-07");
	args.hDevice = w.device;
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ALC-01");
	args.NumAllocations = 1; /* and no array */
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ALC-01");
	args = (D3DKMT_CREATEALLOCATION){0};
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, 0x80000000, &args, &a),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ALC-01");
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, PROTECTED, &args, &a),
			 STATUS_NOT_SUPPORTED);
	kmt_stop(&w);
}

static void alc_04_createshared_without_createresource_is_refused(void **state)
{
	struct kmt_world w;
	D3DKMT_CREATEALLOCATION args = {0};
	D3DKMT_HANDLE a;

	kmt_start(&w, state);
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_SHARED, &args, &a),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ALC-04");
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_SHARED | CREATE_RESOURCE, &args, &a),
			 STATUS_SUCCESS);
	assert_int_equal(args.hGlobalShare & 0x3F, 2); /* HND-05 */
	args = (D3DKMT_CREATEALLOCATION){0};
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_RESOURCE, &args, &a),
			 STATUS_SUCCESS);
	assert_int_equal(args.hGlobalShare, 0);
	kmt_stop(&w);
}

static void alc_05_a_nonzero_hresource_on_input_is_refused(void **state)
{
	struct kmt_world w;
	D3DKMT_CREATEALLOCATION args = {0};
	D3DKMT_HANDLE a;

	kmt_start(&w, state);
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_RESOURCE, &args, &a),
			 STATUS_SUCCESS);
	D3DKMT_CREATEALLOCATION more = {.hResource = args.hResource};
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, 0, &more, &a), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ALC-05");
	more.hResource = 0xDEAD0000;
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_RESOURCE, &more, &a),
			 STATUS_INVALID_HANDLE);
	kmt_found(&w, "HND-07");
	kmt_stop(&w);
}

static void alc_06_destroying_resources_and_allocations(void **state)
{
	struct kmt_world w;
	D3DKMT_CREATEALLOCATION args = {0};
	D3DKMT_HANDLE a, b;

	kmt_start(&w, state);
	assert_int_equal(kmt_destroy(&w, 0, NULL, 0), STATUS_SUCCESS);
	assert_int_equal(kmt_destroy(&w, 0, NULL, 1), STATUS_INVALID_PARAMETER);
	a = kmt_allocate(&w, 64 * KIB);
	assert_int_equal(kmt_destroy(&w, 0, &a, 1), STATUS_SUCCESS);
	assert_int_equal(kmt_destroy(&w, 0, &a, 1), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ALF-36");
	/* Destroying a resource destroys its allocations. */
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_RESOURCE, &args, &a),
			 STATUS_SUCCESS);
	assert_int_equal(kmt_destroy(&w, args.hResource, NULL, 0), STATUS_SUCCESS);
	assert_int_equal(kmt_destroy(&w, 0, &a, 1), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "ALF-36");
	assert_int_equal(kmt_destroy(&w, args.hResource, NULL, 0), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	/* Destroying an allocation does not destroy its resource. */
	args = (D3DKMT_CREATEALLOCATION){0};
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_RESOURCE, &args, &b),
			 STATUS_SUCCESS);
	assert_int_equal(kmt_destroy(&w, 0, &b, 1), STATUS_SUCCESS);
	assert_int_equal(kmt_destroy(&w, args.hResource, NULL, 0), STATUS_SUCCESS);
	kmt_stop(&w);
}

static void a_refused_creation_leaves_no_handles_or_objects(void **state)
{
	struct kmt_world w;
	struct vidmm_adapter_statistics before = {.struct_size = sizeof(before)}, after = before;
	D3DKMT_CREATEALLOCATION args = {0};
	D3DKMT_HANDLE a;

	kmt_start(&w, state);
	vidmm_adapter_statistics(w.client.adapter, &before);
	assert_int_not_equal(kmt_try_allocate(&w, 0, CREATE_RESOURCE | CREATE_SHARED, &args, &a),
			     STATUS_SUCCESS);
	client_forget(&w.client);
	assert_int_equal(args.hResource, 0);
	vidmm_adapter_statistics(w.client.adapter, &after);
	assert_int_equal(after.allocations, before.allocations);
	kmt_stop(&w);
}

static void createallocation2_reads_an_array_of_allocationinfo2(void **state)
{
	struct kmt_world w;
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 64 * KIB};
	D3DDDI_ALLOCATIONINFO2 info[3] = {0};
	D3DKMT_CREATEALLOCATION args = {.NumAllocations = 3, .pAllocationInfo2 = info};
	D3DKMT_HANDLE list[3];

	kmt_start(&w, state);
	for (int i = 0; i < 3; i++) {
		info[i].pPrivateDriverData = &spec;
		info[i].PrivateDriverDataSize = sizeof(spec);
	}
	args.hDevice = w.device;
	assert_int_equal(D3DKMTCreateAllocation2(&args), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 3; i++) {
		list[i] = info[i].hAllocation;
		assert_int_equal(list[i], w.device + 0x40 * (i + 1));
	}
	assert_int_equal(kmt_destroy(&w, 0, list, 3), STATUS_SUCCESS);
	kmt_stop(&w);
}

/* ---- CPU access and work ---- */

static void lock_and_unlock_return_ntstatus(void **state)
{
	struct kmt_world w;
	void *data;

	kmt_start(&w, state);
	D3DKMT_HANDLE a = kmt_allocate(&w, 64 * KIB);
	assert_int_equal(kmt_lock(&w, &a, 0, &data), STATUS_SUCCESS);
	memset(data, 0x5A, 64 * KIB);
	assert_int_equal(kmt_unlock(&w, a), STATUS_SUCCESS);
	assert_int_equal(kmt_unlock(&w, a), STATUS_INVALID_PARAMETER);
	client_forget(&w.client);
	assert_int_equal(kmt_lock(&w, &a, READ_ONLY | WRITE_ONLY, &data), STATUS_INVALID_PARAMETER);
	assert_null(data);
	client_forget(&w.client);
	assert_int_equal(kmt_lock(&w, &a, READ_ONLY, &data), STATUS_SUCCESS);
	assert_int_equal(((unsigned char *)data)[64 * KIB - 1], 0x5A);
	assert_int_equal(kmt_unlock(&w, a), STATUS_SUCCESS);
	kmt_stop(&w);
}

static void lock_39_d3dkmtlock_does_not_write_gpuvirtualaddress(void **state)
{
	struct kmt_world w;

	kmt_start(&w, state);
	D3DKMT_HANDLE a = kmt_allocate(&w, 64 * KIB);
	D3DKMT_LOCK args = {
		.hDevice = w.device, .hAllocation = a, .GpuVirtualAddress = 0x1234567890ull};
	assert_int_equal(D3DKMTLock(&args), STATUS_SUCCESS);
	assert_true(args.GpuVirtualAddress == 0x1234567890ull);
	assert_int_equal(kmt_unlock(&w, a), STATUS_SUCCESS);
	args.Flags.Value = 0xFFFFF800u; /* nor when it fails */
	assert_int_equal(D3DKMTLock(&args), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "LOCK-02");
	assert_true(args.GpuVirtualAddress == 0x1234567890ull);
	kmt_stop(&w);
}

static void render_executes_commands_and_refuses_bad_handles(void **state)
{
	struct kmt_world w;
	struct client_context c;
	D3DKMT_RENDER args = {0};
	void *data;

	kmt_start(&w, state);
	D3DKMT_HANDLE from = kmt_allocate(&w, 64 * KIB), to = kmt_allocate(&w, 64 * KIB);
	kmt_context(&w, &c);
	assert_int_equal(kmt_lock(&w, &from, 0, &data), STATUS_SUCCESS);
	memset(data, 0x77, 64 * KIB);
	assert_int_equal(kmt_unlock(&w, from), STATUS_SUCCESS);
	client_copy(&c, from, to, 64 * KIB);
	assert_int_equal(kmt_render(&c, &args), STATUS_SUCCESS);
	assert_true(args.QueuedBufferCount >= 1);
	assert_int_equal(kmt_lock(&w, &to, READ_ONLY, &data), STATUS_SUCCESS); /* waits */
	assert_int_equal(((unsigned char *)data)[12345], 0x77);
	assert_int_equal(kmt_unlock(&w, to), STATUS_SUCCESS);
	/* A list with a handle that does not exist. */
	client_copy(&c, from, 0xDEAD0040, 4096);
	assert_int_equal(kmt_render(&c, &args), STATUS_INVALID_HANDLE);
	kmt_found(&w, "DMA-16");
	/* DMA-10 */
	args = (D3DKMT_RENDER){.BroadcastContextCount = 1, .BroadcastContext = {0xDEAD0040}};
	client_fill(&c, from, 4096, 0x22);
	assert_int_equal(kmt_render(&c, &args), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "DMA-10");
	struct client_context other;
	kmt_context(&w, &other);
	args = (D3DKMT_RENDER){.BroadcastContextCount = 1,
			       .BroadcastContext = {(D3DKMT_HANDLE)(uintptr_t)other.c.hContext}};
	client_fill(&c, to, 4096, 0x99999999);
	assert_int_equal(kmt_render(&c, &args), STATUS_SUCCESS);
	assert_int_equal(kmt_lock(&w, &to, READ_ONLY, &data), STATUS_SUCCESS);
	assert_int_equal(((unsigned char *)data)[100], 0x99);
	assert_int_equal(kmt_unlock(&w, to), STATUS_SUCCESS);
	const D3DKMT_DESTROYCONTEXT end = {.hContext = (D3DKMT_HANDLE)(uintptr_t)c.c.hContext};
	assert_int_equal(D3DKMTDestroyContext(&end), STATUS_SUCCESS);
	assert_int_equal(D3DKMTDestroyContext(&end), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	kmt_stop(&w);
}

static void a_donotwait_lock_of_a_busy_allocation_fails(void **state)
{
	struct kmt_world w;
	struct client_context c;
	D3DKMT_RENDER args = {0};
	void *data;

	kmt_start(&w, state);
	D3DKMT_HANDLE a = kmt_allocate(&w, 64 * KIB);
	kmt_context(&w, &c);
	client_stall(&c, 50 * 1000 * 1000);
	client_fill(&c, a, 4096, 0x11223344);
	assert_int_equal(kmt_render(&c, &args), STATUS_SUCCESS);
	assert_int_equal(kmt_lock(&w, &a, DONOT_WAIT, &data), STATUS_GRAPHICS_ALLOCATION_BUSY);
	assert_null(data);
	assert_int_equal(kmt_lock(&w, &a, READ_ONLY, &data), STATUS_SUCCESS);
	assert_int_equal(*(uint32_t *)data, 0x11223344);
	assert_int_equal(kmt_unlock(&w, a), STATUS_SUCCESS);
	kmt_stop(&w);
}

static void offers_priorities_and_residency_return_ntstatus(void **state)
{
	struct kmt_world w;
	D3DKMT_CREATEALLOCATION made = {0};
	D3DKMT_HANDLE a;
	D3DKMT_ALLOCATIONRESIDENCYSTATUS where = 0;
	const UINT priority = D3DDDI_ALLOCATIONPRIORITY_HIGH;
	BOOL discarded = 7;
	void *data;

	kmt_start(&w, state);
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_RESOURCE, &made, &a),
			 STATUS_SUCCESS);
	D3DKMT_QUERYALLOCATIONRESIDENCY ask = {
		.hDevice = w.device, .hResource = made.hResource, .pResidencyStatus = &where};
	assert_int_equal(D3DKMTQueryAllocationResidency(&ask), STATUS_SUCCESS);
	assert_int_equal(where, D3DKMT_ALLOCATIONRESIDENCYSTATUS_NOTRESIDENT);
	const D3DKMT_SETALLOCATIONPRIORITY set = {.hDevice = w.device,
						  .phAllocationList = &a,
						  .AllocationCount = 1,
						  .pPriorities = &priority};
	assert_int_equal(D3DKMTSetAllocationPriority(&set), STATUS_SUCCESS);
	D3DKMT_OFFERALLOCATIONS offer = {.hDevice = w.device,
					 .pResources = &made.hResource,
					 .NumAllocations = 1,
					 .Priority = D3DKMT_OFFER_PRIORITY_LOW};
	assert_int_equal(D3DKMTOfferAllocations(&offer), STATUS_SUCCESS);
	assert_int_equal(kmt_lock(&w, &a, 0, &data), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "LOCK-25");
	const D3DKMT_RECLAIMALLOCATIONS back = {.hDevice = w.device,
						.HandleList = &a,
						.pDiscarded = &discarded,
						.NumAllocations = 1};
	assert_int_equal(D3DKMTReclaimAllocations(&back), STATUS_SUCCESS);
	assert_int_equal(discarded, FALSE);
	assert_int_equal(kmt_lock(&w, &a, 0, &data), STATUS_SUCCESS);
	assert_int_equal(kmt_unlock(&w, a), STATUS_SUCCESS);
	offer.HandleList = &a; /* OFR-02: exactly one of the two arrays */
	assert_int_equal(D3DKMTOfferAllocations(&offer), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "OFR-02");
	kmt_stop(&w);
}

static void pri_01_getallocationpriority_returns_the_value_set(void **state)
{
	const UINT given[2] = {D3DDDI_ALLOCATIONPRIORITY_HIGH, 0x78000001};
	D3DKMT_CREATEALLOCATION made = {0};
	D3DKMT_HANDLE list[2], member;
	UINT read[3] = {7, 7, 7};
	struct kmt_world w;

	kmt_start(&w, state);
	list[0] = kmt_allocate(&w, 64 * KIB);
	list[1] = kmt_allocate(&w, 64 * KIB);
	D3DKMT_GETALLOCATIONPRIORITY ask = {.hDevice = w.device,
					    .phAllocationList = list,
					    .AllocationCount = 2,
					    .pPriorities = read};
	const D3DKMT_SETALLOCATIONPRIORITY set = {.hDevice = w.device,
						  .phAllocationList = list,
						  .AllocationCount = 2,
						  .pPriorities = given};
	assert_int_equal(D3DKMTGetAllocationPriority(&ask), STATUS_SUCCESS);
	assert_int_equal(read[0], D3DDDI_ALLOCATIONPRIORITY_NORMAL); /* the miniport's value */
	assert_int_equal(D3DKMTSetAllocationPriority(&set), STATUS_SUCCESS);
	assert_int_equal(D3DKMTGetAllocationPriority(&ask), STATUS_SUCCESS);
	assert_int_equal(read[0], given[0]);
	assert_int_equal(read[1], given[1]);
	assert_int_equal(read[2], 7);
	/* A resource reports one value. */
	assert_int_equal(kmt_try_allocate(&w, 64 * KIB, CREATE_RESOURCE, &made, &member),
			 STATUS_SUCCESS);
	ask = (D3DKMT_GETALLOCATIONPRIORITY){
		.hDevice = w.device, .hResource = made.hResource, .pPriorities = read};
	assert_int_equal(D3DKMTGetAllocationPriority(&ask), STATUS_SUCCESS);
	assert_int_equal(read[0], D3DDDI_ALLOCATIONPRIORITY_NORMAL);
	assert_int_equal(read[1], given[1]);
	/* PRI-03: a mixed form, too small an array, an invalid handle. */
	ask.phAllocationList = list;
	ask.AllocationCount = 2;
	assert_int_equal(D3DKMTGetAllocationPriority(&ask), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "PRI-03");
	ask.hResource = 0;
	ask.pPriorities = NULL;
	assert_int_equal(D3DKMTGetAllocationPriority(&ask), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "PRI-03");
	ask.pPriorities = read;
	list[1] = 0xDEAD0040;
	read[0] = read[1] = 7;
	assert_int_equal(D3DKMTGetAllocationPriority(&ask), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "PRI-03");
	assert_int_equal(read[0], 7);
	kmt_stop(&w);
}

/* Destroying the device destroys everything of it, also queued work. */
static void destroying_a_device_destroys_its_objects_and_queued_work(void **state)
{
	struct kmt_world w;
	struct vidmm_adapter_statistics after = {.struct_size = sizeof(after)};
	struct client_context c;
	D3DKMT_RENDER args = {0};

	kmt_start(&w, state);
	D3DKMT_HANDLE a = kmt_allocate(&w, 64 * KIB);
	kmt_context(&w, &c);
	client_stall(&c, 1000 * 1000);
	client_reference(&c, a, true);
	assert_int_equal(kmt_render(&c, &args), STATUS_SUCCESS);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = w.device};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	vidmm_adapter_statistics(w.client.adapter, &after);
	assert_int_equal(after.allocations, 0);
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_INVALID_PARAMETER);
	kmt_found(&w, "HND-07");
	kmt_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(hnd_11_a_null_argument_is_refused),
		ON_BOTH(hnd_07_wrong_kind_stale_or_foreign_handles_are_refused),
		ON_BOTH(hnd_08_a_resource_handle_precedes_its_allocation_handles),
		ON_BOTH(q_160_an_allocation_that_the_miniport_refuses_gives_a_reason),
		ON_BOTH(q_160_a_command_that_the_miniport_refuses_gives_a_reason),
		ON_BOTH(unsupported_device_flags_and_state_types_are_refused),
		ON_BOTH(alc_01_a_creation_request_without_content_is_refused),
		ON_BOTH(alc_04_createshared_without_createresource_is_refused),
		ON_BOTH(alc_05_a_nonzero_hresource_on_input_is_refused),
		ON_BOTH(alc_06_destroying_resources_and_allocations),
		ON_BOTH(a_refused_creation_leaves_no_handles_or_objects),
		ON_BOTH(createallocation2_reads_an_array_of_allocationinfo2),
		ON_BOTH(lock_and_unlock_return_ntstatus),
		ON_BOTH(lock_39_d3dkmtlock_does_not_write_gpuvirtualaddress),
		ON_BOTH(render_executes_commands_and_refuses_bad_handles),
		ON_BOTH(a_donotwait_lock_of_a_busy_allocation_fails),
		ON_BOTH(offers_priorities_and_residency_return_ntstatus),
		ON_BOTH(pri_01_getallocationpriority_returns_the_value_set),
		ON_BOTH(destroying_a_device_destroys_its_objects_and_queued_work),
	};

	return cmocka_run_group_tests_name("kmt_allocations", tests, NULL, NULL);
}
