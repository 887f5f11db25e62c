/* SPDX-License-Identifier: MIT */
/*
 * Names of event types and of their reasons, as dumps and reports print them. Part of the stable
 * form of a line.
 */
#include "observe/observe.h"

static const char *const type_names[VIDMM_EVENT_TYPE_COUNT] = {
	[VIDMM_EVENT_NONE] = "none",       [VIDMM_EVENT_DOOR] = "door",
	[VIDMM_EVENT_DDI] = "ddi",         [VIDMM_EVENT_CALLBACK] = "callback",
	[VIDMM_EVENT_CREATE] = "create",   [VIDMM_EVENT_DESTROY] = "destroy",
	[VIDMM_EVENT_PAGING] = "paging",   [VIDMM_EVENT_RESIDENCY] = "residency",
	[VIDMM_EVENT_WAIT] = "wait",       [VIDMM_EVENT_SUBMIT] = "submit",
	[VIDMM_EVENT_QUEUE] = "queue",     [VIDMM_EVENT_FENCE] = "fence",
	[VIDMM_EVENT_LOCK] = "lock",       [VIDMM_EVENT_UNLOCK] = "unlock",
	[VIDMM_EVENT_RENAME] = "rename",   [VIDMM_EVENT_OFFER] = "offer",
	[VIDMM_EVENT_RECLAIM] = "reclaim", [VIDMM_EVENT_DISCARD] = "discard",
	[VIDMM_EVENT_SPLIT] = "split",     [VIDMM_EVENT_FINDING] = "finding",
	[VIDMM_EVENT_REASON] = "reason",   [VIDMM_EVENT_FATAL] = "fatal",
	[VIDMM_EVENT_FLUSH] = "flush",     [VIDMM_EVENT_RECOVERY] = "recovery",
	[VIDMM_EVENT_RANGE] = "range",     [VIDMM_EVENT_DISPLAY] = "display",
	[VIDMM_EVENT_SYNC] = "sync",       [VIDMM_EVENT_EXTENT] = "extent",
	[VIDMM_EVENT_PROCESS] = "process", [VIDMM_EVENT_SEGMENT] = "segment",
	[VIDMM_EVENT_VICTIM] = "victim",
};

static const char *const door_names[] = {
	[VIDMM_DOOR_ALLOCATE] = "allocate",
	[VIDMM_DOOR_DEALLOCATE] = "deallocate",
	[VIDMM_DOOR_LOCK] = "lock",
	[VIDMM_DOOR_UNLOCK] = "unlock",
	[VIDMM_DOOR_RENDER] = "render",
	[VIDMM_DOOR_CREATE_CONTEXT] = "create_context",
	[VIDMM_DOOR_DESTROY_CONTEXT] = "destroy_context",
	[VIDMM_DOOR_SET_PRIORITY] = "set_priority",
	[VIDMM_DOOR_QUERY_RESIDENCY] = "query_residency",
	[VIDMM_DOOR_OFFER] = "offer",
	[VIDMM_DOOR_RECLAIM] = "reclaim",
	[VIDMM_DOOR_OPEN_RESOURCE] = "open_resource",
	[VIDMM_DOOR_CREATE_DEVICE] = "create_device",
	[VIDMM_DOOR_DESTROY_DEVICE] = "destroy_device",
	[VIDMM_DOOR_OTHER] = "other",
	[VIDMM_DOOR_CREATE_PAGING_QUEUE] = "create_paging_queue",
	[VIDMM_DOOR_DESTROY_PAGING_QUEUE] = "destroy_paging_queue",
	[VIDMM_DOOR_MAKE_RESIDENT] = "make_resident",
	[VIDMM_DOOR_EVICT] = "evict",
	[VIDMM_DOOR_WAIT_FROM_CPU] = "wait_from_cpu",
	[VIDMM_DOOR_LOCK2] = "lock2",
	[VIDMM_DOOR_UNLOCK2] = "unlock2",
	[VIDMM_DOOR_CREATE_SYNC] = "create_sync",
	[VIDMM_DOOR_DESTROY_SYNC] = "destroy_sync",
	[VIDMM_DOOR_SIGNAL_FROM_CPU] = "signal_from_cpu",
	[VIDMM_DOOR_SHARE_OBJECTS] = "share_objects",
	[VIDMM_DOOR_OPEN_SYNC] = "open_sync",
	[VIDMM_DOOR_PRESENT] = "present",
	[VIDMM_DOOR_KEYED_MUTEX] = "keyed_mutex",
	[VIDMM_DOOR_ESCAPE] = "escape",
	[VIDMM_DOOR_HW_QUEUE] = "hw_queue",
	[VIDMM_DOOR_WAIT_FROM_GPU] = "wait_from_gpu",
	[VIDMM_DOOR_SIGNAL_FROM_GPU] = "signal_from_gpu",
	[VIDMM_DOOR_GPU_VIRTUAL_ADDRESS] = "gpu_virtual_address",
};

