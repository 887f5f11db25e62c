/* SPDX-License-Identifier: MIT */
/* For driver sources that include wdm.h: all kernel services are in ntddk.h. */
#ifndef WDDM_WDM_H
#define WDDM_WDM_H

#include "ntddk.h"

#endif
