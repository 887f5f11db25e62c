/* SPDX-License-Identifier: MIT */
/*
 * The protocol of src/memory/fast_lock.h, with every interleaving of a few threads explored. Each
 * step is one access to shared variables, in sequentially consistent memory. The model is written
 * from docs/locking.md, independently of the code. With a MODEL_LOSER, the lockers are
 * out-of-process clients (docs/adr/0002-locks-without-a-message.md).
 */
#ifndef VMM_TESTS_MODEL_FAST_LOCK_MODEL_H
#define VMM_TESTS_MODEL_FAST_LOCK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum model_thread {
	MODEL_NO_THREAD,
	MODEL_LOCKER, /* locks and unlocks handle 1, then handle 2 */
	MODEL_MOVER,  /* needs a constant number of locks while it moves the content */
	/* destroys handle 1; handle 2 then names another allocation in the same table entry */
	MODEL_DESTROYER,
	MODEL_SUBMITTER, /* references it in a submission, which the GPU then executes */
	MODEL_LOSER,     /* loses the device; out-of-process clients see that only by the epoch */
	/* locks with Discard and NoExistingReference if the word says that the instance stays */
	MODEL_DISCARDER,
	MODEL_GROWER /* creates a second instance of the allocation of handle 1 */
};
#define MODEL_THREADS 4

/* What a faulty protocol leaves out. */
enum model_fault {
	MODEL_CORRECT,
	MODEL_MOVER_DOES_NOT_DISABLE,
	MODEL_SWAP_IGNORES_HANDLE, /* handle and version are not compared */
	MODEL_ADDRESS_AFTER_SWAP,  /* the address is read after the lock has been counted */
	MODEL_SUBMISSION_IGNORED,  /* enabling may come between a submission's check and its mark */
	MODEL_UNLOCK_IGNORES_DISABLED, /* an unlock counts in the word although it is disabled */
	MODEL_EPOCH_IGNORED,           /* a lock accepts a word of an older epoch */
	/* the enabling thread checks the device before it reads the epoch */
	MODEL_EPOCH_READ_AFTER_DEVICE_CHECK,
	MODEL_EPOCH_ADVANCED_BEFORE_LOSS, /* the epoch is advanced before the device is lost */
	MODEL_GROWER_DOES_NOT_DISABLE,
	MODEL_DISCARD_IGNORES_COUNT /* Discard keeps an instance that is locked */
};

struct model_result {
	const char *broken; /* the first claim that does not hold; NULL: all hold */
	uint64_t states;
	bool out_of_space; /* more states than STATES_MAX */
};

struct model_result fast_lock_model_explore(const enum model_thread threads[MODEL_THREADS],
					    enum model_fault fault);

#endif
