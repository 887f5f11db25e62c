/* SPDX-License-Identifier: MIT */
/*
 * CPU views: reserved address ranges over which memory objects are mapped, and freezing them so
 * that content can move while threads write to it (PAG-16).
 *
 * Freezing is write protection by userfaultfd: a store then sleeps in the kernel's fault handler.
 * No thread reads the fault messages. The mover maps the new memory over the range and wakes all
 * sleepers; their stores start again and reach the new memory. The caller serializes map, freeze
 * and thaw of one view.
 *
 * A view in another address space is carried out by its viewer. The viewer gets descriptors of
 * objects that its process may see as a whole.
 */
#include "os/os_internal.h"
#include "os/os_mapping.h"
#include "os/os_system.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/*
 * Mapping a page along with its neighbors costs a tenth of a first-touch fault. Larger views are
 * not populated: perhaps only a few of their pages are needed, and mapped pages count as memory of
 * the process.
 */
#define POPULATE_BYTES_MAX ((uint64_t)1 << 20)

static vmm_status reserve(struct vmm_os_viewer *viewer, uint64_t size_bytes, char **address)
{
	if (vmm_unlikely(viewer != NULL))
		return viewer->ops->reserve(viewer, size_bytes, address);
	*address = vmm_os_reserve_addresses(size_bytes);
	return *address ? VMM_OK : VMM_NO_MEMORY;
}

vmm_status vmm_os_view_reserve_for(struct vmm_os *os, struct vmm_os_viewer *viewer,
				   uint64_t size_bytes, struct vmm_os_view *view)
{
	char *address;

	if (!size_bytes || size_bytes % VMM_PAGE_SIZE)
		return VMM_INVALID_PARAMETER;
	vmm_status status = reserve(viewer, size_bytes, &address);
	if (!vmm_ok(status))
		return status;
	atomic_fetch_add_explicit(&os->view_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&os->view_bytes, size_bytes, memory_order_relaxed);
	*view = (struct vmm_os_view){
		.os = os, .viewer = viewer, .address = address, .size_bytes = size_bytes};
	return VMM_OK;
}

vmm_status vmm_os_view_reserve(struct vmm_os *os, uint64_t size_bytes, struct vmm_os_view *view)
{
	return vmm_os_view_reserve_for(os, NULL, size_bytes, view);
}

static struct uffdio_range range_of(const struct vmm_os_view *view, uint64_t offset,
				    uint64_t length)
{
	return (struct uffdio_range){.start = (uint64_t)(uintptr_t)view->address + offset,
				     .len = length};
}

static void wake_blocked_writers(const struct vmm_os_view *view, uint64_t offset, uint64_t length)
{
	struct uffdio_range range = range_of(view, offset, length);

	vmm_assert(ioctl(view->os->userfault_fd, UFFDIO_WAKE, &range) == 0);
}

static vmm_status map_for_viewer(const struct vmm_os_view *view, uint64_t view_offset,
				 const struct vmm_os_memory *memory, uint64_t memory_offset,
				 uint64_t length)
{
	struct vmm_os_viewer *viewer = view->viewer;
	uint64_t owner = vmm_os_viewer_owner(viewer), done = 0;
	vmm_status status = VMM_OK;

	while (done < length && vmm_ok(status)) {
		int fd;
		uint64_t at, part = vmm_os_find_visible(memory, memory_offset + done, length - done,
							owner, &fd, &at);

		if (fd == memory->fd && !memory->record->foreign)
			(void)vmm_os_seal_size(fd); /* fails only if it is sealed already */
		status = viewer->ops->map(viewer, view->address + view_offset + done, part, fd, at,
					  true);
		done += part;
	}
	return status;
}

/* Maps over the range, in which other coroutines may have stored while it was frozen. */
static bool map_on_sim(const struct vmm_os_view *view, uint64_t view_offset,
		       const struct vmm_os_memory *memory, uint64_t memory_offset, uint64_t length,
		       uint32_t how)
{
	struct vmm_list *watched = &view->os->sim.watched_views;
	char *at = view->address + view_offset;

	if (vmm_unlikely(view->frozen))
		vmm_os_stores_take(watched, at, length);
	if (!vmm_os_map_over(at, length, memory->fd, memory->at + memory_offset, how))
		return false;
	if (vmm_unlikely(view->frozen))
		vmm_os_stores_repeat(watched, at, length);
	return true;
}

static bool map_here(const struct vmm_os_view *view, uint64_t view_offset,
		     const struct vmm_os_memory *memory, uint64_t memory_offset, uint64_t length)
{
	uint32_t how = length <= POPULATE_BYTES_MAX ? VMM_OS_MAP_POPULATE : 0;

	if (view->os->kind == VMM_OS_SIM)
		return map_on_sim(view, view_offset, memory, memory_offset, length, how);
	if (!vmm_os_map_over(view->address + view_offset, length, memory->fd,
			     memory->at + memory_offset, how))
		return false;
	if (view->frozen)
		wake_blocked_writers(view, view_offset, length);
	return true;
}

