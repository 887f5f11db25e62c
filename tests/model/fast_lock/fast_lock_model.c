/* SPDX-License-Identifier: MIT */
#include "model/fast_lock/fast_lock_model.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 2, VERSIONS = 4 };
#define STATES_MAX (1u << 21)

struct word {
	uint8_t handle, version, enabled, count;
};

struct thread {
	uint8_t at, rounds, address, seen;
	uint8_t began, late, epoch; /* late: the device was already lost when the lock began */
	struct word word;           /* as the thread read it */
};

struct state {
	struct word word;
	uint8_t address;
	uint8_t lock; /* the paging lock: 0, or thread + 1 */
	/* guarded by it: the enabled bit, and the lock count while disabled */
	uint8_t enabled, count;
	uint8_t live; /* the handle that exists */
	uint8_t submissions, captured, busy;
	uint8_t two;   /* the allocation of handle 1 has two instances */
	uint8_t keeps; /* beside the word: Discard returns the instance that it names */
	uint8_t lost, loss_done, epoch, word_epoch; /* the last: the epoch of the enabling */
	uint8_t held[3];                            /* locks that each handle holds */
	struct thread thread[MODEL_THREADS];
};

struct run {
	const enum model_thread *kind;
	enum model_fault fault;
	bool out_of_process; /* lockers check the epoch */
	const char *broken;
	struct state *states; /* a queue, and together with the index a set */
	uint32_t *index;
	uint32_t count;
};

enum { BLOCKED, STEPPED, ENDED };

static void claim(struct run *run, bool holds, const char *what)
{
	if (!holds && !run->broken)
		run->broken = what;
}

static bool take(struct state *s, unsigned self)
{
	if (s->lock)
		return false;
	s->lock = (uint8_t)(self + 1);
	return true;
}

static void disable(struct state *s)
{
	if (!s->enabled)
		return;
	s->count = s->word.count;
	s->word.enabled = s->word.count = 0;
	s->enabled = 0;
}

static bool same(const struct run *run, struct word a, struct word b)
{
	if (run->fault == MODEL_SWAP_IGNORES_HANDLE)
		return a.enabled == b.enabled && a.count == b.count;
	return !memcmp(&a, &b, sizeof(a));
}

/* ---- a locker: first the fast path, then the slow path ---- */

enum {
	READ,
	READ_ADDRESS,
	READ_EPOCH,
	SWAP,
	LATE_ADDRESS,
	HOLD,
	READ_AGAIN,
	SWAP_BACK,
	SLOW_LOCK,
	CHECK,
	COUNT,
	SUBMISSIONS,
	CAPTURED,
	IDLE,
	READ_CURRENT_EPOCH,
	CHECK_DEVICE,
	ENABLE_ADDRESS,
	ENABLE,
	RELEASE_LOCKED,
	RELEASE_UNLOCKED,
	RETRY,
	SLOW_UNLOCK,
	COUNT_BACK,
	FINISHED
};

static uint8_t handle_of(const struct thread *t)
{
	return (uint8_t)(t->rounds + 1);
}

static bool is_mine(const struct thread *t)
{
	return t->word.handle == handle_of(t) && t->word.enabled;
}

static void next_round(struct thread *t)
{
	uint8_t rounds = (uint8_t)(t->rounds + 1);

	*t = (struct thread){.rounds = rounds, .at = rounds == ROUNDS ? FINISHED : READ};
}

/* The thread has the lock and uses the address. */
static void use(struct run *run, const struct state *s, const struct thread *t)
{
	if (s->live == handle_of(t))
		claim(run, t->address == handle_of(t), "the address is that of the handle");
}

static void swap(struct run *run, struct state *s, struct thread *t, bool discards)
{
	if (!same(run, s->word, t->word)) {
		t->at = READ;
		return;
	}
	claim(run, s->live == handle_of(t), "only a live handle is locked");
	claim(run, !s->busy || s->live != 1, "an instance locked on the fast path is idle");
	claim(run, !t->late, "a lock that begins after the loss is refused");
	claim(run, !discards || !(s->two && s->live == 1), "Discard keeps only a single instance");
	claim(run, !discards || !s->word.count, "Discard keeps no locked instance");
	s->word.count++;
	s->held[handle_of(t)]++;
	if (run->fault != MODEL_ADDRESS_AFTER_SWAP)
		use(run, s, t);
	t->at = run->fault == MODEL_ADDRESS_AFTER_SWAP ? LATE_ADDRESS : HOLD;
}

