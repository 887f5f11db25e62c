/* SPDX-License-Identifier: MIT */
/*
 * Arguments of calls drawn by the table of operations (src/wire/operations.tsv): whatever a client
 * could have in one, well-meant or not. Blocks are exact, so a sanitizer sees each byte.
 */
#ifndef VMM_TESTS_FUZZ_DRAW_H
#define VMM_TESTS_FUZZ_DRAW_H

#include "wire/wire_private.h"

#define DRAW_BLOCKS 512u

struct draw {
	uint64_t seed;
	void *blocks[DRAW_BLOCKS]; /* what the client's pointers point to */
	uint32_t count;
	/*
	 * Words that mean something, of which arguments are made now and then: handles, most of
	 * all.
	 */
	const uint32_t *pool;
	uint32_t pool_count;
	const int *descriptors; /* the same for HANDLEs that are descriptors */
	uint32_t descriptor_count;
};

uint32_t draw_below(struct draw *d, uint32_t below);
uint8_t *draw_block(struct draw *d, uint64_t bytes);
void draw_forget(struct draw *d);
/* Counts and conditions first: pointers are drawn by them. */
void draw_record(struct draw *d, const struct vmm_wire_record *record, uint8_t *memory);

/* Of a record that was drawn. */
void draw_set(uint8_t *record, uint32_t at, uint64_t value, uint32_t bytes);
uint64_t draw_get(const uint8_t *record, uint32_t at, uint32_t bytes);
enum vmm_wire_values draw_values_of(void *context, uint32_t handle); /* by the handle alone */
bool draw_applies(const struct vmm_wire_member *member, const uint8_t *record);
uint64_t draw_elements(const struct vmm_wire_member *member, const uint8_t *record);

#endif
