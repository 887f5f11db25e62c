/* SPDX-License-Identifier: MIT */
/*
 * Lists under a spin lock. The services may be called at any level, so the lock is used without its
 * IRQL rules: the caller runs at DISPATCH_LEVEL or above while it holds it.
 */
#include "nt/nt_internal.h"

/* Returns the IRQL before. */
static uint32_t enter(const char *service, PKSPIN_LOCK lock)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t before = vmm_nt_irql_of(slots);

	if (before < DISPATCH_LEVEL)
		vmm_nt_raise_of(nt, slots, service, DISPATCH_LEVEL);
	nt_spin_acquire(nt, slots, service, lock);
	return before;
}

static void leave(const char *service, PKSPIN_LOCK lock, uint32_t before)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	nt_spin_release(nt, slots, service, lock);
	if (before < DISPATCH_LEVEL)
		vmm_nt_lower_of(nt, slots, service, before);
}

static PLIST_ENTRY first_of(const LIST_ENTRY *head)
{
	return head->Flink == head ? NULL : head->Flink;
}

PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
					PKSPIN_LOCK Lock)
{
	uint32_t irql = enter("ExInterlockedInsertHeadList", Lock);
	PLIST_ENTRY first = first_of(ListHead);

	InsertHeadList(ListHead, ListEntry);
	leave("ExInterlockedInsertHeadList", Lock, irql);
	return first;
}

PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
					PKSPIN_LOCK Lock)
{
	uint32_t irql = enter("ExInterlockedInsertTailList", Lock);
	PLIST_ENTRY last = ListHead->Blink == ListHead ? NULL : ListHead->Blink;

	InsertTailList(ListHead, ListEntry);
	leave("ExInterlockedInsertTailList", Lock, irql);
	return last;
}

PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
	uint32_t irql = enter("ExInterlockedRemoveHeadList", Lock);
	PLIST_ENTRY first = first_of(ListHead);

	if (first)
		RemoveEntryList(first);
	leave("ExInterlockedRemoveHeadList", Lock, irql);
	return first;
}

PSINGLE_LIST_ENTRY ExInterlockedPushEntryList(PSINGLE_LIST_ENTRY ListHead,
					      PSINGLE_LIST_ENTRY ListEntry, PKSPIN_LOCK Lock)
{
	uint32_t irql = enter("ExInterlockedPushEntryList", Lock);
	PSINGLE_LIST_ENTRY first = ListHead->Next;

	PushEntryList(ListHead, ListEntry);
	leave("ExInterlockedPushEntryList", Lock, irql);
	return first;
}

PSINGLE_LIST_ENTRY ExInterlockedPopEntryList(PSINGLE_LIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
	uint32_t irql = enter("ExInterlockedPopEntryList", Lock);
	PSINGLE_LIST_ENTRY first = PopEntryList(ListHead);

	leave("ExInterlockedPopEntryList", Lock, irql);
	return first;
}
