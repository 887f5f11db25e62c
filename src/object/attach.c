/* SPDX-License-Identifier: MIT */
/* The process for which the calling thread calls D3DKMT functions. */
#include "object/attach.h"

#include "object/object.h"

enum { PROCESS_SLOT = 5 }; /* index of the thread's slot; see os.h */

static _Atomic(struct vmm_process *) attached;
static _Thread_local struct vmm_process *served;
/*
 * The world of the process that this system thread selected last, so that a selection works without
 * an attached process. NULL: this thread has selected none. The selection itself is in a slot of
 * the calling thread in that world, which may be a coroutine.
 */
static _Thread_local struct vmm_os *selected_in;

void vmm_kmt_attach(struct vmm_process *process)
{
	atomic_store(&attached, process);
}

void vmm_kmt_forget(struct vmm_process *process)
{
	struct vmm_process *expected = process;

	atomic_compare_exchange_strong(&attached, &expected, NULL);
}

void vmm_kmt_forget_world(const struct vmm_os *os)
{
	if (selected_in == os)
		selected_in = NULL;
}

static uint64_t *own_slot(struct vmm_os *os)
{
	return &VMM_OS_OWN(os)->slot[PROCESS_SLOT];
}

static struct vmm_process *selected(void)
{
	return selected_in ? (struct vmm_process *)(uintptr_t)*own_slot(selected_in) : NULL;
}

struct vmm_process *vmm_kmt_step(struct vmm_os *os, struct vmm_process *process)
{
	uint64_t *slot = own_slot(os);
	struct vmm_process *before = (struct vmm_process *)(uintptr_t)*slot;

	selected_in = os;
	*slot = (uint64_t)(uintptr_t)process;
	return before;
}

/* A thread of real time is no coroutine, so its world may end once it has selected nothing. */
struct vmm_process *vmm_kmt_enter(struct vmm_process *process)
{
	struct vmm_process *before = selected();

	if (selected_in && (!process || process->world->os != selected_in))
		*own_slot(selected_in) = 0;
	if (process)
		(void)vmm_kmt_step(process->world->os, process);
	else if (selected_in && vmm_os_kind(selected_in) == VMM_OS_LINUX)
		selected_in = NULL;
	return before;
}

struct vmm_process *vmm_kmt_serve(struct vmm_process *process)
{
	struct vmm_process *before = served;

	served = process;
	return before;
}

struct vmm_process *vmm_kmt_process(void)
{
	struct vmm_process *process = served ? served : selected();

	return process ? process : atomic_load(&attached);
}
