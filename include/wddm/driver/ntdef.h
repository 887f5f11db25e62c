/* SPDX-License-Identifier: MIT */
/* Base types of the kernel. */
#ifndef WDDM_DRIVER_NTDEF_H
#define WDDM_DRIVER_NTDEF_H

#include <ntddk.h>

#endif
