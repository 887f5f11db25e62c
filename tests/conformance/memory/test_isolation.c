/* SPDX-License-Identifier: MIT */
/*
 * Out-of-process clients: no process finds bytes of another in memory that it was given, also in
 * descriptors that it retained. Content moves while threads store to it, and no store is lost.
 */
#define _GNU_SOURCE /* pwrite, SEEK_DATA */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "support/viewer.h"

enum { FDS_MAX = 256, SECRET = 0x5EC2E700 };

/* Every descriptor that a client was given. The host cannot take descriptors back. */
struct retained {
	int fd[FDS_MAX];
	uint32_t count;
};

static void retain_fd(struct retained *retained, const struct test_viewer *viewer)
{
	if (viewer->last_fd >= 0 && retained->count < FDS_MAX)
		retained->fd[retained->count++] = dup(viewer->last_fd);
}

/* ThreadSanitizer would look up its shadow for each word, of a buffer that one thread uses. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNCHECKED __attribute__((no_sanitize("thread")))
#endif
#endif
#ifndef UNCHECKED
#define UNCHECKED
#endif
static UNCHECKED uint64_t count_words(const uint32_t *words, size_t count, uint32_t pattern)
{
	uint64_t found = 0;

	for (size_t n = 0; n < count; n++)
		found += (words[n] & 0xFFFFFF00) == pattern;
	return found;
}

/*
 * Returns the number of words of the retained memory that have the pattern. The holes of a
 * descriptor are zeros, which no pattern is, and are skipped.
 */
static uint64_t search_retained(const struct retained *retained, uint32_t pattern)
{
	static uint32_t words[64 * KIB / 4];
	uint64_t found = 0;

	for (uint32_t i = 0; i < retained->count; i++) {
		off_t at = -1;
		ssize_t got = 1;

		while ((at = lseek(retained->fd[i], at + got, SEEK_DATA)) >= 0) {
			got = pread(retained->fd[i], words, sizeof(words), at);
			assert_true(got > 0 && got % 4 == 0);
			found += count_words(words, (size_t)got / 4, pattern);
		}
		assert_int_equal(errno, ENXIO); /* no more data */
	}
	return found;
}

/* Writes to all pages of the retained descriptors that have memory, and maps them for that. */
static void overwrite(const struct retained *retained)
{
	for (uint32_t i = 0; i < retained->count; i++) {
		off_t from, end = 0;

		while ((from = lseek(retained->fd[i], end, SEEK_DATA)) >= 0) {
			end = lseek(retained->fd[i], from, SEEK_HOLE);
			size_t length = (size_t)(end - from);
			void *mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED,
					    retained->fd[i], from);
			assert_ptr_not_equal(mapped, MAP_FAILED);
			memset(mapped, 0xEE, length);
			munmap(mapped, length);
		}
	}
}

/* No word of the process's retained memory is another process's. */
static void expect_none(const struct retained *retained, uint32_t pattern)
{
	assert_int_equal(search_retained(retained, pattern), 0);
}

static void close_retained(struct retained *retained)
{
	for (uint32_t i = 0; i < retained->count; i++)
		close(retained->fd[i]);
}

struct test_client {
	struct test_viewer viewer;
	struct client_device device;
	struct client_context context;
	struct retained retained;
	uint32_t pattern;
};

static void open_test_client(struct world *w, struct test_client *p, uint32_t pattern)
{
	memset(p, 0, sizeof(*p));
	client_open_out_of_process(&w->client, &p->viewer, &p->device);
	client_context(&p->device, 0, &p->context);
	p->pattern = pattern;
}

static void close_test_client(struct test_client *p)
{
	client_context_end(&p->context);
	client_close_out_of_process(&p->viewer, &p->device);
}

/*
 * New memory is zero. Then it is filled with the pattern, used by the GPU, locked again at its new
 * placement, and may be destroyed.
 */
