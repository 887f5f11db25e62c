/* SPDX-License-Identifier: MIT */
/* Structured exceptions, and the trace messages of WPP. Compiled with -O0, as vidmm-cc does. */
#define WDDM_STRUCTURED_EXCEPTIONS 1
#include "nt_world.h"

static NTSTATUS status_of_store(volatile ULONG *to)
{
	NTSTATUS status = STATUS_SUCCESS;

	__try {
		*to = 1;
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		status = GetExceptionCode();
	}
	return status;
}

static void a_wrong_access_becomes_an_exception(void **state)
{
	ULONG value = 0;
	ULONG_PTR address = 0;
	PVOID record = NULL;

	(void)state;
	assert_int_equal(status_of_store(&value), STATUS_SUCCESS);
	assert_int_equal(value, 1);
	assert_int_equal(status_of_store((volatile ULONG *)0x1008), STATUS_ACCESS_VIOLATION);
	/* The next fault reaches the next block, and no signal stays blocked. */
	assert_int_equal(status_of_store((volatile ULONG *)0x1008), STATUS_ACCESS_VIOLATION);
	__try {
		*(volatile ULONG *)0x2010 = 1;
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		record = GetExceptionInformation()->ExceptionRecord;
		address = GetExceptionInformation()->ExceptionRecord->ExceptionInformation[1];
	}
	assert_non_null(record);
	assert_int_equal(address, 0x2010);
}

static void raised_statuses_reach_the_innermost_block_that_takes_them(void **state)
{
	NTSTATUS inner = 0, outer = 0;
	int after = 0;

	(void)state;
	__try {
		__try {
			ExRaiseStatus(STATUS_DATA_ERROR);
		} __except (GetExceptionCode() == STATUS_ACCESS_VIOLATION) {
			inner = GetExceptionCode();
		}
		after = 1;
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		outer = GetExceptionCode();
	}
	assert_int_equal(inner, 0);
	assert_int_equal(after, 0);
	assert_int_equal(outer, STATUS_DATA_ERROR);
	__try {
		ExRaiseAccessViolation();
	} __except (GetExceptionCode() == STATUS_ACCESS_VIOLATION) {
		inner = GetExceptionCode();
	}
	assert_int_equal(inner, STATUS_ACCESS_VIOLATION);
}

static int finally_after(int how, NTSTATUS *caught)
{
	int order = 0;

	*caught = 0;
	__try {
		__try {
			order = order * 10 + 1;
			for (int i = 0; i < 3; i++)
				if (how == 1)
					__leave;
			if (how == 2)
				ExRaiseDatatypeMisalignment();
			order = order * 10 + 2;
		} __finally {
			order = order * 10 + (AbnormalTermination() ? 4 : 3);
		}
		order = order * 10 + 5;
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		*caught = GetExceptionCode();
	}
	return order;
}

static void finally_runs_after_the_end_leave_and_an_exception(void **state)
{
	NTSTATUS caught;

	(void)state;
	assert_int_equal(finally_after(0, &caught), 1235);
	assert_int_equal(caught, 0);
	assert_int_equal(finally_after(1, &caught), 135);
	assert_int_equal(caught, 0);
	assert_int_equal(finally_after(2, &caught), 14);
	assert_int_equal(caught, STATUS_DATATYPE_MISALIGNMENT);
}

static int return_from_block(void)
{
	__try {
		return 7;
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		return 8;
	}
	return 9;
}

static void a_block_that_returns_is_no_longer_active(void **state)
{
	NTSTATUS status = 0;
	int value = 0;

	(void)state;
	__try {
		value = return_from_block();
		ExRaiseStatus(STATUS_UNSUCCESSFUL);
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		status = GetExceptionCode();
	}
	assert_int_equal(value, 7);
	assert_int_equal(status, STATUS_UNSUCCESSFUL);
}

/* A function, because a block in a loop would need `continue`. */
static NTSTATUS probe(PVOID address, SIZE_T length, ULONG alignment, BOOLEAN write)
{
	NTSTATUS status = STATUS_SUCCESS;

	__try {
		if (write)
			ProbeForWrite(address, length, alignment);
		else
			ProbeForRead(address, length, alignment);
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		status = GetExceptionCode();
	}
	return status;
}

static void probes_raise_what_is_wrong(void **state)
{
	ULONG buffer[4] = {1, 2, 3, 4};

	(void)state;
	assert_int_equal(probe(buffer, sizeof(buffer), 4, FALSE), STATUS_SUCCESS);
	assert_int_equal(probe(buffer, sizeof(buffer), 4, TRUE), STATUS_SUCCESS);
	assert_int_equal(buffer[3], 4);
	assert_int_equal(probe(NULL, 0, 4, TRUE), STATUS_SUCCESS);
	assert_int_equal(probe((PUCHAR)buffer + 1, 4, 4, FALSE), STATUS_DATATYPE_MISALIGNMENT);
	assert_int_equal(probe(NULL, 4, 1, FALSE), STATUS_ACCESS_VIOLATION);
	assert_int_equal(probe((PVOID)(ULONG_PTR)-8, 64, 1, FALSE), STATUS_ACCESS_VIOLATION);
	/* Read-only memory: the text of a string. */
	assert_int_equal(probe((PVOID)(ULONG_PTR) "text", 4, 1, TRUE), STATUS_ACCESS_VIOLATION);
}

