/* SPDX-License-Identifier: MIT */
/*
 * The engine's part of hardware queues: which queue's command is next, its execution and its end.
 *
 * A command may leave the engine before its end: its context is suspended, or it waits for a value
 * while the engine has other work. Its queue then keeps where execution continues. A command that
 * is interrupted inside begins anew there, which is why only WAIT, STALL, FILL and COPY may be.
 *
 * A fault stops the engine's hardware queues until the engine is reset, so that the reset harms no
 * other context. DMA buffers are executed meanwhile.
 */
#include "softgpu_private.h"

#include "atomic.h"

/* ---- the choice ---- */

static int is_ready(const struct softgpu_engine *engine, const struct softgpu_hw_queue *queue)
{
	const struct softgpu_context *context = queue->context;

	return queue->count && queue != engine->hw_running && !engine->is_hw_stopped &&
	       !softgpu_load32(&engine->is_removed) && !context->is_lost &&
	       !context->is_suspended && !context->is_suspending;
}

/* By the band of the context, then by its priority in the process, then in turn. */
static int goes_before(const struct softgpu_hw_queue *a, const struct softgpu_hw_queue *b)
{
	if (a->context->band != b->context->band)
		return a->context->band > b->context->band;
	if (a->context->in_process_priority != b->context->in_process_priority)
		return a->context->in_process_priority > b->context->in_process_priority;
	return a->turn < b->turn;
}

static struct softgpu_hw_queue *best(const struct softgpu_engine *engine, int can_be_blocked)
{
	struct softgpu_hw_queue *queue, *found = NULL;

	for (queue = engine->hw_queues; queue; queue = queue->next)
		if (is_ready(engine, queue) && !queue->is_blocked == !can_be_blocked &&
		    (!found || goes_before(queue, found)))
			found = queue;
	return found;
}

int softgpu_hw_take(struct softgpu_engine *engine, int can_be_blocked,
		    struct softgpu_packet *packet)
{
	struct softgpu_hw_queue *queue = best(engine, can_be_blocked);
	const struct softgpu_hw_command *command;

	if (!queue)
		return 0;
	command = &queue->ring[queue->head];
	queue->turn = ++engine->hw_turn;
	engine->hw_running = queue;
	engine->hw_polls = 0;
	*packet = (struct softgpu_packet){.space = &queue->context->space,
					  .address = command->address,
					  .length = command->length,
					  .hw = queue,
					  .report = command->report,
					  .progress_address = command->progress_address,
					  .progress_id = command->progress_id};
	return 1;
}

/* ---- while a command is executed ---- */

/* A hung command hears of no suspension. */
int softgpu_hw_must_leave(const struct softgpu_engine *engine)
{
	const struct softgpu_context *context;

	if (!engine->hw_running)
		return 0;
	context = engine->hw_running->context;
	return context->is_lost || engine->hw_running->is_ending ||
	       (context->is_suspending && !engine->is_hung);
}

/*
 * At first the command gives way only to work that is not blocked itself. After an interval, also
 * to blocked commands, whose values nothing else compares.
 */
int softgpu_hw_yields(struct softgpu_engine *engine)
{
	KIRQL irql;
	int yields;

	KeAcquireSpinLock(&engine->lock, &irql);
	yields = engine->hw_running && (softgpu_engine_queued(engine) || best(engine, 0) ||
					(engine->hw_polls && best(engine, 1)));
	engine->hw_polls++;
	KeReleaseSpinLock(&engine->lock, irql);
	return yields;
}

/* ---- the end ---- */

enum end { END_COMPLETE, END_LATER, END_LOST, END_FAULT };

/*
 * A command that is complete while its context is being suspended stays in the queue with nothing
 * left to execute: its progress fence is stored after the context has been resumed.
 */
static enum end end_of(const struct softgpu_engine *engine, NTSTATUS status)
{
	const struct softgpu_context *context = engine->hw_running->context;

	if (context->is_lost || engine->hw_running->is_ending || engine->is_stopping)
		return END_LOST;
	if (!NT_SUCCESS(status) && status != SOFTGPU_ABORTED)
		return END_FAULT;
	return NT_SUCCESS(status) && !context->is_suspending ? END_COMPLETE : END_LATER;
}

