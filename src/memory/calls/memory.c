/* SPDX-License-Identifier: MIT */
/* Creates and destroys the module's state. */
#include "memory/calls/calls.h"
#include "memory/image/image.h"
#include "memory/sets/sets.h"
#include "memory/sets/va_private.h"
#include "memory/state/state.h"
#include "memory/store/arena.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"

void vmm_memory_choose_model(struct vmm_adapter *adapter)
{
	adapter->model = vmm_port_caps(adapter->port)->wddm2 ? &vmm_memory_model_wddm2
							     : &vmm_memory_model_wddm1;
	adapter->residency_lists = adapter->model->residency_lists;
	adapter->client_synchronizes = adapter->model->client_synchronizes;
}

vmm_status vmm_memory_create(struct vmm_adapter *adapter, const struct vmm_memory_engine *engine,
			     uint64_t system_limit_bytes)
{
	struct vmm_memory *memory = vmm_calloc_lines(sizeof(*memory));
	vmm_status status;

	if (!memory)
		return VMM_NO_MEMORY;
	memory->adapter = adapter;
	memory->engine = engine;
	memory->caps = vmm_port_caps(adapter->port);
	memory->model = adapter->model;
	memory->system_limit_bytes = system_limit_bytes;
	memory->decommit = vmm_offer_decommit;
	vmm_list_init(&memory->deferred);
	vmm_list_init(&memory->arena_pools);
	vmm_list_init(&memory->closed);
	vmm_list_init(&memory->orphans);
	vmm_list_init(&memory->uploads);
	vmm_list_init(&memory->arrivals);
	vmm_list_init(&memory->partials);
	vmm_list_init(&memory->allocations);
	vmm_list_init(&memory->queued_offers);
	vmm_list_init(&memory->context_allocations);
	vmm_list_init(&memory->paging_queues);
	vmm_list_init(&memory->departures);
	vmm_list_init(&memory->budgets);
	vmm_list_init(&memory->vas);
	vmm_list_init(&memory->power_returns);
	vmm_list_init(&memory->peaks.readers);
	adapter->memory = memory;
	memory->arenas = vmm_calloc(VMM_ARENAS_MAX, sizeof(*memory->arenas));
	status = vmm_lru_create(memory, vmm_policy_order(adapter->eviction.policy));
	if (!memory->arenas)
		status = VMM_NO_MEMORY;
	if (vmm_ok(status))
		status = vmm_segments_create(memory);
	if (vmm_ok(status))
		status = vmm_host_apertures_create(memory);
	if (!vmm_ok(status))
		vmm_memory_destroy(adapter);
	return status;
}

vmm_status vmm_memory_start(struct vmm_adapter *adapter)
{
	vmm_paging_lock(adapter);
	vmm_status status = vmm_va_start_system(adapter);
	if (vmm_ok(status))
		status = vmm_paging_buffers_create(adapter->memory);
	vmm_paging_commit(adapter);
	return status;
}

void vmm_memory_destroy(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;

	vmm_trims_finish(memory);
	vmm_swizzle_finish(memory);
	vmm_budgets_finish(memory);
	vmm_peak_readers_finish(memory);
	vmm_paging_lock(adapter);
	vmm_va_free_system(memory);
	vmm_paging_buffers_destroy(memory);
	vmm_paging_unlock(adapter);
	vmm_backing_collect(memory);
	vmm_host_apertures_destroy(memory);
	vmm_segments_destroy(memory);
	if (memory->arenas)
		vmm_arenas_finish(memory);
	adapter->memory = NULL;
	vmm_pool_finish(&memory->pool);
	vmm_lru_destroy(memory);
	vmm_free(memory);
}
