/* SPDX-License-Identifier: MIT */
/*
 * Random calls that must be refused, on the scripted miniport. They change neither bytes,
 * residency, statistics nor the miniport's balance of creates and destroys, and the adapter
 * continues to work.
 */
#ifndef VMM_TESTS_FUZZ_REFUSAL_H
#define VMM_TESTS_FUZZ_REFUSAL_H

#include <sched_world.h>

#define WITNESSES     4u
#define REFUSAL_BANKS 4u /* of segment 1 */
#define WITNESS_BYTES (64u * KIB)

/* State that must not change. Peaks and counts of calls may. */
struct refusal_snapshot {
	struct vidmm_adapter_statistics statistics;
	uint32_t devices, contexts, allocations, opens;
	uint32_t residency[WITNESSES];
};

struct refusal {
	struct world w;
	uint64_t seed, random;
	/* Guided by coverage: what is drawn comes from here, then 0. */
	bool guided;
	const uint8_t *input;
	size_t input_bytes;
	uint32_t step;
	const char *what; /* the call of this step, for a failure's message */
	uint32_t detail;
	D3DKMT_HANDLE witness
		[WITNESSES]; /* the last one stays locked; behind it comes one that is offered */
	const uint32_t *locked;
	D3DKMT_HANDLE offered;
	struct client_device other; /* of another process */
	D3DKMT_HANDLE foreign;      /* an allocation of that process */
	D3DKMT_HANDLE stale;
	/*
	 * Of the same process, by D3DKMT functions: a device, a context of it, a resource with one
	 * allocation.
	 */
	D3DKMT_HANDLE kmt_adapter, kmt_device, kmt_context, kmt_resource, kmt_allocation;
	struct refusal_snapshot before;
};

/* Each program defines it: its name, and one call with its checks. */
extern const struct refusal_program {
	const char *name;
	void (*step)(struct refusal *r);
} refusal_program;

/* Runs the step many times on each of the seeds, or until the time is over; called by main. */
int refusal_main(int count, char **arguments);
/* Runs steps that draw from the input until all of the input is drawn. The world stays. */
void refusal_input(const uint8_t *data, size_t size);

uint32_t refusal_draw(struct refusal *r, uint32_t below);
uint64_t refusal_wide(struct refusal *r); /* Returns a random number: small, round, huge, or any. */
/* Returns a handle that is no allocation of the witnesses' device, nor of the D3DKMT client's. */
D3DKMT_HANDLE refusal_bad_handle(struct refusal *r);
/* Makes a list of up to four handles, one of them bad. Returns the count. */
uint32_t refusal_bad_list(struct refusal *r, D3DKMT_HANDLE *list, D3DKMT_HANDLE good);
/* Ends the test with seed, step and the call. */
void refusal_wrong(const struct refusal *r, const char *what, uint64_t got);
/* Checks that the result is one that the interface documents for bad input. */
void refusal_expect(const struct refusal *r, HRESULT result);

#endif
