/* SPDX-License-Identifier: MIT */
/*
 * Flips, and what the sources of an adapter show. A source is dark or shows one primary, and a flip
 * replaces that by another primary. Modes and topologies are not implemented; target n shows source
 * n (PRS-02).
 *
 * Stages of a flip:
 *
 *   due         its packet has completed in the order of its node (present.c)
 *   ready       every packet that renders to the primary is complete (PRS-04)
 *   programmed  the worker has called DxgkDdiSetVidPnSourceAddress: with threading level two at
 *               PASSIVE_LEVEL if the source is dark (PRS-03), else at DIRQL
 *   shown       a CRTC_VSYNC has reported the address (PRS-05)
 *
 * From the queueing of its flip until the source shows another primary, the allocation stays in
 * place (PRS-06).
 */
#include "sched/submission.h"

#define FLIPS_PER_SOURCE 8u
#define NS_PER_MS        1000000u

struct source {
	struct vmm_list flips;  /* queued flips, in order */
	struct vmm_flip *shown; /* NULL: dark */
	uint64_t count;         /* flips that have been shown */
	_Atomic uint64_t vsync_address;
	_Atomic bool vsync; /* reported by an interrupt, not applied yet */
};

struct vmm_display {
	uint32_t source_count;
	_Atomic uint32_t due; /* flips that are due and not shown */
	struct vmm_list free;
	struct source source[VMM_SOURCES_MAX];
	struct vmm_flip flip[VMM_SOURCES_MAX * FLIPS_PER_SOURCE];
};

_Static_assert(VMM_SOURCES_MAX == VMM_PORT_SOURCES_MAX, "one array element for each source");

vmm_status vmm_display_create(struct vmm_adapter *adapter)
{
	uint32_t sources = adapter->sched->caps->source_count;

	if (!sources)
		return VMM_OK;
	struct vmm_display *display = vmm_calloc(1, sizeof(*display));
	if (!display)
		return VMM_NO_MEMORY;
	display->source_count = sources;
	vmm_list_init(&display->free);
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(display->flip); i++)
		vmm_list_push_back(&display->free, &display->flip[i].link);
	for (uint32_t i = 0; i < sources; i++)
		vmm_list_init(&display->source[i].flips);
	adapter->sched->display = display;
	return VMM_OK;
}

void vmm_display_destroy(struct vmm_sched *sched)
{
	vmm_free(sched->display);
	sched->display = NULL;
}

/* ---- queueing and completion of a flip; state lock held ---- */

struct vmm_flip *vmm_flip_reserve_locked(struct vmm_device *device, uint32_t source_id)
{
	struct vmm_display *display = device->adapter->sched->display;

	vmm_assert_held(&device->adapter->state_lock);
	if (vmm_list_empty(&display->free) || device->flips[source_id] >= VMM_FLIP_LIMIT)
		return NULL;
	struct vmm_flip *flip = vmm_container_of(display->free.next, struct vmm_flip, link);

	vmm_list_remove(&flip->link);
	*flip = (struct vmm_flip){.device = device, .source_id = source_id};
	vmm_list_init(&flip->link);
	device->flips[source_id]++;
	return flip;
}

static void release_locked(struct vmm_sched *sched, struct vmm_flip *flip)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (flip->allocation)
		atomic_fetch_sub(&flip->allocation->displayed, 1);
	flip->allocation = NULL;
	vmm_list_push_back(&sched->display->free, &flip->link);
}

void vmm_flip_cancel(struct vmm_adapter *adapter, struct vmm_flip *flip)
{
	vmm_state_lock(adapter);
	flip->device->flips[flip->source_id]--;
	release_locked(adapter->sched, flip);
	vmm_state_unlock(adapter);
}

void vmm_flip_describe(struct vmm_dma *dma, struct vmm_translated *t)
{
	vmm_assert_held(&dma->context->device->adapter->submit_lock);
	dma->patches[0] = (D3DDDI_PATCHLOCATIONLIST){.AllocationIndex = DXGK_PRESENT_SOURCE_INDEX};
	*t = (struct vmm_translated){.commands = dma->backing.address,
				     .private_data = dma->private_data,
				     .patches = dma->patches + 1};
}

