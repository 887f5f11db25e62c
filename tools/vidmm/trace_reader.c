/* SPDX-License-Identifier: MIT */
/*
 * The reader: takes whole lines from the source and parses one event from each. Parsers do not
 * search for the end of the line first: it is a newline, which is not a digit, so the scan of each
 * field stops there.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_private.h"

#define TEXT_BYTES_FIRST ((size_t)128 << 10)

const struct trace_limits trace_default_limits = {
	.line_bytes = 16u << 20,
	.buffers = 4u << 20,
	.maps = 1u << 20,
	.contexts = 4096,
	.objects = UINT16_MAX,
	.buffer_bytes = (uint64_t)1 << 40,
	.live_bytes = (uint64_t)1 << 42,
};

static enum trace_result end_with(struct trace_reader *reader, enum trace_result result,
				  const char *format, va_list args)
{
	int used = snprintf(reader->error, sizeof(reader->error), "%s:%llu: ", reader->name,
			    (unsigned long long)reader->line);

	if (used > 0 && (size_t)used < sizeof(reader->error))
		vsnprintf(reader->error + used, sizeof(reader->error) - (size_t)used, format, args);
	reader->result = result;
	return result;
}

enum trace_result trace_bad(struct trace_reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	end_with(reader, TRACE_BAD, format, args);
	va_end(args);
	return TRACE_BAD;
}

enum trace_result trace_failed(struct trace_reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	end_with(reader, TRACE_IO, format, args);
	va_end(args);
	return TRACE_IO;
}

/* Returns the last newline in [FROM, TO), or NULL. */
static const char *last_newline(const char *from, const char *to)
{
	while (to > from) {
		if (*--to == '\n')
			return to;
	}
	return NULL;
}

/*
 * Moves the unfinished line to the start of the buffer, so that text can be appended. Doubles the
 * buffer if the line fills it.
 */
static enum trace_result make_space(struct trace_reader *reader)
{
	size_t kept = (size_t)(reader->filled - reader->at);
	size_t capacity = reader->capacity;
	char *text;

	memmove(reader->text, reader->at, kept);
	if (kept == capacity) {
		if (capacity >= reader->limits.line_bytes)
			return trace_bad(reader, "line longer than %u bytes",
					 reader->limits.line_bytes);
		capacity *= 2;
		if (capacity > reader->limits.line_bytes)
			capacity = reader->limits.line_bytes;
		text = realloc(reader->text, capacity + TRACE_SCAN_SLACK);
		if (!text)
			return trace_failed(reader, "out of memory");
		memset(text + capacity, 0, TRACE_SCAN_SLACK);
		reader->text = text;
		reader->capacity = capacity;
	}
	reader->at = reader->lines_end = reader->text;
	reader->filled = reader->text + kept;
	return TRACE_OK;
}

enum trace_result trace_fill(struct trace_reader *reader)
{
	while (reader->at == reader->lines_end) {
		enum trace_result result = make_space(reader);
		size_t used = (size_t)(reader->filled - reader->text);
		const char *why = NULL, *newline;
		long got;

		if (result != TRACE_OK)
			return result;
		got = reader->text_ended ? 0
					 : trace_source_read(reader->source, reader->text + used,
							     reader->capacity - used, &why);
		if (got < 0)
			return trace_source_bad_data(reader->source)
				       ? trace_bad(reader, "%s", why)
				       : trace_failed(reader, "%s", why);
		if (got == 0) {
			reader->text_ended = true;
			return used > 0 ? trace_bad(reader, "last line cut short")
					: trace_bad(reader, "no #end line");
		}
		newline = last_newline(reader->filled, reader->filled + got);
		reader->filled += got;
		if (newline)
			reader->lines_end = newline + 1;
	}
	return TRACE_OK;
}

/* Reads the line "#end COUNT". No text may follow it. */
static enum trace_result read_end(struct trace_reader *reader)
{
	struct trace_scan scan;
	uint64_t count;
	long more;
	char byte;
	const char *why = NULL;

	if (memcmp(reader->at, "#end ", 5) != 0)
		return trace_bad(reader, "unexpected # line: expected #end COUNT");
	trace_scan_at(&scan, reader->at + 5);
	trace_scan_stop(&scan);
	if (!trace_scan_u64(&scan, &count) || *scan.stop != '\n')
		return trace_bad(reader, "#end: expected the number of events");
	if (count != reader->events)
		return trace_bad(reader,
				 "#end has a count of %llu, but the recording has %llu events",
				 (unsigned long long)count, (unsigned long long)reader->events);
	reader->at = scan.stop + 1;
	reader->line++;
	if (reader->at != reader->filled)
		return trace_bad(reader, "text after #end");
	more = trace_source_read(reader->source, &byte, 1, &why);
	if (more > 0)
		return trace_bad(reader, "text after #end");
	if (more < 0)
		return trace_source_bad_data(reader->source) ? trace_bad(reader, "%s", why)
							     : trace_failed(reader, "%s", why);
	reader->result = TRACE_END;
	return TRACE_END;
}

