/* SPDX-License-Identifier: MIT */
/*
 * Waits of the CPU (cpu_wait.c) and of a context's queue (packet.c): MFN-14, MFN-17. A wait has a
 * node in the heap of each fence that has not reached its value. The one sync lock of the world
 * guards all heaps. A signal that finds waiters removes those that it satisfies, and wakes them
 * after it has released the lock. The asserts on this path are vmm_assert_debug: in release builds
 * they made a signal that wakes one thread 17 % slower.
 */
#include "sync/sync_private.h"

/* ---- waits and heaps; the caller holds the sync lock ---- */

/* Keeps the object in world->sync_awaited while its heap is not empty (MFN-26). */
static void note_awaited(struct vmm_sync_object *object) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&object->world->sync_lock);
	if (!object->heap == vmm_list_empty(&object->awaited))
		return;
	if (object->heap) {
		vmm_list_push_back(&object->world->sync_awaited, &object->awaited);
		return;
	}
	vmm_list_remove(&object->awaited);
	vmm_list_init(&object->awaited);
}

/* Adds to the number of nodes in heaps or about to be. Written under the sync lock only. */
static void count_awaited(struct vmm_world *world, uint32_t more) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&world->sync_lock);
	atomic_store_explicit(
		&world->sync_awaited_count,
		atomic_load_explicit(&world->sync_awaited_count, memory_order_relaxed) + more,
		memory_order_relaxed);
}

static void insert_node(struct vmm_sync_node *node) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&node->object->world->sync_lock);
	vmm_sync_heap_insert(&node->object->heap, node);
	node->wait->missing++;
	note_awaited(node->object);
}

/*
 * Counts the waiter before it reads the value, for signals (fence.c) and for stores without notice
 * (vmm_sync_reread). The locked instruction of vmm_sync_count_waiter orders both.
 */
static void begin_node(struct vmm_sync_node *node) VMM_REQUIRES(vmm_sync_lock_class)
{
	struct vmm_sync_object *object = node->object;

	vmm_assert_held(&node->object->world->sync_lock);
	count_awaited(object->world, 1);
	vmm_sync_count_waiter(object, 1);
	if (vmm_sync_reached(object, node->value)) {
		vmm_sync_count_waiter(object, UINT32_MAX);
		count_awaited(object->world, UINT32_MAX);
	} else {
		insert_node(node);
	}
}

static void remove_node(struct vmm_sync_node *node) VMM_REQUIRES(vmm_sync_lock_class)
{
	struct vmm_sync_object *object = node->object;

	vmm_assert_held(&node->object->world->sync_lock);
	vmm_assert_debug(node->wait->missing && atomic_load(&object->waiters));
	vmm_sync_heap_remove(&object->heap, node);
	vmm_sync_count_waiter(object, UINT32_MAX);
	count_awaited(object->world, UINT32_MAX);
	node->wait->missing--;
	note_awaited(object);
}

static void remove_all_nodes(struct vmm_sync_wait *wait) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&wait->world->sync_lock);
	if (wait->queued) {
		vmm_sync_queue_leave_locked(wait);
		return;
	}
	for (uint32_t i = 0; i < wait->count && wait->missing; i++)
		if (wait->nodes[i].rank)
			remove_node(&wait->nodes[i]);
}

/*
 * All values must be reached at the same time. Nodes whose fence was rewound since are inserted
 * again. (MFN-14, FEN-03)
 */
static bool is_satisfied(struct vmm_sync_wait *wait) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&wait->world->sync_lock);
	if (wait->any)
		return wait->missing < wait->count;
	if (!wait->missing && wait->count > 1)
		for (uint32_t i = 0; i < wait->count; i++)
			if (!wait->nodes[i].rank)
				begin_node(&wait->nodes[i]);
	return !wait->missing;
}

bool vmm_sync_wait_begin_locked(struct vmm_sync_wait *wait)
{
	vmm_assert_held(&wait->world->sync_lock);
	vmm_assert_debug(vmm_sync_wait_is_valid_locked(wait) && !wait->done && !wait->missing);
	for (uint32_t i = 0; i < wait->count; i++)
		begin_node(&wait->nodes[i]);
	wait->done = wait->any ? wait->missing < wait->count : !wait->missing;
	if (wait->done)
		remove_all_nodes(wait);
	return wait->done;
}

