/* SPDX-License-Identifier: MIT */
/* Temporary files of a test, which removes them. */
#ifndef VMM_TESTS_TEMPORARY_H
#define VMM_TESTS_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <support/test.h>

/* Creates an empty file. Returns its path, to be freed. */
static inline char *temporary_file(void)
{
	char *path = strdup("/tmp/vidmm-test-XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	return path;
}

static inline void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

#endif