/* What a thread does that cannot lock by the word. A discarder does nothing else. */
static void leave_fast_path(struct thread *t, bool discards)
{
	if (discards)
		next_round(t);
	else
		t->at = SLOW_LOCK;
}

static int step_fast_path(struct run *run, struct state *s, struct thread *t, bool discards)
{
	bool counts = run->fault != MODEL_DISCARD_IGNORES_COUNT;

	switch (t->at) {
	case READ:
		t->late = t->began ? t->late : s->loss_done;
		t->began = run->out_of_process;
		t->word = s->word;
		t->at = READ_ADDRESS;
		if (!is_mine(t))
			leave_fast_path(t, discards);
		return STEPPED;
	case READ_ADDRESS:
		if (discards && (!s->keeps || (counts && t->word.count))) {
			leave_fast_path(t, discards);
			return STEPPED;
		}
		t->address = s->address;
		t->epoch = s->word_epoch;
		t->at = run->out_of_process && run->fault != MODEL_EPOCH_IGNORED ? READ_EPOCH
										 : SWAP;
		return STEPPED;
	case READ_EPOCH:
		t->at = SWAP;
		if (s->epoch != t->epoch)
			leave_fast_path(t, discards);
		return STEPPED;
	case SWAP:
		swap(run, s, t, discards);
		return STEPPED;
	case LATE_ADDRESS:
		t->address = s->address;
		claim(run, t->address == handle_of(t), "the address is that of the handle");
		t->at = HOLD;
		return STEPPED;
	case HOLD:
		use(run, s, t);
		t->at = READ_AGAIN;
		return STEPPED;
	case READ_AGAIN:
		t->word = s->word;
		t->at = run->fault == MODEL_UNLOCK_IGNORES_DISABLED || (is_mine(t) && t->word.count)
				? SWAP_BACK
				: SLOW_UNLOCK;
		return STEPPED;
	default: /* SWAP_BACK */
		if (!same(run, s->word, t->word)) {
			t->at = READ_AGAIN;
			return STEPPED;
		}
		claim(run, s->word.count != 0, "an unlock finds a count above 0");
		s->word.count--;
		if (s->live == handle_of(t))
			s->held[handle_of(t)]--;
		next_round(t);
		return STEPPED;
	}
}

/* Under the paging lock: the first check of the handle disables the fast lock. */
static void check_and_disable(struct state *s, struct thread *t)
{
	bool lives = s->live == handle_of(t);

	if (lives)
		disable(s);
	if (t->at == COUNT_BACK) {
		if (lives && s->count && s->held[handle_of(t)]) {
			s->count--;
			s->held[handle_of(t)]--;
		}
		t->at = RELEASE_UNLOCKED;
	} else {
		t->at = !lives || s->lost         ? RELEASE_UNLOCKED
			: s->busy && s->live == 1 ? RETRY
						  : COUNT;
	}
}

static void count(struct state *s, struct thread *t)
{
	s->count++;
	s->held[handle_of(t)]++;
	t->address = handle_of(t);
	t->at = SUBMISSIONS;
}

static int step_enabling(const struct run *run, struct state *s, struct thread *t)
{
	switch (t->at) {
	case SUBMISSIONS:
		t->seen = s->submissions;
		t->at = CAPTURED;
		return STEPPED;
	case CAPTURED:
		t->at = t->seen == s->captured || run->fault == MODEL_SUBMISSION_IGNORED
				? IDLE
				: RELEASE_LOCKED;
		return STEPPED;
	case IDLE:
		t->at = s->busy && s->live == 1                             ? RELEASE_LOCKED
			: !run->out_of_process                              ? ENABLE_ADDRESS
			: run->fault == MODEL_EPOCH_READ_AFTER_DEVICE_CHECK ? CHECK_DEVICE
									    : READ_CURRENT_EPOCH;
		return STEPPED;
	case READ_CURRENT_EPOCH:
		t->epoch = s->epoch;
		t->at = run->fault == MODEL_EPOCH_READ_AFTER_DEVICE_CHECK ? ENABLE_ADDRESS
									  : CHECK_DEVICE;
		return STEPPED;
	case CHECK_DEVICE:
		t->at = s->lost                                             ? RELEASE_LOCKED
			: run->fault == MODEL_EPOCH_READ_AFTER_DEVICE_CHECK ? READ_CURRENT_EPOCH
									    : ENABLE_ADDRESS;
		return STEPPED;
	case ENABLE_ADDRESS:
		s->address = handle_of(t);
		s->keeps = !(s->two && s->live == 1);
		t->at = ENABLE;
		return STEPPED;
	default: /* ENABLE */
		s->word = (struct word){.handle = handle_of(t),
					.version = (uint8_t)((s->word.version + 1) % VERSIONS),
					.enabled = 1,
					.count = s->count};
		s->enabled = 1;
		s->word_epoch = t->epoch;
		t->at = RELEASE_LOCKED;
		return STEPPED;
	}
}

