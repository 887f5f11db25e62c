/* SPDX-License-Identifier: MIT */
/*
 * Parses all events except submissions. Each parser first reads its fields ("expected id off len")
 * and then checks them against the state of the recording. All messages name the line.
 */
#include <string.h>

#include "trace_private.h"

/* Reads the next field as a decimal number. Returns false unless END follows it. */
static bool number(struct trace_scan *scan, uint64_t *value, char end)
{
	trace_scan_next(scan);
	return trace_scan_u64(scan, value) && *scan->stop == end;
}

static bool number_u32(struct trace_scan *scan, uint32_t *value, char end)
{
	trace_scan_next(scan);
	return trace_scan_u32(scan, value) && *scan->stop == end;
}

/* Returns whether the rest of the line is WORD. */
static bool last_word(struct trace_scan *scan, const char *word)
{
	size_t length = strlen(word);
	const char *p = scan->stop + 1;

	if (strncmp(p, word, length) != 0 || p[length] != '\n')
		return false;
	scan->stop = p + length;
	return true;
}

/*
 * Reads a hexadecimal field, with or without 0x, and sets scan->stop behind it. Returns false
 * unless END follows it.
 */
static bool hex_number(struct trace_scan *scan, uint64_t *value, char end)
{
	const char *p = scan->stop + 1;
	uint64_t sum = 0;
	unsigned digits;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (digits = 0;; digits++, p++) {
		unsigned c = (unsigned char)*p, low = c | 0x20;

		if (c - '0' <= 9)
			sum = sum << 4 | (c - '0');
		else if (low - 'a' <= 5)
			sum = sum << 4 | (low - 'a' + 10);
		else
			break;
		if (digits == 16)
			return false;
	}
	*value = sum;
	scan->stop = p;
	return digits > 0 && *p == end;
}

static enum trace_result unknown_buffer(struct trace_reader *reader, uint64_t id)
{
	return trace_bad(reader, "undefined buffer %llu", (unsigned long long)id);
}

/* c id size [u] */
static enum trace_result parse_create(struct trace_reader *reader, struct trace_scan *scan,
				      struct trace_event *event)
{
	uint64_t id;

	if (!number(scan, &id, ' '))
		return trace_bad(reader, "event c: expected id size [u]");
	trace_scan_next(scan);
	if (!trace_scan_u64(scan, &event->u.create.size_bytes))
		return trace_bad(reader, "event c: expected id size [u]");
	event->u.create.user_memory = *scan->stop == ' ';
	if (event->u.create.user_memory ? !last_word(scan, "u") : *scan->stop != '\n')
		return trace_bad(reader, "event c: expected id size [u]");
	event->u.create.keyed = false;
	event->u.create.key = 0;
	event->id = (uint32_t)id;
	return trace_state_create(reader, id, event->u.create.size_bytes);
}

/* i id size key. The format allows a key that is not a number, but no export can match it. */
static enum trace_result parse_import(struct trace_reader *reader, struct trace_scan *scan,
				      struct trace_event *event)
{
	uint64_t id;
	const char *key;

	if (!number(scan, &id, ' ') || !number(scan, &event->u.create.size_bytes, ' '))
		return trace_bad(reader, "event i: expected id size key");
	key = scan->stop + 1;
	event->u.create.keyed = number(scan, &event->u.create.key, '\n');
	if (!event->u.create.keyed) {
		while (*key != ' ' && *key != '\n')
			key++;
		scan->stop = key;
		if (*key != '\n')
			return trace_bad(reader, "event i: expected id size key");
	}
	event->u.create.user_memory = false;
	event->id = (uint32_t)id;
	return trace_state_create(reader, id, event->u.create.size_bytes);
}

/* m id off len type */
static bool map_type(struct trace_scan *scan)
{
	static const char *const types[] = {"wb", "wc", "gtt", "uc", "fix"};
	unsigned i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (last_word(scan, types[i]))
			return true;
	return false;
}

/* m u w r: events with a range of a buffer. */
static enum trace_result parse_range(struct trace_reader *reader, struct trace_scan *scan,
				     struct trace_event *event)
{
	char end = event->op == TRACE_MAP || event->op == TRACE_WRITE ? ' ' : '\n';
	uint64_t id, offset, length;
	struct trace_buffer *buffer;

	if (!number(scan, &id, ' ') || !number(scan, &offset, ' ') || !number(scan, &length, end))
		return trace_bad(reader, "event %c: expected id off len%s", (char)event->op,
				 event->op == TRACE_MAP     ? " type"
				 : event->op == TRACE_WRITE ? " kind"
							    : "");
	buffer = trace_state_buffer(&reader->state, id);
	if (!buffer)
		return unknown_buffer(reader, id);
	if (length == 0 || length > buffer->size_bytes || offset > buffer->size_bytes - length)
		return trace_bad(reader, "range outside the buffer");
	event->id = (uint32_t)id;
	event->u.range.offset = offset;
	event->u.range.length = length;
	event->u.range.exact = false;
	switch (event->op) {
	case TRACE_MAP:
		if (!map_type(scan))
			return trace_bad(reader,
					 "unknown map type: expected wb, wc, gtt, uc or fix");
		return trace_state_map(reader, buffer, offset, length);
	case TRACE_UNMAP:
		if (!trace_state_unmap(&reader->state, buffer, offset, length))
			return trace_bad(reader, "unmap of a range that is not mapped");
		return TRACE_OK;
	case TRACE_WRITE:
		event->u.range.exact = last_word(scan, "p");
		if (!event->u.range.exact && !last_word(scan, "m"))
			return trace_bad(reader, "unknown write kind: expected p or m");
		if (!event->u.range.exact && buffer->maps == TRACE_NONE)
			return trace_bad(reader, "write to a buffer that is not mapped");
		return TRACE_OK;
	default:
		return TRACE_OK;
	}
}

