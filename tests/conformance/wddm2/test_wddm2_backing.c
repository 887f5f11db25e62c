/* SPDX-License-Identifier: MIT */
/* ShareBackingStoreWithKmd (ALF-30): the miniport and the client work on the same pages. */
#include "wddm2_world.h"

#include <string.h>

#define SHARE 0x1u
#define BYTES (64 * KIB)

/* The miniport: the address of its allocation, and what it read there just before the end. */
struct kmd {
	uint32_t *store;
	uint32_t seen_at_end;
	bool ended;
};

static void watch(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct kmd *kmd = context;

	(void)m;
	if (call->ddi == VIDMM_DDI_SET_ALLOCATION_BACKING_STORE)
		kmd->store = call->in.backing_store.pBackingStore;
	if (call->ddi == VIDMM_DDI_DESTROY_ALLOCATION && kmd->store) {
		kmd->seen_at_end = kmd->store[0];
		kmd->ended = true;
	}
}

static void wddm3_0(struct scripted_miniport *m)
{
	wddm2_1(m); /* with the validation of updates */
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
	m->settings.table.DxgkDdiSetAllocationBackingStore = scripted_set_backing_store;
	m->settings.complete_at_once = true;
}

static void without_the_entry(struct scripted_miniport *m)
{
	wddm3_0(m);
	m->settings.table.DxgkDdiSetAllocationBackingStore = NULL;
}

static bool is_enabled(struct world *w, DXGK_FEATURE_ID id)
{
	DXGKARGCB_ISFEATUREENABLED is = {w->m->services.DeviceHandle, id, 2};
	DXGKARGCB_QUERYFEATURESUPPORT query = {w->m->services.DeviceHandle, id,
					       DXGK_FEATURE_SUPPORT_STABLE, 2};

	assert_int_equal(w->m->services.DxgkCbIsFeatureEnabled(&is), STATUS_SUCCESS);
	assert_int_equal(w->m->services.DxgkCbQueryFeatureSupport(&query), STATUS_SUCCESS);
	assert_int_equal(query.Enabled, is.Enabled);
	return is.Enabled == TRUE;
}

static void start(struct world *w, void **state, world_setup *setup, uint32_t features,
		  struct kmd *kmd)
{
	const struct client_options options = {.features = features};

	world_start_with(w, state, setup, &options);
	world_open(w);
	w->m->hook = watch;
	w->m->hook_context = kmd;
}

/* With the feature enabled, and a miniport that queries it. */
static void start_enabled(struct world *w, void **state, struct kmd *kmd)
{
	start(w, state, wddm3_0, VIDMM_FEATURE_SHARE_BACKING_STORE, kmd);
	assert_true(is_enabled(w, DXGK_FEATURE_SHARE_BACKING_STORE_WITH_KMD));
}

/* *resource: 0 on input; the new resource on output. */
static HRESULT try_create(struct world *w, char *resource, D3DKMT_HANDLE *handle)
{
	struct scripted_allocation spec = {.size_bytes = BYTES,
					   .flags = PHYSICAL,
					   .read_set = WORLD_APERTURE,
					   .write_set = WORLD_APERTURE,
					   .flags2 = SHARE};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {
		.hResource = resource, .NumAllocations = 1, .pAllocationInfo = &info};

	if (!*resource)
		assert_int_equal(vidmm_resource_set_shared(w->device.device, resource), 0);
	*resource = 1;
	HRESULT result = w->device.cb->pfnAllocateCb(w->device.handle, &args);
	*handle = info.hAllocation;
	return result;
}

static void destroy(struct world *w, void *resource)
{
	const D3DDDICB_DEALLOCATE args = {.hResource = resource};

	assert_int_equal(w->device.cb->pfnDeallocateCb(w->device.handle, &args), S_OK);
	wddm2_run(w);
}

static void alf_30_sharing_is_refused_until_the_host_enables_the_feature(void **state)
{
	struct kmd kmd = {0};
	char resource = 0;
	struct world w;
	D3DKMT_HANDLE a;

	start(&w, state, wddm3_0, 0, &kmd);
	assert_false(is_enabled(&w, DXGK_FEATURE_SHARE_BACKING_STORE_WITH_KMD));
	assert_int_equal(try_create(&w, &resource, &a), E_INVALIDARG);
	world_expect_finding(&w, "ALF-30");
	world_stop(&w);
	/* Enabled, but the miniport uses it without having queried it. */
	resource = 0;
	start(&w, state, wddm3_0, VIDMM_FEATURE_SHARE_BACKING_STORE, &kmd);
	assert_int_equal(try_create(&w, &resource, &a), E_INVALIDARG);
	assert_non_null(strstr(w.client.finding[0], "has not queried it"));
	world_expect_finding(&w, "ALF-30");
	for (int id = 0; id < 34; id++)
		assert_int_equal(is_enabled(&w, (DXGK_FEATURE_ID)id),
				 id == DXGK_FEATURE_SHARE_BACKING_STORE_WITH_KMD);
	assert_null(kmd.store);
	assert_int_equal(try_create(&w, &resource, &a), S_OK);
	world_stop(&w);
}

