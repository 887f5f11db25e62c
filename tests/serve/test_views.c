/* SPDX-License-Identifier: MIT */
/*
 * CPU mappings of a client: instructions on its view socket, mapped into its window, replaced when
 * content moves.
 */
#include "raw_client.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void fill(void *data, uint64_t bytes, uint32_t seed)
{
	for (uint64_t i = 0; i < bytes / 4; i++)
		((uint32_t *)data)[i] = seed + (uint32_t)i;
}

static void expect(const void *data, uint64_t bytes, uint32_t seed)
{
	for (uint64_t i = 0; i < bytes / 4; i++)
		assert_int_equal(((const uint32_t *)data)[i], seed + (uint32_t)i);
}

static void a_lock_shows_memory_in_the_window(void **state)
{
	struct served served;
	struct raw raw;
	void *data;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "one");
	D3DKMT_HANDLE device = raw_device(&raw);
	D3DKMT_HANDLE allocation = raw_allocate(&raw, device, 64 * KIB);
	assert_int_equal(raw_lock(&raw, device, allocation, &data), STATUS_SUCCESS);
	assert_true((char *)data >= raw.window &&
		    (char *)data + 64 * KIB <= raw.window + raw.window_bytes);
	assert_true(raw.maps > 0);
	for (uint64_t i = 0; i < 64 * KIB; i++)
		assert_int_equal(((char *)data)[i], 0);
	fill(data, 64 * KIB, 1);
	assert_int_equal(raw_unlock(&raw, device, allocation), STATUS_SUCCESS);
	raw_disconnect(&raw);
	served_stop(&served);
}

/*
 * Uses three times the adapter's memory. All of it passes through video memory and is mapped
 * wherever it is.
 */
static void the_address_does_not_change_when_content_moves(void **state)
{
	enum { COUNT = 12 };
	struct served served;
	struct raw raw;
	struct client_context c;
	D3DKMT_HANDLE from[COUNT], to[COUNT];
	void *data, *first[COUNT];

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "one");
	D3DKMT_HANDLE device = raw_device(&raw);
	raw_context(&raw, device, &c);
	for (uint32_t i = 0; i < COUNT; i++) {
		from[i] = raw_allocate(&raw, device, 1 * MIB);
		to[i] = raw_allocate(&raw, device, 1 * MIB);
		assert_int_equal(raw_lock(&raw, device, from[i], &first[i]), 0);
		fill(first[i], 1 * MIB, i << 24);
		assert_int_equal(raw_unlock(&raw, device, from[i]), 0);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		client_copy(&c, from[i], to[i], 1 * MIB);
		raw_render(&raw, &c);
	}
	uint32_t maps = raw.maps;
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(raw_lock(&raw, device, from[i], &data), 0);
		assert_ptr_equal(data, first[i]);
		expect(data, 1 * MIB, i << 24);
		assert_int_equal(raw_unlock(&raw, device, from[i]), 0);
		assert_int_equal(raw_lock(&raw, device, to[i], &data), 0);
		expect(data, 1 * MIB, i << 24);
		assert_int_equal(raw_unlock(&raw, device, to[i]), 0);
	}
	assert_true(raw.maps > maps);
	raw_disconnect(&raw);
	served_stop(&served);
}

/*
 * Freed addresses are reused: a window of 64 MiB is enough for any number of allocations one after
 * the other.
 */
static void addresses_of_the_window_are_reused(void **state)
{
	struct served served;
	struct raw raw;
	void *data;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open_with(&raw, &served, "one", 64 * MIB);
	D3DKMT_HANDLE device = raw_device(&raw);
	for (uint32_t i = 0; i < 200; i++) {
		D3DKMT_HANDLE allocation = raw_allocate(&raw, device, 1 * MIB);

		assert_int_equal(raw_lock(&raw, device, allocation, &data), 0);
		*(uint32_t *)data = i;
		assert_int_equal(raw_unlock(&raw, device, allocation), 0);
		D3DKMT_DESTROYALLOCATION end = {
			.hDevice = device, .AllocationCount = 1, .phAllocationList = &allocation};
		assert_int_equal(raw_call(&raw, "D3DKMTDestroyAllocation", &end), 0);
	}
	raw_disconnect(&raw);
	served_stop(&served);
}

