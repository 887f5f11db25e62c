/* SPDX-License-Identifier: MIT */
/* See gate.h. What opens a gate is what lock.c and lock2.c would find to do; a rule that is added there belongs here, too. */
#include "memory/memory_private.h"
#include "object/live.h"

#define PACKET_SHIFT  56
#define GATES_FIRST   64u
#define GATES_AT_ONCE 4096u /* so many before a table must be a quarter full to grow */
#define GATES_MAX     65536u

/*
 * A look, the packet, a second look: if the word is the same, all of it was of one moment. Who writes another packet has
 * changed the word before, and whoever sees the packet sees that (release, acquire).
 */
bool vmm_gate_is_busy(const struct vmm_device *device, uint32_t handle, uint32_t *timeline,
		      uint64_t *sequence)
{
	const struct vmm_gate *gate = vmm_gate_of(device, handle);

	if (!gate)
		return false;
	uint64_t word = atomic_load_explicit(&gate->word, memory_order_acquire);
	if (word >> VMM_GATE_HANDLE_SHIFT != handle || !(word & VMM_GATE_BUSY))
		return false;
	uint64_t packet = atomic_load_explicit(&gate->packet, memory_order_acquire);
	if (atomic_load_explicit(&gate->word, memory_order_relaxed) != word)
		return false;
	*timeline = (uint32_t)(packet >> PACKET_SHIFT);
	*sequence = packet & (((uint64_t)1 << PACKET_SHIFT) - 1);
	return !vmm_timeline_done(device->adapter, *timeline, *sequence);
}

/* ---- the word of a process apart ---- */

_Static_assert(VMM_LOCK_WORD_INDEX_SHIFT == VMM_HANDLE_INDEX_SHIFT, "where a handle's index is");

/* What is in it is the client's word: believed if it differs from what was written by the number of locks alone. */
static void take_back(struct vmm_gate *gate)
{
	struct vmm_os_viewer *viewer = gate->ref->device->process->viewer;
	uint64_t shut = atomic_load_explicit(&gate->word, memory_order_relaxed);
	uint64_t word =
		atomic_exchange_explicit(&gate->client_word->word, shut, memory_order_acq_rel);

	if (vmm_likely((word & ~(uint64_t)VMM_GATE_LOCKS_MAX) == (shut | VMM_GATE_OPEN)))
		gate->instance->lock_count = gate->ref->lock_count = word & VMM_GATE_LOCKS_MAX;
	else /* what was known before stays */
		viewer->ops->distrust(
			viewer, "is cut off: it wrote into a lock word what is no number of locks");
	gate->instance->gated = gate->open = gate->apart = false;
}

static struct vmm_lock_word *take_word(const struct vmm_ref *ref)
{
	struct vmm_os_viewer *viewer = ref->device->process->viewer;

	return viewer && viewer->ops->take_word ? viewer->ops->take_word(viewer, ref->handle)
						: NULL;
}

static void give_word_back(struct vmm_gate *gate)
{
	struct vmm_os_viewer *viewer = gate->ref->device->process->viewer;

	if (gate->client_word)
		viewer->ops->give_word_back(viewer, gate->client_word);
	gate->client_word = NULL;
}

/* All but the number of locks is known, so that an exchange will do, which is cheaper than an and that returns something. */
void vmm_gate_say_nothing(struct vmm_gate *gate)
{
	if (vmm_unlikely(gate->apart)) {
		take_back(gate);
		return;
	}
	uint64_t quiet = atomic_load_explicit(&gate->word, memory_order_relaxed) &
			 ~(uint64_t)(VMM_GATE_OPEN | VMM_GATE_BUSY | VMM_GATE_LOCKS_MAX);
	uint64_t word = atomic_exchange_explicit(&gate->word, quiet, memory_order_acq_rel);

	if (gate->open)
		gate->instance->lock_count = gate->ref->lock_count = word & VMM_GATE_LOCKS_MAX;
	gate->instance->gated = gate->open = gate->busy = false;
}

/* ---- the table ---- */

void vmm_gate_unbind(struct vmm_instance *instance)
{
	struct vmm_gate *gate = instance->gate;

	if (!gate)
		return;
	vmm_gate_shut(instance);
	atomic_load_explicit(&gate->ref->device->gates, memory_order_relaxed)->bound--;
	give_word_back(gate);
	instance->gate = NULL;
	gate->instance = NULL;
	gate->ref = NULL;
}

static struct vmm_gates *make_table(uint32_t count)
{
	struct vmm_gates *gates = vmm_calloc(1, sizeof(*gates));

	if (!gates)
		return NULL;
	gates->memory = vmm_calloc(count + 1, sizeof(struct vmm_gate));
	if (!gates->memory) {
		vmm_free(gates);
		return NULL;
	}
	gates->gate = (void *)vmm_align_up((uintptr_t)gates->memory, _Alignof(struct vmm_gate));
	gates->mask = count - 1;
	return gates;
}

