/* SPDX-License-Identifier: MIT */
/* Interlocked operations, lists, run-time helpers, registry, debug output, bug checks. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nt_world.h"
#include "unit/aborts.h"

#define KEY "\\Registry\\Machine\\System\\CurrentControlSet\\Control\\Video\\0000"

/* ---- inline helpers ---- */

static void interlocked_operations_return_documented_values(void **state)
{
	LONG number = 5;
	LONG64 wide = -1;
	PVOID pointer = NULL;

	(void)state;
	assert_int_equal(InterlockedIncrement(&number), 6);
	assert_int_equal(InterlockedDecrement(&number), 5);
	assert_int_equal(InterlockedExchange(&number, 9), 5);
	assert_int_equal(InterlockedCompareExchange(&number, 1, 2), 9);
	assert_int_equal(number, 9);
	assert_int_equal(InterlockedCompareExchange(&number, 1, 9), 9);
	assert_int_equal(InterlockedAdd(&number, 4), 5);
	assert_int_equal(InterlockedExchangeAdd(&number, 3), 5);
	assert_int_equal(InterlockedOr(&number, 0x10), 8);
	assert_int_equal(InterlockedAnd(&number, 0x10), 0x18);
	assert_int_equal(InterlockedXor(&number, 0x11), 0x10);
	assert_int_equal(number, 1);
	assert_int_equal(InterlockedIncrement64(&wide), 0);
	assert_int_equal(InterlockedCompareExchange64(&wide, 1ll << 40, 0), 0);
	assert_int_equal(InterlockedAdd64(&wide, 1), (1ll << 40) + 1);
	assert_ptr_equal(InterlockedExchangePointer(&pointer, &number), NULL);
	assert_ptr_equal(InterlockedCompareExchangePointer(&pointer, NULL, &wide), &number);
	assert_ptr_equal(InterlockedCompareExchangePointer(&pointer, NULL, &number), &number);
	assert_null(pointer);
}

struct item {
	int value;
	LIST_ENTRY entry;
};

static int pop(PLIST_ENTRY entry)
{
	return CONTAINING_RECORD(entry, struct item, entry)->value;
}

static void lists_keep_their_order(void **state)
{
	struct item items[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};
	LIST_ENTRY head;

	(void)state;
	InitializeListHead(&head);
	assert_true(IsListEmpty(&head));
	InsertTailList(&head, &items[1].entry);
	InsertTailList(&head, &items[2].entry);
	InsertHeadList(&head, &items[0].entry);
	InsertTailList(&head, &items[3].entry);
	assert_false(RemoveEntryList(&items[2].entry));
	assert_int_equal(pop(RemoveHeadList(&head)), 0);
	assert_int_equal(pop(RemoveTailList(&head)), 3);
	assert_true(RemoveEntryList(&items[1].entry));
	assert_true(IsListEmpty(&head));
}

static void memory_and_string_helpers_work(void **state)
{
	char a[16] = "abcdefg", b[16] = "abcxefg";
	UNICODE_STRING one, two;

	(void)state;
	assert_int_equal(RtlCompareMemory(a, b, 7), 3);
	assert_int_equal(RtlCompareMemory(a, a, 7), 7);
	RtlMoveMemory(a + 1, a, 7);
	assert_string_equal(a, "aabcdefg");
	RtlFillMemory(a, 3, 'z');
	RtlZeroMemory(a + 3, 1);
	RtlCopyMemory(b, a, 4);
	assert_string_equal(b, "zzz");
	assert_true(RtlEqualMemory(a, b, 4));
	RtlInitUnicodeString(&one, L"Segment");
	assert_int_equal(one.Length, 14);
	assert_int_equal(one.MaximumLength, 16);
	RtlInitUnicodeString(&two, L"sEGMENT");
	assert_true(RtlEqualUnicodeString(&one, &two, TRUE));
	assert_false(RtlEqualUnicodeString(&one, &two, FALSE));
	RtlInitUnicodeString(&two, NULL);
	assert_int_equal(two.Length + two.MaximumLength, 0);
	assert_false(RtlEqualUnicodeString(&one, &two, TRUE));
}

/* ---- registry ---- */

