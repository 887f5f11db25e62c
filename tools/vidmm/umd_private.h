/* SPDX-License-Identifier: MIT */
/* What the files of the user-mode driver share. */
#ifndef VIDMM_TOOLS_UMD_PRIVATE_H
#define VIDMM_TOOLS_UMD_PRIVATE_H

#include <d3dumddi.h>
#include <vidmm/softgpu.h>

#include "umd.h"

#define UMD_PAGE_BYTES  4096u
#define UMD_NO_KEY      UINT32_MAX
#define UMD_REPORT_ROOM 64u /* records */

/* The bits of D3DDDICB_LOCKFLAGS. */
enum {
	UMD_LOCK_READ_ONLY = 0x001,
	UMD_LOCK_WRITE_ONLY = 0x002,
	UMD_LOCK_DO_NOT_WAIT = 0x004,
	UMD_LOCK_ENTIRE = 0x010,
	UMD_LOCK_ACQUIRE_APERTURE = 0x040,
	UMD_LOCK_DISCARD = 0x080,
	UMD_LOCK_NO_EXISTING_REFERENCE = 0x100
};

/* The values of `t`. */
enum umd_tiling { UMD_LINEAR = 0, UMD_TILED_X = 1, UMD_TILED_Y = 2 };

struct umd_buffer {
	uint32_t id;
	D3DKMT_HANDLE handle; /* 0: not allocated yet; Discard may change it */
	uint64_t size_bytes;
	struct content *content; /* NULL when nothing is verified */
	uint32_t key;            /* index in the exchange, UMD_NO_KEY: not shared */
	uint32_t stride_bytes;
	uint32_t brackets; /* y: begun and not ended; the allocation is locked that often */
	uint8_t tiling;    /* enum umd_tiling, as created or to be created */
	bool user_memory;
	bool seen_as_picture; /* tiled, and so it was locked the last time */
	bool offered;
	bool foreign;  /* another process made it: no lock (LOCK-24) */
	bool resource; /* belongs to the runtime resource that the buffer's address names */
};

struct umd_context {
	uint32_t number; /* in the recording */
	HANDLE handle;
	char *commands;
	D3DDDI_ALLOCATIONLIST *allocations;
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t command_bytes, allocation_room, patch_room;
};

/* An object of the submission being built. */
struct umd_slot {
	D3DKMT_HANDLE handle;
	uint32_t part;        /* of the last part that lists it */
	uint32_t index;       /* in that part's allocation list */
	uint32_t list_value;  /* WriteOperation */
	uint32_t last_offset; /* largest AllocationOffset allowed */
	uint32_t table;       /* the last table that was looked through for it */
	uint64_t size_bytes;
};

/* The command buffer being filled. */
struct umd_batch {
	struct umd_context
		*context; /* the last one submitted to, between submissions; NULL: gone */
	uint32_t
		part; /* counts pfnRenderCb calls of all submissions, so that slots need no clearing */
	uint32_t used_bytes, allocation_count, patch_count;
	uint32_t operand_count; /* of commands: patch locations that the miniport adds */
	uint32_t render_calls;  /* of this submission */
	uint32_t table;         /* counts tables that had to be measured */
};

struct umd {
	struct world *world;
	unsigned index;
	char name[64];
	uint64_t line; /* of the present event */
	struct door *door;
	const D3DDDI_DEVICECALLBACKS *callbacks; /* the door's */
	HANDLE handle;                           /* its device: first argument of every callback */
	uint64_t base_ns;
	double bytes_per_ns;

	struct umd_buffer **buffers; /* by id - 1; NULL: closed */
	uint32_t buffer_count, buffer_room;
	struct umd_context **contexts;
	uint32_t context_count, context_room;

	struct umd_batch batch;
	struct umd_slot *slots;
	uint32_t slot_room;
	UINT *pages; /* for page lists */
	uint32_t page_room;

	D3DKMT_HANDLE report_handle;
	const struct softgpu_report *report; /* locked for good; NULL: for each look at it */
	uint32_t report_age;                 /* submissions since the last look */
	uint64_t report_seen;
};

static inline bool umd_has_aperture(const struct umd *umd)
{
	return umd->world->adapter_sizes.aperture_bytes != 0;
}

/* Explains a failed callback and says how the replay ends. */
enum replay_status umd_failed(struct umd *umd, const char *callback,
			      const struct umd_buffer *buffer, HRESULT hr);
enum replay_status umd_no_memory(struct umd *umd);

