/* SPDX-License-Identifier: MIT */
/*
 * The virtio GPU of examples/devices, driven as a virtio driver does: capabilities, features,
 * queues in contiguous memory, requests, interrupts. Wrong requests get the response of the
 * specification, wrong queues the status NEEDS_RESET.
 */
#include "port_fixture.h"
#include "virtio_gpu.h"

#include <stdlib.h>
#include <string.h>

#define TEST(name)    cmocka_unit_test_setup_teardown(name, setup, port_fixture_teardown)
#define SIZE          16u /* of a queue */
#define AVAIL         0x400u
#define USED          0x800u
#define REQUEST_BYTES 4096u

struct ring {
	struct virtio_desc *desc;
	volatile uint16_t *avail, *used; /* flags, index, entries */
	uint64_t physical;
	uint16_t seen;
};

static struct driver {
	struct port_fixture *f;
	struct vidmm_device_model model;
	struct virtio_gpu_settings settings;
	struct virtio_gpu_display display;
	uint8_t image[256];
	uint8_t *bar;
	uint32_t at[6]; /* offsets of the structures, by type of the capability */
	uint32_t notify_multiplier;
	struct ring ring[2];
	uint8_t *request, *response;
	uint64_t request_physical, response_physical;
	_Atomic uint32_t interrupts, isr;
	uint32_t message;
} v;

/* ---- access ---- */

static uint64_t physical_of(void *pointer)
{
	return (uint64_t)MmGetPhysicalAddress(pointer).QuadPart;
}

static uint32_t common_read(uint32_t offset, uint32_t width)
{
	uint8_t *reg = v.bar + v.at[1] + offset;

	return width == 1   ? READ_REGISTER_UCHAR(reg)
	       : width == 2 ? READ_REGISTER_USHORT((volatile USHORT *)(void *)reg)
			    : READ_REGISTER_ULONG((volatile ULONG *)(void *)reg);
}

static void common_write(uint32_t offset, uint32_t width, uint32_t value)
{
	uint8_t *reg = v.bar + v.at[1] + offset;

	if (width == 1)
		WRITE_REGISTER_UCHAR(reg, (UCHAR)value);
	else if (width == 2)
		WRITE_REGISTER_USHORT((volatile USHORT *)(void *)reg, (USHORT)value);
	else
		WRITE_REGISTER_ULONG((volatile ULONG *)(void *)reg, value);
}

static void config(bool write, ULONG offset, ULONG length, void *bytes)
{
	const DXGKRNL_INTERFACE *s = &v.f->m->services;
	ULONG done = 0;
	NTSTATUS status = write ? s->DxgkCbWriteDeviceSpace(s->DeviceHandle, DXGK_WHICHSPACE_CONFIG,
							    bytes, offset, length, &done)
				: s->DxgkCbReadDeviceSpace(s->DeviceHandle, DXGK_WHICHSPACE_CONFIG,
							   bytes, offset, length, &done);

	assert_int_equal(status, STATUS_SUCCESS);
	assert_int_equal(done, length);
}

static BOOLEAN interrupt_routine(IN_CONST_PVOID adapter, ULONG message)
{
	uint8_t isr = 0;

	(void)adapter;
	v.message = message;
	if (!v.settings.messages) {
		isr = READ_REGISTER_UCHAR(v.bar + v.at[3]);
		if (!isr)
			return FALSE;
	}
	atomic_fetch_or(&v.isr, isr);
	atomic_fetch_add(&v.interrupts, 1);
	return TRUE;
}

/* ---- the driver's start ---- */

static void find_capabilities(void)
{
	uint8_t next, head[16];

	config(false, 0x34, 1, &next);
	while (next) {
		config(false, next, sizeof(head), head);
		if (head[0] == 0x09) {
			assert_in_range(head[3], 1, 5);
			memcpy(&v.at[head[3]], head + 8, 4);
			assert_true(head[3] == 5 || head[4] == VIRTIO_BAR);
			if (head[3] == 2)
				config(false, next + 16u, 4, &v.notify_multiplier);
		}
		next = head[1];
	}
	assert_int_equal(v.notify_multiplier, 4);
}

