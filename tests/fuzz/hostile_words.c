/* SPDX-License-Identifier: MIT */
/*
 * The client may write anything into its lock words (base/lock_word.h) at any time, also while the
 * host executes a call of that client.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock_word.h"
#include "hostile.h"

/* The random state of the writes: separate, so that the thread does not use the script's. */
struct scribbler {
	struct draw draw;
	struct vmm_lock_words *words;
	uint32_t pool[HOSTILE_POOL], pool_count;
};

enum { ANYTHING, A_BIT, A_NUMBER, AN_OPENING, A_PLACE, EXECUTED, A_HOLE, A_LOCK, AN_UNLOCK, WAYS };

static uint64_t draw_word(struct draw *draw)
{
	return (uint64_t)draw_below(draw, UINT32_MAX) << 32 | draw_below(draw, UINT32_MAX);
}

/* Most writes concern a handle that the client has. */
static uint32_t draw_handle(struct scribbler *s)
{
	return s->pool_count && draw_below(&s->draw, 8)
		       ? s->pool[draw_below(&s->draw, s->pool_count)]
		       : draw_below(&s->draw, UINT32_MAX);
}

/* Locks as an honest client would. */
static void count(struct vmm_lock_word *place, uint32_t handle, bool up)
{
	uint64_t word = atomic_load(&place->word);
	uint32_t locks = word & VMM_LOCK_WORD_LOCKS_MAX;

	if (vmm_lock_word_is_enabled_for(word, handle) &&
	    (up ? locks < VMM_LOCK_WORD_LOCKS_MAX : locks > 0))
		(void)atomic_compare_exchange_strong(&place->word, &word, up ? word + 1 : word - 1);
}

static void write_place(struct scribbler *s, struct vmm_lock_word *place)
{
	atomic_store(&place->epoch, draw_word(&s->draw));
	atomic_store(&place->address, draw_word(&s->draw));
	atomic_store(&place->views, draw_word(&s->draw));
	atomic_store(&place->device, draw_below(&s->draw, UINT32_MAX));
	atomic_store(&place->wddm2, draw_below(&s->draw, UINT32_MAX));
}

static void scribble(struct scribbler *s, uint32_t way)
{
	uint32_t handle = draw_handle(s);
	struct vmm_lock_word *place = &s->words->at[vmm_lock_word_index(handle)];
	uint64_t number = draw_word(&s->draw);

	switch (way % WAYS) {
	case ANYTHING:
		atomic_store(&place->word, number);
		break;
	case A_BIT:
		atomic_fetch_xor(&place->word, (uint64_t)1 << number % 64);
		break;
	case A_NUMBER:
		atomic_store(&place->word,
			     (atomic_load(&place->word) & ~(uint64_t)VMM_LOCK_WORD_LOCKS_MAX) |
				     (number & VMM_LOCK_WORD_LOCKS_MAX));
		break;
	case AN_OPENING:
		atomic_store(&place->word, (uint64_t)handle << VMM_LOCK_WORD_HANDLE_SHIFT |
						   VMM_LOCK_WORD_ENABLED | (number & 0xFFFCFFFFu));
		break;
	case A_PLACE:
		write_place(s, place);
		break;
	case EXECUTED:
		atomic_store(&s->words->executed, number & 1 ? UINT64_MAX : number);
		break;
	case A_HOLE:
		(void)madvise(s->words, sizeof(*s->words), MADV_REMOVE);
		break;
	default:
		count(place, handle, way % WAYS == A_LOCK);
		break;
	}
}

/* ---- a thread that only writes ---- */

struct hostile_scribbler {
	struct scribbler s;
	pthread_t thread;
	_Atomic bool stop;
};

static void *scribble_on(void *argument)
{
	struct hostile_scribbler *t = argument;

	while (!atomic_load(&t->stop)) {
		for (uint32_t i = 0; i < 64; i++) {
			uint32_t way = draw_below(&t->s.draw, WAYS);

			/*
			 * Other writes are rare: a wrong one ends the client, so a word would
			 * hardly ever be enabled.
			 */
			if (way >= A_LOCK || way == A_NUMBER || draw_below(&t->s.draw, 64) == 0)
				scribble(&t->s, way);
		}
		sched_yield();
	}
	return NULL;
}

static void start(struct hostile *h, const struct scribbler *s)
{
	struct hostile_scribbler *t = vmm_calloc(1, sizeof(*t));

	vmm_assert(t);
	t->s = *s;
	vmm_assert(!pthread_create(&t->thread, NULL, scribble_on, t));
	h->scribbler = t;
}

void hostile_words_stop(struct hostile *h)
{
	struct hostile_scribbler *t = h->scribbler;

	h->scribbler = NULL;
	if (!t)
		return;
	atomic_store(&t->stop, true);
	pthread_join(t->thread, NULL);
	vmm_free(t);
}

/* ---- steps of the script ---- */

void hostile_words_take(struct hostile *h, void *words)
{
	hostile_words_forget(h);
	h->words = words;
}

void hostile_words_forget(struct hostile *h)
{
	hostile_words_stop(h);
	if (h->words)
		munmap(h->words, sizeof(struct vmm_lock_words));
	h->words = NULL;
}

void hostile_words(struct hostile *h, uint32_t times, uint32_t way, bool meanwhile)
{
	struct scribbler s = {
		.draw = {.seed = h->draw.seed}, .words = h->words, .pool_count = h->pool_count};

	hostile_words_stop(h);
	if (!s.words)
		return;
	memcpy(s.pool, h->pool, sizeof(s.pool));
	if (meanwhile) {
		start(h, &s);
		return;
	}
	for (uint32_t i = 0; i < times; i++)
		scribble(&s, way < WAYS ? way : draw_below(&s.draw, WAYS));
	h->scribbled += times;
}
