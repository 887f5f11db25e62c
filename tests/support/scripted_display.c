/* SPDX-License-Identifier: MIT */
/*
 * The displays of the scripted miniport: presents that access source and destination, sources that
 * record what they show.
 */
#include "scripted_miniport.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Writes one command and its patch location. The DMA buffer has space, or the test made it too
 * small on purpose.
 */
static void put(DXGKARG_PRESENT *args, char *start, uint32_t op, uint32_t index)
{
	struct scripted_command *command = args->pDmaBuffer;

	if (!args->pAllocationList[index].hDeviceSpecificAllocation)
		return;
	memset(command, 0, sizeof(*command));
	command->op = op;
	command->size_bytes = sizeof(*command);
	command->allocation = index;
	command->value = args->Color;
	if (args->DmaBufferGpuVirtualAddress) /* nothing is patched */
		command->destination.address = args->pAllocationList[index].VirtualAddress;
	else
		*args->pPatchLocationListOut++ = (D3DDDI_PATCHLOCATIONLIST){
			.AllocationIndex = index,
			.SlotId = index,
			.PatchOffset =
				(UINT)((char *)args->pDmaBuffer - start +
				       (ptrdiff_t)offsetof(struct scripted_command, destination)),
		};
	args->pDmaBuffer = command + 1;
}

static NTSTATUS translate(const struct scripted_miniport *m, DXGKARG_PRESENT *args)
{
	char *start = args->pDmaBuffer;

	if (!start) /* a flip by the display itself */
		return STATUS_SUCCESS;
	put(args, start, SCRIPTED_USE, DXGK_PRESENT_SOURCE_INDEX);
	put(args, start, SCRIPTED_WRITE, DXGK_PRESENT_DESTINATION_INDEX);
	return ++args->MultipassOffset < m->settings.present_passes
		       ? STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER
		       : STATUS_SUCCESS;
}

NTSTATUS scripted_present_by(struct scripted_miniport *m, enum vidmm_ddi ddi, HANDLE object,
			     DXGKARG_PRESENT *args)
{
	struct scripted_call *call = scripted_begin(m, ddi, object, args, sizeof(*args));

	call->allocation_count = DXGK_PRESENT_MAX_INDEX;
	call->allocations = malloc(DXGK_PRESENT_MAX_INDEX * sizeof(*call->allocations));
	if (!call->allocations)
		abort();
	memcpy(call->allocations, args->pAllocationList,
	       DXGK_PRESENT_MAX_INDEX * sizeof(*call->allocations));
	if (!call->forced)
		call->status = translate(m, args);
	return scripted_end(m, call, args);
}

NTSTATUS APIENTRY scripted_present(IN_CONST_HANDLE context, INOUT_PDXGKARG_PRESENT args)
{
	uint32_t node;

	return scripted_present_by(scripted_of_context(context, &node), VIDMM_DDI_PRESENT, context,
				   args);
}

NTSTATUS APIENTRY scripted_describe_allocation(IN_CONST_HANDLE adapter,
					       INOUT_PDXGKARG_DESCRIBEALLOCATION args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_DESCRIBE_ALLOCATION, NULL, NULL, 0);

	args->Width = SCRIPTED_WIDTH;
	args->Height = SCRIPTED_HEIGHT;
	args->Format = D3DDDIFMT_X8R8G8B8;
	return scripted_end(m, call, args);
}

NTSTATUS APIENTRY scripted_set_source_address(IN_CONST_HANDLE adapter,
					      IN_CONST_PDXGKARG_SETVIDPNSOURCEADDRESS args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS, NULL, args, sizeof(*args)),
		NULL);
}

NTSTATUS APIENTRY scripted_set_source_visibility(IN_CONST_HANDLE adapter,
						 IN_CONST_PDXGKARG_SETVIDPNSOURCEVISIBILITY args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(
		m,
		scripted_begin(m, VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY, NULL, args, sizeof(*args)),
		NULL);
}

/* ---- interrupts ---- */

struct vsync {
	struct scripted_miniport *m;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;
};

static BOOLEAN at_device_irql(PVOID context)
{
	struct vsync *v = context;

	v->m->services.DxgkCbNotifyInterrupt(v->m->services.DeviceHandle, &v->data);
	return v->m->services.DxgkCbQueueDpc(v->m->services.DeviceHandle);
}

static void raise_it(struct vsync *v)
{
	BOOLEAN result;

	v->m->services.DxgkCbSynchronizeExecution(v->m->services.DeviceHandle, at_device_irql, v, 0,
						  &result);
	scripted_settle(v->m);
}

void scripted_vsync(struct scripted_miniport *m, uint32_t target, uint64_t address)
{
	struct vsync v = {.m = m, .data.InterruptType = DXGK_INTERRUPT_CRTC_VSYNC};

	v.data.CrtcVsync.VidPnTargetId = target;
	v.data.CrtcVsync.PhysicalAddress.QuadPart = (LONGLONG)address;
	raise_it(&v);
}

void scripted_beat(struct scripted_miniport *m, uint32_t target, uint32_t id)
{
	struct vsync v = {.m = m,
			  .data.InterruptType = DXGK_INTERRUPT_PERIODIC_MONITORED_FENCE_SIGNALED};

	v.data.PeriodicMonitoredFenceSignaled.VidPnTargetId = target;
	v.data.PeriodicMonitoredFenceSignaled.NotificationID = id;
	raise_it(&v);
}

/* ---- notifications before vertical syncs ---- */

NTSTATUS APIENTRY scripted_create_periodic(INOUT_PDXGKARG_CREATEPERIODICFRAMENOTIFICATION args)
{
	struct scripted_miniport *m = args->hAdapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION,
						    NULL, args, sizeof(*args));

	if (!call->forced && args->Time > m->settings.frame_100ns)
		call->status = STATUS_INVALID_PARAMETER;
	else if (!call->forced)
		args->hNotification = call->handle = (char *)m + 1 + m->live_periodic++;
	return scripted_end(m, call, args);
}

NTSTATUS APIENTRY scripted_destroy_periodic(IN_CONST_PDXGKARG_DESTROYPERIODICFRAMENOTIFICATION args)
{
	struct scripted_miniport *m = args->hAdapter;

	m->live_periodic--;
	return scripted_end(m,
			    scripted_begin(m, VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION,
					   args->hNotification, args, sizeof(*args)),
			    NULL);
}
