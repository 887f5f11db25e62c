/* SPDX-License-Identifier: MIT */
/* Power states, removal and reset of a device. */
#include "hardware/hardware_private.h"

#include <string.h>

enum { D0 = 1 };

bool vmm_hardware_answers(const struct vmm_hardware *device)
{
	return atomic_load(&device->power) == D0 && !atomic_load(&device->removed);
}

bool vmm_hardware_is_on(struct vmm_hardware *device, const char *what, const char *effect)
{
	uint32_t power = atomic_load(&device->power);

	if (vmm_likely(vmm_hardware_answers(device)))
		return true;
	if (!atomic_load(&device->removed) && !atomic_exchange(&device->power_reported, true))
		vmm_finding(device->observe, "Q-427", 0, 0,
			    "device %s: %s while the device was in D%u: %s", device->name, what,
			    power - D0, effect);
	return false;
}

void vmm_hardware_set_power(struct vmm_hardware *device, uint32_t state)
{
	if (state != D0) {
		/* Nothing that the device does from now on counts. */
		atomic_store(&device->power, state);
		vmm_hardware_state_lock(device);
		vmm_hardware_lower_all_locked(device);
		vmm_hardware_state_unlock(device);
	}
	vmm_hardware_lock(device);
	atomic_store(&device->power, state);
	atomic_store(&device->power_reported, false);
	if (device->model.set_power && !atomic_load(&device->removed))
		device->model.set_power(device->instance, state);
	vmm_hardware_unlock(device);
}

void vmm_hardware_set_removed(struct vmm_hardware *device)
{
	atomic_store(&device->removed, true);
	vmm_hardware_state_lock(device);
	vmm_hardware_lower_all_locked(device);
	vmm_hardware_state_unlock(device);
}

bool vmm_hardware_removed(const struct vmm_hardware *device)
{
	return atomic_load(&device->removed);
}

void vmm_hardware_reset(struct vmm_hardware *device)
{
	vmm_hardware_lock(device);
	vmm_hardware_state_lock(device);
	vmm_hardware_lower_all_locked(device);
	vmm_hardware_cancel_all_locked(device);
	vmm_hardware_state_unlock(device);
	memcpy(device->config, device->image, sizeof(device->config));
	atomic_store(&device->power, D0);
	atomic_store(&device->power_reported, false);
	device->model.reset(device->instance);
	vmm_hardware_unlock(device);
}
