/* SPDX-License-Identifier: MIT */
/*
 * Reports a crash of a driver. The handler writes the first line itself. What needs the loader's
 * locks and addr2line runs in a child process, for which the handler waits a limited time: the
 * crashed thread may hold such a lock.
 */
#include <execinfo.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "code_address.h"
#include "crash.h"

#define FRAMES_MAX  64
#define DRIVERS_MAX 16
#define TEXT_BYTES  1024
#define POLL_NS     10000000
#define POLLS       1000 /* 10 s in all */

static const void *drivers[DRIVERS_MAX]; /* the DriverEntry of each */
static unsigned driver_count;
static int report_fd = -1;

struct text {
	char bytes[TEXT_BYTES];
	size_t length;
};

static void add(struct text *text, const char *part)
{
	for (; *part && text->length + 1 < sizeof(text->bytes); part++)
		text->bytes[text->length++] = *part;
}

static void add_number(struct text *text, uint64_t value, unsigned base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	add(text, digits + at);
}

static void write_out(const struct text *text)
{
	if (write(report_fd, text->bytes, text->length) < 0)
		return; /* it is closed: nothing can be reported */
}

void crash_routine(const struct vidmm_driver_place *place, char *buffer, size_t size)
{
	struct text text = {.length = 0};

	add(&text, place->routine[0] ? place->routine : "no routine of the driver");
	if (place->query_type >= 0) {
		add(&text, " of type ");
		add_number(&text, (uint64_t)place->query_type, 10);
	}
	for (size_t i = 0; i <= text.length && i < size; i++)
		buffer[i] = i == text.length || i + 1 == size ? '\0' : text.bytes[i];
}

bool crash_deadlock(char *text, size_t size)
{
	struct vidmm_driver_place place;
	char routine[VIDMM_PLACE_BYTES + 32];

	if (!vidmm_driver_place(&place) || !place.routine[0])
		return false;
	crash_routine(&place, routine, sizeof(routine));
	snprintf(text, size,
		 "Q-440: deadlock: the miniport waits in %s%s%s, and no thread can wake it",
		 routine, place.waits_in ? ", " : "", place.waits_in ? place.waits_in : "");
	return true;
}

static const char *signal_name(int number)
{
	switch (number) {
	case SIGSEGV:
		return "SIGSEGV";
	case SIGBUS:
		return "SIGBUS";
	case SIGILL:
		return "SIGILL";
	case SIGFPE:
		return "SIGFPE";
	default:
		return "SIGABRT";
	}
}

/* NT-09 */
static bool add_bug_check(struct text *text)
{
	struct vidmm_driver_bug_check check;

	if (!vidmm_driver_bug_check(&check))
		return false;
	add(text, "bug check 0x");
	add_number(text, check.code, 16);
	for (unsigned i = 0; i < 4; i++) {
		add(text, i ? ", 0x" : " (0x");
		add_number(text, check.parameters[i], 16);
	}
	add(text, ") (NT-09)\n");
	return true;
}

static void write_what(int number, const siginfo_t *info)
{
	struct vidmm_driver_place place;
	char routine[VIDMM_PLACE_BYTES + 32];
	struct text text = {.length = 0};
	const bool inside = vidmm_driver_place(&place) && place.routine[0];

	crash_routine(&place, routine, sizeof(routine));
	add(&text, inside ? "vidmm: the driver crashed in " : "vidmm: the program crashed, in ");
	add(&text, routine);
	add(&text, ": ");
	if (add_bug_check(&text)) {
		write_out(&text);
		return;
	}
	add(&text, signal_name(number));
	if (number != SIGABRT) {
		add(&text, " at address 0x");
		add_number(&text, (uintptr_t)info->si_addr, 16);
	}
	add(&text, inside ? " (Q-441)\n" : "\n");
	write_out(&text);
}