/* umd_buffer.c */
enum replay_status umd_buffer_create(struct umd *umd, const struct trace_event *event);
enum replay_status umd_buffer_close(struct umd *umd, uint32_t id);
/* Allocated, and not offered: may be used. Allocates on first use. */
enum replay_status umd_buffer_ready(struct umd *umd, struct umd_buffer *buffer);
enum replay_status umd_buffer_allocate(struct umd *umd, struct umd_buffer *buffer, bool shared,
				       D3DDDICB_ALLOCATE *result);
enum replay_status umd_buffer_deallocate(struct umd *umd, struct umd_buffer *buffer);
enum replay_status umd_buffer_tiling(struct umd *umd, struct umd_buffer *buffer, uint32_t mode,
				     uint32_t stride_bytes);
enum replay_status umd_buffer_advise(struct umd *umd, struct umd_buffer *buffer, bool needed);
static inline struct umd_buffer *umd_buffer_of(const struct umd *umd, uint32_t id)
{
	return umd->buffers[id - 1];
}

/* umd_share.c */
enum replay_status umd_export(struct umd *umd, struct umd_buffer *buffer, uint64_t key);
/* *opened: the key was known and the buffer is another process's memory now. */
enum replay_status umd_import(struct umd *umd, struct umd_buffer *buffer, uint64_t key,
			      bool *opened);

/* umd_lock.c */
HRESULT umd_lock(struct umd *umd, struct umd_buffer *buffer, UINT flags, UINT page_count,
		 char **data);
enum replay_status umd_unlock(struct umd *umd, struct umd_buffer *buffer);
/* A lock that waits; `flags` without DonotWait. *data NULL and REPLAY_CLEAN: not lockable (foreign). */
/*
 * All of it, waiting; of a tiled one the picture and not the tiles, if it can be had: seen_as_picture. *data as below.
 */
enum replay_status umd_lock_picture(struct umd *umd, struct umd_buffer *buffer, UINT flags,
				    char **data);
enum replay_status umd_lock_waiting(struct umd *umd, struct umd_buffer *buffer, UINT flags,
				    UINT page_count, char **data);
/* Waits for the GPU: locks for reading, and unlocks. */
enum replay_status umd_wait_idle(struct umd *umd, struct umd_buffer *buffer, bool for_writing);
enum replay_status umd_poll_busy(struct umd *umd, struct umd_buffer *buffer);
enum replay_status umd_bracket(struct umd *umd, struct umd_buffer *buffer,
			       const struct trace_event *event);

/* umd_access.c */
enum replay_status umd_write(struct umd *umd, struct umd_buffer *buffer, uint64_t offset,
			     uint64_t length);
enum replay_status umd_read(struct umd *umd, struct umd_buffer *buffer, uint64_t offset,
			    uint64_t length);
enum replay_status umd_check(struct umd *umd, struct umd_buffer *buffer);

/* umd_context.c */
enum replay_status umd_context_find(struct umd *umd, uint32_t number, struct umd_context **context);
enum replay_status umd_context_end(struct umd *umd, uint32_t number);

/* umd_batch.c */
void umd_batch_begin(struct umd *umd, struct umd_context *context);
enum replay_status umd_batch_end(struct umd *umd);
/* Makes room, by submitting the present part if need be. Slots must be looked up again afterwards. */
enum replay_status umd_batch_reserve(struct umd *umd, size_t bytes, uint32_t allocations,
				     uint32_t patches);
/* Both need room. */
void *umd_batch_command(struct umd *umd, uint16_t opcode, uint16_t flags, size_t size_bytes);
struct softgpu_operand umd_batch_operand(struct umd *umd, struct umd_slot *slot, uint64_t offset);
/* The slot's place in the allocation list of the present part, where it is put if it is not there. */
static inline uint32_t umd_batch_list(struct umd *umd, struct umd_slot *slot)
{
	struct umd_batch *batch = &umd->batch;

	if (slot->part != batch->part) {
		slot->part = batch->part;
		slot->index = batch->allocation_count++;
		batch->context->allocations[slot->index].hAllocation = slot->handle;
		batch->context->allocations[slot->index].Value = slot->list_value;
	}
	return slot->index;
}

/* umd_submit.c */
enum replay_status umd_submit(struct umd *umd, const struct trace_submission *submission);
/* A command that does nothing but write to the buffer, in the part being filled. */
enum replay_status umd_submit_use(struct umd *umd, struct umd_buffer *buffer);

#endif
