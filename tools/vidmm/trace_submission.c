/* SPDX-License-Identifier: MIT */
/*
 * Parses submission lines, which are nine tenths of the bytes of a recording. The loop over
 * relocations is the hot loop and contains no calls. bad_relocation composes the message for a
 * rejected token afterwards.
 */
#include <string.h>

#include "grow.h"
#include "trace_private.h"

/* Parses object flags: w f g a c, each at most once, in this order. */
static bool object_flags(struct trace_scan *scan, uint32_t *flags)
{
	static const char letters[] = "wfgac";
	unsigned next = 0;

	*flags = 0;
	while (*scan->stop != ' ' && *scan->stop != '\n') {
		while (letters[next] != '\0' && letters[next] != *scan->stop)
			next++;
		if (letters[next] == '\0')
			return false;
		*flags |= 1u << next++;
		if (scan->stop[1] >= '0' && scan->stop[1] <= '9')
			return false;
		trace_scan_stop(scan);
	}
	return true;
}

static enum trace_result parse_objects(struct trace_reader *reader, struct trace_scan *scan,
				       uint32_t count)
{
	struct trace_submission *submission = &reader->submission;
	struct trace_state *state = &reader->state;
	uint64_t referenced = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		struct trace_object *object = &submission->objects[i];
		struct trace_buffer *buffer;
		uint64_t id;

		if (*scan->stop != ' ')
			return trace_bad(reader, "%u objects announced, %u listed", count, i);
		trace_scan_next(scan);
		if (!trace_scan_u64(scan, &id) || !object_flags(scan, &object->flags))
			return trace_bad(reader, "object %u is not: id [w][f][g][a][c]", i);
		buffer = trace_state_buffer(state, id);
		if (!buffer)
			return trace_bad(reader, "undefined buffer %llu", (unsigned long long)id);
		if (buffer->listed == (uint32_t)state->submissions)
			return trace_bad(reader, "buffer %llu listed twice",
					 (unsigned long long)id);
		buffer->listed = (uint32_t)state->submissions;
		object->id = (uint32_t)id;
		referenced += buffer->size_bytes;
	}
	submission->object_count = count;
	submission->referenced_bytes = referenced;
	return TRACE_OK;
}

static enum trace_result parse_fences(struct trace_reader *reader, struct trace_scan *scan)
{
	struct trace_submission *submission = &reader->submission;

	submission->fence_count = 0;
	while (*scan->stop == ' ' && (scan->stop[1] == '?' || scan->stop[1] == '!')) {
		struct trace_fence *fence;

		if (!grow_array((void **)&submission->fences, &reader->fence_capacity,
				submission->fence_count, sizeof(*submission->fences)))
			return trace_failed(reader, "out of memory");
		fence = &submission->fences[submission->fence_count++];
		trace_scan_next(scan);
		fence->signal = *scan->stop == '!';
		trace_scan_next(scan);
		if (!trace_scan_u64(scan, &fence->number))
			return trace_bad(reader, "fence token: expected a number");
	}
	return TRACE_OK;
}

/*
 * Parses a relocation token: step ":" index [ "+" delta ] [ "w" ]. Returns false if it is invalid.
 */
static inline bool parse_relocation(struct trace_scan *scan, uint32_t objects, uint64_t *offset,
				    struct trace_relocation *relocation)
{
	bool negative = scan->stop == scan->field;
	uint64_t step, target, delta = 0;

	if (__builtin_expect(negative, 0)) {
		if (*scan->stop != '-')
			return false;
		trace_scan_next(scan);
	}
	step = trace_scan_value(scan);
	if (*scan->stop != ':' || step > INT64_MAX)
		return false;
	trace_scan_next(scan);
	target = trace_scan_value(scan);
	if (target >= objects)
		return false;
	if (*scan->stop == '+') {
		trace_scan_next(scan);
		delta = trace_scan_value(scan);
		if (delta > UINT32_MAX)
			return false;
	}
	relocation->write = *scan->stop == 'w';
	if (relocation->write) {
		if (scan->stop[1] != ' ' && scan->stop[1] != '\n')
			return false;
		trace_scan_stop(scan);
	}
	*offset += negative ? -step : step;
	relocation->offset = *offset;
	relocation->delta = (uint32_t)delta;
	relocation->target = (uint16_t)target;
	return true;
}

/*
 * Parses relocations until another kind of token, the end of the array, or an invalid token (the
 * scan stays before it). Returns their number. It works on a local copy of the scan whose address
 * does not escape, so that the compiler keeps it in registers.
 */
static uint32_t run_of_relocations(struct trace_scan *scan, uint32_t objects, uint64_t *offset,
				   uint64_t last_offset, struct trace_relocation *to,
				   uint32_t capacity)
{
	struct trace_scan s = *scan;
	uint64_t at = *offset;
	uint32_t count;

	for (count = 0; count < capacity && *s.stop == ' ' && s.stop[1] != '@'; count++) {
		const char *blank = s.stop;

		*offset = at;
		trace_scan_next(&s);
		if (__builtin_expect(!parse_relocation(&s, objects, &at, &to[count]) ||
					     at > last_offset,
				     0)) {
			trace_scan_at(scan, blank);
			trace_scan_stop(scan);
			return count;
		}
	}
	*scan = s;
	*offset = at;
	return count;
}

static enum trace_result bad_relocation(struct trace_reader *reader, const char *token)
{
	const struct trace_submission *submission = &reader->submission;
	int length = 0;

