/* SPDX-License-Identifier: MIT */
/*
 * An engine: a ring of packets and the thread that executes them in order.
 *
 * Time: from its start a packet keeps its engine busy for the time that its commands charge (STALL,
 * TRAFFIC, bytes of paging copies; timing.c). The thread waits for the part of this time that the
 * execution itself did not take. Waits are in units of 100 ns; the remainder is carried over to the
 * next packet.
 */
#include "softgpu_private.h"

#include "atomic.h"

#define WAIT_UNIT_NS    100u
/* WAIT polls memory: engines notify each other when they signal, but the CPU does not. */
#define POLL_FIRST_NS   10000u
#define POLL_LONGEST_NS 1000000u

uint64_t softgpu_clock(LARGE_INTEGER counter, LARGE_INTEGER frequency)
{
	uint64_t ticks = (uint64_t)counter.QuadPart, hz = (uint64_t)frequency.QuadPart;

	return ticks / hz * SOFTGPU_CLOCK_HZ + ticks % hz * SOFTGPU_CLOCK_HZ / hz;
}

uint64_t softgpu_now_ns(void)
{
	LARGE_INTEGER frequency;
	LARGE_INTEGER now = KeQueryPerformanceCounter(&frequency);

	return softgpu_clock(now, frequency);
}

static int must_drop(struct softgpu_engine *engine)
{
	KIRQL irql;
	int drop;

	KeAcquireSpinLock(&engine->lock, &irql);
	drop = engine->is_resetting || engine->is_stopping || softgpu_hw_must_leave(engine);
	KeReleaseSpinLock(&engine->lock, irql);
	return drop;
}

/*
 * Waits for a kick, at most `nanoseconds` (0: without limit). Returns 0 if the packet is to be
 * dropped.
 */
static int wait_for_kick(struct softgpu_engine *engine, uint64_t nanoseconds)
{
	LARGE_INTEGER timeout;

	if (must_drop(engine))
		return 0;
	timeout.QuadPart = -(LONGLONG)(nanoseconds / WAIT_UNIT_NS);
	(void)KeWaitForSingleObject(&engine->kick, Executive, KernelMode, FALSE,
				    nanoseconds ? &timeout : NULL);
	return !must_drop(engine);
}

static int advance(struct softgpu_engine *engine, uint64_t nanoseconds)
{
	engine->busy_until_ns += nanoseconds;
	for (;;) {
		uint64_t now = softgpu_now_ns();

		if (engine->busy_until_ns < now + WAIT_UNIT_NS)
			return 1;
		if (!wait_for_kick(engine, engine->busy_until_ns - now))
			return 0;
	}
}

int softgpu_engine_stall(struct softgpu_engine *engine, uint64_t nanoseconds)
{
	int go_on;

	softgpu_bus_leave(softgpu_bus_of(engine->adapter));
	go_on = advance(engine, nanoseconds);
	softgpu_bus_enter(softgpu_bus_of(engine->adapter));
	return go_on;
}

int softgpu_engine_breathe(struct softgpu_engine *engine)
{
	int go_on;

	softgpu_bus_leave(softgpu_bus_of(engine->adapter));
	go_on = !must_drop(engine) && advance(engine, 0);
	softgpu_bus_enter(softgpu_bus_of(engine->adapter));
	return go_on;
}

int softgpu_engine_catch_up(struct softgpu_engine *engine)
{
	return engine->busy_until_ns < softgpu_now_ns() + WAIT_UNIT_NS ||
	       softgpu_engine_breathe(engine);
}

int softgpu_engine_hang(struct softgpu_engine *engine)
{
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	engine->is_hung = 1;
	KeReleaseSpinLock(&engine->lock, irql);
	softgpu_bus_leave(softgpu_bus_of(engine->adapter));
	while (wait_for_kick(engine, 0))
		;
	softgpu_bus_enter(softgpu_bus_of(engine->adapter));
	return 0;
}

