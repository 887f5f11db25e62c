/* SPDX-License-Identifier: MIT */
/*
 * Events of clients (eventfds). The client may close its descriptor at any time, so the library
 * keeps a duplicate of an event that it will set later.
 */
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
#include "os/os_descriptor.h"
#include "os/os_share.h"
#include "os/os_system.h"

bool vmm_os_is_anonymous_file(int fd, const char *name)
{
	char path[32], target[32], expected[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(expected, sizeof(expected), "anon_inode:%s", name);
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = 0;
	return !strcmp(target, expected);
}

vmm_status vmm_os_event_open(uint64_t handle, int *event)
{
	if (handle > INT32_MAX)
		return VMM_INVALID_HANDLE;
	int own = vmm_os_charged(vmm_os_duplicate((int)handle));
	if (own < 0)
		return errno == EMFILE ? VMM_NO_MEMORY : VMM_INVALID_HANDLE;
	if (!vmm_os_is_anonymous_file(own, "[eventfd]")) {
		vmm_os_close_charged(own);
		return VMM_INVALID_HANDLE;
	}
	*event = own;
	return VMM_OK;
}

vmm_status vmm_os_event_create(int *event)
{
	int first = vmm_fails(VMM_FAIL_DESCRIPTOR) ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int own = first < 0 ? -1 : vmm_os_charged(vmm_os_duplicate(first));

	if (first >= 0)
		close(first);
	*event = own;
	return own < 0 ? VMM_NO_MEMORY : VMM_OK;
}

/*
 * Setting an eventfd without ever blocking. write(2) blocks while the counter is at its maximum.
 * O_NONBLOCK does not help: the client shares that flag, and may fill the counter between a poll
 * and the write. The kernel's own signal at the end of an asynchronous I/O request
 * (IOCB_FLAG_RESFD) never blocks. The request used here reads from an empty file, which completes
 * at once.
 */
enum { REQUESTS_MAX = 64 };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static aio_context_t aio_context;
static int empty_file = -1;

static void begin(void)
{
	empty_file = memfd_create("nothing", MFD_CLOEXEC);
	if (empty_file >= 0 && syscall(SYS_io_setup, REQUESTS_MAX, &aio_context))
		aio_context = 0;
}

void vmm_os_event_begin(void)
{
#ifndef VMM_OS_TSAN /* ThreadSanitizer knows what a write orders, but not this request */
	pthread_once(&once, begin);
#else
	(void)once, (void)begin;
#endif
}

/* Returns false if this kernel does not support it, or not for a child of fork. */
static bool set_by_kernel(int event)
{
	char byte;
	struct iocb read_nothing = {.aio_lio_opcode = IOCB_CMD_PREAD,
				    .aio_fildes = (uint32_t)empty_file,
				    .aio_buf = (uint64_t)(uintptr_t)&byte,
				    .aio_nbytes = sizeof(byte),
				    .aio_flags = IOCB_FLAG_RESFD,
				    .aio_resfd = (uint32_t)event},
		    *one = &read_nothing;
	struct io_event ended[REQUESTS_MAX];
	bool set = false;

	/* Completed requests of any thread are collected, to free entries of the context. */
	for (uint32_t i = 0; aio_context && !set && i < REQUESTS_MAX; i++) {
		set = syscall(SYS_io_submit, aio_context, 1L, &one) == 1;
		bool full = !set && errno == EAGAIN;
		(void)syscall(SYS_io_getevents, aio_context, 0L, (long)REQUESTS_MAX, ended, NULL);
		if (!set && !full)
			break;
	}
	return set;
}

void vmm_os_event_set(int event)
{
	const uint64_t one = 1;
	struct pollfd writable = {.fd = event, .events = POLLOUT};

	/* A full eventfd is set already. If poll sees that in time, the counter is left alone. */
	if (poll(&writable, 1, 0) == 1 && (writable.revents & POLLOUT) && !set_by_kernel(event))
		(void)!write(event, &one, sizeof(one));
}

void vmm_os_event_close(int event)
{
	vmm_os_close_charged(event);
}
