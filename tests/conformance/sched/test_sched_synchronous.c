/* SPDX-License-Identifier: MIT */
/*
 * SynchronousPaging (PAG-21, SUB-30). A hook checks every packet. One that pages such an allocation
 * must find all earlier packets that list it complete. Until it is complete, no render packet may
 * be submitted.
 */
#include "sched_world.h"

#include <stdlib.h>

enum { SYNCHRONOUS = 0x800, WATCHED = 4, OPERATIONS = 256, PACKETS = 4096, UNIT = 16 * KIB };

struct packet {
	uint32_t fence, node;
	uint32_t names; /* bit mask of watched allocations */
	bool paging, submitted;
};

struct watch {
	HANDLE kmd[WATCHED], open[WATCHED];
	uint32_t count;
	bool opening; /* the next OpenAllocation is for the newest */
	/* paging operations on them that no packet carries yet */
	struct operation {
		const char *at;
		uint32_t which;
	} operation[OPERATIONS];
	uint32_t operations;
	struct packet packet[PACKETS]; /* in the order of their Patch calls */
	uint32_t packets, synchronous_packets;
	const char *wrong;
};

static bool outstanding(struct scripted_miniport *m, const struct packet *p)
{
	return p->submitted && (int32_t)(p->fence - scripted_completed_fence(m, p->node)) > 0;
}

static uint32_t which_of(const HANDLE *handles, uint32_t count, HANDLE handle)
{
	for (uint32_t i = 0; i < count; i++)
		if (handles[i] == handle)
			return i;
	return WATCHED;
}

static void see_create(struct watch *watch, const DXGKARG_CREATEALLOCATION *c)
{
	if (!(c->pAllocationInfo[0].Flags.Value & SYNCHRONOUS))
		return;
	watch->kmd[watch->count] = c->pAllocationInfo[0].hAllocation;
	watch->opening = true;
}

static void see_open(struct watch *watch, const DXGKARG_OPENALLOCATION *o)
{
	if (watch->opening)
		watch->open[watch->count++] = o->pOpenAllocation[0].hDeviceSpecificAllocation;
	watch->opening = false;
}

static void see_build(struct watch *watch, const DXGKARG_BUILDPAGINGBUFFER *p)
{
	HANDLE of = p->Operation == DXGK_OPERATION_MAP_APERTURE_SEGMENT
			    ? p->MapApertureSegment.hAllocation
		    : p->Operation == DXGK_OPERATION_UNMAP_APERTURE_SEGMENT
			    ? p->UnmapApertureSegment.hAllocation
			    : p->Transfer.hAllocation;
	uint32_t which = which_of(watch->kmd, watch->count, of);

	if (which == WATCHED)
		return;
	watch->operation[watch->operations++] =
		(struct operation){.at = p->pDmaBuffer, .which = which};
}

/* The operations in this part of the buffer. */
static void take_operations(struct watch *watch, struct packet *packet, const DXGKARG_PATCH *p)
{
	const char *start = (const char *)p->pDmaBuffer + p->DmaBufferSubmissionStartOffset;
	const char *end = (const char *)p->pDmaBuffer + p->DmaBufferSubmissionEndOffset;

	for (uint32_t i = 0; i < watch->operations; i++) {
		const struct operation o = watch->operation[i];

		if (o.at < start || o.at >= end)
			continue;
		if (packet->names & 1u << o.which)
			watch->wrong = "two operations on one allocation in one packet";
		packet->names |= 1u << o.which;
		watch->operation[i--] = watch->operation[--watch->operations];
	}
}

/* Patch comes before Submit, with the lists and with the buffer. */
static void see_patch(struct watch *watch, const DXGKARG_PATCH *p)
{
	struct packet *packet = &watch->packet[watch->packets++];

	*packet = (struct packet){.fence = p->SubmissionFenceId, .paging = p->Flags.Paging};
	for (uint32_t i = 0; i < p->AllocationListSize; i++) {
		uint32_t which = which_of(watch->open, watch->count,
					  p->pAllocationList[i].hDeviceSpecificAllocation);
		if (which != WATCHED)
			packet->names |= 1u << which;
	}
	if (packet->paging)
		take_operations(watch, packet, p);
}

