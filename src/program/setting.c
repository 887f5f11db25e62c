/* SPDX-License-Identifier: MIT */
/* Parses VIDMM_ADAPTER. */
#include "program/setting.h"

#include <vidmm/softgpu.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAR_BYTES_DEFAULT ((uint64_t)256 << 20)
#define BAR_ALIGNMENT     4096u
#define FIRST_OF_WDDM2    0x5000u /* the first interface version of 2.0 */

static bool malformed(struct vmm_program_setting *setting, const char *format, ...)
	VMM_PRINTF(2, 3);
static bool malformed(struct vmm_program_setting *setting, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(setting->why, sizeof(setting->why), format, args);
	va_end(args);
	return false;
}

/* Returns the exponent of two of a suffix, -1 for none that is known. */
static int shift_of(const char *suffix)
{
	static const char letters[] = "KMGT";
	const char *letter = *suffix ? strchr(letters, *suffix) : NULL;

	if (!*suffix)
		return 0;
	return letter && !suffix[1] ? 10 * (int)(letter - letters + 1) : -1;
}

/* Parses "4096", "0x1000" or "64M" (powers of 1024). */
static bool number(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long digits = strtoull(text, &end, 0);
	int shift = shift_of(end);

	if (errno || shift < 0 || (shift && digits >> (64 - shift)))
		return false;
	*value = (uint64_t)digits << shift;
	return true;
}

static bool take_bar(struct vmm_program_setting *setting, const char *text, uint32_t *count)
{
	uint64_t bytes;

	if (*count == VIDMM_REPORT_BARS_MAX)
		return malformed(setting, "more than %u bars", VIDMM_REPORT_BARS_MAX);
	if (!number(text, &bytes) || !bytes || bytes % BAR_ALIGNMENT)
		return malformed(setting, "bar=%.64s: expected a multiple of %u bytes", text,
				 BAR_ALIGNMENT);
	setting->bars[(*count)++] = bytes;
	return true;
}

static bool take_setting(struct vmm_program_setting *setting, char *item, uint32_t *bars)
{
	char *value = strchr(item, '=');
	uint64_t parsed;

	if (!value || value == item)
		return malformed(setting, "\"%.64s\": expected NAME=NUMBER or bar=SIZE", item);
	*value++ = '\0';
	if (strcmp(item, "bar") == 0)
		return take_bar(setting, value, bars);
	if (setting->setting_count == VMM_PROGRAM_SETTINGS_MAX)
		return malformed(setting, "more than %u registry values", VMM_PROGRAM_SETTINGS_MAX);
	if (!number(value, &parsed))
		return malformed(setting, "%.64s=%.64s: expected a number such as 3, 0x10 or 64M",
				 item, value);
	setting->settings[setting->setting_count++] =
		(struct vidmm_registry_value){.name = item, .value = parsed};
	return true;
}

/* softgpu is of WDDM 2.x unless the value names a model or an interface version of 1.x. */
static void choose_model(struct vmm_program_setting *setting)
{
	for (uint32_t i = 0; i < setting->setting_count; i++) {
		const struct vidmm_registry_value *s = &setting->settings[i];

		if (strcmp(s->name, "Model") == 0 || (strcmp(s->name, "InterfaceVersion") == 0 &&
						      s->value && s->value < FIRST_OF_WDDM2))
			return;
	}
	setting->settings[setting->setting_count++] =
		(struct vidmm_registry_value){.name = "Model", .value = SOFTGPU_MODEL_WDDM2};
}

bool vmm_program_parse(const char *value, struct vmm_program_setting *setting)
{
	uint32_t bars = 0;
	char *rest = setting->text, *item;

	*setting = (struct vmm_program_setting){.bars = {BAR_BYTES_DEFAULT}, .bar_count = 1};
	if (strlen(value) >= sizeof(setting->text))
		return malformed(setting, "longer than %zu bytes", sizeof(setting->text) - 1);
	strcpy(setting->text, value);
	setting->driver = strsep(&rest, ",");
	if (!*setting->driver)
		return malformed(setting, "no driver: expected softgpu or the path of a driver");
	while ((item = strsep(&rest, ",")) != NULL)
		if (!take_setting(setting, item, &bars))
			return false;
	if (bars)
		setting->bar_count = bars;
	if (strcmp(setting->driver, "softgpu") == 0)
		choose_model(setting);
	return true;
}
