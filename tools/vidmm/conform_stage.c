/* SPDX-License-Identifier: MIT */
/* Implements conform_stage.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform_stage.h"

void stage_say(struct conform_stage *stage, enum conform_state state, const char *format, ...)
{
	struct conform_outcome *outcome = stage->outcome;
	va_list args;

	if (outcome->state != CONFORM_BROKE && outcome->state != CONFORM_BAD_ADAPTER)
		outcome->state = state;
	else if (outcome->detail[0]) /* none yet: only findings broke it */
		return;
	va_start(args, format);
	vsnprintf(outcome->detail, sizeof(outcome->detail), format, args);
	va_end(args);
}

/* ---- events ---- */

static void on_message(void *context, const char *text)
{
	struct conform_stage *stage = context;

	pthread_mutex_lock(&stage->lock);
	snprintf(stage->message, sizeof(stage->message), "%s", text);
	if (strncmp(text, "verify: ", 8) == 0 && !stage->wrong[0])
		snprintf(stage->wrong, sizeof(stage->wrong), "%s", text + 8);
	pthread_mutex_unlock(&stage->lock);
}

static void count_work(struct stage_work *work, const struct vidmm_event *event)
{
	if (event->type == VIDMM_EVENT_SUBMIT)
		work->submissions++;
	if (event->type == VIDMM_EVENT_QUEUE) {
		work->renders += event->reason == 0;
		work->packets++;
	}
	if (event->type == VIDMM_EVENT_FENCE)
		work->retired += event->arg[2];
}

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct conform_stage *stage = context;

	pthread_mutex_lock(&stage->lock);
	if (event->type == VIDMM_EVENT_FINDING && text && strncmp(text, "NT-09:", 6) == 0)
		snprintf(stage->conform->shared->bug_check,
			 sizeof(stage->conform->shared->bug_check), "%s", text);
	if (event->type == VIDMM_EVENT_DDI) {
		vidmm_event_format(event, text, stage->conform->shared->last_call,
				   CONFORM_LAST_CALL_BYTES);
		if (event->reason < STAGE_DDIS_MAX)
			stage->ddis[event->reason]++;
	}
	if (event->type == VIDMM_EVENT_RECOVERY && event->reason < 32)
		stage->recoveries[event->reason]++;
	count_work(&stage->work, event);
	pthread_mutex_unlock(&stage->lock);
}

/* ---- start and stop ---- */

static bool is_known(void *context, const char *text)
{
	const struct conform_stage *stage = context;

	if (!stage->is_start)
		return conform_known_has(stage->conform->known, text, stage->starting);
	conform_known_add(&stage->conform->shared->known, text, stage->starting);
	return false;
}

static void say_refused(struct conform_stage *stage)
{
	if (stage->is_start)
		stage->conform->shared->known.refused = true;
	stage->repeats_refusal = !stage->is_start && stage->conform->known->refused;
	if (stage->repeats_refusal)
		stage_say(stage, CONFORM_NOT_EXERCISED,
			  "the adapter does not start (see the situation start)");
	else
		stage_say(stage, CONFORM_BROKE, "the adapter does not start: %s", stage->message);
}

bool stage_start(struct conform_stage *stage, uint64_t limit_bytes)
{
	const struct conform_options *conform = stage->conform;
	enum replay_status status;

	stage->options = (struct replay_options){
		.verify = REPLAY_VERIFY_FULL,
		.host_kind = conform->adapter.host_kind,
		.vram_bytes = limit_bytes,
		.driver_entry = conform->entry,
		.settings = conform->adapter.settings,
		.setting_count = conform->adapter.setting_count,
		.commands = conform->describe,
		.bars = conform->adapter.bars,
		.bar_count = conform->adapter.bar_count,
		.device_model = conform->model,
		.message = on_message,
		.message_context = stage,
		.known = is_known,
		.known_context = stage,
		.event = on_event,
		.event_context = stage,
	};
	memset(&stage->result, 0, sizeof(stage->result));
	memset(&stage->world, 0, sizeof(stage->world));
	stage->world.options = &stage->options;
	stage->world.result = &stage->result;
	stage->started = true;
	stage->buffers = 0;
	stage->starting = true;
	status = world_start(&stage->world);
	stage->starting = false;
	if (status == REPLAY_BAD_INPUT)
		stage_say(stage, CONFORM_BAD_ADAPTER, "%s", stage->message);
	else if (status != REPLAY_CLEAN)
		say_refused(stage);
	return status == REPLAY_CLEAN;
}

static bool step(struct conform_stage *stage, const char *what, enum replay_status status)
{
	if (status == REPLAY_CLEAN)
		return true;
	stage_say(stage, CONFORM_BROKE, "%s failed: %s", what, stage->message);
	return false;
}

