/* SPDX-License-Identifier: MIT */
/*
 * D3DKMTQueryAdapterInfo: one record per type, built from the adapter's identity and copied out
 * once it is complete.
 */
#include "kmt_calls.h"

#include <stdio.h>
#include <string.h>

/*
 * The records of the types that are built. The description has its own function, because it is
 * larger than all others together.
 */
union record {
	uint32_t value;
	D3DKMT_SEGMENTSIZEINFO sizes;
	D3DKMT_SEGMENTGROUPSIZEINFO groups;
	D3DKMT_ADAPTERADDRESS address;
	D3DKMT_WDDM_1_2_CAPS caps_1_2;
	D3DKMT_QUERY_DEVICE_IDS ids;
	D3DKMT_QUERY_ADAPTER_UNIQUE_GUID guid;
	D3DKMT_CROSSADAPTERRESOURCE_SUPPORT cross_adapter;
	BOOLEAN paravirtualized;
	D3DKMT_UMD_DRIVER_VERSION version; /* and D3DKMT_KMD_DRIVER_VERSION */
};

struct query {
	struct vmm_process *process;
	struct vmm_adapter *adapter;
	D3DKMT_QUERYADAPTERINFO args;
	union record record;
	size_t bytes; /* size of the record */
};

static NTSTATUS refuse_query(const struct query *q, const char *rule, const char *what,
			     uint64_t value)
{
	return vmm_refuse_rule(q->adapter->observe, STATUS_INVALID_PARAMETER, rule, q->process->id,
			       q->args.hAdapter, "D3DKMTQueryAdapterInfo: type %u: %s (%llu)",
			       (unsigned)q->args.Type, what, (unsigned long long)value);
}

static NTSTATUS check_buffer(const struct query *q, size_t bytes)
{
	if (!q->args.pPrivateDriverData)
		return refuse_query(q, "QAI-01", "the buffer is NULL, bytes needed", bytes);
	if (q->args.PrivateDriverDataSize < bytes)
		return refuse_query(q, "QAI-01",
				    "the buffer is smaller than the record, bytes needed", bytes);
	return STATUS_SUCCESS;
}

/* The newest version of WDDM whose interface version the miniport's is not below. (QAI-08) */
static uint32_t driver_version(const struct vmm_adapter *adapter)
{
	static const struct {
		uint32_t interface_version, driver_version;
	} newest_first[] = {
		{DXGKDDI_INTERFACE_VERSION_WDDM3_2, KMT_DRIVERVERSION_WDDM_3_2},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_1, KMT_DRIVERVERSION_WDDM_3_1},
		{DXGKDDI_INTERFACE_VERSION_WDDM3_0, KMT_DRIVERVERSION_WDDM_3_0},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_9, KMT_DRIVERVERSION_WDDM_2_9},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_8, KMT_DRIVERVERSION_WDDM_2_8},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_7, KMT_DRIVERVERSION_WDDM_2_7},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_6, KMT_DRIVERVERSION_WDDM_2_6},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_5, KMT_DRIVERVERSION_WDDM_2_5},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_4, KMT_DRIVERVERSION_WDDM_2_4},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_3, KMT_DRIVERVERSION_WDDM_2_3},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_2, KMT_DRIVERVERSION_WDDM_2_2},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_1, KMT_DRIVERVERSION_WDDM_2_1},
		{DXGKDDI_INTERFACE_VERSION_WDDM2_0, KMT_DRIVERVERSION_WDDM_2_0},
		{DXGKDDI_INTERFACE_VERSION_WDDM1_3, KMT_DRIVERVERSION_WDDM_1_3},
		{DXGKDDI_INTERFACE_VERSION_WIN8, KMT_DRIVERVERSION_WDDM_1_2},
		{DXGKDDI_INTERFACE_VERSION_WIN7, KMT_DRIVERVERSION_WDDM_1_1},
		{0, KMT_DRIVERVERSION_WDDM_1_0},
	};
	uint32_t i = 0;

	while (adapter->interface_version < newest_first[i].interface_version)
		i++;
	return newest_first[i].driver_version;
}

