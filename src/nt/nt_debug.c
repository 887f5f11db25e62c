/* SPDX-License-Identifier: MIT */
/* What a driver asks a kernel debugger. None is attached. */
#include "nt/nt_internal.h"

BOOLEAN KdRefreshDebuggerNotPresent(VOID)
{
	return TRUE;
}

ULONG DbgPrompt(PCSTR Prompt, PSTR Response, ULONG Length)
{
	DbgPrint("%s", Prompt);
	if (Length)
		Response[0] = '\0';
	return 0;
}
