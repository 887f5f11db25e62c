/* SPDX-License-Identifier: MIT */
/* Internals of the user-mode driver. */
#ifndef VIDMM_TOOLS_UMD_PRIVATE_H
#define VIDMM_TOOLS_UMD_PRIVATE_H

#include <d3dumddi.h>
#include <vidmm/softgpu.h>

#include "umd.h"

#define UMD_PAGE_BYTES         4096u
#define UMD_NO_KEY             UINT32_MAX
#define UMD_REPORT_RECORDS_MAX 64u /* records of the report buffer */

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

/* The tiling modes of event t. */
enum umd_tiling { UMD_LINEAR = 0, UMD_TILED_X = 1, UMD_TILED_Y = 2 };

struct umd_foreign; /* umd_foreign.h */
struct umd_memory;  /* umd_wddm2.h */
struct umd_wddm2;

struct umd_buffer {
	uint32_t id;
	D3DKMT_HANDLE handle; /* 0: not allocated yet; a lock with Discard may change it */
	uint64_t size_bytes;
	struct content *content; /* NULL without verification */
	uint32_t key;            /* index in the exchange; UMD_NO_KEY: not shared */
	uint32_t stride_bytes;
	uint32_t brackets; /* y: brackets begun and not ended; each holds a lock */
	uint8_t tiling;    /* enum umd_tiling of the allocation, or for its creation */
	bool user_memory;
	/* tiled, and its last lock gave the linear image (swizzling range or unswizzled) */
	bool locked_linear;
	bool offered;
	bool foreign;  /* created by another process: cannot be locked (LOCK-24) */
	bool staging;  /* not of the recording: for a foreign miniport (umd_foreign.h) */
	bool hidden;   /* a foreign miniport: the CPU cannot lock it */
	bool resource; /* part of a resource whose runtime handle is the buffer's address */

	/* WDDM 2.x: the allocation, and those that it had before it was renamed */
	struct umd_memory *memory, *spares;
};

struct umd_context {
	uint32_t number; /* number in the recording */
	HANDLE handle;
	char *commands;
	D3DDDI_ALLOCATIONLIST *allocations;
	D3DDDI_PATCHLOCATIONLIST *patches;
	uint32_t command_bytes, allocation_capacity, patch_capacity;

	/* WDDM 2.x */
	struct umd *umd;
	D3DKMT_HANDLE fence;
	const uint64_t *fence_word;
	uint64_t fence_address; /* GPU virtual address */
	uint64_t queued;        /* the value that the last command buffer stores to the fence */
	uint64_t wanted;        /* while a submission is prepared: it waits for this value */
	uint64_t paging_waited; /* value of the paging queue's fence that was last waited for */
	bool ended;
	struct umd_context *next_ended;
};

/* An object of the submission that is being built. */
struct umd_slot {
	D3DKMT_HANDLE handle;
	struct umd_memory *memory; /* WDDM 2.x */
	uint32_t part;             /* the last part that lists the object */
	uint32_t index;            /* index in the allocation list of that part */
	uint32_t list_value;       /* WriteOperation */
	uint32_t last_offset;      /* largest AllocationOffset allowed */
	uint32_t table;            /* the last relocation table whose size includes the object */
	uint64_t size_bytes;
};

/*
 * The command buffer that is being filled. A submission consists of one or more parts, each with
 * one pfnRenderCb or pfnSubmitCommandCb.
 */
struct umd_batch {
	/* between submissions: the last context used; NULL if that was destroyed */
	struct umd_context *context;
	/* number of the part, counted over all submissions, so that slots need no reset */
	uint32_t part;
	uint32_t used_bytes, allocation_count, patch_count;
	/* operands of commands: the miniport adds a patch location for each */
	uint32_t operand_count;
	uint32_t render_calls; /* parts rendered for this submission */
	uint32_t table;        /* number of the last table whose size was computed */
};

