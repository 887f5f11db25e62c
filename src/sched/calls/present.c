/* SPDX-License-Identifier: MIT */
/*
 * Presents (DMA-32, DMA-37). A present has a list of three entries instead of the client's
 * allocation list, and calls DxgkDdiPresent instead of DxgkDdiRender. The result is a DMA buffer
 * like any other. A flip by MMIO (FlipOnVSyncMmIo) has no DMA buffer content. It still has a
 * packet, so that it keeps its turn, but the packet never reaches the hardware; display.c does the
 * flip.
 */
#include "sched/data/submission.h"
#include "sched/calls/calls.h"

enum { SUB_RECTS_MAX = 4096 };

NTSTATUS vmm_present_refuse(const struct vmm_present *p, const char *rule, const char *what,
			    uint64_t value)
{
	return vmm_refuse_rule(p->device->adapter->observe, STATUS_INVALID_PARAMETER, rule,
			       p->device->process->id, p->object,
			       "present on %s 0x%08x refused: %s (0x%llx)", p->words->on, p->object,
			       what, (unsigned long long)value);
}

NTSTATUS vmm_present_not_built(const struct vmm_present *p, const char *rule, const char *what)
{
	return vmm_refuse_reason(p->device->adapter->observe, STATUS_NOT_SUPPORTED,
				 p->device->process->id, p->object,
				 "%s: present on %s 0x%08x: %s is not built", rule, p->words->on,
				 p->object, what);
}

/* ---- checks of the request ---- */

static NTSTATUS check_flags(const struct vmm_present *p)
{
	const struct vmm_present_request *r = p->request;
	const DXGK_PRESENTFLAGS f = p->flags;

	if (f.Blt + f.ColorFill + f.Flip != 1)
		return vmm_present_refuse(p, "PRS-01", "not one of Blt, ColorFill and Flip",
					  f.Value);
	if (f.FlipStereo || f.FlipStereoTemporaryMono || f.FlipStereoPreferRight ||
	    f.BltStereoUseRight || f.FlipWithMultiPlaneOverlay)
		return vmm_present_not_built(p, "PRS-01", "stereo, or a multiplane overlay");
	if (f.Reserved || (f.FlipWithNoWait && !f.Flip) ||
	    ((f.SrcColorKey || f.DstColorKey || f.LinearToSrgb || f.Rotate) && !f.Blt))
		return vmm_present_refuse(
			p, "PRS-01", "flags that exclude each other, or reserved flags", f.Value);
	if ((r->source == 0) != f.ColorFill)
		return vmm_present_refuse(p, "PRS-01",
					  f.ColorFill ? "a ColorFill with a source" : "no source",
					  r->source);
	if ((r->destination == 0) != f.Flip)
		return vmm_present_refuse(p, "PRS-01",
					  f.Flip ? "a Flip with a destination" : "no destination",
					  r->destination);
	if (r->sub_rect_count > SUB_RECTS_MAX)
		return vmm_present_refuse(p, "PRS-01", "too many sub rectangles",
					  r->sub_rect_count);
	return STATUS_SUCCESS;
}

static NTSTATUS source_of(const struct vmm_present *p, uint32_t primary, uint32_t *source_id)
{
	const struct vmm_device *device = p->device;
	NTSTATUS status = STATUS_INVALID_HANDLE;

	vmm_process_lock(device->process);
	const struct vmm_ref *ref = vmm_ref_lookup_locked(device, primary);
	if (!ref)
		vmm_ref_report(device, primary, "DMA-16", "source of a flip");
	else if (!ref->allocation->primary)
		status = vmm_present_refuse(p, "PRS-02", "the source of a flip is not a primary",
					    primary);
	else {
		*source_id = ref->allocation->source_id;
		status = STATUS_SUCCESS;
	}
	vmm_process_unlock(device->process);
	return status;
}

/* PRS-02: checks that the VidPn source exists and decides how the miniport flips. */
static NTSTATUS check_flip(struct vmm_present *p)
{
	const struct vmm_present_request *r = p->request;
	const struct vmm_port_caps *caps = p->device->adapter->sched->caps;
	bool immediate = r->interval == D3DDDI_FLIPINTERVAL_IMMEDIATE;

	uint32_t made_for = 0;
	NTSTATUS status = source_of(p, r->source, &made_for);

	if (!NT_SUCCESS(status))
		return status;
	if (made_for != r->source_id)
		return vmm_present_refuse(
			p, "PRS-02", "the primary of a flip was created for another VidPnSourceId",
			made_for);
	if (r->source_id >= caps->source_count)
		return vmm_present_refuse(
			p, "PRS-02", "VidPnSourceId is beyond the adapter's sources", r->source_id);
	if ((uint32_t)r->interval > D3DDDI_FLIPINTERVAL_FOUR)
		return vmm_present_refuse(p, "PRS-01", "FlipInterval is not 0 to 4",
					  (uint64_t)r->interval);
	p->mmio = immediate ? caps->flip.FlipImmediateMmIo : caps->flip.FlipOnVSyncMmIo;
	if (r->interval > D3DDDI_FLIPINTERVAL_ONE && (p->mmio || !caps->flip.FlipInterval))
		return vmm_present_not_built(p, "PRS-01",
					     "a FlipInterval of 2 or more without the miniport's "
					     "FlipInterval capability");
	if (p->flags.FlipWithNoWait && !caps->flip.FlipOnVSyncWithNoWait)
		return vmm_present_refuse(
			p, "PRS-01", "FlipWithNoWait without the miniport's FlipOnVSyncWithNoWait",
			p->flags.Value);
	return STATUS_SUCCESS;
}

