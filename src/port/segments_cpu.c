/* SPDX-License-Identifier: MIT */
/* Where memory segments are in the device's BARs, and what else of the BARs the CPU sees. */
#include "port/port_internal.h"

static struct vmm_os_memory *find(struct vmm_port *port, uint64_t physical, uint64_t size_bytes,
				  uint64_t *offset)
{
	struct vmm_port_bar *bar = vmm_port_find_bar(port, physical, size_bytes);

	if (!bar)
		return NULL;
	*offset = physical - bar->physical;
	return &bar->memory;
}

struct vmm_os_memory *vmm_port_cpu_memory(struct vmm_port *port, uint64_t physical,
					  uint64_t size_bytes, uint64_t *offset)
{
	return find(port, physical, size_bytes, offset);
}

static const struct vmm_port_segment *segment_of(const struct vmm_port *port, uint32_t segment_id)
{
	vmm_assert(segment_id >= 1 && segment_id <= port->caps.segment_count);
	return &port->caps.segment[segment_id - 1];
}

struct vmm_os_memory *vmm_port_segment_memory(struct vmm_port *port, uint32_t segment_id,
					      uint64_t *offset)
{
	const struct vmm_port_segment *segment = segment_of(port, segment_id);

	if (!segment->flags.CpuVisible)
		return NULL;
	struct vmm_os_memory *memory =
		find(port, segment->cpu_base.value, segment->size_bytes, offset);
	vmm_assert(memory);
	return memory;
}

static bool overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b ? b - a < a_size : a - b < b_size;
}

static bool contains(const struct vmm_port_segment *s, uint64_t physical, uint64_t size_bytes)
{
	if (s->host.pages &&
	    overlaps(s->host.physical, s->host.pages * s->page_bytes, physical, size_bytes))
		return true;
	return !s->flags.Aperture && s->reported_base &&
	       overlaps(s->reported_base, s->size_bytes, physical, size_bytes);
}

bool vmm_port_is_segment_memory(const struct vmm_port *port, uint64_t physical, uint64_t size_bytes)
{
	for (uint32_t i = 0; i < port->caps.segment_count; i++)
		if (contains(&port->caps.segment[i], physical, size_bytes))
			return true;
	return false;
}

struct vmm_os_memory *vmm_port_hidden_memory(struct vmm_port *port, uint32_t segment_id,
					     uint64_t *offset)
{
	const struct vmm_port_segment *segment = segment_of(port, segment_id);

	if (segment->flags.Aperture || segment->flags.CpuVisible || segment->host.pages ||
	    !segment->reported_base || segment->reported_base % VMM_PAGE_SIZE)
		return NULL;
	for (uint32_t i = 0; i < port->caps.segment_count; i++)
		if (i != segment_id - 1 &&
		    contains(&port->caps.segment[i], segment->reported_base, segment->size_bytes))
			return NULL;
	return find(port, segment->reported_base, segment->size_bytes, offset);
}
