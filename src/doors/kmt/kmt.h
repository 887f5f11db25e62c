/* SPDX-License-Identifier: MIT */
/*
 * doors/kmt: the D3DKMT functions. They copy arguments in once, look handles up in the calling
 * process, and write outputs back only on success unless the interface says otherwise. They contain
 * no policy. Functions that are not built are not exported, because clients take an exported symbol
 * for support.
 *
 * The arguments do not name the calling process. It is the process that the program attached, or
 * the one that the calling thread entered. Any thread; no lock is held on entry.
 */
#ifndef VMM_DOORS_KMT_H
#define VMM_DOORS_KMT_H

/*
 * In this folder the functions have their public names. Their symbols are vmm_local_D3DKMT...,
 * because the exported functions (src/host/kmt_route.c) may send a call to another process. Include
 * this before d3dkmthk.h.
 */
#include "wire_local.h"

#include <d3dkmthk.h>
#include "object/attach.h"
#include "object/object.h"

#endif
