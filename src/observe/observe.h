/* SPDX-License-Identifier: MIT */
/*
 * observe: the event stream. Door calls, driver calls, paging, residency, waits, fences and
 * findings are all events. Statistics, the replay summary, tests and reports are computed from it.
 * Observers never change an outcome.
 *
 * Emission is cheap. The counters of the event's type are always updated. Subscribers are called
 * only for types in their mask, on the emitting thread, possibly under core locks: a subscriber
 * must not call back into vidmm. An event carries handles and numbers, never pointers, so the
 * stream of a sim run is a pure function of its seed. vmm_observe_hash is the hash of that stream.
 */
#ifndef VMM_OBSERVE_OBSERVE_H
#define VMM_OBSERVE_OBSERVE_H

#include <stdatomic.h>
#include "base/base.h"
#include <vidmm/events.h> /* the public schema */

struct vmm_observe;

/* time in ns; injected, because observe does not know the os module */
typedef uint64_t vmm_observe_clock_fn(void *context);

struct vmm_observe_config {
	/* Without `threads`: holds the virtual time in ns. Reading it costs less than a call. */
	const uint64_t *virtual_ns;
	vmm_observe_clock_fn *clock; /* with `threads` */
	void *clock_context;
	/*
	 * Yields the processor to another thread while the holder of a spin lock does not run.
	 * NULL: spin on, which costs a time slice if there are more threads than processors.
	 */
	void (*yield)(void *clock_context);
	bool threads; /* emissions may come from several threads at once (linux back end) */
	bool hash;    /* compute the hash of the stream (sim) */
};

vmm_status vmm_observe_create(const struct vmm_observe_config *config,
			      struct vmm_observe **observe) VMM_MUST_CHECK;
void vmm_observe_destroy(struct vmm_observe *observe);

/*
 * Updates the counters, fills in time_ns and sequence, updates the hash, calls subscribers. `text`
 * is that of a finding or a reason, NULL for other types.
 *
 * With `threads` and without `hash`, an event without subscribers is only counted. It gets no time
 * and no number then, because a clock and a shared number cost more than everything else. So
 * `sequence` numbers the stamped events without a gap; on sim that is every event.
 */
void vmm_observe_emit(struct vmm_observe *observe, struct vidmm_event *event, const char *text);

