/* SPDX-License-Identifier: MIT */
/*
 * The fixture of contexts whose commands are at GPU virtual addresses.
 */
#ifndef VMM_TESTS_COMMAND_WORLD_H
#define VMM_TESTS_COMMAND_WORLD_H

#include "va_world.h"

/* A virtual context, its commands in an allocation that the CPU writes, and a target. */
struct stage {
	struct va_world v;
	HANDLE context;
	D3DKMT_HANDLE commands, target;
	uint64_t commands_at, target_at;
};

void stage_begin(struct stage *s, void **state, world_setup *setup);
void stage_finish(struct stage *s);
/* Writes a command that stores the value at that GPU virtual address. */
void stage_fill(struct stage *s, uint64_t to, uint32_t value);
HRESULT stage_try_context(struct stage *s, HANDLE *context);
/* Another context with virtual addresses, on that node. */
HANDLE stage_context_on(struct stage *s, UINT node);
void stage_destroy_context(struct stage *s, HANDLE context);
/* The arguments of pfnSubmitCommandCb for the command; then the call. */
D3DDDICB_SUBMITCOMMAND stage_command(const struct stage *s);
HRESULT stage_submit(struct stage *s, const D3DDDICB_SUBMITCOMMAND *args);

#endif
