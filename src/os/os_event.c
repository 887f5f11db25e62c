/* SPDX-License-Identifier: MIT */
/* Events of clients. The descriptor is the client's to close: what is to be set later is a duplicate. */
#include "os/os_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os_context.h"

/* Nothing but its name tells an eventfd from other things that can be written. */
static bool is_event(int fd)
{
	char path[32], name[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(path, name, sizeof(name) - 1);
	if (length < 0)
		return false;
	name[length] = 0;
	return !strcmp(name, "anon_inode:[eventfd]");
}

vmm_status vmm_os_event_open(uint64_t handle, int *event)
{
	if (handle > INT32_MAX)
		return VMM_INVALID_HANDLE;
	int own = fcntl((int)handle, F_DUPFD_CLOEXEC, 3);
	if (own < 0)
		return errno == EMFILE ? VMM_NO_MEMORY : VMM_INVALID_HANDLE;
	if (!is_event(own)) {
		close(own);
		return VMM_INVALID_HANDLE;
	}
	*event = own;
	return VMM_OK;
}

vmm_status vmm_os_event_create(int *event)
{
	int first = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int own = first < 0 ? -1 : fcntl(first, F_DUPFD_CLOEXEC, 3);

	if (first >= 0)
		close(first);
	*event = own;
	return own < 0 ? VMM_NO_MEMORY : VMM_OK;
}

/*
 * A write to an eventfd blocks while it is full, whether it may is a flag that its owner changes at will, and he fills it between a
 * look and the write. What never blocks is the kernel's own signal, which comes with the end of a piece of asynchronous I/O: here of
 * reading nothing from an empty file, which is over at once.
 */
enum { AT_ONCE = 64 };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static aio_context_t signals;
static int nothing = -1;

static void begin(void)
{
	nothing = memfd_create("nothing", MFD_CLOEXEC);
	if (nothing >= 0 && syscall(SYS_io_setup, AT_ONCE, &signals))
		signals = 0;
}

void vmm_os_event_begin(void)
{
#ifndef VMM_OS_TSAN /* which knows what a write orders */
	pthread_once(&once, begin);
#else
	(void)once, (void)begin;
#endif
}

/* False: this kernel does not do it, or not for a child of fork. */
static bool set_by_kernel(int event)
{
	char byte;
	struct iocb read_nothing = {.aio_lio_opcode = IOCB_CMD_PREAD,
				    .aio_fildes = (uint32_t)nothing,
				    .aio_buf = (uint64_t)(uintptr_t)&byte,
				    .aio_nbytes = sizeof(byte),
				    .aio_flags = IOCB_FLAG_RESFD,
				    .aio_resfd = (uint32_t)event},
		    *one = &read_nothing;
	struct io_event ended[AT_ONCE];
	bool set = false;

	/* What has ended makes room; whose it was matters to nobody. */
	for (uint32_t i = 0; signals && !set && i < AT_ONCE; i++) {
		set = syscall(SYS_io_submit, signals, 1L, &one) == 1;
		bool full = !set && errno == EAGAIN;
		(void)syscall(SYS_io_getevents, signals, 0L, (long)AT_ONCE, ended, NULL);
		if (!set && !full)
			break;
	}
	return set;
}

void vmm_os_event_set(int event)
{
	const uint64_t one = 1;
	struct pollfd room = {.fd = event, .events = POLLOUT};

	/* One that is full is set, and stays as it is, if it is seen in time. */
	if (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) && !set_by_kernel(event))
		(void)!write(event, &one, sizeof(one));
}

void vmm_os_event_close(int event)
{
	close(event);
}
