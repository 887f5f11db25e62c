/* SPDX-License-Identifier: MIT */
/* Events of clients. The descriptor is the client's to close: what is to be set later is a duplicate. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

void vmm_os_event_set(int event)
{
	const uint64_t one = 1;
	struct pollfd room = {.fd = event, .events = POLLOUT};

	/* A client may have counted it up to its limit: then a write would block, and who waits is awake anyway. */
	if (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT))
		(void)!write(event, &one, sizeof(one));
}

void vmm_os_event_close(int event)
{
	close(event);
}
