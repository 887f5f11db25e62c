/* SPDX-License-Identifier: MIT */
/*
 * Queries the segments in two passes, checks each and all against each other, and stores them in
 * vmm_port_caps. All forms of the descriptor are converted to that of 1.2 before any check. Flags
 * without a meaning for the segment's kind (CacheCoherent of memory, CpuVisible of an aperture) are
 * cleared, so that the core need not know about them.
 */
#include <string.h>
#include "port/port_internal.h"

struct answer {
	UINT count;
	DXGK_SEGMENTDESCRIPTOR3 descriptor[VMM_PORT_SEGMENTS_MAX];
	UINT invalid_ranges[VMM_PORT_SEGMENTS_MAX];
	struct vmm_port_vpr vpr[VMM_PORT_SEGMENTS_MAX];
	struct vmm_port_host_aperture host[VMM_PORT_SEGMENTS_MAX];
	UINT paging_segment, paging_bytes, paging_private_bytes;
};

/* The descriptors as the miniport fills them in, with one spare element to detect a miscount. */
union wire {
	DXGK_SEGMENTDESCRIPTOR v1[VMM_PORT_SEGMENTS_MAX + 1];
	DXGK_SEGMENTDESCRIPTOR3 v3[VMM_PORT_SEGMENTS_MAX + 1];
	DXGK_SEGMENTDESCRIPTOR4 v4[VMM_PORT_SEGMENTS_MAX + 1];
};
_Static_assert(sizeof(DXGK_QUERYSEGMENTOUT) == sizeof(DXGK_QUERYSEGMENTOUT3) &&
		       offsetof(DXGK_QUERYSEGMENTOUT3, PagingBufferPrivateDataSize) ==
			       offsetof(DXGK_QUERYSEGMENTOUT4, PagingBufferPrivateDataSize),
	       "one layout, three descriptor types");

static size_t descriptor_bytes(const struct vmm_port *port)
{
	switch (port->model->segment_query) {
	case DXGKQAITYPE_QUERYSEGMENT:
		return sizeof(DXGK_SEGMENTDESCRIPTOR);
	case DXGKQAITYPE_QUERYSEGMENT3:
		return sizeof(DXGK_SEGMENTDESCRIPTOR3);
	default:
		return sizeof(DXGK_SEGMENTDESCRIPTOR4);
	}
}

static const char *query_name(const struct vmm_port *port)
{
	switch (port->model->segment_query) {
	case DXGKQAITYPE_QUERYSEGMENT:
		return "QUERYSEGMENT";
	case DXGKQAITYPE_QUERYSEGMENT3:
		return "QUERYSEGMENT3";
	default:
		return "QUERYSEGMENT4";
	}
}

static bool is_version1_form(const struct vmm_port *port)
{
	return port->model->segment_query == DXGKQAITYPE_QUERYSEGMENT;
}

static NTSTATUS query(struct vmm_port *port, DXGK_QUERYSEGMENTOUT4 *out)
{
	DXGK_QUERYSEGMENTIN in; /* SEG-06: no AGP aperture is offered; 2.x: physical adapter 0 */
	bool wddm2 = vmm_port_is_wddm2(port);
	DXGKARG_QUERYADAPTERINFO args = {
		.Type = port->model->segment_query,
		.pInputData = &in,
		.InputDataSize = wddm2 ? sizeof(DXGK_QUERYSEGMENTIN4) : sizeof(in),
		.pOutputData = out,
		.OutputDataSize = wddm2 ? sizeof(*out) : sizeof(DXGK_QUERYSEGMENTOUT3),
	};
	NTSTATUS status;

	memset(&in, 0, sizeof(in));
	status = vmm_port_query_adapter_info(port, &args);
	if (status < 0)
		vmm_reason(port->observe, status, 0, 0,
			   "DxgkDdiQueryAdapterInfo(%s) failed with 0x%08x", query_name(port),
			   (unsigned)status);
	return status;
}

