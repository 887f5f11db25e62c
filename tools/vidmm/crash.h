/* SPDX-License-Identifier: MIT */
/* crash: what is written when a driver crashes this process. */
#ifndef VIDMM_TOOLS_CRASH_H
#define VIDMM_TOOLS_CRASH_H

#include <stdbool.h>
#include <stddef.h>
#include <vidmm/vidmm.h>

/*
 * From now on a crash of this process is reported on FD before its signal ends it: the routine of
 * the miniport, the signal and the address, and the function and line of the driver. ENTRY: the
 * DriverEntry, which tells the driver's file. Called again for each further driver, with any FD;
 * the first counts. Signals that have a handler already keep it, as with a sanitizer.
 */
void crash_watch(int fd, vidmm_driver_entry_fn *entry);

/*
 * A driver that uses up its stack leaves none for the report. Each thread that runs one needs a
 * second stack, of CRASH_STACK_BYTES or more, as long as it runs. crash_watch sets that of the
 * calling thread, this function that of another one.
 */
#define CRASH_STACK_BYTES 65536u
void crash_use_stack(void *stack, size_t size);

/*
 * Writes "DxgkDdiStartDevice", "DxgkDdiQueryAdapterInfo of type 26", or "no routine of the driver".
 * Async-signal-safe.
 */
void crash_routine(const struct vidmm_driver_place *place, char *text, size_t size);

/*
 * Writes that the calling thread waits in a routine of the driver, in a wait that no thread can
 * end, with the rule. Returns false if the thread is in no routine of a driver.
 */
bool crash_deadlock(char *text, size_t size);

#endif
