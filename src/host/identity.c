/* SPDX-License-Identifier: MIT */
/*
 * The identity of an adapter that clients can query: names and registry values that the embedder
 * gave, and the ids that its device and miniport report. (QAI, REG)
 */
#include "host/host_private.h"

#include <string.h>

#define DESCRIPTION_DEFAULT  "vidmm adapter"
#define DRIVER_STORE_DEFAULT "/usr/lib/wsl/drivers"

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7E)
			return false;
	return true;
}

static vmm_status copy_values(struct vmm_adapter_identity *to,
			      const struct vidmm_adapter_options *o)
{
	to->values = vmm_calloc(o->registry_count + 1u, sizeof(*to->values));
	if (!to->values)
		return VMM_NO_MEMORY;
	for (uint32_t i = 0; i < o->registry_count; i++) {
		struct vmm_adapter_value *value = &to->values[i];

		if (strlen(o->registry[i].name) >= sizeof(value->name))
			return VMM_INVALID_PARAMETER;
		strcpy(value->name, o->registry[i].name);
		value->value = o->registry[i].value;
	}
	to->value_count = o->registry_count;
	return VMM_OK;
}

vmm_status vmm_host_name_adapter(struct vmm_adapter *core, const struct vidmm_adapter_options *o)
{
	const char *text = o->description ? o->description : DESCRIPTION_DEFAULT;
	const char *store = o->driver_store ? o->driver_store : DRIVER_STORE_DEFAULT;
	struct vmm_adapter_identity *to = &core->identity;

	if (strlen(text) >= sizeof(to->description) || !is_printable(text) || strchr(text, '%'))
		return vmm_refuse_reason(
			core->observe, VMM_INVALID_PARAMETER, 0, 0,
			"QAI-06: a description has up to 128 printable ASCII characters "
			"and no percent sign");
	if (strlen(store) >= sizeof(to->driver_store) || !is_printable(store) || *store != '/')
		return vmm_refuse_reason(
			core->observe, VMM_INVALID_PARAMETER, 0, 0,
			"REG-04: the folder of the user-mode driver is an absolute path "
			"of up to 259 printable ASCII characters");
	strcpy(to->description, text);
	strcpy(to->driver_store, store);
	return copy_values(to, o);
}

void vmm_host_identify_adapter(struct vmm_adapter *core)
{
	const struct vmm_port_caps *caps = vmm_port_caps(core->port);
	struct vmm_adapter_identity *to = &core->identity;
	struct vmm_port_identity device;

	vmm_port_identity(core->port, &device);
	to->driver_private = vmm_port_driver_private;
	to->vendor = device.vendor;
	to->device = device.device;
	to->subsystem_vendor = device.subsystem_vendor;
	to->subsystem = device.subsystem;
	to->revision = device.revision;
	to->bus_type = device.bus_type;
	to->bus = device.bus;
	to->slot = device.slot;
	to->graphics_preemption = (uint32_t)caps->preemption.GraphicsPreemptionGranularity;
	to->compute_preemption = (uint32_t)caps->preemption.ComputePreemptionGranularity;
	to->non_vga = caps->non_vga;
	to->smooth_rotation = caps->smooth_rotation;
	to->per_engine_tdr = caps->per_engine_tdr;
	to->cross_adapter_resource = caps->cross_adapter_resource;
}

void vmm_host_forget_adapter(struct vmm_adapter *core)
{
	vmm_free(core->identity.values);
	core->identity.values = NULL;
}
