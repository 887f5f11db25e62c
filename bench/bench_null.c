/* SPDX-License-Identifier: MIT */
#include "bench_null.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/softgpu.h>

enum { ADAPTERS_MAX = 128 };
static struct null_adapter {
	const void *adapter; /* NULL: unused */
	DXGKRNL_INTERFACE services;
} adapters[ADAPTERS_MAX];

/* The entry of the adapter, or an unused one; NULL: there is neither. */
static struct null_adapter *find(const void *adapter)
{
	struct null_adapter *a = adapters;

	while (a < adapters + ADAPTERS_MAX && a->adapter && a->adapter != adapter)
		a++;
	return a < adapters + ADAPTERS_MAX ? a : NULL;
}

void bench_null_start(const void *adapter, const DXGKRNL_INTERFACE *services)
{
	struct null_adapter *a = find(adapter);

	if (!a)
		abort();
	a->adapter = adapter;
	/* The interface of WDDM 1.x ends there; the callbacks used here are before. */
	memcpy(&a->services, services, offsetof(DXGKRNL_INTERFACE, DxgkCbMapContextAllocation));
}

struct completion {
	const DXGKRNL_INTERFACE *services;
	UINT fence, node;
};

static BOOLEAN complete(PVOID context)
{
	const struct completion *c = context;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED};

	data.DmaCompleted.SubmissionFenceId = c->fence;
	data.DmaCompleted.NodeOrdinal = c->node;
	c->services->DxgkCbNotifyInterrupt(c->services->DeviceHandle, &data);
	c->services->DxgkCbQueueDpc(c->services->DeviceHandle);
	return TRUE;
}

NTSTATUS bench_null_complete(HANDLE adapter, UINT fence, UINT node)
{
	const struct completion c = {&find(adapter)->services, fence, node};
	BOOLEAN result;

	return c.services->DxgkCbSynchronizeExecution(c.services->DeviceHandle, complete,
						      (PVOID)(uintptr_t)&c, 0, &result);
}

static BOOLEAN report_nothing(PVOID context)
{
	const struct completion *c = context;

	c->services->DxgkCbQueueDpc(c->services->DeviceHandle);
	return TRUE;
}

void bench_null_interrupt(HANDLE adapter)
{
	const struct completion c = {.services = &find(adapter)->services};
	BOOLEAN result;

	if (c.services->DxgkCbSynchronizeExecution(c.services->DeviceHandle, report_nothing,
						   (PVOID)(uintptr_t)&c, 0, &result))
		abort();
}

/* ---- submissions of WDDM 1.x ---- */

static struct {
	_Atomic uint32_t patches; /* number that Render emits */
	DXGKDDI_START_DEVICE *start;
	DXGKDDI_SUBMITCOMMAND *submit;
	DXGKDDI_PATCH *patch;
} null_driver;

static NTSTATUS null_start(IN_CONST_PVOID adapter, PDXGK_START_INFO info,
			   PDXGKRNL_INTERFACE services, PULONG sources, PULONG children)
{
	bench_null_start(adapter, services);
	return null_driver.start(adapter, info, services, sources, children);
}

static NTSTATUS null_render(IN_CONST_HANDLE context, INOUT_PDXGKARG_RENDER args)
{
	uint32_t patches = atomic_load_explicit(&null_driver.patches, memory_order_relaxed);

	(void)context;
	D3DDDI_PATCHLOCATIONLIST *out = args->pPatchLocationListOut;
	/* A counter instead of a division, whose cost would be measured as well. */
	for (uint32_t p = 0, index = 0; p < patches; p++) {
		out[p] = (D3DDDI_PATCHLOCATIONLIST){.AllocationIndex = index};
		index = index + 1 < args->AllocationListSize ? index + 1 : 0;
	}
	args->pPatchLocationListOut += patches;
	args->pDmaBuffer = (char *)args->pDmaBuffer + 8;
	return STATUS_SUCCESS;
}

static NTSTATUS null_patch(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_PATCH args)
{
	return args->Flags.Paging ? null_driver.patch(adapter, args) : STATUS_SUCCESS;
}

static NTSTATUS null_submit(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_SUBMITCOMMAND args)
{
	if (args->Flags.Paging)
		return null_driver.submit(adapter, args);
	return bench_null_complete(adapter, args->SubmissionFenceId, args->NodeOrdinal);
}

void bench_null_entries(DRIVER_INITIALIZATION_DATA *table)
{
	null_driver.start = table->DxgkDdiStartDevice;
	null_driver.submit = table->DxgkDdiSubmitCommand;
	null_driver.patch = table->DxgkDdiPatch;
	table->DxgkDdiStartDevice = null_start;
	table->DxgkDdiRender = null_render;
	table->DxgkDdiPatch = null_patch;
	table->DxgkDdiSubmitCommand = null_submit;
}

void bench_null_patches(uint32_t count)
{
	atomic_store(&null_driver.patches, count);
}

/* ---- a world ---- */

bool bench_null_world_start(struct bench_null_world *w, bench_bare_edit *edit, uint64_t bar_bytes,
			    const struct vidmm_adapter_options *options, uint32_t processes)
{
	static const struct vidmm_tdr_options no_timeouts = {0, 2000, 5000, 60000, 5, 2};
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_LINUX};
	struct vidmm_adapter_options adapter = *options;

	adapter.struct_size = sizeof(adapter);
	adapter.driver_entry = softgpu_driver_entry;
	adapter.bar_sizes = &bar_bytes;
	adapter.bar_count = 1;
	adapter.tdr = &no_timeouts;
	bench_bare_entries(edit);
	bool started = vidmm_host_create(&host, &w->host) >= 0 &&
		       vidmm_adapter_start(w->host, &adapter, &w->adapter) >= 0;
	bench_bare_entries(NULL);
	for (uint32_t i = 0; i < processes && started; i++)
		started = vidmm_process_open(w->host, "bench", &w->process[i]) >= 0 &&
			  vidmm_device_create(w->process[i], w->adapter, &w->device[i]) >= 0;
	if (started)
		w->cb = vidmm_device_callbacks(w->device[0]);
	return started;
}

void bench_null_world_finish(struct bench_null_world *w)
{
	for (uint32_t i = 0; i < BENCH_NULL_PROCESSES_MAX; i++) {
		if (w->device[i])
			vidmm_device_destroy(w->device[i]);
		if (w->process[i])
			vidmm_process_close(w->process[i]);
	}
	if (w->adapter)
		vidmm_adapter_stop(w->adapter);
	if (w->host)
		vidmm_host_destroy(w->host);
}
