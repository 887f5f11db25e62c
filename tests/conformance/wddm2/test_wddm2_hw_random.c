/* SPDX-License-Identifier: MIT */
/*
 * Hardware queues of two devices, and another client with DMA buffers, which together need more
 * memory than there is. Waits, signals and late answers to suspensions come in an order determined
 * by a seed. In every order, commands complete in queue order, nothing is submitted to a suspended
 * context (a fault of the miniport), and all work completes.
 */
#include "hw_world.h"

#define DEVICES 2u
#define QUEUES  4u
#define ROUNDS  48u
#define STEPS   120u
#define BYTES   (6 * MIB) /* for each of three; two of them fit */

struct random {
	struct hw_world h;
	uint64_t state;
	D3DKMT_HANDLE device[DEVICES], fence;
	struct hw_queue queue[QUEUES];
	uint64_t submitted[QUEUES], seen[QUEUES], signalled;
	D3DDDICB_CREATEPAGINGQUEUE pages;
	D3DKMT_HANDLE other;
	bool other_listed;
};

static uint32_t draw(struct random *r, uint32_t limit)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->state >> 33) % limit;
}

static void begin(struct random *r, void **state, uint64_t seed)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = {0};

	*r = (struct random){.state = seed};
	hw_start(&r->h, state, hw_two_in_flight);
	r->device[0] = r->h.device;
	r->device[1] = hw_device(&r->h);
	for (uint32_t d = 0; d < DEVICES; d++)
		hw_listing(r->device[d], BYTES);
	for (uint32_t q = 0; q < QUEUES; q++)
		r->queue[q] =
			hw_queue(&r->h, q ? hw_context(r->device[q % DEVICES]) : r->h.context, 0);
	fence.hDevice = r->device[0];
	fence.Info.Type = D3DDDI_MONITORED_FENCE;
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&fence), STATUS_SUCCESS);
	r->fence = fence.hSyncObject;
	r->pages = wddm2_queue(&r->h.w.device);
	r->other = wddm2_allocate(&r->h.w.device, BYTES, WORLD_MEMORY);
	hw_run(&r->h);
}

static void answer_suspensions(struct random *r)
{
	struct scripted_miniport *m = r->h.w.m;

	for (uint32_t c = 0; c < m->hw_context_count; c++)
		if (m->hw_context[c].asked)
			scripted_hw_suspended(m, c, m->hw_context[c].suspend_fence);
}

static void check(struct random *r)
{
	for (uint32_t q = 0; q < QUEUES; q++) {
		uint64_t value = hw_value(&r->queue[q]);

		assert_true(value >= r->seen[q] && value <= r->submitted[q]);
		r->seen[q] = value;
	}
	assert_int_equal(r->h.w.m->faults, 0);
	vidmm_adapter_check(r->h.w.client.adapter);
}

static void complete_one(struct random *r, uint32_t q)
{
	struct scripted_miniport *m = r->h.w.m;

	if (!m->hw_queue[q].context->suspended)
		scripted_hw_complete(m, q, 1);
	scripted_complete(m, draw(r, 2), 1);
}

static void press_for_memory(struct random *r)
{
	D3DDDI_MAKERESIDENT make = {.hPagingQueue = r->pages.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &r->other};

	if (r->other_listed) {
		world_submit_use(&r->h.w.context, r->other);
		assert_int_equal(wddm2_evict(&r->h.w.device, r->other, 0), S_OK);
	} else {
		HRESULT result = wddm2_try_make(&r->h.w.device, &make);

		assert_true(result == S_OK || result == E_PENDING);
	}
	r->other_listed = !r->other_listed;
}

static void synchronize(struct random *r, uint32_t q)
{
	UINT64 value = r->signalled + draw(r, 2);
	const D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE wait = {.hHwQueue = r->queue[q].handle,
							       .ObjectCount = 1,
							       .ObjectHandleArray = &r->fence,
							       .FenceValueArray = &value};
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.hDevice = r->device[0],
								  .ObjectCount = 1,
								  .ObjectHandleArray = &r->fence,
								  .FenceValueArray = &r->signalled};

	if (draw(r, 2)) {
		assert_int_equal(D3DKMTSubmitWaitForSyncObjectsToHwQueue(&wait), STATUS_SUCCESS);
		return;
	}
	r->signalled++;
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&signal), STATUS_SUCCESS);
}

static void step(struct random *r)
{
	uint32_t q = draw(r, QUEUES);

	switch (draw(r, 8)) {
	case 0:
	case 1:
	case 2:
		assert_int_equal(hw_submit(&r->queue[q], ++r->submitted[q]), STATUS_SUCCESS);
		break;
	case 3:
	case 4:
		complete_one(r, q);
		break;
	case 5:
		press_for_memory(r);
		break;
	case 6:
		synchronize(r, q);
		break;
	default:
		answer_suspensions(r);
		r->h.w.m->settings.hw_withhold_suspension = draw(r, 2);
	}
	hw_settle(&r->h);
	check(r);
}

/* Signals all values that are waited for, and answers all suspensions. */
static void finish(struct random *r)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.hDevice = r->device[0],
								  .ObjectCount = 1,
								  .ObjectHandleArray = &r->fence,
								  .FenceValueArray = &r->signalled};

	r->signalled += 2;
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromCpu(&signal), STATUS_SUCCESS);
	r->h.w.m->settings.hw_withhold_suspension = false;
	for (uint32_t i = 0; i < 4; i++) {
		answer_suspensions(r);
		hw_settle(&r->h);
	}
	hw_run(&r->h);
	for (uint32_t q = 0; q < QUEUES; q++)
		assert_int_equal(hw_value(&r->queue[q]), r->submitted[q]);
	hw_stop(&r->h);
}

static void sub_27_sch_11_random_orders_complete_in_queue_order(void **state)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct random r;

		begin(&r, state, 0x5EED + round);
		for (uint32_t i = 0; i < STEPS; i++)
			step(&r);
		finish(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(sub_27_sch_11_random_orders_complete_in_queue_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
