/* SPDX-License-Identifier: MIT */
/* A client of softgpu on the simulator: one process, device and context, through the UMD door. */
#ifndef VMM_BENCH_CLIENT_H
#define VMM_BENCH_CLIENT_H

#include <d3dumddi.h>
#include <vidmm/vidmm.h>

struct bench_client {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	struct vidmm_device *device;
	const D3DDDI_DEVICECALLBACKS *callbacks;
	HANDLE context;
	char *commands;
	D3DDDI_ALLOCATIONLIST *list;
};

/*
 * Starts an adapter with one BAR of that size. OPTIONS: its registry values and eviction policy.
 * Returns false if a step fails; bench_client_finish follows in any case.
 */
bool bench_client_start(struct bench_client *c, uint64_t bar_bytes,
			const struct vidmm_adapter_options *options);
/* The structure was zero when it was started, or before that. */
void bench_client_finish(struct bench_client *c);
/* Creates an allocation for the video memory. */
bool bench_client_allocate(struct bench_client *c, uint64_t size_bytes, D3DKMT_HANDLE *handle);
/* Submits a buffer that writes the allocations. Aborts if the submission is refused. */
void bench_client_write(struct bench_client *c, const D3DKMT_HANDLE *allocations, uint32_t count);

#endif