static const char *const ddi_names[] = {
	[VIDMM_DDI_ADD_DEVICE] = "add_device",
	[VIDMM_DDI_START_DEVICE] = "start_device",
	[VIDMM_DDI_STOP_DEVICE] = "stop_device",
	[VIDMM_DDI_REMOVE_DEVICE] = "remove_device",
	[VIDMM_DDI_QUERY_ADAPTER_INFO] = "query_adapter_info",
	[VIDMM_DDI_CREATE_DEVICE] = "create_device",
	[VIDMM_DDI_DESTROY_DEVICE] = "destroy_device",
	[VIDMM_DDI_CREATE_CONTEXT] = "create_context",
	[VIDMM_DDI_DESTROY_CONTEXT] = "destroy_context",
	[VIDMM_DDI_CREATE_ALLOCATION] = "create_allocation",
	[VIDMM_DDI_DESTROY_ALLOCATION] = "destroy_allocation",
	[VIDMM_DDI_OPEN_ALLOCATION] = "open_allocation",
	[VIDMM_DDI_CLOSE_ALLOCATION] = "close_allocation",
	[VIDMM_DDI_RENDER] = "render",
	[VIDMM_DDI_PATCH] = "patch",
	[VIDMM_DDI_SUBMIT_COMMAND] = "submit_command",
	[VIDMM_DDI_BUILD_PAGING_BUFFER] = "build_paging_buffer",
	[VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE] = "acquire_swizzling_range",
	[VIDMM_DDI_RELEASE_SWIZZLING_RANGE] = "release_swizzling_range",
	[VIDMM_DDI_QUERY_CURRENT_FENCE] = "query_current_fence",
	[VIDMM_DDI_UNLOAD] = "unload",
	[VIDMM_DDI_PREEMPT_COMMAND] = "preempt_command",
	[VIDMM_DDI_CANCEL_COMMAND] = "cancel_command",
	[VIDMM_DDI_COLLECT_DBG_INFO] = "collect_dbg_info",
	[VIDMM_DDI_RESET_FROM_TIMEOUT] = "reset_from_timeout",
	[VIDMM_DDI_RESTART_FROM_TIMEOUT] = "restart_from_timeout",
	[VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP] = "query_dependent_engine_group",
	[VIDMM_DDI_QUERY_ENGINE_STATUS] = "query_engine_status",
	[VIDMM_DDI_RESET_ENGINE] = "reset_engine",
	[VIDMM_DDI_SET_POWER_STATE] = "set_power_state",
	[VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP] =
		"stop_device_and_release_post_display_ownership",
	[VIDMM_DDI_GET_STANDARD_ALLOCATION_DRIVER_DATA] = "get_standard_allocation_driver_data",
	[VIDMM_DDI_DESCRIBE_ALLOCATION] = "describe_allocation",
	[VIDMM_DDI_LINK_DEVICE] = "link_device",
	[VIDMM_DDI_SET_ALLOCATION_BACKING_STORE] = "set_allocation_backing_store",
	[VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL] = "notify_surprise_removal",
	[VIDMM_DDI_CREATE_PROCESS] = "create_process",
	[VIDMM_DDI_DESTROY_PROCESS] = "destroy_process",
	[VIDMM_DDI_GET_ROOT_PAGE_TABLE_SIZE] = "get_root_page_table_size",
	[VIDMM_DDI_SET_ROOT_PAGE_TABLE] = "set_root_page_table",
	[VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL] = "submit_command_virtual",
	[VIDMM_DDI_VALIDATE_SUBMIT_COMMAND] = "validate_submit_command",
	[VIDMM_DDI_CALIBRATE_GPU_CLOCK] = "calibrate_gpu_clock",
	[VIDMM_DDI_PRESENT_TO_HW_QUEUE] = "present_to_hw_queue",
	[VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY] = "validate_update_allocation_property",
	[VIDMM_DDI_MAP_CPU_HOST_APERTURE] = "map_cpu_host_aperture",
	[VIDMM_DDI_UNMAP_CPU_HOST_APERTURE] = "unmap_cpu_host_aperture",
	[VIDMM_DDI_PRESENT] = "present",
	[VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS] = "set_vidpn_source_address",
	[VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY] = "set_vidpn_source_visibility",
	[VIDMM_DDI_CREATE_CPU_EVENT] = "create_cpu_event",
	[VIDMM_DDI_DESTROY_CPU_EVENT] = "destroy_cpu_event",
	[VIDMM_DDI_ESCAPE] = "escape",
	[VIDMM_DDI_GET_NODE_METADATA] = "get_node_metadata",
	[VIDMM_DDI_CREATE_HW_CONTEXT] = "create_hw_context",
	[VIDMM_DDI_DESTROY_HW_CONTEXT] = "destroy_hw_context",
	[VIDMM_DDI_CREATE_HW_QUEUE] = "create_hw_queue",
	[VIDMM_DDI_DESTROY_HW_QUEUE] = "destroy_hw_queue",
	[VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE] = "submit_command_to_hw_queue",
	[VIDMM_DDI_SETUP_PRIORITY_BANDS] = "setup_priority_bands",
	[VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES] = "set_context_scheduling_properties",
	[VIDMM_DDI_SUSPEND_CONTEXT] = "suspend_context",
	[VIDMM_DDI_RESUME_CONTEXT] = "resume_context",
	[VIDMM_DDI_RESET_HW_ENGINE] = "reset_hw_engine",
	[VIDMM_DDI_RESUME_HW_ENGINE] = "resume_hw_engine",
	[VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION] = "create_periodic_frame_notification",
	[VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION] = "destroy_periodic_frame_notification",
};

