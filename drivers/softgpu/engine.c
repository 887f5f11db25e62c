/* SPDX-License-Identifier: MIT */
/*
 * An engine: a ring of packets and the thread that executes them in order.
 *
 * Time: a packet keeps its engine busy from its start for as long as its commands charge (STALL, bytes of paging
 * copies); the thread waits out what execution itself did not take. Nothing to wait for, no wait. Waits are in
 * units of 100 ns; what is left of one goes over to the next packet.
 */
#include "softgpu_private.h"

#include "atomic.h"

#define WAIT_UNIT_NS    100u
/* WAIT: the engines tell each other when they signal, the CPU does not. */
#define POLL_FIRST_NS   10000u
#define POLL_LONGEST_NS 1000000u

uint64_t softgpu_now_ns(void)
{
	LARGE_INTEGER frequency;
	LARGE_INTEGER now = KeQueryPerformanceCounter(&frequency);
	uint64_t ticks = (uint64_t)now.QuadPart, hz = (uint64_t)frequency.QuadPart;

	return ticks / hz * 1000000000u + ticks % hz * 1000000000u / hz;
}

static int must_drop(struct softgpu_engine *engine)
{
	KIRQL irql;
	int drop;

	KeAcquireSpinLock(&engine->lock, &irql);
	drop = engine->is_resetting || engine->is_stopping;
	KeReleaseSpinLock(&engine->lock, irql);
	return drop;
}

/* Waits for a kick, at most `nanoseconds` (0: for ever). 0: drop the packet. */
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

void softgpu_engine_charge(struct softgpu_engine *engine, uint64_t bytes)
{
	uint64_t rate = engine->adapter->settings.engine_bytes_per_us;

	if (rate)
		engine->busy_until_ns += bytes / rate * 1000 + bytes % rate * 1000 / rate;
}

int softgpu_engine_stall(struct softgpu_engine *engine, uint64_t nanoseconds)
{
	int go_on;

	softgpu_bus_leave(softgpu_bus_of(engine->adapter));
	go_on = advance(engine, nanoseconds);
	softgpu_bus_enter(softgpu_bus_of(engine->adapter));
	return go_on;
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
	softgpu_bus_leave(softgpu_bus_of(engine->adapter));
	go_on = wait_for_kick(engine, *interval_ns);
	softgpu_bus_enter(softgpu_bus_of(engine->adapter));
	return go_on;
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

enum next { NEXT_PACKET, NEXT_NOTHING, NEXT_QUIET, NEXT_STOP };

/* The first that is not executed yet, nor dropped. */
static uint32_t first_queued(const struct softgpu_engine *engine)
{
	uint32_t head = softgpu_look(&engine->head), dropped = softgpu_look(&engine->dropped);

	return (int32_t)(dropped - head) > 0 ? dropped : head;
}

uint32_t softgpu_engine_queued(const struct softgpu_engine *engine)
{
	return softgpu_look(&engine->tail) - first_queued(engine);
}

/* Lock held. Who finds nothing has said that it sleeps: whoever submits after that look kicks. */
static int take_packet(struct softgpu_engine *engine, struct softgpu_packet *packet)
{
	uint32_t head = first_queued(engine);

	if (softgpu_look(&engine->is_removed))
		return 0;
	if (head == softgpu_look(&engine->tail)) {
		(void)softgpu_exchange(&engine->is_asleep, 1);
		if (head == softgpu_look(&engine->tail))
			return 0;
		softgpu_put(&engine->is_asleep, 0);
	}
	*packet = engine->queue[head & engine->mask];
	softgpu_put(&engine->head, head + 1);
	return 1;
}

static enum next take_next(struct softgpu_engine *engine, struct softgpu_packet *packet)
{
	enum next next;
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	softgpu_put(&engine->is_asleep, 0);
	if (engine->is_stopping) {
		next = NEXT_STOP;
	} else if (engine->is_resetting) {
		engine->is_resetting = 0;
		next = NEXT_QUIET;
	} else if (take_packet(engine, packet)) {
		engine->is_running = !packet->is_preemption;
		engine->running_fence = packet->fence;
		next = NEXT_PACKET;
	} else {
		next = NEXT_NOTHING;
	}
	KeReleaseSpinLock(&engine->lock, irql);
	return next;
}

/* Publishes the end of the running packet. 0: a reset came first, the packet counts as aborted and stays silent. */
static int publish(struct softgpu_engine *engine, uint32_t fence)
{
	KIRQL irql;
	int is_complete;

	KeAcquireSpinLock(&engine->lock, &irql);
	is_complete = !engine->is_resetting && !engine->is_stopping;
	if (is_complete) {
		engine->completed_fence = fence;
		engine->lost_fence =
			engine->interrupts ? 0 : fence; /* a later one tells of it, too */
	} else {
		engine->did_abort = 1;
		engine->aborted_fence = fence;
	}
	engine->is_running = 0;
	engine->is_hung = 0;
	KeReleaseSpinLock(&engine->lock, irql);
	return is_complete;
}

static void run(struct softgpu_engine *engine, const struct softgpu_packet *packet)
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
	softgpu_bus_enter(softgpu_bus_of(engine->adapter));
	status = softgpu_execute(engine, packet);
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
		case NEXT_NOTHING:
			(void)KeWaitForSingleObject(&engine->kick, Executive, KernelMode, FALSE,
						    NULL);
			break;
		case NEXT_QUIET:
			KeSetEvent(&engine->quiet, IO_NO_INCREMENT, FALSE);
			break;
		case NEXT_STOP:
			PsTerminateSystemThread(STATUS_SUCCESS);
			return;
		}
	}
}

