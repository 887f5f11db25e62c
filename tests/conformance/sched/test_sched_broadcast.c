/* SPDX-License-Identifier: MIT */
/*
 * One DMA buffer for several contexts (DMA-10, SPL-16), and what happens to its submissions when
 * one of them is preempted, split or reset, or its context is destroyed.
 *
 * Unless a test says otherwise, the owner is the world's context on node 0 and the others are on
 * nodes 0 and 1.
 */
#include "link_world.h"

#include <string.h>

#define COMMAND ((UINT)sizeof(struct scripted_command))

struct broadcast_world {
	struct timeout_world t;
	struct client_context second, third;
	D3DKMT_HANDLE a;
};

static void contexts(struct broadcast_world *b)
{
	client_context(&b->t.w.device, 0, &b->second);
	client_context(&b->t.w.device, 1, &b->third);
}

/* Nothing completes until the test requests it; `a` is resident. */
static void start_with(struct broadcast_world *b, void **state, world_setup *setup,
		       const struct client_options *options)
{
	world_start_with(&b->t.w, state, setup, options);
	b->t.w.m->settings.complete_at_once = true;
	world_open(&b->t.w);
	contexts(b);
	b->a = world_allocate(&b->t.w, 64 * KIB, WORLD_MEMORY);
	world_submit_use(&b->t.w.context, b->a);
	client_idle(&b->t.w.client);
	b->t.w.m->settings.complete_at_once = false;
	scripted_forget(b->t.w.m);
}

static void start(struct broadcast_world *b, void **state, world_setup *setup)
{
	const struct client_options none = {0};

	start_with(b, state, setup, &none);
}

static HRESULT broadcast(struct broadcast_world *b, D3DDDICB_RENDER *args)
{
	*args = world_render_args(&b->t.w.context);
	args->BroadcastContextCount = 2;
	args->BroadcastContext[0] = b->second.c.hContext;
	args->BroadcastContext[1] = b->third.c.hContext;
	return world_render(&b->t.w.context, args);
}

static void broadcast_write(struct broadcast_world *b, uint64_t offset, uint32_t value)
{
	D3DDDICB_RENDER args;

	world_write(&b->t.w.context, b->a, offset, value);
	assert_int_equal(broadcast(b, &args), S_OK);
}

static void broadcast_use(struct broadcast_world *b)
{
	D3DDDICB_RENDER args;

	world_use(&b->t.w.context, b->a);
	assert_int_equal(broadcast(b, &args), S_OK);
}

/* The miniport's handle of the n-th context created on that device. */
static HANDLE kmd(const struct broadcast_world *b, enum vidmm_ddi ddi, uint32_t n)
{
	const struct scripted_call *call = world_nth_of(&b->t.w, ddi, false, n);

	assert_non_null(call);
	return ddi == VIDMM_DDI_PATCH ? call->in.patch.hContext : call->in.submit.hContext;
}

/* ---- DMA-10 ---- */

