/* SPDX-License-Identifier: MIT */
/*
 * A link: several physical adapters that clients see as one adapter. Each of them is a device with
 * BARs, a registry key and configuration space. So each has a separate port, and the miniport finds
 * it by that port's handle. One port leads: the core knows only this one, the adapter's DDIs are
 * called with its context, and its interrupt lock and DPC serve all.
 *
 * The miniport decides which devices are linked, when each device is added (DxgkDdiLinkDevice). The
 * embedder decides how many devices exist. Both must agree.
 */
#include "port/port_internal.h"

NTSTATUS vmm_port_chain_check(const struct vmm_port_chain *chain)
{
	const struct vmm_port *first = chain->port[0];

	if (chain->count == 1)
		return STATUS_SUCCESS;
	if (!first->ddi.DxgkDdiLinkDevice)
		return vmm_refuse_reason(
			first->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"LNK-01: %u physical adapters cannot be linked: the miniport has no "
			"DxgkDdiLinkDevice",
			chain->count);
	if (vmm_port_is_wddm2(first))
		return vmm_refuse_reason(
			first->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"links of %u physical adapters are built only for miniports before "
			"2.0, this one is %s",
			chain->count, first->version->name);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_port_link_device(struct vmm_port *port)
{
	LINKED_DEVICE linked = {0};
	struct vmm_port_call call;
	NTSTATUS status;

	if (!port->ddi.DxgkDdiLinkDevice)
		return STATUS_SUCCESS;
	call = vmm_port_enter(port, VIDMM_DDI_LINK_DEVICE);
	status = port->ddi.DxgkDdiLinkDevice(&port->device, port->adapter, &linked);
	vmm_port_leave(port, &call, VIDMM_DDI_LINK_DEVICE);
	vmm_port_ddi_event(port, VIDMM_DDI_LINK_DEVICE, status, linked.ChainUid,
			   linked.NumberOfLinksInChain, linked.LeadLink);
	if (status < 0)
		vmm_reason(port->observe, status, 0, 0,
			   "LNK-01: DxgkDdiLinkDevice failed with 0x%08x: whether the adapter is "
			   "linked is unknown",
			   (unsigned)status);
	else
		port->linked = linked;
	return status;
}

/* LNK-03: the chain must have as many adapters as the embedder started. */
static NTSTATUS check_number(const struct vmm_port_chain *chain)
{
	const struct vmm_port *first = chain->port[0];
	ULONG expected = first->linked.NumberOfLinksInChain;

	if (expected == chain->count || (!expected && chain->count == 1))
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		first->observe, STATUS_DEVICE_CONFIGURATION_ERROR, 0, 0,
		"LNK-03: the miniport expects chain %u to have %u physical adapters, %u %s there",
		first->linked.ChainUid, expected, chain->count, chain->count == 1 ? "is" : "are");
}

/* LNK-02: all adapters must be in the same chain, and exactly one of them leads. */
static NTSTATUS check_chain(const struct vmm_port_chain *chain, uint32_t *lead)
{
	const LINKED_DEVICE *first = &chain->port[0]->linked;
	uint32_t leads = 0;

	for (uint32_t i = 0; i < chain->count; i++) {
		const LINKED_DEVICE *linked = &chain->port[i]->linked;

		if (linked->LeadLink && !leads++)
			*lead = i;
		if (linked->ChainUid == first->ChainUid &&
		    linked->NumberOfLinksInChain == first->NumberOfLinksInChain)
			continue;
		return vmm_refuse_rule(
			chain->port[0]->observe, STATUS_INVALID_PARAMETER, "LNK-02", 0, 0,
			"the first adapter is in chain %u of %u adapters, but adapter number %u "
			"in chain %u of %u",
			first->ChainUid, first->NumberOfLinksInChain, i + 1, linked->ChainUid,
			linked->NumberOfLinksInChain);
	}
	if (leads == 1)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		chain->port[0]->observe, STATUS_INVALID_PARAMETER, "LNK-02", 0, 0,
		"%u of the %u adapters of chain %u have LeadLink: exactly one must have it", leads,
		chain->count, first->ChainUid);
}

static void set_lead(struct vmm_port_chain *chain, uint32_t which)
{
	struct vmm_port *lead = chain->port[which];
	struct vidmm_adapter_report *report = chain->port[0]->report;

	for (uint32_t i = which; i > 0; i--)
		chain->port[i] = chain->port[i - 1];
	chain->port[0] = lead;
	lead->link_count = chain->count;
	for (uint32_t i = 0; i < chain->count; i++) {
		chain->port[i]->report = NULL;
		chain->port[i]->lead = lead;
		lead->link[i] = chain->port[i];
	}
	/* The report describes the adapter that leads. */
	lead->report = report;
	vmm_port_report_device(lead);
}

NTSTATUS vmm_port_link_nodes(struct vmm_port *port)
{
	port->caps.nodes_each = port->caps.node_count;
	port->caps.node_count *= port->link_count;
	if (port->caps.node_count <= VMM_PORT_NODES_MAX)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		port->observe, STATUS_NOT_SUPPORTED, 0, 0,
		"%u adapters of %u nodes each are linked, VidSch schedules at most %u nodes",
		port->link_count, port->caps.nodes_each, VMM_PORT_NODES_MAX);
}

NTSTATUS vmm_port_chain_agree(struct vmm_port_chain *chain)
{
	uint32_t lead = 0;
	NTSTATUS status = STATUS_SUCCESS;

	if (chain->count > 1)
		status = check_chain(chain, &lead);
	if (status >= 0)
		status = check_number(chain);
	if (status >= 0 && chain->count > 1)
		set_lead(chain, lead);
	return status;
}
