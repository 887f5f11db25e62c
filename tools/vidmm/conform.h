/* SPDX-License-Identifier: MIT */
/*
 * `vidmm conform`: runs a fixed series of situations against a miniport, each in a separate
 * process, and reports which worked, which broke, and which could not be exercised.
 */
#ifndef VIDMM_TOOLS_CONFORM_H
#define VIDMM_TOOLS_CONFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "caps.h"

enum conform_state {
	CONFORM_OK,
	CONFORM_BROKE,
	CONFORM_NOT_EXERCISED,
	CONFORM_BAD_ADAPTER /* the command adapter is not valid: ends the run */
};
extern const char *const conform_states[]; /* "ok", "broke", "not exercised" */

#define CONFORM_FINDINGS_MAX 8u
struct conform_finding {
	char rule[16];
	char text[320];
	uint64_t count;
};

/* What a situation's process writes to the pipe. */
struct conform_outcome {
	uint32_t state;   /* enum conform_state */
	char detail[400]; /* what was exercised, why it was not, or at which step it broke */
	struct conform_finding findings[CONFORM_FINDINGS_MAX];
	uint32_t finding_count; /* in `findings` */
	uint64_t blocks_compared, blocks_wrong;
};

/*
 * What the situation "start" found: the findings of a start and a stop without work, which every
 * situation would repeat. Further findings than fit are not in it.
 */
#define CONFORM_KNOWN_MAX 64u
struct conform_known {
	bool refused; /* the adapter does not start */
	uint32_t count;
	struct {
		char text[240]; /* with its rule */
		bool at_start;  /* before the adapter had started */
	} finding[CONFORM_KNOWN_MAX];
};

struct conform_options {
	struct caps_options adapter;
	char *commands; /* NULL: no command adapter */
	vidmm_driver_entry_fn *entry;
	vidmm_commands_describe_fn *describe;
	const struct vidmm_device_model *model; /* NULL: memory BARs */
	struct conform_shared *shared;
	const struct conform_known *known; /* empty until the situation "start" has ended */
};

/* Memory that all processes share. */
#define CONFORM_LAST_CALL_BYTES 200u
struct conform_shared {
	char last_call[CONFORM_LAST_CALL_BYTES]; /* of the driver that returned */
	char bug_check[CONFORM_LAST_CALL_BYTES]; /* NT-09: the finding */
	int write_error;                         /* errno, if the outcome could not be written */
	struct conform_known known;              /* written by the situation "start" */
};

struct conform_stage;
struct conform_situation {
	const char *name, *summary;
	bool needs_commands;
	void (*run)(struct conform_stage *stage);
};
extern const struct conform_situation conform_situations[];
extern const unsigned conform_situation_count;

/* conform_situations.c: runs the situation in the calling process. */
void conform_run(const struct conform_options *options, const struct conform_situation *situation,
		 struct conform_outcome *outcome);
/* conform_known.c */
void conform_known_add(struct conform_known *known, const char *text, bool at_start);
/*
 * Whether the situation "start" has had the same finding. While an adapter starts, another finding
 * of the same rule is the same, because its values may depend on the situation.
 */
bool conform_known_has(const struct conform_known *known, const char *text, bool at_start);
/* Returns false if a driver has overwritten it. */
bool conform_known_is_valid(const struct conform_known *known);
/* conform_report.c */
void conform_print(FILE *file, const struct conform_options *options,
		   const struct conform_outcome *outcomes, bool color);
bool conform_json(FILE *file, const struct conform_options *options,
		  const struct conform_outcome *outcomes, int exit_code);

int conform_main(int argc, const char **argv);

#endif