/* SEG-05 */
static D3DKMT_SEGMENTSIZEINFO segment_sizes(struct vmm_adapter *adapter)
{
	struct vmm_memory_statistics f;

	vmm_memory_statistics(adapter, &f);
	return (D3DKMT_SEGMENTSIZEINFO){.DedicatedVideoMemorySize = f.dedicated_video_bytes,
					.DedicatedSystemMemorySize = f.dedicated_system_bytes,
					.SharedSystemMemorySize = f.shared_system_bytes};
}

NTSTATUS vmm_kmt_check_physical_adapter(const struct vmm_process *process,
					const struct vmm_adapter *adapter, uint32_t index)
{
	if (!index)
		return STATUS_SUCCESS;
	if (index < adapter->physical_adapters)
		return vmm_refuse_reason(
			adapter->observe, STATUS_NOT_SUPPORTED, process->id, 0,
			"D3DKMTQueryAdapterInfo: physical adapter %u of a link: only the lead "
			"adapter, 0, is built",
			index);
	return vmm_refuse_rule(
		adapter->observe, STATUS_INVALID_PARAMETER, "QAI-07", process->id, 0,
		"D3DKMTQueryAdapterInfo: PhysicalAdapterIndex %u of an adapter that has %u", index,
		adapter->physical_adapters);
}

/* Reads the index of a physical adapter, the first word of the caller's record (QAI-07). */
static NTSTATUS read_index(struct query *q, size_t bytes)
{
	uint32_t index;
	NTSTATUS status = check_buffer(q, bytes);

	if (!NT_SUCCESS(status))
		return status;
	memcpy(&index, q->args.pPrivateDriverData, sizeof(index));
	status = vmm_kmt_check_physical_adapter(q->process, q->adapter, index);
	if (!NT_SUCCESS(status))
		return status;
	q->bytes = bytes;
	return STATUS_SUCCESS;
}

static NTSTATUS device_ids(struct query *q)
{
	NTSTATUS status = read_index(q, sizeof(q->record.ids));
	const struct vmm_adapter_identity *is = &q->adapter->identity;

	if (!NT_SUCCESS(status))
		return status;
	q->record.ids.DeviceIds = (D3DKMT_DEVICE_IDS){
		.VendorID = is->vendor,
		.DeviceID = is->device,
		.SubVendorID = is->subsystem_vendor,
		.SubSystemID = is->subsystem,
		.RevisionID = is->revision,
		.BusType = is->bus_type,
	};
	return STATUS_SUCCESS;
}

static NTSTATUS segment_groups(struct query *q)
{
	NTSTATUS status = read_index(q, sizeof(q->record.groups));

	if (!NT_SUCCESS(status))
		return status;
	q->record.groups.LegacyInfo = segment_sizes(q->adapter);
	q->record.groups.LocalMemory = q->record.groups.LegacyInfo.DedicatedVideoMemorySize;
	q->record.groups.NonLocalMemory = q->record.groups.LegacyInfo.DedicatedSystemMemorySize +
					  q->record.groups.LegacyInfo.SharedSystemMemorySize;
	return STATUS_SUCCESS;
}

static NTSTATUS address(struct query *q)
{
	const struct vmm_adapter_identity *is = &q->adapter->identity;

	q->record.address = (D3DKMT_ADAPTERADDRESS){.BusNumber = is->bus, .DeviceNumber = is->slot};
	q->bytes = sizeof(q->record.address);
	return STATUS_SUCCESS;
}

/* Derived from the device's bus and slot, so it is the same in every run. */
static NTSTATUS guid(struct query *q)
{
	const struct vmm_adapter_identity *is = &q->adapter->identity;
	char text[40];

	snprintf(text, sizeof(text), "{%04x%04x-766d-4d6d-8000-%06x%06x}", is->vendor, is->device,
		 is->bus & 0xFFFFFF, is->slot & 0xFFFFFF);
	for (size_t i = 0; i < sizeof(text); i++) {
		q->record.guid.AdapterUniqueGUID[i] = (WCHAR)text[i];
		if (!text[i])
			break;
	}
	q->bytes = sizeof(q->record.guid);
	return STATUS_SUCCESS;
}

static NTSTATUS caps_1_2(struct query *q)
{
	const struct vmm_adapter_identity *is = &q->adapter->identity;
	D3DKMT_WDDM_1_2_CAPS *caps = &q->record.caps_1_2;

	caps->PreemptionCaps.GraphicsPreemptionGranularity =
		(D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY)is->graphics_preemption;
	caps->PreemptionCaps.ComputePreemptionGranularity =
		(D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY)is->compute_preemption;
	caps->SupportNonVGA = is->non_vga;
	caps->SupportSmoothRotation = is->smooth_rotation;
	caps->SupportPerEngineTDR = is->per_engine_tdr;
	q->bytes = sizeof(q->record.caps_1_2);
	return STATUS_SUCCESS;
}

