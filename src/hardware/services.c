/* SPDX-License-Identifier: MIT */
/* The services that a model gets (struct vidmm_device_services). */
#include "hardware/hardware_private.h"
#include <wddm_base.h>

static void raise_interrupt(void *handle, uint32_t message)
{
	vmm_hardware_raise(handle, message);
}

static void lower_interrupt(void *handle, uint32_t message)
{
	vmm_hardware_lower(handle, message);
}

static int32_t refuse_dma(struct vmm_hardware *device, const char *direction, uint64_t physical,
			  uint64_t length, uint64_t bad)
{
	return vmm_refuse_rule(
		device->observe, VMM_INVALID_PARAMETER, "Q-425", 0, 0,
		"device %s: DMA %s %llu bytes at 0x%llx: there is no memory at 0x%llx; nothing is "
		"transferred",
		device->name, direction, (unsigned long long)length, (unsigned long long)physical,
		(unsigned long long)bad);
}

static int32_t dma_read(void *handle, uint64_t physical, void *buffer, uint64_t length)
{
	struct vmm_hardware *device = handle;
	uint64_t bad;

	if (!length)
		return VMM_OK;
	if (!vmm_hardware_is_on(device, "the model read by DMA", "nothing is transferred"))
		return STATUS_INVALID_DEVICE_STATE;
	if (buffer && vmm_nt_phys_read(device->nt, physical, buffer, length, &bad))
		return VMM_OK;
	return refuse_dma(device, "reads", physical, length, buffer ? bad : physical);
}

static int32_t dma_write(void *handle, uint64_t physical, const void *buffer, uint64_t length)
{
	struct vmm_hardware *device = handle;
	uint64_t bad;

	if (!length)
		return VMM_OK;
	if (!vmm_hardware_is_on(device, "the model wrote by DMA", "nothing is transferred"))
		return STATUS_INVALID_DEVICE_STATE;
	if (buffer && vmm_nt_phys_write(device->nt, physical, buffer, length, &bad))
		return VMM_OK;
	return refuse_dma(device, "writes", physical, length, buffer ? bad : physical);
}

static void *bar_memory(void *handle, uint32_t bar)
{
	const struct vmm_hardware *device = handle;

	if (bar >= VIDMM_DEVICE_BARS || device->model.bar[bar].kind != VIDMM_BAR_MEMORY)
		return NULL;
	return device->bar[bar].memory.base;
}

static uint64_t now_ns(void *handle)
{
	const struct vmm_hardware *device = handle;

	return vmm_os_now_ns(device->os);
}

static void schedule(void *handle, uint32_t timer, uint64_t when_ns)
{
	vmm_hardware_schedule(handle, timer, when_ns);
}

static void report(void *handle, const char *text)
{
	struct vmm_hardware *device = handle;

	vmm_reason(device->observe, VMM_OK, 0, 0, "device %s: %.255s", device->name,
		   text ? text : "");
}

static void driver_error(void *handle, const char *text)
{
	struct vmm_hardware *device = handle;

	vmm_finding(device->observe, "Q-420", 0, 0, "device %s: %.255s", device->name,
		    text ? text : "");
}

void vmm_hardware_services_init(struct vmm_hardware *device)
{
	device->services = (struct vidmm_device_services){
		.struct_size = sizeof(device->services),
		.version = VIDMM_DEVICE_VERSION,
		.handle = device,
		.raise_interrupt = raise_interrupt,
		.lower_interrupt = lower_interrupt,
		.dma_read = dma_read,
		.dma_write = dma_write,
		.bar_memory = bar_memory,
		.now_ns = now_ns,
		.schedule = schedule,
		.log = report,
		.driver_error = driver_error,
	};
}
