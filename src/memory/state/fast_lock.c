/* SPDX-License-Identifier: MIT */
/*
 * See fast_lock.h. The fast path is enabled only where lock.c and lock2.c would find nothing to do.
 * A rule that is added to those files must be added to the conditions here.
 */
#include "memory/state/state.h"
#include "object/hazard.h"

#define PACKET_SHIFT     56
#define ENTRIES_FIRST    64u
#define ENTRIES_ANY_LOAD 4096u  /* up to here a table grows at the first collision */
#define ENTRIES_MAX      65536u /* from there to here only if it is a quarter full */

/*
 * Seqlock read: load the word, load the packet, load the word again. If the word is unchanged,
 * packet and word belong together. A writer changes the word before it stores another packet
 * (release); the acquire load of the packet sees that.
 */
bool vmm_fast_lock_is_busy(const struct vmm_device *device, uint32_t handle, uint32_t *timeline,
			   uint64_t *sequence)
{
	const struct vmm_fast_lock *fast_lock = vmm_fast_lock_of(device, handle);

	if (!fast_lock)
		return false;
	uint64_t word = atomic_load_explicit(&fast_lock->word, memory_order_acquire);
	if (word >> VMM_FAST_LOCK_HANDLE_SHIFT != handle || !(word & VMM_FAST_LOCK_BUSY))
		return false;
	uint64_t packet = atomic_load_explicit(&fast_lock->packet, memory_order_acquire);
	if (atomic_load_explicit(&fast_lock->word, memory_order_relaxed) != word)
		return false;
	*timeline = (uint32_t)(packet >> PACKET_SHIFT);
	*sequence = packet & (((uint64_t)1 << PACKET_SHIFT) - 1);
	return !vmm_timeline_done(device->adapter, *timeline, *sequence);
}

/* ---- The lock word of an out-of-process client. ---- */

_Static_assert(VMM_LOCK_WORD_INDEX_SHIFT == VMM_HANDLE_INDEX_SHIFT,
	       "client and host must find the handle's index at the same bit");

/*
 * The client can write anything into its word. The count is accepted only if nothing but the count
 * differs from what the host wrote; otherwise the client is cut off and the host keeps the count
 * that it had.
 */
static void disable_client_word(struct vmm_fast_lock *fast_lock)
{
	struct vmm_os_viewer *viewer = fast_lock->ref->device->process->viewer;
	uint64_t disabled = atomic_load_explicit(&fast_lock->word, memory_order_relaxed);
	uint64_t word = atomic_exchange_explicit(&fast_lock->client_word->word, disabled,
						 memory_order_acq_rel);

	if (vmm_likely((word & ~(uint64_t)VMM_FAST_LOCK_LOCKS_MAX) ==
		       (disabled | VMM_FAST_LOCK_ENABLED)))
		fast_lock->instance->lock_count = fast_lock->ref->lock_count =
			word & VMM_FAST_LOCK_LOCKS_MAX;
	else
		viewer->ops->distrust(
			viewer, "is cut off: it changed more of a lock word than the lock count");
	fast_lock->instance->has_fast_lock = fast_lock->enabled = fast_lock->out_of_process = false;
}

static struct vmm_lock_word *claim_client_word(const struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_os_viewer *viewer = ref->device->process->viewer;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	return viewer && viewer->ops->take_word ? viewer->ops->take_word(viewer, ref->handle)
						: NULL;
}

static void return_client_word(struct vmm_fast_lock *fast_lock)
{
	struct vmm_os_viewer *viewer = fast_lock->ref->device->process->viewer;

	if (fast_lock->client_word)
		viewer->ops->give_word_back(viewer, fast_lock->client_word);
	fast_lock->client_word = NULL;
}

/*
 * Only the count in the word is unknown, so an exchange does; it is cheaper than an atomic AND that
 * returns the value.
 */
void vmm_fast_lock_disable_slow(struct vmm_fast_lock *fast_lock)
{
	if (vmm_unlikely(fast_lock->out_of_process)) {
		disable_client_word(fast_lock);
		return;
	}
	uint64_t disabled =
		atomic_load_explicit(&fast_lock->word, memory_order_relaxed) &
		~(uint64_t)(VMM_FAST_LOCK_ENABLED | VMM_FAST_LOCK_BUSY | VMM_FAST_LOCK_LOCKS_MAX);
	uint64_t word = atomic_exchange_explicit(&fast_lock->word, disabled, memory_order_acq_rel);

	if (fast_lock->enabled)
		fast_lock->instance->lock_count = fast_lock->ref->lock_count =
			word & VMM_FAST_LOCK_LOCKS_MAX;
	fast_lock->instance->has_fast_lock = fast_lock->enabled = fast_lock->busy = false;
}

