/* SPDX-License-Identifier: MIT */
/* The command line of `vidmm serve`. */
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "options.h"
#include "policy.h"
#include "serve.h"

/* Values of the options as popt stores them. NULL: the option was not given. */
struct raw {
	const char **drivers, **sets;
	char *config, *socket, *log, *record, *policy, *fault;
	int quiet;
};

static bool usage(const char *format, const char *value)
{
	fprintf(stderr, "vidmm serve: ");
	fprintf(stderr, format, value);
	fprintf(stderr, "\ntry: vidmm serve --help\n");
	return false;
}

static bool take_driver(const char *text, struct serve_options *options)
{
	if (!text[0])
		return usage("--driver has no value: expected softgpu or a driver file%s", "");
	if (options->adapter_count == SERVE_ADAPTERS_MAX)
		return usage("too many adapters: a server has at most 16%s", "");
	return driver_path(text, &options->adapters[options->adapter_count++].driver);
}

static bool take_setting(const char *text, struct serve_adapter *a)
{
	struct vidmm_registry_value *setting = &a->settings[a->setting_count];
	size_t length = strcspn(text, "=");
	char *name;

	if (a->setting_count == SERVE_SETTINGS_MAX)
		return usage("too many settings: an adapter has at most 64%s", "");
	name = strndup(text, length);
	if (!name)
		return false;
	setting->name = name; /* freed also if the value is refused */
	a->setting_count++;
	if (!length || !text[length])
		return usage("--set \"%s\" is not valid: expected NAME=NUMBER", text);
	if (!driver_setting(name, text + length + 1, &setting->value)) {
		fprintf(stderr, "vidmm: --set \"%s\": expected %s\n", text,
			driver_setting_expected(name));
		return false;
	}
	return driver_has_setting(a->driver, name) ||
	       usage("--set: softgpu has no registry value \"%s\"; see vidmm/softgpu.h", name);
}

/* --policy NAME is --set VidmmEvictionPolicy=NAME, and a file gives the functions. */
static bool take_policy(const char *text, struct serve_adapter *a, int *exit_code)
{
	char *setting = NULL;
	bool good = false;

	if (strchr(text, '/')) {
		enum replay_status status = policy_file(text, &a->policy);

		if (status != REPLAY_CLEAN)
			*exit_code = (int)status;
		return status == REPLAY_CLEAN;
	}
	if (asprintf(&setting, "VidmmEvictionPolicy=%s", text) > 0)
		good = take_setting(setting, a);
	free(setting);
	return good;
}

/* --set applies to the adapters of the command line, from FIRST on. */
static bool take_settings(const struct raw *raw, struct serve_options *options, unsigned first,
			  int *exit_code)
{
	for (unsigned a = first; a < options->adapter_count; a++)
		for (unsigned i = 0; raw->sets && raw->sets[i]; i++)
			if (!take_setting(raw->sets[i], &options->adapters[a]))
				return false;
	for (unsigned a = first; raw->policy && a < options->adapter_count; a++)
		if (!take_policy(raw->policy, &options->adapters[a], exit_code))
			return false;
	if ((raw->sets || raw->policy) && first == options->adapter_count)
		return usage("--set and --policy apply to adapters of --driver, and there is none: "
			     "write them into the configuration%s",
			     "");
	for (unsigned a = 0; a < options->adapter_count; a++)
		if (!driver_choose_model(options->adapters[a].driver, options->adapters[a].settings,
					 &options->adapters[a].setting_count))
			return false;
	return true;
}

static bool take_fault(const char *text, struct fault *fault)
{
	if (!fault_is_offered())
		return usage(
			"--fault: this is a release build, in which no call fails on purpose%s",
			"");
	return fault_parse(text, fault) ||
	       usage("--fault \"%s\" is not valid: expected memory:N, mapping:N, descriptor:N, "
		     "thread:N, socket:N or seed:N",
		     text);
}

static void replace(char **text, char **given)
{
	if (!*given)
		return;
	free(*text);
	*text = *given;
	*given = NULL;
}

/*
 * Command-line options take precedence over the configuration file. Adapters of both are started.
 */
