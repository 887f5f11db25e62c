/* SPDX-License-Identifier: MIT */
/* Annotations of driver source: sal.h has them all. */
#include "sal.h"
