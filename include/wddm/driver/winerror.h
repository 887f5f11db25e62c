/* SPDX-License-Identifier: MIT */
/* Status values and HRESULTs. */
#ifndef WDDM_DRIVER_WINERROR_H
#define WDDM_DRIVER_WINERROR_H

#include "dxgkstatus.h"

#endif
