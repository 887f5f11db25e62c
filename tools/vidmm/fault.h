/* SPDX-License-Identifier: MIT */
/*
 * Faults of the system, on purpose: `vidmm serve --fault` and tests. A program that is linked with
 * --wrap for the functions of fault_wraps.c has one call of a kind fail as the system would. Not in
 * release builds.
 */
#ifndef VIDMM_TOOLS_FAULT_H
#define VIDMM_TOOLS_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
	FAULT_MEMORY,
	FAULT_MAPPING,
	FAULT_DESCRIPTOR,
	FAULT_THREAD,
	FAULT_SOCKET,
	FAULT_KINDS
};
extern const char *const fault_kind_name[FAULT_KINDS];

/*
 * Counts calls of the kind from now on; the n-th fails, once. 0: none fails. Calls of other kinds
 * do not fail.
 */
void fault_arm(enum fault_kind kind, uint32_t n);
/* From now on each call of any kind fails with a chance of 1 to 64, drawn from the seed. */
void fault_by_seed(uint64_t seed);
/* No call fails any more. Returns the number of calls that failed. */
uint32_t fault_end(void);
/* The number of calls of the kind since fault_arm or fault_by_seed. */
uint32_t fault_calls(enum fault_kind kind);
/* What `--fault` asks for. */
struct fault {
	bool wanted, seeded;
	enum fault_kind kind;
	uint64_t number; /* of the call, or the seed */
};
/* Reads KIND:N or seed:N. Returns false if the text is neither. */
bool fault_parse(const char *text, struct fault *fault);
/* fault_arm or fault_by_seed, if it is wanted. */
void fault_begin(const struct fault *fault);
/* main says that this program is linked with --wrap. */
void fault_offer(void);
bool fault_is_offered(void);

/* No call of the calling thread fails, and none is counted. */
void fault_spare_thread(void);
/* For the wrapped functions: counts a call. true: it is to fail. Keeps errno. */
bool fault_fails(enum fault_kind kind);

#endif