void vmm_flip_queued(const struct vmm_submission *s, struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = s->adapter;
	struct vmm_flip *flip = dma->flip;
	struct vmm_instance *instance = dma->instances[DXGK_PRESENT_SOURCE_INDEX];

	vmm_assert_held(&s->adapter->submit_lock);
	vmm_state_lock(adapter);
	flip->allocation = instance->allocation;
	flip->instance = instance;
	flip->handle = s->present->request->source;
	flip->process = s->context->device->process->id;
	flip->kmd_context = s->context->kmd_context;
	flip->interval = s->present->request->interval;
	flip->no_wait = s->present->flags.FlipWithNoWait;
	flip->mmio = s->present->mmio;
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		flip->after[t] = atomic_load_explicit(&instance->written[t], memory_order_relaxed);
	atomic_fetch_add(&flip->allocation->displayed, 1); /* PRS-06 */
	vmm_list_push_back(&adapter->sched->display->source[flip->source_id].flips, &flip->link);
	vmm_state_unlock(adapter);
}

void vmm_flip_due_locked(struct vmm_sched *sched, struct vmm_flip *flip)
{
	uint32_t paging = sched->adapter->paging_timeline;

	vmm_assert_held(&sched->adapter->state_lock);
	flip->due = true;
	atomic_fetch_add(&sched->display->due, 1);
	/* All paging that its preparation needed has been queued by now. */
	flip->after[paging] =
		atomic_load_explicit(&flip->instance->queued[paging], memory_order_relaxed);
	vmm_worker_wake(sched);
}

static void display_event(struct vmm_adapter *adapter, const struct vmm_flip *flip, uint32_t reason,
			  uint64_t count)
{
	vmm_event(adapter->observe, VIDMM_EVENT_DISPLAY, flip->process, flip->handle, reason,
		  flip->source_id, flip->segment, flip->address, count);
}

/* Removes a flip from the pending flips of its source. */
static void unqueue_locked(struct vmm_flip *flip) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&flip->device->adapter->state_lock);
	if (flip->due)
		atomic_fetch_sub(&flip->device->adapter->sched->display->due, 1);
	vmm_list_remove(&flip->link);
	flip->device->flips[flip->source_id]--;
	flip->device->presents--;
}

static void drop_locked(struct vmm_sched *sched, struct vmm_flip *flip)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	unqueue_locked(flip);
	release_locked(sched, flip);
	vmm_progress_signal(sched->adapter);
}

static void finish_locked(struct vmm_sched *sched, struct vmm_flip *flip, uint32_t reason)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct source *source = &sched->display->source[flip->source_id];
	struct vmm_flip *before = source->shown;

	vmm_assert_held(&sched->adapter->state_lock);
	unqueue_locked(flip);
	source->shown = flip;
	display_event(sched->adapter, flip, reason, source->count++);
	if (before)
		release_locked(sched, before); /* its allocation can now be destroyed */
	vmm_progress_signal(sched->adapter);
	vmm_worker_wake(sched);
}

/* ---- vsync ---- */

void vmm_display_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct source *source = &sched->display->source[data->CrtcVsync.VidPnTargetId];

	atomic_store(&source->vsync_address, (uint64_t)data->CrtcVsync.PhysicalAddress.QuadPart);
	atomic_store(&source->vsync, true);
}

static struct vmm_flip *first_of(const struct source *source)
{
	return vmm_list_empty(&source->flips)
		       ? NULL
		       : vmm_container_of(source->flips.next, struct vmm_flip, link);
}

static bool apply_vsync_locked(struct vmm_sched *sched, struct source *source)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint64_t address = atomic_load(&source->vsync_address);
	struct vmm_flip *first = first_of(source);

	vmm_assert_held(&sched->adapter->state_lock);
	if (first && first->programmed && first->address == address) {
		finish_locked(sched, first, VIDMM_DISPLAY_VSYNC);
		return true;
	}
	/* A flip in a DMA buffer may be shown before its packet is known to be complete. */
	if ((source->shown && source->shown->address == address) ||
	    (first && !first->mmio && !first->programmed))
		return false;
	vmm_finding(
		sched->adapter->observe, "PRS-05", 0, 0,
		"CRTC_VSYNC of target %u reports address 0x%llx: source %u shows 0x%llx, and %s",
		(uint32_t)(source - sched->display->source), (unsigned long long)address,
		(uint32_t)(source - sched->display->source),
		(unsigned long long)(source->shown ? source->shown->address : 0),
		first && first->programmed ? "the pending flip has another address"
					   : "no flip is pending");
	return false;
}

bool vmm_display_reported_locked(struct vmm_sched *sched)
{
	struct vmm_display *display = sched->display;
	bool any = false;

	vmm_assert_held(&sched->adapter->state_lock);
	for (uint32_t i = 0; i < display->source_count; i++)
		if (atomic_exchange(&display->source[i].vsync, false))
			any |= apply_vsync_locked(sched, &display->source[i]);
	return any;
}

