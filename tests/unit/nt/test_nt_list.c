/* SPDX-License-Identifier: MIT */
/* Lists under locks, sequenced lists, bit scans and maps, interlocked variants, processors. */
#include "nt_world.h"

static void lists_are_joined_and_stacked(void **state)
{
	LIST_ENTRY head, other, a, b, c;
	SINGLE_LIST_ENTRY top = {NULL}, x, y;

	(void)state;
	InitializeListHead(&head);
	InitializeListHead(&other);
	InsertTailList(&head, &a);
	InsertTailList(&other, &b);
	InsertTailList(&other, &c);
	RemoveEntryList(&other);
	AppendTailList(&head, &b);
	assert_ptr_equal(RemoveHeadList(&head), &a);
	assert_ptr_equal(RemoveHeadList(&head), &b);
	assert_ptr_equal(RemoveHeadList(&head), &c);
	assert_true(IsListEmpty(&head));
	PushEntryList(&top, &x);
	PushEntryList(&top, &y);
	assert_ptr_equal(PopEntryList(&top), &y);
	assert_ptr_equal(PopEntryList(&top), &x);
	assert_null(PopEntryList(&top));
}

static void lists_under_a_spin_lock_work_at_any_level(void **state)
{
	LIST_ENTRY head, a, b;
	SINGLE_LIST_ENTRY top = {NULL}, x;
	KSPIN_LOCK lock;
	KIRQL irql;

	(void)state;
	KeInitializeSpinLock(&lock);
	InitializeListHead(&head);
	assert_null(ExInterlockedInsertTailList(&head, &a, &lock));
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	KeRaiseIrql(HIGH_LEVEL, &irql);
	assert_ptr_equal(ExInterlockedInsertHeadList(&head, &b, &lock), &a);
	assert_int_equal(KeGetCurrentIrql(), HIGH_LEVEL);
	KeLowerIrql(irql);
	assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &b);
	assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &a);
	assert_null(ExInterlockedRemoveHeadList(&head, &lock));
	assert_null(ExInterlockedPushEntryList(&top, &x, &lock));
	assert_ptr_equal(ExInterlockedPopEntryList(&top, &lock), &x);
	assert_null(ExInterlockedPopEntryList(&top, &lock));
	assert_true(KeTestSpinLock(&lock));
}

struct moved {
	SLIST_HEADER from, to;
};

static VOID move_entries(PVOID context)
{
	struct moved *lists = context;
	PSLIST_ENTRY entry;

	while ((entry = InterlockedPopEntrySList(&lists->from)))
		InterlockedPushEntrySList(&lists->to, entry);
}

static void sequenced_lists_lose_no_entry(void **state)
{
	enum { ENTRIES = 2000 };
	static SLIST_ENTRY entries[ENTRIES];
	struct moved lists;
	PVOID threads[3];
	PSLIST_ENTRY all;
	int count = 0;

	(void)state;
	InitializeSListHead(&lists.from);
	ExInitializeSListHead(&lists.to);
	for (int i = 0; i < ENTRIES; i++)
		InterlockedPushEntrySList(&lists.from, &entries[i]);
	assert_int_equal(ExQueryDepthSList(&lists.from), ENTRIES);
	for (int i = 0; i < 3; i++)
		threads[i] = start_thread(move_entries, &lists);
	for (int i = 0; i < 3; i++)
		end_thread(threads[i]);
	assert_int_equal(QueryDepthSList(&lists.to), ENTRIES);
	for (all = InterlockedFlushSList(&lists.to); all; all = all->Next)
		count++;
	assert_int_equal(count, ENTRIES);
	assert_int_equal(QueryDepthSList(&lists.to), 0);
}

static void bits_are_scanned(void **state)
{
	LONG word = 0;
	ULONG at = 9;

	(void)state;
	assert_int_equal(BitScanForward(&at, 0x50), 1);
	assert_int_equal(at, 4);
	assert_int_equal(_BitScanReverse(&at, 0x50), 1);
	assert_int_equal(at, 6);
	assert_int_equal(BitScanForward64(&at, 0), 0);
	assert_int_equal(BitScanReverse64(&at, 1ull << 63), 1);
	assert_int_equal(at, 63);
	assert_int_equal(RtlFindMostSignificantBit(0), -1);
	assert_int_equal(RtlFindLeastSignificantBit(0x30), 4);
	assert_int_equal(InterlockedBitTestAndSet(&word, 31), 0);
	assert_int_equal(InterlockedBitTestAndSet(&word, 31), 1);
	assert_int_equal(BitTest(&word, 31), 1);
	assert_int_equal(InterlockedBitTestAndReset(&word, 31), 1);
	assert_int_equal(InterlockedIncrementAcquire(&word), 1);
	assert_int_equal(ReadAcquire(&word), 1);
	WriteRelease(&word, 7);
	assert_int_equal(InterlockedCompareExchangeNoFence(&word, 8, 7), 7);
}