static void dma_10_each_context_gets_its_own_submission_and_fence(void **state)
{
	struct broadcast_world b;
	D3DDDICB_RENDER args;

	start(&b, state, NULL);
	world_write(&b.t.w.context, b.a, 16, 0xCAFE);
	assert_int_equal(broadcast(&b, &args), S_OK);
	assert_int_equal(args.QueuedBufferCount, 1); /* on the owning context (DMA-13) */
	world_await(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, 3);
	assert_int_equal(scripted_count(b.t.w.m, VIDMM_DDI_RENDER), 1);
	assert_int_equal(scripted_count(b.t.w.m, VIDMM_DDI_PATCH), 3);
	assert_int_equal(world_render_submits(&b.t.w), 3);
	const DXGKARG_SUBMITCOMMAND *first =
		&world_nth_of(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit;
	for (uint32_t i = 1; i < 3; i++) {
		const DXGKARG_SUBMITCOMMAND *other =
			&world_nth_of(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, false, i)->in.submit;

		assert_int_not_equal(other->SubmissionFenceId, first->SubmissionFenceId);
		assert_ptr_not_equal(other->hContext, first->hContext);
		assert_int_equal(other->DmaBufferPhysicalAddress.QuadPart,
				 first->DmaBufferPhysicalAddress.QuadPart);
		assert_int_equal(other->DmaBufferSubmissionEndOffset, COMMAND);
		assert_ptr_equal(other->pDmaBufferPrivateData, first->pDmaBufferPrivateData);
	}
	assert_ptr_not_equal(kmd(&b, VIDMM_DDI_SUBMIT_COMMAND, 1),
			     kmd(&b, VIDMM_DDI_SUBMIT_COMMAND, 2));
	world_assert_fences(&b.t.w);
	world_run(&b.t.w);
	assert_int_equal(world_word(&b.t.w, b.a, 16), 0xCAFE);
	world_stop(&b.t.w);
}

/*
 * The allocation is busy until the last copy is complete. Each context keeps its own order
 * (SUB-04).
 */
static void dma_10_referenced_allocations_are_busy_until_all_copies_complete(void **state)
{
	struct broadcast_world b;
	void *data;

	start(&b, state, NULL);
	broadcast_write(&b, 0, 1);
	world_await(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, 3);
	assert_int_equal(scripted_complete(b.t.w.m, 0, 2), 2);
	vidmm_settle(b.t.w.client.host);
	D3DKMT_HANDLE a = b.a;
	assert_int_equal(client_try_lock(&b.t.w.device, &a, 0x4, &data), D3DERR_WASSTILLDRAWING);
	assert_int_equal(scripted_complete(b.t.w.m, 1, 1), 1);
	vidmm_settle(b.t.w.client.host);
	assert_int_equal(client_try_lock(&b.t.w.device, &a, 0x4, &data), S_OK);
	assert_int_equal(client_unlock(&b.t.w.device, a), S_OK);
	/* A context's own packet stays behind the one that was broadcast to it. */
	broadcast_write(&b, 4, 2);
	world_submit_write(&b.third, b.a, 4, 3);
	world_run(&b.t.w);
	assert_int_equal(world_word(&b.t.w, b.a, 4), 3);
	world_stop(&b.t.w);
}

static void little_memory(struct scripted_miniport *m);

/*
 * PAT-12: no allocation that one of the copies still uses is evicted, although the owner's
 * submission is complete.
 */
static void dma_10_pat_12_addresses_stay_valid_until_all_copies_complete(void **state)
{
	struct broadcast_world b;

	start(&b, state, little_memory);
	D3DKMT_HANDLE large = world_allocate(&b.t.w, 128 * KIB, WORLD_MEMORY);
	broadcast_write(&b, 0, 0x77);
	world_await(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, 3);
	assert_int_equal(scripted_complete(b.t.w.m, 0, 2), 2);
	vidmm_settle(b.t.w.client.host);
	const uint32_t paged = scripted_count(b.t.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	world_submit_use(&b.t.w.context, large); /* its working set is all of memory */
	vidmm_settle(b.t.w.client.host);
	assert_int_equal(scripted_count(b.t.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), paged);
	assert_int_equal(world_render_submits(&b.t.w), 3);
	world_run(&b.t.w);
	assert_int_equal(world_render_submits(&b.t.w), 4);
	assert_int_equal(world_word(&b.t.w, b.a, 0), 0x77);
	world_stop(&b.t.w);
}

static uint64_t buffer_of_last_render(const struct broadcast_world *b)
{
	return (uint64_t)(uintptr_t)scripted_last(b->t.w.m, VIDMM_DDI_RENDER)->in.render.pDmaBuffer;
}

static void dma_10_the_dma_buffer_is_reused_after_all_copies_complete(void **state)
{
	struct broadcast_world b;

	start(&b, state, NULL);
	broadcast_use(&b);
	const uint64_t lent = buffer_of_last_render(&b);
	world_await(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, 3);
	assert_int_equal(scripted_complete(b.t.w.m, 0, 2), 2);
	vidmm_settle(b.t.w.client.host);
	for (uint32_t i = 0; i < 20; i++) { /* more than the context has buffers */
		world_submit_use(&b.t.w.context, b.a);
		assert_int_not_equal(buffer_of_last_render(&b), lent);
		scripted_complete(b.t.w.m, 0, 1);
		vidmm_settle(b.t.w.client.host);
	}
	assert_int_equal(scripted_complete(b.t.w.m, 1, 1), 1);
	vidmm_settle(b.t.w.client.host);
	bool again = false;
	for (uint32_t i = 0; i < 20; i++) {
		world_submit_use(&b.t.w.context, b.a);
		again |= buffer_of_last_render(&b) == lent;
		scripted_complete(b.t.w.m, 0, 1);
		vidmm_settle(b.t.w.client.host);
	}
	assert_true(again);
	world_stop(&b.t.w);
}

struct rendering {
	struct broadcast_world *b;
	uint32_t count;
	_Atomic uint32_t done;
};

static void render_many(void *argument)
{
	struct rendering *r = argument;

	for (uint32_t i = 0; i < r->count; i++) {
		D3DDDICB_RENDER args;

		world_use(&r->b->t.w.context, r->b->a);
		assert_int_equal(broadcast(r->b, &args), S_OK);
		atomic_fetch_add(&r->done, 1);
	}
}

/* All buffers of the owner are used by other contexts: the next call waits for one of them. */
static void dma_10_render_waits_for_a_buffer_that_broadcast_contexts_use(void **state)
{
	struct broadcast_world b;
	struct rendering r = {.b = &b, .count = 24};
	struct vidmm_thread *thread;

	start(&b, state, NULL);
	assert_int_equal(
		vidmm_thread_create(b.t.w.client.host, "renders", render_many, &r, &thread), 0);
	while (atomic_load(&r.done) < 16) {
		/* copies of the owner and of the second context only */
		scripted_complete(b.t.w.m, 0, 2);
		vidmm_settle(b.t.w.client.host);
	}
	for (uint32_t i = 0; i < 50; i++) {
		scripted_complete(b.t.w.m, 0, 2);
		vidmm_settle(b.t.w.client.host);
	}
	assert_int_equal(atomic_load(&r.done), 16);
	while (atomic_load(&r.done) < r.count) {
		scripted_complete_all(b.t.w.m);
		vidmm_settle(b.t.w.client.host);
	}
	vidmm_thread_join(thread);
	world_stop(&b.t.w);
}

/* DMA-29: each pass of a multipass buffer is broadcast. */
static void dma_10_dma_29_every_pass_is_broadcast(void **state)
{
	struct broadcast_world b;
	D3DDDICB_RENDER args;

	start(&b, state, NULL);
	client_context_end(&b.second);
	client_context_end(&b.third);
	client_context_end(&b.t.w.context);
	b.t.w.m->settings.context.DmaBufferSize = 4 * KIB;
	b.t.w.m->settings.context.PatchLocationListSize = 2;
	client_context(&b.t.w.device, 0, &b.t.w.context);
	contexts(&b);
	scripted_forget(b.t.w.m);
	for (uint32_t i = 0; i < 5; i++)
		world_write(&b.t.w.context, b.a, (uint64_t)i * 4, 0x50 + i);
	assert_int_equal(broadcast(&b, &args), S_OK);
	world_run(&b.t.w);
	assert_int_equal(scripted_count(b.t.w.m, VIDMM_DDI_RENDER), 3);
	assert_int_equal(world_render_submits(&b.t.w), 9);
	assert_int_equal(world_word(&b.t.w, b.a, 16), 0x54);
	world_stop(&b.t.w);
}

static void dma_10_invalid_broadcast_contexts_are_refused(void **state)
{
	struct broadcast_world b;
	struct client_device other;
	struct client_context others, dead;

	start(&b, state, NULL);
	client_open(&b.t.w.client, &other);
	client_context(&other, 0, &others);
	client_context(&b.t.w.device, 0, &dead);
	client_context_end(&dead);
	const struct {
		UINT count;
		HANDLE first, second;
	} bad[] = {
		{65, b.second.c.hContext, b.third.c.hContext},
		{UINT32_MAX, b.second.c.hContext, b.third.c.hContext},
		{2, b.second.c.hContext, b.second.c.hContext},
		{2, b.second.c.hContext, b.t.w.context.c.hContext},
		{2, b.second.c.hContext, others.c.hContext},
		{2, b.second.c.hContext, dead.c.hContext},
		{2, b.second.c.hContext, NULL},
		{1, b.t.w.device.handle, NULL},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		world_use(&b.t.w.context, b.a);
		D3DDDICB_RENDER args = world_render_args(&b.t.w.context);

		args.BroadcastContextCount = bad[i].count;
		args.BroadcastContext[0] = bad[i].first;
		args.BroadcastContext[1] = bad[i].second;
		assert_int_equal(world_render(&b.t.w.context, &args), E_INVALIDARG);
		assert_int_equal(args.QueuedBufferCount, UINT32_MAX);
		world_expect_finding(&b.t.w, "DMA-10");
	}
	assert_int_equal(scripted_count(b.t.w.m, VIDMM_DDI_RENDER), 0);
	b.t.w.m->settings.complete_at_once = true;
	client_close(&other);
	world_stop(&b.t.w);
}

static void dma_10_at_most_sixty_four_broadcast_contexts_are_accepted(void **state)
{
	struct broadcast_world b;
	struct client_context c[64];

	start(&b, state, NULL);
	world_write(&b.t.w.context, b.a, 8, 64);
	D3DDDICB_RENDER args = world_render_args(&b.t.w.context);
	args.BroadcastContextCount = 64;
	for (uint32_t i = 0; i < 64; i++) {
		client_context(&b.t.w.device, i & 1, &c[i]);
		args.BroadcastContext[i] = c[i].c.hContext;
	}
	assert_int_equal(world_render(&b.t.w.context, &args), S_OK);
	world_run(&b.t.w);
	assert_int_equal(world_render_submits(&b.t.w), 65);
	assert_int_equal(world_word(&b.t.w, b.a, 8), 64);
	world_stop(&b.t.w);
}

/* A failure queues nothing on any context and returns all buffers. */
static void dma_10_a_failed_render_queues_nothing_on_any_context(void **state)
{
	struct broadcast_world b;
	D3DDDICB_RENDER args;

	start(&b, state, NULL);
	scripted_fail(b.t.w.m, VIDMM_DDI_RENDER, STATUS_INVALID_PARAMETER, 1);
	world_use(&b.t.w.context, b.a);
	assert_int_equal(broadcast(&b, &args), E_INVALIDARG);
	world_use(&b.t.w.context, b.a);
	b.t.w.context.c.pAllocationList[0].Value |= 1u << 2; /* an offer */
	assert_int_equal(broadcast(&b, &args), E_NOTIMPL);
	assert_int_equal(scripted_count(b.t.w.m, VIDMM_DDI_PATCH), 0);
	broadcast_write(&b, 0, 5);
	world_run(&b.t.w);
	assert_int_equal(world_render_submits(&b.t.w), 3);
	world_assert_fences(&b.t.w);
	world_stop(&b.t.w);
}

/* ---- the end of one of its contexts ---- */

static void end_context(void *argument)
{
	client_context_end(argument);
}

/*
 * SUB-29 for each of its contexts: the miniport's DestroyContext comes when no packet of it runs,
 * its buffers included.
 */
static void end_on_thread(struct broadcast_world *b, struct client_context *context, uint32_t node)
{
	struct vidmm_thread *thread;

	broadcast_use(b);
	world_await(&b->t.w, VIDMM_DDI_SUBMIT_COMMAND, 3);
	assert_int_equal(vidmm_thread_create(b->t.w.client.host, "ends a context", end_context,
					     context, &thread),
			 0);
	vidmm_settle(b->t.w.client.host);
	assert_int_equal(scripted_count(b->t.w.m, VIDMM_DDI_DESTROY_CONTEXT), 0);
	scripted_complete(b->t.w.m, 1 - node, 2);
	vidmm_settle(b->t.w.client.host);
	assert_int_equal(scripted_count(b->t.w.m, VIDMM_DDI_DESTROY_CONTEXT), 0);
	scripted_complete(b->t.w.m, node, 2);
	vidmm_thread_join(thread);
	assert_int_equal(scripted_count(b->t.w.m, VIDMM_DDI_DESTROY_CONTEXT), 1);
}

static void dma_10_sub_29_a_context_is_destroyed_after_its_copy_completes(void **state)
{
	struct broadcast_world b;

	start(&b, state, NULL);
	end_on_thread(&b, &b.third, 1);
	world_submit_use(&b.t.w.context, b.a);
	world_stop(&b.t.w);
}

/* Its own submission is complete, but other contexts still run its buffer. */
static void dma_10_sub_29_the_owner_is_destroyed_after_all_copies_complete(void **state)
{
	struct broadcast_world b;

	start(&b, state, NULL);
	end_on_thread(&b, &b.t.w.context, 1);
	world_submit_use(&b.third, b.a);
	world_run(&b.t.w);
	client_context(&b.t.w.device, 0, &b.t.w.context);
	world_stop(&b.t.w);
}

struct ending {
	struct broadcast_world *b;
	_Atomic(HANDLE) target; /* of a context that is about to be destroyed */
};

/* Creates and destroys contexts while another thread broadcasts to them. */
static void create_and_destroy(void *argument)
{
	struct ending *e = argument;

	for (uint32_t i = 0; i < 200; i++) {
		struct client_context c;

		client_context(&e->b->t.w.device, 1, &c);
		atomic_store(&e->target, c.c.hContext);
		client_context_end(&c);
	}
	atomic_store(&e->target, NULL);
}

static void dma_10_contexts_are_created_and_destroyed_during_broadcasts(void **state)
{
	struct broadcast_world b;
	struct ending e = {.b = &b};
	struct vidmm_thread *thread;
	HANDLE target;

	start(&b, state, NULL);
	b.t.w.m->settings.complete_at_once = true;
	atomic_store(&e.target, b.third.c.hContext);
	assert_int_equal(vidmm_thread_create(b.t.w.client.host, "ends contexts", create_and_destroy,
					     &e, &thread),
			 0);
	while ((target = atomic_load(&e.target)) != NULL) {
		world_use(&b.t.w.context, b.a);
		D3DDDICB_RENDER args = world_render_args(&b.t.w.context);
		args.BroadcastContextCount = 1;
		args.BroadcastContext[0] = target;
		HRESULT result = b.t.w.device.cb->pfnRenderCb(b.t.w.device.handle, &args);
		b.t.w.context.command_bytes = b.t.w.context.allocations = 0;
		assert_true(result == S_OK || result == E_INVALIDARG);
	}
	vidmm_thread_join(thread);
	client_forget(&b.t.w.client); /* findings of broadcasts to destroyed contexts */
	world_stop(&b.t.w);
}

/* ---- splitting (SPL-16) ---- */

static void little_memory(struct scripted_miniport *m)
{
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes =
		(uint64_t)2 * 64 * KIB;
	m->settings.caps.MaxAllocationListSlotId = 4;
	m->settings.caps.SchedulingCaps.PreemptionAware = 1;
}

static void draw(struct client_context *context, D3DKMT_HANDLE allocation, uint32_t value)
{
	struct scripted_command command = {.op = SCRIPTED_WRITE,
					   .size_bytes = COMMAND,
					   .allocation = client_use(context, allocation, true),
					   .value = value,
					   .split = 1};

	world_command(context, &command);
}

/* Memory for two allocations, used alternately in one slot: a buffer of two or three portions. */
static void broadcast_split(struct broadcast_world *b, D3DKMT_HANDLE *many, uint32_t count)
{
	D3DDDICB_RENDER args;

	for (uint32_t i = 0; i < count; i++) {
		many[i] = world_allocate(&b->t.w, 64 * KIB, WORLD_MEMORY);
		draw(&b->t.w.context, many[i], 0x700 + i);
	}
	scripted_forget(b->t.w.m);
	assert_int_equal(broadcast(b, &args), S_OK);
}

/*
 * Each portion has the same bytes for each context. The next one begins when all of them have
 * completed it.
 */
static void expect_portions(struct broadcast_world *b)
{
	uint32_t count = world_render_submits(&b->t.w), end = 0;

	assert_true(count >= 6);
	assert_int_equal(count % 3, 0);
	for (uint32_t i = 0; i < count; i++) {
		const DXGKARG_SUBMITCOMMAND *s =
			&world_nth_of(&b->t.w, VIDMM_DDI_SUBMIT_COMMAND, false, i)->in.submit;

		assert_int_equal(s->DmaBufferSubmissionStartOffset, end);
		if (i % 3 == 2)
			end = s->DmaBufferSubmissionEndOffset;
		assert_ptr_equal(s->hContext, kmd(b, VIDMM_DDI_SUBMIT_COMMAND, i % 3));
	}
}

static void spl_16_each_portion_has_the_same_bytes_for_all_contexts(void **state)
{
	const struct client_options verifying = {.verify = 1};
	struct broadcast_world b;
	D3DKMT_HANDLE many[5];

	start_with(&b, state, little_memory, &verifying);
	assert_int_equal(client_deallocate(&b.t.w.device, b.a), S_OK);
	broadcast_split(&b, many, 5);
	world_run(&b.t.w);
	expect_portions(&b);
	assert_int_equal(b.t.w.client.findings, 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(world_word(&b.t.w, many[i], 0), 0x700 + i);
	world_stop(&b.t.w);
}

/* A miniport that writes the patched context into the buffer. */
static void alter(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_PATCH && !call->in.patch.Flags.Paging) {
		struct scripted_command *c =
			(void *)((char *)call->in.patch.pDmaBuffer +
				 call->in.patch.DmaBufferSubmissionStartOffset);

		c->value = call->in.patch.SubmissionFenceId;
	}
}

static void verify_altered(void **state, world_setup *setup, uint32_t verify, const char *rule)
{
	const struct client_options options = {.verify = verify};
	struct broadcast_world b;

	start_with(&b, state, setup, &options);
	b.t.w.m->hook = alter;
	broadcast_write(&b, 0, 1);
	b.t.w.m->hook = NULL;
	if (rule) {
		assert_int_equal(b.t.w.client.findings, 2); /* one for each further context */
		assert_true(client_found(&b.t.w.client, rule));
		client_forget(&b.t.w.client);
	}
	assert_int_equal(b.t.w.client.findings, 0);
	world_stop(&b.t.w);
}

static void aware(struct scripted_miniport *m)
{
	m->settings.caps.SchedulingCaps.PreemptionAware = 1;
}

static void spl_16_a_miniport_that_patches_per_context_is_reported(void **state)
{
	verify_altered(state, aware, 1, "SPL-16");
	verify_altered(state, aware, 0, NULL); /* only the verifier checks it */
	verify_altered(state, NULL, 1, NULL);  /* without preemption the miniport may do so */
}

/* ---- preemption and resets ---- */

static uint32_t submitted_on(const struct broadcast_world *b, uint32_t n)
{
	return world_nth_of(&b->t.w, VIDMM_DDI_SUBMIT_COMMAND, false, n)
		->in.submit.SubmissionFenceId;
}

static void withhold(struct scripted_miniport *m)
{
	aware(m);
	m->settings.withhold_preemption = true;
}

/*
 * Node 1 answers that its copy has not run. That copy alone is resubmitted, with a new id and the
 * same bytes.
 */
static void dma_10_pre_07_a_preempted_copy_is_resubmitted_alone(void **state)
{
	struct broadcast_world b = {0};

	timeout_start(&b.t, state, withhold, NULL);
	contexts(&b);
	b.a = b.t.a;
	timeout_hang(&b.t);
	broadcast_write(&b, 0, 0x11);
	assert_int_equal(scripted_complete(b.t.w.m, 0, 2), 2);
	timeout_await_preemption(&b.t);
	const DXGKARG_PREEMPTCOMMAND ask =
		scripted_nth(b.t.w.m, VIDMM_DDI_PREEMPT_COMMAND, 0)->in.preempt;
	assert_int_equal(ask.NodeOrdinal, 1);
	scripted_preempted(b.t.w.m, 1, ask.PreemptionFenceId, submitted_on(&b, 2) - 1);
	world_await(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, 4);
	const DXGKARG_SUBMITCOMMAND *again =
		&world_nth_of(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, false, 3)->in.submit;
	assert_ptr_equal(again->hContext, kmd(&b, VIDMM_DDI_SUBMIT_COMMAND, 2));
	assert_true((int32_t)(again->SubmissionFenceId - submitted_on(&b, 2)) > 0);
	assert_int_equal(again->DmaBufferSubmissionEndOffset, COMMAND);
	b.t.w.m->settings.withhold_preemption = false;
	world_run(&b.t.w);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_TIMEOUT), 0);
	timeout_stop(&b.t);
}

