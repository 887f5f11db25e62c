/* SPDX-License-Identifier: MIT */
/*
 * vidmm: the command line. Data goes to stdout, messages to stderr. Exit codes are enum
 * replay_status.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "check.h"
#include "conform.h"
#include "coverage.h"
#include "explain.h"
#include "fault.h"
#include "export.h"
#include "memory_refused.h"
#include "merge.h"
#include "options.h"
#include "output.h"
#include "parse_only.h"
#include "picture.h"
#include "progress.h"
#include "record_write.h"
#include "report.h"
#include "rules.h"
#include "run.h"
#include "serve.h"
#include "sim.h"
#include "summary.h"
#include "top.h"
#include "whatif.h"

struct console {
	struct progress progress;
	bool color;
};

static void print_message(void *context, const char *text)
{
	struct console *console = context;

	progress_clear(&console->progress);
	fprintf(stderr, "%svidmm: %s%s\n", console->color ? "\033[31m" : "", text,
		console->color ? "\033[0m" : "");
}

/* What --events and --record write. */
struct sinks {
	FILE *events; /* NULL: none */
	struct record_writer *record;
};

/* Each line is one call of stdio, because events may come from several threads. */
static void write_event(void *context, const struct vidmm_event *event, const char *text)
{
	const struct sinks *sinks = context;
	char line[1024];

	if (sinks->record)
		record_event(sinks->record, event, text);
	if (!sinks->events)
		return;
	vidmm_event_format(event, text, line, sizeof(line) - 1);
	fprintf(sinks->events, "%s\n", line);
}

/* Determines the video memory of each run. Percentages need a first pass over the recordings. */
static enum replay_status size_runs(struct options *options, struct console *console,
				    struct run *runs)
{
	enum replay_status status = REPLAY_CLEAN;
	struct replay_measure measure = {0};
	bool largest = false;
	unsigned i;

	for (i = 0; i < options->run_count; i++)
		largest |= options->runs[i].largest;
	for (i = 0; i < options->run_count && status == REPLAY_CLEAN; i++) {
		runs[i].memory = options->runs[i];
		console->progress.what = "measuring";
		if (!options->runs[i].bytes && !options->replay.connect &&
		    measure.peak_live_bytes == 0)
			status = replay_measure(&options->replay, largest, &measure);
		if (options->runs[i].bytes || !options->replay.connect)
			runs[i].vram_bytes = memory_size_bytes(&options->runs[i], &measure);
	}
	return status;
}

static enum replay_status run_all(struct options *options, struct console *console,
				  struct run *runs)
{
	enum replay_status worst = size_runs(options, console, runs);
	unsigned i;

	if (worst != REPLAY_CLEAN)
		return worst;
	console->progress.what = "replaying";
	for (i = 0; i < options->run_count; i++) {
		enum replay_status status;

		options->replay.vram_bytes = runs[i].vram_bytes;
		status = replay_run(&options->replay, &runs[i].result);
		if (status > worst)
			worst = status;
	}
	progress_clear(&console->progress);
	return worst;
}

static bool open_events(const char *path, FILE **file)
{
	if (!path)
		return true;
	*file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	if (!*file)
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
	return *file != NULL;
}

static bool open_record(const struct options *options, struct record_writer **record)
{
	json_t *about, *traces;

	if (!options->record_path)
		return true;
	traces = json_array();
	for (unsigned i = 0; i < options->replay.input_count; i++)
		json_array_append_new(traces, json_string(options->replay.inputs[i].path));
	about = json_pack("{s:s,s:o}", "command", "replay", "traces", traces);
	*record = record_create(options->record_path, about);
	json_decref(about);
	return *record != NULL;
}

static bool open_sinks(struct options *options, struct sinks *sinks)
{
	if (!open_events(options->events_path, &sinks->events) ||
	    !open_record(options, &sinks->record))
		return false;
	if (sinks->events || sinks->record) {
		options->replay.event = write_event;
		options->replay.event_context = sinks;
	}
	return true;
}

static bool any_refused(const struct run *runs, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (runs[i].result.refusal.refused)
			return true;
	return false;
}

/*
 * Returns whether the runs have a result. A run whose recording cannot be read has none, nor has
 * one that the machine had no memory for, unless an adapter or a device was refused.
 */
static bool have_results(const struct run *runs, unsigned count, enum replay_status status)
{
	for (unsigned i = 0; i < count; i++)
		if (runs[i].result.status >= REPLAY_BAD_INPUT && !runs[i].result.refusal.refused)
			return false;
	return status < REPLAY_BAD_INPUT || any_refused(runs, count);
}

static enum replay_status report(const struct options *options, const struct run *runs,
				 enum replay_status status)
{
	bool color = options_color(options, STDOUT_FILENO);

	if (options->json) {
		status = output_status(summary_json(stdout, options, runs, options->run_count),
				       status);
	} else if (any_refused(runs, options->run_count)) {
		return status; /* the message has said all */
	} else if (!options->quiet && options->compare) {
		summary_compare(stdout, options, runs, options->run_count, color);
	} else if (!options->quiet) {
		summary_print(stdout, options, &runs[0], color);
	}
	return status;
}

/* Events that were written before may have failed, too. */
static bool close_events(const struct options *options, FILE *events)
{
	bool failed = ferror(events) != 0;

	if (fclose(events) != 0)
		fprintf(stderr, "vidmm: %s: %s\n", options->events_path, strerror(errno));
	else if (failed) /* the reason is no longer known */
		fprintf(stderr, "vidmm: %s could not be written\n", options->events_path);
	else
		return true;
	return false;
}