static void run_round(struct world *w, struct test_client *p, uint32_t round)
{
	uint64_t bytes = (1 + round % 7) * 256 * KIB;
	D3DKMT_HANDLE a = allocate_in(&p->device, bytes, CPU, 0);
	uint32_t *words = client_lock(&p->device, a, 0);

	retain_fd(&p->retained, &p->viewer);
	for (uint64_t i = 0; i < bytes / 4; i++)
		if (words[i])
			fail_msg("word %llu of new memory is 0x%x", (unsigned long long)i,
				 words[i]);
	for (uint64_t i = 0; i < bytes / 4; i++)
		words[i] = p->pattern | (uint8_t)round;
	assert_int_equal(client_unlock(&p->device, a), S_OK);
	client_reference(&p->context, a, true);
	client_submit(&p->context);
	words = client_lock(&p->device, a, 0);
	retain_fd(&p->retained, &p->viewer);
	for (uint64_t i = 0; i < bytes / 4; i++)
		if (words[i] != (p->pattern | (uint8_t)round))
			fail_msg("word %llu is 0x%x", (unsigned long long)i, words[i]);
	assert_int_equal(client_unlock(&p->device, a), S_OK);
	if (round % 3)
		assert_int_equal(client_deallocate(&p->device, a), S_OK);
	(void)w;
}

static void no_process_reads_bytes_of_another_process(void **state)
{
	static const struct client_options small_memory = {.vram_bytes = 4 * MIB,
							   .aperture_bytes = 8 * MIB};
	struct test_client *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct world w;

	assert_true(a && b);
	world_start(&w, state, &small_memory);
	open_test_client(&w, a, SECRET);
	open_test_client(&w, b, 0x0DDBA100);
	/* A third process, in-process, uses the same segments in turn with them. */
	for (uint32_t round = 0; round < 40; round++) {
		run_round(&w, a, round);
		run_round(&w, b, round + 3);
		D3DKMT_HANDLE own = allocate_in(&w.device, MIB, CPU, 0);
		client_write(&w.device, own, MIB, 0x1000);
		client_reference(&w.context, own, true);
		client_submit(&w.context);
		client_expect(&w.device, own, MIB, 0x1000);
		assert_int_equal(client_deallocate(&w.device, own), S_OK);
	}
	client_idle(&w.client);
	expect_none(&a->retained, b->pattern);
	expect_none(&b->retained, a->pattern);
	/* Control: the search finds A's pattern in what A has not destroyed. */
	assert_true(search_retained(&a->retained, a->pattern) > MIB / 4);
	close_test_client(a);
	/* What the destroyed process left is not given to another one. */
	for (uint32_t round = 0; round < 10; round++)
		run_round(&w, b, round);
	expect_none(&a->retained, b->pattern);
	close_test_client(b);
	close_retained(&a->retained);
	close_retained(&b->retained);
	world_stop(&w);
	free(a);
	free(b);
}

/*
 * The dead client may write through the descriptors that it retained: the memory is used by no
 * other process.
 */
