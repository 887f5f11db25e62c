/* SPDX-License-Identifier: MIT */
/*
 * Timeout recovery. Runs at PASSIVE while no other thread is in the miniport, so only the engines
 * have to be stopped.
 */
#include "softgpu_private.h"

#include "atomic.h"

/* What DxgkDdiCollectDbgInfo stores for a bug report. */
struct debug_engine {
	uint32_t submitted_fence, completed_fence, running_fence;
	uint32_t queued, is_running, is_hung;
};
struct debug_info {
	char name[8];
	uint32_t reason, engine_count;
	struct debug_engine engines[SOFTGPU_NODES];
};

static void set_halted(struct softgpu_engine *engine, int is_halted)
{
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	softgpu_store32(&engine->is_halted, (uint32_t)is_halted);
	engine->is_hw_stopped = 0;
	if (is_halted)
		engine->completed_fence = softgpu_load32(&engine->submitted_fence); /* TDR-09 */
	KeReleaseSpinLock(&engine->lock, irql);
}

static void lose_hw_queues(struct softgpu_engine *engine)
{
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	softgpu_hw_lose_all(engine);
	KeReleaseSpinLock(&engine->lock, irql);
}

/*
 * On return no engine accesses memory (TDR-06). The aperture is switched off too: no engine will
 * execute the UNMAP commands of the cleanup that follows (TDR-05). No translation survives.
 */
NTSTATUS APIENTRY softgpu_reset_from_timeout(IN_CONST_HANDLE hAdapter)
{
	struct softgpu_adapter *adapter = hAdapter;
	uint32_t i, node;

	for (i = 0; i < adapter->link_count; i++) {
		for (node = 0; node < SOFTGPU_NODES; node++) {
			lose_hw_queues(&adapter->link[i]->engines[node]);
			softgpu_engine_reset(&adapter->link[i]->engines[node]);
			set_halted(&adapter->link[i]->engines[node], 1);
			softgpu_mmu_flush_all(&adapter->link[i]->engines[node].mmu);
		}
		softgpu_aperture_clear(&adapter->link[i]->memory);
	}
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_restart_from_timeout(IN_CONST_HANDLE hAdapter)
{
	struct softgpu_adapter *adapter = hAdapter;
	uint32_t i, node;

	for (i = 0; i < adapter->link_count; i++)
		for (node = 0; node < SOFTGPU_NODES; node++)
			set_halted(&adapter->link[i]->engines[node], 0);
	return STATUS_SUCCESS;
}

/*
 * Reports the aborted packet, or the last completed one if none was running (TDR-15). Queued
 * packets are dropped.
 */
NTSTATUS APIENTRY softgpu_reset_engine(IN_CONST_HANDLE hAdapter,
				       INOUT_PDXGKARG_RESETENGINE pResetEngine)
{
	struct softgpu_engine *engine =
		softgpu_engine_of(hAdapter, pResetEngine->NodeOrdinal, pResetEngine->EngineOrdinal);
	KIRQL irql;

	if (!engine)
		return STATUS_INVALID_PARAMETER;
	softgpu_engine_reset(engine);
	KeAcquireSpinLock(&engine->lock, &irql);
	if (engine->did_abort)
		engine->completed_fence = engine->aborted_fence;
	softgpu_store32(&engine->submitted_fence, engine->completed_fence);
	pResetEngine->LastAbortedFenceId = engine->completed_fence;
	KeReleaseSpinLock(&engine->lock, irql);
	return STATUS_SUCCESS;
}

/* An engine that waits or stalls still makes progress; only HANG never ends. */
NTSTATUS APIENTRY softgpu_query_engine_status(IN_CONST_HANDLE hAdapter,
					      INOUT_PDXGKARG_QUERYENGINESTATUS pQueryEngineStatus)
{
	struct softgpu_engine *engine = softgpu_engine_of(hAdapter, pQueryEngineStatus->NodeOrdinal,
							  pQueryEngineStatus->EngineOrdinal);
	KIRQL irql;

	if (!engine)
		return STATUS_INVALID_PARAMETER;
	KeAcquireSpinLock(&engine->lock, &irql);
	pQueryEngineStatus->EngineStatus.Value = 0;
	pQueryEngineStatus->EngineStatus.Responsive = !engine->is_hung;
	KeReleaseSpinLock(&engine->lock, irql);
	return STATUS_SUCCESS;
}

/* Resetting one engine takes nothing from another one (TDR-18: the mask names the node itself). */
NTSTATUS APIENTRY softgpu_query_dependent_engine_group(
	IN_CONST_HANDLE hAdapter, INOUT_PDXGKARG_QUERYDEPENDENTENGINEGROUP pQuery)
{
	if (!softgpu_engine_of(hAdapter, pQuery->NodeOrdinal, pQuery->EngineOrdinal))
		return STATUS_INVALID_PARAMETER;
	pQuery->DependentNodeOrdinalMask = (ULONGLONG)1 << pQuery->NodeOrdinal;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_collect_dbg_info(IN_CONST_HANDLE hAdapter,
					   IN_CONST_PDXGKARG_COLLECTDBGINFO pCollectDbgInfo)
{
	struct softgpu_adapter *adapter = hAdapter;
	struct debug_info info = {.name = "softgpu",
				  .reason = pCollectDbgInfo->Reason,
				  .engine_count = SOFTGPU_NODES};
	SIZE_T size = pCollectDbgInfo->BufferSize;
	uint32_t node;

	if (!pCollectDbgInfo->pBuffer)
		return STATUS_INVALID_PARAMETER;
	/*
	 * In a crash this may be called at any IRQL. Locks cannot be taken then, so only the reason
	 * is stored.
	 */
	for (node = 0; node < SOFTGPU_NODES && KeGetCurrentIrql() <= DISPATCH_LEVEL; node++) {
		struct softgpu_engine *engine = &adapter->engines[node];
		KIRQL irql;

		KeAcquireSpinLock(&engine->lock, &irql);
		info.engines[node] = (struct debug_engine){
			.submitted_fence = softgpu_load32(&engine->submitted_fence),
			.completed_fence = engine->completed_fence,
			.running_fence = engine->running_fence,
			.queued = softgpu_engine_queued(engine),
			.is_running = (uint32_t)engine->is_running,
			.is_hung = (uint32_t)engine->is_hung,
		};
		KeReleaseSpinLock(&engine->lock, irql);
	}
	memcpy(pCollectDbgInfo->pBuffer, &info, size < sizeof(info) ? size : sizeof(info));
	return STATUS_SUCCESS;
}
