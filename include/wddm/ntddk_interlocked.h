/* SPDX-License-Identifier: MIT */
/*
 * Interlocked operations: sequentially consistent, callable at any IRQL. Exchange,
 * CompareExchange, ExchangeAdd, Or, And and Xor return the old value; Increment, Decrement and Add
 * return the new one. Part of ntddk.h.
 */
#ifndef WDDM_NTDDK_INTERLOCKED_H
#define WDDM_NTDDK_INTERLOCKED_H

#include "wddm_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WDDM_INTERLOCKED(type, suffix)                                                         \
	static inline type InterlockedIncrement##suffix(type volatile *Addend)                 \
	{                                                                                      \
		return __atomic_add_fetch(Addend, 1, __ATOMIC_SEQ_CST);                        \
	}                                                                                      \
	static inline type InterlockedDecrement##suffix(type volatile *Addend)                 \
	{                                                                                      \
		return __atomic_sub_fetch(Addend, 1, __ATOMIC_SEQ_CST);                        \
	}                                                                                      \
	static inline type InterlockedAdd##suffix(type volatile *Addend, type Value)           \
	{                                                                                      \
		return __atomic_add_fetch(Addend, Value, __ATOMIC_SEQ_CST);                    \
	}                                                                                      \
	static inline type InterlockedExchangeAdd##suffix(type volatile *Addend, type Value)   \
	{                                                                                      \
		return __atomic_fetch_add(Addend, Value, __ATOMIC_SEQ_CST);                    \
	}                                                                                      \
	static inline type InterlockedExchange##suffix(type volatile *Target, type Value)      \
	{                                                                                      \
		return __atomic_exchange_n(Target, Value, __ATOMIC_SEQ_CST);                   \
	}                                                                                      \
	static inline type InterlockedCompareExchange##suffix(type volatile *Target,           \
							      type Exchange, type Comparand)   \
	{                                                                                      \
		__atomic_compare_exchange_n(Target, &Comparand, Exchange, 0, __ATOMIC_SEQ_CST, \
					    __ATOMIC_SEQ_CST);                                 \
		return Comparand;                                                              \
	}                                                                                      \
	static inline type InterlockedOr##suffix(type volatile *Target, type Set)              \
	{                                                                                      \
		return __atomic_fetch_or(Target, Set, __ATOMIC_SEQ_CST);                       \
	}                                                                                      \
	static inline type InterlockedAnd##suffix(type volatile *Target, type Set)             \
	{                                                                                      \
		return __atomic_fetch_and(Target, Set, __ATOMIC_SEQ_CST);                      \
	}                                                                                      \
	static inline type InterlockedXor##suffix(type volatile *Target, type Set)             \
	{                                                                                      \
		return __atomic_fetch_xor(Target, Set, __ATOMIC_SEQ_CST);                      \
	}

WDDM_INTERLOCKED(LONG, )
WDDM_INTERLOCKED(LONG64, 64)
WDDM_INTERLOCKED(SHORT, 16)
WDDM_INTERLOCKED(CHAR, 8)
#undef WDDM_INTERLOCKED

static inline PVOID InterlockedExchangePointer(PVOID volatile *Target, PVOID Value)
{
	return __atomic_exchange_n(Target, Value, __ATOMIC_SEQ_CST);
}

