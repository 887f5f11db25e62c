/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals in a context's queue (SYN-25, SYN-26, SUB-28). They are not packets of the
 * hardware. The queue of a context holds these kinds of steps, in order. Any thread that calls
 * vmm_steps_advance processes them from the head, as far as possible:
 *
 *   wait    begins when it is at the head, and is removed once it is satisfied. The thread that
 *           satisfies it pushes it onto sched->completed_waits. The worker goes on, or that thread
 *           itself after a queued signal. Later packets of the context are not prepared meanwhile.
 *           So they hold no memory and are not in the order of packets: other contexts are not
 *           delayed.
 *   buffer  that was submitted behind a wait: joins the prepare queue when it is at the head, as if
 *           submitted only then. It has its number from the time of its submission: allocations
 *           that it references are busy (SUB-29), and waits for it wait.
 *   signal  is done when the packet before it is complete, or with SignalAtSubmission when the
 *           miniport has it (SYN-27).
 *
 * A prepared packet never waits for a step. So packets with the GPU, for which memory management
 * may wait, always complete. The steps of a lost context are dropped (TDRS-11). The steps of a
 * context that ends are dropped from the first unsatisfied wait on.
 */
#include "sched/completion/completion.h"

void vmm_steps_init(struct vmm_context *context)
{
	vmm_list_init(&context->steps.queue);
	vmm_list_init(&context->steps.link);
	vmm_sync_owner_init(&context->steps.owner, context->device);
}

/* ---- one context; state lock held ---- */

static void push(struct vmm_sched *sched, struct vmm_step *step) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_steps *steps = &step->context->steps;

	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_list_empty(&steps->queue)) {
		vmm_list_push_back(&sched->stepping, &steps->link);
		atomic_fetch_add(&sched->stepping_count, 1);
	}
	vmm_list_push_back(&steps->queue, &step->link);
	steps->holding += step->kind != VMM_STEP_SIGNAL;
}

static void pop(struct vmm_sched *sched, struct vmm_step *step) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_steps *steps = &step->context->steps;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_list_remove(&step->link);
	steps->holding -= step->kind != VMM_STEP_SIGNAL;
	if (!vmm_list_empty(&steps->queue))
		return;
	vmm_list_remove(&steps->link);
	atomic_fetch_sub(&sched->stepping_count, 1);
}

bool vmm_steps_hold_locked(struct vmm_context *context, struct vmm_dma *dma)
{
	vmm_assert_held(&context->device->adapter->state_lock);
	if (vmm_likely(!context->steps.holding))
		return false;
	dma->step = (struct vmm_step){.kind = VMM_STEP_BUFFER, .context = context};
	dma->work.held = true;
	push(context->device->adapter->sched, &dma->step);
	return true;
}

/* Returns whether no further step of the context will be executed. */
static bool is_hopeless(const struct vmm_context *context)
{
	return vmm_device_lost(context->device) || atomic_load(&context->steps.given_up) ||
	       atomic_load(&context->device->adapter->removed);
}

/* Returns whether the context is ending: its unsatisfied waits are to be given up. */
static bool is_ending(const struct vmm_context *context)
{
	return context->steps.ending || atomic_load(&context->device->ending);
}

/*
 * Returns whether the buffers before the signal are complete, or given to the miniport for a signal
 * with SignalAtSubmission (SYN-27). A TopOfPipeline fence is no special case: Q-47.
 * (MFN-28, SFL-14, SFL-21)
 */
static bool is_due(const struct vmm_step *step)
{
	const struct vmm_steps *steps = &step->context->steps;

	return step->after <= (step->software->sync.flags & VMM_SYNC_SIGNAL_AT_SUBMISSION
				       ? steps->submitted
				       : steps->done);
}

/*
 * Returns the first buffer that only signals precede, or NULL. A buffer need not wait for these:
 * they wait for the buffers before them.
 */
static struct vmm_step *buffer_behind_signals(const struct vmm_steps *steps)
{
	const struct vmm_list *link;

