/* SPDX-License-Identifier: MIT */
/*
 * `vidmm caps`: starts a miniport, collects what it reports and which rules it breaks, and stops
 * it. The result is printed as text (caps_print.c) or as JSON (caps_json.c, docs/caps.md). The
 * miniport is softgpu or a shared object with a DriverEntry.
 */
#ifndef VIDMM_TOOLS_CAPS_H
#define VIDMM_TOOLS_CAPS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <vidmm/vidmm.h>

#include "options.h"

#define CAPS_COMPLAINTS_MAX 64u

struct caps_options {
	char *driver; /* path of a shared object; NULL: softgpu */
	char *device; /* path of a device model; NULL: memory BARs */
	struct vidmm_registry_value *settings;
	unsigned setting_count;
	uint64_t bars[VIDMM_REPORT_BARS_MAX];
	unsigned bar_count; /* 0 with a device model */
	uint32_t host_kind; /* enum vidmm_host_kind */
	unsigned limit_s;   /* seconds for the start and the stop; 0: no limit */
	bool json, quiet;
	enum color_mode color;
};

/*
 * A finding, reason or fatal violation reported during the start. Equal reports share one element.
 */
struct caps_complaint {
	uint32_t type;   /* VIDMM_EVENT_FINDING, _REASON or _FATAL */
	uint32_t status; /* of a reason */
	uint64_t count;
	char rule[12];  /* of a finding: the text before the colon */
	char text[512]; /* the rest */
};

struct caps_result {
	vidmm_status status; /* of the start */
	bool hung;           /* the driver does not return: within the limit, or for ever */
	struct vidmm_adapter_report report;
	struct caps_complaint complaints[CAPS_COMPLAINTS_MAX];
	/* elements of complaints[]; different reports beyond the maximum are dropped */
	unsigned complaint_count;
	unsigned violation_count; /* findings and fatal violations, dropped ones included */
	pthread_mutex_t lock;     /* guards the complaints: events may come from several threads */
};

/* Parses argv[1..] of `vidmm caps`; returns as options_parse does (options.h). */
bool caps_options_parse(int argc, const char **argv, struct caps_options *options, int *exit_code);
void caps_options_finish(struct caps_options *options);

/* The options that describe an adapter, as popt stores them. NULL: not given. */
struct caps_adapter_words {
	char *driver, *interface, *device;
	const char **sets, **bars;
	int verify_driver;
};
/*
 * Interprets the words of `vidmm VERB`. Returns false after a message if one is not valid, or when
 * out of memory; caps_options_finish follows in any case.
 */
bool caps_take_adapter(const char *verb, const struct caps_adapter_words *words,
		       struct caps_options *options);
void caps_free_adapter(struct caps_adapter_words *words);

/* Returns the exit code for a start: REPLAY_FINDINGS if it was refused or broke a rule. */
enum replay_status caps_verdict(const struct caps_result *result);
void caps_print(FILE *file, const struct caps_options *options, const struct caps_result *result,
		bool color, int width);
/* Replaces addresses of code by functions and source lines where findings have them. */
void caps_name_callers(struct caps_result *result);
/* Returns false when out of memory or when FILE cannot be written. */
bool caps_json(FILE *file, const struct caps_options *options, const struct caps_result *result);

int caps_main(int argc, const char **argv);

#endif
