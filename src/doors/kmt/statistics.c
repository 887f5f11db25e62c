/* SPDX-License-Identifier: MIT */
/*
 * D3DKMTQueryStatistics: which part of the core has the figures of a type (QST). calls.tsv has the
 * members that they are stored in.
 */
#include "kmt_calls.h"

#define NS_PER_UNIT 100u /* running times have units of 100 ns (QST-06) */

static NTSTATUS check_type(const struct vmm_door_call *call, const D3DKMT_QUERYSTATISTICS *args)
{
	uint32_t type = (uint32_t)args->Type;

	if (type > D3DKMT_QUERYSTATISTICS_PHYSICAL_ADAPTER)
		return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "QST-02",
				       call->process->id, 0,
				       "D3DKMTQueryStatistics: unknown type %u, the last is %u",
				       type, D3DKMT_QUERYSTATISTICS_PHYSICAL_ADAPTER);
	if (type == D3DKMT_QUERYSTATISTICS_PHYSICAL_ADAPTER)
		return vmm_refuse_reason(call->observe, STATUS_NOT_SUPPORTED, call->process->id, 0,
					 "QST-02: D3DKMTQueryStatistics: the performance data of "
					 "physical adapters is not built");
	return vmm_kmt_check_budget(call, "query statistics", args->hProcess, 0);
}

static NTSTATUS ask(struct vmm_process *process, struct vmm_adapter *adapter,
		    const D3DKMT_QUERYSTATISTICS *args, struct vmm_kmt_statistics *found)
{
	uint32_t index = args->QuerySegment.SegmentId; /* the first word of every query */

	switch (args->Type) {
	case D3DKMT_QUERYSTATISTICS_SEGMENT:
		return vmm_memory_segment_usage(adapter, process, index, &found->segment);
	case D3DKMT_QUERYSTATISTICS_PROCESS:
	case D3DKMT_QUERYSTATISTICS_PROCESS_ADAPTER:
		return vmm_memory_of_process(adapter, process, NULL, &found->process);
	case D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT:
		return vmm_memory_of_process(adapter, process, &index, &found->process);
	case D3DKMT_QUERYSTATISTICS_NODE:
	case D3DKMT_QUERYSTATISTICS_PROCESS_NODE:
		return vmm_sched_node_usage(adapter, process, index, &found->node);
	case D3DKMT_QUERYSTATISTICS_VIDPNSOURCE:
	case D3DKMT_QUERYSTATISTICS_PROCESS_VIDPNSOURCE:
		return vmm_sched_source_usage(adapter, process, index, &found->source);
	case D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP:
		return vmm_budget_query(adapter, process, index, &found->group);
	default:
		return STATUS_SUCCESS;
	}
}

NTSTATUS vmm_kmt_statistics(const struct vmm_door_call *call, struct vmm_adapter *adapter,
			    const D3DKMT_QUERYSTATISTICS *args, struct vmm_kmt_statistics *found)
{
	NTSTATUS status = check_type(call, args);

	if (!NT_SUCCESS(status))
		return status;
	vmm_memory_statistics(adapter, &found->memory);
	found->segments = found->memory.segment_count;
	found->nodes = adapter->node_count;
	found->sources = vmm_sched_source_count(adapter);
	found->resets = atomic_load(&adapter->resets);
	return ask(call->process, adapter, args, found);
}

static D3DKMT_QUERYSTATISTICS_DMA_PACKET_TYPE_INFORMATION packets(const struct vmm_node_counts *of)
{
	return (D3DKMT_QUERYSTATISTICS_DMA_PACKET_TYPE_INFORMATION){
		.PacketSubmited = of->submitted,
		.PacketCompleted = of->completed,
		.PacketPreempted = of->preempted,
		.PacketFaulted = of->faulted};
}

D3DKMT_QUERYSTATISTICS_PROCESS_NODE_INFORMATION
vmm_kmt_node_record(const struct vmm_node_counts *clients, const struct vmm_node_counts *system)
{
	static const struct vmm_node_counts none;
	const struct vmm_node_counts *paging = system ? system : &none;

	return (D3DKMT_QUERYSTATISTICS_PROCESS_NODE_INFORMATION){
		.RunningTime.QuadPart =
			(LONGLONG)((clients->running_ns + paging->running_ns) / NS_PER_UNIT),
		.ContextSwitch = clients->switches,
		.PacketStatistics = {
			.QueuePacket = {[D3DKMT_RenderCommandBuffer] = {clients->queued[0],
									clients->done[0]},
					[D3DKMT_MmIoFlipCommandBuffer] = {clients->queued[1],
									  clients->done[1]}},
			.DmaPacket = {[D3DKMT_ClientRenderBuffer] = packets(clients),
				      [D3DKMT_SystemPagingBuffer] = packets(paging)}}};
}
