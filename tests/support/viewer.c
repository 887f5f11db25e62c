/* SPDX-License-Identifier: MIT */
#include "support/viewer.h"
#include "support/served.h"
#include "support/test.h"
#include "client/client_private.h"
#include "host/host_private.h"
#include "os/os_mapping.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REFUSED = -2, UNTRIED = -1, OBJECTS = 1 << 16 };

/*
 * The memory objects that were mapped for writing, and their processes, by inode: inode numbers of
 * memfds are not reused.
 */
static struct object {
	uint64_t inode;
	uint32_t owner;
} objects[OBJECTS];
static uint32_t object_count, viewer_count;
static pthread_mutex_t objects_lock = PTHREAD_MUTEX_INITIALIZER;

static struct object *slot_of(uint64_t inode)
{
	uint64_t at = inode;

	while (objects[at % OBJECTS].inode && objects[at % OBJECTS].inode != inode)
		at++;
	return &objects[at % OBJECTS];
}

/* A memory object given to one process must never be given to another. */
static void claim(const struct test_viewer *viewer, uint64_t inode)
{
	pthread_mutex_lock(&objects_lock);
	if (object_count == OBJECTS / 2) {
		memset(objects, 0, sizeof(objects));
		object_count = 0;
	}
	struct object *o = slot_of(inode);
	object_count += !o->inode;
	vmm_assert(!o->inode || o->owner == viewer->id);
	*o = (struct object){.inode = inode, .owner = viewer->id};
	pthread_mutex_unlock(&objects_lock);
}

static struct test_viewer *of(struct vmm_os_viewer *viewer)
{
	return vmm_container_of(viewer, struct test_viewer, viewer);
}

/* Returns the range that contains these addresses. The lock is held. */
static struct test_viewer_range *find(struct test_viewer *viewer, const char *address,
				      uint64_t length)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &viewer->ranges) {
		struct test_viewer_range *r =
			vmm_container_of(link, struct test_viewer_range, link);

		if (address >= r->address && address + length <= r->address + r->size_bytes)
			return r;
	}
	return NULL;
}

static vmm_status reserve(struct vmm_os_viewer *v, uint64_t size_bytes, char **address)
{
	struct test_viewer *viewer = of(v);
	struct test_viewer_range *range = calloc(1, sizeof(*range));
	char *at = mmap(NULL, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);

	vmm_assert(range);
	if (at == MAP_FAILED) {
		free(range);
		return VMM_NO_MEMORY;
	}
	range->address = at;
	range->size_bytes = size_bytes;
	pthread_mutex_lock(&viewer->lock);
	vmm_list_push_back(&viewer->ranges, &range->link);
	viewer->live++;
	pthread_mutex_unlock(&viewer->lock);
	*address = at;
	return VMM_OK;
}

static void wake(const struct test_viewer *viewer, const char *address, uint64_t length)
{
	struct uffdio_range range = {.start = (uint64_t)(uintptr_t)address, .len = length};

	if (viewer->userfault_fd >= 0)
		vmm_assert(ioctl(viewer->userfault_fd, UFFDIO_WAKE, &range) == 0);
}

/*
 * A descriptor that a client may get: its size is sealed, and it is opened read-only unless the
 * client may write.
 */
