/* SPDX-License-Identifier: MIT */
/*
 * Memory of the program's own that the host is to use (ALF-13): its pages become a memfd under the hands of its threads. The size of
 * that is sealed, so that the host can map it. While the content is copied the range is write-protected through userfaultfd: a store sleeps in
 * the kernel until the memfd is there, and lands in it; none is lost. The program keeps the range when the allocation is gone.
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
 * A memfd that lies somewhere in the program's memory: there it stays, whatever becomes of allocations and connections, until the
 * program unmaps it. So the list is the program's.
 */
struct adopted {
	struct vmm_list link;
	int fd;
	dev_t device;
	ino_t inode;
	bool seen; /* something of it is mapped still */
};

pthread_mutex_t vmm_client_adopt_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vmm_list all = {&all, &all};

/* What the list of mappings says of a range. */
struct extent {
	uint64_t next, end; /* known up to next */
	bool refused;       /* not all of it is memory to read and write */
	bool fresh, shared; /* some of it is private memory; is shared already, but not by us */
	bool torn;          /* more than one piece of ours */
	const struct adopted *piece; /* ours; NULL: none */
	uint64_t base;               /* where in that the range would begin */
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

static void add(struct extent *e, const struct mapping *m, const struct adopted *piece)
{
	if (m->to <= e->next || e->next >= e->end)
		return;
	if (m->from > e->next || strncmp(m->access, "rw", 2) != 0) {
		e->refused = true;
		e->next = e->end;
		return;
	}
	if (piece) {
		/* Modulo 2^64: the piece may begin before the range. */
		uint64_t base = m->offset - m->from;

		e->torn |= e->piece && (e->piece != piece || e->base != base);
		e->piece = piece;
		e->base = base;
	} else if (m->access[3] == 's') {
		e->shared = true;
	} else {
		e->fresh = true;
	}
	e->next = m->to;
}

/* False: it is not to be found out. Notes which of ours are there at all. */
static bool look(struct extent *e)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[256];
	bool begins = true;

	if (!maps)
		return false;
	while (fgets(line, sizeof(line), maps)) {
		struct mapping m;

		if (begins && parse(line, &m)) {
			struct adopted *piece = find(&m);

			if (piece)
				piece->seen = true;
			add(e, &m, piece);
		}
		begins = strchr(line, '\n') != NULL; /* a long path's rest is no line */
	}
	fclose(maps);
	e->refused |= e->next < e->end;
	return true;
}

/* What the program has unmapped by now. */
static void sweep(void)
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

/* ---- freezing ---- */

static bool freeze(int userfault, uint64_t address, uint64_t length)
{
	struct uffdio_register request = {.range = {.start = address, .len = length},
					  .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect protect = {.range = request.range,
					      .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	int error = EAGAIN;

	if (userfault < 0 || ioctl(userfault, UFFDIO_REGISTER, &request))
		return false;
	while (error == EAGAIN) /* mappings are being moved just now */
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

/* Nobody stores when nobody else is there: `threads` of this program are inside the library just now. */
static bool is_alone(uint32_t threads)
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

/* ---- the exchange ---- */

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
 * By the kernel, which says so where a touch would be a fault. The bare system call: ThreadSanitizer does not know that the
 * others' stores are held up.
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

static vmm_status exchange(const struct adopted *a, int userfault, uint32_t threads,
			   uint64_t address, uint64_t length)
{
	char *memory = (char *)(uintptr_t)address;

	/* Also because a page that is not there cannot be write-protected. */
	if (madvise(memory, length, MADV_POPULATE_WRITE) && errno != EINVAL)
		return errno == ENOMEM ? VMM_NO_MEMORY : VMM_INVALID_PARAMETER;
	bool frozen = freeze(userfault, address, length);
	if (!frozen && !is_alone(threads))
		return VMM_NOT_SUPPORTED;
	int error = copy(a->fd, memory, length);
	/* In one step: who reads meanwhile reads the old or the new, which are the same. */
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
			       int *fd, uint64_t *offset)
{
	struct extent e = {.next = address, .end = address + length};
	uint64_t here = (uint64_t)(uintptr_t)&e;

	if (here >= address && here < e.end) /* who copies would store into what is frozen */
		return VMM_NOT_SUPPORTED;
	if (!look(&e))
		return VMM_NO_MEMORY;
	sweep();
	if (e.refused)
		return VMM_INVALID_PARAMETER;
	if (e.shared || e.torn || (e.piece && e.fresh))
		return VMM_NOT_SUPPORTED;
	if (e.piece) {
		*fd = e.piece->fd;
		*offset = e.base + address;
		return VMM_OK;
	}
	struct adopted *a = create(length);
	if (!a)
		return VMM_NO_MEMORY;
	vmm_status status = exchange(a, userfault, threads, address, length);
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
	pthread_mutex_lock(&vmm_client_adopt_lock);
	vmm_status status = adopt_locked(userfault, threads, address, length, &found, offset);
	if (vmm_ok(status))
		*fd = fcntl(found, F_DUPFD_CLOEXEC, 3);
	pthread_mutex_unlock(&vmm_client_adopt_lock);
	return !vmm_ok(status) || *fd >= 0 ? status : VMM_NO_MEMORY;
}