/* Who looks into the old one finds every gate shut. */
static struct vmm_gates *replace_table(struct vmm_device *device, struct vmm_gates *old)
{
	struct vmm_gates *gates = make_table(old ? 2 * (old->mask + 1) : GATES_FIRST);

	if (!gates)
		return NULL;
	for (uint32_t i = 0; old && i <= old->mask; i++)
		if (old->gate[i].instance)
			vmm_gate_unbind(old->gate[i].instance);
	gates->before = old;
	atomic_store_explicit(&device->gates, gates, memory_order_release);
	return gates;
}

static bool should_grow(const struct vmm_gates *gates)
{
	uint32_t count = gates->mask + 1;

	return count < GATES_AT_ONCE || (count < GATES_MAX && gates->bound >= count / 4);
}

/* NULL: no memory for it. */
static struct vmm_gate *bind_to_gate(struct vmm_ref *ref)
{
	struct vmm_device *device = ref->device;
	struct vmm_gates *gates = atomic_load_explicit(&device->gates, memory_order_relaxed);

	if (!gates)
		gates = replace_table(device, NULL);
	while (gates && vmm_gate_of(device, ref->handle)->ref && should_grow(gates))
		gates = replace_table(device, gates);
	if (!gates)
		return NULL;
	struct vmm_gate *gate = vmm_gate_of(device, ref->handle);
	if (gate->ref)
		vmm_gate_unbind(gate->instance);
	gates->bound++;
	gate->ref = ref;
	gate->instance = ref->instance;
	ref->instance->gate = gate;
	gate->client_word = take_word(ref);
	return gate;
}

void vmm_gates_free(struct vmm_device *device)
{
	struct vmm_gates *gates = atomic_load_explicit(&device->gates, memory_order_relaxed);

	while (gates) {
		struct vmm_gates *before = gates->before;

		vmm_assert(!gates->bound);
		vmm_free(gates->memory);
		vmm_free(gates);
		gates = before;
	}
	atomic_store_explicit(&device->gates, NULL, memory_order_relaxed);
}

/* ---- when ---- */

/* What holds from the allocation's creation on. */
static bool is_plain(const struct vmm_allocation *allocation)
{
	uint32_t special = VMM_ALLOCATION_PROTECTED | VMM_ALLOCATION_KEPT;

	special |= allocation->adapter->wddm2
			   ? VMM_ALLOCATION_CACHED | (uint32_t)VMM_ALLOCATION_CPU_VISIBLE_ON_DEMAND
			   : VMM_ALLOCATION_ALTERNATE;
	return (allocation->flags & VMM_ALLOCATION_VISIBLE) && !(allocation->flags & special) &&
	       !allocation->shared; /* then it has one handle for each instance */
}

bool vmm_gate_is_in_view(const struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;
	const struct vmm_memory *memory = allocation->adapter->memory;

	/* A further lock would find the caches as the last one has left them (ALF-15). */
	if (vmm_unlikely(allocation->flags & VMM_ALLOCATION_CACHED) &&
	    (instance->cache != VMM_CACHE_CPU || !instance->handover))
		return false;
	if (!instance->view_current | (instance->kept != NULL) | (instance->partial != NULL) |
	    (instance->alternate != NULL) | (instance->range_count != 0) | instance->held |
	    instance->not_written)
		return false;
	if (instance->place == VMM_PLACE_MEMORY)
		return memory->segment[instance->segment - 1].cpu_memory;
	return instance->place == VMM_PLACE_APERTURE ||
	       (instance->place == VMM_PLACE_SYSTEM && !allocation->adapter->wddm2);
}

/* LOCK-05; what a submission that is on its way names is not marked yet (vmm_sched_render). From 2.0 on: LOCK-43. */
static bool is_idle(const struct vmm_instance *instance)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;
	uint32_t t = adapter->paging_timeline;

	if (adapter->wddm2)
		return vmm_timeline_done(
			adapter, t,
			atomic_load_explicit(&instance->written[t], memory_order_relaxed));
	return vmm_gate_may_open(adapter) && vmm_instance_is_idle(instance);
}

/* One with a gate; nobody would be refused. */
static bool may_be_locked(const struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;

	return instance->state == VMM_INSTANCE_CURRENT &&
	       !(allocation->offer | allocation->offer_queued | allocation->uncommitted |
		 allocation->closing | allocation->reset_lost);
}

/* SWZ-14, SWZ-15 */
static bool is_plainly_locked(const struct vmm_instance *instance)
{
	return !(instance->lock_flags & (VMM_LOCK_ACQUIRE_APERTURE | VMM_LOCK_USE_ALTERNATE_VA));
}

