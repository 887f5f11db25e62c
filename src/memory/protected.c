/* SPDX-License-Identifier: MIT */
/*
 * Protected ranges of memory segments (ALF-26). What was created with CreateInVpr lies in them and nowhere else, behind the
 * part that the miniport has reserved, in multiples of VprAlignment.
 *
 * NumVprSupported says how many regions of the range can be protected at a time. Without a limit the room that no protected
 * content takes is everybody's. With one the range is kept for such content, so that it is never in more than one region.
 */
#include "memory/memory_private.h"

uint64_t vmm_protected_units(const struct vmm_segment *segment, uint64_t size_bytes)
{
	return vmm_align_up(size_bytes,
			    vmm_max_u64(segment->port->vpr.alignment, segment->port->page_bytes));
}

uint32_t vmm_protected_set(const struct vmm_memory *memory, uint64_t size_bytes)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < memory->segment_count; i++) {
		const struct vmm_port_vpr *vpr = &memory->segment[i].port->vpr;

		if (vpr->size_bytes && size_bytes <= vpr->size_bytes - vpr->reserve_bytes &&
		    vmm_protected_units(&memory->segment[i], size_bytes) <=
			    vpr->size_bytes - vpr->reserve_bytes)
			set |= 1u << i;
	}
	return set;
}

void vmm_protected_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	uint32_t set = vmm_protected_set(memory, allocation->size_bytes);

	allocation->in_vpr = true;
	allocation->read_set &= set;
	allocation->write_set &= set;
}

/* What can be placed in the range; the reserved part is among what is invalid. */
uint64_t vmm_protected_room(const struct vmm_segment *segment)
{
	const struct vmm_port_vpr *vpr = &segment->port->vpr;
	uint64_t end = vpr->offset + vpr->size_bytes, room = vpr->size_bytes;

	for (uint32_t i = 0; i < segment->port->invalid_count && room; i++) {
		const struct vmm_port_range *r = &segment->port->invalid[i];
		uint64_t low = vmm_max_u64(r->offset, vpr->offset);
		uint64_t high = vmm_min_u64(r->offset + r->size_bytes, end);

		room -= high > low ? high - low : 0;
	}
	return room;
}

bool vmm_protected_is_kept(const struct vmm_segment *segment)
{
	return segment->port->vpr.regions && segment->port->vpr.size_bytes;
}

/* ---- places ---- */

struct vmm_range_request vmm_place_request(const struct vmm_segment *segment,
					   struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;
	struct vmm_range_request request = {
		.size_bytes = vmm_footprint_bytes(segment, allocation),
		.alignment = vmm_max_u64(allocation->alignment, segment->port->page_bytes),
		.flags = vmm_place_flags(allocation, segment->port->id),
		.owner = instance,
	};

	if (vmm_unlikely(allocation->in_vpr))
		request.alignment = vmm_max_u64(request.alignment, segment->port->vpr.alignment);
	return request;
}

/* Both sides of a range that is kept, in the order of their addresses; one of them may be empty. */
static uint32_t parts_of(const struct vmm_segment *segment, const struct vmm_allocation *allocation,
			 struct vmm_place_part part[2])
{
	const struct vmm_port_vpr *vpr = &segment->port->vpr;
	uint64_t end = vpr->offset + vpr->size_bytes;

	if (vmm_unlikely(allocation->in_vpr)) {
		part[0] = (struct vmm_place_part){vpr->offset + vpr->reserve_bytes, end};
		return 1;
	}
	if (vmm_likely(!vmm_protected_is_kept(segment))) {
		part[0] = (struct vmm_place_part){0, segment->capacity_bytes};
		return 1;
	}
	part[0] = (struct vmm_place_part){0, vpr->offset};
	part[1] = (struct vmm_place_part){end, segment->capacity_bytes};
	return 2;
}

static bool has_room(struct vmm_memory *memory, struct vmm_segment *segment,
		     struct vmm_range_request request, const struct vmm_place_part *part)
{
	vmm_range_node node;
	uint64_t offset;

	request.low = part->low;
	request.high = part->high;
	if (!vmm_ok(vmm_segment_allocate(memory, segment, &request, &node, &offset)))
		return false;
	vmm_segment_free(memory, segment, node);
	return true;
}

uint32_t vmm_place_parts(struct vmm_memory *memory, struct vmm_segment *segment,
			 const struct vmm_range_request *request, struct vmm_place_part part[2])
{
	const struct vmm_instance *instance = request->owner;
	struct vmm_place_part all[2];
	uint32_t of = parts_of(segment, instance->allocation, all), count = 0;

	if (vmm_likely(of == 1)) {
		part[0] = all[0];
		if (!instance->allocation->in_vpr) /* all of it, and in constant time */
			part[0].high = 0;
		return 1;
	}
	for (uint32_t i = 0; i < of; i++)
		if (request->size_bytes <= all[i].high - all[i].low)
			part[count++] = all[i];
	if (count < 2)
		return count;
	/* The end that is asked for, unless there is room at the other alone: nobody leaves then. */
	uint32_t first = request->flags & VMM_RANGE_FROM_END ? 1 : 0;

	if (!has_room(memory, segment, *request, &part[first]) &&
	    has_room(memory, segment, *request, &part[!first]))
		first = !first;
	if (first) {
		const struct vmm_place_part below = part[0];

		part[0] = part[1];
		part[1] = below;
	}
	return count;
}

struct vmm_place_part vmm_place_pinned_part(const struct vmm_segment *segment,
					    const struct vmm_allocation *allocation)
{
	struct vmm_place_part part[2], widest = {0, 0};
	uint64_t zone = vmm_place_pinned_zone(segment);
	uint32_t count = parts_of(segment, allocation, part);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t low = vmm_max_u64(part[i].low, zone);

		if (part[i].high > low && part[i].high - low > widest.high - widest.low)
			widest = (struct vmm_place_part){low, part[i].high};
	}
	return widest;
}