/* ---- The table of a device. ---- */

void vmm_fast_lock_unbind(struct vmm_instance *instance)
{
	struct vmm_fast_lock *fast_lock = instance->fast_lock;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (!fast_lock)
		return;
	vmm_fast_lock_disable(instance);
	atomic_load_explicit(&fast_lock->ref->device->fast_locks, memory_order_relaxed)->bound--;
	return_client_word(fast_lock);
	instance->fast_lock = NULL;
	fast_lock->instance = NULL;
	fast_lock->ref = NULL;
}

static struct vmm_fast_lock_table *make_table(uint32_t count)
{
	struct vmm_fast_lock_table *table = vmm_calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->memory = vmm_calloc(count + 1, sizeof(struct vmm_fast_lock));
	if (!table->memory) {
		vmm_free(table);
		return NULL;
	}
	table->fast_lock =
		(void *)vmm_align_up((uintptr_t)table->memory, _Alignof(struct vmm_fast_lock));
	table->mask = count - 1;
	return table;
}

/* Doubles the table. A thread that still reads the old one finds every word disabled. */
static struct vmm_fast_lock_table *replace_table(struct vmm_device *device,
						 struct vmm_fast_lock_table *old)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_fast_lock_table *table = make_table(old ? 2 * (old->mask + 1) : ENTRIES_FIRST);

	vmm_assert_held(&device->adapter->paging_lock);
	if (!table)
		return NULL;
	for (uint32_t i = 0; old && i <= old->mask; i++)
		if (old->fast_lock[i].instance)
			vmm_fast_lock_unbind(old->fast_lock[i].instance);
	table->previous = old;
	atomic_store_explicit(&device->fast_locks, table, memory_order_release);
	return table;
}

static bool should_grow(const struct vmm_fast_lock_table *table)
{
	uint32_t count = table->mask + 1;

	return count < ENTRIES_ANY_LOAD || (count < ENTRIES_MAX && table->bound >= count / 4);
}

/*
 * Binds the entry of the ref's handle, evicting another ref from it if need be. Returns NULL
 * without memory for a table.
 */
static struct vmm_fast_lock *bind_entry(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_device *device = ref->device;
	struct vmm_fast_lock_table *table =
		atomic_load_explicit(&device->fast_locks, memory_order_relaxed);

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (!table)
		table = replace_table(device, NULL);
	while (table && vmm_fast_lock_of(device, ref->handle)->ref && should_grow(table))
		table = replace_table(device, table);
	if (!table)
		return NULL;
	struct vmm_fast_lock *fast_lock = vmm_fast_lock_of(device, ref->handle);
	if (fast_lock->ref)
		vmm_fast_lock_unbind(fast_lock->instance);
	table->bound++;
	fast_lock->ref = ref;
	fast_lock->instance = ref->instance;
	ref->instance->fast_lock = fast_lock;
	fast_lock->client_word = claim_client_word(ref);
	return fast_lock;
}

void vmm_fast_lock_table_free(struct vmm_device *device)
{
	struct vmm_fast_lock_table *table =
		atomic_load_explicit(&device->fast_locks, memory_order_relaxed);

	while (table) {
		struct vmm_fast_lock_table *previous = table->previous;

		vmm_assert(!table->bound);
		vmm_free(table->memory);
		vmm_free(table);
		table = previous;
	}
	atomic_store_explicit(&device->fast_locks, NULL, memory_order_relaxed);
}

/* ---- When a lock has nothing to do but to count. ---- */

/* The conditions that are fixed when the allocation is created. */
static bool is_plain(const struct vmm_allocation *allocation)
{
	return (allocation->flags & VMM_ALLOCATION_VISIBLE) &&
	       !(allocation->flags & allocation->adapter->model->slow_to_lock) &&
	       !allocation->shared; /* not shared: each instance has exactly one handle */
}