/* Without a free address a lock fails, and nothing else does. */
static void a_lock_fails_while_the_window_is_full(void **state)
{
	struct served served;
	struct raw raw;
	void *data = NULL;
	uint32_t locked = 0;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open_with(&raw, &served, "one", 2 * MIB);
	D3DKMT_HANDLE device = raw_device(&raw), last = 0;
	NTSTATUS status = STATUS_SUCCESS;
	for (uint32_t i = 0; i < 4 && NT_SUCCESS(status); i++) {
		status = raw_try_allocate(&raw, device, 1 * MIB, &last);
		if (NT_SUCCESS(status))
			status = raw_lock(&raw, device, last, &data);
		locked += NT_SUCCESS(status);
	}
	assert_int_equal(status, STATUS_NO_MEMORY);
	assert_true(locked == 1 || locked == 2);
	D3DKMT_GETDEVICESTATE alive = {.hDevice = device,
				       .StateType = D3DKMT_DEVICESTATE_EXECUTION};
	assert_int_equal(raw_call(&raw, "D3DKMTGetDeviceState", &alive), STATUS_SUCCESS);
	raw_disconnect(&raw);
	served_stop(&served);
}

/* The client makes calls and reads none of its view instructions. */
static void a_client_that_reads_no_instructions_is_disconnected(void **state)
{
	const struct vidmm_client_limits limits = {.unread_bytes = 4096};
	struct served served;
	struct raw raw, other;
	void *data;

	(void)state;
	served_start(&served, &limits, 0);
	raw_open(&raw, &served, "deaf");
	raw_open(&other, &served, "other");
	D3DKMT_HANDLE device = raw_device(&raw);
	int view = raw.view;
	raw.view = -1;
	for (;;) {
		D3DKMT_HANDLE allocation = 0;
		NTSTATUS status = raw_try_allocate(&raw, device, 4 * KIB, &allocation);

		if (status == STATUS_DEVICE_REMOVED)
			break;
		assert_int_equal(status, STATUS_SUCCESS);
		if (raw_lock(&raw, device, allocation, &data) == STATUS_DEVICE_REMOVED)
			break;
	}
	raw.view = view;
	served_await(&served, "does not read its view socket");
	served_await_clients(&served, 1);
	D3DKMT_HANDLE alive = raw_device(&other);
	assert_int_equal(raw_lock(&other, alive, raw_allocate(&other, alive, 4 * KIB), &data), 0);
	raw_close(&raw);
	raw_disconnect(&other);
	served_stop(&served);
}

/* Locks the allocation and returns the view instruction that maps it. */
static int lock_and_see(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation,
			struct vmm_message_view *view)
{
	D3DKMT_LOCK lock = {.hDevice = device, .hAllocation = allocation};
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count = 0;

	raw_ask(raw, raw->channel, "D3DKMTLock", &lock);
	assert_int_equal(raw_await(raw->channel), STATUS_SUCCESS);
	while (!count) {
		assert_int_equal(raw_receive(raw->view, view, sizeof(*view), fds, &count),
				 sizeof(*view));
		raw->views++;
	}
	assert_int_equal(view->what, VMM_VIEW_MAP);
	return fds[0];
}

static int shown(struct raw *raw, D3DKMT_HANDLE device, struct vmm_message_view *view)
{
	int fd = lock_and_see(raw, device, raw_allocate(raw, device, 64 * KIB), view);

	assert_int_equal(view->length, 64 * KIB);
	return fd;
}

/*
 * A client cannot shrink a memory object that it has a descriptor of, because the size is sealed.
 */
static void memory_of_a_client_is_sealed(void **state)
{
	struct served served;
	struct raw raw;
	struct vmm_message_view view;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "one");
	int fd = shown(&raw, raw_device(&raw), &view);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 1 << 30), -1);
	close(fd);
	raw_disconnect(&raw);
	served_stop(&served);
}

