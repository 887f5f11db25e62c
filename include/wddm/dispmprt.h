/* SPDX-License-Identifier: MIT */
/*
 * dispmprt.h: the display port: devices, the service table, the registration of a miniport.
 * This header only collects its parts; each part names its source pages.
 */
#ifndef WDDM_DISPMPRT_H
#define WDDM_DISPMPRT_H

#include "wddm_kernel.h"
#include "d3dkmddi.h"
#include "dispmprt_device.h"
#include "dispmprt_parameters.h"
#include "dispmprt_service.h"
#include "dispmprt_init.h"
#ifdef WDDM_DRIVER_SOURCE
#include "driver/acpiioct.h"
#include "driver/dxgkpower.h"
#include "driver/dxgkstatus.h"
#include "driver/bugcodes.h"
#include "driver/guiddef.h"
#include "driver/video.h"
#endif

#endif
