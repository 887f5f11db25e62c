/* SPDX-License-Identifier: MIT */
/*
 * The adapter stops for a violation while clients wait for it in every possible way. Every wait
 * ends.
 */
#include "sched_world.h"

#define WAITERS 4u

enum { BAD_FENCE, FAILED_SUBMIT, FAILED_PATCH, FAILED_PAGING, CAUSES };

struct scene {
	struct world w;
	struct client_context context[WAITERS];
	D3DKMT_HANDLE a, b, all;
	_Atomic uint32_t started, ended;
	HRESULT result[WAITERS];
	struct vidmm_thread *thread[WAITERS];
};

/* Waits for the GPU to finish with an allocation. */
static void wait_in_lock(void *argument)
{
	struct scene *s = argument;
	D3DKMT_HANDLE a = s->a;

	atomic_fetch_add(&s->started, 1);
	s->result[0] = client_try_lock(&s->w.device, &a, 0, NULL);
	atomic_fetch_add(&s->ended, 1);
}

/* Waits for a DMA buffer: more submissions than the context has buffers. */
static void wait_for_buffer(void *argument)
{
	struct scene *s = argument;

	atomic_fetch_add(&s->started, 1);
	do {
		world_use(&s->context[1], s->b);
		D3DDDICB_RENDER args = world_render_args(&s->context[1]);
		s->result[1] = world_render(&s->context[1], &args);
	} while (s->result[1] == S_OK);
	atomic_fetch_add(&s->ended, 1);
}

/* Waits for the last packet of a context. */
static void wait_to_end(void *argument)
{
	struct scene *s = argument;
	D3DDDICB_DESTROYCONTEXT args = {.hContext = s->context[2].c.hContext};

	atomic_fetch_add(&s->started, 1);
	s->result[2] = s->w.device.cb->pfnDestroyContextCb(s->w.device.handle, &args);
	atomic_fetch_add(&s->ended, 1);
}

/* Waits for all work. */
static void wait_for_idle(void *argument)
{
	struct scene *s = argument;

	atomic_fetch_add(&s->started, 1);
	client_idle(&s->w.client);
	s->result[3] = D3DDDIERR_DEVICEREMOVED;
	atomic_fetch_add(&s->ended, 1);
}

/*
 * Meanwhile the worker waits for memory on behalf of a submission whose working set is all of it.
 */
static void prepare(struct scene *s, void **state)
{
	static void (*const waits[WAITERS])(void *) = {wait_in_lock, wait_for_buffer, wait_to_end,
						       wait_for_idle};
	struct world *w = &s->w;

	world_start(w, state, NULL);
	for (uint32_t i = 0; i < WAITERS; i++)
		client_context(&w->device, 0, &s->context[i]);
	s->a = world_allocate(w, 1 * MIB, WORLD_MEMORY);
	s->b = world_allocate(w, 1 * MIB, WORLD_MEMORY);
	s->all = world_allocate(w, 16 * MIB, WORLD_MEMORY);
	world_use(&w->context, s->a);
	world_submit_use(&w->context, s->b);
	/* the worker submits paging before that packet can complete */
	vidmm_settle(w->client.host);
	scripted_complete(w->m, 1, UINT32_MAX);
	world_submit_use(&s->context[2], s->b);
	world_submit_use(&w->context, s->all);
	for (uint32_t i = 0; i < WAITERS; i++)
		assert_int_equal(
			vidmm_thread_create(w->client.host, "waits", waits[i], s, &s->thread[i]),
			0);
	while (atomic_load(&s->started) < WAITERS)
		vidmm_settle(w->client.host);
	while (scripted_outstanding(w->m, 0) < 2)
		vidmm_settle(w->client.host);
	for (uint32_t i = 0; i < 20; i++)
		vidmm_settle(w->client.host);
	assert_int_equal(atomic_load(&s->ended), 0);
	assert_int_equal(scripted_outstanding(w->m, 0), 2);
}

