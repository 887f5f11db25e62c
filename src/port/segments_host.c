/* SPDX-License-Identifier: MIT */
/*
 * CPU host apertures of WDDM 2.x (SWZ-29): a window in a BAR. The miniport maps pages of a memory
 * segment into it, in units of the segment's page size.
 */
#include "port/port_internal.h"

struct vmm_port_host_aperture vmm_port_host_of(const DXGK_SEGMENTDESCRIPTOR4 *d)
{
	struct vmm_port_host_aperture host = {0};

	if (d->Flags.SupportsCpuHostAperture) {
		host.physical = (uint64_t)d->CpuHostAperture.PhysicalAddress.QuadPart;
		host.pages = d->CpuHostAperture.SizeInPages;
	}
	return host;
}

static const char *host_aperture_error(struct vmm_port *port,
				       const struct vmm_port_segment *segment,
				       const struct vmm_port_host_aperture *host)
{
	if (!host->pages || host->physical % VMM_PAGE_SIZE ||
	    !vmm_port_find_bar(port, host->physical, host->pages * segment->page_bytes))
		return "the range must be whole pages inside one BAR";
	if (!port->ddi.DxgkDdiMapCpuHostAperture || !port->ddi.DxgkDdiUnmapCpuHostAperture)
		return "the table has no DxgkDdiMapCpuHostAperture or no "
		       "DxgkDdiUnmapCpuHostAperture";
	for (uint32_t i = 0; i + 1 < segment->id; i++) {
		const struct vmm_port_segment *other = &port->caps.segment[i];
		uint64_t ends = other->host.physical + other->host.pages * other->page_bytes;

		if (other->host.pages &&
		    other->host.physical < host->physical + host->pages * segment->page_bytes &&
		    host->physical < ends)
			return "the range overlaps the CPU host aperture of another segment";
	}
	return NULL;
}

NTSTATUS vmm_port_store_host_aperture(struct vmm_port *port, struct vmm_port_segment *segment,
				      const struct vmm_port_host_aperture *host)
{
	const char *what;

	if (!segment->flags.SupportsCpuHostAperture)
		return STATUS_SUCCESS;
	what = host_aperture_error(port, segment, host);
	if (!what) {
		segment->host = *host;
		return STATUS_SUCCESS;
	}
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "SEG-24", 0, 0,
		"segment %u has SupportsCpuHostAperture with %u pages of %llu bytes at 0x%llx: %s",
		segment->id, host->pages, (unsigned long long)segment->page_bytes,
		(unsigned long long)host->physical, what);
}
