/* SPDX-License-Identifier: MIT */
/*
 * Coroutine contexts of the sim back end: a stack, a point to continue at, and the annotations that
 * the sanitizers need for both. Threads and scheduling are not known here. Used from one system
 * thread at a time.
 */
#ifndef VMM_OS_OS_CONTEXT_H
#define VMM_OS_OS_CONTEXT_H

#include "base/base.h"

#if defined(__SANITIZE_ADDRESS__)
#define VMM_OS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VMM_OS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define VMM_OS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VMM_OS_TSAN 1
#endif
#endif

#if !defined(VMM_OS_USE_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define VMM_OS_USE_UCONTEXT 1
#endif
#ifdef VMM_OS_USE_UCONTEXT
#include <ucontext.h>
#endif

typedef void vmm_os_context_fn(void *arg);

struct vmm_os_context {
#ifdef VMM_OS_USE_UCONTEXT
	ucontext_t uc;
	vmm_os_context_fn *fn;
	void *arg;
#else
	void *stack_pointer; /* valid while switched away */
#endif
	/* lowest usable byte; for the main context set only under AddressSanitizer */
	char *stack;
	size_t stack_bytes;
	void *fake_stack; /* AddressSanitizer */
	void *fiber;      /* ThreadSanitizer */
};

/* Initializes the context that the calling system thread runs in now. */
void vmm_os_context_init_main(struct vmm_os_context *context);
/*
 * Allocates a stack with a guard page below it. `fn` must begin with vmm_os_context_entered and end
 * in a switch with `ends`; it never returns.
 */
vmm_status vmm_os_context_init(struct vmm_os_context *context, vmm_os_context_fn *fn,
			       void *arg) VMM_MUST_CHECK;
/* Prepares a new function on the stack of a context that has been retired. */
void vmm_os_context_reinit(struct vmm_os_context *context, vmm_os_context_fn *fn, void *arg);
/* Gives up the point of continuation; the stack stays for vmm_os_context_reinit. */
void vmm_os_context_retire(struct vmm_os_context *context);
/* Frees the stack of a retired context. */
void vmm_os_context_finish(struct vmm_os_context *context);

void vmm_os_context_entered(struct vmm_os_context *context);

/*
 * Continues `to` where it stopped. Returns when another context continues `from`; never if `ends`.
 */
void vmm_os_context_switch(struct vmm_os_context *from, struct vmm_os_context *to, bool ends);

#endif