static void nt_20_a_filter_cannot_continue_the_execution(void **state)
{
	struct world *world = *state;
	NTSTATUS status = 0;

	__try {
		__try {
			ExRaiseStatus(STATUS_UNSUCCESSFUL);
		} __except (EXCEPTION_CONTINUE_EXECUTION) {
			fail();
		}
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		status = GetExceptionCode();
	}
	assert_int_equal(status, STATUS_UNSUCCESSFUL);
	expect_violation(world, "NT-20", "__except", "0xc0000001");
}

static void thread_with_a_block(PVOID context)
{
	NTSTATUS *status = context;

	__try {
		LARGE_INTEGER pause = relative_us(10);

		KeDelayExecutionThread(KernelMode, FALSE, &pause);
		ExRaiseStatus(STATUS_DATA_ERROR);
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		*status = GetExceptionCode();
	}
	PsTerminateSystemThread(STATUS_SUCCESS);
}

static void each_thread_has_its_blocks(void **state)
{
	NTSTATUS theirs = 0, ours = 0;
	PVOID thread = NULL;

	(void)state;
	__try {
		thread = start_thread(thread_with_a_block, &theirs);
		end_thread(thread);
		ExRaiseStatus(STATUS_UNSUCCESSFUL);
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		ours = GetExceptionCode();
	}
	assert_int_equal(theirs, STATUS_DATA_ERROR);
	assert_int_equal(ours, STATUS_UNSUCCESSFUL);
}

static void nt_12_pages_that_cannot_be_locked_raise(void **state)
{
	struct world *world = *state;
	PMDL mdl = IoAllocateMdl((PVOID)(ULONG_PTR)0x1000, 64, FALSE, FALSE, NULL);
	NTSTATUS status = STATUS_SUCCESS;

	__try {
		MmProbeAndLockPages(mdl, UserMode, IoReadAccess);
	} __except (EXCEPTION_EXECUTE_HANDLER) {
		status = GetExceptionCode();
	}
	assert_int_equal(status, STATUS_ACCESS_VIOLATION);
	expect_violation(world, "NT-12", "MmProbeAndLockPages", "nothing is locked");
	MmProbeAndLockPages(mdl, UserMode, IoReadAccess); /* no block: only the report */
	expect_violation(world, "NT-12", "MmProbeAndLockPages", "nothing is locked");
	assert_int_equal(mdl->MdlFlags & MDL_PAGES_LOCKED, 0);
	IoFreeMdl(mdl);
}

static void trace_messages_are_printed_with_plain_conversions(void **state)
{
	static const WCHAR wide[] = L"wide %u";
	struct world *world = *state;

	WddmTraceMessage(2, "Start", "no memory (status=%!STATUS!, size=%u)", STATUS_NO_MEMORY,
			 64u);
	assert_string_equal(world->printed, "Start: no memory (status=0xc0000017, size=64)");
	assert_int_equal(world->print_component, DPFLTR_IHVVIDEO_ID);
	assert_int_equal(world->print_level, 2);
	WddmTraceMessage(3, "Stop", "%!FUNC! in %s", "here");
	assert_string_equal(world->printed, "Stop: Stop in here");
	WddmTraceMessageWide(1, "Stop", wide, 3u);
	assert_string_equal(world->printed, "Stop: wide 3");
	/* The type of the argument is unknown, so the message ends there. */
	WddmTraceMessage(1, "Stop", "a %u b %!MYTYPE! c %u", 1u, 2u, 3u);
	assert_string_equal(world->printed, "Stop: a 1 b ...");
	/* Information and details are dropped. */
	WddmTraceMessage(4, "Stop", "information");
	assert_string_equal(world->printed, "Stop: a 1 b ...");
}

static void no_debugger_is_attached(void **state)
{
	struct world *world = *state;
	CHAR response[4] = "abc";

	assert_true(KdRefreshDebuggerNotPresent());
	assert_true(KD_DEBUGGER_NOT_PRESENT && !KD_DEBUGGER_ENABLED);
	assert_int_equal(DbgPrompt("Break? ", response, sizeof(response)), 0);
	assert_string_equal(response, "");
	assert_string_equal(world->printed, "Break? ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_wrong_access_becomes_an_exception),
		BOTH(raised_statuses_reach_the_innermost_block_that_takes_them),
		BOTH(finally_runs_after_the_end_leave_and_an_exception),
		BOTH(a_block_that_returns_is_no_longer_active),
		BOTH(probes_raise_what_is_wrong),
		BOTH(nt_20_a_filter_cannot_continue_the_execution),
		BOTH(each_thread_has_its_blocks),
		BOTH(nt_12_pages_that_cannot_be_locked_raise),
		ON_SIM(no_debugger_is_attached),
		ON_SIM(trace_messages_are_printed_with_plain_conversions),
	};

	return cmocka_run_group_tests_name("nt_exception", tests, NULL, NULL);
}
