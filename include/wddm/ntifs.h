/* SPDX-License-Identifier: MIT */
/* For driver sources that include ntifs.h: all kernel services are in ntddk.h. */
#ifndef WDDM_NTIFS_H
#define WDDM_NTIFS_H

#include "ntddk.h"

#endif
