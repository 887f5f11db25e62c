/* SPDX-License-Identifier: MIT */
/* The recorded calls of a scripted miniport, as text. */
#include "support/scripted_miniport.h"

#include <string.h>

static const char *const names[] = {
	[VIDMM_DDI_ADD_DEVICE] = "add_device",
	[VIDMM_DDI_LINK_DEVICE] = "link_device",
	[VIDMM_DDI_SET_ALLOCATION_BACKING_STORE] = "set_allocation_backing_store",
	[VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY] = "validate_update_allocation_property",
	[VIDMM_DDI_MAP_CPU_HOST_APERTURE] = "map_cpu_host_aperture",
	[VIDMM_DDI_UNMAP_CPU_HOST_APERTURE] = "unmap_cpu_host_aperture",
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
	[VIDMM_DDI_PRESENT] = "present",
	[VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS] = "set_source_address",
	[VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY] = "set_source_visibility",
	[VIDMM_DDI_CREATE_CPU_EVENT] = "create_cpu_event",
	[VIDMM_DDI_DESTROY_CPU_EVENT] = "destroy_cpu_event",
	[VIDMM_DDI_ESCAPE] = "escape",
	[VIDMM_DDI_CALIBRATE_GPU_CLOCK] = "calibrate_gpu_clock",
	[VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION] = "create_periodic",
	[VIDMM_DDI_DESTROY_PERIODIC_FRAME_NOTIFICATION] = "destroy_periodic",
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
	[VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL] = "notify_surprise_removal",
	[VIDMM_DDI_SET_POWER_STATE] = "set_power_state",
	[VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP] = "stop_and_release",
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
	[VIDMM_DDI_PRESENT_TO_HW_QUEUE] = "present_to_hw_queue",
};

const char *scripted_order(const struct scripted_miniport *m)
{
	static char text[4096];
	size_t used = 0;

	const struct scripted_call *call;

	text[0] = '\0';
	for (uint32_t i = 0; (call = scripted_at(m, i)) != NULL; i++) {
		const char *name = names[call->ddi];
		size_t length = strlen(name);

		if (used + length + 2 > sizeof(text))
			break;
		if (used)
			text[used++] = ' ';
		memcpy(text + used, name, length + 1);
		used += length;
	}
	return text;
}