/* The usual form: type, process, object handle, reason and up to four numbers. */
void vmm_event(struct vmm_observe *observe, uint32_t type, uint32_t process, uint32_t object,
	       uint32_t reason, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/*
 * The part of struct vmm_observe that counting reads; it is the first member. Each thread has one
 * set of counters, in separate cache lines, and is its only writer. Set 0 is shared by late
 * threads; it is also that of a thread that has not emitted anything yet.
 */
#define VMM_OBSERVE_SETS 256u
struct vmm_observe_counts {
	_Atomic uint64_t count, sum[4];
};
struct vmm_observe_set {
	_Alignas(64) struct vmm_observe_counts types[VIDMM_EVENT_TYPE_COUNT];
};
struct vmm_observe_front {
	/*
	 * Whether an event of the type gets time and number: all without threads or with a hash,
	 * else those that a subscriber wants. The others are only counted.
	 */
	_Atomic bool stamps[VIDMM_EVENT_TYPE_COUNT];
	const uint64_t *virtual_ns; /* of the configuration; NULL with threads */
	struct vmm_observe_set *sets;
	_Atomic uint64_t wanted[VIDMM_EVENT_TYPE_COUNT]; /* bit n: subscriber n wants the type */
};
extern _Thread_local uint32_t vmm_observe_thread __attribute__((tls_model("initial-exec")));

/*
 * Returns whether an event of the type would be stamped now; otherwise it is only counted. For
 * events that are emitted only if they would be stamped, because computing their arguments costs
 * more than counting.
 */
VMM_ALWAYS_INLINE bool vmm_observe_stamps(const struct vmm_observe *observe, uint32_t type)
{
	const struct vmm_observe_front *front = (const struct vmm_observe_front *)observe;

	return atomic_load_explicit(&front->stamps[type], memory_order_relaxed);
}

/*
 * Measures the duration of an action that ends in an event of the type. The clock is read only if
 * such an event would be stamped, because it costs a large part of a short call; otherwise the
 * duration is 0.
 */
#define VMM_OBSERVE_UNTIMED UINT64_MAX
uint64_t vmm_observe_now(const struct vmm_observe *observe); /* with threads */
VMM_ALWAYS_INLINE uint64_t vmm_observe_begin(const struct vmm_observe *observe, uint32_t type)
{
	const struct vmm_observe_front *front = (const struct vmm_observe_front *)observe;

	if (vmm_likely(!vmm_observe_stamps(observe, type)))
		return VMM_OBSERVE_UNTIMED;
	return front->virtual_ns ? *front->virtual_ns : vmm_observe_now(observe);
}
VMM_ALWAYS_INLINE uint64_t vmm_observe_elapsed(const struct vmm_observe *observe, uint64_t began)
{
	const struct vmm_observe_front *front = (const struct vmm_observe_front *)observe;

	if (vmm_likely(began == VMM_OBSERVE_UNTIMED))
		return 0;
	return (front->virtual_ns ? *front->virtual_ns : vmm_observe_now(observe)) - began;
}

/*
 * Counts one event with its four arguments, by plain loads and stores on atomics: no locked
 * instruction, and other threads may read meanwhile. The caller is the only writer.
 */
VMM_ALWAYS_INLINE void vmm_observe_count(struct vmm_observe_counts *counts, uint64_t a, uint64_t b,
					 uint64_t c, uint64_t d)
{
	const uint64_t arg[4] = {a, b, c, d};

	atomic_store_explicit(&counts->count,
			      atomic_load_explicit(&counts->count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	for (unsigned i = 0; i < 4; i++)
		if (arg[i])
			atomic_store_explicit(
				&counts->sum[i],
				atomic_load_explicit(&counts->sum[i], memory_order_relaxed) +
					arg[i],
				memory_order_relaxed);
}

/*
 * vmm_event with its fast path inlined: for calls as short as the event itself. The slow path also
 * gives a number to a thread without one.
 */
VMM_ALWAYS_INLINE void vmm_event_inline(struct vmm_observe *observe, uint32_t type,
					uint32_t process, uint32_t object, uint32_t reason,
					uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const struct vmm_observe_front *front = (const struct vmm_observe_front *)observe;
	uint32_t own = vmm_observe_thread;

	if (vmm_unlikely(own - 1 >= VMM_OBSERVE_SETS - 1 || vmm_observe_stamps(observe, type))) {
		struct vidmm_event event = {.type = (uint16_t)type,
					    .reason = (uint16_t)reason,
					    .process = process,
					    .object = object,
					    .arg = {a, b, c, d}};

		vmm_observe_emit(observe, &event, NULL);
		return;
	}
	vmm_observe_count(&front->sets[own].types[type], a, b, c, d);
}

/*
 * Reports that a client or a miniport broke a contract. `rule` is its id ("LOCK-07"); the text says
 * what was found, with the values. Emitted as VIDMM_EVENT_FINDING; subscribers get the text.
 */
void vmm_finding(struct vmm_observe *observe, const char *rule, uint32_t process, uint32_t object,
		 const char *format, ...) VMM_PRINTF(5, 6) VMM_COLD;

/* Reports why a call failed without a broken rule: a status and a text. VIDMM_EVENT_REASON. */
void vmm_reason(struct vmm_observe *observe, vmm_status status, uint32_t process, uint32_t object,
		const char *format, ...) VMM_PRINTF(5, 6) VMM_COLD;

/*
 * Emits the finding that vmm_finding emits and returns `status`: the last statement of a call that
 * refuses its arguments. Takes no lock but the spin lock of the stream. Callable with any lock held
 * and at any IRQL, like vmm_finding.
 */
vmm_status vmm_refuse_rule(struct vmm_observe *observe, vmm_status status, const char *rule,
			   uint32_t process, uint32_t object, const char *format, ...)
	VMM_PRINTF(6, 7) VMM_COLD VMM_MUST_CHECK;

/* The same for vmm_reason: emits the reason with `status`, and returns `status`. */
vmm_status vmm_refuse_reason(struct vmm_observe *observe, vmm_status status, uint32_t process,
			     uint32_t object, const char *format, ...)
	VMM_PRINTF(5, 6) VMM_COLD VMM_MUST_CHECK;

typedef void vmm_observe_fn(void *context, const struct vidmm_event *event, const char *text);
#define VMM_OBSERVE_SUBSCRIBERS_MAX 64u
#define VMM_OBSERVE_ALL             UINT64_MAX
static inline uint64_t vmm_observe_bit(uint32_t type)
{
	return (uint64_t)1 << type;
}
/*
 * Subscribes to events. `mask`: bit n = event type n (types < 64). Returns an id for unsubscribe, 0
 * if all 64 slots are in use. The event and the text are valid only during the call. With
 * `threads`, calls come from several threads at once and not always in the order of `sequence`.
 * Once unsubscribe has returned, no call runs and none will come. So unsubscribe must not be called
 * from inside one.
 */
uint32_t vmm_observe_subscribe(struct vmm_observe *observe, uint64_t mask, vmm_observe_fn *fn,
			       void *context);
void vmm_observe_unsubscribe(struct vmm_observe *observe, uint32_t id);

struct vmm_observe_counter {
	uint64_t count;
	uint64_t sum[4]; /* sums of arg[0..3] */
};
void vmm_observe_counter(struct vmm_observe *observe, uint32_t type,
			 struct vmm_observe_counter *counter);
/* Hash over every event so far: type, reason, ids, arguments, time, text. */
uint64_t vmm_observe_hash(struct vmm_observe *observe);

/* ---- names and text lines, for dumps ---- */
const char *vmm_observe_type_name(uint32_t type); /* "lock"; "unknown" */
/* "pressure"; "" without a name */
const char *vmm_observe_reason_name(uint32_t type, uint32_t reason);

/* Longest text of a finding or a reason, terminator included; longer texts are cut. */
#define VMM_OBSERVE_TEXT_BYTES 512u
#define VMM_OBSERVE_LINE_BYTES 1024u /* enough for any event */
/*
 * Formats an event as one line without newline, always terminated: "#12 1000345ns p1
 * residency/pressure 0x84500001 bytes=65536 ...". The form is stable, because reports and golden
 * files contain it. text may be NULL. Returns the length written.
 */
size_t vmm_observe_format(const struct vidmm_event *event, const char *text, char *buffer,
			  size_t size_bytes);

/* ---- ring: the last events, kept for reports of errors ---- */
struct vmm_observe_ring;
#define VMM_OBSERVE_RECORD_TEXT_BYTES 192u
struct vmm_observe_record {
	struct vidmm_event event;
	char text[VMM_OBSERVE_RECORD_TEXT_BYTES]; /* "" without a text; cut if too long */
};

/*
 * Keeps the last `capacity` events of the types in mask. Subscribed to the stream until it is
 * destroyed.
 */
vmm_status vmm_observe_ring_create(struct vmm_observe *observe, uint64_t mask, uint32_t capacity,
				   struct vmm_observe_ring **ring) VMM_MUST_CHECK;
void vmm_observe_ring_destroy(struct vmm_observe_ring *ring); /* NULL is allowed */
/*
 * Copies the last `count` kept events that concern the object (0: any), oldest first. Returns their
 * number. A rename concerns the old and the new handle.
 */
uint32_t vmm_observe_ring_last(struct vmm_observe_ring *ring, uint32_t object,
			       struct vmm_observe_record *records, uint32_t count);

#endif
