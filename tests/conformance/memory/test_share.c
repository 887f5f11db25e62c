/* SPDX-License-Identifier: MIT */
/*
 * Resources and sharing: which resource an allocation belongs to, the order of the miniport calls,
 * which process may lock, and that a shared allocation lives until its last opener ends (ALF-34 to
 * ALF-36, LOCK-24, REN-14).
 */
#include "world.h"

/* Stand-ins for the runtime's resource handles. */
static int runtime[8];
#define RESOURCE(n) ((HANDLE)&runtime[n])

struct shared {
	D3DKMT_HANDLE allocation, km_resource, global;
};

static HRESULT allocate_many(struct client_device *device, HANDLE resource, uint32_t count,
			     D3DKMT_HANDLE *out, D3DKMT_HANDLE *km_resource)
{
	struct softgpu_allocation wish[4];
	D3DDDI_ALLOCATIONINFO info[4] = {{0}};
	D3DDDICB_ALLOCATE args = {
		.hResource = resource, .NumAllocations = count, .pAllocationInfo = info};

	for (uint32_t i = 0; i < count; i++) {
		wish[i] = wish_of(PAGE, CPU, 0);
		info[i].pPrivateDriverData = &wish[i];
		info[i].PrivateDriverDataSize = sizeof(wish[i]);
	}
	HRESULT result = device->cb->pfnAllocateCb(device->handle, &args);
	for (uint32_t i = 0; i < count; i++)
		out[i] = info[i].hAllocation;
	*km_resource = args.hKMResource;
	return result;
}

static struct shared share_one(struct client_device *device, HANDLE resource)
{
	struct shared s;

	assert_int_equal(vidmm_resource_set_shared(device->device, resource), 0);
	assert_int_equal(allocate_many(device, resource, 1, &s.allocation, &s.km_resource), S_OK);
	assert_int_equal(vidmm_resource_share(device->device, s.km_resource, &s.global), 0);
	assert_int_not_equal(s.global, 0);
	return s;
}

static struct shared open_it(struct client_device *device, uint32_t global)
{
	struct shared s = {.global = global};
	uint32_t count = 1;

	assert_int_equal(
		vidmm_resource_open(device->device, global, &s.km_resource, &s.allocation, &count),
		0);
	assert_int_equal(count, 1);
	return s;
}

static HRESULT free_resource(struct client_device *device, HANDLE resource)
{
	D3DDDICB_DEALLOCATE args = {.hResource = resource};

	return device->cb->pfnDeallocateCb(device->handle, &args);
}

static void second_device(struct world *w, struct client_device *second)
{
	*second = w->device;
	assert_int_equal(vidmm_device_create(w->device.process, w->client.adapter, &second->device),
			 0);
	second->handle = vidmm_device_handle(second->device);
}

static void lock_24_only_the_creating_process_may_lock_a_shared_allocation(void **state)
{
	struct world w;
	struct client_device other, second;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	second_device(&w, &second);
	struct shared ours = share_one(&w.device, RESOURCE(0)),
		      theirs = open_it(&other, ours.global);
	struct shared also_ours = open_it(&second, ours.global);
	D3DKMT_HANDLE handle = theirs.allocation;
	void *data = &handle;

	client_write(&w.device, ours.allocation, PAGE, 0x2400);
	assert_int_equal(client_try_lock(&other, &handle, 0, &data), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-24"));
	assert_null(data);
	assert_int_equal(handle, theirs.allocation);
	client_forget(&w.client);
	assert_int_equal(client_unlock(&other, theirs.allocation), E_INVALIDARG);
	client_forget(&w.client);
	client_expect(&second, also_ours.allocation, PAGE,
		      0x2400); /* the process decides, not the device */
	vidmm_device_destroy(second.device);
	client_close(&other);
	world_stop(&w);
}

static void swz_23_an_alternate_address_of_a_shared_allocation_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	struct shared ours = share_one(&w.device, RESOURCE(0));

	expect_lock_refused(&w, ours.allocation, ACQUIRE_APERTURE | USE_ALTERNATE_VA, E_INVALIDARG,
			    "SWZ-23");
	client_write(&w.device, ours.allocation, PAGE, 0x2300);
	world_stop(&w);
}

