/* SPDX-License-Identifier: MIT */
/*
 * The event stream: counting, stamping, hashing, delivery. Never changes an outcome and calls
 * nothing but subscribers and the injected clock and yield.
 *
 * Without threads (sim) all accesses are plain and every event is stamped. With threads an event
 * without subscribers touches only the emitting thread's own counters. Other events are stamped
 * under a spin lock, so that time never decreases along the sequence, and delivered outside it.
 */
#include "observe/observe.h"

#include "observe/observe_internal.h"

/*
 * The calling thread's shard. Numbers belong to the process, not to an instance, so one
 * thread-local word serves all instances: thread n is the only writer of shard n everywhere.
 * Numbers are not reused, because the end of a thread is not reported to this module. Late threads
 * share a shard and pay for atomic additions. Initial-exec TLS: the word is read on each emission,
 * and four bytes fit into any program's static TLS surplus.
 */
static _Atomic uint32_t threads_seen;
_Thread_local uint32_t vmm_observe_thread __attribute__((tls_model("initial-exec")));

static uint32_t own_shard(void)
{
	if (vmm_unlikely(vmm_observe_thread == 0)) {
		vmm_observe_thread = atomic_load_explicit(&threads_seen, memory_order_relaxed);
		if (vmm_observe_thread < SHARDS_MAX)
			vmm_observe_thread = 1 + atomic_fetch_add_explicit(&threads_seen, 1,
									   memory_order_relaxed);
	}
	return vmm_observe_thread < SHARDS_MAX ? vmm_observe_thread : SHARD_SHARED;
}

/* Without threads a time costs nothing, and a hash covers every event. */
static bool stamps_all(const struct vmm_observe *o)
{
	return !o->config.threads || o->config.hash;
}

vmm_status vmm_observe_create(const struct vmm_observe_config *config, struct vmm_observe **observe)
{
	struct vmm_observe *o;
	uint32_t shards = config->threads ? SHARDS_MAX : 1;

	vmm_assert(config->threads ? config->clock != NULL : config->virtual_ns != NULL);
	o = vmm_calloc(1, sizeof(*o));
	if (!o)
		return VMM_NO_MEMORY;
	o->set_memory = vmm_calloc(shards + 1, sizeof(struct vmm_observe_set));
	if (!o->set_memory) {
		vmm_free(o);
		return VMM_NO_MEMORY;
	}
	o->front.sets =
		(void *)vmm_align_up((uintptr_t)o->set_memory, _Alignof(struct vmm_observe_set));
	o->config = *config;
	o->front.virtual_ns = config->threads ? NULL : config->virtual_ns;
	for (uint32_t type = 0; type < VIDMM_EVENT_TYPE_COUNT; type++)
		atomic_init(&o->front.stamps[type], stamps_all(o));
	*observe = o;
	return VMM_OK;
}

void vmm_observe_destroy(struct vmm_observe *observe)
{
	if (!observe)
		return;
	vmm_free(observe->set_memory);
	vmm_free(observe);
}

static void count_shared(struct vmm_observe_counts *counter, const struct vidmm_event *event)
{
	atomic_fetch_add_explicit(&counter->count, 1, memory_order_relaxed);
	for (unsigned i = 0; i < 4; i++)
		if (event->arg[i])
			atomic_fetch_add_explicit(&counter->sum[i], event->arg[i],
						  memory_order_relaxed);
}

__extension__ typedef unsigned __int128 wide;

/*
 * Multiply-mix of pairs of words. Each result but the last is added, turned, to a word of the last
 * pair; returns the last result. Combines both halves of a product with both operands, so that no
 * value of one operand cancels the other. Only the last product depends on the others.
 */
static inline uint64_t mix(uint64_t (*pairs)[2], unsigned count)
{
	static const unsigned turn[] = {0, 17, 0};
	uint64_t *last = pairs[count - 1];

	for (unsigned i = 0;; i++) {
		uint64_t a = pairs[i][0], b = pairs[i][1];
		wide product = (wide)(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD1B54A32D192ED03u);
		uint64_t mixed =
			(uint64_t)product ^ (uint64_t)(product >> 64) ^ a ^ (b << 32 | b >> 32);

		if (i == count - 1)
			return mixed;
		last[i != 0] += mixed << turn[i] | mixed >> (64 - turn[i]) % 64;
	}
}