static NTSTATUS count_segments(struct vmm_port *port, UINT *count)
{
	DXGK_QUERYSEGMENTOUT4 out;
	NTSTATUS status;

	memset(&out, 0, sizeof(out));
	status = query(port, &out);
	if (status < 0)
		return status;
	vmm_port_report_segment_count(port, out.NbSegment);
	if (out.NbSegment == 0)
		return vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "SEG-02", 0, 0,
				       "the adapter reports no segment: nothing can be placed");
	if (out.NbSegment > VMM_PORT_SEGMENTS_MAX)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "DMA-20", 0, 0,
			"the adapter reports %u segments, but SegmentId can name at most %u",
			out.NbSegment, VMM_PORT_SEGMENTS_MAX);
	*count = out.NbSegment;
	return STATUS_SUCCESS;
}

static DXGK_SEGMENTDESCRIPTOR3 descriptor3_of(const DXGK_SEGMENTDESCRIPTOR *old)
{
	return (DXGK_SEGMENTDESCRIPTOR3){
		.Flags = old->Flags,
		.BaseAddress = old->BaseAddress,
		.CpuTranslatedAddress = old->CpuTranslatedAddress,
		.Size = old->Size,
		.NbOfBanks = old->NbOfBanks,
		.pBankRangeTable = old->pBankRangeTable,
		.CommitLimit = old->CommitLimit,
	};
}

static void convert(const struct vmm_port *port, const union wire *wire, struct answer *answer)
{
	for (UINT i = 0; i < answer->count; i++) {
		if (vmm_port_is_wddm2(port)) {
			answer->descriptor[i] = vmm_port_descriptor3_of(&wire->v4[i]);
			answer->invalid_ranges[i] = wire->v4[i].NumInvalidMemoryRanges;
			answer->vpr[i] = vmm_port_vpr_of(&wire->v4[i]);
			answer->host[i] = vmm_port_host_of(&wire->v4[i]);
		} else {
			answer->descriptor[i] =
				is_version1_form(port) ? descriptor3_of(&wire->v1[i]) : wire->v3[i];
		}
	}
}

static void report(struct vmm_port *port, const struct answer *answer)
{
	for (UINT i = 0; i < answer->count; i++)
		vmm_port_report_segment(port, i, &answer->descriptor[i]);
	vmm_port_report_paging_buffer(port, answer->paging_segment, answer->paging_bytes,
				      answer->paging_private_bytes);
}

static NTSTATUS describe_segments(struct vmm_port *port, union wire *wire, struct answer *answer)
{
	size_t size = answer->count * descriptor_bytes(port);
	DXGK_QUERYSEGMENTOUT4 out = {.NbSegment = answer->count,
				     .pSegmentDescriptor = (BYTE *)wire,
				     .SegmentDescriptorStride = descriptor_bytes(port)};
	const uint8_t *bytes = (const uint8_t *)wire;
	NTSTATUS status = query(port, &out);

	if (status < 0)
		return status;
	convert(port, wire, answer);
	answer->paging_segment = out.PagingBufferSegmentId;
	answer->paging_bytes = out.PagingBufferSize;
	answer->paging_private_bytes = out.PagingBufferPrivateDataSize;
	report(port, answer);
	if (out.NbSegment != answer->count || out.pSegmentDescriptor != (BYTE *)wire)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-02", 0, 0,
			"first %u segments were reported, then %u%s", answer->count, out.NbSegment,
			out.pSegmentDescriptor == (BYTE *)wire ? "" : " in another array");
	for (size_t i = size; i < sizeof(*wire); i++) {
		if (!bytes[i])
			continue;
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-02", 0, 0,
			"%u segments were reported, but more than %zu bytes were filled in",
			answer->count, size);
	}
	return STATUS_SUCCESS;
}

static NTSTATUS check_flags(struct vmm_port *port, UINT id, DXGK_SEGMENTFLAGS flags)
{
	bool hibernate = flags.PreservedDuringHibernate,
	     partial = flags.PartiallyPreservedDuringHibernate;

	if (flags.Agp)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-06", 0, 0,
			"segment %u has flags 0x%x with Agp: no AGP aperture was offered "
			"(AgpApertureSize 0)",
			id, flags.Value);
	if (flags.Value & ~port->model->segment_mask)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-24", 0, 0,
			"segment %u has flags 0x%x, but a %s miniport may use only 0x%x", id,
			flags.Value, port->model->name, port->model->segment_mask);
	if (((hibernate || partial) && !flags.PreservedDuringStandby) || (hibernate && partial))
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-22", 0, 0,
			"segment %u has flags 0x%x: a hibernate flag needs "
			"PreservedDuringStandby, and only one of the two may be set (PNP-06)",
			id, flags.Value);
	if (flags.PitchAlignment && flags.Aperture)
		vmm_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
			   "SEG-10: segment %u has flags 0x%x: PitchAlignment of an aperture is "
			   "not built, allocations are mapped with their Size",
			   id, flags.Value);
	return vmm_port_is_wddm2(port) ? vmm_port_check_segment_flags2(port, id, flags)
				       : STATUS_SUCCESS;
}