int softgpu_engine_poll(struct softgpu_engine *engine, uint64_t *interval_ns)
{
	int go_on;

	if (!*interval_ns)
		*interval_ns = POLL_FIRST_NS;
	else if (*interval_ns < POLL_LONGEST_NS)
		*interval_ns *= 2;
	if (softgpu_hw_yields(engine))
		return 0;
	softgpu_bus_leave(softgpu_bus_of(engine->adapter));
	go_on = wait_for_kick(engine, *interval_ns);
	softgpu_bus_enter(softgpu_bus_of(engine->adapter));
	return go_on;
}

int softgpu_engine_finish_time(struct softgpu_engine *engine)
{
	return advance(engine, 0);
}

void softgpu_engine_kick(struct softgpu_engine *engine)
{
	KeSetEvent(&engine->kick, IO_NO_INCREMENT, FALSE);
}

void softgpu_engine_signalled(struct softgpu_engine *engine)
{
	const struct softgpu_adapter *adapter = engine->adapter;
	uint32_t i, node;

	for (i = 0; i < adapter->link_count; i++)
		for (node = 0; node < SOFTGPU_NODES; node++)
			if (&adapter->link[i]->engines[node] != engine)
				KeSetEvent(&adapter->link[i]->engines[node].kick, IO_NO_INCREMENT,
					   FALSE);
}

enum next { NEXT_PACKET, NEXT_NONE, NEXT_RESET_DONE, NEXT_STOP };

/* Returns the number of the first packet that is neither executed nor dropped. */
static uint32_t first_queued(const struct softgpu_engine *engine)
{
	uint32_t head = softgpu_load32(&engine->head), dropped = softgpu_load32(&engine->dropped);

	return (int32_t)(dropped - head) > 0 ? dropped : head;
}

uint32_t softgpu_engine_queued(const struct softgpu_engine *engine)
{
	return softgpu_load32(&engine->tail) - first_queued(engine);
}

/*
 * Takes the first packet. Caller holds the engine's lock. If there is none, is_asleep is set before
 * `tail` is read again, so a thread that submits later sees it and kicks (Dekker pattern).
 */
static int take_packet(struct softgpu_engine *engine, struct softgpu_packet *packet)
{
	uint32_t head = first_queued(engine);

	if (softgpu_load32(&engine->is_removed))
		return 0;
	if (head == softgpu_load32(&engine->tail)) {
		(void)softgpu_exchange32(&engine->is_asleep, 1);
		if (head == softgpu_load32(&engine->tail))
			return 0;
		softgpu_store32(&engine->is_asleep, 0);
	}
	*packet = engine->queue[head & engine->mask];
	softgpu_store32(&engine->head, head + 1);
	return 1;
}

/* DMA buffers and hardware queues take turns. Caller holds the engine's lock. */
static int take_any(struct softgpu_engine *engine, struct softgpu_packet *packet)
{
	int taken = engine->hw_goes_first && softgpu_hw_take(engine, 0, packet);

	if (!taken && take_packet(engine, packet)) {
		engine->hw_goes_first = 1;
		return 1;
	}
	if (!taken)
		taken = softgpu_hw_take(engine, 0, packet) || softgpu_hw_take(engine, 1, packet);
	if (taken) {
		softgpu_store32(&engine->is_asleep, 0);
		engine->hw_goes_first = 0;
	}
	return taken;
}

static enum next take_next(struct softgpu_engine *engine, struct softgpu_packet *packet)
{
	enum next next;
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	softgpu_store32(&engine->is_asleep, 0);
	if (engine->is_stopping) {
		next = NEXT_STOP;
	} else if (engine->is_resetting) {
		engine->is_resetting = 0;
		next = NEXT_RESET_DONE;
	} else if (take_any(engine, packet)) {
		engine->is_running = !packet->is_preemption && !packet->hw;
		engine->running_fence = packet->fence;
		next = NEXT_PACKET;
	} else {
		next = NEXT_NONE;
	}
	KeReleaseSpinLock(&engine->lock, irql);
	return next;
}

