/* SPDX-License-Identifier: MIT */
/*
 * Waitable objects. One dispatcher lock per world guards their states and lists of wait blocks, so
 * a wait for several objects is satisfied in one step. Each waiter sleeps on a private word. The
 * thread that satisfies a wait first unlinks all its blocks. It accesses neither the waiter nor the
 * object after it has set the word.
 */
#include "nt/nt_internal.h"

struct waiter {
	_Atomic uint32_t done;
	NTSTATUS status;
	WAIT_TYPE type;
	uint32_t identity; /* owns the mutexes whose wait is satisfied */
	ULONG count;
	KWAIT_BLOCK *blocks;
	struct waiter *next; /* next waiter that the same signal satisfies */
};

void nt_header_init(PDISPATCHER_HEADER header, uint8_t type, bool signaled)
{
	*header = (DISPATCHER_HEADER){.Type = type, .SignalState = signaled};
	InitializeListHead(&header->WaitListHead);
}

bool nt_header_valid(struct vmm_nt *nt, const char *service, const DISPATCHER_HEADER *header,
		     uint8_t first, uint8_t last)
{
	if (vmm_likely(header && header->Type >= first && header->Type <= last))
		return true;
	nt_violation(nt, "NT-07", service, "the object is not initialized or of another type (%u)",
		     header ? header->Type : 0);
	return false;
}

/* ---- satisfying waits; caller holds the dispatcher lock ---- */

/* A mutex is signaled for its owner, too. */
static bool is_signaled(const DISPATCHER_HEADER *header, const struct waiter *waiter)
{
	return header->SignalState > 0 || (header->Type == OBJECT_MUTEX &&
					   ((const KMUTEX *)header)->Owner == waiter->identity);
}

static void consume_locked(const struct vmm_nt *nt, PDISPATCHER_HEADER header,
			   const struct waiter *waiter) VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	switch (header->Type) {
	case OBJECT_SYNCHRONIZATION_EVENT:
	case OBJECT_SYNCHRONIZATION_TIMER:
		header->SignalState = 0;
		break;
	case OBJECT_MUTEX:
		((KMUTEX *)header)->Owner = waiter->identity;
		header->SignalState--;
		break;
	case OBJECT_SEMAPHORE:
		header->SignalState--;
		break;
	default:
		break;
	}
}

static bool all_signaled_locked(const struct vmm_nt *nt, const struct waiter *waiter)
	VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	for (ULONG i = 0; i < waiter->count; i++) {
		if (!is_signaled(waiter->blocks[i].Object, waiter))
			return false;
	}
	return true;
}

static void consume_all_locked(const struct vmm_nt *nt, const struct waiter *waiter)
	VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	for (ULONG i = 0; i < waiter->count; i++)
		consume_locked(nt, waiter->blocks[i].Object, waiter);
}

static void unlink_locked(const struct vmm_nt *nt, const struct waiter *waiter)
	VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	for (ULONG i = 0; i < waiter->count; i++)
		RemoveEntryList(&waiter->blocks[i].WaitListEntry);
}

static bool satisfy_locked(const struct vmm_nt *nt, struct waiter *waiter, const KWAIT_BLOCK *block)
	VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	if (waiter->type == WaitAll) {
		if (!all_signaled_locked(nt, waiter))
			return false;
		consume_all_locked(nt, waiter);
		waiter->status = STATUS_SUCCESS;
	} else {
		consume_locked(nt, block->Object, waiter);
		waiter->status = (NTSTATUS)(STATUS_WAIT_0 + block->WaitKey);
	}
	unlink_locked(nt, waiter);
	return true;
}

_Atomic uint32_t *nt_signal_locked(struct vmm_nt *nt, PDISPATCHER_HEADER header)
{
	vmm_assert_held(&nt->dispatcher);
	header->SignalState = 1;
	return nt_satisfy_locked(nt, header);
}

_Atomic uint32_t *nt_satisfy_locked(struct vmm_nt *nt, PDISPATCHER_HEADER header)
{
	LIST_ENTRY *head = &header->WaitListHead;
	LIST_ENTRY *entry = head->Flink;
	struct waiter *first = NULL, **last = &first, *waiter;
	_Atomic uint32_t *word = NULL;

	vmm_assert_held(&nt->dispatcher);
	while (entry != head && header->SignalState > 0) {
		KWAIT_BLOCK *block = CONTAINING_RECORD(entry, KWAIT_BLOCK, WaitListEntry);

		waiter = block->Waiter;
		if (!satisfy_locked(nt, waiter, block)) {
			entry = entry->Flink;
			continue;
		}
		waiter->next = NULL;
		*last = waiter;
		last = &waiter->next;
		/* Unlinking may have removed further entries of this list, so start again. */
		entry = head->Flink;
	}
	/*
	 * After the first `done` is set, the object may be freed: drivers keep events on the stack
	 * of the waiter.
	 */
	while ((waiter = first)) {
		if (word)
			vmm_os_wake(nt->os, word, 1);
		first = waiter->next;
		word = &waiter->done;
		atomic_store_explicit(&waiter->done, 1, memory_order_release);
	}
	return word;
}

/* ---- waiting ---- */

uint64_t nt_deadline_ns(struct vmm_nt *nt, const LARGE_INTEGER *timeout)
{
	uint64_t now, ns, deadline;

	if (!timeout)
		return VMM_OS_FOREVER;
	now = vmm_os_now_ns(nt->os);
	if (timeout->QuadPart > 0) {
		uint64_t absolute = (uint64_t)timeout->QuadPart;

		if (absolute <= nt->config.system_time_base)
			return now;
		now = 0;
		ns = absolute - nt->config.system_time_base;
	} else {
		ns = -(uint64_t)timeout->QuadPart;
	}
	if (vmm_mul_overflows(ns, 100, &ns) || vmm_add_overflows(now, ns, &deadline))
		return VMM_OS_FOREVER;
	return deadline;
}

