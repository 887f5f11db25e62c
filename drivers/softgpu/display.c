/* SPDX-License-Identifier: MIT */
/* The displays: registers of the sources, set at device IRQL, and the thread that scans out. */
#include "softgpu_private.h"

#include "atomic.h"

#define NS_PER_S     1000000000u
#define WAIT_UNIT_NS 100u

/* ---- at device IRQL ---- */

struct change {
	struct softgpu_display *display;
	uint32_t source;
	uint64_t address;
	struct softgpu_picture picture;
	int at_once; /* without waiting for the next frame */
};

static void set_locked(struct softgpu_source *source, const struct change *change)
{
	if (change->at_once) {
		source->address = change->address;
		source->picture = change->picture;
		source->pending = 0;
		return;
	}
	source->next_address = change->address;
	source->next_picture = change->picture;
	source->pending = 1;
}

static BOOLEAN set_at_device_irql(PVOID context)
{
	const struct change *change = context;

	set_locked(&change->display->source[change->source], change);
	return TRUE;
}

static void synchronize(struct softgpu_adapter *adapter, PKSYNCHRONIZE_ROUTINE routine,
			PVOID context)
{
	BOOLEAN result;

	(void)adapter->dxgk.DxgkCbSynchronizeExecution(adapter->dxgk.DeviceHandle, routine, context,
						       0, &result);
}

void softgpu_display_flip(struct softgpu_display *display, uint32_t source, uint64_t address,
			  const struct softgpu_picture *picture)
{
	struct change change = {display, source, address, *picture, 0};

	if (source >= display->source_count)
		return;
	synchronize(display->adapter, set_at_device_irql, &change);
	softgpu_display_kick(display);
}

/*
 * A flip comes at device IRQL with the interrupt lock held. No thread can be woken there, so the
 * DPC wakes it. A mode change comes at PASSIVE.
 */
NTSTATUS APIENTRY softgpu_set_vidpn_source_address(
	IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_SETVIDPNSOURCEADDRESS pSetVidPnSourceAddress)
{
	struct softgpu_adapter *adapter = hAdapter;
	const struct softgpu_driver_allocation *allocation = pSetVidPnSourceAddress->hAllocation;
	struct change change = {
		.display = &adapter->display,
		.source = pSetVidPnSourceAddress->VidPnSourceId,
		.address = (uint64_t)pSetVidPnSourceAddress->PrimaryAddress.QuadPart,
		.at_once = pSetVidPnSourceAddress->Flags.ModeChange ||
			   pSetVidPnSourceAddress->Flags.FlipImmediate,
	};

	if (change.source >= adapter->display.source_count || !allocation)
		return STATUS_INVALID_PARAMETER;
	change.picture = allocation->picture;
	if (KeGetCurrentIrql() > DISPATCH_LEVEL) {
		set_at_device_irql(&change);
		softgpu_store(&adapter->display.is_flipped, 1);
		adapter->dxgk.DxgkCbQueueDpc(adapter->dxgk.DeviceHandle);
		return STATUS_SUCCESS;
	}
	synchronize(adapter, set_at_device_irql, &change);
	softgpu_display_kick(&adapter->display);
	return STATUS_SUCCESS;
}

struct visibility {
	struct softgpu_source *source;
	int visible;
};

static BOOLEAN show_at_device_irql(PVOID context)
{
	const struct visibility *v = context;

	v->source->visible = v->visible;
	if (!v->visible)
		v->source->pending = 0;
	return TRUE;
}

static struct softgpu_monitor *monitor_of(const struct softgpu_display *display, uint32_t source,
					  uint64_t *bytes)
{
	*bytes = display->source_count ? display->monitor_bytes / display->source_count &
						 ~(uint64_t)(SOFTGPU_PAGE - 1)
				       : 0;
	return *bytes > SOFTGPU_MONITOR_PIXELS
		       ? (struct softgpu_monitor *)(void *)(display->monitor + source * *bytes)
		       : NULL;
}

/*
 * Clears the monitor at once, because the picture's memory may soon belong to another allocation.
 */
