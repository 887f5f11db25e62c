/* SPDX-License-Identifier: MIT */
/*
 * Locks and unlocks whose events have no subscriber take a shorter way than those with one. Both
 * must return the same, and the counters of events must say the same.
 */
#include <support/client.h>

#include <string.h>
#include <d3dkmthk.h>

enum { ROUNDS = 3, BYTES = 65536 };

struct fixture {
	bool wddm2;
	struct client client;
	struct client_device device;
	D3DKMT_HANDLE allocation[2];
	D3DKMT_HANDLE kmt_device; /* the same device */
	void *address[2];
};

static struct softgpu_allocation description(const struct fixture *f)
{
	uint32_t flags = SOFTGPU_ALLOCATION_CPU_VISIBLE;

	if (f->wddm2)
		flags |= SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY;
	return (struct softgpu_allocation){
		.version = SOFTGPU_ALLOCATION_VERSION, .flags = flags, .size_bytes = BYTES};
}

static D3DKMT_HANDLE allocate(struct fixture *f)
{
	struct softgpu_allocation spec = description(f);
	D3DKMT_HANDLE allocation;

	assert_int_equal(client_try_allocate(&f->device, &spec, NULL, &allocation, NULL), S_OK);
	return allocation;
}

/* On WDDM 2.x a lock only counts where the GPU has the allocation. */
static void make_resident(struct fixture *f)
{
	D3DDDICB_CREATEPAGINGQUEUE queue = {0};

	assert_int_equal(f->device.cb->pfnCreatePagingQueueCb(f->device.handle, &queue), S_OK);
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = queue.hPagingQueue,
				    .NumAllocations = 2,
				    .AllocationList = f->allocation};
	HRESULT result = f->device.cb->pfnMakeResidentCb(f->device.handle, &args);
	assert_true(result == S_OK || result == E_PENDING);
	client_idle(&f->client);
}

static void start(struct fixture *f, uint32_t model)
{
	const struct vidmm_registry_value value = {"Model", model};
	const struct client_options options = {
		.kind = VIDMM_HOST_LINUX, .registry = &value, .registry_count = 1};

	memset(f, 0, sizeof(*f));
	f->wddm2 = model == SOFTGPU_MODEL_WDDM2;
	client_start(&f->client, &options);
	client_open(&f->client, &f->device);
	for (unsigned i = 0; i < 2; i++)
		f->allocation[i] = allocate(f);
	if (f->wddm2)
		make_resident(f);
	vidmm_d3dkmt_attach(f->device.process);
	f->kmt_device = vidmm_device_d3dkmt_handle(f->device.device);
}

static void stop(struct fixture *f)
{
	vidmm_d3dkmt_attach(NULL);
	assert_int_equal(f->client.findings, 0);
	client_close(&f->device);
	client_stop(&f->client);
}

static void lock_by_callback(struct fixture *f, unsigned i, uint32_t flags)
{
	void *address = client_lock(&f->device, f->allocation[i], flags);

	if (!f->address[i])
		f->address[i] = address;
	assert_ptr_equal(address, f->address[i]);
}

/* Nested locks, an unlock of one, and an unlock of a list. */
static void use_callbacks(struct fixture *f)
{
	lock_by_callback(f, 0, 0x1);
	lock_by_callback(f, 0, 0);
	lock_by_callback(f, 1, 0x6);
	assert_int_equal(client_unlock(&f->device, f->allocation[0]), S_OK);
	const D3DDDICB_UNLOCK both = {.NumAllocations = 2, .phAllocations = f->allocation};
	assert_int_equal(f->device.cb->pfnUnlockCb(f->device.handle, &both), S_OK);
}

static void use_lock2(struct fixture *f)
{
	D3DDDICB_LOCK2 lock = {.hAllocation = f->allocation[1]};
	const D3DDDICB_UNLOCK2 unlock = {.hAllocation = f->allocation[1]};
	D3DKMT_LOCK2 kmt_lock = {.hDevice = f->kmt_device, .hAllocation = f->allocation[1]};
	const D3DKMT_UNLOCK2 kmt_unlock = {.hDevice = f->kmt_device,
					   .hAllocation = f->allocation[1]};

	assert_int_equal(f->device.cb->pfnLock2Cb(f->device.handle, &lock), S_OK);
	assert_ptr_equal(lock.pData, f->address[1]);
	assert_int_equal(f->device.cb->pfnUnlock2Cb(f->device.handle, &unlock), S_OK);
	assert_int_equal(D3DKMTLock2(&kmt_lock), 0);
	assert_ptr_equal(kmt_lock.pData, f->address[1]);
	assert_int_equal(D3DKMTUnlock2(&kmt_unlock), 0);
}

