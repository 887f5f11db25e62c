/* SPDX-License-Identifier: MIT */
/*
 * Hardware contexts and queues (Model wddm2 with HardwareQueues): their objects, submissions,
 * suspension, and the reset of an engine for them. The engine's part is hw_engine.c. All functions
 * run at PASSIVE_LEVEL.
 */
#include "softgpu_private.h"

#include "atomic.h"

static struct softgpu_engine *engine_of(const struct softgpu_context *context)
{
	return &context->adapter->engines[context->node];
}

/* ---- objects ---- */

NTSTATUS APIENTRY softgpu_create_hw_context(IN_CONST_HANDLE hDevice,
					    INOUT_PDXGKARG_CREATECONTEXT pCreateContext)
{
	const struct softgpu_device *device = hDevice;
	struct softgpu_context *context;

	if (pCreateContext->NodeOrdinal >= SOFTGPU_NODES || pCreateContext->EngineAffinity > 1)
		return STATUS_INVALID_PARAMETER;
	context = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*context), SOFTGPU_POOL_TAG);
	if (!context)
		return STATUS_NO_MEMORY;
	context->adapter = device->adapter;
	context->node = pCreateContext->NodeOrdinal;
	context->port = pCreateContext->hContext;
	softgpu_fill_context_info(&device->adapter->settings, &pCreateContext->ContextInfo);
	pCreateContext->hContext = context;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_destroy_hw_context(IN_CONST_HANDLE hContext)
{
	ExFreePoolWithTag(hContext, SOFTGPU_POOL_TAG);
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_create_hw_queue(IN_CONST_HANDLE hHwContext,
					  INOUT_PDXGKARG_CREATEHWQUEUE pArgs)
{
	struct softgpu_context *context = hHwContext;
	struct softgpu_engine *engine = engine_of(context);
	struct softgpu_hw_queue *queue =
		ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*queue), SOFTGPU_POOL_TAG);
	KIRQL irql;

	if (!queue)
		return STATUS_NO_MEMORY;
	queue->context = context;
	KeAcquireSpinLock(&engine->lock, &irql);
	queue->turn = ++engine->hw_turn;
	queue->next = engine->hw_queues;
	engine->hw_queues = queue;
	KeReleaseSpinLock(&engine->lock, irql);
	pArgs->hHwQueue = queue;
	return STATUS_SUCCESS;
}

/*
 * A queue still has commands only if its context is lost, suspended for good, or removed, or if the
 * last one has stored its progress fence itself and is about to end.
 */
NTSTATUS APIENTRY softgpu_destroy_hw_queue(IN_CONST_HANDLE hHwQueue)
{
	struct softgpu_hw_queue *queue = hHwQueue, **at;
	struct softgpu_engine *engine = engine_of(queue->context);
	KIRQL irql;
	int is_running;

	KeAcquireSpinLock(&engine->lock, &irql);
	is_running = engine->hw_running == queue;
	queue->is_ending = 1;
	for (at = &engine->hw_queues; *at != queue; at = &(*at)->next)
		;
	*at = queue->next;
	KeReleaseSpinLock(&engine->lock, irql);
	if (is_running)
		softgpu_hw_await_left(engine);
	ExFreePoolWithTag(queue, SOFTGPU_POOL_TAG);
	return STATUS_SUCCESS;
}

/* ---- submission ---- */