bool vmm_sync_wait_withdraw_locked(struct vmm_sync_wait *wait)
{
	vmm_assert_held(&wait->world->sync_lock);
	vmm_assert_debug(vmm_sync_wait_is_valid_locked(wait));
	remove_all_nodes(wait);
	bool was_done = wait->done;
	wait->done = true;
	return !was_done;
}

/*
 * The nodes of a sleeper stay in the heaps until the sleeper withdraws its wait: their cache lines
 * are those of the sleeper's CPU. A WaitAny of 64 fences has 63 such nodes, and each would cost the
 * signal a transfer or two.
 */
static void end_wait(struct vmm_sync_wait *wait, vmm_status status, struct vmm_sync_batch *batch)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&wait->world->sync_lock);
	vmm_assert_debug(!wait->done && batch->count < VMM_SYNC_BATCH);
	wait->status = status;
	wait->done = true;
	if (wait->sleeper) {
		batch->words[batch->count++] = &wait->sleeper->state;
		atomic_fetch_or(&wait->sleeper->state, VMM_SLEEPER_DONE);
		return;
	}
	remove_all_nodes(wait);
	if (wait->running_callbacks)
		atomic_fetch_add(wait->running_callbacks, 1);
	batch->words[batch->count++] = NULL;
	vmm_list_remove(&wait->link);
	vmm_list_push_back(&batch->completed, &wait->link);
}

/*
 * The words may be gone by now, with the stack frame of the sleeper. A wake-up only uses the
 * address.
 */
void vmm_sync_batch_flush(struct vmm_sync_batch *batch)
{
	vmm_assert_debug(vmm_sync_batch_is_valid(batch));
	for (uint32_t i = 0; i < batch->count; i++)
		if (batch->words[i])
			vmm_os_wake(batch->os, batch->words[i], UINT32_MAX);
	while (!vmm_list_empty(&batch->completed)) {
		struct vmm_sync_wait *wait =
			vmm_container_of(batch->completed.next, struct vmm_sync_wait, link);

		_Atomic uint32_t *running_callbacks = wait->running_callbacks;

		vmm_list_remove(&wait->link);
		/*
		 * Then the wait may be gone. The count in `running_callbacks` keeps its owner
		 * alive.
		 */
		wait->on_end(wait);
		if (running_callbacks && atomic_fetch_sub(running_callbacks, 1) == 1)
			vmm_os_wake(batch->os, running_callbacks, UINT32_MAX);
	}
	batch->count = 0;
}

/* ---- deliveries ---- */

/* Objects that are not by value: ends the oldest waits that can take all they name. */
static bool deliver_queue(struct vmm_sync_object *object, struct vmm_sync_batch *batch)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	struct vmm_sync_wait *wait;

	vmm_assert_held(&object->world->sync_lock);
	while (batch->count < VMM_SYNC_BATCH) {
		wait = vmm_sync_queue_next_locked(object);
		if (!wait)
			return true;
		end_wait(wait, VMM_OK, batch);
	}
	return false;
}

/* Ends the waits that the value satisfies, and no others. (MFN-16) */
bool vmm_sync_deliver_locked(struct vmm_sync_object *object, struct vmm_sync_batch *batch)
{
	vmm_assert_held(&object->world->sync_lock);
	vmm_assert_debug(vmm_sync_object_is_consistent_locked(object));
	if (!object->heap)
		return deliver_queue(object, batch);
	/*
	 * The value is read again for each node: a wait for several fences, one of which was
	 * rewound, may have been inserted again.
	 */
	while (object->heap && vmm_sync_reached(object, object->heap->value)) {
		struct vmm_sync_node *node = object->heap;

		if (batch->count == VMM_SYNC_BATCH)
			return false;
		remove_node(node);
		if (!node->wait->done && is_satisfied(node->wait))
			end_wait(node->wait, VMM_OK, batch);
	}
	return true;
}

