/* SPDX-License-Identifier: MIT */
/*
 * doors/kmt: the D3DKMT functions. Copies arguments in, once; looks handles up in the calling process; writes outputs
 * back only on success unless the interface says otherwise. No policy. What it does not have yet is not exported: a
 * client that looks for a symbol takes finding it for support.
 *
 * The functions do not say for whom they are called. That is the process the program attached, or the one that the
 * calling thread entered. Any thread; no lock is held on entry.
 */
#ifndef VMM_DOORS_KMT_H
#define VMM_DOORS_KMT_H

#include <d3dkmthk.h>
#include "object/object.h"

/* NULL: none any more. */
void vmm_kmt_attach(struct vmm_process *process);
/* For the calling thread; NULL: the attached one again. Returns what it was. */
struct vmm_process *vmm_kmt_enter(struct vmm_process *process);
/*
 * For the calling system thread, a server's worker: the process that it works for, whoever is attached or entered. NULL: none
 * any more. Returns what it was. Not on a sim host.
 */
struct vmm_process *vmm_kmt_serve(struct vmm_process *process);
/* The process ends. */
void vmm_kmt_forget(struct vmm_process *process);

#endif