static inline PVOID InterlockedCompareExchangePointer(PVOID volatile *Destination, PVOID Exchange,
						      PVOID Comparand)
{
	__atomic_compare_exchange_n(Destination, &Comparand, Exchange, 0, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return Comparand;
}

/* The bit before. */
static inline UCHAR InterlockedBitTestAndSet(LONG volatile *Base, LONG Bit)
{
	ULONG mask = (ULONG)1 << (ULONG)(Bit % 32);

	return (UCHAR)(((ULONG)InterlockedOr(&Base[Bit / 32], (LONG)mask) & mask) != 0);
}

static inline UCHAR InterlockedBitTestAndReset(LONG volatile *Base, LONG Bit)
{
	ULONG mask = (ULONG)1 << (ULONG)(Bit % 32);

	return (UCHAR)(((ULONG)InterlockedAnd(&Base[Bit / 32], (LONG)~mask) & mask) != 0);
}

static inline UCHAR InterlockedBitTestAndSet64(LONG64 volatile *Base, LONG64 Bit)
{
	ULONG64 mask = (ULONG64)1 << (ULONG64)(Bit % 64);

	return (UCHAR)(((ULONG64)InterlockedOr64(&Base[Bit / 64], (LONG64)mask) & mask) != 0);
}

static inline UCHAR InterlockedBitTestAndReset64(LONG64 volatile *Base, LONG64 Bit)
{
	ULONG64 mask = (ULONG64)1 << (ULONG64)(Bit % 64);

	return (UCHAR)(((ULONG64)InterlockedAnd64(&Base[Bit / 64], (LONG64)~mask) & mask) != 0);
}

/* ---- loads and stores with an order ---- */

#define WDDM_ORDERED(type, suffix)                                                      \
	static inline type ReadAcquire##suffix(type const volatile *Source)             \
	{                                                                               \
		return __atomic_load_n(Source, __ATOMIC_ACQUIRE);                       \
	}                                                                               \
	static inline type ReadNoFence##suffix(type const volatile *Source)             \
	{                                                                               \
		return __atomic_load_n(Source, __ATOMIC_RELAXED);                       \
	}                                                                               \
	static inline VOID WriteRelease##suffix(type volatile *Destination, type Value) \
	{                                                                               \
		__atomic_store_n(Destination, Value, __ATOMIC_RELEASE);                 \
	}                                                                               \
	static inline VOID WriteNoFence##suffix(type volatile *Destination, type Value) \
	{                                                                               \
		__atomic_store_n(Destination, Value, __ATOMIC_RELAXED);                 \
	}

WDDM_ORDERED(LONG, )
WDDM_ORDERED(LONG64, 64)
WDDM_ORDERED(ULONG, ULong)
WDDM_ORDERED(ULONG64, ULong64)
WDDM_ORDERED(PVOID, Pointer)
#undef WDDM_ORDERED

/* The weaker orders are the strong one. */
#ifndef InterlockedIncrementAcquire
#define InterlockedIncrementAcquire              InterlockedIncrement
#define InterlockedIncrementRelease              InterlockedIncrement
#define InterlockedIncrementNoFence              InterlockedIncrement
#define InterlockedIncrementAcquire64            InterlockedIncrement64
#define InterlockedIncrementRelease64            InterlockedIncrement64
#define InterlockedIncrementNoFence64            InterlockedIncrement64
#define InterlockedIncrementAcquire16            InterlockedIncrement16
#define InterlockedIncrementRelease16            InterlockedIncrement16
#define InterlockedIncrementNoFence16            InterlockedIncrement16
#define InterlockedDecrementAcquire              InterlockedDecrement
#define InterlockedDecrementRelease              InterlockedDecrement
#define InterlockedDecrementNoFence              InterlockedDecrement
#define InterlockedDecrementAcquire64            InterlockedDecrement64
#define InterlockedDecrementRelease64            InterlockedDecrement64
#define InterlockedDecrementNoFence64            InterlockedDecrement64
#define InterlockedDecrementAcquire16            InterlockedDecrement16
#define InterlockedDecrementRelease16            InterlockedDecrement16
#define InterlockedDecrementNoFence16            InterlockedDecrement16
#define InterlockedAddAcquire                    InterlockedAdd
#define InterlockedAddRelease                    InterlockedAdd
#define InterlockedAddNoFence                    InterlockedAdd
#define InterlockedAddAcquire64                  InterlockedAdd64
#define InterlockedAddRelease64                  InterlockedAdd64
#define InterlockedAddNoFence64                  InterlockedAdd64
#define InterlockedAddAcquire16                  InterlockedAdd16
#define InterlockedAddRelease16                  InterlockedAdd16
#define InterlockedAddNoFence16                  InterlockedAdd16
#define InterlockedExchangeAddAcquire            InterlockedExchangeAdd
#define InterlockedExchangeAddRelease            InterlockedExchangeAdd
#define InterlockedExchangeAddNoFence            InterlockedExchangeAdd
#define InterlockedExchangeAddAcquire64          InterlockedExchangeAdd64
#define InterlockedExchangeAddRelease64          InterlockedExchangeAdd64
#define InterlockedExchangeAddNoFence64          InterlockedExchangeAdd64
#define InterlockedExchangeAddAcquire16          InterlockedExchangeAdd16
#define InterlockedExchangeAddRelease16          InterlockedExchangeAdd16
#define InterlockedExchangeAddNoFence16          InterlockedExchangeAdd16
#define InterlockedExchangeAcquire               InterlockedExchange
#define InterlockedExchangeRelease               InterlockedExchange
#define InterlockedExchangeNoFence               InterlockedExchange
#define InterlockedExchangeAcquire64             InterlockedExchange64
#define InterlockedExchangeRelease64             InterlockedExchange64
#define InterlockedExchangeNoFence64             InterlockedExchange64
#define InterlockedExchangeAcquire16             InterlockedExchange16
#define InterlockedExchangeRelease16             InterlockedExchange16
#define InterlockedExchangeNoFence16             InterlockedExchange16
#define InterlockedCompareExchangeAcquire        InterlockedCompareExchange
#define InterlockedCompareExchangeRelease        InterlockedCompareExchange
#define InterlockedCompareExchangeNoFence        InterlockedCompareExchange
#define InterlockedCompareExchangeAcquire64      InterlockedCompareExchange64
#define InterlockedCompareExchangeRelease64      InterlockedCompareExchange64
#define InterlockedCompareExchangeNoFence64      InterlockedCompareExchange64
#define InterlockedCompareExchangeAcquire16      InterlockedCompareExchange16
#define InterlockedCompareExchangeRelease16      InterlockedCompareExchange16
#define InterlockedCompareExchangeNoFence16      InterlockedCompareExchange16
#define InterlockedOrAcquire                     InterlockedOr
#define InterlockedOrRelease                     InterlockedOr
#define InterlockedOrNoFence                     InterlockedOr
#define InterlockedOrAcquire64                   InterlockedOr64
#define InterlockedOrRelease64                   InterlockedOr64
#define InterlockedOrNoFence64                   InterlockedOr64
#define InterlockedOrAcquire16                   InterlockedOr16
#define InterlockedOrRelease16                   InterlockedOr16
#define InterlockedOrNoFence16                   InterlockedOr16
#define InterlockedAndAcquire                    InterlockedAnd
#define InterlockedAndRelease                    InterlockedAnd
#define InterlockedAndNoFence                    InterlockedAnd
#define InterlockedAndAcquire64                  InterlockedAnd64
#define InterlockedAndRelease64                  InterlockedAnd64
#define InterlockedAndNoFence64                  InterlockedAnd64
#define InterlockedAndAcquire16                  InterlockedAnd16
#define InterlockedAndRelease16                  InterlockedAnd16
#define InterlockedAndNoFence16                  InterlockedAnd16
#define InterlockedXorAcquire                    InterlockedXor
#define InterlockedXorRelease                    InterlockedXor
#define InterlockedXorNoFence                    InterlockedXor
#define InterlockedXorAcquire64                  InterlockedXor64
#define InterlockedXorRelease64                  InterlockedXor64
#define InterlockedXorNoFence64                  InterlockedXor64
#define InterlockedXorAcquire16                  InterlockedXor16
#define InterlockedXorRelease16                  InterlockedXor16
#define InterlockedXorNoFence16                  InterlockedXor16
#define InterlockedExchangePointerAcquire        InterlockedExchangePointer
#define InterlockedExchangePointerRelease        InterlockedExchangePointer
#define InterlockedExchangePointerNoFence        InterlockedExchangePointer
#define InterlockedCompareExchangePointerAcquire InterlockedCompareExchangePointer
#define InterlockedCompareExchangePointerRelease InterlockedCompareExchangePointer
#define InterlockedCompareExchangePointerNoFence InterlockedCompareExchangePointer
#define _InterlockedIncrement                    InterlockedIncrement
#define _InterlockedIncrement64                  InterlockedIncrement64
#define _InterlockedIncrement16                  InterlockedIncrement16
#define _InterlockedDecrement                    InterlockedDecrement
#define _InterlockedDecrement64                  InterlockedDecrement64
#define _InterlockedDecrement16                  InterlockedDecrement16
#define _InterlockedAdd                          InterlockedAdd
#define _InterlockedAdd64                        InterlockedAdd64
#define _InterlockedAdd16                        InterlockedAdd16
#define _InterlockedExchangeAdd                  InterlockedExchangeAdd
#define _InterlockedExchangeAdd64                InterlockedExchangeAdd64
#define _InterlockedExchangeAdd16                InterlockedExchangeAdd16
#define _InterlockedExchange                     InterlockedExchange
#define _InterlockedExchange64                   InterlockedExchange64
#define _InterlockedExchange16                   InterlockedExchange16
#define _InterlockedCompareExchange              InterlockedCompareExchange
#define _InterlockedCompareExchange64            InterlockedCompareExchange64
#define _InterlockedCompareExchange16            InterlockedCompareExchange16
#define _InterlockedOr                           InterlockedOr
#define _InterlockedOr64                         InterlockedOr64
#define _InterlockedOr16                         InterlockedOr16
#define _InterlockedAnd                          InterlockedAnd
#define _InterlockedAnd64                        InterlockedAnd64
#define _InterlockedAnd16                        InterlockedAnd16
#define _InterlockedXor                          InterlockedXor
#define _InterlockedXor64                        InterlockedXor64
#define _InterlockedXor16                        InterlockedXor16
#define InterlockedExchangeAddSizeT(target, value) \
	((SIZE_T)InterlockedExchangeAdd64((LONG64 volatile *)(target), (LONG64)(value)))
#define InterlockedIncrementSizeT(target) \
	((SIZE_T)InterlockedIncrement64((LONG64 volatile *)(target)))
#define InterlockedDecrementSizeT(target) \
	((SIZE_T)InterlockedDecrement64((LONG64 volatile *)(target)))
#endif

static inline VOID KeMemoryBarrier(VOID)
{
	__sync_synchronize();
}

/* For the compiler alone. */
static inline VOID KeMemoryBarrierWithoutFence(VOID)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#ifndef MemoryBarrier
#define MemoryBarrier KeMemoryBarrier
#endif

#ifdef __cplusplus
}
#endif

#endif
