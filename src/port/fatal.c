/* SPDX-License-Identifier: MIT */
/*
 * Violations of the DDI contract by the miniport: fatal ones, after which the adapter stops, and
 * others, which are reported and corrected.
 */
#include "port/port_internal.h"

bool vmm_port_dead(const struct vmm_port *port)
{
	return atomic_load_explicit(&port->dead, memory_order_acquire);
}

void vmm_port_fatal(struct vmm_port *port, uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3)
{
	/*
	 * Only the first violation is reported: later ones are its consequences. A violation by one
	 * adapter of a link stops all of them.
	 */
	port = port->lead;
	if (atomic_exchange_explicit(&port->dead, true, memory_order_acq_rel))
		return;
	for (uint32_t i = 1; i < port->link_count; i++)
		atomic_store_explicit(&port->link[i]->dead, true, memory_order_release);
	vmm_event(port->observe, VIDMM_EVENT_FATAL, 0, 0, 0, code, p1, p2, p3);
	port->sink->fatal(port->sink_context, code, p1, p2, p3);
	vmm_port_gate_wake(port); /* threads that wait at the call gate find the port dead */
}

void vmm_port_overflow(struct vmm_port *port, enum vidmm_ddi ddi, uint64_t commands,
		       uint64_t command_room, uint64_t private_data, uint64_t private_room)
{
	if (commands > command_room)
		vmm_port_fatal(port, VMM_PORT_FATAL_VIDMM, VMM_PORT_VIDMM_DMA_OVERFLOW, commands,
			       command_room);
	else if (private_data > private_room)
		vmm_port_fatal(port, VMM_PORT_FATAL_VIDMM, VMM_PORT_VIDMM_PRIVATE_OVERFLOW,
			       private_data, private_room);
	else
		vmm_port_fatal(port, VMM_PORT_FATAL_VIDMM, VMM_PORT_VIDMM_OTHER(ddi), commands,
			       command_room);
}

void vmm_port_wrong_irql(struct vmm_port *port, const char *routine, uint32_t level)
{
	uint32_t irql = vmm_nt_irql(port->nt);

	vmm_finding(port->observe, "NT-02", 0, 0, "%s was entered at IRQL %u and returned at %u",
		    routine, level, irql);
	if (irql > level)
		vmm_nt_lower(port->nt, level);
	else
		vmm_nt_raise(port->nt, level);
}

void vmm_port_wrong_status(struct vmm_port *port, const char *rule, enum vidmm_ddi ddi,
			   NTSTATUS status)
{
	vmm_finding(port->observe, rule, 0, 0,
		    "%s returned 0x%08x, which is not a status that it documents",
		    vmm_observe_reason_name(VIDMM_EVENT_DDI, ddi), (unsigned)status);
}

NTSTATUS vmm_port_failed(struct vmm_port *port, const char *rule, enum vidmm_ddi ddi,
			 NTSTATUS status, bool documented)
{
	char name[64];

	if (!documented) {
		vmm_port_wrong_status(port, rule, ddi, status);
		return STATUS_INVALID_PARAMETER;
	}
	vmm_port_ddi_name(name, sizeof(name), ddi);
	return vmm_refuse_reason(port->observe, status, 0, 0,
				 "%s: the miniport failed %s with 0x%08x", rule, name,
				 (unsigned)status);
}