static bool close_sinks(const struct options *options, struct sinks *sinks)
{
	bool good =
		!sinks->events || sinks->events == stdout || close_events(options, sinks->events);

	return record_finish(sinks->record) && good;
}

static int replay_main(int argc, const char **argv)
{
	struct options options;
	struct run *runs;
	struct console console = {0};
	struct sinks sinks = {0};
	enum replay_status status = REPLAY_ENVIRONMENT;
	int exit_code;
	unsigned i;

	if (!options_parse(argc, argv, &options, &exit_code)) {
		options_finish(&options);
		return exit_code;
	}
	console.color = options_color(&options, STDERR_FILENO);
	options.replay.message = print_message;
	options.replay.message_context = &console;
	if (isatty(STDERR_FILENO) && !options.quiet) {
		options.replay.progress = progress_update;
		options.replay.progress_context = &console.progress;
	}
	runs = calloc(options.run_count, sizeof(*runs));
	if (options.parse_only) {
		status = parse_only(&options.replay);
	} else if (runs && open_sinks(&options, &sinks)) {
		status = run_all(&options, &console, runs);
		if (have_results(runs, options.run_count, status))
			status = report(&options, runs, status);
	}
	if (!close_sinks(&options, &sinks))
		status = REPLAY_ENVIRONMENT;
	for (i = 0; runs && i < options.run_count; i++)
		replay_result_finish(&runs[i].result);
	free(runs);
	options_finish(&options);
	return (int)status;
}

static int help(FILE *file, int exit_code)
{
	fputs("usage: vidmm VERB [ARGUMENTS]\n"
	      "  replay TRACE...   play recorded GPU memory traffic through the memory manager\n"
	      "  what-if TRACE...  replay each recording with several memory sizes and policies\n"
	      "  merge FILE...     make one result from files of `what-if --state`\n"
	      "  caps              start a miniport, print its report and broken rules\n"
	      "  conform           exercise a miniport in a series of situations\n"
	      "  sim               random work with faults, compared with a model\n"
	      "  rules [ID]...     explain the rule that a finding cites, or list all rules\n"
	      "  explain EVENTS    explain from recorded events why calls failed or took long\n"
	      "  report RECORDING  draw recorded events as a page for a browser\n"
	      "  check RECORDING   list the rules that recorded events broke; SARIF and JUnit\n"
	      "  coverage RECORDING  list what of the interface recorded events exercised\n"
	      "  export RECORDING  write recorded events for Perfetto, as CSV, or for SQLite\n"
	      "  top RECORDING     show a recording in the terminal while it is written\n"
	      "  run -- PROGRAM    run a program that calls D3DKMT functions, report what it did\n"
	      "  serve             run a host to which programs connect by a socket\n"
	      "  clients           list the clients of a host\n"
	      "  picture FILE.png  draw and save a test picture on the software GPU\n"
	      "  --version         print the version\n"
	      "  --help            print this text; `vidmm VERB --help`: its options\n"
	      "exit codes: 0 clean, 1 findings, 2 usage, 3 bad input, 4 environment; of run,\n"
	      "            those of the program\n",
	      file);
	return exit_code;
}

static const struct verb {
	const char *name;
	int (*run)(int argc, const char **argv);
} verbs[] = {
	{"replay", replay_main},     {"what-if", whatif_main},  {"merge", merge_main},
	{"caps", caps_main},         {"conform", conform_main}, {"rules", rules_main},
	{"explain", explain_main},   {"report", report_main},   {"check", check_main},
	{"coverage", coverage_main}, {"export", export_main},   {"top", top_main},
	{"run", run_main},           {"serve", serve_main},     {"clients", clients_main},
	{"picture", picture_main},   {"sim", sim_main},
};

static int run_verb(const char *verb, int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verb, verbs[i].name) == 0)
			return verbs[i].run(argc - 1, (const char **)(argv + 1));
	if (strcmp(verb, "--version") == 0) {
		printf("vidmm %s\n", vidmm_version());
		return REPLAY_CLEAN;
	}
	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0)
		return help(stdout, REPLAY_CLEAN);
	fprintf(stderr, "vidmm: unknown verb \"%s\"\n", verb);
	return help(stderr, REPLAY_USAGE);
}

/*
 * What was written may lack parts if memory was refused. Clients of `serve` may use memory up,
 * which is no error of the host, and `run` has the exit code of its program.
 */
static int check_memory(const char *verb, int code)
{
	if (!memory_refused() || code == REPLAY_BAD_INPUT || strcmp(verb, "serve") == 0 ||
	    strcmp(verb, "run") == 0)
		return code;
	fprintf(stderr, "vidmm: out of memory\n");
	return REPLAY_ENVIRONMENT;
}

int main(int argc, char **argv)
{
	int code;

	if (argc < 2)
		return help(stderr, REPLAY_USAGE);
#ifndef VMM_RELEASE
	fault_offer();
#endif
	memory_refused_watch();
	/* A write beyond the limit of a file's size fails, and does not end the program. */
	(void)signal(SIGXFSZ, SIG_IGN);
	const char *verb = argv[1]; /* a verb changes the array */
	code = run_verb(verb, argc, argv);
	code = check_memory(verb, code);
	if (fflush(stdout) != 0)
		fprintf(stderr, "vidmm: standard output: %s\n", strerror(errno));
	else if (ferror(stdout)) /* the reason is no longer known */
		fputs("vidmm: standard output could not be written\n", stderr);
	else
		return code;
	return code > REPLAY_ENVIRONMENT ? code
					 : REPLAY_ENVIRONMENT; /* `run` has codes of its program */
}
