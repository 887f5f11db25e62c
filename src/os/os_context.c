/* SPDX-License-Identifier: MIT */
/*
 * Implements coroutine contexts (os_context.h): stacks with a guard page, and the switch between
 * two stacks. The switch is assembly on x86-64 and AArch64, and ucontext elsewhere.
 */
#include "os/os_context.h"
#include "os/os_system.h"

#include <dlfcn.h>
#include <string.h>

#ifdef VMM_OS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef VMM_OS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_BYTES           ((size_t)256 << 10)
#define SANITIZED_STACK_BYTES ((size_t)1 << 20) /* sanitized frames are several times as large */

/*
 * ---- the switch: saves the callee-saved registers, exchanges stack pointers, makes no system call
 * ----
 */

#ifndef VMM_OS_USE_UCONTEXT
void vmm_os_stack_switch(void **save, void *load);
void vmm_os_stack_entry(void);
#endif

#if !defined(VMM_OS_USE_UCONTEXT) && defined(__x86_64__)
/*
 * A stopped stack, upwards from its pointer: mxcsr and x87 control word, r15 r14 r13 r12 rbx rbp,
 * and the address to continue at. A jump instead of `ret` does not disturb the return predictor.
 */
__asm__(".text\n"
	".p2align 4\n"
	".globl vmm_os_stack_switch\n"
	".hidden vmm_os_stack_switch\n"
	".type vmm_os_stack_switch,@function\n"
	"vmm_os_stack_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	subq $8, %rsp\n"
	"	stmxcsr (%rsp)\n"
	"	fnstcw 4(%rsp)\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	ldmxcsr (%rsp)\n"
	"	fldcw 4(%rsp)\n"
	"	addq $8, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	popq %rcx\n"
	"	jmp *%rcx\n"
	".size vmm_os_stack_switch,.-vmm_os_stack_switch\n"
	".globl vmm_os_stack_entry\n"
	".hidden vmm_os_stack_entry\n"
	".type vmm_os_stack_entry,@function\n"
	"vmm_os_stack_entry:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	xorl %ebp, %ebp\n"
	"	movq %r12, %rdi\n"
	"	callq *%r13\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size vmm_os_stack_entry,.-vmm_os_stack_entry\n");

enum {
	SLOT_CONTROL,
	SLOT_R15,
	SLOT_R14,
	SLOT_R13,
	SLOT_R12,
	SLOT_RBX,
	SLOT_RBP,
	SLOT_PC,
	SLOT_COUNT
};

static void prepare(struct vmm_os_context *context, vmm_os_context_fn *fn, void *arg)
{
	/*
	 * The stack pointer must be a multiple of 16 when the entry code runs: SLOT_COUNT is even.
	 */
	uint64_t *slot =
		(uint64_t *)(void *)(context->stack + context->stack_bytes) - SLOT_COUNT - 2;
	uint32_t mxcsr;
	uint16_t x87;

	for (int i = 0; i < SLOT_COUNT; i++)
		slot[i] = 0;
	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(x87));
	slot[SLOT_CONTROL] = mxcsr | (uint64_t)x87 << 32;
	slot[SLOT_R12] = (uint64_t)(uintptr_t)arg;
	slot[SLOT_R13] = (uint64_t)(uintptr_t)fn;
	slot[SLOT_PC] = (uint64_t)(uintptr_t)vmm_os_stack_entry;
	context->stack_pointer = slot;
}
#elif !defined(VMM_OS_USE_UCONTEXT) && defined(__aarch64__)
/* A stopped stack, upwards from its pointer: x19..x30 in pairs, then d8..d15 in pairs. */
__asm__(".text\n"
	".p2align 4\n"
	".globl vmm_os_stack_switch\n"
	".hidden vmm_os_stack_switch\n"
	".type vmm_os_stack_switch,%function\n"
	"vmm_os_stack_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size vmm_os_stack_switch,.-vmm_os_stack_switch\n"
	".globl vmm_os_stack_entry\n"
	".hidden vmm_os_stack_entry\n"
	".type vmm_os_stack_entry,%function\n"
	"vmm_os_stack_entry:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined x30\n"
	"	mov x0, x19\n"
	"	blr x20\n"
	"	brk #0\n"
	"	.cfi_endproc\n"
	".size vmm_os_stack_entry,.-vmm_os_stack_entry\n");

enum { SLOT_X19 = 0, SLOT_X20 = 1, SLOT_X30 = 11, SLOT_COUNT = 20 };

static void prepare(struct vmm_os_context *context, vmm_os_context_fn *fn, void *arg)
{
	uint64_t *slot =
		(uint64_t *)(void *)(context->stack + context->stack_bytes) - SLOT_COUNT - 2;

	for (int i = 0; i < SLOT_COUNT; i++)
		slot[i] = 0;
	slot[SLOT_X19] = (uint64_t)(uintptr_t)arg;
	slot[SLOT_X20] = (uint64_t)(uintptr_t)fn;
	slot[SLOT_X30] = (uint64_t)(uintptr_t)vmm_os_stack_entry;
	context->stack_pointer = slot;
}
#else
/* makecontext passes ints only: the pointer travels in two halves. */
static void uc_entry(unsigned low, unsigned high)
{
	struct vmm_os_context *context =
		(struct vmm_os_context *)((uintptr_t)low | (uintptr_t)high << 16 << 16);

	context->fn(context->arg);
}

static void prepare(struct vmm_os_context *context, vmm_os_context_fn *fn, void *arg)
{
	uintptr_t pointer = (uintptr_t)context;

	context->fn = fn;
	context->arg = arg;
	vmm_assert(getcontext(&context->uc) == 0);
	context->uc.uc_stack.ss_sp = context->stack;
	context->uc.uc_stack.ss_size = context->stack_bytes;
	context->uc.uc_link = NULL;
	makecontext(&context->uc, (void (*)(void))uc_entry, 2, (unsigned)pointer,
		    (unsigned)(pointer >> 16 >> 16));
}
#endif

