/* SPDX-License-Identifier: MIT */
#ifndef VMM_HOST_PRIVATE_H
#define VMM_HOST_PRIVATE_H

#include <vidmm/vidmm.h>
#include "doors/kmt/attach.h"
#include "doors/umd/umd.h"
#include "memory/memory.h"
#include "nt/nt.h"
#include "object/object.h"
#include "port/port.h"
#include "sched/sched.h"
#include "sync/sync.h"

/* The public opaque types are these; vidmm_process is the core's own, vidmm_device a handle (object/live.h). */
struct vidmm_host {
	struct vmm_world world;
	uint32_t adapters; /* started and not yet stopped; guarded by world.shared_lock */
};

struct vidmm_adapter {
	struct vmm_adapter core;
	struct vidmm_host *host;
	_Atomic uint32_t power; /* enum vidmm_power; 0: it is changing */
	_Atomic bool removed;   /* by surprise (PNP-08) */
};

struct vidmm_thread {
	struct vmm_os_thread *thread;
};

/* ---- identity.c ---- */
/* What the options say about it: before anything is started. On failure, too, forgotten by the last of these. */
vmm_status vmm_host_name_adapter(struct vmm_adapter *core, const struct vidmm_adapter_options *o);
/* What its port knows about it. */
void vmm_host_identify_adapter(struct vmm_adapter *core);
void vmm_host_forget_adapter(struct vmm_adapter *core);

/* ---- client.c: what a host of other processes has beyond <vidmm/vidmm.h> (docs/adr/0001-real-processes.md) ---- */
/*
 * As vidmm_process_open, of one that is in another address space: its views are made by the viewer, which stays until the
 * process is closed. All addresses that its calls give or take are that process's.
 */
vmm_status vmm_host_process_open_apart(struct vidmm_host *host, const char *name,
				       struct vmm_os_viewer *viewer,
				       struct vidmm_process **process) VMM_MUST_CHECK;

/*
 * Nobody hears its calls any more: those that wait come back with an error, new ones do not wait, and what its contexts have queued
 * behind waits that nobody satisfies is given up. When the last call is back, vidmm_process_close can follow. Any thread.
 */
void vmm_process_abandon(struct vidmm_process *process);

/* adapter.c: as vidmm_adapter_statistics, but peaks are since the process last asked, at first since the adapter started. VMM_NO_MEMORY. */
vmm_status vmm_host_statistics_of(struct vidmm_adapter *adapter,
				  const struct vidmm_process *process,
				  struct vidmm_adapter_statistics *statistics) VMM_MUST_CHECK;

static inline struct vmm_process *vidmm_core_process(const struct vidmm_process *process)
{
	return (struct vmm_process *)(uintptr_t)process;
}

#endif