static void negotiate(uint64_t features)
{
	common_write(VIRTIO_STATUS, 1, 0);
	assert_int_equal(common_read(VIRTIO_STATUS, 1), 0);
	common_write(VIRTIO_STATUS, 1, VIRTIO_ACKNOWLEDGE | VIRTIO_DRIVER);
	for (uint32_t i = 0; i < 2; i++) {
		common_write(VIRTIO_DRIVER_FEATURE_SELECT, 4, i);
		common_write(VIRTIO_DRIVER_FEATURE, 4, (uint32_t)(features >> (32 * i)));
	}
	common_write(VIRTIO_STATUS, 1, VIRTIO_ACKNOWLEDGE | VIRTIO_DRIVER | VIRTIO_FEATURES_OK);
}

static void set_up_queue(uint32_t number)
{
	struct ring *ring = &v.ring[number];
	uint64_t address[3] = {ring->physical, ring->physical + AVAIL, ring->physical + USED};

	memset(ring->desc, 0, 4096);
	ring->seen = 0;
	common_write(VIRTIO_QUEUE_SELECT, 2, number);
	assert_int_equal(common_read(VIRTIO_QUEUE_SIZE, 2), VIRTIO_QUEUE_MAX);
	common_write(VIRTIO_QUEUE_SIZE, 2, SIZE);
	for (uint32_t i = 0; i < 3; i++) {
		common_write(VIRTIO_QUEUE_DESC + 8 * i, 4, (uint32_t)address[i]);
		common_write(VIRTIO_QUEUE_DESC + 8 * i + 4, 4, (uint32_t)(address[i] >> 32));
	}
	common_write(VIRTIO_QUEUE_VECTOR, 2, number + 1);
	common_write(VIRTIO_QUEUE_ENABLE, 2, 1);
}

/* Resets the device and sets it up again. */
static void start_driver(void)
{
	negotiate(VIRTIO_F_VERSION_1);
	assert_true(common_read(VIRTIO_STATUS, 1) & VIRTIO_FEATURES_OK);
	common_write(VIRTIO_CONFIG_VECTOR, 2, 0);
	set_up_queue(0);
	set_up_queue(1);
	common_write(VIRTIO_STATUS, 1, 15);
	atomic_store(&v.isr, 0);
	atomic_store(&v.interrupts, 0);
}

static void *contiguous(size_t bytes, uint64_t *physical)
{
	PHYSICAL_ADDRESS highest = {.QuadPart = -1};
	void *memory = MmAllocateContiguousMemory(bytes, highest);

	assert_non_null(memory);
	memset(memory, 0, bytes);
	*physical = physical_of(memory);
	return memory;
}

static void start(struct port_fixture *f, uint32_t messages)
{
	PHYSICAL_ADDRESS bar;

	v.settings.messages = messages;
	virtio_gpu_describe(&v.settings, v.image, &v.model);
	port_fixture_run(f);
	bar = f->m->device_info.TranslatedResourceList->List[0]
		      .PartialResourceList.PartialDescriptors[0]
		      .u.Memory.Start;
	v.bar = MmMapIoSpace(bar, VIRTIO_BAR_BYTES, MmNonCached);
	assert_non_null(v.bar);
	find_capabilities();
	for (uint32_t i = 0; i < 2; i++) {
		v.ring[i].desc = contiguous(4096, &v.ring[i].physical);
		v.ring[i].avail = (volatile uint16_t *)((char *)v.ring[i].desc + AVAIL);
		v.ring[i].used = (volatile uint16_t *)((char *)v.ring[i].desc + USED);
	}
	v.request = contiguous(REQUEST_BYTES, &v.request_physical);
	v.response = contiguous(REQUEST_BYTES, &v.response_physical);
	start_driver();
}