/*
 * Publishes the end of the running packet. Returns 0 if a reset came first: the packet counts as
 * aborted and raises no interrupt.
 */
static int publish(struct softgpu_engine *engine, uint32_t fence)
{
	KIRQL irql;
	int is_complete;

	KeAcquireSpinLock(&engine->lock, &irql);
	is_complete = !engine->is_resetting && !engine->is_stopping;
	if (is_complete) {
		engine->completed_fence = fence;
		/* the interrupt of a later packet reports this one too */
		engine->lost_fence = engine->interrupts ? 0 : fence;
	} else {
		engine->did_abort = 1;
		engine->aborted_fence = fence;
	}
	engine->is_running = 0;
	engine->is_hung = 0;
	KeReleaseSpinLock(&engine->lock, irql);
	return is_complete;
}

static void run(struct softgpu_engine *engine, struct softgpu_packet *packet)
{
	uint64_t now = softgpu_now_ns();
	NTSTATUS status;

	if (packet->is_preemption) {
		softgpu_raise_preempted(engine, packet->fence, engine->completed_fence);
		return;
	}
	if (engine->busy_until_ns < now)
		engine->busy_until_ns = now;
	engine->interrupts = 1;
	if (packet->hw) {
		softgpu_hw_run(engine, packet);
		return;
	}
	softgpu_bus_enter(softgpu_bus_of(engine->adapter));
	status = packet->space ? softgpu_execute_virtual(engine, packet)
			       : softgpu_execute(engine, packet);
	softgpu_bus_leave(softgpu_bus_of(engine->adapter));
	if (status != SOFTGPU_ABORTED && !advance(engine, 0))
		status = SOFTGPU_ABORTED;
	if (!NT_SUCCESS(status))
		engine->interrupts = 1;
	if (!publish(engine, packet->fence))
		return;
	if (NT_SUCCESS(status))
		while (engine->interrupts--)
			softgpu_raise_completed(engine, packet->fence);
	else if (packet->space)
		softgpu_raise_page_faulted(engine, packet->fence, &engine->mmu.fault);
	else
		softgpu_raise_faulted(engine, packet->fence, status);
}

static VOID engine_thread(PVOID context)
{
	struct softgpu_engine *engine = context;
	struct softgpu_packet packet;

	for (;;) {
		switch (take_next(engine, &packet)) {
		case NEXT_PACKET:
			run(engine, &packet);
			break;
		case NEXT_NONE:
			(void)KeWaitForSingleObject(&engine->kick, Executive, KernelMode, FALSE,
						    NULL);
			break;
		case NEXT_RESET_DONE:
			KeSetEvent(&engine->reset_done, IO_NO_INCREMENT, FALSE);
			break;
		case NEXT_STOP:
			PsTerminateSystemThread(STATUS_SUCCESS);
			return;
		}
	}
}

/* Caller holds the engine's lock. */
static void drop_queued(struct softgpu_engine *engine)
{
	softgpu_store32(&engine->dropped, softgpu_load32(&engine->tail));
}

/* The part of a submission that is rare and needs the lock. */
static void prepare_submission(struct softgpu_engine *engine, const struct softgpu_packet *packet)
{
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	/* all packets but the running one are submitted again (PRE-04) */
	if (packet->is_preemption && engine->adapter->settings.preemption_aware)
		drop_queued(engine);
	/*
	 * Fence ids may begin at any value (SUB-01). "Nothing completed" is the id before the
	 * first, not 0 (TDR-15).
	 */
	if (!softgpu_load32(&engine->submitted_fence) && !softgpu_load32(&engine->is_halted))
		engine->completed_fence = packet->fence - 1;
	KeReleaseSpinLock(&engine->lock, irql);
}

