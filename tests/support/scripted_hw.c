/* SPDX-License-Identifier: MIT */
/*
 * Hardware scheduling of the scripted miniport: a ring per queue. Nothing runs until the test
 * requests it. Then the GPU stores the command's id into the queue's progress fence and
 * interrupts. A command submitted to a suspended context counts as a fault.
 */
#include "scripted_miniport.h"

#include <stdlib.h>
#include <string.h>

/*
 * Offset of DXGK_NODEMETADATA.Flags: behind the type and a name of 16-bit characters, whatever
 * wchar_t is here.
 */
#define FLAGS_OFFSET      (4u + 32u * 2u)
#define NODE_TAKES_QUEUES 0x3u /* ContextSchedulingSupported, RingBufferFenceRelease */

void scripted_hw_start(struct scripted_miniport *m)
{
	DXGKARGCB_ISFEATUREENABLED ask = {m->services.DeviceHandle, DXGK_FEATURE_HWSCH, FALSE};

	m->hw_enabled = m->settings.hw_ask &&
			m->services.DxgkCbIsFeatureEnabled(&ask) == STATUS_SUCCESS && ask.Enabled;
}

static NTSTATUS APIENTRY get_node_metadata(IN_CONST_HANDLE adapter, UINT node,
					   OUT_PDXGKARG_GETNODEMETADATA args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_GET_NODE_METADATA, NULL, NULL, 0);

	if (!call->forced)
		memcpy((char *)args + FLAGS_OFFSET, &m->settings.hw_node_flags[node],
		       sizeof(m->settings.hw_node_flags[node]));
	return scripted_end(m, call, args);
}

/* ---- objects ---- */

static NTSTATUS APIENTRY create_hw_context(IN_CONST_HANDLE device,
					   INOUT_PDXGKARG_CREATECONTEXT args)
{
	struct scripted_miniport *m = scripted_of_device(device);
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_CREATE_HW_CONTEXT, device, args, sizeof(*args));

	if (call->forced)
		return scripted_end(m, call, args);
	if (m->hw_context_count == SCRIPTED_HW_MAX)
		abort();
	struct scripted_hw_context *context = &m->hw_context[m->hw_context_count++];
	*context = (struct scripted_hw_context){
		.m = m, .port = args->hContext, .node = args->NodeOrdinal, .live = true};
	args->hContext = context;
	args->ContextInfo = m->settings.context;
	m->live_contexts++;
	return scripted_end(m, call, args);
}

static NTSTATUS APIENTRY destroy_hw_context(IN_CONST_HANDLE handle)
{
	struct scripted_hw_context *context = handle;
	struct scripted_miniport *m = context->m;

	context->live = false;
	m->live_contexts--;
	return scripted_end(m, scripted_begin(m, VIDMM_DDI_DESTROY_HW_CONTEXT, handle, NULL, 0),
			    NULL);
}

static NTSTATUS APIENTRY create_hw_queue(IN_CONST_HANDLE handle, INOUT_PDXGKARG_CREATEHWQUEUE args)
{
	struct scripted_hw_context *context = handle;
	struct scripted_miniport *m = context->m;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_CREATE_HW_QUEUE, handle, args, sizeof(*args));

	if (call->forced)
		return scripted_end(m, call, args);
	if (m->hw_queue_count == SCRIPTED_HW_MAX)
		abort();
	struct scripted_hw_queue *queue = &m->hw_queue[m->hw_queue_count++];
	*queue = (struct scripted_hw_queue){.context = context};
	for (UINT i = 0; m->settings.hw_answers && i < args->PrivateDriverDataSize; i++)
		((UCHAR *)args->pPrivateDriverData)[i]++;
	args->hHwQueue = queue;
	m->live_hw_queues++;
	return scripted_end(m, call, args);
}

static NTSTATUS APIENTRY destroy_hw_queue(IN_CONST_HANDLE handle)
{
	struct scripted_hw_queue *queue = handle;
	struct scripted_miniport *m = queue->context->m;

	queue->fence = NULL; /* it may be freed now */
	m->live_hw_queues--;
	return scripted_end(m, scripted_begin(m, VIDMM_DDI_DESTROY_HW_QUEUE, handle, NULL, 0),
			    NULL);
}