static const char *const callback_names[] = {
	[VIDMM_CB_NOTIFY_INTERRUPT] = "notify_interrupt",
	[VIDMM_CB_QUEUE_DPC] = "queue_dpc",
	[VIDMM_CB_NOTIFY_DPC] = "notify_dpc",
	[VIDMM_CB_SYNCHRONIZE_EXECUTION] = "synchronize_execution",
	[VIDMM_CB_GET_DEVICE_INFORMATION] = "get_device_information",
	[VIDMM_CB_GET_HANDLE_DATA] = "get_handle_data",
	[VIDMM_CB_OTHER] = "other",
};

static const char *const paging_names[] = {
	[VIDMM_PAGING_TRANSFER] = "transfer",
	[VIDMM_PAGING_FILL] = "fill",
	[VIDMM_PAGING_DISCARD_CONTENT] = "discard_content",
	[VIDMM_PAGING_MAP_APERTURE] = "map_aperture",
	[VIDMM_PAGING_UNMAP_APERTURE] = "unmap_aperture",
	[VIDMM_PAGING_SPECIAL_LOCK_TRANSFER] = "special_lock_transfer",
	[VIDMM_PAGING_VIRTUAL_TRANSFER] = "virtual_transfer",
	[VIDMM_PAGING_VIRTUAL_FILL] = "virtual_fill",
	[VIDMM_PAGING_INIT_CONTEXT_RESOURCE] = "init_context_resource",
	[VIDMM_PAGING_UPDATE_PAGE_TABLE] = "update_page_table",
	[VIDMM_PAGING_FLUSH_TLB] = "flush_tlb",
	[VIDMM_PAGING_UPDATE_CONTEXT_ALLOCATION] = "update_context_allocation",
	[VIDMM_PAGING_NOTIFY_RESIDENCY] = "notify_residency",
	[VIDMM_PAGING_NOTIFY_ALLOC] = "notify_alloc",
};

static const char *const residency_names[] = {
	[VIDMM_RESIDENCY_REFERENCED] = "referenced",
	[VIDMM_RESIDENCY_PRESSURE] = "pressure",
	[VIDMM_RESIDENCY_LOCK] = "lock",
	[VIDMM_RESIDENCY_RENDER_LOCKED] = "render_locked",
	[VIDMM_RESIDENCY_DESTROYED] = "destroyed",
	[VIDMM_RESIDENCY_DISCARDED] = "discarded",
	[VIDMM_RESIDENCY_STOP] = "stop",
	[VIDMM_RESIDENCY_TRIM] = "trim",
	[VIDMM_RESIDENCY_PINNED] = "pinned",
	[VIDMM_RESIDENCY_RESET] = "reset",
	[VIDMM_RESIDENCY_POWER] = "power",
	[VIDMM_RESIDENCY_MOVED] = "moved",
};

static const char *const victim_names[] = {
	[VIDMM_VICTIM_CAPACITY] = "capacity",
	[VIDMM_VICTIM_FRAGMENTATION] = "fragmentation",
};

