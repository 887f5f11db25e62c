/* SPDX-License-Identifier: MIT */
/*
 * What the sources of an adapter show. Of displays only this is built: a source is dark, or shows one primary, and flips
 * replace that by another. Modes and topologies are not; target n shows source n (PRS-02).
 *
 * A flip's packet has had its turn on its node (present.c). Then, on the worker: what renders to the primary must be
 * complete (PRS-04); on a dark source the miniport is told at level two and PASSIVE_LEVEL (PRS-03), afterwards at DIRQL;
 * the CRTC_VSYNC that reports the address completes the flip (PRS-05). From queueing until another primary is shown the
 * allocation stays where it is (PRS-06).
 */
#include "sched/submission.h"

#define FLIPS_PER_SOURCE 8u
#define NS_PER_MS        1000000u

struct source {
	struct vmm_list flips;  /* reserved ones, too; in order */
	struct vmm_flip *shown; /* NULL: dark */
	uint64_t count;         /* of what has been shown */
	_Atomic uint64_t vsync_address;
	_Atomic bool vsync; /* reported, and not looked at yet */
};

struct vmm_display {
	uint32_t source_count;
	_Atomic uint32_t due; /* flips that only the worker, or what renders to them, holds up */
	struct vmm_list free;
	struct source source[VMM_SOURCES_MAX];
	struct vmm_flip flip[VMM_SOURCES_MAX * FLIPS_PER_SOURCE];
};

_Static_assert(VMM_SOURCES_MAX == VMM_PORT_SOURCES_MAX, "one array element for each");

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

/* ---- a flip comes and goes; state lock held ---- */

