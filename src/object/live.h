/* SPDX-License-Identifier: MIT */
/*
 * live: what clients hold of devices and contexts. A HANDLE is a number that names a slot and one use of it, so that
 * a dead or an invented one is recognised without touching what it may once have named; and whoever ends an object
 * first waits until no thread is inside a call on it.
 *
 * A call announces itself in its thread's own word and then looks at the slot; leaving is a plain store. Neither is a
 * locked instruction (vmm_os_announce). The slots are static: they outlive every world.
 */
#ifndef VMM_OBJECT_LIVE_H
#define VMM_OBJECT_LIVE_H

#include <stdatomic.h>
#include "base/base.h"
#include "os/os.h"

enum vmm_live_kind { VMM_LIVE_DEVICE = 1, VMM_LIVE_CONTEXT };

/* A thread inside a call on an object; one at a time. */
struct vmm_visit {
	struct vmm_os *os;
	_Atomic uint64_t *word;
	uint64_t handle, before;
};

/* NULL: more than 65535 at once. */
void *vmm_live_add(struct vmm_os *os, enum vmm_live_kind kind, void *object) VMM_MUST_CHECK;
/* The object, which stays until vmm_live_leave; NULL: not a live one of that kind. */
void *vmm_live_enter(struct vmm_visit *visit, enum vmm_live_kind kind, const void *handle);
void vmm_live_leave(const struct vmm_visit *visit);
/*
 * The object, if the caller is the one to end it: nobody enters any more, and nobody is inside. NULL: it was not live,
 * or somebody else is ending it. Not from inside a call on it.
 */
void *vmm_live_end(enum vmm_live_kind kind, const void *handle) VMM_MUST_CHECK;
void vmm_live_ended(const void *handle); /* the object is gone */
/*
 * Whoever enters, or ends it, waits until vmm_live_resume; on return nobody is inside. false: it was not live, or somebody
 * is ending it. Not from inside a call on it.
 */
bool vmm_live_pause(enum vmm_live_kind kind, const void *handle) VMM_MUST_CHECK;
/* The same in two steps: between them who is inside, and may stay for ever, can be told to come out. */
bool vmm_live_pause_begin(enum vmm_live_kind kind, const void *handle) VMM_MUST_CHECK;
void vmm_live_pause_finish(const void *handle);
bool vmm_live_is_paused(const void *handle);
void vmm_live_resume(const void *handle);
/* Waits for the vmm_live_ended of somebody else's vmm_live_end. */
void vmm_live_await_end(struct vmm_os *os, const void *handle);

#endif
