/* SPDX-License-Identifier: MIT */
/* Pieces of work in child processes: how they end, and how many there are at a time. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool.h"
#include "support/test.h"

#define PIECES 9u

/* Shared with the children, except what `ended` and `tick` write. */
struct fixture {
	atomic_uint running, most;
	atomic_uint done[PIECES];
	int pipe[2];
	unsigned ends[PIECES], ticks;
	struct pool_end end[PIECES];
};

static struct fixture *fixture_create(void)
{
	void *memory = mmap(NULL, sizeof(struct fixture), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void count_end(void *context, unsigned index, const struct pool_end *end)
{
	struct fixture *fixture = context;

	fixture->ends[index]++;
	fixture->end[index] = *end;
}

static void count_tick(void *context)
{
	struct fixture *fixture = context;

	fixture->ticks++;
}

static void count_running(void *context, unsigned index)
{
	struct fixture *fixture = context;
	unsigned now = atomic_fetch_add(&fixture->running, 1) + 1;
	unsigned most = atomic_load(&fixture->most);

	while (now > most && !atomic_compare_exchange_weak(&fixture->most, &most, now))
		;
	atomic_fetch_add(&fixture->done[index], 1);
	atomic_fetch_sub(&fixture->running, 1);
}

static void each_piece_runs_once_and_never_too_many(void **state)
{
	struct fixture *fixture = fixture_create();
	struct pool pool = {
		.count = PIECES, .work = count_running, .ended = count_end, .context = fixture};

	(void)state;
	for (pool.jobs = 1; pool.jobs <= 20; pool.jobs += 3) {
		memset(fixture, 0, sizeof(*fixture));
		pool.tick = pool.jobs == 4 ? count_tick : NULL;
		pool_run(&pool);
		for (unsigned i = 0; i < PIECES; i++) {
			assert_int_equal(fixture->done[i], 1);
			assert_int_equal(fixture->ends[i], 1);
			assert_int_equal(fixture->end[i].signal, 0);
			assert_int_equal(fixture->end[i].exit_code, 0);
			assert_int_equal(fixture->end[i].error, 0);
		}
		assert_in_range(fixture->most, 1, pool.jobs);
		assert_int_equal(fixture->ticks > 0, pool.tick != NULL);
	}
	munmap(fixture, sizeof(*fixture));
}

/* The first piece ends only if the second one runs beside it. */
static void meet(void *context, unsigned index)
{
	struct fixture *fixture = context;
	char byte = 0;

	if (index == 0 ? read(fixture->pipe[0], &byte, 1) != 1
		       : write(fixture->pipe[1], &byte, 1) != 1)
		abort();
}

static void two_jobs_run_side_by_side(void **state)
{
	struct fixture *fixture = fixture_create();
	const struct pool pool = {
		.count = 2, .jobs = 2, .work = meet, .ended = count_end, .context = fixture};

	(void)state;
	assert_int_equal(pipe(fixture->pipe), 0);
	pool_run(&pool);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fixture->ends[i], 1);
		assert_int_equal(fixture->end[i].signal, 0);
		close(fixture->pipe[i]);
	}
	munmap(fixture, sizeof(*fixture));
}

static void die(void *context, unsigned index)
{
	struct fixture *fixture = context;

	if (index == 1)
		raise(SIGKILL);
	if (index == 3)
		_exit(7);
	atomic_fetch_add(&fixture->done[index], 1);
}

static void a_piece_that_dies_ends_alone(void **state)
{
	struct fixture *fixture = fixture_create();
	struct pool pool = {.count = PIECES, .work = die, .ended = count_end, .context = fixture};

	(void)state;
	for (pool.jobs = 1; pool.jobs <= 2; pool.jobs++) {
		memset(fixture, 0, sizeof(*fixture));
		pool_run(&pool);
		for (unsigned i = 0; i < PIECES; i++) {
			assert_int_equal(fixture->ends[i], 1);
			assert_int_equal(fixture->done[i], i != 1 && i != 3);
			assert_int_equal(fixture->end[i].signal, i == 1 ? SIGKILL : 0);
			assert_int_equal(fixture->end[i].exit_code, i == 3 ? 7 : 0);
		}
	}
	munmap(fixture, sizeof(*fixture));
}

/* As a shell's `trap '' CHLD` leaves it for its programs. */
static void ends_are_found_where_sigchld_was_ignored(void **state)
{
	struct fixture *fixture = fixture_create();
	const struct pool pool = {
		.count = 3, .jobs = 2, .work = die, .ended = count_end, .context = fixture};

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	pool_run(&pool);
	assert_int_equal(fixture->end[1].signal, SIGKILL);
	assert_int_equal(fixture->ends[0] + fixture->ends[1] + fixture->ends[2], 3);
	munmap(fixture, sizeof(*fixture));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_piece_runs_once_and_never_too_many),
		cmocka_unit_test(two_jobs_run_side_by_side),
		cmocka_unit_test(a_piece_that_dies_ends_alone),
		cmocka_unit_test(ends_are_found_where_sigchld_was_ignored),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
