/* SPDX-License-Identifier: MIT */
#include "link_world.h"

#include <string.h>

struct scripted_miniport *link_second;

void link_setup(struct scripted_miniport *m)
{
	struct scripted_miniport *both[LINK_ADAPTERS] = {m, link_second = scripted_create()};

	scripted_link(both, LINK_ADAPTERS, 0);
	m->settings.complete_at_once = true;
}

void link_stop(struct world *w)
{
	world_stop(w);
	scripted_destroy(link_second);
}

void link_context(struct client_device *device, uint32_t node, uint32_t engine,
		  struct client_context *context)
{
	*context = (struct client_context){
		.device = device, .c = {.NodeOrdinal = node, .EngineAffinity = 1u << engine}};
	assert_int_equal(device->cb->pfnCreateContextCb(device->handle, &context->c), S_OK);
}

D3DKMT_HANDLE link_allocate(struct world *w, uint32_t flags, uint32_t segments)
{
	const struct scripted_allocation spec = {.size_bytes = 64 * KIB,
						 .flags = WORLD_CPU_VISIBLE | flags,
						 .read_set = segments,
						 .write_set = segments};

	return world_allocate_as(&w->device, &spec);
}

void link_push_out(struct world *w)
{
	const struct scripted_allocation spec = {.size_bytes = SCRIPTED_BAR_BYTES,
						 .read_set = WORLD_MEMORY,
						 .write_set = WORLD_MEMORY};
	D3DKMT_HANDLE all = world_allocate_as(&w->device, &spec);

	world_submit_use(&w->context, all);
	world_run(w);
	assert_int_equal(client_deallocate(&w->device, all), S_OK);
	world_run(w);
}

struct scripted_place link_place(struct world *w, uint32_t engine)
{
	const struct scripted_call *patch = NULL, *next;

	for (uint32_t i = 0; (next = world_nth_of(w, VIDMM_DDI_PATCH, false, i)); i++)
		patch = next;
	assert_non_null(patch);
	const DXGK_ALLOCATIONLIST *a = &patch->allocations[0];

	return (struct scripted_place){a->SegmentId, engine, (uint64_t)a->PhysicalAddress.QuadPart};
}

uint32_t link_word(struct world *w, uint32_t engine, uint64_t offset)
{
	struct scripted_place place = link_place(w, engine);
	uint32_t word = 0;

	place.address += offset;
	assert_true(scripted_engine_access(w->m, place, &word, sizeof(word), false));
	return word;
}

const DXGKARG_BUILDPAGINGBUFFER *link_nth(struct world *w, uint32_t operation, uint32_t engine,
					  uint32_t n)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)); i++)
		if (call->in.paging.Operation == (DXGK_BUILDPAGINGBUFFER_OPERATION)operation &&
		    scripted_paging_engine(&call->in.paging) == engine && n-- == 0)
			return &call->in.paging;
	return NULL;
}

uint32_t link_count(struct world *w, uint32_t operation, uint32_t engine)
{
	uint32_t count = 0;

	while (link_nth(w, operation, engine, count))
		count++;
	return count;
}

uint32_t link_moves(struct world *w, uint32_t engine, bool in)
{
	const DXGKARG_BUILDPAGINGBUFFER *b;
	uint32_t count = 0;

	for (uint32_t i = 0; (b = link_nth(w, DXGK_OPERATION_TRANSFER, engine, i)); i++)
		count += in ? !b->Transfer.Source.SegmentId : !b->Transfer.Destination.SegmentId;
	return count;
}
