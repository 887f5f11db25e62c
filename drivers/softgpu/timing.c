/* SPDX-License-Identifier: MIT */
/*
 * How long work keeps an engine busy. Without a rate for the host link, moved bytes take the time
 * of the engine wherever they are. Runs on the engine's thread; the engine waits later (engine.c).
 */
#include "softgpu_private.h"

/* Rate 0: no time. */
static uint64_t time_ns(uint64_t bytes, uint64_t bytes_per_us)
{
	if (!bytes_per_us)
		return 0;
	return bytes / bytes_per_us * 1000 + bytes % bytes_per_us * 1000 / bytes_per_us;
}

void softgpu_charge_bytes(struct softgpu_engine *engine, uint64_t bytes, int in_video_memory)
{
	const struct softgpu_settings *settings = &engine->adapter->settings;
	uint64_t rate = settings->host_link_bytes_per_us;

	if (in_video_memory || !rate)
		rate = settings->engine_bytes_per_us;
	engine->busy_until_ns += time_ns(bytes, rate);
}

void softgpu_charge_operation(struct softgpu_engine *engine)
{
	engine->busy_until_ns += engine->adapter->settings.host_link_latency_ns;
}

void softgpu_charge_traffic(struct softgpu_engine *engine, const struct softgpu_traffic *command,
			    const char *host)
{
	const struct softgpu_settings *settings = &engine->adapter->settings;
	uint64_t ns = command->nanoseconds, link_ns = 0;

	if (!softgpu_is_video_memory(&engine->adapter->memory, host))
		link_ns = time_ns(command->length, settings->host_link_bytes_per_us) *
			  settings->host_link_passes;
	engine->busy_until_ns += ns > link_ns ? ns : link_ns;
}
