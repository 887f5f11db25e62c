/* SPDX-License-Identifier: MIT */
/* handle_map: a hash table from allocation handles of processes to numbers. */
#ifndef VIDMM_TOOLS_HANDLE_MAP_H
#define VIDMM_TOOLS_HANDLE_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct handle_map_slot {
	uint32_t process, handle; /* handle 0: unused */
	uint32_t number;
};

/* All zero: an empty map. */
struct handle_map {
	struct handle_map_slot *slots;
	uint32_t capacity; /* 0 or a power of two */
	uint32_t count;
};

void handle_map_finish(struct handle_map *map);
/* Stores the number of a handle that is not 0 in *NUMBER. Returns false if it has none. */
bool handle_map_find(const struct handle_map *map, uint32_t process, uint32_t handle,
		     uint32_t *number);
/* Sets the number of a handle that is not 0. Returns false when out of memory. */
bool handle_map_set(struct handle_map *map, uint32_t process, uint32_t handle, uint32_t number);

#endif
