/* SPDX-License-Identifier: MIT */
/*
 * Trim notifications (RES-09, PRI-14): ask a device's driver to free memory. The callback runs on a
 * thread of the adapter that holds no lock, so it may make any call, in particular Evict. One
 * callback runs at a time. When unregistration returns, the callback no longer runs, unless the
 * callback itself unregistered.
 *
 * TrimToBudget: the process's lists hold more than its budget, because the budget was lowered or
 * other processes have reserved memory. The number of bytes is computed when the callback is
 * called. If there is no excess by then, the flag is not reported.
 *
 * PeriodicTrim: a period has elapsed in which the device submitted. A device that submitted nothing
 * is not notified, because all its memory would count as unused. When it submits again it first
 * gets RestartPeriodicTrim, so that the pause does not count. While no device submits, the thread
 * sleeps. The length of the period is our choice.
 */
#include "memory/sets/sets.h"
#include "object/stopped.h"

#define PERIOD_NS UINT64_C(1000000000)

struct vmm_trim {
	struct vmm_list link; /* in vmm_trims.all */
	/* NULL: unregistered while its callback runs */
	struct vmm_device *device;
	uint32_t handle;
	struct vmm_trim_client client;
	/* value of submitted_by() at the last tick */
	uint64_t submitted;
	/* it submitted nothing in the last period */
	bool idle;
	/* VMM_TRIM_* flags to report */
	uint32_t pending;
	/* bytes over budget before the change in progress */
	uint64_t excess;
};

struct vmm_trims {
	struct vmm_adapter *adapter;
	/* guarded by the paging lock, as are all registrations and `current` */
	struct vmm_list all;
	/* the registration whose callback runs */
	struct vmm_trim *current;
	/* number of callbacks started */
	uint32_t started;
	_Atomic uint32_t finished;
	struct vmm_os_thread *thread;
	/* wait word of the thread: incremented when there is work */
	_Atomic uint32_t word;
	_Atomic bool quit;
	uint64_t tick_ns;
};

static uint64_t submitted_by(const struct vmm_device *device)
{
	uint64_t sum = 0;

	for (uint32_t t = 0; t < VMM_TIMELINES_MAX; t++)
		sum += atomic_load_explicit(&device->queued[t], memory_order_relaxed);
	return sum;
}

/* Marks periodic notifications. Returns true if any device has submitted in this period. */
static bool tick(struct vmm_trims *trims)
{
	struct vmm_list *link;
	bool any = false;

	vmm_list_for_each (link, &trims->all) {
		struct vmm_trim *trim = vmm_container_of(link, struct vmm_trim, link);
		uint64_t submitted = submitted_by(trim->device);
		bool idle = submitted == trim->submitted;

		if (!idle)
			/*
			 * Never both: until the device was notified of the restart, it gets no
			 * periodic trim.
			 */
			trim->pending |= trim->idle || (trim->pending & VMM_TRIM_RESTART)
						 ? VMM_TRIM_RESTART
						 : VMM_TRIM_PERIODIC;
		trim->idle = idle;
		trim->submitted = submitted;
		any |= !idle;
	}
	return any;
}

static struct vmm_trim *next_pending(struct vmm_trims *trims) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&trims->adapter->paging_lock);
	vmm_list_for_each (link, &trims->all) {
		struct vmm_trim *trim = vmm_container_of(link, struct vmm_trim, link);

		if (trim->pending)
			return trim;
	}
	return NULL;
}

/* Calls the callback. Caller holds the paging lock, which is released during the callback. */
static void invoke_callback(struct vmm_trims *trims, struct vmm_trim *trim)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t excess = vmm_budget_excess(trim->device, NULL, 0);
	uint32_t flags = trim->pending;

	trim->pending = 0;
	if (!excess)
		flags &= ~(uint32_t)VMM_TRIM_TO_BUDGET;
	if (!flags)
		return;
	const struct vmm_trim_client client = trim->client; /* the registration may end meanwhile */

	trims->current = trim;
	trims->started++;
	vmm_paging_commit(trims->adapter);
	client.call(&client, flags, flags & VMM_TRIM_TO_BUDGET ? excess : 0);
	vmm_paging_lock(trims->adapter);
	trims->current = NULL;
	if (!trim->device)
		vmm_free(trim);
	atomic_fetch_add(&trims->finished, 1);
	vmm_os_wake(trims->adapter->os, &trims->finished, UINT32_MAX);
	vmm_progress_signal(trims->adapter);
}

