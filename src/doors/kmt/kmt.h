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

/*
 * The functions' names in here are their public ones; their symbols are vmm_here_D3DKMT..., because the exported ones
 * (src/host/elsewhere.c) may go to another program. Include this before d3dkmthk.h.
 */
#include "wire_here.h"

#include <d3dkmthk.h>
#include "doors/kmt/attach.h"
#include "object/object.h"

#endif
