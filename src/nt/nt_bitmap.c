/* SPDX-License-Identifier: MIT */
/* Bit maps of drivers. Stateless. */
#include "nt/nt_internal.h"

#define NOT_FOUND UINT32_MAX

/* Reports NT-16 unless [first, +count) is in the map. */
static bool is_inside(const char *service, const RTL_BITMAP *map, ULONG first, ULONG count)
{
	if (vmm_likely(first <= map->SizeOfBitMap && count <= map->SizeOfBitMap - first))
		return true;
	nt_violation(vmm_nt_current(), "NT-16", service,
		     "bits %u, %u of them, are outside a map of %u bits", first, count,
		     map->SizeOfBitMap);
	return false;
}

static bool get(const RTL_BITMAP *map, ULONG bit)
{
	return map->Buffer[bit / 32] >> bit % 32 & 1;
}

static void put(RTL_BITMAP *map, ULONG first, ULONG count, bool set)
{
	for (ULONG i = first; i < first + count; i++) {
		ULONG mask = (ULONG)1 << i % 32;

		map->Buffer[i / 32] =
			set ? map->Buffer[i / 32] | mask : map->Buffer[i / 32] & ~mask;
	}
}

static ULONG run_length(const RTL_BITMAP *map, ULONG first, ULONG most, bool set)
{
	ULONG count = 0;

	while (count < most && first + count < map->SizeOfBitMap && get(map, first + count) == set)
		count++;
	return count;
}

VOID RtlInitializeBitMap(PRTL_BITMAP BitMapHeader, PULONG BitMapBuffer, ULONG SizeOfBitMap)
{
	*BitMapHeader = (RTL_BITMAP){.SizeOfBitMap = SizeOfBitMap, .Buffer = BitMapBuffer};
}

VOID RtlClearBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToClear)
{
	if (is_inside("RtlClearBits", BitMapHeader, StartingIndex, NumberToClear))
		put(BitMapHeader, StartingIndex, NumberToClear, false);
}

VOID RtlSetBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToSet)
{
	if (is_inside("RtlSetBits", BitMapHeader, StartingIndex, NumberToSet))
		put(BitMapHeader, StartingIndex, NumberToSet, true);
}

VOID RtlClearBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber)
{
	RtlClearBits(BitMapHeader, BitNumber, 1);
}

VOID RtlSetBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber)
{
	RtlSetBits(BitMapHeader, BitNumber, 1);
}

BOOLEAN RtlTestBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber)
{
	return (BOOLEAN)(is_inside("RtlTestBit", BitMapHeader, BitNumber, 1) &&
			 get(BitMapHeader, BitNumber));
}

VOID RtlClearAllBits(PRTL_BITMAP BitMapHeader)
{
	RtlClearBits(BitMapHeader, 0, BitMapHeader->SizeOfBitMap);
}

VOID RtlSetAllBits(PRTL_BITMAP BitMapHeader)
{
	RtlSetBits(BitMapHeader, 0, BitMapHeader->SizeOfBitMap);
}

BOOLEAN RtlAreBitsClear(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length)
{
	return (BOOLEAN)(Length &&
			 is_inside("RtlAreBitsClear", BitMapHeader, StartingIndex, Length) &&
			 run_length(BitMapHeader, StartingIndex, Length, false) == Length);
}

BOOLEAN RtlAreBitsSet(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length)
{
	return (BOOLEAN)(Length &&
			 is_inside("RtlAreBitsSet", BitMapHeader, StartingIndex, Length) &&
			 run_length(BitMapHeader, StartingIndex, Length, true) == Length);
}

ULONG RtlNumberOfSetBits(PRTL_BITMAP BitMapHeader)
{
	ULONG count = 0;

	for (ULONG i = 0; i < BitMapHeader->SizeOfBitMap; i++)
		count += get(BitMapHeader, i);
	return count;
}

ULONG RtlNumberOfClearBits(PRTL_BITMAP BitMapHeader)
{
	return BitMapHeader->SizeOfBitMap - RtlNumberOfSetBits(BitMapHeader);
}

/* ---- find ---- */

static ULONG find_from(const RTL_BITMAP *map, ULONG count, ULONG at, bool set)
{
	while (at < map->SizeOfBitMap && count <= map->SizeOfBitMap - at) {
		ULONG length = run_length(map, at, count, set);

		if (length == count)
			return at;
		at += length + 1;
	}
	return NOT_FOUND;
}

static ULONG find(const RTL_BITMAP *map, ULONG count, ULONG hint, bool set)
{
	ULONG at = hint < map->SizeOfBitMap ? hint : 0, found;

	if (!count)
		return at & ~7u;
	found = find_from(map, count, at, set);
	return found == NOT_FOUND && at ? find_from(map, count, 0, set) : found;
}

ULONG RtlFindClearBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex)
{
	return find(BitMapHeader, NumberToFind, HintIndex, false);
}

ULONG RtlFindSetBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex)
{
	return find(BitMapHeader, NumberToFind, HintIndex, true);
}

ULONG RtlFindClearBitsAndSet(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex)
{
	ULONG found = find(BitMapHeader, NumberToFind, HintIndex, false);

	if (found != NOT_FOUND)
		put(BitMapHeader, found, NumberToFind, true);
	return found;
}

ULONG RtlFindSetBitsAndClear(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex)
{
	ULONG found = find(BitMapHeader, NumberToFind, HintIndex, true);

	if (found != NOT_FOUND)
		put(BitMapHeader, found, NumberToFind, false);
	return found;
}

ULONG RtlFindNextForwardRunClear(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex)
{
	ULONG at = FromIndex;

	while (at < BitMapHeader->SizeOfBitMap && get(BitMapHeader, at))
		at++;
	*StartingRunIndex = at;
	return run_length(BitMapHeader, at, UINT32_MAX, false);
}

ULONG RtlFindFirstRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex)
{
	return RtlFindNextForwardRunClear(BitMapHeader, 0, StartingIndex);
}

ULONG RtlFindLongestRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex)
{
	ULONG best = 0, at = 0, start, length;

	*StartingIndex = 0;
	while ((length = RtlFindNextForwardRunClear(BitMapHeader, at, &start))) {
		if (length > best) {
			best = length;
			*StartingIndex = start;
		}
		at = start + length;
	}
	return best;
}