NTSTATUS APIENTRY softgpu_set_vidpn_source_visibility(
	IN_CONST_HANDLE hAdapter,
	IN_CONST_PDXGKARG_SETVIDPNSOURCEVISIBILITY pSetVidPnSourceVisibility)
{
	struct softgpu_adapter *adapter = hAdapter;
	struct softgpu_display *display = &adapter->display;
	struct visibility v;
	uint64_t bytes;

	if (pSetVidPnSourceVisibility->VidPnSourceId >= display->source_count)
		return STATUS_INVALID_PARAMETER;
	v.source = &display->source[pSetVidPnSourceVisibility->VidPnSourceId];
	v.visible = pSetVidPnSourceVisibility->Visible;
	synchronize(adapter, show_at_device_irql, &v);
	if (!v.visible) {
		struct softgpu_monitor *monitor =
			monitor_of(display, pSetVidPnSourceVisibility->VidPnSourceId, &bytes);

		if (monitor)
			memset(monitor, 0, (size_t)bytes);
	}
	softgpu_display_kick(display);
	return STATUS_SUCCESS;
}

/* ---- the thread ---- */

/* Copies the picture to the monitor's memory, if it fits. */
static void scan_out(const struct softgpu_display *display, uint32_t index,
		     const struct softgpu_source *seen)
{
	uint64_t bytes, row = (uint64_t)seen->picture.width * 4, y;
	struct softgpu_monitor *monitor = monitor_of(display, index, &bytes);
	char *pixels = (char *)monitor + SOFTGPU_MONITOR_PIXELS;

	if (!monitor || !row || row * seen->picture.height > bytes - SOFTGPU_MONITOR_PIXELS)
		return;
	softgpu_bus_enter(softgpu_bus_of(display->adapter));
	for (y = 0; y < seen->picture.height; y++)
		if (!softgpu_read(&display->adapter->memory,
				  seen->address + y * seen->picture.pitch_bytes, pixels + y * row,
				  row))
			break; /* the address has no memory any more */
	softgpu_bus_leave(softgpu_bus_of(display->adapter));
	if (y < seen->picture.height)
		return;
	monitor->width = seen->picture.width;
	monitor->height = seen->picture.height;
	monitor->pitch_bytes = (uint32_t)row;
	monitor->frame = seen->frame;
}

struct frame {
	struct softgpu_display *display;
	uint32_t source;
	struct softgpu_source seen;
};

static BOOLEAN begin_frame_at_device_irql(PVOID context)
{
	struct frame *frame = context;
	struct softgpu_source *source = &frame->display->source[frame->source];

	if (source->pending && source->visible) {
		source->address = source->next_address;
		source->picture = source->next_picture;
		source->pending = 0;
	}
	source->frame += source->visible != 0;
	frame->seen = *source;
	return TRUE;
}

/* The DPC is queued before the simulated interrupt returns (SUB-08). */
static BOOLEAN raise_at_device_irql(PVOID context)
{
	const struct frame *frame = context;
	DXGKRNL_INTERFACE *dxgk = &frame->display->adapter->dxgk;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;

	memset(&data, 0, sizeof(data));
	data.InterruptType = DXGK_INTERRUPT_CRTC_VSYNC;
	data.CrtcVsync.VidPnTargetId = frame->source;
	data.CrtcVsync.PhysicalAddress.QuadPart = (LONGLONG)frame->seen.address;
	dxgk->DxgkCbNotifyInterrupt(dxgk->DeviceHandle, &data);
	dxgk->DxgkCbQueueDpc(dxgk->DeviceHandle);
	return TRUE;
}

static void begin_frames(struct softgpu_display *display)
{
	uint32_t i;

	for (i = 0; i < display->source_count; i++) {
		struct frame frame = {.display = display, .source = i};

		synchronize(display->adapter, begin_frame_at_device_irql, &frame);
		if (!frame.seen.visible)
			continue;
		scan_out(display, i, &frame.seen);
		synchronize(display->adapter, raise_at_device_irql, &frame);
	}
}

static uint64_t frame_ns(const struct softgpu_display *display)
{
	uint32_t hz = display->adapter->settings.refresh_hz;

	return NS_PER_S / (hz ? hz : 1);
}

