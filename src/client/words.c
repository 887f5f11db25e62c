/* SPDX-License-Identifier: MIT */
/*
 * Locks and unlocks without a message (base/lock_word.h, docs/adr/0002-locks-without-a-message.md):
 * the fast path of an out-of-process client. It covers only calls that would take the host's fast
 * path. All others return to the caller, which sends the call to the host.
 */
#include "client/client_private.h"

#include <sys/mman.h>

static struct vmm_lock_words *words_of(struct vidmm_connection *connection)
{
	return vmm_client_lost(connection)
		       ? NULL /* in a child of fork() the words are the parent's */
		       : atomic_load_explicit(&connection->words, memory_order_acquire);
}

/*
 * WDDM 1.x: returns whether all listed pages exist (LOCK-18). *first: the first of them. Another
 * thread may change the list, so each element is read once.
 */
static bool are_pages(const struct vmm_lock_word *place, const struct vmm_client_lock *lock,
		      uint32_t *first)
{
	const volatile uint32_t *listed = lock->pages;
	uint32_t pages = atomic_load_explicit(&place->pages, memory_order_relaxed);

	if (!lock->page_count || lock->page_count > VMM_LOCK_PAGES_MAX || !listed)
		return false;
	*first = listed[0];
	bool exist = *first < pages;
	for (uint32_t i = 1; exist && i < lock->page_count; i++)
		exist = listed[i] < pages;
	return exist;
}

/*
 * Returns whether the flags and the list of pages are those of a lock that only has to be counted.
 * *first: the page whose address it returns.
 */
static bool is_plain(const struct vmm_lock_word *place, bool wddm2,
		     const struct vmm_client_lock *lock, uint32_t *first)
{
	*first = 0;
	if (lock->lock2)
		return wddm2 && !lock->flags;
	if (!vmm_lock_flags_are_plain(wddm2, lock->flags, false))
		return false;
	if (wddm2 ||
	    (!lock->page_count && !lock->pages)) /* from 2.0 on no list matters (LOCK-51) */
		return true;
	return !(lock->flags & (VMM_LOCK_ENTIRE | VMM_LOCK_DISCARD)) &&
	       are_pages(place, lock, first);
}

/*
 * Returns whether the enabled word allows this lock: it only has to be counted. *address: what the
 * lock then returns, if the word is still the same.
 */
static bool may_lock(struct vidmm_connection *connection, const struct vmm_lock_word *place,
		     uint64_t word, const struct vmm_client_lock *lock, uint64_t *address)
{
	bool wddm2 = atomic_load_explicit(&place->wddm2, memory_order_relaxed);
	uint32_t discard = atomic_load_explicit(&place->discard, memory_order_relaxed), first;

	if (!is_plain(place, wddm2, lock, &first) ||
	    (!lock->lock2 && (lock->flags & VMM_LOCK_DISCARD) &&
	     !vmm_lock_discards_nothing(discard, lock->flags, word)))
		return false;
	*address = atomic_load_explicit(&place->address, memory_order_relaxed) +
		   ((uint64_t)first << VMM_PAGE_SHIFT);
	return atomic_load_explicit(&place->device, memory_order_relaxed) == lock->device &&
	       vmm_client_is_epoch(connection,
				   atomic_load_explicit(&place->epoch, memory_order_relaxed)) &&
	       atomic_load_explicit(&place->views, memory_order_relaxed) <=
		       atomic_load_explicit(&connection->views, memory_order_acquire);
}

void *vmm_client_lock(struct vidmm_connection *connection, const struct vmm_client_lock *lock)
{
	struct vmm_lock_words *words = words_of(connection);

	if (!words)
		return NULL;
	struct vmm_lock_word *place = &words->at[vmm_lock_word_index(lock->handle)];
	uint64_t word = atomic_load_explicit(&place->word, memory_order_acquire);
	while (vmm_lock_word_is_enabled_for(word, lock->handle) &&
	       (word & VMM_LOCK_WORD_LOCKS_MAX) != VMM_LOCK_WORD_LOCKS_MAX) {
		/* The address belongs to this version of the word, or the swap below fails. */
		uint64_t address;

		if (!may_lock(connection, place, word, lock, &address))
			return NULL;
		if (atomic_compare_exchange_weak_explicit(&place->word, &word, word + 1,
							  memory_order_acq_rel,
							  memory_order_acquire))
			return (void *)(uintptr_t)address;
	}
	return NULL;
}

bool vmm_client_unlock(struct vidmm_connection *connection, uint32_t device, uint32_t handle)
{
	struct vmm_lock_words *words = words_of(connection);

	if (!words)
		return false;
	struct vmm_lock_word *place = &words->at[vmm_lock_word_index(handle)];
	uint64_t word = atomic_load_explicit(&place->word, memory_order_acquire);
	while (vmm_lock_word_is_enabled_for(word, handle) && (word & VMM_LOCK_WORD_LOCKS_MAX)) {
		if (atomic_load_explicit(&place->device, memory_order_relaxed) != device ||
		    !vmm_client_is_epoch(connection,
					 atomic_load_explicit(&place->epoch, memory_order_relaxed)))
			return false;
		if (atomic_compare_exchange_weak_explicit(&place->word, &word, word - 1,
							  memory_order_acq_rel,
							  memory_order_acquire))
			return true;
	}
	return false;
}

/* ---- the shared memory ---- */

static size_t table_bytes(void)
{
	return vmm_align_up(sizeof(struct vmm_lock_words), VMM_PAGE_SIZE);
}

bool vmm_client_map_words(struct vidmm_connection *connection,
			  const struct vmm_message_words *message, int fd)
{
	bool table = message->what == VMM_WORDS_TABLE;
	size_t length = table ? table_bytes() : VMM_PAGE_SIZE;

	vmm_assert_owned(&connection->view_lock.owner);
	/* The epoch comes first, then the table, each once. */
	if ((!table && message->what != VMM_WORDS_EPOCH) || message->length != length ||
	    table != (connection->epoch != NULL) || connection->words)
		return false;
	void *memory =
		mmap(NULL, length, table ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return false;
	if (table)
		atomic_store_explicit(&connection->words, memory, memory_order_release);
	else
		connection->epoch = memory;
	return true;
}

void vmm_client_publish_executed(struct vidmm_connection *connection, uint64_t number)
{
	struct vmm_lock_words *words =
		atomic_load_explicit(&connection->words, memory_order_relaxed);

	if (words)
		atomic_store(&words->executed, number);
}

void vmm_client_unmap_words(struct vidmm_connection *connection)
{
	struct vmm_lock_words *words = atomic_load(&connection->words);

	if (words)
		munmap(words, table_bytes());
	if (connection->epoch)
		munmap((void *)(uintptr_t)connection->epoch, VMM_PAGE_SIZE);
	atomic_store(&connection->words, NULL);
	connection->epoch = NULL;
}
