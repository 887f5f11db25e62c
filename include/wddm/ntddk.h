/* SPDX-License-Identifier: MIT */
/*
 * The kernel services that a miniport calls, under their own names: threads, events, timers, DPCs,
 * spin locks, IRQL, time, pool, MDLs, physical mappings, registers, registry answers, run-time
 * helpers.
 *
 * This is the subset that display miniports use. Every service that is declared here does its
 * work. Objects that the caller stores (KEVENT, KTIMER, KDPC, KSPIN_LOCK) are opaque. DDI
 * structures are not here; the DDI headers may be included before or after this one.
 *
 * Source: the wdm.h and ntddk.h pages of the Windows driver documentation. The brackets after a
 * service contain the highest IRQL at which it may be called: P PASSIVE_LEVEL, A APC_LEVEL, D
 * DISPATCH_LEVEL, any.
 */
#ifndef WDDM_NTDDK_H
#define WDDM_NTDDK_H

#include "wddm_kernel.h"
#include "ntddk_status.h"
#include "ntddk_types.h"
#include "ntddk_interlocked.h"
#include "ntddk_bits.h"
#include "ntddk_sync.h"
#include "ntddk_object.h"
#include "ntddk_file.h"
#include "ntddk_list.h"
#include "ntddk_lock.h"
#include "ntddk_processor.h"
#include "ntddk_memory.h"
#include "ntddk_irp.h"
#include "ntddk_work.h"
#include "ntddk_register.h"
#include "ntddk_string.h"
#include "ntddk_service.h"
#include "ntddk_registry.h"
#include "ntddk_debug.h"
#include "ntddk_exception.h"
#ifdef WDDM_DRIVER_SOURCE
#include "driver/bugcodes.h"
#include "driver/guiddef.h"
#endif

#endif