/* Satisfies the wait at once if possible. Returns STATUS_PENDING if the caller has to sleep. */
static NTSTATUS begin_locked(const struct vmm_nt *nt, struct waiter *waiter)
	VMM_REQUIRES(nt_dispatcher_class)
{
	vmm_assert_held(&nt->dispatcher);
	if (waiter->type == WaitAll) {
		if (!all_signaled_locked(nt, waiter))
			return STATUS_PENDING;
		consume_all_locked(nt, waiter);
		return STATUS_SUCCESS;
	}
	for (ULONG i = 0; i < waiter->count; i++) {
		if (is_signaled(waiter->blocks[i].Object, waiter)) {
			consume_locked(nt, waiter->blocks[i].Object, waiter);
			return (NTSTATUS)(STATUS_WAIT_0 + i);
		}
	}
	return STATUS_PENDING;
}

static NTSTATUS sleep_until_done(struct vmm_nt *nt, struct waiter *waiter, uint64_t deadline_ns)
{
	const char *why = waiter->blocks[0].Object->Type == OBJECT_THREAD ? "end of kernel thread"
									  : "kernel objects";

	while (!atomic_load_explicit(&waiter->done, memory_order_acquire)) {
		vmm_status status =
			vmm_os_wait(nt->os, &waiter->done, 0, deadline_ns, why, waiter->count);

		if (status == VMM_OK)
			continue;
		nt_dispatcher_lock(nt);
		if (!atomic_load_explicit(&waiter->done, memory_order_acquire)) {
			unlink_locked(nt, waiter);
			waiter->status =
				status == VMM_TIMEOUT ? STATUS_TIMEOUT : STATUS_UNSUCCESSFUL;
			atomic_store_explicit(&waiter->done, 1, memory_order_relaxed);
		}
		nt_dispatcher_unlock(nt);
	}
	return waiter->status;
}

static NTSTATUS wait_for(struct vmm_nt *nt, uint64_t *slots, const char *service,
			 struct waiter *waiter, const LARGE_INTEGER *timeout)
{
	bool poll = timeout && timeout->QuadPart == 0;
	uint32_t irql = vmm_nt_irql_of(slots);
	NTSTATUS status;

	if (irql > (poll ? DISPATCH_LEVEL : APC_LEVEL))
		nt_violation(nt, poll ? "NT-01" : "NT-03", service, "%s %s at IRQL %u", service,
			     poll ? "called" : "waits", irql);
	waiter->identity = nt_identity(nt, slots);
	nt_dispatcher_lock(nt);
	status = begin_locked(nt, waiter);
	if (status == STATUS_PENDING && !poll) {
		for (ULONG i = 0; i < waiter->count; i++)
			InsertTailList(&waiter->blocks[i].Object->WaitListHead,
				       &waiter->blocks[i].WaitListEntry);
	}
	nt_dispatcher_unlock(nt);
	if (status != STATUS_PENDING)
		return status;
	if (poll) {
		nt_polled(nt);
		return STATUS_TIMEOUT;
	}
	slots[VMM_NT_SLOT_WAIT] = (uintptr_t)service;
	status = sleep_until_done(nt, waiter, nt_deadline_ns(nt, timeout));
	slots[VMM_NT_SLOT_WAIT] = 0;
	return status;
}

NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
			       BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	KWAIT_BLOCK block = {.Object = Object};
	struct waiter waiter = {.type = WaitAny, .count = 1, .blocks = &block};

	(void)WaitReason, (void)WaitMode, (void)Alertable;
	block.Waiter = &waiter;
	if (!nt_header_valid(nt, "KeWaitForSingleObject", Object, OBJECT_NOTIFICATION_EVENT,
			     OBJECT_SEMAPHORE))
		return STATUS_INVALID_PARAMETER;
	return wait_for(nt, slots, "KeWaitForSingleObject", &waiter, Timeout);
}

NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
				  KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
				  BOOLEAN Alertable, PLARGE_INTEGER Timeout,
				  PKWAIT_BLOCK WaitBlockArray)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	KWAIT_BLOCK built_in[THREAD_WAIT_OBJECTS];
	struct waiter waiter = {.type = WaitType, .count = Count};

	(void)WaitReason, (void)WaitMode, (void)Alertable;
	waiter.blocks = WaitBlockArray ? WaitBlockArray : built_in;
	if (!Count || Count > (WaitBlockArray ? MAXIMUM_WAIT_OBJECTS : THREAD_WAIT_OBJECTS) ||
	    (WaitType != WaitAll && WaitType != WaitAny)) {
		nt_violation(nt, "NT-07", "KeWaitForMultipleObjects",
			     "%u objects %s a wait block array, wait type %d", Count,
			     WaitBlockArray ? "with" : "without", (int)WaitType);
		return STATUS_INVALID_PARAMETER;
	}
	for (ULONG i = 0; i < Count; i++) {
		if (!nt_header_valid(nt, "KeWaitForMultipleObjects", Object[i],
				     OBJECT_NOTIFICATION_EVENT, OBJECT_SEMAPHORE))
			return STATUS_INVALID_PARAMETER;
		waiter.blocks[i] =
			(KWAIT_BLOCK){.Waiter = &waiter, .Object = Object[i], .WaitKey = i};
	}
	return wait_for(nt, slots, "KeWaitForMultipleObjects", &waiter, Timeout);
}