/* Returns the address of the instruction that was interrupted. */
static void *interrupted(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (void *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (void *)(uintptr_t)context->uc_mcontext.pc;
#else
	(void)context;
	return NULL;
#endif
}

static void write_frame(const char *before, const void *address, bool caller)
{
	char described[TEXT_BYTES - 64];
	struct text text = {.length = 0};

	code_address_describe(address, caller, described, sizeof(described));
	add(&text, before);
	add(&text, described);
	add(&text, "\n");
	write_out(&text);
}

/* NT-25 */
static void write_mdl(const struct vidmm_driver_block *block)
{
	struct text text = {.length = 0};

	add(&text, block->freed ? "vidmm: inside " : "vidmm: ");
	if (!block->freed) {
		add_number(&text, (uint64_t)block->offset - block->size_bytes, 10);
		add(&text, " bytes behind the end of ");
	}
	add(&text, "an MDL of ");
	add_number(&text, block->size_bytes, 10);
	add(&text, block->freed ? " bytes, whose pages were released, that a DDI got (NT-25)\n"
				: " bytes that a DDI got (NT-25)\n");
	write_out(&text);
}

/* A block of pool that the driver must not have used so. It reads what other threads may change. */
static void write_block(const void *address)
{
	struct vidmm_driver_block block;
	struct text text = {.length = 0};
	char routine[VIDMM_PLACE_BYTES + 32];

	if (!vidmm_driver_block(address, &block))
		return;
	if (block.is_mdl) {
		write_mdl(&block);
		return;
	}
	crash_routine(&block.allocated, routine, sizeof(routine));
	add(&text, block.freed ? "vidmm: inside " : "vidmm: ");
	if (!block.freed) {
		add_number(&text, (uint64_t)block.offset - block.size_bytes, 10);
		add(&text, " bytes behind the end of ");
	}
	add(&text, block.freed ? "a freed pool block of " : "a pool block of ");
	add_number(&text, block.size_bytes, 10);
	add(&text, " bytes with tag \"");
	add(&text, block.tag);
	add(&text, "\", allocated in ");
	add(&text, routine);
	add(&text, " (NT-05)\n");
	write_out(&text);
	write_frame("vidmm: allocated by ", block.caller, true);
}

/* The crashed function; and the innermost function of a driver, if that is another. */
static void write_where(void *pc, void *const *frames, unsigned count)
{
	unsigned first = 0, nearest;

	while (first < count && frames[first] != pc)
		first++;
	write_frame("vidmm: in ", pc, false);
	frames += first;
	count -= first;
	nearest = count;
	for (unsigned i = 0; i < driver_count; i++) {
		unsigned at = code_address_find(frames, count, drivers[i]);

		nearest = at < nearest ? at : nearest;
	}
	if (nearest && nearest < count)
		write_frame("vidmm: called by ", frames[nearest], true);
}

static void wait_for(pid_t child)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	for (unsigned i = 0; i < POLLS; i++) {
		pid_t ended = waitpid(child, NULL, WNOHANG);

		if (ended == child || (ended < 0 && errno != EINTR))
			return;
		nanosleep(&pause, NULL);
	}
	kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
}

/*
 * Signal handler. SA_RESETHAND has restored the default action, so that the faulting instruction
 * runs again and ends the program. A debugger or a core file then shows that instruction.
 */
static void on_crash(int number, siginfo_t *info, void *context)
{
	void *frames[FRAMES_MAX];
	int count;

	write_what(number, info);
	pid_t child = fork();
	if (child == 0) {
		for (int s = 1; s < 32; s++) /* a crash of the child ends it silently */
			signal(s, SIG_DFL);
		count = backtrace(frames, FRAMES_MAX);
		write_where(interrupted(context), frames, count > 0 ? (unsigned)count : 0);
		write_block(info->si_addr);
		_exit(0);
	}
	if (child > 0)
		wait_for(child);
}

void crash_use_stack(void *stack, size_t size)
{
	const stack_t alternate = {.ss_sp = stack, .ss_size = size};
	stack_t old;

	/* A sanitizer has set one, which it frees when the thread ends. */
	if (sigaltstack(NULL, &old) == 0 && !(old.ss_flags & SS_DISABLE))
		return;
	(void)sigaltstack(&alternate, NULL);
}

void crash_watch(int fd, vidmm_driver_entry_fn *entry)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	static char stack[CRASH_STACK_BYTES];
	struct sigaction action = {.sa_sigaction = on_crash,
				   .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_ONSTACK},
			 old;
	void *frame;

	if (driver_count < DRIVERS_MAX)
		memcpy(&drivers[driver_count++], &entry, sizeof(entry));
	if (report_fd >= 0)
		return;
	report_fd = fd;
	(void)backtrace(&frame, 1); /* loads what it needs now, not in the handler */
	crash_use_stack(stack, sizeof(stack));
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
}
