/* SPDX-License-Identifier: MIT */
/* Run-time helpers, asserts and bug checks for drivers. Stateless. */
#include "nt/nt_internal.h"

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

VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1, ULONG_PTR BugCheckParameter2,
		  ULONG_PTR BugCheckParameter3, ULONG_PTR BugCheckParameter4)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t parameters[4] = {BugCheckParameter1, BugCheckParameter2, BugCheckParameter3,
				  BugCheckParameter4};

	nt_violation(nt, "NT-09", "KeBugCheckEx", "0x%x (0x%llx, 0x%llx, 0x%llx, 0x%llx)",
		     BugCheckCode, (unsigned long long)parameters[0],
		     (unsigned long long)parameters[1], (unsigned long long)parameters[2],
		     (unsigned long long)parameters[3]);
	if (nt->config.bugcheck)
		nt->config.bugcheck(nt->config.context, BugCheckCode, parameters);
}
