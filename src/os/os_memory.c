/* SPDX-License-Identifier: MIT */
/*
 * Memory objects, on both back ends: a memfd with one permanent mapping. Each costs a file
 * descriptor, so there is one per segment or per large chunk of backing stores, never one per
 * allocation.
 */
#include "os/os_internal.h"
#include "os/os_mapping.h"
#include "os/os_share.h"
#include "os/os_system.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

char *vmm_os_reserve_addresses(uint64_t size_bytes)
{
	uint64_t slack = size_bytes >= VMM_OS_HUGE_PAGE ? VMM_OS_HUGE_PAGE - VMM_PAGE_SIZE : 0;
	uint64_t total;
	char *mapping, *aligned;

	if (vmm_add_overflows(size_bytes, slack, &total))
		return NULL;
	mapping = vmm_os_mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (mapping == MAP_FAILED)
		return NULL;
	if (!slack)
		return mapping;
	aligned = (char *)vmm_align_up((uint64_t)(uintptr_t)mapping, VMM_OS_HUGE_PAGE);
	if (aligned > mapping)
		vmm_os_munmap(mapping, (size_t)(aligned - mapping));
	if (aligned + size_bytes < mapping + total)
		vmm_os_munmap(aligned + size_bytes,
			      (size_t)(mapping + total - aligned) - size_bytes);
	return aligned;
}

void vmm_os_munmap(void *address, size_t length)
{
	if (!vmm_fails(VMM_FAIL_UNMAPPING) && munmap(address, length) == 0)
		return;
	/* Taking the access away needs less memory. */
	(void)mprotect(address, length, PROT_NONE);
	fprintf(stderr,
		"vidmm: the kernel has no memory to remove the mapping of %zu bytes at %p: the "
		"addresses stay in use until the process ends (Q-481)\n",
		length, address);
}

char *vmm_os_map_over(char *address, uint64_t length, int fd, uint64_t offset, uint32_t how)
{
	int flags = MAP_SHARED | MAP_FIXED | (how & VMM_OS_MAP_POPULATE ? MAP_POPULATE : 0);
	int access = how & VMM_OS_MAP_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;

	/*
	 * The system call itself, not mmap(): ThreadSanitizer takes mmap for a store to the whole
	 * range, while other threads go on using the range here.
	 */
	char *mapping = vmm_fails(VMM_FAIL_MAPPING)
				? MAP_FAILED
				: (char *)syscall(SYS_mmap, address, length, access, flags, fd,
						  (off_t)offset);

	if (mapping == MAP_FAILED)
		return NULL;
	/*
	 * A hint: it fails where the kernel has no transparent huge pages; 4 KiB pages are correct,
	 * too.
	 */
	if (length >= VMM_OS_HUGE_PAGE)
		(void)madvise(mapping, length, MADV_HUGEPAGE);
	return mapping;
}

/*
 * The size of the largest file that this process may have (RLIMIT_FSIZE). To ask for a larger one
 * would raise SIGXFSZ, which ends the process.
 */
static uint64_t largest_file(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return INT64_MAX;
	return vmm_min_u64(limit.rlim_cur, INT64_MAX);
}

vmm_status vmm_os_open_object(const char *name, uint64_t size_bytes, int *fd)
{
	int object = vmm_os_charged(vmm_os_memfd(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));

	if (object < 0)
		return VMM_NO_MEMORY;
	if (size_bytes > largest_file() || ftruncate(object, (off_t)size_bytes)) {
		vmm_os_close_charged(object);
		return VMM_NO_MEMORY;
	}
	*fd = object;
	return VMM_OK;
}

/* The caller's descriptor becomes the memory object's, unless this fails. */
static vmm_status map_object(struct vmm_os *os, const char *name, int fd, uint64_t at,
			     uint64_t size_bytes, struct vmm_os_memory *memory)
{
	struct vmm_os_memory_record *record;
	char *base = vmm_os_reserve_addresses(size_bytes);

	if (!base)
		return VMM_NO_MEMORY;
	if (!vmm_os_map_over(base, size_bytes, fd, at, 0))
		goto out_base;
	record = vmm_calloc(1, sizeof(*record) + size_bytes / VMM_OS_HUGE_PAGE);
	if (!record)
		goto out_base;
	snprintf(record->name, sizeof(record->name), "%s", name);
	vmm_list_init(&record->client_objects);
	record->size_bytes = size_bytes;
	record->chunks = size_bytes / VMM_OS_HUGE_PAGE;
	vmm_os_registry_lock(os);
	vmm_list_push_back(&os->memories, &record->link);
	vmm_os_registry_unlock(os);
	*memory = (struct vmm_os_memory){.os = os,
					 .record = record,
					 .base = base,
					 .size_bytes = size_bytes,
					 .fd = fd,
					 .at = at};
	return VMM_OK;

out_base:
	vmm_os_munmap(base, size_bytes);
	return VMM_NO_MEMORY;
}

/* The memory object takes over the descriptor; on failure it is closed. */
static vmm_status map_file(struct vmm_os *os, const char *name, int fd, uint64_t size_bytes,
			   struct vmm_os_memory *memory)
{
	vmm_status status = map_object(os, name, fd, 0, size_bytes, memory);