static void lock_24_pag_10_the_creating_process_may_lock_after_its_device_ends(void **state)
{
	struct world w;
	struct client_device creator, other;
	struct softgpu_allocation wish = wish_of(PAGE, CPU, APERTURE);
	D3DKMT_HANDLE a, resource;
	struct shared s, theirs;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	second_device(&w, &creator);
	assert_int_equal(vidmm_resource_set_shared(creator.device, RESOURCE(0)), 0);
	assert_int_equal(client_try_allocate(&creator, &wish, RESOURCE(0), &a, &resource), S_OK);
	assert_int_equal(vidmm_resource_share(creator.device, resource, &s.global), 0);
	s = open_it(&w.device, s.global);
	theirs = open_it(&other, s.global);
	vidmm_device_destroy(creator.device);
	client_write(&w.device, s.allocation, PAGE, 0x1010);
	D3DKMT_HANDLE handle = theirs.allocation;
	assert_int_equal(client_try_lock(&other, &handle, 0, NULL), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-24"));
	client_forget(&w.client);
	/* The device for which the miniport opened it is destroyed. */
	probe_forget();
	use_now(&w, s.allocation, true);
	const struct probe_call *map =
		probe_find_paging(DXGK_OPERATION_MAP_APERTURE_SEGMENT, NULL, 0);
	assert_non_null(map);
	assert_null(map->paging.MapApertureSegment.hDevice);
	client_expect(&w.device, s.allocation, PAGE, 0x1010);
	client_close(&other);
	world_stop(&w);
}

static void lock_24_an_unshared_allocation_of_a_resource_is_locked_by_its_owner(void **state)
{
	struct world w;
	D3DKMT_HANDLE a, resource;

	world_start(&w, state, NULL);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 1, &a, &resource), S_OK);
	client_write(&w.device, a, PAGE, 1);
	client_expect(&w.device, a, PAGE, 1);
	world_stop(&w);
}

static void lock_30_destroying_a_device_drops_its_locks_of_a_shared_allocation(void **state)
{
	struct world w;
	struct client_device second;

	world_start(&w, state, NULL);
	second_device(&w, &second);
	struct shared ours = share_one(&w.device, RESOURCE(0)),
		      also = open_it(&second, ours.global);

	client_lock(&second, also.allocation, 0);
	/* Each reference has its own lock count: the creator has nothing to unlock. */
	assert_int_equal(client_unlock(&w.device, ours.allocation), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-28"));
	client_forget(&w.client);
	vidmm_device_destroy(second.device);
	D3DDDICB_OFFERALLOCATIONS offer = {.HandleList = &ours.allocation,
					   .NumAllocations = 1,
					   .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer),
			 S_OK); /* not locked any more */
	world_stop(&w);
}

static void lock_30_destroying_the_creator_keeps_locks_of_other_devices(void **state)
{
	struct world w;
	struct client_device second;

	world_start(&w, state, NULL);
	second_device(&w, &second);
	struct shared ours = share_one(&w.device, RESOURCE(0)),
		      also = open_it(&second, ours.global);

	client_lock(&w.device, ours.allocation, 0);
	client_lock(&second, also.allocation, 0);
	assert_int_equal(free_resource(&w.device, RESOURCE(0)), S_OK);
	assert_int_equal(client_unlock(&second, also.allocation), S_OK);
	assert_int_equal(client_unlock(&second, also.allocation), E_INVALIDARG);
	client_forget(&w.client);
	vidmm_device_destroy(second.device);
	world_stop(&w);
}

