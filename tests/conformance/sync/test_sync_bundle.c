/* SPDX-License-Identifier: MIT */
/*
 * NT handles of resources: which objects they can hold, what opening returns, lifetime, and names
 * (SHR, KMX, ROP, ALC).
 */
#include "sync_bundle.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void shr_06_shr_07_kmx_11_alc_04_only_valid_bundles_are_shared(void **state)
{
	D3DKMT_CREATEALLOCATION global, secret, none;
	struct sync_world s;
	struct bundle b;
	D3DKMT_HANDLE a;
	int nt;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	assert_int_equal(bundle_try_resource(s.device, 0x3, &global, &a), STATUS_SUCCESS);
	assert_int_not_equal(global.hGlobalShare, 0);
	assert_int_equal(bundle_try_resource(s.device, 0x1, &secret, &a), STATUS_SUCCESS);
	assert_int_equal(bundle_try_resource(s.device, 0x41, &none, &a), STATUS_INVALID_PARAMETER);
	sync_found(&s, "ALC-04");
	D3DKMT_CREATEKEYEDMUTEX plain = {0};
	assert_int_equal(D3DKMTCreateKeyedMutex(&plain), STATUS_SUCCESS);
	D3DKMT_HANDLE fence = sync_fence(&s, 0, 0).handle;
	const D3DKMT_HANDLE alone[] = {
		global.hResource,  secret.hResource,    b.allocation, b.keyed,
		plain.hKeyedMutex, plain.hSharedHandle, fence,        global.hGlobalShare,
		s.device};
	for (uint32_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		assert_int_equal(bundle_share_as(&alone[i], 1, NULL, 1, &nt),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "SHR-06");
	}
	const struct {
		D3DKMT_HANDLE objects[4];
		uint32_t count;
		const char *rule;
	} bad[] = {
		{{b.keyed, b.resource, b.sync}, 3, "SHR-07"},
		{{b.sync, b.keyed, b.resource}, 3, "SHR-07"},
		{{b.resource, b.sync, b.keyed}, 3, "SHR-06"},
		{{b.resource, b.resource, b.resource}, 3, "SHR-06"},
		{{b.resource, plain.hKeyedMutex, b.sync},
		 3,
		 "SHR-07"}, /* without NtSecuritySharing */
		{{b.resource, b.keyed, fence}, 3, "SHR-06"},
		{{global.hResource, b.keyed, b.sync}, 3, "SHR-06"},
		{{b.resource, b.keyed}, 2, "SHR-07"},
		{{b.resource, b.keyed, b.sync, b.sync}, 4, "SHR-07"},
		{{b.resource}, 0, "SHR-07"},
	};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(bundle_share_as(bad[i].objects, bad[i].count, "\\b", 1, &nt),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, bad[i].rule);
	}
	/* SHR-37: no failed call has taken the name. */
	const D3DKMT_HANDLE good[] = {b.resource, b.keyed, b.sync};
	assert_int_equal(bundle_share_as(good, 3, "\\b", 0, &nt), STATUS_SUCCESS);
	close(nt);
	close(bundle_share_one(b.resource));
	sync_stop(&s);
}

static void shr_08_descriptor_names_tell_resources_from_sync_objects(void **state)
{
	char path[32], name[64];
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	const int nt[] = {bundle_share(&b), bundle_share_one(b.resource), bundle_share_one(b.sync)};
	for (uint32_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", nt[i]);
		ssize_t length = readlink(path, name, sizeof(name) - 1);
		assert_true(length > 0);
		name[length] = 0;
		assert_non_null(
			strstr(name, i < 2 ? "DxgkSharedResource" : "DxgkSharedSyncObject"));
		close(nt[i]);
	}
	sync_stop(&s);
}

