/* SPDX-License-Identifier: MIT */
/*
 * Single points of rules whose main tests are in other files: the memory behind a lock on 2.x
 * (REF-13, ALF-08, ALF-27), valid handles of a call (PRI-09, PRI-11), the client's own priority
 * (PRI-02).
 */
#include "wddm2_world.h"

#include <d3dkmthk.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define PROTECTED   0x8u
#define DISCARD     0x80u
#define DONOT_WAIT  0x4u
#define NO_EXISTING 0x100u

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static D3DKMT_HANDLE allocate(struct client_device *device, uint64_t bytes, uint32_t flags,
			      uint32_t set)
{
	const struct scripted_allocation spec = {
		.size_bytes = bytes, .flags = flags, .read_set = set, .write_set = set};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(device, &spec, &handle), S_OK);
	return handle;
}

static HRESULT try_lock2(struct client_device *device, D3DKMT_HANDLE a, uint32_t **words)
{
	D3DDDICB_LOCK2 args = {.hAllocation = a};
	HRESULT result = device->cb->pfnLock2Cb(device->handle, &args);

	*words = args.pData;
	return result;
}

static uint32_t *lock2(struct client_device *device, D3DKMT_HANDLE a)
{
	uint32_t *words;

	assert_int_equal(try_lock2(device, a, &words), S_OK);
	return words;
}

static void unlock2(struct client_device *device, D3DKMT_HANDLE a)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = a};

	assert_int_equal(device->cb->pfnUnlock2Cb(device->handle, &args), S_OK);
}

static uint64_t instances(const struct world *w)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};

	vidmm_adapter_statistics(w->client.adapter, &s);
	return s.instances;
}

/*
 * Busy or idle, resident or not, discarded or not: one memory is behind the handle, and each lock
 * adds a word to it.
 */
static void ref_13_every_lock_maps_the_same_backing_memory(void **state)
{
	static const uint32_t flags[] = {0, DISCARD, DISCARD | DONOT_WAIT, DISCARD | NO_EXISTING};
	struct world w;
	uint32_t count = 0;

	world_start(&w, state, wddm2_0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY), handle = a;
	uint64_t before = instances(&w);
	for (uint32_t round = 0; round < 3; round++) {
		if (round == 1)
			wddm2_make(&w, &w.device, &queue, &a, 1);
		if (round == 1)
			world_submit_use(&w.context, a); /* busy from here on */
		for (uint32_t i = 0; i < 4; i++) {
			void *data;

			assert_int_equal(client_try_lock(&w.device, &handle, flags[i], &data),
					 S_OK);
			assert_int_equal(handle, a);
			for (uint32_t k = 0; k < count; k++)
				assert_int_equal(((uint32_t *)data)[k], 0x1300 + k);
			((uint32_t *)data)[count] = 0x1300 + count;
			count++;
			assert_int_equal(client_unlock(&w.device, a), S_OK);
			uint32_t *words = lock2(&w.device, a);
			assert_int_equal(words[count - 1], 0x1300 + count - 1);
			unlock2(&w.device, a);
		}
		if (round != 1)
			continue;
		wddm2_run(&w);
		assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
		while (wddm2_is_in_memory(&w.device, a)) {
			scripted_complete_all(w.m);
			vidmm_settle(w.client.host);
		}
		wddm2_run(&w); /* its content is in system memory */
	}
	assert_int_equal(instances(&w), before);
	assert_int_equal(client_events(&w.client, VIDMM_EVENT_RENAME), 0);
	wddm2_stop(&w);
}

static void alf_08_lock2_of_protected_memory_is_refused(void **state)
{
	uint32_t *words;
	void *data;
	struct world w;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL | PROTECTED, WORLD_APERTURE),
		      b = allocate(&w.device, 64 * KIB, PHYSICAL, WORLD_APERTURE);
	assert_int_equal(try_lock2(&w.device, a, &words), E_INVALIDARG);
	world_expect_finding(&w, "ALF-08");
	assert_null(words);
	assert_int_equal(client_try_lock(&w.device, &a, 0, &data), E_INVALIDARG);
	world_expect_finding(&w, "ALF-08");
	lock2(&w.device, b);
	unlock2(&w.device, b);
	wddm2_stop(&w);
}

