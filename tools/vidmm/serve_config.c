/* SPDX-License-Identifier: MIT */
/*
 * The configuration of a server, as JSON (docs/serve.md). Unknown keys and values of a wrong type
 * are errors.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "policy.h"
#include "serve.h"
#include "units.h"

struct reading {
	const char *path;
	struct serve_options *options;
	struct serve_adapter *adapter; /* the adapter that is being read */
};

typedef bool read_fn(struct reading *r, const json_t *value);
struct key {
	const char *name;
	read_fn *read;
};

static bool config_error(const struct reading *r, const char *key, const char *why)
{
	fprintf(stderr, "vidmm: %s: \"%s\": %s\n", r->path, key, why);
	return false;
}

static bool read_object(struct reading *r, const json_t *object, const struct key *keys)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)object, name, value)
	{
		const struct key *key = keys;

		while (key->name && strcmp(key->name, name) != 0)
			key++;
		if (!key->name)
			return config_error(r, name, "unknown key");
		if (!key->read(r, value))
			return config_error(r, name,
					    "the value has a wrong type or is out of range");
	}
	return true;
}

/* Reads a number of bytes, or a size as text such as "256M". */
static bool read_size(const json_t *value, uint64_t *bytes)
{
	if (json_is_string(value))
		return units_parse_size(json_string_value(value), bytes);
	*bytes = (uint64_t)json_integer_value(value);
	return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool read_u32(const json_t *value, uint32_t *number)
{
	json_int_t given = json_integer_value(value);

	*number = (uint32_t)given;
	return json_is_integer(value) && given > 0 && given <= UINT32_MAX;
}

static bool read_text(const json_t *value, char **text)
{
	free(*text);
	*text = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
	return *text;
}

/* ---- an adapter ---- */

static bool driver(struct reading *r, const json_t *value)
{
	const char *text = json_string_value(value);

	free(r->adapter->driver);
	r->adapter->driver = NULL;
	return text && text[0] && driver_path(text, &r->adapter->driver);
}

static bool device(struct reading *r, const json_t *value)
{
	const char *text = json_string_value(value);

	free(r->adapter->device);
	r->adapter->device = NULL;
	return text && text[0] && driver_file_path(text, &r->adapter->device);
}

static bool bars(struct reading *r, const json_t *value)
{
	struct serve_adapter *a = r->adapter;
	size_t count = json_array_size(value);

	if (!json_is_array(value) || !count || count > SERVE_BARS_MAX)
		return false;
	for (a->bar_count = 0; a->bar_count < count; a->bar_count++)
		if (!read_size(json_array_get(value, a->bar_count), &a->bars[a->bar_count]) ||
		    !a->bars[a->bar_count] || a->bars[a->bar_count] % 4096)
			return false;
	return true;
}

static bool settings(struct reading *r, const json_t *value)
{
	struct serve_adapter *a = r->adapter;
	const char *name;
	json_t *number;

	if (!json_is_object(value) || json_object_size(value) > SERVE_SETTINGS_MAX)
		return false;
	json_object_foreach((json_t *)(uintptr_t)value, name, number)
	{
		struct vidmm_registry_value *setting = &a->settings[a->setting_count];
		bool good = json_is_string(number) ? driver_setting(name, json_string_value(number),
								    &setting->value)
						   : read_size(number, &setting->value);

		if (!good) {
			fprintf(stderr, "vidmm: %s: \"%s\": expected %s\n", r->path, name,
				driver_setting_expected(name));
			return false;
		}
		setting->name = strdup(name);
		if (!setting->name)
			return false;
		a->setting_count++;
	}
	return true;
}

/* A file: a name is the setting VidmmEvictionPolicy. */
static bool policy(struct reading *r, const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strchr(text, '/') && policy_file(text, &r->adapter->policy) == REPLAY_CLEAN;
}

static bool description(struct reading *r, const json_t *value)
{
	return read_text(value, &r->adapter->description);
}

static bool driver_store(struct reading *r, const json_t *value)
{
	return read_text(value, &r->adapter->driver_store);
}

static bool system_memory(struct reading *r, const json_t *value)
{
	return read_size(value, &r->adapter->system_memory_bytes);
}

static bool physical_adapters(struct reading *r, const json_t *value)
{
	return read_u32(value, &r->adapter->physical_adapters);
}

/* After all keys of the adapter, because "driver" may come after "settings". */
static bool check_settings(const struct reading *r)
{
	const struct serve_adapter *a = r->adapter;

	for (unsigned i = 0; i < a->setting_count; i++) {
		const char *name = a->settings[i].name;

		if (driver_has_setting(a->driver, name))
			continue;
		fprintf(stderr,
			"vidmm: %s: softgpu has no registry value \"%s\"; see vidmm/softgpu.h\n",
			r->path, name);
		return false;
	}
	return true;
}

static bool adapters(struct reading *r, const json_t *value)
{
	static const struct key keys[] = {{"driver", driver},
					  {"device", device},
					  {"bars", bars},
					  {"settings", settings},
					  {"policy", policy},
					  {"description", description},
					  {"driver_store", driver_store},
					  {"system_memory", system_memory},
					  {"physical_adapters", physical_adapters},
					  {NULL, NULL}};
	struct serve_options *o = r->options;

	if (!json_is_array(value) || json_array_size(value) + o->adapter_count > SERVE_ADAPTERS_MAX)
		return false;
	for (size_t i = 0; i < json_array_size(value); i++) {
		const json_t *one = json_array_get(value, i);

		r->adapter = &o->adapters[o->adapter_count++];
		if (!json_is_object(one) || !read_object(r, one, keys) || !check_settings(r))
			return false;
	}
	return true;
}

/* ---- limits and other settings ---- */

static bool channels(struct reading *r, const json_t *value)
{
	return read_u32(value, &r->options->limits.channels);
}

static bool handles(struct reading *r, const json_t *value)
{
	return read_u32(value, &r->options->limits.handles);
}

static bool memory(struct reading *r, const json_t *value)
{
	return read_size(value, &r->options->limits.memory_bytes);
}

static bool unread(struct reading *r, const json_t *value)
{
	return read_size(value, &r->options->limits.unread_bytes);
}

static bool descriptors(struct reading *r, const json_t *value)
{
	return read_u32(value, &r->options->limits.descriptors);
}

static bool limits(struct reading *r, const json_t *value)
{
	static const struct key keys[] = {{"channels", channels}, {"descriptors", descriptors},
					  {"handles", handles},   {"memory", memory},
					  {"unread", unread},     {NULL, NULL}};

	return json_is_object(value) && read_object(r, value, keys);
}

static bool clients(struct reading *r, const json_t *value)
{
	return read_u32(value, &r->options->clients_max);
}

static bool other_users(struct reading *r, const json_t *value)
{
	r->options->other_users = json_is_true(value);
	return json_is_boolean(value);
}

static bool socket_path(struct reading *r, const json_t *value)
{
	return read_text(value, &r->options->socket);
}

static bool log_path(struct reading *r, const json_t *value)
{
	return read_text(value, &r->options->log);
}

bool serve_config_read(const char *path, struct serve_options *options)
{
	static const struct key keys[] = {{"adapters", adapters},
					  {"limits", limits},
					  {"clients", clients},
					  {"other_users", other_users},
					  {"socket", socket_path},
					  {"log", log_path},
					  {NULL, NULL}};
	struct reading reading = {.path = path, .options = options};
	json_error_t error;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

	if (!root) {
		if (error.line < 0) /* it could not be read */
			fprintf(stderr, "vidmm: %s\n", error.text);
		else
			fprintf(stderr, "vidmm: %s:%d: %s\n", path, error.line, error.text);
		return false;
	}
	bool good = json_is_object(root)
			    ? read_object(&reading, root, keys)
			    : config_error(&reading, "", "the configuration must be a JSON object");
	json_decref(root);
	return good;
}