static void shr_28_rop_05_a_bundle_opens_three_objects(void **state)
{
	struct bundle_opening o;
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	bundle_write(s.device, b.allocation, 0xabcd);
	int nt = bundle_share(&b), bare = bundle_share_one(b.resource);
	vidmm_d3dkmt_enter(s.other);
	D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE ask = {.hDevice = s.other_device,
						    .hNtHandle = (HANDLE)(intptr_t)nt,
						    .PrivateRuntimeDataSize = 9};
	assert_int_equal(D3DKMTQueryResourceInfoFromNtHandle(&ask), STATUS_SUCCESS);
	assert_int_equal(ask.NumAllocations, 1);
	assert_int_equal(ask.PrivateRuntimeDataSize, sizeof(BUNDLE_RUNTIME));
	assert_int_equal(ask.TotalPrivateDriverDataSize, sizeof(struct scripted_allocation));
	D3DKMT_GETSHAREDRESOURCEADAPTERLUID luid = {.hNtHandle = (HANDLE)(intptr_t)nt};
	assert_int_equal(D3DKMTGetSharedResourceAdapterLuid(&luid), STATUS_SUCCESS);
	assert_int_not_equal(luid.AdapterLuid.LowPart, 0);
	struct bundle one = bundle_open(s.other_device, nt), two = bundle_open(s.other_device, nt);
	assert_true(one.resource != two.resource && one.keyed != two.keyed &&
		    one.sync != two.sync && one.allocation != two.allocation);
	assert_int_equal(bundle_acquire(one.keyed, 1), STATUS_SUCCESS);
	assert_int_equal(bundle_acquire(two.keyed, 1), STATUS_TIMEOUT);
	assert_int_equal(bundle_release(one.keyed, 2), STATUS_SUCCESS);
	assert_int_equal(sync_signal(s.other_device, two.sync, 9), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(bundle_acquire(b.keyed, 2), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.device, b.sync, 9), STATUS_SUCCESS);
	assert_int_equal(bundle_read(s.device, bundle_open(s.device, nt).allocation), 0xabcd);
	/* A resource alone: no other objects, and the size is 0. */
	bundle_prepare(&o, s.device, bare);
	o.args.pKeyedMutexPrivateRuntimeData = o.runtime;
	o.args.KeyedMutexPrivateRuntimeDataSize = 5;
	assert_int_equal(D3DKMTOpenResourceFromNtHandle(&o.args), STATUS_SUCCESS);
	assert_int_equal(o.args.hKeyedMutex, 0);
	assert_int_equal(o.args.hSyncObject, 0);
	assert_int_equal(o.args.KeyedMutexPrivateRuntimeDataSize, 0);
	assert_int_equal(o.args.TotalPrivateDriverDataBufferSize,
			 sizeof(struct scripted_allocation));
	close(nt);
	close(bare);
	sync_stop(&s);
}

