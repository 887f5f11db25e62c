/* SPDX-License-Identifier: MIT */
/* Scripts of `vidmm sim`: what a run is about, and its steps, one a line. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/softgpu.h>

#include "grow.h"
#include "sim.h"
#include "units.h"

#define HEADER     "# vidmm sim script 1"
#define LINE_MAX_  256
#define SETTINGS   11u
#define MEMORY_MIN 65536u
#define MEMORY_MAX (1ull << 30)

/* A setting of a script, and the values that it may have. */
struct setting {
	const char *name;
	uint64_t *wide; /* either this or `narrow` */
	uint32_t *narrow;
	uint64_t least, most;
};

static void settings_of(struct sim_setup *s, struct setting settings[SETTINGS])
{
	const struct setting all[SETTINGS] = {
		{"seed", &s->seed, NULL, 0, UINT64_MAX},
		{"processes", NULL, &s->processes, 1, MODEL_PROCESSES},
		{"model", NULL, &s->model, SOFTGPU_MODEL_WDDM1, SOFTGPU_MODEL_WDDM2},
		{"vram", &s->vram_bytes, NULL, MEMORY_MIN, MEMORY_MAX},
		{"aperture", &s->aperture_bytes, NULL, MEMORY_MIN, MEMORY_MAX},
		{"dma-buffer", NULL, &s->dma_bytes, 4096, 1u << 20},
		{"paging-buffer", NULL, &s->paging_bytes, 4096, 1u << 20},
		{"first-fence", NULL, &s->first_fence, 1, UINT32_MAX},
		{"engine-reset", NULL, &s->engine_reset, 0, 1},
		{"preempts", NULL, &s->preempts, 0, 1},
		{"switches", NULL, &s->switch_per_1024, 0, 1024},
	};

	memcpy(settings, all, sizeof(all));
}

bool sim_script_write(FILE *file, const struct sim_setup *setup, const struct sim_step *steps,
		      uint64_t count)
{
	struct sim_setup copy = *setup;
	struct setting settings[SETTINGS];

	fprintf(file, HEADER "\n");
	settings_of(&copy, settings);
	for (uint32_t i = 0; i < SETTINGS; i++)
		fprintf(file, "%s %" PRIu64 "\n", settings[i].name,
			settings[i].wide ? *settings[i].wide : *settings[i].narrow);
	fputs("# operation, process, a, b, c, d\n", file);
	for (uint64_t i = 0; i < count; i++)
		fprintf(file,
			"step %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
			sim_op_names[steps[i].op], steps[i].process, steps[i].a, steps[i].b,
			steps[i].c, steps[i].d);
	return fflush(file) == 0 && !ferror(file);
}

/* ---- reading ---- */

struct reader {
	const char *path;
	uint64_t line;
	struct setting settings[SETTINGS];
	uint32_t seen; /* bit n: setting n */
	const struct sim_setup *setup;
	struct sim_step *steps;
	unsigned count, capacity;
};

static enum replay_status bad(const struct reader *r, const char *why)
{
	fprintf(stderr, "vidmm sim: %s:%" PRIu64 ": %s (Q-466)\n", r->path, r->line, why);
	return REPLAY_BAD_INPUT;
}

static bool parse_word(const char *text, uint32_t *value)
{
	uint64_t wide;

	if (!text || !units_parse_u64(text, &wide) || wide > UINT32_MAX)
		return false;
	*value = (uint32_t)wide;
	return true;
}

static enum replay_status take_step(struct reader *r, char **rest)
{
	const char *name = strtok_r(NULL, " ", rest);
	struct sim_step step = {0};
	uint32_t *const numbers[] = {&step.process, &step.a, &step.b, &step.c, &step.d};

	while (name && step.op < SIM_OPS && strcmp(name, sim_op_names[step.op]) != 0)
		step.op++;
	if (!name || step.op == SIM_OPS)
		return bad(r, "no such operation");
	for (unsigned i = 0; i < 5; i++)
		if (!parse_word(strtok_r(NULL, " ", rest), numbers[i]))
			return bad(r, "a step has five numbers below 2^32");
	if (strtok_r(NULL, " ", rest))
		return bad(r, "a step has five numbers");
	if (r->seen != (1u << SETTINGS) - 1)
		return bad(r, "all settings come before the first step");
	if (step.process >= r->setup->processes || step.a >= MODEL_ALLOCATIONS ||
	    step.b >= MODEL_ALLOCATIONS)
		return bad(r, "the process is below `processes`, and a and b are below 12");
	if (!grow_array((void **)&r->steps, &r->capacity, r->count, sizeof(*r->steps))) {
		fputs("vidmm sim: out of memory\n", stderr);
		return REPLAY_ENVIRONMENT;
	}
	r->steps[r->count++] = step;
	return REPLAY_CLEAN;
}

static enum replay_status take_setting(struct reader *r, const char *name, char **rest)
{
	const char *text = strtok_r(NULL, " ", rest);
	uint64_t value;
	uint32_t i = 0;

	while (i < SETTINGS && strcmp(name, r->settings[i].name) != 0)
		i++;
	if (i == SETTINGS)
		return bad(r, "no such setting");
	const struct setting *s = &r->settings[i];
	if (!text || !units_parse_u64(text, &value) || value < s->least || value > s->most ||
	    strtok_r(NULL, " ", rest))
		return bad(r, "the value of the setting is not valid");
	if (s->wide)
		*s->wide = value;
	else
		*s->narrow = (uint32_t)value;
	r->seen |= 1u << i;
	return REPLAY_CLEAN;
}

static enum replay_status take_line(struct reader *r, char *line)
{
	size_t length = strlen(line);
	char *rest;

	r->line++;
	if (!length || line[length - 1] != '\n')
		return bad(r, "the line is too long, or its end is missing");
	line[length - 1] = '\0';
	if (r->line == 1)
		return strcmp(line, HEADER) ? bad(r, "expected \"" HEADER "\"") : REPLAY_CLEAN;
	const char *word = line[0] == '#' ? NULL : strtok_r(line, " ", &rest);
	if (!word)
		return REPLAY_CLEAN;
	return strcmp(word, "step") ? take_setting(r, word, &rest) : take_step(r, &rest);
}

enum replay_status sim_script_read(const char *path, struct sim_setup *setup,
				   struct sim_step **steps, uint64_t *count)
{
	struct reader r = {.path = path, .setup = setup};
	enum replay_status status = REPLAY_CLEAN;
	FILE *file = fopen(path, "r");
	char line[LINE_MAX_];

	if (!file) {
		fprintf(stderr, "vidmm sim: %s: %s\n", path, strerror(errno));
		return REPLAY_BAD_INPUT;
	}
	settings_of(setup, r.settings);
	while (status == REPLAY_CLEAN && fgets(line, sizeof(line), file))
		status = take_line(&r, line);
	if (status == REPLAY_CLEAN && ferror(file)) {
		fprintf(stderr, "vidmm sim: %s could not be read\n", path);
		status = REPLAY_BAD_INPUT;
	}
	if (status == REPLAY_CLEAN && !r.count)
		status = bad(&r, "the script has no step");
	fclose(file);
	if (status != REPLAY_CLEAN) {
		free(r.steps);
		return status;
	}
	*steps = r.steps;
	*count = r.count;
	return REPLAY_CLEAN;
}
