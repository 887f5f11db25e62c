/* SPDX-License-Identifier: MIT */
/*
 * Updates of GPU virtual addresses that are queued beside a context (VA-10). Each update waits for
 * a value of a fence, changes page tables with operations on the paging timeline, and signals the
 * next value when they are complete. The updates of one context run in call order. The context
 * itself waits for an update only if it waits for the fence. The paging lock guards everything
 * here.
 */
#include "sched/completion/completion.h"

#define QUEUED_MAX 128u /* updates queued for one context; the next caller waits */

enum { WAIT_NEW, WAIT_BEGUN, WAIT_COMPLETED, WAIT_ABANDONED };

struct vmm_address_update {
	struct vmm_list link; /* in sched->address_updates, oldest first */
	struct vmm_sched *sched;
	struct vmm_device *device;
	uint64_t context; /* unique number of the context, which is not reused */
	struct vmm_sync_packet wait, signal;
	/*
	 * It has a wait; the wait is satisfied; the tables are changed once `sequence` is complete.
	 */
	bool waits, waited, done;
	_Atomic uint32_t state; /* of the wait: WAIT_* */
	uint64_t sequence;
	struct vmm_va_update update;
};

static void free_update(struct vmm_address_update *u)
{
	if (u->waits)
		vmm_sync_packet_clear(&u->wait);
	vmm_sync_packet_free(&u->wait);
	vmm_sync_packet_clear(&u->signal);
	vmm_sync_packet_free(&u->signal);
	vmm_free(u->update.operations);
	vmm_free(u);
}

/* Completion callback of the wait, on any thread. An abandoned update is freed here. */
static void wait_completed(struct vmm_sync_wait *wait)
{
	struct vmm_address_update *u = vmm_container_of(wait, struct vmm_address_update, wait.wait);
	struct vmm_sched *sched = u->sched;

	if (atomic_exchange(&u->state, WAIT_COMPLETED) == WAIT_ABANDONED)
		free_update(u);
	else
		vmm_worker_wake(sched);
}

static bool wait_is_over(struct vmm_address_update *u)
{
	uint32_t state = atomic_load(&u->state);

	if (!u->waits || u->waited)
		return true;
	if (state == WAIT_NEW) {
		atomic_store(&u->state, WAIT_BEGUN);
		u->waited = vmm_sync_packet_begin(&u->wait, 0);
	} else {
		u->waited = state == WAIT_COMPLETED;
	}
	return u->waited;
}

static void dequeue(struct vmm_address_update *u)
{
	struct vmm_adapter *adapter = u->sched->adapter;

	vmm_list_remove(&u->link);
	atomic_fetch_sub(&adapter->paging_work, 1);
	vmm_progress_signal(adapter); /* wakes callers that wait for space in the queue */
}

static void drop_update(struct vmm_address_update *u)
{
	dequeue(u);
	if (u->waits && !u->waited && atomic_load(&u->state) == WAIT_BEGUN &&
	    !vmm_sync_packet_withdraw(&u->wait) &&
	    atomic_exchange(&u->state, WAIT_ABANDONED) != WAIT_COMPLETED)
		return; /* wait_completed is about to run, and frees it */
	free_update(u);
}

VMM_COLD static void report_no_memory(const struct vmm_address_update *u, vmm_status status)
{
	vmm_reason(
		u->sched->adapter->observe, status, u->device->process->id, u->device->handle,
		"VA-10: no memory for an update of GPU virtual addresses: the device is in error");
	vmm_device_fail(u->device, VMM_DEVICE_OUT_OF_MEMORY);
}

/* Advances an update as far as possible. Returns true if it is complete or dropped, and freed. */
static bool advance(struct vmm_address_update *u) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = u->sched->adapter;

	if (vmm_device_lost(u->device)) {
		drop_update(u);
		return true;
	}
	if (!wait_is_over(u))
		return false;
	if (!u->done) {
		vmm_status status = vmm_va_update_locked(u->device, &u->update, &u->sequence);

		if (status != VMM_OK)
			report_no_memory(u, status);
		u->done = true;
	}
	if (!vmm_timeline_done(adapter, adapter->paging_timeline, u->sequence))
		return false;
	vmm_sync_packet_signal(&u->signal);
	dequeue(u);
	free_update(u);
	return true;
}

static bool is_first(const struct vmm_sched *sched, const struct vmm_address_update *u)
{
	const struct vmm_list *link;

	vmm_list_for_each (link, &sched->address_updates) {
		const struct vmm_address_update *other =
			vmm_container_of(link, struct vmm_address_update, link);

		if (other->context == u->context)
			return other == u;
	}
	return true;
}

static void work_locked(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link, *next;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_for_each_safe (link, next, &sched->address_updates) {
		struct vmm_address_update *u =
			vmm_container_of(link, struct vmm_address_update, link);

		if (is_first(sched, u))
			(void)advance(u);
	}
}

