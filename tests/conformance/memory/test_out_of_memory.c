/* SPDX-License-Identifier: MIT */
/*
 * LOCK-32 and out of memory elsewhere: whichever internal allocation fails, the call reports it,
 * nothing has changed and nothing is lost. The same call then succeeds. Each allocation of a call
 * fails once, in turn.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "base/base.h"
#include "world.h"

enum {
	DEPTH = 40,
	MANY = 100
}; /* no call makes that many allocations; more entries than a call keeps on its stack */

struct before {
	uint64_t allocations, instances;
	uint32_t findings;
};

static struct before look(const struct world *w)
{
	struct vidmm_adapter_statistics s = world_statistics(w);

	return (struct before){s.allocations, s.instances, w->client.findings};
}

static void expect_unchanged(const struct world *w, struct before b)
{
	struct before now = look(w);

	assert_int_equal(now.allocations, b.allocations);
	assert_int_equal(now.instances, b.instances);
	if (now.findings != b.findings)
		fail_msg("finding: %s", w->client.finding[b.findings % CLIENT_FINDINGS]);
}

static void out_of_memory_while_creating_allocations_changes_nothing(void **state)
{
	static int runtime;
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t shape = 0; shape < 3; shape++)
		for (uint32_t n = 1; n < DEPTH; n++) {
			struct softgpu_allocation wish[3];
			D3DDDI_ALLOCATIONINFO info[3] = {{0}};
			D3DDDICB_ALLOCATE args = {.NumAllocations = 3,
						  .pAllocationInfo = info,
						  .hResource = shape ? (HANDLE)&runtime : NULL};
			D3DDDICB_DEALLOCATE undo = {.hResource = args.hResource};

			for (int i = 0; i < 3; i++) {
				wish[i] = wish_of(PAGE, CPU, 0);
				info[i].pPrivateDriverData = &wish[i];
				info[i].PrivateDriverDataSize = sizeof(wish[i]);
			}
			if (shape == 2)
				assert_int_equal(
					vidmm_resource_set_shared(w.device.device, &runtime), 0);
			struct before b = look(&w);
			vmm_calloc_fail_after(n);
			HRESULT result = w.device.cb->pfnAllocateCb(w.device.handle, &args);
			vmm_calloc_fail_after(0);
			if (result != S_OK) {
				assert_int_equal(result, E_OUTOFMEMORY);
				assert_int_equal(info[0].hAllocation | info[2].hAllocation |
							 args.hKMResource,
						 0);
				expect_unchanged(&w, b);
				assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args),
						 S_OK);
			}
			const D3DKMT_HANDLE list[] = {info[0].hAllocation, info[1].hAllocation,
						      info[2].hAllocation};
			if (!shape) {
				undo.NumAllocations = 3;
				undo.HandleList = list;
			}
			assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &undo),
					 S_OK);
			expect_unchanged(&w, b);
		}
	world_stop(&w);
}

/*
 * PermanentSysMem and ExistingSysMem are created with their memory or not at all; the caller's own
 * memory is unchanged.
 */
static void out_of_memory_while_creating_permanent_or_existing_memory(void **state)
{
	static char own[2 * PAGE] __attribute__((aligned(4096)));
	static const uint32_t flags[] = {CPU | SOFTGPU_ALLOCATION_PERMANENT_SYSTEM,
					 CPU | SOFTGPU_ALLOCATION_EXISTING_SYSTEM};
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t kind = 0; kind < 2; kind++)
		for (uint32_t n = 1; n < DEPTH; n++) {
			struct softgpu_allocation wish = wish_of(2 * PAGE, flags[kind], 0);
			D3DDDI_ALLOCATIONINFO info = {.pSystemMem = kind ? own : NULL,
						      .pPrivateDriverData = &wish,
						      .PrivateDriverDataSize = sizeof(wish)};
			D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
			struct before b = look(&w);

			own[PAGE] = (char)n;
			vmm_calloc_fail_after(n);
			HRESULT result = w.device.cb->pfnAllocateCb(w.device.handle, &args);
			vmm_calloc_fail_after(0);
			if (result != S_OK) {
				assert_int_equal(result, E_OUTOFMEMORY);
				assert_int_equal(info.hAllocation, 0);
				expect_unchanged(&w, b);
				assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args),
						 S_OK);
			}
			use_now(&w, info.hAllocation, false);
			assert_int_equal(client_deallocate(&w.device, info.hAllocation), S_OK);
			assert_int_equal(own[PAGE], (char)n);
			expect_unchanged(&w, b);
		}
	world_stop(&w);
}

