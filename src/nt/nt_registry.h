/* SPDX-License-Identifier: MIT */
/* The registry value and its lookup, for nt_registry.c and nt_registry_query.c. */
#ifndef VMM_NT_NT_REGISTRY_H
#define VMM_NT_NT_REGISTRY_H

#include "nt/nt_internal.h"

struct nt_value {
	struct vmm_list link;
	uint32_t type, size_bytes;
	char key[NT_KEY_BYTES];
	char name[128];
	_Alignas(8) unsigned char data[];
};

/* Appends UTF-16 to ASCII text. Returns false if it does not fit or is not ASCII. */
bool nt_narrow(char *text, size_t size, const WCHAR *wide, size_t length);
bool nt_registry_has_key(struct vmm_nt *nt, const char *key);
/* Returns a copy of the value, to be freed with vmm_free. */
NTSTATUS nt_registry_copy(struct vmm_nt *nt, const char *key, const char *name,
			  struct nt_value **copy);

#endif
