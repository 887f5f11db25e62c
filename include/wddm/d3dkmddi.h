/* SPDX-License-Identifier: MIT */
/*
 * d3dkmddi.h: the interface between the port and a display miniport, kernel side.
 * This header only collects its parts; each part names its source pages.
 */
#ifndef WDDM_D3DKMDDI_H
#define WDDM_D3DKMDDI_H

#include "d3dukmdt.h"
#include "d3dkmdt.h"
#include "kmddi_caps.h"
#include "kmddi_segment.h"
#include "kmddi_device.h"
#include "kmddi_alloc.h"
#include "kmddi_paging.h"
#include "kmddi_submit.h"
#include "kmddi_hwsched.h"
#include "kmddi_display.h"
#include "kmddi_callback.h"
#include "kmddi_vidpn.h"
#include "kmddi_vidpn_interface.h"
#include "kmddi_power.h"
#include "kmddi_entry.h"
#include "kmddi_service.h"

#endif
