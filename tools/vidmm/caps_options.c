/* SPDX-License-Identifier: MIT */
/* The command line of `vidmm caps`. */
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "caps_names.h"
#include "driver.h"
#include "options.h"
#include "units.h"

#define BAR_BYTES_DEFAULT ((uint64_t)256 << 20)
#define LIMIT_S_DEFAULT   60

/* Values of the options as popt stores them. NULL: the option was not given. */
struct raw {
	struct caps_adapter_words adapter;
	char *backend, *color;
	int json, quiet, limit;
};

static const char *verb = "caps"; /* in messages */

static bool usage(const char *format, const char *value)
{
	fprintf(stderr, "vidmm %s: ", verb);
	fprintf(stderr, format, value);
	fprintf(stderr, "\ntry: vidmm %s --help\n", verb);
	return false;
}

static unsigned count_of(const char *const *list)
{
	unsigned count = 0;

	while (list && list[count])
		count++;
	return count;
}

static bool take_driver(const char *text, struct caps_options *options)
{
	if (!text)
		return true;
	if (text[0] == '\0')
		return usage("--driver has no value: expected softgpu or a driver file%s", "");
	return driver_path(text, &options->driver);
}

static bool take_setting(const char *text, struct caps_options *options)
{
	struct vidmm_registry_value *setting = &options->settings[options->setting_count];
	size_t length = strcspn(text, "=");
	char *name = strdup(text);

	if (!name)
		return false;
	name[length] = '\0';
	setting->name = name; /* freed also if the value is refused */
	options->setting_count++;
	if (length == 0 || text[length] != '=')
		return usage("--set \"%s\" is not valid: expected NAME=NUMBER", text);
	if (!driver_setting(name, text + length + 1, &setting->value)) {
		fprintf(stderr, "vidmm %s: --set \"%s\": expected %s\n", verb, text,
			driver_setting_expected(name));
		return false;
	}
	return driver_has_setting(options->driver, name) ||
	       usage("--set: softgpu has no registry value \"%s\"; see vidmm/softgpu.h", name);
}

static bool take_settings(const struct caps_adapter_words *raw, struct caps_options *options)
{
	unsigned count = count_of(raw->sets), i;
	uint64_t version;
	bool good = true;

	/* Three more: --interface, --verify-driver, the model that driver_choose_model adds. */
	options->settings = calloc(count + 3, sizeof(*options->settings));
	if (!options->settings)
		return false;
	for (i = 0; i < count && good; i++)
		good = take_setting(raw->sets[i], options);
	if (good && raw->verify_driver)
		good = take_setting("VidmmVerifyDriver=1", options);
	if (!good || !raw->interface)
		return good;
	if (options->driver)
		return usage("--interface applies to softgpu: a driver file has its own version%s",
			     "");
	if (!interface_parse(raw->interface, &version))
		return usage("--interface \"%s\" is not valid: expected 1.0 to 3.2, or 0x...",
			     raw->interface);
	options->settings[options->setting_count].name = strdup("InterfaceVersion");
	options->settings[options->setting_count].value = version;
	return options->settings[options->setting_count++].name != NULL;
}

static bool take_bars(const struct caps_adapter_words *raw, struct caps_options *options)
{
	unsigned count = count_of(raw->bars), i;

	options->bars[0] = BAR_BYTES_DEFAULT;
	options->bar_count = count ? count : 1;
	if (count > VIDMM_REPORT_BARS_MAX)
		return usage("--bar is given too often: a device has at most 6 BARs%s", "");
	for (i = 0; i < count; i++) {
		if (!units_parse_size(raw->bars[i], &options->bars[i]) || options->bars[i] % 4096)
			return usage("--bar \"%s\" is not valid: expected a multiple of 4096 bytes",
				     raw->bars[i]);
	}
	return true;
}

/* A name without a slash is a file in the current directory, as with --driver. */
static bool take_device(const struct caps_adapter_words *raw, struct caps_options *options)
{
	if (!raw->device)
		return true;
	if (raw->device[0] == '\0')
		return usage("--device has no value: expected the file of a device model%s", "");
	if (raw->bars)
		return usage("--bar and --device are given: the device model describes the BARs%s",
			     "");
	options->bar_count = 0;
	return driver_file_path(raw->device, &options->device);
}

bool caps_take_adapter(const char *of_verb, const struct caps_adapter_words *words,
		       struct caps_options *options)
{
	verb = of_verb;
	return take_driver(words->driver, options) && take_settings(words, options) &&
	       driver_choose_model(options->driver, options->settings, &options->setting_count) &&
	       take_bars(words, options) && take_device(words, options);
}

