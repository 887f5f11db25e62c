/* SPDX-License-Identifier: MIT */
/*
 * hardware: the device behind a port, as a device model describes it (vidmm/device.h). It owns the
 * BARs, the interrupts, the timers and the configuration space behind the header, and calls the
 * model's functions one at a time. It knows no miniport: an interrupt is a function of the port.
 *
 * Locks: the device's lock (VMM_HARDWARE_RANK), held during every call of the model, above the
 * interrupt lock of port, because interrupt routines access registers. The state lock
 * (VMM_HARDWARE_STATE_RANK) guards interrupts, timers and power; its holder only reports.
 */
#ifndef VMM_HARDWARE_DEVICE_H
#define VMM_HARDWARE_DEVICE_H

#include "base/base.h"
#include "nt/nt.h"
#include "observe/observe.h"
#include "os/os.h"
#include <vidmm/device.h>

#define VMM_HARDWARE_RANK       75u
#define VMM_HARDWARE_STATE_RANK 76u

/* How often one interrupt is delivered while it never becomes idle. */
#define VMM_HARDWARE_STORM 10000u

struct vmm_hardware;

enum vmm_hardware_claim {
	VMM_HARDWARE_CLAIMED,     /* DxgkDdiInterruptRoutine returned TRUE */
	VMM_HARDWARE_NOT_CLAIMED, /* it returned FALSE */
	VMM_HARDWARE_IGNORED,     /* it was not called: the adapter is dead */
};

struct vmm_hardware_options {
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	const struct vidmm_device_model *model;
	/*
	 * Calls the interrupt routine. On a thread of the device, at PASSIVE_LEVEL, without locks,
	 * between vmm_hardware_connect and vmm_hardware_disconnect.
	 */
	enum vmm_hardware_claim (*interrupt)(void *context, uint32_t message);
	void *context;
};

/* Returns whether the model can be used; if not, why. `why` begins with Q-420. */
bool vmm_hardware_model_is_valid(const struct vidmm_device_model *model, char *why, size_t size);

/*
 * Checks and copies the model, and creates its device. Refusals emit a reason:
 * VMM_INVALID_PARAMETER, VMM_INSUFFICIENT_RESOURCES if no address is left, the model's
 * status.
 */
vmm_status vmm_hardware_create(const struct vmm_hardware_options *options,
			       struct vmm_hardware **device) VMM_MUST_CHECK;
/* NULL: does nothing. No access of its registers is in progress. */
void vmm_hardware_destroy(struct vmm_hardware *device);

/* Interrupts are delivered from now on. What was raised before is delivered, too. */
void vmm_hardware_connect(struct vmm_hardware *device);
/* On return no interrupt routine runs, and none is called again. */
void vmm_hardware_disconnect(struct vmm_hardware *device);
/* Lowers all interrupts, cancels all timers, restores the configuration space and resets. */
void vmm_hardware_reset(struct vmm_hardware *device);
/* D0 to D3 as 1 to 4. Outside D0 registers read as ones. */
void vmm_hardware_set_power(struct vmm_hardware *device, uint32_t state);
/* The device is gone: from now on it answers like one in D3, without findings (PNP-08). */
void vmm_hardware_set_removed(struct vmm_hardware *device);
bool vmm_hardware_removed(const struct vmm_hardware *device);

const struct vidmm_device_model *vmm_hardware_model(const struct vmm_hardware *device);
/* The address of a BAR in its space; ports: the number of the first. */
uint64_t vmm_hardware_bar_address(const struct vmm_hardware *device, uint32_t bar);
/* The memory of a memory BAR. */
const struct vmm_os_memory *vmm_hardware_bar_memory(const struct vmm_hardware *device,
						    uint32_t bar);
/*
 * Returns the pointer through which drivers access registers at [physical, +size_bytes); NULL if
 * that is not inside registers of the device.
 */
void *vmm_hardware_registers_at(const struct vmm_hardware *device, uint64_t physical,
				uint64_t size_bytes);
/* Returns whether these are ports of the device. */
bool vmm_hardware_has_ports(const struct vmm_hardware *device, uint64_t port, uint64_t count);

/* Configuration space from 0x40 on, inside config_bytes, in naturally aligned pieces. */
void vmm_hardware_config_read(struct vmm_hardware *device, uint32_t offset, uint32_t length,
			      uint8_t *bytes);
void vmm_hardware_config_write(struct vmm_hardware *device, uint32_t offset, uint32_t length,
			       const uint8_t *bytes);

#endif