static void nt_16_bit_maps_find_runs_and_stay_inside(void **state)
{
	struct world *world = *state;
	ULONG words[3] = {0, 0, 0xDEADBEEF}, start;
	RTL_BITMAP map;

	RtlInitializeBitMap(&map, words, 40);
	assert_int_equal(RtlFindClearBitsAndSet(&map, 30, 0), 0);
	assert_int_equal(RtlFindClearBitsAndSet(&map, 11, 0), UINT32_MAX);
	assert_int_equal(RtlFindClearBits(&map, 4, 36), 36);
	RtlSetBit(&map, 38);
	assert_int_equal(RtlFindClearBits(&map, 8, 36), 30);
	assert_int_equal(RtlNumberOfSetBits(&map), 31);
	assert_int_equal(RtlNumberOfClearBits(&map), 9);
	assert_true(RtlAreBitsSet(&map, 0, 30));
	assert_true(RtlAreBitsClear(&map, 30, 8));
	assert_int_equal(RtlFindNextForwardRunClear(&map, 35, &start), 3);
	assert_int_equal(start, 35);
	assert_int_equal(RtlFindLongestRunClear(&map, &start), 8);
	assert_int_equal(start, 30);
	RtlSetBits(&map, 39, 2);
	expect_violation(world, "NT-16", "RtlSetBits", "map of 40 bits");
	assert_false(RtlTestBit(&map, 40));
	expect_violation(world, "NT-16", "RtlTestBit", "bits 40");
	assert_false(RtlCheckBit(&map, 39));
	RtlSetAllBits(&map);
	assert_int_equal(RtlFindSetBitsAndClear(&map, 40, 3), 0);
	assert_int_equal(words[2], 0xDEADBEEF);
}

static VOID put_processor(PVOID context)
{
	*(ULONG *)context = KeGetCurrentProcessorNumber();
}

static void threads_have_their_processors(void **state)
{
	ULONG mine = KeGetCurrentProcessorNumberEx(NULL), other = mine;
	KFLOATING_SAVE save;
	LARGE_INTEGER tick;

	(void)state;
	end_thread(start_thread(put_processor, &other));
	assert_int_not_equal(mine, other);
	assert_true(other < KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS));
	assert_int_equal(KeQueryActiveProcessorCount(NULL), 64);
	assert_int_equal(KeSaveFloatingPointState(&save), STATUS_SUCCESS);
	assert_int_equal(KeRestoreFloatingPointState(&save), STATUS_SUCCESS);
	KeQueryTickCount(&tick);
	assert_true(tick.QuadPart <= (LONGLONG)(KeQueryInterruptTime() / KeQueryTimeIncrement()));
	assert_ptr_equal(PsGetProcessId(PsGetCurrentProcess()), PsGetCurrentProcessId());
	assert_ptr_equal(PsGetCurrentThread(), KeGetCurrentThread());
}

static void print_with_list(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vDbgPrintExWithPrefix("gpu: ", DPFLTR_IHVVIDEO_ID, DPFLTR_ERROR_LEVEL, format, arguments);
	va_end(arguments);
}

static void debug_output_has_components_and_break_points(void **state)
{
	struct world *world = *state;

	print_with_list("ring %u", 3);
	assert_string_equal(world->printed, "gpu: ring 3");
	assert_int_equal(world->print_component, 78);
	KdPrintEx((DPFLTR_IHVVIDEO_ID, DPFLTR_INFO_LEVEL, "%d", 5));
	assert_int_equal(world->print_level, 3);
	KdBreakPoint();
	expect_violation(world, "NT-09", "DbgBreakPoint", "without a debugger");
	assert_false(NT_VERIFY(1 == 2));
	expect_violation(world, "NT-10", "ASSERT", "1 == 2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(lists_are_joined_and_stacked),
		ON_SIM(lists_under_a_spin_lock_work_at_any_level),
		BOTH(sequenced_lists_lose_no_entry),
		ON_SIM(bits_are_scanned),
		ON_SIM(nt_16_bit_maps_find_runs_and_stay_inside),
		BOTH(threads_have_their_processors),
		ON_SIM(debug_output_has_components_and_break_points),
	};

	return cmocka_run_group_tests_name("nt_list", tests, NULL, NULL);
}
