/* SPDX-License-Identifier: MIT */
/*
 * Progress of timelines, and waiting for the GPU.
 *
 * All waiters of an adapter sleep on one futex, adapter->progress, which is incremented at every
 * completion. A waiter that wakes for another packet sleeps again. vmm_progress_signal makes no
 * system call while no thread sleeps.
 */
#include "object/hazard.h"
#include "object/object.h"

/* ---- what is complete ---- */

static _Atomic uint64_t *word_of(const struct vmm_timeline *timeline, uint64_t sequence)
{
	uint64_t bit = sequence % VMM_TIMELINE_AHEAD;

	return (_Atomic uint64_t *)&timeline->done[bit / 64];
}

static uint64_t bit_of(uint64_t sequence)
{
	return (uint64_t)1 << sequence % 64;
}

void vmm_work_add_locked(struct vmm_adapter *adapter, uint32_t t, struct vmm_work *work)
{
	struct vmm_timeline *timeline = &adapter->timeline[t];

	vmm_assert_held(&adapter->state_lock);
	vmm_list_push_back(&timeline->work, &work->link);
	atomic_store_explicit(&timeline->queued, work->sequence, memory_order_relaxed);
}

/*
 * Marks every packet up to `upto` complete. Clears the bits first: a thread that reads the new
 * number finds no bit of an earlier round of the ring.
 */
static void advance(struct vmm_timeline *timeline, uint64_t upto)
{
	uint64_t completed = atomic_load_explicit(&timeline->completed, memory_order_relaxed);

	if (upto <= completed)
		return;
	if (vmm_unlikely(atomic_load_explicit(&timeline->ahead, memory_order_relaxed)))
		for (uint64_t s = completed + 1; s <= upto && s <= completed + VMM_TIMELINE_AHEAD;
		     s++)
			if (atomic_fetch_and(word_of(timeline, s), ~bit_of(s)) & bit_of(s))
				atomic_fetch_sub(&timeline->ahead, 1);
	if (vmm_unlikely(atomic_load(&timeline->beyond)) &&
	    upto >= atomic_load(&timeline->beyond)) {
		atomic_store(&timeline->beyond, 0);
		atomic_fetch_sub(&timeline->ahead, 1);
	}
	atomic_store_explicit(&timeline->completed, upto, memory_order_release);
}

/* Notes the completion of a packet that completes before an older one. */
VMM_COLD static void note_ahead(struct vmm_timeline *timeline, uint64_t sequence)
{
	if (sequence - atomic_load(&timeline->completed) <= VMM_TIMELINE_AHEAD) {
		atomic_fetch_add(&timeline->ahead, 1);
		atomic_fetch_or(word_of(timeline, sequence), bit_of(sequence));
		return;
	}
	if (!atomic_load(&timeline->beyond))
		atomic_fetch_add(&timeline->ahead, 1);
	if (sequence > atomic_load(&timeline->beyond))
		atomic_store(&timeline->beyond, sequence);
}

void vmm_work_done_locked(struct vmm_adapter *adapter, uint32_t t, struct vmm_work *work)
{
	struct vmm_timeline *timeline = &adapter->timeline[t];
	bool oldest = timeline->work.next == &work->link;
	uint64_t sequence = work->sequence;

	vmm_assert_held(&adapter->state_lock);
	vmm_list_remove(&work->link);
	if (vmm_unlikely(!oldest))
		note_ahead(timeline, sequence);
	else if (vmm_list_empty(&timeline->work))
		advance(timeline, atomic_load_explicit(&timeline->queued, memory_order_relaxed));
	else
		advance(timeline,
			vmm_container_of(timeline->work.next, struct vmm_work, link)->sequence - 1);
}

VMM_COLD static bool is_complete_in_list(struct vmm_adapter *adapter, uint32_t timeline,
					 uint64_t sequence)
{
	const struct vmm_list *link;
	bool complete = true;

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->timeline[timeline].work)
		complete &= vmm_container_of(link, struct vmm_work, link)->sequence != sequence;
	complete &= sequence <= atomic_load(&adapter->timeline[timeline].queued);
	vmm_state_unlock(adapter);
	return complete;
}

