/* SPDX-License-Identifier: MIT */
/*
 * host_local: the memory manager in this process. A replay has one host and one adapter on softgpu,
 * and each device has a process object.
 */
#include <d3dkmddi.h>
#include <d3dumddi.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vidmm/softgpu.h>

#include "crash.h"
#include "command_adapter.h"
#include "next_uses.h"
#include "statistics.h"
#include "times.h"
#include "umd.h"
#include "victims.h"

struct local_device {
	struct host_device base; /* first */
	struct vidmm_process *process;
	struct vidmm_device *handle;
};

/* ---- findings: events arrive on any thread ---- */

static void on_notable(void *context, const struct vidmm_event *event, const char *text)
{
	struct world *world = context;
	char line[256];

	pthread_mutex_lock(&world->lock);
	if (event->type == VIDMM_EVENT_REASON) {
		snprintf(world->last_reason, sizeof(world->last_reason), "%s", text ? text : "");
	} else if (event->type == VIDMM_EVENT_FATAL) {
		snprintf(line, sizeof(line),
			 "FATAL: bug check 0x%" PRIx64 " (0x%" PRIx64 ", 0x%" PRIx64 ", 0x%" PRIx64
			 ")%s%s",
			 event->arg[0], event->arg[1], event->arg[2], event->arg[3],
			 text ? ": " : "", text ? text : "");
		world_keep_finding(world, line);
	} else {
		world_keep_finding(world, text ? text : "UNKNOWN: a finding without text");
	}
	pthread_mutex_unlock(&world->lock);
}

static void on_deadlock(void *context, const char *report)
{
	struct world *world = context;
	char line[240];

	world->deadlocked = true;
	if (crash_deadlock(line, sizeof(line)))
		world_finding(world, line);
	world_message(world, "deadlock: no thread can run\n%s", report);
}

/* ---- start and stop ---- */

static enum replay_status start_host(struct world *world)
{
	const struct replay_options *options = world->options;
	struct vidmm_host_options host_options = {
		.struct_size = sizeof(host_options),
		.kind = options->host_kind,
		.seed = options->seed,
		.switch_per_1024 = options->switch_per_1024,
		.hash_events = options->hash_events && options->host_kind == VIDMM_HOST_SIM,
		.deadlock = on_deadlock,
		.deadlock_context = world,
	};
	vidmm_status status = vidmm_host_create(&host_options, &world->host);

	if (status < 0) {
		world_message(world, "cannot create a host: status 0x%08" PRIX32, (uint32_t)status);
		return REPLAY_ENVIRONMENT;
	}
	world->finding_subscription = vidmm_subscribe(world->host,
						      (uint64_t)1 << VIDMM_EVENT_FINDING |
							      (uint64_t)1 << VIDMM_EVENT_REASON |
							      (uint64_t)1 << VIDMM_EVENT_FATAL,
						      on_notable, world);
	if (options->event)
		world->event_subscription = vidmm_subscribe(world->host, UINT64_MAX, options->event,
							    options->event_context);
	if (world->block_bytes)
		world->history = history_create(world->host);
	if (!world->finding_subscription || (options->event && !world->event_subscription) ||
	    (world->block_bytes && !world->history)) {
		world_message(world, "out of memory");
		return REPLAY_ENVIRONMENT;
	}
	return REPLAY_CLEAN;
}

/* The policy `reference`. On sim, where it is called on the thread that drives the processes. */
static uint64_t rank_by_next_use(void *context, const struct vidmm_eviction_candidate *candidate)
{
	struct world *world = context;
	unsigned i;

	for (i = 0; i < world->process_count; i++) {
		const struct umd *umd = world->processes[i];

		if (umd && umd_process_id(umd) == candidate->process)
			return next_uses_distance(world->next_uses, i, umd, candidate->allocation);
	}
	return UINT64_MAX;
}

#define SOFTGPU_VALUES    11u
/* of a foreign driver, unless the video memory is larger */
#define BAR_BYTES_DEFAULT ((uint64_t)256 << 20)

/*
 * Fills the registry values of softgpu, or of a driver that knows its commands. Returns their
 * number, up to SOFTGPU_VALUES.
 */
static uint32_t softgpu_registry(const struct replay_options *options,
				 struct vidmm_registry_value *registry)
{
	const struct vidmm_registry_value values[] = {
		{"Model", options->wddm2 ? SOFTGPU_MODEL_WDDM2 : SOFTGPU_MODEL_WDDM1},
		{"ApertureSize", options->aperture_bytes},
		{"EngineBytesPerUs", options->gpu_time ? 20000 : 0},
		{"HostLinkBytesPerUs", options->gpu_time ? options->link.bytes_per_us : 0},
		{"HostLinkLatencyNs", options->gpu_time ? options->link.latency_ns : 0},
		{"HostLinkPasses", options->gpu_time ? options->link.passes : 1},
		{"MoveContent", options->no_content ? 0 : 1},
		{"PagingNode", options->shared_paging ? 0 : 1},
		{"SwizzlingRanges", options->limit_ranges ? options->ranges : 64},
	};
	uint32_t count = (uint32_t)(sizeof(values) / sizeof(values[0]));