static bool interpret(poptContext context, struct raw *raw, struct serve_options *options,
		      int *exit_code)
{
	const char *rest = poptPeekArg(context);

	if (rest)
		return usage("unexpected argument \"%s\"", rest);
	if (raw->config && !serve_config_read(raw->config, options)) {
		*exit_code = REPLAY_BAD_INPUT;
		return false;
	}
	unsigned configured = options->adapter_count;

	for (unsigned i = 0; raw->drivers && raw->drivers[i]; i++)
		if (!take_driver(raw->drivers[i], options))
			return false;
	if (raw->record && !raw->record[0])
		return usage("--record has no value: expected a file%s", "");
	if (raw->fault && !take_fault(raw->fault, &options->fault))
		return false;
	if (!options->adapter_count)
		options->adapter_count = 1;
	if (!take_settings(raw, options, configured, exit_code))
		return false;
	replace(&options->socket, &raw->socket);
	replace(&options->log, &raw->log);
	replace(&options->record, &raw->record);
	options->quiet = raw->quiet;
	return true;
}

static void free_list(const char **list)
{
	for (unsigned i = 0; list && list[i]; i++)
		free((void *)(uintptr_t)list[i]);
	free(list);
}

static void free_raw(struct raw *raw)
{
	free_list(raw->drivers);
	free_list(raw->sets);
	free(raw->config);
	free(raw->socket);
	free(raw->log);
	free(raw->record);
	free(raw->policy);
	free(raw->fault);
}

bool serve_options_parse(int argc, const char **argv, struct serve_options *options, int *exit_code)
{
	struct raw raw = {0};
	int help = 0;
	struct poptOption table[] = {
		{"driver", 0, POPT_ARG_ARGV, &raw.drivers, 0,
		 "miniport of an adapter: softgpu (default), or a shared object with a "
		 "DriverEntry; repeatable",
		 "DRIVER"},
		{"set", 0, POPT_ARG_ARGV, &raw.sets, 0,
		 "registry value of the adapters of --driver, or of the default one; repeatable",
		 "NAME=VALUE"},
		{"policy", 0, POPT_ARG_STRING, &raw.policy, 0,
		 "order of eviction of these adapters: " POLICY_SETTING_NAMES ", or ./FILE.so",
		 "NAME"},
		{"config", 0, POPT_ARG_STRING, &raw.config, 0,
		 "configuration: adapters, limits and other settings as JSON (docs/serve.md)",
		 "FILE"},
		{"socket", 0, POPT_ARG_STRING, &raw.socket, 0,
		 "path of the socket (default: $XDG_RUNTIME_DIR/vidmm/socket)", "PATH"},
		{"log", 0, POPT_ARG_STRING, &raw.log, 0,
		 "file for connections, disconnections and findings (default: standard error)",
		 "FILE"},
		{"record", 0, POPT_ARG_STRING, &raw.record, 0,
		 "file for a recording of all events, for `vidmm explain`", "FILE"},
		{"fault", 0, POPT_ARG_STRING, &raw.fault, 0,
		 "the N-th call for memory, mapping, descriptor, thread or socket that fails, or "
		 "seed:N (debug builds)",
		 "KIND:N"},
		{"quiet", 'q', POPT_ARG_NONE, &raw.quiet, 0,
		 "no lines for connections and disconnections", NULL},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	bool proceed;

	argv[0] = "vidmm serve"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	memset(options, 0, sizeof(*options));
	*exit_code = REPLAY_USAGE;
	proceed = options_read(context, "serve", &help, exit_code) &&
		  interpret(context, &raw, options, exit_code);
	free_raw(&raw);
	poptFreeContext(context);
	return proceed;
}

void serve_options_finish(struct serve_options *options)
{
	for (unsigned i = 0; i < options->adapter_count; i++) {
		struct serve_adapter *a = &options->adapters[i];

		for (unsigned k = 0; k < a->setting_count; k++)
			free((void *)(uintptr_t)a->settings[k].name);
		free(a->driver);
		free(a->device);
		free(a->description);
		free(a->driver_store);
	}
	free(options->socket);
	free(options->log);
	free(options->record);
}
