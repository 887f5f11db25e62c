/* SPDX-License-Identifier: MIT */
/* Client objects: an out-of-process client may map them, and no other part of the memory object. */
#include <support/test.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../aborts.h"
#include "os/os.h"

#define KIB  1024u
#define SIZE (64u * KIB)

/* A viewer that records what it is given and maps nothing. */
struct notes {
	struct vmm_os_viewer viewer;
	uint32_t maps, unmaps, releases;
	int fd; /* its own */
	uint64_t offset, length;
	bool writable;
};

static vmm_status reserve(struct vmm_os_viewer *viewer, uint64_t size_bytes, char **address)
{
	(void)viewer;
	(void)size_bytes;
	*address = (char *)(uintptr_t)0x7000000000; /* an address that no view has */
	return VMM_OK;
}

static vmm_status map(struct vmm_os_viewer *viewer, char *address, uint64_t length, int fd,
		      uint64_t offset, bool writable)
{
	struct notes *n = vmm_container_of(viewer, struct notes, viewer);

	(void)address;
	if (n->fd >= 0)
		close(n->fd);
	n->fd = dup(fd);
	n->maps++;
	n->offset = offset;
	n->length = length;
	n->writable = writable;
	return VMM_OK;
}

static void unmap(struct vmm_os_viewer *viewer, char *address, uint64_t length)
{
	(void)address;
	(void)length;
	vmm_container_of(viewer, struct notes, viewer)->unmaps++;
}

static void release(struct vmm_os_viewer *viewer, char *address, uint64_t size_bytes)
{
	(void)address;
	(void)size_bytes;
	vmm_container_of(viewer, struct notes, viewer)->releases++;
}

static vmm_status freeze(struct vmm_os_viewer *viewer, char *address, uint64_t length)
{
	(void)viewer;
	(void)address;
	(void)length;
	return VMM_NOT_SUPPORTED;
}

static const struct vmm_os_viewer_ops ops = {.reserve = reserve,
					     .map = map,
					     .unmap = unmap,
					     .release = release,
					     .freeze = freeze,
					     .thaw = unmap};

static int setup(void **state)
{
	const struct vmm_os_config config = {.kind = VMM_OS_LINUX};
	struct vmm_os *os;

	assert_int_equal(vmm_os_create(&config, &os), VMM_OK);
	*state = os;
	return 0;
}

static int teardown(void **state)
{
	vmm_os_destroy(*state);
	return 0;
}

static void begin(struct vmm_os *os, struct notes *n, struct vmm_os_view *view,
		  struct vmm_os_memory *memory)
{
	*n = (struct notes){.viewer = {.ops = &ops}, .fd = -1};
	assert_int_equal(vmm_os_memory_create(os, "arena", 4 * SIZE, memory), VMM_OK);
	assert_int_equal(vmm_os_view_reserve_for(os, &n->viewer, SIZE, view), VMM_OK);
}

static void finish(struct notes *n, struct vmm_os_view *view, struct vmm_os_memory *memory)
{
	vmm_os_view_release(view);
	assert_int_equal(n->releases, 1);
	vmm_os_memory_destroy(memory);
	if (n->fd >= 0)
		close(n->fd);
}

static void cover(struct vmm_os_memory *memory, uint64_t offset, uint64_t length, uint64_t owner,
		  bool expected_fresh)
{
	bool fresh = !expected_fresh;

	assert_int_equal(vmm_os_client_object_cover(memory, offset, length, owner, &fresh), VMM_OK);
	assert_int_equal(fresh, expected_fresh);
	assert_true(vmm_os_client_object_is_owned_by(memory, offset, length, owner));
}

static void assert_all(const char *bytes, uint64_t length, char value)
{
	for (uint64_t i = 0; i < length; i++)
		assert_int_equal(bytes[i], value);
}

