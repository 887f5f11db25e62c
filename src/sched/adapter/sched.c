/* SPDX-License-Identifier: MIT */
/*
 * The scheduler of an adapter: its creation and end, the system device and the paging contexts.
 */
#include "sched/adapter/adapter.h"

/* A device is ending. Its calls may wait for buffers that are queued behind a wait. */
static void device_ends(struct vmm_adapter *adapter)
{
	vmm_steps_poll(adapter->sched);
}

vmm_status vmm_sched_create(struct vmm_adapter *adapter, uint32_t first_fence)
{
	struct vmm_sched *sched = vmm_calloc_lines(sizeof(*sched));

	if (!sched)
		return VMM_NO_MEMORY;
	sched->adapter = adapter;
	sched->next_fence = first_fence ? first_fence : 0xFFFFFF00u;
	vmm_list_init(&sched->address_updates);
	vmm_list_init(&sched->prepare);
	vmm_list_init(&sched->free_paging);
	vmm_list_init(&sched->mapped_dma);
	vmm_list_init(&sched->stepping);
	vmm_list_init(&sched->ddi_creations);
	vmm_list_init(&sched->free_software);
	for (uint32_t n = 0; n < VMM_NODES_MAX; n++) {
		vmm_list_init(&sched->node[n].paging);
		vmm_list_init(&sched->node[n].contexts);
		vmm_list_init(&sched->node[n].hardware);
		sched->node[n].last_completed = sched->node[n].last_submitted =
			sched->node[n].newest = sched->next_fence - 1;
		atomic_store(&sched->report[n].fence, sched->next_fence - 1);
	}
	for (uint32_t i = 0; i < VMM_PAGING_PACKETS; i++)
		vmm_list_push_back(&sched->free_paging, &sched->paging_packet[i].link);
	adapter->sched = sched;
	return VMM_OK;
}

static void destroy_system_objects(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;

	for (uint32_t i = 0; i < adapter->physical_adapters; i++) {
		if (adapter->paging_context[i])
			vmm_port_destroy_context(adapter->port, adapter->paging_context[i]);
		adapter->paging_context[i] = NULL;
	}
	if (sched->system_device)
		vmm_port_destroy_device(adapter->port, sched->system_device);
	sched->system_device = NULL;
	vmm_va_end_system(adapter);
}

/*
 * SCH-09, SUB-18: paging runs in a system device and context on the miniport's paging node. A link
 * has one such context for each adapter.
 */
static vmm_status create_system_objects(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	DXGK_DEVICEINFO info = {0};
	HANDLE device = sched, process = NULL;
	NTSTATUS status = vmm_va_begin_system(adapter, &process);

	if (!NT_SUCCESS(status))
		return status;
	status = vmm_port_create_system_device(adapter->port, &device, process, &info);
	if (NT_SUCCESS(status))
		sched->system_device = device;
	for (uint32_t i = 0; i < adapter->physical_adapters && NT_SUCCESS(status); i++) {
		DXGKARG_CREATECONTEXT args = {.hContext = adapter,
					      .NodeOrdinal = adapter->paging_node,
					      .EngineAffinity = 1u << i};

		args.Flags.SystemContext = 1;
		status = vmm_port_create_context(adapter->port, device, &args);
		if (NT_SUCCESS(status))
			adapter->paging_context[i] = args.hContext;
	}
	if (!NT_SUCCESS(status))
		destroy_system_objects(sched);
	return status;
}

vmm_status vmm_sched_start(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	vmm_status status;

	sched->caps = vmm_port_caps(adapter->port);
	sched->working_set =
		adapter->residency_lists ? &vmm_working_set_wddm2 : &vmm_working_set_wddm1;
	adapter->sync_driver = &vmm_sched_sync_driver;
	adapter->device_ends = device_ends;
	status = vmm_display_create(adapter);
	if (vmm_ok(status))
		status = vmm_periodic_create(sched);
	if (vmm_ok(status))
		status = vmm_hw_start(sched);
	if (vmm_ok(status))
		status = create_system_objects(sched);
	if (!vmm_ok(status))
		return status;
	status = vmm_os_thread_create(adapter->os, "vidsch worker", vmm_worker_main, adapter,
				      &sched->worker);
	if (!vmm_ok(status))
		vmm_sched_stop(adapter);
	return status;
}

void vmm_sched_stop(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	vmm_watch_stop(sched);
	if (sched->worker) {
		atomic_store(&sched->quit, true);
		vmm_worker_wake(sched);
		vmm_os_thread_join(sched->worker);
		sched->worker = NULL;
	}
	vmm_periodic_stop(sched);
	destroy_system_objects(sched);
}

void vmm_sched_destroy(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	vmm_assert(atomic_load(&sched->prepare_count) == 0 &&
		   atomic_load(&sched->ready_count) == 0);
	vmm_steps_destroy(sched);
	adapter->sched = NULL;
	vmm_hw_destroy(sched);
	vmm_display_destroy(sched);
	vmm_free(sched->periodic);
	vmm_free(sched->slots);
	vmm_free(sched);
}

struct vmm_sched_statistics vmm_sched_statistics(struct vmm_adapter *adapter)
{
	vmm_state_lock(adapter);
	const struct vmm_sched_statistics figures = {
		.patches = adapter->sched->patches,
		.splits = atomic_load(&adapter->sched->splits),
	};
	vmm_state_unlock(adapter);
	return figures;
}