	memcpy(registry, values, sizeof(values));
	if (!options->aperture_bytes) {
		/* With an aperture softgpu places DMA buffers and paging buffers there. */
		registry[count++] = (struct vidmm_registry_value){"DmaBufferSegmentSet", 0};
		registry[count++] = (struct vidmm_registry_value){"PagingBufferSegment", 0};
	}
	return count;
}

/* The settings of the device are those that the options give, and not those of softgpu. */
static bool is_foreign(const struct replay_options *options)
{
	return options->commands != NULL || options->bars != NULL;
}

/* Fills all registry values. Returns their number. */
static uint32_t fill_registry(const struct replay_options *options,
			      struct vidmm_registry_value *registry)
{
	uint32_t count = is_foreign(options) ? 0 : softgpu_registry(options, registry);

	for (unsigned i = 0; i < options->setting_count; i++)
		registry[count++] = options->settings[i];
	if (options->policy >= REPLAY_POLICY_FIRST && options->policy < REPLAY_POLICY_REFERENCE)
		registry[count++] = (struct vidmm_registry_value){
			"VidmmEvictionPolicy", options->policy - REPLAY_POLICY_FIRST};
	return count;
}

/* Has the command adapter describe itself for the miniport that has started. */
static enum replay_status take_commands(struct world *world,
					const struct vidmm_adapter_report *report)
{
	char why[240];

	if (!world->options->commands)
		return REPLAY_CLEAN;
	world->wddm2 = command_adapter_is_wddm2(report);
	world->commands =
		command_adapter_describe(world->options->commands, report, why, sizeof(why));
	if (!world->commands) {
		world_message(world, "%s", why);
		return REPLAY_BAD_INPUT;
	}
	snprintf(world->result->commands, sizeof(world->result->commands), "%s",
		 world->commands->name);
	return REPLAY_CLEAN;
}

static enum replay_status try_start(struct world *world, struct vidmm_adapter_options *options)
{
	struct vidmm_adapter_report report = {.struct_size = sizeof(report)};
	vidmm_status status;

	options->report = &report;
	status = vidmm_adapter_start(world->host, options, &world->adapter);
	if (is_foreign(world->options))
		world->wddm2 = report.interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM2_0;
	if (status >= 0)
		return take_commands(world, &report);
	return world_refused(world, NULL, status);
}

/* Describes the hardware: a device model, or memory BARs. *BAR is used while the adapter starts. */
static void set_hardware(const struct replay_options *options, uint64_t *bar,
			 struct vidmm_adapter_options *adapter_options)
{
	*bar = options->vram_bytes;
	adapter_options->bar_sizes = bar;
	adapter_options->bar_count = 1;
	if (!is_foreign(options))
		return;
	if (*bar < BAR_BYTES_DEFAULT)
		*bar = BAR_BYTES_DEFAULT;
	if (options->bar_count) {
		adapter_options->bar_sizes = options->bars;
		adapter_options->bar_count = options->bar_count;
	}
	adapter_options->device_model = options->device_model;
	if (options->device_model)
		adapter_options->bar_count = 0;
}

static enum replay_status start_adapter(struct world *world)
{
	const struct replay_options *options = world->options;
	uint64_t bar;
	/* One more for the policy. */
	struct vidmm_registry_value *registry =
		calloc(SOFTGPU_VALUES + options->setting_count + 1, sizeof(*registry));
	struct vidmm_adapter_options adapter_options = {
		.struct_size = sizeof(adapter_options),
		.driver_entry =
			options->driver_entry ? options->driver_entry : softgpu_driver_entry,
		.memory_limit_bytes = is_foreign(options) ? options->vram_bytes : 0,
		.registry = registry,
		.eviction_rank =
			world->options->policy == REPLAY_POLICY_REFERENCE ? rank_by_next_use : NULL,
		.eviction_context = world,
		.eviction_policy = world->options->policy_functions,
	};
	enum replay_status status = REPLAY_ENVIRONMENT;

	set_hardware(options, &bar, &adapter_options);
	crash_watch(STDERR_FILENO, adapter_options.driver_entry);
	if (registry) {
		adapter_options.registry_count = fill_registry(options, registry);
		status = try_start(world, &adapter_options);
	} else {
		world_message(world, "out of memory");
	}
	free(registry);
	world->result->wddm2 = world->wddm2;
	return status;
}

/* The segments that the miniport has reported, as they are used. */
static struct host_adapter_sizes sizes_of(struct vidmm_adapter *adapter)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};
	struct host_adapter_sizes sizes = {0};

	vidmm_adapter_statistics(adapter, &statistics);
	for (uint32_t i = 0; i < statistics.segment_count; i++) {
		const struct vidmm_segment_statistics *segment = &statistics.segment[i];

		*(segment->aperture ? &sizes.aperture_bytes : &sizes.vram_bytes) +=
			segment->size_bytes;
	}
	return sizes;
}

