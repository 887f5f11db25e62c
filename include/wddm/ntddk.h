/* SPDX-License-Identifier: MIT */
/*
 * The kernel services that a miniport calls, under their own names: threads, events, timers, DPCs,
 * spin locks, IRQL, time, pool, MDLs, physical mappings, registry answers, run-time helpers.
 *
 * Owns: the subset that display miniports use. What is not declared here is not offered; nothing
 * here succeeds without doing its work. Objects that the caller stores (KEVENT, KTIMER, KDPC,
 * KSPIN_LOCK) are opaque.
 * Never: DDI structures. May be included before or after the DDI headers.
 *
 * Source: the wdm.h and ntddk.h pages of the Windows driver documentation. The bracket behind a
 * service is the highest IRQL at which it may be called: P PASSIVE_LEVEL, A APC_LEVEL, D
 * DISPATCH_LEVEL, any.
 */
#ifndef WDDM_NTDDK_H
#define WDDM_NTDDK_H

#include "wddm_kernel.h"
#include "ntddk_types.h"
#include "ntddk_interlocked.h"
#include "ntddk_sync.h"
#include "ntddk_memory.h"
#include "ntddk_service.h"

#endif
