/* SPDX-License-Identifier: MIT */
/*
 * Flips of an adapter's sources: their queues, their completion by a packet (due) and by a vertical
 * sync (shown), and what becomes of them at a reset. display.c programs them. (PRS)
 */
#include "sched/data/flip.h"
#include "sched/data/data.h"

#define NS_PER_MS 1000000u

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

void vmm_flip_drop_locked(struct vmm_sched *sched, struct vmm_flip *flip)
{
	vmm_assert_held(&sched->adapter->state_lock);
	unqueue_locked(flip);
	release_locked(sched, flip);
	vmm_progress_signal(sched->adapter);
}

void vmm_flip_finish_locked(struct vmm_sched *sched, struct vmm_flip *flip, uint32_t reason)
{
	struct vmm_source *source = &sched->display->source[flip->source_id];
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
	struct vmm_source *source = &sched->display->source[data->CrtcVsync.VidPnTargetId];

	atomic_store(&source->vsync_address, (uint64_t)data->CrtcVsync.PhysicalAddress.QuadPart);
	atomic_store(&source->vsync, true);
}

static bool apply_vsync_locked(struct vmm_sched *sched, struct vmm_source *source)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint64_t address = atomic_load(&source->vsync_address);
	struct vmm_flip *first = vmm_flip_first(source);

	vmm_assert_held(&sched->adapter->state_lock);
	if (first && first->programmed && first->address == address) {
		vmm_flip_finish_locked(sched, first, VIDMM_DISPLAY_VSYNC);
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
		struct vmm_flip *first = vmm_flip_first(&sched->display->source[i]);

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
		vmm_flip_finish_locked(sched, first, VIDMM_DISPLAY_VSYNC);
	}
	vmm_state_unlock(adapter);
	return next;
}

bool vmm_display_waits(const struct vmm_sched *sched)
{
	vmm_assert(sched->display);
	return atomic_load(&sched->display->due);
}

/* ---- reset ---- */

void vmm_source_darken_locked(struct vmm_sched *sched, struct vmm_source *source)
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

		vmm_source_darken_locked(sched, &display->source[i]);
		atomic_store(&display->source[i].vsync, false);
		/*
		 * A flip that is not due stays with its packet until that completes or is
		 * canceled.
		 */
		vmm_list_for_each_safe (link, next, &display->source[i].flips) {
			struct vmm_flip *flip = vmm_container_of(link, struct vmm_flip, link);

			if (flip->due)
				vmm_flip_drop_locked(sched, flip);
		}
	}
	vmm_state_unlock(sched->adapter);
	vmm_progress_signal(sched->adapter);
}