/*
 * Reads `completed` first. A set bit then stands for this packet, or for one of a later round, in
 * which case this packet is long complete. The bit of an earlier round was cleared before
 * `completed` came within VMM_TIMELINE_AHEAD of this packet.
 */
bool vmm_timeline_is_ahead(const struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence)
{
	const struct vmm_timeline *t = &adapter->timeline[timeline];
	uint64_t completed = atomic_load_explicit(&t->completed, memory_order_acquire);

	if (sequence <= completed)
		return true;
	if (sequence - completed <= VMM_TIMELINE_AHEAD &&
	    atomic_load_explicit(word_of(t, sequence), memory_order_acquire) & bit_of(sequence))
		return true;
	return vmm_unlikely(sequence <= atomic_load(&t->beyond)) &&
	       is_complete_in_list((struct vmm_adapter *)adapter, timeline, sequence);
}

VMM_COLD static bool device_is_done(const struct vmm_device *device, uint32_t t, uint64_t sequence)
{
	struct vmm_adapter *adapter = device->adapter;
	const struct vmm_list *link;
	bool done = true;

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->timeline[t].work) {
		const struct vmm_work *work = vmm_container_of(link, struct vmm_work, link);

		done &= work->device != device || work->sequence > sequence;
	}
	vmm_state_unlock(adapter);
	return done;
}

bool vmm_device_done(const struct vmm_device *device, uint32_t timeline, uint64_t sequence)
{
	return vmm_timeline_passed(device->adapter, timeline, sequence) ||
	       (vmm_timeline_done(device->adapter, timeline, sequence) &&
		device_is_done(device, timeline, sequence));
}

bool vmm_timeline_quiet(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			bool prepared)
{
	const struct vmm_list *link;
	bool quiet = true;

	if (vmm_timeline_passed(adapter, timeline, sequence))
		return true;
	if (timeline == adapter->paging_timeline)
		return false;
	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->timeline[timeline].work) {
		const struct vmm_work *work = vmm_container_of(link, struct vmm_work, link);

		if (work->sequence > sequence)
			break;
		quiet &= prepared ? !work->prepared : work->held;
	}
	vmm_state_unlock(adapter);
	return quiet;
}

bool vmm_timeline_is_overtaken(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence)
{
	const struct vmm_list *link;
	bool overtaken = false;

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->timeline[timeline].work) {
		const struct vmm_work *work = vmm_container_of(link, struct vmm_work, link);

		overtaken |= work->prepared && work->sequence > sequence;
	}
	vmm_state_unlock(adapter);
	return overtaken;
}

/* ---- waiting ---- */

/* The id of a process on whose behalf a thread runs; 0: the library itself. */
static uint32_t id_of(const struct vmm_process *process)
{
	return process ? process->id : 0;
}

enum { CHECKS_PER_CLOCK_READ = 8 };

/*
 * Spins for a packet that may complete within adapter->spin_ns, to avoid the cost of a sleep. The
 * clock is read every CHECKS_PER_CLOCK_READ checks, and neither before the first nor after the last
 * one: reading it takes as long as a word takes from one processor to the other. So *waited_ns
 * omits the first and the last few checks.
 */
static bool spin_until_done(const struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			    uint64_t *waited_ns)
{
	uint64_t began = 0, waited = 1;

	for (unsigned checks = 1; !vmm_timeline_done(adapter, timeline, sequence); checks++) {
		if (waited >= adapter->spin_ns || atomic_load(&adapter->removed))
			return false;
		if (checks % CHECKS_PER_CLOCK_READ == 0) {
			uint64_t now = vmm_os_now_ns(adapter->os);

			began = began ? began : now;
			waited = vmm_max_u64(now - began, 1);
		}
		vmm_os_pause();
	}
	*waited_ns = waited;
	return true;
}