/* ---- the GPU ---- */

void scripted_hw_store(struct scripted_miniport *m, uint32_t index, uint64_t value, bool interrupt)
{
	struct scripted_hw_queue *queue = &m->hw_queue[index];
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType =
							DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED};

	if (queue->fence)
		atomic_store((_Atomic uint64_t *)queue->fence, value);
	data.MonitoredFenceSignaled.NodeOrdinal = queue->context->node;
	if (interrupt)
		scripted_raise(m, &data);
}

uint32_t scripted_hw_complete(struct scripted_miniport *m, uint32_t index, uint32_t count)
{
	struct scripted_hw_queue *queue = &m->hw_queue[index];
	uint32_t done = 0;
	uint64_t id = 0;

	scripted_guard(m);
	m->faults += queue->context->suspended && queue->count && count;
	while (done < count && queue->count) {
		id = queue->id[queue->head];
		queue->head = (queue->head + 1) % SCRIPTED_HW_RING;
		queue->count--;
		done++;
	}
	scripted_unguard(m);
	if (done)
		scripted_hw_store(m, index, id, !m->settings.hw_ignore_fences);
	return done;
}

static NTSTATUS APIENTRY submit_to_hw_queue(IN_CONST_HANDLE adapter,
					    IN_CONST_PDXGKARG_SUBMITCOMMANDTOHWQUEUE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE,
						    args->hHwQueue, args, sizeof(*args));
	struct scripted_hw_queue *queue = args->hHwQueue;

	if (call->forced)
		return scripted_end(m, call, NULL);
	m->faults += queue->inside++ != 0; /* SUB-27: never entered twice for one queue */
	scripted_guard(m);
	m->faults += queue->context->suspended || queue->count == SCRIPTED_HW_RING ||
		     m->hw_resetting >> queue->context->node & 1;
	queue->fence = args->HwQueueProgressFenceCpuVa;
	queue->id[(queue->head + queue->count++) % SCRIPTED_HW_RING] = args->HwQueueProgressFenceId;
	if (args->DmaBufferPrivateDataSize && args->DmaBufferPrivateDataSize <= 8)
		memcpy(&queue->last_private, args->pDmaBufferPrivateData,
		       args->DmaBufferPrivateDataSize);
	queue->kept_private = args->pDmaBufferPrivateData;
	scripted_unguard(m);
	if (m->settings.complete_at_once && !m->settings.hw_by_hand)
		scripted_hw_complete(m, (uint32_t)(queue - m->hw_queue), 1);
	queue->inside--;
	return scripted_end(m, call, NULL);
}

static NTSTATUS APIENTRY present_to_hw_queue(IN_CONST_HANDLE handle, INOUT_PDXGKARG_PRESENT args)
{
	struct scripted_hw_queue *queue = handle;

	return scripted_present_by(queue->context->m, VIDMM_DDI_PRESENT_TO_HW_QUEUE, handle, args);
}

/* ---- scheduling ---- */

static NTSTATUS APIENTRY setup_bands(IN_CONST_HANDLE adapter,
				     IN_CONST_PDXGKARG_SETUPPRIORITYBANDS args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_SETUP_PRIORITY_BANDS, NULL, args, sizeof(*args)),
		NULL);
}

static NTSTATUS APIENTRY set_properties(IN_CONST_HANDLE adapter,
					IN_CONST_PDXGKARG_SETCONTEXTSCHEDULINGPROPERTIES args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(m,
			    scripted_begin(m, VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES,
					   args->hContext, args, sizeof(*args)),
			    NULL);
}

static NTSTATUS APIENTRY suspend_context(IN_CONST_HANDLE adapter,
					 IN_CONST_PDXGKARG_SUSPENDCONTEXT args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_SUSPEND_CONTEXT, args->hContext, args, sizeof(*args));
	struct scripted_hw_context *context = args->hContext;

	if (call->forced)
		return scripted_end(m, call, NULL);
	m->faults += args->contextSuspendFence <= context->suspend_fence; /* it must rise */
	context->suspend_fence = args->contextSuspendFence;
	context->asked = m->settings.hw_withhold_suspension;
	if (context->asked)
		call->status = STATUS_PENDING;
	else
		context->suspended = true;
	return scripted_end(m, call, NULL);
}

