/* SPDX-License-Identifier: MIT */
/*
 * Flips, and what the sources of an adapter show. A source is dark or shows one primary, and a flip
 * replaces that by another primary. Modes and topologies are not implemented; target n shows source
 * n (PRS-02).
 *
 * Stages of a flip:
 *
 *   due         its packet has completed in the order of its node (flip.c)
 *   ready       every packet that renders to the primary is complete (PRS-04)
 *   programmed  the worker has called DxgkDdiSetVidPnSourceAddress: with threading level two at
 *               PASSIVE_LEVEL if the source is dark (PRS-03), else at DIRQL
 *   shown       a CRTC_VSYNC has reported the address (PRS-05)
 *
 * From the queueing of its flip until the source shows another primary, the allocation stays in
 * place (PRS-06).
 */
#include "sched/data/flip.h"
#include "sched/preparation/preparation.h"

/*
 * Packets of several contexts complete in any order, so the writers of the primary are checked one
 * by one. State lock held.
 */
static bool is_ready(const struct vmm_adapter *adapter, const struct vmm_flip *flip)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&adapter->state_lock);
	if (!flip->due || flip->programmed)
		return false;
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		if (vmm_instance_unwritten_locked(flip->instance, t, flip->after[t]))
			return false;
	return true;
}

/*
 * Returns the first flip of a source if it is to be shown now; NULL: it is not. Drops the flips of
 * lost devices.
 */
static struct vmm_flip *next_ready(struct vmm_adapter *adapter, struct vmm_source *source)
{
	struct vmm_flip *first;

	vmm_state_lock(adapter);
	while ((first = vmm_flip_first(source)) != NULL && first->due && !first->programmed &&
	       vmm_device_lost(first->device)) {
		vmm_flip_drop_locked(adapter->sched, first);
	}
	if (first && !is_ready(adapter, first))
		first = NULL;
	vmm_state_unlock(adapter);
	return first;
}

/* Repeats the check with the paging lock held, under which flips are dropped. */
static bool is_still_ready(struct vmm_adapter *adapter, const struct vmm_flip *flip)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	vmm_state_lock(adapter);
	bool still = vmm_flip_first(&adapter->sched->display->source[flip->source_id]) == flip &&
		     is_ready(adapter, flip);
	vmm_state_unlock(adapter);
	return still;
}

static DXGKARG_SETVIDPNSOURCEADDRESS address_of(const struct vmm_flip *flip)
{
	return (DXGKARG_SETVIDPNSOURCEADDRESS){
		.VidPnSourceId = flip->source_id,
		.PrimarySegment = flip->segment,
		.PrimaryAddress.QuadPart = (LONGLONG)flip->address,
		.hAllocation = flip->allocation->kmd_allocation,
		.ContextCount = flip->kmd_context ? 1 : 0,
		.Context = {flip->kmd_context},
	};
}

/*
 * Threading level two: waits until the GPU is idle and no thread is inside the miniport. Returns
 * true with the submit lock and the paging lock held; false, with neither, without power, on
 * removal or during a reset.
 */
VMM_NO_THREAD_SAFETY_ANALYSIS static bool enter_level_two(struct vmm_adapter *adapter)
	VMM_TRY_ACQUIRES(true, vmm_submit_lock_class, vmm_paging_lock_class)
{
	struct vmm_sched *sched = adapter->sched;

	vmm_submit_lock(adapter);
	for (;;) {
		if (atomic_load(&sched->halted) || atomic_load(&adapter->removed) ||
		    atomic_load(&adapter->recovering))
			break;
		vmm_prepare_pump_waiting_locked(adapter);
		vmm_sched_feed_until_idle(adapter, VIDMM_WAIT_PRESENT);
		vmm_paging_lock(adapter);
		vmm_state_lock(adapter);
		bool idle = !sched->hardware_total && !atomic_load(&sched->ready_count);
		vmm_state_unlock(adapter);
		if (idle && vmm_port_exclude(adapter->port))
			return true;
		vmm_paging_commit(adapter);
		vmm_await_recovery(adapter);
	}
	vmm_submit_unlock(adapter);
	return false;
}

static void leave_level_two(struct vmm_adapter *adapter)
	VMM_RELEASES(vmm_paging_lock_class, vmm_submit_lock_class)
{
	vmm_port_admit(adapter->port);
	vmm_paging_commit(adapter);
	vmm_submit_unlock(adapter);
}

/* PRS-03: shows the first primary of a dark source. Returns false if that is not possible now. */
static bool show_first(struct vmm_adapter *adapter, struct vmm_flip *flip)
{
	if (!enter_level_two(adapter))
		return false;
	if (!is_still_ready(adapter, flip)) {
		leave_level_two(adapter);
		return true;
	}
	vmm_memory_location(flip->instance, &flip->segment, &flip->address);
	DXGKARG_SETVIDPNSOURCEADDRESS args = address_of(flip);
	args.Flags.ModeChange = 1;
	NTSTATUS status = vmm_port_set_source_address(adapter->port, &args);
	if (NT_SUCCESS(status))
		status = vmm_port_set_source_visibility(adapter->port, flip->source_id, true);
	vmm_state_lock(adapter);
	if (NT_SUCCESS(status)) {
		vmm_flip_finish_locked(adapter->sched, flip, VIDMM_DISPLAY_FIRST);
	} else {
		vmm_flip_drop_locked(adapter->sched, flip);
	}
	vmm_state_unlock(adapter);
	leave_level_two(adapter);
	return true;
}

/*
 * PRS-04: programs the next primary. Returns false if the adapter is being reset. The call runs at
 * DIRQL, so the state lock cannot be held. `programmed` is set first, since the vsync may come
 * during the call.
 */
