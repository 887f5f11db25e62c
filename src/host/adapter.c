/* SPDX-License-Identifier: MIT */
/*
 * Starting and stopping an adapter: port, memory and sched, stopped in reverse order. Also power
 * states, surprise removal and statistics.
 */
#include "base/sized.h"
#include "host/host_private.h"

#define DEFAULT_SYSTEM_BYTES ((uint64_t)64 << 30)

static vmm_status start_port(struct vidmm_adapter *adapter, const struct vidmm_adapter_options *o)
{
	struct vmm_port_registry_value *registry =
		vmm_calloc(o->registry_count + 1u, sizeof(*registry));
	vmm_status status;

	if (!registry)
		return VMM_NO_MEMORY;
	for (uint32_t i = 0; i < o->registry_count; i++)
		registry[i] =
			(struct vmm_port_registry_value){o->registry[i].name, o->registry[i].value};
	struct vmm_port_options options = {
		.os = adapter->core.os,
		.nt = adapter->core.world->nt,
		.observe = adapter->core.observe,
		.driver_entry = o->driver_entry,
		.initialization_data = (const DRIVER_INITIALIZATION_DATA *)o->initialization_data,
		.physical_adapters = o->physical_adapters,
		.features = o->features,
		.verify = adapter->core.verify_driver,
		.bar_sizes = o->bar_sizes,
		.bar_memory = o->bar_memory,
		.bar_count = o->bar_count,
		.device_model = o->device_model,
		.registry_count = o->registry_count,
		.registry = registry,
		.system_memory_bytes = o->system_memory_bytes,
		.memory_limit_bytes = o->memory_limit_bytes,
		.sink = &vmm_sched_port_sink,
		.sink_context = &adapter->core,
		.report = o->report,
		.ids = {.vendor = adapter->core.identity.vendor,
			.device = adapter->core.identity.device,
			.subsystem_vendor = adapter->core.identity.subsystem_vendor,
			.subsystem = adapter->core.identity.subsystem,
			.revision = adapter->core.identity.revision},
	};
	status = vmm_port_start(&options, &adapter->core.port);
	vmm_free(registry);
	return status;
}

static void count_adapter(struct vidmm_host *host, uint32_t change)
{
	vmm_shared_lock(&host->world);
	host->adapters += change;
	vmm_shared_unlock(&host->world);
}

/* Starts the core on top of a running port. On failure everything but the port is undone. */
static vmm_status start_core(struct vidmm_adapter *adapter, const struct vidmm_adapter_options *o)
{
	struct vmm_adapter *core = &adapter->core;
	const struct vmm_port_caps *caps = vmm_port_caps(core->port);
	vmm_status status;

	core->interface_version = caps->interface_version;
	vmm_memory_choose_model(core);
	core->narrow_fences = caps->no_64bit_atomics;
	core->physical_adapters = vmm_port_physical_adapters(core->port);
	core->node_count = caps->node_count;
	core->paging_node = caps->paging_node;
	core->paging_timeline = caps->node_count;
	core->hw_queues = caps->hw_nodes != 0;
	status = vmm_memory_create(core, &vmm_sched_memory_engine,
				   o->system_memory_bytes ? o->system_memory_bytes
							  : DEFAULT_SYSTEM_BYTES);
	if (!vmm_ok(status))
		return status;
	status = vmm_sched_start(core);
	if (!vmm_ok(status))
		goto out_memory;
	status = vmm_memory_start(core);
	if (!vmm_ok(status))
		goto out_sched;
	core->verify = o->verify != 0;
	status = vmm_watch_start(core, o->tdr);
	if (vmm_ok(status))
		return status;
	vmm_sched_wait_idle(core, VIDMM_WAIT_STOP);
out_sched:
	vmm_sched_stop(core);
out_memory:
	vmm_memory_destroy(core);
	return status;
}

/* Readers of the event stream learn how large the segments are. */
static void describe_segments(const struct vmm_adapter *core)
{
	const struct vmm_port_caps *caps = vmm_port_caps(core->port);

	for (uint32_t i = 0; i < caps->segment_count; i++) {
		struct vidmm_event event = {
			.type = VIDMM_EVENT_SEGMENT,
			.reason = (uint16_t)caps->segment[i].id,
			.arg = {caps->segment[i].size_bytes, caps->segment[i].gpu_base,
				caps->segment[i].flags.Value, vmm_port_luid(core->port)}};

		vmm_observe_emit(core->observe, &event, NULL);
	}
}

static bool options_valid(const struct vidmm_adapter_options *o)
{
	return o->struct_size == sizeof(*o) &&
	       (o->driver_entry != NULL) != (o->initialization_data != NULL) &&
	       (!o->report || o->report->struct_size == sizeof(*o->report));
}

static void report_step(const struct vidmm_adapter_options *o, enum vidmm_start_step step)
{
	if (o->report)
		o->report->step = step;
}

vidmm_status vidmm_adapter_start(struct vidmm_host *host,
				 const struct vidmm_adapter_options *options,
				 struct vidmm_adapter **result)
{
	struct vidmm_adapter *adapter;
	vmm_status status;

