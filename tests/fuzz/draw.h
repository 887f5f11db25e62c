/* SPDX-License-Identifier: MIT */
/*
 * Random arguments of calls, drawn by the table of operations (src/wire/operations.tsv): anything
 * that a client could pass, valid or not. Blocks have their exact size, so a sanitizer detects each
 * byte beyond.
 */
#ifndef VMM_TESTS_FUZZ_DRAW_H
#define VMM_TESTS_FUZZ_DRAW_H

#include "wire/wire_private.h"

#define DRAW_BLOCKS 512u

struct draw {
	uint64_t seed;
	void *blocks[DRAW_BLOCKS]; /* memory that the client's pointers point to */
	uint32_t count;
	/* Meaningful words, mostly handles, which are drawn now and then. */
	const uint32_t *pool;
	uint32_t pool_count;
	const int *descriptors; /* the same for NT handles */
	uint32_t descriptor_count;
};

uint32_t draw_below(struct draw *d, uint32_t below);
uint8_t *draw_block(struct draw *d, uint64_t bytes);
void draw_forget(struct draw *d);
/* Draws an argument: counts and conditions first, because pointers depend on them. */
void draw_record(struct draw *d, const struct vmm_wire_record *record, uint8_t *memory);

/* Of an argument that was drawn. */
void draw_set(uint8_t *record, uint32_t at, uint64_t value, uint32_t bytes);
uint64_t draw_get(const uint8_t *record, uint32_t at, uint32_t bytes);
enum vmm_wire_values draw_values_of(void *context, uint32_t handle); /* derived from the handle */
bool draw_applies(const struct vmm_wire_member *member, const uint8_t *record);
uint64_t draw_elements(const struct vmm_wire_member *member, const uint8_t *record);

#endif