bool stage_open(struct conform_stage *stage)
{
	static const struct trace_header header = {.program = "conform"};
	struct world *world = &stage->world;

	if (world->process_count)
		umd_destroy(world->processes[0]);
	free(world->processes);
	world->process_count = 0;
	stage->buffers = 0;
	world->processes = calloc(1, sizeof(struct umd *));
	if (!world->processes)
		return step(stage, "memory", REPLAY_ENVIRONMENT);
	world->process_count = 1;
	return step(stage, "the creation of a device",
		    umd_create(world, 0, &header, &world->processes[0]));
}

/* Returns the element for a finding; NULL: there are too many. */
static struct conform_finding *finding_of(struct conform_outcome *outcome, const char *rule,
					  const char *text)
{
	struct conform_finding *finding = outcome->findings;

	for (uint32_t i = 0; i < outcome->finding_count; i++, finding++)
		if (strcmp(finding->rule, rule) == 0 && strcmp(finding->text, text) == 0)
			return finding;
	if (outcome->finding_count == CONFORM_FINDINGS_MAX)
		return NULL;
	outcome->finding_count++;
	snprintf(finding->rule, sizeof(finding->rule), "%s", rule);
	snprintf(finding->text, sizeof(finding->text), "%s", text);
	return finding;
}

static void take_findings(struct conform_stage *stage)
{
	struct conform_outcome *outcome = stage->outcome;
	const struct replay_result *result = &stage->result;

	for (unsigned i = 0; i < result->finding_kinds && i < REPLAY_FINDINGS_KEPT; i++) {
		const char *text = result->findings[i].text;
		size_t length = strcspn(text, ":");
		char rule[sizeof(outcome->findings[0].rule)];
		struct conform_finding *finding;

		if (outcome->state != CONFORM_BAD_ADAPTER)
			outcome->state = CONFORM_BROKE;
		snprintf(rule, sizeof(rule), "%.*s", (int)length, text);
		text += length + (text[length] == ':');
		finding = finding_of(outcome, rule, text + strspn(text, " "));
		if (finding)
			finding->count += result->findings[i].count;
	}
}

void stage_stop(struct conform_stage *stage)
{
	if (!stage->started)
		return;
	world_stop(&stage->world);
	stage->started = false;
	stage->outcome->blocks_compared += stage->result.blocks_checked;
	stage->outcome->blocks_wrong += stage->result.verify_errors;
	if (stage->world.deadlocked && !stage->repeats_refusal)
		stage_say(stage, CONFORM_BROKE,
			  "Q-440: deadlock: the driver waits and no thread can wake it");
	if (stage->result.verify_errors)
		stage_say(stage, CONFORM_BROKE, "%" PRIu64 " blocks have wrong content: %s",
			  stage->result.verify_errors, stage->wrong);
	take_findings(stage);
}

/* ---- steps ---- */

static struct umd *umd_of(struct conform_stage *stage)
{
	return stage->world.processes[0];
}

bool stage_create(struct conform_stage *stage, uint64_t size_bytes)
{
	const struct trace_event event = {
		.op = TRACE_CREATE, .id = ++stage->buffers, .u.create.size_bytes = size_bytes};

	return step(stage, "the creation of an allocation", umd_event(umd_of(stage), &event));
}

bool stage_submit(struct conform_stage *stage, uint32_t first, uint32_t count, bool write)
{
	struct trace_object objects[64];
	struct trace_submission submission = {.object_count = count, .objects = objects};
	const struct trace_event event = {.op = TRACE_SUBMIT, .u.submission = &submission};

	for (uint32_t i = 0; i < count; i++)
		objects[i] = (struct trace_object){first + i, write ? TRACE_OBJECT_WRITE : 0};
	return step(stage, "a submission", umd_event(umd_of(stage), &event));
}

bool stage_destroy(struct conform_stage *stage, uint32_t id)
{
	const struct trace_event event = {.op = TRACE_CLOSE, .id = id};

	return step(stage, "the destruction of an allocation", umd_event(umd_of(stage), &event));
}

static bool access_by_cpu(struct conform_stage *stage, uint32_t id, enum trace_op op)
{
	const struct trace_event event = {
		.op = op,
		.id = id,
		.u.range.length = umd_buffer_of(umd_of(stage), id)->size_bytes,
	};

	return step(stage, "a CPU lock", umd_event(umd_of(stage), &event));
}

bool stage_cpu_write(struct conform_stage *stage, uint32_t id)
{
	return access_by_cpu(stage, id, TRACE_WRITE);
}

bool stage_cpu_read(struct conform_stage *stage, uint32_t id)
{
	return access_by_cpu(stage, id, TRACE_READ);
}

bool stage_verify(struct conform_stage *stage)
{
	(void)stage->world.ops->wait_idle(&stage->world);
	return step(stage, "the comparison of contents", umd_final_check(umd_of(stage))) &&
	       !stage->result.verify_errors;
}

struct vidmm_adapter_statistics stage_statistics(const struct conform_stage *stage)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	vidmm_adapter_statistics(stage->world.adapter, &statistics);
	return statistics;
}

struct stage_work stage_work(struct conform_stage *stage)
{
	pthread_mutex_lock(&stage->lock);
	struct stage_work work = stage->work;
	pthread_mutex_unlock(&stage->lock);
	return work;
}
