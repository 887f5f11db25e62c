/* SPDX-License-Identifier: MIT */
/*
 * The properties of an adapter. All are read when the object is created, so they can be read after
 * the adapter has ended (DXC-16).
 */
#include "dxcore/dxcore_private.h"

#include <string.h>

static const struct vmm_dxcore_facts *facts_of(IDXCoreAdapter1 *self)
{
	return &((struct vmm_dxcore_adapter *)self)->facts;
}

/* A property and its value; size 0: not supported. */
struct value {
	union {
		LUID luid;
		uint64_t u64;
		uint32_t u32;
		uint16_t u16;
		bool flag;
		DXCoreHardwareID id;
		DXCoreHardwareIDParts parts;
	} is;
	size_t size;
	const void *at; /* NULL: `is` */
};

static void set_u64(struct value *value, uint64_t is)
{
	value->is.u64 = is;
	value->size = sizeof(value->is.u64);
}

static void set_u32(struct value *value, uint32_t is)
{
	value->is.u32 = is;
	value->size = sizeof(value->is.u32);
}

static void set_granularity(struct value *value, const struct vmm_dxcore_facts *facts,
			    uint16_t granularity)
{
	value->is.u16 = granularity;
	value->size = facts->has_preemption ? sizeof(value->is.u16) : 0;
}

static void set_flag(struct value *value, bool is)
{
	value->is.flag = is;
	value->size = sizeof(value->is.flag);
}

/* DXC-18 */
static void set_id(struct value *value, const D3DKMT_DEVICE_IDS *ids)
{
	value->is.id = (DXCoreHardwareID){.vendorID = ids->VendorID,
					  .deviceID = ids->DeviceID,
					  .subSysID = ids->SubSystemID << 16 | ids->SubVendorID,
					  .revision = ids->RevisionID};
	value->size = sizeof(value->is.id);
}

static void set_parts(struct value *value, const D3DKMT_DEVICE_IDS *ids)
{
	value->is.parts = (DXCoreHardwareIDParts){.vendorID = ids->VendorID,
						  .deviceID = ids->DeviceID,
						  .subSystemID = ids->SubSystemID,
						  .subVendorID = ids->SubVendorID,
						  .revisionID = ids->RevisionID};
	value->size = sizeof(value->is.parts);
}

/* Properties with one number or structure. Returns whether it is one of them. */
static bool get_identity(const struct vmm_dxcore_facts *facts, uint32_t property,
			 struct value *value)
{
	switch (property) {
	case DXCoreAdapterProperty_InstanceLuid:
		value->is.luid = facts->luid;
		value->size = sizeof(value->is.luid);
		return true;
	case DXCoreAdapterProperty_DriverVersion:
		set_u64(value, facts->driver_version);
		return true;
	case DXCoreAdapterProperty_DriverDescription:
		value->at = facts->description;
		value->size = strlen(facts->description) + 1;
		return true;
	case DXCoreAdapterProperty_HardwareID:
		set_id(value, &facts->ids);
		return true;
	case DXCoreAdapterProperty_HardwareIDParts:
		set_parts(value, &facts->ids);
		return true;
	case DXCoreAdapterProperty_KmdModelVersion:
		set_u32(value, facts->kmd_model);
		return true;
	case DXCoreAdapterProperty_PhysicalAdapterCount:
		set_u32(value, facts->physical_adapters);
		return true;
	default:
		return false;
	}
}

