/* SPDX-License-Identifier: MIT */
/*
 * The protocol of src/memory/gate.h, with every interleaving of a few threads explored: each step is one access to
 * what they share, in sequentially consistent memory. It is written from docs/locking.md, beside the code. Where there is a loser the
 * lockers are clients in other address spaces (docs/adr/0002-locks-without-a-message.md).
 */
#ifndef VMM_TESTS_MODEL_GATE_MODEL_H
#define VMM_TESTS_MODEL_GATE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum gate_thread {
	GATE_NOBODY,
	GATE_LOCKER,    /* locks and unlocks handle 1, then handle 2 */
	GATE_MOVER,     /* wants the number of locks to stay while it moves the content */
	GATE_DESTROYER, /* ends what handle 1 names; handle 2 names something else in the same place */
	GATE_SUBMITTER, /* names it in a submission, which the GPU then executes */
	GATE_LOSER /* ends the device, which nobody in another address space sees but by the epoch */
};
#define GATE_THREADS 4

/* What a wrong protocol would leave out. */
enum gate_mistake {
	GATE_NO_MISTAKE,
	GATE_MOVER_DOES_NOT_SHUT,
	GATE_SWAP_IGNORES_HANDLE,    /* neither handle nor version are part of what is compared */
	GATE_ADDRESS_AFTER_SWAP,     /* it is read when the lock has been counted */
	GATE_SUBMISSION_IS_NOT_SEEN, /* a gate opens between the look at a reference and its mark */
	GATE_UNLOCK_IGNORES_SHUT,    /* it counts in the word whatever that says */
	GATE_EPOCH_IS_NOT_SEEN,      /* a lock goes by a word of an older epoch */
	GATE_EPOCH_BEHIND_THE_LOOK,  /* who opens looks at the device, then reads the epoch */
	GATE_EPOCH_BEFORE_THE_LOSS   /* who ends it goes on to the next epoch first */
};

struct gate_result {
	const char *broken; /* the claim that does not hold; NULL: all do */
	uint64_t states;
	bool gave_up; /* more states than it has room for */
};

struct gate_result gate_model_explore(const enum gate_thread threads[GATE_THREADS],
				      enum gate_mistake mistake);

#endif