/* Delivers all pending notifications. Returns when to run again, in ns. */
static uint64_t run_pending(struct vmm_trims *trims)
{
	struct vmm_adapter *adapter = trims->adapter;
	struct vmm_trim *trim;
	bool worked = true;

	if (atomic_load(&adapter->removed))
		return VMM_OS_FOREVER;
	vmm_paging_lock(adapter);
	if (atomic_exchange(&adapter->trims_asleep, false))
		/* The first period begins now. */
		trims->tick_ns = vmm_os_now_ns(adapter->os) + PERIOD_NS;
	if (vmm_os_now_ns(adapter->os) >= trims->tick_ns) {
		worked = tick(trims);
		trims->tick_ns = vmm_os_now_ns(adapter->os) + PERIOD_NS;
	}
	while (!atomic_load(&trims->quit) && (trim = next_pending(trims)) != NULL)
		invoke_callback(trims, trim);
	if (!worked)
		atomic_store(&adapter->trims_asleep, true);
	uint64_t when_ns = worked ? trims->tick_ns : VMM_OS_FOREVER;
	vmm_paging_commit(adapter);
	return when_ns;
}

static void trim_thread(void *argument)
{
	struct vmm_trims *trims = argument;

	while (!atomic_load(&trims->quit)) {
		uint32_t seen = atomic_load(&trims->word);
		uint64_t when_ns = run_pending(trims);

		if (!atomic_load(&trims->quit) &&
		    vmm_os_wait(trims->adapter->os, &trims->word, seen, when_ns, NULL, 0) ==
			    VMM_UNSUCCESSFUL)
			return;
	}
}

static void wake(struct vmm_trims *trims)
{
	atomic_fetch_add(&trims->word, 1);
	vmm_os_wake(trims->adapter->os, &trims->word, 1);
}

void vmm_trims_wake(struct vmm_adapter *adapter)
{
	wake(adapter->memory->trims);
}

/* Starts the thread at the first registration; adapters without registrations have none. */
static vmm_status start(struct vmm_memory *memory)
{
	struct vmm_trims *trims;
	vmm_status status;

	if (memory->trims)
		return VMM_OK;
	trims = vmm_calloc(1, sizeof(*trims));
	if (!trims)
		return VMM_NO_MEMORY;
	trims->adapter = memory->adapter;
	vmm_list_init(&trims->all);
	status = vmm_os_thread_create(memory->adapter->os, "vidmm trim", trim_thread, trims,
				      &trims->thread);
	if (!vmm_ok(status)) {
		vmm_free(trims);
		return status;
	}
	memory->trims = trims;
	return VMM_OK;
}

void vmm_trims_finish(struct vmm_memory *memory)
{
	struct vmm_trims *trims = memory->trims;

	if (!trims)
		return;
	vmm_assert(vmm_list_empty(&trims->all));
	atomic_store(&trims->quit, true);
	wake(trims);
	vmm_os_thread_join(trims->thread);
	vmm_free(trims);
	memory->trims = NULL;
}

static NTSTATUS check(const struct vmm_device *device)
{
	return vmm_model_check_call(device->adapter, device->process, device->handle,
				    "register a trim notification",
				    ", which has no residency lists");
}

static NTSTATUS add(struct vmm_device *device, struct vmm_trim *trim)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = device->adapter->memory;
	NTSTATUS status = vmm_budget_of(device) ? start(memory) : STATUS_NO_MEMORY;

	vmm_assert_held(&device->adapter->paging_lock);
	if (!NT_SUCCESS(status))
		return status;
	vmm_process_lock(device->process);
	trim->handle = vmm_handle_create(&device->process->handles, VMM_HANDLE_TRIM, trim);
	vmm_process_unlock(device->process);
	if (!trim->handle)
		return STATUS_NO_MEMORY;
	trim->device = device;
	trim->submitted = submitted_by(device);
	/* A registration made while all devices are idle begins a period. */
	if (vmm_list_empty(&memory->trims->all))
		atomic_store(&device->adapter->trims_asleep, true);
	vmm_list_push_back(&memory->trims->all, &trim->link);
	wake(memory->trims);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_trim_register(struct vmm_device *device, const struct vmm_trim_client *client,
			   uint32_t *handle)
{
	struct vmm_trim *trim;

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check(device);
	if (!NT_SUCCESS(status))
		return status;
	trim = vmm_calloc(1, sizeof(*trim));
	if (!trim)
		return STATUS_NO_MEMORY;
	trim->client = *client;
	vmm_paging_lock(device->adapter);
	status = add(device, trim);
	if (NT_SUCCESS(status))
		*handle = trim->handle;
	vmm_paging_commit(device->adapter);
	if (!NT_SUCCESS(status))
		vmm_free(trim);
	return status;
}

void *vmm_trim_device(struct vmm_process *process, uint32_t handle)
{
	void *hazard = NULL;

	vmm_process_lock(process);
	const struct vmm_trim *trim = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_TRIM);
	hazard = trim ? trim->device->hazard : vmm_stopped_device_find_locked(process, handle);
	vmm_process_unlock(process);
	return hazard;
}

/*
 * Ends a registration. The caller is inside its device or ends it, and holds the paging lock.
 * Returns the number of the callback to wait for; 0 if it does not run or the caller is that
 * callback.
 */