vmm_status vmm_os_view_map(struct vmm_os_view *view, uint64_t view_offset,
			   const struct vmm_os_memory *memory, uint64_t memory_offset,
			   uint64_t length)
{
	vmm_status status = VMM_OK;

	vmm_assert(view_offset % VMM_PAGE_SIZE == 0 && memory_offset % VMM_PAGE_SIZE == 0);
	vmm_assert(length && length % VMM_PAGE_SIZE == 0);
	vmm_assert(view_offset <= view->size_bytes && length <= view->size_bytes - view_offset);
	vmm_assert(memory_offset <= memory->size_bytes &&
		   length <= memory->size_bytes - memory_offset);

	if (vmm_unlikely(view->viewer != NULL))
		status = map_for_viewer(view, view_offset, memory, memory_offset, length);
	else if (!map_here(view, view_offset, memory, memory_offset, length))
		return VMM_NO_MEMORY;
	if (vmm_ok(status) && view->frozen)
		view->frozen = length != view->size_bytes;
	return status;
}

static vmm_status open_again(const struct vmm_os_memory *memory, int how, int *result)
{
	char name[32];

	vmm_assert(memory->record->shareable && !memory->record->foreign);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", memory->fd);
	*result = vmm_os_open(name, how);
	return *result < 0 ? VMM_NO_MEMORY : VMM_OK;
}

/*
 * Seals the object: its size and, unless it is offered for writing, against new writable mappings
 * (F_SEAL_FUTURE_WRITE). This process's own mapping is older and stays writable.
 */
