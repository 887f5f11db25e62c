/* SPDX-License-Identifier: MIT */
/*
 * Inaccessible ranges whose accesses are explained before they end the process. The handler of
 * faults (os_fault.c) calls vmm_os_trap_explain, and then the action that was installed before.
 */
#include "os/os_internal.h"

#include <string.h>
#include <unistd.h>

#define TRAPS_MAX 64u

/* Read by the handler, so there is no mutex. size_bytes 0: free, or not complete yet. */
static struct trap {
	_Atomic bool taken;
	_Atomic uintptr_t address;
	_Atomic uint64_t size_bytes;
	_Atomic(const char *) text;
} traps[TRAPS_MAX];

static const struct trap *find(uintptr_t address)
{
	for (uint32_t i = 0; i < TRAPS_MAX; i++) {
		uint64_t size_bytes = atomic_load(&traps[i].size_bytes);

		if (size_bytes && address - atomic_load(&traps[i].address) < size_bytes)
			return &traps[i];
	}
	return NULL;
}

static void put(const char *text)
{
	size_t length = strlen(text);
	ssize_t written = write(STDERR_FILENO, text, length);

	(void)written; /* the process ends, whether or not the message could be written */
}

/* Writes "0x" and the digits; snprintf may not be called here. */
static void put_hex(uint64_t value)
{
	char text[19], *at = text + sizeof(text) - 1;

	*at = '\0';
	do {
		*--at = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	*--at = 'x';
	*--at = '0';
	put(at);
}

void vmm_os_trap_explain(const void *address)
{
	const struct trap *trap = find((uintptr_t)address);

	if (!trap)
		return;
	put(atomic_load(&trap->text));
	put(" (offset ");
	put_hex((uintptr_t)address - atomic_load(&trap->address));
	put(")\n");
}

void vmm_os_trap_add(const void *address, uint64_t size_bytes, const char *text)
{
	vmm_os_fault_install();
	for (uint32_t i = 0; i < TRAPS_MAX; i++) {
		if (atomic_exchange(&traps[i].taken, true))
			continue;
		atomic_store(&traps[i].address, (uintptr_t)address);
		atomic_store(&traps[i].text, text);
		atomic_store(&traps[i].size_bytes, size_bytes);
		return;
	}
}

void vmm_os_trap_remove(const void *address)
{
	for (uint32_t i = 0; i < TRAPS_MAX; i++) {
		if (!atomic_load(&traps[i].size_bytes) ||
		    atomic_load(&traps[i].address) != (uintptr_t)address)
			continue;
		atomic_store(&traps[i].size_bytes, 0);
		atomic_store(&traps[i].taken, false);
		return;
	}
}
