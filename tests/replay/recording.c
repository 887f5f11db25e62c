/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "recording.h"

static void add(struct recording *recording, const char *format, va_list args)
{
	if (recording->room - recording->length < 256) {
		recording->room = recording->room * 2 + 4096;
		recording->bytes = realloc(recording->bytes, recording->room);
		assert_non_null(recording->bytes);
	}
	recording->length +=
		(size_t)vsnprintf(recording->bytes + recording->length, 256, format, args);
}

void recording_part(struct recording *recording, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(recording, format, args);
	va_end(args);
}

void recording_line(struct recording *recording)
{
	recording_part(recording, "\n");
	recording->events++;
}

void recording_event(struct recording *recording, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(recording, format, args);
	va_end(args);
	recording_line(recording);
}

void recording_begin(struct recording *recording, const char *program, uint64_t t0_ns)
{
	*recording = (struct recording){0};
	recording_part(recording, "#gemtrace 1\n#program %s\n#note made by a test\n#driver none\n",
		       program);
	recording_part(recording, "#chipset 0x0416 none\n#date 2026-01-01\n#t0 %llu\n",
		       (unsigned long long)t0_ns);
	recording_part(recording, "#model base_ns=150000 bytes_per_ns=20\n#wtrack 1\n");
}

void recording_end(struct recording *recording)
{
	recording_part(recording, "#end %u\n", recording->events);
}

void recording_free(struct recording *recording)
{
	free(recording->bytes);
	*recording = (struct recording){0};
}

struct recording recording_read(const char *path)
{
	struct recording recording = {0};
	FILE *file = fopen(path, "rb");
	long size;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	assert_true(size >= 0);
	rewind(file);
	recording.bytes = malloc((size_t)size + 1);
	assert_non_null(recording.bytes);
	recording.length = fread(recording.bytes, 1, (size_t)size, file);
	assert_int_equal(recording.length, size);
	fclose(file);
	return recording;
}
