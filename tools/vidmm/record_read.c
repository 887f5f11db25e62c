/* SPDX-License-Identifier: MIT */
/*
 * Frames are read and decompressed one by one. The file is not mapped, because it may shrink while
 * it is read. Nothing in the file is trusted: sizes are checked against each other before they are
 * used.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "record_format.h"
#include "record_read.h"

#define READ_BYTES ((size_t)64 << 10) /* more than most frames have */

struct record_reader {
	char *path;
	int fd;
	size_t at; /* offset of the next frame in the file */
	/* What has been read from there on. */
	char *packed; /* of `packed_most` bytes */
	size_t packed_at, packed_end, packed_most;
	ZSTD_DCtx *zstd;
	char *chunk; /* of RECORD_CHUNK_BYTES */
	json_t *about;
	/* The chunk of events that is being read. */
	struct {
		uint32_t events, next;
		const char *column, *text, *text_end;
		uint64_t time_ns, sequence;
	} now;
	enum record_result result; /* once it is not RECORD_EVENT, every call returns it */
	char error[512];
};

static enum record_result fail(struct record_reader *r, enum record_result result,
			       const char *format, ...) __attribute__((format(printf, 3, 4), cold));
static enum record_result fail(struct record_reader *r, enum record_result result,
			       const char *format, ...)
{
	int used = snprintf(r->error, sizeof(r->error), "%s: ", r->path);
	va_list args;

	va_start(args, format);
	if (used > 0 && (size_t)used < sizeof(r->error))
		vsnprintf(r->error + used, sizeof(r->error) - (size_t)used, format, args);
	va_end(args);
	return r->result = result;
}

/* ---- frames ---- */

/* Returns whether another frame begins in the rest of the file, behind byte 1. */
static bool has_later_frame(const struct record_reader *r)
{
	const uint32_t magic = htole32(ZSTD_MAGICNUMBER);
	const char *at = r->packed + r->packed_at + 1, *end = r->packed + r->packed_end;

	while ((at = memmem(at, (size_t)(end - at), &magic, sizeof(magic))) != NULL) {
		unsigned long long content = ZSTD_getFrameContentSize(at, (size_t)(end - at));

		if (content > 0 && content <= RECORD_CHUNK_BYTES)
			return true;
		at++;
	}
	return false;
}

/*
 * The file ends before its frame does. If another frame follows, the frame is not the last one: a
 * size in it is wrong.
 */
static enum record_result cut(struct record_reader *r)
{
	if (has_later_frame(r))
		return fail(r, RECORD_BAD, "damaged at byte %zu: a chunk longer than the file",
			    r->at);
	return fail(r, RECORD_CUT, "ends after %zu bytes, in the middle of a chunk",
		    r->at + r->packed_end - r->packed_at);
}

/* Reads until BYTES bytes of the next frame are in memory, or all that the file has. */
static bool load(struct record_reader *r, size_t bytes)
{
	while (r->packed_end - r->packed_at < bytes) {
		if (r->packed_at) {
			r->packed_end -= r->packed_at;
			memmove(r->packed, r->packed + r->packed_at, r->packed_end);
			r->packed_at = 0;
		}
		ssize_t count =
			pread(r->fd, r->packed + r->packed_end, r->packed_most - r->packed_end,
			      (off_t)(r->at + r->packed_end));

		if (count < 0 && errno != EINTR) {
			fail(r, RECORD_IO, "%s", strerror(errno));
			return false;
		}
		if (count == 0)
			return true;
		r->packed_end += count > 0 ? (size_t)count : 0;
	}
	return true;
}

/* Loads the next frame. Stores its size, 0 at the end of the file. */
static enum record_result load_frame(struct record_reader *r, size_t *size)
{
	for (size_t bytes = READ_BYTES;; bytes = r->packed_most) {
		if (!load(r, bytes))
			return r->result;
		size_t left = r->packed_end - r->packed_at;

		*size = left ? ZSTD_findFrameCompressedSize(r->packed + r->packed_at, left) : 0;
		if (!ZSTD_isError(*size))
			return RECORD_EVENT;
		if (ZSTD_getErrorCode(*size) != ZSTD_error_srcSize_wrong || left == r->packed_most)
			return fail(r, RECORD_BAD, "damaged at byte %zu: no zstd frame", r->at);
		if (left < bytes)
			return cut(r);
	}
}

