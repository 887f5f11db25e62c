/* SPDX-License-Identifier: MIT */
#include "bench_null.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
