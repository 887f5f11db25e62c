/* SPDX-License-Identifier: MIT */
/*
 * Calls with a list of handles check it under a lock that other threads need. Their cost is linear
 * in the length of the list. The files of the memory manager that do the work are compiled with
 * -fsanitize-coverage=trace-pc for this program: each basic block that runs is a step. Lists of
 * two lengths are compared, so the test measures no time.
 */
#include <stdio.h>
#include <string.h>

#include "wddm2_world.h"

enum { FEW = 200, FACTOR = 4, MANY = FEW * FACTOR };

static uint64_t steps;

void __sanitizer_cov_trace_pc(void); /* called by the compiled code */
void __sanitizer_cov_trace_pc(void)
{
	__atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED);
}

struct lists {
	struct world w;
	D3DDDICB_CREATEPAGINGQUEUE queue;
	D3DKMT_HANDLE a[MANY];
	D3DKMT_HANDLE same[MANY]; /* a[0] in every entry */
};

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static void start(struct lists *l, void **state, void (*setup)(struct scripted_miniport *))
{
	world_start(&l->w, state, setup);
	l->queue = wddm2_queue(&l->w.device);
	for (uint32_t i = 0; i < MANY; i++)
		l->a[i] = wddm2_allocate(&l->w.device, 4096, WORLD_MEMORY);
	for (uint32_t i = 0; i < MANY; i++)
		l->same[i] = l->a[0];
}

static HRESULT unlock_list(struct lists *l, const D3DKMT_HANDLE *list, uint32_t count)
{
	const D3DDDICB_UNLOCK args = {.NumAllocations = count, .phAllocations = list};

	return l->w.device.cb->pfnUnlockCb(l->w.device.handle, &args);
}

static HRESULT evict_list(struct lists *l, const D3DKMT_HANDLE *list, uint32_t count)
{
	D3DDDICB_EVICT args = {.NumAllocations = count, .AllocationList = list};

	return l->w.device.cb->pfnEvictCb(l->w.device.handle, &args);
}

static HRESULT deallocate_list(struct lists *l, const D3DKMT_HANDLE *list, uint32_t count)
{
	const D3DDDICB_DEALLOCATE args = {.NumAllocations = count, .HandleList = list};

	return l->w.device.cb->pfnDeallocateCb(l->w.device.handle, &args);
}

static HRESULT make_list(struct lists *l, const D3DKMT_HANDLE *list, uint32_t count)
{
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = l->queue.hPagingQueue,
				    .NumAllocations = count,
				    .AllocationList = list};

	return wddm2_try_make(&l->w.device, &args);
}

typedef HRESULT list_call(struct lists *l, const D3DKMT_HANDLE *list, uint32_t count);

static uint64_t steps_of(struct lists *l, list_call *call, const D3DKMT_HANDLE *list,
			 uint32_t count, HRESULT result)
{
	uint64_t before = __atomic_load_n(&steps, __ATOMIC_RELAXED);

	assert_int_equal(call(l, list, count), result);
	uint64_t taken = __atomic_load_n(&steps, __ATOMIC_RELAXED) - before;

	assert_true(taken >= count); /* these files do the work */
	return taken;
}

/*
 * Four times the length costs at most five times the work; a quadratic cost would be sixteen
 * times.
 */
static void assert_linear(uint64_t few, uint64_t many)
{
	print_message("# %u entries: %llu steps, %u entries: %llu steps\n", FEW,
		      (unsigned long long)few, MANY, (unsigned long long)many);
	assert_true(many <= (FACTOR + 1) * few);
}

static void expect_finding(struct lists *l, const char *text)
{
	const struct client *client = &l->w.client;

	assert_true(client->findings > 0);
	const char *last = client->finding[(client->findings - 1) % CLIENT_FINDINGS];
	if (!strstr(last, text))
		fail_msg("\"%s\" does not say \"%s\"", last, text);
	client_forget(&l->w.client);
}