/* LOCK-23: pfnLockCb accepts it, too. */
static void alf_27_cpuvisibleondemand_is_locked_by_pfnlockcb_and_lock2(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, at_once);
	D3DKMT_HANDLE a =
		allocate(&w.device, 64 * KIB, ACCESSED_PHYSICALLY | ON_DEMAND, WORLD_APERTURE);
	assert_int_equal(client_try_lock(&w.device, &a, 0, &data), S_OK);
	((uint32_t *)data)[5] = 0x27;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(lock2(&w.device, a)[5], 0x27);
	unlock2(&w.device, a);
	wddm2_stop(&w);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#ifndef SANITIZED /* sanitizers need address space themselves */
/* 0: no limit. */
static void leave_address_space(uint64_t bytes)
{
	struct rlimit limit;
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = bytes ? pages * (rlim_t)PAGE_BYTES + bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

static void keep_reason(void *context, const struct vidmm_event *event, const char *text)
{
	(void)event;
	snprintf(context, 256, "%s", text);
}

/* Each lock reserves its own address, so each may fail; earlier locks stay valid. */
static void alf_27_an_on_demand_lock_without_address_space_fails(void **state)
{
	char reason[256] = "";
	struct world w;
	uint32_t *words;

	world_start(&w, state, at_once);
	assert_int_not_equal(
		vidmm_subscribe(w.client.host, 1ull << VIDMM_EVENT_REASON, keep_reason, reason), 0);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a =
		allocate(&w.device, 12 * MIB, ACCESSED_PHYSICALLY | ON_DEMAND, WORLD_MEMORY);
	lock2(&w.device, a)[3] = 0x2727;
	unlock2(&w.device, a);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	leave_address_space(2 * MIB);
	assert_int_equal(try_lock2(&w.device, a, &words), E_OUTOFMEMORY);
	leave_address_space(0);
	assert_null(words);
	assert_non_null(strstr(reason, "LOCK-32: lock2 of"));
	assert_non_null(strstr(reason, "12582912 bytes; nothing has changed (ALF-27)"));
	assert_int_equal(lock2(&w.device, a)[3], 0x2727);
	unlock2(&w.device, a);
	wddm2_stop(&w);
}
#endif

/* Another device of the same process is not the same device. */
static void pri_09_an_allocation_of_another_device_is_refused(void **state)
{
	struct client_device sister;
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, at_once);
	sister = w.device;
	assert_int_equal(vidmm_device_create(w.device.process, w.client.adapter, &sister.device),
			 0);
	sister.handle = vidmm_device_handle(sister.device);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device), hers = wddm2_queue(&sister);
	D3DKMT_HANDLE theirs = wddm2_allocate(&sister, 64 * KIB, WORLD_MEMORY);
	assert_int_equal(wddm2_try_make_one(&w.device, &queue, theirs, &args), E_INVALIDARG);
	world_expect_finding(&w, "PRI-09");
	assert_int_equal(args.NumAllocations, 0);
	wddm2_make(&w, &sister, &hers, &theirs, 1);
	assert_int_equal(wddm2_evict(&w.device, theirs, 0), E_INVALIDARG);
	world_expect_finding(&w, "PRI-09");
	assert_true(wddm2_is_in_memory(&sister, theirs));
	vidmm_device_destroy(sister.device);
	wddm2_stop(&w);
}

