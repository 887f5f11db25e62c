/* SPDX-License-Identifier: MIT */
/*
 * Contexts of two processes submit, wait, signal and end at random, and the GPU completes random
 * packets. An oracle that knows only the order of each queue computes which packets must have run
 * and what the fences must read when nothing moves any more. Values only rise, so that state is
 * unique, whatever the order of events (SYN-26, SYN-28, MFN-28 to MFN-31, SUB-28).
 */
#include "queue_world.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 6, FENCES = 5, STEPS = 400, OPERATIONS = 4096, SEEDS = 60 };

enum kind { RENDER, WAIT, SIGNAL, SHARED_SIGNAL };

struct operation {
	enum kind kind;
	uint32_t fence;
	uint64_t value;
	uint32_t *left; /* of a broadcast signal: contexts that have not arrived */
};

struct model {
	struct operation operations[LANES][OPERATIONS];
	uint32_t count[LANES], at[LANES];
	uint32_t rendered[LANES]; /* packets that must have run */
	bool ended[LANES];
	uint64_t value[FENCES], newest[FENCES];
	uint32_t left[OPERATIONS], lefts;
};

struct run {
	struct priority_world p;
	struct model m;
	struct lane *lane[LANES];
	struct queue_fence fence[FENCES];
	D3DKMT_HANDLE handle[2][FENCES]; /* of each process */
	uint32_t submitted[LANES];       /* that the miniport has got */
	uint64_t random;
};

static struct run run;

static uint32_t draw(struct run *r, uint32_t below)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return (uint32_t)(r->random % below);
}

/* ---- the oracle ---- */

static void append(struct model *m, uint32_t lane, struct operation operation)
{
	assert_true(m->count[lane] < OPERATIONS);
	m->operations[lane][m->count[lane]++] = operation;
}

/* Returns false if it waits. */
static bool pass(struct model *m, uint32_t lane, const struct operation *o)
{
	switch (o->kind) {
	case RENDER:
		m->rendered[lane]++;
		return true;
	case WAIT:
		return m->value[o->fence] >= o->value;
	default:
		if (o->left && --*o->left)
			return true;
		if (m->value[o->fence] < o->value)
			m->value[o->fence] = o->value;
		return true;
	}
}

static void settle_model(struct model *m)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (uint32_t l = 0; l < LANES; l++)
			while (m->at[l] < m->count[l] && pass(m, l, &m->operations[l][m->at[l]])) {
				m->at[l]++;
				moved = true;
			}
	}
}

/* ---- random actions ---- */

static D3DKMT_HANDLE handle_of(const struct run *r, uint32_t lane, uint32_t fence)
{
	return r->handle[lane % 2][fence];
}

static void wait_for(struct run *r, uint32_t lane)
{
	uint32_t fence = draw(r, FENCES);
	uint64_t value = r->m.newest[fence] + draw(r, 3);

	assert_int_equal(lane_wait(r->lane[lane], handle_of(r, lane, fence), value), 0);
	append(&r->m, lane, (struct operation){.kind = WAIT, .fence = fence, .value = value});
}

static void signal(struct run *r, uint32_t lane)
{
	uint32_t fence = draw(r, FENCES);
	uint64_t value = r->m.newest[fence] += draw(r, 3);

	assert_int_equal(lane_signal(r->lane[lane], handle_of(r, lane, fence), value), 0);
	append(&r->m, lane, (struct operation){.kind = SIGNAL, .fence = fence, .value = value});
}

static void signal_together(struct run *r, uint32_t lane)
{
	uint32_t other = (lane + 2) % LANES, fence = draw(r, FENCES);

	if (r->m.ended[other])
		return;
	uint64_t value = r->m.newest[fence] += draw(r, 3);
	D3DKMT_HANDLE contexts[2] = {r->lane[lane]->context, r->lane[other]->context},
		      object = handle_of(r, lane, fence);
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = {.ObjectCount = 1,
								 .ObjectHandleArray = &object,
								 .BroadcastContextCount = 2,
								 .BroadcastContextArray = contexts,
								 .MonitoredFenceValueArray =
									 &value};
	uint32_t *left = &r->m.left[r->m.lefts++];

	lane_enter(r->lane[lane]);
	assert_int_equal(D3DKMTSignalSynchronizationObjectFromGpu2(&args), 0);
	*left = 2;
	const struct operation operation = {
		.kind = SHARED_SIGNAL, .fence = fence, .value = value, .left = left};
	append(&r->m, lane, operation);
	append(&r->m, other, operation);
}