void vmm_sync_wake_clients(struct vmm_sync_object *object)
{
	struct vmm_fence_page *page = atomic_load(&object->page);

	if (vmm_likely(!page) || !atomic_load(&page->sleepers))
		return;
	atomic_fetch_add(&page->turns, 1);
	vmm_os_wake_shared(&page->turns);
}

void vmm_sync_deliver(struct vmm_sync_object *object)
{
	struct vmm_sync_batch batch;
	bool all;

	vmm_sync_wake_clients(object);
	vmm_sync_batch_init(&batch, object->world->os);
	do {
		vmm_sync_lock(object->world);
		all = vmm_sync_deliver_locked(object, &batch);
		vmm_sync_unlock(object->world);
		vmm_sync_batch_flush(&batch);
	} while (!all);
}

bool vmm_sync_cancel_locked(struct vmm_sync_object *object, struct vmm_sync_batch *batch)
{
	struct vmm_sync_node *parked = NULL;

	vmm_assert_held(&object->world->sync_lock);
	vmm_assert(vmm_sync_object_is_consistent_locked(object));
	while (object->heap && batch->count < VMM_SYNC_BATCH) {
		struct vmm_sync_node *node = object->heap;

		if (node->wait->of_cpu) {
			remove_node(node);
			if (!node->wait->done)
				end_wait(node->wait, VMM_CANCELLED, batch); /* SFL-30 */
			continue;
		}
		vmm_sync_heap_remove(&object->heap, node);
		node->rank = 1;
		node->parent = parked;
		parked = node;
	}
	bool all = !object->heap;
	while (parked) {
		struct vmm_sync_node *next = parked->parent;

		vmm_sync_heap_insert(&object->heap, parked);
		parked = next;
	}
	note_awaited(object);
	return all;
}

void vmm_sync_cancel_events(struct vmm_device *device)
{
	struct vmm_sync_batch batch;
	bool all;

	vmm_sync_batch_init(&batch, device->adapter->os);
	do {
		vmm_sync_lock(device->process->world);
		while (!vmm_list_empty(&device->sync_waits) && batch.count < VMM_SYNC_BATCH)
			end_wait(vmm_container_of(device->sync_waits.next, struct vmm_sync_wait,
						  link),
				 VMM_CANCELLED, &batch);
		all = vmm_list_empty(&device->sync_waits);
		vmm_sync_unlock(device->process->world);
		vmm_sync_batch_flush(&batch);
	} while (!all);
}

/* ---- charges of a wait ---- */

vmm_status vmm_sync_charge(const struct vmm_process *process, struct vmm_sync_wait *wait,
			   const char *what, uint64_t bytes)
{
	vmm_assert(!wait->payer);
	if (vmm_likely(!process->account))
		return VMM_OK;
	if (!vmm_process_charge_queued(process, 0, what, bytes))
		return VMM_NO_MEMORY;
	wait->payer = vmm_account_get(process->account);
	wait->charged_bytes = bytes;
	return VMM_OK;
}

void vmm_sync_refund(struct vmm_sync_wait *wait)
{
	struct vmm_account *payer = wait->payer;

	if (vmm_likely(!payer))
		return;
	wait->payer = NULL;
	vmm_account_refund(payer, wait->charged_bytes);
	vmm_account_put(payer);
}

vmm_status vmm_sync_keep_event(const struct vmm_device *device, uint64_t event,
			       struct vmm_sync_wait *wait)
{
	struct vmm_process *process = device->process;
	vmm_status status = vmm_os_event_open(event, &wait->event);

	if (!vmm_ok(status))
		return status;
	if (vmm_unlikely(!vmm_account_take_event(process->account))) {
		vmm_reason(device->adapter->observe, VMM_NO_MEMORY, process->id, 0,
			   "a wait with an event: process %u already has %u, its limit",
			   process->id, process->account->events_limit);
		vmm_os_event_close(wait->event);
		return VMM_NO_MEMORY;
	}
	wait->account = process->account;
	return VMM_OK;
}

void vmm_sync_drop_event(const struct vmm_sync_wait *wait)
{
	vmm_os_event_close(wait->event);
	vmm_account_put_event(wait->account);
}
