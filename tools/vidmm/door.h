/* SPDX-License-Identifier: MIT */
/*
 * door: where the user-mode drivers of a replay find the memory manager. Either it is in this program (door_here: a host
 * and an adapter are started for the replay, a driver calls the callbacks of its device) or in another one (door_there: a
 * connection to `vidmm serve`, whose adapter is whatever it is). A driver knows neither: it has a door.
 */
#ifndef VIDMM_TOOLS_DOOR_H
#define VIDMM_TOOLS_DOOR_H

#include <vidmm/vidmm.h>

#include "replay.h"

struct world;
struct door_place;

/* One process with one device. */
struct door {
	const struct door_place *place;
	const struct _D3DDDI_DEVICECALLBACKS *callbacks;
	void *device;        /* the first argument of every callback */
	uint32_t process_id; /* as in events */
};

/* Sizes of the adapter that a driver goes by; softgpu says them (struct softgpu_adapter_info). */
struct door_adapter {
	uint64_t vram_bytes, aperture_bytes; /* aperture_bytes 0: it has none */
};

struct door_place {
	/* Everything that comes before the first door; what fails has been explained. `stop` follows in any case, after all doors. */
	enum replay_status (*start)(struct world *world, struct door_adapter *adapter);
	void (*stop)(struct world *world);
	vidmm_status (*open)(struct world *world, const char *name, struct door **door);
	void (*close)(struct door *door); /* the process ends */
	/* Time of this place, and the event's time in it. */
	uint64_t (*now_ns)(struct world *world);
	void (*wait_until_ns)(struct world *world, uint64_t when_ns);
	/* The GPU has finished everything; then what this place can say of itself goes into the result. */
	void (*wait_idle)(struct world *world);
	void (*collect)(struct world *world);
	uint64_t (*event_hash)(struct world *world); /* of everything up to now; 0: not kept */
	/* As the functions of vidmm.h about sharing. */
	vidmm_status (*set_shared)(struct door *door, void *runtime_resource);
	vidmm_status (*share)(struct door *door, uint32_t km_resource, uint32_t *global_handle);
	vidmm_status (*open_shared)(struct door *door, uint32_t global_handle,
				    uint32_t *allocation);
};

extern const struct door_place door_here, door_there;

#endif