	vmm_list_for_each (link, &steps->queue) {
		struct vmm_step *step = vmm_container_of(link, struct vmm_step, link);

		if (step->kind != VMM_STEP_SIGNAL)
			return step->kind == VMM_STEP_BUFFER ? step : NULL;
	}
	return NULL;
}

/* Returns a step that can be processed now, or NULL: the head, or a buffer behind signals. */
static struct vmm_step *actionable(const struct vmm_context *context)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_steps *steps = &context->steps;

	vmm_assert_held(&context->device->adapter->state_lock);
	if (vmm_list_empty(&steps->queue))
		return NULL;
	struct vmm_step *step = vmm_container_of(steps->queue.next, struct vmm_step, link);
	bool can = true;

	if (step->kind == VMM_STEP_SIGNAL)
		can = is_due(step) || is_hopeless(context);
	else if (step->kind == VMM_STEP_WAIT && step->begun)
		can = step->completed ||
		      (!step->completing && (is_ending(context) || is_hopeless(context)));
	if (can)
		return step;
	return step->kind == VMM_STEP_SIGNAL && steps->holding ? buffer_behind_signals(steps)
							       : NULL;
}

static void release_buffer(struct vmm_sched *sched, struct vmm_step *step)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_dma *dma = vmm_container_of(step, struct vmm_dma, step);

	vmm_assert_held(&sched->adapter->state_lock);
	pop(sched, step);
	dma->work.held = false;
	if (vmm_unlikely(atomic_load(&sched->adapter->removed))) {
		vmm_packet_retired_locked(sched, &dma->packet);
		return;
	}
	vmm_list_push_back(&sched->prepare, &dma->packet.link);
	VMM_COUNT_PACKETS_LOCKED(sched->prepare_count, 1u);
}

/*
 * MFN-31: reports the end of a wait or signal that had been reported as holding the context, or as
 * held.
 */
VMM_COLD static void report_end(const struct vmm_step *step, bool dropped)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint32_t reason = dropped ? VIDMM_SYNC_DROPPED : VIDMM_SYNC_SIGNALED;

	vmm_assert_held(&step->context->device->adapter->state_lock);
	if (step->kind == VMM_STEP_WAIT)
		reason = dropped ? VIDMM_SYNC_GIVEN_UP : VIDMM_SYNC_RELEASED;
	vmm_sync_packet_report(&step->software->sync, reason, step->context->handle);
}

/*
 * The context has passed the step. Returns its software packet if all contexts have passed it: the
 * caller finishes it. Otherwise NULL.
 */
static struct vmm_software *leave_step(struct vmm_sched *sched, struct vmm_step *step, bool dropped)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_software *software = step->software;

	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_unlikely(step->announced))
		report_end(step, dropped);
	pop(sched, step);
	software->dropped |= dropped;
	return --software->left ? NULL : software;
}

/* MFN-31: returns whether an observer asked for events about held contexts. */
static bool is_observed(const struct vmm_context *context)
{
	return vmm_unlikely(
		vmm_observe_stamps(context->device->adapter->observe, VIDMM_EVENT_SYNC));
}

/*
 * Begins or checks the wait at the head. Returns false while the context must wait. (MFN-29,
 * TDRS-10)
 */
static bool check_wait(struct vmm_step *step, bool *dropped) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_context *context = step->context;

	vmm_assert_held(&step->context->device->adapter->state_lock);
	*dropped = false;
	if (step->completed)
		return true;
	if (!step->begun && !is_hopeless(context)) {
		uint32_t holds = is_observed(context) ? context->handle : 0;

		step->begun = true;
		if (vmm_sync_packet_begin(&step->software->sync, holds))
			return true;
		step->announced = holds != 0;
	}
	if (!step->begun)
		return *dropped = true;
	if (!is_ending(context) && !is_hopeless(context))
		return false;
	if (!vmm_sync_packet_withdraw(&step->software->sync)) {
		step->completing = true; /* satisfied just now: it will appear in completed_waits */
		return false;
	}
	atomic_store(&context->steps.given_up, true);
	return *dropped = true;
}

/* ---- without the state lock ---- */

static void free_software(struct vmm_software *software)
{
	vmm_sync_packet_free(&software->sync);
	vmm_free(software);
}

