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

static inline VOID KeMemoryBarrier(VOID)
{
	__sync_synchronize();
}

#ifdef __cplusplus
}
#endif

#endif