static void with_cancel(struct scripted_miniport *m)
{
	m->settings.caps.SchedulingCaps.CancelCommandAware = 1;
	m->settings.table.DxgkDdiCancelCommand = scripted_cancel_command;
}

/* TDR-12: each copy that never reached the hardware is cancelled once, in its own context. */
static void dma_10_tdr_12_a_reset_cancels_each_unsubmitted_copy_once(void **state)
{
	struct broadcast_world b = {0};

	timeout_start(&b.t, state, with_cancel, NULL);
	contexts(&b);
	b.a = b.t.a;
	timeout_hang(&b.t);
	/* of 8 of node 0 and 4 of node 1 two each are submitted */
	for (uint32_t i = 0; i < 4; i++)
		broadcast_use(&b);
	timeout_await(&b.t, VIDMM_RECOVERY_RESTARTED, 1);
	vidmm_settle(b.t.w.client.host);
	assert_int_equal(world_render_submits(&b.t.w), 4);
	assert_int_equal(scripted_count(b.t.w.m, VIDMM_DDI_CANCEL_COMMAND), 12 - 4);
	uint32_t of_third = 0;
	const struct scripted_call *call;
	for (uint32_t i = 0; (call = scripted_nth(b.t.w.m, VIDMM_DDI_CANCEL_COMMAND, i)); i++) {
		of_third += call->in.cancel.hContext == kmd(&b, VIDMM_DDI_SUBMIT_COMMAND, 2);
		assert_int_equal(call->in.cancel.DmaBufferSubmissionEndOffset, COMMAND);
	}
	assert_int_equal(of_third, 4 - 2);
	assert_true(timeout_is_lost(&b.t.w.device, b.a));
	client_idle(&b.t.w.client);
	timeout_reopen(&b.t);
	timeout_stop(&b.t);
}

