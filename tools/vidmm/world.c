/* SPDX-License-Identifier: MIT */
/*
 * The state that all processes of a replay in this process share: start, stop, contents by number,
 * and messages about wrong content.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/softgpu.h>
#include <wddm_kernel.h>

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
	world->wddm2 = world->options->wddm2;
	world->ops = world->options->connect ? &host_remote : &host_local;
	world->exchange = world->worker.exchange ? world->worker.exchange : exchange_create(false);
	if (!world->exchange) {
		world_message(world, "out of memory");
		return REPLAY_ENVIRONMENT;
	}
	enum replay_status status = world->ops->start(world, &world->adapter_sizes);
	world->result->vram_bytes = world->adapter_sizes.vram_bytes;
	world->result->aperture_bytes = world->adapter_sizes.aperture_bytes;
	return status;
}

void world_stop(struct world *world)
{
	unsigned i;

	for (i = 0; i < world->process_count; i++)
		umd_destroy(world->processes[i]);
	if (world->ops)
		world->ops->stop(world);
	if (!world->worker.exchange)
		exchange_destroy(world->exchange);
	free(world->processes);
	for (i = 0; i < world->shared_uses_count; i++)
		free(world->shared_uses[i]);
	free(world->shared_uses);
	free(world->content_owners);
	pthread_mutex_destroy(&world->lock);
}

/* ---- refusals ---- */

/*
 * True if no rule refused the device or adapter: the machine lacks memory for it, or the host
 * closed the connection.
 */
static bool environment_refused(const struct world *world, vidmm_status status)
{
	return status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES ||
	       (status == STATUS_DEVICE_REMOVED && world->ops == &host_remote);
}

enum replay_status world_refused(struct world *world, const char *program, vidmm_status status)
{
	struct replay_refusal *refusal = &world->result->refusal;

	*refusal = (struct replay_refusal){
		.refused = true, .device = program != NULL, .status = status};
	snprintf(refusal->program, sizeof(refusal->program), "%s", program ? program : "");
	pthread_mutex_lock(&world->lock);
	memcpy(refusal->reason, world->last_reason, sizeof(refusal->reason));
	pthread_mutex_unlock(&world->lock);
	world_message(world, "%s%s was refused with status 0x%08" PRIX32 "%s%s", refusal->program,
		      program ? ": the device" : "the adapter", (uint32_t)status,
		      refusal->reason[0] ? ": " : "", refusal->reason);
	return environment_refused(world, status) ? REPLAY_ENVIRONMENT : REPLAY_FINDINGS;
}

/* ---- findings ---- */

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

void world_keep_finding(struct world *world, const char *text)
{
	const struct replay_options *options = world->options;
	struct replay_result *result = world->result;
	struct replay_finding *finding = finding_of_rule(result, text);

	if (options->known && options->known(options->known_context, text))
		return;
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

void world_finding(struct world *world, const char *text)
{
	pthread_mutex_lock(&world->lock);
	world_keep_finding(world, text);
	pthread_mutex_unlock(&world->lock);
}

/* ---- content ---- */

/*
 * Content numbers are unique over all workers: worker i uses the numbers i + 1 modulo their count.
 */
static unsigned stride(const struct world *world)
{
	return world->worker.count ? world->worker.count : 1;
}

struct content *world_content(struct world *world, uint32_t process, uint32_t buffer,
			      uint64_t size_bytes)
{
	uint32_t number;

	if (!grow_array((void **)&world->content_owners, &world->owner_capacity, world->owner_count,
			sizeof(*world->content_owners)))
		return NULL;
	world->content_owners[world->owner_count] = (struct content_owner){process, buffer};
	number = world->owner_count++ * stride(world) + world->worker.index + 1;
	return content_create(number, size_bytes, world->block_bytes);
}

/* Returns the owner of a content number, NULL if it is not of this process. */
static const struct content_owner *find_owner(const struct world *world, uint32_t number)
{
	uint32_t index = (number - 1) / stride(world);

	if (number == 0 || (number - 1) % stride(world) != world->worker.index ||
	    index >= world->owner_count)
		return NULL;
	return &world->content_owners[index];
}

/*
 * Writes "buffer 17 of glmark2" for a content number, or which worker it belongs to, or that it is
 * none.
 */
static const char *buffer_text(const struct world *world, uint32_t number, char *text, size_t size)
{
	const struct content_owner *owner = find_owner(world, number);

	if (number == 0)
		snprintf(text, size, "no stamp");
	else if (owner)
		snprintf(text, size, "buffer %" PRIu32 " of %s", owner->buffer,
			 umd_name(world->processes[owner->process]));
	else if (world->worker.count)
		snprintf(text, size, "a buffer of %.63s (0x%08" PRIX32 ")",
			 world->worker.headers[(number - 1) % world->worker.count].program, number);
	else
		snprintf(text, size, "an unknown buffer (0x%08" PRIX32 ")", number);
	return text;
}

static void show_history(struct world *world, uint32_t number)
{
	const struct content_owner *owner = find_owner(world, number);
	struct vidmm_event events[HISTORY_EVENTS];
	unsigned count, i;
	char line[256];

	if (!world->history || !owner)
		return;
	const struct umd *umd = world->processes[owner->process];
	uint32_t handle = umd_handle_of(umd, owner->buffer);
	if (handle == 0)
		return;
	count = history_of(world->history, umd_process_id(umd), handle, events);
	for (i = 0; i < count; i++) {
		vidmm_event_format(&events[i], NULL, line, sizeof(line));
		world_message(world, "    %s", line);
	}
}

void world_wrong_stamp(struct world *world, const struct softgpu_stamp *expected,
		       const struct softgpu_stamp *found, const char *checker)
{
	char name[128], other[128];

	if (world->result->verify_errors++ >= ERRORS_SHOWN)
		return;
	buffer_text(world, expected->buffer, name, sizeof(name));
	if (found->buffer == expected->buffer && found->block == expected->block)
		world_message(world,
			      "verify: %s found %s block %" PRIu32 " at version %" PRIu32
			      ", expected %" PRIu32,
			      checker, name, expected->block, found->version, expected->version);
	else
		world_message(world,
			      "verify: %s found %s block %" PRIu32 " version %" PRIu32
			      " in %s block %" PRIu32 ", expected version %" PRIu32,
			      checker, buffer_text(world, found->buffer, other, sizeof(other)),
			      found->block, found->version, name, expected->block,
			      expected->version);
	show_history(world, expected->buffer);
}
