/* SPDX-License-Identifier: MIT */
/* Video requests of earlier driver models: types only. */
#ifndef WDDM_DRIVER_NTDDVDEO_H
#define WDDM_DRIVER_NTDDVDEO_H

#include <ntddk.h>
#include "video.h"

#endif
