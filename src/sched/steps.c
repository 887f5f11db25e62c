/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals in a context's queue (SYN-25, SYN-26, SUB-28). They are no packets of the hardware: a context has its
 * steps in order, and somebody takes them one after another as far as they go:
 *
 *   a wait       is begun when it is first, and goes when it is satisfied; whoever satisfies it says so (`told`), and the worker
 *                goes on. Nothing of the context that came after it has been prepared meanwhile, so it holds no memory and no
 *                place in anybody's order: the other contexts do not notice.
 *   a buffer     that came behind a wait joins the queue of packets to be prepared when it is first, as if it came only then.
 *                It has had its number since it was queued: what it names is busy (SUB-29), whoever waits for it waits.
 *   a signal     is done when the packet that it came after is complete, or with the GPU (SYN-27).
 *
 * Nothing that is prepared waits for a step, so what the GPU has, and memory management waits for, completes by itself.
 * Steps of a context that is lost are dropped (TDRS-11); so are those of one that ends, from the first wait that is not satisfied on.
 */
#include "sched/sched_private.h"

void vmm_steps_init(struct vmm_context *context)
{
	vmm_list_init(&context->steps.queue);
	vmm_list_init(&context->steps.link);
	vmm_sync_owner_init(&context->steps.owner, context->device);
}

/* ---- one context; state lock held ---- */

static void push(struct vmm_sched *sched, struct vmm_step *step)
{
	struct vmm_steps *steps = &step->context->steps;

	if (vmm_list_empty(&steps->queue)) {
		vmm_list_push_back(&sched->stepping, &steps->link);
		atomic_fetch_add(&sched->stepping_count, 1);
	}
	vmm_list_push_back(&steps->queue, &step->link);
	steps->holding += step->kind != VMM_STEP_SIGNAL;
}

static void pop(struct vmm_sched *sched, struct vmm_step *step)
{
	struct vmm_steps *steps = &step->context->steps;

	vmm_list_remove(&step->link);
	vmm_list_init(&step->link);
	steps->holding -= step->kind != VMM_STEP_SIGNAL;
	if (!vmm_list_empty(&steps->queue))
		return;
	vmm_list_remove(&steps->link);
	vmm_list_init(&steps->link);
	atomic_fetch_sub(&sched->stepping_count, 1);
}

bool vmm_steps_hold_locked(struct vmm_context *context, struct vmm_dma *dma)
{
	if (vmm_likely(!context->steps.holding))
		return false;
	dma->step = (struct vmm_step){.kind = VMM_STEP_BUFFER, .context = context};
	dma->work.held = true;
	push(context->device->adapter->sched, &dma->step);
	return true;
}

/* Nothing of it will be executed any more. */
static bool is_hopeless(const struct vmm_context *context)
{
	return vmm_device_lost(context->device) || atomic_load(&context->steps.given_up) ||
	       atomic_load(&context->device->adapter->removed);
}

/* Nobody waits for its waits any more. */
static bool is_ending(const struct vmm_context *context)
{
	return context->steps.ending || atomic_load(&context->device->ending);
}

static bool is_due(const struct vmm_step *step)
{
	const struct vmm_steps *steps = &step->context->steps;

	return step->after <= (step->software->sync.flags & VMM_SYNC_SIGNAL_AT_SUBMISSION
				       ? steps->submitted
				       : steps->done);
}

/* A buffer need not wait for signals that come before it, as they wait for the buffers before them. */
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

/* The step about which something can be done now: the first, or a buffer. */
static struct vmm_step *actionable(const struct vmm_context *context)
{
	const struct vmm_steps *steps = &context->steps;

	if (vmm_list_empty(&steps->queue))
		return NULL;
	struct vmm_step *step = vmm_container_of(steps->queue.next, struct vmm_step, link);
	bool can = true;

	if (step->kind == VMM_STEP_SIGNAL)
		can = is_due(step) || is_hopeless(context);
	else if (step->kind == VMM_STEP_WAIT && step->begun)
		can = step->told || (!step->over && (is_ending(context) || is_hopeless(context)));
	if (can)
		return step;
	return step->kind == VMM_STEP_SIGNAL && steps->holding ? buffer_behind_signals(steps)
							       : NULL;
}

