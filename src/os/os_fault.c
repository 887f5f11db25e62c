/* SPDX-License-Identifier: MIT */
/*
 * Faults of the processor: code may end one by a jump, and ranges of os_trap.c explain theirs. A
 * fault that is not ended goes to the handler that was there before. A program that installs a
 * handler afterwards replaces ours, so each call looks whether that of SIGSEGV is still there.
 */
#include "os/os_internal.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <ucontext.h>

/* Handlers that call each other for ever are cut off here. */
enum { CHAIN_MAX = 4 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction before[VMM_ARRAY_LENGTH(signals)];
static void (*_Atomic on_fault)(const struct vmm_os_fault *fault);
static _Atomic bool installing;
static _Thread_local unsigned chained;

static enum vmm_os_fault_kind kind_of(int signal_number, int code)
{
	switch (signal_number) {
	case SIGFPE:
		return code == FPE_INTDIV ? VMM_OS_FAULT_DIVIDE : VMM_OS_FAULT_ARITHMETIC;
	case SIGILL:
		return VMM_OS_FAULT_INSTRUCTION;
	default:
		return VMM_OS_FAULT_ACCESS;
	}
}

static struct vmm_os_fault describe(int signal_number, const siginfo_t *info, const void *context)
{
	struct vmm_os_fault fault = {.kind = kind_of(signal_number, info->si_code),
				     .address = info->si_addr};

#ifdef __x86_64__
	const ucontext_t *machine = context;

	fault.instruction = (void *)(uintptr_t)machine->uc_mcontext.gregs[REG_RIP];
	/* The bit of a page fault that says whether the access was a write. */
	fault.is_write = signal_number == SIGSEGV && machine->uc_mcontext.gregs[REG_ERR] & 2;
#else
	(void)context;
#endif
	return fault;
}

/* Calls the handler that was there before as the kernel would. */
static void pass_on(int signal_number, siginfo_t *info, void *context)
{
	struct sigaction *entry = before, old;
	sigset_t blocked, mask;

	while (signals[entry - before] != signal_number)
		entry++;
	old = *entry;
	if (chained++ >= CHAIN_MAX || (!(old.sa_flags & SA_SIGINFO) &&
				       (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN))) {
		/* The instruction runs again, and its fault ends the process. */
		signal(signal_number, SIG_DFL);
		if (info->si_code <= 0)
			raise(signal_number);
		return;
	}
	if (old.sa_flags & SA_RESETHAND)
		entry->sa_flags = 0, entry->sa_handler = SIG_DFL;
	mask = old.sa_mask;
	if (!(old.sa_flags & SA_NODEFER))
		sigaddset(&mask, signal_number);
	pthread_sigmask(SIG_BLOCK, &mask, &blocked);
	if (old.sa_flags & SA_SIGINFO)
		old.sa_sigaction(signal_number, info, context);
	else
		old.sa_handler(signal_number);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	chained--;
}

static void handle(int signal_number, siginfo_t *info, void *context)
{
	if (info->si_code > 0) { /* not sent by a process */
		void (*function)(const struct vmm_os_fault *fault) = on_fault;
		struct vmm_os_fault fault = describe(signal_number, info, context);

		if (function)
			function(&fault);
		if (signal_number == SIGSEGV)
			vmm_os_trap_explain(info->si_addr);
	}
	pass_on(signal_number, info, context);
}

static bool is_ours(int signal_number, struct sigaction *now)
{
	return sigaction(signal_number, NULL, now) == 0 && (now->sa_flags & SA_SIGINFO) &&
	       now->sa_sigaction == handle;
}

void vmm_os_fault_install(void)
{
	/* NODEFER: a jump out of the handler leaves no signal blocked. */
	struct sigaction action = {.sa_sigaction = handle,
				   .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	struct sigaction now;

	if (is_ours(signals[0], &now))
		return;
	while (atomic_exchange(&installing, true))
		sched_yield();
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(signals); i++) {
		if (is_ours(signals[i], &now))
			continue;
		before[i] = now;
		sigaction(signals[i], &action, NULL);
	}
	atomic_store(&installing, false);
}

void vmm_os_catch_faults(void (*function)(const struct vmm_os_fault *fault))
{
	atomic_store(&on_fault, function);
	vmm_os_fault_install();
}

uint32_t vmm_os_held_count(void)
{
	return ((const struct vmm_os_thread *)vmm_os_here.own)->held_count;
}
