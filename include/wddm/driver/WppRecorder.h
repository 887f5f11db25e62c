/* SPDX-License-Identifier: MIT */
/* The in-flight recorder of WPP: messages become debug output (wpp_trace.h). */
#ifndef WDDM_WPPRECORDER_H
#define WDDM_WPPRECORDER_H

#include "wpp_trace.h"

#endif
