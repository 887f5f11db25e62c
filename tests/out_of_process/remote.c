/* SPDX-License-Identifier: MIT */
#include "remote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *host_program, *client_program;

void remote_init(int count, char **arguments)
{
	if (count < 3) {
		fprintf(stderr, "usage: %s HOST CLIENT\n", arguments[0]);
		exit(2);
	}
	host_program = arguments[1];
	client_program = arguments[2];
	signal(SIGPIPE, SIG_IGN);
}

static void start(struct remote_program *program, const char *const *arguments, int errors)
{
	int in[2], out[2];
	pid_t parent = getpid();

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(fcntl(out[1], F_SETFL, O_WRONLY | O_NONBLOCK), 0);
	program->pid = fork();
	if (program->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(127);
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (errors >= 0)
			dup2(errors, 2);
		execv(arguments[0], (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	assert_true(program->pid > 0);
	program->pidfd = (int)syscall(SYS_pidfd_open, program->pid, 0);
	assert_true(program->pidfd >= 0);
	close(in[0]);
	close(out[1]);
	program->in = in[1];
	program->out = out[0];
}

bool remote_read(struct remote_program *program, uint32_t count)
{
	char bytes[256];

	while (count > 0) {
		struct pollfd ready = {.fd = program->out, .events = POLLIN};
		size_t most = count < sizeof(bytes) ? count : sizeof(bytes);

		if (poll(&ready, 1, HANG_MS) != 1)
			fail_msg("program %d says nothing any more", (int)program->pid);
		ssize_t got = read(program->out, bytes, most);
		if (got <= 0)
			return false;
		count -= (uint32_t)got;
	}
	return true;
}

void remote_skip(struct remote_program *program)
{
	struct pollfd ready = {.fd = program->out, .events = POLLIN};
	char bytes[4096];

	while (poll(&ready, 1, 0) == 1 && read(program->out, bytes, sizeof(bytes)) > 0)
		;
}

bool remote_has_ended(struct remote_program *program)
{
	struct pollfd ended = {.fd = program->pidfd, .events = POLLIN};

	return poll(&ended, 1, 0) == 1;
}

void remote_kill(struct remote_program *program)
{
	assert_int_equal(syscall(SYS_pidfd_send_signal, program->pidfd, SIGKILL, NULL, 0), 0);
}

void remote_finish(struct remote_program *program)
{
	if (program->in >= 0)
		close(program->in);
	program->in = -1;
}

int remote_wait(struct remote_program *program)
{
	struct pollfd ended = {.fd = program->pidfd, .events = POLLIN};
	int status;

	if (poll(&ended, 1, HANG_MS) != 1) {
		remote_kill(program);
		fail_msg("program %d does not end", (int)program->pid);
	}
	assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
	remote_finish(program);
	close(program->out);
	close(program->pidfd);
	*program = (struct remote_program){.in = -1, .out = -1, .pidfd = -1};
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

void remote_start_again(struct remote *remote, uint64_t vram_kib, uint64_t aperture_kib)
{
	char vram[32], aperture[32];
	const char *arguments[] = {host_program, remote->socket, vram, aperture, NULL};

	snprintf(vram, sizeof(vram), "%llu", (unsigned long long)vram_kib);
	snprintf(aperture, sizeof(aperture), "%llu", (unsigned long long)aperture_kib);
	(void)unlink(remote->socket);
	start(&remote->host, arguments, -1);
	assert_true(remote_read(&remote->host, 1));
}

void remote_start(struct remote *remote, uint64_t vram_kib, uint64_t aperture_kib)
{
	*remote = (struct remote){.host_program = host_program, .client_program = client_program};
	strcpy(remote->folder, "/tmp/vidmm-remote-XXXXXX");
	assert_non_null(mkdtemp(remote->folder));
	snprintf(remote->socket, sizeof(remote->socket), "%s/socket", remote->folder);
	remote_start_again(remote, vram_kib, aperture_kib);
}

void remote_remove(struct remote *remote)
{
	(void)unlink(remote->socket);
	(void)rmdir(remote->folder);
}

void remote_stop(struct remote *remote)
{
	remote_finish(&remote->host);
	assert_int_equal(remote_wait(&remote->host), 0);
	remote_remove(remote);
}

void remote_settle(struct remote *remote)
{
	assert_int_equal(write(remote->host.in, "w", 1), 1);
	assert_true(remote_read(&remote->host, 1));
}

uint64_t remote_memory(struct remote *remote)
{
	uint64_t bytes = 0;

	assert_int_equal(write(remote->host.in, "m", 1), 1);
	assert_int_equal(read(remote->host.out, &bytes, sizeof(bytes)), sizeof(bytes));
	return bytes;
}

void remote_client(struct remote *remote, struct remote_program *program, const char *mode,
		   const char *argument)
{
	const char *arguments[] = {client_program, mode, remote->socket, argument, NULL};

	start(program, arguments, -1);
}

void remote_player(struct remote *remote, struct remote_program *program, const char *vidmm,
		   const char *recording, int errors)
{
	const char *arguments[] = {vidmm,     "replay",     "--socket", remote->socket,
				   "--quiet", "--gpu-time", "none",     "--verify",
				   "stamps",  recording,    NULL};

	start(program, arguments, errors);
}

/* ---- /proc ---- */

static void count_descriptors(pid_t pid, struct remote_counts *counts)
{
	char path[320], target[64];
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		counts->descriptors++;
		counts->memory_objects += length > 7 && !strncmp(target, "/memfd:", 7);
	}
	closedir(folder);
}

struct remote_counts remote_count(pid_t pid)
{
	struct remote_counts counts = {0};
	char path[64], line[512];
	unsigned long long kib;

	count_descriptors(pid, &counts);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		counts.mappings++;
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Private_%*[^:]: %llu kB", &kib) == 1)
			counts.private_kib += kib;
	fclose(file);
	return counts;
}

/* Explains a failure to the reader of the log. */
static void show_descriptors(pid_t pid)
{
	char path[320], target[64];
	struct dirent *entry;
	struct stat stat_of;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
		ssize_t length = readlink(path, target, sizeof(target));
		if (length > 0 && !stat(path, &stat_of))
			print_message("host: %s %.*s, %llu bytes\n", entry->d_name, (int)length,
				      target, (unsigned long long)stat_of.st_size);
	}
	if (folder)
		closedir(folder);
}

void remote_settle_to(struct remote *remote, const struct remote_counts *before)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	do {
		remote_settle(remote);
		const struct remote_counts counts = remote_count(remote->host.pid);
		if (counts.descriptors <= before->descriptors &&
		    counts.memory_objects <= before->memory_objects)
			return;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - end.tv_sec < HANG_S);
	const struct remote_counts counts = remote_count(remote->host.pid);
	show_descriptors(remote->host.pid);
	fail_msg("the host is left with %u descriptors, %u of them memory objects; "
		 "before it had %u and %u",
		 counts.descriptors, counts.memory_objects, before->descriptors,
		 before->memory_objects);
}