/* Returns how many bytes of a part of the file have memory. */
static uint64_t memory_in(int fd, off_t from, off_t end)
{
	uint64_t bytes = 0;
	off_t next;

	while ((from = lseek(fd, from, SEEK_DATA)) >= 0 && from < end) {
		next = lseek(fd, from, SEEK_HOLE);
		next = next < end ? next : end;
		bytes += (uint64_t)(next - from);
		from = next;
	}
	return bytes;
}

/*
 * One small allocation keeps the memory object that contains it, but not the pages that other
 * allocations had there: those are freed before new memory is created for a client.
 */
static void free_pages_are_returned_before_new_memory_is_created(void **state)
{
	struct served served;
	struct raw raw;
	struct vmm_message_view view;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "one");
	D3DKMT_HANDLE device = raw_device(&raw);
	D3DKMT_HANDLE large = raw_allocate(&raw, device, 30 * MIB);
	int fd = lock_and_see(&raw, device, large, &view);
	void *memory =
		mmap(NULL, view.length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)view.offset);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(memory, 1, view.length);
	munmap(memory, view.length);
	const off_t from = (off_t)view.offset, end_of_it = from + (off_t)view.length;
	close(shown(&raw, device, &view));
	assert_true(memory_in(fd, from, end_of_it) >= 30 * MIB);
	D3DKMT_DESTROYALLOCATION end = {
		.hDevice = device, .AllocationCount = 1, .phAllocationList = &large};
	D3DKMT_UNLOCK unlock = {.hDevice = device, .NumAllocations = 1, .phAllocations = &large};
	raw_ask(&raw, raw.channel, "D3DKMTUnlock", &unlock);
	assert_int_equal(raw_await(raw.channel), STATUS_SUCCESS);
	assert_int_equal(raw_call(&raw, "D3DKMTDestroyAllocation", &end), STATUS_SUCCESS);
	assert_true(memory_in(fd, from, end_of_it) >=
		    30 * MIB); /* the next client may get these pages */
	close(lock_and_see(&raw, device, raw_allocate(&raw, device, 60 * MIB), &view));
	assert_true(memory_in(fd, from, end_of_it) <= 4 * MIB);
	close(fd);
	raw_disconnect(&raw);
	served_stop(&served);
}

/*
 * Allocations of one client share the memory objects it may map; those of other clients are never
 * in them.
 */
static void clients_share_no_memory_objects(void **state)
{
	struct served served;
	struct raw raw[2];
	struct vmm_message_view first, second, other;
	struct stat object, same, another;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw[0], &served, "one");
	raw_open(&raw[1], &served, "another");
	D3DKMT_HANDLE device = raw_device(&raw[0]);
	int fds[] = {shown(&raw[0], device, &first), shown(&raw[1], raw_device(&raw[1]), &other),
		     shown(&raw[0], device, &second)};
	assert_int_equal(fstat(fds[0], &object), 0);
	assert_int_equal(fstat(fds[1], &another), 0);
	assert_int_equal(fstat(fds[2], &same), 0);
	assert_int_not_equal(object.st_ino, another.st_ino);
	assert_int_equal(object.st_ino, same.st_ino);
	assert_true(first.offset + first.length <= second.offset ||
		    second.offset + second.length <= first.offset);
	for (uint32_t i = 0; i < 3; i++)
		close(fds[i]);
	raw_disconnect(&raw[0]);
	raw_disconnect(&raw[1]);
	served_stop(&served);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_shows_memory_in_the_window),
		cmocka_unit_test(the_address_does_not_change_when_content_moves),
		cmocka_unit_test(addresses_of_the_window_are_reused),
		cmocka_unit_test(a_lock_fails_while_the_window_is_full),
		cmocka_unit_test(a_client_that_reads_no_instructions_is_disconnected),
		cmocka_unit_test(memory_of_a_client_is_sealed),
		cmocka_unit_test(clients_share_no_memory_objects),
		cmocka_unit_test(free_pages_are_returned_before_new_memory_is_created),
	};

	return cmocka_run_group_tests_name("serve: views", tests, NULL, NULL);
}