static int step_slow_path(const struct run *run, struct state *s, struct thread *t, unsigned self)
{
	switch (t->at) {
	case SLOW_LOCK:
	case SLOW_UNLOCK:
		if (!take(s, self))
			return BLOCKED;
		t->at = t->at == SLOW_LOCK ? CHECK : COUNT_BACK;
		return STEPPED;
	case CHECK:
	case COUNT_BACK:
		check_and_disable(s, t);
		return STEPPED;
	case COUNT:
		count(s, t);
		return STEPPED;
	case RELEASE_LOCKED:
		s->lock = 0;
		t->at = HOLD;
		return STEPPED;
	case RELEASE_UNLOCKED:
		s->lock = 0;
		next_round(t);
		return STEPPED;
	case RETRY: /* when the GPU has finished with it */
		s->lock = 0;
		t->at = READ;
		return STEPPED;
	default:
		return step_enabling(run, s, t);
	}
}

static int step_locker(struct run *run, struct state *s, unsigned self)
{
	struct thread *t = &s->thread[self];

	if (t->at == FINISHED)
		return ENDED;
	return t->at <= SWAP_BACK ? step_fast_path(run, s, t, run->kind[self] == MODEL_DISCARDER)
				  : step_slow_path(run, s, t, self);
}

/* ---- the other threads ---- */

static int step_mover(struct run *run, struct state *s, unsigned self)
{
	struct thread *t = &s->thread[self];

	switch (t->at++) {
	case 0:
		if (take(s, self))
			return STEPPED;
		t->at = 0;
		return BLOCKED;
	case 1:
		if (run->fault != MODEL_MOVER_DOES_NOT_DISABLE)
			disable(s);
		return STEPPED;
	case 2:
		t->seen = s->count;
		claim(run, s->count == s->held[s->live], "while disabled, the lock count is right");
		return STEPPED;
	case 3:
		claim(run, s->held[s->live] == t->seen,
		      "the lock count does not change during a move");
		s->lock = 0;
		return STEPPED;
	default:
		t->at--;
		return ENDED;
	}
}

static int step_destroyer(struct run *run, struct state *s, unsigned self)
{
	struct thread *t = &s->thread[self];

	(void)run;
	switch (t->at++) {
	case 0:
		if (take(s, self))
			return STEPPED;
		t->at = 0;
		return BLOCKED;
	case 1:
		disable(s);
		return STEPPED;
	case 2: /* its locks end with it (LOCK-30) */
		s->count = s->held[1] = 0;
		s->live = 2;
		return STEPPED;
	case 3:
		s->lock = 0;
		return STEPPED;
	default:
		t->at--;
		return ENDED;
	}
}

static int step_submitter(struct run *run, struct state *s, unsigned self)
{
	struct thread *t = &s->thread[self];

	(void)run;
	switch (t->at++) {
	case 0:
		s->submissions++;
		return STEPPED;
	case 1:
		if (take(s, self))
			return STEPPED;
		t->at = 1;
		return BLOCKED;
	case 2:
		t->seen = s->live == 1;
		if (t->seen)
			disable(s);
		return STEPPED;
	case 3:
		s->lock = 0;
		return STEPPED;
	case 4:
		s->busy = t->seen;
		return STEPPED;
	case 5:
		s->captured = s->submissions;
		return STEPPED;
	case 6: /* the GPU has finished */
		s->busy = 0;
		return STEPPED;
	default:
		t->at--;
		return ENDED;
	}
}

static int step_grower(const struct run *run, struct state *s, unsigned self)
{
	struct thread *t = &s->thread[self];

	switch (t->at++) {
	case 0:
		if (take(s, self))
			return STEPPED;
		t->at = 0;
		return BLOCKED;
	case 1:
		if (run->fault != MODEL_GROWER_DOES_NOT_DISABLE)
			disable(s);
		return STEPPED;
	case 2:
		s->two = s->live == 1;
		return STEPPED;
	case 3:
		s->lock = 0;
		return STEPPED;
	default:
		t->at--;
		return ENDED;
	}
}