/* Decompresses the next frame into r->chunk. Stores its size, 0 at the end of the file. */
static enum record_result next_frame(struct record_reader *r, size_t *size)
{
	size_t packed = 0;
	enum record_result result = load_frame(r, &packed);

	*size = 0;
	if (result != RECORD_EVENT || !packed)
		return result;
	const char *frame = r->packed + r->packed_at;
	unsigned long long content = ZSTD_getFrameContentSize(frame, packed);

	if (content == 0 || content > RECORD_CHUNK_BYTES) /* also if it is unknown */
		return fail(r, RECORD_BAD, "damaged at byte %zu: a chunk without a valid size",
			    r->at);
	*size = ZSTD_decompressDCtx(r->zstd, r->chunk, RECORD_CHUNK_BYTES, frame, packed);
	if (ZSTD_isError(*size))
		return fail(r, RECORD_BAD, "damaged at byte %zu: %s", r->at,
			    ZSTD_getErrorName(*size));
	r->at += packed;
	r->packed_at += packed;
	return RECORD_EVENT;
}

static uint16_t get16(const char *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return le16toh(value);
}

static uint32_t get32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

/* ---- chunks ---- */

static enum record_result bad_chunk(struct record_reader *r)
{
	return fail(r, RECORD_BAD, "the chunk that ends at byte %zu is not valid", r->at);
}

/* Reads the next frame. Stores the kind of its chunk. At the end of the file: RECORD_END. */
static enum record_result next_chunk(struct record_reader *r, struct record_chunk *chunk)
{
	size_t size = 0;

	enum record_result result = next_frame(r, &size);
	if (result != RECORD_EVENT)
		return result;
	if (!size)
		return r->result = RECORD_END;
	if (size < sizeof(*chunk))
		return bad_chunk(r);
	*chunk = (struct record_chunk){.kind = get32(r->chunk),
				       .events = get32(r->chunk + 4),
				       .bytes = get32(r->chunk + 8)};
	if (chunk->events > RECORD_EVENTS_MAX || chunk->bytes > size ||
	    size != sizeof(*chunk) + chunk->events * RECORD_EVENT_BYTES + chunk->bytes)
		return bad_chunk(r);
	return RECORD_EVENT;
}

static json_t *parse(const struct record_reader *r, const struct record_chunk *chunk)
{
	json_t *object = chunk->kind == RECORD_JSON && !chunk->events
				 ? json_loadb(r->chunk + sizeof(*chunk), chunk->bytes,
					      JSON_REJECT_DUPLICATES, NULL)
				 : NULL;

	if (json_is_object(object))
		return object;
	json_decref(object);
	return NULL;
}

static void begin_events(struct record_reader *r, const struct record_chunk *chunk)
{
	r->now.events = chunk->events;
	r->now.next = 0;
	r->now.column = r->chunk + sizeof(*chunk);
	r->now.text = r->now.column + chunk->events * RECORD_EVENT_BYTES;
	r->now.text_end = r->now.text + chunk->bytes;
	r->now.time_ns = r->now.sequence = 0;
}

/* Reads chunks until there is one with events. */
static enum record_result fill(struct record_reader *r)
{
	struct record_chunk chunk;

	while (r->now.next == r->now.events) {
		enum record_result result = next_chunk(r, &chunk);

		if (result != RECORD_EVENT)
			return result;
		if (chunk.kind != RECORD_EVENTS)
			return bad_chunk(r);
		begin_events(r, &chunk);
	}
	return RECORD_EVENT;
}

/* Stores the text of BYTES bytes. Returns false if the chunk has no such text. */
static bool take_text(struct record_reader *r, uint32_t bytes, const char **text)
{
	*text = NULL;
	if (!bytes)
		return true;
	if (bytes > (size_t)(r->now.text_end - r->now.text) || r->now.text[bytes - 1] != '\0')
		return false;
	*text = r->now.text;
	r->now.text += bytes;
	return true;
}