static struct vmm_present present_on(const struct vmm_context *context)
{
	vmm_assert(vmm_context_is_valid(context));
	return (struct vmm_present){.device = context->device,
				    .object = context->handle,
				    .words = vmm_present_kind.words};
}

NTSTATUS vmm_present_source_of(const struct vmm_context *context, uint32_t primary,
			       uint32_t *source_id)
{
	const struct vmm_present p = present_on(context);

	return source_of(&p, primary, source_id);
}

/* DMA-10: of presents only flips can be broadcast, and of flips only those by MMIO. */
VMM_COLD static NTSTATUS check_broadcast(const struct vmm_present *p)
{
	uint32_t count = p->request->broadcast_count;

	if (count > VMM_BROADCAST_MAX)
		return vmm_present_refuse(p, "DMA-10", "more than 64 broadcast contexts", count);
	if (!p->flags.Flip || !p->mmio)
		return vmm_present_refuse(
			p, "DMA-10",
			p->flags.Flip ? "a broadcast flip without the miniport's FlipOnVSyncMmIo"
				      : "broadcast contexts for a present that is no flip",
			count);
	return vmm_present_not_built(p, "PRS-01", "a flip that is broadcast (DMA-10)");
}

/* ---- rectangles ---- */

/*
 * Asks the miniport for the size of an allocation. The submit lock keeps the allocation alive: a
 * deallocation takes it, too.
 */
static NTSTATUS describe(const struct vmm_present *p, uint32_t handle, RECT *all)
{
	struct vmm_device *device = p->device;
	struct vmm_adapter *adapter = device->adapter;
	DXGKARG_DESCRIBEALLOCATION args = {0};
	NTSTATUS status = STATUS_INVALID_HANDLE;

	vmm_submit_lock(adapter);
	vmm_process_lock(device->process);
	const struct vmm_ref *ref = vmm_ref_lookup_locked(device, handle);
	if (ref)
		args.hAllocation = ref->allocation->kmd_allocation;
	else
		vmm_ref_report(device, handle, "DMA-16", "source or destination of a present");
	vmm_process_unlock(device->process);
	if (ref)
		status = vmm_port_describe_allocation(adapter->port, &args);
	vmm_submit_unlock(adapter);
	*all = (RECT){0, 0, (LONG)args.Width, (LONG)args.Height};
	return status;
}

static bool is_empty(const RECT *r)
{
	return r->left < 0 || r->top < 0 || r->right <= r->left || r->bottom <= r->top;
}

/*
 * Picks the rectangle of an allocation. Without a rectangle from the client it is the whole
 * allocation.
 */
static NTSTATUS choose_rect(const struct vmm_present *p, uint32_t handle, bool given,
			    const RECT *rect, RECT *chosen)
{
	NTSTATUS status = STATUS_SUCCESS;

	*chosen = (RECT){0, 0, 0, 0};
	if (!handle)
		return status;
	if (given)
		*chosen = *rect;
	else
		status = describe(p, handle, chosen);
	if (NT_SUCCESS(status) && is_empty(chosen))
		return vmm_present_refuse(p, "PRS-01",
					  "an empty rectangle, or one with negative edges", handle);
	return status;
}

static LONG moved(LONG at, LONG from, LONG from_length, LONG to, LONG to_length)
{
	return (LONG)(to + ((int64_t)at - from) * to_length / from_length);
}

/* PRS-07: maps a rectangle of the source to the destination. */
static RECT into_destination(const struct vmm_present *p, const RECT *r)
{
	LONG width = p->source.right - p->source.left, height = p->source.bottom - p->source.top;
	LONG to_width = p->destination.right - p->destination.left,
	     to_height = p->destination.bottom - p->destination.top;

	return (RECT){
		moved(r->left, p->source.left, width, p->destination.left, to_width),
		moved(r->top, p->source.top, height, p->destination.top, to_height),
		moved(r->right, p->source.left, width, p->destination.left, to_width),
		moved(r->bottom, p->source.top, height, p->destination.top, to_height),
	};
}