/* Overlays are placed when the call returns, or not created when it fails. */
static void out_of_memory_while_creating_pinned_allocations(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t n = 1; n < DEPTH; n++) {
		struct softgpu_allocation wish[2];
		D3DDDI_ALLOCATIONINFO info[2] = {{0}};
		D3DDDICB_ALLOCATE args = {.NumAllocations = 2, .pAllocationInfo = info};

		for (uint32_t i = 0; i < 2; i++) {
			wish[i] = wish_of(PAGE, CPU | SOFTGPU_ALLOCATION_OVERLAY,
					  i ? APERTURE : VRAM);
			info[i].pPrivateDriverData = &wish[i];
			info[i].PrivateDriverDataSize = sizeof(wish[i]);
		}
		struct before b = look(&w);
		uint64_t resident = world_statistics(&w).segment[0].resident_bytes +
				    world_statistics(&w).segment[1].resident_bytes;
		vmm_calloc_fail_after(n);
		HRESULT result = w.device.cb->pfnAllocateCb(w.device.handle, &args);
		vmm_calloc_fail_after(0);
		if (result != S_OK) {
			assert_int_equal(result, E_OUTOFMEMORY);
			expect_unchanged(&w, b);
			assert_true(world_statistics(&w).segment[0].resident_bytes +
					    world_statistics(&w).segment[1].resident_bytes ==
				    resident);
			assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), S_OK);
		}
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(client_deallocate(&w.device, info[i].hAllocation), S_OK);
		client_idle(&w.client); /* the GPU still pages them in */
		while (look(&w).allocations != b.allocations)
			vidmm_settle(w.client.host);
		expect_unchanged(&w, b);
	}
	world_stop(&w);
}

static void lock_32_a_lock_that_runs_out_of_memory_changes_nothing(void **state)
{
	struct world w;
	UINT pages[MANY] = {1};

	world_start(&w, state, NULL);
	for (uint32_t with_pages = 0; with_pages < 2; with_pages++)
		for (uint32_t n = 1; n < DEPTH; n++) {
			D3DKMT_HANDLE a = client_allocate(&w.device, 8 * PAGE, CPU), handle = a;
			struct before b = look(&w);
			void *data = &w;

			vmm_calloc_fail_after(n);
			HRESULT result =
				lock_pages(&w.device, &handle, 0, with_pages ? pages : NULL,
					   with_pages ? MANY : 0, &data);
			vmm_calloc_fail_after(0);
			assert_int_equal(handle, a);
			if (result != S_OK) {
				assert_int_equal(result, E_OUTOFMEMORY);
				assert_null(data);
				assert_int_equal(client_residency(&w.device, a), EVICTED);
				expect_unchanged(&w, b);
				client_lock(&w.device, a, 0);
			}
			assert_int_equal(client_unlock(&w.device, a), S_OK);
			assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG);
			client_forget(&w.client);
			client_expect(&w.device, client_allocate(&w.device, PAGE, CPU), 0, 0);
			assert_int_equal(client_deallocate(&w.device, a), S_OK);
		}
	world_stop(&w);
}

static void lock_32_a_discard_that_runs_out_of_memory_changes_nothing(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t n = 1; n < DEPTH; n++) {
		D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU), handle = a;
		struct before b = look(&w);
		void *data = &w;

		client_write(&w.device, a, PAGE, 7);
		vmm_calloc_fail_after(n);
		HRESULT result = client_try_lock(&w.device, &handle, DISCARD, &data);
		vmm_calloc_fail_after(0);
		if (result != S_OK) {
			assert_true(result == E_OUTOFMEMORY || result == D3DERR_WASSTILLDRAWING);
			assert_int_equal(handle, a);
			assert_null(data);
			expect_unchanged(&w, b);
			client_expect(&w.device, a, PAGE, 7);
			assert_int_equal(client_try_lock(&w.device, &handle, DISCARD, &data), S_OK);
		}
		assert_int_not_equal(handle, a);
		assert_int_equal(client_unlock(&w.device, handle), S_OK);
		assert_int_equal(client_deallocate(&w.device, handle), S_OK);
		expect_unchanged(&w,
				 (struct before){b.allocations - 1, b.instances - 1, b.findings});
	}
	world_stop(&w);
}

