/* SPDX-License-Identifier: MIT */
/*
 * The range of a memory segment that may hold protected content, as WDDM 2.x describes it (ALF-26).
 */
#include <string.h>
#include "port/port_internal.h"

struct vmm_port_vpr vmm_port_vpr_of(const DXGK_SEGMENTDESCRIPTOR4 *d)
{
	return (struct vmm_port_vpr){
		.offset = d->VprRangeStartOffset,
		.size_bytes = d->VprRangeSize,
		.alignment = d->VprAlignment ? d->VprAlignment : VMM_PAGE_SIZE,
		.reserve_bytes = d->VprReserveSize,
		.regions = d->NumVprSupported,
	};
}

static const char *vpr_error(const struct vmm_port_segment *segment, const struct vmm_port_vpr *vpr)
{
	if (segment->flags.Aperture)
		return "an aperture cannot have a protected range";
	if (!vmm_is_pow2(vpr->alignment) || vpr->alignment % VMM_PAGE_SIZE)
		return "VprAlignment is not a power of two of whole pages";
	if (!vpr->size_bytes || vpr->offset % vpr->alignment || vpr->size_bytes % vpr->alignment)
		return "the range begins or ends off VprAlignment, or is empty";
	if (vpr->offset >= segment->size_bytes ||
	    vpr->size_bytes > segment->size_bytes - vpr->offset)
		return "the range passes the end of the segment";
	if (vpr->reserve_bytes % VMM_PAGE_SIZE || vpr->reserve_bytes >= vpr->size_bytes)
		return "VprReserveSize is not whole pages, or leaves nothing of the range";
	return NULL;
}

/*
 * Adds the part that the miniport reserves, at the start of the range, to the invalid ranges:
 * nothing is ever placed there.
 */
static NTSTATUS store_reserve(struct vmm_port_segment *segment)
{
	const struct vmm_port_vpr *vpr = &segment->vpr;
	struct vmm_port_range *ranges;
	uint32_t count = segment->invalid_count;

	if (!vpr->reserve_bytes)
		return STATUS_SUCCESS;
	ranges = vmm_calloc(count + 1, sizeof(*ranges));
	if (!ranges)
		return STATUS_NO_MEMORY;
	if (count)
		memcpy(ranges, segment->invalid, count * sizeof(*ranges));
	ranges[count] = (struct vmm_port_range){vpr->offset, vpr->reserve_bytes};
	vmm_free(segment->invalid);
	segment->invalid = ranges;
	vmm_port_merge_invalid_ranges(segment, count + 1);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_port_store_vpr(struct vmm_port *port, struct vmm_port_segment *segment,
			    const struct vmm_port_vpr *vpr)
{
	const char *what;

	if (!segment->flags.VprSupported)
		return STATUS_SUCCESS;
	what = vpr_error(segment, vpr);
	if (!what) {
		segment->vpr = *vpr;
		return store_reserve(segment);
	}
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "ALF-26", 0, 0,
		"segment %u of %llu bytes has VprSupported with VprRangeStartOffset 0x%llx, "
		"VprRangeSize %llu, VprAlignment %llu, VprReserveSize %llu: %s",
		segment->id, (unsigned long long)segment->size_bytes,
		(unsigned long long)vpr->offset, (unsigned long long)vpr->size_bytes,
		(unsigned long long)vpr->alignment, (unsigned long long)vpr->reserve_bytes, what);
}
