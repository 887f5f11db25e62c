/* SPDX-License-Identifier: MIT */
/* What /proc and the files of control groups say about memory that is available. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host_memory.h"
#include "support/test.h"

static char root[64];

/* Writes a file under the folder that stands for the root folder, with the folders above. */
static void put(const char *path, const char *text)
{
	char name[512];
	FILE *file;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (char *slash = name + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(name, 0700);
		*slash = '/';
	}
	file = fopen(name, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void q_490_without_groups_mem_available_counts(void **state)
{
	(void)state;
	assert_true(host_memory_available(root) == UINT64_MAX);
	put("/proc/meminfo", "MemTotal:  9000 kB\nMemFree:  1 kB\nMemAvailable:    4096 kB\n");
	assert_true(host_memory_available(root) == 4u << 20);
	put("/proc/self/cgroup", "5:memory:/old\n");
	assert_true(host_memory_available(root) == 4u << 20);
}

static void q_490_the_limit_of_a_group_and_of_those_above_counts(void **state)
{
	(void)state;
	put("/proc/meminfo", "MemAvailable: 4096 kB\n");
	put("/proc/self/cgroup", "5:memory:/old\n0::/a/b\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	put("/sys/fs/cgroup/a/b/memory.current", "1000\n");
	assert_true(host_memory_available(root) == 4u << 20);
	put("/sys/fs/cgroup/a/memory.max", "3000000\n");
	put("/sys/fs/cgroup/a/memory.current", "2000000\n");
	assert_true(host_memory_available(root) == 1000000);
	/* Pages of files are given back when memory lacks. */
	put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 70000\nactive_file 30000\n");
	assert_true(host_memory_available(root) == 1100000);
	put("/sys/fs/cgroup/a/memory.current", "4000000\n");
	assert_true(host_memory_available(root) == 0);
	/* A container whose group is the root of what it sees. */
	put("/proc/self/cgroup", "0::/\n");
	put("/sys/fs/cgroup/memory.max", "2000000\n");
	put("/sys/fs/cgroup/memory.current", "500000\n");
	assert_true(host_memory_available(root) == 1500000);
}

static void q_490_this_machine_has_memory(void **state)
{
	(void)state;
	assert_true(host_memory_available("") > 0);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/vidmm_host_memory_XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status, (void)type, (void)at;
	return remove(path);
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_490_without_groups_mem_available_counts),
		cmocka_unit_test(q_490_the_limit_of_a_group_and_of_those_above_counts),
		cmocka_unit_test(q_490_this_machine_has_memory),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