static void check(int fd, uint64_t length, uint64_t offset, bool writable)
{
	struct stat info;
	int seals = fcntl(fd, F_GET_SEALS);

	vmm_assert(seals >= 0 && (seals & F_SEAL_SHRINK));
	vmm_assert(fstat(fd, &info) == 0 && offset <= (uint64_t)info.st_size &&
		   length <= (uint64_t)info.st_size - offset);
	/*
	 * It may be opened again for writing if every process that has it may signal the fence
	 * there (docs/adr/0003).
	 */
	vmm_assert(writable || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
}

static vmm_status map(struct vmm_os_viewer *v, char *address, uint64_t length, int fd,
		      uint64_t offset, bool writable)
{
	struct test_viewer *viewer = of(v);
	int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	struct stat info;

	check(fd, length, offset, writable);
	pthread_mutex_lock(&viewer->lock);
	struct test_viewer_range *range = find(viewer, address, length);
	vmm_assert(range);
	vmm_assert(fstat(fd, &info) == 0);
	if (writable)
		claim(viewer, info.st_ino);
	vmm_os_stores_take(&viewer->watched, address, length);
	/* The bare system call, as in os_memory.c: other threads use the range. */
	char *at = (char *)syscall(SYS_mmap, address, length, access, MAP_SHARED | MAP_FIXED, fd,
				   (off_t)offset);
	vmm_assert(at == address);
	vmm_os_stores_repeat(&viewer->watched, address, length);
	wake(viewer, address, length);
	range->frozen &= length != range->size_bytes;
	viewer->maps++;
	if (viewer->last_fd >= 0)
		close(viewer->last_fd);
	viewer->last_fd = dup(fd);
	viewer->last_offset = offset;
	viewer->last_length = length;
	viewer->last_writable = writable;
	viewer->last_address = address;
	pthread_mutex_unlock(&viewer->lock);
	return VMM_OK;
}

static void unmap(struct vmm_os_viewer *v, char *address, uint64_t length)
{
	struct test_viewer *viewer = of(v);

	pthread_mutex_lock(&viewer->lock);
	struct test_viewer_range *range = find(viewer, address, length);
	vmm_assert(range);
	vmm_assert(mmap(address, length, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == address);
	vmm_os_stores_forget(&viewer->watched, address);
	wake(viewer, address, length);
	range->frozen = false;
	pthread_mutex_unlock(&viewer->lock);
}

static void release(struct vmm_os_viewer *v, char *address, uint64_t size_bytes)
{
	struct test_viewer *viewer = of(v);

	pthread_mutex_lock(&viewer->lock);
	struct test_viewer_range *range = find(viewer, address, size_bytes);
	vmm_assert(range && range->address == address && range->size_bytes == size_bytes);
	vmm_list_remove(&range->link);
	viewer->live--;
	vmm_os_stores_forget(&viewer->watched, address);
	munmap(address, size_bytes);
	pthread_mutex_unlock(&viewer->lock);
	free(range);
}

static int userfault(struct test_viewer *viewer)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};

	if (viewer->userfault_fd != UNTRIED)
		return viewer->userfault_fd;
	viewer->userfault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (viewer->userfault_fd >= 0 && ioctl(viewer->userfault_fd, UFFDIO_API, &api)) {
		close(viewer->userfault_fd);
		viewer->userfault_fd = REFUSED;
	}
	return viewer->userfault_fd < 0 ? (viewer->userfault_fd = REFUSED) : viewer->userfault_fd;
}

