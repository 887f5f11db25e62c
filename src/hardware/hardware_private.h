/* SPDX-License-Identifier: MIT */
/* Shared by the files of hardware. */
#ifndef VMM_HARDWARE_DEVICE_PRIVATE_H
#define VMM_HARDWARE_DEVICE_PRIVATE_H

#include <stdatomic.h>
#include "hardware/hardware.h"

#define VMM_HARDWARE_CONFIG_MAX    4096u
#define VMM_HARDWARE_CONFIG_HEADER 0x40u

/* The lock classes (docs/locking.md). */
extern struct vmm_lock_class vmm_hardware_class, vmm_hardware_state_class;

struct vmm_hardware_bar {
	struct vmm_hardware *device;
	uint32_t index;
	uint64_t address;
	struct vmm_os_memory memory;       /* VIDMM_BAR_MEMORY */
	struct vmm_os_view window;         /* VIDMM_BAR_REGISTERS: inaccessible */
	struct vmm_nt_registers registers; /* VIDMM_BAR_REGISTERS, VIDMM_BAR_PORTS */
	char trap[192];                    /* what an access through the pointer reports */
};

struct vmm_hardware {
	/* constant after creation */
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	struct vidmm_device_model model; /* name and config_image point to the copies below */
	char name[VIDMM_DEVICE_NAME_MAX + 1];
	uint8_t image[VMM_HARDWARE_CONFIG_MAX];
	enum vmm_hardware_claim (*interrupt)(void *context, uint32_t message);
	void *context;
	struct vidmm_device_services services;
	void *instance; /* of the model */
	uint32_t bars;  /* those that exist */
	struct vmm_hardware_bar bar[VIDMM_DEVICE_BARS];
	struct vmm_os_thread *interrupt_thread, *timer_thread;

	_Atomic uint32_t power; /* D0 to D3 as 1 to 4 */
	_Atomic bool removed;
	_Atomic bool power_reported; /* one finding for each stay outside D0 */

	struct vmm_os_mutex lock; /* held during every call of the model */
	uint8_t config[VMM_HARDWARE_CONFIG_MAX] VMM_GUARDED_BY(vmm_hardware_class);

	struct vmm_os_mutex state; /* guards the members below */
	bool connected VMM_GUARDED_BY(vmm_hardware_state_class);
	/* One bit for each message; of a line bit 0. */
	uint32_t raised VMM_GUARDED_BY(vmm_hardware_state_class);
	uint32_t masked VMM_GUARDED_BY(vmm_hardware_state_class); /* */
	uint32_t reported VMM_GUARDED_BY(vmm_hardware_state_class);
	uint32_t last VMM_GUARDED_BY(vmm_hardware_state_class);
	uint32_t deliveries VMM_GUARDED_BY(vmm_hardware_state_class); /* since it was idle */
	bool in_routine VMM_GUARDED_BY(vmm_hardware_state_class);
	/* A line was low since it was taken, by what happened outside the routine. */
	bool was_low VMM_GUARDED_BY(vmm_hardware_state_class);
	uint64_t timer[VIDMM_DEVICE_TIMERS] VMM_GUARDED_BY(vmm_hardware_state_class);
	_Atomic bool stop;
	/* Futexes: move when the thread has to look again. */
	_Atomic uint32_t interrupt_word, timer_word;
	_Atomic uint32_t routine_word; /* moves when a routine has returned */
};

VMM_LOCK_PAIR(vmm_hardware_lock, vmm_hardware_unlock, vmm_hardware_class, vmm_os_mutex,
	      struct vmm_hardware, lock);
VMM_LOCK_PAIR(vmm_hardware_state_lock, vmm_hardware_state_unlock, vmm_hardware_state_class,
	      vmm_os_mutex, struct vmm_hardware, state);

static inline void vmm_hardware_wake(struct vmm_hardware *device, _Atomic uint32_t *word)
{
	atomic_fetch_add(word, 1);
	vmm_os_wake(device->os, word, UINT32_MAX);
}

/* ---- power.c ---- */
/* Whether the device is in D0 and present. */
bool vmm_hardware_answers(const struct vmm_hardware *device);
/*
 * Returns whether the device is in D0. If it is not, reports that once for each stay: `what`
 * happened, and `effect` is the result.
 */
bool vmm_hardware_is_on(struct vmm_hardware *device, const char *what, const char *effect);

/* ---- access.c ---- */
vmm_status vmm_hardware_bars_init(struct vmm_hardware *device) VMM_MUST_CHECK;
void vmm_hardware_bars_finish(struct vmm_hardware *device);

/* ---- interrupt.c ---- */
void vmm_hardware_raise(struct vmm_hardware *device, uint32_t message);
void vmm_hardware_lower(struct vmm_hardware *device, uint32_t message);
void vmm_hardware_interrupt_thread(void *device);
/* Lowers all interrupts and forgets what was reported. Caller holds the state lock. */
void vmm_hardware_lower_all_locked(struct vmm_hardware *device)
	VMM_REQUIRES(vmm_hardware_state_class);

/* ---- timer.c ---- */
void vmm_hardware_schedule(struct vmm_hardware *device, uint32_t timer, uint64_t when_ns);
void vmm_hardware_timer_thread(void *device);
void vmm_hardware_cancel_all_locked(struct vmm_hardware *device)
	VMM_REQUIRES(vmm_hardware_state_class);

/* ---- services.c ---- */
void vmm_hardware_services_init(struct vmm_hardware *device);

#endif