static const char *const wait_names[] = {
	[VIDMM_WAIT_LOCK] = "lock",
	[VIDMM_WAIT_SPACE] = "space",
	[VIDMM_WAIT_PAGING_BUFFER] = "paging_buffer",
	[VIDMM_WAIT_DMA_BUFFER] = "dma_buffer",
	[VIDMM_WAIT_DESTROY] = "destroy",
	[VIDMM_WAIT_STOP] = "stop",
	[VIDMM_WAIT_POWER] = "power",
	[VIDMM_WAIT_DECLINED] = "declined",
	[VIDMM_WAIT_FENCE] = "fence",
	[VIDMM_WAIT_PRESENT] = "present",
	[VIDMM_WAIT_HEAP] = "heap",
};

static const char *const queue_names[] = {"render", "paging"};
static const char *const rename_names[] = {"new", "reused"};
static const char *const range_names[] = {
	[VIDMM_RANGE_ACQUIRED] = "acquired",   [VIDMM_RANGE_RELEASED] = "released",
	[VIDMM_RANGE_RECLAIMED] = "reclaimed", [VIDMM_RANGE_REFUSED] = "refused",
	[VIDMM_RANGE_FALLBACK] = "fallback",
};
static const char *const flush_names[] = {
	[VIDMM_FLUSH_TO_GPU] = "to_gpu",
	[VIDMM_FLUSH_TO_CPU] = "to_cpu",
	[VIDMM_FLUSH_REQUESTED] = "requested",
};

static const char *const recovery_names[] = {
	[VIDMM_RECOVERY_OVERDUE] = "overdue",     [VIDMM_RECOVERY_MISSED] = "missed",
	[VIDMM_RECOVERY_TIMEOUT] = "timeout",     [VIDMM_RECOVERY_RESET] = "reset",
	[VIDMM_RECOVERY_RESTARTED] = "restarted", [VIDMM_RECOVERY_DEVICE_LOST] = "device_lost",
	[VIDMM_RECOVERY_IGNORED] = "ignored",     [VIDMM_RECOVERY_PREEMPT] = "preempt",
	[VIDMM_RECOVERY_PREEMPTED] = "preempted", [VIDMM_RECOVERY_ENGINE_RESET] = "engine_reset",
	[VIDMM_RECOVERY_DENIED] = "denied",
};

static const char *const sync_names[] = {
	[VIDMM_SYNC_HELD] = "held",         [VIDMM_SYNC_RELEASED] = "released",
	[VIDMM_SYNC_GIVEN_UP] = "given_up", [VIDMM_SYNC_QUEUED] = "queued",
	[VIDMM_SYNC_SIGNALED] = "signaled", [VIDMM_SYNC_DROPPED] = "dropped",
};

static const char *const process_names[] = {
	[VIDMM_PROCESS_OPENED] = "opened",
	[VIDMM_PROCESS_CLOSED] = "closed",
};

struct name_table {
	const char *const *names;
	uint32_t count;
};
#define NAMES(table)                             \
	{                                        \
		(table), VMM_ARRAY_LENGTH(table) \
	}

static const struct name_table reason_names[VIDMM_EVENT_TYPE_COUNT] = {
	[VIDMM_EVENT_DOOR] = NAMES(door_names),
	[VIDMM_EVENT_DDI] = NAMES(ddi_names),
	[VIDMM_EVENT_CALLBACK] = NAMES(callback_names),
	[VIDMM_EVENT_PAGING] = NAMES(paging_names),
	[VIDMM_EVENT_RESIDENCY] = NAMES(residency_names),
	[VIDMM_EVENT_WAIT] = NAMES(wait_names),
	[VIDMM_EVENT_VICTIM] = NAMES(victim_names),
	[VIDMM_EVENT_QUEUE] = NAMES(queue_names),
	[VIDMM_EVENT_RENAME] = NAMES(rename_names),
	[VIDMM_EVENT_FLUSH] = NAMES(flush_names),
	[VIDMM_EVENT_RECOVERY] = NAMES(recovery_names),
	[VIDMM_EVENT_RANGE] = NAMES(range_names),
	[VIDMM_EVENT_SYNC] = NAMES(sync_names),
	[VIDMM_EVENT_PROCESS] = NAMES(process_names),
};

const char *vmm_observe_type_name(uint32_t type)
{
	return type < VIDMM_EVENT_TYPE_COUNT && type_names[type] ? type_names[type] : "unknown";
}

const char *vmm_observe_reason_name(uint32_t type, uint32_t reason)
{
	const struct name_table *table;

	if (type >= VIDMM_EVENT_TYPE_COUNT)
		return "";
	table = &reason_names[type];
	return reason < table->count && table->names[reason] ? table->names[reason] : "";
}