/*
 * Returns a software packet (a wait or signal) to the free list. Up to VMM_SPARE_SOFTWARE of them
 * are retained for reuse; they are charged to no process.
 */
static void release_software(struct vmm_sched *sched, struct vmm_software *software)
{
	vmm_free(software->more);
	software->more = NULL;
	vmm_state_lock(sched->adapter);
	bool stays = sched->free_software_count < VMM_SPARE_SOFTWARE;
	if (vmm_likely(stays)) {
		sched->free_software_count++;
		vmm_list_insert_after(&sched->free_software, &software->free);
	}
	vmm_state_unlock(sched->adapter);
	if (vmm_unlikely(!stays))
		free_software(software);
}

static bool may_rewind(const struct vmm_software *software)
{
	return software->sync.flags & VMM_SYNC_ALLOW_REWIND;
}

static void finish(struct vmm_sched *sched, struct vmm_software *software)
{
	if (software->sync.signal && !software->dropped && vmm_likely(!may_rewind(software)))
		vmm_sync_packet_signal(&software->sync);
	vmm_sync_packet_clear(&software->sync);
	release_software(sched, software);
}

/*
 * The scheduler whose completed_waits this thread will read next, after a signal that it does now.
 * Waits that the signal satisfies need not wake the worker. (In the simulator all threads share one
 * OS thread. While the variable is set, the thread that set it is on its way to that list.)
 */
static _Thread_local const struct vmm_sched *polling;

static void finish_and_poll(struct vmm_sched *sched, struct vmm_software *software)
{
	polling = sched;
	finish(sched, software);
	polling = NULL;
}

/*
 * Processes the steps of a context. Returns true if buffers joined the prepare queue. The state
 * lock is held, but is released while signals are done. So the caller must read completed_waits
 * afterwards.
 */
static bool advance_context_locked(struct vmm_sched *sched, struct vmm_context *context)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_step *step;
	bool released = false, dropped;

	vmm_assert_held(&sched->adapter->state_lock);
	context->steps.advancing = true;
	while ((step = actionable(context)) != NULL) {
		struct vmm_software *software = NULL;

		if (step->kind == VMM_STEP_BUFFER) {
			release_buffer(sched, step);
			released = true;
		} else if (step->kind == VMM_STEP_SIGNAL) {
			software = leave_step(sched, step, !is_due(step) || is_hopeless(context));
		} else if (check_wait(step, &dropped)) {
			software = leave_step(sched, step, dropped);
		}
		if (!software)
			continue;
		/*
		 * TDRS-11: a rewinding signal is done under this lock. So it precedes the largest
		 * value that a reset, which holds the lock, gives the fence, or it is dropped.
		 */
		if (vmm_unlikely(may_rewind(software)) && !software->dropped)
			vmm_sync_packet_signal(&software->sync);
		vmm_state_unlock(sched->adapter);
		finish_and_poll(sched, software);
		vmm_state_lock(sched->adapter);
	}
	context->steps.advancing = false;
	if (context->steps.ending)
		vmm_progress_signal(sched->adapter);
	return released;
}

/* Marks the completed waits. */
static void take_completed_waits_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_software *software = atomic_exchange(&sched->completed_waits, NULL);

	vmm_assert_held(&sched->adapter->state_lock);
	while (software) {
		struct vmm_software *next = software->next_completed;

		software->own.completed = true;
		software = next;
	}
}

static struct vmm_context *find_actionable(const struct vmm_sched *sched)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_list_for_each (link, &sched->stepping) {
		struct vmm_context *context =
			vmm_container_of(link, struct vmm_context, steps.link);

		if (!context->steps.advancing && actionable(context))
			return context;
	}
	return NULL;
}

bool vmm_steps_advance(struct vmm_sched *sched)
{
	struct vmm_context *context;
	bool released = false;

	if (vmm_likely(!atomic_load(&sched->stepping_count)))
		return false;
	vmm_state_lock(sched->adapter);
	do {
		take_completed_waits_locked(sched);
		while ((context = find_actionable(sched)) != NULL)
			released |= advance_context_locked(sched, context);
	} while (atomic_load(&sched->completed_waits));
	vmm_state_unlock(sched->adapter);
	return released;
}

