/* SPDX-License-Identifier: MIT */
/*
 * Stores through a frozen CPU view on sim. Its coroutines share one system thread, so a store
 * cannot block: it would block the thread that is to end the freeze. But while the mover waits for
 * the GPU, other coroutines run and store. Such a store reaches the old memory, perhaps after the
 * content was copied from there, and is repeated in the new memory when that is mapped. For the CPU
 * this is the same as a store that blocks.
 *
 * What was stored is what differs from a copy made at the freeze. Other bytes are not carried
 * over: a miniport that moves the content wrongly is seen to do so.
 */
#include "os/os_stores.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct watched {
	struct vmm_list link;
	char *address;
	uint64_t size_bytes;  /* as far as it was mapped at the freeze */
	uint64_t moved_bytes; /* to new memory */
	char *stored; /* the bytes before the new memory was mapped; behind those of the freeze */
	char frozen[];
};

static struct watched *find(const struct vmm_list *views, const char *address)
{
	struct vmm_list *link;

	vmm_list_for_each (link, views) {
		struct watched *w = vmm_container_of(link, struct watched, link);

		if (address >= w->address && address < w->address + w->size_bytes)
			return w;
	}
	return NULL;
}

/* Copies as much of the view as is mapped, without a fault where it is not. */
static uint64_t read_mapped(char *to, char *address, uint64_t size_bytes)
{
	const struct iovec local = {.iov_base = to, .iov_len = size_bytes};
	const struct iovec remote = {.iov_base = address, .iov_len = size_bytes};
	ssize_t done = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	return done < 0 ? 0 : (uint64_t)done;
}

vmm_status vmm_os_stores_watch(struct vmm_list *views, char *address, uint64_t size_bytes)
{
	struct watched *w;

	vmm_os_stores_forget(views, address);
	w = vmm_calloc(1, sizeof(*w) + 2 * size_bytes);
	if (!w)
		return VMM_NO_MEMORY;
	w->address = address;
	w->size_bytes = read_mapped(w->frozen, address, size_bytes);
	w->stored = w->frozen + size_bytes;
	if (!w->size_bytes) {
		vmm_free(w);
		return VMM_OK;
	}
	vmm_list_push_back(views, &w->link);
	return VMM_OK;
}

void vmm_os_stores_take(const struct vmm_list *views, const char *address, uint64_t length)
{
	struct watched *w = find(views, address);

	if (w)
		memcpy(w->stored + (address - w->address), address,
		       vmm_min_u64(length, w->size_bytes - (uint64_t)(address - w->address)));
}

void vmm_os_stores_repeat(struct vmm_list *views, char *address, uint64_t length)
{
	struct watched *w = find(views, address);

	if (!w)
		return;
	uint64_t from = (uint64_t)(address - w->address);
	uint64_t end = from + vmm_min_u64(length, w->size_bytes - from);

	for (uint64_t i = from; i < end; i++)
		if (w->stored[i] != w->frozen[i])
			w->address[i] = w->stored[i];
	w->moved_bytes += end - from;
	if (w->moved_bytes >= w->size_bytes)
		vmm_os_stores_forget(views, address);
}

void vmm_os_stores_forget(struct vmm_list *views, const char *address)
{
	struct watched *w = find(views, address);

	if (!w)
		return;
	vmm_list_remove(&w->link);
	vmm_free(w);
}
