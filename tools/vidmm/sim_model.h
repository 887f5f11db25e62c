/* SPDX-License-Identifier: MIT */
/*
 * sim_model: what the memory manager promises, for `vidmm sim`. It knows calls and their order, and
 * no segment, no handle and no time. It shares no code with the library, and includes none of its
 * headers.
 *
 * The GPU work of a context takes effect when it is submitted, or, behind a wait that is not
 * satisfied, when its fence gets the value. Objects are named by process and number; the caller
 * names only those that exist.
 */
#ifndef VIDMM_TOOLS_SIM_MODEL_H
#define VIDMM_TOOLS_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_PROCESSES   8u
#define MODEL_ALLOCATIONS 12u
#define MODEL_CONTEXTS    2u
#define MODEL_FENCES      4u
#define MODEL_QUEUE       16u
#define MODEL_NONE        UINT32_MAX

enum model_work { MODEL_FILL, MODEL_COPY, MODEL_WAIT, MODEL_SIGNAL };

/* Work of a context that has not had its effect. */
struct model_effect {
	enum model_work work;
	uint32_t to, to_offset, from, from_offset, length, pattern; /* FILL, COPY */
	uint32_t fence;                                             /* WAIT, SIGNAL */
	uint64_t value;
};

struct model_allocation {
	bool exists, offered, held; /* held: locked over steps */
	bool known;                 /* the content is that of `bytes`; false: any content */
	bool local;                 /* counts in the budget */
	bool written;               /* written to since it is on the residency list */
	uint32_t size_bytes, listed;
	uint32_t user;    /* 1 + context whose work used it since the last wait; 0: none */
	uint32_t pending; /* effects that wait and name it */
	uint8_t *bytes;
};

struct model_fence {
	bool exists;
	uint64_t value, highest; /* the highest value of a signal so far, also one that waits */
	uint32_t pending;        /* effects that wait and name it */
};

struct model_context {
	bool exists;
	struct model_effect queue[MODEL_QUEUE];
	uint32_t count;
};

struct model_process {
	struct model_allocation allocation[MODEL_ALLOCATIONS];
	struct model_context context[MODEL_CONTEXTS];
	struct model_fence fence[MODEL_FENCES];
	uint64_t budget_bytes, listed_bytes, local_bytes; /* local: of those that are listed */
};

struct model {
	struct model_process process[MODEL_PROCESSES];
	bool contents; /* false: sizes only */
};

/* A new allocation is all zero. LOCAL: it counts in the budget. False: no memory. */
bool model_create(struct model *model, uint32_t process, uint32_t allocation, uint32_t size_bytes,
		  bool local);
void model_destroy(struct model *model, uint32_t process, uint32_t allocation);
/* The CPU writes words: that at offset i is `value` + i / 4. Both numbers are multiples of 4. */
void model_write(struct model *model, uint32_t process, uint32_t allocation, uint32_t offset,
		 uint32_t length, uint32_t value);
/* The content is lost: any content is right until all of it is written again. */
void model_forget_content(struct model *model, uint32_t process, uint32_t allocation);
/*
 * Compares the bytes from `offset` on. Returns the offset of the first that differs, MODEL_NONE if
 * there is none or the content is unknown.
 */
uint32_t model_compare(const struct model *model, uint32_t process, uint32_t allocation,
		       const uint8_t *bytes, uint32_t offset, uint32_t length);

/* Work that writes has been submitted, or the CPU has locked it to write. */
void model_note_write(struct model *model, uint32_t process, uint32_t allocation);
/* The residency list has the allocation once more, or once less. */
void model_list(struct model *model, uint32_t process, uint32_t allocation);
void model_unlist(struct model *model, uint32_t process, uint32_t allocation);

/* Work of a context. False: it would wait in a queue that is full; nothing has changed. */
bool model_submit(struct model *model, uint32_t process, uint32_t context,
		  const struct model_effect *effect);
/* Returns whether work of the context waits. */
bool model_is_held(const struct model *model, uint32_t process, uint32_t context);
void model_signal(struct model *model, uint32_t process, uint32_t fence, uint64_t value);
/* The queue of the context ends; what waits there has no effect. */
void model_drop(struct model *model, uint32_t process, uint32_t context);
/* All work that can run has run. */
void model_idle(struct model *model);
/* All objects of the process end. */
void model_end_process(struct model *model, uint32_t process);

#endif