void vmm_address_work(struct vmm_adapter *adapter)
{
	if (vmm_likely(!adapter->sched->caps->gpummu.supported) ||
	    !atomic_load(&adapter->paging_work) || atomic_load(&adapter->closed) ||
	    atomic_load(&adapter->recovering))
		return;
	vmm_paging_lock(adapter);
	work_locked(adapter->sched);
	vmm_paging_commit(adapter);
}

void vmm_address_end_device(struct vmm_device *device)
{
	struct vmm_sched *sched = device->adapter->sched;
	struct vmm_list *link, *next;

	if (!device->va)
		return;
	vmm_paging_lock(device->adapter);
	vmm_list_for_each_safe (link, next, &sched->address_updates) {
		struct vmm_address_update *u =
			vmm_container_of(link, struct vmm_address_update, link);

		if (u->device == device)
			drop_update(u);
	}
	vmm_paging_commit(device->adapter);
}

/* ---- the call ---- */

static NTSTATUS fill(struct vmm_address_update *u, const struct vmm_address_request *r)
{
	const uint64_t next = r->value + 1;
	struct vmm_sync_packet_request packet = {
		.form = VMM_SYNC_FORM_GPU_2, .handles = &r->fence, .values = &r->value, .count = 1};

	if (r->value == UINT64_MAX || (r->flags & ~1u) || !r->count ||
	    vmm_sync_values_of(u->device->process, r->fence) != VMM_SYNC_VALUES_ARRAY)
		return vmm_refuse_rule(
			u->sched->adapter->observe, STATUS_INVALID_PARAMETER, "VA-10",
			u->device->process->id, r->fence,
			"update GPU virtual address: %u operations, flags 0x%x, fence 0x%08x, "
			"value 0x%llx: needs at least one operation, no flag but DoNotWait, a live "
			"monitored fence, and a value below the largest, since the fence is "
			"signaled with the next one",
			r->count, r->flags, r->fence, (unsigned long long)r->value);
	u->waits = !(r->flags & 1u); /* DoNotWait */
	vmm_status status = VMM_OK;
	if (u->waits)
		status = vmm_sync_packet_fill(&u->wait, u->device, NULL, &packet);
	if (!vmm_ok(status)) {
		u->waits = false;
		return status;
	}
	packet.signal = true;
	packet.values = &next;
	packet.owner_bytes = sizeof(*u) + u->update.count * sizeof(*u->update.operations);
	status = vmm_sync_packet_fill(&u->signal, u->device, NULL, &packet);
	u->wait.wait.on_end = wait_completed;
	u->wait.wait.running_callbacks = &u->sched->callbacks;
	return status;
}

static uint32_t queued(const struct vmm_sched *sched, uint64_t context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_list *link;
	uint32_t count = 0;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_for_each (link, &sched->address_updates)
		count +=
			vmm_container_of(link, struct vmm_address_update, link)->context == context;
	return count;
}

/* Returns false if the queue of the context is full. Paging lock held. */
static bool enqueue(struct vmm_address_update *u) VMM_REQUIRES(vmm_paging_lock_class)
{
	if (queued(u->sched, u->context) >= QUEUED_MAX)
		return false;
	vmm_list_push_back(&u->sched->address_updates, &u->link);
	atomic_fetch_add(&u->sched->adapter->paging_work, 1);
	return true;
}

static NTSTATUS submit(struct vmm_address_update *u)
{
	struct vmm_sched *sched = u->sched;
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_device *device = u->device;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		bool lost = vmm_device_lost(device), in = !lost && enqueue(u);
		if (in)
			work_locked(sched);
		vmm_paging_commit(adapter);
		if (in) {
			vmm_worker_wake(sched); /* completions from now on are seen by the worker */
			return STATUS_SUCCESS;
		}
		vmm_status status = lost ? VMM_DEVICE_REMOVED
					 : vmm_wait_progress(adapter, seen, VIDMM_WAIT_SPACE);
		if (!vmm_ok(status)) {
			free_update(u);
			return status;
		}
	}
}

NTSTATUS vmm_sched_update_addresses(struct vmm_context *context,
				    struct vmm_address_request *request)
{
	struct vmm_address_update *u = vmm_calloc(1, sizeof(*u));
	NTSTATUS status;

	vmm_assert(vmm_context_is_valid(context));
	if (!u)
		return STATUS_NO_MEMORY;
	u->sched = context->device->adapter->sched;
	u->device = context->device;
	u->context = context->steps.owner.number;
	u->update.operations = request->operations;
	u->update.count = request->count;
	request->operations = NULL; /* owned by the update now */
	vmm_list_init(&u->link);
	status = vmm_va_update_prepare(u->device, &u->update);
	if (NT_SUCCESS(status))
		status = fill(u, request);
	if (NT_SUCCESS(status))
		return submit(u);
	free_update(u);
	return status;
}
