/* SPDX-License-Identifier: MIT */
/*
 * trace: reads "gemtrace 1" recordings (docs/trace-format.md), plain or compressed with zstd, one
 * event at a time, and checks every rule of the format. It stores one line of text and the state
 * that the checks of later lines need. A recording larger than memory is therefore read in constant
 * space (struct trace_limits).
 *
 * Threads: one thread at a time uses a reader. With TRACE_READ_AHEAD a second thread of the reader
 * reads and decompresses ahead. This library does not depend on the memory manager.
 */
#ifndef VIDMM_TOOLS_TRACE_H
#define VIDMM_TOOLS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_result {
	TRACE_OK = 0,
	TRACE_END, /* after the #end line */
	TRACE_BAD, /* the recording breaks the format or a limit; trace_error says where */
	TRACE_IO   /* the system failed: no such file, no memory */
};

/*
 * Bounds of the memory that a hostile recording can use. The defaults are far above every known
 * recording.
 */
struct trace_limits {
	uint32_t line_bytes;
	uint32_t buffers;      /* ids in one recording, closed buffers included */
	uint32_t maps;         /* live mappings */
	uint32_t contexts;     /* alive */
	uint32_t objects;      /* in one submission; at most 65535 */
	uint64_t buffer_bytes; /* size of one buffer */
	uint64_t live_bytes;   /* size of all live buffers together */
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
	uint64_t offset; /* bytes, in the source buffer */
	uint32_t delta;
	uint16_t target; /* index in the object list */
	uint16_t write;
};

/* Relocations [first, next group's first) are in the buffer of object `source`. */
struct trace_group {
	uint32_t source;
	uint32_t first;
};

struct trace_fence {
	uint64_t number;
	bool signal; /* true: signal; false: wait */
};

struct trace_submission {
	uint64_t number;
	uint64_t start, length;
	uint32_t context, ring, batch;
	uint32_t object_count, relocation_count, group_count, fence_count;
	uint64_t referenced_bytes; /* sum of the sizes of all objects */
	struct trace_object *objects;
	struct trace_relocation *relocations;
	struct trace_group *groups;
	struct trace_fence *fences;
};

struct trace_event {
	uint64_t time_ns; /* since the process opened the device */
	uint64_t line;
	enum trace_op op;
	uint32_t id; /* the buffer; for k and K the context */
	union {
		struct {
			uint64_t size_bytes;
			bool user_memory;
			bool keyed; /* i: `key` is a number, which an export can match */
			uint64_t key;
		} create;     /* c i; for d only size_bytes */
		uint64_t key; /* e */
		struct {
			uint64_t offset, length;
			/*
			 * w: true for a call with an exact range, false for whole pages written
			 * through a mapping
			 */
			bool exact;
		} range; /* m u w r */
		struct {
			uint32_t read, write;
		} domain; /* s */
		struct {
			int64_t timeout_ns;
			uint64_t waited_ns;
		} wait;      /* q; for f only waited_ns */
		bool busy;   /* b */
		bool needed; /* a */
		struct {
			bool read, write, begin;
		} sync; /* y */
		struct {
			uint32_t mode, stride_bytes;
		} tiling;         /* t */
		uint64_t address; /* v */
		/* x; valid until the next event is read */
		const struct trace_submission *submission;
	} u;
};

struct trace_header {
	char program[128];
	char note[256];
	char driver[64];
	char chipset[64];
	char date[32];
	uint64_t t0_ns;
	/* GPU time of a submission: base_ns + referenced bytes / bytes_per_ns */
	uint64_t base_ns;
	double bytes_per_ns; /* 0: not given; the GPU time is base_ns */
	bool write_tracking;
};

#define TRACE_READ_AHEAD 0x1u /* read and decompress in a second thread */
#define TRACE_SKIM       0x2u /* the contents of submission lines are not checked */

struct trace_reader;

/*
 * Opens a recording and reads its header. PATH or NAME appears in messages; a file "-" is the
 * standard input. On failure *READER is set as well (NULL only when out of memory), so that
 * trace_error can be called. The caller closes it in every case.
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
/* Returns "file:line: error", or "" without an error. */
const char *trace_error(const struct trace_reader *reader);
/* Stores the bytes of the file that the events so far are made of, and its size (0: unknown). */
void trace_progress(const struct trace_reader *reader, uint64_t *done, uint64_t *size);

/*
 * Merges the recordings of the processes of one adapter by t0 + time; at equal times the order of
 * READERS applies. trace_merge_next stores the index in READERS in *PROCESS, and the time since the
 * earliest t0 in *WHEN_NS.
 */
struct trace_merge;
struct trace_merge *trace_merge_create(struct trace_reader *const *readers, unsigned count);
void trace_merge_destroy(struct trace_merge *merge);
enum trace_result trace_merge_next(struct trace_merge *merge, unsigned *process, uint64_t *when_ns,
				   const struct trace_event **event);

#endif
