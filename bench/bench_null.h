/* SPDX-License-Identifier: MIT */
/*
 * What the miniports with minimal entries share (bench_submit.c, bench_wddm2.c): the services of
 * their adapters, and a packet that is complete when it is submitted.
 */
#ifndef VMM_BENCH_NULL_H
#define VMM_BENCH_NULL_H

#include <dispmprt.h>

/* At DxgkDdiStartDevice; `adapter`: what DxgkDdiAddDevice returned. Keeps the services. */
void bench_null_start(const void *adapter, const DXGKRNL_INTERFACE *services);
/* Reports that the adapter's packet is complete: the interrupt and the DPC. */
NTSTATUS bench_null_complete(HANDLE adapter, UINT fence, UINT node);
/* The same path without a packet: an interrupt that reports nothing, and the DPC. */
void bench_null_interrupt(HANDLE adapter);

#endif
