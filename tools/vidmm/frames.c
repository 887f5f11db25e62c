/* SPDX-License-Identifier: MIT */
/* Every program is followed by both rules at once; which one applies is known at the end. */
#include "frames.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_time.h"

#define RINGS          4u /* 0 and 1: render, 2: video, 3: copy */
#define IMAGES_TO_SWAP 2u
#define PENDING_FIRST  8u
#define EXPORTED       0x1u
#define WRITTEN        0x2u

struct frame {
	/* In the recording: its last submission, and the completion of that. */
	uint64_t submitted_ns, recorded_ns;
	uint64_t completed_ns;
	uint32_t pending; /* accepted command buffers that have not completed */
};

/* The frames of a program by one rule. Those that are not final are in a FIFO. */
struct sequence {
	struct frame *at;
	uint32_t capacity; /* a power of two */
	uint32_t first;    /* number of the first one; numbers are also positions in the ring */
	uint32_t end;      /* number after the newest one */
	bool has_last;
	struct frame last; /* the newest final frame */
	uint64_t count, late, stall_ns;
	struct histogram times;
};

struct program {
	uint64_t base_ns;
	double bytes_per_ns;
	uint64_t ring_idle_ns[RINGS], gpu_ns; /* by the recording's model */
	uint8_t *buffers;                     /* EXPORTED, WRITTEN: by id - 1 */
	uint32_t buffer_count;
	uint32_t images; /* exported buffers that were written */
	uint32_t image;  /* the one that was written last; 0: none yet */
	bool has_submitted;
	uint64_t submitted_ns;
	struct sequence swaps, pauses;
};

struct frames {
	pthread_mutex_t lock; /* on a linux host, completions come from other threads */
	unsigned count;
	struct program program[];
};

/* ---- the final frames of a sequence ---- */

static struct frame *frame_at(const struct sequence *sequence, uint32_t number)
{
	return &sequence->at[number & (sequence->capacity - 1)];
}

/* NEXT is NULL for the last frame of a program, which is not late. */
static void finish_frame(struct sequence *sequence, const struct frame *frame,
			 const struct frame *next)
{
	sequence->count++;
	if (next) {
		uint64_t due_ns = frame->recorded_ns > next->submitted_ns ? frame->recorded_ns
									  : next->submitted_ns;

		sequence->late += frame->completed_ns > due_ns + FRAMES_TOLERANCE_NS;
	}
	if (sequence->has_last) {
		const struct frame *last = &sequence->last;
		/* Contexts of different priority may overtake. */
		uint64_t ns = frame->completed_ns > last->completed_ns
				      ? frame->completed_ns - last->completed_ns
				      : 0;
		uint64_t recorded_ns = frame->recorded_ns > last->recorded_ns
					       ? frame->recorded_ns - last->recorded_ns
					       : 0;

		histogram_add(&sequence->times, ns);
		if (ns > recorded_ns && ns - recorded_ns > sequence->stall_ns)
			sequence->stall_ns = ns - recorded_ns;
	}
	sequence->last = *frame;
	sequence->has_last = true;
}

/*
 * A frame is final when its command buffers are complete and the end of the next frame is known. At
 * the end of the run, a frame whose command buffers did not complete does not count.
 */
static void finish_frames(struct sequence *sequence, bool at_end)
{
	while (sequence->end - sequence->first > (at_end ? 0 : 2)) {
		const struct frame *frame = frame_at(sequence, sequence->first);
		bool has_next = sequence->end - sequence->first > 1;

		if (frame->pending == 0)
			finish_frame(sequence, frame,
				     has_next ? frame_at(sequence, sequence->first + 1) : NULL);
		else if (!at_end)
			return;
		sequence->first++;
	}
}

static bool double_ring(struct sequence *sequence)
{
	uint32_t capacity = sequence->capacity ? sequence->capacity * 2 : PENDING_FIRST;
	struct frame *at = calloc(capacity, sizeof(*at));

	if (!at)
		return false;
	for (uint32_t i = sequence->first; i != sequence->end; i++)
		at[i & (capacity - 1)] = *frame_at(sequence, i);
	free(sequence->at);
	sequence->at = at;
	sequence->capacity = capacity;
	return true;
}