	if (!host || !options || !result || !options_valid(options))
		return VMM_INVALID_PARAMETER;
	if (options->report)
		*options->report =
			(struct vidmm_adapter_report){.struct_size = sizeof(*options->report)};
	if (options->features & ~(VIDMM_FEATURE_SHARE_BACKING_STORE | VIDMM_FEATURE_HWSCH))
		return VMM_NOT_SUPPORTED;
	adapter = vmm_calloc_lines(sizeof(*adapter));
	if (!adapter)
		return VMM_NO_MEMORY;
	adapter->host = host;
	vmm_adapter_init(&adapter->core, &host->world);
	status = vmm_host_name_adapter(&adapter->core, options);
	if (vmm_ok(status))
		status = vmm_sched_create(&adapter->core, options->first_fence_id);
	if (!vmm_ok(status))
		goto out_adapter;
	status = vmm_sched_configure(&adapter->core, options->scheduling);
	if (vmm_ok(status))
		status = start_port(adapter, options);
	if (!vmm_ok(status))
		goto out_sched;
	report_step(options, VIDMM_START_CORE);
	vmm_host_identify_adapter(&adapter->core);
	status = start_core(adapter, options);
	if (!vmm_ok(status))
		goto out_port;
	report_step(options, VIDMM_START_RUNNING);
	describe_segments(&adapter->core);
	atomic_store(&adapter->power, VIDMM_POWER_D0);
	count_adapter(host, 1);
	vmm_adapter_publish(&adapter->core, vmm_port_luid(adapter->core.port));
	vmm_world_changed(&host->world);
	*result = adapter;
	return VMM_OK;
out_port:
	vmm_port_stop(adapter->core.port);
out_sched:
	vmm_sched_destroy(&adapter->core);
out_adapter:
	vmm_host_forget_adapter(&adapter->core);
	vmm_adapter_finish(&adapter->core);
	vmm_free(adapter);
	return status;
}

void vidmm_adapter_stop(struct vidmm_adapter *adapter)
{
	if (!adapter)
		return;
	struct vmm_adapter *core = &adapter->core;

	vmm_adapter_withdraw(core);
	vmm_world_changed(core->world);
	/* Preserved content can only be evicted by a running GPU. */
	if (atomic_load(&adapter->power) != VIDMM_POWER_D0)
		vmm_sched_power_up(core);
	/*
	 * Order: no client calls any more, then an idle GPU, then all content in system memory;
	 * only then everything is closed. (PNP-02, PNP-03, PAG-28)
	 */
	atomic_store(&core->closed, true);
	vmm_world_next_epoch(core->world);
	vmm_adapter_await_callers(core);
	vmm_sched_close_devices(core);
	vmm_sched_wait_idle(core, VIDMM_WAIT_STOP);
	vmm_sched_close_displays(core);
	vmm_memory_evict_all(core);
	vmm_sched_destroy_devices(core);
	vmm_va_end_all(core);
	vmm_sched_wait_idle(core, VIDMM_WAIT_STOP);
	vmm_sched_stop(core);
	vmm_bundles_end_adapter(core);
	vmm_memory_reap(core);
	/*
	 * The engines of an adapter that stopped because of a fatal violation may still read
	 * buffers; StopDevice ends them.
	 */
	vmm_port_stop(core->port);
	vmm_memory_destroy(core);
	vmm_sched_destroy(core);
	vmm_host_forget_adapter(core);
	vmm_adapter_finish(core);
	count_adapter(adapter->host, (uint32_t)-1);
	vmm_free(adapter);
}

static vmm_status change_power(struct vidmm_adapter *adapter, uint32_t from, uint32_t state,
			       uint32_t sleep)
{
	if (from != VIDMM_POWER_D0) {
		vmm_sched_power_up(&adapter->core);
		return VMM_OK;
	}
	return vmm_sched_power_down(&adapter->core, (DEVICE_POWER_STATE)state, (POWER_ACTION)sleep);
}

vidmm_status vidmm_adapter_set_power(struct vidmm_adapter *adapter, uint32_t state, uint32_t sleep)
{
	if (!adapter || state < VIDMM_POWER_D0 || state > VIDMM_POWER_D3 ||
	    (state != VIDMM_POWER_D0 && sleep != VIDMM_SLEEP_STANDBY &&
	     sleep != VIDMM_SLEEP_HIBERNATE))
		return VMM_INVALID_PARAMETER;
	if (atomic_load(&adapter->removed))
		return VMM_DEVICE_REMOVED;
	uint32_t from = atomic_load(&adapter->power);

	/* A change is from D0 to a low state or back, never between two low states. */
	if (!from || (from == VIDMM_POWER_D0) == (state == VIDMM_POWER_D0) ||
	    !atomic_compare_exchange_strong(&adapter->power, &from, 0))
		return vmm_refuse_reason(adapter->core.observe, STATUS_INVALID_DEVICE_STATE, 0, 0,
					 "PNP-05: cannot change from power state D%u to D%u%s",
					 from ? from - VIDMM_POWER_D0 : 0, state - VIDMM_POWER_D0,
					 from ? "" : ": another thread is changing it");
	vmm_status status = change_power(adapter, from, state, sleep);

	atomic_store(&adapter->power, vmm_ok(status) ? state : from);
	return status;
}

