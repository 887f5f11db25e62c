/* SPDX-License-Identifier: MIT */
/*
 * The summary as JSON. The schema is in docs/replay.md: keys are added, never renamed or removed.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "caps.h"
#include "json_text.h"
#include "json_times.h"
#include "policy.h"
#include "status_names.h"
#include "summary.h"

#define SCHEMA_VERSION 1

struct number {
	const char *key;
	size_t offset; /* of a uint64_t in struct replay_result */
};

#define NUMBER(member)                                          \
	{                                                       \
#member, offsetof(struct replay_result, member) \
	}

static const struct number numbers[] = {
	NUMBER(events),
	NUMBER(submissions),
	NUMBER(references),
	NUMBER(relocations),
	NUMBER(renders),
	NUMBER(extra_renders),
	NUMBER(patches),
	NUMBER(splits),
	NUMBER(bytes_paged_in),
	NUMBER(bytes_paged_out),
	NUMBER(bytes_filled),
	NUMBER(bytes_discarded),
	NUMBER(bytes_moved),
	NUMBER(evictions),
	NUMBER(offers),
	NUMBER(reclaims),
	NUMBER(discarded),
	NUMBER(bytes_written),
	NUMBER(renames),
	{"driver_trimmed", offsetof(struct replay_result, driver.trimmed)},
	{"driver_over_budget", offsetof(struct replay_result, driver.over_budget)},
	NUMBER(waits_avoided),
	NUMBER(ranges_acquired),
	NUMBER(ranges_reclaimed),
	NUMBER(range_fallbacks),
	NUMBER(lock_waits),
	NUMBER(lock_wait_ns),
	NUMBER(peak_live_bytes),
	NUMBER(peak_resident_bytes),
	NUMBER(peak_system_bytes),
	NUMBER(blocks_checked),
	NUMBER(verify_errors),
	NUMBER(finding_count),
	NUMBER(virtual_ns),
	NUMBER(wall_ns),
};

static const struct number paged_in_numbers[] = {
	{"first", offsetof(struct replay_result, paged_in.first)},
	{"again", offsetof(struct replay_result, paged_in.again)},
	{"again_capacity", offsetof(struct replay_result, paged_in.capacity)},
	{"again_fragmentation", offsetof(struct replay_result, paged_in.fragmentation)},
	{"again_lock", offsetof(struct replay_result, paged_in.lock)},
	{"again_trim", offsetof(struct replay_result, paged_in.trim)},
	{"again_other", offsetof(struct replay_result, paged_in.other)},
};

static const struct number evicted_numbers[] = {
	{"video_memory", offsetof(struct replay_result, evicted.video)},
	{"capacity", offsetof(struct replay_result, evicted.capacity)},
	{"fragmentation", offsetof(struct replay_result, evicted.fragmentation)},
	{"lock", offsetof(struct replay_result, evicted.lock)},
	{"trim", offsetof(struct replay_result, evicted.trim)},
	{"other", offsetof(struct replay_result, evicted.other)},
	{"aperture", offsetof(struct replay_result, evicted.aperture)},
};

static const struct number lost_numbers[] = {
	NUMBER(clamped_deltas),  NUMBER(unmatched_imports), NUMBER(foreign_accesses),
	NUMBER(refused_tilings), NUMBER(ignored_tilings),   NUMBER(ignored_exports),
};

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

/* Adds the numbers of LIST. A number that only the host knows is null. */
static void add_numbers(json_t *object, const struct number *list, size_t count,
			const struct options *options, const struct replay_result *result)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t value;

		memcpy(&value, (const char *)result + list[i].offset, sizeof(value));
		json_object_set_new(object, list[i].key,
				    replay_has_value(&options->replay, result, list[i].offset)
					    ? json_integer((json_int_t)value)
					    : json_null());
	}
}

/* Adds an object of the numbers of LIST. Returns it. */
static json_t *add_group(json_t *object, const char *key, const struct number *list, size_t count,
			 const struct options *options, const struct replay_result *result)
{
	json_t *group = json_object();

	add_numbers(group, list, count, options, result);
	json_object_set_new(object, key, group);
	return group;
}

/* The parts of page-ins and evictions; `policy` is null unless compared with the reference. */
static void add_causes(json_t *object, const struct options *options,
		       const struct replay_result *result)
{
	bool judged = options->replay.against_reference;
	json_t *in = add_group(object, "paged_in", paged_in_numbers, COUNT_OF(paged_in_numbers),
			       options, result);
	json_t *out = add_group(object, "evicted", evicted_numbers, COUNT_OF(evicted_numbers),
				options, result);

	json_object_set_new(in, "again_policy",
			    judged ? json_integer((json_int_t)result->paged_in.policy)
				   : json_null());
	json_object_set_new(in, "again_by_bytes",
			    options->replay.by_bytes
				    ? json_integer((json_int_t)result->by_bytes_again)
				    : json_null());
	json_object_set_new(out, "policy",
			    judged ? json_integer((json_int_t)result->evicted.policy)
				   : json_null());
}