/* From WDDM 2.0 on the member has a meaning for apertures only. Before, it is the size. (SEG-04) */
static void check_commit_limit(struct vmm_port *port, UINT id, const DXGK_SEGMENTDESCRIPTOR3 *d)
{
	if (d->Flags.Aperture || d->Flags.Agp || vmm_port_is_wddm2(port) ||
	    d->CommitLimit == d->Size)
		return;
	vmm_finding(port->observe, "SEG-04", 0, 0,
		    "memory segment %u of %llu bytes has CommitLimit %llu, which must equal the "
		    "size; the size counts",
		    id, (unsigned long long)d->Size, (unsigned long long)d->CommitLimit);
}

static NTSTATUS check_size(struct vmm_port *port, UINT id, const DXGK_SEGMENTDESCRIPTOR3 *d)
{
	uint64_t base = (uint64_t)d->BaseAddress.QuadPart, end;
	bool aperture = d->Flags.Aperture;

	if (!d->Size || d->Size % VMM_PAGE_SIZE)
		return vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "SEG-03", 0, 0,
				       "segment %u has Size %llu, must be a multiple of %llu", id,
				       (unsigned long long)d->Size,
				       (unsigned long long)VMM_PAGE_SIZE);
	check_commit_limit(port, id, d);
	if (aperture && d->CommitLimit > d->Size)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-04", 0, 0,
			"aperture segment %u of %llu bytes has CommitLimit %llu, which exceeds "
			"its size",
			id, (unsigned long long)d->Size, (unsigned long long)d->CommitLimit);
	if (vmm_add_overflows(base, d->Size - 1, &end))
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-27", 0, 0,
			"segment %u of %llu bytes at 0x%llx exceeds the last 64-bit address", id,
			(unsigned long long)d->Size, (unsigned long long)base);
	return STATUS_SUCCESS;
}

static NTSTATUS check_cpu_address(struct vmm_port *port, UINT id, const DXGK_SEGMENTDESCRIPTOR3 *d)
{
	uint64_t address = (uint64_t)d->CpuTranslatedAddress.QuadPart, offset;

	/* With a CPU host aperture the descriptor has no such address, and the flag is refused. */
	if (!d->Flags.CpuVisible || d->Flags.Aperture || d->Flags.SupportsCpuHostAperture)
		return STATUS_SUCCESS;
	if (address % VMM_PAGE_SIZE == 0 &&
	    vmm_port_visible_memory(port, address, d->Size, &offset))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "SEG-08", 0, 0,
		"segment %u is CpuVisible at 0x%llx, %llu bytes: not whole pages inside one BAR "
		"(the first is at 0x%llx, %llu bytes) or inside one range of system memory that "
		"the miniport has allocated",
		id, (unsigned long long)address, (unsigned long long)d->Size,
		port->bar_count ? (unsigned long long)port->bar[0].physical : 0,
		port->bar_count ? (unsigned long long)port->bar[0].memory.size_bytes : 0);
}

/*
 * SEG-12: the table has the ends of all banks but the last. The last bank ends with the segment,
 * whether the table says so or not.
 */
static NTSTATUS store_banks(struct vmm_port *port, const DXGK_SEGMENTDESCRIPTOR3 *d,
			    struct vmm_port_segment *s)
{
	uint64_t before = 0;