static uint32_t end_locked(struct vmm_trims *trims, struct vmm_trim *trim)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_process *process = trim->device->process;

	vmm_assert_held(&trims->adapter->paging_lock);
	vmm_process_lock(process);
	vmm_device_handle_destroy_locked(trim->device, trim->handle);
	vmm_process_unlock(process);
	vmm_list_remove(&trim->link);
	if (trims->current != trim) {
		vmm_free(trim);
		return 0;
	}
	trim->device = NULL; /* invoke_callback() frees it */
	return vmm_os_thread_self(trims->adapter->os) == trims->thread ? 0 : trims->started;
}

static bool has_run(const struct vmm_trims *trims, uint32_t number)
{
	return (int32_t)(atomic_load(&trims->finished) - number) >= 0;
}

static void wait_for_callback(struct vmm_trims *trims, uint32_t number)
{
	struct vmm_adapter *adapter = trims->adapter;
	uint32_t seen;

	while ((seen = atomic_load(&trims->finished), !has_run(trims, number)))
		if (vmm_os_wait(adapter->os, &trims->finished, seen, VMM_OS_FOREVER,
				"the end of trim callback", number) == VMM_UNSUCCESSFUL)
			return;
}

/*
 * Waits inside the device. Returns false if the wait must leave the device: a power transition
 * (PNP-05) or its end waits until every call has left it.
 */
static bool wait_inside_device(const struct vmm_device *device, struct vmm_trims *trims,
			       uint32_t number)
{
	struct vmm_adapter *adapter = device->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (has_run(trims, number))
			return true;
		if (vmm_hazard_is_paused(device->hazard) || atomic_load(&device->ending))
			return false;
		if (!vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE))) {
			wait_for_callback(trims, number);
			/*
				 * The adapter is gone, so no power transition can wait for this
				 * call.
				 */
			return true;
		}
	}
}

NTSTATUS vmm_trim_unregister(struct vmm_device **device, struct vmm_hazard_guard *guard,
			     uint32_t handle, void (*function)(void))
{
	struct vmm_adapter *adapter = (*device)->adapter;
	struct vmm_trims *trims = adapter->memory->trims;
	const void *hazard = (*device)->hazard;
	struct vmm_trim *trim;
	uint32_t number = 0;

	vmm_paging_lock(adapter);
	vmm_process_lock((*device)->process);
	trim = vmm_handle_lookup(&(*device)->process->handles, handle, VMM_HANDLE_TRIM);
	vmm_process_unlock((*device)->process);
	if (trim && (trim->device != *device || (function && trim->client.function != function)))
		trim = NULL;
	if (trim)
		number = end_locked(trims, trim);
	vmm_paging_commit(adapter);
	while (number && !wait_inside_device(*device, trims, number)) {
		vmm_hazard_leave(guard);
		*device = vmm_hazard_enter(guard, VMM_HAZARD_DEVICE, hazard);
		if (*device)
			continue;
		/* that function also waits for the callback */
		vmm_hazard_await_retired(adapter->os, hazard);
		break;
	}
	return trim ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

void vmm_trims_end(struct vmm_device *device)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_trims *trims = adapter->memory->trims;
	struct vmm_list *link, *next;
	uint32_t number = 0;

	if (vmm_likely(!trims))
		return;
	vmm_paging_lock(adapter);
	/* A registration that has just ended may still run its callback. */
	if (trims->current && (!trims->current->device || trims->current->device == device) &&
	    vmm_os_thread_self(adapter->os) != trims->thread)
		number = trims->started;
	vmm_list_for_each_safe (link, next, &trims->all) {
		struct vmm_trim *trim = vmm_container_of(link, struct vmm_trim, link);

		if (trim->device == device)
			(void)end_locked(trims, trim);
	}
	vmm_paging_commit(adapter);
	if (number)
		wait_for_callback(trims, number);
}

/* ---- budgets ---- */

void vmm_trims_before_budget(struct vmm_memory *memory)
{
	struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!memory->trims))
		return;
	vmm_list_for_each (link, &memory->trims->all) {
		struct vmm_trim *trim = vmm_container_of(link, struct vmm_trim, link);

		trim->excess = vmm_budget_excess(trim->device, NULL, 0);
	}
}

void vmm_trims_after_budget(struct vmm_memory *memory)
{
	struct vmm_list *link;
	bool any = false;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!memory->trims))
		return;
	vmm_list_for_each (link, &memory->trims->all) {
		struct vmm_trim *trim = vmm_container_of(link, struct vmm_trim, link);

		if (vmm_budget_excess(trim->device, NULL, 0) <= trim->excess)
			continue;
		trim->pending |= VMM_TRIM_TO_BUDGET;
		any = true;
	}
	if (any)
		wake(memory->trims);
}
