/* SPDX-License-Identifier: MIT */
/*
 * The part of the user-mode driver that only WDDM 2.x has. The driver, and not the memory manager,
 * decides what is resident, renames, and waits for the GPU:
 *
 * - Each allocation has a GPU virtual address, and commands contain addresses (umd_commands.c).
 * - Before a submission its allocations are made resident. Over budget, the least recently used
 *   ones are evicted first (umd_residency.c).
 * - Each context has a monitored fence that its command buffers store to. Each allocation keeps the
 *   last use and the last write as a context and a value of its fence (umd_fence.c).
 * - A write of a whole buffer that the GPU still uses gets other memory (umd_memory.c).
 */
#ifndef VIDMM_TOOLS_UMD_WDDM2_H
#define VIDMM_TOOLS_UMD_WDDM2_H

#include "umd_private.h"

/* Work on the GPU: it is done when the fence of CONTEXT has VALUE. CONTEXT NULL: no work. */
struct umd_use {
	struct umd_context *context;
	uint64_t value;
};

/* One object for the opened handles of a shared allocation, in all processes. */
struct umd_uses {
	struct umd_use last, last_write;
};

/* An allocation. */
struct umd_memory {
	D3DKMT_HANDLE handle;
	uint64_t address; /* GPU virtual address */
	uint64_t size_bytes;
	uint64_t submission; /* number of the last submission that uses it */
	struct umd_uses own_uses;
	struct umd_uses *uses; /* own_uses, or those of a shared allocation */
	bool resident;         /* on the residency list of the device, and in order of use */
	bool written;          /* by the GPU, since it was made resident */
	struct umd_memory *older, *newer;
	struct umd_memory *next_spare;
};

#define UMD_COMMAND_BUFFERS      8u
#define UMD_COMMAND_BUFFER_BYTES 262144u

struct umd_command_buffer {
	struct umd_memory *memory;
	char *data; /* locked for as long as the driver runs */
	struct umd_use use;
};

struct umd_wddm2 {
	D3DDDICB_CREATEPAGINGQUEUE queue;
	/* the value of the queue's fence at which all memory is usable */
	uint64_t paging_value;
	uint64_t submission;
	struct umd_memory *oldest, *newest; /* the residency list, in order of use */
	struct umd_command_buffer commands[UMD_COMMAND_BUFFERS];
	unsigned next_commands; /* index of the command buffer that is filled */
	struct umd_memory *report;
	D3DKMT_HANDLE *handles; /* argument of MakeResident and Evict */
	uint32_t handle_count, handle_capacity;
};

/* umd_fence.c */
enum replay_status umd_fence_create(struct umd *umd, struct umd_context *context);
bool umd_use_is_done(const struct umd_use *use);
/* Waits on the CPU. */
HRESULT umd_use_wait(struct umd *umd, const struct umd_use *use);
/*
 * Has the context wait, before its next command buffer, until paging is done and other contexts
 * have finished with the memory of the slots.
 */
enum replay_status umd_wait_before(struct umd *umd, struct umd_context *context,
				   const struct umd_slot *slots, uint32_t count);

/* umd_memory.c: creates or adopts an allocation at a GPU virtual address. NULL: it failed. */
struct umd_memory *umd_memory_adopt(struct umd *umd, D3DKMT_HANDLE handle, uint64_t size_bytes);
/* Memory that the GPU accesses in system memory and the CPU keeps locked: reports, commands. */
enum replay_status umd_memory_create_locked(struct umd *umd, uint64_t size_bytes,
					    struct umd_memory **memory, char **data);
enum replay_status umd_memory_created(struct umd *umd, struct umd_buffer *buffer);
enum replay_status umd_memory_forget(struct umd *umd, struct umd_buffer *buffer);
enum replay_status umd_memory_shared(struct umd *umd, struct umd_buffer *buffer, bool exported);
enum replay_status umd_memory_free_spares(struct umd *umd, struct umd_buffer *buffer);
HRESULT umd_memory_lock(struct umd *umd, struct umd_buffer *buffer, UINT flags, UINT page_count,
			char **data);
HRESULT umd_memory_unlock(struct umd *umd, D3DKMT_HANDLE handle);
HRESULT umd_memory_wait(struct umd *umd, struct umd_buffer *buffer, UINT flags);
HRESULT umd_memory_reclaim(struct umd *umd, struct umd_buffer *buffer, BOOL *discarded);

/* umd_residency.c */
/* Makes memory resident for good: it is never trimmed. */
enum replay_status umd_residency_pin(struct umd *umd, const struct umd_memory *memory);
/* Makes the memory of the slots resident, for the next submission. */
enum replay_status umd_residency_prepare(struct umd *umd, const struct umd_slot *slots,
					 uint32_t count);
/* The allocation is about to be destroyed. */
void umd_residency_forget(struct umd *umd, struct umd_memory *memory);

/* umd_commands.c */
enum replay_status umd_commands_create(struct umd *umd);
enum replay_status umd_commands_begin(struct umd *umd);
enum replay_status umd_commands_submit(struct umd *umd);
/* Appends a table of addresses, as many as fit. Returns their number. */
uint32_t umd_commands_table(struct umd *umd, const struct trace_relocation *relocations,
			    uint32_t count);

static inline void umd_wait_for_paging(struct umd *umd, uint64_t value)
{
	if (value > umd->wddm2->paging_value)
		umd->wddm2->paging_value = value;
}

#endif