	if (!d->Flags.UseBanking)
		return STATUS_SUCCESS;
	if (!d->NbOfBanks || d->NbOfBanks > VMM_PORT_BANKS_MAX ||
	    (d->NbOfBanks > 1 && !d->pBankRangeTable))
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "SEG-12", 0, 0,
			"segment %u has UseBanking with %u banks%s: must be 1 to 128, with a "
			"table for more than one",
			s->id, d->NbOfBanks, d->pBankRangeTable ? "" : " and no table");
	for (UINT i = 0; i + 1 < d->NbOfBanks; i++) {
		uint64_t end = d->pBankRangeTable[i];

		if (end <= before || end >= d->Size)
			return vmm_refuse_rule(
				port->observe, STATUS_INVALID_PARAMETER, "SEG-12", 0, 0,
				"segment %u of %llu bytes: bank %u ends at %llu, must be inside "
				"the segment and after the end of the previous one at %llu",
				s->id, (unsigned long long)d->Size, i + 1, (unsigned long long)end,
				(unsigned long long)before);
		s->bank_end[i] = before = end;
	}
	s->bank_count = d->NbOfBanks;
	s->bank_end[s->bank_count - 1] = d->Size;
	return STATUS_SUCCESS;
}

static NTSTATUS store_segment(struct vmm_port *port, UINT index, const DXGK_SEGMENTDESCRIPTOR3 *d)
{
	struct vmm_port_segment *s = &port->caps.segment[index];
	NTSTATUS status;

	s->id = index + 1;
	/* All checks run, so that one start reports every error of a segment. */
	status = check_flags(port, s->id, d->Flags);
	status = vmm_port_first_failure(status, check_size(port, s->id, d));
	status = vmm_port_first_failure(status, check_cpu_address(port, s->id, d));
	status = vmm_port_first_failure(status, store_banks(port, d, s));
	if (status != STATUS_SUCCESS)
		return status;
	s->flags = d->Flags;
	s->page_bytes = d->Flags.Use64KBPages ? VMM_LARGE_PAGE_SIZE : VMM_PAGE_SIZE; /* SEG-11 */
	if (s->flags.Aperture)
		s->flags.CpuVisible = 0; /* SEG-08 */
	else
		s->flags.CacheCoherent = 0; /* SEG-09 */
	/* SEG-10, Q-26: seen through the BAR its bytes are in the GPU's order. */
	s->unpitched = s->flags.Aperture && s->flags.PitchAlignment;
	if (s->unpitched)
		s->flags.PitchAlignment = 0;
	if (s->flags.PitchAlignment)
		s->flags.CpuVisible = 0;
	s->gpu_base = (uint64_t)d->BaseAddress.QuadPart;
	s->cpu_base.value = s->flags.CpuVisible ? (uint64_t)d->CpuTranslatedAddress.QuadPart : 0;
	s->reported_base = (uint64_t)d->CpuTranslatedAddress.QuadPart;
	s->size_bytes = d->Size;
	/* SEG-04: an aperture without a limit is limited by its size, as a memory segment is. */
	s->commit_limit_bytes = d->Flags.Aperture && d->CommitLimit ? d->CommitLimit : d->Size;
	s->system_memory_end = d->SystemMemoryEndAddress;
	vmm_port_report_accepted(port, index);
	return STATUS_SUCCESS;
}

static bool overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b ? b - a < a_size : a - b < b_size;
}

static NTSTATUS check_overlap(struct vmm_port *port, const struct vmm_port_segment *a,
			      const struct vmm_port_segment *b)
{
	bool cpu = a->flags.CpuVisible && b->flags.CpuVisible &&
		   overlaps(a->cpu_base.value, a->size_bytes, b->cpu_base.value, b->size_bytes);

	if (!cpu && !overlaps(a->gpu_base, a->size_bytes, b->gpu_base, b->size_bytes))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "SEG-27", 0, 0,
		"segments %u and %u share %s addresses: 0x%llx, %llu bytes and 0x%llx, %llu bytes",
		a->id, b->id, cpu ? "CPU" : "GPU",
		(unsigned long long)(cpu ? a->cpu_base.value : a->gpu_base),
		(unsigned long long)a->size_bytes,
		(unsigned long long)(cpu ? b->cpu_base.value : b->gpu_base),
		(unsigned long long)b->size_bytes);
}

