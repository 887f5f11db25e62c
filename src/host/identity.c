/* SPDX-License-Identifier: MIT */
/*
 * The identity of an adapter that clients can query: names and registry values that the embedder
 * gave, and the ids that its device and miniport report. (QAI, REG)
 */
#include "host/host_private.h"
#include "policy/custom.h"
#include "policy/order.h"

#include <stdio.h>
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

/* ---- settings: registry values that the library itself reads (DXC-26) ---- */
enum setting {
	VENDOR_ID,
	DEVICE_ID,
	SUBSYSTEM_VENDOR_ID,
	SUBSYSTEM_ID,
	REVISION_ID,
	DRIVER_VERSION,
	HARDWARE,
	INTEGRATED,
	DETACHABLE,
	HARDWARE_TYPE,
	ATTRIBUTES,
	EVICTION_POLICY,
	VERIFY_DRIVER,
	SETTINGS
};
static const struct {
	const char *name;
	uint64_t most;
} settings[SETTINGS] = {
	[VENDOR_ID] = {"VidmmVendorId", 0xFFFE}, /* 0xFFFF: no device */
	[DEVICE_ID] = {"VidmmDeviceId", 0xFFFF},
	[SUBSYSTEM_VENDOR_ID] = {"VidmmSubsystemVendorId", 0xFFFF},
	[SUBSYSTEM_ID] = {"VidmmSubsystemId", 0xFFFF},
	[REVISION_ID] = {"VidmmRevisionId", 0xFF},
	[DRIVER_VERSION] = {"VidmmDriverVersion", UINT64_MAX},
	[HARDWARE] = {"VidmmHardware", 1},
	[INTEGRATED] = {"VidmmIntegrated", 1},
	[DETACHABLE] = {"VidmmDetachable", 1},
	[HARDWARE_TYPE] = {"VidmmHardwareType", 8},
	[ATTRIBUTES] = {"VidmmAttributes", 0x1F},
	[EVICTION_POLICY] = {"VidmmEvictionPolicy", UINT64_MAX}, /* choose_policy */
	[VERIFY_DRIVER] = {"VidmmVerifyDriver", 1},
};
#define PREFIX "Vidmm"
#define UNSET  UINT64_MAX

/* The values of VidmmHardwareType, and the attributes of each by default. (DXC-20, DXC-21) */
static const struct {
	uint64_t type, attributes;
} hardware_types[] = {
	{1, 0x07}, /* GPU: Direct3D 11 and 12 graphics, compute */
	{2, 0x04}, /* compute accelerator: compute */
	{4, 0x04}, /* NPU: compute */
	{8, 0x10}, /* media accelerator: media */
};

static vmm_status refuse_setting(const struct vmm_adapter *core, const char *name, uint64_t value,
				 const char *why)
{
	return vmm_refuse_reason(core->observe, VMM_INVALID_PARAMETER, 0, 0,
				 "DXC-26: registry value %s with 0x%llx: %s", name,
				 (unsigned long long)value, why);
}

static vmm_status read_setting(const struct vmm_adapter *core,
			       const struct vidmm_registry_value *given, uint64_t value[SETTINGS])
{
	uint32_t i = 0;

	if (strncmp(given->name, PREFIX, strlen(PREFIX)) != 0)
		return VMM_OK;
	while (i < SETTINGS && strcmp(given->name, settings[i].name) != 0)
		i++;
	if (i == SETTINGS)
		return refuse_setting(core, given->name, given->value,
				      "the library has no setting of this name (vidmm.h)");
	if (given->value > settings[i].most)
		return refuse_setting(core, given->name, given->value, "the value is too high");
	value[i] = given->value;
	return VMM_OK;
}

static vmm_status choose_attributes(const struct vmm_adapter *core, uint64_t value[SETTINGS])
{
	for (uint32_t i = 0; i < sizeof(hardware_types) / sizeof(hardware_types[0]); i++)
		if (hardware_types[i].type == value[HARDWARE_TYPE]) {
			if (value[ATTRIBUTES] == UNSET)
				value[ATTRIBUTES] = hardware_types[i].attributes;
			return VMM_OK;
		}
	return refuse_setting(core, settings[HARDWARE_TYPE].name, value[HARDWARE_TYPE],
			      "must be 1, 2, 4 or 8");
}

/* Writes the names and numbers of the policies: "0 lru, 1 clock". */
static void list_policies(char *text, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0; i < VMM_POLICY_NAMED && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%u %s", i ? ", " : "", i,
					 vmm_policy_order(i)->name);
}