static void stop(struct port_fixture *f)
{
	MmUnmapIoSpace(v.bar, VIRTIO_BAR_BYTES);
	MmFreeContiguousMemory(v.ring[0].desc);
	MmFreeContiguousMemory(v.ring[1].desc);
	MmFreeContiguousMemory(v.request);
	MmFreeContiguousMemory(v.response);
	port_fixture_stop(f);
	assert_null(v.display.pixels);
	assert_int_equal(f->violations, 0);
}

static int setup(void **state)
{
	int result = port_fixture_setup(state);
	struct port_fixture *f = *state;

	memset(&v, 0, sizeof(v));
	v.f = f;
	v.settings.display = &v.display;
	f->m->settings.table.DxgkDdiInterruptRoutine = interrupt_routine;
	f->m->settings.segment[0].flags = 0; /* the device has no memory BAR */
	f->options.bar_count = 0;
	f->options.device_model = &v.model;
	return result;
}

/* ---- requests ---- */

static void make_available(uint32_t queue, uint16_t head)
{
	struct ring *ring = &v.ring[queue];
	uint16_t index = ring->avail[1];

	ring->avail[2 + index % SIZE] = head;
	ring->avail[1] = (uint16_t)(index + 1);
	WRITE_REGISTER_USHORT(
		(volatile USHORT *)(void *)(v.bar + v.at[2] + queue * v.notify_multiplier),
		(USHORT)queue);
	vmm_os_settle(v.f->os);
}

/* Sends the first `bytes` of the request; returns the type of the response, 0: none came. */
static uint32_t send(uint32_t queue, uint32_t bytes, uint32_t room)
{
	struct ring *ring = &v.ring[queue];
	const struct virtio_gpu_header *answer = (const void *)v.response;

	memset(v.response, 0, REQUEST_BYTES);
	ring->desc[0] = (struct virtio_desc){v.request_physical, bytes, VIRTIO_DESC_NEXT, 1};
	ring->desc[1] = (struct virtio_desc){v.response_physical, room, VIRTIO_DESC_WRITE, 0};
	make_available(queue, 0);
	if (ring->used[1] == ring->seen)
		return 0;
	assert_int_equal((uint16_t)(ring->used[1] - ring->seen), 1);
	ring->seen = ring->used[1];
	return answer->type;
}

#define SEND(...)                                                \
	(memset(v.request, 0, REQUEST_BYTES),                    \
	 memcpy(v.request, &(__VA_ARGS__), sizeof(__VA_ARGS__)), \
	 send(VIRTIO_GPU_CONTROL_QUEUE, sizeof(__VA_ARGS__), REQUEST_BYTES))

static uint32_t create(uint32_t id, uint32_t format, uint32_t width, uint32_t height)
{
	struct virtio_gpu_create c = {
		{.type = VIRTIO_GPU_RESOURCE_CREATE_2D}, id, format, width, height};

	return SEND(c);
}

static uint32_t of_resource(uint32_t type, uint32_t id)
{
	struct virtio_gpu_resource_id c = {{.type = type}, id, 0};

	return SEND(c);
}

static uint32_t set_scanout(uint32_t scanout, uint32_t id, struct virtio_gpu_rect rect)
{
	struct virtio_gpu_scanout c = {{.type = VIRTIO_GPU_SET_SCANOUT}, rect, scanout, id};

	return SEND(c);
}

static uint32_t flush(uint32_t id, struct virtio_gpu_rect rect)
{
	struct virtio_gpu_flush c = {{.type = VIRTIO_GPU_RESOURCE_FLUSH}, rect, id, 0};

	return SEND(c);
}