bool vmm_fast_lock_is_mapped(const struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;
	const struct vmm_memory *memory = allocation->adapter->memory;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	/* Cached: the fast path needs the caches as the previous lock left them (ALF-15). */
	if (vmm_unlikely(allocation->flags & VMM_ALLOCATION_CACHED) &&
	    (instance->cache != VMM_CACHE_CPU || !instance->handover))
		return false;
	if (!instance->view_current | (instance->retained != NULL) | (instance->partial != NULL) |
	    (instance->alternate != NULL) | (instance->range_count != 0) | instance->held |
	    instance->not_written)
		return false;
	if (instance->place == VMM_PLACEMENT_MEMORY)
		return memory->segment[instance->segment - 1].cpu_memory;
	return instance->place == VMM_PLACEMENT_APERTURE ||
	       (instance->place == VMM_PLACEMENT_SYSTEM && !memory->model->gpu_uses_locked);
}

/*
 * Returns true if a lock would wait for no packet. If the client synchronizes: no paging packet
 * that writes the instance is incomplete (LOCK-43). Otherwise: no packet uses the instance
 * (LOCK-05), and no submission is in flight whose references are not marked yet (vmm_sched_render).
 */
static bool is_idle(const struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;
	uint32_t t = adapter->paging_timeline;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (adapter->client_synchronizes)
		return vmm_timeline_done(
			adapter, t,
			atomic_load_explicit(&instance->written[t], memory_order_relaxed));
	return vmm_fast_lock_may_enable(adapter) && vmm_instance_is_idle(instance);
}

/* The outermost lock asked for no other address than that of the view (SWZ-14, SWZ-15). */
static bool has_plain_lock_flags(const struct vmm_instance *instance)
{
	return !(instance->lock_flags & (VMM_LOCK_ACQUIRE_APERTURE | VMM_LOCK_USE_ALTERNATE_VA));
}

static bool may_be_enabled(const struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return !vmm_lock_obstacles(instance) && vmm_fast_lock_is_mapped(instance) &&
	       has_plain_lock_flags(instance);
}

void vmm_fast_lock_bind(struct vmm_ref *ref)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (!ref->instance->fast_lock && is_plain(ref->allocation))
		(void)bind_entry(ref);
}

/* Stores a new version of the word, with BITS as its low part. */
static void publish(struct vmm_fast_lock *fast_lock, uint32_t bits)
{
	uint64_t word = atomic_load_explicit(&fast_lock->word, memory_order_relaxed);

	word = (word + VMM_FAST_LOCK_VERSION) & VMM_FAST_LOCK_VERSION_MASK;
	atomic_store_explicit(&fast_lock->word,
			      (uint64_t)fast_lock->ref->handle << VMM_FAST_LOCK_HANDLE_SHIFT |
				      word | bits,
			      memory_order_release);
}

/*
 * Other reasons to refuse a lock take precedence over busy (LOCK-08, LOCK-32), so none may exist.
 */
void vmm_fast_lock_note_busy(struct vmm_ref *ref, uint32_t timeline, uint64_t sequence)
{
	const struct vmm_instance *instance = ref->instance;
	struct vmm_fast_lock *fast_lock = instance->fast_lock;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (!fast_lock || vmm_lock_obstacles(instance) || sequence >> PACKET_SHIFT ||
	    (instance->lock_count && !has_plain_lock_flags(instance)))
		return;
	atomic_store_explicit(&fast_lock->packet, (uint64_t)timeline << PACKET_SHIFT | sequence,
			      memory_order_release);
	fast_lock->instance->has_fast_lock = fast_lock->busy = true;
	publish(fast_lock, VMM_FAST_LOCK_BUSY);
}

/*
 * The epoch is read before the device's state is checked, so a later change of state makes the word
 * stale (ADR 2). Where the client may not lock without the host, the word stays disabled: locks
 * come to the host as messages, and the next slow-path lock tries again.
 */
