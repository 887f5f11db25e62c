/* SPDX-License-Identifier: MIT */
/*
 * A device model under a test's control. Its registers are words that keep what was written; its
 * functions record their calls. Interrupts, timers and DMA: the test calls the services.
 *
 * BARs: 0 memory of 16 MiB (64 bits, prefetchable), 2 registers of 64 KiB, 3 ports, 4 registers of
 * 4 KiB (64 bits).
 */
#ifndef VMM_TESTS_SUPPORT_TEST_DEVICE_H
#define VMM_TESTS_SUPPORT_TEST_DEVICE_H

#include <stdatomic.h>
#include <stdint.h>
#include <vidmm/device.h>

enum { TEST_DEVICE_REGISTERS = 2, TEST_DEVICE_PORTS = 3, TEST_DEVICE_MORE = 4 };
#define TEST_DEVICE_PORT_COUNT 32u
#define TEST_DEVICE_ACCESSES   32u

struct test_device_access {
	uint32_t bar, width; /* bar 100: configuration space */
	uint64_t offset, value;
	int write;
};

struct test_device {
	struct vidmm_device_model model; /* the test may change it before the start */
	uint8_t image[4096];
	const struct vidmm_device_services *services; /* from create to destroy */
	int32_t create_status;
	_Atomic uint32_t created, destroyed, resets, powers;
	uint32_t power; /* the last state */
	uint8_t bytes[256];
	struct test_device_access access[TEST_DEVICE_ACCESSES];
	uint32_t accesses;
	uint32_t timers; /* calls */
	uint32_t timer[16];
	uint64_t timer_ns[16];
	/* Called with each access of a register; may be NULL. */
	void (*on_write)(struct test_device *device, uint64_t offset, uint64_t value);
};

void test_device_init(struct test_device *device);

#endif