	if (!vmm_ok(status))
		vmm_os_close_charged(fd);
	return status;
}

vmm_status vmm_os_memory_create(struct vmm_os *os, const char *name, uint64_t size_bytes,
				struct vmm_os_memory *memory)
{
	vmm_status status;
	int fd;

	if (!size_bytes || size_bytes % VMM_PAGE_SIZE)
		return VMM_INVALID_PARAMETER;
	status = vmm_os_open_object(name, size_bytes, &fd);
	return vmm_ok(status) ? map_file(os, name, fd, size_bytes, memory) : status;
}

vmm_status vmm_os_pool_create(const char *name, uint64_t *size_bytes, int *pool)
{
	*size_bytes = vmm_min_u64(*size_bytes, largest_file() & ~(VMM_OS_HUGE_PAGE - 1));
	vmm_status status = vmm_os_open_object(name, *size_bytes, pool);

	if (!vmm_ok(status) || vmm_os_seal_size(*pool))
		return status;
	vmm_os_close_charged(*pool);
	return VMM_NO_MEMORY;
}

static bool punch(int fd, uint64_t at, uint64_t size_bytes)
{
	return !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
			  (off_t)size_bytes);
}

vmm_status vmm_os_memory_create_in(struct vmm_os *os, const char *name, int pool, uint64_t at,
				   uint64_t size_bytes, struct vmm_os_memory *memory)
{
	vmm_assert(size_bytes && (at | size_bytes) % VMM_PAGE_SIZE == 0);
	/* A client that kept a mapping of the part may have written there since. */
	if (!punch(pool, at, size_bytes))
		return VMM_NO_MEMORY;
	vmm_status status = map_object(os, name, pool, at, size_bytes, memory);

	if (vmm_ok(status))
		memory->record->pooled = true;
	return status;
}

/*
 * Returns whether the descriptor is a regular file, open for reading and writing, of at least that
 * size.
 */
static bool has_memory(int fd, uint64_t size_bytes)
{
	struct stat info;
	int mode = fcntl(fd, F_GETFL);

	return mode >= 0 && (mode & O_ACCMODE) == O_RDWR && !fstat(fd, &info) &&
	       S_ISREG(info.st_mode) && (uint64_t)info.st_size >= size_bytes;
}

vmm_status vmm_os_memory_open(struct vmm_os *os, int fd, uint64_t size_bytes,
			      struct vmm_os_memory *memory)
{
	if (!size_bytes || size_bytes % VMM_PAGE_SIZE)
		return VMM_INVALID_PARAMETER;
	int own = fd < 0 ? -1 : vmm_os_charged(vmm_os_duplicate(fd));

	if (own < 0)
		return fd >= 0 && errno == EMFILE ? VMM_NO_MEMORY : VMM_INVALID_HANDLE;
	if (!has_memory(own, size_bytes)) {
		vmm_os_close_charged(own);
		return VMM_INVALID_PARAMETER;
	}
	return map_file(os, "section", own, size_bytes, memory);
}

/*
 * Returns whether the descriptor is a memfd sealed against shrinking. One with explicit huge pages
 * (hugetlbfs) is refused: the pool of those may be empty when a page is first touched.
 */
static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs system;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstatfs(fd, &system) &&
	       system.f_type == TMPFS_MAGIC;
}

vmm_status vmm_os_memory_open_sealed(struct vmm_os *os, int fd, uint64_t size_bytes,
				     struct vmm_os_memory *memory)
{
	if (fd >= 0 && fcntl(fd, F_GETFD) >= 0 && !is_sealed(fd))
		return VMM_INVALID_PARAMETER;
	vmm_status status = vmm_os_memory_open(os, fd, size_bytes, memory);

	if (vmm_ok(status))
		memory->record->shareable = memory->record->foreign = true;
	return status;
}

void vmm_os_descriptor_close(int fd)
{
	vmm_os_close_charged(fd);
}

void vmm_os_memory_set_shareable(const struct vmm_os_memory *memory)
{
	memory->record->shareable = true;
}

void vmm_os_memory_set_owner(const struct vmm_os_memory *memory, uint64_t owner)
{
	memory->record->owner = owner;
}

bool vmm_os_seal_size(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

void vmm_os_memory_destroy(struct vmm_os_memory *memory)
{
	struct vmm_os *os = memory->os;

	if (!memory->base)
		return;
	vmm_os_registry_lock(os);
	vmm_list_remove(&memory->record->link);
	vmm_os_registry_unlock(os);
	vmm_os_munmap(memory->base, memory->size_bytes);
	vmm_os_client_object_finish(memory->record);
	if (!memory->record->pooled)
		vmm_os_close_charged(memory->fd);
	vmm_free(memory->record);
	*memory = (struct vmm_os_memory){.fd = -1};
}

void vmm_os_memory_discard(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length)
{
	vmm_assert(offset % VMM_PAGE_SIZE == 0 && length % VMM_PAGE_SIZE == 0);
	vmm_assert(offset <= memory->size_bytes && length <= memory->size_bytes - offset);
	if (!length)
		return;
	vmm_assert(punch(memory->fd, memory->at + offset, length));
	vmm_os_memory_forget(memory, offset, length);
}
