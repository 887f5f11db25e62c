/* SPDX-License-Identifier: MIT */
#include "host_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES      4096u
/* A path, with what is put before and behind it. */
#define LONG_PATH_BYTES (PATH_BYTES + 64u)

/* Reads the number after KEY at the beginning of a line; KEY "" is the number of the file. */
static bool read_number(const char *root, const char *path, const char *key, uint64_t *value)
{
	char name[PATH_BYTES + LONG_PATH_BYTES], line[256];
	bool found = false;
	FILE *file;

	snprintf(name, sizeof(name), "%s%s", root, path);
	file = fopen(name, "r");
	while (file && !found && fgets(line, sizeof(line), file))
		found = strncmp(line, key, strlen(key)) == 0 &&
			sscanf(line + strlen(key), "%" SCNu64, value) == 1;
	if (file)
		fclose(file);
	return found;
}

/* Reads a file of a control group, or a line of it. 0 if the file has no such number. */
static uint64_t group_number(const char *root, const char *group, const char *file, const char *key)
{
	char path[LONG_PATH_BYTES];
	uint64_t value = 0;

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, file);
	return read_number(root, path, key, &value) ? value : 0;
}

/* What the limit of one group leaves. A group without a limit has the word max. */
static uint64_t left_of_group(const char *root, const char *group)
{
	uint64_t limit = group_number(root, group, "memory.max", "");
	uint64_t used = group_number(root, group, "memory.current", "");
	uint64_t files = group_number(root, group, "memory.stat", "active_file ") +
			 group_number(root, group, "memory.stat", "inactive_file ");

	if (limit == 0)
		return UINT64_MAX;
	used = used > files ? used - files : 0;
	return limit > used ? limit - used : 0;
}

/* Reads the path of the process's group of version 2: the line "0::/a/b". */
static bool own_group(const char *root, char *group, size_t size)
{
	char name[PATH_BYTES], line[PATH_BYTES];
	bool found = false;
	FILE *file;

	snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
	file = fopen(name, "r");
	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, "0::/", 4) == 0;
	}
	if (file)
		fclose(file);
	if (found)
		snprintf(group, size, "%s", line + 3);
	return found;
}

uint64_t host_memory_available(const char *root)
{
	char group[PATH_BYTES];
	uint64_t least = UINT64_MAX, left;

	if (read_number(root, "/proc/meminfo", "MemAvailable:", &left) && left < UINT64_MAX / 1024)
		least = left * 1024;
	if (!own_group(root, group, sizeof(group)))
		return least;
	for (;;) {
		char *last;

		left = left_of_group(root, group);
		if (left < least)
			least = left;
		last = strrchr(group, '/');
		if (!last)
			return least;
		*last = '\0';
	}
}
