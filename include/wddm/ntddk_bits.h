/* SPDX-License-Identifier: MIT */
/*
 * Bit scans and bit maps. Part of ntddk.h.
 */
#ifndef WDDM_NTDDK_BITS_H
#define WDDM_NTDDK_BITS_H

#include "ntddk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scans [any]: the position of the lowest or highest bit; 0: the mask has none ---- */

static inline UCHAR BitScanForward(ULONG *Index, ULONG Mask)
{
	if (!Mask)
		return 0;
	*Index = (ULONG)__builtin_ctz(Mask);
	return 1;
}

static inline UCHAR BitScanReverse(ULONG *Index, ULONG Mask)
{
	if (!Mask)
		return 0;
	*Index = 31u - (ULONG)__builtin_clz(Mask);
	return 1;
}

static inline UCHAR BitScanForward64(ULONG *Index, ULONG64 Mask)
{
	if (!Mask)
		return 0;
	*Index = (ULONG)__builtin_ctzll(Mask);
	return 1;
}

static inline UCHAR BitScanReverse64(ULONG *Index, ULONG64 Mask)
{
	if (!Mask)
		return 0;
	*Index = 63u - (ULONG)__builtin_clzll(Mask);
	return 1;
}

#ifndef _BitScanForward
#define _BitScanForward   BitScanForward
#define _BitScanReverse   BitScanReverse
#define _BitScanForward64 BitScanForward64
#define _BitScanReverse64 BitScanReverse64
#endif

static inline UCHAR BitTest(const LONG *Base, LONG Offset)
{
	return (UCHAR)((ULONG)Base[Offset / 32] >> (ULONG)(Offset % 32) & 1);
}

static inline ULONG RtlNumberOfSetBitsUlongPtr(ULONG_PTR Target)
{
	return (ULONG)__builtin_popcountll(Target);
}

/* -1: no bit is set. */
static inline CCHAR RtlFindMostSignificantBit(ULONGLONG Set)
{
	return (CCHAR)(Set ? 63 - __builtin_clzll(Set) : -1);
}

static inline CCHAR RtlFindLeastSignificantBit(ULONGLONG Set)
{
	return (CCHAR)(Set ? __builtin_ctzll(Set) : -1);
}

/* ---- bit maps [any] if the map is resident; the caller excludes other threads ---- */

typedef struct _RTL_BITMAP {
	ULONG SizeOfBitMap; /* bits */
	PULONG Buffer;
} RTL_BITMAP, *PRTL_BITMAP;

/* What is outside the map is not touched (NT-16). A find that fails returns 0xFFFFFFFF. */
VOID RtlInitializeBitMap(PRTL_BITMAP BitMapHeader, PULONG BitMapBuffer, ULONG SizeOfBitMap);
VOID RtlClearBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);
VOID RtlSetBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);
BOOLEAN RtlTestBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);
VOID RtlClearAllBits(PRTL_BITMAP BitMapHeader);
VOID RtlSetAllBits(PRTL_BITMAP BitMapHeader);
VOID RtlClearBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToClear);
VOID RtlSetBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToSet);
BOOLEAN RtlAreBitsClear(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);
BOOLEAN RtlAreBitsSet(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);
ULONG RtlNumberOfSetBits(PRTL_BITMAP BitMapHeader);
ULONG RtlNumberOfClearBits(PRTL_BITMAP BitMapHeader);
/* The search begins at the hint, and goes on from the beginning of the map. */
ULONG RtlFindClearBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
ULONG RtlFindSetBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
ULONG RtlFindClearBitsAndSet(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
ULONG RtlFindSetBitsAndClear(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
/* The length of the run; 0: none. */
ULONG RtlFindNextForwardRunClear(PRTL_BITMAP BitMapHeader, ULONG FromIndex,
				 PULONG StartingRunIndex);
ULONG RtlFindFirstRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex);
ULONG RtlFindLongestRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex);

#ifndef RtlCheckBit
#define RtlCheckBit(map, bit) RtlTestBit((map), (bit))
#endif

#ifdef __cplusplus
}
#endif

#endif
