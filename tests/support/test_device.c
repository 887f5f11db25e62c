/* SPDX-License-Identifier: MIT */
#include "test_device.h"

#include <string.h>

static struct test_device_access *record(struct test_device *d, uint32_t bar, uint64_t offset,
					 uint32_t width)
{
	struct test_device_access *access = &d->access[d->accesses % TEST_DEVICE_ACCESSES];

	d->accesses++;
	*access = (struct test_device_access){.bar = bar, .offset = offset, .width = width};
	return access;
}

static int32_t create(void *context, const struct vidmm_device_services *services, void **device)
{
	struct test_device *d = context;

	if (d->create_status)
		return d->create_status;
	d->services = services;
	atomic_fetch_add(&d->created, 1);
	*device = d;
	return 0;
}

static void destroy(void *device)
{
	struct test_device *d = device;

	atomic_fetch_add(&d->destroyed, 1);
	d->services = NULL;
}

static void reset(void *device)
{
	struct test_device *d = device;

	atomic_fetch_add(&d->resets, 1);
	memset(d->bytes, 0, sizeof(d->bytes));
}

static void set_power(void *device, uint32_t state)
{
	struct test_device *d = device;

	atomic_fetch_add(&d->powers, 1);
	d->power = state;
}

static uint64_t bar_read(void *device, uint32_t bar, uint64_t offset, uint32_t width)
{
	struct test_device *d = device;
	uint64_t value = 0;

	for (uint32_t i = 0; i < width; i++)
		value |= (uint64_t)d->bytes[(offset + i) % sizeof(d->bytes)] << (8 * i);
	record(d, bar, offset, width)->value = value;
	return value;
}

static void bar_write(void *device, uint32_t bar, uint64_t offset, uint32_t width, uint64_t value)
{
	struct test_device *d = device;
	struct test_device_access *access = record(d, bar, offset, width);

	access->value = value;
	access->write = 1;
	for (uint32_t i = 0; i < width; i++)
		d->bytes[(offset + i) % sizeof(d->bytes)] = (uint8_t)(value >> (8 * i));
	if (d->on_write)
		d->on_write(d, offset, value);
}

static void timer(void *device, uint32_t number)
{
	struct test_device *d = device;

	if (d->timers < 16) {
		d->timer[d->timers] = number;
		d->timer_ns[d->timers] = d->services->now_ns(d->services->handle);
	}
	d->timers++;
}

void test_device_init(struct test_device *d)
{
	memset(d, 0, sizeof(*d));
	/* One capability, of a vendor, with a length of 16. */
	d->image[0x34] = 0x40;
	memcpy(d->image + 0x40, "\x09\x00\x10\x01", 4);
	d->model = (struct vidmm_device_model){
		.struct_size = sizeof(d->model),
		.version = VIDMM_DEVICE_VERSION,
		.name = "test-device",
		.vendor_id = 0x1234,
		.device_id = 0x5678,
		.subsystem_vendor_id = 0x1AF4,
		.subsystem_id = 0x1100,
		.class_code = 0x038000,
		.revision_id = 3,
		.config_bytes = 4096,
		.config_image = d->image,
		.bar = {[0] = {VIDMM_BAR_MEMORY, VIDMM_BAR_64BIT | VIDMM_BAR_PREFETCHABLE,
			       16u << 20},
			[2] = {VIDMM_BAR_REGISTERS, 0, 65536},
			[3] = {VIDMM_BAR_PORTS, 0, TEST_DEVICE_PORT_COUNT},
			[4] = {VIDMM_BAR_REGISTERS, VIDMM_BAR_64BIT, 4096}},
		.create = create,
		.context = d,
		.destroy = destroy,
		.reset = reset,
		.set_power = set_power,
		.bar_read = bar_read,
		.bar_write = bar_write,
		.timer = timer,
	};
}