/* Also while it is still in memory: EvictOnlyIfNecessary leaves it there, but off the list. */
static void pri_11_referencing_an_evicted_allocation_is_refused(void **state)
{
	struct world w;

	for (uint32_t flags = 0; flags <= EVICT_ONLY_IF_NECESSARY; flags++) {
		world_start(&w, state, at_once);
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
		D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
		wddm2_make(&w, &w.device, &queue, &a, 1);
		world_submit_use(&w.context, a);
		world_run(&w);
		assert_int_equal(wddm2_evict(&w.device, a, flags), S_OK);
		world_use(&w.context, a);
		assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
		world_expect_finding(&w, "DMA-26");
		assert_int_equal(world_render_submits(&w), 1);
		wddm2_stop(&w);
	}
}

/* ---- PRI-02 ---- */

static void wddm2_2(struct scripted_miniport *m)
{
	at_once(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_2);
}

static D3DKMT_HANDLE kmt_device(struct world *w, struct vidmm_process **process)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};

	assert_int_equal(vidmm_process_open(w->client.host, "kmt", process), 0);
	vidmm_d3dkmt_attach(*process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	device.hAdapter = info.hAdapter;
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	return device.hDevice;
}

static NTSTATUS create_with(D3DKMT_HANDLE device, uint32_t flags, uint32_t priority,
			    D3DKMT_HANDLE *a)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = PHYSICAL};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &spec,
				       .PrivateDriverDataSize = sizeof(spec),
				       .Flags.Value = flags,
				       .Priority = priority};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo2 = &info};
	NTSTATUS status = D3DKMTCreateAllocation2(&args);

	*a = info.hAllocation;
	return status;
}

static uint32_t priority_of(D3DKMT_HANDLE device, D3DKMT_HANDLE a)
{
	UINT priority = 0;
	const D3DKMT_GETALLOCATIONPRIORITY ask = {.hDevice = device,
						  .phAllocationList = &a,
						  .AllocationCount = 1,
						  .pPriorities = &priority};

	assert_int_equal(D3DKMTGetAllocationPriority(&ask), STATUS_SUCCESS);
	return priority;
}

static void pri_02_overridepriority_replaces_the_miniports_priority(void **state)
{
	struct vidmm_process *process;
	D3DKMT_HANDLE device, a;
	struct world w;

	world_start(&w, state, wddm2_2);
	device = kmt_device(&w, &process);
	assert_int_equal(create_with(device, 0x4, D3DDDI_ALLOCATIONPRIORITY_HIGH, &a),
			 STATUS_SUCCESS);
	assert_int_equal(priority_of(device, a), D3DDDI_ALLOCATIONPRIORITY_HIGH);
	/* Without the flag the member is ignored. */
	assert_int_equal(create_with(device, 0, D3DDDI_ALLOCATIONPRIORITY_HIGH, &a),
			 STATUS_SUCCESS);
	assert_int_equal(priority_of(device, a), D3DDDI_ALLOCATIONPRIORITY_NORMAL);
	assert_int_equal(create_with(device, 0x4, 0, &a), STATUS_INVALID_PARAMETER);
	world_expect_finding(&w, "PRI-02");
	assert_int_equal(a, 0);
	vidmm_process_close(process);
	wddm2_stop(&w);
	world_start(&w, state, at_once); /* which came with 2.2 */
	device = kmt_device(&w, &process);
	assert_int_equal(create_with(device, 0x4, D3DDDI_ALLOCATIONPRIORITY_HIGH, &a),
			 STATUS_NOT_SUPPORTED);
	vidmm_process_close(process);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(ref_13_every_lock_maps_the_same_backing_memory),
		ON_SIM(alf_08_lock2_of_protected_memory_is_refused),
		ON_SIM(alf_27_cpuvisibleondemand_is_locked_by_pfnlockcb_and_lock2),
#ifndef SANITIZED
		ON_SIM(alf_27_an_on_demand_lock_without_address_space_fails),
#endif
		ON_SIM(pri_09_an_allocation_of_another_device_is_refused),
		ON_SIM(pri_11_referencing_an_evicted_allocation_is_refused),
		ON_SIM(pri_02_overridepriority_replaces_the_miniports_priority),
	};

	return cmocka_run_group_tests_name("wddm2 rules", tests, NULL, NULL);
}
