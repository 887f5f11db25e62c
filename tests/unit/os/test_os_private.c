/* SPDX-License-Identifier: MIT */
/* Private objects: what somebody in another address space may be shown of a memory object, and nothing else. */
#include <support/test.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../aborts.h"
#include "os/os.h"

#define KIB  1024u
#define SIZE (64u * KIB)

/* Notes what it is given, and shows nothing to anybody. */
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
	*address = (char *)(uintptr_t)0x7000000000; /* nobody's */
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

static void lay(struct vmm_os_memory *memory, uint64_t offset, uint64_t length, uint64_t owner,
		bool expected_fresh)
{
	bool fresh = !expected_fresh;

	assert_int_equal(vmm_os_private_lay(memory, offset, length, owner, &fresh), VMM_OK);
	assert_int_equal(fresh, expected_fresh);
	assert_true(vmm_os_private_is_of(memory, offset, length, owner));
}

static void assert_all(const char *bytes, uint64_t length, char value)
{
	for (uint64_t i = 0; i < length; i++)
		assert_int_equal(bytes[i], value);
}

static void it_is_zero_sealed_and_nothing_but_the_range(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;
	char bytes[8];

	begin(*state, &n, &view, &memory);
	memset(memory.base, 'o', memory.size_bytes); /* of others */
	assert_true(vmm_os_private_is_of(&memory, 0, 4 * SIZE, 0));
	lay(&memory, SIZE, SIZE, vmm_os_viewer_owner(&n.viewer), true);
	assert_int_equal(vmm_os_view_map(&view, 0, &memory, SIZE, SIZE), VMM_OK);
	assert_int_equal(n.maps, 1);
	assert_true(n.writable && n.offset == 0 && n.length == SIZE);
	assert_int_equal(lseek(n.fd, 0, SEEK_END), SIZE);
	for (uint32_t i = 0; i < SIZE; i += sizeof(bytes)) {
		assert_int_equal(pread(n.fd, bytes, sizeof(bytes), i), sizeof(bytes));
		assert_memory_equal(bytes, "\0\0\0\0\0\0\0\0", sizeof(bytes));
	}
	/* The permanent mapping is the same memory; its neighbours are what they were. */
	memcpy(memory.base + SIZE + 16, "mine", 4);
	assert_int_equal(pread(n.fd, bytes, 4, 16), 4);
	assert_memory_equal(bytes, "mine", 4);
	assert_int_equal(memory.base[SIZE - 1], 'o');
	assert_int_equal(memory.base[2 * SIZE], 'o');
	assert_int_equal(ftruncate(n.fd, 0), -1);
	assert_int_equal(ftruncate(n.fd, 2 * SIZE), -1);
	assert_int_equal(fcntl(n.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	/* Who keeps the descriptor has memory that nobody else uses. */
	vmm_os_private_take(&memory, 0, 4 * SIZE);
	assert_true(vmm_os_private_is_of(&memory, 0, 4 * SIZE, 0));
	assert_int_equal(memory.base[SIZE + 16], 'o');
	memcpy(memory.base + SIZE, "secret", 6);
	assert_int_equal(pread(n.fd, bytes, 6, 0), 6);
	assert_memory_equal(bytes, "\0\0\0\0\0\0", 6);
	assert_int_equal(pwrite(n.fd, "evil", 4, 0), 4);
	assert_memory_equal(memory.base + SIZE, "secret", 6);
	finish(&n, &view, &memory);
}

/* Numbers of viewers that are not there. */
enum { MINE = 1000001, OTHERS = 1000002 };

static void expect_run(const struct vmm_os_memory *memory, uint64_t offset, uint64_t end,
		       uint64_t owner, uint64_t expected_end, bool expected)
{
	bool is = !expected;

	assert_int_equal(vmm_os_private_run(memory, offset, end - offset, owner, &is),
			 expected_end - offset);
	assert_int_equal(is, expected);
}

/* Whose the parts of a range are: an owner's, nobody's (0), or of one who has gone, which is neither. */
static void a_range_is_known_by_its_parts(void **state)
{
	const uint64_t small = SIZE / 4, odd = 100;
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	expect_run(&memory, 0, 4 * SIZE, 0, 4 * SIZE, true);
	expect_run(&memory, 0, 4 * SIZE, MINE, 4 * SIZE, false);
	lay(&memory, SIZE, SIZE, MINE, true);
	lay(&memory, 2 * SIZE, SIZE, OTHERS, true);
	lay(&memory, SIZE, small, MINE, false); /* counts once more, and is no other part */
	expect_run(&memory, 0, 4 * SIZE, MINE, SIZE, false);
	expect_run(&memory, 0, 4 * SIZE, 0, SIZE, true);
	expect_run(&memory, SIZE, 4 * SIZE, MINE, 2 * SIZE, true);
	expect_run(&memory, SIZE, 4 * SIZE, 0, 3 * SIZE, false);
	expect_run(&memory, SIZE, 2 * SIZE - odd, MINE, 2 * SIZE - odd, true);
	expect_run(&memory, 2 * SIZE, 4 * SIZE, MINE, 4 * SIZE, false);
	vmm_os_private_end(&memory, OTHERS);
	expect_run(&memory, 2 * SIZE, 4 * SIZE, OTHERS, 4 * SIZE, false);
	expect_run(&memory, 2 * SIZE, 4 * SIZE, 0, 3 * SIZE, false);
	expect_run(&memory, 3 * SIZE, 4 * SIZE, 0, 4 * SIZE, true);
	vmm_os_private_leave(&memory, SIZE, small, true);
	vmm_os_private_leave(&memory, SIZE, 2 * SIZE, true);
	finish(&n, &view, &memory);
}

static void its_owner_finds_it_again_and_another_does_not(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	lay(&memory, 0, SIZE, MINE, true);
	memset(memory.base, 'm', SIZE);
	vmm_os_private_leave(&memory, 0, SIZE, true);
	/* Half of it is its own, and what is new is zero. */
	lay(&memory, SIZE / 2, SIZE, MINE, false);
	assert_all(memory.base, SIZE, 'm');
	assert_all(memory.base + SIZE, SIZE / 2, 0);
	vmm_os_private_leave(&memory, SIZE / 2, SIZE, true);
	/* Another's in the middle is new; what is around it stays. */
	lay(&memory, SIZE / 4, SIZE, OTHERS, true);
	assert_all(memory.base + SIZE / 4, SIZE, 0);
	assert_true(vmm_os_private_is_of(&memory, 0, SIZE / 4, MINE));
	assert_false(vmm_os_private_is_of(&memory, 0, SIZE / 2, MINE));
	assert_false(vmm_os_private_is_of(&memory, 0, SIZE / 4, OTHERS));
	assert_false(vmm_os_private_is_of(&memory, 0, 4 * SIZE, 0));
	memset(memory.base + SIZE / 4, 'x', SIZE);
	lay(&memory, 0, SIZE / 4, MINE, false);
	assert_all(memory.base, SIZE / 4, 'm');
	vmm_os_private_leave(&memory, 0, SIZE / 4, true);
	vmm_os_private_leave(&memory, SIZE / 4, SIZE, true);
	vmm_os_private_take(&memory, 0, 4 * SIZE);
	assert_all(memory.base, 4 * SIZE, 0);
	finish(&n, &view, &memory);
}

static void of_who_has_gone_nothing_stays(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	lay(&memory, 0, SIZE, MINE, true);
	lay(&memory, SIZE, SIZE, MINE, true);
	lay(&memory, 2 * SIZE, SIZE, OTHERS, true);
	memset(memory.base, 'm', 2 * SIZE);
	vmm_os_private_leave(&memory, 0, SIZE, true);
	assert_false(vmm_os_private_is_surplus(&memory, 0, 3 * SIZE));
	vmm_os_private_end(&memory, MINE);
	/* What is used is there until it is left, and is nobody's. */
	assert_all(memory.base, SIZE, 0);
	assert_all(memory.base + SIZE, SIZE, 'm');
	assert_false(vmm_os_private_is_of(&memory, SIZE, SIZE, MINE));
	assert_true(vmm_os_private_is_surplus(&memory, SIZE, SIZE));
	vmm_os_private_leave(&memory, SIZE, SIZE, false);
	assert_all(memory.base + SIZE, SIZE, 'm'); /* it might be read */
	lay(&memory, SIZE, SIZE, OTHERS, true);
	vmm_os_private_leave(&memory, SIZE, 2 * SIZE, true);
	assert_true(vmm_os_private_is_of(&memory, SIZE, 2 * SIZE, OTHERS));
	vmm_os_private_end(&memory, OTHERS);
	assert_true(vmm_os_private_is_of(&memory, 0, 4 * SIZE, 0));
	finish(&n, &view, &memory);
}

/* A window whose content is there already: it is its user's from then on, and when he leaves it nothing is under it. */
static void what_lies_there_goes_along(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;
	char bytes[4];

	begin(*state, &n, &view, &memory);
	uint64_t owner = vmm_os_viewer_owner(&n.viewer);
	memset(memory.base, 'o', memory.size_bytes);
	memset(memory.base + SIZE, 'p', SIZE);
	assert_int_equal(vmm_os_private_carry(&memory, SIZE, SIZE, owner), VMM_OK);
	assert_all(memory.base + SIZE, SIZE, 'p');
	assert_all(memory.base, SIZE, 'o');
	assert_all(memory.base + 2 * SIZE, SIZE, 'o');
	assert_int_equal(vmm_os_view_map(&view, 0, &memory, SIZE, SIZE), VMM_OK);
	assert_int_equal(lseek(n.fd, 0, SEEK_END), SIZE);
	assert_int_equal(pread(n.fd, bytes, 4, SIZE - 4), 4);
	assert_memory_equal(bytes, "pppp", 4);
	/* Once more, and further: what was carried is not carried again. */
	memset(memory.base + SIZE, 'q', SIZE);
	assert_int_equal(vmm_os_private_carry(&memory, SIZE, 2 * SIZE, owner), VMM_OK);
	assert_all(memory.base + SIZE, SIZE, 'q');
	assert_all(memory.base + 2 * SIZE, SIZE, 'o');
	vmm_os_private_leave(&memory, SIZE, SIZE, true);
	vmm_os_private_leave(&memory, SIZE, 2 * SIZE, true);
	vmm_os_private_take(&memory, SIZE, 2 * SIZE);
	assert_all(memory.base + SIZE, 2 * SIZE, 0);
	assert_all(memory.base + 3 * SIZE, SIZE, 'o');
	finish(&n, &view, &memory);
}

/* Descriptors are few: what nobody uses is not kept beyond what is reasonable. */
static void not_everything_is_kept(void **state)
{
	enum { MANY = 2000 };
	struct vmm_os_memory memory;
	uint32_t kept = 0;

	assert_int_equal(vmm_os_memory_create(*state, "arena", MANY * 4ull * KIB, &memory), VMM_OK);
	for (uint64_t i = 0; i < MANY; i++)
		lay(&memory, i * 4 * KIB, 4 * KIB, MINE, true);
	for (uint64_t i = 0; i < MANY; i++)
		vmm_os_private_leave(&memory, i * 4 * KIB, 4 * KIB, true);
	for (uint64_t i = 0; i < MANY; i++)
		kept += vmm_os_private_is_of(&memory, i * 4 * KIB, 4 * KIB, MINE);
	assert_true(kept > 0 && kept <= 1024);
	vmm_os_private_end(&memory, MINE);
	vmm_os_memory_destroy(&memory);
}

/* Where content does not matter its owner gets back elsewhere what has given way; another, and who asks for new memory, does not. */
static void what_gives_way_is_kept_for_its_owner(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	assert_int_equal(vmm_os_private_lay(&memory, 0, SIZE, MINE, NULL), VMM_OK);
	memset(memory.base, 'm', SIZE);
	vmm_os_private_leave(&memory, 0, SIZE, true);
	assert_int_equal(vmm_os_private_lay(&memory, 0, SIZE, OTHERS, NULL), VMM_OK);
	assert_all(memory.base, SIZE, 0);
	lay(&memory, SIZE, SIZE, MINE, true);
	assert_all(memory.base + SIZE, SIZE, 0);
	assert_int_equal(vmm_os_private_lay(&memory, 2 * SIZE, SIZE, OTHERS, NULL), VMM_OK);
	assert_all(memory.base + 2 * SIZE, SIZE, 0);
	assert_int_equal(vmm_os_private_lay(&memory, 3 * SIZE, SIZE, MINE, NULL), VMM_OK);
	assert_all(memory.base + 3 * SIZE, SIZE, 'm');
	/* Of who has gone nothing is kept. */
	vmm_os_private_leave(&memory, SIZE, SIZE, true);
	vmm_os_private_take(&memory, SIZE, SIZE);
	vmm_os_private_end(&memory, MINE);
	assert_int_equal(vmm_os_private_lay(&memory, SIZE, SIZE, MINE, NULL), VMM_OK);
	assert_all(memory.base + SIZE, SIZE, 0);
	for (uint64_t i = 0; i < 4; i++)
		vmm_os_private_leave(&memory, i * SIZE, SIZE, true);
	finish(&n, &view, &memory);
}

struct shown {
	struct vmm_os_view *view;
	const struct vmm_os_memory *memory;
	uint64_t offset;
};

static void show(void *argument)
{
	const struct shown *s = argument;

	(void)!vmm_os_view_map(s->view, 0, s->memory, s->offset, SIZE);
}

static void shared_memory_is_never_shown(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct notes n;

	begin(*state, &n, &view, &memory);
	uint64_t owner = vmm_os_viewer_owner(&n.viewer);
	struct shown s = {.view = &view, .memory = &memory};
	assert_int_equal(vmm_os_viewer_owner(&n.viewer), owner);
	assert_true(aborts(show, &s));
	lay(&memory, 0, SIZE, owner, true);
	for (s.offset = 4 * KIB; s.offset <= SIZE; s.offset += SIZE - 4 * KIB)
		assert_true(aborts(show, &s)); /* reaches beyond it; is beside it */
	s.offset = 0;
	show(&s);
	assert_int_equal(n.maps, 1);
	/* Of two objects it is two parts. */
	lay(&memory, SIZE, SIZE, owner, true);
	s.offset = SIZE / 2;
	show(&s);
	assert_int_equal(n.maps, 3);
	assert_true(n.offset == 0 && n.length == SIZE / 2);
	/* Another's is as good as nobody's. */
	lay(&memory, 0, SIZE, OTHERS, true);
	assert_true(aborts(show, &s));
	vmm_os_private_take(&memory, 0, 4 * SIZE);
	assert_true(aborts(show, &s));
	finish(&n, &view, &memory);
}

static void what_is_shown_to_be_read_is_never_written(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view, here = {0};
	char path[64];
	struct notes n = {.viewer = {.ops = &ops}, .fd = -1};

	assert_int_equal(vmm_os_memory_create(*state, "fences", SIZE, &memory), VMM_OK);
	vmm_os_memory_set_whole(&memory);
	assert_int_equal(vmm_os_view_reserve_for(*state, &n.viewer, SIZE, &view), VMM_OK);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(vmm_os_view_map_read_only(&view, &memory), VMM_OK);
	assert_false(n.writable);
	*(uint64_t *)(void *)memory.base = 17; /* ours */
	assert_ptr_equal(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, n.fd, 0), MAP_FAILED);
	assert_int_equal(pwrite(n.fd, "evil", 4, 0), -1);
	char *read = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, n.fd, 0);
	assert_ptr_not_equal(read, MAP_FAILED);
	assert_int_equal(mprotect(read, SIZE, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(*(uint64_t *)(void *)read, 17);
	/* Nor by way of a descriptor that can be written. */
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
	/* In our own address space it is seen as ever. */
	assert_int_equal(vmm_os_view_reserve(*state, SIZE, &here), VMM_OK);
	assert_int_equal(vmm_os_view_map_read_only(&here, &memory), VMM_OK);
	assert_int_equal(*(uint64_t *)(void *)here.address, 17);
	munmap(read, SIZE);
	vmm_os_view_release(&here);
	finish(&n, &view, &memory);
}

static void memory_of_others_is_taken_sealed_alone(void **state)
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
		cmocka_unit_test_setup_teardown(it_is_zero_sealed_and_nothing_but_the_range, setup,
						teardown),
		cmocka_unit_test_setup_teardown(its_owner_finds_it_again_and_another_does_not,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_range_is_known_by_its_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(of_who_has_gone_nothing_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(what_lies_there_goes_along, setup, teardown),
		cmocka_unit_test_setup_teardown(not_everything_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(what_gives_way_is_kept_for_its_owner, setup,
						teardown),
		cmocka_unit_test_setup_teardown(shared_memory_is_never_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_shown_to_be_read_is_never_written, setup,
						teardown),
		cmocka_unit_test_setup_teardown(memory_of_others_is_taken_sealed_alone, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("os private", tests, NULL, NULL);
}