static enum replay_status start(struct world *world, struct host_adapter_sizes *sizes)
{
	enum replay_status status = start_host(world);

	sizes->vram_bytes = world->options->vram_bytes;
	sizes->aperture_bytes = world->options->aperture_bytes;
	if (status == REPLAY_CLEAN)
		status = start_adapter(world);
	if (status == REPLAY_CLEAN && is_foreign(world->options))
		*sizes = sizes_of(world->adapter);
	return status;
}

static void stop(struct world *world)
{
	if (world->adapter)
		vidmm_adapter_stop(world->adapter);
	history_destroy(world->history);
	times_destroy(world->times);
	victims_destroy(world->victims);
	thrash_destroy(world->thrash);
	if (world->event_subscription)
		vidmm_unsubscribe(world->host, world->event_subscription);
	/* Findings are kept until the host has ended, which reports what the driver has left. */
	if (world->host)
		vidmm_host_destroy(world->host);
}

/* ---- time and statistics ---- */

static uint64_t now_ns(struct world *world)
{
	return vidmm_now_ns(world->host);
}

static void wait_until_ns(struct world *world, uint64_t when_ns)
{
	vidmm_sleep_until_ns(world->host, when_ns);
}

static enum replay_status wait_idle(struct world *world)
{
	vidmm_adapter_wait_idle(world->adapter);
	return REPLAY_CLEAN;
}

static void collect(struct world *world)
{
	static const struct vidmm_adapter_statistics none;
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	vidmm_adapter_statistics(world->adapter, &statistics);
	statistics_difference(&none, &statistics, world->result);
	if (world->victims)
		victims_summary(world->victims, &world->result->evicted.policy,
				&world->result->paged_in.policy);
	if (world->thrash)
		world->result->thrash_count = thrash_top(world->thrash, world->result->thrash,
							 world->options->thrash_count);
	if (!world->times)
		return;
	times_end(world->times);
	world->result->times = times_of(world->times, FRAMES_NONE, 0);
	for (unsigned i = 0; i < world->process_count; i++)
		world->result->process_times[i] =
			times_of(world->times, i, umd_process_id(world->processes[i]));
}

/* What an aperture maps is in backing stores. */
static uint64_t used_bytes(struct world *world)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};
	uint64_t bytes;

	vidmm_adapter_statistics(world->adapter, &statistics);
	bytes = statistics.system_bytes;
	for (uint32_t i = 0; i < statistics.segment_count; i++)
		if (!statistics.segment[i].aperture)
			bytes += statistics.segment[i].resident_bytes;
	return bytes;
}

static uint64_t event_hash(struct world *world)
{
	return vidmm_event_hash(world->host);
}

/* ---- devices ---- */

static vidmm_status open_device(struct world *world, const char *name, struct host_device **result)
{
	struct local_device *device = calloc(1, sizeof(*device));
	vidmm_status status;

	*result = NULL;
	if (!device)
		return STATUS_NO_MEMORY;
	status = vidmm_process_open(world->host, name, &device->process);
	if (status >= 0)
		status = vidmm_device_create(device->process, world->adapter, &device->handle);
	if (status < 0) {
		if (device->process)
			vidmm_process_close(device->process);
		free(device);
		return status;
	}
	device->base = (struct host_device){
		.ops = &host_local,
		.callbacks = vidmm_device_callbacks(device->handle),
		.device = vidmm_device_handle(device->handle),
		.process_id = vidmm_process_id(device->process),
	};
	*result = &device->base;
	return status;
}

static void close_device(struct host_device *base)
{
	struct local_device *device = (struct local_device *)base;

	vidmm_process_close(device->process);
	free(device);
}

static vidmm_status set_shared(struct host_device *base, void *runtime_resource)
{
	return vidmm_resource_set_shared(((struct local_device *)base)->handle, runtime_resource);
}

static vidmm_status share(struct host_device *base, uint32_t km_resource, uint32_t *global_handle)
{
	return vidmm_resource_share(((struct local_device *)base)->handle, km_resource,
				    global_handle);
}

static vidmm_status open_shared(struct host_device *base, uint32_t global_handle,
				uint32_t *allocation)
{
	uint32_t km_resource, count = 1;

	return vidmm_resource_open(((struct local_device *)base)->handle, global_handle,
				   &km_resource, allocation, &count);
}

const struct host_ops host_local = {
	.start = start,
	.stop = stop,
	.open = open_device,
	.close = close_device,
	.now_ns = now_ns,
	.wait_until_ns = wait_until_ns,
	.wait_idle = wait_idle,
	.collect = collect,
	.used_bytes = used_bytes,
	.event_hash = event_hash,
	.set_shared = set_shared,
	.share = share,
	.open_shared = open_shared,
};