static uint32_t first_fence(struct world *w)
{
	return world_nth_of(w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.SubmissionFenceId;
}

static void violate(struct world *w, uint32_t cause)
{
	switch (cause) {
	case BAD_FENCE:
		scripted_report(w->m, 0, first_fence(w) + 100);
		break;
	case FAILED_SUBMIT:
		scripted_fail(w->m, VIDMM_DDI_SUBMIT_COMMAND, STATUS_UNSUCCESSFUL, 1);
		scripted_complete(w->m, 0, UINT32_MAX);
		break;
	case FAILED_PATCH:
		scripted_fail(w->m, VIDMM_DDI_PATCH, STATUS_UNSUCCESSFUL, 1);
		scripted_complete(w->m, 0, UINT32_MAX);
		break;
	default:
		scripted_fail(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, STATUS_UNSUCCESSFUL, 1);
		scripted_complete(w->m, 0, UINT32_MAX);
		break;
	}
}

static void a_violation_releases(void **state, uint32_t cause)
{
	struct scene s = {0};

	prepare(&s, state);
	violate(&s.w, cause);
	for (uint32_t i = 0; i < WAITERS; i++)
		vidmm_thread_join(s.thread[i]);
	assert_int_equal(s.w.fatals, 1);
	assert_int_equal(s.result[1], D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(s.result[2], S_OK); /* destruction is always possible */
	/* with other causes its packet may have completed before */
	if (cause == BAD_FENCE)
		assert_int_equal(s.result[0], D3DDDIERR_DEVICEREMOVED);
	client_forget(&s.w.client);
	s.w.expected_fatals = 1;
	world_stop(&s.w);
}

static void lock_33_a_wrong_fence_releases_every_waiter(void **state)
{
	a_violation_releases(state, BAD_FENCE);
}

static void lock_33_a_failed_submit_releases_every_waiter(void **state)
{
	a_violation_releases(state, FAILED_SUBMIT);
}

static void lock_33_a_failed_patch_releases_every_waiter(void **state)
{
	a_violation_releases(state, FAILED_PATCH);
}

static void lock_33_failed_paging_releases_every_waiter(void **state)
{
	a_violation_releases(state, FAILED_PAGING);
}

/*
 * Two devices and several contexts, with locked, renamed and offered allocations: all can be closed
 * although the miniport is dead.
 */
static void lock_33_objects_of_a_stopped_adapter_can_be_closed(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE};

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	client_context(&other, 1, &others);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), b = world_allocate_as(&other, &spec),
		      renamed = a;
	D3DKMT_HANDLE aperture = world_allocate(&w, 64 * KIB, WORLD_APERTURE);
	D3DDDICB_OFFERALLOCATIONS offer = {
		.NumAllocations = 1, .HandleList = &b, .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	world_submit_use(&others, b);
	world_submit_use(&w.context, a);
	world_submit_use(&w.context, aperture);
	assert_int_equal(client_try_lock(&w.device, &renamed, 0x80, NULL), S_OK);
	assert_int_equal(other.cb->pfnOfferAllocationsCb(other.handle, &offer), S_OK);
	scripted_complete(w.m, 1, 1);
	scripted_report(w.m, 0, 1);
	if (!w.fatals) /* an old handle is invalid */
		scripted_report(w.m, 0, 0x7FFFFF00u);
	assert_int_equal(w.fatals, 1);
	assert_int_equal(client_deallocate(&w.device, aperture), S_OK);
	assert_int_equal(client_unlock(&w.device, renamed), S_OK);
	client_context_end(&others);
	client_close(&other);
	client_forget(&w.client);
	w.expected_fatals = 1;
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(lock_33_a_wrong_fence_releases_every_waiter),
		ON_BOTH(lock_33_a_failed_submit_releases_every_waiter),
		ON_BOTH(lock_33_a_failed_patch_releases_every_waiter),
		ON_BOTH(lock_33_failed_paging_releases_every_waiter),
		ON_BOTH(lock_33_objects_of_a_stopped_adapter_can_be_closed),
	};

	return cmocka_run_group_tests_name("sched fatal", tests, NULL, NULL);
}
