/* SPDX-License-Identifier: MIT */
/*
 * A mount namespace in which /usr/lib/wsl/lib/libdxcore.so is the library, for programs that open
 * that path. The deepest folder of the path that exists is covered by a read-only overlay of itself
 * and the missing part. Users other than root need a user namespace for this, which the machine may
 * forbid.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

enum { STEP_NONE, STEP_UNSHARE, STEP_MAP, STEP_PRIVATE, STEP_NESTED, STEP_FOLDER, STEP_OVERLAY };

static const char *const bases[] = {"/usr/lib/wsl/lib", "/usr/lib/wsl", "/usr/lib"};

const char *run_namespace_step(uint32_t step)
{
	static const char *const names[] = {
		[STEP_UNSHARE] = "a mount namespace is not allowed",
		[STEP_MAP] = "the user cannot be mapped into a user namespace",
		[STEP_PRIVATE] = "the mounts cannot be made private",
		[STEP_NESTED] = "other file systems are mounted below the folder",
		[STEP_FOLDER] = "the folder cannot be prepared",
		[STEP_OVERLAY] = "an overlay cannot be mounted",
	};

	return step < sizeof(names) / sizeof(names[0]) && names[step] ? names[step] : "unknown";
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* The user keeps his or her ids in the new user namespace. */
static bool map_ids(uid_t user, gid_t group)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "%u %u 1", user, user);
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	return write_text("/proc/self/setgroups", "deny") &&
	       write_text("/proc/self/uid_map", users) && write_text("/proc/self/gid_map", groups);
}

/* Returns whether something is mounted below the folder; an overlay would hide it. */
static bool has_nested_mounts(const char *base)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	size_t length = strlen(base), size = 0;
	char *line = NULL;
	bool found = !file;

	while (file && getline(&line, &size, file) > 0) {
		char *save = NULL, *word = strtok_r(line, " ", &save);

		for (int i = 0; word && i < 4; i++)
			word = strtok_r(NULL, " ", &save);
		if (word && strncmp(word, base, length) == 0 && word[length] == '/')
			found = true;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* Makes FOLDER/over with what is missing below BASE. */
static bool make_upper(const struct run_folder *folder, const char *base)
{
	const char *missing = &RUN_WSL_PATH[strlen(base) + 1];
	char path[PATH_MAX + 64];
	int used = snprintf(path, sizeof(path), "%s/over/", folder->path);

	for (; missing; missing = strchr(missing, '/') ? strchr(missing, '/') + 1 : NULL) {
		if (mkdir(path, 0700))
			return false;
		used += snprintf(path + used, sizeof(path) - (size_t)used, "%.*s/",
				 (int)strcspn(missing, "/"), missing);
	}
	path[used - 1] = '\0';
	return symlink(folder->library, path) == 0;
}

static const char *choose_base(void)
{
	struct stat info;
	size_t i = 0;

	while (i + 1 < sizeof(bases) / sizeof(bases[0]) && stat(bases[i], &info))
		i++;
	return bases[i];
}

static uint32_t cover(const struct run_folder *folder, const char *base)
{
	char lower[2 * PATH_MAX];

	snprintf(lower, sizeof(lower), "lowerdir=%s/over:%s", folder->path, base);
	return mount("overlay", base, "overlay", MS_RDONLY, lower) ? STEP_OVERLAY : STEP_NONE;
}

static uint32_t enter(const struct run_folder *folder, const char *base)
{
	uid_t user = geteuid();
	gid_t group = getegid();

	if (user || unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			return STEP_UNSHARE;
		if (!map_ids(user, group))
			return STEP_MAP;
	}
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL))
		return STEP_PRIVATE;
	return cover(folder, base);
}

static void note(struct vmm_report *report, uint32_t step)
{
	atomic_store(&report->namespace_error, (uint32_t)errno);
	atomic_store(&report->namespace_step, step);
}

/*
 * Tries the namespace in a process that then ends. A program whose process failed half-way would
 * run in a user namespace without its ids.
 */
static bool works(const struct run_folder *folder, const char *base, struct vmm_report *report)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		uint32_t step = enter(folder, base);

		if (step)
			note(report, step);
		_exit(step != STEP_NONE);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && status == 0;
}

const char *run_namespace_prepare(const struct run_folder *folder, struct vmm_report *report)
{
	const char *base = choose_base();
	char there[PATH_MAX];

	if (realpath(RUN_WSL_PATH, there) && strcmp(there, folder->library) == 0)
		return NULL;
	errno = EBUSY;
	if (has_nested_mounts(base))
		note(report, STEP_NESTED);
	else if (!make_upper(folder, base))
		note(report, STEP_FOLDER);
	else if (works(folder, base, report))
		return base;
	return NULL;
}

void run_namespace_enter(const struct run_folder *folder, const char *base,
			 struct vmm_report *report)
{
	uint32_t step = enter(folder, base);

	if (step)
		note(report, step);
}