static void ren_14_ref_11_a_shared_allocation_is_not_renamed(void **state)
{
	struct world w;
	struct helper h;

	world_start(&w, state, NULL);
	struct shared s = share_one(&w.device, RESOURCE(0));
	D3DKMT_HANDLE handle = s.allocation;

	client_write(&w.device, s.allocation, PAGE, 0x1400);
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD, NULL), S_OK); /* idle */
	assert_int_equal(handle, s.allocation);
	assert_int_equal(client_unlock(&w.device, handle), S_OK);
	gate_close(&w);
	client_reference(&w.context, s.allocation, false);
	client_submit(&w.context);
	expect_lock_refused(&w, s.allocation, DISCARD | DONOT_WAIT, D3DERR_WASSTILLDRAWING, NULL);
	/* The other flags act as if Discard were absent. */
	handle = s.allocation;
	assert_int_equal(
		client_try_lock(&w.device, &handle, DISCARD | IGNORE_SYNC | DONOT_WAIT, NULL),
		S_OK);
	assert_int_equal(client_unlock(&w.device, handle), S_OK);
	lock_on_thread(&h, &w, s.allocation, DISCARD);
	gate_open(&w);
	helper_join(&h);
	assert_true(h.gate_was_open);
	assert_int_equal(h.allocation, s.allocation);
	assert_int_equal(client_unlock(&w.device, s.allocation), S_OK);
	client_expect(&w.device, s.allocation, PAGE, 0x1400);
	assert_int_equal(world_statistics(&w).instances, 2);
	world_stop(&w);
}

/* ---- effects of one device's calls on other devices ---- */

/* A device of the creator's process, so that both may lock (LOCK-24); each renders. */
struct pair {
	struct client_device second;
	struct client_context context; /* the second device's */
	struct shared ours, theirs;
};

static void pair_start(struct world *w, struct pair *p, void **state)
{
	world_start(w, state, NULL);
	second_device(w, &p->second);
	client_context(&p->second, 1, &p->context); /* also on another node */
	p->ours = share_one(&w->device, RESOURCE(0));
	p->theirs = open_it(&p->second, p->ours.global);
}

static void pair_stop(struct world *w, struct pair *p)
{
	client_context_end(&p->context);
	vidmm_device_destroy(p->second.device);
	world_stop(w);
}

static void lock_05_lock_08_a_lock_waits_for_work_of_every_device_and_node(void **state)
{
	struct softgpu_sync wait = {.command = {SOFTGPU_WAIT, 0, sizeof(wait)}};
	D3DKMT_HANDLE gate, resource;
	_Atomic uint64_t *word;
	struct helper h;
	struct pair p;
	struct world w;

	pair_start(&w, &p, state);
	use_now(&w, p.ours.allocation, true);
	assert_int_equal(allocate_many(&p.second, RESOURCE(1), 1, &gate, &resource), S_OK);
	word = client_lock(&p.second, gate, 0);
	wait.operand.allocation = client_use(&p.context, gate, false);
	wait.value = 1;
	client_command(&p.context, &wait, sizeof(wait));
	client_reference(&p.context, p.theirs.allocation, true);
	client_submit(&p.context);
	expect_lock_refused(&w, p.ours.allocation, DONOT_WAIT, D3DERR_WASSTILLDRAWING, NULL);
	lock_on_thread(&h, &w, p.ours.allocation, 0);
	assert_int_equal(atomic_load(&h.state), 1);
	atomic_store(word, 1);
	helper_join(&h);
	assert_int_equal(h.result, S_OK);
	assert_int_equal(client_unlock(&w.device, p.ours.allocation), S_OK);
	client_lock(&w.device, p.ours.allocation, DONOT_WAIT);
	assert_int_equal(client_unlock(&w.device, p.ours.allocation), S_OK);
	pair_stop(&w, &p);
}

static void swz_18_lkr_06_a_range_lock_of_one_device_blocks_rendering_of_others(void **state)
{
	struct pair p;
	struct world w;

	pair_start(&w, &p, state);
	client_lock(&w.device, p.ours.allocation, ACQUIRE_APERTURE);
	client_reference(&p.context, p.theirs.allocation, false);
	assert_int_equal(client_try_submit(&p.context), D3DDDIERR_CANTRENDERLOCKEDALLOCATION);
	assert_true(client_found(&w.client, "SWZ-18"));
	client_forget(&w.client);
	D3DKMT_HANDLE handle = p.theirs.allocation; /* nor can it be locked there */
	assert_int_equal(client_try_lock(&p.second, &handle, 0, NULL), E_INVALIDARG);
	assert_true(client_found(&w.client, "SWZ-15"));
	client_forget(&w.client);
	assert_int_equal(client_unlock(&w.device, p.ours.allocation), S_OK);
	client_reference(&p.context, p.theirs.allocation, false);
	client_submit(&p.context);
	client_lock(&p.second, p.theirs.allocation, 0);
	assert_int_equal(client_unlock(&p.second, p.theirs.allocation), S_OK);
	pair_stop(&w, &p);
}

