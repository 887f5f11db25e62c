/* SPDX-License-Identifier: MIT */
#include "json_times.h"

/* Returns null for NULL, which was not measured. */
typedef json_t *times_object_fn(const struct options *options, const struct process_times *times);

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *distribution(const struct histogram_summary *summary)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)summary->count, "p50_ns",
			 (json_int_t)summary->p50_ns, "p95_ns", (json_int_t)summary->p95_ns,
			 "p99_ns", (json_int_t)summary->p99_ns, "max_ns",
			 (json_int_t)summary->max_ns);
}

static json_t *latency_object(const struct options *options, const struct process_times *times)
{
	(void)options;
	return times ? distribution(&times->latency) : json_null();
}

static json_t *frames_object(const struct options *options, const struct process_times *times)
{
	const struct frames_summary *frames = times ? &times->frames : NULL;
	/* Without the recorded pace, a time of the recording is no deadline. */
	bool paced = options->replay.recorded_pace;
	json_t *object;

	if (!frames)
		return json_null();
	object = distribution(&frames->times);
	json_object_set_new(object, "count", number(frames->count));
	json_object_set_new(object, "ended_by", json_string(frames->swaps ? "swaps" : "pauses"));
	json_object_set_new(object, "late", paced ? number(frames->late) : json_null());
	json_object_set_new(object, "longest_stall_ns",
			    paced ? number(frames->stall_ns) : json_null());
	return object;
}

static json_t *waits_object(const struct options *options, const struct process_times *times)
{
	const struct waits_summary *waits = times ? &times->waits : NULL;
	json_t *object;

	(void)options;
	if (!waits)
		return json_null();
	object = json_object();
	json_object_set_new(object, "gpu_busy_ns", number(waits->gpu_busy_ns));
	json_object_set_new(object, "gpu_paging_ns", number(waits->gpu_paging_ns));
	json_object_set_new(object, "cpu_lock_ns", number(waits->cpu_lock_ns));
	json_object_set_new(object, "cpu_queue_ns", number(waits->cpu_queue_ns));
	json_object_set_new(object, "cpu_cost_ns", number(waits->cpu_cost_ns));
	json_object_set_new(object, "recorded_gpu_ns", number(waits->recorded_gpu_ns));
	json_object_set_new(object, "slowdown_permille", number(waits->slowdown_permille));
	return object;
}

void json_add_times(json_t *object, const struct options *options,
		    const struct replay_result *result)
{
	static const struct {
		const char *key, *process_key;
		times_object_fn *make;
	} parts[] = {
		{"latency", "process_latency", latency_object},
		{"frames", "process_frames", frames_object},
		{"waits", "process_waits", waits_object},
	};
	bool measured = options->replay.gpu_time && !options->replay.connect;
	const struct process_times *each = measured ? result->process_times : NULL;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		json_t *array = json_array();

		for (unsigned k = 0; k < result->process_count; k++)
			json_array_append_new(array,
					      parts[i].make(options, each ? &each[k] : NULL));
		json_object_set_new(object, parts[i].key,
				    parts[i].make(options, measured ? &result->times : NULL));
		json_object_set_new(object, parts[i].process_key, array);
	}
}
