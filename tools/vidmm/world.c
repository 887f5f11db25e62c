/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/softgpu.h>

#include "grow.h"
#include "umd.h"
#include "world.h"

#define ERRORS_SHOWN 20u

void world_message(struct world *world, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (!world->options->message)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	world->options->message(world->options->message_context, text);
}

/* ---- findings: events of any thread ---- */

static struct replay_finding *finding_of_rule(struct replay_result *result, const char *text)
{
	size_t length = strcspn(text, ":");
	unsigned i;

	for (i = 0; i < result->finding_kinds && i < REPLAY_FINDINGS_KEPT; i++) {
		if (strncmp(result->findings[i].text, text, length) == 0 &&
		    result->findings[i].text[length] == ':')
			return &result->findings[i];
	}
	return NULL;
}

static void keep_finding(struct world *world, const char *text)
{
	struct replay_result *result = world->result;
	struct replay_finding *finding = finding_of_rule(result, text);

	result->finding_count++;
	if (finding) {
		finding->count++;
		return;
	}
	if (result->finding_kinds++ < REPLAY_FINDINGS_KEPT) {
		finding = &result->findings[result->finding_kinds - 1];
		snprintf(finding->text, sizeof(finding->text), "%s", text);
		finding->count = 1;
	}
	world_message(world, "finding %s", text);
}

static void count_range(struct replay_result *result, uint32_t reason)
{
	result->ranges_acquired += reason == VIDMM_RANGE_ACQUIRED;
	result->ranges_reclaimed += reason == VIDMM_RANGE_RECLAIMED;
	result->range_fallbacks += reason == VIDMM_RANGE_FALLBACK;
}

static void on_notable(void *context, const struct vidmm_event *event, const char *text)
{
	struct world *world = context;
	char line[256];

	pthread_mutex_lock(&world->lock);
	if (event->type == VIDMM_EVENT_RANGE) {
		count_range(world->result, event->reason);
	} else if (event->type == VIDMM_EVENT_REASON) {
		snprintf(world->last_reason, sizeof(world->last_reason), "%s", text ? text : "");
	} else if (event->type == VIDMM_EVENT_FATAL) {
		snprintf(line, sizeof(line),
			 "FATAL: bug check 0x%" PRIx64 " (0x%" PRIx64 ", 0x%" PRIx64 ", 0x%" PRIx64
			 ")%s%s",
			 event->arg[0], event->arg[1], event->arg[2], event->arg[3],
			 text ? ": " : "", text ? text : "");
		keep_finding(world, line);
	} else {
		keep_finding(world, text ? text : "UNKNOWN: a finding without text");
	}
	pthread_mutex_unlock(&world->lock);
}