static void per_engine(struct scripted_miniport *m)
{
	m->settings.caps.SupportPerEngineTDR = 1;
	m->settings.table.DxgkDdiResetEngine = scripted_reset_engine;
	m->settings.table.DxgkDdiQueryEngineStatus = scripted_query_engine_status;
	m->settings.table.DxgkDdiQueryDependentEngineGroup = scripted_query_engine_group;
}

/*
 * TDR-15: one copy hangs its engine. The device is lost, copies on other nodes complete, and the
 * buffer is freed.
 */
static void dma_10_tdr_15_a_hung_copy_loses_the_device_and_frees_the_buffer(void **state)
{
	struct broadcast_world b = {0};

	timeout_start(&b.t, state, per_engine, NULL);
	contexts(&b);
	b.a = b.t.a;
	timeout_hang(&b.t);
	broadcast_use(&b);
	broadcast_use(&b);
	/* node 0 completes packets, node 1 does not */
	while (!timeout_count(VIDMM_RECOVERY_ENGINE_RESET)) {
		scripted_complete(b.t.w.m, 0, 4);
		if (b.t.w.kind == VIDMM_HOST_SIM)
			timeout_pass(&b.t, 100 * NS_PER_MS);
		else
			vidmm_settle(b.t.w.client.host);
	}
	assert_int_equal(timeout_event(VIDMM_RECOVERY_ENGINE_RESET, 0).arg[1], 1);
	assert_int_equal(timeout_count(VIDMM_RECOVERY_DEVICE_LOST), 1);
	world_run(&b.t.w);
	assert_true(timeout_is_lost(&b.t.w.device, b.a));
	timeout_reopen(&b.t);
	timeout_stop(&b.t);
}