/* ROP-01, ROP-02 and KMX-08 apply to NT handles too; a refused opening leaves nothing behind. */
static void rop_01_rop_02_kmx_08_openings_with_wrong_sizes_are_refused(void **state)
{
	struct bundle_opening o;
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	int nt = bundle_share(&b);
	for (uint32_t i = 0; i < 8; i++) {
		static const char *const rule[] = {"ROP-01", "ROP-01", "ROP-02", "ROP-02",
						   "KMX-08", "KMX-09", "SHR-13", "HND-07"};
		NTSTATUS expected = STATUS_INVALID_PARAMETER;

		bundle_prepare(&o, s.device, nt);
		switch (i) {
		case 0:
			o.args.NumAllocations = 2;
			break;
		case 1:
			o.args.PrivateRuntimeDataSize++;
			break;
		case 2:
			o.args.pTotalPrivateDriverDataBuffer = NULL;
			break;
		case 3:
			o.args.TotalPrivateDriverDataBufferSize = 1;
			expected = STATUS_NO_MEMORY;
			break;
		case 4:
			o.args.pKeyedMutexPrivateRuntimeData = o.runtime;
			o.args.KeyedMutexPrivateRuntimeDataSize = 5; /* it has six */
			break;
		case 5:
			o.args.KeyedMutexPrivateRuntimeDataSize = 6;
			break;
		case 6:
			o.args.hNtHandle = (HANDLE)(uintptr_t)9999;
			expected = STATUS_INVALID_HANDLE;
			break;
		case 7:
			o.args.hDevice = 0;
			break;
		}
		assert_int_equal(D3DKMTOpenResourceFromNtHandle(&o.args), expected);
		sync_found(&s, rule[i]);
		assert_true(o.args.hResource == 0xdead && o.args.hKeyedMutex == 0xdead &&
			    o.args.hSyncObject == 0xdead);
	}
	bundle_prepare(&o, s.device, nt);
	o.args.pKeyedMutexPrivateRuntimeData = o.runtime;
	o.args.KeyedMutexPrivateRuntimeDataSize = 6;
	assert_int_equal(D3DKMTOpenResourceFromNtHandle(&o.args), STATUS_SUCCESS);
	assert_int_equal(D3DKMTOpenResourceFromNtHandle(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	close(nt);
	sync_stop(&s);
}

static void shr_29_rop_06_the_nt_handle_alone_keeps_all_three_objects(void **state)
{
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	bundle_write(s.device, b.allocation, 77);
	int nt = bundle_share(&b);
	assert_int_equal(bundle_destroy_resource(s.device, b.resource), STATUS_SUCCESS);
	assert_int_equal(bundle_destroy_keyed(b.keyed), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(b.sync), STATUS_SUCCESS);
	b = bundle_open(s.device, nt);
	assert_int_equal(bundle_read(s.device, b.allocation), 77);
	assert_int_equal(bundle_acquire(b.keyed, 1), STATUS_SUCCESS);
	assert_int_equal(bundle_release(b.keyed, 5), STATUS_SUCCESS);
	/* the process still has handles of all three, and the device */
	vidmm_process_close(s.process);
	assert_int_equal(vidmm_process_open(s.w.client.host, "three", &s.process), 0);
	vidmm_d3dkmt_attach(s.process);
	vidmm_d3dkmt_enter(s.other);
	b = bundle_open(s.other_device, nt);
	assert_int_equal(bundle_acquire(b.keyed, 5), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.other_device, b.sync, 7), STATUS_SUCCESS);
	/* The NT handle is closed first now; the opened objects remain. */
	close(nt);
	assert_int_equal(bundle_release(b.keyed, 1), STATUS_SUCCESS);
	assert_int_equal(bundle_destroy_resource(s.other_device, b.resource), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	sync_stop(&s);
}

static uint64_t allocations(struct sync_world *s)
{
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};

	vidmm_settle(s->w.client.host);
	vidmm_adapter_statistics(s->w.client.adapter, &figures);
	return figures.allocations;
}

/*
 * ROP-06: the last handle frees the memory. There is no notification of its close, so it is polled.
 */
static void rop_06_the_last_handle_frees_the_memory(void **state)
{
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	uint64_t before = allocations(&s);
	bundle_make(&s, &b);
	int nt = bundle_share(&b), more = bundle_share_one(b.resource);
	assert_int_equal(bundle_destroy_resource(s.device, b.resource), STATUS_SUCCESS);
	assert_int_equal(allocations(&s), before + 1);
	close(nt);
	close(bundle_share_one(b.sync)); /* sharing looks for closed NT handles */
	assert_int_equal(allocations(&s), before + 1);
	close(more);
	close(bundle_share_one(b.sync));
	assert_int_equal(allocations(&s), before);
	sync_stop(&s);
}

/* A resource without local handles, whose NT handle is open. */
static int share_and_destroy(struct sync_world *s)
{
	D3DKMT_CREATEALLOCATION args;
	D3DKMT_HANDLE allocation;

	assert_int_equal(bundle_try_resource(s->device, BUNDLE_NT_RESOURCE, &args, &allocation),
			 STATUS_SUCCESS);
	int nt = bundle_share_one(args.hResource);
	assert_int_equal(bundle_destroy_resource(s->device, args.hResource), STATUS_SUCCESS);
	return nt;
}

static void q_260_closed_nt_handles_are_found_when_a_resource_or_a_process_ends(void **state)
{
	struct vidmm_process *third;
	D3DKMT_CREATEALLOCATION args;
	D3DKMT_HANDLE allocation;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	uint64_t before = allocations(&s);
	assert_int_equal(bundle_try_resource(s.device, BUNDLE_NT_RESOURCE, &args, &allocation),
			 STATUS_SUCCESS);
	close(bundle_share_one(args.hResource));
	assert_int_equal(bundle_destroy_resource(s.device, args.hResource), STATUS_SUCCESS);
	assert_int_equal(allocations(&s), before);

	int nt = share_and_destroy(&s);
	assert_int_equal(vidmm_process_open(s.w.client.host, "three", &third), 0);
	assert_int_equal(allocations(&s), before + 1); /* SHR-12: the handle keeps it */
	close(nt);
	vidmm_process_close(third);
	assert_int_equal(allocations(&s), before);

	close(share_and_destroy(&s));
	assert_int_equal(vidmm_process_open(s.w.client.host, "four", &third), 0);
	assert_int_equal(allocations(&s), before);
	vidmm_process_close(third);
	sync_stop(&s);
}

static void shr_30_local_handles_are_destroyed_in_any_order(void **state)
{
	static const uint8_t order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	int nt = bundle_share(&b);
	for (uint32_t i = 0; i < 6; i++) {
		struct bundle o = bundle_open(s.device, nt);

		for (uint32_t n = 0; n < 3; n++)
			assert_int_equal(order[i][n] == 0
						 ? bundle_destroy_resource(s.device, o.resource)
					 : order[i][n] == 1 ? bundle_destroy_keyed(o.keyed)
							    : sync_destroy(o.sync),
					 STATUS_SUCCESS);
	}
	close(nt);
	sync_stop(&s);
}

static NTSTATUS open_keyed(int nt, uint32_t bytes)
{
	char data[8] = "before";
	D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE args = {.hNtHandle = (HANDLE)(intptr_t)nt,
						  .hKeyedMutex = 0xdead,
						  .pPrivateRuntimeData = data,
						  .PrivateRuntimeDataSize = bytes};
	NTSTATUS status = D3DKMTOpenKeyedMutexFromNtHandle(&args);

	assert_string_equal(data, "before"); /* KMX-08: it is not written */
	assert_int_equal(args.hKeyedMutex, 0xdead);
	return status;
}

static void kmx_10_shr_15_shr_27_nt_handles_of_another_kind_are_refused(void **state)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE open_sync = {0};
	struct bundle_opening o;
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	int nt = bundle_share(&b), bare = bundle_share_one(b.resource),
	    fence = bundle_share_one(b.sync);
	vidmm_d3dkmt_enter(s.other);
	/* whether the private data are of the mutex's size, or absent */
	for (uint32_t bytes = 0; bytes <= 6; bytes += 6) {
		assert_int_equal(open_keyed(nt, bytes), STATUS_OBJECT_TYPE_MISMATCH);
		sync_found(&s, "KMX-10");
	}
	assert_int_equal(open_keyed(bare, 0), STATUS_OBJECT_TYPE_MISMATCH);
	sync_found(&s, "KMX-10");
	assert_int_equal(open_keyed(fence, 0), STATUS_OBJECT_TYPE_MISMATCH);
	sync_found(&s, "KMX-10");
	/* The keyed mutex of the bundle is opened with its resource. */
	struct bundle whole = bundle_open(s.other_device, nt);
	assert_int_equal(bundle_acquire(whole.keyed, 1), STATUS_SUCCESS);
	assert_int_equal(D3DKMTOpenKeyedMutexFromNtHandle(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	open_sync.hNtHandle = (HANDLE)(intptr_t)nt; /* SHR-27 */
	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle(&open_sync), STATUS_OBJECT_TYPE_MISMATCH);
	sync_found(&s, "SHR-15");
	bundle_prepare(&o, s.other_device, fence);
	assert_int_equal(D3DKMTOpenResourceFromNtHandle(&o.args), STATUS_OBJECT_TYPE_MISMATCH);
	sync_found(&s, "SHR-15");
	close(nt);
	assert_int_equal(open_keyed(nt, 0), STATUS_INVALID_HANDLE);
	sync_found(&s, "SHR-13");
	close(bare);
	close(fence);
	vidmm_d3dkmt_enter(NULL);
	sync_stop(&s);
}

static void shr_34_alf_35_no_allocation_is_added_to_a_shared_resource(void **state)
{
	D3DKMT_CREATEALLOCATION args;
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	close(bundle_share_one(b.resource));
	struct scripted_allocation spec = {.size_bytes = 4 * KIB, .read_set = 1, .write_set = 1};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &spec,
				       .PrivateDriverDataSize = sizeof(spec)};
	args = (D3DKMT_CREATEALLOCATION){.hDevice = s.device,
					 .hResource = b.resource,
					 .NumAllocations = 1,
					 .pAllocationInfo2 = &info};
	assert_int_equal(D3DKMTCreateAllocation2(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "ALC-05");
	sync_stop(&s);
}

static void shr_21_shr_24_resources_are_opened_by_name(void **state)
{
	D3DKMT_OPENNTHANDLEFROMNAME none = {.dwDesiredAccess = 1};
	struct sync_world s;
	struct bundle b;
	int nt, again, bad;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	assert_int_equal(bundle_share_as(&b.resource, 1, "\\Surfaces\\One", 0x20000, &nt), 0);
	assert_int_equal(bundle_share_as(&b.sync, 1, "\\surfaces\\ONE", 0x20000, &bad),
			 STATUS_OBJECT_NAME_COLLISION);
	sync_found(&s, "SHR-24");
	assert_int_equal(bundle_by_name(false, "\\SURFACES\\one", 0x10000000, &again), 0);
	(void)bundle_open(s.device, again);
	assert_int_equal(bundle_by_name(false, "\\Surfaces\\Two", 1, &bad),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	sync_found(&s, "SHR-21");
	assert_int_equal(bundle_by_name(false, "\\Surfaces\\One", 0, &bad), STATUS_ACCESS_DENIED);
	sync_found(&s, "SHR-21");
	assert_int_equal(bundle_by_name(true, "\\Surfaces\\One", 1, &bad),
			 STATUS_OBJECT_TYPE_MISMATCH);
	sync_found(&s, "SHR-21");
	assert_int_equal(D3DKMTOpenNtHandleFromName(&none), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	OBJECT_ATTRIBUTES nameless = {.Length = sizeof(nameless)};
	none.pObjAttrib = &nameless;
	assert_int_equal(D3DKMTOpenNtHandleFromName(&none), STATUS_OBJECT_NAME_INVALID);
	sync_found(&s, "SHR-21");
	close(nt);
	close(again);
	assert_int_equal(bundle_by_name(false, "\\Surfaces\\One", 1, &bad),
			 STATUS_OBJECT_NAME_NOT_FOUND); /* SHR-23 */
	sync_found(&s, "SHR-21");
	sync_stop(&s);
}

static void shr_25_a_name_query_returns_the_full_path(void **state)
{
	static const char path[] = "\\BaseNamedObjects\\Fence";
	uint16_t name[64] = {0};
	struct sync_world s;
	struct bundle b;
	int nt;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	assert_int_equal(bundle_share_as(&b.sync, 1, path, 1, &nt), STATUS_SUCCESS);
	int unnamed = bundle_share_one(b.resource), event = sync_event();
	uint32_t units = 3;
	assert_int_equal(vidmm_nt_handle_name(s.w.client.host, nt, name, &units),
			 STATUS_BUFFER_TOO_SMALL);
	assert_int_equal(units, sizeof(path) - 1);
	assert_int_equal(name[0], 0);
	units = 64;
	assert_int_equal(vidmm_nt_handle_name(s.w.client.host, nt, name, &units), 0);
	assert_int_equal(units, sizeof(path) - 1);
	for (uint32_t i = 0; i < units; i++)
		assert_int_equal(name[i], path[i]);
	assert_int_equal(vidmm_nt_handle_name(s.w.client.host, unnamed, name, &units), 0);
	assert_int_equal(units, 0);
	units = 64;
	assert_int_equal(vidmm_nt_handle_name(s.w.client.host, event, name, &units),
			 STATUS_INVALID_HANDLE);
	assert_int_equal(vidmm_nt_handle_name(s.w.client.host, -1, name, &units),
			 STATUS_INVALID_PARAMETER);
	close(event);
	close(unnamed);
	close(nt);
	sync_stop(&s);
}

/* The first version of the opening call has no parameter for access rights. */
static D3DKMT_HANDLE open_sync(int nt)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE args = {.hNtHandle = (HANDLE)(intptr_t)nt};

	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle(&args), STATUS_SUCCESS);
	return args.hSyncObject;
}

/* The same for waits and signals in a context's queue. */
static void queue_both(struct sync_world *s, D3DKMT_HANDLE fence, bool waits, bool signals)
{
	D3DKMT_CREATECONTEXT context = {.hDevice = s->device};
	const uint64_t value = 5;

	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {.hContext = context.hContext,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &fence,
								 .MonitoredFenceValueArray =
									 &value};
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {.hContext = context.hContext,
								  .ObjectCount = 1,
								  .ObjectHandleArray = &fence,
								  .MonitoredFenceValueArray =
									  &value};
	assert_int_equal(D3DKMTWaitForSynchronizationObjectFromGpu(&wait),
			 waits ? STATUS_SUCCESS : STATUS_ACCESS_DENIED);
	if (!waits)
		sync_found(s, "SHR-10");
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromGpu(&signal),
			 signals ? STATUS_SUCCESS : STATUS_ACCESS_DENIED);
	if (!signals)
		sync_found(s, "SHR-10");
	const D3DKMT_DESTROYCONTEXT end = {.hContext = context.hContext};
	assert_int_equal(D3DKMTDestroyContext(&end), STATUS_SUCCESS);
}