static bool seal(const struct vmm_os_memory *memory)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW;

	if (atomic_load(&memory->record->offered))
		return fcntl(memory->fd, F_ADD_SEALS, size) == 0;
	return (fcntl(memory->fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) ||
	       (fcntl(memory->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0 &&
		vmm_os_seal_size(memory->fd));
}

vmm_status vmm_os_memory_read_only(const struct vmm_os_memory *memory, int *result)
{
	int fd;
	vmm_status status = open_again(memory, O_RDONLY, &fd);

	if (!vmm_ok(status))
		return status;
	if (!seal(memory)) {
		close(fd);
		return VMM_NOT_SUPPORTED;
	}
	*result = fd;
	return VMM_OK;
}

void vmm_os_memory_offer(const struct vmm_os_memory *memory)
{
	atomic_store(&memory->record->offered, true);
}

void vmm_os_memory_withdraw(const struct vmm_os_memory *memory)
{
	atomic_store(&memory->record->offered, false);
}

vmm_status vmm_os_memory_writable(const struct vmm_os_memory *memory, int *result)
{
	/*
	 * The size is sealed before any process has the descriptor, or accesses of this process
	 * could fault.
	 */
	if (!atomic_load(&memory->record->offered) || !seal(memory))
		return VMM_NOT_SUPPORTED;
	return open_again(memory, O_RDWR, result);
}

static vmm_status map_read_only_for_viewer(const struct vmm_os_view *view,
					   const struct vmm_os_memory *memory)
{
	struct vmm_os_viewer *viewer = view->viewer;
	int fd;
	vmm_status status = vmm_os_memory_read_only(memory, &fd);

	if (!vmm_ok(status))
		return status;
	status = viewer->ops->map(viewer, view->address, view->size_bytes, fd, 0, false);
	close(fd);
	return status;
}

vmm_status vmm_os_view_map_read_only(struct vmm_os_view *view, const struct vmm_os_memory *memory)
{
	vmm_assert(!view->frozen && view->size_bytes == memory->size_bytes);
	if (vmm_unlikely(view->viewer != NULL))
		return map_read_only_for_viewer(view, memory);
	return vmm_os_map_over(view->address, view->size_bytes, memory->fd, memory->at,
			       VMM_OS_MAP_POPULATE | VMM_OS_MAP_READ_ONLY)
		       ? VMM_OK
		       : VMM_NO_MEMORY;
}

void vmm_os_view_unmap(struct vmm_os_view *view)
{
	if (vmm_unlikely(view->viewer != NULL)) {
		view->viewer->ops->unmap(view->viewer, view->address, view->size_bytes);
		view->frozen = false;
		return;
	}
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	char *mapping = vmm_fails(VMM_FAIL_UNMAPPING)
				? MAP_FAILED
				: mmap(view->address, view->size_bytes, PROT_NONE, flags, -1, 0);

	/*
	 * The kernel has no memory for the change. Taking the access away needs less. If that
	 * fails, too, the view shows its last memory until it is mapped or released.
	 */
	if (mapping != view->address && mprotect(view->address, view->size_bytes, PROT_NONE))
		fprintf(stderr,
			"vidmm: the kernel has no memory to unmap %llu bytes at %p: they stay "
			"mapped (Q-481)\n",
			(unsigned long long)view->size_bytes, (void *)view->address);
	if (view->os->kind == VMM_OS_SIM)
		vmm_os_stores_forget(&view->os->sim.watched_views, view->address);
	else if (view->frozen)
		wake_blocked_writers(view, 0, view->size_bytes);
	view->frozen = false;
}

void vmm_os_view_release(struct vmm_os_view *view)
{
	if (!view->address)
		return;
	vmm_os_view_thaw(view);
	if (vmm_unlikely(view->viewer != NULL))
		view->viewer->ops->release(view->viewer, view->address, view->size_bytes);
	else
		vmm_os_munmap(view->address, view->size_bytes);
	atomic_fetch_sub_explicit(&view->os->view_count, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&view->os->view_bytes, view->size_bytes, memory_order_relaxed);
	*view = (struct vmm_os_view){0};
}

/*
 * Stores that the kernel makes for a thread (read(2) into a locked allocation) block as well where
 * the process may catch kernel faults. Elsewhere such a system call fails with EFAULT while the
 * view is frozen.
 */
static int open_userfaultfd(void)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
	int fd = vmm_fails(VMM_FAIL_DESCRIPTOR) ? -1 : (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return USERFAULT_REFUSED;
	if (ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return USERFAULT_REFUSED;
	}
	return fd;
}

static int userfaultfd_of(struct vmm_os *os)
{
	int fd;

	vmm_os_registry_lock(os);
	if (os->userfault_fd == USERFAULT_UNTRIED)
		os->userfault_fd = open_userfaultfd();
	fd = os->userfault_fd;
	vmm_os_registry_unlock(os);
	return fd;
}

static int write_protect(int fd, struct uffdio_range range, uint64_t mode)
{
	struct uffdio_writeprotect request = {.range = range, .mode = mode};
	int error;

	/* EAGAIN: another thread of the process is forking or changing mappings at this moment. */
	do
		error = ioctl(fd, UFFDIO_WRITEPROTECT, &request) ? errno : 0;
	while (error == EAGAIN);
	return error;
}

static vmm_status freeze_on_sim(struct vmm_os_view *view)
{
	vmm_status status =
		vmm_os_stores_watch(&view->os->sim.watched_views, view->address, view->size_bytes);

	view->frozen = vmm_ok(status);
	return status;
}

vmm_status vmm_os_view_freeze(struct vmm_os_view *view)
{
	struct uffdio_register request = {.range = range_of(view, 0, view->size_bytes),
					  .mode = UFFDIO_REGISTER_MODE_WP};
	int fd;

	if (vmm_unlikely(view->viewer != NULL)) {
		vmm_status status =
			view->viewer->ops->freeze(view->viewer, view->address, view->size_bytes);

		view->frozen = vmm_ok(status);
		return status;
	}
	if (view->os->kind == VMM_OS_SIM)
		return freeze_on_sim(view);
	fd = userfaultfd_of(view->os);
	if (fd < 0)
		return VMM_NOT_SUPPORTED;
	if (ioctl(fd, UFFDIO_REGISTER, &request))
		return errno == ENOMEM ? VMM_NO_MEMORY : VMM_NOT_SUPPORTED;
	view->frozen = true;
	if (write_protect(fd, request.range, UFFDIO_WRITEPROTECT_MODE_WP)) {
		vmm_os_view_thaw(view);
		return VMM_NO_MEMORY;
	}
	return VMM_OK;
}

void vmm_os_view_thaw(struct vmm_os_view *view)
{
	struct uffdio_range range = range_of(view, 0, view->size_bytes);
	int fd = view->os->userfault_fd;

	if (!view->frozen)
		return;
	if (vmm_unlikely(view->viewer != NULL)) {
		view->viewer->ops->thaw(view->viewer, view->address, view->size_bytes);
		view->frozen = false;
		return;
	}
	if (view->os->kind == VMM_OS_SIM) {
		vmm_os_stores_forget(&view->os->sim.watched_views, view->address);
		view->frozen = false;
		return;
	}
	/*
	 * Fails at the first part that was mapped anew since the freeze, which is unprotected.
	 * Unregistering covers the rest.
	 */
	(void)write_protect(fd, range, 0);
	vmm_assert(ioctl(fd, UFFDIO_UNREGISTER, &range) == 0);
	wake_blocked_writers(view, 0, view->size_bytes);
	view->frozen = false;
}
