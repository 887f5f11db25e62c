/* SPDX-License-Identifier: MIT */
/*
 * Files below one folder of the file system. The kernel keeps every path below the folder
 * (RESOLVE_BENEATH), also where it has ".." or symbolic links.
 */
#include "base/failure.h"
#include "os/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

vmm_status vmm_os_folder_open(const char *path, int *folder)
{
	*folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *folder < 0 ? VMM_OBJECT_NAME_NOT_FOUND : VMM_OK;
}

static int open_beneath(int folder, const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC | O_NOCTTY,
			       .mode = flags & O_CREAT ? 0666 : 0,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

	return vmm_fails(VMM_FAIL_DESCRIPTOR)
		       ? -1
		       : (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
}

/* Whether the folder of the path exists below the root. */
static bool parent_exists(int folder, const char *path)
{
	char parent[VMM_OS_PATH_BYTES];
	size_t end = 0;
	int fd;

	for (size_t i = 0; path[i] && i < sizeof(parent); i++)
		end = path[i] == '/' ? i : end;
	if (!end)
		return true;
	for (size_t i = 0; i < end; i++)
		parent[i] = path[i];
	parent[end] = 0;
	fd = open_beneath(folder, parent, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static enum vmm_os_file_result result_of(int folder, const char *path)
{
	switch (errno) {
	case ENOENT:
		return parent_exists(folder, path) ? VMM_OS_FILE_NOT_FOUND
						   : VMM_OS_FILE_FOLDER_NOT_FOUND;
	case ENOTDIR:
		return VMM_OS_FILE_FOLDER_NOT_FOUND;
	case EEXIST:
		return VMM_OS_FILE_EXISTS;
	case EISDIR:
	case ENXIO: /* a FIFO or a socket */
		return VMM_OS_FILE_NOT_REGULAR;
	case EXDEV:
	case ELOOP:
		return VMM_OS_FILE_OUTSIDE;
	case EACCES:
	case EPERM:
	case EROFS:
		return VMM_OS_FILE_DENIED;
	case ENAMETOOLONG:
		return VMM_OS_FILE_NAME_TOO_LONG;
	case ENOSYS:
		return VMM_OS_FILE_NO_KERNEL;
	default:
		return VMM_OS_FILE_FAILED;
	}
}

enum vmm_os_file_result vmm_os_file_open(int folder, const char *path, unsigned how,
					 struct vmm_os_file *file)
{
	int flags =
		how & VMM_OS_FILE_WRITE ? (how & VMM_OS_FILE_READ ? O_RDWR : O_WRONLY) : O_RDONLY;
	struct stat info;

	flags |= (how & VMM_OS_FILE_CREATE ? O_CREAT | O_EXCL : 0) | O_NONBLOCK;
	file->fd = open_beneath(folder, path, flags);
	if (file->fd < 0)
		return result_of(folder, path);
	if (fstat(file->fd, &info) || !S_ISREG(info.st_mode)) {
		vmm_os_file_close(file);
		return VMM_OS_FILE_NOT_REGULAR;
	}
	file->device = (uint64_t)info.st_dev;
	file->inode = (uint64_t)info.st_ino;
	return VMM_OS_FILE_OK;
}

void vmm_os_file_close(struct vmm_os_file *file)
{
	close(file->fd);
	file->fd = -1;
}

bool vmm_os_file_read(const struct vmm_os_file *file, void *buffer, size_t length, uint64_t offset,
		      size_t *done)
{
	*done = 0;
	while (*done < length) {
		ssize_t count = pread(file->fd, (char *)buffer + *done, length - *done,
				      (off_t)(offset + *done));

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return false;
		if (!count)
			break;
		*done += (size_t)count;
	}
	return true;
}

bool vmm_os_file_write(const struct vmm_os_file *file, const void *buffer, size_t length,
		       uint64_t offset, size_t *done)
{
	*done = 0;
	while (*done < length) {
		ssize_t count = pwrite(file->fd, (const char *)buffer + *done, length - *done,
				       (off_t)(offset + *done));

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		*done += (size_t)count;
	}
	return true;
}

bool vmm_os_file_size(const struct vmm_os_file *file, struct vmm_os_file_size *size)
{
	struct stat info;

	if (fstat(file->fd, &info))
		return false;
	size->bytes = (uint64_t)info.st_size;
	size->allocated_bytes = (uint64_t)info.st_blocks * 512;
	size->links = (uint32_t)info.st_nlink;
	return true;
}

bool vmm_os_file_resize(const struct vmm_os_file *file, uint64_t size_bytes)
{
	return ftruncate(file->fd, (off_t)size_bytes) == 0;
}

void *vmm_os_symbol(const void *near, const char *name)
{
	void *library, *found;
	Dl_info info;

	if (!dladdr(near, &info))
		return NULL;
	library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	/* The program itself has no name that dlopen finds. */
	if (!library)
		library = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
	found = library ? dlsym(library, name) : NULL;
	if (library)
		dlclose(library);
	return found;
}