static bool show_next(struct vmm_adapter *adapter, struct vmm_flip *flip)
{
	bool immediate = flip->interval == D3DDDI_FLIPINTERVAL_IMMEDIATE;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_paging_lock(adapter);
	if (!is_still_ready(adapter, flip)) {
		vmm_paging_commit(adapter);
		return true;
	}
	vmm_memory_location(flip->instance, &flip->segment, &flip->address);
	DXGKARG_SETVIDPNSOURCEADDRESS args = address_of(flip);
	args.Flags.FlipImmediate = immediate;
	args.Flags.FlipOnNextVSync = !immediate;
	vmm_state_lock(adapter);
	bool mmio = flip->mmio;
	flip->set_ns = vmm_os_now_ns(adapter->os);
	flip->programmed = true;
	vmm_state_unlock(adapter);
	if (mmio)
		status = vmm_port_flip(adapter->port, &args);
	vmm_state_lock(adapter);
	const struct vmm_source *source = &adapter->sched->display->source[flip->source_id];
	bool reported = atomic_load(&source->vsync_address) == flip->address;
	if (vmm_flip_first(source) != flip)
		; /* its vsync came during the call */
	else if (status == STATUS_DEVICE_REMOVED)
		flip->programmed = false;
	else if (!NT_SUCCESS(status))
		vmm_flip_drop_locked(adapter->sched,
				     flip); /* the source still shows the primary before */
	else if (mmio && immediate)
		vmm_flip_finish_locked(adapter->sched, flip, VIDMM_DISPLAY_IMMEDIATE);
	else if (!mmio && reported) /* the vsync came before the packet's completion */
		vmm_flip_finish_locked(adapter->sched, flip, VIDMM_DISPLAY_VSYNC);
	vmm_state_unlock(adapter);
	vmm_paging_commit(adapter);
	return status != STATUS_DEVICE_REMOVED;
}

void vmm_display_work(struct vmm_adapter *adapter)
{
	struct vmm_display *display = adapter->sched->display;
	struct vmm_flip *flip;

	if (vmm_likely(!display))
		return;
	for (uint32_t i = 0; i < display->source_count; i++)
		while (!atomic_load(&adapter->sched->halted) && !atomic_load(&adapter->removed) &&
		       !atomic_load(&adapter->recovering) &&
		       (flip = next_ready(adapter, &display->source[i])) != NULL)
			if (!(display->source[i].shown ? show_next(adapter, flip)
						       : show_first(adapter, flip)))
				break;
}

/* ---- the end of devices and contexts ---- */

/*
 * Drops the device's flips that are not programmed. Returns true if the source shows, or is
 * programmed to show, a primary of the device.
 */
static bool drop_flips_of(struct vmm_device *device, struct vmm_source *source)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_sched *sched = device->adapter->sched;
	struct vmm_list *link, *next;
	bool shown = source->shown && source->shown->device == device;

	vmm_assert_held(&device->adapter->state_lock);
	vmm_list_for_each_safe (link, next, &source->flips) {
		struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

		if (flip->device != device)
			continue;
		shown |= flip->programmed;
		if (!flip->programmed)
			vmm_flip_drop_locked(sched, flip);
	}
	return shown;
}

/* Takes the source's flips from the device's primaries off, and makes it dark. */
static void forget_flips_locked(struct vmm_device *device, uint32_t source_id)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_source *source = &adapter->sched->display->source[source_id];
	struct vmm_list *link, *next;

	vmm_assert_held(&adapter->paging_lock);
	vmm_state_lock(adapter);
	vmm_list_for_each_safe (link, next, &source->flips) {
		struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

		if (flip->device == device)
			vmm_flip_drop_locked(adapter->sched, flip);
	}
	vmm_source_darken_locked(adapter->sched, source);
	atomic_store(&source->vsync, false);
	vmm_state_unlock(adapter);
}

/* Makes a source dark before the memory of its primary is freed. (PRS-06) */
static void take_off_screen(struct vmm_device *device, uint32_t source_id)
{
	struct vmm_adapter *adapter = device->adapter;

	if (enter_level_two(adapter)) {
		(void)!NT_SUCCESS(vmm_port_set_source_visibility(adapter->port, source_id, false));
		forget_flips_locked(device, source_id);
		leave_level_two(adapter);
		return;
	}
	/* No power, or the adapter is removed or being reset: the miniport is not called. */
	vmm_paging_lock(adapter);
	forget_flips_locked(device, source_id);
	vmm_paging_unlock_idle(adapter);
}

void vmm_display_close_device(struct vmm_device *device)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_display *display = adapter->sched->display;

	for (uint32_t i = 0; display && i < display->source_count; i++) {
		vmm_paging_lock(adapter);
		vmm_state_lock(adapter);
		bool shown = drop_flips_of(device, &display->source[i]);
		vmm_state_unlock(adapter);
		vmm_paging_unlock_idle(adapter);
		if (shown)
			take_off_screen(device, i);
	}
}

void vmm_sched_close_displays(struct vmm_adapter *adapter)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &adapter->devices)
		vmm_display_close_device(vmm_container_of(link, struct vmm_device, adapter_link));
}

void vmm_display_close_context(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_display *display = adapter->sched->display;

	if (vmm_likely(!display))
		return;
	vmm_paging_lock(adapter);
	vmm_state_lock(adapter);
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(display->flip); i++)
		if (display->flip[i].kmd_context == context->kmd_context)
			display->flip[i].kmd_context = NULL;
	vmm_state_unlock(adapter);
	vmm_paging_unlock_idle(adapter);
}
