/* SPDX-License-Identifier: MIT */
/*
 * The kernel debugger, which is never attached here. Part of ntddk.h. Source: the
 * KdRefreshDebuggerNotPresent and DbgPrompt pages.
 */
#ifndef WDDM_NTDDK_DEBUG_H
#define WDDM_NTDDK_DEBUG_H

#include "ntddk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KD_DEBUGGER_ENABLED     FALSE
#define KD_DEBUGGER_NOT_PRESENT TRUE

BOOLEAN KdRefreshDebuggerNotPresent(VOID); /* [any] TRUE: no debugger is attached */
/* [any] Prints the prompt and waits for no answer: the response is empty. Returns 0. */
ULONG DbgPrompt(PCSTR Prompt, PSTR Response, ULONG Length);

#ifdef __cplusplus
}
#endif

#endif