static void shr_10_waits_and_signals_need_the_access_of_the_nt_handle(void **state)
{
	static const struct {
		uint32_t access;
		bool waits, signals;
	} row[] = {{0, false, false},       {1, true, false},       {2, false, true},
		   {0x20000, false, false}, {0x1F0003, true, true}, {0x10000000, true, true},
		   {0x02000000, true, true}};

	for (uint32_t enforced = 0; enforced < 2; enforced++) {
		const struct client_options options = {.enforce_sharing_rights = enforced};
		struct sync_world s;
		int nt;

		sync_start_with(&s, state, sync_3_0, &options);
		D3DKMT_HANDLE fence = sync_fence(&s, 3, 5).handle;
		for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
			assert_int_equal(bundle_share_as(&fence, 1, "\\f", row[i].access, &nt), 0);
			D3DKMT_HANDLE f = open_sync(nt);
			bool waits = row[i].waits || !enforced,
			     signals = row[i].signals || !enforced;

			assert_int_equal(sync_wait(s.device, f, 5),
					 waits ? STATUS_SUCCESS : STATUS_ACCESS_DENIED);
			if (!waits)
				sync_found(&s, "SHR-10");
			assert_int_equal(sync_signal(s.device, f, 5),
					 signals ? STATUS_SUCCESS : STATUS_ACCESS_DENIED);
			if (!signals)
				sync_found(&s, "SHR-10");
			queue_both(&s, f, waits, signals);
			close(nt);
		}
		/*
		 * Each handle has its own access, also if opened by one name; the creator's handle
		 * was created without access.
		 */
		int by_name;
		assert_int_equal(bundle_share_as(&fence, 1, "\\f", 1, &nt), STATUS_SUCCESS);
		assert_int_equal(bundle_by_name(true, "\\f", 2, &by_name), STATUS_SUCCESS);
		assert_int_equal(sync_signal(s.device, open_sync(by_name), 6), STATUS_SUCCESS);
		assert_int_equal(sync_wait(s.device, open_sync(nt), 6), STATUS_SUCCESS);
		assert_int_equal(sync_signal(s.device, fence, 7), STATUS_SUCCESS);
		close(nt);
		close(by_name);
		sync_stop(&s);
	}
}