static NTSTATUS APIENTRY resume_context(IN_CONST_HANDLE adapter,
					IN_CONST_PDXGKARG_RESUMECONTEXT args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_hw_context *context = args->hContext;

	context->suspended = false;
	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_RESUME_CONTEXT, args->hContext, args, sizeof(*args)),
		NULL);
}

void scripted_hw_suspended(struct scripted_miniport *m, uint32_t index, uint64_t fence)
{
	struct scripted_hw_context *context = &m->hw_context[index];
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType =
							DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED};

	if (fence == context->suspend_fence && context->asked) {
		context->asked = false;
		context->suspended = true;
	}
	data.SuspendContextCompleted.hContext = context;
	data.SuspendContextCompleted.ContextSuspendFence = fence;
	scripted_raise(m, &data);
}

/* ---- engines ---- */

static bool has_commands(const struct scripted_miniport *m,
			 const struct scripted_hw_context *context)
{
	for (uint32_t q = 0; q < m->hw_queue_count; q++)
		if (m->hw_queue[q].context == context && m->hw_queue[q].count)
			return true;
	return false;
}

static void invalidate(struct scripted_miniport *m, struct scripted_hw_context *context,
		       bool collateral)
{
	DXGKARGCB_INVALIDATEHWCONTEXT args = {.hAdapter = m->services.DeviceHandle,
					      .hHwContext = context->port};

	args.Flags.CollateralDamage = collateral;
	m->faults += m->services.DxgkCbInvalidateHwContext(&args) != STATUS_SUCCESS;
	for (uint32_t q = 0; q < m->hw_queue_count; q++)
		if (m->hw_queue[q].context == context)
			m->hw_queue[q].count = 0;
}

/*
 * The first context with commands caused the hang. Other contexts with commands are invalidated
 * only if the test sets hw_collateral.
 */
static NTSTATUS APIENTRY reset_hw_engine(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_RESETHWENGINE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_RESET_HW_ENGINE, NULL, args, sizeof(*args));
	bool first = true;

	if (call->forced)
		return scripted_end(m, call, args);
	m->hw_resetting |= 1u << args->NodeOrdinal;
	for (uint32_t c = 0; c < m->hw_context_count && !m->settings.hw_spare_all; c++) {
		struct scripted_hw_context *context = &m->hw_context[c];

		if (!context->live || context->node != args->NodeOrdinal ||
		    !has_commands(m, context))
			continue;
		if (first || m->settings.hw_collateral)
			invalidate(m, context, !first);
		first = false;
	}
	return scripted_end(m, call, args);
}

static NTSTATUS APIENTRY resume_hw_engine(IN_CONST_HANDLE adapter,
					  INOUT_PDXGKARG_RESUMEHWENGINE args)
{
	struct scripted_miniport *m = adapter;

	m->hw_resetting &= ~(1u << args->NodeOrdinal);
	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_RESUME_HW_ENGINE, NULL, args, sizeof(*args)), args);
}

void scripted_hw(struct scripted_miniport *m)
{
	DRIVER_INITIALIZATION_DATA *t = &m->settings.table;

	t->DxgkDdiGetNodeMetadata = get_node_metadata;
	t->DxgkDdiCreateHwContext = create_hw_context;
	t->DxgkDdiDestroyHwContext = destroy_hw_context;
	t->DxgkDdiCreateHwQueue = create_hw_queue;
	t->DxgkDdiDestroyHwQueue = destroy_hw_queue;
	t->DxgkDdiSubmitCommandToHwQueue = submit_to_hw_queue;
	t->DxgkDdiPresentToHwQueue = present_to_hw_queue;
	t->DxgkDdiResetHwEngine = reset_hw_engine;
	t->DxgkDdiSetupPriorityBands = setup_bands;
	t->DxgkDdiSetContextSchedulingProperties = set_properties;
	t->DxgkDdiSuspendContext = suspend_context;
	t->DxgkDdiResumeContext = resume_context;
	t->DxgkDdiResumeHwEngine = resume_hw_engine;
	m->settings.hw_ask = true;
	m->settings.hw_node_flags[0] = NODE_TAKES_QUEUES;
}
