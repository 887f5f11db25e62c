/* SPDX-License-Identifier: MIT */
/*
 * The predicate of object.h (object/valid.c): true for a valid device, and false when one member is
 * broken.
 */
#include "unit/breaks.h"

#include <string.h>

#include "object/object.h"

static struct vmm_world world, other_world;
static struct vmm_process process, other_process;
static struct vmm_adapter adapter;

static struct vmm_os *start(void)
{
	const struct vmm_os_config config = {.kind = VMM_OS_SIM};
	struct vmm_os *os;

	assert_int_equal(vmm_os_create(&config, &os), VMM_OK);
	memset(&adapter, 0, sizeof(adapter));
	adapter.world = process.world = &world;
	other_process.world = &other_world;
	adapter.residency_lists = true;
	return os;
}

static void stop(struct vmm_os *os)
{
	vmm_os_destroy(os);
}

static void object_valid_a_device_is_of_one_world(void **state)
{
	static struct vmm_device device;
	struct vmm_os *os = start();

	(void)state;
	device = (struct vmm_device){.process = &process, .adapter = &adapter};
	BREAKS(vmm_device_is_valid(&device), device.process, NULL);
	BREAKS(vmm_device_is_valid(&device), device.process, &other_process);
	BREAKS(vmm_device_is_valid(&device), device.adapter, NULL);
	BREAKS(vmm_device_is_valid(&device), device.error, VMM_DEVICE_PAGE_FAULT_RESET + 1u);
	device.va = (struct vmm_va *)&device; /* it is compared only */
	BREAKS(vmm_device_is_valid(&device), adapter.residency_lists, false);
	stop(os);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object_valid_a_device_is_of_one_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
