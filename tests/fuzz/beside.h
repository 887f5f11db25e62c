/* SPDX-License-Identifier: MIT */
/*
 * beside: honest processes beside a hostile client (hostile.h), on adapters with less video memory
 * than they need together: one of WDDM 1.x and one of 2.x, with GPU virtual addresses. In-process,
 * each adapter has an honest process; a third one is a client of the same server, by the client
 * library. All find what they wrote, and no byte of theirs reaches the hostile client. When that
 * client has gone, its allocations and descriptors are freed.
 */
#ifndef VMM_TESTS_FUZZ_BESIDE_H
#define VMM_TESTS_FUZZ_BESIDE_H

#include <support/client.h>

#include "hostile.h"

#define BESIDE_HONEST   4u
#define BESIDE_ADAPTERS 2u

struct neighbour {
	struct client client;
	struct client_device device;
	D3DKMT_HANDLE allocations[BESIDE_HONEST];
	uint32_t generation;
};

struct beside {
	struct neighbour honest[BESIDE_ADAPTERS];
	/* Totals over all scripts. */
	uint64_t scripts, welcomes, requests, answers, done, refusals, mapped, scribbled;
	const char *wrong; /* the first violation */
};

void beside_begin(struct beside *b);
/*
 * Runs one script on a new server; *b->wrong gets the violation. A script that hangs ends the
 * program.
 */
void beside_run(struct beside *b, const uint8_t *script, size_t bytes);
void beside_end(struct beside *b);

#endif