static HANDLE open_key(HANDLE root, PCWSTR name, NTSTATUS expected)
{
	OBJECT_ATTRIBUTES attributes;
	UNICODE_STRING path;
	HANDLE key = NULL;

	RtlInitUnicodeString(&path, name);
	InitializeObjectAttributes(&attributes, &path, OBJ_KERNEL_HANDLE | OBJ_CASE_INSENSITIVE,
				   root, NULL);
	assert_int_equal(ZwOpenKey(&key, KEY_READ, &attributes), expected);
	return key;
}

static void put_values(struct vmm_nt *nt)
{
	static const WCHAR list[] = L"one\0two\0";

	assert_int_equal(vmm_nt_registry_set_number(nt, KEY, "VramSizeMb", 256), VMM_OK);
	assert_int_equal(vmm_nt_registry_set_number(nt, KEY, "Big", 1ull << 40), VMM_OK);
	assert_int_equal(vmm_nt_registry_set_string(nt, KEY, "Name", "softgpu"), VMM_OK);
	assert_int_equal(vmm_nt_registry_set(nt, KEY, "List", REG_MULTI_SZ, list, sizeof(list)),
			 VMM_OK);
}

static void keys_open_by_full_and_relative_name(void **state)
{
	struct world *world = *state;
	HANDLE root, key;

	put_values(world->nt);
	assert_int_equal(vmm_nt_registry_set_number(world->nt, KEY "\\Engines", "Count", 2),
			 VMM_OK);
	root = open_key(NULL,
			L"\\registry\\machine\\SYSTEM\\CurrentControlSet\\Control\\Video\\0000",
			STATUS_SUCCESS);
	key = open_key(root, L"Engines", STATUS_SUCCESS);
	open_key(root, L"Motors", STATUS_OBJECT_NAME_NOT_FOUND);
	open_key(NULL, L"\\Registry\\Machine\\Nothing", STATUS_OBJECT_NAME_NOT_FOUND);
	open_key((HANDLE)(ULONG_PTR)0x44, L"Engines", STATUS_INVALID_HANDLE);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
	assert_int_equal(ZwClose(root), STATUS_SUCCESS);
	vmm_nt_registry_remove_key(world->nt, KEY "\\Engines");
	open_key(NULL,
		 L"\\Registry\\Machine\\System\\CurrentControlSet\\Control\\Video\\0000\\Engines",
		 STATUS_OBJECT_NAME_NOT_FOUND);
}

static NTSTATUS query(HANDLE key, PCWSTR name, void *buffer, ULONG length, PULONG result)
{
	UNICODE_STRING value;

	RtlInitUnicodeString(&value, name);
	return ZwQueryValueKey(key, &value, KeyValuePartialInformation, buffer, length, result);
}