struct vmm_flip *vmm_flip_reserve_locked(struct vmm_device *device, uint32_t source_id)
{
	struct vmm_display *display = device->adapter->sched->display;

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
{
	if (flip->allocation)
		atomic_fetch_sub(&flip->allocation->shown, 1);
	flip->allocation = NULL;
	vmm_list_push_back(&sched->display->free, &flip->link);
}

void vmm_flip_cancel(struct vmm_adapter *adapter, struct vmm_flip *flip)
{
	vmm_os_mutex_lock(&adapter->state_lock);
	flip->device->flips[flip->source_id]--;
	release_locked(adapter->sched, flip);
	vmm_os_mutex_unlock(&adapter->state_lock);
}

void vmm_flip_describe(struct vmm_dma *dma, struct vmm_translated *t)
{
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

	vmm_os_mutex_lock(&adapter->state_lock);
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
	atomic_fetch_add(&flip->allocation->shown, 1); /* PRS-06 */
	vmm_list_push_back(&adapter->sched->display->source[flip->source_id].flips, &flip->link);
	vmm_os_mutex_unlock(&adapter->state_lock);
}

void vmm_flip_due_locked(struct vmm_sched *sched, struct vmm_flip *flip)
{
	uint32_t paging = sched->adapter->paging_timeline;

	flip->due = true;
	atomic_fetch_add(&sched->display->due, 1);
	/* What was paged for it is queued by now, or already there. */
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

/* It leaves the queue of what is pending. */
static void unqueue_locked(struct vmm_flip *flip)
{
	if (flip->due)
		atomic_fetch_sub(&flip->device->adapter->sched->display->due, 1);
	vmm_list_remove(&flip->link);
	flip->device->flips[flip->source_id]--;
	flip->device->presents--;
}

static void drop_locked(struct vmm_sched *sched, struct vmm_flip *flip)
{
	unqueue_locked(flip);
	release_locked(sched, flip);
	vmm_progress_signal(sched->adapter);
}

static void finish_locked(struct vmm_sched *sched, struct vmm_flip *flip, uint32_t reason)
{
	struct source *source = &sched->display->source[flip->source_id];
	struct vmm_flip *before = source->shown;

	unqueue_locked(flip);
	source->shown = flip;
	display_event(sched->adapter, flip, reason, source->count++);
	if (before)
		release_locked(sched, before); /* who destroyed it can now be rid of it */
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

static bool report_locked(struct vmm_sched *sched, struct source *source)
{
	uint64_t address = atomic_load(&source->vsync_address);
	struct vmm_flip *first = first_of(source);

	if (first && first->set && first->address == address) {
		finish_locked(sched, first, VIDMM_DISPLAY_VSYNC);
		return true;
	}
	/* A flip in a DMA buffer shows before its packet is known to be complete. */
	if ((source->shown && source->shown->address == address) ||
	    (first && !first->mmio && !first->set))
		return false;
	vmm_finding(
		sched->adapter->observe, "PRS-05", 0, 0,
		"CRTC_VSYNC of target %u reports address 0x%llx: source %u shows 0x%llx, and %s",
		(uint32_t)(source - sched->display->source), (unsigned long long)address,
		(uint32_t)(source - sched->display->source),
		(unsigned long long)(source->shown ? source->shown->address : 0),
		first && first->set ? "the flip that is pending goes elsewhere"
				    : "no flip is pending");
	return false;
}

bool vmm_display_reported_locked(struct vmm_sched *sched)
{
	struct vmm_display *display = sched->display;
	bool any = false;

	for (uint32_t i = 0; i < display->source_count; i++)
		if (atomic_exchange(&display->source[i].vsync, false))
			any |= report_locked(sched, &display->source[i]);
	return any;
}

uint64_t vmm_flip_overdue(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	uint64_t now = vmm_os_now_ns(adapter->os), next = VMM_OS_FOREVER;

	if (!sched->display || !sched->watchdog)
		return next;
	vmm_os_mutex_lock(&adapter->state_lock);
	for (uint32_t i = 0; i < sched->display->source_count; i++) {
		struct vmm_flip *first = first_of(&sched->display->source[i]);

		if (!first || !first->set)
			continue;
		uint64_t until = first->set_ns + (uint64_t)sched->tdr.delay_ms * NS_PER_MS;
		if (until > now) {
			next = vmm_min_u64(next, until);
			continue;
		}
		vmm_finding(adapter->observe, "PRS-05", first->process, first->handle,
			    "no CRTC_VSYNC has reported address 0x%llx on target %u for %u ms: it "
			    "counts as shown",
			    (unsigned long long)first->address, i, sched->tdr.delay_ms);
		finish_locked(sched, first, VIDMM_DISPLAY_VSYNC);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	return next;
}

/* ---- the worker shows what is due ---- */

/* Packets of several contexts complete in any order: what writes to it is what counts. State lock held. */
static bool is_ready(const struct vmm_adapter *adapter, const struct vmm_flip *flip)
{
	if (!flip->due || flip->set)
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

/* The first flip of a source, if it is to be shown now. Those of a lost device are dropped. */
static struct vmm_flip *next_ready(struct vmm_adapter *adapter, struct source *source)
{
	struct vmm_flip *first;

	vmm_os_mutex_lock(&adapter->state_lock);
	while ((first = first_of(source)) != NULL && first->due && !first->set &&
	       vmm_device_lost(first->device)) {
		drop_locked(adapter->sched, first);
	}
	if (first && !is_ready(adapter, first))
		first = NULL;
	vmm_os_mutex_unlock(&adapter->state_lock);
	return first;
}

/* Paging lock held: from here on nobody takes it away. */
static bool is_still_ready(struct vmm_adapter *adapter, const struct vmm_flip *flip)
{
	vmm_os_mutex_lock(&adapter->state_lock);
	bool still = first_of(&adapter->sched->display->source[flip->source_id]) == flip &&
		     is_ready(adapter, flip);
	vmm_os_mutex_unlock(&adapter->state_lock);
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

/* The GPU idle, everybody out of the miniport: section 4's level two. Submit and paging lock held on success. */
static bool enter_level_two(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	vmm_os_mutex_lock(&adapter->submit_lock);
	for (;;) {
		if (atomic_load(&sched->halted) || atomic_load(&adapter->removed) ||
		    atomic_load(&adapter->recovering))
			break;
		vmm_prepare_pump_waiting(adapter);
		vmm_sched_feed_until_idle(adapter, VIDMM_WAIT_PRESENT);
		vmm_paging_lock(adapter);
		vmm_os_mutex_lock(&adapter->state_lock);
		bool idle = !sched->hardware_total && !atomic_load(&sched->ready_count);
		vmm_os_mutex_unlock(&adapter->state_lock);
		if (idle && vmm_port_exclude(adapter->port))
			return true;
		vmm_paging_unlock(adapter);
		vmm_await_recovery(adapter);
	}
	vmm_os_mutex_unlock(&adapter->submit_lock);
	return false;
}

static void leave_level_two(struct vmm_adapter *adapter)
{
	vmm_port_admit(adapter->port);
	vmm_paging_unlock(adapter);
	vmm_os_mutex_unlock(&adapter->submit_lock);
}

/* PRS-03: a dark source begins to show something. False: not now. */
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
	vmm_os_mutex_lock(&adapter->state_lock);
	if (NT_SUCCESS(status)) {
		finish_locked(adapter->sched, flip, VIDMM_DISPLAY_FIRST);
	} else {
		drop_locked(adapter->sched, flip);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	leave_level_two(adapter);
	return true;
}

/* PRS-04: at DIRQL, so that the state lock cannot be held; `set` first, since the vsync may come at once. */
static bool show_next(struct vmm_adapter *adapter, struct vmm_flip *flip)
{
	bool immediate = flip->interval == D3DDDI_FLIPINTERVAL_IMMEDIATE;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_paging_lock(adapter);
	if (!is_still_ready(adapter, flip)) {
		vmm_paging_unlock(adapter);
		return true;
	}
	vmm_memory_location(flip->instance, &flip->segment, &flip->address);
	DXGKARG_SETVIDPNSOURCEADDRESS args = address_of(flip);
	args.Flags.FlipImmediate = immediate;
	args.Flags.FlipOnNextVSync = !immediate;
	vmm_os_mutex_lock(&adapter->state_lock);
	bool mmio = flip->mmio;
	flip->set_ns = vmm_os_now_ns(adapter->os);
	flip->set = true;
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (mmio)
		status = vmm_port_flip(adapter->port, &args);
	vmm_os_mutex_lock(&adapter->state_lock);
	const struct source *source = &adapter->sched->display->source[flip->source_id];
	bool told = atomic_load(&source->vsync_address) == flip->address;
	if (first_of(source) != flip)
		; /* its vsync came inside the call */
	else if (status == STATUS_DEVICE_REMOVED)
		flip->set = false;
	else if (!NT_SUCCESS(status))
		drop_locked(adapter->sched, flip); /* what was shown still is */
	else if (mmio && immediate)
		finish_locked(adapter->sched, flip, VIDMM_DISPLAY_IMMEDIATE);
	else if (!mmio && told) /* before the packet's end was */
		finish_locked(adapter->sched, flip, VIDMM_DISPLAY_VSYNC);
	vmm_os_mutex_unlock(&adapter->state_lock);
	vmm_paging_unlock(adapter);
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

/* ---- the end of it ---- */

static void darken_locked(struct vmm_sched *sched, struct source *source)
{
	if (!source->shown)
		return;
	display_event(sched->adapter, source->shown, VIDMM_DISPLAY_DARK, source->count);
	release_locked(sched, source->shown);
	source->shown = NULL;
}

void vmm_display_forget_locked(struct vmm_sched *sched)
{
	struct vmm_display *display = sched->display;

	if (!display)
		return;
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	for (uint32_t i = 0; i < display->source_count; i++) {
		struct vmm_list *link, *next;

		darken_locked(sched, &display->source[i]);
		atomic_store(&display->source[i].vsync, false);
		/* Those whose packets are still queued go when these are cancelled. */
		vmm_list_for_each_safe (link, next, &display->source[i].flips) {
			struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

			if (flip->due)
				drop_locked(sched, flip);
		}
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	vmm_progress_signal(sched->adapter);
}

/* What the device has queued goes; does the source show something of it, or is about to? */
static bool is_shown_by(struct vmm_device *device, struct source *source)
{
	struct vmm_sched *sched = device->adapter->sched;
	struct vmm_list *link, *next;
	bool shown = source->shown && source->shown->device == device;

	vmm_list_for_each_safe (link, next, &source->flips) {
		struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

		if (flip->device != device)
			continue;
		shown |= flip->set;
		if (!flip->set)
			drop_locked(sched, flip);
	}
	return shown;
}

/* PRS-06: dark before its memory is somebody else's. */
static void take_off_screen(struct vmm_device *device, uint32_t source_id)
{
	struct vmm_adapter *adapter = device->adapter;
	struct source *source = &adapter->sched->display->source[source_id];
	struct vmm_list *link, *next;
	bool alone = enter_level_two(adapter);

	if (alone)
		(void)!NT_SUCCESS(vmm_port_set_source_visibility(adapter->port, source_id, false));
	else /* no power, or nobody to tell */
		vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_for_each_safe (link, next, &source->flips) {
		struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

		if (flip->device == device)
			drop_locked(adapter->sched, flip);
	}
	darken_locked(adapter->sched, source);
	atomic_store(&source->vsync, false);
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (alone)
		leave_level_two(adapter);
	else
		vmm_os_mutex_unlock(&adapter->paging_lock);
}

void vmm_display_close_device(struct vmm_device *device)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_display *display = adapter->sched->display;

	for (uint32_t i = 0; display && i < display->source_count; i++) {
		vmm_os_mutex_lock(&adapter->paging_lock);
		vmm_os_mutex_lock(&adapter->state_lock);
		bool shown = is_shown_by(device, &display->source[i]);
		vmm_os_mutex_unlock(&adapter->state_lock);
		vmm_os_mutex_unlock(&adapter->paging_lock);
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
	vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_os_mutex_lock(&adapter->state_lock);
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(display->flip); i++)
		if (display->flip[i].kmd_context == context->kmd_context)
			display->flip[i].kmd_context = NULL;
	vmm_os_mutex_unlock(&adapter->state_lock);
	vmm_os_mutex_unlock(&adapter->paging_lock);
}
