/* SPDX-License-Identifier: MIT */
/* The host of `vidmm run --serve`: `vidmm serve` in a child process, which adds to the report. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "serve.h"

struct reporting {
	struct vmm_report_writer writer;
	int ready; /* the end of a pipe: one byte says that programs can connect */
};

static void report_ready(void *context)
{
	const struct reporting *r = context;

	if (write(r->ready, "", 1) != 1)
		raise(SIGTERM);
	close(r->ready);
}

static void report_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct reporting *r = context;

	vmm_report_event(&r->writer, event, text);
}

static void report_statistics(void *context, struct vidmm_adapter *const *adapters, unsigned count)
{
	const struct reporting *r = context;
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	for (unsigned i = 0; i < count; i++) {
		struct vmm_report_adapter *row = vmm_report_adapter(r->writer.report, 0);

		vidmm_adapter_statistics(adapters[i], &statistics);
		if (row)
			vmm_report_sample(row, &statistics);
	}
}

/* Describes the adapter as a configuration of `vidmm serve` would. Shares the texts. */
static bool describe(const struct run_options *run, const struct run_folder *folder,
		     struct serve_options *options)
{
	const struct caps_options *adapter = &run->adapter;
	struct serve_adapter *a = &options->adapters[0];

	*options = (struct serve_options){
		.adapter_count = 1, .socket = folder->socket, .record = run->record, .quiet = true};
	if (adapter->setting_count > SERVE_SETTINGS_MAX)
		return false;
	a->driver = adapter->driver;
	a->policy = run->policy;
	a->device = adapter->device;
	a->bar_count = adapter->bar_count;
	memcpy(a->bars, adapter->bars, sizeof(a->bars));
	a->setting_count = adapter->setting_count;
	for (unsigned i = 0; i < adapter->setting_count; i++)
		a->settings[i] = adapter->settings[i];
	return true;
}

/* Runs in the child. Signals of the terminal do not reach it: the program may use it until its end.
 */
static int serve_beside(const struct serve_options *options, struct vmm_report *report, int ready)
{
	struct reporting reporting = {.writer = {.report = report}, .ready = ready};
	const struct serve_hooks hooks = {
		.ready = report_ready,
		.events = VMM_REPORT_EVENTS,
		.event = report_event,
		.stopping = report_statistics,
		.context = &reporting,
	};
	FILE *log = fopen("/dev/null", "we");

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* What systemd passes is not for this host. */
	unsetenv("LISTEN_FDS");
	unsetenv("NOTIFY_SOCKET");
	unsetenv("VIDMM_DEBUG"); /* the program prints what concerns it, and the page has all */
	return log ? (int)serve_run(options, log, &hooks) : REPLAY_ENVIRONMENT;
}

enum replay_status run_host_start(const struct run_options *options,
				  const struct run_folder *folder, struct vmm_report *report,
				  int *process)
{
	struct serve_options *serve = calloc(1, sizeof(*serve));
	int ready[2], status = 0;
	ssize_t bytes = 0;
	char byte;

	*process = 0;
	if (!serve || !describe(options, folder, serve) || pipe2(ready, O_CLOEXEC)) {
		free(serve);
		fprintf(stderr, "vidmm run: the host cannot be started: %s\n", strerror(errno));
		return REPLAY_ENVIRONMENT;
	}
	fflush(NULL);
	*process = fork();
	if (*process == 0)
		exit(serve_beside(serve, report, ready[1]));
	free(serve);
	close(ready[1]);
	do
		bytes = read(ready[0], &byte, 1);
	while (bytes < 0 && errno == EINTR);
	close(ready[0]);
	if (bytes == 1)
		return REPLAY_CLEAN;
	if (*process > 0)
		waitpid(*process, &status, 0);
	*process = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) ? (enum replay_status)WEXITSTATUS(status)
							: REPLAY_ENVIRONMENT;
}

int run_host_stop(int process)
{
	int status = 0;

	if (process <= 0)
		return 0;
	kill(process, SIGTERM);
	while (waitpid(process, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
