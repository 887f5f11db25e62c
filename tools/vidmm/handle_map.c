/* SPDX-License-Identifier: MIT */
/* Linear probing; at most half of the slots are used. */
#include "handle_map.h"

#include <stdlib.h>

#define CAPACITY_FIRST 64u

/* Returns the slot of the handle, or the unused one where it belongs. */
static struct handle_map_slot *slot_of(const struct handle_map *map, uint32_t process,
				       uint32_t handle)
{
	uint64_t x = ((uint64_t)process << 32 | handle) * 0x9E3779B97F4A7C15u;
	uint32_t at = (uint32_t)(x >> 32) & (map->capacity - 1);

	while (map->slots[at].handle != 0 &&
	       (map->slots[at].handle != handle || map->slots[at].process != process))
		at = (at + 1) & (map->capacity - 1);
	return &map->slots[at];
}

void handle_map_finish(struct handle_map *map)
{
	free(map->slots);
	*map = (struct handle_map){0};
}

bool handle_map_find(const struct handle_map *map, uint32_t process, uint32_t handle,
		     uint32_t *number)
{
	const struct handle_map_slot *slot = map->count ? slot_of(map, process, handle) : NULL;

	if (!slot || slot->handle == 0)
		return false;
	*number = slot->number;
	return true;
}

static bool grow(struct handle_map *map)
{
	struct handle_map larger = {.capacity = map->capacity ? map->capacity * 2 : CAPACITY_FIRST,
				    .count = map->count};

	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (uint32_t i = 0; i < map->capacity; i++)
		if (map->slots[i].handle != 0)
			*slot_of(&larger, map->slots[i].process, map->slots[i].handle) =
				map->slots[i];
	free(map->slots);
	*map = larger;
	return true;
}

bool handle_map_set(struct handle_map *map, uint32_t process, uint32_t handle, uint32_t number)
{
	struct handle_map_slot *slot;

	if ((map->count + 1) * 2 > map->capacity && !grow(map))
		return false;
	slot = slot_of(map, process, handle);
	map->count += slot->handle == 0;
	*slot = (struct handle_map_slot){process, handle, number};
	return true;
}