static void shr_36_share_object_with_host_is_not_supported(void **state)
{
	D3DKMT_SHAREOBJECTWITHHOST args = {.hVailProcessNtHandle = 0xdead};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	args.hDevice = s.device;
	args.hObject = sync_fence(&s, 3, 0).handle;
	assert_int_equal(D3DKMTShareObjectWithHost(&args), STATUS_NOT_SUPPORTED);
	assert_int_equal(args.hVailProcessNtHandle, 0xdead);
	assert_int_equal(D3DKMTShareObjectWithHost(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	sync_stop(&s);
}

/* One acquire in its own thread. */
struct acquirer {
	struct vidmm_process *process;
	D3DKMT_HANDLE keyed;
	NTSTATUS result;
	_Atomic uint32_t done;
	struct vidmm_thread *thread;
};

static void acquire_in_thread(void *argument)
{
	struct acquirer *a = argument;

	vidmm_d3dkmt_enter(a->process);
	a->result = bundle_await(a->keyed, 99);
	atomic_store(&a->done, 1);
	vidmm_d3dkmt_enter(NULL);
}

static void start_acquirer(struct sync_world *s, struct acquirer *a, struct vidmm_process *process,
			   D3DKMT_HANDLE keyed)
{
	*a = (struct acquirer){.process = process, .keyed = keyed};
	assert_int_equal(
		vidmm_thread_create(s->w.client.host, "acquires", acquire_in_thread, a, &a->thread),
		0);
	vidmm_settle(s->w.client.host);
	assert_int_equal(a->done, 0);
}

static NTSTATUS join(struct acquirer *a)
{
	vidmm_thread_join(a->thread);
	return a->result;
}

static void kmx_23_a_stopping_adapter_ends_acquires_with_device_removed(void **state)
{
	struct acquirer creator, opener;
	struct bundle_opening o;
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	int nt = bundle_share(&b);
	vidmm_d3dkmt_enter(s.other);
	struct bundle theirs = bundle_open(s.other_device, nt);
	vidmm_d3dkmt_enter(NULL);
	start_acquirer(&s, &creator, s.process, b.keyed);
	start_acquirer(&s, &opener, s.other, theirs.keyed);
	vidmm_adapter_stop(s.w.client.adapter);
	s.w.client.adapter = NULL;
	assert_int_equal(join(&creator), STATUS_DEVICE_REMOVED);
	assert_int_equal(join(&opener), STATUS_DEVICE_REMOVED);
	assert_int_equal(bundle_acquire(b.keyed, 1), STATUS_DEVICE_REMOVED); /* any later acquire */
	/* The resource of the bundle is destroyed. */
	vidmm_d3dkmt_enter(s.other);
	D3DKMT_GETSHAREDRESOURCEADAPTERLUID luid = {.hNtHandle = (HANDLE)(intptr_t)nt};
	assert_int_equal(D3DKMTGetSharedResourceAdapterLuid(&luid), STATUS_INVALID_PARAMETER);
	sync_found(&s, "ROP-07");
	bundle_prepare(&o, s.other_device, nt);
	assert_int_not_equal(D3DKMTOpenResourceFromNtHandle(&o.args), STATUS_SUCCESS);
	client_forget(&s.w.client);
	assert_int_equal(bundle_destroy_keyed(theirs.keyed), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	close(nt);
	vidmm_process_close(s.process);
	vidmm_process_close(s.other);
	vidmm_process_close(s.w.device.process);
	client_stop(&s.w.client);
	scripted_destroy(s.w.m);
}

/*
 * SYN-14: the mutex belongs to the process. A thread that waits through a handle opened with a
 * device keeps waiting after that device is destroyed.
 */
static void kmx_23_syn_14_destroying_the_device_does_not_end_acquires(void **state)
{
	struct acquirer opener;
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	int nt = bundle_share(&b);
	D3DKMT_HANDLE device = sync_open_device(&s);
	struct bundle o = bundle_open(device, nt);
	start_acquirer(&s, &opener, s.process, o.keyed);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = device};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	vidmm_settle(s.w.client.host);
	assert_int_equal(opener.done, 0);
	assert_int_equal(bundle_acquire(b.keyed, 1), STATUS_SUCCESS);
	assert_int_equal(bundle_release(b.keyed, 99), STATUS_SUCCESS);
	assert_int_equal(join(&opener), STATUS_SUCCESS);
	assert_int_equal(bundle_release(o.keyed, 1), STATUS_SUCCESS);
	close(nt);
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(shr_06_shr_07_kmx_11_alc_04_only_valid_bundles_are_shared),
		ON_BOTH(shr_08_descriptor_names_tell_resources_from_sync_objects),
		ON_BOTH(shr_28_rop_05_a_bundle_opens_three_objects),
		ON_BOTH(rop_01_rop_02_kmx_08_openings_with_wrong_sizes_are_refused),
		ON_BOTH(shr_29_rop_06_the_nt_handle_alone_keeps_all_three_objects),
		ON_BOTH(rop_06_the_last_handle_frees_the_memory),
		ON_BOTH(q_260_closed_nt_handles_are_found_when_a_resource_or_a_process_ends),
		ON_BOTH(shr_30_local_handles_are_destroyed_in_any_order),
		ON_BOTH(kmx_10_shr_15_shr_27_nt_handles_of_another_kind_are_refused),
		ON_BOTH(shr_34_alf_35_no_allocation_is_added_to_a_shared_resource),
		ON_BOTH(shr_21_shr_24_resources_are_opened_by_name),
		ON_BOTH(shr_25_a_name_query_returns_the_full_path),
		ON_BOTH(shr_10_waits_and_signals_need_the_access_of_the_nt_handle),
		ON_BOTH(shr_36_share_object_with_host_is_not_supported),
		ON_BOTH(kmx_23_a_stopping_adapter_ends_acquires_with_device_removed),
		ON_BOTH(kmx_23_syn_14_destroying_the_device_does_not_end_acquires),
	};

	return cmocka_run_group_tests_name("sync bundle", tests, NULL, NULL);
}