void vmm_steps_poll(struct vmm_sched *sched)
{
	if (vmm_unlikely(vmm_steps_advance(sched)))
		vmm_worker_wake(sched);
}

/*
 * A wait has completed. Called on any thread, with any locks held but the sync lock. Once the
 * software packet is in the list, it and its context may be freed.
 */
static void on_wait_completed(struct vmm_sync_wait *wait)
{
	struct vmm_software *software = vmm_container_of(wait, struct vmm_software, sync.wait);
	struct vmm_adapter *adapter = software->own.context->device->adapter;
	struct vmm_sched *sched = adapter->sched;
	struct vmm_software *first = atomic_load(&sched->completed_waits);

	do
		software->next_completed = first;
	while (!atomic_compare_exchange_weak(&sched->completed_waits, &first, software));
	if (polling == sched)
		return;
	vmm_progress_signal(adapter); /* the worker may be waiting for the GPU */
	vmm_worker_wake(sched);
}

/* ---- queueing ---- */

static struct vmm_software *take_software(struct vmm_sched *sched)
{
	struct vmm_software *software = NULL;

	vmm_state_lock(sched->adapter);
	if (!vmm_list_empty(&sched->free_software)) {
		software = vmm_container_of(sched->free_software.next, struct vmm_software, free);
		vmm_list_remove(&software->free);
		sched->free_software_count--;
	}
	vmm_state_unlock(sched->adapter);
	return software ? software : vmm_calloc(1, sizeof(*software));
}

/* Initializes a software packet that no other thread can see yet. */
static NTSTATUS fill(struct vmm_software *software, struct vmm_context *context,
		     const struct vmm_sched_sync *sync)
{
	struct vmm_sync_packet_request request = sync->request;

	request.owner_bytes = sizeof(*software) + sync->other_count * sizeof(*software->more);
	if (vmm_unlikely(sync->other_count)) {
		software->more = vmm_calloc(sync->other_count, sizeof(*software->more));
		if (!software->more)
			return STATUS_NO_MEMORY;
	}
	vmm_status status = vmm_sync_packet_fill(&software->sync, context->device,
						 &context->steps.owner, &request);
	if (!vmm_ok(status))
		return status;
	software->sync.wait.on_end = on_wait_completed;
	software->sync.wait.running_callbacks = &context->device->adapter->sched->callbacks;
	software->own.context = context;
	software->left = 1 + sync->other_count;
	software->dropped = false;
	return STATUS_SUCCESS;
}

/*
 * Returns the live context of a process, or NULL. The caller holds the process lock, so the context
 * does not end.
 */
static struct vmm_context *find_context_locked(const struct vmm_process *process,
					       const void *hazard)
	VMM_REQUIRES(vmm_process_lock_class)
{
	const struct vmm_list *at, *link;

	vmm_assert_held(&process->lock);
	vmm_list_for_each (at, &process->devices) {
		const struct vmm_device *device =
			vmm_container_of(at, const struct vmm_device, process_link);

		vmm_list_for_each (link, &device->contexts) {
			struct vmm_context *context =
				vmm_container_of(link, struct vmm_context, link);

			if (context->hazard == hazard)
				return context;
		}
	}
	return NULL;
}

/* SYN-23, SYN-28: looks up the other contexts of a broadcast signal. */
static NTSTATUS find_others_locked(struct vmm_software *software, const struct vmm_context *first,
				   const struct vmm_sched_sync *sync)
	VMM_REQUIRES(vmm_process_lock_class)
{
	const struct vmm_process *process = first->device->process;

	vmm_assert_held(&first->device->process->lock);
	for (uint32_t i = 0; i < sync->other_count; i++) {
		struct vmm_context *context = find_context_locked(process, sync->others[i]);

		if (!context || context->device->adapter != first->device->adapter)
			return vmm_refuse_rule(
				process->world->observe, STATUS_INVALID_PARAMETER, "SYN-23",
				process->id, 0,
				"signal by several contexts: number %u of them is not a live "
				"context of the process on the adapter of the first",
				i + 2);
		if (vmm_device_lost(context->device))
			return STATUS_DEVICE_REMOVED;
		software->more[i].context = context;
	}
	return STATUS_SUCCESS;
}

