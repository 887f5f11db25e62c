/* SPDX-License-Identifier: MIT */
/*
 * Lock words of a client (base/lock_word.h, docs/adr/0002-locks-without-a-message.md): the shared
 * memory and which words are in use. src/memory writes their content.
 */
#include "serve/serve_private.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock_word.h"

static struct vmm_views *views_of(struct vmm_os_viewer *viewer)
{
	return vmm_container_of(viewer, struct vmm_views, viewer);
}

/*
 * The size is sealed, so that no access of the host faults. It is mapped here before the client has
 * the descriptor.
 */
static struct vmm_lock_words *make_table(int *result)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	const size_t size = vmm_align_up(sizeof(struct vmm_lock_words), VMM_PAGE_SIZE);
	int fd = memfd_create("lock words", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *table = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, (off_t)size) && !fcntl(fd, F_ADD_SEALS, seals))
		table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	*result = fd;
	return table;
}

void vmm_views_share_words_locked(struct vmm_views *views)
{
	const uint32_t size = (uint32_t)vmm_align_up(sizeof(struct vmm_lock_words), VMM_PAGE_SIZE);
	int fd;

	vmm_assert_held(&views->lock);
	if (views->words || views->config.epoch < 0)
		return;
	views->words_taken = vmm_calloc(VMM_LOCK_WORDS / 64, sizeof(uint64_t));
	views->words = views->words_taken ? make_table(&fd) : NULL;
	if (views->words) {
		vmm_views_send_words_locked(views, VMM_WORDS_EPOCH, VMM_PAGE_SIZE,
					    views->config.epoch);
		vmm_views_send_words_locked(views, VMM_WORDS_TABLE, size, fd);
		close(fd);
	}
	views->config.epoch = -1; /* if it failed, it is not tried again */
}

bool vmm_views_share_words(struct vmm_views *views)
{
	vmm_views_lock(views);
	vmm_views_share_words_locked(views);
	bool shared = views->words;
	vmm_views_unlock(views);
	return shared;
}

struct vmm_lock_word *vmm_views_take_word(struct vmm_os_viewer *viewer, uint32_t handle)
{
	struct vmm_views *views = views_of(viewer);
	uint32_t index = vmm_lock_word_index(handle);
	uint64_t bit = (uint64_t)1 << index % 64;
	struct vmm_lock_word *word = NULL;

	vmm_views_lock(views);
	vmm_views_share_words_locked(views);
	if (views->words && !(views->words_taken[index / 64] & bit)) {
		views->words_taken[index / 64] |= bit;
		word = &views->words->at[index];
	}
	vmm_views_unlock(views);
	return word;
}

void vmm_views_give_word_back(struct vmm_os_viewer *viewer, struct vmm_lock_word *word)
{
	struct vmm_views *views = views_of(viewer);
	uint32_t index = (uint32_t)(word - views->words->at);

	vmm_views_lock(views);
	views->words_taken[index / 64] &= ~((uint64_t)1 << index % 64);
	vmm_views_unlock(views);
}

void vmm_views_finish_words(struct vmm_views *views)
{
	vmm_free(views->words_taken);
	if (views->words)
		munmap(views->words, vmm_align_up(sizeof(struct vmm_lock_words), VMM_PAGE_SIZE));
}
