/* SPDX-License-Identifier: MIT */
/*
 * d3dumddi.h: what a user-mode display driver gets from, and passes to, the runtime.
 * This header only collects its parts; each part names its source pages.
 */
#ifndef WDDM_D3DUMDDI_H
#define WDDM_D3DUMDDI_H

#include "d3dukmdt.h"
#include "umddi_memory.h"
#include "umddi_submit.h"
#include "umddi_sync.h"
#include "umddi_callbacks.h"
#include "umddi_resource.h"

#endif