static void push_locked(struct vmm_sched *sched, struct vmm_software *software,
			struct vmm_step *step) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	step->kind = software->sync.signal ? VMM_STEP_SIGNAL : VMM_STEP_WAIT;
	step->begun = step->completed = step->completing = step->announced = false;
	step->software = software;
	step->after = step->context->last_sequence;
	if (vmm_unlikely(software->sync.signal && step->context->steps.holding) &&
	    is_observed(step->context)) {
		step->announced = true;
		vmm_sync_packet_report(&software->sync, VIDMM_SYNC_QUEUED, step->context->handle);
	}
	push(sched, step);
}

/*
 * Queues `software` in its context, which the call keeps alive. Returns true if buffers joined the
 * prepare queue. (SYN-25)
 */
static bool queue_in_one(struct vmm_sched *sched, struct vmm_software *software)
{
	struct vmm_context *context = software->own.context;
	bool released = false;

	vmm_state_lock(sched->adapter);
	push_locked(sched, software, &software->own);
	if (!context->steps.advancing)
		released = advance_context_locked(sched, context);
	vmm_state_unlock(sched->adapter);
	if (vmm_unlikely(atomic_load(&sched->completed_waits)))
		released |= vmm_steps_advance(sched);
	return released;
}

/*
 * Queues the software packet in all its contexts, or in none. Sets `released` if buffers joined the
 * prepare queue. A context that ends waits for its steps.
 */
static NTSTATUS queue_in_all(struct vmm_sched *sched, struct vmm_software *software,
			     const struct vmm_sched_sync *sync, bool *released)
{
	struct vmm_context *context = software->own.context;
	struct vmm_process *process = context->device->process;
	NTSTATUS status;

	vmm_process_lock(process);
	status = find_others_locked(software, context, sync);
	vmm_state_lock(sched->adapter);
	if (NT_SUCCESS(status)) {
		push_locked(sched, software, &software->own);
		for (uint32_t i = 0; i < sync->other_count; i++)
			push_locked(sched, software, &software->more[i]);
	}
	vmm_state_unlock(sched->adapter);
	vmm_process_unlock(process);
	*released = vmm_steps_advance(sched);
	return status;
}

static NTSTATUS queue(struct vmm_sched *sched, struct vmm_software *software,
		      const struct vmm_sched_sync *sync, bool *released)
{
	if (vmm_unlikely(sync->other_count))
		return queue_in_all(sched, software, sync, released);
	*released = queue_in_one(sched, software);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_steps_queue(struct vmm_context *context, const struct vmm_sched_sync *sync,
			 bool *released)
{
	struct vmm_sched *sched = context->device->adapter->sched;
	struct vmm_software *software = take_software(sched);

	*released = false;
	if (!software)
		return STATUS_NO_MEMORY;
	NTSTATUS status = fill(software, context, sync);
	if (NT_SUCCESS(status)) {
		status = queue(sched, software, sync, released);
		if (!NT_SUCCESS(status))
			vmm_sync_packet_clear(&software->sync);
	}
	if (!NT_SUCCESS(status))
		release_software(sched, software);
	return status;
}

/* ---- the end ---- */

void vmm_steps_give_up(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	vmm_state_lock(adapter);
	context->steps.ending = true;
	vmm_state_unlock(adapter);
	vmm_steps_poll(adapter->sched);
}

void vmm_steps_destroy(struct vmm_sched *sched)
{
	uint32_t callbacks;

	while ((callbacks = atomic_load(&sched->callbacks)) != 0)
		(void)!vmm_os_wait(sched->adapter->os, &sched->callbacks, callbacks, VMM_OS_FOREVER,
				   "callbacks of completed waits", callbacks);
	while (!vmm_list_empty(&sched->free_software)) {
		struct vmm_software *software =
			vmm_container_of(sched->free_software.next, struct vmm_software, free);

		vmm_list_remove(&software->free);
		free_software(software);
	}
}
