/* SPDX-License-Identifier: MIT */
/*
 * Miniports with minimal entries: the services of their adapters, a packet that is complete when it
 * is submitted, and softgpu with such entries for submissions of WDDM 1.x.
 */
#ifndef VMM_BENCH_NULL_H
#define VMM_BENCH_NULL_H

#include "bare.h"

#include <d3dumddi.h>
#include <stdbool.h>
#include <vidmm/vidmm.h>

/* A host of real time with one adapter of softgpu, and processes with a device each. */
enum { BENCH_NULL_PROCESSES_MAX = 16 };
struct bench_null_world {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process[BENCH_NULL_PROCESSES_MAX];
	struct vidmm_device *device[BENCH_NULL_PROCESSES_MAX];
	const D3DDDI_DEVICECALLBACKS *cb;
};
/*
 * OPTIONS: the registry values of the adapter, which has one BAR of that size and no timeouts.
 * `edit`: as for bench_bare_entries. Returns false if a step fails; bench_null_world_finish follows
 * in any case.
 */
bool bench_null_world_start(struct bench_null_world *w, bench_bare_edit *edit, uint64_t bar_bytes,
			    const struct vidmm_adapter_options *options, uint32_t processes);
/* The structure was zero when it was started, or before that. */
void bench_null_world_finish(struct bench_null_world *w);
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
