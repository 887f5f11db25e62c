/* SPDX-License-Identifier: MIT */
/* `vidmm serve`: starts a host and its adapters, listens, and stops on SIGTERM or SIGINT. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "crash.h"
#include "device_file.h"
#include "driver.h"
#include "record_write.h"
#include "serve.h"

#define BAR_BYTES_DEFAULT ((uint64_t)256 << 20)

#define HANDLES_DEFAULT 1000000u /* per client, as in include/vidmm/serve.h */

struct service {
	struct serve_options options;
	const struct serve_hooks *hooks; /* NULL: none */
	FILE *log;
	struct record_writer *record; /* NULL: none */
	struct vidmm_host *host;
	struct vidmm_adapter *adapters[SERVE_ADAPTERS_MAX];
	unsigned adapter_count; /* number of started adapters */
	struct vidmm_server *server;
	struct serve_socket socket;
};

static void on_line(void *context, const char *line)
{
	const struct service *s = context;
	uint32_t client = 0;

	(void)sscanf(line, "client %" SCNu32, &client);
	if (!s->options.quiet)
		serve_log_limited(s->log, client, line);
}

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	const struct service *s = context;
	char line[1024];

	vidmm_event_format(event, text, line, sizeof(line) - 1);
	if (event->type == VIDMM_EVENT_FATAL)
		serve_log_write(s->log, line);
	else
		serve_log_limited(s->log, event->process, line);
}

static enum replay_status start_adapter(struct service *s, const struct serve_adapter *a)
{
	static const uint64_t bar = BAR_BYTES_DEFAULT;
	struct vidmm_adapter_options options = {
		.struct_size = sizeof(options),
		.bar_sizes = a->bar_count ? a->bars : &bar,
		.bar_count = a->bar_count ? a->bar_count : 1,
		.registry = a->settings,
		.registry_count = a->setting_count,
		.system_memory_bytes = a->system_memory_bytes,
		.description = a->description,
		.driver_store = a->driver_store,
		.physical_adapters = a->physical_adapters,
		.features = VIDMM_FEATURE_HWSCH,
		.eviction_policy = a->policy,
	};
	enum replay_status status = driver_load(a->driver, &options.driver_entry);

	if (status == REPLAY_CLEAN)
		status = device_file_load(a->device, &options.device_model);
	if (status != REPLAY_CLEAN)
		return status;
	crash_watch(fileno(s->log), options.driver_entry);
	/* A model describes the BARs. Those of the file are refused beside it. */
	if (options.device_model && !a->bar_count)
		options.bar_count = 0;
	vidmm_status started =
		vidmm_adapter_start(s->host, &options, &s->adapters[s->adapter_count]);
	if (started < 0) {
		fprintf(stderr,
			"vidmm: the adapter on %s was refused: status 0x%08x (see `vidmm caps`)\n",
			a->driver ? a->driver : "softgpu", (unsigned)started);
		return REPLAY_FINDINGS;
	}
	s->adapter_count++;
	return REPLAY_CLEAN;
}

static bool open_record(struct service *s)
{
	json_t *about;

	if (!s->options.record)
		return true;
	about = json_pack("{s:s}", "command", "serve");
	s->record = record_create(s->options.record, about);
	json_decref(about);
	return s->record != NULL;
}

static bool subscribe(struct service *s)
{
	const uint64_t events = (uint64_t)1 << VIDMM_EVENT_FINDING |
				(uint64_t)1 << VIDMM_EVENT_REASON |
				(uint64_t)1 << VIDMM_EVENT_FATAL;
	const struct serve_hooks *hooks = s->hooks;

	return vidmm_subscribe(s->host, events, on_event, s) &&
	       (!hooks || vidmm_subscribe(s->host, hooks->events, hooks->event, hooks->context)) &&
	       (!s->record || vidmm_subscribe(s->host, UINT64_MAX, record_event, s->record));
}

static enum replay_status start_host(struct service *s)
{
	const struct vidmm_host_options options = {.struct_size = sizeof(options),
						   .kind = VIDMM_HOST_LINUX};
	enum replay_status status = REPLAY_CLEAN;

	if (vidmm_host_create(&options, &s->host) < 0 || !subscribe(s)) {
		fprintf(stderr, "vidmm: cannot create a host\n");
		return REPLAY_ENVIRONMENT;
	}
	for (unsigned i = 0; i < s->options.adapter_count && status == REPLAY_CLEAN; i++)
		status = start_adapter(s, &s->options.adapters[i]);
	return status;
}

