/* SPDX-License-Identifier: MIT */
/*
 * Least-recently-used order, maintained lazily. A use stores a counter in the instance and appends
 * the instance to a journal; no list is changed. A search for a victim needs the lists in order and
 * orders them first (vmm_lru_order): it moves the instances of the journal to the end of their
 * lists, in the journal's order.
 *
 * A journal that overflows is not continued, and the lists are sorted by the counters instead. An
 * adapter that evicts nothing therefore pays for neither. An adapter that evicts all the time pays
 * only for the journal.
 *
 * A policy that predicts uses needs the intervals between them (policy/order.h). They are added
 * when the journal is read, never when a use is recorded. Marks say which submission the entries
 * belong to. Of an overflowed journal the entries before the overflow are read. Uses after it are
 * not in any interval (vmm_policy_missed).
 *
 * Invariant: no instance is taken off its list while the journal contains it (vmm_lru_leave).
 */
#include "memory/state/state.h"

static struct vmm_instance *instance_of(const struct vmm_list *link)
{
	return vmm_container_of(link, struct vmm_instance, lru);
}

static void overflow(struct vmm_memory *memory)
{
	if (memory->touched_count <= memory->touched_max)
		memory->touched_kept = memory->touched_count;
	memory->touched_count = memory->touched_max + 1;
}

static void record_use(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	instance->last_use = ++memory->use_counter;
	if (vmm_likely(memory->touched_count < memory->touched_max))
		memory->touched[memory->touched_count++] = instance;
	else
		overflow(memory);
}

bool vmm_lru_use_in_journal(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (memory->touched_count >= memory->touched_max) {
		overflow(memory);
		return false;
	}
	memory->touched[memory->touched_count++] = instance;
	return true;
}

void vmm_residency_touch(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	record_use(memory, instance);
}

static struct vmm_list *list_of(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	return &vmm_memory_segment(memory, instance->segment)->lru[instance->class_index];
}

void vmm_lru_enter(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_push_back(list_of(memory, instance), &instance->lru);
	record_use(memory, instance);
	instance->uses.arrival = instance->last_use;
	if (vmm_unlikely(instance->valued != NULL))
		vmm_valued_enter(memory, instance);
}

/* Merges two chains that are linked by `next` and sorted by last use. */
static struct vmm_list *merge(struct vmm_list *a, struct vmm_list *b)
{
	struct vmm_list first, *last = &first;

	while (a && b) {
		struct vmm_list **least =
			instance_of(a)->last_use < instance_of(b)->last_use ? &a : &b;

		last->next = *least;
		last = *least;
		*least = last->next;
	}
	last->next = a ? a : b;
	return first.next;
}

/* Takes the longest sorted run off the head of the chain. */
static struct vmm_list *take_run(struct vmm_list **chain)
{
	struct vmm_list *first = *chain, *last = first;

	while (last->next && instance_of(last->next)->last_use > instance_of(last)->last_use)
		last = last->next;
	*chain = last->next;
	last->next = NULL;
	return first;
}

/*
 * Natural merge sort of one list. The list consists of few sorted runs. bin[i] holds a merge of 2^i
 * runs, as the digits of a binary counter.
 */
static void sort(struct vmm_list *head)
{
	struct vmm_list *chain = head->next, *bin[32] = {NULL}, *all = NULL;
	uint32_t i;

	if (vmm_list_empty(head))
		return;
	head->prev->next = NULL;
	while (chain) {
		struct vmm_list *run = take_run(&chain);

		for (i = 0; i < 31 && bin[i]; i++) {
			run = merge(bin[i], run);
			bin[i] = NULL;
		}
		bin[i] = bin[i] ? merge(bin[i], run) : run;
	}
	for (i = 0; i < 32; i++)
		if (bin[i])
			all = all ? merge(bin[i], all) : bin[i];
	vmm_list_init(head);
	while (all) {
		struct vmm_list *link = all;

		all = all->next;
		vmm_list_push_back(head, link);
	}
}

static void note_missed(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t submission = instance->last_use >> VMM_USE_SUBMISSION_SHIFT;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->valued != NULL))
		vmm_valued_use(memory, instance, submission, VIDMM_POLICY_MISSED);
	vmm_policy_missed(&instance->uses, submission);
}

