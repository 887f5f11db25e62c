/* SPDX-License-Identifier: MIT */
/*
 * Content that moves while a thread of the client stores into it. The host write-protects it
 * through the client's userfaultfd, and no store is lost. Before that the host waits, for a limited
 * time, until the client has mapped the content.
 */
#include "raw_client.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "serve/serve_private.h"

enum { WORDS = 16384, MOVES = 12 };

/* A client with one thread that executes view instructions, and one that stores. */
struct busy {
	struct raw raw, looking; /* looking: its view socket, and what was executed */
	int stop[2];
	pthread_t looker, writer;
	_Atomic uint64_t executed, stored;
	_Atomic bool enough;
	volatile uint64_t *words;
	D3DKMT_HANDLE device, allocation;
};

static void *look_on(void *argument)
{
	struct busy *b = argument;
	struct pollfd come[2] = {{.fd = b->looking.view, .events = POLLIN},
				 {.fd = b->stop[0], .events = POLLIN}};

	while (poll(come, 2, -1) > 0 && !come[1].revents) {
		raw_catch_up(&b->looking, b->looking.views + 1);
		atomic_store(&b->executed, b->looking.views);
	}
	return NULL;
}

/* Stores to all words in turn; each word gets the number of the store. */
static void *write_on(void *argument)
{
	struct busy *b = argument;

	for (uint64_t i = 0; !atomic_load(&b->enough); i++) {
		b->words[i % WORDS] = i + 1;
		atomic_store(&b->stored, i + 1);
	}
	return NULL;
}

static void await_stores(struct busy *b, uint64_t more)
{
	uint64_t goal = atomic_load(&b->stored) + more;

	while (atomic_load(&b->stored) < goal)
		sched_yield();
}

/*
 * Makes any call: the instructions that its answer names have been executed before the next call.
 */
static void say_something(struct busy *b)
{
	(void)raw_adapter(&b->raw);
	while (atomic_load(&b->executed) < b->raw.answer.views)
		sched_yield();
}

static bool begin(struct busy *b, struct served *served)
{
	memset(b, 0, sizeof(*b));
	served_start(served, NULL, 0);
	if (!raw_open_freezable(&b->raw, served, "busy")) {
		served_stop(served);
		return false;
	}
	b->looking = b->raw;
	b->raw.view = -1;
	assert_int_equal(pipe(b->stop), 0);
	assert_int_equal(pthread_create(&b->looker, NULL, look_on, b), 0);
	return true;
}

/* Moves the allocation into video memory by a fill, and locks it there. */
static void lock_in_video_memory(struct busy *b)
{
	struct client_context c;
	void *data;

	b->device = raw_device(&b->raw);
	b->allocation = raw_allocate(&b->raw, b->device, WORDS * sizeof(uint64_t));
	raw_context(&b->raw, b->device, &c);
	while (atomic_load(&b->executed) < b->raw.answer.views)
		sched_yield();
	client_fill(&c, b->allocation, WORDS * sizeof(uint64_t), 0);
	raw_render(&b->raw, &c);
	assert_int_equal(raw_lock(&b->raw, b->device, b->allocation, &data), STATUS_SUCCESS);
	while (atomic_load(&b->executed) < b->raw.answer.views)
		sched_yield();
	b->words = data;
	assert_int_equal(pthread_create(&b->writer, NULL, write_on, b), 0);
}

static void end(struct busy *b, struct served *served)
{
	atomic_store(&b->enough, true);
	pthread_join(b->writer, NULL);
	uint64_t stored = atomic_load(&b->stored);
	for (uint64_t i = stored > WORDS ? stored - WORDS : 0; i < stored; i++)
		assert_int_equal(b->words[i % WORDS], i + 1);
	printf("# %llu stores\n", (unsigned long long)stored);
	assert_int_equal(write(b->stop[1], "", 1), 1);
	pthread_join(b->looker, NULL);
	close(b->stop[0]);
	close(b->stop[1]);
	b->raw.view = b->looking.view;
	raw_disconnect(&b->raw);
	served_stop(served);
}

static vmm_status power(struct served *served, uint32_t state)
{
	return vidmm_adapter_set_power(served->client.adapter, state, VIDMM_SLEEP_STANDBY);
}

/* As if other clients had been late: the host then waits for a shorter time. */
static void shorten_waits(struct served *served)
{
	atomic_store(&served->server->late, 5);
}

static void no_store_is_lost_when_content_moves(void **state)
{
	struct served served;
	struct busy b;
	uint32_t moves = 0;

	(void)state;
	if (!begin(&b, &served))
		skip();
	lock_in_video_memory(&b);
	for (uint32_t i = 0; i < MOVES; i++) {
		say_something(&b);
		say_something(&b);
		uint64_t before = atomic_load(&b.executed);
		assert_int_equal(power(&served, VIDMM_POWER_D3), 0);
		await_stores(&b, WORDS);
		say_something(&b);
		say_something(&b);
		assert_int_equal(power(&served, VIDMM_POWER_D0), 0);
		await_stores(&b, WORDS);
		moves += atomic_load(&b.executed) > before;
	}
	assert_true(moves > 0);
	end(&b, &served);
}