static enum replay_status start_server(struct service *s)
{
	const struct vidmm_server_options options = {
		.struct_size = sizeof(options),
		.limits = s->options.limits,
		.clients_max = s->options.clients_max,
		.uid_only = !s->options.other_users,
		.log = on_line,
		.log_context = s,
	};

	if (vidmm_server_create(s->host, &options, &s->server) < 0 ||
	    vidmm_server_listen(s->server, s->socket.fd) < 0) {
		fprintf(stderr, "vidmm: cannot create the server\n");
		return REPLAY_ENVIRONMENT;
	}
	return REPLAY_CLEAN;
}

static void report_ready(struct service *s)
{
	char line[256];

	snprintf(line, sizeof(line), "serves %u adapter%s at %s", s->adapter_count,
		 s->adapter_count == 1 ? "" : "s",
		 s->socket.path ? s->socket.path : "systemd's socket");
	serve_log_write(s->log, line);
	(void)sd_notify(0, "READY=1");
	if (s->hooks)
		s->hooks->ready(s->hooks->context);
}

/* Says which calls could have failed, for the next N. */
static void report_fault(struct service *s)
{
	char line[256];
	int length;

	if (!s->options.fault.wanted)
		return;
	length = snprintf(line, sizeof(line), "faults: %u calls failed; calls for", fault_end());
	for (int i = 0; i < FAULT_KINDS; i++)
		length +=
			snprintf(line + length, sizeof(line) - (size_t)length, "%s %s %u",
				 i ? "," : "", fault_kind_name[i], fault_calls((enum fault_kind)i));
	serve_log_write(s->log, line);
}

static void stop(struct service *s)
{
	(void)sd_notify(0, "STOPPING=1");
	/* Close the socket first: no new client connects while the others are disconnected. */
	serve_socket_close(&s->socket);
	vidmm_server_destroy(s->server);
	if (s->hooks && s->adapter_count)
		s->hooks->stopping(s->hooks->context, s->adapters, s->adapter_count);
	while (s->adapter_count)
		vidmm_adapter_stop(s->adapters[--s->adapter_count]);
	vidmm_host_destroy(s->host);
}

/*
 * Raises the limit of open files to the hard limit. Each client costs descriptors: its sockets, and
 * one for each memory object that it may map. Unless the configuration limits handles, a client may
 * have at most a quarter as many handles as there are descriptors, so that one client cannot use up
 * all of them.
 */
static void raise_limits(struct serve_options *o)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && !o->limits.handles &&
	    files.rlim_cur / 4 < HANDLES_DEFAULT)
		o->limits.handles = (uint32_t)(files.rlim_cur / 4);
}

static enum replay_status serve(struct service *s)
{
	sigset_t ends;
	int number;

	/* Block the signals before any thread exists: threads inherit the mask. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	raise_limits(&s->options);
	enum replay_status status = serve_socket_open(s->options.socket, &s->socket);
	if (status == REPLAY_CLEAN && !open_record(s))
		status = REPLAY_ENVIRONMENT;
	if (status == REPLAY_CLEAN)
		status = start_host(s);
	if (status == REPLAY_CLEAN)
		status = start_server(s);
	if (status == REPLAY_CLEAN) {
		fault_begin(&s->options.fault);
		report_ready(s);
		while (sigwait(&ends, &number) != 0)
			;
		report_fault(s);
		serve_log_write(s->log, "stops on a signal");
	}
	stop(s);
	return record_finish(s->record) ? status : REPLAY_ENVIRONMENT;
}

enum replay_status serve_run(const struct serve_options *options, FILE *log,
			     const struct serve_hooks *hooks)
{
	struct service s = {
		.options = *options, .hooks = hooks, .log = log, .socket = {.fd = -1, .lock = -1}};

	return serve(&s);
}

int serve_main(int argc, const char **argv)
{
	struct service s = {.socket = {.fd = -1, .lock = -1}};
	enum replay_status status = REPLAY_ENVIRONMENT;
	int exit_code;

	if (!serve_options_parse(argc, argv, &s.options, &exit_code)) {
		serve_options_finish(&s.options);
		return exit_code;
	}
	s.log = s.options.log ? fopen(s.options.log, "ae") : stderr;
	if (s.log)
		status = serve(&s);
	else
		fprintf(stderr, "vidmm: %s: %s\n", s.options.log, strerror(errno));
	if (s.log && s.log != stderr)
		fclose(s.log);
	serve_options_finish(&s.options);
	return (int)status;
}
