/* SPDX-License-Identifier: MIT */
/*
 * Searches what a client got from the host: everything shared that is mapped into it and, if it
 * retains descriptors (__wrap_recvmsg), the whole memory of each object that the host ever sent a
 * descriptor of, and the bytes of every message. No word in there may be of another program. Memory
 * for reading cannot be mapped for writing, and the client can shrink no object of the host.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client.h"
#include "wire/protocol.h"

#define KEPT 96u

/*
 * Returns the program that wrote the words there; 0: only this one. An address in the table of lock
 * words may begin like a word. Its upper half is below 0x8000, so programs with ids below 32 are
 * not recognized.
 */
static uint32_t look_at_words(const uint32_t *words, size_t count, size_t each)
{
	for (size_t i = 0; i + 1 < count; i += each)
		if (words[i] >> 16 == REMOTE_MAGIC && words[i] % 2 == 0 && words[i + 1] >> 15 &&
		    words[i + 1] >> 10 != (uint32_t)getpid())
			return words[i + 1] >> 10;
	return 0;
}

/* Memory that is unmapped meanwhile cannot be read, and need not be. */
static uint32_t look_at_range(uint64_t begin, uint64_t end)
{
	static uint32_t words[1 << 14];
	uint32_t found = 0;

	while (begin < end && !found) {
		size_t bytes = end - begin < sizeof(words) ? end - begin : sizeof(words);
		struct iovec here = {words, bytes};
		struct iovec there = {(void *)(uintptr_t)begin, bytes};
		ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

		if (got > 0)
			found = look_at_words(words, (size_t)got / 4, 2);
		begin += bytes;
	}
	return found;
}

/* ---- objects that the host has sent a descriptor of ---- */

static struct {
	pthread_mutex_t lock;
	bool all;
	uint32_t count, next;
	struct {
		int fd;
		dev_t device;
		ino_t number;
	} kept[KEPT];
} hoard = {.lock = PTHREAD_MUTEX_INITIALIZER};

void remote_keep_all(void)
{
	hoard.all = true;
}

/*
 * Searches the populated pages only: the others were never written, and reading would allocate
 * them.
 */
static uint32_t look_at_memory_of(int fd)
{
	static uint32_t words[1 << 14];
	off_t end = 0, at;
	uint32_t found = 0;

	while (!found && (at = lseek(fd, end, SEEK_DATA)) >= 0) {
		end = lseek(fd, at, SEEK_HOLE);
		for (; !found && at < end; at += (off_t)sizeof(words)) {
			size_t bytes = (size_t)(end - at);
			ssize_t got =
				pread(fd, words, bytes < sizeof(words) ? bytes : sizeof(words), at);

			if (got > 0)
				found = look_at_words(words, (size_t)got / 4, 2);
		}
	}
	return found;
}

static uint32_t look_at_kept(void)
{
	uint32_t found = 0;

	pthread_mutex_lock(&hoard.lock);
	for (uint32_t i = 0; i < hoard.count && !found; i++)
		found = look_at_memory_of(hoard.kept[i].fd);
	pthread_mutex_unlock(&hoard.lock);
	return found;
}

/* Memory that it shares with no other process is private. */
uint32_t remote_look_around(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512], rights[8];
	uint64_t begin, end;
	uint32_t found = 0;

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, rights) == 3 &&
		    rights[0] == 'r' && rights[3] == 's')
			found = look_at_range(begin, end);
	if (!file)
		remote_end(1);
	fclose(file);
	return found ? found : look_at_kept();
}

/* Proves that the search can find a word of another program. */
void remote_look_at_something(void)
{
	const uint32_t no_program = 0x3FFFFF;
	uint32_t *words =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		remote_end(1);
	words[100] = REMOTE_MAGIC << 16 | 100;
	words[101] = no_program << 10;
	if (remote_look_around() != no_program)
		remote_end(1);
	munmap(words, 4096);
}

/* ---- what the host sends ---- */

static void wrong(const char *what)
{
	fprintf(stderr, "# hoard %d: %s\n", (int)getpid(), what);
	remote_end(REMOTE_FOREIGN);
}

static bool is_kept_locked(const struct stat *stat_of)
{
	for (uint32_t i = 0; i < hoard.count; i++)
		if (hoard.kept[i].device == stat_of->st_dev &&
		    hoard.kept[i].number == stat_of->st_ino)
			return true;
	return false;
}

/* Retains the descriptor while the table has free entries; the search reads the table. */
static void keep(int fd, const struct stat *stat_of)
{
	pthread_mutex_lock(&hoard.lock);
	if (!is_kept_locked(stat_of)) {
		uint32_t at = hoard.next++ % KEPT;

		if (hoard.count == KEPT)
			close(hoard.kept[at].fd);
		else
			hoard.count++;
		hoard.kept[at].fd = dup(fd);
		hoard.kept[at].device = stat_of->st_dev;
		hoard.kept[at].number = stat_of->st_ino;
		if (hoard.kept[at].fd < 0)
			wrong("what the host sends cannot be kept");
	}
	pthread_mutex_unlock(&hoard.lock);
}

static void look_at_object(int fd, bool writable)
{
	struct stat stat_of;

	if (fstat(fd, &stat_of) || !S_ISREG(stat_of.st_mode) || stat_of.st_size <= 0)
		return;
	if (!ftruncate(fd, 0))
		wrong("an object of the host's can be made smaller");
	void *memory =
		mmap(NULL, (size_t)stat_of.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED && !writable)
		wrong("what is to be read can be written to");
	if (memory != MAP_FAILED)
		munmap(memory, (size_t)stat_of.st_size);
	if (lseek(fd, 0, SEEK_DATA) >= 0 && pread(fd, &(char){0}, 1, 0) != 1)
		wrong("an object of the host's cannot be read");
	keep(fd, &stat_of);
}

static void look_at_message(struct msghdr *message, size_t bytes)
{
	const struct vmm_message_view *view = message->msg_iov[0].iov_base;
	bool writable = bytes < sizeof(*view) || message->msg_iov[0].iov_len < sizeof(*view) ||
			view->head.kind != VMM_MESSAGE_VIEW || view->writable;

	for (size_t i = 0; i < message->msg_iovlen; i++)
		if (look_at_words(message->msg_iov[i].iov_base,
				  (bytes < message->msg_iov[i].iov_len
					   ? bytes
					   : message->msg_iov[i].iov_len) /
					  4,
				  1))
			wrong("a message has another program's words");
	for (struct cmsghdr *m = CMSG_FIRSTHDR(message); m; m = CMSG_NXTHDR(message, m)) {
		int fds[16];
		size_t count = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS || count > 16)
			continue;
		memcpy(fds, CMSG_DATA(m), count * sizeof(int));
		for (size_t i = 0; i < count; i++)
			look_at_object(fds[i], writable);
	}
}

/* The client's library receives everything through this; the linker puts it there. */
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t bytes = __real_recvmsg(fd, message, flags);

	if (hoard.all && bytes > 0 && !(flags & MSG_PEEK))
		look_at_message(message, (size_t)bytes);
	return bytes;
}