/* All handles once; one handle that often; and both refused because of the last entry. */
static void lock_29_the_cost_of_an_unlock_is_linear_in_its_list(void **state)
{
	static struct lists l;
	uint64_t taken[2][4];

	start(&l, state, at_once);
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t count = k ? MANY : FEW;

		for (uint32_t i = 0; i + 1 < count; i++)
			client_lock(&l.w.device, l.a[i], 0);
		taken[k][0] = steps_of(&l, unlock_list, l.a, count, E_INVALIDARG);
		expect_finding(&l, "locked 0 times, but occurs 1 times");
		client_lock(&l.w.device, l.a[count - 1], 0);
		taken[k][1] = steps_of(&l, unlock_list, l.a, count, S_OK);
		for (uint32_t i = 0; i + 1 < count; i++)
			client_lock(&l.w.device, l.a[0], 0);
		taken[k][2] = steps_of(&l, unlock_list, l.same, count, E_INVALIDARG);
		client_forget(&l.w.client);
		client_lock(&l.w.device, l.a[0], 0);
		taken[k][3] = steps_of(&l, unlock_list, l.same, count, S_OK);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_linear(taken[0][i], taken[1][i]);
	wddm2_stop(&l.w);
}

static void res_06_the_cost_of_an_evict_is_linear_in_its_list(void **state)
{
	static struct lists l;
	uint64_t taken[2][4];

	start(&l, state, at_once);
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t count = k ? MANY : FEW;

		taken[k][0] = steps_of(&l, make_list, l.a, count, E_PENDING);
		wddm2_run(&l.w);
		taken[k][1] =
			steps_of(&l, make_list, l.same, count, S_OK); /* now count + 1 times */
		taken[k][2] = steps_of(&l, evict_list, l.same, count, S_OK);
		taken[k][3] = steps_of(&l, evict_list, l.a, count, S_OK);
		wddm2_run(&l.w);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_linear(taken[0][i], taken[1][i]);
	wddm2_stop(&l.w);
}

/* The same for allocations that a paging queue still has to page in. */
static void alf_36_the_cost_of_a_deallocation_is_linear_in_its_list(void **state)
{
	static struct lists l;
	uint64_t taken[2][3];

	for (uint32_t k = 0; k < 2; k++) {
		uint32_t count = k ? MANY : FEW;

		start(&l, state, wddm2_0);
		D3DKMT_HANDLE last = l.a[count - 1];
		l.a[count - 1] = l.a[0];
		taken[k][0] = steps_of(&l, deallocate_list, l.a, count, E_INVALIDARG);
		char text[64];
		snprintf(text, sizeof(text), "listed twice (entries 0 and %u)", count - 1);
		expect_finding(&l, text);
		l.a[count - 1] = last;
		taken[k][1] = steps_of(&l, make_list, l.a, count, E_PENDING);
		taken[k][2] = steps_of(&l, deallocate_list, l.a, count, S_OK);
		wddm2_stop(&l.w);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_linear(taken[0][i], taken[1][i]);
}

/* Counts of a refused list do not carry over to the next list. */
static void lock_28_res_06_a_refused_list_changes_no_count(void **state)
{
	static struct lists l;

	start(&l, state, at_once);
	const D3DKMT_HANDLE list[] = {l.a[0], l.a[1], l.a[0]};
	wddm2_make(&l.w, &l.w.device, &l.queue, list, 2);
	client_lock(&l.w.device, l.a[0], 0);
	client_lock(&l.w.device, l.a[1], 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(unlock_list(&l, list, 3), E_INVALIDARG);
		expect_finding(&l, "locked 1 times, but occurs 2 times");
		assert_int_equal(evict_list(&l, list, 3), E_INVALIDARG);
		expect_finding(&l, "made resident 1 times, but occurs 2 times");
		assert_int_equal(deallocate_list(&l, list, 3), E_INVALIDARG);
		expect_finding(&l, "listed twice (entries 0 and 2)");
	}
	assert_int_equal(unlock_list(&l, list, 2), S_OK);
	assert_int_equal(evict_list(&l, list, 2), S_OK);
	assert_int_equal(deallocate_list(&l, list, 2), S_OK);
	wddm2_stop(&l.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(lock_29_the_cost_of_an_unlock_is_linear_in_its_list),
		ON_SIM(res_06_the_cost_of_an_evict_is_linear_in_its_list),
		ON_SIM(alf_36_the_cost_of_a_deallocation_is_linear_in_its_list),
		ON_BOTH(lock_28_res_06_a_refused_list_changes_no_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
