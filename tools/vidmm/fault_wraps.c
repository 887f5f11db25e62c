/* SPDX-License-Identifier: MIT */
/* The program is linked with --wrap for the functions here (fault.h). */
#undef _FILE_OFFSET_BITS /* mmap and mmap64 are two names here */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "fault.h"

/* Sets errno to what the system would for this kind. */
static bool fails_with(enum fault_kind kind, int error)
{
	if (!fault_fails(kind))
		return false;
	errno = error;
	return true;
}

/* ---- mappings ---- */

void *__real_mmap(void *at, size_t length, int access, int flags, int fd, off_t offset);
void *__real_mmap64(void *at, size_t length, int access, int flags, int fd, off64_t offset);
long __real_syscall(long number, ...);
void *__wrap_mmap(void *at, size_t length, int access, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t length, int access, int flags, int fd, off64_t offset);
long __wrap_syscall(long number, ...);

void *__wrap_mmap(void *at, size_t length, int access, int flags, int fd, off_t offset)
{
	return fails_with(FAULT_MAPPING, ENOMEM)
		       ? MAP_FAILED
		       : __real_mmap(at, length, access, flags, fd, offset);
}

void *__wrap_mmap64(void *at, size_t length, int access, int flags, int fd, off64_t offset)
{
	return fails_with(FAULT_MAPPING, ENOMEM)
		       ? MAP_FAILED
		       : __real_mmap64(at, length, access, flags, fd, offset);
}

/* Reads six arguments, as glibc does, however many the caller has passed. */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_mmap && fails_with(FAULT_MAPPING, ENOMEM))
		return -1;
	if (number == SYS_userfaultfd && fails_with(FAULT_DESCRIPTOR, EMFILE))
		return -1;
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- descriptors ---- */

int __real_memfd_create(const char *name, unsigned flags);
int __real_eventfd(unsigned count, int flags);
int __real_fcntl(int fd, int what, ...);
int __real_fcntl64(int fd, int what, ...);
int __real_open(const char *path, int how, ...);
int __real_open64(const char *path, int how, ...);
int __real_accept4(int fd, struct sockaddr *peer, socklen_t *length, int flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl64(int fd, int what, ...);
int __wrap_open(const char *path, int how, ...);
int __wrap_open64(const char *path, int how, ...);
int __wrap_accept4(int fd, struct sockaddr *peer, socklen_t *length, int flags);

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return fails_with(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_memfd_create(name, flags);
}

int __wrap_eventfd(unsigned count, int flags)
{
	return fails_with(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_eventfd(count, flags);
}

/* The argument of fcntl and open as a register: an int or a pointer, or none. */
#define ARGUMENT(last)                       \
	({                                   \
		va_list list;                \
		va_start(list, last);        \
		long a = va_arg(list, long); \
		va_end(list);                \
		a;                           \
	})

int __wrap_fcntl(int fd, int what, ...)
{
	long argument = ARGUMENT(what);

	if (what == F_DUPFD_CLOEXEC && fails_with(FAULT_DESCRIPTOR, EMFILE))
		return -1;
	return __real_fcntl(fd, what, argument);
}

int __wrap_fcntl64(int fd, int what, ...)
{
	long argument = ARGUMENT(what);

	if (what == F_DUPFD_CLOEXEC && fails_with(FAULT_DESCRIPTOR, EMFILE))
		return -1;
	return __real_fcntl64(fd, what, argument);
}

int __wrap_open(const char *path, int how, ...)
{
	long mode = ARGUMENT(how);

	return fails_with(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_open(path, how, mode);
}

int __wrap_open64(const char *path, int how, ...)
{
	long mode = ARGUMENT(how);

	return fails_with(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_open64(path, how, mode);
}

int __wrap_accept4(int fd, struct sockaddr *peer, socklen_t *length, int flags)
{
	return fails_with(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_accept4(fd, peer, length, flags);
}

/* ---- threads, sockets ---- */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
			  void *argument);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
			  void *argument);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
			  void *argument)
{
	return fault_fails(FAULT_THREAD) ? EAGAIN
					 : __real_pthread_create(thread, how, run, argument);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return fails_with(FAULT_SOCKET, ENOBUFS) ? -1 : __real_sendmsg(fd, message, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	return fails_with(FAULT_SOCKET, ENOMEM) ? -1 : __real_recvmsg(fd, message, flags);
}

/* The kernel allocates only to add a descriptor. */
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	return operation == EPOLL_CTL_ADD && fails_with(FAULT_SOCKET, ENOSPC)
		       ? -1
		       : __real_epoll_ctl(epoll, operation, fd, event);
}