static void alf_30_setallocationbackingstore_is_called_during_creation(void **state)
{
	struct kmd kmd = {0};
	char resource = 0;
	struct world w;
	D3DKMT_HANDLE a;

	start_enabled(&w, state, &kmd);
	scripted_forget(w.m);
	assert_int_equal(try_create(&w, &resource, &a), S_OK);
	assert_string_equal(scripted_order(w.m),
			    "create_allocation set_allocation_backing_store open_allocation");
	const DXGKARG_SETALLOCATIONBACKINGSTORE *in =
		&scripted_last(w.m, VIDMM_DDI_SET_ALLOCATION_BACKING_STORE)->in.backing_store;
	assert_non_null(in->hDriverAllocation);
	for (uint32_t i = 0; i < BYTES / 4; i++)
		assert_int_equal(kmd.store[i], 0);
	destroy(&w, &resource);
	assert_int_equal(scripted_last(w.m, VIDMM_DDI_DESTROY_ALLOCATION) != NULL, 1);
	world_stop(&w);
}

/* Wherever it is resident for the GPU, and also after an offer. */
static void alf_30_miniport_and_client_see_each_others_writes(void **state)
{
	struct kmd kmd = {0};
	char resource = 0;
	struct world w;
	D3DKMT_HANDLE a;

	start_enabled(&w, state, &kmd);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(try_create(&w, &resource, &a), S_OK);
	client_write(&w.device, a, BYTES, 100);
	assert_int_equal(kmd.store[5], 105);
	kmd.store[5] = 7;
	assert_int_equal(world_word(&w, a, 20), 7);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(world_word(&w, a, 20), 7);
	kmd.store[6] = 8;
	assert_int_equal(world_word(&w, a, 24), 8);
	world_submit_write(&w.context, a, 28, 9); /* by the GPU */
	world_run(&w);
	assert_int_equal(kmd.store[7], 9);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	wddm2_run(&w);
	kmd.store[8] = 10;
	assert_int_equal(world_word(&w, a, 32), 10);
	destroy(&w, &resource);
	assert_true(kmd.ended);
	assert_int_equal(kmd.seen_at_end, 100);
	world_stop(&w);
}

/* Neither memory pressure nor an offer frees it. */
static void alf_30_an_offer_does_not_discard_the_shared_store(void **state)
{
	struct kmd kmd = {0};
	char resource = 0;
	struct world w;
	D3DKMT_HANDLE a, big;

	start_enabled(&w, state, &kmd);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(try_create(&w, &resource, &a), S_OK);
	client_write(&w.device, a, BYTES, 100);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(wddm2_evict(&w.device, a, EVICT_ONLY_IF_NECESSARY), S_OK);
	D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = &a, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
	big = wddm2_allocate(&w.device, w.m->settings.segment[1].size_bytes, WORLD_APERTURE);
	wddm2_make(&w, &w.device, &queue, &big, 1);
	assert_int_equal(kmd.store[5], 105);
	kmd.store[5] = 7;
	BOOL discarded = 2;
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = &a, .NumAllocations = 1, .pDiscarded = &discarded};
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &reclaim), S_OK);
	assert_int_equal(world_word(&w, a, 20), 7);
	wddm2_stop(&w);
}

/* In a memory segment the GPU would use a copy that the miniport does not see. */
static void alf_30_pri_15_an_update_keeps_the_shared_store_in_apertures(void **state)
{
	static const struct {
		uint32_t set;
		HRESULT result;
	} updates[] = {
		{WORLD_APERTURE, S_OK},
		{WORLD_APERTURE | WORLD_MEMORY, E_INVALIDARG},
		{WORLD_MEMORY, E_INVALIDARG},
	};
	struct kmd kmd = {0};
	char resource = 0;
	struct world w;
	D3DKMT_HANDLE a;

	start_enabled(&w, state, &kmd);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	assert_int_equal(try_create(&w, &resource, &a), S_OK);
	for (uint32_t i = 0; i < sizeof(updates) / sizeof(updates[0]); i++) {
		D3DDDI_UPDATEALLOCPROPERTY args = {.hPagingQueue = queue.hPagingQueue,
						   .hAllocation = a,
						   .SupportedSegmentSet = updates[i].set,
						   .PropertyMaskValue = 0x2};

		assert_int_equal(w.device.cb->pfnUpdateAllocationPropertyCb(w.device.handle, &args),
				 updates[i].result);
		if (updates[i].result != S_OK)
			world_expect_finding(&w, "PRI-15");
	}
	wddm2_make(&w, &w.device, &queue, &a, 1);
	kmd.store[6] = 8;
	world_submit_use(&w.context, a);
	world_run(&w);
	assert_int_equal(world_gpu_word(&w, 24), 8);
	wddm2_stop(&w);
}

