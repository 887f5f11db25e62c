/* SPDX-License-Identifier: MIT */
/* Checks of a device model's description. */
#include "hardware/hardware_private.h"

#include <stdio.h>
#include <string.h>

#define LARGE ((uint64_t)1 << 40)
#define SMALL ((uint64_t)256 << 20) /* the largest BAR with a register of 32 bits */

#define CONFIG_CAPABILITIES 0x34u
#define CAPABILITIES_MAX    48u /* as many as fit between 0x40 and 0x100 */

static bool is_name(const char *name)
{
	size_t length = name ? strlen(name) : 0;

	return length && length <= VIDMM_DEVICE_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

static bool is_bar(const struct vidmm_device_model *m, uint32_t i)
{
	const struct vidmm_device_bar *bar = &m->bar[i];
	bool wide = bar->flags & VIDMM_BAR_64BIT;

	if (bar->kind == VIDMM_BAR_NONE)
		return !bar->size_bytes && !bar->flags;
	if (bar->kind > VIDMM_BAR_PORTS || !vmm_is_pow2(bar->size_bytes))
		return false;
	if (bar->kind == VIDMM_BAR_PORTS)
		return bar->size_bytes >= 4 && bar->size_bytes <= 256 && !bar->flags;
	if (bar->flags & ~(VIDMM_BAR_64BIT | VIDMM_BAR_PREFETCHABLE))
		return false;
	if (wide && (i + 1 == VIDMM_DEVICE_BARS || m->bar[i + 1].kind != VIDMM_BAR_NONE))
		return false;
	return bar->size_bytes >= VMM_PAGE_SIZE && bar->size_bytes < LARGE &&
	       (wide || bar->size_bytes <= SMALL);
}

static bool has_registers(const struct vidmm_device_model *m)
{
	for (uint32_t i = 0; i < VIDMM_DEVICE_BARS; i++)
		if (m->bar[i].kind == VIDMM_BAR_REGISTERS || m->bar[i].kind == VIDMM_BAR_PORTS)
			return true;
	return false;
}

/* A list of capabilities begins at 0x34; each has an id and the offset of the next one. */
static bool capabilities_end(const uint8_t *image)
{
	uint32_t at = image ? image[CONFIG_CAPABILITIES] : 0;

	for (uint32_t i = 0; at && i < CAPABILITIES_MAX; i++) {
		if (at < VMM_HARDWARE_CONFIG_HEADER || at % 4)
			return false;
		at = image[at + 1];
	}
	return !at;
}

static const char *first_mistake(const struct vidmm_device_model *m)
{
	if (!is_name(m->name))
		return "name: expected 1 to 31 of a-z, 0-9, - and _, the first a letter";
	if (!m->vendor_id || m->vendor_id == 0xFFFF)
		return "vendor_id: must not be 0 or 0xFFFF";
	if (m->class_code > 0xFFFFFF || m->reserved)
		return "class_code has 24 bits, and reserved is 0";
	if (m->config_bytes != 256 && m->config_bytes != VMM_HARDWARE_CONFIG_MAX)
		return "config_bytes: expected 256 or 4096";
	if (!capabilities_end(m->config_image))
		return "config_image: its capability list does not end, or is not at multiples of "
		       "4 from 0x40 on";
	if (m->interrupt_messages > VIDMM_DEVICE_MESSAGES_MAX)
		return "interrupt_messages: at most 32";
	if (!m->create || !m->destroy || !m->reset)
		return "create, destroy and reset must not be NULL";
	if (!m->config_read != !m->config_write)
		return "config_read and config_write: expected both or none";
	if (has_registers(m) && (!m->bar_read || !m->bar_write))
		return "a BAR of registers or ports needs bar_read and bar_write";
	return NULL;
}

bool vmm_hardware_model_is_valid(const struct vidmm_device_model *m, char *why, size_t size)
{
	const char *mistake;

	if (m->struct_size != sizeof(*m) || m->version != VIDMM_DEVICE_VERSION) {
		snprintf(why, size,
			 "Q-420: the device model has version %u and %u bytes: expected version %u "
			 "with %zu bytes",
			 m->version, m->struct_size, VIDMM_DEVICE_VERSION, sizeof(*m));
		return false;
	}
	mistake = first_mistake(m);
	if (mistake) {
		snprintf(why, size, "Q-420: device model %s: %s",
			 is_name(m->name) ? m->name : "without a name", mistake);
		return false;
	}
	for (uint32_t i = 0; i < VIDMM_DEVICE_BARS; i++) {
		if (is_bar(m, i))
			continue;
		snprintf(why, size,
			 "Q-420: device model %s: BAR %u of kind %u, flags 0x%x and %llu bytes is "
			 "not possible (vidmm/device.h)",
			 m->name, i, m->bar[i].kind, m->bar[i].flags,
			 (unsigned long long)m->bar[i].size_bytes);
		return false;
	}
	return true;
}