static int step_loser(const struct run *run, struct state *s, unsigned self)
{
	struct thread *t = &s->thread[self];
	uint8_t epoch_first = run->fault == MODEL_EPOCH_ADVANCED_BEFORE_LOSS;

	switch (t->at++) {
	case 0:
	case 1:
		if ((t->at == 1) == epoch_first)
			s->epoch++;
		else
			s->lost = 1;
		return STEPPED;
	case 2:
		s->loss_done = 1;
		return STEPPED;
	default:
		t->at--;
		return ENDED;
	}
}

static int step(struct run *run, struct state *s, unsigned self)
{
	switch (run->kind[self]) {
	case MODEL_LOCKER:
	case MODEL_DISCARDER:
		return step_locker(run, s, self);
	case MODEL_MOVER:
		return step_mover(run, s, self);
	case MODEL_DESTROYER:
		return step_destroyer(run, s, self);
	case MODEL_SUBMITTER:
		return step_submitter(run, s, self);
	case MODEL_LOSER:
		return step_loser(run, s, self);
	case MODEL_GROWER:
		return step_grower(run, s, self);
	default:
		return ENDED;
	}
}

/* ---- exploration of all reachable states ---- */

static uint32_t slot_of(const struct run *run, const struct state *s)
{
	const unsigned char *bytes = (const unsigned char *)s;
	uint64_t hash = 0xCBF29CE484222325u;
	uint32_t at;

	for (size_t i = 0; i < sizeof(*s); i++)
		hash = (hash ^ bytes[i]) * 0x100000001B3u;
	at = (uint32_t)(hash ^ hash >> 32) & (2 * STATES_MAX - 1);
	while (run->index[at] && memcmp(&run->states[run->index[at] - 1], s, sizeof(*s)) != 0)
		at = (at + 1) & (2 * STATES_MAX - 1);
	return at;
}

/* Returns false if there is no space. */
static bool add(struct run *run, const struct state *s)
{
	uint32_t at = slot_of(run, s);

	if (run->index[at])
		return true;
	if (run->count == STATES_MAX)
		return false;
	run->states[run->count++] = *s;
	run->index[at] = run->count;
	return true;
}

/* An enabled fast lock states that a lock only has to count. */
static void check(struct run *run, const struct state *s)
{
	if (!s->word.enabled || s->word.handle != s->live)
		return;
	claim(run, !(s->busy && s->live == 1), "an enabled fast lock means idle");
	if (run->fault == MODEL_CORRECT)
		claim(run, s->word.count == s->held[s->live],
		      "while enabled, the word has the lock count");
}

/* Returns false if there is no space. */
static bool expand(struct run *run, uint32_t from)
{
	bool all_ended = true;

	for (unsigned self = 0; self < MODEL_THREADS; self++) {
		struct state s = run->states[from];
		int result = step(run, &s, self);

		all_ended &= result == ENDED;
		if (result != STEPPED)
			continue;
		check(run, &s);
		if (!add(run, &s))
			return false;
	}
	if (all_ended) {
		const struct state *end = &run->states[from];

		claim(run, !end->lock && !end->held[1] && !end->held[2],
		      "everything is unlocked at the end");
		claim(run, !(end->enabled ? end->word.count : end->count),
		      "the final lock count is 0");
	}
	return true;
}

struct model_result fast_lock_model_explore(const enum model_thread threads[MODEL_THREADS],
					    enum model_fault fault)
{
	struct run run = {.kind = threads, .fault = fault};
	struct state first;
	bool fits = true;

	memset(&first, 0, sizeof(first));
	first.live = 1;
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		run.out_of_process |= threads[i] == MODEL_LOSER;
	run.states = malloc(STATES_MAX * sizeof(*run.states));
	run.index = calloc(2 * (size_t)STATES_MAX, sizeof(*run.index));
	if (!run.states || !run.index)
		fits = false;
	else
		add(&run, &first);
	for (uint32_t i = 0; fits && i < run.count && !run.broken; i++)
		fits = expand(&run, i);
	free(run.states);
	free(run.index);
	return (struct model_result){
		.broken = run.broken, .states = run.count, .out_of_space = !fits};
}