static NTSTATUS value(struct query *q, uint32_t is)
{
	q->record.value = is;
	q->bytes = sizeof(q->record.value);
	return STATUS_SUCCESS;
}

static NTSTATUS caps_1_3(struct query *q)
{
	D3DKMT_WDDM_1_3_CAPS caps = {.Value = 0};

	caps.SupportCrossAdapterResource = q->adapter->identity.cross_adapter_resource;
	return value(q, caps.Value);
}

/* The support that a miniport of WDDM 1.3 reports suffices for copies. */
static NTSTATUS cross_adapter(struct query *q)
{
	q->record.cross_adapter.SupportTier =
		q->adapter->identity.cross_adapter_resource
			? D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER_COPY
			: D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER_NONE;
	q->bytes = sizeof(q->record.cross_adapter);
	return STATUS_SUCCESS;
}

/* The device of a miniport is simulated here, unless its settings say otherwise. (DXC-26) */
static uint32_t adapter_type(const struct vmm_adapter *adapter)
{
	D3DKMT_ADAPTERTYPE kind = {.Value = 0};

	kind.RenderSupported = 1;
	kind.SoftwareDevice = !adapter->identity.hardware;
	kind.HybridIntegrated = adapter->identity.integrated;
	kind.Detachable = adapter->identity.detachable;
	return kind.Value;
}

/* Both drivers of an adapter have one version. (DXC-17) */
static NTSTATUS version(struct query *q)
{
	q->record.version.DriverVersion.QuadPart = (LONGLONG)q->adapter->identity.driver_version;
	q->bytes = sizeof(q->record.version);
	return STATUS_SUCCESS;
}

/* Supported and enabled if the host enabled hardware scheduling; by default it is not. (SCH-10) */
static uint32_t caps_2_7(const struct vmm_adapter *adapter)
{
	D3DKMT_WDDM_2_7_CAPS caps = {.Value = 0};

	caps.HwSchSupported = caps.HwSchEnabled = adapter->hw_queues;
	return caps.Value;
}

static NTSTATUS not_built(const struct query *q)
{
	if ((uint32_t)q->args.Type > KMTQAITYPE_WDDM_3_0_CAPS)
		return refuse_query(q, "QAI-03", "unknown type, the last is",
				    KMTQAITYPE_WDDM_3_0_CAPS);
	return vmm_refuse_reason(q->adapter->observe, STATUS_NOT_SUPPORTED, q->process->id, 0,
				 "D3DKMTQueryAdapterInfo: type %u is not built",
				 (unsigned)q->args.Type);
}

static NTSTATUS build_record(struct query *q)
{
	switch ((uint32_t)q->args.Type) {
	case KMTQAITYPE_GETSEGMENTSIZE:
		q->record.sizes = segment_sizes(q->adapter);
		q->bytes = sizeof(q->record.sizes);
		return STATUS_SUCCESS;
	case KMTQAITYPE_ADAPTERADDRESS:
	case KMTQAITYPE_ADAPTERADDRESS_RENDER:
		return address(q);
	case KMTQAITYPE_CHECKDRIVERUPDATESTATUS:
	case KMTQAITYPE_CHECKDRIVERUPDATESTATUS_RENDER:
		return value(q, FALSE);
	case KMTQAITYPE_DRIVERVERSION:
	case KMTQAITYPE_DRIVERVERSION_RENDER:
		return value(q, driver_version(q->adapter));
	case KMTQAITYPE_ADAPTERTYPE:
	case KMTQAITYPE_ADAPTERTYPE_RENDER:
		return value(q, adapter_type(q->adapter));
	case KMTQAITYPE_UMD_DRIVER_VERSION:
	case KMTQAITYPE_KMD_DRIVER_VERSION:
		return version(q);
	case KMTQAITYPE_WDDM_1_2_CAPS:
	case KMTQAITYPE_WDDM_1_2_CAPS_RENDER:
		return q->adapter->interface_version >= DXGKDDI_INTERFACE_VERSION_WIN8
			       ? caps_1_2(q)
			       : not_built(q);
	case KMTQAITYPE_WDDM_1_3_CAPS:
	case KMTQAITYPE_WDDM_1_3_CAPS_RENDER:
		return q->adapter->interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM1_3
			       ? caps_1_3(q)
			       : not_built(q);
	case KMTQAITYPE_WDDM_2_7_CAPS:
		return q->adapter->interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM2_7
			       ? value(q, caps_2_7(q->adapter))
			       : not_built(q);
	case KMTQAITYPE_PHYSICALADAPTERCOUNT:
		return value(q, q->adapter->physical_adapters);
	case KMTQAITYPE_PHYSICALADAPTERDEVICEIDS:
		return device_ids(q);
	case KMTQAITYPE_GETSEGMENTGROUPSIZE:
		return segment_groups(q);
	case KMTQAITYPE_QUERY_ADAPTER_UNIQUE_GUID:
		return guid(q);
	case KMTQAITYPE_PARAVIRTUALIZATION_RENDER:
		q->record.paravirtualized = FALSE;
		q->bytes = sizeof(q->record.paravirtualized);
		return STATUS_SUCCESS;
	case KMTQAITYPE_CROSSADAPTERRESOURCE_SUPPORT:
		return cross_adapter(q);
	default:
		return not_built(q);
	}
}

