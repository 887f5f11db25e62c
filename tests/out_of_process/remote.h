/* SPDX-License-Identifier: MIT */
/*
 * remote: a host and its out-of-process clients as programs, for tests. out_of_process_host serves
 * softgpu on a socket until its standard input ends. out_of_process_client connects and does what
 * its mode says. Both report progress on their standard output. A test never sleeps for a fixed
 * time: it waits for a byte, for the end of a file or for a process. /proc shows what resources a
 * process has.
 */
#ifndef VMM_TESTS_REMOTE_H
#define VMM_TESTS_REMOTE_H

#include <support/hang.h>
#include <support/test.h>

#include <sys/types.h>

/*
 * Sanitizers retain memory, so the host's memory is not compared under them. ThreadSanitizer does
 * not support threads that are created after a fork.
 */
#if defined(__has_feature)
#define REMOTE_IS_BUILT(feature) __has_feature(feature)
#else
#define REMOTE_IS_BUILT(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || REMOTE_IS_BUILT(thread_sanitizer)
#define REMOTE_THREADS_SANITIZED 1
#else
#define REMOTE_THREADS_SANITIZED 0
#endif
#if defined(__SANITIZE_ADDRESS__) || REMOTE_IS_BUILT(address_sanitizer)
#define REMOTE_SANITIZED 1
#else
#define REMOTE_SANITIZED REMOTE_THREADS_SANITIZED
#endif

/* Exit codes of out_of_process_client. */
enum {
	REMOTE_DONE = 0,
	REMOTE_WRONG = 3,   /* wrong content */
	REMOTE_REMOVED = 4, /* its calls return that the device has been removed */
	REMOTE_SKIPPED = 6, /* the system does not allow what the test needs */
	REMOTE_REFUSED = 7, /* the host refused its connection for lack of resources */
	REMOTE_FOREIGN = 5 /* it can read memory of another program, or change memory of the host */
};

struct remote_program {
	pid_t pid;
	int pidfd;
	int in, out; /* its standard input and output; -1: closed */
};

struct remote {
	const char *host_program, *client_program;
	char folder[64], socket[80];
	struct remote_program host;
};

/* Resources of a program, as /proc shows them. */
struct remote_counts {
	uint32_t descriptors, memory_objects, mappings; /* memory objects: descriptors of memfds */
	/* Private memory of the host, including video memory that was used once. */
	uint64_t private_kib;
};

/* Called before the tests, with the paths of the programs (arguments of the test program). */
void remote_init(int count, char **arguments);
/* Starts a host with that much video memory and aperture. Returns when it accepts connections. */
void remote_start(struct remote *remote, uint64_t vram_kib, uint64_t aperture_kib);
/* Starts a new host on the same socket, after the last has ended. */
void remote_start_again(struct remote *remote, uint64_t vram_kib, uint64_t aperture_kib);
/* Makes the host end cleanly and check that nothing is left of its clients; else the test fails. */
void remote_stop(struct remote *remote);
void remote_remove(
	struct remote *remote); /* removes the socket, after the host has ended in any way */
/* Waits until no client is connected and no object of any client is left. */
void remote_settle(struct remote *remote);

/*
 * Also waits until the host has no more descriptors and memory objects than BEFORE, that is, until
 * work that it defers for the GPU is done.
 */
struct remote_counts;
void remote_settle_to(struct remote *remote, const struct remote_counts *before);

/* Returns the bytes that the host then has allocated; unknown under a sanitizer. */
uint64_t remote_memory(struct remote *remote);

/* out_of_process_client MODE SOCKET [ARGUMENT...] */
void remote_client(struct remote *remote, struct remote_program *program, const char *mode,
		   const char *argument);
/*
 * Starts `vidmm replay`, which plays a recording against the host once, at full speed. It writes
 * errors to `errors`.
 */
void remote_player(struct remote *remote, struct remote_program *program, const char *vidmm,
		   const char *recording, int errors);
/* Discards the output of the program so far. */
void remote_skip(struct remote_program *program);
bool remote_has_ended(struct remote_program *program);
/* Waits for `count` bytes of its output. Returns false if it ended before. */
bool remote_read(struct remote_program *program, uint32_t count);
void remote_kill(struct remote_program *program);
/* Closes its standard input. */
void remote_finish(struct remote_program *program);
/* Waits for its end. Returns the exit code, or 256 + the signal. */
int remote_wait(struct remote_program *program);

struct remote_counts remote_count(pid_t pid);

#endif
