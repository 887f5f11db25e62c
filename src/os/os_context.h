/* SPDX-License-Identifier: MIT */
/*
 * Coroutine contexts of the sim back end: a stack, a place to continue, and what the sanitizers
 * must be told about both. Knows nothing of threads or scheduling. Used from one system thread at a
 * time.
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
	char *stack; /* lowest usable byte; of the main context known to AddressSanitizer only */
	size_t stack_bytes;
	void *fake_stack; /* AddressSanitizer */
	void *fiber;      /* ThreadSanitizer */
};

/* The context that the calling system thread runs in now. */
void vmm_os_context_init_main(struct vmm_os_context *context);
/*
 * Gets a stack with a guard page below it. The function must begin with vmm_os_context_entered and
 * end in a switch with `ends`, never in a return.
 */
vmm_status vmm_os_context_init(struct vmm_os_context *context, vmm_os_context_fn *fn,
			       void *arg) VMM_MUST_CHECK;
/* Reuses the stack of a context that has ended or was given up. */
void vmm_os_context_reinit(struct vmm_os_context *context, vmm_os_context_fn *fn, void *arg);
/* Forgets where a context would continue; the stack stays for vmm_os_context_reinit. */
void vmm_os_context_retire(struct vmm_os_context *context);
void vmm_os_context_finish(
	struct vmm_os_context *context); /* of a retired context: gives the stack back */

void vmm_os_context_entered(struct vmm_os_context *context);

/* Continues `to` where it stopped; returns when somebody continues `from`, never if `ends`. */
void vmm_os_context_switch(struct vmm_os_context *from, struct vmm_os_context *to, bool ends);

#endif
