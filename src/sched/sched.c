/* SPDX-License-Identifier: MIT */
/*
 * The scheduler of an adapter: its creation and end, the system device and the paging contexts,
 * waits for the GPU, and the submission of paging packets for the memory manager (struct
 * vmm_memory_engine).
 */
#include "sched/sched_private.h"

static uint64_t submit_paging(struct vmm_adapter *adapter,
			      const struct vmm_paging_portion *portions, uint32_t count)
	VMM_REQUIRES(vmm_paging_lock_class);
static vmm_status wait_locked(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			      uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class);

static void wake(struct vmm_adapter *adapter)
{
	vmm_worker_wake(adapter->sched);
}

const struct vmm_memory_engine vmm_sched_memory_engine = {
	.submit_paging = submit_paging,
	.wait_locked = wait_locked,
	.switch_context = vmm_sched_switch_context,
	.kick = vmm_sched_kick,
	.hand_over = vmm_sched_hand_over,
	.wake = wake,
};

/* A device is ending. Its calls may wait for buffers that are queued behind a wait. */
static void device_ends(struct vmm_adapter *adapter)
{
	vmm_steps_poll(adapter->sched);
}

vmm_status vmm_sched_create(struct vmm_adapter *adapter, uint32_t first_fence)
{
	struct vmm_sched *sched = vmm_calloc(1, sizeof(*sched));

	if (!sched)
		return VMM_NO_MEMORY;
	sched->adapter = adapter;
	sched->next_fence = first_fence ? first_fence : 0xFFFFFF00u;
	vmm_list_init(&sched->address_updates);
	vmm_list_init(&sched->prepare);
	vmm_list_init(&sched->free_paging);
	vmm_list_init(&sched->mapped_dma);
	vmm_list_init(&sched->stepping);
	vmm_list_init(&sched->ddi_creations);
	vmm_list_init(&sched->free_software);
	for (uint32_t n = 0; n < VMM_NODES_MAX; n++) {
		vmm_list_init(&sched->node[n].paging);
		vmm_list_init(&sched->node[n].contexts);
		vmm_list_init(&sched->node[n].hardware);
		sched->node[n].last_completed = sched->node[n].last_submitted =
			sched->node[n].newest = sched->next_fence - 1;
		atomic_store(&sched->node[n].reported, sched->next_fence - 1);
	}
	for (uint32_t i = 0; i < VMM_PAGING_PACKETS; i++)
		vmm_list_push_back(&sched->free_paging, &sched->paging_packet[i].link);
	adapter->sched = sched;
	return VMM_OK;
}

static void destroy_system_objects(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;

	for (uint32_t i = 0; i < adapter->physical_adapters; i++) {
		if (adapter->paging_context[i])
			vmm_port_destroy_context(adapter->port, adapter->paging_context[i]);
		adapter->paging_context[i] = NULL;
	}
	if (sched->system_device)
		vmm_port_destroy_device(adapter->port, sched->system_device);
	sched->system_device = NULL;
}

/*
 * SCH-09, SUB-18: paging runs in a system device and context on the miniport's paging node. A link
 * has one such context for each adapter.
 */
static vmm_status create_system_objects(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	DXGK_DEVICEINFO info = {0};
	HANDLE device = sched;
	NTSTATUS status = vmm_port_create_device(adapter->port, &device, true, &info);

	if (!NT_SUCCESS(status))
		return status;
	sched->system_device = device;
	for (uint32_t i = 0; i < adapter->physical_adapters && NT_SUCCESS(status); i++) {
		DXGKARG_CREATECONTEXT args = {.hContext = adapter,
					      .NodeOrdinal = adapter->paging_node,
					      .EngineAffinity = 1u << i};

		args.Flags.SystemContext = 1;
		status = vmm_port_create_context(adapter->port, device, &args);
		if (NT_SUCCESS(status))
			adapter->paging_context[i] = args.hContext;
	}
	if (!NT_SUCCESS(status))
		destroy_system_objects(sched);
	return status;
}

vmm_status vmm_sched_start(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;
	vmm_status status;

	sched->caps = vmm_port_caps(adapter->port);
	adapter->sync_driver = &vmm_sched_sync_driver;
	adapter->device_ends = device_ends;
	status = vmm_display_create(adapter);
	if (vmm_ok(status))
		status = vmm_periodic_create(sched);
	if (vmm_ok(status))
		status = vmm_hw_start(sched);
	if (vmm_ok(status))
		status = create_system_objects(sched);
	if (!vmm_ok(status))
		return status;
	status = vmm_os_thread_create(adapter->os, "vidsch worker", vmm_worker_main, adapter,
				      &sched->worker);
	if (!vmm_ok(status))
		vmm_sched_stop(adapter);
	return status;
}

void vmm_sched_stop(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	vmm_watch_stop(sched);
	if (sched->worker) {
		atomic_store(&sched->quit, true);
		vmm_worker_wake(sched);
		vmm_os_thread_join(sched->worker);
		sched->worker = NULL;
	}
	vmm_periodic_stop(sched);
	destroy_system_objects(sched);
}