uint64_t vmm_flip_overdue(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	uint64_t now = vmm_os_now_ns(adapter->os), next = VMM_OS_FOREVER;

	if (!sched->display || !sched->watchdog)
		return next;
	vmm_state_lock(adapter);
	for (uint32_t i = 0; i < sched->display->source_count; i++) {
		struct vmm_flip *first = first_of(&sched->display->source[i]);

		if (!first || !first->programmed)
			continue;
		uint64_t until = first->set_ns + (uint64_t)sched->tdr.delay_ms * NS_PER_MS;
		if (until > now) {
			next = vmm_min_u64(next, until);
			continue;
		}
		vmm_finding(adapter->observe, "PRS-05", first->process, first->handle,
			    "no CRTC_VSYNC has reported address 0x%llx on target %u for %u ms: the "
			    "flip counts as shown",
			    (unsigned long long)first->address, i, sched->tdr.delay_ms);
		finish_locked(sched, first, VIDMM_DISPLAY_VSYNC);
	}
	vmm_state_unlock(adapter);
	return next;
}

/* ---- the worker shows what is due ---- */

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

bool vmm_display_waits(const struct vmm_sched *sched)
{
	return sched->display && atomic_load(&sched->display->due);
}

/*
 * Returns the first flip of a source if it is to be shown now; NULL: it is not. Drops the flips of
 * lost devices.
 */
static struct vmm_flip *next_ready(struct vmm_adapter *adapter, struct source *source)
{
	struct vmm_flip *first;

	vmm_state_lock(adapter);
	while ((first = first_of(source)) != NULL && first->due && !first->programmed &&
	       vmm_device_lost(first->device)) {
		drop_locked(adapter->sched, first);
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
	bool still = first_of(&adapter->sched->display->source[flip->source_id]) == flip &&
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
		finish_locked(adapter->sched, flip, VIDMM_DISPLAY_FIRST);
	} else {
		drop_locked(adapter->sched, flip);
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
	const struct source *source = &adapter->sched->display->source[flip->source_id];
	bool reported = atomic_load(&source->vsync_address) == flip->address;
	if (first_of(source) != flip)
		; /* its vsync came during the call */
	else if (status == STATUS_DEVICE_REMOVED)
		flip->programmed = false;
	else if (!NT_SUCCESS(status))
		drop_locked(adapter->sched, flip); /* the source still shows the primary before */
	else if (mmio && immediate)
		finish_locked(adapter->sched, flip, VIDMM_DISPLAY_IMMEDIATE);
	else if (!mmio && reported) /* the vsync came before the packet's completion */
		finish_locked(adapter->sched, flip, VIDMM_DISPLAY_VSYNC);
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

/* ---- reset, and the end of devices and contexts ---- */

static void darken_locked(struct vmm_sched *sched, struct source *source)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (!source->shown)
		return;
	display_event(sched->adapter, source->shown, VIDMM_DISPLAY_DARK, source->count);
	release_locked(sched, source->shown);
	source->shown = NULL;
}

void vmm_display_forget_locked(struct vmm_sched *sched)
{
	struct vmm_display *display = sched->display;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (!display)
		return;
	vmm_state_lock(sched->adapter);
	for (uint32_t i = 0; i < display->source_count; i++) {
		struct vmm_list *link, *next;

		darken_locked(sched, &display->source[i]);
		atomic_store(&display->source[i].vsync, false);
		/*
		 * A flip that is not due stays with its packet until that completes or is
		 * cancelled.
		 */
		vmm_list_for_each_safe (link, next, &display->source[i].flips) {
			struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

			if (flip->due)
				drop_locked(sched, flip);
		}
	}
	vmm_state_unlock(sched->adapter);
	vmm_progress_signal(sched->adapter);
}

/*
 * Drops the device's flips that are not programmed. Returns true if the source shows, or is
 * programmed to show, a primary of the device.
 */
static bool drop_flips_of(struct vmm_device *device, struct source *source)
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
			drop_locked(sched, flip);
	}
	return shown;
}

/* Takes the source's flips from the device's primaries off, and makes it dark. */
static void forget_flips_locked(struct vmm_device *device, uint32_t source_id)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = device->adapter;
	struct source *source = &adapter->sched->display->source[source_id];
	struct vmm_list *link, *next;

	vmm_assert_held(&adapter->paging_lock);
	vmm_state_lock(adapter);
	vmm_list_for_each_safe (link, next, &source->flips) {
		struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

		if (flip->device == device)
			drop_locked(adapter->sched, flip);
	}
	darken_locked(adapter->sched, source);
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
