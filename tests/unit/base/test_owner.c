/* SPDX-License-Identifier: MIT */
/* The recorded owner of a pthread mutex: which thread may call a function that needs the mutex. */
#include <pthread.h>

#include "base/owner.h"
#include "unit/aborts.h"

/* Release builds leave the assert out. */
#ifdef VMM_RELEASE
#define ASSERTS false
#else
#define ASSERTS true
#endif

static void need_owned(void *owner)
{
	vmm_assert_owned((const struct vmm_owner *)owner);
}

static void the_assert_aborts_if_no_thread_owns_the_mutex(void **state)
{
	struct vmm_owner owner = {NULL};

	(void)state;
	assert_int_equal(aborts(need_owned, &owner), ASSERTS);
	vmm_owner_set(&owner);
	vmm_owner_clear(&owner);
	assert_int_equal(aborts(need_owned, &owner), ASSERTS);
}

static void *own(void *owner)
{
	vmm_owner_set(owner);
	return NULL;
}

static void the_assert_aborts_if_another_thread_owns_the_mutex(void **state)
{
	struct vmm_owner owner = {NULL};
	pthread_t other;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, own, &owner), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(aborts(need_owned, &owner), ASSERTS);
}

/* aborts() calls the function in a child: fork() keeps the owner. */
static void the_owner_passes_and_so_does_its_child(void **state)
{
	struct vmm_owner owner = {NULL};

	(void)state;
	vmm_owner_set(&owner);
	need_owned(&owner);
	assert_false(aborts(need_owned, &owner));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_assert_aborts_if_no_thread_owns_the_mutex),
		cmocka_unit_test(the_assert_aborts_if_another_thread_owns_the_mutex),
		cmocka_unit_test(the_owner_passes_and_so_does_its_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