static void release_buffer(struct vmm_sched *sched, struct vmm_step *step)
{
	struct vmm_dma *dma = vmm_container_of(step, struct vmm_dma, step);

	pop(sched, step);
	dma->work.held = false;
	if (vmm_unlikely(atomic_load(&sched->adapter->removed))) {
		vmm_packet_retired_locked(sched, &dma->packet);
		return;
	}
	vmm_list_push_back(&sched->prepare, &dma->packet.link);
	atomic_fetch_add(&sched->prepare_count, 1);
}

/* MFN-31: what was said to be held, or to stand behind it, is so no longer. */
VMM_COLD static void say_end(const struct vmm_step *step, bool dropped)
{
	uint32_t reason = dropped ? VIDMM_SYNC_DROPPED : VIDMM_SYNC_SIGNALED;

	if (step->kind == VMM_STEP_WAIT)
		reason = dropped ? VIDMM_SYNC_GIVEN_UP : VIDMM_SYNC_RELEASED;
	vmm_sync_packet_say(&step->software->sync, reason, step->context->handle);
}

/* The context is beyond the step. What all that named it are beyond is to be finished. */
static struct vmm_software *leave(struct vmm_sched *sched, struct vmm_step *step, bool dropped)
{
	struct vmm_software *software = step->software;

	if (vmm_unlikely(step->said))
		say_end(step, dropped);
	pop(sched, step);
	software->dropped |= dropped;
	return --software->left ? NULL : software;
}

/* MFN-31: who is held by what is said to whoever listens. */
static bool is_heard(const struct vmm_context *context)
{
	return vmm_unlikely(
		vmm_observe_stamps(context->device->adapter->observe, VIDMM_EVENT_SYNC));
}

/* False: it waits. */
static bool look_at_wait(struct vmm_step *step, bool *dropped)
{
	struct vmm_context *context = step->context;

	*dropped = false;
	if (step->told)
		return true;
	if (!step->begun && !is_hopeless(context)) {
		uint32_t holds = is_heard(context) ? context->handle : 0;

		step->begun = true;
		if (vmm_sync_packet_begin(&step->software->sync, holds))
			return true;
		step->said = holds != 0;
	}
	if (!step->begun)
		return *dropped = true;
	if (!is_ending(context) && !is_hopeless(context))
		return false;
	if (!vmm_sync_packet_withdraw(&step->software->sync)) {
		step->over = true; /* it was satisfied just now: `told` will say so */
		return false;
	}
	atomic_store(&context->steps.given_up, true);
	return *dropped = true;
}

/* ---- what has no lock ---- */

static void free_software(struct vmm_software *software)
{
	vmm_sync_packet_free(&software->sync);
	vmm_free(software);
}

