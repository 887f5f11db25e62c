/* SPDX-License-Identifier: MIT */
/* Base types under their old name. */
#ifndef WDDM_DRIVER_WINDEF_H
#define WDDM_DRIVER_WINDEF_H

#include <wddm_base.h>

#endif
