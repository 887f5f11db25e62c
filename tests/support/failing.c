/* SPDX-License-Identifier: MIT */
/*
 * A shared object that a test preloads into a program: one call of the program for memory or for a
 * descriptor fails, as when the system has none left. VIDMM_FAIL_AT is the number of that call,
 * counted from 1 after the program's libraries have started; 0, or no number: none fails. With
 * VIDMM_FAIL_COUNT the number of calls is written to that file when the program ends.
 *
 * Needs glibc, whose allocator has second names.
 */
#undef _FILE_OFFSET_BITS /* mmap and mmap64 are two names here */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static _Atomic unsigned long calls;
static unsigned long failing;
static _Atomic int started;
static char count_path[256];

/* Before main, and after the constructors of other libraries. */
__attribute__((constructor)) static void start(void)
{
	const char *at = getenv("VIDMM_FAIL_AT"), *path = getenv("VIDMM_FAIL_COUNT");

	failing = at ? strtoul(at, NULL, 10) : 0;
	if (path && strlen(path) < sizeof(count_path))
		strcpy(count_path, path);
	atomic_store(&started, 1);
}

__attribute__((destructor)) static void report(void)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%lu\n", atomic_load(&calls)), fd;

	atomic_store(&started, 0);
	if (!count_path[0])
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, count_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, text, (size_t)length) != length)
		abort();
	close(fd);
}

static int fails(int error)
{
	if (!atomic_load(&started) || atomic_fetch_add(&calls, 1) + 1 != failing)
		return 0;
	errno = error;
	return 1;
}

void *malloc(size_t bytes)
{
	return fails(ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails(ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	return bytes && fails(ENOMEM) ? NULL : __libc_realloc(memory, bytes);
}

int memfd_create(const char *name, unsigned flags)
{
	return fails(EMFILE) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int socket(int domain, int type, int protocol)
{
	return fails(EMFILE) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

void *mmap(void *address, size_t length, int access, int flags, int fd, off_t offset)
{
	return fails(ENOMEM)
		       ? MAP_FAILED
		       : (void *)syscall(SYS_mmap, address, length, access, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int access, int flags, int fd, off_t offset)
{
	return mmap(address, length, access, flags, fd, offset);
}