/* A removed adapter's packets count as complete, but its waiters get an error from wait_until. */
static bool wait_by_spinning(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			     uint64_t *waited_ns)
{
	uint64_t waited;

	if (!adapter->spin_ns || !spin_until_done(adapter, timeline, sequence, &waited) ||
	    atomic_load(&adapter->removed))
		return false;
	if (waited_ns)
		*waited_ns += waited;
	vmm_event_inline(adapter->observe, VIDMM_EVENT_WAIT,
			 id_of(vmm_calling_process(adapter->os)), 0, VIDMM_WAIT_LOCK, waited,
			 timeline, sequence, 0);
	return true;
}

/*
 * Returns whether the wait is of a process whose client has gone. Waits for a destruction are
 * completed all the same.
 */
static bool is_given_up(const struct vmm_process *process, uint32_t reason)
{
	return process && atomic_load(&process->abandoned) && reason != VIDMM_WAIT_DESTROY;
}

/*
 * Sleeps until the packet (`all`: and every packet before it) is complete. inside: a device that
 * the caller is inside; if that is paused the wait ends with VMM_PENDING. NULL: a pause
 * does not end it.
 */
static vmm_status wait_until(struct vmm_adapter *adapter, const struct vmm_device *inside,
			     uint32_t timeline, uint64_t sequence, bool all, uint32_t reason,
			     uint64_t *waited_ns)
{
	const struct vmm_process *process = vmm_calling_process(adapter->os);
	uint64_t began = vmm_os_now_ns(adapter->os);
	vmm_status status = VMM_OK;

	atomic_fetch_add(&adapter->progress_waiters, 1);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);
		bool done = all ? vmm_timeline_quiet(adapter, timeline, sequence, false)
				: vmm_timeline_done(adapter, timeline, sequence);

		/*
		 * Removal ends all waits (LOCK-33). Checked before `done`, because packets of a
		 * removed adapter count as complete.
		 */
		if (atomic_load(&adapter->removed)) {
			status = VMM_DEVICE_REMOVED;
			break;
		}
		if (done)
			break;
		/* The pausing thread sets the pause before it signals progress. */
		if (inside && vmm_unlikely(vmm_hazard_is_paused(inside->hazard))) {
			status = VMM_PENDING;
			break;
		}
		if (is_given_up(process, reason)) {
			status = VMM_DEVICE_REMOVED;
			break;
		}
		status = vmm_os_wait(adapter->os, &adapter->progress, seen, VMM_OS_FOREVER,
				     "completion of a packet", sequence);
		if (!vmm_ok(status))
			break;
	}
	atomic_fetch_sub(&adapter->progress_waiters, 1);
	uint64_t waited = vmm_os_now_ns(adapter->os) - began;
	if (waited_ns)
		*waited_ns += waited;
	vmm_event(adapter->observe, VIDMM_EVENT_WAIT, id_of(process), 0, reason, waited, timeline,
		  sequence, 0);
	return vmm_ok(status) && status != VMM_PENDING ? VMM_OK : status;
}

vmm_status vmm_wait_timeline(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			     uint32_t reason, uint64_t *waited_ns)
{
	return wait_until(adapter, NULL, timeline, sequence, false, reason, waited_ns);
}

vmm_status vmm_wait_for_lock(struct vmm_device *device, uint32_t timeline, uint64_t sequence,
			     uint64_t *waited_ns)
{
	struct vmm_adapter *adapter = device->adapter;

	if (wait_by_spinning(adapter, timeline, sequence, waited_ns))
		return VMM_OK;
	return wait_until(adapter, device, timeline, sequence, false, VIDMM_WAIT_LOCK, waited_ns);
}

vmm_status vmm_wait_timeline_passed(struct vmm_adapter *adapter, uint32_t timeline,
				    uint64_t sequence, uint32_t reason)
{
	return wait_until(adapter, NULL, timeline, sequence, true, reason, NULL);
}

