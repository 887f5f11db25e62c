/* SPDX-License-Identifier: MIT */
/*
 * The registry values of vidmm/softgpu.h: names, defaults, and reading them. Runs once per adapter
 * at PASSIVE.
 */
#include "softgpu_private.h"

struct setting {
	PCWSTR name;
	size_t offset; /* offset in struct softgpu_settings */
	size_t size;   /* size of the member: 4 or 8 bytes */
	uint64_t fallback;
};

#define SETTING(name, member, fallback)                                          \
	{                                                                        \
		name, offsetof(struct softgpu_settings, member),                 \
			sizeof(((struct softgpu_settings *)0)->member), fallback \
	}

static const struct setting settings_table[] = {
	SETTING(L"ApertureSize", aperture_bytes, 256u << 20),
	SETTING(L"ApertureCoherent", aperture_coherent, 1),
	SETTING(L"VramCpuVisible", vram_cpu_visible, 1),
	SETTING(L"VramBanks", vram_banks, 0),
	SETTING(L"SwizzlingRanges", swizzling_ranges, 64),
	SETTING(L"DmaBufferSize", dma_buffer_bytes, 262144),
	SETTING(L"AllocationListSize", allocation_list_size, 1024),
	SETTING(L"PatchLocationListSize", patch_location_list_size, 8192),
	SETTING(L"DmaBufferSegmentSet", dma_buffer_segment_set, 2),
	SETTING(L"PagingBufferSize", paging_buffer_bytes, 65536),
	SETTING(L"PagingBufferSegment", paging_buffer_segment, 2),
	SETTING(L"PagingNode", paging_node, 1),
	SETTING(L"EngineBytesPerUs", engine_bytes_per_us, 20000),
	SETTING(L"HostLinkBytesPerUs", host_link_bytes_per_us, 0),
	SETTING(L"HostLinkLatencyNs", host_link_latency_ns, 0),
	SETTING(L"HostLinkPasses", host_link_passes, 1),
	SETTING(L"MoveContent", move_content, 1),
	SETTING(L"PrePatch", prepatch, 1),
	SETTING(L"PerEngineTdr", per_engine_tdr, 1),
	SETTING(L"PreemptionAware", preemption_aware, 0),
	SETTING(L"VideoPresentSources", source_count, 0),
	SETTING(L"RefreshRate", refresh_hz, 60),
	SETTING(L"FlipMmio", flip_mmio, 1),
	SETTING(L"LinkedAdapters", linked_adapters, 1),
	SETTING(L"InterfaceVersion", interface_version, 0),
	SETTING(L"Model", model, SOFTGPU_MODEL_WDDM1),
	SETTING(L"PageTableLevels", page_table_levels, 4),
	SETTING(L"VramPageSize", vram_page_bytes, SOFTGPU_PAGE),
	SETTING(L"HardwareQueues", hardware_queues, SOFTGPU_HARDWARE_QUEUES_NONE),
};

struct number_value {
	ULONG title_index, type, length;
	UCHAR data[8];
};

/*
 * The key may have no value with this name, or one that is no number; then *value stays. Any other
 * failure is returned: a setting that could not be read is not a default.
 */
static NTSTATUS query_number(HANDLE key, PCWSTR name, uint64_t *value)
{
	struct number_value answer;
	UNICODE_STRING string;
	ULONG length;

	RtlInitUnicodeString(&string, name);
	NTSTATUS status = ZwQueryValueKey(key, &string, KeyValuePartialInformation, &answer,
					  sizeof(answer), &length);
	if (status == STATUS_OBJECT_NAME_NOT_FOUND || status == STATUS_BUFFER_OVERFLOW)
		return STATUS_SUCCESS;
	if (!NT_SUCCESS(status))
		return status;
	if ((answer.type != REG_DWORD || answer.length != 4) &&
	    (answer.type != REG_QWORD || answer.length != 8))
		return STATUS_SUCCESS;
	*value = 0;
	memcpy(value, answer.data, answer.length);
	return STATUS_SUCCESS;
}

