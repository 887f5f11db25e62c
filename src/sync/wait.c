/* SPDX-License-Identifier: MIT */
/*
 * Waits (MFN-11, MFN-14, MFN-15, MFN-17, MFN-19): a wait has a node in the heap of each fence that has not reached its value, all under the one sync lock. A signal
 * that finds waiters takes out those that it satisfies and wakes them when it holds no lock any more.
 */
#include "sync/sync_private.h"

/* ---- waits and heaps; sync lock held ---- */

/* MFN-26: those that somebody waits for are known. */
static void note_awaited(struct vmm_sync_object *object)
{
	if (!object->heap == vmm_list_empty(&object->awaited))
		return;
	if (object->heap) {
		vmm_list_push_back(&object->world->sync_awaited, &object->awaited);
		return;
	}
	vmm_list_remove(&object->awaited);
	vmm_list_init(&object->awaited);
}

/* How many nodes are in heaps, or about to be. Only who has the sync lock writes it. */
static void count_awaited(struct vmm_world *world, uint32_t more)
{
	atomic_store_explicit(
		&world->sync_awaited_count,
		atomic_load_explicit(&world->sync_awaited_count, memory_order_relaxed) + more,
		memory_order_relaxed);
}

static void stand_in(struct vmm_sync_node *node)
{
	vmm_sync_heap_insert(&node->object->heap, node);
	node->wait->missing++;
	note_awaited(node->object);
}

/*
 * Counts as a waiter from before the look at the value on, for signals (fence.c) and for stores that nobody tells of
 * (vmm_sync_reread); the locked instruction of the one is the other's, too.
 */
static void begin_node(struct vmm_sync_node *node)
{
	struct vmm_sync_object *object = node->object;

	count_awaited(object->world, 1);
	vmm_sync_count_waiter(object, 1);
	if (vmm_sync_reached(object, node->value)) {
		vmm_sync_count_waiter(object, UINT32_MAX);
		count_awaited(object->world, UINT32_MAX);
	} else {
		stand_in(node);
	}
}

static void take_out(struct vmm_sync_node *node)
{
	struct vmm_sync_object *object = node->object;

	vmm_sync_heap_remove(&object->heap, node);
	vmm_sync_count_waiter(object, UINT32_MAX);
	count_awaited(object->world, UINT32_MAX);
	node->wait->missing--;
	note_awaited(object);
}

static void take_out_all(struct vmm_sync_wait *wait)
{
	if (wait->queued) {
		vmm_sync_queue_leave_locked(wait);
		return;
	}
	for (uint32_t i = 0; i < wait->count && wait->missing; i++)
		if (wait->nodes[i].rank)
			take_out(&wait->nodes[i]);
}

/* MFN-14: all of them at one look; those that were there and were rewound since stand in again. */
static bool is_satisfied(struct vmm_sync_wait *wait)
{
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
	for (uint32_t i = 0; i < wait->count; i++)
		begin_node(&wait->nodes[i]);
	wait->done = wait->any ? wait->missing < wait->count : !wait->missing;
	if (wait->done)
		take_out_all(wait);
	return wait->done;
}

bool vmm_sync_wait_withdraw_locked(struct vmm_sync_wait *wait)
{
	if (wait->done)
		return false;
	take_out_all(wait);
	wait->done = true;
	return true;
}

/* From here on the wait is its sleeper's again. */
static void end_wait(struct vmm_sync_wait *wait, vmm_status status, struct vmm_sync_batch *batch)
{
	take_out_all(wait);
	wait->status = status;
	wait->done = true;
	if (wait->sleeper) {
		batch->words[batch->count++] = &wait->sleeper->state;
		atomic_fetch_or(&wait->sleeper->state, VMM_SLEEPER_DONE);
		return;
	}
	if (wait->tellers)
		atomic_fetch_add(wait->tellers, 1);
	batch->words[batch->count++] = NULL;
	vmm_list_remove(&wait->link);
	vmm_list_push_back(&batch->told, &wait->link);
}

