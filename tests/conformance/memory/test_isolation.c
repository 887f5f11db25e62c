/* SPDX-License-Identifier: MIT */
/*
 * Processes in other address spaces: nobody finds bytes of others in what he was given, whatever he keeps of it; and content moves
 * under their stores without losing one.
 */
#define _DEFAULT_SOURCE /* pwrite */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "support/apart.h"

enum { KEPT = 256, SECRET = 0x5EC2E700 };

/* Each descriptor that one was given, kept; they can not be taken back. */
struct hoard {
	int fd[KEPT];
	uint32_t count;
};

static void keep(struct hoard *hoard, const struct apart_viewer *viewer)
{
	if (viewer->last_fd >= 0 && hoard->count < KEPT)
		hoard->fd[hoard->count++] = dup(viewer->last_fd);
}

/* No word of any of them is of the other's. */
static void search(const struct hoard *hoard, uint32_t pattern, uint64_t *looked)
{
	for (uint32_t i = 0; i < hoard->count; i++) {
		struct stat info;

		assert_int_equal(fstat(hoard->fd[i], &info), 0);
		const uint32_t *words =
			mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, hoard->fd[i], 0);
		assert_ptr_not_equal(words, MAP_FAILED);
		for (uint64_t n = 0; n < (uint64_t)info.st_size / 4; n++)
			if ((words[n] & 0xFFFFFF00) == pattern)
				fail_msg("word %llu of descriptor %u is the other's",
					 (unsigned long long)n, i);
		*looked += (uint64_t)info.st_size;
		munmap((void *)(uintptr_t)words, (size_t)info.st_size);
	}
}

static void drop(struct hoard *hoard)
{
	for (uint32_t i = 0; i < hoard->count; i++)
		close(hoard->fd[i]);
}

struct party {
	struct apart_viewer viewer;
	struct client_device device;
	struct client_context context;
	struct hoard hoard;
	uint32_t pattern;
};

static void enter(struct world *w, struct party *p, uint32_t pattern)
{
	memset(p, 0, sizeof(*p));
	apart_open(&w->client, &p->viewer, &p->device);
	client_context(&p->device, 0, &p->context);
	p->pattern = pattern;
}

static void leave(struct party *p)
{
	client_context_end(&p->context);
	apart_close(&p->viewer, &p->device);
}

/* New memory is zero; then it holds the pattern, is used by the GPU, locked again where it is now, and may go. */
static void play(struct world *w, struct party *p, uint32_t round)
{
	uint64_t bytes = (1 + round % 7) * 256 * KIB;
	D3DKMT_HANDLE a = allocate_in(&p->device, bytes, CPU, 0);
	uint32_t *words = client_lock(&p->device, a, 0);

	keep(&p->hoard, &p->viewer);
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
	keep(&p->hoard, &p->viewer);
	for (uint64_t i = 0; i < bytes / 4; i++)
		if (words[i] != (p->pattern | (uint8_t)round))
			fail_msg("word %llu is 0x%x", (unsigned long long)i, words[i]);
	assert_int_equal(client_unlock(&p->device, a), S_OK);
	if (round % 3)
		assert_int_equal(client_deallocate(&p->device, a), S_OK);
	(void)w;
}

static void nobody_finds_what_was_another_s(void **state)
{
	static const struct client_options little = {.vram_bytes = 4 * MIB,
						     .aperture_bytes = 8 * MIB};
	struct party *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	uint64_t looked = 0;
	struct world w;

	assert_true(a && b);
	world_start(&w, state, &little);
	enter(&w, a, SECRET);
	enter(&w, b, 0x0DDBA100);
	/* A third, in the host's own address space, takes turns with them in the same segments. */
	for (uint32_t round = 0; round < 40; round++) {
		play(&w, a, round);
		play(&w, b, round + 3);
		D3DKMT_HANDLE own = allocate_in(&w.device, MIB, CPU, 0);
		client_write(&w.device, own, MIB, 0x1000);
		client_reference(&w.context, own, true);
		client_submit(&w.context);
		client_expect(&w.device, own, MIB, 0x1000);
		assert_int_equal(client_deallocate(&w.device, own), S_OK);
	}
	client_idle(&w.client);
	search(&a->hoard, b->pattern, &looked);
	search(&b->hoard, a->pattern, &looked);
	assert_true(looked > 40 * MIB);
	leave(a);
	/* What is left of it when it is gone is nobody's. */
	for (uint32_t round = 0; round < 10; round++)
		play(&w, b, round);
	search(&a->hoard, b->pattern, &looked);
	leave(b);
	drop(&a->hoard);
	drop(&b->hoard);
	world_stop(&w);
	free(a);
	free(b);
}