static void use_functions(struct fixture *f)
{
	D3DKMT_LOCK lock = {.hDevice = f->kmt_device, .hAllocation = f->allocation[1]};
	const D3DKMT_UNLOCK unlock = {
		.hDevice = f->kmt_device, .NumAllocations = 1, .phAllocations = &f->allocation[1]};

	lock.Flags.ReadOnly = 1;
	assert_int_equal(D3DKMTLock(&lock), 0);
	assert_ptr_equal(lock.pData, f->address[1]);
	assert_int_equal(lock.hAllocation, f->allocation[1]);
	assert_int_equal(D3DKMTUnlock(&unlock), 0);
}

enum { TYPES = 3 };
static const uint32_t types[TYPES] = {VIDMM_EVENT_LOCK, VIDMM_EVENT_UNLOCK, VIDMM_EVENT_DOOR};

static void use_all(struct fixture *f, struct vidmm_counter counters[TYPES])
{
	struct vidmm_counter before[TYPES];

	for (unsigned t = 0; t < TYPES; t++)
		vidmm_event_counter(f->client.host, types[t], &before[t]);
	for (unsigned round = 0; round < ROUNDS; round++) {
		use_callbacks(f);
		use_functions(f);
		if (f->wddm2)
			use_lock2(f);
	}
	for (unsigned t = 0; t < TYPES; t++) {
		vidmm_event_counter(f->client.host, types[t], &counters[t]);
		counters[t].count -= before[t].count;
		for (unsigned i = 0; i < 4; i++)
			counters[t].sum[i] -= before[t].sum[i];
	}
}

static void ignore(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context;
	(void)event;
	(void)text;
}

static void lock_41_the_counters_are_the_same_with_and_without_a_subscriber(void **state)
{
	struct vidmm_counter without[TYPES], with[TYPES];
	struct fixture f;

	start(&f, *(uint32_t *)*state);
	use_all(&f, without); /* the first locks of an allocation take the long way */
	use_all(&f, without);
	/* Each type alone makes its calls take the long way. */
	for (unsigned t = 0; t < TYPES; t++) {
		uint32_t id = vidmm_subscribe(f.client.host, UINT64_C(1) << types[t], ignore, NULL);

		assert_int_not_equal(id, 0);
		use_all(&f, with);
		vidmm_unsubscribe(f.client.host, id);
		for (unsigned other = 0; other < TYPES; other++) {
			/* The duration of a call is measured for a subscriber only. */
			if (types[other] == VIDMM_EVENT_DOOR)
				with[other].sum[2] = without[other].sum[2];
			assert_memory_equal(&with[other], &without[other], sizeof(with[other]));
		}
	}
	/* Per round: 3 locks by a callback, 1 by a function; 2.x: 2 more of Lock2. */
	assert_int_equal(without[0].count, ROUNDS * (f.wddm2 ? 6 : 4));
	assert_int_equal(without[1].count, ROUNDS * (f.wddm2 ? 6 : 4));
	assert_int_equal(without[2].count, ROUNDS * (f.wddm2 ? 11 : 7));
	assert_int_equal(without[2].sum[0], 0); /* all succeeded */
	stop(&f);
}

static void hnd_07_an_unlock_on_a_dead_device_does_not_read_its_list(void **state)
{
	static const D3DKMT_HANDLE *const nowhere = (const D3DKMT_HANDLE *)(uintptr_t)8;
	const D3DDDICB_UNLOCK *no_argument = (const D3DDDICB_UNLOCK *)(const void *)nowhere;
	struct client_device dead;
	struct fixture f;

	start(&f, *(uint32_t *)*state);
	client_open(&f.client, &dead);
	client_close(&dead);
	/* An allocation is no device. */
	D3DKMT_UNLOCK unlock = {
		.hDevice = f.allocation[0], .NumAllocations = 1, .phAllocations = nowhere};
	assert_int_equal(f.device.cb->pfnUnlockCb(dead.handle, no_argument), E_INVALIDARG);
	if (!client_is_out_of_process()) /* such a client copies the list itself */
		assert_int_equal((uint32_t)D3DKMTUnlock(&unlock), 0xC000000Du);
	client_forget(&f.client);
	stop(&f);
}

int main(void)
{
	static uint32_t models[] = {SOFTGPU_MODEL_WDDM1, SOFTGPU_MODEL_WDDM2};
	const struct CMUnitTest tests[] = {
		{"WDDM 1.x: lock_41 the same counters with and without a subscriber",
		 lock_41_the_counters_are_the_same_with_and_without_a_subscriber, NULL, NULL,
		 &models[0]},
		{"WDDM 2.x: lock_41 the same counters with and without a subscriber",
		 lock_41_the_counters_are_the_same_with_and_without_a_subscriber, NULL, NULL,
		 &models[1]},
		{"WDDM 1.x: hnd_07 an unlock on a dead device does not read its list",
		 hnd_07_an_unlock_on_a_dead_device_does_not_read_its_list, NULL, NULL, &models[0]},
		{"WDDM 2.x: hnd_07 an unlock on a dead device does not read its list",
		 hnd_07_an_unlock_on_a_dead_device_does_not_read_its_list, NULL, NULL, &models[1]},
	};

	return cmocka_run_group_tests_name("lock_events", tests, NULL, NULL);
}
