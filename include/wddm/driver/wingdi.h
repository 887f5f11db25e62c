/* SPDX-License-Identifier: MIT */
/* Nothing of GDI is here: miniports include this header for types that d3dkmdt.h has. */
#ifndef WDDM_DRIVER_WINGDI_H
#define WDDM_DRIVER_WINGDI_H

#include <d3dkmdt.h>

#endif
