/* SPDX-License-Identifier: MIT */
/* The BARs of a device: their addresses, and accesses of registers and ports. */
#include "hardware/hardware_private.h"

#include <stdio.h>

static uint64_t ones(uint32_t width)
{
	return width == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * width)) - 1;
}

static uint64_t read_registers(void *context, uint64_t offset, uint32_t width)
{
	const struct vmm_hardware_bar *bar = context;
	struct vmm_hardware *device = bar->device;
	uint64_t value = ones(width);

	if (!vmm_hardware_is_on(device, "a register was read", "it reads as ones"))
		return value;
	vmm_hardware_lock(device);
	value &= device->model.bar_read(device->instance, bar->index, offset, width);
	vmm_hardware_unlock(device);
	return value;
}

static void write_registers(void *context, uint64_t offset, uint32_t width, uint64_t value)
{
	const struct vmm_hardware_bar *bar = context;
	struct vmm_hardware *device = bar->device;

	if (!vmm_hardware_is_on(device, "a register was written", "the write has no effect"))
		return;
	vmm_hardware_lock(device);
	device->model.bar_write(device->instance, bar->index, offset, width, value & ones(width));
	vmm_hardware_unlock(device);
}

/* ---- creation ---- */

static vmm_status memory_init(struct vmm_hardware_bar *bar, uint64_t size, bool low)
{
	struct vmm_hardware *device = bar->device;
	vmm_status status = vmm_os_memory_create(device->os, "BAR", size, &bar->memory);

	if (!vmm_ok(status))
		return status;
	status = vmm_nt_phys_place(device->nt, &bar->memory, low, &bar->address);
	if (!vmm_ok(status))
		vmm_os_memory_destroy(&bar->memory);
	return status;
}

static vmm_status registers_init(struct vmm_hardware_bar *bar, uint64_t size, bool low)
{
	struct vmm_hardware *device = bar->device;
	vmm_status status = vmm_os_view_reserve(device->os, size, &bar->window);

	if (!vmm_ok(status))
		return status;
	status = vmm_nt_registers_add(device->nt, &bar->registers, &bar->window, low);
	if (!vmm_ok(status)) {
		vmm_os_view_release(&bar->window);
		return status;
	}
	snprintf(bar->trap, sizeof(bar->trap),
		 "vidmm: Q-422: registers of BAR %u of device %s were accessed through the "
		 "pointer: a driver must use READ_REGISTER_* and WRITE_REGISTER_*",
		 bar->index, device->name);
	vmm_os_trap_add(bar->window.address, size, bar->trap);
	return VMM_OK;
}

static vmm_status bar_init(struct vmm_hardware *device, uint32_t index)
{
	const struct vidmm_device_bar *from = &device->model.bar[index];
	struct vmm_hardware_bar *bar = &device->bar[index];
	bool low = !(from->flags & VIDMM_BAR_64BIT);
	vmm_status status = VMM_OK;

	bar->device = device;
	bar->index = index;
	bar->registers = (struct vmm_nt_registers){.read = read_registers,
						   .write = write_registers,
						   .context = bar,
						   .size_bytes = from->size_bytes};
	if (from->kind == VIDMM_BAR_MEMORY)
		return memory_init(bar, from->size_bytes, low);
	if (from->kind == VIDMM_BAR_REGISTERS)
		status = registers_init(bar, from->size_bytes, low);
	if (from->kind == VIDMM_BAR_PORTS)
		status = vmm_nt_ports_add(device->nt, &bar->registers);
	bar->address = bar->registers.address;
	return status;
}

vmm_status vmm_hardware_bars_init(struct vmm_hardware *device)
{
	for (; device->bars < VIDMM_DEVICE_BARS; device->bars++) {
		vmm_status status = bar_init(device, device->bars);

		if (!vmm_ok(status))
			return vmm_refuse_reason(
				device->observe, status, 0, 0,
				"Q-420: device model %s: no memory or no address for BAR %u of "
				"%llu bytes",
				device->name, device->bars,
				(unsigned long long)device->model.bar[device->bars].size_bytes);
	}
	return VMM_OK;
}

void vmm_hardware_bars_finish(struct vmm_hardware *device)
{
	while (device->bars) {
		struct vmm_hardware_bar *bar = &device->bar[--device->bars];

		switch (device->model.bar[device->bars].kind) {
		case VIDMM_BAR_MEMORY:
			vmm_nt_phys_remove(device->nt, bar->address);
			vmm_os_memory_destroy(&bar->memory);
			break;
		case VIDMM_BAR_REGISTERS:
			vmm_nt_registers_remove(device->nt, &bar->registers);
			vmm_os_trap_remove(bar->window.address);
			vmm_os_view_release(&bar->window);
			break;
		case VIDMM_BAR_PORTS:
			vmm_nt_ports_remove(device->nt, &bar->registers);
			break;
		default:
			break;
		}
	}
}

/* ---- questions ---- */

uint64_t vmm_hardware_bar_address(const struct vmm_hardware *device, uint32_t bar)
{
	return device->bar[bar].address;
}

const struct vmm_os_memory *vmm_hardware_bar_memory(const struct vmm_hardware *device, uint32_t bar)
{
	return &device->bar[bar].memory;
}

/* Returns the BAR of that kind that has all of [address, +count), or NULL. */
static const struct vmm_hardware_bar *find(const struct vmm_hardware *device, uint32_t kind,
					   uint64_t address, uint64_t count)
{
	for (uint32_t i = 0; i < VIDMM_DEVICE_BARS; i++) {
		uint64_t size = device->model.bar[i].size_bytes;
		uint64_t offset = address - device->bar[i].address;

		if (device->model.bar[i].kind == kind && offset < size && count <= size - offset)
			return &device->bar[i];
	}
	return NULL;
}

void *vmm_hardware_registers_at(const struct vmm_hardware *device, uint64_t physical,
				uint64_t size_bytes)
{
	const struct vmm_hardware_bar *bar =
		find(device, VIDMM_BAR_REGISTERS, physical, size_bytes);

	return bar ? bar->window.address + (physical - bar->address) : NULL;
}

bool vmm_hardware_has_ports(const struct vmm_hardware *device, uint64_t port, uint64_t count)
{
	return find(device, VIDMM_BAR_PORTS, port, count) != NULL;
}