void vmm_sched_destroy(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	vmm_assert(atomic_load(&sched->prepare_count) == 0 &&
		   atomic_load(&sched->ready_count) == 0);
	vmm_steps_destroy(sched);
	adapter->sched = NULL;
	vmm_hw_destroy(sched);
	vmm_display_destroy(sched);
	vmm_free(sched->periodic);
	vmm_free(sched->slots);
	vmm_free(sched);
}

/*
 * Nothing completes any more: the adapter was removed, or the simulator has reported a deadlock.
 * Paging lock held.
 */
static void give_up_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	atomic_store(&adapter->removed, true);
	atomic_store(&adapter->closed, true);
	vmm_world_next_epoch(adapter->world);
	vmm_queue_abandon_locked(adapter);
}

void vmm_sched_abandon(struct vmm_adapter *adapter)
{
	/* Under the paging lock no thread is preparing the packets that are abandoned. */
	vmm_paging_lock(adapter);
	give_up_locked(adapter);
	vmm_paging_unlock(adapter);
}

static void finish_waiting(struct vmm_adapter *adapter, vmm_status status)
{
	if (!vmm_ok(status))
		vmm_sched_abandon(adapter);
}

void vmm_sched_wait(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
		    uint32_t reason)
{
	if (!vmm_timeline_done(adapter, timeline, sequence))
		finish_waiting(adapter,
			       vmm_wait_timeline(adapter, timeline, sequence, reason, NULL));
}

void vmm_sched_wait_idle(struct vmm_adapter *adapter, uint32_t reason)
{
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++) {
		uint64_t sequence = atomic_load(&adapter->timeline[t].queued);

		if (!vmm_timeline_quiet(adapter, t, sequence, false))
			finish_waiting(adapter,
				       vmm_wait_timeline_passed(adapter, t, sequence, reason));
	}
}

/*
 * Called on the worker, which therefore submits the packets that other threads would leave to it.
 */
void vmm_sched_feed_locked(struct vmm_adapter *adapter)
{
	const struct vmm_sched *sched = adapter->sched;

	vmm_assert_held(&adapter->submit_lock);
	if (vmm_likely(!atomic_load(&sched->ready_count) && !atomic_load(&sched->chores)))
		return;
	vmm_paging_lock(adapter);
	vmm_queue_drain_locked(adapter->sched);
	vmm_paging_commit(adapter);
}

void vmm_sched_feed_until_idle(struct vmm_adapter *adapter, uint32_t reason)
{
	vmm_assert_held(&adapter->submit_lock);
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++) {
		uint64_t sequence = atomic_load(&adapter->timeline[t].queued);

		for (;;) {
			uint32_t seen = atomic_load(&adapter->progress);

			vmm_sched_feed_locked(adapter);
			if (vmm_timeline_quiet(adapter, t, sequence, false))
				break;
			finish_waiting(adapter, vmm_wait_progress(adapter, seen, reason));
		}
	}
}

/*
 * Waits for that packet and all earlier prepared packets of the timeline, of any context. The
 * caller holds the paging lock, so no other thread can submit: this one does that while it waits
 * (queue.c).
 */
static vmm_status wait_locked(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			      uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		/*
		 * The reset of the adapter needs the lock, and the packets will not complete by
		 * themselves.
		 */
		if (vmm_unlikely(atomic_load(&adapter->recovering)))
			return VMM_DEVICE_REMOVED;
		vmm_queue_drain_locked(adapter->sched);
		if (vmm_timeline_quiet(adapter, timeline, sequence, true))
			return VMM_OK;
		vmm_status status = vmm_wait_progress(adapter, seen, reason);
		if (!vmm_ok(status))
			return status;
	}
}

DXGKARG_PATCH vmm_patch_of(const DXGKARG_SUBMITCOMMAND *submit, void *dma_buffer)
{
	DXGKARG_PATCH patch = {
		.hContext = submit->hContext,
		.DmaBufferSegmentId = submit->DmaBufferSegmentId,
		.DmaBufferPhysicalAddress = submit->DmaBufferPhysicalAddress,
		.pDmaBuffer = dma_buffer,
		.DmaBufferSize = submit->DmaBufferSize,
		.DmaBufferSubmissionStartOffset = submit->DmaBufferSubmissionStartOffset,
		.DmaBufferSubmissionEndOffset = submit->DmaBufferSubmissionEndOffset,
		.pDmaBufferPrivateData = submit->pDmaBufferPrivateData,
		.DmaBufferPrivateDataSize = submit->DmaBufferPrivateDataSize,
		.DmaBufferPrivateDataSubmissionStartOffset =
			submit->DmaBufferPrivateDataSubmissionStartOffset,
		.DmaBufferPrivateDataSubmissionEndOffset =
			submit->DmaBufferPrivateDataSubmissionEndOffset,
		.SubmissionFenceId = submit->SubmissionFenceId,
		.EngineOrdinal = submit->EngineOrdinal,
	};

	patch.Flags.Paging = submit->Flags.Paging;
	patch.Flags.NullRendering = submit->Flags.NullRendering; /* SUB-22 */
	patch.Flags.Present = submit->Flags.Present;
	return patch;
}