/* q id timeout wait; the timeout may be negative. */
static bool parse_wait(struct trace_scan *scan, struct trace_event *event)
{
	bool negative;
	uint64_t timeout;

	trace_scan_next(scan);
	negative = scan->stop == scan->field && *scan->stop == '-';
	if (negative)
		trace_scan_next(scan);
	if (!trace_scan_u64(scan, &timeout) || timeout > INT64_MAX || *scan->stop != ' ')
		return false;
	event->u.wait.timeout_ns = negative ? -(int64_t)timeout : (int64_t)timeout;
	return number(scan, &event->u.wait.waited_ns, '\n');
}

/* y id r|w|rw begin|end */
static bool parse_sync(struct trace_scan *scan, struct trace_event *event)
{
	const char *p = scan->stop + 1;

	event->u.sync.read = *p == 'r';
	p += event->u.sync.read;
	event->u.sync.write = *p == 'w';
	p += event->u.sync.write;
	if ((!event->u.sync.read && !event->u.sync.write) || *p != ' ')
		return false;
	scan->stop = p;
	event->u.sync.begin = last_word(scan, "begin");
	return event->u.sync.begin || last_word(scan, "end");
}

static bool parse_domain(struct trace_scan *scan, struct trace_event *event)
{
	uint64_t read, write;

	if (!hex_number(scan, &read, ' ') || !hex_number(scan, &write, '\n') || read > UINT32_MAX ||
	    write > UINT32_MAX)
		return false;
	event->u.domain.read = (uint32_t)read;
	event->u.domain.write = (uint32_t)write;
	return true;
}

static bool parse_flag(struct trace_scan *scan, bool *flag)
{
	uint64_t value;

	if (!number(scan, &value, '\n') || value > 1)
		return false;
	*flag = value == 1;
	return true;
}

/*
 * Parses the fields after the id of the events that name one buffer. Returns NULL, or the expected
 * syntax.
 */
static const char *parse_fields(struct trace_scan *scan, struct trace_event *event)
{
	bool good;

	switch (event->op) {
	case TRACE_EXPORT:
		return number(scan, &event->u.key, '\n') ? NULL : "id key";
	case TRACE_DOMAIN:
		return parse_domain(scan, event) ? NULL : "id rd wr";
	case TRACE_WAIT:
		return parse_wait(scan, event) ? NULL : "id timeout wait";
	case TRACE_BUSY:
		return parse_flag(scan, &event->u.busy) ? NULL : "id 0|1";
	case TRACE_ADVISE:
		return parse_flag(scan, &event->u.needed) ? NULL : "id 0|1";
	case TRACE_SYNC:
		return parse_sync(scan, event) ? NULL : "id r|w|rw begin|end";
	case TRACE_TILING:
		good = number_u32(scan, &event->u.tiling.mode, ' ') && event->u.tiling.mode <= 2 &&
		       number_u32(scan, &event->u.tiling.stride_bytes, '\n');
		return good ? NULL : "id 0|1|2 stride";
	case TRACE_ADDRESS:
		return hex_number(scan, &event->u.address, '\n') ? NULL : "id addr";
	default:
		return "";
	}
}

static enum trace_result parse_buffer_event(struct trace_reader *reader, struct trace_scan *scan,
					    struct trace_event *event)
{
	const struct trace_buffer *buffer;
	const char *wants;
	uint64_t id;

	if (event->op == TRACE_CLOSE) {
		if (!number(scan, &id, '\n'))
			return trace_bad(reader, "event d: expected id");
	} else {
		if (!number(scan, &id, ' '))
			return trace_bad(reader, "event %c: expected id ...", (char)event->op);
		wants = parse_fields(scan, event);
		if (wants)
			return trace_bad(reader, "event %c: expected %s", (char)event->op, wants);
	}
	buffer = trace_state_buffer(&reader->state, id);
	if (!buffer)
		return unknown_buffer(reader, id);
	event->id = (uint32_t)id;
	if (event->op == TRACE_CLOSE) {
		event->u.create.size_bytes = buffer->size_bytes;
		trace_state_close(&reader->state, event->id);
	}
	return TRACE_OK;
}

enum trace_result trace_parse_simple(struct trace_reader *reader, struct trace_scan *scan,
				     struct trace_event *event)
{
	uint64_t fence;

	switch (event->op) {
	case TRACE_CREATE:
		return parse_create(reader, scan, event);
	case TRACE_IMPORT:
		return parse_import(reader, scan, event);
	case TRACE_MAP:
	case TRACE_UNMAP:
	case TRACE_WRITE:
	case TRACE_READ:
		return parse_range(reader, scan, event);
	case TRACE_EXPORT:
	case TRACE_CLOSE:
	case TRACE_DOMAIN:
	case TRACE_WAIT:
	case TRACE_BUSY:
	case TRACE_SYNC:
	case TRACE_TILING:
	case TRACE_ADVISE:
	case TRACE_ADDRESS:
		return parse_buffer_event(reader, scan, event);
	case TRACE_CONTEXT:
	case TRACE_CONTEXT_END:
		if (!number_u32(scan, &event->id, '\n'))
			return trace_bad(reader, "event %c: expected ctx", (char)event->op);
		return trace_state_context(reader, event->id, event->op == TRACE_CONTEXT);
	case TRACE_FENCE:
		if (!number(scan, &fence, ' ') || !number(scan, &event->u.wait.waited_ns, '\n'))
			return trace_bad(reader, "event f: expected fence ns");
		return TRACE_OK;
	default:
		return trace_bad(reader, "unknown event %c", (char)event->op);
	}
}