static void memory_that_a_dead_client_still_maps_is_never_reused(void **state)
{
	static const struct client_options small_memory = {.vram_bytes = 4 * MIB};
	struct test_client *a = calloc(1, sizeof(*a));
	struct world w;

	assert_true(a);
	world_start(&w, state, &small_memory);
	open_test_client(&w, a, SECRET);
	for (uint32_t round = 1; round < 20; round++)
		run_round(&w, a, round);
	close_test_client(a);
	D3DKMT_HANDLE own = allocate_in(&w.device, 3 * MIB, CPU, 0);
	client_write(&w.device, own, 3 * MIB, 0x7000);
	client_reference(&w.context, own, true);
	client_submit(&w.context);
	overwrite(&a->retained);
	for (uint32_t i = 0; i < a->retained.count; i++)
		assert_int_equal(ftruncate(a->retained.fd[i], 0), -1);
	client_expect(&w.device, own, 3 * MIB, 0x7000);
	close_retained(&a->retained);
	world_stop(&w);
	free(a);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MOVES 5u /* threads that store without pause are slow there */
#endif
#endif
#ifndef MOVES
#define MOVES 100u
#endif
enum { WRITERS = 8, BYTES = 64 * KIB };

/* Increments its own words. Each word must always hold what the thread stored last. */
struct writer {
	_Atomic uint32_t *words; /* every eighth word is the thread's own */
	uint32_t index;
	_Atomic bool stop;
	uint32_t stores;
	bool lost;
	struct vidmm_thread *thread;
};

static void store(void *argument)
{
	struct writer *v = argument;
	uint32_t count = BYTES / 4 / WRITERS, round = 0;

	while (!atomic_load(&v->stop) && !v->lost) {
		round++;
		for (uint32_t i = 0; i < count; i++) {
			_Atomic uint32_t *word = &v->words[i * WRITERS + v->index];

			v->lost |= atomic_load(word) != round - 1;
			atomic_store(word, round);
			v->stores++;
		}
	}
}

/* Use by the GPU moves the locked allocation from video memory to the aperture. */
static void pag_16_no_store_of_eight_threads_is_lost_while_memory_moves(void **state)
{
	static const struct client_options small_memory = {.vram_bytes = 4 * MIB};
	struct writer writers[WRITERS] = {0};
	struct test_client *p = calloc(1, sizeof(*p));
	struct world w;

	assert_true(p);
	world_start(&w, state, &small_memory);
	open_test_client(&w, p, 0);
	w.client.racing = true;
	for (uint32_t move = 0; move < MOVES; move++) {
		/*
		 * Unlocked, it is paged in to video memory; locked, it is evicted, while eight
		 * threads store to it.
		 */
		D3DKMT_HANDLE a = allocate_in(&p->device, BYTES, CPU, 0);

		client_reference(&p->context, a, true);
		client_submit(&p->context);
		client_idle(&w.client);
		uint32_t *words = client_lock(&p->device, a, 0);
		memset(words, 0, BYTES);
		for (uint32_t i = 0; i < WRITERS; i++) {
			writers[i] = (struct writer){.words = (_Atomic uint32_t *)(void *)words,
						     .index = i};
			assert_int_equal(vidmm_thread_create(w.client.host, "stores", store,
							     &writers[i], &writers[i].thread),
					 0);
		}
		client_reference(&p->context, a, false);
		client_submit(&p->context);
		client_idle(&w.client);
		for (uint32_t i = 0; i < WRITERS; i++)
			atomic_store(&writers[i].stop, true);
		for (uint32_t i = 0; i < WRITERS; i++) {
			vidmm_thread_join(writers[i].thread);
			assert_false(writers[i].lost);
		}
		assert_int_equal(client_unlock(&p->device, a), S_OK);
		assert_int_equal(client_deallocate(&p->device, a), S_OK);
		assert_int_equal(p->viewer.freezes, move + 1);
	}
	close_test_client(p);
	world_stop(&w);
	free(p);
}

/* ---- windows of swizzling ranges ---- */

enum { ALTERNATE = ACQUIRE_APERTURE | USE_ALTERNATE_VA, WINDOW = 64 * KIB, PICTURE = 4 * PAGE };

/*
 * A miniport with a window at the end of the BAR, outside the segment, into which it writes images
 * of one value.
 */
static struct {
	struct world *world;
	bool hide; /* the memory segment is not CPU-visible */
	uint64_t bar, at, size;
	uint32_t value;
	uint32_t reasons; /* events with Q-93 */
	char reason[400];
} miniport;

static void describe(void *context, DXGK_QUERYSEGMENTOUT3 *out)
{
	(void)context;
	if (!out->pSegmentDescriptor)
		return;
	miniport.bar = keep_window(out, WINDOW);
	if (miniport.hide)
		out->pSegmentDescriptor[0].CpuTranslatedAddress.QuadPart = 0;
}

static uint32_t *in_bar(uint64_t offset)
{
	uint64_t size;
	const char *bar = vidmm_adapter_bar(miniport.world->client.adapter, 0, &size);

	assert_true(offset < size);
	return (uint32_t *)(uintptr_t)(bar + offset);
}

static bool show_picture(void *context, DXGKARG_ACQUIRESWIZZLINGRANGE *args, NTSTATUS *status)
{
	(void)context;
	(void)status;
	args->CPUTranslatedAddress.QuadPart = (LONGLONG)(miniport.bar + miniport.at);
	args->RangeSize = miniport.size;
	args->SegmentId = IN_VRAM; /* softgpu keeps the range */
	for (uint32_t i = 0; miniport.value && i < PICTURE / 4; i++)
		in_bar(miniport.at)[i] = miniport.value;
	return false;
}

static void note_reason(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context;
	(void)event;
	if (!text || !strstr(text, "Q-93"))
		return;
	miniport.reasons++;
	snprintf(miniport.reason, sizeof(miniport.reason), "%s", text);
}

static void start_ranges(struct world *w, void **state, uint32_t visible, uint32_t ranges)
{
	const struct vidmm_registry_value values[] = {{"VramCpuVisible", visible},
						      {"SwizzlingRanges", ranges}};
	const struct client_options options = {.vram_bytes = 2 * MIB,
					       .aperture_bytes = 4 * MIB,
					       .registry = values,
					       .registry_count = 2};
	bool hide = miniport.hide;

	memset(&miniport, 0, sizeof(miniport));
	miniport.world = w;
	miniport.hide = hide;
	miniport.at = 2 * MIB - WINDOW;
	miniport.size = 2 * PICTURE;
	probe.edit_segments = describe;
	world_start(w, state, &options);
	assert_int_not_equal(
		vidmm_subscribe(w->client.host, 1ull << VIDMM_EVENT_REASON, note_reason, NULL), 0);
}

static void start_windows(struct world *w, void **state, uint32_t visible)
{
	start_ranges(w, state, visible, 64);
}

/* What the CPU sees there: only the allocation's own image, and zeros. */
static void expect_window(const uint32_t *words, uint32_t value)
{
	for (uint32_t i = 0; i < 2 * PICTURE / 4; i++)
		if (words[i] != (i < PICTURE / 4 ? value : 0))
			fail_msg("word %u of the window is 0x%x", i, words[i]);
}

static void fill_window(uint32_t *words, uint32_t pattern)
{
	for (uint32_t i = 0; i < 2 * PICTURE / 4; i++)
		words[i] = pattern | (uint8_t)i;
}

static uint32_t *lock_window(struct client_device *device, D3DKMT_HANDLE a, uint32_t value)
{
	miniport.value = value;
	uint32_t *words = client_lock(device, a, ALTERNATE);
	expect_window(words, value);
	return words;
}

/* The clients use the only window in turn; each retains its descriptors. */
static void swz_24_q_93_a_window_shows_only_its_current_users_content(void **state)
{
	struct test_client *p[2] = {calloc(1, sizeof(*p[0])), calloc(1, sizeof(*p[0]))};
	struct world w;

	assert_true(p[0] && p[1]);
	start_windows(&w, state, 1);
	probe.answer_acquire = show_picture;
	open_test_client(&w, p[0], SECRET);
	open_test_client(&w, p[1], 0x0DDBA100);
	for (uint32_t round = 0; round < 6; round++) {
		struct test_client *me = p[round % 2], *other = p[!(round % 2)];
		D3DKMT_HANDLE a = allocate_in(&me->device, PICTURE, CPU, VRAM);

		uint32_t *words = lock_window(&me->device, a, me->pattern);
		retain_fd(&me->retained, &me->viewer);
		assert_ptr_equal(me->viewer.last_address, words);
		fill_window(words, me->pattern);
		/* The miniport sees the image at its window, the other client nowhere. */
		assert_memory_equal(in_bar(miniport.at), words, 2 * PICTURE);
		overwrite(&other->retained);
		assert_int_equal(words[PICTURE / 4], me->pattern);
		assert_int_equal(client_unlock(&me->device, a), S_OK);
		assert_ptr_equal(client_lock(&me->device, a, ALTERNATE), words);
		assert_int_equal(words[1], me->pattern | 1);
		assert_int_equal(client_unlock(&me->device, a), S_OK);
		expect_none(&other->retained, me->pattern);
		assert_int_equal(client_deallocate(&me->device, a), S_OK);
		client_idle(&w.client);
		for (uint32_t i = 0; i < 2 * PICTURE / 4; i++)
			assert_int_equal(in_bar(miniport.at)[i], 0);
	}
	assert_true(p[0]->retained.count && p[1]->retained.count);
	/* An in-process client sees the same window, after them and before them. */
	D3DKMT_HANDLE own = allocate_in(&w.device, PICTURE, CPU, VRAM);
	uint32_t *words = lock_window(&w.device, own, 0x7700);
	fill_window(words, 0x0DDBA200);
	overwrite(&p[0]->retained);
	assert_int_equal(words[3], 0x0DDBA203);
	assert_int_equal(client_unlock(&w.device, own), S_OK);
	assert_int_equal(client_deallocate(&w.device, own), S_OK);
	client_idle(&w.client);
	D3DKMT_HANDLE last = allocate_in(&p[0]->device, PICTURE, CPU, VRAM);
	(void)lock_window(&p[0]->device, last, SECRET);
	/* The client ends while it has it locked. */
	for (uint32_t i = 0; i < 2; i++) {
		close_test_client(p[i]);
		close_retained(&p[i]->retained);
		free(p[i]);
	}
	assert_int_equal(miniport.reasons, 0);
	world_stop(&w);
}

/* One client with windows; the test calls leave, then free. */
static struct test_client *start_alone(struct world *w, void **state)
{
	struct test_client *p = calloc(1, sizeof(*p));

	assert_true(p);
	start_windows(w, state, 1);
	probe.answer_acquire = show_picture;
	open_test_client(w, p, SECRET);
	return p;
}

/* The lock waits for the page-in. Then the window is replaced by a client object. */
static void swz_04_q_93_a_lock_pages_in_before_the_window_becomes_a_client_object(void **state)
{
	struct world w;
	struct test_client *p = start_alone(&w, state);

	probe.edit_allocation = flag_swizzled;
	D3DKMT_HANDLE a = allocate_in(&p->device, PICTURE, CPU, VRAM);
	client_write(&p->device, a, PICTURE, 0x100);
	assert_int_equal(client_residency(&p->device, a), EVICTED);
	fill_window(lock_window(&p->device, a, 0x5555), p->pattern);
	assert_int_equal(client_residency(&p->device, a), IN_VRAM);
	assert_int_equal(client_unlock(&p->device, a), S_OK);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 1);
	client_expect(&p->device, a, PICTURE, 0x100);
	close_test_client(p);
	free(p);
	world_stop(&w);
}