/*
 * The client has executed the mapping, but the host has not read its answer: a power change fails
 * until the host has read it.
 */
static void content_that_may_not_be_mapped_yet_is_not_moved(void **state)
{
	struct served served;
	struct busy b;

	(void)state;
	if (!begin(&b, &served))
		skip();
	lock_in_video_memory(&b);
	await_stores(&b, WORDS);
	shorten_waits(&served);
	assert_true(power(&served, VIDMM_POWER_D3) < 0);
	await_stores(&b, WORDS);
	say_something(&b);
	assert_int_equal(power(&served, VIDMM_POWER_D3), 0);
	await_stores(&b, WORDS);
	assert_int_equal(power(&served, VIDMM_POWER_D0), 0);
	end(&b, &served);
}

/* ---- a client that executes a mapping while the host waits for it ---- */

static pthread_mutex_t pause_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pause_changed = PTHREAD_COND_INITIALIZER;
static bool has_paused;

/* Replaces clock_nanosleep in this program and in the library linked into it. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request,
		    struct timespec *remain)
{
	pthread_mutex_lock(&pause_lock);
	has_paused = true;
	pthread_cond_broadcast(&pause_changed);
	pthread_mutex_unlock(&pause_lock);
	return (int)syscall(SYS_clock_nanosleep, clock, flags, request, remain);
}

static void *speak_during_pause(void *argument)
{
	pthread_mutex_lock(&pause_lock);
	while (!has_paused)
		pthread_cond_wait(&pause_changed, &pause_lock);
	pthread_mutex_unlock(&pause_lock);
	say_something(argument);
	return NULL;
}

/* The next request says that the mapping is executed. It comes while the host waits for it. */
static void a_mapping_is_awaited_before_its_content_moves(void **state)
{
	struct served served;
	struct busy b;
	pthread_t speaker;

	(void)state;
	if (!begin(&b, &served))
		skip();
	lock_in_video_memory(&b);
	pthread_mutex_lock(&pause_lock);
	has_paused = false;
	pthread_mutex_unlock(&pause_lock);
	assert_int_equal(pthread_create(&speaker, NULL, speak_during_pause, &b), 0);
	assert_int_equal(power(&served, VIDMM_POWER_D3), 0);
	pthread_join(speaker, NULL);
	await_stores(&b, WORDS);
	assert_int_equal(power(&served, VIDMM_POWER_D0), 0);
	end(&b, &served);
}

/* ---- a client whose address space is locked for a long time ---- */

static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t busy_changed = PTHREAD_COND_INITIALIZER;
static bool is_busy, has_come;

/*
 * Replaces ioctl in this program and in the library linked into it. A call that takes the lock of
 * the client's address space waits as long as the test keeps it busy.
 */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	va_start(args, request);
	void *argument = va_arg(args, void *);
	va_end(args);
	pthread_mutex_lock(&busy_lock);
	while (is_busy && request == UFFDIO_REGISTER) {
		has_come = true;
		pthread_cond_broadcast(&busy_changed);
		pthread_cond_wait(&busy_changed, &busy_lock);
	}
	pthread_mutex_unlock(&busy_lock);
	return (int)syscall(SYS_ioctl, fd, request, argument);
}

static void set_busy(bool busy)
{
	pthread_mutex_lock(&busy_lock);
	is_busy = busy;
	pthread_cond_broadcast(&busy_changed);
	pthread_mutex_unlock(&busy_lock);
}

static void await_come(void)
{
	pthread_mutex_lock(&busy_lock);
	while (!has_come)
		pthread_cond_wait(&busy_changed, &busy_lock);
	pthread_mutex_unlock(&busy_lock);
}

/*
 * The content is not moved, and the operation that wanted to move it continues. The same holds if
 * write protection takes effect too late.
 */
static void a_client_that_cannot_be_write_protected_delays_no_other(void **state)
{
	struct served served;
	struct raw other;
	struct busy b;

	(void)state;
	if (!begin(&b, &served))
		skip();
	lock_in_video_memory(&b);
	say_something(&b);
	say_something(&b);
	shorten_waits(&served);
	set_busy(true);
	assert_true(power(&served, VIDMM_POWER_D3) < 0);
	await_come();
	assert_true(power(&served, VIDMM_POWER_D3) < 0);
	raw_open(&other, &served, "other");
	(void)raw_allocate(&other, raw_device(&other), 64 * KIB);
	set_busy(false);
	await_stores(&b, WORDS);
	assert_true(power(&served, VIDMM_POWER_D3) < 0);
	await_stores(&b, WORDS);
	raw_disconnect(&other);
	end(&b, &served);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_store_is_lost_when_content_moves),
		cmocka_unit_test(content_that_may_not_be_mapped_yet_is_not_moved),
		cmocka_unit_test(a_mapping_is_awaited_before_its_content_moves),
		cmocka_unit_test(a_client_that_cannot_be_write_protected_delays_no_other),
	};

	return cmocka_run_group_tests_name("serve: freeze", tests, NULL, NULL);
}