/* With a policy of the embedder: its values of those that were used since the last order. */
static void update_value(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->valued != NULL) &&
	    instance->valued->node.order != instance->last_use)
		vmm_valued_update(memory, instance);
}

static void sort_all(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t s = 0; s < memory->segment_count; s++)
		for (uint32_t c = 0; c < VMM_CLASS_COUNT; c++) {
			struct vmm_list *list = &memory->segment[s].lru[c], *link;

			sort(list);
			if (!memory->marks)
				continue;
			vmm_list_for_each (link, list) {
				vmm_lru_forget(memory, instance_of(link));
				note_missed(memory, instance_of(link));
				update_value(memory, instance_of(link));
			}
		}
}

void vmm_lru_forget_slow(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_farthest *kept =
		&vmm_memory_segment(memory, instance->segment)->farthest[instance->class_index];

	instance->is_kept = false;
	for (uint32_t k = 0; k < kept->count; k++)
		if (kept->instance[k] == instance)
			kept->instance[k] = NULL;
}

/* Adds the valid entries of the journal to the intervals, and removes the marks. */
static void read_intervals(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t count = memory->touched_count <= memory->touched_max ? memory->touched_count
								      : memory->touched_kept;
	uint32_t m = 0;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!memory->marks)
		return;
	for (uint32_t i = 0; i < count; i++) {
		while (m + 1 < memory->mark_count && memory->marks[m + 1].first <= i)
			m++;
		struct vmm_instance *instance = memory->touched[i];

		if (vmm_unlikely(instance->valued != NULL))
			vmm_valued_use(memory, instance, memory->marks[m].submission, 0);
		vmm_policy_use(&instance->uses, memory->marks[m].submission);
	}
	memory->touched_kept = 0;
	memory->marks[0] = (struct vmm_use_mark){vmm_lru_submission(memory), 0};
	memory->mark_count = 1;
}

void vmm_lru_leave(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (memory->touched_count <= memory->touched_max) {
		vmm_lru_order(memory);
	} else if (vmm_unlikely(memory->marks != NULL)) {
		read_intervals(memory);
		note_missed(memory, instance);
	}
	vmm_lru_forget(memory, instance);
	if (vmm_unlikely(instance->valued != NULL))
		vmm_valued_leave(instance);
}

/*
 * The next entries belong to the next submission. A mark for which there is no space ends the
 * journal as a use does.
 */
static void mark_submission(struct vmm_memory *memory)
{
	struct vmm_use_mark *last = &memory->marks[memory->mark_count - 1];

	if (memory->touched_count > memory->touched_max)
		return;
	if (last->first != memory->touched_count) {
		if (memory->mark_count == VMM_USE_MARKS_MAX) {
			overflow(memory);
			return;
		}
		last++;
		memory->mark_count++;
	}
	*last = (struct vmm_use_mark){vmm_lru_submission(memory), memory->touched_count};
}

void vmm_memory_end_submission(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;

	vmm_assert_held(&adapter->paging_lock);
	memory->use_counter |= (UINT64_C(1) << VMM_USE_SUBMISSION_SHIFT) - 1;
	memory->use_counter++;
	if (vmm_unlikely(memory->marks != NULL))
		mark_submission(memory);
}

void vmm_lru_order_slow(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	read_intervals(memory);
	if (memory->order->walk == VMM_POLICY_SECOND_CHANCE) {
		/* The lists are in the order of arrival. */
	} else if (memory->touched_count > memory->touched_max) {
		sort_all(memory);
	} else {
		for (uint32_t i = 0; i < memory->touched_count; i++) {
			struct vmm_instance *instance = memory->touched[i];

			vmm_lru_forget(memory, instance);
			vmm_list_remove(&instance->lru);
			vmm_list_push_back(list_of(memory, instance), &instance->lru);
			update_value(memory, instance);
		}
	}
	memory->touched_count = 0;
}

/* Does the journal have space for `count` more entries? If not, it overflows. */
static bool has_space_for(const struct vmm_memory *memory, uint32_t count)
{
	return memory->touched_count <= memory->touched_max &&
	       count <= memory->touched_max - memory->touched_count;
}

/* Is a paging packet incomplete, or are paging commands pending? */
static bool is_paging(const struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_adapter *adapter = memory->adapter;

	vmm_assert_held(&memory->adapter->paging_lock);
	return !vmm_timeline_passed(adapter, adapter->paging_timeline, vmm_paging_sequence(memory));
}

