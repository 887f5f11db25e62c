/* SPDX-License-Identifier: MIT */
/*
 * The structures behind the public opaque types of <vidmm/vidmm.h>, and what the files of host call
 * in each other and offer to the server of out-of-process clients.
 */
#ifndef VMM_HOST_PRIVATE_H
#define VMM_HOST_PRIVATE_H

#include <vidmm/vidmm.h>
#include "object/attach.h"
#include "doors/umd/umd.h"
#include "memory/memory.h"
#include "nt/nt.h"
#include "object/object.h"
#include "port/port.h"
#include "sched/sched.h"
#include "sync/sync.h"

/*
 * Definitions of the public opaque types. vidmm_process is the core's struct vmm_process;
 * vidmm_device is a handle (object/hazard.h).
 */
struct vidmm_host {
	struct vmm_world world;
	uint32_t adapters; /* started and not yet stopped; guarded by world.shared_lock */
};

struct vidmm_adapter {
	struct vmm_adapter core;
	struct vidmm_host *host;
	_Atomic uint32_t power; /* enum vidmm_power; 0: changing */
	_Atomic bool removed;   /* by surprise removal (PNP-08) */
};

struct vidmm_thread {
	struct vmm_os_thread *thread;
};

/* ---- identity.c ---- */
/*
 * Copies the names and values of the options into the adapter's identity, before anything is
 * started. vmm_host_forget_adapter frees them, also after a failure.
 */
vmm_status vmm_host_name_adapter(struct vmm_adapter *core, const struct vidmm_adapter_options *o);
/* Completes the identity with what the port knows. */
void vmm_host_identify_adapter(struct vmm_adapter *core);
void vmm_host_forget_adapter(struct vmm_adapter *core);

/*
 * ---- client.c: for hosts of out-of-process clients, beyond <vidmm/vidmm.h>
 * (docs/adr/0001-real-processes.md) ----
 */
/*
 * Like vidmm_process_open, for a process in another address space. The viewer makes its views and
 * must exist until the process is closed. All addresses in its calls are addresses of that process.
 */
vmm_status vmm_host_process_open_client(struct vidmm_host *host, const char *name,
					struct vmm_os_viewer *viewer,
					struct vidmm_process **process) VMM_MUST_CHECK;

/*
 * Abandons a process whose client is no longer connected. Waiting calls return with an error, new
 * calls do not wait, and what its contexts have queued behind waits that no one will satisfy is
 * given up. After the last call has returned, vidmm_process_close may follow. Any thread.
 */
void vmm_process_abandon(struct vidmm_process *process);

/*
 * adapter.c: like vidmm_adapter_statistics, but peaks cover the interval since this process last
 * asked; at first, since the adapter started. May return VMM_NO_MEMORY.
 */
vmm_status vmm_host_statistics_of(struct vidmm_adapter *adapter,
				  const struct vidmm_process *process,
				  struct vidmm_adapter_statistics *statistics) VMM_MUST_CHECK;

static inline struct vmm_process *vidmm_core_process(const struct vidmm_process *process)
{
	return (struct vmm_process *)(uintptr_t)process;
}

#endif