static void lock_25_ofr_05_an_offer_by_one_device_applies_to_all_devices(void **state)
{
	struct pair p;
	struct world w;
	BOOL discarded = 7;

	pair_start(&w, &p, state);
	D3DDDICB_OFFERALLOCATIONS offer = {.HandleList = &p.ours.allocation,
					   .NumAllocations = 1,
					   .Priority = D3DDDI_OFFER_PRIORITY_HIGH};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = &p.theirs.allocation, .NumAllocations = 1, .pDiscarded = &discarded};

	client_write(&w.device, p.ours.allocation, PAGE, 0x2505);
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
	D3DKMT_HANDLE handle = p.theirs.allocation;
	assert_int_equal(client_try_lock(&p.second, &handle, 0, NULL), E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-25"));
	client_forget(&w.client);
	client_reference(&p.context, p.theirs.allocation, false);
	assert_int_equal(client_try_submit(&p.context), E_INVALIDARG);
	assert_true(client_found(&w.client, "OFR-05"));
	client_forget(&w.client);
	assert_int_equal(p.second.cb->pfnReclaimAllocationsCb(p.second.handle, &reclaim), S_OK);
	assert_int_equal(discarded, FALSE);
	client_expect(&w.device, p.ours.allocation, PAGE, 0x2505);
	client_reference(&p.context, p.theirs.allocation, false);
	client_submit(&p.context);
	pair_stop(&w, &p);
}

static void alf_34_create_precedes_open_and_close_precedes_destroy(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	assert_int_equal(probe.calls, 2);
	assert_int_equal(probe.call[0].ddi, PROBE_CREATE);
	assert_int_equal(probe.call[0].flags, 0); /* of no resource */
	assert_int_equal(probe.call[1].ddi, PROBE_OPEN);
	assert_int_equal(probe.call[1].flags, 1); /* Create */
	HANDLE kmd = probe.call[0].object, open = probe.call[1].object;
	probe_forget();
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	assert_int_equal(probe.calls, 2);
	assert_int_equal(probe.call[0].ddi, PROBE_CLOSE);
	assert_ptr_equal(probe.call[0].object, open);
	assert_int_equal(probe.call[1].ddi, PROBE_DESTROY);
	assert_ptr_equal(probe.call[1].object, kmd);
	world_stop(&w);
}

static void alf_34_opening_a_resource_calls_openallocation_only(void **state)
{
	struct world w;
	struct client_device other;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	struct shared ours = share_one(&w.device, RESOURCE(0));
	HANDLE device = probe_find(PROBE_OPEN, 0)->device;
	probe_forget();
	struct shared theirs = open_it(&other, ours.global);

	assert_int_equal(probe.calls, 1);
	assert_int_equal(probe.call[0].ddi, PROBE_OPEN);
	assert_int_equal(probe.call[0].flags, 0);
	assert_ptr_not_equal(probe.call[0].device, device);
	HANDLE open = probe.call[0].object;
	probe_forget();
	assert_int_equal(client_deallocate(&other, theirs.allocation), S_OK);
	assert_int_equal(probe.calls, 1); /* the creator still uses it */
	assert_int_equal(probe.call[0].ddi, PROBE_CLOSE);
	assert_ptr_equal(probe.call[0].object, open);
	client_close(&other);
	client_write(&w.device, ours.allocation, PAGE, 3);
	world_stop(&w);
}