static VMM_COLD uint64_t hash_text(uint64_t hash, const char *text)
{
	uint64_t word = 0, length = 0;

	for (; text[length]; length++) {
		word = word << 8 | (unsigned char)text[length];
		if (length % 8 == 7) {
			hash = mix(&(uint64_t[2]){hash, word}, 1);
			word = 0;
		}
	}
	return mix(&(uint64_t[2]){hash ^ length, word}, 1);
}

/*
 * Time, sequence number, hash. The hash covers values, not bytes in memory, so it is the same for
 * every compiler and byte order. Only its last step depends on the hash so far; the other products
 * overlap with the emitter's work.
 */
static inline void stamp(struct vmm_observe *o, struct vidmm_event *event, const char *text,
			 uint64_t time_ns)
{
	event->time_ns = time_ns;
	event->sequence = ++o->sequence;
	if (!o->config.hash)
		return;
	uint64_t words[4][2] = {
		{event->arg[0], event->arg[1]},
		{event->arg[2] + 0x2545F4914F6CDD1Du, event->arg[3]},
		{event->type | (uint64_t)event->reason << 16 | (uint64_t)event->process << 32,
		 time_ns},
		{o->hash, event->object * 0x9FB21C651E98DF25u},
	};

	o->hash = mix(words, 4);
	if (vmm_unlikely(text))
		o->hash = hash_text(o->hash, text);
}

/*
 * With threads: this function increments `calls` before it reads the mask, and unsubscribe clears
 * the mask before it reads `calls` (Dekker pattern). Either this call sees the cleared mask, or
 * unsubscribe waits for it. If the slot was reused meanwhile, its new subscriber is called if it
 * wants the type.
 */
static void call_with_threads(struct subscriber *subscriber, const struct vidmm_event *event,
			      const char *text)
{
	atomic_fetch_add_explicit(&subscriber->calls, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&subscriber->mask, memory_order_seq_cst) >> event->type & 1)
		subscriber->fn(subscriber->context, event, text);
	atomic_fetch_sub_explicit(&subscriber->calls, 1, memory_order_release);
}

static void deliver(struct vmm_observe *o, uint64_t wanted, const struct vidmm_event *event,
		    const char *text)
{
	for (; wanted; wanted &= wanted - 1) {
		struct subscriber *subscriber = &o->subscribers[__builtin_ctzll(wanted)];

		if (o->config.threads)
			call_with_threads(subscriber, event, text);
		else
			subscriber->fn(subscriber->context, event, text);
	}
}

static void stamp_with_threads(struct vmm_observe *o, struct vidmm_event *event, const char *text)
{
	uint64_t wanted = atomic_load_explicit(&o->front.wanted[event->type], memory_order_relaxed);

	vmm_observe_spin_lock(o, &o->stamping);
	stamp(o, event, text, o->config.clock(o->config.clock_context));
	vmm_observe_spin_unlock(&o->stamping);
	deliver(o, wanted, event, text);
}

static void emit_with_threads(struct vmm_observe *o, struct vidmm_event *event, const char *text)
{
	uint32_t own = own_shard();

	if (vmm_likely(own != SHARD_SHARED))
		vmm_observe_count(&o->front.sets[own].types[event->type], event->arg[0],
				  event->arg[1], event->arg[2], event->arg[3]);
	else
		count_shared(&o->front.sets[SHARD_SHARED].types[event->type], event);
	if (vmm_unlikely(vmm_observe_stamps(o, event->type)))
		stamp_with_threads(o, event, text);
}

void vmm_observe_emit(struct vmm_observe *o, struct vidmm_event *event, const char *text)
{
	uint64_t wanted;

	vmm_assert(event->type != VIDMM_EVENT_NONE && event->type < VIDMM_EVENT_TYPE_COUNT);
	if (o->config.threads) {
		emit_with_threads(o, event, text);
		return;
	}
	vmm_observe_count(&o->front.sets[0].types[event->type], event->arg[0], event->arg[1],
			  event->arg[2], event->arg[3]);
	stamp(o, event, text, *o->config.virtual_ns);
	wanted = atomic_load_explicit(&o->front.wanted[event->type], memory_order_relaxed);
	if (vmm_unlikely(wanted))
		deliver(o, wanted, event, text);
}

/* No structure is filled for an event without subscribers: see vmm_event_inline. */
void vmm_event(struct vmm_observe *o, uint32_t type, uint32_t process, uint32_t object,
	       uint32_t reason, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	vmm_assert(type != VIDMM_EVENT_NONE && type < VIDMM_EVENT_TYPE_COUNT);
	vmm_event_inline(o, type, process, object, reason, a, b, c, d);
}

