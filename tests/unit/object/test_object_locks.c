/* SPDX-License-Identifier: MIT */
/*
 * A `_locked` function that is called without its lock asserts, whichever compiler built it. That
 * clang refuses such a call is tested by tests/tidy/lock_classes.py.
 */
#include <stdlib.h>

#include "object/object.h"
#include "unit/os/os_world.h"

static void poke_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&adapter->state_lock);
}

static struct vmm_adapter *adapter_create(struct vmm_os *os)
{
	struct vmm_adapter *adapter = vmm_calloc_lines(sizeof(*adapter));

	assert_non_null(adapter);
	vmm_os_mutex_init(&adapter->submit_lock, os, VMM_RANK_SUBMIT, "submit");
	vmm_os_mutex_init(&adapter->state_lock, os, VMM_RANK_STATE, "state");
	return adapter;
}

static void adapter_destroy(struct vmm_adapter *adapter)
{
	vmm_os_mutex_finish(&adapter->state_lock);
	vmm_os_mutex_finish(&adapter->submit_lock);
	free(adapter);
}

/* clang would refuse the next three functions, which call poke_locked without its lock. */
static void poke_without_the_lock(void *kind) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	poke_locked(adapter_create(world_create(*(enum vmm_os_kind *)kind)));
}

static void poke_after_the_unlock(void *kind) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	struct vmm_adapter *adapter = adapter_create(world_create(*(enum vmm_os_kind *)kind));

	vmm_state_lock(adapter);
	vmm_state_unlock(adapter);
	poke_locked(adapter);
}

static void poke_with_another_lock(void *kind) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	struct vmm_adapter *adapter = adapter_create(world_create(*(enum vmm_os_kind *)kind));

	vmm_submit_lock(adapter);
	poke_locked(adapter);
}

/* clang accepts this one: the lock is of the right class, and of another adapter. */
static void poke_another_adapter(void *kind)
{
	struct vmm_os *os = world_create(*(enum vmm_os_kind *)kind);
	struct vmm_adapter *adapter = adapter_create(os), *other = adapter_create(os);

	vmm_state_lock(adapter);
	poke_locked(other);
	vmm_state_unlock(adapter);
}

/* A release build checks only that some thread holds the lock. */
#ifndef VMM_RELEASE
static void poke_from_here(void *adapter) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	poke_locked(adapter);
}

static void poke_on_another_thread(void *kind)
{
	struct vmm_os *os = world_create(*(enum vmm_os_kind *)kind);
	struct vmm_adapter *adapter = adapter_create(os);

	vmm_state_lock(adapter);
	vmm_os_thread_join(start(os, "another", poke_from_here, adapter));
	vmm_state_unlock(adapter);
}
#endif

static void a_locked_function_asserts_without_its_lock(void **state)
{
	enum vmm_os_kind kind = vmm_os_kind(*state);

	assert_true(aborts_saying(poke_without_the_lock, &kind, "state_lock"));
	assert_true(aborts_saying(poke_after_the_unlock, &kind, "state_lock"));
	assert_true(aborts_saying(poke_with_another_lock, &kind, "state_lock"));
	assert_true(aborts_saying(poke_another_adapter, &kind, "state_lock"));
#ifndef VMM_RELEASE
	assert_true(aborts_saying(poke_on_another_thread, &kind, "state_lock"));
#endif
}

static void a_locked_function_runs_with_its_lock(void **state)
{
	struct vmm_adapter *adapter = adapter_create(*state);

	vmm_state_lock(adapter);
	poke_locked(adapter);
	vmm_state_unlock(adapter);
	adapter_destroy(adapter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_locked_function_asserts_without_its_lock),
		BOTH(a_locked_function_runs_with_its_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
