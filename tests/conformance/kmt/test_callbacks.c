/* SPDX-License-Identifier: MIT */
/*
 * Every device callback, with NULL for its argument and with an argument of zeros. A call that
 * fails has one door event, and a finding or reason that says why; so have calls whose arrays are
 * missing or too long.
 */
#include <support/client.h>

#include <stdlib.h>
#include <string.h>

/* All callbacks have a device and a pointer for parameters. */
typedef HRESULT APIENTRY callback_fn(HANDLE device, void *argument);

#define CALLBACKS      (sizeof(D3DDDI_DEVICECALLBACKS) / sizeof(callback_fn *))
#define ARGUMENT_BYTES 4096u /* more than the largest argument */

struct world {
	struct client client;
	struct client_device device;
	callback_fn *callbacks[CALLBACKS];
	uint32_t doors; /* door events since the call began */
};

struct variant {
	uint32_t kind; /* VIDMM_HOST_* */
	uint64_t model;
};
static struct variant wddm1_sim = {VIDMM_HOST_SIM, SOFTGPU_MODEL_WDDM1},
		      wddm1_linux = {VIDMM_HOST_LINUX, SOFTGPU_MODEL_WDDM1},
		      wddm2_sim = {VIDMM_HOST_SIM, SOFTGPU_MODEL_WDDM2},
		      wddm2_linux = {VIDMM_HOST_LINUX, SOFTGPU_MODEL_WDDM2};

/* Only the thread of the test makes calls. */
static void on_door(void *context, const struct vidmm_event *event, const char *text)
{
	struct world *w = context;

	(void)event;
	(void)text;
	w->doors++;
}

static void start(struct world *w, const struct variant *variant)
{
	const struct vidmm_registry_value registry[] = {
		{"Model", variant->model},
		{"HardwareQueues", variant->model == SOFTGPU_MODEL_WDDM2}};
	const struct client_options options = {.kind = variant->kind,
					       .vram_bytes = 4u << 20,
					       .registry = registry,
					       .registry_count = 2,
					       .features = VIDMM_FEATURE_HWSCH};

	client_start(&w->client, &options);
	client_open(&w->client, &w->device);
	memcpy(w->callbacks, w->device.cb, sizeof(w->callbacks));
	assert_int_not_equal(vidmm_subscribe(w->client.host, 1ull << VIDMM_EVENT_DOOR, on_door, w),
			     0);
}

/* Returns the result of callback I; a failure is one door event and says why. */
static HRESULT call(struct world *w, size_t i, void *argument)
{
	w->doors = 0;
	w->client.reasons = 0;
	client_forget(&w->client);
	HRESULT result = w->callbacks[i](w->device.handle, argument);

	if (result >= 0 || result == E_PENDING)
		return result;
	if (w->doors != 1)
		fail_msg("callback %zu: 0x%08x, %u door events", i, (uint32_t)result, w->doors);
	if (!w->client.reasons && !w->client.findings)
		fail_msg("callback %zu: 0x%08x, and no finding or reason", i, (uint32_t)result);
	return result;
}

static void stop(struct world *w)
{
	client_forget(&w->client);
	client_close(&w->device);
	client_stop(&w->client);
}

static void hnd_11_each_callback_without_an_argument_says_so(void **state)
{
	struct world w = {0};
	uint32_t refused = 0;

	start(&w, *state);
	for (size_t i = 0; i < CALLBACKS; i++) {
		if (!w.callbacks[i])
			continue;
		HRESULT result = call(&w, i, NULL);
		if (result == E_NOTIMPL)
			continue; /* not built */
		if (result != E_INVALIDARG)
			fail_msg("callback %zu: 0x%08x", i, (uint32_t)result);
		refused++;
	}
	assert_true(refused > 30);
	stop(&w);
}

static void hnd_11_each_callback_that_refuses_zeros_says_why(void **state)
{
	struct world w = {0};
	uint32_t refused = 0;

	start(&w, *state);
	for (size_t i = 0; i < CALLBACKS; i++) {
		void *zeros = calloc(1, ARGUMENT_BYTES);

		assert_non_null(zeros);
		if (w.callbacks[i])
			refused += call(&w, i, zeros) < 0;
		free(zeros);
	}
	assert_true(refused > 30);
	stop(&w);
}

static void each_array_that_is_missing_or_too_long_is_named(void **state)
{
	D3DKMT_HANDLE handles[1] = {0};
	struct world w = {0};

	start(&w, *state);
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	HANDLE device = w.device.handle;
	D3DDDICB_ALLOCATE allocate = {.NumAllocations = 1};
	assert_int_equal(cb->pfnAllocateCb(device, &allocate), E_INVALIDARG);
	assert_true(client_told(&w.client, (uint32_t)STATUS_INVALID_PARAMETER, "pAllocationInfo"));
	D3DDDI_ALLOCATIONINFO info = {.PrivateDriverDataSize = 8};
	allocate.pAllocationInfo = &info;
	assert_int_equal(cb->pfnAllocateCb(device, &allocate), E_INVALIDARG);
	assert_true(client_told(
		&w.client, (uint32_t)STATUS_INVALID_PARAMETER,
		"pPrivateDriverData of an allocation is NULL or larger than the limit (count 8)"));
	D3DDDICB_DEALLOCATE deallocate = {.NumAllocations = 1};
	assert_int_equal(cb->pfnDeallocateCb(device, &deallocate), E_INVALIDARG);
	assert_true(client_told(&w.client, (uint32_t)STATUS_INVALID_PARAMETER, "HandleList"));
	D3DDDICB_UNLOCK unlock = {.NumAllocations = 1};
	assert_int_equal(cb->pfnUnlockCb(device, &unlock), E_INVALIDARG);
	assert_true(client_told(&w.client, (uint32_t)STATUS_INVALID_PARAMETER, "phAllocations"));
	unlock = (D3DDDICB_UNLOCK){.NumAllocations = UINT32_MAX, .phAllocations = handles};
	assert_int_equal(cb->pfnUnlockCb(device, &unlock), E_INVALIDARG);
	assert_true(
		client_told(&w.client, (uint32_t)STATUS_INVALID_PARAMETER,
			    "phAllocations is NULL or larger than the limit (count 4294967295)"));
	D3DDDICB_EVICT evict = {.NumAllocations = 1};
	assert_int_equal(cb->pfnEvictCb(device, &evict), E_INVALIDARG);
	assert_true(client_told(&w.client, (uint32_t)STATUS_INVALID_PARAMETER,
				"pfnEvictCb: AllocationList"));
	stop(&w);
}

#define TEST(prefix, function, variant)                            \
	{                                                          \
		prefix #function, function, NULL, NULL, &(variant) \
	}
#define TESTS(prefix, variant)                                                           \
	TEST(prefix, hnd_11_each_callback_without_an_argument_says_so, variant),         \
		TEST(prefix, hnd_11_each_callback_that_refuses_zeros_says_why, variant), \
		TEST(prefix, each_array_that_is_missing_or_too_long_is_named, variant)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TESTS("sim, WDDM 1: ", wddm1_sim),
		TESTS("linux, WDDM 1: ", wddm1_linux),
		TESTS("sim, WDDM 2: ", wddm2_sim),
		TESTS("linux, WDDM 2: ", wddm2_linux),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