static void leave(struct softgpu_engine *engine, enum end end, const struct softgpu_packet *packet,
		  volatile uint64_t *progress)
{
	struct softgpu_hw_queue *queue = packet->hw;

	switch (end) {
	case END_COMPLETE:
		queue->head = (queue->head + 1) % SOFTGPU_HW_QUEUE_DEPTH;
		queue->count--;
		queue->is_blocked = 0;
		/* From here on the port may destroy the queue. */
		if (progress)
			softgpu_store(progress, packet->progress_id);
		break;
	case END_LATER:
		queue->ring[queue->head].address = packet->address;
		queue->ring[queue->head].length = packet->length;
		queue->ring[queue->head].report = packet->report;
		queue->is_blocked = engine->hw_polls != 0;
		break;
	case END_FAULT:
		queue->context->is_lost = 1;
		queue->context->invalidate = SOFTGPU_GUILTY;
		engine->is_hw_stopped = 1;
		break;
	case END_LOST:
		break;
	}
}

/* How the command ended, and which interrupts and wake-ups follow from that. */
struct told {
	enum end end;
	int is_suspended, has_left;
	struct softgpu_context *context;
	uint64_t suspend_fence;
};

static struct told finish(struct softgpu_engine *engine, NTSTATUS status,
			  const struct softgpu_packet *packet, volatile uint64_t *progress)
{
	struct softgpu_context *context = packet->hw->context;
	struct told told = {.context = context};
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	told.end = end_of(engine, status);
	told.has_left = engine->is_hw_leaving;
	if (context->is_suspending && !context->is_lost) {
		told.is_suspended = told.end == END_LATER;
		told.suspend_fence = context->suspend_fence;
		context->is_suspending = 0;
		context->is_suspended = 1;
	}
	leave(engine, told.end, packet, progress);
	engine->hw_running = NULL;
	engine->is_hung = 0;
	engine->is_hw_leaving = 0;
	KeReleaseSpinLock(&engine->lock, irql);
	return told;
}

/* The engine's page walk finds the progress fence, as it finds the memory of commands. */
static NTSTATUS find_progress(struct softgpu_engine *engine, const struct softgpu_packet *packet,
			      volatile uint64_t **progress)
{
	uint64_t bytes = sizeof(uint64_t);

	*progress = NULL;
	if (!packet->progress_address)
		return STATUS_SUCCESS;
	*progress = (volatile uint64_t *)(void *)softgpu_translate(
		&engine->mmu, packet->space, packet->progress_address, &bytes, SOFTGPU_WRITE);
	return *progress ? STATUS_SUCCESS : SOFTGPU_PAGE_FAULT;
}

void softgpu_hw_run(struct softgpu_engine *engine, struct softgpu_packet *packet)
{
	struct softgpu_bus *bus = softgpu_bus_of(engine->adapter);
	volatile uint64_t *progress = NULL;
	struct told told;
	NTSTATUS status;

	softgpu_bus_enter(bus);
	status = softgpu_execute_virtual(engine, packet);
	softgpu_bus_leave(bus);
	if (NT_SUCCESS(status) && !softgpu_engine_finish_time(engine))
		status = SOFTGPU_ABORTED;
	softgpu_bus_enter(bus);
	if (NT_SUCCESS(status))
		status = find_progress(engine, packet, &progress);
	told = finish(engine, status, packet, progress);
	softgpu_bus_leave(bus);
	if (told.end == END_COMPLETE)
		while (engine->interrupts--)
			softgpu_raise_fence_signaled(engine);
	if (told.end == END_FAULT)
		softgpu_raise_hw_page_faulted(engine, packet, &engine->mmu.fault);
	if (told.is_suspended)
		softgpu_raise_suspended(engine, told.context, told.suspend_fence);
	if (told.has_left)
		KeSetEvent(&engine->hw_left, IO_NO_INCREMENT, FALSE);
}

/* ---- loss ---- */

void softgpu_hw_lose_all(struct softgpu_engine *engine)
{
	struct softgpu_hw_queue *queue;

	for (queue = engine->hw_queues; queue; queue = queue->next)
		queue->context->is_lost = 1;
}

void softgpu_hw_await_left(struct softgpu_engine *engine)
{
	KIRQL irql;
	int waits;

	KeAcquireSpinLock(&engine->lock, &irql);
	waits = engine->hw_running &&
		(engine->hw_running->context->is_lost || engine->hw_running->is_ending);
	engine->is_hw_leaving = waits;
	KeReleaseSpinLock(&engine->lock, irql);
	if (!waits)
		return;
	softgpu_engine_kick(engine);
	(void)KeWaitForSingleObject(&engine->hw_left, Executive, KernelMode, FALSE, NULL);
}