static void lock_32_a_lock_out_of_memory_during_eviction_from_a_hidden_segment(void **state)
{
	static const struct vidmm_registry_value hidden = {"VramCpuVisible", 0};
	struct client_options options = {.registry = &hidden, .registry_count = 1};
	struct world w;

	world_start(&w, state, &options);
	for (uint32_t n = 1; n < DEPTH; n++) {
		D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU), handle = a;

		client_write(&w.device, a, PAGE, 9);
		use_now(&w, a, true);
		vmm_calloc_fail_after(n);
		HRESULT result = client_try_lock(&w.device, &handle, 0, NULL);
		vmm_calloc_fail_after(0);
		if (result == S_OK) {
			assert_int_equal(client_unlock(&w.device, a), S_OK);
		} else {
			assert_int_equal(result, E_OUTOFMEMORY);
			assert_int_equal(w.client.findings, 0);
		}
		client_expect(&w.device, a, PAGE, 9);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
	}
	world_stop(&w);
}

/*
 * A range, or memory for the unswizzled copy; the allocation is resident, or paged in for the
 * lock.
 */
static void lock_32_an_acquireaperture_lock_out_of_memory_keeps_content(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t shape = 0; shape < 4; shape++)
		for (uint32_t n = 1; n < DEPTH; n++) {
			struct softgpu_allocation wish = wish_of(
				16 * KIB, CPU | (shape & 1 ? SOFTGPU_ALLOCATION_TILED_Y : 0), VRAM);
			wish.stride_bytes = shape & 1 ? 512 : 0;
			D3DKMT_HANDLE a = allocate_wish(&w.device, &wish), handle = a;
			void *data = &w;

			client_write(&w.device, a, 16 * KIB, n);
			if (shape & 2)
				use_now(&w, a, true);
			uint32_t before = client_residency(&w.device, a);
			vmm_calloc_fail_after(n);
			HRESULT result = client_try_lock(&w.device, &handle,
							 ACQUIRE_APERTURE | LOCK_ENTIRE, &data);
			vmm_calloc_fail_after(0);
			if (result == S_OK) {
				assert_int_equal(*(uint32_t *)data, n);
				assert_int_equal(client_unlock(&w.device, a), S_OK);
				use_now(&w, a, true); /* a tiled one is swizzled again */
			} else {
				assert_int_equal(result, E_OUTOFMEMORY);
				assert_null(data);
				assert_int_equal(w.client.findings, 0);
				/* Undoing needs memory as well. */
				assert_true(client_residency(&w.device, a) == before ||
					    before == EVICTED);
			}
			client_expect(&w.device, a, 16 * KIB, n);
			assert_int_equal(client_deallocate(&w.device, a), S_OK);
		}
	world_stop(&w);
}

static void out_of_memory_while_creating_contexts_and_devices(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t n = 1; n < DEPTH; n++) {
		struct client_device d = w.device;
		D3DDDICB_CREATECONTEXT context = {0};

		vmm_calloc_fail_after(n);
		vidmm_status status =
			vidmm_device_create(w.device.process, w.client.adapter, &d.device);
		vmm_calloc_fail_after(0);
		if (status < 0) {
			assert_int_equal((uint32_t)status, 0xC0000017);
			assert_int_equal(
				vidmm_device_create(w.device.process, w.client.adapter, &d.device),
				0);
		}
		d.handle = vidmm_device_handle(d.device);
		vmm_calloc_fail_after(n);
		HRESULT result = d.cb->pfnCreateContextCb(d.handle, &context);
		vmm_calloc_fail_after(0);
		if (result != S_OK) {
			assert_int_equal(result, E_OUTOFMEMORY);
			assert_null(context.hContext);
			assert_null(context.pCommandBuffer);
			assert_int_equal(d.cb->pfnCreateContextCb(d.handle, &context), S_OK);
		}
		D3DDDICB_DESTROYCONTEXT end = {.hContext = context.hContext};
		assert_int_equal(d.cb->pfnDestroyContextCb(d.handle, &end), S_OK);
		vidmm_device_destroy(d.device);
	}
	world_stop(&w);
}