static bool is_inside(const RECT *r, const RECT *all)
{
	return !is_empty(r) && r->left >= all->left && r->top >= all->top &&
	       r->right <= all->right && r->bottom <= all->bottom;
}

/* PRS-07: a present without sub rectangles has one, the whole rectangle. */
static NTSTATUS choose_sub_rects(struct vmm_present *p)
{
	const struct vmm_present_request *r = p->request;
	const RECT *within = p->flags.ColorFill ? &p->destination : &p->source;

	p->sub_rect_count = r->sub_rect_count ? r->sub_rect_count : 1;
	p->sub_rects = p->sub_rect_count == 1
			       ? &p->one
			       : vmm_calloc(p->sub_rect_count, sizeof(*p->sub_rects));
	if (!p->sub_rects)
		return STATUS_NO_MEMORY;
	p->sub_rects[0] = p->flags.Flip ? p->source : p->destination;
	for (uint32_t i = 0; i < r->sub_rect_count; i++) {
		if (!is_inside(&r->sub_rects[i], within))
			return vmm_present_refuse(
				p, "PRS-07",
				"a sub rectangle is empty or reaches outside its rectangle", i);
		p->sub_rects[i] =
			p->flags.Blt ? into_destination(p, &r->sub_rects[i]) : r->sub_rects[i];
	}
	return STATUS_SUCCESS;
}

static NTSTATUS choose_rects(struct vmm_present *p)
{
	const struct vmm_present_request *r = p->request;
	NTSTATUS status =
		choose_rect(p, r->source, r->source_rect_valid, &r->source_rect, &p->source);

	if (NT_SUCCESS(status))
		status = choose_rect(p, r->destination, r->destination_rect_valid,
				     &r->destination_rect, &p->destination);
	if (NT_SUCCESS(status) && p->flags.Flip)
		p->destination = p->source;
	return NT_SUCCESS(status) ? choose_sub_rects(p) : status;
}

NTSTATUS vmm_present_begin(struct vmm_present *p, const struct vmm_present_request *request)
{
	p->request = request;
	p->flags.Value = request->flags;
	NTSTATUS status = check_flags(p);
	if (NT_SUCCESS(status) && p->flags.Flip)
		status = check_flip(p);
	if (NT_SUCCESS(status) && request->broadcast_count)
		status = check_broadcast(p);
	return NT_SUCCESS(status) ? choose_rects(p) : status;
}

void vmm_present_end(struct vmm_present *p)
{
	if (p->sub_rects != &p->one)
		vmm_free(p->sub_rects);
}

/* ---- how many may be queued (SUB-17) ---- */

static uint32_t limit_of(const struct vmm_device *device) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&device->adapter->state_lock);
	return device->present_limit ? device->present_limit : VMM_PRESENT_LIMIT_DEFAULT;
}

void vmm_present_set_limit(struct vmm_device *device, uint32_t presents)
{
	vmm_assert(vmm_device_is_valid(device));
	vmm_state_lock(device->adapter);
	device->present_limit = presents;
	vmm_state_unlock(device->adapter);
	/* A present that waits for the limit may be below it now. */
	vmm_progress_signal(device->adapter);
}

uint32_t vmm_present_limit(const struct vmm_device *device)
{
	vmm_assert(vmm_device_is_valid(device));
	vmm_state_lock(device->adapter);
	uint32_t limit = limit_of(device);
	vmm_state_unlock(device->adapter);
	return limit;
}

static void give_turn_back(struct vmm_device *device)
{
	vmm_state_lock(device->adapter);
	device->presents--;
	vmm_state_unlock(device->adapter);
	vmm_progress_signal(device->adapter);
}

/*
 * Counts a present, and for a flip reserves an entry in its source's queue. Both or neither is
 * taken in one step: no other thread may see half of it and go to sleep.
 */
static bool try_reserve(struct vmm_device *device, struct vmm_present *p)
{
	vmm_state_lock(device->adapter);
	bool taken = device->presents < limit_of(device);
	if (taken && p->flags.Flip) {
		p->flip = vmm_flip_reserve_locked(device, p->request->source_id);
		taken = p->flip != NULL;
	}
	device->presents += taken;
	vmm_state_unlock(device->adapter);
	return taken;
}

/*
 * Waits until the GPU makes progress. A flip whose vsync does not come counts as shown after a time
 * limit (PRS-05).
 */