/* ---- annotations for the sanitizers ---- */

/* The functions of AddressSanitizer's run-time library; NULL: the process has none. */
struct asan {
	void (*start_switch)(void **save, const void *bottom, size_t bytes);
	void (*finish_switch)(void *saved, const void **bottom, size_t *bytes);
	void (*unpoison)(void const volatile *address, size_t bytes);
};

#ifdef VMM_OS_ASAN
static const struct asan *asan(void)
{
	static const struct asan functions = {__sanitizer_start_switch_fiber,
					      __sanitizer_finish_switch_fiber,
					      __asan_unpoison_memory_region};

	return &functions;
}
#else
/*
 * A program without a sanitizer may load a driver that has one. The run-time library is loaded
 * before the program then, and is found by the names of its functions.
 */
static struct asan found;

/* At the start of the program: a switch must not look for them. */
__attribute__((constructor)) static void find_asan(void)
{
	void *start = dlsym(RTLD_DEFAULT, "__sanitizer_start_switch_fiber");
	void *finish = dlsym(RTLD_DEFAULT, "__sanitizer_finish_switch_fiber");
	void *unpoison = dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region");

	if (!start || !finish || !unpoison)
		return;
	memcpy(&found.start_switch, &start, sizeof(start));
	memcpy(&found.finish_switch, &finish, sizeof(finish));
	memcpy(&found.unpoison, &unpoison, sizeof(unpoison));
}

static const struct asan *asan(void)
{
	return &found;
}
#endif

/* A stack may have the shadow of frames that never returned. */
static void unpoison(const struct vmm_os_context *context)
{
	if (asan()->unpoison)
		asan()->unpoison(context->stack, context->stack_bytes);
}

/* Also for a driver with a sanitizer in a program without. */
static size_t stack_bytes(void)
{
#ifdef VMM_OS_TSAN
	return SANITIZED_STACK_BYTES;
#else
	return asan()->start_switch ? SANITIZED_STACK_BYTES : STACK_BYTES;
#endif
}

/*
 * The context that was left. AddressSanitizer reports the bounds of its stack at the switch; those
 * of main are not known otherwise.
 */
static _Thread_local struct vmm_os_context *left;

static void fiber_create(struct vmm_os_context *context)
{
	context->fake_stack = NULL;
#ifdef VMM_OS_TSAN
	context->fiber = __tsan_create_fiber(0);
#endif
	unpoison(context);
}

static void fiber_destroy(struct vmm_os_context *context)
{
#ifdef VMM_OS_TSAN
	__tsan_destroy_fiber(context->fiber);
#endif
	context->fiber = NULL;
}

static void before_switch(struct vmm_os_context *from, struct vmm_os_context *to, bool ends)
{
	left = from;
	if (asan()->start_switch)
		asan()->start_switch(ends ? NULL : &from->fake_stack, to->stack, to->stack_bytes);
#ifdef VMM_OS_TSAN
	__tsan_switch_to_fiber(to->fiber, 0);
#endif
}

/* ---- the interface ---- */

void vmm_os_context_init_main(struct vmm_os_context *context)
{
	*context = (struct vmm_os_context){0};
#ifdef VMM_OS_TSAN
	context->fiber = __tsan_get_current_fiber();
#endif
}

vmm_status vmm_os_context_init(struct vmm_os_context *context, vmm_os_context_fn *fn, void *arg)
{
	const size_t bytes = stack_bytes();
	char *mapping;

	*context = (struct vmm_os_context){0};
	mapping = vmm_os_mmap(NULL, bytes + VMM_PAGE_SIZE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK);
	if (mapping == MAP_FAILED)
		return VMM_NO_MEMORY;
	if (!vmm_os_grant(mapping + VMM_PAGE_SIZE, bytes)) {
		vmm_os_munmap(mapping, bytes + VMM_PAGE_SIZE);
		return VMM_NO_MEMORY;
	}
	context->stack = mapping + VMM_PAGE_SIZE;
	context->stack_bytes = bytes;
	vmm_os_context_reinit(context, fn, arg);
	return VMM_OK;
}

void vmm_os_context_reinit(struct vmm_os_context *context, vmm_os_context_fn *fn, void *arg)
{
	fiber_create(context);
	prepare(context, fn, arg);
}

void vmm_os_context_entered(struct vmm_os_context *context)
{
	const void *bottom;
	size_t size;

	if (!asan()->finish_switch)
		return;
	asan()->finish_switch(context->fake_stack, &bottom, &size);
	if (!left->stack_bytes) {
		left->stack = (char *)(uintptr_t)bottom;
		left->stack_bytes = size;
	}
}

void vmm_os_context_retire(struct vmm_os_context *context)
{
	fiber_destroy(context);
}

void vmm_os_context_finish(struct vmm_os_context *context)
{
	/* The next mapping at these addresses must not inherit the shadow of the last frames. */
	unpoison(context);
	vmm_os_munmap(context->stack - VMM_PAGE_SIZE, context->stack_bytes + VMM_PAGE_SIZE);
	context->stack = NULL;
}

void vmm_os_context_switch(struct vmm_os_context *from, struct vmm_os_context *to, bool ends)
{
	before_switch(from, to, ends);
#ifdef VMM_OS_USE_UCONTEXT
	vmm_assert(swapcontext(&from->uc, &to->uc) == 0);
#else
	vmm_os_stack_switch(&from->stack_pointer, to->stack_pointer);
#endif
	vmm_os_context_entered(from);
}