/* The uses of one packet so far. */
struct uses {
	struct vmm_instance **touched; /* where the next one goes in the journal */
	uint64_t counter, needed;
};

/* Records one use. instance->prepared tells whether this preparation has seen the instance. */
VMM_ALWAYS_INLINE void use_one(struct vmm_instance *instance, const struct vmm_use_in_place *use,
			       struct uses *uses, uint32_t paging_timeline, bool journal,
			       bool paging)
{
	if (vmm_unlikely(!instance) || instance->prepared == use->preparation)
		return;
	instance->prepared = use->preparation;
	instance->last_use = ++uses->counter;
	if (journal)
		*uses->touched++ = instance;
	vmm_instance_activate(instance, use->timeline, use->sequence);
	if (!paging)
		return;
	uint64_t queued =
		atomic_load_explicit(&instance->queued[paging_timeline], memory_order_relaxed);
	uint64_t updated = atomic_load_explicit(&instance->updated, memory_order_relaxed);

	uses->needed = vmm_max_u64(uses->needed, vmm_max_u64(queued, updated));
}

/*
 * Records the uses of one packet. It reads only the cache line of each instance that it also
 * writes. `journal` and `paging` are constants at each call, so the compiler makes four versions
 * without these tests in the loop.
 */
VMM_ALWAYS_INLINE uint64_t use_all(struct vmm_memory *memory, const struct vmm_use_in_place *given,
				   bool journal, bool paging)
{
	const struct vmm_use_in_place use = *given;
	const D3DDDI_PATCHLOCATIONLIST *at = use.patches + use.first, *end = use.patches + use.end,
				       *far = at + vmm_list_with_prefetch((uint32_t)(end - at));
	uint32_t paging_timeline = memory->adapter->paging_timeline;
	struct uses uses = {.touched = journal ? memory->touched + memory->touched_count : NULL,
			    .counter = memory->use_counter};

	for (; at != far; at++) {
		vmm_prefetch((uintptr_t)use.instances[at[VMM_LIST_AHEAD].AllocationIndex]);
		use_one(use.instances[at->AllocationIndex], &use, &uses, paging_timeline, journal,
			paging);
	}
	for (; at != end; at++)
		use_one(use.instances[at->AllocationIndex], &use, &uses, paging_timeline, journal,
			paging);
	if (journal)
		memory->touched_count += (uint32_t)(uses.counter - memory->use_counter);
	memory->use_counter = uses.counter;
	return uses.needed;
}

uint64_t vmm_memory_use_in_place(struct vmm_adapter *adapter, const struct vmm_use_in_place *use)
{
	struct vmm_memory *memory = adapter->memory;
	uint32_t most = use->end - use->first;

	vmm_assert_held(&adapter->paging_lock);
	if (most > use->instance_count)
		most = use->instance_count;
	if (!has_space_for(memory, most)) {
		overflow(memory);
		return vmm_unlikely(is_paging(memory)) ? use_all(memory, use, false, true)
						       : use_all(memory, use, false, false);
	}
	return vmm_unlikely(is_paging(memory)) ? use_all(memory, use, true, true)
					       : use_all(memory, use, true, false);
}

vmm_status vmm_lru_create(struct vmm_memory *memory, const struct vmm_policy_order *order)
{
	bool intervals = order->keeps_intervals;

	memory->order = order;
	memory->touched_max = intervals ? VMM_TOUCHED_FOR_INTERVALS : VMM_TOUCHED_FOR_ORDER;
	/* No submission has the number 0, which stands for no use (order.h). */
	memory->use_counter = UINT64_C(1) << VMM_USE_SUBMISSION_SHIFT;
	memory->touched = vmm_calloc(memory->touched_max, sizeof(struct vmm_instance *));
	if (intervals)
		memory->marks = vmm_calloc(VMM_USE_MARKS_MAX, sizeof(*memory->marks));
	if (!memory->touched || (intervals && !memory->marks))
		return VMM_NO_MEMORY;
	if (!intervals)
		return VMM_OK;
	memory->marks[0] = (struct vmm_use_mark){vmm_lru_submission(memory), 0};
	memory->mark_count = 1;
	return VMM_OK;
}

void vmm_lru_destroy(struct vmm_memory *memory)
{
	vmm_free(memory->touched);
	vmm_free(memory->marks);
}
