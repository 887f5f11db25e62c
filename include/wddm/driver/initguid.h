/* SPDX-License-Identifier: MIT */
/* Makes DEFINE_GUID define the identifiers instead of declaring them. */
#define INITGUID 1
#include "guiddef.h"