/* Some stay for the next ones; nobody pays for those. */
static void give_software(struct vmm_sched *sched, struct vmm_software *software)
{
	vmm_free(software->more);
	software->more = NULL;
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	bool stays = sched->free_software_count < VMM_SPARE_SOFTWARE;
	if (vmm_likely(stays)) {
		sched->free_software_count++;
		vmm_list_insert_after(&sched->free_software, &software->free);
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	if (vmm_unlikely(!stays))
		free_software(software);
}

static bool rewinds(const struct vmm_software *software)
{
	return software->sync.flags & VMM_SYNC_ALLOW_REWIND;
}

static void finish(struct vmm_sched *sched, struct vmm_software *software)
{
	if (software->sync.signal && !software->dropped && vmm_likely(!rewinds(software)))
		vmm_sync_packet_signal(&software->sync);
	vmm_sync_packet_clear(&software->sync);
	give_software(sched, software);
}

/*
 * Whose `told` this thread is going to look at, having done a signal: the worker need not be woken for what that satisfies. (With the
 * simulator all threads are one. While it is set somebody is on his way there, whoever set it.)
 */
static _Thread_local const struct vmm_sched *looking;

static void finish_and_look(struct vmm_sched *sched, struct vmm_software *software)
{
	looking = sched;
	finish(sched, software);
	looking = NULL;
}

/* True: packets to be prepared have come. State lock held, but while signals are done: then the caller looks at `told` afterwards. */
static bool go_locked(struct vmm_sched *sched, struct vmm_context *context)
{
	struct vmm_os_mutex *lock = &sched->adapter->state_lock;
	struct vmm_step *step;
	bool released = false, dropped;

	context->steps.advancing = true;
	while ((step = actionable(context)) != NULL) {
		struct vmm_software *software = NULL;

		if (step->kind == VMM_STEP_BUFFER) {
			release_buffer(sched, step);
			released = true;
		} else if (step->kind == VMM_STEP_SIGNAL) {
			software = leave(sched, step, !is_due(step) || is_hopeless(context));
		} else if (look_at_wait(step, &dropped)) {
			software = leave(sched, step, dropped);
		}
		if (!software)
			continue;
		/* TDRS-11: it comes before the largest value that a reset, with this lock held, gives the fence, or never. */
		if (vmm_unlikely(rewinds(software)) && !software->dropped)
			vmm_sync_packet_signal(&software->sync);
		vmm_os_mutex_unlock(lock);
		finish_and_look(sched, software);
		vmm_os_mutex_lock(lock);
	}
	context->steps.advancing = false;
	if (context->steps.ending)
		vmm_progress_signal(sched->adapter);
	return released;
}

/* The waits that are over. */
static void take_told_locked(struct vmm_sched *sched)
{
	struct vmm_software *software = atomic_exchange(&sched->told, NULL);

	while (software) {
		struct vmm_software *next = software->next_told;

		software->own.told = true;
		software = next;
	}
}

static struct vmm_context *find_actionable(const struct vmm_sched *sched)
{
	const struct vmm_list *link;

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
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	do {
		take_told_locked(sched);
		while ((context = find_actionable(sched)) != NULL)
			released |= go_locked(sched, context);
	} while (atomic_load(&sched->told));
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	return released;
}

void vmm_steps_look(struct vmm_sched *sched)
{
	if (vmm_unlikely(vmm_steps_advance(sched)))
		vmm_worker_wake(sched);
}

/* From whatever thread, with whatever locks. Once it is in the list the software, and its context, may go. */
static void tell(struct vmm_sync_wait *wait)
{
	struct vmm_software *software = vmm_container_of(wait, struct vmm_software, sync.wait);
	struct vmm_adapter *adapter = software->own.context->device->adapter;
	struct vmm_sched *sched = adapter->sched;
	struct vmm_software *first = atomic_load(&sched->told);

	do
		software->next_told = first;
	while (!atomic_compare_exchange_weak(&sched->told, &first, software));
	if (looking == sched)
		return;
	vmm_progress_signal(adapter); /* the worker may wait for the GPU */
	vmm_worker_wake(sched);
}

/* ---- the way in ---- */

static struct vmm_software *take_software(struct vmm_sched *sched)
{
	struct vmm_software *software = NULL;

	vmm_os_mutex_lock(&sched->adapter->state_lock);
	if (!vmm_list_empty(&sched->free_software)) {
		software = vmm_container_of(sched->free_software.next, struct vmm_software, free);
		vmm_list_remove(&software->free);
		sched->free_software_count--;
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	return software ? software : vmm_calloc(1, sizeof(*software));
}

/* Before anybody knows of it. */
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
	software->sync.wait.tell = tell;
	software->sync.wait.tellers = &context->device->adapter->sched->tellers;
	software->own.context = context;
	software->left = 1 + sync->other_count;
	software->dropped = false;
	return STATUS_SUCCESS;
}

/* Of a process; with its lock held it does not go. NULL: there is none such. */
static struct vmm_context *find_context_locked(const struct vmm_process *process, const void *live)
{
	const struct vmm_list *at, *link;

	vmm_list_for_each (at, &process->devices) {
		const struct vmm_device *device =
			vmm_container_of(at, const struct vmm_device, process_link);

		vmm_list_for_each (link, &device->contexts) {
			struct vmm_context *context =
				vmm_container_of(link, struct vmm_context, link);

			if (context->live == live)
				return context;
		}
	}
	return NULL;
}

/* SYN-23, SYN-28: the others of a broadcast. */
static NTSTATUS find_others_locked(struct vmm_software *software, const struct vmm_context *first,
				   const struct vmm_sched_sync *sync)
{
	const struct vmm_process *process = first->device->process;

	for (uint32_t i = 0; i < sync->other_count; i++) {
		struct vmm_context *context = find_context_locked(process, sync->others[i]);

		if (!context || context->device->adapter != first->device->adapter) {
			vmm_finding(process->world->observe, "SYN-23", process->id, 0,
				    "signal by several contexts: number %u of them is not a live "
				    "context of the process on the adapter of the first",
				    i + 2);
			return STATUS_INVALID_PARAMETER;
		}
		if (vmm_device_lost(context->device))
			return STATUS_DEVICE_REMOVED;
		software->more[i].context = context;
	}
	return STATUS_SUCCESS;
}

static void push_locked(struct vmm_sched *sched, struct vmm_software *software,
			struct vmm_step *step)
{
	step->kind = software->sync.signal ? VMM_STEP_SIGNAL : VMM_STEP_WAIT;
	step->begun = step->told = step->over = step->said = false;
	step->software = software;
	step->after = step->context->last_sequence;
	if (vmm_unlikely(software->sync.signal && step->context->steps.holding) &&
	    is_heard(step->context)) {
		step->said = true;
		vmm_sync_packet_say(&software->sync, VIDMM_SYNC_QUEUED, step->context->handle);
	}
	push(sched, step);
}

/* In the queues of all contexts, or none. A context that ends waits for its steps. True: packets to be prepared have come. */
static NTSTATUS queue(struct vmm_sched *sched, struct vmm_software *software,
		      const struct vmm_sched_sync *sync, bool *released)
{
	struct vmm_context *context = software->own.context;
	struct vmm_process *process = context->device->process;
	struct vmm_os_mutex *lock = &sched->adapter->state_lock;
	NTSTATUS status = STATUS_SUCCESS;

	if (vmm_unlikely(sync->other_count)) {
		vmm_os_mutex_lock(&process->lock);
		status = find_others_locked(software, context, sync);
	}
	vmm_os_mutex_lock(lock);
	if (NT_SUCCESS(status)) {
		push_locked(sched, software, &software->own);
		for (uint32_t i = 0; i < sync->other_count; i++)
			push_locked(sched, software, &software->more[i]);
	}
	if (vmm_likely(!sync->other_count)) {
		/* The call keeps its context, not the others. */
		if (!context->steps.advancing)
			*released = go_locked(sched, context);
		vmm_os_mutex_unlock(lock);
		if (vmm_unlikely(atomic_load(&sched->told)))
			*released |= vmm_steps_advance(sched);
		return STATUS_SUCCESS;
	}
	vmm_os_mutex_unlock(lock);
	vmm_os_mutex_unlock(&process->lock);
	*released = vmm_steps_advance(sched);
	return status;
}

NTSTATUS vmm_sched_synchronize(struct vmm_context *context, const struct vmm_sched_sync *sync)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_sched *sched = adapter->sched;
	struct vmm_software *software = take_software(sched);
	bool released = false;

	if (!software)
		return STATUS_NO_MEMORY;
	NTSTATUS status = fill(software, context, sync);
	if (NT_SUCCESS(status)) {
		status = queue(sched, software, sync, &released);
		if (!NT_SUCCESS(status))
			vmm_sync_packet_clear(&software->sync);
	}
	if (!NT_SUCCESS(status))
		give_software(sched, software);
	if (vmm_unlikely(released))
		vmm_prepare_pump(adapter);
	return status;
}

