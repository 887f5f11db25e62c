/* SPDX-License-Identifier: MIT */
/*
 * Tokens: descriptors that represent an object of the library, passed on like any other descriptor.
 * A token is an anonymous file, identified by its inode. Each handle is an open file description of
 * that file with a shared flock. The kernel drops the lock with the last descriptor of that
 * description, in whatever process. So an attempt at an exclusive lock tells whether any handle is
 * left.
 */
#include "os/os.h"
#include "os/os_share.h"
#include "os/os_system.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0 means "no handle" to programs (SHR-35, SYN-09a); 1 and 2 are standard streams */
enum { FIRST_HANDLE = 3 };

static bool read_identity(int fd, struct vmm_os_token *token)
{
	struct stat info;

	if (fstat(fd, &info))
		return false;
	token->device = (uint64_t)info.st_dev;
	token->inode = (uint64_t)info.st_ino;
	return true;
}

vmm_status vmm_os_token_create(const char *name, struct vmm_os_token *token)
{
	token->fd = vmm_os_charged(vmm_os_memfd(name, MFD_CLOEXEC));
	if (token->fd < 0)
		return VMM_NO_MEMORY;
	if (read_identity(token->fd, token))
		return VMM_OK;
	vmm_os_token_destroy(token);
	return VMM_NO_MEMORY;
}

void vmm_os_token_destroy(struct vmm_os_token *token)
{
	vmm_os_close_charged(token->fd);
	token->fd = -1;
}

/* A descriptor above the standard three, closed by exec. (HND-06, SHR-35, SYN-09a) */
vmm_status vmm_os_token_open_handle(const struct vmm_os_token *token, uint64_t *handle)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", token->fd);
	int opened = vmm_os_open(path, O_RDONLY);
	int fd = opened < 0 ? -1 : vmm_os_duplicate(opened);
	if (opened >= 0)
		close(opened);
	if (fd < 0)
		return VMM_NO_MEMORY;
	if (flock(fd, LOCK_SH)) {
		close(fd);
		return VMM_NO_MEMORY;
	}
	*handle = (uint64_t)fd;
	return VMM_OK;
}

bool vmm_os_token_is_open(const struct vmm_os_token *token)
{
	if (flock(token->fd, LOCK_EX | LOCK_NB))
		return true;
	(void)flock(token->fd, LOCK_UN);
	return false;
}

vmm_status vmm_os_token_identify(uint64_t handle, struct vmm_os_token *token)
{
	token->fd = -1;
	if (handle < FIRST_HANDLE || handle > INT32_MAX || !read_identity((int)handle, token))
		return VMM_INVALID_HANDLE;
	return VMM_OK;
}