/* The words may be gone by now, with the frame of who slept there: a wake only compares addresses. */
void vmm_sync_batch_flush(struct vmm_sync_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		if (batch->words[i])
			vmm_os_wake(batch->os, batch->words[i], UINT32_MAX);
	while (!vmm_list_empty(&batch->told)) {
		struct vmm_sync_wait *wait =
			vmm_container_of(batch->told.next, struct vmm_sync_wait, link);

		_Atomic uint32_t *tellers = wait->tellers;

		vmm_list_remove(&wait->link);
		wait->tell(
			wait); /* from here on the wait may be gone, and without the count whoever is told */
		if (tellers && atomic_fetch_sub(tellers, 1) == 1)
			vmm_os_wake(batch->os, tellers, UINT32_MAX);
	}
	batch->count = 0;
}

/* Not by value: the oldest of those that can have all they want. */
static bool deliver_queue(struct vmm_sync_object *object, struct vmm_sync_batch *batch)
{
	struct vmm_sync_wait *wait;

	while (batch->count < VMM_SYNC_BATCH) {
		wait = vmm_sync_queue_next_locked(object);
		if (!wait)
			return true;
		end_wait(wait, VMM_OK, batch);
	}
	return false;
}

bool vmm_sync_deliver_locked(struct vmm_sync_object *object, struct vmm_sync_batch *batch)
{
	if (!object->heap)
		return deliver_queue(object, batch);
	/* Looked at each time: a wait for many of which another was rewound stands in again, and may be for a value that has gone. */
	while (object->heap && vmm_sync_reached(object, object->heap->value)) {
		struct vmm_sync_node *node = object->heap;

		if (batch->count == VMM_SYNC_BATCH)
			return false;
		take_out(node);
		if (is_satisfied(node->wait))
			end_wait(node->wait, VMM_OK, batch);
	}
	return true;
}

void vmm_sync_deliver(struct vmm_sync_object *object)
{
	struct vmm_sync_batch batch;
	bool all;

	vmm_sync_tell_clients(object);
	vmm_sync_batch_init(&batch, object->world->os);
	do {
		vmm_os_mutex_lock(&object->world->sync_lock);
		all = vmm_sync_deliver_locked(object, &batch);
		vmm_os_mutex_unlock(&object->world->sync_lock);
		vmm_sync_batch_flush(&batch);
	} while (!all);
}

bool vmm_sync_cancel_locked(struct vmm_sync_object *object, struct vmm_sync_batch *batch)
{
	struct vmm_sync_node *kept = NULL;

	while (object->heap && batch->count < VMM_SYNC_BATCH) {
		struct vmm_sync_node *node = object->heap;

		if (node->wait->of_cpu) {
			end_wait(node->wait, VMM_CANCELLED, batch); /* SFL-30 */
			continue;
		}
		vmm_sync_heap_remove(&object->heap, node);
		node->rank = 1;
		node->parent = kept;
		kept = node;
	}
	bool all = !object->heap;
	while (kept) {
		struct vmm_sync_node *next = kept->parent;

		vmm_sync_heap_insert(&object->heap, kept);
		kept = next;
	}
	note_awaited(object);
	return all;
}

/* ---- what a client waits for ---- */

static vmm_status check_list(const struct vmm_process *process, const struct vmm_sync_list *list)
{
	if (vmm_likely(list->count && !(list->flags & ~VMM_SYNC_WAIT_ANY)))
		return VMM_OK;
	vmm_finding(process->world->observe, "MFN-14", process->id, 0,
		    "wait from the CPU: %u objects, flags 0x%x: at least one object is needed, and "
		    "WaitAny is the only flag",
		    list->count, list->flags);
	return VMM_INVALID_PARAMETER;
}

VMM_COLD static vmm_status refuse(const struct vmm_sync *sync, uint64_t value)
{
	struct vmm_observe *observe = sync->process->world->observe;

	if (!vmm_sync_is_monitored(sync->object)) {
		vmm_finding(observe, vmm_sync_cpu_rule(sync->object, true), sync->process->id,
			    sync->handle,
			    "wait from the CPU: 0x%08x is not a monitored fence but of type %u",
			    sync->handle, sync->object->type);
		return VMM_INVALID_PARAMETER;
	}
	if (sync->flags & VMM_SYNC_NO_WAIT) {
		bool denied = sync->denied & VMM_SYNC_NO_WAIT;

		vmm_finding(observe, denied ? "SHR-10" : "SFL-16", sync->process->id, sync->handle,
			    "wait: 0x%08x was %s", sync->handle,
			    denied ? "opened from an NT handle without the right to wait"
				   : "made or opened with NoWait");
		return VMM_ACCESS_DENIED;
	}
	vmm_finding(observe, "MFN-08", sync->process->id, sync->handle,
		    "wait: the value %llu of 0x%08x is more than 2^31 - 1 above %llu, and its "
		    "storage has 32 bits",
		    (unsigned long long)value, sync->handle,
		    (unsigned long long)vmm_sync_value(sync->object));
	return VMM_INVALID_PARAMETER;
}