static vmm_status await_turn(struct vmm_device *device, uint32_t seen)
{
	struct vmm_adapter *adapter = device->adapter;
	uint64_t until = vmm_flip_overdue(adapter), began = vmm_os_now_ns(adapter->os);
	vmm_status status = VMM_OK;

	atomic_fetch_add(&adapter->progress_waiters, 1);
	if (atomic_load(&adapter->progress) == seen && !atomic_load(&adapter->removed))
		status = vmm_os_wait(adapter->os, &adapter->progress, seen, until,
				     "presents in flight below the limit (SUB-17)", 0);
	atomic_fetch_sub(&adapter->progress_waiters, 1);
	vmm_event(adapter->observe, VIDMM_EVENT_WAIT, device->process->id, 0, VIDMM_WAIT_PRESENT,
		  vmm_os_now_ns(adapter->os) - began, 0, 0, 0);
	return status == VMM_UNSUCCESSFUL ? VMM_DEVICE_REMOVED : VMM_OK;
}

NTSTATUS vmm_present_reserve(struct vmm_present *p)
{
	struct vmm_device *device = p->device;

	for (;;) {
		uint32_t seen = atomic_load(&device->adapter->progress);

		if (vmm_device_lost(device) || atomic_load(&device->adapter->removed) ||
		    atomic_load(&device->ending))
			return STATUS_DEVICE_REMOVED;
		if (try_reserve(device, p))
			return STATUS_SUCCESS;
		if (p->request->do_not_wait)
			return STATUS_GRAPHICS_ALLOCATION_BUSY;
		vmm_prepare_pump(device->adapter);
		if (!vmm_ok(await_turn(device, seen)))
			return STATUS_DEVICE_REMOVED;
	}
}

void vmm_present_unreserve(struct vmm_present *p)
{
	struct vmm_device *device = p->device;

	if (p->flip)
		vmm_flip_cancel(device->adapter, p->flip);
	give_turn_back(device);
}

static const struct vmm_submission_kind *kind_of(const struct vmm_context *context,
						 const struct vmm_present *p)
{
	if (vmm_unlikely(context->by_address))
		return !p->flags.Flip ? &vmm_virtual_present_kind
		       : p->mmio      ? &vmm_virtual_mmio_flip_kind
				      : &vmm_virtual_flip_kind;
	if (!p->flags.Flip)
		return &vmm_present_kind;
	return p->mmio ? &vmm_mmio_flip_kind : &vmm_flip_kind;
}

/* the miniport gets the addresses of source and destination. */
NTSTATUS vmm_present_map(const struct vmm_present *p)
{
	const uint32_t handles[] = {p->request->source, p->request->destination};
	NTSTATUS status = STATUS_SUCCESS;

	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(handles) && NT_SUCCESS(status); i++)
		if (handles[i])
			status = vmm_va_map_for_driver(p->device, handles[i]);
	return status;
}

/*
 * PRS-09: on a context with GPU virtual addresses the miniport gets the addresses of source and
 * destination, and fills a DMA buffer of the size that it asked for.
 */
VMM_COLD static NTSTATUS begin_virtual(const struct vmm_context *context,
				       const struct vmm_present *p)
{
	vmm_assert(context->by_address);
	if (!p->mmio && !context->present_bytes)
		return vmm_present_refuse(p, "PRS-09",
					  "the miniport asked for a DmaBufferSize of 0", 0);
	return vmm_present_map(p);
}

void vmm_present_list(const struct vmm_present *p,
		      D3DDDI_ALLOCATIONLIST list[DXGK_PRESENT_MAX_INDEX])
{
	const struct vmm_present_request *r = p->request;

	for (uint32_t i = 0; i < DXGK_PRESENT_MAX_INDEX; i++)
		list[i] = (D3DDDI_ALLOCATIONLIST){0};
	list[DXGK_PRESENT_SOURCE_INDEX].hAllocation = r->source;
	list[DXGK_PRESENT_DESTINATION_INDEX].hAllocation = r->destination;
	list[DXGK_PRESENT_DESTINATION_INDEX].WriteOperation = r->destination != 0;
}

static NTSTATUS submit(struct vmm_context *context, struct vmm_present *p)
{
	D3DDDI_ALLOCATIONLIST list[DXGK_PRESENT_MAX_INDEX];
	struct vmm_submission s = {.kind = kind_of(context, p),
				   .context = context,
				   .present = p,
				   .entries = list,
				   .entry_count = DXGK_PRESENT_MAX_INDEX};

	NTSTATUS status = vmm_present_reserve(p);
	if (!NT_SUCCESS(status))
		return status;
	vmm_present_list(p, list);
	status = vmm_submission_run(&s);
	if (!NT_SUCCESS(status))
		vmm_present_unreserve(p);
	return status;
}

NTSTATUS vmm_sched_present(struct vmm_context *context, const struct vmm_present_request *request)
{
	struct vmm_present p = present_on(context);

	NTSTATUS status = vmm_present_begin(&p, request);
	if (NT_SUCCESS(status) && vmm_unlikely(context->by_address))
		status = begin_virtual(context, &p);
	if (NT_SUCCESS(status))
		status = submit(context, &p);
	vmm_present_end(&p);
	return status;
}
