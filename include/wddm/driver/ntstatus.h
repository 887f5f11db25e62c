/* SPDX-License-Identifier: MIT */
/* Status values. */
#ifndef WDDM_DRIVER_NTSTATUS_H
#define WDDM_DRIVER_NTSTATUS_H

#include "dxgkstatus.h"

#endif
