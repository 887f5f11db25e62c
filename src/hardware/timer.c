/* SPDX-License-Identifier: MIT */
/* The timers of a device, by one thread: the earliest first, of equal times the lowest number. */
#include "hardware/hardware_private.h"

void vmm_hardware_schedule(struct vmm_hardware *device, uint32_t timer, uint64_t when_ns)
{
	if (timer >= VIDMM_DEVICE_TIMERS || !device->model.timer) {
		vmm_finding(device->observe, "Q-426", 0, 0,
			    "device %s: schedule of timer %u: %s; ignored", device->name, timer,
			    device->model.timer ? "a device has 16, from 0 on"
						: "the model has no function for timers");
		return;
	}
	vmm_hardware_state_lock(device);
	device->timer[timer] = when_ns;
	vmm_hardware_state_unlock(device);
	vmm_hardware_wake(device, &device->timer_word);
}

void vmm_hardware_cancel_all_locked(struct vmm_hardware *device)
{
	vmm_assert_held(&device->state);
	for (uint32_t i = 0; i < VIDMM_DEVICE_TIMERS; i++)
		device->timer[i] = VIDMM_DEVICE_NEVER;
}

/* Takes the timer whose time has come. If there is none, *next_ns is the earliest time. */
static bool take(struct vmm_hardware *device, uint32_t *timer, uint64_t *next_ns)
{
	uint64_t now_ns = vmm_os_now_ns(device->os);
	uint32_t earliest = 0;
	bool due;

	vmm_hardware_state_lock(device);
	for (uint32_t i = 1; i < VIDMM_DEVICE_TIMERS; i++)
		if (device->timer[i] < device->timer[earliest])
			earliest = i;
	*timer = earliest;
	*next_ns = device->timer[earliest];
	due = *next_ns != VIDMM_DEVICE_NEVER && *next_ns <= now_ns;
	if (due)
		device->timer[earliest] = VIDMM_DEVICE_NEVER;
	vmm_hardware_state_unlock(device);
	return due;
}

void vmm_hardware_timer_thread(void *context)
{
	struct vmm_hardware *device = context;

	while (!atomic_load(&device->stop)) {
		uint32_t seen = atomic_load(&device->timer_word), timer;
		uint64_t next_ns;
		bool due;

		/* Under the device's lock, so that a timer that a reset cancels is not called. */
		vmm_hardware_lock(device);
		due = take(device, &timer, &next_ns);
		if (due)
			device->model.timer(device->instance, timer);
		vmm_hardware_unlock(device);
		if (!due)
			vmm_os_wait(device->os, &device->timer_word, seen,
				    next_ns == VIDMM_DEVICE_NEVER ? VMM_OS_FOREVER : next_ns, NULL,
				    0);
	}
}