static void see_submit(struct watch *watch, struct scripted_miniport *m,
		       const DXGKARG_SUBMITCOMMAND *s)
{
	struct packet *packet = watch->packet;

	while (packet->fence != s->SubmissionFenceId)
		packet++;
	watch->synchronous_packets += packet->paging && packet->names;
	for (uint32_t i = 0; i < watch->packets; i++) {
		const struct packet *before = &watch->packet[i];

		if (!outstanding(m, before))
			continue;
		if (packet->paging && (packet->names & before->names))
			watch->wrong = "paging while an earlier packet that names it is running";
		if (!packet->paging && before->paging && before->names)
			watch->wrong = "a render packet beside synchronous paging";
	}
	packet->node = s->NodeOrdinal;
	packet->submitted = true;
}

static void see(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	switch (call->ddi) {
	case VIDMM_DDI_CREATE_ALLOCATION:
		see_create(context, &call->in.create_allocation);
		break;
	case VIDMM_DDI_OPEN_ALLOCATION:
		see_open(context, &call->in.open_allocation);
		break;
	case VIDMM_DDI_BUILD_PAGING_BUFFER:
		if (call->status == STATUS_SUCCESS)
			see_build(context, &call->in.paging);
		break;
	case VIDMM_DDI_PATCH:
		see_patch(context, &call->in.patch);
		break;
	case VIDMM_DDI_SUBMIT_COMMAND:
		see_submit(context, m, &call->in.submit);
		break;
	default:
		break;
	}
}

/* 16 units of video memory. */
static void small(struct scripted_miniport *m)
{
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes = 16 * UNIT;
}

/* Before the first packet. */
static struct watch *start(struct world *w, void **state)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	assert_non_null(watch);
	world_start(w, state, small);
	w->m->hook_context = watch;
	/*
	 * With real threads the state of the GPU is unknown at this point; there only the bytes are
	 * compared.
	 */
	w->m->hook = w->kind == VIDMM_HOST_SIM ? see : NULL;
	return watch;
}

static void stop(struct world *w, struct watch *watch)
{
	world_run(w);
	if (watch->wrong)
		fail_msg("%s", watch->wrong);
	w->m->hook = NULL;
	world_stop(w);
	free(watch);
}

static D3DKMT_HANDLE allocate(struct world *w, uint64_t bytes, uint32_t flags)
{
	struct scripted_allocation spec = {.size_bytes = bytes,
					   .flags = WORLD_CPU_VISIBLE | flags,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};

	return world_allocate_as(&w->device, &spec);
}

/*
 * Returns how many further render packets the miniport has when it gets the paging of `a`. A
 * buffer that uses `ready` could run on the paging node.
 */
static uint32_t render_packets_beside_paging(struct world *w, D3DKMT_HANDLE a, D3DKMT_HANDLE ready)
{
	struct client_context copy;

	client_context(&w->device, 1, &copy); /* of the paging node */
	world_submit_use(&w->context, ready);
	world_run(w);
	uint32_t before = world_render_submits(w);
	world_submit_use(&w->context, a);
	world_submit_use(&copy, ready);
	uint32_t beside = world_render_submits(w) - before;
	assert_int_equal(scripted_complete(w->m, 1, 1), 1); /* the paging */
	assert_int_equal(world_render_submits(w) - before, 2);
	return beside;
}