/* The first submission of a context creates its DMA buffer; the allocations are paged in. */
static void out_of_memory_while_rendering_loses_at_most_the_device(void **state)
{
	struct world w;
	uint32_t survived = 0;

	world_start(&w, state, NULL);
	for (uint32_t n = 1; n < DEPTH; n++) {
		struct client_device d;
		struct client_context c;

		client_open(&w.client, &d);
		client_context(&d, 0, &c);
		D3DKMT_HANDLE a = client_allocate(&d, PAGE, CPU);
		client_write(&d, a, PAGE, n);
		client_reference(&c, a, true);
		for (int i = 0; i < 3; i++) {
			D3DKMT_HANDLE more = client_allocate(&d, PAGE, CPU);
			client_write(&d, more, PAGE, n);
			client_reference(&c, more, true);
		}
		vmm_calloc_fail_after(n);
		HRESULT result = client_try_submit(&c);
		vmm_calloc_fail_after(0);
		client_idle(&w.client);
		if (result != S_OK) {
			assert_int_equal(result, E_OUTOFMEMORY);
			client_expect(&d, a, PAGE, n); /* not busy, not moved, not lost */
		}
		client_reference(&c, a, true);
		result = client_try_submit(&c);
		/*
		 * Running out of memory after an accepted call puts the device in error (SPL-12),
		 * never the adapter.
		 */
		assert_true(result == S_OK || result == D3DDDIERR_DEVICEREMOVED);
		survived += result == S_OK;
		client_idle(&w.client);
		client_context_end(&c);
		client_close(&d);
		assert_int_equal(w.client.findings, 0);
	}
	assert_true(survived > DEPTH / 2);
	use_now(&w, client_allocate(&w.device, PAGE, CPU), true);
	world_stop(&w);
}

static void out_of_memory_in_calls_with_long_lists_changes_nothing(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[MANY];
	UINT priorities[MANY];
	BOOL discarded[MANY];
	D3DDDI_RESIDENCYSTATUS residency[MANY];

	world_start(&w, state, NULL);
	D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = a, .NumAllocations = MANY, .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = a, .NumAllocations = MANY, .pDiscarded = discarded};
	D3DDDICB_SETPRIORITY priority = {
		.HandleList = a, .NumAllocations = MANY, .pPriorities = priorities};
	D3DDDICB_QUERYRESIDENCY query = {
		.HandleList = a, .NumAllocations = MANY, .pResidencyStatus = residency};
	D3DDDICB_DEALLOCATE deallocate = {.HandleList = a, .NumAllocations = MANY};
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	HANDLE d = w.device.handle;

	for (uint32_t n = 1; n < 8; n++) {
		for (int i = 0; i < MANY; i++) {
			a[i] = client_allocate(&w.device, PAGE, CPU);
			client_lock(&w.device, a[i], 0);
			priorities[i] = D3DDDI_ALLOCATIONPRIORITY_LOW;
		}
		struct before b = look(&w);
		for (uint32_t call = 0; call < 6; call++) {
			HRESULT result = E_OUTOFMEMORY;

			for (int again = 0; again < 2 && result == E_OUTOFMEMORY; again++) {
				vmm_calloc_fail_after(again ? 0 : n);
				result = call == 0   ? unlock_many(&w.device, a, MANY)
					 : call == 1 ? cb->pfnOfferAllocationsCb(d, &offer)
					 : call == 2 ? cb->pfnReclaimAllocationsCb(d, &reclaim)
					 : call == 3 ? cb->pfnSetPriorityCb(d, &priority)
					 : call == 4 ? cb->pfnQueryResidencyCb(d, &query)
						     : cb->pfnDeallocateCb(d, &deallocate);
				vmm_calloc_fail_after(0);
				if (result != S_OK)
					expect_unchanged(&w, b);
			}
			assert_int_equal(result, S_OK);
		}
	}
	world_stop(&w);
}

static void out_of_memory_while_opening_a_shared_resource(void **state)
{
	static int runtime;
	struct softgpu_allocation wish = wish_of(PAGE, CPU, 0);
	struct world w;
	struct client_device other;
	D3DKMT_HANDLE a, resource, global;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	assert_int_equal(vidmm_resource_set_shared(w.device.device, &runtime), 0);
	assert_int_equal(client_try_allocate(&w.device, &wish, &runtime, &a, &resource), S_OK);
	assert_int_equal(vidmm_resource_share(w.device.device, resource, &global), 0);
	for (uint32_t n = 1; n < DEPTH; n++) {
		uint32_t count = 1;
		D3DKMT_HANDLE opened = 0, theirs = 0;

		vmm_calloc_fail_after(n);
		vidmm_status status =
			vidmm_resource_open(other.device, global, &theirs, &opened, &count);
		vmm_calloc_fail_after(0);
		if (status < 0) {
			assert_int_equal((uint32_t)status, 0xC0000017);
			assert_int_equal(theirs | opened, 0);
			assert_int_equal(count, 1);
			assert_int_equal(
				vidmm_resource_open(other.device, global, &theirs, &opened, &count),
				0);
		}
		assert_int_equal(client_deallocate(&other, opened), S_OK);
		assert_int_equal(w.client.findings, 0);
	}
	client_close(&other);
	world_stop(&w);
}

