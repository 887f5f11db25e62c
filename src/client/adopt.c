/* SPDX-License-Identifier: MIT */
/*
 * Turns memory that the program already has into a memfd that the host can map (ALF-13). The memfd
 * is mapped over the same range, while other threads of the program run. Its size is sealed, so the
 * host can map it safely.
 *
 * While the content is copied, the range is write-protected by userfaultfd. A store sleeps in the
 * kernel until the memfd is mapped and then goes to the memfd, so no store is lost. The program
 * keeps the range when the allocation is destroyed.
 */
#include "client/client_private.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * A memfd that is mapped in the program's memory. It stays there until the program unmaps it,
 * whatever happens to allocations and connections. The list of them therefore belongs to the
 * process and not to a connection.
 */
struct adopted {
	struct vmm_list link;
	int fd;
	dev_t device;
	ino_t inode;
	bool seen; /* some part of it is still mapped */
};

struct vmm_lock_class vmm_client_adopt_class;
static struct vmm_client_mutex adopt_mutex = VMM_CLIENT_MUTEX;
static struct vmm_list all = {&all, &all};

/* clang does not analyze the bodies: a lock class has no state, the mutex has. */
void vmm_client_adopt_lock(void) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	vmm_client_mutex_lock(&adopt_mutex);
}

void vmm_client_adopt_unlock(void) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	vmm_client_mutex_unlock(&adopt_mutex);
}

/* What /proc/self/maps says about a range. */
struct extent {
	/* [next, end) has not been looked at yet */
	uint64_t next, end;
	/* some part of the range is not mapped for reading and writing */
	bool refused;
	/*
	 * private_memory: some part is private memory. shared: some part is a shared mapping that
	 * this file did not make.
	 */
	bool private_memory, shared;
	/* the range touches more than one of our memfds, or one at two offsets */
	bool mixed;
	const struct adopted *adopted; /* NULL: no part of the range is one of our memfds */
	/* offset in *adopted minus address, modulo 2^64 */
	uint64_t base;
};

struct mapping {
	uint64_t from, to, offset;
	char access[5];
	dev_t device;
	ino_t inode;
};

static bool parse(const char *line, struct mapping *m)
{
	unsigned major_number, minor_number;
	uint64_t inode;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &m->from, &m->to,
		   m->access, &m->offset, &major_number, &minor_number, &inode) != 7)
		return false;
	m->device = makedev(major_number, minor_number);
	m->inode = (ino_t)inode;
	return true;
}

static struct adopted *find(const struct mapping *m)
{
	struct vmm_list *pos;

	vmm_list_for_each (pos, &all) {
		struct adopted *a = vmm_container_of(pos, struct adopted, link);

		if (m->inode && a->inode == m->inode && a->device == m->device)
			return a;
	}
	return NULL;
}

static void add(struct extent *e, const struct mapping *m, const struct adopted *adopted)
{
	if (m->to <= e->next || e->next >= e->end)
		return;
	if (m->from > e->next || strncmp(m->access, "rw", 2) != 0) {
		e->refused = true;
		e->next = e->end;
		return;
	}
	if (adopted) {
		/*
		 * Modulo 2^64: the mapping may start at a higher address than its offset in the
		 * memfd.
		 */
		uint64_t base = m->offset - m->from;

		e->mixed |= e->adopted && (e->adopted != adopted || e->base != base);
		e->adopted = adopted;
		e->base = base;
	} else if (m->access[3] == 's') {
		e->shared = true;
	} else {
		e->private_memory = true;
	}
	e->next = m->to;
}

/*
 * Fills in *e from /proc/self/maps and marks the memfds that are still mapped. Returns false if the
 * file cannot be opened.
 */
static bool read_maps(struct extent *e)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[256];
	bool begins = true;

	if (!maps)
		return false;
	while (fgets(line, sizeof(line), maps)) {
		struct mapping m;

		if (begins && parse(line, &m)) {
			struct adopted *adopted = find(&m);

			if (adopted)
				adopted->seen = true;
			add(e, &m, adopted);
		}
		/* the rest of a line longer than the buffer is skipped */
		begins = strchr(line, '\n') != NULL;
	}
	fclose(maps);
	e->refused |= e->next < e->end;
	return true;
}

/* Forgets memfds that the program has unmapped. */
static void forget_unmapped(void)
{
	struct vmm_list *pos = all.next;

	while (pos != &all) {
		struct adopted *a = vmm_container_of(pos, struct adopted, link);

		pos = pos->next;
		if (!a->seen) {
			vmm_list_remove(&a->link);
			close(a->fd);
			vmm_free(a);
			continue;
		}
		a->seen = false;
	}
}

/* ---- write protection ---- */

