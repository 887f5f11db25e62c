/* SPDX-License-Identifier: MIT */
/*
 * Where memory segments are for the CPU: in a BAR of the device, or in system memory that the
 * miniport has allocated contiguously (SEG-08); and what else of the BARs the CPU sees.
 */
#include "port/port_internal.h"

static const struct vmm_os_memory *find(struct vmm_port *port, uint64_t physical,
					uint64_t size_bytes, uint64_t *offset)
{
	const struct vmm_port_bar *bar = vmm_port_find_bar(port, physical, size_bytes);

	if (!bar)
		return NULL;
	*offset = physical - bar->physical;
	return &bar->memory;
}

const struct vmm_os_memory *vmm_port_visible_memory(struct vmm_port *port, uint64_t physical,
						    uint64_t size_bytes, uint64_t *offset)
{
	const struct vmm_os_memory *bar = find(port, physical, size_bytes, offset);

	return bar ? bar : vmm_nt_phys_memory(port->nt, physical, size_bytes, offset);
}

const struct vmm_os_memory *vmm_port_cpu_memory(struct vmm_port *port, uint64_t physical,
						uint64_t size_bytes, uint64_t *offset)
{
	return find(port, physical, size_bytes, offset);
}

static const struct vmm_port_segment *segment_of(const struct vmm_port *port, uint32_t segment_id)
{
	vmm_assert(segment_id >= 1 && segment_id <= port->caps.segment_count);
	return &port->caps.segment[segment_id - 1];
}

const struct vmm_os_memory *vmm_port_segment_memory(struct vmm_port *port, uint32_t segment_id,
						    uint64_t *offset)
{
	const struct vmm_port_segment *segment = segment_of(port, segment_id);

	if (!segment->flags.CpuVisible)
		return NULL;
	const struct vmm_os_memory *memory =
		vmm_port_visible_memory(port, segment->cpu_base.value, segment->size_bytes, offset);
	vmm_assert(memory);
	return memory;
}

void vmm_port_segments_pin(struct vmm_port *port)
{
	for (uint32_t i = 0; i < port->caps.segment_count; i++) {
		const struct vmm_port_segment *segment = &port->caps.segment[i];

		if (segment->flags.CpuVisible)
			port->pinned[i] = vmm_nt_frames_pin(port->nt, segment->cpu_base.value);
	}
}

void vmm_port_segments_unpin(struct vmm_port *port)
{
	for (uint32_t i = 0; i < VMM_PORT_SEGMENTS_MAX; i++) {
		if (port->pinned[i])
			vmm_nt_frames_unpin(port->nt, port->pinned[i]);
		port->pinned[i] = NULL;
	}
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

const struct vmm_os_memory *vmm_port_hidden_memory(struct vmm_port *port, uint32_t segment_id,
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