static void can_be_removed(struct scripted_miniport *m)
{
	m->settings.caps.SupportSurpriseRemovalInHibernation = 1;
}

/*
 * The submissions that the miniport has never complete. They count as complete, so the contexts end
 * without a wait.
 */
static void pnp_08_dma_10_the_contexts_of_a_broadcast_end_after_a_removal(void **state)
{
	struct broadcast_world b;

	start(&b, state, can_be_removed);
	broadcast_use(&b);
	world_await(&b.t.w, VIDMM_DDI_SUBMIT_COMMAND, 3);
	broadcast_use(&b);
	assert_int_equal(vidmm_adapter_remove(b.t.w.client.adapter, VIDMM_REMOVAL_PNP), 0);
	client_context_end(&b.t.w.context);
	client_context_end(&b.second);
	client_context_end(&b.third);
	world_stop(&b.t.w);
}

/* The adapter stops with submissions of all kinds: prepared, being split, waiting. */
static void dma_10_a_stopping_adapter_frees_broadcast_submissions(void **state)
{
	struct broadcast_world b;
	D3DKMT_HANDLE many[4];

	start(&b, state, little_memory);
	broadcast_split(&b, many, 4);
	for (uint32_t i = 0; i < 3; i++)
		broadcast_use(&b);
	scripted_report(b.t.w.m, 0, submitted_on(&b, 0) + 1000);
	vidmm_settle(b.t.w.client.host);
	assert_int_equal(b.t.w.fatal[0], 0x119);
	world_expect_finding(&b.t.w, "SUB-12");
	b.t.w.expected_fatals = 1;
	world_stop(&b.t.w);
}

