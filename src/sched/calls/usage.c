/* SPDX-License-Identifier: MIT */
/*
 * What nodes and sources have done, for D3DKMTQueryStatistics. Packets count where they are queued,
 * submitted and completed (counts.h); here they are added up.
 */
#include "sched/calls/calls.h"
#include "sched/data/flip.h"

static void add(struct vmm_node_counts *to, const struct vmm_node_counts *from)
{
	to->running_ns += from->running_ns;
	to->switches += from->switches;
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(to->queued); i++) {
		to->queued[i] += from->queued[i];
		to->done[i] += from->done[i];
	}
	to->submitted += from->submitted;
	to->completed += from->completed;
	to->preempted += from->preempted;
	to->faulted += from->faulted;
}

void vmm_usage_leave_locked(struct vmm_device *device)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_list *link;

	vmm_assert_held(&adapter->state_lock);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *other = vmm_container_of(link, struct vmm_device, adapter_link);

		if (other->process != device->process)
			continue;
		for (uint32_t n = 0; n < adapter->node_count; n++)
			add(&other->node_counts[n], &device->node_counts[n]);
		return;
	}
}

/* The packet that runs now is charged when it completes: adds its time so far. */
static void add_running(const struct vmm_adapter *adapter, const struct vmm_process *process,
			const struct vmm_node *node, struct vmm_node_usage *usage)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&adapter->state_lock);
	if (vmm_list_empty(&node->hardware))
		return;
	struct vmm_packet *packet = vmm_container_of(node->hardware.next, struct vmm_packet, link);
	uint64_t ns = vmm_os_now_ns(adapter->os) - node->since_ns;

	if (packet->paging) {
		usage->system.running_ns += ns;
		return;
	}
	usage->clients.running_ns += ns;
	if (vmm_dma_of(packet)->context->device->process == process)
		usage->process.running_ns += ns;
}

NTSTATUS vmm_sched_node_usage(struct vmm_adapter *adapter, const struct vmm_process *process,
			      uint32_t node, struct vmm_node_usage *usage)
{
	struct vmm_list *link;

	if (node >= adapter->node_count)
		return vmm_refuse_rule(adapter->observe, STATUS_INVALID_PARAMETER, "QST-06",
				       process->id, 0,
				       "query statistics of node %u: the adapter has %u nodes",
				       node, adapter->node_count);
	vmm_state_lock(adapter);
	const struct vmm_node *of = &adapter->sched->node[node];
	*usage = (struct vmm_node_usage){.clients = of->clients, .system = of->system};
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (device->process == process)
			add(&usage->process, &device->node_counts[node]);
	}
	add_running(adapter, process, of, usage);
	vmm_state_unlock(adapter);
	return STATUS_SUCCESS;
}

/* Is it the first device of its process in the adapter's list? */
static bool is_first(const struct vmm_device *device) VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_list *link;

	vmm_assert_held(&device->adapter->state_lock);
	vmm_list_for_each (link, &device->adapter->devices) {
		const struct vmm_device *other =
			vmm_container_of(link, struct vmm_device, adapter_link);

		if (other->process == device->process)
			return other == device;
	}
	return false;
}

uint32_t vmm_sched_processes(struct vmm_adapter *adapter, uint32_t *ids, uint32_t capacity)
{
	const struct vmm_list *link;
	uint32_t count = 0;

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->devices) {
		const struct vmm_device *device =
			vmm_container_of(link, struct vmm_device, adapter_link);

		if (!is_first(device))
			continue;
		if (count < capacity)
			ids[count] = device->process->id;
		count++;
	}
	vmm_state_unlock(adapter);
	return count;
}

uint32_t vmm_sched_source_count(const struct vmm_adapter *adapter)
{
	return adapter->sched->caps->source_count;
}

NTSTATUS vmm_sched_source_usage(struct vmm_adapter *adapter, const struct vmm_process *process,
				uint32_t source, struct vmm_source_usage *usage)
{
	struct vmm_list *link;

	if (source >= vmm_sched_source_count(adapter))
		return vmm_refuse_rule(adapter->observe, STATUS_INVALID_PARAMETER, "QST-07",
				       process->id, 0,
				       "query statistics of source %u: the adapter has %u sources",
				       source, vmm_sched_source_count(adapter));
	vmm_state_lock(adapter);
	const struct vmm_source *of = &adapter->sched->display->source[source];
	*usage = (struct vmm_source_usage){.frames = of->count};
	vmm_list_for_each (link, &of->flips) {
		const struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

		usage->queued++;
		usage->queued_of_process += flip->process == process->id;
	}
	vmm_state_unlock(adapter);
	return STATUS_SUCCESS;
}
