/* SPDX-License-Identifier: MIT */
/*
 * Lists besides the doubly linked ones of ntddk_types.h, and lists under a spin lock. Part of
 * ntddk.h.
 */
#ifndef WDDM_NTDDK_LIST_H
#define WDDM_NTDDK_LIST_H

#include "ntddk_sync.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Links a list without its head, ListToAppend, to the end of another. */
static inline VOID AppendTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListToAppend)
{
	PLIST_ENTRY end = ListHead->Blink, last = ListToAppend->Blink;

	end->Flink = ListToAppend;
	ListHead->Blink = last;
	last->Flink = ListHead;
	ListToAppend->Blink = end;
}

/* ---- singly linked lists ---- */

typedef struct _SINGLE_LIST_ENTRY {
	struct _SINGLE_LIST_ENTRY *Next;
} SINGLE_LIST_ENTRY, *PSINGLE_LIST_ENTRY;

static inline VOID PushEntryList(PSINGLE_LIST_ENTRY ListHead, PSINGLE_LIST_ENTRY Entry)
{
	Entry->Next = ListHead->Next;
	ListHead->Next = Entry;
}

/* NULL: the list is empty. */
static inline PSINGLE_LIST_ENTRY PopEntryList(PSINGLE_LIST_ENTRY ListHead)
{
	PSINGLE_LIST_ENTRY first = ListHead->Next;

	if (first)
		ListHead->Next = first->Next;
	return first;
}

/* ---- lists under a spin lock, which only these services may use [any] ---- */

/* The first entry before the call; NULL: the list was empty. */
PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
					PKSPIN_LOCK Lock);
PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
					PKSPIN_LOCK Lock);
PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock);
PSINGLE_LIST_ENTRY ExInterlockedPushEntryList(PSINGLE_LIST_ENTRY ListHead,
					      PSINGLE_LIST_ENTRY ListEntry, PKSPIN_LOCK Lock);
PSINGLE_LIST_ENTRY ExInterlockedPopEntryList(PSINGLE_LIST_ENTRY ListHead, PKSPIN_LOCK Lock);

/* ---- sequenced lists [any]: last in, first out, safe among threads ---- */

typedef struct __attribute__((aligned(16))) _SLIST_ENTRY {
	struct _SLIST_ENTRY *Next;
} SLIST_ENTRY, *PSLIST_ENTRY;

typedef struct __attribute__((aligned(16))) _SLIST_HEADER {
	PSLIST_ENTRY First;
	USHORT Depth;
	USHORT Busy; /* one thread changes the list */
	ULONG Sequence;
} SLIST_HEADER, *PSLIST_HEADER;

static inline VOID WddmSListEnter(PSLIST_HEADER ListHead)
{
	while (__atomic_exchange_n(&ListHead->Busy, (USHORT)1, __ATOMIC_ACQUIRE))
		;
}

static inline VOID WddmSListLeave(PSLIST_HEADER ListHead)
{
	ListHead->Sequence++;
	__atomic_store_n(&ListHead->Busy, (USHORT)0, __ATOMIC_RELEASE);
}

static inline VOID InitializeSListHead(PSLIST_HEADER ListHead)
{
	ListHead->First = NULL;
	ListHead->Depth = ListHead->Busy = 0;
	ListHead->Sequence = 0;
}

/* The first entry before the call. */
static inline PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry)
{
	PSLIST_ENTRY before;

	WddmSListEnter(ListHead);
	before = ListHead->First;
	ListEntry->Next = before;
	ListHead->First = ListEntry;
	ListHead->Depth++;
	WddmSListLeave(ListHead);
	return before;
}

/* NULL: the list is empty. */
static inline PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER ListHead)
{
	PSLIST_ENTRY first;

	WddmSListEnter(ListHead);
	first = ListHead->First;
	if (first) {
		ListHead->First = first->Next;
		ListHead->Depth--;
	}
	WddmSListLeave(ListHead);
	return first;
}

/* Empties the list and returns all entries, linked. */
static inline PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER ListHead)
{
	PSLIST_ENTRY first;

	WddmSListEnter(ListHead);
	first = ListHead->First;
	ListHead->First = NULL;
	ListHead->Depth = 0;
	WddmSListLeave(ListHead);
	return first;
}

static inline USHORT QueryDepthSList(PSLIST_HEADER ListHead)
{
	return __atomic_load_n(&ListHead->Depth, __ATOMIC_RELAXED);
}

#ifndef ExInitializeSListHead
#define ExInitializeSListHead                      InitializeSListHead
#define ExQueryDepthSList                          QueryDepthSList
#define ExInterlockedPushEntrySList(head, e, lock) InterlockedPushEntrySList((head), (e))
#define ExInterlockedPopEntrySList(head, lock)     InterlockedPopEntrySList(head)
#define ExInterlockedFlushSList                    InterlockedFlushSList
#endif

#ifdef __cplusplus
}
#endif

#endif
