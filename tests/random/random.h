/* SPDX-License-Identifier: MIT */
/*
 * Random legal calls on allocations, with the scripted miniport of every version from 1.0 to 3.0
 * and less memory than the allocations need: every property, every flag of a lock, offers,
 * priorities, residency, and GPU work in between. A byte model says what the CPU, or a GPU copy,
 * must find. The invariants of every segment are checked after each call. There is one client. The
 * GPU is a thread, which works when the client waits or when a call says so.
 */
#ifndef VMM_TESTS_RANDOM_RANDOM_H
#define VMM_TESTS_RANDOM_RANDOM_H

#include <sched_world.h>

#include "flags.h"

#define ITEMS        24u
#define PAGES_MAX    16u
#define MEMORY       0x1u /* segment sets: 256 KiB of memory, aperture, hidden memory */
#define APERTURE     0x2u
#define HIDDEN       0x4u
#define LISTED_MAX   5u
#define LISTED_BYTES (112u * KIB)
#define VERSIONS     8u
#define NO_LOCK      UINT32_MAX
#define HELD_AT_ONCE 2u

enum { /* D3DDDICB_LOCKFLAGS */
       READ_ONLY = 0x1,
       WRITE_ONLY = 0x2,
       DONOT_WAIT = 0x4,
       IGNORE_SYNC = 0x8,
       LOCK_ENTIRE = 0x10,
       DONOT_EVICT = 0x20,
       ACQUIRE_APERTURE = 0x40,
       DISCARD = 0x80,
       NO_EXISTING_REFERENCE = 0x100,
       USE_ALTERNATE_VA = 0x200,
       IGNORE_READ_SYNC = 0x400,
       LOCK_FLAGS = 0x7FF
};

enum random_kind {
	RANDOM_CREATE,
	RANDOM_DESTROY,
	RANDOM_LOCK,
	RANDOM_UNLOCK,
	RANDOM_RENDER,
	RANDOM_COMPARE_BY_COPY,
	RANDOM_OFFER,
	RANDOM_RECLAIM,
	RANDOM_PRIORITY,
	RANDOM_QUERY,
	RANDOM_MAKE_RESIDENT,
	RANDOM_EVICT,
	RANDOM_UPDATE,
	RANDOM_GPU,
	RANDOM_KINDS
};

struct item {
	D3DKMT_HANDLE handle; /* 0: none */
	struct scripted_allocation spec;
	uint32_t bytes;
	bool primary, offered;
	bool lost; /* content undefined: it is rewritten before the next comparison */
	unsigned char *model;
	void *own;      /* existing memory under it, of the client or (kernel) the miniport */
	void *resource; /* hResource of which it is the only allocation; NULL: none */
	/* the one lock that may be held across calls */
	unsigned char *data;
	uint32_t lock_flags; /* NO_LOCK: none */
	/* 2.x */
	uint32_t listed;
	bool updated;
	bool written; /* perhaps written since it was last known to be in no segment */
};

struct random {
	struct world w;
	uint64_t seed, random, gpu_random, step;
	uint32_t version;
	bool wddm2, coherent, ranges, vpr, lists;
	uint32_t known; /* properties that may be drawn */
	struct client_context second;
	D3DDDICB_CREATEPAGINGQUEUE queue; /* 2.x */
	struct item item[ITEMS];
	struct vidmm_thread *gpu;
	_Atomic bool over;
	const char *what;                                   /* the call of this step */
	uint64_t done[RANDOM_KINDS], refused[RANDOM_KINDS]; /* no space, or busy */
	uint64_t properties, lock_flags; /* bits that were drawn at least once and not refused */
	uint64_t compared_bytes;
};

/* Totals of the whole test. */
struct random_totals {
	uint64_t operations, done[RANDOM_KINDS], refused[RANDOM_KINDS];
	uint64_t evictions, discards, paged_in, paged_out, compared_bytes;
	uint64_t properties[2], lock_flags[2]; /* below 2.0, from 2.0 on */
};

/*
 * Runs that many operations on an adapter drawn from the seed. Then compares all content, ends
 * everything, and checks that nothing is left.
 */
void random_run(uint64_t seed, uint64_t operations, struct random_totals *totals);
/* The same in parts, for a caller with work in between. */
void random_begin(struct random *r, uint64_t seed);
void random_step(struct random *r);
void random_end(struct random *r, struct random_totals *totals);

/* ---- for the files that act ---- */
static inline uint32_t draw(struct random *r, uint32_t below)
{
	uint64_t x = r->random += 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return (uint32_t)((x ^ x >> 31) >> 32) % below;
}
/*
 * Content of a HardwareProtected allocation is lost when it leaves its segment unencrypted
 * (PAG-32). All other content is kept.
 */
static inline bool random_is_kept(const struct random *r, const struct item *item)
{
	return !r->wddm2 || !(item->spec.flags & HARDWARE_PROTECTED);
}
/* Ends the test with seed, step and call. */
void random_wrong(const struct random *r, const struct item *item, const char *what, uint64_t got);
/*
 * Checks that the result is S_OK or in `others`, a list that ends with S_OK. Returns true for S_OK.
 */
bool random_expect(struct random *r, enum random_kind kind, const struct item *item, HRESULT result,
		   const HRESULT *others);
/* Returns a random allocation; NULL: there is none. */
struct item *random_item(struct random *r);
struct client_context *random_home(struct random *r, const struct item *item);
void random_compare(struct random *r, const struct item *item, const unsigned char *bytes,
		    uint32_t from, uint32_t count);
void random_scribble(struct random *r, struct item *item, unsigned char *bytes, uint32_t from,
		     uint32_t count);
/* Waits until all submitted work is complete. */
void random_idle(struct random *r);
void random_forget(struct item *item);

/* create.c */
struct flags_case random_case(const struct random *r, const struct item *item);
void random_create(struct random *r);
void random_destroy(struct random *r, struct item *item);
/* render.c */
void random_render(struct random *r);
/* Compares by a GPU copy into an allocation that the CPU can access. */
void random_compare_by_copy(struct random *r, struct item *item);
/* lock.c */
struct oracle_allocation;
/* Describes the allocation to the oracle of locks. */
void random_lock_state(const struct random *r, const struct item *item,
		       struct oracle_allocation *state);
bool random_is_visible(const struct random *r, const struct item *item);
void random_lock(struct random *r, struct item *item);
void random_unlock(struct random *r, struct item *item);
void random_refill(struct random *r, struct item *item); /* writes new content if it is lost */
/* offer.c */
void random_offer(struct random *r, struct item *item);
void random_reclaim(struct random *r, struct item *item);
void random_priorities(struct random *r);
void random_query(struct random *r);
void random_make_resident(struct random *r);
bool random_may_list(const struct random *r, uint32_t bytes); /* that many further bytes */
void random_evict(struct random *r, struct item *item);
void random_update(struct random *r, struct item *item);

#endif