static void alf_34_the_last_reference_destroys_the_allocation(void **state)
{
	struct world w;
	struct client_device other, third;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	client_open(&w.client, &third);
	struct shared ours = share_one(&w.device, RESOURCE(0));
	client_write(&w.device, ours.allocation, PAGE, 0x3400);
	struct shared theirs = open_it(&other, ours.global), too = open_it(&third, ours.global);

	probe_forget();
	assert_int_equal(free_resource(&w.device, RESOURCE(0)), S_OK);
	assert_int_equal(probe_count(PROBE_CLOSE), 1);
	assert_int_equal(probe_count(PROBE_DESTROY), 0);
	assert_int_equal(client_deallocate(&third, too.allocation), S_OK);
	assert_int_equal(probe_count(PROBE_DESTROY), 0);
	/* The GPU of the last opener can still use it, and it can still be opened. */
	struct client_context context;
	client_context(&other, 0, &context);
	D3DKMT_HANDLE out = client_allocate(&other, PAGE, CPU);
	client_copy(&context, theirs.allocation, out, PAGE);
	client_submit(&context);
	client_expect(&other, out, PAGE, 0x3400);
	open_it(&third, ours.global);
	client_context_end(&context);
	probe_forget();
	client_close(&third);
	assert_int_equal(probe_count(PROBE_DESTROY), 0);
	assert_int_equal(client_deallocate(&other, out), S_OK);
	probe_forget();
	assert_int_equal(client_deallocate(&other, theirs.allocation), S_OK);
	assert_int_equal(probe_count(PROBE_CLOSE), 1);
	assert_int_equal(probe_count(PROBE_DESTROY), 2); /* the allocation, then the resource */
	assert_int_equal(probe_find(PROBE_DESTROY, 0)->flags, 0);
	assert_int_equal(probe_find(PROBE_DESTROY, 1)->flags, 1);
	uint32_t count = 1;
	assert_true(vidmm_resource_open(third.device = other.device, ours.global, &too.km_resource,
					&too.allocation, &count) < 0);
	client_close(&other);
	world_stop(&w);
}

static void alf_34_an_open_without_a_device_specific_handle_fails(void **state)
{
	struct world w;
	struct client_device other;
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	D3DKMT_HANDLE a, resource = 0;
	uint32_t count = 1;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	probe.open_null = 1;
	assert_int_equal(client_try_allocate(&w.device, &wish, NULL, &a, NULL), E_INVALIDARG);
	assert_true(client_found(&w.client, "ALF-34"));
	assert_int_equal(a, 0);
	client_forget(&w.client);
	assert_int_equal(probe_count(PROBE_CREATE), probe_count(PROBE_DESTROY));
	struct shared s = share_one(&w.device, RESOURCE(0));
	probe.open_null = 1;
	assert_true(vidmm_resource_open(other.device, s.global, &resource, &a, &count) < 0);
	assert_true(client_found(&w.client, "ALF-34"));
	assert_int_equal(resource, 0);
	client_forget(&w.client);
	open_it(&other, s.global); /* the slot can be reused */
	client_close(&other);
	world_stop(&w);
}

static void alf_34_one_failed_open_of_several_closes_the_others(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3], resource;

	world_start(&w, state, NULL);
	probe.open_null = 2;
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 3, a, &resource), E_INVALIDARG);
	assert_true(client_found(&w.client, "ALF-34"));
	client_forget(&w.client);
	assert_int_equal(probe_count(PROBE_CLOSE), 2);
	assert_int_equal(probe_count(PROBE_DESTROY), 3);
	assert_int_equal(free_resource(&w.device, RESOURCE(0)),
			 E_INVALIDARG); /* the resource was not created either */
	client_forget(&w.client);
	world_stop(&w);
}

static void alf_35_allocations_are_tied_to_their_resource(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4], first, second;

	world_start(&w, state, NULL);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 2, a, &first), S_OK);
	assert_int_not_equal(first, 0);
	assert_int_equal(probe_find(PROBE_CREATE, 0)->flags, 1); /* Resource */
	assert_int_equal(allocate_many(&w.device, RESOURCE(1), 1, a + 2, &second), S_OK);
	assert_int_not_equal(second, first);
	/* A resource that is not shared may be extended; its handle stays the same. */
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 1, a + 3, &second), S_OK);
	assert_int_equal(second, first);
	probe_forget();
	assert_int_equal(free_resource(&w.device, RESOURCE(0)), S_OK);
	assert_int_equal(probe_count(PROBE_CLOSE), 3);
	assert_int_equal(probe_count(PROBE_DESTROY),
			 4);                    /* three allocations and the resource itself */
	client_write(&w.device, a[2], PAGE, 0); /* the other allocation is unchanged */
	expect_lock_refused(&w, a[3], 0, E_INVALIDARG, "LOCK-31");
	world_stop(&w);
}