static int must_stop(struct softgpu_display *display)
{
	KIRQL irql;
	int stop;

	KeAcquireSpinLock(&display->lock, &irql);
	stop = display->is_stopping;
	KeReleaseSpinLock(&display->lock, irql);
	return stop;
}

/* Returns 0 if the thread is to stop. */
static int wait_for_frame(struct softgpu_display *display)
{
	uint64_t length = frame_ns(display), now = softgpu_now_ns() - display->began_ns,
		 until = (now / length + 1) * length;

	while (now + WAIT_UNIT_NS <= until) {
		LARGE_INTEGER timeout;

		timeout.QuadPart = -(LONGLONG)((until - now) / WAIT_UNIT_NS);
		(void)KeWaitForSingleObject(&display->kick, Executive, KernelMode, FALSE, &timeout);
		if (must_stop(display))
			return 0;
		now = softgpu_now_ns() - display->began_ns;
	}
	return 1;
}

static int take_dirty(struct softgpu_display *display)
{
	KIRQL irql;
	int dirty;

	KeAcquireSpinLock(&display->lock, &irql);
	dirty = display->is_stopping ? -1 : display->is_dirty;
	display->is_dirty = 0;
	KeReleaseSpinLock(&display->lock, irql);
	return dirty;
}

static VOID display_thread(PVOID context)
{
	struct softgpu_display *display = context;
	int dirty;

	while ((dirty = take_dirty(display)) >= 0) {
		if (!dirty)
			(void)KeWaitForSingleObject(&display->kick, Executive, KernelMode, FALSE,
						    NULL);
		else if (wait_for_frame(display))
			begin_frames(display);
	}
	PsTerminateSystemThread(STATUS_SUCCESS);
}

void softgpu_display_kick(struct softgpu_display *display)
{
	KIRQL irql;

	if (!display->thread)
		return;
	KeAcquireSpinLock(&display->lock, &irql);
	display->is_dirty = 1;
	KeReleaseSpinLock(&display->lock, irql);
	KeSetEvent(&display->kick, IO_NO_INCREMENT, FALSE);
}

void softgpu_display_dpc(struct softgpu_display *display)
{
	if (!softgpu_load(&display->is_flipped))
		return;
	/* before the kick: a flip after this store queues a DPC itself */
	softgpu_store(&display->is_flipped, 0);
	softgpu_display_kick(display);
}

NTSTATUS softgpu_display_start(struct softgpu_adapter *adapter, PHYSICAL_ADDRESS monitor,
			       uint64_t monitor_bytes)
{
	struct softgpu_display *display = &adapter->display;
	HANDLE handle;
	NTSTATUS status;

	memset(display, 0, sizeof(*display));
	display->adapter = adapter;
	if (!adapter->settings.source_count)
		return STATUS_SUCCESS;
	display->source_count = adapter->settings.source_count;
	display->began_ns = softgpu_now_ns();
	KeInitializeSpinLock(&display->lock);
	KeInitializeEvent(&display->kick, SynchronizationEvent, FALSE);
	if (monitor_bytes) {
		display->monitor = MmMapIoSpace(monitor, (SIZE_T)monitor_bytes, MmNonCached);
		if (!display->monitor)
			return STATUS_NO_MEMORY;
		display->monitor_bytes = monitor_bytes;
	}
	status = PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, display_thread,
				      display);
	if (NT_SUCCESS(status)) {
		status = ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, NULL, KernelMode,
						   &display->thread, NULL);
		ZwClose(handle);
	}
	return status;
}

void softgpu_display_stop(struct softgpu_display *display)
{
	KIRQL irql;

	if (display->thread) {
		KeAcquireSpinLock(&display->lock, &irql);
		display->is_stopping = 1;
		KeReleaseSpinLock(&display->lock, irql);
		KeSetEvent(&display->kick, IO_NO_INCREMENT, FALSE);
		(void)KeWaitForSingleObject(display->thread, Executive, KernelMode, FALSE, NULL);
		ObDereferenceObject(display->thread);
	}
	if (display->monitor)
		MmUnmapIoSpace(display->monitor, (SIZE_T)display->monitor_bytes);
	display->thread = NULL;
	display->monitor = NULL;
}