static bool may_be_open(const struct vmm_instance *instance)
{
	return may_be_locked(instance) && vmm_gate_is_in_view(instance) &&
	       is_plainly_locked(instance);
}

void vmm_gate_bind(struct vmm_ref *ref)
{
	if (!ref->instance->gate && is_plain(ref->allocation))
		(void)bind_to_gate(ref);
}

static void say(struct vmm_gate *gate, uint32_t what)
{
	uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);

	word = (word + VMM_GATE_VERSION) & VMM_GATE_VERSION_MASK;
	atomic_store_explicit(&gate->word,
			      (uint64_t)gate->ref->handle << VMM_GATE_HANDLE_SHIFT | word | what,
			      memory_order_release);
}

/* LOCK-08; what else a lock would be refused for is looked at before (LOCK-32). */
void vmm_gate_turned_away(struct vmm_ref *ref, uint32_t timeline, uint64_t sequence)
{
	const struct vmm_instance *instance = ref->instance;
	struct vmm_gate *gate = instance->gate;

	if (!gate || !may_be_locked(instance) || sequence >> PACKET_SHIFT ||
	    (instance->lock_count && !is_plainly_locked(instance)))
		return;
	atomic_store_explicit(&gate->packet, (uint64_t)timeline << PACKET_SHIFT | sequence,
			      memory_order_release);
	gate->instance->gated = gate->busy = true;
	say(gate, VMM_GATE_BUSY);
}

/* Or it stays shut: then locks come to the host, and the next one finds whether that goes on. */
static void open_apart(struct vmm_gate *gate, uint32_t locks)
{
	struct vmm_lock_word *word = gate->client_word;
	struct vmm_instance *instance = gate->instance;
	const struct vmm_device *device = gate->ref->device;
	struct vmm_os_viewer *viewer = device->process->viewer;
	uint64_t epoch = vmm_world_epoch(device->process->world);

	if (!vmm_device_may_go_unseen(device, VIDMM_EVENT_LOCK, VIDMM_EVENT_UNLOCK))
		return;
	atomic_store_explicit(&word->epoch, epoch, memory_order_relaxed);
	atomic_store_explicit(&word->address, (uint64_t)(uintptr_t)instance->view.address,
			      memory_order_relaxed);
	atomic_store_explicit(&word->views, viewer->ops->instructed(viewer), memory_order_relaxed);
	atomic_store_explicit(&word->device, device->handle, memory_order_relaxed);
	atomic_store_explicit(&word->wddm2, device->adapter->wddm2, memory_order_relaxed);
	instance->gated = gate->open = gate->apart = true;
	say(gate, 0);
	atomic_store_explicit(&word->word,
			      atomic_load_explicit(&gate->word, memory_order_relaxed) |
				      VMM_GATE_OPEN | locks,
			      memory_order_release);
}

void vmm_gate_open_now(struct vmm_ref *ref)
{
	struct vmm_instance *instance = ref->instance;
	struct vmm_gate *gate = instance->gate;

	vmm_assert(!gate->open && !gate->busy);
	atomic_store_explicit(&gate->address, instance->view.address, memory_order_relaxed);
	atomic_store_explicit(&gate->size_bytes, instance->allocation->size_bytes,
			      memory_order_relaxed);
	if (vmm_unlikely(gate->client_word != NULL)) {
		open_apart(gate, ref->lock_count);
		return;
	}
	instance->gated = gate->open = true;
	say(gate, VMM_GATE_OPEN | ref->lock_count);
}

void vmm_gate_open(struct vmm_ref *ref)
{
	const struct vmm_instance *instance = ref->instance;

	if (instance->gate && ref->lock_count <= VMM_GATE_LOCKS_MAX && may_be_open(instance) &&
	    is_idle(instance))
		vmm_gate_open_now(ref);
}

void vmm_gate_check(const struct vmm_instance *instance)
{
	const struct vmm_gate *gate = instance->gate;

	vmm_assert(instance->gated == (gate && (gate->open || gate->busy)));
	if (!gate)
		return;
	vmm_assert(gate->instance == instance && gate->ref->instance == instance);
	vmm_assert(is_plain(instance->allocation));
	vmm_assert(gate == vmm_gate_of(gate->ref->device, gate->ref->handle));
	vmm_assert(gate->open == (gate->apart || (gate->word & VMM_GATE_OPEN) != 0));
	vmm_assert(gate->busy == ((gate->word & VMM_GATE_BUSY) != 0));
	vmm_assert(!gate->busy || (may_be_locked(instance) && !gate->open));
	vmm_assert(!gate->open || may_be_open(instance));
	vmm_assert(!gate->open || gate->address == instance->view.address);
}