/* Out of memory: the submissions count for the frame before. */
static void begin_frame(struct sequence *sequence)
{
	finish_frames(sequence, false);
	if (sequence->end - sequence->first == sequence->capacity && !double_ring(sequence))
		return;
	*frame_at(sequence, sequence->end++) = (struct frame){0};
}

/* Returns the number of the frame. */
static uint32_t add_submission(struct sequence *sequence, uint64_t when_ns, uint64_t recorded_ns)
{
	struct frame *frame;

	if (sequence->end == sequence->first)
		return FRAMES_NONE;
	frame = frame_at(sequence, sequence->end - 1);
	frame->submitted_ns = when_ns;
	frame->recorded_ns = recorded_ns;
	return sequence->end - 1;
}

static struct frame *pending_frame(const struct sequence *sequence, uint32_t number)
{
	return number != FRAMES_NONE && number - sequence->first < sequence->end - sequence->first
		       ? frame_at(sequence, number)
		       : NULL;
}

static void accepted(struct sequence *sequence, uint32_t number)
{
	struct frame *frame = pending_frame(sequence, number);

	if (frame)
		frame->pending++;
}

static void completed(struct sequence *sequence, uint32_t number, uint64_t now_ns)
{
	struct frame *frame = pending_frame(sequence, number);

	if (!frame)
		return;
	frame->pending -= frame->pending > 0;
	frame->completed_ns = now_ns;
	finish_frames(sequence, false);
}

/* ---- the events of a program ---- */

/* Out of memory: the buffer is not known as an image. */
static void export_buffer(struct program *program, uint32_t id)
{
	if (id > program->buffer_count) {
		uint32_t count = id > UINT32_MAX / 2 ? id : id * 2;
		uint8_t *grown = realloc(program->buffers, count);

		if (!grown)
			return;
		memset(grown + program->buffer_count, 0, count - program->buffer_count);
		program->buffers = grown;
		program->buffer_count = count;
	}
	program->buffers[id - 1] |= EXPORTED;
}

/* Returns the exported buffer that the submission writes, the last listed one, or 0. */
static uint32_t image_of(struct program *program, const struct trace_submission *submission)
{
	uint32_t image = 0;

	for (uint32_t i = 0; i < submission->object_count; i++) {
		uint32_t id = submission->objects[i].id;

		if (submission->objects[i].flags & TRACE_OBJECT_WRITE &&
		    id <= program->buffer_count && program->buffers[id - 1] & EXPORTED)
			image = id;
	}
	if (image != 0 && !(program->buffers[image - 1] & WRITTEN)) {
		program->buffers[image - 1] |= WRITTEN;
		program->images++;
	}
	return image;
}

/* Returns when the recording's GPU completed the submission. */
static uint64_t recorded_completion(struct program *program,
				    const struct trace_submission *submission, uint64_t when_ns)
{
	uint64_t *idle_ns =
		&program->ring_idle_ns[submission->ring < RINGS ? submission->ring : RINGS - 1];
	uint64_t ns =
		gpu_time_ns(program->base_ns, program->bytes_per_ns, submission->referenced_bytes);

	*idle_ns = (*idle_ns > when_ns ? *idle_ns : when_ns) + ns;
	program->gpu_ns += ns;
	return *idle_ns;
}

static void on_submission(struct program *program, const struct trace_submission *submission,
			  uint64_t when_ns, struct frame_label *label)
{
	uint64_t recorded_ns = recorded_completion(program, submission, when_ns);
	uint32_t image = image_of(program, submission);

	if (!program->has_submitted || when_ns - program->submitted_ns >= FRAMES_PAUSE_NS)
		begin_frame(&program->pauses);
	label->pause = add_submission(&program->pauses, when_ns, recorded_ns);
	program->has_submitted = true;
	program->submitted_ns = when_ns;
	if (image == 0)
		return;
	if (image != program->image)
		begin_frame(&program->swaps);
	program->image = image;
	label->swap = add_submission(&program->swaps, when_ns, recorded_ns);
}

