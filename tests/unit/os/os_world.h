/* SPDX-License-Identifier: MIT */
/*
 * Fixture of the os tests: one world per test, the same test on both back ends, and the text of an
 * abort. Assertions of cmocka leave by longjmp, so only the main thread makes them; other threads
 * record what they saw.
 */
#ifndef VMM_TESTS_UNIT_OS_OS_WORLD_H
#define VMM_TESTS_UNIT_OS_OS_WORLD_H

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"
#include "os/os.h"

static const enum vmm_os_kind on_linux = VMM_OS_LINUX;
static const enum vmm_os_kind on_sim = VMM_OS_SIM;

/*
 * A test for both back ends. Its initial state is the kind; its state during the run is the world.
 */
#define BOTH(test)                                                                          \
	{#test "_linux", test, world_setup, world_teardown, (void *)(uintptr_t)&on_linux},  \
	{                                                                                   \
#test "_sim", test, world_setup, world_teardown, (void *)(uintptr_t)&on_sim \
	}

#define ON_SIM(test)                                                                        \
	{                                                                                   \
#test "_sim", test, world_setup, world_teardown, (void *)(uintptr_t)&on_sim \
	}

static inline struct vmm_os *world_create(enum vmm_os_kind kind)
{
	struct vmm_os_config config = {.kind = kind, .seed = 1};
	struct vmm_os *os = NULL;

	return vmm_os_create(&config, &os) == VMM_OK ? os : NULL;
}

static inline int world_setup(void **state)
{
	*state = world_create(*(const enum vmm_os_kind *)*state);
	return *state ? 0 : -1;
}

static inline int world_teardown(void **state)
{
	vmm_os_destroy(*state);
	return 0;
}

static inline struct vmm_os_thread *start(struct vmm_os *os, const char *name, vmm_os_thread_fn *fn,
					  void *arg)
{
	struct vmm_os_thread *thread = NULL;

	assert_int_equal(vmm_os_thread_create(os, name, fn, arg, &thread), VMM_OK);
	return thread;
}

/* Returns whether fn(arg) aborts with this text in its output. */
static inline bool aborts_saying(void (*fn)(void *arg), void *arg, const char *text)
{
	char said[4096] = "";
	size_t used = 0;
	ssize_t got;
	int pipes[2], status;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		dup2(pipes[1], STDERR_FILENO);
		fn(arg);
		_exit(0);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], said + used, sizeof(said) - 1 - used)) > 0)
		used += (size_t)got;
	close(pipes[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, text)) {
		print_error("no abort that says \"%s\" (wait status 0x%x), but: %s\n", text,
			    (unsigned)status, said);
		return false;
	}
	return true;
}

#endif