static void pag_21_sub_30_no_render_packet_during_synchronous_paging(void **state)
{
	struct world w;
	struct watch *watch = start(&w, state);
	D3DKMT_HANDLE ordinary = allocate(&w, UNIT, 0), ready = allocate(&w, UNIT, 0);
	D3DKMT_HANDLE synchronous = allocate(&w, UNIT, SYNCHRONOUS);

	assert_int_equal(render_packets_beside_paging(&w, synchronous, ready), 0);
	assert_int_equal(watch->synchronous_packets, 1);
	/* Nothing else delays the other packets. */
	assert_int_equal(render_packets_beside_paging(&w, ordinary, ready), 1);
	assert_int_equal(watch->synchronous_packets, 1);
	stop(&w, watch);
}

/*
 * A running buffer lists the allocation without using it, and another allocation needs its
 * placement.
 */
static uint32_t paging_while_listed(struct world *w, D3DKMT_HANDLE listed, D3DKMT_HANDLE all)
{
	D3DKMT_HANDLE other = allocate(w, UNIT, 0);

	world_submit_use(&w->context, listed);
	world_submit_use(&w->context, other);
	world_run(w);
	client_use(&w->context, listed, false);
	world_submit_use(&w->context, other);
	assert_int_equal(client_deallocate(&w->device, other), S_OK);
	uint32_t before = scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	world_submit_use(&w->context, all);
	uint32_t built = scripted_count(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER) - before;
	world_run(w);
	return built;
}

static void pag_21_synchronous_paging_waits_for_all_packets_that_list_it(void **state)
{
	struct world w;
	struct watch *watch = start(&w, state);
	D3DKMT_HANDLE all = allocate(&w, 12 * UNIT, 0);
	D3DKMT_HANDLE ordinary = allocate(&w, 8 * UNIT, 0);
	D3DKMT_HANDLE synchronous = allocate(&w, 8 * UNIT, SYNCHRONOUS);

	assert_int_not_equal(paging_while_listed(&w, ordinary, all), 0); /* DMA-35 */
	assert_int_equal(paging_while_listed(&w, synchronous, all), 0);
	assert_int_not_equal(watch->synchronous_packets, 0);
	stop(&w, watch);
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % below;
}

/*
 * A working set larger than memory on both nodes, with references and list entries only; every word
 * must have the last value written.
 */
static void run(void **state, uint64_t seed)
{
	struct world w;
	struct watch *watch = start(&w, state);
	D3DKMT_HANDLE a[6];
	struct client_context copy, *context[2] = {&w.context, &copy};
	uint32_t written[6] = {0};

	client_context(&w.device, 1, &copy);
	for (uint32_t i = 0; i < 6; i++)
		a[i] = allocate(&w, (3 + i) * UNIT, i % 2 ? SYNCHRONOUS : 0);
	for (uint32_t step = 0; step < 60; step++) {
		struct client_context *c = context[draw(&seed, 2)];
		uint32_t i = draw(&seed, 6), listed = draw(&seed, 6);

		if (draw(&seed, 2))
			client_use(c, a[listed], false);
		if (draw(&seed, 2) && c == &w.context) /* nodes have no order between them */
			world_write(c, a[i], 0, written[i] = step + 1);
		else
			world_use(c, a[i]);
		client_submit(c);
		scripted_complete(w.m, draw(&seed, 2), draw(&seed, 3));
		if (step % 12 == 11) /* a context has no more DMA buffers in flight than that */
			world_run(&w);
	}
	world_run(&w);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(world_word(&w, a[i], 0), written[i]);
	assert_true(!w.m->hook || watch->synchronous_packets > 5);
	stop(&w, watch);
}

static void pag_21_sub_30_holds_for_random_packets_on_two_nodes(void **state)
{
	for (uint64_t seed = 1; seed <= (*(uint32_t *)*state == VIDMM_HOST_SIM ? 100 : 10); seed++)
		run(state, seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(pag_21_sub_30_no_render_packet_during_synchronous_paging),
		ON_SIM(pag_21_synchronous_paging_waits_for_all_packets_that_list_it),
		ON_BOTH(pag_21_sub_30_holds_for_random_packets_on_two_nodes),
	};

	return cmocka_run_group_tests_name("sched synchronous paging", tests, NULL, NULL);
}
