/* SPDX-License-Identifier: MIT */
/*
 * Miniports with minimal entries: the services of their adapters, a packet that is complete when it
 * is submitted, and softgpu with such entries for submissions of WDDM 1.x.
 */
#ifndef VMM_BENCH_NULL_H
#define VMM_BENCH_NULL_H

#include <dispmprt.h>

/*
 * For bench_bare_entries: Render emits as many patch locations as bench_null_patches says, Patch
 * does nothing, and a packet is complete when it is submitted.
 */
void bench_null_entries(DRIVER_INITIALIZATION_DATA *table);
void bench_null_patches(uint32_t count);
/* At DxgkDdiStartDevice; `adapter`: what DxgkDdiAddDevice returned. Keeps the services. */
void bench_null_start(const void *adapter, const DXGKRNL_INTERFACE *services);
/* Reports that the adapter's packet is complete: the interrupt and the DPC. */
NTSTATUS bench_null_complete(HANDLE adapter, UINT fence, UINT node);
/* The same path without a packet: an interrupt that reports nothing, and the DPC. */
void bench_null_interrupt(HANDLE adapter);

#endif