static void expect_fallback(struct test_client *p, const char *why)
{
	D3DKMT_HANDLE a = allocate_in(&p->device, PICTURE, CPU, VRAM), handle = a;
	uint32_t before = miniport.reasons;
	void *data;

	client_reference(&p->context, a, true);
	client_submit(&p->context);
	client_idle(&miniport.world->client);
	client_forget(&miniport.world->client);
	assert_int_equal(client_try_lock(&p->device, &handle, ALTERNATE, &data),
			 D3DERR_NOTAVAILABLE);
	assert_true(client_found(&miniport.world->client, "LOCK-19"));
	assert_int_equal(miniport.reasons, before + 1);
	if (!strstr(miniport.reason, why))
		fail_msg("not \"%s\": %s", why, miniport.reason);
	client_forget(&miniport.world->client);
	/* It is unswizzled instead. */
	uint32_t *words = client_lock(&p->device, a, ALTERNATE | LOCK_ENTIRE);
	*words = p->pattern;
	assert_int_equal(client_residency(&p->device, a), EVICTED);
	assert_int_equal(client_unlock(&p->device, a), S_OK);
	assert_int_equal(client_deallocate(&p->device, a), S_OK);
	client_idle(&miniport.world->client);
}

static void swz_24_q_93_a_window_that_cannot_be_private_is_not_used(void **state)
{
	struct world w;
	struct test_client *p = start_alone(&w, state);

	miniport.size = 2 * PICTURE - 8;
	expect_fallback(p, "ends inside a page");
	miniport.size = 2 * PICTURE;
	miniport.at = MIB; /* inside a segment, over other allocations */
	expect_fallback(p, "is in a segment");
	miniport.at = 2 * MIB - WINDOW;
	D3DKMT_HANDLE own = allocate_in(&w.device, PICTURE, CPU, VRAM);
	(void)lock_window(&w.device, own, 0x7700);
	miniport.value = 0;
	expect_fallback(p, "the window of another range");
	miniport.at += PAGE;
	expect_fallback(p, "the window of another range");
	assert_int_equal(client_unlock(&w.device, own), S_OK);
	close_test_client(p);
	world_stop(&w);
	/* It is unknown whether the address is the allocation's own placement. */
	probe.answer_acquire = NULL;
	miniport.hide = true;
	start_windows(&w, state, 0);
	open_test_client(&w, p, SECRET);
	expect_fallback(p, "address is not known");
	close_test_client(p);
	world_stop(&w);
	miniport.hide = false;
	free(p);
}

