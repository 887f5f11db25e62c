/* SPDX-License-Identifier: MIT */
/*
 * The interrupts of a device: one thread calls the interrupt routine for what the model raised. A
 * line stays raised until the model lowers it, and the routine is called as long; a message is
 * lowered by its delivery.
 */
#include "hardware/hardware_private.h"

static bool is_line(const struct vmm_hardware *device)
{
	return !device->model.interrupt_messages;
}

static bool exists(struct vmm_hardware *device, uint32_t message, const char *service)
{
	uint32_t count = is_line(device) ? 1 : device->model.interrupt_messages;

	if (message < count)
		return true;
	vmm_finding(device->observe, "Q-423", 0, 0,
		    "device %s: %s of interrupt %u, the device has %u: ignored", device->name,
		    service, message, count);
	return false;
}

/* The routine itself, and what it has the model do, must not undo a mask. */
static bool is_inside_routine(const struct vmm_hardware *device)
{
	return vmm_os_thread_self(device->os) == device->interrupt_thread;
}

static void raise_locked(struct vmm_hardware *device, uint32_t bit)
	VMM_REQUIRES(vmm_hardware_state_class)
{
	vmm_assert_held(&device->state);
	if (!is_inside_routine(device)) {
		if (!is_line(device))
			device->masked &= ~bit;
		else if (!device->raised)
			device->was_low = true;
	}
	device->raised |= bit;
}

void vmm_hardware_raise(struct vmm_hardware *device, uint32_t message)
{
	uint32_t bit = 1u << (message & 31);
	bool on;

	if (!exists(device, message, "raise_interrupt"))
		return;
	/* Under the lock, because the end of D0 lowers all under it afterwards. */
	vmm_hardware_state_lock(device);
	on = vmm_hardware_answers(device);
	if (on)
		raise_locked(device, bit);
	vmm_hardware_state_unlock(device);
	if (!on) {
		vmm_hardware_is_on(device, "the model raised an interrupt", "it is ignored");
		return;
	}
	vmm_hardware_wake(device, &device->interrupt_word);
}

void vmm_hardware_lower(struct vmm_hardware *device, uint32_t message)
{
	if (!exists(device, message, "lower_interrupt") || !is_line(device))
		return;
	vmm_hardware_state_lock(device);
	device->raised = 0;
	if (!is_inside_routine(device)) {
		device->masked = 0;
		device->was_low = true;
	}
	vmm_hardware_state_unlock(device);
}

void vmm_hardware_lower_all_locked(struct vmm_hardware *device)
{
	vmm_assert_held(&device->state);
	device->raised = device->masked = device->reported = device->deliveries = 0;
}

/* ---- delivery ---- */

/* Takes the next interrupt, in turn. Returns false if there is none to deliver now. */
static bool take_locked(struct vmm_hardware *device, uint32_t *message)
	VMM_REQUIRES(vmm_hardware_state_class)
{
	uint32_t ready = device->connected ? device->raised & ~device->masked : 0;
	uint32_t next = device->last;

	vmm_assert_held(&device->state);
	if (!ready) {
		device->deliveries = 0;
		return false;
	}
	do
		next = (next + 1) % 32;
	while (!(ready & 1u << next));
	device->last = *message = next;
	device->in_routine = true;
	device->was_low = false;
	if (!is_line(device))
		device->raised &= ~(1u << next);
	return true;
}

/*
 * What the result of a call means. Returns the rule that it breaks, or NULL. A line that went down
 * meanwhile may be left unclaimed: the routine found nothing to do. If it was raised anew outside
 * the routine, that is a new interrupt.
 */
static const char *judge_locked(struct vmm_hardware *device, uint32_t message,
				enum vmm_hardware_claim claim)
	VMM_REQUIRES(vmm_hardware_state_class)
{
	uint32_t bit = 1u << message;
	bool again = (device->raised & bit) && !device->was_low;

	vmm_assert_held(&device->state);
	if (claim == VMM_HARDWARE_IGNORED) {
		if (!device->was_low)
			device->masked |= bit;
		return NULL;
	}
	if (claim == VMM_HARDWARE_NOT_CLAIMED && (again || !is_line(device))) {
		bool known = device->reported & bit;

		device->reported |= bit;
		if (is_line(device))
			device->masked |= bit;
		return known && !is_line(device) ? NULL : "Q-423";
	}
	if (claim == VMM_HARDWARE_CLAIMED)
		device->reported &= ~bit;
	device->deliveries = again ? device->deliveries + 1 : 0;
	if (device->deliveries < VMM_HARDWARE_STORM)
		return NULL;
	device->deliveries = 0;
	device->masked |= bit;
	return "Q-424";
}

static void deliver(struct vmm_hardware *device, uint32_t message)
{
	enum vmm_hardware_claim claim = device->interrupt(device->context, message);
	const char *rule;

	vmm_hardware_state_lock(device);
	rule = judge_locked(device, message, claim);
	device->in_routine = false;
	vmm_hardware_state_unlock(device);
	vmm_hardware_wake(device, &device->routine_word);
	if (!rule)
		return;
	if (rule[4] == '3')
		vmm_finding(device->observe, "Q-423", 0, 0,
			    "device %s: DxgkDdiInterruptRoutine returned FALSE for %s %u, which "
			    "the device raised%s",
			    device->name, is_line(device) ? "line" : "message", message,
			    is_line(device) ? " and still raises: it is not called again until "
					      "the device lowers the line"
					    : "");
	else
		vmm_finding(device->observe, "Q-424", 0, 0,
			    "device %s: %s %u was still or again raised after each of %u calls of "
			    "DxgkDdiInterruptRoutine: it is not called again until the device %s",
			    device->name, is_line(device) ? "line" : "message", message,
			    VMM_HARDWARE_STORM,
			    is_line(device) ? "lowers the line" : "sends it outside the routine");
}

void vmm_hardware_interrupt_thread(void *context)
{
	struct vmm_hardware *device = context;

	while (!atomic_load(&device->stop)) {
		uint32_t seen = atomic_load(&device->interrupt_word), message;
		bool ready;

		vmm_hardware_state_lock(device);
		ready = take_locked(device, &message);
		vmm_hardware_state_unlock(device);
		if (ready)
			deliver(device, message);
		else
			vmm_os_wait(device->os, &device->interrupt_word, seen, VMM_OS_FOREVER, NULL,
				    0);
	}
}

void vmm_hardware_connect(struct vmm_hardware *device)
{
	vmm_hardware_state_lock(device);
	device->connected = true;
	vmm_hardware_state_unlock(device);
	vmm_hardware_wake(device, &device->interrupt_word);
}

void vmm_hardware_disconnect(struct vmm_hardware *device)
{
	for (;;) {
		uint32_t seen = atomic_load(&device->routine_word);
		bool busy;

		vmm_hardware_state_lock(device);
		device->connected = false;
		busy = device->in_routine;
		vmm_hardware_state_unlock(device);
		if (!busy || vmm_os_wait(device->os, &device->routine_word, seen, VMM_OS_FOREVER,
					 "interrupt routine to return", 0) == VMM_UNSUCCESSFUL)
			return;
	}
}
