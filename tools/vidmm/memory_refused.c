/* SPDX-License-Identifier: MIT */
/* The program is linked with --wrap for the functions here. The JSON library is given them. */
#define _DEFAULT_SOURCE /* on_exit */
#include <jansson.h>
#include <popt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "memory_refused.h"
#include "options.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t bytes);
poptContext __real_poptGetContext(const char *name, int argc, const char **argv,
				  const struct poptOption *options, unsigned flags);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t bytes);
poptContext __wrap_poptGetContext(const char *name, int argc, const char **argv,
				  const struct poptOption *options, unsigned flags);

static atomic_bool refused;

static void *note(void *memory, bool wanted)
{
	if (!memory && wanted)
		atomic_store(&refused, true);
	return memory;
}

void *__wrap_malloc(size_t bytes)
{
	return note(fault_fails(FAULT_MEMORY) ? NULL : __real_malloc(bytes), bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return note(fault_fails(FAULT_MEMORY) ? NULL : __real_calloc(count, bytes), count && bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return note(fault_fails(FAULT_MEMORY) ? NULL : __real_realloc(memory, bytes), bytes);
}

char *__wrap_strdup(const char *text)
{
	return note(__real_strdup(text), true);
}

char *__wrap_strndup(const char *text, size_t bytes)
{
	return note(__real_strndup(text, bytes), true);
}

poptContext __wrap_poptGetContext(const char *name, int argc, const char **argv,
				  const struct poptOption *options, unsigned flags)
{
	poptContext context = __real_poptGetContext(name, argc, argv, options, flags);

	if (context)
		return context;
	fprintf(stderr, "vidmm: out of memory\n");
	exit(REPLAY_ENVIRONMENT);
}

static pid_t watched; /* 0: main is about to end */

static void at_exit(int code, void *context)
{
	(void)context;
	if (code != EXIT_FAILURE || getpid() != watched)
		return;
	fflush(NULL);
	_exit(REPLAY_ENVIRONMENT);
}

void memory_refused_watch(void)
{
	json_set_alloc_funcs(__wrap_malloc, free);
	watched = getpid();
	(void)on_exit(at_exit, NULL);
}

bool memory_refused(void)
{
	watched = 0;
	return atomic_load(&refused);
}
