/* SPDX-License-Identifier: MIT */
/* Run-time helpers, asserts and bug checks for drivers. */
#include "nt/nt_internal.h"

#include <stdlib.h>

SIZE_T RtlCompareMemory(const VOID *Source1, const VOID *Source2, SIZE_T Length)
{
	const unsigned char *a = Source1, *b = Source2;
	SIZE_T same = 0;

	while (same < Length && a[same] == b[same])
		same++;
	return same;
}

VOID WddmAssertFailed(const char *Expression, const char *File, LONG Line)
{
	nt_violation(vmm_nt_current(), "NT-10", "ASSERT", "%s:%d: %s", File, Line, Expression);
}

VOID WddmPagedCode(const char *Function)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint32_t irql = vmm_nt_irql(nt);

	if (irql > APC_LEVEL)
		nt_violation(nt, "NT-01", "PAGED_CODE", "pageable %s entered at IRQL %u", Function,
			     irql);
}

/* The bug check that the calling thread has asked for. The process is about to end then. */
static _Thread_local struct vmm_nt_bug_check bug_check;

bool vmm_nt_bug_checked(struct vmm_nt_bug_check *check)
{
	*check = bug_check;
	return check->made;
}

/*
 * The code behind the call is not written to be reached (NT-09). Hooks and subscribers get the
 * report before the process ends.
 */
VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1, ULONG_PTR BugCheckParameter2,
		  ULONG_PTR BugCheckParameter3, ULONG_PTR BugCheckParameter4)
{
	struct vmm_nt *nt = vmm_nt_current();
	const uint64_t *parameters = bug_check.parameters;

	bug_check = (struct vmm_nt_bug_check){
		.made = true,
		.code = BugCheckCode,
		.parameters = {BugCheckParameter1, BugCheckParameter2, BugCheckParameter3,
			       BugCheckParameter4},
	};
	nt_violation(nt, "NT-09", "KeBugCheckEx", "0x%x (0x%llx, 0x%llx, 0x%llx, 0x%llx)",
		     BugCheckCode, (unsigned long long)parameters[0],
		     (unsigned long long)parameters[1], (unsigned long long)parameters[2],
		     (unsigned long long)parameters[3]);
	if (nt->config.bugcheck)
		nt->config.bugcheck(nt->config.context, BugCheckCode, parameters);
	abort();
}