static vmm_status freeze(struct vmm_os_viewer *v, char *address, uint64_t length)
{
	struct test_viewer *viewer = of(v);
	struct uffdio_register request = {
		.range = {.start = (uint64_t)(uintptr_t)address, .len = length},
		.mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect protect = {.range = request.range,
					      .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	vmm_status status = VMM_NOT_SUPPORTED;

	if (viewer->virtual_time)
		return vmm_os_stores_watch(&viewer->watched, address, length);
	pthread_mutex_lock(&viewer->lock);
	struct test_viewer_range *range = find(viewer, address, length);
	vmm_assert(range);
	if (!viewer->cannot_freeze && userfault(viewer) >= 0) {
		vmm_assert(ioctl(viewer->userfault_fd, UFFDIO_REGISTER, &request) == 0);
		vmm_assert(ioctl(viewer->userfault_fd, UFFDIO_WRITEPROTECT, &protect) == 0);
		range->frozen = true;
		viewer->freezes++;
		status = VMM_OK;
	}
	pthread_mutex_unlock(&viewer->lock);
	return status;
}

static void thaw(struct vmm_os_viewer *v, char *address, uint64_t length)
{
	struct test_viewer *viewer = of(v);
	struct uffdio_range at = {.start = (uint64_t)(uintptr_t)address, .len = length};
	struct uffdio_writeprotect protect = {.range = at};

	pthread_mutex_lock(&viewer->lock);
	struct test_viewer_range *range = find(viewer, address, length);
	vmm_assert(range);
	vmm_os_stores_forget(&viewer->watched, address);
	if (range->frozen) {
		(void)!ioctl(viewer->userfault_fd, UFFDIO_WRITEPROTECT, &protect);
		vmm_assert(ioctl(viewer->userfault_fd, UFFDIO_UNREGISTER, &at) == 0);
		wake(viewer, address, length);
	}
	range->frozen = false;
	pthread_mutex_unlock(&viewer->lock);
}

static vmm_status adopt(struct vmm_os_viewer *v, char *address, uint64_t length, int *fd,
			uint64_t *offset)
{
	struct test_viewer *viewer = of(v);
	if (viewer->nt && vmm_nt_overlaps_kernel(viewer->nt, address, length))
		return VMM_INVALID_PARAMETER;
	pthread_mutex_lock(&viewer->lock);
	vmm_status status = vmm_client_adopt(viewer->cannot_freeze ? -1 : userfault(viewer), 1,
					     (uint64_t)(uintptr_t)address, length, fd, offset);
	pthread_mutex_unlock(&viewer->lock);
	return status;
}

static const struct vmm_os_viewer_ops ops = {.reserve = reserve,
					     .map = map,
					     .unmap = unmap,
					     .release = release,
					     .freeze = freeze,
					     .thaw = thaw,
					     .adopt = adopt};

void test_viewer_begin(struct test_viewer *viewer, bool virtual_time)
{
	*viewer = (struct test_viewer){.viewer = {.ops = &ops},
				       .virtual_time = virtual_time,
				       .userfault_fd = UNTRIED,
				       .last_fd = -1};
	pthread_mutex_init(&viewer->lock, NULL);
	vmm_list_init(&viewer->ranges);
	vmm_list_init(&viewer->watched);
	pthread_mutex_lock(&objects_lock);
	viewer->id = ++viewer_count;
	pthread_mutex_unlock(&objects_lock);
}

void test_viewer_end(struct test_viewer *viewer)
{
	vmm_assert(viewer->live == 0 && vmm_list_empty(&viewer->ranges));
	if (viewer->userfault_fd >= 0)
		close(viewer->userfault_fd);
	if (viewer->last_fd >= 0)
		close(viewer->last_fd);
	pthread_mutex_destroy(&viewer->lock);
}

vidmm_status __real_vidmm_process_open(struct vidmm_host *host, const char *name,
				       struct vidmm_process **process);
vidmm_status __wrap_vidmm_process_open(struct vidmm_host *host, const char *name,
				       struct vidmm_process **process);
void __real_vidmm_process_close(struct vidmm_process *process);
void __wrap_vidmm_process_close(struct vidmm_process *process);

void client_open_out_of_process(struct client *client, struct test_viewer *viewer,
				struct client_device *device)
{
	test_viewer_begin(viewer, client->kind == VIDMM_HOST_SIM);
	viewer->nt = client->host->world.nt;
	*device = (struct client_device){.client = client};
	assert_int_equal(vmm_host_process_open_client(client->host, "out-of-process",
						      &viewer->viewer, &device->process),
			 0);
	assert_int_equal(vidmm_device_create(device->process, client->adapter, &device->device), 0);
	device->cb = vidmm_device_callbacks(device->device);
	device->handle = vidmm_device_handle(device->device);
}

void client_close_out_of_process(struct test_viewer *viewer, struct client_device *device)
{
	vidmm_device_destroy(device->device);
	__real_vidmm_process_close(device->process);
	test_viewer_end(viewer);
}

bool is_out_of_process(const struct vidmm_process *process)
{
	return vidmm_core_process(process)->viewer != NULL;
}

void abandon_process(struct vidmm_process *process)
{
	vmm_process_abandon(process);
}

/* ---- every process of a test ---- */

static bool stays_in_the_host;

void open_in_process(bool stay)
{
	stays_in_the_host = stay;
}

vidmm_status __wrap_vidmm_process_open(struct vidmm_host *host, const char *name,
				       struct vidmm_process **process)
{
	struct test_viewer *viewer;

	if (served_wanted() && host && process && !stays_in_the_host)
		return served_open(host, name, process);
	if (!getenv("VIDMM_OUT_OF_PROCESS") || !host || !process || stays_in_the_host)
		return __real_vidmm_process_open(host, name, process);
	viewer = calloc(1, sizeof(*viewer));
	vmm_assert(viewer);
	test_viewer_begin(viewer, vmm_os_kind(host->world.os) == VMM_OS_SIM);
	viewer->nt = host->world.nt;
	vmm_status status = vmm_host_process_open_client(host, name, &viewer->viewer, process);
	if (!vmm_ok(status)) {
		test_viewer_end(viewer);
		free(viewer);
	}
	return status;
}

void __wrap_vidmm_process_close(struct vidmm_process *process)
{
	if (served_wanted() && served_close(process))
		return;
	struct vmm_os_viewer *viewer = process ? vidmm_core_process(process)->viewer : NULL;

	__real_vidmm_process_close(process);
	if (!viewer || viewer->ops != &ops || !getenv("VIDMM_OUT_OF_PROCESS"))
		return;
	test_viewer_end(of(viewer));
	free(of(viewer));
}
