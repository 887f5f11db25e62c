/* SPDX-License-Identifier: MIT */
/*
 * Segments as WDDM 2.x describes them: a descriptor without banks; exactly one aperture; flags for
 * CPU host apertures and protected ranges; and ranges of a segment that must not be used.
 */
#include <stdlib.h>
#include <string.h>
#include "port/port_internal.h"

#define INVALID_RANGES_MAX 65536u

DXGK_SEGMENTDESCRIPTOR3 vmm_port_descriptor3_of(const DXGK_SEGMENTDESCRIPTOR4 *d)
{
	DXGK_SEGMENTDESCRIPTOR3 older = {
		.Flags = d->Flags,
		.BaseAddress = d->BaseAddress,
		.Size = d->Size,
		.CommitLimit = d->CommitLimit,
		.SystemMemoryEndAddress = d->SystemMemoryEndAddress,
	};

	if (!d->Flags.SupportsCpuHostAperture) /* otherwise the union contains the host aperture */
		older.CpuTranslatedAddress = d->CpuTranslatedAddress;
	return older;
}

static NTSTATUS not_built(struct vmm_port *port, UINT id, DXGK_SEGMENTFLAGS flags, const char *what)
{
	return vmm_refuse_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
				 "segment %u has flags 0x%x: %s is not built", id, flags.Value,
				 what);
}

NTSTATUS vmm_port_check_segment_flags2(struct vmm_port *port, UINT id, DXGK_SEGMENTFLAGS flags)
{
	const char *wrong = NULL;

	if (flags.ReservedSysMem)
		wrong = "ReservedSysMem is reserved for the system";
	else if (flags.SupportsCpuHostAperture && flags.CpuVisible)
		wrong = "SupportsCpuHostAperture excludes CpuVisible";
	else if (flags.SupportsCachedCpuHostAperture && !flags.SupportsCpuHostAperture)
		wrong = "SupportsCachedCpuHostAperture needs SupportsCpuHostAperture";
	else if (flags.Aperture && flags.SupportsCpuHostAperture)
		wrong = "an aperture segment cannot have a CPU host aperture";
	if (wrong)
		return vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "SEG-24", 0, 0,
				       "segment %u has flags 0x%x: %s", id, flags.Value, wrong);
	if (flags.UseBanking)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-12", 0, 0,
			"segment %u has flags 0x%x with UseBanking: DXGK_SEGMENTDESCRIPTOR4 has "
			"no bank table",
			id, flags.Value);
	if (flags.Use64KBPages && flags.Aperture)
		return not_built(port, id, flags, "an aperture of 64 KiB pages");
	if (flags.PitchAlignment && flags.VprSupported)
		return not_built(port, id, flags, "a protected range in a PitchAlignment segment");
	return STATUS_SUCCESS;
}

/*
 * SEG-25: an adapter of WDDM 2.x has exactly one aperture segment. Shipped miniports have none:
 * then allocations are in memory segments, or evicted.
 */
NTSTATUS vmm_port_check_apertures(struct vmm_port *port, UINT count)
{
	UINT apertures = 0;

	for (UINT i = 0; i < count; i++) {
		if (!port->caps.segment[i].size_bytes)
			return STATUS_SUCCESS; /* a refused segment: its kind is unknown */
		apertures += port->caps.segment[i].flags.Aperture;
	}
	if (apertures == 1)
		return STATUS_SUCCESS;
	vmm_finding(port->observe, "SEG-25", 0, 0,
		    "a %s adapter reports %u aperture segments, must be exactly one%s",
		    port->model->name, apertures,
		    apertures ? "" : "; no allocation can be used in system memory");
	return apertures ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}

/* ---- invalid memory ranges (SEG-26) ---- */

static int by_offset(const void *a, const void *b)
{
	const struct vmm_port_range *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static NTSTATUS query_invalid_ranges(struct vmm_port *port, UINT id, DXGK_MEMORYRANGE *ranges,
				     UINT count)
{
	DXGK_SEGMENTMEMORYSTATE state = {.DriverSegmentId = (WORD)id,
					 .NumInvalidMemoryRanges = count,
					 .pMemoryRanges = ranges};
	DXGKARG_QUERYADAPTERINFO args = {
		.Type = DXGKQAITYPE_SEGMENTMEMORYSTATE,
		.pOutputData = &state,
		.OutputDataSize = sizeof(state),
	};
	NTSTATUS status = vmm_port_query_adapter_info(port, &args);

	if (status < 0)
		vmm_reason(port->observe, status, 0, 0,
			   "DxgkDdiQueryAdapterInfo(SEGMENTMEMORYSTATE) of segment %u failed with "
			   "0x%08x",
			   id, (unsigned)status);
	return status;
}

static NTSTATUS check_range(struct vmm_port *port, const struct vmm_port_segment *segment,
			    const DXGK_MEMORYRANGE *range, UINT index)
{
	uint64_t page = segment->page_bytes;

	if (range->SizeInBytes && range->SegmentOffset % page == 0 &&
	    range->SizeInBytes % page == 0 && range->SegmentOffset < segment->size_bytes &&
	    range->SizeInBytes <= segment->size_bytes - range->SegmentOffset)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "SEG-26", 0, 0,
		"invalid range %u of segment %u is %llu bytes at %llu: must be inside the "
		"segment's %llu bytes, in whole pages of %llu bytes",
		index, segment->id, (unsigned long long)range->SizeInBytes,
		(unsigned long long)range->SegmentOffset, (unsigned long long)segment->size_bytes,
		(unsigned long long)page);
}

void vmm_port_merge_invalid_ranges(struct vmm_port_segment *segment, UINT count)
{
	struct vmm_port_range *r = segment->invalid;
	UINT last = 0;

	qsort(r, count, sizeof(*r), by_offset);
	for (UINT i = 1; i < count; i++) {
		uint64_t end = r[last].offset + r[last].size_bytes;

		if (r[i].offset > end)
			r[++last] = r[i];
		else if (r[i].offset + r[i].size_bytes > end)
			r[last].size_bytes = r[i].offset + r[i].size_bytes - r[last].offset;
	}
	segment->invalid_count = last + 1;
}

NTSTATUS vmm_port_store_invalid_ranges(struct vmm_port *port, struct vmm_port_segment *segment,
				       UINT count)
{
	DXGK_MEMORYRANGE *ranges;
	NTSTATUS status;

	if (count > INVALID_RANGES_MAX || segment->flags.Aperture)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-26", 0, 0,
			"%s segment %u has %u invalid memory ranges: a memory segment may "
			"have up to 65536, an aperture none",
			segment->flags.Aperture ? "aperture" : "memory", segment->id, count);
	ranges = vmm_calloc(count, sizeof(*ranges));
	segment->invalid = vmm_calloc(count, sizeof(*segment->invalid));
	status = ranges && segment->invalid ? query_invalid_ranges(port, segment->id, ranges, count)
					    : STATUS_NO_MEMORY;
	for (UINT i = 0; i < count && status >= 0; i++) {
		status = check_range(port, segment, &ranges[i], i);
		segment->invalid[i] =
			(struct vmm_port_range){ranges[i].SegmentOffset, ranges[i].SizeInBytes};
	}
	if (status >= 0)
		vmm_port_merge_invalid_ranges(segment, count);
	vmm_free(ranges);
	return status;
}

void vmm_port_segments_forget(struct vmm_port *port)
{
	for (UINT i = 0; i < VMM_PORT_SEGMENTS_MAX; i++)
		vmm_free(port->caps.segment[i].invalid);
}