/* A policy of the embedder, as three functions. */
static vmm_status choose_functions(struct vmm_adapter *core, const struct vidmm_adapter_options *o,
				   uint64_t named)
{
	const struct vidmm_policy *policy = o->eviction_policy;
	char why[160];
	const struct vidmm_policy_description *description =
		vmm_policy_description(policy, why, sizeof(why));

	if (named != UNSET || o->eviction_rank)
		return vmm_refuse_reason(core->observe, VMM_INVALID_PARAMETER, 0, 0,
					 "Q-351: the options have an eviction_policy and %s: "
					 "expected one of the two",
					 o->eviction_rank ? "an eviction_rank"
							  : settings[EVICTION_POLICY].name);
	if (!description)
		return vmm_refuse_reason(core->observe, VMM_INVALID_PARAMETER, 0, 0, "%s", why);
	core->eviction = (struct vmm_adapter_eviction){
		.policy = description->flags & VIDMM_POLICY_VALUES_FALL ? VMM_POLICY_FALLING
									: VMM_POLICY_VALUED,
		.used = policy->used,
		.value = policy->value,
		.state_bytes = description->state_bytes,
		.scatters = description->flags & VIDMM_POLICY_SCATTERS,
	};
	return VMM_OK;
}

static vmm_status choose_policy(struct vmm_adapter *core, const struct vidmm_adapter_options *o,
				uint64_t named)
{
	char list[96];

	list_policies(list, sizeof(list));
	if (named != UNSET && named >= VMM_POLICY_NAMED)
		return vmm_refuse_reason(core->observe, VMM_INVALID_PARAMETER, 0, 0,
					 "Q-300: registry value %s is %llu: expected one of %s",
					 settings[EVICTION_POLICY].name, (unsigned long long)named,
					 list);
	if (named != UNSET && o->eviction_rank)
		return vmm_refuse_reason(core->observe, VMM_INVALID_PARAMETER, 0, 0,
					 "Q-303: registry value %s is %llu, and the options have "
					 "an eviction_rank: expected one of the two",
					 settings[EVICTION_POLICY].name, (unsigned long long)named);
	if (o->eviction_policy)
		return choose_functions(core, o, named);
	core->eviction = (struct vmm_adapter_eviction){
		.policy = o->eviction_rank ? (uint32_t)VMM_POLICY_RANKED
			  : named != UNSET ? (uint32_t)named
					   : VIDMM_EVICTION_POLICY_DEFAULT,
		.rank = o->eviction_rank,
		.context = o->eviction_context,
	};
	core->eviction.scatters = vmm_policy_order(core->eviction.policy)->scatters;
	return VMM_OK;
}

static vmm_status read_settings(struct vmm_adapter *core, const struct vidmm_adapter_options *o,
				uint64_t value[SETTINGS])
{
	struct vmm_adapter_identity *to = &core->identity;
	vmm_status status = VMM_OK;

	memset(value, 0, SETTINGS * sizeof(*value));
	value[DRIVER_VERSION] = (uint64_t)VIDMM_VERSION_MAJOR << 48 |
				(uint64_t)VIDMM_VERSION_MINOR << 32 | VIDMM_VERSION_PATCH << 16;
	value[HARDWARE_TYPE] = hardware_types[0].type;
	value[ATTRIBUTES] = value[EVICTION_POLICY] = UNSET;
	for (uint32_t i = 0; i < o->registry_count && vmm_ok(status); i++)
		status = read_setting(core, &o->registry[i], value);
	if (vmm_ok(status))
		status = choose_attributes(core, value);
	if (vmm_ok(status))
		status = choose_policy(core, o, value[EVICTION_POLICY]);
	to->vendor = (uint16_t)value[VENDOR_ID];
	to->device = (uint16_t)value[DEVICE_ID];
	to->subsystem_vendor = (uint16_t)value[SUBSYSTEM_VENDOR_ID];
	to->subsystem = (uint16_t)value[SUBSYSTEM_ID];
	to->revision = (uint8_t)value[REVISION_ID];
	to->driver_version = value[DRIVER_VERSION];
	to->hardware = value[HARDWARE] != 0;
	to->integrated = value[INTEGRATED] != 0;
	to->detachable = value[DETACHABLE] != 0;
	core->verify_driver = value[VERIFY_DRIVER] != 0;
	return status;
}

/* The two settings that clients read as registry values have a value in every registry. */
static void add_defaults(struct vmm_adapter_identity *to, const uint64_t value[SETTINGS])
{
	static const enum setting always[] = {HARDWARE_TYPE, ATTRIBUTES};

	for (uint32_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
		struct vmm_adapter_value *added = &to->values[to->value_count++];

		strcpy(added->name, settings[always[i]].name);
		added->value = value[always[i]];
	}
}

static vmm_status copy_values(struct vmm_adapter_identity *to,
			      const struct vidmm_adapter_options *o)
{
	/* Two more for add_defaults. */
	to->values = vmm_calloc(o->registry_count + 2u, sizeof(*to->values));
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
	uint64_t value[SETTINGS];
	vmm_status status = read_settings(core, o, value);

	if (!vmm_ok(status))
		return status;
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
	status = copy_values(to, o);
	if (vmm_ok(status))
		add_defaults(to, value);
	return status;
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