static void out_of_memory_while_starting_an_adapter(void **state)
{
	uint64_t bar = 4 * MIB;
	struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						.driver_entry = softgpu_driver_entry,
						.bar_sizes = &bar,
						.bar_count = 1};
	struct world w;
	uint32_t failed = 0;

	world_start(&w, state, NULL);
	for (uint32_t n = 1; n < 150; n++) {
		struct vidmm_adapter *adapter = NULL;

		vmm_calloc_fail_after(n);
		vidmm_status status = vidmm_adapter_start(w.client.host, &options, &adapter);
		vmm_calloc_fail_after(0);
		if (status < 0) {
			assert_null(adapter);
			failed++;
		} else {
			vidmm_adapter_stop(adapter);
		}
	}
	assert_true(failed > 10);
	world_stop(&w);
}

/* ---- address space ---- */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#ifndef SANITIZED /* sanitizers need address space themselves, and abort without it */
static void leave_address_space(uint64_t bytes)
{
	struct rlimit limit;
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = bytes ? pages * (rlim_t)PAGE + bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

static void lock_32_a_lock_without_address_space_for_the_mapping_fails(void **state)
{
	enum { BYTES = 20 * 1024 * 1024 };
	struct client_options options = {.vram_bytes = 64 * MIB};
	struct world w;
	void *data = &w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE all = client_allocate(&w.device, 3 * BYTES, CPU);
	client_write(&w.device, all, PAGE, 0); /* so that there are pages for what follows */
	assert_int_equal(client_deallocate(&w.device, all), S_OK);
	D3DKMT_HANDLE a = client_allocate(&w.device, BYTES, CPU);
	leave_address_space(4 * MIB);
	expect_lock_refused(&w, a, 0, E_OUTOFMEMORY, NULL);
	leave_address_space(0);
	client_write(&w.device, a, BYTES, 0x32000000);
	/* The same for an instance that is created for the lock. */
	struct before b = look(&w);
	leave_address_space(4 * MIB);
	expect_lock_refused(&w, a, DISCARD, E_OUTOFMEMORY, NULL);
	leave_address_space(0);
	expect_unchanged(&w, b);
	client_expect(&w.device, a, BYTES, 0x32000000);
	D3DKMT_HANDLE handle = a;
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD, &data), S_OK);
	assert_int_not_equal(handle, a);
	world_stop(&w);
}
#endif

/* ---- the limit on system memory ---- */

static void lock_32_a_lock_above_the_system_memory_limit_fails_unchanged(void **state)
{
	struct client_options options = {.system_memory_bytes = 6 * MIB, .vram_bytes = 4 * MIB};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = client_allocate(&w.device, 4 * MIB, CPU),
		      b = client_allocate(&w.device, 4 * MIB, CPU);

	client_write(&w.device, a, 4 * MIB, 1);
	uint64_t system = world_statistics(&w).system_bytes;
	expect_lock_refused(&w, b, 0, E_OUTOFMEMORY, NULL);
	expect_lock_refused(&w, b, DISCARD | NO_EXISTING_REFERENCE, E_OUTOFMEMORY, NULL);
	assert_true(world_statistics(&w).system_bytes == system);
	assert_int_equal(client_residency(&w.device, b), EVICTED);
	client_expect(&w.device, a, 4 * MIB, 1);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_write(&w.device, b, 4 * MIB, 2);
	client_expect(&w.device, b, 4 * MIB, 2);
	world_stop(&w);
}