/* ---- links ---- */

/* Each adapter of the link runs the buffer on its own copy of the allocations. */
static void dma_10_a_broadcast_runs_on_each_adapter_of_a_link(void **state)
{
	struct world w;
	struct client_context other;
	uint32_t word;

	world_start(&w, state, link_setup);
	link_context(&w.device, 0, 1, &other);
	D3DKMT_HANDLE a = link_allocate(&w, LINK_INSTANCED, WORLD_MEMORY);
	world_write(&w.context, a, 4, 0x1EAD);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	args.BroadcastContextCount = 1;
	args.BroadcastContext[0] = other.c.hContext;
	assert_int_equal(world_render(&w.context, &args), S_OK);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	assert_int_equal(
		world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.EngineOrdinal +
			world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 1)
				->in.submit.EngineOrdinal,
		1);
	for (uint32_t engine = 0; engine < LINK_ADAPTERS; engine++) {
		word = link_word(&w, engine, 4);
		assert_int_equal(word, 0x1EAD);
	}
	link_stop(&w);
}

static void link_with_buffers_in_an_aperture(struct scripted_miniport *m)
{
	link_setup(m);
	m->settings.context.DmaBufferSegmentSet = WORLD_APERTURE;
}

static void dma_10_a_buffer_in_one_adapters_aperture_is_not_broadcast_to_another(void **state)
{
	struct world w;
	struct client_context same, other;

	world_start(&w, state, link_with_buffers_in_an_aperture);
	link_context(&w.device, 0, 0, &same);
	link_context(&w.device, 0, 1, &other);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	for (uint32_t i = 0; i < 2; i++) {
		world_write(&w.context, a, 0, 3);
		D3DDDICB_RENDER args = world_render_args(&w.context);
		args.BroadcastContextCount = 1;
		args.BroadcastContext[0] = i ? other.c.hContext : same.c.hContext;
		assert_int_equal(world_render(&w.context, &args), i ? E_NOTIMPL : S_OK);
	}
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	link_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dma_10_each_context_gets_its_own_submission_and_fence),
		ON_BOTH(dma_10_referenced_allocations_are_busy_until_all_copies_complete),
		ON_BOTH(dma_10_pat_12_addresses_stay_valid_until_all_copies_complete),
		ON_BOTH(dma_10_the_dma_buffer_is_reused_after_all_copies_complete),
		ON_BOTH(dma_10_render_waits_for_a_buffer_that_broadcast_contexts_use),
		ON_BOTH(dma_10_dma_29_every_pass_is_broadcast),
		ON_BOTH(dma_10_invalid_broadcast_contexts_are_refused),
		ON_BOTH(dma_10_at_most_sixty_four_broadcast_contexts_are_accepted),
		ON_BOTH(dma_10_a_failed_render_queues_nothing_on_any_context),
		ON_BOTH(dma_10_sub_29_a_context_is_destroyed_after_its_copy_completes),
		ON_BOTH(dma_10_sub_29_the_owner_is_destroyed_after_all_copies_complete),
		ON_LINUX(dma_10_contexts_are_created_and_destroyed_during_broadcasts),
		ON_BOTH(spl_16_each_portion_has_the_same_bytes_for_all_contexts),
		ON_BOTH(spl_16_a_miniport_that_patches_per_context_is_reported),
		ON_SIM(dma_10_pre_07_a_preempted_copy_is_resubmitted_alone),
		ON_SIM(dma_10_tdr_12_a_reset_cancels_each_unsubmitted_copy_once),
		ON_SIM(dma_10_tdr_15_a_hung_copy_loses_the_device_and_frees_the_buffer),
		ON_BOTH(dma_10_a_stopping_adapter_frees_broadcast_submissions),
		ON_BOTH(pnp_08_dma_10_the_contexts_of_a_broadcast_end_after_a_removal),
		ON_BOTH(dma_10_a_broadcast_runs_on_each_adapter_of_a_link),
		ON_BOTH(dma_10_a_buffer_in_one_adapters_aperture_is_not_broadcast_to_another),
	};

	return cmocka_run_group_tests_name("sched broadcast", tests, NULL, NULL);
}
