/* SPDX-License-Identifier: MIT */
/*
 * The call gate of the miniport: the DDIs of an adapter reset give one thread exclusive use of it
 * (threading level three). Each DDI call stores the port in the hazard pointer of its thread and
 * then reads `suspended`. The thread that closes the gate sets `suspended` first and then reads all
 * hazard pointers, so one of the two sees the other. An asymmetric barrier between the last two
 * steps (vmm_os_gate_holders) orders both sides, so no DDI call executes a locked instruction. The
 * interrupt's routines are exempt (TDR-06).
 *
 * Calls that must not get lost, such as the destruction of an object, wait until the gate opens.
 * All other calls are refused with STATUS_DEVICE_REMOVED: their devices are lost by the reset, or
 * they hold a lock for which the closing thread is waiting.
 *
 * Level two (vmm_port_exclude) closes the same gate, but all calls wait for its end.
 */
#include "port/port_internal.h"

void vmm_port_gate_wake(struct vmm_port *port)
{
	atomic_fetch_add(&port->gate, 1);
	vmm_os_wake(port->os, &port->gate, UINT32_MAX);
}

/*
 * Wakes the thread that has closed the gate, if the caller was the last thread inside. Of several
 * that leave at once, the last to clear its hazard pointer sees those of the others cleared.
 */
void vmm_port_end_slow(struct vmm_port *port)
{
	if (!vmm_port_inside(port))
		vmm_port_gate_wake(port);
}

static bool is_exclusive_owner(const struct vmm_port *port)
{
	return atomic_load(&port->exclusive) == vmm_os_thread_self(port->os);
}

/*
 * Returns whether waiting calls may pass. After a removal (PNP-08) only these may, and not while a
 * thread has exclusive use.
 */
static bool is_open(const struct vmm_port *port)
{
	return !atomic_load(&port->suspended) ||
	       (atomic_load(&port->device_removed) && !atomic_load(&port->exclusive));
}

bool vmm_port_begin_slow(struct vmm_port *port, bool waiting)
{
	const bool ends = waiting;

	if (is_exclusive_owner(port))
		return true;
	vmm_port_end(port);
	if (!waiting && atomic_load(&port->device_removed))
		return false;
	waiting |= atomic_load(&port->excluding); /* level two refuses no call: all wait */
	while (waiting) {
		uint32_t seen = atomic_load(&port->gate);

		if (vmm_port_dead(port))
			return false;
		if (is_open(port)) {
			vmm_port_gate_enter(port, VMM_OS_OWN(port->os));
			bool open = is_open(port);

			if (open && (ends || !atomic_load(&port->device_removed)))
				return true;
			vmm_port_end(port);
			if (open)
				return false;
			continue;
		}
		if (vmm_os_wait(port->os, &port->gate, seen, VMM_OS_FOREVER,
				"the reset of an adapter", 0) == VMM_UNSUCCESSFUL)
			return false;
	}
	return false;
}

bool vmm_port_exclude(struct vmm_port *port)
{
	bool open = false;

	if (vmm_port_dead(port) || !atomic_compare_exchange_strong(&port->excluding, &open, true))
		return false;
	open = false;
	if (!atomic_compare_exchange_strong(&port->suspended, &open, true)) {
		atomic_store(&port->excluding, false); /* a reset closed the gate first */
		vmm_port_gate_wake(port);
		return false;
	}
	atomic_store(&port->exclusive, vmm_os_thread_self(port->os));
	for (;;) {
		uint32_t seen = atomic_load(&port->gate);

		if (!vmm_port_inside(port))
			return true;
		if (vmm_port_dead(port) || vmm_os_wait(port->os, &port->gate, seen, VMM_OS_FOREVER,
						       "threads to leave the miniport (level two)",
						       vmm_port_inside(port)) == VMM_UNSUCCESSFUL)
			break;
	}
	vmm_port_admit(port);
	return false;
}

static void open_gate(struct vmm_port *port)
{
	atomic_store(&port->suspended, false);
	if (vmm_unlikely(atomic_load(&port->device_removed)))
		atomic_store(&port->suspended, true);
}

void vmm_port_gate_set_removed(struct vmm_port *port)
{
	atomic_store(&port->device_removed, true);
	atomic_store(&port->suspended, true);
	vmm_port_gate_wake(port);
}

bool vmm_port_removed(const struct vmm_port *port)
{
	return atomic_load(&port->device_removed);
}

void vmm_port_admit(struct vmm_port *port)
{
	atomic_store(&port->exclusive, NULL);
	open_gate(port);
	atomic_store(&port->excluding, false);
	vmm_port_gate_wake(port);
}

/*
 * Closes the gate for a reset. Level two, which ends without help, closes the gate by the same
 * exchange, so only one of the two succeeds and the other waits or gives up. After a removal the
 * gate is closed already. Returns false if level two has not ended at the deadline.
 */
static bool close_gate(struct vmm_port *port, uint64_t deadline_ns)
{
	vmm_status status = VMM_OK;

	for (;;) {
		uint32_t seen = atomic_load(&port->gate);
		bool open = false, removed = atomic_load(&port->device_removed);

		if (atomic_compare_exchange_strong(&port->suspended, &open, true))
			return true;
		if (!atomic_load(&port->excluding)) {
			if (removed)
				return true;
			continue; /* level two has just ended */
		}
		if (status != VMM_OK)
			return false;
		status = vmm_os_wait(port->os, &port->gate, seen, deadline_ns,
				     "the end of a level two call", 0);
	}
}

static bool wait_until_empty(struct vmm_port *port, uint64_t deadline_ns)
{
	for (;;) {
		uint32_t seen = atomic_load(&port->gate);

		if (!vmm_port_inside(port))
			return true;
		if (vmm_os_wait(port->os, &port->gate, seen, deadline_ns,
				"threads to leave the miniport (TDR-04)",
				vmm_port_inside(port)) != VMM_OK)
			return !vmm_port_inside(port);
	}
}

bool vmm_port_suspend(struct vmm_port *port, uint64_t deadline_ns)
{
	if (vmm_unlikely(!close_gate(port, deadline_ns)))
		return false;
	atomic_store(&port->exclusive, vmm_os_thread_self(port->os));
	if (!wait_until_empty(port, deadline_ns))
		return false;
	atomic_fetch_add(&port->suspensions, 1);
	return true;
}

uint32_t vmm_port_suspensions(const struct vmm_port *port)
{
	return atomic_load(&port->suspensions);
}

void vmm_port_resume(struct vmm_port *port)
{
	atomic_store(&port->exclusive, NULL);
	open_gate(port);
	vmm_port_gate_wake(port);
}

bool vmm_port_blocks_reset(const struct vmm_port *port)
{
	return is_exclusive_owner(port) || vmm_port_of_thread() != NULL;
}

bool vmm_port_at_passive(const struct vmm_port *port)
{
	return vmm_nt_irql(port->nt) == VMM_NT_PASSIVE;
}

uint32_t vmm_port_inside(const struct vmm_port *port)
{
	return atomic_load(&port->inside) + vmm_os_gate_holders(port->os, (uintptr_t)port);
}

void vmm_port_at_interrupt(struct vmm_port *port, void (*routine)(void *context), void *context)
{
	uint64_t *slots = VMM_OS_OWN(port->os)->slot;
	uint32_t irql = vmm_nt_interrupt_enter(&port->interrupt, slots);

	routine(context);
	vmm_nt_interrupt_leave(&port->interrupt, slots, irql);
}
