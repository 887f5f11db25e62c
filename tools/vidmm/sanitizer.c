/* SPDX-License-Identifier: MIT */
/*
 * Starts this program again with the run-time library of a driver's sanitizer. The library has to
 * be loaded before any other, so a driver that is loaded later cannot bring it.
 */
#include "sanitizer.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

static const char *find_mark(const char *data, size_t size)
{
	/*
	 * vidmm-cc places these texts and the path in the object. Two parts, so that this program
	 * does not contain the whole.
	 */
	static const char first[] = "VIDMM_SANITIZER", second[] = "_RUNTIME=";
	const char *at = data, *end = data + size;

	while (at < end && (at = memmem(at, (size_t)(end - at), first, sizeof(first) - 1))) {
		at += sizeof(first) - 1;
		if ((size_t)(end - at) > sizeof(second) &&
		    !memcmp(at, second, sizeof(second) - 1) && memchr(at, '\0', (size_t)(end - at)))
			return at + sizeof(second) - 1;
	}
	return NULL;
}

/* Copies the path of the run-time library. Returns false if the object names none. */
static bool runtime_of(const char *path, char *runtime, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat info;
	const char *data, *found;

	if (fd < 0)
		return false;
	if (fstat(fd, &info) != 0 || info.st_size <= 0) {
		close(fd);
		return false;
	}
	data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		return false;
	found = find_mark(data, (size_t)info.st_size);
	if (found)
		snprintf(runtime, size, "%s", found);
	munmap((void *)(size_t)data, (size_t)info.st_size);
	return found != NULL;
}

/* The arguments of this process, from the kernel's copy. NULL if they cannot be read. */
static char **arguments(void)
{
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t count = 0, capacity = 0, size;
	char **list = NULL, *word = NULL;
	ssize_t length;

	if (!file)
		return NULL;
	for (; size = 0, word = NULL, (length = getdelim(&word, &size, '\0', file)) > 0; count++) {
		if (count + 1 >= capacity) {
			capacity = capacity ? capacity * 2 : 16;
			list = realloc(list, capacity * sizeof(*list));
			if (!list)
				abort();
		}
		list[count] = word;
		list[count + 1] = NULL;
	}
	free(word);
	fclose(file);
	return list;
}

static void add_to_environment(const char *name, const char *value, char separator)
{
	const char *old = getenv(name);
	char text[4096];

	if (old && *old)
		snprintf(text, sizeof(text), "%s%c%s", value, separator, old);
	else
		snprintf(text, sizeof(text), "%s", value);
	setenv(name, text, 1);
}

void sanitizer_start_with_runtime(const char *path)
{
	const char *loaded = getenv("LD_PRELOAD");
	char runtime[1024], **list;

	/* This program has a run-time library already, and a process can have only one. */
	if (IS_SANITIZED)
		return;
	if (!runtime_of(path, runtime, sizeof(runtime)) || (loaded && strstr(loaded, runtime)))
		return;
	list = arguments();
	if (!list)
		return;
	add_to_environment("LD_PRELOAD", runtime, ':');
	/*
	 * The leaks of a driver are found by its kernel's pool (NT-06). What the user sets counts,
	 * because a later option wins.
	 */
	add_to_environment("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0", ':');
	add_to_environment("UBSAN_OPTIONS", "print_stacktrace=1", ':');
	execv("/proc/self/exe", list);
}