/*
 * Marks the adapter removed. Returns false, and changes nothing, if it has been removed or the type
 * does not fit its power state: a removal of the hibernation type is noticed outside D0, any other
 * in D0 or during a change of power. (PNP-08)
 */
static bool mark_removed(struct vidmm_adapter *adapter, uint32_t removal)
{
	uint32_t from = atomic_load(&adapter->power);
	bool none = false;

	if (removal == VIDMM_REMOVAL_HIBERNATION ? from <= VIDMM_POWER_D0 : from > VIDMM_POWER_D0)
		return false;
	return atomic_compare_exchange_strong(&adapter->removed, &none, true);
}

vidmm_status vidmm_adapter_remove(struct vidmm_adapter *adapter, uint32_t removal)
{
	if (!adapter || removal > VIDMM_REMOVAL_PNP)
		return VMM_INVALID_PARAMETER;
	if (!mark_removed(adapter, removal)) {
		uint32_t power = atomic_load(&adapter->power);

		return vmm_refuse_reason(
			adapter->core.observe, STATUS_INVALID_DEVICE_STATE, 0, 0,
			"PNP-08: surprise removal of type %u is not possible: the adapter %s",
			removal,
			atomic_load(&adapter->removed) ? "has been removed"
			: power > VIDMM_POWER_D0       ? "is not in D0"
			: power                        ? "is in D0"
						       : "is changing its power state");
	}
	vmm_status status = vmm_sched_remove(&adapter->core, (DXGK_SURPRISE_REMOVAL_TYPE)removal);

	/* Threads that wait for full power continue now and find the adapter removed. */
	if (removal == VIDMM_REMOVAL_HIBERNATION) {
		vmm_sched_power_up(&adapter->core);
		atomic_store(&adapter->power, VIDMM_POWER_D0);
	}
	return status;
}

const void *vidmm_adapter_bar(struct vidmm_adapter *adapter, uint32_t index, uint64_t *size_bytes)
{
	return vmm_port_bar_memory(adapter->core.port, index, size_bytes);
}

vidmm_status vidmm_adapter_time_out(struct vidmm_adapter *adapter, uint32_t node)
{
	if (!adapter)
		return VMM_INVALID_PARAMETER;
	if (atomic_load(&adapter->core.removed))
		return VMM_DEVICE_REMOVED;
	return vmm_watch_expire(&adapter->core, node);
}

uint32_t vidmm_adapter_lose_completions(struct vidmm_adapter *adapter, bool lose)
{
	return vmm_port_lose_completions(adapter->core.port, lose);
}

void vidmm_adapter_wait_idle(struct vidmm_adapter *adapter)
{
	vmm_sched_wait_idle(&adapter->core, VIDMM_WAIT_STOP);
}

void vidmm_adapter_check(struct vidmm_adapter *adapter)
{
	vmm_memory_check(&adapter->core);
}

static void fill_statistics(struct vidmm_adapter *adapter, const struct vmm_memory_statistics *f,
			    struct vidmm_adapter_statistics *statistics)
{
	const struct vmm_port_caps *caps = vmm_port_caps(adapter->core.port);
	const struct vmm_sched_statistics sched = vmm_sched_statistics(&adapter->core);

	*statistics = (struct vidmm_adapter_statistics){
		.struct_size = sizeof(*statistics),
		.segment_count = caps->segment_count,
	};
#define COPY(name) statistics->name = f->name;
	VIDMM_ADAPTER_COUNTERS(COPY)
#undef COPY
	statistics->splits = sched.splits;
	statistics->patches = sched.patches;
	for (uint32_t i = 0; i < caps->segment_count; i++) {
		statistics->segment[i] = (struct vidmm_segment_statistics){
			.size_bytes = caps->segment[i].size_bytes,
			.resident_bytes = f->resident_bytes[i],
			.peak_resident_bytes = f->peak_bytes[i],
			.aperture = caps->segment[i].flags.Aperture,
			.allocations = f->residents[i],
		};
	}
}

void vidmm_adapter_statistics(struct vidmm_adapter *adapter,
			      struct vidmm_adapter_statistics *statistics)
{
	struct vmm_memory_statistics of_memory;
	struct vidmm_adapter_statistics known;

	vmm_memory_statistics(&adapter->core, &of_memory);
	fill_statistics(adapter, &of_memory, &known);
	(void)vmm_copy_sized(statistics, &known, sizeof(known));
}

vmm_status vmm_host_statistics_of(struct vidmm_adapter *adapter,
				  const struct vidmm_process *process,
				  struct vidmm_adapter_statistics *statistics)
{
	struct vmm_memory_statistics of_memory;
	vmm_status status =
		vmm_memory_statistics_of(&adapter->core, vidmm_process_id(process), &of_memory);

	if (vmm_ok(status))
		fill_statistics(adapter, &of_memory, statistics);
	return status;
}
