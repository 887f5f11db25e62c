/* SPDX-License-Identifier: MIT */
/*
 * Trim notifications (RES-09, PRI-14): a device's driver is asked to give memory back. Its callback runs on a thread of the
 * adapter's own that holds nothing, so it may make any call, Evict above all. One callback runs at a time; none runs any more
 * when its registration has ended, unless that is what ends it.
 *
 * TrimToBudget: its process's budget has become less than what its lists hold, because it was set so or because others have
 * reserved. How many bytes that is, is looked at when the callback is called; what fits by then is not told.
 *
 * PeriodicTrim: a period has gone by in which the device submitted. A device that has not is left alone, for all that it has
 * would count as unused; when it works again it is told RestartPeriodicTrim first, so that the pause does not count. When
 * no device works the thread sleeps until one does. The period is ours.
 */
#include "memory/memory_private.h"

#define PERIOD_NS UINT64_C(1000000000)

struct vmm_trim {
	struct vmm_list link;      /* in vmm_trims.all */
	struct vmm_device *device; /* NULL: ended while its callback runs */
	uint32_t handle;
	struct vmm_trim_client client;
	uint64_t submitted; /* by the device, at the last tick */
	bool idle;          /* it had submitted nothing then */
	uint32_t pending;   /* VMM_TRIM_* */
	uint64_t excess;    /* before the change that is being made */
};

struct vmm_trims {
	struct vmm_adapter *adapter;
	struct vmm_list all;      /* guarded by the paging lock, as is all of each, and the next */
	struct vmm_trim *current; /* whose callback runs */
	uint32_t started;         /* callbacks */
	_Atomic uint32_t finished;
	struct vmm_os_thread *thread;
	_Atomic uint32_t word; /* moves when there is something to be looked at */
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

/* Has any of them worked? */
static bool tick(struct vmm_trims *trims)
{
	struct vmm_list *link;
	bool any = false;

	vmm_list_for_each (link, &trims->all) {
		struct vmm_trim *trim = vmm_container_of(link, struct vmm_trim, link);
		uint64_t submitted = submitted_by(trim->device);
		bool idle = submitted == trim->submitted;

		if (!idle) /* never both: who has not yet heard of the pause hears of nothing else */
			trim->pending |= trim->idle || (trim->pending & VMM_TRIM_RESTART)
						 ? VMM_TRIM_RESTART
						 : VMM_TRIM_PERIODIC;
		trim->idle = idle;
		trim->submitted = submitted;
		any |= !idle;
	}
	return any;
}

static struct vmm_trim *next_pending(struct vmm_trims *trims)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &trims->all) {
		struct vmm_trim *trim = vmm_container_of(link, struct vmm_trim, link);

		if (trim->pending)
			return trim;
	}
	return NULL;
}

/* The paging lock is held, and not during the callback. */
static void call_out(struct vmm_trims *trims, struct vmm_trim *trim)
{
	uint64_t excess = vmm_budget_excess(trim->device, NULL, 0);
	uint32_t flags = trim->pending;

	trim->pending = 0;
	if (!excess)
		flags &= ~(uint32_t)VMM_TRIM_TO_BUDGET;
	if (!flags)
		return;
	const struct vmm_trim_client client = trim->client; /* it may be ended meanwhile */

	trims->current = trim;
	trims->started++;
	vmm_paging_unlock(trims->adapter);
	client.call(&client, flags, flags & VMM_TRIM_TO_BUDGET ? excess : 0);
	vmm_paging_lock(trims->adapter);
	trims->current = NULL;
	if (!trim->device)
		vmm_free(trim);
	atomic_fetch_add(&trims->finished, 1);
	vmm_os_wake(trims->adapter->os, &trims->finished, UINT32_MAX);
	vmm_progress_signal(trims->adapter);
}

/* All that is due; when to look again. */
static uint64_t look(struct vmm_trims *trims)
{
	struct vmm_adapter *adapter = trims->adapter;
	struct vmm_trim *trim;
	bool worked = true;

	if (atomic_load(&adapter->removed))
		return VMM_OS_FOREVER;
	vmm_paging_lock(adapter);
	if (atomic_exchange(&adapter->trims_asleep, false)) /* the first period begins now */
		trims->tick_ns = vmm_os_now_ns(adapter->os) + PERIOD_NS;
	if (vmm_os_now_ns(adapter->os) >= trims->tick_ns) {
		worked = tick(trims);
		trims->tick_ns = vmm_os_now_ns(adapter->os) + PERIOD_NS;
	}
	while (!atomic_load(&trims->quit) && (trim = next_pending(trims)) != NULL)
		call_out(trims, trim);
	if (!worked)
		atomic_store(&adapter->trims_asleep, true);
	uint64_t when_ns = worked ? trims->tick_ns : VMM_OS_FOREVER;
	vmm_paging_unlock(adapter);
	return when_ns;
}