static void store(struct softgpu_settings *settings, const struct setting *setting, uint64_t value)
{
	uint32_t narrow = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;

	memcpy((char *)settings + setting->offset,
	       setting->size == 8 ? (const void *)&value : &narrow, setting->size);
}

/* The defaults that depend on the model, and what does not exist in it (SWZ-27). */
static void apply_model(struct softgpu_settings *settings)
{
	if (!settings->interface_version)
		settings->interface_version = softgpu_is_wddm2(settings)
						      ? SOFTGPU_INTERFACE_VERSION_WDDM2
						      : SOFTGPU_INTERFACE_VERSION_WDDM1;
	if (softgpu_is_wddm2(settings))
		settings->swizzling_ranges = 0;
}

int softgpu_settings_version_is_valid(const struct softgpu_settings *settings)
{
	uint32_t version = settings->interface_version;

	return softgpu_is_wddm2(settings) ? version >= DXGKDDI_INTERFACE_VERSION_WDDM2_0 &&
						    version <= SOFTGPU_INTERFACE_VERSION_LAST
					  : version <= SOFTGPU_INTERFACE_VERSION_WDDM1;
}

NTSTATUS softgpu_settings_read(PUNICODE_STRING registry_path, struct softgpu_settings *settings)
{
	OBJECT_ATTRIBUTES attributes;
	HANDLE key = NULL;
	size_t i;

	memset(settings, 0, sizeof(*settings));
	InitializeObjectAttributes(&attributes, registry_path,
				   OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, NULL, NULL);
	NTSTATUS status = ZwOpenKey(&key, KEY_READ, &attributes);
	if (status == STATUS_OBJECT_NAME_NOT_FOUND) {
		key = NULL;
		status = STATUS_SUCCESS;
	}
	for (i = 0; i < ARRAYSIZE(settings_table) && NT_SUCCESS(status); i++) {
		uint64_t value = settings_table[i].fallback;

		if (key)
			status = query_number(key, settings_table[i].name, &value);
		store(settings, &settings_table[i], value);
	}
	if (key)
		ZwClose(key);
	apply_model(settings);
	return status;
}

/* What WDDM 2.x demands of the segments (SEG-12, SEG-25), and what is not built with it. */
static int wddm2_is_valid(const struct softgpu_settings *settings)
{
	return settings->aperture_bytes && !settings->vram_banks && settings->move_content &&
	       settings->linked_adapters == 1 &&
	       (settings->page_table_levels == 2 || settings->page_table_levels == 4) &&
	       (settings->vram_page_bytes == SOFTGPU_PAGE ||
		settings->vram_page_bytes == SOFTGPU_LARGE_PAGE) &&
	       settings->hardware_queues <= SOFTGPU_HARDWARE_QUEUES_COMMANDS_RELEASE &&
	       (!settings->hardware_queues ||
		settings->interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM2_4);
}

/* Refuses values that this driver cannot work with. The port checks the segment sets. */
NTSTATUS softgpu_settings_check(const struct softgpu_settings *settings)
{
	if (settings->aperture_bytes % SOFTGPU_PAGE ||
	    settings->aperture_bytes > SOFTGPU_APERTURE_BASE ||
	    settings->paging_node >= SOFTGPU_NODES || settings->vram_banks > SOFTGPU_BANKS_MAX ||
	    settings->source_count > SOFTGPU_SOURCES_MAX || !settings->linked_adapters ||
	    settings->linked_adapters > SOFTGPU_LINKS ||
	    (settings->model != SOFTGPU_MODEL_WDDM1 && settings->model != SOFTGPU_MODEL_WDDM2) ||
	    (softgpu_is_wddm2(settings) ? !wddm2_is_valid(settings)
					: settings->hardware_queues != 0))
		return STATUS_DEVICE_CONFIGURATION_ERROR;
	return STATUS_SUCCESS;
}
