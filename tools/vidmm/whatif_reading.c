/* SPDX-License-Identifier: MIT */
/* The first pass over each recording of `vidmm what-if`. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"
#include "whatif.h"

static void keep_message(void *context, const char *text)
{
	struct whatif_reading *reading = context;

	if (!reading->message[0])
		snprintf(reading->message, sizeof(reading->message), "%s", text);
}

/* The FNV-1a hash of all bytes, and their number. */
static bool hash_content(const char *path, struct whatif_reading *reading)
{
	uint64_t hash = 0xcbf29ce484222325u, bytes = 0;
	unsigned char buffer[65536];
	FILE *file = fopen(path, "rb");
	size_t count;
	bool good;

	while (file && (count = fread(buffer, 1, sizeof(buffer), file)) > 0) {
		for (size_t i = 0; i < count; i++)
			hash = (hash ^ buffer[i]) * 0x100000001b3u;
		bytes += count;
	}
	good = file && !ferror(file);
	if (!good)
		snprintf(reading->message, sizeof(reading->message), "%s: %s", path,
			 strerror(errno));
	if (file)
		fclose(file);
	snprintf(reading->content, sizeof(reading->content), "%016" PRIx64 "-%" PRIu64, hash,
		 bytes);
	return good;
}

/* Percentages need this pass, and so does `all_memory`. */
static void read_recording(const struct whatif_options *options, unsigned recording,
			   struct whatif_reading *reading)
{
	const struct replay_input input = {.path = options->recordings[recording]};
	struct progress progress = {.what = "measuring"};
	struct replay_options replay = {.inputs = &input,
					.input_count = 1,
					.message = keep_message,
					.message_context = reading};
	bool largest = false;

	for (unsigned i = 0; i < options->sizes.count; i++)
		largest |= options->sizes.sizes[i].largest;
	if (isatty(STDERR_FILENO)) {
		replay.progress = progress_update;
		replay.progress_context = &progress;
	}
	reading->status = REPLAY_ENVIRONMENT;
	if (!options->state_path || hash_content(input.path, reading))
		reading->status = replay_measure(&replay, largest, &reading->measure);
	progress_clear(&progress);
	if (reading->status != REPLAY_CLEAN)
		fprintf(stderr, "vidmm %s: %s\n", options->verb, reading->message);
}

struct whatif_reading *whatif_readings_make(const struct whatif_options *options)
{
	struct whatif_reading *readings = calloc(options->recording_count, sizeof(*readings));

	for (unsigned i = 0; i < options->recording_count && readings; i++)
		read_recording(options, i, &readings[i]);
	return readings;
}
