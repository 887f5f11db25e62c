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

VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
	/* Lengths are USHORT bytes: a longer text is cut at the last whole character. */
	const size_t longest = (UINT16_MAX - 1) / sizeof(WCHAR) - 1;
	size_t length = 0;

	while (SourceString && SourceString[length] && length < longest)
		length++;
	DestinationString->Buffer = (PWSTR)(uintptr_t)SourceString;
	DestinationString->Length = (USHORT)(length * sizeof(WCHAR));
	DestinationString->MaximumLength =
		SourceString ? (USHORT)((length + 1) * sizeof(WCHAR)) : 0;
}

static WCHAR fold(WCHAR c)
{
	return c >= 'A' && c <= 'Z' ? (WCHAR)(c + ('a' - 'A')) : c;
}

BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2,
			      BOOLEAN CaseInSensitive)
{
	if (String1->Length != String2->Length)
		return FALSE;
	for (size_t i = 0; i < String1->Length / sizeof(WCHAR); i++) {
		WCHAR a = String1->Buffer[i], b = String2->Buffer[i];

		if (a != b && (!CaseInSensitive || fold(a) != fold(b)))
			return FALSE;
	}
	return TRUE;
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