static void enable_client_word(struct vmm_fast_lock *fast_lock, uint32_t locks)
{
	struct vmm_lock_word *word = fast_lock->client_word;
	struct vmm_instance *instance = fast_lock->instance;
	const struct vmm_device *device = fast_lock->ref->device;
	struct vmm_os_viewer *viewer = device->process->viewer;
	uint64_t epoch = vmm_world_epoch(device->process->world);

	if (!vmm_device_may_bypass_host(device, VIDMM_EVENT_LOCK, VIDMM_EVENT_UNLOCK))
		return;
	atomic_store_explicit(&word->epoch, epoch, memory_order_relaxed);
	atomic_store_explicit(&word->address, (uint64_t)(uintptr_t)instance->view.address,
			      memory_order_relaxed);
	atomic_store_explicit(&word->views, viewer->ops->instructed(viewer), memory_order_relaxed);
	atomic_store_explicit(&word->device, device->handle, memory_order_relaxed);
	atomic_store_explicit(&word->wddm2, device->adapter->client_synchronizes,
			      memory_order_relaxed);
	atomic_store_explicit(&word->discard,
			      atomic_load_explicit(&fast_lock->discard, memory_order_relaxed),
			      memory_order_relaxed);
	/* On a link the store may have more; a list that names those goes to the host. (SWZ-30) */
	uint64_t pages = instance->allocation->size_bytes >> VMM_PAGE_SHIFT;
	atomic_store_explicit(&word->pages, (uint32_t)vmm_min_u64(pages, UINT32_MAX),
			      memory_order_relaxed);
	instance->has_fast_lock = fast_lock->enabled = fast_lock->out_of_process = true;
	publish(fast_lock, 0);
	atomic_store_explicit(&word->word,
			      atomic_load_explicit(&fast_lock->word, memory_order_relaxed) |
				      VMM_FAST_LOCK_ENABLED | locks,
			      memory_order_release);
}

/* While the word is enabled the allocation gets no further instance: rename.c disables it first. */
static enum vmm_lock_discard discard_of(const struct vmm_allocation *allocation)
{
	if (allocation->adapter->client_synchronizes || vmm_allocation_is_never_renamed(allocation))
		return VMM_LOCK_DISCARD_IGNORED;
	return allocation->instance_count == 1 ? VMM_LOCK_DISCARD_KEEPS : VMM_LOCK_DISCARD_RENAMES;
}

void vmm_fast_lock_enable_checked(struct vmm_ref *ref)
{
	struct vmm_instance *instance = ref->instance;
	struct vmm_fast_lock *fast_lock = instance->fast_lock;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	vmm_assert(!fast_lock->enabled && !fast_lock->busy);
	atomic_store_explicit(&fast_lock->address, instance->view.address, memory_order_relaxed);
	atomic_store_explicit(&fast_lock->size_bytes, instance->allocation->size_bytes,
			      memory_order_relaxed);
	atomic_store_explicit(&fast_lock->discard, discard_of(instance->allocation),
			      memory_order_relaxed);
	if (vmm_unlikely(fast_lock->client_word != NULL)) {
		enable_client_word(fast_lock, ref->lock_count);
		return;
	}
	instance->has_fast_lock = fast_lock->enabled = true;
	publish(fast_lock, VMM_FAST_LOCK_ENABLED | ref->lock_count);
}

void vmm_fast_lock_enable(struct vmm_ref *ref)
{
	const struct vmm_instance *instance = ref->instance;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	/* An unlock that work waits for takes the slow path, which says so. */
	if (vmm_unlikely(ref->allocation->adapter->memory->unlock_wait.pending))
		return;
	if (instance->fast_lock && ref->lock_count <= VMM_FAST_LOCK_LOCKS_MAX &&
	    may_be_enabled(instance) && is_idle(instance))
		vmm_fast_lock_enable_checked(ref);
}

void vmm_fast_lock_check(const struct vmm_instance *instance)
{
	const struct vmm_fast_lock *fast_lock = instance->fast_lock;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	vmm_assert(instance->has_fast_lock ==
		   (fast_lock && (fast_lock->enabled || fast_lock->busy)));
	if (!fast_lock)
		return;
	vmm_assert(fast_lock->instance == instance && fast_lock->ref->instance == instance);
	vmm_assert(is_plain(instance->allocation));
	vmm_assert(fast_lock == vmm_fast_lock_of(fast_lock->ref->device, fast_lock->ref->handle));
	vmm_assert(fast_lock->enabled ==
		   (fast_lock->out_of_process || (fast_lock->word & VMM_FAST_LOCK_ENABLED) != 0));
	vmm_assert(fast_lock->busy == ((fast_lock->word & VMM_FAST_LOCK_BUSY) != 0));
	vmm_assert(!fast_lock->busy || (!vmm_lock_obstacles(instance) && !fast_lock->enabled));
	vmm_assert(!fast_lock->enabled || may_be_enabled(instance));
	vmm_assert(!fast_lock->enabled || fast_lock->address == instance->view.address);
}
