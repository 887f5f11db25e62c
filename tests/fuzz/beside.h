/* SPDX-License-Identifier: MIT */
/*
 * beside: honest processes beside a hostile client (hostile.h), on one adapter with less video
 * memory than they want. One is a process of the host's own; another is a program's that talks to
 * the same server by the client library. Both find what they wrote; no byte of theirs comes to the
 * hostile one by whatever way; and when that is gone, so is everything it made: allocations,
 * descriptors.
 */
#ifndef VMM_TESTS_FUZZ_BESIDE_H
#define VMM_TESTS_FUZZ_BESIDE_H

#include <support/client.h>

#include "hostile.h"

#define BESIDE_HONEST 4u

struct neighbour {
	struct client client;
	struct client_device device;
	D3DKMT_HANDLE allocations[BESIDE_HONEST];
	uint32_t generation;
};

struct beside {
	struct neighbour honest;
	/* What came of all scripts. */
	uint64_t scripts, welcomes, requests, answers, done, refusals, mapped, scribbled;
	const char *wrong; /* the first thing that must not be */
};

void beside_begin(struct beside *b);
/*
 * One script, on a server of its own; *b->wrong says what it found. A script that hangs ends the
 * program.
 */
void beside_run(struct beside *b, const uint8_t *script, size_t bytes);
void beside_end(struct beside *b);

#endif
