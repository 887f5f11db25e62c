/* SPDX-License-Identifier: MIT */
#ifndef VMM_TESTS_SUPPORT_FOLDER_H
#define VMM_TESTS_SUPPORT_FOLDER_H

#include <dirent.h>
#include <stdint.h>

/*
 * Returns the number of entries of a folder, including the descriptor used to read it: open
 * descriptors in /proc/self/fd, threads in /proc/self/task. 0: it cannot be read.
 */
static inline uint32_t folder_count(const char *path)
{
	DIR *folder = opendir(path);
	uint32_t count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

#endif
