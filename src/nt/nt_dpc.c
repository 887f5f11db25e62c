/* SPDX-License-Identifier: MIT */
/*
 * Deferred procedure calls: one queue per world, drained by each thread that goes below
 * DISPATCH_LEVEL. The lock is not held while a routine runs. A DPC is never entered twice at the
 * same time. A routine may free its own KDPC, so the mark that ensures this is on the running
 * thread's stack, not in the object.
 */
#include "nt/nt_internal.h"

struct runner {
	struct vmm_list link;
	const KDPC *dpc;
};

void nt_dpc_init(struct vmm_nt *nt)
{
	vmm_os_mutex_init(&nt->dpc, nt->os, VMM_NT_RANK, "kernel DPC queue");
	InitializeListHead(&nt->dpc_queue);
	vmm_list_init(&nt->dpc_running);
}

void nt_dpc_finish(struct vmm_nt *nt)
{
	while (!IsListEmpty(&nt->dpc_queue)) {
		KDPC *dpc = CONTAINING_RECORD(RemoveHeadList(&nt->dpc_queue), KDPC, DpcListEntry);

		dpc->Queued = 0;
		nt_violation(nt, "NT-06", "KeInsertQueueDpc", "a DPC is still queued");
	}
	vmm_os_mutex_finish(&nt->dpc);
}

static bool is_running_locked(const struct vmm_nt *nt, const KDPC *dpc) VMM_REQUIRES(nt_dpc_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->dpc);
	vmm_list_for_each (pos, &nt->dpc_running) {
		if (vmm_container_of(pos, struct runner, link)->dpc == dpc)
			return true;
	}
	return false;
}

static KDPC *take_next_locked(struct vmm_nt *nt) VMM_REQUIRES(nt_dpc_class)
{
	vmm_assert_held(&nt->dpc);
	for (LIST_ENTRY *entry = nt->dpc_queue.Flink; entry != &nt->dpc_queue;
	     entry = entry->Flink) {
		KDPC *dpc = CONTAINING_RECORD(entry, KDPC, DpcListEntry);

		if (is_running_locked(nt, dpc))
			continue; /* the thread that runs it takes it again afterwards */
		RemoveEntryList(entry);
		dpc->Queued = 0;
		atomic_fetch_sub_explicit(&nt->dpc_queued, 1, memory_order_relaxed);
		return dpc;
	}
	return NULL;
}

bool nt_dpc_run_next(struct vmm_nt *nt, uint64_t *slots)
{
	uint64_t *irql = &slots[VMM_NT_SLOT_IRQL];
	struct runner runner;
	KDPC *dpc, call;

	nt_dpc_lock(nt);
	dpc = take_next_locked(nt);
	if (!dpc) {
		nt_dpc_unlock(nt);
		return false;
	}
	call = *dpc;
	runner.dpc = dpc;
	vmm_list_push_back(&nt->dpc_running, &runner.link);
	nt_dpc_unlock(nt);

	call.DeferredRoutine(dpc, call.DeferredContext, call.SystemArgument1, call.SystemArgument2);
	if (vmm_unlikely(*irql != DISPATCH_LEVEL)) {
		nt_violation(nt, "NT-02", "DPC routine", "entered at IRQL %u, returned at %u",
			     DISPATCH_LEVEL, (unsigned)*irql);
		*irql = DISPATCH_LEVEL;
	}

	nt_dpc_lock(nt);
	vmm_list_remove(&runner.link);
	nt_dpc_unlock(nt);
	/*
	 * A waiter is counted before it reads dpc_finished (Dekker pattern): a waiter that is not
	 * seen here sees this change, and then finds the queue as it is now.
	 */
	atomic_fetch_add(&nt->dpc_finished, 1);
	if (vmm_unlikely(atomic_load(&nt->dpc_waiters)))
		vmm_os_wake(nt->os, &nt->dpc_finished, UINT32_MAX);
	return true;
}

VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext)
{
	*Dpc = (KDPC){.Type = DPC_TYPE,
		      .DeferredRoutine = DeferredRoutine,
		      .DeferredContext = DeferredContext};
}

static bool is_dpc(struct vmm_nt *nt, const char *service, const KDPC *dpc)
{
	if (vmm_likely(dpc->Type == DPC_TYPE && dpc->DeferredRoutine))
		return true;
	nt_violation(nt, "NT-07", service, "the DPC is not initialized; the call has no effect");
	return false;
}

BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t irql;
	bool inserted;

	if (!is_dpc(nt, "KeInsertQueueDpc", Dpc))
		return FALSE;
	nt_dpc_lock(nt);
	inserted = !Dpc->Queued;
	if (inserted) {
		Dpc->Queued = 1;
		Dpc->SystemArgument1 = SystemArgument1;
		Dpc->SystemArgument2 = SystemArgument2;
		InsertTailList(&nt->dpc_queue, &Dpc->DpcListEntry);
		atomic_fetch_add_explicit(&nt->dpc_queued, 1, memory_order_release);
	}
	nt_dpc_unlock(nt);
	irql = vmm_nt_irql_of(slots);
	if (inserted && irql < DISPATCH_LEVEL) {
		slots[VMM_NT_SLOT_IRQL] = DISPATCH_LEVEL;
		vmm_nt_lower_of(nt, slots, "KeInsertQueueDpc", irql);
	}
	return (BOOLEAN)inserted;
}

BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc)
{
	struct vmm_nt *nt = vmm_nt_current();
	bool removed;

	if (!is_dpc(nt, "KeRemoveQueueDpc", Dpc))
		return FALSE;
	nt_dpc_lock(nt);
	removed = Dpc->Queued;
	if (removed) {
		RemoveEntryList(&Dpc->DpcListEntry);
		Dpc->Queued = 0;
		atomic_fetch_sub_explicit(&nt->dpc_queued, 1, memory_order_relaxed);
	}
	nt_dpc_unlock(nt);
	return (BOOLEAN)removed;
}

VOID KeFlushQueuedDpcs(VOID)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "KeFlushQueuedDpcs", PASSIVE_LEVEL);
	if (vmm_nt_irql(nt) >= DISPATCH_LEVEL)
		return; /* reported; a DPC that waits here would wait for itself */
	atomic_fetch_add(&nt->dpc_waiters, 1);
	for (;;) {
		uint32_t finished = atomic_load(&nt->dpc_finished);
		bool idle;

		vmm_nt_lower(nt, vmm_nt_raise(nt, DISPATCH_LEVEL));
		nt_dpc_lock(nt);
		idle = IsListEmpty(&nt->dpc_queue) && vmm_list_empty(&nt->dpc_running);
		nt_dpc_unlock(nt);
		if (idle || vmm_os_wait(nt->os, &nt->dpc_finished, finished, VMM_OS_FOREVER,
					"DPCs to finish", 0) == VMM_UNSUCCESSFUL)
			break;
	}
	atomic_fetch_sub(&nt->dpc_waiters, 1);
}
