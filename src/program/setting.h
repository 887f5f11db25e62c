/* SPDX-License-Identifier: MIT */
/* The value of VIDMM_ADAPTER: DRIVER[,bar=SIZE]...[,NAME=NUMBER]... (docs/run.md, Q-170) */
#ifndef VMM_PROGRAM_SETTING_H
#define VMM_PROGRAM_SETTING_H

#include <vidmm/vidmm.h>
#include "base/base.h"

#define VMM_PROGRAM_VARIABLE "VIDMM_ADAPTER"

enum { VMM_PROGRAM_SETTINGS_MAX = 64, VMM_PROGRAM_TEXT_BYTES = 8192, VMM_PROGRAM_WHY_BYTES = 256 };

struct vmm_program_setting {
	char text[VMM_PROGRAM_TEXT_BYTES]; /* the value, cut at its commas */
	const char *driver;                /* "softgpu", or a path */
	uint64_t bars[VIDMM_REPORT_BARS_MAX];
	uint32_t bar_count; /* at least 1: by default one of 256 MiB */
	/* one more than the value may have: softgpu's Model */
	struct vidmm_registry_value settings[VMM_PROGRAM_SETTINGS_MAX + 1];
	uint32_t setting_count;
	char why[VMM_PROGRAM_WHY_BYTES]; /* what is wrong, if parsing fails */
};

/* Parses VALUE. Returns false and sets setting->why if it is malformed. */
bool vmm_program_parse(const char *value, struct vmm_program_setting *setting) VMM_MUST_CHECK;

#endif