/* With TRACE_SKIM, skips a submission line to its newline. */
static enum trace_result skim_submission(struct trace_reader *reader, struct trace_scan *scan,
					 struct trace_event *event)
{
	reader->state.submissions++;
	event->u.submission = NULL;
	scan->stop = memchr(scan->stop, '\n', (size_t)(reader->lines_end - scan->stop));
	return TRACE_OK;
}

static enum trace_result read_event(struct trace_reader *reader, struct trace_event *event)
{
	struct trace_scan scan;
	const char *blank;
	enum trace_result result;

	trace_scan_at(&scan, reader->at);
	trace_scan_stop(&scan);
	blank = scan.stop;
	if (!trace_scan_u64(&scan, &event->time_ns) || *blank != ' ')
		return trace_bad(reader, "expected a time in ns at the beginning of an event");
	if (event->time_ns > INT64_MAX / 2)
		return trace_bad(reader, "the time of the event is too large");
	if (event->time_ns < reader->last_time_ns)
		return trace_bad(reader,
				 "the time of the event is before that of the previous event");
	trace_scan_stop(&scan);
	trace_scan_stop(&scan);
	if (scan.stop != blank + 2 || *scan.stop != ' ')
		return trace_bad(reader, "unknown event");
	event->op = (enum trace_op)blank[1];
	event->line = reader->line;
	event->id = 0;
	if (event->op != TRACE_SUBMIT)
		result = trace_parse_simple(reader, &scan, event);
	else if (reader->flags & TRACE_SKIM)
		result = skim_submission(reader, &scan, event);
	else
		result = trace_parse_submission(reader, &scan, event);
	if (result != TRACE_OK)
		return result;
	reader->at = scan.stop + 1;
	reader->line++;
	reader->events++;
	reader->last_time_ns = event->time_ns;
	return TRACE_OK;
}

enum trace_result trace_next(struct trace_reader *reader, struct trace_event *event)
{
	enum trace_result result;

	if (reader->result != TRACE_OK)
		return reader->result;
	result = trace_fill(reader);
	if (result != TRACE_OK)
		return result;
	return *reader->at == '#' ? read_end(reader) : read_event(reader, event);
}

static struct trace_reader *reader_create(const char *name, const struct trace_limits *limits,
					  unsigned flags)
{
	struct trace_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->limits = limits ? *limits : trace_default_limits;
	reader->flags = flags;
	reader->line = 1;
	reader->capacity = TEXT_BYTES_FIRST;
	if (reader->capacity > reader->limits.line_bytes)
		reader->capacity = reader->limits.line_bytes;
	reader->name = strdup(name);
	reader->text = calloc(1, reader->capacity + TRACE_SCAN_SLACK);
	if (!reader->name || !reader->text) {
		trace_close(reader);
		return NULL;
	}
	reader->at = reader->lines_end = reader->filled = reader->text;
	trace_state_init(&reader->state);
	return reader;
}

static enum trace_result open_source(struct trace_reader *reader, struct trace_source *source)
{
	if (!source)
		return trace_failed(reader, "out of memory");
	reader->source = source;
	return trace_read_header(reader);
}

enum trace_result trace_open_file(const char *path, const struct trace_limits *limits,
				  unsigned flags, struct trace_reader **reader)
{
	*reader = reader_create(path, limits, flags);
	if (!*reader)
		return TRACE_IO;
	return open_source(*reader, trace_source_file(path, (flags & TRACE_READ_AHEAD) != 0));
}

enum trace_result trace_open_memory(const char *name, const void *data, size_t size,
				    const struct trace_limits *limits, struct trace_reader **reader)
{
	*reader = reader_create(name, limits, 0);
	if (!*reader)
		return TRACE_IO;
	return open_source(*reader, trace_source_memory(data, size));
}

void trace_close(struct trace_reader *reader)
{
	if (!reader)
		return;
	trace_source_close(reader->source);
	trace_state_finish(&reader->state);
	free(reader->submission.objects);
	free(reader->submission.relocations);
	free(reader->submission.groups);
	free(reader->submission.fences);
	free(reader->text);
	free(reader->name);
	free(reader);
}

const struct trace_header *trace_header(const struct trace_reader *reader)
{
	return &reader->header;
}

const char *trace_name(const struct trace_reader *reader)
{
	return reader->name;
}

const char *trace_error(const struct trace_reader *reader)
{
	return reader->error;
}

void trace_progress(const struct trace_reader *reader, uint64_t *done, uint64_t *size)
{
	*done = reader->source ? trace_source_progress(reader->source,
						       (uint64_t)(reader->filled - reader->at))
			       : 0;
	*size = reader->source ? trace_source_size(reader->source) : 0;
}
