/* SPDX-License-Identifier: MIT */
/* `vidmm run`: the steps of a run, from its folder to the page about the program. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "run.h"

static int print_page(const struct run_options *options, const struct vmm_report *report,
		      const struct run_end *end, int exit_code)
{
	FILE *file = options->report ? fopen(options->report, "we") : stderr;

	if (!file) {
		fprintf(stderr, "vidmm run: %s: %s\n", options->report, strerror(errno));
		return exit_code ? exit_code : REPLAY_ENVIRONMENT;
	}
	run_page_print(file, options, report, end);
	if (fflush(file) != 0 || (file != stderr && fclose(file) != 0)) {
		fprintf(stderr, "vidmm run: the report cannot be written: %s\n", strerror(errno));
		return exit_code ? exit_code : REPLAY_ENVIRONMENT;
	}
	return exit_code;
}

static void say_missing(const struct run_options *options, const struct run_end *end)
{
	if (end->exec_error)
		fprintf(stderr, "vidmm run: %s: %s\n", options->program[0],
			strerror(end->exec_error));
}

static int run_in(const struct run_options *options, const struct run_folder *folder)
{
	struct vmm_report *report = vmm_report_create(folder->report);
	struct run_end end = {0};
	int host = 0, exit_code = REPLAY_ENVIRONMENT;

	if (!report) {
		fprintf(stderr, "vidmm run: %s: %s\n", folder->report, strerror(errno));
		return REPLAY_ENVIRONMENT;
	}
	enum replay_status status =
		options->serve ? run_host_start(options, folder, report, &host) : REPLAY_CLEAN;

	if (status != REPLAY_CLEAN) {
		exit_code = print_page(options, report, NULL, (int)status);
	} else if (run_child(options, folder, report, &end)) {
		end.host_status = run_host_stop(host);
		say_missing(options, &end);
		exit_code = run_exit_code(&end);
		if (!end.exec_error)
			exit_code = print_page(options, report, &end, exit_code);
		if (options->record && end.host_status && !exit_code)
			exit_code = REPLAY_ENVIRONMENT; /* the host has said what it lost */
	} else {
		(void)run_host_stop(host);
	}
	vmm_report_detach(report);
	return exit_code;
}

int run_main(int argc, const char **argv)
{
	struct run_options options;
	struct run_folder folder = {0};
	vidmm_driver_entry_fn *entry;
	int exit_code;

	if (!run_options_parse(argc, argv, &options, &exit_code)) {
		run_options_finish(&options);
		return exit_code;
	}
	/* A file that is no driver is refused before the program starts. */
	exit_code = options.adapter.driver ? (int)driver_load(options.adapter.driver, &entry) : 0;
	if (exit_code == REPLAY_CLEAN)
		exit_code = run_folder_make(&options, &folder) ? run_in(&options, &folder)
							       : REPLAY_ENVIRONMENT;
	run_folder_remove(&folder);
	run_options_finish(&options);
	return exit_code;
}