static uint32_t transfer(uint32_t id, struct virtio_gpu_rect rect, uint64_t offset)
{
	struct virtio_gpu_transfer c = {
		{.type = VIRTIO_GPU_TRANSFER_TO_HOST_2D}, rect, offset, id, 0};

	return SEND(c);
}

struct attach {
	struct virtio_gpu_backing head;
	struct virtio_gpu_entry entry[3];
};

static uint32_t attach(uint32_t id, uint32_t entries, const struct virtio_gpu_entry entry[3])
{
	struct attach c = {.head = {{.type = VIRTIO_GPU_RESOURCE_ATTACH_BACKING}, id, entries}};

	memcpy(c.entry, entry, sizeof(c.entry));
	return SEND(c);
}

/* ---- tests ---- */

static void the_device_is_found_and_negotiates(void **state)
{
	struct port_fixture *f = *state;
	uint32_t id;
	uint64_t features = 0;

	start(f, 0);
	config(false, 0, 4, &id);
	assert_int_equal(id, 0x10501AF4);
	for (uint32_t i = 0; i < 2; i++) {
		common_write(VIRTIO_DEVICE_FEATURE_SELECT, 4, i);
		features |= (uint64_t)common_read(VIRTIO_DEVICE_FEATURE, 4) << (32 * i);
	}
	assert_true(features == VIRTIO_F_VERSION_1);
	common_write(VIRTIO_DEVICE_FEATURE_SELECT, 4, 2);
	assert_int_equal(common_read(VIRTIO_DEVICE_FEATURE, 4), 0);
	assert_int_equal(common_read(VIRTIO_NUM_QUEUES, 2), 2);
	assert_int_equal(common_read(VIRTIO_STATUS, 1), 15);
	assert_int_equal(READ_REGISTER_ULONG((volatile ULONG *)(void *)(v.bar + v.at[4] + 8)), 1);
	/* A feature that is not offered, and a driver of the time before version 1. */
	negotiate(VIRTIO_F_VERSION_1 | 1);
	assert_false(common_read(VIRTIO_STATUS, 1) & VIRTIO_FEATURES_OK);
	negotiate(0);
	assert_false(common_read(VIRTIO_STATUS, 1) & VIRTIO_FEATURES_OK);
	assert_nothing_found(f);
	stop(f);
}

static void the_bar_is_accessible_in_configuration_space(void **state)
{
	struct port_fixture *f = *state;
	struct {
		uint8_t bar, id, padding[2];
		uint32_t offset, length;
	} window = {VIRTIO_BAR, 0, {0}, VIRTIO_NUM_QUEUES, 2};
	uint8_t next, head[4];
	uint32_t data = 0;

	start(f, 0);
	for (config(false, 0x34, 1, &next); next; next = head[1]) {
		config(false, next, 4, head);
		if (head[3] == 5)
			break;
	}
	assert_true(next);
	config(true, next + 4u, sizeof(window), &window);
	config(false, next + 16u, 4, &data);
	assert_int_equal(data, 2);
	window.offset = VIRTIO_QUEUE_SELECT;
	config(true, next + 4u, sizeof(window), &window);
	data = 1;
	config(true, next + 16u, 4, &data);
	assert_int_equal(common_read(VIRTIO_QUEUE_SELECT, 2), 1);
	window.offset = 0xFFFFFFFE; /* not in the BAR: the data is only kept */
	config(true, next + 4u, sizeof(window), &window);
	config(true, next + 16u, 4, &data);
	stop(f);
}