/* DXC-14. Engines are known by D3DKMT functions that are not built: size 0. */
static void get_capability(const struct vmm_dxcore_facts *facts, uint32_t property,
			   struct value *value)
{
	switch (property) {
	case DXCoreAdapterProperty_ComputePreemptionGranularity:
		set_granularity(value, facts, facts->compute_preemption);
		break;
	case DXCoreAdapterProperty_GraphicsPreemptionGranularity:
		set_granularity(value, facts, facts->graphics_preemption);
		break;
	case DXCoreAdapterProperty_DedicatedAdapterMemory:
		set_u64(value, facts->memory.DedicatedVideoMemorySize);
		break;
	case DXCoreAdapterProperty_DedicatedSystemMemory:
		set_u64(value, facts->memory.DedicatedSystemMemorySize);
		break;
	case DXCoreAdapterProperty_SharedSystemMemory:
		set_u64(value, facts->memory.SharedSystemMemorySize);
		break;
	case DXCoreAdapterProperty_AcgCompatible:
		set_flag(value, facts->type.ACGSupported);
		break;
	case DXCoreAdapterProperty_IsHardware:
		set_flag(value, !facts->type.SoftwareDevice);
		break;
	case DXCoreAdapterProperty_IsIntegrated:
		set_flag(value, facts->type.HybridIntegrated);
		break;
	case DXCoreAdapterProperty_IsDetachable:
		set_flag(value, facts->type.Detachable);
		break;
	default:
		break;
	}
}

static void get_value(IDXCoreAdapter1 *self, uint32_t property, struct value *value)
{
	const struct vmm_dxcore_facts *facts = facts_of(self);

	*value = (struct value){.size = 0};
	if (!get_identity(facts, property, value))
		get_capability(facts, property, value);
}

/* DXC-15 */
static HRESULT check_value(const char *function, uint32_t property, const struct value *value)
{
	if (property > DXCoreAdapterProperty_AdapterEngineName)
		return vmm_dxcore_refuse_rule(DXGI_ERROR_INVALID_CALL, "DXC-15",
					      "%s: property %u is unknown: the last is %u",
					      function, property,
					      DXCoreAdapterProperty_AdapterEngineName);
	if (!value->size)
		return vmm_dxcore_refuse_reason(DXGI_ERROR_UNSUPPORTED, "DXC-15",
						"%s: the adapter does not support property %u",
						function, property);
	return S_OK;
}

bool vmm_dxcore_has_property(IDXCoreAdapter1 *self, DXCoreAdapterProperty property)
{
	struct value value;

	get_value(self, property, &value);
	return value.size != 0;
}

HRESULT vmm_dxcore_property_size(IDXCoreAdapter1 *self, DXCoreAdapterProperty property,
				 size_t *size)
{
	struct value value;

	if (!size)
		return vmm_dxcore_refuse_rule(
			E_POINTER, "DXC-15", "IDXCoreAdapter::GetPropertySize: bufferSize is NULL");
	get_value(self, property, &value);
	HRESULT result = check_value("IDXCoreAdapter::GetPropertySize", property, &value);
	if (SUCCEEDED(result))
		*size = value.size;
	return result;
}

HRESULT vmm_dxcore_property(IDXCoreAdapter1 *self, DXCoreAdapterProperty property, size_t size,
			    void *data)
{
	struct value value;

	if (!data)
		return vmm_dxcore_refuse_rule(E_POINTER, "DXC-15",
					      "IDXCoreAdapter::GetProperty: propertyData is NULL");
	get_value(self, property, &value);
	HRESULT result = check_value("IDXCoreAdapter::GetProperty", property, &value);
	if (FAILED(result))
		return result;
	if (size < value.size)
		return vmm_dxcore_refuse_rule(
			E_INVALIDARG, "DXC-15",
			"IDXCoreAdapter::GetProperty: property %u has %zu bytes, the buffer %zu",
			property, value.size, size);
	memset(data, 0, size); /* DXC-16 */
	memcpy(data, value.at ? value.at : &value.is, value.size);
	return S_OK;
}

/* No property that is built has an input. (DXC-28) */
HRESULT vmm_dxcore_property_with_input(IDXCoreAdapter1 *self, DXCoreAdapterProperty property,
				       size_t input_size, const void *input, size_t output_size,
				       void *output)
{
	if (vmm_dxcore_has_property(self, property) && (input || input_size))
		return vmm_dxcore_refuse_rule(
			E_INVALIDARG, "DXC-28",
			"IDXCoreAdapter1::GetPropertyWithInput: property %u has no input, the call "
			"has one of %zu bytes",
			property, input_size);
	return vmm_dxcore_property(self, property, output_size, output);
}