static void signal_by_cpu(struct run *r, uint32_t lane)
{
	uint32_t fence = draw(r, FENCES);
	uint64_t value = r->m.newest[fence] += draw(r, 2);

	assert_int_equal(queue_cpu_signal(r->lane[lane], handle_of(r, lane, fence), value), 0);
	if (r->m.value[fence] < value)
		r->m.value[fence] = value;
}

static void note_submitted(struct run *r)
{
	const char *order = priority_order(&r->p);

	for (; *order; order++)
		if (*order != '.')
			r->submitted[*order - 'a']++;
	priority_forget(&r->p);
}

/* The GPU completes all that it gets; then exactly the packets that must have run have run. */
static void compare(struct run *r)
{
	bool same = false;

	settle_model(&r->m);
	for (uint32_t tries = 0; !same && tries < 100000; tries++) {
		world_run(&r->p.w);
		vidmm_settle(r->p.w.client.host);
		note_submitted(r);
		same = true;
		for (uint32_t l = 0; l < LANES; l++)
			same &= r->submitted[l] == r->m.rendered[l];
		for (uint32_t f = 0; f < FENCES; f++)
			same &= *r->fence[f].value == r->m.value[f];
	}
	for (uint32_t l = 0; l < LANES; l++)
		assert_int_equal(r->submitted[l], r->m.rendered[l]);
	for (uint32_t f = 0; f < FENCES; f++)
		assert_int_equal(*r->fence[f].value, r->m.value[f]);
}

/*
 * destruction does not wait for its waits. Nothing moves now, so the rest of its queue is
 * behind that wait.
 */
static void end(struct run *r, uint32_t lane)
{
	compare(r);
	r->p.w.m->settings.complete_at_once = true;
	lane_end(r->lane[lane]);
	r->p.w.m->settings.complete_at_once = false;
	r->m.ended[lane] = true;
	for (uint32_t o = r->m.at[lane]; o < r->m.count[lane]; o++)
		if (r->m.operations[lane][o].left) /* it will never arrive */
			*r->m.operations[lane][o].left += LANES;
	r->m.at[lane] = r->m.count[lane];
}

static void step(struct run *r, uint32_t lanes_that_end)
{
	uint32_t lane = draw(r, LANES), what = draw(r, 100);

	if (what < 20) {
		if (scripted_complete(r->p.w.m, 0, 1))
			vidmm_settle(r->p.w.client.host);
	} else if (what < 23) {
		compare(r);
	} else if (r->m.ended[lane]) {
		return;
	} else if (what < 24 && lane < lanes_that_end) {
		end(r, lane);
	} else if (what < 55) {
		lane_render(r->lane[lane]);
		append(&r->m, lane, (struct operation){.kind = RENDER});
	} else if (what < 70) {
		wait_for(r, lane);
	} else if (what < 88) {
		signal(r, lane);
	} else if (what < 94) {
		signal_together(r, lane);
	} else {
		signal_by_cpu(r, lane);
	}
}

static void begin(struct run *r, void **state, uint64_t seed)
{
	memset(r, 0, sizeof(*r));
	r->random = seed * 0x9E3779B97F4A7C15u + 1;
	queue_start(&r->p, state);
	for (uint32_t l = 0; l < LANES; l++)
		r->lane[l] = queue_lane(&r->p, l % 2, (char)('a' + l));
	for (uint32_t f = 0; f < FENCES; f++) {
		r->fence[f] = queue_fence(r->lane[0], 3, 0);
		r->handle[0][f] = r->fence[f].handle;
		r->handle[1][f] = queue_fence_for(r->lane[0], r->fence[f].handle, r->lane[1]);
	}
}

static void sub_28_mfn_28_mfn_29_random_queues_match_the_oracle(void **state)
{
	uint32_t ended = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct run *r = &run;

		begin(r, state, seed);
		/* A client waits for its 16 buffers in flight, which only this thread completes. */
		for (uint32_t i = 0; i < STEPS; i++) {
			step(r, 4);
			if (i % 12 == 0)
				compare(r);
		}
		compare(r);
		for (uint32_t l = 0; l < LANES; l++)
			ended += r->m.ended[l];
		/* Waits that are still pending are given up with their process. */
		r->p.w.m->settings.complete_at_once = true;
		priority_stop(&r->p);
	}
	assert_true(ended > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_28_mfn_28_mfn_29_random_queues_match_the_oracle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