NTSTATUS softgpu_engine_submit(struct softgpu_engine *engine, const struct softgpu_packet *packet)
{
	uint32_t tail = softgpu_load32(&engine->tail);

	if (packet->is_preemption || !softgpu_load32(&engine->submitted_fence))
		prepare_submission(engine, packet);
	if (softgpu_load32(&engine->is_halted))
		return STATUS_INVALID_DEVICE_STATE; /* between a reset and its restart (TDR-05) */
	if (softgpu_load32(&engine->is_removed))
		return STATUS_SUCCESS; /* accepted, and lost with the device (PNP-08) */
	/*
	 * Refuses more packets than RequiredDmaQueueEntry (SUB-15), and a submission for which
	 * dropped packets have left no place yet.
	 */
	if (tail - first_queued(engine) >= engine->capacity ||
	    tail - softgpu_load32(&engine->head) > engine->mask)
		return STATUS_INSUFFICIENT_RESOURCES;
	engine->queue[tail & engine->mask] = *packet;
	if (!packet->is_preemption)
		softgpu_store32(&engine->submitted_fence, packet->fence);
	(void)softgpu_exchange32(&engine->tail, tail + 1);
	/* Either the thread sees the packet before it sleeps, or this load sees that it sleeps. */
	if (softgpu_load32(&engine->is_asleep) && softgpu_exchange32(&engine->is_asleep, 0))
		KeSetEvent(&engine->kick, IO_NO_INCREMENT, FALSE);
	return STATUS_SUCCESS;
}

void softgpu_engine_reset(struct softgpu_engine *engine)
{
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	drop_queued(engine);
	engine->lost_fence = 0;
	engine->did_abort = 0;
	engine->is_resetting = 1;
	KeReleaseSpinLock(&engine->lock, irql);
	KeSetEvent(&engine->kick, IO_NO_INCREMENT, FALSE);
	(void)KeWaitForSingleObject(&engine->reset_done, Executive, KernelMode, FALSE, NULL);
}

NTSTATUS softgpu_engine_start(struct softgpu_engine *engine, struct softgpu_adapter *adapter,
			      uint32_t node)
{
	HANDLE handle;
	NTSTATUS status;

	memset(engine, 0, sizeof(*engine));
	engine->adapter = adapter;
	engine->node = node;
	softgpu_mmu_init(&engine->mmu, &adapter->memory, adapter->settings.page_table_levels);
	/* One more than the port may have outstanding: for a preemption request after them. */
	engine->capacity = adapter->start_info.RequiredDmaQueueEntry + 1;
	/* Twice that: a preemption drops packets that the thread may still be reading. */
	while (engine->mask + 1 < 2 * engine->capacity)
		engine->mask = 2 * engine->mask + 1;
	engine->queue = ExAllocatePool2(
		POOL_FLAG_NON_PAGED, (engine->mask + 1) * sizeof(*engine->queue), SOFTGPU_POOL_TAG);
	if (!engine->queue)
		return STATUS_NO_MEMORY;
	KeInitializeSpinLock(&engine->lock);
	KeInitializeEvent(&engine->kick, SynchronizationEvent, FALSE);
	KeInitializeEvent(&engine->reset_done, SynchronizationEvent, FALSE);
	KeInitializeEvent(&engine->hw_left, SynchronizationEvent, FALSE);
	status = PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, engine_thread,
				      engine);
	if (NT_SUCCESS(status)) {
		status = ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, NULL, KernelMode,
						   &engine->thread, NULL);
		ZwClose(handle);
	}
	if (!NT_SUCCESS(status)) {
		ExFreePoolWithTag(engine->queue, SOFTGPU_POOL_TAG);
		engine->queue = NULL;
	}
	return status;
}

void softgpu_engine_stop(struct softgpu_engine *engine)
{
	KIRQL irql;

	if (!engine->queue)
		return;
	KeAcquireSpinLock(&engine->lock, &irql);
	engine->is_stopping = 1;
	KeReleaseSpinLock(&engine->lock, irql);
	KeSetEvent(&engine->kick, IO_NO_INCREMENT, FALSE);
	(void)KeWaitForSingleObject(engine->thread, Executive, KernelMode, FALSE, NULL);
	ObDereferenceObject(engine->thread);
	ExFreePoolWithTag(engine->queue, SOFTGPU_POOL_TAG);
	engine->queue = NULL;
}
