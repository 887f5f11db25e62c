/* SPDX-License-Identifier: MIT */
/*
 * Records what the miniport reports while it starts, before any check: the author of a refused
 * driver needs it most. The report belongs to the caller. Nothing here decides anything.
 */
#include "port/port_internal.h"

_Static_assert(VIDMM_REPORT_SEGMENTS_MAX == VMM_PORT_SEGMENTS_MAX &&
		       VIDMM_REPORT_BANKS_MAX == VMM_PORT_BANKS_MAX &&
		       VIDMM_REPORT_BARS_MAX == VMM_PORT_BARS_MAX,
	       "the report can hold all that port stores");

void vmm_port_report_step(struct vmm_port *port, enum vidmm_start_step step)
{
	if (port->report)
		port->report->step = step;
}

void vmm_port_report_device(struct vmm_port *port)
{
	struct vidmm_adapter_report *r = port->report;

	if (!r)
		return;
	r->bar_count = port->bar_count;
	for (uint32_t i = 0; i < port->bar_count; i++)
		r->bar[i] = (struct vidmm_bar_report){port->bar[i].physical,
						      port->bar[i].memory.size_bytes};
}

void vmm_port_report_version(struct vmm_port *port, uint32_t version)
{
	if (port->report)
		port->report->interface_version = version;
}

void vmm_port_report_caps(struct vmm_port *port, const DXGK_DRIVERCAPS *caps)
{
	struct vidmm_adapter_report *r = port->report;
	uint32_t bytes = port->version->caps_bytes;

	if (!r)
		return;
	r->driver_caps_bytes = bytes;
	r->highest_acceptable_address = (uint64_t)caps->HighestAcceptableAddress.QuadPart;
	r->aperture_segment_commit_limit = caps->ApertureSegmentCommitLimit;
	r->max_allocation_list_slot_id = caps->MaxAllocationListSlotId;
	r->interrupt_message_number = caps->InterruptMessageNumber;
	r->number_of_swizzling_ranges = caps->NumberOfSwizzlingRanges;
	r->scheduling_caps = caps->SchedulingCaps.Value;
	r->memory_management_caps = caps->MemoryManagementCaps.Value;
	r->paging_node = caps->MemoryManagementCaps.PagingNode;
	r->nb_asymetric_processing_nodes = caps->GpuEngineTopology.NbAsymetricProcessingNodes;
	/* Members that an older version's structure does not have may contain anything. */
	if (bytes > offsetof(DXGK_DRIVERCAPS, WDDMVersion))
		r->wddm_version = (uint32_t)caps->WDDMVersion;
	if (bytes > offsetof(DXGK_DRIVERCAPS, PreemptionCaps)) {
		r->graphics_preemption =
			(uint32_t)caps->PreemptionCaps.GraphicsPreemptionGranularity;
		r->compute_preemption = (uint32_t)caps->PreemptionCaps.ComputePreemptionGranularity;
		r->support_per_engine_tdr = caps->SupportPerEngineTDR;
	}
}

void vmm_port_report_nodes(struct vmm_port *port)
{
	if (!port->report)
		return;
	port->report->node_count = port->caps.node_count;
	port->report->node_depth = port->caps.node_depth;
}

void vmm_port_report_segment_count(struct vmm_port *port, uint32_t count)
{
	if (port->report)
		port->report->segment_count = count;
}

/* SEG-12: the table is read only with UseBanking, and not at all if the count is invalid. */
static void report_banks(struct vidmm_segment_report *s, const DXGK_SEGMENTDESCRIPTOR3 *d)
{
	if (!d->Flags.UseBanking || !d->pBankRangeTable || d->NbOfBanks > VMM_PORT_BANKS_MAX)
		return;
	for (; s->bank_end_count + 1 < d->NbOfBanks; s->bank_end_count++)
		s->bank_end[s->bank_end_count] = d->pBankRangeTable[s->bank_end_count];
}

void vmm_port_report_segment(struct vmm_port *port, uint32_t index,
			     const DXGK_SEGMENTDESCRIPTOR3 *d)
{
	struct vidmm_segment_report *s;

	if (!port->report)
		return;
	s = &port->report->segment[index];
	*s = (struct vidmm_segment_report){
		.flags = d->Flags.Value,
		.bank_count = d->NbOfBanks,
		.base_address = (uint64_t)d->BaseAddress.QuadPart,
		.cpu_translated_address = (uint64_t)d->CpuTranslatedAddress.QuadPart,
		.size_bytes = d->Size,
		.commit_limit_bytes = d->CommitLimit,
		.system_memory_end_address = d->SystemMemoryEndAddress,
	};
	report_banks(s, d);
	port->report->described_count = index + 1;
}

void vmm_port_report_accepted(struct vmm_port *port, uint32_t index)
{
	if (port->report)
		port->report->segment[index].effective_flags =
			port->caps.segment[index].flags.Value;
}

void vmm_port_report_paging_buffer(struct vmm_port *port, uint32_t segment, uint32_t size_bytes,
				   uint32_t private_bytes)
{
	if (!port->report)
		return;
	port->report->paging_buffer_segment_id = segment;
	port->report->paging_buffer_size = size_bytes;
	port->report->paging_buffer_private_data_size = private_bytes;
}
