/* SPDX-License-Identifier: MIT */
#include "model/gate/gate_model.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 2, VERSIONS = 4 };
#define STATES_MAX (1u << 21)

struct word {
	uint8_t handle, version, open, count;
};

struct thread {
	uint8_t at, rounds, address, seen;
	uint8_t began, late, epoch; /* late: when it began the loss was over */
	struct word word;           /* as it read it */
};

struct state {
	struct word word;
	uint8_t address;
	uint8_t lock;        /* the paging lock: 0, or thread + 1 */
	uint8_t open, count; /* what it guards: the bit, and the locks while the gate is shut */
	uint8_t live;        /* the handle that is */
	uint8_t submissions, captured, busy;
	uint8_t lost, over, epoch, word_epoch; /* the last: of the opening */
	uint8_t held[3];                       /* locks given out on each handle */
	struct thread thread[GATE_THREADS];
};

struct run {
	const enum gate_thread *kind;
	enum gate_mistake mistake;
	bool apart; /* lockers go by the epoch */
	const char *broken;
	struct state *states; /* a queue, and with the index a set */
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

static void shut(struct state *s)
{
	if (!s->open)
		return;
	s->count = s->word.count;
	s->word.open = s->word.count = 0;
	s->open = 0;
}

static bool same(const struct run *run, struct word a, struct word b)
{
	if (run->mistake == GATE_SWAP_IGNORES_HANDLE)
		return a.open == b.open && a.count == b.count;
	return !memcmp(&a, &b, sizeof(a));
}

/* ---- a locker; its steps go on in two functions ---- */

enum {
	READ,
	READ_ADDRESS,
	READ_EPOCH,
	SWAP,
	LATE_ADDRESS,
	HOLD,
	READ_AGAIN,
	SWAP_BACK,
	LONG_WAY,
	LOOK,
	COUNT,
	SUBMISSIONS,
	CAPTURED,
	IDLE,
	TAKE_EPOCH,
	LOOK_AT_DEVICE,
	OPEN_ADDRESS,
	OPEN,
	LET_GO_HOLDING,
	LET_GO_NOTHING,
	RETRY,
	LONG_WAY_BACK,
	COUNT_BACK,
	OVER
};

static uint8_t handle_of(const struct thread *t)
{
	return (uint8_t)(t->rounds + 1);
}

static bool is_mine(const struct thread *t)
{
	return t->word.handle == handle_of(t) && t->word.open;
}

static void next_round(struct thread *t)
{
	uint8_t rounds = (uint8_t)(t->rounds + 1);

	*t = (struct thread){.rounds = rounds, .at = rounds == ROUNDS ? OVER : READ};
}

/* It has the lock, and uses what it was given. */
static void use(struct run *run, const struct state *s, const struct thread *t)
{
	if (s->live == handle_of(t))
		claim(run, t->address == handle_of(t), "the address is that of the handle");
}

static void swap(struct run *run, struct state *s, struct thread *t)
{
	if (!same(run, s->word, t->word)) {
		t->at = READ;
		return;
	}
	claim(run, s->live == handle_of(t), "only what lives is locked");
	claim(run, !s->busy || s->live != 1, "what is locked at the gate is idle");
	claim(run, !t->late, "who comes when the device is lost is told so");
	s->word.count++;
	s->held[handle_of(t)]++;
	if (run->mistake != GATE_ADDRESS_AFTER_SWAP)
		use(run, s, t);
	t->at = run->mistake == GATE_ADDRESS_AFTER_SWAP ? LATE_ADDRESS : HOLD;
}

static int step_at_gate(struct run *run, struct state *s, struct thread *t)
{
	switch (t->at) {
	case READ:
		t->late = t->began ? t->late : s->over;
		t->began = run->apart;
		t->word = s->word;
		t->at = is_mine(t) ? READ_ADDRESS : LONG_WAY;
		return STEPPED;
	case READ_ADDRESS:
		t->address = s->address;
		t->epoch = s->word_epoch;
		t->at = run->apart && run->mistake != GATE_EPOCH_IS_NOT_SEEN ? READ_EPOCH : SWAP;
		return STEPPED;
	case READ_EPOCH:
		t->at = s->epoch == t->epoch ? SWAP : LONG_WAY;
		return STEPPED;
	case SWAP:
		swap(run, s, t);
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
		t->at = run->mistake == GATE_UNLOCK_IGNORES_SHUT || (is_mine(t) && t->word.count)
				? SWAP_BACK
				: LONG_WAY_BACK;
		return STEPPED;
	default: /* SWAP_BACK */
		if (!same(run, s->word, t->word)) {
			t->at = READ_AGAIN;
			return STEPPED;
		}
		claim(run, s->word.count != 0, "nobody unlocks what is not locked");
		s->word.count--;
		if (s->live == handle_of(t))
			s->held[handle_of(t)]--;
		next_round(t);
		return STEPPED;
	}
}

/* Under the paging lock; at first sight of the handle the gate is shut. */
static void look(struct state *s, struct thread *t)
{
	bool lives = s->live == handle_of(t);

	if (lives)
		shut(s);
	if (t->at == COUNT_BACK) {
		if (lives && s->count && s->held[handle_of(t)]) {
			s->count--;
			s->held[handle_of(t)]--;
		}
		t->at = LET_GO_NOTHING;
	} else {
		t->at = !lives || s->lost         ? LET_GO_NOTHING
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

static int step_opening(const struct run *run, struct state *s, struct thread *t)
{
	switch (t->at) {
	case SUBMISSIONS:
		t->seen = s->submissions;
		t->at = CAPTURED;
		return STEPPED;
	case CAPTURED:
		t->at = t->seen == s->captured || run->mistake == GATE_SUBMISSION_IS_NOT_SEEN
				? IDLE
				: LET_GO_HOLDING;
		return STEPPED;
	case IDLE:
		t->at = s->busy && s->live == 1                      ? LET_GO_HOLDING
			: !run->apart                                ? OPEN_ADDRESS
			: run->mistake == GATE_EPOCH_BEHIND_THE_LOOK ? LOOK_AT_DEVICE
								     : TAKE_EPOCH;
		return STEPPED;
	case TAKE_EPOCH:
		t->epoch = s->epoch;
		t->at = run->mistake == GATE_EPOCH_BEHIND_THE_LOOK ? OPEN_ADDRESS : LOOK_AT_DEVICE;
		return STEPPED;
	case LOOK_AT_DEVICE:
		t->at = s->lost                                      ? LET_GO_HOLDING
			: run->mistake == GATE_EPOCH_BEHIND_THE_LOOK ? TAKE_EPOCH
								     : OPEN_ADDRESS;
		return STEPPED;
	case OPEN_ADDRESS:
		s->address = handle_of(t);
		t->at = OPEN;
		return STEPPED;
	default: /* OPEN */
		s->word = (struct word){.handle = handle_of(t),
					.version = (uint8_t)((s->word.version + 1) % VERSIONS),
					.open = 1,
					.count = s->count};
		s->open = 1;
		s->word_epoch = t->epoch;
		t->at = LET_GO_HOLDING;
		return STEPPED;
	}
}

static int step_the_long_way(const struct run *run, struct state *s, struct thread *t,
			     unsigned self)
{
	switch (t->at) {
	case LONG_WAY:
	case LONG_WAY_BACK:
		if (!take(s, self))
			return BLOCKED;
		t->at = t->at == LONG_WAY ? LOOK : COUNT_BACK;
		return STEPPED;
	case LOOK:
	case COUNT_BACK:
		look(s, t);
		return STEPPED;
	case COUNT:
		count(s, t);
		return STEPPED;
	case LET_GO_HOLDING:
		s->lock = 0;
		t->at = HOLD;
		return STEPPED;
	case LET_GO_NOTHING:
		s->lock = 0;
		next_round(t);
		return STEPPED;
	case RETRY: /* when the GPU is done with it */
		s->lock = 0;
		t->at = READ;
		return STEPPED;
	default:
		return step_opening(run, s, t);
	}
}

static int step_locker(struct run *run, struct state *s, unsigned self)
{
	struct thread *t = &s->thread[self];

	if (t->at == OVER)
		return ENDED;
	return t->at <= SWAP_BACK ? step_at_gate(run, s, t) : step_the_long_way(run, s, t, self);
}

/* ---- the others ---- */

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
		if (run->mistake != GATE_MOVER_DOES_NOT_SHUT)
			shut(s);
		return STEPPED;
	case 2:
		t->seen = s->count;
		claim(run, s->count == s->held[s->live], "shut, the number of locks is right");
		return STEPPED;
	case 3:
		claim(run, s->held[s->live] == t->seen, "nobody locks or unlocks while it moves");
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
		shut(s);
		return STEPPED;
	case 2: /* its locks go with it (LOCK-30) */
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
			shut(s);
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
	case 6: /* the GPU is done */
		s->busy = 0;
		return STEPPED;
	default:
		t->at--;
		return ENDED;
	}
}

static int step_loser(const struct run *run, struct state *s, unsigned self)
{
	struct thread *t = &s->thread[self];
	uint8_t epoch_first = run->mistake == GATE_EPOCH_BEFORE_THE_LOSS;

	switch (t->at++) {
	case 0:
	case 1:
		if ((t->at == 1) == epoch_first)
			s->epoch++;
		else
			s->lost = 1;
		return STEPPED;
	case 2:
		s->over = 1;
		return STEPPED;
	default:
		t->at--;
		return ENDED;
	}
}

static int step(struct run *run, struct state *s, unsigned self)
{
	switch (run->kind[self]) {
	case GATE_LOCKER:
		return step_locker(run, s, self);
	case GATE_MOVER:
		return step_mover(run, s, self);
	case GATE_DESTROYER:
		return step_destroyer(run, s, self);
	case GATE_SUBMITTER:
		return step_submitter(run, s, self);
	case GATE_LOSER:
		return step_loser(run, s, self);
	default:
		return ENDED;
	}
}

/* ---- all states that can be reached ---- */

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

/* false: no room. */
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

/* An open gate says that nothing would have to be done. */
static void check(struct run *run, const struct state *s)
{
	if (!s->word.open || s->word.handle != s->live)
		return;
	claim(run, !(s->busy && s->live == 1), "an open gate means idle");
	if (run->mistake == GATE_NO_MISTAKE)
		claim(run, s->word.count == s->held[s->live], "open, the word has the locks");
}

/* false: no room. */
static bool expand(struct run *run, uint32_t from)
{
	bool all_ended = true;

	for (unsigned self = 0; self < GATE_THREADS; self++) {
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

		claim(run, !end->lock && !end->held[1] && !end->held[2], "all is unlocked");
		claim(run, !(end->open ? end->word.count : end->count), "nothing stays counted");
	}
	return true;
}

struct gate_result gate_model_explore(const enum gate_thread threads[GATE_THREADS],
				      enum gate_mistake mistake)
{
	struct run run = {.kind = threads, .mistake = mistake};
	struct state first;
	bool room = true;

	memset(&first, 0, sizeof(first));
	first.live = 1;
	for (unsigned i = 0; i < GATE_THREADS; i++)
		run.apart |= threads[i] == GATE_LOSER;
	run.states = malloc(STATES_MAX * sizeof(*run.states));
	run.index = calloc(2 * (size_t)STATES_MAX, sizeof(*run.index));
	if (!run.states || !run.index)
		room = false;
	else
		add(&run, &first);
	for (uint32_t i = 0; room && i < run.count && !run.broken; i++)
		room = expand(&run, i);
	free(run.states);
	free(run.index);
	return (struct gate_result){.broken = run.broken, .states = run.count, .gave_up = !room};
}
