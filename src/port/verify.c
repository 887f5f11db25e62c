/* SPDX-License-Identifier: MIT */
/*
 * Verification of a miniport (VidmmVerifyDriver): the stack that each of its routines uses (NT-21),
 * bytes behind the buffers that it gets (NT-23), and references to handle data that it keeps
 * (NT-24).
 *
 * Stack: before a routine is called, the memory below the stack pointer is filled with a pattern;
 * afterwards the deepest word without the pattern shows how much was used. A routine that is called
 * inside another one fills its part again, so that the outer one is not charged for it.
 */
#include <stdio.h>
#include <string.h>
#include <vidmm/vidmm.h>
#include "port/port_internal.h"

#define PAINT_BYTES 49152u
#define PATTERN     UINT64_C(0x5A5AC3C35A5AC3C3)
/*
 * A kernel stack has 24 KiB on x64. The reserve is for what called the miniport, and for an
 * interrupt during the call.
 */
#define STACK_BYTES 24576u
#define RESERVE     4096u

/* Frames of sanitized code are several times as large; nothing is measured there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEASURES false
#elif !defined(__has_feature)
#define MEASURES true
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEASURES false
#else
#define MEASURES true
#endif

VMM_NOINLINE static uintptr_t paint(void)
{
	volatile uint64_t word[PAINT_BYTES / sizeof(uint64_t)];
	uintptr_t low;

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(word); i++)
		word[i] = PATTERN;
	low = (uintptr_t)&word[0];
	return low;
}

/* Reads below the stack pointer, which only the stack of a signal handler would change. */
VMM_NOINLINE static uint32_t used(uintptr_t low)
{
	const volatile uint64_t *word = (const volatile uint64_t *)low;
	uint32_t i = 0;

	while (i < PAINT_BYTES / sizeof(*word) && word[i] == PATTERN)
		i++;
	return PAINT_BYTES - i * (uint32_t)sizeof(*word);
}

void vmm_port_verify_enter(struct vmm_port_call *call)
{
	if (MEASURES)
		call->stack = paint();
}

void vmm_port_place_name(uint64_t value, char *name, size_t size)
{
	struct vidmm_driver_place place = {.query_type = -1};

	vmm_port_place_of(&place, value);
	if (place.query_type >= 0)
		snprintf(name, size, "%s of type %d", place.routine, (int)place.query_type);
	else
		snprintf(name, size, "%s", place.routine);
}

void vmm_port_verify_leave(const struct vmm_port_call *call)
{
	struct vmm_port *port = call->verified;
	uint64_t value = call->own->slot[VMM_PORT_THREAD_SLOT];
	uint32_t place = (uint32_t)(value >> VMM_PORT_PLACE_SHIFT), bytes;
	char name[VIDMM_PLACE_BYTES + 16];

	if (!call->stack)
		return;
	bytes = used(call->stack);
	if (call->outer)
		(void)paint();
	if (bytes <= STACK_BYTES - RESERVE ||
	    atomic_exchange(&port->deep[place % VMM_ARRAY_LENGTH(port->deep)], true))
		return;
	vmm_port_place_name(value, name, sizeof(name));
	vmm_finding(port->observe, "NT-21", 0, 0,
		    "%s used %s%u bytes of stack: a kernel stack has %u, of which %u are reserved "
		    "for the caller",
		    name, bytes == PAINT_BYTES ? "at least " : "", bytes, STACK_BYTES, RESERVE);
}

/* ---- buffers ---- */

#define CANARY 0xC9

void vmm_port_canary_fill(void *canary)
{
	memset(canary, CANARY, VMM_PORT_CANARY_BYTES);
}

void *vmm_port_output_memory(size_t size_bytes, bool verify)
{
	char *memory;

	if (vmm_likely(!verify))
		return vmm_calloc(1, size_bytes);
	memory = vmm_calloc(1, size_bytes + VMM_PORT_CANARY_BYTES);
	if (memory)
		vmm_port_canary_fill(memory + size_bytes);
	return memory;
}

/* Returns how many bytes were written, up to the last one, and fills them again. */
static uint32_t written_behind(uint8_t *canary)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < VMM_PORT_CANARY_BYTES; i++)
		if (canary[i] != CANARY)
			count = i + 1;
	if (count)
		vmm_port_canary_fill(canary);
	return count;
}

/* START: NULL if the routine got no such buffer. */
static void check_behind(struct vmm_port *port, const char *function, const char *what,
			 const void *start, uint64_t size_bytes)
{
	uint32_t behind;

	if (!start)
		return;
	behind = written_behind((uint8_t *)(uintptr_t)start + size_bytes);
	if (behind)
		vmm_finding(port->observe, "NT-23", 0, 0,
			    "%s wrote %u bytes behind the end of %s, which had %llu", function,
			    behind, what, (unsigned long long)size_bytes);
}

void vmm_port_verify_outputs(struct vmm_port *port, const struct vmm_port_limits *limits,
			     const struct vmm_port_outputs *before)
{
	check_behind(port, limits->function, "pDmaBuffer", before->commands, limits->command_bytes);
	check_behind(port, limits->function, "pDmaBufferPrivateData", before->private_data,
		     limits->private_bytes);
	check_behind(port, limits->function, "pPatchLocationListOut", before->patches,
		     limits->patch_bytes);
}

NTSTATUS vmm_port_verify_query(struct vmm_port *port, DXGKARG_QUERYADAPTERINFO *args)
{
	DXGKARG_QUERYADAPTERINFO copy = *args;
	uint8_t *bytes = vmm_calloc(1, args->OutputDataSize + VMM_PORT_CANARY_BYTES);
	uint32_t behind;
	NTSTATUS status;

	if (!bytes)
		return port->ddi.DxgkDdiQueryAdapterInfo(port->adapter, args);
	vmm_port_canary_fill(bytes + args->OutputDataSize);
	if (args->OutputDataSize)
		memcpy(bytes, args->pOutputData, args->OutputDataSize);
	copy.pOutputData = bytes;
	status = port->ddi.DxgkDdiQueryAdapterInfo(port->adapter, &copy);
	if (args->OutputDataSize)
		memcpy(args->pOutputData, bytes, args->OutputDataSize);
	behind = written_behind(bytes + args->OutputDataSize);
	vmm_free(bytes);
	if (behind)
		vmm_finding(port->observe, "NT-23", 0, 0,
			    "DxgkDdiQueryAdapterInfo of type %d wrote %u bytes behind the end of "
			    "pOutputData, which has %u",
			    (int)args->Type, behind, args->OutputDataSize);
	return status;
}

/* ---- handle data ---- */

void vmm_port_verify_acquired(struct vmm_port *port)
{
	if (port->verify)
		atomic_fetch_add(&port->handle_data, 1);
}

void vmm_port_verify_released(struct vmm_port *port)
{
	uint32_t count = atomic_load(&port->handle_data);

	if (!port->verify)
		return;
	while (count && !atomic_compare_exchange_weak(&port->handle_data, &count, count - 1))
		;
	if (!count)
		vmm_finding(port->observe, "NT-24", 0, 0,
			    "DxgkCbReleaseHandleData: the miniport has no reference of "
			    "DxgkCbAcquireHandleData");
}

void vmm_port_verify_stopped(struct vmm_port *port)
{
	uint32_t count = atomic_load(&port->handle_data);

	if (count)
		vmm_finding(port->observe, "NT-24", 0, 0,
			    "%u references of DxgkCbAcquireHandleData were not released by "
			    "DxgkCbReleaseHandleData",
			    count);
}