static void on_deadlock(void *context, const char *report)
{
	struct world *world = context;

	world->deadlocked = true;
	world_message(world, "deadlock: nothing can run any more\n%s", report);
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
		world_message(world, "cannot create a host: 0x%08" PRIX32, (uint32_t)status);
		return REPLAY_ENVIRONMENT;
	}
	world->finding_subscription = vidmm_subscribe(
		world->host,
		(uint64_t)1 << VIDMM_EVENT_FINDING | (uint64_t)1 << VIDMM_EVENT_REASON |
			(uint64_t)1 << VIDMM_EVENT_FATAL | (uint64_t)1 << VIDMM_EVENT_RANGE,
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

static enum replay_status start_adapter(struct world *world)
{
	const struct replay_options *options = world->options;
	const struct vidmm_registry_value registry[] = {
		{"ApertureSize", options->aperture_bytes},
		{"EngineBytesPerUs", options->gpu_time ? 20000 : 0},
		{"SwizzlingRanges", options->limit_ranges ? options->ranges : 64},
		/* In system memory. With an aperture its defaults are as good. */
		{"DmaBufferSegmentSet", 0},
		{"PagingBufferSegment", 0},
	};
	size_t registry_count = sizeof(registry) / sizeof(registry[0]);

	struct vidmm_adapter_options adapter_options = {
		.struct_size = sizeof(adapter_options),
		.driver_entry =
			options->driver_entry ? options->driver_entry : softgpu_driver_entry,
		.bar_sizes = &options->vram_bytes,
		.bar_count = 1,
		.registry = registry,
		.registry_count =
			(uint32_t)(options->aperture_bytes ? registry_count - 2 : registry_count),
	};
	vidmm_status status = vidmm_adapter_start(world->host, &adapter_options, &world->adapter);

	if (status >= 0)
		return REPLAY_CLEAN;
	world_message(world, "the adapter does not start: 0x%08" PRIX32 "%s%s", (uint32_t)status,
		      world->last_reason[0] ? ": " : "", world->last_reason);
	return REPLAY_ENVIRONMENT;
}

enum replay_status world_start(struct world *world)
{
	enum replay_status status;

	pthread_mutex_init(&world->lock, NULL);
	if (world->options->verify != REPLAY_VERIFY_NONE)
		world->block_bytes = world->options->verify == REPLAY_VERIFY_FULL ? 4096 : 65536;
	status = start_host(world);
	return status == REPLAY_CLEAN ? start_adapter(world) : status;
}

void world_stop(struct world *world)
{
	unsigned i;

	for (i = 0; i < world->process_count; i++)
		umd_destroy(world->processes[i]);
	if (world->adapter)
		vidmm_adapter_stop(world->adapter);
	history_destroy(world->history);
	if (world->event_subscription)
		vidmm_unsubscribe(world->host, world->event_subscription);
	if (world->finding_subscription)
		vidmm_unsubscribe(world->host, world->finding_subscription);
	if (world->host)
		vidmm_host_destroy(world->host);
	for (i = 0; i < world->key_count; i++)
		content_put(world->keys[i].content);
	free(world->processes);
	free(world->keys);
	free(world->names);
	pthread_mutex_destroy(&world->lock);
}

/* ---- content ---- */

struct content *world_content(struct world *world, uint32_t process, uint32_t buffer,
			      uint64_t size_bytes)
{
	if (!grow_array((void **)&world->names, &world->name_room, world->name_count,
			sizeof(*world->names)))
		return NULL;
	world->names[world->name_count++] = (struct world_name){process, buffer};
	return content_create(world->name_count, size_bytes, world->block_bytes);
}

/* "buffer 17 of glmark2", or what else the number may be. */
static const char *name_of(const struct world *world, uint32_t number, char *text, size_t size)
{
	if (number == 0)
		snprintf(text, size, "nothing");
	else if (number > world->name_count)
		snprintf(text, size, "no buffer (0x%08" PRIX32 ")", number);
	else
		snprintf(text, size, "buffer %" PRIu32 " of %s", world->names[number - 1].buffer,
			 umd_name(world->processes[world->names[number - 1].process]));
	return text;
}

static void show_history(struct world *world, uint32_t number)
{
	const struct world_name *name = &world->names[number - 1];
	const struct umd *umd = world->processes[name->process];
	struct vidmm_event events[HISTORY_EVENTS];
	uint32_t handle = umd_handle_of(umd, name->buffer);
	unsigned count, i;
	char line[256];

	if (handle == 0)
		return;
	count = history_of(world->history, umd_process_id(umd), handle, events);
	for (i = 0; i < count; i++) {
		vidmm_event_format(&events[i], NULL, line, sizeof(line));
		world_message(world, "    %s", line);
	}
}

void world_wrong_stamp(struct world *world, const struct softgpu_stamp *expected,
		       const struct softgpu_stamp *found, const char *who)
{
	char name[128], other[128];

	if (world->result->verify_errors++ >= ERRORS_SHOWN)
		return;
	name_of(world, expected->buffer, name, sizeof(name));
	if (found->buffer == expected->buffer && found->block == expected->block)
		world_message(world,
			      "verify: %s found %s block %" PRIu32 " at version %" PRIu32
			      ", expected %" PRIu32,
			      who, name, expected->block, found->version, expected->version);
	else
		world_message(world,
			      "verify: %s found %s block %" PRIu32 " version %" PRIu32
			      " in %s block %" PRIu32 ", expected version %" PRIu32,
			      who, name_of(world, found->buffer, other, sizeof(other)),
			      found->block, found->version, name, expected->block,
			      expected->version);
	show_history(world, expected->buffer);
}

/* ---- keys ---- */

struct world_key *world_find_key(struct world *world, uint64_t key)
{
	uint32_t i;

	for (i = world->key_count; i-- > 0;) {
		if (world->keys[i].key == key && world->keys[i].users > 0)
			return &world->keys[i];
	}
	return NULL;
}

struct world_key *world_add_key(struct world *world)
{
	uint32_t i;

	for (i = 0; i < world->key_count && world->keys[i].users > 0; i++)
		;
	if (i == world->key_count) {
		if (!grow_array((void **)&world->keys, &world->key_room, i, sizeof(*world->keys)))
			return NULL;
		world->key_count++;
	}
	world->keys[i] = (struct world_key){0};
	return &world->keys[i];
}

void world_key_put(struct world *world, uint32_t index)
{
	struct world_key *key = &world->keys[index];

	if (--key->users > 0)
		return;
	content_put(key->content);
	key->content = NULL;
}