static vmm_status find_one(struct vmm_process *process, uint32_t handle, uint64_t value,
			   struct vmm_sync_object **object)
{
	const struct vmm_sync *sync = vmm_sync_find_locked(process, handle, "wait from the CPU");

	if (vmm_unlikely(!sync))
		return VMM_INVALID_PARAMETER;
	if (vmm_unlikely(!vmm_sync_is_monitored(sync->object) || (sync->flags & VMM_SYNC_NO_WAIT) ||
			 !vmm_sync_in_range(sync->object, value, false)))
		return refuse(sync, value);
	vmm_sync_show_locked(sync);
	*object = sync->object;
	return VMM_OK;
}

vmm_status vmm_sync_poll(const struct vmm_sync_caller *caller, const struct vmm_sync_list *list)
{
	struct vmm_process *process = caller->process;
	struct vmm_device *device;
	uint32_t reached = 0;
	vmm_status status = check_list(process, list);

	if (vmm_unlikely(!vmm_ok(status)))
		return status;
	vmm_os_mutex_lock(&process->lock);
	status = vmm_sync_find_device_locked(caller, &device);
	for (uint32_t i = 0; i < list->count && status == VMM_OK; i++) {
		struct vmm_sync_object *object = NULL;

		status = find_one(process, list->handles[i], list->values[i], &object);
		if (vmm_likely(status == VMM_OK))
			reached += vmm_sync_reached(object, list->values[i]);
	}
	vmm_os_mutex_unlock(&process->lock);
	if (status != VMM_OK)
		return status;
	return reached == list->count || ((list->flags & VMM_SYNC_WAIT_ANY) && reached)
		       ? VMM_OK
		       : VMM_PENDING;
}

/* ---- what is kept of it ---- */

