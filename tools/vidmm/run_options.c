/* SPDX-License-Identifier: MIT */
/* The command line of `vidmm run`. */
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "policy.h"
#include "run.h"

/* Values of the options as popt stores them. NULL: the option was not given. */
struct raw {
	struct caps_adapter_words adapter;
	char *report, *record, *policy;
	int serve, no_namespace, help;
};

/* The program and its arguments follow the options: argv is cut there. */
static bool take_program(poptContext context, int argc, const char **argv,
			 struct run_options *options)
{
	const char **rest = poptGetArgs(context);
	int count = 0;

	while (rest && rest[count])
		count++;
	if (!count || !rest[0][0]) {
		fprintf(stderr, "vidmm run: no program: expected vidmm run [OPTION...] -- PROGRAM "
				"[ARG...]\n"
				"try: vidmm run --help\n");
		return false;
	}
	options->program = (char **)(uintptr_t)&argv[argc - count];
	return true;
}

/*
 * VIDMM_ADAPTER separates its parts by commas, and "bar" is no registry value there.
 */
static bool names_fit(const struct run_options *options)
{
	for (unsigned i = 0; i < options->adapter.setting_count; i++) {
		const char *name = options->adapter.settings[i].name;

		if (!strchr(name, ',') && strcmp(name, "bar") != 0)
			continue;
		fprintf(stderr,
			"vidmm run: --set \"%s\" is not valid: expected a name other than bar, "
			"without a comma\ntry: vidmm run --help\n",
			name);
		return false;
	}
	return true;
}

static bool take_report(char **given, struct run_options *options)
{
	options->report = *given;
	*given = NULL;
	if (!options->report || options->report[0])
		return true;
	fprintf(stderr, "vidmm run: --report has no value: expected a file\n"
			"try: vidmm run --help\n");
	return false;
}

/* The host writes it: the library in the program's process cannot compress. */
static bool take_record(char **given, struct run_options *options)
{
	options->record = *given;
	*given = NULL;
	if (!options->record || (options->record[0] && options->serve))
		return true;
	fprintf(stderr, options->serve ? "vidmm run: --record has no value: expected a file\n"
					 "try: vidmm run --help\n"
				       : "vidmm run: --record needs --serve\n"
					 "try: vidmm run --help\n");
	return false;
}

/* Without --serve the program itself would have to load the device model. */
static bool take_device(const struct raw *raw)
{
	if (!raw->adapter.device || raw->serve)
		return true;
	fprintf(stderr, "vidmm run: --device needs --serve\n"
			"try: vidmm run --help\n");
	return false;
}

static bool take_policy_file(const struct raw *raw, struct run_options *options, int *exit_code)
{
	if (!raw->serve) {
		fprintf(stderr, "vidmm run: --policy FILE needs --serve\n"
				"try: vidmm run --help\n");
		return false;
	}
	enum replay_status status = policy_file(raw->policy, &options->policy);
	if (status != REPLAY_CLEAN)
		*exit_code = (int)status;
	return status == REPLAY_CLEAN;
}

/*
 * --policy NAME is --set VidmmEvictionPolicy=NAME. Functions from a file are given to the host of
 * --serve. Without --serve the program itself would have to load the file.
 */
static bool take_policy(struct raw *raw, struct run_options *options, int *exit_code)
{
	char setting[64];
	uint64_t value;

	if (!raw->policy)
		return true;
	if (strchr(raw->policy, '/'))
		return take_policy_file(raw, options, exit_code);
	if (!policy_setting(raw->policy, &value)) {
		fprintf(stderr,
			"vidmm run: --policy \"%s\" is not valid: expected " POLICY_SETTING_NAMES
			", or with --serve ./FILE.so\ntry: vidmm run --help\n",
			raw->policy);
		return false;
	}
	snprintf(setting, sizeof(setting), "VidmmEvictionPolicy=%s", raw->policy);
	if (poptSaveString(&raw->adapter.sets, 0, setting) == 0)
		return true;
	fprintf(stderr, "vidmm run: out of memory\n");
	*exit_code = REPLAY_ENVIRONMENT;
	return false;
}

bool run_options_parse(int argc, const char **argv, struct run_options *options, int *exit_code)
{
	struct raw raw = {0};
	struct poptOption table[] = {
		{"driver", 0, POPT_ARG_STRING, &raw.adapter.driver, 0,
		 "miniport: softgpu (default), or a shared object with a DriverEntry", "DRIVER"},
		{"set", 0, POPT_ARG_ARGV, &raw.adapter.sets, 0,
		 "registry value of the device and the driver; repeatable", "NAME=VALUE"},
		{"policy", 0, POPT_ARG_STRING, &raw.policy, 0,
		 "order of eviction: " POLICY_SETTING_NAMES ", or with --serve ./FILE.so", "NAME"},
		{"interface", 0, POPT_ARG_STRING, &raw.adapter.interface, 0,
		 "interface version of softgpu: 2.0 to 2.7 (default 2.6), 1.0 to 1.3, or a number",
		 "VERSION"},
		{"bar", 0, POPT_ARG_ARGV, &raw.adapter.bars, 0,
		 "memory BAR of the device, for softgpu the video memory; repeatable (default: one "
		 "of 256M)",
		 "SIZE"},
		{"device", 0, POPT_ARG_STRING, &raw.adapter.device, 0,
		 "with --serve: device model instead of memory BARs (docs/devices.md)", "FILE"},
		{"serve", 0, POPT_ARG_NONE, &raw.serve, 0,
		 "adapter in a host beside the program (default: in the program's process)", NULL},
		{"report", 0, POPT_ARG_STRING, &raw.report, 0,
		 "file for the page about the program (default: standard error)", "FILE"},
		{"record", 0, POPT_ARG_STRING, &raw.record, 0,
		 "with --serve: file for a recording of all events, for `vidmm explain`", "FILE"},
		{"no-namespace", 0, POPT_ARG_NONE, &raw.no_namespace, 0,
		 "no mount namespace: " RUN_WSL_PATH " stays what it is", NULL},
		{"help", 'h', POPT_ARG_NONE, &raw.help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	bool proceed;

	argv[0] = "vidmm run"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, POPT_CONTEXT_POSIXMEHARDER);
	poptSetOtherOptionHelp(context, "[OPTION...] -- PROGRAM [ARG...]");
	memset(options, 0, sizeof(*options));
	*exit_code = REPLAY_USAGE;
	proceed = options_read(context, "run", &raw.help, exit_code);
	options->serve = raw.serve;
	options->no_namespace = raw.no_namespace;
	proceed = proceed && take_report(&raw.report, options) &&
		  take_record(&raw.record, options) && take_policy(&raw, options, exit_code) &&
		  take_device(&raw) && caps_take_adapter("run", &raw.adapter, &options->adapter) &&
		  names_fit(options) && take_program(context, argc, argv, options);
	caps_free_adapter(&raw.adapter);
	free(raw.report);
	free(raw.record);
	free(raw.policy);
	poptFreeContext(context);
	return proceed;
}

void run_options_finish(struct run_options *options)
{
	caps_options_finish(&options->adapter);
	free(options->report);
	free(options->record);
}