/* Windows side by side, at the same time: neither overlaps the other. */
static void swz_24_q_93_two_clients_use_windows_that_do_not_overlap(void **state)
{
	struct test_client *p[2] = {calloc(1, sizeof(*p[0])), calloc(1, sizeof(*p[0]))};
	uint32_t *words[2];
	D3DKMT_HANDLE a[2];
	struct world w;

	assert_true(p[0] && p[1]);
	start_windows(&w, state, 1);
	probe.answer_acquire = show_picture;
	for (uint32_t i = 0; i < 2; i++) {
		open_test_client(&w, p[i], 0x0DDBA000 + (i << 8));
		a[i] = allocate_in(&p[i]->device, PICTURE, CPU, VRAM);
		words[i] = lock_window(&p[i]->device, a[i], p[i]->pattern);
		fill_window(words[i], p[i]->pattern);
		miniport.at += 2 * PICTURE;
	}
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < 2 * PICTURE / 4; k++)
			assert_int_equal(words[i][k], p[i]->pattern | (uint8_t)k);
		assert_int_equal(client_unlock(&p[i]->device, a[i]), S_OK);
		close_test_client(p[i]);
		free(p[i]);
	}
	assert_int_equal(miniport.reasons, 0);
	world_stop(&w);
}

/* The range is used again, by a range in the segment: its release changes no content there. */
static void swz_24_q_93_a_range_that_was_a_window_may_be_in_a_segment_next(void **state)
{
	struct test_client *p = calloc(1, sizeof(*p));
	struct world w;

	assert_true(p);
	start_ranges(&w, state, 1, 1);
	probe.answer_acquire = show_picture;
	open_test_client(&w, p, SECRET);
	D3DKMT_HANDLE a = allocate_in(&p->device, PICTURE, CPU, VRAM);
	probe.edit_allocation = flag_swizzled;
	D3DKMT_HANDLE own = allocate_in(&w.device, PICTURE, CPU, VRAM);
	(void)lock_window(&p->device, a, p->pattern);
	assert_int_equal(client_unlock(&p->device, a), S_OK);
	assert_int_equal(client_deallocate(&p->device, a), S_OK);
	client_idle(&w.client);
	probe.answer_acquire = NULL;
	use_now(&w, own, true);
	uint32_t *words = client_lock(&w.device, own, ALTERNATE);
	for (uint32_t i = 0; i < PICTURE / 4; i++)
		words[i] = 0x700 + i;
	assert_int_equal(client_unlock(&w.device, own), S_OK);
	client_expect(&w.device, own, PICTURE, 0x700);
	assert_int_equal(probe_count(PROBE_RELEASE), 2);
	close_test_client(p);
	free(p);
	world_stop(&w);
}