/* ---- the end ---- */

void vmm_steps_give_up(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	context->steps.ending = true;
	vmm_os_mutex_unlock(&adapter->state_lock);
	vmm_steps_look(adapter->sched);
}

void vmm_steps_end(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	bool over = false;

	vmm_steps_give_up(context);
	while (!over) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_steps_look(adapter->sched);
		vmm_os_mutex_lock(&adapter->state_lock);
		over = vmm_list_empty(&context->steps.queue) && !context->steps.advancing;
		vmm_os_mutex_unlock(&adapter->state_lock);
		if (!over && !vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY)))
			vmm_sched_abandon(adapter);
	}
	vmm_sync_owner_end(context->device->process->world, &context->steps.owner);
}

void vmm_steps_destroy(struct vmm_sched *sched)
{
	uint32_t tellers;

	while ((tellers = atomic_load(&sched->tellers)) != 0)
		(void)!vmm_os_wait(sched->adapter->os, &sched->tellers, tellers, VMM_OS_FOREVER,
				   "who ends a wait", tellers);
	while (!vmm_list_empty(&sched->free_software)) {
		struct vmm_software *software =
			vmm_container_of(sched->free_software.next, struct vmm_software, free);

		vmm_list_remove(&software->free);
		free_software(software);
	}
}
