/* SPDX-License-Identifier: MIT */
/*
 * A source is a decoder, optionally with a thread that runs it ahead of the reader: decompression
 * costs more than parsing, and a second processor can do it in parallel. The thread fills a ring
 * buffer of blocks (one producer, one consumer). `lock` guards the counters of the ring. A block
 * belongs to the thread until it is counted as filled, and to the reader after that.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "trace_decode.h"
#include "trace_source.h"

#define BLOCKS      8u
#define BLOCK_BYTES ((size_t)256 << 10)

struct block {
	char *bytes;
	long size;           /* result of trace_decode_read: 0 at the end, -1 on failure */
	uint64_t begin, end; /* trace_decode_position before and after it */
};

struct trace_source {
	/* used by the thread alone if there is one */
	struct trace_decode decode;
	bool ahead;
	pthread_t thread;
	struct block block[BLOCKS];
	size_t taken;      /* bytes of the oldest filled block that the reader has taken */
	uint64_t position; /* as trace_decode_position, behind those bytes */
	/* The last trace_source_read that returned text: its bytes, and the position before it. */
	uint64_t last_bytes, last_begin;

	/* guarded by `lock` */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned first, filled;
	bool stop;
};

static void *read_ahead(void *arg)
{
	struct trace_source *source = arg;
	long got;

	do {
		struct block *block;

		pthread_mutex_lock(&source->lock);
		while (source->filled == BLOCKS && !source->stop)
			pthread_cond_wait(&source->changed, &source->lock);
		block = &source->block[(source->first + source->filled) % BLOCKS];
		if (source->stop)
			block = NULL;
		pthread_mutex_unlock(&source->lock);
		if (!block)
			break;
		block->begin = trace_decode_position(&source->decode);
		got = trace_decode_read(&source->decode, block->bytes, BLOCK_BYTES);
		block->end = trace_decode_position(&source->decode);
		pthread_mutex_lock(&source->lock);
		block->size = got;
		source->filled++;
		pthread_cond_signal(&source->changed);
		pthread_mutex_unlock(&source->lock);
	} while (got > 0);
	return NULL;
}

/*
 * Starts the thread. Failing to start it is no error: the source then decodes in the reader's
 * thread.
 */
static void start_ahead(struct trace_source *source)
{
	unsigned i;

	for (i = 0; i < BLOCKS; i++) {
		source->block[i].bytes = malloc(BLOCK_BYTES);
		if (!source->block[i].bytes)
			return;
	}
	pthread_mutex_init(&source->lock, NULL);
	pthread_cond_init(&source->changed, NULL);
	source->ahead = pthread_create(&source->thread, NULL, read_ahead, source) == 0;
	if (!source->ahead) {
		pthread_cond_destroy(&source->changed);
		pthread_mutex_destroy(&source->lock);
	}
}

struct trace_source *trace_source_file(const char *path, bool ahead)
{
	struct trace_source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	if (!trace_decode_init_file(&source->decode, path)) {
		free(source);
		return NULL;
	}
	/* A pipe is read without a thread: one that is blocked in read() could not be stopped. */
	if (ahead && strcmp(path, "-") != 0)
		start_ahead(source);
	return source;
}

struct trace_source *trace_source_memory(const void *data, size_t size)
{
	struct trace_source *source = calloc(1, sizeof(*source));

	if (source && !trace_decode_init_memory(&source->decode, data, size)) {
		free(source);
		source = NULL;
	}
	return source;
}

void trace_source_close(struct trace_source *source)
{
	unsigned i;

	if (!source)
		return;
	if (source->ahead) {
		pthread_mutex_lock(&source->lock);
		source->stop = true;
		pthread_cond_signal(&source->changed);
		pthread_mutex_unlock(&source->lock);
		pthread_join(source->thread, NULL);
		pthread_cond_destroy(&source->changed);
		pthread_mutex_destroy(&source->lock);
	}
	for (i = 0; i < BLOCKS; i++)
		free(source->block[i].bytes);
	trace_decode_finish(&source->decode);
	free(source);
}

/* Waits for the oldest filled block. The thread does not touch it before give_back. */
static struct block *wait_filled(struct trace_source *source)
{
	struct block *block;

	pthread_mutex_lock(&source->lock);
	while (source->filled == 0)
		pthread_cond_wait(&source->changed, &source->lock);
	block = &source->block[source->first];
	pthread_mutex_unlock(&source->lock);
	return block;
}

static void give_back(struct trace_source *source)
{
	pthread_mutex_lock(&source->lock);
	source->first = (source->first + 1) % BLOCKS;
	source->filled--;
	source->taken = 0;
	/*
	 * Waking the thread costs the reader more than parsing a block, so the thread is woken only
	 * when half of the ring is free.
	 */
	if (source->filled == BLOCKS / 2)
		pthread_cond_signal(&source->changed);
	pthread_mutex_unlock(&source->lock);
}

static long read_blocks(struct trace_source *source, char *buffer, size_t size)
{
	struct block *block = wait_filled(source);

	/* The block of an end or a failure stays in the ring: every later read returns it again. */
	if (block->size <= 0)
		return block->size;
	if (size > (size_t)block->size - source->taken)
		size = (size_t)block->size - source->taken;
	memcpy(buffer, block->bytes + source->taken, size);
	source->taken += size;
	source->position =
		block->begin + (block->end - block->begin) * source->taken / (uint64_t)block->size;
	if (source->taken == (size_t)block->size)
		give_back(source);
	return (long)size;
}

static uint64_t position(const struct trace_source *source)
{
	return source->ahead ? source->position : trace_decode_position(&source->decode);
}

long trace_source_read(struct trace_source *source, char *buffer, size_t size, const char **why)
{
	uint64_t before = position(source);
	long got = source->ahead ? read_blocks(source, buffer, size)
				 : trace_decode_read(&source->decode, buffer, size);

	if (got < 0)
		*why = source->decode.why;
	if (got <= 0)
		return got;
	source->last_bytes = (uint64_t)got;
	source->last_begin = before;
	return got;
}

bool trace_source_bad_data(const struct trace_source *source)
{
	return source->decode.bad_data;
}

uint64_t trace_source_progress(const struct trace_source *source, uint64_t unused_bytes)
{
	uint64_t end = position(source);

	if (unused_bytes >= source->last_bytes)
		return source->last_begin;
	return end - (end - source->last_begin) * unused_bytes / source->last_bytes;
}

uint64_t trace_source_size(const struct trace_source *source)
{
	return source->decode.size;
}
