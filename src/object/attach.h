/* SPDX-License-Identifier: MIT */
/*
 * The process for which the D3DKMT functions of this program are called: what the program attached,
 * or what a thread selected. Any thread; no lock is needed or taken.
 */
#ifndef VMM_OBJECT_ATTACH_H
#define VMM_OBJECT_ATTACH_H

struct vmm_os;
struct vmm_process;

/*
 * Returns the calling process; NULL if none is attached (a D3DKMT call then returns
 * STATUS_UNSUCCESSFUL).
 */
struct vmm_process *vmm_kmt_process(void);
/* Attaches a process; NULL: none. */
void vmm_kmt_attach(struct vmm_process *process);
/*
 * Selects a process for the calling thread, whether or not one is attached; NULL: the attached one
 * again. Returns the process that was selected before, of any world; NULL: none.
 */
struct vmm_process *vmm_kmt_enter(struct vmm_process *process);
/*
 * Sets the process that the calling system thread, a worker of a server, works for. It takes
 * precedence over what is attached or entered. NULL: none. Returns the previous value. Not on a sim
 * host.
 */
struct vmm_process *vmm_kmt_serve(struct vmm_process *process);
/*
 * Like vmm_kmt_enter, for a thread that works for several processes of that world in turn, some of
 * which may be NULL.
 */
struct vmm_process *vmm_kmt_step(struct vmm_os *os, struct vmm_process *process);
/* Detaches a process that ends. */
void vmm_kmt_forget(struct vmm_process *process);
/* Ends the calling system thread's selection in a world that ends. */
void vmm_kmt_forget_world(const struct vmm_os *os);

#endif