static json_t *traces_of(const struct options *options, const struct replay_result *result)
{
	json_t *array = json_array();
	unsigned i;

	for (i = 0; i < result->process_count; i++) {
		const struct trace_header *header = &result->headers[i];

		json_t *file = json_string(options->inputs[i].path);

		/*
		 * A file name may contain any bytes: one that is not UTF-8 is null. The texts of
		 * the header were made UTF-8 by the reader.
		 */
		json_array_append_new(array, json_pack("{s:o, s:s, s:s, s:s, s:s, s:s}", "file",
						       file ? file : json_null(), "program",
						       header->program, "note", header->note,
						       "driver", header->driver, "chipset",
						       header->chipset, "date", header->date));
	}
	return array;
}

static json_t *segments_of(const struct replay_result *result)
{
	json_t *array = json_array();
	unsigned i;

	for (i = 0; i < result->segment_count; i++) {
		const struct vidmm_segment_statistics *segment = &result->segment[i];

		json_array_append_new(
			array, json_pack("{s:i, s:b, s:I, s:I}", "id", i + 1, "aperture",
					 segment->aperture != 0, "size_bytes",
					 (json_int_t)segment->size_bytes, "peak_resident_bytes",
					 (json_int_t)segment->peak_resident_bytes));
	}
	return array;
}

static json_t *findings_of(const struct replay_result *result)
{
	json_t *array = json_array();
	unsigned i;

	for (i = 0; i < result->finding_kinds && i < REPLAY_FINDINGS_KEPT; i++) {
		const struct replay_finding *finding = &result->findings[i];

		json_array_append_new(
			array,
			json_pack("{s:o, s:s, s:I}", "rule",
				  json_stringn(finding->text, strcspn(finding->text, ":")), "text",
				  finding->text, "count", (json_int_t)finding->count));
	}
	return array;
}

/* A host in another process has the events of paging: null. */
static json_t *thrash_of(const struct options *options, const struct replay_result *result)
{
	json_t *array;
	unsigned i;

	if (options->replay.connect)
		return json_null();
	array = json_array();
	for (i = 0; i < result->thrash_count; i++) {
		const struct thrash_entry *entry = &result->thrash[i];

		json_array_append_new(
			array,
			json_pack("{s:i, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "recording",
				  (int)entry->recording, "program",
				  result->headers[entry->recording].program, "buffer",
				  (int)entry->buffer, "size_bytes", (json_int_t)entry->size_bytes,
				  "bytes_paged_in", (json_int_t)entry->bytes_paged_in,
				  "bytes_paged_out", (json_int_t)entry->bytes_paged_out,
				  "evictions", (json_int_t)entry->evictions, "first_ns",
				  (json_int_t)entry->first_ns, "last_ns",
				  (json_int_t)entry->last_ns));
	}
	return array;
}

static const char *backend_of(const struct replay_options *options)
{
	if (options->connect)
		return "connection";
	return options->host_kind == VIDMM_HOST_SIM ? "sim" : "linux";
}

static void add_memory(json_t *object, const struct options *options, const struct run *run)
{
	const struct replay_result *result = &run->result;
	/* a run has no percentage if it was given a size, or uses a host's memory */
	bool percent = !run->memory.bytes && !options->replay.connect;
	bool known = !options->replay.connect || result->statistics_known;
	uint64_t vram = options->replay.connect ? result->vram_bytes : run->vram_bytes;
	uint64_t aperture =
		options->replay.connect ? result->aperture_bytes : options->replay.aperture_bytes;

	json_object_set_new(object, "vram_bytes",
			    known ? json_integer((json_int_t)vram) : json_null());
	json_object_set_new(object, "vram_percent",
			    percent ? json_real(run->memory.percent) : json_null());
	json_object_set_new(object, "vram_percent_of",
			    percent ? json_string(memory_size_percent_of(&run->memory))
				    : json_null());
	json_object_set_new(object, "aperture_bytes",
			    known ? json_integer((json_int_t)aperture) : json_null());
}

/* ns by name; null: the CPU takes no time */
static json_t *costs_of(const struct replay_options *options)
{
	json_t *object;

	if (cost_model_is_none(&options->costs))
		return json_null();
	object = json_object();
	for (size_t i = 0; i < COST_COUNT; i++)
		json_object_set_new(object, cost_names[i],
				    json_integer((json_int_t)options->costs.ns[i]));
	return object;
}

