/* SPDX-License-Identifier: MIT */
/*
 * The socket of a server: its path and permissions, removal of a stale socket, and sockets passed
 * by systemd.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "serve.h"

#define BACKLOG 128

static enum replay_status failed(const char *path, const char *why)
{
	fprintf(stderr, "vidmm: %s: %s\n", path, why);
	return REPLAY_ENVIRONMENT;
}

static char *joined(const char *first, const char *second)
{
	size_t size = strlen(first) + strlen(second) + 1;
	char *text = malloc(size);

	if (text)
		snprintf(text, size, "%s%s", first, second);
	return text;
}

char *serve_default_path(void)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");

	if (runtime && runtime[0] == '/')
		return joined(runtime, "/vidmm/socket");
	fprintf(stderr,
		"vidmm: the socket has no default path: set XDG_RUNTIME_DIR or use --socket\n");
	return NULL;
}

/*
 * Creates the directory of the default path, or checks that it belongs to the user and that no
 * other user may enter it.
 */
static bool make_folder(const char *path)
{
	struct stat info;
	char *folder = strdup(path);
	bool good = false;

	if (!folder)
		return false;
	*strrchr(folder, '/') = '\0';
	if (mkdir(folder, 0700) && errno != EEXIST)
		(void)failed(folder, strerror(errno));
	else if (lstat(folder, &info) || !S_ISDIR(info.st_mode))
		(void)failed(folder, "not a directory");
	else if (info.st_uid != geteuid() || info.st_mode & 077)
		(void)failed(
			folder,
			"others may reach the socket in it: it must belong to the user, mode 0700");
	else
		good = true;
	free(folder);
	return good;
}

/*
 * Takes the lock file of PATH. Its holder is the only server at that path. The kernel releases the
 * lock when the process ends.
 */
static enum replay_status take_lock(const char *path, int *lock)
{
	char *name = joined(path, ".lock");
	enum replay_status status = REPLAY_CLEAN;

	if (!name)
		return failed(path, "out of memory");
	*lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*lock < 0)
		status = failed(name, strerror(errno));
	else if (flock(*lock, LOCK_EX | LOCK_NB))
		status = failed(path, "another server already listens there");
	free(name);
	return status;
}

static bool address_of(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
		return false;
	memcpy(address->sun_path, path, strlen(path));
	return true;
}

/*
 * Removes a socket that an earlier server left behind: while this process holds the lock, no other
 * server uses it. Any other kind of file, and the socket of another user, is an error.
 */
static enum replay_status remove_stale(const char *path)
{
	struct stat info;

	if (lstat(path, &info))
		return errno == ENOENT ? REPLAY_CLEAN : failed(path, strerror(errno));
	if (!S_ISSOCK(info.st_mode))
		return failed(path, "the path exists and is no socket");
	if (info.st_uid != geteuid())
		return failed(path, "the socket belongs to another user");
	return unlink(path) ? failed(path, strerror(errno)) : REPLAY_CLEAN;
}

static enum replay_status listen_at(const char *path, int *result)
{
	struct sockaddr_un address;

	if (!address_of(path, &address))
		return failed(path, "the path is too long for a socket");
	enum replay_status status = remove_stale(path);
	if (status != REPLAY_CLEAN)
		return status;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	mode_t before = umask(0177);
	bool good = fd >= 0 && !bind(fd, (const struct sockaddr *)&address, sizeof(address)) &&
		    !listen(fd, BACKLOG);
	int error = errno;
	umask(before);
	if (good) {
		*result = fd;
		return REPLAY_CLEAN;
	}
	if (fd >= 0)
		close(fd);
	return failed(path, strerror(error));
}

static enum replay_status from_systemd(int count, struct serve_socket *result)
{
	if (count > 1)
		return failed("systemd", "more than one socket was passed");
	if (sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) <= 0)
		return failed(
			"systemd",
			"the passed descriptor is not a listening ListenSequentialPacket= socket");
	result->fd = SD_LISTEN_FDS_START;
	return REPLAY_CLEAN;
}

enum replay_status serve_socket_open(const char *path, struct serve_socket *result)
{
	int handed = sd_listen_fds(1);

	*result = (struct serve_socket){.fd = -1, .lock = -1};
	if (handed > 0)
		return from_systemd(handed, result);
	char *where = path ? strdup(path) : serve_default_path();
	if (!where || (!path && !make_folder(where))) {
		free(where);
		return REPLAY_ENVIRONMENT;
	}
	enum replay_status status = take_lock(where, &result->lock);
	if (status == REPLAY_CLEAN)
		status = listen_at(where, &result->fd);
	if (status == REPLAY_CLEAN) {
		result->path = where;
		return status;
	}
	free(where);
	serve_socket_close(result);
	return status;
}

void serve_socket_close(struct serve_socket *socket)
{
	if (socket->path)
		(void)unlink(socket->path);
	free(socket->path);
	if (socket->lock >= 0)
		close(socket->lock);
	*socket = (struct serve_socket){.fd = -1, .lock = -1};
}