static void alf_35_a_shared_resource_cannot_be_extended(void **state)
{
	struct world w;
	D3DKMT_HANDLE a = 0, resource = 0;

	world_start(&w, state, NULL);
	struct shared s = share_one(&w.device, RESOURCE(0));

	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 1, &a, &resource), E_INVALIDARG);
	assert_true(client_found(&w.client, "ALF-35"));
	assert_int_equal(a, 0);
	assert_int_equal(resource, 0);
	client_forget(&w.client);
	client_write(&w.device, s.allocation, PAGE, 0);
	/* Nor can a resource be shared after its creation. */
	assert_int_equal(allocate_many(&w.device, RESOURCE(1), 1, &a, &resource), S_OK);
	assert_true(vidmm_resource_set_shared(w.device.device, RESOURCE(1)) < 0);
	assert_true(client_found(&w.client, "ALF-35"));
	client_forget(&w.client);
	uint32_t global = 7;
	assert_true(vidmm_resource_share(w.device.device, resource, &global) < 0);
	assert_int_equal(global, 7);
	world_stop(&w);
}

static void alf_35_no_resource_and_no_allocations_is_refused(void **state)
{
	struct world w;
	D3DKMT_HANDLE a, resource = 0;

	world_start(&w, state, NULL);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 0, &a, &resource), S_OK);
	assert_int_not_equal(resource, 0);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 1, &a, &resource), S_OK);
	assert_int_equal(allocate_many(&w.device, NULL, 0, &a, &resource), E_INVALIDARG);
	assert_true(client_found(&w.client, "ALF-35"));
	client_forget(&w.client);
	world_stop(&w);
}

static void alf_35_a_shared_resource_may_be_created_empty(void **state)
{
	struct world w;
	struct client_device other;
	D3DKMT_HANDLE a, resource, global;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	assert_int_equal(vidmm_resource_set_shared(w.device.device, RESOURCE(0)), 0);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 0, &a, &resource), S_OK);
	assert_true(vidmm_resource_share(w.device.device, resource, &global) < 0);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 1, &a, &resource), S_OK);
	assert_int_equal(vidmm_resource_share(w.device.device, resource, &global), 0);
	open_it(&other, global);
	client_close(&other);
	world_stop(&w);
}

static void alf_36_with_a_resource_the_handle_list_is_ignored(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[2], resource;
	const D3DKMT_HANDLE bogus[] = {0xDEAD, 0xBEEF};

	world_start(&w, state, NULL);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 2, a, &resource), S_OK);
	D3DDDICB_DEALLOCATE args = {
		.hResource = RESOURCE(0), .NumAllocations = 2, .HandleList = bogus};
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &args), S_OK);
	assert_int_equal(w.client.findings, 0);
	assert_int_equal(world_statistics(&w).allocations, 1);
	args.HandleList = NULL;
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &args),
			 E_INVALIDARG); /* it is gone */
	assert_true(client_found(&w.client, "ALF-36"));
	client_forget(&w.client);
	world_stop(&w);
}

static void alf_36_a_resource_survives_its_allocations(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[2], resource;

	world_start(&w, state, NULL);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 2, a, &resource), S_OK);
	D3DDDICB_DEALLOCATE args = {.NumAllocations = 2, .HandleList = a};
	probe_forget();
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &args), S_OK);
	assert_int_equal(probe_count(PROBE_DESTROY), 2);
	assert_int_equal(free_resource(&w.device, RESOURCE(0)), S_OK);
	assert_int_equal(probe_count(PROBE_DESTROY), 3);
	assert_int_equal(probe_find(PROBE_DESTROY, 2)->flags, 1);
	world_stop(&w);
}

