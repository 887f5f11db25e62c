/* SPDX-License-Identifier: MIT */
/* The verb: options, and a process for each situation. */
#include <errno.h>
#include <limits.h>
#include <popt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caps_limit.h"
#include "command_file.h"
#include "conform.h"
#include "device_file.h"
#include "driver.h"
#include "output.h"

#define LIMIT_S_DEFAULT    300
/* of the text about a driver that hangs: that about its last call follows */
#define CONFORM_HANG_BYTES 220u

const char *const conform_states[] = {"ok", "broke", "not exercised"};

/* ---- a process for each situation ---- */

static bool read_outcome(int fd, struct conform_outcome *outcome)
{
	char *bytes = (char *)outcome;
	size_t got = 0;

	while (got < sizeof(*outcome)) {
		ssize_t n = read(fd, bytes + got, sizeof(*outcome) - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static bool write_outcome(int fd, const struct conform_outcome *outcome)
{
	ssize_t n;

	/* At most PIPE_BUF bytes: they are written together. */
	do {
		n = write(fd, outcome, sizeof(*outcome));
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*outcome);
}
_Static_assert(sizeof(struct conform_outcome) <= PIPE_BUF, "an outcome is written at once");

struct run {
	const struct conform_options *options;
	const struct conform_situation *situation;
	struct conform_outcome outcome;
};

static void run_situation(void *context)
{
	struct run *run = context;

	conform_run(run->options, run->situation, &run->outcome);
}

static void add_last_call(const struct conform_options *options, struct conform_outcome *outcome)
{
	size_t length = strlen(outcome->detail);

	if (options->shared->bug_check[0])
		snprintf(outcome->detail + length, sizeof(outcome->detail) - length, "; %.120s",
			 options->shared->bug_check);
	length = strlen(outcome->detail);
	if (options->shared->last_call[0])
		snprintf(outcome->detail + length, sizeof(outcome->detail) - length,
			 "; the last call that returned: %.150s", options->shared->last_call);
}

/* A driver that hangs still uses `run`: its process ends with another outcome. */
static void run_child(const struct conform_options *options,
		      const struct conform_situation *situation, int fd)
{
	static struct run run;
	static struct conform_outcome hung;
	const struct conform_outcome *outcome = &run.outcome;

	run.options = options;
	run.situation = situation;
	if (!caps_run_limited(options->adapter.limit_s, run_situation, &run, options->entry,
			      hung.detail, CONFORM_HANG_BYTES)) {
		hung.state = CONFORM_BROKE;
		add_last_call(options, &hung);
		outcome = &hung;
	}
	if (!write_outcome(fd, outcome))
		options->shared->write_error = errno;
	_exit(REPLAY_CLEAN);
}

/* the process has ended without an outcome. */
static void died(const struct conform_options *options, struct conform_outcome *outcome, int status)
{
	memset(outcome, 0, sizeof(*outcome));
	outcome->state = CONFORM_BROKE;
	if (WIFSIGNALED(status))
		snprintf(outcome->detail, sizeof(outcome->detail),
			 "Q-407: the process of the driver was ended by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(outcome->detail, sizeof(outcome->detail),
			 "Q-407: the driver ended its process with exit code %d",
			 WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	add_last_call(options, outcome);
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* A driver may have overwritten what its process reports. */
static bool is_valid(const struct conform_options *options, const struct conform_outcome *outcome)
{
	const uint32_t last = options->describe ? CONFORM_BAD_ADAPTER : CONFORM_NOT_EXERCISED;

	if (outcome->state > last || outcome->finding_count > CONFORM_FINDINGS_MAX ||
	    !ends(outcome->detail, sizeof(outcome->detail)))
		return false;
	for (uint32_t i = 0; i < outcome->finding_count; i++)
		if (!ends(outcome->findings[i].rule, sizeof(outcome->findings[i].rule)) ||
		    !ends(outcome->findings[i].text, sizeof(outcome->findings[i].text)))
			return false;
	return true;
}

/* Takes what the process that has ended wrote. Returns false if it could not write. */
static bool take_outcome(const struct conform_options *options, struct conform_outcome *outcome,
			 bool complete, int status)
{
	if (!complete && options->shared->write_error) {
		errno = options->shared->write_error;
		return false;
	}
	if (!complete) {
		died(options, outcome, status);
	} else if (!is_valid(options, outcome)) {
		memset(outcome, 0, sizeof(*outcome));
		outcome->state = CONFORM_BROKE;
		snprintf(outcome->detail, sizeof(outcome->detail),
			 "Q-407: the driver overwrote memory of the program: the outcome is lost");
		add_last_call(options, outcome);
	}
	return true;
}

/* Returns false if no process or pipe can be made. */
static bool run_process(const struct conform_options *options,
			const struct conform_situation *situation, struct conform_outcome *outcome)
{
	int fds[2], status = 0;
	pid_t child;

	if (pipe(fds) != 0)
		return false;
	memset(options->shared, 0, sizeof(*options->shared));
	fflush(NULL);
	child = fork();
	if (child == 0) {
		close(fds[0]);
		run_child(options, situation, fds[1]);
	}
	close(fds[1]);
	if (child < 0) {
		close(fds[0]);
		return false;
	}
	bool complete = read_outcome(fds[0], outcome);
	close(fds[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return take_outcome(options, outcome, complete, status);
}

static bool lacks_commands(const struct conform_options *options,
			   const struct conform_situation *situation,
			   struct conform_outcome *outcome)
{
	if (!situation->needs_commands || options->describe)
		return false;
	outcome->state = CONFORM_NOT_EXERCISED;
	snprintf(outcome->detail, sizeof(outcome->detail),
		 "it needs a command adapter (--commands)");
	return true;
}

/* The copy is out of the reach of the driver. */
static void take_known(const struct conform_options *options, struct conform_known *known)
{
	if (conform_known_is_valid(&options->shared->known))
		*known = options->shared->known;
}

static enum replay_status run_all(struct conform_options *options, struct conform_outcome *outcomes)
{
	static struct conform_known known;
	enum replay_status status = REPLAY_CLEAN;

	if (!options->shared)
		return REPLAY_ENVIRONMENT;
	options->known = &known;
	for (unsigned i = 0; i < conform_situation_count; i++) {
		const struct conform_situation *situation = &conform_situations[i];

		if (lacks_commands(options, situation, &outcomes[i]))
			continue;
		if (!run_process(options, situation, &outcomes[i])) {
			fprintf(stderr, "vidmm: a process: %s\n", strerror(errno));
			return REPLAY_ENVIRONMENT;
		}
		if (i == 0)
			take_known(options, &known);
		if (outcomes[i].state == CONFORM_BAD_ADAPTER) {
			fprintf(stderr, "vidmm: %s: %s\n", options->commands, outcomes[i].detail);
			return REPLAY_BAD_INPUT;
		}
		if (outcomes[i].state == CONFORM_BROKE)
			status = REPLAY_FINDINGS;
	}
	return status;
}

/* ---- options ---- */

struct raw {
	struct caps_adapter_words adapter;
	char *commands, *backend, *color;
	int json, quiet, limit;
};

static bool usage(const char *format, const char *value)
{
	fprintf(stderr, "vidmm conform: ");
	fprintf(stderr, format, value);
	fprintf(stderr, "\ntry: vidmm conform --help\n");
	return false;
}

static bool interpret(poptContext context, const struct raw *raw, struct conform_options *options,
		      int *exit_code)
{
	static const char *const backends[] = {"sim", "linux", NULL};
	int backend = options_choose(raw->backend, backends);
	enum replay_status status;

	options->adapter.json = raw->json;
	options->adapter.quiet = raw->quiet;
	options->adapter.limit_s = (unsigned)raw->limit;
	if (poptPeekArg(context))
		return usage("unexpected argument \"%s\"", poptPeekArg(context));
	if (!raw->adapter.driver)
		return usage("--driver is missing: expected softgpu or a driver file%s", "");
	if (raw->limit < 0)
		return usage("--limit is negative: expected seconds, or 0 for no limit%s", "");
	if (backend < 0)
		return usage("--backend \"%s\" is not valid: expected sim or linux", raw->backend);
	options->adapter.host_kind = backend == 0 ? VIDMM_HOST_SIM : VIDMM_HOST_LINUX;
	if (!color_parse(raw->color, &options->adapter.color))
		return usage("--color \"%s\" is not valid: expected auto, always or never",
			     raw->color);
	if (!caps_take_adapter("conform", &raw->adapter, &options->adapter))
		return false;
	if (!raw->adapter.bars)
		options->adapter.bar_count = 0;
	status = driver_load(options->adapter.driver, &options->entry);
	if (status == REPLAY_CLEAN && raw->commands)
		status = command_file_load(raw->commands, &options->describe);
	if (status == REPLAY_CLEAN)
		status = device_file_load(options->adapter.device, &options->model);
	options->commands = raw->commands ? strdup(raw->commands) : NULL;
	if (status != REPLAY_CLEAN)
		*exit_code = status;
	return status == REPLAY_CLEAN && (!raw->commands || options->commands);
}

static bool parse(int argc, const char **argv, struct conform_options *options, int *exit_code)
{
	struct raw raw = {.limit = LIMIT_S_DEFAULT};
	int help = 0;
	struct poptOption table[] = {
		{"driver", 0, POPT_ARG_STRING, &raw.adapter.driver, 0,
		 "miniport: a shared object with a DriverEntry, or softgpu", "DRIVER"},
		{"commands", 0, POPT_ARG_STRING, &raw.commands, 0,
		 "command adapter of the driver (vidmm/commands.h); without one only what needs no "
		 "commands is exercised",
		 "FILE"},
		{"set", 0, POPT_ARG_ARGV, &raw.adapter.sets, 0,
		 "registry value of the device and the driver; repeatable", "NAME=VALUE"},
		{"bar", 0, POPT_ARG_ARGV, &raw.adapter.bars, 0,
		 "memory BAR of the device; repeatable (default: one of 256M)", "SIZE"},
		{"device", 0, POPT_ARG_STRING, &raw.adapter.device, 0,
		 "device model instead of memory BARs (docs/devices.md)", "FILE"},
		{"backend", 0, POPT_ARG_STRING, &raw.backend, 0,
		 "threads and time: sim (default, one thread, virtual time) or linux (real)",
		 "WHICH"},
		{"limit", 0, POPT_ARG_INT, &raw.limit, 0,
		 "seconds after which a situation whose driver has not returned is broken (default "
		 "300; 0: no limit)",
		 "SECONDS"},
		{"json", 0, POPT_ARG_NONE, &raw.json, 0, "JSON output (docs/conform.md)", NULL},
		{"quiet", 'q', POPT_ARG_NONE, &raw.quiet, 0, "no output unless a situation broke",
		 NULL},
		{"color", 0, POPT_ARG_STRING, &raw.color, 0,
		 "colored output: auto (default), always, never", "WHEN"},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};

	argv[0] = "vidmm conform"; /* the name that popt shows in its help */
	poptContext context = poptGetContext(NULL, argc, argv, table, 0);
	memset(options, 0, sizeof(*options));
	*exit_code = REPLAY_USAGE;
	bool proceed = options_read(context, "conform", &help, exit_code) &&
		       interpret(context, &raw, options, exit_code);
	caps_free_adapter(&raw.adapter);
	free(raw.commands);
	free(raw.backend);
	free(raw.color);
	poptFreeContext(context);
	return proceed;
}

static struct conform_shared *share(void)
{
	void *memory = mmap(NULL, sizeof(struct conform_shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	fprintf(stderr, "vidmm: shared memory: %s\n", strerror(errno));
	return NULL;
}

int conform_main(int argc, const char **argv)
{
	struct conform_options options;
	struct conform_outcome *outcomes = calloc(conform_situation_count, sizeof(*outcomes));
	enum replay_status status = REPLAY_ENVIRONMENT;
	int exit_code;
	bool good = true;

	if (!parse(argc, argv, &options, &exit_code)) {
		status = (enum replay_status)exit_code;
	} else if (outcomes) {
		options.shared = share();
		status = run_all(&options, outcomes);
		if (status == REPLAY_ENVIRONMENT || status == REPLAY_BAD_INPUT)
			good = true;
		else if (options.adapter.json)
			good = conform_json(stdout, &options, outcomes, (int)status);
		else if (!options.adapter.quiet || status != REPLAY_CLEAN)
			conform_print(stdout, &options, outcomes,
				      color_wanted(options.adapter.color, STDOUT_FILENO));
		status = output_status(good, status);
	}
	if (options.shared)
		munmap(options.shared, sizeof(*options.shared));
	free(outcomes);
	free(options.commands);
	caps_options_finish(&options.adapter);
	return (int)status;
}
