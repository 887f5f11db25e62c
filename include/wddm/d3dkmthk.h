/* SPDX-License-Identifier: MIT */
/*
 * d3dkmthk.h: the kernel-mode thunks, the interface of D3DKMT clients.
 * This header only collects its parts; each part names its source pages.
 */
#ifndef WDDM_D3DKMTHK_H
#define WDDM_D3DKMTHK_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"
#include "kmthk_adapter.h"
#include "kmthk_submit.h"
#include "kmthk_alloc.h"
#include "kmthk_residency.h"
#include "kmthk_sync.h"
#include "kmthk_statistics.h"
#include "kmthk_escape.h"
#include "kmthk_present.h"
#include "kmthk_session.h"
#include "kmthk_display.h"
#include "kmthk_api.h"

#endif