/* What a lost context or a removed device gets is accepted, and lost (PNP-08). */
static NTSTATUS append(struct softgpu_engine *engine, struct softgpu_hw_queue *queue,
		       const struct softgpu_hw_command *command)
{
	if (softgpu_load32(&engine->is_halted))
		return STATUS_INVALID_DEVICE_STATE; /* between a reset and its restart (TDR-05) */
	if (softgpu_load32(&engine->is_removed) || queue->context->is_lost)
		return STATUS_SUCCESS;
	if (queue->count == SOFTGPU_HW_QUEUE_DEPTH)
		return STATUS_INSUFFICIENT_RESOURCES; /* more than MaxInFlightHwQueueBuffers */
	queue->ring[(queue->head + queue->count++) % SOFTGPU_HW_QUEUE_DEPTH] = *command;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_submit_command_to_hw_queue(IN_CONST_HANDLE hAdapter,
						     IN_CONST_PDXGKARG_SUBMITCOMMANDTOHWQUEUE pArgs)
{
	const struct softgpu_adapter *adapter = hAdapter;
	struct softgpu_hw_queue *queue = pArgs->hHwQueue;
	struct softgpu_engine *engine = engine_of(queue->context);
	const struct softgpu_hw_command command = {
		.address = pArgs->DmaBufferVirtualAddress,
		.length = pArgs->Flags.NullRendering ? 0 : pArgs->DmaBufferSize,
		/* Commands of presents do not store the fence: they were written without the id. */
		.progress_address =
			adapter->settings.hardware_queues ==
						SOFTGPU_HARDWARE_QUEUES_ENGINE_RELEASES ||
					pArgs->Flags.Present
				? pArgs->HwQueueProgressFenceGpuVa
				: 0,
		.progress_id = pArgs->HwQueueProgressFenceId,
	};
	NTSTATUS status;
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	status = append(engine, queue, &command);
	KeReleaseSpinLock(&engine->lock, irql);
	if (NT_SUCCESS(status) && softgpu_exchange32(&engine->is_asleep, 0))
		softgpu_engine_kick(engine);
	return status;
}

/* ---- scheduling ---- */

/* The engine has no quanta: a command ends, waits or is suspended. */
NTSTATUS APIENTRY softgpu_setup_priority_bands(IN_CONST_HANDLE hAdapter,
					       IN_CONST_PDXGKARG_SETUPPRIORITYBANDS pArgs)
{
	(void)hAdapter;
	(void)pArgs;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_set_context_scheduling_properties(
	IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_SETCONTEXTSCHEDULINGPROPERTIES pArgs)
{
	struct softgpu_context *context = pArgs->hContext;
	struct softgpu_engine *engine = engine_of(context);
	KIRQL irql;

	(void)hAdapter;
	KeAcquireSpinLock(&engine->lock, &irql);
	context->band = pArgs->priorityBand;
	context->in_process_priority = pArgs->inProcessPriority;
	KeReleaseSpinLock(&engine->lock, irql);
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_suspend_context(IN_CONST_HANDLE hAdapter,
					  IN_CONST_PDXGKARG_SUSPENDCONTEXT pArgs)
{
	struct softgpu_context *context = pArgs->hContext;
	struct softgpu_engine *engine = engine_of(context);
	KIRQL irql;
	int is_running;

	(void)hAdapter;
	KeAcquireSpinLock(&engine->lock, &irql);
	is_running = engine->hw_running && engine->hw_running->context == context;
	context->is_suspending = is_running;
	context->is_suspended = !is_running;
	context->suspend_fence = pArgs->contextSuspendFence;
	KeReleaseSpinLock(&engine->lock, irql);
	if (!is_running)
		return STATUS_SUCCESS;
	softgpu_engine_kick(engine);
	return STATUS_PENDING;
}

NTSTATUS APIENTRY softgpu_resume_context(IN_CONST_HANDLE hAdapter,
					 IN_CONST_PDXGKARG_RESUMECONTEXT pArgs)
{
	struct softgpu_context *context = pArgs->hContext;
	struct softgpu_engine *engine = engine_of(context);
	KIRQL irql;

	(void)hAdapter;
	KeAcquireSpinLock(&engine->lock, &irql);
	context->is_suspended = 0;
	KeReleaseSpinLock(&engine->lock, irql);
	softgpu_engine_kick(engine);
	return STATUS_SUCCESS;
}

/* ---- reset ---- */

/*
 * After a fault only the context that faulted is lost. Otherwise the engine does not answer: the
 * running command hung, and what waits behind it in other queues is lost with it.
 */
static void choose_lost(struct softgpu_engine *engine)
{
	struct softgpu_hw_queue *queue;
	int has_faulted = 0;

	engine->is_hw_stopped = 1;
	for (queue = engine->hw_queues; queue; queue = queue->next)
		has_faulted |= queue->context->invalidate == SOFTGPU_GUILTY;
	if (has_faulted)
		return;
	if (engine->hw_running)
		engine->hw_running->context->invalidate = SOFTGPU_GUILTY;
	for (queue = engine->hw_queues; queue; queue = queue->next) {
		struct softgpu_context *context = queue->context;

		if (queue->count && !context->is_lost && !context->invalidate)
			context->invalidate = SOFTGPU_COLLATERAL;
	}
	for (queue = engine->hw_queues; queue; queue = queue->next)
		if (queue->context->invalidate)
			queue->context->is_lost = 1;
}

/* Returns the port's handle of a lost context not yet invalidated there; NULL: there is none. */
static HANDLE next_lost(struct softgpu_engine *engine, DXGK_INVALIDATEHWCONTEXTFLAGS *flags)
{
	struct softgpu_hw_queue *queue;
	HANDLE port = NULL;
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	for (queue = engine->hw_queues; queue && !port; queue = queue->next) {
		if (!queue->context->invalidate)
			continue;
		port = queue->context->port;
		flags->Value = 0;
		flags->CollateralDamage = queue->context->invalidate == SOFTGPU_COLLATERAL;
		queue->context->invalidate = SOFTGPU_UNHARMED;
	}
	KeReleaseSpinLock(&engine->lock, irql);
	return port;
}

/* Runs while no command is submitted to a hardware queue (TDR-21). DMA buffers go on. */
NTSTATUS APIENTRY softgpu_reset_hw_engine(IN_CONST_HANDLE hAdapter,
					  INOUT_PDXGKARG_RESETHWENGINE pResetHwEngine)
{
	struct softgpu_adapter *adapter = hAdapter;
	struct softgpu_engine *engine = softgpu_engine_of(adapter, pResetHwEngine->NodeOrdinal,
							  pResetHwEngine->EngineOrdinal);
	DXGKARGCB_INVALIDATEHWCONTEXT invalidate = {.hAdapter = adapter->dxgk.DeviceHandle};
	KIRQL irql;

	if (!engine)
		return STATUS_INVALID_PARAMETER;
	KeAcquireSpinLock(&engine->lock, &irql);
	choose_lost(engine);
	KeReleaseSpinLock(&engine->lock, irql);
	softgpu_hw_await_left(engine);
	while ((invalidate.hHwContext = next_lost(engine, &invalidate.Flags)) != NULL)
		(void)adapter->dxgk.DxgkCbInvalidateHwContext(&invalidate);
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_resume_hw_engine(IN_CONST_HANDLE hAdapter,
					   INOUT_PDXGKARG_RESUMEHWENGINE pResumeHwEngine)
{
	struct softgpu_engine *engine = softgpu_engine_of(hAdapter, pResumeHwEngine->NodeOrdinal,
							  pResumeHwEngine->EngineOrdinal);
	KIRQL irql;

	if (!engine)
		return STATUS_INVALID_PARAMETER;
	KeAcquireSpinLock(&engine->lock, &irql);
	engine->is_hw_stopped = 0;
	KeReleaseSpinLock(&engine->lock, irql);
	softgpu_engine_kick(engine);
	return STATUS_SUCCESS;
}