vmm_status vmm_sync_charge(const struct vmm_process *process, struct vmm_sync_wait *wait,
			   const char *what, uint64_t bytes)
{
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

/* ---- a wait of its own ---- */

#define LOCAL_NODES 64u
struct waiting {
	struct vmm_sync_wait wait;
	struct vmm_sleeper sleeper;
	struct vmm_sync_node local[LOCAL_NODES];
};

static void put_objects(struct vmm_sync_wait *wait)
{
	for (uint32_t i = 0; i < wait->count; i++)
		if (wait->nodes[i].object)
			vmm_sync_put(wait->nodes[i].object);
	wait->count = 0;
}

/* Fills the nodes; each object found has a reference, whatever comes back. Process lock held. */
static vmm_status fill_locked(struct vmm_process *process, struct vmm_sync_wait *wait,
			      const struct vmm_sync_list *list)
{
	wait->count = list->count;
	wait->any = list->flags & VMM_SYNC_WAIT_ANY;
	wait->of_cpu = true;
	wait->world = process->world;
	for (uint32_t i = 0; i < list->count; i++)
		wait->nodes[i] = (struct vmm_sync_node){.wait = wait, .value = list->values[i]};
	for (uint32_t i = 0; i < list->count; i++) {
		struct vmm_sync_object *object = NULL;
		vmm_status status = find_one(process, list->handles[i], list->values[i], &object);

		if (!vmm_ok(status))
			return status;
		vmm_sync_get(object);
		wait->nodes[i].object = object;
	}
	return VMM_OK;
}

/* VMM_PENDING: it waits, in the device's list of sleepers or of waits that end with an event. */
static vmm_status begin(struct vmm_device *device, struct vmm_sync_wait *wait,
			const struct vmm_sync_list *list)
{
	struct vmm_process *process = device->process;

	/* One lock inside the other: whoever destroys a handle finds either no node yet, or all of them. */
	vmm_os_mutex_lock(&process->lock);
	vmm_status status = fill_locked(process, wait, list);
	if (vmm_ok(status)) {
		vmm_os_mutex_lock(&process->world->sync_lock);
		if (!vmm_sync_wait_begin_locked(wait)) {
			status = VMM_PENDING;
			if (wait->sleeper)
				vmm_list_push_back(&device->sleepers, &wait->sleeper->link);
			else
				vmm_list_push_back(&device->sync_waits, &wait->link);
		}
		vmm_os_mutex_unlock(&process->world->sync_lock);
	}
	vmm_os_mutex_unlock(&process->lock);
	return status;
}

/* Why the sleeper must come out; VMM_OK: it need not. *again: it may come back. */
static vmm_status disturbance(const struct vmm_device *device, bool *again)
{
	*again = false;
	if (atomic_load(&device->adapter->closed) || vmm_device_lost(device))
		return VMM_DEVICE_REMOVED; /* LOCK-33, TDRS-06 */
	if (atomic_load(&device->ending))
		return VMM_CANCELLED; /* MFN-18 */
	*again = vmm_live_is_paused(device->live);
	return *again ? VMM_PENDING : VMM_OK;
}

static vmm_status await(struct vmm_device *device, struct waiting *w)
{
	struct vmm_os *os = device->adapter->os;
	vmm_status status;
	bool again;

	/* The list knows it: from here on a disturbance is seen here, or there. */
	while ((status = disturbance(device, &again)) == VMM_OK) {
		uint32_t state = atomic_fetch_and(&w->sleeper.state, ~VMM_SLEEPER_DISTURBED);

		if (state & VMM_SLEEPER_DONE)
			break;
		if (state)
			continue;
		status = vmm_os_wait(os, &w->sleeper.state, 0, VMM_OS_FOREVER,
				     "the value of a fence", w->wait.nodes[0].value);
		if (!vmm_ok(status))
			break;
	}
	vmm_os_mutex_lock(&w->wait.world->sync_lock);
	vmm_list_remove(&w->sleeper.link);
	bool done = !vmm_sync_wait_withdraw_locked(&w->wait);
	vmm_os_mutex_unlock(&w->wait.world->sync_lock);
	return done ? w->wait.status : status;
}

/* VMM_PENDING: the device is paused. */
static vmm_status wait_inside(struct vmm_device *device, struct waiting *w,
			      const struct vmm_sync_list *list)
{
	struct vmm_sync_wait *wait = &w->wait;
	uint64_t began = vmm_os_now_ns(device->adapter->os);

	wait->missing = 0;
	wait->done = false;
	atomic_store(&w->sleeper.state, 0);
	vmm_status status = begin(device, wait, list);
	if (status == VMM_PENDING) {
		status = await(device, w);
		vmm_event(device->adapter->observe, VIDMM_EVENT_WAIT, device->process->id,
			  list->handles[0], VIDMM_WAIT_FENCE,
			  vmm_os_now_ns(device->adapter->os) - began, 0, 0, 0);
	}
	put_objects(wait);
	return status;
}

/* A handle that has gone while the wait was outside a paused device: as if it had gone during the wait. */
static bool are_alive(struct vmm_process *process, const struct vmm_sync_list *list)
{
	bool alive = true;

	vmm_os_mutex_lock(&process->lock);
	for (uint32_t i = 0; i < list->count && alive; i++)
		alive = vmm_handle_lookup(&process->handles, list->handles[i], VMM_HANDLE_SYNC);
	vmm_os_mutex_unlock(&process->lock);
	return alive;
}

vmm_status vmm_sync_wait(struct vmm_device **device, struct vmm_visit *visit,
			 const struct vmm_sync_list *list)
{
	struct waiting w = {.wait.nodes = w.local, .wait.sleeper = &w.sleeper};
	vmm_status status = check_list((*device)->process, list);

	if (!vmm_ok(status))
		return status;
	if (list->count > LOCAL_NODES) {
		uint64_t bytes = list->count * sizeof(*w.wait.nodes);

		status = vmm_sync_charge((*device)->process, &w.wait, "a wait from the CPU", bytes);
		if (!vmm_ok(status))
			return status;
		w.wait.nodes = vmm_calloc(list->count, sizeof(*w.wait.nodes));
		if (!w.wait.nodes) {
			vmm_sync_refund(&w.wait);
			return VMM_NO_MEMORY;
		}
	}
	while ((status = wait_inside(*device, &w, list)) == VMM_PENDING) {
		const void *live = (*device)->live;

		vmm_live_leave(visit);
		*device = vmm_live_enter(visit, VMM_LIVE_DEVICE, live);
		if (!*device || !are_alive((*device)->process, list)) {
			status = VMM_CANCELLED;
			break;
		}
	}
	if (w.wait.nodes != w.local)
		vmm_free(w.wait.nodes);
	vmm_sync_refund(&w.wait);
	return status;
}

/* ---- waits that end with an event (MFN-12) ---- */

struct event_wait {
	struct vmm_sync_wait wait;
	struct vmm_sync_node nodes[];
};

vmm_status vmm_sync_keep_event(const struct vmm_device *device, uint64_t event,
			       struct vmm_sync_wait *wait)
{
	struct vmm_process *process = device->process;
	vmm_status status = vmm_os_event_open(event, &wait->event);

	if (!vmm_ok(status))
		return status;
	if (vmm_unlikely(!vmm_account_take_event(process->account))) {
		vmm_reason(device->adapter->observe, VMM_NO_MEMORY, process->id, 0,
			   "a wait with an event: process %u has %u of them, as many as it may",
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

static void free_event_wait(struct vmm_sync_wait *wait)
{
	put_objects(wait);
	vmm_sync_drop_event(wait);
	vmm_sync_refund(wait);
	vmm_free(vmm_container_of(wait, struct event_wait, wait));
}

static void set_event(struct vmm_sync_wait *wait)
{
	vmm_os_event_set(wait->event);
	free_event_wait(wait);
}

/* With its event, and paid for. */
static vmm_status make_event_wait(struct vmm_device *device, uint32_t count, uint64_t event,
				  struct event_wait **result)
{
	const uint64_t bytes = sizeof(struct event_wait) + count * sizeof(struct vmm_sync_node);
	struct vmm_sync_wait kept = {0};
	vmm_status status = vmm_sync_keep_event(device, event, &kept);

	if (status == VMM_NO_MEMORY)
		return status;
	if (!vmm_ok(status)) {
		vmm_finding(device->adapter->observe, "MFN-13", device->process->id, 0,
			    "wait from the CPU: %llu is not an event (eventfd)",
			    (unsigned long long)event);
		return status;
	}
	status = vmm_sync_charge(device->process, &kept, "a wait with an event", bytes);
	struct event_wait *w = vmm_ok(status) ? vmm_calloc(1, bytes) : NULL;
	if (!w) {
		vmm_sync_refund(&kept);
		vmm_sync_drop_event(&kept);
		return VMM_NO_MEMORY;
	}
	w->wait = kept;
	w->wait.nodes = w->nodes;
	w->wait.tell = set_event;
	vmm_list_init(&w->wait.link);
	*result = w;
	return VMM_OK;
}

vmm_status vmm_sync_wait_event(struct vmm_device *device, const struct vmm_sync_list *list,
			       uint64_t event)
{
	vmm_status status = check_list(device->process, list);
	struct event_wait *w = NULL;

	if (vmm_ok(status))
		status = make_event_wait(device, list->count, event, &w);
	if (!vmm_ok(status))
		return status;
	status = begin(device, &w->wait, list);
	if (status == VMM_PENDING)
		return VMM_OK; /* it may be over already */
	if (vmm_ok(status))
		vmm_os_event_set(w->wait.event);
	free_event_wait(&w->wait);
	return status;
}

void vmm_sync_cancel_events(struct vmm_device *device)
{
	struct vmm_os_mutex *lock = &device->process->world->sync_lock;
	struct vmm_sync_batch batch;
	bool all;

	vmm_sync_batch_init(&batch, device->adapter->os);
	do {
		vmm_os_mutex_lock(lock);
		while (!vmm_list_empty(&device->sync_waits) && batch.count < VMM_SYNC_BATCH)
			end_wait(vmm_container_of(device->sync_waits.next, struct vmm_sync_wait,
						  link),
				 VMM_CANCELLED, &batch);
		all = vmm_list_empty(&device->sync_waits);
		vmm_os_mutex_unlock(lock);
		vmm_sync_batch_flush(&batch);
	} while (!all);
}
