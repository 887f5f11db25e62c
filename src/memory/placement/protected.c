/* SPDX-License-Identifier: MIT */
/*
 * Protected ranges (VPR) of memory segments (ALF-26). Allocations with CreateInVpr are placed in
 * them and nowhere else: after the part that the miniport reserves, in multiples of VprAlignment.
 *
 * NumVprSupported says how many regions of the range can be protected at a time. Without a limit,
 * other allocations may use the free space of the range. With a limit, the range is reserved for
 * protected allocations, so that their content is always in one region.
 */
#include "memory/placement/placement.h"
#include "memory/state/state.h"

uint32_t vmm_protected_set(const struct vmm_memory *memory, uint64_t size_bytes)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < memory->segment_count; i++) {
		const struct vmm_port_vpr *vpr = &memory->segment[i].port->vpr;

		if (vpr->size_bytes && size_bytes <= vpr->size_bytes &&
		    vmm_footprint_protected_units(&memory->segment[i], size_bytes) <=
			    vpr->size_bytes - vpr->reserve_bytes)
			set |= 1u << i;
	}
	return set;
}

void vmm_protected_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	uint32_t set = vmm_protected_set(memory, allocation->size_bytes);

	vmm_assert_held(&memory->adapter->paging_lock);
	allocation->in_vpr = true;
	allocation->read_set &= set;
	allocation->write_set &= set;
}

/* The size of the range without its invalid parts. The reserved part is one of these. */
uint64_t vmm_protected_bytes(const struct vmm_segment *segment)
{
	const struct vmm_port_vpr *vpr = &segment->port->vpr;
	uint64_t end = vpr->offset + vpr->size_bytes, usable = vpr->size_bytes;

	for (uint32_t i = 0; i < segment->port->invalid_count && usable; i++) {
		const struct vmm_port_range *r = &segment->port->invalid[i];
		uint64_t low = vmm_max_u64(r->offset, vpr->offset);
		uint64_t high = vmm_min_u64(r->offset + r->size_bytes, end);

		usable -= high > low ? high - low : 0;
	}
	return usable;
}

bool vmm_protected_is_reserved(const struct vmm_segment *segment)
{
	return segment->port->vpr.regions && segment->port->vpr.size_bytes;
}

/* ---- parts of a segment that an allocation may be placed in ---- */

struct vmm_range_request vmm_placement_request(const struct vmm_segment *segment,
					       struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;
	struct vmm_range_request request = {
		.size_bytes = vmm_footprint_bytes(segment, allocation),
		.alignment = vmm_max_u64(allocation->alignment, segment->port->page_bytes),
		.flags = vmm_placement_flags(allocation, segment->port->id),
		.owner = instance,
	};

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (vmm_unlikely(allocation->in_vpr))
		request.alignment = vmm_max_u64(request.alignment, segment->port->vpr.alignment);
	return request;
}

/*
 * Writes the parts in the order of their addresses. Those on both sides of a reserved range may be
 * empty.
 */
static uint32_t parts_of(const struct vmm_segment *segment, const struct vmm_allocation *allocation,
			 struct vmm_placement_part part[2])
{
	const struct vmm_port_vpr *vpr = &segment->port->vpr;
	uint64_t end = vpr->offset + vpr->size_bytes;

	if (vmm_unlikely(allocation->in_vpr)) {
		part[0] = (struct vmm_placement_part){vpr->offset + vpr->reserve_bytes, end};
		return 1;
	}
	if (vmm_likely(!vmm_protected_is_reserved(segment))) {
		part[0] = (struct vmm_placement_part){0, segment->capacity_bytes};
		return 1;
	}
	part[0] = (struct vmm_placement_part){0, vpr->offset};
	part[1] = (struct vmm_placement_part){end, segment->capacity_bytes};
	return 2;
}

static bool has_space(struct vmm_memory *memory, struct vmm_segment *segment,
		      struct vmm_range_request request, const struct vmm_placement_part *part)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_range_node node;
	uint64_t offset;

	vmm_assert_held(&memory->adapter->paging_lock);
	request.low = part->low;
	request.high = part->high;
	if (!vmm_ok(vmm_segment_allocate(memory, segment, &request, &node, &offset)))
		return false;
	vmm_segment_free(memory, segment, node);
	return true;
}

uint32_t vmm_placement_parts(struct vmm_memory *memory, struct vmm_segment *segment,
			     const struct vmm_range_request *request,
			     struct vmm_placement_part part[2])
{
	const struct vmm_instance *instance = request->owner;
	struct vmm_placement_part all[2];
	uint32_t of = parts_of(segment, instance->allocation, all), count = 0;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(of == 1)) {
		part[0] = all[0];
		/* the whole segment: allocation takes constant time */
		if (!instance->allocation->in_vpr)
			part[0].high = 0;
		return 1;
	}
	for (uint32_t i = 0; i < of; i++)
		if (request->size_bytes <= all[i].high - all[i].low)
			part[count++] = all[i];
	if (count < 2)
		return count;
	/*
	 * Prefer the part at the requested end; the other one if only it has free space, because
	 * nothing is evicted then.
	 */
	uint32_t first = request->flags & VMM_RANGE_FROM_END ? 1 : 0;

	if (!has_space(memory, segment, *request, &part[first]) &&
	    has_space(memory, segment, *request, &part[!first]))
		first = !first;
	if (first) {
		const struct vmm_placement_part below = part[0];

		part[0] = part[1];
		part[1] = below;
	}
	return count;
}

struct vmm_placement_part vmm_placement_pinned_part(const struct vmm_segment *segment,
						    const struct vmm_allocation *allocation)
{
	struct vmm_placement_part part[2], widest = {0, 0};
	uint64_t zone = vmm_placement_pinned_zone(segment);
	uint32_t count = parts_of(segment, allocation, part);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t low = vmm_max_u64(part[i].low, zone);

		if (part[i].high > low && part[i].high - low > widest.high - widest.low)
			widest = (struct vmm_placement_part){low, part[i].high};
	}
	return widest;
}
