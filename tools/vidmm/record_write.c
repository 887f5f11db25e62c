/* SPDX-License-Identifier: MIT */
/*
 * Events are gathered in one of two buffers. A thread compresses and writes the other, so that the
 * threads that emit events copy 64 bytes for each and take one mutex.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "record_describe.h"
#include "record_format.h"
#include "record_write.h"

#define FLUSH_MS    500u
#define COMPRESSION 1
#define TEXTS_BYTES ((size_t)256 << 10)
#define CHUNK_BYTES_MOST \
	(sizeof(struct record_chunk) + RECORD_EVENTS_MAX * RECORD_EVENT_BYTES + TEXTS_BYTES)

_Static_assert(CHUNK_BYTES_MOST <= RECORD_CHUNK_BYTES, "readers accept the longest chunk");

struct buffer {
	uint32_t count, text_bytes;
	struct vidmm_event event[RECORD_EVENTS_MAX]; /* `reserved`: bytes of the text */
	char text[TEXTS_BYTES];
};

/* An event of a full buffer. */
struct entry {
	const struct vidmm_event *event;
	const char *text;
};

struct record_writer {
	char *path;
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, drained;
	/* guarded by `lock` */
	struct buffer *filling;
	struct buffer *full;  /* the thread writes it; NULL: none */
	struct buffer *spare; /* NULL: while there is a full one */
	bool stop;
	/* of the thread, and of record_create and record_finish, which run without it */
	ZSTD_CCtx *zstd;
	struct entry entries[RECORD_EVENTS_MAX];
	char *raw, *packed;
	size_t packed_bytes;
	int error; /* errno of the first failure, which has been reported */
};

/* ---- chunks ---- */

/* Events are lost from now on: the user learns it when it happens, a host may run for days. */
static void fail(struct record_writer *w, int error)
{
	if (w->error)
		return;
	w->error = error;
	fprintf(stderr, "vidmm: %s: %s\n", w->path, strerror(error));
}

static void write_all(struct record_writer *w, const char *bytes, size_t count)
{
	while (count && !w->error) {
		ssize_t written = write(w->fd, bytes, count);

		if (written < 0 && errno != EINTR)
			fail(w, errno);
		if (written <= 0)
			continue;
		bytes += written;
		count -= (size_t)written;
	}
}

/* Compresses RAW_BYTES bytes of w->raw into a frame. */
static void write_frame(struct record_writer *w, size_t raw_bytes)
{
	size_t size = ZSTD_compress2(w->zstd, w->packed, w->packed_bytes, w->raw, raw_bytes);

	if (ZSTD_isError(size))
		fail(w, ENOMEM);
	else
		write_all(w, w->packed, size);
}

static char *put32(char *at, uint32_t value)
{
	value = htole32(value);
	return (char *)memcpy(at, &value, sizeof(value)) + sizeof(value);
}

static char *put_head(char *at, enum record_kind kind, uint32_t events, uint32_t bytes)
{
	at = put32(at, kind);
	at = put32(at, events);
	at = put32(at, bytes);
	return put32(at, 0);
}

static char *put64(char *at, uint64_t value)
{
	value = htole64(value);
	return (char *)memcpy(at, &value, sizeof(value)) + sizeof(value);
}

static char *put16(char *at, uint16_t value)
{
	value = htole16(value);
	return (char *)memcpy(at, &value, sizeof(value)) + sizeof(value);
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->event->sequence > y->event->sequence) -
	       (x->event->sequence < y->event->sequence);
}

/* Threads may deliver their events in another order than that of the sequence. */
static void sort(struct record_writer *w, const struct buffer *b)
{
	const char *text = b->text;
	bool sorted = true;

	for (uint32_t i = 0; i < b->count; i++) {
		w->entries[i] = (struct entry){&b->event[i], text};
		text += b->event[i].reserved;
		sorted = sorted && (!i || b->event[i - 1].sequence < b->event[i].sequence);
	}
	if (!sorted)
		qsort(w->entries, b->count, sizeof(w->entries[0]), compare);
}

static char *put_columns(char *at, const struct entry *entry, uint32_t count)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < count; before = entry[i++].event->time_ns)
		at = put64(at, entry[i].event->time_ns - before);
	before = 0;
	for (uint32_t i = 0; i < count; before = entry[i++].event->sequence)
		at = put64(at, entry[i].event->sequence - before);
	for (uint32_t column = 0; column < 4; column++)
		for (uint32_t i = 0; i < count; i++)
			at = put64(at, entry[i].event->arg[column]);
	for (uint32_t i = 0; i < count; i++)
		at = put32(at, entry[i].event->process);
	for (uint32_t i = 0; i < count; i++)
		at = put32(at, entry[i].event->object);
	for (uint32_t i = 0; i < count; i++)
		at = put32(at, entry[i].event->reserved);
	for (uint32_t i = 0; i < count; i++)
		at = put16(at, entry[i].event->type);
	for (uint32_t i = 0; i < count; i++)
		at = put16(at, entry[i].event->reason);
	for (uint32_t i = 0; i < count; i++) {
		memcpy(at, entry[i].text, entry[i].event->reserved);
		at += entry[i].event->reserved;
	}
	return at;
}