/* It may go on writing through what it keeps: to memory that is nobody's. */
static void what_is_kept_reaches_nobody(void **state)
{
	static const struct client_options little = {.vram_bytes = 4 * MIB};
	struct party *a = calloc(1, sizeof(*a));
	struct world w;

	assert_true(a);
	world_start(&w, state, &little);
	enter(&w, a, SECRET);
	for (uint32_t round = 1; round < 20; round++)
		play(&w, a, round);
	leave(a);
	D3DKMT_HANDLE own = allocate_in(&w.device, 3 * MIB, CPU, 0);
	client_write(&w.device, own, 3 * MIB, 0x7000);
	client_reference(&w.context, own, true);
	client_submit(&w.context);
	for (uint32_t i = 0; i < a->hoard.count; i++) {
		struct stat info;

		assert_int_equal(fstat(a->hoard.fd[i], &info), 0);
		void *kept = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
				  a->hoard.fd[i], 0);
		assert_ptr_not_equal(kept, MAP_FAILED);
		memset(kept, 0xEE, (size_t)info.st_size);
		munmap(kept, (size_t)info.st_size);
		assert_int_equal(ftruncate(a->hoard.fd[i], 0), -1);
	}
	client_expect(&w.device, own, 3 * MIB, 0x7000);
	drop(&a->hoard);
	world_stop(&w);
	free(a);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MOVES 5u /* writers that never rest are slow there */
#endif
#endif
#ifndef MOVES
#define MOVES 100u
#endif
enum { WRITERS = 8, BYTES = 64 * KIB };