/* Clients print the text without a conversion. (QAI-06) */
static NTSTATUS description(const struct query *q)
{
	D3DKMT_DRIVER_DESCRIPTION *to = q->args.pPrivateDriverData;
	NTSTATUS status = check_buffer(q, sizeof(*to));
	const char *text = q->adapter->identity.description;

	if (!NT_SUCCESS(status))
		return status;
	memset(to, 0, sizeof(*to));
	for (size_t i = 0; text[i]; i++)
		to->DriverDescription[i] = (WCHAR)text[i];
	return STATUS_SUCCESS;
}

/* A record that only the miniport and its user-mode driver know. The caller determines its size. */
static NTSTATUS driver_private(const struct query *q)
{
	uint32_t size = q->args.PrivateDriverDataSize;
	NTSTATUS status = check_buffer(q, 1);
	void *data;

	if (!NT_SUCCESS(status))
		return status;
	/* Some miniports read what their user-mode driver stored there. */
	status =
		vmm_copy_in(q->args.pPrivateDriverData, size, VMM_DOOR_PRIVATE_BYTES_MAX, 1, &data);
	if (status == VMM_INVALID_PARAMETER)
		return refuse_query(q, "QAI-01", "more private bytes than the limit", size);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_process *before = vmm_calling_process_set(q->adapter->os, q->process);
	status = q->adapter->identity.driver_private(q->adapter->port, data, size);
	vmm_calling_process_set(q->adapter->os, before);
	if (NT_SUCCESS(status))
		memcpy(q->args.pPrivateDriverData, data, size);
	vmm_free(data);
	return NT_SUCCESS(status) ? STATUS_SUCCESS : status; /* QAI-05 */
}

static NTSTATUS fill_record(struct query *q)
{
	NTSTATUS status = build_record(q);

	if (NT_SUCCESS(status))
		status = check_buffer(q, q->bytes);
	if (NT_SUCCESS(status)) /* no byte behind the record is written (QAI-02) */
		memcpy(q->args.pPrivateDriverData, &q->record, q->bytes);
	return status;
}

static NTSTATUS by_type(struct query *q)
{
	switch ((uint32_t)q->args.Type) {
	case KMTQAITYPE_UMDRIVERPRIVATE:
		return driver_private(q);
	case KMTQAITYPE_QUERYREGISTRY:
		return vmm_kmt_query_registry(q->process, q->adapter, &q->args);
	case KMTQAITYPE_DRIVER_DESCRIPTION:
	case KMTQAITYPE_DRIVER_DESCRIPTION_RENDER:
		return description(q);
	default:
		return fill_record(q); /* success is STATUS_SUCCESS (QAI-05) */
	}
}

NTSTATUS vmm_kmt_query_adapter(struct vmm_door_call *call, struct vmm_adapter *adapter,
			       const D3DKMT_QUERYADAPTERINFO *args)
{
	struct query q = {.process = call->process, .adapter = adapter, .args = *args};

	return by_type(&q);
}
