/* SPDX-License-Identifier: MIT */
/*
 * `vidmm caps`: starts the miniport in a host without clients, collects what the start reports, and
 * stops it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "caps_limit.h"
#include "crash.h"
#include "caps_names.h"
#include "device_file.h"
#include "driver.h"
#include "output.h"
#include "wrap.h"

#define STATUS_UNSUCCESSFUL ((vidmm_status)0xC0000001)

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
	struct caps_result *result = context;
	char line[256];

	/* The thread that starts the adapter, or one of the driver. */
	if (!crash_deadlock(line, sizeof(line)))
		snprintf(line, sizeof(line), "Q-440: deadlock: no thread can run");
	complain(result, VIDMM_EVENT_FINDING, 0, line);
	result->hung = true;
	fprintf(stderr, "vidmm: %s\n", report);
}

/* ---- start and stop ---- */

struct caps_hardware {
	vidmm_driver_entry_fn *entry;
	const struct vidmm_device_model *model; /* NULL: memory BARs */
};

static void start_and_stop(struct vidmm_host *host, const struct caps_options *options,
			   const struct caps_hardware *hardware, struct caps_result *result)
{
	struct vidmm_adapter_options adapter_options = {
		.struct_size = sizeof(adapter_options),
		.driver_entry = hardware->entry,
		.device_model = hardware->model,
		.bar_sizes = options->bars,
		.bar_count = options->bar_count,
		.registry = options->settings,
		.registry_count = options->setting_count,
		.features = VIDMM_FEATURE_HWSCH,
		.report = &result->report,
	};
	struct vidmm_adapter *adapter = NULL;

	result->report.struct_size = sizeof(result->report);
	result->status = vidmm_adapter_start(host, &adapter_options, &adapter);
	if (result->status >= 0)
		vidmm_adapter_stop(adapter);
}

static enum replay_status run(const struct caps_options *options,
			      const struct caps_hardware *hardware, struct caps_result *result)
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
		/* The subscription ends with the host, which reports what the driver has left. */
		start_and_stop(host, options, hardware, result);
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

/* A start on a separate thread, whose time is limited. */
struct start {
	const struct caps_options *options;
	struct caps_hardware hardware;
	struct caps_result *result;
	enum replay_status status;
};

static void run_start(void *context)
{
	struct start *start = context;

	start->status = run(start->options, &start->hardware, start->result);
}

/*
 * Returns the exit code. The driver may hang: then its thread still uses the result, and the
 * program ends at once after what it has reported until then.
 */
static enum replay_status run_and_show(struct start *start)
{
	struct caps_result *result = start->result;
	char text[sizeof(result->complaints[0].text)];
	bool ended;

	crash_watch(STDERR_FILENO, start->hardware.entry);
	ended = caps_run_limited(start->options->limit_s, run_start, start, start->hardware.entry,
				 text, sizeof(text));
	if (!ended) {
		complain(result, VIDMM_EVENT_FINDING, 0, text);
		result->status = STATUS_UNSUCCESSFUL;
		result->hung = true;
		start->status = REPLAY_FINDINGS;
	}
	caps_name_callers(result);
	/* Without a host there is no report to show. */
	if (start->status != REPLAY_ENVIRONMENT)
		start->status = show(start->options, result, start->status);
	if (!ended) {
		(void)fflush(NULL);
		_exit((int)start->status);
	}
	return start->status;
}

int caps_main(int argc, const char **argv)
{
	struct caps_options options;
	struct start start = {.options = &options};
	enum replay_status status;
	int exit_code;

	if (!caps_options_parse(argc, argv, &options, &exit_code)) {
		caps_options_finish(&options);
		return exit_code;
	}
	start.result = calloc(1, sizeof(*start.result));
	status = start.result ? driver_load(options.driver, &start.hardware.entry)
			      : REPLAY_ENVIRONMENT;
	if (status == REPLAY_CLEAN)
		status = device_file_load(options.device, &start.hardware.model);
	if (status == REPLAY_CLEAN) {
		pthread_mutex_init(&start.result->lock, NULL);
		status = run_and_show(&start);
		pthread_mutex_destroy(&start.result->lock);
	}
	free(start.result);
	caps_options_finish(&options);
	return (int)status;
}
