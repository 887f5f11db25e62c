/* SPDX-License-Identifier: MIT */
/*
 * d3dukmdt.h: the types that kernel-mode and user-mode display drivers share.
 * This header only collects its parts; each part names its source pages.
 */
#ifndef WDDM_D3DUKMDT_H
#define WDDM_D3DUKMDT_H

#include "wddm_base.h"
#include "wddm_versions.h"
#include "ukmdt_handle.h"
#include "ukmdt_format.h"
#include "ukmdt_alloc.h"
#include "ukmdt_residency.h"
#include "ukmdt_sync.h"
#include "ukmdt_misc.h"

#endif
