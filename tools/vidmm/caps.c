/* SPDX-License-Identifier: MIT */
/*
 * `vidmm caps`: starts the miniport in a host without clients, collects what the start reports, and
 * stops it.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "caps_names.h"
#include "driver.h"
#include "output.h"
#include "wrap.h"

/* ---- findings, reasons and fatal violations of the start ---- */

static struct caps_complaint *complaint_of(struct caps_result *result, uint32_t type,
					   const char *rule, const char *text)
{
	struct caps_complaint *complaint;
	unsigned i;

	for (i = 0; i < result->complaint_count; i++) {
		complaint = &result->complaints[i];
		if (complaint->type == type && strcmp(complaint->rule, rule) == 0 &&
		    strncmp(complaint->text, text, sizeof(complaint->text) - 1) == 0)
			return complaint;
	}
	if (result->complaint_count == CAPS_COMPLAINTS_MAX)
		return NULL;
	complaint = &result->complaints[result->complaint_count++];
	complaint->type = type;
	snprintf(complaint->rule, sizeof(complaint->rule), "%s", rule);
	snprintf(complaint->text, sizeof(complaint->text), "%s", text);
	return complaint;
}

static void complain(struct caps_result *result, uint32_t type, uint32_t status, const char *text)
{
	struct caps_complaint *complaint;
	char rule[sizeof(complaint->rule)] = "";
	size_t length = strcspn(text, ":");

	if (type == VIDMM_EVENT_FINDING && length < sizeof(rule) && text[length] == ':') {
		memcpy(rule, text, length);
		rule[length] = '\0';
		text += length + 1;
		text += strspn(text, " ");
	}
	pthread_mutex_lock(&result->lock);
	result->violation_count += type != VIDMM_EVENT_REASON;
	complaint = complaint_of(result, type, rule, text);
	if (complaint) {
		complaint->status = status;
		complaint->count++;
	}
	pthread_mutex_unlock(&result->lock);
}

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	char line[256];

	if (event->type == VIDMM_EVENT_FATAL) {
		snprintf(line, sizeof(line),
			 "bug check 0x%" PRIx64 " (0x%" PRIx64 ", 0x%" PRIx64 ", 0x%" PRIx64
			 ")%s%s",
			 event->arg[0], event->arg[1], event->arg[2], event->arg[3],
			 text ? ": " : "", text ? text : "");
		text = line;
	}
	complain(context, event->type, (uint32_t)event->arg[0], text ? text : "");
}

static void on_deadlock(void *context, const char *report)
{
	complain(context, VIDMM_EVENT_FATAL, 0,
		 "deadlock: the miniport waits and no thread can wake it");
	fprintf(stderr, "vidmm: %s\n", report);
}

/* ---- crashes of the driver: the step is printed before the program ends ---- */

static const struct vidmm_adapter_report *crash_report;

static void write_stderr(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* standard error is closed: nothing can be reported */
}

/*
 * Signal handler. SA_RESETHAND has restored the default action, so that the faulting instruction
 * runs again and ends the program. A debugger or a core file then shows that instruction.
 */
static void on_crash(int number)
{
	(void)number;
	write_stderr("vidmm: the driver crashed; the start was in ");
	write_stderr(step_name(crash_report->step));
	write_stderr("\n");
}

/*
 * Installs the handler only for signals with the default action: a sanitizer that handles them
 * reports more.
 */
static void watch_for_crashes(const struct vidmm_adapter_report *report)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND}, old;
	size_t i;

	crash_report = report;
	sigemptyset(&action.sa_mask);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
	}
}

/* ---- start and stop ---- */

static void start_and_stop(struct vidmm_host *host, const struct caps_options *options,
			   vidmm_driver_entry_fn *entry, struct caps_result *result)
{
	struct vidmm_adapter_options adapter_options = {
		.struct_size = sizeof(adapter_options),
		.driver_entry = entry,
		.bar_sizes = options->bars,
		.bar_count = options->bar_count,
		.registry = options->settings,
		.registry_count = options->setting_count,
		.features = VIDMM_FEATURE_HWSCH,
		.report = &result->report,
	};
	struct vidmm_adapter *adapter = NULL;

	result->report.struct_size = sizeof(result->report);
	watch_for_crashes(&result->report);
	result->status = vidmm_adapter_start(host, &adapter_options, &adapter);
	if (result->status >= 0)
		vidmm_adapter_stop(adapter);
}

static enum replay_status run(const struct caps_options *options, vidmm_driver_entry_fn *entry,
			      struct caps_result *result)
{
	struct vidmm_host_options host_options = {
		.struct_size = sizeof(host_options),
		.kind = options->host_kind,
		.deadlock = on_deadlock,
		.deadlock_context = result,
	};
	uint64_t events = (uint64_t)1 << VIDMM_EVENT_FINDING | (uint64_t)1 << VIDMM_EVENT_REASON |
			  (uint64_t)1 << VIDMM_EVENT_FATAL;
	struct vidmm_host *host;
	uint32_t subscription;

	if (vidmm_host_create(&host_options, &host) < 0) {
		fprintf(stderr, "vidmm: cannot create a host\n");
		return REPLAY_ENVIRONMENT;
	}
	subscription = vidmm_subscribe(host, events, on_event, result);
	if (subscription) {
		start_and_stop(host, options, entry, result);
		vidmm_unsubscribe(host, subscription);
	} else {
		fprintf(stderr, "vidmm: out of memory\n");
	}
	vidmm_host_destroy(host);
	return subscription ? caps_verdict(result) : REPLAY_ENVIRONMENT;
}

enum replay_status caps_verdict(const struct caps_result *result)
{
	return result->status < 0 || result->violation_count ? REPLAY_FINDINGS : REPLAY_CLEAN;
}

/* ---- the verb ---- */

static enum replay_status show(const struct caps_options *options, const struct caps_result *result,
			       enum replay_status status)
{
	bool good = true;

	if (options->json)
		good = caps_json(stdout, options, result);
	else if (!options->quiet || status != REPLAY_CLEAN)
		caps_print(stdout, options, result, color_wanted(options->color, STDOUT_FILENO),
			   wrap_width(STDOUT_FILENO));
	return output_status(good, status);
}

int caps_main(int argc, const char **argv)
{
	struct caps_options options;
	struct caps_result *result;
	vidmm_driver_entry_fn *entry = NULL;
	enum replay_status status;
	int exit_code;

	if (!caps_options_parse(argc, argv, &options, &exit_code)) {
		caps_options_finish(&options);
		return exit_code;
	}
	result = calloc(1, sizeof(*result));
	status = result ? driver_load(options.driver, &entry) : REPLAY_ENVIRONMENT;
	if (status == REPLAY_CLEAN) {
		pthread_mutex_init(&result->lock, NULL);
		status = run(&options, entry, result);
		/* Without a host there is no report to show. */
		if (status != REPLAY_ENVIRONMENT)
			status = show(&options, result, status);
		pthread_mutex_destroy(&result->lock);
	}
	free(result);
	caps_options_finish(&options);
	return (int)status;
}