/* What the versions of WDDM differ in. */
struct umd_model {
	const char *lock_name, *unlock_name; /* names of callbacks, for messages */
	bool has_tiles;                      /* the miniport has tiled allocations */
	enum replay_status (*open)(struct umd *umd);
	void (*close)(struct umd *umd);
	/* The buffer has a new handle, or is shared from now on. */
	enum replay_status (*created)(struct umd *umd, struct umd_buffer *buffer);
	enum replay_status (*shared)(struct umd *umd, struct umd_buffer *buffer, bool exported);
	/* The allocation is about to be destroyed; the content will be offered. */
	enum replay_status (*forget)(struct umd *umd, struct umd_buffer *buffer);
	enum replay_status (*offering)(struct umd *umd, struct umd_buffer *buffer);
	HRESULT (*reclaim)(struct umd *umd, struct umd_buffer *buffer, BOOL *discarded);
	/* FLAGS as of pfnLockCb. D3DERR_WASSTILLDRAWING: DonotWait, and the GPU uses it. */
	HRESULT(*lock)
	(struct umd *umd, struct umd_buffer *buffer, UINT flags, UINT page_count, char **data);
	HRESULT (*lock_handle)(struct umd *umd, D3DKMT_HANDLE handle, char **data);
	HRESULT (*unlock)(struct umd *umd, D3DKMT_HANDLE handle);
	/* Waits for the GPU without an access to the content. */
	HRESULT (*wait)(struct umd *umd, struct umd_buffer *buffer, UINT flags);
	enum replay_status (*create_context)(struct umd *umd, struct umd_context *context);
	enum replay_status (*end_context)(struct umd *umd, struct umd_context *context);
	/* Before and after the parts of a submission that uses the memory of SLOTS. */
	enum replay_status (*prepare)(struct umd *umd, struct umd_context *context,
				      const struct umd_slot *slots, uint32_t count);
	void (*submitted)(struct umd *umd, struct umd_context *context,
			  const struct umd_slot *slots, uint32_t count);
	enum replay_status (*begin_part)(struct umd *umd);
	enum replay_status (*submit_part)(struct umd *umd);
	/* Appends a table with as many relocations as fit. Returns their number. */
	uint32_t (*put_table)(struct umd *umd, const struct trace_relocation *relocations,
			      uint32_t count);
};
extern const struct umd_model umd_model_wddm1, umd_model_wddm2;

struct umd {
	struct world *world;
	const struct umd_model *model;
	bool wddm2_model;            /* the miniport is of WDDM 2.x */
	struct umd_foreign *foreign; /* NULL: the miniport knows the commands of softgpu */
	struct umd_wddm2 *wddm2;     /* NULL with WDDM 1.x */
	unsigned index;
	char name[64];
	uint64_t line; /* line of the current event */
	struct host_device *device;
	const D3DDDI_DEVICECALLBACKS *callbacks; /* callbacks of the device */
	HANDLE handle;                           /* the device: first argument of every callback */
	uint64_t base_ns;
	double bytes_per_ns;

	struct umd_buffer **buffers; /* index: id - 1; NULL: closed */
	uint32_t buffer_count, buffer_capacity;
	struct umd_context **contexts;
	uint32_t context_count, context_capacity;
	struct umd_context *ended_contexts; /* WDDM 2.x: uses of them may be noted */

	struct umd_batch batch;
	struct umd_slot *slots;
	uint32_t slot_capacity;
	UINT *pages; /* page list of a lock */
	uint32_t page_capacity;

	D3DKMT_HANDLE report_handle;
	struct umd_memory *report_memory;    /* WDDM 2.x */
	const struct softgpu_report *report; /* locked permanently; NULL: locked for each read */
	uint32_t report_age;                 /* submissions since the last read */
	uint64_t report_seen;
};

static inline bool umd_has_aperture(const struct umd *umd)
{
	return umd->world->adapter_sizes.aperture_bytes != 0;
}

/* Reports a failed callback. Returns the status with which the replay ends. */
enum replay_status umd_failed(struct umd *umd, const char *callback,
			      const struct umd_buffer *buffer, HRESULT hr);
enum replay_status umd_no_memory(struct umd *umd);

/* umd_buffer.c */
enum replay_status umd_buffer_create(struct umd *umd, const struct trace_event *event);
enum replay_status umd_buffer_close(struct umd *umd, uint32_t id);
/* Makes the buffer usable: allocates it at its first use, and reclaims it if it is offered. */
enum replay_status umd_buffer_ready(struct umd *umd, struct umd_buffer *buffer);
enum replay_status umd_buffer_allocate(struct umd *umd, struct umd_buffer *buffer, bool shared,
				       D3DDDICB_ALLOCATE *result);
enum replay_status umd_buffer_deallocate(struct umd *umd, struct umd_buffer *buffer);
/* Stores the handle of a new allocation in the buffer. */
HRESULT umd_buffer_try_allocate(struct umd *umd, struct umd_buffer *buffer,
				D3DDDICB_ALLOCATE *allocate);
enum replay_status umd_buffer_tiling(struct umd *umd, struct umd_buffer *buffer, uint32_t mode,
				     uint32_t stride_bytes);
