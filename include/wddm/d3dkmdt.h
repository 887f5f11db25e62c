/* SPDX-License-Identifier: MIT */
/*
 * d3dkmdt.h: the types that kernel-mode display software shares.
 * This header only collects its parts; each part names its source pages.
 */
#ifndef WDDM_D3DKMDT_H
#define WDDM_D3DKMDT_H

#include "d3dukmdt.h"
#include "kmdt_core.h"
#include "kmdt_vidpn.h"
#include "kmdt_display.h"

#endif
