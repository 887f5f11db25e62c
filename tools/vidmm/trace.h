/* SPDX-License-Identifier: MIT */
/*
 * trace: reads "gemtrace 1" recordings (docs/replay.md), plain or zstd, one event at a time, checking every rule
 * of the format on the way. Owns the bytes of one line and what must be remembered to check the next ones; never
 * more, so that a recording larger than memory is read in constant space (struct trace_limits).
 *
 * Threads: a reader belongs to one thread at a time. With TRACE_READ_AHEAD a thread of the reader's own reads and
 * decompresses ahead of it. Nothing here knows vidmm.
 */
#ifndef VIDMM_TOOLS_TRACE_H
#define VIDMM_TOOLS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_result {
	TRACE_OK = 0,
	TRACE_END, /* after the #end line */
	TRACE_BAD, /* the recording breaks the format, or a limit; trace_error says where */
	TRACE_IO   /* the world failed: no such file, no memory */
};

/* What a hostile recording may cost. The default is far above anything recorded so far. */
struct trace_limits {
	uint32_t line_bytes;
	uint32_t buffers;      /* ids in one recording, alive or not */
	uint32_t maps;         /* mappings alive */
	uint32_t contexts;     /* alive */
	uint32_t objects;      /* in one submission; at most 65535 */
	uint64_t buffer_bytes; /* one buffer */
	uint64_t live_bytes;   /* all buffers alive */
};
extern const struct trace_limits trace_default_limits;

enum trace_op {
	TRACE_CREATE = 'c',
	TRACE_IMPORT = 'i',
	TRACE_EXPORT = 'e',
	TRACE_CLOSE = 'd',
	TRACE_MAP = 'm',
	TRACE_UNMAP = 'u',
	TRACE_WRITE = 'w',
	TRACE_READ = 'r',
	TRACE_DOMAIN = 's',
	TRACE_WAIT = 'q',
	TRACE_BUSY = 'b',
	TRACE_FENCE = 'f',
	TRACE_SYNC = 'y',
	TRACE_TILING = 't',
	TRACE_ADVISE = 'a',
	TRACE_CONTEXT = 'k',
	TRACE_CONTEXT_END = 'K',
	TRACE_ADDRESS = 'v',
	TRACE_SUBMIT = 'x'
};

enum trace_object_flags {
	TRACE_OBJECT_WRITE = 1,
	TRACE_OBJECT_FENCE = 2,
	TRACE_OBJECT_GTT = 4,
	TRACE_OBJECT_ASYNC = 8, /* no implicit synchronization */
	TRACE_OBJECT_CAPTURE = 16
};

struct trace_object {
	uint32_t id;
	uint32_t flags;
};

struct trace_relocation {
	uint64_t offset; /* in the source buffer */
	uint32_t delta;
	uint16_t target; /* index in the object list */
	uint16_t write;
};

/* Relocations [first, next group's first) live in the buffer of object `source`. */
struct trace_group {
	uint32_t source;
	uint32_t first;
};

struct trace_fence {
	uint64_t number;
	bool signal; /* or wait */
};

struct trace_submission {
	uint64_t number;
	uint64_t start, length;
	uint32_t context, ring, batch;
	uint32_t object_count, relocation_count, group_count, fence_count;
	uint64_t referenced_bytes; /* sizes of all objects together */
	struct trace_object *objects;
	struct trace_relocation *relocations;
	struct trace_group *groups;
	struct trace_fence *fences;
};

struct trace_event {
	uint64_t time_ns; /* since the process opened its device */
	uint64_t line;
	enum trace_op op;
	uint32_t id; /* the buffer; of k and K the context */
	union {
		struct {
			uint64_t size_bytes;
			bool user_memory;
			bool keyed; /* i: `key` is a number, so that an export may match it */
			uint64_t key;
		} create;     /* c i; d: the size alone */
		uint64_t key; /* e */
		struct {
			uint64_t offset, length;
			bool exact; /* w: a call that names its bytes, not whole pages through a mapping */
		} range;            /* m u w r */
		struct {
			uint32_t read, write;
		} domain; /* s */
		struct {
			int64_t timeout_ns;
			uint64_t waited_ns;
		} wait;      /* q; f: waited_ns */
		bool busy;   /* b */
		bool needed; /* a */
		struct {
			bool read, write, begin;
		} sync; /* y */
		struct {
			uint32_t mode, stride_bytes;
		} tiling;                                  /* t */
		uint64_t address;                          /* v */
		const struct trace_submission *submission; /* x; until the next event is read */
	} u;
};

struct trace_header {
	char program[128];
	char note[256];
	char driver[64];
	char chipset[64];
	char date[32];
	uint64_t t0_ns;
	uint64_t base_ns; /* GPU time of a submission: base_ns + referenced bytes / bytes_per_ns */
	double bytes_per_ns; /* 0: not given, then nothing is added */
	bool write_tracking;
};

#define TRACE_READ_AHEAD 0x1u /* read and decompress in a thread of its own */
#define TRACE_SKIM       0x2u /* of submissions only their place is checked, not their contents */

struct trace_reader;

/*
 * Opens and reads the header. `name` appears in messages; a file of name "-" is the standard input. On failure
 * *reader is set all the same (NULL only when out of memory), for trace_error; close it in every case.
 */
enum trace_result trace_open_file(const char *path, const struct trace_limits *limits,
				  unsigned flags, struct trace_reader **reader);
enum trace_result trace_open_memory(const char *name, const void *data, size_t size,
				    const struct trace_limits *limits,
				    struct trace_reader **reader);
void trace_close(struct trace_reader *reader);

enum trace_result trace_next(struct trace_reader *reader, struct trace_event *event);
const struct trace_header *trace_header(const struct trace_reader *reader);
const char *trace_name(const struct trace_reader *reader);
/* "file:line: what is wrong"; empty when nothing is. */
const char *trace_error(const struct trace_reader *reader);
/* Bytes of the file consumed so far and its size (0: unknown). */
void trace_progress(const struct trace_reader *reader, uint64_t *done, uint64_t *size);

/*
 * The recordings of one adapter's processes, merged on t0 + time; equal times go in the order given. `process` of
 * trace_merge_next is the index in `readers`. *when_ns counts from the earliest t0.
 */
struct trace_merge;
struct trace_merge *trace_merge_create(struct trace_reader *const *readers, unsigned count);
void trace_merge_destroy(struct trace_merge *merge);
enum trace_result trace_merge_next(struct trace_merge *merge, unsigned *process, uint64_t *when_ns,
				   const struct trace_event **event);

#endif