	while (length < 40 && token[length] > ' ' && token[length] < 0x7F)
		length++;
	return trace_bad(reader,
			 "relocation %.*s is not step:index[+delta][w] with an index below %u and "
			 "an offset inside its buffer",
			 length, token, submission->object_count);
}

/* Parses "@" index and computes the largest offset of a relocation in that buffer. */
static enum trace_result parse_group(struct trace_reader *reader, struct trace_scan *scan,
				     uint32_t relocations, uint64_t *last_offset)
{
	struct trace_submission *submission = &reader->submission;
	uint32_t source;

	trace_scan_next(scan);
	if (scan->stop != scan->field || *scan->stop != '@')
		return trace_bad(reader, "a relocation before the @ token of its source buffer");
	trace_scan_next(scan);
	if (!trace_scan_u32(scan, &source) || source >= submission->object_count)
		return trace_bad(reader, "relocation source is not in the object list");
	if (!grow_array((void **)&submission->groups, &reader->group_capacity,
			submission->group_count, sizeof(*submission->groups)))
		return trace_failed(reader, "out of memory");
	submission->groups[submission->group_count++] = (struct trace_group){source, relocations};
	*last_offset = reader->state.buffers[submission->objects[source].id].size_bytes - 4;
	return TRACE_OK;
}

static enum trace_result parse_relocations(struct trace_reader *reader, struct trace_scan *scan)
{
	struct trace_submission *submission = &reader->submission;
	uint32_t count = 0;

	submission->group_count = 0;
	while (*scan->stop == ' ') {
		uint64_t offset = 0, last_offset = 0;
		enum trace_result result = parse_group(reader, scan, count, &last_offset);

		if (result != TRACE_OK)
			return result;
		while (*scan->stop == ' ' && scan->stop[1] != '@') {
			uint32_t done;

			if (!grow_array((void **)&submission->relocations,
					&reader->relocation_capacity, count,
					sizeof(*submission->relocations)))
				return trace_failed(reader, "out of memory");
			done = run_of_relocations(scan, submission->object_count, &offset,
						  last_offset, submission->relocations + count,
						  reader->relocation_capacity - count);
			if (done == 0)
				return bad_relocation(reader, scan->stop + 1);
			count += done;
		}
	}
	submission->relocation_count = count;
	return TRACE_OK;
}

static bool header_fields(struct trace_scan *scan, uint64_t fields[8])
{
	unsigned i;

	for (i = 0; i < 8; i++) {
		if (*scan->stop != ' ')
			return false;
		trace_scan_next(scan);
		if (!trace_scan_u64(scan, &fields[i]))
			return false;
	}
	return true;
}

/* seq ctx ring batch start len nobj nreloc */
static enum trace_result check_fields(struct trace_reader *reader, const uint64_t fields[8])
{
	struct trace_submission *submission = &reader->submission;

	if (fields[0] != reader->state.submissions + 1)
		return trace_bad(reader, "submission number %llu is out of order: expected %llu",
				 (unsigned long long)fields[0],
				 (unsigned long long)reader->state.submissions + 1);
	if (fields[1] > UINT32_MAX ||
	    !trace_state_context_known(&reader->state, (uint32_t)fields[1]))
		return trace_bad(reader, "unknown context %llu", (unsigned long long)fields[1]);
	if (fields[2] > UINT32_MAX)
		return trace_bad(reader, "the ring number is too large");
	if (fields[6] == 0 || fields[3] >= fields[6])
		return trace_bad(reader, "batch index %llu is not in the object list",
				 (unsigned long long)fields[3]);
	if (fields[6] > reader->limits.objects)
		return trace_bad(reader, "more than %u objects", reader->limits.objects);
	submission->number = fields[0];
	submission->context = (uint32_t)fields[1];
	submission->ring = (uint32_t)fields[2];
	submission->batch = (uint32_t)fields[3];
	submission->start = fields[4];
	submission->length = fields[5];
	while (reader->object_capacity < fields[6]) {
		if (!grow_array((void **)&submission->objects, &reader->object_capacity,
				reader->object_capacity, sizeof(*submission->objects)))
			return trace_failed(reader, "out of memory");
	}
	return TRACE_OK;
}

enum trace_result trace_parse_submission(struct trace_reader *reader, struct trace_scan *scan,
					 struct trace_event *event)
{
	struct trace_submission *submission = &reader->submission;
	enum trace_result result;
	uint64_t fields[8], batch_bytes;

	if (!header_fields(scan, fields))
		return trace_bad(reader,
				 "event x: expected seq ctx ring batch start len nobj nreloc ...");
	result = check_fields(reader, fields);
	if (result != TRACE_OK)
		return result;
	reader->state.submissions++;
	result = parse_objects(reader, scan, (uint32_t)fields[6]);
	if (result != TRACE_OK)
		return result;
	batch_bytes = reader->state.buffers[submission->objects[submission->batch].id].size_bytes;
	if (submission->start > batch_bytes || submission->length > batch_bytes - submission->start)
		return trace_bad(reader, "batch outside its buffer");
	result = parse_fences(reader, scan);
	if (result == TRACE_OK)
		result = parse_relocations(reader, scan);
	if (result != TRACE_OK)
		return result;
	if (*scan->stop != '\n')
		return trace_bad(reader, "unexpected text in a submission");
	if (submission->relocation_count != fields[7])
		return trace_bad(reader, "%u relocations, but the line announces %llu",
				 submission->relocation_count, (unsigned long long)fields[7]);
	event->u.submission = submission;
	return TRACE_OK;
}
