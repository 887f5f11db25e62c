/* SPDX-License-Identifier: MIT */
/*
 * gate: how a lock of the plain kind gets by without the paging lock. An instance for which a lock has nothing to do but to
 * count (idle, in its place, in view, not offered) has an open gate: one word with the handle, the number of locks and
 * the bit that says so. A lock or unlock is then one compare-and-swap of that word.
 *
 * The gate of one that the GPU uses may say so: then who will not wait is turned away with no more than a look.
 *
 * Who holds the paging lock and wants to know the number of locks, or changes anything that a lock would have to look at,
 * shuts the gate first; from then on everything is as it would be without gates, until a lock under the paging lock finds
 * that there is nothing to do any more. docs/locking.md has the protocol.
 *
 * A process apart has a second word for each gate, in memory that it shares with the host: then it is that one which is
 * open, and this one stays shut (docs/adr/0002-locks-without-a-message.md).
 *
 * The gates of a device outlive its allocations, so that who comes with a stale handle finds a word that says no.
 */
#ifndef VMM_MEMORY_GATE_H
#define VMM_MEMORY_GATE_H

#include "base/lock_word.h"
#include "object/object.h"

#define VMM_GATE_LOCKS_MAX    VMM_LOCK_WORD_LOCKS_MAX
#define VMM_GATE_OPEN         VMM_LOCK_WORD_OPEN
#define VMM_GATE_BUSY         VMM_LOCK_WORD_BUSY
#define VMM_GATE_VERSION      VMM_LOCK_WORD_VERSION
#define VMM_GATE_VERSION_MASK 0xFFFC0000u
#define VMM_GATE_HANDLE_SHIFT VMM_LOCK_WORD_HANDLE_SHIFT

struct vmm_gate {
	_Alignas(128) _Atomic uint64_t word; /* while shut, written under the paging lock only */
	/* what a lock gives out and tells; written before the gate opens */
	_Atomic(char *) address;
	_Atomic uint64_t size_bytes;
	/* what a lock would wait for, while it says busy: timeline << 56 | packet */
	_Atomic uint64_t packet;
	/* guarded by the paging lock */
	struct vmm_ref *ref; /* NULL: of nobody */
	struct vmm_instance *instance;
	bool open, busy; /* the bits of the word, for those who hold the lock */
	bool apart;      /* it is open, and the word that says so is the client's */
	struct vmm_lock_word *client_word; /* of a process apart; NULL: there is none */
};

/* Of one device, by the index of the handle. */
struct vmm_gates {
	struct vmm_gates *before; /* a smaller table, into which somebody may still look */
	void *memory;
	uint32_t mask, bound;
	struct vmm_gate *gate;
};

static inline struct vmm_gate *vmm_gate_of(const struct vmm_device *device, uint32_t handle)
{
	const struct vmm_gates *gates = atomic_load_explicit(&device->gates, memory_order_acquire);

	return vmm_likely(gates != NULL)
		       ? &gates->gate[handle >> VMM_HANDLE_INDEX_SHIFT & gates->mask]
		       : NULL;
}

/* One lock more, if the gate is open: where it is. NULL: it is not. No lock held. */
static inline char *vmm_gate_lock(const struct vmm_device *device, uint32_t handle,
				  uint64_t *size_bytes)
{
	struct vmm_gate *gate = vmm_gate_of(device, handle);

	if (vmm_unlikely(!gate))
		return NULL;
	uint64_t word = atomic_load_explicit(&gate->word, memory_order_acquire);
	while (vmm_likely(vmm_lock_word_is_open_for(word, handle) &&
			  (word & VMM_GATE_LOCKS_MAX) != VMM_GATE_LOCKS_MAX)) {
		/* Of this opening, or the swap fails. */
		char *address = atomic_load_explicit(&gate->address, memory_order_relaxed);

		*size_bytes = atomic_load_explicit(&gate->size_bytes, memory_order_relaxed);
		if (vmm_likely(atomic_compare_exchange_weak_explicit(&gate->word, &word, word + 1,
								     memory_order_acq_rel,
								     memory_order_acquire)))
			return address;
	}
	return NULL;
}

/* One lock less, if the gate is open and there is one. */
static inline bool vmm_gate_unlock(const struct vmm_device *device, uint32_t handle)
{
	struct vmm_gate *gate = vmm_gate_of(device, handle);

	if (vmm_unlikely(!gate))
		return false;
	uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);
	while (vmm_likely(vmm_lock_word_is_open_for(word, handle) && (word & VMM_GATE_LOCKS_MAX)))
		if (vmm_likely(atomic_compare_exchange_weak_explicit(&gate->word, &word, word - 1,
								     memory_order_acq_rel,
								     memory_order_relaxed)))
			return true;
	return false;
}

/* Does the gate say that the GPU is still at it? If so, which packet a lock would wait for. No lock held. */
bool vmm_gate_is_busy(const struct vmm_device *device, uint32_t handle, uint32_t *timeline,
		      uint64_t *sequence);

/* ---- all that follows: paging lock held ---- */
void vmm_gate_say_nothing(struct vmm_gate *gate);
static inline void vmm_gate_shut(const struct vmm_instance *instance)
{
	if (vmm_unlikely(instance->gated))
		vmm_gate_say_nothing(instance->gate);
}
/* How many locks there are; it stays so while the paging lock is held. */
static inline uint32_t vmm_locks(const struct vmm_instance *instance)
{
	vmm_gate_shut(instance);
	return instance->lock_count;
}
/* The same for who only looks: it may be another number by now. */
static inline uint32_t vmm_locks_now(const struct vmm_instance *instance)
{
	if (vmm_likely(!instance->gated || !instance->gate->open))
		return instance->lock_count;
	return atomic_load_explicit(vmm_unlikely(instance->gate->apart)
					    ? &instance->gate->client_word->word
					    : &instance->gate->word,
				    memory_order_relaxed) &
	       VMM_GATE_LOCKS_MAX;
}
/* The ref that the handle names, by its gate; NULL: it has none. */
static inline struct vmm_ref *vmm_gate_find(const struct vmm_device *device, uint32_t handle)
{
	const struct vmm_gate *gate = vmm_gate_of(device, handle);

	return vmm_likely(gate && gate->ref && gate->ref->handle == handle) ? gate->ref : NULL;
}
/* Of an instance with a gate: does the CPU see it where it is? */
bool vmm_gate_is_in_view(const struct vmm_instance *instance);
/* Gives the ref's instance a gate if it is of a kind that it could ever be open for. */
void vmm_gate_bind(struct vmm_ref *ref);
/* Opens the gate of the ref's instance if nothing speaks against it. */
void vmm_gate_open(struct vmm_ref *ref);
/* The same without a look: there is a gate, all else was looked at in this hold of the lock, and this before it: */
void vmm_gate_open_now(struct vmm_ref *ref);
/* Is all that submissions use marked as used? If one is on its way, what it names is not yet (vmm_sched_render). */
static inline bool vmm_gate_may_open(const struct vmm_adapter *adapter)
{
	return atomic_load(&adapter->submissions) ==
	       atomic_load_explicit(&adapter->captured, memory_order_acquire);
}
/* A lock of it was turned away for that packet, and for no other reason. */
void vmm_gate_turned_away(struct vmm_ref *ref, uint32_t timeline, uint64_t sequence);
/* The instance, or its handle, is about to go. */
void vmm_gate_unbind(struct vmm_instance *instance);
/* Is everything as an open gate says? */
void vmm_gate_check(const struct vmm_instance *instance);
/* The device's; it has no refs any more, and nobody is inside. */
void vmm_gates_free(struct vmm_device *device);

#endif