enum replay_status umd_buffer_advise(struct umd *umd, struct umd_buffer *buffer, bool needed);
static inline struct umd_buffer *umd_buffer_of(const struct umd *umd, uint32_t id)
{
	return umd->buffers[id - 1];
}

/* umd_share.c */
enum replay_status umd_export(struct umd *umd, struct umd_buffer *buffer, uint64_t key);
/* Sets *OPENED if the key was exported; the buffer is then the exporter's memory. */
enum replay_status umd_import(struct umd *umd, struct umd_buffer *buffer, uint64_t key,
			      bool *opened);

/* umd_lock.c */
enum replay_status umd_unlock(struct umd *umd, struct umd_buffer *buffer);
/*
 * Both wait for the GPU; FLAGS is without DonotWait. *DATA is NULL with REPLAY_CLEAN if the buffer
 * is foreign and cannot be locked. umd_lock_linear locks the whole buffer, a tiled one as its
 * linear image if that is available: locked_linear tells.
 */
enum replay_status umd_lock_linear(struct umd *umd, struct umd_buffer *buffer, UINT flags,
				   char **data);
enum replay_status umd_lock_waiting(struct umd *umd, struct umd_buffer *buffer, UINT flags,
				    UINT page_count, char **data);
/* Waits for the GPU, as for a lock that is ReadOnly unless FOR_WRITING. */
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
enum replay_status umd_batch_begin(struct umd *umd, struct umd_context *context);
enum replay_status umd_batch_end(struct umd *umd);
/*
 * Makes sure that the command buffer has space for BYTES, ALLOCATIONS and PATCHES. Submits the
 * current part if it has not; indexes of slots are then invalid.
 */
enum replay_status umd_batch_reserve(struct umd *umd, size_t bytes, uint32_t allocations,
				     uint32_t patches);
/* Append a command, or list an operand. The caller has reserved the space. */
void *umd_batch_command(struct umd *umd, uint16_t opcode, uint16_t flags, size_t size_bytes);
struct softgpu_operand umd_batch_operand(struct umd *umd, struct umd_slot *slot, uint64_t offset);
/*
 * Returns the slot's index in the allocation list of the current part, and lists it there if it is
 * not listed yet.
 */
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

/* Submits the current part, and begins another one of the same submission. */
enum replay_status umd_batch_next(struct umd *umd);

/* umd_wddm1.c: submits the current part with the miniport's private data. */
enum replay_status umd_wddm1_render(struct umd *umd, void *private_data, UINT private_bytes);

/* umd_foreign*.c: for a foreign miniport. Makes its table the driver's. */
enum replay_status umd_foreign_attach(struct umd *umd);
/*
 * Fills the private data of an allocation, which is valid until the next call. FLAGS as of
 * vidmm/commands.h; CPU_VISIBLE is cleared if the CPU cannot lock it.
 */
HRESULT umd_foreign_describe(struct umd *umd, uint64_t size_bytes, uint32_t *flags,
			     D3DDDI_ALLOCATIONINFO *info, D3DDDICB_ALLOCATE *allocate);
HRESULT umd_foreign_allocate(struct umd *umd, struct umd_buffer *buffer,
			     D3DDDICB_ALLOCATE *allocate);
/* The buffer is an allocation that another buffer has shared. */
void umd_foreign_opened(struct umd *umd, struct umd_buffer *buffer);
enum replay_status umd_foreign_submit(struct umd *umd, struct umd_context *context,
				      const struct trace_submission *submission);
bool umd_foreign_can_copy(const struct umd *umd);
enum replay_status umd_foreign_copy(struct umd *umd, const struct umd_buffer *from,
				    const struct umd_buffer *to);
/* Accesses of the CPU to a hidden buffer: bytes, and the blocks FIRST to LAST. */
enum replay_status umd_foreign_write(struct umd *umd, struct umd_buffer *buffer, uint64_t offset,
				     uint64_t length, int pattern);
enum replay_status umd_foreign_read(struct umd *umd, struct umd_buffer *buffer, uint32_t first,
				    uint32_t last);
/* Waits for the GPU and compares what it has read. */
enum replay_status foreign_readings_check(struct umd *umd);

/* umd_submit.c */
enum replay_status umd_submit(struct umd *umd, const struct trace_submission *submission);
/* Appends a command to the current part that references the buffer for writing. */
enum replay_status umd_submit_write(struct umd *umd, struct umd_buffer *buffer);

#endif
