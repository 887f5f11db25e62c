/* SPDX-License-Identifier: MIT */
/* Implements driver_options.h. */
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "command_file.h"
#include "device_file.h"
#include "driver.h"
#include "driver_options.h"

void driver_options_table(struct driver_raw *raw, struct poptOption table[DRIVER_OPTIONS])
{
	const struct poptOption rows[DRIVER_OPTIONS] = {
		{"driver", 0, POPT_ARG_STRING, &raw->adapter.driver, 0,
		 "miniport: softgpu (default), or a shared object with a DriverEntry", "DRIVER"},
		{"commands", 0, POPT_ARG_STRING, &raw->commands, 0,
		 "command adapter of the driver (vidmm/commands.h); without one the driver must "
		 "know the commands of softgpu",
		 "FILE"},
		{"set", 0, POPT_ARG_ARGV, &raw->adapter.sets, 0,
		 "registry value of the device and the driver; repeatable", "NAME=VALUE"},
		{"bar", 0, POPT_ARG_ARGV, &raw->adapter.bars, 0,
		 "memory BAR of the device; repeatable (default: one of 256M, or of the video "
		 "memory if that is more)",
		 "SIZE"},
		{"device", 0, POPT_ARG_STRING, &raw->adapter.device, 0,
		 "device model instead of memory BARs (docs/devices.md)", "FILE"},
		{"verify-driver", 0, POPT_ARG_NONE, &raw->adapter.verify_driver, 0,
		 "expensive checks of the driver (docs/caps.md)", NULL},
		POPT_TABLEEND};

	memcpy(table, rows, sizeof(rows));
}

/* A foreign driver has its own segments and its own time. */
static bool has_only_what_applies(const struct options *options)
{
	const struct replay_options *replay = &options->replay;

	if (replay->connect)
		return options_usage("with --connect the driver is the host's; --driver and "
				     "--commands are not allowed%s",
				     "");
	if (!replay->commands)
		return true;
	if (replay->wddm2 || replay->limit_ranges || replay->no_content ||
	    replay->aperture_bytes != REPLAY_APERTURE_BYTES)
		return options_usage("with --commands the driver decides its model, aperture and "
				     "ranges: --model, --aperture, --ranges and --content do not "
				     "apply%s",
				     "");
	return true;
}

static bool load(const struct driver_raw *raw, struct options *options, int *exit_code)
{
	struct replay_options *replay = &options->replay;
	struct caps_options *driver = options->driver;
	enum replay_status status = driver_load(driver->driver, &replay->driver_entry);

	if (status == REPLAY_CLEAN && raw->commands)
		status = command_file_load(raw->commands, &replay->commands);
	if (status == REPLAY_CLEAN)
		status = device_file_load(driver->device, &replay->device_model);
	replay->settings = driver->settings;
	replay->setting_count = driver->setting_count;
	replay->bars = raw->commands ? driver->bars : NULL;
	replay->bar_count = raw->adapter.bars ? driver->bar_count : 0;
	if (status != REPLAY_CLEAN)
		*exit_code = status;
	return status == REPLAY_CLEAN;
}

bool driver_options_apply(const struct driver_raw *raw, struct options *options, int *exit_code)
{
	const struct caps_adapter_words *adapter = &raw->adapter;

	if (!adapter->driver && !raw->commands && !adapter->sets && !adapter->bars &&
	    !adapter->device && !adapter->verify_driver)
		return true;
	if (!adapter->driver)
		return options_usage("--commands, --set, --bar, --device and --verify-driver need "
				     "--driver%s",
				     "");
	if (adapter->device && !raw->commands)
		return options_usage("--device needs --commands: a driver without them is softgpu, "
				     "which has no registers%s",
				     "");
	if (adapter->bars && !raw->commands)
		return options_usage("--bar needs --commands: without it the BAR has the size of "
				     "the video memory%s",
				     "");
	options->driver = calloc(1, sizeof(*options->driver));
	if (!options->driver || !caps_take_adapter("replay", adapter, options->driver) ||
	    !load(raw, options, exit_code) || !has_only_what_applies(options))
		return false;
	return true;
}

void driver_options_free(struct driver_raw *raw)
{
	caps_free_adapter(&raw->adapter);
	free(raw->commands);
}