/* Counts up its own words, each of which must always be what it stored last. */
struct writer {
	_Atomic uint32_t *words; /* every eighth is its own */
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

/* The use by the GPU takes what is locked from video memory to the aperture. */
static void pag_16_eight_writers_lose_no_store(void **state)
{
	static const struct client_options little = {.vram_bytes = 4 * MIB};
	struct writer writers[WRITERS] = {0};
	struct party *p = calloc(1, sizeof(*p));
	struct world w;

	assert_true(p);
	world_start(&w, state, &little);
	enter(&w, p, 0);
	w.client.racing = true;
	for (uint32_t move = 0; move < MOVES; move++) {
		/* Unlocked it goes to video memory, and locked out of it: under the hands of eight. */
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
	leave(p);
	world_stop(&w);
	free(p);
}

/* ---- windows of swizzling ranges ---- */

enum { ALTERNATE = ACQUIRE_APERTURE | USE_ALTERNATE_VA, WINDOW = 64 * KIB, PICTURE = 4 * PAGE };

/* A miniport with a window at the end of the BAR, outside the segment, into which it puts pictures of one value. */
static struct {
	struct world *world;
	bool hide; /* where the segment is */
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

static void start_windows(struct world *w, void **state, uint32_t visible)
{
	struct vidmm_registry_value value = {"VramCpuVisible", visible};
	const struct client_options options = {.vram_bytes = 2 * MIB,
					       .aperture_bytes = 4 * MIB,
					       .registry = &value,
					       .registry_count = 1};
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

/* What the CPU sees there: nothing but its own picture, and zeroes. */
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

/* Through what he kept he reaches neither the window nor who has it now. */
static void scribble(const struct hoard *hoard)
{
	static const char evil[PAGE] = {0x6E};

	for (uint32_t i = 0; i < hoard->count; i++) {
		struct stat info;

		assert_int_equal(fstat(hoard->fd[i], &info), 0);
		for (off_t at = 0; at < info.st_size; at += PAGE)
			assert_int_equal(pwrite(hoard->fd[i], evil, PAGE, at), PAGE);
	}
}

/* One after the other they have the only window there is; each keeps what he was given. */
static void swz_24_q_93_a_window_is_its_users_alone(void **state)
{
	struct party *p[2] = {calloc(1, sizeof(*p[0])), calloc(1, sizeof(*p[0]))};
	uint64_t looked = 0;
	struct world w;

	assert_true(p[0] && p[1]);
	start_windows(&w, state, 1);
	probe.answer_acquire = show_picture;
	enter(&w, p[0], SECRET);
	enter(&w, p[1], 0x0DDBA100);
	for (uint32_t round = 0; round < 6; round++) {
		struct party *me = p[round % 2], *other = p[!(round % 2)];
		D3DKMT_HANDLE a = allocate_in(&me->device, PICTURE, CPU, VRAM);

		uint32_t *words = lock_window(&me->device, a, me->pattern);
		keep(&me->hoard, &me->viewer);
		assert_ptr_equal(me->viewer.last_address, words);
		fill_window(words, me->pattern);
		/* The miniport sees it where its window is, and the other one nowhere. */
		assert_memory_equal(in_bar(miniport.at), words, 2 * PICTURE);
		scribble(&other->hoard);
		assert_int_equal(words[PICTURE / 4], me->pattern);
		assert_int_equal(client_unlock(&me->device, a), S_OK);
		assert_ptr_equal(client_lock(&me->device, a, ALTERNATE), words);
		assert_int_equal(words[1], me->pattern | 1);
		assert_int_equal(client_unlock(&me->device, a), S_OK);
		search(&other->hoard, me->pattern, &looked);
		assert_int_equal(client_deallocate(&me->device, a), S_OK);
		client_idle(&w.client);
		for (uint32_t i = 0; i < 2 * PICTURE / 4; i++)
			assert_int_equal(in_bar(miniport.at)[i], 0);
	}
	assert_true(looked > 0);
	/* In the host's own address space it is the same window, after them and before them. */
	D3DKMT_HANDLE own = allocate_in(&w.device, PICTURE, CPU, VRAM);
	uint32_t *words = lock_window(&w.device, own, 0x7700);
	fill_window(words, 0x0DDBA200);
	scribble(&p[0]->hoard);
	assert_int_equal(words[3], 0x0DDBA203);
	assert_int_equal(client_unlock(&w.device, own), S_OK);
	assert_int_equal(client_deallocate(&w.device, own), S_OK);
	client_idle(&w.client);
	D3DKMT_HANDLE last = allocate_in(&p[0]->device, PICTURE, CPU, VRAM);
	(void)lock_window(&p[0]->device, last, SECRET);
	/* He is gone, and has it locked. */
	for (uint32_t i = 0; i < 2; i++) {
		leave(p[i]);
		drop(&p[i]->hoard);
		free(p[i]);
	}
	assert_int_equal(miniport.reasons, 0);
	world_stop(&w);
}

/* One with windows; to be left, and then freed. */
static struct party *start_alone(struct world *w, void **state)
{
	struct party *p = calloc(1, sizeof(*p));

	assert_true(p);
	start_windows(w, state, 1);
	probe.answer_acquire = show_picture;
	enter(w, p, SECRET);
	return p;
}

/* What is paged in for the lock is waited for, and then the window is made its own. */
static void swz_04_q_93_paged_in_for_the_window(void **state)
{
	struct world w;
	struct party *p = start_alone(&w, state);

	probe.edit_allocation = flag_swizzled;
	D3DKMT_HANDLE a = allocate_in(&p->device, PICTURE, CPU, VRAM);
	client_write(&p->device, a, PICTURE, 0x100);
	assert_int_equal(client_residency(&p->device, a), EVICTED);
	fill_window(lock_window(&p->device, a, 0x5555), p->pattern);
	assert_int_equal(client_residency(&p->device, a), IN_VRAM);
	assert_int_equal(client_unlock(&p->device, a), S_OK);
	assert_int_equal(probe_count(PROBE_ACQUIRE), 1);
	client_expect(&p->device, a, PICTURE, 0x100);
	leave(p);
	free(p);
	world_stop(&w);
}

static void expect_fallback(struct party *p, const char *why)
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

static void swz_24_q_93_what_cannot_be_its_own_is_not_shown(void **state)
{
	struct world w;
	struct party *p = start_alone(&w, state);

	miniport.size = 2 * PICTURE - 8;
	expect_fallback(p, "ends inside a page");
	miniport.size = 2 * PICTURE;
	miniport.at = MIB; /* of a segment, and of whoever is there */
	expect_fallback(p, "is in a segment");
	miniport.at = 2 * MIB - WINDOW;
	D3DKMT_HANDLE own = allocate_in(&w.device, PICTURE, CPU, VRAM);
	(void)lock_window(&w.device, own, 0x7700);
	miniport.value = 0;
	miniport.at += PAGE;
	expect_fallback(p, "another range's");
	assert_int_equal(client_unlock(&w.device, own), S_OK);
	leave(p);
	world_stop(&w);
	/* Nobody knows whether it is the allocation's own place. */
	probe.answer_acquire = NULL;
	miniport.hide = true;
	start_windows(&w, state, 0);
	enter(&w, p, SECRET);
	expect_fallback(p, "or that is not known");
	leave(p);
	world_stop(&w);
	miniport.hide = false;
	free(p);
}

/* Of memory that the CPU does not see a range shows the place itself; nobody has what lay there before him. */
static void swz_24_q_93_a_hidden_place_is_its_users_alone(void **state)
{
	struct party *p[2] = {calloc(1, sizeof(*p[0])), calloc(1, sizeof(*p[0]))};
	uint64_t looked = 0;
	struct world w;

	assert_true(p[0] && p[1]);
	start_windows(&w, state, 0);
	enter(&w, p[0], SECRET);
	enter(&w, p[1], 0x0DDBA100);
	for (uint32_t round = 0; round < 6; round++) {
		struct party *me = p[round % 2], *other = p[!(round % 2)];
		D3DKMT_HANDLE a = allocate_in(&me->device, PICTURE, CPU, VRAM);
		D3DKMT_HANDLE own = allocate_in(&w.device, PICTURE, CPU, VRAM);

		uint32_t *words = client_lock(&me->device, a, ALTERNATE);
		keep(&me->hoard, &me->viewer);
		for (uint32_t i = 0; i < PICTURE / 4; i++) {
			assert_int_equal(words[i], 0);
			words[i] = me->pattern | (uint8_t)i;
		}
		assert_int_equal(client_residency(&me->device, a), IN_VRAM);
		use_now(&w, own, true);
		scribble(&other->hoard);
		assert_int_equal(words[PICTURE / 4 - 1], me->pattern | 0xFF);
		search(&other->hoard, me->pattern, &looked);
		assert_int_equal(client_unlock(&me->device, a), S_OK);
		assert_int_equal(client_deallocate(&me->device, a), S_OK);
		assert_int_equal(client_deallocate(&w.device, own), S_OK);
		client_idle(&w.client);
	}
	assert_true(looked > 0);
	for (uint32_t i = 0; i < 2; i++) {
		leave(p[i]);
		drop(&p[i]->hoard);
		free(p[i]);
	}
	assert_int_equal(miniport.reasons, 0);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(nobody_finds_what_was_another_s),
		BOTH(what_is_kept_reaches_nobody),
		ON_LINUX(pag_16_eight_writers_lose_no_store),
		BOTH(swz_24_q_93_a_window_is_its_users_alone),
		BOTH(swz_04_q_93_paged_in_for_the_window),
		BOTH(swz_24_q_93_what_cannot_be_its_own_is_not_shown),
		BOTH(swz_24_q_93_a_hidden_place_is_its_users_alone),
	};

	return cmocka_run_group_tests_name("memory isolation", tests, NULL, NULL);
}