/*
 * A range over memory without CpuVisible shows the placement itself. No client sees what was there
 * before.
 */
static void swz_24_q_93_a_hidden_placement_shows_only_its_users_content(void **state)
{
	struct test_client *p[2] = {calloc(1, sizeof(*p[0])), calloc(1, sizeof(*p[0]))};
	struct world w;

	assert_true(p[0] && p[1]);
	start_windows(&w, state, 0);
	open_test_client(&w, p[0], SECRET);
	open_test_client(&w, p[1], 0x0DDBA100);
	for (uint32_t round = 0; round < 6; round++) {
		struct test_client *me = p[round % 2], *other = p[!(round % 2)];
		D3DKMT_HANDLE a = allocate_in(&me->device, PICTURE, CPU, VRAM);
		D3DKMT_HANDLE own = allocate_in(&w.device, PICTURE, CPU, VRAM);

		uint32_t *words = client_lock(&me->device, a, ALTERNATE);
		retain_fd(&me->retained, &me->viewer);
		for (uint32_t i = 0; i < PICTURE / 4; i++) {
			assert_int_equal(words[i], 0);
			words[i] = me->pattern | (uint8_t)i;
		}
		assert_int_equal(client_residency(&me->device, a), IN_VRAM);
		use_now(&w, own, true);
		overwrite(&other->retained);
		assert_int_equal(words[PICTURE / 4 - 1], me->pattern | 0xFF);
		expect_none(&other->retained, me->pattern);
		assert_int_equal(client_unlock(&me->device, a), S_OK);
		assert_int_equal(client_deallocate(&me->device, a), S_OK);
		assert_int_equal(client_deallocate(&w.device, own), S_OK);
		client_idle(&w.client);
	}
	assert_true(p[0]->retained.count && p[1]->retained.count);
	for (uint32_t i = 0; i < 2; i++) {
		close_test_client(p[i]);
		close_retained(&p[i]->retained);
		free(p[i]);
	}
	assert_int_equal(miniport.reasons, 0);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(no_process_reads_bytes_of_another_process),
		BOTH(memory_that_a_dead_client_still_maps_is_never_reused),
		ON_LINUX(pag_16_no_store_of_eight_threads_is_lost_while_memory_moves),
		BOTH(swz_24_q_93_a_window_shows_only_its_current_users_content),
		BOTH(swz_04_q_93_a_lock_pages_in_before_the_window_becomes_a_client_object),
		BOTH(swz_24_q_93_a_window_that_cannot_be_private_is_not_used),
		BOTH(swz_24_q_93_two_clients_use_windows_that_do_not_overlap),
		BOTH(swz_24_q_93_a_range_that_was_a_window_may_be_in_a_segment_next),
		BOTH(swz_24_q_93_a_hidden_placement_shows_only_its_users_content),
	};

	return cmocka_run_group_tests_name("memory isolation", tests, NULL, NULL);
}
