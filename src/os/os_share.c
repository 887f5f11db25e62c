/* SPDX-License-Identifier: MIT */
/* Descriptors that clients pay for (os_share.h). */
#include "os/os_share.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

/* A table of payers in chunks: descriptors have small numbers. Others are charged to no client. */
enum { CHUNK = 1024, CHUNKS = 1024 };

/* Guarded by the lock, all members of shares too unless they are atomic or constant. */
struct vmm_os_budget {
	pthread_mutex_t lock;
	uint32_t total; /* constant */
	uint32_t left;  /* neither set aside nor borrowed */
	uint32_t references;
};

struct vmm_os_share {
	struct vmm_os_budget *budget;
	uint32_t set_aside, limit; /* set_aside 0: the client has gone */
	uint32_t used;
	bool ended;
	_Atomic uint32_t refused;
};

typedef _Atomic(struct vmm_os_share *) payer;

static payer first_chunk[CHUNK];
static _Atomic(payer *) chunks[CHUNKS] = {first_chunk};
static _Thread_local struct vmm_os_share *paying;

/* Without /proc: what a host has open at most before its first client. */
#define OPEN_UNKNOWN 64u

static uint32_t count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t count = 0;

	if (!folder)
		return OPEN_UNKNOWN;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count; /* two entries are no descriptors, one was the folder's */
}

uint32_t vmm_os_free_descriptors(void)
{
	struct rlimit files;
	uint32_t open = count_open();

	if (getrlimit(RLIMIT_NOFILE, &files))
		return 0;
	uint64_t all = vmm_min_u64(files.rlim_cur, (uint64_t)CHUNK * CHUNKS);
	return all > open ? (uint32_t)all - open : 0;
}

struct vmm_os_budget *vmm_os_budget_create(uint32_t descriptors)
{
	struct vmm_os_budget *budget = vmm_calloc(1, sizeof(*budget));

	if (!budget)
		return NULL;
	pthread_mutex_init(&budget->lock, NULL);
	budget->total = budget->left = descriptors;
	budget->references = 1;
	return budget;
}

/* Unlocks the budget, and frees the share or the budget if that was its last use. */
static void unlock_and_put(struct vmm_os_budget *budget, struct vmm_os_share *share)
{
	bool share_gone = share && share->ended && !share->used;

	budget->references -= share_gone || !share;
	bool gone = !budget->references;
	pthread_mutex_unlock(&budget->lock);
	if (share_gone)
		vmm_free(share);
	if (!gone)
		return;
	pthread_mutex_destroy(&budget->lock);
	vmm_free(budget);
}

void vmm_os_budget_end(struct vmm_os_budget *budget)
{
	if (!budget)
		return;
	pthread_mutex_lock(&budget->lock);
	unlock_and_put(budget, NULL);
}

vmm_status vmm_os_share_create(struct vmm_os_budget *budget, uint32_t set_aside, uint32_t limit,
			       struct vmm_os_share **result)
{
	struct vmm_os_share *share = vmm_calloc(1, sizeof(*share));

	if (!share)
		return VMM_NO_MEMORY;
	pthread_mutex_lock(&budget->lock);
	bool left = set_aside <= budget->left;
	if (left) {
		budget->left -= set_aside;
		budget->references++;
	}
	pthread_mutex_unlock(&budget->lock);
	if (!left) {
		vmm_free(share);
		return VMM_INSUFFICIENT_RESOURCES;
	}
	share->budget = budget;
	share->set_aside = set_aside;
	share->limit = limit > set_aside ? limit : set_aside;
	*result = share;
	return VMM_OK;
}

/* How many of `used` descriptors exceed the share. */
static uint32_t borrowed(const struct vmm_os_share *share, uint32_t used)
{
	return used > share->set_aside ? used - share->set_aside : 0;
}

void vmm_os_share_end(struct vmm_os_share *share)
{
	struct vmm_os_budget *budget = share->budget;

	pthread_mutex_lock(&budget->lock);
	budget->left += share->set_aside + borrowed(share, share->used) - share->used;
	share->set_aside = 0;
	share->ended = true;
	unlock_and_put(budget, share);
}

/*
 * Caller holds the lock. A quarter of the budget is not lent: it is for clients that are to come.
 */
static bool try_take(struct vmm_os_share *share, uint32_t count)
{
	struct vmm_os_budget *budget = share->budget;
	uint32_t more = borrowed(share, share->used + count) - borrowed(share, share->used);

	if (count > share->limit || share->used > share->limit - count ||
	    (more && budget->left < more + budget->total / 4)) {
		atomic_fetch_add(&share->refused, 1);
		return false;
	}
	budget->left -= more;
	share->used += count;
	return true;
}

bool vmm_os_share_take(struct vmm_os_share *share, uint32_t count)
{
	pthread_mutex_lock(&share->budget->lock);
	bool taken = try_take(share, count);
	pthread_mutex_unlock(&share->budget->lock);
	return taken;
}

void vmm_os_share_give(struct vmm_os_share *share, uint32_t count)
{
	struct vmm_os_budget *budget = share->budget;

	pthread_mutex_lock(&budget->lock);
	vmm_assert(count <= share->used);
	budget->left += borrowed(share, share->used) - borrowed(share, share->used - count);
	share->used -= count;
	unlock_and_put(budget, share);
}

uint32_t vmm_os_share_used(struct vmm_os_share *share)
{
	pthread_mutex_lock(&share->budget->lock);
	uint32_t used = share->used;
	pthread_mutex_unlock(&share->budget->lock);
	return used;
}

uint32_t vmm_os_share_refused(const struct vmm_os_share *share)
{
	return atomic_load(&share->refused);
}

struct vmm_os_share *vmm_os_share_pay(struct vmm_os_share *share)
{
	struct vmm_os_share *before = paying;

	paying = share;
	return before;
}

/* ---- who pays for which descriptor ---- */

/* Returns the entry of a descriptor. NULL: it has none, or there is no memory for it. */
static payer *entry_of(int fd, bool make)
{
	uint32_t at = (uint32_t)fd / CHUNK;

	if (fd < 0 || at >= CHUNKS)
		return NULL;
	payer *chunk = atomic_load(&chunks[at]);
	if (!chunk && make) {
		payer *fresh = vmm_calloc(CHUNK, sizeof(*fresh));

		if (fresh && !atomic_compare_exchange_strong(&chunks[at], &chunk, fresh))
			vmm_free(fresh);
		else
			chunk = fresh;
	}
	return chunk ? &chunk[(uint32_t)fd % CHUNK] : NULL;
}

int vmm_os_charged(int fd)
{
	if (fd < 0 || !paying)
		return fd;
	payer *entry = entry_of(fd, true);
	if (!entry || !vmm_os_share_take(paying, 1)) {
		close(fd);
		errno = EMFILE;
		return -1;
	}
	struct vmm_os_share *before = atomic_exchange(entry, paying);
	if (before) /* closed by code outside the library */
		vmm_os_share_give(before, 1);
	return fd;
}

void vmm_os_close_charged(int fd)
{
	payer *entry = entry_of(fd, false);
	/* Read before the descriptor is closed: then another thread may get its number. */
	struct vmm_os_share *share = entry ? atomic_exchange(entry, NULL) : NULL;

	close(fd);
	if (share)
		vmm_os_share_give(share, 1);
}
