/* SPDX-License-Identifier: MIT */
/*
 * Fixture of the nt tests: a kernel in a world of either back end, and the violations that it
 * reports. Each test names the violations it provokes; the teardown fails on any other.
 */
#ifndef VMM_TESTS_UNIT_NT_NT_WORLD_H
#define VMM_TESTS_UNIT_NT_NT_WORLD_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "nt/nt.h"
#include <ntddk.h>

#define TAG 0x74736554u /* "Test" */

struct world {
	struct vmm_os *os;
	struct vmm_nt *nt;
	/* violations since the last expect_violation; the caller orders the accesses */
	_Atomic uint32_t violations;
	char rule[16], service[64], text[256];
	uint32_t irql;
	uint32_t bugcheck;
	uint64_t bugcheck_parameter[4];
	char printed[512];
	uint32_t print_component, print_level;
};

/* The folder of files of the worlds that are created next; NULL: none. */
static const char *nt_file_root;

static const enum vmm_os_kind nt_on_linux = VMM_OS_LINUX;
static const enum vmm_os_kind nt_on_sim = VMM_OS_SIM;

#define BOTH(test)                                                                       \
	{#test "_linux", test, nt_setup, nt_teardown, (void *)(uintptr_t)&nt_on_linux},  \
	{                                                                                \
#test "_sim", test, nt_setup, nt_teardown, (void *)(uintptr_t)&nt_on_sim \
	}
#define ON_SIM(test)                                                              \
	{                                                                         \
#test, test, nt_setup, nt_teardown, (void *)(uintptr_t)&nt_on_sim \
	}

static inline void take_violation(void *context, const struct vmm_nt_violation *violation)
{
	struct world *world = context;

	atomic_fetch_add(&world->violations, 1);
	snprintf(world->rule, sizeof(world->rule), "%s", violation->rule);
	snprintf(world->service, sizeof(world->service), "%s", violation->service);
	snprintf(world->text, sizeof(world->text), "%s", violation->text);
	world->irql = violation->irql;
}

static inline void take_bugcheck(void *context, uint32_t code, const uint64_t parameter[4])
{
	struct world *world = context;

	world->bugcheck = code;
	memcpy(world->bugcheck_parameter, parameter, sizeof(world->bugcheck_parameter));
}

static inline void take_print(void *context, uint32_t component, uint32_t level, const char *text)
{
	struct world *world = context;

	world->print_component = component;
	world->print_level = level;
	snprintf(world->printed, sizeof(world->printed), "%s", text);
}

static inline struct world *world_create(const struct vmm_os_config *os_config)
{
	struct world *world = vmm_calloc(1, sizeof(*world));
	struct vmm_nt_config config = {.violation = take_violation,
				       .bugcheck = take_bugcheck,
				       .print = take_print,
				       .file_root = nt_file_root,
				       .context = world};

	if (vmm_os_create(os_config, &world->os) != VMM_OK ||
	    vmm_nt_create(world->os, &config, &world->nt) != VMM_OK)
		return NULL;
	return world;
}

static inline int nt_setup(void **state)
{
	struct vmm_os_config config = {.kind = *(const enum vmm_os_kind *)*state, .seed = 1};

	*state = world_create(&config);
	return *state ? 0 : -1;
}

static inline int nt_teardown(void **state)
{
	struct world *world = *state;
	bool clean = vmm_nt_destroy(world->nt) == VMM_OK && atomic_load(&world->violations) == 0;

	if (!clean)
		print_error("%u violations, the last: %s %s: %s\n", atomic_load(&world->violations),
			    world->rule, world->service, world->text);
	vmm_os_destroy(world->os);
	vmm_free(world);
	return clean ? 0 : -1;
}

/* Asserts exactly one violation since the last call, of this rule and service, with this text. */
#define expect_violation(world, rule_, service_, text_)                 \
	do {                                                            \
		assert_int_equal(atomic_load(&(world)->violations), 1); \
		assert_string_equal((world)->rule, rule_);              \
		assert_string_equal((world)->service, service_);        \
		if (!strstr((world)->text, text_))                      \
			assert_string_equal((world)->text, text_);      \
		atomic_store(&(world)->violations, 0);                  \
	} while (0)

static inline LARGE_INTEGER relative_us(int64_t us)
{
	return (LARGE_INTEGER){.QuadPart = -us * 10};
}

/* A kernel thread and a reference to it. */
static inline PVOID start_thread(PKSTART_ROUTINE start, PVOID context)
{
	HANDLE handle = NULL;
	PVOID object = NULL;

	assert_int_equal(
		PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, start, context),
		STATUS_SUCCESS);
	assert_int_equal(ObReferenceObjectByHandle(handle, SYNCHRONIZE, *PsThreadType, KernelMode,
						   &object, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
	return object;
}

static inline void end_thread(PVOID object)
{
	assert_int_equal(KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL),
			 STATUS_SUCCESS);
	ObDereferenceObject(object);
}

#endif