enum record_result record_next(struct record_reader *r, struct vidmm_event *event,
			       const char **text)
{
	if (r->result != RECORD_EVENT || fill(r) != RECORD_EVENT)
		return r->result;
	const size_t count = r->now.events, i = r->now.next++;
	const char *wide = r->now.column + 8 * i; /* the columns of 64 bits */
	const char *middle = r->now.column + 48 * count + 4 * i;
	const char *narrow = r->now.column + 60 * count + 2 * i;

	r->now.time_ns += get64(wide);
	r->now.sequence += get64(wide + 8 * count);
	*event = (struct vidmm_event){.time_ns = r->now.time_ns,
				      .sequence = r->now.sequence,
				      .process = get32(middle),
				      .object = get32(middle + 4 * count),
				      .type = get16(narrow),
				      .reason = get16(narrow + 2 * count)};
	for (size_t argument = 0; argument < 4; argument++)
		event->arg[argument] = get64(wide + (2 + argument) * 8 * count);
	if (!take_text(r, get32(middle + 8 * count), text))
		return bad_chunk(r);
	return RECORD_EVENT;
}

/* ---- the file ---- */

static enum record_result open_file(struct record_reader *r)
{
	struct stat st;

	r->fd = open(r->path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0 || fstat(r->fd, &st) != 0)
		return fail(r, RECORD_IO, "%s", strerror(errno));
	return S_ISREG(st.st_mode) ? RECORD_EVENT : fail(r, RECORD_IO, "is not a file");
}

static enum record_result no_recording(struct record_reader *r)
{
	return fail(r, RECORD_BAD, "is not a recording of events of vidmm");
}

static enum record_result read_about(struct record_reader *r)
{
	struct record_chunk chunk;
	const char *format = "";
	int version = 0;
	enum record_result result = next_chunk(r, &chunk);

	if (result != RECORD_EVENT)
		return r->at || result == RECORD_IO ? result : no_recording(r);
	r->about = parse(r, &chunk);
	if (!r->about ||
	    json_unpack(r->about, "{s:s,s:i}", "format", &format, "version", &version) != 0 ||
	    strcmp(format, "vidmm record") != 0)
		return no_recording(r);
	if (version != (int)RECORD_VERSION)
		return fail(r, RECORD_BAD, "has version %d of the format, expected %u", version,
			    RECORD_VERSION);
	return RECORD_EVENT;
}

enum record_result record_open(const char *path, struct record_reader **reader)
{
	struct record_reader *r = calloc(1, sizeof(*r));

	*reader = r;
	if (!r)
		return RECORD_IO;
	r->fd = -1;
	r->packed_most = ZSTD_compressBound(RECORD_CHUNK_BYTES);
	r->packed = malloc(r->packed_most);
	r->path = strdup(path);
	r->zstd = ZSTD_createDCtx();
	r->chunk = malloc(RECORD_CHUNK_BYTES);
	if (!r->packed || !r->path || !r->zstd || !r->chunk) {
		snprintf(r->error, sizeof(r->error), "out of memory");
		return r->result = RECORD_IO;
	}
	return open_file(r) == RECORD_EVENT ? read_about(r) : r->result;
}

bool record_continue(struct record_reader *r)
{
	struct stat st;

	if (r->result != RECORD_END && r->result != RECORD_CUT)
		return true;
	if (fstat(r->fd, &st) == 0 && (uint64_t)st.st_size < r->at + r->packed_end - r->packed_at)
		return false;
	r->result = RECORD_EVENT;
	return true;
}

bool record_is_written(const struct record_reader *r)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(r->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void record_close(struct record_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	ZSTD_freeDCtx(r->zstd);
	json_decref(r->about);
	free(r->chunk);
	free(r->packed);
	free(r->path);
	free(r);
}

bool record_is_recording(const char *path)
{
	struct stat st;
	uint32_t magic = 0;
	/* Nothing is read from a pipe, whose text would be missing afterwards. */
	int fd =
		stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool same = fd >= 0 && read(fd, &magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
		    le32toh(magic) == ZSTD_MAGICNUMBER;

	if (fd >= 0)
		close(fd);
	return same;
}

const json_t *record_about(const struct record_reader *r)
{
	return r->about;
}

const char *record_error(const struct record_reader *r)
{
	return r ? r->error : "out of memory";
}