/*
 * Takes the next number of the paging timeline and a packet for each of its parts. Returns false if
 * not enough packets are free now.
 */
static bool take_paging_packets(struct vmm_sched *sched, struct vmm_list *taken, uint32_t count,
				uint64_t *sequence) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_timeline *timeline = &sched->adapter->timeline[sched->adapter->paging_timeline];
	uint32_t had = 0;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(sched->adapter);
	uint64_t next = atomic_load_explicit(&timeline->queued, memory_order_relaxed) + 1;
	bool open = next - atomic_load(&timeline->completed) < VMM_PAGING_PACKETS;

	while (open && had < count && !vmm_list_empty(&sched->free_paging)) {
		struct vmm_list *link = sched->free_paging.next;

		vmm_list_remove(link);
		vmm_list_push_back(taken, link);
		had++;
	}
	if (had == count) {
		sched->paging_parts[next % VMM_PAGING_PACKETS] = (uint8_t)count;
		atomic_store_explicit(&timeline->queued, next, memory_order_relaxed);
		*sequence = next;
	}
	while (had < count && !vmm_list_empty(taken)) {
		struct vmm_list *link = taken->next;

		vmm_list_remove(link);
		vmm_list_push_back(&sched->free_paging, link);
	}
	vmm_state_unlock(sched->adapter);
	return had == count;
}

static void submit_part(struct vmm_sched *sched, struct vmm_packet *packet, uint64_t sequence,
			const struct vmm_paging_portion *portion)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
	*packet = (struct vmm_packet){
		.paging = true,
		.synchronous = portion->synchronous,
		.node = vmm_paging_node_of(adapter, portion->physical),
		.timeline = adapter->paging_timeline,
		.sequence = sequence,
		.paging_needed = portion->after,
		.fence = vmm_fence_next(sched),
	};
	vmm_list_init(&packet->link);
	packet->submit = (DXGKARG_SUBMITCOMMAND){
		.hContext = adapter->paging_context[portion->physical],
		.DmaBufferSegmentId = portion->segment,
		.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)portion->address,
		.DmaBufferSize = portion->size_bytes,
		.DmaBufferSubmissionStartOffset = portion->start,
		.DmaBufferSubmissionEndOffset = portion->end,
		.pDmaBufferPrivateData = portion->private_data,
		.DmaBufferPrivateDataSize = portion->private_bytes,
		.DmaBufferPrivateDataSubmissionStartOffset = portion->private_start,
		.DmaBufferPrivateDataSubmissionEndOffset = portion->private_end,
		.SubmissionFenceId = packet->fence,
		.NodeOrdinal = adapter->paging_node,
		.EngineOrdinal = portion->physical,
	};
	packet->submit.Flags.Paging = 1;
	/*
	 * PAT-17, PAG-33: patched without lists. After a failure, which is fatal, the adapter is
	 * dead.
	 */
	DXGKARG_PATCH patch = vmm_patch_of(&packet->submit, portion->cpu);
	(void)!vmm_ok(vmm_port_patch(adapter->port, &patch));
	vmm_queue_ready(sched, packet);
}

bool vmm_paging_packets_take(struct vmm_sched *sched, struct vmm_list *taken, uint32_t count,
			     uint64_t *sequence)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_timeline *timeline = &adapter->timeline[adapter->paging_timeline];

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_init(taken);
	while (!take_paging_packets(sched, taken, count, sequence)) {
		uint64_t oldest = atomic_load(&timeline->completed) + 1;

		if (vmm_ok(wait_locked(adapter, adapter->paging_timeline, oldest,
				       VIDMM_WAIT_PAGING_BUFFER)))
			continue;
		/* The reset drops this packet like those in flight. */
		if (atomic_load(&adapter->recovering)) {
			*sequence = atomic_fetch_add(&timeline->queued, 1) + 1;
			return false;
		}
		give_up_locked(adapter);
	}
	return true;
}

static uint64_t submit_paging(struct vmm_adapter *adapter,
			      const struct vmm_paging_portion *portions, uint32_t count)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_sched *sched = adapter->sched;
	struct vmm_list taken;
	uint64_t sequence = 0;

	vmm_assert_held(&adapter->paging_lock);
	if (!vmm_paging_packets_take(sched, &taken, count, &sequence))
		return sequence;
	for (uint32_t i = 0; i < count; i++) {
		struct vmm_list *link = taken.next;

		vmm_list_remove(link);
		submit_part(sched, vmm_container_of(link, struct vmm_packet, link), sequence,
			    &portions[i]);
	}
	return sequence;
}

struct vmm_sched_statistics vmm_sched_statistics(struct vmm_adapter *adapter)
{
	vmm_state_lock(adapter);
	const struct vmm_sched_statistics figures = {
		.patches = adapter->sched->patches,
		.splits = atomic_load(&adapter->sched->splits),
	};
	vmm_state_unlock(adapter);
	return figures;
}