struct frame_label frames_event(struct frames *frames, unsigned process,
				const struct trace_event *event, uint64_t when_ns)
{
	struct frame_label label = {FRAMES_NONE, FRAMES_NONE, FRAMES_NONE};

	if (event->op != TRACE_EXPORT && event->op != TRACE_SUBMIT)
		return label;
	pthread_mutex_lock(&frames->lock);
	if (event->op == TRACE_EXPORT) {
		export_buffer(&frames->program[process], event->id);
	} else {
		label.process = process;
		on_submission(&frames->program[process], event->u.submission, when_ns, &label);
	}
	pthread_mutex_unlock(&frames->lock);
	return label;
}

void frames_accepted(struct frames *frames, struct frame_label label)
{
	if (label.process == FRAMES_NONE)
		return;
	pthread_mutex_lock(&frames->lock);
	accepted(&frames->program[label.process].swaps, label.swap);
	accepted(&frames->program[label.process].pauses, label.pause);
	pthread_mutex_unlock(&frames->lock);
}

void frames_completed(struct frames *frames, struct frame_label label, uint64_t now_ns)
{
	if (label.process == FRAMES_NONE)
		return;
	pthread_mutex_lock(&frames->lock);
	completed(&frames->program[label.process].swaps, label.swap, now_ns);
	completed(&frames->program[label.process].pauses, label.pause, now_ns);
	pthread_mutex_unlock(&frames->lock);
}

/* ---- */

struct frames *frames_create(const struct trace_header *headers, unsigned process_count)
{
	struct frames *frames =
		calloc(1, sizeof(*frames) + process_count * sizeof(frames->program[0]));

	if (!frames)
		return NULL;
	pthread_mutex_init(&frames->lock, NULL);
	frames->count = process_count;
	for (unsigned i = 0; i < process_count; i++) {
		frames->program[i].base_ns = headers[i].base_ns;
		frames->program[i].bytes_per_ns = headers[i].bytes_per_ns;
	}
	return frames;
}

void frames_destroy(struct frames *frames)
{
	if (!frames)
		return;
	for (unsigned i = 0; i < frames->count; i++) {
		free(frames->program[i].buffers);
		free(frames->program[i].swaps.at);
		free(frames->program[i].pauses.at);
	}
	pthread_mutex_destroy(&frames->lock);
	free(frames);
}

void frames_end(struct frames *frames)
{
	pthread_mutex_lock(&frames->lock);
	for (unsigned i = 0; i < frames->count; i++) {
		finish_frames(&frames->program[i].swaps, true);
		finish_frames(&frames->program[i].pauses, true);
	}
	pthread_mutex_unlock(&frames->lock);
}

static bool has_swaps(const struct program *program)
{
	return program->images >= IMAGES_TO_SWAP;
}

void frames_summary(struct frames *frames, uint32_t process, struct frames_summary *summary)
{
	struct histogram times = {0};

	*summary = (struct frames_summary){0};
	pthread_mutex_lock(&frames->lock);
	for (unsigned i = 0; i < frames->count; i++) {
		const struct program *program = &frames->program[i];
		const struct sequence *sequence =
			has_swaps(program) ? &program->swaps : &program->pauses;

		if (process != FRAMES_NONE && process != i)
			continue;
		histogram_merge(&times, &sequence->times);
		summary->count += sequence->count;
		summary->late += sequence->late;
		summary->swaps = summary->swaps || has_swaps(program);
		if (sequence->stall_ns > summary->stall_ns)
			summary->stall_ns = sequence->stall_ns;
	}
	pthread_mutex_unlock(&frames->lock);
	summary->times = histogram_summary(&times);
}

uint64_t frames_recorded_gpu_ns(struct frames *frames, uint32_t process)
{
	uint64_t sum_ns = 0;

	pthread_mutex_lock(&frames->lock);
	for (unsigned i = 0; i < frames->count; i++)
		if (process == FRAMES_NONE || process == i)
			sum_ns += frames->program[i].gpu_ns;
	pthread_mutex_unlock(&frames->lock);
	return sum_ns;
}