static bool take_words(const struct raw *raw, struct caps_options *options)
{
	options->host_kind = VIDMM_HOST_SIM;
	if (raw->backend && strcmp(raw->backend, "linux") == 0)
		options->host_kind = VIDMM_HOST_LINUX;
	else if (raw->backend && strcmp(raw->backend, "sim") != 0)
		return usage("--backend \"%s\" is not valid: expected sim or linux", raw->backend);
	options->limit_s = (unsigned)raw->limit;
	if (raw->limit < 0)
		return usage("--limit is negative: expected seconds, or 0 for no limit%s", "");
	return color_parse(raw->color, &options->color) ||
	       usage("--color \"%s\" is not valid: expected auto, always or never", raw->color);
}

static bool interpret(poptContext context, const struct raw *raw, struct caps_options *options)
{
	const char *rest = poptPeekArg(context);

	options->json = raw->json;
	options->quiet = raw->quiet;
	if (rest)
		return usage("unexpected argument \"%s\"; a driver file is the value of --driver",
			     rest);
	return caps_take_adapter("caps", &raw->adapter, options) && take_words(raw, options);
}

static void free_list(const char **list)
{
	unsigned i;

	for (i = 0; list && list[i]; i++)
		free((void *)(uintptr_t)list[i]);
	free(list);
}

void caps_free_adapter(struct caps_adapter_words *words)
{
	free(words->driver);
	free(words->interface);
	free(words->device);
	free_list(words->sets);
	free_list(words->bars);
}

static void free_raw(struct raw *raw)
{
	caps_free_adapter(&raw->adapter);
	free(raw->backend);
	free(raw->color);
}

bool caps_options_parse(int argc, const char **argv, struct caps_options *options, int *exit_code)
{
	struct raw raw = {.limit = LIMIT_S_DEFAULT};
	int help = 0;
	struct poptOption table[] = {
		{"driver", 0, POPT_ARG_STRING, &raw.adapter.driver, 0,
		 "miniport: softgpu (default), or a shared object with a DriverEntry", "DRIVER"},
		{"set", 0, POPT_ARG_ARGV, &raw.adapter.sets, 0,
		 "registry value of the device and the driver; repeatable", "NAME=VALUE"},
		{"interface", 0, POPT_ARG_STRING, &raw.adapter.interface, 0,
		 "interface version of softgpu: 1.0 to 1.3, 2.0 to 2.7 (default 2.6, with "
		 "Model=wddm1 1.3), or a number",
		 "VERSION"},
		{"bar", 0, POPT_ARG_ARGV, &raw.adapter.bars, 0,
		 "memory BAR of the device; repeatable (default: one of 256M)", "SIZE"},
		{"verify-driver", 0, POPT_ARG_NONE, &raw.adapter.verify_driver, 0,
		 "expensive checks of the driver: pool, stack, locks, buffers (docs/caps.md)",
		 NULL},
		{"device", 0, POPT_ARG_STRING, &raw.adapter.device, 0,
		 "device model instead of memory BARs (docs/devices.md)", "FILE"},
		{"backend", 0, POPT_ARG_STRING, &raw.backend, 0,
		 "threads and time: sim (default, one thread, virtual time) or linux (real)",
		 "WHICH"},
		{"limit", 0, POPT_ARG_INT, &raw.limit, 0,
		 "seconds after which a driver that has not returned is reported (default 60; 0: "
		 "no limit)",
		 "SECONDS"},
		{"json", 0, POPT_ARG_NONE, &raw.json, 0, "JSON output (docs/caps.md)", NULL},
		{"quiet", 'q', POPT_ARG_NONE, &raw.quiet, 0,
		 "no output unless a rule is broken or the start is refused", NULL},
		{"color", 0, POPT_ARG_STRING, &raw.color, 0,
		 "colored output: auto (default), always, never", "WHEN"},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	bool proceed;

	argv[0] = "vidmm caps"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	memset(options, 0, sizeof(*options));
	*exit_code = REPLAY_USAGE;
	proceed = options_read(context, "caps", &help, exit_code) &&
		  interpret(context, &raw, options);
	free_raw(&raw);
	poptFreeContext(context);
	return proceed;
}

void caps_options_finish(struct caps_options *options)
{
	unsigned i;

	for (i = 0; i < options->setting_count; i++)
		free((void *)(uintptr_t)options->settings[i].name);
	free(options->settings);
	free(options->driver);
	free(options->device);
}