static void alf_36_a_bad_handle_in_the_list_frees_nothing(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, NULL);
	for (int i = 0; i < 3; i++)
		a[i] = client_allocate(&w.device, PAGE, CPU);
	const D3DKMT_HANDLE unknown[] = {a[0], 0xDEAD, a[2]}, twice[] = {a[0], a[1], a[0]};
	D3DDDICB_DEALLOCATE args = {.NumAllocations = 3, .HandleList = unknown};
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &args), E_INVALIDARG);
	assert_true(client_found(&w.client, "ALF-36"));
	client_forget(&w.client);
	args.HandleList = twice;
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &args), E_INVALIDARG);
	assert_true(client_found(&w.client, "ALF-36"));
	client_forget(&w.client);
	args.HandleList = NULL;
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &args), E_INVALIDARG);
	client_forget(&w.client);
	for (int i = 0; i < 3; i++)
		client_write(&w.device, a[i], PAGE, 0);
	args.HandleList = a;
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &args), S_OK);
	world_stop(&w);
}

static void opening_needs_a_large_enough_list_and_a_live_handle(void **state)
{
	struct world w;
	struct client_device other;
	D3DKMT_HANDLE a[3], mine, theirs[3] = {0}, resource = 0;
	uint32_t count = 2, global;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	assert_int_equal(vidmm_resource_set_shared(w.device.device, RESOURCE(0)), 0);
	assert_int_equal(allocate_many(&w.device, RESOURCE(0), 3, a, &mine), S_OK);
	assert_int_equal(vidmm_resource_share(w.device.device, mine, &global), 0);
	assert_true(vidmm_resource_open(other.device, global, &resource, theirs, &count) < 0);
	assert_int_equal(resource, 0);
	assert_int_equal(theirs[0], 0);
	count = 3;
	assert_true(vidmm_resource_open(other.device, global + 1, &resource, theirs, &count) < 0);
	assert_true(vidmm_resource_open(other.device, 0, &resource, theirs, &count) < 0);
	assert_int_equal(vidmm_resource_open(other.device, global, &resource, theirs, &count), 0);
	assert_int_equal(count, 3);
	assert_true(vidmm_resource_share(other.device, mine + 1, &global) < 0);
	client_close(&other);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(lock_24_only_the_creating_process_may_lock_a_shared_allocation),
		BOTH(swz_23_an_alternate_address_of_a_shared_allocation_is_refused),
		BOTH(lock_24_pag_10_the_creating_process_may_lock_after_its_device_ends),
		BOTH(lock_24_an_unshared_allocation_of_a_resource_is_locked_by_its_owner),
		BOTH(lock_30_destroying_a_device_drops_its_locks_of_a_shared_allocation),
		BOTH(lock_30_destroying_the_creator_keeps_locks_of_other_devices),
		BOTH(ren_14_ref_11_a_shared_allocation_is_not_renamed),
		BOTH(lock_05_lock_08_a_lock_waits_for_work_of_every_device_and_node),
		BOTH(swz_18_lkr_06_a_range_lock_of_one_device_blocks_rendering_of_others),
		BOTH(lock_25_ofr_05_an_offer_by_one_device_applies_to_all_devices),
		BOTH(alf_34_create_precedes_open_and_close_precedes_destroy),
		BOTH(alf_34_opening_a_resource_calls_openallocation_only),
		BOTH(alf_34_the_last_reference_destroys_the_allocation),
		BOTH(alf_34_an_open_without_a_device_specific_handle_fails),
		BOTH(alf_34_one_failed_open_of_several_closes_the_others),
		BOTH(alf_35_allocations_are_tied_to_their_resource),
		BOTH(alf_35_a_shared_resource_cannot_be_extended),
		BOTH(alf_35_no_resource_and_no_allocations_is_refused),
		BOTH(alf_35_a_shared_resource_may_be_created_empty),
		BOTH(alf_36_with_a_resource_the_handle_list_is_ignored),
		BOTH(alf_36_a_resource_survives_its_allocations),
		BOTH(alf_36_a_bad_handle_in_the_list_frees_nothing),
		BOTH(opening_needs_a_large_enough_list_and_a_live_handle),
	};

	return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