static bool freeze(int userfault, uint64_t address, uint64_t length)
{
	struct uffdio_register request = {.range = {.start = address, .len = length},
					  .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect protect = {.range = request.range,
					      .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	int error = EAGAIN;

	if (userfault < 0 || ioctl(userfault, UFFDIO_REGISTER, &request))
		return false;
	while (error == EAGAIN) /* other threads are changing mappings: try again */
		error = ioctl(userfault, UFFDIO_WRITEPROTECT, &protect) ? errno : 0;
	if (!error)
		return true;
	(void)ioctl(userfault, UFFDIO_UNREGISTER, &request.range);
	return false;
}

static void wake(int userfault, uint64_t address, uint64_t length)
{
	struct uffdio_range range = {.start = address, .len = length};

	if (userfault >= 0)
		(void)ioctl(userfault, UFFDIO_WAKE, &range);
}

static void thaw(int userfault, uint64_t address, uint64_t length)
{
	struct uffdio_writeprotect protect = {.range = {.start = address, .len = length}};

	if (userfault < 0)
		return;
	(void)ioctl(userfault, UFFDIO_WRITEPROTECT, &protect);
	(void)ioctl(userfault, UFFDIO_UNREGISTER, &protect.range);
	wake(userfault, address, length);
}

/*
 * Returns whether the program has no threads but the `threads` that are inside the library now.
 * Then no thread can store to the range during the copy.
 */
static bool is_single_threaded(uint32_t threads)
{
	DIR *tasks = opendir("/proc/self/task");
	uint32_t count = 0;

	if (!tasks)
		return false;
	for (const struct dirent *e = readdir(tasks); e; e = readdir(tasks))
		count += e->d_name[0] != '.';
	closedir(tasks);
	return count <= threads;
}

/* ---- replacing the memory ---- */

static struct adopted *create(uint64_t length)
{
	struct adopted *a = vmm_calloc(1, sizeof(*a));
	struct stat info;

	if (!a)
		return NULL;
	a->fd = memfd_create("vidmm existing memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (a->fd >= 0 && !ftruncate(a->fd, (off_t)length) &&
	    !fcntl(a->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) &&
	    !fstat(a->fd, &info)) {
		a->device = info.st_dev;
		a->inode = info.st_ino;
		return a;
	}
	if (a->fd >= 0)
		close(a->fd);
	vmm_free(a);
	return NULL;
}

/*
 * Copies with pwrite(2), which returns EFAULT where a load would raise SIGSEGV. The system call is
 * made directly because ThreadSanitizer does not know that stores of other threads are blocked.
 */
static int copy(int fd, const char *from, uint64_t length)
{
	uint64_t done = 0;

	while (done < length) {
		ssize_t written =
			syscall(SYS_pwrite64, fd, from + done, length - done, (off_t)done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? errno : ENOSPC;
		done += (uint64_t)written;
	}
	return 0;
}

static vmm_status replace_memory(const struct adopted *a, int userfault, uint32_t threads,
				 uint64_t address, uint64_t length)
{
	char *memory = (char *)(uintptr_t)address;

	/* A page that is not present cannot be write-protected. */
	if (madvise(memory, length, MADV_POPULATE_WRITE) && errno != EINVAL)
		return errno == ENOMEM ? VMM_NO_MEMORY : VMM_INVALID_PARAMETER;
	bool frozen = freeze(userfault, address, length);
	if (!frozen && !is_single_threaded(threads))
		return VMM_NOT_SUPPORTED;
	int error = copy(a->fd, memory, length);
	/*
	 * mmap replaces the range atomically. A reader sees the old or the new pages, and their
	 * content is the same.
	 */
	if (!error &&
	    !vmm_client_map_over(memory, length, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0))
		error = errno;
	if (!error)
		wake(userfault, address, length);
	else if (frozen)
		thaw(userfault, address, length);
	return !error ? VMM_OK : error == EFAULT ? VMM_INVALID_PARAMETER : VMM_NO_MEMORY;
}

static vmm_status adopt_locked(int userfault, uint32_t threads, uint64_t address, uint64_t length,
			       int *fd, uint64_t *offset) VMM_REQUIRES(vmm_client_adopt_class)
{
	struct extent e = {.next = address, .end = address + length};
	uint64_t here = (uint64_t)(uintptr_t)&e;

	vmm_assert_owned(&adopt_mutex.owner);
	/* the copy itself would store to write-protected pages */
	if (here >= address && here < e.end)
		return VMM_NOT_SUPPORTED;
	if (!read_maps(&e))
		return VMM_NO_MEMORY;
	forget_unmapped();
	if (e.refused)
		return VMM_INVALID_PARAMETER;
	if (e.shared || e.mixed || (e.adopted && e.private_memory))
		return VMM_NOT_SUPPORTED;
	if (e.adopted) {
		*fd = e.adopted->fd;
		*offset = e.base + address;
		return VMM_OK;
	}
	struct adopted *a = create(length);
	if (!a)
		return VMM_NO_MEMORY;
	vmm_status status = replace_memory(a, userfault, threads, address, length);
	if (!vmm_ok(status)) {
		close(a->fd);
		vmm_free(a);
		return status;
	}
	vmm_list_push_back(&all, &a->link);
	*fd = a->fd;
	*offset = 0;
	return VMM_OK;
}

vmm_status vmm_client_adopt(int userfault, uint32_t threads, uint64_t address, uint64_t length,
			    int *fd, uint64_t *offset)
{
	int found;

	if (!address || !length || (address | length) % VMM_PAGE_SIZE || address + length < address)
		return VMM_INVALID_PARAMETER;
	vmm_client_adopt_lock();
	vmm_status status = adopt_locked(userfault, threads, address, length, &found, offset);
	if (vmm_ok(status))
		*fd = fcntl(found, F_DUPFD_CLOEXEC, 3);
	vmm_client_adopt_unlock();
	return !vmm_ok(status) || *fd >= 0 ? status : VMM_NO_MEMORY;
}
