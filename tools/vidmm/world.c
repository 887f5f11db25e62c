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

enum replay_status world_start(struct world *world)
{
	pthread_mutex_init(&world->lock, NULL);
	if (world->options->verify != REPLAY_VERIFY_NONE)
		world->block_bytes = world->options->verify == REPLAY_VERIFY_FULL ? 4096 : 65536;
	world->place = world->options->connect ? &door_there : &door_here;
	world->exchange = world->crew.exchange ? world->crew.exchange : exchange_create(false);
	if (!world->exchange) {
		world_message(world, "out of memory");
		return REPLAY_ENVIRONMENT;
	}
	enum replay_status status = world->place->start(world, &world->adapter_sizes);
	world->result->vram_bytes = world->adapter_sizes.vram_bytes;
	world->result->aperture_bytes = world->adapter_sizes.aperture_bytes;
	return status;
}

void world_stop(struct world *world)
{
	unsigned i;

	for (i = 0; i < world->process_count; i++)
		umd_destroy(world->processes[i]);
	if (world->place)
		world->place->stop(world);
	if (!world->crew.exchange)
		exchange_destroy(world->exchange);
	free(world->processes);
	free(world->names);
	pthread_mutex_destroy(&world->lock);
}

/* ---- content ---- */

/* Of a crew's numbers every member has its own. */
static unsigned stride(const struct world *world)
{
	return world->crew.count ? world->crew.count : 1;
}

struct content *world_content(struct world *world, uint32_t process, uint32_t buffer,
			      uint64_t size_bytes)
{
	uint32_t number;

	if (!grow_array((void **)&world->names, &world->name_room, world->name_count,
			sizeof(*world->names)))
		return NULL;
	world->names[world->name_count] = (struct world_name){process, buffer};
	number = world->name_count++ * stride(world) + world->crew.index + 1;
	return content_create(number, size_bytes, world->block_bytes);
}

/* NULL: not one of this program's. */
static const struct world_name *find_name(const struct world *world, uint32_t number)
{
	uint32_t index = (number - 1) / stride(world);

	if (number == 0 || (number - 1) % stride(world) != world->crew.index ||
	    index >= world->name_count)
		return NULL;
	return &world->names[index];
}

/* "buffer 17 of glmark2", or what else the number may be. */
static const char *name_of(const struct world *world, uint32_t number, char *text, size_t size)
{
	const struct world_name *name = find_name(world, number);

	if (number == 0)
		snprintf(text, size, "nothing");
	else if (name)
		snprintf(text, size, "buffer %" PRIu32 " of %s", name->buffer,
			 umd_name(world->processes[name->process]));
	else if (world->crew.count)
		snprintf(text, size, "a buffer of %.63s (0x%08" PRIX32 ")",
			 world->crew.headers[(number - 1) % world->crew.count].program, number);
	else
		snprintf(text, size, "no buffer (0x%08" PRIX32 ")", number);
	return text;
}

static void show_history(struct world *world, uint32_t number)
{
	const struct world_name *name = find_name(world, number);
	struct vidmm_event events[HISTORY_EVENTS];
	unsigned count, i;
	char line[256];

	if (!world->history || !name)
		return;
	const struct umd *umd = world->processes[name->process];
	uint32_t handle = umd_handle_of(umd, name->buffer);
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
