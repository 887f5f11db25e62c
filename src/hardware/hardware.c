/* SPDX-License-Identifier: MIT */
/* Creation and end of a device. */
#include "hardware/hardware_private.h"

#include <string.h>

struct vmm_lock_class vmm_hardware_class, vmm_hardware_state_class;

static void copy_model(struct vmm_hardware *device, const struct vidmm_device_model *model)
{
	device->model = *model;
	strcpy(device->name, model->name);
	device->model.name = device->name;
	if (model->config_image)
		memcpy(device->image, model->config_image, model->config_bytes);
	device->model.config_image = device->image;
	memcpy(device->config, device->image, sizeof(device->config));
}

static struct vmm_hardware *allocate(const struct vmm_hardware_options *options)
{
	struct vmm_hardware *device = vmm_calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	device->os = options->os;
	device->nt = options->nt;
	device->observe = options->observe;
	device->interrupt = options->interrupt;
	device->context = options->context;
	vmm_os_mutex_init(&device->lock, device->os, VMM_HARDWARE_RANK, "device model");
	vmm_os_mutex_init(&device->state, device->os, VMM_HARDWARE_STATE_RANK, "device state");
	vmm_hardware_lock(device);
	copy_model(device, options->model);
	vmm_hardware_state_lock(device);
	vmm_hardware_cancel_all_locked(device);
	vmm_hardware_state_unlock(device);
	vmm_hardware_unlock(device);
	atomic_store(&device->power, 1);
	vmm_hardware_services_init(device);
	return device;
}

static void release(struct vmm_hardware *device)
{
	vmm_os_mutex_finish(&device->state);
	vmm_os_mutex_finish(&device->lock);
	vmm_free(device);
}

static vmm_status create_instance(struct vmm_hardware *device)
{
	vmm_status status =
		device->model.create(device->model.context, &device->services, &device->instance);

	if (status == VMM_OK)
		return status;
	return vmm_refuse_reason(device->observe, status < 0 ? status : VMM_UNSUCCESSFUL, 0, 0,
				 "Q-420: create of device model %s failed with 0x%08x",
				 device->name, (unsigned)status);
}

static void stop_threads(struct vmm_hardware *device)
{
	atomic_store(&device->stop, true);
	vmm_hardware_wake(device, &device->interrupt_word);
	vmm_hardware_wake(device, &device->timer_word);
	if (device->timer_thread)
		vmm_os_thread_join(device->timer_thread);
	if (device->interrupt_thread)
		vmm_os_thread_join(device->interrupt_thread);
}

static vmm_status start_threads(struct vmm_hardware *device)
{
	vmm_status status =
		vmm_os_thread_create(device->os, "device interrupt", vmm_hardware_interrupt_thread,
				     device, &device->interrupt_thread);

	if (vmm_ok(status) && device->model.timer)
		status = vmm_os_thread_create(device->os, "device timer", vmm_hardware_timer_thread,
					      device, &device->timer_thread);
	if (!vmm_ok(status))
		stop_threads(device);
	return status;
}

vmm_status vmm_hardware_create(const struct vmm_hardware_options *options,
			       struct vmm_hardware **result)
{
	struct vmm_hardware *device;
	vmm_status status;
	char why[256];

	if (!vmm_hardware_model_is_valid(options->model, why, sizeof(why)))
		return vmm_refuse_reason(options->observe, VMM_INVALID_PARAMETER, 0, 0, "%s", why);
	device = allocate(options);
	if (!device)
		return VMM_NO_MEMORY;
	status = vmm_hardware_bars_init(device);
	if (vmm_ok(status))
		status = create_instance(device);
	if (!vmm_ok(status))
		goto out_bars;
	status = start_threads(device);
	if (!vmm_ok(status))
		goto out_instance;
	*result = device;
	return VMM_OK;
out_instance:
	device->model.destroy(device->instance);
out_bars:
	vmm_hardware_bars_finish(device);
	release(device);
	return status;
}

void vmm_hardware_destroy(struct vmm_hardware *device)
{
	if (!device)
		return;
	vmm_hardware_disconnect(device);
	stop_threads(device);
	device->model.destroy(device->instance);
	vmm_hardware_bars_finish(device);
	release(device);
}

const struct vidmm_device_model *vmm_hardware_model(const struct vmm_hardware *device)
{
	return &device->model;
}
