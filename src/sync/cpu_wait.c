/* SPDX-License-Identifier: MIT */
/*
 * Waits of the CPU (MFN-11, MFN-15, MFN-19): the calls that poll, sleep, or set an event when the
 * wait ends. wait.c has the waits themselves.
 */
#include "sync/sync_private.h"

/* ---- the list of a wait ---- */

static vmm_status check_list(const struct vmm_process *process, const struct vmm_sync_list *list)
{
	if (vmm_likely(list->count && !(list->flags & ~VMM_SYNC_WAIT_ANY)))
		return VMM_OK;
	return vmm_refuse_rule(
		process->world->observe, VMM_INVALID_PARAMETER, "MFN-14", process->id, 0,
		"wait from the CPU: %u objects, flags 0x%x: at least one object is needed, and "
		"WaitAny is the only flag",
		list->count, list->flags);
}

VMM_COLD static vmm_status refuse_cpu_wait(const struct vmm_sync *sync, uint64_t value)
{
	struct vmm_observe *observe = sync->process->world->observe;

	if (!vmm_sync_is_monitored(sync->object))
		return vmm_refuse_rule(
			observe, VMM_INVALID_PARAMETER, vmm_sync_cpu_rule(sync->object, true),
			sync->process->id, sync->handle,
			"wait from the CPU: 0x%08x is of type %u; only monitored fences are",
			sync->handle, sync->object->type);
	if (sync->flags & VMM_SYNC_NO_WAIT) {
		bool denied = sync->denied & VMM_SYNC_NO_WAIT;

		return vmm_refuse_rule(observe, VMM_ACCESS_DENIED, denied ? "SHR-10" : "SFL-16",
				       sync->process->id, sync->handle, "wait: 0x%08x was %s",
				       sync->handle,
				       denied ? "opened from an NT handle without the right to wait"
					      : "created or opened with NoWait");
	}
	return vmm_refuse_rule(
		observe, VMM_INVALID_PARAMETER, "MFN-08", sync->process->id, sync->handle,
		"wait: the value %llu of 0x%08x is more than 2^31 - 1 above %llu, and its "
		"storage has 32 bits",
		(unsigned long long)value, sync->handle,
		(unsigned long long)vmm_sync_value(sync->object));
}

static vmm_status find_one(struct vmm_process *process, uint32_t handle, uint64_t value,
			   struct vmm_sync_object **object) VMM_REQUIRES(vmm_process_lock_class)
{
	const struct vmm_sync *sync = vmm_sync_find_locked(process, handle, "wait from the CPU");

	vmm_assert_held(&process->lock);
	if (vmm_unlikely(!sync))
		return VMM_INVALID_PARAMETER;
	if (vmm_unlikely(!vmm_sync_is_monitored(sync->object) || (sync->flags & VMM_SYNC_NO_WAIT) ||
			 !vmm_sync_in_range(sync->object, value, false)))
		return refuse_cpu_wait(sync, value);
	vmm_sync_enable_lockless_locked(sync);
	*object = sync->object;
	return VMM_OK;
}

vmm_status vmm_sync_poll(const struct vmm_sync_caller *caller, const struct vmm_sync_list *list)
{
	struct vmm_process *process = caller->process;
	struct vmm_device *device;
	uint32_t reached = 0;

	vmm_assert(vmm_sync_list_is_valid(list));
	vmm_status status = check_list(process, list);
	if (vmm_unlikely(!vmm_ok(status)))
		return status;
	vmm_process_lock(process);
	status = vmm_sync_find_device_locked(caller, &device);
	for (uint32_t i = 0; i < list->count && status == VMM_OK; i++) {
		struct vmm_sync_object *object = NULL;

		status = find_one(process, list->handles[i], list->values[i], &object);
		if (vmm_likely(status == VMM_OK))
			reached += vmm_sync_reached(object, list->values[i]);
	}
	vmm_process_unlock(process);
	if (status != VMM_OK)
		return status;
	return reached == list->count || ((list->flags & VMM_SYNC_WAIT_ANY) && reached)
		       ? VMM_OK
		       : VMM_PENDING;
}

/* ---- sleeping waits ---- */

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

/*
 * Fills the nodes. Each object found has a reference, also after an error. Caller holds the
 * process lock. (MFN-15)
 */