static void serve(void *argument)
{
	struct vmm_trims *trims = argument;

	while (!atomic_load(&trims->quit)) {
		uint32_t seen = atomic_load(&trims->word);
		uint64_t when_ns = look(trims);

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

/* Made with the first registration, so that adapters of whom nobody wants to hear have no such thread. */
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
	status = vmm_os_thread_create(memory->adapter->os, "vidmm trim", serve, trims,
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
	if (device->adapter->wddm2)
		return STATUS_SUCCESS;
	vmm_reason(device->adapter->observe, STATUS_NOT_SUPPORTED, device->process->id,
		   device->handle,
		   "register a trim notification: the adapter's miniport is of WDDM 1.x, which has "
		   "no residency lists");
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS add(struct vmm_device *device, struct vmm_trim *trim)
{
	struct vmm_memory *memory = device->adapter->memory;
	NTSTATUS status = vmm_budget_of(device) ? start(memory) : STATUS_NO_MEMORY;

	if (!NT_SUCCESS(status))
		return status;
	vmm_os_mutex_lock(&device->process->lock);
	trim->handle = vmm_handle_create(&device->process->handles, VMM_HANDLE_TRIM, trim);
	vmm_os_mutex_unlock(&device->process->lock);
	if (!trim->handle)
		return STATUS_NO_MEMORY;
	trim->device = device;
	trim->submitted = submitted_by(device);
	/* Whoever comes while all others rest begins a period. */
	if (vmm_list_empty(&memory->trims->all))
		atomic_store(&device->adapter->trims_asleep, true);
	vmm_list_push_back(&memory->trims->all, &trim->link);
	wake(memory->trims);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_trim_register(struct vmm_device *device, const struct vmm_trim_client *client,
			   uint32_t *handle)
{
	NTSTATUS status = check(device);
	struct vmm_trim *trim;

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
	vmm_paging_unlock(device->adapter);
	if (!NT_SUCCESS(status))
		vmm_free(trim);
	return status;
}

void *vmm_trim_device(struct vmm_process *process, uint32_t handle)
{
	void *live = NULL;

	vmm_os_mutex_lock(&process->lock);
	const struct vmm_trim *trim = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_TRIM);
	if (trim)
		live = trim->device->live;
	vmm_os_mutex_unlock(&process->lock);
	return live;
}

/*
 * The handle goes; paging lock held. Returns the callback, by its number, that has to be waited for, 0: none, because it
 * does not run or the caller is in it.
 */
static uint32_t end_locked(struct vmm_trims *trims, struct vmm_trim *trim)
{
	struct vmm_process *process = trim->device->process;

	vmm_os_mutex_lock(&process->lock);
	vmm_handle_destroy(&process->handles, trim->handle);
	vmm_os_mutex_unlock(&process->lock);
	vmm_list_remove(&trim->link);
	if (trims->current != trim) {
		vmm_free(trim);
		return 0;
	}
	trim->device = NULL; /* call_out frees it */
	return vmm_os_thread_self(trims->adapter->os) == trims->thread ? 0 : trims->started;
}

static bool has_run(const struct vmm_trims *trims, uint32_t number)
{
	return (int32_t)(atomic_load(&trims->finished) - number) >= 0;
}

static void await(struct vmm_trims *trims, uint32_t number)
{
	struct vmm_adapter *adapter = trims->adapter;
	uint32_t seen;

	while ((seen = atomic_load(&trims->finished), !has_run(trims, number)))
		if (vmm_os_wait(adapter->os, &trims->finished, seen, VMM_OS_FOREVER,
				"the end of trim callback", number) == VMM_UNSUCCESSFUL)
			return;
}

/* Inside the device, from which a change of power (PNP-05) and the device's end want everybody out. */
static bool await_inside(const struct vmm_device *device, struct vmm_trims *trims, uint32_t number)
{
	struct vmm_adapter *adapter = device->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (has_run(trims, number))
			return true;
		if (vmm_live_is_paused(device->live) || atomic_load(&device->ending))
			return false;
		if (!vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE))) {
			await(trims, number); /* no adapter any more: nor any change of its power */
			return true;
		}
	}
}

NTSTATUS vmm_trim_unregister(struct vmm_device **device, struct vmm_visit *visit, uint32_t handle,
			     void (*function)(void))
{
	struct vmm_adapter *adapter = (*device)->adapter;
	struct vmm_trims *trims = adapter->memory->trims;
	const void *live = (*device)->live;
	struct vmm_trim *trim;
	uint32_t number = 0;

	vmm_paging_lock(adapter);
	vmm_os_mutex_lock(&(*device)->process->lock);
	trim = vmm_handle_lookup(&(*device)->process->handles, handle, VMM_HANDLE_TRIM);
	vmm_os_mutex_unlock(&(*device)->process->lock);
	if (trim && (trim->device != *device || (function && trim->client.function != function)))
		trim = NULL;
	if (trim)
		number = end_locked(trims, trim);
	vmm_paging_unlock(adapter);
	while (number && !await_inside(*device, trims, number)) {
		vmm_live_leave(visit);
		*device = vmm_live_enter(visit, VMM_LIVE_DEVICE, live);
		if (*device)
			continue;
		vmm_live_await_end(adapter->os, live); /* which waits for the callback, too */
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
	/* One that was unregistered a moment ago may still run. */
	if (trims->current && (!trims->current->device || trims->current->device == device) &&
	    vmm_os_thread_self(adapter->os) != trims->thread)
		number = trims->started;
	vmm_list_for_each_safe (link, next, &trims->all) {
		struct vmm_trim *trim = vmm_container_of(link, struct vmm_trim, link);

		if (trim->device == device)
			(void)end_locked(trims, trim);
	}
	vmm_paging_unlock(adapter);
	if (number)
		await(trims, number);
}

/* ---- budgets ---- */

void vmm_trims_before_budget(struct vmm_memory *memory)
{
	struct vmm_list *link;

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