/* The settings of a host in another process are unknown. */
static void add_link(json_t *object, const struct replay_options *options)
{
	bool modeled = options->gpu_time && !options->connect && options->link.bytes_per_us;

	json_object_set_new(object, "link_bytes_per_us",
			    modeled ? json_integer((json_int_t)options->link.bytes_per_us)
				    : json_null());
	json_object_set_new(object, "link_latency_ns",
			    modeled ? json_integer((json_int_t)options->link.latency_ns)
				    : json_null());
	json_object_set_new(object, "link_passes",
			    modeled ? json_integer((json_int_t)options->link.passes) : json_null());
	json_object_set_new(object, "cpu_costs_ns", costs_of(options));
	json_object_set_new(object, "paging_engine",
			    options->connect
				    ? json_null()
				    : json_string(options->shared_paging ? "shared" : "own"));
}

/* The path of a driver that is not built in. */
static json_t *driver_of(const struct options *options)
{
	if (options->replay.connect)
		return json_null();
	return json_text(options->driver && options->driver->driver ? options->driver->driver
								    : "softgpu");
}

/* The adapter or the device that could not be created; null: both were. */
static json_t *refusal_of(const struct replay_refusal *refusal)
{
	const char *name = status_name((uint32_t)refusal->status);
	char number[16];

	if (!refusal->refused)
		return json_null();
	snprintf(number, sizeof(number), "0x%08" PRIX32, (uint32_t)refusal->status);
	return json_pack("{s:s, s:o, s:s, s:s?, s:o}", "of", refusal->device ? "device" : "adapter",
			 "program", refusal->device ? json_text(refusal->program) : json_null(),
			 "status", number, "status_name", name, "reason",
			 json_text(refusal->reason));
}

static json_t *run_object(const struct options *options, const struct run *run)
{
	static const char *const verifies[] = {"none", "stamps", "full"};
	const struct replay_result *result = &run->result;
	json_t *object = json_object();
	char hash[24];

	snprintf(hash, sizeof(hash), "0x%016" PRIx64, result->event_hash);
	json_object_set_new(object, "schema_version", json_integer(SCHEMA_VERSION));
	json_object_set_new(object, "vidmm_version", json_string(vidmm_version()));
	json_object_set_new(object, "traces", traces_of(options, result));
	json_object_set_new(object, "model", json_string(replay_models[result->wddm2]));
	json_object_set_new(object, "driver", driver_of(options));
	json_object_set_new(object, "commands",
			    result->commands[0] ? json_string(result->commands) : json_null());
	json_object_set_new(object, "policy",
			    options->replay.connect
				    ? json_null()
				    : json_string(policy_name(options->replay.policy)));
	json_object_set_new(object, "backend", json_string(backend_of(&options->replay)));
	json_object_set_new(object, "seed", json_integer((json_int_t)options->replay.seed));
	json_object_set_new(object, "switch_per_1024",
			    json_integer(options->replay.switch_per_1024));
	json_object_set_new(object, "gpu_time",
			    json_string(options->replay.gpu_time ? "model" : "none"));
	json_object_set_new(object, "pace",
			    json_string(options->replay.recorded_pace ? "recorded" : "flat-out"));
	add_link(object, &options->replay);
	json_object_set_new(object, "content",
			    json_string(options->replay.no_content ? "none" : "real"));
	json_object_set_new(object, "verify", json_string(verifies[options->replay.verify]));
	add_memory(object, options, run);
	add_numbers(object, numbers, COUNT_OF(numbers), options, result);
	add_causes(object, options, result);
	json_add_times(object, options, result);
	json_object_set_new(object, "segments",
			    options->replay.connect && !result->statistics_known
				    ? json_null()
				    : segments_of(result));
	json_object_set_new(object, "thrash", thrash_of(options, result));
	add_group(object, "lost", lost_numbers, COUNT_OF(lost_numbers), options, result);
	json_object_set_new(object, "findings",
			    options->replay.connect ? json_null() : findings_of(result));
	json_object_set_new(object, "refusal", refusal_of(&result->refusal));
	json_object_set_new(object, "event_hash", json_string(hash));
	json_object_set_new(object, "status", json_string(replay_status_names[result->status]));
	json_object_set_new(object, "exit_code", json_integer(result->status));
	return object;
}

bool summary_json(FILE *file, const struct options *options, const struct run *runs, unsigned count)
{
	json_t *top, *array;
	unsigned i;

	if (!options->compare) {
		top = run_object(options, &runs[0]);
	} else {
		array = json_array();
		for (i = 0; i < count; i++)
			json_array_append_new(array, run_object(options, &runs[i]));
		top = json_pack("{s:i, s:o}", "schema_version", SCHEMA_VERSION, "runs", array);
	}
	return json_write(file, top);
}