static vmm_status fill_locked(struct vmm_process *process, struct vmm_sync_wait *wait,
			      const struct vmm_sync_list *list) VMM_REQUIRES(vmm_process_lock_class)
{
	vmm_assert_held(&process->lock);
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

/* Starts the wait. VMM_PENDING: it is in the device's list of sleepers, or of waits with events. */
static vmm_status begin(struct vmm_device *device, struct vmm_sync_wait *wait,
			const struct vmm_sync_list *list)
{
	struct vmm_process *process = device->process;

	/*
	 * Both locks are held: a thread that destroys a handle finds either no node or all of them.
	 */
	vmm_process_lock(process);
	vmm_status status = fill_locked(process, wait, list);
	if (vmm_ok(status)) {
		vmm_sync_lock(process->world);
		if (!vmm_sync_wait_begin_locked(wait)) {
			status = VMM_PENDING;
			if (wait->sleeper)
				vmm_list_push_back(&device->sleepers, &wait->sleeper->link);
			else
				vmm_list_push_back(&device->sync_waits, &wait->link);
		}
		vmm_sync_unlock(process->world);
	}
	vmm_process_unlock(process);
	return status;
}

/* Returns why the sleeper must leave the device, or VMM_OK. *again: it may enter again. */
static vmm_status disturbance(const struct vmm_device *device, bool *again)
{
	*again = false;
	if (atomic_load(&device->adapter->closed) || vmm_device_lost(device))
		return VMM_DEVICE_REMOVED; /* LOCK-33, TDRS-06 */
	if (atomic_load(&device->ending))
		return VMM_CANCELLED; /* MFN-18 */
	*again = vmm_hazard_is_paused(device->hazard);
	return *again ? VMM_PENDING : VMM_OK;
}

/*
 * Sleeps until the wait ends or the device is disturbed. An interrupted sleep begins again.
 * (MFN-19)
 */
static vmm_status await(struct vmm_device *device, struct waiting *w)
{
	struct vmm_os *os = device->adapter->os;
	vmm_status status;
	bool again;

	/*
	 * The sleeper is in the device's list: a disturbance is seen in the check or wakes the
	 * sleep.
	 */
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
	vmm_sync_lock(w->wait.world);
	vmm_list_remove(&w->sleeper.link);
	bool done = !vmm_sync_wait_withdraw_locked(&w->wait);
	vmm_sync_unlock(w->wait.world);
	return done ? w->wait.status : status;
}

/* Waits inside the device. VMM_PENDING: the device is being paused. */
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

/*
 * Handles that were destroyed while the wait was outside a paused device cancel the wait, as during
 * it.
 */
static bool are_alive(struct vmm_process *process, const struct vmm_sync_list *list)
{
	bool alive = true;

	vmm_process_lock(process);
	for (uint32_t i = 0; i < list->count && alive; i++)
		alive = vmm_handle_lookup(&process->handles, list->handles[i], VMM_HANDLE_SYNC);
	vmm_process_unlock(process);
	return alive;
}

vmm_status vmm_sync_wait(struct vmm_device **device, struct vmm_hazard_guard *visit,
			 const struct vmm_sync_list *list)
{
	struct waiting w = {.wait.nodes = w.local, .wait.sleeper = &w.sleeper};

	vmm_assert(vmm_device_is_valid(*device) && vmm_sync_list_is_valid(list));
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
		const void *hazard = (*device)->hazard;

		vmm_hazard_leave(visit);
		*device = vmm_hazard_enter(visit, VMM_HAZARD_DEVICE, hazard);
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

/* Makes a wait with its event, and charges both. */
static vmm_status make_event_wait(struct vmm_device *device, uint32_t count, uint64_t event,
				  struct event_wait **result)
{
	const uint64_t bytes = sizeof(struct event_wait) + count * sizeof(struct vmm_sync_node);
	struct vmm_sync_wait charged = {0};
	vmm_status status = vmm_sync_keep_event(device, event, &charged);

	if (status == VMM_NO_MEMORY)
		return status;
	if (!vmm_ok(status))
		return vmm_refuse_rule(device->adapter->observe, status, "MFN-13",
				       device->process->id, 0,
				       "wait from the CPU: %llu is not an event (eventfd)",
				       (unsigned long long)event);
	status = vmm_sync_charge(device->process, &charged, "a wait with an event", bytes);
	struct event_wait *w = vmm_ok(status) ? vmm_calloc(1, bytes) : NULL;
	if (!w) {
		vmm_sync_refund(&charged);
		vmm_sync_drop_event(&charged);
		return VMM_NO_MEMORY;
	}
	w->wait = charged;
	w->wait.nodes = w->nodes;
	w->wait.on_end = set_event;
	vmm_list_init(&w->wait.link);
	*result = w;
	return VMM_OK;
}

vmm_status vmm_sync_wait_event(struct vmm_device *device, const struct vmm_sync_list *list,
			       uint64_t event)
{
	struct event_wait *w = NULL;

	vmm_assert(vmm_device_is_valid(device) && vmm_sync_list_is_valid(list));
	vmm_status status = check_list(device->process, list);

	if (vmm_ok(status))
		status = make_event_wait(device, list->count, event, &w);
	if (!vmm_ok(status))
		return status;
	status = begin(device, &w->wait, list);
	if (status == VMM_PENDING)
		return VMM_OK; /* the wait may have ended already */
	if (vmm_ok(status))
		vmm_os_event_set(w->wait.event);
	free_event_wait(&w->wait);
	return status;
}