vmm_status vmm_wait_progress(struct vmm_adapter *adapter, uint32_t seen, uint32_t reason)
{
	const struct vmm_process *process = vmm_calling_process(adapter->os);
	uint64_t began = vmm_os_now_ns(adapter->os);
	vmm_status status = VMM_OK;

	atomic_fetch_add(&adapter->progress_waiters, 1);
	while (atomic_load(&adapter->progress) == seen && !atomic_load(&adapter->removed)) {
		if (is_given_up(process, reason)) {
			status = VMM_DEVICE_REMOVED;
			break;
		}
		status = vmm_os_wait(adapter->os, &adapter->progress, seen, VMM_OS_FOREVER,
				     "progress of a GPU", seen);
		if (!vmm_ok(status))
			break;
	}
	atomic_fetch_sub(&adapter->progress_waiters, 1);
	vmm_event(adapter->observe, VIDMM_EVENT_WAIT, id_of(process), 0, reason,
		  vmm_os_now_ns(adapter->os) - began, 0, 0, 0);
	if (atomic_load(&adapter->removed))
		return VMM_DEVICE_REMOVED;
	return vmm_ok(status) ? VMM_OK : status;
}

void vmm_await_recovery(struct vmm_adapter *adapter)
{
	atomic_fetch_add(&adapter->progress_waiters, 1);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (!atomic_load(&adapter->recovering) ||
		    vmm_os_wait(adapter->os, &adapter->progress, seen, VMM_OS_FOREVER,
				"the reset of an adapter", 0) == VMM_UNSUCCESSFUL)
			break;
	}
	atomic_fetch_sub(&adapter->progress_waiters, 1);
}

void vmm_progress_signal(struct vmm_adapter *adapter)
{
	atomic_fetch_add(&adapter->progress, 1);
	if (atomic_load(&adapter->progress_waiters))
		vmm_os_wake(adapter->os, &adapter->progress, UINT32_MAX);
}

void vmm_device_disturb(struct vmm_device *device)
{
	struct vmm_list *link;

	vmm_sync_lock(device->process->world);
	vmm_list_for_each (link, &device->sleepers) {
		struct vmm_sleeper *sleeper = vmm_container_of(link, struct vmm_sleeper, link);

		atomic_fetch_or(&sleeper->state, VMM_SLEEPER_DISTURBED);
		vmm_os_wake(device->adapter->os, &sleeper->state, UINT32_MAX);
	}
	vmm_sync_unlock(device->process->world);
}

void vmm_adapter_disturb(struct vmm_adapter *adapter)
{
	struct vmm_list *link;

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->devices)
		vmm_device_disturb(vmm_container_of(link, struct vmm_device, adapter_link));
	vmm_state_unlock(adapter);
}

void vmm_process_disturb(struct vmm_process *process)
{
	struct vmm_adapter *adapter;
	struct vmm_list *link;

	atomic_store(&process->abandoned, true);
	vmm_process_lock(process);
	vmm_list_for_each (link, &process->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, process_link);

		atomic_store(&device->ending, true);
		vmm_device_disturb(device);
	}
	vmm_process_unlock(process);
	for (uint32_t i = 0; (adapter = vmm_adapter_nth(process->world, i)) != NULL; i++) {
		adapter->device_ends(adapter);
		vmm_progress_signal(adapter);
		vmm_adapter_put(adapter);
	}
}

/* Unblocks the calls inside the device that could sleep without a limit. */
static void unblock_callers(const void *handle)
{
	struct vmm_hazard_guard guard;
	struct vmm_device *device = vmm_hazard_enter(&guard, VMM_HAZARD_DEVICE, handle);

	if (device) {
		atomic_store(&device->ending, true);
		vmm_device_disturb(device);
		device->adapter->device_ends(device->adapter);
		vmm_hazard_leave(&guard);
	}
}

struct vmm_device *vmm_device_end(const void *handle)
{
	unblock_callers(handle);
	return vmm_hazard_retire(VMM_HAZARD_DEVICE, handle);
}

struct vmm_device *vmm_device_stop(const void *handle)
{
	unblock_callers(handle);
	return vmm_hazard_retire_stopped(VMM_HAZARD_DEVICE, handle);
}
