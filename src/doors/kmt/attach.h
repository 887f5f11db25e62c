/* SPDX-License-Identifier: MIT */
/* For whom the D3DKMT functions of this process are called: for whoever must not have their local names (kmt.h). */
#ifndef VMM_DOORS_KMT_ATTACH_H
#define VMM_DOORS_KMT_ATTACH_H

struct vmm_os;
struct vmm_process;

/* NULL: none any more. */
void vmm_kmt_attach(struct vmm_process *process);
/* For the calling thread; NULL: the attached one again. Returns what it was. */
struct vmm_process *vmm_kmt_enter(struct vmm_process *process);
/*
 * For the calling system thread, a server's worker: the process that it works for, whoever is attached or entered. NULL: none
 * any more. Returns what it was. Not on a sim host.
 */
struct vmm_process *vmm_kmt_serve(struct vmm_process *process);
/* As vmm_kmt_enter, of that world and also where nobody is attached: for who works for a process in its own thread. */
struct vmm_process *vmm_kmt_step(struct vmm_os *os, struct vmm_process *process);
/* The process ends. */
void vmm_kmt_forget(struct vmm_process *process);

#endif