static void display_info_names_the_mode(void **state)
{
	struct port_fixture *f = *state;
	const struct virtio_gpu_display_info *info;
	struct virtio_gpu_header c = {.type = VIRTIO_GPU_GET_DISPLAY_INFO,
				      .flags = VIRTIO_GPU_FLAG_FENCE,
				      .fence = 0x123456789};

	start(f, 0);
	assert_int_equal(SEND(c), VIRTIO_GPU_OK_DISPLAY_INFO);
	info = (const void *)v.response;
	assert_int_equal(info->mode[0].rect.width, 1024);
	assert_int_equal(info->mode[0].enabled, 1);
	assert_int_equal(info->mode[1].enabled, 0);
	assert_true(info->header.flags == 1 && info->header.fence == 0x123456789);
	assert_int_equal(atomic_load(&v.interrupts), 1);
	assert_int_equal(atomic_load(&v.isr), VIRTIO_ISR_QUEUE);
	v.ring[0].avail[0] = VIRTIO_NO_INTERRUPT;
	assert_int_equal(SEND(c), VIRTIO_GPU_OK_DISPLAY_INFO);
	assert_int_equal(atomic_load(&v.interrupts), 1);
	assert_nothing_found(f);
	stop(f);
}

/* The backing is three pieces of two allocations, not in order. */
static void a_picture_is_transferred_and_shown(void **state)
{
	enum { WIDTH = 64, HEIGHT = 48, BYTES = WIDTH * HEIGHT * 4, FIRST = 1000, SECOND = 5000 };
	const struct virtio_gpu_rect all = {0, 0, WIDTH, HEIGHT}, part = {10, 20, 7, 3};
	struct port_fixture *f = *state;
	uint64_t a, b;
	uint8_t *low, *high, *expected = malloc(BYTES);

	start(f, 0);
	low = contiguous(16384, &a);
	high = contiguous(16384, &b);
	for (uint32_t i = 0; i < BYTES; i++)
		expected[i] = (uint8_t)(i * 7 + i / 256);
	memcpy(high + 64, expected, FIRST);
	memcpy(low, expected + FIRST, SECOND);
	memcpy(high + 8192, expected + FIRST + SECOND, BYTES - FIRST - SECOND);
	assert_int_equal(create(1, VIRTIO_GPU_FORMAT_B8G8R8X8, WIDTH, HEIGHT),
			 VIRTIO_GPU_OK_NODATA);
	assert_int_equal(
		attach(1, 3,
		       (struct virtio_gpu_entry[3]){{b + 64, FIRST, 0},
						    {a, SECOND, 0},
						    {b + 8192, BYTES - FIRST - SECOND, 0}}),
		VIRTIO_GPU_OK_NODATA);
	assert_int_equal(set_scanout(0, 1, all), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(v.display.width, WIDTH);
	assert_int_equal(transfer(1, all, 0), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(v.display.pixels[5], 0); /* not visible before the flush */
	assert_int_equal(flush(1, all), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(v.display.flushes, 1);
	assert_memory_equal(v.display.pixels, expected, BYTES);
	/* A part: only its pixels change. */
	memset(low, 0xEE, SECOND);
	assert_int_equal(transfer(1, part, (20 * WIDTH + 10) * 4), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(flush(1, all), VIRTIO_GPU_OK_NODATA);
	for (uint32_t y = 20; y < 23; y++)
		memset(expected + (y * WIDTH + 10) * 4, 0xEE, 7 * 4);
	assert_memory_equal(v.display.pixels, expected, BYTES);
	/* A scanout of a part of the resource. */
	assert_int_equal(set_scanout(0, 1, (struct virtio_gpu_rect){8, 16, 16, 16}),
			 VIRTIO_GPU_OK_NODATA);
	assert_int_equal(flush(1, all), VIRTIO_GPU_OK_NODATA);
	for (uint32_t y = 0; y < 16; y++)
		assert_memory_equal(v.display.pixels + y * 64,
				    expected + ((y + 16) * WIDTH + 8) * 4, 64);
	assert_int_equal(of_resource(VIRTIO_GPU_RESOURCE_UNREF, 1), VIRTIO_GPU_OK_NODATA);
	assert_null(v.display.pixels);
	assert_nothing_found(f);
	MmFreeContiguousMemory(low);
	MmFreeContiguousMemory(high);
	free(expected);
	stop(f);
}

static void wrong_requests_get_errors(void **state)
{
	const struct virtio_gpu_rect all = {0, 0, 8, 8}, wide = {4, 0, 5, 8};
	const struct virtio_gpu_rect wraps = {0xFFFFFFFF, 0, 2, 1}, empty = {0, 0, 0, 8};
	const struct virtio_gpu_entry none[3] = {{0}};
	struct virtio_gpu_entry small[3] = {{0}};
	struct port_fixture *f = *state;
	struct virtio_gpu_header unknown = {.type = 0x999}, move = {.type = VIRTIO_GPU_MOVE_CURSOR};

	start(f, 0);
	small[0] = (struct virtio_gpu_entry){v.request_physical, 16, 0};
	assert_int_equal(SEND(unknown), VIRTIO_GPU_ERR_UNSPEC);
	assert_int_equal(create(0, 1, 8, 8), VIRTIO_GPU_ERR_INVALID_RESOURCE_ID);
	assert_int_equal(create(1, 5, 8, 8), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(create(1, 1, 0, 8), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(create(1, 1, 0xFFFFFFFF, 0xFFFFFFFF), VIRTIO_GPU_ERR_OUT_OF_MEMORY);
	assert_int_equal(create(1, 1, 65536, 65536), VIRTIO_GPU_ERR_OUT_OF_MEMORY);
	assert_int_equal(create(1, 1, 8, 8), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(create(1, 1, 8, 8), VIRTIO_GPU_ERR_INVALID_RESOURCE_ID);
	assert_int_equal(transfer(1, all, 0), VIRTIO_GPU_ERR_UNSPEC); /* no backing */
	assert_int_equal(attach(2, 1, none), VIRTIO_GPU_ERR_INVALID_RESOURCE_ID);
	assert_int_equal(attach(1, 4, none), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(attach(1, 0xFFFFFFFF, none), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(attach(1, 1, small), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(attach(1, 1, small), VIRTIO_GPU_ERR_UNSPEC);
	/* The backing ends before the rectangle. */
	assert_int_equal(transfer(1, all, 0), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(transfer(1, wide, 0), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(transfer(1, wraps, 0), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(transfer(1, empty, 0), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(transfer(1, all, UINT64_MAX), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(set_scanout(1, 1, all), VIRTIO_GPU_ERR_INVALID_SCANOUT_ID);
	assert_int_equal(set_scanout(0, 9, all), VIRTIO_GPU_ERR_INVALID_RESOURCE_ID);
	assert_int_equal(set_scanout(0, 1, wide), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(flush(9, all), VIRTIO_GPU_ERR_INVALID_RESOURCE_ID);
	assert_int_equal(flush(1, wraps), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(of_resource(VIRTIO_GPU_RESOURCE_DETACH_BACKING, 1), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(of_resource(VIRTIO_GPU_RESOURCE_DETACH_BACKING, 1), VIRTIO_GPU_ERR_UNSPEC);
	assert_int_equal(of_resource(VIRTIO_GPU_RESOURCE_UNREF, 3),
			 VIRTIO_GPU_ERR_INVALID_RESOURCE_ID);
	assert_int_equal(of_resource(VIRTIO_GPU_GET_CAPSET_INFO, 0),
			 VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(SEND(move), VIRTIO_GPU_ERR_INVALID_PARAMETER); /* too short */
	*(uint32_t *)(void *)v.request = VIRTIO_GPU_RESOURCE_CREATE_2D;
	assert_int_equal(send(0, 39, REQUEST_BYTES), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_int_equal(send(0, 0, REQUEST_BYTES), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_nothing_found(f);
	/* No memory behind the backing: the DMA is refused. */
	assert_int_equal(attach(1, 1, (struct virtio_gpu_entry[3]){{(uint64_t)1 << 45, 4096, 0}}),
			 VIRTIO_GPU_OK_NODATA);
	assert_int_equal(transfer(1, all, 0), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_finding(f, "Q-425", "DMA reads");
	assert_int_equal(send(0, 24, 8), VIRTIO_GPU_ERR_INVALID_PARAMETER);
	assert_finding(f, "Q-420", "no room for its response");
	stop(f);
}

/* The queue is broken by `text`, until the driver resets the device. */
static void expect_broken(struct port_fixture *f, const char *text)
{
	vmm_os_settle(f->os);
	assert_true(common_read(VIRTIO_STATUS, 1) & VIRTIO_NEEDS_RESET);
	assert_true(atomic_load(&v.isr) & VIRTIO_ISR_CONFIG);
	assert_finding(f, "Q-420", text);
	assert_int_equal(v.ring[0].used[1], v.ring[0].seen);
	start_driver();
	assert_int_equal(create(1, 1, 8, 8), VIRTIO_GPU_OK_NODATA);
}

static void wrong_queues_need_a_reset(void **state)
{
	struct port_fixture *f = *state;
	struct virtio_desc *desc;
	uint64_t memory;

	start(f, 0);
	desc = v.ring[0].desc;
	memory = v.request_physical;
	make_available(0, SIZE);
	expect_broken(f, "a descriptor index is not below the queue size");
	desc[0] = (struct virtio_desc){memory, 24, VIRTIO_DESC_NEXT, 99};
	make_available(0, 0);
	expect_broken(f, "a descriptor index is not below the queue size");
	desc[0] = (struct virtio_desc){memory, 24, VIRTIO_DESC_NEXT, 0};
	make_available(0, 0);
	expect_broken(f, "a chain of descriptors does not end");
	desc[0] = (struct virtio_desc){memory, 24, VIRTIO_DESC_NEXT | VIRTIO_DESC_WRITE, 1};
	desc[1] = (struct virtio_desc){memory, 24, 0, 0};
	make_available(0, 0);
	expect_broken(f, "a readable descriptor follows a writable one");
	desc[0] = (struct virtio_desc){memory, 24, 4, 0};
	make_available(0, 0);
	expect_broken(f, "flags that were not negotiated");
	desc[0] = (struct virtio_desc){memory, 0xFFFFFFFF, 0, 0};
	make_available(0, 0);
	expect_broken(f, "longer than the device accepts");
	desc[0] = (struct virtio_desc){4096, 24, 0, 0};
	make_available(0, 0);
	expect_broken(f, "an address that is no memory");
	v.ring[0].avail[1] = (uint16_t)(v.ring[0].avail[1] + SIZE + 1);
	make_available(0, 0);
	expect_broken(f, "more than the queue size ahead");
	negotiate(VIRTIO_F_VERSION_1);
	v.ring[0].physical += (uint64_t)1 << 40; /* no memory */
	set_up_queue(0);
	v.ring[0].physical -= (uint64_t)1 << 40;
	common_write(VIRTIO_STATUS, 1, 15);
	make_available(0, 0);
	expect_broken(f, "the available ring is no memory");
	stop(f);
}

static void messages_replace_the_line(void **state)
{
	struct port_fixture *f = *state;
	struct virtio_gpu_header c = {.type = VIRTIO_GPU_GET_DISPLAY_INFO};

	start(f, 3);
	assert_int_equal(common_read(VIRTIO_QUEUE_VECTOR, 2), 2);
	assert_int_equal(SEND(c), VIRTIO_GPU_OK_DISPLAY_INFO);
	assert_int_equal(atomic_load(&v.interrupts), 1);
	assert_int_equal(v.message, 1); /* the vector of queue 0 */
	make_available(0, SIZE);
	assert_int_equal(v.message, 0); /* that of the configuration */
	common_write(VIRTIO_QUEUE_VECTOR, 2, 3);
	assert_int_equal(common_read(VIRTIO_QUEUE_VECTOR, 2), VIRTIO_NO_VECTOR);
	stop(f);
}

static void the_cursor_has_a_queue(void **state)
{
	struct port_fixture *f = *state;
	struct virtio_gpu_cursor c = {{.type = VIRTIO_GPU_UPDATE_CURSOR}, 0, 30, 40, 0, 5, 1, 1, 0};

	start(f, 0);
	assert_int_equal(create(5, 1, 64, 64), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(SEND(c), VIRTIO_GPU_ERR_UNSPEC); /* on the control queue */
	assert_int_equal(send(VIRTIO_GPU_CURSOR_QUEUE, sizeof(c), 24), VIRTIO_GPU_OK_NODATA);
	assert_int_equal(v.display.cursor_resource, 5);
	assert_int_equal(v.display.cursor_y, 40);
	c.header.type = VIRTIO_GPU_MOVE_CURSOR;
	c.x = 31;
	memcpy(v.request, &c, sizeof(c));
	assert_int_equal(send(VIRTIO_GPU_CURSOR_QUEUE, sizeof(c), 0), 0); /* without an answer */
	assert_int_equal(v.ring[1].used[1], 2);
	assert_int_equal(v.display.cursor_x, 31);
	assert_int_equal(v.display.cursor_updates, 1);
	c.resource = 6;
	c.header.type = VIRTIO_GPU_UPDATE_CURSOR;
	memcpy(v.request, &c, sizeof(c));
	assert_int_equal(send(VIRTIO_GPU_CURSOR_QUEUE, sizeof(c), 24),
			 VIRTIO_GPU_ERR_INVALID_RESOURCE_ID);
	stop(f);
}

static uint32_t random_word(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Small numbers, so that many of them are valid, and some that are far out of range. */
static uint32_t random_number(uint64_t *seed)
{
	uint32_t word = random_word(seed);

	return word % 8 ? word / 8 % 5 : word;
}

static void random_requests_end_in_an_answer_or_a_reset(void **state)
{
	struct port_fixture *f = *state;
	uint32_t answers = 0, resets = 0, good = 0;
	uint64_t seed = 1;

	start(f, 0);
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t *word = (uint32_t *)(void *)v.request;
		uint32_t type;

		for (uint32_t j = 0; j < 64; j++)
			word[j] = random_number(&seed);
		word[0] = 0x100 + random_word(&seed) % 10;
		type = send(random_word(&seed) % 8 == 0, random_word(&seed) % 128,
			    random_word(&seed) % 512);
		answers += type != 0;
		good += type == VIRTIO_GPU_OK_NODATA;
		if (i % 16 == 0) { /* a chain of random descriptors */
			for (uint32_t j = 0; j < SIZE; j++)
				v.ring[0].desc[j] = (struct virtio_desc){
					v.request_physical + random_number(&seed),
					random_word(&seed) % 64, random_word(&seed) % 4,
					(uint16_t)(random_word(&seed) % (SIZE + 1))};
			make_available(0, (uint16_t)(random_word(&seed) % SIZE));
			v.ring[0].seen = v.ring[0].used[1];
		}
		if (common_read(VIRTIO_STATUS, 1) & VIRTIO_NEEDS_RESET) {
			resets++;
			start_driver();
		}
	}
	assert_true(answers > 2000 && resets > 20 && good > 20);
	f->violations = 0;
	stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_device_is_found_and_negotiates),
		TEST(the_bar_is_accessible_in_configuration_space),
		TEST(display_info_names_the_mode),
		TEST(a_picture_is_transferred_and_shown),
		TEST(wrong_requests_get_errors),
		TEST(wrong_queues_need_a_reset),
		TEST(messages_replace_the_line),
		TEST(the_cursor_has_a_queue),
		TEST(random_requests_end_in_an_answer_or_a_reset),
	};

	return cmocka_run_group_tests_name("port_virtio", tests, NULL, NULL);
}