uint64_t vmm_observe_now(const struct vmm_observe *o)
{
	return o->config.clock(o->config.clock_context);
}

/* Called under the spin lock of subscriptions. */
static void set_wanted(struct vmm_observe *o, uint32_t slot, uint64_t mask)
{
	uint64_t bit = (uint64_t)1 << slot;

	for (uint32_t type = 0; type < VIDMM_EVENT_TYPE_COUNT; type++) {
		_Atomic uint64_t *wanted = &o->front.wanted[type];

		if (mask >> type & 1)
			atomic_fetch_or_explicit(wanted, bit, memory_order_relaxed);
		else
			atomic_fetch_and_explicit(wanted, ~bit, memory_order_relaxed);
		bool stamps =
			stamps_all(o) || atomic_load_explicit(wanted, memory_order_relaxed) != 0;
		atomic_store_explicit(&o->front.stamps[type], stamps, memory_order_relaxed);
	}
}

/*
 * An id combines the slot with a count of its uses (never 0), so that a second unsubscribe cannot
 * hit the slot's next subscriber.
 */
static uint32_t next_generation(uint32_t generation)
{
	return generation % (UINT32_MAX / VMM_OBSERVE_SUBSCRIBERS_MAX) + 1;
}

static uint32_t subscriber_id(const struct vmm_observe *o, uint32_t slot)
{
	return o->subscribers[slot].generation * VMM_OBSERVE_SUBSCRIBERS_MAX + slot;
}

uint32_t vmm_observe_subscribe(struct vmm_observe *observe, uint64_t mask, vmm_observe_fn *fn,
			       void *context)
{
	struct subscriber *subscriber;
	uint32_t slot, id = 0;

	vmm_assert(fn);
	vmm_observe_spin_lock(observe, &observe->subscribing);
	if (observe->subscribers_used != UINT64_MAX) {
		slot = (uint32_t)__builtin_ctzll(~observe->subscribers_used);
		subscriber = &observe->subscribers[slot];
		observe->subscribers_used |= (uint64_t)1 << slot;
		subscriber->generation = next_generation(subscriber->generation);
		subscriber->fn = fn;
		subscriber->context = context;
		atomic_store_explicit(&subscriber->mask, mask, memory_order_seq_cst);
		set_wanted(observe, slot, mask);
		id = subscriber_id(observe, slot);
	}
	vmm_observe_spin_unlock(&observe->subscribing);
	return id;
}

void vmm_observe_unsubscribe(struct vmm_observe *observe, uint32_t id)
{
	uint32_t slot = id % VMM_OBSERVE_SUBSCRIBERS_MAX;
	struct subscriber *subscriber = &observe->subscribers[slot];

	if (!id)
		return;
	vmm_observe_spin_lock(observe, &observe->subscribing);
	if (observe->subscribers_used >> slot & 1 && subscriber_id(observe, slot) == id) {
		set_wanted(observe, slot, 0);
		atomic_store_explicit(&subscriber->mask, 0, memory_order_seq_cst);
		/* The caller may free the context once this function returns. */
		vmm_observe_spin_while(observe, &subscriber->calls);
		observe->subscribers_used &= ~((uint64_t)1 << slot);
	}
	vmm_observe_spin_unlock(&observe->subscribing);
}

void vmm_observe_counter(struct vmm_observe *observe, uint32_t type,
			 struct vmm_observe_counter *counter)
{
	uint32_t shards = 1;

	vmm_assert(type < VIDMM_EVENT_TYPE_COUNT);
	*counter = (struct vmm_observe_counter){0};
	if (observe->config.threads) {
		uint32_t seen = atomic_load_explicit(&threads_seen, memory_order_relaxed);

		shards = seen < SHARDS_MAX ? seen + 1 : SHARDS_MAX;
	}
	for (uint32_t s = 0; s < shards; s++) {
		struct vmm_observe_counts *part = &observe->front.sets[s].types[type];

		counter->count += atomic_load_explicit(&part->count, memory_order_relaxed);
		for (unsigned i = 0; i < 4; i++)
			counter->sum[i] +=
				atomic_load_explicit(&part->sum[i], memory_order_relaxed);
	}
}

uint64_t vmm_observe_hash(struct vmm_observe *observe)
{
	uint64_t hash;

	if (!observe->config.threads)
		return observe->hash;
	vmm_observe_spin_lock(observe, &observe->stamping);
	hash = observe->hash;
	vmm_observe_spin_unlock(&observe->stamping);
	return hash;
}