/* Lock held. */
static void drop_queued(struct softgpu_engine *engine)
{
	softgpu_put(&engine->dropped, softgpu_look(&engine->tail));
}

/* What a submission does seldom, under the lock. */
static void prepare_submission(struct softgpu_engine *engine, const struct softgpu_packet *packet)
{
	KIRQL irql;

	KeAcquireSpinLock(&engine->lock, &irql);
	if (packet->is_preemption && engine->adapter->settings.preemption_aware)
		drop_queued(engine); /* PRE-04: all but the running one come again */
	/* Ids may begin anywhere (SUB-01): "nothing yet" is the one before the first, not 0 (TDR-15). */
	if (!softgpu_look(&engine->submitted_fence) && !softgpu_look(&engine->is_halted))
		engine->completed_fence = packet->fence - 1;
	KeReleaseSpinLock(&engine->lock, irql);
}

NTSTATUS softgpu_engine_submit(struct softgpu_engine *engine, const struct softgpu_packet *packet)
{
	uint32_t tail = softgpu_look(&engine->tail);

	if (packet->is_preemption || !softgpu_look(&engine->submitted_fence))
		prepare_submission(engine, packet);
	if (softgpu_look(&engine->is_halted))
		return STATUS_INVALID_DEVICE_STATE; /* between a reset and its restart (TDR-05) */
	if (softgpu_look(&engine->is_removed))
		return STATUS_SUCCESS; /* PNP-08: taken, and lost with the device */
	/* More than RequiredDmaQueueEntry (SUB-15); or what has been dropped is still in the way. */
	if (tail - first_queued(engine) >= engine->capacity ||
	    tail - softgpu_look(&engine->head) > engine->mask)
		return STATUS_INSUFFICIENT_RESOURCES;
	engine->queue[tail & engine->mask] = *packet;
	if (!packet->is_preemption)
		softgpu_put(&engine->submitted_fence, packet->fence);
	(void)softgpu_exchange(&engine->tail, tail + 1);
	/* Either it sees the packet before it sleeps, or here is seen that it does. */
	if (softgpu_look(&engine->is_asleep) && softgpu_exchange(&engine->is_asleep, 0))
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
	(void)KeWaitForSingleObject(&engine->quiet, Executive, KernelMode, FALSE, NULL);
}

NTSTATUS softgpu_engine_start(struct softgpu_engine *engine, struct softgpu_adapter *adapter,
			      uint32_t node)
{
	HANDLE handle;
	NTSTATUS status;

	memset(engine, 0, sizeof(*engine));
	engine->adapter = adapter;
	engine->node = node;
	/* One more than the port may have outstanding: for the preemption request that follows them. */
	engine->capacity = adapter->start_info.RequiredDmaQueueEntry + 1;
	/* Room for as many again as a preemption drops, which the thread may still be looking at. */
	while (engine->mask + 1 < 2 * engine->capacity)
		engine->mask = 2 * engine->mask + 1;
	engine->queue = ExAllocatePool2(
		POOL_FLAG_NON_PAGED, (engine->mask + 1) * sizeof(*engine->queue), SOFTGPU_POOL_TAG);
	if (!engine->queue)
		return STATUS_NO_MEMORY;
	KeInitializeSpinLock(&engine->lock);
	KeInitializeEvent(&engine->kick, SynchronizationEvent, FALSE);
	KeInitializeEvent(&engine->quiet, SynchronizationEvent, FALSE);
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