/*
 * The miniport refuses: nothing is created, and the address is valid until DestroyAllocation
 * returns.
 */
static void alf_30_a_miniport_that_refuses_fails_the_creation(void **state)
{
	struct kmd kmd = {0};
	char resource = 0;
	struct world w;
	D3DKMT_HANDLE a;

	start_enabled(&w, state, &kmd);
	scripted_fail(w.m, VIDMM_DDI_SET_ALLOCATION_BACKING_STORE, STATUS_NO_MEMORY, 1);
	scripted_forget(w.m);
	assert_int_equal(try_create(&w, &resource, &a), E_OUTOFMEMORY);
	assert_int_equal(a, 0);
	assert_string_equal(scripted_order(w.m),
			    "create_allocation set_allocation_backing_store destroy_allocation");
	assert_true(kmd.ended);
	assert_int_equal(w.m->live_allocations, 0);
	scripted_fail(w.m, VIDMM_DDI_SET_ALLOCATION_BACKING_STORE, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(try_create(&w, &resource, &a), E_INVALIDARG);
	world_expect_finding(&w, "ALF-30");
	/* After SetAllocationBackingStore: the creation fails for another reason. */
	kmd = (struct kmd){0};
	scripted_fail(w.m, VIDMM_DDI_OPEN_ALLOCATION, STATUS_NO_MEMORY, 1);
	assert_int_equal(try_create(&w, &resource, &a), E_OUTOFMEMORY);
	assert_true(kmd.ended);
	assert_int_equal(kmd.seen_at_end, 0);
	assert_int_equal(try_create(&w, &resource, &a), S_OK);
	world_stop(&w);
}

static void alf_30_creation_fails_if_the_miniport_lacks_the_ddi(void **state)
{
	struct kmd kmd = {0};
	char resource = 0;
	struct world w;
	D3DKMT_HANDLE a;

	start(&w, state, without_the_entry, VIDMM_FEATURE_SHARE_BACKING_STORE, &kmd);
	assert_true(is_enabled(&w, DXGK_FEATURE_SHARE_BACKING_STORE_WITH_KMD));
	assert_int_equal(try_create(&w, &resource, &a), E_INVALIDARG);
	assert_non_null(strstr(w.client.finding[0], "DxgkDdiSetAllocationBackingStore"));
	world_expect_finding(&w, "ALF-30");
	world_stop(&w);
}

/* Neither an invalid device nor an invalid state is accepted. */
static void feature_queries_with_invalid_arguments_are_refused(void **state)
{
	struct kmd kmd = {0};
	struct world w;

	start_enabled(&w, state, &kmd);
	DXGKARGCB_QUERYFEATURESUPPORT query = {w.m->services.DeviceHandle, 5, 4, 2};
	assert_int_equal(w.m->services.DxgkCbQueryFeatureSupport(&query), STATUS_INVALID_PARAMETER);
	assert_int_equal(w.m->services.DxgkCbQueryFeatureSupport(NULL), STATUS_INVALID_PARAMETER);
	DXGKARGCB_ISFEATUREENABLED is = {NULL, 5, 2};
	assert_int_equal(w.m->services.DxgkCbIsFeatureEnabled(&is), STATUS_INVALID_PARAMETER);
	assert_int_equal(is.Enabled, 2);
	world_stop(&w);
	const struct client_options options = {.features = 0x2}; /* HWFLIPQUEUE is not built */
	struct client client = {.kind = w.kind};
	struct client_options start_options = options;
	start_options.kind = w.kind;
	assert_int_equal(client_try_start(&client, &start_options), STATUS_NOT_SUPPORTED);
	client_stop(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(alf_30_sharing_is_refused_until_the_host_enables_the_feature),
		ON_BOTH(alf_30_setallocationbackingstore_is_called_during_creation),
		ON_BOTH(alf_30_miniport_and_client_see_each_others_writes),
		ON_BOTH(alf_30_an_offer_does_not_discard_the_shared_store),
		ON_BOTH(alf_30_pri_15_an_update_keeps_the_shared_store_in_apertures),
		ON_BOTH(alf_30_a_miniport_that_refuses_fails_the_creation),
		ON_BOTH(alf_30_creation_fails_if_the_miniport_lacks_the_ddi),
		ON_BOTH(feature_queries_with_invalid_arguments_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