static void a_client_object_is_zero_sealed_and_covers_only_its_range(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;
	char bytes[8];

	begin(*state, &n, &view, &memory);
	memset(memory.base, 'o', memory.size_bytes); /* of other owners */
	assert_true(vmm_os_client_object_is_owned_by(&memory, 0, 4 * SIZE, 0));
	cover(&memory, SIZE, SIZE, vmm_os_viewer_owner(&n.viewer), true);
	assert_int_equal(vmm_os_view_map(&view, 0, &memory, SIZE, SIZE), VMM_OK);
	assert_int_equal(n.maps, 1);
	assert_true(n.writable && n.offset == SIZE && n.length == SIZE);
	/* It has no other pages than those of its range. */
	assert_int_equal(lseek(n.fd, 0, SEEK_END), 4 * SIZE);
	for (uint32_t i = 0; i < 4 * SIZE; i += sizeof(bytes)) {
		assert_int_equal(pread(n.fd, bytes, sizeof(bytes), i), sizeof(bytes));
		assert_memory_equal(bytes, "\0\0\0\0\0\0\0\0", sizeof(bytes));
	}
	/* The permanent mapping shows the same memory; neighboring memory is unchanged. */
	memcpy(memory.base + SIZE + 16, "mine", 4);
	assert_int_equal(pread(n.fd, bytes, 4, SIZE + 16), 4);
	assert_memory_equal(bytes, "mine", 4);
	assert_int_equal(memory.base[SIZE - 1], 'o');
	assert_int_equal(memory.base[2 * SIZE], 'o');
	assert_int_equal(ftruncate(n.fd, 0), -1);
	assert_int_equal(ftruncate(n.fd, 8 * SIZE), -1);
	assert_int_equal(fcntl(n.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	/* A client that keeps the descriptor has memory that is not reused. */
	assert_int_equal(vmm_os_client_object_uncover(&memory, 0, 4 * SIZE), VMM_OK);
	assert_true(vmm_os_client_object_is_owned_by(&memory, 0, 4 * SIZE, 0));
	assert_int_equal(memory.base[SIZE + 16], 'o');
	memcpy(memory.base + SIZE, "secret", 6);
	assert_int_equal(pread(n.fd, bytes, 6, SIZE), 6);
	assert_memory_equal(bytes, "\0\0\0\0\0\0", 6);
	assert_int_equal(pwrite(n.fd, "evil", 4, SIZE), 4);
	assert_memory_equal(memory.base + SIZE, "secret", 6);
	finish(&n, &view, &memory);
}

/* Ids of viewers that do not exist. */
enum { MINE = 1000001, OTHERS = 1000002 };

static void expect_run(const struct vmm_os_memory *memory, uint64_t offset, uint64_t end,
		       uint64_t owner, uint64_t expected_end, bool expected)
{
	bool is = !expected;

	assert_int_equal(vmm_os_client_object_owner_run(memory, offset, end - offset, owner, &is),
			 expected_end - offset);
	assert_int_equal(is, expected);
}

/*
 * The owner of each part of a range: an owner's id, 0 for no owner, or the id of a viewer that has
 * ended, which equals neither.
 */
static void the_owner_of_each_part_of_a_range_is_known(void **state)
{
	const uint64_t small = SIZE / 4, odd = 100;
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	expect_run(&memory, 0, 4 * SIZE, 0, 4 * SIZE, true);
	expect_run(&memory, 0, 4 * SIZE, MINE, 4 * SIZE, false);
	cover(&memory, SIZE, SIZE, MINE, true);
	cover(&memory, 2 * SIZE, SIZE, OTHERS, true);
	/* a second use of the same part, not a separate part */
	cover(&memory, SIZE, small, MINE, false);
	expect_run(&memory, 0, 4 * SIZE, MINE, SIZE, false);
	expect_run(&memory, 0, 4 * SIZE, 0, SIZE, true);
	expect_run(&memory, SIZE, 4 * SIZE, MINE, 2 * SIZE, true);
	expect_run(&memory, SIZE, 4 * SIZE, 0, 3 * SIZE, false);
	expect_run(&memory, SIZE, 2 * SIZE - odd, MINE, 2 * SIZE - odd, true);
	expect_run(&memory, 2 * SIZE, 4 * SIZE, MINE, 4 * SIZE, false);
	vmm_os_client_object_end_owner(&memory, OTHERS);
	expect_run(&memory, 2 * SIZE, 4 * SIZE, OTHERS, 4 * SIZE, false);
	expect_run(&memory, 2 * SIZE, 4 * SIZE, 0, 3 * SIZE, false);
	expect_run(&memory, 3 * SIZE, 4 * SIZE, 0, 4 * SIZE, true);
	vmm_os_client_object_release(&memory, SIZE, small, true);
	vmm_os_client_object_release(&memory, SIZE, 2 * SIZE, true);
	finish(&n, &view, &memory);
}

static void content_is_retained_for_the_owner_only(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	cover(&memory, 0, SIZE, MINE, true);
	memset(memory.base, 'm', SIZE);
	vmm_os_client_object_release(&memory, 0, SIZE, true);
	/* Half of the range belongs to it already, and the new half is zero. */
	cover(&memory, SIZE / 2, SIZE, MINE, false);
	assert_all(memory.base, SIZE, 'm');
	assert_all(memory.base + SIZE, SIZE / 2, 0);
	vmm_os_client_object_release(&memory, SIZE / 2, SIZE, true);
	/* Another owner's part in the middle is new and zero; the content around it stays. */
	cover(&memory, SIZE / 4, SIZE, OTHERS, true);
	assert_all(memory.base + SIZE / 4, SIZE, 0);
	assert_true(vmm_os_client_object_is_owned_by(&memory, 0, SIZE / 4, MINE));
	assert_false(vmm_os_client_object_is_owned_by(&memory, 0, SIZE / 2, MINE));
	assert_false(vmm_os_client_object_is_owned_by(&memory, 0, SIZE / 4, OTHERS));
	assert_false(vmm_os_client_object_is_owned_by(&memory, 0, 4 * SIZE, 0));
	memset(memory.base + SIZE / 4, 'x', SIZE);
	cover(&memory, 0, SIZE / 4, MINE, false);
	assert_all(memory.base, SIZE / 4, 'm');
	vmm_os_client_object_release(&memory, 0, SIZE / 4, true);
	vmm_os_client_object_release(&memory, SIZE / 4, SIZE, true);
	assert_int_equal(vmm_os_client_object_uncover(&memory, 0, 4 * SIZE), VMM_OK);
	assert_all(memory.base, 4 * SIZE, 0);
	finish(&n, &view, &memory);
}

static void no_content_of_an_ended_viewer_is_retained(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	cover(&memory, 0, SIZE, MINE, true);
	cover(&memory, SIZE, SIZE, MINE, true);
	cover(&memory, 2 * SIZE, SIZE, OTHERS, true);
	memset(memory.base, 'm', 2 * SIZE);
	vmm_os_client_object_release(&memory, 0, SIZE, true);
	assert_false(vmm_os_client_object_is_surplus(&memory, 0, 3 * SIZE));
	vmm_os_client_object_end_owner(&memory, MINE);
	/* A part in use exists until it is left, and then has no owner. */
	assert_all(memory.base, SIZE, 0);
	assert_all(memory.base + SIZE, SIZE, 'm');
	assert_false(vmm_os_client_object_is_owned_by(&memory, SIZE, SIZE, MINE));
	assert_true(vmm_os_client_object_is_surplus(&memory, SIZE, SIZE));
	vmm_os_client_object_release(&memory, SIZE, SIZE, false);
	assert_all(memory.base + SIZE, SIZE, 'm'); /* without may_remove the object stays */
	cover(&memory, SIZE, SIZE, OTHERS, true);
	vmm_os_client_object_release(&memory, SIZE, 2 * SIZE, true);
	assert_true(vmm_os_client_object_is_owned_by(&memory, SIZE, 2 * SIZE, OTHERS));
	vmm_os_client_object_end_owner(&memory, OTHERS);
	assert_true(vmm_os_client_object_is_owned_by(&memory, 0, 4 * SIZE, 0));
	finish(&n, &view, &memory);
}

/*
 * A window over existing content: its user owns it from then on. When the user leaves it, no
 * content remains.
 */
static void existing_content_is_carried_into_a_client_object(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;
	char bytes[4];

	begin(*state, &n, &view, &memory);
	uint64_t owner = vmm_os_viewer_owner(&n.viewer);
	memset(memory.base, 'o', memory.size_bytes);
	memset(memory.base + SIZE, 'p', SIZE);
	assert_int_equal(vmm_os_client_object_cover_with_content(&memory, SIZE, SIZE, owner),
			 VMM_OK);
	assert_all(memory.base + SIZE, SIZE, 'p');
	assert_all(memory.base, SIZE, 'o');
	assert_all(memory.base + 2 * SIZE, SIZE, 'o');
	assert_int_equal(vmm_os_view_map(&view, 0, &memory, SIZE, SIZE), VMM_OK);
	assert_int_equal(pread(n.fd, bytes, 4, 2 * SIZE - 4), 4);
	assert_memory_equal(bytes, "pppp", 4);
	/* Again, over a longer range: parts carried before are not carried again. */
	memset(memory.base + SIZE, 'q', SIZE);
	assert_int_equal(vmm_os_client_object_cover_with_content(&memory, SIZE, 2 * SIZE, owner),
			 VMM_OK);
	assert_all(memory.base + SIZE, SIZE, 'q');
	assert_all(memory.base + 2 * SIZE, SIZE, 'o');
	vmm_os_client_object_release(&memory, SIZE, SIZE, true);
	vmm_os_client_object_release(&memory, SIZE, 2 * SIZE, true);
	assert_int_equal(vmm_os_client_object_uncover(&memory, SIZE, 2 * SIZE), VMM_OK);
	assert_all(memory.base + SIZE, 2 * SIZE, 0);
	assert_all(memory.base + 3 * SIZE, SIZE, 'o');
	finish(&n, &view, &memory);
}

static uint32_t descriptors(void)
{
	uint32_t count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/*
 * An owner has one descriptor, whatever it places where, and once it is prepared it needs none. The
 * number of ranges that are retained for nothing has a limit: each costs mappings.
 */
static void q_455_an_owner_needs_no_descriptor_once_it_is_prepared(void **state)
{
	enum { MANY = 3000 };
	struct vmm_os_memory memory;
	uint32_t kept = 0;

	assert_int_equal(vmm_os_memory_create(*state, "arena", MANY * 4ull * KIB, &memory), VMM_OK);
	assert_int_equal(vmm_os_client_object_prepare(&memory, MINE), VMM_OK);
	assert_int_equal(vmm_os_client_object_prepare(&memory, OTHERS), VMM_OK);
	uint32_t before = descriptors();
	for (uint64_t i = 0; i < MANY; i++)
		cover(&memory, i * 4 * KIB, 4 * KIB, i % 2 ? OTHERS : MINE, true);
	assert_int_equal(descriptors(), before);
	for (uint64_t i = 0; i < MANY; i++)
		vmm_os_client_object_release(&memory, i * 4 * KIB, 4 * KIB, true);
	for (uint64_t i = 0; i < MANY; i++)
		kept += !vmm_os_client_object_is_owned_by(&memory, i * 4 * KIB, 4 * KIB, 0);
	assert_true(kept > 1024 && kept < 2100);
	vmm_os_client_object_end_owner(&memory, MINE);
	vmm_os_client_object_end_owner(&memory, OTHERS);
	assert_int_equal(descriptors(), before - 2);
	assert_true(vmm_os_client_object_is_owned_by(&memory, 0, MANY * 4 * KIB, 0));
	vmm_os_memory_destroy(&memory);
}

static uint64_t allocated_bytes(int fd)
{
	struct stat info;

	assert_int_equal(fstat(fd, &info), 0);
	return (uint64_t)info.st_blocks * 512;
}

/*
 * If content does not matter, an owner finds its old pages where another owner was meanwhile.
 * Another owner, or a request for new memory, does not get them. What is retained so has a limit.
 */
static void replaced_pages_are_retained_for_their_owner(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	uint64_t owner = vmm_os_viewer_owner(&n.viewer);
	assert_int_equal(vmm_os_client_object_cover(&memory, 0, SIZE, owner, NULL), VMM_OK);
	assert_int_equal(vmm_os_view_map(&view, 0, &memory, 0, SIZE), VMM_OK);
	memset(memory.base, 'm', SIZE);
	vmm_os_client_object_release(&memory, 0, SIZE, true);
	for (uint64_t other = OTHERS; other < OTHERS + 4; other++) {
		assert_int_equal(vmm_os_client_object_cover(&memory, 0, SIZE, other, NULL), VMM_OK);
		assert_all(memory.base, SIZE, 0);
		vmm_os_client_object_release(&memory, 0, SIZE, true);
	}
	assert_int_equal(vmm_os_client_object_cover(&memory, 0, SIZE, owner, NULL), VMM_OK);
	assert_all(memory.base, SIZE, 'm');
	vmm_os_client_object_release(&memory, 0, SIZE, true);
	cover(&memory, 0, SIZE, OTHERS, true);
	assert_all(memory.base, SIZE, 0);
	vmm_os_client_object_release(&memory, 0, SIZE, true);
	cover(&memory, 0, SIZE, owner, true);
	assert_all(memory.base, SIZE, 0);
	/* As many pages as the memory object has are retained, not more. */
	memset(memory.base, 'm', SIZE);
	vmm_os_client_object_release(&memory, 0, SIZE, true);
	assert_int_equal(allocated_bytes(n.fd), SIZE);
	for (uint64_t other = OTHERS; other < OTHERS + 8; other++) {
		assert_int_equal(vmm_os_client_object_cover(&memory, 0, SIZE, other, NULL), VMM_OK);
		memset(memory.base, 'o', SIZE);
		vmm_os_client_object_release(&memory, 0, SIZE, true);
	}
	assert_int_equal(allocated_bytes(n.fd), 0);
	/* Nothing of an ended viewer is retained. */
	for (uint64_t other = OTHERS; other < OTHERS + 8; other++)
		vmm_os_client_object_end_owner(&memory, other);
	assert_int_equal(vmm_os_client_object_cover(&memory, 0, SIZE, OTHERS, NULL), VMM_OK);
	assert_all(memory.base, SIZE, 0);
	vmm_os_client_object_release(&memory, 0, SIZE, true);
	finish(&n, &view, &memory);
}

struct mapping {
	struct vmm_os_view *view;
	const struct vmm_os_memory *memory;
	uint64_t offset;
};

static void show(void *argument)
{
	const struct mapping *s = argument;

	(void)!vmm_os_view_map(s->view, 0, s->memory, s->offset, SIZE);
}

static void memory_outside_client_objects_is_never_mapped_by_a_client(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	uint64_t owner = vmm_os_viewer_owner(&n.viewer);
	struct mapping s = {.view = &view, .memory = &memory};
	assert_int_equal(vmm_os_viewer_owner(&n.viewer), owner);
	assert_true(aborts(show, &s));
	cover(&memory, 0, SIZE, owner, true);
	for (s.offset = 4 * KIB; s.offset <= SIZE; s.offset += SIZE - 4 * KIB)
		assert_true(aborts(show, &s)); /* extends beyond it; is beside it */
	s.offset = 0;
	show(&s);
	assert_int_equal(n.maps, 1);
	/* A second range of the object is another part of it: one view over both, one mapping. */
	cover(&memory, SIZE, SIZE, owner, true);
	s.offset = SIZE / 2;
	show(&s);
	assert_int_equal(n.maps, 2);
	assert_true(n.offset == SIZE / 2 && n.length == SIZE);
	/* A part of another owner is refused like one without an owner. */
	cover(&memory, 0, SIZE, OTHERS, true);
	assert_true(aborts(show, &s));
	assert_int_equal(vmm_os_client_object_uncover(&memory, 0, 4 * SIZE), VMM_OK);
	assert_true(aborts(show, &s));
	finish(&n, &view, &memory);
}

static void a_read_only_descriptor_cannot_be_made_writable(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view, here = {0};
	char path[64];
	struct notes n = {.viewer = {.ops = &ops}, .fd = -1};

	assert_int_equal(vmm_os_memory_create(*state, "fences", SIZE, &memory), VMM_OK);
	vmm_os_memory_set_shareable(&memory);
	assert_int_equal(vmm_os_view_reserve_for(*state, &n.viewer, SIZE, &view), VMM_OK);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(vmm_os_view_map_read_only(&view, &memory), VMM_OK);
	assert_false(n.writable);
	*(uint64_t *)(void *)memory.base = 17; /* our own mapping is writable */
	assert_ptr_equal(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, n.fd, 0), MAP_FAILED);
	assert_int_equal(pwrite(n.fd, "evil", 4, 0), -1);
	char *read = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, n.fd, 0);
	assert_ptr_not_equal(read, MAP_FAILED);
	assert_int_equal(mprotect(read, SIZE, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(*(uint64_t *)(void *)read, 17);
	/* Nor through a writable descriptor of the same file. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", n.fd);
	int again = open(path, O_RDWR | O_CLOEXEC);
	if (again >= 0) {
		assert_ptr_equal(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0),
				 MAP_FAILED);
		assert_int_equal(pwrite(again, "evil", 4, 0), -1);
		assert_int_equal(
			fallocate(again, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE), -1);
		assert_int_equal(ftruncate(again, 0), -1);
		close(again);
	}
	/* In our own address space the content is unchanged. */
	assert_int_equal(vmm_os_view_reserve(*state, SIZE, &here), VMM_OK);
	assert_int_equal(vmm_os_view_map_read_only(&here, &memory), VMM_OK);
	assert_int_equal(*(uint64_t *)(void *)here.address, 17);
	munmap(read, SIZE);
	vmm_os_view_release(&here);
	finish(&n, &view, &memory);
}

static void client_memory_is_accepted_only_if_sealed_against_resizing(void **state)
{
	struct vmm_os_memory memory;
	int fd = memfd_create("theirs", MFD_CLOEXEC | MFD_ALLOW_SEALING), pipes[2];

	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_equal(vmm_os_memory_open_sealed(*state, fd, SIZE, &memory),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(vmm_os_memory_open_sealed(*state, fd, SIZE, &memory),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(vmm_os_memory_open_sealed(*state, fd, 2 * SIZE, &memory),
			 VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_os_memory_open_sealed(*state, fd, SIZE, &memory), VMM_OK);
	memory.base[0] = 't';
	vmm_os_memory_destroy(&memory);
	assert_int_equal(vmm_os_memory_open_sealed(*state, -1, SIZE, &memory), VMM_INVALID_HANDLE);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(vmm_os_memory_open_sealed(*state, pipes[0], SIZE, &memory),
			 VMM_INVALID_PARAMETER);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_client_object_is_zero_sealed_and_covers_only_its_range, setup, teardown),
		cmocka_unit_test_setup_teardown(content_is_retained_for_the_owner_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_owner_of_each_part_of_a_range_is_known, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_content_of_an_ended_viewer_is_retained, setup,
						teardown),
		cmocka_unit_test_setup_teardown(existing_content_is_carried_into_a_client_object,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			q_455_an_owner_needs_no_descriptor_once_it_is_prepared, setup, teardown),
		cmocka_unit_test_setup_teardown(replaced_pages_are_retained_for_their_owner, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			memory_outside_client_objects_is_never_mapped_by_a_client, setup, teardown),
		cmocka_unit_test_setup_teardown(a_read_only_descriptor_cannot_be_made_writable,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			client_memory_is_accepted_only_if_sealed_against_resizing, setup, teardown),
	};

	return cmocka_run_group_tests_name("os private", tests, NULL, NULL);
}
