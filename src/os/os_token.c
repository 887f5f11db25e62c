/* SPDX-License-Identifier: MIT */
/*
 * Tokens: descriptors that stand for an object of ours, to be passed on like any other. A token is an anonymous file, known by
 * its inode. Each handle is an opening of that file with a shared lock on it, which goes with the last descriptor of the
 * opening, wherever that has been sent: so we can ask whether a handle is left.
 */
#include "os/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_HANDLE = 3 }; /* programs take 0 for none (SHR-35, SYN-09a) */

static bool look_at(int fd, struct vmm_os_token *token)
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
	token->fd = memfd_create(name, MFD_CLOEXEC);
	if (token->fd < 0)
		return VMM_NO_MEMORY;
	if (look_at(token->fd, token))
		return VMM_OK;
	vmm_os_token_destroy(token);
	return VMM_NO_MEMORY;
}

void vmm_os_token_destroy(struct vmm_os_token *token)
{
	close(token->fd);
	token->fd = -1;
}

/* HND-06: a descriptor above the standard three, closed by exec. */
vmm_status vmm_os_token_hand_out(const struct vmm_os_token *token, uint64_t *handle)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", token->fd);
	int opened = open(path, O_RDONLY | O_CLOEXEC);
	int fd = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, FIRST_HANDLE);
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

bool vmm_os_token_is_out(const struct vmm_os_token *token)
{
	if (flock(token->fd, LOCK_EX | LOCK_NB))
		return true;
	(void)flock(token->fd, LOCK_UN);
	return false;
}

vmm_status vmm_os_token_identify(uint64_t handle, struct vmm_os_token *token)
{
	token->fd = -1;
	if (handle < FIRST_HANDLE || handle > INT32_MAX || !look_at((int)handle, token))
		return VMM_INVALID_HANDLE;
	return VMM_OK;
}
