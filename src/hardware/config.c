/* SPDX-License-Identifier: MIT */
/*
 * Configuration space behind the header, which port writes. A removed device does not
 * answer; in D1 to D3 it does.
 */
#include "hardware/hardware_private.h"

#include <string.h>

/* Returns the widest naturally aligned access at `offset` of at most `length` bytes. */
static uint32_t width_at(uint32_t offset, uint32_t length)
{
	if (offset % 4 == 0 && length >= 4)
		return 4;
	return offset % 2 == 0 && length >= 2 ? 2 : 1;
}

void vmm_hardware_config_read(struct vmm_hardware *device, uint32_t offset, uint32_t length,
			      uint8_t *bytes)
{
	vmm_assert(offset >= VMM_HARDWARE_CONFIG_HEADER &&
		   offset + length <= device->model.config_bytes);
	if (atomic_load(&device->removed)) {
		memset(bytes, 0xFF, length);
		return;
	}
	vmm_hardware_lock(device);
	while (length) {
		uint32_t width = width_at(offset, length);
		uint32_t value = 0;

		if (device->model.config_read)
			value = device->model.config_read(device->instance, offset, width);
		for (uint32_t i = 0; i < width; i++)
			bytes[i] = device->model.config_read ? (uint8_t)(value >> (8 * i))
							     : device->config[offset + i];
		bytes += width;
		offset += width;
		length -= width;
	}
	vmm_hardware_unlock(device);
}

void vmm_hardware_config_write(struct vmm_hardware *device, uint32_t offset, uint32_t length,
			       const uint8_t *bytes)
{
	vmm_assert(offset >= VMM_HARDWARE_CONFIG_HEADER &&
		   offset + length <= device->model.config_bytes);
	if (atomic_load(&device->removed))
		return;
	vmm_hardware_lock(device);
	while (length) {
		uint32_t width = width_at(offset, length);
		uint32_t value = 0;

		for (uint32_t i = 0; i < width; i++)
			value |= (uint32_t)bytes[i] << (8 * i);
		if (device->model.config_write)
			device->model.config_write(device->instance, offset, width, value);
		else
			memcpy(device->config + offset, bytes, width);
		bytes += width;
		offset += width;
		length -= width;
	}
	vmm_hardware_unlock(device);
}
