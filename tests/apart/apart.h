/* SPDX-License-Identifier: MIT */
/*
 * apart: a host and its clients as separate processes, for tests. apart_host serves softgpu on a
 * socket until its standard input ends; apart_client connects and does what its mode says. Both
 * report progress on their standard output. A test never sleeps for a fixed time: it waits for a
 * byte, for the end of a file or for a process. /proc shows what resources a process has.
 */
#ifndef VMM_TESTS_APART_H
#define VMM_TESTS_APART_H

#include <support/test.h>

#include <sys/types.h>

#define APART_HANG_MS 60000

/*
 * Memory that a sanitizer keeps is not the host's; that of threads knows no threads that are made
 * after a fork.
 */
#if defined(__has_feature)
#define APART_IS_BUILT(feature) __has_feature(feature)
#else
#define APART_IS_BUILT(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || APART_IS_BUILT(thread_sanitizer)
#define APART_THREADS_SANITIZED 1
#else
#define APART_THREADS_SANITIZED 0
#endif
#if defined(__SANITIZE_ADDRESS__) || APART_IS_BUILT(address_sanitizer)
#define APART_SANITIZED 1
#else
#define APART_SANITIZED APART_THREADS_SANITIZED
#endif

/* Exit codes of apart_client. */
enum {
	APART_DONE = 0,
	APART_WRONG = 3,   /* bytes that are not what they must be */
	APART_REMOVED = 4, /* its calls answer that the device has been removed */
	APART_FOREIGN = 5  /* it can see what is another program's, or change what is the host's */
};

struct apart_program {
	pid_t pid;
	int pidfd;
	int in, out; /* its standard input and output; -1: closed */
};

struct apart {
	const char *host_program, *client_program;
	char folder[64], socket[80];
	struct apart_program host;
};

/* What /proc says of a program. */
struct apart_counts {
	uint32_t descriptors, memory_objects, mappings; /* memory objects: descriptors of memfds */
	/* Private memory of the host, including video memory that was used once. */
	uint64_t private_kib;
};

/* Before the tests: where the programs are (arguments of the test program). */
void apart_init(int count, char **arguments);
/* A host with so much video memory and aperture; comes back when it can be connected to. */
void apart_start(struct apart *apart, uint64_t vram_kib, uint64_t aperture_kib);
/* A new one, after the last has ended, on the same socket. */
void apart_start_again(struct apart *apart, uint64_t vram_kib, uint64_t aperture_kib);
/*
 * The host ends in an orderly way and finds that nothing is left of its clients; else the test
 * fails.
 */
void apart_stop(struct apart *apart);
void apart_remove(struct apart *apart); /* the socket; after the host has ended in whatever way */
/* Waits until no client is connected and no object of any client is left. */
void apart_settle(struct apart *apart);

/*
 * And until the host has no more descriptors and memory objects than that: what is put off until
 * the GPU is through, say.
 */
struct apart_counts;
void apart_settle_to(struct apart *apart, const struct apart_counts *before);

/* Then: bytes that it has of its allocator. Unknown under a sanitizer. */
uint64_t apart_memory(struct apart *apart);

/* apart_client MODE SOCKET [ARGUMENT...] */
void apart_client(struct apart *apart, struct apart_program *program, const char *mode,
		  const char *argument);
/*
 * `vidmm replay` plays a recording against the host, once, as fast as it goes, and says on `errors`
 * what is wrong: nothing, as long as all is well.
 */
void apart_player(struct apart *apart, struct apart_program *program, const char *vidmm,
		  const char *recording, int errors);
/* Forgets what it has said so far. */
void apart_skip(struct apart_program *program);
bool apart_has_ended(struct apart_program *program);
/* Waits for `count` bytes of its output; false: it ended before. */
bool apart_read(struct apart_program *program, uint32_t count);
void apart_kill(struct apart_program *program);
/* Closes its standard input. */
void apart_finish(struct apart_program *program);
/* Waits for its end and forgets it: the exit code, or 256 + the signal. */
int apart_wait(struct apart_program *program);

struct apart_counts apart_count(pid_t pid);

#endif