static void write_events(struct record_writer *w, struct buffer *b)
{
	char *at = put_head(w->raw, RECORD_EVENTS, b->count, b->text_bytes);

	sort(w, b);
	at = put_columns(at, w->entries, b->count);
	write_frame(w, (size_t)(at - w->raw));
	b->count = b->text_bytes = 0;
}

/* Consumes the reference. */
static void write_json(struct record_writer *w, json_t *object)
{
	size_t most = CHUNK_BYTES_MOST - sizeof(struct record_chunk);

	size_t size = object ? json_dumpb(object, w->raw + sizeof(struct record_chunk), most,
					  JSON_COMPACT)
			     : 0;
	if (size && size <= most) {
		put_head(w->raw, RECORD_JSON, 0, (uint32_t)size);
		write_frame(w, sizeof(struct record_chunk) + size);
	} else {
		fail(w, ENOMEM);
	}
	json_decref(object);
}

/* ---- the thread ---- */

/* Gives the filling buffer to the thread that writes, which has none. The caller holds the lock. */
static void hand_over(struct record_writer *w)
{
	w->full = w->filling;
	w->filling = w->spare;
	w->spare = NULL;
}

/* Waits for a full buffer, or half a second, and takes what there is. The caller holds the lock. */
static struct buffer *next_buffer(struct record_writer *w)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += FLUSH_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	while (!w->full && !w->stop)
		if (pthread_cond_timedwait(&w->wake, &w->lock, &until) == ETIMEDOUT)
			break;
	if (!w->full && w->filling->count)
		hand_over(w);
	return w->full;
}

static void *write_buffers(void *context)
{
	struct record_writer *w = context;
	struct buffer *full;

	pthread_mutex_lock(&w->lock);
	while ((full = next_buffer(w)) != NULL || !w->stop) {
		if (!full)
			continue;
		pthread_mutex_unlock(&w->lock);
		write_events(w, full);
		pthread_mutex_lock(&w->lock);
		w->spare = full;
		w->full = NULL;
		pthread_cond_broadcast(&w->drained);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- events ---- */

static bool has_space(const struct buffer *b, uint32_t text_bytes)
{
	return b->count < RECORD_EVENTS_MAX && b->text_bytes + text_bytes <= TEXTS_BYTES;
}

void record_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct record_writer *w = context;
	uint32_t bytes = text ? (uint32_t)strnlen(text, RECORD_TEXT_MAX) + 1 : 0;

	pthread_mutex_lock(&w->lock);
	while (!has_space(w->filling, bytes)) {
		if (w->full) {
			pthread_cond_wait(&w->drained, &w->lock);
			continue;
		}
		hand_over(w);
		pthread_cond_signal(&w->wake);
	}
	struct buffer *b = w->filling;
	b->event[b->count] = *event;
	b->event[b->count++].reserved = bytes;
	if (bytes) {
		memcpy(b->text + b->text_bytes, text, bytes - 1);
		b->text[b->text_bytes + bytes - 1] = '\0';
		b->text_bytes += bytes;
	}
	pthread_mutex_unlock(&w->lock);
}

/* ---- the file ---- */

static void free_writer(struct record_writer *w)
{
	ZSTD_freeCCtx(w->zstd);
	free(w->filling);
	free(w->spare);
	free(w->raw);
	free(w->packed);
	free(w->path);
	free(w);
}

static struct record_writer *allocate_writer(const char *path)
{
	struct record_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->packed_bytes = ZSTD_compressBound(CHUNK_BYTES_MOST);
	w->path = strdup(path);
	w->filling = calloc(1, sizeof(*w->filling));
	w->spare = calloc(1, sizeof(*w->spare));
	w->zstd = ZSTD_createCCtx();
	w->raw = malloc(CHUNK_BYTES_MOST);
	w->packed = malloc(w->packed_bytes);
	if (!w->path || !w->filling || !w->spare || !w->zstd || !w->raw || !w->packed) {
		free_writer(w);
		return NULL;
	}
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, COMPRESSION);
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
	return w;
}

static void init_locks(struct record_writer *w)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&w->drained, NULL);
}

/*
 * Readers see by the lock whether more events may come. The kernel releases it when the writer ends
 * in any way. A file system without locks has recordings that look complete.
 */
static void lock_file(const struct record_writer *w)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	(void)fcntl(w->fd, F_OFD_SETLK, &lock);
}

struct record_writer *record_create(const char *path, json_t *about)
{
	struct record_writer *w = allocate_writer(path);
	json_t *description = record_describe();

	if (!w || !description || json_object_update_missing(description, about) != 0) {
		fprintf(stderr, "vidmm: %s: out of memory\n", path);
		json_decref(description);
		if (w)
			free_writer(w);
		return NULL;
	}
	init_locks(w);
	w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (w->fd < 0)
		fail(w, errno);
	else
		lock_file(w);
	write_json(w, description);
	int error = w->error ? 0 : pthread_create(&w->thread, NULL, write_buffers, w);
	if (error)
		fail(w, error);
	if (!w->error)
		return w;
	if (w->fd >= 0)
		close(w->fd);
	free_writer(w);
	return NULL;
}

bool record_finish(struct record_writer *w)
{
	if (!w)
		return true;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	if (close(w->fd) != 0)
		fail(w, errno);
	pthread_cond_destroy(&w->wake);
	pthread_cond_destroy(&w->drained);
	pthread_mutex_destroy(&w->lock);
	bool good = !w->error;
	free_writer(w);
	return good;
}
