/* SPDX-License-Identifier: MIT */
/*
 * Processes in other address spaces: nobody finds bytes of others in what he was given, whatever he keeps of it; and content moves
 * under their stores without losing one.
 */
#include "world.h"

#include <fcntl.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(nobody_finds_what_was_another_s),
		BOTH(what_is_kept_reaches_nobody),
		ON_LINUX(pag_16_eight_writers_lose_no_store),
	};

	return cmocka_run_group_tests_name("memory isolation", tests, NULL, NULL);
}