static NTSTATUS store_paging_buffer(struct vmm_port *port, const struct answer *answer)
{
	UINT id = answer->paging_segment;
	NTSTATUS status = STATUS_SUCCESS;

	if (id > answer->count || (id && !answer->descriptor[id - 1].Flags.Aperture))
		status = vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "SEG-21", 0, 0,
					 "PagingBufferSegmentId is %u, which is %s", id,
					 id > answer->count
						 ? "no segment"
						 : "a memory segment: an aperture or 0 is needed");
	if (!answer->paging_bytes)
		status = vmm_refuse_rule(port->observe, STATUS_INVALID_PARAMETER, "SEG-21", 0, 0,
					 "PagingBufferSize is 0: no paging operation would fit");
	port->caps.paging_buffer_segment = id;
	port->caps.paging_buffer_bytes = answer->paging_bytes;
	port->caps.paging_private_bytes = answer->paging_private_bytes;
	return status;
}

static void limit_banks(struct vmm_port_segment *s)
{
	while (s->bank_count > 1 && s->bank_end[s->bank_count - 2] >= s->size_bytes)
		s->bank_count--;
	if (s->bank_count)
		s->bank_end[s->bank_count - 1] = s->size_bytes;
}

static void limit_invalid_ranges(struct vmm_port_segment *s)
{
	struct vmm_port_range *last;

	while (s->invalid_count && s->invalid[s->invalid_count - 1].offset >= s->size_bytes)
		s->invalid_count--;
	if (!s->invalid_count)
		return;
	last = &s->invalid[s->invalid_count - 1];
	if (last->size_bytes > s->size_bytes - last->offset)
		last->size_bytes = s->size_bytes - last->offset;
}

/*
 * the embedder may withhold the end of each memory segment, so that the core uses less than
 * the miniport has. The miniport does not learn of it. A protected range must be whole, so that a
 * segment which has one there keeps its size.
 */
static void limit_segment(const struct vmm_port *port, struct vmm_port_segment *s)
{
	uint64_t limit = port->memory_limit_bytes;

	if (s->page_bytes)
		limit -= limit % s->page_bytes;
	if (!limit || s->flags.Aperture || s->size_bytes <= limit ||
	    (s->vpr.size_bytes && s->vpr.offset + s->vpr.size_bytes > limit))
		return;
	s->size_bytes = s->commit_limit_bytes = limit;
	limit_banks(s);
	limit_invalid_ranges(s);
}

/* Reports all errors in one start, so that a driver's author sees them together. */
static NTSTATUS store_answer(struct vmm_port *port, const struct answer *answer)
{
	struct vmm_port_segment *stored = port->caps.segment;
	NTSTATUS first = STATUS_SUCCESS, status;

	for (UINT i = 0; i < answer->count; i++) {
		status = store_segment(port, i, &answer->descriptor[i]);
		/* A refused segment has no size, so it is not checked for overlaps. */
		for (UINT j = 0; j < i && status == STATUS_SUCCESS; j++)
			status = stored[j].size_bytes ? check_overlap(port, &stored[j], &stored[i])
						      : STATUS_SUCCESS;
		if (status == STATUS_SUCCESS && answer->invalid_ranges[i])
			status = vmm_port_store_invalid_ranges(port, &stored[i],
							       answer->invalid_ranges[i]);
		if (status == STATUS_SUCCESS)
			status = vmm_port_store_vpr(port, &stored[i], &answer->vpr[i]);
		if (status == STATUS_SUCCESS)
			status = vmm_port_store_host_aperture(port, &stored[i], &answer->host[i]);
		limit_segment(port, &stored[i]);
		first = vmm_port_first_failure(first, status);
	}
	if (vmm_port_is_wddm2(port))
		first = vmm_port_first_failure(first,
					       vmm_port_check_apertures(port, answer->count));
	first = vmm_port_first_failure(first, store_paging_buffer(port, answer));
	if (first == STATUS_SUCCESS)
		port->caps.segment_count = answer->count;
	return first;
}

NTSTATUS vmm_port_query_segments(struct vmm_port *port)
{
	struct answer *answer = vmm_calloc(1, sizeof(*answer));
	union wire *wire = vmm_calloc(1, sizeof(*wire));
	NTSTATUS status = STATUS_NO_MEMORY;

	if (answer && wire)
		status = count_segments(port, &answer->count);
	if (status >= 0)
		status = describe_segments(port, wire, answer);
	if (status >= 0)
		status = store_answer(port, answer);
	if (status >= 0)
		vmm_port_segments_pin(port);
	vmm_free(wire);
	vmm_free(answer);
	return status;
}