static void ren_11_a_discard_without_memory_for_an_instance_fails(void **state)
{
	struct client_options options = {.system_memory_bytes = 6 * MIB, .vram_bytes = 4 * MIB};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = client_allocate(&w.device, 4 * MIB, CPU), handle = a;

	client_write(&w.device, a, 4 * MIB, 1);
	/* The driver should flush and retry with NoExistingReference, as with a full list. */
	expect_lock_refused(&w, a, DISCARD, D3DERR_WASSTILLDRAWING, NULL);
	assert_int_equal(world_statistics(&w).instances, 2);
	client_expect(&w.device, a, 4 * MIB, 1);
	assert_int_equal(client_try_lock(&w.device, &handle, DISCARD | NO_EXISTING_REFERENCE, NULL),
			 S_OK);
	assert_int_equal(handle, a);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void spl_13_under_a_tight_limit_page_in_waits_for_freed_backing_stores(void **state)
{
	enum { COUNT = 10 };
	/*
	 * Four in video memory, six in system memory, space for one in transfer, and for the
	 * adapter's own buffers.
	 */
	struct client_options options = {.vram_bytes = 4 * MIB, .system_memory_bytes = 12 * MIB};
	struct world w;
	D3DKMT_HANDLE a[COUNT];

	world_start(&w, state, &options);
	for (uint32_t i = 0; i < COUNT; i++) {
		a[i] = allocate_in(&w.device, MIB, CPU, VRAM);
		client_write(&w.device, a[i], MIB, i << 20);
		use_now(&w, a[i], true);
	}
	for (uint32_t i = 0; i < 100; i++) {
		client_reference(&w.context, a[(i * 3) % COUNT], true);
		client_submit(&w.context);
	}
	client_idle(&w.client);
	for (uint32_t i = 0; i < COUNT; i++)
		client_expect(&w.device, a[i], MIB, i << 20);
	world_stop(&w);
}

/* An MDL describes less than 4 GiB; the caller has made no mistake. */
static void lock_32_a_lock_of_four_gib_fails_for_lack_of_a_backing_store(void **state)
{
	struct softgpu_allocation wish = wish_of((uint64_t)4 << 30, CPU, 0);
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, NULL);
	struct before before = look(&w);
	uint64_t reasons = client_events(&w.client, VIDMM_EVENT_REASON);
	assert_int_equal(client_try_allocate(&w.device, &wish, NULL, &a, NULL), S_OK);
	assert_int_equal(client_try_lock(&w.device, &a, 0, NULL), E_OUTOFMEMORY);
	assert_int_equal(client_events(&w.client, VIDMM_EVENT_REASON), reasons + 1);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	/* which has a backing store from the start */
	wish.flags |= SOFTGPU_ALLOCATION_PERMANENT_SYSTEM;
	assert_int_equal(client_try_allocate(&w.device, &wish, NULL, &a, NULL), E_OUTOFMEMORY);
	wish.size_bytes = (uint64_t)1
			  /*
			   * and no memory for page bookkeeping of an allocation without backing
			   * store
			   */
			  << 46;
	assert_int_equal(client_try_allocate(&w.device, &wish, NULL, &a, NULL), E_OUTOFMEMORY);
	expect_unchanged(&w, before);
	wish.size_bytes = PAGE;
	assert_int_equal(client_try_allocate(&w.device, &wish, NULL, &a, NULL), S_OK);
	client_write(&w.device, a, PAGE, 1);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(out_of_memory_while_creating_allocations_changes_nothing),
		BOTH(out_of_memory_while_creating_permanent_or_existing_memory),
		BOTH(out_of_memory_while_creating_pinned_allocations),
		BOTH(lock_32_a_lock_that_runs_out_of_memory_changes_nothing),
		BOTH(lock_32_a_lock_of_four_gib_fails_for_lack_of_a_backing_store),
		BOTH(lock_32_a_discard_that_runs_out_of_memory_changes_nothing),
		BOTH(lock_32_a_lock_out_of_memory_during_eviction_from_a_hidden_segment),
		BOTH(lock_32_an_acquireaperture_lock_out_of_memory_keeps_content),
		BOTH(out_of_memory_while_creating_contexts_and_devices),
		BOTH(out_of_memory_while_rendering_loses_at_most_the_device),
		BOTH(out_of_memory_in_calls_with_long_lists_changes_nothing),
		BOTH(out_of_memory_while_opening_a_shared_resource),
		BOTH(out_of_memory_while_starting_an_adapter),
#ifndef SANITIZED
		BOTH(lock_32_a_lock_without_address_space_for_the_mapping_fails),
#endif
		BOTH(lock_32_a_lock_above_the_system_memory_limit_fails_unchanged),
		BOTH(ren_11_a_discard_without_memory_for_an_instance_fails),
		BOTH(spl_13_under_a_tight_limit_page_in_waits_for_freed_backing_stores),
	};

	return cmocka_run_group_tests_name("out of memory", tests, NULL, NULL);
}