static void value_queries_return_data_and_size(void **state)
{
	struct world *world = *state;
	_Alignas(8) unsigned char buffer[64];
	PKEY_VALUE_PARTIAL_INFORMATION answer = (PKEY_VALUE_PARTIAL_INFORMATION)buffer;
	UNICODE_STRING name;
	HANDLE key;
	ULONG result = 0;

	put_values(world->nt);
	key = open_key(NULL,
		       L"\\Registry\\Machine\\System\\CurrentControlSet\\Control\\Video\\0000",
		       STATUS_SUCCESS);
	assert_int_equal(query(key, L"vramsizemb", buffer, sizeof(buffer), &result),
			 STATUS_SUCCESS);
	assert_int_equal(answer->Type, REG_DWORD);
	assert_int_equal(answer->DataLength, 4);
	assert_int_equal(result, 16);
	assert_int_equal(*(ULONG *)(void *)answer->Data, 256);
	assert_int_equal(query(key, L"Big", NULL, 0, &result), STATUS_BUFFER_TOO_SMALL);
	assert_int_equal(result, 20);
	assert_int_equal(query(key, L"Big", buffer, 16, &result), STATUS_BUFFER_OVERFLOW);
	assert_int_equal(answer->DataLength, 8);
	assert_int_equal(query(key, L"Missing", buffer, sizeof(buffer), &result),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(query(NULL, L"Big", buffer, sizeof(buffer), &result),
			 STATUS_INVALID_HANDLE);
	RtlInitUnicodeString(&name, L"Big");
	assert_int_equal(ZwQueryValueKey(key, &name, KeyValueLayerInformation, buffer,
					 sizeof(buffer), &result),
			 STATUS_INVALID_PARAMETER);
	/* A value may be replaced. */
	assert_int_equal(vmm_nt_registry_set_number(world->nt, KEY, "Big", 7), VMM_OK);
	assert_int_equal(query(key, L"Big", buffer, sizeof(buffer), &result), STATUS_SUCCESS);
	assert_int_equal(answer->Type, REG_DWORD);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
}

struct reported {
	uint32_t calls;
	ULONG type[8], length[8];
	WCHAR first[8];
	PVOID context, entry_context;
	NTSTATUS answer;
};

static NTSTATUS report_value(PWSTR name, ULONG type, PVOID data, ULONG length, PVOID context,
			     PVOID entry_context)
{
	struct reported *reported = context;
	uint32_t i = reported->calls++;

	(void)name;
	reported->type[i] = type;
	reported->length[i] = length;
	reported->first[i] = data ? *(WCHAR *)data : 0;
	reported->entry_context = entry_context;
	return reported->answer;
}

static WCHAR name_vram[] = L"VramSizeMb", name_big[] = L"Big", name_text[] = L"Name",
	     name_list[] = L"List", name_none[] = L"Missing";

static NTSTATUS run_query(RTL_QUERY_REGISTRY_TABLE *table, PVOID context)
{
	return RtlQueryRegistryValues(RTL_REGISTRY_CONTROL, L"Video\\0000", table, context, NULL);
}

static void registry_queries_call_query_routines(void **state)
{
	struct world *world = *state;
	struct reported reported = {0};
	ULONG fallback = 5;
	RTL_QUERY_REGISTRY_TABLE table[] = {
		{.QueryRoutine = report_value, .Name = name_vram, .EntryContext = &fallback},
		{.QueryRoutine = report_value, .Name = name_list},
		{.QueryRoutine = report_value,
		 .Name = name_list,
		 .Flags = RTL_QUERY_REGISTRY_NOEXPAND},
		{.QueryRoutine = report_value, .Name = name_none}, /* neither there nor required */
		{.QueryRoutine = report_value,
		 .Name = name_none,
		 .DefaultType = REG_DWORD,
		 .DefaultData = &fallback,
		 .DefaultLength = sizeof(fallback)},
		{.QueryRoutine = NULL},
	};

	put_values(world->nt);
	assert_int_equal(run_query(table, &reported), STATUS_SUCCESS);
	assert_int_equal(reported.calls, 5);
	assert_int_equal(reported.type[0], REG_DWORD);
	assert_int_equal(reported.first[0], 256);
	assert_int_equal(reported.type[1], REG_SZ);
	assert_int_equal(reported.first[1], 'o');
	assert_int_equal(reported.length[1], 8);
	assert_int_equal(reported.first[2], 't');
	assert_int_equal(reported.type[3], REG_MULTI_SZ);
	assert_int_equal(reported.first[4], 5);

	reported.answer = STATUS_UNSUCCESSFUL;
	assert_int_equal(run_query(table, &reported), STATUS_UNSUCCESSFUL);
	table[0].Name = name_none;
	table[0].Flags = RTL_QUERY_REGISTRY_REQUIRED;
	assert_int_equal(run_query(table, &reported), STATUS_OBJECT_NAME_NOT_FOUND);
	table[0].Flags = RTL_QUERY_REGISTRY_SUBKEY;
	assert_int_equal(run_query(table, &reported), STATUS_NOT_SUPPORTED);
	expect_violation(world, "NT-11", "RtlQueryRegistryValues", "subkeys");
	assert_int_equal(
		RtlQueryRegistryValues(RTL_REGISTRY_ABSOLUTE, L"\\Nowhere", table, NULL, NULL),
		STATUS_OBJECT_NAME_NOT_FOUND);
}

/* The bytes of a value are the driver's or the user's: no terminator is assumed in them. */
static void registry_texts_without_a_terminator_end_with_the_value(void **state)
{
	struct world *world = *state;
	const char *const key =
		"\\Registry\\Machine\\System\\CurrentControlSet\\Control\\Video\\0000";
	struct reported reported = {0};
	UNICODE_STRING text = {0};
	RTL_QUERY_REGISTRY_TABLE direct[] = {
		{.Flags = RTL_QUERY_REGISTRY_DIRECT, .Name = name_text, .EntryContext = &text},
		{.QueryRoutine = NULL}};
	RTL_QUERY_REGISTRY_TABLE called[] = {{.QueryRoutine = report_value, .Name = name_list},
					     {.QueryRoutine = NULL}};

	for (uint32_t size_bytes = 0; size_bytes <= 5; size_bytes++) {
		text = (UNICODE_STRING){0};
		assert_int_equal(
			vmm_nt_registry_set(world->nt, key, "Name", REG_SZ, L"abc", size_bytes),
			VMM_OK);
		assert_int_equal(run_query(direct, NULL), STATUS_SUCCESS);
		assert_int_equal(text.Length, size_bytes / 2 * 2);
		assert_int_equal(text.MaximumLength, text.Length + 2);
		assert_int_equal(text.Buffer[text.Length / 2], 0);
		ExFreePool(text.Buffer);
	}
	assert_int_equal(vmm_nt_registry_set(world->nt, key, "List", REG_MULTI_SZ, L"a\0bc", 7),
			 VMM_OK);
	assert_int_equal(run_query(called, &reported), STATUS_SUCCESS);
	assert_int_equal(reported.calls, 2);
	assert_int_equal(reported.length[0], 4);
	assert_int_equal(reported.length[1], 2);
	assert_int_equal(reported.first[1], 'b');
}

static void registry_queries_fill_direct_buffers(void **state)
{
	struct world *world = *state;
	UNICODE_STRING allocated = {0}, small = {.MaximumLength = 2, .Buffer = name_none};
	ULONG number = 0;
	struct {
		LONG size;
		ULONG type;
		uint64_t data;
	} big = {.size = sizeof(big)};
	RTL_QUERY_REGISTRY_TABLE table[] = {
		{.Flags = RTL_QUERY_REGISTRY_DIRECT | RTL_QUERY_REGISTRY_TYPECHECK,
		 .Name = name_vram,
		 .EntryContext = &number,
		 .DefaultType = (ULONG)REG_DWORD << RTL_QUERY_REGISTRY_TYPECHECK_SHIFT},
		{.Flags = RTL_QUERY_REGISTRY_DIRECT, .Name = name_big, .EntryContext = &big},
		{.Flags = RTL_QUERY_REGISTRY_DIRECT, .Name = name_text, .EntryContext = &allocated},
		{.QueryRoutine = NULL},
	};

	put_values(world->nt);
	assert_int_equal(run_query(table, NULL), STATUS_SUCCESS);
	assert_int_equal(number, 256);
	assert_int_equal(big.size, 8);
	assert_int_equal(big.type, REG_QWORD);
	assert_int_equal(big.data, 1ull << 40);
	assert_int_equal(allocated.Length, 14);
	assert_memory_equal(allocated.Buffer, L"softgpu", 16);
	ExFreePool(allocated.Buffer);

	table[2].EntryContext = &small;
	big.size = sizeof(big);
	assert_int_equal(run_query(table, NULL), STATUS_BUFFER_TOO_SMALL);
	big.size = 8;
	assert_int_equal(run_query(table, NULL), STATUS_BUFFER_TOO_SMALL);
	table[0].DefaultType = (ULONG)REG_SZ << RTL_QUERY_REGISTRY_TYPECHECK_SHIFT;
	assert_int_equal(run_query(table, NULL), STATUS_OBJECT_TYPE_MISMATCH);
	table[0].QueryRoutine = report_value;
	assert_int_equal(run_query(table, NULL), STATUS_INVALID_PARAMETER);
}

/* ---- output and ends ---- */

static void debug_output_accepts_kernel_format_strings(void **state)
{
	struct world *world = *state;
	UNICODE_STRING counted;
	ULONG ulong = 0xFFFFFFFF;
	LONG minus = -3;

	RtlInitUnicodeString(&counted, L"adapter");
	DbgPrint("%wZ %ws %ls %S %hs|%s", &counted, L"wide", L"wider", L"big", "narrow", "plain");
	assert_string_equal(world->printed, "adapter wide wider big narrow|plain");
	DbgPrint("%lu %ld %I64x %llu %d %5u|%-5u|%05d", ulong, minus, 0x123456789ABCull, 1ull << 40,
		 -1, 42u, 42u, 42);
	assert_string_equal(world->printed,
			    "4294967295 -3 123456789abc 1099511627776 -1    42|42   |00042");
	DbgPrint("%#x %08X %.3s %*d %c%% %p", 255, 0xBEEF, "abcdef", 4, 7, 'x', (void *)0x1234);
	assert_string_equal(world->printed, "0xff 0000BEEF abc    7 x% 0000000000001234");
	DbgPrint("%*d|%.*d|%-*d", -4, 7, -1, 8, 3, 9);
	assert_string_equal(world->printed, "7   |8|9  ");
	DbgPrint("%*u%.*u", INT32_MAX, 1u, INT32_MIN, 2u);
	assert_int_equal(world->printed[0], ' ');
	DbgPrint("%s %wZ %q", (char *)NULL, (void *)NULL);
	assert_string_equal(world->printed, "(null) (null) %?");
	DbgPrintEx(3, 1, "level");
	assert_int_equal(world->print_component, 3);
	assert_int_equal(world->print_level, 1);
	KdPrint(("%u", 9u));
	assert_string_equal(world->printed, "9");
}

static void nt_10_a_failed_assert_is_reported_and_returns(void **state)
{
	struct world *world = *state;

	ASSERT(1 + 1 == 2);
	assert_int_equal(atomic_load(&world->violations), 0);
	NT_ASSERT(1 + 1 == 3);
	expect_violation(world, "NT-10", "ASSERT", "1 + 1 == 3");
}

static struct world *checked_world;

/* Ends the process with 7 if the hooks and the thread know the bug check. */
static void on_abort(int number)
{
	const struct world *world = checked_world;
	struct vmm_nt_bug_check check;

	_exit(number == SIGABRT && vmm_nt_bug_checked(&check) && check.code == 0x10E &&
			      check.parameters[0] == 1 && check.parameters[3] == 4 &&
			      world->bugcheck == 0x10E && world->bugcheck_parameter[3] == 4 &&
			      strcmp(world->rule, "NT-09") == 0 &&
			      strcmp(world->service, "KeBugCheckEx") == 0 &&
			      strstr(world->text, "0x10e (0x1, 0x2, 0x3, 0x4)")
		      ? 7
		      : 8);
}

static void bug_check(void *argument)
{
	(void)argument;
	KeBugCheckEx(0x10E, 1, 2, 3, 4);
}

static void nt_09_a_bug_check_is_reported_and_ends_the_process(void **state)
{
	struct vmm_nt_bug_check check;
	int status;

	checked_world = *state;
	assert_true(aborts(bug_check, NULL));
	pid_t child = fork();
	if (child == 0) {
		signal(SIGABRT, on_abort);
		bug_check(NULL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_false(vmm_nt_bug_checked(&check));
}

static void kernel_creation_fails_cleanly_without_memory(void **state)
{
	struct world *world = *state;
	struct vmm_os_config config = {.kind = vmm_os_kind(world->os)};
	struct vmm_os *os;
	struct vmm_nt *nt = NULL;
	uint32_t failures = 0;

	assert_int_equal(vmm_os_create(&config, &os), VMM_OK);
	(void)vmm_os_thread_self(os); /* adopts this thread, which cannot fail */
	for (uint32_t n = 1; n < 100; n++) {
		vmm_calloc_fail_after(n);
		if (vmm_nt_create(os, NULL, &nt) == VMM_OK)
			break;
		assert_null(nt);
		failures++;
	}
	vmm_calloc_fail_after(0);
	assert_true(failures >= 2);
	assert_int_equal(vmm_nt_destroy(nt), VMM_OK);
	vmm_os_destroy(os);
	vmm_os_set_current(world->os);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(interlocked_operations_return_documented_values),
		ON_SIM(lists_keep_their_order),
		ON_SIM(memory_and_string_helpers_work),
		BOTH(keys_open_by_full_and_relative_name),
		BOTH(value_queries_return_data_and_size),
		BOTH(registry_queries_call_query_routines),
		BOTH(registry_queries_fill_direct_buffers),
		BOTH(registry_texts_without_a_terminator_end_with_the_value),
		BOTH(debug_output_accepts_kernel_format_strings),
		BOTH(nt_10_a_failed_assert_is_reported_and_returns),
		BOTH(nt_09_a_bug_check_is_reported_and_ends_the_process),
		BOTH(kernel_creation_fails_cleanly_without_memory),
	};

	return cmocka_run_group_tests_name("nt_service", tests, NULL, NULL);
}
